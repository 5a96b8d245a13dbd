/* SPDX-License-Identifier: MIT */
/* Models as ONNX: the file around the graph, the mixture of several networks, and the graph of
 * `factored`; those of the sequence models are in onnx_seq.c. Layer: model. */
#include "model/onnx.h"

#include "base/alloc.h"
#include "model/models.h"
#include "model/onnx_graph.h"
#include "os/file.h"
#include "json/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* IR 8 came with opset 17. A message of protocol buffers is below 2 GiB. */
enum { IR_VERSION = 8, OPSET = 17, FILE_MAX_BYTES = 2047 << 20 };
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14
};
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };

/* --- factored -------------------------------------------------------------------------------
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
    const int64_t axis = 1;
    for (size_t q = 0; q < p; q++)
        first[q] = (int64_t)kp_net_values_before(net, q);
    (void)snprintf(name, sizeof(name), "heads.prefix%zu", p);
    const struct kp_tensor *t = kp_onnx_tensor(net, name);
    const struct onnx_value rows =
        kp_onnx_matrix(g, name, t->rows, t->cols, net->values + t->offset);
    const struct onnx_value offsets = kp_onnx_ints(g, first, p);
    const struct onnx_value axes = kp_onnx_ints(g, &axis, 1);
    struct onnx_value ids = kp_onnx_slice(g, values, 1, 0, (int64_t)p);
    ids = kp_onnx_2(g, "Add", &ids, &offsets);
    const struct onnx_value chosen = kp_onnx_2(g, "Gather", &rows, &ids); /* [B][p][M] */
    const struct onnx_node node = {.op = "ReduceSum",
                                   .in = {&chosen, &axes},
                                   .n_in = 2,
                                   .attribute = {{.name = "keepdims", .is_int = true, .i = 0}}};
    struct onnx_value sum;
    kp_onnx_add(g, &node, &sum, 1);
    return sum;
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

/* --- the mixture ----------------------------------------------------------------------------
 */

/* log sum_k exp(parts[k]), [B][n] each. */
static struct onnx_value log_sum(struct onnx_graph *g, const struct onnx_value *parts, size_t K)
{
    struct onnx_value rows[KP_BEAM_NETS_MAX];
    const int64_t axis = 1;
    for (size_t k = 0; k < K; k++)
        rows[k] = kp_onnx_squeeze(g, "Unsqueeze", &parts[k], 1);
    const struct onnx_value all = kp_onnx_concat(g, rows, K, 1); /* [B][K][n] */
    const struct onnx_node node = {.op = "ReduceLogSumExp",
                                   .in = {&all},
                                   .n_in = 1,
                                   .attribute = {{.name = "axes", .ints = &axis, .n_ints = 1},
                                                 {.name = "keepdims", .is_int = true, .i = 0}}};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

/* before[k] [B][1] += logp[k] at the values of target p. */
static void go_on(struct onnx_graph *g, size_t K, size_t p, const struct onnx_value *values,
                  const struct onnx_value *logp, struct onnx_value *before)
{
    const struct onnx_value chosen = kp_onnx_slice(g, values, 1, (int64_t)p, (int64_t)p + 1);
    for (size_t k = 0; k < K; k++) {
        const struct onnx_node node = {.op = "GatherElements",
                                       .in = {&logp[k], &chosen},
                                       .n_in = 2,
                                       .attribute = {{.name = "axis", .is_int = true, .i = 1}}};
        struct onnx_value at;
        kp_onnx_add(g, &node, &at, 1);
        before[k] = p ? kp_onnx_2(g, "Add", &before[k], &at) : at;
    }
}

/* p(v | h) = sum_k p_k(h, v) / sum_k p_k(h), in logarithms. logp[k][p] -> out[p]. */
static void mix(struct onnx_graph *g, const struct kp_model *m, const struct onnx_value *values,
                struct onnx_value (*logp)[KP_TARGETS_MAX], struct onnx_value *out)
{
    size_t K = m->n_nets;
    struct onnx_value before[KP_BEAM_NETS_MAX];
    struct onnx_value now[KP_BEAM_NETS_MAX];
    struct onnx_value joint[KP_BEAM_NETS_MAX];
    for (size_t p = 0; p < m->n_targets; p++) {
        for (size_t k = 0; k < K; k++) {
            now[k] = logp[k][p];
            joint[k] = p ? kp_onnx_2(g, "Add", &now[k], &before[k]) : now[k];
        }
        out[p] = log_sum(g, joint, K);
        struct onnx_value of_prefix =
            p ? log_sum(g, before, K) : kp_onnx_scalar(g, logf((float)K));
        out[p] = kp_onnx_2(g, "Sub", &out[p], &of_prefix);
        if (p + 1 < m->n_targets)
            go_on(g, K, p, values, now, before);
    }
}

/* --- the file -------------------------------------------------------------------------------
 */

/* A graph's input or output: [B][n]. */
static void add_info(struct kp_buf *b, unsigned field, const char *name, int type, size_t n)
{
    enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, ELEM = 1, SHAPE = 2, DIM = 1 };
    enum { DIM_VALUE = 1, DIM_PARAM = 2 };
    size_t info = kp_onnx_begin(b, field);
    kp_onnx_text(b, INFO_NAME, name);
    size_t outer = kp_onnx_begin(b, INFO_TYPE);
    size_t tensor = kp_onnx_begin(b, TYPE_TENSOR);
    kp_onnx_int(b, ELEM, type);
    size_t shape = kp_onnx_begin(b, SHAPE);
    size_t dim = kp_onnx_begin(b, DIM);
    kp_onnx_text(b, DIM_PARAM, "B");
    kp_onnx_end(b, dim);
    dim = kp_onnx_begin(b, DIM);
    kp_onnx_int(b, DIM_VALUE, (int64_t)n);
    kp_onnx_end(b, dim);
    kp_onnx_end(b, shape);
    kp_onnx_end(b, tensor);
    kp_onnx_end(b, outer);
    kp_onnx_end(b, info);
}

static void output_name(const struct kp_target *t, char *out, size_t n)
{
    (void)snprintf(out, n, "logp.%s", t->name);
}

/* logp[K][P]: one row for each network. */
static void write_graph(const struct kp_model *m, struct kp_buf *out,
                        struct onnx_value (*logp)[KP_TARGETS_MAX])
{
    struct onnx_graph g = {.out = out};
    const struct onnx_inputs in = {{"tokens"}, {"features"}, {"values"}};
    const struct kp_net_shape *s = &m->nets[0]->shape;
    struct onnx_value mixed[KP_TARGETS_MAX];
    char name[ONNX_NAME];
    for (size_t k = 0; k < m->n_nets; k++) {
        g.net = k;
        if (m->nets[k]->ops == &kp_net_factored)
            kp_onnx_factored(&g, m->nets[k], &in, logp[k]);
        else
            kp_onnx_seq(&g, m->nets[k], &in, logp[k]);
    }
    if (m->n_nets > 1)
        mix(&g, m, &in.values, logp, mixed);
    for (size_t p = 0; p < m->n_targets; p++) {
        output_name(&m->targets[p], name, sizeof(name));
        kp_onnx_rename(&g, m->n_nets > 1 ? &mixed[p] : &logp[0][p], name);
    }
    kp_onnx_text(out, GRAPH_NAME, m->kernel);
    add_info(out, GRAPH_INPUT, in.tokens.name, ONNX_INT64, s->n_tokens);
    add_info(out, GRAPH_INPUT, in.features.name, ONNX_FLOAT, s->n_features);
    add_info(out, GRAPH_INPUT, in.values.name, ONNX_INT64, s->n_targets);
    for (size_t p = 0; p < m->n_targets; p++) {
        output_name(&m->targets[p], name, sizeof(name));
        add_info(out, GRAPH_OUTPUT, name, ONNX_FLOAT, s->n_values[p]);
    }
}

static void add_metadata(struct kp_buf *out, const char *key, const char *value)
{
    enum { KEY = 1, VALUE = 2 };
    size_t at = kp_onnx_begin(out, MODEL_METADATA);
    kp_onnx_text(out, KEY, key);
    kp_onnx_text(out, VALUE, value);
    kp_onnx_end(out, at);
}

/* [{"name":"BM","values":[16,32]},..] */
static void targets_text(const struct kp_model *m, struct kp_buf *text)
{
    for (size_t p = 0; p < m->n_targets; p++) {
        const struct kp_target *t = &m->targets[p];
        kp_buf_adds(text, p ? ",{\"name\":" : "[{\"name\":");
        kp_json_quote(kp_str_from(t->name), text);
        for (uint32_t v = 0; v < t->n_values; v++) {
            kp_buf_adds(text, v ? "," : ",\"values\":[");
            kp_value_to_json(t->values[v], text);
        }
        kp_buf_adds(text, "]}");
    }
    kp_buf_adds(text, "]");
}

static kopt_status write_metadata(const struct kp_model *m, struct kp_buf *out, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(out->max);
    struct kp_json *encoder = kp_encoder_to_json(m->encoder);
    kopt_status st = KOPT_OK;
    if (!encoder)
        return kp_err_nomem(err);
    add_metadata(out, "kopt.kernel", m->kernel);
    targets_text(m, &text);
    st = kp_buf_status(&text, err);
    if (st == KOPT_OK) {
        add_metadata(out, "kopt.targets", kp_buf_text(&text));
        kp_buf_clear(&text);
        kp_json_dump(encoder, &text);
        st = kp_buf_status(&text, err);
    }
    if (st == KOPT_OK)
        add_metadata(out, "kopt.encoder", kp_buf_text(&text));
    kp_json_free(encoder);
    kp_buf_deinit(&text);
    return st;
}

static kopt_status check(const struct kp_model *m, kopt_error *err)
{
    for (size_t p = 0; p < m->n_targets; p++)
        if (strlen(m->targets[p].name) > ONNX_NAME / 2)
            return kp_err(err, KOPT_EINPUT, "the name of target %zu is longer than %d bytes", p,
                          ONNX_NAME / 2);
    for (size_t k = 0; k < m->n_nets; k++) {
        const struct kp_net *net = m->nets[k];
        if (kp_net_find(net->ops->name) != net->ops || net->ops->rank)
            return kp_err(err, KOPT_EINPUT, "networks of kind '%s' cannot be exported",
                          net->ops->name);
        for (size_t i = 0; i < net->params.n_floats; i++)
            if (!isfinite(net->values[i]))
                return kp_err(err, KOPT_EINPUT, "a parameter of network %zu is not finite", k);
    }
    return KOPT_OK;
}

kopt_status kp_onnx_export(const struct kp_model *m, struct kp_buf *out, kopt_error *err)
{
    enum { OPSET_VERSION = 2 };
    kopt_status st = check(m, err);
    if (st != KOPT_OK)
        return st;
    struct onnx_value(*logp)[KP_TARGETS_MAX] = kp_calloc(m->n_nets, sizeof(*logp));
    if (!logp)
        return kp_err_nomem(err);
    kp_onnx_int(out, MODEL_IR, IR_VERSION);
    kp_onnx_text(out, MODEL_PRODUCER, "kopt");
    kp_onnx_text(out, MODEL_PRODUCER_VERSION, kopt_version());
    size_t at = kp_onnx_begin(out, MODEL_GRAPH);
    write_graph(m, out, logp);
    kp_onnx_end(out, at);
    at = kp_onnx_begin(out, MODEL_OPSET);
    kp_onnx_int(out, OPSET_VERSION, OPSET);
    kp_onnx_end(out, at);
    st = write_metadata(m, out, err);
    kp_free(logp);
    return st == KOPT_OK ? kp_buf_status(out, err) : st;
}

kopt_status kp_onnx_save(const struct kp_model *m, const char *path, kopt_error *err)
{
    struct kp_buf b = KP_BUF_INIT(FILE_MAX_BYTES);
    kopt_status st = kp_onnx_export(m, &b, err);
    if (st == KOPT_OK) {
        const struct kp_str piece = {kp_buf_text(&b), b.len};
        st = kp_file_replace(path, &piece, 1, err);
    }
    kp_buf_deinit(&b);
    return st;
}
