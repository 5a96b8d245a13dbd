/* SPDX-License-Identifier: MIT */
/* The store and the selector through the public interface, on an imported cache. */
#include "base/alloc.h"
#include "kopt/store.h"
#include "support/test.h"

#include <stdbool.h>
#include <unistd.h>

static const char cache[] =
    "{\"device_name\":\"D\",\"kernel_name\":\"k\",\"problem_size\":[64,32],"
    "\"tune_params_keys\":[\"a\",\"b\"],\"tune_params\":{\"a\":[1,2],\"b\":[3]},"
    "\"cache\":{"
    "\"1,3\":{\"a\":1,\"b\":3,\"time\":2.0,\"times\":[2.0,2.0,2.0]},"
    "\"2,3\":{\"a\":2,\"b\":3,\"time\":1.0,\"times\":[1.0,1.0,1.0]}}}";

static void make_store(const char *path)
{
    kopt_store *s = NULL;
    kopt_import_count n;
    kopt_error err = {0};
    FILE *f = fopen("cache.json", "w");
    assert_non_null(f);
    assert_true(fputs(cache, f) >= 0);
    assert_int_equal(fclose(f), 0);
    (void)unlink(path);
    assert_int_equal(kopt_store_open(path, 1, &s, &err), KOPT_OK);
    assert_int_equal(kopt_store_import(s, "cache.json", &n, &err), KOPT_OK);
    assert_int_equal(n.added, 2);
    assert_int_equal(n.bad, 0);
    assert_false(n.cut);
    assert_int_equal(kopt_store_import(s, "cache.json", &n, &err), KOPT_OK);
    assert_int_equal(n.added, 0);
    assert_int_equal(n.present, 2);
    kopt_store_close(s);
}

static int take_subject(void *user, const kopt_subject *x)
{
    int64_t *id = user;
    *id = x->id;
    assert_string_equal(x->kernel, "k");
    assert_string_equal(x->device, "D");
    assert_int_equal(x->n_results, 2);
    assert_true(x->best_ns == 1e6);
    return 0;
}

static int count_results(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    int *n = user;
    assert_int_equal(r->outcome, KOPT_OUT_OK);
    assert_true(subject > 0 && run > 0);
    return ++*n < 5;
}

static int first_only(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    int *n = user;
    (void)r;
    (void)subject;
    (void)run;
    ++*n;
    return 0;
}

static int count_runs(void *user, const kopt_run *r)
{
    int *n = user;
    assert_string_equal(r->state, "done");
    ++*n;
    return 1;
}

static void results_are_visited_until_told_to_end(void **state)
{
    kopt_store *s = NULL;
    kopt_error err = {0};
    int64_t id = 0;
    int n = 0;
    (void)state;
    make_store("s.kopt.db");
    assert_int_equal(kopt_store_open("s.kopt.db", 0, &s, &err), KOPT_OK);
    assert_int_equal(kopt_store_subjects(s, "k", take_subject, &id, &err), KOPT_OK);
    assert_true(id > 0);
    assert_int_equal(kopt_store_subject(s, id, take_subject, &id, &err), KOPT_OK);
    assert_int_equal(kopt_store_subject(s, 99, take_subject, &id, &err), KOPT_ENOTFOUND);
    kopt_result_filter f = {.subject = id, .outcome = -1, .by_time = 1};
    assert_int_equal(kopt_store_results(s, &f, count_results, &n, &err), KOPT_OK);
    assert_int_equal(n, 2);
    n = 0;
    assert_int_equal(kopt_store_results(s, &f, first_only, &n, &err), KOPT_OK);
    assert_int_equal(n, 1);
    n = 0;
    assert_int_equal(kopt_store_best(s, id, first_only, &n, &err), KOPT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(kopt_store_best(s, 99, first_only, &n, &err), KOPT_ENOTFOUND);
    n = 0;
    assert_int_equal(kopt_store_runs(s, id, count_runs, &n, &err), KOPT_OK);
    assert_true(n >= 1);
    char *t4 = NULL;
    assert_int_equal(kopt_store_export_t4(s, id, &t4, &err), KOPT_OK);
    assert_non_null(strstr(t4, "\"schema_version\""));
    kopt_text_free(t4);
    assert_int_equal(kopt_store_export_t4(s, 99, &t4, &err), KOPT_ENOTFOUND);
    assert_null(t4);
    kopt_text_free(NULL);
    kopt_store_close(s);
    kopt_store_close(NULL);
}

static void a_store_that_is_not_there_is_not_made_for_reading(void **state)
{
    kopt_store *s = NULL;
    kopt_selector *selector = NULL;
    kopt_error err = {0};
    (void)state;
    assert_int_equal(kopt_store_open("none.kopt.db", 0, &s, &err), KOPT_ENOTFOUND);
    assert_null(s);
    assert_int_equal(kopt_selector_open("none.kopt.db", NULL, &selector, &err), KOPT_ENOTFOUND);
    assert_null(selector);
    assert_int_not_equal(access("none.kopt.db", F_OK), 0);
}

static void the_selector_knows_exact_nearest_and_other(void **state)
{
    static const char *const names[] = {"y", "x"}; /* in any order */
    static const int64_t exact[] = {32, 64};
    static const int64_t near[] = {64, 64};
    kopt_selector *selector = NULL;
    kopt_selection found;
    kopt_error err = {0};
    (void)state;
    make_store("t.kopt.db");
    assert_int_equal(kopt_selector_open("t.kopt.db", "D", &selector, &err), KOPT_OK);
    kopt_select(selector, "k", names, exact, 2, &found);
    assert_int_equal(found.how, KOPT_SELECT_EXACT);
    assert_true(found.confidence > 0 && found.confidence <= 1 && found.distance == 0);
    assert_true(found.median_ns == 1e6);
    assert_int_equal(kopt_selection_int(&found, "a", 0), 2);
    double sure = found.confidence;
    kopt_select(selector, "k", names, near, 2, &found);
    assert_int_equal(found.how, KOPT_SELECT_NEAREST);
    assert_true(found.confidence < sure && found.distance > 0);
    kopt_select(selector, "nothing", names, near, 2, &found);
    assert_int_equal(found.how, KOPT_SELECT_NONE);
    assert_string_equal(found.config, "");
    assert_int_equal(kopt_selection_int(&found, "a", -7), -7);
    kopt_selector_close(selector);
    assert_int_equal(kopt_selector_open("t.kopt.db", "Another", &selector, &err), KOPT_OK);
    kopt_select(selector, "k", names, exact, 2, &found);
    assert_int_equal(found.how, KOPT_SELECT_OTHER);
    kopt_selector_close(selector);
    kopt_selector_close(NULL);
}

static void every_failing_allocation_is_clean(void **state)
{
    static const char *const names[] = {"x", "y"};
    static const int64_t exact[] = {64, 32};
    kopt_error err;
    bool done = false;
    (void)state;
    make_store("u.kopt.db");
    for (long n = 1; !done; n++) {
        kopt_selector *selector = NULL;
        kopt_store *s = NULL;
        char *t4 = NULL;
        assert_true(n < 10000);
        kp_alloc_fail_at(n);
        kopt_status st = kopt_selector_open("u.kopt.db", NULL, &selector, &err);
        if (st == KOPT_OK)
            st = kopt_store_open("u.kopt.db", 0, &s, &err);
        if (st == KOPT_OK)
            st = kopt_store_export_t4(s, 1, &t4, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
        done = st == KOPT_OK;
        if (done) {
            kopt_selection found;
            kopt_select(selector, "k", names, exact, 2, &found);
            assert_int_equal(found.how, KOPT_SELECT_EXACT);
        }
        kopt_text_free(t4);
        kopt_store_close(s);
        kopt_selector_close(selector);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_visited_until_told_to_end),
        cmocka_unit_test(a_store_that_is_not_there_is_not_made_for_reading),
        cmocka_unit_test(the_selector_knows_exact_nearest_and_other),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
