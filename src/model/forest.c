/* SPDX-License-Identifier: MIT */
#include "model/forest.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NODE_FLOATS = 3, NUMBERS = 5, ABREAST = 16, INPUTS_MAX = 1 << 20 };

struct kp_forest *kp_forest_new(void)
{
    return kp_calloc(1, sizeof(struct kp_forest));
}

void kp_forest_free(struct kp_forest *f)
{
    if (!f)
        return;
    if (!f->borrowed)
        kp_slab_free(f->values);
    kp_params_deinit(&f->params);
    kp_free(f);
}

/* --- tensors --------------------------------------------------------------------------------
 */

static void declare(struct kp_forest *f, size_t grove, const char *what, size_t rows,
                    size_t cols)
{
    char name[KP_TENSOR_NAME];
    (void)snprintf(name, sizeof(name), "trees%zu.%s", grove, what);
    (void)kp_params_add(&f->params, name, rows, cols, KP_INIT_ZERO, 0);
}

kopt_status kp_forest_place(struct kp_forest *f, kopt_error *err)
{
    for (size_t g = 0; g < f->n_groves; g++) {
        const struct kp_grove *w = &f->groves[g];
        if (w->n_trees == 0)
            continue;
        declare(f, g, "roots", 1, w->n_trees);
        declare(f, g, "nodes", w->n_nodes, NODE_FLOATS);
        if (w->n_outputs > 1)
            declare(f, g, "leaves", w->n_leaves, w->n_outputs);
    }
    return kp_params_status(&f->params, err);
}

void kp_forest_point(struct kp_forest *f)
{
    const struct kp_tensor *t = f->params.tensors;
    for (size_t g = 0; g < f->n_groves; g++) {
        struct kp_grove *w = &f->groves[g];
        if (w->n_trees == 0)
            continue;
        w->roots = f->values + (t++)->offset;
        w->nodes = f->values + (t++)->offset;
        w->leaves = w->n_outputs > 1 ? f->values + (t++)->offset : NULL;
    }
}

/* --- the file -------------------------------------------------------------------------------
 */

struct kp_json *kp_forest_to_json(const struct kp_forest *f)
{
    struct kp_json *j = kp_json_new_object();
    struct kp_json *groves = kp_json_new_array();
    bool ok = j && groves && kp_json_set_f64(j, "weight", f->weight);
    for (size_t g = 0; ok && g < f->n_groves; g++) {
        const struct kp_grove *w = &f->groves[g];
        const size_t numbers[NUMBERS] = {w->n_inputs, w->n_outputs, w->n_trees, w->n_nodes,
                                         w->n_leaves};
        struct kp_json *row = kp_json_new_array();
        for (size_t i = 0; ok && i < NUMBERS; i++)
            ok = kp_json_push(row, kp_json_new_i64((int64_t)numbers[i]));
        ok = kp_json_push(groves, row) && ok;
    }
    ok = kp_json_set(j, "groves", groves) && ok;
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

static bool read_grove(const struct kp_json *row, struct kp_grove *w)
{
    static const int64_t most[NUMBERS] = {INPUTS_MAX, KP_TARGET_VALUES_MAX, KP_FOREST_TREES_MAX,
                                          KP_FOREST_NODES_MAX, KP_FOREST_NODES_MAX};
    int64_t numbers[NUMBERS];
    if (kp_json_type(row) != KP_JSON_ARRAY || kp_json_size(row) != NUMBERS)
        return false;
    for (size_t i = 0; i < NUMBERS; i++)
        if (!kp_json_as_i64(kp_json_at(row, i), &numbers[i]) || numbers[i] < 0 ||
            numbers[i] > most[i])
            return false;
    *w = (struct kp_grove){.n_inputs = (size_t)numbers[0],
                           .n_outputs = (size_t)numbers[1],
                           .n_trees = (size_t)numbers[2],
                           .n_nodes = (size_t)numbers[3],
                           .n_leaves = (size_t)numbers[4]};
    if (w->n_trees == 0)
        return w->n_nodes == 0 && w->n_leaves == 0;
    return w->n_inputs > 0 && w->n_outputs > 0 && w->n_nodes >= w->n_trees &&
           (w->n_leaves > 0) == (w->n_outputs > 1);
}

static kopt_status read_forest(const struct kp_json *j, struct kp_forest *f, kopt_error *err)
{
    const struct kp_json *groves;
    kopt_status st = kp_json_need_f64(j, "weight", &f->weight, err);
    if (st == KOPT_OK)
        st = kp_json_need_array(j, "groves", &groves, err);
    if (st != KOPT_OK)
        return st;
    f->n_groves = kp_json_size(groves);
    if (!(f->weight >= 0 && f->weight < 1) || f->n_groves > KP_TARGETS_MAX)
        return kp_err(err, KOPT_EINPUT, "'weight' or the number of 'groves' is out of range");
    for (size_t g = 0; g < f->n_groves; g++)
        if (!read_grove(kp_json_at(groves, g), &f->groves[g]))
            return kp_err(err, KOPT_EINPUT, "'groves': number %zu makes no sense", g);
    return kp_forest_place(f, err);
}

kopt_status kp_forest_from_json(const struct kp_json *j, struct kp_forest **out,
                                kopt_error *err)
{
    struct kp_forest *f = kp_forest_new();
    *out = NULL;
    if (!f)
        return kp_err_nomem(err);
    kopt_status st = read_forest(j, f, err);
    if (st != KOPT_OK) {
        kp_forest_free(f);
        return st;
    }
    *out = f;
    return KOPT_OK;
}

/* A whole number from `least` to below `end`? */
static bool is_index(float x, size_t least, size_t end)
{
    return x >= (float)least && x < (float)end && x == floorf(x);
}

/* Node i of a tree that ends before `end`. */
static bool node_makes_sense(const struct kp_grove *w, size_t i, size_t end)
{
    const float *n = w->nodes + i * NODE_FLOATS;
    if (n[0] == -1)
        return w->n_outputs == 1 || is_index(n[2], 0, w->n_leaves);
    return is_index(n[0], 0, w->n_inputs) && i + 1 < end && is_index(n[2], i + 2, end);
}

/* Of numbers below 0 there would be no logarithm. */
static bool are_probabilities(const struct kp_grove *w)
{
    bool good = true;
    for (size_t i = 0; w->n_outputs > 1 && i < w->n_leaves * w->n_outputs; i++)
        good &= w->leaves[i] >= 0 && w->leaves[i] <= 1;
    return good;
}

kopt_status kp_forest_check(const struct kp_forest *f, kopt_error *err)
{
    for (size_t g = 0; g < f->n_groves; g++) {
        const struct kp_grove *w = &f->groves[g];
        bool good = true;
        for (size_t t = 0; good && t < w->n_trees; t++) {
            size_t from = t ? (size_t)w->roots[t] : 0;
            good = is_index(w->roots[t], from, from + 1);
            size_t end = w->n_nodes;
            if (good && t + 1 < w->n_trees)
                good = is_index(w->roots[t + 1], from + 1, w->n_nodes);
            if (good && t + 1 < w->n_trees)
                end = (size_t)w->roots[t + 1];
            for (size_t i = from; good && i < end; i++)
                good = node_makes_sense(w, i, end);
        }
        if (!good)
            return kp_err(err, KOPT_EINPUT, "the trees of grove %zu lead nowhere", g);
        if (w->n_trees && !are_probabilities(w))
            return kp_err(err, KOPT_EINPUT, "the trees of grove %zu give no probabilities", g);
    }
    return KOPT_OK;
}

/* --- asking ---------------------------------------------------------------------------------
 */

/* One walk to a leaf. */
struct walker {
    const float *x;
    const float *at; /* a node */
};

/* Walkers go side by side, since each step of one waits for memory. */
static void walk(const struct kp_grove *g, struct walker *w, size_t n)
{
    bool all_there = false;
    while (!all_there) {
        all_there = true;
        for (size_t k = 0; k < n; k++) {
            const float *at = w[k].at;
            if (at[0] < 0)
                continue;
            bool left = w[k].x[(uint32_t)at[0]] <= at[1];
            w[k].at = left ? at + NODE_FLOATS : g->nodes + (uint32_t)at[2] * NODE_FLOATS;
            all_there = false;
        }
    }
}

static const float *root_of(const struct kp_grove *g, size_t tree)
{
    return g->nodes + (uint32_t)g->roots[tree] * NODE_FLOATS;
}

void kp_grove_ask(const struct kp_grove *g, const float *x, float *out)
{
    struct walker w[ABREAST];
    size_t V = g->n_outputs;
    float share = g->n_trees ? 1 / (float)g->n_trees : 1;
    for (size_t v = 0; v < V; v++)
        out[v] = g->n_trees ? 0 : 1;
    for (size_t t = 0; t < g->n_trees; t += ABREAST) {
        size_t n = g->n_trees - t < ABREAST ? g->n_trees - t : ABREAST;
        for (size_t k = 0; k < n; k++)
            w[k] = (struct walker){x, root_of(g, t + k)};
        walk(g, w, n);
        for (size_t k = 0; k < n; k++) {
            /* Of a grove with one output the answer stands in the node. */
            const float *p = V == 1 ? w[k].at + 1 : g->leaves + (uint32_t)w[k].at[2] * V;
            for (size_t v = 0; v < V; v++)
                out[v] += share * p[v];
        }
    }
}

void kp_grove_ask_rows(const struct kp_grove *g, size_t n, const float *x, float *out)
{
    struct walker w[ABREAST];
    float share = g->n_trees ? 1 / (float)g->n_trees : 1;
    for (size_t i = 0; i < n; i++)
        out[i] = g->n_trees ? 0 : 1;
    /* All rows in one tree, which is in the cache then. */
    for (size_t t = 0; t < g->n_trees; t++) {
        for (size_t i = 0; i < n; i += ABREAST) {
            size_t some = n - i < ABREAST ? n - i : ABREAST;
            for (size_t k = 0; k < some; k++)
                w[k] = (struct walker){x + (i + k) * g->n_inputs, root_of(g, t)};
            walk(g, w, some);
            for (size_t k = 0; k < some; k++)
                out[i + k] += share * w[k].at[1];
        }
    }
}

size_t kp_forest_inputs(const struct kp_forest *f)
{
    size_t most = 0;
    for (size_t g = 0; g < f->n_groves; g++)
        if (f->groves[g].n_inputs > most)
            most = f->groves[g].n_inputs;
    return most;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_forest_log(const struct kp_forest *f, size_t p, size_t n_features,
                   const uint32_t *prefix, float *x, float *out)
{
    const struct kp_grove *g = &f->groves[p];
    size_t V = g->n_outputs;
    for (size_t q = 0; q < p; q++)
        x[n_features + q] = (float)prefix[q];
    kp_grove_ask(g, x, out);
    for (size_t v = 0; v < V; v++)
        out[v] = logf((1 - KP_FOREST_DOUBT) * out[v] + KP_FOREST_DOUBT / (float)V);
}

void kp_forest_pool(const struct kp_forest *f, size_t n, const float *trees, double *logs)
{
    double most = -(double)INFINITY;
    double sum = 0;
    for (size_t v = 0; v < n; v++) {
        logs[v] = (1 - f->weight) * logs[v] + f->weight * (double)trees[v];
        most = fmax(most, logs[v]);
    }
    if (!(most > -(double)INFINITY))
        return;
    for (size_t v = 0; v < n; v++)
        sum += exp(logs[v] - most);
    for (size_t v = 0; v < n; v++)
        logs[v] -= most + log(sum);
}
