/* SPDX-License-Identifier: MIT */
/* R(y, x) = sum over (v, u) of F(v, u) * I(y + v, x + u): an image of one channel and a filter
 * of FH rows and FW columns, both odd. The image comes with its border, FW - 1 columns and FH -
 * 1 rows more than the result, so what lies beyond the edge is the caller's choice.
 *
 * A block keeps its part of the image, halo included, in shared memory. A thread computes TY
 * rows of TX neighbouring values: a row of the image is read once into registers and serves
 * every row of the filter that meets it. Plain CUDA C: the macros below have defaults. */
#pragma kopt kernel  convolution
#pragma kopt problem W H FW=9 FH=9
#pragma kopt param   BX {8,16,32,64}  BY {1,2,4,8,16}
#pragma kopt param   TX {1,2,4,8}  TY {1,2,3,4,6,8}
#pragma kopt param   FILTER_SHARED {0,1}
#pragma kopt param   UNROLL {1,2,4}
#pragma kopt param   MIN_BLOCKS {1,2,4}
#pragma kopt default BX=32 BY=8 TX=1 TY=4 FILTER_SHARED=1 UNROLL=1 MIN_BLOCKS=1

/* The size of the filter is known when the kernel is compiled. */
#pragma kopt let     KW = FW
#pragma kopt let     KH = FH
/* Rows of the tile are whole vectors of four. */
#pragma kopt let     TILE_W = align(BX * TX + KW - 1, 4)
#pragma kopt let     TILE_H = BY * TY + KH - 1
#pragma kopt let     SMEM = 4 * (TILE_W * TILE_H + FILTER_SHARED * KH * align(KW, 4))

#pragma kopt require FW % 2 == 1 && FH % 2 == 1         : "a filter has a middle"
#pragma kopt require 32 <= BX * BY && BX * BY <= min(512, device.max_threads)
#pragma kopt require TX * TY <= 32                      : "the sums and a row of the image must fit in registers"
#pragma kopt require MIN_BLOCKS * BX * BY <= 1024
#pragma kopt require SMEM <= device.shared_bytes        : "the tile and its halo must fit in shared memory"

#pragma kopt block   BX BY
#pragma kopt grid    ceildiv(W, BX * TX) ceildiv(H, BY * TY)
#pragma kopt shared  SMEM
#pragma kopt arg     I f32[(W+FW-1)*(H+FH-1)] normal  F f32[FW*FH] normal  R f32[W*H] out  W H FW FH
#pragma kopt reference naive_convolution block 32 4 grid ceildiv(W, 32) ceildiv(H, 4)
/* As in a matrix product of depth FW * FH of N(0,1) numbers: rounding after each addition is a
 * random walk of at most about 2^-24 * FW * FH / sqrt(2), and the bound is some six of those.
 */
#pragma kopt check   R against kernel naive_convolution rtol 1e-5 atol 2.5e-7 * FW * FH
#pragma kopt metric  gflops = 2.0 * W * H * FW * FH / time_ns

#ifndef BX
#define BX 32
#define BY 8
#define TX 1
#define TY 4
#define FILTER_SHARED 1
#define UNROLL 1
#define MIN_BLOCKS 1
#define KW 9 /* FW and FH must then be 9 */
#define KH 9
#define TILE_W ((BX * TX + KW + 2) / 4 * 4)
#define TILE_H (BY * TY + KH - 1)
#endif

/* A row of the filter with room for whole vectors; a thread's row of the image. */
#define FILTER_W ((KW + 3) / 4 * 4)
#define WINDOW (TX + KW - 1)
#define VEC (TX < 4 ? TX : 4) /* a thread's first value in a row of the tile is this aligned \
                               */

enum { unroll_rows = UNROLL }; /* nvcc does not expand macros in #pragma unroll */

static __device__ __forceinline__ void load_window(const float *row, float *w)
{
#pragma unroll
    for (int i = 0; i < WINDOW; i += VEC) {
        /* A vector may reach beyond the window, never beyond the row of the tile. */
        float v[4];
        if (VEC == 4)
            *(float4 *)v = *(const float4 *)(row + i);
        else if (VEC == 2)
            *(float2 *)v = *(const float2 *)(row + i);
        else
            v[0] = row[i];
#pragma unroll
        for (int q = 0; q < VEC; q++)
            if (i + q < WINDOW)
                w[i + q] = v[q];
    }
}

static __device__ __forceinline__ void add_row(const float *w, const float *filter, float *sum)
{
#pragma unroll
    for (int u = 0; u < KW; u++) {
#pragma unroll
        for (int x = 0; x < TX; x++)
            sum[x] += w[x + u] * filter[u];
    }
}

static __device__ __forceinline__ void load_filter_row(const float *from, float *f)
{
#if FILTER_SHARED
#pragma unroll
    for (int u = 0; u < FILTER_W; u += 4) {
        float4 v = *(const float4 *)(from + u);
        f[u] = v.x;
        f[u + 1] = v.y;
        f[u + 2] = v.z;
        f[u + 3] = v.w;
    }
#else
#pragma unroll
    for (int u = 0; u < KW; u++)
        f[u] = from[u];
#endif
}

extern "C" __global__ void __launch_bounds__(BX * BY, MIN_BLOCKS)
    convolution(const float *__restrict__ I, const float *__restrict__ F, float *__restrict__ R,
                int W, int H, int FW, int FH)
{
    extern __shared__ float4 smem[];
    float *tile = (float *)smem;
    int tx = threadIdx.x, ty = threadIdx.y;
    int x0 = blockIdx.x * (BX * TX), y0 = blockIdx.y * (BY * TY);
    int pitch = W + KW - 1, rows = H + KH - 1;

    for (int y = ty; y < TILE_H; y += BY)
        for (int x = tx; x < TILE_W; x += BX)
            tile[y * TILE_W + x] =
                y0 + y < rows && x0 + x < pitch ? I[(size_t)(y0 + y) * pitch + x0 + x] : 0.0f;
#if FILTER_SHARED
    float *filter = tile + TILE_W * TILE_H;
    for (int i = ty * BX + tx; i < KH * FILTER_W; i += BX * BY)
        filter[i] = i % FILTER_W < KW ? F[i / FILTER_W * KW + i % FILTER_W] : 0.0f;
#define FILTER_ROW(v) (filter + (v) * FILTER_W)
#else
#define FILTER_ROW(v) (F + (v) * KW)
#endif
    __syncthreads();

    float sum[TY][TX] = {};
#pragma unroll unroll_rows
    for (int r = 0; r < TY + KH - 1; r++) {
        float w[WINDOW];
        load_window(tile + (ty * TY + r) * TILE_W + tx * TX, w);
#pragma unroll
        for (int t = 0; t < TY; t++) {
            /* Row r of the thread's image meets row r - t of the filter in row t of its result.
             */
            if (r >= t && r - t < KH) {
                float f[FILTER_W];
                load_filter_row(FILTER_ROW(r - t), f);
                add_row(w, f, sum[t]);
            }
        }
    }

#pragma unroll
    for (int t = 0; t < TY; t++) {
        int y = y0 + ty * TY + t;
#pragma unroll
        for (int i = 0; i < TX; i++) {
            int x = x0 + tx * TX + i;
            if (y < H && x < W)
                R[(size_t)y * W + x] = sum[t][i];
        }
    }
}

/* One value a thread, summed in double precision. */
extern "C" __global__ void naive_convolution(const float *__restrict__ I,
                                             const float *__restrict__ F, float *__restrict__ R,
                                             int W, int H, int FW, int FH)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    double sum = 0;
    if (x >= W || y >= H)
        return;
    for (int v = 0; v < FH; v++)
        for (int u = 0; u < FW; u++)
            sum += (double)F[v * FW + u] * I[(size_t)(y + v) * (W + FW - 1) + x + u];
    R[(size_t)y * W + x] = (float)sum;
}
