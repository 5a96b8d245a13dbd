/* SPDX-License-Identifier: MIT */
/* What somebody expects of a space before anything is measured: a list of configurations, the
 * most promising first. Layer: search. Where the expectation comes from (a model, an expert,
 * another device's results) the search does not know.
 *
 * The common part of a search hands the list out before it asks the strategy, so a bad one
 * costs its length; a strategy finds it in its environment and may make more of it (forest.c).
 */
#ifndef KP_SEARCH_PRIOR_H
#define KP_SEARCH_PRIOR_H

#include "base/error.h"
#include "space/space.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_PRIOR_MAX = 4096 };

struct kp_prior {
    size_t n_params;
    size_t max;
    size_t n;
    uint32_t *configs; /* [n][n_params]: valid, distinct */
    double *logp;      /* [n]: natural logarithm of the probability to be good, as its source
                          sees it; the order, which may weigh more than that, is what counts */
    uint64_t *ranks;   /* [n] in the space */
};

/* max: 1 to KP_PRIOR_MAX. Owner: kp_prior_deinit(). Errors: KOPT_ENOMEM. */
kopt_status kp_prior_init(struct kp_prior *p, const struct kp_space *space, size_t max,
                          kopt_error *err);
/* Of one that was only zeroed, too. */
void kp_prior_deinit(struct kp_prior *p);

/* Behind those that are there, whatever `logp` is. False: not valid in the space (that of
 * kp_prior_init()), there already, or the list is full. */
bool kp_prior_add(struct kp_prior *p, const struct kp_space *space, const uint32_t *config,
                  double logp);

/* The place of a configuration, 0 for the first; p->n where it is not in the list. */
size_t kp_prior_find(const struct kp_prior *p, const uint32_t *config);

#endif
