/* SPDX-License-Identifier: MIT */
#include "replay/score.h"

#include "recorded.h"

/* Sums of some hundred terms of order one. */
static const double rounding = 1e-9;

/* 100 .. 199 sorted from worst: random search after m is number round(101 m / (m + 1)), from 0.
 */
static void random_search_follows_the_closed_form(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    assert_int_equal(r->n_ok, 100);
    assert_true(kp_recording_random(r, 1) == 199 - 51); /* 50.5 rounds away from zero */
    assert_true(kp_recording_random(r, 9) == 199 - 91); /* 90.9 */
    assert_true(kp_recording_random(r, 99) == 100);     /* 99.99 */
    assert_true(kp_recording_random(r, 1e9) == 100);
    assert_true(kp_recording_random(r, 0) == 199);
    kp_recording_close(r);
}

/* The median is 149.5, the cut-off 100 + 0.05 * 49.5 = 102.475: 97 are worse, three are not, so
 * that ceil(97 / (101 - 97)) = 25 evaluations are the budget. */
static void the_budget_is_that_of_the_cutoff(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct kp_score s;
    kp_score_begin(&s, r, 1);
    assert_true(fabs(r->info.median_ns - 149.5) < rounding);
    assert_true(fabs(r->info.cutoff_ns - 102.475) < rounding);
    assert_int_equal(s.budget, 25);
    assert_true(fabs(s.budget_ns - 25 * 5) < rounding);
    kp_score_begin(&s, r, 2);
    assert_int_equal(s.budget, 50);
    kp_recording_close(r);
}

static double run(const struct kp_recording *r, const double *times, size_t n, double cost,
                  struct kp_score *s)
{
    kp_score_begin(s, r, 1);
    for (size_t i = 0; i < n; i++)
        kp_score_add(s, times[i], cost * (double)(i + 1));
    kp_score_end(s);
    return kp_score_mean(s);
}

static void the_optimum_at_once_scores_one_and_random_search_nothing(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct kp_score s;
    double best = 100;
    assert_true(fabs(run(r, &best, 1, 5, &s) - 1) < rounding);
    assert_int_equal(s.near, 1);
    double times[25];
    for (size_t i = 0; i < 25; i++)
        times[i] = kp_recording_random(r, (double)(i + 1));
    assert_true(fabs(run(r, times, 25, 5, &s)) < rounding);
    kp_recording_close(r);
}

/* Until something is found, and for ever if nothing is, a run stands at the median. */
static void a_run_without_success_stands_at_the_median(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct kp_score s;
    double want = 0;
    for (size_t m = 1; m <= 25; m++) {
        double random = kp_recording_random(r, (double)m);
        want += (random - 149.5) / (random - 100) / 25;
    }
    double failures[25];
    for (size_t i = 0; i < 25; i++)
        failures[i] = (double)INFINITY;
    assert_true(fabs(run(r, failures, 25, 5, &s) - want) < rounding);
    assert_true(fabs(run(r, failures, 0, 5, &s) - want) < rounding);
    assert_true(fabs((double)s.by_evaluations[KOPT_CURVE_POINTS - 1] - 0.495) < 1e-6);
    assert_int_equal(s.near, 0);
    kp_recording_close(r);
}

/* Found by the 10th of 25 evaluations, which is the 40th of 100 points of either budget. */
static void the_curves_step_where_it_was_found(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct kp_score s;
    double times[10] = {150, 150, 150, 150, 150, 150, 150, 150, 150, 100};
    (void)run(r, times, 10, 5, &s);
    for (size_t p = 0; p < KOPT_CURVE_POINTS; p++) {
        /* by evaluations: point p holds at ceil((p + 1) / 4), the 10th from p = 36 on */
        assert_true((s.by_evaluations[p] == 0) == (p >= 36));
        /* by time: its result came at 50 of 125, that is at point 39, counted from 0 */
        assert_true((s.by_time[p] == 0) == (p >= 39));
    }
    kp_recording_close(r);
}

/* Cheap evaluations gain by time what they cannot by number. */
static void time_counts_by_the_clock(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct kp_score slow;
    struct kp_score fast;
    double times[10] = {150, 150, 150, 150, 150, 150, 150, 150, 150, 100};
    double a = run(r, times, 10, 5, &slow);
    double b = run(r, times, 10, 1, &fast);
    assert_true(a == b);
    assert_true(kp_score_time_mean(&fast) > kp_score_time_mean(&slow));
    kp_recording_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_search_follows_the_closed_form),
        cmocka_unit_test(the_budget_is_that_of_the_cutoff),
        cmocka_unit_test(the_optimum_at_once_scores_one_and_random_search_nothing),
        cmocka_unit_test(a_run_without_success_stands_at_the_median),
        cmocka_unit_test(the_curves_step_where_it_was_found),
        cmocka_unit_test(time_counts_by_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
