/* SPDX-License-Identifier: MIT */
/* Layer: math. */
#include "math/half.h"

#include <math.h>
#include <string.h>

enum {
    FRACTION = 10,      /* bits */
    INFINITE = 0x7c00,  /* all of the exponent */
    QUIET = 0x0200,     /* a NaN that does not trap */
    LEAST_NORMAL = -14, /* exponents */
    LEAST = LEAST_NORMAL - FRACTION
};

kp_half kp_half_of(float x)
{
    kp_half sign = signbit(x) ? 0x8000 : 0;
    float a = fabsf(x);
    int exponent = 0;
    if (isnan(x))
        return sign | INFINITE | QUIET;
    if (a >= KP_HALF_MAX + 16) /* half a unit above; of the two the even one is infinity */
        return sign | INFINITE;
    if (a == 0)
        return sign;
    (void)frexpf(a, &exponent); /* a < 2^exponent */
    int unit = exponent - 1 < LEAST_NORMAL ? LEAST : exponent - 1 - FRACTION;
    /* How many units, to the nearest, of two the even one: exact but for that. What is carried
     * over goes into the exponent, which stands where it must. */
    int bits = (int)rintf(ldexpf(a, -unit)) + (unit - LEAST) * (1 << FRACTION);
    return sign | (kp_half)bits;
}

float kp_half_value(kp_half h)
{
    int fraction = h & ((1 << FRACTION) - 1);
    int exponent = (h & INFINITE) >> FRACTION;
    float a = exponent == INFINITE >> FRACTION ? (fraction ? NAN : INFINITY)
              : exponent == 0
                  ? ldexpf((float)fraction, LEAST)
                  : ldexpf((float)(fraction + (1 << FRACTION)), exponent - 1 + LEAST);
    return h & 0x8000 ? -a : a;
}
