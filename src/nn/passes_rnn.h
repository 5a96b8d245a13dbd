/* SPDX-License-Identifier: MIT */
/* The pointwise parts of recurrent layers; compiled once for each width. Layer: nn. */
#ifndef KP_NN_PASSES_RNN_H
#define KP_NN_PASSES_RNN_H

#include "math/lanes.h"
#include "nn/passes.h"

/* The functions named ..unit.. compute n <= LANES units of one row from unit i on. n is LANES,
 * a constant, but at the end of a row. */

LANES_FN lanes load_or_zero(const float *p, size_t i, size_t n)
{
    return p ? lanes_load(p + i, n) : lanes_of(0);
}

/* s (1 - s): the derivative of a sigmoid, from its value. */
LANES_FN lanes sigmoid_slope(lanes s)
{
    return s - s * s;
}

/* a - b c */
LANES_FN lanes minus_product(lanes a, lanes b, lanes c)
{
    return lanes_mad(-b, c, a);
}

/* --- LSTM ------------------------------------------------------------------------------------
 */

struct lstm_rows {
    float *pre;
    const float *before;
    float *c;
    float *h;
};

LANES_FN void lstm_unit(const struct lstm_rows *r, size_t H, size_t i, size_t n)
{
    lanes in = lanes_sigmoid(lanes_load(r->pre + i, n));
    lanes forget = lanes_sigmoid(lanes_load(r->pre + H + i, n));
    lanes cell = lanes_tanh(lanes_load(r->pre + 2 * H + i, n));
    lanes out = lanes_sigmoid(lanes_load(r->pre + 3 * H + i, n));
    lanes now = lanes_mad(forget, load_or_zero(r->before, i, n), in * cell);
    lanes_store(r->pre + i, n, in);
    lanes_store(r->pre + H + i, n, forget);
    lanes_store(r->pre + 2 * H + i, n, cell);
    lanes_store(r->pre + 3 * H + i, n, out);
    lanes_store(r->c + i, n, now);
    lanes_store(r->h + i, n, out * lanes_tanh(now));
}

/* NOLINTNEXTLINE(readability-non-const-parameter): both are written to, by way of r */
static void lstm_forward(const struct kp_cell_step *s, float *c, float *h)
{
    size_t H = s->H;
    for (size_t b = 0; b < s->B; b++) {
        struct lstm_rows r = {s->pre + b * 4 * H, s->before ? s->before + b * H : NULL,
                              c + b * H, h + b * H};
        size_t i = 0;
        for (; H - i >= LANES; i += LANES)
            lstm_unit(&r, H, i, LANES);
        if (i < H)
            lstm_unit(&r, H, i, H - i);
    }
}

struct lstm_rows_back {
    float *pre;
    const float *before;
    const float *c;
    const float *dh;
    float *dh_rec;
    float *dc;
};

LANES_FN void lstm_unit_back(const struct lstm_rows_back *r, size_t H, size_t i, size_t n)
{
    lanes in = lanes_load(r->pre + i, n);
    lanes forget = lanes_load(r->pre + H + i, n);
    lanes cell = lanes_load(r->pre + 2 * H + i, n);
    lanes out = lanes_load(r->pre + 3 * H + i, n);
    lanes th = lanes_tanh(lanes_load(r->c + i, n));
    lanes dh = lanes_load(r->dh + i, n) + lanes_load(r->dh_rec + i, n);
    lanes dh_out = dh * out;
    lanes dc = lanes_load(r->dc + i, n) + minus_product(dh_out, dh_out * th, th);
    lanes before = load_or_zero(r->before, i, n);
    lanes dc_in = dc * in;
    lanes_store(r->pre + i, n, dc * cell * sigmoid_slope(in));
    lanes_store(r->pre + H + i, n, dc * before * sigmoid_slope(forget));
    lanes_store(r->pre + 2 * H + i, n, minus_product(dc_in, dc_in * cell, cell));
    lanes_store(r->pre + 3 * H + i, n, dh * th * sigmoid_slope(out));
    lanes_store(r->dc + i, n, dc * forget);
}

static void lstm_backward(const struct kp_cell_step *s, const float *c,
                          const struct kp_cell_grad *g)
{
    size_t H = s->H;
    for (size_t b = 0; b < s->B; b++) {
        struct lstm_rows_back r = {s->pre + b * 4 * H, s->before ? s->before + b * H : NULL,
                                   c + b * H,          g->dh + b * H,
                                   g->dh_rec + b * H,  g->other + b * H};
        size_t i = 0;
        for (; H - i >= LANES; i += LANES)
            lstm_unit_back(&r, H, i, LANES);
        if (i < H)
            lstm_unit_back(&r, H, i, H - i);
    }
}

/* --- GRU -------------------------------------------------------------------------------------
 */

struct gru_rows {
    float *pre;
    const float *before;
    const float *b_n;
    float *hn;
    float *h;
};

LANES_FN void gru_unit(const struct gru_rows *r, size_t H, size_t i, size_t n)
{
    lanes reset = lanes_sigmoid(lanes_load(r->pre + i, n));
    lanes keep = lanes_sigmoid(lanes_load(r->pre + H + i, n));
    lanes hn = lanes_load(r->hn + i, n) + lanes_load(r->b_n + i, n);
    lanes now = lanes_tanh(lanes_mad(reset, hn, lanes_load(r->pre + 2 * H + i, n)));
    lanes before = load_or_zero(r->before, i, n);
    lanes_store(r->pre + i, n, reset);
    lanes_store(r->pre + H + i, n, keep);
    lanes_store(r->pre + 2 * H + i, n, now);
    lanes_store(r->hn + i, n, hn);
    lanes_store(r->h + i, n, lanes_mad(keep, before - now, now));
}

/* NOLINTNEXTLINE(readability-non-const-parameter): both are written to, by way of r */
static void gru_forward(const struct kp_cell_step *s, const float *b_n, float *hn, float *h)
{
    size_t H = s->H;
    for (size_t b = 0; b < s->B; b++) {
        struct gru_rows r = {s->pre + b * 3 * H, s->before ? s->before + b * H : NULL, b_n,
                             hn + b * H, h + b * H};
        size_t i = 0;
        for (; H - i >= LANES; i += LANES)
            gru_unit(&r, H, i, LANES);
        if (i < H)
            gru_unit(&r, H, i, H - i);
    }
}

struct gru_rows_back {
    float *pre;
    const float *before;
    const float *hn;
    const float *dh;
    float *dh_rec;
    float *dhn;
    float *db_n;
};

LANES_FN void gru_unit_back(const struct gru_rows_back *r, size_t H, size_t i, size_t n)
{
    lanes reset = lanes_load(r->pre + i, n);
    lanes keep = lanes_load(r->pre + H + i, n);
    lanes now = lanes_load(r->pre + 2 * H + i, n);
    lanes dh = lanes_load(r->dh + i, n) + lanes_load(r->dh_rec + i, n);
    lanes before = load_or_zero(r->before, i, n);
    lanes dh_now = minus_product(dh, dh, keep);
    lanes dn = minus_product(dh_now, dh_now * now, now);
    lanes dhn = dn * reset;
    lanes_store(r->pre + i, n, dn * lanes_load(r->hn + i, n) * sigmoid_slope(reset));
    lanes_store(r->pre + H + i, n, dh * (before - now) * sigmoid_slope(keep));
    lanes_store(r->pre + 2 * H + i, n, dn);
    lanes_store(r->dh_rec + i, n, dh * keep);
    lanes_store(r->dhn + i, n, dhn);
    lanes_store(r->db_n + i, n, lanes_load(r->db_n + i, n) + dhn);
}

static void gru_backward(const struct kp_cell_step *s, const float *hn,
                         const struct kp_cell_grad *g)
{
    size_t H = s->H;
    for (size_t b = 0; b < s->B; b++) {
        struct gru_rows_back r = {s->pre + b * 3 * H,
                                  s->before ? s->before + b * H : NULL,
                                  hn + b * H,
                                  g->dh + b * H,
                                  g->dh_rec + b * H,
                                  g->other + b * H,
                                  g->db_n};
        size_t i = 0;
        for (; H - i >= LANES; i += LANES)
            gru_unit_back(&r, H, i, LANES);
        if (i < H)
            gru_unit_back(&r, H, i, H - i);
    }
}

#endif
