/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include "base/alloc.h"
#include "search/pool.h"
#include "search/remain.h"
#include "search/strategy.h"

#include <math.h>
#include <string.h>

enum { MAX_WINDOW = 65536, SMALL_SPACE = 2000 };

/* Ranks remembered one by one. The pool's tables hold at most three entries of 16 bytes for
 * each, and are at least 3/8 full: 64 MiB. */
static const uint64_t max_kept = UINT64_C(1) << 19;

static const struct kp_strategy strategies[] = {
#define X(id, name, summary) {name, summary},
    KP_STRATEGY_MAP(X)
#undef X
};

static const struct kp_search_ops *const tables[] = {
#define X(id, name, summary) &kp_strategy_##id,
    KP_STRATEGY_MAP(X)
#undef X
};

enum { N_STRATEGIES = sizeof(strategies) / sizeof(strategies[0]) };

/* A configuration handed out, from its ask until the strategy learned of it. */
struct pending {
    double cost;
    bool told;
};

struct kp_search {
    size_t strategy;
    struct kp_search_env env;
    struct kp_rng rng;
    struct kp_pool *pool;
    void *state;
    uint32_t *varied;
    uint32_t *given;      /* env.n_given configurations that are handed out first */
    size_t n_handed;      /* of these */
    struct pending *ring; /* of `window` entries; number i is at i % window */
    uint32_t *configs;    /* the ring's configurations */
    uint64_t n_asked;
    uint64_t n_told;
    uint64_t n_learned;
    struct kp_remain *remain; /* NULL: nobody asks for it */
};

const struct kp_strategy *kp_search_list(size_t *n)
{
    *n = N_STRATEGIES;
    return strategies;
}

const char *kp_search_name(const struct kp_search *s)
{
    return strategies[s->strategy].name;
}

static kopt_status find_strategy(const char *name, size_t *out, kopt_error *err)
{
    for (size_t i = 0; i < N_STRATEGIES; i++) {
        if (strcmp(strategies[i].name, name) == 0) {
            *out = i;
            return KOPT_OK;
        }
    }
    kopt_status st = kp_err(err, KOPT_EUSAGE, "there is no search strategy \"%s\"", name);
    char names[256];
    size_t len = 0;
    for (size_t i = 0; i < N_STRATEGIES; i++) {
        size_t n = strlen(strategies[i].name);
        if (len + n + 3 > sizeof(names))
            break;
        memcpy(names + len, i ? ", " : "", i ? 2 : 0);
        len += i ? 2 : 0;
        memcpy(names + len, strategies[i].name, n);
        len += n;
    }
    names[len] = '\0';
    kp_err_hint(err, "strategies: %s", names);
    return st;
}

kopt_status kp_search_known(const char *name, kopt_error *err)
{
    size_t i = 0;
    return find_strategy(name, &i, err);
}

static kopt_status choose(const char *name, uint64_t count, uint64_t budget, size_t *out,
                          kopt_error *err)
{
    if (!name) {
        bool all = budget ? count <= budget : count <= SMALL_SPACE;
        name = all ? "exhaustive" : strategies[0].name;
    }
    return find_strategy(name, out, err);
}

/* To those that are handed out first, unless it is one of them already. */
static kopt_status give(struct kp_search *s, const uint32_t *config, kopt_error *err)
{
    uint64_t rank = 0;
    size_t n_params = s->env.n_params;
    if (!kp_space_rank(s->env.space, config, &rank) || !kp_pool_has(s->pool, rank))
        return KOPT_OK;
    if (!kp_pool_take(s->pool, rank)) /* it could not be written down */
        return kp_err_nomem(err);
    memcpy(s->given + s->env.n_given++ * n_params, config, n_params * sizeof(*config));
    return KOPT_OK;
}

static size_t n_first(const struct kp_prior *p)
{
    return p->n_first < p->n ? p->n_first : p->n;
}

static kopt_status give_all(struct kp_search *s, const struct kp_search_options *o,
                            kopt_error *err)
{
    size_t n_params = s->env.n_params;
    size_t n = o->prior ? n_first(o->prior) : 0;
    s->given = kp_calloc((n + 1) * n_params + 1, sizeof(*s->given));
    if (!s->given)
        return kp_err_nomem(err);
    kopt_status st = o->first ? give(s, o->first, err) : KOPT_OK;
    for (size_t i = 0; i < n && st == KOPT_OK; i++)
        st = give(s, o->prior->configs + i * n_params, err);
    return st;
}

/* The memory of a search, its pool and its first configurations. */
static kopt_status prepare(struct kp_search *s, const struct kp_space *space,
                           const struct kp_search_options *o, kopt_error *err)
{
    size_t n_params = kp_space_n_params(space);
    s->ring = kp_calloc(o->window, sizeof(*s->ring));
    s->configs = kp_calloc((size_t)o->window * n_params + 1, sizeof(*s->configs));
    s->varied = kp_calloc(n_params + 1, sizeof(*s->varied));
    if (!s->ring || !s->configs || !s->varied)
        return kp_err_nomem(err);
    kp_rng_init(&s->rng, o->seed);
    kopt_status st =
        kp_pool_new(kp_space_count(space), kp_rng_u64(&s->rng), max_kept, &s->pool, err);
    if (st != KOPT_OK)
        return st;
    s->env = (struct kp_search_env){.space = space,
                                    .n_params = n_params,
                                    .varied = s->varied,
                                    .pool = s->pool,
                                    .rng = &s->rng,
                                    .window = o->window,
                                    .prior = o->prior};
    for (size_t i = 0; i < n_params; i++) {
        if (kp_space_param(space, i)->n_values > 1)
            s->varied[s->env.n_varied++] = (uint32_t)i;
    }
    return give_all(s, o, err);
}

kopt_status kp_search_new(const char *name, const struct kp_space *space,
                          const struct kp_search_options *o, struct kp_search **out,
                          kopt_error *err)
{
    *out = NULL;
    if (o->window == 0 || o->window > MAX_WINDOW)
        return kp_err(err, KOPT_EUSAGE, "the window must be 1 to %d", MAX_WINDOW);
    size_t strategy = 0;
    kopt_status st = choose(name, kp_space_count(space), o->budget, &strategy, err);
    if (st != KOPT_OK)
        return st;
    struct kp_search *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->strategy = strategy;
    const struct kp_search_ops *ops = tables[strategy];
    st = prepare(s, space, o, err);
    if (st == KOPT_OK && o->remaining)
        st = kp_remain_new(space, o->seed, &s->remain, err);
    if (st == KOPT_OK && ops->open)
        st = ops->open(&s->env, &s->state, err);
    if (st == KOPT_OK) {
        *out = s;
        s = NULL;
    }
    kp_search_free(s);
    return st;
}

void kp_search_free(struct kp_search *s)
{
    if (!s)
        return;
    const struct kp_search_ops *ops = tables[s->strategy];
    if (ops->close && s->state)
        ops->close(s->state);
    kp_remain_free(s->remain);
    kp_pool_free(s->pool);
    kp_free(s->varied);
    kp_free(s->given);
    kp_free(s->ring);
    kp_free(s->configs);
    kp_free(s);
}

static uint32_t *ring_config(const struct kp_search *s, uint64_t number)
{
    return s->configs + (size_t)(number % s->env.window) * s->env.n_params;
}

/* Let the strategy learn exactly the results that ask number n_asked + 1 may know of. False
 * when one of them has not been told. */
static bool deliver(struct kp_search *s)
{
    const struct kp_search_ops *ops = tables[s->strategy];
    while (s->n_learned + s->env.window < s->n_asked + 1) {
        const struct pending *p = &s->ring[s->n_learned % s->env.window];
        if (!p->told)
            return false;
        if (ops->learn)
            ops->learn(s->state, ring_config(s, s->n_learned), p->cost);
        s->n_learned++;
    }
    return true;
}

/* The next configuration, taken out of the pool. False when the pool is empty. */
static bool next(struct kp_search *s, uint32_t *config)
{
    const struct kp_search_ops *ops = tables[s->strategy];
    uint64_t rank = 0;
    if (s->n_handed < s->env.n_given) {
        size_t n_params = s->env.n_params;
        memcpy(config, s->given + s->n_handed++ * n_params, n_params * sizeof(*config));
        return true;
    }
    if (ops->propose && ops->propose(s->state, config) &&
        kp_space_rank(s->env.space, config, &rank) && kp_pool_take(s->pool, rank))
        return true;
    return kp_pool_draw(s->pool, &s->rng, &rank) &&
           kp_space_at(s->env.space, rank, config, NULL) == KOPT_OK;
}

bool kp_search_ask(struct kp_search *s, uint32_t *config, bool *waiting)
{
    const struct kp_search_ops *ops = tables[s->strategy];
    *waiting = false;
    if (s->n_handed == s->env.n_given && kp_pool_left(s->pool) == 0)
        return false;
    if (!deliver(s)) {
        *waiting = true;
        return false;
    }
    if (!next(s, config))
        return false;
    if (ops->asked)
        ops->asked(s->state, config);
    memcpy(ring_config(s, s->n_asked), config, s->env.n_params * sizeof(*config));
    s->ring[s->n_asked % s->env.window] = (struct pending){.told = false};
    s->n_asked++;
    return true;
}

void kp_search_tell(struct kp_search *s, double cost)
{
    KP_CHECK(s->n_told < s->n_asked);
    struct pending *p = &s->ring[s->n_told % s->env.window];
    p->cost = cost > 0 && isfinite(cost) ? cost : (double)INFINITY;
    p->told = true;
    if (s->remain)
        kp_remain_learn(s->remain, ring_config(s, s->n_told), p->cost);
    s->n_told++;
}

double kp_search_remaining(struct kp_search *s)
{
    return s->remain ? kp_remain_estimate(s->remain) : (double)NAN;
}
