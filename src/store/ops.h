/* SPDX-License-Identifier: MIT */
/* The table behind store.h, for the back ends only. Layer: store.
 *
 * store.c checks arguments, cleans texts and refuses writes where they cannot be; an entry gets
 * only sane ones. Every entry may block for as long as the store's busy time. No entry may be
 * NULL. Same thread for all calls on one store. */
#ifndef KP_STORE_OPS_H
#define KP_STORE_OPS_H

#include "store/store.h"

#include <sys/types.h>

struct kp_subject_filter {
    int64_t id;         /* 0 = any */
    const char *kernel; /* NULL = any */
};

struct kp_store_ops {
    const char *name;
    kopt_status (*open)(const char *path, enum kp_store_mode mode, int busy_ms,
                        struct kp_store **out, kopt_error *err);
    void (*close)(struct kp_store *st);
    kopt_status (*check)(struct kp_store *st, kopt_error *err);

    /* Between the two every write belongs to one transaction, which keeps other writers
     * waiting. batch_end with keep false, or after a failure, undoes it all. */
    kopt_status (*batch_begin)(struct kp_store *st, kopt_error *err);
    kopt_status (*batch_end)(struct kp_store *st, bool keep, kopt_error *err);

    kopt_status (*subject)(struct kp_store *st, struct kp_subject *s, kopt_error *err);
    kopt_status (*run_begin)(struct kp_store *st, struct kp_store_run *run, kopt_error *err);
    /* Sets state, summary and ended_us of run->id. */
    kopt_status (*run_end)(struct kp_store *st, const struct kp_store_run *run,
                           kopt_error *err);
    /* r->config and r->race only */
    kopt_status (*begin)(struct kp_store *st, int64_t run, int64_t subject,
                         const kopt_result *r, int64_t *id, kopt_error *err);
    kopt_status (*finish)(struct kp_store *st, int64_t id, const kopt_result *r,
                          kopt_error *err);
    /* Only of one that waits to be completed; no such result is no error. */
    kopt_status (*withdraw)(struct kp_store *st, int64_t id, kopt_error *err);
    kopt_status (*add)(struct kp_store *st, int64_t run, int64_t subject, const kopt_result *r,
                       int64_t *id, kopt_error *err);
    /* Is there a result of the subject with this configuration, race, outcome, wall_us and
     * median? */
    kopt_status (*has)(struct kp_store *st, int64_t subject, const kopt_result *r, bool *found,
                       kopt_error *err);

    kopt_status (*subjects)(struct kp_store *st, const struct kp_subject_filter *f,
                            kp_subject_visit visit, void *user, kopt_error *err);
    kopt_status (*runs)(struct kp_store *st, int64_t subject, kp_run_visit visit, void *user,
                        kopt_error *err);
    kopt_status (*results)(struct kp_store *st, const struct kp_result_filter *f,
                           kp_result_visit visit, void *user, kopt_error *err);
    /* KOPT_ENOTFOUND when there is none. Called for every subject when a selection is loaded.
     */
    kopt_status (*best)(struct kp_store *st, int64_t subject, kp_result_visit visit, void *user,
                        kopt_error *err);
};

/* Back ends put this first in their own struct; store.c fills it after open. */
struct kp_store {
    const struct kp_store_ops *ops;
    enum kp_store_mode mode;
    int walking; /* visitors at work: no writes meanwhile */
    dev_t dev;   /* which file it is */
    ino_t ino;
};

const struct kp_store_ops *kp_sqlite_ops(void);

/* KOPT_EUSAGE when the store is opened for reading or a visitor is at work. */
kopt_status kp_store_may_write(const struct kp_store *st, kopt_error *err);

#endif
