/* SPDX-License-Identifier: MIT */
/* Whatever a configuration does, the search goes on and says what it was. */
#include "session/session.h"

#include <math.h>
#include <unistd.h>

/* MODE 0 is the default and slow; MODE 1 is the best of those that work. */
static const char every_fault[] =
    "#pragma kopt kernel copy\n"
    "#pragma kopt lang opencl\n"
    "#pragma kopt param MODE {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17}\n"
    "#pragma kopt default MODE=0\n"
    "#pragma kopt block 16\n"
    "#pragma kopt grid 64\n"
    "#pragma kopt arg a f32[1024] normal  b f32[1024] out\n"
    "#pragma kopt reference ref block 16 grid 64\n"
    "#pragma kopt check b against kernel ref rtol 1e-6\n"
    "// fake: out 1 = copy 0\n"
    "// fake: time 9000\n"
    "// fake: when MODE=1 time 4000\n"
    "// fake: when MODE=2,entry=copy compile_error \"no such type\"\n"
    "// fake: when MODE=3,entry=copy compile_hang\n"
    "// fake: when MODE=4,entry=copy compile_abort\n"
    "// fake: when MODE=5,entry=copy launch_error\n"
    "// fake: when MODE=6,entry=copy limit 98304\n"
    "// fake: when MODE=7,entry=copy crash\n"
    "// fake: when MODE=8,entry=copy hang\n"
    "// fake: when MODE=9,entry=copy nan\n"
    "// fake: when MODE=10,entry=copy wrong\n"
    "// fake: when MODE=11,entry=copy partial\n"
    "// fake: when MODE=12,entry=copy unsteady\n"
    "// fake: when MODE=13,entry=copy first_only\n"
    "// fake: when MODE=14,entry=copy negative_time\n"
    "// fake: when MODE=15,entry=copy zero_time\n"
    "// fake: when MODE=16,entry=copy nan_time\n"
    "// fake: when MODE=17,entry=copy oob\n"
    "kernel void ref(global const float *a, global float *b) {}\n"
    "kernel void copy(global const float *a, global float *b) {}\n";

static void every_fault_is_told_apart_and_none_stops_the_search(void **state)
{
    (void)state;
    static const kopt_outcome want[18] = {
        KOPT_OUT_OK,
        KOPT_OUT_OK,
        KOPT_OUT_COMPILE_ERROR,
        KOPT_OUT_COMPILE_TIMEOUT,
        KOPT_OUT_CRASH,
        KOPT_OUT_LAUNCH_ERROR,
        KOPT_OUT_DEVICE_LIMIT,
        KOPT_OUT_CRASH,
        KOPT_OUT_HANG,
        KOPT_OUT_WRONG,
        KOPT_OUT_WRONG,
        KOPT_OUT_WRONG,
        KOPT_OUT_UNSTEADY,
        KOPT_OUT_UNSTEADY,
        KOPT_OUT_BAD_TIME,
        KOPT_OUT_BAD_TIME,
        KOPT_OUT_BAD_TIME,
        KOPT_OUT_WRONG /* its stray writes hit the reference, again and again */};
    struct session s;
    session_init(&s, write_kernel("faults.cl", every_fault), NULL);
    session_run(&s);
    if (s.status != KOPT_OK)
        fail_msg("%s", s.err.message);
    assert_int_equal(s.n_seen, 18);
    for (int mode = 0; mode < 18; mode++) {
        char config[32];
        (void)snprintf(config, sizeof(config), "MODE=%d", mode);
        const struct seen *x = session_find(&s, config);
        if (x->outcome != want[mode])
            fail_msg("%s: %s (%s), expected %s", config, kopt_outcome_name(x->outcome),
                     x->message, kopt_outcome_name(want[mode]));
        assert_true((x->message[0] != 0) == (want[mode] != KOPT_OUT_OK));
    }
    assert_string_equal(s.report.first_text, "MODE=0");
    assert_string_equal(s.report.best_text, "MODE=1");
    assert_true(s.report.best.median_ns == 4000);
    assert_true(fabs(s.report.speedup - 9000.0 / 4000.0) < 1e-9); /* the fake clock is exact */
    assert_non_null(strstr(session_find(&s, "MODE=2")->message, "no such type"));
    assert_non_null(strstr(session_find(&s, "MODE=6")->message, "98304"));
    assert_non_null(strstr(session_find(&s, "MODE=7")->message, "SIGSEGV"));
    assert_non_null(strstr(session_find(&s, "MODE=11")->message, "never written"));
    assert_int_equal(strncmp(session_find(&s, "MODE=11")->message, "b: 512 of 1024 ", 15), 0);
    assert_int_equal(strncmp(session_find(&s, "MODE=10")->message, "b: ", 3), 0);
    assert_int_equal(s.report.progress.by_outcome[KOPT_OUT_WRONG], 4);
    session_end(&s);
}

static void a_stray_write_does_not_condemn_those_after_it(void **state)
{
    (void)state;
    char text[2048];
    struct session s;
    (void)snprintf(text, sizeof(text), "%s",
                   "#pragma kopt kernel copy\n"
                   "#pragma kopt lang opencl\n"
                   "#pragma kopt param MODE {0,1,2,3,4,5,6,7}\n"
                   "#pragma kopt default MODE=0\n"
                   "#pragma kopt block 16\n"
                   "#pragma kopt grid 64\n"
                   "#pragma kopt arg b f32[1024] out  a f32[1024] normal\n"
                   "#pragma kopt reference ref block 16 grid 64\n"
                   "#pragma kopt check b against kernel ref rtol 1e-6\n"
                   "// fake: out 0 = copy 1\n"
                   "// fake: when MODE=3,entry=copy oob\n"
                   "kernel void ref(global float *b, global const float *a) {}\n"
                   "kernel void copy(global float *b, global const float *a) {}\n");
    session_init(&s, write_kernel("stray.cl", text), NULL);
    s.o.compilers = 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    for (int mode = 0; mode < 8; mode++) {
        char config[32];
        (void)snprintf(config, sizeof(config), "MODE=%d", mode);
        if (mode != 3)
            assert_int_equal(session_find(&s, config)->outcome, KOPT_OUT_OK);
    }
    session_end(&s);
}

/* The poison of the first launch, 0xFF bytes, is the right answer. */
static void what_is_left_out_is_wrong_even_where_minus_one_is_right(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("minus_one.cl",
                              "#pragma kopt kernel copy\n"
                              "#pragma kopt lang opencl\n"
                              "#pragma kopt param MODE {0,1,2}\n"
                              "#pragma kopt default MODE=0\n"
                              "#pragma kopt block 16\n"
                              "#pragma kopt grid 64\n"
                              "#pragma kopt arg a i32[1024] constant(-1)  b i32[1024] out\n"
                              "#pragma kopt reference ref block 16 grid 64\n"
                              "#pragma kopt check b against kernel ref\n"
                              "// fake: out 1 = copy 0\n"
                              "// fake: when MODE=1,entry=copy partial\n"
                              "kernel void ref(global const int *a, global int *b) {}\n"
                              "kernel void copy(global const int *a, global int *b) {}\n"),
                 NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_int_equal(session_find(&s, "MODE=0")->outcome, KOPT_OUT_OK);
    assert_int_equal(session_find(&s, "MODE=1")->outcome, KOPT_OUT_WRONG);
    assert_non_null(strstr(session_find(&s, "MODE=1")->message,
                           "512 of 1024 elements outside the tolerance, the first at 512"));
    assert_non_null(strstr(session_find(&s, "MODE=1")->message, "never written"));
    assert_int_equal(session_find(&s, "MODE=2")->outcome, KOPT_OUT_OK);
    session_end(&s);
}

static void inputs_are_restored_before_every_launch(void **state)
{
    (void)state;
    struct session s;
    session_init(
        &s,
        write_kernel("dirty.cl",
                     "#pragma kopt kernel add\n"
                     "#pragma kopt lang opencl\n"
                     "#pragma kopt param MODE {0,1}\n"
                     "#pragma kopt block 16\n"
                     "#pragma kopt grid 64\n"
                     "#pragma kopt arg a f32[1024] normal  b f32[1024] inout constant(0)\n"
                     "#pragma kopt reference ref block 16 grid 64\n"
                     "#pragma kopt check b against kernel ref rtol 1e-6\n"
                     "// fake: out 1 = copy 0\n"
                     "// fake: when entry=add dirty\n"
                     "kernel void ref(global const float *a, global float *b) {}\n"
                     "kernel void add(global const float *a, global float *b) {}\n"),
        NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_int_equal(s.report.progress.by_outcome[KOPT_OUT_OK], 2);
    session_end(&s);
}

static void nothing_valid_is_a_failure_that_shows_the_first_reason(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("broken.cl",
                              "#pragma kopt kernel k\n"
                              "#pragma kopt lang opencl\n"
                              "#pragma kopt param A {1,2,3}\n"
                              "#pragma kopt block 16\n"
                              "#pragma kopt grid 4\n"
                              "#pragma kopt arg b f32[64] out\n"
                              "// fake: compile_error \"the compiler's own words\"\n"
                              "kernel void k(global float *b) {}\n"),
                 NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EFAILED);
    assert_non_null(strstr(s.err.message, "the compiler's own words"));
    assert_true(s.has_report);
    assert_int_equal(s.report.progress.by_outcome[KOPT_OUT_COMPILE_ERROR], 3);
    session_end(&s);
}

static void an_empty_space_names_the_rule(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("empty.cl",
                              "#pragma kopt kernel k\n"
                              "#pragma kopt lang opencl\n"
                              "#pragma kopt param A {1,2,3}\n"
                              "#pragma kopt require A > 1\n"
                              "#pragma kopt require A < 2 : \"too large for this\"\n"
                              "#pragma kopt block 16\n"
                              "#pragma kopt grid 4\n"
                              "#pragma kopt arg b f32[64] out\n"
                              "kernel void k(global float *b) {}\n"),
                 NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EFAILED);
    assert_non_null(strstr(s.err.message, "A < 2"));
    assert_non_null(strstr(s.err.message, "too large for this"));
    assert_int_equal(s.err.line, 5);
    assert_int_equal(s.err.column, 22);
    assert_string_equal(s.err.excerpt, "#pragma kopt require A < 2 : \"too large for this\"");
    session_end(&s);
}

struct count {
    const char *config;
    size_t n;
};

static int count_rows(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct count *c = user;
    (void)subject;
    (void)run;
    c->n += !c->config || strcmp(r->config, c->config) == 0;
    return 1;
}

/* How many rows a store has of a configuration (NULL: of all). */
static size_t rows_of(const char *store, const char *config)
{
    struct count c = {config, 0};
    kopt_store *st = NULL;
    const kopt_result_filter f = {.outcome = -1};
    assert_int_equal(kopt_store_open(store, 0, &st, NULL), KOPT_OK);
    assert_int_equal(kopt_store_results(st, &f, count_rows, &c, NULL), KOPT_OK);
    kopt_store_close(st);
    return c.n;
}

static void no_memory_in_a_worker_is_stored_for_nobody(void **state)
{
    (void)state;
    static const char *const actions[] = {"compile_full", "host_full"};
    for (size_t i = 0; i < 2; i++) {
        struct session s;
        char text[1024];
        (void)snprintf(text, sizeof(text),
                       "#pragma kopt kernel k\n"
                       "#pragma kopt lang opencl\n"
                       "#pragma kopt param A {0,1,2,3,4,5}\n"
                       "#pragma kopt default A=0\n"
                       "#pragma kopt block 16\n"
                       "#pragma kopt grid 4\n"
                       "#pragma kopt arg b f32[64] out\n"
                       "// fake: when A=3 %s\n"
                       "kernel void k(global float *b) {}\n",
                       actions[i]);
        (void)remove("full.db");
        session_init(&s, write_kernel("full.cl", text), "full.db");
        session_run(&s);
        assert_int_equal(s.status, KOPT_ENOMEM);
        assert_non_null(strstr(s.err.message, "out of memory"));
        assert_true(s.err.hint[0]);
        session_end(&s);
        assert_int_equal(rows_of("full.db", "{\"A\":0}"), 1);
        assert_int_equal(rows_of("full.db", "{\"A\":3}"), 0);
    }
}

static void a_lost_device_ends_the_session_and_keeps_what_was_measured(void **state)
{
    (void)state;
    struct session s;
    char folder[4000];
    char path[4096];
    assert_non_null(getcwd(folder, sizeof(folder)));
    (void)snprintf(path, sizeof(path), "%s/lost.state", folder);
    (void)remove(path);
    (void)remove("lost.db");
    assert_int_equal(setenv("KOPT_FAKE_STATE", path, 1), 0);
    session_init(&s,
                 write_kernel("lost.cl", "#pragma kopt kernel k\n"
                                         "#pragma kopt lang opencl\n"
                                         "#pragma kopt param A {0,1,2,3,4,5,6,7,8,9}\n"
                                         "#pragma kopt default A=0\n"
                                         "#pragma kopt block 16\n"
                                         "#pragma kopt grid 4\n"
                                         "#pragma kopt arg b f32[64] out\n"
                                         "// fake: when A=5 lost\n"
                                         "kernel void k(global float *b) {}\n"),
                 "lost.db");
    session_run(&s);
    assert_int_equal(s.status, KOPT_EDEVICE);
    assert_non_null(strstr(s.err.message, "cannot be opened again"));
    assert_true(s.n_seen >= 1);
    session_end(&s);
    size_t rows = rows_of("lost.db", NULL);
    assert_in_range(rows, 1, 9);
    /* Whether it was the candidate's fault nobody knows: it is left for the next run. */
    assert_int_equal(rows_of("lost.db", "{\"A\":5}"), 0);
    (void)remove(path);
    s.n_seen = 0;
    s.warnings = 0;
    session_run(&s);
    assert_int_equal(s.status, KOPT_EDEVICE);
    assert_true(s.n_seen >= rows);
    assert_int_equal(rows_of("lost.db", "{\"A\":5}"), 0);
    session_end(&s);
    assert_int_equal(unsetenv("KOPT_FAKE_STATE"), 0);
    (void)remove(path);
}

static void a_slow_candidate_is_dropped_early(void **state)
{
    (void)state;
    struct session s;
    session_init(&s,
                 write_kernel("slow.cl", "#pragma kopt kernel k\n"
                                         "#pragma kopt lang opencl\n"
                                         "#pragma kopt param A {1,2,3,4,5,6,7,8}\n"
                                         "#pragma kopt default A=1\n"
                                         "#pragma kopt block 16\n"
                                         "#pragma kopt grid 4\n"
                                         "#pragma kopt arg b f32[64] out\n"
                                         "// fake: time 1000\n"
                                         "// fake: add A 1000\n"
                                         "kernel void k(global float *b) {}\n"),
                 NULL);
    s.o.compilers = 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_false(session_find(&s, "A=1")->dropped);
    assert_true(session_find(&s, "A=8")->dropped);
    assert_int_equal(s.warnings, 1); /* no check declared */
    session_end(&s);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    struct session s;
    const char *kernel = write_kernel("ok.cl", every_fault);
    session_init(&s, kernel, NULL);
    s.o.device = "gpu:0";
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    session_init(&s, kernel, NULL);
    s.o.device = "cuda:0"; /* the file is OpenCL C */
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    session_init(&s, kernel, NULL);
    s.o.max_fraction = 1.5;
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    session_init(&s, kernel, NULL);
    s.o.strategy = "no-such-strategy";
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    session_init(&s, kernel, NULL);
    s.o.device = "fake:7";
    session_run(&s);
    assert_true(s.status == KOPT_ENOTFOUND || s.status == KOPT_EENV);
    session_init(&s, "no-such-file.cl", NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_is_told_apart_and_none_stops_the_search),
        cmocka_unit_test(a_stray_write_does_not_condemn_those_after_it),
        cmocka_unit_test(what_is_left_out_is_wrong_even_where_minus_one_is_right),
        cmocka_unit_test(inputs_are_restored_before_every_launch),
        cmocka_unit_test(nothing_valid_is_a_failure_that_shows_the_first_reason),
        cmocka_unit_test(an_empty_space_names_the_rule),
        cmocka_unit_test(no_memory_in_a_worker_is_stored_for_nobody),
        cmocka_unit_test(a_lost_device_ends_the_session_and_keeps_what_was_measured),
        cmocka_unit_test(a_slow_candidate_is_dropped_early),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests_name("session/outcomes", tests, NULL, NULL);
}
