/* SPDX-License-Identifier: MIT */
#include "search/candidates.h"

#include "base/alloc.h"

#include <string.h>

kopt_status kp_candidates_init(struct kp_candidates *c, const struct kp_search_env *env,
                               size_t max, kopt_error *err)
{
    *c = (struct kp_candidates){.env = env, .max = max, .n_slots = 4};
    while (c->n_slots < 2 * max)
        c->n_slots *= 2;
    c->configs = kp_calloc(max * env->n_params + 1, sizeof(*c->configs));
    c->ranks = kp_calloc(max, sizeof(*c->ranks));
    c->slots = kp_calloc(c->n_slots, sizeof(*c->slots));
    c->scratch = kp_calloc(env->n_params + 1, sizeof(*c->scratch));
    if (c->configs && c->ranks && c->slots && c->scratch)
        return KOPT_OK;
    kp_candidates_deinit(c);
    return kp_err_nomem(err);
}

void kp_candidates_deinit(struct kp_candidates *c)
{
    kp_free(c->configs);
    kp_free(c->ranks);
    kp_free(c->slots);
    kp_free(c->scratch);
    *c = (struct kp_candidates){0};
}

void kp_candidates_clear(struct kp_candidates *c)
{
    c->n = 0;
    memset(c->slots, 0, c->n_slots * sizeof(*c->slots));
}

void kp_candidates_add(struct kp_candidates *c, const uint32_t *config)
{
    uint64_t rank = 0;
    if (c->n >= c->max || !kp_space_rank(c->env->space, config, &rank) ||
        !kp_pool_has(c->env->pool, rank))
        return;
    size_t slot = (size_t)((rank * 0x9e3779b97f4a7c15U) >> 32) & (c->n_slots - 1);
    for (; c->slots[slot]; slot = (slot + 1) & (c->n_slots - 1)) {
        if (c->ranks[c->slots[slot] - 1] == rank)
            return;
    }
    size_t n_params = c->env->n_params;
    memcpy(c->configs + c->n * n_params, config, n_params * sizeof(*config));
    c->ranks[c->n++] = rank;
    c->slots[slot] = (uint32_t)c->n;
}

void kp_candidates_random(struct kp_candidates *c, size_t n)
{
    uint64_t rank = 0;
    for (size_t i = 0; i < n && kp_pool_peek(c->env->pool, c->env->rng, &rank); i++) {
        if (kp_space_at(c->env->space, rank, c->scratch, NULL) == KOPT_OK)
            kp_candidates_add(c, c->scratch);
    }
}

static bool visit(void *user, const uint32_t *config)
{
    struct kp_candidates *c = user;
    kp_candidates_add(c, config);
    return c->n < c->max;
}

/* A uniform index of a random parameter. */
static void mutate(struct kp_candidates *c, uint32_t *config)
{
    uint32_t i = c->env->varied[kp_rng_below(c->env->rng, c->env->n_varied)];
    uint32_t n = kp_space_param(c->env->space, i)->n_values;
    config[i] = (uint32_t)kp_rng_below(c->env->rng, n);
}

void kp_candidates_near(struct kp_candidates *c, const uint32_t *config, size_t max)
{
    const struct kp_search_env *env = c->env;
    uint64_t n = 0;
    for (size_t i = 0; i < env->n_params; i++)
        n += kp_space_param(env->space, i)->n_values - 1;
    if (n <= max) {
        kp_space_neighbours(env->space, config, KP_NEAR_HAMMING, visit, c);
        return;
    }
    kp_space_neighbours(env->space, config, KP_NEAR_ADJACENT, visit, c);
    for (size_t i = 0; i < max; i++) {
        memcpy(c->scratch, config, env->n_params * sizeof(*config));
        mutate(c, c->scratch);
        kp_candidates_add(c, c->scratch);
    }
}

/* Each parameter from one of two configurations; one then set at random if it is to be. */
static void child(struct kp_candidates *c, const uint32_t *a, const uint32_t *b, bool changed)
{
    const struct kp_search_env *env = c->env;
    uint64_t rank = 0;
    for (size_t i = 0; i < env->n_params; i++)
        c->scratch[i] = kp_rng_u64(env->rng) >> 63 ? a[i] : b[i];
    if (changed)
        mutate(c, c->scratch);
    if (kp_space_rank(env->space, c->scratch, &rank) || kp_space_repair(env->space, c->scratch))
        kp_candidates_add(c, c->scratch);
}

void kp_candidates_cross(struct kp_candidates *c, const struct kp_history *h, size_t n_elite,
                         size_t n)
{
    const struct kp_search_env *env = c->env;
    if (n_elite > h->n_ok)
        n_elite = h->n_ok;
    if (n_elite < 2 || env->n_varied == 0)
        return;
    for (size_t k = 0; k < n; k++) {
        bool from_best = k % 2 == 0;
        size_t first = from_best ? 0 : (size_t)kp_rng_below(env->rng, n_elite);
        const uint32_t *a = kp_history_best(h, first);
        const uint32_t *b = kp_history_best(h, (size_t)kp_rng_below(env->rng, n_elite));
        child(c, a, b, true);
    }
}

/* The lesser of two draws: of n places the k-th with a probability that falls linearly. */
static const uint32_t *likely(const struct kp_candidates *c, const struct kp_prior *p)
{
    uint64_t a = kp_rng_below(c->env->rng, p->n);
    uint64_t b = kp_rng_below(c->env->rng, p->n);
    return p->configs + (size_t)(a < b ? a : b) * p->n_params;
}

void kp_candidates_likely(struct kp_candidates *c, const struct kp_prior *p, size_t n)
{
    if (p->n == 0 || c->env->n_varied == 0)
        return;
    for (size_t k = 0; k < n; k++) {
        const uint32_t *a = likely(c, p);
        child(c, a, likely(c, p), k % 2 == 0);
    }
}

void kp_candidates_listed(struct kp_candidates *c, const struct kp_prior *p, size_t n)
{
    size_t before = c->n;
    for (size_t k = 0; k < p->n && c->n - before < n; k++)
        kp_candidates_add(c, p->configs + k * p->n_params);
}
