/* SPDX-License-Identifier: MIT */
/* Layers without a memory: forward and backward by hand. Layer: nn.
 *
 * Common to all layers. B rows of a batch, T steps of a sequence, I inputs, O outputs, V
 * entries of a vocabulary, H units. Matrices are row-major, weights [O][I] (y = x W' + b), as
 * PyTorch stores them; sequences have the step first: [T][B][I]. Functions allocate nothing and
 * keep nothing: what backward needs of forward is among its arguments. `d` in front of a name
 * is the gradient of the loss with respect to it. Gradients of parameters are added to what is
 * there; gradients of inputs are written, but where a name ends in `_add`. NULL for the
 * gradient of an input: it is not wanted. */
#ifndef KP_NN_LAYERS_H
#define KP_NN_LAYERS_H

#include "math/blas.h"
#include "math/half.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- linear: y[B][O] = x[B][I] w[O][I]' + b[O]; b may be NULL -------------------------------
 */

struct kp_linear {
    size_t B, I, O;
    const float *w; /* [O][I] */
    const float *b; /* [O] or NULL */
};
void kp_linear_forward(const struct kp_blas *blas, const struct kp_linear *l, const float *x,
                       float *y);
/* The same with w packed (math/thin.h); with `packed` NULL just the same. */
void kp_linear_forward_packed(const struct kp_blas *blas, const struct kp_linear *l,
                              const kp_half *packed, const float *x, float *y);
/* dw [O][I], db [O] (NULL where b is). dx [B][I] may be NULL. */
void kp_linear_backward(const struct kp_blas *blas, const struct kp_linear *l, const float *x,
                        const float *dy, float *dx, float *dw, float *db);

/* --- embedding: y[n][O] = table[V][O], row ids[i]; an id below 0 gives zeros -----------------
 */

void kp_embed_forward(const float *table, size_t O, const int32_t *ids, size_t n, float *y);
void kp_embed_backward(size_t O, const int32_t *ids, size_t n, const float *dy, float *dtable);

/* --- activations, in place; backward takes y, the output ------------------------------------
 */

void kp_relu_forward(float *x, size_t n);
void kp_relu_backward(const float *y, size_t n, float *dy); /* dy becomes dx */
void kp_tanh_forward(float *x, size_t n);
void kp_tanh_backward(const float *y, size_t n, float *dy);
/* x * sigmoid(x), out of place; backward takes x. dx may be dy. */
void kp_silu_forward(const float *x, size_t n, float *y);
void kp_silu_backward(const float *x, size_t n, const float *dy, float *dx);

/* --- layer norm (Ba, Kiros and Hinton, 2016): y = (x - mean) / sqrt(var + 1e-5) * g + b ------
 */

/* x, y [B][O]; g, b [O]; keep [B][2]: mean and 1/deviation of each row, for backward. y may be
 * x only where backward is not needed. */
void kp_layernorm_forward(size_t B, size_t O, const float *x, const float *g, const float *b,
                          float *y, float *keep);
void kp_layernorm_backward(size_t B, size_t O, const float *x, const float *g,
                           const float *keep, const float *dy, float *dx, float *dg, float *db);

/* --- dropout: each element is 0 with probability p, else x / (1 - p) ------------------------
 */

/* Element i's fate depends on `key` and i alone. In place; backward is the same call on dy. */
void kp_dropout(uint64_t key, float p, float *x, size_t n);

/* --- loss ------------------------------------------------------------------------------------
 */

/* Cross-entropy of softmax(z) with label smoothing, summed over rows with a target:
 *   loss = sum_r weight[r] * -( (1-s) log p[target] + s/V sum_v log p[v] )
 * z [B][V] becomes the gradient weight * (p - q). Rows with target < 0 get zeros. `weight`
 * NULL: all 1. *n_right (may be NULL) is increased by the rows whose largest entry is the
 * target. */
double kp_cross_entropy(size_t B, size_t V, float *z, const int32_t *target,
                        const float *weight, float smoothing, size_t *n_right);
/* z [B][V] becomes log softmax. */
void kp_log_softmax(size_t B, size_t V, float *z);

/* --- 1-D convolution over a sequence, zero-padded to the same length ------------------------
 */

/* x [T][B][I], w [O][K][I], b [O], K odd: y[t] = b + sum_k w[.][k][.] x[t + k - K/2].
 * `work`: kp_conv_work() floats. */
struct kp_conv {
    size_t T, B, I, O, K;
    const float *w;
    const float *b;
};
size_t kp_conv_work(const struct kp_conv *c);
void kp_conv_forward(const struct kp_blas *blas, const struct kp_conv *c, const float *x,
                     float *y, float *work);
void kp_conv_backward(const struct kp_blas *blas, const struct kp_conv *c, const float *x,
                      const float *dy, float *dx, float *dw, float *db, float *work);

#endif
