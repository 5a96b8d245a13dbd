/* SPDX-License-Identifier: MIT */
#include "search/prior.h"

#include "base/alloc.h"
#include "math/portable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };
static const double ln2 = 0.693147180559945309;

static kopt_status make_slots(struct kp_prior *p, size_t max, kopt_error *err)
{
    p->n_slots = FIRST_SLOTS;
    while (p->n_slots < 2 * max)
        p->n_slots *= 2;
    p->slots = kp_calloc(p->n_slots, sizeof(*p->slots));
    return p->slots ? KOPT_OK : kp_err_nomem(err);
}

kopt_status kp_prior_init(struct kp_prior *p, const struct kp_space *space, size_t max,
                          kopt_error *err)
{
    KP_CHECK(max >= 1 && max <= KP_PRIOR_MAX);
    *p = (struct kp_prior){.n_params = kp_space_n_params(space), .max = max, .n_first = max};
    p->configs = kp_calloc(max * p->n_params + 1, sizeof(*p->configs));
    p->logp = kp_calloc(max, sizeof(*p->logp));
    p->ranks = kp_calloc(max, sizeof(*p->ranks));
    kopt_status st =
        p->configs && p->logp && p->ranks ? make_slots(p, max, err) : kp_err_nomem(err);
    if (st != KOPT_OK)
        kp_prior_deinit(p);
    return st;
}

void kp_prior_deinit(struct kp_prior *p)
{
    kp_free(p->configs);
    kp_free(p->logp);
    kp_free(p->ranks);
    kp_free(p->slots);
    *p = (struct kp_prior){0};
}

/* The slot of a rank, or the free one where it would be. */
static uint32_t *slot_of(const struct kp_prior *p, uint64_t rank)
{
    size_t mask = p->n_slots - 1;
    size_t i = (size_t)((rank * 0x9e3779b97f4a7c15U) >> 32) & mask;
    while (p->slots[i] && p->ranks[p->slots[i] - 1] != rank)
        i = (i + 1) & mask;
    return &p->slots[i];
}

bool kp_prior_add(struct kp_prior *p, const struct kp_space *space, const uint32_t *config,
                  double logp)
{
    uint64_t rank = 0;
    size_t n = p->n_params;
    if (p->n == p->max || !kp_space_rank(space, config, &rank))
        return false;
    uint32_t *slot = slot_of(p, rank);
    if (*slot)
        return false;
    memcpy(p->configs + p->n * n, config, n * sizeof(*config));
    p->logp[p->n] = logp;
    p->ranks[p->n] = rank;
    p->n++;
    *slot = (uint32_t)p->n;
    return true;
}

size_t kp_prior_find(const struct kp_prior *p, const struct kp_space *space,
                     const uint32_t *config)
{
    uint64_t rank = 0;
    if (p->n == 0 || !kp_space_rank(space, config, &rank))
        return p->n;
    uint32_t slot = *slot_of(p, rank);
    return slot ? slot - 1 : p->n;
}

/* --- results from elsewhere ----------------------------------------------------------------
 */

struct sorted {
    double cost;
    uint32_t at;
};

static int cheaper(const void *a, const void *b)
{
    const struct sorted *x = a;
    const struct sorted *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Entry number k of `max` out of n: the cheaper half as it is, the rest evenly from what is
 * left. */
static size_t chosen(size_t k, size_t max, size_t n)
{
    size_t half = max / 2;
    if (n <= max || k < half)
        return k;
    return half + (size_t)((double)(k - half) * (double)(n - half) / (double)(max - half));
}

static bool is_cost(double c)
{
    return c > 0; /* INFINITY, too */
}

/* The natural logarithm of best over cost; the same on every machine. */
static double log_share(double best, double cost)
{
    return isfinite(cost) ? ln2 * (kp_log2_portable(best) - kp_log2_portable(cost))
                          : -(double)INFINITY;
}

kopt_status kp_prior_of_results(struct kp_prior *p, const struct kp_space *space,
                                const struct kp_results *results, size_t n_first,
                                kopt_error *err)
{
    *p = (struct kp_prior){0};
    size_t n = 0;
    size_t n_params = kp_space_n_params(space);
    struct sorted *list = kp_calloc(results->n + 1, sizeof(*list));
    if (!list)
        return kp_err_nomem(err);
    for (size_t i = 0; i < results->n; i++) {
        uint64_t rank = 0;
        if (is_cost(results->costs[i]) &&
            kp_space_rank(space, results->configs + i * n_params, &rank))
            list[n++] = (struct sorted){results->costs[i], (uint32_t)i};
    }
    qsort(list, n, sizeof(*list), cheaper);
    size_t max = n < KP_PRIOR_MAX ? n : KP_PRIOR_MAX;
    kopt_status st = kp_prior_init(p, space, max ? max : 1, err);
    for (size_t k = 0; st == KOPT_OK && k < max; k++) {
        const struct sorted *s = &list[chosen(k, max, n)];
        (void)kp_prior_add(p, space, results->configs + (size_t)s->at * n_params,
                           log_share(list[0].cost, s->cost));
    }
    size_t n_ok = 0;
    while (n_ok < p->n && isfinite(p->logp[n_ok]))
        n_ok++;
    p->n_first = n_first < n_ok ? n_first : n_ok;
    p->measured = true;
    kp_free(list);
    return st;
}
