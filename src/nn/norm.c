/* SPDX-License-Identifier: MIT */
/* Layer norm. Layer: nn. */
#include "math/vec.h"
#include "math/wide.h"
#include "nn/layers.h"

#include <math.h>
#include <string.h>

static const float epsilon = 1e-5F;

KP_ALWAYS_INLINE void centre_any(size_t n, float mean, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] -= mean;
}
KP_WIDE(centre, (size_t n, float mean, float *y), (n, mean, y))

KP_ALWAYS_INLINE void stretch_any(size_t n, float inverse, const float *g, const float *b,
                                  float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] * inverse * g[i] + b[i];
}
KP_WIDE(stretch, (size_t n, float inverse, const float *g, const float *b, float *y),
        (n, inverse, g, b, y))

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_layernorm_forward(size_t B, size_t O, const float *x, const float *g, const float *b,
                          float *y, float *keep)
{
    const float share = 1 / (float)O;
    for (size_t r = 0; r < B; r++, x += O, y += O, keep += 2) {
        keep[0] = kp_vec_sum(O, x) * share;
        if (y != x)
            memcpy(y, x, O * sizeof(*y));
        centre_best(O, keep[0], y);
        keep[1] = 1 / sqrtf(kp_vec_dot(O, y, y) * share + epsilon);
        stretch_best(O, keep[1], g, b, y);
    }
}

/* A part of a row: z = (x - mean) / deviation, t = dy g. */
struct part {
    size_t n;
    const float *x;
    const float *dy;
    const float *g;
    const float *keep;
};

KP_ALWAYS_INLINE void first_pass_any(const struct part *p, float *restrict z, float *restrict t,
                                     float *restrict dg, float *restrict db)
{
    const float mean = p->keep[0];
    const float inverse = p->keep[1];
    for (size_t i = 0; i < p->n; i++) {
        z[i] = (p->x[i] - mean) * inverse;
        dg[i] += p->dy[i] * z[i];
        db[i] += p->dy[i];
        t[i] = p->dy[i] * p->g[i];
    }
}
KP_WIDE(first_pass, (const struct part *p, float *z, float *t, float *dg, float *db),
        (p, z, t, dg, db))

KP_ALWAYS_INLINE void second_pass_any(const struct part *p, float mean_t, float mean_tz,
                                      float *dx)
{
    const float mean = p->keep[0];
    const float inverse = p->keep[1];
    for (size_t i = 0; i < p->n; i++) {
        float z = (p->x[i] - mean) * inverse;
        dx[i] = inverse * (p->dy[i] * p->g[i] - mean_t - z * mean_tz);
    }
}
KP_WIDE(second_pass, (const struct part *p, float mean_t, float mean_tz, float *dx),
        (p, mean_t, mean_tz, dx))

/* dx = (t - mean(t) - z mean(t z)) / deviation */
/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_layernorm_backward(size_t B, size_t O, const float *x, const float *g,
                           const float *keep, const float *dy, float *dx, float *dg, float *db)
{
    enum { ROOM = 256 };
    float z[ROOM];
    float t[ROOM];
    const float share = 1 / (float)O;
    for (size_t r = 0; r < B; r++, x += O, dy += O, keep += 2) {
        float sum_t = 0;
        float sum_tz = 0;
        for (size_t i = 0; i < O; i += ROOM) {
            const struct part p = {O - i < ROOM ? O - i : ROOM, x + i, dy + i, g + i, keep};
            first_pass_best(&p, z, t, dg + i, db + i);
            sum_t += kp_vec_sum(p.n, t);
            sum_tz += kp_vec_dot(p.n, t, z);
        }
        if (dx) {
            const struct part all = {O, x, dy, g, keep};
            second_pass_best(&all, sum_t * share, sum_tz * share, dx + r * O);
        }
    }
}
