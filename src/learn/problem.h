/* SPDX-License-Identifier: MIT */
/* A data set's problem as the rules see it. Layer: learn. */
#ifndef KP_LEARN_PROBLEM_H
#define KP_LEARN_PROBLEM_H

#include "model/dataset.h"
#include "space/kernel.h"

/* A field's number as a value: a word, a whole number or a float. Texts are the field's. */
struct kp_value kp_problem_value(const struct kp_field *f, double x);

/* The rules bound to one problem, and configurations as indices of some targets' values. */
struct kp_problem_rules {
    struct kp_bound *bound;
    const struct kp_target *targets; /* borrowed */
    size_t n_targets;
    uint32_t map[KP_PARAMS_MAX]; /* the target that each parameter is */
};

/* Names of the rules that the data set does not have take their default, else 1. `limits` NULL:
 * none. Errors: KOPT_EINPUT (a parameter that is no target), those of
 * kp_kernel_bind_values(). */
kopt_status kp_problem_rules_init(const struct kp_dataset *d, size_t problem,
                                  const struct kp_kernel *rules, const struct kp_limits *limits,
                                  const struct kp_target *targets, size_t n_targets,
                                  struct kp_problem_rules *out);
void kp_problem_rules_deinit(struct kp_problem_rules *r);

/* False: a value that the rules do not have, or a rule that does not hold. */
bool kp_problem_rules_valid(const struct kp_problem_rules *r, const uint32_t *config);
/* values[number of the rules' parameters]. False: a value that the rules do not have. */
bool kp_problem_rules_canonical(const struct kp_problem_rules *r, const uint32_t *config,
                                struct kp_value *values);
/* The configuration in the space's indices. False: as above. */
bool kp_problem_rules_indices(const struct kp_problem_rules *r, const uint32_t *config,
                              uint32_t *out);

#endif
