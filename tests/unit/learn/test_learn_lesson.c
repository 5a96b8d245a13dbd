/* SPDX-License-Identifier: MIT */
/* What rules say of what was best, before anything is learned. */
#include "base/alloc.h"
#include "learn/lesson.h"
#include "support/test.h"

#include <math.h>

static struct kp_kernel *parse(const char *text)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    if (kp_kernel_parse("k.kopt", kp_str_from(text), &k, &err) != KOPT_OK)
        fail_msg("k.kopt:%d: %s", err.line, err.message);
    return k;
}

enum { TIMED, UNTIMED, TIES };

/* Problems M = 1 .. n; B = 16 is best where M is even, else 4; 8 comes second. */
static struct kp_dataset *some(int64_t n, int kind)
{
    static const char *const fields[] = {"M"};
    static const char *const targets[] = {"B"};
    struct kp_dataset_builder *b = NULL;
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dataset_begin("k", fields, 1, targets, 1, NULL, &b, &err), KOPT_OK);
    for (int64_t m = 1; m <= n; m++) {
        const struct kp_value problem[] = {kp_int(m)};
        const int64_t values[] = {m % 2 ? 4 : 16, 8};
        for (int i = 0; i < 2; i++) {
            const struct kp_value config[] = {kp_int(values[i])};
            double time = kind == UNTIMED ? (double)NAN : kind == TIES ? 5 : 5 + i;
            assert_int_equal(kp_dataset_add(b, problem, config, NULL, (float)time, &err),
                             KOPT_OK);
        }
    }
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    return d;
}

struct found {
    kopt_status st;
    size_t checked;
    size_t forbidden;
    kopt_error err;
};

static struct found look(int64_t n, int kind, const char *rules)
{
    struct kp_dataset *d = some(n, kind);
    struct kp_kernel *k = rules ? parse(rules) : NULL;
    const struct kp_lesson_options o = {.split = {.salt = 1}, .near_best = 0.1, .rules = k};
    struct kp_lesson *l = NULL;
    struct found f = {0};
    f.st = kp_lesson_new(d, &o, &l, &f.err);
    if (l) {
        f.checked = l->n_checked;
        f.forbidden = l->n_forbidden;
        assert_true(f.checked <= l->count[KP_ROLE_TRAIN]);
    }
    kp_lesson_free(l);
    kp_kernel_free(k);
    kp_dataset_free(d);
    return f;
}

#define RULES(values, require) "kernel k\nproblem M\nparam B " values "\n" require "\n"

static void rules_that_forbid_what_was_best_are_counted(void **state)
{
    (void)state;
    struct found f = look(150, TIMED, NULL);
    assert_int_equal(f.checked + f.forbidden, 0);
    f = look(150, TIMED, RULES("{4, 8, 16}", "require B <= 16"));
    assert_int_equal(f.forbidden, 0);
    assert_true(f.checked > 100);
    f = look(150, TIMED, RULES("{4, 8, 16}", "require B < 16"));
    assert_int_equal(f.st, KOPT_OK);
    assert_true(f.forbidden > f.checked / 4 && f.forbidden < f.checked * 3 / 4);
    f = look(150, TIMED, RULES("{8, 16}", "")); /* 4 is not in the list */
    assert_true(f.forbidden > f.checked / 4 && f.forbidden < f.checked * 3 / 4);
    /* A sample is enough. */
    f = look(2000, TIMED, RULES("{4, 8, 16}", "require B < 16"));
    assert_true(f.checked >= 100 && f.checked <= 200);
    assert_true(f.forbidden > 0 && f.forbidden < f.checked);
    /* Of those that are as good one that is allowed is enough, without times any. */
    f = look(150, TIES, RULES("{4, 8, 16}", "require B == 8"));
    assert_int_equal(f.forbidden, 0);
    f = look(150, UNTIMED, RULES("{4, 8, 16}", "require B == 8"));
    assert_int_equal(f.forbidden, 0);
}

static void rules_that_forbid_all_of_it_are_refused(void **state)
{
    (void)state;
    struct found f = look(150, TIMED, RULES("{4, 8, 16}", "require B == 8"));
    assert_int_equal(f.st, KOPT_EINPUT);
    assert_non_null(strstr(f.err.message, "the rules of 'k' forbid the best configuration"));
    assert_non_null(strstr(f.err.message, ": B == 8"));
    f = look(150, TIMED, RULES("{8}", ""));
    assert_int_equal(f.st, KOPT_EINPUT);
    assert_non_null(strstr(f.err.message, "a value that they do not list"));
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct kp_dataset *d = some(40, TIMED);
    struct kp_kernel *k = parse(RULES("{4, 8, 16}", "require B < 16"));
    const struct kp_lesson_options o = {.split = {.salt = 1}, .near_best = 0.1, .rules = k};
    struct kp_lesson *l = NULL;
    for (long n = 1; !l; n++) {
        kopt_error err = {0};
        assert_true(n < 20000);
        kp_alloc_fail_at(n);
        kopt_status st = kp_lesson_new(d, &o, &l, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(st, l ? KOPT_OK : KOPT_ENOMEM);
    }
    assert_true(l->n_forbidden > 0 && l->n_forbidden < l->n_checked);
    kp_lesson_free(l);
    kp_kernel_free(k);
    kp_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_that_forbid_what_was_best_are_counted),
        cmocka_unit_test(rules_that_forbid_all_of_it_are_refused),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
