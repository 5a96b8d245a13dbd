/* SPDX-License-Identifier: MIT */
/* Functions of many floats at once, without libm: polynomials that the compiler turns into
 * vector code. The same bits for the same input on one machine, wherever it stands in the
 * array and however long that is. Layer: math. */
#ifndef KP_MATH_VEC_H
#define KP_MATH_VEC_H

#include <stddef.h>

/* In place, x[n]. Relative error below 4e-7 (exp, for results that are normal numbers; beyond
 * it gives 0 and infinity), absolute error below 3e-7 (tanh, sigmoid). NaN stays NaN. */
void kp_vec_exp(float *x, size_t n);
void kp_vec_tanh(float *x, size_t n);
void kp_vec_sigmoid(float *x, size_t n);
/* y[n] += a * x[n] */
void kp_vec_axpy(size_t n, float a, const float *x, float *y);
/* Sum of x[i] * y[i], in a fixed order. */
float kp_vec_dot(size_t n, const float *x, const float *y);
/* Sum of x[n], in a fixed order. */
float kp_vec_sum(size_t n, const float *x);
/* The largest element; -infinity where n is 0. Which it is where one is NaN is not said. */
float kp_vec_max(size_t n, const float *x);

#endif
