/* SPDX-License-Identifier: MIT */
/* Files that are no store, cannot be opened, are locked or full; schema numbers. */
#include "unit/store/fixture.h"

#include "os/clock.h"
#include "store/sqlite/schema.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const enum kp_store_mode both_modes[] = {KP_STORE_READ, KP_STORE_WRITE};

static void sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A store with a few results, closed, so that all of it is in the one file. */
static void make_store(struct fixture *f, int n)
{
    fixture_open(f);
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    for (int i = 0; i < n; i++) {
        char config[64];
        (void)snprintf(config, sizeof(config), "{\"BM\":%d,\"BN\":%d}", i, 7 * i);
        kopt_result r = a_result(config, 100 + i);
        r.log = "some text so that a page holds only a few of these rows ..............";
        add(f, run, s, r);
    }
    kp_store_close(f->st);
    f->st = NULL;
}

static long file_bytes(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (long)info.st_size;
}

static void assert_hint(const struct fixture *f)
{
    if (!f->err.hint[0] || strchr(f->err.message, '\n') || strchr(f->err.hint, '\n'))
        fail_msg("no proper hint with: %s", f->err.message);
}

/* Opening fails in both modes, with the path in the message, and leaves the file as it is. */
static void assert_refused(struct fixture *f, kopt_status code, const char *what)
{
    long bytes = file_bytes(f->path);
    for (int m = 0; m < 2; m++) {
        ASSERT_FAILS(f, code, what,
                     kp_store_open(f->path, both_modes[m], 100, &f->st, &f->err));
        assert_null(f->st);
        assert_non_null(strstr(f->err.message, f->path));
        assert_hint(f);
        assert_int_equal(file_bytes(f->path), bytes);
    }
}

/* --- what is not a store -------------------------------------------------------------------
 */

static void a_file_of_another_kind_is_refused(void **state)
{
    struct fixture *f = *state;
    static unsigned char noise[65536];
    uint32_t x = 12345;
    write_file(f->path, "x", 1);
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
    write_file(f->path, "just some notes\n", 16);
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
    write_file(f->path, "SQLite format 3", 15);
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 1664525 + 1013904223;
        noise[i] = (unsigned char)(x >> 24);
    }
    write_file(f->path, noise, sizeof(noise));
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
}

static void another_programs_database_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    sql(f->path, "CREATE TABLE notes(text); INSERT INTO notes VALUES('mine')");
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
    sql(f->path, "PRAGMA application_id=77");
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
    sql(f->path, "DROP TABLE notes"); /* now only the number is foreign */
    assert_refused(f, KOPT_ECORRUPT, "not a kopt store");
    char wal[600];
    (void)snprintf(wal, sizeof(wal), "%s-wal", f->path);
    assert_false(kp_file_exists(wal));
}

static void a_store_without_its_tables_is_refused(void **state)
{
    struct fixture *f = *state;
    make_store(f, 1);
    sql(f->path, "DROP VIEW best; DROP VIEW measurement; DROP TABLE result");
    assert_refused(f, KOPT_ECORRUPT, "damaged");
}

static void an_empty_file_becomes_a_store_when_written(void **state)
{
    struct fixture *f = *state;
    write_file(f->path, "", 0);
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "empty",
                 kp_store_open(f->path, KP_STORE_READ, 100, &f->st, &f->err));
    assert_hint(f);
    fixture_open(f);
    make_subject(f, a_subject());
    fixture_reopen(f, KP_STORE_READ);
}

static void a_missing_file_is_not_made_for_reading(void **state)
{
    struct fixture *f = *state;
    ASSERT_FAILS(f, KOPT_ENOTFOUND, f->path,
                 kp_store_open(f->path, KP_STORE_READ, 100, &f->st, &f->err));
    assert_hint(f);
    assert_false(kp_file_exists(f->path));
    ASSERT_FAILS(f, KOPT_EUSAGE, "no path",
                 kp_store_open("", KP_STORE_WRITE, 100, &f->st, &f->err));
    ASSERT_FAILS(f, KOPT_EUSAGE, "no path",
                 kp_store_open(NULL, KP_STORE_WRITE, 100, &f->st, &f->err));
}

/* --- damage --------------------------------------------------------------------------------
 */

static void a_truncated_store_is_refused(void **state)
{
    struct fixture *f = *state;
    make_store(f, 500);
    long bytes = file_bytes(f->path);
    assert_int_equal(truncate(f->path, bytes / 2), 0);
    assert_refused(f, KOPT_ECORRUPT, "");
    assert_int_equal(truncate(f->path, 4096), 0);
    assert_refused(f, KOPT_ECORRUPT, "");
    assert_int_equal(truncate(f->path, 50), 0);
    assert_refused(f, KOPT_ECORRUPT, "");
}

static void every_overwritten_page_of_a_small_store_is_noticed(void **state)
{
    struct fixture *f = *state;
    static char page[4096];
    static char saved[4096];
    make_store(f, 500);
    long pages = file_bytes(f->path) / 4096;
    assert_true(pages > 20 && pages * 4096 < 4 << 20);
    memset(page, 0xA5, sizeof(page));
    for (long i = 0; i < pages; i++) {
        FILE *in = fopen(f->path, "rbe");
        assert_non_null(in);
        assert_int_equal(fseek(in, i * 4096, SEEK_SET), 0);
        assert_int_equal(fread(saved, 1, sizeof(saved), in), sizeof(saved));
        assert_int_equal(fclose(in), 0);
        patch_file(f->path, i * 4096, page, sizeof(page));
        kopt_status st = kp_store_open(f->path, KP_STORE_READ, 100, &f->st, &f->err);
        if (st != KOPT_ECORRUPT)
            fail_msg("page %ld: %d %s", i, (int)st, f->err.message);
        assert_hint(f);
        patch_file(f->path, i * 4096, saved, sizeof(saved));
    }
    fixture_reopen(f, KP_STORE_WRITE);
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
}

static void damage_in_a_large_store_is_found_when_it_is_met(void **state)
{
    struct fixture *f = *state;
    static char page[4096];
    static char log[16000];
    fixture_open(f);
    int64_t s = make_subject(f, a_subject());
    memset(log, 'l', sizeof(log) - 1);
    for (int i = 0; i < 400; i++) {
        char config[64];
        (void)snprintf(config, sizeof(config), "{\"X\":%d}", i);
        kopt_result r = a_failure(config, KOPT_OUT_COMPILE_ERROR);
        r.log = log;
        add(f, 0, s, r);
    }
    kp_store_close(f->st);
    f->st = NULL;
    assert_true(file_bytes(f->path) > 4 << 20);
    memset(page, 0xA5, sizeof(page));
    for (long i = 200; i < 600; i++)
        patch_file(f->path, i * 4096, page, sizeof(page));
    fixture_open(f); /* too large to be looked through each time */
    ASSERT_FAILS(f, KOPT_ECORRUPT, "damaged", kp_store_check(f->st, &f->err));
    assert_hint(f);
    int64_t n = 0;
    struct kp_result_filter filter = all_of(0);
    ASSERT_FAILS(f, KOPT_ECORRUPT, "damaged",
                 kp_store_results(f->st, &filter, count_result, &n, &f->err));
}

static void rows_that_kopt_never_writes_are_refused(void **state)
{
    struct fixture *f = *state;
    int64_t n = 0;
    struct kp_result_filter filter = all_of(0);
    make_store(f, 1);
    sql(f->path, "UPDATE result SET times = x'0102030405'");
    fixture_open(f);
    ASSERT_FAILS(f, KOPT_ECORRUPT, "no doubles",
                 kp_store_results(f->st, &filter, count_result, &n, &f->err));
    kp_store_close(f->st);
    f->st = NULL;
    sql(f->path, "UPDATE result SET times = NULL, outcome = 99");
    fixture_open(f);
    ASSERT_FAILS(f, KOPT_ECORRUPT, "unknown outcome",
                 kp_store_results(f->st, &filter, count_result, &n, &f->err));
    ASSERT_FAILS(f, KOPT_ECORRUPT, "without their subject", kp_store_check(f->st, &f->err));
    assert_int_equal(n, 0);
}

/* --- schema numbers ------------------------------------------------------------------------
 */

static void a_newer_schema_is_refused_with_both_numbers(void **state)
{
    struct fixture *f = *state;
    make_store(f, 3);
    sql(f->path, "PRAGMA user_version=99");
    assert_refused(f, KOPT_ECORRUPT, "schema 99, this one knows 2");
}

static int fill_note(sqlite3 *db)
{
    return sqlite3_exec(db, "INSERT INTO note VALUES('filled')", NULL, NULL, NULL);
}

static int fill_fails(sqlite3 *db)
{
    (void)db;
    return SQLITE_FULL;
}

static void an_older_store_is_brought_to_the_new_schema(void **state)
{
    struct fixture *f = *state;
    size_t n = 0;
    const struct kp_migration *now = kp_sqlite_migrations(&n);
    assert_int_equal(n, 2);
    const struct kp_migration failing[] = {
        now[0], now[1], {"CREATE TABLE note(text)", fill_fails}};
    const struct kp_migration good[] = {now[0], now[1], {"CREATE TABLE note(text)", fill_note}};
    make_store(f, 3);
    fixture_open(f);
    struct kp_sqlite *s = (struct kp_sqlite *)f->st;
    kp_sqlite_start(s);
    int64_t rows = 0;

    ASSERT_FAILS(f, KOPT_EFULL, "no space", kp_sqlite_schema(s, failing, 3, &f->err));
    assert_int_equal(kp_sqlite_scalar(s, "PRAGMA user_version", &rows), SQLITE_OK);
    assert_int_equal(rows, 2); /* undone as a whole */
    ASSERT_OK(f, kp_sqlite_schema(s, good, 3, &f->err));
    ASSERT_OK(f, kp_sqlite_schema(s, good, 3, &f->err)); /* nothing left to do */
    assert_int_equal(kp_sqlite_scalar(s, "SELECT count(*) FROM note", &rows), SQLITE_OK);
    assert_int_equal(rows, 1);
    assert_int_equal(count_results(f, all_of(0)), 3);

    s->base.mode = KP_STORE_READ;
    const struct kp_migration four[] = {good[0], good[1], good[2], good[2]};
    ASSERT_FAILS(f, KOPT_EIO, "older schema 3", kp_sqlite_schema(s, four, 4, &f->err));
    kp_store_close(f->st);
    f->st = NULL;
    assert_refused(f, KOPT_ECORRUPT, "newer kopt");
}

static bool is_unknown(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)subject;
    (void)run;
    *(int *)user += r->throttle == -1 && r->median_ns == 5;
    return true;
}

static bool has_no_params(void *user, const struct kp_subject *s)
{
    *(bool *)user = s->params[0] == '\0' && strcmp(s->kernel, "old") == 0;
    return true;
}

/* A file as schema 1 left it. */
static void a_store_of_schema_1_can_be_read_once_it_was_written(void **state)
{
    struct fixture *f = *state;
    size_t n = 0;
    int results = 0;
    bool old = false;
    sql(f->path, kp_sqlite_migrations(&n)[0].sql);
    sql(f->path, "INSERT INTO outcome VALUES(0, 'ok', ''), (10, 'interrupted', '');"
                 "INSERT INTO subject VALUES(1, 'old', '', '', '', '', '', '', '', '', '', 0);"
                 "INSERT INTO result(subject, config, race, outcome, begun_us, wall_us,"
                 " median_ns, dropped, message, log)"
                 " VALUES(1, '{\"X\":1}', 0, 0, 0, 0, 5, 0, '', '');"
                 "PRAGMA application_id=1802465396; PRAGMA user_version=1");
    ASSERT_FAILS(f, KOPT_EIO, "older schema 1",
                 kp_store_open(f->path, KP_STORE_READ, 100, &f->st, &f->err));
    fixture_open(f);
    struct kp_result_filter filter = all_of(1);
    ASSERT_OK(f, kp_store_results(f->st, &filter, is_unknown, &results, &f->err));
    assert_int_equal(results, 1);
    ASSERT_OK(f, kp_store_subject_get(f->st, 1, has_no_params, &old, &f->err));
    assert_true(old);
    add(f, 0, 1, a_result("{\"X\":2}", 4));
}

/* --- paths ---------------------------------------------------------------------------------
 */

static void folders_and_missing_folders_are_named(void **state)
{
    struct fixture *f = *state;
    char path[600];
    for (int m = 0; m < 2; m++) {
        ASSERT_FAILS(f, KOPT_EIO, "a folder",
                     kp_store_open(f->dir, both_modes[m], 100, &f->st, &f->err));
        assert_hint(f);
    }
    (void)snprintf(path, sizeof(path), "%s/no/such/kopt.db", f->dir);
    ASSERT_FAILS(f, KOPT_EIO, "No such file or directory",
                 kp_store_open(path, KP_STORE_WRITE, 100, &f->st, &f->err));
    assert_non_null(strstr(f->err.hint, "mkdir -p"));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, path,
                 kp_store_open(path, KP_STORE_READ, 100, &f->st, &f->err));
    write_file(f->path, "", 0);
    (void)snprintf(path, sizeof(path), "%s/kopt.db", f->path);
    ASSERT_FAILS(f, KOPT_EIO, "not a folder",
                 kp_store_open(path, KP_STORE_WRITE, 100, &f->st, &f->err));
    ASSERT_FAILS(f, KOPT_EIO, "Not a directory",
                 kp_store_open(path, KP_STORE_READ, 100, &f->st, &f->err));
    (void)snprintf(path, sizeof(path), "%s/pipe", f->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    ASSERT_FAILS(f, KOPT_EIO, "not a regular file",
                 kp_store_open(path, KP_STORE_WRITE, 100, &f->st, &f->err));
    char *longest = calloc(1, 10001);
    assert_non_null(longest);
    memset(longest, 'p', 10000);
    ASSERT_FAILS(f, KOPT_EIO, "path",
                 kp_store_open(longest, KP_STORE_WRITE, 100, &f->st, &f->err));
    free(longest);
}

static void any_name_is_a_name(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"\xC3\xBC"
                                        "n\xC3\xAF"
                                        "c\xC3\xB6"
                                        "de \xE6\x95\xB0.db",
                                        ":memory:", "file:x?mode=memory", "a#b%41?c=d&e.db",
                                        "two words"};
    char cwd[4096];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir(f->dir), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ASSERT_OK(f, kp_store_open(names[i], KP_STORE_WRITE, 100, &f->st, &f->err));
        make_subject(f, a_subject());
        kp_store_close(f->st);
        assert_true(kp_file_exists(names[i]));
        ASSERT_OK(f, kp_store_open(names[i], KP_STORE_READ, 100, &f->st, &f->err));
        make_subject(f, a_subject());
        kp_store_close(f->st);
        f->st = NULL;
    }
    assert_int_equal(chdir(cwd), 0);
}

/* --- rights --------------------------------------------------------------------------------
 */

/* Children tell what failed by their exit status: 0 good, 77 cannot be tested here, else the
 * line. */
#define CHILD_CHECK(cond)                                                                \
    do {                                                                                 \
        if (!(cond)) {                                                                   \
            (void)fprintf(stderr, "line %d: %s: %s\n", __LINE__, #cond, f->err.message); \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

static void run_child(struct fixture *f, void (*body)(struct fixture *f))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        body(f);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("not possible on this machine\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* root may write anywhere */
static void become_nobody(struct fixture *f)
{
    if (geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setegid(65534) != 0 || seteuid(65534) != 0))
        _exit(77);
    if (access(f->dir, R_OK | X_OK) != 0)
        _exit(77);
}

static void read_only_folder(struct fixture *f)
{
    char path[600];
    struct kp_result_filter filter = all_of(0);
    int64_t n = 0;
    become_nobody(f);
    (void)snprintf(path, sizeof(path), "%s/new.db", f->dir);
    CHILD_CHECK(kp_store_open(path, KP_STORE_WRITE, 100, &f->st, &f->err) == KOPT_EIO);
    CHILD_CHECK(strstr(f->err.message, path) && strstr(f->err.hint, "writable"));
    CHILD_CHECK(kp_store_open(f->path, KP_STORE_WRITE, 100, &f->st, &f->err) == KOPT_EIO);
    CHILD_CHECK(strstr(f->err.hint, "writable"));
    CHILD_CHECK(kp_store_open(f->path, KP_STORE_READ, 100, &f->st, &f->err) == KOPT_OK);
    CHILD_CHECK(kp_store_results(f->st, &filter, count_result, &n, &f->err) == KOPT_OK);
    CHILD_CHECK(n == 5);
    kp_store_close(f->st);
}

static void a_store_in_a_read_only_folder_can_be_read(void **state)
{
    struct fixture *f = *state;
    /* characters that mean something in a URI */
    (void)snprintf(f->path, sizeof(f->path), "%s/k %%41?#.db", f->dir);
    make_store(f, 5);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->dir, 0555), 0);
    run_child(f, read_only_folder);
}

static void read_only_folder_with_log(struct fixture *f)
{
    become_nobody(f);
    CHILD_CHECK(kp_store_open(f->path, KP_STORE_READ, 100, &f->st, &f->err) == KOPT_EIO);
    CHILD_CHECK(strstr(f->err.hint, "copy the store"));
}

static void kill_while_open(struct fixture *f)
{
    fixture_open(f);
    make_subject(f, a_subject());
    (void)kill(getpid(), SIGKILL);
}

/* The newest results are in the log, which cannot be read without its index: better no answer
 * than an old one. */
static void a_log_that_cannot_be_read_is_not_passed_over(void **state)
{
    struct fixture *f = *state;
    char shm[600];
    pid_t pid = fork();
    if (pid == 0)
        kill_while_open(f);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)snprintf(shm, sizeof(shm), "%s-shm", f->path);
    assert_int_equal(unlink(shm), 0);
    assert_int_equal(chmod(f->dir, 0555), 0);
    run_child(f, read_only_folder_with_log);
}

static void unreadable_file(struct fixture *f)
{
    become_nobody(f);
    for (int m = 0; m < 2; m++)
        CHILD_CHECK(kp_store_open(f->path, both_modes[m], 100, &f->st, &f->err) == KOPT_EIO);
}

static void a_file_without_rights_is_an_error(void **state)
{
    struct fixture *f = *state;
    make_store(f, 1);
    assert_int_equal(chmod(f->path, 0000), 0);
    assert_int_equal(chmod(f->dir, 0777), 0);
    run_child(f, unreadable_file);
}

/* --- locks ---------------------------------------------------------------------------------
 */

/* Runs `text` in another process, which then holds what it locked until it is killed. */
static pid_t hold(const char *path, const char *text)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        sqlite3 *db = NULL;
        if (sqlite3_open(path, &db) != SQLITE_OK ||
            sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK ||
            write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void let_go(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_writer_that_waits_too_long_gives_up_in_time(void **state)
{
    struct fixture *f = *state;
    int64_t id = 0;
    make_store(f, 1);
    pid_t other = hold(f->path, "BEGIN IMMEDIATE");
    ASSERT_OK(f, kp_store_open(f->path, KP_STORE_WRITE, 200, &f->st, &f->err));
    assert_int_equal(count_results(f, all_of(0)), 1); /* readers do not wait */
    int64_t start = kp_clock_ns();
    ASSERT_FAILS(f, KOPT_EBUSY, "locked for 200 ms",
                 kp_store_begin(f->st, 1, 1, "{\"X\":1}", false, &id, &f->err));
    double ms = (double)(kp_clock_ns() - start) / 1e6;
    assert_true(ms >= 199);
    assert_true(ms < 2000); /* far above what a loaded machine adds */
    assert_hint(f);
    let_go(other);
    ASSERT_OK(f, kp_store_begin(f->st, 1, 1, "{\"X\":1}", false, &id, &f->err));
}

static void a_store_held_by_another_process_cannot_be_opened(void **state)
{
    struct fixture *f = *state;
    make_store(f, 1);
    pid_t other = hold(f->path, "PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE;"
                                "UPDATE run SET seed = 1; COMMIT");
    assert_refused(f, KOPT_EBUSY, "locked for 100 ms");
    let_go(other);
    fixture_open(f);
    assert_int_equal(count_results(f, all_of(0)), 1);
}

/* --- full disks ----------------------------------------------------------------------------
 */

/* Adds results until one fails; returns how many were stored, *st gets the failure. */
static int64_t fill_store(struct fixture *f, kopt_status *st)
{
    static char log[8000];
    int64_t n = 0;
    int64_t id = 0;
    memset(log, 'l', sizeof(log) - 1);
    *st = KOPT_OK;
    while (*st == KOPT_OK && n < 20000) {
        char config[64];
        (void)snprintf(config, sizeof(config), "{\"X\":%lld}", (long long)n);
        kopt_result r = a_failure(config, KOPT_OUT_COMPILE_ERROR);
        r.log = log;
        *st = kp_store_add(f->st, 0, 1, &r, &id, &f->err);
        n += *st == KOPT_OK;
    }
    return n;
}

static void full_disk(struct fixture *f)
{
    char filler[600];
    static char ballast[512 << 10];
    int flags = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    if (unshare(flags) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", f->dir, "tmpfs", 0, "size=2m") != 0)
        _exit(77);
    (void)snprintf(filler, sizeof(filler), "%s/filler", f->dir);
    FILE *out = fopen(filler, "wbe");
    CHILD_CHECK(out && fwrite(ballast, 1, sizeof(ballast), out) == sizeof(ballast) &&
                fclose(out) == 0);
    CHILD_CHECK(kp_store_open(f->path, KP_STORE_WRITE, 1000, &f->st, &f->err) == KOPT_OK);
    struct kp_subject s = a_subject();
    CHILD_CHECK(kp_store_subject(f->st, &s, &f->err) == KOPT_OK);

    kopt_status st = KOPT_OK;
    int64_t stored = fill_store(f, &st);
    CHILD_CHECK(st == KOPT_EFULL && stored > 10);
    CHILD_CHECK(strstr(f->err.message, f->path) && f->err.hint[0]);
    int64_t id = 0;
    while (kp_store_begin(f->st, 0, 1, "{}", false, &id, &f->err) == KOPT_OK)
        stored++; /* short ones may find room in a page that is there */
    CHILD_CHECK(f->err.code == KOPT_EFULL);

    /* All that was acknowledged is there, for this process and for another. */
    struct kp_result_filter filter = all_of(0);
    int64_t n = 0;
    CHILD_CHECK(kp_store_results(f->st, &filter, count_result, &n, &f->err) == KOPT_OK);
    CHILD_CHECK(n == stored);
    CHILD_CHECK(kp_store_check(f->st, &f->err) == KOPT_OK);

    /* With room again it goes on. */
    CHILD_CHECK(unlink(filler) == 0);
    CHILD_CHECK(kp_store_begin(f->st, 0, 1, "{}", false, &id, &f->err) == KOPT_OK);
    kp_store_close(f->st);
    CHILD_CHECK(kp_store_open(f->path, KP_STORE_READ, 1000, &f->st, &f->err) == KOPT_OK);
    n = 0;
    CHILD_CHECK(kp_store_results(f->st, &filter, count_result, &n, &f->err) == KOPT_OK);
    CHILD_CHECK(n == stored + 1);
    kp_store_close(f->st);
}

static void a_full_disk_loses_nothing(void **state)
{
    run_child(*state, full_disk);
}

static void file_size_limit(struct fixture *f)
{
    const struct rlimit limit = {300 << 10, 300 << 10};
    kopt_status st = KOPT_OK;
    struct kp_subject s = a_subject();
    (void)signal(SIGXFSZ, SIG_IGN);
    CHILD_CHECK(kp_store_open(f->path, KP_STORE_WRITE, 1000, &f->st, &f->err) == KOPT_OK);
    CHILD_CHECK(kp_store_subject(f->st, &s, &f->err) == KOPT_OK);
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int64_t stored = fill_store(f, &st);
    CHILD_CHECK(st == KOPT_EFULL && stored > 0);
    CHILD_CHECK(kp_store_check(f->st, &f->err) == KOPT_OK);
    kp_store_close(f->st);
}

static void a_file_size_limit_is_a_full_disk(void **state)
{
    run_child(*state, file_size_limit);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_folder, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(a_file_of_another_kind_is_refused),
        CASE(another_programs_database_is_refused_and_left_alone),
        CASE(a_store_without_its_tables_is_refused),
        CASE(an_empty_file_becomes_a_store_when_written),
        CASE(a_missing_file_is_not_made_for_reading),
        CASE(a_truncated_store_is_refused),
        CASE(every_overwritten_page_of_a_small_store_is_noticed),
        CASE(damage_in_a_large_store_is_found_when_it_is_met),
        CASE(rows_that_kopt_never_writes_are_refused),
        CASE(a_newer_schema_is_refused_with_both_numbers),
        CASE(an_older_store_is_brought_to_the_new_schema),
        CASE(a_store_of_schema_1_can_be_read_once_it_was_written),
        CASE(folders_and_missing_folders_are_named),
        CASE(any_name_is_a_name),
        CASE(a_store_in_a_read_only_folder_can_be_read),
        CASE(a_log_that_cannot_be_read_is_not_passed_over),
        CASE(a_file_without_rights_is_an_error),
        CASE(a_writer_that_waits_too_long_gives_up_in_time),
        CASE(a_store_held_by_another_process_cannot_be_opened),
        CASE(a_full_disk_loses_nothing),
        CASE(a_file_size_limit_is_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
