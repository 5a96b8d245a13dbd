/* SPDX-License-Identifier: MIT */
/* kill -9 at random points: at most the measurement in flight is missing, and the run that goes
 * on ends with the same best. */
#include "session/session.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 100, CONFIGS = 40 };

static const char kernel[] = "#pragma kopt kernel k\n"
                             "#pragma kopt lang opencl\n"
                             "#pragma kopt param A {0..7}  B {0..4}\n"
                             "#pragma kopt default A=0 B=0\n"
                             "#pragma kopt block 16\n"
                             "#pragma kopt grid 4\n"
                             "#pragma kopt arg b f32[64] out\n"
                             "// fake: time 9000\n"
                             "// fake: add A -500\n"
                             "// fake: add B -50\n"
                             "// fake: when A=6,B=4 crash\n"
                             "kernel void k(global float *b) {}\n";

/* Each result that the session has seen is announced on a pipe: one byte. */
static int announce_fd = -1;

static void on_result(void *user, const kopt_result *r, const char *config)
{
    (void)user;
    (void)config;
    if (!r->from_store)
        assert_int_equal(write(announce_fd, "r", 1), 1);
}

static _Noreturn void victim(const char *store)
{
    kopt_tune_options o;
    kopt_tuner *t = NULL;
    const kopt_tune_report *report;
    kopt_tune_options_init(&o);
    o.kernel = "k.cl";
    o.store = store;
    o.device = "fake:0";
    o.compilers = 2;
    o.callbacks.result = on_result;
    if (kopt_tuner_new(&o, &t, NULL) == KOPT_OK && kopt_tuner_run(t, &report, NULL) == KOPT_OK)
        _exit(0);
    _exit(1);
}

static int count_completed(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)subject;
    (void)run;
    *(size_t *)user += r->outcome != KOPT_OUT_INTERRUPTED && !r->race;
    return 1;
}

static size_t completed(const char *store)
{
    kopt_store *s = NULL;
    kopt_error err;
    size_t n = 0;
    kopt_result_filter f = {.outcome = -1, .newest = 1};
    if (kopt_store_open(store, 0, &s, &err) != KOPT_OK)
        return 0;
    if (kopt_store_results(s, &f, count_completed, &n, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    kopt_store_close(s);
    return n;
}

static void sleep_us(unsigned us)
{
    struct timespec t = {.tv_nsec = (long)us * 1000};
    (void)nanosleep(&t, NULL);
}

/* Start a session, kill it after `us` microseconds of measuring; returns the results announced.
 */
static size_t kill_one(const char *store, unsigned us)
{
    int fds[2];
    char byte;
    size_t n = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        announce_fd = fds[1];
        victim(store);
    }
    (void)close(fds[1]);
    if (read(fds[0], &byte, 1) == 1) {
        n++;
        sleep_us(us);
    }
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    while (read(fds[0], &byte, 1) == 1)
        n++;
    (void)close(fds[0]);
    return n;
}

/* --- before the launch
 * ------------------------------------------------------------------------- */

static const char hanging[] = "#pragma kopt kernel k\n"
                              "#pragma kopt lang opencl\n"
                              "#pragma kopt param A {7}\n"
                              "#pragma kopt block 16\n"
                              "#pragma kopt grid 4\n"
                              "#pragma kopt arg b f32[64] out\n"
                              "// fake: hang\n"
                              "kernel void k(global float *b) {}\n";

struct begun {
    size_t n;
    size_t interrupted;
    char config[64];
};

static int note_begun(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct begun *b = user;
    (void)subject;
    (void)run;
    b->n++;
    b->interrupted += r->outcome == KOPT_OUT_INTERRUPTED;
    (void)snprintf(b->config, sizeof(b->config), "%s", r->config);
    return 1;
}

static struct begun begun_in(const char *store)
{
    struct begun b = {0};
    kopt_store *s = NULL;
    kopt_error err;
    kopt_result_filter f = {.outcome = -1};
    if (kopt_store_open(store, 0, &s, &err) != KOPT_OK)
        return b;
    if (kopt_store_results(s, &f, note_begun, &b, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    kopt_store_close(s);
    return b;
}

static void a_configuration_is_written_down_before_it_is_launched(void **state)
{
    (void)state;
    struct begun b = {0};
    (void)write_kernel("k.cl", hanging);
    (void)remove("begun.db");
    pid_t pid = fork();
    if (pid == 0)
        victim("begun.db"); /* its launch never returns */
    for (int i = 0; i < 1000 && b.n == 0; i++) {
        sleep_us(10000);
        b = begun_in("begun.db");
    }
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    b = begun_in("begun.db");
    assert_int_equal(b.n, 1);
    assert_int_equal(b.interrupted, 1);
    assert_string_equal(b.config, "{\"A\":7}");
}

static void nothing_announced_is_lost_and_the_end_is_the_same(void **state)
{
    (void)state;
    struct session s;
    unsigned seed = 12345;
    size_t announced = 0;
    size_t finished = 0;
    (void)write_kernel("k.cl", kernel);
    (void)remove("kill.db");
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245u + 12345u;
        announced += kill_one("kill.db", (seed >> 16) % 3000);
        size_t stored = completed("kill.db");
        /* A result is in the store before it is announced, so none is missing, and one may be
         * there that was killed between the two. */
        if (stored < announced || stored > announced + (size_t)i + 1)
            fail_msg("round %d: %zu results stored, %zu announced", i, stored, announced);
        if (stored == CONFIGS) {
            session_init(&s, "k.cl", "kill.db");
            session_run(&s);
            assert_int_equal(s.status, KOPT_OK);
            assert_int_equal(session_measured(&s), 0);
            assert_string_equal(s.report.best_text, "A=7,B=4");
            session_end(&s);
            assert_int_equal(remove("kill.db"), 0);
            (void)remove("kill.db-wal");
            (void)remove("kill.db-shm");
            announced = 0;
            finished++;
        }
    }
    session_init(&s, "k.cl", "kill.db");
    session_run(&s);
    assert_int_equal(s.status, KOPT_OK);
    assert_int_equal(s.n_seen, CONFIGS);
    assert_string_equal(s.report.best_text, "A=7,B=4");
    session_end(&s);
    assert_true(finished > 0); /* or the runs that were killed got nowhere */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_is_written_down_before_it_is_launched),
        cmocka_unit_test(nothing_announced_is_lost_and_the_end_is_the_same),
    };
    return cmocka_run_group_tests_name("session/kill", tests, NULL, NULL);
}
