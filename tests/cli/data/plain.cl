// SPDX-License-Identifier: MIT
#pragma kopt kernel  plain
#pragma kopt param   BM {1,2,3}  BN {1..4}
#pragma kopt require BM + BN != 4
#pragma kopt block   BM
#pragma kopt grid    1
#pragma kopt arg     a f32[64] out
kernel void plain(global float *a) {}
