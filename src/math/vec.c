/* SPDX-License-Identifier: MIT */
/* Layer: math.
 *
 * Elements go through in blocks of constant length, which the compiler turns into vector code.
 * Each is rounded the same way in each block (see math/wide.h). */
#include "math/vec.h"

#include "math/wide.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 16 };

KP_ALWAYS_INLINE uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

KP_ALWAYS_INLINE float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* e^x = 2^n e^r with n = x / ln 2 rounded and |r| <= ln 2 / 2 (Cody and Waite, 1980): ln 2 is
 * subtracted in two parts, the first of so few bits that its product with n is exact.
 *
 * Adding 1.5 * 2^23 rounds to an integer, which is then in the sum's low bits; n is so far
 * moved to where a float has its exponent. *tail is e^r - 1, from r + r^2 q(r), where q is the
 * polynomial of degree 4 with the smallest relative error of e^r, 4.4e-9 with these roundings
 * of its coefficients (found by iteratively reweighted least squares). */
struct split {
    uint32_t exponent; /* n * 2^23, modulo 2^32 */
    float tail;
};

KP_ALWAYS_INLINE struct split split_exp(float x)
{
    const float to_integer = 0x1.8p23F;
    float t = x * 0x1.715476p+0F + to_integer; /* 1 / ln 2 */
    float n = t - to_integer;
    float r = (x - n * 0x1.62e400p-1F) - n * 0x1.7f7d1cp-20F; /* ln 2 */
    float q = 0x1.6a2352p-10F;
    q = q * r + 0x1.123a6cp-7F;
    q = q * r + 0x1.5558f4p-5F;
    q = q * r + 0x1.555490p-3F;
    q = q * r + 0x1.fffffcp-2F;
    return (struct split){bits_of(t) << 23, r + r * r * q};
}

/* Between the two thresholds the result is a normal number, so that n can be added to the
 * exponent of e^r; beyond them what was computed does not matter. */
KP_ALWAYS_INLINE float exp_one(float x)
{
    struct split s = split_exp(x);
    float y = float_of(bits_of(1.0F + s.tail) + s.exponent);
    y = x < -0x1.5d589ep+6F ? 0.0F : y;    /* e^x = 2^-126 */
    y = x > 0x1.62e42ep+6F ? INFINITY : y; /* the largest float */
    return x != x ? x : y;                 /* NaN */
}

/* tanh |x| = (e^2|x| - 1) / (e^2|x| + 1). The numerator is 2^n (e^r - 1) + (2^n - 1), which
 * keeps its digits where x is small; where |x| > 9.02 the nearest float is 1. */
KP_ALWAYS_INLINE float tanh_one(float x)
{
    float a = float_of(bits_of(x) & 0x7fffffffU);
    a = a > 9.1F ? 9.1F : a;
    struct split s = split_exp(2 * a);
    float scale = float_of(0x3f800000U + s.exponent);
    float m = scale * s.tail + (scale - 1);
    return float_of(bits_of(m / (m + 2)) | (bits_of(x) & 0x80000000U));
}

/* 1 / (1 + e^-x). Beyond 87 it differs from 0 and 1 by less than 2e-38. */
KP_ALWAYS_INLINE float sigmoid_one(float x)
{
    float a = x > 87.0F ? 87.0F : x;
    a = a < -87.0F ? -87.0F : a;
    struct split s = split_exp(-a);
    float scale = float_of(0x3f800000U + s.exponent);
    return 1 / (1 + (scale * s.tail + scale));
}

/* The last block is read before the others are written, and may overlap the one before it: what
 * both write is the same. */
#define IN_PLACE(name)                                   \
    KP_ALWAYS_INLINE void name##_block(float *x)         \
    {                                                    \
        for (size_t k = 0; k < BLOCK; k++)               \
            x[k] = name##_one(x[k]);                     \
    }                                                    \
    KP_ALWAYS_INLINE void name##_any(float *x, size_t n) \
    {                                                    \
        float last[BLOCK] = {0};                         \
        if (n == 0)                                      \
            return;                                      \
        if (n < BLOCK) {                                 \
            memcpy(last, x, n * sizeof(*x));             \
            name##_block(last);                          \
            memcpy(x, last, n * sizeof(*x));             \
            return;                                      \
        }                                                \
        memcpy(last, x + n - BLOCK, sizeof(last));       \
        for (size_t i = 0; i + BLOCK < n; i += BLOCK)    \
            name##_block(x + i);                         \
        name##_block(last);                              \
        memcpy(x + n - BLOCK, last, sizeof(last));       \
    }                                                    \
    KP_WIDE(name, (float *x, size_t n), (x, n))          \
    void kp_vec_##name(float *x, size_t n)               \
    {                                                    \
        name##_best(x, n);                               \
    }

IN_PLACE(exp)
IN_PLACE(tanh)
IN_PLACE(sigmoid)

KP_ALWAYS_INLINE void axpy_any(size_t n, float a, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}
KP_WIDE(axpy, (size_t n, float a, const float *x, float *y), (n, a, x, y))

void kp_vec_axpy(size_t n, float a, const float *x, float *y)
{
    axpy_best(n, a, x, y);
}

/* GCC's and clang's vector extension: narrower machines take it in parts. */
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));

KP_ALWAYS_INLINE float fold(const f32x16 *sum)
{
    f32x8 h[2];
    f32x4 q[2];
    memcpy(h, sum, sizeof(h));
    h[0] += h[1];
    memcpy(q, h, sizeof(q));
    q[0] += q[1];
    return (q[0][0] + q[0][2]) + (q[0][1] + q[0][3]);
}

/* The last n lanes stay, the others become 0. */
KP_ALWAYS_INLINE void keep_last(size_t n, f32x16 *v)
{
    const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    *v = (f32x16)((i32x16)*v & (lane >= (int32_t)(BLOCK - n)));
}

KP_ALWAYS_INLINE void multiply(const float *x, const float *y, f32x16 *out)
{
    f32x16 b;
    memcpy(out, x, sizeof(*out));
    memcpy(&b, y, sizeof(b));
    *out *= b;
}

/* Two sums of 16 lanes, which are folded at the end: an order that depends on n alone. */
KP_ALWAYS_INLINE void dot_any(size_t n, const float *x, const float *y, float *out)
{
    if (n < BLOCK) {
        float s = 0;
        for (size_t i = 0; i < n; i++)
            s += x[i] * y[i];
        *out = s;
        return;
    }
    f32x16 even = {0};
    f32x16 odd = {0};
    f32x16 p;
    size_t i = 0;
    for (; n - i >= (size_t)2 * BLOCK; i += (size_t)2 * BLOCK) {
        multiply(x + i, y + i, &p);
        even += p;
        multiply(x + i + BLOCK, y + i + BLOCK, &p);
        odd += p;
    }
    if (n - i >= BLOCK) {
        multiply(x + i, y + i, &p);
        even += p;
        i += BLOCK;
    }
    if (i < n) { /* the last 16 products, without those that are in the sums already */
        multiply(x + n - BLOCK, y + n - BLOCK, &p);
        keep_last(n - i, &p);
        odd += p;
    }
    even += odd;
    *out = fold(&even);
}
KP_WIDE(dot, (size_t n, const float *x, const float *y, float *out), (n, x, y, out))

float kp_vec_dot(size_t n, const float *x, const float *y)
{
    float sum;
    dot_best(n, x, y, &sum);
    return sum;
}

/* As dot_any(). */
KP_ALWAYS_INLINE void sum_any(size_t n, const float *x, float *out)
{
    if (n < BLOCK) {
        float s = 0;
        for (size_t i = 0; i < n; i++)
            s += x[i];
        *out = s;
        return;
    }
    f32x16 sum;
    f32x16 p;
    memcpy(&sum, x, sizeof(sum));
    size_t i = BLOCK;
    for (; n - i >= BLOCK; i += BLOCK) {
        memcpy(&p, x + i, sizeof(p));
        sum += p;
    }
    if (i < n) {
        memcpy(&p, x + n - BLOCK, sizeof(p));
        keep_last(n - i, &p);
        sum += p;
    }
    *out = fold(&sum);
}
KP_WIDE(sum, (size_t n, const float *x, float *out), (n, x, out))

float kp_vec_sum(size_t n, const float *x)
{
    float sum;
    sum_best(n, x, &sum);
    return sum;
}

KP_ALWAYS_INLINE void raise_to(const float *x, f32x16 *top)
{
    f32x16 p;
    memcpy(&p, x, sizeof(p));
    i32x16 more = p > *top;
    *top = (f32x16)(((i32x16)p & more) | ((i32x16)*top & ~more));
}

/* An element may be looked at twice. */
KP_ALWAYS_INLINE void max_any(size_t n, const float *x, float *out)
{
    float most = -INFINITY;
    if (n < BLOCK) {
        for (size_t i = 0; i < n; i++)
            most = x[i] > most ? x[i] : most;
        *out = most;
        return;
    }
    f32x16 top;
    memcpy(&top, x + n - BLOCK, sizeof(top));
    for (size_t i = 0; i + BLOCK < n; i += BLOCK)
        raise_to(x + i, &top);
    for (size_t k = 0; k < BLOCK; k++)
        most = top[k] > most ? top[k] : most;
    *out = most;
}
KP_WIDE(max, (size_t n, const float *x, float *out), (n, x, out))

float kp_vec_max(size_t n, const float *x)
{
    float most;
    max_best(n, x, &most);
    return most;
}
