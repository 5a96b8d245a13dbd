/* SPDX-License-Identifier: MIT */
/* C = A B in single precision, all row-major: A is M x K, B is K x N, C is M x N.
 *
 * A work-group computes a BM x BN tile of C, a work-item TM x TN of it, in vectors of VW
 * columns. Tiles of A and B pass through local memory or are read where they lie (LOCAL_A,
 * LOCAL_B): a GPU needs the former, a CPU may do without. Plain OpenCL C: the macros below have
 * defaults. */
#pragma kopt kernel  gemm
#pragma kopt problem M N K
#pragma kopt param   BM {16,32,64,128}  BN {16,32,64,128}  BK {16,32,64,128,256}
#pragma kopt param   TM {2,4,8}  TN {2,4,8,16,32}
#pragma kopt param   VW {1,4,8,16}
#pragma kopt param   AV {1,4}
#pragma kopt param   LOCAL_A {0,1}  LOCAL_B {0,1}
#pragma kopt param   PAD {0,4}
#pragma kopt param   UNROLL {1,4}
#pragma kopt default BM=64 BN=64 BK=16 TM=4 TN=4 VW=4 AV=1 LOCAL_A=1 LOCAL_B=1 PAD=0 UNROLL=1

#pragma kopt let     THREADS = (BM / TM) * (BN / TN)
/* The widest load that never splits a row of A. */
#pragma kopt let     KW = K % 4 == 0 ? 4 : 1
#pragma kopt let     SMEM = 4 * (LOCAL_A * BM * (BK + PAD) + LOCAL_B * BK * BN)

#pragma kopt require BM % TM == 0 && BN % TN == 0 && TN % VW == 0 && TN <= 8 * VW
#pragma kopt require BN / TN <= device.max_block_x && BM / TM <= device.max_block_y && THREADS <= device.max_threads
#pragma kopt require N % VW == 0                         : "a vector must not cross the end of a row of B"
#pragma kopt require SMEM <= device.shared_bytes         : "the tiles must fit in local memory"
#pragma kopt require AV == 1 || KW == 4 || LOCAL_A + LOCAL_B == 2 : "vectors along K need whole vectors, which tiles in local memory are filled up to"
#pragma kopt require LOCAL_A == 1 || PAD == 0            : "without a tile of A there is nothing to pad"
#pragma kopt require LOCAL_A + LOCAL_B > 0 || BK == 16   : "BK is the depth of the tiles in local memory"

#pragma kopt block   BN/TN BM/TM
#pragma kopt grid    ceildiv(N, BN) ceildiv(M, BM)
#pragma kopt arg     A f32[M*K] normal  B f32[K*N] normal  C f32[M*N] out  M N K
/* The inputs are N(0,1), so an element of C has the standard deviation sqrt(K). Rounding after
 * each of K additions gives a random walk of about 2^-24 * K / sqrt(2) at most; the bound is
 * some six of those. */
#pragma kopt check   C against gemm_ref.c:gemm_ref rtol 1e-5 atol 2.5e-7 * K
#pragma kopt metric  gflops = 2.0 * M * N * K / time_ns

#ifndef BM
#define BM 64
#define BN 64
#define BK 16
#define TM 4
#define TN 4
#define VW 4 /* N must then be a multiple of 4 */
#define AV 1
#define LOCAL_A 1
#define LOCAL_B 1
#define PAD 0
#define UNROLL 1
#define KW 1
#define THREADS ((BM / TM) * (BN / TN))
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#else
typedef JOIN(float, VW) vec;
#endif
#if AV == 1
typedef float avec;
#else
typedef float4 avec;
#endif
#if KW == 1
typedef float kvec;
#else
typedef float4 kvec;
#endif

#define LX (BN / TN)
#define LY (BM / TM)
#define LDA (BK + PAD)

/* A work-item's values are variables of their own, sum0_0 to sum7_7, and not arrays: so they
 * stay in registers with every compiler, and there are no inner loops to unroll. ROWS(F) is
 * F(i) for each of its rows, COLS(F, i) is F(i, j) for each of its vectors along N. */
#if TM == 1
#define ROWS(F) F(0)
#elif TM == 2
#define ROWS(F) F(0) F(1)
#elif TM == 4
#define ROWS(F) F(0) F(1) F(2) F(3)
#elif TM == 8
#define ROWS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#endif
#if TN == VW
#define COLS(F, i) F(i, 0)
#elif TN == 2 * VW
#define COLS(F, i) F(i, 0) F(i, 1)
#elif TN == 4 * VW
#define COLS(F, i) F(i, 0) F(i, 1) F(i, 2) F(i, 3)
#elif TN == 8 * VW
#define COLS(F, i) F(i, 0) F(i, 1) F(i, 2) F(i, 3) F(i, 4) F(i, 5) F(i, 6) F(i, 7)
#endif

/* Rows lie LY apart and vectors LX vectors apart: neighbours read neighbouring vectors. */
#define ROW(i) (ly + (i) * LY)
#define COL(j) ((lx + (j) * LX) * VW)

#define ZERO(i, j) vec sum##i##_##j = (vec)(0.0f);
#define ZERO_ROW(i) COLS(ZERO, i)

#if LOCAL_A
#define POINT_A(i) __local const float *A##i = As + ROW(i) * LDA;
#define LOAD_A(i) avec a##i = *(__local const avec *)(A##i + k);
#else
#define POINT_A(i) __global const float *A##i = A + (size_t)min(m0 + ROW(i), M - 1) * K + k0;
#define LOAD_A(i) avec a##i = *(__global const avec *)(A##i + k);
#endif
#if LOCAL_B
#define POINT_B(i, j) __local const float *B##j = Bs + COL(j);
#define LOAD_B(q, j) vec b##j = *(__local const vec *)(B##j + (k + q) * BN);
#else
#define POINT_B(i, j) \
    __global const float *B##j = B + (size_t)k0 * N + (n0 + COL(j) < N ? n0 + COL(j) : 0);
#define LOAD_B(q, j) vec b##j = *(__global const vec *)(B##j + (size_t)(k + q) * N);
#endif

/* Column k + q of A's tile times row k + q of B's. */
#define ADD(i, j) sum##i##_##j += PART(a##i) * b##j;
#define ADD_ROW(i) COLS(ADD, i)
#define OUTER(q)        \
    {                   \
        COLS(LOAD_B, q) \
        ROWS(ADD_ROW)   \
    }

#define STORE(i, j)                         \
    if (m0 + ROW(i) < M && n0 + COL(j) < N) \
        *(__global vec *)(C + (size_t)(m0 + ROW(i)) * N + n0 + COL(j)) = sum##i##_##j;
#define STORE_ROW(i) COLS(STORE, i)

__kernel void gemm(__global const float *restrict A, __global const float *restrict B,
                   __global float *restrict C, int M, int N, int K)
{
    int lx = get_local_id(0), ly = get_local_id(1);
    int m0 = get_group_id(1) * BM, n0 = get_group_id(0) * BN;
    ROWS(ZERO_ROW)
#if LOCAL_A
    __local float As[BM * LDA] __attribute__((aligned(64)));
#endif
#if LOCAL_B
    __local float Bs[BK * BN] __attribute__((aligned(64)));
#endif
#if LOCAL_A || LOCAL_B
    for (int k0 = 0; k0 < K; k0 += BK) {
        int depth = min(BK, K - k0);
        /* What lies outside the matrices is zero in the tiles. */
#if LOCAL_A
        for (int e = ly * LX + lx; e < BM * BK / KW; e += THREADS) {
            int r = e / (BK / KW), k = e % (BK / KW) * KW;
            kvec v = (kvec)(0.0f);
            if (m0 + r < M && k < depth)
                v = *(__global const kvec *)(A + (size_t)(m0 + r) * K + k0 + k);
            *(__local kvec *)(As + r * LDA + k) = v;
        }
#endif
#if LOCAL_B
        for (int e = ly * LX + lx; e < BK * BN / VW; e += THREADS) {
            int k = e / (BN / VW), c = e % (BN / VW) * VW;
            vec v = (vec)(0.0f);
            if (k < depth && n0 + c < N)
                v = *(__global const vec *)(B + (size_t)(k0 + k) * N + n0 + c);
            *(__local vec *)(Bs + k * BN + c) = v;
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
#else
    {
        int k0 = 0, depth = K;
#endif
        ROWS(POINT_A)
        COLS(POINT_B, )
        /* Work-items whose tile begins outside C have nothing to do. (Besides, a bound that
         * depends on the work-item keeps PoCL from running this loop in lockstep across the
         * group, with all sums in memory.) */
        int end = m0 + ROW(0) < M && n0 + COL(0) < N ? depth : 0;
#pragma unroll UNROLL
        for (int k = 0; k < end; k += AV) {
            ROWS(LOAD_A)
#if AV == 1
#define PART(a) a
            OUTER(0)
#else
#define PART(a) a.x
            OUTER(0)
#undef PART
#define PART(a) a.y
            OUTER(1)
#undef PART
#define PART(a) a.z
            OUTER(2)
#undef PART
#define PART(a) a.w
            OUTER(3)
#endif
        }
#if LOCAL_A || LOCAL_B
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    ROWS(STORE_ROW)
}
