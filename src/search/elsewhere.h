/* SPDX-License-Identifier: MIT */
/* What results from elsewhere (a `measured` prior) say of any configuration. Layer: search. */
#ifndef KP_SEARCH_ELSEWHERE_H
#define KP_SEARCH_ELSEWHERE_H

#include "search/features.h"
#include "search/strategy.h"
#include "search/trees.h"

struct kp_elsewhere {
    const struct kp_prior *prior;
    const struct kp_space *space;
    const struct kp_features *features;
    struct kp_trees *trees; /* of those that are not in the list */
    float *point;           /* scratch: the features of one configuration */
    double *costs;          /* by place in the list, see kp_elsewhere_at() */
};

/* env->prior must have an entry at least and be `measured`; it and the features, one at least,
 * outlive the source. Errors: KOPT_ENOMEM. Owner: kp_elsewhere_deinit(). */
kopt_status kp_elsewhere_init(struct kp_elsewhere *s, const struct kp_search_env *env,
                              const struct kp_features *f, kopt_error *err);
/* Of one that was only zeroed, too. */
void kp_elsewhere_deinit(struct kp_elsewhere *s);

/* The logarithm of the cost there, of mean 0 and deviation 1 over the list's successes; a
 * failure is as bad as the worst of them. What is not in the list is guessed by a forest. */
double kp_elsewhere_at(const struct kp_elsewhere *s, const uint32_t *config);

#endif
