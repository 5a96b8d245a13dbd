/* SPDX-License-Identifier: MIT */
#include "session/devices/devices.h"

static int pocl(const char *compiler)
{
    return strstr(compiler, "PoCL") != NULL;
}

#define OK       ONE(KOPT_OUT_OK)
#define CRASH    ONE(KOPT_OUT_CRASH)
#define WRONG    ONE(KOPT_OUT_WRONG)
#define UNSTEADY ONE(KOPT_OUT_UNSTEADY)
#define LIMIT    ONE(KOPT_OUT_DEVICE_LIMIT)

static const struct device_flavour OPENCL = {
    .backend = "opencl",
    .suffix = "cl",
    .language = "OpenCL",
    .knows = pocl,
    .compile_timeout_s = 60,
    .examples =
        {{"gemm",
          {"M=37", "N=52", "K=21", "BM=64", "BN=64", "BK=16", "TM=4", "TN=4", "VW=4", "AV=1",
           "PAD=0", "UNROLL=1"}},
         {"convolution",
          {"W=53", "H=37", "FW=5", "FH=3", "BX=16", "BY=8", "VW=1,4", "TY=4", "UNROLL=1"}},
         {"hotspot",
          {"W=61", "H=43", "STEPS=3", "BX=32", "BY=8", "VW=1,4", "TY=4", "UNROLL=1"}},
         {"transpose",
          {"W=52", "H=36", "TX=32", "TY=32", "THREADS=64", "VEC=1,4", "PAD=0,1", "WALK=0"}},
         {"reduction", {"N=100003", "THREADS=64,256", "PER_CU=1,8", "VW=1,4", "UNROLL=1"}},
         {"softmax", {"R=13", "C=84", "LX=16,128", "LY=4", "VW=1,4", "FAST=0"}}},
    .faults = {[0] = {OK, NULL},
               [1] = {OK, NULL},
               [2] = {ONE(KOPT_OUT_COMPILE_ERROR), "no_such_thing"},
               [3] = {CRASH, "compiled it"}, /* PoCL inlines without an end */
               [4] = {CRASH, "compiled it"},
               [5] = {LIMIT, "67108864"},
               [6] = {CRASH, "SIGSEGV"},
               [7] = {CRASH, "SIGSEGV"},
               [8] = {ONE(KOPT_OUT_HANG), "2 s"},
               [9] = {WRONG, "1 of 20000 elements are NaN or were never written"},
               [10] = {WRONG, "10000 of 20000 elements are NaN or were never written"},
               [11] = {WRONG, "20000 of 20000"},
               [12] = {UNSTEADY, "outside the tolerance"},
               [13] = {UNSTEADY, "its first launch was right"},
               [14] = {UNSTEADY, "its first launch was right"},
               [15] = {OK, NULL},
               [16] = {CRASH, "SIGSEGV"}, /* a page without access lies behind each buffer */
               [17] = {CRASH, "SIGSEGV"},
               [18] = {LIMIT, "1000000"}},
};

const struct device_flavour *device_flavour(void)
{
    return &OPENCL;
}
