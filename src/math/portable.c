/* SPDX-License-Identifier: MIT */
#include "math/portable.h"

#include <math.h>

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log m = 2 atanh(t), t = (m - 1) / (m + 1), by
 * its series: |t| < 0.172, so that the first term left out, t^23 / 23, is below 2e-19. frexp()
 * is exact. */
double kp_log2_portable(double x)
{
    int e = 0;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double t = (m - 1) / (m + 1);
    double t2 = t * t;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * t2 + 1.0 / k;
    return e + 2 * t * sum * 1.4426950408889634;
}

/* x = n + f with |f| <= 1/2, and 2^f = exp(f log 2) by its series: |f log 2| < 0.347, so that
 * the first term left out, 0.347^15 / 15!, is below 1e-19. ldexp() is exact. */
double kp_exp2_portable(double x)
{
    if (x > 1100)
        return (double)INFINITY;
    if (!(x >= -1100))
        return x < 0 ? 0 : x; /* NaN stays NaN */
    double n = floor(x + 0.5);
    double y = (x - n) * 0.69314718055994531;
    double sum = 1;
    for (int k = 14; k >= 1; k--)
        sum = 1 + sum * y / k;
    return ldexp(sum, (int)n);
}
