/* SPDX-License-Identifier: MIT */
/* The graphs of `factored` and `ranker`, and of a ranking's correction. Layer: model. */
#include "model/models.h"
#include "model/onnx_graph.h"

#include <stdio.h>

/* --- layers ---------------------------------------------------------------------------------
 */

static struct onnx_value silu(struct onnx_graph *g, const struct onnx_value *x)
{
    const struct onnx_value s = kp_onnx_1(g, "Sigmoid", x);
    return kp_onnx_2(g, "Mul", x, &s);
}

static struct onnx_value norm(struct onnx_graph *g, const struct kp_net *net,
                              const struct onnx_value *x, const char *gain, const char *bias)
{
    const struct kp_tensor *tg = kp_onnx_tensor(net, gain);
    const struct kp_tensor *tb = kp_onnx_tensor(net, bias);
    const struct onnx_value w = kp_onnx_vector(g, gain, tg->cols, net->values + tg->offset);
    const struct onnx_value b = kp_onnx_vector(g, bias, tb->cols, net->values + tb->offset);
    const struct onnx_node node = {.op = "LayerNormalization",
                                   .in = {x, &w, &b},
                                   .n_in = 3,
                                   .attribute = {{.name = "epsilon", .f = 1e-5F}}};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

/* residual.c has the equation. */
static struct onnx_value residual(struct onnx_graph *g, const struct kp_net *net,
                                  const struct onnx_value *x)
{
    struct onnx_value h = *x;
    for (size_t l = 0; l < net->shape.layers; l++) {
        enum { N = 4 };
        static const char *const names[N] = {"norm.g", "norm.b", "w", "b"};
        char full[N][KP_TENSOR_NAME];
        for (size_t i = 0; i < N; i++)
            (void)snprintf(full[i], sizeof(full[i]), "layer%zu.%s", l, names[i]);
        struct onnx_value y = norm(g, net, &h, full[0], full[1]);
        y = kp_onnx_linear(g, net, &y, full[2], full[3]);
        y = silu(g, &y);
        h = kp_onnx_2(g, "Add", &h, &y);
    }
    return h;
}

/* --- factored -------------------------------------------------------------------------------
 */

/* x [B][I] times rows p M .. of `w`, which has M rows for each target, and the same of `b`. */
static struct onnx_value head_linear(struct onnx_graph *g, const struct kp_net *net, size_t p,
                                     const struct onnx_value *x, const char *w, const char *b)
{
    char name[KP_TENSOR_NAME];
    const struct kp_tensor *tw = kp_onnx_tensor(net, w);
    const struct kp_tensor *tb = kp_onnx_tensor(net, b);
    size_t M = tw->rows / net->shape.n_targets;
    (void)snprintf(name, sizeof(name), "%s%zu", w, p);
    const struct onnx_value weights =
        kp_onnx_turned(g, name, M, tw->cols, net->values + tw->offset + p * M * tw->cols);
    (void)snprintf(name, sizeof(name), "%s%zu", b, p);
    const struct onnx_value bias = kp_onnx_vector(g, name, M, net->values + tb->offset + p * M);
    const struct onnx_value y = kp_onnx_2(g, "MatMul", x, &weights);
    return kp_onnx_2(g, "Add", &y, &bias);
}

/* What the values before p add: rows of E_p, summed. [B][M] */
static struct onnx_value prefix_sum(struct onnx_graph *g, const struct kp_net *net, size_t p,
                                    const struct onnx_value *values)
{
    char name[KP_TENSOR_NAME];
    int64_t first[KP_TARGETS_MAX];
    for (size_t q = 0; q < p; q++)
        first[q] = (int64_t)kp_net_values_before(net, q);
    (void)snprintf(name, sizeof(name), "heads.prefix%zu", p);
    const struct kp_tensor *t = kp_onnx_tensor(net, name);
    const struct onnx_value rows =
        kp_onnx_matrix(g, name, t->rows, t->cols, net->values + t->offset);
    const struct onnx_value offsets = kp_onnx_ints(g, first, p);
    struct onnx_value ids = kp_onnx_slice(g, values, 1, 0, (int64_t)p);
    ids = kp_onnx_2(g, "Add", &ids, &offsets);
    const struct onnx_value chosen = kp_onnx_2(g, "Gather", &rows, &ids); /* [B][p][M] */
    return kp_onnx_sum(g, &chosen, 1, false);
}

struct onnx_value kp_onnx_head(struct onnx_graph *g, const struct kp_net *net, size_t p,
                               const struct onnx_value *x)
{
    char name[KP_TENSOR_NAME];
    const struct kp_tensor *w = kp_onnx_tensor(net, "heads.w");
    const struct kp_tensor *b = kp_onnx_tensor(net, "heads.b");
    size_t V = net->shape.n_values[p];
    size_t at = kp_net_values_before(net, p);
    (void)snprintf(name, sizeof(name), "heads.w%zu", p);
    const struct onnx_value weights =
        kp_onnx_turned(g, name, V, w->cols, net->values + w->offset + at * w->cols);
    (void)snprintf(name, sizeof(name), "heads.b%zu", p);
    const struct onnx_value bias = kp_onnx_vector(g, name, V, net->values + b->offset + at);
    struct onnx_value y = kp_onnx_2(g, "MatMul", x, &weights);
    y = kp_onnx_2(g, "Add", &y, &bias);
    return kp_onnx_1i(g, "LogSoftmax", &y, "axis", -1);
}

/* factored.c has the equations. */
void kp_onnx_factored(struct onnx_graph *g, const struct kp_net *net,
                      const struct onnx_inputs *in, struct onnx_value *logp)
{
    const struct kp_tensor *t = kp_onnx_tensor(net, "in.embed");
    const int64_t flat[] = {0, (int64_t)(net->shape.n_tokens * t->cols)};
    const struct onnx_value table =
        kp_onnx_matrix(g, "in.embed", t->rows, t->cols, net->values + t->offset);
    struct onnx_value parts[2] = {in->features, kp_onnx_2(g, "Gather", &table, &in->tokens)};
    parts[1] = kp_onnx_reshape(g, &parts[1], flat, 2);
    const struct onnx_value x = kp_onnx_concat(g, parts, 2, 1);
    struct onnx_value h = kp_onnx_linear(g, net, &x, "in.w", "in.b");
    h = silu(g, &h);
    h = residual(g, net, &h);
    h = norm(g, net, &h, "heads.norm.g", "heads.norm.b");
    for (size_t p = 0; p < net->shape.n_targets; p++) {
        struct onnx_value u = head_linear(g, net, p, &h, "heads.a", "heads.a_bias");
        if (p > 0) {
            const struct onnx_value before = prefix_sum(g, net, p, &in->values);
            u = kp_onnx_2(g, "Add", &u, &before);
        }
        const struct onnx_value y = silu(g, &u);
        struct onnx_value z = head_linear(g, net, p, &y, "heads.c", "heads.c_bias");
        z = silu(g, &z);
        z = kp_onnx_2(g, "Add", &z, &y);
        logp[p] = kp_onnx_head(g, net, p, &z);
    }
}

/* --- ranker ---------------------------------------------------------------------------------
 */

/* ranker.c has the equations. */
struct onnx_value kp_onnx_ranker(struct onnx_graph *g, const struct kp_net *net,
                                 const struct onnx_value *x, const struct onnx_value *numbers)
{
    const struct kp_tensor *c = kp_onnx_tensor(net, "out.c");
    struct onnx_value h = kp_onnx_linear(g, net, x, "in.w", "in.b");
    h = silu(g, &h);
    h = residual(g, net, &h);
    struct onnx_value o = kp_onnx_linear(g, net, &h, "out.w", NULL); /* [B][1] */
    o = kp_onnx_squeeze(g, "Squeeze", &o, 1);
    const struct onnx_value all = kp_onnx_vector(g, "out.c", c->cols, net->values + c->offset);
    const struct onnx_value own = kp_onnx_2(g, "Gather", &all, numbers);
    return kp_onnx_2(g, "Add", &o, &own);
}

/* |z - z_s|^2 = |z|^2 + |z_s|^2 - 2 z . z_s, which needs no room for all differences. What is
 * left of near ones is small beside the terms, hence double. [B][sites] */
static struct onnx_value squares(struct onnx_graph *g, const struct kp_ranking *r,
                                 const struct onnx_value *x)
{
    const float *at = kp_ranking_sites(r, KP_SITES_AT);
    struct onnx_value z = kp_onnx_slice(g, x, 1, 0, (int64_t)r->n_coordinates);
    struct onnx_value sites = kp_onnx_turned(g, "sites.at", r->n_sites, r->n_coordinates, at);
    z = kp_onnx_cast(g, &z, ONNX_DOUBLE);
    sites = kp_onnx_cast(g, &sites, ONNX_DOUBLE);
    struct onnx_value zz = kp_onnx_2(g, "Mul", &z, &z);
    zz = kp_onnx_sum(g, &zz, 1, true);
    struct onnx_value ss = kp_onnx_2(g, "Mul", &sites, &sites);
    ss = kp_onnx_sum(g, &ss, 0, true);
    struct onnx_value zs = kp_onnx_2(g, "MatMul", &z, &sites);
    zs = kp_onnx_2(g, "Add", &zs, &zs);
    const struct onnx_value sum = kp_onnx_2(g, "Add", &zz, &ss);
    return kp_onnx_2(g, "Sub", &sum, &zs);
}

/* ranking.h has the equations. */
struct onnx_value kp_onnx_correction(struct onnx_graph *g, const struct kp_ranking *r,
                                     const struct onnx_value *x,
                                     const struct onnx_value *numbers)
{
    const float *field = kp_ranking_sites(r, KP_SITES_FIELD);
    const struct onnx_value least = kp_onnx_scalar64(g, KP_SITE_LEAST);
    const struct onnx_value divisor = kp_onnx_scalar64(g, -2 * r->length * r->length);
    struct onnx_value w = squares(g, r, x);
    w = kp_onnx_2(g, "Div", &w, &divisor);
    w = kp_onnx_1(g, "Exp", &w);
    struct onnx_value counts = kp_onnx_2(g, "Greater", &w, &least);
    counts = kp_onnx_cast(g, &counts, ONNX_FLOAT);
    w = kp_onnx_cast(g, &w, ONNX_FLOAT);
    w = kp_onnx_2(g, "Mul", &w, &counts);
    const struct onnx_value rows =
        kp_onnx_turned(g, "sites.field", r->n_sites, r->n_configs, field);
    struct onnx_value own = kp_onnx_2(g, "Gather", &rows, numbers); /* [B][sites] */
    own = kp_onnx_2(g, "Mul", &own, &w);
    return kp_onnx_sum(g, &own, 1, false);
}
