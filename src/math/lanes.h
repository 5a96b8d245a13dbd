/* SPDX-License-Identifier: MIT */
/* A register full of floats, for passes that compute several functions of the same rows at
 * once: the widest register that the flags of the including file allow. Layer: math.
 *
 * A file of such passes is compiled once for each width (-mavx512f, -mavx2 -mfma, plain) and
 * chosen at run time; results differ between the widths by rounding, and are the same bits for
 * the same input on one machine. The last elements of a row are loaded with zeros behind them.
 */
#ifndef KP_MATH_LANES_H
#define KP_MATH_LANES_H

#include "math/half.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#    include <immintrin.h>
#endif

#define LANES_FN static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__) && defined(__FMA__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t lanes_int __attribute__((vector_size(LANES * sizeof(float))));

LANES_FN lanes lanes_of(float a)
{
    return a - (lanes){0};
}

/* p[n], n <= LANES. */
LANES_FN lanes lanes_load(const float *p, size_t n)
{
    lanes x = {0};
    if (n >= LANES) {
        memcpy(&x, p, sizeof(x));
        return x;
    }
#if defined(__AVX512F__)
    return (lanes)_mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1), p);
#else
    float part[LANES] = {0};
    for (size_t i = 0; i < n; i++)
        part[i] = p[i];
    memcpy(&x, part, sizeof(x));
    return x;
#endif
}

/* p[LANES], finite. */
LANES_FN lanes lanes_load_half(const kp_half *p)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
    return (lanes)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#else
    /* The bits in a float's places: what is short of its exponent, a factor makes good. */
    lanes_int bits;
    for (size_t i = 0; i < LANES; i++)
        bits[i] = p[i];
    lanes size = (lanes)((bits & 0x7fff) << 13) * 0x1p112F;
    return (lanes)((lanes_int)size | ((bits & 0x8000) << 16));
#endif
}

LANES_FN void lanes_store(float *p, size_t n, lanes x)
{
    if (n >= LANES) {
        memcpy(p, &x, sizeof(x));
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1), (__m512)x);
#else
    float part[LANES];
    memcpy(part, &x, sizeof(x));
    for (size_t i = 0; i < n; i++)
        p[i] = part[i];
#endif
}

/* a * b + c, rounded once where the machine can. */
LANES_FN lanes lanes_mad(lanes a, lanes b, lanes c)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* x limited to lo .. hi; NaN stays. */
LANES_FN lanes lanes_clamp(lanes x, float lo, float hi)
{
    lanes l = lanes_of(lo);
    lanes h = lanes_of(hi);
#if defined(__AVX512F__)
    return (lanes)_mm512_max_ps((__m512)l, _mm512_min_ps((__m512)h, (__m512)x));
#elif defined(__AVX2__) && defined(__FMA__)
    return (lanes)_mm256_max_ps((__m256)l, _mm256_min_ps((__m256)h, (__m256)x));
#elif defined(__SSE2__)
    return (lanes)_mm_max_ps((__m128)l, _mm_min_ps((__m128)h, (__m128)x));
#else
    lanes_int above = x > h;
    lanes_int below = x < l;
    return (lanes)(((lanes_int)x & ~(above | below)) | ((lanes_int)h & above) |
                   ((lanes_int)l & below));
#endif
}

/* a / b for b of 1 .. 1e37. */
LANES_FN lanes lanes_div(lanes a, lanes b)
{
#if defined(__AVX512F__)
    /* 14 bits and a step of Newton's method. */
    __m512 r = _mm512_rcp14_ps((__m512)b);
    __m512 e = _mm512_fnmadd_ps((__m512)b, r, _mm512_set1_ps(1.0F));
    return (lanes)_mm512_mul_ps((__m512)a, _mm512_fmadd_ps(r, e, r));
#else
    return a / b;
#endif
}

#if defined(__SSE2__)
LANES_FN float lanes_sum_4(__m128 x)
{
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
#endif

/* The sum of all lanes: halves are added to halves. */
LANES_FN float lanes_sum(lanes x)
{
#if defined(__AVX512F__)
    __m512 other = _mm512_shuffle_f32x4((__m512)x, (__m512)x, 0x4e);
    __m256 half = _mm512_castps512_ps256(_mm512_add_ps((__m512)x, other));
    return lanes_sum_4(
        _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
#elif defined(__AVX2__) && defined(__FMA__)
    return lanes_sum_4(
        _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1)));
#elif defined(__SSE2__)
    return lanes_sum_4((__m128)x);
#else
    return (x[0] + x[2]) + (x[1] + x[3]);
#endif
}

/* tanh x = x P(x^2) / Q(x^2) with P and Q of degree 4 (relative error 1.1e-8 up to 8.4 in exact
 * arithmetic, 2.6e-7 with these roundings; found by iteratively reweighted least squares).
 * Beyond 8.4 tanh differs from 1 by less than 1.1e-7. */
LANES_FN lanes lanes_tanh(lanes x)
{
    x = lanes_clamp(x, -8.4F, 8.4F);
    lanes u = x * x;
    lanes p = lanes_mad(lanes_of(0x1.f0c404p-27F), u, lanes_of(0x1.66b136p-16F));
    lanes q = lanes_mad(lanes_of(0x1.b94de6p-21F), u, lanes_of(0x1.60787ep-12F));
    p = lanes_mad(p, u, lanes_of(0x1.d034dcp-9F));
    q = lanes_mad(q, u, lanes_of(0x1.aad39cp-6F));
    p = lanes_mad(p, u, lanes_of(0x1.12d53cp-3F));
    q = lanes_mad(q, u, lanes_of(0x1.debfecp-2F));
    p = lanes_mad(p, u, lanes_of(1.0F));
    q = lanes_mad(q, u, lanes_of(1.0F));
    return lanes_clamp(lanes_div(x * p, q), -1.0F, 1.0F);
}

/* 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2 */
LANES_FN lanes lanes_sigmoid(lanes x)
{
    lanes half = lanes_of(0.5F);
    return lanes_mad(lanes_tanh(x * half), half, half);
}

/* e^x for x of -87 .. 88, the nearer of the two beyond them: 2^n e^r with n = x / ln 2 rounded,
 * which adding 1.5 * 2^23 does, and then in the sum's low bits; ln 2 is subtracted in two parts
 * (Cody and Waite, 1980). e^r - 1 = r + r^2 q(r), |r| <= ln 2 / 2, q of degree 4. */
LANES_FN lanes lanes_exp(lanes x)
{
    x = lanes_clamp(x, -87.0F, 88.0F);
    lanes magic = lanes_of(0x1.8p23F);
    lanes t = lanes_mad(x, lanes_of(0x1.715476p+0F), magic);
    lanes n = t - magic;
    lanes r = lanes_mad(n, lanes_of(-0x1.62e400p-1F), x);
    r = lanes_mad(n, lanes_of(-0x1.7f7d1cp-20F), r);
    lanes q = lanes_mad(lanes_of(0x1.6a2352p-10F), r, lanes_of(0x1.123a6cp-7F));
    q = lanes_mad(q, r, lanes_of(0x1.5558f4p-5F));
    q = lanes_mad(q, r, lanes_of(0x1.555490p-3F));
    q = lanes_mad(q, r, lanes_of(0x1.fffffcp-2F));
    lanes y = lanes_mad(r * r, q, r) + 1.0F;
    return (lanes)((lanes_int)y + ((lanes_int)t << 23));
}

#endif
