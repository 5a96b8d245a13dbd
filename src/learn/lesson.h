/* SPDX-License-Identifier: MIT */
/* A data set made ready: who is for training, what is worth learning of each problem, and the
 * inputs of networks. Layer: learn. */
#ifndef KP_LEARN_LESSON_H
#define KP_LEARN_LESSON_H

#include "model/dataset.h"
#include "model/encoder.h"
#include "model/train.h"
#include "space/kernel.h"

struct kp_lesson_options {
    struct kp_split split; /* learn_valid: the problems for validation are learned from, too */
    /* Of a problem whose configurations have times: those within best * (1 + near) are worth
     * learning, each by exp(-(time / best - 1) / (near / 3)). 0: the best alone. Without times
     * all rows are alike. */
    double near_best;
    size_t repeat; /* how often a training problem stands among the examples: each draws one of
                      its configurations; 0 = 8 where configurations have times, else 1 */
    /* What a problem that only helps training counts beside one of the data; 0 = 1. */
    double extra_weight;
    const struct kp_kernel *rules; /* NULL: none */
    const struct kp_limits *limits;
    bool unbound; /* the rules use numbers of a device that are not known: what they forbid may
                     be allowed all the same */
};

struct kp_lesson {
    const struct kp_dataset *data; /* borrowed */
    struct kp_encoder *encoder;
    unsigned char *roles;   /* [n_problems]: enum kp_role */
    uint64_t *hashes;       /* [n_problems]: by which else to cut them, kp_split_hashes() with
                               another salt than the roles have */
    double extra_weight;    /* of a problem that only helps training */
    size_t count[KP_ROLES]; /* problems of each role */
    size_t n_extra;         /* of those for training, problems that only help */
    size_t n_without;       /* problems of which nothing is worth learning: all failed */
    size_t repeat;          /* how often a training problem stands among the examples */
    size_t n_constant;      /* targets with one value only */
    size_t n_checked; /* problems for training, at most some hundreds evenly spread, whose best
                         configuration was put to the rules .. */
    size_t n_forbidden; /* .. and those whose best one they forbid */
    size_t n_canonical; /* rows whose parameters without effect were put in canonical form */
    struct kp_examples examples[2]; /* KP_ROLE_TRAIN, KP_ROLE_VALID */
};

/* `data` outlives it. Owner: kp_lesson_free(). Errors: those of kp_split(), KOPT_EINPUT (no
 * problem to train or validate with, or all of them alike; the rules forbid the best
 * configuration of each), KOPT_ENOMEM. */
kopt_status kp_lesson_new(const struct kp_dataset *data, const struct kp_lesson_options *o,
                          struct kp_lesson **out, kopt_error *err);
void kp_lesson_free(struct kp_lesson *l);

#endif
