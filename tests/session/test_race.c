/* SPDX-License-Identifier: MIT */
/* The final race: who is in it, what it finds, what is kept of it. */
#include "session/session.h"

#include <math.h>
#include <stdbool.h>

/* b comes first: what an out-of-bounds write spoils is the input. A launch takes 9 us, A adds
 * 10 ns each. */
#define HEAD                                              \
    "#pragma kopt kernel k\n"                             \
    "#pragma kopt lang opencl\n"                          \
    "#pragma kopt block 16\n"                             \
    "#pragma kopt grid 4\n"                               \
    "#pragma kopt arg b f32[64] out  a f32[64] normal\n"  \
    "#pragma kopt reference ref block 16 grid 4\n"        \
    "#pragma kopt check b against kernel ref rtol 1e-6\n" \
    "#pragma kopt default A=3\n"                          \
    "// fake: out 0 = copy 1\n"                           \
    "// fake: time 9000\n"                                \
    "// fake: add A 10\n"                                 \
    "kernel void ref(global float *b, global const float *a) {}\n"
#define TAIL "kernel void k(global float *b, global const float *a) {}\n"

enum { ROUNDS = 60, ROWS_MAX = 64 }; /* of a race of short kernels */

struct row {
    int64_t id;
    char config[64];
    kopt_outcome outcome;
    double median_ns;
    double max_error;
    double energy_j;
    uint32_t n_times;
    int race;
};

struct rows {
    struct row row[ROWS_MAX];
    size_t n;
};

static int note(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct rows *rows = user;
    (void)subject;
    (void)run;
    assert_true(rows->n < ROWS_MAX);
    struct row *x = &rows->row[rows->n++];
    *x = (struct row){.id = r->id,
                      .outcome = r->outcome,
                      .median_ns = r->median_ns,
                      .max_error = r->max_error,
                      .energy_j = r->energy_j,
                      .n_times = r->n_times,
                      .race = r->race};
    (void)snprintf(x->config, sizeof(x->config), "%s", r->config);
    return 1;
}

/* All rows of a store, or the best of its only subject. */
static struct rows rows_of(const char *path, bool best)
{
    struct rows rows = {0};
    kopt_store *st = NULL;
    kopt_error err;
    kopt_result_filter f = {.outcome = -1};
    if (kopt_store_open(path, 0, &st, &err) != KOPT_OK ||
        (best ? kopt_store_best(st, 1, note, &rows, &err)
              : kopt_store_results(st, &f, note, &rows, &err)) != KOPT_OK)
        fail_msg("%s", err.message);
    kopt_store_close(st);
    return rows;
}

static size_t races_in(const char *path)
{
    struct rows rows = rows_of(path, false);
    size_t n = 0;
    for (size_t i = 0; i < rows.n; i++)
        n += rows.row[i].race != 0;
    return n;
}

static const struct row *race_row(const struct rows *rows, const char *config)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->row[i].race && strcmp(rows->row[i].config, config) == 0)
            return &rows->row[i];
    fail_msg("%s did not race", config);
    return NULL;
}

static void run(struct session *s, const char *text, const char *store)
{
    session_init(s, write_kernel("race.cl", text), store);
    session_run(s);
    if (s->status != KOPT_OK)
        fail_msg("%s", s->err.message);
}

static void stop_in_race(void *user, const kopt_tune_progress *p)
{
    if (strcmp(p->phase, "final race") == 0)
        kopt_tuner_stop(((struct session *)user)->tuner);
}

static void a_stray_write_of_the_last_one_does_not_condemn_the_racers(void **state)
{
    (void)state;
    static const char four[] = HEAD "#pragma kopt param A {0,1,2,3}\n"
                                    "// fake: when A=4,entry=k oob\n" TAIL;
    static const char five[] = HEAD "#pragma kopt param A {0,1,2,3,4}\n"
                                    "// fake: when A=4,entry=k oob\n" TAIL;
    struct session s;
    (void)remove("stray.db");
    session_init(&s, write_kernel("race.cl", four), "stray.db");
    s.o.callbacks.progress = stop_in_race;
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    session_end(&s);
    assert_int_equal(races_in("stray.db"), 0);
    /* All others are known, so the stray one is the last before the race. */
    run(&s, five, "stray.db");
    assert_int_equal(session_measured(&s), 1);
    assert_int_equal(session_find(&s, "A=4")->outcome, KOPT_OUT_UNSTEADY);
    assert_int_equal(s.warnings, 0);
    assert_string_equal(s.report.best_text, "A=0");
    assert_true(s.report.best.race && !s.report.best.from_store);
    session_end(&s);
    struct rows rows = rows_of("stray.db", false);
    assert_int_equal(races_in("stray.db"), 4);
    for (size_t i = 0; i < rows.n; i++)
        assert_true(rows.row[i].outcome == KOPT_OUT_OK ||
                    strcmp(rows.row[i].config, "{\"A\":4}") == 0);
    assert_string_equal(rows_of("stray.db", true).row[0].config, "{\"A\":0}");
}

static void the_report_is_that_of_the_race(void **state)
{
    (void)state;
    static const char text[] = HEAD "#pragma kopt param A {0,1,2,3}\n" TAIL;
    struct session s;
    (void)remove("report.db");
    for (int again = 0; again < 2; again++) {
        run(&s, text, "report.db");
        struct rows rows = rows_of("report.db", false);
        const struct row *best = race_row(&rows, "{\"A\":0}");
        const struct row *first = race_row(&rows, "{\"A\":3}");
        assert_int_equal(rows.n, 8);
        assert_int_equal(s.report.best.id, best->id);
        assert_int_equal(s.report.first.id, first->id);
        assert_int_equal(s.report.best.n_times, ROUNDS);
        assert_int_equal(best->n_times, ROUNDS);
        assert_true(s.report.best.times_ns[ROUNDS - 1] == 9000);
        assert_true(s.report.best.median_ns == 9000 && s.report.first.median_ns == 9030);
        assert_true(s.report.best.race && s.report.first.race);
        assert_true(s.report.best.max_error == 0 && best->max_error == 0);
        assert_true(s.report.checked);
        assert_int_equal(s.report.best.from_store, again);
        assert_true(fabs(s.report.speedup - 9030.0 / 9000.0) < 1e-9);
        assert_int_equal(rows_of("report.db", true).row[0].id, best->id);
        session_end(&s);
    }
}

static void a_racer_that_is_wrong_at_the_end_is_out_and_the_next_one_wins(void **state)
{
    (void)state;
    struct session s;
    (void)remove("out.db");
    /* One launch to warm up and 60 timed ones. */
    run(&s,
        HEAD "#pragma kopt param A {0,1,2,3}\n"
             "// fake: when A=0,entry=k wrong_at 61\n" TAIL,
        "out.db");
    assert_int_equal(session_find(&s, "A=0")->outcome, KOPT_OUT_OK);
    assert_string_equal(s.report.best_text, "A=1");
    session_end(&s);
    struct rows rows = rows_of("out.db", false);
    const struct row *out = race_row(&rows, "{\"A\":0}");
    assert_int_equal(out->outcome, KOPT_OUT_UNSTEADY);
    assert_true(isnan(out->median_ns));
    assert_int_equal(out->n_times, ROUNDS);
    assert_string_equal(rows_of("out.db", true).row[0].config, "{\"A\":1}");
    (void)remove("out.db");
    run(&s,
        HEAD "#pragma kopt param A {0,1,2,3}\n"
             "// fake: when A=0,entry=k wrong_at 62\n" TAIL,
        "out.db");
    assert_string_equal(s.report.best_text, "A=0");
    session_end(&s);
}

static void a_race_that_nobody_finished_is_not_kept(void **state)
{
    (void)state;
    static const char text[] = HEAD "#pragma kopt param A {0,1,2,3}\n"
                                    "// fake: when entry=k wrong_at 61\n" TAIL;
    struct session s;
    (void)remove("nobody.db");
    for (int again = 0; again < 2; again++) {
        run(&s, text, "nobody.db");
        assert_int_equal(session_measured(&s), again ? 0 : 4);
        assert_int_equal(s.warnings, 1);
        assert_non_null(strstr(s.last_warning, "final race failed"));
        assert_string_equal(s.report.best_text, "A=0");
        assert_false(s.report.best.race);
        session_end(&s);
        assert_int_equal(rows_of("nobody.db", false).n, 4);
        assert_string_equal(rows_of("nobody.db", true).row[0].config, "{\"A\":0}");
    }
}

static void a_default_that_fails_is_no_reason_to_find_nothing(void **state)
{
    (void)state;
    struct session s;
    run(&s,
        HEAD "#pragma kopt param A {0,1,2,3}\n"
             "// fake: when A=3,entry=k compile_error \"no such intrinsic\"\n" TAIL,
        NULL);
    assert_int_equal(session_find(&s, "A=3")->outcome, KOPT_OUT_COMPILE_ERROR);
    assert_int_equal(s.report.first.outcome, KOPT_OUT_COMPILE_ERROR);
    assert_string_equal(s.report.first_text, "A=3");
    assert_string_equal(s.report.best_text, "A=0");
    assert_true(s.report.best.race);
    assert_true(isnan(s.report.speedup) && isnan(s.report.speedup_low));
    assert_non_null(strstr(s.report.first_failure, "no such intrinsic"));
    assert_true(s.report.checked);
    session_end(&s);
}

static void those_that_are_as_fast_are_named(void **state)
{
    (void)state;
    struct session s;
    run(&s, HEAD "#pragma kopt param A {0,3}  B {1,2,3}\n" TAIL, NULL);
    assert_int_equal(s.report.n_tied, 2);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(strstr(s.report.tied[i], "A=0,B="));
    assert_string_not_equal(s.report.tied[0], s.report.tied[1]);
    assert_string_not_equal(s.report.tied[0], s.report.best_text);
    assert_string_not_equal(s.report.tied[1], s.report.best_text);
    session_end(&s);
    /* With noise they are told apart only where the difference is larger than it. */
    run(&s,
        HEAD "#pragma kopt param A {0,3,80}\n"
             "// fake: noise 3\n" TAIL,
        NULL);
    bool small = false;
    for (size_t i = 0; i < s.report.n_tied; i++) {
        assert_string_not_equal(s.report.tied[i], "A=80");
        small = small || s.report.tied[i][0] == 'A';
    }
    assert_true(small); /* 0.3 % apart, at 3 % of noise and 60 rounds */
    session_end(&s);
}

static void what_was_measured_after_a_race_has_to_race_again(void **state)
{
    (void)state;
    static const char text[] = HEAD "#pragma kopt param A {0,1,2,3}\n" TAIL;
    struct session s;
    (void)remove("later.db");
    run(&s, text, "later.db");
    session_end(&s);
    assert_int_equal(races_in("later.db"), 4);
    session_init(&s, "race.cl", "later.db");
    s.o.fresh = 1;
    s.o.callbacks.progress = stop_in_race;
    session_run(&s);
    assert_true(s.report.interrupted);
    session_end(&s);
    run(&s, text, "later.db");
    assert_int_equal(session_measured(&s), 0);
    assert_false(s.report.best.from_store);
    session_end(&s);
    assert_int_equal(races_in("later.db"), 8);
    run(&s, text, "later.db");
    assert_true(s.report.best.from_store);
    session_end(&s);
    assert_int_equal(races_in("later.db"), 8);
}

/* The fake device takes 100 W, and its counter is exact. Where launching takes longer than the
 * kernel on it, it stands still in between. */
static void energy_is_power_times_time(void **state)
{
    (void)state;
    struct session s;
    (void)remove("energy.db");
    run(&s, HEAD "#pragma kopt param A {0,1,2,3}\n" TAIL, "energy.db");
    assert_true(fabs(s.report.best.energy_j / (100 * 9000e-9) - 1) < 1e-6);
    assert_true(fabs(s.report.first.energy_j / (100 * 9030e-9) - 1) < 1e-6);
    assert_true(s.report.best.power_w > 0 && s.report.best.power_w < 100 + 1e-4);
    session_end(&s);
    struct rows rows = rows_of("energy.db", false);
    for (size_t i = 0; i < rows.n; i++) { /* too short for the counter, unless it is repeated */
        if (!rows.row[i].race)
            assert_true(isnan(rows.row[i].energy_j));
        else
            assert_true(fabs(rows.row[i].energy_j / (rows.row[i].median_ns * 1e-7) - 1) < 1e-6);
    }
    /* 0.2 s a launch, seven of them: long enough as they are. */
    (void)remove("energy.db");
    run(&s,
        HEAD "#pragma kopt param A {3}\n"
             "// fake: when entry=k time 200000000\n" TAIL,
        "energy.db");
    rows = rows_of("energy.db", false);
    assert_int_equal(rows.n, 1);
    assert_true(fabs(rows.row[0].energy_j / (100 * 200000030e-9) - 1) < 1e-6);
    session_end(&s);
    /* A device without sensors: nothing is known, and nothing is waited for. */
    assert_int_equal(setenv("KOPT_FAKE_FAIL", "sensors", 1), 0);
    run(&s, HEAD "#pragma kopt param A {0,1,2,3}\n" TAIL, NULL);
    assert_int_equal(unsetenv("KOPT_FAKE_FAIL"), 0);
    assert_true(s.report.best.race && isnan(s.report.best.energy_j) &&
                isnan(s.report.best.power_w));
    session_end(&s);
}

static int note_throttle(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    int64_t *all = user; /* of a race, of the first measurement, of the others */
    (void)subject;
    (void)run;
    all[r->race ? 0 : r->id == 1 ? 1 : 2] = r->throttle;
    return 1;
}

static void throttles_of(const char *path, int64_t all[3])
{
    kopt_store *st = NULL;
    const kopt_result_filter f = {.outcome = -1};
    all[0] = all[1] = all[2] = -2;
    assert_int_equal(kopt_store_open(path, 0, &st, NULL), KOPT_OK);
    assert_int_equal(kopt_store_results(st, &f, note_throttle, all, NULL), KOPT_OK);
    kopt_store_close(st);
}

/* Sensors are read once a second at most, and of each racer. */
static void what_holds_the_clocks_down_is_stored(void **state)
{
    (void)state;
    struct session s;
    int64_t got[3];
    static const struct {
        const char *says;
        int64_t want;
    } cases[] = {
        {"0", 0},
        {"5", KOPT_THROTTLE_POWER_CAP}, /* 1: it was idle */
        {"96", KOPT_THROTTLE_SW_THERMAL | KOPT_THROTTLE_HW_THERMAL},
    };
    for (size_t i = 0; i < 3; i++) {
        (void)remove("throttle.db");
        assert_int_equal(setenv("KOPT_FAKE_THROTTLE", cases[i].says, 1), 0);
        run(&s, HEAD "#pragma kopt param A {0,1,2,3}\n" TAIL, "throttle.db");
        assert_int_equal(unsetenv("KOPT_FAKE_THROTTLE"), 0);
        assert_int_equal(s.report.best.throttle, cases[i].want);
        session_end(&s);
        throttles_of("throttle.db", got);
        assert_int_equal(got[0], cases[i].want);
        assert_int_equal(got[1], cases[i].want);
        assert_int_equal(got[2], -1);
    }
    (void)remove("throttle.db");
    assert_int_equal(setenv("KOPT_FAKE_FAIL", "sensors", 1), 0);
    run(&s, HEAD "#pragma kopt param A {0,1,2,3}\n" TAIL, "throttle.db");
    assert_int_equal(unsetenv("KOPT_FAKE_FAIL"), 0);
    session_end(&s);
    throttles_of("throttle.db", got);
    assert_true(got[0] == -1 && got[1] == -1);
}

static void what_ends_the_readings_of_energy_does_not_end_the_race(void **state)
{
    (void)state;
    struct session s;
    (void)remove("reading.db");
    /* One launch to warm up, 60 timed ones, then those whose energy is counted. */
    run(&s,
        HEAD "#pragma kopt param A {0,1,2,3}\n"
             "// fake: when A=1,entry=k crash_at 62\n" TAIL,
        "reading.db");
    assert_int_equal(s.warnings, 0);
    assert_true(s.report.best.race && s.report.best.median_ns == 9000);
    assert_true(isnan(s.report.best.energy_j) && isnan(s.report.best.power_w));
    assert_true(fabs(s.report.speedup - 9030.0 / 9000.0) < 1e-9);
    session_end(&s);
    struct rows rows = rows_of("reading.db", false);
    assert_int_equal(rows.n, 8);
    for (size_t i = 0; i < rows.n; i++)
        assert_int_equal(rows.row[i].outcome, KOPT_OUT_OK);
}

static void a_race_that_fails_leaves_no_rows(void **state)
{
    (void)state;
    struct session s;
    (void)remove("fails.db");
    run(&s,
        HEAD "#pragma kopt param A {0,1,2,3}\n"
             "// fake: when A=1,entry=k crash_at 40\n" TAIL,
        "fails.db");
    assert_int_equal(s.warnings, 1);
    assert_non_null(strstr(s.last_warning, "final race failed"));
    assert_false(s.report.best.race);
    session_end(&s);
    struct rows rows = rows_of("fails.db", false);
    assert_int_equal(rows.n, 4);
    for (size_t i = 0; i < rows.n; i++)
        assert_true(!rows.row[i].race && rows.row[i].outcome == KOPT_OUT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stray_write_of_the_last_one_does_not_condemn_the_racers),
        cmocka_unit_test(the_report_is_that_of_the_race),
        cmocka_unit_test(a_racer_that_is_wrong_at_the_end_is_out_and_the_next_one_wins),
        cmocka_unit_test(a_race_that_nobody_finished_is_not_kept),
        cmocka_unit_test(a_default_that_fails_is_no_reason_to_find_nothing),
        cmocka_unit_test(those_that_are_as_fast_are_named),
        cmocka_unit_test(what_was_measured_after_a_race_has_to_race_again),
        cmocka_unit_test(energy_is_power_times_time),
        cmocka_unit_test(what_holds_the_clocks_down_is_stored),
        cmocka_unit_test(what_ends_the_readings_of_energy_does_not_end_the_race),
        cmocka_unit_test(a_race_that_fails_leaves_no_rows),
    };
    return cmocka_run_group_tests_name("session/race", tests, NULL, NULL);
}
