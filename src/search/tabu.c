/* SPDX-License-Identifier: MIT */
/* Tabu search that learns which values are good. Layer: search.
 *
 * From a centre its neighbours (one value changed) are asked one after another, and the first
 * better one is the next centre. They come in the order of what the means over all results so
 * far say of their values, so most of a poor neighbourhood is never asked. When all are known,
 * the walk goes on at the best of them that was not a centre lately, though it is worse
 * (Glover, 1989), which costs nothing; after some of such steps it starts again, away from the
 * best point known (iterated local search) or anywhere. */
#include "base/alloc.h"
#include "search/walk.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    N_START = 12,   /* points of which the best is the first centre */
    MAX_NEAR = 256, /* neighbours looked at; of more, some at random */
    TENURE = 32,    /* centres that are not gone back to */
    PATIENCE = 3,   /* steps uphill in a row before a new start */
    FROM_BEST = 4,  /* of so many starts all but one are near the best point known */
    N_KICK = 3      /* steps away from it */
};
static const double doubt = 2;   /* results at the mean that each value begins with */
static const double noise = 0.2; /* of the order, in standard deviations of the costs */

/* A neighbour. */
struct change {
    uint32_t param;
    uint32_t value;
    double key;
};

struct tabu {
    struct kp_walk walk;
    uint32_t *centre;
    double cost; /* INFINITY: none yet */
    uint32_t *best;
    double best_cost;
    struct change near[MAX_NEAR];
    size_t n_near;
    size_t next; /* of these */
    uint64_t past[TENURE];
    size_t n_past;
    uint32_t epoch; /* the ticket of points that may be the first centre */
    int n_starts;   /* of these to be asked yet */
    bool kicked;    /* the others are near the best point */
    int stale;
    size_t *first; /* [n_params] where the parameter's values begin in */
    double *sums;  /* the costs' sums for each value, */
    double *counts;
    double sum; /* and for all */
    double squares;
    double count;
};

static void tabu_close(void *state)
{
    struct tabu *t = state;
    kp_walk_deinit(&t->walk);
    kp_free(t->centre);
    kp_free(t->best);
    kp_free(t->first);
    kp_free(t->sums);
    kp_free(t->counts);
    kp_free(t);
}

static kopt_status allocate(struct tabu *t, const struct kp_search_env *env, kopt_error *err)
{
    size_t n = 0;
    t->first = kp_calloc(env->n_params + 1, sizeof(*t->first));
    if (!t->first)
        return kp_err_nomem(err);
    for (size_t i = 0; i < env->n_params; i++) {
        t->first[i] = n;
        n += kp_space_param(env->space, i)->n_values;
    }
    t->sums = kp_calloc(n + 1, sizeof(*t->sums));
    t->counts = kp_calloc(n + 1, sizeof(*t->counts));
    t->centre = kp_calloc(env->n_params + 1, sizeof(*t->centre));
    t->best = kp_calloc(env->n_params + 1, sizeof(*t->best));
    if (!t->sums || !t->counts || !t->centre || !t->best)
        return kp_err_nomem(err);
    return kp_walk_init(&t->walk, env, err);
}

static kopt_status tabu_open(const struct kp_search_env *env, void **state, kopt_error *err)
{
    *state = NULL;
    struct tabu *t = kp_calloc(1, sizeof(*t));
    if (!t)
        return kp_err_nomem(err);
    t->cost = t->best_cost = (double)INFINITY;
    t->n_starts = N_START;
    kopt_status st = allocate(t, env, err);
    if (st == KOPT_OK)
        *state = t;
    else
        tabu_close(t);
    return st;
}

/* ---- what is known of values ---- */

static double mean_of(const struct tabu *t, uint32_t param, uint32_t value)
{
    size_t i = t->first[param] + value;
    double mean = t->count > 0 ? t->sum / t->count : 0;
    return (t->sums[i] + doubt * mean) / (t->counts[i] + doubt);
}

static void count(struct tabu *t, const uint32_t *config, double cost)
{
    const struct kp_search_env *env = t->walk.env;
    for (size_t i = 0; i < env->n_params; i++) {
        t->sums[t->first[i] + config[i]] += cost;
        t->counts[t->first[i] + config[i]] += 1;
    }
    t->sum += cost;
    t->squares += cost * cost;
    t->count += 1;
}

static double deviation(const struct tabu *t)
{
    double mean = t->count > 0 ? t->sum / t->count : 0;
    double variance = t->count > 0 ? t->squares / t->count - mean * mean : 0;
    return variance > 0 ? sqrt(variance) : 0;
}

/* ---- neighbours ---- */

static void add_near(struct tabu *t, uint32_t param, uint32_t value)
{
    const struct kp_search_env *env = t->walk.env;
    double gain = mean_of(t, param, value) - mean_of(t, param, t->centre[param]);
    double key = gain + noise * deviation(t) * kp_rng_f64(env->rng);
    size_t i = t->n_near++;
    for (; i > 0 && t->near[i - 1].key > key; i--)
        t->near[i] = t->near[i - 1];
    t->near[i] = (struct change){param, value, key};
}

static void list_near(struct tabu *t)
{
    const struct kp_search_env *env = t->walk.env;
    uint64_t all = 0;
    t->n_near = 0;
    t->next = 0;
    for (size_t i = 0; i < env->n_varied; i++)
        all += kp_space_param(env->space, env->varied[i])->n_values - 1;
    for (size_t i = 0; i < env->n_varied && all <= MAX_NEAR; i++) {
        uint32_t p = env->varied[i];
        for (uint32_t v = 0; v < kp_space_param(env->space, p)->n_values; v++) {
            if (v != t->centre[p])
                add_near(t, p, v);
        }
    }
    for (size_t i = 0; i < MAX_NEAR && all > MAX_NEAR; i++) {
        uint32_t p = env->varied[kp_rng_below(env->rng, env->n_varied)];
        uint32_t v = kp_walk_other(&t->walk, p, t->centre[p]);
        add_near(t, p, v);
    }
}

static void settle_at(struct tabu *t, const uint32_t *config, double cost)
{
    uint64_t rank = 0;
    if (config != t->centre)
        memcpy(t->centre, config, t->walk.env->n_params * sizeof(*config));
    t->cost = cost;
    if (kp_space_rank(t->walk.env->space, config, &rank))
        t->past[t->n_past++ % TENURE] = rank;
    list_near(t);
}

static bool is_past(const struct tabu *t, uint64_t rank)
{
    for (size_t i = 0; i < t->n_past && i < TENURE; i++) {
        if (t->past[i] == rank)
            return true;
    }
    return false;
}

/* To the best known neighbour that was no centre lately. False when there is none. */
static bool climb(struct tabu *t, uint32_t *config)
{
    const struct kp_search_env *env = t->walk.env;
    double least = (double)INFINITY;
    size_t found = t->n_near;
    memcpy(config, t->centre, env->n_params * sizeof(*config));
    for (size_t i = 0; i < t->n_near; i++) {
        uint64_t rank = 0;
        double cost = 0;
        config[t->near[i].param] = t->near[i].value;
        if (kp_space_rank(env->space, config, &rank) &&
            kp_cost_memo_get(&t->walk.memo, rank, &cost) && cost < least && !is_past(t, rank)) {
            least = cost;
            found = i;
        }
        config[t->near[i].param] = t->centre[t->near[i].param];
    }
    if (found == t->n_near)
        return false;
    t->centre[t->near[found].param] = t->near[found].value;
    settle_at(t, t->centre, least);
    return true;
}

/* Leave the centre. */
static void restart(struct tabu *t)
{
    t->epoch = (t->epoch + 1) % kp_walk_foreign;
    t->stale = 0;
    t->cost = (double)INFINITY;
    t->n_near = t->next = 0;
    t->kicked = isfinite(t->best_cost) && kp_rng_below(t->walk.env->rng, FROM_BEST);
    t->n_starts = t->kicked ? 0 : N_START;
}

/* A point that may be the first centre. */
static bool start(struct tabu *t, uint32_t *config)
{
    t->n_starts -= t->n_starts > 0;
    if (!t->kicked)
        return kp_walk_start(&t->walk, config);
    memcpy(config, t->best, t->walk.env->n_params * sizeof(*config));
    for (int i = 0; i < N_KICK; i++)
        kp_walk_step(&t->walk, config);
    return true;
}

/* The next fresh neighbour of the centre. */
static bool neighbour(struct tabu *t, uint32_t *config)
{
    size_t n_params = t->walk.env->n_params;
    memcpy(config, t->centre, n_params * sizeof(*config));
    while (t->next < t->n_near) {
        const struct change *c = &t->near[t->next++];
        double cost = 0;
        config[c->param] = c->value;
        enum kp_walk_state look = kp_walk_look(&t->walk, config, &cost);
        if (look == KP_WALK_FRESH)
            return true;
        if (look == KP_WALK_KNOWN && cost < t->cost) {
            settle_at(t, config, cost);
            continue;
        }
        config[c->param] = t->centre[c->param];
    }
    return false;
}

static bool tabu_propose(void *state, uint32_t *config)
{
    struct tabu *t = state;
    if (t->walk.env->n_varied == 0)
        return false;
    for (int i = 0; i < KP_WALK_FREE; i++) {
        double cost = 0;
        if (t->n_starts > 0 || !isfinite(t->cost)) {
            if (!start(t, config))
                return false;
        } else if (!neighbour(t, config)) {
            if (t->stale++ >= PATIENCE || !climb(t, config))
                restart(t);
            continue;
        }
        enum kp_walk_state look = kp_walk_look(&t->walk, config, &cost);
        if (look == KP_WALK_FRESH) {
            kp_walk_offer(&t->walk, config, t->epoch);
            return true;
        }
        if (look == KP_WALK_KNOWN && cost < t->cost)
            settle_at(t, config, cost);
    }
    return false;
}

static void tabu_asked(void *state, const uint32_t *config)
{
    struct tabu *t = state;
    kp_walk_asked(&t->walk, config);
}

static void tabu_learn(void *state, const uint32_t *config, double cost)
{
    struct tabu *t = state;
    uint32_t ticket = kp_walk_learn(&t->walk, &cost);
    if (!isfinite(cost))
        return;
    count(t, config, cost);
    if (cost < t->best_cost) {
        memcpy(t->best, config, t->walk.env->n_params * sizeof(*config));
        t->best_cost = cost;
        t->stale = 0;
    }
    if (cost < t->cost && (ticket == t->epoch || isfinite(t->cost)))
        settle_at(t, config, cost);
}

const struct kp_search_ops kp_strategy_tabu = {
    .open = tabu_open,
    .close = tabu_close,
    .propose = tabu_propose,
    .asked = tabu_asked,
    .learn = tabu_learn,
};
