/* SPDX-License-Identifier: MIT */
/* What the strategies that go from one configuration to the next have in common: knowing which
 * were measured, which are on their way, where to start, how to take a step and how to get back
 * among the valid ones. Layer: search. */
#ifndef KP_SEARCH_WALK_H
#define KP_SEARCH_WALK_H

#include "search/memo.h"
#include "search/strategy.h"

/* Looks that a strategy may take at configurations that need no measurement, for each ask. */
enum { KP_WALK_FREE = 64 };

enum kp_walk_state {
    KP_WALK_FRESH,   /* was not asked yet */
    KP_WALK_KNOWN,   /* its cost is known */
    KP_WALK_BUSY,    /* was asked, and is not known (yet) */
    KP_WALK_INVALID, /* not in the space */
};

static const uint32_t kp_walk_foreign = UINT32_MAX; /* the ticket of what others proposed */

/* Asked and not learned yet. */
struct kp_walk_flight {
    uint64_t rank;
    uint32_t ticket;
};

struct kp_walk {
    const struct kp_search_env *env;
    struct kp_cost_memo memo;
    struct kp_walk_flight *flight; /* a ring of env->window */
    size_t first;
    size_t n;
    struct kp_walk_flight offered; /* what kp_walk_offer() said last */
    bool has_offer;
    unsigned char *fixed;   /* [n_params] */
    unsigned char *allowed; /* [the most values of a parameter] */
    uint64_t *query;        /* memory for kp_space_allowed_in() */
    uint32_t *order;        /* [n_varied] parameters, being shuffled */
    size_t n_better;        /* of the prior, from which starts are drawn */
};

/* Errors: KOPT_ENOMEM. Owner: kp_walk_deinit(), which takes a zeroed one, too. */
kopt_status kp_walk_init(struct kp_walk *w, const struct kp_search_env *env, kopt_error *err);
void kp_walk_deinit(struct kp_walk *w);

/* Where KNOWN, *cost is the logarithm of the cost to base 2, or INFINITY. */
enum kp_walk_state kp_walk_look(const struct kp_walk *w, const uint32_t *config, double *cost);

/* Remember for kp_walk_learn() what the strategy wants to know of the configuration, which it
 * is about to propose. */
void kp_walk_offer(struct kp_walk *w, const uint32_t *config, uint32_t ticket);
/* What the strategy's asked() does. */
void kp_walk_asked(struct kp_walk *w, const uint32_t *config);
/* What its learn() does first: the ticket of the offer, kp_walk_foreign where there was none.
 * *cost becomes its logarithm to base 2, as which it is remembered; INFINITY stays. */
uint32_t kp_walk_learn(struct kp_walk *w, double *cost);

/* A fresh configuration to start from: mostly one of the better part of a prior, the first ones
 * more often; else any. False when none is left. */
bool kp_walk_start(struct kp_walk *w, uint32_t *config);

/* Another index of a parameter that has two at least: of an ordered one every other time the
 * next or the previous one, else any. */
uint32_t kp_walk_other(const struct kp_walk *w, uint32_t param, uint32_t value);

/* A neighbour of a valid configuration, in place: one parameter takes another value. Where
 * hardly any neighbour is valid, others change with it. May leave the configuration as it is.
 * n_varied must not be 0. */
void kp_walk_step(struct kp_walk *w, uint32_t *config);

/* Back to a valid configuration, as far as possible without changing any parameter twice; the
 * parameter `keep` (n_params: none) is the last to be given up. */
void kp_walk_mend(struct kp_walk *w, uint32_t *config, uint32_t keep);

/* Has it values with an order: numbers? */
bool kp_walk_ordered(const struct kp_walk *w, uint32_t param);

#endif
