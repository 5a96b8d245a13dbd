/* SPDX-License-Identifier: MIT */
/* From tokens to what the heads see, a batch at a time. Layer: model. */
#include "model/seq.h"

#include <string.h>

/* --- the encoder ----------------------------------------------------------------------------
 */

void kp_seq_lay_out_encoder(const struct kp_seq_dims *d, struct kp_carve *c,
                            struct kp_seq_encoder *e)
{
    size_t rows = d->T * d->B;
    const struct kp_conv conv = {d->T, d->B, d->D, d->C, d->K, NULL, NULL};
    *e = (struct kp_seq_encoder){0};
    e->x = kp_carve_take(c, rows * d->D);
    if (d->conv != CONV_NONE) {
        e->conv = kp_carve_take(c, rows * d->C);
        e->work = kp_carve_take(c, kp_conv_work(&conv));
    }
    struct kp_seq_direction *const both[] = {&e->fwd, &e->bwd};
    for (int i = 0; i < 2; i++) {
        both[i]->pre = kp_carve_take(c, rows * d->G / 2);
        both[i]->h = kp_carve_take(c, rows * d->E);
        both[i]->c = kp_carve_take(c, rows * d->E);
    }
    e->both = kp_carve_take(c, rows * d->H);
    e->out = d->conv == CONV_BESIDE ? kp_carve_take(c, rows * d->H) : e->both;
    e->init = kp_carve_take(c, d->S * d->B * d->H);
    e->states = kp_carve_take(c, d->S * d->B * d->H);
    if (d->additive)
        e->keys = kp_carve_take(c, rows * d->H);
    e->sums = kp_carve_take(c, d->G / 2);
}

struct kp_conv kp_seq_conv(const struct kp_net *net, const struct kp_seq_dims *d)
{
    return (struct kp_conv){
        d->T, d->B, d->D, d->C, d->K, kp_net_w(net, CONV_W), kp_net_w(net, CONV_B)};
}

/* first: FWD_X, BWD_X or DEC_X. */
struct kp_rnn kp_seq_rnn(const struct kp_net *net, const struct kp_seq_dims *d, size_t first,
                         size_t T)
{
    return (struct kp_rnn){.cell = d->cell,
                           .reverse = first == BWD_X,
                           .T = T,
                           .B = d->B,
                           .H = first == DEC_X ? d->H : d->E,
                           .w_h = kp_net_w(net, first + 2),
                           .b_n = d->cell == KP_CELL_GRU ? kp_net_w(net, first + 3) : NULL};
}

static void direction_forward(const struct kp_net *net, const struct kp_seq_dims *d,
                              size_t first, const float *x, const struct kp_seq_direction *r)
{
    const struct kp_linear l =
        kp_seq_linear(net, first, first + 1, d->T * d->B, kp_seq_rnn_inputs(d), d->G / 2);
    const struct kp_rnn rnn = kp_seq_rnn(net, d, first, d->T);
    const struct kp_rnn_state none = {NULL, NULL};
    kp_linear_forward(net->blas, &l, x, r->pre);
    kp_rnn_forward(net->blas, &rnn, &none, r->pre, r->h, r->c);
}

/* [rows][E] twice <-> [rows][2E] */
void kp_seq_side_by_side(size_t rows, size_t E, const float *a, const float *b, float *out)
{
    for (size_t i = 0; i < rows; i++) {
        memcpy(out + i * 2 * E, a + i * E, E * sizeof(float));
        memcpy(out + i * 2 * E + E, b + i * E, E * sizeof(float));
    }
}

const float *kp_seq_last_step(const struct kp_seq_dims *d, const float *x, size_t width)
{
    return x + (d->T - 1) * d->B * width;
}

/* states [B][S H] <-> init [S][B][H] */
static void states_apart(const struct kp_seq_dims *d, const float *states, float *init)
{
    for (size_t s = 0; s < d->S; s++)
        for (size_t i = 0; i < d->B; i++)
            memcpy(init + (s * d->B + i) * d->H, states + (i * d->S + s) * d->H,
                   d->H * sizeof(float));
}

/* The decoder's, from the last states of both directions (and of a convolution beside). */
static void first_states(const struct kp_net *net, const struct kp_seq_dims *d,
                         const struct kp_seq_encoder *e)
{
    size_t n = d->S * d->H;
    const struct kp_linear f = kp_seq_linear(net, INIT_F, INIT_B, d->B, d->E, n);
    const struct kp_linear r = kp_seq_linear(net, INIT_R, SIZE_MAX, d->B, d->E, n);
    kp_linear_forward(net->blas, &f, kp_seq_last_step(d, e->fwd.h, d->E), e->states);
    kp_seq_add_product(net, &r, e->bwd.h, e->states);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear c = kp_seq_linear(net, INIT_C, SIZE_MAX, d->B, d->C, n);
        kp_seq_add_product(net, &c, kp_seq_last_step(d, e->conv, d->C), e->states);
    }
    kp_tanh_forward(e->states, d->B * n);
    states_apart(d, e->states, e->init);
}

void kp_seq_encode(const struct kp_net *net, const struct kp_seq_dims *d, const int32_t *tokens,
                   uint64_t key, const struct kp_seq_encoder *e)
{
    size_t rows = d->T * d->B;
    kp_embed_forward(kp_net_w(net, IN_EMBED), d->D, tokens, rows, e->x);
    kp_net_drop(net, key, DROP_IN, e->x, rows * d->D);
    if (d->conv != CONV_NONE) {
        const struct kp_conv c = kp_seq_conv(net, d);
        kp_conv_forward(net->blas, &c, e->x, e->conv, e->work);
        kp_relu_forward(e->conv, rows * d->C);
    }
    const float *in = d->conv == CONV_FRONT ? e->conv : e->x;
    direction_forward(net, d, FWD_X, in, &e->fwd);
    direction_forward(net, d, BWD_X, in, &e->bwd);
    kp_seq_side_by_side(rows, d->E, e->fwd.h, e->bwd.h, e->both);
    if (d->conv == CONV_BESIDE) {
        const struct kp_linear l = kp_seq_linear(net, JOIN_R, JOIN_B, rows, d->H, d->H);
        const struct kp_linear c = kp_seq_linear(net, JOIN_C, SIZE_MAX, rows, d->C, d->H);
        kp_linear_forward(net->blas, &l, e->both, e->out);
        kp_seq_add_product(net, &c, e->conv, e->out);
        kp_relu_forward(e->out, rows * d->H);
    }
    kp_net_drop(net, key, DROP_ENC, e->out, rows * d->H);
    first_states(net, d, e);
    if (d->additive) {
        const struct kp_linear k = kp_seq_linear(net, ATT_K, SIZE_MAX, rows, d->H, d->H);
        kp_linear_forward(net->blas, &k, e->out, e->keys);
    }
}

/* --- the decoder ----------------------------------------------------------------------------
 */

void kp_seq_lay_out_decoder(const struct kp_net *net, const struct kp_seq_dims *d,
                            struct kp_carve *c, struct kp_seq_decoder *w)
{
    size_t rows = d->P * d->B;
    *w = (struct kp_seq_decoder){0};
    w->words = kp_carve_take(c, (d->V + 1) * d->G);
    w->ids = (int32_t *)kp_carve_take(c, rows);
    w->pre = kp_carve_take(c, rows * d->G);
    w->h = kp_carve_take(c, rows * d->H);
    w->c = kp_carve_take(c, rows * d->H);
    if (d->attention) {
        w->q = kp_carve_take(c, rows * d->H);
        w->weights = kp_carve_take(c, rows * d->T);
        w->context = kp_carve_take(c, rows * d->H);
        w->mixed = kp_carve_take(c, rows * d->H);
    }
    w->out = kp_carve_take(c, rows * d->H);
    w->z = kp_carve_take(c, d->B * kp_net_most_values(net));
}

/* Word 0 begins a configuration; the values of target p follow those of p-1. */
static void words_before(const struct kp_net *net, const struct kp_seq_dims *d,
                         const int32_t *targets, int32_t *ids)
{
    int32_t first = 1;
    for (size_t i = 0; i < d->B; i++)
        ids[i] = 0;
    for (size_t p = 1; p < d->P; p++) {
        const int32_t *value = targets + (p - 1) * d->B;
        for (size_t i = 0; i < d->B; i++)
            ids[p * d->B + i] = value[i] < 0 ? -1 : first + value[i];
        first += (int32_t)net->shape.n_values[p - 1];
    }
}

struct kp_attention kp_seq_attention(const struct kp_net *net, const struct kp_seq_dims *d,
                                     size_t Q)
{
    return (struct kp_attention){.score = d->additive ? KP_SCORE_ADDITIVE : KP_SCORE_DOT,
                                 .Q = Q,
                                 .S = d->T,
                                 .B = d->B,
                                 .H = d->H,
                                 .C = d->H,
                                 .v = d->additive ? kp_net_w(net, ATT_V) : NULL};
}

const float *kp_seq_keys(const struct kp_seq_dims *d, const struct kp_seq_encoder *e)
{
    return d->additive ? e->keys : e->out;
}

void kp_seq_decode(const struct kp_net *net, const struct kp_seq_dims *d,
                   const struct kp_batch *b, uint64_t key, const struct kp_seq_encoder *e,
                   const struct kp_seq_decoder *w)
{
    size_t rows = d->P * d->B;
    const struct kp_linear in = kp_seq_linear(net, DEC_X, DEC_B, d->V + 1, d->D, d->G);
    const struct kp_rnn rnn = kp_seq_rnn(net, d, DEC_X, d->P);
    const struct kp_rnn_state s = {e->init, d->S == 2 ? e->init + d->B * d->H : NULL};
    kp_linear_forward(net->blas, &in, kp_net_w(net, OUT_EMBED), w->words);
    words_before(net, d, b->targets, w->ids);
    kp_embed_forward(w->words, d->G, w->ids, rows, w->pre);
    kp_rnn_forward(net->blas, &rnn, &s, w->pre, w->h, w->c);
    if (d->attention) {
        const struct kp_linear q = kp_seq_linear(net, ATT_Q, SIZE_MAX, rows, d->H, d->H);
        const struct kp_linear mix = kp_seq_linear(net, MIX_H, MIX_B, rows, d->H, d->H);
        const struct kp_linear mix_c = kp_seq_linear(net, MIX_C, SIZE_MAX, rows, d->H, d->H);
        const struct kp_attention a = kp_seq_attention(net, d, d->P);
        kp_linear_forward(net->blas, &q, w->h, w->q);
        kp_attention_forward(&a, w->q, kp_seq_keys(d, e), e->out, w->weights, w->context);
        kp_linear_forward(net->blas, &mix, w->h, w->mixed);
        kp_seq_add_product(net, &mix_c, w->context, w->mixed);
        kp_tanh_forward(w->mixed, rows * d->H);
    }
    memcpy(w->out, d->attention ? w->mixed : w->h, rows * d->H * sizeof(float));
    kp_net_drop(net, key, DROP_OUT, w->out, rows * d->H);
}
