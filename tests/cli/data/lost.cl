// SPDX-License-Identifier: MIT
// For the fake device: it is unplugged at one of the last configurations.
#pragma kopt kernel  lost
#pragma kopt problem N
#pragma kopt param   A {1..12}
#pragma kopt default A=1
#pragma kopt block   A
#pragma kopt grid    ceildiv(N,A)
#pragma kopt arg     a f32[N] normal   b f32[N] out
#pragma kopt check   b against kernel ref
#pragma kopt reference ref block 1 grid N
// fake: out 1 = copy 0
// fake: time 5000
// fake: when A=9 lost
kernel void lost(global const float *a, global float *b) {}
kernel void ref(global const float *a, global float *b) {}
