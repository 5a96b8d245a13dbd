/* SPDX-License-Identifier: MIT */
/* The numbers of a device that bound a launch, by the names that rules use. Layer: base. */
#ifndef KP_BASE_LIMITS_H
#define KP_BASE_LIMITS_H

#include <stdint.h>

struct kp_limits {
    int64_t max_threads;   /* work-items of a group */
    int64_t max_block[3];  /* max_block_x, _y, _z */
    int64_t shared_bytes;  /* local memory of a group; the opt-in maximum on CUDA */
    int64_t registers;     /* of a block; 0 unknown */
    int64_t warp;          /* warp size, or the preferred multiple of the group size */
    int64_t compute_units; /* multiprocessors, or cores */
    int64_t l2_bytes;      /* last-level cache; 0 unknown */
    int64_t global_bytes;  /* device memory */
    int64_t clock_khz;     /* 0 unknown */
    int64_t cc;            /* 90 for compute capability 9.0; 0 where it is not CUDA */
};

#endif
