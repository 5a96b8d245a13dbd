/* SPDX-License-Identifier: MIT */
/* Walks prepare their statement each time, so that a visitor may walk again; that of the best
 * is kept and prepared anew only when it is in use. */
#include "base/alloc.h"
#include "store/sqlite/db.h"

#include <endian.h>
#include <math.h>
#include <string.h>

enum { SQL_BYTES_MAX = 8192, TIMES_BYTES_MAX = 64 << 20 };

/* --- columns -------------------------------------------------------------------------------
 */

struct row {
    sqlite3_stmt *q;
    bool failed; /* a text could not be had */
};

static const char *text_at(struct row *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row->q, column);
    if (!text)
        row->failed = true; /* no text column may be NULL */
    return text ? (const char *)text : "";
}

static double number_at(const struct row *row, int column)
{
    return sqlite3_column_type(row->q, column) == SQLITE_NULL
               ? (double)NAN
               : sqlite3_column_double(row->q, column);
}

static int64_t count_at(const struct row *row, int column)
{
    return sqlite3_column_type(row->q, column) == SQLITE_NULL
               ? -1
               : sqlite3_column_int64(row->q, column);
}

/* --- walking -------------------------------------------------------------------------------
 */

struct walk {
    struct kp_sqlite *s;
    /* Reads the row and calls the visitor; *more = go on. */
    kopt_status (*row)(struct walk *w, struct row *row, bool *more, kopt_error *err);
    union {
        kp_subject_visit subject;
        kp_run_visit run;
        kp_result_visit result;
    } visit;
    void *user;
    struct kp_buf times; /* of the result at hand */
    bool found;
    bool keep; /* reset the statement instead of finalizing it */
};

/* Goes through the rows; `q` is done with afterwards. */
static kopt_status walk_rows(struct walk *w, sqlite3_stmt *q, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    bool more = true;
    struct row row = {.q = q};
    int rc = kp_sqlite_step(w->s, q);
    while (rc == SQLITE_ROW && st == KOPT_OK) {
        w->found = true;
        st = w->row(w, &row, &more, err);
        if (st != KOPT_OK || !more)
            break;
        rc = sqlite3_step(q); /* not again from the start, whatever happens */
    }
    if (st == KOPT_OK && rc != SQLITE_ROW && rc != SQLITE_DONE)
        st = kp_sqlite_error(w->s, rc, err);
    (void)(w->keep ? sqlite3_reset(q) : sqlite3_finalize(q));
    kp_buf_deinit(&w->times);
    return st;
}

static kopt_status broken_row(const struct walk *w, const char *table, int64_t id,
                              const char *what, kopt_error *err)
{
    (void)kp_err(err, KOPT_ECORRUPT, "%s: the store is damaged: %s %lld has %s", w->s->path,
                 table, (long long)id, what);
    kp_err_hint(err, "delete that row with sqlite3, or measure into another store");
    return KOPT_ECORRUPT;
}

/* A text was not there: no memory for it, or a NULL where this program writes none. */
static kopt_status no_text(const struct walk *w, const char *table, int64_t id, kopt_error *err)
{
    if (sqlite3_errcode(w->s->db) == SQLITE_NOMEM)
        return kp_err_nomem(err);
    return broken_row(w, table, id, "no text where one must be", err);
}

/* --- subjects ------------------------------------------------------------------------------
 */

static kopt_status subject_row(struct walk *w, struct row *row, bool *more, kopt_error *err)
{
    struct kp_subject x = {
        .id = sqlite3_column_int64(row->q, 0),
        .kernel = text_at(row, 1),
        .kernel_path = text_at(row, 2),
        .kernel_hash = text_at(row, 3),
        .backend = text_at(row, 4),
        .device = text_at(row, 5),
        .arch = text_at(row, 6),
        .driver = text_at(row, 7),
        .compiler = text_at(row, 8),
        .problem = text_at(row, 9),
        .data = text_at(row, 10),
        .n_results = sqlite3_column_int64(row->q, 11),
        .n_ok = sqlite3_column_int64(row->q, 12),
        .best_ns = number_at(row, 13),
        .last_us = sqlite3_column_int64(row->q, 14),
        .params = text_at(row, 15),
    };
    if (row->failed)
        return no_text(w, "subject", x.id, err);
    *more = w->visit.subject(w->user, &x);
    return KOPT_OK;
}

kopt_status kp_sqlite_subjects(struct kp_store *st, const struct kp_subject_filter *f,
                               kp_subject_visit visit, void *user, kopt_error *err)
{
    struct walk w = {.s = (struct kp_sqlite *)st,
                     .row = subject_row,
                     .visit = {.subject = visit},
                     .user = user,
                     .times = KP_BUF_INIT(1)};
    sqlite3_stmt *q = NULL;
    kp_sqlite_start(w.s);
    kopt_status code = kp_sqlite_prepare(
        w.s,
        "SELECT s.id, s.kernel, s.kernel_path, s.kernel_hash, s.backend, s.device, s.arch,"
        " s.driver, s.compiler, s.problem, s.data, coalesce(a.n, 0), coalesce(a.ok, 0),"
        " (SELECT median_ns FROM result"
        "  WHERE id = (SELECT b.result FROM best b WHERE b.subject = s.id)),"
        " coalesce(a.last, s.created_us) AS last, s.params"
        " FROM subject s LEFT JOIN (SELECT subject, count(*) AS n,"
        "  sum(outcome = 0) AS ok, max(coalesce(nullif(wall_us, 0), begun_us)) AS last"
        "  FROM result WHERE outcome <> 10 AND (?1 = 0 OR subject = ?1) GROUP BY subject) a"
        " ON a.subject = s.id"
        " WHERE (?1 = 0 OR s.id = ?1) AND (?2 IS NULL OR s.kernel = ?2)"
        " ORDER BY last DESC, s.id DESC",
        &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = sqlite3_bind_int64(q, 1, f->id);
    if (f->kernel)
        bad |= sqlite3_bind_text(q, 2, f->kernel, -1, SQLITE_STATIC);
    if (bad) {
        (void)sqlite3_finalize(q);
        return kp_err_nomem(err);
    }
    code = walk_rows(&w, q, err);
    if (code == KOPT_OK && f->id && !w.found)
        code = kp_err(err, KOPT_ENOTFOUND, "%s: no subject %lld", w.s->path, (long long)f->id);
    return code;
}

/* --- runs ----------------------------------------------------------------------------------
 */

static kopt_status run_row(struct walk *w, struct row *row, bool *more, kopt_error *err)
{
    struct kp_store_run x = {
        .id = sqlite3_column_int64(row->q, 0),
        .subject = sqlite3_column_int64(row->q, 1),
        .command = text_at(row, 2),
        .strategy = text_at(row, 3),
        .version = text_at(row, 4),
        .host = text_at(row, 5),
        .state = text_at(row, 6),
        .summary = text_at(row, 7),
        .seed = sqlite3_column_int64(row->q, 8),
        .begun_us = sqlite3_column_int64(row->q, 9),
        .ended_us = sqlite3_column_int64(row->q, 10),
    };
    if (row->failed)
        return no_text(w, "run", x.id, err);
    *more = w->visit.run(w->user, &x);
    return KOPT_OK;
}

kopt_status kp_sqlite_runs(struct kp_store *st, int64_t subject, kp_run_visit visit, void *user,
                           kopt_error *err)
{
    struct walk w = {.s = (struct kp_sqlite *)st,
                     .row = run_row,
                     .visit = {.run = visit},
                     .user = user,
                     .times = KP_BUF_INIT(1)};
    sqlite3_stmt *q = NULL;
    kp_sqlite_start(w.s);
    kopt_status code = kp_sqlite_prepare(
        w.s,
        "SELECT id, subject, command, strategy, version, host, state, summary,"
        " seed, begun_us, ended_us FROM run WHERE ?1 = 0 OR subject = ?1"
        " ORDER BY id DESC",
        &q, err);
    if (code != KOPT_OK)
        return code;
    if (sqlite3_bind_int64(q, 1, subject) != SQLITE_OK) {
        (void)sqlite3_finalize(q);
        return kp_err_nomem(err);
    }
    return walk_rows(&w, q, err);
}

/* --- results -------------------------------------------------------------------------------
 */

#define RESULT_COLUMNS                                                                       \
    "r.id, r.subject, r.run, r.config, r.race, r.outcome, r.wall_us, r.median_ns, r.low_ns," \
    " r.high_ns, r.dropped, r.compile_ns, r.device_ns, r.registers, r.shared_bytes,"         \
    " r.local_bytes, r.max_error, r.power_w, r.energy_j, r.sm_mhz, r.temp_c, r.message, "

/* The column has the BLOB of samples, or only its length. */
static kopt_status read_times(struct walk *w, struct row *row, int column, kopt_result *r,
                              kopt_error *err)
{
    bool only_length = sqlite3_column_type(row->q, column) == SQLITE_INTEGER;
    const void *blob = only_length ? NULL : sqlite3_column_blob(row->q, column);
    int bytes =
        only_length ? sqlite3_column_int(row->q, column) : sqlite3_column_bytes(row->q, column);
    size_t n = (size_t)bytes / sizeof(uint64_t);
    if ((size_t)bytes % sizeof(uint64_t) != 0)
        return broken_row(w, "result", r->id, "times that are no doubles", err);
    kp_buf_clear(&w->times);
    r->n_times = (uint32_t)n;
    if (n == 0 || only_length)
        return KOPT_OK;
    if (!blob || !kp_buf_reserve(&w->times, (size_t)bytes))
        return kp_err_nomem(err);
    double *times = (double *)(void *)w->times.ptr; /* from realloc: aligned for any type */
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, (const char *)blob + i * sizeof(bits), sizeof(bits));
        bits = le64toh(bits);
        memcpy(&times[i], &bits, sizeof(bits));
    }
    r->times_ns = times;
    return KOPT_OK;
}

static kopt_status result_row(struct walk *w, struct row *row, bool *more, kopt_error *err)
{
    sqlite3_stmt *q = row->q;
    int64_t outcome = sqlite3_column_int64(q, 5);
    kopt_result r = {
        .id = sqlite3_column_int64(q, 0),
        .config = text_at(row, 3),
        .race = sqlite3_column_int(q, 4),
        .wall_us = sqlite3_column_int64(q, 6),
        .median_ns = number_at(row, 7),
        .low_ns = number_at(row, 8),
        .high_ns = number_at(row, 9),
        .dropped = sqlite3_column_int(q, 10),
        .from_store = 1,
        .compile_ns = number_at(row, 11),
        .device_ns = number_at(row, 12),
        .registers = count_at(row, 13),
        .shared_bytes = count_at(row, 14),
        .local_bytes = count_at(row, 15),
        .max_error = number_at(row, 16),
        .power_w = number_at(row, 17),
        .energy_j = number_at(row, 18),
        .sm_mhz = number_at(row, 19),
        .temp_c = number_at(row, 20),
        .message = text_at(row, 21),
        .log = text_at(row, 23),
        .throttle = count_at(row, 24),
    };
    if (row->failed)
        return no_text(w, "result", r.id, err);
    if (outcome < 0 || outcome >= KOPT_OUT_COUNT)
        return broken_row(w, "result", r.id, "an unknown outcome", err);
    r.outcome = (kopt_outcome)outcome;
    kopt_status st = read_times(w, row, 22, &r, err);
    if (st == KOPT_OK)
        *more = w->visit.result(w->user, &r, sqlite3_column_int64(q, 1),
                                sqlite3_column_int64(q, 2));
    return st;
}

/* "newest" picks among the rows of the subject and run first; the other conditions hold for
 * what was picked. */
static void results_sql(const struct kp_result_filter *f, struct kp_buf *sql)
{
    kp_buf_adds(sql, "SELECT " RESULT_COLUMNS);
    /* length() of a BLOB does not read it */
    kp_buf_adds(sql, f->no_samples ? "length(r.times), ''" : "r.times, r.log");
    kp_buf_adds(sql, ", r.throttle");
    kp_buf_adds(sql, " FROM result r WHERE 1");
    if (f->newest || f->once) {
        kp_buf_adds(sql, " AND r.id IN (SELECT max(id) FROM result WHERE outcome <> 10");
        kp_buf_adds(sql, f->subject ? " AND subject = ?1" : "");
        kp_buf_adds(sql, f->run ? " AND run = ?2" : "");
        kp_buf_adds(sql, f->once ? " GROUP BY subject, config)"
                                 : " GROUP BY subject, config, race)");
    } else {
        kp_buf_adds(sql, f->subject ? " AND r.subject = ?1" : "");
        kp_buf_adds(sql, f->run ? " AND r.run = ?2" : "");
    }
    kp_buf_adds(sql, f->id ? " AND r.id = ?3" : "");
    kp_buf_adds(sql, f->outcome >= 0 ? " AND r.outcome = ?4" : "");
    kp_buf_adds(sql, " ORDER BY ");
    if (f->by_time)
        kp_buf_adds(sql, "r.outcome <> 0, CASE r.outcome WHEN 0 THEN r.median_ns END, ");
    kp_buf_adds(sql, "r.id");
    kp_buf_adds(sql, f->limit > 0 ? " LIMIT ?5" : "");
}

static int bind_filter(sqlite3_stmt *q, const struct kp_result_filter *f)
{
    int bad = f->subject ? sqlite3_bind_int64(q, 1, f->subject) : SQLITE_OK;
    bad |= f->run ? sqlite3_bind_int64(q, 2, f->run) : SQLITE_OK;
    bad |= f->id ? sqlite3_bind_int64(q, 3, f->id) : SQLITE_OK;
    bad |= f->outcome >= 0 ? sqlite3_bind_int(q, 4, f->outcome) : SQLITE_OK;
    bad |= f->limit > 0 ? sqlite3_bind_int64(q, 5, f->limit) : SQLITE_OK;
    return bad;
}

kopt_status kp_sqlite_results(struct kp_store *st, const struct kp_result_filter *f,
                              kp_result_visit visit, void *user, kopt_error *err)
{
    struct walk w = {.s = (struct kp_sqlite *)st,
                     .row = result_row,
                     .visit = {.result = visit},
                     .user = user,
                     .times = KP_BUF_INIT(TIMES_BYTES_MAX)};
    sqlite3_stmt *q = NULL;
    struct kp_buf sql = KP_BUF_INIT(SQL_BYTES_MAX);
    kp_sqlite_start(w.s);
    results_sql(f, &sql);
    kopt_status code = kp_buf_status(&sql, err);
    if (code == KOPT_OK)
        code = kp_sqlite_prepare(w.s, kp_buf_text(&sql), &q, err);
    kp_buf_deinit(&sql);
    if (code != KOPT_OK)
        return code;
    if (bind_filter(q, f) != SQLITE_OK) {
        (void)sqlite3_finalize(q);
        return kp_err_nomem(err);
    }
    return walk_rows(&w, q, err);
}

const char kp_sqlite_best_text[] =
    "SELECT " RESULT_COLUMNS "r.times, r.log, r.throttle FROM result r"
    " WHERE r.id = (SELECT b.result FROM best b"
    " WHERE b.subject = ?1)";

kopt_status kp_sqlite_best(struct kp_store *st, int64_t subject, kp_result_visit visit,
                           void *user, kopt_error *err)
{
    struct walk w = {.s = (struct kp_sqlite *)st,
                     .row = result_row,
                     .visit = {.result = visit},
                     .user = user,
                     .times = KP_BUF_INIT(TIMES_BYTES_MAX)};
    sqlite3_stmt *q = w.s->cached[KP_STMT_BEST];
    kopt_status code = KOPT_OK;
    kp_sqlite_start(w.s);
    w.keep = !sqlite3_stmt_busy(q);
    if (!w.keep)
        code = kp_sqlite_prepare(w.s, kp_sqlite_best_text, &q, err);
    if (code != KOPT_OK)
        return code;
    (void)sqlite3_bind_int64(q, 1, subject); /* needs no memory */
    code = walk_rows(&w, q, err);
    if (code == KOPT_OK && !w.found)
        code = kp_err(err, KOPT_ENOTFOUND, "%s: subject %lld has no result that is ok",
                      w.s->path, (long long)subject);
    return code;
}
