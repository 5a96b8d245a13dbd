/* SPDX-License-Identifier: MIT */
/* Data sets from a store of ours. */
#include "unit/store/fixture.h"

#include "learn/load.h"

static struct kp_load_report report;

static struct kp_dataset *load(struct fixture *f, const struct kp_load_options *o)
{
    struct kp_dataset *d = NULL;
    ASSERT_OK(f, kp_load(f->path, o, &d, &report, &f->err));
    assert_int_equal(report.source, KP_SOURCE_STORE);
    return d;
}

static int64_t subject(struct fixture *f, const char *problem, const char *device)
{
    struct kp_subject s = a_subject();
    s.problem = problem;
    s.device = device;
    s.params = "[\"X\",\"BM\"]";
    return make_subject(f, s);
}

static void add_all(struct fixture *f, int64_t s, double ns)
{
    int64_t run = make_run(f, s);
    (void)add(f, run, s, a_result("{\"BM\":64,\"X\":1}", 3 * ns));
    (void)add(f, run, s, a_result("{\"BM\":64,\"X\":1}", ns)); /* the newest counts */
    (void)add(f, run, s, a_failure("{\"BM\":32,\"X\":2}", KOPT_OUT_CRASH));
    (void)add(f, run, s, a_failure("{\"BM\":16,\"X\":2}", KOPT_OUT_INTERRUPTED));
}

static void newest_results_are_rows(void **state)
{
    struct fixture *f = *state;
    const struct kp_load_options o = {0};
    add_all(f, subject(f, "{\"K\":1,\"M\":64}", "D"), 100);
    add_all(f, subject(f, "{\"K\":1,\"M\":128}", "D"), 200);
    struct kp_dataset *d = load(f, &o);
    assert_string_equal(d->kernel, "gemm");
    assert_int_equal(d->n_fields, 2);
    assert_int_equal(d->n_problems, 2);
    assert_int_equal(d->n_targets, 2);
    assert_string_equal(d->targets[0].name, "X"); /* the kernel file's order */
    assert_int_equal(d->n_rows, 4);
    assert_true(d->problems[1] == 64 && d->problems[3] == 128); /* the oldest first */
    assert_true(d->times_ns[0] == 100.0F && isinf(d->times_ns[1]));
    assert_true(d->times_ns[2] == 200.0F && isinf(d->times_ns[3]));
    assert_int_equal(report.read, 4);
    assert_int_equal(report.skipped, 0);
    kp_dataset_free(d);
}

static void devices_are_not_mixed(void **state)
{
    struct fixture *f = *state;
    static const char *const where[] = {"device=E"};
    struct kp_load_options o = {0};
    struct kp_dataset *d = NULL;
    add_all(f, subject(f, "{\"M\":64}", "D"), 100);
    add_all(f, subject(f, "{\"M\":64}", "E"), 200);
    ASSERT_FAILS(f, KOPT_EINPUT, "times of 2 devices",
                 kp_load(f->path, &o, &d, &report, &f->err));
    assert_non_null(strstr(f->err.hint, "D"));
    o.where = where;
    o.n_where = 1;
    d = load(f, &o);
    assert_int_equal(report.left_out, 2);
    assert_true(d->times_ns[0] == 200.0F);
    kp_dataset_free(d);
}

static void kernels_are_chosen(void **state)
{
    struct fixture *f = *state;
    struct kp_load_options o = {.kernel = "softmax"};
    struct kp_dataset *d = NULL;
    struct kp_subject s = a_subject();
    ASSERT_FAILS(f, KOPT_EINPUT, "the store is empty",
                 kp_load(f->path, &o, &d, &report, &f->err));
    add_all(f, make_subject(f, s), 100);
    ASSERT_FAILS(f, KOPT_EINPUT, "no kernel 'softmax'",
                 kp_load(f->path, &o, &d, &report, &f->err));
    assert_non_null(strstr(f->err.hint, "gemm"));
    s.kernel = "softmax";
    add_all(f, make_subject(f, s), 100);
    kp_dataset_free(load(f, &o));
    o.kernel = NULL;
    ASSERT_FAILS(f, KOPT_EINPUT, "which of 2 kernels?",
                 kp_load(f->path, &o, &d, &report, &f->err));
}

static void a_damaged_store_is_called_one(void **state)
{
    struct fixture *f = *state;
    const struct kp_load_options o = {0};
    struct kp_dataset *d = NULL;
    add_all(f, make_subject(f, a_subject()), 100);
    kp_store_close(f->st);
    f->st = NULL;
    FILE *file = fopen(f->path, "r+be");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4096, SEEK_SET), 0);
    for (int i = 0; i < 8192; i++)
        assert_int_equal(fputc(0xa5, file), 0xa5);
    assert_int_equal(fclose(file), 0);
    ASSERT_FAILS(f, KOPT_EINPUT, "the store is damaged",
                 kp_load(f->path, &o, &d, &report, &f->err));
    assert_null(d);
}

static void every_failing_allocation_is_clean(void **state)
{
    struct fixture *f = *state;
    const struct kp_load_options o = {0};
    kopt_status st = KOPT_ENOMEM;
    add_all(f, make_subject(f, a_subject()), 100);
    for (long n = 1; st != KOPT_OK; n++) {
        struct kp_dataset *d = NULL;
        assert_true(n < 2000);
        kp_alloc_fail_at(n);
        st = kp_load(f->path, &o, &d, &report, &f->err);
        kp_alloc_fail_at(0);
        if (st != KOPT_OK && st != KOPT_ENOMEM)
            fail_msg("allocation %ld: %s", n, f->err.message);
        kp_dataset_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(newest_results_are_rows, fixture_store, fixture_end),
        cmocka_unit_test_setup_teardown(devices_are_not_mixed, fixture_store, fixture_end),
        cmocka_unit_test_setup_teardown(kernels_are_chosen, fixture_store, fixture_end),
        cmocka_unit_test_setup_teardown(a_damaged_store_is_called_one, fixture_store,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(every_failing_allocation_is_clean, fixture_store,
                                        fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
