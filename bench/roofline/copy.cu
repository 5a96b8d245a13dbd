/* SPDX-License-Identifier: MIT */
/* y = x, N floats: the bandwidth that a kernel which reads and writes can reach. A block copies
 * a piece of PER x THREADS vectors of VEC floats, its threads side by side. */
#pragma kopt kernel  copy
#pragma kopt problem N
#pragma kopt param   THREADS {64,128,256,512,1024}
#pragma kopt param   VEC {1,2,4}
#pragma kopt param   PER {1,2,4,8,16}
#pragma kopt param   STREAM {0,1}
#pragma kopt default THREADS=256 VEC=4 PER=4 STREAM=0

#pragma kopt require THREADS <= device.max_threads
#pragma kopt require N % VEC == 0 : "only whole vectors are copied"

#pragma kopt block   THREADS
#pragma kopt grid    ceildiv(N, THREADS * VEC * PER)
#pragma kopt arg     x f32[N] normal  y f32[N] out  N
#pragma kopt reference plain block 256 grid ceildiv(N, 256)
#pragma kopt check   y against kernel plain rtol 0 atol 0
#pragma kopt metric  GBps = 2.0 * 4 * N / time_ns

#ifndef THREADS
#define THREADS 256
#define VEC 4
#define PER 4
#define STREAM 0
#endif

#if VEC == 1
typedef float vec;
#elif VEC == 2
typedef float2 vec;
#else
typedef float4 vec;
#endif

#if STREAM /* past the caches, where nothing is read twice */
#define LOAD(p) __ldcs(p)
#define STORE(p, v) __stcs(p, v)
#else
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    copy(const vec *__restrict__ x, vec *__restrict__ y, int N)
{
    int first = blockIdx.x * (THREADS * PER) + threadIdx.x, end = N / VEC;
    vec v[PER];
    /* All loads are on their way before the first store. */
#pragma unroll
    for (int p = 0; p < PER; p++)
        if (first + p * THREADS < end)
            v[p] = LOAD(x + first + p * THREADS);
#pragma unroll
    for (int p = 0; p < PER; p++)
        if (first + p * THREADS < end)
            STORE(y + first + p * THREADS, v[p]);
}

extern "C" __global__ void plain(const float *x, float *y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        y[i] = x[i];
}
