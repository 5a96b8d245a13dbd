/* SPDX-License-Identifier: MIT */
/* Recorded spaces: search them again without a device, and compare strategies on them. */
#ifndef KOPT_REPLAY_H
#define KOPT_REPLAY_H

#include <kopt/status.h>
#include <kopt/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- recordings ------------------------------------------------------------------------------
 */

/* A space in which configurations were measured, with their times and what measuring them took.
 * Its valid configurations are those that were recorded, whatever became of them. It does not
 * change, so any number of threads may use it at once. */
typedef struct kopt_recording kopt_recording;

typedef struct kopt_recording_info {
    const char *path;
    const char *format; /* "Kernel Tuner", "T4", "kopt" */
    const char *name;   /* of the file without its folder and endings; of a store, the kernel,
                           its problem and device */
    const char *kernel; /* "" = not said, as are the next two */
    const char *device;
    const char *problem; /* {"K":512,..}, or as the file says it */
    size_t n_params;
    double cartesian;
    uint64_t n; /* configurations */
    uint64_t by_outcome[KOPT_OUT_COUNT];
    double best_ns;        /* the optimum; NaN: none of them is ok */
    double median_ns;      /* of those that are ok */
    const char *best_text; /* "BM=64,BN=32"; "" = none */
    double cutoff_ns;      /* best + 5 % of the way to the median */
    uint64_t budget;       /* evaluations after which random search is expected there */
    double evaluation_s;   /* what one costs: the median of compiling and measuring together */
    double compile_share;  /* of the time that all of them took; NaN = not recorded */
    uint64_t left_out;     /* entries that could not be read, or were of no use */
    int cut;               /* 1: the file ends in the middle */
} kopt_recording_info;

/* path: a cache file of Kernel Tuner, whole, open or cut; T4 results; a store of kopt. The
 * first two may be packed by gzip. A store holds several subjects: "store.db#3" names the one
 * with that number (of `kopt store list`); without it there must be one alone. Owner:
 * kopt_recording_close(). Errors: KOPT_EIO, KOPT_EINPUT (none of these formats, with line and
 * column; no configuration), KOPT_EUSAGE (several subjects: the hint names them),
 * KOPT_ENOTFOUND (no such subject), KOPT_ERANGE (too large), KOPT_ECORRUPT (store),
 * KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_recording_open(const char *path, kopt_recording **out,
                                                       kopt_error *err);
KOPT_API void kopt_recording_close(kopt_recording *r);
/* Borrowed from the recording. */
KOPT_API const kopt_recording_info *kopt_recording_get(const kopt_recording *r);

/* The subjects of a store that have results, oldest first; of any other file, and of a path
 * that names one, none: *n = 0. Owner of *ids: kopt_text_free(). Errors: those above. */
KOPT_API KOPT_MUST_USE kopt_status kopt_recording_subjects(const char *path, int64_t **ids,
                                                           size_t *n, kopt_error *err);

/* --- one search ------------------------------------------------------------------------------
 */

typedef enum kopt_end {
    KOPT_END_BUDGET,    /* the budget is used up */
    KOPT_END_EXHAUSTED, /* every configuration was evaluated */
    KOPT_END_UNTIL,     /* what is expected to remain is less than was asked for */
    KOPT_END_STOPPED    /* by the caller */
} kopt_end;
/* "budget", "exhausted", "until", "stopped"; never NULL. */
KOPT_API const char *kopt_end_name(kopt_end e);

/* One evaluation, in the order of asking. */
typedef struct kopt_replay_step {
    uint64_t n;              /* from 1 */
    const char *config;      /* {"BM":64,..} */
    const char *config_text; /* "BM=64,.." */
    kopt_outcome outcome;
    double time_ns;   /* NaN unless ok */
    double best_ns;   /* so far; NaN = none yet */
    double clock_s;   /* simulated: when its result came */
    double remaining; /* expected (best - optimum) / best; NaN = not known or not asked for */
} kopt_replay_step;

/* Zero means the default throughout. */
typedef struct kopt_replay_options {
    size_t struct_bytes;      /* set by kopt_replay_options_init() */
    const char *strategy;     /* NULL: as kopt_tuner_new() chooses */
    uint64_t seed;            /* 0 = 1 */
    uint64_t max_evaluations; /* 0: no limit but the space, unless nothing limits the run: then
                                 the recording's own budget */
    double max_fraction;      /* of the configurations, in (0, 1]; 0 = no limit */
    double max_seconds;       /* simulated; 0 = no limit. What has begun is ended */
    double until;             /* stop when the expected remaining gain is less than this, in
                                 (0, 1); 0 = never */
    unsigned window;          /* evaluations asked for and not yet told; 0 = one for each
                                 compiler; 256 at most */
    unsigned compilers;       /* that work at once, ahead of the device; 0 = 1: then nothing
                                 overlaps */
    const kopt_recording *const *priors; /* of the same kernel: their results are the prior; not
                                            the recording itself */
    size_t n_priors;
    unsigned prior_first; /* configurations of the prior that are tried first; 0 = 10 */
    /* Called after each evaluation; returns 0 to stop. May be NULL. Borrowed strings. */
    int (*step)(void *user, const kopt_replay_step *s);
    void *user;
} kopt_replay_options;

KOPT_API void kopt_replay_options_init(kopt_replay_options *o);

typedef struct kopt_replay_report {
    const char *strategy; /* static */
    kopt_end ended;
    uint64_t evaluations;
    uint64_t by_outcome[KOPT_OUT_COUNT];
    double best_ns;   /* NaN: none was ok */
    char *best;       /* {"BM":64,..}, owned by the report; "" = none */
    char *best_text;  /* "BM=64,..", the same */
    double gap;       /* (best - optimum) / optimum; NaN: none was ok */
    uint64_t best_at; /* number of the evaluation that found the best; 0 = none */
    uint64_t near_at; /* of the first within 1 % of the optimum; 0 = none */
    double clock_s;   /* simulated */
    double search_s;  /* real time inside the strategy */
    double remaining; /* the last estimate; NaN = not known or not asked for */
    uint64_t prior;   /* configurations of the prior that are in this space */
} kopt_replay_report;

/* Deterministic for a seed but for search_s. Owner of what the report holds:
 * kopt_replay_report_free(). Errors: KOPT_EUSAGE (options, no such strategy), KOPT_EINPUT (a
 * prior with other parameters), KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_replay(const kopt_recording *r,
                                               const kopt_replay_options *o,
                                               kopt_replay_report *report, kopt_error *err);
KOPT_API void kopt_replay_report_free(kopt_replay_report *report);

/* --- many searches ---------------------------------------------------------------------------
 */

enum {
    KOPT_CURVE_POINTS = 100,  /* of a curve over the budget */
    KOPT_CALIBRATION_BINS = 7 /* of estimates: under 0.5, 1, 2, 5, 10, 20 % and over */
};

/* Runs of one method on one space that somebody else made, to be judged like our own: the
 * result and cost of each evaluation in the order in which they were made. Read from a file by
 * kopt_traces_open(). */
typedef struct kopt_traces kopt_traces;
/* One JSON object a line: {"space":NAME,"method":NAME,"seed":S,"times_ns":[..],"costs_s":[..]};
 * a time is null where it failed, costs_s may be left out. Owner: kopt_traces_close().
 * Errors: KOPT_EIO, KOPT_EINPUT (line and column), KOPT_ERANGE, KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_traces_open(const char *path, kopt_traces **out,
                                                    kopt_error *err);
KOPT_API void kopt_traces_close(kopt_traces *t);

typedef struct kopt_compare_options {
    size_t struct_bytes; /* set by kopt_compare_options_init() */
    const kopt_recording *const *spaces;
    size_t n_spaces;
    /* Names of strategies; "NAME+prior" gives it, as its prior, the results of the other
     * recordings here (spaces and priors) of the same kernel and parameters. NULL entries are
     * not allowed. n_methods 0: the default strategy, and "random". */
    const char *const *methods;
    size_t n_methods;
    const kopt_recording *const *priors; /* used as priors only */
    size_t n_priors;
    const kopt_traces *const *traces; /* of others; each method in them is one more */
    size_t n_traces;
    unsigned repeats;   /* 0 = 30; seeds are seed, seed + 1, .. */
    uint64_t seed;      /* 0 = 1 */
    unsigned threads;   /* 0 = one for each core */
    unsigned window;    /* as in kopt_replay_options */
    unsigned compilers; /* the same */
    double until;       /* the same; a run goes on to its budget all the same, and what it would
                           have come to is said apart */
    double budget;      /* in budgets of the recording (kopt_recording_info); 0 = 1 */
    /* Called now and then on the calling thread, with the runs done; returns 0 to stop. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} kopt_compare_options;

KOPT_API void kopt_compare_options_init(kopt_compare_options *o);

/* Best so far, as its distance to the optimum: (best - optimum) / optimum, at 1/100, 2/100 ..
 * of the budget; until something was found, that of the median. Over the runs. */
typedef struct kopt_curve {
    double mean[KOPT_CURVE_POINTS];
    double low[KOPT_CURVE_POINTS]; /* 10th percentile */
    double median[KOPT_CURVE_POINTS];
    double high[KOPT_CURVE_POINTS]; /* 90th */
} kopt_curve;

typedef struct kopt_stop_stat {
    double evaluations; /* mean number of evaluations at the stop, or of the whole budget */
    double stopped;     /* share of runs that stopped before their budget */
    double gap;         /* mean of (best - optimum) / best at the stop, of those */
    double kept;        /* share of those in which it was less than `until` */
} kopt_stop_stat;

/* How estimates of what remains compare with what did: made at each tenth of the budget. */
typedef struct kopt_calibration {
    uint64_t n[KOPT_CALIBRATION_BINS];
    double estimate[KOPT_CALIBRATION_BINS]; /* mean; NaN = none */
    double actual[KOPT_CALIBRATION_BINS];
} kopt_calibration;

/* One method on one space, or over all of them (means over spaces). */
typedef struct kopt_compare_cell {
    uint64_t runs;      /* 0: none, the rest is NaN */
    double score;       /* over evaluations: 0 = random search, 1 = the optimum at once */
    double score_error; /* standard error of the mean over the runs */
    double time_score;  /* over simulated time */
    double time_score_error;
    double hits;        /* share of runs that end within 1 % of the optimum */
    double cutoff_hits; /* within 5 % of the way from the optimum to the median */
    double gap;         /* mean of (best - optimum) / optimum at the end */
    double worst_gap;
    double near;        /* mean number of evaluations to within 1 %, the budget where never */
    double evaluations; /* mean number made */
    double search_s;    /* real time inside the strategy for an evaluation; NaN = not known */
    double worst_search_s; /* the largest of any one evaluation */
    uint64_t prior;        /* configurations of its prior that are in this space */
    kopt_stop_stat stop;
} kopt_compare_cell;

typedef struct kopt_compare_report {
    size_t n_methods;
    size_t n_spaces;
    const char *const *methods;
    const int *foreign; /* by method: 1 = from traces */
    const kopt_recording_info *const *spaces;
    const kopt_compare_cell *cells;      /* [n_methods][n_spaces] */
    const kopt_compare_cell *total;      /* [n_methods] */
    const kopt_curve *by_evaluations;    /* [n_methods][n_spaces] */
    const kopt_curve *by_time;           /* the same; the budget is budget * evaluation_s */
    const kopt_calibration *calibration; /* [n_methods] */
    const double *budget_s;              /* [n_spaces] */
    const uint64_t *budget;              /* [n_spaces] evaluations */
    uint64_t repeats;
    double wall_s;
    int stopped; /* 1: by progress(); what was done until then is in it */
} kopt_compare_report;

/* Every method on every space, `repeats` times; the figures do not depend on the number of
 * threads, apart from wall and search times. The recordings must outlive the report. Owner:
 * kopt_compare_report_free(). Errors: KOPT_EUSAGE (no spaces, no such strategy, a space without
 * two successes), KOPT_EINPUT (a trace of a space that is not here), KOPT_ENOMEM, KOPT_EIO. */
KOPT_API KOPT_MUST_USE kopt_status kopt_compare(const kopt_compare_options *o,
                                                kopt_compare_report **out, kopt_error *err);
KOPT_API void kopt_compare_report_free(kopt_compare_report *r);

#ifdef __cplusplus
}
#endif
#endif
