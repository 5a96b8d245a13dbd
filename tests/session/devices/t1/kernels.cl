/* SPDX-License-Identifier: MIT */
/* What ktt.json and tuner.json tune, as OpenCL C and as CUDA C. */
#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#define GLOBAL
#define GROUP(d) (d == 0 ? blockIdx.x : blockIdx.y)
#define ITEM(d) (d == 0 ? threadIdx.x : threadIdx.y)
#define SIZE(d) (d == 0 ? blockDim.x : blockDim.y)
#else
#define KERNEL __kernel
#define GLOBAL __global
#define GROUP(d) get_group_id(d)
#define ITEM(d) get_local_id(d)
#define SIZE(d) get_local_size(d)
#endif

#ifdef PER_ITEM
/* c = factor * a + b, PER_ITEM elements an item. */
KERNEL void scale_add(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c,
                      float factor, int n)
{
    int first = (int)(GROUP(0) * SIZE(0) + ITEM(0)) * PER_ITEM;
    for (int i = first; i < first + PER_ITEM && i < n; i++)
        c[i] = factor * a[i] + b[i] + (BROKEN && i == n - 1 ? 1.0f : 0.0f);
}
#endif

#ifdef tile_x
/* Each row's running number is taken from its elements. */
KERNEL void unshift(GLOBAL int *out, GLOBAL const int *in, int width, int height)
{
    int x0 = (int)GROUP(0) * block_size_x * tile_x + (int)ITEM(0);
    int y = (int)GROUP(1) * block_size_y + (int)ITEM(1);
    for (int t = 0; t < tile_x; t++) {
        int x = x0 + t * block_size_x;
        if (x < width && y < height)
            out[y * width + x] = in[y * width + x] - (skip_rows && y == height - 1 ? 0 : y);
    }
}
#endif
