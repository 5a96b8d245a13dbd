/* SPDX-License-Identifier: MIT */
/* Import of Kernel Tuner's cache files. */
#include "unit/store/fixture.h"

#include "base/buf.h"

#include <unistd.h>

static const char *data_path(const char *name)
{
    static char path[1024];
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/data/kt/%s", root ? root : "../../../..",
                   name);
    return path;
}

static struct kp_import_count import(struct fixture *f, const char *path)
{
    struct kp_import_count count = {0};
    ASSERT_OK(f, kp_store_import_kt(f->st, path, &count, &f->err));
    return count;
}

static void assert_counts(struct kp_import_count c, int added, int present, int bad, bool cut)
{
    if (c.added != added || c.present != present || c.bad != bad || c.cut != cut)
        fail_msg("added %d present %d bad %d cut %d", (int)c.added, (int)c.present, (int)c.bad,
                 c.cut);
}

static bool describe_subject(void *user, const struct kp_subject *s)
{
    struct kp_buf *b = user;
    kp_buf_addf(b, "%s|%s|%s|%s|%s|%s|%lld/%lld\n", s->kernel, s->device, s->problem,
                s->backend, s->kernel_hash, s->compiler, (long long)s->n_ok,
                (long long)s->n_results);
    return true;
}

static bool describe_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct kp_buf *b = user;
    (void)subject;
    (void)run;
    kp_buf_addf(b, "%s %s %g n=%u %s\n", r->config, kopt_outcome_name(r->outcome), r->median_ns,
                r->n_times, r->message);
    return true;
}

static void assert_results(struct fixture *f, const char *want)
{
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    struct kp_result_filter filter = all_of(0);
    ASSERT_OK(f, kp_store_results(f->st, &filter, describe_result, &text, &f->err));
    assert_string_equal(kp_buf_text(&text), want);
    kp_buf_deinit(&text);
}

static void assert_subjects(struct fixture *f, const char *want)
{
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    ASSERT_OK(f, kp_store_subjects(f->st, NULL, describe_subject, &text, &f->err));
    assert_string_equal(kp_buf_text(&text), want);
    kp_buf_deinit(&text);
}

#define C(b, v, c, l) \
    "{\"block_size_x\":" #b ",\"layout\":\"" l "\",\"use_cache\":" #c ",\"vector\":" #v "}"

static const char whole_results[] =
    C(32, 1, true, "row") " ok 1.75e+06 n=3 \n" C(32, 2, true, "row") " ok 1e+06 n=4 \n" C(64, 1, false, "col") " device_limit nan n=0 InvalidConfig\n" C(
        64, 2, false,
        "col") " compile_error nan n=0 CompilationFailedConfig\n" C(128, 1, false,
                                                                    "row") " launch_error nan n=0 RuntimeFailedConfig\n" C(128,
                                                                                                                           2,
                                                                                                                           true,
                                                                                                                           "col") " ok 500000 n=1 \n";

static bool keep_second(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)subject;
    (void)run;
    if (r->id == 2) {
        *(kopt_result *)user = *r;
        assert_true(r->times_ns[0] == 1e6 && r->times_ns[1] == 0.75e6 &&
                    r->times_ns[2] == 1.25e6 && r->times_ns[3] == 1e6);
    }
    if (r->id == 6)
        assert_int_equal(r->wall_us, 1741064767500000); /* 05:06:07.5 UTC */
    return true;
}

static void a_whole_file_comes_in_once(void **state)
{
    struct fixture *f = *state;
    kopt_result r = {0};
    struct kp_result_filter filter = all_of(0);
    assert_counts(import(f, data_path("whole.json")), 6, 0, 0, false);
    assert_results(f, whole_results);
    assert_subjects(f, "axpy|Toy GPU 1|{\"x\":1024,\"y\":64}|kernel_tuner|||3/6\n");
    ASSERT_OK(f, kp_store_results(f->st, &filter, keep_second, &r, &f->err));
    assert_true(r.compile_ns == 250.5e6 && r.device_ns == 12.25e6);
    assert_true(r.power_w == 75.5 && isnan(r.energy_j) && isnan(r.low_ns));
    assert_int_equal(r.wall_us, 1741064767000008); /* 2025-03-04 05:06:07.000008 UTC */

    assert_counts(import(f, data_path("whole.json")), 0, 6, 0, false);
    assert_counts(import(f, data_path("open.json")), 0, 6, 0, false);
    assert_counts(import(f, data_path("sorted.json")), 0, 6, 0, false);
    assert_results(f, whole_results);
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
}

static bool one_run(void *user, const struct kp_store_run *r)
{
    assert_string_equal(r->strategy, "import");
    assert_string_equal(r->state, "done");
    assert_non_null(strstr(r->command, "import "));
    assert_true(r->ended_us > 0);
    (*(int *)user)++;
    return true;
}

static void an_open_file_is_whole_and_a_cut_one_gives_what_it_has(void **state)
{
    struct fixture *f = *state;
    int runs = 0;
    assert_counts(import(f, data_path("cut.json")), 5, 0, 0, true);
    assert_counts(import(f, data_path("open.json")), 1, 5, 0, false);
    assert_results(f, whole_results);
    assert_counts(import(f, data_path("cut.json")), 0, 5, 0, true);
    ASSERT_OK(f, kp_store_runs(f->st, 0, one_run, &runs, &f->err));
    assert_int_equal(runs, 2); /* none for the import that added nothing */
}

static void members_in_any_order_are_found(void **state)
{
    struct fixture *f = *state;
    assert_counts(import(f, data_path("sorted.json")), 6, 0, 0, false);
    struct kp_result_filter filter = all_of(0);
    filter.outcome = KOPT_OUT_OK;
    assert_int_equal(count_results(f, filter), 3);
}

static void older_ways_to_write_failures_are_understood(void **state)
{
    struct fixture *f = *state;
    assert_counts(import(f, data_path("old.json")), 8, 0, 0, false);
    assert_results(f, C(
                          32, 1, true, "row") " launch_error nan n=0 it failed; the file does not say how\n" C(32, 2, true, "row") " launch_error nan n=0 it failed; the file does not say how\n" C(64, 1, true, "row") " launch_error nan n=0 it failed; the file does not say how\n" C(64, 2, true, "row") " bad_time nan n=0 the file's time is not positive\n" C(64,
                                                                                                                                                                                                                                                                                                                                                                     1,
                                                                                                                                                                                                                                                                                                                                                                     false,
                                                                                                                                                                                                                                                                                                                                                                     "row") " launch_error nan n=0 out of memory\n" C(128, 1,
                                                                                                                                                                                                                                                                                                                                                                                                                      true,
                                                                                                                                                                                                                                                                                                                                                                                                                      "row") " ok 3e+06 n=2 \n" C(128,
                                                                                                                                                                                                                                                                                                                                                                                                                                                  2,
                                                                                                                                                                                                                                                                                                                                                                                                                                                  true,
                                                                                                                                                                                                                                                                                                                                                                                                                                                  "row") " compile_error nan n=0 CompilationFailedConfig\n" C(128,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              2,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              false,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              "row") " ok 1.5e+06 n=0 \n");
    assert_counts(import(f, data_path("old.json")), 0, 8, 0, false);
}

static void bad_entries_are_counted_and_passed_over(void **state)
{
    struct fixture *f = *state;
    assert_counts(import(f, data_path("bad_entries.json")), 3, 0, 4, false);
}

static void an_empty_cache_adds_nothing(void **state)
{
    struct fixture *f = *state;
    assert_counts(import(f, data_path("empty.json")), 0, 0, 0, false);
    assert_subjects(f, "");
}

/* --- every cut -----------------------------------------------------------------------------
 */

/* Offsets behind each entry of whole.json, and where the entries begin. */
static size_t entry_ends(const char *text, size_t *ends)
{
    size_t n = 0;
    const char *p = strstr(text, "\"cache\": {");
    assert_non_null(p);
    for (p += 10; (p = strchr(p, '}')) && n < 6; p++)
        ends[n++] = (size_t)(p - text) + 1;
    return n;
}

static void a_file_cut_anywhere_gives_its_whole_entries(void **state)
{
    struct fixture *f = *state;
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    char path[600];
    size_t ends[6];
    (void)snprintf(path, sizeof(path), "%s/cut.json", f->dir);
    ASSERT_OK(f, kp_file_read(data_path("whole.json"), &text, &f->err));
    import(f, data_path("whole.json"));
    assert_int_equal(entry_ends(kp_buf_text(&text), ends), 6);
    size_t cache =
        (size_t)(strstr(kp_buf_text(&text), "\"cache\": {") - kp_buf_text(&text)) + 10;
    for (size_t n = 0; n < text.len; n++) {
        struct kp_import_count count = {0};
        size_t want = 0;
        write_file(path, text.ptr, n);
        if (n < cache) {
            ASSERT_FAILS(f, KOPT_EINPUT, "", kp_store_import_kt(f->st, path, &count, &f->err));
            assert_string_equal(f->err.file, path);
            continue;
        }
        while (want < 6 && ends[want] <= n)
            want++;
        count = import(f, path);
        if (count.present != (int64_t)want || count.added || count.bad)
            fail_msg("cut at %zu: %d entries instead of %zu", n, (int)count.present, want);
        /* between entries nothing is missing */
        bool between = n == cache || strchr(",\n} ", text.ptr[n - 1]) != NULL;
        if (!between && !count.cut)
            fail_msg("cut at %zu is not noticed", n);
    }
    kp_buf_deinit(&text);
}

/* --- what is no cache file -----------------------------------------------------------------
 */

static void refuse(struct fixture *f, const char *text, kopt_status code, int line)
{
    char path[600];
    struct kp_import_count count = {0};
    (void)snprintf(path, sizeof(path), "%s/bad.json", f->dir);
    write_file(path, text, strlen(text));
    kopt_status st = kp_store_import_kt(f->st, path, &count, &f->err);
    if (st != code || (line && f->err.line != line) || !f->err.message[0])
        fail_msg("%s: %d line %d %s", text, (int)st, f->err.line, f->err.message);
}

#define HEAD                                                           \
    "{\"kernel_name\":\"k\",\"device_name\":\"d\",\"problem_size\":7," \
    "\"tune_params_keys\":[\"A\"],\n"

static void other_files_are_refused_with_their_place(void **state)
{
    struct fixture *f = *state;
    refuse(f, "", KOPT_EINPUT, 1);
    refuse(f, "hello", KOPT_EINPUT, 1);
    refuse(f, "[1,2]", KOPT_EINPUT, 1);
    refuse(f, "{}", KOPT_EINPUT, 1);
    refuse(f, "{\"a\":\n1,\n}", KOPT_EINPUT, 3);
    refuse(f, "{\"cache\":{\n", KOPT_EINPUT, 0);
    refuse(f, "{\"cache\":{},\n\"x\":[1,2,{}]}", KOPT_EINPUT, 0);
    refuse(f, "{\"kernel_name\":3,\"tune_params_keys\":[\"A\"],\"cache\":{}}", KOPT_EINPUT, 0);
    refuse(f, "{\"kernel_name\":\"k\",\"tune_params_keys\":[],\"cache\":{}}", KOPT_EINPUT, 0);
    refuse(f, "{\"kernel_name\":\"k\",\"tune_params_keys\":[1],\"cache\":{}}", KOPT_EINPUT, 0);
    refuse(f, "{\"kernel_name\":\"k\"", KOPT_EINPUT, 0);
    refuse(f, HEAD "\"cache\":7}", KOPT_EINPUT, 2);
    refuse(f, HEAD "\"cache\":{\n7}}", KOPT_EINPUT, 3);
    refuse(f, HEAD "\"cache\":{\n\"1\" 7}}", KOPT_EINPUT, 3);
    refuse(f, HEAD "\"cache\":{\n\"1\":}}", KOPT_EINPUT, 3);
    refuse(f, HEAD "\"cache\":{\n\"1\":{} \"2\":{}}}", KOPT_EINPUT, 3);
    refuse(f, HEAD "\"problem_size\" 3}", KOPT_EINPUT, 2);
    refuse(f, "\x1f\x8b\x08", KOPT_EINPUT, 0);
    assert_subjects(f, "");
    struct kp_import_count count = {0};
    ASSERT_FAILS(f, KOPT_EIO, "no such.json",
                 kp_store_import_kt(f->st, "no such.json", &count, &f->err));
    ASSERT_FAILS(f, KOPT_EIO, f->dir, kp_store_import_kt(f->st, f->dir, &count, &f->err));
    fixture_reopen(f, KP_STORE_WRITE);
    make_subject(f, a_subject());
    fixture_reopen(f, KP_STORE_READ);
    ASSERT_FAILS(f, KOPT_EUSAGE, "reading",
                 kp_store_import_kt(f->st, data_path("whole.json"), &count, &f->err));
}

static void what_stands_before_damage_is_kept(void **state)
{
    struct fixture *f = *state;
    refuse(f, HEAD "\"cache\":{\n\"1\":{\"A\":1,\"time\":2},\n\"2\":{\"A\":2,\"time\":3},\n!!",
           KOPT_EINPUT, 5);
    assert_results(f, "{\"A\":1} ok 2e+06 n=0 \n{\"A\":2} ok 3e+06 n=0 \n");
}

static void problems_take_every_form(void **state)
{
    struct fixture *f = *state;
    static const char *const forms[][2] = {
        {"5000", "{\"x\":5000}"},
        {"[1,2,3]", "{\"x\":1,\"y\":2,\"z\":3}"},
        {"[1,2,3,4]", "{\"x\":1,\"x3\":4,\"y\":2,\"z\":3}"},
        {"\"callable\"", "{\"x\":\"callable\"}"},
        {"[\"n\",8]", "{\"x\":\"n\",\"y\":8}"},
        {"null", "{}"},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char text[512];
        char want[256];
        char path[600];
        (void)snprintf(path, sizeof(path), "%s/p.json", f->dir);
        (void)snprintf(text, sizeof(text),
                       "{\"device_name\":\"d\",\"kernel_name\":\"k%zu\",\"problem_size\":%s,"
                       "\"tune_params_keys\":[\"A\"],\"cache\":{\"1\":{\"A\":1,\"time\":1}}}",
                       i, forms[i][0]);
        write_file(path, text, strlen(text));
        assert_counts(import(f, path), 1, 0, 0, false);
        (void)snprintf(want, sizeof(want), "k%zu|d|%s|kernel_tuner|||1/1\n", i, forms[i][1]);
        struct kp_buf got = KP_BUF_INIT(4096);
        char name[16];
        (void)snprintf(name, sizeof(name), "k%zu", i);
        ASSERT_OK(f, kp_store_subjects(f->st, name, describe_subject, &got, &f->err));
        assert_string_equal(kp_buf_text(&got), want);
        kp_buf_deinit(&got);
    }
}

static void what_is_too_long_is_passed_over(void **state)
{
    struct fixture *f = *state;
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/long.json", f->dir);
    FILE *out = fopen(path, "wbe");
    assert_non_null(out);
    (void)fputs("{\"tune_params\":{\"A\":[", out);
    for (int i = 0; i < 400000; i++)
        (void)fprintf(out, "%d,", i);
    (void)fputs("0]},\"kernel_name\":\"k\",\"tune_params_keys\":[\"A\"],\"cache\":{\"1\":{",
                out);
    for (int i = 0; i < 200000; i++)
        (void)fprintf(out, "\"m%d\":%d,", i, i);
    (void)fputs("\"A\":1,\"time\":1},\n\"2\":{\"A\":2,\"time\":2}", out);
    assert_int_equal(fclose(out), 0);
    assert_counts(import(f, path), 1, 0, 1, false);
}

/* --- published data ------------------------------------------------------------------------
 */

struct space {
    const char *name;
    int stored;
    int ok;
    int compile;
    int runtime;
};

static const char *shared_data(void)
{
    static char path[1024];
    const char *env = getenv("KOPT_SHARED_DATA");
    const char *source = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s%s",
                   env      ? env
                   : source ? source
                            : ".",
                   env ? "" : "/../shared/data");
    return path;
}

static void published_spaces_come_in_completely(void **state)
{
    struct fixture *f = *state;
    static const struct space spaces[] = {
        {"pnpoly_RTX_3090", 4092, 3762, 0, 330},
        {"convolution_RTX_2080_Ti", 6768, 5256, 1426, 86},
        {"convolution_milo_A4000", 4362, 4201, 6, 155},
        {"convolution_milo_MI250X", 4362, 4362, 0, 0},
        {"dedispersion_milo_MI250X", 11130, 11130, 0, 0},
        {"gemm_RTX_Titan", 17956, 17956, 0, 0},
    };
    char path[600];
    char command[2048];
    (void)snprintf(command, sizeof(command), "%s/spaces", shared_data());
    if (access(command, R_OK) != 0) {
        print_message("%s is not there\n", command);
        skip();
    }
    (void)snprintf(path, sizeof(path), "%s/space.json", f->dir);
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        const struct space *s = &spaces[i];
        (void)snprintf(command, sizeof(command), "gzip -dc '%s/spaces/%s.json.gz' > '%s'",
                       shared_data(), s->name, path);
        assert_int_equal(system(command), 0);
        assert_counts(import(f, path), s->stored, 0, 0, false);
        struct kp_result_filter filter = {.run = (int64_t)i + 1, .outcome = KOPT_OUT_OK};
        assert_int_equal(count_results(f, filter), s->ok);
        filter.outcome = KOPT_OUT_COMPILE_ERROR;
        assert_int_equal(count_results(f, filter), s->compile);
        filter.outcome = KOPT_OUT_LAUNCH_ERROR;
        assert_int_equal(count_results(f, filter), s->runtime);
        if (i == 0)
            assert_counts(import(f, path), 0, s->stored, 0, false);
    }
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_store, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(a_whole_file_comes_in_once),
        CASE(an_open_file_is_whole_and_a_cut_one_gives_what_it_has),
        CASE(members_in_any_order_are_found),
        CASE(older_ways_to_write_failures_are_understood),
        CASE(bad_entries_are_counted_and_passed_over),
        CASE(an_empty_cache_adds_nothing),
        CASE(a_file_cut_anywhere_gives_its_whole_entries),
        CASE(other_files_are_refused_with_their_place),
        CASE(what_stands_before_damage_is_kept),
        CASE(problems_take_every_form),
        CASE(what_is_too_long_is_passed_over),
        CASE(published_spaces_come_in_completely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
