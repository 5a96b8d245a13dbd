/* SPDX-License-Identifier: MIT */
/* The contract of store.h, whatever the back end. */
#include "unit/store/fixture.h"

#include "base/buf.h"
#include "os/clock.h"

/* --- subjects ------------------------------------------------------------------------------
 */

static void every_text_but_the_path_makes_another_subject(void **state)
{
    struct fixture *f = *state;
    int64_t first = make_subject(f, a_subject());
    assert_int_equal(make_subject(f, a_subject()), first);

    struct kp_subject s = a_subject();
    const char **const keys[] = {&s.kernel, &s.kernel_hash, &s.backend, &s.device, &s.arch,
                                 &s.driver, &s.compiler,    &s.problem, &s.data};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        s = a_subject();
        *keys[i] = "another";
        int64_t id = make_subject(f, s);
        assert_int_not_equal(id, first);
        assert_int_equal(make_subject(f, s), id);
    }
    /* Neighbouring texts do not run together. */
    s = a_subject();
    s.arch = "fake";
    s.driver = "_11.0";
    assert_int_not_equal(make_subject(f, s), first);
}

static bool keep_path(void *user, const struct kp_subject *s)
{
    (void)snprintf(user, 256, "%s|%s|%s", s->kernel_path, s->problem, s->data);
    return true;
}

static void a_moved_kernel_stays_the_same_subject(void **state)
{
    struct fixture *f = *state;
    char text[256] = "";
    struct kp_subject s = a_subject();
    int64_t id = make_subject(f, s);
    s.kernel_path = "elsewhere/gemm.cl";
    assert_int_equal(make_subject(f, s), id);
    ASSERT_OK(f, kp_store_subject_get(f->st, id, keep_path, text, &f->err));
    assert_string_equal(text, "elsewhere/gemm.cl|{\"K\":512,\"M\":512,\"N\":512}|{\"seed\":1}");
    s.kernel_path = ""; /* not known */
    assert_int_equal(make_subject(f, s), id);
    ASSERT_OK(f, kp_store_subject_get(f->st, id, keep_path, text, &f->err));
    assert_memory_equal(text, "elsewhere/", 10);
}

static bool keep_params(void *user, const struct kp_subject *s)
{
    (void)snprintf(user, 256, "%s %s", s->kernel_path, s->params);
    return true;
}

static void the_newest_order_of_parameters_is_kept(void **state)
{
    struct fixture *f = *state;
    char text[256] = "";
    struct kp_subject s = a_subject();
    int64_t id = make_subject(f, s);
    s.params = "[\"BM\",\"X\",\"new\"]";
    s.kernel_path = "";
    assert_int_equal(make_subject(f, s), id);
    s.params = ""; /* not known */
    assert_int_equal(make_subject(f, s), id);
    s.params = NULL;
    assert_int_equal(make_subject(f, s), id);
    ASSERT_OK(f, kp_store_subject_get(f->st, id, keep_params, text, &f->err));
    assert_string_equal(text, "kernels/gemm.cl [\"BM\",\"X\",\"new\"]");
}

struct listing {
    int n;
    int64_t ids[16];
    int64_t n_results[16];
    int64_t n_ok[16];
    double best[16];
};

static bool list_subject(void *user, const struct kp_subject *s)
{
    struct listing *l = user;
    l->ids[l->n] = s->id;
    l->n_results[l->n] = s->n_results;
    l->n_ok[l->n] = s->n_ok;
    l->best[l->n] = s->best_ns;
    return ++l->n < 16;
}

static void subjects_are_listed_newest_first_with_their_counts(void **state)
{
    struct fixture *f = *state;
    struct listing l = {0};
    int64_t unfinished = 0;
    struct kp_subject other = a_subject();
    other.kernel = "conv";
    int64_t a = make_subject(f, a_subject());
    int64_t b = make_subject(f, other);
    kopt_result late = a_result("{\"X\":1}", 50);
    late.wall_us = 1800000000000000;
    add(f, 0, a, late);
    add(f, 0, b, a_result("{\"X\":1}", 70));
    add(f, 0, b, a_result("{\"X\":2}", 60));
    add(f, 0, b, a_failure("{\"X\":3}", KOPT_OUT_CRASH));
    ASSERT_OK(f, kp_store_begin(f->st, 0, b, "{\"X\":4}", false, &unfinished, &f->err));

    ASSERT_OK(f, kp_store_subjects(f->st, NULL, list_subject, &l, &f->err));
    assert_int_equal(l.n, 2);
    assert_int_equal(l.ids[0], a);
    assert_int_equal(l.ids[1], b);
    assert_int_equal(l.n_results[1], 3);
    assert_int_equal(l.n_ok[1], 2);
    assert_true(l.best[0] == 50 && l.best[1] == 60);

    l = (struct listing){0};
    ASSERT_OK(f, kp_store_subjects(f->st, "conv", list_subject, &l, &f->err));
    assert_int_equal(l.n, 1);
    assert_int_equal(l.ids[0], b);
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no subject 99",
                 kp_store_subject_get(f->st, 99, list_subject, &l, &f->err));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no subject",
                 kp_store_subject_get(f->st, 0, list_subject, &l, &f->err));
}

static void a_subject_without_results_has_no_best(void **state)
{
    struct fixture *f = *state;
    struct listing l = {0};
    struct seen seen = {0};
    int64_t id = make_subject(f, a_subject());
    add(f, 0, id, a_failure("{\"X\":3}", KOPT_OUT_WRONG));
    ASSERT_OK(f, kp_store_subject_get(f->st, id, list_subject, &l, &f->err));
    assert_true(isnan(l.best[0]));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no result",
                 kp_store_best(f->st, id, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 0);
}

/* --- runs ----------------------------------------------------------------------------------
 */

static bool see_run(void *user, const struct kp_store_run *r)
{
    struct kp_buf *b = user;
    kp_buf_addf(b, "%lld/%lld %s %s %s %s %s '%s' %lld %lld %d;", (long long)r->id,
                (long long)r->subject, r->command, r->strategy, r->version, r->host, r->state,
                r->summary, (long long)r->seed, (long long)r->begun_us, r->ended_us > 0);
    return true;
}

static void runs_are_begun_ended_and_listed(void **state)
{
    struct fixture *f = *state;
    struct kp_buf text = KP_BUF_INIT(4096);
    int64_t a = make_subject(f, a_subject());
    int64_t first = make_run(f, a);
    int64_t second = make_run(f, a);
    assert_true(second > first);
    ASSERT_OK(f, kp_store_run_end(f->st, first, "done", "{\"ok\":1}", &f->err));
    ASSERT_OK(f, kp_store_runs(f->st, a, see_run, &text, &f->err));
    assert_string_equal(
        kp_buf_text(&text),
        "2/1 kopt tune gemm.cl M=512 random 0.1.0 here running '' 7 1000 0;"
        "1/1 kopt tune gemm.cl M=512 random 0.1.0 here done '{\"ok\":1}' 7 1000 1;");
    kp_buf_deinit(&text);
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no run 77",
                 kp_store_run_end(f->st, 77, "done", "", &f->err));
    struct kp_store_run orphan = a_run(99);
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no such subject or run",
                 kp_store_run_begin(f->st, &orphan, &f->err));
}

/* --- results -------------------------------------------------------------------------------
 */

struct copy {
    kopt_result r;
    double times[8];
    char text[3][512];
    int n;
};

static bool copy_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct copy *c = user;
    (void)subject;
    (void)run;
    c->r = *r;
    for (uint32_t i = 0; i < r->n_times && i < 8; i++)
        c->times[i] = r->times_ns[i];
    (void)snprintf(c->text[0], sizeof(c->text[0]), "%s", r->config);
    (void)snprintf(c->text[1], sizeof(c->text[1]), "%s", r->message);
    (void)snprintf(c->text[2], sizeof(c->text[2]), "%s", r->log);
    c->n++;
    return true;
}

static void every_field_comes_back(void **state)
{
    struct fixture *f = *state;
    struct copy c = {0};
    const double times[] = {1.25, 1e-300, 123456789.000001, 1e300};
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    int64_t id = 0;
    kopt_result r = a_result("{\"BM\":64,\"mode\":\"a b\"}", 1234.5);
    r.message = "three of four";
    r.log = "line 1\nline 2\n\ttab";
    r.times_ns = times;
    r.n_times = 4;
    r.dropped = 1;
    r.registers = 255;
    r.shared_bytes = 0;
    r.local_bytes = 1LL << 40;
    r.max_error = 1e-7;
    r.power_w = 123.5;
    r.energy_j = 0.25;
    r.sm_mhz = 1980;
    r.temp_c = 61;
    r.throttle = KOPT_THROTTLE_POWER_CAP | KOPT_THROTTLE_HW_THERMAL;
    ASSERT_OK(f, kp_store_begin(f->st, run, s, r.config, true, &id, &f->err));
    ASSERT_OK(f, kp_store_finish(f->st, id, &r, &f->err));
    fixture_reopen(f, KP_STORE_READ);
    struct kp_result_filter filter = {.id = id, .outcome = -1};
    ASSERT_OK(f, kp_store_results(f->st, &filter, copy_result, &c, &f->err));
    assert_int_equal(c.n, 1);
    assert_int_equal(c.r.id, id);
    assert_string_equal(c.text[0], r.config);
    assert_string_equal(c.text[1], r.message);
    assert_string_equal(c.text[2], r.log);
    assert_int_equal(c.r.outcome, KOPT_OUT_OK);
    assert_int_equal(c.r.n_times, 4);
    assert_memory_equal(c.times, times, sizeof(times));
    assert_true(c.r.median_ns == r.median_ns && c.r.low_ns == r.low_ns &&
                c.r.high_ns == r.high_ns);
    assert_true(c.r.dropped == 1 && c.r.race == 1 && c.r.from_store == 1);
    assert_true(c.r.compile_ns == r.compile_ns && c.r.device_ns == r.device_ns);
    assert_true(c.r.registers == 255 && c.r.shared_bytes == 0 && c.r.local_bytes == 1LL << 40);
    assert_true(c.r.max_error == 1e-7 && c.r.power_w == 123.5 && c.r.energy_j == 0.25 &&
                c.r.sm_mhz == 1980 && c.r.temp_c == 61);
    assert_int_equal(c.r.throttle, r.throttle);
    assert_int_equal(c.r.wall_us, r.wall_us);
}

static void what_is_not_known_stays_not_known(void **state)
{
    struct fixture *f = *state;
    struct copy c = {0};
    int64_t s = make_subject(f, a_subject());
    kopt_result r = a_failure("{}", KOPT_OUT_HANG);
    r.compile_ns = (double)NAN;
    r.device_ns = (double)NAN;
    r.message = NULL;
    add(f, 0, s, r);
    struct kp_result_filter filter = all_of(s);
    ASSERT_OK(f, kp_store_results(f->st, &filter, copy_result, &c, &f->err));
    assert_true(isnan(c.r.median_ns) && isnan(c.r.low_ns) && isnan(c.r.high_ns));
    assert_true(isnan(c.r.compile_ns) && isnan(c.r.device_ns) && isnan(c.r.max_error));
    assert_true(isnan(c.r.power_w) && isnan(c.r.energy_j) && isnan(c.r.sm_mhz) &&
                isnan(c.r.temp_c));
    assert_true(c.r.registers == -1 && c.r.shared_bytes == -1 && c.r.local_bytes == -1);
    assert_int_equal(c.r.throttle, -1);
    assert_true(c.r.n_times == 0 && c.r.dropped == 0 && c.r.race == 0);
    assert_string_equal(c.text[1], "");
}

static void a_begun_result_is_interrupted_until_it_is_finished_once(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    int64_t id = 0;
    kopt_result r = a_result("ignored", 10);
    struct kp_result_filter filter = all_of(s);
    ASSERT_OK(f, kp_store_begin(f->st, run, s, "{\"X\":1}", false, &id, &f->err));
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.outcome[0], KOPT_OUT_INTERRUPTED);
    assert_int_equal(seen.run[0], run);
    filter.newest = true;
    assert_int_equal(count_results(f, filter), 0);

    ASSERT_OK(f, kp_store_finish(f->st, id, &r, &f->err));
    assert_int_equal(count_results(f, filter), 1);
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "waits to be completed",
                 kp_store_finish(f->st, id, &r, &f->err));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "waits to be completed",
                 kp_store_finish(f->st, id + 1, &r, &f->err));
    seen.n = 0;
    ASSERT_OK(f, kp_store_best(f->st, s, see_result, &seen, &f->err));
    assert_string_equal(seen.config[0], "{\"X\":1}");
}

static void nonsense_is_refused(void **state)
{
    struct fixture *f = *state;
    int64_t id = 0;
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    kopt_result r = a_result("{\"X\":1}", (double)NAN);
    ASSERT_FAILS(f, KOPT_EUSAGE, "needs a time", kp_store_add(f->st, run, s, &r, &id, &f->err));
    r.median_ns = -1;
    ASSERT_FAILS(f, KOPT_EUSAGE, "needs a time", kp_store_add(f->st, run, s, &r, &id, &f->err));
    r.median_ns = 5;
    r.outcome = KOPT_OUT_COUNT;
    ASSERT_FAILS(f, KOPT_EUSAGE, "not an outcome",
                 kp_store_add(f->st, run, s, &r, &id, &f->err));
    r.outcome = KOPT_OUT_OK;
    r.n_times = 2000000000;
    ASSERT_FAILS(f, KOPT_ERANGE, "samples", kp_store_add(f->st, run, s, &r, &id, &f->err));
    r.n_times = 0;
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no such subject or run",
                 kp_store_add(f->st, run, 99, &r, &id, &f->err));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no such subject or run",
                 kp_store_add(f->st, 99, s, &r, &id, &f->err));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no such subject or run",
                 kp_store_begin(f->st, run, 99, "{}", false, &id, &f->err));
    ASSERT_FAILS(f, KOPT_EUSAGE, "without a configuration",
                 kp_store_begin(f->st, run, s, "", false, &id, &f->err));
    char *longer = calloc(1, (2 << 20) + 1);
    assert_non_null(longer);
    memset(longer, 'x', 2 << 20);
    ASSERT_FAILS(f, KOPT_ERANGE, "configuration longer",
                 kp_store_begin(f->st, run, s, longer, false, &id, &f->err));
    struct kp_subject big = a_subject();
    big.data = longer;
    ASSERT_FAILS(f, KOPT_ERANGE, "longer", kp_store_subject(f->st, &big, &f->err));
    free(longer);
    assert_int_equal(id, 0);
    assert_int_equal(count_results(f, all_of(0)), 0);
}

static void texts_become_utf8(void **state)
{
    struct fixture *f = *state;
    struct copy c = {0};
    int64_t s = make_subject(f, a_subject());
    kopt_result r = a_failure("{}", KOPT_OUT_COMPILE_ERROR);
    /* a lone continuation byte, an overlong "/", a surrogate, a cut sequence at the end */
    r.message = "a\x80z \xC0\xAF \xED\xA0\x80 caf\xC3\xA9 \xF0\x9F\x98\x80 \xE2\x82";
    r.log = "warning:\n\xFF\n";
    add(f, 0, s, r);
    struct kp_result_filter filter = all_of(s);
    ASSERT_OK(f, kp_store_results(f->st, &filter, copy_result, &c, &f->err));
#define BAD "\xEF\xBF\xBD"
    assert_string_equal(c.text[1], "a" BAD "z " BAD BAD " " BAD BAD BAD
                                   " caf\xC3\xA9 \xF0\x9F\x98\x80 " BAD BAD);
    assert_string_equal(c.text[2], "warning:\n" BAD "\n");
}

static bool measure_log(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)subject;
    (void)run;
    *(size_t *)user = strlen(r->log);
    return true;
}

static void a_long_log_is_cut_between_characters(void **state)
{
    struct fixture *f = *state;
    size_t length = 0;
    int64_t s = make_subject(f, a_subject());
    kopt_result r = a_failure("{}", KOPT_OUT_COMPILE_ERROR);
    char *log = calloc(1, 100001);
    assert_non_null(log);
    for (int i = 0; i < 50000; i++)
        memcpy(log + 2 * i, "\xC3\xA9", 2);
    log[1] = 'x';
    r.log = log + 1; /* one byte, then two for each character: the limit falls inside one */
    add(f, 0, s, r);
    free(log);
    struct kp_result_filter filter = all_of(s);
    ASSERT_OK(f, kp_store_results(f->st, &filter, measure_log, &length, &f->err));
    assert_int_equal(length, 16383);
}

/* --- filters -------------------------------------------------------------------------------
 */

static void filters_choose_and_order(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    int64_t s = make_subject(f, a_subject());
    int64_t one = make_run(f, s);
    int64_t two = make_run(f, s);
    kopt_result raced = a_result("{\"X\":1}", 31);
    raced.race = 1;
    int64_t a = add(f, one, s, a_result("{\"X\":1}", 30));
    int64_t b = add(f, one, s, a_failure("{\"X\":2}", KOPT_OUT_WRONG));
    int64_t c = add(f, one, s, a_result("{\"X\":3}", 10));
    int64_t d = add(f, two, s, a_result("{\"X\":1}", 20));
    int64_t e = add(f, two, s, raced);
    int64_t g = 0;
    ASSERT_OK(f, kp_store_begin(f->st, two, s, "{\"X\":3}", false, &g, &f->err));

    struct kp_result_filter filter = all_of(s);
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 6);
    assert_true(seen.ids[0] == a && seen.ids[5] == g);

    seen.n = 0;
    filter.newest = true;
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 4);
    assert_true(seen.ids[0] == b && seen.ids[1] == c && seen.ids[2] == d && seen.ids[3] == e);

    seen.n = 0;
    filter.by_time = true;
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_true(seen.ids[0] == c && seen.ids[1] == d && seen.ids[2] == e && seen.ids[3] == b);

    seen.n = 0;
    filter.limit = 2;
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 2);
    assert_true(seen.ids[1] == d);

    /* the newest of the run, though a later run measured it again */
    seen.n = 0;
    filter = (struct kp_result_filter){.run = one, .outcome = KOPT_OUT_OK, .newest = true};
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 2);
    assert_true(seen.ids[0] == a && seen.ids[1] == c);

    filter = (struct kp_result_filter){.run = two, .outcome = -1};
    assert_int_equal(count_results(f, filter), 3);
    filter.outcome = KOPT_OUT_INTERRUPTED;
    assert_int_equal(count_results(f, filter), 1);
    filter = (struct kp_result_filter){.outcome = KOPT_OUT_WRONG};
    assert_int_equal(count_results(f, filter), 1);
    assert_int_equal(count_results(f, all_of(s + 1)), 0);
}

static void of_a_raced_configuration_one_result_can_be_had(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    int64_t s = make_subject(f, a_subject());
    int64_t id = 0;
    kopt_result raced = a_result("{\"X\":1}", 12);
    raced.race = 1;
    add(f, 0, s, a_result("{\"X\":1}", 10));
    int64_t race = add(f, 0, s, raced);
    int64_t other = add(f, 0, s, a_result("{\"X\":2}", 20));
    raced.config = "{\"X\":3}";
    raced.outcome = KOPT_OUT_UNSTEADY;
    add(f, 0, s, raced);
    int64_t mended = add(f, 0, s, a_result("{\"X\":3}", 30));
    ASSERT_OK(f, kp_store_begin(f->st, 0, s, "{\"X\":1}", true, &id, &f->err));

    struct kp_result_filter filter = all_of(s);
    filter.newest = true; /* race and search apart, as a session wants them */
    assert_int_equal(count_results(f, filter), 5);
    filter.once = true;
    ASSERT_OK(f, kp_store_results(f->st, &filter, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 3);
    assert_true(seen.ids[0] == race && seen.ids[1] == other && seen.ids[2] == mended);
    filter.outcome = KOPT_OUT_UNSTEADY; /* what was measured right later is no failure */
    assert_int_equal(count_results(f, filter), 0);
}

static bool only_summary(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)subject;
    (void)run;
    assert_null(r->times_ns);
    assert_int_equal(r->n_times, r->id == 3 ? 0 : 2); /* how many there are is known */
    assert_string_equal(r->log, "");
    assert_string_equal(r->message, "m");
    ++*(int *)user;
    return r->id != 3;
}

static void samples_and_logs_can_be_left_out(void **state)
{
    struct fixture *f = *state;
    int seen = 0;
    const double times[] = {1, 2};
    int64_t s = make_subject(f, a_subject());
    kopt_result r = a_result("{}", 1.5);
    r.times_ns = times;
    r.n_times = 2;
    r.log = "long";
    r.message = "m";
    add(f, 0, s, r);
    add(f, 0, s, r);
    r.n_times = 0;
    add(f, 0, s, r);
    add(f, 0, s, r); /* the visitor ends the walk before this one */
    struct kp_result_filter filter = all_of(s);
    filter.no_samples = true;
    ASSERT_OK(f, kp_store_results(f->st, &filter, only_summary, &seen, &f->err));
    assert_int_equal(seen, 3);
}

/* --- best ----------------------------------------------------------------------------------
 */

static const char *best_of(struct fixture *f, int64_t subject)
{
    static struct seen seen;
    memset(&seen, 0, sizeof(seen));
    ASSERT_OK(f, kp_store_best(f->st, subject, see_result, &seen, &f->err));
    assert_int_equal(seen.n, 1);
    return seen.config[0];
}

static void the_best_is_the_winner_of_the_newest_race(void **state)
{
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    int64_t one = make_run(f, s);
    int64_t two = make_run(f, s);
    kopt_result a = a_result("{\"X\":1}", 10);
    kopt_result b = a_result("{\"X\":2}", 11);
    add(f, one, s, a);
    add(f, one, s, b);
    assert_string_equal(best_of(f, s), "{\"X\":1}");
    a.race = b.race = 1;
    a.median_ns = 12; /* side by side it loses */
    add(f, one, s, a);
    add(f, one, s, b);
    assert_string_equal(best_of(f, s), "{\"X\":2}");
    a.median_ns = 8;
    b.median_ns = 9;
    add(f, two, s, a);
    add(f, two, s, b);
    assert_string_equal(best_of(f, s), "{\"X\":1}");
}

static void what_is_clearly_faster_after_the_race_is_the_best(void **state)
{
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    kopt_result winner = a_result("{\"X\":1}", 10); /* 9 to 11 */
    kopt_result loser = a_result("{\"X\":2}", 12);
    winner.race = loser.race = 1;
    add(f, run, s, a_result("{\"X\":3}", 7)); /* before the race: it had its chance */
    add(f, run, s, winner);
    add(f, run, s, loser);
    assert_string_equal(best_of(f, s), "{\"X\":1}");
    add(f, run, s, a_result("{\"X\":4}", 8.5)); /* up to 9.35: it may be no faster */
    assert_string_equal(best_of(f, s), "{\"X\":1}");
    add(f, run, s, a_result("{\"X\":5}", 8)); /* up to 8.8 */
    add(f, run, s, a_result("{\"X\":6}", 7));
    assert_string_equal(best_of(f, s), "{\"X\":6}");
    add(f, run, s, a_failure("{\"X\":6}", KOPT_OUT_WRONG));
    assert_string_equal(best_of(f, s), "{\"X\":5}");
    winner.median_ns = 11;
    add(f, make_run(f, s), s, winner); /* another race decides again */
    assert_string_equal(best_of(f, s), "{\"X\":1}");
}

static void a_configuration_that_fails_later_is_not_the_best(void **state)
{
    struct fixture *f = *state;
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    int64_t id = 0;
    kopt_result raced = a_result("{\"X\":1}", 5);
    raced.race = 1;
    add(f, run, s, a_result("{\"X\":1}", 5));
    add(f, run, s, raced);
    add(f, run, s, a_result("{\"X\":2}", 7));
    /* begun again and never finished: says nothing */
    ASSERT_OK(f, kp_store_begin(f->st, run, s, "{\"X\":1}", false, &id, &f->err));
    assert_string_equal(best_of(f, s), "{\"X\":1}");
    add(f, run, s, a_failure("{\"X\":1}", KOPT_OUT_UNSTEADY));
    assert_string_equal(best_of(f, s), "{\"X\":2}");
    /* of two measurements of one configuration the newer counts */
    add(f, run, s, a_result("{\"X\":2}", 9));
    add(f, run, s, a_result("{\"X\":3}", 8));
    assert_string_equal(best_of(f, s), "{\"X\":3}");
}

/* --- visitors ------------------------------------------------------------------------------
 */

struct nested {
    struct fixture *f;
    int inner;
    kopt_status write;
};

static bool read_inside(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct nested *n = user;
    int64_t id = 0;
    kopt_result again = a_result("{\"X\":9}", 1);
    struct kp_result_filter filter = {.id = r->id, .outcome = -1};
    n->inner += (int)count_results(n->f, filter);
    n->write = kp_store_add(n->f->st, run, subject, &again, &id, &n->f->err);
    return true;
}

static void a_visitor_may_read_and_not_write(void **state)
{
    struct fixture *f = *state;
    struct nested n = {.f = f};
    int64_t s = make_subject(f, a_subject());
    add(f, 0, s, a_result("{\"X\":1}", 1));
    add(f, 0, s, a_result("{\"X\":2}", 1));
    struct kp_result_filter filter = all_of(s);
    ASSERT_OK(f, kp_store_results(f->st, &filter, read_inside, &n, &f->err));
    assert_int_equal(n.inner, 2);
    assert_int_equal(n.write, KOPT_EUSAGE);
    assert_int_equal(count_results(f, filter), 2);
    add(f, 0, s, a_result("{\"X\":3}", 1)); /* afterwards it goes on as before */
}

static void a_store_for_reading_is_not_written(void **state)
{
    struct fixture *f = *state;
    int64_t id = 0;
    struct kp_subject known = a_subject();
    struct kp_subject new = a_subject();
    new.device = "Fake 2";
    make_subject(f, known);
    fixture_reopen(f, KP_STORE_READ);
    kopt_result r = a_result("{}", 1);
    ASSERT_OK(f, kp_store_subject(f->st, &known, &f->err));
    ASSERT_FAILS(f, KOPT_ENOTFOUND, "no such subject", kp_store_subject(f->st, &new, &f->err));
    ASSERT_FAILS(f, KOPT_EUSAGE, "reading only",
                 kp_store_add(f->st, 0, known.id, &r, &id, &f->err));
    ASSERT_FAILS(f, KOPT_EUSAGE, "reading only", kp_store_finish(f->st, 1, &r, &f->err));
    struct kp_store_run run = a_run(known.id);
    ASSERT_FAILS(f, KOPT_EUSAGE, "reading only", kp_store_run_begin(f->st, &run, &f->err));
}

/* --- cost ----------------------------------------------------------------------------------
 */

/* The bound is twenty times what it takes on the machine it was written on, so that only a
 * mistake (a sync for each result, a scan instead of an index) fails it; sanitizers are slow.
 */
static void a_result_costs_little(void **state)
{
    struct fixture *f = *state;
    enum { N = 4000 };
    double times[20];
    int64_t s = make_subject(f, a_subject());
    int64_t run = make_run(f, s);
    for (int i = 0; i < 20; i++)
        times[i] = 100 + i;
    int64_t start = kp_clock_ns();
    for (int i = 0; i < N; i++) {
        char config[64];
        int64_t id = 0;
        (void)snprintf(config, sizeof(config), "{\"BM\":%d,\"BN\":%d,\"TM\":%d}", i % 7,
                       i * 31 % 101, i);
        kopt_result r = a_result(config, 100 + i);
        r.times_ns = times;
        r.n_times = 20;
        ASSERT_OK(f, kp_store_begin(f->st, run, s, config, false, &id, &f->err));
        ASSERT_OK(f, kp_store_finish(f->st, id, &r, &f->err));
    }
    double us = (double)(kp_clock_ns() - start) / 1e3 / N;
    print_message("begin and finish: %.1f us\n", us);
    assert_true(us < 1000);
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_store, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(every_text_but_the_path_makes_another_subject),
        CASE(a_moved_kernel_stays_the_same_subject),
        CASE(the_newest_order_of_parameters_is_kept),
        CASE(subjects_are_listed_newest_first_with_their_counts),
        CASE(a_subject_without_results_has_no_best),
        CASE(runs_are_begun_ended_and_listed),
        CASE(every_field_comes_back),
        CASE(what_is_not_known_stays_not_known),
        CASE(a_begun_result_is_interrupted_until_it_is_finished_once),
        CASE(nonsense_is_refused),
        CASE(texts_become_utf8),
        CASE(a_long_log_is_cut_between_characters),
        CASE(filters_choose_and_order),
        CASE(of_a_raced_configuration_one_result_can_be_had),
        CASE(samples_and_logs_can_be_left_out),
        CASE(the_best_is_the_winner_of_the_newest_race),
        CASE(what_is_clearly_faster_after_the_race_is_the_best),
        CASE(a_configuration_that_fails_later_is_not_the_best),
        CASE(a_visitor_may_read_and_not_write),
        CASE(a_store_for_reading_is_not_written),
        CASE(a_result_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
