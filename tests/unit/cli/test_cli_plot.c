/* SPDX-License-Identifier: MIT */
/* The picture of a comparison: of a report made by hand, what stands in the SVG text. */
#include "cli/plot.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

enum { METHODS = 10, SPACES = 2 };

struct made {
    kopt_compare_report r;
    const char *methods[METHODS];
    int foreign[METHODS];
    kopt_recording_info infos[SPACES];
    const kopt_recording_info *spaces[SPACES];
    kopt_compare_cell cells[METHODS * SPACES];
    kopt_curve curves[METHODS * SPACES];
    double budget_s[SPACES];
    char *text;
    size_t bytes;
};

/* The gap falls from 100 % to `last` at an even pace on a logarithmic scale. */
static void set_curve(kopt_curve *k, double last)
{
    for (int i = 0; i < KOPT_CURVE_POINTS; i++) {
        double gap = pow(last, (double)i / (KOPT_CURVE_POINTS - 1));
        k->mean[i] = k->median[i] = gap;
        k->low[i] = gap / 2;
        k->high[i] = gap * 2;
    }
}

static struct made *make(size_t n_methods, size_t n_spaces)
{
    struct made *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    for (size_t i = 0; i < n_methods; i++)
        m->methods[i] = "random";
    for (size_t i = 0; i < n_methods * n_spaces; i++) {
        m->cells[i].runs = 5;
        set_curve(&m->curves[i], 0.01);
    }
    for (size_t s = 0; s < n_spaces; s++) {
        m->infos[s].name = "space";
        m->spaces[s] = &m->infos[s];
        m->budget_s[s] = 300;
    }
    m->r = (kopt_compare_report){.n_methods = n_methods,
                                 .n_spaces = n_spaces,
                                 .methods = m->methods,
                                 .foreign = m->foreign,
                                 .spaces = m->spaces,
                                 .cells = m->cells,
                                 .by_time = m->curves,
                                 .budget_s = m->budget_s,
                                 .repeats = 5};
    return m;
}

static const char *drawn(struct made *m)
{
    FILE *f = open_memstream(&m->text, &m->bytes);
    assert_non_null(f);
    assert_true(cli_plot(f, &m->r));
    assert_int_equal(fclose(f), 0);
    return m->text;
}

static void drop(struct made *m)
{
    free(m->text);
    free(m);
}

/* The tolerances below are roundings of powers of ten. */
static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("got %.17g, wanted %.17g", got, want);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

static void each_space_has_a_panel_and_each_method_a_line_and_a_band_in_it(void **state)
{
    (void)state;
    struct made *m = make(3, 2);
    m->cells[2 * 2 + 1].runs = 0; /* the third method on the second space */
    const char *svg = drawn(m);
    assert_int_equal(count(svg, "<g>"), 2);
    assert_int_equal(count(svg, "<polygon class=\"b m"), 5);
    assert_int_equal(count(svg, "<polyline class=\"l m"), 5 + 3); /* and the legend's */
    assert_int_equal(count(svg, "random</text>"), 3);
    assert_non_null(strstr(svg, "the median of 5 runs"));
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    drop(m);
}

static void names_are_text_and_nothing_else(void **state)
{
    (void)state;
    struct made *m = make(1, 1);
    m->infos[0].name = "a<b>&\"c\"\x1b[0m \xff \xc3\xa4";
    m->methods[0] = "</svg>";
    const char *svg = drawn(m);
    assert_non_null(strstr(svg, "a&lt;b&gt;&amp;&quot;c&quot;?[0m ? \xc3\xa4"));
    assert_int_equal(count(svg, "</svg>"), 1);
    assert_null(strchr(svg, 0x1b));
    assert_null(strchr(svg, 0xff));
    drop(m);
}

static void more_methods_than_colours_differ_by_their_dashes(void **state)
{
    (void)state;
    struct made *m = make(10, 1);
    const char *svg = drawn(m);
    assert_int_equal(count(svg, "class=\"l m0\" stroke-dasharray=\"none\""), 2);
    assert_int_equal(count(svg, "class=\"l m0\" stroke-dasharray=\"6 3\""), 2);
    drop(m);
}

static void time_has_the_unit_that_reads_best(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *unit;
    } cases[] = {{0.02, "time, ms"}, {1, "time, s"},    {119, "time, s"},
                 {120, "time, min"}, {7200, "time, h"}, {86400 * 3, "time, d"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct made *m = make(1, 1);
        m->budget_s[0] = cases[i].seconds;
        assert_non_null(strstr(drawn(m), cases[i].unit));
        drop(m);
    }
}

static void the_axis_is_logarithmic_where_gaps_span_decades(void **state)
{
    (void)state;
    struct cli_plot_scale s = cli_plot_scale_for(2.0);
    assert_true(s.log);
    near(s.low, 1e-3, 0);
    near(s.high, 10.0 / 3, 1e-9);
    assert_true(cli_plot_scale_for(30).high >= 30);
    s = cli_plot_scale_for(0.015);
    assert_false(s.log);
    near(s.high, 0.015, 0);
    /* All runs are at the optimum from the start. */
    s = cli_plot_scale_for(0);
    assert_false(s.log);
    assert_true(s.high > 0);
}

static void an_axis_has_a_few_round_ticks(void **state)
{
    (void)state;
    near(cli_plot_step(5, 6), 1, 1e-12);
    near(cli_plot_step(7, 6), 2, 1e-12);
    near(cli_plot_step(0.013, 5), 0.005, 1e-12);
    near(cli_plot_step(60, 6), 10, 1e-9);
    for (int i = 0; i < 73; i++) { /* up to a million */
        double high = 1e-4 * pow(1.37, i);
        double n = high / cli_plot_step(high, 6);
        assert_true(n <= 6.000001);
        assert_true(n >= 2.3); /* 6 / 2.5, the widest gap between steps, less rounding */
    }
    near(cli_plot_step(0, 6), 1, 0);
    near(cli_plot_step((double)NAN, 6), 1, 0);
}

static void what_is_not_known_leaves_the_picture_whole(void **state)
{
    (void)state;
    struct made *m = make(1, 1);
    for (int i = 0; i < KOPT_CURVE_POINTS; i++)
        m->curves[0].median[i] = m->curves[0].high[i] = (double)NAN;
    m->budget_s[0] = (double)NAN;
    const char *svg = drawn(m);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    drop(m);
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct made *m = make(1, 1);
    FILE *f = fopen("/dev/full", "w");
    if (f) {
        assert_false(cli_plot(f, &m->r));
        (void)fclose(f);
    }
    drop(m);
    if (!f)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_space_has_a_panel_and_each_method_a_line_and_a_band_in_it),
        cmocka_unit_test(names_are_text_and_nothing_else),
        cmocka_unit_test(more_methods_than_colours_differ_by_their_dashes),
        cmocka_unit_test(time_has_the_unit_that_reads_best),
        cmocka_unit_test(the_axis_is_logarithmic_where_gaps_span_decades),
        cmocka_unit_test(an_axis_has_a_few_round_ticks),
        cmocka_unit_test(what_is_not_known_leaves_the_picture_whole),
        cmocka_unit_test(a_full_disk_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
