/* SPDX-License-Identifier: MIT */
/* Recorded spaces from files of every format. */
#include "base/alloc.h"
#include "os/file.h"
#include "replay/recording.h"
#include "store/store.h"
#include "support/test.h"

#include <math.h>
#include <unistd.h>
#include <zlib.h>

static void put(const char *path, const void *bytes, size_t n)
{
    kopt_error err = {0};
    if (kp_file_put(path, bytes, n, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static void put_packed(const char *path, const char *text, size_t n)
{
    gzFile f = gzopen(path, "wb9");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, text, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
}

static struct kp_recording *open_path(const char *path)
{
    struct kp_recording *r = NULL;
    kopt_error err = {0};
    if (kp_recording_open(path, &r, &err) != KOPT_OK)
        fail_msg("%s: line %d: %s", path, err.line, err.message);
    assert_non_null(r);
    return r;
}

static struct kp_recording *open_text(const char *text)
{
    put("space.json", text, strlen(text));
    return open_path("space.json");
}

static kopt_error assert_refused(const char *path, kopt_status code, const char *what)
{
    struct kp_recording *r = NULL;
    kopt_error err = {0};
    kopt_status st = kp_recording_open(path, &r, &err);
    assert_null(r);
    if (st != code || err.code != code || !strstr(err.message, what))
        fail_msg("%s: %d: %s", path, (int)st, err.message);
    return err;
}

static kopt_error assert_text_refused(const char *text, kopt_status code, const char *what)
{
    put("bad.json", text, strlen(text));
    return assert_refused("bad.json", code, what);
}

/* Rank of {"A":1,..}. */
static size_t rank_of(const struct kp_recording *r, const char *json)
{
    uint32_t config[KP_PARAMS_MAX];
    uint64_t rank = 0;
    if (!kp_space_config_read(r->space, json, config) ||
        !kp_space_rank(r->space, config, &rank))
        fail_msg("%s is not in it", json);
    return (size_t)rank;
}

static void assert_row(const struct kp_recording *r, const char *json, kopt_outcome outcome,
                       const double want[3])
{
    size_t i = rank_of(r, json);
    if (r->outcome[i] != outcome || r->compile_ns[i] != want[1] ||
        r->measure_ns[i] != want[2] ||
        (outcome == KOPT_OUT_OK ? r->time_ns[i] != want[0] : !isinf(r->time_ns[i])))
        fail_msg("%s: %s %g %g %g", json, kopt_outcome_name((kopt_outcome)r->outcome[i]),
                 r->time_ns[i], r->compile_ns[i], r->measure_ns[i]);
}
#define ASSERT_ROW(r, json, outcome, time, compile, measure) \
    assert_row(r, json, outcome, (const double[3]){time, compile, measure})

static void fail_each_allocation(const char *path)
{
    bool done = false;
    long n = 1;
    for (; !done; n++) {
        struct kp_recording *r = NULL;
        kopt_error err = {0};
        kp_alloc_fail_at(n);
        kopt_status st = kp_recording_open(path, &r, &err);
        kp_alloc_fail_at(0);
        done = st == KOPT_OK;
        if (!done && (st != KOPT_ENOMEM || r))
            fail_msg("%s: allocation %ld: %d %s", path, n, (int)st, err.message);
        kp_recording_close(r);
    }
    assert_true(n > 20);
}

/* --- Kernel Tuner --------------------------------------------------------------------------
 */

#define KT_HEAD                                                                      \
    "{\"device_name\":\"Toy GPU\",\"kernel_name\":\"axpy\",\"problem_size\":[64,8]," \
    "\"tune_params_keys\":[\"bx\",\"mode\",\"f\",\"on\"],"                           \
    "\"tune_params\":{\"bx\":[1,2,3,4,5,6,7,8],\"mode\":[\"a\",\"b\",\"c\"],"        \
    "\"f\":[0.5,1.5],\"on\":[true,false]},\"objective\":\"time\",\"cache\":{\n"
#define KT_ENTRY(bx, mode, f, on, rest)                                                     \
    "\"" #bx "," #mode "\":{\"bx\":" #bx ",\"mode\":\"" #mode "\",\"f\":" #f ",\"on\":" #on \
    "," rest "},\n"
#define KT_COSTS                                                          \
    "\"compile_time\":100,\"benchmark_time\":20,\"verification_time\":3," \
    "\"framework_time\":1,\"strategy_time\":1000"
#define KT_BODY                                                              \
    KT_ENTRY(8, b, 0.5, true, "\"time\":3.5,\"times\":[1,2,3]," KT_COSTS)    \
    KT_ENTRY(2, b, 0.5, true, "\"time\":2.0," KT_COSTS)                      \
    KT_ENTRY(2, a, 1.5, false,                                               \
             "\"time\":\"CompilationFailedConfig\",\"compile_time\":50,"     \
             "\"verification_time\":0,\"benchmark_time\":0,"                 \
             "\"framework_time\":2")                                         \
    KT_ENTRY(4, a, 1.5, false, "\"time\":\"RuntimeFailedConfig\"," KT_COSTS) \
    KT_ENTRY(16, a, 1.5, false, "\"time\":\"InvalidConfig\"")                \
    KT_ENTRY(32, a, 1.5, false, "\"time\":1e20," KT_COSTS)

static const char kt_text[] = KT_HEAD KT_BODY "\"9\":{\"bx\":1,\"mode\":\"b\",\"f\":0.5,"
                                              "\"on\":true,\"time\":6}}}";

static void assert_kt(const struct kp_recording *r, const char *name)
{
    const kopt_recording_info *i = &r->info;
    assert_string_equal(i->format, "Kernel Tuner");
    assert_string_equal(i->name, name);
    assert_string_equal(i->kernel, "axpy");
    assert_string_equal(i->device, "Toy GPU");
    assert_string_equal(i->problem, "{\"x\":64,\"y\":8}");
    assert_string_equal(i->best_text, "bx=2,mode=b,f=0.5,on=true");
    assert_true(i->n == 7 && i->n_params == 4 && i->left_out == 0 && i->cut == 0);
    assert_true(i->by_outcome[KOPT_OUT_OK] == 3 && r->n_ok == 3);
    assert_true(i->best_ns == 2e6 && i->median_ns == 3.5e6);
    assert_true(i->cutoff_ns == 2e6 + 0.05 * 1.5e6);
    assert_int_equal(i->budget, 1); /* i = 2 of N = 3: ceil(2 / 2) */
    assert_true(r->sorted[0] == 6e6 && r->sorted[1] == 3.5e6 && r->sorted[2] == 2e6);
    /* only what was recorded counts, in order: 1, 2, 4, 8, 16, 32; b came before a */
    assert_true(i->cartesian == 6 * 2 * 2 * 2);
    assert_true(kp_space_param(r->space, 0)->values[4].as.i == 16);
    assert_true(kp_str_is(kp_space_param(r->space, 1)->values[0].as.s, "b"));
    assert_true(kp_space_param(r->space, 3)->type == KP_BOOL);
}

static void a_cache_of_kernel_tuner_is_a_recorded_space(void **state)
{
    (void)state;
    struct kp_recording *r = open_text(kt_text);
    assert_kt(r, "space");
    ASSERT_ROW(r, "{\"bx\":8,\"mode\":\"b\",\"f\":0.5,\"on\":true}", KOPT_OUT_OK, 3.5e6, 100e6,
               24e6);
    ASSERT_ROW(r, "{\"bx\":2,\"mode\":\"a\",\"f\":1.5,\"on\":false}", KOPT_OUT_COMPILE_ERROR, 0,
               50e6, 2e6);
    ASSERT_ROW(r, "{\"bx\":4,\"mode\":\"a\",\"f\":1.5,\"on\":false}", KOPT_OUT_LAUNCH_ERROR, 0,
               100e6, 24e6);
    /* what is not recorded: the median of the others, nothing where it never ran */
    ASSERT_ROW(r, "{\"bx\":16,\"mode\":\"a\",\"f\":1.5,\"on\":false}", KOPT_OUT_DEVICE_LIMIT, 0,
               100e6, 0);
    ASSERT_ROW(r, "{\"bx\":32,\"mode\":\"a\",\"f\":1.5,\"on\":false}", KOPT_OUT_LAUNCH_ERROR, 0,
               100e6, 24e6);
    ASSERT_ROW(r, "{\"bx\":1,\"mode\":\"b\",\"f\":0.5,\"on\":true}", KOPT_OUT_OK, 6e6, 100e6,
               24e6);
    assert_true(r->info.evaluation_s == 0.124);
    assert_true(fabs(r->info.compile_share - 650 / (650.0 + 122)) < 1e-12);
    kp_recording_close(r);
}

static void a_packed_file_is_the_same(void **state)
{
    (void)state;
    put_packed("toy.json.gz", kt_text, strlen(kt_text));
    struct kp_recording *r = open_path("toy.json.gz");
    assert_kt(r, "toy");
    assert_string_equal(r->info.path, "toy.json.gz");
    kp_recording_close(r);
    /* the header behind the cache, so that the reader has to go back */
    static const char behind[] =
        "{\"cache\":{\"1\":{\"A\":1,\"time\":2}},\"tune_params_keys\":[\"A\"],"
        "\"kernel_name\":\"k\",\"device_name\":\"d\",\"problem_size\":1}";
    put_packed("toy.json.gz", behind, strlen(behind));
    r = open_path("toy.json.gz");
    assert_true(r->info.n == 1 && r->info.best_ns == 2e6);
    assert_string_equal(r->info.kernel, "k");
    kp_recording_close(r);
}

/* Whatever is whole is taken, and it is said that there was more. */
static void a_file_cut_anywhere_is_a_cut_space_or_refused(void **state)
{
    (void)state;
    size_t most = 0;
    for (size_t n = 0; n < strlen(kt_text); n++) {
        struct kp_recording *r = NULL;
        kopt_error err = {0};
        put("cut.json", kt_text, n);
        kopt_status st = kp_recording_open("cut.json", &r, &err);
        if (st != KOPT_OK) {
            assert_int_equal(st, KOPT_EINPUT);
            assert_true(most == 0 && err.message[0]);
            continue;
        }
        assert_true(r->info.n >= most && r->info.n <= 7);
        most = (size_t)r->info.n;
        kp_recording_close(r);
    }
    assert_int_equal(most, 7);
    put("cut.json", kt_text, strlen(kt_text) - 20); /* in the last entry */
    struct kp_recording *r = open_path("cut.json");
    assert_true(r->info.n == 6 && r->info.cut == 1);
    kp_recording_close(r);
    put("open.json", KT_HEAD KT_BODY, strlen(KT_HEAD KT_BODY));
    r = open_path("open.json");
    assert_true(r->info.n == 6 && r->info.cut == 0); /* as Kernel Tuner leaves it */
    kp_recording_close(r);
}

static size_t read_all(const char *path, unsigned char *bytes, size_t max)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, max, f);
    (void)fclose(f);
    assert_true(n > 0 && n < max);
    return n;
}

static void a_packed_file_cut_or_damaged_is_no_crash(void **state)
{
    static unsigned char bytes[8192];
    (void)state;
    int n_cut = 0;
    int n_damaged = 0;
    put_packed("whole.json.gz", kt_text, strlen(kt_text));
    size_t n = read_all("whole.json.gz", bytes, sizeof(bytes));
    for (size_t i = 0; i < n; i++) {
        struct kp_recording *r = NULL;
        kopt_error err = {0};
        put("part.gz", bytes, i);
        kopt_status st = kp_recording_open("part.gz", &r, &err);
        assert_true(st == KOPT_OK ? r->info.cut == 1 || r->info.n == 7 : st == KOPT_EINPUT);
        n_cut += st == KOPT_OK;
        kp_recording_close(r);
        bytes[i] ^= 0x5A;
        put("part.gz", bytes, n);
        bytes[i] ^= 0x5A;
        st = kp_recording_open("part.gz", &r, &err);
        assert_true(st == KOPT_OK || (st == KOPT_EINPUT && err.message[0]));
        n_damaged += st != KOPT_OK;
        kp_recording_close(r);
    }
    assert_true(n_cut > 8);
    assert_true(n_damaged > (int)n / 2);
}

static void what_is_of_no_use_is_left_out(void **state)
{
    static const char text[] =
        "{\"device_name\":\"\",\"kernel_name\":\"k\",\"problem_size\":1,"
        "\"tune_params_keys\":[\"A\"],\"cache\":{"
        "\"1\":{\"A\":1,\"time\":5},"
        "\"2\":{\"time\":5},"             /* no parameter */
        "\"3\":{\"A\":[3],\"time\":5},"   /* no plain value */
        "\"4\":{\"A\":null,\"time\":5},"  /* the same */
        "\"5\":[1,2],"                    /* no object */
        "\"6\":{\"A\":6,\"time\":1e999}," /* out of range: no JSON */
        "\"7\":{\"A\":7,\"time\":-1},"    /* a bad time, which is a result */
        "\"8\":{\"A\":8,\"time\":null},"  /* failed, somehow */
        "\"9\":{\"A\":9},"                /* the same */
        "\"10\":{\"A\":10,\"time\":NaN}," /* the same */
        "\"11\":{\"A\":11,\"time\":7,\"compile_time\":-5,\"benchmark_time\":\"x\"},"
        "\"12\":{\"A\":99999999999999999999,\"time\":7},"
        "\"1\":{\"A\":1,\"time\":4}}}"; /* again, and newer */
    (void)state;
    struct kp_recording *r = open_text(text);
    assert_int_equal(r->info.left_out, 6);
    assert_int_equal(r->info.n, 6);
    assert_int_equal(r->info.by_outcome[KOPT_OUT_OK], 2);
    assert_int_equal(r->info.by_outcome[KOPT_OUT_BAD_TIME], 1);
    assert_int_equal(r->info.by_outcome[KOPT_OUT_LAUNCH_ERROR], 3);
    ASSERT_ROW(r, "{\"A\":1}", KOPT_OUT_OK, 4e6, 0, 0);
    ASSERT_ROW(r, "{\"A\":11}", KOPT_OUT_OK, 7e6, 0, 0);
    assert_true(isnan(r->info.compile_share) && r->info.evaluation_s == 0);
    kp_recording_close(r);
}

static void a_space_may_be_all_failures_or_a_single_point(void **state)
{
    static const char head[] = "{\"device_name\":\"\",\"kernel_name\":\"k\","
                               "\"problem_size\":1,\"tune_params_keys\":[\"A\"],\"cache\":{";
    char text[512];
    (void)state;
    (void)snprintf(text, sizeof(text), "%s\"1\":{\"A\":1,\"time\":\"RuntimeFailedConfig\"}}}",
                   head);
    struct kp_recording *r = open_text(text);
    assert_true(isnan(r->info.best_ns) && isnan(r->info.median_ns) && r->n_ok == 0);
    assert_true(r->info.n == 1 && r->info.budget == 1);
    assert_string_equal(r->info.best_text, "");
    kp_recording_close(r);
    (void)snprintf(text, sizeof(text), "%s\"1\":{\"A\":1,\"time\":2}}}", head);
    r = open_text(text);
    assert_true(r->info.best_ns == 2e6 && r->info.median_ns == 2e6 && r->info.budget == 1);
    assert_string_equal(r->info.best_text, "A=1");
    kp_recording_close(r);
    (void)snprintf(text, sizeof(text), "%s}}", head);
    (void)assert_text_refused(text, KOPT_EINPUT, "no configuration is recorded");
}

/* --- T4 ------------------------------------------------------------------------------------
 */

#define T4_RESULT(config, rest) "{\"configuration\":{" config "}," rest "}"
#define T4_TIME(v, unit)                                                             \
    "\"measurements\":[{\"name\":\"x\",\"value\":9},{\"name\":\"time\",\"value\":" v \
    ",\"unit\":\"" unit "\"}]"
#define T4_RESULTS                                                                                                                                            \
    "\"results\":[\n" T4_RESULT(                                                                                                                              \
        "\"B\":2,\"A\":\"x\"",                                                                                                                                \
        "\"times\":{\"compilation_time\":10,\"compilation\":11,"                                                                                              \
        "\"benchmark\":5,\"runtimes\":[1,1]},\"invalidity\":\"correct\"," T4_TIME(                                                                            \
            "2.5",                                                                                                                                            \
            "ms")) ",\n" T4_RESULT("\"A\":\"y\",\"B\":2",                                                                                                     \
                                   "\"times\":{\"compilation\":12,\"framework\":1,"                                                                           \
                                   "\"search_algorithm\":100,\"validation\":2,\"runtimes\":[3,4]}," T4_TIME(                                                  \
                                       "1.5",                                                                                                                 \
                                       "")) ",\n" T4_RESULT("\"A\":\"x\",\"B\":1",                                                                            \
                                                            "\"times\":{\"compilation\":14},"                                                                 \
                                                            "\"invalidity\":\"compile\"") ",\n" T4_RESULT("\"A\":\"y\",\"B\":1",                              \
                                                                                                          "\"invalidity\":\"runtime\",\"outcome\":\"crash\"," \
                                                                                                          "\"times\":{\"compilation_time\":0}") "]"
#define T4_META                                      \
    "\"metadata\":{\"timeunit\":\"mili"              \
    "seconds\",\"kernel\":\"k\",\"device\":\"dev\"," \
    "\"problem\":{\"N\":4}}"

static void assert_t4(const struct kp_recording *r)
{
    const kopt_recording_info *i = &r->info;
    assert_string_equal(i->format, "T4");
    assert_string_equal(i->kernel, "k");
    assert_string_equal(i->device, "dev");
    assert_string_equal(i->problem, "{\"N\":4}");
    assert_string_equal(i->best_text, "B=2,A=y");
    assert_true(i->n == 4 && i->left_out == 0 && i->cut == 0);
    ASSERT_ROW(r, "{\"A\":\"x\",\"B\":2}", KOPT_OUT_OK, 2.5e6, 10e6, 5e6);
    ASSERT_ROW(r, "{\"A\":\"y\",\"B\":2}", KOPT_OUT_OK, 1.5e6, 12e6, 10e6);
    ASSERT_ROW(r, "{\"A\":\"x\",\"B\":1}", KOPT_OUT_COMPILE_ERROR, 0, 14e6, 0);
    ASSERT_ROW(r, "{\"A\":\"y\",\"B\":1}", KOPT_OUT_CRASH, 0, 12e6, 7.5e6);
}

static void t4_results_are_a_recorded_space(void **state)
{
    static const char *const texts[] = {
        "{" T4_META "," T4_RESULTS ",\"schema_version\":\"1.0.0\"}",
        "{\"schema_version\":\"1.0.0\"," T4_RESULTS "," T4_META "}",
        "{" T4_RESULTS ",\"other\":[{}]," T4_META "}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct kp_recording *r = open_text(texts[i]);
        assert_t4(r);
        kp_recording_close(r);
        put_packed("t4.json.gz", texts[i], strlen(texts[i]));
        r = open_path("t4.json.gz");
        assert_t4(r);
        kp_recording_close(r);
    }
}

static void units_are_those_of_the_file(void **state)
{
    (void)state;
    static const char *const units[][3] = {
        {"seconds", "", "2.5e9"}, {"microseconds", "", "2500"}, {"microseconds", "s", "2.5e9"},
        {"", "", "2.5e6"},        {"parsecs", "", "2.5e6"},     {"ms", "ns", "2.5"},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "{\"metadata\":{\"timeunit\":\"%s\"},\"results\":[{\"configuration\":"
                       "{\"A\":1},\"measurements\":[{\"name\":\"time\",\"value\":2.5,"
                       "\"unit\":\"%s\"}]}]}",
                       units[i][0], units[i][1]);
        struct kp_recording *r = open_text(text);
        assert_true(fabs(r->info.best_ns / strtod(units[i][2], NULL) - 1) < 1e-15);
        kp_recording_close(r);
    }
}

static void t4_results_of_no_use_are_left_out(void **state)
{
    (void)state;
    struct kp_recording *r = open_text(
        "{\"results\":[" T4_RESULT("\"A\":1", T4_TIME("1", "ms")) "," /* used */
        T4_RESULT("", T4_TIME("1", "ms")) "," T4_RESULT("\"A\":2", "\"x\":1") "," T4_RESULT(
            "\"A\":2",
            T4_TIME(
                "1",
                "parsecs")) "," T4_RESULT("\"A\":2",
                                          T4_TIME(
                                              "-1",
                                              "ms")) "," T4_RESULT("\"A\":2,\"B\":1",
                                                                   T4_TIME(
                                                                       "1",
                                                                       "ms")) "," T4_RESULT("\"B\":2",
                                                                                            T4_TIME(
                                                                                                "1",
                                                                                                "ms")) ","
                                                                                                       "7,null,{}," T4_RESULT(
                                                                                                           "\"A\":3",
                                                                                                           "\"invalidity\":\"timeout\"") "," /* used, as is the next */
        T4_RESULT("\"A\":1", "\"invalidity\":\"correctness\"") "]}");
    assert_true(r->info.n == 2 && r->info.left_out == 9);
    ASSERT_ROW(r, "{\"A\":1}", KOPT_OUT_WRONG, 0, 0, 0);
    ASSERT_ROW(r, "{\"A\":3}", KOPT_OUT_HANG, 0, 0, 0);
    kp_recording_close(r);
}

static void t4_results_cut_anywhere(void **state)
{
    static const char text[] = "{" T4_META "," T4_RESULTS "}";
    (void)state;
    size_t most = 0;
    for (size_t n = 1; n < strlen(text); n++) {
        struct kp_recording *r = NULL;
        kopt_error err = {0};
        put("cut.json", text, n);
        kopt_status st = kp_recording_open("cut.json", &r, &err);
        if (st != KOPT_OK) {
            assert_int_equal(st, KOPT_EINPUT);
            assert_int_equal(most, 0);
            continue;
        }
        assert_true(r->info.n >= most);
        most = (size_t)r->info.n;
        assert_true(r->info.cut == 1 || n + 1 == strlen(text));
        kp_recording_close(r);
    }
    assert_int_equal(most, 4);
}

/* --- stores --------------------------------------------------------------------------------
 */

struct store {
    struct kp_store *st;
    int64_t subject;
    int64_t run;
};

static void store_subject_of(struct store *s, const char *kernel, const char *params,
                             const char *problem)
{
    kopt_error err = {0};
    struct kp_subject subject = {.kernel = kernel,
                                 .kernel_path = "",
                                 .kernel_hash = "h",
                                 .backend = "fake",
                                 .device = "Fake One",
                                 .arch = "",
                                 .driver = "",
                                 .compiler = "",
                                 .problem = problem,
                                 .data = "",
                                 .params = params};
    struct kp_store_run run = {.command = "",
                               .strategy = "random",
                               .version = "0",
                               .host = "",
                               .state = "running",
                               .summary = "",
                               .begun_us = 1};
    assert_int_equal(kp_store_subject(s->st, &subject, &err), KOPT_OK);
    s->subject = subject.id;
    run.subject = subject.id;
    assert_int_equal(kp_store_run_begin(s->st, &run, &err), KOPT_OK);
    s->run = run.id;
}

static void store_subject(struct store *s, const char *kernel, const char *params)
{
    store_subject_of(s, kernel, params, "{\"M\":4,\"N\":8}");
}

static void store_reopen(struct store *s, const char *path)
{
    kopt_error err = {0};
    if (kp_store_open(path, KP_STORE_WRITE, 1000, &s->st, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static void store_open(struct store *s, const char *path)
{
    (void)unlink(path);
    store_reopen(s, path);
}

/* costs: compile, device */
static void store_result(struct store *s, const char *config, kopt_outcome outcome,
                         double median_ns, const double costs[2], int race)
{
    kopt_error err = {0};
    int64_t id = 0;
    const kopt_result r = {.config = config,
                           .outcome = outcome,
                           .message = "",
                           .log = "",
                           .median_ns = median_ns,
                           .low_ns = (double)NAN,
                           .high_ns = (double)NAN,
                           .race = race,
                           .compile_ns = costs[0],
                           .device_ns = costs[1],
                           .registers = -1,
                           .shared_bytes = -1,
                           .local_bytes = -1,
                           .max_error = (double)NAN,
                           .power_w = (double)NAN,
                           .energy_j = (double)NAN,
                           .sm_mhz = (double)NAN,
                           .temp_c = (double)NAN,
                           .throttle = -1};
    if (kp_store_add(s->st, s->run, s->subject, &r, &id, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}
#define COSTS(compile, device) ((const double[2]){compile, device})

static void fill_store(struct store *s)
{
    static const double nan = (double)NAN;
    store_result(s, "{\"BM\":2,\"BN\":1}", KOPT_OUT_OK, 50, COSTS(7, 20), 0);
    store_result(s, "{\"BM\":1,\"BN\":1}", KOPT_OUT_OK, 40, COSTS(9, 22), 0);
    store_result(s, "{\"BM\":1,\"BN\":2}", KOPT_OUT_COMPILE_ERROR, nan, COSTS(3, nan), 0);
    store_result(s, "{\"BM\":2,\"BN\":2}", KOPT_OUT_OK, 30, COSTS(5, 24), 0);
    store_result(s, "{\"BM\":2,\"BN\":2}", KOPT_OUT_WRONG, nan, COSTS(6, 26), 0); /* newer */
    store_result(s, "{\"BM\":1,\"BN\":1}", KOPT_OUT_OK, 41, COSTS(0, nan), 1);    /* a race */
    store_result(s, "{\"BM\":2,\"BN\":1}", KOPT_OUT_OK, 49, COSTS(0, nan), 1);
}

static void assert_stored(const struct kp_recording *r)
{
    assert_string_equal(r->info.format, "kopt");
    assert_string_equal(r->info.kernel, "gemm");
    assert_string_equal(r->info.name, "gemm M=4,N=8 Fake One");
    assert_string_equal(r->info.device, "Fake One");
    assert_string_equal(r->info.problem, "{\"M\":4,\"N\":8}");
    assert_true(r->info.n == 4 && r->n_ok == 2);
    ASSERT_ROW(r, "{\"BM\":2,\"BN\":1}", KOPT_OUT_OK, 49, 7, 20);
    ASSERT_ROW(r, "{\"BM\":1,\"BN\":1}", KOPT_OUT_OK, 41, 9, 22);
    ASSERT_ROW(r, "{\"BM\":1,\"BN\":2}", KOPT_OUT_COMPILE_ERROR, 0, 3, 0);
    ASSERT_ROW(r, "{\"BM\":2,\"BN\":2}", KOPT_OUT_WRONG, 0, 6, 26);
}

static void a_store_with_one_subject_needs_no_number(void **state)
{
    struct store s;
    int64_t *ids = NULL;
    size_t n = 9;
    kopt_error err = {0};
    (void)state;
    store_open(&s, "one.db");
    store_subject(&s, "idle", "[]"); /* without results it does not count */
    store_subject(&s, "gemm", "[\"BN\",\"BM\"]");
    fill_store(&s);
    kp_store_close(s.st);
    struct kp_recording *r = open_path("one.db");
    assert_stored(r);
    assert_string_equal(r->info.best_text, "BN=1,BM=1"); /* as the kernel file has them */
    kp_recording_close(r);
    assert_int_equal(kp_recording_subjects("one.db", &ids, &n, &err), KOPT_OK);
    assert_true(n == 1 && ids[0] == s.subject);
    kp_free(ids);
    (void)assert_refused("one.db#1", KOPT_EINPUT, "no configuration is recorded");
    (void)assert_refused("one.db#77", KOPT_ENOTFOUND, "77");
    (void)assert_refused("one.db#x", KOPT_EIO, "one.db#x"); /* no number: a file's name */
    (void)assert_refused("one.db#-1", KOPT_EIO, "one.db#-1");
}

static void of_several_subjects_one_is_named(void **state)
{
    struct store s;
    int64_t *ids = NULL;
    size_t n = 0;
    kopt_error err = {0};
    char path[64];
    (void)state;
    store_open(&s, "many.db");
    store_subject(&s, "gemm", "");
    fill_store(&s);
    int64_t first = s.subject;
    store_subject(&s, "other", "");
    store_result(&s, "{\"Z\":1}", KOPT_OUT_OK, 5, COSTS(1, 1), 0);
    kp_store_close(s.st);
    err = assert_refused("many.db", KOPT_EUSAGE, "2 subjects");
    (void)snprintf(path, sizeof(path), "many.db#N, where N is one of %d, %d", (int)first,
                   (int)s.subject);
    assert_non_null(strstr(err.hint, path));
    (void)snprintf(path, sizeof(path), "many.db#%d", (int)first);
    struct kp_recording *r = open_path(path);
    assert_stored(r);
    assert_string_equal(r->info.best_text, "BM=1,BN=1"); /* as the results have them */
    assert_string_equal(r->info.path, path);
    kp_recording_close(r);
    assert_int_equal(kp_recording_subjects("many.db", &ids, &n, &err), KOPT_OK);
    assert_true(n == 2 && ids[0] == first && ids[1] == s.subject);
    kp_free(ids);
    assert_int_equal(kp_recording_subjects(path, &ids, &n, &err), KOPT_OK);
    assert_true(n == 0 && !ids);
    assert_int_equal(kp_recording_subjects("none.json", &ids, &n, &err), KOPT_OK);
    assert_true(n == 0 && !ids);
}

/* Of another problem, with the images of the first. */
static void what_another_subject_compiled_costs_the_same(void **state)
{
    struct store s;
    char path[64];
    (void)state;
    store_open(&s, "twins.db");
    store_subject(&s, "gemm", "");
    fill_store(&s);
    kp_store_close(s.st);
    for (int other = 0; other < 2; other++) {
        store_reopen(&s, "twins.db");
        store_subject_of(&s, other ? "another gemm" : "gemm", "", "{\"M\":5}");
        store_result(&s, "{\"BM\":1,\"BN\":1}", KOPT_OUT_OK, 4, COSTS(0, 2), 0);
        store_result(&s, "{\"BM\":2,\"BN\":1}", KOPT_OUT_OK, 5, COSTS(0, 2), 0);
        store_result(&s, "{\"BM\":2,\"BN\":2}", KOPT_OUT_OK, 6, COSTS(1, 2), 0);
        store_result(&s, "{\"BM\":9,\"BN\":9}", KOPT_OUT_OK, 7, COSTS(0, 2), 0);
        kp_store_close(s.st);
        (void)snprintf(path, sizeof(path), "twins.db#%d", (int)s.subject);
        struct kp_recording *r = open_path(path);
        ASSERT_ROW(r, "{\"BM\":1,\"BN\":1}", KOPT_OUT_OK, 4, other ? 1 : 9, 2);
        ASSERT_ROW(r, "{\"BM\":2,\"BN\":1}", KOPT_OUT_OK, 5, other ? 1 : 7, 2);
        ASSERT_ROW(r, "{\"BM\":2,\"BN\":2}", KOPT_OUT_OK, 6, 1, 2);             /* its own */
        ASSERT_ROW(r, "{\"BM\":9,\"BN\":9}", KOPT_OUT_OK, 7, other ? 1 : 7, 2); /* median */
        kp_recording_close(r);
        if (!other)
            fail_each_allocation(path);
    }
}

static void t4_of_a_store_is_the_same_space(void **state)
{
    struct store s;
    kopt_error err = {0};
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    (void)state;
    store_open(&s, "t4.db");
    store_subject(&s, "gemm", "");
    fill_store(&s);
    assert_int_equal(kp_store_export_t4(s.st, s.subject, &text, &err), KOPT_OK);
    kp_store_close(s.st);
    struct kp_recording *a = open_path("t4.db");
    struct kp_recording *b = open_text(kp_buf_text(&text));
    assert_true(kp_recording_alike(a, b));
    assert_true(a->info.n == b->info.n);
    for (size_t i = 0; i < a->info.n; i++) {
        assert_int_equal(a->outcome[i], b->outcome[i]);
        assert_true(a->time_ns[i] == b->time_ns[i] ||
                    fabs(a->time_ns[i] / b->time_ns[i] - 1) < 1e-12); /* by way of ms */
    }
    kp_recording_close(a);
    kp_recording_close(b);
    kp_buf_deinit(&text);
}

/* --- our own -------------------------------------------------------------------------------
 */

static struct kp_recording *open_recorded(const char *name)
{
    char path[1024];
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/data/recorded/%s.json.gz",
                   root ? root : "../../../..", name);
    return open_path(path);
}

static void spaces_that_kopt_recorded(void **state)
{
    static const struct {
        const char *name;
        uint64_t n;
        double best_ns;
        uint64_t budget;
    } spaces[] = {
        {"convolution_512_PoCL", 216, 1608222, 27}, {"gemm_4096_H200", 1107, 3001216, 369},
        {"gemm_2048_H200", 1107, 394832, 276},      {"convolution_8192_H200", 616, 346992, 123},
        {"convolution_4096_H200", 616, 97680, 154},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        struct kp_recording *r = open_recorded(spaces[i].name);
        assert_string_equal(r->info.name, spaces[i].name);
        assert_true(r->info.n == spaces[i].n && r->n_ok == spaces[i].n);
        assert_true(r->info.left_out == 0 && r->info.cut == 0 && r->info.device[0]);
        if (fabs(r->info.best_ns - spaces[i].best_ns) > 0.5 ||
            r->info.budget != spaces[i].budget)
            fail_msg("%s: %.0f %d", spaces[i].name, r->info.best_ns, (int)r->info.budget);
        /* each configuration was compiled, and that took most of the time */
        assert_true(r->info.compile_share > 0.8 && r->info.evaluation_s > 0.1);
        kp_recording_close(r);
    }
}

static void problems_of_one_kernel_are_alike(void **state)
{
    (void)state;
    struct kp_recording *a = open_recorded("gemm_4096_H200");
    struct kp_recording *b = open_recorded("gemm_2048_H200");
    struct kp_recording *c = open_recorded("convolution_4096_H200");
    struct kp_recording *d = open_recorded("convolution_512_PoCL");
    assert_true(kp_recording_alike(a, b));
    assert_string_equal(a->info.best_text, b->info.best_text);
    assert_false(kp_recording_alike(a, c));
    assert_false(kp_recording_alike(c, d)); /* the same name, other parameters */
    kp_recording_close(a);
    kp_recording_close(b);
    kp_recording_close(c);
    kp_recording_close(d);
}

/* --- what they are not ---------------------------------------------------------------------
 */

static void other_files_are_refused(void **state)
{
    (void)state;
    kopt_error err = assert_text_refused("hello", KOPT_EINPUT, "no recorded space");
    assert_non_null(strstr(err.hint, "Kernel Tuner"));
    (void)assert_text_refused("", KOPT_EINPUT, "no recorded space");
    (void)assert_text_refused("[{\"metadata\":{},\"results\":[]}]", KOPT_EINPUT,
                              "no recorded space");
    err = assert_text_refused("{\n\"a\":7}", KOPT_EINPUT, "kernel_name");
    assert_int_equal(err.line, 2);
    err =
        assert_text_refused("{\"metadata\":{},\n\"results\":7}", KOPT_EINPUT, "no T4 results");
    assert_int_equal(err.line, 2);
    assert_true(err.column == 11);
    (void)assert_text_refused("{\"metadata\":{}}", KOPT_EINPUT, "no T4 results");
    (void)assert_text_refused("{\"metadata\":7,\"results\":[]}", KOPT_EINPUT,
                              "no configuration is recorded");
    (void)assert_text_refused("{\"results\":[{} {}]}", KOPT_EINPUT, "no T4 results");
    (void)assert_text_refused("{\"results\":[!]}", KOPT_EINPUT, "no T4 results");
    (void)assert_text_refused("{\"results\":[],\"metadata\" 7}", KOPT_EINPUT, "no T4 results");
    err = assert_text_refused(KT_HEAD KT_BODY "!!", KOPT_EINPUT, "not as Kernel Tuner");
    assert_int_equal(err.line, 8);
    (void)assert_text_refused("{\"device_name\":\"\",\"kernel_name\":\"k\",\"problem_size\":1,"
                              "\"tune_params_keys\":[\"A\",\"A\"],\"cache\":{}}",
                              KOPT_EINPUT, "A is there twice");
    (void)assert_refused("none.json", KOPT_EIO, "none.json");
    (void)assert_refused(".", KOPT_EIO, "regular");
    (void)assert_refused("none.json#3", KOPT_EUSAGE, "no store");
    put("broken.db", "SQLite format 3\0and then nothing of the kind", 44);
    (void)assert_refused("broken.db", KOPT_ECORRUPT, "broken.db");
}

static void too_many_parameters_are_refused(void **state)
{
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    (void)state;
    kp_buf_adds(&text, "{\"results\":[{\"configuration\":{");
    for (int i = 0; i <= KP_PARAMS_MAX; i++)
        kp_buf_addf(&text, "%s\"p%d\":1", i ? "," : "", i);
    kp_buf_adds(&text, "},\"measurements\":[{\"name\":\"time\",\"value\":1}]}]}");
    (void)assert_text_refused(kp_buf_text(&text), KOPT_EINPUT, "129 parameters");
    kp_buf_deinit(&text);
}

static void what_does_not_end_is_refused_in_time(void **state)
{
    enum { PIECE = 1 << 20 };
    static char spaces[PIECE];
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* half a minute */
#endif
    /* 513 MiB of spaces in a file of half a MiB */
    memset(spaces, ' ', sizeof(spaces));
    gzFile f = gzopen("bomb.json.gz", "wb1");
    assert_non_null(f);
    assert_int_equal(gzputs(f, "{\"kernel_name\":\"k\","), 19);
    for (int i = 0; i < 513; i++)
        assert_int_equal(gzwrite(f, spaces, sizeof(spaces)), PIECE);
    assert_int_equal(gzclose(f), Z_OK);
    (void)assert_refused("bomb.json.gz", KOPT_ERANGE, "larger than 512 MiB");
}

static void recordings_of_one_kernel_are_alike(void **state)
{
    (void)state;
    struct kp_recording *a = open_text("{\"metadata\":{\"kernel\":\"k\"},\"results\":["
                                       "{\"configuration\":{\"A\":1,\"B\":2},\"invalidity\":"
                                       "\"compile\"}]}");
    struct kp_recording *b = open_text("{\"metadata\":{\"kernel\":\"k\"},\"results\":["
                                       "{\"configuration\":{\"B\":7,\"A\":8},\"invalidity\":"
                                       "\"compile\"}]}");
    struct kp_recording *c = open_text("{\"metadata\":{\"kernel\":\"l\"},\"results\":["
                                       "{\"configuration\":{\"A\":1,\"B\":2},\"invalidity\":"
                                       "\"compile\"}]}");
    struct kp_recording *d = open_text("{\"metadata\":{\"kernel\":\"k\"},\"results\":["
                                       "{\"configuration\":{\"A\":1,\"C\":2},\"invalidity\":"
                                       "\"compile\"}]}");
    assert_true(kp_recording_alike(a, b) && kp_recording_alike(b, a));
    assert_false(kp_recording_alike(a, c));
    assert_false(kp_recording_alike(a, d));
    kp_recording_close(a);
    kp_recording_close(b);
    kp_recording_close(c);
    kp_recording_close(d);
}

static void every_failing_allocation_is_clean(void **state)
{
    struct store s;
    (void)state;
    put("space.json", kt_text, strlen(kt_text));
    fail_each_allocation("space.json");
    static const char t4[] = "{" T4_META "," T4_RESULTS "}";
    put_packed("t4.json.gz", t4, strlen(t4));
    fail_each_allocation("t4.json.gz");
    store_open(&s, "alloc.db");
    store_subject(&s, "gemm", "[\"BM\",\"BN\"]");
    fill_store(&s);
    kp_store_close(s.st);
    fail_each_allocation("alloc.db");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_of_kernel_tuner_is_a_recorded_space),
        cmocka_unit_test(a_packed_file_is_the_same),
        cmocka_unit_test(a_file_cut_anywhere_is_a_cut_space_or_refused),
        cmocka_unit_test(a_packed_file_cut_or_damaged_is_no_crash),
        cmocka_unit_test(what_is_of_no_use_is_left_out),
        cmocka_unit_test(a_space_may_be_all_failures_or_a_single_point),
        cmocka_unit_test(t4_results_are_a_recorded_space),
        cmocka_unit_test(units_are_those_of_the_file),
        cmocka_unit_test(t4_results_of_no_use_are_left_out),
        cmocka_unit_test(t4_results_cut_anywhere),
        cmocka_unit_test(a_store_with_one_subject_needs_no_number),
        cmocka_unit_test(of_several_subjects_one_is_named),
        cmocka_unit_test(what_another_subject_compiled_costs_the_same),
        cmocka_unit_test(t4_of_a_store_is_the_same_space),
        cmocka_unit_test(spaces_that_kopt_recorded),
        cmocka_unit_test(problems_of_one_kernel_are_alike),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(too_many_parameters_are_refused),
        cmocka_unit_test(what_does_not_end_is_refused_in_time),
        cmocka_unit_test(recordings_of_one_kernel_are_alike),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
