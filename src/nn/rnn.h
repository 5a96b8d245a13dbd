/* SPDX-License-Identifier: MIT */
/* LSTM (Hochreiter and Schmidhuber, 1997; with forget gates) and GRU (Cho et al., 2014) over
 * whole sequences. Layer: nn. See nn/layers.h for the conventions.
 *
 * The products with the inputs are the caller's, for all steps at once: `pre` holds
 * x W_x' + b, and backward leaves their gradient in its place, from which the caller gets dW_x,
 * db and dx (kp_linear_backward()). That lets a vocabulary's products be made once.
 *
 * LSTM, gates in PyTorch's order i f g o:
 *   a = pre[t] + h[t-1] W_h';  i,f,o = sigmoid, g = tanh of their parts
 *   c[t] = f c[t-1] + i g;  h[t] = o tanh(c[t])
 * GRU, gates r z n:
 *   r,z = sigmoid(pre + h W_h');  n = tanh(pre_n + r (h W_hn' + b_n));  h[t] = (1-z) n + z h
 * With `reverse` t runs from T-1 down; h[t] stays the output at step t. */
#ifndef KP_NN_RNN_H
#define KP_NN_RNN_H

#include "math/blas.h"

#include <stdbool.h>
#include <stddef.h>

enum kp_cell { KP_CELL_LSTM, KP_CELL_GRU };

struct kp_rnn {
    enum kp_cell cell;
    bool reverse;
    size_t T, B, H;
    const float *w_h; /* [G][H], G = kp_rnn_gates() */
    const float *b_n; /* GRU: [H], else NULL */
};

/* 4H or 3H. */
size_t kp_rnn_gates(enum kp_cell cell, size_t H);

/* State before the first step: h0, c0 [B][H], NULL = zeros (c0 is the LSTM's alone). After the
 * last step the state is h[T-1] (h[0] with reverse). */
struct kp_rnn_state {
    const float *h0;
    const float *c0;
};

/* pre [T][B][G] becomes the gates after their functions; h [T][B][H]; c [T][B][H]: the LSTM's
 * cells, the GRU's h W_hn' + b_n. All three are for backward as they are. */
void kp_rnn_forward(const struct kp_blas *blas, const struct kp_rnn *r,
                    const struct kp_rnn_state *s, float *pre, float *h, float *c);

/* A step alone, whose products are made: pre [B][G] holds x W_x' + b + h W_h' (of the GRU's n
 * without the latter, which is in c) and becomes the gates; before [B][H] is the LSTM's c[t-1],
 * the GRU's h[t-1], NULL = zeros; h and c [B][H] as above. */
void kp_rnn_step(const struct kp_rnn *r, const float *before, float *pre, float *h, float *c);

struct kp_rnn_grad {
    const float *dh;     /* [T][B][H]: of each output */
    const float *dh_end; /* [B][H]: of the last state, beside dh; may be NULL */
    const float *dc_end; /* [B][H]: LSTM; may be NULL */
    float *dw_h;         /* [G][H], added to */
    float *db_n;         /* [H], added to (GRU) */
    float *dh0;          /* [B][H], written; may be NULL */
    float *dc0;
};
size_t kp_rnn_work(const struct kp_rnn *r); /* floats */
/* pre: gates in, gradient of pre out. */
void kp_rnn_backward(const struct kp_blas *blas, const struct kp_rnn *r,
                     const struct kp_rnn_state *s, float *pre, const float *h, const float *c,
                     const struct kp_rnn_grad *g, float *work);

#endif
