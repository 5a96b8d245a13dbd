/* SPDX-License-Identifier: MIT */
#include "nn/adam.h"

#include "math/wide.h"

#include <math.h>
#include <string.h>

struct kp_adam kp_adam_default(void)
{
    return (struct kp_adam){
        .rate = 1e-3F, .beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F, .floor = 0};
}

float kp_adam_rate(const struct kp_adam *a, uint64_t step)
{
    double rate = (double)a->rate;
    if (step < a->warm)
        return (float)(rate * (double)step / (double)a->warm);
    if (a->total == 0)
        return a->rate;
    double done = 1;
    if (step < a->total) /* which is then above warm, too */
        done = (double)(step - a->warm) / (double)(a->total - a->warm);
    const double pi = 3.14159265358979323846;
    double share = (1 + cos(pi * done)) / 2;
    return (float)(rate * ((double)a->floor + (1 - (double)a->floor) * share));
}

/* GCC's and clang's vector extension. */
typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));

KP_ALWAYS_INLINE void squares_any(const float *g, size_t n, double *out)
{
    f64x8 sum = {0};
    for (size_t i = 0; i < n; i += 8) {
        f32x8 part = {0};
        if (n - i >= 8)
            memcpy(&part, g + i, sizeof(part));
        else
            memcpy(&part, g + i, (n - i) * sizeof(*g));
        f64x8 wide = __builtin_convertvector(part, f64x8);
        sum += wide * wide;
    }
    *out = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}
KP_WIDE(squares, (const float *g, size_t n, double *out), (g, n, out))

double kp_grad_norm(const float *g, size_t n)
{
    double sum;
    squares_best(g, n, &sum);
    return sqrt(sum);
}

/* The numbers of one step, the same for each element. */
struct step {
    float keep; /* 1 - rate * decay */
    float beta1;
    float beta2;
    float rate;   /* over 1 - beta1^step */
    float spread; /* 1 / sqrt(1 - beta2^step) */
    float epsilon;
};

KP_ALWAYS_INLINE void update_any(const struct step *s, size_t n, const float *g, float *x,
                                 float *m, float *v)
{
    const struct step k = *s;
    for (size_t i = 0; i < n; i++) {
        m[i] = k.beta1 * m[i] + (1 - k.beta1) * g[i];
        v[i] = k.beta2 * v[i] + (1 - k.beta2) * (g[i] * g[i]);
        x[i] = x[i] * k.keep - k.rate * m[i] / (sqrtf(v[i]) * k.spread + k.epsilon);
    }
}
KP_WIDE(update, (const struct step *s, size_t n, const float *g, float *x, float *m, float *v),
        (s, n, g, x, m, v))

KP_ALWAYS_INLINE void shrink_any(size_t n, float by, float *g)
{
    for (size_t i = 0; i < n; i++)
        g[i] *= by;
}
KP_WIDE(shrink, (size_t n, float by, float *g), (n, by, g))

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_adam_step(const struct kp_adam *a, uint64_t step, size_t n, double norm, float *x,
                  float *g, float *m, float *v)
{
    double rate = (double)kp_adam_rate(a, step);
    if (a->clip > 0 && norm > (double)a->clip)
        shrink_best(n, (float)((double)a->clip / norm), g);
    const struct step s = {
        .keep = (float)(1 - rate * (double)a->decay),
        .beta1 = a->beta1,
        .beta2 = a->beta2,
        .rate = (float)(rate / (1 - pow((double)a->beta1, (double)step))),
        .spread = (float)(1 / sqrt(1 - pow((double)a->beta2, (double)step))),
        .epsilon = a->epsilon,
    };
    update_best(&s, n, g, x, m, v);
}
