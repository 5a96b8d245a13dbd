/* SPDX-License-Identifier: MIT */
/* Stops, time budgets, races and stores at the edges of a session. */
#include "session/session.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HEAD                                      \
    "#pragma kopt kernel k\n"                     \
    "#pragma kopt lang opencl\n"                  \
    "#pragma kopt block 16\n"                     \
    "#pragma kopt grid 4\n"                       \
    "#pragma kopt arg a f32[64]  b f32[64] out\n" \
    "// fake: out 1 = copy 0\n"                   \
    "// fake: time 9000\n"                        \
    "// fake: add A 10\n"                         \
    "kernel void k(global const float *a, global float *b) {}\n"
/* Another kernel in the same file says what is right. */
#define REFERENCE                                  \
    "#pragma kopt check b against kernel ref\n"    \
    "#pragma kopt reference ref block 16 grid 4\n" \
    "kernel void ref(global const float *a, global float *b) {}\n"
/* Two of the configurations hold a compiler for ever. */
#define HANGING                        \
    "#pragma kopt default A=0\n"       \
    "// fake: when A=1 compile_hang\n" \
    "// fake: when A=2 compile_hang\n"
#define FOUR "#pragma kopt param A {0,1,2,3}\n"
static const char five[] = HEAD "#pragma kopt param A {0,1,2,3,4}\n"
                                "#pragma kopt default A=3\n";

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct rows {
    size_t races;
    size_t interrupted; /* without those of races */
    size_t completed;
};

static int count(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct rows *n = user;
    (void)subject;
    (void)run;
    n->races += r->race != 0;
    n->interrupted += r->outcome == KOPT_OUT_INTERRUPTED && !r->race;
    n->completed += r->outcome != KOPT_OUT_INTERRUPTED && !r->race;
    return 1;
}

static struct rows rows_of(const char *path)
{
    struct rows n = {0};
    kopt_store *st = NULL;
    kopt_error err;
    kopt_result_filter f = {.outcome = -1};
    if (kopt_store_open(path, 0, &st, &err) != KOPT_OK ||
        kopt_store_results(st, &f, count, &n, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    kopt_store_close(st);
    return n;
}

static void must_be_ok(const struct session *s)
{
    if (s->status != KOPT_OK)
        fail_msg("%s", s->err.message);
}

/* --- stops
 * ---------------------------------------------------------------------------------------- */

static void stop_at_start(void *user, const kopt_tune_start *start)
{
    (void)start;
    kopt_tuner_stop(((struct session *)user)->tuner);
}

static void a_stop_before_anything_is_no_failure(void **state)
{
    (void)state;
    struct session s;
    session_init(&s, write_kernel("m.cl", five), NULL);
    s.o.callbacks.start = stop_at_start;
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.has_report && s.report.interrupted);
    assert_int_equal(s.n_seen, 0);
    session_end(&s);
}

static void stop_in_race(void *user, const kopt_tune_progress *p)
{
    if (strcmp(p->phase, "final race") == 0)
        kopt_tuner_stop(((struct session *)user)->tuner);
}

static void a_stop_in_the_race_is_told_and_the_race_is_made_up_for(void **state)
{
    (void)state;
    struct session s;
    (void)remove("race.db");
    session_init(&s, write_kernel("m.cl", five), "race.db");
    s.o.callbacks.progress = stop_in_race;
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.report.interrupted);
    assert_string_equal(s.report.best_text, "A=0");
    assert_int_equal(s.n_seen, 5);
    session_end(&s);
    assert_int_equal(rows_of("race.db").races, 0);
    /* The next run has to race; when that fails the search's numbers stand. */
    assert_int_equal(setenv("KOPT_FAKE_FAIL", "launch", 1), 0);
    session_init(&s, "m.cl", "race.db");
    session_run(&s);
    assert_int_equal(unsetenv("KOPT_FAKE_FAIL"), 0);
    must_be_ok(&s);
    assert_int_equal(session_measured(&s), 0);
    assert_non_null(strstr(s.last_warning, "final race failed"));
    assert_string_equal(s.report.best_text, "A=0");
    assert_true(s.report.best.median_ns == 9000);
    assert_false(s.report.best.race);
    session_end(&s);
    session_init(&s, "m.cl", "race.db");
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.report.best.race);
    assert_true(fabs(s.report.speedup - 9030.0 / 9000.0) < 1e-9);
    session_end(&s);
}

static kopt_tuner *to_stop;
static void on_alarm(int sig)
{
    (void)sig;
    kopt_tuner_stop(to_stop);
}

static void note_tuner(void *user, const kopt_tune_start *start)
{
    (void)start;
    to_stop = ((struct session *)user)->tuner;
    (void)alarm(1);
}

static void stopped_by_alarm(const char *text)
{
    struct session s;
    assert_true(signal(SIGALRM, on_alarm) != SIG_ERR);
    session_init(&s, write_kernel("ref.cl", text), NULL);
    s.o.callbacks.start = note_tuner;
    s.o.launch_timeout_s = 30;
    s.o.compile_timeout_s = 30;
    double begun = now_s();
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.report.interrupted);
    assert_true(now_s() - begun < 15);
    session_end(&s);
}

static void references_that_never_end_can_be_stopped(void **state)
{
    (void)state;
    (void)write_kernel("endless.c", "void endless(const float *a, volatile float *b)\n"
                                    "{ for (;;) b[0] = a[0]; }\n");
    stopped_by_alarm(HEAD "#pragma kopt param A {0,1}\n"
                          "#pragma kopt check b against endless.c\n");
    stopped_by_alarm(HEAD "#pragma kopt param A {0,1}\n" REFERENCE
                          "// fake: when entry=ref hang\n");
    stopped_by_alarm(HEAD "#pragma kopt param A {0,1}\n" REFERENCE
                          "// fake: when entry=ref compile_hang\n");
}

static void a_reference_kernel_that_crashes_is_a_failure_with_its_name(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("ref.cl", HEAD "#pragma kopt param A {0,1}\n" REFERENCE
                                             "// fake: when entry=ref crash\n"),
                 NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EFAILED);
    assert_non_null(strstr(s.err.message, "ref"));
    session_end(&s);
}

static void a_reference_kernel_that_crashes_is_tried_once(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("ref.cl", HEAD "#pragma kopt param A {0,1}\n" REFERENCE
                                             "// fake: when entry=ref compile_slow 1000\n"
                                             "// fake: when entry=ref launch_error\n"),
                 NULL);
    double begun = now_s();
    session_run(&s);
    assert_int_equal(s.status, KOPT_EFAILED);
    if (now_s() - begun > 6) /* eight times would take 8 s of compiling alone */
        fail_msg("%.1f s", now_s() - begun);
    session_end(&s);
    /* One that does not compile for the default may for another configuration. */
    session_init(&s,
                 write_kernel("ref.cl",
                              HEAD "#pragma kopt param A {0,1}\n"
                                   "#pragma kopt default A=0\n" REFERENCE
                                   "// fake: when A=0,entry=ref compile_error \"not for 0\"\n"),
                 NULL);
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.report.checked);
    session_end(&s);
}

static void a_session_runs_once(void **state)
{
    (void)state;
    struct session s;
    const kopt_tune_report *report = NULL;
    kopt_error err;
    session_init(&s, write_kernel("m.cl", five), NULL);
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(kopt_tuner_run(s.tuner, &report, &err), KOPT_EUSAGE);
    assert_null(report);
    assert_int_equal(s.n_seen, 5);
    session_end(&s);
}

/* --- time budgets
 * ------------------------------------------------------------------------------- */

static void the_default_is_measured_in_the_shortest_time(void **state)
{
    (void)state;
    struct session s;
    session_init(&s, write_kernel("m.cl", five), NULL);
    s.o.max_seconds = 1e-6;
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(s.n_seen, 1);
    assert_string_equal(s.report.best_text, "A=3");
    assert_true(s.report.speedup == 1);
    session_end(&s);
}

static void compilers_that_hang_when_time_runs_out_are_ended_for_the_race(void **state)
{
    (void)state;
    struct session s;
    (void)remove("time.db");
    session_init(&s, write_kernel("time.cl", HEAD "#pragma kopt param A {0,3}\n" HANGING),
                 "time.db");
    s.o.callbacks.progress = stop_in_race;
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(s.n_seen, 2);
    session_end(&s);
    /* The two that are known have to race; the two that are new hold both compilers. */
    session_init(&s, write_kernel("time.cl", HEAD FOUR HANGING), "time.db");
    s.o.compile_timeout_s = 60;
    s.o.max_seconds = 1;
    double begun = now_s();
    session_run(&s);
    must_be_ok(&s);
    if (now_s() - begun > 15)
        fail_msg("%.1f s", now_s() - begun);
    assert_int_equal(s.report.progress.from_store, 2);
    assert_true(s.report.best.race);
    session_end(&s);
}

static void nothing_is_left_begun_when_time_runs_out(void **state)
{
    (void)state;
    struct session s;
    (void)remove("begun.db");
    session_init(&s,
                 write_kernel("begun.cl", HEAD "#pragma kopt param A {0..19}\n"
                                               "#pragma kopt default A=0\n"
                                               "// fake: time 50000000\n"
                                               "// fake: real 1\n"),
                 "begun.db");
    s.o.max_seconds = 1;
    s.o.race = 1;
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.n_seen >= 1 && s.n_seen < 20);
    struct rows n = rows_of("begun.db");
    assert_int_equal(n.interrupted, 0);
    assert_int_equal(n.completed, s.n_seen);
    session_end(&s);
}

/* --- races
 * -------------------------------------------------------------------------------------- */

static void races_of_two_runs_are_not_one_race(void **state)
{
    (void)state;
    static const char *const params[] = {
        "#pragma kopt param A {0,1}\n#pragma kopt default A=0\n",
        "#pragma kopt param A {2,3}\n#pragma kopt default A=2\n",
        FOUR "#pragma kopt default A=0\n", FOUR "#pragma kopt default A=0\n"};
    static const size_t races[] = {2, 4, 8, 8};
    (void)remove("races.db");
    for (size_t i = 0; i < 4; i++) {
        struct session s;
        char text[2048];
        (void)snprintf(text, sizeof(text), "%s%s", HEAD, params[i]);
        session_init(&s, write_kernel("m.cl", text), "races.db");
        session_run(&s);
        must_be_ok(&s);
        assert_string_equal(s.report.best_text, i == 1 ? "A=2" : "A=0");
        session_end(&s);
        assert_int_equal(rows_of("races.db").races, races[i]);
    }
}

static void one_that_was_dropped_races_where_the_better_are_gone(void **state)
{
    (void)state;
    struct session s;
    (void)remove("drop.db");
    session_init(&s,
                 write_kernel("m.cl", HEAD "#pragma kopt param A {0,1000}\n"
                                           "#pragma kopt default A=0\n"),
                 "drop.db");
    s.o.compilers = 1;
    session_run(&s);
    must_be_ok(&s);
    assert_true(session_find(&s, "A=1000")->dropped);
    session_end(&s);
    session_init(&s,
                 write_kernel("m.cl", HEAD "#pragma kopt param A {1000,1001}\n"
                                           "#pragma kopt default A=1001\n"),
                 "drop.db");
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(session_find(&s, "A=1000")->from_store, 1);
    assert_string_equal(s.report.best_text, "A=1000");
    assert_true(s.report.best.race);
    assert_true(fabs(s.report.speedup - 19010.0 / 19000.0) < 1e-9);
    session_end(&s);
}

/* --- options
 * -------------------------------------------------------------------------------- */

static void few_samples_are_few(void **state)
{
    (void)state;
    struct session s;
    session_init(&s, write_kernel("m.cl", HEAD "#pragma kopt param A {3}\n"), NULL);
    s.o.max_samples = 2; /* alone, it does not race */
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(s.report.best.n_times, 2);
    session_end(&s);
}

static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    struct session s;
    const char *kernel = write_kernel("m.cl", five);
    const double bad[] = {-1, (double)NAN, (double)INFINITY, 1e300};
    for (size_t i = 0; i < 4; i++) {
        session_init(&s, kernel, NULL);
        s.o.launch_timeout_s = bad[i];
        session_run(&s);
        assert_int_equal(s.status, KOPT_EUSAGE);
        session_init(&s, kernel, NULL);
        s.o.compile_timeout_s = bad[i];
        session_run(&s);
        assert_int_equal(s.status, KOPT_EUSAGE);
    }
    session_init(&s, kernel, NULL);
    s.o.precision = (double)NAN;
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
}

static void data_that_does_not_fit_is_refused_with_the_numbers(void **state)
{
    (void)state;
    struct session s;
    const char *kernel =
        write_kernel("m.cl", HEAD "#pragma kopt param A {0,1}\n"
                                  "#pragma kopt check b against constant(0)\n");
    session_init(&s, kernel, NULL);
    s.o.memory_bytes = 3 * 256 - 1; /* a, b and what b is compared with */
    session_run(&s);
    assert_int_equal(s.status, KOPT_EFULL);
    assert_non_null(strstr(s.err.message, "768"));
    assert_non_null(strstr(s.err.message, "767"));
    assert_true(s.err.hint[0] != 0);
    session_end(&s);
    assert_int_equal(setenv("KOPT_FAKE_MEMORY", "700", 1), 0);
    session_init(&s, kernel, NULL);
    session_run(&s);
    assert_int_equal(unsetenv("KOPT_FAKE_MEMORY"), 0);
    assert_int_equal(s.status, KOPT_EFULL);
    assert_non_null(strstr(s.err.message, "700"));
    session_end(&s);
    session_init(&s, write_kernel("m.cl", five), NULL);
    s.o.memory_bytes = 512;
    session_run(&s);
    must_be_ok(&s);
    session_end(&s);
}

static void more_than_there_may_be_is_refused(void **state)
{
    (void)state;
    struct session s;
    const char *kernel = write_kernel("m.cl", five);
    session_init(&s, kernel, NULL);
    s.o.race = KOPT_RACE_MAX + 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    assert_non_null(strstr(s.err.message, "15"));
    session_init(&s, kernel, NULL);
    s.o.max_samples = KOPT_SAMPLES_MAX + 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    assert_non_null(strstr(s.err.message, "1000"));
    session_init(&s, kernel, NULL);
    s.o.race = KOPT_RACE_MAX;
    s.o.max_samples = KOPT_SAMPLES_MAX;
    session_run(&s);
    must_be_ok(&s);
    session_end(&s);
}

/* HEAD has nine lines. */
static void what_is_wrong_with_a_check_is_told_with_its_line(void **state)
{
    (void)state;
    enum { CHECKS = 64 };
    char text[8192];
    struct session s;
    session_init(&s,
                 write_kernel("tol.cl", HEAD "#pragma kopt param A {0,1}\n"
                                             "#pragma kopt problem N=5\n"
                                             "#pragma kopt check b against none.c atol N-6\n"),
                 NULL);
    (void)write_kernel("none.c", "this is no C\n");
    session_run(&s); /* before the reference is made */
    assert_int_equal(s.status, KOPT_EINPUT);
    assert_non_null(strstr(s.err.message, "tolerance"));
    assert_int_equal(s.err.line, 12);
    assert_non_null(strstr(s.err.file, "tol.cl"));
    session_end(&s);
    for (int n = CHECKS; n <= CHECKS + 1; n++) {
        size_t at =
            (size_t)snprintf(text, sizeof(text), "%s#pragma kopt param A {0,1}\n", HEAD);
        for (int i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof(text) - at,
                                   "#pragma kopt check b against constant(0) atol 1e9\n");
        session_init(&s, write_kernel("checks.cl", text), NULL);
        session_run(&s);
        if (n == CHECKS) {
            must_be_ok(&s);
            assert_true(s.report.checked);
        } else {
            assert_int_equal(s.status, KOPT_EINPUT);
            assert_non_null(strstr(s.err.message, "more than 64 checks"));
            assert_int_equal(s.err.line, 10 + CHECKS + 1);
        }
        session_end(&s);
    }
}

/* --- where the time went
 * --------------------------------------------------------------------- */

static void a_kernel_that_hangs_is_no_overhead_of_ours(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("m.cl", HEAD "#pragma kopt param A {0,1,2,3,4,5,6,7}\n"
                                           "#pragma kopt default A=0\n"
                                           "// fake: when A=1 hang\n"
                                           "// fake: when A=2 compile_error \"no\"\n"),
                 NULL);
    s.o.launch_timeout_s = 3;
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.report.split.launch_s > 2.9);
    assert_true(s.report.split.device_s > 2.9);
    /* Seven were launched; 3 s of one of them would be 430 ms each. */
    assert_true(s.report.split.overhead_ms > 0 && s.report.split.overhead_ms < 200);
    session_end(&s);
    session_init(&s,
                 write_kernel("m.cl", HEAD "#pragma kopt param A {0,1}\n"
                                           "// fake: compile_error \"no\"\n"),
                 NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EFAILED);
    assert_true(s.has_report && isnan(s.report.split.overhead_ms)); /* of no launch at all */
    session_end(&s);
}

static void a_short_race_is_no_overhead_of_the_search(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("m.cl", HEAD "#pragma kopt param A {0,1}\n"
                                           "#pragma kopt default A=0\n"
                                           "// fake: when A=0,entry=k time 20000000\n"
                                           "// fake: when A=1,entry=k time 20000000\n"
                                           "// fake: real 1\n"),
                 NULL);
    session_run(&s);
    must_be_ok(&s);
    assert_true(s.report.best.race);
    /* 2 of 60 rounds and of their energy, 2.6 s; the search itself took 0.4 s. */
    assert_true(s.report.split.launch_s > 2 && s.report.split.overhead_ms < 100);
    session_end(&s);
}

static size_t lines_with(const char *path, const char *word)
{
    char line[512];
    size_t n = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        fail_msg("cannot open %s", path);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, word) != NULL;
    assert_int_equal(fclose(f), 0);
    return n;
}

static void with_two_devices_the_shares_still_add_up(void **state)
{
    (void)state;
    struct session s;
    char folder[4000];
    char path[4096];
    assert_non_null(getcwd(folder, sizeof(folder)));
    (void)snprintf(path, sizeof(path), "%s/two.trace", folder);
    (void)remove(path);
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "2", 1), 0);
    assert_int_equal(setenv("KOPT_FAKE_TRACE", path, 1), 0);
    session_init(&s,
                 write_kernel("two.cl", HEAD "#pragma kopt param A {0..9}\n"
                                             "#pragma kopt default A=0\n"
                                             "// fake: when A=0 time 30000000\n"
                                             "// fake: time 30000000\n"
                                             "// fake: real 1\n"),
                 NULL);
    s.o.device = "fake:0,fake:1";
    s.o.race = 1;
    s.o.max_samples = 3;
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(unsetenv("KOPT_FAKE_TRACE"), 0);
    assert_int_equal(unsetenv("KOPT_FAKE_DEVICES"), 0);
    assert_true(lines_with(path, "device=0 ") > 0 && lines_with(path, "device=1 ") > 0);
    const kopt_tune_split *t = &s.report.split;
    assert_true(t->device_s > 0 && t->idle_s > 0);
    assert_true(fabs(t->device_s + t->idle_s - t->wall_s) < 1e-6);
    session_end(&s);
}

static void several_devices_share_the_work(void **state)
{
    (void)state;
    struct session s;
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "2", 1), 0);
    session_init(&s,
                 write_kernel("two.cl", HEAD "#pragma kopt param A {0..19}\n"
                                             "#pragma kopt default A=7\n" REFERENCE
                                             "// fake: when A=4,entry=k crash\n"
                                             "// fake: when A=5,entry=k wrong\n"),
                 NULL);
    s.o.device = "fake:0,fake:1";
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(s.n_seen, 20);
    assert_int_equal(s.report.progress.by_outcome[KOPT_OUT_OK], 18);
    assert_int_equal(session_find(&s, "A=4")->outcome, KOPT_OUT_CRASH);
    assert_int_equal(session_find(&s, "A=5")->outcome, KOPT_OUT_WRONG);
    for (size_t i = 0; i < s.n_seen; i++)
        if (s.seen[i].outcome == KOPT_OUT_OK)
            assert_true(s.seen[i].median_ns == 9000 + 10 * strtod(s.seen[i].config + 2, NULL));
    assert_string_equal(s.report.best_text, "A=0");
    session_end(&s);
    session_init(&s, "two.cl", NULL);
    s.o.device = "fake:1,fake:1";
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    assert_int_equal(unsetenv("KOPT_FAKE_DEVICES"), 0);
}

/* --- a store that is full
 * ------------------------------------------------------------------------- */

struct full {
    struct session s;
    struct rlimit before;
};

static void fill_up(void *user, const kopt_result *r, const char *config)
{
    struct full *f = user;
    struct rlimit small = f->before;
    (void)r;
    (void)config;
    if (++f->s.n_seen == 3) {
        small.rlim_cur = 4096;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    }
}

static void a_full_store_ends_the_session_and_keeps_what_it_has(void **state)
{
    (void)state;
    static struct full f;
    struct session again;
    (void)remove("full.db");
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &f.before), 0);
    session_init(&f.s, write_kernel("full.cl", HEAD "#pragma kopt param A {0..19}\n"),
                 "full.db");
    f.s.o.callbacks.result = fill_up;
    f.s.o.callbacks.user = &f;
    f.s.o.callbacks.log = NULL;
    session_run(&f.s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &f.before), 0);
    if (f.s.status != KOPT_EFULL && f.s.status != KOPT_EIO)
        fail_msg("%d: %s", f.s.status, f.s.err.message);
    assert_true(f.s.has_report);
    assert_non_null(strstr(f.s.err.message, "full.db"));
    session_end(&f.s);
    session_init(&again, "full.cl", "full.db");
    session_run(&again);
    must_be_ok(&again);
    assert_true(again.report.progress.from_store >= 3);
    assert_int_equal(again.n_seen, 20);
    session_end(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_before_anything_is_no_failure),
        cmocka_unit_test(a_stop_in_the_race_is_told_and_the_race_is_made_up_for),
        cmocka_unit_test(references_that_never_end_can_be_stopped),
        cmocka_unit_test(a_reference_kernel_that_crashes_is_a_failure_with_its_name),
        cmocka_unit_test(a_reference_kernel_that_crashes_is_tried_once),
        cmocka_unit_test(a_session_runs_once),
        cmocka_unit_test(the_default_is_measured_in_the_shortest_time),
        cmocka_unit_test(compilers_that_hang_when_time_runs_out_are_ended_for_the_race),
        cmocka_unit_test(nothing_is_left_begun_when_time_runs_out),
        cmocka_unit_test(races_of_two_runs_are_not_one_race),
        cmocka_unit_test(one_that_was_dropped_races_where_the_better_are_gone),
        cmocka_unit_test(few_samples_are_few),
        cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(data_that_does_not_fit_is_refused_with_the_numbers),
        cmocka_unit_test(more_than_there_may_be_is_refused),
        cmocka_unit_test(what_is_wrong_with_a_check_is_told_with_its_line),
        cmocka_unit_test(a_kernel_that_hangs_is_no_overhead_of_ours),
        cmocka_unit_test(a_short_race_is_no_overhead_of_the_search),
        cmocka_unit_test(with_two_devices_the_shares_still_add_up),
        cmocka_unit_test(several_devices_share_the_work),
        cmocka_unit_test(a_full_store_ends_the_session_and_keeps_what_it_has),
    };
    return cmocka_run_group_tests_name("session/more", tests, NULL, NULL);
}
