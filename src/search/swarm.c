/* SPDX-License-Identifier: MIT */
/* Geometric particle swarm. Layer: search.
 *
 * A particle's next place is a mixture of where it is, of its own best and of the swarm's best,
 * value by value with the weights as probabilities, then perturbed: particle swarm optimisation
 * carried over to spaces whose distance is the number of differing values (Moraglio, Di Chio
 * and Poli, 2007). Particles do not wait for their results, which move their best places when
 * they come in. A place that was measured before is passed through at no cost. */
#include "base/alloc.h"
#include "search/walk.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    N_PARTICLES = 12,
    W_HERE = 1, /* weights */
    W_OWN = 3,
    W_BEST = 4,
    PERTURB_ONE_OF = 2 /* one place in so many is left as mixed */
};

struct swarm {
    struct kp_walk walk;
    uint32_t *here; /* [N_PARTICLES] */
    uint32_t *own;  /* [N_PARTICLES] */
    double costs[N_PARTICLES];
    size_t n;
    size_t n_started;
    size_t next;
};

static void swarm_close(void *state)
{
    struct swarm *s = state;
    kp_walk_deinit(&s->walk);
    kp_free(s->here);
    kp_free(s->own);
    kp_free(s);
}

static kopt_status swarm_open(const struct kp_search_env *env, void **state, kopt_error *err)
{
    *state = NULL;
    struct swarm *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->here = kp_calloc(N_PARTICLES * env->n_params + 1, sizeof(*s->here));
    s->own = kp_calloc(N_PARTICLES * env->n_params + 1, sizeof(*s->own));
    kopt_status st = kp_walk_init(&s->walk, env, err);
    if (st == KOPT_OK && !(s->here && s->own))
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        *state = s;
    else
        swarm_close(s);
    return st;
}

static size_t extreme(const struct swarm *s, bool most)
{
    size_t k = 0;
    for (size_t i = 1; i < s->n; i++)
        k = (most ? s->costs[i] > s->costs[k] : s->costs[i] < s->costs[k]) ? i : k;
    return k;
}

static void move(struct swarm *s, size_t particle, uint32_t *config)
{
    const struct kp_search_env *env = s->walk.env;
    const uint32_t *here = s->here + particle * env->n_params;
    const uint32_t *own = s->own + particle * env->n_params;
    const uint32_t *best = s->own + extreme(s, false) * env->n_params;
    for (size_t i = 0; i < env->n_params; i++) {
        uint64_t r = kp_rng_below(env->rng, W_HERE + W_OWN + W_BEST);
        config[i] = r < W_HERE ? here[i] : r < W_HERE + W_OWN ? own[i] : best[i];
    }
    kp_walk_mend(&s->walk, config, (uint32_t)env->n_params);
    while (kp_rng_below(env->rng, PERTURB_ONE_OF))
        kp_walk_step(&s->walk, config);
}

static bool swarm_propose(void *state, uint32_t *config)
{
    struct swarm *s = state;
    const struct kp_search_env *env = s->walk.env;
    if (env->n_varied == 0)
        return false;
    if (s->n_started < N_PARTICLES || s->n < 2)
        return kp_walk_start(&s->walk, config);
    size_t particle = s->next++ % s->n;
    for (int i = 0; i < KP_WALK_FREE; i++) {
        double cost = 0;
        if (i % 4 == 0)
            move(s, particle, config);
        else
            kp_walk_step(&s->walk, config);
        enum kp_walk_state look = kp_walk_look(&s->walk, config, &cost);
        if (look == KP_WALK_FRESH || look == KP_WALK_KNOWN)
            memcpy(s->here + particle * env->n_params, config, env->n_params * sizeof(*config));
        if (look != KP_WALK_FRESH)
            continue;
        kp_walk_offer(&s->walk, config, (uint32_t)particle);
        return true;
    }
    return false;
}

static void swarm_asked(void *state, const uint32_t *config)
{
    struct swarm *s = state;
    kp_walk_asked(&s->walk, config);
    s->n_started++;
}

static void swarm_learn(void *state, const uint32_t *config, double cost)
{
    struct swarm *s = state;
    const struct kp_search_env *env = s->walk.env;
    size_t size = env->n_params * sizeof(*config);
    uint32_t ticket = kp_walk_learn(&s->walk, &cost);
    size_t k = ticket;
    if (!isfinite(cost))
        return;
    if (ticket == kp_walk_foreign && s->n < N_PARTICLES) {
        k = s->n++;
        s->costs[k] = (double)INFINITY;
        memcpy(s->here + k * env->n_params, config, size);
    } else if (ticket == kp_walk_foreign) {
        k = extreme(s, true);
    }
    if (!(cost < s->costs[k]))
        return;
    s->costs[k] = cost;
    memcpy(s->own + k * env->n_params, config, size);
}

const struct kp_search_ops kp_strategy_swarm = {
    .open = swarm_open,
    .close = swarm_close,
    .propose = swarm_propose,
    .asked = swarm_asked,
    .learn = swarm_learn,
};
