/* SPDX-License-Identifier: MIT */
/* What a strategy remembers of the results, best first. Layer: search. */
#ifndef KP_SEARCH_HISTORY_H
#define KP_SEARCH_HISTORY_H

#include "base/error.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_history {
    size_t n_params;
    size_t max;        /* results it may hold */
    size_t n;          /* results it holds */
    size_t n_ok;       /* of these, with a finite cost; they stand first in `order` */
    uint32_t *configs; /* of n_params each */
    double *costs;     /* INFINITY: failed */
    uint32_t *order;   /* places in configs and costs, best first, ties by place */
};

/* Errors: KOPT_ENOMEM. Owner: kp_history_deinit(). */
kopt_status kp_history_init(struct kp_history *h, size_t n_params, size_t max, kopt_error *err);
void kp_history_deinit(struct kp_history *h);

/* Add a result. When full, a random one of the worse half makes room. Returns its place. */
size_t kp_history_add(struct kp_history *h, const uint32_t *config, double cost,
                      struct kp_rng *rng);

/* The configuration at a place, and that of the k-th best. */
const uint32_t *kp_history_at(const struct kp_history *h, size_t place);
const uint32_t *kp_history_best(const struct kp_history *h, size_t k);

/* Base-2 logarithms of the costs over the best, by place, for a forest to learn; a failure
 * counts as the worst success, or as twice the best while the successes are closer together
 * than that. n_ok must not be 0. */
void kp_history_targets(const struct kp_history *h, float *out);

#endif
