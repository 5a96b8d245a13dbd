/* SPDX-License-Identifier: MIT */
/* The rate of fused multiply-adds in single precision: each of ITEMS work-items does FMAS of
 * them, in CHAINS chains of vectors of VW floats that do not wait for one another.
 *
 * With s = s/2 + 1/2 each chain ends at 1, whatever it began with: FMAS / (CHAINS * VW) of them,
 * 64 or more, leave nothing of it. */
#pragma kopt kernel  fma_rate
#pragma kopt problem ITEMS FMAS=8192
#pragma kopt param   THREADS {1,4,16,32,64,128,256}
#pragma kopt param   CHAINS {1,2,4,8,16}
#pragma kopt param   VW {1,2,4,8,16}
#pragma kopt param   UNROLL {1,4,8}
#pragma kopt default THREADS=64 CHAINS=8 VW=4 UNROLL=4

#pragma kopt let     ROUNDS = FMAS / (CHAINS * VW)

#pragma kopt require THREADS <= device.max_threads && THREADS <= device.max_block_x
#pragma kopt require ITEMS % THREADS == 0
#pragma kopt require FMAS % (CHAINS * VW) == 0 && ROUNDS % UNROLL == 0
#pragma kopt require ROUNDS >= 64 : "the chains must come to their end"

#pragma kopt block   THREADS
#pragma kopt grid    ITEMS / THREADS
#pragma kopt arg     x f32[ITEMS] uniform(0, 2)  y f32[ITEMS] out  half_ f32 = 0.5
#pragma kopt check   y against constant(1) rtol 0 atol 1e-6
#pragma kopt metric  gflops = 2.0 * ITEMS * FMAS / time_ns

#ifndef THREADS
#define THREADS 64
#define CHAINS 8
#define VW 4
#define UNROLL 4
#define ROUNDS 256
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#else
typedef JOIN(float, VW) vec;
#endif

/* The chains are variables of their own: so they stay in registers with every compiler. */
#define EACH_1(M) M(0)
#define EACH_2(M) EACH_1(M) M(1)
#define EACH_4(M) EACH_2(M) M(2) M(3)
#define EACH_8(M) EACH_4(M) M(4) M(5) M(6) M(7)
#define EACH_16(M) EACH_8(M) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#define EACH(M) JOIN(EACH_, CHAINS)(M)
#define BEGIN(c) vec s##c = (vec)(from + c) + spread;
#define STEP(c) s##c = fma(s##c, h, h);
#define PLUS(c) +s##c

/* The mean of a vector's elements. */
#define SUM_1(v) (v)
#define SUM_2(v) ((v).s0 + (v).s1)
#define SUM_4(v) (SUM_2((v).lo) + SUM_2((v).hi))
#define SUM_8(v) (SUM_4((v).lo) + SUM_4((v).hi))
#define SUM_16(v) (SUM_8((v).lo) + SUM_8((v).hi))
#define SPREAD_1 (0.0f)
#define SPREAD_2 (0.0f, 0.1f)
#define SPREAD_4 (0.0f, 0.1f, 0.2f, 0.3f)
#define SPREAD_8 (0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f)
#define SPREAD_16                                                                           \
    (0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 1.1f, 1.2f, 1.3f, 1.4f, \
     1.5f)

__kernel void fma_rate(__global const float *restrict x, __global float *restrict y,
                       float half_)
{
    size_t i = get_global_id(0);
    float from = x[i];
    vec h = (vec)(half_), spread = (vec)JOIN(SPREAD_, VW);
    EACH(BEGIN)
#pragma unroll UNROLL
    for (int r = 0; r < ROUNDS; r++) {
        EACH(STEP)
    }
    vec all = EACH(PLUS);
    y[i] = JOIN(SUM_, VW)(all) / (CHAINS * VW);
}
