/* SPDX-License-Identifier: MIT */
/* The store of measurements, and the choice of a configuration at run time. docs/store.md has
 * the schema. */
#ifndef KOPT_STORE_H
#define KOPT_STORE_H

#include <kopt/status.h>
#include <kopt/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kopt_store kopt_store;       /* one thread at a time */
typedef struct kopt_selector kopt_selector; /* read-only: any number of threads */

/* What was measured, apart from the configuration. Borrowed strings. */
typedef struct kopt_subject {
    int64_t id;
    const char *kernel;
    const char *kernel_path;
    const char *kernel_hash;
    const char *backend;
    const char *device;
    const char *arch;
    const char *driver;
    const char *compiler;
    const char *problem; /* {"K":512,"M":512} */
    const char *data;
    int64_t n_results;
    int64_t n_ok;
    double best_ns; /* NaN = none */
    int64_t last_us;
    const char *params; /* ["BM","BN"]: in the order of the kernel file; "" = not known */
} kopt_subject;

typedef struct kopt_run {
    int64_t id;
    int64_t subject;
    const char *command;
    const char *strategy;
    const char *version;
    const char *host;
    const char *state;   /* "running", "done", "interrupted", "failed", "killed" (its process
                            ended without a word) */
    const char *summary; /* JSON; "" = not known */
    int64_t seed;
    int64_t begun_us;
    int64_t ended_us; /* 0 = not yet */
} kopt_run;

/* Open an existing store for reading, or (write 1) for import, made when it is not there.
 * Errors: KOPT_ENOTFOUND, KOPT_EIO, KOPT_ECORRUPT, KOPT_EBUSY (locked for 5 s), KOPT_EFULL (of
 * a limit on file sizes: in a process that ignores SIGXFSZ), KOPT_ENOMEM; the same from all
 * below. Owner: kopt_store_close(). */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_open(const char *path, int write,
                                                   kopt_store **out, kopt_error *err);
KOPT_API void kopt_store_close(kopt_store *s);

/* Visitors return 0 to end the walk. kernel NULL = any; newest first. */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_subjects(kopt_store *s, const char *kernel,
                                                       int (*visit)(void *user,
                                                                    const kopt_subject *x),
                                                       void *user, kopt_error *err);
/* One subject. Errors also: KOPT_ENOTFOUND. */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_subject(kopt_store *s, int64_t id,
                                                      int (*visit)(void *user,
                                                                   const kopt_subject *x),
                                                      void *user, kopt_error *err);
/* subject 0 = any; newest first. */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_runs(kopt_store *s, int64_t subject,
                                                   int (*visit)(void *user, const kopt_run *x),
                                                   void *user, kopt_error *err);

typedef struct kopt_result_filter {
    int64_t subject; /* 0 = any, as are the next two */
    int64_t run;
    int64_t id;
    int outcome; /* a kopt_outcome, or -1 = any */
    int newest;  /* 1: of each configuration only the newest completed result, from a race or
                    not; picked among those of the subject and run above */
    int by_time; /* 1: ok ones by median, then the others; else in order of id */
    int brief;   /* 1: without times_ns (n_times says how many there are) and log, for speed */
    int64_t limit; /* 0 = all */
} kopt_result_filter;

KOPT_API KOPT_MUST_USE kopt_status
kopt_store_results(kopt_store *s, const kopt_result_filter *f,
                   int (*visit)(void *user, const kopt_result *r, int64_t subject, int64_t run),
                   void *user, kopt_error *err);
/* The best of a subject. Errors also: KOPT_ENOTFOUND. */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_best(kopt_store *s, int64_t subject,
                                                   int (*visit)(void *user,
                                                                const kopt_result *r,
                                                                int64_t subject, int64_t run),
                                                   void *user, kopt_error *err);

/* T4 results (schema 1.0.0) of a subject as JSON text; *out is freed with kopt_text_free(). */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_export_t4(kopt_store *s, int64_t subject,
                                                        char **out, kopt_error *err);
KOPT_API void kopt_text_free(char *text);

typedef struct kopt_import_count {
    int64_t added;
    int64_t present; /* the same result was there already */
    int64_t bad;     /* entries that could not be read */
    int cut;         /* the file ends in the middle */
} kopt_import_count;

/* Another kopt store, or a Kernel Tuner cache file, whole or cut. What is here already is
 * recognised: importing a file again adds nothing. A store must not be open in this process.
 * Errors also: KOPT_EINPUT (neither of the two; file, line, column), KOPT_ERANGE (a cache file
 * over 512 MiB), KOPT_EUSAGE (it is this store). Of a damaged store nothing is taken. */
KOPT_API KOPT_MUST_USE kopt_status kopt_store_import(kopt_store *s, const char *path,
                                                     kopt_import_count *count, kopt_error *err);

/* --- at run time
 * ------------------------------------------------------------------------------ */

/* Load the best configurations of every kernel from a store. device: the name as stored
 * ("NVIDIA H200"), NULL = any. store NULL: no store, for a selector that has models only
 * (kopt_selector_add_model() in kopt/predict.h). Owner: kopt_selector_close(). */
KOPT_API KOPT_MUST_USE kopt_status kopt_selector_open(const char *store, const char *device,
                                                      kopt_selector **out, kopt_error *err);
KOPT_API void kopt_selector_close(kopt_selector *s);

typedef enum kopt_select_how {
    KOPT_SELECT_NONE,    /* nothing is known of this kernel */
    KOPT_SELECT_EXACT,   /* measured for this problem on this device */
    KOPT_SELECT_NEAREST, /* for another problem on this device */
    KOPT_SELECT_OTHER,   /* on another device */
    KOPT_SELECT_MODEL    /* not measured: what a model predicts for this problem */
} kopt_select_how;

typedef struct kopt_selection {
    kopt_select_how how;
    /* {"BM":64,..} with the names sorted; "" with KOPT_SELECT_NONE. It stays as it is until the
     * selector is closed. */
    const char *config;
    /* 0 .. 1. KOPT_SELECT_MODEL: the probability that the model gives the whole configuration;
     * thousands of configurations share 1, so a good one may well have 0.02. Else docs/store.md
     * has the formula. The two cannot be compared. */
    double confidence;
    double distance;  /* to the problem it was measured for; 0 = the same; NaN = not measured */
    double median_ns; /* there; NaN = not measured */
} kopt_selection;

/* The configuration for a problem: names[n] with values[n], in any order. What was measured for
 * it on this device; else what the kernel's model predicts, where the selector has one; else
 * what was measured for the nearest problem. It cannot fail. Thread: any. Without a model it
 * allocates nothing; with one nothing either once warm, see kopt_selector_add_model().
 *
 * A model's answer satisfies the rules that the model has. Where how is KOPT_SELECT_NEAREST or
 * KOPT_SELECT_OTHER no rules are evaluated: the configuration was valid for another problem or
 * device and may break a rule here, and then give wrong results. kopt_space_valid() tells. */
KOPT_API void kopt_select(const kopt_selector *s, const char *kernel, const char *const *names,
                          const int64_t *values, size_t n, kopt_selection *out);

/* An integer or boolean parameter of a selection; `missing` when it is not there. */
KOPT_API int64_t kopt_selection_int(const kopt_selection *c, const char *name, int64_t missing);

#ifdef __cplusplus
}
#endif
#endif
