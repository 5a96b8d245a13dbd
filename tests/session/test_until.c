/* SPDX-License-Identifier: MIT */
/* Sessions that stop when little is expected to remain. */
#include "session/session.h"

#include <math.h>

#define HEAD                            \
    "#pragma kopt kernel k\n"           \
    "#pragma kopt lang opencl\n"        \
    "#pragma kopt problem N=64\n"       \
    "#pragma kopt block 16\n"           \
    "#pragma kopt grid ceildiv(N,16)\n" \
    "#pragma kopt arg b f32[N] out\n"
#define TAIL "kernel void k(global float *b) {}\n"

/* 1,000 configurations, times from 9,000 ns to 14,400 ns. */
static const char slope[] = HEAD "#pragma kopt param A {0..9}\n"
                                 "#pragma kopt param B {0..9}\n"
                                 "#pragma kopt param C {0..9}\n"
                                 "#pragma kopt default A=5 B=5 C=5\n"
                                 "// fake: time 9000\n"
                                 "// fake: add A 300\n"
                                 "// fake: add B 200\n"
                                 "// fake: add C 100\n" TAIL;
static const char ten[] = HEAD "#pragma kopt param A {0..9}\n"
                               "#pragma kopt default A=0\n"
                               "// fake: time 9000\n"
                               "// fake: add A 300\n" TAIL;

enum { BUDGET = 300, MIN = 20 };

static void run(struct session *s, const char *text, const char *store, double until)
{
    session_init(s, write_kernel("k.cl", text), store);
    s->o.strategy = "bayes";
    s->o.max_evaluations = BUDGET;
    s->o.until = until;
    session_run(s);
    if (s->status != KOPT_OK)
        fail_msg("%s", s->err.message);
}

static void a_session_ends_when_little_remains(void **state)
{
    (void)state;
    struct session s;
    (void)remove("until.db");
    run(&s, slope, "until.db", 0.05);
    assert_string_equal(s.report.ended, "until");
    assert_false(s.report.interrupted);
    assert_in_range(s.n_seen, MIN, BUDGET - 1);
    /* What was in flight was measured and counted; the default was the first of all. */
    assert_int_equal(s.report.progress.done, s.n_seen);
    assert_non_null(session_find(&s, "A=5,B=5,C=5"));
    assert_true(s.report.progress.remaining < 0.05);
    assert_true(s.report.best.median_ns < 9500);
    size_t n = s.n_seen;
    session_end(&s);
    /* The same results tell the same: nothing more is measured. */
    run(&s, slope, "until.db", 0.05);
    assert_string_equal(s.report.ended, "until");
    assert_int_equal(s.n_seen, n);
    assert_int_equal(session_measured(&s), 0);
    session_end(&s);
}

static void two_runs_end_at_the_same_place(void **state)
{
    (void)state;
    struct session s;
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        run(&s, slope, NULL, 0.08);
        assert_string_equal(s.report.ended, "until");
        n[i] = s.n_seen;
        session_end(&s);
    }
    assert_int_equal(n[0], n[1]);
}

/* However much may remain, no session ends by it on fewer results. */
static void a_session_has_a_minimum(void **state)
{
    (void)state;
    struct session s;
    run(&s, slope, NULL, 0.99);
    assert_string_equal(s.report.ended, "until");
    assert_in_range(s.n_seen, MIN, MIN + 64);
    session_end(&s);
    session_init(&s, write_kernel("k.cl", slope), NULL);
    s.o.until = 0.99;
    s.o.max_evaluations = MIN - 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_string_equal(s.report.ended, "budget");
    assert_int_equal(s.n_seen, MIN - 1);
    session_end(&s);
}

static void what_else_ends_a_session_is_said(void **state)
{
    (void)state;
    struct session s;
    run(&s, ten, NULL, 0.05);
    assert_string_equal(s.report.ended, "exhausted");
    assert_int_equal(s.n_seen, 10);
    assert_true(s.report.progress.remaining == 0);
    session_end(&s);
    session_init(&s, write_kernel("k.cl", slope), NULL);
    s.o.max_evaluations = 30;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_string_equal(s.report.ended, "budget");
    assert_true(isnan(s.report.progress.remaining));
    session_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_ends_when_little_remains),
        cmocka_unit_test(two_runs_end_at_the_same_place),
        cmocka_unit_test(a_session_has_a_minimum),
        cmocka_unit_test(what_else_ends_a_session_is_said),
    };
    return cmocka_run_group_tests_name("session/until", tests, NULL, NULL);
}
