/* SPDX-License-Identifier: MIT */
/* Shared by the session's own files. Layer: tune. */
#ifndef KP_TUNE_INTERNAL_H
#define KP_TUNE_INTERNAL_H

#include "base/hash.h"
#include "base/map.h"
#include "measure/lab.h"
#include "search/search.h"
#include "space/kernel.h"
#include "store/store.h"
#include "tune/asker.h"
#include "tune/session.h"

#include <stdatomic.h>

enum { WINDOW_MAX = 256, RACE_MAX = KOPT_RACE_MAX + 1, TOP_MAX = 64, TEXT_MAX = 1 << 16 };

/* A result that outlives the moment: strings are owned. */
struct kept {
    uint32_t *config;
    char *text; /* "BM=64,BN=32" */
    char *json;
    kopt_result r; /* its strings are owned, too; times only where they were kept */
    int64_t run;   /* of results from the store */
};

enum item_state { ITEM_COMPILING, ITEM_READY, ITEM_MEASURING, ITEM_DONE };

/* A configuration that was asked for and not yet told. */
struct item {
    int64_t id;
    enum item_state state;
    int64_t row; /* of the store, once it was begun; 0 = not yet */
    struct kept k;
    double cost; /* ITEM_DONE: what is told */
};

struct kp_session {
    kopt_tune_options o;
    struct kp_log log;
    struct kp_kernel *kernel;
    struct kp_bound *bound;
    size_t n_params;
    struct kp_lab *lab;
    bool data_ready;
    int64_t next_job;

    struct kp_store *store; /* NULL = none */
    struct kp_subject subject;
    char *subject_texts[4]; /* problem, data, hash, parameters: owned */
    int64_t run;
    struct kp_map known; /* config JSON -> index into `past` */
    struct kp_map raced; /* the same for races */
    struct kept *past;
    size_t n_past;
    size_t cap_past;

    uint32_t *first; /* the default configuration */
    struct kp_predictions predictions;
    struct kp_search *search;
    struct kp_asker *asker; /* while the search runs */
    uint64_t budget;
    uint32_t window;
    unsigned compilers;
    struct item items[WINDOW_MAX]; /* a ring in the order of asking */
    uint32_t head;
    uint32_t n_items;
    bool exhausted;
    uint64_t asked;
    uint32_t n_pending; /* asks without an answer yet */

    struct kept best;       /* of the search; outcome ok, .config NULL = none yet */
    struct kept first_kept; /* the default's */
    struct kept predicted;  /* the first prediction's */
    struct kept *top;       /* the fastest so far, ascending */
    size_t n_top;
    char *first_failure;

    kopt_tune_progress progress;
    const char *phase;
    int64_t begun_ns;
    int64_t last_progress_ns;
    int64_t recent_ns[64]; /* when the last measurements ended: the rate */
    uint64_t n_measured;
    int64_t search_ns;
    int64_t store_ns;
    int64_t dispatch_ns;          /* from a result's arrival to the next launch's message */
    uint64_t n_fed;               /* launches sent to the device */
    struct kp_lab_use search_use; /* of the lab, without the final race */
    int64_t woken_ns;             /* when the last wait ended */

    atomic_int stop;
    int stop_fd; /* an eventfd that kp_session_stop() adds to; never read */
    int wake_fd; /* another: that and the strategy's answers */

    kopt_tune_report report;
    kopt_metric *metrics;
    char **tied_owned;
    bool until_met; /* the search ended by o.until */
    bool interrupted;
    bool ran;
};

/* kept (kept.c) */
kopt_status kp_kept_set(struct kept *k, const kopt_result *r, const uint32_t *config,
                        size_t n_params, const char *text, const char *json, kopt_error *err);
kopt_status kp_kept_copy(struct kept *to, const struct kept *from, size_t n_params,
                         kopt_error *err);
void kp_kept_deinit(struct kept *k);

/* setup.c */
kopt_status kp_session_device(struct kp_session *s, kopt_error *err);
double kp_session_compile_limit_s(const struct kp_session *s);
/* Without what the default configuration may add to it. */
double kp_session_launch_limit_s(const struct kp_session *s);
/* Fills s->subject; the store does not know it yet. */
kopt_status kp_session_subject(struct kp_session *s, kopt_error *err);
/* Write inputs, run references, hand both to the lab; does nothing the second time. */
kopt_status kp_session_data(struct kp_session *s, kopt_error *err);
/* The lab's view of a configuration. Macros and arguments are the caller's to free with
 * kp_job_deinit(). Errors: KOPT_ERANGE (geometry), KOPT_EINPUT (a scalar). */
struct owned_job {
    struct kp_lab_job job;
    char **macros;
    size_t cap;
    struct kp_job_arg *args;
    kopt_status failed;
};
kopt_status kp_job_make(struct kp_session *s, const uint32_t *config, const char *entry,
                        const struct kp_geometry *g, struct owned_job *out, kopt_error *err);
void kp_job_deinit(struct owned_job *j);

/* loop.c */
kopt_status kp_session_search(struct kp_session *s, kopt_error *err);
void kp_session_report_progress(struct kp_session *s, bool force);
struct kp_lab_plan kp_session_plan(const struct kp_session *s);
/* Wait for one lab event; nothing after `timeout_ms`. */
kopt_status kp_session_wait(struct kp_session *s, int timeout_ms, struct kp_lab_event *ev,
                            kopt_error *err);
bool kp_session_stopped(const struct kp_session *s);

/* race.c */
kopt_status kp_session_race(struct kp_session *s, kopt_error *err);

/* report.c */
/* The expected configurations that the budget allows behind the default, which may be one of
 * them. */
size_t kp_session_n_tried(const struct kp_session *s);
kopt_status kp_session_report(struct kp_session *s, kopt_error *err);

#endif
