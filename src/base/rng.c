/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

#include "base/error.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void kp_rng_init(struct kp_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

uint64_t kp_rng_u64(struct kp_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t kp_rng_below(struct kp_rng *r, uint64_t n)
{
    KP_CHECK(n != 0);
    uint64_t floor = (0 - n) % n; /* 2^64 mod n: values below it would be biased */
    for (;;) {
        uint64_t x = kp_rng_u64(r);
        if (x >= floor)
            return x % n;
    }
}

double kp_rng_f64(struct kp_rng *r)
{
    return (double)(kp_rng_u64(r) >> 11) * 0x1.0p-53;
}

double kp_rng_normal(struct kp_rng *r)
{
    for (;;) {
        double u = 2 * kp_rng_f64(r) - 1;
        double v = 2 * kp_rng_f64(r) - 1;
        double q = u * u + v * v;
        if (q > 0 && q < 1)
            return u * sqrt(-2 * log(q) / q);
    }
}
