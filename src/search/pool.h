/* SPDX-License-Identifier: MIT */
/* The ranks that have not been asked for yet. Layer: search. */
#ifndef KP_SEARCH_POOL_H
#define KP_SEARCH_POOL_H

#include "base/error.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

struct kp_pool;

/* All of 0 .. n-1. Holds memory for each rank that is taken, up to `max_kept` of them (or until
 * the heap is empty); from then on it is *swept*: only kp_pool_draw() gives ranks, in the order
 * of a pseudo-random permutation of those that are left. Errors: KOPT_ENOMEM. */
kopt_status kp_pool_new(uint64_t n, uint64_t seed, uint64_t max_kept, struct kp_pool **out,
                        kopt_error *err);
void kp_pool_free(struct kp_pool *p);

uint64_t kp_pool_left(const struct kp_pool *p);
bool kp_pool_has(const struct kp_pool *p, uint64_t rank);

/* Take a rank out. False when it is not there, and when the pool is swept. */
bool kp_pool_take(struct kp_pool *p, uint64_t rank);

/* Look at any rank that is left, each with the same probability, without taking it. False when
 * none is left. */
bool kp_pool_peek(const struct kp_pool *p, struct kp_rng *rng, uint64_t *rank);

/* Take any rank out, each with the same probability. False when none is left. */
bool kp_pool_draw(struct kp_pool *p, struct kp_rng *rng, uint64_t *rank);

/* Give up keeping: from now on the pool is swept. */
void kp_pool_sweep(struct kp_pool *p);

#endif
