/* SPDX-License-Identifier: MIT */
/* Gradients of model/seq.h's models. Layer: model. */
#include "model/seq.h"

#include "math/vec.h"

#include <string.h>

/* --- backward -------------------------------------------------------------------------------
 */

void kp_seq_lay_out_gradients(const struct kp_seq_dims *d, struct kp_carve *c,
                              struct kp_seq_gradients *g)
{
    size_t out = d->P * d->B * d->H;
    size_t in = d->T * d->B;
    struct kp_rnn dec = {.cell = d->cell, .T = d->P, .B = d->B, .H = d->H};
    struct kp_rnn enc = {.cell = d->cell, .T = d->T, .B = d->B, .H = d->E};
    size_t a = kp_rnn_work(&dec);
    size_t b = kp_rnn_work(&enc);
    *g = (struct kp_seq_gradients){0};
    g->out = kp_carve_take(c, out);
    g->h = kp_carve_take(c, out);
    if (d->attention) {
        g->q = kp_carve_take(c, out);
        g->context = kp_carve_take(c, out);
    }
    g->init = kp_carve_take(c, d->S * d->B * d->H);
    g->states = kp_carve_take(c, d->S * d->B * d->H);
    g->words = kp_carve_take(c, (d->V + 1) * d->G);
    g->enc = kp_carve_take(c, in * d->H);
    if (d->attention)
        g->keys = kp_carve_take(c, in * d->H);
    if (d->conv == CONV_BESIDE)
        g->both = kp_carve_take(c, in * d->H);
    g->fwd = kp_carve_take(c, in * d->E);
    g->bwd = kp_carve_take(c, in * d->E);
    if (d->conv != CONV_NONE)
        g->conv = kp_carve_take(c, in * d->C);
    g->x = kp_carve_take(c, in * d->D);
    g->in = kp_carve_take(c, in * kp_seq_rnn_inputs(d));
    g->work = kp_carve_take(c, a > b ? a : b);
}

/* The other way round than in seq_forward.c. */
static void apart(size_t rows, size_t E, const float *both, float *a, float *b)
{
    for (size_t i = 0; i < rows; i++) {
        memcpy(a + i * E, both + i * 2 * E, E * sizeof(float));
        memcpy(b + i * E, both + i * 2 * E + E, E * sizeof(float));
    }
}

static void states_together(const struct kp_seq_dims *d, const float *init, float *states)
{
    for (size_t s = 0; s < d->S; s++)
        for (size_t i = 0; i < d->B; i++)
            memcpy(states + (i * d->S + s) * d->H, init + (s * d->B + i) * d->H,
                   d->H * sizeof(float));
}

static void add_to(float *y, const float *x, size_t n)
{
    kp_vec_axpy(n, 1, x, y);
}

/* g->out -> g->h, g->enc (both written). */
static void attention_back(const struct kp_seq_pass *pass)
{
    const struct kp_net *net = pass->net;
    const struct kp_seq_dims *d = pass->d;
    const struct kp_seq_encoder *e = pass->e;
    const struct kp_seq_decoder *w = pass->w;
    const struct kp_seq_gradients *g = pass->g;
    float *grad = pass->grad;
    size_t rows = d->P * d->B;
    size_t keys = d->T * d->B;
    const struct kp_blas *blas = net->blas;
    const struct kp_linear q = kp_seq_linear(net, ATT_Q, SIZE_MAX, rows, d->H, d->H);
    const struct kp_linear mix_h = kp_seq_linear(net, MIX_H, MIX_B, rows, d->H, d->H);
    const struct kp_linear mix_c = kp_seq_linear(net, MIX_C, SIZE_MAX, rows, d->H, d->H);
    const struct kp_attention a = kp_seq_attention(net, d, d->P);
    const struct kp_attention_grad back = {.dcontext = g->context,
                                           .dq = g->q,
                                           .dk = g->keys,
                                           .dvalues = g->enc,
                                           .dv =
                                               d->additive ? kp_net_g(net, grad, ATT_V) : NULL};
    kp_linear_backward(blas, &mix_h, w->h, g->out, g->h, kp_net_g(net, grad, MIX_H),
                       kp_net_g(net, grad, MIX_B));
    kp_linear_backward(blas, &mix_c, w->context, g->out, g->context, kp_net_g(net, grad, MIX_C),
                       NULL);
    kp_attention_backward(&a, w->q, kp_seq_keys(d, e), e->out, w->weights, &back);
    kp_linear_backward(blas, &q, w->h, g->q, g->context, kp_net_g(net, grad, ATT_Q), NULL);
    add_to(g->h, g->context, rows * d->H); /* g->context has done its first duty */
    if (d->additive) {
        const struct kp_linear k = kp_seq_linear(net, ATT_K, SIZE_MAX, keys, d->H, d->H);
        kp_linear_backward(blas, &k, e->out, g->keys, NULL, kp_net_g(net, grad, ATT_K), NULL);
        blas->gemm(false, false, keys, d->H, d->H, 1, g->keys, d->H, kp_net_w(net, ATT_K), d->H,
                   1, g->enc, d->H);
    } else {
        add_to(g->enc, g->keys, keys * d->H);
    }
}

/* g->out -> g->init, g->enc. */
void kp_seq_decode_back(const struct kp_seq_pass *pass)
{
    const struct kp_net *net = pass->net;
    const struct kp_seq_dims *d = pass->d;
    const struct kp_seq_encoder *e = pass->e;
    const struct kp_seq_decoder *w = pass->w;
    const struct kp_seq_gradients *g = pass->g;
    float *grad = pass->grad;
    size_t rows = d->P * d->B;
    const struct kp_rnn rnn = kp_seq_rnn(net, d, DEC_X, d->P);
    bool lstm = d->S == 2;
    const struct kp_rnn_state s = {e->init, lstm ? e->init + d->B * d->H : NULL};
    const struct kp_rnn_grad back = {.dh = g->h,
                                     .dw_h = kp_net_g(net, grad, DEC_H),
                                     .db_n = lstm ? NULL : kp_net_g(net, grad, DEC_N),
                                     .dh0 = g->init,
                                     .dc0 = lstm ? g->init + d->B * d->H : NULL};
    kp_net_drop(net, pass->key, DROP_OUT, g->out, rows * d->H);
    if (d->attention) {
        kp_tanh_backward(w->mixed, rows * d->H, g->out);
        attention_back(pass);
    } else {
        memcpy(g->h, g->out, rows * d->H * sizeof(float));
        memset(g->enc, 0, d->T * d->B * d->H * sizeof(float));
    }
    kp_rnn_backward(net->blas, &rnn, &s, w->pre, w->h, w->c, &back, g->work);
    const struct kp_linear in = kp_seq_linear(net, DEC_X, DEC_B, d->V + 1, d->D, d->G);
    memset(g->words, 0, (d->V + 1) * d->G * sizeof(float));
    kp_embed_backward(d->G, w->ids, rows, w->pre, g->words);
    kp_linear_backward(net->blas, &in, kp_net_w(net, OUT_EMBED), g->words, NULL,
                       kp_net_g(net, grad, DEC_X), kp_net_g(net, grad, DEC_B));
    net->blas->gemm(false, false, d->V + 1, d->D, d->G, 1, g->words, d->G, kp_net_w(net, DEC_X),
                    d->D, 1, kp_net_g(net, grad, OUT_EMBED), d->D);
}

/* The direction whose parameters begin with `first`: dx is written. */
static void direction_back(const struct kp_seq_pass *pass, size_t first, float *dx)
{
    const struct kp_net *net = pass->net;
    const struct kp_seq_dims *d = pass->d;
    const struct kp_seq_direction *r = first == BWD_X ? &pass->e->bwd : &pass->e->fwd;
    const float *x = d->conv == CONV_FRONT ? pass->e->conv : pass->e->x;
    float *grad = pass->grad;
    size_t rows = d->T * d->B;
    const struct kp_rnn rnn = kp_seq_rnn(net, d, first, d->T);
    const struct kp_rnn_state none = {NULL, NULL};
    const struct kp_rnn_grad back = {.dh = first == BWD_X ? pass->g->bwd : pass->g->fwd,
                                     .dw_h = kp_net_g(net, grad, first + 2),
                                     .db_n = d->S == 2 ? NULL : kp_net_g(net, grad, first + 3)};
    const struct kp_linear l =
        kp_seq_linear(net, first, first + 1, rows, kp_seq_rnn_inputs(d), d->G / 2);
    kp_rnn_backward(net->blas, &rnn, &none, r->pre, r->h, r->c, &back, pass->g->work);
    kp_linear_backward(net->blas, &l, x, r->pre, dx, kp_net_g(net, grad, first),
                       kp_net_g(net, grad, first + 1));
}

/* g->init -> what it adds to the gradients of the last states: added to g->fwd, g->bwd and,
 * with a convolution beside, g->conv. */
static void init_back(const struct kp_seq_pass *pass)
{
    const struct kp_net *net = pass->net;
    const struct kp_seq_dims *d = pass->d;
    const struct kp_seq_encoder *e = pass->e;
    const struct kp_seq_gradients *g = pass->g;
    float *grad = pass->grad;
    size_t n = d->S * d->H;
    const struct kp_linear f = kp_seq_linear(net, INIT_F, INIT_B, d->B, d->E, n);
    const struct kp_linear r = kp_seq_linear(net, INIT_R, SIZE_MAX, d->B, d->E, n);
    float *last = g->fwd + (d->T - 1) * d->B * d->E;
    states_together(d, g->init, g->states);
    kp_tanh_backward(e->states, d->B * n, g->states);
    kp_linear_backward(net->blas, &f, kp_seq_last_step(d, e->fwd.h, d->E), g->states, NULL,
                       kp_net_g(net, grad, INIT_F), kp_net_g(net, grad, INIT_B));
    net->blas->gemm(false, false, d->B, d->E, n, 1, g->states, n, f.w, d->E, 1, last, d->E);
    kp_linear_backward(net->blas, &r, e->bwd.h, g->states, NULL, kp_net_g(net, grad, INIT_R),
                       NULL);
    net->blas->gemm(false, false, d->B, d->E, n, 1, g->states, n, r.w, d->E, 1, g->bwd, d->E);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear c = kp_seq_linear(net, INIT_C, SIZE_MAX, d->B, d->C, n);
        kp_linear_backward(net->blas, &c, kp_seq_last_step(d, e->conv, d->C), g->states, NULL,
                           kp_net_g(net, grad, INIT_C), NULL);
        net->blas->gemm(false, false, d->B, d->C, n, 1, g->states, n, c.w, d->C, 1,
                        g->conv + (d->T - 1) * d->B * d->C, d->C);
    }
}

/* g->init, g->enc -> the encoder's parameters. */
void kp_seq_encode_back(const struct kp_seq_pass *pass, const int32_t *tokens)
{
    const struct kp_net *net = pass->net;
    const struct kp_seq_dims *d = pass->d;
    const struct kp_seq_encoder *e = pass->e;
    const struct kp_seq_gradients *g = pass->g;
    float *grad = pass->grad;
    size_t rows = d->T * d->B;
    const float *both = g->enc;
    kp_net_drop(net, pass->key, DROP_ENC, g->enc, rows * d->H);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear r = kp_seq_linear(net, JOIN_R, JOIN_B, rows, d->H, d->H);
        const struct kp_linear c = kp_seq_linear(net, JOIN_C, SIZE_MAX, rows, d->C, d->H);
        kp_relu_backward(e->out, rows * d->H, g->enc);
        kp_linear_backward(net->blas, &r, e->both, g->enc, g->both, kp_net_g(net, grad, JOIN_R),
                           kp_net_g(net, grad, JOIN_B));
        kp_linear_backward(net->blas, &c, e->conv, g->enc, g->conv, kp_net_g(net, grad, JOIN_C),
                           NULL);
        both = g->both;
    }
    apart(rows, d->E, both, g->fwd, g->bwd);
    init_back(pass);
    float *din = d->conv == CONV_FRONT ? g->conv : g->x;
    direction_back(pass, FWD_X, din);
    direction_back(pass, BWD_X, g->in);
    add_to(din, g->in, rows * kp_seq_rnn_inputs(d));
    if (d->conv != CONV_NONE) {
        const struct kp_conv c = kp_seq_conv(net, d);
        float *dx = d->conv == CONV_FRONT ? g->x : g->in; /* in has D floats a row there */
        kp_relu_backward(e->conv, rows * d->C, g->conv);
        kp_conv_backward(net->blas, &c, e->x, g->conv, dx, kp_net_g(net, grad, CONV_W),
                         kp_net_g(net, grad, CONV_B), e->work);
        if (d->conv == CONV_BESIDE)
            add_to(g->x, g->in, rows * d->D);
    }
    kp_net_drop(net, pass->key, DROP_IN, g->x, rows * d->D);
    kp_embed_backward(d->D, tokens, rows, g->x, kp_net_g(net, grad, IN_EMBED));
}
