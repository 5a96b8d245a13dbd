/* SPDX-License-Identifier: MIT */
/* Many runs of several methods on several recorded spaces, and what they come to. Layer:
 * replay. kopt_compare() under its public types; handles are struct kp_recording and struct
 * kp_traces.
 *
 * Each run has its own place in one table, so the figures do not depend on which thread makes
 * it or when (compare.c makes the runs, compare_stats.c the figures). */
#ifndef KP_REPLAY_COMPARE_H
#define KP_REPLAY_COMPARE_H

#include "replay/recording.h"
#include "replay/traces.h"
#include "search/prior.h"

enum { KP_COMPARE_TENTHS = 10 };

/* One run. */
struct kp_compare_run {
    bool done;
    bool has_stop; /* `until` was reached */
    float score;
    float time_score;
    float gap;
    float near; /* evaluations; the budget where never */
    float evaluations;
    float search_s; /* for an evaluation; NaN = not known */
    float worst_search_s;
    float stop_n;
    float stop_gap; /* (best - optimum) / best */
    float estimate[KP_COMPARE_TENTHS];
    float actual[KP_COMPARE_TENTHS];
    float by_evaluations[KOPT_CURVE_POINTS];
    float by_time[KOPT_CURVE_POINTS];
};

struct kp_compare_method {
    char *name;     /* "bayes+prior", "kt:pso" */
    char *strategy; /* "bayes"; NULL = from traces */
    bool prior;
    bool foreign;
};

struct kp_compare {
    kopt_compare_report report; /* the first member: a report is freed by its address */
    kopt_compare_options o;
    struct kp_compare_method *methods;
    size_t n_methods;
    size_t repeats;              /* places for each method and space: traces may have more */
    struct kp_prior *priors;     /* by space; n 0 = none */
    struct kp_compare_run *runs; /* [method][space][repeats] */
    const char **names;
    int *foreign;
    const kopt_recording_info **infos;
    kopt_compare_cell *cells;
    kopt_compare_cell *total;
    kopt_curve *by_evaluations;
    kopt_curve *by_time;
    kopt_calibration *calibration;
    double *budget_s;
    uint64_t *budget;
};

static inline struct kp_compare_run *kp_compare_runs(const struct kp_compare *c, size_t method,
                                                     size_t space)
{
    return c->runs + (method * c->o.n_spaces + space) * c->repeats;
}

static inline const struct kp_recording *kp_compare_space(const struct kp_compare *c, size_t i)
{
    return (const struct kp_recording *)(const void *)c->o.spaces[i];
}

kopt_status kp_compare(const kopt_compare_options *o, kopt_compare_report **out,
                       kopt_error *err);
void kp_compare_free(kopt_compare_report *r);

/* compare_stats.c: the report's tables of the runs. Errors: KOPT_ENOMEM. */
kopt_status kp_compare_stats(struct kp_compare *c, kopt_error *err);

#endif
