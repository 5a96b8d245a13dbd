/* SPDX-License-Identifier: MIT */
#include "replay/run.h"

#include "base/alloc.h"
#include "recorded.h"
#include "search/search.h"

enum { STEPS_MAX = 512 };

struct log {
    struct kp_run_step steps[STEPS_MAX];
    size_t n;
    size_t stop_at; /* 0 = never */
};

static bool note(void *user, const struct kp_run_step *s)
{
    struct log *l = user;
    assert_true(l->n < STEPS_MAX);
    assert_int_equal(s->n, l->n + 1);
    l->steps[l->n++] = *s;
    return l->n != l->stop_at;
}

static struct kp_run_plan plan_for(const char *strategy)
{
    return (struct kp_run_plan){.strategy = strategy,
                                .seed = 1,
                                .max_evaluations = STEPS_MAX,
                                .max_ns = (double)INFINITY,
                                .window = 1,
                                .compilers = 1};
}

static struct kp_run_end run(const struct kp_recording *r, const struct kp_run_plan *p,
                             struct log *l)
{
    struct kp_run_end end;
    kopt_error err = {0};
    memset(l, 0, sizeof(*l));
    assert_int_equal(kp_run(r, p, note, l, &end, &err), KOPT_OK);
    assert_int_equal(end.n, l->n);
    return end;
}

static void every_strategy_sees_every_configuration_once(void **state)
{
    (void)state;
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct kp_recording *r = recorded_grid("bowl", 12, 9, recorded_bowl);
    for (size_t i = 0; i < n; i++) {
        struct log l;
        struct kp_run_plan p = plan_for(list[i].name);
        struct kp_run_end end = run(r, &p, &l);
        unsigned char seen[108] = {0};
        assert_int_equal(end.n, 108);
        assert_int_equal(end.ended, KOPT_END_EXHAUSTED);
        assert_string_equal(end.strategy, list[i].name);
        for (size_t k = 0; k < l.n; k++) {
            assert_int_equal(seen[l.steps[k].rank]++, 0);
            assert_true(l.steps[k].time_ns == r->time_ns[l.steps[k].rank]);
        }
        assert_true(l.steps[107].best_ns == 100);
    }
    kp_recording_close(r);
}

static void one_at_a_time_costs_add_up(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("bowl", 12, 9, recorded_bowl);
    struct log l;
    struct kp_run_plan p = plan_for("random");
    double clock = 0;
    p.max_evaluations = 40;
    struct kp_run_end end = run(r, &p, &l);
    assert_int_equal(end.ended, KOPT_END_BUDGET);
    for (size_t k = 0; k < l.n; k++) {
        clock += isfinite(l.steps[k].time_ns) ? 1500 : 1000;
        assert_true(l.steps[k].clock_ns == clock); /* whole numbers */
    }
    assert_true(end.clock_ns == clock);
    kp_recording_close(r);
}

/* Each of the 100 costs 3 to compile and 2 to measure. With two compilers or more the device
 * never waits after the first: 3 + 100 * 2. One that works ahead is what the device waits for:
 * 100 * 3 + 2. */
static void compilers_work_ahead_of_the_device(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct log l;
    struct kp_run_plan p = plan_for("random");
    p.compilers = 100;
    p.window = 100;
    assert_true(run(r, &p, &l).clock_ns == 203);
    p.compilers = 2;
    p.window = 50;
    assert_true(run(r, &p, &l).clock_ns == 203);
    p.compilers = 1;
    assert_true(run(r, &p, &l).clock_ns == 302);
    p.window = 1;
    assert_true(run(r, &p, &l).clock_ns == 500);
    kp_recording_close(r);
}

static void budgets_of_time_and_number_end_it(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct log l;
    struct kp_run_plan p = plan_for("random");
    for (uint64_t n = 1; n <= 100; n++) {
        p.max_evaluations = n;
        struct kp_run_end end = run(r, &p, &l);
        assert_int_equal(end.n, n);
        assert_int_equal(end.ended, n < 100 ? KOPT_END_BUDGET : KOPT_END_EXHAUSTED);
    }
    p.max_evaluations = STEPS_MAX;
    p.max_ns = 26; /* what begins at 25 is ended: six evaluations of 5 */
    struct kp_run_end end = run(r, &p, &l);
    assert_int_equal(end.n, 6);
    assert_int_equal(end.ended, KOPT_END_BUDGET);
    kp_recording_close(r);
}

static void the_caller_may_stop_it(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 100, 1, recorded_line);
    struct log l = {.stop_at = 7};
    struct kp_run_plan p = plan_for("random");
    struct kp_run_end end;
    p.window = 4;
    p.compilers = 4;
    assert_int_equal(kp_run(r, &p, note, &l, &end, NULL), KOPT_OK);
    assert_int_equal(end.n, 7);
    assert_int_equal(end.ended, KOPT_END_STOPPED);
    kp_recording_close(r);
}

static void a_seed_gives_the_same_run(void **state)
{
    (void)state;
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct kp_recording *r = recorded_grid("bowl", 12, 9, recorded_bowl);
    for (size_t i = 0; i < n; i++) {
        struct log a;
        struct log b;
        struct kp_run_plan p = plan_for(list[i].name);
        p.window = 5;
        p.compilers = 3;
        p.max_evaluations = 60;
        (void)run(r, &p, &a);
        (void)run(r, &p, &b);
        for (size_t k = 0; k < 60; k++) {
            assert_int_equal(a.steps[k].rank, b.steps[k].rank);
            assert_true(a.steps[k].clock_ns == b.steps[k].clock_ns);
        }
    }
    kp_recording_close(r);
}

/* --- priors --------------------------------------------------------------------------------
 */

/* The bowl with its best at (6, 3), failing where x is 0. */
static struct recorded_cell other_bowl(int64_t x, int64_t y)
{
    double dx = (double)(x - 6);
    double dy = (double)(y - 3);
    if (x == 0)
        return (struct recorded_cell){0, 10, 0};
    return (struct recorded_cell){50 + 5 * dx * dx + 2 * dy * dy, 10, 5};
}

static void results_of_another_recording_are_a_prior(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("bowl", 12, 9, recorded_bowl);
    struct kp_recording *from = recorded_grid("other", 9, 20, other_bowl);
    const struct kp_recording *list[] = {from};
    struct kp_prior prior;
    kopt_error err = {0};
    uint64_t rank = 0;
    assert_int_equal(kp_run_prior(r, list, 1, 5, &prior, &err), KOPT_OK);
    assert_int_equal(prior.n, 9 * 9); /* what both have */
    assert_int_equal(prior.n_first, 5);
    assert_false(kp_recording_same(r, from));
    assert_true(kp_recording_same(r, r));
    assert_true(prior.measured);
    const uint32_t best[2] = {6, 3};
    assert_true(kp_space_rank(r->space, best, &rank));
    assert_int_equal(prior.ranks[0], rank);
    assert_true(prior.logp[0] == 0);
    for (size_t i = 1; i < prior.n; i++)
        assert_true(prior.logp[i] <= prior.logp[i - 1]);
    assert_true(isinf(prior.logp[prior.n - 1])); /* x = 0 failed there */
    struct log l;
    struct kp_run_plan p = plan_for("random");
    p.prior = &prior;
    (void)run(r, &p, &l);
    for (size_t k = 0; k < 5; k++)
        assert_int_equal(l.steps[k].rank, prior.ranks[k]);
    kp_prior_deinit(&prior);
    /* What failed there is not asked first, however many are wanted. */
    assert_int_equal(kp_run_prior(r, list, 1, 1000, &prior, &err), KOPT_OK);
    assert_int_equal(prior.n_first, 8 * 9);
    kp_prior_deinit(&prior);
    kp_recording_close(from);
    kp_recording_close(r);
}

static struct recorded_cell falling(int64_t x, int64_t y)
{
    (void)y;
    return (struct recorded_cell){400 / (double)(1 + x), 1, 1};
}

static struct recorded_cell rising(int64_t x, int64_t y)
{
    (void)y;
    return (struct recorded_cell){7 * (double)(1 + x), 1, 1};
}

/* Of two that contradict each other every configuration is as good as any: the ratios to the
 * best are 8 / (1 + x) and 1 + x, their product the same everywhere. */
static void several_recordings_are_weighed_by_their_ratios(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 8, 1, recorded_line);
    struct kp_recording *a = recorded_grid("a", 8, 1, falling);
    struct kp_recording *b = recorded_grid("b", 8, 1, rising);
    const struct kp_recording *list[] = {a, b};
    struct kp_prior prior;
    assert_int_equal(kp_run_prior(r, list, 2, 8, &prior, NULL), KOPT_OK);
    assert_int_equal(prior.n, 8);
    for (size_t i = 0; i < 8; i++)
        assert_true(fabs(prior.logp[i]) < 1e-12); /* sums of two logarithms */
    kp_prior_deinit(&prior);
    kp_recording_close(a);
    kp_recording_close(b);
    kp_recording_close(r);
}

static void bad_plans_are_refused(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("line", 8, 1, recorded_line);
    struct log l = {.n = 0};
    struct kp_run_end end;
    kopt_error err = {0};
    struct kp_run_plan p = plan_for("no such strategy");
    assert_int_equal(kp_run(r, &p, note, &l, &end, &err), KOPT_EUSAGE);
    p = plan_for("random");
    p.window = 0;
    assert_int_equal(kp_run(r, &p, note, &l, &end, &err), KOPT_EUSAGE);
    p.window = 257;
    assert_int_equal(kp_run(r, &p, note, &l, &end, &err), KOPT_EUSAGE);
    p.window = 1;
    p.compilers = 0;
    assert_int_equal(kp_run(r, &p, note, &l, &end, &err), KOPT_EUSAGE);
    kp_recording_close(r);
}

static void without_memory_it_ends_cleanly(void **state)
{
    (void)state;
    struct kp_recording *r = recorded_grid("bowl", 12, 9, recorded_bowl);
    struct kp_run_plan p = plan_for(NULL);
    p.max_evaluations = 30;
    kopt_status st = KOPT_ENOMEM;
    for (long at = 1; st == KOPT_ENOMEM; at++) {
        struct log l = {.n = 0};
        struct kp_run_end end;
        kopt_error err = {0};
        assert_true(at < 2000);
        kp_alloc_fail_at(at);
        st = kp_run(r, &p, note, &l, &end, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
    }
    kp_recording_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_sees_every_configuration_once),
        cmocka_unit_test(one_at_a_time_costs_add_up),
        cmocka_unit_test(compilers_work_ahead_of_the_device),
        cmocka_unit_test(budgets_of_time_and_number_end_it),
        cmocka_unit_test(the_caller_may_stop_it),
        cmocka_unit_test(a_seed_gives_the_same_run),
        cmocka_unit_test(results_of_another_recording_are_a_prior),
        cmocka_unit_test(several_recordings_are_weighed_by_their_ratios),
        cmocka_unit_test(bad_plans_are_refused),
        cmocka_unit_test(without_memory_it_ends_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
