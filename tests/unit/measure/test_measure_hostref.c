/* SPDX-License-Identifier: MIT */
/* References in C: compiled and called in processes of their own. */
#include "measure/data.h"
#include "os/clock.h"
#include "os/file.h"
#include "support/folder.h"
#include "unit/measure/kernels.h"

#include <unistd.h>

static const char twice[] =
    "#pragma kopt arg A f32[N] gen(i)  f f32 = 2.5  tile local f32[P]  C f32[N] out\n"
    "#pragma kopt check C against ref.c:twice\n";

static void write_file(const char *path, const char *text)
{
    assert_int_equal(kp_file_put(path, text, strlen(text), NULL), KOPT_OK);
}

static int n_ticks;

static void count_tick(void *user)
{
    ++*(int *)user;
}

static kopt_status run(const char *c_source, int64_t timeout_ns, int wake_fd, kopt_error *err)
{
    struct bound x;
    const char *files[4] = {"a.bin", NULL, NULL, NULL};
    *err = (kopt_error){0};
    write_file("ref.c", c_source);
    bind(&x, twice, NULL);
    assert_int_equal(kp_data_write(x.b, 0, 1, "a.bin", NULL), KOPT_OK);
    (void)unlink("want.bin");
    struct kp_host_reference h = {.bound = x.b,
                                  .check = 0,
                                  .files = files,
                                  .scratch = "scratch of its own",
                                  .timeout_ns = timeout_ns,
                                  .wake_fd = wake_fd,
                                  .tick = count_tick,
                                  .user = &n_ticks};
    assert_true(make_folder(h.scratch));
    kopt_status st = kp_host_reference_run(&h, "want.bin", err);
    unbind(&x);
    return st;
}

static const int64_t LONG = (int64_t)20 * 1000000000;
static const char good[] = "void twice(const float *A, float f, float *C)\n"
                           "{ for (int i = 0; i < 8; i++) C[i] = f * A[i]; }\n";

static void expect_good(void)
{
    struct kp_buf b = KP_BUF_INIT(64);
    kopt_error err;
    if (run(good, LONG, -1, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(kp_file_read("want.bin", &b, NULL), KOPT_OK);
    assert_int_equal(b.len, 32);
    for (size_t i = 0; i < 8; i++) {
        float v;
        memcpy(&v, b.ptr + 4 * i, 4);
        assert_true(v == 2.5F * (float)i);
    }
    kp_buf_deinit(&b);
}

static void a_good_one_gives_its_output(void **state)
{
    (void)state;
    expect_good();
}

static void the_compiler_may_have_words_behind_its_name(void **state)
{
    (void)state;
    assert_int_equal(setenv("CC", " cc  -DNOTHING=1 ", 1), 0);
    expect_good();
    assert_int_equal(unsetenv("CC"), 0);
}

static void what_does_not_compile_shows_the_compilers_line(void **state)
{
    (void)state;
    kopt_error err;
    assert_int_equal(
        run("void twice(const float *A, float f, float *C) { nonsense }\n", LONG, -1, &err),
        KOPT_EINPUT);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_int_equal(err.line, 8);
}

/* No word of a file of ours, which is gone when this is read. */
static void told_at_the_check(const kopt_error *err)
{
    assert_int_equal(err->line, 8);
    assert_string_equal(err->file, "k.cl");
    assert_non_null(strstr(err->excerpt, "#pragma kopt check C against ref.c:twice"));
    assert_true(strncmp(err->message, "check of C: ", 12) == 0);
    assert_null(strstr(err->message, "scratch"));
    assert_null(strstr(err->message, "kopt-call"));
    assert_null(strstr(err->message, ".so"));
}

static void a_function_that_is_not_there_is_named(void **state)
{
    (void)state;
    kopt_error err;
    assert_int_equal(run("void thrice(float *C) { C[0] = 1; }\n", LONG, -1, &err), KOPT_EINPUT);
    told_at_the_check(&err);
    assert_non_null(strstr(err.message, "ref.c has no function 'twice'"));
    assert_non_null(
        strstr(err.message, "void twice(const float *A, float f, float *C)")); /* no local */
    assert_int_equal(run("void twice(const float *A, float f, float *C);\n", LONG, -1, &err),
                     KOPT_EINPUT);
    told_at_the_check(&err); /* declared only */
    assert_non_null(strstr(err.message, "twice"));
    assert_int_equal(run("void more(void);\n"
                         "void twice(const float *A, float f, float *C) { more(); }\n",
                         LONG, -1, &err),
                     KOPT_EINPUT);
    told_at_the_check(&err);
    assert_non_null(strstr(err.message, "more"));
}

static void other_arguments_are_told_with_the_right_ones(void **state)
{
    (void)state;
    kopt_error err;
    static const char *const bad[] = {"const float *A, float f, float *C, int n",
                                      "const float *A, float *C", "float f, float *A, float *C",
                                      "int n, float f, float *C"};
    for (size_t i = 0; i < 4; i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "void twice(%s) { C[0] = 1; }\n", bad[i]);
        assert_int_equal(run(text, LONG, -1, &err), KOPT_EINPUT);
        told_at_the_check(&err);
        assert_non_null(strstr(err.message, "twice() of ref.c does not take"));
        assert_non_null(strstr(err.hint, "void twice(const float *A, float f, float *C)"));
    }
    assert_int_equal(
        run("void twice(const float *A, float f, float *C) { C[0] = 1;\n", LONG, -1, &err),
        KOPT_EINPUT);
    told_at_the_check(&err); /* not closed: the compiler sees it in the wrapper */
    assert_non_null(strstr(err.message, "does not compile"));
}

static void a_macro_may_be_the_function(void **state)
{
    (void)state;
    kopt_error err;
    assert_int_equal(run("static void f(const float *A, float x, float *C) { C[0] = x*A[0]; }\n"
                         "#define twice(a, b, c) f((a), (b), (c))\n",
                         LONG, -1, &err),
                     KOPT_OK);
}

static void a_missing_file_is_told_with_its_folder(void **state)
{
    (void)state;
    struct bound x;
    kopt_error err = {0};
    char here[1024];
    assert_non_null(getcwd(here, sizeof(here)));
    (void)unlink("none.c");
    bind(&x, "#pragma kopt arg C f32[N] out\n#pragma kopt check C against none.c\n", NULL);
    assert_int_equal(kp_host_reference_exists(x.b, 0, &err), KOPT_EINPUT);
    assert_int_equal(err.line, 8);
    assert_non_null(strstr(err.message, "none.c: "));
    write_file("none.c", "");
    assert_int_equal(kp_host_reference_exists(x.b, 0, &err), KOPT_OK);
    assert_int_equal(unlink("none.c"), 0);
    unbind(&x);
}

static void a_missing_compiler_is_named(void **state)
{
    (void)state;
    kopt_error err;
    assert_int_equal(setenv("CC", "/nonexistent/cc", 1), 0);
    assert_int_equal(run(good, LONG, -1, &err), KOPT_EENV);
    assert_int_equal(unsetenv("CC"), 0);
    assert_non_null(strstr(err.message, "/nonexistent/cc"));
    assert_true(err.hint[0] != 0);
}

static void a_crash_is_told(void **state)
{
    (void)state;
    kopt_error err;
    assert_int_equal(run("#include <stdlib.h>\n"
                         "void twice(const float *A, float f, float *C) { abort(); }\n",
                         LONG, -1, &err),
                     KOPT_ECRASH);
    assert_non_null(strstr(err.message, "SIGABRT"));
    assert_non_null(strstr(err.message, "twice"));
    told_at_the_check(&err);
    assert_int_equal(run("#include <stdlib.h>\n"
                         "void twice(const float *A, float f, float *C) { _Exit(3); }\n",
                         LONG, -1, &err),
                     KOPT_ECRASH);
    assert_non_null(strstr(err.message, "exit status 3"));
    assert_false(kp_file_exists("want.bin"));
    assert_int_equal(run("#include <assert.h>\n"
                         "void twice(const float *A, float f, float *C) { assert(f > 9); }\n",
                         LONG, -1, &err),
                     KOPT_ECRASH);
    assert_non_null(strstr(err.hint, "f > 9"));
}

static const char endless[] = "void twice(const float *A, float f, volatile float *C)\n"
                              "{ for (;;) C[0] = f; }\n";

static void one_that_never_ends_is_ended(void **state)
{
    (void)state;
    kopt_error err;
    int64_t begun = kp_clock_ns();
    n_ticks = 0;
    assert_int_equal(run(endless, 500000000, -1, &err), KOPT_ETIMEOUT);
    told_at_the_check(&err);
    assert_non_null(strstr(err.message, "0.5 s"));
    assert_true(n_ticks >= 2);
    assert_true(kp_clock_ns() - begun < LONG);
}

static void a_byte_ends_it(void **state)
{
    (void)state;
    kopt_error err;
    int fds[2];
    int64_t begun = kp_clock_ns();
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "s", 1), 1);
    assert_int_equal(run(endless, 10 * LONG, fds[0], &err), KOPT_EINTR);
    assert_true(kp_clock_ns() - begun < LONG);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_one_gives_its_output),
        cmocka_unit_test(the_compiler_may_have_words_behind_its_name),
        cmocka_unit_test(what_does_not_compile_shows_the_compilers_line),
        cmocka_unit_test(a_function_that_is_not_there_is_named),
        cmocka_unit_test(other_arguments_are_told_with_the_right_ones),
        cmocka_unit_test(a_macro_may_be_the_function),
        cmocka_unit_test(a_missing_file_is_told_with_its_folder),
        cmocka_unit_test(a_missing_compiler_is_named),
        cmocka_unit_test(a_crash_is_told),
        cmocka_unit_test(one_that_never_ends_is_ended),
        cmocka_unit_test(a_byte_ends_it),
    };
    (void)unsetenv("CC");
    return cmocka_run_group_tests_name("measure/hostref", tests, NULL, NULL);
}
