/* SPDX-License-Identifier: MIT */
/* Tuning sessions: search a kernel's parameters by measurement. */
#ifndef KOPT_TUNE_H
#define KOPT_TUNE_H

#include <kopt/status.h>
#include <kopt/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kopt_tuner kopt_tuner;

typedef enum kopt_log_level {
    KOPT_LOG_ERROR,
    KOPT_LOG_WARN,
    KOPT_LOG_INFO,
    KOPT_LOG_DEBUG
} kopt_log_level;

enum {
    KOPT_SAMPLES_MAX = 1000, /* of one configuration */
    KOPT_RACE_MAX = 15       /* configurations in the final race, beside the default */
};

/* What is known once a session has been set up, before anything is measured. */
typedef struct kopt_tune_start {
    const char *kernel;
    const char *problem;     /* {"K":512,..} */
    const char *device;      /* "cuda:0" */
    const char *device_name; /* "NVIDIA H200" */
    const char *strategy;
    const char *store; /* path, "" = none */
    double cartesian;
    uint64_t valid;
    uint64_t budget;              /* evaluations at most; 0 = no limit but the space */
    uint64_t known;               /* configurations of this subject already in the store */
    unsigned compilers;           /* compile workers */
    const char *model;            /* path, "" = none */
    uint64_t predictions;         /* of the model, that are tried behind the default */
    uint64_t predictions_dropped; /* that are not in this space */
    const char *prior;      /* whose results are the prior: "gemm K=512 .. on NVIDIA A4000",
                               or the path of a file; "" = none */
    uint64_t prior_results; /* of these, that are in this space */
    uint64_t prior_first;   /* of these, that are tried behind the default */
} kopt_tune_start;

typedef struct kopt_tune_progress {
    uint64_t done;  /* evaluations, those from the store included */
    uint64_t total; /* that there will be; 0 = not known */
    uint64_t from_store;
    uint64_t by_outcome[KOPT_OUT_COUNT];
    double elapsed_s;
    double eta_s;            /* NaN = not known */
    double per_minute;       /* measured configurations, over the last while */
    double best_ns;          /* NaN = none yet */
    double first_ns;         /* the default configuration's median; NaN = not known */
    const char *best_config; /* "BM=64,BN=32"; "" = none yet */
    double remaining;  /* expected (best - optimum) / best of the space; NaN = not known or not
                          asked for */
    const char *phase; /* "setting up", "writing the inputs", "computing the reference",
                        "searching", "final race" */
} kopt_tune_progress;

/* Where the wall time of a session went: device_s and idle_s add up to wall_s. Of several
 * devices every share of device_s and idle_s is the mean over them. */
typedef struct kopt_tune_split {
    double wall_s;
    double device_s;    /* the device's runner was at work: loading, copies, launches, checks */
    double launch_s;    /* part of device_s: launches, with restoring and emptying caches */
    double idle_s;      /* it had nothing to do: waiting for the compiler or the search */
    double compile_s;   /* summed over all compile workers, pauses left out */
    double search_s;    /* inside the strategy */
    double store_s;     /* inside the store */
    double load_s;      /* part of device_s: the driver loading images */
    double check_s;     /* part of device_s: comparing outputs with the references */
    double overhead_ms; /* per configuration launched in the search, all that holds the device
                           up but launches: loading, checks, sensors and messages, and from a
                           result to the next launch */
    double kernel_s;    /* part of launch_s: the kernels themselves, by the device's clock; the
                           rest restores inputs, fills outputs and empties caches */
} kopt_tune_split;

typedef struct kopt_metric {
    const char *name;
    double best;  /* at the best configuration's median */
    double first; /* at the default configuration's; NaN = it failed */
} kopt_metric;

typedef struct kopt_tune_report {
    kopt_result best;      /* outcome ok; .id 0 and config "" when nothing was valid. The
                              race's own where there was one, as is `first` */
    const char *best_text; /* "BM=64,BN=32" */
    kopt_result first;     /* the default configuration */
    const char *first_text;
    double speedup;     /* default / best, medians of the final race; NaN = no default */
    double speedup_low; /* its 95 % interval */
    double speedup_high;
    const char *const *tied; /* configurations that the race cannot tell from the best: the
                                lower bound of their time over its is at most 1 */
    size_t n_tied;
    const kopt_metric *metrics;
    size_t n_metrics;
    kopt_tune_progress progress; /* final counts */
    kopt_tune_split split;
    int64_t subject; /* in the store; 0 = none */
    int64_t run;
    int checked; /* 1: the outputs of best and first were compared with references; 0: one of
                    them, or both, were only timed */
    int interrupted;           /* stopped by kopt_tuner_stop() or a time budget of the caller */
    const char *first_failure; /* message of the first result that was not ok; "" = all were */
    const char *best_from;     /* "default", "model", "prior", "search"; "" when nothing was
                                  valid */
    const char *ended;         /* "budget", "exhausted", "until", "stopped" */
    uint64_t best_rank;     /* its place among the model's predictions, from 1; 0 = no place */
    kopt_result predicted;  /* the model's first prediction, the race's own where it ran there;
                               config "" when there is none or it was not reached */
    double predicted_share; /* the best's time over its time: what it keeps of the best speed;
                               NaN = not known, it failed */
} kopt_tune_report;

/* Called on the thread that runs the session; may be NULL. Structs and strings are borrowed,
 * valid during the call. */
typedef struct kopt_tune_callbacks {
    void (*start)(void *user, const kopt_tune_start *s);
    void (*result)(void *user, const kopt_result *r, const char *config_text);
    void (*progress)(void *user, const kopt_tune_progress *p); /* 5 times a second at most */
    void (*log)(void *user, kopt_log_level level, const char *line);
    void *user;
} kopt_tune_callbacks;

/* Everything is borrowed until kopt_tuner_free(). Zero means the default throughout. */
typedef struct kopt_tune_options {
    size_t struct_bytes;        /* sizeof(kopt_tune_options), set by kopt_tune_options_init() */
    const char *kernel;         /* path of the kernel file */
    const char *const *problem; /* "M=512", .. */
    size_t n_problem;
    const char *device;       /* "cuda:0"; NULL: the first that fits the kernel's language */
    const char *store;        /* path; NULL: results live in memory only */
    const char *strategy;     /* NULL: chosen by the size of the space */
    const char *command;      /* kept with the run; NULL = "" */
    uint64_t seed;            /* 0 = 1 */
    uint64_t max_evaluations; /* 0: the whole space up to 1,000 configurations, else 1,000 */
    double max_fraction;      /* of the valid configurations, in (0, 1]; 0 = no limit */
    double max_seconds;       /* wall time; 0 = no limit */
    unsigned compilers;       /* compile workers; 0 = one for each core */
    double compile_timeout_s; /* 0 = 120 */
    double launch_timeout_s;  /* 0 = 10, or 20 times the default configuration's if longer */
    unsigned min_samples;     /* launches of a promising configuration; 0 = 7 */
    unsigned max_samples;     /* 0 = 50; KOPT_SAMPLES_MAX at most, as is min_samples */
    double precision;     /* half width of the interval over the median to stop at; 0 = 0.01 */
    int flush;            /* -1 no cache flush between launches, 0 = yes */
    int64_t flush_bytes;  /* 0 = from the device */
    int check;            /* -1 do not check results, 0 = yes */
    int fresh;            /* 1: measure again what the store already has */
    unsigned race;        /* configurations in the final race; 0 = 5, KOPT_RACE_MAX at most */
    int64_t memory_bytes; /* device memory to use at most; 0 = all that is free */
    const char
        *compile_cache; /* folder of compiled images, made when it is missing: a later
                           session with the same source, macros and device does not compile
                           them again; not for devices that are CPUs. NULL: none */
    const char
        *model;         /* path of a model file (kopt/predict.h): what it predicts for the
                           problem  and the device is tried behind the default configuration, the
                           most promising first; then the search goes on from there. NULL: none */
    unsigned model_top; /* predictions that are tried; 0 = 20, 4096 at most */
    double until;       /* stop when the configurations that were not tried are expected to save
                           less than this share of the best time, in (0, 1); 0 = never */
    const char *prior;  /* NULL: where no model is given and the store has results of this
                           kernel for other problems or on other devices, the nearest of those
                           are the prior; "none": not that either; a path: those of a recording
                           (kopt/replay.h) */
    unsigned prior_first; /* configurations of the prior that are tried; 0 = 10 */
    kopt_tune_callbacks callbacks;
} kopt_tune_options;

KOPT_API void kopt_tune_options_init(kopt_tune_options *o);

/* Set a session up: kernel, device, space, store, data. Owner: kopt_tuner_free().
 * Errors: KOPT_EINPUT (kernel file), KOPT_EUSAGE (problem, options), KOPT_EENV (device),
 * KOPT_EFAILED (empty space: names the rule), those of the store, KOPT_ENOMEM. Of the model:
 * those of kopt_model_open(), KOPT_EINPUT (it is of another kernel, or of one with other
 * parameters, values or sizes). */
KOPT_API KOPT_MUST_USE kopt_status kopt_tuner_new(const kopt_tune_options *o, kopt_tuner **out,
                                                  kopt_error *err);
/* Search to the end of the budget, then the final race; once. The report is borrowed from the
 * tuner. Not in a program that ignores SIGCHLD or reaps all children: how workers ended is then
 * not known. KOPT_OK also when interrupted by kopt_tuner_stop(); the report says so.
 * Errors: KOPT_EFAILED (nothing valid was found: the report has the counts and the first
 * failure; or a reference kernel crashed or hung), KOPT_EDEVICE (the device is gone),
 * KOPT_EIO/KOPT_EFULL/KOPT_EBUSY (the store; what was measured before is kept), KOPT_EUSAGE
 * (it ran before), KOPT_ENOMEM. Of data and references, which are made when the first
 * configuration is to be compiled: KOPT_EINPUT (a fill, a tolerance, a reference's source, one
 * that gives nothing but NaN: with its line), KOPT_ERANGE (sizes), KOPT_EENV (no C compiler),
 * KOPT_ECRASH and KOPT_ETIMEOUT (a C reference; it has 600 s), KOPT_EFULL (device memory or
 * disk), KOPT_EIO. */
KOPT_API KOPT_MUST_USE kopt_status kopt_tuner_run(kopt_tuner *t,
                                                  const kopt_tune_report **report,
                                                  kopt_error *err);
/* End the session soon: what is in flight is abandoned, the state is saved. May be called from
 * a signal handler or another thread. */
KOPT_API void kopt_tuner_stop(kopt_tuner *t);
KOPT_API void kopt_tuner_free(kopt_tuner *t);

/* The names of the strategies, one at a time from 0; NULL past the end. `summary` may be NULL.
 */
KOPT_API const char *kopt_strategy(size_t i, const char **summary);

#ifdef __cplusplus
}
#endif
#endif
