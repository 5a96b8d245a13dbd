/* SPDX-License-Identifier: MIT */
/* What a strategy is made of. Layer: search; not for other layers.
 *
 * The common part (search.c) keeps the ranks that were asked, hands out the first
 * configuration and those of a prior, delivers results in the order of asking and draws at
 * random where a strategy has nothing in mind. A strategy only proposes and learns. To add one:
 * a file with its kp_strategy_* table and a line in KP_STRATEGY_MAP. */
#ifndef KP_SEARCH_STRATEGY_H
#define KP_SEARCH_STRATEGY_H

#include "base/error.h"
#include "base/rng.h"
#include "search/pool.h"
#include "search/prior.h"
#include "space/space.h"

/* id, name, one line; the first is the default. */
#define KP_STRATEGY_MAP(X)                                                                  \
    X(bayes, "bayes", "learns where good configurations are: a Gaussian process and trees") \
    X(portfolio, "portfolio", "the others in turn, by what they have earned (bandit)")      \
    X(genetic, "genetic", "children of the best, one at a time (steady state)")             \
    X(evolution, "evolution", "differential evolution over indices, adapting itself")       \
    X(swarm, "swarm", "particles that mix their best with the swarm's")                     \
    X(annealing, "annealing", "steps to neighbours, uphill ever less often, with restarts") \
    X(tabu, "tabu", "neighbours by what is known of their values, with restarts")           \
    X(exhaustive, "exhaustive",                                                             \
      "every configuration, in an order that covers the space evenly")                      \
    X(random, "random", "uniform without repetition")

/* What a strategy works with; it lives as long as the strategy's state. */
struct kp_search_env {
    const struct kp_space *space;
    size_t n_params;
    const uint32_t *varied; /* the parameters that have more than one value */
    size_t n_varied;
    struct kp_pool *pool; /* what is left; strategies look, only the common part takes */
    struct kp_rng *rng;
    uint32_t window;
    const struct kp_prior *prior; /* NULL = none */
    size_t n_given; /* asks that are answered before the strategy is asked: the first
                       configuration and the prior's; not in the pool any more */
};

struct kp_search_ops {
    /* Owner: *state is freed by close(). Errors: KOPT_ENOMEM. May be NULL with close(). */
    kopt_status (*open)(const struct kp_search_env *env, void **state, kopt_error *err);
    void (*close)(void *state);
    /* A valid configuration that is still in the pool; false = nothing in mind, draw one. NULL:
     * always draw. Cannot fail: memory is taken in open(). */
    bool (*propose)(void *state, uint32_t *config);
    /* `config` has been handed out, whoever chose it. May be NULL. */
    void (*asked)(void *state, const uint32_t *config);
    /* The result of the oldest configuration handed out and not yet learned: a time, or
     * INFINITY. May be NULL. */
    void (*learn)(void *state, const uint32_t *config, double cost);
};

#define X(id, name, summary) extern const struct kp_search_ops kp_strategy_##id;
KP_STRATEGY_MAP(X)
#undef X

#endif
