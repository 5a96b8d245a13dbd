/* SPDX-License-Identifier: MIT */
/* Predictors that a network must beat: the majority and the nearest neighbours. Layer: learn.
 *
 * Both know the true configurations (kp_judge_truth()) of the problems that are for training,
 * and nothing of the rules. A problem that is one of those is answered as if it were not. */
#ifndef KP_LEARN_BASELINE_H
#define KP_LEARN_BASELINE_H

#include "learn/judge.h"

enum { KP_NEIGHBOURS = 15 };

struct kp_baseline;

/* `use[p]` != 0: the problem is for training. `encoder` gives the features in which distances
 * are taken. `d` is borrowed. Owner: kp_baseline_free(). Errors: KOPT_EINPUT (no problem for
 * training), KOPT_ENOMEM. */
kopt_status kp_baseline_new(const struct kp_dataset *d, const unsigned char *use,
                            const struct kp_encoder *encoder, struct kp_baseline **out,
                            kopt_error *err);
void kp_baseline_free(struct kp_baseline *b);

/* As kp_judged.predict with a struct kp_baseline; values are those of the data set.
 *
 * The majority: the most frequent configurations, the most frequent first.
 * Neighbours: the KP_NEIGHBOURS nearest problems in Euclidean distance vote, each with 1/rank
 * for its configuration; the configurations in order of their votes, then those of the problems
 * behind in order of distance, as long as k are wanted. Ties: the earlier problem first. */
kopt_status kp_baseline_majority(const void *user, size_t problem, size_t k,
                                 struct kp_prediction *out, kopt_error *err);
kopt_status kp_baseline_neighbours(const void *user, size_t problem, size_t k,
                                   struct kp_prediction *out, kopt_error *err);

#endif
