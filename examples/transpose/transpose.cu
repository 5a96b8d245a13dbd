/* SPDX-License-Identifier: MIT */
/* B = transpose of A: A has H rows of W floats, B has W rows of H.
 *
 * A block moves a tile of TY rows and TX columns. Through shared memory (SHARED=1) both its
 * loads and its stores run along rows; without it a thread turns blocks of VEC x VEC in
 * registers. Plain CUDA C: the macros below have defaults. */
#pragma kopt kernel  transpose
#pragma kopt problem W H
#pragma kopt param   TX {16,32,64,128}  TY {16,32,64,128}
#pragma kopt param   THREADS {64,128,256,512}
#pragma kopt param   VEC {1,2,4}
#pragma kopt param   SHARED {0,1}
#pragma kopt param   PAD {0,1,2,4}
#pragma kopt param   WALK {0,1}
#pragma kopt param   STREAM {0,1}
#pragma kopt default TX=32 TY=32 THREADS=256 VEC=1 SHARED=1 PAD=1 WALK=0 STREAM=0

#pragma kopt let     SMEM = 4 * SHARED * TY * (TX + PAD)

#pragma kopt require W % VEC == 0 && H % VEC == 0       : "a vector must not cross the end of a row"
#pragma kopt require THREADS <= device.max_threads
#pragma kopt require SHARED == 1 ? TX * TY % (THREADS * VEC) == 0 : TX * TY % (THREADS * VEC * VEC) == 0 : "each thread moves the same number of vectors"
#pragma kopt require TX * TY <= 32 * THREADS            : "more than 32 values of a thread are in flight"
#pragma kopt require SHARED == 1 || PAD == 0            : "without a tile there is nothing to pad"
#pragma kopt require SMEM <= min(49152, device.shared_bytes) : "the tile must fit in static shared memory"

#pragma kopt block   THREADS
#pragma kopt grid    ceildiv(W, TX) * ceildiv(H, TY)
#pragma kopt arg     A f32[W*H] normal  B f32[W*H] out  W H
#pragma kopt reference naive_transpose block 32 8 grid ceildiv(W, 32) * ceildiv(H, 8)
#pragma kopt check   B against kernel naive_transpose rtol 0 atol 0
#pragma kopt metric  GBps = 2.0 * 4 * W * H / time_ns

#ifndef TX
#define TX 32
#define TY 32
#define THREADS 256
#define VEC 1
#define SHARED 1
#define PAD 1
#define WALK 0
#define STREAM 0
#endif

#define LD (TX + PAD)

#if VEC == 4
typedef float4 vec_t;
#elif VEC == 2
typedef float2 vec_t;
#else
typedef float vec_t;
#endif

/* Everything is read once and written once: STREAM asks the caches not to keep it. */
#if STREAM
#define LOAD(p) __ldcs((const vec_t *)(p))
#define STORE(p, v) __stcs((vec_t *)(p), v)
#else
#define LOAD(p) (*(const vec_t *)(p))
#define STORE(p, v) (*(vec_t *)(p) = (v))
#endif

union lanes {
    vec_t v;
    float f[VEC];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const float *__restrict__ A, float *__restrict__ B, int W, int H)
{
    /* Blocks follow one another along the rows of A or along those of B. */
    int across = (W + TX - 1) / TX, down = (H + TY - 1) / TY, id = blockIdx.x;
    int c0 = (WALK ? id / down : id % across) * TX;
    int r0 = (WALK ? id % down : id / across) * TY;
    int tid = threadIdx.x;

#if SHARED
    __shared__ __align__(16) float tile[TY * LD];

    /* All loads first: they are under way together. */
    lanes a[TX * TY / (THREADS * VEC)];
#pragma unroll
    for (int i = 0; i < TX * TY / (THREADS * VEC); i++) {
        int e = tid + i * THREADS, r = e / (TX / VEC), c = e % (TX / VEC) * VEC;
        if (r0 + r < H && c0 + c < W)
            a[i].v = LOAD(A + (size_t)(r0 + r) * W + c0 + c);
    }
#pragma unroll
    for (int i = 0; i < TX * TY / (THREADS * VEC); i++) {
        int e = tid + i * THREADS, r = e / (TX / VEC), c = e % (TX / VEC) * VEC;
#if PAD % VEC == 0
        *(vec_t *)(tile + r * LD + c) = a[i].v;
#else
#pragma unroll
        for (int q = 0; q < VEC; q++)
            tile[r * LD + c + q] = a[i].f[q];
#endif
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TX * TY / (THREADS * VEC); i++) {
        int e = tid + i * THREADS, c = e / (TY / VEC), r = e % (TY / VEC) * VEC;
        lanes b;
#pragma unroll
        for (int q = 0; q < VEC; q++)
            b.f[q] = tile[(r + q) * LD + c];
        if (r0 + r < H && c0 + c < W)
            STORE(B + (size_t)(c0 + c) * H + r0 + r, b.v);
    }
#else
#pragma unroll
    for (int i = 0; i < TX * TY / (THREADS * VEC * VEC); i++) {
        int e = tid + i * THREADS;
        int r = r0 + e / (TX / VEC) * VEC, c = c0 + e % (TX / VEC) * VEC;
        if (r >= H || c >= W)
            continue;
        lanes a[VEC];
#pragma unroll
        for (int q = 0; q < VEC; q++)
            a[q].v = LOAD(A + (size_t)(r + q) * W + c);
#pragma unroll
        for (int p = 0; p < VEC; p++) {
            lanes b;
#pragma unroll
            for (int q = 0; q < VEC; q++)
                b.f[q] = a[q].f[p];
            STORE(B + (size_t)(c + p) * H + r, b.v);
        }
    }
#endif
}

/* The same, one float a thread. */
extern "C" __global__ void naive_transpose(const float *__restrict__ A, float *__restrict__ B,
                                           int W, int H)
{
    int across = (W + 31) / 32;
    int c = blockIdx.x % across * 32 + threadIdx.x, r = blockIdx.x / across * 8 + threadIdx.y;
    if (r < H && c < W)
        B[(size_t)c * H + r] = A[(size_t)r * W + c];
}
