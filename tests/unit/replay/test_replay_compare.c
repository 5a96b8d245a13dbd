/* SPDX-License-Identifier: MIT */
#include "replay/compare.h"

#include "base/alloc.h"
#include "recorded.h"

static const kopt_recording *handle(const struct kp_recording *r)
{
    return (const kopt_recording *)(const void *)r;
}

static const kopt_traces *traces_handle(const struct kp_traces *t)
{
    return (const kopt_traces *)(const void *)t;
}

static kopt_compare_options options(void)
{
    return (kopt_compare_options){.struct_bytes = sizeof(kopt_compare_options), .repeats = 8};
}

static struct recorded_cell wide_bowl(int64_t x, int64_t y)
{
    double dx = (double)(x - 21);
    double dy = (double)(y - 9);
    return (struct recorded_cell){100 + 2 * dx * dx + dy * dy, 1000, 500};
}

static void the_default_is_better_than_random_on_a_bowl(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("wide", 40, 30, wide_bowl);
    const kopt_recording *spaces[] = {handle(r)};
    kopt_compare_options o = options();
    kopt_compare_report *report = NULL;
    kopt_error err = {0};
    o.spaces = spaces;
    o.n_spaces = 1;
    o.budget = 3; /* 105 evaluations of 1,200 */
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_OK);
    assert_int_equal(report->n_methods, 2);
    assert_int_equal(report->budget[0], 105);
    assert_string_equal(report->methods[1], "random");
    const kopt_compare_cell *best = &report->cells[0];
    const kopt_compare_cell *random = &report->cells[1];
    assert_int_equal(best->runs, 8);
    /* Three configurations are within 1 %: random search finds one of them in 105 evaluations
     * with a probability of 0.24. */
    assert_true(best->hits == 1);
    assert_true(random->hits < 1);
    assert_true(best->score > random->score);
    assert_true(best->score <= 1);
    assert_true(best->gap < random->gap / 2);
    assert_true(best->near < random->near);
    assert_true(report->total[0].score == best->score);
    for (size_t p = 1; p < KOPT_CURVE_POINTS; p++) {
        const kopt_curve *c = &report->by_evaluations[0];
        assert_true(c->low[p] <= c->median[p] && c->median[p] <= c->high[p]);
        assert_true(c->mean[p] <= c->mean[p - 1]);
    }
    kp_compare_free(report);
    kp_recording_close(r);
}

static void the_figures_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    struct kp_recording *a = recorded_grid("bowl", 30, 20, recorded_bowl);
    struct kp_recording *b = recorded_grid("line", 100, 1, recorded_line);
    const kopt_recording *spaces[] = {handle(a), handle(b)};
    const char *methods[] = {"bayes", "random", "genetic+prior"};
    kopt_compare_report *one = NULL;
    kopt_compare_report *four = NULL;
    kopt_compare_options o = options();
    o.spaces = spaces;
    o.n_spaces = 2;
    o.methods = methods;
    o.n_methods = 3;
    o.threads = 1;
    assert_int_equal(kp_compare(&o, &one, NULL), KOPT_OK);
    o.threads = 4;
    assert_int_equal(kp_compare(&o, &four, NULL), KOPT_OK);
    for (size_t i = 0; i < 6; i++) {
        assert_true(one->cells[i].score == four->cells[i].score);
        assert_true(one->cells[i].time_score == four->cells[i].time_score);
        assert_true(one->cells[i].gap == four->cells[i].gap);
        assert_true(one->cells[i].near == four->cells[i].near);
    }
    assert_true(one->cells[4].prior > 0); /* each is the other's: the same kernel */
    assert_int_equal(one->cells[0].prior, 0);
    kp_compare_free(one);
    kp_compare_free(four);
    kp_recording_close(a);
    kp_recording_close(b);
}

/* The perfect run, and one that never finds anything. */
static void traces_of_others_are_judged_beside_ours(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    double perfect[] = {100};
    double failed[] = {(double)INFINITY, (double)INFINITY};
    double costs[] = {1e-9, 1e-9};
    struct kp_trace items[] = {{"line", "other", perfect, NULL, 1},
                               {"line", "other", perfect, NULL, 1},
                               {"line", "worse", failed, costs, 2}};
    struct kp_traces traces = {.items = items, .n = 3};
    const kopt_recording *spaces[] = {handle(r)};
    const kopt_traces *lists[] = {traces_handle(&traces)};
    const char *methods[] = {"random"};
    kopt_compare_options o = options();
    kopt_compare_report *report = NULL;
    kopt_error err = {0};
    o.spaces = spaces;
    o.n_spaces = 1;
    o.methods = methods;
    o.n_methods = 1;
    o.traces = lists;
    o.n_traces = 1;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_OK);
    assert_int_equal(report->n_methods, 3);
    assert_string_equal(report->methods[1], "other");
    assert_string_equal(report->methods[2], "worse");
    assert_int_equal(report->foreign[0], 0);
    assert_int_equal(report->foreign[1], 1);
    assert_int_equal(report->cells[1].runs, 2);
    assert_int_equal(report->cells[2].runs, 1);
    assert_true(fabs(report->cells[1].score - 1) < 1e-6); /* kept as a float */
    assert_true(report->cells[1].hits == 1);
    assert_true(report->cells[2].hits == 0);
    assert_true(report->cells[2].score < 0);
    assert_true(isnan(report->cells[1].search_s));
    kp_compare_free(report);
    items[2].method = "random"; /* ours: their figures would be one */
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "random"));
    items[2].method = "worse";
    items[2].space = "elsewhere";
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "elsewhere"));
    kp_recording_close(r);
}

static void until_says_where_runs_would_have_stopped(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("wide", 40, 30, wide_bowl);
    const kopt_recording *spaces[] = {handle(r)};
    const char *methods[] = {"bayes"};
    kopt_compare_options o = options();
    kopt_compare_report *report = NULL;
    o.spaces = spaces;
    o.n_spaces = 1;
    o.methods = methods;
    o.n_methods = 1;
    o.until = 0.9;
    o.budget = 4;
    assert_int_equal(kp_compare(&o, &report, NULL), KOPT_OK);
    uint64_t n = 0;
    for (size_t b = 0; b < KOPT_CALIBRATION_BINS; b++)
        n += report->calibration[0].n[b];
    assert_true(n > 0);
    assert_true(report->cells[0].stop.stopped > 0);
    assert_true(report->cells[0].stop.evaluations < (double)report->budget[0]);
    assert_true(report->cells[0].evaluations == (double)report->budget[0]); /* it went on */
    kp_compare_free(report);
    kp_recording_close(r);
}

static int stop_soon(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    *(uint64_t *)user = done;
    return 0;
}

static void the_caller_may_stop_it(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("wide", 40, 30, wide_bowl);
    const kopt_recording *spaces[] = {handle(r)};
    kopt_compare_options o = options();
    kopt_compare_report *report = NULL;
    uint64_t done = 0;
    o.spaces = spaces;
    o.n_spaces = 1;
    o.repeats = 100000;
    o.progress = stop_soon;
    o.user = &done;
    assert_int_equal(kp_compare(&o, &report, NULL), KOPT_OK);
    assert_int_equal(report->stopped, 1);
    assert_true(report->cells[0].runs < 100000);
    kp_compare_free(report);
    kp_recording_close(r);
}

static struct recorded_cell one_success(int64_t x, int64_t y)
{
    return (struct recorded_cell){x == 0 && y == 0 ? 5 : 0, 1, 1};
}

static void what_cannot_be_compared_is_refused(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct kp_recording *poor = recorded_grid("poor", 3, 3, one_success);
    const kopt_recording *same[] = {handle(r), handle(r)};
    const kopt_recording *failing[] = {handle(poor)};
    const char *unknown[] = {"no such"};
    const char *twice[] = {"random", "random"};
    kopt_compare_report *report = NULL;
    kopt_error err = {0};
    kopt_compare_options o = options();
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE); /* no spaces */
    o.spaces = failing;
    o.n_spaces = 1;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    o.spaces = same;
    o.n_spaces = 2;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    o.n_spaces = 1;
    o.n_methods = 1;
    o.methods = unknown;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.hint, "bayes"));
    o.n_methods = 2;
    o.methods = twice;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    o.n_methods = 0;
    o.until = 1;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    o.until = (double)NAN;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    o.until = 0;
    o.repeats = 1U << 30;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_ERANGE);
    o.struct_bytes = 1;
    assert_int_equal(kp_compare(&o, &report, &err), KOPT_EUSAGE);
    assert_null(report);
    kp_recording_close(r);
    kp_recording_close(poor);
}

/* Failures are of this thread alone; the runs' own are tested with kp_run(). */
static void without_memory_it_ends_cleanly(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("bowl", 12, 9, recorded_bowl);
    struct kp_recording *other = recorded_grid("other", 12, 9, recorded_bowl);
    const kopt_recording *spaces[] = {handle(r), handle(other)};
    const char *methods[] = {"random+prior"};
    kopt_compare_options o = options();
    kopt_status st = KOPT_ENOMEM;
    o.spaces = spaces;
    o.n_spaces = 2;
    o.methods = methods;
    o.n_methods = 1;
    o.repeats = 2;
    o.threads = 1;
    for (long at = 1; st == KOPT_ENOMEM; at++) {
        kopt_compare_report *report = NULL;
        kopt_error err = {0};
        assert_true(at < 2000);
        kp_alloc_fail_at(at);
        st = kp_compare(&o, &report, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
        assert_true((report != NULL) == (st == KOPT_OK));
        kp_compare_free(report);
    }
    kp_recording_close(r);
    kp_recording_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_better_than_random_on_a_bowl),
        cmocka_unit_test(the_figures_do_not_depend_on_the_threads),
        cmocka_unit_test(traces_of_others_are_judged_beside_ours),
        cmocka_unit_test(until_says_where_runs_would_have_stopped),
        cmocka_unit_test(the_caller_may_stop_it),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
        cmocka_unit_test(without_memory_it_ends_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
