/* SPDX-License-Identifier: MIT */
/* Configurations worth a look, gathered for one ask. Layer: search. */
#ifndef KP_SEARCH_CANDIDATES_H
#define KP_SEARCH_CANDIDATES_H

#include "search/history.h"
#include "search/strategy.h"

/* Valid, still in the pool, each of them once. */
struct kp_candidates {
    const struct kp_search_env *env;
    size_t max;
    size_t n;
    uint32_t *configs; /* n_params each */
    uint64_t *ranks;
    uint32_t *slots;   /* hash table of places + 1 */
    size_t n_slots;    /* power of two, at least 2 * max */
    uint32_t *scratch; /* one configuration */
};

/* Errors: KOPT_ENOMEM. Owner: kp_candidates_deinit(). */
kopt_status kp_candidates_init(struct kp_candidates *c, const struct kp_search_env *env,
                               size_t max, kopt_error *err);
void kp_candidates_deinit(struct kp_candidates *c);
void kp_candidates_clear(struct kp_candidates *c);

/* Add one if it is valid, in the pool, new here, and there is room. */
void kp_candidates_add(struct kp_candidates *c, const uint32_t *config);

/* Up to `n` configurations drawn uniformly from the pool. */
void kp_candidates_random(struct kp_candidates *c, size_t n);

/* The configurations that differ from `config` in one parameter; where these could be more than
 * `max`, the adjacent ones and `max` random ones. */
void kp_candidates_near(struct kp_candidates *c, const uint32_t *config, size_t max);

/* `n` children of the `n_elite` best results: each parameter from one of two parents (one of
 * them the best result every other time), one parameter then set at random, repaired where the
 * rules are broken. */
void kp_candidates_cross(struct kp_candidates *c, const struct kp_history *h, size_t n_elite,
                         size_t n);

/* `n` mixtures of a prior's configurations, the likelier ones more often: each parameter from
 * one of two of them, every other time one parameter then set at random, repaired where the
 * rules are broken. */
void kp_candidates_likely(struct kp_candidates *c, const struct kp_prior *p, size_t n);

/* The first `n` of a prior's configurations that are left. */
void kp_candidates_listed(struct kp_candidates *c, const struct kp_prior *p, size_t n);

#endif
