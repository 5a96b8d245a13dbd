/* SPDX-License-Identifier: MIT */
/* Configurations as numbers that a model can split on. Layer: search. */
#ifndef KP_SEARCH_FEATURES_H
#define KP_SEARCH_FEATURES_H

#include "base/error.h"
#include "space/space.h"

#include <stdbool.h>
#include <stddef.h>

/* For each parameter with more than one value:
 *   a number or boolean: its rank among the parameter's values, so that the order in which they
 *       are listed does not matter, nor their scale;
 *   a string: its index, to be compared for equality only (`named`);
 *   positive integers that are not all powers of two: also the exponent of two in the value and
 *       the value without it (48 = 2^4 * 3: 4 and 3), because kernels feel alignment. */
struct kp_feature {
    uint32_t param;
    bool named;
    const float *table; /* by value index; NULL: the index itself */
};

struct kp_features {
    struct kp_feature *list;
    size_t n;
    float *tables; /* all of them */
};

/* Errors: KOPT_ENOMEM. Owner: kp_features_deinit(). */
kopt_status kp_features_init(struct kp_features *f, const struct kp_space *space,
                             kopt_error *err);
void kp_features_deinit(struct kp_features *f);

/* Feature k of a configuration. */
static inline float kp_feature_of(const struct kp_features *f, size_t k, const uint32_t *config)
{
    const struct kp_feature *p = &f->list[k];
    return p->table ? p->table[config[p->param]] : (float)config[p->param];
}

#endif
