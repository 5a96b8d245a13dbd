// SPDX-License-Identifier: MIT
#pragma kopt kernel  fail
#pragma kopt problem N
#pragma kopt param   BM {16,32,64}
#pragma kopt block   BM
#pragma kopt grid    ceildiv(N,BM)
#pragma kopt arg     a f32[N] normal   b f32[N] out
#pragma kopt check   b against kernel ref
#pragma kopt reference ref block 1 grid N
// fake: out 1 = copy 0
// fake: when BM=16 wrong
// fake: when BM=32 compile_error "no such type"
// fake: when BM=64,entry=fail launch_error
kernel void fail(global const float *a, global float *b) {}
kernel void ref(global const float *a, global float *b) {}
