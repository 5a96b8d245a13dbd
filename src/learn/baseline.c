/* SPDX-License-Identifier: MIT */
#include "learn/baseline.h"

#include "base/alloc.h"
#include "base/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    uint32_t config;
    uint32_t n;
    double score; /* votes */
};

struct kp_baseline {
    const struct kp_dataset *d;
    unsigned char *known; /* [n_problems]: for training, and something about it did not fail */
    size_t n_features;
    float *features;   /* [n_problems][n_features] */
    uint32_t *config;  /* [n_problems]: which of `configs` is the truth */
    uint32_t *configs; /* [n_configs][n_targets]: those of the training problems */
    uint32_t *rank;    /* [n_configs]: configurations, the most frequent first */
    uint32_t *n_of;    /* [n_configs]: how many problems have it */
    uint32_t n_configs;
    size_t n_known;
};

void kp_baseline_free(struct kp_baseline *b)
{
    if (!b)
        return;
    kp_free(b->known);
    kp_free(b->features);
    kp_free(b->config);
    kp_free(b->configs);
    kp_free(b->rank);
    kp_free(b->n_of);
    kp_free(b);
}

/* --- what is known --------------------------------------------------------------------------
 */

static kopt_status number_configs(struct kp_baseline *b, const unsigned char *use,
                                  const size_t *first)
{
    const struct kp_dataset *d = b->d;
    size_t bytes = d->n_targets * sizeof(uint32_t);
    struct kp_map seen = {0};
    kopt_status st = KOPT_OK;
    for (size_t p = 0; p < d->n_problems && st == KOPT_OK; p++) {
        size_t row = kp_judge_truth(d, first[p], first[p + 1]);
        bool added;
        if (!use[p] || first[p] == first[p + 1] || isinf(d->times_ns[row]))
            continue;
        uint64_t *at = kp_map_put(&seen, d->configs + row * d->n_targets, bytes, &added);
        if (!at) {
            st = KOPT_ENOMEM;
            break;
        }
        if (added) {
            *at = b->n_configs++;
            memcpy(b->configs + *at * d->n_targets, d->configs + row * d->n_targets, bytes);
        }
        b->config[p] = (uint32_t)*at;
        b->n_of[*at]++;
        b->known[p] = 1;
        b->n_known++;
    }
    kp_map_deinit(&seen);
    return st;
}

static int more_first(const void *a, const void *b)
{
    const struct counted *x = a;
    const struct counted *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->config < y->config ? -1 : x->config > y->config;
}

static kopt_status rank_configs(struct kp_baseline *b)
{
    struct counted *all = kp_calloc((size_t)b->n_configs + 1, sizeof(*all));
    if (!all)
        return KOPT_ENOMEM;
    for (uint32_t c = 0; c < b->n_configs; c++)
        all[c] = (struct counted){.config = c, .n = b->n_of[c]};
    qsort(all, b->n_configs, sizeof(*all), more_first);
    for (uint32_t c = 0; c < b->n_configs; c++)
        b->rank[c] = all[c].config;
    kp_free(all);
    return KOPT_OK;
}

static kopt_status encode_all(struct kp_baseline *b, const struct kp_encoder *e)
{
    const struct kp_dataset *d = b->d;
    int32_t *tokens = kp_calloc(kp_encoder_n_tokens(e) + 1, sizeof(*tokens));
    if (!tokens)
        return KOPT_ENOMEM;
    for (size_t p = 0; p < d->n_problems; p++)
        kp_encode_problem(e, d, p, tokens, b->features + p * b->n_features);
    kp_free(tokens);
    return KOPT_OK;
}

static kopt_status learn(struct kp_baseline *b, const unsigned char *use,
                         const struct kp_encoder *e)
{
    const struct kp_dataset *d = b->d;
    size_t *first = kp_calloc(d->n_problems + 1, sizeof(*first));
    kopt_status st = KOPT_ENOMEM;
    b->n_features = kp_encoder_n_features(e);
    b->known = kp_calloc(d->n_problems + 1, 1);
    b->features = kp_calloc(d->n_problems * b->n_features + 1, sizeof(*b->features));
    b->config = kp_calloc(d->n_problems + 1, sizeof(*b->config));
    b->configs = kp_calloc(d->n_problems * d->n_targets + 1, sizeof(*b->configs));
    b->rank = kp_calloc(d->n_problems + 1, sizeof(*b->rank));
    b->n_of = kp_calloc(d->n_problems + 1, sizeof(*b->n_of));
    if (first && b->known && b->features && b->config && b->configs && b->rank && b->n_of) {
        kp_judge_rows(d, first);
        st = number_configs(b, use, first);
        if (st == KOPT_OK)
            st = rank_configs(b);
        if (st == KOPT_OK)
            st = encode_all(b, e);
    }
    kp_free(first);
    return st;
}

kopt_status kp_baseline_new(const struct kp_dataset *d, const unsigned char *use,
                            const struct kp_encoder *encoder, struct kp_baseline **out,
                            kopt_error *err)
{
    struct kp_baseline *b = kp_calloc(1, sizeof(*b));
    *out = NULL;
    if (!b)
        return kp_err_nomem(err);
    b->d = d;
    kopt_status st = learn(b, use, encoder);
    if (st != KOPT_OK)
        (void)kp_err_nomem(err);
    else if (b->n_known == 0)
        st = kp_err(err, KOPT_EINPUT, "there is no problem for training");
    if (st != KOPT_OK) {
        kp_baseline_free(b);
        return st;
    }
    *out = b;
    return KOPT_OK;
}

/* --- predictions ----------------------------------------------------------------------------
 */

static kopt_status make_room(const struct kp_baseline *b, size_t k, struct kp_prediction *out,
                             kopt_error *err)
{
    *out = (struct kp_prediction){0};
    out->configs = kp_calloc(k * b->d->n_targets + 1, sizeof(*out->configs));
    out->logp = kp_calloc(k + 1, sizeof(*out->logp));
    if (out->configs && out->logp)
        return KOPT_OK;
    kp_prediction_deinit(out);
    return kp_err_nomem(err);
}

static void add(const struct kp_baseline *b, uint32_t config, double share,
                struct kp_prediction *out)
{
    size_t P = b->d->n_targets;
    memcpy(out->configs + out->n * P, b->configs + config * P, P * sizeof(uint32_t));
    out->logp[out->n++] = log(share);
}

kopt_status kp_baseline_majority(const void *user, size_t problem, size_t k,
                                 struct kp_prediction *out, kopt_error *err)
{
    const struct kp_baseline *b = user;
    bool known = b->known[problem];
    uint32_t own = known ? b->config[problem] : UINT32_MAX; /* has one problem less */
    uint32_t own_n = known ? b->n_of[own] - 1 : 0;
    double n = (double)(b->n_known - known);
    kopt_status st = make_room(b, k, out, err);
    if (st != KOPT_OK)
        return st;
    for (uint32_t i = 0; i < b->n_configs && out->n < k; i++) {
        uint32_t c = b->rank[i];
        if (c == own)
            continue;
        if (own_n > b->n_of[c] || (own_n && own_n == b->n_of[c] && own < c)) {
            add(b, own, own_n / n, out);
            own_n = 0;
        }
        if (out->n < k)
            add(b, c, b->n_of[c] / n, out);
    }
    if (own_n && out->n < k)
        add(b, own, own_n / n, out);
    return KOPT_OK;
}

struct near {
    double distance; /* squared */
    uint32_t problem;
};

static int nearer_first(const void *a, const void *b)
{
    const struct near *x = a;
    const struct near *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->problem < y->problem ? -1 : x->problem > y->problem;
}

static size_t look_around(const struct kp_baseline *b, size_t problem, struct near *all)
{
    size_t F = b->n_features;
    const float *x = b->features + problem * F;
    size_t n = 0;
    for (size_t p = 0; p < b->d->n_problems; p++) {
        const float *y = b->features + p * F;
        double sum = 0;
        if (!b->known[p] || p == problem)
            continue;
        for (size_t f = 0; f < F; f++)
            sum += (double)(x[f] - y[f]) * (double)(x[f] - y[f]);
        all[n++] = (struct near){sum, (uint32_t)p};
    }
    qsort(all, n, sizeof(*all), nearer_first);
    return n;
}

/* Place of `config` in the list; n where it is not there. */
static size_t find(const struct counted *list, size_t n, uint32_t config)
{
    size_t i = 0;
    while (i < n && list[i].config != config)
        i++;
    return i;
}

/* The neighbours' votes, sorted; of equal ones that of the nearer problem first. */
static size_t vote(const struct kp_baseline *b, const struct near *all, size_t n,
                   struct counted *list)
{
    size_t m = 0;
    for (size_t i = 0; i < n && i < KP_NEIGHBOURS; i++) {
        uint32_t config = b->config[all[i].problem];
        size_t at = find(list, m, config);
        if (at == m)
            list[m++] = (struct counted){.config = config};
        list[at].score += 1.0 / (double)(i + 1);
    }
    for (size_t i = 1; i < m; i++) { /* few, and stable */
        struct counted c = list[i];
        size_t at = i;
        for (; at > 0 && list[at - 1].score < c.score; at--)
            list[at] = list[at - 1];
        list[at] = c;
    }
    return m;
}

kopt_status kp_baseline_neighbours(const void *user, size_t problem, size_t k,
                                   struct kp_prediction *out, kopt_error *err)
{
    const struct kp_baseline *b = user;
    kopt_status st = make_room(b, k, out, err);
    if (st != KOPT_OK)
        return st;
    struct near *all = kp_calloc(b->d->n_problems + 1, sizeof(*all));
    struct counted *list = kp_calloc(k + KP_NEIGHBOURS, sizeof(*list));
    if (!all || !list) {
        kp_prediction_deinit(out);
        st = kp_err_nomem(err);
    } else {
        size_t n = look_around(b, problem, all);
        size_t m = vote(b, all, n, list);
        double sum = 0;
        for (size_t i = 0; i < n && i < KP_NEIGHBOURS; i++)
            sum += 1.0 / (double)(i + 1);
        for (size_t i = KP_NEIGHBOURS; i < n && m < k; i++) {
            uint32_t config = b->config[all[i].problem];
            if (find(list, m, config) == m)
                list[m++] = (struct counted){.config = config};
        }
        for (size_t i = 0; i < m && i < k; i++)
            add(b, list[i].config, list[i].score / sum, out);
    }
    kp_free(all);
    kp_free(list);
    return st;
}
