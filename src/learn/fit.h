/* SPDX-License-Identifier: MIT */
/* Training a predictor on a lesson. Layer: learn. */
#ifndef KP_LEARN_FIT_H
#define KP_LEARN_FIT_H

#include "learn/grow.h"
#include "learn/lesson.h"
#include "learn/ranks.h"
#include "model/model.h"

struct kp_fit_options {
    const struct kp_net_ops *ops;
    const struct kp_net_ops *beside; /* another kind that translates, or NULL: see below */
    struct kp_net_shape shape; /* sizes, cell, score; the rest is the lesson's. Of `ops`: those
                                  of `beside` have their own sizes */
    size_t nets;               /* trained from seeds plan.seed, plan.seed + 1, .. */
    struct kp_train_plan plan;
    /* The rules file's text, parsed again for the model, and its name; NULL: none. */
    const char *rules_path;
    struct kp_str rules_text;
    size_t n_raw;                 /* fields of the data set that are not derived */
    const struct kp_ranks *ranks; /* for networks that rank, else NULL; of the lesson */
    struct kp_grow_plan grow;     /* trees 0: none; its seed is the plan's */
    double trees_weight;          /* in the pool, see model/forest.h */
};

/* What a model is trained with when nothing is said. */
struct kp_fit_options kp_fit_default(const struct kp_net_ops *ops);

/* The kind of network k: with `beside` the last third of all, rounded up, is of that one. */
const struct kp_net_ops *kp_fit_kind(const struct kp_fit_options *o, size_t k);
/* The shape of the lesson's networks of a kind: options' sizes, the rest by the lesson. */
struct kp_net_shape kp_fit_shape(const struct kp_lesson *l, const struct kp_fit_options *o,
                                 const struct kp_net_ops *kind);

/* Where fitting stands: networks that are done, and the one in training. */
struct kp_fit_state {
    size_t net;                            /* in training; those before it are done */
    const float *values[KP_BEAM_NETS_MAX]; /* [net + 1]: slabs; of `net` the best so far */
    size_t n_floats[KP_BEAM_NETS_MAX];     /* [net + 1]: of the slabs */
    struct kp_train_state train;           /* of `net` */
    const struct kp_json *log;             /* [net + 1]: what "training" in the info will be */
};

struct kp_fit_hooks {
    void *user;
    /* After each epoch of network `net`; false: stop, and keep what there is. May be NULL. */
    bool (*epoch)(void *user, size_t net, const struct kp_epoch *e);
    /* After that: everything that is needed to go on from there. `stopped`: there will be no
     * other call. Its error ends the fitting. May be NULL. */
    kopt_status (*save)(void *user, const struct kp_fit_state *s, bool stopped,
                        kopt_error *err);
    /* Goes on from there instead of from the start; NULL: from the start. It must be of the
     * same lesson and options; then the model is the same as in one go. */
    const struct kp_fit_state *resume;
};

/* The model's info gets "training": for each network a list of its epochs' training loss,
 * validation loss and share of right targets. Owner: kp_model_free(). Errors: those of
 * kp_train() and of hooks->save; KOPT_EINPUT (hooks->resume is of another network); of
 * KOPT_EFAILED the model with the last good values is there all the same (*out is not NULL)
 * unless no epoch was good. */
kopt_status kp_fit(const struct kp_lesson *l, const struct kp_fit_options *o,
                   const struct kp_fit_hooks *hooks, struct kp_model **out, kopt_error *err);

/* The model's forest, of what its networks learned from; kp_fit() does it. Errors: KOPT_ENOMEM.
 */
kopt_status kp_fit_trees(const struct kp_lesson *l, const struct kp_fit_options *o,
                         struct kp_model *m, kopt_error *err);

#endif
