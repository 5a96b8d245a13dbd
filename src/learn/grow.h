/* SPDX-License-Identifier: MIT */
/* Growing the trees of model/forest.h. Layer: learn.
 *
 * Extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006): a node
 * tries a share of the inputs, each with one threshold drawn between the least and the largest
 * number that its examples have there, and takes the one that explains most. What it explains
 * is, with W the weight of the examples on a side and S the sum of their weighted answers, the
 * sum of |S|^2 / W over both sides less that of the node: for numbers the fall of the variance,
 * for values (one-hot answers) that of the Gini impurity. */
#ifndef KP_LEARN_GROW_H
#define KP_LEARN_GROW_H

#include "model/crew.h"
#include "model/forest.h"

struct kp_grow_examples {
    size_t n;
    size_t n_inputs;
    const float *x; /* [n_inputs][n] */
    /* Inputs that say much the same stand side by side, those of group g from first[g] on: a
     * node draws a group, then one of its inputs. NULL: each is a group of its own. */
    size_t n_groups;
    const uint32_t *first; /* [n_groups + 1] */
    /* Answers: values below n_outputs, or with n_outputs 1 numbers. */
    size_t n_outputs;
    const uint32_t *values; /* [n] */
    const float *numbers;   /* [n] */
    const float *weights;   /* [n], above 0 */
};

struct kp_grow_plan {
    uint64_t seed;
    size_t trees;
    double leaf;  /* weight that a leaf has at least */
    double share; /* of the groups that a node tries */
};

/* One grove: arrays that the caller hands on. */
struct kp_grown {
    struct kp_grove grove; /* points into the arrays below */
    float *roots;
    float *nodes;
    float *leaves;
};

/* The same trees with any number of threads. Errors: KOPT_ENOMEM, KOPT_ERANGE (more nodes than
 * a file can have). */
kopt_status kp_grove_grow(const struct kp_grow_examples *e, const struct kp_grow_plan *plan,
                          struct kp_crew *crew, struct kp_grown *out, kopt_error *err);
void kp_grown_deinit(struct kp_grown *g);

/* A forest with copies of `n` groves. Errors: KOPT_ENOMEM, KOPT_ERANGE (larger than
 * KP_FOREST_FLOATS_MAX). */
kopt_status kp_grown_plant(const struct kp_grown *grown, size_t n, double weight,
                           struct kp_forest **out, kopt_error *err);

#endif
