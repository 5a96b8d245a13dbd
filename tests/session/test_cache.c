/* SPDX-License-Identifier: MIT */
/* Compiled images outlive a session: another problem of the same kernel does not compile. */
#include "session/session.h"

#include "os/file.h"

/* N is no macro. */
static const char text[] = "#pragma kopt kernel k\n"
                           "#pragma kopt lang opencl\n"
                           "#pragma kopt problem N\n"
                           "#pragma kopt param A {0,1,2,3}\n"
                           "#pragma kopt default A=0\n"
                           "#pragma kopt block 16\n"
                           "#pragma kopt grid 4\n"
                           "#pragma kopt arg b f32[N] out\n"
                           "// fake: time 9000\n"
                           "// fake: add A -500\n"
                           "kernel void k(global float *b) {}\n";

/* Did any compiler have work? */
static bool run(const char *source, const char *problem, const char *cache)
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
    assert_string_equal(s.report.best_text, "A=3");
    bool compiled = s.report.split.compile_s > 0;
    session_end(&s);
    return compiled;
}

static void another_problem_is_not_compiled(void **state)
{
    (void)state;
    assert_true(run(text, "N=64", "images/here"));
    assert_false(run(text, "N=128", "images/here"));
    assert_true(run(text, "N=128", NULL));
    assert_true(run(text, "N=128", "images/elsewhere"));
    kp_dir_remove("images");
}

static void another_source_is(void **state)
{
    (void)state;
    char edited[sizeof(text) + 32];
    (void)snprintf(edited, sizeof(edited), "%s/* edited */\n", text);
    assert_true(run(text, "N=64", "images"));
    assert_true(run(edited, "N=64", "images"));
    kp_dir_remove("images");
}

/* What does not compile is tried again: the next compiler may be kinder. */
static void failures_are_not_kept(void **state)
{
    (void)state;
    char failing[sizeof(text) + 64];
    (void)snprintf(failing, sizeof(failing), "%s// fake: when A=1 compile_error \"no\"\n",
                   text);
    for (int i = 0; i < 2; i++)
        assert_true(run(failing, "N=64", "images"));
    kp_dir_remove("images");
}

static void a_folder_that_cannot_be_used_is_none(void **state)
{
    (void)state;
    assert_int_equal(kp_file_put("plain", "x", 1, NULL), KOPT_OK);
    assert_true(run(text, "N=64", "plain/images"));
    (void)remove("plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_problem_is_not_compiled),
                                       cmocka_unit_test(another_source_is),
                                       cmocka_unit_test(failures_are_not_kept),
                                       cmocka_unit_test(a_folder_that_cannot_be_used_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
