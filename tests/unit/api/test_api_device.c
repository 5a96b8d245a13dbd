/* SPDX-License-Identifier: MIT */
#include <kopt/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void count_found(void *user, const kopt_device_info *info)
{
    (void)info;
    ++*(int *)user;
}

static void count_missing(void *user, const kopt_device_missing *missing)
{
    (void)missing;
    ++*(int *)user;
}

static void without_its_helper_it_fails_and_blames_no_driver(void **state)
{
    (void)state;
    int n = 0;
    kopt_error err = {0};
    kopt_device_visitor v = {count_found, count_missing, &n};
    assert_int_equal(setenv("KOPT_LIBEXEC", "/nowhere", 1), 0);
    assert_int_equal(kopt_devices(&v, &err), KOPT_EENV);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.message, "/nowhere/kopt-worker"));
    assert_non_null(strstr(err.hint, "KOPT_LIBEXEC"));
    v.missing = NULL;
    assert_int_equal(kopt_devices(&v, NULL), KOPT_EENV);
    assert_int_equal(unsetenv("KOPT_LIBEXEC"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_its_helper_it_fails_and_blames_no_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
