/* SPDX-License-Identifier: MIT */
/* Extremely randomised trees beside a model's networks. Layer: model.
 *
 * A grove is the trees that answer one question: the values of one target, or how long a
 * configuration takes. Each tree gives the mean of the examples that fell into the same leaf; a
 * grove gives the mean over its trees. They are grown by learn/grow.h.
 *
 * A forest of a model that translates has a grove for each target, which sees the problem's
 * features and the value indices of the targets before. Its probabilities join those of the
 * networks in a logarithmic pool (Genest and Zidek, Statistical Science 1, 1986):
 *
 *   p(v | prefix) = p_nets(v | prefix)^(1-w) p_trees(v | prefix)^w / Z
 *
 * A forest of a model that ranks has one grove, which sees what its networks see; of its scores
 * and theirs the mean is taken with the same weights. */
#ifndef KP_MODEL_FOREST_H
#define KP_MODEL_FOREST_H

#include "model/dataset.h"
#include "nn/params.h"
#include "json/json.h"

enum {
    KP_FOREST_TREES_MAX = 1024,
    KP_FOREST_NODES_MAX = 1 << 24, /* of a grove: floats count so far */
    KP_FOREST_FLOATS_MAX = 1 << 27 /* of all tensors: half of what a model's file may have */
};

#define KP_FOREST_DOUBT 1e-3F /* the share of a grove's answer that all values have alike */

/* Nodes stand in preorder: a split's left child is the next node. Rows of `nodes`: the input
 * that is asked about, the largest number that goes left, the right child; or -1, the answer of
 * a grove with one output, the row of `leaves` of one with more. */
struct kp_grove {
    size_t n_inputs;
    size_t n_outputs; /* 1: a number; else probabilities of so many values */
    size_t n_trees;   /* 0: nothing is asked (a target with one value) */
    size_t n_nodes;
    size_t n_leaves;
    const float *roots;  /* [n_trees] */
    const float *nodes;  /* [n_nodes][3] */
    const float *leaves; /* [n_leaves][n_outputs]; of a grove with one output there are none */
};

struct kp_forest {
    size_t n_groves;
    struct kp_grove groves[KP_TARGETS_MAX];
    double weight;           /* w: at least 0, below 1 */
    struct kp_params params; /* tensors "trees<g>.roots", ".nodes", ".leaves" */
    float *values;           /* their slab */
    bool borrowed;           /* it is not the forest's to free (a mapped file) */
};

/* Empty. NULL: no memory. */
struct kp_forest *kp_forest_new(void);
void kp_forest_free(struct kp_forest *f);

/* Declares the tensors of the groves, whose sizes are set. Errors: KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_forest_place(struct kp_forest *f, kopt_error *err);
/* Sets the groves' pointers, after values and the tensors' offsets are set. */
void kp_forest_point(struct kp_forest *f);

/* {"weight":..,"groves":[[inputs,outputs,trees,nodes,leaves],..]} */
struct kp_json *kp_forest_to_json(const struct kp_forest *f);
/* Tensors are declared, not yet there. Errors: KOPT_EINPUT, KOPT_ENOMEM. */
kopt_status kp_forest_from_json(const struct kp_json *j, struct kp_forest **out,
                                kopt_error *err);
/* Do all trees end, and in what is there? Are leaves' rows probabilities? Numbers are finite.
 * Errors: KOPT_EINPUT. */
kopt_status kp_forest_check(const struct kp_forest *f, kopt_error *err);

/* out[n_outputs] of x[n_inputs]; out is set, not added to. A grove without trees: all 1. */
void kp_grove_ask(const struct kp_grove *g, const float *x, float *out);
/* Of a grove with one output: out[n] of x[n][n_inputs], the same bits. */
void kp_grove_ask_rows(const struct kp_grove *g, size_t n, const float *x, float *out);

/* Numbers of `x` below. */
size_t kp_forest_inputs(const struct kp_forest *f);
/* ln p_trees(v | prefix): out[n_outputs of grove p]. x: room for kp_forest_inputs(), features
 * [n_features] at its begin; the prefix' p values are put behind them. Nothing is quite
 * impossible: each value has a thousandth, shared with the others, besides. */
void kp_forest_log(const struct kp_forest *f, size_t p, size_t n_features,
                   const uint32_t *prefix, float *x, float *out);
/* The pool, in place: logs[n] of the networks, `trees` from above. */
void kp_forest_pool(const struct kp_forest *f, size_t n, const float *trees, double *logs);

#endif
