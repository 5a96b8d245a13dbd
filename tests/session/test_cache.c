/* SPDX-License-Identifier: MIT */
/* Compiled images outlive a session: another problem of the same kernel does not compile. */
#include "session/session.h"

#include "os/file.h"

/* Each compilation takes 40 ms, which would be seen. N is no macro. */
static const char text[] = "#pragma kopt kernel k\n"
                           "#pragma kopt lang opencl\n"
                           "#pragma kopt problem N\n"
                           "#pragma kopt param A {0,1,2,3}\n"
                           "#pragma kopt default A=0\n"
                           "#pragma kopt block 16\n"
                           "#pragma kopt grid 4\n"
                           "#pragma kopt arg b f32[N] out\n"
                           "// fake: compile_slow 40\n"
                           "// fake: time 9000\n"
                           "// fake: add A -500\n"
                           "// fake: when A=3 compile_error \"no\"\n"
                           "kernel void k(global float *b) {}\n";

/* Seconds of compilation. */
static double run(const char *source, const char *problem, const char *cache)
{
    struct session s;
    const char *given[] = {problem};
    session_init(&s, write_kernel("cached.cl", source), NULL);
    s.o.problem = given;
    s.o.n_problem = 1;
    s.o.compile_cache = cache;
    session_run(&s);
    if (s.status != KOPT_OK)
        fail_msg("%s", s.err.message);
    assert_int_equal(session_measured(&s), 4);
    assert_int_equal(session_find(&s, "A=3")->outcome, KOPT_OUT_COMPILE_ERROR);
    assert_string_equal(s.report.best_text, "A=2");
    double seconds = s.report.split.compile_s;
    session_end(&s);
    return seconds;
}

static void another_problem_is_not_compiled(void **state)
{
    (void)state;
    /* The one that does not compile is tried each time; of the others' 120 ms nothing is left.
     */
    assert_true(run(text, "N=64", "images/here") >= 0.16);
    assert_true(run(text, "N=128", "images/here") < 0.12);
    assert_true(run(text, "N=128", NULL) >= 0.16);
    assert_true(run(text, "N=128", "images/elsewhere") >= 0.16);
    kp_dir_remove("images");
}

static void another_source_is(void **state)
{
    (void)state;
    char edited[sizeof(text) + 32];
    (void)snprintf(edited, sizeof(edited), "%s/* edited */\n", text);
    assert_true(run(text, "N=64", "images") >= 0.16);
    assert_true(run(edited, "N=64", "images") >= 0.16);
    kp_dir_remove("images");
}

static void a_folder_that_cannot_be_used_is_none(void **state)
{
    (void)state;
    assert_int_equal(kp_file_put("plain", "x", 1, NULL), KOPT_OK);
    assert_true(run(text, "N=64", "plain/images") >= 0.16);
    (void)remove("plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_problem_is_not_compiled),
                                       cmocka_unit_test(another_source_is),
                                       cmocka_unit_test(a_folder_that_cannot_be_used_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
