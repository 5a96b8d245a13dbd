/* SPDX-License-Identifier: MIT */
/* What a session says of references that are none. */
#include "session/session.h"

#define HEAD                         \
    "#pragma kopt kernel k\n"        \
    "#pragma kopt lang opencl\n"     \
    "#pragma kopt block 16\n"        \
    "#pragma kopt grid 4\n"          \
    "#pragma kopt param A {0,1,2}\n" \
    "// fake: time 9000\n"           \
    "kernel void k(global const float *a, global float *b) {}\n"
enum { CHECK_LINE = 9 };

static struct session s;

/* A kernel that copies nothing, `arg`, and a reference in C with this body. */
static void check_of(const char *arg, const char *body)
{
    char text[2048];
    (void)snprintf(text, sizeof(text), "void r(const float *a, float *b)\n{ %s }\n", body);
    (void)write_kernel("r.c", text);
    (void)snprintf(text, sizeof(text),
                   HEAD "#pragma kopt arg a f32[64] constant(1)  %s\n"
                        "#pragma kopt check b against r.c\n",
                   arg);
    session_init(&s, write_kernel("r.cl", text), NULL);
}

static void must_fail_at_the_check(kopt_status st, const char *words)
{
    session_run(&s);
    if (s.status != st)
        fail_msg("%d: %s", s.status, s.err.message);
    assert_int_equal(s.err.line, CHECK_LINE);
    assert_non_null(strstr(s.err.file, "r.cl"));
    if (!strstr(s.err.message, words))
        fail_msg("'%s' is not in '%s'", words, s.err.message);
    session_end(&s);
}

static void must_warn(const char *words)
{
    session_run(&s);
    assert_int_equal(s.warnings, 1);
    assert_non_null(strstr(s.last_warning, "r.cl:9: "));
    if (!strstr(s.last_warning, words))
        fail_msg("'%s' is not in '%s'", words, s.last_warning);
    session_end(&s);
}

static void one_that_leaves_its_output_is_warned_of(void **state)
{
    (void)state;
    check_of("b f32[64] inout", "(void)a; (void)b;");
    must_warn("leaves b as it was");
    check_of("b f32[64] inout", "b[63] += a[0];");
    session_run(&s);
    assert_int_equal(s.warnings, 0);
    session_end(&s);
}

static void one_that_reads_an_out_is_refused(void **state)
{
    (void)state;
    check_of("b f32[64] out", "for (int i = 0; i < 64; i++) b[i] += a[i];");
    must_fail_at_the_check(KOPT_EINPUT, "inout");
    check_of("b f32[64] inout", "for (int i = 0; i < 64; i++) b[i] += a[i];");
    session_run(&s);
    assert_int_equal(s.warnings, 0);
    session_end(&s);
}

static void some_nan_are_warned_of(void **state)
{
    (void)state;
    check_of("b f32[64] inout", "b[7] = b[9] = 0 * (a[0] / 0.0f);");
    must_warn("NaN for 2 of 64 elements of b, the first at 7");
    check_of("b f32[64] inout", "for (int i = 0; i < 64; i++) b[i] = 0 * (a[0] / 0.0f);");
    s.o.check = -1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_int_equal(s.warnings, 0);
    session_end(&s);
}

static void one_that_is_not_there_is_told_before_anything_runs(void **state)
{
    (void)state;
    check_of("b f32[64] out", "");
    assert_int_equal(remove("r.c"), 0);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EINPUT);
    assert_int_equal(s.err.line, CHECK_LINE);
    assert_non_null(strstr(s.err.message, "check of b: its reference "));
    assert_non_null(strstr(s.err.message, "r.c: "));
    session_end(&s);
}

static void a_reference_kernel_that_is_not_there_is_told_with_its_line(void **state)
{
    (void)state;
    session_init(&s,
                 write_kernel("k.cl",
                              HEAD "#pragma kopt arg a f32[64]  b f32[64] out\n"
                                   "#pragma kopt check b against kernel naive\n"
                                   "#pragma kopt reference naive block 16 grid 4\n"
                                   "// fake: when entry=naive compile_error \"no naive\"\n"),
                 NULL);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EINPUT);
    assert_non_null(strstr(s.err.message, "check of b: reference kernel naive: "));
    assert_int_equal(s.err.line, CHECK_LINE);
    session_end(&s);
}

struct phases {
    int n;
    int inputs;
    int reference;
    int searching;
};
static struct phases seen;

static void on_progress(void *user, const kopt_tune_progress *p)
{
    (void)user;
    seen.n++;
    seen.inputs += strcmp(p->phase, "writing the inputs") == 0;
    seen.reference += strcmp(p->phase, "computing the reference") == 0;
    seen.searching += strcmp(p->phase, "searching") == 0;
}

static void a_slow_one_is_seen_in_the_progress(void **state)
{
    (void)state;
    check_of("b f32[64] out", "for (int i = 0; i < 64; i++) b[i] = a[i];\n"
                              "extern unsigned sleep(unsigned); (void)sleep(2);");
    s.o.callbacks.progress = on_progress;
    session_run(&s);
    assert_true(seen.inputs >= 1 && seen.searching >= 1);
    /* At the start, then five times a second: 10; the machine may be busy. */
    assert_true(seen.reference >= 4);
    session_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_leaves_its_output_is_warned_of),
        cmocka_unit_test(one_that_reads_an_out_is_refused),
        cmocka_unit_test(some_nan_are_warned_of),
        cmocka_unit_test(one_that_is_not_there_is_told_before_anything_runs),
        cmocka_unit_test(a_reference_kernel_that_is_not_there_is_told_with_its_line),
        cmocka_unit_test(a_slow_one_is_seen_in_the_progress),
    };
    return cmocka_run_group_tests_name("session/references", tests, NULL, NULL);
}
