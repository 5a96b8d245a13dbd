// SPDX-License-Identifier: MIT
#pragma kopt kernel  huge
#pragma kopt param   P1 {1,2,3,4}
#pragma kopt param   P2 {1,2,3,4}
#pragma kopt param   P3 {1,2,3,4}
#pragma kopt param   P4 {1,2,3,4}
#pragma kopt param   P5 {1,2,3,4}
#pragma kopt param   P6 {1,2,3,4}
#pragma kopt param   P7 {1,2,3,4}
#pragma kopt param   P8 {1,2,3,4}
#pragma kopt param   P9 {1,2,3,4}
#pragma kopt param   P10 {1,2,3,4}
#pragma kopt param   P11 {1,2,3,4}
#pragma kopt param   P12 {1,2,3,4}
#pragma kopt param   P13 {1,2,3,4}
#pragma kopt param   P14 {1,2,3,4}
#pragma kopt param   P15 {1,2,3,4}
#pragma kopt param   P16 {1,2,3,4}
#pragma kopt param   P17 {1,2,3,4}
#pragma kopt param   P18 {1,2,3,4}
#pragma kopt param   P19 {1,2,3,4}
#pragma kopt param   P20 {1,2,3,4}
#pragma kopt param   P21 {1,2,3,4}
#pragma kopt param   P22 {1,2,3,4}
#pragma kopt param   P23 {1,2,3,4}
#pragma kopt param   P24 {1,2,3,4}
#pragma kopt param   P25 {1,2,3,4}
#pragma kopt param   P26 {1,2,3,4}
#pragma kopt param   P27 {1,2,3,4}
#pragma kopt param   P28 {1,2,3,4}
#pragma kopt param   P29 {1,2,3,4}
#pragma kopt param   P30 {1,2,3,4}
#pragma kopt require P1 <= P2
#pragma kopt block   P1
#pragma kopt grid    1
#pragma kopt arg     a f32[64] out
kernel void huge(global float *a) {}
