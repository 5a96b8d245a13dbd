/* SPDX-License-Identifier: MIT */
/* A single INSERT or UPDATE is its own transaction: SQLite takes the write lock before it
 * reads, so it needs no BEGIN IMMEDIATE around it, which would cost two more statements. */
#include "os/clock.h"
#include "store/sqlite/db.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#define SUBJECT_KEY                                                                      \
    "kernel = ?1 AND problem = ?2 AND device = ?3 AND kernel_hash = ?4 AND backend = ?5" \
    " AND arch = ?6 AND driver = ?7 AND compiler = ?8 AND data = ?9"

/* ?1..?4 of INSERT and ?1 of UPDATE differ; ?5.. are what was measured in both. */
const char *kp_sqlite_stmt_text(enum kp_stmt which)
{
    switch (which) {
    case KP_STMT_SUBJECT_FIND:
        return "SELECT id, kernel_path, params FROM subject WHERE " SUBJECT_KEY;
    case KP_STMT_SUBJECT_ADD:
        return "INSERT OR IGNORE INTO subject(kernel, problem, device, kernel_hash, backend,"
               " arch, driver, compiler, data, kernel_path, params, created_us)"
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    case KP_STMT_SUBJECT_PATH:
        return "UPDATE subject SET kernel_path = coalesce(nullif(?2, ''), kernel_path),"
               " params = coalesce(nullif(?3, ''), params) WHERE id = ?1";
    case KP_STMT_BEGIN:
        return "INSERT INTO result(subject, run, config, race, outcome, begun_us, wall_us,"
               " dropped, message, log) VALUES(?1, ?2, ?3, ?4, 10, ?5, 0, 0, '', '')";
    case KP_STMT_FINISH:
        return "UPDATE result SET outcome = ?6, wall_us = ?7, median_ns = ?8, low_ns = ?9,"
               " high_ns = ?10, dropped = ?11, compile_ns = ?12, device_ns = ?13,"
               " registers = ?14, shared_bytes = ?15, local_bytes = ?16, max_error = ?17,"
               " power_w = ?18, energy_j = ?19, sm_mhz = ?20, temp_c = ?21, times = ?22,"
               " message = ?23, log = ?24, throttle = ?25 WHERE id = ?1 AND outcome = 10";
    case KP_STMT_ADD:
        return "INSERT INTO result(subject, run, config, race, begun_us, outcome, wall_us,"
               " median_ns, low_ns, high_ns, dropped, compile_ns, device_ns, registers,"
               " shared_bytes, local_bytes, max_error, power_w, energy_j, sm_mhz, temp_c, times,"
               " message, log, throttle) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
               " ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)";
    case KP_STMT_HAS:
        return "SELECT 1 FROM result WHERE subject = ?1 AND config = ?2 AND race = ?3"
               " AND outcome = ?4 AND wall_us = ?5 AND median_ns IS ?6 LIMIT 1";
    case KP_STMT_BEST:
        return kp_sqlite_best_text;
    case KP_STMT_COUNT:
        break;
    }
    return "";
}

static struct kp_sqlite *start(struct kp_store *st)
{
    struct kp_sqlite *s = (struct kp_sqlite *)st;
    kp_sqlite_start(s);
    return s;
}

static int bind_text(sqlite3_stmt *q, int at, const char *text)
{
    return sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

/* SQL's NULL is our "not known"; sqlite3_bind_double() makes it of NaN. */
static int bind_count(sqlite3_stmt *q, int at, int64_t v)
{
    return v < 0 ? sqlite3_bind_null(q, at) : sqlite3_bind_int64(q, at, v);
}

static int bind_run(sqlite3_stmt *q, int at, int64_t run)
{
    return run ? sqlite3_bind_int64(q, at, run) : sqlite3_bind_null(q, at);
}

/* The samples as little-endian doubles. */
static int bind_times(struct kp_sqlite *s, sqlite3_stmt *q, int at, const kopt_result *r)
{
    if (r->n_times == 0)
        return sqlite3_bind_null(q, at);
    kp_buf_clear(&s->samples);
    if (!kp_buf_reserve(&s->samples, r->n_times * sizeof(uint64_t)))
        return SQLITE_NOMEM;
    for (uint32_t i = 0; i < r->n_times; i++) {
        uint64_t bits;
        memcpy(&bits, &r->times_ns[i], sizeof(bits));
        bits = htole64(bits);
        kp_buf_add(&s->samples, &bits, sizeof(bits));
    }
    return sqlite3_bind_blob64(q, at, s->samples.ptr, s->samples.len, SQLITE_STATIC);
}

/* ?6 .. ?25 */
static int bind_measured(struct kp_sqlite *s, sqlite3_stmt *q, const kopt_result *r)
{
    int bad = sqlite3_bind_int(q, 6, (int)r->outcome);
    bad |= sqlite3_bind_int64(q, 7, r->wall_us);
    bad |= sqlite3_bind_double(q, 8, r->median_ns);
    bad |= sqlite3_bind_double(q, 9, r->low_ns);
    bad |= sqlite3_bind_double(q, 10, r->high_ns);
    bad |= sqlite3_bind_int(q, 11, r->dropped != 0);
    bad |= sqlite3_bind_double(q, 12, r->compile_ns);
    bad |= sqlite3_bind_double(q, 13, r->device_ns);
    bad |= bind_count(q, 14, r->registers);
    bad |= bind_count(q, 15, r->shared_bytes);
    bad |= bind_count(q, 16, r->local_bytes);
    bad |= sqlite3_bind_double(q, 17, r->max_error);
    bad |= sqlite3_bind_double(q, 18, r->power_w);
    bad |= sqlite3_bind_double(q, 19, r->energy_j);
    bad |= sqlite3_bind_double(q, 20, r->sm_mhz);
    bad |= sqlite3_bind_double(q, 21, r->temp_c);
    bad |= bind_times(s, q, 22, r);
    bad |= bind_text(q, 23, r->message);
    bad |= bind_text(q, 24, r->log);
    bad |= bind_count(q, 25, r->throttle);
    return bad;
}

/* --- subjects ------------------------------------------------------------------------------
 */

static int bind_key(sqlite3_stmt *q, const struct kp_subject *x)
{
    const char *const key[] = {x->kernel, x->problem, x->device,   x->kernel_hash, x->backend,
                               x->arch,   x->driver,  x->compiler, x->data};
    int bad = SQLITE_OK;
    for (int i = 0; i < 9; i++)
        bad |= bind_text(q, i + 1, key[i]);
    return bad;
}

/* Does the store have another text? Of one that is not known nothing is said. */
static bool is_new(sqlite3_stmt *q, int column, const char *text)
{
    const unsigned char *stored = sqlite3_column_text(q, column);
    return text[0] && stored && strcmp((const char *)stored, text) != 0;
}

/* x->id = 0 when it is not there; *moved: it was last seen at another path, or with other
 * parameters. */
static kopt_status find_subject(struct kp_sqlite *s, struct kp_subject *x, bool *moved,
                                kopt_error *err)
{
    sqlite3_stmt *q = NULL;
    x->id = 0;
    *moved = false;
    kopt_status st = kp_sqlite_stmt(s, KP_STMT_SUBJECT_FIND, &q, err);
    if (st != KOPT_OK)
        return st;
    int rc = bind_key(q, x) ? SQLITE_NOMEM : kp_sqlite_step(s, q);
    if (rc == SQLITE_ROW) {
        x->id = sqlite3_column_int64(q, 0);
        *moved = is_new(q, 1, x->kernel_path) || is_new(q, 2, x->params);
    } else if (rc != SQLITE_DONE) {
        st = kp_sqlite_error(s, rc, err);
    }
    (void)sqlite3_reset(q);
    (void)sqlite3_clear_bindings(q);
    return st;
}

static kopt_status add_subject(struct kp_sqlite *s, struct kp_subject *x, kopt_error *err)
{
    sqlite3_stmt *q = NULL;
    bool moved = false;
    kopt_status st = kp_sqlite_begin(s, err);
    if (st != KOPT_OK)
        return st;
    st = kp_sqlite_stmt(s, KP_STMT_SUBJECT_ADD, &q, err);
    if (st == KOPT_OK) {
        int bad = bind_key(q, x);
        bad |= bind_text(q, 10, x->kernel_path);
        bad |= bind_text(q, 11, x->params);
        bad |= sqlite3_bind_int64(q, 12, kp_clock_wall_us());
        st = kp_sqlite_run(s, q, bad, err);
    }
    if (st == KOPT_OK)
        st = find_subject(s, x, &moved, err); /* ours, or that of whoever was faster */
    return kp_sqlite_end(s, st, err);
}

kopt_status kp_sqlite_subject(struct kp_store *st, struct kp_subject *x, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    bool moved = false;
    kopt_status code = find_subject(s, x, &moved, err);
    if (code != KOPT_OK || (x->id && !moved))
        return code;
    if (st->mode == KP_STORE_READ)
        return x->id ? KOPT_OK : kp_err(err, KOPT_ENOTFOUND, "%s: no such subject", s->path);
    if (!x->id)
        return add_subject(s, x, err);
    code = kp_sqlite_stmt(s, KP_STMT_SUBJECT_PATH, &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = sqlite3_bind_int64(q, 1, x->id);
    bad |= bind_text(q, 2, x->kernel_path);
    bad |= bind_text(q, 3, x->params);
    return kp_sqlite_run(s, q, bad, err);
}

/* --- runs ----------------------------------------------------------------------------------
 */

kopt_status kp_sqlite_run_begin(struct kp_store *st, struct kp_store_run *run, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    kopt_status code = kp_sqlite_prepare(
        s,
        "INSERT INTO run(subject, command, strategy, version, host, state, summary, seed,"
        " begun_us, ended_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = sqlite3_bind_int64(q, 1, run->subject);
    bad |= bind_text(q, 2, run->command);
    bad |= bind_text(q, 3, run->strategy);
    bad |= bind_text(q, 4, run->version);
    bad |= bind_text(q, 5, run->host);
    bad |= bind_text(q, 6, run->state);
    bad |= bind_text(q, 7, run->summary);
    bad |= sqlite3_bind_int64(q, 8, run->seed);
    bad |= sqlite3_bind_int64(q, 9, run->begun_us);
    bad |= sqlite3_bind_int64(q, 10, run->ended_us);
    code = kp_sqlite_run(s, q, bad, err);
    if (code == KOPT_OK)
        run->id = sqlite3_last_insert_rowid(s->db);
    (void)sqlite3_finalize(q);
    return code;
}

kopt_status kp_sqlite_run_end(struct kp_store *st, const struct kp_store_run *run,
                              kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    kopt_status code = kp_sqlite_prepare(
        s, "UPDATE run SET state = ?2, summary = ?3, ended_us = ?4 WHERE id = ?1", &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = sqlite3_bind_int64(q, 1, run->id);
    bad |= bind_text(q, 2, run->state);
    bad |= bind_text(q, 3, run->summary);
    bad |= sqlite3_bind_int64(q, 4, run->ended_us);
    code = kp_sqlite_run(s, q, bad, err);
    if (code == KOPT_OK && sqlite3_changes(s->db) == 0)
        code = kp_err(err, KOPT_ENOTFOUND, "%s: no run %lld", s->path, (long long)run->id);
    (void)sqlite3_finalize(q);
    return code;
}

/* --- results -------------------------------------------------------------------------------
 */

static int bind_owner(sqlite3_stmt *q, int64_t run, int64_t subject, const kopt_result *r)
{
    int bad = sqlite3_bind_int64(q, 1, subject);
    bad |= bind_run(q, 2, run);
    bad |= bind_text(q, 3, r->config);
    bad |= sqlite3_bind_int(q, 4, r->race != 0);
    bad |= sqlite3_bind_int64(q, 5, kp_clock_wall_us());
    return bad;
}

kopt_status kp_sqlite_result_begin(struct kp_store *st, int64_t run, int64_t subject,
                                   const kopt_result *r, int64_t *id, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    kopt_status code = kp_sqlite_stmt(s, KP_STMT_BEGIN, &q, err);
    if (code == KOPT_OK)
        code = kp_sqlite_run(s, q, bind_owner(q, run, subject, r), err);
    if (code == KOPT_OK)
        *id = sqlite3_last_insert_rowid(s->db);
    return code;
}

kopt_status kp_sqlite_result_finish(struct kp_store *st, int64_t id, const kopt_result *r,
                                    kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    kopt_status code = kp_sqlite_stmt(s, KP_STMT_FINISH, &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = sqlite3_bind_int64(q, 1, id);
    bad |= bind_measured(s, q, r);
    code = kp_sqlite_run(s, q, bad, err);
    if (code == KOPT_OK && sqlite3_changes(s->db) == 0)
        code = kp_err(err, KOPT_ENOTFOUND, "%s: no result %lld that waits to be completed",
                      s->path, (long long)id);
    return code;
}

kopt_status kp_sqlite_result_withdraw(struct kp_store *st, int64_t id, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    kopt_status code =
        kp_sqlite_prepare(s, "DELETE FROM result WHERE id = ?1 AND outcome = 10", &q, err);
    if (code != KOPT_OK)
        return code;
    code = kp_sqlite_run(s, q, sqlite3_bind_int64(q, 1, id), err);
    (void)sqlite3_finalize(q);
    return code;
}

kopt_status kp_sqlite_result_add(struct kp_store *st, int64_t run, int64_t subject,
                                 const kopt_result *r, int64_t *id, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    kopt_status code = kp_sqlite_stmt(s, KP_STMT_ADD, &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = bind_owner(q, run, subject, r);
    bad |= bind_measured(s, q, r);
    code = kp_sqlite_run(s, q, bad, err);
    if (code == KOPT_OK)
        *id = sqlite3_last_insert_rowid(s->db);
    return code;
}

kopt_status kp_sqlite_result_has(struct kp_store *st, int64_t subject, const kopt_result *r,
                                 bool *found, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    sqlite3_stmt *q = NULL;
    *found = false;
    kopt_status code = kp_sqlite_stmt(s, KP_STMT_HAS, &q, err);
    if (code != KOPT_OK)
        return code;
    int bad = sqlite3_bind_int64(q, 1, subject);
    bad |= bind_text(q, 2, r->config);
    bad |= sqlite3_bind_int(q, 3, r->race != 0);
    bad |= sqlite3_bind_int(q, 4, (int)r->outcome);
    bad |= sqlite3_bind_int64(q, 5, r->wall_us);
    bad |= sqlite3_bind_double(q, 6, r->median_ns);
    int rc = bad ? SQLITE_NOMEM : kp_sqlite_step(s, q);
    *found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = kp_sqlite_error(s, rc, err);
    (void)sqlite3_reset(q);
    (void)sqlite3_clear_bindings(q);
    return code;
}

/* --- batches -------------------------------------------------------------------------------
 */

kopt_status kp_sqlite_batch_begin(struct kp_store *st, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    kopt_status code = kp_sqlite_begin(s, err);
    s->batch = code == KOPT_OK;
    return code;
}

kopt_status kp_sqlite_batch_end(struct kp_store *st, bool keep, kopt_error *err)
{
    struct kp_sqlite *s = start(st);
    kopt_error undone;
    s->batch = false;
    if (keep)
        return kp_sqlite_end(s, KOPT_OK, err);
    (void)kp_sqlite_end(s, KOPT_EFAILED, &undone);
    return KOPT_OK;
}
