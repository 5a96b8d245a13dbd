/* SPDX-License-Identifier: MIT */
/* Taking in another store. */
#include "unit/store/fixture.h"

#include "base/buf.h"

#include <sqlite3.h>
#include <unistd.h>

struct two {
    struct fixture f; /* the store that takes in */
    char other[512];  /* the one that is read */
};

static int two_stores(void **state)
{
    struct two *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    ASSERT_OK(&t->f, kp_dir_temp("kopt-store", &t->f.dir, &t->f.err));
    (void)snprintf(t->f.path, sizeof(t->f.path), "%s/kopt.db", t->f.dir);
    (void)snprintf(t->other, sizeof(t->other), "%s/other.db", t->f.dir);
    *state = t;
    return 0;
}

static int two_end(void **state)
{
    struct two *t = *state;
    kp_store_close(t->f.st);
    kp_dir_remove(t->f.dir);
    kp_free(t->f.dir);
    free(t);
    return 0;
}

/* Another store to write to with the fixture's functions. */
static void open_at(struct fixture *f, const char *path)
{
    kp_store_close(f->st);
    f->st = NULL;
    ASSERT_OK(f, kp_store_open(path, KP_STORE_WRITE, 5000, &f->st, &f->err));
}

/* --- all of a store as text, without its numbers -------------------------------------------
 */

static bool text_subject(void *user, const struct kp_subject *s)
{
    kp_buf_addf(user, "subject %s %s %s %s %s %s %s %s %s %s %s, %lld results\n", s->kernel,
                s->kernel_path, s->kernel_hash, s->backend, s->device, s->arch, s->driver,
                s->compiler, s->problem, s->data, s->params, (long long)s->n_results);
    return true;
}

static bool text_run(void *user, const struct kp_store_run *r)
{
    kp_buf_addf(user, "run '%s' %s %s %s %s '%s' %lld %lld %lld\n", r->command, r->strategy,
                r->version, r->host, r->state, r->summary, (long long)r->seed,
                (long long)r->begun_us, (long long)r->ended_us);
    return true;
}

static bool text_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct kp_buf *b = user;
    (void)subject;
    kp_buf_addf(b, "result %s %s race=%d run=%s %g %g %g d=%d c=%g v=%g r=%lld s=%lld l=%lld ",
                r->config, kopt_outcome_name(r->outcome), r->race, run ? "yes" : "no",
                r->median_ns, r->low_ns, r->high_ns, r->dropped, r->compile_ns, r->device_ns,
                (long long)r->registers, (long long)r->shared_bytes, (long long)r->local_bytes);
    kp_buf_addf(b, "e=%g p=%g j=%g m=%g t=%g h=%lld w=%lld '%s' '%s'", r->max_error, r->power_w,
                r->energy_j, r->sm_mhz, r->temp_c, (long long)r->throttle,
                (long long)r->wall_us, r->message, r->log);
    for (uint32_t i = 0; i < r->n_times; i++)
        kp_buf_addf(b, " %g", r->times_ns[i]);
    kp_buf_addc(b, '\n');
    return true;
}

static void text_of(struct fixture *f, struct kp_buf *out)
{
    struct kp_result_filter filter = all_of(0);
    *out = KP_BUF_INIT(1 << 20);
    ASSERT_OK(f, kp_store_subjects(f->st, NULL, text_subject, out, &f->err));
    ASSERT_OK(f, kp_store_runs(f->st, 0, text_run, out, &f->err));
    ASSERT_OK(f, kp_store_results(f->st, &filter, text_result, out, &f->err));
    assert_int_equal(out->failed, KOPT_OK);
}

static void import(struct fixture *f, const char *path, int added, int present)
{
    struct kp_import_count c;
    ASSERT_OK(f, kp_store_import(f->st, path, &c, &f->err));
    if (c.added != added || c.present != present || c.bad || c.cut)
        fail_msg("added %d present %d bad %d", (int)c.added, (int)c.present, (int)c.bad);
}

/* One subject with a run, five results of every kind, one of them without a run. */
static int64_t fill(struct fixture *f)
{
    const double times[] = {9, 10, 11};
    int64_t id = 0;
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    kopt_result r = a_result("{\"X\":1}", 10);
    r.times_ns = times;
    r.n_times = 3;
    r.registers = 32;
    r.shared_bytes = 1024;
    r.local_bytes = 0;
    r.max_error = 0.5;
    r.power_w = 75;
    r.energy_j = 2;
    r.sm_mhz = 1500;
    r.temp_c = 40;
    r.throttle = KOPT_THROTTLE_POWER_CAP;
    r.dropped = 1;
    add(f, run, s, r);
    kopt_result raced = a_result("{\"X\":1}", 12);
    raced.race = 1;
    add(f, run, s, raced);
    kopt_result bad = a_failure("{\"X\":2}", KOPT_OUT_COMPILE_ERROR);
    bad.log = "two\nlines";
    add(f, run, s, bad);
    add(f, 0, s, a_result("{\"X\":3}", 30));
    ASSERT_OK(f, kp_store_begin(f->st, run, s, "{\"X\":4}", false, &id, &f->err));
    return run;
}

/* --- the tests -----------------------------------------------------------------------------
 */

static void everything_comes_over_once(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct kp_buf want;
    struct kp_buf got;
    struct kp_buf again;
    open_at(f, t->other);
    int64_t run = fill(f);
    struct kp_subject second = a_subject();
    second.kernel = "conv";
    add(f, 0, make_subject(f, second), a_result("{\"Y\":1}", 5));
    ASSERT_OK(f, kp_store_run_end(f->st, run, "done", "{\"best\":1}", &f->err));
    text_of(f, &want);
    open_at(f, f->path);
    import(f, t->other, 5, 0);
    text_of(f, &got);
    /* all but what was never completed */
    char *left = strstr(kp_buf_text(&want), "result {\"X\":4}");
    assert_non_null(left);
    char *behind = strchr(left, '\n') + 1;
    memmove(left, behind, strlen(behind) + 1);
    assert_string_equal(kp_buf_text(&got), kp_buf_text(&want));

    import(f, t->other, 0, 5);
    text_of(f, &again);
    assert_string_equal(kp_buf_text(&again), kp_buf_text(&got));
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
    kp_buf_deinit(&want);
    kp_buf_deinit(&got);
    kp_buf_deinit(&again);
}

static bool keep_path(void *user, const struct kp_subject *s)
{
    (void)snprintf(user, 256, "%s %s", s->kernel_path, s->params);
    return true;
}

static int count_of(struct fixture *f, const char *what)
{
    struct kp_buf text;
    int n = 0;
    text_of(f, &text);
    for (const char *p = kp_buf_text(&text); (p = strstr(p, what)) != NULL; p++)
        n++;
    kp_buf_deinit(&text);
    return n;
}

static void what_both_have_is_recognised(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    char path[256] = "";
    open_at(f, f->path);
    (void)fill(f); /* the same run and results */
    add(f, 0, 1, a_result("{\"X\":9}", 90));
    open_at(f, t->other);
    struct kp_subject moved = a_subject();
    (void)fill(f);
    add(f, 0, 1, a_result("{\"X\":8}", 80));
    moved.kernel_path = "/elsewhere/gemm.cl";
    moved.params = "[\"BM\"]";
    (void)make_subject(f, moved);
    open_at(f, f->path);
    import(f, t->other, 1, 4);
    assert_int_equal(count_of(f, "subject "), 1);
    assert_int_equal(count_of(f, "run '"), 1);
    assert_int_equal(count_of(f, "result "), 7);
    ASSERT_OK(f, kp_store_subject_get(f->st, 1, keep_path, path, &f->err));
    assert_string_equal(
        path, "kernels/gemm.cl [\"X\",\"BM\"]"); /* its own, not that of the other machine */

    /* And the other way round: then both have the same. */
    open_at(f, t->other);
    import(f, f->path, 1, 5);
    import(f, f->path, 0, 6);
}

static void the_results_belong_to_their_own_runs(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct seen seen = {0};
    open_at(f, f->path);
    int64_t s = make_subject(f, a_subject());
    (void)make_run(f, s);
    open_at(f, t->other);
    s = make_subject(f, a_subject());
    for (int i = 0; i < 3; i++) {
        char config[32];
        struct kp_store_run run = a_run(s);
        run.begun_us = 2000 + i;
        ASSERT_OK(f, kp_store_run_begin(f->st, &run, &f->err));
        (void)snprintf(config, sizeof(config), "{\"X\":%d}", i);
        kopt_result r = a_result(config, 10 + i);
        r.race = 1;
        add(f, run.id, s, r);
    }
    open_at(f, f->path);
    import(f, t->other, 3, 0);
    struct kp_result_filter filter = all_of(0);
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen.run[i], 2 + i); /* in their order: the newest race is the last */
    memset(&seen, 0, sizeof(seen));
    ASSERT_OK(f, kp_store_best(f->st, 1, see_result, &seen, &f->err));
    assert_string_equal(seen.config[0], "{\"X\":2}");
}

static void a_run_that_ended_since_is_completed(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct kp_buf want;
    struct kp_buf got;
    open_at(f, t->other);
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    add(f, run, s, a_result("{\"X\":1}", 10));
    open_at(f, f->path);
    import(f, t->other, 1, 0);
    assert_int_equal(count_of(f, " running "), 1);
    open_at(f, t->other);
    add(f, run, s, a_result("{\"X\":2}", 10));
    ASSERT_OK(f, kp_store_run_end(f->st, run, "done", "{\"n\":2}", &f->err));
    text_of(f, &want);
    open_at(f, f->path);
    import(f, t->other, 1, 1);
    text_of(f, &got);
    assert_string_equal(kp_buf_text(&got), kp_buf_text(&want));
    kp_buf_deinit(&want);
    kp_buf_deinit(&got);
}

static void many_results_take_several_transactions(void **state)
{
    enum { N = 1203 };
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct kp_import_count c;
    open_at(f, t->other);
    int64_t s = make_subject(f, a_subject());
    for (int i = 0; i < N; i++) {
        char config[32];
        (void)snprintf(config, sizeof(config), "{\"X\":%d}", i);
        add(f, 0, s, a_result(config, 10 + i));
    }
    open_at(f, f->path);
    import(f, t->other, N, 0);
    import(f, t->other, 0, N);
    assert_int_equal(count_results(f, all_of(0)), N);

    /* A reader of this store is no reason to fail; a writer is, and nothing is lost. */
    kp_store_close(f->st);
    ASSERT_OK(f, kp_store_open(f->path, KP_STORE_WRITE, 50, &f->st, &f->err));
    sqlite3 *holder = NULL;
    assert_int_equal(sqlite3_open(f->path, &holder), SQLITE_OK);
    assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    ASSERT_FAILS(f, KOPT_EBUSY, "locked", kp_store_import(f->st, t->other, &c, &f->err));
    assert_int_equal(sqlite3_close(holder), SQLITE_OK);
    import(f, t->other, 0, N);
}

static void what_is_no_other_store_is_refused(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct kp_import_count c;
    char path[600];
    open_at(f, t->other);
    (void)fill(f);
    open_at(f, f->path);
    (void)fill(f);
    ASSERT_FAILS(f, KOPT_EUSAGE, "is the store itself",
                 kp_store_import(f->st, f->path, &c, &f->err));
    assert_true(f->err.hint[0]);
    (void)snprintf(path, sizeof(path), "%s/link.db", f->dir);
    assert_int_equal(symlink(f->path, path), 0);
    ASSERT_FAILS(f, KOPT_EUSAGE, "is the store itself",
                 kp_store_import(f->st, path, &c, &f->err));
    ASSERT_FAILS(f, KOPT_EIO, "cannot open", kp_store_import(f->st, "no such.db", &c, &f->err));
    (void)snprintf(path, sizeof(path), "%s/text.db", f->dir);
    write_file(path, "hello", 5);
    ASSERT_FAILS(f, KOPT_EINPUT, "not a cache file", kp_store_import(f->st, path, &c, &f->err));
    (void)snprintf(path, sizeof(path), "%s/foreign.db", f->dir);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    ASSERT_FAILS(f, KOPT_ECORRUPT, "not a kopt store",
                 kp_store_import(f->st, path, &c, &f->err));

    /* A damaged one gives nothing rather than a part. */
    patch_file(t->other, 3 * 4096L, (char[4096]){0}, 4096);
    ASSERT_FAILS(f, KOPT_ECORRUPT, "damaged", kp_store_import(f->st, t->other, &c, &f->err));
    assert_int_equal(count_results(f, all_of(0)), 5);
    assert_true(c.added == 0 && c.present == 0);
    fixture_reopen(f, KP_STORE_READ);
    ASSERT_FAILS(f, KOPT_EUSAGE, "for reading", kp_store_import(f->st, t->other, &c, &f->err));
}

static void rows_that_kopt_never_writes_are_counted(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct kp_import_count c;
    open_at(f, t->other);
    (void)fill(f);
    kp_store_close(f->st);
    f->st = NULL;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(t->other, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "UPDATE result SET median_ns = NULL WHERE id = 1", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    open_at(f, f->path);
    ASSERT_OK(f, kp_store_import(f->st, t->other, &c, &f->err));
    assert_true(c.added == 3 && c.bad == 1 && c.present == 0);
}

static void every_allocation_may_fail(void **state)
{
    struct two *t = *state;
    struct fixture *f = &t->f;
    struct kp_import_count c;
    open_at(f, t->other);
    (void)fill(f);
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    open_at(f, f->path);
    while (st != KOPT_OK) {
        kp_alloc_fail_at(++n);
        st = kp_store_import(f->st, t->other, &c, &f->err);
        kp_alloc_fail_at(0);
        if (st != KOPT_OK && st != KOPT_ENOMEM)
            fail_msg("allocation %ld: %d %s", n, (int)st, f->err.message);
        if (st != KOPT_OK) /* all of it is undone */
            assert_int_equal(count_results(f, all_of(0)), 0);
    }
    assert_true(n > 10);
    assert_int_equal(c.added, 4);
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, two_stores, two_end)
    const struct CMUnitTest tests[] = {
        CASE(everything_comes_over_once),
        CASE(what_both_have_is_recognised),
        CASE(the_results_belong_to_their_own_runs),
        CASE(a_run_that_ended_since_is_completed),
        CASE(many_results_take_several_transactions),
        CASE(what_is_no_other_store_is_refused),
        CASE(rows_that_kopt_never_writes_are_counted),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
