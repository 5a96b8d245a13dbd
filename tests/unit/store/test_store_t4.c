/* SPDX-License-Identifier: MIT */
/* Export as T4 results JSON. The rules of the schema are checked by hand here; the test of the
 * command (cli.store.t4_schema) has them checked by a validator. */
#include "unit/store/fixture.h"

#include "base/buf.h"
#include "os/clock.h"
#include "json/json.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const invalidities[] = {"timeout",     "compile",     "runtime",
                                           "correctness", "constraints", "correct"};

static void assert_type(const struct kp_json *j, enum kp_json_type type)
{
    assert_non_null(j);
    assert_int_equal(kp_json_type(j), type);
}

static void assert_number(const struct kp_json *j)
{
    double v = (double)NAN;
    assert_true(kp_json_as_f64(j, &v));
}

static void assert_optional_number(const struct kp_json *o, const char *name)
{
    if (kp_json_get(o, name))
        assert_number(kp_json_get(o, name));
}

/* results-schema 1.0.0: required are configuration, times, invalidity, correctness. */
static void assert_valid_result(const struct kp_json *r)
{
    struct kp_str text = {0};
    bool known = false;
    assert_type(r, KP_JSON_OBJECT);
    assert_type(kp_json_get(r, "configuration"), KP_JSON_OBJECT);
    const struct kp_json *times = kp_json_get(r, "times");
    assert_type(times, KP_JSON_OBJECT);
    assert_optional_number(times, "compilation_time");
    assert_optional_number(times, "framework");
    assert_optional_number(times, "search_algorithm");
    assert_optional_number(times, "validation");
    const struct kp_json *runtimes = kp_json_get(times, "runtimes");
    assert_type(runtimes, KP_JSON_ARRAY);
    for (size_t i = 0; i < kp_json_size(runtimes); i++)
        assert_number(kp_json_at(runtimes, i));
    assert_true(kp_json_as_str(kp_json_get(r, "invalidity"), &text));
    for (size_t i = 0; i < sizeof(invalidities) / sizeof(invalidities[0]); i++)
        known = known || kp_str_is(text, invalidities[i]);
    assert_true(known);
    assert_number(kp_json_get(r, "correctness"));
    if (kp_json_get(r, "timestamp"))
        assert_type(kp_json_get(r, "timestamp"), KP_JSON_STRING);
    assert_type(kp_json_get(r, "objectives"), KP_JSON_ARRAY);
    const struct kp_json *m = kp_json_get(r, "measurements");
    assert_type(m, KP_JSON_ARRAY);
    for (size_t i = 0; i < kp_json_size(m); i++) {
        assert_type(kp_json_get(kp_json_at(m, i), "name"), KP_JSON_STRING);
        assert_number(kp_json_get(kp_json_at(m, i), "value"));
        assert_type(kp_json_get(kp_json_at(m, i), "unit"), KP_JSON_STRING);
    }
}

/* major.minor.patch */
static void assert_valid(const struct kp_json *root)
{
    struct kp_str text = {0};
    assert_type(root, KP_JSON_OBJECT);
    assert_true(kp_json_as_str(kp_json_get(root, "schema_version"), &text));
    assert_true(kp_str_is(text, "1.0.0"));
    assert_true(kp_json_as_str(kp_json_get(kp_json_get(root, "metadata"), "timeunit"), &text));
    assert_true(kp_str_is(text, "milliseconds"));
    const struct kp_json *results = kp_json_get(root, "results");
    assert_type(results, KP_JSON_ARRAY);
    for (size_t i = 0; i < kp_json_size(results); i++)
        assert_valid_result(kp_json_at(results, i));
}

static struct kp_json *export_t4(struct fixture *f, int64_t subject)
{
    struct kp_buf out = KP_BUF_INIT(1 << 24);
    struct kp_json *root = NULL;
    ASSERT_OK(f, kp_store_export_t4(f->st, subject, &out, &f->err));
    ASSERT_OK(f,
              kp_json_parse((struct kp_str){kp_buf_text(&out), out.len}, "t4", &root, &f->err));
    assert_valid(root);
    kp_buf_deinit(&out);
    return root;
}

static const struct kp_json *result_at(const struct kp_json *root, size_t i)
{
    return kp_json_at(kp_json_get(root, "results"), i);
}

static void assert_member(const struct kp_json *o, const char *name, const char *want)
{
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    assert_non_null(kp_json_get(o, name));
    kp_json_dump(kp_json_get(o, name), &text);
    assert_string_equal(kp_buf_text(&text), want);
    kp_buf_deinit(&text);
}

static void every_outcome_has_its_true_place(void **state)
{
    struct fixture *f = *state;
    static const struct {
        kopt_outcome outcome;
        const char *invalidity;
        const char *correctness;
    } map[] = {
        {KOPT_OUT_OK, "\"correct\"", "1"},
        {KOPT_OUT_COMPILE_ERROR, "\"compile\"", "0"},
        {KOPT_OUT_COMPILE_TIMEOUT, "\"timeout\"", "0"},
        {KOPT_OUT_LAUNCH_ERROR, "\"runtime\"", "0"},
        {KOPT_OUT_DEVICE_LIMIT, "\"constraints\"", "0"},
        {KOPT_OUT_CRASH, "\"runtime\"", "0"},
        {KOPT_OUT_HANG, "\"timeout\"", "0"},
        {KOPT_OUT_WRONG, "\"correctness\"", "0"},
        {KOPT_OUT_UNSTEADY, "\"correctness\"", "0"},
        {KOPT_OUT_BAD_TIME, "\"runtime\"", "0"},
    };
    enum { N = sizeof(map) / sizeof(map[0]) };
    assert_int_equal(N, KOPT_OUT_COUNT - 1); /* all but the interrupted, which are no results */
    int64_t s = make_subject(f, a_subject());
    int64_t id = 0;
    for (int i = 0; i < N; i++) {
        char config[32];
        (void)snprintf(config, sizeof(config), "{\"X\":%d}", i);
        kopt_result r = map[i].outcome == KOPT_OUT_OK ? a_result(config, 2e6)
                                                      : a_failure(config, map[i].outcome);
        r.max_error = 0; /* its outputs were compared, as far as it came */
        add(f, 0, s, r);
    }
    ASSERT_OK(f, kp_store_begin(f->st, 0, s, "{\"X\":99}", false, &id, &f->err));
    struct kp_json *root = export_t4(f, s);
    assert_int_equal(kp_json_size(kp_json_get(root, "results")), N);
    for (size_t i = 0; i < N; i++) {
        char config[32];
        (void)snprintf(config, sizeof(config), "{\"X\":%zu}", i);
        const struct kp_json *r = result_at(root, i);
        assert_member(r, "configuration", config);
        assert_member(r, "invalidity", map[i].invalidity);
        assert_member(r, "correctness", map[i].correctness);
    }
    kp_json_free(root);
}

static void what_was_not_compared_is_not_called_correct(void **state)
{
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    kopt_result compared = a_result("{\"X\":2}", 2e6);
    compared.max_error = 0.25;
    add(f, 0, s, a_result("{\"X\":1}", 2e6));
    add(f, 0, s, compared);
    struct kp_json *root = export_t4(f, s);
    assert_member(result_at(root, 0), "correctness", "0");
    assert_member(result_at(root, 0), "checked", "false");
    assert_member(result_at(root, 0), "invalidity", "\"correct\"");
    assert_member(result_at(root, 1), "correctness", "1");
    assert_member(result_at(root, 1), "checked", "true");
    kp_json_free(root);
}

static void times_are_milliseconds(void **state)
{
    struct fixture *f = *state;
    const double times[] = {1.5e6, 2e6, 2.5e6};
    int64_t s = make_subject(f, a_subject());
    kopt_result r =
        a_result("{\"BM\":64,\"fast\":true,\"name\":\"a\\\"b\",\"scale\":0.5}", 2e6);
    r.times_ns = times;
    r.n_times = 3;
    r.compile_ns = 812.5e6;
    r.device_ns = 4e6;
    r.power_w = 75;
    r.registers = 32;
    add(f, 0, s, r);
    struct kp_json *root = export_t4(f, s);
    const struct kp_json *x = result_at(root, 0);
    assert_member(x, "configuration",
                  "{\"BM\":64,\"fast\":true,\"name\":\"a\\\"b\",\"scale\":0.5}");
    assert_member(x, "times",
                  "{\"benchmark\":4.0,\"compilation\":812.5,\"compilation_time\":812.5,"
                  "\"runtimes\":[1.5,2.0,2.5]}");
    assert_member(x, "measurements",
                  "[{\"name\":\"time\",\"unit\":\"ms\",\"value\":2.0},"
                  "{\"name\":\"time_low\",\"unit\":\"ms\",\"value\":1.8},"
                  "{\"name\":\"time_high\",\"unit\":\"ms\",\"value\":2.2},"
                  "{\"name\":\"registers\",\"unit\":\"\",\"value\":32.0},"
                  "{\"name\":\"power\",\"unit\":\"W\",\"value\":75.0}]");
    assert_member(x, "objectives", "[\"time\"]");
    assert_member(x, "timestamp", "\"2023-11-14T22:13:20.000Z\"");
    assert_member(kp_json_get(root, "metadata"), "problem", "{\"K\":512,\"M\":512,\"N\":512}");
    kp_json_free(root);
}

static void a_configuration_appears_once_with_its_newest_result(void **state)
{
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    kopt_result raced = a_result("{\"X\":1}", 3e6);
    raced.race = 1;
    add(f, 0, s, a_failure("{\"X\":1}", KOPT_OUT_HANG));
    add(f, 0, s, a_result("{\"X\":1}", 2e6));
    add(f, 0, s, a_result("{\"X\":2}", 5e6));
    add(f, 0, s, raced);
    struct kp_json *root = export_t4(f, s);
    assert_int_equal(kp_json_size(kp_json_get(root, "results")), 2);
    assert_member(result_at(root, 0), "configuration", "{\"X\":2}");
    assert_member(result_at(root, 1), "configuration", "{\"X\":1}");
    const struct kp_json *m = kp_json_get(result_at(root, 1), "measurements");
    assert_member(kp_json_at(m, 0), "value", "3.0");
    kp_json_free(root);
}

/* Another process measures the same configurations again and again: each has a result all the
 * time, so each is in every export. */
static void nothing_is_missing_while_somebody_measures(void **state)
{
    enum { CONFIGS = 300, EXPORTS = 10, PAUSE_NS = 200000 };
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    char config[32];
    for (int i = 0; i < CONFIGS; i++) {
        (void)snprintf(config, sizeof(config), "{\"X\":%d}", i);
        add(f, 0, s, a_result(config, 2e6));
    }
    kp_store_close(f->st); /* a handle does not survive fork() */
    f->st = NULL;
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        int64_t id = 0;
        (void)alarm(60); /* should the test fail before it ends this */
        kopt_status st = kp_store_open(f->path, KP_STORE_WRITE, 5000, &f->st, &f->err);
        for (int i = 0; st == KOPT_OK; i = (i + 1) % CONFIGS) { /* until it is killed */
            (void)snprintf(config, sizeof(config), "{\"X\":%d}", i);
            kopt_result r = a_result(config, 2e6);
            st = kp_store_add(f->st, 0, s, &r, &id, &f->err);
            kp_clock_sleep_ns(PAUSE_NS);
        }
        _exit(1);
    }
    fixture_open(f);
    size_t smallest = CONFIGS;
    for (int i = 0; i < EXPORTS && smallest == CONFIGS; i++) {
        struct kp_buf out = KP_BUF_INIT(1 << 24);
        struct kp_json *root = NULL;
        ASSERT_OK(f, kp_store_export_t4(f->st, s, &out, &f->err));
        ASSERT_OK(f, kp_json_parse((struct kp_str){kp_buf_text(&out), out.len}, "t4", &root,
                                   &f->err));
        smallest = kp_json_size(kp_json_get(root, "results"));
        kp_json_free(root);
        kp_buf_deinit(&out);
    }
    int status = 0;
    assert_int_equal(kill(writer, SIGKILL), 0);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_true(WIFSIGNALED(status)); /* it was at work all the time */
    assert_int_equal(smallest, CONFIGS);
}

static void what_is_not_utf8_or_not_known_stays_valid(void **state)
{
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    kopt_result r = a_failure("{\"X\":1}", KOPT_OUT_CRASH);
    r.message = "signal \xFF\x01 \"quoted\"";
    r.compile_ns = (double)NAN;
    r.device_ns = (double)INFINITY;
    r.wall_us = 0;
    add(f, 0, s, r);
    struct kp_json *root = export_t4(f, s);
    assert_member(result_at(root, 0), "times", "{\"runtimes\":[]}");
    assert_null(kp_json_get(result_at(root, 0), "timestamp"));
    kp_json_free(root);
}

static void an_empty_subject_is_an_empty_list(void **state)
{
    struct fixture *f = *state;
    struct kp_json *root = export_t4(f, make_subject(f, a_subject()));
    assert_int_equal(kp_json_size(kp_json_get(root, "results")), 0);
    kp_json_free(root);
}

static void what_cannot_be_exported_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct kp_buf out = KP_BUF_INIT(1 << 20);
    struct kp_buf tiny = KP_BUF_INIT(300);
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no subject 5",
                 kp_store_export_t4(f->st, 5, &out, &f->err));
    int64_t s = make_subject(f, a_subject());
    add(f, 0, s, a_result("{\"X\":1}", 1));
    ASSERT_FAILS(f, KOPT_ERANGE, "", kp_store_export_t4(f->st, s, &tiny, &f->err));
    add(f, 0, s, a_result("BM=64", 1));
    kp_buf_clear(&out);
    ASSERT_FAILS(f, KOPT_ECORRUPT, "configuration",
                 kp_store_export_t4(f->st, s, &out, &f->err));
    kp_buf_deinit(&out);
    kp_buf_deinit(&tiny);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_store, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(every_outcome_has_its_true_place),
        CASE(what_was_not_compared_is_not_called_correct),
        CASE(times_are_milliseconds),
        CASE(a_configuration_appears_once_with_its_newest_result),
        CASE(nothing_is_missing_while_somebody_measures),
        CASE(what_is_not_utf8_or_not_known_stays_valid),
        CASE(an_empty_subject_is_an_empty_list),
        CASE(what_cannot_be_exported_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
