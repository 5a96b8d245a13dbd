/* SPDX-License-Identifier: MIT */
/* R(y, x) = sum over (v, u) of F(v, u) * I(y + v, x + u): an image of one channel and a filter
 * of FH rows and FW columns, both odd. The image comes with its border, FW - 1 columns and FH -
 * 1 rows more than the result, so what lies beyond the edge is the caller's choice.
 *
 * A work-item computes TY rows of a vector of VW neighbouring values: what it reads of a row of
 * the image serves every row of the filter that meets it. With LOCAL=1 a group keeps its part
 * of the image, halo included, in local memory. Plain OpenCL C: the macros below have defaults.
 */
#pragma kopt kernel  convolution
#pragma kopt problem W H FW=9 FH=9
#pragma kopt param   BX {1,2,4,8,16,32}  BY {1,2,4,8,16}
#pragma kopt param   VW {1,2,4,8,16}  TY {1,2,3,4,6,8}
#pragma kopt param   LOCAL {0,1}
#pragma kopt param   UNROLL {0,1}
#pragma kopt default BX=16 BY=8 VW=1 TY=4 LOCAL=1 UNROLL=1

/* The size of the filter is known when the kernel is compiled. */
#pragma kopt let     KW = FW
#pragma kopt let     KH = FH
#pragma kopt let     TILE_W = BX * VW + KW - 1
#pragma kopt let     TILE_H = BY * TY + KH - 1
#pragma kopt let     SMEM = 4 * LOCAL * TILE_W * TILE_H

#pragma kopt require FW % 2 == 1 && FH % 2 == 1                   : "a filter has a middle"
#pragma kopt require BX <= device.max_block_x && BY <= device.max_block_y && BX * BY <= device.max_threads
#pragma kopt require SMEM <= device.shared_bytes                  : "the tile and its halo must fit in local memory"
#pragma kopt require LOCAL == 1 || VW <= W                        : "a vector must not be longer than a row"
#pragma kopt require VW * TY <= 64                                : "the sums must fit in registers"

#pragma kopt block   BX BY
#pragma kopt grid    ceildiv(W, BX * VW) ceildiv(H, BY * TY)
#pragma kopt arg     I f32[(W+FW-1)*(H+FH-1)] normal  F f32[FW*FH] normal  R f32[W*H] out  W H FW FH
#pragma kopt reference naive_convolution block 16 4 grid ceildiv(W, 16) ceildiv(H, 4)
/* As in a matrix product of depth FW * FH of N(0,1) numbers: rounding after each addition is a
 * random walk of at most about 2^-24 * FW * FH / sqrt(2), and the bound is some six of those.
 */
#pragma kopt check   R against kernel naive_convolution rtol 1e-5 atol 2.5e-7 * FW * FH
#pragma kopt metric  gflops = 2.0 * W * H * FW * FH / time_ns

#ifndef BX
#define BX 16
#define BY 8
#define VW 1
#define TY 4
#define LOCAL 1
#define UNROLL 1
#define KW 9 /* FW and FH must then be 9 */
#define KH 9
#define TILE_W (BX * VW + KW - 1)
#define TILE_H (BY * TY + KH - 1)
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#define LOAD(p) (*(p))
#define STORE_ALL(v, p) (*(p) = (v))
#else
typedef JOIN(float, VW) vec;
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE_ALL(v, p) JOIN(vstore, VW)(v, 0, p)
#endif

/* A work-item's rows are variables of their own, sum0 to sum7, and no array: so they stay in
 * registers with every compiler. EACH(M) is M(t) for each of its rows. */
#define EACH_1(M) M(0)
#define EACH_2(M) EACH_1(M) M(1)
#define EACH_3(M) EACH_2(M) M(2)
#define EACH_4(M) EACH_3(M) M(3)
#define EACH_6(M) EACH_4(M) M(4) M(5)
#define EACH_8(M) EACH_6(M) M(6) M(7)
#define EACH(M) JOIN(EACH_, TY)(M)

#define ZERO(t) vec sum##t = (vec)(0.0f);
/* Row r of a work-item's image meets row r - t of the filter in row t of its result. */
#define ADD(t) sum##t += v * F[(r - t) * KW + u];
#define ADD_IF(t)             \
    if (r >= t && r - t < KH) \
        ADD(t)

#if VW == 1
#define STORE_PART(t)
#else
#define STORE_PART(t)                                             \
    else if (y + t < H)                                           \
    {                                                             \
        float part[VW];                                           \
        STORE_ALL(sum##t, part);                                  \
        for (int q = 0; q < W - x; q++)                           \
            R[(size_t)(y + t) * W + x + q] = part[x - begin + q]; \
    }
#endif
#define STORE(t)                                        \
    if (y + t < H && x + VW <= W)                       \
        STORE_ALL(sum##t, R + (size_t)(y + t) * W + x); \
    STORE_PART(t)

__kernel void convolution(__global const float *restrict I, __constant float *restrict F,
                          __global float *restrict R, int W, int H, int FW, int FH)
{
    int lx = get_local_id(0), ly = get_local_id(1);
    int x0 = get_group_id(0) * (BX * VW), y0 = get_group_id(1) * (BY * TY);
    int x = x0 + lx * VW, y = y0 + ly * TY;
    int pitch = W + KW - 1, rows = H + KH - 1;

#if LOCAL
    __local float tile[TILE_W * TILE_H];
    for (int j = ly; j < TILE_H; j += BY)
        for (int i = lx; i < TILE_W; i += BX)
            tile[j * TILE_W + i] =
                y0 + j < rows && x0 + i < pitch ? I[(size_t)(y0 + j) * pitch + x0 + i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    int begin = x;
#define ROW(r) (tile + (ly * TY + (r)) * TILE_W + lx * VW)
#define ROW_SPACE __local
#else
    /* Rows below the image are read from its last row and serve no result. A vector that would
     * reach beyond the end of its rows begins further left and is stored in part. */
    int begin = min(x, W - VW);
#define ROW(r) (I + (size_t)min(y + (r), rows - 1) * pitch + begin)
#define ROW_SPACE __global const
#endif

    EACH(ZERO)
    int end = x < W && y < H ? TY + KH - 1 : 0;
    for (int r = 0; r < end; r++) {
        ROW_SPACE float *row = ROW(r);
        if (r >= TY - 1 && r < KH) {
#if UNROLL
#pragma unroll
#endif
            for (int u = 0; u < KW; u++) {
                vec v = LOAD(row + u);
                EACH(ADD)
            }
        } else {
            for (int u = 0; u < KW; u++) {
                vec v = LOAD(row + u);
                EACH(ADD_IF)
            }
        }
    }
    EACH(STORE)
}

/* One value a work-item, summed in double precision where the device has it. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double sum_t;
#else
typedef float sum_t;
#endif
__kernel void naive_convolution(__global const float *restrict I, __constant float *restrict F,
                                __global float *restrict R, int W, int H, int FW, int FH)
{
    int x = get_global_id(0), y = get_global_id(1);
    sum_t sum = 0;
    if (x >= W || y >= H)
        return;
    for (int v = 0; v < FH; v++)
        for (int u = 0; u < FW; u++)
            sum += (sum_t)F[v * FW + u] * I[(size_t)(y + v) * (W + FW - 1) + x + u];
    R[(size_t)y * W + x] = (float)sum;
}
