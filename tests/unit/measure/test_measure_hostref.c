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
                                  .wake_fd = wake_fd};
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
    assert_int_equal(run("#include <stdlib.h>\n"
                         "void twice(const float *A, float f, float *C) { _Exit(3); }\n",
                         LONG, -1, &err),
                     KOPT_ECRASH);
    assert_non_null(strstr(err.message, "exit status 3"));
    assert_false(kp_file_exists("want.bin"));
}

static const char endless[] = "void twice(const float *A, float f, volatile float *C)\n"
                              "{ for (;;) C[0] = f; }\n";

static void one_that_never_ends_is_ended(void **state)
{
    (void)state;
    kopt_error err;
    int64_t begun = kp_clock_ns();
    assert_int_equal(run(endless, 300000000, -1, &err), KOPT_ETIMEOUT);
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
        cmocka_unit_test(a_missing_compiler_is_named),
        cmocka_unit_test(a_crash_is_told),
        cmocka_unit_test(one_that_never_ends_is_ended),
        cmocka_unit_test(a_byte_ends_it),
    };
    (void)unsetenv("CC");
    return cmocka_run_group_tests_name("measure/hostref", tests, NULL, NULL);
}
