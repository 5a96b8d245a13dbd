/* SPDX-License-Identifier: MIT */
/* The lab over the fake device, and over a runner that misbehaves (lab_support.h). */
#include "lab_support.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "support/folder.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the life of a job
 * ------------------------------------------------------------------------------ */

static void each_outcome_and_a_good_one_after_it(void **state)
{
    (void)state;
    size_t files = open_files();
    struct kp_lab_options o = options();
    o.launch_timeout_ns = SECOND;
    struct kp_lab *lab = open_lab(&o);
    char scratch[4096];
    (void)snprintf(scratch, sizeof(scratch), "%s", kp_lab_scratch(lab));
    give_data(lab);
    struct kp_lab_event ev = compile_and_measure(lab, 1, "good", 2);
    expect(&ev, KOPT_OUT_OK, "");
    assert_true(ev.result.median_ns == 7000);
    assert_in_range(ev.result.n_times, 3, 5);
    assert_true(ev.result.times_ns[0] == 7000);
    assert_true(ev.result.max_error == 0);
    ev = compile_and_measure(lab, 2, "compile_error", 0);
    expect(&ev, KOPT_OUT_COMPILE_ERROR, "no such type");
    assert_true(ev.result.compile_ns > 0 && isnan(ev.result.device_ns));
    ev = compile_and_measure(lab, 3, "crash", 0);
    expect(&ev, KOPT_OUT_CRASH, "ended the process");
    assert_true(ev.result.compile_ns > 0 && ev.result.device_ns > 0);
    ev = compile_and_measure(lab, 4, "good", 0); /* the new runner has its data */
    expect(&ev, KOPT_OUT_OK, "");
    ev = compile_and_measure(lab, 5, "hang", 0);
    expect(&ev, KOPT_OUT_HANG, "1 s");
    assert_true(ev.result.device_ns >=
                1e9); /* at least the limit: a longer one may try again */
    assert_true(isnan(ev.result.median_ns) && isnan(ev.result.max_error));
    ev = compile_and_measure(lab, 6, "wrong", 0);
    expect(&ev, KOPT_OUT_WRONG, "argument 2: "); /* it was given no name */
    assert_true(isnan(ev.result.median_ns) && ev.result.device_ns > 0);
    ev = compile_and_measure(lab, 7, "launch_error", 0);
    expect(&ev, KOPT_OUT_LAUNCH_ERROR, "");
    ev = compile_and_measure(lab, 8, "good", 0);
    expect(&ev, KOPT_OUT_OK, "");
    ev = compile_and_measure(lab, 9, "oob", 0); /* it writes over the reference */
    expect(&ev, KOPT_OUT_WRONG, "");
    ev = compile_and_measure(lab, 10, "good", 0); /* which costs the next a second look only */
    expect(&ev, KOPT_OUT_OK, "");
    assert_true(ev.result.max_error == 0);
    assert_int_equal(kp_lab_n_compiling(lab), 0);
    assert_true(kp_file_exists(scratch));
    kp_lab_close(lab);
    assert_false(kp_file_exists(scratch));
    nothing_is_left(files);
}

static void no_memory_for_an_image_is_no_fault_of_a_candidate(void **state)
{
    (void)state;
    size_t refused = 0;
    for (long at = 1; at <= 16; at++) {
        struct kp_lab_options o = options();
        struct kp_lab *lab = open_lab(&o);
        struct kp_lab_event ev;
        give_data(lab);
        compile(lab, 1, "good", 0);
        kp_alloc_fail_at(at);
        kopt_status st = kp_lab_next(lab, 30000, -1, &ev, NULL);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_ENOMEM || (st == KOPT_OK && ev.kind == KP_LAB_COMPILED));
        refused += st == KOPT_ENOMEM;
        kp_lab_close(lab);
    }
    assert_in_range(refused, 1, 15);
}

static void no_memory_in_a_worker_is_no_fault_of_a_candidate(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        const char *what;
    } cases[] = {{"compile_full", "compiles"}, {"host_full", "runs"}};
    size_t files = open_files();
    for (size_t i = 0; i < 2; i++) {
        struct kp_lab_options o = options();
        struct kp_lab *lab = open_lab(&o);
        struct kp_lab_event ev;
        kopt_error err;
        kopt_status st;
        int tries = 0;
        int64_t begun = kp_clock_ns();
        give_data(lab);
        compile(lab, 1, cases[i].mode, 0);
        do {
            st = kp_lab_next(lab, 10, -1, &ev, &err);
            assert_int_not_equal(ev.kind, KP_LAB_RESULT);
            if (st == KOPT_OK && kp_lab_is_compiled(lab, 1) && kp_lab_lane_free(lab)) {
                assert_int_equal(kp_lab_measure(lab, 1, &plan, NULL), KOPT_OK);
                tries++;
            }
        } while (st == KOPT_OK && kp_clock_ns() - begun < 30 * SECOND);
        assert_int_equal(st, KOPT_ENOMEM);
        assert_non_null(strstr(err.message, cases[i].what));
        assert_int_equal(tries, i ? 2 : 0);
        kp_lab_close(lab);
    }
    (void)rmdir("no_memory.once");
    with_part("no_memory_once");
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_event ev = {0};
    compile(lab, 1, "good", 0);
    for (int i = 0; i < 2; i++) {
        ev = next(lab);
        assert_int_equal(ev.kind, KP_LAB_COMPILED);
        measure(lab, 1);
    }
    ev = next(lab);
    expect(&ev, KOPT_OUT_OK, "");
    kp_lab_close(lab);
    with_part(NULL);
    nothing_is_left(files);
}

static void what_was_not_compared_has_no_error(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_buffer b[] = {{.buffer = 0, .bytes = 256}, {.buffer = 1, .bytes = 256}};
    assert_int_equal(kp_lab_set_buffers(lab, b, 2, NULL), KOPT_OK);
    struct kp_lab_event ev = compile_and_measure(lab, 1, "wrong", 0);
    expect(&ev, KOPT_OUT_OK, "");
    assert_true(isnan(ev.result.max_error));
    kp_lab_close(lab);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    struct kp_lab *lab = NULL;
    o.compilers = 0;
    assert_int_equal(kp_lab_open(&o, &lab, NULL), KOPT_EUSAGE);
    o = options();
    o.n_devices = KP_LAB_LANES_MAX + 1;
    assert_int_equal(kp_lab_open(&o, &lab, NULL), KOPT_EUSAGE);
    o = options();
    o.devices[0] = 7;
    assert_int_not_equal(kp_lab_open(&o, &lab, NULL), KOPT_OK);
    assert_null(lab);
    o = options();
    lab = open_lab(&o);
    give_data(lab);
    assert_int_equal(kp_lab_measure(lab, 99, &plan, NULL), KOPT_ENOTFOUND);
    unsigned rounds = 3;
    double times[3];
    struct kp_lab_racer racers[1];
    const int64_t ids[] = {99};
    assert_int_equal(kp_lab_race(lab, ids, 1, &plan, &rounds, times, racers, NULL),
                     KOPT_ENOTFOUND);
    kp_lab_forget(lab, 99);
    kp_lab_close(lab);
}

static void a_forgotten_job_frees_its_compiler(void **state)
{
    (void)state;
    struct kp_lab_options o = options(); /* one compiler, 20 s for a job */
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_event ev;
    give_data(lab);
    compile(lab, 1, "compile_hang", 0);
    compile(lab, 2, "compile_hang", 0); /* still in the queue when it is forgotten */
    compile(lab, 3, "good", 0);
    assert_int_equal(kp_lab_next(lab, 500, -1, &ev, NULL), KOPT_OK);
    assert_int_equal(ev.kind, KP_LAB_NOTHING);
    int64_t begun = kp_clock_ns();
    kp_lab_forget(lab, 2);
    kp_lab_forget(lab, 1);
    assert_int_equal(kp_lab_n_compiling(lab), 1);
    ev = next(lab);
    assert_int_equal(ev.kind, KP_LAB_COMPILED);
    assert_int_equal(ev.id, 3);
    assert_true(kp_clock_ns() - begun < 10 * SECOND);
    kp_lab_forget(lab, 3);
    assert_false(kp_lab_is_compiled(lab, 3));
    kp_lab_close(lab);
}

static void both_lanes_work_at_once(void **state)
{
    (void)state;
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "2", 1), 0);
    struct kp_lab_options o = options();
    o.n_devices = 2;
    o.devices[1] = 1;
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    assert_int_equal(kp_lab_device(lab)->index, 0);
    for (int64_t id = 1; id <= 3; id++) {
        compile(lab, id, "slow", 20000);
        assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    }
    measure(lab, 1);
    assert_true(kp_lab_lane_free(lab));
    measure(lab, 2);
    assert_false(kp_lab_lane_free(lab));
    assert_int_equal(kp_lab_measure(lab, 3, &plan, NULL), KOPT_EBUSY);
    bool seen[4] = {0};
    for (int i = 0; i < 2; i++) {
        struct kp_lab_event ev = next(lab);
        expect(&ev, KOPT_OUT_OK, "");
        seen[ev.id] = true;
    }
    assert_true(seen[1] && seen[2] && kp_lab_is_compiled(lab, 3));
    kp_lab_close(lab);
    assert_int_equal(unsetenv("KOPT_FAKE_DEVICES"), 0);
}

static void short_limits_make_no_hangs_of_batches(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    o.launch_timeout_ns = SECOND;
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    /* 150 ms a launch: far under the limit, but eight of them together are not. */
    compile(lab, 1, "slow", 150000);
    assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    struct kp_lab_plan p = plan;
    p.min_samples = 8;
    p.max_samples = 8;
    p.budget_ns = 1e10;
    assert_int_equal(kp_lab_measure(lab, 1, &p, NULL), KOPT_OK);
    struct kp_lab_event ev = next(lab);
    expect(&ev, KOPT_OUT_OK, "");
    assert_int_equal(ev.result.n_times, 8);
    kp_lab_close(lab);
}

/* --- whole steps
 * ---------------------------------------------------------------------------------- */

static kopt_status race(struct kp_lab *lab, const char *second, unsigned *rounds, double *times,
                        struct kp_lab_racer *racers)
{
    const int64_t ids[] = {101, 102};
    compile(lab, 101, "good", 1);
    assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    compile(lab, 102, second, 2);
    assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    kopt_status st = kp_lab_race(lab, ids, 2, &plan, rounds, times, racers, NULL);
    kp_lab_forget(lab, 101);
    kp_lab_forget(lab, 102);
    return st;
}

static void a_race_gives_times_of_every_round(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    double times[20];
    struct kp_lab_racer racers[2];
    unsigned rounds = 10;
    give_data(lab);
    assert_int_equal(race(lab, "good", &rounds, times, racers), KOPT_OK);
    assert_int_equal(rounds, 10);
    for (unsigned i = 0; i < rounds; i++)
        assert_true(times[2 * i] == 6000 && times[2 * i + 1] == 7000);
    for (size_t i = 0; i < 2; i++) {
        const kopt_result *r = &racers[i].result;
        assert_int_equal(r->outcome, KOPT_OUT_OK);
        assert_true(r->race && r->max_error == 0 && r->compile_ns > 0);
        assert_true(isnan(r->median_ns) && isnan(r->device_ns) && r->registers == 32);
        /* The fake device takes 100 W; its counter is a sum of some ten thousand times. Where
         * launching takes longer than the kernel on it, it stands still in between. */
        assert_true(fabs(r->energy_j / (100 * times[i] * 1e-9) - 1) < 1e-6);
        assert_true(r->power_w > 0 && r->power_w < 100 + 1e-4);
    }
    kp_lab_close(lab);
}

static void only_what_is_wrong_at_its_last_timed_launch_is_wrong_in_a_race(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        kopt_outcome want;
    } cases[] = {{"wrong", KOPT_OUT_UNSTEADY},
                 {"last", KOPT_OUT_UNSTEADY}, /* one launch to warm up, ten that are timed */
                 {"later", KOPT_OUT_OK},
                 {"oob", KOPT_OUT_UNSTEADY}}; /* it writes over the reference of both */
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    for (size_t i = 0; i < 4; i++) {
        double times[20];
        struct kp_lab_racer racers[2];
        unsigned rounds = 10;
        assert_int_equal(race(lab, cases[i].mode, &rounds, times, racers), KOPT_OK);
        if (racers[0].result.outcome != KOPT_OUT_OK ||
            racers[1].result.outcome != cases[i].want)
            fail_msg("%s: %s, %s (%s)", cases[i].mode,
                     kopt_outcome_name(racers[0].result.outcome),
                     kopt_outcome_name(racers[1].result.outcome), racers[1].result.message);
        assert_string_equal(racers[0].result.message, "");
        assert_true((racers[1].result.message[0] != 0) == (cases[i].want != KOPT_OUT_OK));
    }
    /* Nor does one that was measured before the race and wrote over its data matter. */
    double times[20];
    struct kp_lab_racer racers[2];
    unsigned rounds = 10;
    struct kp_lab_event ev = compile_and_measure(lab, 1, "oob", 0);
    expect(&ev, KOPT_OUT_WRONG, "");
    assert_int_equal(race(lab, "good", &rounds, times, racers), KOPT_OK);
    assert_int_equal(racers[0].result.outcome, KOPT_OUT_OK);
    assert_int_equal(racers[1].result.outcome, KOPT_OUT_OK);
    kp_lab_close(lab);
}

static void a_race_that_fails_leaves_the_lab_at_work(void **state)
{
    (void)state;
    static const char *const modes[] = {"crash", "launch_error", "hang"};
    struct kp_lab_options o = options();
    o.launch_timeout_ns = SECOND / 4;
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    for (size_t i = 0; i < 3; i++) {
        double times[20];
        struct kp_lab_racer racers[2];
        unsigned rounds = 10;
        kopt_status st = race(lab, modes[i], &rounds, times, racers);
        if (st != KOPT_EFAILED)
            fail_msg("%s: %d", modes[i], st);
        struct kp_lab_event ev = compile_and_measure(lab, (int64_t)i + 1, "good", 0);
        expect(&ev, KOPT_OUT_OK, "");
        rounds = 10; /* nothing of the last race is still loaded */
        assert_int_equal(race(lab, "good", &rounds, times, racers), KOPT_OK);
    }
    kp_lab_close(lab);
}

static kopt_status reference_status;
static kopt_status reference(struct kp_lab *lab, const struct kp_lab_job *job, kopt_error *err)
{
    struct kp_lab_save save = {.buffer = 1, .file = "saved.bin"};
    reference_status = kp_lab_reference(lab, job, &save, 1, err);
    return KOPT_OK;
}

static void references_are_saved_or_say_why_not(void **state)
{
    (void)state;
    struct kp_buf b = KP_BUF_INIT(1024);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct kp_lab_options o = options();
    o.wake_fd = fds[0];
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    job_of(lab, 1, "good", 0, reference);
    assert_int_equal(reference_status, KOPT_OK);
    assert_int_equal(kp_file_read("saved.bin", &b, NULL), KOPT_OK);
    assert_int_equal(b.len, 256);
    kp_buf_deinit(&b);
    job_of(lab, 2, "compile_error", 0, reference);
    assert_int_equal(reference_status, KOPT_EINPUT);
    job_of(lab, 3, "crash", 0, reference);
    assert_int_equal(reference_status, KOPT_EFAILED);
    job_of(lab, 4, "launch_error", 0, reference);
    assert_int_equal(reference_status, KOPT_EFAILED);
    job_of(lab, 5, "good", 0, reference);
    assert_int_equal(reference_status, KOPT_OK);
    /* A byte ends one that would take 80 s. */
    assert_int_equal(write(fds[1], "s", 1), 1);
    int64_t begun = kp_clock_ns();
    job_of(lab, 6, "hang", 0, reference);
    assert_int_equal(reference_status, KOPT_EINTR);
    assert_true(kp_clock_ns() - begun < 10 * SECOND);
    kp_lab_close(lab);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* --- helper programs out of their mind
 * -------------------------------------------------------------- */

static void nonsense_from_a_runner_is_its_candidates_crash(void **state)
{
    (void)state;
    static const char *const parts[] = {"no_json", "no_frame", "another_id"};
    for (size_t i = 0; i < 3; i++) {
        with_part(parts[i]);
        struct kp_lab_options o = options();
        struct kp_lab *lab = open_lab(&o);
        for (int64_t id = 1; id <= 2; id++) {
            struct kp_lab_event ev = compile_and_measure(lab, id, "good", 0);
            expect(&ev, KOPT_OUT_CRASH, "ended the process");
        }
        kp_lab_close(lab);
    }
    with_part("no_median");
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_event ev = compile_and_measure(lab, 1, "good", 0);
    expect(&ev, KOPT_OUT_BAD_TIME, "no time");
    kp_lab_close(lab);
    with_part(NULL);
}

/* Much data takes longer to write than a launch may. */
static void writing_data_anew_is_no_hang(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    o.launch_timeout_ns = SECOND / 2;
    with_part("refreshes");
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_event ev = compile_and_measure(lab, 1, "good", 0);
    expect(&ev, KOPT_OUT_OK, "");
    kp_lab_close(lab);
    with_part(NULL);
}

static void limits_under_a_second_are_told(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    o.launch_timeout_ns = SECOND / 4;
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    struct kp_lab_event ev = compile_and_measure(lab, 1, "hang", 0);
    expect(&ev, KOPT_OUT_HANG, "within 0.25 s");
    kp_lab_close(lab);
}

static void compilers_go_on_after_a_runner_that_died_holding_them(void **state)
{
    (void)state;
    assert_int_equal(setenv("KOPT_FAKE_CPU", "1", 1), 0);
    with_part("dies_holding");
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    compile(lab, 1, "good", 0);
    assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    compile(lab, 2, "compile_slow", 0);
    measure(lab, 1);
    struct kp_lab_event ev = next(lab);
    assert_int_equal(ev.id, 1);
    expect(&ev, KOPT_OUT_CRASH, "exit status 5");
    ev = next(lab);
    assert_int_equal(ev.kind, KP_LAB_COMPILED);
    assert_int_equal(ev.id, 2);
    kp_lab_close(lab);
    with_part(NULL);
    assert_int_equal(unsetenv("KOPT_FAKE_CPU"), 0);
}

/* On a device that computes on the cores that compile nothing is compiled meanwhile. */
static void compilers_stand_still_while_a_candidate_is_timed(void **state)
{
    (void)state;
    assert_int_equal(setenv("KOPT_FAKE_CPU", "1", 1), 0);
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    give_data(lab);
    struct kp_lab_plan p = plan;
    p.min_samples = 5;
    p.budget_ns = 1e10;
    compile(lab, 1, "slow", 400000); /* 0.4 s to check it, then 2 s or more */
    assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    compile(lab, 2, "compile_slower", 0); /* 1.5 s if left alone */
    assert_int_equal(kp_lab_measure(lab, 1, &p, NULL), KOPT_OK);
    struct kp_lab_event ev = next(lab);
    assert_int_equal(ev.kind, KP_LAB_RESULT);
    assert_int_equal(ev.id, 1);
    expect(&ev, KOPT_OUT_OK, "");
    ev = next(lab);
    assert_int_equal(ev.kind, KP_LAB_COMPILED);
    assert_int_equal(ev.id, 2);
    measure(lab, 2);
    ev = next(lab);
    /* It slept through most of the pause; what is counted is its own time before and after. */
    assert_true(ev.result.compile_ns > 0 && ev.result.compile_ns < 1.5e9);
    kp_lab_close(lab);
    assert_int_equal(unsetenv("KOPT_FAKE_CPU"), 0);
}

static void a_noisy_kernel_is_launched_more_often(void **state)
{
    (void)state;
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_plan p = plan;
    uint32_t n[3];
    static const char *const modes[] = {"good", "noisy", "noisy"};
    static const double precision[] = {0.01, 0.01, 0.2};
    give_data(lab);
    p.max_samples = 50;
    p.min_samples = 7;
    for (int64_t i = 0; i < 3; i++) {
        p.precision = precision[i];
        compile(lab, i + 1, modes[i], 0);
        assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
        assert_int_equal(kp_lab_measure(lab, i + 1, &p, NULL), KOPT_OK);
        struct kp_lab_event ev = next(lab);
        expect(&ev, KOPT_OUT_OK, "");
        n[i] = ev.result.n_times;
        assert_true(ev.result.low_ns <= 5000 && ev.result.high_ns >= 5000);
        assert_true((ev.result.high_ns > ev.result.low_ns) == (i > 0));
    }
    assert_int_equal(n[0], 7);
    assert_true(n[1] > 3 * n[0]);
    assert_int_equal(n[2], 7);
    kp_lab_close(lab);
}

static void what_the_program_has_open_does_not_reach_its_workers(void **state)
{
    (void)state;
    int inherited = fcntl(1, F_DUPFD, 50); /* without close-on-exec */
    assert_true(inherited >= 50);
    with_part("counts_files");
    struct kp_lab_options o = options();
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_event ev = compile_and_measure(lab, 1, "good", 0);
    expect(&ev, KOPT_OUT_OK, "");
    assert_true(ev.result.median_ns == 1000);
    kp_lab_close(lab);
    with_part(NULL);
    (void)close(inherited);
}

static void no_compiler_at_all_ends_the_session(void **state)
{
    (void)state;
    struct kp_lab_event ev;
    kopt_error err;
    enum { LONG = 4 << 20 }; /* no socket holds so much: it is being sent when the other ends */
    char *text = kp_calloc(LONG, 1);
    assert_non_null(text);
    memset(text, ' ', LONG);
    with_part("no_compiler");
    for (int i = 0; i < 2; i++) {
        struct kp_lab_options o = options();
        o.compilers = 3;
        if (i)
            o.source = (struct kp_str){text, LONG};
        struct kp_lab *lab = open_lab(&o);
        compile(lab, 1, "good", 0);
        assert_int_equal(kp_lab_next(lab, 20000, -1, &ev, &err), KOPT_ECRASH);
        assert_non_null(strstr(err.message, "exit status 3"));
        kp_lab_close(lab);
    }
    with_part(NULL);
    kp_free(text);
}

static void a_second_device_that_stays_dead_is_not_tried_for_ever(void **state)
{
    (void)state;
    (void)rmdir("opened.1");
    with_part("second_dies");
    struct kp_lab_options o = options();
    o.n_devices = 2;
    o.devices[1] = 1;
    struct kp_lab *lab = open_lab(&o);
    for (int64_t id = 1; id <= 2; id++) {
        compile(lab, id, "good", 0);
        assert_int_equal(next(lab).kind, KP_LAB_COMPILED);
    }
    measure(lab, 1);
    measure(lab, 2);
    /* The device may have been unplugged: what ran on it is for another one to try. */
    struct kp_lab_event ev;
    bool again = false;
    for (int i = 0; i < 2; i++) {
        ev = next(lab);
        if (ev.kind == KP_LAB_RESULT)
            expect(&ev, KOPT_OUT_OK, "");
        again = again || (ev.kind == KP_LAB_COMPILED && ev.id == 2);
    }
    assert_true(again);
    measure(lab, 2);
    ev = next(lab);
    assert_int_equal(ev.id, 2);
    expect(&ev, KOPT_OUT_OK, "");
    int64_t begun = kp_clock_ns();
    for (int64_t id = 4; id <= 9; id++) {
        ev = compile_and_measure(lab, id, "good", 0);
        expect(&ev, KOPT_OUT_OK, "");
    }
    assert_true(kp_clock_ns() - begun < SECOND); /* one more try alone takes 1.5 s of waiting */
    kp_lab_close(lab);
    with_part(NULL);
}

static void what_loses_two_devices_is_to_blame(void **state)
{
    (void)state;
    (void)rmdir("opened.0");
    (void)rmdir("opened.1");
    with_part("two_die");
    struct kp_lab_options o = options();
    o.n_devices = 3;
    o.devices[1] = 1;
    o.devices[2] = 2;
    struct kp_lab *lab = open_lab(&o);
    struct kp_lab_event ev;
    compile(lab, 1, "good", 0);
    for (int i = 0; i < 2; i++) {
        ev = next(lab);
        assert_int_equal(ev.kind, KP_LAB_COMPILED);
        measure(lab, 1);
    }
    ev = next(lab);
    assert_int_equal(ev.kind, KP_LAB_RESULT);
    expect(&ev, KOPT_OUT_CRASH, "exit status 5");
    ev = compile_and_measure(lab, 2, "good", 0);
    expect(&ev, KOPT_OUT_OK, "");
    kp_lab_close(lab);
    with_part(NULL);
}

/* --- scratch folders and devices
 * ------------------------------------------------------------------- */

static void only_folders_of_the_dead_are_swept(void **state)
{
    (void)state;
    /* No process has this number: it is over the kernel's largest. */
    static const char *const names[] = {"tmp/kopt-2000000001-dead", "tmp/kopt-2000000002-live",
                                        "tmp/kopt-2000000003-bare", "tmp/kopt-own-words"};
    char lock[128];
    assert_true(make_folder("tmp"));
    assert_true(make_folder("precious"));
    assert_int_equal(kp_file_put("precious/lock", "x", 1, NULL), KOPT_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_true(make_folder(names[i]));
        (void)snprintf(lock, sizeof(lock), "%s/lock", names[i]);
        if (i != 2)
            assert_int_equal(kp_file_put(lock, "", 0, NULL), KOPT_OK);
    }
    (void)unlink("tmp/kopt-2000000004-link");
    assert_int_equal(symlink("../precious", "tmp/kopt-2000000004-link"), 0);
    int held = open("tmp/kopt-2000000002-live/lock", O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(setenv("TMPDIR", "tmp", 1), 0);
    struct kp_lab_options o = options();
    kp_lab_close(open_lab(&o));
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_false(kp_file_exists(names[0]));
    assert_true(kp_file_exists("tmp/kopt-2000000002-live/lock"));
    assert_true(kp_file_exists(names[2]));
    assert_true(kp_file_exists(names[3]));
    assert_true(kp_file_exists("precious/lock"));
    kp_dir_remove("tmp/kopt-2000000004-link"); /* a link is not followed */
    assert_true(kp_file_exists("precious/lock"));
    (void)close(held);
    kp_dir_remove("tmp");
    kp_dir_remove("precious");
}

static void count_device(void *user, const struct kp_device_info *info)
{
    assert_int_equal(info->index, *(int *)user);
    assert_non_null(strstr(info->name, "Fake"));
    ++*(int *)user;
}

static void devices_are_listed_from_a_process_of_their_own(void **state)
{
    (void)state;
    size_t files = open_files();
    kopt_error err;
    int n = 0;
    assert_int_equal(setenv("KOPT_FAKE_DEVICES", "3", 1), 0);
    assert_int_equal(kp_lab_probe(KP_BACKEND_FAKE, count_device, &n, &err), KOPT_OK);
    assert_int_equal(n, 3);
    assert_int_equal(unsetenv("KOPT_FAKE_DEVICES"), 0);
    assert_int_equal(setenv("KOPT_FAKE_FAIL", "open", 1), 0);
    assert_int_not_equal(kp_lab_probe(KP_BACKEND_FAKE, count_device, &n, &err), KOPT_OK);
    assert_int_equal(unsetenv("KOPT_FAKE_FAIL"), 0);
    assert_int_equal(setenv("KOPT_LIBEXEC", "/nonexistent", 1), 0);
    assert_int_equal(kp_lab_probe(KP_BACKEND_FAKE, count_device, &n, &err), KOPT_EENV);
    with_part(NULL);
    nothing_is_left(files);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_and_a_good_one_after_it),
        cmocka_unit_test(no_memory_for_an_image_is_no_fault_of_a_candidate),
        cmocka_unit_test(no_memory_in_a_worker_is_no_fault_of_a_candidate),
        cmocka_unit_test(what_was_not_compared_has_no_error),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(a_forgotten_job_frees_its_compiler),
        cmocka_unit_test(both_lanes_work_at_once),
        cmocka_unit_test(short_limits_make_no_hangs_of_batches),
        cmocka_unit_test(a_race_gives_times_of_every_round),
        cmocka_unit_test(only_what_is_wrong_at_its_last_timed_launch_is_wrong_in_a_race),
        cmocka_unit_test(a_race_that_fails_leaves_the_lab_at_work),
        cmocka_unit_test(references_are_saved_or_say_why_not),
        cmocka_unit_test(nonsense_from_a_runner_is_its_candidates_crash),
        cmocka_unit_test(writing_data_anew_is_no_hang),
        cmocka_unit_test(limits_under_a_second_are_told),
        cmocka_unit_test(compilers_go_on_after_a_runner_that_died_holding_them),
        cmocka_unit_test(compilers_stand_still_while_a_candidate_is_timed),
        cmocka_unit_test(a_noisy_kernel_is_launched_more_often),
        cmocka_unit_test(what_the_program_has_open_does_not_reach_its_workers),
        cmocka_unit_test(no_compiler_at_all_ends_the_session),
        cmocka_unit_test(a_second_device_that_stays_dead_is_not_tried_for_ever),
        cmocka_unit_test(what_loses_two_devices_is_to_blame),
        cmocka_unit_test(only_folders_of_the_dead_are_swept),
        cmocka_unit_test(devices_are_listed_from_a_process_of_their_own),
    };
    if (argc > 1)
        return lab_helper(argv);
    if (!lab_helper_init())
        return 1;
    return cmocka_run_group_tests_name("measure/lab", tests, NULL, NULL);
}
