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
 * All steps happen in one launch. A work-group loads EX x EY cells, of which a ring as wide as
 * one step becomes useless with each step, and stores what is right in the end. Neighbouring
 * groups compute the rings twice, but the temperatures travel to memory only once. A work-item
 * has TY rows of a vector of VW cells. Plain OpenCL C: the macros below have defaults. */
#pragma kopt kernel  hotspot
#pragma kopt problem W H STEPS=4
#pragma kopt param   BX {1,2,4,8,16,32,64}  BY {1,2,4,8,16}
#pragma kopt param   VW {1,2,4,8,16}  TY {1,2,4,8,16,32}
#pragma kopt param   FEED_LOCAL {0,1}
#pragma kopt param   UNROLL {0,1}
#pragma kopt default BX=32 BY=8 VW=1 TY=4 FEED_LOCAL=0 UNROLL=1

#pragma kopt let     DEPTH = STEPS
#pragma kopt let     EX = BX * VW
#pragma kopt let     EY = BY * TY
#pragma kopt let     SMEM = 4 * EX * (2 * (EY + 2) + FEED_LOCAL * EY)

#pragma kopt require BX <= device.max_block_x && BY <= device.max_block_y && BX * BY <= device.max_threads
#pragma kopt require EX > 2 * STEPS && EY > 2 * STEPS                : "nothing would be left of the tile after all steps"
#pragma kopt require 3 * (EX - 2 * STEPS) * (EY - 2 * STEPS) >= EX * EY : "a third of the work must count"
#pragma kopt require UNROLL == 0 || TY <= 8                          : "longer loops over a work-item's rows gain nothing by being unrolled"
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
#define VW 1
#define TY 4
#define FEED_LOCAL 0
#define UNROLL 1
#define DEPTH 4 /* STEPS must then be 4 */
#define EX (BX * VW)
#define EY (BY * TY)
#endif

/* A tile has a row more above and below, so that neighbours are looked up without asking. */
#define TILE (EX * (EY + 2))

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
typedef int ivec;
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#else
typedef JOIN(float, VW) vec;
typedef JOIN(int, VW) ivec;
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) JOIN(vstore, VW)(v, 0, p)
#endif
#if VW == 1
#define LANES 0
#elif VW == 2
#define LANES ((ivec)(0, 1))
#elif VW == 4
#define LANES ((ivec)(0, 1, 2, 3))
#elif VW == 8
#define LANES ((ivec)(0, 1, 2, 3, 4, 5, 6, 7))
#elif VW == 16
#define LANES ((ivec)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#endif

#if UNROLL
#define EACH_ROW _Pragma("unroll") for (int j = 0; j < TY; j++)
#else
#define EACH_ROW for (int j = 0; j < TY; j++)
#endif

/* The vector that begins in column x, which may lie outside the plate, of a row that may, too.
 * What comes from outside is any number: nothing inside looks at it. */
vec load_cells(__global const float *from, int x, int y, int W, int H)
{
    float part[VW];
    from += (size_t)clamp(y, 0, H - 1) * W;
    if (0 <= x && x + VW <= W)
        return LOAD(from + x);
    for (int q = 0; q < VW; q++)
        part[q] = from[clamp(x + q, 0, W - 1)];
    return LOAD(part);
}

__kernel void hotspot(__global const float *restrict T, __global const float *restrict P,
                      __global float *restrict R, int W, int H, int STEPS, float spread,
                      float loss, float ambient, float gain)
{
    __local float tiles[2 * TILE];
    float keep = 1.0f - 4.0f * spread - loss;
    int x0 = get_local_id(0) * VW, y0 = get_local_id(1) * TY; /* of the work-item in the tile */
    int left = get_group_id(0) * (EX - 2 * DEPTH) - DEPTH + x0; /* and on the plate */
    int top = get_group_id(1) * (EY - 2 * DEPTH) - DEPTH + y0;
    int first = y0 * EX + x0;
    /* Work-items beyond the plate have nothing to do. (Besides, loops that not all work-items
     * run are not run in lockstep by PoCL, and so their values stay in registers.) */
    bool busy = left < W && top < H;
#if FEED_LOCAL
    __local float feed[EX * EY];
#define FEED(j) LOAD(feed + first + (j) * EX)
#else
#define FEED(j) (loss * ambient + gain * load_cells(P, left, top + (j), W, H))
#endif

    if (busy) {
        EACH_ROW
        {
            STORE(load_cells(T, left, top + j, W, H), tiles + EX + first + j * EX);
#if FEED_LOCAL
            STORE(loss * ambient + gain * load_cells(P, left, top + j, W, H),
                  feed + first + j * EX);
#endif
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int step = 0; step < DEPTH; step++) {
        if (busy) {
            __local const float *old = tiles + step % 2 * TILE + EX + first;
            __local float *now = tiles + (step + 1) % 2 * TILE + EX + first;
            ivec in_west = left + LANES > 0, in_east = left + LANES < W - 1;
            vec north = LOAD(old - EX), c = LOAD(old);
            EACH_ROW
            {
                vec south = LOAD(old + (j + 1) * EX);
                vec west = LOAD(old + j * EX - 1), east = LOAD(old + j * EX + 1);
                vec n = top + j > 0 ? north : c, s = top + j < H - 1 ? south : c;
                west = in_west ? west : c;
                east = in_east ? east : c;
                STORE(keep * c + (spread * ((n + s) + (west + east)) + FEED(j)), now + j * EX);
                north = c;
                c = south;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (busy) {
        EACH_ROW
        {
            int y = y0 + j, begin = max(DEPTH, x0);
            int end = min(min(EX - DEPTH, x0 + VW), x0 + W - left);
            if (y < DEPTH || y >= EY - DEPTH || top + j >= H)
                continue;
            __local const float *from = tiles + DEPTH % 2 * TILE + EX + y * EX;
            __global float *to = R + (size_t)(top + j) * W + left - x0;
            if (begin == x0 && end == x0 + VW)
                STORE(LOAD(from + x0), to + x0);
            else
                for (int x = begin; x < end; x++)
                    to[x] = from[x];
        }
    }
}
