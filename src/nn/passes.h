/* SPDX-License-Identifier: MIT */
/* The inner loops of rnn.c and attention.c, compiled for each width of vector registers.
 * Layer: nn. Letters as in nn/layers.h. */
#ifndef KP_NN_PASSES_H
#define KP_NN_PASSES_H

#include <stdbool.h>
#include <stddef.h>

/* One step of a recurrent layer, over B rows of H units. Matrices are contiguous. */
struct kp_cell_step {
    size_t B, H;
    float *pre;          /* [B][G]: sums in, gates out; backward: gates in, gradient out */
    const float *before; /* [B][H]: LSTM c[t-1], GRU h[t-1]; NULL = zeros */
};

struct kp_cell_grad {
    const float *dh; /* [B][H]: of the step's output, from outside */
    float *dh_rec;   /* [B][H]: from the step after; out, GRU: z dh, the part of dh[t-1]
                      * beside the product with w_h */
    float *other;    /* [B][H]: LSTM dc, of c[t] in and of c[t-1] out;
                      * GRU: out, of h W_hn' + b_n */
    float *db_n;     /* [H]: GRU, added to */
};

/* Up to KP_TILE_Q queries and KP_TILE_S keys of one row of the batch. */
enum { KP_TILE_Q = 16, KP_TILE_S = 32 };
struct kp_tile {
    size_t nq, ns, H;
    const float *q; /* row i at q + i * ldq */
    size_t ldq;
    const float *k;
    size_t ldk;
};

struct kp_tile_grad {
    float *dq; /* rows as q */
    bool add_q;
    float *dk; /* rows as k */
    bool add_k;
    float *dv; /* [H], added to */
};

/* y[i] = sum over j < n_in of w[i * w_out + j * w_in] x[j], for n_out rows of C floats. */
struct kp_mix {
    size_t n_out, n_in, C;
    const float *w;
    size_t w_out, w_in;
    const float *x;
    size_t ldx;
    float *y;
    size_t ldy;
    bool add; /* to what y holds */
};

struct kp_passes {
    const char *name; /* "avx512", "avx2", "plain" */
    void (*lstm_forward)(const struct kp_cell_step *s, float *c, float *h);
    void (*lstm_backward)(const struct kp_cell_step *s, const float *c,
                          const struct kp_cell_grad *g);
    /* hn [B][H]: h W_hn' in, b_n added out. */
    void (*gru_forward)(const struct kp_cell_step *s, const float *b_n, float *hn, float *h);
    void (*gru_backward)(const struct kp_cell_step *s, const float *hn,
                         const struct kp_cell_grad *g);
    /* out[i][j] (ldo floats from row to row): q[i] . k[j], and v . tanh(q[i] + k[j]) */
    void (*dots)(const struct kp_tile *t, float *out, size_t ldo);
    void (*additive)(const struct kp_tile *t, const float *v, float *out, size_t ldo);
    /* ds[i][j] (KP_TILE_S floats from row to row): the gradient of additive's out. */
    void (*additive_grad)(const struct kp_tile *t, const float *v, const float *ds,
                          const struct kp_tile_grad *g);
    void (*mix)(const struct kp_mix *m);
    /* Of scale x, in place; scale > 0. */
    void (*softmax)(size_t n, float scale, float *x);
};

/* The one for this machine. */
const struct kp_passes *kp_passes_best(void);
/* All that this machine can run, for tests; NULL after the last. */
const struct kp_passes *kp_passes_at(size_t i);

#endif
