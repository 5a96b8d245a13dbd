/* SPDX-License-Identifier: MIT */
/* What is particular to OpenCL, above all that PoCL finishes compiling in the compiling
 * process. Every step runs in a process of its own, as it does in use; this one never opens
 * OpenCL. */
#include "base/alloc.h"
#include "device/device.h"
#include "device/opencl/cl.h"
#include "os/clock.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { IMAGE_MAX = 1 << 20, CHILD_SECONDS = 60 };

/* Shared with the child. */
struct report {
    kopt_status status;
    kopt_error err;
    int compiled;       /* calls of job.compiled */
    size_t image_bytes; /* when it was called */
    unsigned char image[IMAGE_MAX];
    double wall_ms;
    double time_ns;
    int n_devices;
    int is_pocl;
};

/* What a child does. */
struct task {
    const char *source;
    const char *entry;
    struct kp_launch launch;
    const char *options[4];
    size_t n_options;
    bool no_launch; /* compile without knowing the launch */
};

static struct report *R;
static bool IS_POCL;
static struct kp_buf IMAGE = {.max = IMAGE_MAX};

static void compiled(void *user)
{
    (void)user;
    R->compiled++;
    R->image_bytes = IMAGE.len;
    memcpy(R->image, IMAGE.ptr, IMAGE.len);
}

static void compile_task(const struct task *t)
{
    struct kp_compiler *c = NULL;
    R->status = kp_compiler_open(KP_BACKEND_OPENCL, 0, NULL, NULL, &c, &R->err);
    if (R->status != KOPT_OK)
        return;
    const struct kp_compile_job job = {.source = kp_str_from(t->source),
                                       .path = "user.cl",
                                       .entry = t->entry,
                                       .options = t->options,
                                       .n_options = t->n_options,
                                       .launch = t->no_launch ? NULL : &t->launch,
                                       .compiled = compiled};
    R->status = kp_compile(c, &job, &IMAGE, NULL, &R->err);
    kp_buf_deinit(&IMAGE);
    kp_compiler_close(c);
}

static void run_loaded(struct kp_device *d, const struct task *t, struct kp_module *m)
{
    struct kp_launch_arg args[8];
    struct kp_launch l = t->launch;
    l.args = args;
    for (size_t i = 0; i < l.n_args; i++) {
        args[i] = t->launch.args[i];
        if (args[i].space == KP_SPACE_GLOBAL && R->status == KOPT_OK)
            R->status = kp_buffer_new(d, args[i].bytes, &args[i].buffer, &R->err);
    }
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &R->time_ns};
    if (R->status == KOPT_OK)
        R->status = kp_module_run(d, m, &run, &R->err);
    for (size_t i = 0; i < l.n_args; i++) {
        if (args[i].space == KP_SPACE_GLOBAL)
            kp_buffer_free(d, args[i].buffer);
    }
}

/* Load the image of the compile before, and run it. */
static void run_task(const struct task *t)
{
    struct kp_runtime *rt = NULL;
    struct kp_device *d = NULL;
    struct kp_module *m = NULL;
    R->status = kp_runtime_open(KP_BACKEND_OPENCL, NULL, &rt, &R->err);
    if (R->status == KOPT_OK)
        R->status = kp_device_open(rt, 0, &d, &R->err);
    int64_t begin = kp_clock_ns();
    if (R->status == KOPT_OK)
        R->status =
            kp_module_load(d, R->image, R->image_bytes, t->entry, &t->launch, &m, &R->err);
    if (R->status == KOPT_OK)
        run_loaded(d, t, m);
    R->wall_ms = (double)(kp_clock_ns() - begin) * 1e-6;
    kp_module_unload(d, m);
    kp_device_close(d);
    kp_runtime_close(rt);
}

static void look_task(const struct task *t)
{
    struct kp_runtime *rt = NULL;
    struct kp_device_info info;
    (void)t;
    R->status = kp_runtime_open(KP_BACKEND_OPENCL, NULL, &rt, &R->err);
    if (R->status != KOPT_OK)
        return;
    R->n_devices = kp_runtime_n_devices(rt);
    if (R->n_devices > 0 && kp_runtime_info(rt, 0, &info, &R->err) == KOPT_OK)
        R->is_pocl = strncmp(info.compiler, "PoCL", 4) == 0;
    kp_runtime_close(rt);
}

static pid_t begin_child(void (*work)(const struct task *), const struct task *t)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setpgid(0, 0);            /* PoCL starts a linker */
        (void)signal(SIGSEGV, SIG_DFL); /* not the sanitizer's, whose exit status is 1 */
        (void)signal(SIGABRT, SIG_DFL);
        (void)alarm(CHILD_SECONDS);
        work(t);
        (void)fflush(NULL);
        _exit(0);
    }
    return pid;
}

/* 0 when it ended by itself, else its signal. */
static int end_child(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    (void)kill(-pid, SIGKILL);
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    assert_int_equal(WEXITSTATUS(status), 0);
    return 0;
}

static int child(void (*work)(const struct task *), const struct task *t)
{
    return end_child(begin_child(work, t));
}

#define CHILD_OK(work, t)                                              \
    do {                                                               \
        assert_int_equal(child((work), (t)), 0);                       \
        if (R->status != KOPT_OK)                                      \
            fail_msg("status %d: %s", (int)R->status, R->err.message); \
    } while (0)

static int fresh(void **state)
{
    (void)state;
    memset(R, 0, sizeof(*R));
    return 0;
}

/* --- the cache -----------------------------------------------------------------------------
 */

static int N_LIBRARIES;

static int see(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)at;
    size_t n = strlen(path);
    N_LIBRARIES += kind == FTW_F && n > 3 && strcmp(path + n - 3, ".so") == 0;
    return 0;
}

static int remove_it(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Work-group functions that PoCL has compiled and kept. */
static int cached(void)
{
    N_LIBRARIES = 0;
    (void)nftw(getenv("POCL_CACHE_DIR"), see, 16, FTW_PHYS); /* NOLINT(concurrency-mt-unsafe) */
    return N_LIBRARIES;
}

#define ADD                                                                     \
    "kernel void add(global const float *a, global float *b, int n)\n"          \
    "{\n"                                                                       \
    "    int i = get_global_id(0) + get_global_size(0) * (get_global_id(1) +\n" \
    "            get_global_size(1) * get_global_id(2));\n"                     \
    "    if (i < n)\n"                                                          \
    "        b[i] = a[i] + 1;\n"                                                \
    "}\n"

static const int32_t COUNT = 100;
static const struct kp_launch_arg ADD_ARGS[3] = {
    {.space = KP_SPACE_GLOBAL, .bytes = 400},
    {.space = KP_SPACE_GLOBAL, .bytes = 400},
    {.space = KP_SPACE_VALUE, .value = &COUNT, .bytes = 4}};

static void another_process_finds_the_kernel_compiled(void **state)
{
    (void)state;
    static const struct kp_launch LAUNCHES[] = {
        {.grid = {7, 1, 1}, .block = {32, 1, 1}},
        {.grid = {2, 3, 4}, .block = {4, 2, 2}},
        {.grid = {65534 / 2, 1, 1}, .block = {2, 1, 1}}, /* just under the wide grid */
        {.grid = {13107, 1, 1}, .block = {5, 1, 1}},     /* 65,535: just at it */
        {.grid = {1, 1, 70000}, .block = {1, 1, 1}},
    };
    if (!IS_POCL)
        skip();
    for (size_t i = 0; i < sizeof(LAUNCHES) / sizeof(*LAUNCHES); i++) {
        char source[1024]; /* one program for each, so that none profits from another */
        (void)snprintf(source, sizeof(source), "// %zu\n#define CASE%zu\n%s", i, i, ADD);
        struct task t = {.source = source, .entry = "add", .launch = LAUNCHES[i]};
        t.launch.args = ADD_ARGS;
        t.launch.n_args = 3;
        (void)fresh(NULL);
        int before = cached();
        CHILD_OK(compile_task, &t);
        assert_int_equal(R->compiled, 1);
        assert_int_equal(cached(), before + 1);
        /* what is handed on is bitcode, so that loading runs no front end */
        assert_non_null(memmem(R->image, R->image_bytes, "BC\xc0\xde", 4));
        CHILD_OK(run_task, &t);
        if (cached() != before + 1)
            fail_msg("launch %zu was compiled again", i);
        assert_true(R->time_ns > 0);
        print_message("launch %zu: load and first run %.1f ms, kernel %.3f ms\n", i, R->wall_ms,
                      R->time_ns * 1e-6);
    }
}

static void a_source_is_an_image_too(void **state)
{
    (void)state;
    struct task t = {.source = "#define BY_SOURCE\n" ADD,
                     .entry = "add",
                     .launch = {{4, 1, 1}, {32, 1, 1}, 0, ADD_ARGS, 3}};
    const struct kp_compile_job job = {.source = kp_str_from(t.source), .path = "user.cl"};
    struct kp_cl_text text;
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    assert_int_equal(kp_cl_text_make(&job, true, &text, &R->err), KOPT_OK);
    kp_cl_image_write(&image, &text, (struct kp_str){"", 0});
    memcpy(R->image, image.ptr, image.len);
    R->image_bytes = image.len;
    kp_buf_deinit(&image);
    kp_cl_text_deinit(&text);
    CHILD_OK(run_task, &t);
    assert_true(R->time_ns > 0);
}

static void without_a_launch_the_first_run_compiles(void **state)
{
    (void)state;
    struct task t = {.source = "#define NO_LAUNCH\n" ADD,
                     .entry = "add",
                     .launch = {{4, 1, 1}, {32, 1, 1}, 0, ADD_ARGS, 3},
                     .no_launch = true};
    CHILD_OK(compile_task, &t);
    assert_int_equal(R->compiled, 1);
    CHILD_OK(run_task, &t);
    assert_true(R->time_ns > 0);
}

/* --- kernels that do not come back -----------------------------------------------------------
 */

static void a_crash_at_once_is_the_kernels_not_the_compilers(void **state)
{
    (void)state;
    struct task t = {.source =
                         "kernel void add(global const float *a, global float *b, int n)\n"
                         "{\n"
                         "    *(volatile global int *)(ulong)n = 1;\n"
                         "}\n",
                     .entry = "add",
                     .launch = {{4, 1, 1}, {32, 1, 1}, 0, ADD_ARGS, 3}};
    if (!IS_POCL)
        skip();
    (void)fresh(NULL);
    assert_int_equal(child(compile_task, &t), SIGSEGV);
    assert_int_equal(R->compiled, 1);
    /* and the image that was there by then can be used */
    assert_true(R->image_bytes > 100);
    assert_int_equal(child(run_task, &t), SIGSEGV);
}

static void a_hang_comes_after_compiling(void **state)
{
    (void)state;
    struct task t = {.source =
                         "kernel void add(global const float *a, global float *b, int n)\n"
                         "{\n"
                         "    volatile int k = n;\n"
                         "    while (k)\n"
                         "        k = n;\n"
                         "}\n",
                     .entry = "add",
                     .launch = {{1, 1, 1}, {1, 1, 1}, 0, ADD_ARGS, 3}};
    if (!IS_POCL)
        skip();
    (void)fresh(NULL);
    pid_t pid = begin_child(compile_task, &t);
    volatile struct report *r = R;
    for (int i = 0; i < 3000 && !r->compiled; i++)
        kp_clock_sleep_ns(10000000);
    (void)kill(-pid, SIGKILL);
    assert_int_equal(end_child(pid), SIGKILL);
    assert_int_equal(R->compiled, 1);
}

static void a_crash_of_the_compiler_comes_before(void **state)
{
    (void)state;
    struct task t = {.source =
                         "int again(int n)\n"
                         "{\n"
                         "    return n < 2 ? n : again(n - 1) + again(n - 2);\n"
                         "}\n"
                         "kernel void add(global const float *a, global float *b, int n)\n"
                         "{\n"
                         "    b[get_global_id(0)] = again(n);\n"
                         "}\n",
                     .entry = "add",
                     .launch = {{1, 1, 1}, {1, 1, 1}, 0, ADD_ARGS, 3}};
    if (!IS_POCL)
        skip();
    (void)fresh(NULL);
    int signal_number = child(compile_task, &t);
    if (signal_number == 0 && R->status == KOPT_OK)
        skip(); /* a PoCL that can compile it */
    assert_int_equal(R->compiled, 0);
}

static void writing_past_the_end_of_a_buffer_faults(void **state)
{
    (void)state;
    struct task t = {.source =
                         "kernel void add(global const float *a, global float *b, int n)\n"
                         "{\n"
                         "    b[n + 32 + get_global_id(0)] = 1;\n"
                         "}\n",
                     .entry = "add",
                     .launch = {{1, 1, 1}, {1, 1, 1}, 0, ADD_ARGS, 3}};
    if (!IS_POCL)
        skip();
    (void)fresh(NULL);
    CHILD_OK(compile_task, &t); /* there it does no harm */
    assert_int_equal(child(run_task, &t), SIGSEGV);
}

/* --- what is refused before it does harm -----------------------------------------------------
 */

static void too_much_local_memory_is_refused_with_the_numbers(void **state)
{
    (void)state;
    struct task t = {.source =
                         "kernel void add(global const float *a, global float *b, int n)\n"
                         "{\n"
                         "    local float tile[64 << 20];\n"
                         "    tile[get_local_id(0)] = a[get_global_id(0)];\n"
                         "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                         "    b[get_global_id(0)] = tile[n];\n"
                         "}\n",
                     .entry = "add",
                     .launch = {{1, 1, 1}, {1, 1, 1}, 0, ADD_ARGS, 3}};
    assert_int_equal(child(compile_task, &t), 0);
    assert_int_equal(R->status, KOPT_ERANGE);
    assert_non_null(strstr(R->err.message, "268435456"));
    assert_int_equal(R->compiled, 0);
}

/* Sources and launches that must be refused, all by one process. */
struct refusal {
    struct task task;
    kopt_status status;
    const char *text;
    int line; /* where not 0 */
};

static const struct refusal *REFUSALS;
static size_t N_REFUSALS;

static void refusals_task(const struct task *unused)
{
    struct kp_compiler *c = NULL;
    (void)unused;
    R->status = kp_compiler_open(KP_BACKEND_OPENCL, 0, NULL, NULL, &c, &R->err);
    for (size_t i = 0; i < N_REFUSALS && R->status == KOPT_OK; i++) {
        const struct refusal *f = &REFUSALS[i];
        kopt_error err = {0};
        const struct kp_compile_job job = {.source = kp_str_from(f->task.source),
                                           .path = "user.cl",
                                           .entry = f->task.entry,
                                           .options = f->task.options,
                                           .n_options = f->task.n_options,
                                           .launch = &f->task.launch,
                                           .compiled = compiled};
        kopt_status st = kp_compile(c, &job, &IMAGE, NULL, &err);
        bool good = st == f->status && (st == KOPT_OK || strstr(err.message, f->text)) &&
                    (!f->line || (f->line == err.line && strcmp(err.file, "user.cl") == 0));
        if (!good)
            R->status = kp_err(&R->err, KOPT_EFAILED, "case %zu: status %d, '%s'", i, (int)st,
                               st == KOPT_OK ? "" : err.message);
        else if (R->compiled != (st == KOPT_OK))
            R->status = kp_err(&R->err, KOPT_EFAILED, "case %zu: compiled", i);
        R->compiled = 0;
        kp_buf_deinit(&IMAGE);
    }
    kp_compiler_close(c);
}

static void expect(const struct refusal *cases, size_t n)
{
    REFUSALS = cases;
    N_REFUSALS = n;
    CHILD_OK(refusals_task, NULL);
}

#define EXPECT(cases) expect((cases), sizeof(cases) / sizeof(*(cases)))
#define TASK(text, ...)                                             \
    {                                                               \
        .source = (text), .entry = "add", .launch = { __VA_ARGS__ } \
    }

static void arguments_must_be_of_the_declared_kinds(void **state)
{
    (void)state;
    static const int64_t WIDE = 1;
    static const struct kp_launch_arg BUFFER = {.space = KP_SPACE_GLOBAL, .bytes = 400};
    static const struct kp_launch_arg EMPTY = {.space = KP_SPACE_GLOBAL, .bytes = 0};
    static const struct kp_launch_arg LOCAL = {.space = KP_SPACE_SHARED, .bytes = 8};
    static const struct kp_launch_arg INT = {
        .space = KP_SPACE_VALUE, .value = &COUNT, .bytes = 4};
    static const struct kp_launch_arg LONG = {
        .space = KP_SPACE_VALUE, .value = &WIDE, .bytes = 8};
    const struct kp_launch_arg many[] = {BUFFER, BUFFER, INT, INT};
    const struct kp_launch_arg value[] = {BUFFER, LONG, INT};
    const struct kp_launch_arg local[] = {BUFFER, LOCAL, INT};
    const struct kp_launch_arg buffer[] = {BUFFER, BUFFER, BUFFER};
    const struct kp_launch_arg wide[] = {BUFFER, BUFFER, LONG};
    const struct kp_launch_arg empty[] = {EMPTY, BUFFER, INT};
    const struct refusal cases[] = {
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, many, 4), KOPT_EINPUT,
         "3 arguments, the launch gives 4", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, many, 2), KOPT_EINPUT,
         "3 arguments, the launch gives 2", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, value, 3), KOPT_EINPUT,
         "argument 2 of kernel add is a buffer", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, local, 3), KOPT_EINPUT,
         "the launch gives local memory", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, buffer, 3), KOPT_EINPUT,
         "argument 3 of kernel add is a value", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, wide, 3), KOPT_EINPUT,
         "8 bytes: CL_INVALID_ARG_SIZE", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, empty, 3), KOPT_ERANGE, "0 bytes", 0},
        {TASK("kernel void add(read_only image2d_t a, global float *b, int n)\n"
              "{\n    b[0] = 1;\n}\n",
              {1, 1, 1}, {1, 1, 1}, 0, many, 3),
         KOPT_EINPUT, "image2d_t", 0},
        {TASK(ADD, {1, 1, 1}, {1, 1, 1}, 0, many, 3), KOPT_OK, "", 0},
    };
    EXPECT(cases);
}

static void other_demands_of_a_kernel_are_told(void **state)
{
    (void)state;
    struct refusal cases[] = {
        {TASK("__attribute__((reqd_work_group_size(8, 2, 1)))\n" ADD, {1, 1, 1}, {8, 1, 1}, 0,
              ADD_ARGS, 3),
         KOPT_ERANGE, "demands groups of 8x2x1, the launch has 8x1x1", 0},
        {TASK(ADD, {1, 1, 1}, {8, 1, 1}, 64, ADD_ARGS, 3), KOPT_EINPUT,
         "64 bytes of dynamic shared memory", 0},
        {TASK(ADD, {1, 1, 1}, {1 << 20, 1, 1}, 0, ADD_ARGS, 3), KOPT_ERANGE, "1048576", 0},
        {TASK(ADD, {1, 1, 1}, {8, 1, 1}, 0, ADD_ARGS, 3), KOPT_EINPUT, "no kernel 'sub'", 0},
        {TASK("", {1, 1, 1}, {8, 1, 1}, 0, ADD_ARGS, 3), KOPT_EINPUT, "no kernel 'add'", 0},
    };
    cases[3].task.entry = "sub";
    EXPECT(cases);
}

static void options_reach_the_compiler(void **state)
{
    (void)state;
    static const char SOURCE[] = "#ifndef SAID\n"
                                 "#error nothing said\n"
                                 "#endif\n"
                                 "#ifdef UNSAID\n"
                                 "#error unsaid\n"
                                 "#endif\n" ADD;
    static const char *const OPTIONS[][4] = {
        {"-DSAID=\"a b\"", "-DUNSAID", "-U", "UNSAID"},
        {"-DSAID", "-cl-fast-relaxed-math", "-I", "/usr/include"},
        {"-DSAID", "-DX", "-D", "Y=1"},
        {"-DSAID", "-DX", "-D", "UNSAID"},
        {"-DOTHER", "-DX", "-D", "Y"},
        {"-DSAID", "-DX", "-D", "Y=1\n"},
        {"-DSAID", "-DX", "-D", "="},
        {"-DSAID", "-DX", "-DY", "-no-such-option"},
        {"-DSAID", "-DX", "-DY", "-I"},
        {"-DSAID", "-DX", "-I", "/a b"}};
    struct refusal cases[] = {
        {.status = KOPT_OK},
        {.status = KOPT_OK},
        {.status = KOPT_OK},
        {.status = KOPT_EINPUT, .text = "unsaid", .line = 5},
        {.status = KOPT_EINPUT, .text = "nothing said", .line = 2},
        {.status = KOPT_EUSAGE, .text = "line break"},
        {.status = KOPT_EUSAGE, .text = "has no name"},
        {.status = KOPT_EINPUT, .text = "-no-such-option"},
        {.status = KOPT_EUSAGE, .text = "-I has no argument"},
        {.status = KOPT_EUSAGE, .text = "'-I/a b'"},
    };
    size_t n = sizeof(cases) / sizeof(*cases) - (IS_POCL ? 0 : 1);
    for (size_t i = 0; i < n; i++) {
        cases[i].task = (struct task){
            .source = SOURCE, .entry = "add", .launch = {{1, 1, 1}, {8, 1, 1}, 0, ADD_ARGS, 3}};
        memcpy(cases[i].task.options, OPTIONS[i], sizeof(OPTIONS[i]));
        cases[i].task.n_options = 4;
    }
    expect(cases, n);
}

static void a_library_that_is_not_opencl_is_named(void **state)
{
    (void)state;
    struct kp_runtime *rt = NULL;
    kopt_error err = {0};
    assert_int_equal(setenv("KOPT_OPENCL_LIBRARY", "libm.so.6", 1), 0);
    assert_int_equal(kp_runtime_open(KP_BACKEND_OPENCL, NULL, &rt, &err), KOPT_EENV);
    assert_null(rt);
    assert_non_null(strstr(err.message, "libm.so.6 has no symbol cl"));
    assert_int_equal(setenv("KOPT_OPENCL_LIBRARY", "/nowhere/libOpenCL.so.1", 1), 0);
    assert_int_equal(kp_runtime_open(KP_BACKEND_OPENCL, NULL, &rt, &err), KOPT_EENV);
    assert_non_null(strstr(err.message, "/nowhere/libOpenCL.so.1"));
    assert_non_null(strstr(err.hint, "pocl-opencl-icd"));
    assert_int_equal(unsetenv("KOPT_OPENCL_LIBRARY"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(another_process_finds_the_kernel_compiled, fresh),
        cmocka_unit_test_setup(a_source_is_an_image_too, fresh),
        cmocka_unit_test_setup(without_a_launch_the_first_run_compiles, fresh),
        cmocka_unit_test_setup(a_crash_at_once_is_the_kernels_not_the_compilers, fresh),
        cmocka_unit_test_setup(a_hang_comes_after_compiling, fresh),
        cmocka_unit_test_setup(a_crash_of_the_compiler_comes_before, fresh),
        cmocka_unit_test_setup(writing_past_the_end_of_a_buffer_faults, fresh),
        cmocka_unit_test_setup(too_much_local_memory_is_refused_with_the_numbers, fresh),
        cmocka_unit_test_setup(arguments_must_be_of_the_declared_kinds, fresh),
        cmocka_unit_test_setup(other_demands_of_a_kernel_are_told, fresh),
        cmocka_unit_test_setup(options_reach_the_compiler, fresh),
        cmocka_unit_test_setup(a_library_that_is_not_opencl_is_named, fresh),
    };
    char cache[] = "/tmp/kopt-test-pocl-XXXXXX";
    R = mmap(NULL, sizeof(*R), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (R == MAP_FAILED || !mkdtemp(cache) || setenv("POCL_CACHE_DIR", cache, 1) != 0)
        return 1;
    int failed = 77;
    if (child(look_task, NULL) != 0)
        failed = 1;
    else if (R->n_devices == 0)
        (void)printf("skipped: %s\n", R->err.message);
    else {
        IS_POCL = R->is_pocl;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    (void)nftw(cache, remove_it, 16, FTW_DEPTH | FTW_PHYS);
    return failed;
}
