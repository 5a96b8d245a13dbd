/* SPDX-License-Identifier: MIT */
/* The fake driver does what a kernel's comments tell it, and the loader sees through libraries
 * that are old or have parts missing. */
#include "base/alloc.h"
#include "device/device.h"
#include "os/clock.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 64, IMAGE_MAX = 1 << 20 };

static kopt_error ERR;

/* A device with an input, an output and a neighbour; args: in, out, n. */
struct rig {
    struct kp_runtime *rt;
    struct kp_compiler *c;
    struct kp_device *d;
    struct kp_buffer *in;
    struct kp_buffer *out;
    struct kp_buffer *next;
    struct kp_module *m;
    int32_t n;
    struct kp_launch_arg args[3];
    struct kp_launch l;
    float data[N];
};

static kopt_status rig_open(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    kopt_status st = kp_runtime_open(KP_BACKEND_FAKE, NULL, &r->rt, &ERR);
    if (st == KOPT_OK)
        st = kp_compiler_open(KP_BACKEND_FAKE, 0, NULL, NULL, &r->c, &ERR);
    if (st == KOPT_OK)
        st = kp_device_open(r->rt, 0, &r->d, &ERR);
    if (st == KOPT_OK)
        st = kp_buffer_new(r->d, sizeof(r->data), &r->in, &ERR);
    if (st == KOPT_OK)
        st = kp_buffer_new(r->d, sizeof(r->data), &r->out, &ERR);
    if (st == KOPT_OK)
        st = kp_buffer_new(r->d, sizeof(r->data), &r->next, &ERR);
    if (st != KOPT_OK)
        return st;
    for (int i = 0; i < N; i++)
        r->data[i] = (float)i + 0.5f;
    r->n = N;
    r->args[0] = (struct kp_launch_arg){KP_SPACE_GLOBAL, NULL, sizeof(r->data), r->in};
    r->args[1] = (struct kp_launch_arg){KP_SPACE_GLOBAL, NULL, sizeof(r->data), r->out};
    r->args[2] = (struct kp_launch_arg){KP_SPACE_VALUE, &r->n, sizeof(r->n), NULL};
    r->l = (struct kp_launch){{2, 1, 1}, {32, 1, 1}, 0, r->args, 3};
    return kp_buffer_write(r->d, r->in, 0, r->data, sizeof(r->data), &ERR);
}

static void rig_close(struct rig *r)
{
    if (r->d) {
        kp_module_unload(r->d, r->m);
        kp_buffer_free(r->d, r->in);
        kp_buffer_free(r->d, r->out);
        kp_buffer_free(r->d, r->next);
        kp_device_close(r->d);
    }
    kp_compiler_close(r->c);
    kp_runtime_close(r->rt);
}

static kopt_status rig_load(struct rig *r, const char *source, const char *entry,
                            const char *const *macros, size_t n_macros)
{
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    const struct kp_compile_job job = {.source = kp_str_from(source),
                                       .path = "user.cl",
                                       .entry = entry,
                                       .macros = macros,
                                       .n_macros = n_macros,
                                       .launch = &r->l};
    kp_module_unload(r->d, r->m);
    r->m = NULL;
    kopt_status st = kp_compile(r->c, &job, &image, NULL, &ERR);
    if (st == KOPT_OK)
        st = kp_module_load(r->d, image.ptr, image.len, entry, &r->l, &r->m, &ERR);
    kp_buf_deinit(&image);
    return st;
}

/* Launch once, with the output poisoned if so wished. */
static kopt_status rig_run(struct rig *r, bool poison, double *ns)
{
    const struct kp_restore restore = {.dst = r->out};
    const struct kp_run run = {.launch = &r->l,
                               .restore = &restore,
                               .n_restore = poison ? 1 : 0,
                               .n = 1,
                               .times_ns = ns};
    return kp_module_run(r->d, r->m, &run, &ERR);
}

/* How the output compares with the input. */
static struct kp_compare rig_check(struct rig *r)
{
    struct kp_compare c;
    assert_int_equal(kp_buffer_compare(r->d, r->out, r->in, KP_NUM_F32, 1e-3, 1e-3, &c, &ERR),
                     KOPT_OK);
    return c;
}

#define COPY "// fake: out 1 = copy 0\nkernel void k() {}\n"

/* One launch of a source: what came of it. */
static kopt_status once(struct rig *r, const char *source, double *ns)
{
    kopt_status st = rig_load(r, source, "k", NULL, 0);
    return st == KOPT_OK ? rig_run(r, true, ns) : st;
}

/* --- times and conditions --------------------------------------------------------------------
 */

static double time_of(struct rig *r, const char *source, const char *bm, const char *bn)
{
    const char *macros[] = {bm, bn};
    double ns = (double)NAN;
    assert_int_equal(rig_load(r, source, "k", macros, 2), KOPT_OK);
    assert_int_equal(rig_run(r, true, &ns), KOPT_OK);
    return ns;
}

static void times_follow_the_formula(void **state)
{
    (void)state;
    static const char SOURCE[] = COPY "// fake: time 5000\n"
                                      "  // fake: add BM 3\n"
                                      "// fake: add BN -2.5\n"
                                      "//fake: add OTHER 1000\n"
                                      "// fake: when BM=64,BN=8 time 77\n"
                                      "// fake: when BM=128 time 50\n"
                                      "// fake: when BM=128,BN=16 time 60\n";
    struct rig r;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_true(time_of(&r, SOURCE, "BM=16", "BN=8") == 5000 + 48 - 20);
    assert_true(time_of(&r, SOURCE, "BM=64", "BN=16") == 5000 + 192 - 40);
    assert_true(time_of(&r, SOURCE, "BM=64", "BN=8") == 77 + 192 - 20);
    assert_true(time_of(&r, SOURCE, "BM=128", "BN=8") == 50 + 384 - 20);
    assert_true(time_of(&r, SOURCE, "BM=128", "BN=16") == 60 + 384 - 40);
    assert_true(time_of(&r, COPY, "X=1", "Y=2") == 1000);
    assert_int_equal(rig_check(&r).n_bad, 0);
    rig_close(&r);
}

static void noise_is_bounded_and_the_same_each_time(void **state)
{
    (void)state;
    double ns[2][50];
    for (int round = 0; round < 2; round++) {
        struct rig r;
        assert_int_equal(rig_open(&r), KOPT_OK);
        assert_int_equal(
            rig_load(&r, COPY "// fake: noise 10\n// fake: time 1000\n", "k", NULL, 0),
            KOPT_OK);
        const struct kp_run run = {.launch = &r.l, .n = 50, .times_ns = ns[round]};
        assert_int_equal(kp_module_run(r.d, r.m, &run, &ERR), KOPT_OK);
        rig_close(&r);
    }
    double least = 1e9;
    double most = 0;
    for (int i = 0; i < 50; i++) {
        assert_true(ns[0][i] == ns[1][i]);
        least = fmin(least, ns[0][i]);
        most = fmax(most, ns[0][i]);
    }
    assert_true(least >= 900 && least < 950);
    assert_true(most <= 1100 && most > 1050);
}

/* n launches, one after another; poisons nothing. */
static void run_many(struct rig *r, const char *source, unsigned n, double *ns)
{
    const struct kp_run run = {.launch = &r->l, .n = n, .times_ns = ns};
    assert_int_equal(rig_load(r, source, "k", NULL, 0), KOPT_OK);
    assert_int_equal(kp_module_run(r->d, r->m, &run, &ERR), KOPT_OK);
}

static void a_ramp_is_the_devices_and_ends(void **state)
{
    (void)state;
    struct rig r;
    double ns[6];
    assert_int_equal(rig_open(&r), KOPT_OK);
    run_many(&r, COPY "// fake: ramp 40 4\n", 6, ns);
    static const double UP[6] = {1400, 1300, 1200, 1100, 1000, 1000};
    for (int i = 0; i < 6; i++)
        assert_true(fabs(ns[i] - UP[i]) < 1e-6);
    run_many(&r, COPY "// fake: ramp 40 4\n", 1, ns);
    assert_true(ns[0] == 1000); /* another module, the same device */
    rig_close(&r);
    assert_int_equal(rig_open(&r), KOPT_OK);
    run_many(&r, COPY "// fake: ramp -50 2\n", 3, ns);
    assert_true(ns[0] == 500 && ns[1] == 750 && ns[2] == 1000);
    rig_close(&r);
}

static void luck_is_one_launch_of_each_module(void **state)
{
    (void)state;
    struct rig r;
    double ns[4];
    assert_int_equal(rig_open(&r), KOPT_OK);
    for (int i = 0; i < 2; i++) {
        run_many(&r, COPY "// fake: lucky\n", 3, ns);
        assert_true(ns[0] == 700 && ns[1] == 1000 && ns[2] == 1000);
        run_many(&r, COPY "// fake: lucky 3\n", 4, ns);
        assert_true(ns[0] == 1000 && ns[1] == 1000 && ns[2] == 700 && ns[3] == 1000);
    }
    rig_close(&r);
}

static void impossible_times_are_reported_as_they_are(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(once(&r, COPY "// fake: zero_time\n", &ns), KOPT_OK);
    assert_true(ns == 0);
    assert_int_equal(once(&r, COPY "// fake: negative_time\n", &ns), KOPT_OK);
    assert_true(ns == -1000);
    assert_int_equal(once(&r, COPY "// fake: nan_time\n", &ns), KOPT_OK);
    assert_true(isnan(ns));
    rig_close(&r);
}

static void a_lie_shows_on_the_clock(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    int64_t begin = kp_clock_ns();
    assert_int_equal(
        once(&r, COPY "// fake: time 20000000\n// fake: real 1\n// fake: lie\n", &ns), KOPT_OK);
    assert_true(kp_clock_ns() - begin >= 20000000);
    assert_true(ns == 10000000);
    rig_close(&r);
}

/* --- answers ---------------------------------------------------------------------------------
 */

static void outputs_without_a_source_have_the_pattern(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    float got[N];
    assert_int_equal(rig_open(&r), KOPT_OK);
    for (int which = 0; which < 2; which++) {
        assert_int_equal(once(&r, which ? "// fake: out 1\nvoid k\n" : "void k\n", &ns),
                         KOPT_OK);
        assert_int_equal(kp_buffer_read(r.d, r.out, 0, got, sizeof(got), &ERR), KOPT_OK);
        for (int i = 0; i < N; i++)
            assert_true(got[i] == (float)(i + 1));
    }
    rig_close(&r);
}

static void wrong_answers_are_wrong_in_their_own_ways(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(once(&r, COPY, &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);

    assert_int_equal(once(&r, COPY "// fake: wrong\n", &ns), KOPT_OK);
    assert_in_range(rig_check(&r).n_bad, 1, 2);

    assert_int_equal(once(&r, COPY "// fake: nan\n", &ns), KOPT_OK);
    assert_in_range(rig_check(&r).n_nan, 1, 2);

    assert_int_equal(once(&r, COPY "// fake: partial\n", &ns), KOPT_OK);
    struct kp_compare c = rig_check(&r);
    assert_int_equal(c.n_bad, N / 2);
    assert_int_equal(c.first, N / 2);
    assert_int_equal(c.n_nan, N / 2);
    rig_close(&r);
}

static void answers_may_change_from_launch_to_launch(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(once(&r, COPY "// fake: first_only\n", &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);
    assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
    assert_true(rig_check(&r).n_bad > 0);

    double got[3];
    assert_int_equal(rig_load(&r, COPY "// fake: unsteady\n", "k", NULL, 0), KOPT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
        struct kp_compare c = rig_check(&r);
        assert_true(c.n_bad > 0);
        got[i] = c.got;
    }
    assert_true(got[0] != got[1] && got[1] != got[2] && got[0] != got[2]);

    assert_int_equal(once(&r, COPY "// fake: dirty\n", &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);
    assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);
    assert_int_equal(rig_run(&r, false, &ns), KOPT_OK);
    assert_true(rig_check(&r).n_bad > 0);
    rig_close(&r);
}

static void an_answer_may_be_wrong_at_one_launch(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(rig_load(&r, COPY "// fake: wrong_at 3\n", "k", NULL, 0), KOPT_OK);
    for (int launch = 1; launch <= 4; launch++) {
        assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
        assert_int_equal(rig_check(&r).n_bad > 0, launch == 3);
    }
    rig_close(&r);
}

static void out_of_bounds_spoils_the_neighbour(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    struct kp_compare c;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(kp_buffer_write(r.d, r.next, 0, r.data, sizeof(r.data), &ERR), KOPT_OK);
    assert_int_equal(once(&r, COPY "// fake: oob\n", &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);
    assert_int_equal(kp_buffer_compare(r.d, r.next, r.in, KP_NUM_F32, 0, 0, &c, &ERR), KOPT_OK);
    assert_true(c.n_bad > 0);
    rig_close(&r);
}

static void actions_can_be_for_one_kernel_only(void **state)
{
    (void)state;
    static const char SOURCE[] = COPY "void other\n"
                                      "// fake: when entry=k wrong\n"
                                      "// fake: when entry=other,BM=2 nan\n";
    static const char *const BM[] = {"BM=2"};
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(rig_load(&r, SOURCE, "k", BM, 1), KOPT_OK);
    assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
    assert_true(rig_check(&r).n_bad > 0);
    assert_int_equal(rig_load(&r, SOURCE, "other", NULL, 0), KOPT_OK);
    assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);
    assert_int_equal(rig_load(&r, SOURCE, "other", BM, 1), KOPT_OK);
    assert_int_equal(rig_run(&r, true, &ns), KOPT_OK);
    assert_true(rig_check(&r).n_nan > 0);
    rig_close(&r);
}

/* --- failures --------------------------------------------------------------------------------
 */

static void errors_come_with_their_place(void **state)
{
    (void)state;
    struct rig r;
    static const struct {
        const char *source;
        int line;
        const char *text;
    } cases[] = {
        {COPY "// fake: compile_error \"no type 'foo'\"\n", 3, "no type 'foo'"},
        {COPY "\n// fake: explode\n", 4, "unknown fake action 'explode'"},
        {"// fake: time fast\n" COPY, 1, "'time' needs a number"},
        {"// fake: compile_error foo\n" COPY, 1, "needs a text in quotes"},
        {"// fake: ramp 10\n" COPY, 1, "'ramp' needs two numbers"},
        {"// fake: wrong_at\n" COPY, 1, "'wrong_at' needs a number"},
        {"// fake: lucky first\n" COPY, 1, "'lucky' needs a number"},
        {"// fake: out x\n" COPY, 1, "expected '// fake: out"},
        {"// fake: out 1 = move 0\n" COPY, 1, "expected '// fake: out"},
        {"// fake: add BM\n" COPY, 1, "expected '// fake: add"},
        {"// fake: when BM crash\n" COPY, 1, "expected '// fake: when"},
        {"// fake: when BM=1,\n" COPY, 1, "expected '// fake: when"},
        {"// fake:\n" COPY, 1, "expected a command"},
        {"// fake: crash now\n" COPY, 1, "left over behind the fake command: 'now"},
        {"#include \"not_there.h\"\n" COPY, 1, "'not_there.h' file not found"},
    };
    assert_int_equal(rig_open(&r), KOPT_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(rig_load(&r, cases[i].source, "k", NULL, 0), KOPT_EINPUT);
        assert_int_equal(ERR.line, cases[i].line);
        assert_string_equal(ERR.file, "user.cl");
        if (!strstr(ERR.message, cases[i].text))
            fail_msg("case %zu: '%s'", i, ERR.message);
    }
    rig_close(&r);
}

static void an_include_that_includes_itself_ends(void **state)
{
    (void)state;
    struct rig r;
    FILE *f = fopen("again.h", "we");
    assert_non_null(f);
    assert_true(fputs("#include \"again.h\"\n", f) >= 0 && fclose(f) == 0);
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(rig_load(&r, "#include \"again.h\"\nvoid k\n", "k", NULL, 0), KOPT_EINPUT);
    rig_close(&r);
}

static void launches_can_be_refused(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(once(&r, COPY "// fake: launch_error\n", &ns), KOPT_EDEVICE);
    assert_non_null(strstr(ERR.message, "launch was refused"));
    assert_true(isnan(ns));
    assert_int_equal(once(&r, COPY "// fake: limit\n", &ns), KOPT_ERANGE);
    assert_non_null(strstr(ERR.message, "98304 of 49152"));
    assert_int_equal(once(&r, COPY "// fake: limit 49152\n", &ns), KOPT_OK);
    assert_int_equal(once(&r, "// fake: out 2\nvoid k\n", &ns), KOPT_EINPUT);
    assert_int_equal(once(&r, "// fake: out 1 = copy 9\nvoid k\n", &ns), KOPT_EINPUT);
    assert_int_equal(once(&r, COPY, &ns), KOPT_OK);
    rig_close(&r);
}

static void a_lost_device_stays_lost(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    float got[N];
    static const char STATE[] = "lost.state";
    (void)remove(STATE);
    assert_int_equal(setenv("KOPT_FAKE_STATE", STATE, 1), 0);
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(once(&r, COPY "// fake: lost\n", &ns), KOPT_EDEVICE);
    assert_non_null(strstr(ERR.message, "the device is gone"));
    assert_int_equal(kp_buffer_read(r.d, r.in, 0, got, sizeof(got), &ERR), KOPT_EDEVICE);
    assert_int_equal(kp_buffer_fill(r.d, r.in, 0, &ERR), KOPT_EDEVICE);
    struct kp_buffer *b = NULL;
    assert_int_equal(kp_buffer_new(r.d, 4, &b, &ERR), KOPT_EDEVICE);
    uint64_t free_bytes;
    uint64_t total;
    kp_device_memory(r.d, &free_bytes, &total);
    assert_int_equal(total, 0);
    rig_close(&r);
    /* another process would see the file, too */
    assert_int_equal(rig_open(&r), KOPT_EDEVICE);
    rig_close(&r);
    assert_int_equal(remove(STATE), 0);
    assert_int_equal(rig_open(&r), KOPT_OK);
    rig_close(&r);
    assert_int_equal(unsetenv("KOPT_FAKE_STATE"), 0);
}

/* What ends the process: 0, or the signal; -1 when it had to be ended. */
static int fate(const char *source)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rig r;
        double ns;
        bool good = rig_open(&r) == KOPT_OK && once(&r, source, &ns) == KOPT_OK;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    for (int i = 0; i < 40; i++) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        kp_clock_sleep_ns(10000000);
    }
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return -1;
}

static void some_launches_do_not_come_back(void **state)
{
    (void)state;
    assert_int_equal(fate(COPY), 0);
    assert_int_equal(fate(COPY "// fake: crash\n"), SIGSEGV);
    assert_int_equal(fate(COPY "// fake: hang\n"), -1);
    assert_int_equal(fate(COPY "// fake: compile_hang\n"), -1);
    assert_int_equal(fate(COPY "// fake: compile_abort\n"), SIGABRT);
    int64_t begin = kp_clock_ns();
    assert_int_equal(fate(COPY "// fake: compile_slow 60\n"), 0);
    assert_true(kp_clock_ns() - begin >= 60000000);
}

static void every_driver_call_can_fail(void **state)
{
    (void)state;
    static const char *const CALLS[] = {"open",  "info", "device_open", "alloc",
                                        "write", "load", "launch"};
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(*CALLS); i++) {
        struct rig r;
        double ns;
        char text[64];
        (void)snprintf(text, sizeof(text), "nothing,%s,fillet", CALLS[i]);
        assert_int_equal(setenv("KOPT_FAKE_FAIL", text, 1), 0);
        kopt_status st = rig_open(&r);
        if (st == KOPT_OK)
            st = once(&r, COPY, &ns);
        if (st != KOPT_EDEVICE || !strstr(ERR.message, "told to fail"))
            fail_msg("%s: %d %s", CALLS[i], (int)st, ERR.message);
        rig_close(&r);
    }
    assert_int_equal(unsetenv("KOPT_FAKE_FAIL"), 0);
}

/* --- devices ---------------------------------------------------------------------------------
 */

static void the_environment_sets_the_devices_up(void **state)
{
    (void)state;
    struct kp_runtime *rt = NULL;
    struct kp_device_info info;
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "3", 1), 0);
    assert_int_equal(setenv("KOPT_FAKE_CPU", "1", 1), 0);
    assert_int_equal(setenv("KOPT_FAKE_MEMORY", "1000", 1), 0);
    assert_int_equal(kp_runtime_open(KP_BACKEND_FAKE, NULL, &rt, &ERR), KOPT_OK);
    assert_int_equal(kp_runtime_n_devices(rt), 3);
    assert_int_equal(kp_runtime_info(rt, 2, &info, &ERR), KOPT_OK);
    assert_string_equal(info.name, "Fake device 2");
    assert_true(info.is_cpu);
    assert_int_equal(info.limits.global_bytes, 1000);
    struct kp_device *d = NULL;
    struct kp_buffer *a = NULL;
    struct kp_buffer *b = NULL;
    assert_int_equal(kp_device_open(rt, 2, &d, &ERR), KOPT_OK);
    assert_int_equal(kp_buffer_new(d, 600, &a, &ERR), KOPT_OK);
    assert_int_equal(kp_buffer_new(d, 401, &b, &ERR), KOPT_EFULL);
    assert_non_null(strstr(ERR.message, "401 bytes"));
    uint64_t free_bytes;
    uint64_t total;
    kp_device_memory(d, &free_bytes, &total);
    assert_int_equal(free_bytes, 400);
    kp_buffer_free(d, a);
    assert_int_equal(kp_buffer_new(d, 1000, &b, &ERR), KOPT_OK);
    kp_buffer_free(d, b);
    kp_device_close(d);
    kp_runtime_close(rt);
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "0", 1), 0);
    assert_int_equal(kp_runtime_open(KP_BACKEND_FAKE, NULL, &rt, &ERR), KOPT_OK);
    assert_int_equal(kp_runtime_n_devices(rt), 0);
    assert_int_equal(kp_runtime_info(rt, 0, &info, &ERR), KOPT_ENOTFOUND);
    kp_runtime_close(rt);
    struct kp_compiler *c = NULL;
    assert_int_equal(kp_compiler_open(KP_BACKEND_FAKE, 0, NULL, NULL, &c, &ERR), KOPT_EDEVICE);
    assert_int_equal(kp_compiler_open(KP_BACKEND_FAKE, 0, "sm_90", NULL, &c, &ERR), KOPT_EENV);
    assert_null(c);
    (void)unsetenv("KOPT_FAKE_DEVICES");
    (void)unsetenv("KOPT_FAKE_CPU");
    (void)unsetenv("KOPT_FAKE_MEMORY");
}

static void sensors_count_energy(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    struct kp_sensors before;
    struct kp_sensors after;
    assert_int_equal(rig_open(&r), KOPT_OK);
    kp_device_sensors(r.d, &before);
    assert_true(before.power_w == 100 && before.energy_j == 0 && before.throttle == 0);
    assert_int_equal(once(&r, COPY "// fake: time 1e9\n", &ns), KOPT_OK);
    kp_device_sensors(r.d, &after);
    assert_true(fabs(after.energy_j - 100) < 1e-9); /* a second at 100 W, in doubles */
    rig_close(&r);
}

static void the_trace_says_what_was_launched(void **state)
{
    (void)state;
    static const char *const MACROS[] = {"BM=2", "TEXT=a b"};
    static const char TRACE[] = "launches.txt";
    struct rig r;
    double ns[3];
    char line[256];
    (void)remove(TRACE);
    assert_int_equal(setenv("KOPT_FAKE_TRACE", TRACE, 1), 0);
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(rig_load(&r, COPY "// fake: lucky 2\n", "k", MACROS, 2), KOPT_OK);
    struct kp_run run = {.launch = &r.l, .n = 2, .times_ns = ns, .flush_bytes = 12345};
    assert_int_equal(kp_module_run(r.d, r.m, &run, &ERR), KOPT_OK);
    run.n = 1;
    run.flush_bytes = 0;
    assert_int_equal(kp_module_run(r.d, r.m, &run, &ERR), KOPT_OK);
    rig_close(&r);
    assert_int_equal(unsetenv("KOPT_FAKE_TRACE"), 0);
    FILE *f = fopen(TRACE, "re");
    assert_non_null(f);
    static const char *const WANT[] = {"device=0 flush=12345 ns=1000 launch=1 BM=2 TEXT=a b\n",
                                       "device=0 flush=12345 ns=700 launch=2 BM=2 TEXT=a b\n",
                                       "device=0 flush=0 ns=1000 launch=3 BM=2 TEXT=a b\n"};
    for (int i = 0; i < 3; i++) {
        assert_non_null(fgets(line, sizeof(line), f));
        assert_string_equal(line, WANT[i]);
    }
    assert_null(fgets(line, sizeof(line), f));
    assert_int_equal(fclose(f), 0);
}

static void the_compilers_version_can_be_another(void **state)
{
    (void)state;
    struct rig r;
    assert_int_equal(setenv("KOPT_FAKE_COMPILER", "7", 1), 0);
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_string_equal(kp_compiler_version(r.c), "fakecc 7");
    assert_string_equal(kp_device_info(r.d)->compiler, "fakecc 7");
    rig_close(&r);
    assert_int_equal(unsetenv("KOPT_FAKE_COMPILER"), 0);
}

static void a_flush_can_fail(void **state)
{
    (void)state;
    struct rig r;
    double ns = 0;
    assert_int_equal(setenv("KOPT_FAKE_FAIL", "flush", 1), 0);
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(rig_load(&r, COPY, "k", NULL, 0), KOPT_OK);
    struct kp_run run = {.launch = &r.l, .n = 1, .times_ns = &ns, .flush_bytes = 64};
    assert_int_equal(kp_module_run(r.d, r.m, &run, &ERR), KOPT_EDEVICE);
    assert_non_null(strstr(ERR.message, "empty the caches"));
    run.flush_bytes = 0;
    assert_int_equal(kp_module_run(r.d, r.m, &run, &ERR), KOPT_OK);
    rig_close(&r);
    assert_int_equal(unsetenv("KOPT_FAKE_FAIL"), 0);
}

/* --- the loader ------------------------------------------------------------------------------
 */

static void use_library(const char *name)
{
    char path[2048];
    const char *folder = getenv("KOPT_TEST_DRIVERS"); /* NOLINT(concurrency-mt-unsafe) */
    assert_non_null(folder);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(setenv("KOPT_FAKE_LIBRARY", path, 1), 0);
}

static void an_old_library_is_refused(void **state)
{
    (void)state;
    struct kp_runtime *rt = NULL;
    use_library("libkopt_fakedriver_old.so");
    assert_int_equal(kp_runtime_open(KP_BACKEND_FAKE, NULL, &rt, &ERR), KOPT_EENV);
    assert_non_null(strstr(ERR.message, "is version 1, 2 is needed"));
    assert_null(rt);
}

static void a_library_without_a_required_symbol_is_refused(void **state)
{
    (void)state;
    struct kp_runtime *rt = NULL;
    struct kp_compiler *c = NULL;
    use_library("libkopt_fakedriver_partial.so");
    assert_int_equal(kp_runtime_open(KP_BACKEND_FAKE, NULL, &rt, &ERR), KOPT_EENV);
    assert_non_null(strstr(ERR.message, "has no symbol fk_launch"));
    assert_int_equal(kp_compiler_open(KP_BACKEND_FAKE, 0, NULL, NULL, &c, &ERR), KOPT_EENV);
    assert_int_equal(setenv("KOPT_FAKE_LIBRARY", "libm.so.6", 1), 0);
    assert_int_equal(kp_runtime_open(KP_BACKEND_FAKE, NULL, &rt, &ERR), KOPT_EENV);
    assert_non_null(strstr(ERR.message, "has no symbol fk_version"));
    assert_int_equal(setenv("KOPT_FAKE_LIBRARY", "/nowhere/lib.so", 1), 0);
    assert_int_equal(kp_runtime_open(KP_BACKEND_FAKE, NULL, &rt, &ERR), KOPT_EENV);
    assert_non_null(strstr(ERR.message, "/nowhere/lib.so"));
    assert_non_null(strstr(ERR.hint, "KOPT_FAKE_LIBRARY"));
}

static void a_library_without_the_optional_symbols_works(void **state)
{
    (void)state;
    struct rig r;
    double ns;
    use_library("libkopt_fakedriver_bare.so");
    assert_int_equal(rig_open(&r), KOPT_OK);
    assert_int_equal(once(&r, COPY, &ns), KOPT_OK);
    assert_int_equal(rig_check(&r).n_bad, 0);
    uint64_t free_bytes;
    uint64_t total;
    kp_device_memory(r.d, &free_bytes, &total);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(total, 0);
    struct kp_sensors s;
    kp_device_sensors(r.d, &s);
    assert_true(isnan(s.power_w) && isnan(s.energy_j));
    assert_int_equal(once(&r, COPY "// fake: launch_error\n", &ns), KOPT_EDEVICE);
    assert_non_null(strstr(ERR.message, "status 7"));
    rig_close(&r);
}

static int default_library(void **state)
{
    (void)state;
    return unsetenv("KOPT_FAKE_LIBRARY");
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    int n = 1;
    for (kopt_status st = KOPT_ENOMEM; st != KOPT_OK; n++) {
        struct rig r;
        double ns;
        kp_alloc_fail_at(n);
        st = rig_open(&r);
        if (st == KOPT_OK)
            st = once(&r, COPY, &ns);
        kp_alloc_fail_at(0);
        rig_close(&r);
        /* KOPT_EENV: the path of the library could not be put together, so it was not found */
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM || st == KOPT_EENV);
        assert_true(n < 1000);
    }
    assert_true(n > 15); /* a run makes more of them than that */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_follow_the_formula),
        cmocka_unit_test(noise_is_bounded_and_the_same_each_time),
        cmocka_unit_test(a_ramp_is_the_devices_and_ends),
        cmocka_unit_test(luck_is_one_launch_of_each_module),
        cmocka_unit_test(impossible_times_are_reported_as_they_are),
        cmocka_unit_test(a_lie_shows_on_the_clock),
        cmocka_unit_test(outputs_without_a_source_have_the_pattern),
        cmocka_unit_test(wrong_answers_are_wrong_in_their_own_ways),
        cmocka_unit_test(answers_may_change_from_launch_to_launch),
        cmocka_unit_test(an_answer_may_be_wrong_at_one_launch),
        cmocka_unit_test(out_of_bounds_spoils_the_neighbour),
        cmocka_unit_test(actions_can_be_for_one_kernel_only),
        cmocka_unit_test(errors_come_with_their_place),
        cmocka_unit_test(an_include_that_includes_itself_ends),
        cmocka_unit_test(launches_can_be_refused),
        cmocka_unit_test(a_lost_device_stays_lost),
        cmocka_unit_test(some_launches_do_not_come_back),
        cmocka_unit_test(every_driver_call_can_fail),
        cmocka_unit_test(the_environment_sets_the_devices_up),
        cmocka_unit_test(sensors_count_energy),
        cmocka_unit_test(the_trace_says_what_was_launched),
        cmocka_unit_test(the_compilers_version_can_be_another),
        cmocka_unit_test(a_flush_can_fail),
        cmocka_unit_test_teardown(an_old_library_is_refused, default_library),
        cmocka_unit_test_teardown(a_library_without_a_required_symbol_is_refused,
                                  default_library),
        cmocka_unit_test_teardown(a_library_without_the_optional_symbols_works,
                                  default_library),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
