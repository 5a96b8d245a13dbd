/* SPDX-License-Identifier: MIT */
/* Gradients against central differences. */
#ifndef KP_TESTS_NN_GRADIENT_H
#define KP_TESTS_NN_GRADIENT_H

#include "base/rng.h"
#include "support/test.h"

#include <math.h>

static inline void draw_normal(struct kp_rng *rng, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)kp_rng_normal(rng);
}

/* sum x y, in double */
static inline double weighed(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* The derivative of `loss` with respect to *x. Two central differences, of steps h and h / 2,
 * leave an error of the order of h^4 (Richardson). With h = 2^-5 that is about 1e-6 times the
 * fifth derivative, and the rounding of the outputs, 1e-7 of sums of some tens of numbers about
 * 1, is multiplied by about 100: a tolerance of 1e-3 is ten times as much as that. */
static inline double derivative(double (*loss)(void *user), void *user, float *x)
{
    const float was = *x;
    double slope[2];
    for (int k = 0; k < 2; k++) {
        const float h = k ? 0x1p-6F : 0x1p-5F;
        float up = was + h;
        float down = was - h;
        *x = up;
        double high = loss(user);
        *x = down;
        double low = loss(user);
        slope[k] = (high - low) / ((double)up - (double)down);
    }
    *x = was;
    return (4 * slope[1] - slope[0]) / 3;
}

static inline void check_gradient(const char *what, double (*loss)(void *user), void *user,
                                  float *x, const float *dx, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double want = derivative(loss, user, &x[i]);
        if (!(fabs((double)dx[i] - want) <= 1e-3 * (1 + fabs(want))))
            fail_msg("%s: element %zu is %.6g, the difference says %.6g", what, i,
                     (double)dx[i], want);
    }
}

#endif
