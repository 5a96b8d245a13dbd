/* SPDX-License-Identifier: MIT */
#include "store/sqlite/db.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite locks with fcntl(), and closing any descriptor of a file drops all locks that this
 * process holds on it. So nothing here opens the store's file itself: stat() and SQLite only.
 */

enum {
    CHECK_BYTES_MAX = 4 << 20,  /* smaller files are looked through whenever they are opened */
    VALUE_BYTES_MAX = 64 << 20, /* one text or BLOB */
    PATH_BYTES_MAX = 4096,
    SAMPLES_BYTES_MAX = 8 << 20
};

/* --- waiting -------------------------------------------------------------------------------
 */

void kp_sqlite_start(struct kp_sqlite *s)
{
    s->deadline_ns = kp_clock_ns() + (int64_t)s->busy_ms * 1000000;
}

/* Sleep for longer and longer, 50 us to 5 ms: writers hold the lock for tens of microseconds,
 * an import for milliseconds. False when the time is over. */
static bool wait_once(const struct kp_sqlite *s, int count)
{
    int64_t left = s->deadline_ns - kp_clock_ns();
    if (left <= 0)
        return false;
    int64_t ns = count < 7 ? (int64_t)50000 << count : 5000000;
    kp_clock_sleep_ns(ns < left ? ns : left);
    return true;
}

static int on_busy(void *user, int count)
{
    return wait_once(user, count);
}

static bool is_busy(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_PROTOCOL;
}

/* In some places (making the WAL, recovering it) SQLite says "busy" without asking the handler;
 * hence the second loop around the first. */
int kp_sqlite_step(struct kp_sqlite *s, sqlite3_stmt *q)
{
    for (int i = 0;; i++) {
        int rc = sqlite3_step(q);
        if (!is_busy(rc) || !wait_once(s, i))
            return rc;
        (void)sqlite3_reset(q);
    }
}

int kp_sqlite_exec(struct kp_sqlite *s, const char *sql)
{
    for (int i = 0;; i++) {
        int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
        if (!is_busy(rc) || !wait_once(s, i))
            return rc;
    }
}

int kp_sqlite_scalar(struct kp_sqlite *s, const char *sql, int64_t *out)
{
    sqlite3_stmt *q = NULL;
    *out = 0;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK) {
        rc = kp_sqlite_step(s, q);
        if (rc == SQLITE_ROW)
            *out = sqlite3_column_int64(q, 0);
        if (rc == SQLITE_ROW || rc == SQLITE_DONE)
            rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(q);
    return rc;
}

/* --- errors --------------------------------------------------------------------------------
 */

static kopt_status damaged(const char *path, const char *what, kopt_error *err)
{
    (void)kp_err(err, KOPT_ECORRUPT, "%s: the store is damaged: %s", path, what);
    kp_err_hint(err, "keep a copy; docs/store.md says how to save what can be read");
    return KOPT_ECORRUPT;
}

static kopt_status not_a_store(const char *path, kopt_error *err)
{
    (void)kp_err(err, KOPT_ECORRUPT, "%s: not a kopt store (not an SQLite database)", path);
    kp_err_hint(err, "give another path, or move this file away");
    return KOPT_ECORRUPT;
}

static kopt_status locked(const struct kp_sqlite *s, kopt_error *err)
{
    (void)kp_err(err, KOPT_EBUSY, "%s: another process kept the store locked for %d ms",
                 s->path, s->busy_ms);
    kp_err_hint(err, "end that process (fuser or lsof names it), or try again later");
    return KOPT_EBUSY;
}

static kopt_status full(const char *path, kopt_error *err)
{
    (void)kp_err(err, KOPT_EFULL, "%s: no space left for the store", path);
    kp_err_hint(err, "free space on its disk; everything stored so far is safe");
    return KOPT_EFULL;
}

static kopt_status unreadable(const struct kp_sqlite *s, int rc, int sys, kopt_error *err)
{
    bool write = s->base.mode == KP_STORE_WRITE;
    (void)kp_err(err, KOPT_EIO, "%s: cannot %s the store: %s", s->path,
                 write ? "write" : "read", sys ? strerrordesc_np(sys) : sqlite3_errstr(rc));
    if ((rc & 0xff) == SQLITE_IOERR)
        kp_err_hint(err, "the disk failed; the system's log (dmesg) may say more");
    else if (write)
        kp_err_hint(err, "the file and its folder must be writable (FILE-wal and FILE-shm "
                         "stand beside it)");
    else
        kp_err_hint(err, "copy the store, with FILE-wal if there is one, to a folder that you "
                         "can write");
    return KOPT_EIO;
}

/* The system's reason for an error of input or output; 0 = not known. What fails in a commit is
 * a write to the log, whose own last error SQLite does not pass on. */
static int system_reason(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int e = db ? sqlite3_system_errno(db) : 0;
    if (e == 0 && db &&
        sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log) ==
            SQLITE_OK &&
        log && log->pMethods)
        (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &e);
    return e;
}

kopt_status kp_sqlite_error(const struct kp_sqlite *s, int rc, kopt_error *err)
{
    bool io = (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN;
    int sys = io ? system_reason(s->db) : 0;
    if (io && (sys == ENOSPC || sys == EDQUOT || sys == EFBIG))
        return full(s->path, err);
    if (rc == SQLITE_IOERR_NOMEM)
        return kp_err_nomem(err);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return kp_err_nomem(err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return locked(s, err);
    case SQLITE_FULL:
        return full(s->path, err);
    case SQLITE_NOTADB:
        return not_a_store(s->path, err);
    case SQLITE_CORRUPT:
        return damaged(s->path, sqlite3_errmsg(s->db), err);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return unreadable(s, rc, sys, err);
    case SQLITE_TOOBIG:
        return kp_err(err, KOPT_ERANGE, "%s: a text is too long to be stored", s->path);
    case SQLITE_CONSTRAINT:
        if (rc == SQLITE_CONSTRAINT_FOREIGNKEY)
            return kp_err(err, KOPT_ENOTFOUND, "%s: no such subject or run", s->path);
        break;
    default:
        break;
    }
    /* What is left are tables that are not as this program made them. */
    return damaged(s->path, s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc), err);
}

/* --- statements ----------------------------------------------------------------------------
 */

kopt_status kp_sqlite_prepare(struct kp_sqlite *s, const char *sql, sqlite3_stmt **out,
                              kopt_error *err)
{
    int rc = SQLITE_OK;
    *out = NULL;
    for (int i = 0;; i++) {
        rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
        if (!is_busy(rc) || !wait_once(s, i))
            break;
    }
    return rc == SQLITE_OK ? KOPT_OK : kp_sqlite_error(s, rc, err);
}

kopt_status kp_sqlite_stmt(struct kp_sqlite *s, enum kp_stmt which, sqlite3_stmt **out,
                           kopt_error *err)
{
    if (!s->cached[which]) {
        kopt_status st =
            kp_sqlite_prepare(s, kp_sqlite_stmt_text(which), &s->cached[which], err);
        if (st != KOPT_OK)
            return st;
    }
    *out = s->cached[which];
    (void)sqlite3_reset(*out); /* repeats the error of its last use, which was reported then */
    return KOPT_OK;
}

kopt_status kp_sqlite_run(struct kp_sqlite *s, sqlite3_stmt *q, int bound, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    /* Binding fails for lack of memory only: store.c has looked at the lengths. */
    int rc = bound ? SQLITE_NOMEM : kp_sqlite_step(s, q);
    if (rc != SQLITE_DONE)
        st = kp_sqlite_error(s, rc, err);
    (void)sqlite3_reset(q);
    (void)sqlite3_clear_bindings(q); /* they point to the caller's texts */
    return st;
}

kopt_status kp_sqlite_begin(struct kp_sqlite *s, kopt_error *err)
{
    if (s->batch)
        return KOPT_OK;
    int rc = kp_sqlite_exec(s, "BEGIN IMMEDIATE");
    return rc == SQLITE_OK ? KOPT_OK : kp_sqlite_error(s, rc, err);
}

kopt_status kp_sqlite_end(struct kp_sqlite *s, kopt_status st, kopt_error *err)
{
    if (s->batch)
        return st;
    if (st == KOPT_OK) {
        int rc = kp_sqlite_exec(s, "COMMIT");
        if (rc != SQLITE_OK)
            st = kp_sqlite_error(s, rc, err);
    }
    /* Some failures (a full disk) have rolled back already. */
    if (st != KOPT_OK && !sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

/* --- opening -------------------------------------------------------------------------------
 */

static kopt_status look_at_folder(const char *path, kopt_error *err)
{
    struct stat info;
    kopt_status st = KOPT_OK;
    char *dir = kp_path_dir(path);
    if (!dir)
        return kp_err_nomem(err);
    if (stat(dir, &info) != 0) {
        st = kp_err(err, KOPT_EIO, "%s: cannot make the store: folder %s: %s", path, dir,
                    strerrordesc_np(errno));
        kp_err_hint(err, "make the folder first: mkdir -p %.180s", dir);
    } else if (!S_ISDIR(info.st_mode)) {
        st = kp_err(err, KOPT_EIO, "%s: cannot make the store: %s is not a folder", path, dir);
        kp_err_hint(err, "give another path");
    }
    kp_free(dir);
    return st;
}

static kopt_status look_at_file(const char *path, enum kp_store_mode mode, kopt_error *err)
{
    struct stat info;
    kopt_status st = KOPT_OK;
    if (stat(path, &info) != 0) {
        int e = errno;
        if (mode == KP_STORE_WRITE && (e == ENOENT || e == ENOTDIR))
            return look_at_folder(path, err);
        st = kp_err(err, e == ENOENT ? KOPT_ENOTFOUND : KOPT_EIO,
                    "%s: cannot open the store: %s", path, strerrordesc_np(e));
        kp_err_hint(err, "tuning a kernel makes a store; check the path");
    } else if (S_ISDIR(info.st_mode)) {
        st = kp_err(err, KOPT_EIO, "%s: a folder, not a store", path);
        kp_err_hint(err, "give the path of a file, for example %.180s/kopt.db", path);
    } else if (!S_ISREG(info.st_mode)) {
        st = kp_err(err, KOPT_EIO, "%s: not a regular file, so not a store", path);
        kp_err_hint(err, "give another path");
    } else if (info.st_size == 1) {
        st = not_a_store(path,
                         err); /* SQLite takes one byte for none, and would write over it */
    }
    return st;
}

/* The path as SQLite is to have it: never one of its special names (":memory:", "file:..."). */
static void plain_name(const char *path, struct kp_buf *out)
{
    kp_buf_addf(out, "%s%s", path[0] == '/' ? "" : "./", path);
}

/* The same as a URI that tells SQLite that nobody writes the file. */
static void frozen_name(const char *path, struct kp_buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    kp_buf_adds(out, path[0] == '/' ? "file:" : "file:./");
    for (const char *p = path; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("/._-", c))
            kp_buf_addc(out, (char)c);
        else
            kp_buf_addf(out, "%%%c%c", hex[c >> 4], hex[c & 15]);
    }
    kp_buf_adds(out, "?immutable=1");
}

/* Is there a log beside the file with something in it? */
static bool has_wal(const char *path)
{
    struct stat info;
    struct kp_buf name = KP_BUF_INIT(PATH_BYTES_MAX + 8);
    kp_buf_addf(&name, "%s-wal", path);
    bool found =
        name.failed != KOPT_OK || (stat(kp_buf_text(&name), &info) == 0 && info.st_size > 0);
    kp_buf_deinit(&name);
    return found;
}

static const char settings[] =
    "PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY;"
    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
    /* The log is copied into the file when it has 4000 pages (16 MiB): that is where the disk
     * is waited for, and less often is cheaper for each result. It is cut back to 32 MiB. */
    "PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=33554432";

/* A connection with its settings, after the first read of the file. */
static int connect_to(struct kp_sqlite *s, bool frozen)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | (frozen ? SQLITE_OPEN_URI : 0) |
                (s->base.mode == KP_STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                : SQLITE_OPEN_READONLY);
    struct kp_buf name = KP_BUF_INIT((size_t)4 * PATH_BYTES_MAX);
    int64_t version = 0;
    if (frozen)
        frozen_name(s->path, &name);
    else
        plain_name(s->path, &name);
    int rc = name.failed == KOPT_OK ? SQLITE_OK : SQLITE_NOMEM;
    if (rc == SQLITE_OK)
        rc = sqlite3_open_v2(kp_buf_text(&name), &s->db, flags, NULL);
    kp_buf_deinit(&name);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_busy_handler(s->db, on_busy, s);
    (void)sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* Else a statement that compares outcome with a parameter is compiled anew for each value,
     * in case a partial index serves that one. */
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
    rc = kp_sqlite_exec(s, settings);
    return rc == SQLITE_OK ? kp_sqlite_scalar(s, "PRAGMA schema_version", &version) : rc;
}

/* A store on a read-only disk or in somebody else's folder: SQLite wants to make the log's
 * index beside it and cannot. When there is no log, the file is all there is and can be read as
 * it stands. */
static kopt_status connect_store(struct kp_sqlite *s, kopt_error *err)
{
    int rc = connect_to(s, false);
    int primary = rc & 0xff;
    if (s->base.mode == KP_STORE_READ &&
        (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) &&
        access(s->path, R_OK) == 0 && !has_wal(s->path)) {
        (void)sqlite3_close(s->db);
        s->db = NULL;
        rc = connect_to(s, true);
    }
    if (rc == SQLITE_OK && s->base.mode == KP_STORE_WRITE && sqlite3_db_readonly(s->db, "main"))
        rc = SQLITE_READONLY;
    return rc == SQLITE_OK ? KOPT_OK : kp_sqlite_error(s, rc, err);
}

static kopt_status use_wal(struct kp_sqlite *s, kopt_error *err)
{
    sqlite3_stmt *q = NULL;
    kopt_status st = kp_sqlite_prepare(s, "PRAGMA journal_mode=WAL", &q, err);
    if (st != KOPT_OK)
        return st;
    int rc = kp_sqlite_step(s, q);
    const unsigned char *mode = rc == SQLITE_ROW ? sqlite3_column_text(q, 0) : NULL;
    if (rc != SQLITE_ROW) {
        st = kp_sqlite_error(s, rc, err);
    } else if (!mode || strcmp((const char *)mode, "wal") != 0) {
        st = kp_err(err, KOPT_EIO, "%s: the file system cannot hold a shared store", s->path);
        kp_err_hint(err, "put it on a local disk");
    }
    (void)sqlite3_finalize(q);
    return st;
}

/* `pragma` gives "ok" or what is wrong in its rows. */
static kopt_status look_through(struct kp_sqlite *s, const char *pragma, kopt_error *err)
{
    sqlite3_stmt *q = NULL;
    kopt_status st = kp_sqlite_prepare(s, pragma, &q, err);
    if (st != KOPT_OK)
        return st;
    int rc = kp_sqlite_step(s, q);
    const unsigned char *text = rc == SQLITE_ROW ? sqlite3_column_text(q, 0) : NULL;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        st = kp_sqlite_error(s, rc, err);
    else if (text && strcmp((const char *)text, "ok") != 0)
        st = damaged(s->path, (const char *)text, err);
    (void)sqlite3_finalize(q);
    return st;
}

static kopt_status look_through_small(struct kp_sqlite *s, kopt_error *err)
{
    int64_t pages = 0;
    int64_t page_bytes = 0;
    int rc = kp_sqlite_scalar(s, "PRAGMA page_count", &pages);
    if (rc == SQLITE_OK)
        rc = kp_sqlite_scalar(s, "PRAGMA page_size", &page_bytes);
    if (rc != SQLITE_OK)
        return kp_sqlite_error(s, rc, err);
    if (page_bytes <= 0 || pages > CHECK_BYTES_MAX / page_bytes)
        return KOPT_OK;
    return look_through(s, "PRAGMA quick_check(1)", err);
}

kopt_status kp_sqlite_open(const char *path, enum kp_store_mode mode, int busy_ms,
                           struct kp_store **out, kopt_error *err)
{
    *out = NULL;
    if (strlen(path) > PATH_BYTES_MAX)
        return kp_err(err, KOPT_EIO, "the path of the store is longer than %d bytes",
                      (int)PATH_BYTES_MAX);
    kopt_status st = look_at_file(path, mode, err);
    if (st != KOPT_OK)
        return st;
    size_t n_steps = 0;
    const struct kp_migration *steps = kp_sqlite_migrations(&n_steps);
    struct kp_sqlite *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->base.mode = mode;
    s->busy_ms = busy_ms;
    s->samples = KP_BUF_INIT(SAMPLES_BYTES_MAX);
    s->path = kp_strdup(path);
    kp_sqlite_start(s);
    st = s->path ? connect_store(s, err) : kp_err_nomem(err);
    if (st == KOPT_OK)
        st = kp_sqlite_recognise(s, n_steps, err); /* before anything is changed in it */
    if (st == KOPT_OK && mode == KP_STORE_WRITE)
        st = use_wal(s, err);
    if (st == KOPT_OK)
        st = kp_sqlite_schema(s, steps, n_steps, err);
    if (st == KOPT_OK)
        st = look_through_small(s, err);
    /* Now, and not at the first use: a file with other tables is refused here. */
    for (int i = 0; i < KP_STMT_COUNT && st == KOPT_OK; i++)
        st = kp_sqlite_prepare(s, kp_sqlite_stmt_text((enum kp_stmt)i), &s->cached[i], err);
    if (st == KOPT_OK)
        *out = &s->base;
    else
        kp_sqlite_close(&s->base);
    return st;
}

void kp_sqlite_close(struct kp_store *st)
{
    struct kp_sqlite *s = (struct kp_sqlite *)st;
    for (int i = 0; i < KP_STMT_COUNT; i++)
        (void)sqlite3_finalize(s->cached[i]);
    (void)sqlite3_close(s->db);
    kp_buf_deinit(&s->samples);
    kp_free(s->path);
    kp_free(s);
}

kopt_status kp_sqlite_check(struct kp_store *st, kopt_error *err)
{
    struct kp_sqlite *s = (struct kp_sqlite *)st;
    int64_t orphans = 0;
    kp_sqlite_start(s);
    kopt_status code = look_through(s, "PRAGMA integrity_check(1)", err);
    if (code != KOPT_OK)
        return code;
    int rc = kp_sqlite_scalar(s, "SELECT count(*) FROM pragma_foreign_key_check", &orphans);
    if (rc != SQLITE_OK)
        return kp_sqlite_error(s, rc, err);
    return orphans == 0 ? KOPT_OK : damaged(s->path, "rows without their subject or run", err);
}

static const struct kp_store_ops ops = {
    .name = "sqlite",
    .open = kp_sqlite_open,
    .close = kp_sqlite_close,
    .check = kp_sqlite_check,
    .batch_begin = kp_sqlite_batch_begin,
    .batch_end = kp_sqlite_batch_end,
    .subject = kp_sqlite_subject,
    .run_begin = kp_sqlite_run_begin,
    .run_end = kp_sqlite_run_end,
    .begin = kp_sqlite_result_begin,
    .finish = kp_sqlite_result_finish,
    .withdraw = kp_sqlite_result_withdraw,
    .add = kp_sqlite_result_add,
    .has = kp_sqlite_result_has,
    .subjects = kp_sqlite_subjects,
    .runs = kp_sqlite_runs,
    .results = kp_sqlite_results,
    .best = kp_sqlite_best,
};

const struct kp_store_ops *kp_sqlite_ops(void)
{
    return &ops;
}
