/* SPDX-License-Identifier: MIT */
/* Pseudo-random numbers, the same for a seed on every machine; only kp_rng_normal() depends on
 * the C library, in its last bits. Layer: base.
 * Generator: xoshiro256** 1.0 seeded by splitmix64 (Blackman and Vigna, 2018). */
#ifndef KP_BASE_RNG_H
#define KP_BASE_RNG_H

#include <stdint.h>

struct kp_rng {
    uint64_t s[4];
};

void kp_rng_init(struct kp_rng *r, uint64_t seed);
uint64_t kp_rng_u64(struct kp_rng *r);
/* Uniform in [0, n), without bias; n must not be 0. */
uint64_t kp_rng_below(struct kp_rng *r, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double kp_rng_f64(struct kp_rng *r);
/* Standard normal, by the polar method. */
double kp_rng_normal(struct kp_rng *r);

#endif
