/* SPDX-License-Identifier: MIT */
/* A small regression forest over few observations, grown anew a few trees at a time. Layer:
 * search. Method: extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63,
 * 2006); the spread of the trees' answers stands for the uncertainty, as in Hutter, Hoos and
 * Leyton-Brown (SMAC, LION 5, 2011). Comparisons, sums and square roots only: the same numbers
 * on every machine. */
#ifndef KP_SEARCH_TREES_H
#define KP_SEARCH_TREES_H

#include "base/error.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_trees;

/* Observations by column: x[f * stride + i] is feature f of observation i. */
struct kp_sample {
    const float *x;
    size_t stride;
    const float *y;
    size_t n; /* at least 1, at most the forest's max_obs */
};

/* `named[f]`: split feature f by equality, not by order; copied. Errors: KOPT_ENOMEM. */
kopt_status kp_trees_new(size_t n_trees, size_t n_features, const bool *named, size_t max_obs,
                         struct kp_trees **out, kopt_error *err);
void kp_trees_free(struct kp_trees *t);

/* Grow `n` of the trees anew, in turn; all of them the first time. Needs a feature at least. */
void kp_trees_grow(struct kp_trees *t, const struct kp_sample *s, size_t n, struct kp_rng *rng);

/* Mean and standard deviation, over the trees, of the prediction for `n` points; x is by row:
 * x[i * n_features + f]. */
void kp_trees_predict(const struct kp_trees *t, const float *x, size_t n, float *mean,
                      float *dev);

#endif
