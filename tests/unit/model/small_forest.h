/* SPDX-License-Identifier: MIT */
/* Forests with drawn trees: what they say means nothing, but every number of them counts. */
#ifndef TEST_MODEL_SMALL_FOREST_H
#define TEST_MODEL_SMALL_FOREST_H

#include "base/alloc.h"
#include "model/forest.h"
#include "model/model.h"

#include <string.h>

enum { SMALL_TREES = 5, SMALL_DEPTH = 4, SMALL_LEAVES = 9, SMALL_NODES = 256 };

struct small_tree {
    const struct kp_grove *grove;
    size_t n_features; /* inputs behind them are value indices */
    struct kp_rng *rng;
    float (*nodes)[3];
    size_t n;
};

/* Preorder; thresholds of value indices are such themselves, so that equal ones occur. */
/* NOLINTNEXTLINE(misc-no-recursion): SMALL_DEPTH deep */
static inline void small_branch(struct small_tree *t, size_t depth)
{
    size_t at = t->n++;
    KP_CHECK(at < SMALL_NODES);
    if (depth == 0 || kp_rng_below(t->rng, 5) == 0) {
        t->nodes[at][0] = -1;
        t->nodes[at][1] = (float)kp_rng_normal(t->rng);
        t->nodes[at][2] = (float)kp_rng_below(t->rng, SMALL_LEAVES);
        return;
    }
    size_t input = kp_rng_below(t->rng, (uint32_t)t->grove->n_inputs);
    t->nodes[at][0] = (float)input;
    t->nodes[at][1] = input < t->n_features ? (float)(0.5 * kp_rng_normal(t->rng))
                                            : (float)kp_rng_below(t->rng, 3);
    small_branch(t, depth - 1);
    t->nodes[at][2] = (float)t->n;
    small_branch(t, depth - 1);
}

/* Some probabilities are 0; the first row has one alone. */
static inline void small_leaves(struct kp_rng *rng, size_t n_outputs, float *leaves)
{
    for (size_t l = 0; l < SMALL_LEAVES; l++) {
        float sum = 0;
        for (size_t v = 0; v < n_outputs; v++) {
            float p = l == 0 ? (float)(v == n_outputs - 1)
                             : (float)((double)kp_rng_below(rng, 3) * kp_rng_f64(rng));
            leaves[l * n_outputs + v] = p;
            sum += p;
        }
        for (size_t v = 0; v < n_outputs; v++)
            leaves[l * n_outputs + v] =
                sum > 0 ? leaves[l * n_outputs + v] / sum : 1 / (float)n_outputs;
    }
}

/* Copies what was drawn to where grove g points. */
static inline void small_plant(const struct kp_grove *w, const float *roots, float (*nodes)[3],
                               struct kp_rng *rng)
{
    memcpy((void *)(uintptr_t)w->roots, roots, w->n_trees * sizeof(*roots));
    memcpy((void *)(uintptr_t)w->nodes, nodes, w->n_nodes * sizeof(*nodes));
    if (w->n_outputs > 1)
        small_leaves(rng, w->n_outputs, (float *)(uintptr_t)w->leaves);
}

/* Beside the model's networks: a grove for each target (a target with one value has no trees),
 * or the one of a model that ranks. The model frees it. */
static inline void small_forest(struct kp_model *m, double weight, uint64_t seed)
{
    static float nodes[KP_TARGETS_MAX][SMALL_NODES][3];
    float roots[KP_TARGETS_MAX][SMALL_TREES];
    const struct kp_net_shape *s = &m->nets[0]->shape;
    struct kp_rng rng;
    kopt_error err;
    struct kp_forest *f = kp_forest_new();
    KP_CHECK(f);
    kp_rng_init(&rng, seed);
    f->weight = weight;
    f->n_groves = m->ranking ? 1 : m->n_targets;
    for (size_t g = 0; g < f->n_groves; g++) {
        struct kp_grove *w = &f->groves[g];
        w->n_inputs = s->n_features + (m->ranking ? 0 : g);
        w->n_outputs = m->ranking ? 1 : s->n_values[g];
        if (!m->ranking && w->n_outputs == 1)
            continue;
        struct small_tree t = {
            .grove = w, .n_features = s->n_features, .rng = &rng, .nodes = nodes[g]};
        w->n_trees = SMALL_TREES;
        w->n_leaves = w->n_outputs > 1 ? SMALL_LEAVES : 0;
        for (size_t i = 0; i < SMALL_TREES; i++) {
            roots[g][i] = (float)t.n;
            small_branch(&t, i ? SMALL_DEPTH : 0); /* the first is a leaf alone */
        }
        w->n_nodes = t.n;
    }
    KP_CHECK(kp_forest_place(f, &err) == KOPT_OK);
    f->values = kp_slab_new(f->params.n_floats);
    KP_CHECK(f->values);
    kp_forest_point(f);
    for (size_t g = 0; g < f->n_groves; g++)
        if (f->groves[g].n_trees)
            small_plant(&f->groves[g], roots[g], nodes[g], &rng);
    KP_CHECK(kp_forest_check(f, &err) == KOPT_OK);
    m->forest = f;
}

#endif
