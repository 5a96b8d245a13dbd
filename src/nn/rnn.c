/* SPDX-License-Identifier: MIT */
/* Layer: nn. The products of a step with w_h need the step before it; everything else, dw_h
 * too, is done for all steps at once or in one pass over a step's gates (nn/passes.h). */
#include "nn/rnn.h"

#include "nn/passes.h"

#include <string.h>

size_t kp_rnn_gates(enum kp_cell cell, size_t H)
{
    return (cell == KP_CELL_LSTM ? 4 : 3) * H;
}

/* The n-th step in the order of computation. */
static size_t step_at(const struct kp_rnn *r, size_t n)
{
    return r->reverse ? r->T - 1 - n : n;
}

/* The state that step n goes on from: [B][H] of `all`, or the initial one (may be NULL). */
static const float *state_before(const struct kp_rnn *r, size_t n, const float *all,
                                 const float *initial)
{
    return n ? all + step_at(r, n - 1) * r->B * r->H : initial;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): pre is written to, by way of step */
void kp_rnn_step(const struct kp_rnn *r, const float *before, float *pre, float *h, float *c)
{
    const struct kp_passes *passes = kp_passes_best();
    const struct kp_cell_step step = {r->B, r->H, pre, before};
    if (r->cell == KP_CELL_LSTM)
        passes->lstm_forward(&step, c, h);
    else
        passes->gru_forward(&step, r->b_n, c, h);
}

void kp_rnn_forward(const struct kp_blas *blas, const struct kp_rnn *r,
                    const struct kp_rnn_state *s, float *pre, float *h, float *c)
{
    size_t B = r->B;
    size_t H = r->H;
    size_t G = kp_rnn_gates(r->cell, H);
    bool lstm = r->cell == KP_CELL_LSTM;
    size_t summed = lstm ? G : 2 * H; /* gates whose products go into pre */
    for (size_t n = 0; n < r->T; n++) {
        size_t t = step_at(r, n);
        const float *h_before = state_before(r, n, h, s->h0);
        float *pre_t = pre + t * B * G;
        float *c_t = c + t * B * H;
        if (h_before)
            blas->gemm(false, true, B, summed, H, 1, h_before, H, r->w_h, H, 1, pre_t, G);
        if (!lstm && h_before)
            blas->gemm(false, true, B, H, H, 1, h_before, H, r->w_h + summed * H, H, 0, c_t, H);
        else if (!lstm)
            memset(c_t, 0, B * H * sizeof(*c_t));
        kp_rnn_step(r, lstm ? state_before(r, n, c, s->c0) : h_before, pre_t, h + t * B * H,
                    c_t);
    }
}

/* dh_rec [B][H], then LSTM: dc [B][H], GRU: the gradient of h W_hn' [T][B][H]. */
size_t kp_rnn_work(const struct kp_rnn *r)
{
    return r->B * r->H * (r->cell == KP_CELL_LSTM ? 2 : 1 + r->T);
}

/* to = from, or zeros. */
static void copy_or_zero(float *to, const float *from, size_t n)
{
    if (from)
        memcpy(to, from, n * sizeof(*to));
    else
        memset(to, 0, n * sizeof(*to));
}

struct back {
    const struct kp_blas *blas;
    const struct kp_rnn *r;
    const struct kp_rnn_state *s;
    const struct kp_rnn_grad *g;
    float *pre;
    const float *h;
    const float *c;
    float *dh_rec;
    float *other; /* LSTM: dc; GRU: the gradient of h W_hn', all steps */
};

/* Step n: pre from gates to gradient, dh_rec and other from one side of the step to the other.
 */
static void step_back(const struct back *k, size_t n)
{
    const struct kp_passes *passes = kp_passes_best();
    const struct kp_rnn *r = k->r;
    size_t H = r->H;
    size_t at = step_at(r, n) * r->B * H;
    size_t G = kp_rnn_gates(r->cell, H);
    float *pre = k->pre + step_at(r, n) * r->B * G;
    bool wanted = n > 0 || k->g->dh0;
    if (r->cell == KP_CELL_LSTM) {
        struct kp_cell_step step = {r->B, H, pre, state_before(r, n, k->c, k->s->c0)};
        struct kp_cell_grad grad = {k->g->dh + at, k->dh_rec, k->other, NULL};
        passes->lstm_backward(&step, k->c + at, &grad);
        if (wanted)
            k->blas->gemm(false, false, r->B, H, G, 1, pre, G, r->w_h, H, 0, k->dh_rec, H);
        return;
    }
    struct kp_cell_step step = {r->B, H, pre, state_before(r, n, k->h, k->s->h0)};
    struct kp_cell_grad grad = {k->g->dh + at, k->dh_rec, k->other + at, k->g->db_n};
    passes->gru_backward(&step, k->c + at, &grad);
    if (wanted) {
        k->blas->gemm(false, false, r->B, H, 2 * H, 1, pre, G, r->w_h, H, 1, k->dh_rec, H);
        k->blas->gemm(false, false, r->B, H, H, 1, k->other + at, H, r->w_h + 2 * H * H, H, 1,
                      k->dh_rec, H);
    }
}

/* Rows gate .. gate + n_out of dw_h += sum over steps and rows of da' h[before]; da: [T][B]
 * rows of lda floats. */
static void add_weight_grad(const struct back *k, const float *da, size_t lda, size_t gate,
                            size_t n_out)
{
    const struct kp_rnn *r = k->r;
    size_t B = r->B;
    size_t H = r->H;
    float *dw = k->g->dw_h + gate * H;
    if (r->T == 0)
        return;
    if (k->s->h0)
        k->blas->gemm(true, false, n_out, H, B, 1, da + step_at(r, 0) * B * lda, lda, k->s->h0,
                      H, 1, dw, H);
    /* Steps 1 .. T-1 with the outputs 0 .. T-2, and the other way round with reverse. */
    size_t rows = (r->T - 1) * B;
    const float *da_from = r->reverse ? da : da + B * lda;
    const float *h_from = r->reverse ? k->h + B * H : k->h;
    if (rows)
        k->blas->gemm(true, false, n_out, H, rows, 1, da_from, lda, h_from, H, 1, dw, H);
}

/* NOLINTBEGIN(readability-function-size,readability-non-const-parameter): the parameters of
 * the contract; work is written to, by way of k */
void kp_rnn_backward(const struct kp_blas *blas, const struct kp_rnn *r,
                     const struct kp_rnn_state *s, float *pre, const float *h, const float *c,
                     const struct kp_rnn_grad *g, float *work)
/* NOLINTEND(readability-function-size,readability-non-const-parameter) */
{
    size_t H = r->H;
    size_t n_row = r->B * H;
    size_t G = kp_rnn_gates(r->cell, H);
    bool lstm = r->cell == KP_CELL_LSTM;
    const struct back k = {.blas = blas,
                           .r = r,
                           .s = s,
                           .g = g,
                           .pre = pre,
                           .h = h,
                           .c = c,
                           .dh_rec = work,
                           .other = work + n_row};
    copy_or_zero(k.dh_rec, g->dh_end, n_row);
    if (lstm)
        copy_or_zero(k.other, g->dc_end, n_row);
    for (size_t n = r->T; n-- > 0;)
        step_back(&k, n);
    if (g->dh0)
        memcpy(g->dh0, k.dh_rec, n_row * sizeof(*k.dh_rec));
    if (lstm && g->dc0)
        memcpy(g->dc0, k.other, n_row * sizeof(*k.other));
    add_weight_grad(&k, pre, G, 0, lstm ? G : 2 * H);
    if (!lstm)
        add_weight_grad(&k, k.other, H, 2 * H, H);
}
