/* SPDX-License-Identifier: MIT */
/* The tables of model/seq.h's models: training a batch, predicting step by step. Layer: model.
 */
#include "model/seq.h"

#include <string.h>

/* --- the table ------------------------------------------------------------------------------
 */

static size_t work(const struct kp_net *net, size_t B, bool train)
{
    struct kp_carve c = {0};
    struct kp_seq_encoder e;
    struct kp_seq_decoder w;
    struct kp_seq_gradients g;
    const struct kp_seq_dims d = kp_seq_dims(net, B);
    kp_seq_lay_out_encoder(&d, &c, &e);
    kp_seq_lay_out_decoder(net, &d, &c, &w);
    if (train)
        kp_seq_lay_out_gradients(net, &d, &c, &g);
    return c.used;
}

static void run(const struct kp_net *net, const struct kp_batch *b, float smoothing,
                uint64_t key, float *grad, float *memory, struct kp_net_score *score)
{
    struct kp_carve c = {.base = memory};
    struct kp_seq_encoder e;
    struct kp_seq_decoder w;
    struct kp_seq_gradients g;
    const struct kp_seq_dims d = kp_seq_dims(net, b->B);
    const struct kp_heads heads = {net, kp_net_w(net, HEAD_W), kp_net_w(net, HEAD_B), d.H};
    if (!grad)
        key = 0;
    kp_seq_lay_out_encoder(&d, &c, &e);
    kp_seq_lay_out_decoder(net, &d, &c, &w);
    kp_seq_encode(net, &d, b->tokens, key, &e);
    kp_seq_decode(net, &d, b, key, &e, &w);
    if (!grad) {
        kp_heads_run(&heads, b, smoothing, w.out, NULL, NULL, NULL, w.z, score);
        return;
    }
    kp_seq_lay_out_gradients(net, &d, &c, &g);
    kp_heads_run(&heads, b, smoothing, w.out, g.out, kp_net_g(net, grad, HEAD_W),
                 kp_net_g(net, grad, HEAD_B), w.z, score);
    kp_seq_decode_back(net, &d, key, grad, &e, &w, &g);
    kp_seq_encode_back(net, &d, b->tokens, key, grad, &e, &g);
}

/* Prediction. A state: the encoder's outputs and keys, then the decoder's states of all
 * prefixes, [S][width][H] for odd targets and the same for even ones. */

struct beam_state {
    float *values; /* [T][H] */
    float *keys;   /* [T][H]: the same where attention is not additive */
    float *h[2];   /* [width][H] */
    float *c[2];   /* [width][H]: LSTM */
};

static size_t lay_out_state(const struct kp_seq_dims *d, size_t width, float *base,
                            struct beam_state *s)
{
    struct kp_carve c = {.base = base};
    s->values = s->keys = kp_carve_take(&c, d->T * d->H);
    if (d->additive)
        s->keys = kp_carve_take(&c, d->T * d->H);
    for (int i = 0; i < 2; i++) {
        s->h[i] = kp_carve_take(&c, width * d->H);
        s->c[i] = kp_carve_take(&c, width * d->H);
    }
    return c.used;
}

static size_t state(const struct kp_net *net, size_t width)
{
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct beam_state s;
    return lay_out_state(&d, width, NULL, &s);
}

struct step_work {
    float *x;       /* [n][D] */
    float *pre;     /* [n][G] */
    float *h0;      /* [n][H] */
    float *c0;      /* [n][H] */
    float *q;       /* [n][H] */
    float *weights; /* [n][T] */
    float *context; /* [n][H] */
    float *out;     /* [n][H] */
};

static size_t lay_out_step(const struct kp_seq_dims *d, size_t n, float *base,
                           struct step_work *w)
{
    struct kp_carve c = {.base = base};
    w->x = kp_carve_take(&c, n * d->D);
    w->pre = kp_carve_take(&c, n * d->G);
    w->h0 = kp_carve_take(&c, n * d->H);
    w->c0 = kp_carve_take(&c, n * d->H);
    w->q = kp_carve_take(&c, n * d->H);
    w->weights = kp_carve_take(&c, n * d->T);
    w->context = kp_carve_take(&c, n * d->H);
    w->out = kp_carve_take(&c, n * d->H);
    return c.used;
}

static size_t scratch(const struct kp_net *net, size_t width)
{
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct kp_carve c = {0};
    struct kp_seq_encoder e;
    struct step_work w;
    kp_seq_lay_out_encoder(&d, &c, &e);
    size_t step_needs = lay_out_step(&d, width, NULL, &w);
    return c.used > step_needs ? c.used : step_needs;
}

static void begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *memory, float *temporary)
{
    const struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct kp_carve c = {.base = temporary};
    struct kp_seq_encoder e;
    struct beam_state s;
    (void)features;
    kp_seq_lay_out_encoder(&d, &c, &e);
    (void)lay_out_state(&d, width, memory, &s);
    kp_seq_encode(net, &d, tokens, 0, &e);
    memcpy(s.values, e.out, d.T * d.H * sizeof(float));
    if (d.additive)
        memcpy(s.keys, e.keys, d.T * d.H * sizeof(float));
    /* Where target 0 looks for its parent's states. */
    memcpy(s.h[1], e.init, d.H * sizeof(float));
    if (d.S == 2)
        memcpy(s.c[1], e.init + d.H, d.H * sizeof(float));
}

/* Keys and values are the same for all prefixes: each prefix is a query of a batch of one. */
static void look_back(const struct kp_net *net, struct kp_seq_dims d, size_t n,
                      const struct beam_state *s, const float *h, const struct step_work *w)
{
    const struct kp_linear q = kp_seq_linear(net, ATT_Q, SIZE_MAX, n, d.H, d.H);
    const struct kp_linear mix = kp_seq_linear(net, MIX_H, MIX_B, n, d.H, d.H);
    const struct kp_attention a = kp_seq_attention(net, &d, n);
    kp_linear_forward(net->blas, &q, h, w->q);
    kp_attention_forward(&a, w->q, s->keys, s->values, w->weights, w->context);
    kp_linear_forward(net->blas, &mix, h, w->out);
    kp_seq_add_product(net, MIX_C, n, d.H, d.H, w->context, w->out);
    kp_tanh_forward(w->out, n * d.H);
}

static void step(const struct kp_net *net, const struct kp_net_step *st, float *memory,
                 float *temporary, float *logp)
{
    struct kp_seq_dims d = kp_seq_dims(net, 1);
    struct beam_state s;
    struct step_work w;
    const struct kp_heads heads = {net, kp_net_w(net, HEAD_W), kp_net_w(net, HEAD_B), d.H};
    (void)lay_out_state(&d, st->width, memory, &s);
    (void)lay_out_step(&d, st->n, temporary, &w);
    size_t old = (st->p + 1) % 2;
    size_t first = st->p ? 1 + kp_net_values_before(net, st->p - 1) : 0;
    for (size_t i = 0; i < st->n; i++) {
        size_t from = st->p ? st->parent[i] : 0;
        int32_t word = (int32_t)(st->p ? first + st->values[i] : 0);
        kp_embed_forward(kp_net_w(net, OUT_EMBED), d.D, &word, 1, w.x + i * d.D);
        memcpy(w.h0 + i * d.H, s.h[old] + from * d.H, d.H * sizeof(float));
        memcpy(w.c0 + i * d.H, s.c[old] + from * d.H, d.H * sizeof(float));
    }
    const struct kp_linear in = kp_seq_linear(net, DEC_X, DEC_B, st->n, d.D, d.G);
    const struct kp_rnn_state before = {w.h0, d.S == 2 ? w.c0 : NULL};
    struct kp_seq_dims rows = d;
    rows.B = st->n;
    const struct kp_rnn rnn = kp_seq_rnn(net, &rows, DEC_X, 1);
    float *h = s.h[st->p % 2];
    kp_linear_forward(net->blas, &in, w.x, w.pre);
    kp_rnn_forward(net->blas, &rnn, &before, w.pre, h, s.c[st->p % 2]);
    if (d.attention)
        look_back(net, d, st->n, &s, h, &w);
    kp_heads_logp(&heads, st->p, st->n, d.attention ? w.out : h, logp);
}

#define SEQ_MODEL(symbol, text, words)                       \
    const struct kp_net_ops symbol = {.name = text,          \
                                      .about = words,        \
                                      .build = kp_seq_build, \
                                      .work = work,          \
                                      .run = run,            \
                                      .state = state,        \
                                      .scratch = scratch,    \
                                      .begin = begin,        \
                                      .step = step}

SEQ_MODEL(kp_net_seq2seq, "seq2seq", "a recurrent encoder and decoder");
SEQ_MODEL(kp_net_attention, "attention", "the same, and the decoder looks back by attention");
SEQ_MODEL(kp_net_hybrid1, "hybrid1", "a convolution in front of the recurrent encoder");
SEQ_MODEL(kp_net_hybrid2, "hybrid2", "a convolution beside the recurrent encoder, joined");
