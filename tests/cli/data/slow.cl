// SPDX-License-Identifier: MIT
// 400 configurations, each of which takes a moment to compile.
#pragma kopt kernel  slow
#pragma kopt problem N
#pragma kopt param   A {1..20}  B {1..20}
#pragma kopt block   A
#pragma kopt grid    ceildiv(N,A)
#pragma kopt arg     a f32[N] normal   b f32[N] out
#pragma kopt check   b against kernel ref
#pragma kopt reference ref block 1 grid N
// fake: out 1 = copy 0
// fake: time 5000
// fake: add A 100
// fake: compile_slow 30
kernel void slow(global const float *a, global float *b) {}
kernel void ref(global const float *a, global float *b) {}
