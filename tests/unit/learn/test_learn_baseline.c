/* SPDX-License-Identifier: MIT */
/* The majority and the nearest neighbours on data small enough to work out by hand, and how
 * they are judged. */
#include "base/alloc.h"
#include "learn/baseline.h"
#include "support/test.h"

#include <math.h>

/* Problem i is x = i; its truth by the rows below. */
struct row {
    int x;
    int a;
    int b;
    float ns;
};

static struct kp_dataset *make_data(const struct row *rows, size_t n)
{
    static const char *const fields[] = {"x"};
    static const char *const targets[] = {"A", "B"};
    struct kp_dataset_builder *b;
    struct kp_dataset *d = NULL;
    kopt_error err;
    assert_int_equal(kp_dataset_begin("k", fields, 1, targets, 2, NULL, &b, &err), KOPT_OK);
    for (size_t i = 0; i < n; i++) {
        const struct kp_value problem[] = {kp_int(rows[i].x)};
        const struct kp_value config[] = {kp_int(rows[i].a), kp_int(rows[i].b)};
        assert_int_equal(kp_dataset_add(b, problem, config, NULL, rows[i].ns, &err), KOPT_OK);
    }
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    return d;
}

/* Values are 1, 2, .. so that "12" is A=1, B=2. */
static void expect(const struct kp_dataset *d, const struct kp_prediction *p,
                   const char *const *want, size_t n)
{
    assert_int_equal(p->n, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *c = p->configs + i * 2;
        const char got[] = {(char)('0' + d->targets[0].values[c[0]].as.i),
                            (char)('0' + d->targets[1].values[c[1]].as.i), '\0'};
        assert_string_equal(got, want[i]);
    }
}

struct made {
    struct kp_dataset *d;
    struct kp_encoder *enc;
    struct kp_baseline *b;
};

static struct made make_baseline(const struct row *rows, size_t n, const unsigned char *use)
{
    kopt_error err;
    struct made m = {.d = make_data(rows, n)};
    assert_int_equal(kp_encoder_new(m.d, use, &m.enc, &err), KOPT_OK);
    assert_int_equal(kp_baseline_new(m.d, use, m.enc, &m.b, &err), KOPT_OK);
    return m;
}

static void drop(struct made *m)
{
    kp_baseline_free(m->b);
    kp_encoder_free(m->enc);
    kp_dataset_free(m->d);
}

static const struct row rows[] = {
    {1, 1, 1, 9},        {1, 2, 2, 5},                        /* truth 22 */
    {2, 2, 2, 5},                                             /* 22 */
    {3, 1, 1, NAN},      {4, 1, 1, NAN}, {4, 3, 3, INFINITY}, /* 11, 11 */
    {5, 1, 2, 7},                                             /* 12 */
    {6, 2, 1, INFINITY},                                      /* all failed: none */
    {100, 3, 3, 1},                                           /* 33 */
    {7, 1, 2, 4},                                             /* not for training */
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), N_PROBLEMS = 8 };
/* Problems in the order in which they came: 1, 2, 3, 4, 5, 6, 100, 7. */
static const unsigned char use[N_PROBLEMS] = {1, 1, 1, 1, 1, 1, 1, 0};

static void the_majority_is_in_order_of_frequency(void **state)
{
    struct made m = make_baseline(rows, N_ROWS, use);
    struct kp_prediction p;
    kopt_error err;
    (void)state;
    /* Of equally frequent ones that of the earlier problem first. */
    static const char *const for_7[] = {"22", "11", "12", "33"};
    assert_int_equal(kp_baseline_majority(m.b, 7, 9, &p, &err), KOPT_OK);
    expect(m.d, &p, for_7, 4);
    assert_true(fabs(exp(p.logp[0]) - 2.0 / 6) < 1e-12);
    kp_prediction_deinit(&p);
    assert_int_equal(kp_baseline_majority(m.b, 7, 2, &p, &err), KOPT_OK);
    expect(m.d, &p, for_7, 2);
    kp_prediction_deinit(&p);
    /* Problem 1 does not know of itself. */
    static const char *const for_1[] = {"11", "22", "12", "33"};
    assert_int_equal(kp_baseline_majority(m.b, 0, 9, &p, &err), KOPT_OK);
    expect(m.d, &p, for_1, 4);
    assert_true(fabs(exp(p.logp[1]) - 1.0 / 5) < 1e-12);
    kp_prediction_deinit(&p);
    /* Of problem 100's configuration nothing is left. */
    assert_int_equal(kp_baseline_majority(m.b, 6, 9, &p, &err), KOPT_OK);
    expect(m.d, &p, for_7, 3);
    kp_prediction_deinit(&p);
    /* Where only one is wanted, the own one must not push it out of the answer. */
    assert_int_equal(kp_baseline_majority(m.b, 0, 1, &p, &err), KOPT_OK);
    expect(m.d, &p, for_1, 1);
    kp_prediction_deinit(&p);
    drop(&m);
}

static void the_nearest_vote_by_their_rank(void **state)
{
    struct made m = make_baseline(rows, N_ROWS, use);
    struct kp_prediction p;
    kopt_error err;
    (void)state;
    /* All six vote: where `x` is 100 the order of the others by distance is not what the test
     * is about, but all of their configurations are there and 33, its own, is not. */
    assert_int_equal(kp_baseline_neighbours(m.b, 6, 50, &p, &err), KOPT_OK);
    assert_int_equal(p.n, 3);
    double sum = 0;
    for (size_t i = 0; i < p.n; i++) {
        sum += exp(p.logp[i]);
        assert_true(i == 0 || p.logp[i] <= p.logp[i - 1]);
    }
    assert_true(fabs(sum - 1) < 1e-12);
    kp_prediction_deinit(&p);
    drop(&m);
}

/* x = 1 .. 40 with configurations by the half; the 15 nearest of one end are of its half, those
 * behind come after them in order of distance. */
static void who_is_far_comes_last(void **state)
{
    struct row many[40];
    unsigned char all[40];
    struct kp_prediction p;
    kopt_error err;
    (void)state;
    for (int i = 0; i < 40; i++) {
        /* Alike in their last bits, so that their size alone tells them apart. */
        many[i] = (struct row){1 + 65536 * i, 1 + (i >= 20), 1 + i % 4, NAN};
        all[i] = 1;
    }
    struct made m = make_baseline(many, 40, all);
    assert_int_equal(kp_baseline_neighbours(m.b, 39, 50, &p, &err), KOPT_OK);
    assert_int_equal(p.n, 8);
    for (size_t i = 0; i < p.n; i++)
        assert_int_equal(p.configs[i * 2], i < 4 ? 1 : 0); /* A = 2 first */
    assert_true(exp(p.logp[0]) > 0 && p.logp[7] == -(double)INFINITY);
    kp_prediction_deinit(&p);
    drop(&m);
}

static void failures_of_memory_are_errors(void **state)
{
    struct kp_dataset *d = make_data(rows, N_ROWS);
    struct kp_encoder *enc;
    struct kp_baseline *b = NULL;
    struct kp_prediction p;
    kopt_error err;
    (void)state;
    assert_int_equal(kp_encoder_new(d, use, &enc, &err), KOPT_OK);
    kopt_status st = KOPT_ENOMEM;
    for (long at = 1; st != KOPT_OK; at++) {
        kp_alloc_fail_at(at);
        st = kp_baseline_new(d, use, enc, &b, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || (st == KOPT_ENOMEM && !b));
    }
    st = KOPT_ENOMEM;
    for (long at = 1; st != KOPT_OK; at++) {
        kp_alloc_fail_at(at);
        st = kp_baseline_neighbours(b, 0, 3, &p, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || (st == KOPT_ENOMEM && !p.configs));
    }
    kp_prediction_deinit(&p);
    kp_baseline_free(b);
    static const unsigned char nobody[N_PROBLEMS] = {0};
    assert_int_equal(kp_baseline_new(d, nobody, enc, &b, &err), KOPT_EINPUT);
    assert_null(b);
    kp_encoder_free(enc);
    kp_dataset_free(d);
}

/* --- judging ------------------------------------------------------------------------------ */

/* Answers 22, 11, 12 for every problem but that of x = 2, for which it has none. */
static kopt_status say(const void *user, size_t problem, size_t k, struct kp_prediction *out,
                       kopt_error *err)
{
    static const uint32_t configs[] = {1, 1, 0, 0, 0, 1};
    (void)user;
    *out = (struct kp_prediction){0};
    if (problem == 1)
        return kp_err(err, KOPT_ENOTFOUND, "nothing");
    out->n = k < 3 ? k : 3;
    out->configs = kp_calloc(6, sizeof(*out->configs));
    out->logp = kp_calloc(3, sizeof(*out->logp));
    assert_true(out->configs && out->logp);
    memcpy(out->configs, configs, sizeof(configs));
    return KOPT_OK;
}

static void near(double got, double want)
{
    if (fabs(got - want) > 1e-12)
        print_message("%.17g, not %.17g\n", got, want);
    assert_true(fabs(got - want) <= 1e-12);
}

static void judgements_are_counts_over_problems(void **state)
{
    struct kp_dataset *d = make_data(rows, N_ROWS);
    static const unsigned char all[N_PROBLEMS] = {0};
    struct kp_judge_options o = {.roles = all, .threads = 2};
    const struct kp_judged who = {.predict = say, .targets = d->targets, .n_targets = 2};
    struct kp_judgement j;
    kopt_error err;
    (void)state;
    /* That of x = 6 failed altogether: seven count. Truths: 22 22 11 11 12 33 12. */
    assert_int_equal(kp_judge_any(&who, d, &o, &j, &err), KOPT_OK);
    assert_int_equal(j.n, 7);
    assert_int_equal(j.n_answered, 6);
    near(j.exact[0], 1.0 / 7);
    near(j.exact[1], 5.0 / 7);
    near(j.exact[3], 5.0 / 7);
    /* 22 against 22, 11, 11, 12, 33, 12: 2 + 0 + 0 + 1 + 0 + 1 of 14. */
    near(j.free_running, 4.0 / 14);
    assert_true(isnan(j.forced) && isnan(j.valid) && isnan(j.canonical[0]));
    /* Times: x = 1, 2, 5, 100, 7. By the first: 22 on x = 1 alone; of five, x = 5 and 7, too.
     */
    assert_int_equal(j.n_timed, 5);
    near(j.kept_mean[0], 1.0 / 5);
    near(j.kept_mean[1], 1.0 / 5);
    near(j.kept_mean[2], 3.0 / 5);
    near(j.kept_p5[2], 0);
    near(j.kept_geometric[2], 0);
    o.role = 1;
    assert_int_equal(kp_judge_any(&who, d, &o, &j, &err), KOPT_EINPUT);
    kp_dataset_free(d);
}

static void a_failure_known_and_nothing_known_differ(void **state)
{
    static const struct row some[] = {{1, 1, 1, INFINITY}, {1, 1, 2, NAN}, {1, 2, 1, 8},
                                      {1, 2, 2, 6},        {2, 1, 1, NAN}, {2, 2, 2, INFINITY}};
    struct kp_dataset *d = make_data(some, 6);
    size_t first[3];
    (void)state;
    kp_judge_rows(d, first);
    assert_int_equal(first[1], 4);
    assert_int_equal(first[2], 6);
    assert_int_equal(kp_judge_truth(d, 0, 4), 3); /* the fastest */
    assert_int_equal(kp_judge_truth(d, 0, 2), 1); /* not measured rather than failed */
    assert_int_equal(kp_judge_truth(d, 4, 6), 4);
    kp_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_majority_is_in_order_of_frequency),
        cmocka_unit_test(the_nearest_vote_by_their_rank),
        cmocka_unit_test(who_is_far_comes_last),
        cmocka_unit_test(failures_of_memory_are_errors),
        cmocka_unit_test(judgements_are_counts_over_problems),
        cmocka_unit_test(a_failure_known_and_nothing_known_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
