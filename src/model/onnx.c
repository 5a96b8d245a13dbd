/* SPDX-License-Identifier: MIT */
/* Models as ONNX: the file around the graph, and what several networks and the forest make
 * together; the graphs of networks are in onnx_dense.c and onnx_seq.c, those of trees in
 * onnx_trees.c. Layer: model. */
#include "model/onnx.h"

#include "base/alloc.h"
#include "model/models.h"
#include "model/onnx_graph.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* IR 8 came with opset 17. A message of protocol buffers is below 2 GiB. */
enum { IR_VERSION = 8, OPSET = 17, FILE_MAX_BYTES = 2047 << 20 };
/* Of ai.onnx.ml, as ONNX 1.12 has it beside opset 17. */
enum { OPSET_TREES = 3 };
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8
};
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };

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

#define NO_COLUMNS SIZE_MAX
/* A graph's input or output: [B][n], where n may be 0; without columns [B]. */
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
    if (n != NO_COLUMNS) {
        dim = kp_onnx_begin(b, DIM);
        kp_onnx_int(b, DIM_VALUE, (int64_t)n);
        kp_onnx_end(b, dim);
    }
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
static void write_translator(const struct kp_model *m, struct onnx_graph *g,
                             struct onnx_value (*logp)[KP_TARGETS_MAX])
{
    const struct onnx_inputs in = {{"tokens"}, {"features"}, {"values"}};
    const struct kp_net_shape *s = &m->nets[0]->shape;
    struct onnx_value mixed[KP_TARGETS_MAX];
    char name[ONNX_NAME];
    for (size_t k = 0; k < m->n_nets; k++) {
        g->net = k;
        if (m->nets[k]->ops == &kp_net_factored)
            kp_onnx_factored(g, m->nets[k], &in, logp[k]);
        else
            kp_onnx_seq(g, m->nets[k], &in, logp[k]);
    }
    g->net = ONNX_NO_NET;
    if (m->n_nets > 1)
        mix(g, m, &in.values, logp, mixed);
    for (size_t p = 0; p < m->n_targets; p++) {
        struct onnx_value all = m->n_nets > 1 ? mixed[p] : logp[0][p];
        if (m->forest)
            all = kp_onnx_pool(g, m->forest, p, &in, &all);
        output_name(&m->targets[p], name, sizeof(name));
        kp_onnx_rename(g, &all, name);
    }
    add_info(g->out, GRAPH_INPUT, in.tokens.name, ONNX_INT64, s->n_tokens);
    add_info(g->out, GRAPH_INPUT, in.features.name, ONNX_FLOAT, s->n_features);
    add_info(g->out, GRAPH_INPUT, in.values.name, ONNX_INT64, s->n_targets);
    for (size_t p = 0; p < m->n_targets; p++) {
        output_name(&m->targets[p], name, sizeof(name));
        add_info(g->out, GRAPH_OUTPUT, name, ONNX_FLOAT, s->n_values[p]);
    }
}

static bool has_trees(const struct kp_model *m)
{
    for (size_t g = 0; m->forest && g < m->forest->n_groves; g++)
        if (m->forest->groves[g].n_trees)
            return true;
    return false;
}

/* (1 - w) score + w trees. */
static struct onnx_value hear_forest(const struct kp_model *m, struct onnx_graph *g,
                                     const struct onnx_value *x, const struct onnx_value *score)
{
    float w = (float)m->forest->weight;
    const struct onnx_value of_nets = kp_onnx_scalar(g, 1 - w);
    const struct onnx_value of_trees = kp_onnx_scalar(g, w);
    const struct onnx_value a = kp_onnx_2(g, "Mul", score, &of_nets);
    if (!has_trees(m)) /* a grove without trees says 1 */
        return kp_onnx_2(g, "Add", &a, &of_trees);
    struct onnx_value b = kp_onnx_grove(g, &m->forest->groves[0], x);
    b = kp_onnx_squeeze(g, "Squeeze", &b, 1);
    b = kp_onnx_2(g, "Mul", &b, &of_trees);
    return kp_onnx_2(g, "Add", &a, &b);
}

/* The sum that score() of ranking.c makes. */
static void write_ranker(const struct kp_model *m, struct onnx_graph *g)
{
    const struct onnx_value x = {"x"};
    const struct onnx_value numbers = {"numbers"};
    struct onnx_value score = {0};
    for (size_t k = 0; k < m->n_nets; k++) {
        g->net = k;
        const struct onnx_value one = kp_onnx_ranker(g, m->nets[k], &x, &numbers);
        score = k ? kp_onnx_2(g, "Add", &score, &one) : one;
    }
    g->net = ONNX_NO_NET;
    if (m->n_nets > 1) {
        const struct onnx_value n = kp_onnx_scalar(g, (float)m->n_nets);
        score = kp_onnx_2(g, "Div", &score, &n);
    }
    if (m->ranking->n_sites) {
        const struct onnx_value more = kp_onnx_correction(g, m->ranking, &x, &numbers);
        score = kp_onnx_2(g, "Add", &score, &more);
    }
    if (m->forest)
        score = hear_forest(m, g, &x, &score);
    kp_onnx_rename(g, &score, "score");
    add_info(g->out, GRAPH_INPUT, numbers.name, ONNX_INT64, NO_COLUMNS);
    add_info(g->out, GRAPH_INPUT, x.name, ONNX_FLOAT, m->nets[0]->shape.n_features);
    add_info(g->out, GRAPH_OUTPUT, "score", ONNX_FLOAT, NO_COLUMNS);
}

static kopt_status check_params(const struct kp_params *params, const float *values,
                                const char *whose, kopt_error *err)
{
    for (size_t i = 0; i < params->n_tensors; i++) {
        const struct kp_tensor *t = &params->tensors[i];
        for (size_t k = 0; k < t->rows * t->cols; k++)
            if (!isfinite(values[t->offset + k]))
                return kp_err(err, KOPT_EINPUT, "a number of tensor '%s' of %s is not finite",
                              t->name, whose);
    }
    return KOPT_OK;
}

static kopt_status check(const struct kp_model *m, kopt_error *err)
{
    for (size_t p = 0; p < m->n_targets; p++)
        if (strlen(m->targets[p].name) > ONNX_NAME / 2)
            return kp_err(err, KOPT_EINPUT, "the name of target %zu is longer than %d bytes", p,
                          ONNX_NAME / 2);
    for (size_t k = 0; k < m->n_nets; k++) {
        const struct kp_net *net = m->nets[k];
        if (kp_net_find(net->ops->name) != net->ops || !net->ops->rank != !m->ranking)
            return kp_err(err, KOPT_EINPUT, "networks of kind '%s' cannot be exported",
                          net->ops->name);
        kopt_status st = check_params(&net->params, net->values, "a network", err);
        if (st != KOPT_OK)
            return st;
    }
    kopt_status st = KOPT_OK;
    if (m->ranking && m->ranking->n_sites)
        st = check_params(&m->ranking->params, m->ranking->values, "the correction", err);
    if (st == KOPT_OK && m->forest)
        st = check_params(&m->forest->params, m->forest->values, "the forest", err);
    if (st == KOPT_OK && m->forest)
        st = kp_onnx_check_forest(m->forest, err);
    return st;
}

static void add_opset(struct kp_buf *out, const char *domain, int64_t version)
{
    enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
    size_t at = kp_onnx_begin(out, MODEL_OPSET);
    if (domain)
        kp_onnx_text(out, OPSET_DOMAIN, domain);
    kp_onnx_int(out, OPSET_VERSION, version);
    kp_onnx_end(out, at);
}

kopt_status kp_onnx_export(const struct kp_model *m, struct kp_buf *out, kopt_error *err)
{
    struct onnx_graph g = {.out = out};
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
    if (m->ranking)
        write_ranker(m, &g);
    else
        write_translator(m, &g, logp);
    kp_onnx_text(out, GRAPH_NAME, m->kernel);
    kp_onnx_end(out, at);
    add_opset(out, NULL, OPSET);
    if (has_trees(m))
        add_opset(out, ONNX_TREES_DOMAIN, OPSET_TREES);
    st = kp_onnx_metadata(m, out, err);
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
