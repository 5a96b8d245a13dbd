/* SPDX-License-Identifier: MIT */
/* The sizes of a problem, and how far two problems are apart. Layer: store. */
#ifndef KP_STORE_SIZES_H
#define KP_STORE_SIZES_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_SIZES_MAX = 64 };

struct kp_sizes {
    size_t n;
    const char *const *names; /* distinct */
    const int64_t *values;
    const double *logs; /* kp_size_log() of them */
};

/* The base-2 logarithm; NaN for a size below 1. */
double kp_size_log(int64_t size);

/* The sizes of a subject's problem, {"K":512,"M":512}, in the order of the text. False: they
 * are not whole numbers, more than KP_SIZES_MAX, or memory is out (a->failed). */
bool kp_sizes_read(struct kp_arena *a, const char *problem, struct kp_sizes *out);

/* Has `b` the names of `a`, in any order? at[i]: where its i-th is in b. */
bool kp_sizes_match(const struct kp_sizes *a, const struct kp_sizes *b, size_t *at);

/* Euclidean distance in log2 of the sizes: 1 = one of them is twice as large. `at` as
 * kp_sizes_match() gave it. NaN when sizes that differ have no logarithm. */
double kp_sizes_distance(const struct kp_sizes *a, const struct kp_sizes *b, const size_t *at);

#endif
