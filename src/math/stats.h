/* SPDX-License-Identifier: MIT */
/* Robust statistics of repeated timings. Layer: math. */
#ifndef KP_MATH_STATS_H
#define KP_MATH_STATS_H

#include <stddef.h>

/* Median of n >= 1 finite values; `x` is reordered. */
double kp_median(double *x, size_t n);

struct kp_interval {
    double median;
    double low; /* confidence interval of the median */
    double high;
};

/* Distribution-free interval from order statistics (binomial), coverage at least 95 % from n >=
 * 6; for fewer the range of the sample. `x` is sorted. */
struct kp_interval kp_median_interval(double *x, size_t n);

/* Paired comparison of interleaved samples a[i], b[i]: the ratio of medians a/b and a 95 %
 * interval by bootstrap (seeded, deterministic). Pairs that are not finite, or with b <= 0, are
 * left out; NaN in all three when none remains or memory is out. */
struct kp_interval kp_ratio_interval(const double *a, const double *b, size_t n);

#endif
