/* SPDX-License-Identifier: MIT */
/* A Gaussian process over the configurations of a space. Layer: search.
 *
 * The covariance of two configurations is
 *
 *     s2 * (a * mean_f k_f + (1 - a) * prod_f k_f * k_side + b * side * side' + c)
 *
 * over the features f of search/features.h, k_f = (1 + r + r^2 / 3) exp(-r) (Matern
 * 5/2) with r = sqrt(5) |difference| / length_f, the difference as a share of the feature's
 * range (of a named one: 0 or 1). The mean is what each parameter does by itself, the product
 * what they do together. `side` is one number known beforehand for every configuration, as the
 * cost on another device: the covariance is linear in it, so that what it is worth, and its
 * sign, is learned; k_side = 1 / (1 + (difference / length)^2).
 *
 * Lengths, shares and noise are drawn from their posterior, a step of the Metropolis algorithm
 * at a time (Metropolis et al., J. Chem. Phys. 21, 1953), s2 stands at its best. Rasmussen and
 * Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5. The same numbers
 * on every machine: arithmetic, square roots and math/portable.h only. */
#ifndef KP_SEARCH_GP_H
#define KP_SEARCH_GP_H

#include "base/error.h"
#include "base/rng.h"
#include "search/features.h"

struct kp_gp;

/* For `max` observations and believed points together. The features outlive it; there must be
 * one at least. Errors: KOPT_ENOMEM. */
kopt_status kp_gp_new(const struct kp_space *space, const struct kp_features *f, size_t max,
                      bool with_side, struct kp_gp **out, kopt_error *err);
void kp_gp_free(struct kp_gp *g);

/* Without observations; what was learned stays. */
void kp_gp_clear(struct kp_gp *g);
/* Passed over when it is full. */
void kp_gp_add(struct kp_gp *g, const uint32_t *config, double side, double y);
/* Take the observations in (one at least), and `steps` steps towards better lengths. */
void kp_gp_learn(struct kp_gp *g, size_t steps, struct kp_rng *rng);
/* After kp_gp_learn(): a point whose result is on its way. It is taken to be what is expected,
 * which leaves all means as they are, and is known from then on. */
void kp_gp_believe(struct kp_gp *g, const uint32_t *config, double side);

/* After all of these. Means of `n` points, and upper bounds of their standard deviations; the
 * work for each is linear in the number of observations. side NULL: none. */
void kp_gp_guess(struct kp_gp *g, const uint32_t *configs, const double *side, size_t n,
                 double *mean, double *most);
/* The mean and the standard deviation of one; the work is quadratic. */
void kp_gp_predict(struct kp_gp *g, const uint32_t *config, double side, double *mean,
                   double *dev);

#endif
