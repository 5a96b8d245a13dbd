/* SPDX-License-Identifier: MIT */
/* The models of Mahmood, Khan and Afzal (2024): an encoder-decoder network that reads a
 * problem's numbers as words. Layer: model.
 *
 *   x      = embedding of the tokens                                       [T][B][D]
 *   conv   = relu(convolution of width K over x)                           [T][B][C], C = H/2
 *   rnn    = a recurrent layer in both directions over x (hybrid1: over conv)
 *   enc    = the two directions side by side                               [T][B][H]
 *            (hybrid2: relu(enc W_r' + conv W_c' + b))
 *   s0     = tanh(W of the two last states, hybrid2: and conv's last step) [B][H], for each of
 *            the decoder's states
 *   h      = a recurrent layer over the values before, from s0             [P][B][H]
 *   out    = h; with attention tanh(h W_h' + context W_c' + b)             [P][B][H]
 *   P(value of p | problem, values before) = softmax(out[p] W_p' + b_p)
 *
 * `seq2seq` has neither attention nor convolution, `attention` the former, `hybrid1` a
 * convolution in front of the recurrent encoder, `hybrid2` one beside it; both look back by
 * attention. A target's softmax is over its own values alone. */
#ifndef KP_MODEL_SEQ_H
#define KP_MODEL_SEQ_H

#include "model/models.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/rnn.h"

/* The parameters, by their numbers in kp_net.offset. */
enum {
    IN_EMBED,
    CONV_W,
    CONV_B,
    FWD_X, /* the forward direction: weights of inputs, bias, of states, GRU's b_n */
    FWD_B,
    FWD_H,
    FWD_N,
    BWD_X,
    BWD_B,
    BWD_H,
    BWD_N,
    JOIN_R,
    JOIN_C,
    JOIN_B,
    INIT_F, /* from the forward direction's last state to both of the decoder's */
    INIT_R,
    INIT_C,
    INIT_B,
    OUT_EMBED,
    DEC_X,
    DEC_B,
    DEC_H,
    DEC_N,
    ATT_Q,
    ATT_K,
    ATT_V,
    MIX_H,
    MIX_C,
    MIX_B,
    HEAD_W,
    HEAD_B
};

enum kp_seq_conv_place { CONV_NONE, CONV_FRONT, CONV_BESIDE };

/* Sizes, by the letters above. */
struct kp_seq_dims {
    size_t T, B, D, H, E, C, K, P; /* E = H/2: units of a direction */
    size_t G;                      /* gates of the decoder, of a direction half of it */
    size_t V;                      /* values of all targets; the decoder's words are one more */
    size_t S;                      /* states of the decoder: LSTM 2, GRU 1 */
    enum kp_seq_conv_place conv;
    bool attention;
    bool additive;
    enum kp_cell cell;
};

struct kp_seq_dims kp_seq_dims(const struct kp_net *net, size_t B);
size_t kp_seq_rnn_inputs(const struct kp_seq_dims *d);
kopt_status kp_seq_build(struct kp_net *net, kopt_error *err);
struct kp_linear kp_seq_linear(const struct kp_net *net, size_t w, size_t b, size_t rows,
                               size_t I, size_t O);
/* y[l->B][l->O] += x[l->B][l->I] l->w'; l->b is left aside. */
void kp_seq_add_product(const struct kp_net *net, const struct kp_linear *l, const float *x,
                        float *y);

enum { DROP_IN, DROP_ENC, DROP_OUT };

struct kp_seq_direction {
    float *pre; /* [T][B][G/2] */
    float *h;   /* [T][B][E] */
    float *c;   /* [T][B][E] */
};

struct kp_seq_encoder {
    float *x;    /* [T][B][D] */
    float *conv; /* [T][B][C], where there is one */
    float *work; /* of the convolution */
    struct kp_seq_direction fwd, bwd;
    float *both;   /* [T][B][H]: the directions side by side */
    float *out;    /* [T][B][H]: the same as `both` without a join */
    float *init;   /* [S][B][H]: the decoder's first states */
    float *states; /* [B][S H]: the same, a row for each problem */
    float *keys;   /* [T][B][H]: additive attention's */
    float *sums;   /* [G/2]: of a step of one problem */
};

struct kp_seq_decoder {
    float *words; /* [V+1][G]: the products of all words with the decoder's W_x, and its bias */
    int32_t *ids; /* [P][B]: the words that go in */
    float *pre;   /* [P][B][G] */
    float *h;     /* [P][B][H] */
    float *c;     /* [P][B][H] */
    float *q;     /* [P][B][H] */
    float *weights; /* [P][B][T] */
    float *context; /* [P][B][H] */
    float *mixed;   /* [P][B][H]: of h and context; NULL without attention */
    float *out;     /* [P][B][H]: mixed or h, after dropout */
    float *z;       /* [B][most V] */
};

void kp_seq_lay_out_encoder(const struct kp_seq_dims *d, struct kp_carve *c,
                            struct kp_seq_encoder *e);
struct kp_conv kp_seq_conv(const struct kp_net *net, const struct kp_seq_dims *d);
struct kp_rnn kp_seq_rnn(const struct kp_net *net, const struct kp_seq_dims *d, size_t first,
                         size_t T);
const float *kp_seq_last_step(const struct kp_seq_dims *d, const float *x, size_t width);
void kp_seq_encode(const struct kp_net *net, const struct kp_seq_dims *d, const int32_t *tokens,
                   uint64_t key, const struct kp_seq_encoder *e);
void kp_seq_lay_out_decoder(const struct kp_net *net, const struct kp_seq_dims *d,
                            struct kp_carve *c, struct kp_seq_decoder *w);
struct kp_attention kp_seq_attention(const struct kp_net *net, const struct kp_seq_dims *d,
                                     size_t Q);
const float *kp_seq_keys(const struct kp_seq_dims *d, const struct kp_seq_encoder *e);
void kp_seq_decode(const struct kp_net *net, const struct kp_seq_dims *d,
                   const struct kp_batch *b, uint64_t key, const struct kp_seq_encoder *e,
                   const struct kp_seq_decoder *w);

struct kp_seq_gradients {
    float *out;     /* [P][B][H] */
    float *h;       /* [P][B][H] */
    float *q;       /* [P][B][H] */
    float *context; /* [P][B][H] */
    float *init;    /* [S][B][H] */
    float *states;  /* [B][S H] */
    float *words;   /* [V+1][G] */
    float *enc;     /* [T][B][H] */
    float *keys;    /* [T][B][H] */
    float *both;    /* [T][B][H] */
    float *fwd;     /* [T][B][E] */
    float *bwd;     /* [T][B][E] */
    float *conv;    /* [T][B][C] */
    float *x;       /* [T][B][D] */
    float *in;      /* [T][B][inputs of the recurrent layers] */
    float *work;    /* of the recurrent layers */
};

void kp_seq_lay_out_gradients(const struct kp_seq_dims *d, struct kp_carve *c,
                              struct kp_seq_gradients *g);

/* A batch on its way back: what forward left in e and w, the slab of gradients that is added
 * to, and room. g->out first holds the gradient of w->out. */
struct kp_seq_pass {
    const struct kp_net *net;
    const struct kp_seq_dims *d;
    const struct kp_seq_encoder *e;
    const struct kp_seq_decoder *w;
    const struct kp_seq_gradients *g;
    float *grad;
    uint64_t key; /* forward's */
};
/* From g->out to the decoder's parameters, g->init and g->enc; w->pre is used up. */
void kp_seq_decode_back(const struct kp_seq_pass *pass);
/* From there to the encoder's parameters. */
void kp_seq_encode_back(const struct kp_seq_pass *pass, const int32_t *tokens);

void kp_seq_side_by_side(size_t rows, size_t E, const float *a, const float *b, float *out);

/* Prediction: kp_net_ops' functions of these models. */
size_t kp_seq_prepare(const struct kp_net *net, float *out);
size_t kp_seq_state(const struct kp_net *net, size_t width);
size_t kp_seq_scratch(const struct kp_net *net, size_t width);
void kp_seq_begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *state, float *scratch);
void kp_seq_step(const struct kp_net *net, const struct kp_net_step *st, float *state,
                 float *scratch, float *logp);

#endif
