/* SPDX-License-Identifier: MIT */
/* The model `ranker`: how long each known configuration takes, beside the others of its
 * problem. Layer: model.
 *
 *   x  = features of the problem and the configuration               [B][F]
 *   h  = dropout(silu(x W_in' + b_in))                              [B][H]
 *   h += dropout(silu(norm(h) W_l' + b_l))     for each layer l      [B][H]
 *   o  = h . w + c[configuration]                                    [B]
 *
 * o stands for y = ln(time / best time of the problem), but for a number that is the same for a
 * whole problem. The loss of a problem's rows is
 *
 *   sum_i u_i (e_i - mean e)^2 / (S sum_i u_i) + KL(q || p),   e = o - y,
 *   u_i = 0.1 + 0.9 exp(-y_i / 0.3),  q = softmax(-y / T),  p = softmax(-o / T):
 *
 * the first term wants the times right, most of all near the best; the second, a listwise loss
 * (Cao et al., "Learning to Rank", ICML 2007), the order of the best. */
#include "model/models.h"
#include "model/ranking.h"

#include "math/thin.h"
#include "math/vec.h"
#include "nn/layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN_W, IN_B, OUT_W, OUT_C, LAYERS }; /* layer l: four from LAYERS + 4 l */

static const float temperature = 0.1F;    /* T */
static const float spread_square = 0.05F; /* S */

static kopt_status build(struct kp_net *net, kopt_error *err)
{
    struct kp_net_shape *s = &net->shape;
    s->hidden = s->hidden ? s->hidden : 96;
    s->layers = s->layers ? s->layers : 1;
    s->dropout = s->dropout < 0 ? 0.1F : s->dropout;
    size_t H = s->hidden;
    if (s->n_features == 0 || s->n_tokens != 1)
        return kp_err(err, KOPT_EINPUT, "a network that ranks needs features and one token");
    kp_net_declare(net, IN_W, "in.w", H, s->n_features, KP_INIT_NORMAL,
                   kp_net_spread(s->n_features));
    kp_net_declare(net, IN_B, "in.b", 1, H, KP_INIT_ZERO, 0);
    kp_net_declare(net, OUT_W, "out.w", 1, H, KP_INIT_NORMAL, 0.3F * kp_net_spread(H));
    kp_net_declare(net, OUT_C, "out.c", 1, s->n_vocab, KP_INIT_ZERO, 0);
    kp_residual_declare(net, LAYERS);
    return KOPT_OK;
}

/* Packed weights (math/thin.h), for ranking. NULL: the net is not prepared. */
struct prepared {
    kp_half *in;     /* [H][F] */
    kp_half *layers; /* [L] of [H][H] */
};

static size_t lay_out_prepared(const struct kp_net *net, float *base, struct prepared *r)
{
    const struct kp_net_shape *s = &net->shape;
    struct kp_carve c = {.base = base};
    r->in = kp_carve_packed(&c, 1, s->hidden, s->n_features);
    r->layers = kp_carve_packed(&c, s->layers, s->hidden, s->hidden);
    return c.used;
}

static size_t prepare(const struct kp_net *net, float *out)
{
    struct prepared r;
    size_t F = net->shape.n_features;
    size_t n = lay_out_prepared(net, out, &r);
    if (!out)
        return n;
    kp_pack(net->shape.hidden, F, kp_net_w(net, IN_W), F, 1, r.in);
    kp_residual_pack(net, LAYERS, r.layers);
    return n;
}

struct rows {
    float *in;   /* [B][H]: before silu */
    float *h;    /* [L+1][B][H] */
    float *norm; /* [L][B][H] */
    float *keep; /* [L][B][2] */
    float *pre;  /* [L][B][H]: before silu */
    float *add;  /* [B][H]: scratch */
    float *o;    /* [B] */
    float *d;    /* [B]: gradient of o, and scratch of the loss */
    float *dh;   /* [B][H] */
};

static void lay_out(const struct kp_net *net, size_t B, bool train, struct kp_carve *c,
                    struct rows *r)
{
    size_t L = net->shape.layers;
    size_t n = B * net->shape.hidden;
    r->in = kp_carve_take(c, n);
    r->h = kp_carve_take(c, (L + 1) * n);
    r->norm = kp_carve_take(c, L * n + 1);
    r->keep = kp_carve_take(c, L * B * 2 + 1);
    r->pre = kp_carve_take(c, L * n + 1);
    r->add = kp_carve_take(c, n);
    r->o = kp_carve_take(c, B);
    r->d = kp_carve_take(c, B);
    r->dh = train ? kp_carve_take(c, n) : NULL;
}

static size_t work(const struct kp_net *net, size_t B, bool train)
{
    struct kp_carve c = {0};
    struct rows r;
    lay_out(net, B, train, &c, &r);
    return c.used;
}

static struct kp_linear in_layer(const struct kp_net *net, size_t B)
{
    return (struct kp_linear){B, net->shape.n_features, net->shape.hidden, kp_net_w(net, IN_W),
                              kp_net_w(net, IN_B)};
}

static struct kp_residual residual_of(const struct rows *r, size_t B)
{
    return (struct kp_residual){.first = LAYERS,
                                .B = B,
                                .h = r->h,
                                .norm = r->norm,
                                .keep = r->keep,
                                .pre = r->pre,
                                .add = r->add};
}

/* NOLINTNEXTLINE(readability-function-size): what run() and rank() have in common */
static void forward(const struct kp_net *net, size_t B, const int32_t *numbers, const float *x,
                    uint64_t key, const struct prepared *ready, const struct rows *r)
{
    size_t H = net->shape.hidden;
    size_t L = net->shape.layers;
    size_t n = B * H;
    const struct kp_linear in = in_layer(net, B);
    struct kp_residual residual = residual_of(r, B);
    const float *w = kp_net_w(net, OUT_W);
    const float *c = kp_net_w(net, OUT_C);
    residual.packed = ready->layers;
    kp_linear_forward_packed(net->blas, &in, ready->in, x, r->in);
    kp_silu_forward(r->in, n, r->h);
    kp_net_drop(net, key, 0, r->h, n);
    kp_residual_forward(net, &residual, key);
    for (size_t i = 0; i < B; i++)
        r->o[i] = kp_vec_dot(H, r->h + L * n + i * H, w) + c[numbers[i]];
}

static void backward(const struct kp_net *net, const struct kp_batch *b, uint64_t key,
                     const struct rows *r, float *grad)
{
    size_t H = net->shape.hidden;
    size_t L = net->shape.layers;
    size_t n = b->B * H;
    const float *w = kp_net_w(net, OUT_W);
    float *dw = kp_net_g(net, grad, OUT_W);
    float *dc = kp_net_g(net, grad, OUT_C);
    for (size_t i = 0; i < b->B; i++) {
        dc[b->tokens[i]] += r->d[i];
        kp_vec_axpy(H, r->d[i], r->h + L * n + i * H, dw);
        for (size_t k = 0; k < H; k++)
            r->dh[i * H + k] = r->d[i] * w[k];
    }
    const struct kp_residual residual = residual_of(r, b->B);
    kp_residual_backward(net, &residual, key, r->dh, grad);
    const struct kp_linear in = in_layer(net, b->B);
    kp_net_drop(net, key, 0, r->dh, n);
    kp_silu_backward(r->in, n, r->dh, r->dh);
    kp_linear_backward(net->blas, &in, b->features, r->dh, NULL, kp_net_g(net, grad, IN_W),
                       kp_net_g(net, grad, IN_B));
}

/* ln sum_i exp(-x_i / T) */
static double log_sum(size_t n, const float *x)
{
    double least = (double)INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        least = fmin(least, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((least - (double)x[i]) / (double)temperature);
    return log(sum) - least / (double)temperature;
}

static size_t least_at(size_t n, const float *x)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        at = x[i] < x[at] ? i : at;
    return at;
}

/* The loss of one problem's n rows; d[n]: its gradient times `weight`. */
static double loss_of(size_t n, const float *o, const float *y, float weight, float *d)
{
    double sum_u = 0;
    double sum_ue = 0;
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        double u = kp_rank_worth((double)y[i]);
        sum_u += u;
        sum_ue += u * (double)(o[i] - y[i]);
        d[i] = (float)u;
    }
    double log_o = log_sum(n, o);
    double log_y = log_sum(n, y);
    for (size_t i = 0; i < n; i++) {
        double e = (double)(o[i] - y[i]) - sum_ue / sum_u;
        double u = (double)d[i] / (sum_u * (double)spread_square);
        double lp = (double)-o[i] / (double)temperature - log_o;
        double lq = (double)-y[i] / (double)temperature - log_y;
        double q = exp(lq);
        loss += u * e * e + q * (lq - lp);
        d[i] = weight * (float)(2 * u * e + (q - exp(lp)) / (double)temperature);
    }
    return (double)weight * loss;
}

/* NOLINTBEGIN(readability-function-size,readability-non-const-parameter): of the contract;
 * memory is written by way of its pieces */
static void run(const struct kp_net *net, const struct kp_batch *b, float smoothing,
                uint64_t key, float *grad, float *memory, struct kp_net_score *score)
/* NOLINTEND(readability-function-size,readability-non-const-parameter) */
{
    struct kp_carve c = {.base = memory};
    struct rows r;
    (void)smoothing;
    lay_out(net, b->B, grad != NULL, &c, &r);
    forward(net, b->B, b->tokens, b->features, grad ? key : 0, &(struct prepared){0}, &r);
    for (size_t g = 0; g < b->n_groups; g++) {
        size_t from = b->group[g];
        size_t n = b->group[g + 1] - from;
        score->loss += loss_of(n, r.o + from, b->wanted + from, b->weights ? b->weights[g] : 1,
                               r.d + from);
        score->n_right += least_at(n, r.o + from) == least_at(n, b->wanted + from);
        score->n_target++;
    }
    if (grad)
        backward(net, b, key, &r, grad);
}

/* NOLINTBEGIN(readability-non-const-parameter): memory that is written by way of its pieces */
static void rank(const struct kp_net *net, size_t n, const int32_t *numbers, const float *x,
                 float *memory, float *scores)
/* NOLINTEND(readability-non-const-parameter) */
{
    struct kp_carve c = {.base = memory};
    struct rows r;
    struct prepared ready = {0};
    if (net->prepared)
        (void)lay_out_prepared(net, net->prepared, &ready);
    lay_out(net, n, false, &c, &r);
    forward(net, n, numbers, x, 0, &ready, &r);
    memcpy(scores, r.o, n * sizeof(float));
}

const struct kp_net_ops kp_net_ranker = {
    .name = "ranker",
    .about = "the time of each configuration that was measured, beside the others",
    .build = build,
    .work = work,
    .run = run,
    .prepare = prepare,
    .rank = rank};
