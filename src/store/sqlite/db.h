/* SPDX-License-Identifier: MIT */
/* One SQLite connection, its waiting and its errors; the files of sqlite/ only. Layer: store.
 */
#ifndef KP_STORE_SQLITE_DB_H
#define KP_STORE_SQLITE_DB_H

#include "base/buf.h"
#include "store/ops.h"

#include <sqlite3.h>

/* Statements that are prepared once: those on the path of every measurement. */
enum kp_stmt {
    KP_STMT_SUBJECT_FIND,
    KP_STMT_SUBJECT_ADD,
    KP_STMT_SUBJECT_PATH,
    KP_STMT_BEGIN,
    KP_STMT_FINISH,
    KP_STMT_ADD,
    KP_STMT_HAS,
    KP_STMT_BEST,
    KP_STMT_COUNT
};

struct kp_sqlite {
    struct kp_store base;
    sqlite3 *db;
    char *path; /* as given, for messages */
    int busy_ms;
    int64_t deadline_ns; /* of the operation at work */
    bool batch;
    struct kp_buf samples; /* scratch: a result's times as stored */
    sqlite3_stmt *cached[KP_STMT_COUNT];
};

/* Start the clock of one operation: all its waiting together is bounded by busy_ms. */
void kp_sqlite_start(struct kp_sqlite *s);

/* What went wrong, as `rc` says: one line with the path, and a hint. */
kopt_status kp_sqlite_error(const struct kp_sqlite *s, int rc, kopt_error *err);

/* sqlite3_step(), repeated while the database is busy and time is left. For the first step of a
 * statement only. */
int kp_sqlite_step(struct kp_sqlite *s, sqlite3_stmt *q);
/* The same for SQL text without results. Returns SQLITE_OK or an error. */
int kp_sqlite_exec(struct kp_sqlite *s, const char *sql);
/* The first column of the first row; 0 when there is no row. */
int kp_sqlite_scalar(struct kp_sqlite *s, const char *sql, int64_t *out);

/* The prepared statement, reset and ready for binding. */
kopt_status kp_sqlite_stmt(struct kp_sqlite *s, enum kp_stmt which, sqlite3_stmt **out,
                           kopt_error *err);
/* One that is used once: the caller finalizes it. */
kopt_status kp_sqlite_prepare(struct kp_sqlite *s, const char *sql, sqlite3_stmt **out,
                              kopt_error *err);
/* Run a cached statement that returns no rows. `bound`: the OR of the sqlite3_bind_ results. */
kopt_status kp_sqlite_run(struct kp_sqlite *s, sqlite3_stmt *q, int bound, kopt_error *err);

/* BEGIN IMMEDIATE: waits for the write lock, so that nothing inside it can meet a busy
 * database. Inside a batch both do nothing. kp_sqlite_end rolls back unless `st` is KOPT_OK,
 * and returns `st` or its own failure. */
kopt_status kp_sqlite_begin(struct kp_sqlite *s, kopt_error *err);
kopt_status kp_sqlite_end(struct kp_sqlite *s, kopt_status st, kopt_error *err);

/* db.c */
kopt_status kp_sqlite_open(const char *path, enum kp_store_mode mode, int busy_ms,
                           struct kp_store **out, kopt_error *err);
void kp_sqlite_close(struct kp_store *st);
kopt_status kp_sqlite_check(struct kp_store *st, kopt_error *err);

/* write.c */
const char *kp_sqlite_stmt_text(enum kp_stmt which);
kopt_status kp_sqlite_batch_begin(struct kp_store *st, kopt_error *err);
kopt_status kp_sqlite_batch_end(struct kp_store *st, bool keep, kopt_error *err);
kopt_status kp_sqlite_subject(struct kp_store *st, struct kp_subject *x, kopt_error *err);
kopt_status kp_sqlite_run_begin(struct kp_store *st, struct kp_store_run *run, kopt_error *err);
kopt_status kp_sqlite_run_end(struct kp_store *st, const struct kp_store_run *run,
                              kopt_error *err);
kopt_status kp_sqlite_result_begin(struct kp_store *st, int64_t run, int64_t subject,
                                   const kopt_result *r, int64_t *id, kopt_error *err);
kopt_status kp_sqlite_result_finish(struct kp_store *st, int64_t id, const kopt_result *r,
                                    kopt_error *err);
kopt_status kp_sqlite_result_withdraw(struct kp_store *st, int64_t id, kopt_error *err);
kopt_status kp_sqlite_result_add(struct kp_store *st, int64_t run, int64_t subject,
                                 const kopt_result *r, int64_t *id, kopt_error *err);
kopt_status kp_sqlite_result_has(struct kp_store *st, int64_t subject, const kopt_result *r,
                                 bool *found, kopt_error *err);

/* read.c */
kopt_status kp_sqlite_subjects(struct kp_store *st, const struct kp_subject_filter *f,
                               kp_subject_visit visit, void *user, kopt_error *err);
kopt_status kp_sqlite_runs(struct kp_store *st, int64_t subject, kp_run_visit visit, void *user,
                           kopt_error *err);
kopt_status kp_sqlite_results(struct kp_store *st, const struct kp_result_filter *f,
                              kp_result_visit visit, void *user, kopt_error *err);
kopt_status kp_sqlite_best(struct kp_store *st, int64_t subject, kp_result_visit visit,
                           void *user, kopt_error *err);
extern const char kp_sqlite_best_text[];

#endif
