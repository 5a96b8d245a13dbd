/* SPDX-License-Identifier: MIT */
#include "search/remain.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "math/portable.h"
#include "search/candidates.h"
#include "search/features.h"
#include "search/history.h"
#include "search/pool.h"
#include "search/strategy.h"
#include "search/trees.h"

#include <math.h>
#include <string.h>

enum {
    N_MIN = 20,        /* results before there is an estimate */
    SHARE_ANEW = 16,   /* a new one when 1 / 16 of the results have come on top */
    N_TREES = 16,      /* a deviation needs no more */
    MAX_RESULTS = 200, /* that the trees learn from */
    MAX_CANDIDATES = 384,
    N_ELITE = 3,        /* best results whose neighbours are looked at */
    MAX_NEAR = 60,      /* neighbours of each that are candidates */
    MAX_COUNTED = 1000, /* neighbours that are counted */
    N_CROSS_ELITE = 8,  /* best results that have children */
    N_CHILDREN = 40,
    N_GRID = 18
};

/* The formula's constants, fitted on recorded spaces: docs/search.md says how. */
static const double scale = 1.5;
static const double gain_least = 0.01;
static const double near_more = 2; /* neighbours beside those there are, never told */

/* Gains that are told apart, as logarithms to base 2: the first, and the ratio of the next. */
static const double grid_first = 0.004;
static const double grid_ratio = 1.5;

/* As search.c has it: the memory of what was told. */
static const uint64_t max_kept = UINT64_C(1) << 19;

struct kp_remain {
    struct kp_search_env env; /* of its own: the pool holds what was not told */
    struct kp_rng rng;
    uint64_t seed;
    uint32_t *varied;
    struct kp_features features;
    struct kp_history history;
    struct kp_candidates candidates;
    struct kp_trees *trees; /* NULL: there is nothing to split on */
    float *x;
    float *y;
    float *points;
    float *mean;
    float *dev;
    uint64_t n_told;
    uint64_t all_near; /* neighbours that a configuration has, were there no rules */
    uint64_t due;      /* told when the next estimate is made */
    struct kp_remain_signs signs;
    double estimate;
};

void kp_remain_free(struct kp_remain *r)
{
    if (!r)
        return;
    kp_features_deinit(&r->features);
    kp_history_deinit(&r->history);
    kp_candidates_deinit(&r->candidates);
    kp_trees_free(r->trees);
    kp_pool_free(r->env.pool);
    kp_free(r->varied);
    kp_free(r->x);
    kp_free(r->y);
    kp_free(r->points);
    kp_free(r->mean);
    kp_free(r->dev);
    kp_free(r);
}

static kopt_status make_trees(struct kp_remain *r, kopt_error *err)
{
    size_t n = r->features.n;
    if (n == 0)
        return KOPT_OK;
    bool *named = kp_calloc(n, sizeof(*named));
    if (!named)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++)
        named[i] = r->features.list[i].named;
    kopt_status st = kp_trees_new(N_TREES, n, named, r->history.max, &r->trees, err);
    kp_free(named);
    return st;
}

static kopt_status allocate(struct kp_remain *r, const struct kp_space *space, kopt_error *err)
{
    size_t n_params = kp_space_n_params(space);
    uint64_t count = kp_space_count(space);
    size_t max = count < MAX_RESULTS ? (size_t)count + 1 : MAX_RESULTS;
    r->varied = kp_calloc(n_params + 1, sizeof(*r->varied));
    if (!r->varied)
        return kp_err_nomem(err);
    r->env = (struct kp_search_env){
        .space = space, .n_params = n_params, .varied = r->varied, .rng = &r->rng, .window = 1};
    for (size_t i = 0; i < n_params; i++) {
        if (kp_space_param(space, i)->n_values > 1)
            r->varied[r->env.n_varied++] = (uint32_t)i;
        r->all_near += kp_space_param(space, i)->n_values - 1;
    }
    kopt_status st = kp_pool_new(count, r->seed, max_kept, &r->env.pool, err);
    if (st == KOPT_OK)
        st = kp_features_init(&r->features, space, err);
    if (st == KOPT_OK)
        st = kp_history_init(&r->history, n_params, max, err);
    if (st == KOPT_OK)
        st = kp_candidates_init(&r->candidates, &r->env, MAX_CANDIDATES, err);
    if (st == KOPT_OK)
        st = make_trees(r, err);
    if (st != KOPT_OK)
        return st;
    size_t n = r->features.n + 1;
    r->x = kp_calloc(max, n * sizeof(*r->x));
    r->y = kp_calloc(max, sizeof(*r->y));
    r->points = kp_calloc(MAX_CANDIDATES, n * sizeof(*r->points));
    r->mean = kp_calloc(MAX_CANDIDATES, sizeof(*r->mean));
    r->dev = kp_calloc(MAX_CANDIDATES, sizeof(*r->dev));
    return r->x && r->y && r->points && r->mean && r->dev ? KOPT_OK : kp_err_nomem(err);
}

kopt_status kp_remain_new(const struct kp_space *space, uint64_t seed, struct kp_remain **out,
                          kopt_error *err)
{
    *out = NULL;
    struct kp_remain *r = kp_calloc(1, sizeof(*r));
    if (!r)
        return kp_err_nomem(err);
    r->seed = seed;
    r->due = N_MIN;
    r->estimate = (double)NAN;
    kp_rng_init(&r->rng, seed);
    kopt_status st = allocate(r, space, err);
    if (st == KOPT_OK)
        *out = r;
    else
        kp_remain_free(r);
    return st;
}

static void predict(struct kp_remain *r)
{
    const struct kp_candidates *c = &r->candidates;
    for (size_t i = 0; i < c->n; i++) {
        const uint32_t *config = c->configs + i * r->env.n_params;
        for (size_t k = 0; k < r->features.n; k++)
            r->points[i * r->features.n + k] = kp_feature_of(&r->features, k, config);
    }
    kp_trees_predict(r->trees, r->points, c->n, r->mean, r->dev);
}

static const double log2_e = 1.4426950408889634;

/* Probability that a normal variable is more than z >= 0 deviations off on one side (Abramowitz
 * and Stegun, 26.2.19, whose error is below 3e-4: far out it is heavier than the normal one).
 */
static double tail(double z)
{
    double p = 1 + z * (0.196854 + z * (0.115194 + z * (0.000344 + z * 0.019527)));
    double p2 = p * p;
    return 0.5 / (p2 * p2);
}

/* What the best of the candidates is expected to gain, as a share of the best time: the trees
 * give each a normal distribution, taken as independent. P(gain > t) = 1 - prod(1 - q), summed
 * over the grid. -log(1 - q) is q + 0.77 q^2 to within 2 % up to q = 1/2, which is the most. */
static double expected_gain(const struct kp_remain *r)
{
    double gain = 0;
    double before = 0;
    double t = grid_first;
    for (int j = 0; j < N_GRID; j++, t *= grid_ratio) {
        double sum = 0;
        for (size_t i = 0; i < r->candidates.n; i++) {
            if (r->dev[i] > 0) {
                double q = tail(((double)r->mean[i] + t) / (double)r->dev[i]);
                sum += q + 0.77 * q * q;
            }
        }
        double share = 1 - kp_exp2_portable(-t);
        gain += (share - before) * (1 - kp_exp2_portable(-log2_e * sum));
        before = share;
    }
    return gain;
}

struct counter {
    const struct kp_remain *r;
    size_t n;
    size_t left;
};

static bool count(void *user, const uint32_t *config)
{
    struct counter *c = user;
    uint64_t rank = 0;
    c->n++;
    c->left +=
        kp_space_rank(c->r->env.space, config, &rank) && kp_pool_has(c->r->env.pool, rank);
    return c->n < MAX_COUNTED;
}

/* The signs, from trees that have learned all results. */
static void look(struct kp_remain *r)
{
    const struct kp_history *h = &r->history;
    struct kp_candidates *c = &r->candidates;
    struct counter near = {.r = r};
    enum kp_near which = r->all_near <= MAX_COUNTED ? KP_NEAR_HAMMING : KP_NEAR_ADJACENT;
    kp_candidates_clear(c);
    for (size_t k = 0; k < N_ELITE && k < h->n_ok; k++) {
        kp_space_neighbours(r->env.space, kp_history_best(h, k), which, count, &near);
        kp_candidates_near(c, kp_history_best(h, k), MAX_NEAR);
    }
    kp_candidates_cross(c, h, N_CROSS_ELITE, N_CHILDREN);
    predict(r);
    r->signs =
        (struct kp_remain_signs){.told = (double)r->n_told,
                                 .left = (double)(kp_space_count(r->env.space) - r->n_told),
                                 .near = (double)near.n,
                                 .near_left = (double)near.left,
                                 .gain = expected_gain(r)};
}

double kp_remain_formula(const struct kp_remain_signs *s)
{
    double left = s->left / (s->left + s->told);
    double near = (s->near_left + near_more) / (s->near + near_more);
    double e = scale * left * near * sqrt(near * sqrt(s->gain + gain_least) / s->told);
    return e < 1 ? e : 1;
}

/* The results decide alone: a stream of random numbers for each count of them. */
static void estimate(struct kp_remain *r)
{
    if (r->history.n_ok == 0 || !r->trees)
        return;
    kp_rng_init(&r->rng, r->seed ^ (r->n_told * 0x9e3779b97f4a7c15U));
    kp_history_targets(&r->history, r->y);
    struct kp_sample s = {r->x, r->history.max, r->y, r->history.n};
    kp_trees_grow(r->trees, &s, N_TREES, &r->rng);
    look(r);
    r->estimate = kp_remain_formula(&r->signs);
}

void kp_remain_learn(struct kp_remain *r, const uint32_t *config, double cost)
{
    uint64_t rank = 0;
    if (kp_space_rank(r->env.space, config, &rank))
        (void)kp_pool_take(r->env.pool, rank);
    kp_rng_init(&r->rng, r->seed ^ ~r->n_told);
    size_t place = kp_history_add(&r->history, config, cost, &r->rng);
    for (size_t k = 0; k < r->features.n; k++)
        r->x[k * r->history.max + place] = kp_feature_of(&r->features, k, config);
    r->n_told++;
    if (r->n_told < r->due)
        return;
    r->due = r->n_told + 1 + r->n_told / SHARE_ANEW;
    estimate(r);
}

double kp_remain_estimate(const struct kp_remain *r)
{
    return r->n_told == kp_space_count(r->env.space) ? 0 : r->estimate;
}

const struct kp_remain_signs *kp_remain_signs(const struct kp_remain *r)
{
    return &r->signs;
}
