/* SPDX-License-Identifier: MIT */
#include "search/gain.h"

#include "math/portable.h"

/* Terms of the series, enough for |z| < NEAR, and of the fraction, enough beyond. */
enum { N_SERIES = 40, N_FRACTION = 40 };
static const double near = 2;

static double density(double z)
{
    return 0.3989422804014327 * kp_exp2_portable(-0.7213475204444817 * z * z); /* log2(e) / 2 */
}

/* The distribution function, as 1/2 + density(z) (z + z^3 / 3 + z^5 / (3 5) + ..). */
static double below(double z)
{
    double term = z;
    double sum = z;
    for (int k = 3; k < 2 * N_SERIES; k += 2) {
        term *= z * z / k;
        sum += term;
    }
    return 0.5 + density(z) * sum;
}

/* Of a standard normal number beyond t: the mean of what is beyond. With c = 1 / (t + 2 / (t +
 * 3 / ..)), the rest of the continued fraction of Mills' ratio 1 / (t + c), it is density(t)
 * (1 - t / (t + c)): no difference of numbers that are nearly equal. */
static double tail(double t)
{
    double c = 0;
    for (int k = N_FRACTION; k >= 1; k--)
        c = k / (t + c);
    return density(t) * c / (t + c);
}

double kp_expected_gain(double mean, double dev, double best)
{
    double z = (best - mean) / dev;
    if (z < -near)
        return dev * tail(-z);
    if (z > near)
        return dev * (z + tail(z));
    return dev * (z * below(z) + density(z));
}
