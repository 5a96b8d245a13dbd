/* SPDX-License-Identifier: MIT */
/* Where every measurement is kept. Layer: store. One table of functions, so that another
 * database can stand behind it; SQLite (WAL) is the one there is.
 *
 * A subject is what was measured apart from the configuration: kernel, device, tools, problem,
 * data. A run is one session that worked on a subject. A result belongs to a subject, whoever
 * measured it; it is written before the launch (outcome interrupted) and completed after it.
 * Many processes may use one store at once; a handle belongs to one thread. */
#ifndef KP_STORE_STORE_H
#define KP_STORE_STORE_H

#include "base/error.h"
#include "kopt/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_store;

enum kp_store_mode {
    KP_STORE_READ, /* must exist; never written */
    KP_STORE_WRITE /* made when it does not exist */
};

/* Errors: KOPT_EIO (cannot be opened: the system's reason), KOPT_ECORRUPT (not a store,
 * damaged, or of a newer schema), KOPT_EBUSY (locked for longer than `busy_ms`), KOPT_EFULL,
 * KOPT_ENOTFOUND (KP_STORE_READ and no such file), KOPT_ENOMEM. The same codes from all below.
 */
kopt_status kp_store_open(const char *path, enum kp_store_mode mode, int busy_ms,
                          struct kp_store **out, kopt_error *err);
/* `s` may be NULL. */
void kp_store_close(struct kp_store *s);
/* Look at every page and every row; takes as long as reading the file. Errors: KOPT_ECORRUPT.
 */
kopt_status kp_store_check(struct kp_store *st, kopt_error *err);

/* Texts are borrowed. In: all set, "" where there is nothing to say. */
struct kp_subject {
    int64_t id;
    const char *kernel;      /* entry point */
    const char *kernel_path; /* as given; not part of the key */
    const char *kernel_hash; /* source, includes, geometry, arguments, checks, flags */
    const char *backend;     /* "cuda", "opencl", "fake" */
    const char *device;      /* "NVIDIA H200" */
    const char *arch;
    const char *driver;
    const char *compiler;
    const char *problem; /* {"K":512,"M":512,"N":512} */
    const char *data;    /* fills and seed: {"A":"normal(0,1)",..,"seed":1} */
    const char *params;  /* ["BM","BN"]: in the order of the kernel file; not part of the key;
                            NULL = "" */
    int64_t n_results;   /* out, in listings: completed ones */
    int64_t n_ok;        /* out, in listings */
    double best_ns;      /* out, in listings: of kp_store_best(); NaN = none */
    int64_t last_us;     /* out, in listings: time of the newest result */
};

/* Find or add; sets s->id. The key is every text but kernel_path and params, of which the
 * newest that are not "" are kept.
 * In a store opened for reading it only finds: KOPT_ENOTFOUND. */
kopt_status kp_store_subject(struct kp_store *st, struct kp_subject *s, kopt_error *err);

struct kp_store_run {
    int64_t id;
    int64_t subject;
    const char *command; /* the command line */
    const char *strategy;
    const char *version; /* kopt's */
    const char *host;
    const char *state;   /* "running", "done", "interrupted", "failed"; in listings "killed":
                            running when its process ended */
    const char *summary; /* JSON; "" at the begin: then the store notes this process in it */
    int64_t seed;
    int64_t begun_us;
    int64_t ended_us; /* 0 = not yet */
};

kopt_status kp_store_run_begin(struct kp_store *st, struct kp_store_run *run, kopt_error *err);
kopt_status kp_store_run_end(struct kp_store *st, int64_t run, const char *state,
                             const char *summary, kopt_error *err);

/* Writing. Errors also: KOPT_EUSAGE (opened for reading, called by a visitor, no outcome, ok
 * without a median), KOPT_ENOTFOUND (no such subject, run or unfinished result), KOPT_ERANGE
 * (a text over its limit; but messages are cut at 4 KiB and logs at 16 KiB). */

/* Between the two every write belongs to one transaction, which keeps other writers waiting:
 * all of it is durable at the end with `keep`, or none of it happened. */
kopt_status kp_store_batch_begin(struct kp_store *st, kopt_error *err);
kopt_status kp_store_batch_end(struct kp_store *st, bool keep, kopt_error *err);

/* Write down that `config` is about to be launched. Durable (against the end of this process)
 * when it returns. */
kopt_status kp_store_begin(struct kp_store *st, int64_t run, int64_t subject,
                           const char *config, bool race, int64_t *result_id, kopt_error *err);
/* Complete it; r->config and r->race are ignored. Durable when it returns. */
kopt_status kp_store_finish(struct kp_store *st, int64_t result_id, const kopt_result *r,
                            kopt_error *err);
/* It was not launched after all: forget it. Nothing happens to one that is completed. */
kopt_status kp_store_withdraw(struct kp_store *st, int64_t result_id, kopt_error *err);
/* Both at once, for results that came without a launch (compile errors, imports). */
kopt_status kp_store_add(struct kp_store *st, int64_t run, int64_t subject,
                         const kopt_result *r, int64_t *result_id, kopt_error *err);

/* Visitors get borrowed structs, valid during the call; returning false ends the walk. They may
 * read from the store but not write to it. A walk sees the store as it was at its start. */
typedef bool (*kp_subject_visit)(void *user, const struct kp_subject *s);
typedef bool (*kp_run_visit)(void *user, const struct kp_store_run *r);
typedef bool (*kp_result_visit)(void *user, const kopt_result *r, int64_t subject, int64_t run);

/* kernel NULL = any; newest first. */
kopt_status kp_store_subjects(struct kp_store *st, const char *kernel, kp_subject_visit visit,
                              void *user, kopt_error *err);
kopt_status kp_store_subject_get(struct kp_store *st, int64_t id, kp_subject_visit visit,
                                 void *user, kopt_error *err); /* KOPT_ENOTFOUND */
/* subject 0 = any; newest first. */
kopt_status kp_store_runs(struct kp_store *st, int64_t subject, kp_run_visit visit, void *user,
                          kopt_error *err);

struct kp_result_filter {
    int64_t subject; /* 0 = any */
    int64_t run;     /* 0 = any */
    int64_t id;      /* 0 = any */
    int outcome;     /* -1 = any */
    bool newest;     /* of each (subject, configuration, race) only the newest completed one;
                        picked among those of the subject and run above, before id and outcome */
    bool once;       /* the same of each (subject, configuration), from a race or not */
    bool by_time;    /* ok ones by median, then the others; else in order of id */
    bool no_samples; /* leave out times_ns (but not n_times) and log, for speed */
    int64_t limit;   /* 0 = all */
};
kopt_status kp_store_results(struct kp_store *st, const struct kp_result_filter *f,
                             kp_result_visit visit, void *user, kopt_error *err);

/* The best configuration of a subject: the winner of its newest race where there is one, or
 * what was measured after that race and is faster by more than both intervals; else the
 * smallest median. Never one whose newest completed result is not ok. Errors also:
 * KOPT_ENOTFOUND. */
kopt_status kp_store_best(struct kp_store *st, int64_t subject, kp_result_visit visit,
                          void *user, kopt_error *err);

/* --- other files (t4.c, ktcache.c, merge.c) --------------------------------------------------
 */

struct kp_buf;
/* Append the results of a subject as T4 results JSON, schema version 1.0.0. */
kopt_status kp_store_export_t4(struct kp_store *st, int64_t subject, struct kp_buf *out,
                               kopt_error *err);
struct kp_import_count {
    int64_t added;
    int64_t present; /* the same result was there already */
    int64_t bad;     /* entries that could not be read */
    bool cut;        /* the file ends in the middle */
};
/* A Kernel Tuner cache file, whole, open (no closing brackets) or cut. */
kopt_status kp_store_import_kt(struct kp_store *st, const char *path,
                               struct kp_import_count *count, kopt_error *err);
/* Does the file begin like a store? It must not be open in this process: closing it again takes
 * this process's locks on it away. */
bool kp_store_is_database(const char *path);
/* The same, or another store: its subjects, runs and results, of which what is here already is
 * recognised. The file must not be open in this process. Errors also: KOPT_EUSAGE (it is this
 * store), KOPT_ECORRUPT (nothing is taken of a damaged store). */
kopt_status kp_store_import(struct kp_store *st, const char *path,
                            struct kp_import_count *count, kopt_error *err);

/* --- selection (select.c) --------------------------------------------------------------------
 */

struct kp_select; /* every kernel's best configurations on one device, in memory; read-only
                     after loading, so any number of threads may use it */

/* device "" = any. */
kopt_status kp_select_load(struct kp_store *st, const char *device, struct kp_select **out,
                           kopt_error *err);
void kp_select_free(struct kp_select *s);

enum kp_select_how {
    KP_SELECT_NONE,
    KP_SELECT_EXACT,   /* this problem on this device was measured */
    KP_SELECT_NEAREST, /* another problem on this device */
    KP_SELECT_OTHER    /* another device */
};
struct kp_selected {
    const char *config; /* borrowed from the selector */
    enum kp_select_how how;
    double confidence; /* 0..1: see select.c for the formula */
    double distance;   /* to the problem it was measured for: Euclidean in log2 of the sizes */
    double median_ns;  /* there */
};
/* `names` and `values`: the problem's n sizes in any order. No allocation. */
void kp_select_find(const struct kp_select *s, const char *kernel, const char *const *names,
                    const int64_t *values, size_t n, struct kp_selected *out);
/* Its two halves: this problem on this device (false: not measured), and what is nearest. */
bool kp_select_exact(const struct kp_select *s, const char *kernel, const char *const *names,
                     const int64_t *values, size_t n, struct kp_selected *out);
void kp_select_near(const struct kp_select *s, const char *kernel, const char *const *names,
                    const int64_t *values, size_t n, struct kp_selected *out);

#endif
