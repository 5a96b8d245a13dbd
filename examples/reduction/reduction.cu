/* SPDX-License-Identifier: MIT */
/* *sum = x[0] + .. + x[N-1] in one launch.
 *
 * Every block sums its part, writes it to `partial` and counts itself in `arrived`; the block
 * that arrives last sums the parts. The order of additions does not depend on who that is: the
 * same input gives the same bits. Plain CUDA C: the macros below have defaults. */
#pragma kopt kernel  reduction
#pragma kopt problem N
#pragma kopt param   THREADS {64,128,256,512,1024}
#pragma kopt param   PER_SM {1,2,4,8,16,32}
#pragma kopt param   VEC {1,2,4}
#pragma kopt param   UNROLL {1,2,4,8}
#pragma kopt param   SHUFFLE {0,1}
#pragma kopt param   CHUNK {0,1}
#pragma kopt param   STREAM {0,1}
#pragma kopt default THREADS=256 PER_SM=8 VEC=1 UNROLL=1 SHUFFLE=0 CHUNK=0 STREAM=0

#pragma kopt let     BLOCKS = PER_SM * device.compute_units

#pragma kopt require THREADS <= device.max_threads
#pragma kopt require BLOCKS * THREADS * VEC * UNROLL >= 16384 : "longer chains of additions would lose too many digits"
#pragma kopt require BLOCKS * THREADS <= 2 * N               : "most threads would have nothing to add"

#pragma kopt block   THREADS
#pragma kopt grid    BLOCKS
#pragma kopt arg     x f32[N] normal  partial f32[32*device.compute_units] out
#pragma kopt arg     arrived u32[1] inout constant(0)  sum f32[1] out  N
#pragma kopt reference naive_reduction block 256 grid 1
/* x is N(0,1). Each of c >= 16384 chains adds N/c numbers, and the rounding errors of all make
 * a random walk of about 2^-24 * N / sqrt(12 c). The bound is seven of those and, up to some
 * hundred million numbers, still small beside one number that is left out. */
#pragma kopt check   sum against kernel naive_reduction rtol 1e-6 atol 1e-5 + 1e-9 * N
#pragma kopt metric  GBps = 4.0 * N / time_ns

#ifndef THREADS
#define THREADS 256
#define PER_SM 8
#define VEC 1
#define UNROLL 1
#define SHUFFLE 0
#define CHUNK 0
#define STREAM 0
#define BLOCKS ((int)gridDim.x)
#endif

#if VEC == 4
typedef float4 vec_t;
#elif VEC == 2
typedef float2 vec_t;
#else
typedef float vec_t;
#endif

/* STREAM asks the caches not to keep what is read only once. */
#if STREAM
#define LOAD(p) __ldcs(p)
#else
#define LOAD(p) (*(p))
#endif

static __device__ __forceinline__ void add(float *a, vec_t v)
{
#if VEC == 1
    a[0] += v;
#else
    a[0] += v.x;
    a[1] += v.y;
#if VEC == 4
    a[2] += v.z;
    a[3] += v.w;
#endif
#endif
}

/* The sum of `value` over the block, for thread 0. All threads call it. */
static __device__ __forceinline__ float block_sum(float value, float *scratch)
{
    int tid = threadIdx.x;
#if SHUFFLE
    for (int d = 16; d > 0; d /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, d);
    if (tid % 32 == 0)
        scratch[tid / 32] = value;
    __syncthreads();
    if (tid < 32) {
        value = tid < THREADS / 32 ? scratch[tid] : 0.0f;
        for (int d = THREADS / 64; d > 0; d /= 2)
            value += __shfl_xor_sync(0xffffffffu, value, d);
    }
#else
    scratch[tid] = value;
    for (int d = THREADS / 2; d > 0; d /= 2) {
        __syncthreads();
        if (tid < d)
            scratch[tid] = value = value + scratch[tid + d];
    }
#endif
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    reduction(const float *__restrict__ x, float *partial, unsigned *arrived, float *sum, int N)
{
    __shared__ float scratch[SHUFFLE ? 32 : THREADS];
    __shared__ bool last;
    unsigned tid = threadIdx.x, vectors = (unsigned)N / VEC;
    const vec_t *v = (const vec_t *)x;

#if CHUNK /* a block reads one piece of the input, or all blocks read side by side */
    unsigned piece = (vectors + BLOCKS - 1) / BLOCKS, step = THREADS;
    unsigned i = blockIdx.x * piece + tid, end = min(blockIdx.x * piece + piece, vectors);
#else
    unsigned step = BLOCKS * THREADS;
    unsigned i = blockIdx.x * THREADS + tid, end = vectors;
#endif
    float acc[UNROLL][VEC] = {};
    for (; i + (UNROLL - 1) * step < end; i += UNROLL * step) {
        vec_t a[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            a[u] = LOAD(v + i + u * step);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            add(acc[u], a[u]);
    }
#pragma unroll 1
    for (; i < end; i += step)
        add(acc[0], LOAD(v + i));
    if (blockIdx.x == 0 && tid < (unsigned)N % VEC)
        acc[0][0] += x[vectors * VEC + tid];

    float value = 0;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int q = 0; q < VEC; q++)
            value += acc[u][q];
    value = block_sum(value, scratch);

    if (tid == 0) {
        partial[blockIdx.x] = value;
        __threadfence(); /* the part is there for all before the block is counted */
        last = atomicAdd(arrived, 1u) == BLOCKS - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    value = 0;
#pragma unroll 1
    for (unsigned b = tid; b < BLOCKS; b += THREADS)
        value += __ldcg(partial + b);
    value = block_sum(value, scratch);
    if (tid == 0) {
        *sum = value;
        *arrived = 0; /* ready for another launch */
    }
}

/* One block, summed in double precision. */
extern "C" __global__ void naive_reduction(const float *__restrict__ x, float *partial,
                                           unsigned *arrived, float *sum, int N)
{
    __shared__ double all[256];
    double value = 0;
    for (unsigned i = threadIdx.x; i < (unsigned)N; i += 256)
        value += x[i];
    all[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < 256; i++)
        value += all[i];
    *sum = (float)value;
}
