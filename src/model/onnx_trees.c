/* SPDX-License-Identifier: MIT */
/* Groves as TreeEnsembleRegressor of ai.onnx.ml, and the pool. Layer: model. */
#include "model/onnx_graph.h"

#include "base/alloc.h"

enum { NODE_FLOATS = 3 };

/* What stands for each node, and for each number of a leaf. */
enum column { TREE, NODE, INPUT, LEFT, RIGHT };
struct list {
    const char *name;
    enum column column;
};

static const float *node_at(const struct kp_grove *w, size_t i)
{
    return w->nodes + i * NODE_FLOATS;
}

static bool is_leaf(const struct kp_grove *w, size_t i)
{
    return node_at(w, i)[0] < 0;
}

/* Nodes of tree t are those from its root to before this. */
static size_t tree_end(const struct kp_grove *w, size_t t)
{
    return t + 1 < w->n_trees ? (size_t)w->roots[t + 1] : w->n_nodes;
}

/* --- what can be written --------------------------------------------------------------------
 */

static kopt_status check_grove(const struct kp_grove *w, size_t g, kopt_error *err)
{
    unsigned char *parents = kp_calloc(w->n_nodes + 1, 1); /* of each node */
    bool good = true;
    if (!parents)
        return kp_err_nomem(err);
    for (size_t i = 0; good && i < w->n_nodes; i++) {
        if (is_leaf(w, i))
            continue;
        good = parents[i + 1]++ == 0 && parents[(size_t)node_at(w, i)[2]]++ == 0;
    }
    for (size_t t = 0; good && t < w->n_trees; t++)
        for (size_t i = (size_t)w->roots[t] + 1; good && i < tree_end(w, t); i++)
            good = parents[i] == 1;
    kp_free(parents);
    return good ? KOPT_OK
                : kp_err(err, KOPT_EINPUT, "the nodes of grove %zu are not those of trees", g);
}

kopt_status kp_onnx_check_forest(const struct kp_forest *f, kopt_error *err)
{
    kopt_status st = kp_forest_check(f, err);
    for (size_t g = 0; st == KOPT_OK && g < f->n_groves; g++)
        if (f->groves[g].n_trees)
            st = check_grove(&f->groves[g], g, err);
    return st;
}

/* --- nodes ----------------------------------------------------------------------------------
 */

static int64_t number_of(const struct kp_grove *w, enum column c, size_t t, size_t i)
{
    size_t root = (size_t)w->roots[t];
    switch (c) {
    case TREE:
        return (int64_t)t;
    case NODE:
        return (int64_t)(i - root);
    case INPUT:
        return is_leaf(w, i) ? 0 : (int64_t)node_at(w, i)[0];
    case LEFT:
        return is_leaf(w, i) ? 0 : (int64_t)(i + 1 - root);
    case RIGHT:
        return is_leaf(w, i) ? 0 : (int64_t)node_at(w, i)[2] - (int64_t)root;
    }
    return 0;
}

static void node_numbers(struct onnx_graph *g, const struct kp_grove *w, const struct list *l)
{
    size_t at = kp_onnx_list_begin(g, l->name);
    for (size_t t = 0; t < w->n_trees; t++)
        for (size_t i = (size_t)w->roots[t]; i < tree_end(w, t); i++)
            kp_onnx_list_int(g, number_of(w, l->column, t, i));
    kp_onnx_list_end(g, at, ONNX_INTS);
}

static void nodes(struct onnx_graph *g, const struct kp_grove *w)
{
    static const struct list lists[] = {{"nodes_treeids", TREE},
                                        {"nodes_nodeids", NODE},
                                        {"nodes_featureids", INPUT},
                                        {"nodes_truenodeids", LEFT},
                                        {"nodes_falsenodeids", RIGHT}};
    for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++)
        node_numbers(g, w, &lists[k]);
    size_t at = kp_onnx_list_begin(g, "nodes_modes");
    for (size_t i = 0; i < w->n_nodes; i++)
        kp_onnx_list_text(g, is_leaf(w, i) ? "LEAF" : "BRANCH_LEQ");
    kp_onnx_list_end(g, at, ONNX_STRINGS);
    at = kp_onnx_list_begin(g, "nodes_values");
    for (size_t i = 0; i < w->n_nodes; i++)
        kp_onnx_list_float(g, is_leaf(w, i) ? 0 : node_at(w, i)[1]);
    kp_onnx_list_end(g, at, ONNX_FLOATS);
}

/* --- leaves ---------------------------------------------------------------------------------
 */

/* The answers of leaf i. */
static const float *answers(const struct kp_grove *w, size_t i)
{
    const float *n = node_at(w, i);
    return w->n_outputs == 1 ? n + 1 : w->leaves + (size_t)n[2] * w->n_outputs;
}

/* Zeros are left out, but each leaf has something. */
static bool is_told(const float *answers, size_t v)
{
    return v == 0 || answers[v] != 0;
}

enum { OF_TREE, OF_NODE, OF_OUTPUT, OF_ANSWER };

/* What list `which` has of leaf i. */
static void leaf_items(struct onnx_graph *g, const struct kp_grove *w, size_t t, size_t i,
                       int which)
{
    const float *a = answers(w, i);
    for (size_t v = 0; v < w->n_outputs; v++) {
        if (!is_told(a, v))
            continue;
        if (which == OF_ANSWER)
            kp_onnx_list_float(g, a[v]);
        else if (which == OF_OUTPUT)
            kp_onnx_list_int(g, (int64_t)v);
        else
            kp_onnx_list_int(g, number_of(w, which == OF_TREE ? TREE : NODE, t, i));
    }
}

static void leaf_list(struct onnx_graph *g, const struct kp_grove *w, const char *name,
                      int which)
{
    size_t at = kp_onnx_list_begin(g, name);
    for (size_t t = 0; t < w->n_trees; t++)
        for (size_t i = (size_t)w->roots[t]; i < tree_end(w, t); i++)
            if (is_leaf(w, i))
                leaf_items(g, w, t, i, which);
    kp_onnx_list_end(g, at, which == OF_ANSWER ? ONNX_FLOATS : ONNX_INTS);
}

/* --- the whole ------------------------------------------------------------------------------
 */

struct onnx_value kp_onnx_grove(struct onnx_graph *g, const struct kp_grove *grove,
                                const struct onnx_value *x)
{
    const struct onnx_node node = {
        .op = "TreeEnsembleRegressor",
        .domain = ONNX_TREES_DOMAIN,
        .in = {x},
        .n_in = 1,
        .attribute = {{.name = "aggregate_function", .text = "AVERAGE"},
                      {.name = "n_targets", .is_int = true, .i = (int64_t)grove->n_outputs}}};
    struct onnx_value out;
    size_t at = kp_onnx_add_begin(g, &node, &out, 1);
    nodes(g, grove);
    leaf_list(g, grove, "target_treeids", OF_TREE);
    leaf_list(g, grove, "target_nodeids", OF_NODE);
    leaf_list(g, grove, "target_ids", OF_OUTPUT);
    leaf_list(g, grove, "target_weights", OF_ANSWER);
    kp_onnx_end(g->out, at);
    return out;
}

static struct onnx_value times(struct onnx_graph *g, const struct onnx_value *a, double factor)
{
    const struct onnx_value f = kp_onnx_scalar(g, (float)factor);
    return kp_onnx_2(g, "Mul", a, &f);
}

struct onnx_value kp_onnx_pool(struct onnx_graph *g, const struct kp_forest *f, size_t p,
                               const struct onnx_inputs *in, const struct onnx_value *logp)
{
    const struct kp_grove *w = &f->groves[p];
    struct onnx_value sum = times(g, logp, 1 - f->weight);
    if (w->n_trees) { /* else all values are alike to it */
        struct onnx_value x[2] = {in->features};
        if (p > 0) {
            x[1] = kp_onnx_slice(g, &in->values, 1, 0, (int64_t)p);
            x[1] = kp_onnx_cast(g, &x[1], ONNX_FLOAT);
            x[0] = kp_onnx_concat(g, x, 2, 1);
        }
        struct onnx_value y = kp_onnx_grove(g, w, &x[0]);
        const struct onnx_value least =
            kp_onnx_scalar(g, KP_FOREST_DOUBT / (float)w->n_outputs);
        y = times(g, &y, 1 - (double)KP_FOREST_DOUBT);
        y = kp_onnx_2(g, "Add", &y, &least);
        y = kp_onnx_1(g, "Log", &y);
        y = times(g, &y, f->weight);
        sum = kp_onnx_2(g, "Add", &sum, &y);
    }
    return kp_onnx_1i(g, "LogSoftmax", &sum, "axis", -1);
}
