/* SPDX-License-Identifier: MIT */
/* Numbers of 16 bits, IEEE 754's binary16: a sign, 5 bits of exponent, 10 of the fraction.
 * Layer: math. */
#ifndef KP_MATH_HALF_H
#define KP_MATH_HALF_H

#include <stdint.h>

typedef uint16_t kp_half; /* the bits */

#define KP_HALF_MAX 65504.0F

/* The nearest half of x, of two the even one; beyond KP_HALF_MAX, rounded, infinity. NaN stays
 * one. */
kp_half kp_half_of(float x);
/* Exact. */
float kp_half_value(kp_half h);

#endif
