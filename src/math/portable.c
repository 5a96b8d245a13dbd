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
