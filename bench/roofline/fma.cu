/* SPDX-License-Identifier: MIT */
/* The rate of fused multiply-adds in single precision: each of ITEMS threads does FMAS of them,
 * in CHAINS chains that do not wait for one another.
 *
 * With s = s/2 + 1/2 each chain ends at 1, whatever it began with: FMAS / CHAINS of them, 64 or
 * more, leave nothing of it. */
#pragma kopt kernel  fma_rate
#pragma kopt problem ITEMS FMAS=2048
#pragma kopt param   THREADS {64,128,256,512,1024}
#pragma kopt param   CHAINS {1,2,4,8,16,32}
#pragma kopt param   UNROLL {1,4,16}
#pragma kopt default THREADS=256 CHAINS=8 UNROLL=4

#pragma kopt let     ROUNDS = FMAS / CHAINS

#pragma kopt require THREADS <= device.max_threads && ITEMS % THREADS == 0
#pragma kopt require FMAS % CHAINS == 0 && ROUNDS % UNROLL == 0
#pragma kopt require ROUNDS >= 64 : "the chains must come to their end"

#pragma kopt block   THREADS
#pragma kopt grid    ITEMS / THREADS
#pragma kopt arg     x f32[ITEMS] uniform(0, 2)  y f32[ITEMS] out  half_ f32 = 0.5
#pragma kopt check   y against constant(1) rtol 0 atol 1e-6
#pragma kopt metric  gflops = 2.0 * ITEMS * FMAS / time_ns

#ifndef THREADS
#define THREADS 256
#define CHAINS 8
#define UNROLL 4
#define ROUNDS 256
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    fma_rate(const float *__restrict__ x, float *__restrict__ y, float half_)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    float s[CHAINS], all = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        s[c] = x[i] + c;
#pragma unroll UNROLL
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            s[c] = fmaf(s[c], half_, half_);
    }
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        all += s[c];
    y[i] = all / CHAINS;
}
