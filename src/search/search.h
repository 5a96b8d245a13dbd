/* SPDX-License-Identifier: MIT */
/* Search strategies behind ask and tell. Layer: search. Knows no device, no clock and no store.
 *
 * The session asks for configurations, measures several at once, and tells the results in the
 * order in which they were asked, so that a run is the same for a seed whatever finishes first:
 * ask number n is made when exactly max(0, n - window) results have been told. */
#ifndef KP_SEARCH_SEARCH_H
#define KP_SEARCH_SEARCH_H

#include "base/error.h"
#include "search/prior.h"
#include "space/space.h"

#include <stdbool.h>
#include <stdint.h>

struct kp_search;

struct kp_search_options {
    uint64_t seed;
    uint64_t budget;       /* evaluations that will be made at most; 0 = unknown. A hint */
    uint32_t window;       /* results that may be outstanding; at least 1 */
    const uint32_t *first; /* configuration to try first (n_params indices); NULL = none */
    /* Tried next, in its order; NULL = none. Made for the same space; outlives the search. */
    const struct kp_prior *prior;
    bool remaining; /* keep what kp_search_remaining() needs */
};

struct kp_strategy {
    const char *name;    /* "random" */
    const char *summary; /* one line */
};

/* The strategies there are; the first is the default. */
const struct kp_strategy *kp_search_list(size_t *n);

/* Errors: KOPT_EUSAGE (no such strategy; the hint lists them). */
kopt_status kp_search_known(const char *name, kopt_error *err);

/* `name` NULL = the default: exhaustive when the space is not larger than the budget (or the
 * budget is unknown and the space has at most 2,000 configurations), else the best strategy.
 * The space must outlive the search. Errors: KOPT_EUSAGE (no such strategy; the hint lists
 * them), KOPT_ENOMEM. */
kopt_status kp_search_new(const char *name, const struct kp_space *space,
                          const struct kp_search_options *o, struct kp_search **out,
                          kopt_error *err);
void kp_search_free(struct kp_search *s);
/* The strategy that is in charge, "random". */
const char *kp_search_name(const struct kp_search *s);

/* The next configuration to measure, never one that was asked before. False when every valid
 * configuration has been asked (or the strategy has nothing more to say), and when it must be
 * told more first: then *waiting is true. */
bool kp_search_ask(struct kp_search *s, uint32_t *config, bool *waiting);

/* The cost of the oldest configuration that was asked and not yet told: a time (positive,
 * finite), or INFINITY when it failed for any reason. */
void kp_search_tell(struct kp_search *s, double cost);

/* What the configurations that were not asked may still save, as an estimate: the expected
 * (best so far - best of all) / best so far. 0 when all have been told. NaN: not known, because
 * too few results were told, none of them is a success, or `remaining` was not set. It depends
 * on what was told alone, so a run that stops by it is the same for a seed. */
double kp_search_remaining(struct kp_search *s);

#endif
