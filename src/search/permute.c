/* SPDX-License-Identifier: MIT */
/* A balanced Feistel network over the smallest domain 2^(2h) >= n; values that fall outside 0
 * .. n-1 are sent through it again until they fall inside ("cycle walking": Black and Rogaway,
 * Ciphers with Arbitrary Finite Domains, 2002). The domain is smaller than 4 n, so that a walk
 * takes fewer than four steps on average. It mixes well, and is no cipher. */
#include "search/permute.h"

#include "base/error.h"
#include "base/rng.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
    return x ^ (x >> 33);
}

void kp_permute_init(struct kp_permute *p, uint64_t n, uint64_t seed)
{
    KP_CHECK(n != 0);
    struct kp_rng rng;
    kp_rng_init(&rng, seed);
    p->n = n;
    p->half = 1;
    while (p->half < 32 && ((n - 1) >> (2 * p->half)) != 0)
        p->half++;
    for (int r = 0; r < KP_PERMUTE_ROUNDS; r++)
        p->keys[r] = kp_rng_u64(&rng);
}

static uint64_t forward(const struct kp_permute *p, uint64_t x)
{
    uint64_t mask = (UINT64_C(1) << p->half) - 1;
    uint64_t left = x >> p->half;
    uint64_t right = x & mask;
    for (int r = 0; r < KP_PERMUTE_ROUNDS; r++) {
        uint64_t next = left ^ (mix(right ^ p->keys[r]) & mask);
        left = right;
        right = next;
    }
    return left << p->half | right;
}

static uint64_t backward(const struct kp_permute *p, uint64_t x)
{
    uint64_t mask = (UINT64_C(1) << p->half) - 1;
    uint64_t left = x >> p->half;
    uint64_t right = x & mask;
    for (int r = KP_PERMUTE_ROUNDS - 1; r >= 0; r--) {
        uint64_t before = right ^ (mix(left ^ p->keys[r]) & mask);
        right = left;
        left = before;
    }
    return left << p->half | right;
}

uint64_t kp_permute_at(const struct kp_permute *p, uint64_t i)
{
    KP_CHECK(i < p->n);
    do
        i = forward(p, i);
    while (i >= p->n);
    return i;
}

uint64_t kp_permute_place(const struct kp_permute *p, uint64_t x)
{
    KP_CHECK(x < p->n);
    do
        x = backward(p, x);
    while (x >= p->n);
    return x;
}
