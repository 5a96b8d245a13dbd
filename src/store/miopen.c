/* SPDX-License-Identifier: MIT */
/* MIOpen's performance databases in SQLite, and which kind of file one is. Layer: store. */
#include "store/miopen.h"

#include "store/miopen_impl.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_BYTES = 100, N_FRONT = 3 /* columns of perf_db in the query */ };

const char *kp_miopen_kind_name(enum kp_miopen_kind kind)
{
    switch (kind) {
    case KP_MIOPEN_SQLITE:
        return "performance database (SQLite)";
    case KP_MIOPEN_TEXT:
        return "performance database (text)";
    case KP_MIOPEN_FIND:
        break;
    }
    return "find database";
}

/* --- what all readers need -----------------------------------------------------------------
 */

void kp_miopen_skip(const struct kp_miopen_walk *w, int64_t line, const char *reason)
{
    if (w->count->skipped++ > 0)
        return;
    w->count->first_line = line;
    w->count->reason = reason;
}

kopt_status kp_miopen_emit(const struct kp_miopen_walk *w, const struct kp_miopen_row *row)
{
    if (w->solver && strcmp(w->solver, row->solver) != 0)
        return KOPT_OK;
    if (w->count->rows >= KP_MIOPEN_ROWS_MAX)
        return kp_err(w->err, KOPT_ERANGE, "%s: more than %d rows", w->path,
                      KP_MIOPEN_ROWS_MAX);
    w->count->rows++;
    return w->visit(w->user, row, w->err);
}

size_t kp_miopen_values(char *text, const char **values)
{
    size_t n = 0;
    if (strlen(text) > KP_MIOPEN_TEXT_MAX)
        return 0;
    for (char *p = text; p;) {
        char *comma = strchr(p, ',');
        if (comma)
            *comma = '\0';
        if (*p == '\0' || n == KP_MIOPEN_VALUES_MAX)
            return 0;
        values[n++] = p;
        p = comma ? comma + 1 : NULL;
    }
    return n;
}

const char *kp_miopen_column_name(size_t i)
{
    return i < KP_MIOPEN_KEY_COLUMNS ? kp_miopen_key_columns[i] : NULL;
}

const char *kp_miopen_column(const struct kp_miopen_row *row, const char *name)
{
    for (size_t i = 0; i < row->n_columns; i++) {
        if (strcmp(row->columns[i], name) == 0)
            return row->problem[i];
    }
    return NULL;
}

/* --- SQLite --------------------------------------------------------------------------------
 */

struct reader {
    const struct kp_miopen_walk *w;
    sqlite3 *db;
    sqlite3_stmt *q;
    struct kp_buf key;
    struct kp_buf params; /* cut into values */
    const char *columns[KP_MIOPEN_COLUMNS_MAX];
    const char *problem[KP_MIOPEN_COLUMNS_MAX];
    int of[KP_MIOPEN_COLUMNS_MAX]; /* the column of the query */
    size_t n_columns;
    const char *values[KP_MIOPEN_VALUES_MAX];
};

static kopt_status foreign(const struct kp_miopen_walk *w, const char *what)
{
    kopt_status st =
        kp_err(w->err, KOPT_EINPUT, "%s: no performance database of MIOpen: %s", w->path, what);
    kp_err_hint(w->err, "expected the tables config and perf_db");
    return st;
}

static kopt_status failed(const struct reader *r, int rc)
{
    const struct kp_miopen_walk *w = r->w;
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return kp_err_nomem(w->err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        (void)kp_err(w->err, KOPT_EBUSY, "%s: another process keeps the database locked",
                     w->path);
        kp_err_hint(w->err, "end what works with it, or give a copy of the file");
        return KOPT_EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return kp_err(w->err, KOPT_EINPUT, "%s: the database is cut or damaged: %s", w->path,
                      sqlite3_errmsg(r->db));
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return kp_err(w->err, KOPT_EIO, "%s: cannot read the database: %s", w->path,
                      sqlite3_errmsg(r->db));
    default:
        return foreign(w, sqlite3_errmsg(r->db));
    }
}

/* A stranger's file: its schema may not call functions, and what it holds is not believed. */
static kopt_status open_database(struct reader *r)
{
    struct kp_buf name = KP_BUF_INIT(4096);
    /* Never one of SQLite's special names (":memory:", "file:.."). */
    kp_buf_addf(&name, "%s%s", r->w->path[0] == '/' ? "" : "./", r->w->path);
    kopt_status st = kp_buf_status(&name, r->w->err);
    if (st == KOPT_OK) {
        int rc = sqlite3_open_v2(kp_buf_text(&name), &r->db,
                                 SQLITE_OPEN_READONLY | SQLITE_OPEN_PRIVATECACHE, NULL);
        if (rc != SQLITE_OK)
            st = r->db ? failed(r, rc) : kp_err_nomem(r->w->err);
    }
    kp_buf_deinit(&name);
    if (st != KOPT_OK)
        return st;
    (void)sqlite3_extended_result_codes(r->db, 1);
    (void)sqlite3_busy_timeout(r->db, KP_MIOPEN_BUSY_MS);
    (void)sqlite3_limit(r->db, SQLITE_LIMIT_LENGTH, KP_MIOPEN_LINE_MAX);
    (void)sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    (void)sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    return KOPT_OK;
}

/* Are the two tables there, as tables of their own (no views, no virtual ones)? *not_sqlite: it
 * is another kind of file. */
static kopt_status look_at_tables(struct reader *r, bool *not_sqlite)
{
    static const char sql[] = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
                              "rootpage > 0 AND name IN ('config', 'perf_db')";
    sqlite3_stmt *q = NULL;
    int n = 0;
    int rc = sqlite3_prepare_v2(r->db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        n = sqlite3_column_int(q, 0);
    *not_sqlite = (rc & 0xff) == SQLITE_NOTADB;
    kopt_status st = rc == SQLITE_ROW || *not_sqlite ? KOPT_OK : failed(r, rc);
    (void)sqlite3_finalize(q); /* repeats the error */
    if (st == KOPT_OK && !*not_sqlite && n != 2)
        st = foreign(r->w, "it has other tables");
    return st;
}

/* All columns of config but its id. */
static kopt_status find_columns(struct reader *r)
{
    static const char *const needed[] = {"data_type", "direction", "in_channels",
                                         "out_channels"};
    int n = sqlite3_column_count(r->q);
    if (n - N_FRONT > KP_MIOPEN_COLUMNS_MAX)
        return foreign(r->w, "too many columns in config");
    for (int i = N_FRONT; i < n; i++) {
        const char *name = sqlite3_column_name(r->q, i);
        if (!name)
            return kp_err_nomem(r->w->err);
        if (strcmp(name, "id") == 0)
            continue;
        r->of[r->n_columns] = i;
        r->columns[r->n_columns++] = name;
    }
    const struct kp_miopen_row row = {
        .columns = r->columns, .problem = r->columns, .n_columns = r->n_columns};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (!kp_miopen_column(&row, needed[i]))
            return foreign(r->w, "config does not describe convolutions");
    }
    return KOPT_OK;
}

static kopt_status prepare(struct reader *r)
{
    const char *solver = r->w->solver;
    /* A missing problem is seen, not left out: hence LEFT. */
    const char *sql = solver ? "SELECT p.id, p.solver, p.params, c.* FROM perf_db AS p LEFT "
                               "JOIN config AS c ON c.id = p.config WHERE p.solver = ?1 "
                               "ORDER BY p.id"
                             : "SELECT p.id, p.solver, p.params, c.* FROM perf_db AS p LEFT "
                               "JOIN config AS c ON c.id = p.config ORDER BY p.id";
    int rc = sqlite3_prepare_v2(r->db, sql, -1, &r->q, NULL);
    if (rc == SQLITE_OK && solver)
        rc = sqlite3_bind_text(r->q, 1, solver, -1, SQLITE_STATIC);
    return rc == SQLITE_OK ? find_columns(r) : failed(r, rc);
}

/* NULL: it is NULL, or has a NUL in it, or there is no memory (*nomem). */
static const char *text_at(struct reader *r, int column, bool *nomem)
{
    if (sqlite3_column_type(r->q, column) == SQLITE_NULL)
        return NULL;
    const char *text = (const char *)sqlite3_column_text(r->q, column);
    if (!text) {
        *nomem = true;
        return NULL;
    }
    int n = sqlite3_column_bytes(r->q, column);
    bool fine = strlen(text) == (size_t)n && n <= KP_MIOPEN_TEXT_MAX;
    return fine ? text : NULL;
}

/* What is wrong with the row, or NULL. */
static const char *read_row(struct reader *r, struct kp_miopen_row *row, bool *nomem)
{
    row->solver = text_at(r, 1, nomem);
    const char *params = text_at(r, 2, nomem);
    kp_buf_clear(&r->key);
    for (size_t i = 0; i < r->n_columns; i++) {
        r->problem[i] = text_at(r, r->of[i], nomem);
        if (!r->problem[i])
            return "its problem is missing or has a gap";
        kp_buf_addf(&r->key, "%s%s", i ? "," : "", r->problem[i]);
    }
    if (!row->solver || row->solver[0] == '\0' || !params)
        return "no solver or no vector";
    kp_buf_clear(&r->params);
    kp_buf_adds(&r->params, params);
    if (r->key.failed == KOPT_ENOMEM || r->params.failed == KOPT_ENOMEM)
        *nomem = true;
    if (r->key.failed != KOPT_OK || r->params.failed != KOPT_OK)
        return "a text that is too long";
    row->n_values = kp_miopen_values((char *)r->params.ptr, r->values);
    return row->n_values ? NULL : "a vector that is empty, has a gap or is too long";
}

static kopt_status read_rows(struct reader *r)
{
    const struct kp_miopen_walk *w = r->w;
    for (;;) {
        bool nomem = false;
        int rc = sqlite3_step(r->q);
        if (rc == SQLITE_DONE)
            return KOPT_OK;
        if (rc != SQLITE_ROW)
            return failed(r, rc);
        struct kp_miopen_row row = {.columns = r->columns,
                                    .problem = r->problem,
                                    .n_columns = r->n_columns,
                                    .values = r->values,
                                    .line = sqlite3_column_int64(r->q, 0)};
        const char *wrong = read_row(r, &row, &nomem);
        row.key = kp_buf_text(&r->key);
        if (nomem)
            return kp_err_nomem(w->err);
        if (wrong)
            kp_miopen_skip(w, row.line, wrong);
        kopt_status st = wrong ? KOPT_OK : kp_miopen_emit(w, &row);
        if (st != KOPT_OK)
            return st;
    }
}

static kopt_status read_sqlite(const struct kp_miopen_walk *w, bool *not_sqlite)
{
    struct reader r = {.w = w,
                       .key = KP_BUF_INIT(KP_MIOPEN_TEXT_MAX),
                       .params = KP_BUF_INIT(KP_MIOPEN_TEXT_MAX)};
    w->count->kind = KP_MIOPEN_SQLITE;
    kopt_status st = open_database(&r);
    if (st == KOPT_OK)
        st = look_at_tables(&r, not_sqlite);
    if (st == KOPT_OK && !*not_sqlite)
        st = prepare(&r);
    if (st == KOPT_OK && !*not_sqlite)
        st = read_rows(&r);
    (void)sqlite3_finalize(r.q); /* repeats the error */
    (void)sqlite3_close(r.db);   /* nothing is open any more */
    kp_buf_deinit(&r.params);
    kp_buf_deinit(&r.key);
    return st;
}

/* --- any of them ---------------------------------------------------------------------------
 */

static kopt_status nothing_usable(const struct kp_miopen_walk *w)
{
    const struct kp_miopen_count *c = w->count;
    if (!c->reason)
        return kp_err(w->err, KOPT_EINPUT, "%s: the %s has no rows", w->path,
                      kp_miopen_kind_name(c->kind));
    return kp_err(w->err, KOPT_EINPUT,
                  "%s: the %s has no row that can be used; %s %" PRId64 ": %s", w->path,
                  kp_miopen_kind_name(c->kind), c->kind == KP_MIOPEN_SQLITE ? "row" : "line",
                  c->first_line, c->reason);
}

kopt_status kp_miopen_read(const char *path, const char *solver, kp_miopen_visit visit,
                           void *user, struct kp_miopen_count *count, kopt_error *err)
{
    struct stat info;
    const struct kp_miopen_walk w = {path, solver, visit, user, count, err};
    *count = (struct kp_miopen_count){0};
    /* SQLite itself says whether it is one: opening and closing the file here would take the
     * locks away that this process may hold on it as a store. */
    bool not_sqlite =
        stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < HEADER_BYTES;
    kopt_status st = not_sqlite ? KOPT_OK : read_sqlite(&w, &not_sqlite);
    if (st == KOPT_OK && not_sqlite)
        st = kp_miopen_read_text(&w);
    if (st == KOPT_OK && count->rows == 0 && !solver)
        st = nothing_usable(&w);
    return st;
}
