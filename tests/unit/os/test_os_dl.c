/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "os/dl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char ENV[] = "KOPT_TEST_LIBRARY";

static int clear_env(void **state)
{
    (void)state;
    return unsetenv(ENV);
}

static void opens_the_first_name_that_exists(void **state)
{
    (void)state;
    const char *names[] = {"libkopt-no-such.so.1", "libm.so.6"};
    struct kp_dl *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dl_open(names, 2, NULL, &d, &err), KOPT_OK);
    assert_string_equal(kp_dl_name(d), "libm.so.6");

    double (*fn)(double) = NULL;
    assert_true(KP_DL_GET(d, "sqrt", &fn));
    assert_true(fn(9.0) == 3.0);
    assert_null(kp_dl_sym(d, "kopt_no_such_symbol"));
    assert_false(KP_DL_GET(d, "kopt_no_such_symbol", &fn));
    assert_null(fn);
    kp_dl_close(d);
}

static void failure_names_every_library_with_its_reason(void **state)
{
    (void)state;
    const char *names[] = {"libkopt-none-a.so.1", "libkopt-none-b.so.2"};
    struct kp_dl *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dl_open(names, 2, ENV, &d, &err), KOPT_EENV);
    assert_null(d);
    assert_non_null(strstr(err.message, "libkopt-none-a.so.1: cannot open shared object"));
    assert_non_null(strstr(err.message, "; libkopt-none-b.so.2: "));
    assert_null(strstr(err.message, "named by"));
}

static void environment_replaces_the_names(void **state)
{
    (void)state;
    const char *names[] = {"libkopt-no-such.so.1"};
    struct kp_dl *d = NULL;
    kopt_error err = {0};
    assert_int_equal(setenv(ENV, "libm.so.6", 1), 0);
    assert_int_equal(kp_dl_open(names, 1, ENV, &d, &err), KOPT_OK);
    assert_string_equal(kp_dl_name(d), "libm.so.6");
    kp_dl_close(d);

    const char *good[] = {"libm.so.6"};
    assert_int_equal(setenv(ENV, "/nowhere/libx.so", 1), 0);
    assert_int_equal(kp_dl_open(good, 1, ENV, &d, &err), KOPT_EENV);
    assert_non_null(strstr(err.message, "/nowhere/libx.so"));
    assert_non_null(strstr(err.message, ENV));

    assert_int_equal(setenv(ENV, "", 1), 0);
    assert_int_equal(kp_dl_open(good, 1, ENV, &d, &err), KOPT_OK);
    kp_dl_close(d);
}

static void a_file_that_is_no_library_is_refused(void **state)
{
    (void)state;
    const char *names[] = {"/proc/self/status"};
    struct kp_dl *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dl_open(names, 1, NULL, &d, &err), KOPT_EENV);
    assert_non_null(strstr(err.message, "/proc/self/status"));
    assert_int_equal(kp_dl_open(names, 1, NULL, &d, NULL), KOPT_EENV);
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    const char *names[] = {"libkopt-no-such.so.1", "libm.so.6"};
    int n = 1;
    for (;; n++) {
        struct kp_dl *d = NULL;
        kopt_error err = {0};
        kp_alloc_fail_at(n);
        kopt_status st = kp_dl_open(names, 2, NULL, &d, &err);
        kp_alloc_fail_at(0);
        if (st == KOPT_OK && n > 3) {
            kp_dl_close(d);
            break;
        }
        /* the list of reasons is of use only when nothing opens */
        assert_true(st == KOPT_ENOMEM || st == KOPT_OK);
        kp_dl_close(d);
    }
    assert_true(n > 3);
    kp_alloc_fail_at(1);
    struct kp_dl *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dl_open(names, 1, NULL, &d, &err), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
}

static void closing_nothing_is_allowed(void **state)
{
    (void)state;
    kp_dl_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_the_first_name_that_exists),
        cmocka_unit_test_teardown(failure_names_every_library_with_its_reason, clear_env),
        cmocka_unit_test_teardown(environment_replaces_the_names, clear_env),
        cmocka_unit_test(a_file_that_is_no_library_is_refused),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(closing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
