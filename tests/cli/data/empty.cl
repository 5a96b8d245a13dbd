// SPDX-License-Identifier: MIT
#pragma kopt kernel  empty
#pragma kopt param   BM {16,32}
#pragma kopt require BM >= 16
#pragma kopt require BM > 32 : "nothing is that large"
#pragma kopt require BM % 2 == 0
#pragma kopt block   BM
#pragma kopt grid    1
#pragma kopt arg     a f32[64] out
kernel void empty(global float *a) {}
