/* SPDX-License-Identifier: MIT */
/* Products of few rows with transposed weights, y = x W': what a beam asks of its network, and
 * what OpenBLAS is slow at, since it first rearranges all of W. Layer: math.
 *
 * Each element's bits follow from its rows of x and W (and what it is added to) alone: they are
 * the same with more and with fewer rows beside them. */
#ifndef KP_MATH_THIN_H
#define KP_MATH_THIN_H

#include "math/half.h"

#include <stddef.h>

/* y[m][n] = alpha x[m][k] w[n][k]' + beta y; ldx, ldw, ldy: floats from a row to the next. With
 * beta 0 y need not hold numbers. */
struct kp_thin {
    size_t m, n, k;
    float alpha, beta;
    const float *x;
    size_t ldx;
    const float *w;
    size_t ldw;
    float *y;
    size_t ldy;
};

/* The same weights rearranged once and rounded to halves, by which such a product becomes
 * faster still, since it waits for memory: columns of 16 outputs, [n / 16, rounded up][k][16],
 * zeros where there is no output. Each weight is rounded by at most 2^-11 of itself (2^-25
 * below 2^-14); products and sums are of floats. */
enum { KP_PACK = 16 };
size_t kp_pack_size(size_t n, size_t k); /* halves */
/* The weight of output i and input j is w[i * ldn + j * ldk], at most KP_HALF_MAX. */
void kp_pack(size_t n, size_t k, const float *w, size_t ldn, size_t ldk, kp_half *packed);

/* y[m][n] = from + x[m][k] W'. `from`: rows ldfrom apart (0: one for all), y itself, or NULL
 * for zeros. `packed` has `depth` inputs, and the k of this product begin at packed[0]: a part
 * of the inputs, from the j-th on, is packed + j * KP_PACK. */
struct kp_packed {
    size_t m, n, k;
    const float *x;
    size_t ldx;
    const kp_half *packed;
    size_t depth;
    const float *from;
    size_t ldfrom;
    float *y;
    size_t ldy;
};

struct kp_thin_way {
    const char *name; /* "avx512", "avx2", "plain" */
    void (*multiply)(const struct kp_thin *t);
    void (*multiply_packed)(const struct kp_packed *t);
};

/* The one for this machine. */
const struct kp_thin_way *kp_thin_best(void);
/* All that this machine can run, the best first; NULL after the last. */
const struct kp_thin_way *kp_thin_at(size_t i);

#endif
