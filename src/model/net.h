/* SPDX-License-Identifier: MIT */
/* A network that translates a problem into a configuration, one target after another.
 * Layer: model.
 *
 * Every model is one table of functions over a slab of parameters (struct kp_net_ops). A
 * network does not change while it is used: training works on gradients that the caller owns,
 * and prediction on a state that the caller owns, so any number of threads may use one at once.
 */
#ifndef KP_MODEL_NET_H
#define KP_MODEL_NET_H

#include "base/error.h"
#include "math/blas.h"
#include "model/dataset.h"
#include "nn/params.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a network is for, and how large it is made. */
struct kp_net_shape {
    size_t n_tokens;   /* T: tokens of a problem; 1 for networks that rank: a configuration's */
    size_t n_vocab;    /* different ones */
    size_t n_features; /* F; for networks that rank: of a problem and a configuration */
    size_t n_targets;  /* P */
    uint32_t n_values[KP_TARGETS_MAX];
    /* Sizes; 0 = the model's own. */
    size_t embed;   /* of tokens */
    size_t hidden;  /* units */
    size_t layers;  /* where a model has a choice */
    size_t kernel;  /* width of convolutions, odd */
    float dropout;  /* below 0 = the model's own */
    uint32_t cell;  /* enum kp_cell */
    uint32_t score; /* enum kp_score */
};

/* B problems with their configurations. */
struct kp_batch {
    size_t B;
    const int32_t *tokens;  /* [T][B] */
    const float *features;  /* [B][F] */
    const int32_t *targets; /* [P][B]: value indices; -1: not known, no loss */
    const float *weights;   /* [B], or [n_groups]; NULL for 1 */
    /* For networks that rank: rows are configurations with their features, tokens[B] their
     * numbers; rows group[i] .. group[i+1] - 1 are of one problem. */
    const float *wanted;   /* [B]: ln(time / best time of the problem) */
    const uint32_t *group; /* [n_groups + 1] */
    size_t n_groups;
};

struct kp_net_score {
    double loss;     /* summed over rows and targets, weighted */
    size_t n_right;  /* targets whose likeliest value, given the true ones before, is right */
    size_t n_target; /* targets with a value */
};

/* Target p (0, 1, .. in turn): prefix i of n goes on from prefix parent[i] of the call before,
 * to which values[i] was added at target p-1. At p = 0 there is one prefix, and both are NULL.
 * The logarithms of its values' probabilities are logp[n][n_values[p]]. */
struct kp_net_step {
    size_t p;
    size_t n;     /* at most width */
    size_t width; /* what the state was made for */
    const uint32_t *parent;
    const uint32_t *values;
};

struct kp_net;

struct kp_net_ops {
    const char *name;
    const char *about; /* a line for --help */
    /* Fill the sizes that are 0 and declare the parameters. */
    kopt_status (*build)(struct kp_net *net, kopt_error *err);
    /* Floats of work for a batch of B rows; `train`: with backward. */
    size_t (*work)(const struct kp_net *net, size_t B, bool train);
    /* Forward, and with `grad` (a slab, added to) backward. `key` seeds dropout; there is
     * none without grad and with key 0. `smoothing`: of labels. */
    void (*run)(const struct kp_net *net, const struct kp_batch *b, float smoothing,
                uint64_t key, float *grad, float *work, struct kp_net_score *score);
    /* What prediction is faster with, made once of the parameters. Returns the floats of it;
     * `out` NULL: only that. */
    size_t (*prepare)(const struct kp_net *net, float *out);
    /* Prediction. Floats of a state for one problem and `width` prefixes, floats of scratch. */
    size_t (*state)(const struct kp_net *net, size_t width);
    size_t (*scratch)(const struct kp_net *net, size_t width);
    /* tokens[T], features[F] of one problem. */
    void (*begin)(const struct kp_net *net, const int32_t *tokens, const float *features,
                  size_t width, float *state, float *scratch);
    void (*step)(const struct kp_net *net, const struct kp_net_step *s, float *state,
                 float *scratch, float *logp);
    /* Networks that rank configurations which are known, instead of the four above: scores[n],
     * the smaller the better, of configurations with these numbers and features x[n][F], all of
     * one problem. `work`: work(net, n, false) floats. Else NULL. */
    void (*rank)(const struct kp_net *net, size_t n, const int32_t *numbers, const float *x,
                 float *work, float *scores);
};

struct kp_net {
    const struct kp_net_ops *ops;
    struct kp_net_shape shape;
    const struct kp_blas *blas;
    struct kp_params params;
    float *values;      /* the slab: parameters */
    bool borrowed;      /* it is not this net's to free (a mapped file) */
    float *prepared;    /* by kp_net_prepare(); NULL: it was not */
    size_t offset[512]; /* the model's own: where its matrices are, in its order */
    size_t n_offsets;
};

/* NULL: no model of that name. */
const struct kp_net_ops *kp_net_find(const char *name);
const struct kp_net_ops *kp_net_named(struct kp_str name);
/* In the order in which they are shown, those that rank last; NULL after the last. */
const struct kp_net_ops *kp_net_at(size_t i);

/* A network with values drawn from `seed`; with seed 0 there is no slab yet (net->values is
 * NULL: the reader of a file sets it). Errors: KOPT_EINPUT (a shape out of range), KOPT_ENOMEM.
 */
kopt_status kp_net_new(const struct kp_net_ops *ops, const struct kp_net_shape *shape,
                       uint64_t seed, struct kp_net **out, kopt_error *err);
void kp_net_free(struct kp_net *net);
/* Makes prediction faster, at the price of a copy of the weights as halves (math/half.h), until
 * they change: who changes them then calls kp_net_unprepare(). Its answers differ from those
 * without by this rounding. A net with parameters beyond KP_HALF_MAX stays as it is. Errors:
 * KOPT_ENOMEM (the net is as before). */
kopt_status kp_net_prepare(struct kp_net *net, kopt_error *err);
void kp_net_unprepare(struct kp_net *net);

struct kp_json *kp_net_shape_to_json(const struct kp_net_shape *s);
kopt_status kp_net_shape_from_json(const struct kp_json *j, struct kp_net_shape *s,
                                   kopt_error *err);

#endif
