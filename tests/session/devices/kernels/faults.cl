/* SPDX-License-Identifier: MIT */
/* b = 2 a + 1, and what can go wrong on the way: one mode, one fault. The default works and is
 * slow, MODE=1 works and is fast. */
#pragma kopt kernel  twice
#pragma kopt problem N=20000
#pragma kopt param   MODE {0..18}
#pragma kopt default MODE=0
#pragma kopt block   MODE == 18 ? 1000000 : 64
#pragma kopt grid    ceildiv(N, 64)
#pragma kopt arg     a f32[N] normal  b f32[N] out  seen u32[1] constant(0)  N
#pragma kopt reference plain block 64 grid ceildiv(N, 64)
/* One multiplication and one addition: two roundings, or one where they are fused. */
#pragma kopt check   b against kernel plain rtol 1e-6 atol 1e-6

__kernel void plain(__global const float *a, __global float *b, __global uint *seen, int N)
{
    int i = get_global_id(0);
    if (i < N)
        b[i] = 2 * a[i] + 1;
}

#if MODE == 3 /* recursion, which OpenCL C has not */
float again(float x, int n);
float once_more(float x, int n)
{
    return n > 0 ? again(x, n - 1) + x : x;
}
float again(float x, int n)
{
    return n > 1 ? once_more(x, n - 2) * x : x;
}
#elif MODE == 4 /* an expression 10,000 deep */
#define TEN(x) x x x x x x x x x x
#define MANY(x) TEN(TEN(TEN(TEN(x))))
#endif

/* Compilers must not find out what follows: that N is positive and seen[0] zero. */
__kernel void twice(__global const float *a, __global float *b, __global uint *seen, int N)
{
    int i = get_global_id(0);
    if (i >= N)
        return;
    float right = 2 * a[i] + 1;
#if MODE == 0 || MODE >= 15 && MODE <= 16 /* slow */
    volatile float slow = right;
    for (int k = 0; k < 100; k++)
        slow = slow + 0.0f;
    b[i] = slow;
#if MODE == 15 /* and talks */
    if (i == 0)
        printf("{\"is\": \"result\", \"id\": 1}\n");
#elif MODE == 16 /* and writes just past the end */
    if (i == N - 1)
        b[N + seen[0]] = right;
#endif
#elif MODE == 2 /* does not compile */
    b[i] = no_such_thing;
#elif MODE == 3
    b[i] = right + once_more(a[i], N) * seen[0];
#elif MODE == 4
    b[i] = MANY(-) right;
#elif MODE == 5 /* 64 MiB of local memory */
    __local float tile[16 << 20];
    tile[get_local_id(0) * N] = right;
    barrier(CLK_LOCAL_MEM_FENCE);
    b[i] = tile[get_local_id(0) * N];
#elif MODE == 6 /* writes where no memory is */
    b[i + (long)N * 100000000] = right;
#elif MODE == 7 /* follows a bad pointer */
    b[i] = right + *(__global float *)(size_t)(seen[0] + 16);
#elif MODE == 8 /* never returns */
    volatile int on = N;
    while (on > 0)
        on = N;
    b[i] = right;
#elif MODE == 9
    b[i] = i == N - 1 ? NAN : right;
#elif MODE == 10 /* writes only part */
    if (i < N / 2)
        b[i] = right;
#elif MODE == 11
    b[i] = right + 1;
#elif MODE == 12 /* another answer each time: it counts in what it was given to read */
    b[i] = right + 1 + atomic_inc(seen);
#elif MODE == 13 /* right at the first launch only */
    b[i] = right + (seen[0] >= (uint)N ? 1 : 0);
    (void)atomic_inc(seen);
#elif MODE == 14 /* writes over its input */
    b[i] = right;
    ((__global float *)a)[i] = 1000;
#elif MODE == 17 /* 64 MiB of stack */
    volatile float deep[16 << 20];
    for (int k = 0; k < (16 << 20); k += 512)
        deep[k + seen[0]] = right;
    b[i] = deep[seen[0]];
#else
    b[i] = right;
#endif
}
