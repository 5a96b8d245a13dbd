/* SPDX-License-Identifier: MIT */
/* Options: parsing from tables, and what wrong ones are told. */
#include "cli/cmds.h"
#include "cli/mem.h"
#include "cli/tune_opts.h"
#include "support/test.h"

#include <math.h>

struct options {
    bool flag;
    bool flush;
    const char *path;
    int64_t number;
    double share;
    double wait;
    int choice;
    struct cli_budget budget;
};

static const char *const choices[] = {"one", "two", NULL};

static const struct cli_opt opts[] = {
    {.name = "flag", .letter = 'f', .kind = CLI_FLAG, .offset = offsetof(struct options, flag)},
    {.name = "flush",
     .kind = CLI_FLAG,
     .negatable = true,
     .shown_negated = true,
     .offset = offsetof(struct options, flush)},
    {.name = "path",
     .letter = 'p',
     .kind = CLI_TEXT,
     .arg = "PATH",
     .help = "where",
     .offset = offsetof(struct options, path)},
    {.name = "number",
     .letter = 'n',
     .kind = CLI_INT,
     .arg = "N",
     .min = -5,
     .max = 1000,
     .offset = offsetof(struct options, number)},
    {.name = "share",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 0.001,
     .max = 1,
     .offset = offsetof(struct options, share)},
    {.name = "wait",
     .kind = CLI_SECONDS,
     .arg = "T",
     .min = 0.1,
     .max = 7200,
     .offset = offsetof(struct options, wait)},
    {.name = "choice",
     .kind = CLI_CHOICE,
     .arg = "X",
     .choices = choices,
     .offset = offsetof(struct options, choice)},
    {.name = "budget",
     .kind = CLI_CUSTOM,
     .arg = "B",
     .parse = cli_parse_budget,
     .offset = offsetof(struct options, budget)},
};

static const struct options defaults = {.flush = true, .number = 7};
static const struct cli_command command = {.name = "test",
                                           .opts = opts,
                                           .n_opts = CLI_LEN(opts),
                                           .defaults = &defaults,
                                           .options_bytes = sizeof(struct options)};

enum { WORDS_MAX = 16 };

struct parsed {
    struct options o;
    struct cli_common common;
    const char *words[WORDS_MAX];
    struct cli_args args;
    kopt_error err;
    char line[256];
};

/* Cut `line` at its spaces and parse it. */
static kopt_status parse(struct parsed *p, const char *line)
{
    char *argv[WORDS_MAX];
    int argc = 0;
    memset(p, 0, sizeof(*p));
    p->o = defaults;
    (void)snprintf(p->line, sizeof(p->line), "%s", line);
    char *rest = NULL;
    for (char *w = strtok_r(p->line, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        argv[argc++] = w;
    struct cli_parsed out = {&p->common, &p->o, {p->words, 0}};
    kopt_status st = cli_opt_parse(&command, argc, argv, &out, &p->err);
    p->args = out.args;
    return st;
}

static void assert_error(const char *line, const char *message, const char *hint)
{
    struct parsed p;
    assert_int_equal(parse(&p, line), KOPT_EUSAGE);
    assert_string_equal(p.err.message, message);
    assert_string_equal(p.err.hint, hint);
}

static void without_options_the_defaults_stand(void **state)
{
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, "a M=1"), KOPT_OK);
    assert_true(p.o.flush);
    assert_int_equal(p.o.number, 7);
    assert_int_equal(p.args.n, 2);
    assert_string_equal(p.args.words[1], "M=1");
}

static void every_spelling_of_an_option_is_read(void **state)
{
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, "--flag x --path=/a --number 12 --no-flush y"), KOPT_OK);
    assert_true(p.o.flag);
    assert_false(p.o.flush);
    assert_string_equal(p.o.path, "/a");
    assert_int_equal(p.o.number, 12);
    assert_int_equal(p.args.n, 2);
    assert_int_equal(parse(&p, "-fp /b -n3"), KOPT_OK);
    assert_true(p.o.flag);
    assert_string_equal(p.o.path, "/b");
    assert_int_equal(p.o.number, 3);
    assert_int_equal(parse(&p, "-n -5 --no-flush --flush"), KOPT_OK);
    assert_int_equal(p.o.number, -5);
    assert_true(p.o.flush);
    assert_int_equal(parse(&p, "-qvv --color never"), KOPT_OK);
    assert_true(p.common.quiet);
    assert_int_equal(p.common.verbose, 2);
    assert_int_equal(p.common.colour, 2);
}

static void two_dashes_end_the_options(void **state)
{
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, "--flag -- --path -"), KOPT_OK);
    assert_int_equal(p.args.n, 2);
    assert_string_equal(p.args.words[0], "--path");
    assert_string_equal(p.args.words[1], "-");
    assert_null(p.o.path);
}

static void numbers_have_units_and_ranges(void **state)
{
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, "--share 5% --wait 2m"), KOPT_OK);
    assert_true(p.o.share == 0.05);
    assert_true(p.o.wait == 120);
    assert_int_equal(parse(&p, "--wait=200ms"), KOPT_OK);
    assert_true(fabs(p.o.wait - 0.2) < 1e-12); /* 200 * 1e-3 in binary */
    assert_error("--number 1001", "--number: 1001 is out of range, it must be -5 to 1000", "");
    assert_error("--number 1.5", "--number: '1.5' is not a whole number", "");
    assert_error("--number 99999999999999999999",
                 "--number: '99999999999999999999' is not a whole number", "");
    assert_error("--share nan", "--share: 'nan' is not a number", "");
    assert_error("--share 0x1", "--share: '0x1' is not a number", "");
    assert_error("--wait 3x", "--wait: '3x' is not a time such as 30s, 200ms, 2m or 1h", "");
    assert_error("--wait 3h", "--wait: 3h is out of range, it must be 0.1 to 7200 seconds", "");
}

static void wrong_options_are_told_what_is_near(void **state)
{
    (void)state;
    assert_error("--flga", "unknown option --flga", "did you mean --flag?");
    assert_error("--pth=3", "unknown option --pth", "did you mean --path?");
    assert_error("--zzzzz", "unknown option --zzzzz", "");
    assert_error("-x", "unknown option -x", "");
    assert_error("--no-path", "unknown option --no-path", "");
    assert_error("--flag=1", "--flag takes no value", "");
    assert_error("--path", "--path needs a value", "--path PATH: where");
    assert_error("--path --flag", "--path needs a value", "--path PATH: where");
    assert_error("--path=", "--path: the value is empty", "");
    assert_error("--choice three", "--choice: 'three' is none of its values",
                 "one of: one, two");
}

static void a_choice_is_its_index(void **state)
{
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, "--choice two"), KOPT_OK);
    assert_int_equal(p.o.choice, 1);
}

static void a_budget_is_a_count_a_time_or_a_share(void **state)
{
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, "--budget 200"), KOPT_OK);
    assert_int_equal(p.o.budget.evaluations, 200);
    assert_true(p.o.budget.seconds == 0 && p.o.budget.fraction == 0);
    assert_int_equal(parse(&p, "--budget 90s,25% --budget 10"), KOPT_OK);
    assert_true(p.o.budget.seconds == 90 && p.o.budget.fraction == 0.25);
    assert_int_equal(p.o.budget.evaluations, 10);
    assert_int_equal(parse(&p, "--budget 0.5%"), KOPT_OK);
    assert_true(p.o.budget.fraction == 0.005);
    assert_error("--budget 0", "--budget: 0 is out of range, at least 1 evaluation is needed",
                 "");
    assert_error("--budget 150%",
                 "--budget: 150% is out of range, a share is more than 0% and at most 100%",
                 "");
    assert_error("--budget 0s",
                 "--budget: 0s is out of range, a time is more than 0 and at most a year", "");
    assert_error("--budget 0.005",
                 "--budget: 0.005 is no whole number of evaluations; a share is written 25%",
                 "");
    assert_error("--budget soon",
                 "--budget: 'soon' is neither a number of evaluations (200), nor a time (60s, "
                 "10m, 2h), nor a share of the space (25%)",
                 "");
    assert_error("--budget 5,",
                 "--budget: '' is neither a number of evaluations (200), nor a time (60s, "
                 "10m, 2h), nor a share of the space (25%)",
                 "");
}

static void samples_and_sizes_are_checked(void **state)
{
    struct cli_samples s = {0};
    int64_t bytes = 0;
    char why[200];
    (void)state;
    assert_true(cli_parse_samples("7..50", &s, why, sizeof(why)));
    assert_int_equal(s.min, 7);
    assert_int_equal(s.max, 50);
    assert_true(cli_parse_samples("20", &s, why, sizeof(why)));
    assert_int_equal(s.min, 20);
    assert_int_equal(s.max, 20);
    assert_false(cli_parse_samples("50..7", &s, why, sizeof(why)));
    assert_string_equal(why, "50..7: the smaller number comes first");
    assert_false(cli_parse_samples("0..7", &s, why, sizeof(why)));
    assert_false(cli_parse_samples("7..", &s, why, sizeof(why)));
    assert_false(cli_parse_samples("", &s, why, sizeof(why)));
    assert_true(cli_parse_size("64MiB", &bytes, why, sizeof(why)));
    assert_int_equal(bytes, 64 << 20);
    assert_true(cli_parse_size("1.5K", &bytes, why, sizeof(why)));
    assert_int_equal(bytes, 1536);
    assert_false(cli_parse_size("12 apples", &bytes, why, sizeof(why)));
    assert_false(cli_parse_size("-1", &bytes, why, sizeof(why)));
    assert_false(cli_parse_size("0", &bytes, why, sizeof(why)));
}

static void common_options_end_at_the_first_word(void **state)
{
    struct cli_common common = {0};
    kopt_error err;
    int used = 0;
    char words[4][16] = {"-v", "--color=always", "tune", "--help"};
    char *argv[] = {words[0], words[1], words[2], words[3]};
    (void)state;
    assert_int_equal(cli_opt_common(4, argv, &common, &used, &err), KOPT_OK);
    assert_int_equal(used, 2);
    assert_int_equal(common.verbose, 1);
    assert_int_equal(common.colour, 1);
    assert_false(common.help);
}

static void swaps_and_slips_are_near(void **state)
{
    (void)state;
    assert_int_equal(cli_distance("tune", "tnue", 3), 1);
    assert_int_equal(cli_distance("tune", "tune", 3), 0);
    assert_int_equal(cli_distance("tune", "devices", 3), 4);
    assert_int_equal(cli_distance("", "abc", 3), 3);
}

/* Every command of the program: a table that a typing error broke shows here. */
static void check_command(const struct cli_command *cmd)
{
    assert_non_null(cmd->name);
    assert_non_null(cmd->summary);
    assert_true(cmd->run || cmd->subs);
    for (size_t i = 0; i < cmd->n_opts; i++) {
        const struct cli_opt *o = &cmd->opts[i];
        assert_non_null(o->name);
        assert_non_null(o->help);
        assert_true(o->offset < cmd->options_bytes);
        assert_true((o->arg != NULL) == (o->kind != CLI_FLAG && o->kind != CLI_COUNT));
        assert_true((o->parse != NULL) == (o->kind == CLI_CUSTOM));
        assert_true((o->choices != NULL) == (o->kind == CLI_CHOICE));
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(o->name, cmd->opts[k].name);
            assert_true(!o->letter || o->letter != cmd->opts[k].letter);
        }
        for (size_t k = 0; k < cli_n_common_opts; k++) {
            assert_string_not_equal(o->name, cli_common_opts[k].name);
            assert_true(!o->letter || o->letter != cli_common_opts[k].letter);
        }
    }
}

static void the_tables_of_the_program_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; cli_root.subs[i]; i++) {
        check_command(cli_root.subs[i]);
        for (size_t k = 0; cli_root.subs[i]->subs && cli_root.subs[i]->subs[k]; k++)
            check_command(cli_root.subs[i]->subs[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_the_defaults_stand),
        cmocka_unit_test(every_spelling_of_an_option_is_read),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(numbers_have_units_and_ranges),
        cmocka_unit_test(wrong_options_are_told_what_is_near),
        cmocka_unit_test(a_choice_is_its_index),
        cmocka_unit_test(a_budget_is_a_count_a_time_or_a_share),
        cmocka_unit_test(samples_and_sizes_are_checked),
        cmocka_unit_test(common_options_end_at_the_first_word),
        cmocka_unit_test(swaps_and_slips_are_near),
        cmocka_unit_test(the_tables_of_the_program_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
