/* SPDX-License-Identifier: MIT */
/* Temperatures of a heated plate of W x H cells after STEPS time steps. In a step, a cell
 * exchanges heat with its four neighbours and with the surroundings and gains from its power:
 *
 *     t += spread * (north + south + west + east - 4 t) + loss * (ambient - t) + gain * power
 *
 * Nothing passes the edge of the plate: a neighbour beyond it counts as the cell itself. The
 * kernel gathers the terms,
 *
 *     t = keep * t + spread * (north + south + west + east) + feed
 *     keep = 1 - 4 spread - loss,  feed = loss * ambient + gain * power
 *
 * All steps happen in one launch. A block loads EX x EY cells, of which a ring as wide as one
 * step becomes useless with each step, and stores what is right in the end. Neighbouring blocks
 * compute the rings twice, but the temperatures travel to memory only once. A thread keeps TX
 * columns of TY cells in registers and shows them to the others in shared memory. Plain CUDA C:
 * the macros below have defaults. */
#pragma kopt kernel  hotspot
#pragma kopt problem W H STEPS=4
#pragma kopt param   BX {16,32,64,128}  BY {1,2,4,8,16}
#pragma kopt param   TX {1,2,3,4}  TY {1,2,3,4,6,8,12,16}
#pragma kopt param   BUFFERS {1,2}
#pragma kopt param   FEED_SHARED {0,1}
#pragma kopt param   UNROLL {1,2}
#pragma kopt param   MIN_BLOCKS {1,2,4}
#pragma kopt default BX=32 BY=8 TX=1 TY=4 BUFFERS=2 FEED_SHARED=0 UNROLL=1 MIN_BLOCKS=1

#pragma kopt let     DEPTH = STEPS
#pragma kopt let     EX = BX * TX
#pragma kopt let     EY = BY * TY
#pragma kopt let     SMEM = 4 * EX * (BUFFERS * (EY + 2) + FEED_SHARED * EY)

#pragma kopt require 64 <= BX * BY && BX * BY <= min(1024, device.max_threads)
#pragma kopt require EX > 2 * STEPS && EY > 2 * STEPS                : "nothing would be left of the tile after all steps"
#pragma kopt require 3 * (EX - 2 * STEPS) * (EY - 2 * STEPS) >= EX * EY : "a third of the work must count"
#pragma kopt require TX * TY <= 32                                   : "a thread's cells must fit in registers"
#pragma kopt require MIN_BLOCKS * BX * BY <= 2048
#pragma kopt require MIN_BLOCKS * BX * BY * TX * TY <= 32768         : "the cells of a multiprocessor's blocks must leave half its registers free"
#pragma kopt require SMEM <= device.shared_bytes                     : "the tile must fit in shared memory"

#pragma kopt block   BX BY
#pragma kopt grid    ceildiv(W, EX - 2 * STEPS) ceildiv(H, EY - 2 * STEPS)
#pragma kopt shared  SMEM
#pragma kopt arg     T f32[W*H] uniform(20, 80)  P f32[W*H] uniform(0, 1)  R f32[W*H] out
#pragma kopt arg     W H STEPS spread f32 = 0.2  loss f32 = 0.01  ambient f32 = 20  gain f32 = 0.5
/* A step rounds some eight times; it never magnifies an error, since the new temperature is a
 * mean of old ones. 2^-24 * 8 * STEPS is half of the bound. */
#pragma kopt check   R against hotspot_ref.c:hotspot_ref rtol 1e-6 * STEPS atol 0
#pragma kopt metric  GBps = 3.0 * 4 * W * H / time_ns
#pragma kopt metric  Gcells = 1.0 * W * H * STEPS / time_ns

#ifndef BX
#define BX 32
#define BY 8
#define TX 1
#define TY 4
#define BUFFERS 2
#define FEED_SHARED 0
#define UNROLL 1
#define MIN_BLOCKS 1
#define DEPTH 4 /* STEPS must then be 4 */
#define EX (BX * TX)
#define EY (BY * TY)
#endif

/* A tile has a row more above and below, so that neighbours are looked up without asking. */
#define TILE (EX * (EY + 2))

enum { unroll_steps = UNROLL }; /* nvcc does not expand macros in #pragma unroll */

extern "C" __global__ void __launch_bounds__(BX * BY, MIN_BLOCKS)
    hotspot(const float *__restrict__ T, const float *__restrict__ P, float *__restrict__ R,
            int W, int H, int STEPS, float spread, float loss, float ambient, float gain)
{
    extern __shared__ float smem[];
    float *show = smem + EX;                     /* cell (0, 0) of the tile that all can see */
    int x0 = threadIdx.x, y0 = threadIdx.y * TY; /* the thread's columns lie BX apart */
    int left = blockIdx.x * (EX - 2 * DEPTH) - DEPTH,
        top = blockIdx.y * (EY - 2 * DEPTH) - DEPTH;

    float keep = 1.0f - 4.0f * spread - loss;
    float t[TX][TY];
#if FEED_SHARED
    float *feed = smem + BUFFERS * TILE;
#define FEED(i, j) feed[(y0 + (j)) * EX + x0 + (i) * BX]
#else
    float feed[TX][TY];
#define FEED(i, j) feed[i][j]
#endif
#pragma unroll
    for (int i = 0; i < TX; i++) {
#pragma unroll
        for (int j = 0; j < TY; j++) {
            int x = left + x0 + i * BX, y = top + y0 + j;
            bool inside = 0 <= x && x < W && 0 <= y && y < H;
            size_t at = (size_t)y * W + x;
            t[i][j] = inside ? T[at] : 0.0f;
            FEED(i, j) = inside ? loss * ambient + gain * P[at] : 0.0f;
            show[(y0 + j) * EX + x0 + i * BX] = t[i][j];
        }
    }
    __syncthreads();

#pragma unroll unroll_steps
    for (int s = 0; s < DEPTH; s++) {
        const float *old = BUFFERS == 2 ? show + s % 2 * TILE : show;
#pragma unroll
        for (int i = 0; i < TX; i++) {
            int x = x0 + i * BX, gx = left + x;
            float north = old[(y0 - 1) * EX + x];
#pragma unroll
            for (int j = 0; j < TY; j++) {
                int at = (y0 + j) * EX + x, gy = top + y0 + j;
                float c = t[i][j];
                float n = gy > 0 ? north : c;
                float w = gx > 0 ? old[at - 1] : c, e = gx < W - 1 ? old[at + 1] : c;
                float south = j < TY - 1 ? t[i][j < TY - 1 ? j + 1 : j] : old[at + EX];
                if (gy >= H - 1)
                    south = c;
                t[i][j] = keep * c + (spread * ((n + south) + (w + e)) + FEED(i, j));
                north = c;
            }
        }
        if (s == DEPTH - 1)
            break;
        if (BUFFERS == 1)
            __syncthreads(); /* all have read what is now replaced */
        float *now = BUFFERS == 2 ? show + (s + 1) % 2 * TILE : show;
#pragma unroll
        for (int i = 0; i < TX; i++)
#pragma unroll
            for (int j = 0; j < TY; j++)
                now[(y0 + j) * EX + x0 + i * BX] = t[i][j];
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TX; i++) {
#pragma unroll
        for (int j = 0; j < TY; j++) {
            int x = x0 + i * BX, y = y0 + j;
            bool right = DEPTH <= x && x < EX - DEPTH && DEPTH <= y && y < EY - DEPTH;
            if (right && left + x < W && top + y < H)
                R[(size_t)(top + y) * W + left + x] = t[i][j];
        }
    }
}
