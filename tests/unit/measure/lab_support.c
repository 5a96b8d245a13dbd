/* SPDX-License-Identifier: MIT */
#include "lab_support.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char self[4096];
static char real_libexec[4096];
static char libexec[4096]; /* a folder with this program in it as kopt-worker */

/* --- the runner that misbehaves
 * ------------------------------------------------------------------- */

static bool reply(struct kp_json *j, const void *blob, size_t n)
{
    return kp_message_send(KP_PROC_FD, j, blob, n, NULL) == KOPT_OK;
}

static bool opened(int64_t id, int64_t index)
{
    struct kp_json *j = kp_message_new("is", "opened", id);
    struct kp_device_info info = {.backend = KP_BACKEND_FAKE, .index = (int)index};
    (void)snprintf(info.name, sizeof(info.name), "a runner of the test");
    info.is_cpu = getenv("KOPT_FAKE_CPU") != NULL;
    return kp_message_put_info(j, &info) && reply(j, NULL, 0);
}

static bool result(int64_t id, double median)
{
    struct kp_json *j = kp_message_new("is", "result", id);
    return kp_json_set_i64(j, "outcome", KOPT_OUT_OK) && kp_json_set_f64(j, "median", median) &&
           reply(j, &median, sizeof(median));
}

/* Descriptors over the session's socket: there should be none. */
static int strays(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        long fd = strtol(e->d_name, NULL, 10);
        n += fd > KP_PROC_FD && fd != dirfd(d);
    }
    if (!d)
        return -1;
    (void)closedir(d);
    return n;
}

/* Does the runner of this device end with its first candidate, and cannot be opened again? */
static bool dies(const char *part, int64_t index)
{
    return (strcmp(part, "second_dies") == 0 && index == 1) ||
           (strcmp(part, "two_die") == 0 && index < 2);
}

static bool misbehave(const char *part, int64_t id, int64_t index)
{
    if (strcmp(part, "no_json") == 0)
        return kp_frame_write(KP_PROC_FD, "what?\0", 6, NULL) == KOPT_OK;
    if (strcmp(part, "no_frame") == 0)
        return write(KP_PROC_FD, "\xff\xff\xff\xff", 4) == 4;
    if (strcmp(part, "another_id") == 0)
        return result(id + 1000, 1000);
    if (strcmp(part, "no_median") == 0)
        return result(id, (double)NAN);
    if (strcmp(part, "dies_holding") == 0) {
        struct kp_json *j = kp_message_new("is", "phase", id);
        (void)(kp_json_set_str(j, "phase", "hold") && reply(j, NULL, 0));
        kp_clock_sleep_ns(SECOND / 5);
        return false;
    }
    if (dies(part, index))
        return false;
    if (strcmp(part, "no_memory_once") == 0 && mkdir("no_memory.once", 0700) == 0) {
        struct kp_json *j = kp_message_new("is", "error", 0);
        (void)(kp_json_set_i64(j, "code", KOPT_ENOMEM) && reply(j, NULL, 0));
        return false;
    }
    if (strcmp(part, "refreshes") == 0) {
        struct kp_json *j = kp_message_new("is", "phase", id);
        (void)(kp_json_set_str(j, "phase", "refreshing") && reply(j, NULL, 0));
        kp_clock_sleep_ns(SECOND);
    }
    if (strcmp(part, "counts_files") == 0)
        return result(id, 1000 + strays());
    return result(id, 1000);
}

static int runner(const char *part)
{
    struct kp_buf frame = KP_BUF_INIT(KP_FRAME_MAX);
    struct kp_message m;
    bool ok = true;
    int64_t index = 0;
    while (ok && kp_frame_read(KP_PROC_FD, &frame, NULL) == KOPT_OK &&
           kp_message_parse(&frame, &m, NULL) == KOPT_OK) {
        int64_t id = kp_message_i64(&m, "id", 0);
        if (strcmp(kp_message_what(&m, "do"), "open") == 0) {
            index = kp_message_i64(&m, "index", 0);
            char mark[32];
            (void)snprintf(mark, sizeof(mark), "opened.%d", (int)index);
            bool again = dies(part, index) && mkdir(mark, 0700) != 0;
            ok = !again && opened(id, index);
        } else if (strcmp(kp_message_what(&m, "do"), "measure") == 0) {
            ok = misbehave(part, id, index);
        }
        kp_message_deinit(&m);
    }
    kp_buf_deinit(&frame);
    return 5;
}

int lab_helper(char **argv)
{
    const char *part = getenv("KOPT_TEST_PART");
    const char *real = getenv("KOPT_TEST_WORKER");
    if (part && strcmp(argv[1], "run") == 0 && strcmp(part, "no_compiler") != 0)
        return runner(part);
    if (part && strcmp(argv[1], "compile") == 0 && strcmp(part, "no_compiler") == 0)
        return 3;
    (void)execv(real ? real : "", argv);
    return 127;
}

void with_part(const char *part)
{
    assert_int_equal(setenv("KOPT_LIBEXEC", part ? libexec : real_libexec, 1), 0);
    if (part)
        assert_int_equal(setenv("KOPT_TEST_PART", part, 1), 0);
    else
        assert_int_equal(unsetenv("KOPT_TEST_PART"), 0);
}

/* --- helpers
 * -------------------------------------------------------------------------------------- */

const char source[] = "// fake: out 1 = copy 0\n"
                      "// fake: time 5000\n"
                      "// fake: add T 1000\n"
                      "// fake: when MODE=compile_error compile_error \"no such type\"\n"
                      "// fake: when MODE=compile_hang compile_hang\n"
                      "// fake: when MODE=compile_slow compile_slow 600\n"
                      "// fake: when MODE=compile_slower compile_slow 1500\n"
                      "// fake: when MODE=crash crash\n"
                      "// fake: when MODE=hang hang\n"
                      "// fake: when MODE=compile_full compile_full\n"
                      "// fake: when MODE=host_full host_full\n"
                      "// fake: when MODE=wrong wrong\n"
                      "// fake: when MODE=launch_error launch_error\n"
                      "// fake: when MODE=oob oob\n"
                      "// fake: when MODE=slow real 1\n"
                      "// fake: when MODE=noisy noise 10\n"
                      "// fake: when MODE=last wrong_at 11\n"
                      "// fake: when MODE=later wrong_at 12\n"
                      "kernel void k(global const float *a, global float *b) {}\n";

struct kp_lab_options options(void)
{
    return (struct kp_lab_options){.backend = KP_BACKEND_FAKE,
                                   .n_devices = 1,
                                   .compilers = 1,
                                   .source = kp_str_from(source),
                                   .compile_timeout_ns = 20 * SECOND,
                                   .launch_timeout_ns = 20 * SECOND,
                                   .wake_fd = -1};
}

struct kp_lab *open_lab(const struct kp_lab_options *o)
{
    struct kp_lab *lab = NULL;
    kopt_error err;
    if (kp_lab_open(o, &lab, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return lab;
}

/* 64 floats in, 64 out, the output checked against the input. */
void give_data(struct kp_lab *lab)
{
    float a[64];
    for (int i = 0; i < 64; i++)
        a[i] = (float)i;
    assert_int_equal(kp_file_put("a.bin", a, sizeof(a), NULL), KOPT_OK);
    struct kp_lab_buffer b[] = {{.buffer = 0, .bytes = sizeof(a), .file = "a.bin"},
                                {.buffer = 1, .bytes = sizeof(a)}};
    struct kp_lab_check c = {.buffer = 1, .file = "a.bin", .type = KP_NUM_F32};
    assert_int_equal(kp_lab_set_buffers(lab, b, 2, NULL), KOPT_OK);
    assert_int_equal(kp_lab_set_checks(lab, &c, 1, NULL), KOPT_OK);
}

void job_of(struct kp_lab *lab, int64_t id, const char *mode, int t,
            kopt_status (*use)(struct kp_lab *lab, const struct kp_lab_job *job,
                               kopt_error *err))
{
    char mode_macro[64];
    char t_macro[32];
    const char *macros[] = {mode_macro, t_macro};
    kopt_error err;
    struct kp_job_arg args[] = {{.space = KP_SPACE_GLOBAL, .buffer = 0, .bytes = 256},
                                {.space = KP_SPACE_GLOBAL, .buffer = 1, .bytes = 256}};
    (void)snprintf(mode_macro, sizeof(mode_macro), "MODE=%s", mode);
    (void)snprintf(t_macro, sizeof(t_macro), "T=%d", t);
    struct kp_lab_job job = {.id = id, .entry = "k", .macros = macros, .n_macros = 2};
    job.launch = (struct kp_job_launch){
        .grid = {4, 1, 1}, .block = {16, 1, 1}, .args = args, .n_args = 2};
    if (use(lab, &job, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

void compile(struct kp_lab *lab, int64_t id, const char *mode, int t)
{
    job_of(lab, id, mode, t, kp_lab_compile);
}

struct kp_lab_event next(struct kp_lab *lab)
{
    struct kp_lab_event ev;
    kopt_error err;
    if (kp_lab_next(lab, 30000, -1, &ev, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_not_equal(ev.kind, KP_LAB_NOTHING);
    return ev;
}

const struct kp_lab_plan plan = {.min_samples = 3,
                                 .max_samples = 5,
                                 .precision = 0.01,
                                 .best_ns = (double)NAN,
                                 .drop_ratio = 1.25,
                                 .budget_ns = 1e9,
                                 .check = true};

void measure(struct kp_lab *lab, int64_t id)
{
    kopt_error err;
    struct kp_lab_event ev;
    kopt_status st = kp_lab_measure(lab, id, &plan, &err);
    if (st == KOPT_EBUSY) { /* the last one ended its runner: another is started */
        assert_int_equal(kp_lab_next(lab, 0, -1, &ev, &err), KOPT_OK);
        assert_int_equal(ev.kind, KP_LAB_NOTHING);
        st = kp_lab_measure(lab, id, &plan, &err);
    }
    if (st != KOPT_OK)
        fail_msg("%s", err.message);
}

struct kp_lab_event compile_and_measure(struct kp_lab *lab, int64_t id, const char *mode, int t)
{
    compile(lab, id, mode, t);
    struct kp_lab_event ev = next(lab);
    if (ev.kind == KP_LAB_COMPILED) {
        assert_int_equal(ev.id, id);
        measure(lab, id);
        ev = next(lab);
    }
    assert_int_equal(ev.kind, KP_LAB_RESULT);
    assert_int_equal(ev.id, id);
    return ev;
}

void expect(const struct kp_lab_event *ev, kopt_outcome what, const char *word)
{
    if (ev->result.outcome != what || !strstr(ev->result.message, word))
        fail_msg("%s (%s), expected %s (%s)", kopt_outcome_name(ev->result.outcome),
                 ev->result.message, kopt_outcome_name(what), word);
}

size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

void nothing_is_left(size_t files)
{
    assert_int_equal(open_files(), files);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

bool lab_helper_init(void)
{
    const char *from = getenv("KOPT_LIBEXEC");
    char folder[4000];
    char path[8192];
    if (!from || !realpath("/proc/self/exe", self) || !getcwd(folder, sizeof(folder)))
        return false;
    (void)snprintf(real_libexec, sizeof(real_libexec), "%s", from);
    (void)snprintf(libexec, sizeof(libexec), "%s/libexec", folder);
    (void)mkdir(libexec, 0700);
    (void)snprintf(path, sizeof(path), "%s/kopt-worker", libexec);
    (void)unlink(path);
    if (symlink(self, path) != 0)
        return false;
    (void)snprintf(path, sizeof(path), "%s/kopt-worker", real_libexec);
    (void)setenv("KOPT_TEST_WORKER", path, 1);
    return true;
}
