/* SPDX-License-Identifier: MIT */
#include "store/sqlite/schema.h"

#include <assert.h>
#include <stdio.h>

/* A new outcome needs a new step that adds its row, so that older programs refuse the file
 * instead of meeting a number they do not know. */
static_assert(KOPT_OUT_COUNT == 11, "add a migration that fills the table of outcomes");
static_assert(KOPT_OUT_OK == 0 && KOPT_OUT_INTERRUPTED == 10, "the SQL has these numbers");

static const char schema_1[] =
    "CREATE TABLE outcome(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " meaning TEXT NOT NULL) STRICT;"

    "CREATE TABLE subject(id INTEGER PRIMARY KEY, kernel TEXT NOT NULL,"
    " kernel_path TEXT NOT NULL, kernel_hash TEXT NOT NULL, backend TEXT NOT NULL,"
    " device TEXT NOT NULL, arch TEXT NOT NULL, driver TEXT NOT NULL, compiler TEXT NOT NULL,"
    " problem TEXT NOT NULL, data TEXT NOT NULL, created_us INTEGER NOT NULL,"
    " UNIQUE(kernel, problem, device, kernel_hash, backend, arch, driver, compiler, data))"
    " STRICT;"

    "CREATE TABLE run(id INTEGER PRIMARY KEY,"
    " subject INTEGER NOT NULL REFERENCES subject(id) ON DELETE CASCADE,"
    " command TEXT NOT NULL, strategy TEXT NOT NULL, version TEXT NOT NULL,"
    " host TEXT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL, seed INTEGER NOT NULL,"
    " begun_us INTEGER NOT NULL, ended_us INTEGER NOT NULL) STRICT;"
    "CREATE INDEX run_subject ON run(subject);"

    /* The long columns are last: reading the others does not touch their pages. */
    "CREATE TABLE result(id INTEGER PRIMARY KEY,"
    " subject INTEGER NOT NULL REFERENCES subject(id) ON DELETE CASCADE,"
    " run INTEGER REFERENCES run(id) ON DELETE SET NULL,"
    " config TEXT NOT NULL, race INTEGER NOT NULL,"
    " outcome INTEGER NOT NULL REFERENCES outcome(id),"
    " begun_us INTEGER NOT NULL, wall_us INTEGER NOT NULL,"
    " median_ns REAL, low_ns REAL, high_ns REAL, dropped INTEGER NOT NULL,"
    " compile_ns REAL, device_ns REAL,"
    " registers INTEGER, shared_bytes INTEGER, local_bytes INTEGER, max_error REAL,"
    " power_w REAL, energy_j REAL, sm_mhz REAL, temp_c REAL,"
    " times BLOB, message TEXT NOT NULL, log TEXT NOT NULL) STRICT;"
    "CREATE INDEX result_config ON result(subject, config, race);"
    "CREATE INDEX result_run ON result(run);"
    "CREATE INDEX result_ok ON result(subject, median_ns) WHERE outcome = 0;"
    "CREATE INDEX result_race ON result(subject, run) WHERE race = 1 AND outcome = 0;"

    /* The winner of the newest race. (Left alone, SQLite looks for the race among all results.)
     */
    "CREATE VIEW winner(subject, result) AS SELECT s.id,"
    " (SELECT r.id FROM result r INDEXED BY result_race"
    " WHERE r.subject = s.id AND r.race = 1 AND r.outcome = 0"
    " AND r.run = (SELECT max(w.run) FROM result w"
    "  WHERE w.subject = s.id AND w.race = 1 AND w.outcome = 0)"
    " AND NOT EXISTS(SELECT 1 FROM result x WHERE x.subject = r.subject"
    "  AND x.config = r.config AND x.id > r.id AND x.outcome NOT IN (0, 10))"
    " ORDER BY r.median_ns, r.id LIMIT 1) FROM subject s;"

    /* What was measured after that race and is clearly faster, its interval below the winner's;
     * else the winner; else the smallest median. Never a configuration whose newest completed
     * result is not ok. NULL where there is none. */
    "CREATE VIEW best(subject, result) AS SELECT s.id, coalesce("
    "(SELECT r.id FROM winner v CROSS JOIN result w CROSS JOIN result r INDEXED BY result_ok"
    " WHERE v.subject = s.id AND w.id = v.result AND r.subject = s.id AND r.outcome = 0"
    " AND r.median_ns < w.low_ns AND r.high_ns < w.low_ns AND r.id > w.id AND r.race = 0"
    " AND NOT EXISTS(SELECT 1 FROM result x WHERE x.subject = r.subject"
    "  AND x.config = r.config AND x.id > r.id AND x.outcome <> 10)"
    " ORDER BY r.median_ns, r.id LIMIT 1),"
    "(SELECT v.result FROM winner v WHERE v.subject = s.id),"
    "(SELECT r.id FROM result r WHERE r.subject = s.id AND r.outcome = 0"
    " AND NOT EXISTS(SELECT 1 FROM result x WHERE x.subject = r.subject"
    "  AND x.config = r.config AND x.id > r.id AND x.outcome <> 10)"
    " ORDER BY r.median_ns, r.id LIMIT 1)) FROM subject s;"

    /* For people at the sqlite3 prompt; kopt does not read it. */
    "CREATE VIEW measurement AS SELECT r.id, s.kernel, s.problem, s.device, r.config,"
    " o.name AS outcome, r.median_ns / 1e6 AS median_ms, r.low_ns / 1e6 AS low_ms,"
    " r.high_ns / 1e6 AS high_ms, r.race, r.message, r.subject, r.run,"
    " datetime(coalesce(nullif(r.wall_us, 0), r.begun_us) / 1000000, 'unixepoch') AS utc"
    " FROM result r JOIN subject s ON s.id = r.subject JOIN outcome o ON o.id = r.outcome;";

/* A column that is added stands behind the long ones: reading it may touch their pages, of rows
 * that are longer than one. */
static const char schema_2[] = "ALTER TABLE subject ADD COLUMN params TEXT NOT NULL DEFAULT '';"
                               "ALTER TABLE result ADD COLUMN throttle INTEGER;";

static int fill_outcomes(sqlite3 *db)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, "INSERT INTO outcome VALUES(?1, ?2, ?3)", -1, &q, NULL);
    for (int i = 0; i < KOPT_OUT_COUNT && rc == SQLITE_OK; i++) {
        rc = sqlite3_bind_int(q, 1, i);
        rc |= sqlite3_bind_text(q, 2, kopt_outcome_name((kopt_outcome)i), -1, SQLITE_STATIC);
        rc |= sqlite3_bind_text(q, 3, kopt_outcome_text((kopt_outcome)i), -1, SQLITE_STATIC);
        if (rc == SQLITE_OK && sqlite3_step(q) != SQLITE_DONE)
            rc = sqlite3_extended_errcode(db);
        (void)sqlite3_reset(q);
    }
    (void)sqlite3_finalize(q);
    return rc;
}

static const struct kp_migration steps_all[] = {{schema_1, fill_outcomes}, {schema_2, NULL}};

const struct kp_migration *kp_sqlite_migrations(size_t *n)
{
    *n = sizeof(steps_all) / sizeof(steps_all[0]);
    return steps_all;
}

struct identity {
    int64_t app_id;
    int64_t version;
    int64_t n_tables;
};

static kopt_status read_identity(struct kp_sqlite *s, struct identity *out, kopt_error *err)
{
    *out = (struct identity){0};
    /* In one statement, so that another process cannot make the schema in between. */
    sqlite3_stmt *q = NULL;
    kopt_status st = kp_sqlite_prepare(s,
                                       "SELECT (SELECT application_id FROM"
                                       " pragma_application_id),"
                                       " (SELECT user_version FROM pragma_user_version),"
                                       " (SELECT count(*) FROM sqlite_schema)",
                                       &q, err);
    if (st != KOPT_OK)
        return st;
    int rc = kp_sqlite_step(s, q);
    if (rc == SQLITE_ROW) {
        out->app_id = sqlite3_column_int64(q, 0);
        out->version = sqlite3_column_int64(q, 1);
        out->n_tables = sqlite3_column_int64(q, 2);
    } else {
        st = kp_sqlite_error(s, rc, err);
    }
    (void)sqlite3_finalize(q);
    return st;
}

static bool is_empty(const struct identity *x)
{
    return x->app_id == 0 && x->version == 0 && x->n_tables == 0;
}

/* KOPT_OK when it is a store of schema n or can become one. */
static kopt_status judge(const struct kp_sqlite *s, const struct identity *x, size_t n,
                         kopt_error *err)
{
    kopt_status st = KOPT_OK;
    if (is_empty(x)) {
        if (s->base.mode == KP_STORE_READ) {
            st = kp_err(err, KOPT_ENOTFOUND, "%s: the store is empty", s->path);
            kp_err_hint(err, "tune a kernel with it first, or check the path");
        }
    } else if (x->app_id != KP_SQLITE_APP_ID || x->version < 1) {
        st =
            kp_err(err, KOPT_ECORRUPT, "%s: an SQLite database, but not a kopt store", s->path);
        kp_err_hint(err, "give another path, or move this file away");
    } else if (x->version > (int64_t)n) {
        st = kp_err(err, KOPT_ECORRUPT,
                    "%s: written by a newer kopt (schema %lld, this one knows %zu)", s->path,
                    (long long)x->version, n);
        kp_err_hint(err, "use the newer kopt, or give another path");
    } else if (x->version < (int64_t)n && s->base.mode == KP_STORE_READ) {
        st = kp_err(err, KOPT_EIO, "%s: has the older schema %lld and is opened for reading",
                    s->path, (long long)x->version);
        kp_err_hint(err, "tune or import with it once: that brings it to schema %zu", n);
    }
    return st;
}

static int run_steps(struct kp_sqlite *s, const struct kp_migration *steps, size_t from,
                     size_t n)
{
    int rc = SQLITE_OK;
    for (size_t i = from; i < n && rc == SQLITE_OK; i++) {
        rc = kp_sqlite_exec(s, steps[i].sql);
        if (rc == SQLITE_OK && steps[i].fill)
            rc = steps[i].fill(s->db);
    }
    char sql[96];
    (void)snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%zu",
                   (int)KP_SQLITE_APP_ID, n);
    return rc == SQLITE_OK ? kp_sqlite_exec(s, sql) : rc;
}

kopt_status kp_sqlite_recognise(struct kp_sqlite *s, size_t n, kopt_error *err)
{
    struct identity x;
    kopt_status st = read_identity(s, &x, err);
    return st == KOPT_OK ? judge(s, &x, n, err) : st;
}

kopt_status kp_sqlite_schema(struct kp_sqlite *s, const struct kp_migration *steps, size_t n,
                             kopt_error *err)
{
    struct identity x;
    kopt_status st = read_identity(s, &x, err);
    if (st == KOPT_OK)
        st = judge(s, &x, n, err);
    if (st != KOPT_OK || (x.app_id == KP_SQLITE_APP_ID && x.version == (int64_t)n))
        return st;

    st = kp_sqlite_begin(s, err);
    if (st != KOPT_OK)
        return st;
    /* Another process may have been faster: look again now that nobody else can write. */
    st = read_identity(s, &x, err);
    if (st == KOPT_OK)
        st = judge(s, &x, n, err);
    if (st == KOPT_OK && x.version < (int64_t)n) {
        int rc = run_steps(s, steps, (size_t)x.version, n);
        if (rc != SQLITE_OK)
            st = kp_sqlite_error(s, rc, err);
    }
    return kp_sqlite_end(s, st, err);
}
