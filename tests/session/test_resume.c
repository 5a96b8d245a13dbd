/* SPDX-License-Identifier: MIT */
/* What was measured once is not measured again, and what changed is. */
#include "session/session.h"

#include <sys/wait.h>
#include <unistd.h>

#define HEAD                            \
    "#pragma kopt kernel k\n"           \
    "#pragma kopt lang opencl\n"        \
    "#pragma kopt problem N=64\n"       \
    "#pragma kopt block 16\n"           \
    "#pragma kopt grid ceildiv(N,16)\n" \
    "#pragma kopt arg b f32[N] out\n"   \
    "#pragma kopt default A=0\n"        \
    "// fake: time 9000\n"              \
    "// fake: add A -500\n"
#define TAIL "kernel void k(global float *b) {}\n"

static const char ten[] = HEAD "#pragma kopt param A {0,1,2,3,4,5,6,7,8,9}\n" TAIL;
static const char twelve[] = HEAD "#pragma kopt param A {0,1,2,3,4,5,6,7,8,9,10,11}\n" TAIL;
static const char ruled[] = HEAD "#pragma kopt param A {0,1,2,3,4,5,6,7,8,9}\n"
                                 "#pragma kopt require A <= 4\n"
                                 "#pragma kopt metric speed = 1e9 / time_ns\n" TAIL;
static const char edited[] =
    HEAD "#pragma kopt param A {0,1,2,3,4,5,6,7,8,9}\n" TAIL "/* another word */\n";

static void run(struct session *s, const char *text, const char *store)
{
    session_init(s, write_kernel("k.cl", text), store);
    session_run(s);
    if (s->status != KOPT_OK)
        fail_msg("%s", s->err.message);
}

static void a_second_run_measures_nothing(void **state)
{
    (void)state;
    struct session s;
    (void)remove("second.db");
    run(&s, ten, "second.db");
    assert_int_equal(session_measured(&s), 10);
    assert_string_equal(s.report.best_text, "A=9");
    double best = s.report.best.median_ns;
    double speedup = s.report.speedup;
    session_end(&s);
    run(&s, ten, "second.db");
    assert_int_equal(session_measured(&s), 0);
    assert_int_equal(s.report.progress.from_store, 10);
    assert_string_equal(s.report.best_text, "A=9");
    assert_true(s.report.best.median_ns == best);
    assert_true(s.report.speedup == speedup);
    session_end(&s);
}

static void a_new_value_measures_only_the_new_configurations(void **state)
{
    (void)state;
    struct session s;
    (void)remove("grow.db");
    run(&s, ten, "grow.db");
    session_end(&s);
    run(&s, twelve, "grow.db");
    assert_int_equal(s.n_seen, 12);
    assert_int_equal(session_measured(&s), 2);
    assert_string_equal(s.report.best_text, "A=11");
    session_end(&s);
    run(&s, ruled, "grow.db");
    assert_int_equal(s.n_seen, 5);
    assert_int_equal(session_measured(&s), 0);
    assert_string_equal(s.report.best_text, "A=4");
    assert_int_equal(s.report.n_metrics, 1);
    assert_true(s.report.metrics[0].best > s.report.metrics[0].first);
    session_end(&s);
}

static void an_edited_kernel_is_measured_anew(void **state)
{
    (void)state;
    struct session s;
    (void)remove("edit.db");
    run(&s, ten, "edit.db");
    session_end(&s);
    run(&s, edited, "edit.db");
    assert_int_equal(session_measured(&s), 10);
    session_end(&s);
    const char *problem[] = {"N=128"};
    session_init(&s, write_kernel("k.cl", ten), "edit.db");
    s.o.problem = problem;
    s.o.n_problem = 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_int_equal(session_measured(&s), 10);
    session_end(&s);
}

static void fresh_measures_again(void **state)
{
    (void)state;
    struct session s;
    (void)remove("fresh.db");
    run(&s, ten, "fresh.db");
    session_end(&s);
    session_init(&s, write_kernel("k.cl", ten), "fresh.db");
    s.o.fresh = 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_int_equal(session_measured(&s), 10);
    session_end(&s);
}

static size_t measured_with(struct session *s, const char *text, unsigned samples)
{
    session_init(s, write_kernel("k.cl", text), "samples.db");
    s->o.min_samples = s->o.max_samples = samples;
    session_run(s);
    assert_int_equal(s->status, KOPT_OK);
    size_t n = session_measured(s);
    session_end(s);
    return n;
}

static void fewer_samples_than_asked_for_are_measured_anew(void **state)
{
    (void)state;
    static const char slow[] = HEAD "#pragma kopt param A {0}\n"
                                    "// fake: time 200000000\n" TAIL;
    struct session s;
    size_t dropped = 0;
    (void)remove("samples.db");
    assert_int_equal(measured_with(&s, ten, 3), 10);
    for (size_t i = 0; i < s.n_seen; i++)
        dropped += s.seen[i].dropped != 0;
    assert_true(dropped < 10);
    /* What was clearly worse after few is no better after many. */
    assert_int_equal(measured_with(&s, ten, 8), 10 - dropped);
    assert_int_equal(measured_with(&s, ten, 8), 0);
    assert_int_equal(measured_with(&s, ten, 3), 0);
    /* Nor do those count that there was no time for: a measurement has 2 s. */
    assert_int_equal(measured_with(&s, slow, 100), 1);
    assert_int_equal(measured_with(&s, slow, 100), 0);
}

static void an_interrupted_run_goes_on(void **state)
{
    (void)state;
    struct session s;
    (void)remove("stop.db");
    session_init(&s, write_kernel("k.cl", ten), "stop.db");
    s.stop_after = 4;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_true(s.report.interrupted);
    size_t first = s.n_seen;
    assert_true(first >= 4 && first < 10);
    session_end(&s);
    run(&s, ten, "stop.db");
    assert_int_equal(s.report.progress.from_store, first);
    assert_int_equal(session_measured(&s), 10 - first);
    assert_string_equal(s.report.best_text, "A=9");
    session_end(&s);
}

static void budgets_are_kept_exactly(void **state)
{
    (void)state;
    for (unsigned budget = 1; budget <= 11; budget++) {
        struct session s;
        session_init(&s, write_kernel("k.cl", ten), NULL);
        s.o.max_evaluations = budget;
        s.o.strategy = "random";
        session_run(&s);
        assert_int_equal(s.status, KOPT_OK);
        assert_int_equal(s.n_seen, budget < 10 ? budget : 10);
        session_end(&s);
    }
    struct session s;
    session_init(&s, write_kernel("k.cl", ten), NULL);
    s.o.max_fraction = 0.25;
    session_run(&s);
    assert_int_equal(s.n_seen, 3); /* a quarter of ten, rounded up */
    session_end(&s);
}

static void a_seed_gives_the_same_run_whatever_the_store_knows(void **state)
{
    (void)state;
    struct session a;
    struct session b;
    (void)remove("seed.db");
    for (int i = 0; i < 2; i++) {
        struct session *s = i ? &b : &a;
        session_init(s, write_kernel("k.cl", ten), "seed.db");
        s->o.strategy = "random";
        s->o.seed = 7;
        s->o.max_evaluations = 6;
        session_run(s);
        assert_int_equal(s->status, KOPT_OK);
    }
    assert_int_equal(session_measured(&b), 0);
    for (size_t i = 0; i < 6; i++)
        (void)session_find(&b, a.seen[i].config);
    session_end(&a);
    session_end(&b);
}

static void unusable_stores_are_refused_before_anything_runs(void **state)
{
    (void)state;
    struct session s;
    session_init(&s, write_kernel("k.cl", ten), "no/such/folder/x.db");
    session_run(&s);
    assert_int_equal(s.status, KOPT_EIO);
    session_init(&s, write_kernel("k.cl", ten),
                 write_kernel("garbage.db", "this is no database"));
    session_run(&s);
    assert_int_equal(s.status, KOPT_ECORRUPT);
    assert_non_null(strstr(s.err.message, "garbage.db"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_run_measures_nothing),
        cmocka_unit_test(a_new_value_measures_only_the_new_configurations),
        cmocka_unit_test(an_edited_kernel_is_measured_anew),
        cmocka_unit_test(fresh_measures_again),
        cmocka_unit_test(fewer_samples_than_asked_for_are_measured_anew),
        cmocka_unit_test(an_interrupted_run_goes_on),
        cmocka_unit_test(budgets_are_kept_exactly),
        cmocka_unit_test(a_seed_gives_the_same_run_whatever_the_store_knows),
        cmocka_unit_test(unusable_stores_are_refused_before_anything_runs),
    };
    return cmocka_run_group_tests_name("session/resume", tests, NULL, NULL);
}
