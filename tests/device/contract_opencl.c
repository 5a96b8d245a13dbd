/* SPDX-License-Identifier: MIT */
#include "contract.h"

static float sum(float a, float b)
{
    return a + b;
}

static const struct dialect OPENCL = {
    .backend = KP_BACKEND_OPENCL,
    .path = "kernels/user file.cl",
    .add =
        "kernel void add(global const float *a, global const float *b, global float *c, int n)\n"
        "{\n"
        "    int i = get_global_id(0);\n"
        "    if (i < n)\n"
        "        c[i] = a[i] + b[i];\n"
        "}\n",
    .combine = sum,
    .add2 = "kernel void add2(global const float *a, global const float *b, global float *c,\n"
            "                 int width, int height)\n"
            "{\n"
            "    int x = get_global_id(0), y = get_global_id(1);\n"
            "    if (x < width && y < height)\n"
            "        c[y * width + x] = a[y * width + x] + b[y * width + x];\n"
            "}\n",
    .local =
        "kernel void through_local(global const float *a, global float *c, local float *tile)\n"
        "{\n"
        "    int l = get_local_id(0), n = get_local_size(0);\n"
        "    tile[l] = a[get_global_id(0)];\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    c[get_group_id(0) * n + n - 1 - l] = tile[n - 1 - l];\n"
        "}\n",
    .accumulate = "kernel void accumulate(global float *io, global const float *a, int n)\n"
                  "{\n"
                  "    int i = get_global_id(0);\n"
                  "    if (i < n)\n"
                  "        io[i] += a[i];\n"
                  "}\n",
    .half = "kernel void half_of_it(global float *c, global const float *a, int n)\n"
            "{\n"
            "    int i = get_global_id(0);\n"
            "    if (i < n / 2)\n"
            "        c[i] = a[i];\n"
            "}\n",
    .scaled = "kernel void scaled(global const float *a, global float *c, int n)\n"
              "{\n"
              "    int i = get_global_id(0);\n"
              "    if (i < n)\n"
              "        c[i] = a[i] * (float)(FACTOR);\n"
              "}\n",
    .including =
        "#include \"kopt_part.h\"\n"
        "kernel void add(global const float *a, global const float *b, global float *c,\n"
        "                int n)\n"
        "{\n"
        "    int i = get_global_id(0);\n"
        "    if (i < n)\n"
        "        c[i] = part(a[i], b[i]);\n"
        "}\n",
    .part = "float part(float a, float b)\n{\n    return a + b;\n}\n",
    .broken = "kernel void add(global float *c)\n"
              "{\n"
              "    /* \xc3\xa9 */ c[0] = no_such_thing;\n"
              "}\n",
    .broken_line = 3,
    .broken_column = 20,
    .broken_word = "no_such_thing",
};

const struct dialect *contract_dialect(void)
{
    return &OPENCL;
}
