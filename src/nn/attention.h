/* SPDX-License-Identifier: MIT */
/* Attention of a decoder over an encoder's outputs. Layer: nn. See nn/layers.h for the
 * conventions.
 *
 * Q queries q[Q][B][H] look at S keys k[S][B][H] of the same row b:
 *   dot       score = q . k / sqrt(H)                  (Luong, Pham and Manning, 2015; scaled
 * as in Vaswani et al., 2017) additive  score = v . tanh(q + k)                  (Bahdanau, Cho
 * and Bengio, 2015; W_q and W_k are the caller's, over all steps) weights = softmax over S;
 * context[Q][B][C] = sum_s weight[s] values[s][b][C] */
#ifndef KP_NN_ATTENTION_H
#define KP_NN_ATTENTION_H

#include <stddef.h>

enum kp_score { KP_SCORE_DOT, KP_SCORE_ADDITIVE };

struct kp_attention {
    enum kp_score score;
    size_t Q, S, B, H, C;
    const float *v; /* [H]: additive, else NULL */
};

/* q [Q][B][H], k [S][B][H], values [S][B][C]; weights [Q][B][S] and context [Q][B][C] are
 * written. */
void kp_attention_forward(const struct kp_attention *a, const float *q, const float *k,
                          const float *values, float *weights, float *context);
/* dq [Q][B][H], dk [S][B][H] and dvalues [S][B][C] are written; dv [H] is added to. */
struct kp_attention_grad {
    const float *dcontext; /* [Q][B][C] */
    float *dq;
    float *dk;
    float *dvalues;
    float *dv; /* additive, else NULL */
};
void kp_attention_backward(const struct kp_attention *a, const float *q, const float *k,
                           const float *values, const float *weights,
                           const struct kp_attention_grad *g);

#endif
