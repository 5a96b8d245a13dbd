/* SPDX-License-Identifier: MIT */
/* A steady-state genetic algorithm. Layer: search.
 *
 * One child at a time, and it takes the place of the worst (Whitley, 1989): there are no
 * generations to wait for. Parents win tournaments, a child has each value from one of two, and
 * some are then changed by a step to a neighbour. A child that was measured before costs
 * nothing: it is changed further until it is new, so a population that has converged searches
 * wider and wider around itself. */
#include "base/alloc.h"
#include "search/walk.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    N_POP = 12,
    N_TOURNAMENT = 4,
    MUTATE_ONE_OF = 2, /* a child in so many is not changed though it is new */
};

struct genetic {
    struct kp_walk walk;
    uint32_t *configs; /* [N_POP] */
    double costs[N_POP];
    size_t n;
    size_t n_started; /* asks up to here were starts */
};

static void genetic_close(void *state)
{
    struct genetic *g = state;
    kp_walk_deinit(&g->walk);
    kp_free(g->configs);
    kp_free(g);
}

static kopt_status genetic_open(const struct kp_search_env *env, void **state, kopt_error *err)
{
    *state = NULL;
    struct genetic *g = kp_calloc(1, sizeof(*g));
    if (!g)
        return kp_err_nomem(err);
    g->configs = kp_calloc(N_POP * env->n_params + 1, sizeof(*g->configs));
    kopt_status st = kp_walk_init(&g->walk, env, err);
    if (st == KOPT_OK && !g->configs)
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        *state = g;
    else
        genetic_close(g);
    return st;
}

static const uint32_t *member(const struct genetic *g, size_t i)
{
    return g->configs + i * g->walk.env->n_params;
}

static size_t parent(const struct genetic *g)
{
    size_t best = (size_t)kp_rng_below(g->walk.env->rng, g->n);
    for (int i = 1; i < N_TOURNAMENT; i++) {
        size_t k = (size_t)kp_rng_below(g->walk.env->rng, g->n);
        best = g->costs[k] < g->costs[best] ? k : best;
    }
    return best;
}

static void cross(struct genetic *g, uint32_t *child)
{
    const struct kp_search_env *env = g->walk.env;
    const uint32_t *a = member(g, parent(g));
    const uint32_t *b = member(g, parent(g));
    for (size_t i = 0; i < env->n_params; i++)
        child[i] = kp_rng_u64(env->rng) >> 63 ? a[i] : b[i];
    kp_walk_mend(&g->walk, child, (uint32_t)env->n_params);
    while (kp_rng_below(env->rng, MUTATE_ONE_OF))
        kp_walk_step(&g->walk, child);
}

static bool genetic_propose(void *state, uint32_t *config)
{
    struct genetic *g = state;
    if (g->walk.env->n_varied == 0)
        return false;
    if (g->n_started < N_POP || g->n < 2)
        return kp_walk_start(&g->walk, config);
    cross(g, config);
    for (int i = 0; i < KP_WALK_FREE; i++) {
        double cost = 0;
        if (kp_walk_look(&g->walk, config, &cost) == KP_WALK_FRESH)
            return true;
        if (i % 4 == 3)
            cross(g, config);
        else
            kp_walk_step(&g->walk, config);
    }
    return false;
}

static void genetic_asked(void *state, const uint32_t *config)
{
    struct genetic *g = state;
    kp_walk_asked(&g->walk, config);
    g->n_started++;
}

static size_t worst(const struct genetic *g)
{
    size_t k = 0;
    for (size_t i = 1; i < g->n; i++)
        k = g->costs[i] > g->costs[k] ? i : k;
    return k;
}

static void genetic_learn(void *state, const uint32_t *config, double cost)
{
    struct genetic *g = state;
    (void)kp_walk_learn(&g->walk, &cost);
    if (!isfinite(cost))
        return;
    size_t k = g->n < N_POP ? g->n : worst(g);
    if (k < g->n && !(cost < g->costs[k]))
        return;
    g->n += k == g->n;
    g->costs[k] = cost;
    memcpy(g->configs + k * g->walk.env->n_params, config,
           g->walk.env->n_params * sizeof(*config));
}

const struct kp_search_ops kp_strategy_genetic = {
    .open = genetic_open,
    .close = genetic_close,
    .propose = genetic_propose,
    .asked = genetic_asked,
    .learn = genetic_learn,
};
