/* SPDX-License-Identifier: MIT */
/* A lesson for networks that rank: configurations with their times. Layer: learn.
 *
 * All problems that are not for tests are cut into parts; network k does not learn from part k,
 * whose problems of the data itself are its validation. So there are problems that each network
 * has not seen, and what the networks are off by there is what the correction of
 * model/ranking.h is made of. What the split keeps together is in one part, and so are a
 * problem that only helps and its twin. */
#ifndef KP_LEARN_RANKS_H
#define KP_LEARN_RANKS_H

#include "learn/lesson.h"
#include "model/course.h"
#include "model/ranking.h"

struct kp_ranks {
    const struct kp_lesson *lesson;
    struct kp_ranking *ranking; /* configurations and features; no sites yet */
    size_t n_inputs;            /* F: coordinates and features of pairs */
    size_t n_parts;             /* each has problems of the data itself */
    /* Problems that are learned from. */
    size_t n;
    uint32_t *problem; /* [n]: of the data set */
    uint32_t *part;    /* [n] */
    bool *helps;       /* [n]: only to learn from */
    uint32_t *first;   /* [n + 1]: into the rows below */
    size_t n_most;     /* rows of the problem with most */
    /* Rows: configurations that were measured, or failed. */
    int32_t *number; /* [rows]: of the configuration */
    float *wanted;   /* [rows]: ln(time / best), at most 2; 2 where it failed */
    float *x;        /* [rows][F] */
};

/* Do most problems have so many configurations with times that ranking them is what to do? */
bool kp_ranks_suit(const struct kp_dataset *d);

/* Of problems with times of two configurations at least; `nets` will be trained. `lesson`
 * outlives it. Owner: kp_ranks_free(). Errors: KOPT_EINPUT (too few problems with times, too
 * many configurations or rows), those of binding rules, KOPT_ENOMEM. */
kopt_status kp_ranks_new(const struct kp_lesson *lesson, const struct kp_kernel *rules,
                         const struct kp_limits *limits, size_t n_raw, size_t nets,
                         struct kp_ranks **out, kopt_error *err);
void kp_ranks_free(struct kp_ranks *r);

/* What network k learns. `memory` is the caller's and outlives the course. */
struct kp_ranks_course {
    struct kp_course course;
    const struct kp_ranks *ranks;
    uint32_t *examples; /* [.][2]: problem, slice of its rows */
    uint32_t *checks;   /* problems of the validation */
    size_t n_checks;
};
kopt_status kp_ranks_course(const struct kp_ranks *r, size_t k, struct kp_ranks_course *out,
                            kopt_error *err);
void kp_ranks_course_deinit(struct kp_ranks_course *c);

/* The model's ranking gets the correction, if one makes held-out problems better, as each is
 * predicted from the others. Errors: KOPT_ENOMEM. */
kopt_status kp_ranks_correct(const struct kp_ranks *r, struct kp_model *m, kopt_error *err);

#endif
