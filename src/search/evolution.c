/* SPDX-License-Identifier: MIT */
/* Differential evolution for mixed and discrete spaces. Layer: search.
 *
 * Steady state: a trial takes the place of its target when it is better, whenever its result
 * comes in. Trials are current-to-best/1 (Price, Storn and Lampinen, 2005): from the target
 * towards the best, plus a difference of two others. For numbers, over the indices of their
 * values, rounded at random to either side; a value without an order is taken over from one of
 * the others with the factor as its probability. The factor and the crossover rate live with
 * each member and change with probability 1/10 (Brest et al., 2006), so they adapt to the space
 * without being told. */
#include "base/alloc.h"
#include "search/walk.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    N_POP = 16,
    N_LEVELS = 16, /* of the factor and of the rate */
    RENEW = 10     /* one in so many gets a new factor, or a new rate */
};
static const double least_factor = 0.1; /* and 1 at most */

/* Of a member, and in the ticket of its trial. */
struct control {
    uint32_t factor; /* 0 .. N_LEVELS - 1 */
    uint32_t rate;
};

struct evolution {
    struct kp_walk walk;
    uint32_t *configs; /* [N_POP] */
    double costs[N_POP];
    struct control controls[N_POP];
    size_t n;
    size_t n_started;
    size_t target; /* next */
};

static void evolution_close(void *state)
{
    struct evolution *e = state;
    kp_walk_deinit(&e->walk);
    kp_free(e->configs);
    kp_free(e);
}

static kopt_status evolution_open(const struct kp_search_env *env, void **state,
                                  kopt_error *err)
{
    *state = NULL;
    struct evolution *e = kp_calloc(1, sizeof(*e));
    if (!e)
        return kp_err_nomem(err);
    e->configs = kp_calloc(N_POP * env->n_params + 1, sizeof(*e->configs));
    kopt_status st = kp_walk_init(&e->walk, env, err);
    if (st == KOPT_OK && !e->configs)
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        *state = e;
    else
        evolution_close(e);
    return st;
}

static uint32_t *member(const struct evolution *e, size_t i)
{
    return e->configs + i * e->walk.env->n_params;
}

static size_t best_of(const struct evolution *e)
{
    size_t k = 0;
    for (size_t i = 1; i < e->n; i++)
        k = e->costs[i] < e->costs[k] ? i : k;
    return k;
}

static struct control renew(const struct evolution *e, size_t target)
{
    struct kp_rng *rng = e->walk.env->rng;
    struct control c = e->controls[target];
    if (kp_rng_below(rng, RENEW) == 0)
        c.factor = (uint32_t)kp_rng_below(rng, N_LEVELS);
    if (kp_rng_below(rng, RENEW) == 0)
        c.rate = (uint32_t)kp_rng_below(rng, N_LEVELS);
    return c;
}

/* `at` moved by `by`, to an index at random on either side; past an end, to half way there. */
static uint32_t moved(struct kp_rng *rng, uint32_t at, double by, uint32_t n)
{
    double x = (double)at + by + kp_rng_f64(rng);
    if (x < 0)
        return at / 2;
    return x < (double)n ? (uint32_t)x : (uint32_t)((at + n) / 2);
}

static void trial(struct evolution *e, size_t target, struct control c, uint32_t *config)
{
    const struct kp_search_env *env = e->walk.env;
    const uint32_t *x = member(e, target);
    const uint32_t *best = member(e, best_of(e));
    const uint32_t *a = member(e, (size_t)kp_rng_below(env->rng, e->n));
    const uint32_t *b = member(e, (size_t)kp_rng_below(env->rng, e->n));
    double factor = least_factor + (1 - least_factor) * (c.factor + 1) / N_LEVELS;
    double rate = (double)(c.rate + 1) / N_LEVELS;
    size_t sure = (size_t)kp_rng_below(env->rng, env->n_varied);
    memcpy(config, x, env->n_params * sizeof(*config));
    for (size_t i = 0; i < env->n_varied; i++) {
        uint32_t p = env->varied[i];
        double by = (double)best[p] - (double)x[p] + (double)a[p] - (double)b[p];
        if (i != sure && !(kp_rng_f64(env->rng) < rate))
            continue;
        if (kp_walk_ordered(&e->walk, p)) {
            config[p] =
                moved(env->rng, x[p], factor * by, kp_space_param(env->space, p)->n_values);
            continue;
        }
        if (kp_rng_f64(env->rng) < factor)
            config[p] = best[p];
        if (a[p] != b[p] && kp_rng_f64(env->rng) < factor)
            config[p] = a[p];
    }
    kp_walk_mend(&e->walk, config, (uint32_t)env->n_params);
}

static bool evolution_propose(void *state, uint32_t *config)
{
    struct evolution *e = state;
    if (e->walk.env->n_varied == 0)
        return false;
    if (e->n_started < N_POP || e->n < 4)
        return kp_walk_start(&e->walk, config);
    size_t target = e->target++ % e->n;
    struct control c = renew(e, target);
    for (int i = 0; i < KP_WALK_FREE; i++) {
        double cost = 0;
        if (i % 4 == 0)
            trial(e, target, c, config);
        else
            kp_walk_step(&e->walk, config);
        if (kp_walk_look(&e->walk, config, &cost) != KP_WALK_FRESH)
            continue;
        kp_walk_offer(&e->walk, config,
                      (uint32_t)((target * N_LEVELS + c.factor) * N_LEVELS + c.rate));
        return true;
    }
    return false;
}

static void evolution_asked(void *state, const uint32_t *config)
{
    struct evolution *e = state;
    kp_walk_asked(&e->walk, config);
    e->n_started++;
}

static size_t worst(const struct evolution *e)
{
    size_t k = 0;
    for (size_t i = 1; i < e->n; i++)
        k = e->costs[i] > e->costs[k] ? i : k;
    return k;
}

static void evolution_learn(void *state, const uint32_t *config, double cost)
{
    struct evolution *e = state;
    struct kp_rng *rng = e->walk.env->rng;
    uint32_t ticket = kp_walk_learn(&e->walk, &cost);
    size_t k = worst(e);
    struct control c = {(uint32_t)kp_rng_below(rng, N_LEVELS),
                        (uint32_t)kp_rng_below(rng, N_LEVELS)};
    if (!isfinite(cost))
        return;
    if (ticket != kp_walk_foreign) {
        k = ticket / (N_LEVELS * N_LEVELS);
        c = (struct control){ticket / N_LEVELS % N_LEVELS, ticket % N_LEVELS};
    } else if (e->n < N_POP) {
        k = e->n++;
        e->costs[k] = (double)INFINITY;
    }
    if (!(cost < e->costs[k]))
        return;
    e->costs[k] = cost;
    e->controls[k] = c;
    memcpy(member(e, k), config, e->walk.env->n_params * sizeof(*config));
}

const struct kp_search_ops kp_strategy_evolution = {
    .open = evolution_open,
    .close = evolution_close,
    .propose = evolution_propose,
    .asked = evolution_asked,
    .learn = evolution_learn,
};
