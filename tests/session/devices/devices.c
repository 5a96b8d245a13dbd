/* SPDX-License-Identifier: MIT */
/* Sessions on a real device, from the kernel file to the report: compilers, runners, timing,
 * checks and store. Without arguments all of it; with "examples", "faults" or "t1" one part.
 * Exit 77 where there is no such device, unless KOPT_REQUIRE_DEVICE names its back end. */
#include "session/devices/devices.h"

#include <math.h>

static const struct device_flavour *F;
static char device[64]; /* "opencl:0" */
static char compiler[256];
static char missing[1024];

/* --- the device and the files
 * ----------------------------------------------------------------- */

static void on_device(void *user, const kopt_device_info *info)
{
    (void)user;
    if (device[0] || strcmp(info->backend, F->backend) != 0)
        return;
    (void)snprintf(device, sizeof(device), "%s", info->id);
    (void)snprintf(compiler, sizeof(compiler), "%s", info->compiler);
    (void)printf("%s: %s, %s, %s\n", info->id, info->name, info->driver, info->compiler);
}

static void on_missing(void *user, const kopt_device_missing *m)
{
    (void)user;
    if (strcmp(m->backend, F->backend) == 0)
        (void)snprintf(missing, sizeof(missing), "%s", m->reason);
}

/* folder/name.suffix of the sources; suffix "" = none */
static const char *source_path(char *out, size_t bytes, const char *folder, const char *name,
                               const char *suffix)
{
    const char *root = getenv("KOPT_SOURCE_DIR");
    if (!root)
        fail_msg("KOPT_SOURCE_DIR is not set");
    (void)snprintf(out, bytes, "%s/%s/%s%s%s", root, folder, name, suffix[0] ? "." : "",
                   suffix);
    return out;
}

static void on_device_init(struct session *s, const char *kernel, const char *store)
{
    session_init(s, kernel, store);
    s->o.device = device;
    s->o.compile_timeout_s = 60; /* the machine may be busy */
    s->o.launch_timeout_s = 10;
    s->o.min_samples = 3;
    s->o.max_samples = 7;
}

static void must_be_ok(const struct session *s)
{
    if (s->status != KOPT_OK)
        fail_msg("%d: %s: %s (%s)", s->status, s->err.file, s->err.message,
                 s->has_report && s->report.first_failure ? s->report.first_failure : "");
}

/* --- the examples
 * ------------------------------------------------------------------------------ */

static void tune_example(const struct device_example *e, const char *store, struct session *s)
{
    static char path[4096];
    char folder[64];
    (void)snprintf(folder, sizeof(folder), "examples/%s", e->name);
    on_device_init(s, source_path(path, sizeof(path), folder, e->name, F->suffix), store);
    s->o.problem = e->problem;
    while (s->o.n_problem < DEVICE_PROBLEM_MAX && e->problem[s->o.n_problem])
        s->o.n_problem++;
    s->o.strategy = "random";
    s->o.max_evaluations = 4;
    session_run(s);
    must_be_ok(s);
    assert_int_equal(s->n_seen, 4);
    for (size_t i = 0; i < s->n_seen; i++)
        if (s->seen[i].outcome != KOPT_OUT_OK || !(s->seen[i].median_ns > 0))
            fail_msg("%s %s: %s: %s, %g ns", e->name, s->seen[i].config,
                     kopt_outcome_name(s->seen[i].outcome), s->seen[i].message,
                     s->seen[i].median_ns);
    assert_int_equal(session_find(s, s->report.first_text)->outcome, KOPT_OUT_OK);
    assert_true(s->report.checked);
    assert_true(isfinite(s->report.best.max_error)); /* something was compared */
    /* the default, clearly the best, has nobody to race with */
    assert_true(s->report.best.race || s->report.speedup == 1);
    assert_true(s->report.speedup > 0 && s->report.speedup_low <= s->report.speedup &&
                s->report.speedup <= s->report.speedup_high);
    assert_true(s->report.n_metrics >= 1 && s->report.metrics[0].best > 0);
    const kopt_tune_split *t =
        &s->report.split; /* nothing of the second run is from a device */
    assert_true(session_measured(s) == 0 ||
                (0 < t->kernel_s && t->kernel_s < t->launch_s && t->launch_s < t->device_s));
}

static void an_example_is_tuned_and_right(void **state)
{
    static struct session s;
    tune_example(*state, NULL, &s);
    assert_int_equal(session_measured(&s), 4);
    session_end(&s);
}

/* The key of a result holds what the driver says of itself: that must be the same each time. */
static void a_second_run_measures_nothing(void **state)
{
    static struct session s;
    (void)remove("again.db");
    tune_example(*state, "again.db", &s);
    assert_int_equal(session_measured(&s), 4);
    session_end(&s);
    tune_example(*state, "again.db", &s);
    assert_int_equal(session_measured(&s), 0);
    assert_int_equal(s.report.progress.from_store, 4);
    session_end(&s);
}

/* --- faults
 * ------------------------------------------------------------------------------------ */

static void check_fault(const struct session *s, int mode)
{
    const struct device_fault *want = &F->faults[mode];
    char config[32];
    (void)snprintf(config, sizeof(config), "MODE=%d", mode);
    const struct seen *x = session_find(s, config);
    if (!(want->outcomes & ONE(x->outcome)))
        fail_msg("%s: %s (%s)", config, kopt_outcome_name(x->outcome), x->message);
    if (want->says && !strstr(x->message, want->says))
        fail_msg("%s: \"%s\" is not in \"%s\"", config, want->says, x->message);
    if ((x->message[0] != 0) != (x->outcome != KOPT_OUT_OK))
        fail_msg("%s is %s, and its message is \"%s\"", config, kopt_outcome_name(x->outcome),
                 x->message);
}

static void whatever_a_kernel_does_the_search_goes_on(void **state)
{
    static struct session s;
    char path[4096];
    (void)state;
    if (F->knows && !F->knows(compiler)) {
        (void)printf("skipped: how %s fails is not known\n", compiler);
        skip();
    }
    on_device_init(
        &s,
        source_path(path, sizeof(path), "tests/session/devices/kernels", "faults", F->suffix),
        NULL);
    s.o.strategy = "exhaustive";
    s.o.compile_timeout_s = F->compile_timeout_s;
    s.o.launch_timeout_s = 2;
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(s.n_seen, DEVICE_FAULTS);
    for (int mode = 0; mode < DEVICE_FAULTS; mode++)
        check_fault(&s, mode);
    assert_string_equal(s.report.first_text, "MODE=0");
    assert_string_equal(s.report.best_text, "MODE=1");
    assert_int_equal(s.report.n_tied, 0);
    /* MODE=0 works a hundred times as much. */
    assert_true(s.report.speedup_low > 2);
    session_end(&s);
}

/* --- T1 files
 * ---------------------------------------------------------------------------------- */

/* A file of t1/ into this folder, "OpenCL" in its language replaced by the device's. */
static void copy_t1(const char *name)
{
    static const char key[] = "\"Language\": \"OpenCL\"";
    static char text[65536];
    char path[4096];
    FILE *in =
        fopen(source_path(path, sizeof(path), "tests/session/devices/t1", name, ""), "rbe");
    if (!in)
        fail_msg("cannot open %s", path);
    size_t n = fread(text, 1, sizeof(text) - 1, in);
    assert_true(n < sizeof(text) - 1);
    text[n] = 0;
    (void)fclose(in);
    const char *at = strstr(text, key);
    FILE *out = fopen(name, "wbe");
    if (!out)
        fail_msg("cannot create %s", name);
    if (at)
        (void)fprintf(out, "%.*s\"Language\": \"%s\"%s", (int)(at - text), text, F->language,
                      at + sizeof(key) - 1);
    else
        (void)fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* Every configuration is right but the one that the file knows to be wrong. */
static void tune_t1(const char *file, size_t n, const char *first, const char *wrong)
{
    static struct session s;
    copy_t1("kernels.cl");
    copy_t1(file);
    on_device_init(&s, file, NULL);
    s.o.strategy = "exhaustive";
    session_run(&s);
    must_be_ok(&s);
    assert_int_equal(s.n_seen, n);
    for (size_t i = 0; i < s.n_seen; i++) {
        const struct seen *x = &s.seen[i];
        kopt_outcome want = strcmp(x->config, wrong) == 0 ? KOPT_OUT_WRONG : KOPT_OUT_OK;
        if (x->outcome != want)
            fail_msg("%s %s: %s (%s)", file, x->config, kopt_outcome_name(x->outcome),
                     x->message);
    }
    (void)session_find(&s, wrong);
    assert_string_equal(s.report.first_text, first);
    assert_true(s.report.checked);
    session_end(&s);
}

static void a_file_of_ktt_is_tuned(void **state)
{
    (void)state;
    tune_t1("ktt.json", 6, "WG=64,PER_ITEM=1,BROKEN=false", "WG=16,PER_ITEM=2,BROKEN=true");
}

static void a_file_of_kernel_tuner_is_tuned(void **state)
{
    (void)state;
    tune_t1("tuner.json", 5, "block_size_x=32,block_size_y=2,tile_x=1,skip_rows=0",
            "block_size_x=8,block_size_y=4,tile_x=3,skip_rows=1");
}

/* --- all of it
 * --------------------------------------------------------------------------------- */

static int run_examples(void)
{
    struct device_example e[6];
    struct CMUnitTest tests[6] = {{0}};
    memcpy(e, F->examples, sizeof(e));
    for (size_t i = 0; i < 6; i++) {
        tests[i].name = e[i].name;
        tests[i].test_func = an_example_is_tuned_and_right;
        tests[i].initial_state = &e[i];
    }
    tests[3].test_func = a_second_run_measures_nothing;
    return cmocka_run_group_tests_name("session/examples", tests, NULL, NULL);
}

static int run_faults(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_a_kernel_does_the_search_goes_on),
    };
    return cmocka_run_group_tests_name("session/faults", tests, NULL, NULL);
}

static int run_t1(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_ktt_is_tuned),
        cmocka_unit_test(a_file_of_kernel_tuner_is_tuned),
    };
    return cmocka_run_group_tests_name("session/t1", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } parts[] = {{"examples", run_examples}, {"faults", run_faults}, {"t1", run_t1}};
    const kopt_device_visitor look = {.found = on_device, .missing = on_missing};
    kopt_error err;
    int failed = 0;
    const char *build = getenv("KOPT_BUILD_DIR");
    char libexec[4096];
    F = device_flavour();
    (void)snprintf(libexec, sizeof(libexec), "%s/libexec/kopt", build ? build : ".");
    if (build && setenv("KOPT_LIBEXEC", libexec, 1) != 0)
        return 1;
    if (kopt_devices(&look, &err) != KOPT_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (!device[0]) {
        const char *required = getenv("KOPT_REQUIRE_DEVICE");
        int failure = required && strstr(required, F->backend);
        (void)printf("%s: no %s device: %s\n", failure ? "failed" : "skipped", F->backend,
                     missing);
        return failure ? 1 : 77;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0)
            failed += parts[i].run();
    return failed != 0;
}
