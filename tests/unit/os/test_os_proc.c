/* SPDX-License-Identifier: MIT */
/* The test program is its own child: called with a word, it plays that part. */
#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "support/folder.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char self[4096];

/* --- the child
 * -------------------------------------------------------------------------------- */

static int echo(void)
{
    struct kp_buf b = KP_BUF_INIT(KP_FRAME_MAX);
    while (kp_frame_read(KP_PROC_FD, &b, NULL) == KOPT_OK)
        if (kp_frame_write(KP_PROC_FD, b.ptr, b.len, NULL) != KOPT_OK)
            return 1;
    kp_buf_deinit(&b);
    return 0;
}

/* Sends the process id of a grandchild that would sleep for ever. */
static _Noreturn void with_grandchild(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            (void)pause();
    }
    (void)kp_frame_write(KP_PROC_FD, &pid, sizeof(pid), NULL);
    for (;;)
        (void)pause();
}

static int count(void)
{
    for (uint32_t n = 0; n < 1000000; n++) {
        if (kp_frame_write(KP_PROC_FD, &n, sizeof(n), NULL) != KOPT_OK)
            return 1;
        kp_clock_sleep_ns(1000000);
    }
    return 0;
}

static int play(const char *part)
{
    if (strcmp(part, "echo") == 0)
        return echo();
    if (strcmp(part, "grandchild") == 0)
        with_grandchild();
    if (strcmp(part, "count") == 0)
        return count();
    if (strcmp(part, "crash") == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
        (void)raise(SIGSEGV);
    }
    if (strcmp(part, "env") == 0) {
        const char *v = getenv("KOPT_TEST_ENV");
        (void)kp_frame_write(KP_PROC_FD, v ? v : "", v ? strlen(v) : 0, NULL);
        (void)printf("to the output file\n");
        return 0;
    }
    return 3;
}

/* --- the parent
 * ------------------------------------------------------------------------------- */

static void start(struct kp_proc *p, const char *part, const char *output)
{
    const char *argv[] = {"child", part, NULL};
    const char *env[] = {"KOPT_TEST_ENV=grüße", NULL};
    struct kp_proc_options o = {.path = self, .argv = argv, .env = env, .output_path = output};
    kopt_error err = {0};
    if (kp_proc_start(&o, p, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static int next_frame(struct kp_proc *p, struct kp_buf *b)
{
    struct kp_proc *list[] = {p};
    int got;
    int64_t until = kp_clock_ns() + (int64_t)20 * 1000000000;
    while ((got = kp_proc_frame(p, b)) == 0 && kp_clock_ns() < until)
        kp_proc_wait(list, 1, -1, 100);
    return got;
}

static void frames_of_any_size_come_back_whole(void **state)
{
    (void)state;
    struct kp_proc p;
    struct kp_buf b = KP_BUF_INIT(KP_FRAME_MAX);
    static const size_t sizes[] = {0, 1, 4, 65535, 65536, 3000000};
    start(&p, "echo", NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *data = kp_calloc(sizes[i] + 1, 1);
        for (size_t k = 0; k < sizes[i]; k++)
            data[k] = (unsigned char)(k * 31 + i);
        assert_int_equal(kp_frame_write(p.fd, data, sizes[i], NULL), KOPT_OK);
        assert_int_equal(next_frame(&p, &b), 1);
        assert_int_equal(b.len, sizes[i]);
        assert_memory_equal(b.ptr, data, sizes[i]);
        kp_free(data);
    }
    kp_proc_kill(&p);
    kp_buf_deinit(&b);
}

static void a_missing_program_is_reported_where_it_is_started(void **state)
{
    (void)state;
    const char *argv[] = {"x", NULL};
    struct kp_proc_options o = {.path = "/nonexistent/program", .argv = argv};
    struct kp_proc p;
    kopt_error err;
    assert_int_equal(kp_proc_start(&o, &p, &err), KOPT_EENV);
    assert_non_null(strstr(err.message, "/nonexistent/program"));
    assert_int_equal(p.pid, 0);
    kp_proc_kill(&p);
}

static void what_is_missing_before_the_start_is_told_apart(void **state)
{
    (void)state;
    const char *argv[] = {"child", "count", NULL};
    struct kp_proc_options o = {.path = self, .argv = argv, .output_path = "no/such/out"};
    struct kp_proc p;
    kopt_error err;
    assert_int_equal(kp_proc_start(&o, &p, &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "cannot open no/such/out: No such file"));
    o.output_path = NULL;
    o.cwd = "no/such/folder";
    assert_int_equal(kp_proc_start(&o, &p, &err), KOPT_EENV);
    assert_non_null(strstr(err.message, "No such file"));
    /* Descriptors for the parent, none for the child: it must not look like a good start. */
    struct rlimit old;
    struct rlimit few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 10;
    o.cwd = NULL;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    kopt_status st = kp_proc_start(&o, &p, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(st, KOPT_EENV);
    assert_non_null(strstr(err.message, "Too many open files"));
    assert_int_equal(p.pid, 0);
}

/* SIGCHLD ignored, as it may be by inheritance: the kernel reaps, and no status is left. */
static void an_ended_child_is_seen_where_nobody_may_wait_for_it(void **state)
{
    (void)state;
    struct kp_proc p;
    char how[64] = "";
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    assert_true(old != SIG_ERR);
    start(&p, "none", NULL);
    bool ended = false;
    for (int i = 0; i < 5000 && !(ended = kp_proc_ended(&p, how, sizeof(how))); i++)
        kp_clock_sleep_ns(1000000);
    assert_true(signal(SIGCHLD, old) != SIG_ERR);
    assert_true(ended);
    assert_int_equal(p.pid, 0);
    assert_string_equal(how, "ended, its status was taken by somebody else");
}

static void want_of_memory_does_not_look_like_the_end_of_the_other_side(void **state)
{
    (void)state;
    struct kp_proc p;
    struct kp_buf small = KP_BUF_INIT(3);
    struct kp_buf b = KP_BUF_INIT(100);
    start(&p, "echo", NULL);
    kp_alloc_fail_at(1);
    assert_int_equal(kp_proc_frame(&p, &b), KP_FRAME_NO_MEMORY);
    kp_alloc_fail_at(0);
    assert_int_equal(kp_frame_write(p.fd, "four", 4, NULL), KOPT_OK);
    assert_int_equal(next_frame(&p, &small), KP_FRAME_NO_MEMORY);
    assert_int_equal(next_frame(&p, &b), 1); /* nothing is lost */
    assert_string_equal(kp_buf_text(&b), "four");
    kp_proc_kill(&p);
    kp_buf_deinit(&small);
    kp_buf_deinit(&b);
}

static void a_missing_helper_is_told_with_its_place(void **state)
{
    (void)state;
    char *found = NULL;
    kopt_error err;
    assert_int_equal(setenv("KOPT_LIBEXEC", "/typo", 1), 0);
    assert_int_equal(kp_proc_find("kopt-worker", &found, &err), KOPT_EENV);
    assert_null(found);
    assert_non_null(strstr(err.message, "/typo/kopt-worker: No such file"));
    assert_non_null(strstr(err.hint, "KOPT_LIBEXEC names that folder"));
    kp_alloc_fail_at(1);
    assert_int_equal(kp_proc_find("kopt-worker", &found, &err), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    assert_int_equal(unsetenv("KOPT_LIBEXEC"), 0);
    assert_int_equal(kp_proc_find("no-such-helper", &found, &err), KOPT_EENV);
    assert_non_null(strstr(err.message, "kopt/no-such-helper"));
}

static void a_crash_is_told_by_its_signal(void **state)
{
    (void)state;
    struct kp_proc p;
    struct kp_buf b = KP_BUF_INIT(100);
    char how[64] = "";
    start(&p, "crash", NULL);
    assert_int_equal(next_frame(&p, &b), -1);
    for (int i = 0; i < 5000 && !kp_proc_ended(&p, how, sizeof(how)); i++)
        kp_clock_sleep_ns(1000000);
    assert_non_null(strstr(how, "SIGSEGV"));
    assert_int_equal(p.pid, 0);
    kp_buf_deinit(&b);
}

static void ending_a_child_ends_what_it_started(void **state)
{
    (void)state;
    struct kp_proc p;
    struct kp_buf b = KP_BUF_INIT(100);
    pid_t grandchild;
    start(&p, "grandchild", NULL);
    assert_int_equal(next_frame(&p, &b), 1);
    memcpy(&grandchild, b.ptr, sizeof(grandchild));
    assert_int_equal(kill(grandchild, 0), 0);
    kp_proc_kill(&p);
    bool gone = false;
    for (int i = 0; i < 5000 && !gone; i++) {
        char path[64];
        char stat[512] = "";
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)grandchild);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, stat, sizeof(stat) - 1) : 0;
        if (fd >= 0)
            (void)close(fd);
        const char *end = n > 0 ? strrchr(stat, ')') : NULL;
        gone = !end || end[2] == 'Z'; /* whoever reaps orphans here may be slow */
        kp_clock_sleep_ns(1000000);
    }
    assert_true(gone);
    kp_buf_deinit(&b);
}

static void a_paused_child_stands_still(void **state)
{
    (void)state;
    struct kp_proc p;
    struct kp_buf b = KP_BUF_INIT(100);
    start(&p, "count", NULL);
    assert_int_equal(next_frame(&p, &b), 1);
    kp_proc_pause(&p, true);
    kp_clock_sleep_ns(50000000);
    while (kp_proc_frame(&p, &b) > 0) {
    }
    kp_clock_sleep_ns(200000000);
    assert_int_equal(kp_proc_frame(&p, &b), 0);
    kp_proc_pause(&p, false);
    assert_int_equal(next_frame(&p, &b), 1);
    kp_proc_pause(&p, true);
    kp_proc_kill(&p); /* a stopped one can be ended, too */
    kp_buf_deinit(&b);
}

static void environment_and_output_reach_the_child(void **state)
{
    (void)state;
    struct kp_proc p;
    struct kp_buf b = KP_BUF_INIT(1000);
    char how[64];
    start(&p, "env", "child.out");
    assert_int_equal(next_frame(&p, &b), 1);
    assert_string_equal(kp_buf_text(&b), "grüße");
    for (int i = 0; i < 5000 && !kp_proc_ended(&p, how, sizeof(how)); i++)
        kp_clock_sleep_ns(1000000);
    assert_string_equal(how, "exit status 0");
    kp_buf_clear(&b);
    assert_int_equal(kp_file_read("child.out", &b, NULL), KOPT_OK);
    assert_string_equal(kp_buf_text(&b), "to the output file\n");
    assert_int_equal(unlink("child.out"), 0);
    kp_buf_deinit(&b);
}

static void files_are_read_up_to_a_limit(void **state)
{
    (void)state;
    struct kp_buf b = KP_BUF_INIT(5);
    kopt_error err;
    assert_int_equal(kp_file_put("f.txt", "12345", 5, NULL), KOPT_OK);
    assert_int_equal(kp_file_read("f.txt", &b, NULL), KOPT_OK);
    assert_string_equal(kp_buf_text(&b), "12345");
    kp_buf_clear(&b);
    assert_int_equal(kp_file_put("f.txt", "123456", 6, NULL), KOPT_OK);
    assert_int_equal(kp_file_read("f.txt", &b, &err), KOPT_ERANGE);
    kp_buf_clear(&b);
    assert_int_equal(kp_file_read(".", &b, &err), KOPT_EIO);
    assert_int_equal(kp_file_read("absent", &b, &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "absent"));
    assert_int_equal(kp_file_put("no/such/folder", "x", 1, &err), KOPT_EIO);
    assert_int_equal(kp_file_put("/dev/full", "x", 1, &err), KOPT_EFULL);
    assert_int_equal(unlink("f.txt"), 0);
    kp_buf_deinit(&b);
}

static void folders_come_and_go(void **state)
{
    (void)state;
    char *dir = NULL;
    assert_int_equal(kp_dir_temp("kopt-test", &dir, NULL), KOPT_OK);
    char *deep = kp_path_join(dir, "a/b");
    char *file = kp_path_join(deep, "f");
    assert_true(make_folder(deep));
    assert_true(make_folder(deep));
    assert_int_equal(kp_file_put(file, "x", 1, NULL), KOPT_OK);
    assert_true(kp_file_exists(file));
    kp_dir_remove(dir);
    assert_false(kp_file_exists(dir));
    kp_free(file);
    kp_free(deep);
    kp_free(dir);
}

static void paths_are_joined_and_split(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"}};
    for (size_t i = 0; i < 4; i++) {
        char *p = kp_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(p, cases[i][2]);
        kp_free(p);
    }
    char *d = kp_path_dir("x/y/z.cl");
    assert_string_equal(d, "x/y");
    kp_free(d);
    d = kp_path_dir("z.cl");
    assert_string_equal(d, ".");
    kp_free(d);
    d = kp_path_dir("/z.cl");
    assert_string_equal(d, "/");
    kp_free(d);
}

static void times_are_written_as_iso(void **state)
{
    (void)state;
    char out[32];
    kp_clock_iso(INT64_C(1769860800123456), out);
    assert_string_equal(out, "2026-01-31T12:00:00.123Z");
    kp_clock_iso(-1, out);
    assert_string_equal(out, "1969-12-31T23:59:59.999Z");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return play(argv[1]);
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_any_size_come_back_whole),
        cmocka_unit_test(a_missing_program_is_reported_where_it_is_started),
        cmocka_unit_test(what_is_missing_before_the_start_is_told_apart),
        cmocka_unit_test(an_ended_child_is_seen_where_nobody_may_wait_for_it),
        cmocka_unit_test(want_of_memory_does_not_look_like_the_end_of_the_other_side),
        cmocka_unit_test(a_missing_helper_is_told_with_its_place),
        cmocka_unit_test(a_crash_is_told_by_its_signal),
        cmocka_unit_test(ending_a_child_ends_what_it_started),
        cmocka_unit_test(a_paused_child_stands_still),
        cmocka_unit_test(environment_and_output_reach_the_child),
        cmocka_unit_test(files_are_read_up_to_a_limit),
        cmocka_unit_test(folders_come_and_go),
        cmocka_unit_test(paths_are_joined_and_split),
        cmocka_unit_test(times_are_written_as_iso),
    };
    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
