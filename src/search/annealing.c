/* SPDX-License-Identifier: MIT */
/* Simulated annealing with restarts. Layer: search.
 *
 * Costs count by their logarithms, and the temperature in units of the mean step uphill, so the
 * same schedule fits every space. A worse point is accepted with probability
 * (1 + d / (8 t))^-8, the acceptance of generalised annealing (Tsallis and Stariolo, 1996) for
 * q = 9/8: close to exp(-d / t), and made of divisions and multiplications alone. A walk that
 * has not found a new best of its own for a while ends; the next begins, warm, at the best
 * point known or at the best of some others. */
#include "base/alloc.h"
#include "search/walk.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    N_START = 6,   /* points of which the best begins a walk */
    PATIENCE = 60, /* points without a new best of the walk, before it ends */
    FROM_BEST = 2, /* of so many walks all but one begin at the best point known */
    N_KICK = 2     /* steps away from it */
};
static const double hot = 0.25;  /* temperature of a first walk */
static const double warm = 0.12; /* of those that begin at the best */
static const double cool = 0.97; /* factor for each point looked at */

struct annealing {
    struct kp_walk walk;
    uint32_t *here; /* where the walk stands */
    double cost;    /* its logarithm; INFINITY: nowhere yet */
    uint32_t *best;
    double best_cost;
    double walk_best; /* of this walk */
    double uphill;    /* the sum of the steps uphill, */
    double n_uphill;  /* and their number */
    double t;
    uint32_t number; /* of this walk: the ticket of its points */
    int n_starts;    /* points still to be asked to begin with */
    int stale;       /* points since walk_best */
};

static void annealing_close(void *state)
{
    struct annealing *a = state;
    kp_walk_deinit(&a->walk);
    kp_free(a->here);
    kp_free(a->best);
    kp_free(a);
}

static kopt_status annealing_open(const struct kp_search_env *env, void **state,
                                  kopt_error *err)
{
    *state = NULL;
    struct annealing *a = kp_calloc(1, sizeof(*a));
    if (!a)
        return kp_err_nomem(err);
    a->here = kp_calloc(env->n_params + 1, sizeof(*a->here));
    a->best = kp_calloc(env->n_params + 1, sizeof(*a->best));
    a->cost = a->best_cost = a->walk_best = (double)INFINITY;
    a->t = hot;
    a->n_starts = N_START;
    kopt_status st = kp_walk_init(&a->walk, env, err);
    if (st == KOPT_OK && !(a->here && a->best))
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        *state = a;
    else
        annealing_close(a);
    return st;
}

static void go(struct annealing *a, const uint32_t *config, double cost)
{
    memcpy(a->here, config, a->walk.env->n_params * sizeof(*config));
    a->cost = cost;
}

static bool accepts(struct annealing *a, double cost)
{
    double d = cost - a->cost;
    if (!(d > 0))
        return true;
    if (!isfinite(d))
        return false;
    a->uphill += d;
    a->n_uphill += 1;
    double p = 1 / (1 + d / (8 * a->t * (a->uphill / a->n_uphill)));
    p *= p;
    p *= p;
    p *= p;
    return kp_rng_f64(a->walk.env->rng) < p;
}

/* A point whose cost is known, next to where the walk stands. */
static void consider(struct annealing *a, const uint32_t *config, double cost)
{
    a->stale++;
    if (cost < a->walk_best) {
        a->walk_best = cost;
        a->stale = 0;
    }
    if (accepts(a, cost))
        go(a, config, cost);
    a->t *= cool;
}

static void begin(struct annealing *a)
{
    struct kp_search_env const *env = a->walk.env;
    a->number = (a->number + 1) % kp_walk_foreign;
    a->stale = 0;
    if (isfinite(a->best_cost) && kp_rng_below(env->rng, FROM_BEST)) {
        go(a, a->best, a->best_cost);
        for (int i = 0; i < N_KICK; i++)
            kp_walk_step(&a->walk, a->here);
        double cost = 0;
        if (kp_walk_look(&a->walk, a->here, &cost) == KP_WALK_KNOWN)
            a->cost = cost;
        a->t = warm;
    } else {
        a->cost = (double)INFINITY;
        a->n_starts = N_START;
        a->t = hot;
    }
    a->walk_best = a->cost;
}

static bool annealing_propose(void *state, uint32_t *config)
{
    struct annealing *a = state;
    const struct kp_search_env *env = a->walk.env;
    if (env->n_varied == 0)
        return false;
    if (a->stale > PATIENCE)
        begin(a);
    for (int i = 0; i < KP_WALK_FREE; i++) {
        double cost = 0;
        if (a->n_starts > 0 || !isfinite(a->cost)) {
            a->n_starts -= a->n_starts > 0;
            if (!kp_walk_start(&a->walk, config))
                return false;
        } else {
            memcpy(config, a->here, env->n_params * sizeof(*config));
            kp_walk_step(&a->walk, config);
        }
        enum kp_walk_state look = kp_walk_look(&a->walk, config, &cost);
        if (look == KP_WALK_FRESH) {
            kp_walk_offer(&a->walk, config, a->number);
            return true;
        }
        if (look == KP_WALK_KNOWN)
            consider(a, config, cost);
    }
    begin(a);
    return false;
}

static void annealing_asked(void *state, const uint32_t *config)
{
    struct annealing *a = state;
    kp_walk_asked(&a->walk, config);
}

static void annealing_learn(void *state, const uint32_t *config, double cost)
{
    struct annealing *a = state;
    uint32_t ticket = kp_walk_learn(&a->walk, &cost);
    if (cost < a->best_cost) {
        memcpy(a->best, config, a->walk.env->n_params * sizeof(*config));
        a->best_cost = cost;
        a->stale = 0;
    }
    if (a->n_starts > 0 && ticket == a->number) {
        if (cost < a->cost)
            go(a, config, cost);
    } else if (ticket == a->number || cost < a->cost) {
        consider(a, config, cost);
    }
}

const struct kp_search_ops kp_strategy_annealing = {
    .open = annealing_open,
    .close = annealing_close,
    .propose = annealing_propose,
    .asked = annealing_asked,
    .learn = annealing_learn,
};
