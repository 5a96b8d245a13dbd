/* SPDX-License-Identifier: MIT */
/* The model `factored`: engineered features, one autoregressive head for each target.
 * Layer: model.
 *
 *   x   = [features; embeddings of the tokens]                       [B][F + T D]
 *   h   = silu(x W_in' + b_in)                                       [B][H]
 *   h  += dropout(silu(norm(h) W_l' + b_l))     for each layer l     [B][H]
 *   u_p = (norm(h) A_p' + a_p) + sum_{q<p} E_p[q's value]            [B][M], M = H/2
 *   y_p = silu(u_p);  y_p += silu(y_p C_p' + c_p)                    [B][M]
 *   P(value of p | problem, values before) = softmax(y_p W_p' + b_p)
 *
 * The factorisation is the chain rule's, like a recurrent decoder's, but what is known of the
 * prefix enters by one sum of rows, so that a step costs little. */
#include "model/models.h"

#include "math/thin.h"
#include "math/vec.h"
#include "nn/layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EMBED, IN_W, IN_B, LAYERS }; /* layer l: four from LAYERS + 4 l; heads behind them */
enum {
    H_NORM_G,
    H_NORM_B,
    H_A,
    H_A_BIAS,
    H_C,
    H_C_BIAS,
    H_W,
    H_W_BIAS,
    H_COUNT
}; /* then E_p */

static size_t head_at(const struct kp_net *net, size_t which)
{
    return LAYERS + KP_RESIDUAL_COUNT * net->shape.layers + which;
}

static size_t units(const struct kp_net *net) /* M */
{
    return net->shape.hidden / 2;
}

static size_t inputs(const struct kp_net *net)
{
    return net->shape.n_features + net->shape.n_tokens * net->shape.embed;
}

static kopt_status build(struct kp_net *net, kopt_error *err)
{
    struct kp_net_shape *s = &net->shape;
    char name[KP_TENSOR_NAME];
    s->embed = s->embed ? s->embed : 8;
    s->hidden = s->hidden ? s->hidden : 256;
    s->layers = s->layers ? s->layers : 2;
    s->dropout = s->dropout < 0 ? 0.2F : s->dropout;
    size_t H = s->hidden;
    size_t M = units(net);
    if (s->layers > 16)
        return kp_err(err, KOPT_EINPUT, "more than 16 layers");
    kp_net_declare(net, EMBED, "in.embed", s->n_vocab, s->embed, KP_INIT_NORMAL, 0.3F);
    kp_net_declare(net, IN_W, "in.w", H, inputs(net), KP_INIT_NORMAL,
                   kp_net_spread(inputs(net)));
    kp_net_declare(net, IN_B, "in.b", 1, H, KP_INIT_ZERO, 0);
    kp_residual_declare(net, LAYERS);
    size_t P = s->n_targets;
    size_t V = kp_net_values_before(net, P);
    kp_net_declare(net, head_at(net, H_NORM_G), "heads.norm.g", 1, H, KP_INIT_ONE, 0);
    kp_net_declare(net, head_at(net, H_NORM_B), "heads.norm.b", 1, H, KP_INIT_ZERO, 0);
    kp_net_declare(net, head_at(net, H_A), "heads.a", P * M, H, KP_INIT_NORMAL,
                   kp_net_spread(H));
    kp_net_declare(net, head_at(net, H_A_BIAS), "heads.a_bias", 1, P * M, KP_INIT_ZERO, 0);
    kp_net_declare(net, head_at(net, H_C), "heads.c", P * M, M, KP_INIT_NORMAL,
                   kp_net_spread(M));
    kp_net_declare(net, head_at(net, H_C_BIAS), "heads.c_bias", 1, P * M, KP_INIT_ZERO, 0);
    kp_net_declare(net, head_at(net, H_W), "heads.w", V, M, KP_INIT_NORMAL,
                   0.5F * kp_net_spread(M));
    kp_net_declare(net, head_at(net, H_W_BIAS), "heads.b", 1, V, KP_INIT_ZERO, 0);
    for (size_t p = 1; p < P; p++) {
        (void)snprintf(name, sizeof(name), "heads.prefix%zu", p);
        kp_net_declare(net, head_at(net, H_COUNT + p), name, kp_net_values_before(net, p), M,
                       KP_INIT_NORMAL, 0.3F);
    }
    return KOPT_OK;
}

/* Packed weights (math/thin.h), for prediction. NULL: the net is not prepared. */
struct prepared {
    kp_half *in;     /* [H][F + T D] */
    kp_half *layers; /* [L] of [H][H] */
    kp_half *a;      /* [P M][H] */
    kp_half *c;      /* [P] of [M][M] */
};

static size_t lay_out_prepared(const struct kp_net *net, float *base, struct prepared *r)
{
    const struct kp_net_shape *s = &net->shape;
    size_t M = units(net);
    struct kp_carve c = {.base = base};
    r->in = kp_carve_packed(&c, 1, s->hidden, inputs(net));
    r->layers = kp_carve_packed(&c, s->layers, s->hidden, s->hidden);
    r->a = kp_carve_packed(&c, 1, s->n_targets * M, s->hidden);
    r->c = kp_carve_packed(&c, s->n_targets, M, M);
    return c.used;
}

static size_t prepare(const struct kp_net *net, float *out)
{
    struct prepared r;
    size_t P = net->shape.n_targets;
    size_t M = units(net);
    size_t H = net->shape.hidden;
    size_t n = lay_out_prepared(net, out, &r);
    if (!out)
        return n;
    kp_pack(H, inputs(net), kp_net_w(net, IN_W), inputs(net), 1, r.in);
    kp_residual_pack(net, LAYERS, r.layers);
    kp_pack(P * M, H, kp_net_w(net, head_at(net, H_A)), H, 1, r.a);
    for (size_t p = 0; p < P; p++)
        kp_pack(M, M, kp_net_w(net, head_at(net, H_C)) + p * M * M, M, 1,
                r.c + p * kp_pack_size(M, M));
    return n;
}

static struct prepared prepared_of(const struct kp_net *net)
{
    struct prepared r = {0};
    if (net->prepared)
        (void)lay_out_prepared(net, net->prepared, &r);
    return r;
}

/* --- the trunk ------------------------------------------------------------------------------
 */

struct trunk {
    float *x;    /* [B][F + T D] */
    float *in;   /* [B][H]: before silu */
    float *h;    /* [L+1][B][H]: into layer l; the last is the trunk's output */
    float *norm; /* [L+1][B][H] */
    float *keep; /* [L+1][B][2] */
    float *pre;  /* [L][B][H]: before silu */
    float *add;  /* [B][H]: scratch */
};

static void lay_out_trunk(const struct kp_net *net, size_t B, struct kp_carve *c,
                          struct trunk *t)
{
    size_t L = net->shape.layers;
    size_t H = net->shape.hidden;
    t->x = kp_carve_take(c, B * inputs(net));
    t->in = kp_carve_take(c, B * H);
    t->h = kp_carve_take(c, (L + 1) * B * H);
    t->norm = kp_carve_take(c, (L + 1) * B * H);
    t->keep = kp_carve_take(c, (L + 1) * B * 2);
    t->pre = kp_carve_take(c, L * B * H + 1);
    t->add = kp_carve_take(c, B * H);
}

static struct kp_linear in_layer(const struct kp_net *net, size_t B)
{
    return (struct kp_linear){B, inputs(net), net->shape.hidden, kp_net_w(net, IN_W),
                              kp_net_w(net, IN_B)};
}

static void gather(const struct kp_net *net, const struct kp_batch *b, float *x)
{
    size_t F = net->shape.n_features;
    size_t D = net->shape.embed;
    size_t T = net->shape.n_tokens;
    for (size_t i = 0; i < b->B; i++) {
        float *row = x + i * inputs(net);
        memcpy(row, b->features + i * F, F * sizeof(float));
        for (size_t t = 0; t < T; t++)
            kp_embed_forward(kp_net_w(net, EMBED), D, b->tokens + t * b->B + i, 1,
                             row + F + t * D);
    }
}

static struct kp_residual residual_of(const struct trunk *t, size_t B)
{
    return (struct kp_residual){.first = LAYERS,
                                .B = B,
                                .h = t->h,
                                .norm = t->norm,
                                .keep = t->keep,
                                .pre = t->pre,
                                .add = t->add};
}

static void trunk_forward(const struct kp_net *net, const struct kp_batch *b, uint64_t key,
                          const struct prepared *ready, const struct trunk *t)
{
    size_t n = b->B * net->shape.hidden;
    size_t L = net->shape.layers;
    const struct kp_linear lin = in_layer(net, b->B);
    gather(net, b, t->x);
    kp_linear_forward_packed(net->blas, &lin, ready->in, t->x, t->in);
    kp_silu_forward(t->in, n, t->h);
    kp_net_drop(net, key, 0, t->h, n);
    struct kp_residual r = residual_of(t, b->B);
    r.packed = ready->layers;
    kp_residual_forward(net, &r, key);
    kp_layernorm_forward(
        b->B, net->shape.hidden, t->h + L * n, kp_net_w(net, head_at(net, H_NORM_G)),
        kp_net_w(net, head_at(net, H_NORM_B)), t->norm + L * n, t->keep + L * b->B * 2);
}

/* dh [B][H]: of the trunk's normed output; used up. */
static void trunk_backward(const struct kp_net *net, const struct kp_batch *b, uint64_t key,
                           const struct trunk *t, float *dh, float *grad)
{
    size_t n = b->B * net->shape.hidden;
    size_t L = net->shape.layers;
    size_t F = net->shape.n_features;
    size_t D = net->shape.embed;
    const struct kp_linear lin = in_layer(net, b->B);
    kp_layernorm_backward(b->B, net->shape.hidden, t->h + L * n,
                          kp_net_w(net, head_at(net, H_NORM_G)), t->keep + L * b->B * 2, dh,
                          t->add, kp_net_g(net, grad, head_at(net, H_NORM_G)),
                          kp_net_g(net, grad, head_at(net, H_NORM_B)));
    memcpy(dh, t->add, n * sizeof(float));
    const struct kp_residual r = residual_of(t, b->B);
    kp_residual_backward(net, &r, key, dh, grad);
    kp_net_drop(net, key, 0, dh, n);
    kp_silu_backward(t->in, n, dh, dh);
    float *dw = kp_net_g(net, grad, IN_W);
    float *db = kp_net_g(net, grad, IN_B);
    kp_linear_backward(net->blas, &lin, t->x, dh, NULL, dw, db);
    /* Of the inputs only the embeddings have parameters: dx = dh W_in, those columns. */
    size_t C = net->shape.n_tokens * D;
    net->blas->gemm(false, false, b->B, C, net->shape.hidden, 1, dh, net->shape.hidden,
                    kp_net_w(net, IN_W) + F, inputs(net), 0, t->x, C);
    for (size_t i = 0; i < b->B; i++)
        for (size_t k = 0; k < net->shape.n_tokens; k++)
            kp_embed_backward(D, b->tokens + k * b->B + i, 1, t->x + i * C + k * D,
                              kp_net_g(net, grad, EMBED));
}

/* --- the heads ------------------------------------------------------------------------------
 */

struct head_work {
    float *u;   /* [P][B][M]: before the first silu */
    float *y;   /* [P][B][M]: after it */
    float *v;   /* [P][B][M]: before the second */
    float *out; /* [P][B][M] */
    float *d;   /* [P][B][M]: gradient of out, then of u */
    float *tmp; /* [B][M] */
    float *z;   /* [B][most V] */
    float *dh;  /* [B][H] */
};

static void lay_out_heads(const struct kp_net *net, size_t B, bool train, struct kp_carve *c,
                          struct head_work *w)
{
    size_t n = net->shape.n_targets * B * units(net);
    w->u = kp_carve_take(c, n);
    w->y = kp_carve_take(c, n);
    w->v = kp_carve_take(c, n);
    w->out = kp_carve_take(c, n);
    w->d = train ? kp_carve_take(c, n) : NULL;
    w->tmp = kp_carve_take(c, B * units(net));
    w->z = kp_carve_take(c, B * kp_net_most_values(net));
    w->dh = train ? kp_carve_take(c, B * net->shape.hidden) : NULL;
}

static struct kp_linear head_a(const struct kp_net *net, size_t p, size_t B)
{
    size_t M = units(net);
    size_t H = net->shape.hidden;
    return (struct kp_linear){B, H, M, kp_net_w(net, head_at(net, H_A)) + p * M * H,
                              kp_net_w(net, head_at(net, H_A_BIAS)) + p * M};
}

static struct kp_linear head_c(const struct kp_net *net, size_t p, size_t B)
{
    size_t M = units(net);
    return (struct kp_linear){B, M, M, kp_net_w(net, head_at(net, H_C)) + p * M * M,
                              kp_net_w(net, head_at(net, H_C_BIAS)) + p * M};
}

static struct kp_heads heads_of(const struct kp_net *net)
{
    return (struct kp_heads){net, kp_net_w(net, head_at(net, H_W)),
                             kp_net_w(net, head_at(net, H_W_BIAS)), units(net)};
}

/* u and its two layers; n rows. */
/* NOLINTNEXTLINE(readability-function-size): what heads_forward() and step() have in common */
static void head_body(const struct kp_net *net, size_t p, size_t n,
                      const struct prepared *ready, const float *u, float *y, float *v,
                      float *out)
{
    size_t M = units(net);
    size_t count = n * M;
    const struct kp_linear c = head_c(net, p, n);
    kp_silu_forward(u, count, y);
    kp_linear_forward_packed(net->blas, &c, ready->c ? ready->c + p * kp_pack_size(M, M) : NULL,
                             y, v);
    kp_silu_forward(v, count, out);
    for (size_t i = 0; i < count; i++)
        out[i] += y[i];
}

static void heads_forward(const struct kp_net *net, const struct kp_batch *b, const float *h,
                          const struct head_work *w)
{
    size_t M = units(net);
    size_t n = b->B * M;
    for (size_t p = 0; p < net->shape.n_targets; p++) {
        const struct kp_linear a = head_a(net, p, b->B);
        float *u = w->u + p * n;
        kp_linear_forward(net->blas, &a, h, u);
        size_t at = 0;
        for (size_t q = 0; q < p; q++) {
            const float *rows = kp_net_w(net, head_at(net, H_COUNT + p)) + at * M;
            const int32_t *value = b->targets + q * b->B;
            for (size_t i = 0; i < b->B; i++)
                if (value[i] >= 0)
                    kp_vec_axpy(M, 1, rows + (size_t)value[i] * M, u + i * M);
            at += net->shape.n_values[q];
        }
        head_body(net, p, b->B, &(struct prepared){0}, u, w->y + p * n, w->v + p * n,
                  w->out + p * n);
    }
}

/* From w->d, the gradients of out; dh [B][H] is written. */
static void heads_backward(const struct kp_net *net, const struct kp_batch *b, const float *h,
                           const struct head_work *w, float *grad)
{
    size_t M = units(net);
    size_t H = net->shape.hidden;
    size_t n = b->B * M;
    memset(w->dh, 0, b->B * H * sizeof(float));
    for (size_t p = 0; p < net->shape.n_targets; p++) {
        const struct kp_linear c = head_c(net, p, b->B);
        const struct kp_linear a = head_a(net, p, b->B);
        float *d = w->d + p * n;
        float *dv = w->v + p * n;
        kp_silu_backward(dv, n, d, dv);
        kp_linear_backward(net->blas, &c, w->y + p * n, dv, w->tmp,
                           kp_net_g(net, grad, head_at(net, H_C)) + p * M * M,
                           kp_net_g(net, grad, head_at(net, H_C_BIAS)) + p * M);
        for (size_t i = 0; i < n; i++)
            d[i] += w->tmp[i];
        kp_silu_backward(w->u + p * n, n, d, d);
        kp_linear_backward(net->blas, &a, h, d, NULL,
                           kp_net_g(net, grad, head_at(net, H_A)) + p * M * H,
                           kp_net_g(net, grad, head_at(net, H_A_BIAS)) + p * M);
        net->blas->gemm(false, false, b->B, H, M, 1, d, M, a.w, H, 1, w->dh, H);
        size_t at = 0;
        for (size_t q = 0; q < p; q++) {
            kp_embed_backward(M, b->targets + q * b->B, b->B, d,
                              kp_net_g(net, grad, head_at(net, H_COUNT + p)) + at * M);
            at += net->shape.n_values[q];
        }
    }
}

/* --- the table ------------------------------------------------------------------------------
 */

static size_t work(const struct kp_net *net, size_t B, bool train)
{
    struct kp_carve c = {0};
    struct trunk t;
    struct head_work w;
    lay_out_trunk(net, B, &c, &t);
    lay_out_heads(net, B, train, &c, &w);
    return c.used;
}

static void run(const struct kp_net *net, const struct kp_batch *b, float smoothing,
                uint64_t key, float *grad, float *memory, struct kp_net_score *score)
{
    struct kp_carve c = {.base = memory};
    struct trunk t;
    struct head_work w;
    const struct kp_heads heads = heads_of(net);
    size_t L = net->shape.layers;
    lay_out_trunk(net, b->B, &c, &t);
    lay_out_heads(net, b->B, grad != NULL, &c, &w);
    const float *h = t.norm + L * b->B * net->shape.hidden;
    trunk_forward(net, b, grad ? key : 0, &(struct prepared){0}, &t);
    heads_forward(net, b, h, &w);
    if (!grad) {
        kp_heads_run(&heads, b, smoothing, w.out, NULL, NULL, NULL, w.z, score);
        return;
    }
    kp_heads_run(&heads, b, smoothing, w.out, w.d, kp_net_g(net, grad, head_at(net, H_W)),
                 kp_net_g(net, grad, head_at(net, H_W_BIAS)), w.z, score);
    heads_backward(net, b, h, &w, grad);
    trunk_backward(net, b, key, &t, w.dh, grad);
}

/* Prediction. A state: the products of all heads with the trunk's output, a [P][M], and the
 * prefixes' values, one table [width][P] for odd targets and one for even ones. */

static size_t state(const struct kp_net *net, size_t width)
{
    size_t P = net->shape.n_targets;
    return P * units(net) + 2 * width * P;
}

static size_t scratch(const struct kp_net *net, size_t width)
{
    struct kp_carve c = {0};
    struct trunk t;
    lay_out_trunk(net, 1, &c, &t);
    size_t step_needs = 4 * (width * units(net) + 16);
    return c.used > step_needs ? c.used : step_needs;
}

static void begin(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *memory, float *temporary)
{
    struct kp_carve c = {.base = temporary};
    struct trunk t;
    const struct kp_batch b = {.B = 1, .tokens = tokens, .features = features};
    const struct prepared ready = prepared_of(net);
    struct kp_linear a = head_a(net, 0, 1); /* .. and the other targets' */
    a.O = net->shape.n_targets * units(net);
    (void)width;
    lay_out_trunk(net, 1, &c, &t);
    trunk_forward(net, &b, 0, &ready, &t);
    kp_linear_forward_packed(net->blas, &a, ready.a,
                             t.norm + net->shape.layers * net->shape.hidden, memory);
}

/* The prefixes of target p's call, from those of the call before. */
static const float *prefixes(const struct kp_net *net, size_t p, size_t n,
                             const uint32_t *parent, const uint32_t *values, float *tables,
                             size_t width)
{
    size_t P = net->shape.n_targets;
    const float *old = tables + (p - 1) % 2 * width * P;
    float *now = tables + p % 2 * width * P;
    for (size_t i = 0; i < n; i++) {
        memcpy(now + i * P, old + parent[i] * P, (p - 1) * sizeof(float));
        now[i * P + p - 1] = (float)values[i];
    }
    return now;
}

static void step(const struct kp_net *net, const struct kp_net_step *s, float *memory,
                 float *temporary, float *logp)
{
    size_t P = net->shape.n_targets;
    size_t M = units(net);
    struct kp_carve c = {.base = temporary};
    const struct kp_heads heads = heads_of(net);
    float *u = kp_carve_take(&c, s->n * M);
    float *y = kp_carve_take(&c, s->n * M);
    float *v = kp_carve_take(&c, s->n * M);
    float *out = kp_carve_take(&c, s->n * M);
    const float *chosen = NULL;
    if (s->p)
        chosen = prefixes(net, s->p, s->n, s->parent, s->values, memory + P * M, s->width);
    for (size_t i = 0; i < s->n; i++) {
        memcpy(u + i * M, memory + s->p * M, M * sizeof(float));
        const float *rows = s->p ? kp_net_w(net, head_at(net, H_COUNT + s->p)) : NULL;
        for (size_t q = 0; q < s->p; q++) {
            kp_vec_axpy(M, 1, rows + (size_t)chosen[i * P + q] * M, u + i * M);
            rows += net->shape.n_values[q] * M;
        }
    }
    const struct prepared ready = prepared_of(net);
    head_body(net, s->p, s->n, &ready, u, y, v, out);
    kp_heads_logp(&heads, s->p, s->n, out, logp);
}

const struct kp_net_ops kp_net_factored = {
    .name = "factored",
    .about = "numbers taken as numbers, one autoregressive head for each parameter",
    .build = build,
    .work = work,
    .run = run,
    .prepare = prepare,
    .state = state,
    .scratch = scratch,
    .begin = begin,
    .step = step};
