/* SPDX-License-Identifier: MIT */
/* Softmax and its cross-entropy. Layer: nn. */
#include "base/error.h"
#include "math/vec.h"
#include "math/wide.h"
#include "nn/layers.h"

#include <math.h>
#include <string.h>

KP_ALWAYS_INLINE void shift_any(size_t n, const float *x, float by, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] - by;
}
KP_WIDE(shift, (size_t n, const float *x, float by, float *y), (n, x, by, y))

KP_ALWAYS_INLINE void scale_any(size_t n, float by, float off, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * by - off;
}
KP_WIDE(scale, (size_t n, float by, float off, float *x), (n, by, off, x))

static size_t first_of(size_t n, const float *x, float value)
{
    size_t i = 0;
    while (i < n && x[i] != value) /* NaN is in no place */
        i++;
    return i;
}

/* z becomes weight * (p - q); the row's loss without its weight. With z shifted so that its
 * largest entry is 0 and s = sum exp z:
 *   -log p[v] = log s - z[v],  loss = log s - (1-smoothing) z[target] - smoothing mean(z) */
static double row_loss(size_t V, float *z, size_t target, float weight, float smoothing)
{
    double loss = -(1 - (double)smoothing) * (double)z[target];
    if (smoothing > 0)
        loss -= (double)smoothing * (double)kp_vec_sum(V, z) / (double)V;
    kp_vec_exp(z, V);
    float sum = kp_vec_sum(V, z);
    scale_best(V, weight / sum, weight * smoothing / (float)V, z);
    z[target] -= weight * (1 - smoothing);
    return loss + log((double)sum);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
double kp_cross_entropy(size_t B, size_t V, float *z, const int32_t *target,
                        const float *weight, float smoothing, size_t *n_right)
{
    double total = 0;
    for (size_t r = 0; r < B; r++, z += V) {
        if (target[r] < 0) {
            memset(z, 0, V * sizeof(*z));
            continue;
        }
        KP_CHECK((size_t)target[r] < V);
        float most = kp_vec_max(V, z);
        if (n_right)
            *n_right += first_of(V, z, most) == (size_t)target[r];
        scale_best(V, 1, most, z);
        float w = weight ? weight[r] : 1;
        total += (double)w * row_loss(V, z, (size_t)target[r], w, smoothing);
    }
    return total;
}

void kp_log_softmax(size_t B, size_t V, float *z)
{
    enum { ROOM = 256 };
    float e[ROOM];
    for (size_t r = 0; r < B; r++, z += V) {
        float most = kp_vec_max(V, z);
        double sum = 0;
        for (size_t i = 0; i < V; i += ROOM) {
            size_t m = V - i < ROOM ? V - i : ROOM;
            shift_best(m, z + i, most, e);
            kp_vec_exp(e, m);
            sum += (double)kp_vec_sum(m, e);
        }
        scale_best(V, 1, most + (float)log(sum), z);
    }
}
