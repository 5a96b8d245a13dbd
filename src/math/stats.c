/* SPDX-License-Identifier: MIT */
#include "math/stats.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(const double *sorted, size_t n)
{
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double kp_median(double *x, size_t n)
{
    qsort(x, n, sizeof(*x), ascending);
    return middle(x, n);
}

/* The largest k for which fewer than k of n samples lie below the true median with probability
 * of at most 2.5 %: P(Binomial(n, 1/2) < k) <= 0.025. Then [x(k), x(n+1-k)] covers the median
 * with at least 95 % (Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2). 0:
 * none. */
static size_t order_rank(size_t n)
{
    double p = pow(0.5, (double)n); /* P(Binomial = 0); underflows beyond 1,000 */
    double sum = 0;
    size_t k = 0;
    if (n > 1000) /* normal approximation */
        return (size_t)floor(0.5 * (double)n - 0.98 * sqrt((double)n));
    while (sum + p <= 0.025) {
        sum += p;
        k++;
        p *= (double)(n - k + 1) / (double)k;
    }
    return k;
}

struct kp_interval kp_median_interval(double *x, size_t n)
{
    struct kp_interval r = {.median = kp_median(x, n)};
    size_t k = order_rank(n);
    r.low = k ? x[k - 1] : x[0];
    r.high = k ? x[n - k] : x[n - 1];
    return r;
}

enum { RESAMPLES = 1000 };

/* One bootstrap resample of the pairs: the ratio of its medians. */
static double resampled_ratio(const double *pairs, size_t n, struct kp_rng *rng,
                              double *scratch)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)kp_rng_below(rng, n);
        scratch[i] = pairs[2 * k];
        scratch[n + i] = pairs[2 * k + 1];
    }
    return kp_median(scratch, n) / kp_median(scratch + n, n);
}

/* Percentile bootstrap over pairs (Efron and Tibshirani, An Introduction to the Bootstrap,
 * chapter 13): a pair was measured at the same moment, so it is drawn as one. */
struct kp_interval kp_ratio_interval(const double *a, const double *b, size_t n)
{
    struct kp_interval r = {(double)NAN, (double)NAN, (double)NAN};
    struct kp_rng rng;
    double *pairs = kp_calloc(4 * n + RESAMPLES + 1, sizeof(*pairs));
    if (!pairs)
        return r;
    double *scratch = pairs + 2 * n;
    double *ratios = scratch + 2 * n;
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]) || b[i] <= 0)
            continue;
        pairs[2 * m] = a[i];
        pairs[2 * m + 1] = b[i];
        m++;
    }
    if (m) {
        for (size_t i = 0; i < m; i++) {
            scratch[i] = pairs[2 * i];
            scratch[m + i] = pairs[2 * i + 1];
        }
        r.median = kp_median(scratch, m) / kp_median(scratch + m, m);
        kp_rng_init(&rng, 1);
        for (size_t i = 0; i < RESAMPLES; i++)
            ratios[i] = resampled_ratio(pairs, m, &rng, scratch);
        qsort(ratios, RESAMPLES, sizeof(*ratios), ascending);
        r.low = ratios[RESAMPLES / 40];
        r.high = ratios[RESAMPLES - 1 - RESAMPLES / 40];
    }
    kp_free(pairs);
    return r;
}
