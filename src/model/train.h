/* SPDX-License-Identifier: MIT */
/* Training one network that translates. Layer: model.
 *
 * Each batch is cut into shards of a fixed number, each with a gradient of its own, added up in
 * their order: so the result is the same bits for a seed whatever the number of threads. */
#ifndef KP_MODEL_TRAIN_H
#define KP_MODEL_TRAIN_H

#include "model/net.h"
#include "nn/adam.h"

/* Encoded problems. */
struct kp_examples {
    size_t n;              /* problems */
    const int32_t *tokens; /* [n][T] */
    const float *features; /* [n][F] */
    /* A problem's configurations worth learning, with their shares (adding up to 1): one for a
     * winner alone, several where others measured nearly as fast. Each epoch draws one. */
    const uint32_t *first;   /* [n + 1]: into the two below */
    const uint32_t *configs; /* [.][P] */
    const float *shares;     /* [.] */
    const int32_t *unknown;  /* [T]: the tokens that stand for an unknown number */
    const float *weights;    /* [n]: what a problem's loss counts; NULL: 1 each */
};

struct kp_train_plan {
    uint64_t seed;       /* not 0 */
    unsigned threads;    /* 0 = the machine's cores */
    unsigned shards;     /* of a batch; part of the result */
    size_t batch;        /* rows */
    unsigned epochs;     /* at most */
    unsigned patience;   /* epochs without a better validation loss before it ends */
    float smoothing;     /* of labels */
    float unknown;       /* share of input tokens that become unknown */
    struct kp_adam adam; /* total 0: the schedule's length is the plan's */
};

struct kp_epoch {
    unsigned number;   /* from 1 */
    double train_loss; /* per target, nats */
    double valid_loss;
    double valid_right; /* share of targets, teacher-forced */
    double seconds;
    bool best; /* so far */
};

struct kp_train_state;

struct kp_train_hooks {
    void *user;
    /* After each epoch; false: stop here (what was best so far is kept). May be NULL. */
    bool (*epoch)(void *user, const struct kp_epoch *e);
    /* After each epoch, when given: everything that is needed to go on from there. */
    bool (*save)(void *user, const struct kp_train_state *s);
};

/* Where a training stands; slabs are laid out as the net's parameters. */
struct kp_train_state {
    unsigned epoch; /* done */
    unsigned best_epoch;
    double best_loss;
    uint64_t step;
    float *values; /* now; the net's own slab has the best */
    float *m;
    float *v;
};

/* Starts from net->values, or from `resume` (may be NULL); leaves the best epoch's values in
 * the net. The same plan with more epochs goes on where a resumed one stopped, with the same
 * result as in one go. Errors: KOPT_EFAILED (a loss that is not a number: the net has the last
 * good values), KOPT_ENOMEM, KOPT_EINPUT (no examples). */
kopt_status kp_train(struct kp_net *net, const struct kp_examples *train,
                     const struct kp_examples *valid, const struct kp_train_plan *plan,
                     const struct kp_train_hooks *hooks, const struct kp_train_state *resume,
                     struct kp_epoch *best, kopt_error *err);

#endif
