/* SPDX-License-Identifier: MIT */
/* What somebody expects of a space before anything is measured: a list of configurations, the
 * most promising first. Layer: search. Where the expectation comes from (a model, an expert,
 * results on another device or for another problem) the search does not know.
 *
 * The common part of a search hands the first `n_first` of the list out before it asks the
 * strategy, so a bad list costs that many; a strategy finds all of it in its environment and
 * may make more of it: bayes.c learns from it how the space may look. */
#ifndef KP_SEARCH_PRIOR_H
#define KP_SEARCH_PRIOR_H

#include "base/error.h"
#include "space/space.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KP_PRIOR_MAX = 65536,
    KP_PRIOR_FIRST =
        10 /* of results from elsewhere that are tried first, unless said otherwise */
};

struct kp_prior {
    size_t n_params;
    size_t max;
    size_t n;
    size_t n_first;    /* of these, handed out first; kp_prior_init() says all */
    uint32_t *configs; /* [n][n_params]: valid, distinct */
    double *logp;      /* [n]: natural logarithm of the probability to be good, as its source
                          sees it; of one that was measured elsewhere, of the best's cost over
                          its cost there, -INFINITY where it failed. The order, which may weigh
                          more than that, is what counts */
    uint64_t *ranks;   /* [n] in the space */
    bool measured;     /* results from elsewhere, good and bad ones */
    uint32_t *slots;   /* hash table of places + 1 */
    size_t n_slots;    /* a power of two */
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
size_t kp_prior_find(const struct kp_prior *p, const struct kp_space *space,
                     const uint32_t *config);

/* Results from elsewhere. */
struct kp_results {
    const uint32_t *configs; /* [n][n_params] in the space's indices; those that are not valid
                                there are passed over, of several alike the cheapest counts */
    const double *costs;     /* [n]: positive; INFINITY = failed */
    size_t n;
};
/* The cheapest first; failures are never among the first.
 * Of more than KP_PRIOR_MAX the cheaper half of that and, of the rest,
 * evenly chosen ones. A prior without any is no error. Owner: kp_prior_deinit(). Errors:
 * KOPT_ENOMEM. */
kopt_status kp_prior_of_results(struct kp_prior *p, const struct kp_space *space,
                                const struct kp_results *results, size_t n_first,
                                kopt_error *err);

#endif
