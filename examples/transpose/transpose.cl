/* SPDX-License-Identifier: MIT */
/* B = transpose of A: A has H rows of W floats, B has W rows of H.
 *
 * A work-group moves a tile of TY rows and TX columns. Through local memory (LOCAL=1) both its
 * loads and its stores run along rows; without it a work-item turns blocks of VEC x VEC in
 * registers, which suits a CPU. Plain OpenCL C: the macros below have defaults. */
#pragma kopt kernel  transpose
#pragma kopt problem W H
#pragma kopt param   TX {8,16,32,64,128}  TY {8,16,32,64,128}
#pragma kopt param   THREADS {4,16,64,256}
#pragma kopt param   VEC {1,2,4,8}
#pragma kopt param   LOCAL {0,1}
#pragma kopt param   PAD {0,1,4}
#pragma kopt param   WALK {0,1}
#pragma kopt default TX=32 TY=32 THREADS=256 VEC=1 LOCAL=1 PAD=1 WALK=0

#pragma kopt let     SMEM = 4 * LOCAL * TY * (TX + PAD)

#pragma kopt require W % VEC == 0 && H % VEC == 0       : "a vector must not cross the end of a row"
#pragma kopt require THREADS <= device.max_threads && THREADS <= device.max_block_x
#pragma kopt require LOCAL == 1 ? TX * TY % (THREADS * VEC) == 0 : TX * TY % (THREADS * VEC * VEC) == 0 : "each work-item moves the same number of vectors"
#pragma kopt require TX * TY <= 256 * THREADS            : "more than 256 values of a work-item leave too few work-items"
#pragma kopt require LOCAL == 1 || PAD == 0             : "without a tile there is nothing to pad"
#pragma kopt require SMEM <= device.shared_bytes        : "the tile must fit in local memory"

#pragma kopt block   THREADS
#pragma kopt grid    ceildiv(W, TX) * ceildiv(H, TY)
#pragma kopt arg     A f32[W*H] normal  B f32[W*H] out  W H
#pragma kopt reference naive_transpose block 16 4 grid ceildiv(W, 16) * ceildiv(H, 4)
#pragma kopt check   B against kernel naive_transpose rtol 0 atol 0
#pragma kopt metric  GBps = 2.0 * 4 * W * H / time_ns

#ifndef TX
#define TX 32
#define TY 32
#define THREADS 256
#define VEC 1
#define LOCAL 1
#define PAD 1
#define WALK 0
#endif

#define LD (TX + PAD)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VEC == 1
typedef float vec;
#else
typedef JOIN(float, VEC) vec;
#endif

/* A vector of B; F(q) is element q of the vector that is made. */
#if VEC == 1
#define GATHER(F) F(0)
#elif VEC == 2
#define GATHER(F) (vec)(F(0), F(1))
#elif VEC == 4
#define GATHER(F) (vec)(F(0), F(1), F(2), F(3))
#elif VEC == 8
#define GATHER(F) (vec)(F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7))
#endif

/* A block of VEC x VEC: rows a0, a1, .. in, columns out. */
#define LOAD_ROW(q) vec a##q = *(__global const vec *)(A + (size_t)(r + q) * W + c);
#define STORE_COLUMN(p, part) *(__global vec *)(B + (size_t)(c + p) * H + r) = GATHER(part);
#if VEC == 1
#define P0(q) a##q
#define TURN LOAD_ROW(0) STORE_COLUMN(0, P0)
#else
#define P0(q) a##q.s0
#define P1(q) a##q.s1
#define P2(q) a##q.s2
#define P3(q) a##q.s3
#define P4(q) a##q.s4
#define P5(q) a##q.s5
#define P6(q) a##q.s6
#define P7(q) a##q.s7
#define LOAD_2 LOAD_ROW(0) LOAD_ROW(1)
#define STORE_2 STORE_COLUMN(0, P0) STORE_COLUMN(1, P1)
#define LOAD_4 LOAD_2 LOAD_ROW(2) LOAD_ROW(3)
#define STORE_4 STORE_2 STORE_COLUMN(2, P2) STORE_COLUMN(3, P3)
#define LOAD_8 LOAD_4 LOAD_ROW(4) LOAD_ROW(5) LOAD_ROW(6) LOAD_ROW(7)
#define STORE_8 \
    STORE_4 STORE_COLUMN(4, P4) STORE_COLUMN(5, P5) STORE_COLUMN(6, P6) STORE_COLUMN(7, P7)
#define TURN JOIN(LOAD_, VEC) JOIN(STORE_, VEC)
#endif

__kernel void transpose(__global const float *restrict A, __global float *restrict B, int W,
                        int H)
{
    /* Groups follow one another along the rows of A or along those of B. */
    int across = (W + TX - 1) / TX, down = (H + TY - 1) / TY, id = get_group_id(0);
    int c0 = (WALK ? id / down : id % across) * TX;
    int r0 = (WALK ? id % down : id / across) * TY;
    int lid = get_local_id(0);

#if LOCAL
    __local float tile[TY * LD] __attribute__((aligned(64)));

    for (int i = 0; i < TX * TY / (THREADS * VEC); i++) {
        int e = lid + i * THREADS, r = e / (TX / VEC), c = e % (TX / VEC) * VEC;
        if (r0 + r < H && c0 + c < W) {
            vec v = *(__global const vec *)(A + (size_t)(r0 + r) * W + c0 + c);
#if VEC == 1
            tile[r * LD + c] = v;
#else
            JOIN(vstore, VEC)(v, 0, tile + r * LD + c);
#endif
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TX * TY / (THREADS * VEC); i++) {
        int e = lid + i * THREADS, c = e / (TY / VEC), r = e % (TY / VEC) * VEC;
#define FROM_TILE(q) tile[(r + q) * LD + c]
        if (r0 + r < H && c0 + c < W)
            *(__global vec *)(B + (size_t)(c0 + c) * H + r0 + r) = GATHER(FROM_TILE);
    }
#else
    for (int i = 0; i < TX * TY / (THREADS * VEC * VEC); i++) {
        int e = lid + i * THREADS;
        int r = r0 + e / (TX / VEC) * VEC, c = c0 + e % (TX / VEC) * VEC;
        if (r < H && c < W) {
            TURN
        }
    }
#endif
}

/* The same, one float a work-item. */
__kernel void naive_transpose(__global const float *restrict A, __global float *restrict B,
                              int W, int H)
{
    int across = (W + 15) / 16, id = get_group_id(0);
    int c = id % across * 16 + get_local_id(0), r = id / across * 4 + get_local_id(1);
    if (r < H && c < W)
        B[(size_t)c * H + r] = A[(size_t)r * W + c];
}
