/* SPDX-License-Identifier: MIT */
/* A pseudo-random permutation of 0 .. n-1 that needs no memory. Layer: search. */
#ifndef KP_SEARCH_PERMUTE_H
#define KP_SEARCH_PERMUTE_H

#include <stdint.h>

enum { KP_PERMUTE_ROUNDS = 8 };

struct kp_permute {
    uint64_t n;
    unsigned half; /* bits of each half of the Feistel network */
    uint64_t keys[KP_PERMUTE_ROUNDS];
};

/* n must not be 0. The same seed gives the same permutation. */
void kp_permute_init(struct kp_permute *p, uint64_t n, uint64_t seed);

/* The element at place i < n, and the place of element x < n. */
uint64_t kp_permute_at(const struct kp_permute *p, uint64_t i);
uint64_t kp_permute_place(const struct kp_permute *p, uint64_t x);

#endif
