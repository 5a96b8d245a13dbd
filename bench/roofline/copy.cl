/* SPDX-License-Identifier: MIT */
/* y = x, N floats: the bandwidth that a kernel which reads and writes can reach. A work-group
 * copies a piece of PER x THREADS vectors of VW floats, its work-items side by side. */
#pragma kopt kernel  copy
#pragma kopt problem N
#pragma kopt param   THREADS {1,4,16,64,256,1024}
#pragma kopt param   VW {1,2,4,8,16}
#pragma kopt param   PER {1,2,4,8,16,64,256,1024}
#pragma kopt default THREADS=256 VW=4 PER=4

#pragma kopt require THREADS <= device.max_threads && THREADS <= device.max_block_x
#pragma kopt require N % VW == 0                : "only whole vectors are copied"
#pragma kopt require THREADS * VW * PER >= 1024 : "groups so small cost more than what they copy"
#pragma kopt require THREADS * VW * PER <= 65536

#pragma kopt block   THREADS
#pragma kopt grid    ceildiv(N, THREADS * VW * PER)
#pragma kopt arg     x f32[N] normal  y f32[N] out  N
#pragma kopt reference plain block 64 grid ceildiv(N, 64)
#pragma kopt check   y against kernel plain rtol 0 atol 0
#pragma kopt metric  GBps = 2.0 * 4 * N / time_ns

#ifndef THREADS
#define THREADS 256
#define VW 4
#define PER 4
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#else
typedef JOIN(float, VW) vec;
#endif

__kernel void copy(__global const vec *restrict x, __global vec *restrict y, int N)
{
    int first = get_group_id(0) * (THREADS * PER) + get_local_id(0);
    int end = min(first + THREADS * PER, N / VW);
    for (int i = first; i < end; i += THREADS)
        y[i] = x[i];
}

__kernel void plain(__global const float *x, __global float *y, int N)
{
    int i = get_global_id(0);
    if (i < N)
        y[i] = x[i];
}
