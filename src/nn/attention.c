/* SPDX-License-Identifier: MIT */
/* Layer: nn. One row b of the batch at a time, whose queries, keys and values stay in the cache
 * meanwhile; within it tiles of queries and keys (nn/passes.h). */
#include "nn/attention.h"

#include "nn/passes.h"

#include <math.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Queries from i0 and keys from j0 on. */
static struct kp_tile tile_at(const struct kp_attention *a, const float *q, const float *k,
                              size_t i0, size_t j0)
{
    size_t row = a->B * a->H;
    return (struct kp_tile){.nq = least(KP_TILE_Q, a->Q - i0),
                            .ns = least(KP_TILE_S, a->S - j0),
                            .H = a->H,
                            .q = q + i0 * row,
                            .ldq = row,
                            .k = k + j0 * row,
                            .ldk = row};
}

/* The factor of a dot product of H terms. */
static float dot_scale(size_t H)
{
    return H ? 1 / sqrtf((float)H) : 1;
}

/* q, k, weights: of row b; weights' rows are B * S apart. */
static void score_row(const struct kp_attention *a, const float *q, const float *k,
                      float *weights)
{
    const struct kp_passes *passes = kp_passes_best();
    size_t row = a->B * a->S;
    for (size_t i0 = 0; i0 < a->Q; i0 += KP_TILE_Q) {
        for (size_t j0 = 0; j0 < a->S; j0 += KP_TILE_S) {
            struct kp_tile t = tile_at(a, q, k, i0, j0);
            float *out = weights + i0 * row + j0;
            if (a->score == KP_SCORE_DOT)
                passes->dots(&t, out, row);
            else
                passes->additive(&t, a->v, out, row);
        }
    }
    float scale = a->score == KP_SCORE_DOT ? dot_scale(a->H) : 1;
    for (size_t i = 0; i < a->Q; i++)
        passes->softmax(a->S, scale, weights + i * row);
}

/* NOLINTBEGIN(readability-non-const-parameter): context is written to, by way of m */
void kp_attention_forward(const struct kp_attention *a, const float *q, const float *k,
                          const float *values, float *weights, float *context)
/* NOLINTEND(readability-non-const-parameter) */
{
    const struct kp_passes *passes = kp_passes_best();
    for (size_t b = 0; b < a->B; b++) {
        float *w = weights + b * a->S;
        score_row(a, q + b * a->H, k + b * a->H, w);
        struct kp_mix m = {.n_out = a->Q,
                           .n_in = a->S,
                           .C = a->C,
                           .w = w,
                           .w_out = a->B * a->S,
                           .w_in = 1,
                           .x = values + b * a->C,
                           .ldx = a->B * a->C,
                           .y = context + b * a->C,
                           .ldy = a->B * a->C};
        passes->mix(&m);
    }
}

/* What the gradient of one row of the batch is made from: pointers at the row's first element,
 * with the distances of the whole tensors. */
struct row_back {
    const struct kp_attention *a;
    const struct kp_passes *passes;
    const float *q;
    const float *k;
    const float *values;
    const float *weights;
    const float *dcontext;
    float *dq;
    float *dk;
    float *dv;
    float ds[KP_TILE_Q][KP_TILE_S]; /* gradient of a tile's weights, then of its scores */
    float mean[KP_TILE_Q];          /* sum of weights times their gradients, by query */
};

/* ds = the gradient of the weights of a tile: dcontext . values. */
static void weight_grad(struct row_back *r, size_t i0, size_t j0)
{
    size_t row = r->a->B * r->a->C;
    struct kp_tile t = {.nq = least(KP_TILE_Q, r->a->Q - i0),
                        .ns = least(KP_TILE_S, r->a->S - j0),
                        .H = r->a->C,
                        .q = r->dcontext + i0 * row,
                        .ldq = row,
                        .k = r->values + j0 * row,
                        .ldk = row};
    r->passes->dots(&t, r->ds[0], KP_TILE_S);
}

static const float *tile_weights(const struct row_back *r, size_t i0, size_t i, size_t j0)
{
    return r->weights + (i0 + i) * r->a->B * r->a->S + j0;
}

static void add_means(struct row_back *r, const struct kp_tile *t, size_t i0, size_t j0)
{
    for (size_t i = 0; i < t->nq; i++) {
        const float *w = tile_weights(r, i0, i, j0);
        for (size_t j = 0; j < t->ns; j++)
            r->mean[i] += w[j] * r->ds[i][j];
    }
}

/* Softmax: dscore = w (dw - sum of w dw). */
static void score_grad(struct row_back *r, const struct kp_tile *t, size_t i0, size_t j0)
{
    float scale = r->a->score == KP_SCORE_DOT ? dot_scale(r->a->H) : 1;
    for (size_t i = 0; i < t->nq; i++) {
        const float *w = tile_weights(r, i0, i, j0);
        for (size_t j = 0; j < t->ns; j++)
            r->ds[i][j] = scale * w[j] * (r->ds[i][j] - r->mean[i]);
    }
}

/* From ds to dq and dk; whichever of them an earlier tile has written is added to. */
static void input_grad(struct row_back *r, const struct kp_tile *t, size_t i0, size_t j0)
{
    size_t row = r->a->B * r->a->H;
    float *dq = r->dq + i0 * row;
    float *dk = r->dk + j0 * row;
    if (r->a->score == KP_SCORE_ADDITIVE) {
        struct kp_tile_grad g = {dq, j0 > 0, dk, i0 > 0, r->dv};
        r->passes->additive_grad(t, r->a->v, r->ds[0], &g);
        return;
    }
    struct kp_mix to_q = {.n_out = t->nq,
                          .n_in = t->ns,
                          .C = t->H,
                          .w = r->ds[0],
                          .w_out = KP_TILE_S,
                          .w_in = 1,
                          .x = t->k,
                          .ldx = row,
                          .y = dq,
                          .ldy = row,
                          .add = j0 > 0};
    struct kp_mix to_k = {.n_out = t->ns,
                          .n_in = t->nq,
                          .C = t->H,
                          .w = r->ds[0],
                          .w_out = 1,
                          .w_in = KP_TILE_S,
                          .x = t->q,
                          .ldx = row,
                          .y = dk,
                          .ldy = row,
                          .add = i0 > 0};
    r->passes->mix(&to_q);
    r->passes->mix(&to_k);
}

/* The mean over all keys is needed before the first of their gradients: with one tile of keys
 * ds is still there, with more it is computed again. */
static void queries_back(struct row_back *r, size_t i0)
{
    const struct kp_attention *a = r->a;
    for (size_t i = 0; i < KP_TILE_Q; i++)
        r->mean[i] = 0;
    for (size_t j0 = 0; j0 < a->S; j0 += KP_TILE_S) {
        struct kp_tile t = tile_at(a, r->q, r->k, i0, j0);
        weight_grad(r, i0, j0);
        add_means(r, &t, i0, j0);
    }
    for (size_t j0 = 0; j0 < a->S; j0 += KP_TILE_S) {
        struct kp_tile t = tile_at(a, r->q, r->k, i0, j0);
        if (a->S > KP_TILE_S)
            weight_grad(r, i0, j0);
        score_grad(r, &t, i0, j0);
        input_grad(r, &t, i0, j0);
    }
}

void kp_attention_backward(const struct kp_attention *a, const float *q, const float *k,
                           const float *values, const float *weights,
                           const struct kp_attention_grad *g)
{
    const struct kp_passes *passes = kp_passes_best();
    if (a->S == 0)
        memset(g->dq, 0, a->Q * a->B * a->H * sizeof(*g->dq));
    if (a->Q == 0)
        memset(g->dk, 0, a->S * a->B * a->H * sizeof(*g->dk));
    for (size_t b = 0; b < a->B; b++) {
        struct row_back r = {.a = a,
                             .passes = passes,
                             .q = q + b * a->H,
                             .k = k + b * a->H,
                             .values = values + b * a->C,
                             .weights = weights + b * a->S,
                             .dcontext = g->dcontext + b * a->C,
                             .dq = g->dq + b * a->H,
                             .dk = g->dk + b * a->H,
                             .dv = g->dv};
        struct kp_mix m = {.n_out = a->S,
                           .n_in = a->Q,
                           .C = a->C,
                           .w = r.weights,
                           .w_out = 1,
                           .w_in = a->B * a->S,
                           .x = r.dcontext,
                           .ldx = a->B * a->C,
                           .y = g->dvalues + b * a->C,
                           .ldy = a->B * a->C};
        passes->mix(&m);
        for (size_t i0 = 0; i0 < a->Q; i0 += KP_TILE_Q)
            queries_back(&r, i0);
    }
}
