/* SPDX-License-Identifier: MIT */
/* Results are taken over from the store only where they would be found the same now. */
#include "session/session.h"

#include <math.h>
#include <sched.h>

#define HEAD                             \
    "#pragma kopt kernel k\n"            \
    "#pragma kopt lang opencl\n"         \
    "#pragma kopt param A {0,1,2,3,4}\n" \
    "#pragma kopt default A=0\n"         \
    "#pragma kopt block 16\n"            \
    "#pragma kopt grid 4\n"              \
    "#pragma kopt arg b f32[64] out\n"   \
    "// fake: time 9000\n"               \
    "// fake: add A -500\n"              \
    "kernel void k(global float *b) {}\n"
/* The fake device's own pattern is the right answer. */
#define CHECK "#pragma kopt check b against gen(i % 1021 + 1)\n"

static void start(struct session *s, const char *text, const char *store)
{
    session_init(s, write_kernel("keys.cl", text), store);
}

static void run(struct session *s)
{
    session_run(s);
    if (s->status != KOPT_OK)
        fail_msg("%s", s->err.message);
}

/* --- checks
 * ------------------------------------------------------------------------------------ */

static void a_run_that_checks_takes_nothing_that_was_not_compared(void **state)
{
    (void)state;
    static const char text[] = HEAD CHECK "// fake: when A=4 wrong\n"
                                          "// fake: when A=1 launch_error\n";
    struct session s;
    (void)remove("check.db");
    start(&s, text, "check.db");
    s.o.check = -1;
    run(&s);
    assert_string_equal(s.report.best_text, "A=4");
    assert_false(s.report.checked);
    assert_true(isnan(s.report.best.max_error));
    session_end(&s);
    start(&s, text, "check.db");
    run(&s);
    assert_int_equal(session_measured(&s), 4); /* what failed fails anyway */
    assert_int_equal(session_find(&s, "A=4")->outcome, KOPT_OUT_WRONG);
    assert_string_equal(s.report.best_text, "A=3");
    assert_true(s.report.checked);
    assert_true(s.report.best.race && s.report.best.max_error == 0);
    session_end(&s);
    /* The other way round there is nothing to say against it. */
    start(&s, text, "check.db");
    s.o.check = -1;
    run(&s);
    assert_int_equal(session_measured(&s), 0);
    assert_string_equal(s.report.best_text, "A=3");
    assert_true(s.report.checked);
    session_end(&s);
}

static void without_a_check_line_nothing_is_called_checked(void **state)
{
    (void)state;
    struct session s;
    (void)remove("none.db");
    for (int again = 0; again < 2; again++) {
        start(&s, HEAD, "none.db");
        run(&s);
        assert_int_equal(session_measured(&s), again ? 0 : 5);
        assert_false(s.report.checked);
        session_end(&s);
    }
}

/* --- conditions
 * -------------------------------------------------------------------------------- */

static void another_flush_is_measured_anew(void **state)
{
    (void)state;
    static const struct {
        int flush;
        int64_t bytes;
        size_t measured;
    } runs[] = {{0, 0, 5}, {-1, 0, 5}, {0, 65536, 5}, {0, 0, 0}, {-1, 0, 0}, {0, 65536, 0}};
    (void)remove("flush.db");
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct session s;
        start(&s, HEAD, "flush.db");
        s.o.flush = runs[i].flush;
        s.o.flush_bytes = runs[i].bytes;
        run(&s);
        assert_int_equal(session_measured(&s), runs[i].measured);
        session_end(&s);
    }
}

static void fewer_cores_of_a_cpu_are_another_device(void **state)
{
    (void)state;
    cpu_set_t all;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    if (CPU_COUNT(&all) < 2)
        skip();
    size_t first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    for (int cpu = 0; cpu < 2; cpu++) {
        struct session s;
        (void)remove("cores.db");
        if (cpu)
            assert_int_equal(setenv("KOPT_FAKE_CPU", "1", 1), 0);
        start(&s, HEAD, "cores.db");
        run(&s);
        session_end(&s);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        start(&s, HEAD, "cores.db");
        run(&s);
        assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
        assert_int_equal(session_measured(&s), cpu ? 5 : 0);
        session_end(&s);
    }
    assert_int_equal(unsetenv("KOPT_FAKE_CPU"), 0);
}

/* --- limits
 * ------------------------------------------------------------------------------------ */

static void what_ran_out_of_time_is_tried_again_with_more_of_it(void **state)
{
    (void)state;
    static const char text[] = HEAD "// fake: when A=1 compile_slow 800\n"
                                    "// fake: when A=2 time 700000000\n"
                                    "// fake: when A=2 real 1\n";
    static const struct {
        double limit_s;
        size_t measured;
        kopt_outcome compile;
        kopt_outcome launch;
    } runs[] = {{0.3, 5, KOPT_OUT_COMPILE_TIMEOUT, KOPT_OUT_HANG},
                {0.3, 0, KOPT_OUT_COMPILE_TIMEOUT, KOPT_OUT_HANG},
                {0.2, 0, KOPT_OUT_COMPILE_TIMEOUT, KOPT_OUT_HANG},
                {4, 2, KOPT_OUT_OK, KOPT_OUT_OK},
                {0.3, 0, KOPT_OUT_OK, KOPT_OUT_OK}};
    (void)remove("limits.db");
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct session s;
        start(&s, text, "limits.db");
        s.o.compile_timeout_s = runs[i].limit_s;
        s.o.launch_timeout_s = runs[i].limit_s;
        run(&s);
        if (session_measured(&s) != runs[i].measured)
            fail_msg("run %zu: %zu measured", i, session_measured(&s));
        assert_int_equal(session_find(&s, "A=1")->outcome, runs[i].compile);
        assert_int_equal(session_find(&s, "A=2")->outcome, runs[i].launch);
        session_end(&s);
    }
}

/* Its first launch takes 0.28 s, all others 0.4 s: it had no more than 0.32 s for any. */
static void a_hang_after_launches_that_ended_had_the_time_of_one_launch(void **state)
{
    (void)state;
    static const char text[] = HEAD "// fake: when A=2 time 400000000\n"
                                    "// fake: when A=2 lucky\n"
                                    "// fake: when A=2 real 1\n";
    static const double limits[] = {0.32, 0.55};
    (void)remove("later.db");
    for (size_t i = 0; i < 2; i++) {
        struct session s;
        start(&s, text, "later.db");
        s.o.launch_timeout_s = limits[i];
        run(&s);
        assert_int_equal(session_measured(&s), i ? 1 : 5);
        assert_int_equal(session_find(&s, "A=2")->outcome, i ? KOPT_OUT_OK : KOPT_OUT_HANG);
        session_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_checks_takes_nothing_that_was_not_compared),
        cmocka_unit_test(without_a_check_line_nothing_is_called_checked),
        cmocka_unit_test(another_flush_is_measured_anew),
        cmocka_unit_test(fewer_cores_of_a_cpu_are_another_device),
        cmocka_unit_test(what_ran_out_of_time_is_tried_again_with_more_of_it),
        cmocka_unit_test(a_hang_after_launches_that_ended_had_the_time_of_one_launch),
    };
    return cmocka_run_group_tests_name("session/keys", tests, NULL, NULL);
}
