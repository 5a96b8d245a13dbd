/* SPDX-License-Identifier: MIT */
#include "search/walk.h"

#include "base/alloc.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

/* As many as the pool keeps. */
static const size_t max_known = (size_t)1 << 19;

enum {
    N_STEP_TRIES = 4,   /* random steps before the space is asked which are valid */
    N_START_TRIES = 8,  /* places of a prior, before any configuration will do */
    START_ELSEWHERE = 5 /* one start in so many is not from a prior */
};
/* The better part of results from elsewhere: at most the first tenth, of costs within this
 * difference of logarithms of the best, a factor of 1.5. */
static const double better_log = 0.405465108108164382;

static uint32_t most_values(const struct kp_search_env *env)
{
    uint32_t most = 1;
    for (size_t i = 0; i < env->n_params; i++) {
        uint32_t n = kp_space_param(env->space, i)->n_values;
        most = n > most ? n : most;
    }
    return most;
}

static size_t better_part(const struct kp_prior *p)
{
    size_t n = 0;
    if (!p || !p->measured)
        return p ? p->n : 0;
    while (n < p->n / 10 && p->logp[n] > -better_log)
        n++;
    return n ? n : p->n > 0;
}

kopt_status kp_walk_init(struct kp_walk *w, const struct kp_search_env *env, kopt_error *err)
{
    *w = (struct kp_walk){.env = env, .memo = {.max = max_known}};
    w->n_better = better_part(env->prior);
    w->flight = kp_calloc(env->window, sizeof(*w->flight));
    w->fixed = kp_calloc(env->n_params + 1, sizeof(*w->fixed));
    w->allowed = kp_calloc(most_values(env), sizeof(*w->allowed));
    w->query = kp_calloc(kp_space_query_words(env->space) + 1, sizeof(*w->query));
    w->order = kp_calloc(env->n_varied + 1, sizeof(*w->order));
    if (!w->flight || !w->fixed || !w->allowed || !w->query || !w->order) {
        kp_walk_deinit(w);
        return kp_err_nomem(err);
    }
    memcpy(w->order, env->varied, env->n_varied * sizeof(*w->order));
    return KOPT_OK;
}

void kp_walk_deinit(struct kp_walk *w)
{
    kp_cost_memo_deinit(&w->memo);
    kp_free(w->flight);
    kp_free(w->fixed);
    kp_free(w->allowed);
    kp_free(w->query);
    kp_free(w->order);
    *w = (struct kp_walk){0};
}

enum kp_walk_state kp_walk_look(const struct kp_walk *w, const uint32_t *config, double *cost)
{
    uint64_t rank = 0;
    if (!kp_space_rank(w->env->space, config, &rank))
        return KP_WALK_INVALID;
    if (kp_pool_has(w->env->pool, rank))
        return KP_WALK_FRESH;
    return kp_cost_memo_get(&w->memo, rank, cost) ? KP_WALK_KNOWN : KP_WALK_BUSY;
}

void kp_walk_offer(struct kp_walk *w, const uint32_t *config, uint32_t ticket)
{
    w->offered.ticket = ticket;
    w->has_offer = kp_space_rank(w->env->space, config, &w->offered.rank);
}

void kp_walk_asked(struct kp_walk *w, const uint32_t *config)
{
    struct kp_walk_flight f = {.ticket = kp_walk_foreign};
    bool valid = kp_space_rank(w->env->space, config, &f.rank);
    if (valid && w->has_offer && w->offered.rank == f.rank)
        f.ticket = w->offered.ticket;
    w->has_offer = false;
    w->flight[(w->first + w->n++) % w->env->window] = f;
}

uint32_t kp_walk_learn(struct kp_walk *w, double *cost)
{
    struct kp_walk_flight f = w->flight[w->first];
    w->first = (w->first + 1) % w->env->window;
    w->n--;
    if (isfinite(*cost))
        *cost = kp_log2_portable(*cost);
    (void)kp_cost_memo_put(&w->memo, f.rank, *cost);
    return f.ticket;
}

bool kp_walk_start(struct kp_walk *w, uint32_t *config)
{
    const struct kp_search_env *env = w->env;
    uint64_t rank = 0;
    if (w->n_better && kp_rng_below(env->rng, START_ELSEWHERE)) {
        for (int i = 0; i < N_START_TRIES; i++) {
            uint64_t a = kp_rng_below(env->rng, w->n_better);
            uint64_t b = kp_rng_below(env->rng, w->n_better);
            size_t k = (size_t)(a < b ? a : b);
            if (!kp_pool_has(env->pool, env->prior->ranks[k]))
                continue;
            memcpy(config, env->prior->configs + k * env->n_params,
                   env->n_params * sizeof(*config));
            return true;
        }
    }
    return kp_pool_peek(env->pool, env->rng, &rank) &&
           kp_space_at(env->space, rank, config, NULL) == KOPT_OK;
}

bool kp_walk_ordered(const struct kp_walk *w, uint32_t param)
{
    enum kp_type t = kp_space_param(w->env->space, param)->type;
    return t == KP_INT || t == KP_FLOAT;
}

uint32_t kp_walk_other(const struct kp_walk *w, uint32_t param, uint32_t value)
{
    struct kp_rng *rng = w->env->rng;
    uint32_t n = kp_space_param(w->env->space, param)->n_values;
    if (n > 2 && kp_walk_ordered(w, param) && kp_rng_below(rng, 2)) {
        if (value == 0)
            return 1;
        return value + 1 == n || kp_rng_below(rng, 2) ? value - 1 : value + 1;
    }
    uint32_t v = (uint32_t)kp_rng_below(rng, n - 1);
    return v + (v >= value);
}

/* The parameter's value, or the nearest that is allowed beside those that are fixed. */
static void settle(struct kp_walk *w, uint32_t *config, uint32_t param)
{
    const struct kp_space *s = w->env->space;
    uint32_t n = kp_space_param(s, param)->n_values;
    (void)kp_space_allowed_in(s, config, w->fixed, param, w->allowed, w->query);
    for (uint32_t d = 0; d < n; d++) {
        uint32_t v = config[param];
        if (v >= d && w->allowed[v - d]) {
            config[param] = v - d;
            break;
        }
        if (v + d < n && w->allowed[v + d]) {
            config[param] = v + d;
            break;
        }
    }
    w->fixed[param] = 1;
}

static void shuffle(struct kp_walk *w)
{
    for (size_t i = w->env->n_varied; i > 1; i--) {
        size_t k = (size_t)kp_rng_below(w->env->rng, i);
        uint32_t p = w->order[i - 1];
        w->order[i - 1] = w->order[k];
        w->order[k] = p;
    }
}

void kp_walk_mend(struct kp_walk *w, uint32_t *config, uint32_t keep)
{
    const struct kp_search_env *env = w->env;
    uint64_t rank = 0;
    if (kp_space_rank(env->space, config, &rank))
        return;
    memset(w->fixed, 1, env->n_params);
    for (size_t i = 0; i < env->n_varied; i++)
        w->fixed[env->varied[i]] = 0;
    if (keep < env->n_params)
        settle(w, config, keep);
    shuffle(w);
    for (size_t i = 0; i < env->n_varied; i++) {
        if (!w->fixed[w->order[i]])
            settle(w, config, w->order[i]);
    }
}

void kp_walk_step(struct kp_walk *w, uint32_t *config)
{
    const struct kp_search_env *env = w->env;
    uint64_t rank = 0;
    uint32_t param = 0;
    uint32_t value = 0;
    for (int i = 0; i < N_STEP_TRIES; i++) {
        param = env->varied[kp_rng_below(env->rng, env->n_varied)];
        uint32_t old = config[param];
        value = kp_walk_other(w, param, old);
        config[param] = value;
        if (kp_space_rank(env->space, config, &rank))
            return;
        config[param] = old;
    }
    config[param] = value;
    kp_walk_mend(w, config, param);
}
