/* SPDX-License-Identifier: MIT */
/* What is done to each element, or to whole rows, alone: embedding, activations, dropout.
 * Layer: nn. */
#include "math/vec.h"
#include "math/wide.h"
#include "nn/layers.h"

#include <string.h>

void kp_embed_forward(const float *table, size_t O, const int32_t *ids, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0)
            memset(y + i * O, 0, O * sizeof(*y));
        else
            memcpy(y + i * O, table + (size_t)ids[i] * O, O * sizeof(*y));
    }
}

void kp_embed_backward(size_t O, const int32_t *ids, size_t n, const float *dy, float *dtable)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= 0)
            kp_vec_axpy(O, 1, dy + i * O, dtable + (size_t)ids[i] * O);
    }
}

/* NaN stays, so that it is seen in the loss. */
KP_ALWAYS_INLINE void relu_any(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < 0 ? 0 : x[i];
}
KP_WIDE(relu, (float *x, size_t n), (x, n))

KP_ALWAYS_INLINE void relu_back_any(const float *y, size_t n, float *dy)
{
    for (size_t i = 0; i < n; i++)
        dy[i] = y[i] > 0 ? dy[i] : 0;
}
KP_WIDE(relu_back, (const float *y, size_t n, float *dy), (y, n, dy))

void kp_relu_forward(float *x, size_t n)
{
    relu_best(x, n);
}

void kp_relu_backward(const float *y, size_t n, float *dy)
{
    relu_back_best(y, n, dy);
}

void kp_tanh_forward(float *x, size_t n)
{
    kp_vec_tanh(x, n);
}

KP_ALWAYS_INLINE void tanh_back_any(const float *y, size_t n, float *dy)
{
    for (size_t i = 0; i < n; i++)
        dy[i] *= 1 - y[i] * y[i];
}
KP_WIDE(tanh_back, (const float *y, size_t n, float *dy), (y, n, dy))

void kp_tanh_backward(const float *y, size_t n, float *dy)
{
    tanh_back_best(y, n, dy);
}

KP_ALWAYS_INLINE void scale_by_any(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= x[i];
}
KP_WIDE(scale_by, (size_t n, const float *x, float *y), (n, x, y))

void kp_silu_forward(const float *x, size_t n, float *y)
{
    if (n)
        memcpy(y, x, n * sizeof(*y));
    kp_vec_sigmoid(y, n);
    scale_by_best(n, x, y);
}

/* s = sigmoid(x) becomes dy times the derivative, (x s)' = s + x s (1 - s). */
KP_ALWAYS_INLINE void silu_back_any(const float *x, size_t n, const float *dy, float *s)
{
    for (size_t i = 0; i < n; i++)
        s[i] = dy[i] * (s[i] * (1 + x[i] * (1 - s[i])));
}
KP_WIDE(silu_back, (const float *x, size_t n, const float *dy, float *s), (x, n, dy, s))

void kp_silu_backward(const float *x, size_t n, const float *dy, float *dx)
{
    float s[256];
    const size_t room = sizeof(s) / sizeof(s[0]);
    for (size_t i = 0; i < n; i += room) {
        size_t m = n - i < room ? n - i : room;
        memcpy(s, x + i, m * sizeof(*s));
        kp_vec_sigmoid(s, m);
        silu_back_best(x + i, m, dy + i, s);
        memcpy(dx + i, s, m * sizeof(*s));
    }
}

/* The finaliser of splitmix64 (Steele, Lea and Flood, 2014). */
KP_ALWAYS_INLINE uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

enum { DROP = 16 }; /* elements at a time */

/* The 32-bit numbers of DROP elements: two from each step of the generator. */
KP_ALWAYS_INLINE void draw(uint64_t at, uint32_t *u)
{
    uint64_t z[DROP / 2];
    for (size_t k = 0; k < DROP / 2; k++)
        z[k] = mix(at + k * 0x9e3779b97f4a7c15U);
    for (size_t k = 0; k < DROP / 2; k++) {
        u[k] = (uint32_t)z[k];
        u[k + DROP / 2] = (uint32_t)(z[k] >> 32);
    }
}

KP_ALWAYS_INLINE void dropout_any(uint64_t at, uint32_t limit, float scale, float *x, size_t n)
{
    uint32_t u[DROP];
    for (size_t i = 0; i < n; i += DROP) {
        draw(at, u);
        at += DROP / 2 * 0x9e3779b97f4a7c15U;
        size_t m = n - i < DROP ? n - i : DROP;
        if (m == DROP) {
            for (size_t k = 0; k < DROP; k++)
                x[i + k] = u[k] < limit ? 0 : x[i + k] * scale;
        } else {
            for (size_t k = 0; k < m; k++)
                x[i + k] = u[k] < limit ? 0 : x[i + k] * scale;
        }
    }
}
KP_WIDE(dropout, (uint64_t at, uint32_t limit, float scale, float *x, size_t n),
        (at, limit, scale, x, n))

void kp_dropout(uint64_t key, float p, float *x, size_t n)
{
    if (p <= 0)
        return;
    if (p >= 1) {
        if (n)
            memset(x, 0, n * sizeof(*x));
        return;
    }
    /* below 2^32, since the largest float below 1 is 1 - 2^-24 */
    uint32_t limit = (uint32_t)((double)p * 0x1p32);
    dropout_best(mix(key), limit, 1 / (1 - p), x, n);
}
