/* SPDX-License-Identifier: MIT */
#include "search/elsewhere.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* The trees learn from at most this many, evenly chosen. */
enum { N_TREES = 40, MAX_LEARNED = 1024 };

static bool is_ok(const struct kp_prior *p, size_t i)
{
    return isfinite(p->logp[i]);
}

static void set_costs(struct kp_elsewhere *s)
{
    const struct kp_prior *p = s->prior;
    double mean = 0;
    double squares = 0;
    double least = 0;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (!is_ok(p, i))
            continue;
        least = n == 0 || p->logp[i] < least ? p->logp[i] : least;
        mean += p->logp[i];
        n++;
    }
    mean /= n ? (double)n : 1;
    for (size_t i = 0; i < p->n; i++)
        squares += is_ok(p, i) ? (p->logp[i] - mean) * (p->logp[i] - mean) : 0;
    double scale = squares > 0 ? 1 / sqrt(squares / (double)n) : 1;
    for (size_t i = 0; i < p->n; i++)
        s->costs[i] = (mean - (is_ok(p, i) ? p->logp[i] : least)) * scale;
}

static void set_point(const struct kp_elsewhere *s, const uint32_t *config, float *x,
                      size_t step)
{
    for (size_t k = 0; k < s->features->n; k++)
        x[k * step] = kp_feature_of(s->features, k, config);
}

static kopt_status learn(struct kp_elsewhere *s, struct kp_rng *rng, kopt_error *err)
{
    const struct kp_prior *p = s->prior;
    size_t n_features = s->features->n;
    size_t n = p->n < MAX_LEARNED ? p->n : MAX_LEARNED;
    bool *named = kp_calloc(n_features, sizeof(*named));
    float *x = kp_calloc(n * n_features, sizeof(*x));
    float *y = kp_calloc(n, sizeof(*y));
    kopt_status st = named && x && y ? KOPT_OK : kp_err_nomem(err);
    for (size_t k = 0; st == KOPT_OK && k < n_features; k++)
        named[k] = s->features->list[k].named;
    if (st == KOPT_OK)
        st = kp_trees_new(N_TREES, n_features, named, n, &s->trees, err);
    if (st == KOPT_OK) {
        for (size_t k = 0; k < n; k++) {
            size_t at = k * p->n / n;
            set_point(s, p->configs + at * p->n_params, x + k, n);
            y[k] = (float)s->costs[at];
        }
        struct kp_sample sample = {x, n, y, n};
        kp_trees_grow(s->trees, &sample, N_TREES, rng);
    }
    kp_free(named);
    kp_free(x);
    kp_free(y);
    return st;
}

kopt_status kp_elsewhere_init(struct kp_elsewhere *s, const struct kp_search_env *env,
                              const struct kp_features *f, kopt_error *err)
{
    *s = (struct kp_elsewhere){.prior = env->prior, .space = env->space, .features = f};
    s->point = kp_calloc(f->n, sizeof(*s->point));
    s->costs = kp_calloc(env->prior->n, sizeof(*s->costs));
    kopt_status st = s->point && s->costs ? KOPT_OK : kp_err_nomem(err);
    if (st == KOPT_OK) {
        set_costs(s);
        st = learn(s, env->rng, err);
    }
    if (st != KOPT_OK)
        kp_elsewhere_deinit(s);
    return st;
}

void kp_elsewhere_deinit(struct kp_elsewhere *s)
{
    kp_trees_free(s->trees);
    kp_free(s->point);
    kp_free(s->costs);
    *s = (struct kp_elsewhere){0};
}

double kp_elsewhere_at(const struct kp_elsewhere *s, const uint32_t *config)
{
    float mean = 0;
    float dev = 0;
    size_t at = kp_prior_find(s->prior, s->space, config);
    if (at < s->prior->n)
        return s->costs[at];
    set_point(s, config, s->point, 1);
    kp_trees_predict(s->trees, s->point, 1, &mean, &dev);
    return (double)mean;
}
