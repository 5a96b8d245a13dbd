/* SPDX-License-Identifier: MIT */
/* MIOpen's published databases as data sets (from the folder that KOPT_DATA_DIR names,
 * compressed): as many problems for training, validation and tests as another program found. */
#include "learn/load.h"
#include "support/test.h"
#include "support/unpack.h"

#include "base/alloc.h"

#include <math.h>

static const char *data_dir;

static struct kp_kernel *rules_of(const char *solver)
{
    char path[4200];
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/kernels/miopen/%s.kopt", root ? root : ".", solver);
    if (kp_kernel_load(path, false, &k, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return k;
}

static void assert_split(const struct kp_dataset *d, size_t train, size_t valid, size_t test)
{
    const struct kp_split s = {.salt = 1};
    kopt_error err = {0};
    size_t n[3] = {0};
    unsigned char *roles = kp_calloc(d->n_problems, 1);
    assert_non_null(roles);
    if (kp_split(d, &s, roles, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    for (size_t p = 0; p < d->n_problems; p++)
        n[roles[p]]++;
    assert_int_equal(n[KP_ROLE_TRAIN], train);
    assert_int_equal(n[KP_ROLE_VALID], valid);
    assert_int_equal(n[KP_ROLE_TEST], test);
    assert_int_equal(d->n_rows, d->n_problems); /* the winner of each */
    kp_free(roles);
}

static void check_solver(const char *solver, size_t train, size_t valid, size_t test)
{
    static const char *const where[] = {"data_type=FP32"};
    struct kp_kernel *k = rules_of(solver);
    struct kp_load_options o = {.rules = k, .where = where, .n_where = 1};
    struct kp_load_report with = {0};
    struct kp_load_report without = {0};
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    const char *db = unpack(data_dir, "gfx906_60.db");
    int64_t from = kp_clock_ns();
    if (kp_load(db, &o, &d, &with, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    print_message("%s: %zu of %zu rows, %zu fields, in %g ms\n", solver, d->n_rows, with.read,
                  d->n_fields, 1e-6 * (double)(kp_clock_ns() - from));
    assert_int_equal(with.source, KP_SOURCE_MIOPEN);
    assert_int_equal(with.skipped + with.unlisted, 0);
    assert_int_equal(with.n_raw, 24);
    assert_int_equal(with.read, with.left_out + d->n_rows);
    assert_true(d->n_fields > with.n_raw);
    assert_int_equal(d->n_targets, k->n_params);
    assert_split(d, train, valid, test);
    kp_dataset_free(d);

    o.rules = NULL;
    o.kernel = solver;
    if (kp_load(db, &o, &d, &without, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(d->n_fields, 24);
    assert_string_equal(d->targets[0].name, "p1");
    assert_split(d, train, valid, test);
    kp_dataset_free(d);
    kp_kernel_free(k);
}

/* The columns that make a problem but for its type. */
static bool same_convolution(const struct kp_dataset *d, size_t p, size_t q)
{
    const double *a = d->problems + p * d->n_fields;
    const double *b = d->problems + q * d->n_fields;
    for (size_t i = 0; i < 24; i++)
        if (strcmp(d->fields[i].name, "data_type") != 0 && a[i] != b[i])
            return false;
    return true;
}

static void nothing_of_tests_is_learned_from_in_another_type(void **state)
{
    (void)state;
    static const char *const where[] = {"data_type=FP32"};
    static const char *const also[] = {"data_type=FP16", "data_type=BF16"};
    char other[4200];
    (void)snprintf(other, sizeof(other), "%s", unpack(data_dir, "gfx900_56.db"));
    const struct kp_load_more more[] = {{"gfx900", other}};
    struct kp_kernel *k = rules_of("ConvOclDirectFwd");
    const struct kp_load_options o = {.rules = k,
                                      .where = where,
                                      .n_where = 1,
                                      .also = also,
                                      .n_also = 2,
                                      .more = more,
                                      .n_more = 1,
                                      .source = "gfx906",
                                      .as = where,
                                      .n_as = 1};
    const struct kp_split s = {.salt = 1};
    struct kp_load_report report;
    struct kp_dataset *d = NULL;
    size_t n[KP_ROLES] = {0};
    kopt_error err = {0};
    if (kp_load(unpack(data_dir, "gfx906_60.db"), &o, &d, &report, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    unsigned char *roles = kp_calloc(d->n_problems, 1);
    assert_non_null(roles);
    assert_int_equal(kp_split(d, &s, roles, &err), KOPT_OK);
    for (size_t p = 0; p < d->n_problems; p++) {
        n[roles[p]] += d->twins[p] == p || roles[p] == KP_ROLE_NONE;
        for (size_t q = 0; roles[p] == KP_ROLE_TEST && q < d->n_problems; q++)
            assert_false(roles[q] != KP_ROLE_TEST && roles[q] != KP_ROLE_NONE &&
                         same_convolution(d, p, q));
    }
    assert_int_equal(n[KP_ROLE_TRAIN], 1438);
    assert_int_equal(n[KP_ROLE_VALID], 164);
    assert_int_equal(n[KP_ROLE_TEST], 173);
    assert_true(n[KP_ROLE_NONE] > 1000);
    assert_int_equal(d->n_rows - 1775, report.helping);
    kp_free(roles);
    kp_dataset_free(d);
    kp_kernel_free(k);
}

static void splits_are_those_of_another_program(void **state)
{
    (void)state;
    check_solver("ConvAsm1x1U", 6924, 870, 864);
    check_solver("ConvAsmBwdWrW1x1", 3553, 476, 451);
    check_solver("ConvOclDirectFwd", 1438, 164, 173);
    check_solver("ConvAsmBwdWrW3x3", 858, 94, 104);
}

static void the_find_database_has_times(void **state)
{
    (void)state;
    const struct kp_load_options o = {0};
    struct kp_load_report r = {0};
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    size_t several = 0;
    if (kp_load(unpack(data_dir, "gfx906_64.HIP.fdb.txt"), &o, &d, &r, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    for (size_t row = 1; row < d->n_rows; row++) {
        assert_true(isfinite(d->times_ns[row]));
        several += d->of[row] == d->of[row - 1] && (row == 1 || d->of[row - 2] != d->of[row]);
    }
    print_message("%zu problems, %zu with two algorithms or more\n", d->n_problems, several);
    assert_string_equal(d->kernel, "algorithm");
    assert_int_equal(d->n_targets, 1);
    assert_int_equal(several, 61223);
    assert_int_equal(r.skipped, 48); /* 3-D */
    kp_dataset_free(d);
}

int main(void)
{
    data_dir = getenv("KOPT_DATA_DIR");
    if (!data_dir || !data_dir[0]) {
        (void)printf("skipped: KOPT_DATA_DIR names no folder with MIOpen's databases\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_are_those_of_another_program),
        cmocka_unit_test(nothing_of_tests_is_learned_from_in_another_type),
        cmocka_unit_test(the_find_database_has_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
