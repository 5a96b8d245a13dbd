/* SPDX-License-Identifier: MIT */
/* Temperatures of a heated plate of W x H cells after STEPS time steps. In a step, a cell
 * exchanges heat with its four neighbours and with the surroundings and gains from its power:
 *
 *     t += spread * (north + south + west + east - 4 t) + loss * (ambient - t) + gain * power
 *
 * Nothing passes the edge of the plate: a neighbour beyond it counts as the cell itself. Here the
 * terms are gathered: t = keep * t + spread * (their sum) + feed, with keep = 1 - 4 spread - loss
 * and feed = loss * ambient + gain * power, which does not change from step to step.
 *
 * All steps happen in one launch. A work-group loads EX x EY cells, of which a ring as wide as one
 * step becomes useless with each step, and stores what is right in the end. Neighbouring groups
 * compute the rings twice, but the temperatures travel to memory only once. Plain OpenCL C: the
 * macros below have defaults. */
#pragma kopt kernel  hotspot
#pragma kopt problem W H STEPS=4
#pragma kopt param   BX {8,16,32,64,128,256}  BY {1,2,4,8,16}
#pragma kopt param   TX {1,2,4}  TY {1,2,4,8,16,32}
#pragma kopt param   FEED_LOCAL {0,1}
#pragma kopt param   UNROLL {0,1}
#pragma kopt default BX=32 BY=8 TX=1 TY=4 FEED_LOCAL=0 UNROLL=1

#pragma kopt let     DEPTH = STEPS
#pragma kopt let     EX = BX * TX
#pragma kopt let     EY = BY * TY
#pragma kopt let     SMEM = 4 * EX * (2 * (EY + 2) + FEED_LOCAL * EY)

#pragma kopt require BX <= device.max_block_x && BY <= device.max_block_y && BX * BY <= device.max_threads
#pragma kopt require EX > 2 * STEPS && EY > 2 * STEPS                : "nothing would be left of the tile after all steps"
#pragma kopt require 3 * (EX - 2 * STEPS) * (EY - 2 * STEPS) >= EX * EY : "a third of the work must count"
#pragma kopt require UNROLL == 0 || TX * TY <= 32                    : "the loops over a work-item's cells are too long to be unrolled"
#pragma kopt require SMEM <= device.shared_bytes                     : "the tile must fit in local memory"

#pragma kopt block   BX BY
#pragma kopt grid    ceildiv(W, EX - 2 * STEPS) ceildiv(H, EY - 2 * STEPS)
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
#define FEED_LOCAL 0
#define UNROLL 1
#define DEPTH 4 /* STEPS must then be 4 */
#define EX (BX * TX)
#define EY (BY * TY)
#endif

/* A tile has a row more above and below, so that neighbours are looked up without asking. */
#define TILE (EX * (EY + 2))

#if UNROLL
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif
/* For each cell (x, y) of a work-item: its columns lie BX apart, its rows are neighbours. */
#define EACH_CELL                                        \
    UNROLLED for (int j = 0; j < TY; j++)                \
        UNROLLED for (int i = 0, y = ly * TY + j, x = lx; i < TX; i++, x += BX)

__kernel void hotspot(__global const float *restrict T, __global const float *restrict P,
                      __global float *restrict R, int W, int H, int STEPS, float spread, float loss,
                      float ambient, float gain)
{
    __local float tiles[2 * TILE];
#if FEED_LOCAL
    __local float feed[EX * EY];
#endif
    float keep = 1.0f - 4.0f * spread - loss;
    int lx = get_local_id(0), ly = get_local_id(1);
    int left = get_group_id(0) * (EX - 2 * DEPTH) - DEPTH;
    int top = get_group_id(1) * (EY - 2 * DEPTH) - DEPTH;

    EACH_CELL
    {
        /* What lies outside the plate is any number: nothing inside looks at it. */
        int gx = clamp(left + x, 0, W - 1), gy = clamp(top + y, 0, H - 1);
        tiles[(y + 1) * EX + x] = T[(size_t)gy * W + gx];
#if FEED_LOCAL
        feed[y * EX + x] = loss * ambient + gain * P[(size_t)gy * W + gx];
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int s = 0; s < DEPTH; s++) {
        __local const float *old = tiles + s % 2 * TILE + EX;
        __local float *now = tiles + (s + 1) % 2 * TILE + EX;
        EACH_CELL
        {
            int gx = left + x, gy = top + y, at = y * EX + x;
            float c = old[at];
            float north = old[at - EX], south = old[at + EX], west = old[at - 1], east = old[at + 1];
            north = gy > 0 ? north : c;
            south = gy < H - 1 ? south : c;
            west = gx > 0 ? west : c;
            east = gx < W - 1 ? east : c;
#if FEED_LOCAL
            float f = feed[at];
#else
            float f = loss * ambient +
                      gain * P[(size_t)clamp(gy, 0, H - 1) * W + clamp(gx, 0, W - 1)];
#endif
            now[at] = keep * c + (spread * ((north + south) + (west + east)) + f);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    EACH_CELL
    {
        int right = DEPTH <= x && x < EX - DEPTH && DEPTH <= y && y < EY - DEPTH;
        if (right && left + x < W && top + y < H)
            R[(size_t)(top + y) * W + left + x] = tiles[DEPTH % 2 * TILE + (y + 1) * EX + x];
    }
}
