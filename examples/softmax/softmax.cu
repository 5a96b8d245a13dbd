/* SPDX-License-Identifier: MIT */
/* Each row of y is the softmax of that row of x: exp(x - max) / sum of exp(x - max), R rows of
 * C.
 *
 * TX threads share a row and a block works on TY rows. Between its passes a row is read again
 * (KEEP=0), held in registers (1) or in shared memory (2). With ONLINE=1 the maximum and the
 * sum are found in one pass: when a larger maximum turns up, the sum is scaled to it. Plain
 * CUDA C: the macros below have defaults. */
#pragma kopt kernel  softmax
#pragma kopt problem R C
#pragma kopt param   TX {8,16,32,64,128,256,512,1024}  TY {1,2,4,8,16}
#pragma kopt param   VEC {1,2,4}
#pragma kopt param   KEEP {0,1,2}
#pragma kopt param   ONLINE {0,1}
#pragma kopt param   FAST {0,1}
#pragma kopt param   MIN_BLOCKS {1,2,4}
#pragma kopt default TX=256 TY=1 VEC=1 KEEP=0 ONLINE=0 FAST=0 MIN_BLOCKS=1

#pragma kopt let     COLS = C
#pragma kopt let     ITEMS = ceildiv(C, TX * VEC)
#pragma kopt let     SMEM = KEEP == 2 ? 4 * TY * align(C, 4) : 0

#pragma kopt require C % VEC == 0                                   : "a vector must not cross the end of a row"
#pragma kopt require 64 <= TX * TY && TX * TY <= min(1024, device.max_threads)
#pragma kopt require MIN_BLOCKS * TX * TY <= 2048
#pragma kopt require KEEP != 1 || MIN_BLOCKS * TX * TY * ITEMS * VEC <= 32768 && ITEMS * VEC <= 64 : "a thread's part of a row must fit in registers"
#pragma kopt require KEEP == 0 || ONLINE == 0                       : "a row that is kept costs nothing to pass over again"
#pragma kopt require TX == 8 || (TX / 2) * VEC < C                  : "half of the threads would have nothing to do"
#pragma kopt require SMEM <= device.shared_bytes                    : "the rows must fit in shared memory"

#pragma kopt block   TX TY
#pragma kopt grid    ceildiv(R, TY)
#pragma kopt shared  SMEM
/* Around 100, exp() alone would overflow: a kernel that forgets the maximum is found out. */
#pragma kopt arg     x f32[R*C] normal(100, 2)  y f32[R*C] out  R C
/* x - max is exact for such numbers, exp() and the division are right within some units of
 * 2^-23, the fast ones within some 2^-19; the rounding of C additions to the sum is a random
 * walk of 2^-24 * sqrt(C). */
#pragma kopt check   y against softmax_ref.c:softmax_ref rtol 1e-5 + 2e-7 * sqrt(C) atol 0
#pragma kopt metric  GBps = 2.0 * 4 * R * C / time_ns

#ifndef TX
#define TX 256
#define TY 1
#define VEC 1
#define KEEP 0
#define ONLINE 0
#define FAST 0
#define MIN_BLOCKS 1
#define COLS 4096 /* only KEEP > 0 needs it; C must then be the same */
#define ITEMS ((COLS + TX * VEC - 1) / (TX * VEC))
#endif

#define LOWEST -3.4e38f /* what -infinity would be, but its difference to itself is 0 */

#if VEC == 4
typedef float4 vec_t;
#elif VEC == 2
typedef float2 vec_t;
#else
typedef float vec_t;
#endif

union lanes {
    vec_t v;
    float f[VEC];
};

static __device__ __forceinline__ float exponential(float v)
{
    return FAST ? __expf(v) : expf(v);
}

static __device__ __forceinline__ float vec_max(const lanes &a)
{
    float m = a.f[0];
#pragma unroll
    for (int q = 1; q < VEC; q++)
        m = fmaxf(m, a.f[q]);
    return m;
}

/* Replaces a by exp(a - max) and returns the sum. */
static __device__ __forceinline__ float vec_exp(lanes &a, float max)
{
    float s = 0;
#pragma unroll
    for (int q = 0; q < VEC; q++)
        s += a.f[q] = exponential(a.f[q] - max);
    return s;
}

/* Over the TX threads of a row; all get the result, and all threads of the block call it.
 * OP(a, b) combines two values of type T; each call has a scratch of its own. */
#define ROW_REDUCE(T, value, SHUFFLE, OP)                                        \
    {                                                                            \
        _Pragma("unroll") for (int d = (TX < 32 ? TX : 32) / 2; d > 0; d /= 2)   \
        {                                                                        \
            T other = SHUFFLE(value, d);                                         \
            value = OP(value, other);                                            \
        }                                                                        \
        if (TX > 32) {                                                           \
            __shared__ T scratch[TY][TX > 32 ? TX / 32 : 1];                     \
            if (threadIdx.x % 32 == 0)                                           \
                scratch[threadIdx.y][threadIdx.x / 32] = value;                  \
            __syncthreads();                                                     \
            value = scratch[threadIdx.y][threadIdx.x % (TX > 32 ? TX / 32 : 1)]; \
            _Pragma("unroll") for (int d = TX / 64; d > 0; d /= 2)               \
            {                                                                    \
                T other = SHUFFLE(value, d);                                     \
                value = OP(value, other);                                        \
            }                                                                    \
        }                                                                        \
    }

#define PLUS(a, b) ((a) + (b))
#define SHUFFLE_FLOAT(v, d) __shfl_xor_sync(0xffffffffu, v, d)

/* The sum so far and the maximum it is relative to. */
struct part {
    float max, sum;
};

#if ONLINE
static __device__ __forceinline__ part join(part a, part b)
{
    float m = fmaxf(a.max, b.max);
    part r = {m, a.sum * exponential(a.max - m) + b.sum * exponential(b.max - m)};
    return r;
}

static __device__ __forceinline__ part shuffle_part(part v, int d)
{
    part r = {SHUFFLE_FLOAT(v.max, d), SHUFFLE_FLOAT(v.sum, d)};
    return r;
}
#endif

/* For each vector of the row that is this thread's; `i` counts them, c is its first column. */
#if KEEP == 1
#define EACH_VECTOR                                                                           \
    _Pragma("unroll") for (int i = 0, c = threadIdx.x * VEC; i < ITEMS; i++, c += TX * VEC)   \
        if (COLS % (TX * VEC) == 0 || c < COLS)
#else
#define EACH_VECTOR for (int i = 0, c = threadIdx.x * VEC; c < C; i++, c += TX * VEC)
#endif

extern "C" __global__ void __launch_bounds__(TX * TY, MIN_BLOCKS)
    softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    int row = blockIdx.x * TY + threadIdx.y;
    /* Rows beyond the last one work along on its numbers and store nothing. */
    bool inside = TY == 1 || row < R;
    const float *from = x + (size_t)(inside ? row : R - 1) * C;
    float *to = y + (size_t)row * C;
    part p = {LOWEST, 0};

#if KEEP == 0
#define KEPT(a) lanes a = {*(const vec_t *)(from + c)};
#elif KEEP == 1
    lanes kept[ITEMS];
#define KEPT(a) lanes &a = kept[i];
#else
    extern __shared__ float4 rows[];
    float *kept = (float *)rows + threadIdx.y * ((COLS + 3) / 4 * 4);
#define KEPT(a) lanes &a = *(lanes *)(kept + c);
#endif

#if ONLINE
    EACH_VECTOR
    {
        lanes a = {*(const vec_t *)(from + c)};
        float m = fmaxf(p.max, vec_max(a));
        p.sum = p.sum * exponential(p.max - m) + vec_exp(a, m);
        p.max = m;
    }
    ROW_REDUCE(part, p, shuffle_part, join)
#else
    EACH_VECTOR
    {
        lanes a = {*(const vec_t *)(from + c)};
        p.max = fmaxf(p.max, vec_max(a));
#if KEEP == 1
        kept[i] = a;
#elif KEEP == 2
        *(vec_t *)(kept + c) = a.v;
#endif
    }
    ROW_REDUCE(float, p.max, SHUFFLE_FLOAT, fmaxf)
    EACH_VECTOR
    {
        KEPT(a)
        p.sum += vec_exp(a, p.max);
    }
    ROW_REDUCE(float, p.sum, SHUFFLE_FLOAT, PLUS)
#endif
    float scale = 1.0f / p.sum;
    EACH_VECTOR
    {
        KEPT(a)
        lanes b = a;
        if (KEEP == 0)
            vec_exp(b, p.max);
#pragma unroll
        for (int q = 0; q < VEC; q++)
            b.f[q] *= scale;
        if (inside)
            *(vec_t *)(to + c) = b.v;
    }
}
