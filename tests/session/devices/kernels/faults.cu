/* SPDX-License-Identifier: MIT */
/* b = 2 a + 1, and what can go wrong on the way: one mode, one fault, under the same numbers as
 * in faults.cl. The default works and is slow, MODE=1 works and is fast. */
#pragma kopt kernel  twice
#pragma kopt problem N=20000
#pragma kopt param   MODE {0..18}
#pragma kopt default MODE=0
#pragma kopt block   MODE == 18 ? 1000000 : 64
#pragma kopt grid    ceildiv(N, 64)
#pragma kopt shared  MODE == 5 ? 67108864 : 0
#pragma kopt arg     a f32[N] normal  b f32[N] out  seen u32[1] constant(0)  N
#pragma kopt reference plain block 64 grid ceildiv(N, 64)
/* One multiplication and one addition: two roundings, or one where they are fused. */
#pragma kopt check   b against kernel plain rtol 1e-6 atol 1e-6

extern "C" __global__ void plain(const float *a, float *b, unsigned *seen, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        b[i] = 2 * a[i] + 1;
}

#if MODE == 3 /* 100,000 times */
#define TEN(x) x x x x x x x x x x
#define MANY(x) TEN(TEN(TEN(TEN(TEN(x)))))
#elif MODE == 4 /* calls itself without an end: the compiler takes it, the stack does not */
__device__ __noinline__ float deeper(volatile const float *x, int n)
{
    volatile float here[64];
    here[n % 64] = x[0];
    return n > 0 ? deeper(here, n + 1) + here[n % 64] : here[0];
}
#endif

/* Compilers must not find out what follows: that N is positive and seen[0] zero. */
extern "C" __global__ void twice(const float *a, float *b, unsigned *seen, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float right = 2 * a[i] + 1;
#if MODE == 0 || MODE >= 15 && MODE <= 16 /* slow */
    volatile float slow = right;
    for (int k = 0; k < 2000; k++)
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
#elif MODE == 3 /* the compiler does not end */
    float x = right;
    MANY(if (x > a[i]) x = sinf(x) + a[(int)x % N];)
    b[i] = x;
#elif MODE == 4
    b[i] = right + deeper(a, N) * seen[0];
#elif MODE == 5 /* 64 MiB of shared memory */
    extern __shared__ float tile[];
    tile[threadIdx.x * N] = right;
    __syncthreads();
    b[i] = tile[threadIdx.x * N];
#elif MODE == 6 /* writes where no memory is */
    b[i + (long long)N * 1000000000] = right;
#elif MODE == 7 /* ends the kernel */
    if (i == N - 1)
        __trap();
    b[i] = right;
#elif MODE == 8 /* never returns */
    while (*(volatile unsigned *)seen < 1000000000u)
        continue;
    b[i] = right;
#elif MODE == 9
    b[i] = i == N - 1 ? nanf("") : right;
#elif MODE == 10 /* writes only part */
    if (i < N / 2)
        b[i] = right;
#elif MODE == 11
    b[i] = right + 1;
#elif MODE == 12 /* another answer each time: it counts in what it was given to read */
    b[i] = right + 1 + atomicAdd(seen, 1u);
#elif MODE == 13 /* right at the first launch only */
    b[i] = right + (seen[0] >= (unsigned)N ? 1 : 0);
    (void)atomicAdd(seen, 1u);
#elif MODE == 14 /* writes over its input */
    b[i] = right;
    ((float *)a)[i] = 1000;
#elif MODE == 17 /* a vector where none may be */
    b[i] = right;
    *(volatile double *)(b + 1 + seen[0]) = right;
#else
    b[i] = right;
#endif
}
