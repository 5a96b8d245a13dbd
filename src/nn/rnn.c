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

void kp_rnn_forward(const struct kp_blas *blas, const struct kp_rnn *r,
                    const struct kp_rnn_state *s, float *pre, float *h, float *c)
{
    const struct kp_passes *passes = kp_passes_best();
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
        if (lstm) {
            struct kp_cell_step step = {B, H, pre_t, state_before(r, n, c, s->c0)};
            passes->lstm_forward(&step, c_t, h + t * B * H);
            continue;
        }
        if (h_before)
            blas->gemm(false, true, B, H, H, 1, h_before, H, r->w_h + summed * H, H, 0, c_t, H);
        else
            memset(c_t, 0, B * H * sizeof(*c_t));
        struct kp_cell_step step = {B, H, pre_t, h_before};
        passes->gru_forward(&step, r->b_n, c_t, h + t * B * H);
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

/* dw[n_out][H] += sum over steps and rows of da' h[before]; da [T][B] rows of lda floats. */
static void add_weight_grad(const struct kp_blas *blas, const struct kp_rnn *r, const float *da,
                            size_t lda, size_t n_out, const float *h, const float *h0,
                            float *dw)
{
    size_t B = r->B;
    size_t H = r->H;
    if (r->T == 0)
        return;
    size_t first = step_at(r, 0);
    if (h0)
        blas->gemm(true, false, n_out, H, B, 1, da + first * B * lda, lda, h0, H, 1, dw, H);
    /* Steps 1 .. T-1 with the outputs 0 .. T-2, and the other way round with reverse. */
    size_t rows = (r->T - 1) * B;
    const float *da_from = r->reverse ? da : da + B * lda;
    const float *h_from = r->reverse ? h + B * H : h;
    if (rows)
        blas->gemm(true, false, n_out, H, rows, 1, da_from, lda, h_from, H, 1, dw, H);
}

void kp_rnn_backward(const struct kp_blas *blas, const struct kp_rnn *r,
                     const struct kp_rnn_state *s, float *pre, const float *h, const float *c,
                     const struct kp_rnn_grad *g, float *work)
{
    const struct kp_passes *passes = kp_passes_best();
    size_t B = r->B;
    size_t H = r->H;
    size_t G = kp_rnn_gates(r->cell, H);
    bool lstm = r->cell == KP_CELL_LSTM;
    size_t summed = lstm ? G : 2 * H;
    float *dh_rec = work;
    float *other = work + B * H;
    copy_or_zero(dh_rec, g->dh_end, B * H);
    if (lstm)
        copy_or_zero(other, g->dc_end, B * H);
    for (size_t n = r->T; n-- > 0;) {
        size_t t = step_at(r, n);
        float *pre_t = pre + t * B * G;
        const float *dh_t = g->dh + t * B * H;
        if (lstm) {
            struct kp_cell_step step = {B, H, pre_t, state_before(r, n, c, s->c0)};
            struct kp_cell_grad grad = {dh_t, dh_rec, other, NULL};
            passes->lstm_backward(&step, c + t * B * H, &grad);
        } else {
            struct kp_cell_step step = {B, H, pre_t, state_before(r, n, h, s->h0)};
            struct kp_cell_grad grad = {dh_t, dh_rec, other + t * B * H, g->db_n};
            passes->gru_backward(&step, c + t * B * H, &grad);
        }
        if (n == 0 && !g->dh0)
            break;
        blas->gemm(false, false, B, H, summed, 1, pre_t, G, r->w_h, H, lstm ? 0 : 1, dh_rec, H);
        if (!lstm)
            blas->gemm(false, false, B, H, H, 1, other + t * B * H, H, r->w_h + summed * H, H,
                       1, dh_rec, H);
    }
    if (g->dh0)
        memcpy(g->dh0, dh_rec, B * H * sizeof(*dh_rec));
    if (lstm && g->dc0)
        memcpy(g->dc0, other, B * H * sizeof(*other));
    add_weight_grad(blas, r, pre, G, summed, h, s->h0, g->dw_h);
    if (!lstm)
        add_weight_grad(blas, r, other, H, H, h, s->h0, g->dw_h + summed * H);
}
