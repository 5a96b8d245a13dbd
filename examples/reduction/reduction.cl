/* SPDX-License-Identifier: MIT */
/* *sum = x[0] + .. + x[N-1] in one launch.
 *
 * Every work-group sums its part, writes it to `partial` and counts itself in `arrived`; the
 * group that arrives last sums the parts. The order of additions does not depend on who that
 * is: the same input gives the same bits. Plain OpenCL C: the macros below have defaults. */
#pragma kopt kernel  reduction
#pragma kopt problem N
#pragma kopt param   THREADS {1,4,16,32,64,128,256,512,1024}
#pragma kopt param   PER_CU {1,2,4,8,16,32}
#pragma kopt param   VW {1,2,4,8,16}
#pragma kopt param   UNROLL {1,2,4,8}
#pragma kopt param   CHUNK {0,1}
#pragma kopt default THREADS=256 PER_CU=8 VW=1 UNROLL=1 CHUNK=0

#pragma kopt let     GROUPS = PER_CU * device.compute_units

#pragma kopt require THREADS <= device.max_threads && THREADS <= device.max_block_x
#pragma kopt require GROUPS * THREADS * VW * UNROLL >= 256 : "longer chains of additions would lose too many digits"
#pragma kopt require GROUPS * THREADS <= 2 * N             : "most work-items would have nothing to add"

#pragma kopt block   THREADS
#pragma kopt grid    GROUPS
#pragma kopt arg     x f32[N] normal  partial f32[32*device.compute_units] out
#pragma kopt arg     arrived u32[1] inout constant(0)  sum f32[1] out  N
#pragma kopt reference naive_reduction block 256 grid 1
/* x is N(0,1). Each of c >= 256 chains adds N/c numbers, and the rounding errors of all make a
 * random walk of about 2^-24 * N / sqrt(12 c). The bound is nearly five of those and, up to
 * some ten million numbers, still small beside one number that is left out. */
#pragma kopt check   sum against kernel naive_reduction rtol 1e-6 atol 1e-5 + 5e-9 * N
#pragma kopt metric  GBps = 4.0 * N / time_ns

#ifndef THREADS
#define THREADS 256
#define PER_CU 8
#define VW 1
#define UNROLL 1
#define CHUNK 0
#define GROUPS ((uint)get_num_groups(0))
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#else
typedef JOIN(float, VW) vec;
#endif

/* Several sums of one work-item, so that additions need not wait for one another. */
#define EACH_1(M) M(0)
#define EACH_2(M) EACH_1(M) M(1)
#define EACH_4(M) EACH_2(M) M(2) M(3)
#define EACH_8(M) EACH_4(M) M(4) M(5) M(6) M(7)
#define EACH(M) JOIN(EACH_, UNROLL)(M)
#define ZERO(u) vec acc##u = (vec)(0.0f);
#define ADD(u) acc##u += v[i + u * step];
#define PLUS(u) +acc##u

/* The sum of a vector's elements. */
#define SUM_1(v) (v)
#define SUM_2(v) ((v).s0 + (v).s1)
#define SUM_4(v) (SUM_2((v).lo) + SUM_2((v).hi))
#define SUM_8(v) (SUM_4((v).lo) + SUM_4((v).hi))
#define SUM_16(v) (SUM_8((v).lo) + SUM_8((v).hi))

/* The sum over the group of what each work-item has in `scratch`, to scratch[0]. */
void group_sum(__local float *scratch, uint lid)
{
    for (uint d = THREADS / 2; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < d)
            scratch[lid] += scratch[lid + d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel void reduction(__global const float *restrict x, volatile __global float *partial,
                        volatile __global uint *arrived, __global float *sum, int N)
{
    __local float scratch[THREADS];
    __local uint last;
    uint lid = get_local_id(0), group = get_group_id(0), vectors = (uint)N / VW;
    __global const vec *v = (__global const vec *)x;

#if CHUNK /* a group reads one piece of the input, or all groups read side by side */
    uint piece = (vectors + GROUPS - 1) / GROUPS, step = THREADS;
    uint i = group * piece + lid, end = min(group * piece + piece, vectors);
#else
    uint step = GROUPS * THREADS;
    uint i = group * THREADS + lid, end = vectors;
#endif
    EACH(ZERO)
    for (; i + (UNROLL - 1) * step < end; i += UNROLL * step) {
        EACH(ADD)
    }
    for (; i < end; i += step)
        acc0 += v[i];
    vec all = EACH(PLUS);
    float value = JOIN(SUM_, VW)(all);
    if (group == 0 && lid == 0)
        for (uint r = vectors * VW; r < (uint)N; r++)
            value += x[r];
    scratch[lid] = value;
    group_sum(scratch, lid);

    /* What groups tell one another goes through atomic operations, which no cache holds back.
     */
    if (lid == 0) {
        (void)atomic_xchg(partial + group, scratch[0]);
        mem_fence(CLK_GLOBAL_MEM_FENCE); /* the part is there before the group is counted */
        last = atomic_inc(arrived) == GROUPS - 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (last) {
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        value = 0;
        for (uint g = lid; g < GROUPS; g += THREADS)
            value += as_float(atomic_or((volatile __global int *)partial + g, 0));
        scratch[lid] = value;
        group_sum(scratch, lid);
        if (lid == 0) {
            *sum = scratch[0];
            (void)atomic_xchg(arrived, 0u); /* ready for another launch */
        }
    }
}

/* One group, summed in double precision where the device has it. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double sum_t;
#else
typedef float sum_t;
#endif
__kernel void naive_reduction(__global const float *restrict x,
                              volatile __global float *partial, volatile __global uint *arrived,
                              __global float *sum, int N)
{
    __local sum_t all[256];
    sum_t value = 0;
    for (uint i = get_local_id(0); i < (uint)N; i += 256)
        value += x[i];
    all[get_local_id(0)] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        for (int i = 1; i < 256; i++)
            value += all[i];
        *sum = (float)value;
    }
}
