/* SPDX-License-Identifier: MIT */
/* Forests made by hand, or drawn from a seed: what those say means nothing, but every number of
 * them counts. */
#ifndef TEST_MODEL_FORESTS_H
#define TEST_MODEL_FORESTS_H

#include "base/alloc.h"
#include "base/rng.h"
#include "model/forest.h"
#include "model/model.h"

#include <string.h>

/* Copies what the groves point to. Owner: kp_forest_free(). */
static inline struct kp_forest *forest_of(const struct kp_grove *groves, size_t n,
                                          double weight)
{
    struct kp_forest *f = kp_forest_new();
    kopt_error err;
    KP_CHECK(f && n <= KP_TARGETS_MAX);
    f->n_groves = n;
    f->weight = weight;
    memcpy(f->groves, groves, n * sizeof(*groves));
    KP_CHECK(kp_forest_place(f, &err) == KOPT_OK);
    f->values = kp_slab_new(f->params.n_floats + 1);
    KP_CHECK(f->values);
    const struct kp_tensor *t = f->params.tensors;
    for (size_t g = 0; g < n; g++) {
        const struct kp_grove *w = &groves[g];
        if (w->n_trees == 0)
            continue;
        memcpy(f->values + (t++)->offset, w->roots, w->n_trees * sizeof(float));
        memcpy(f->values + (t++)->offset, w->nodes, w->n_nodes * 3 * sizeof(float));
        if (w->n_outputs > 1)
            memcpy(f->values + (t++)->offset, w->leaves,
                   w->n_leaves * w->n_outputs * sizeof(float));
    }
    kp_forest_point(f);
    return f;
}

/* A node that may be written. */
static inline float *forest_node(const struct kp_grove *g, size_t i)
{
    return (float *)(uintptr_t)g->nodes + i * 3;
}

struct forest_plan {
    size_t n_groves;
    size_t n_features;
    const uint32_t *n_values; /* of the targets; NULL: one grove that gives numbers */
    size_t trees;
    double weight;
    uint64_t seed;
};

enum { FOREST_DEPTH = 4, FOREST_TREE_NODES = 31 /* at most */, FOREST_LEAVES = 9 };

struct forest_tree {
    const struct kp_grove *grove;
    size_t n_features; /* inputs behind them are value indices */
    struct kp_rng *rng;
    float (*nodes)[3]; /* the grove's */
    size_t n;          /* of them that are drawn */
};

/* Preorder; thresholds of value indices are such themselves, so that equal ones occur. */
/* NOLINTNEXTLINE(misc-no-recursion): FOREST_DEPTH deep */
static inline void forest_draw_branch(struct forest_tree *t, size_t depth)
{
    float *node = t->nodes[t->n++];
    bool numbers = t->grove->n_outputs == 1;
    if (depth == 0 || (depth < FOREST_DEPTH && kp_rng_below(t->rng, 5) == 0)) {
        node[0] = -1;
        node[1] = numbers ? (float)kp_rng_normal(t->rng) : 0;
        node[2] = numbers ? 0 : (float)kp_rng_below(t->rng, FOREST_LEAVES);
        return;
    }
    size_t input = kp_rng_below(t->rng, t->grove->n_inputs);
    node[0] = (float)input;
    node[1] = input < t->n_features ? (float)(0.5 * kp_rng_normal(t->rng))
                                    : (float)kp_rng_below(t->rng, 3);
    forest_draw_branch(t, depth - 1);
    node[2] = (float)t->n;
    forest_draw_branch(t, depth - 1);
}

/* Most leaves have values that they rule out, as those of real trees; the first has one alone.
 */
static inline void forest_draw_leaves(struct kp_rng *rng, size_t n_outputs, float *leaves)
{
    for (size_t l = 0; l < FOREST_LEAVES; l++) {
        float *leaf = leaves + l * n_outputs;
        float sum = 0;
        for (size_t v = 0; v < n_outputs; v++) {
            leaf[v] = l == 0 ? (float)(v == n_outputs - 1)
                             : (float)((double)kp_rng_below(rng, 3) * kp_rng_f64(rng));
            sum += leaf[v];
        }
        for (size_t v = 0; v < n_outputs; v++)
            leaf[v] = sum > 0 ? leaf[v] / sum : 1 / (float)n_outputs;
    }
}

static inline void forest_draw_grove(struct kp_rng *rng, size_t n_features, struct kp_grove *w)
{
    float *roots = kp_calloc(w->n_trees, sizeof(*roots));
    float(*nodes)[3] = kp_calloc(w->n_trees * FOREST_TREE_NODES, sizeof(*nodes));
    float *leaves = kp_calloc(FOREST_LEAVES, w->n_outputs * sizeof(*leaves));
    KP_CHECK(roots && nodes && leaves);
    struct forest_tree t = {.grove = w, .n_features = n_features, .rng = rng, .nodes = nodes};
    for (size_t i = 0; i < w->n_trees; i++) {
        roots[i] = (float)t.n;
        /* The last one is a leaf alone. */
        forest_draw_branch(&t, i == 0 || i + 1 < w->n_trees ? FOREST_DEPTH : 0);
    }
    if (w->n_outputs > 1)
        forest_draw_leaves(rng, w->n_outputs, leaves);
    w->n_nodes = t.n;
    w->n_leaves = w->n_outputs > 1 ? FOREST_LEAVES : 0;
    w->roots = roots;
    w->nodes = nodes[0];
    w->leaves = leaves;
}

/* A target with one value has no trees, nor has what sees nothing. */
static inline struct kp_forest *forest_drawn(const struct forest_plan *plan)
{
    struct kp_grove groves[KP_TARGETS_MAX] = {0};
    struct kp_rng rng;
    kopt_error err;
    kp_rng_init(&rng, plan->seed);
    for (size_t g = 0; g < plan->n_groves; g++) {
        struct kp_grove *w = &groves[g];
        w->n_inputs = plan->n_features + g;
        w->n_outputs = plan->n_values ? plan->n_values[g] : 1;
        if (w->n_inputs == 0 || (plan->n_values && w->n_outputs == 1))
            continue;
        w->n_trees = plan->trees;
        forest_draw_grove(&rng, plan->n_features, w);
    }
    struct kp_forest *f = forest_of(groves, plan->n_groves, plan->weight);
    KP_CHECK(kp_forest_check(f, &err) == KOPT_OK);
    for (size_t g = 0; g < plan->n_groves; g++) {
        kp_free((void *)(uintptr_t)groves[g].roots);
        kp_free((void *)(uintptr_t)groves[g].nodes);
        kp_free((void *)(uintptr_t)groves[g].leaves);
    }
    return f;
}

/* Beside the model's networks, which are there already: a grove for each target, or the one of
 * a model that ranks. The model frees it. */
static inline void forest_beside(struct kp_model *m, size_t trees, double weight, uint64_t seed)
{
    const struct kp_net_shape *s = &m->nets[0]->shape;
    const struct forest_plan plan = {.n_groves = m->ranking ? 1 : m->n_targets,
                                     .n_features = s->n_features,
                                     .n_values = m->ranking ? NULL : s->n_values,
                                     .trees = trees,
                                     .weight = weight,
                                     .seed = seed};
    m->forest = forest_drawn(&plan);
}

#endif
