/* SPDX-License-Identifier: MIT */
/* What the configurations that were not tried may still save. Layer: search.
 *
 * An estimate from the results alone, whichever strategy chose them: a few signs are read off
 * them, and a formula makes a share of the best time of these. docs/search.md ("When to stop")
 * says on which recorded spaces it was fitted, and how well it does on others. */
#ifndef KP_SEARCH_REMAIN_H
#define KP_SEARCH_REMAIN_H

#include "base/error.h"
#include "space/space.h"

#include <stdint.h>

struct kp_remain;

/* What the formula is made of. */
struct kp_remain_signs {
    double told;      /* results */
    double left;      /* configurations without one */
    double near;      /* neighbours of the best results */
    double near_left; /* of these, without a result */
    double gain;      /* what regression trees expect the best of them, and of mixtures of the
                         best results, to save, as a share of the best time */
};

/* The space must outlive it. Errors: KOPT_ENOMEM. */
kopt_status kp_remain_new(const struct kp_space *space, uint64_t seed, struct kp_remain **out,
                          kopt_error *err);
void kp_remain_free(struct kp_remain *r);
/* A result: a time, or INFINITY. Now and then this makes a new estimate: a millisecond, say. */
void kp_remain_learn(struct kp_remain *r, const uint32_t *config, double cost);
/* See kp_search_remaining(). */
double kp_remain_estimate(const struct kp_remain *r);
/* Those of the last estimate; zero before. */
const struct kp_remain_signs *kp_remain_signs(const struct kp_remain *r);
/* Rises with `near_left` and `gain`, falls with `told`; 0 when nothing is left. */
double kp_remain_formula(const struct kp_remain_signs *s);

#endif
