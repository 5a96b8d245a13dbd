/* SPDX-License-Identifier: MIT */
#include "search/gp.h"

#include "base/alloc.h"
#include "math/portable.h"

#include <math.h>

/* Values of a parameter whose pairs have a table; levels of a feature's distance; numbers that
 * are learned besides the lengths. */
enum { MAX_PAIRS = 64, MAX_LEVELS = 1024, N_EXTRA = 4 };
enum { NOISE, SHARE, LINEAR, SIDE };

static const double ln2 = 0.69314718055994531;
static const double log2e = 1.4426950408889634;
/* Of the mean of all costs, which is not known, in units of s2. */
static const double constant = 0.25;
/* s2 has an inverse gamma distribution with these beforehand. */
static const double s2_shape = 1;
static const double s2_scale = 1;
static const double least_variance = 1e-10;

/* What is expected of a number that is learned: normal, in powers of two. */
struct expected {
    double mean;
    double dev;
};
static const struct expected of_length = {0, 1.5};
static const struct expected of_extra[N_EXTRA] = {
    [NOISE] = {-13, 2}, [SHARE] = {0, 2}, [LINEAR] = {0, 2}, [SIDE] = {1, 1.5}};

/* The correlation by the distance in one feature. */
struct ruler {
    double step; /* levels for one unit of the feature */
    uint32_t n_levels;
    bool named;
    double log_length; /* that `table` was made for; NaN: none */
    float *table;
};

/* Of two values of a parameter: the product of its features' correlations, and their sum over
 * the number of all features. */
struct pair {
    float product;
    float sum;
};

struct axis {
    uint32_t param;
    uint32_t n_values;
    size_t first; /* of its features */
    size_t end;
    struct pair *pairs; /* n_values * n_values; NULL: there are too many values */
};

struct kp_gp {
    const struct kp_features *features;
    size_t max;
    size_t n;       /* observations */
    size_t n_known; /* and believed points behind them */
    size_t n_params;
    size_t n_axes;
    struct axis *axes;
    struct ruler *rulers; /* one for each feature */
    struct pair *pairs;   /* all of them */
    float *tables;
    size_t n_theta;
    double *theta; /* lengths, then N_EXTRA; logarithms to base 2 */
    double *trial;
    bool with_side;
    double share; /* a, b, 1 / length^2 of the side, noise */
    double linear;
    double side_scale;
    double noise;
    double mean;
    double s2;
    uint32_t *configs; /* max * n_params */
    double *side;
    double *y;
    double *z;      /* y - mean, solved by the factor */
    double *weight; /* the same, solved once more */
    double *column; /* scratch */
    double *factor; /* lower triangle, rows of max */
};

/* --- making it ------------------------------------------------------------------------------
 */

/* The difference of the greatest and the least value of a feature. */
static double range_of(const struct kp_features *f, size_t k, const struct kp_param *p)
{
    const float *table = f->list[k].table;
    float low = table ? table[0] : 0;
    float high = table ? table[0] : (float)(p->n_values - 1);
    for (uint32_t i = 1; table && i < p->n_values; i++) {
        low = table[i] < low ? table[i] : low;
        high = table[i] > high ? table[i] : high;
    }
    return (double)(high - low);
}

static void set_ruler(struct kp_gp *g, size_t k, const struct kp_param *p)
{
    struct ruler *r = &g->rulers[k];
    double range = range_of(g->features, k, p);
    *r = (struct ruler){.named = g->features->list[k].named, .log_length = (double)NAN};
    r->table = g->tables + k * MAX_LEVELS;
    if (r->named)
        range = 1;
    r->n_levels = range < MAX_LEVELS ? (uint32_t)range + 1 : MAX_LEVELS;
    r->step = range > 0 ? (double)(r->n_levels - 1) / range : 0;
}

/* Features of a parameter are neighbours in the list. Returns how many pairs there are. */
static size_t set_axes(struct kp_gp *g, const struct kp_space *space)
{
    size_t n_pairs = 0;
    for (size_t k = 0; k < g->features->n; k++) {
        uint32_t param = g->features->list[k].param;
        uint32_t n = kp_space_param(space, param)->n_values;
        set_ruler(g, k, kp_space_param(space, param));
        if (k > 0 && g->axes[g->n_axes - 1].param == param) {
            g->axes[g->n_axes - 1].end++;
            continue;
        }
        g->axes[g->n_axes++] = (struct axis){param, n, k, k + 1, NULL};
        n_pairs += n <= MAX_PAIRS ? (size_t)n * n : 0;
    }
    return n_pairs;
}

static kopt_status set_pairs(struct kp_gp *g, size_t n_pairs, kopt_error *err)
{
    g->pairs = kp_calloc(n_pairs + 1, sizeof(*g->pairs));
    if (!g->pairs)
        return kp_err_nomem(err);
    struct pair *free = g->pairs;
    for (size_t i = 0; i < g->n_axes; i++) {
        struct axis *a = &g->axes[i];
        if (a->n_values > MAX_PAIRS)
            continue;
        a->pairs = free;
        free += (size_t)a->n_values * a->n_values;
    }
    return KOPT_OK;
}

static kopt_status allocate(struct kp_gp *g, kopt_error *err)
{
    size_t n = g->features->n;
    size_t max = g->max;
    g->axes = kp_calloc(n, sizeof(*g->axes));
    g->rulers = kp_calloc(n, sizeof(*g->rulers));
    g->tables = kp_calloc(n * MAX_LEVELS, sizeof(*g->tables));
    g->theta = kp_calloc(g->n_theta, sizeof(*g->theta));
    g->trial = kp_calloc(g->n_theta, sizeof(*g->trial));
    g->configs = kp_calloc(max * g->n_params, sizeof(*g->configs));
    g->side = kp_calloc(max, sizeof(*g->side));
    g->y = kp_calloc(max, sizeof(*g->y));
    g->z = kp_calloc(max, sizeof(*g->z));
    g->weight = kp_calloc(max, sizeof(*g->weight));
    g->column = kp_calloc(max, sizeof(*g->column));
    g->factor = kp_calloc(max * max, sizeof(*g->factor));
    bool ok = g->axes && g->rulers && g->tables && g->theta && g->trial && g->configs &&
              g->side && g->y && g->z && g->weight && g->column && g->factor;
    return ok ? KOPT_OK : kp_err_nomem(err);
}

static const struct expected *expected_of(const struct kp_gp *g, size_t i)
{
    return i < g->features->n ? &of_length : &of_extra[i - g->features->n];
}

kopt_status kp_gp_new(const struct kp_space *space, const struct kp_features *f, size_t max,
                      bool with_side, struct kp_gp **out, kopt_error *err)
{
    *out = NULL;
    struct kp_gp *g = kp_calloc(1, sizeof(*g));
    if (!g)
        return kp_err_nomem(err);
    g->features = f;
    g->max = max;
    g->n_params = kp_space_n_params(space);
    g->n_theta = f->n + N_EXTRA;
    g->with_side = with_side;
    kopt_status st = allocate(g, err);
    if (st == KOPT_OK)
        st = set_pairs(g, set_axes(g, space), err);
    if (st != KOPT_OK) {
        kp_gp_free(g);
        return st;
    }
    for (size_t i = 0; i < g->n_theta; i++)
        g->theta[i] = expected_of(g, i)->mean;
    *out = g;
    return KOPT_OK;
}

void kp_gp_free(struct kp_gp *g)
{
    if (!g)
        return;
    kp_free(g->axes);
    kp_free(g->rulers);
    kp_free(g->pairs);
    kp_free(g->tables);
    kp_free(g->theta);
    kp_free(g->trial);
    kp_free(g->configs);
    kp_free(g->side);
    kp_free(g->y);
    kp_free(g->z);
    kp_free(g->weight);
    kp_free(g->column);
    kp_free(g->factor);
    kp_free(g);
}

/* --- covariances ----------------------------------------------------------------------------
 */

/* Matern's of order 5/2. */
static double correlation(double distance, double length)
{
    double r = 2.2360679774997897 * distance / length; /* sqrt(5) */
    return (1 + r + r * r / 3) * kp_exp2_portable(-log2e * r);
}

/* False when it is up to date. */
static bool set_table(struct ruler *r, double log_length)
{
    if (r->log_length == log_length)
        return false;
    double length = kp_exp2_portable(log_length);
    double share = r->n_levels > 1 ? 1.0 / (double)(r->n_levels - 1) : 0;
    for (uint32_t i = 0; i < r->n_levels; i++)
        r->table[i] = (float)correlation((double)i * share, length);
    r->log_length = log_length;
    return true;
}

static struct pair pair_of(const struct kp_gp *g, const struct axis *a, uint32_t i, uint32_t j)
{
    struct pair p = {1, 0};
    for (size_t k = a->first; k < a->end; k++) {
        const struct kp_feature *f = &g->features->list[k];
        const struct ruler *r = &g->rulers[k];
        double x = f->table ? (double)f->table[i] : (double)i;
        double y = f->table ? (double)f->table[j] : (double)j;
        double d = r->named ? (double)(x != y) : fabs(x - y);
        uint32_t level = (uint32_t)(d * r->step);
        float c = r->table[level < r->n_levels ? level : r->n_levels - 1];
        p.product *= c;
        p.sum += c;
    }
    p.sum /= (float)g->features->n;
    return p;
}

static void set_axis(struct kp_gp *g, struct axis *a, const double *theta)
{
    bool changed = false;
    for (size_t k = a->first; k < a->end; k++)
        changed = set_table(&g->rulers[k], theta[k]) || changed;
    if (!changed || !a->pairs)
        return;
    uint32_t n = a->n_values;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i; j < n; j++) {
            struct pair p = pair_of(g, a, i, j);
            a->pairs[(size_t)i * n + j] = p;
            a->pairs[(size_t)j * n + i] = p;
        }
    }
}

static void set_theta(struct kp_gp *g, const double *theta)
{
    const double *extra = theta + g->features->n;
    for (size_t i = 0; i < g->n_axes; i++)
        set_axis(g, &g->axes[i], theta);
    double odds = kp_exp2_portable(extra[SHARE]);
    g->share = odds / (1 + odds);
    g->noise = kp_exp2_portable(extra[NOISE]);
    g->linear = g->with_side ? kp_exp2_portable(extra[LINEAR]) : 0;
    g->side_scale = kp_exp2_portable(-2 * extra[SIDE]);
}

/* Of two points, in units of s2. */
static double covariance(const struct kp_gp *g, const uint32_t *x, double side, size_t at)
{
    const uint32_t *y = g->configs + at * g->n_params;
    float product = 1;
    float sum = 0;
    for (size_t i = 0; i < g->n_axes; i++) {
        const struct axis *a = &g->axes[i];
        uint32_t u = x[a->param];
        uint32_t v = y[a->param];
        struct pair p = a->pairs ? a->pairs[(size_t)u * a->n_values + v] : pair_of(g, a, u, v);
        product *= p.product;
        sum += p.sum;
    }
    double all = (1 - g->share) * (double)product;
    if (g->with_side) {
        double d = side - g->side[at];
        all = all / (1 + d * d * g->side_scale) + g->linear * side * g->side[at];
    }
    return g->share * (double)sum + all + constant;
}

static double variance(const struct kp_gp *g, double side)
{
    return 1 + g->linear * side * side + constant;
}

/* Four sums, so that they need not wait for one another; always the same four. */
static double dot(const double *a, const double *b, size_t n)
{
    double s[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s[0] += a[i] * b[i];
        s[1] += a[i + 1] * b[i + 1];
        s[2] += a[i + 2] * b[i + 2];
        s[3] += a[i + 3] * b[i + 3];
    }
    double sum = (s[0] + s[1]) + (s[2] + s[3]);
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Solve the first `n` rows of the factor for the covariances with a point. */
static void solve(const struct kp_gp *g, const uint32_t *config, double side, size_t n,
                  double *v)
{
    for (size_t j = 0; j < n; j++) {
        const double *row = g->factor + j * g->max;
        v[j] = (covariance(g, config, side, j) - dot(v, row, j)) / row[j];
    }
}

/* Row i of the factor (Cholesky, by rows). */
static void add_row(struct kp_gp *g, size_t i)
{
    double *row = g->factor + i * g->max;
    solve(g, g->configs + i * g->n_params, g->side[i], i, row);
    double left = variance(g, g->side[i]) + g->noise - dot(row, row, i);
    row[i] = sqrt(left > least_variance ? left : least_variance);
}

static void factorize(struct kp_gp *g, const double *theta)
{
    set_theta(g, theta);
    for (size_t i = 0; i < g->n; i++) {
        const double *row = g->factor + i * g->max;
        add_row(g, i);
        g->z[i] = (g->y[i] - g->mean - dot(row, g->z, i)) / row[i];
    }
    g->n_known = g->n;
    double squares = s2_scale + 0.5 * dot(g->z, g->z, g->n);
    g->s2 = squares / (s2_shape + 0.5 * (double)g->n);
}

/* --- learning -------------------------------------------------------------------------------
 */

/* The logarithm of the posterior, but for a constant, with s2 integrated out. */
static double likelihood(struct kp_gp *g, const double *theta)
{
    factorize(g, theta);
    double squares = s2_scale + 0.5 * dot(g->z, g->z, g->n);
    double sum = -(s2_shape + 0.5 * (double)g->n) * ln2 * kp_log2_portable(squares);
    for (size_t i = 0; i < g->n; i++)
        sum -= ln2 * kp_log2_portable(g->factor[i * g->max + i]);
    for (size_t i = 0; i < g->n_theta; i++) {
        double d = (theta[i] - expected_of(g, i)->mean) / expected_of(g, i)->dev;
        sum -= 0.5 * d * d;
    }
    return sum;
}

/* Symmetric, as the algorithm needs it: one or two numbers, or now and then all a little. */
static void make_trial(struct kp_gp *g, struct kp_rng *rng)
{
    size_t n = g->n_theta - (g->with_side ? 0 : 2); /* LINEAR and SIDE stand last */
    bool all = kp_rng_below(rng, 4) == 0;
    size_t changes = all ? n : 1 + (size_t)kp_rng_below(rng, 2);
    for (size_t i = 0; i < g->n_theta; i++)
        g->trial[i] = g->theta[i];
    for (size_t i = 0; i < changes; i++) {
        size_t k = all ? i : (size_t)kp_rng_below(rng, n);
        double about = kp_rng_f64(rng) + kp_rng_f64(rng) + kp_rng_f64(rng) - 1.5;
        g->trial[k] += about * (all ? 1 : 3);
    }
}

void kp_gp_clear(struct kp_gp *g)
{
    g->n = 0;
    g->n_known = 0;
}

static void set_point(struct kp_gp *g, size_t at, const uint32_t *config, double side)
{
    for (size_t i = 0; i < g->n_params; i++)
        g->configs[at * g->n_params + i] = config[i];
    g->side[at] = side;
}

void kp_gp_add(struct kp_gp *g, const uint32_t *config, double side, double y)
{
    if (g->n == g->max)
        return;
    set_point(g, g->n, config, side);
    g->y[g->n++] = y;
}

void kp_gp_learn(struct kp_gp *g, size_t steps, struct kp_rng *rng)
{
    g->mean = 0;
    for (size_t i = 0; i < g->n; i++)
        g->mean += g->y[i] / (double)g->n;
    double now = steps ? likelihood(g, g->theta) : 0;
    bool fresh = steps > 0;
    for (size_t k = 0; k < steps; k++) {
        make_trial(g, rng);
        double then = likelihood(g, g->trial);
        double u = kp_rng_f64(rng);
        fresh = then >= now || (u > 0 && ln2 * kp_log2_portable(u) < then - now);
        if (!fresh)
            continue;
        now = then;
        for (size_t i = 0; i < g->n_theta; i++)
            g->theta[i] = g->trial[i];
    }
    if (!fresh)
        factorize(g, g->theta);
}

void kp_gp_believe(struct kp_gp *g, const uint32_t *config, double side)
{
    if (g->n_known == g->max)
        return;
    set_point(g, g->n_known, config, side);
    add_row(g, g->n_known);
    g->z[g->n_known++] = 0;
}

/* --- predicting -----------------------------------------------------------------------------
 */

static void set_weights(struct kp_gp *g)
{
    size_t n = g->n_known;
    for (size_t i = 0; i < n; i++)
        g->weight[i] = g->z[i];
    for (size_t i = n; i-- > 0;) {
        const double *row = g->factor + i * g->max;
        g->weight[i] /= row[i];
        for (size_t j = 0; j < i; j++)
            g->weight[j] -= row[j] * g->weight[i];
    }
}

void kp_gp_guess(struct kp_gp *g, const uint32_t *configs, const double *side, size_t n,
                 double *mean, double *most)
{
    set_weights(g);
    for (size_t p = 0; p < n; p++) {
        double s = side ? side[p] : 0;
        double sum = 0;
        double known = 0; /* by the one observation that says most */
        for (size_t i = 0; i < g->n_known; i++) {
            double k = covariance(g, configs + p * g->n_params, s, i);
            double share = k * k / (variance(g, g->side[i]) + g->noise);
            known = share > known ? share : known;
            sum += k * g->weight[i];
        }
        mean[p] = g->mean + sum;
        double left = variance(g, s) - known;
        most[p] = sqrt(g->s2 * (left > least_variance ? left : least_variance));
    }
}

void kp_gp_predict(struct kp_gp *g, const uint32_t *config, double side, double *mean,
                   double *dev)
{
    double *v = g->column;
    solve(g, config, side, g->n_known, v);
    *mean = g->mean + dot(v, g->z, g->n_known);
    double left = variance(g, side) - dot(v, v, g->n_known);
    *dev = sqrt(g->s2 * (left > least_variance ? left : least_variance));
}
