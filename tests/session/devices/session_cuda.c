/* SPDX-License-Identifier: MIT */
#include "session/devices/devices.h"

#define OK       ONE(KOPT_OUT_OK)
#define CRASH    ONE(KOPT_OUT_CRASH)
#define WRONG    ONE(KOPT_OUT_WRONG)
#define UNSTEADY ONE(KOPT_OUT_UNSTEADY)
#define LIMIT    ONE(KOPT_OUT_DEVICE_LIMIT)

static const struct device_flavour CUDA = {
    .backend = "cuda",
    .suffix = "cu",
    .language = "CUDA",
    .compile_timeout_s = 12, /* one of them never ends; the others take less than a second */
    .examples = {{"gemm",
                  {"M=37", "N=52", "K=21", "BM=128", "BN=128", "BK=16", "TM=8", "TN=8", "LX=8",
                   "STAGES=1,2,3", "PAD=4", "UNROLL=2", "MIN_BLOCKS=1"}},
                 {"convolution", {"W=53", "H=37", "FW=5", "FH=3", "BX=32", "BY=8", "UNROLL=1"}},
                 {"hotspot", {"W=61", "H=43", "STEPS=3", "BX=32", "BY=8", "TX=1,2", "TY=4"}},
                 {"transpose", {"W=52", "H=36", "TX=32", "TY=32", "THREADS=64,256"}},
                 {"reduction", {"N=2000003", "PER_SM=1,8", "UNROLL=1,4"}},
                 {"softmax", {"R=13", "C=204", "TX=32,64,128", "TY=1,2"}}},
    .faults = {[0] = {OK, NULL},
               [1] = {OK, NULL},
               [2] = {ONE(KOPT_OUT_COMPILE_ERROR), "no_such_thing"},
               [3] = {ONE(KOPT_OUT_COMPILE_TIMEOUT), "12 s"},
               /* What an overflowing stack hits first depends on what lies beside it. */
               [4] = {CRASH | LIMIT | ONE(KOPT_OUT_HANG) | ONE(KOPT_OUT_LAUNCH_ERROR), NULL},
               [5] = {LIMIT, "67108864"},
               [6] = {CRASH, NULL},
               [7] = {CRASH, NULL},
               [8] = {ONE(KOPT_OUT_HANG), "2 s"},
               [9] = {WRONG, "1 of 20000 elements are NaN or were never written"},
               [10] = {WRONG, "10000 of 20000 elements are NaN or were never written"},
               [11] = {WRONG, "20000 of 20000"},
               [12] = {UNSTEADY, "outside the tolerance"},
               [13] = {UNSTEADY, "its first launch was right"},
               [14] = {UNSTEADY, "its first launch was right"},
               [15] = {OK, NULL},
               /* A buffer's last page is longer than the buffer. */
               [16] = {OK | WRONG | UNSTEADY | CRASH, NULL},
               [17] = {CRASH, NULL},
               [18] = {LIMIT, "1000000"}},
};

const struct device_flavour *device_flavour(void)
{
    return &CUDA;
}
