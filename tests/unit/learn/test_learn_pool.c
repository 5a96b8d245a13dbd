/* SPDX-License-Identifier: MIT */
/* Rows of other texts and of other files help in training, and in nothing else: no problem of
 * validation or tests is learned from under any text or source. */
#include "base/alloc.h"
#include "learn/lesson.h"
#include "learn/load.h"
#include "support/test.h"

#include <math.h>
#include <unistd.h>

static const char rules_text[] = "kernel k\n"
                                 "problem M N kind=\"a\"\n"
                                 "param B {4, 8, 16}\n"
                                 "let half = kind == \"b\"\n"
                                 "let small = min(M, N)\n";

enum { SIZES = 10, FIELD_M = 0, FIELD_N = 1, FIELD_KIND = 2 };

static const char *const where[] = {"kind=a"};
static const char *const also[] = {"kind=b"};
static const struct kp_load_more more[] = {{"other", "other.csv"}};
static const char *const groups[][2] = {
    {NULL, NULL}, {"min(M,N)", "max(M,N)"}, {"small", NULL}, {"half", "M"}};

static struct kp_kernel *rules;
static struct kp_load_report report;

/* All pairs of sizes from `from` in steps of 16; each kind in turn or, for odd sums, only b:
 * some problems have a twin, some are alone. Rows that help stand in front of others. */
static void write_csv(const char *name, int from, const char *ending)
{
    FILE *f = fopen(name, "we");
    assert_non_null(f);
    (void)fputs("M,N,kind,B\n", f);
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < SIZES; k++) {
            int m = from + 16 * i;
            int n = from + 16 * k;
            (void)fprintf(f, "%d%s,%d,b,%d\n", m, ending, n, 4 << (i + k + 1) % 3);
            if ((i + k) % 2 == 0)
                (void)fprintf(f, "%d,%d%s,a,%d\n", m, n, ending, 4 << (i + k) % 3);
            (void)fprintf(f, "%d,%d,c,4\n", m, n);
        }
    assert_int_equal(fclose(f), 0);
}

static struct kp_dataset *load(const char *path, const struct kp_load_options *o)
{
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    if (kp_load(path, o, &d, &report, &err) != KOPT_OK)
        fail_msg("%s (%s)", err.message, err.hint);
    return d;
}

static struct kp_load_options alone(void)
{
    return (struct kp_load_options){.rules = rules, .where = where, .n_where = 1};
}

static struct kp_load_options pooled(void)
{
    struct kp_load_options o = alone();
    o.also = also;
    o.n_also = 1;
    o.more = more;
    o.n_more = 1;
    o.source = "data";
    o.as = where;
    o.n_as = 1;
    return o;
}

static const double *problem(const struct kp_dataset *d, size_t p)
{
    return d->problems + p * d->n_fields;
}

static bool same_sizes(const struct kp_dataset *a, size_t p, const struct kp_dataset *b,
                       size_t q)
{
    return problem(a, p)[FIELD_M] == problem(b, q)[FIELD_M] &&
           problem(a, p)[FIELD_N] == problem(b, q)[FIELD_N];
}

static size_t find(const struct kp_dataset *d, const struct kp_dataset *from, size_t p)
{
    size_t q = 0;
    while (q < d->n_problems && !(same_sizes(d, q, from, p) && (!d->twins || d->twins[q] == q)))
        q++;
    return q;
}

static struct kp_split split_of(unsigned fold, size_t group)
{
    struct kp_split s = {.salt = 1, .fold = fold, .group = groups[group]};
    while (s.n_group < 2 && groups[group][s.n_group])
        s.n_group++;
    if (s.n_group == 0)
        s.group = NULL;
    return s;
}

/* --- what is whose ------------------------------------------------------------------------ */

static void own_problems_are_as_without_help(void **state)
{
    (void)state;
    struct kp_load_options o = alone();
    struct kp_dataset *plain = load("data.csv", &o);
    char hash[64 + 1];
    memcpy(hash, report.hash, sizeof(hash));
    assert_int_equal(report.helping, 0);
    assert_string_equal(report.all_hash, "");
    assert_null(plain->twins);
    o = pooled();
    struct kp_dataset *d = load("data.csv", &o);
    assert_string_equal(report.hash, hash);
    assert_string_not_equal(report.all_hash, hash);
    assert_int_equal(report.n_raw, 4);
    assert_string_equal(d->fields[3].name, "source");
    size_t own = 0;
    size_t with_twin = 0;
    for (size_t p = 0; p < d->n_problems; p++) {
        size_t q = find(plain, d, p);
        if (d->twins[p] == p) {
            own++;
            assert_true(q < plain->n_problems);
            assert_string_equal(d->keys[p], plain->keys[q]);
            assert_string_equal(d->fields[3].words[(size_t)problem(d, p)[3]], "data");
            assert_string_equal(d->fields[2].words[(size_t)problem(d, p)[2]], "a");
        } else if (q < plain->n_problems) {
            with_twin++;
            assert_string_equal(d->keys[p], plain->keys[q]);
            assert_int_equal(d->twins[p], find(d, d, p));
        } else {
            assert_int_equal(d->twins[p], UINT32_MAX);
        }
    }
    assert_int_equal(own, plain->n_problems);
    assert_int_equal(own, SIZES * SIZES / 2);
    /* Kind b of each; of the other file, half of whose sizes the data has, too, both kinds. */
    assert_int_equal(report.helping, SIZES * SIZES + SIZES * SIZES * 3 / 2);
    assert_int_equal(d->n_problems - own, report.helping);
    assert_true(with_twin > SIZES * SIZES / 2 && with_twin < report.helping);
    kp_dataset_free(d);
    kp_dataset_free(plain);
}

/* Values of the group of a problem, as a number. */
static double group_of(const struct kp_dataset *d, size_t p, size_t group)
{
    double m = problem(d, p)[FIELD_M];
    double n = problem(d, p)[FIELD_N];
    return group == 1 ? fmin(m, n) * 1e4 + fmax(m, n) : group == 2 ? fmin(m, n) : -1;
}

/* `last`: the last role that is learned from. */
static void assert_no_leak(const struct kp_dataset *d, const unsigned char *roles, size_t group,
                           unsigned char last)
{
    size_t helping = 0;
    size_t left_out = 0;
    for (size_t p = 0; p < d->n_problems; p++) {
        bool own = d->twins[p] == p;
        helping += !own && roles[p] == KP_ROLE_TRAIN;
        left_out += !own && roles[p] == KP_ROLE_NONE;
        assert_true(own ? roles[p] != KP_ROLE_NONE
                        : roles[p] == KP_ROLE_TRAIN || roles[p] == KP_ROLE_NONE);
        for (size_t q = 0; roles[p] <= last && q < d->n_problems; q++) {
            if (roles[q] <= last || roles[q] > KP_ROLE_TEST)
                continue;
            assert_false(same_sizes(d, p, d, q));
            if (group == 1 || group == 2)
                assert_true(group_of(d, p, group) != group_of(d, q, group));
        }
    }
    assert_true(helping > 0);
    assert_true(left_out > 0 || last == KP_ROLE_VALID);
}

static void nothing_of_tests_is_in_training(void **state)
{
    (void)state;
    struct kp_load_options o = alone();
    struct kp_dataset *plain = load("data.csv", &o);
    o = pooled();
    struct kp_dataset *d = load("data.csv", &o);
    unsigned char *roles = kp_calloc(d->n_problems, 1);
    unsigned char *before = kp_calloc(plain->n_problems, 1);
    kopt_error err;
    assert_non_null(roles);
    assert_non_null(before);
    for (unsigned fold = 0; fold < 10; fold++)
        for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
            const struct kp_split s = split_of(fold, g);
            assert_int_equal(kp_split(plain, &s, before, &err), KOPT_OK);
            assert_int_equal(kp_split(d, &s, roles, &err), KOPT_OK);
            for (size_t p = 0; p < d->n_problems; p++)
                if (d->twins[p] == p)
                    assert_int_equal(roles[p], before[find(plain, d, p)]);
            assert_no_leak(d, roles, g, KP_ROLE_TRAIN);
            struct kp_split more_split = s;
            more_split.learn_valid = true;
            assert_int_equal(kp_split(d, &more_split, roles, &err), KOPT_OK);
            assert_no_leak(d, roles, g, KP_ROLE_VALID);
        }
    kp_free(roles);
    kp_free(before);
    kp_dataset_free(d);
    kp_dataset_free(plain);
}

/* --- what is learned ---------------------------------------------------------------------- */

static void lessons_weigh_what_helps(void **state)
{
    (void)state;
    const struct kp_load_options o = pooled();
    struct kp_dataset *d = load("data.csv", &o);
    const struct kp_lesson_options lo = {.split = {.salt = 1}, .extra_weight = 0.25};
    struct kp_lesson *l = NULL;
    kopt_error err;
    assert_int_equal(kp_lesson_new(d, &lo, &l, &err), KOPT_OK);
    const struct kp_examples *train = &l->examples[KP_ROLE_TRAIN];
    const struct kp_examples *valid = &l->examples[KP_ROLE_VALID];
    size_t light = 0;
    assert_int_equal(train->n, l->count[KP_ROLE_TRAIN]);
    assert_int_equal(valid->n, l->count[KP_ROLE_VALID]);
    assert_true(l->count[KP_ROLE_NONE] > 0);
    for (size_t i = 0; i < train->n; i++) {
        assert_true(train->weights[i] == 1 || train->weights[i] == 0.25F);
        light += train->weights[i] < 1;
    }
    assert_int_equal(light, l->n_extra);
    /* No problem of validation has the same inputs but for what was pooled. */
    for (size_t p = 0; p < d->n_problems; p++)
        for (size_t q = 0; l->roles[p] == KP_ROLE_VALID && q < d->n_problems; q++)
            assert_false(l->roles[q] == KP_ROLE_TRAIN && same_sizes(d, p, d, q));
    size_t without = train->n;
    size_t helped = l->n_extra;
    kp_lesson_free(l);
    /* With the problems for validation there are more of both. */
    const struct kp_lesson_options all = {.split = {.salt = 1, .learn_valid = true}};
    assert_int_equal(kp_lesson_new(d, &all, &l, &err), KOPT_OK);
    assert_true(l->n_extra > helped);
    assert_int_equal(l->examples[KP_ROLE_TRAIN].n,
                     without + l->count[KP_ROLE_VALID] + l->n_extra - helped);
    assert_int_equal(l->examples[KP_ROLE_VALID].n, l->count[KP_ROLE_VALID]);
    kp_lesson_free(l);
    kp_dataset_free(d);
}

/* --- other sources of keys ---------------------------------------------------------------- */

#define CONV(c, type) c "-8-8-1x1-16-8-8-4-0x0-1x1-1x1-0-NCHW-" type "-F"

static void put_text(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void miopen_keys_are_those_of_the_data(void **state)
{
    (void)state;
    static const char *const fp32[] = {"data_type=FP32"};
    static const char *const fp16[] = {"data_type=FP16"};
    struct kp_load_options o = {.kernel = "S",
                                .where = fp32,
                                .n_where = 1,
                                .also = fp16,
                                .n_also = 1,
                                .as = fp32,
                                .n_as = 1};
    put_text("perf.txt", CONV("16", "FP16") "=S:1,2\n" CONV("16", "FP32") "=S:2,1\n" CONV(
                             "24", "FP16") "=S:2,2\n" CONV("24", "BF16") "=S:2,2\n");
    struct kp_dataset *d = load("perf.txt", &o);
    assert_int_equal(d->n_problems, 3);
    assert_int_equal(report.left_out, 1);
    assert_int_equal(report.helping, 2);
    for (size_t p = 0; p < 3; p++)
        assert_non_null(strstr(d->keys[p], "-FP32-F"));
    assert_string_equal(d->keys[0], d->keys[1]);
    assert_int_equal(d->twins[0], 1);
    assert_int_equal(d->twins[1], 1);
    assert_int_equal(d->twins[2], UINT32_MAX);
    kp_dataset_free(d);
    /* The other type asked about on its own falls on the same side. */
    o.where = fp16;
    o.n_also = 0;
    d = load("perf.txt", &o);
    assert_int_equal(report.helping, 0);
    assert_null(d->twins);
    assert_string_equal(d->keys[0], CONV("16", "FP32"));
    assert_string_equal(d->keys[1], CONV("24", "FP32"));
    kp_dataset_free(d);
}

/* --- what cannot be ----------------------------------------------------------------------- */

static void files_without_usable_rows(void **state)
{
    (void)state;
    static const struct kp_load_more bad[] = {{"bad", "bad.csv"}};
    struct kp_load_options o = pooled();
    struct kp_dataset *d = NULL;
    kopt_error err;
    o.more = bad;
    put_text("bad.csv", "M,N,kind,X\n1,2,a,4\n");
    assert_int_equal(kp_load("data.csv", &o, &d, &report, &err), KOPT_EINPUT);
    assert_null(d);
    assert_non_null(strstr(err.message, "bad.csv: no row can be used"));
    put_text("bad.csv", "");
    assert_int_equal(kp_load("data.csv", &o, &d, &report, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "bad.csv"));
    put_text("source.csv", "M,N,kind,source,B\n1,2,a,x,4\n");
    o = pooled();
    o.rules = NULL;
    static const char *const params[] = {"B"};
    o.params = params;
    o.n_params = 1;
    assert_int_equal(kp_load("source.csv", &o, &d, &report, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "source"));
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    const struct kp_load_options o = pooled();
    kopt_status st = KOPT_ENOMEM;
    put_text("few.csv", "M,N,kind,B\n1,2,b,4\n1,2,a,8\n3,4,b,4\n");
    for (long n = 1; st != KOPT_OK; n++) {
        struct kp_dataset *d = NULL;
        kopt_error err = {0};
        assert_true(n < 5000);
        kp_alloc_fail_at(n);
        st = kp_load("few.csv", &o, &d, &report, &err);
        kp_alloc_fail_at(0);
        if (st != KOPT_OK && st != KOPT_ENOMEM)
            fail_msg("allocation %ld: %s", n, err.message);
        kp_dataset_free(d);
    }
}

static int set_up(void **state)
{
    (void)state;
    kopt_error err = {0};
    write_csv("data.csv", 16, "");
    write_csv("other.csv", 16 + 16 * (SIZES / 4),
              ".0"); /* the same number, written otherwise */
    if (kp_kernel_parse("k.kopt", kp_str_from(rules_text), &rules, &err) != KOPT_OK)
        fail_msg("%s:%d: %s", "k.kopt", err.line, err.message);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kp_kernel_free(rules);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_problems_are_as_without_help),
        cmocka_unit_test(nothing_of_tests_is_in_training),
        cmocka_unit_test(lessons_weigh_what_helps),
        cmocka_unit_test(miopen_keys_are_those_of_the_data),
        cmocka_unit_test(files_without_usable_rows),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
