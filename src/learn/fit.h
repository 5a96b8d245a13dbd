/* SPDX-License-Identifier: MIT */
/* Training a predictor on a lesson. Layer: learn. */
#ifndef KP_LEARN_FIT_H
#define KP_LEARN_FIT_H

#include "learn/lesson.h"
#include "model/model.h"

struct kp_fit_options {
    const struct kp_net_ops *ops;
    struct kp_net_shape shape; /* sizes, cell, score; the rest is the lesson's */
    size_t nets;               /* trained from seeds plan.seed, plan.seed + 1, .. */
    struct kp_train_plan plan;
    /* The rules file's text, parsed again for the model, and its name; NULL: none. */
    const char *rules_path;
    struct kp_str rules_text;
    size_t n_raw; /* fields of the data set that are not derived */
};

/* What a model is trained with when nothing is said. */
struct kp_fit_options kp_fit_default(const struct kp_net_ops *ops);

struct kp_fit_hooks {
    void *user;
    /* After each epoch of network `net`; false: stop, and keep what there is. May be NULL. */
    bool (*epoch)(void *user, size_t net, const struct kp_epoch *e);
    /* The state of network `net` after an epoch, and the models' values so far; see
     * kp_train_hooks. May be NULL. */
    bool (*save)(void *user, size_t net, const struct kp_net *best,
                 const struct kp_train_state *s);
};

/* The model's info gets "training": {"epochs": [..], ..} of each network. Owner:
 * kp_model_free(). Errors: those of kp_train(); of KOPT_EFAILED the model with the last good
 * values is there all the same (*out is not NULL). */
kopt_status kp_fit(const struct kp_lesson *l, const struct kp_fit_options *o,
                   const struct kp_fit_hooks *hooks, struct kp_model **out, kopt_error *err);

#endif
