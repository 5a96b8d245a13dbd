/* SPDX-License-Identifier: MIT */
/* Every allocation fails in turn, ours and SQLite's: the call says so, nothing leaks, and the
 * store is whole. */
#include "unit/store/fixture.h"

#include "base/buf.h"

#include <sqlite3.h>

/* --- SQLite's heap -------------------------------------------------------------------------
 */

static sqlite3_mem_methods real;
static long sqlite_fail_at; /* the n-th allocation from now on; 0 = none */

static bool sqlite_must_fail(void)
{
    return sqlite_fail_at > 0 && --sqlite_fail_at == 0;
}

static void *failing_malloc(int n)
{
    return sqlite_must_fail() ? NULL : real.xMalloc(n);
}

static void *failing_realloc(void *p, int n)
{
    return sqlite_must_fail() ? NULL : real.xRealloc(p, n);
}

static int replace_heap(void **state)
{
    (void)state;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
    sqlite3_mem_methods failing = real;
    failing.xMalloc = failing_malloc;
    failing.xRealloc = failing_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), SQLITE_OK);
    return 0;
}

static void fail_ours(long n)
{
    kp_alloc_fail_at(n);
}

static void fail_sqlites(long n)
{
    sqlite_fail_at = n;
}

/* --- the work ------------------------------------------------------------------------------
 */

static bool see_subject(void *user, const struct kp_subject *s)
{
    (void)s;
    (*(int64_t *)user)++;
    return true;
}

static kopt_status measure(struct fixture *f, struct kp_subject *s)
{
    const double times[] = {1, 2, 3};
    int64_t id = 0;
    struct kp_store_run run = a_run(0);
    kopt_result r = a_result("{\"X\":1}", 2);
    r.times_ns = times;
    r.n_times = 3;
    r.message = "text";
    kopt_status st = kp_store_subject(f->st, s, &f->err);
    run.subject = s->id;
    if (st == KOPT_OK)
        st = kp_store_run_begin(f->st, &run, &f->err);
    if (st == KOPT_OK)
        st = kp_store_begin(f->st, run.id, s->id, "{\"X\":1}", false, &id, &f->err);
    if (st == KOPT_OK)
        st = kp_store_finish(f->st, id, &r, &f->err);
    if (st == KOPT_OK)
        st = kp_store_add(f->st, run.id, s->id, &r, &id, &f->err);
    if (st == KOPT_OK)
        st = kp_store_run_end(f->st, run.id, "done", "{}", &f->err);
    return st;
}

static kopt_status look(struct fixture *f, int64_t subject)
{
    static const char *const names[] = {"K", "M", "N"};
    static const int64_t values[] = {512, 512, 512};
    int64_t n = 0;
    struct kp_select *sel = NULL;
    struct kp_selected found;
    struct kp_buf out = KP_BUF_INIT(1 << 20);
    struct kp_result_filter filter = all_of(subject);
    kopt_status st = kp_store_subjects(f->st, NULL, see_subject, &n, &f->err);
    if (st == KOPT_OK)
        st = kp_store_results(f->st, &filter, count_result, &n, &f->err);
    if (st == KOPT_OK)
        st = kp_store_best(f->st, subject, count_result, &n, &f->err);
    if (st == KOPT_OK)
        st = kp_store_export_t4(f->st, subject, &out, &f->err);
    kp_buf_deinit(&out);
    if (st == KOPT_OK)
        st = kp_select_load(f->st, "Fake 1", &sel, &f->err);
    if (st == KOPT_OK) {
        kp_select_find(sel, "gemm", names, values, 3, &found);
        assert_int_equal(found.how, KP_SELECT_EXACT);
        assert_string_equal(found.config, "{\"X\":1}");
    }
    kp_select_free(sel);
    return st;
}

static const char cache[] =
    "{\"device_name\":\"d\",\"kernel_name\":\"k\",\"problem_size\":7,\"tune_params_keys\":[\"A\"],"
    "\"cache\":{\"1\":{\"A\":1,\"time\":2.0,\"times\":[2.0,2.1],\"timestamp\":"
    "\"2025-03-04 05:06:07\"},\"2\":{\"A\":2,\"time\":\"InvalidConfig\"}}}";

static kopt_status work(struct fixture *f)
{
    char path[600];
    struct kp_subject s = a_subject();
    struct kp_import_count count;
    (void)snprintf(path, sizeof(path), "%s/cache.json", f->dir);
    kopt_status st = kp_store_open(f->path, KP_STORE_WRITE, 1000, &f->st, &f->err);
    if (st == KOPT_OK)
        st = measure(f, &s);
    if (st == KOPT_OK)
        st = kp_store_import_kt(f->st, path, &count, &f->err);
    if (st == KOPT_OK)
        assert_int_equal(count.added + count.present, 2);
    if (st == KOPT_OK)
        st = look(f, s.id);
    kp_store_close(f->st);
    f->st = NULL;
    return st;
}

/* `fresh`: each time in a new store, so that making it fails as well. Far along, not every n is
 * tried. */
static void fail_in_turn(struct fixture *f, void (*set)(long), bool fresh)
{
    char path[600];
    long n = 1;
    (void)snprintf(path, sizeof(path), "%s/cache.json", f->dir);
    write_file(path, cache, sizeof(cache) - 1);
    if (!fresh)
        ASSERT_OK(f, work(f));
    for (int round = 0;; round++) {
        if (fresh)
            (void)snprintf(f->path, sizeof(f->path), "%s/%d.db", f->dir, round);
        memset(&f->err, 0, sizeof(f->err));
        set(n);
        kopt_status st = work(f);
        bool over = false;
        if (set == fail_sqlites)
            over = sqlite_fail_at > 0;
        else
            over = st == KOPT_OK;
        set(0);
        if (st != KOPT_OK &&
            (st != KOPT_ENOMEM || strcmp(f->err.message, "out of memory") != 0))
            fail_msg("allocation %ld: %d %s", n, (int)st, f->err.message);
        if (over)
            break;
        n += 1 + n / (set == fail_sqlites ? 30 : 1000);
    }
    print_message("%ld allocations\n", n);
    assert_true(n > 20);
    ASSERT_OK(f, work(f));
    fixture_open(f);
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
}

static void every_allocation_of_ours_may_fail(void **state)
{
    fail_in_turn(*state, fail_ours, false);
}

static void every_allocation_of_sqlite_may_fail(void **state)
{
    fail_in_turn(*state, fail_sqlites, false);
}

static void every_allocation_may_fail_while_a_store_is_made(void **state)
{
    fail_in_turn(*state, fail_sqlites, true);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_folder, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(every_allocation_of_ours_may_fail),
        CASE(every_allocation_of_sqlite_may_fail),
        CASE(every_allocation_may_fail_while_a_store_is_made),
    };
    return cmocka_run_group_tests(tests, replace_heap, NULL);
}
