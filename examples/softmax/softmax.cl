/* SPDX-License-Identifier: MIT */
/* Each row of y is the softmax of that row of x: exp(x - max) / sum of exp(x - max), R rows of
 * C.
 *
 * LX work-items share a row, in vectors of VW numbers, and a work-group works on LY rows.
 * Between its passes a row is read again or held in local memory (LOCAL=1). With ONLINE=1 the
 * maximum and the sum are found in one pass: when a larger maximum turns up, the sum is scaled
 * to it. Plain OpenCL C: the macros below have defaults. */
#pragma kopt kernel  softmax
#pragma kopt problem R C
#pragma kopt param   LX {1,2,4,8,16,32,64,128,256,512}  LY {1,2,4,8,16}
#pragma kopt param   VW {1,2,4,8,16}
#pragma kopt param   LOCAL {0,1}
#pragma kopt param   ONLINE {0,1}
#pragma kopt param   FAST {0,1}
#pragma kopt default LX=128 LY=1 VW=1 LOCAL=0 ONLINE=0 FAST=0

#pragma kopt let     COLS = C
#pragma kopt let     SMEM = 4 * LY * (LOCAL * align(C, 16) + 2 * LX)

#pragma kopt require C % VW == 0                         : "a vector must not cross the end of a row"
#pragma kopt require LX <= device.max_block_x && LY <= device.max_block_y && LX * LY <= device.max_threads
#pragma kopt require LX == 1 || LX * VW <= 2 * C         : "half of the work-items would have nothing to do"
#pragma kopt require LOCAL == 0 || ONLINE == 0           : "a row that is kept costs nothing to pass over again"
#pragma kopt require SMEM <= device.shared_bytes         : "the rows must fit in local memory"

#pragma kopt block   LX LY
#pragma kopt grid    1 ceildiv(R, LY)
/* Around 100, exp() alone would overflow: a kernel that forgets the maximum is found out. */
#pragma kopt arg     x f32[R*C] normal(100, 2)  y f32[R*C] out  R C
/* x - max is exact for such numbers, exp() and the division are right within some units of
 * 2^-23, fast ones commonly within some 2^-19; the rounding of C additions to the sum is a
 * random walk of 2^-24 * sqrt(C). */
#pragma kopt check   y against softmax_ref.c:softmax_ref rtol 1e-5 + 2e-7 * sqrt(C) atol 0
#pragma kopt metric  GBps = 2.0 * 4 * R * C / time_ns

#ifndef LX
#define LX 128
#define LY 1
#define VW 1
#define LOCAL 0
#define ONLINE 0
#define FAST 0
#define COLS 4096 /* only LOCAL=1 needs it; C must then be the same */
#endif

#define LOWEST -3.4e38f /* what -infinity would be, but its difference to itself is 0 */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#else
typedef JOIN(float, VW) vec;
#endif

#if FAST
#define EXP native_exp
#else
#define EXP exp
#endif

/* A vector's elements in one number. */
#define FOLD_1(F, v) (v)
#define FOLD_2(F, v) F((v).s0, (v).s1)
#define FOLD_4(F, v) F(FOLD_2(F, (v).lo), FOLD_2(F, (v).hi))
#define FOLD_8(F, v) F(FOLD_4(F, (v).lo), FOLD_4(F, (v).hi))
#define FOLD_16(F, v) F(FOLD_8(F, (v).lo), FOLD_8(F, (v).hi))
#define FOLD(F, v) JOIN(FOLD_, VW)(F, v)
#define PLUS(a, b) ((a) + (b))

#if LOCAL
#define ROW_SPACE __local
#else
#define ROW_SPACE __global const
#endif

__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R,
                      int C)
{
    int lx = get_local_id(0), ly = get_local_id(1), row = get_group_id(1) * LY + ly;
    int end = row < R ? C / VW : 0; /* vectors of the row; a row beyond the last has none */
    __global const vec *from = (__global const vec *)(x + (size_t)row * C);
    __global vec *to = (__global vec *)(y + (size_t)row * C);
#if LOCAL
    __local float rows[LY * ((COLS + 15) / 16 * 16)] __attribute__((aligned(64)));
    __local vec *kept = (__local vec *)(rows + ly * ((COLS + 15) / 16 * 16));
#else
    __global const vec *kept = from;
#endif
    float max_all, sum_all;
#if LX > 1
    __local float max_part[LX * LY], sum_part[LX * LY];
    __local float *my_max = max_part + ly * LX, *my_sum = sum_part + ly * LX;
#endif

    vec m = (vec)(LOWEST), s = (vec)(0.0f);
#if ONLINE
    for (int i = lx; i < end; i += LX) {
        vec v = from[i], larger = fmax(m, v);
        s = s * EXP(m - larger) + EXP(v - larger);
        m = larger;
    }
    max_all = FOLD(fmax, m);
    s *= EXP(m - max_all);
    sum_all = FOLD(PLUS, s);
#if LX > 1
    my_max[lx] = max_all;
    my_sum[lx] = sum_all;
    for (int d = LX / 2; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lx < d) {
            float a = my_max[lx], b = my_max[lx + d], larger = fmax(a, b);
            my_sum[lx] = my_sum[lx] * EXP(a - larger) + my_sum[lx + d] * EXP(b - larger);
            my_max[lx] = larger;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    max_all = my_max[0];
    sum_all = my_sum[0];
#endif
#else
    for (int i = lx; i < end; i += LX) {
        vec v = from[i];
        m = fmax(m, v);
#if LOCAL
        kept[i] = v;
#endif
    }
    max_all = FOLD(fmax, m);
#if LX > 1
    my_max[lx] = max_all;
    for (int d = LX / 2; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lx < d)
            my_max[lx] = fmax(my_max[lx], my_max[lx + d]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    max_all = my_max[0];
#endif
    for (int i = lx; i < end; i += LX) {
        vec e = EXP(kept[i] - max_all);
        s += e;
#if LOCAL
        kept[i] = e;
#endif
    }
    sum_all = FOLD(PLUS, s);
#if LX > 1
    my_sum[lx] = sum_all;
    for (int d = LX / 2; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lx < d)
            my_sum[lx] += my_sum[lx + d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_all = my_sum[0];
#endif
#endif
    float scale = 1.0f / sum_all;
    for (int i = lx; i < end; i += LX) {
#if LOCAL
        to[i] = kept[i] * scale;
#else
        to[i] = EXP(from[i] - max_all) * scale;
#endif
    }
}
