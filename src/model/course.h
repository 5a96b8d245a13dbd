/* SPDX-License-Identifier: MIT */
/* Teaching one network by a course: examples by number, and what their loss is. Layer: model.
 *
 * Each batch is cut into shards of a fixed number, each with a gradient of its own, added up in
 * their order: so the result is the same bits for a seed whatever the number of threads. */
#ifndef KP_MODEL_COURSE_H
#define KP_MODEL_COURSE_H

#include "model/train.h"

/* Some examples of one batch. */
struct kp_course_part {
    const uint32_t *examples;
    size_t n;
    size_t batch;       /* examples of the whole batch: losses are a mean over them */
    uint64_t epoch_key; /* the same for an epoch: what is drawn for an example depends on this
                           and its number alone */
    uint64_t key;       /* of this part, for dropout; not 0 */
    float smoothing;
    float unknown;
};

/* Functions are called by any thread, and do not change the course. */
struct kp_course {
    const void *user;
    size_t n;       /* examples to learn from */
    size_t n_valid; /* pieces that the validation is cut in */
    double weight;  /* of all examples */
    /* Floats of memory for `learn` with `n` examples at most, and for `check`. */
    size_t (*work)(const struct kp_course *c, const struct kp_net *net, size_t n);
    /* The part's share of the batch's loss, and its gradient, which is added to `grad`. */
    void (*learn)(const struct kp_course *c, const struct kp_net *net,
                  const struct kp_course_part *p, float *grad, float *work,
                  struct kp_net_score *score);
    /* The share of the validation's loss that piece i has. */
    void (*check)(const struct kp_course *c, const struct kp_net *net, size_t i, float *work,
                  struct kp_net_score *score);
};

/* As kp_train(), which is this with a course of translations. */
kopt_status kp_course_teach(struct kp_net *net, const struct kp_course *course,
                            const struct kp_train_plan *plan,
                            const struct kp_train_hooks *hooks,
                            const struct kp_train_state *resume, struct kp_epoch *best,
                            kopt_error *err);

/* For what is drawn: splitmix64's finish (Steele, Lea and Flood, 2014), and a number in [0, 1)
 * from its bits. */
static inline uint64_t kp_course_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}
static inline double kp_course_unit(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}

#endif
