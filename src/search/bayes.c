/* SPDX-License-Identifier: MIT */
/* The default for large spaces: Bayesian optimisation. Layer: search.
 *
 * A few configurations far from each other begin. Then, for each ask, a Gaussian process
 * (gp.h) predicts the logarithm of the cost of some hundred candidates: neighbours of the best
 * results, their children, and random ones from the whole space. A forest predicts which of
 * them succeed. The one with the greatest expected gain times probability of success is asked.
 * Failures are nothing that the process learns from: how fast a configuration would be that
 * does not run means nothing, and their neighbours may be the best there are.
 *
 * Configurations in flight are no candidates, and the process is certain of them: what is near
 * them promises little. It learns from MAX_LEARNED results, the best ones and some of the
 * others. It never sees the whole space: work and memory for an ask do not depend on its size.
 *
 * Every other ask hedges. Where nothing better was found for a while, the process may be sure
 * of what is not so: a forest, which sees the space in another way, chooses among the same
 * candidates by the lowest optimistic estimate, mean - kappa * deviation. Before that, where
 * results from elsewhere may mislead about what is near the best here, it is the neighbour of
 * the best with the least expected cost.
 *
 * Results from elsewhere (elsewhere.h) enter the process as a number known for every
 * configuration, whose worth it learns, and the best of them are candidates. Of another prior's
 * list, mixtures are candidates while its best is near the best. */
#include "base/alloc.h"
#include "math/portable.h"
#include "search/candidates.h"
#include "search/elsewhere.h"
#include "search/features.h"
#include "search/gain.h"
#include "search/gp.h"
#include "search/history.h"
#include "search/strategy.h"
#include "search/trees.h"

#include <math.h>
#include <string.h>

/* Chosen by replaying recorded spaces (docs/search.md says which). */
enum {
    N_START = 8,          /* asks before the process is heard */
    N_START_TRIES = 20,   /* random configurations, of which the farthest is taken */
    N_LOOK = 6,           /* asks far away that follow a model's list */
    MAX_RESULTS = 1024,   /* that are remembered */
    MAX_LEARNED = 200,    /* of these, that the process learns from */
    N_BEST_LEARNED = 140, /* of these, the best ones; the others evenly from the rest */
    MAX_BELIEVED = 64,    /* configurations in flight that it knows of */
    MAX_STEPS = 60,       /* of learning for an ask */
    RARE_STEP = 4,        /* where one is too much work: one in so many asks */
    MAX_PREDICTED = 40,   /* candidates whose gain is worked out */
    N_TREES = 30,         /* that tell failures */
    N_REGROW = 5,         /* of these, grown anew for an ask */
    N_STALE = 25,         /* asks without a new best, before a forest is heard */
    N_COST_TREES = 40,    /* of it */
    N_COST_REGROW = 10,   /* of these, grown anew for an ask, once there are many results */
    FEW_RESULTS = 64,     /* up to here all of them are */
    MAX_CANDIDATES = 1024,
    N_NEAR_ELITE = 4,   /* best results whose neighbours are candidates */
    MAX_NEAR = 160,     /* neighbours of each */
    N_CROSS_ELITE = 12, /* best results that have children */
    N_CHILDREN = 60,
    N_RANDOM = 100,
    N_LIKELY = 60, /* candidates near a model's configurations, while it pays */
    N_LISTED = 300 /* the best elsewhere */
};
static const double work = 1e6; /* multiplications for learning at an ask */
static const double pays = 1.1; /* a list whose best is this far from the best, at most */
static const double kappa_end = 1;
static const double kappa_extra = 3;    /* at the start, on top of it */
static const double kappa_fall = 15;    /* results after which half of that is gone */
static const double fails = 1e6;        /* added to the estimate of what rather fails */
static const double least_hope = 0.001; /* probability of success, at least */
/* Of a prediction, in powers of two: a process that is sure of everything near the best would
 * ask what only fails. */
static const double least_dev = 0.01;

struct bayes {
    const struct kp_search_env *env;
    struct kp_features features;
    struct kp_history history;
    struct kp_candidates candidates;
    struct kp_gp *gp;              /* NULL: there is nothing to tell configurations by */
    struct kp_trees *trees;        /* 1: succeeds, 0: fails */
    struct kp_trees *cost_trees;   /* the logarithm of the cost */
    struct kp_elsewhere elsewhere; /* .trees NULL: there are no results from elsewhere */
    double *known;                 /* what it says of the results, by place in the history */
    float *x;                      /* history.max for each feature, see struct kp_sample */
    float *y;
    float *costs;  /* what the cost's trees learn, by place in the history */
    float *points; /* the features of the candidates, by row */
    float *hope;   /* of the candidates: probability of success */
    float *spread;
    double *side;
    double *mean;
    double *dev;
    double *gain;
    uint32_t *flight; /* configurations in flight: a ring of env->window */
    double *flight_side;
    size_t flight_first;
    size_t n_flight;
    uint64_t n_asked;
    uint64_t n_explored; /* of these, chosen by explore() */
    uint64_t best_asked; /* how many were, when the best result came */
    double best;         /* INFINITY: none yet */
    double prior_best;   /* the least cost of the prior's configurations; INFINITY: none yet */
};

static void bayes_close(void *state)
{
    struct bayes *f = state;
    kp_elsewhere_deinit(&f->elsewhere);
    kp_gp_free(f->gp);
    kp_trees_free(f->trees);
    kp_trees_free(f->cost_trees);
    kp_candidates_deinit(&f->candidates);
    kp_history_deinit(&f->history);
    kp_features_deinit(&f->features);
    kp_free(f->known);
    kp_free(f->x);
    kp_free(f->y);
    kp_free(f->costs);
    kp_free(f->points);
    kp_free(f->hope);
    kp_free(f->spread);
    kp_free(f->side);
    kp_free(f->mean);
    kp_free(f->dev);
    kp_free(f->gain);
    kp_free(f->flight);
    kp_free(f->flight_side);
    kp_free(f);
}

static size_t max_results(const struct kp_search_env *env)
{
    uint64_t n = kp_pool_left(env->pool) + env->n_given + 1;
    return n < MAX_RESULTS ? (size_t)n : MAX_RESULTS;
}

static bool has_elsewhere(const struct kp_search_env *env)
{
    return env->prior && env->prior->measured && env->prior->n > 0;
}

static kopt_status make_models(struct bayes *f, kopt_error *err)
{
    const struct kp_search_env *env = f->env;
    size_t n = f->features.n;
    if (n == 0)
        return KOPT_OK;
    bool *named = kp_calloc(n, sizeof(*named));
    if (!named)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++)
        named[i] = f->features.list[i].named;
    kopt_status st = kp_trees_new(N_TREES, n, named, f->history.max, &f->trees, err);
    if (st == KOPT_OK)
        st = kp_trees_new(N_COST_TREES, n, named, f->history.max, &f->cost_trees, err);
    kp_free(named);
    if (st == KOPT_OK && has_elsewhere(env))
        st = kp_elsewhere_init(&f->elsewhere, env, &f->features, err);
    size_t results = f->history.max < MAX_LEARNED ? f->history.max : MAX_LEARNED;
    if (st == KOPT_OK)
        st = kp_gp_new(env->space, &f->features, results + MAX_BELIEVED, has_elsewhere(env),
                       &f->gp, err);
    return st;
}

static kopt_status allocate(struct bayes *f, kopt_error *err)
{
    const struct kp_search_env *env = f->env;
    size_t results = max_results(env);
    kopt_status st = kp_features_init(&f->features, env->space, err);
    if (st == KOPT_OK)
        st = kp_history_init(&f->history, env->n_params, results, err);
    if (st == KOPT_OK)
        st = kp_candidates_init(&f->candidates, env, MAX_CANDIDATES, err);
    if (st == KOPT_OK)
        st = make_models(f, err);
    if (st != KOPT_OK)
        return st;
    size_t n = f->features.n + 1;
    f->known = kp_calloc(results, sizeof(*f->known));
    f->x = kp_calloc(results, n * sizeof(*f->x));
    f->y = kp_calloc(results, sizeof(*f->y));
    f->costs = kp_calloc(results, sizeof(*f->costs));
    f->points = kp_calloc(MAX_CANDIDATES, n * sizeof(*f->points));
    f->hope = kp_calloc(MAX_CANDIDATES, sizeof(*f->hope));
    f->spread = kp_calloc(MAX_CANDIDATES, sizeof(*f->spread));
    f->side = kp_calloc(MAX_CANDIDATES, sizeof(*f->side));
    f->mean = kp_calloc(MAX_CANDIDATES, sizeof(*f->mean));
    f->dev = kp_calloc(MAX_CANDIDATES, sizeof(*f->dev));
    f->gain = kp_calloc(MAX_CANDIDATES, sizeof(*f->gain));
    f->flight = kp_calloc((size_t)env->window * env->n_params + 1, sizeof(*f->flight));
    f->flight_side = kp_calloc(env->window, sizeof(*f->flight_side));
    bool ok = f->known && f->x && f->y && f->costs && f->points && f->hope && f->spread &&
              f->side && f->mean && f->dev && f->gain && f->flight && f->flight_side;
    return ok ? KOPT_OK : kp_err_nomem(err);
}

static kopt_status bayes_open(const struct kp_search_env *env, void **state, kopt_error *err)
{
    *state = NULL;
    struct bayes *f = kp_calloc(1, sizeof(*f));
    if (!f)
        return kp_err_nomem(err);
    f->env = env;
    f->best = (double)INFINITY;
    f->prior_best = (double)INFINITY;
    kopt_status st = allocate(f, err);
    if (st == KOPT_OK)
        *state = f;
    else
        bayes_close(f);
    return st;
}

static double side_of(const struct bayes *f, const uint32_t *config)
{
    return f->elsewhere.trees ? kp_elsewhere_at(&f->elsewhere, config) : 0;
}

static size_t flight_place(const struct bayes *f, size_t i)
{
    return (f->flight_first + i) % f->env->window;
}

static uint32_t *in_flight(const struct bayes *f, size_t i)
{
    return f->flight + flight_place(f, i) * f->env->n_params;
}

static void set_features(struct bayes *f, const uint32_t *config, size_t column)
{
    for (size_t k = 0; k < f->features.n; k++)
        f->x[k * f->history.max + column] = kp_feature_of(&f->features, k, config);
}

static void bayes_asked(void *state, const uint32_t *config)
{
    struct bayes *f = state;
    f->flight_side[flight_place(f, f->n_flight)] = side_of(f, config);
    memcpy(in_flight(f, f->n_flight), config, f->env->n_params * sizeof(*config));
    f->n_flight++;
    f->n_asked++;
}

static void bayes_learn(void *state, const uint32_t *config, double cost)
{
    struct bayes *f = state;
    double side = f->flight_side[f->flight_first];
    f->flight_first = (f->flight_first + 1) % f->env->window;
    f->n_flight--;
    const struct kp_prior *p = f->env->prior;
    if (cost < f->best) {
        f->best = cost;
        f->best_asked = f->n_asked;
    }
    if (p && cost < f->prior_best && kp_prior_find(p, f->env->space, config) < p->n)
        f->prior_best = cost;
    size_t place = kp_history_add(&f->history, config, cost, f->env->rng);
    f->known[place] = side;
    f->y[place] = isfinite(cost) ? 1 : 0;
    set_features(f, config, place);
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
static double distance_to_asked(const struct bayes *f, const uint32_t *config)
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
static bool explore(struct bayes *f, uint32_t *config)
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

/* Is the best of a prior's list near the best that is known? */
static bool prior_pays(const struct bayes *f)
{
    return f->prior_best <= pays * f->history.costs[f->history.order[0]];
}

/* Is it too early to ask the process? A prior's list is a start, but it may lie in a corner of
 * the space that is no good: some configurations from elsewhere tell. A model's list is
 * followed by as many as a search without a list begins with if they do; else only every other
 * ask. What results from elsewhere are worth the process finds out. */
static bool is_start(const struct bayes *f)
{
    if (f->history.n_ok < 2)
        return true;
    if (!f->env->prior)
        return f->n_asked < N_START;
    if (f->elsewhere.trees)
        return false;
    if (f->n_explored >= N_START)
        return false;
    return f->n_explored < N_LOOK || !prior_pays(f) || (f->n_asked - f->env->n_given) % 2 == 0;
}

static void observe(struct bayes *f, size_t k)
{
    const struct kp_history *h = &f->history;
    size_t place = h->order[k];
    double y = kp_log2_portable(h->costs[place]) - kp_log2_portable(h->costs[h->order[0]]);
    kp_gp_add(f->gp, kp_history_at(h, place), f->known[place], y);
}

/* As much as the work for a step allows. */
static size_t n_steps(const struct bayes *f, size_t n)
{
    double x = (double)n;
    double steps = work / (x * x * (x / 6 + (double)f->env->n_varied) + 1000);
    if (steps < 1)
        return f->n_asked % RARE_STEP == 0;
    return steps < MAX_STEPS ? (size_t)steps : MAX_STEPS;
}

static void learn_costs(struct bayes *f)
{
    size_t n = f->history.n_ok;
    size_t best = n <= MAX_LEARNED ? n : N_BEST_LEARNED;
    size_t others = n - best < MAX_LEARNED - best ? n - best : MAX_LEARNED - best;
    kp_gp_clear(f->gp);
    for (size_t k = 0; k < best; k++)
        observe(f, k);
    for (size_t k = 0; k < others; k++)
        observe(f, best + k * (n - best) / others);
    kp_gp_learn(f->gp, n_steps(f, best + others), f->env->rng);
    for (size_t i = 0; i < f->n_flight && i < MAX_BELIEVED; i++)
        kp_gp_believe(f->gp, in_flight(f, i), f->flight_side[flight_place(f, i)]);
}

static void gather(struct bayes *f)
{
    struct kp_candidates *c = &f->candidates;
    const struct kp_history *h = &f->history;
    const struct kp_prior *p = f->env->prior;
    kp_candidates_clear(c);
    for (size_t k = 0; k < N_NEAR_ELITE && k < h->n_ok; k++)
        kp_candidates_near(c, kp_history_best(h, k), MAX_NEAR);
    kp_candidates_cross(c, h, N_CROSS_ELITE, N_CHILDREN);
    if (f->elsewhere.trees)
        kp_candidates_listed(c, p, N_LISTED);
    else if (p && prior_pays(f))
        kp_candidates_likely(c, p, N_LIKELY);
    kp_candidates_random(c, N_RANDOM);
    for (size_t i = 0; i < c->n; i++)
        f->side[i] = side_of(f, c->configs + i * f->env->n_params);
}

static void set_points(struct bayes *f)
{
    const struct kp_candidates *c = &f->candidates;
    for (size_t i = 0; i < c->n; i++) {
        const uint32_t *config = c->configs + i * f->env->n_params;
        for (size_t k = 0; k < f->features.n; k++)
            f->points[i * f->features.n + k] = kp_feature_of(&f->features, k, config);
    }
}

/* The probability of success of each candidate. */
static void set_hope(struct bayes *f)
{
    const struct kp_candidates *c = &f->candidates;
    const struct kp_history *h = &f->history;
    if (h->n_ok == h->n) {
        for (size_t i = 0; i < c->n; i++)
            f->hope[i] = 1;
        return;
    }
    set_points(f);
    struct kp_sample s = {f->x, h->max, f->y, h->n};
    kp_trees_grow(f->trees, &s, N_REGROW, f->env->rng);
    kp_trees_predict(f->trees, f->points, c->n, f->hope, f->spread);
}

static double gain_of(const struct bayes *f, size_t i, double mean, double dev)
{
    double hope = least_hope + (1 - least_hope) * (double)f->hope[i];
    return hope * kp_expected_gain(mean, sqrt(dev * dev + least_dev * least_dev), 0);
}

/* The candidate that promises most. A deviation takes work, and a gain grows with it: with
 * upper bounds of the deviations, those that cannot be the best need not be looked at. */
static size_t choose(struct bayes *f)
{
    const struct kp_candidates *c = &f->candidates;
    size_t chosen = 0;
    double most = -1;
    set_hope(f);
    kp_gp_guess(f->gp, c->configs, f->side, c->n, f->mean, f->dev);
    for (size_t i = 0; i < c->n; i++)
        f->gain[i] = gain_of(f, i, f->mean[i], f->dev[i]);
    for (size_t n = 0; n < MAX_PREDICTED; n++) {
        size_t next = 0;
        for (size_t i = 1; i < c->n; i++)
            next = f->gain[i] > f->gain[next] ? i : next;
        if (f->gain[next] <= most)
            break;
        kp_gp_predict(f->gp, c->configs + next * f->env->n_params, f->side[next],
                      &f->mean[next], &f->dev[next]);
        double gain = gain_of(f, next, f->mean[next], f->dev[next]);
        chosen = gain > most ? next : chosen;
        most = gain > most ? gain : most;
        f->gain[next] = -1;
    }
    return chosen;
}

/* --- hedges --------------------------------------------------------------------------------
 */

/* The candidate with the lowest optimistic estimate of a forest, of those that rather succeed
 * than fail where there are any. */
static size_t choose_by_trees(struct bayes *f)
{
    const struct kp_candidates *c = &f->candidates;
    size_t n = f->history.n;
    kp_history_targets(&f->history, f->costs);
    set_points(f);
    set_hope(f);
    for (size_t i = 0; i < c->n; i++)
        f->gain[i] = f->hope[i] < 0.5F ? fails : 0;
    struct kp_sample s = {f->x, f->history.max, f->costs, n};
    kp_trees_grow(f->cost_trees, &s, n <= FEW_RESULTS ? N_COST_TREES : N_COST_REGROW,
                  f->env->rng);
    kp_trees_predict(f->cost_trees, f->points, c->n, f->hope, f->spread);
    double kappa = kappa_end + kappa_extra * kappa_fall / (kappa_fall + (double)n);
    size_t chosen = 0;
    for (size_t i = 0; i < c->n; i++) {
        f->mean[i] = f->gain[i] + (double)f->hope[i] - kappa * (double)f->spread[i];
        chosen = f->mean[i] < f->mean[chosen] ? i : chosen;
    }
    return chosen;
}

/* The neighbour of the best with the least expected cost. False: all of them were asked. */
static bool choose_near(struct bayes *f, size_t *chosen)
{
    struct kp_candidates *c = &f->candidates;
    kp_candidates_clear(c);
    kp_candidates_near(c, kp_history_best(&f->history, 0), MAX_NEAR);
    if (c->n == 0)
        return false;
    for (size_t i = 0; i < c->n; i++)
        f->side[i] = side_of(f, c->configs + i * f->env->n_params);
    kp_gp_guess(f->gp, c->configs, f->side, c->n, f->mean, f->dev);
    *chosen = 0;
    for (size_t i = 1; i < c->n; i++)
        *chosen = f->mean[i] < f->mean[*chosen] ? i : *chosen;
    return true;
}

static bool bayes_propose(void *state, uint32_t *config)
{
    struct bayes *f = state;
    const struct kp_candidates *c = &f->candidates;
    size_t n = f->env->n_params;
    if (!f->gp)
        return false;
    if (is_start(f))
        return explore(f, config);
    bool hedge = f->n_asked % 2 == 0;
    bool stale = f->n_asked >= f->best_asked + N_STALE;
    size_t chosen = 0;
    learn_costs(f);
    if (!(hedge && !stale && f->elsewhere.trees && choose_near(f, &chosen))) {
        gather(f);
        if (c->n == 0)
            return false;
        chosen = hedge && stale ? choose_by_trees(f) : choose(f);
    }
    memcpy(config, c->configs + chosen * n, n * sizeof(*config));
    return true;
}

const struct kp_search_ops kp_strategy_bayes = {
    .open = bayes_open,
    .close = bayes_close,
    .propose = bayes_propose,
    .asked = bayes_asked,
    .learn = bayes_learn,
};
