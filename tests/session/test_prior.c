/* SPDX-License-Identifier: MIT */
/* Sessions that begin with results from elsewhere. The fake kernel takes the same time for
 * every problem: the fastest is A=39,B=0, then A=39,B=1, A=37,B=0, A=37,B=1 and so on; A=38
 * crashes.
 */
#include "session/session.h"

#include <math.h>

#define TEXT_OF(kernel, params)                                      \
    "#pragma kopt kernel " kernel "\n"                               \
    "#pragma kopt lang opencl\n"                                     \
    "#pragma kopt problem N=64\n"                                    \
    "#pragma kopt param " params "\n"                                \
    "#pragma kopt default A=0 B=0\n"                                 \
    "#pragma kopt block 16\n"                                        \
    "#pragma kopt grid 1\n"                                          \
    "#pragma kopt arg b f32[64] out\n"                               \
    "// fake: time 90000\n// fake: add A -500\n// fake: add B 100\n" \
    "// fake: when A=38,B=0 crash\n// fake: when A=38,B=1 crash\n"   \
    "kernel void " kernel "(global float *b) {}\n"

static const char text[] = TEXT_OF("k", "A {0..39} B {0,1}");

enum { N_VALID = 80, N_OK = 78 };

static struct {
    char prior[TEXT];
    char model[TEXT];
    uint64_t results;
    uint64_t first;
    uint64_t predictions;
} started;

static void on_start(void *user, const kopt_tune_start *s)
{
    (void)user;
    (void)snprintf(started.prior, sizeof(started.prior), "%s", s->prior);
    (void)snprintf(started.model, sizeof(started.model), "%s", s->model);
    started.results = s->prior_results;
    started.first = s->prior_first;
    started.predictions = s->predictions;
}

static const char *const large[] = {"N=128"};

/* In the order of asking: one thing at a time. */
static void prepare(struct session *s, const char *kernel, const char *store,
                    uint64_t evaluations)
{
    session_init(s, write_kernel("k.cl", kernel), store);
    s->o.problem = large;
    s->o.n_problem = 1;
    s->o.compilers = 1;
    s->o.flush = -1;
    s->o.max_samples = 2;
    s->o.strategy = "random";
    s->o.max_evaluations = evaluations;
    s->o.callbacks.start = on_start;
    memset(&started, 0, sizeof(started));
}

static void must_run(struct session *s)
{
    session_run(s);
    if (s->status != KOPT_OK)
        fail_msg("%s (%s)", s->err.message, s->err.hint);
}

/* A store with all that there is to know of N=64. */
static const char *tuned(const char *store, const char *kernel)
{
    struct session s;
    (void)remove(store);
    prepare(&s, kernel, store, 0);
    s.o.n_problem = 0;
    must_run(&s);
    assert_string_equal(started.prior, "");
    assert_string_equal(s.report.ended, "exhausted");
    session_end(&s);
    return store;
}

static void assert_order(const struct session *s, const char *const *configs, size_t n)
{
    assert_true(s->n_seen >= n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(s->seen[i].config, configs[i]);
}

static const char *const best_first[] = {"A=0,B=0",  "A=39,B=0", "A=39,B=1",
                                         "A=37,B=0", "A=37,B=1", "A=36,B=0"};

/* --- from the store ----------------------------------------------------------------------- */

static void another_problem_begins_with_the_best_of_the_first(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("near.db", text);
    prepare(&s, text, "near.db", 6);
    must_run(&s);
    assert_string_equal(started.prior, "k N=64 on Fake device 0");
    assert_int_equal(started.results, N_VALID);
    assert_int_equal(started.first, 5);
    assert_int_equal(started.predictions, 0);
    assert_int_equal(s.n_seen, 6);
    assert_order(&s, best_first, 6);
    assert_string_equal(s.report.best_text, "A=39,B=0");
    assert_string_equal(s.report.best_from, "prior");
    assert_string_equal(s.report.ended, "budget");
    assert_int_equal(s.report.best_rank, 0);
    assert_string_equal(s.report.predicted.config, "");
    assert_true(isnan(s.report.predicted_share));
    session_end(&s);
}

static void see(const struct session *s, size_t n)
{
    assert_int_equal(s->n_seen, n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(s->seen[i].config, s->seen[k].config);
}

static void the_whole_space_is_searched_all_the_same(void **state)
{
    (void)state;
    const char *name;
    for (size_t i = 0; (name = kopt_strategy(i, NULL)) != NULL; i++) {
        struct session s;
        (void)tuned("all.db", text);
        prepare(&s, text, "all.db", 0);
        s.o.strategy = name;
        must_run(&s);
        assert_int_equal(started.first, 10);
        assert_order(&s, best_first, 6);
        see(&s, N_VALID);
        assert_string_equal(s.report.ended, "exhausted");
        session_end(&s);
    }
}

static void as_many_are_tried_as_are_asked_for(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("first.db", text);
    prepare(&s, text, "first.db", 20);
    s.o.prior_first = 2;
    must_run(&s);
    assert_int_equal(started.first, 2);
    assert_order(&s, best_first, 3);
    see(&s, 20);
    session_end(&s);
    /* Those that failed there are not worth a try. */
    prepare(&s, text, "first.db", 0);
    s.o.prior_first = 1000;
    s.o.fresh = 1;
    must_run(&s);
    assert_int_equal(started.first, N_OK);
    see(&s, N_VALID);
    assert_int_equal(s.seen[N_OK].outcome, KOPT_OUT_CRASH);
    assert_int_equal(s.seen[N_OK + 1].outcome, KOPT_OUT_CRASH);
    session_end(&s);
}

static void a_budget_of_one_is_the_default_alone(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("one.db", text);
    for (uint64_t n = 1; n <= 3; n++) {
        prepare(&s, text, "one.db", n);
        s.o.fresh = 1;
        must_run(&s);
        see(&s, n);
        assert_order(&s, best_first, n);
        assert_string_equal(started.prior, "k N=64 on Fake device 0");
        assert_int_equal(started.first, n - 1);
        assert_string_equal(s.report.best_from, n == 1 ? "default" : "prior");
        assert_string_equal(s.report.ended, "budget");
        session_end(&s);
    }
}

/* The default is the best of the prior, too: it takes nothing from the others. */
static void a_default_in_the_list_counts_once(void **state)
{
    (void)state;
    static const char best[] = "#pragma kopt kernel k\n#pragma kopt lang opencl\n"
                               "#pragma kopt problem N=64\n#pragma kopt param A {0..39}\n"
                               "#pragma kopt default A=39\n#pragma kopt block 16\n"
                               "#pragma kopt grid 1\n#pragma kopt arg b f32[64] out\n"
                               "// fake: time 90000\n// fake: add A -500\n"
                               "kernel void k(global float *b) {}\n";
    static const char *const order[] = {"A=39", "A=38", "A=37"};
    struct session s;
    (void)tuned("default.db", best);
    prepare(&s, best, "default.db", 3);
    must_run(&s);
    assert_int_equal(started.first, 3);
    assert_order(&s, order, 3);
    assert_string_equal(s.report.best_from, "default");
    session_end(&s);
}

static void none_is_none(void **state)
{
    (void)state;
    struct session a;
    struct session b;
    (void)tuned("none.db", text);
    prepare(&a, text, "none.db", 12);
    a.o.prior = "none";
    must_run(&a);
    assert_string_equal(started.prior, "");
    assert_int_equal(started.results, 0);
    assert_int_equal(started.first, 0);
    prepare(&b, text, NULL, 12);
    must_run(&b);
    assert_string_equal(started.prior, "");
    for (size_t i = 0; i < 12; i++)
        assert_string_equal(a.seen[i].config, b.seen[i].config);
    assert_string_equal(a.report.best_from, "search");
    session_end(&a);
    session_end(&b);
}

static void another_device_serves_where_this_one_has_nothing(void **state)
{
    (void)state;
    struct session s;
    (void)remove("device.db");
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "2", 1), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const want[] = {"", "k N=128 on Fake device 1",
                                           "k N=128 on Fake device 0, of another source"};
        prepare(&s, i < 2 ? text : TEXT_OF("k", "A {0..39} B {0,1}") "/* edited */\n",
                "device.db", i ? 6 : 0);
        s.o.device = i ? "fake:0" : "fake:1";
        if (i == 1)
            s.o.max_evaluations = 15;
        must_run(&s);
        assert_string_equal(started.prior, want[i]);
        if (i)
            assert_order(&s, best_first, 6);
        session_end(&s);
    }
    assert_int_equal(unsetenv("KOPT_FAKE_DEVICES"), 0);
}

static void another_kernel_is_not_used(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("foreign.db", text);
    prepare(&s, TEXT_OF("m", "A {0..39} B {0,1}"), "foreign.db", 6);
    must_run(&s);
    assert_string_equal(started.prior, "");
    session_end(&s);
    prepare(&s, TEXT_OF("k", "A {0..39} B {0,1} C {1,2}"), "foreign.db", 6);
    must_run(&s);
    assert_string_equal(started.prior, "");
    session_end(&s);
}

static void what_is_not_in_this_space_is_passed_over(void **state)
{
    (void)state;
    static const char *const narrow[] = {"N=128", "A=0,1,10,11,20,21,30,38,39", "B=0,1"};
    static const char *const order[] = {"A=0,B=0", "A=39,B=0", "A=39,B=1", "A=30,B=0"};
    struct session s;
    (void)tuned("narrow.db", text);
    prepare(&s, text, "narrow.db", 4);
    s.o.problem = narrow;
    s.o.n_problem = 3;
    must_run(&s);
    assert_string_equal(started.prior, "k N=64 on Fake device 0");
    assert_int_equal(started.results, 18);
    assert_order(&s, order, 4);
    session_end(&s);
}

static void sequence(struct session *s, const char *store, size_t stop_after)
{
    prepare(s, text, store, 15);
    s->stop_after = stop_after;
    must_run(s);
}

static void a_resumed_session_keeps_the_order(void **state)
{
    (void)state;
    struct session whole;
    struct session s;
    (void)tuned("whole.db", text);
    sequence(&whole, "whole.db", 0);
    see(&whole, 15);
    (void)tuned("resume.db", text);
    sequence(&s, "resume.db", 4);
    assert_true(s.report.interrupted);
    assert_string_equal(s.report.ended, "stopped");
    session_end(&s);
    sequence(&s, "resume.db", 0);
    assert_true(s.report.progress.from_store >= 4);
    assert_string_equal(started.prior, "k N=64 on Fake device 0");
    for (size_t i = 0; i < 15; i++)
        assert_string_equal(s.seen[i].config, whole.seen[i].config);
    session_end(&s);
    /* And measured anew. */
    prepare(&s, text, "resume.db", 15);
    s.o.fresh = 1;
    must_run(&s);
    assert_int_equal(session_measured(&s), 15);
    for (size_t i = 0; i < 15; i++)
        assert_string_equal(s.seen[i].config, whole.seen[i].config);
    session_end(&s);
    session_end(&whole);
}

static int see_run(void *user, const kopt_run *r)
{
    int *n = user;
    *n += strstr(r->summary,
                 "\"prior\":{\"of\":\"k N=64 on Fake device 0\",\"results\":80,"
                 "\"first\":5},\"best_from\":\"prior\",\"ended\":\"budget\",") != NULL;
    *n += 10 * (strstr(r->summary, "\"prior\"") == NULL &&
                strstr(r->summary, "\"ended\":\"exhausted\"") != NULL);
    return 1;
}

static void the_run_says_what_its_prior_was(void **state)
{
    (void)state;
    struct session s;
    kopt_store *store = NULL;
    int n = 0;
    (void)tuned("summary.db", text);
    prepare(&s, text, "summary.db", 6);
    must_run(&s);
    session_end(&s);
    assert_int_equal(kopt_store_open("summary.db", 0, &store, NULL), KOPT_OK);
    assert_int_equal(kopt_store_runs(store, 0, see_run, &n, NULL), KOPT_OK);
    kopt_store_close(store);
    assert_int_equal(n, 11);
}

static void a_time_that_is_over_is_a_budget(void **state)
{
    (void)state;
    struct session s;
    prepare(&s, text, NULL, 0);
    s.o.max_seconds = 1e-6;
    must_run(&s);
    assert_string_equal(s.report.ended, "budget");
    session_end(&s);
}

/* --- from a file -------------------------------------------------------------------------- */

static void refuse(struct session *s, kopt_status want, const char *words)
{
    session_run(s);
    assert_int_equal(s->status, want);
    if (!strstr(s->err.message, words))
        fail_msg("'%s' is not in '%s'", words, s->err.message);
    assert_null(s->tuner);
    session_end(s);
}

static void a_store_serves_as_a_file(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("file.db", text);
    for (int with_store = 0; with_store < 2; with_store++) {
        prepare(&s, text, with_store ? "own.db" : NULL, 8);
        (void)remove("own.db");
        s.o.prior = "file.db";
        s.o.prior_first = 5;
        must_run(&s);
        assert_string_equal(started.prior, "file.db");
        assert_int_equal(started.results, N_VALID);
        assert_int_equal(started.first, 5);
        assert_order(&s, best_first, 6);
        see(&s, 8);
        assert_string_equal(s.report.best_from, "prior");
        session_end(&s);
    }
}

/* It is what was asked for, whatever the session's own store has. */
static void a_file_comes_before_the_store(void **state)
{
    (void)state;
    static const char kt[] =
        "{\"device_name\":\"GPU\",\"kernel_name\":\"other\",\"problem_size\":\"64\","
        "\"tune_params_keys\":[\"B\",\"A\"],"
        "\"tune_params\":{\"B\":[1.0,0.0],\"A\":[1,2,3,50]},\"objective\":\"time\",\"cache\":{"
        "\"1.0,2\":{\"B\":1.0,\"A\":2,\"time\":1.0},"
        "\"0.0,3\":{\"B\":0.0,\"A\":3,\"time\":3.0},"
        "\"0.0,1\":{\"B\":0.0,\"A\":1,\"time\":2.0},"
        "\"1.0,1\":{\"B\":1.0,\"A\":1,\"time\":\"RuntimeFailedConfig\"},"
        "\"0.0,50\":{\"B\":0.0,\"A\":50,\"time\":0.5}}}";
    static const char *const order[] = {"A=0,B=0", "A=2,B=1", "A=1,B=0", "A=3,B=0"};
    struct session s;
    (void)tuned("under.db", text);
    prepare(&s, text, "under.db", 4);
    s.o.prior = write_kernel("kt.json", kt);
    must_run(&s);
    assert_string_equal(started.prior, "kt.json");
    assert_int_equal(started.results, 4);
    assert_int_equal(started.first, 3);
    assert_order(&s, order, 4);
    session_end(&s);
}

static void one_subject_of_several_is_named(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("two.db", text);
    prepare(&s, text, "two.db", 12);
    must_run(&s);
    session_end(&s);
    prepare(&s, text, NULL, 3);
    s.o.prior = "two.db";
    refuse(&s, KOPT_EUSAGE, "two.db");
    prepare(&s, text, NULL, 3);
    s.o.prior = "two.db#1";
    must_run(&s);
    assert_string_equal(started.prior, "two.db#1");
    assert_order(&s, best_first, 3);
    session_end(&s);
}

static void files_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("misfit.db", text);
    prepare(&s, TEXT_OF("k", "A {0..39} B {0,1} C {1,2}"), NULL, 5);
    s.o.prior = "misfit.db";
    refuse(&s, KOPT_EINPUT, "misfit.db does not fit k.cl: it has no parameter 'C'");
    assert_non_null(strstr(s.err.hint, "the same parameters"));
    (void)tuned("misfit.db", TEXT_OF("k", "A {0..39} B {0,1} C {1,2}"));
    prepare(&s, text, NULL, 5);
    s.o.prior = "misfit.db";
    refuse(&s, KOPT_EINPUT, "its parameter 'C' is not in the space");
    prepare(&s, text, NULL, 5);
    s.o.prior = "gone.json";
    refuse(&s, KOPT_EIO, "gone.json");
    prepare(&s, text, NULL, 5);
    s.o.prior = "k.cl";
    refuse(&s, KOPT_EINPUT, "k.cl");
}

static void a_file_without_anything_in_the_space_is_a_warning(void **state)
{
    (void)state;
    struct session s;
    (void)tuned("far.db", text);
    prepare(&s, TEXT_OF("k", "A {0,100,200} B {0,2}"), NULL, 0);
    s.o.problem = (const char *const[]){"N=64", "A=100,200"};
    s.o.n_problem = 2;
    s.o.prior = "far.db";
    s.o.check = -1; /* the kernel declares none, which is another warning */
    must_run(&s);
    assert_int_equal(s.warnings, 1);
    assert_string_equal(s.last_warning, "nothing that the prior has is in this space; the "
                                        "search goes without it");
    assert_string_equal(started.prior, "far.db");
    assert_int_equal(started.results, 0);
    assert_int_equal(started.first, 0);
    see(&s, 4);
    session_end(&s);
}

/* --- options ------------------------------------------------------------------------------ */

static void options_that_contradict_are_refused(void **state)
{
    (void)state;
    struct session s;
    prepare(&s, text, NULL, 5);
    s.o.prior = "none";
    s.o.prior_first = 5;
    refuse(&s, KOPT_EUSAGE, "5 configurations of a prior without one");
    prepare(&s, text, NULL, 5);
    s.o.prior_first = 70000;
    refuse(&s, KOPT_EUSAGE, "more than there may be");
    for (int i = 0; i < 3; i++) {
        static const double bad[] = {-0.1, 1, (double)NAN};
        prepare(&s, text, NULL, 5);
        s.o.until = bad[i];
        refuse(&s, KOPT_EUSAGE, "what may remain");
    }
}

/* Nothing is written where the options are wrong. */
static void a_wrong_strategy_leaves_no_subject(void **state)
{
    (void)state;
    struct session s;
    kopt_store *store = NULL;
    int n = 0;
    (void)remove("wrong.db");
    prepare(&s, text, "wrong.db", 5);
    s.o.strategy = "luck";
    refuse(&s, KOPT_EUSAGE, "luck");
    assert_int_equal(kopt_store_open("wrong.db", 0, &store, NULL), KOPT_OK);
    assert_int_equal(kopt_store_runs(store, 0, see_run, &n, NULL), KOPT_OK);
    kopt_store_close(store);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_problem_begins_with_the_best_of_the_first),
        cmocka_unit_test(the_whole_space_is_searched_all_the_same),
        cmocka_unit_test(as_many_are_tried_as_are_asked_for),
        cmocka_unit_test(a_budget_of_one_is_the_default_alone),
        cmocka_unit_test(a_default_in_the_list_counts_once),
        cmocka_unit_test(none_is_none),
        cmocka_unit_test(another_device_serves_where_this_one_has_nothing),
        cmocka_unit_test(another_kernel_is_not_used),
        cmocka_unit_test(what_is_not_in_this_space_is_passed_over),
        cmocka_unit_test(a_resumed_session_keeps_the_order),
        cmocka_unit_test(the_run_says_what_its_prior_was),
        cmocka_unit_test(a_time_that_is_over_is_a_budget),
        cmocka_unit_test(a_store_serves_as_a_file),
        cmocka_unit_test(a_file_comes_before_the_store),
        cmocka_unit_test(one_subject_of_several_is_named),
        cmocka_unit_test(files_that_do_not_fit_are_refused),
        cmocka_unit_test(a_file_without_anything_in_the_space_is_a_warning),
        cmocka_unit_test(options_that_contradict_are_refused),
        cmocka_unit_test(a_wrong_strategy_leaves_no_subject),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
