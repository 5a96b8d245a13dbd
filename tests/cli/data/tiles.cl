// SPDX-License-Identifier: MIT
// For the fake device, with models that are trained on bin/tiles_csv: as there, BM=32 is the
// fastest from M = 96 on and BM=64 fails.
#pragma kopt kernel  tiles
#pragma kopt problem M N
#pragma kopt param   BM {8,16,32,64}  BN {8,16,32,64}  SPLIT {1,2}  UNROLL {1}
#pragma kopt require BM <= M && BN <= N
#pragma kopt require BM*BN <= 1024 : "a tile has at most 1024 elements"
#pragma kopt default BM=8 BN=8 SPLIT=1 UNROLL=1
#pragma kopt block   BM
#pragma kopt grid    ceildiv(M,BM)
#pragma kopt arg     a f32[M*N] out
// fake: time 40000
// fake: add BM -400
// fake: add BN 100
// fake: when BM=64 crash
kernel void tiles(global float *a) {}
