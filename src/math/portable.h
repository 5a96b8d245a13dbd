/* SPDX-License-Identifier: MIT */
/* Functions whose last bit is the same on every machine, which libm does not promise: made of
 * additions, multiplications and divisions only. For decisions that must repeat. Layer: math.
 */
#ifndef KP_MATH_PORTABLE_H
#define KP_MATH_PORTABLE_H

/* Base-2 logarithm of a finite x > 0, with an error below 1e-13 * max(1, |log2 x|). */
double kp_log2_portable(double x);

/* 2 to the power of a finite x, with a relative error below 1e-15 while the result is a normal
 * number; 0 or INFINITY beyond what a double holds. */
double kp_exp2_portable(double x);

#endif
