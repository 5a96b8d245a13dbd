// SPDX-License-Identifier: MIT
#pragma kopt kernel  rules
#pragma kopt problem M N=64
#pragma kopt param   BM {16,32,64,128}  BN {16,32,64,128}  TM {1,2,4}  KIND {"row","column"}  FAST {true,false}
#pragma kopt require BM % TM == 0
#pragma kopt require BM * BN <= device.max_threads * TM : "a thread computes TM results"
#pragma kopt require KIND == "row" || !FAST
#pragma kopt block   BM/TM BN
#pragma kopt grid    ceildiv(M,BM) ceildiv(N,BN)
#pragma kopt arg     a f32[M*N] normal   b f32[M*N] out
extern "C" __global__ void rules(const float *a, float *b) {}
