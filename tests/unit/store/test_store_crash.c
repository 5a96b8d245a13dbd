/* SPDX-License-Identifier: MIT */
/* Several processes at once, and processes that are killed. */
#include "unit/store/fixture.h"

#include "base/rng.h"
#include "os/clock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 4, RECORDS = 1000, ROUNDS = 100, MAKERS = 40 };

/* What a child says; its parent counts on exactly this having been stored. */
struct note {
    int64_t run;
    int64_t id; /* 0: the run was begun */
};

static void child_must(const struct fixture *f, kopt_status st, const char *what)
{
    if (st == KOPT_OK)
        return;
    (void)fprintf(stderr, "%s: %d: %s\n", what, (int)st, f->err.message);
    _exit(1);
}

static void say(int out, struct note note)
{
    if (write(out, &note, sizeof(note)) != sizeof(note))
        _exit(1);
}

/* Measures n configurations (-1: for ever), telling of each when it is stored. */
static void write_results(struct fixture *f, int who, long n, int out)
{
    double times[10];
    kp_store_close(f->st);
    child_must(f, kp_store_open(f->path, KP_STORE_WRITE, 20000, &f->st, &f->err), "open");
    struct kp_subject s = a_subject();
    child_must(f, kp_store_subject(f->st, &s, &f->err), "subject");
    struct kp_store_run run = a_run(s.id);
    child_must(f, kp_store_run_begin(f->st, &run, &f->err), "run");
    say(out, (struct note){.run = run.id});
    for (long i = 0; n < 0 || i < n; i++) {
        char config[64];
        int64_t id = 0;
        (void)snprintf(config, sizeof(config), "{\"I\":%ld,\"WHO\":%d}", i, who);
        kopt_result r = a_result(config, (double)(100 + i));
        for (int k = 0; k < 10; k++)
            times[k] = (double)(100 + i + k);
        r.times_ns = times;
        r.n_times = 10;
        child_must(f, kp_store_begin(f->st, run.id, s.id, config, false, &id, &f->err),
                   "begin");
        child_must(f, kp_store_finish(f->st, id, &r, &f->err), "finish");
        say(out, (struct note){.run = run.id, .id = id});
    }
    child_must(f, kp_store_run_end(f->st, run.id, "done", "{}", &f->err), "run end");
    kp_store_close(f->st);
}

static pid_t start_writer(struct fixture *f, int who, long n, int out)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        write_results(f, who, n, out);
        _exit(0);
    }
    return pid;
}

/* --- many writers --------------------------------------------------------------------------
 */

static void four_processes_write_a_thousand_records_each(void **state)
{
    struct fixture *f = *state;
    pid_t pids[WRITERS];
    int ends[2];
    int64_t told = 0;
    struct note note;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < WRITERS; i++)
        pids[i] = start_writer(f, i, RECORDS, ends[1]);
    (void)close(ends[1]);
    while (read(ends[0], &note, sizeof(note)) == sizeof(note))
        told += note.id != 0;
    (void)close(ends[0]);
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(told, WRITERS * RECORDS);

    fixture_open(f);
    ASSERT_OK(f, kp_store_check(f->st, &f->err));
    struct kp_result_filter filter = all_of(0);
    assert_int_equal(count_results(f, filter), WRITERS * RECORDS);
    filter.newest = true;
    filter.outcome = KOPT_OUT_OK;
    assert_int_equal(count_results(f, filter), WRITERS * RECORDS);
    for (int run = 1; run <= WRITERS; run++) {
        filter.run = run;
        assert_int_equal(count_results(f, filter), RECORDS);
    }
}

/* --- kill -9 -------------------------------------------------------------------------------
 */

struct verdict {
    int64_t told[1 << 16]; /* ids the child called stored */
    size_t n_told;
    size_t at;
    int64_t extra;       /* stored, and not told: the child died in between */
    int64_t interrupted; /* begun, and not stored */
};

/* Results come in order of id, as they were told. */
static bool judge_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct verdict *v = user;
    (void)subject;
    (void)run;
    if (r->outcome == KOPT_OUT_INTERRUPTED) {
        v->interrupted++;
        return true;
    }
    assert_int_equal(r->outcome, KOPT_OUT_OK);
    assert_int_equal(r->n_times, 10);
    assert_true(r->times_ns[0] == r->median_ns && r->times_ns[9] == r->median_ns + 9);
    if (v->at < v->n_told && v->told[v->at] == r->id)
        v->at++;
    else
        v->extra++;
    return true;
}

static int64_t read_notes(int in, struct verdict *v)
{
    struct note note;
    int64_t run = 0;
    while (read(in, &note, sizeof(note)) == sizeof(note)) {
        run = note.run;
        if (note.id) {
            assert_true(v->n_told < sizeof(v->told) / sizeof(v->told[0]));
            v->told[v->n_told++] = note.id;
        }
    }
    return run;
}

/* One process writes and is killed; v gets what it said. Returns its run, 0 = it did not get
 * that far. */
static int64_t write_and_die(struct fixture *f, int round, struct kp_rng *rng,
                             struct verdict *v)
{
    int ends[2];
    int status = 0;
    struct note first = {0};
    assert_int_equal(pipe(ends), 0);
    pid_t pid = start_writer(f, round, -1, ends[1]);
    (void)close(ends[1]);
    /* every fourth is killed anywhere, the others while they measure */
    if (round % 4 != 0)
        assert_int_equal(read(ends[0], &first, sizeof(first)), sizeof(first));
    kp_clock_sleep_ns((int64_t)kp_rng_below(rng, 40000000));
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status)); /* it did not fail by itself */
    v->n_told = 0;
    v->at = 0;
    v->extra = 0;
    v->interrupted = 0;
    int64_t run = read_notes(ends[0], v);
    (void)close(ends[0]);
    return run ? run : first.run;
}

static void kill_dash_9_loses_at_most_the_one_in_flight(void **state)
{
    struct fixture *f = *state;
    struct kp_rng rng;
    static struct verdict v;
    int64_t all = 0;
    int64_t begun_runs = 0;
    kp_rng_init(&rng, 42);
    fixture_open(f);
    kp_store_close(f->st);
    f->st = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t run = write_and_die(f, round, &rng, &v);
        fixture_open(f);
        if (run) {
            struct kp_result_filter filter = {.run = run, .outcome = -1};
            ASSERT_OK(f, kp_store_results(f->st, &filter, judge_result, &v, &f->err));
            assert_int_equal(v.at, v.n_told);
            assert_true(v.extra + v.interrupted <= 1);
            all += (int64_t)v.n_told;
            begun_runs++;
        }
        if (round % 20 == 19)
            ASSERT_OK(f, kp_store_check(f->st, &f->err));
        kp_store_close(f->st);
        f->st = NULL;
    }
    print_message("%d processes killed, %lld results kept\n", ROUNDS, (long long)all);
    assert_true(begun_runs > ROUNDS / 2 && all > ROUNDS); /* else nothing was tested */
}

/* --- the beginning -------------------------------------------------------------------------
 */

static void a_store_whose_making_was_killed_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct kp_rng rng;
    kp_rng_init(&rng, 43);
    for (int round = 0; round < MAKERS; round++) {
        (void)snprintf(f->path, sizeof(f->path), "%s/%d.db", f->dir, round);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            child_must(f, kp_store_open(f->path, KP_STORE_WRITE, 20000, &f->st, &f->err),
                       "open");
            for (;;)
                (void)pause();
        }
        kp_clock_sleep_ns((int64_t)kp_rng_below(&rng, 8000000));
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        fixture_open(f);
        make_subject(f, a_subject());
        ASSERT_OK(f, kp_store_check(f->st, &f->err));
        kp_store_close(f->st);
        f->st = NULL;
    }
}

static void processes_that_make_the_same_store_agree(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 5; round++) {
        pid_t pids[WRITERS];
        (void)snprintf(f->path, sizeof(f->path), "%s/%d.db", f->dir, round);
        for (int i = 0; i < WRITERS; i++) {
            pids[i] = fork();
            assert_true(pids[i] >= 0);
            if (pids[i] == 0) {
                struct kp_subject s = a_subject();
                child_must(f, kp_store_open(f->path, KP_STORE_WRITE, 20000, &f->st, &f->err),
                           "open");
                child_must(f, kp_store_subject(f->st, &s, &f->err), "subject");
                kp_store_close(f->st);
                _exit(s.id == 1 ? 0 : 2);
            }
        }
        for (int i = 0; i < WRITERS; i++) {
            int status = 0;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
        }
    }
}

/* --- whose process is gone -----------------------------------------------------------------
 */

struct states {
    char state[8][16]; /* by run */
    char summary[8][96];
};

static bool note_state(void *user, const struct kp_store_run *r)
{
    struct states *s = user;
    assert_in_range(r->id, 1, 7);
    (void)snprintf(s->state[r->id], sizeof(s->state[0]), "%s", r->state);
    (void)snprintf(s->summary[r->id], sizeof(s->summary[0]), "%s", r->summary);
    return true;
}

static void begin_a_run(struct fixture *f, const char *host, const char *summary)
{
    struct kp_subject s = a_subject();
    child_must(f, kp_store_open(f->path, KP_STORE_WRITE, 20000, &f->st, &f->err), "open");
    child_must(f, kp_store_subject(f->st, &s, &f->err), "subject");
    struct kp_store_run run = a_run(s.id);
    run.host = host;
    run.summary = summary;
    child_must(f, kp_store_run_begin(f->st, &run, &f->err), "run");
    kp_store_close(f->st);
    f->st = NULL;
}

static void a_run_whose_process_is_gone_was_killed(void **state)
{
    struct fixture *f = *state;
    struct states s = {0};
    char host[256] = "";
    char other[96];
    siginfo_t info;
    (void)gethostname(host, sizeof(host) - 1);
    kp_store_close(f->st);
    f->st = NULL;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        begin_a_run(f, host, "");
        begin_a_run(f, "elsewhere", "");
        _exit(0);
    }
    /* It has ended, and its number is still its own. */
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(info.si_status, 0);
    begin_a_run(f, host, "");                       /* 3 */
    begin_a_run(f, host, "{\"pid\":1,\"more\":2}"); /* 4: not what a run notes */
    fixture_open(f);
    ASSERT_OK(f, kp_store_runs(f->st, 0, note_state, &s, &f->err));
    assert_string_equal(s.state[1], "killed");
    assert_string_equal(s.state[2], "running");
    assert_string_equal(s.summary[2], "");
    assert_string_equal(s.state[3], "running");
    assert_string_equal(s.state[4], "running");

    /* Another process that has got the number of one that is gone. */
    unsigned long long started = 0;
    assert_int_equal(sscanf(strstr(s.summary[3], "started\":"), "started\":%llu", &started), 1);
    (void)snprintf(other, sizeof(other), "{\"pid\":%ld,\"started\":%llu}", (long)getpid(),
                   started + 1);
    kp_store_close(f->st);
    begin_a_run(f, host, other); /* 5 */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    fixture_open(f);
    ASSERT_OK(f, kp_store_run_end(f->st, 3, "done", "{}", &f->err));
    ASSERT_OK(f, kp_store_runs(f->st, 0, note_state, &s, &f->err));
    assert_string_equal(s.state[1], "killed");
    assert_string_equal(s.state[3], "done");
    assert_string_equal(s.summary[3], "{}");
    assert_string_equal(s.state[5], "killed");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_folder, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(four_processes_write_a_thousand_records_each),
        CASE(kill_dash_9_loses_at_most_the_one_in_flight),
        CASE(a_store_whose_making_was_killed_is_made_again),
        CASE(processes_that_make_the_same_store_agree),
        CASE(a_run_whose_process_is_gone_was_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
