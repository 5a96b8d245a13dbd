/* SPDX-License-Identifier: MIT */
/* Forests made by hand or drawn from a seed. */
#ifndef TEST_MODEL_FORESTS_H
#define TEST_MODEL_FORESTS_H

#include "base/alloc.h"
#include "base/rng.h"
#include "model/forest.h"

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

/* Trees of three levels; their leaves have rows of their own. */
enum { FOREST_TREE_NODES = 15, FOREST_TREE_LEAVES = 8 };

static inline void forest_draw_tree(struct kp_rng *rng, const struct kp_grove *w, size_t t)
{
    /* In preorder: the node's level, and for a split its right child. */
    static const unsigned char right[FOREST_TREE_NODES] = {8,  5,  4, 0, 0,  7, 0, 0,
                                                           12, 11, 0, 0, 14, 0, 0};
    float *nodes = (float *)(uintptr_t)w->nodes + t * (size_t)FOREST_TREE_NODES * 3;
    size_t leaf = t * FOREST_TREE_LEAVES;
    for (size_t i = 0; i < FOREST_TREE_NODES; i++) {
        float *n = nodes + i * 3;
        if (right[i]) {
            n[0] = (float)kp_rng_below(rng, w->n_inputs);
            n[1] = (float)kp_rng_normal(rng) + 0.5F; /* features, and values 0, 1, .. */
            n[2] = (float)(t * FOREST_TREE_NODES + right[i]);
            continue;
        }
        n[0] = -1;
        n[1] = w->n_outputs == 1 ? 3 * (float)kp_rng_normal(rng) : 0;
        n[2] = w->n_outputs == 1 ? 0 : (float)leaf++;
    }
}

/* Most leaves have values that they rule out, as those of real trees. */
static inline void forest_draw_leaf(struct kp_rng *rng, float *leaf, size_t n)
{
    float sum = 0;
    for (size_t v = 0; v < n; v++) {
        leaf[v] = kp_rng_below(rng, 3) ? (float)kp_rng_f64(rng) : 0;
        sum += leaf[v];
    }
    for (size_t v = 0; v < n; v++)
        leaf[v] = sum > 0 ? leaf[v] / sum * 0.999999F : 1 / (float)n;
}

static inline void forest_draw_grove(struct kp_rng *rng, struct kp_grove *w)
{
    float *roots = (float *)(uintptr_t)w->roots;
    for (size_t t = 0; t < w->n_trees; t++) {
        roots[t] = (float)(t * FOREST_TREE_NODES);
        forest_draw_tree(rng, w, t);
    }
    for (size_t i = 0; i < w->n_leaves; i++)
        forest_draw_leaf(rng, (float *)(uintptr_t)w->leaves + i * w->n_outputs, w->n_outputs);
}

static inline struct kp_forest *forest_drawn(const struct forest_plan *plan)
{
    struct kp_grove groves[KP_TARGETS_MAX] = {0};
    struct kp_rng rng;
    kp_rng_init(&rng, plan->seed);
    for (size_t g = 0; g < plan->n_groves; g++) {
        struct kp_grove *w = &groves[g];
        w->n_inputs = plan->n_features + g;
        w->n_outputs = plan->n_values ? plan->n_values[g] : 1;
        if (w->n_inputs == 0 || (plan->n_values && w->n_outputs == 1))
            continue;
        w->n_trees = plan->trees;
        w->n_nodes = plan->trees * FOREST_TREE_NODES;
        w->n_leaves = w->n_outputs > 1 ? plan->trees * FOREST_TREE_LEAVES : 0;
        w->roots = kp_calloc(w->n_trees, sizeof(float));
        w->nodes = kp_calloc(w->n_nodes, 3 * sizeof(float));
        w->leaves = kp_calloc(w->n_leaves + 1, w->n_outputs * sizeof(float));
        KP_CHECK(w->roots && w->nodes && w->leaves);
        forest_draw_grove(&rng, w);
    }
    struct kp_forest *f = forest_of(groves, plan->n_groves, plan->weight);
    for (size_t g = 0; g < plan->n_groves; g++) {
        kp_free((void *)(uintptr_t)groves[g].roots);
        kp_free((void *)(uintptr_t)groves[g].nodes);
        kp_free((void *)(uintptr_t)groves[g].leaves);
    }
    return f;
}

#endif
