/* SPDX-License-Identifier: MIT */
/* How good a predictor is. Layer: learn. */
#ifndef KP_LEARN_JUDGE_H
#define KP_LEARN_JUDGE_H

#include "model/dataset.h"
#include "model/model.h"

enum { KP_JUDGE_AT = 4 };
extern const size_t kp_judge_at[KP_JUDGE_AT];   /* exact match among the first 1, 5, 20, 50 */
extern const size_t kp_judge_kept[KP_JUDGE_AT]; /* best speed after 0, 1, 5, 20 measurements */

/* Of one problem: the truth's place among the predictions, from 1 (0: not among the first 50),
 * and the speed that was kept; `timed` false: nothing is known of that. */
struct kp_judge_case {
    size_t problem; /* of the data set */
    size_t exact_at;
    size_t canonical_at;
    bool timed;
    double kept[KP_JUDGE_AT];
};

struct kp_judge_options {
    const unsigned char *roles; /* [n_problems]: those with roles[p] == role are judged */
    unsigned char role;
    size_t width; /* of a model's beam; 0 = 100 */
    bool unconstrained;
    const struct kp_limits *limits;
    unsigned threads; /* 0 = all */
    void *user;
    /* Each problem in the data set's order, when all are judged; may be NULL. */
    void (*each)(void *user, const struct kp_judge_case *c);
};

/* Shares are of the problems that were judged; NaN where nothing is known. */
struct kp_judgement {
    size_t n;            /* problems */
    size_t n_answered;   /* for which anything was predicted */
    double forced;       /* positions right, given the true ones before them */
    double forced_nll;   /* nats for each position */
    double free_running; /* positions of the first prediction right */
    double exact[KP_JUDGE_AT];
    double canonical[KP_JUDGE_AT]; /* the same for canonical forms; NaN without rules */
    double valid;                  /* first predictions that satisfy the rules; NaN without */
    /* Of the problems whose configurations have times: best time / time of the best among the
     * first predictions. */
    size_t n_timed;
    double
        unmeasured; /* of these: first predictions that no row is about, nor of the same kernel
                     */
    double kept_mean[KP_JUDGE_AT];
    double kept_geometric[KP_JUDGE_AT]; /* geometric mean */
    double kept_p5[KP_JUDGE_AT];
    double seconds; /* for each prediction, which one thread makes */
};

/* Who is judged. */
struct kp_judged {
    const void *user;
    /* Its k best configurations for a problem of the data set, as value indices of `targets`.
     * Called by any thread. KOPT_ENOTFOUND: it has no answer. */
    kopt_status (*predict)(const void *user, size_t problem, size_t k,
                           struct kp_prediction *out, kopt_error *err);
    const struct kp_target *targets;
    size_t n_targets;
    const struct kp_kernel *rules; /* NULL: none */
    /* Whose positions count given the true ones before; NULL: those shares are NaN. */
    const struct kp_model *forced;
};

/* A problem's truth is the row of its least
 * time, else its first row (kp_judge_truth()); one of which all rows failed has none and does
 * not count. Of the options `width` and `unconstrained` are the predictor's own matter. Errors:
 * those of predict() but KOPT_ENOTFOUND, which counts as no answer; KOPT_EINPUT (there is no
 * such problem). The data set's targets are `targets` by name. */
kopt_status kp_judge_any(const struct kp_judged *who, const struct kp_dataset *d,
                         const struct kp_judge_options *o, struct kp_judgement *out,
                         kopt_error *err);
/* The same for a model. Errors: also those of kp_judge_check(). */
kopt_status kp_judge(const struct kp_model *m, const struct kp_dataset *d,
                     const struct kp_judge_options *o, struct kp_judgement *out,
                     kopt_error *err);

/* KOPT_EINPUT: the data set's fields or targets are not the model's. */
kopt_status kp_judge_check(const struct kp_model *m, const struct kp_dataset *d,
                           kopt_error *err);

/* first[n_problems + 1]: where each problem's rows begin. */
void kp_judge_rows(const struct kp_dataset *d, size_t *first);
/* Of the rows from `from` to before `to` that of the least time, else the first. */
size_t kp_judge_truth(const struct kp_dataset *d, size_t from, size_t to);

#endif
