/* SPDX-License-Identifier: MIT */
/* The default for large spaces: Bayesian optimisation with a random forest. Layer: search.
 *
 * A few configurations far from each other begin. Then, for each ask, a forest predicts the
 * logarithm of the cost of some hundred candidates (neighbours of the best results, their
 * children, and random ones from the whole space), and the one with the lowest optimistic
 * estimate, mean - kappa * deviation, is asked. A prior's list takes the start's place, and
 * while its best is near the best, mixtures of it are candidates. kappa falls as results come
 * in: with few of them the forest knows little. A failure counts as the worst success so far,
 * which keeps the search away from regions that fail without closing them. Configurations in
 * flight are no candidates, and the forest does not know of them: giving it their predicted
 * costs ("kriging believer") found nothing sooner in replay. The forest never sees the whole
 * space: work and memory for an ask do not depend on its size. */
#include "base/alloc.h"
#include "math/portable.h"
#include "search/candidates.h"
#include "search/features.h"
#include "search/history.h"
#include "search/strategy.h"
#include "search/trees.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (bench/bench_search.c). */
enum {
    N_START = 10,       /* asks before the forest is heard */
    N_START_TRIES = 20, /* random configurations, of which the farthest is taken */
    N_TREES = 40,
    N_REGROW = 10,      /* trees grown anew for an ask, once there are many results */
    FEW_RESULTS = 64,   /* up to here all trees are grown anew */
    MAX_RESULTS = 1024, /* that the forest learns from */
    MAX_CANDIDATES = 1024,
    N_NEAR_ELITE = 4,   /* best results whose neighbours are candidates */
    MAX_NEAR = 160,     /* neighbours of each */
    N_CROSS_ELITE = 12, /* best results that have children */
    N_CHILDREN = 60,
    N_RANDOM = 100,
    N_LOOK = 6,   /* asks far away that follow a prior's list */
    N_LIKELY = 60 /* candidates near a prior's configurations, while it pays */
};
static const double pays = 1.1; /* a prior whose best is this far from the best, at most */
static const double kappa_end = 1;
static const double kappa_extra = 3;       /* at the start, on top of it */
static const double kappa_extra_prior = 1; /* the same while a prior pays */
static const double kappa_fall = 15;       /* results after which half of that is gone */

struct forest {
    const struct kp_search_env *env;
    struct kp_features features;
    struct kp_history history;
    struct kp_candidates candidates;
    struct kp_trees *trees; /* NULL: there is nothing to split on */
    float *x;               /* history.max for each feature, see struct kp_sample */
    float *y;
    float *points; /* the features of the candidates, by row */
    float *mean;
    float *dev;
    uint32_t *flight; /* configurations in flight: a ring of env->window */
    size_t flight_first;
    size_t n_flight;
    uint64_t n_asked;
    uint64_t n_explored; /* of these, chosen by explore() */
    double prior_best;   /* the least cost of the prior's configurations; INFINITY: none yet */
};

static void forest_close(void *state)
{
    struct forest *f = state;
    kp_features_deinit(&f->features);
    kp_history_deinit(&f->history);
    kp_candidates_deinit(&f->candidates);
    kp_trees_free(f->trees);
    kp_free(f->x);
    kp_free(f->y);
    kp_free(f->points);
    kp_free(f->mean);
    kp_free(f->dev);
    kp_free(f->flight);
    kp_free(f);
}

static size_t max_results(const struct kp_search_env *env)
{
    uint64_t n = kp_pool_left(env->pool) + env->n_given + 1;
    return n < MAX_RESULTS ? (size_t)n : MAX_RESULTS;
}

static kopt_status make_trees(struct forest *f, kopt_error *err)
{
    size_t n = f->features.n;
    if (n == 0)
        return KOPT_OK;
    bool *named = kp_calloc(n, sizeof(*named));
    if (!named)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++)
        named[i] = f->features.list[i].named;
    kopt_status st = kp_trees_new(N_TREES, n, named, f->history.max, &f->trees, err);
    kp_free(named);
    return st;
}

static kopt_status allocate(struct forest *f, kopt_error *err)
{
    const struct kp_search_env *env = f->env;
    size_t results = max_results(env);
    kopt_status st = kp_features_init(&f->features, env->space, err);
    if (st == KOPT_OK)
        st = kp_history_init(&f->history, env->n_params, results, err);
    if (st == KOPT_OK)
        st = kp_candidates_init(&f->candidates, env, MAX_CANDIDATES, err);
    if (st == KOPT_OK)
        st = make_trees(f, err);
    if (st != KOPT_OK)
        return st;
    size_t n = f->features.n + 1;
    f->x = kp_calloc(f->history.max, n * sizeof(*f->x));
    f->y = kp_calloc(f->history.max, sizeof(*f->y));
    f->points = kp_calloc(MAX_CANDIDATES, n * sizeof(*f->points));
    f->mean = kp_calloc(MAX_CANDIDATES, sizeof(*f->mean));
    f->dev = kp_calloc(MAX_CANDIDATES, sizeof(*f->dev));
    f->flight = kp_calloc((size_t)env->window * env->n_params + 1, sizeof(*f->flight));
    bool ok = f->x && f->y && f->points && f->mean && f->dev && f->flight;
    return ok ? KOPT_OK : kp_err_nomem(err);
}

static kopt_status forest_open(const struct kp_search_env *env, void **state, kopt_error *err)
{
    *state = NULL;
    struct forest *f = kp_calloc(1, sizeof(*f));
    if (!f)
        return kp_err_nomem(err);
    f->env = env;
    f->prior_best = (double)INFINITY;
    kopt_status st = allocate(f, err);
    if (st == KOPT_OK)
        *state = f;
    else
        forest_close(f);
    return st;
}

static uint32_t *in_flight(const struct forest *f, size_t i)
{
    return f->flight + (f->flight_first + i) % f->env->window * f->env->n_params;
}

static void set_features(struct forest *f, const uint32_t *config, size_t column)
{
    for (size_t k = 0; k < f->features.n; k++)
        f->x[k * f->history.max + column] = kp_feature_of(&f->features, k, config);
}

static void forest_asked(void *state, const uint32_t *config)
{
    struct forest *f = state;
    memcpy(in_flight(f, f->n_flight), config, f->env->n_params * sizeof(*config));
    f->n_flight++;
    f->n_asked++;
}

static void forest_learn(void *state, const uint32_t *config, double cost)
{
    struct forest *f = state;
    f->flight_first = (f->flight_first + 1) % f->env->window;
    f->n_flight--;
    const struct kp_prior *p = f->env->prior;
    if (p && cost < f->prior_best && kp_prior_find(p, f->env->space, config) < p->n)
        f->prior_best = cost;
    set_features(f, config, kp_history_add(&f->history, config, cost, f->env->rng));
}

/* Half for being different, half for how far apart in the list of values. */
static double distance(const struct kp_search_env *env, const uint32_t *a, const uint32_t *b)
{
    double d = 0;
    for (size_t i = 0; i < env->n_varied; i++) {
        uint32_t p = env->varied[i];
        double step = a[p] < b[p] ? (double)(b[p] - a[p]) : (double)(a[p] - b[p]);
        uint32_t n = kp_space_param(env->space, p)->n_values;
        if (a[p] != b[p])
            d += 0.5 + 0.5 * step / (double)(n - 1);
    }
    return d;
}

/* To the nearest configuration that was asked. */
static double distance_to_asked(const struct forest *f, const uint32_t *config)
{
    double least = (double)INFINITY;
    for (size_t i = 0; i < f->history.n; i++)
        least = fmin(least, distance(f->env, config, kp_history_at(&f->history, i)));
    for (size_t i = 0; i < f->n_flight; i++)
        least = fmin(least, distance(f->env, config, in_flight(f, i)));
    return least;
}

/* Of some random configurations, the one farthest from all that were asked (a sampled maximin
 * design: Johnson, Moore and Ylvisaker, 1990). */
static bool explore(struct forest *f, uint32_t *config)
{
    struct kp_candidates *c = &f->candidates;
    double most = -1;
    f->n_explored++;
    kp_candidates_clear(c);
    kp_candidates_random(c, N_START_TRIES);
    for (size_t i = 0; i < c->n; i++) {
        const uint32_t *candidate = c->configs + i * f->env->n_params;
        double d = distance_to_asked(f, candidate);
        if (d > most) {
            most = d;
            memcpy(config, candidate, f->env->n_params * sizeof(*config));
        }
    }
    return most >= 0;
}

/* Logarithms of the costs relative to the best; a failure counts as the worst success, or as
 * twice the best while the successes are closer together than that. */
static void set_targets(struct forest *f)
{
    const struct kp_history *h = &f->history;
    double best = kp_log2_portable(h->costs[h->order[0]]);
    float worst = 0;
    for (size_t k = 0; k < h->n_ok; k++) {
        uint32_t place = h->order[k];
        worst = (float)(kp_log2_portable(h->costs[place]) - best);
        f->y[place] = worst;
    }
    for (size_t k = h->n_ok; k < h->n; k++)
        f->y[h->order[k]] = worst > 1 ? worst : 1;
}

static void learn_forest(struct forest *f)
{
    size_t n = f->history.n;
    set_targets(f);
    struct kp_sample s = {f->x, f->history.max, f->y, n};
    kp_trees_grow(f->trees, &s, n <= FEW_RESULTS ? N_TREES : N_REGROW, f->env->rng);
}

/* Is the best of a prior's list near the best that is known? */
static bool prior_pays(const struct forest *f)
{
    return f->prior_best <= pays * f->history.costs[f->history.order[0]];
}

static void gather(struct forest *f)
{
    struct kp_candidates *c = &f->candidates;
    const struct kp_history *h = &f->history;
    kp_candidates_clear(c);
    for (size_t k = 0; k < N_NEAR_ELITE && k < h->n_ok; k++)
        kp_candidates_near(c, kp_history_best(h, k), MAX_NEAR);
    kp_candidates_cross(c, h, N_CROSS_ELITE, N_CHILDREN);
    if (f->env->prior && prior_pays(f))
        kp_candidates_likely(c, f->env->prior, N_LIKELY);
    kp_candidates_random(c, N_RANDOM);
}

static void set_points(struct forest *f)
{
    const struct kp_candidates *c = &f->candidates;
    for (size_t i = 0; i < c->n; i++) {
        const uint32_t *config = c->configs + i * f->env->n_params;
        for (size_t k = 0; k < f->features.n; k++)
            f->points[i * f->features.n + k] = kp_feature_of(&f->features, k, config);
    }
}

/* Is it too early to ask the forest? A prior's list is a start, but it may lie in a corner of
 * the space that is no good: some configurations from elsewhere tell, and as many as without a
 * list are asked if they do; else only every other ask. */
static bool is_start(const struct forest *f)
{
    if (f->history.n < 2 || f->history.n_ok == 0)
        return true;
    if (!f->env->prior)
        return f->n_asked < N_START;
    if (f->n_explored >= N_START)
        return false;
    return f->n_explored < N_LOOK || !prior_pays(f) || (f->n_asked - f->env->n_given) % 2 == 0;
}

/* A prior that pays says where to look: what is unknown elsewhere counts less. */
static double kappa_now(const struct forest *f)
{
    bool known = f->env->prior && prior_pays(f);
    double extra = known ? kappa_extra_prior : kappa_extra;
    return kappa_end + extra * kappa_fall / (kappa_fall + (double)f->history.n);
}

static bool forest_propose(void *state, uint32_t *config)
{
    struct forest *f = state;
    if (!f->trees)
        return false;
    if (is_start(f))
        return explore(f, config);
    learn_forest(f);
    gather(f);
    set_points(f);
    const struct kp_candidates *c = &f->candidates;
    kp_trees_predict(f->trees, f->points, c->n, f->mean, f->dev);
    double kappa = kappa_now(f);
    double least = (double)INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        double estimate = (double)f->mean[i] - kappa * (double)f->dev[i];
        if (estimate < least) {
            least = estimate;
            memcpy(config, c->configs + i * f->env->n_params,
                   f->env->n_params * sizeof(*config));
        }
    }
    return c->n > 0;
}

const struct kp_search_ops kp_strategy_forest = {
    .open = forest_open,
    .close = forest_close,
    .propose = forest_propose,
    .asked = forest_asked,
    .learn = forest_learn,
};
