/* SPDX-License-Identifier: MIT */
/* The terminal: colour, width, text in columns, the progress line, tables, error messages. The
 * terminal, the environment and the clock are ours. */
#include "cli/cli.h"
#include "cli/mem.h"
#include "cli/table.h"
#include "support/test.h"

static struct {
    bool tty;
    bool foreground;
    int columns;
    int64_t now_ns;
    const char *names[4];
    const char *values[4];
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

static bool fake_foreground(int fd)
{
    (void)fd;
    return world.foreground;
}

static const char *fake_env(const char *name)
{
    for (size_t i = 0; i < 4; i++)
        if (world.names[i] && strcmp(world.names[i], name) == 0)
            return world.values[i];
    return NULL;
}

static int64_t fake_now(void *user)
{
    (void)user;
    return world.now_ns;
}

static const struct cli_probe probe = {.is_tty = fake_tty,
                                       .columns = fake_columns,
                                       .foreground = fake_foreground,
                                       .env = fake_env,
                                       .now_ns = fake_now};

static void set(size_t i, const char *name, const char *value)
{
    world.names[i] = name;
    world.values[i] = value;
}

static void set_world(bool tty, int columns)
{
    memset(&world, 0, sizeof(world));
    world.tty = world.foreground = tty;
    world.columns = columns;
    set(0, "TERM", "xterm");
    set(1, "LC_ALL", "C.UTF-8");
}

static struct cli_term term_of(FILE *f, enum cli_colour when)
{
    struct cli_term t;
    cli_term_init(&t, f, 2, when, &probe);
    return t;
}

/* --- colour and width --------------------------------------------------------------------- */

static void colour_needs_a_terminal_that_wants_it(void **state)
{
    (void)state;
    set_world(true, 80);
    assert_true(term_of(stderr, CLI_COLOUR_AUTO).colour);
    assert_false(term_of(stderr, CLI_COLOUR_NEVER).colour);
    set(2, "NO_COLOR", "1");
    assert_false(term_of(stderr, CLI_COLOUR_AUTO).colour);
    assert_true(term_of(stderr, CLI_COLOUR_ALWAYS).colour);
    set(2, "NO_COLOR", ""); /* set to nothing means not set: no-color.org */
    assert_true(term_of(stderr, CLI_COLOUR_AUTO).colour);
    set(0, "TERM", "dumb");
    assert_false(term_of(stderr, CLI_COLOUR_AUTO).colour);
    set_world(false, 80);
    assert_false(term_of(stderr, CLI_COLOUR_AUTO).colour);
    assert_true(term_of(stderr, CLI_COLOUR_ALWAYS).colour);
}

static void width_is_the_terminals_unless_columns_says_otherwise(void **state)
{
    (void)state;
    set_world(true, 132);
    assert_int_equal(term_of(stderr, CLI_COLOUR_AUTO).width, 132);
    set(2, "COLUMNS", "60");
    assert_int_equal(term_of(stderr, CLI_COLOUR_AUTO).width, 60);
    set(2, "COLUMNS", "lots");
    assert_int_equal(term_of(stderr, CLI_COLOUR_AUTO).width, 132);
    set_world(false, 132);
    assert_int_equal(term_of(stderr, CLI_COLOUR_AUTO).width, 0);
}

static void signs_have_a_plain_spelling(void **state)
{
    (void)state;
    set_world(false, 0);
    struct cli_term t = term_of(stderr, CLI_COLOUR_AUTO);
    assert_string_equal(cli_sign(&t, CLI_PLUS_MINUS), "\xc2\xb1");
    set(1, "LC_ALL", "C");
    t = term_of(stderr, CLI_COLOUR_AUTO);
    assert_string_equal(cli_sign(&t, CLI_PLUS_MINUS), "+-");
    set(1, "LANG", "de_DE.utf8");
    t = term_of(stderr, CLI_COLOUR_AUTO);
    assert_true(t.utf8);
    set(2, "LC_CTYPE", "C"); /* goes before LANG */
    t = term_of(stderr, CLI_COLOUR_AUTO);
    assert_false(t.utf8);
}

static void text_is_measured_in_columns(void **state)
{
    (void)state;
    assert_int_equal(cli_columns("kopt"), 4);
    assert_int_equal(cli_columns("\xc2\xb5s"), 2);
    assert_int_equal(cli_columns("\xe6\xbc\xa2\xe5\xad\x97"), 4); /* two wide ones */
    assert_int_equal(cli_columns("e\xcc\x81"), 1);                /* a combining accent */
    assert_int_equal(cli_columns("a\xff\xfe"), 3);                /* not UTF-8 */
    assert_int_equal(cli_columns("\xe6\xbc"), 2);                 /* cut in the middle */
    assert_int_equal(cli_fit("\xe6\xbc\xa2\xe5\xad\x97", 3), 3);  /* one of the two */
    assert_int_equal(cli_fit("abc", 10), 3);
    assert_int_equal(cli_fit("e\xcc\x81x", 1), 3);
}

static void only_the_shortest_form_of_a_character_is_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        uint32_t code;
    } cases[] = {
        {"A", 1, 'A'},
        {"\xc2\xb5", 2, 0xb5},
        {"\xe2\x82\xac", 3, 0x20ac},
        {"\xf0\x9f\x98\x80", 4, 0x1f600},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
        {"\xc0\x80", 0, 0},         /* two bytes for NUL */
        {"\xe0\x9f\xbf", 0, 0},     /* three where two do */
        {"\xf0\x8f\xbf\xbf", 0, 0}, /* four where three do */
        {"\xed\xa0\x80", 0, 0},     /* half of a surrogate pair */
        {"\xf4\x90\x80\x80", 0, 0}, /* behind the last one */
        {"\xf9\x80\x80\x80", 0, 0}, /* the start of five bytes */
        {"\xe2\x82", 0, 0},         /* cut */
        {"\xe2\x82x", 0, 0},
        {"\x80", 0, 0},
        {"\xfe\x80\x80\x80", 0, 0},
        {"\xff", 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t code = 0;
        assert_int_equal(cli_utf8(cases[i].text, strlen(cases[i].text), &code), cases[i].bytes);
        if (cases[i].bytes)
            assert_int_equal(code, cases[i].code);
    }
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    char *a = cli_clean("a\033[31mb\tc\nd\r", false);
    char *b = cli_clean("a\033b\tc\nd", true);
    assert_string_equal(a, "a?[31mb c d ");
    assert_string_equal(b, "a?b\tc\nd");
    free(a);
    free(b);
}

/* --- progress ----------------------------------------------------------------------------- */

static const struct cli_field fields[] = {{"searching", CLI_BOLD, 6},
                                          {"12/100", CLI_PLAIN, 9},
                                          {"best 3.1 ms", CLI_PLAIN, 8},
                                          {"312/min", CLI_PLAIN, 5},
                                          {"", CLI_PLAIN, 9}};

struct page {
    char *text;
    size_t bytes;
    FILE *file;
};

static void open_page(struct page *p)
{
    memset(p, 0, sizeof(*p));
    p->file = open_memstream(&p->text, &p->bytes);
    assert_non_null(p->file);
}

static const char *written(struct page *p)
{
    (void)fflush(p->file);
    return p->text;
}

static void close_page(struct page *p)
{
    (void)fclose(p->file);
    free(p->text);
}

static void at(double seconds)
{
    world.now_ns = (int64_t)(seconds * 1e9);
}

static void the_line_comes_after_a_second_and_five_times_a_second(void **state)
{
    (void)state;
    struct page page;
    struct cli_progress p;
    set_world(true, 80);
    open_page(&page);
    struct cli_term t = term_of(page.file, CLI_COLOUR_NEVER);
    cli_progress_init(&p, &t, false);
    at(0.99);
    assert_false(cli_progress_due(&p));
    at(1.0);
    assert_true(cli_progress_due(&p));
    cli_progress_draw(&p, fields, 5);
    at(1.19);
    assert_false(cli_progress_due(&p));
    at(1.21);
    assert_true(cli_progress_due(&p));
    assert_string_equal(written(&page), "\r\033[Ksearching  12/100  best 3.1 ms  312/min");
    cli_progress_clear(&p);
    cli_progress_clear(&p);
    assert_string_equal(written(&page),
                        "\r\033[Ksearching  12/100  best 3.1 ms  312/min\r\033[K");
    close_page(&page);
}

static void a_narrow_terminal_gets_what_matters_most(void **state)
{
    (void)state;
    static const struct {
        int columns;
        const char *text;
    } cases[] = {{38, "\r\033[Ksearching  12/100  best 3.1 ms"},
                 {30, "\r\033[K12/100  best 3.1 ms"},
                 {15, "\r\033[K12/100"},
                 {4, "\r\033[K12/"}};
    for (size_t i = 0; i < 4; i++) {
        struct page page;
        struct cli_progress p;
        set_world(true, cases[i].columns);
        open_page(&page);
        struct cli_term t = term_of(page.file, CLI_COLOUR_NEVER);
        cli_progress_init(&p, &t, false);
        cli_progress_draw(&p, fields, 5);
        assert_string_equal(written(&page), cases[i].text);
        close_page(&page);
    }
}

static void elsewhere_there_is_a_line_every_ten_seconds(void **state)
{
    (void)state;
    struct page page;
    struct cli_progress p;
    set_world(false, 80);
    open_page(&page);
    struct cli_term t = term_of(page.file, CLI_COLOUR_NEVER);
    cli_progress_init(&p, &t, false);
    at(9.9);
    assert_false(cli_progress_due(&p));
    at(10);
    assert_true(cli_progress_due(&p));
    cli_progress_draw(&p, fields, 5);
    at(19.9);
    assert_false(cli_progress_due(&p));
    cli_progress_clear(&p);
    assert_string_equal(written(&page), "kopt: searching  12/100  best 3.1 ms  312/min\n");
    close_page(&page);
}

static void in_the_background_no_line_is_drawn_over_the_shell(void **state)
{
    (void)state;
    struct cli_progress p;
    set_world(true, 80);
    world.foreground = false;
    struct cli_term t = term_of(stderr, CLI_COLOUR_NEVER);
    cli_progress_init(&p, &t, false);
    at(5);
    assert_false(cli_progress_due(&p));
    world.foreground = true;
    assert_true(cli_progress_due(&p));
}

static void quiet_shows_no_progress(void **state)
{
    (void)state;
    struct page page;
    struct cli_progress p;
    set_world(true, 80);
    open_page(&page);
    struct cli_term t = term_of(page.file, CLI_COLOUR_NEVER);
    cli_progress_init(&p, &t, true);
    at(100);
    assert_false(cli_progress_due(&p));
    cli_progress_draw(&p, fields, 5);
    assert_string_equal(written(&page), "");
    close_page(&page);
}

/* --- tables ------------------------------------------------------------------------------- */

static struct cli_table *sample_table(void)
{
    static const struct cli_column columns[] = {{"ID", CLI_RIGHT, CLI_WHOLE},
                                                {"NAME", CLI_LEFT, CLI_CUT},
                                                {"TIME", CLI_RIGHT, CLI_WHOLE}};
    struct cli_table *t = cli_table_new(columns, 3);
    cli_cell(t, CLI_BOLD, "%d", 1);
    cli_cell(t, CLI_PLAIN, "%s", "matrix multiplication");
    cli_cell(t, CLI_PLAIN, "%s", "3.25");
    cli_table_note(t, 1, CLI_DIM, "%s", "a note");
    cli_cell(t, CLI_BOLD, "%d", 100);
    cli_cell(t, CLI_PLAIN, "%s", "\xe6\xbc\xa2\xe5\xad\x97");
    cli_cell(t, CLI_PLAIN, "%s", "");
    return t;
}

static void assert_table(int columns, bool colour, const char *want)
{
    struct page page;
    open_page(&page);
    set_world(columns > 0, columns);
    struct cli_term term = term_of(page.file, colour ? CLI_COLOUR_ALWAYS : CLI_COLOUR_NEVER);
    struct cli_table *t = sample_table();
    assert_int_equal(cli_table_rows(t), 2);
    cli_table_print(t, &term, 0);
    cli_table_free(t);
    assert_string_equal(written(&page), want);
    close_page(&page);
}

static void tables_align_their_columns(void **state)
{
    (void)state;
    assert_table(0, false,
                 " ID  NAME                   TIME\n"
                 "  1  matrix multiplication  3.25\n"
                 "     a note\n"
                 "100  \xe6\xbc\xa2\xe5\xad\x97\n");
    assert_table(0, true,
                 " \033[2mID\033[0m  \033[2mNAME\033[0m                   \033[2mTIME\033[0m\n"
                 "  \033[1m1\033[0m  matrix multiplication  3.25\n"
                 "     \033[2ma note\033[0m\n"
                 "\033[1m100\033[0m  \xe6\xbc\xa2\xe5\xad\x97\n");
}

static void a_narrow_terminal_cuts_the_columns_that_may_shrink(void **state)
{
    (void)state;
    assert_table(24, false,
                 " ID  NAME           TIME\n"
                 "  1  matrix multi\xe2\x80\xa6  3.25\n"
                 "     a note\n"
                 "100  \xe6\xbc\xa2\xe5\xad\x97\n");
}

static void a_column_that_wraps_goes_on_below(void **state)
{
    static const struct cli_column columns[] = {{"N", CLI_RIGHT, CLI_WHOLE},
                                                {"RULE", CLI_LEFT, CLI_WRAP}};
    struct page page;
    (void)state;
    open_page(&page);
    set_world(true, 20);
    struct cli_term term = term_of(page.file, CLI_COLOUR_NEVER);
    struct cli_table *t = cli_table_new(columns, 2);
    cli_cell(t, CLI_PLAIN, "1");
    cli_cell(t, CLI_PLAIN, "BM %% TM == 0 && BN %% TN == 0");
    cli_table_note(t, 1, CLI_DIM, "whole tiles are needed");
    cli_cell(t, CLI_PLAIN, "2");
    cli_cell(t, CLI_PLAIN, "averyverylongwordwithoutspace");
    cli_table_print(t, &term, 0);
    cli_table_free(t);
    assert_string_equal(written(&page), "N  RULE\n"
                                        "1  BM % TM == 0 &&\n"
                                        "   BN % TN == 0\n"
                                        "   whole tiles are\n"
                                        "   needed\n"
                                        "2  averyverylongword\n"
                                        "   withoutspace\n");
    close_page(&page);
}

/* --- messages ----------------------------------------------------------------------------- */

static void assert_message(int columns, const kopt_error *err, const char *want)
{
    struct page page;
    open_page(&page);
    set_world(columns > 0, columns);
    struct cli c = {.out = term_of(stdout, CLI_COLOUR_NEVER),
                    .err = term_of(page.file, CLI_COLOUR_NEVER)};
    assert_int_equal(cli_fail(&c, err), 4);
    assert_string_equal(written(&page), want);
    close_page(&page);
}

static void an_input_error_shows_the_place(void **state)
{
    (void)state;
    kopt_error err = {.code = KOPT_EINPUT,
                      .line = 12,
                      .column = 6,
                      .file = "gemm.cl",
                      .message = "unknown name 'BX'",
                      .hint = "did you mean 'BM'?",
                      .excerpt = "\t\xc3\xa4rg BX > 0"};
    assert_message(0, &err,
                   "kopt: error: unknown name 'BX'\n"
                   "gemm.cl:12:6\n"
                   "  12 |     \xc3\xa4rg BX > 0\n"
                   "     |         ^\n"
                   "hint: did you mean 'BM'?\n");
    err.column = 0;
    err.hint[0] = '\0';
    assert_message(0, &err,
                   "kopt: error: unknown name 'BX'\n"
                   "gemm.cl:12\n"
                   "  12 |     \xc3\xa4rg BX > 0\n");
}

static void a_long_line_is_shown_around_the_place(void **state)
{
    (void)state;
    kopt_error err = {.code = KOPT_EINPUT, .line = 3, .column = 91, .file = "k.cl"};
    (void)snprintf(err.message, sizeof(err.message), "bad");
    memset(err.excerpt, 'x', 200);
    err.excerpt[90] = '!';
    assert_message(48, &err,
                   "kopt: error: bad\n"
                   "k.cl:3:91\n"
                   "   3 | \xe2\x80\xa6xxxxxxxxxxxxxxxxxxxx!xxxxxxxxxxxxxxxxxx\n"
                   "     |                      ^\n");
    err.column = 806; /* of a line that is longer than the excerpt */
    err.excerpt_column = 801;
    err.excerpt[90] = 'x';
    err.excerpt[5] = '!';
    assert_message(48, &err,
                   "kopt: error: bad\n"
                   "k.cl:3:806\n"
                   "   3 | \xe2\x80\xa6xxxxx!xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
                   "     |       ^\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colour_needs_a_terminal_that_wants_it),
        cmocka_unit_test(width_is_the_terminals_unless_columns_says_otherwise),
        cmocka_unit_test(signs_have_a_plain_spelling),
        cmocka_unit_test(text_is_measured_in_columns),
        cmocka_unit_test(only_the_shortest_form_of_a_character_is_utf8),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(the_line_comes_after_a_second_and_five_times_a_second),
        cmocka_unit_test(a_narrow_terminal_gets_what_matters_most),
        cmocka_unit_test(elsewhere_there_is_a_line_every_ten_seconds),
        cmocka_unit_test(in_the_background_no_line_is_drawn_over_the_shell),
        cmocka_unit_test(quiet_shows_no_progress),
        cmocka_unit_test(tables_align_their_columns),
        cmocka_unit_test(a_narrow_terminal_cuts_the_columns_that_may_shrink),
        cmocka_unit_test(a_column_that_wraps_goes_on_below),
        cmocka_unit_test(an_input_error_shows_the_place),
        cmocka_unit_test(a_long_line_is_shown_around_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
