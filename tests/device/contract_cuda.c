/* SPDX-License-Identifier: MIT */
#include "contract.h"

static float sum(float a, float b)
{
    return a + b;
}

static const struct dialect CUDA = {
    .backend = KP_BACKEND_CUDA,
    .path = "kernels/user file.cu",
    .add = "extern \"C\" __global__ void add(const float *a, const float *b, float *c, int n)\n"
           "{\n"
           "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "    if (i < n)\n"
           "        c[i] = a[i] + b[i];\n"
           "}\n",
    .combine = sum,
    .add2 = "extern \"C\" __global__ void add2(const float *a, const float *b, float *c,\n"
            "                                int width, int height)\n"
            "{\n"
            "    int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "    int y = blockIdx.y * blockDim.y + threadIdx.y;\n"
            "    if (x < width && y < height)\n"
            "        c[y * width + x] = a[y * width + x] + b[y * width + x];\n"
            "}\n",
    .local = NULL, /* CUDA takes no local memory as an argument */
    .accumulate = "extern \"C\" __global__ void accumulate(float *io, const float *a, int n)\n"
                  "{\n"
                  "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                  "    if (i < n)\n"
                  "        io[i] += a[i];\n"
                  "}\n",
    .half = "extern \"C\" __global__ void half_of_it(float *c, const float *a, int n)\n"
            "{\n"
            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "    if (i < n / 2)\n"
            "        c[i] = a[i];\n"
            "}\n",
    .scaled = "extern \"C\" __global__ void scaled(const float *a, float *c, int n)\n"
              "{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n)\n"
              "        c[i] = a[i] * (float)(FACTOR);\n"
              "}\n",
    .including =
        "#include \"kopt_part.h\"\n"
        "extern \"C\" __global__ void add(const float *a, const float *b, float *c, int n)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n)\n"
        "        c[i] = part(a[i], b[i]);\n"
        "}\n",
    .part = "__device__ float part(float a, float b)\n{\n    return a + b;\n}\n",
    .broken = "extern \"C\" __global__ void add(float *c)\n"
              "{\n"
              "    /* \xc3\xa9 */ c[0] = no_such_thing;\n"
              "}\n",
    .broken_line = 3,
    .broken_column = 20,
    .broken_word = "no_such_thing",
};

const struct dialect *contract_dialect(void)
{
    return &CUDA;
}
