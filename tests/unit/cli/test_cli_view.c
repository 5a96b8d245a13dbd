/* SPDX-License-Identifier: MIT */
/* What kopt tune shows while it works: the session's callbacks are called as the library calls
 * them, the terminal and the clock are ours. */
#include "cli/cli.h"
#include "cli/tune_view.h"
#include "support/test.h"

#include <math.h>

static struct {
    bool tty;
    int columns;
    int64_t now_ns;
} world;

static bool fake_tty(int fd)
{
    (void)fd;
    return world.tty;
}

static int fake_columns(int fd)
{
    (void)fd;
    return world.columns;
}

static const char *fake_env(const char *name)
{
    return strcmp(name, "LC_ALL") == 0 ? "C.UTF-8" : strcmp(name, "TERM") == 0 ? "xterm" : NULL;
}

static int64_t fake_now(void *user)
{
    (void)user;
    return world.now_ns;
}

static const struct cli_probe probe = {.is_tty = fake_tty,
                                       .columns = fake_columns,
                                       .foreground = fake_tty,
                                       .env = fake_env,
                                       .now_ns = fake_now};

/* A session's view that writes to memory; begun at 0 s. */
struct screen {
    struct cli c;
    struct cli_tune_view view;
    kopt_tune_callbacks call;
    char *text;
    size_t bytes;
};

static void open_screen(struct screen *s, bool tty, int columns, int verbosity)
{
    memset(s, 0, sizeof(*s));
    world.tty = tty;
    world.columns = columns;
    world.now_ns = 0;
    FILE *f = open_memstream(&s->text, &s->bytes);
    assert_non_null(f);
    cli_term_init(&s->c.err, f, 2, CLI_COLOUR_NEVER, &probe);
    s->c.verbosity = verbosity;
    cli_tune_view_init(&s->view, &s->c, false);
    s->call = cli_tune_view_callbacks(&s->view);
}

static void close_screen(struct screen *s)
{
    (void)fclose(s->c.err.file);
    free(s->text);
}

static kopt_tune_progress half_way(void)
{
    kopt_tune_progress p = {.done = 120,
                            .total = 1000,
                            .from_store = 20,
                            .elapsed_s = 24,
                            .eta_s = 176,
                            .per_minute = 300.4,
                            .best_ns = 3.1e6,
                            .first_ns = 6.2e6,
                            .best_config = "BM=64",
                            .remaining = (double)NAN,
                            .phase = "searching"};
    p.by_outcome[KOPT_OUT_OK] = 100;
    p.by_outcome[KOPT_OUT_COMPILE_ERROR] = 15;
    p.by_outcome[KOPT_OUT_HANG] = 5;
    return p;
}

/* What is drawn of `p` `seconds` after the last. */
static const char *drawn(struct screen *s, const kopt_tune_progress *p, double seconds)
{
    (void)fflush(s->c.err.file);
    size_t before = s->bytes;
    world.now_ns += (int64_t)(seconds * 1e9);
    s->call.progress(s->call.user, p);
    (void)fflush(s->c.err.file);
    return s->text ? s->text + before : "";
}

static void the_line_says_how_far_how_good_how_long_and_what_came(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, true, 200, 0);
    kopt_tune_progress p = half_way();
    assert_string_equal(drawn(&s, &p, 2),
                        "\r\033[Ksearching  120/1,000  best 3.100 ms (2.00\xc3\x97)  300/min  "
                        "2:56 left  ok 100  compile_error 15  hang 5");
    close_screen(&s);
}

static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, true, 200, 0);
    kopt_tune_progress p = half_way();
    p.total = 0; /* a budget of time alone */
    p.eta_s = p.first_ns = (double)NAN;
    p.per_minute = 0;
    memset(p.by_outcome, 0, sizeof(p.by_outcome));
    assert_string_equal(drawn(&s, &p, 2), "\r\033[Ksearching  120 done  best 3.100 ms  0:24");
    p.best_ns = (double)NAN;
    p.phase = "setting up";
    p.done = 0;
    assert_string_equal(drawn(&s, &p, 2), "\r\033[Ksetting up  0 done  0:24");
    close_screen(&s);
}

static void what_is_left_to_gain_is_said_where_it_is_known(void **state)
{
    (void)state;
    struct screen s;
    open_screen(&s, true, 200, 0);
    kopt_tune_progress p = half_way();
    p.remaining = 0.0312;
    assert_non_null(strstr(drawn(&s, &p, 2), "(2.00\xc3\x97)  3.1 % to gain  300/min"));
    close_screen(&s);
}

/* The last line that is said at the start. */
static void assert_started(const kopt_tune_start *start, const char *line)
{
    struct screen s;
    open_screen(&s, false, 0, 0);
    s.call.start(s.call.user, start);
    (void)fflush(s.c.err.file);
    size_t n = strlen(line);
    assert_true(s.bytes >= n);
    assert_string_equal(s.text + s.bytes - n, line);
    close_screen(&s);
}

static void whose_results_are_the_prior_is_said_at_the_start(void **state)
{
    (void)state;
    kopt_tune_start start = {.kernel = "gemm",
                             .problem = "{}",
                             .device = "cuda:0",
                             .device_name = "NVIDIA H200",
                             .strategy = "forest",
                             .store = "",
                             .cartesian = 900,
                             .valid = 800,
                             .compilers = 4,
                             .model = "",
                             .prior = ""};
    assert_started(&start, "kopt: 800 valid of 900 candidates, forest, 4 compile workers\n");
    start.prior = "gemm K=512 on NVIDIA A4000";
    start.prior_results = 4362;
    start.prior_first = 10;
    assert_started(&start, "kopt: prior: 4,362 results of gemm K=512 on NVIDIA A4000, the best "
                           "10 first\n");
    start.prior_results = start.prior_first = 1;
    assert_started(&start,
                   "kopt: prior: 1 result of gemm K=512 on NVIDIA A4000, the best one first\n");
    start.prior_results = start.prior_first = 0;
    assert_started(&start, "kopt: prior: no result of gemm K=512 on NVIDIA A4000 is in this "
                           "space\n");
}

static void the_least_important_goes_first_on_a_narrow_terminal(void **state)
{
    (void)state;
    static const struct {
        int columns;
        const char *text;
    } cases[] = {
        {80, "\r\033[Ksearching  120/1,000  best 3.100 ms (2.00\xc3\x97)  300/min  2:56 left  "
             "ok 100"},
        {63, "\r\033[Ksearching  120/1,000  best 3.100 ms (2.00\xc3\x97)  2:56 left"},
        {50, "\r\033[K120/1,000  best 3.100 ms (2.00\xc3\x97)  2:56 left"},
        {36, "\r\033[K120/1,000  best 3.100 ms (2.00\xc3\x97)"},
    };
    kopt_tune_progress p = half_way();
    p.by_outcome[KOPT_OUT_HANG] = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct screen s;
        open_screen(&s, true, cases[i].columns, 0);
        assert_string_equal(drawn(&s, &p, 2), cases[i].text);
        close_screen(&s);
    }
}

static void elsewhere_a_line_every_ten_seconds_and_none_with_q(void **state)
{
    (void)state;
    struct screen s;
    kopt_tune_progress p = half_way();
    open_screen(&s, false, 0, 0);
    assert_string_equal(drawn(&s, &p, 9), "");
    assert_string_equal(drawn(&s, &p, 1.5),
                        "kopt: searching  120/1,000  best 3.100 ms (2.00\xc3\x97)  300/min  "
                        "2:56 left  ok 100  compile_error 15  hang 5\n");
    assert_string_equal(drawn(&s, &p, 5), "");
    close_screen(&s);
    open_screen(&s, true, 80, -1);
    assert_string_equal(drawn(&s, &p, 60), "");
    close_screen(&s);
}

static void a_message_wipes_the_line_first(void **state)
{
    (void)state;
    struct screen s;
    kopt_tune_progress p = half_way();
    open_screen(&s, true, 60, 0);
    (void)drawn(&s, &p, 2);
    size_t before = s.bytes;
    s.call.log(s.call.user, KOPT_LOG_INFO, "not without -v");
    s.call.log(s.call.user, KOPT_LOG_WARN, "a\033[2Jb");
    (void)fflush(s.c.err.file);
    assert_string_equal(s.text + before, "\r\033[Kkopt: warning: a?[2Jb\n");
    close_screen(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_says_how_far_how_good_how_long_and_what_came),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(what_is_left_to_gain_is_said_where_it_is_known),
        cmocka_unit_test(whose_results_are_the_prior_is_said_at_the_start),
        cmocka_unit_test(the_least_important_goes_first_on_a_narrow_terminal),
        cmocka_unit_test(elsewhere_a_line_every_ten_seconds_and_none_with_q),
        cmocka_unit_test(a_message_wipes_the_line_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
