// SPDX-License-Identifier: MIT
// For the fake device: copies, in a time that grows with BM.
#pragma kopt kernel  copy
#pragma kopt problem N
#pragma kopt param   BM {16,32,64}  BN {16,32,64}
#pragma kopt require BM * BN <= 2048 : "a tile must fit"
#pragma kopt default BM=32 BN=32
#pragma kopt block   BM
#pragma kopt grid    ceildiv(N,BM)
#pragma kopt arg     a f32[N] normal   b f32[N] out
#pragma kopt check   b against kernel ref
#pragma kopt reference ref block 1 grid N
#pragma kopt metric  gbs = 8*N / time_ns
// fake: out 1 = copy 0
// fake: time 5000
// fake: add BM 300
// fake: when BM=64,BN=16 crash
// fake: when BM=16,BN=16 wrong
// fake: when BM=32,BN=16 compile_error "no such type"
kernel void copy(global const float *a, global float *b) {}
kernel void ref(global const float *a, global float *b) {}
