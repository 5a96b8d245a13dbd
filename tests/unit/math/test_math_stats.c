/* SPDX-License-Identifier: MIT */
#include "math/stats.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "support/test.h"

#include <math.h>

static void the_median_of_odd_and_even_samples(void **state)
{
    (void)state;
    double one[] = {7};
    double odd[] = {9, 1, 5};
    double even[] = {4, 1, 3, 2};
    assert_true(kp_median(one, 1) == 7);
    assert_true(kp_median(odd, 3) == 5);
    assert_true(kp_median(even, 4) == 2.5);
}

static void few_samples_give_their_range(void **state)
{
    (void)state;
    double x[] = {5, 1, 3, 2, 4};
    struct kp_interval r = kp_median_interval(x, 5);
    assert_true(r.median == 3 && r.low == 1 && r.high == 5);
    double one[] = {2};
    r = kp_median_interval(one, 1);
    assert_true(r.median == 2 && r.low == 2 && r.high == 2);
}

/* Ranks from tables of the binomial distribution: the k-th and (n+1-k)-th value. */
static void the_interval_has_the_textbook_ranks(void **state)
{
    (void)state;
    static const size_t known[][2] = {{6, 1},   {8, 1},   {9, 2},    {12, 3},  {20, 6},
                                      {30, 10}, {50, 18}, {100, 40}, {200, 86}};
    double x[200];
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        size_t n = known[k][0];
        for (size_t i = 0; i < n; i++)
            x[i] = (double)(n - i);
        struct kp_interval r = kp_median_interval(x, n);
        assert_true(r.low == (double)known[k][1]);
        assert_true(r.high == (double)(n + 1 - known[k][1]));
    }
}

/* Where the exact sum ends and the approximation begins the ranks must go on smoothly. */
static void large_samples_are_handled(void **state)
{
    (void)state;
    static double x[5000];
    size_t before = 0;
    for (size_t n = 990; n <= 1010; n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (double)(i + 1);
        struct kp_interval r = kp_median_interval(x, n);
        assert_true(before == 0 || fabs(r.low - (double)before) <= 2);
        before = (size_t)r.low;
    }
    for (size_t i = 0; i < 5000; i++)
        x[i] = (double)(i + 1);
    struct kp_interval r = kp_median_interval(x, 5000);
    assert_true(r.low > 2420 && r.low < 2440 && r.high > 2560 && r.high < 2580);
}

/* 2,000 samples of 15 skewed values: the true median is inside in at least 95 % of them; with a
 * true coverage of 96.5 %, fewer than 94.5 % has a chance below one in a million. */
static void the_interval_covers_the_true_median(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 3);
    int inside = 0;
    for (int k = 0; k < 2000; k++) {
        double x[15];
        for (int i = 0; i < 15; i++)
            x[i] = exp(kp_rng_normal(&rng)); /* median 1 */
        struct kp_interval r = kp_median_interval(x, 15);
        inside += r.low <= 1 && 1 <= r.high;
    }
    assert_true(inside >= 1890);
}

static void the_ratio_of_a_sample_with_itself_is_one(void **state)
{
    (void)state;
    double a[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct kp_interval r = kp_ratio_interval(a, a, 8);
    assert_true(r.median == 1 && r.low == 1 && r.high == 1);
}

/* b is a with common drift and 2 % noise, a is 10 % slower. */
static void the_ratio_is_inside_its_interval(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 5);
    double a[40];
    double b[40];
    for (int i = 0; i < 40; i++) {
        b[i] = 100 * (1 + 0.02 * kp_rng_f64(&rng));
        a[i] = 110 * (1 + 0.02 * kp_rng_f64(&rng));
    }
    struct kp_interval r = kp_ratio_interval(a, b, 40);
    assert_true(r.low <= 1.1 && 1.1 <= r.high);
    assert_true(r.low > 1.08 && r.high < 1.12); /* noise of 2 % in each bounds it */
    assert_true(r.low <= r.median && r.median <= r.high);
    struct kp_interval again = kp_ratio_interval(a, b, 40);
    assert_true(again.low == r.low && again.high == r.high);
}

static void unusable_pairs_are_left_out(void **state)
{
    (void)state;
    double a[] = {2, (double)NAN, 2, (double)INFINITY, 2};
    double b[] = {1, 1, 1, 1, 0};
    struct kp_interval r = kp_ratio_interval(a, b, 5);
    assert_true(r.median == 2 && r.low == 2 && r.high == 2);
    r = kp_ratio_interval(a + 1, b, 1);
    assert_true(isnan(r.median) && isnan(r.low) && isnan(r.high));
    r = kp_ratio_interval(a, b, 0);
    assert_true(isnan(r.median));
}

static void no_memory_gives_no_ratio(void **state)
{
    (void)state;
    double a[] = {1, 2, 3};
    kp_alloc_fail_at(1);
    struct kp_interval r = kp_ratio_interval(a, a, 3);
    kp_alloc_fail_at(0);
    assert_true(isnan(r.median) && isnan(r.low) && isnan(r.high));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_of_odd_and_even_samples),
        cmocka_unit_test(few_samples_give_their_range),
        cmocka_unit_test(the_interval_has_the_textbook_ranks),
        cmocka_unit_test(large_samples_are_handled),
        cmocka_unit_test(the_interval_covers_the_true_median),
        cmocka_unit_test(the_ratio_of_a_sample_with_itself_is_one),
        cmocka_unit_test(the_ratio_is_inside_its_interval),
        cmocka_unit_test(unusable_pairs_are_left_out),
        cmocka_unit_test(no_memory_gives_no_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
