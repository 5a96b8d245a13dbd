/* SPDX-License-Identifier: MIT */
/* The tables of a comparison, of a report made by hand. */
#include "cli/compare_view.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

enum { METHODS = 3, SPACES = 2 };

struct made {
    kopt_compare_report r;
    const char *methods[METHODS];
    int foreign[METHODS];
    kopt_recording_info infos[SPACES];
    const kopt_recording_info *spaces[SPACES];
    kopt_compare_cell cells[METHODS * SPACES];
    kopt_compare_cell total[METHODS];
    kopt_calibration calibration[METHODS];
    double budget_s[SPACES];
    uint64_t budget[SPACES];
};

static kopt_compare_cell cell(double score, double hits)
{
    return (kopt_compare_cell){.runs = 9,
                               .score = score,
                               .score_error = 0.0131,
                               .time_score = score,
                               .time_score_error = 0.01,
                               .hits = hits,
                               .cutoff_hits = 1,
                               .gap = 0.02,
                               .worst_gap = 0.2,
                               .near = 33.25,
                               .evaluations = 40,
                               .search_s = 2.5e-6,
                               .worst_search_s = 1e-5};
}

/* "slow" is below random search on the first space, "forest" on none. */
static void make(struct made *m)
{
    static const double scores[METHODS][SPACES] = {{0.10, 0.3}, {0.15, -0.05}, {0.8, 0.75}};
    static const char *const names[METHODS] = {"slow", "random", "forest"};
    memset(m, 0, sizeof(*m));
    for (int i = 0; i < METHODS; i++) {
        m->methods[i] = names[i];
        for (int s = 0; s < SPACES; s++)
            m->cells[i * SPACES + s] = cell(scores[i][s], i == 2 ? 1 : 0.5);
        m->total[i] = cell((scores[i][0] + scores[i][1]) / 2, i == 2 ? 1 : 0.5);
    }
    for (int s = 0; s < SPACES; s++) {
        m->infos[s] = (kopt_recording_info){.name = s ? "gemm" : "pnpoly", .n = 4092};
        m->infos[s].by_outcome[KOPT_OUT_OK] = 3762;
        m->spaces[s] = &m->infos[s];
        m->budget[s] = 179;
        m->budget_s[s] = 200;
    }
    m->r = (kopt_compare_report){.n_methods = METHODS,
                                 .n_spaces = SPACES,
                                 .methods = m->methods,
                                 .foreign = m->foreign,
                                 .spaces = m->spaces,
                                 .cells = m->cells,
                                 .total = m->total,
                                 .calibration = m->calibration,
                                 .budget_s = m->budget_s,
                                 .budget = m->budget,
                                 .repeats = 9};
}

/* The caller frees it. */
static char *tables(const kopt_compare_report *r, double until)
{
    char *text = NULL;
    size_t bytes = 0;
    struct cli c = {.verbosity = -1};
    size_t *order = cli_compare_order(r);
    double *random = cli_compare_random(r);
    const struct cli_compare_view v = {&c, until, order, random};
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    c.out.file = f;
    cli_compare_tables(&v, r);
    (void)fclose(f);
    free(order);
    free(random);
    return text;
}

static void methods_stand_in_the_order_of_their_scores_those_without_one_last(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    size_t *order = cli_compare_order(&m.r);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 1);
    free(order);
    m.total[2].score = (double)NAN;
    order = cli_compare_order(&m.r);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[2], 2);
    free(order);
}

static void the_control_is_the_random_search_that_ran_else_a_score_of_zero(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    double *random = cli_compare_random(&m.r);
    assert_true(cli_compare_below(&m.r, random, 0, 0));
    assert_false(cli_compare_below(&m.r, random, 0, 1));
    assert_false(cli_compare_below(&m.r, random, 1, 0)); /* not below itself */
    assert_false(cli_compare_below(&m.r, random, 1, 1));
    free(random);
    m.foreign[1] = 1; /* somebody else's */
    random = cli_compare_random(&m.r);
    assert_false(cli_compare_below(&m.r, random, 0, 0));
    assert_true(cli_compare_below(&m.r, random, 1, 1));
    free(random);
}

static void the_best_of_a_column_and_what_is_below_random_search_are_marked(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    char *text = tables(&m.r, 0);
    assert_non_null(strstr(text, "pnpoly (1)  4,092 configurations, 3,762 ok; budget 179 "
                                 "evaluations, 3 min 20 s\n"));
    assert_non_null(strstr(text, "forest  0.800 +- 0.013 *  0.800 +- 0.010 *   100 % *"));
    assert_non_null(strstr(text, "slow    0.100 +- 0.013 !"));
    assert_non_null(strstr(text, "forest  0.80 *   0.75 *  0.78 *"));
    assert_non_null(strstr(text, "1 of 2\n"));
    assert_null(strstr(text, "PRIOR"));
    assert_null(strstr(text, "stopping at"));
    free(text);
}

static void a_method_alone_is_not_the_best(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.r.n_methods = m.r.n_spaces = 1;
    char *text = tables(&m.r, 0);
    assert_null(strstr(text, " *\n"));
    assert_null(strstr(text, " *  "));
    assert_null(strstr(text, "means over"));
    free(text);
}

static void what_was_not_run_is_a_dash(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    double none = (double)NAN;
    m.cells[(size_t)2 * SPACES] = (kopt_compare_cell){.score = none,
                                                      .score_error = none,
                                                      .time_score = none,
                                                      .hits = none,
                                                      .cutoff_hits = none,
                                                      .gap = none,
                                                      .worst_gap = none,
                                                      .near = none,
                                                      .evaluations = none,
                                                      .search_s = none};
    char *text = tables(&m.r, 0);
    assert_null(strstr(text, "nan"));
    assert_non_null(strstr(text, "forest               -"));
    free(text);
}

static void stops_and_estimates_are_shown_where_they_were_asked_for(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.total[2].stop = (kopt_stop_stat){25.5, 0.75, 0.0123, 0.9};
    m.calibration[2].n[2] = 1234;
    m.calibration[2].estimate[2] = 0.015;
    m.calibration[2].actual[2] = 0.0131;
    char *text = tables(&m.r, 0.02);
    assert_non_null(strstr(text, "stopping at 2.0 %"));
    assert_non_null(strstr(text, "forest   75.0 %         25.5  40.0      1.2 %  90.0 %\n"));
    assert_non_null(strstr(text, "forest  1 to 2 %  1,234  1.5 %     1.3 %\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_stand_in_the_order_of_their_scores_those_without_one_last),
        cmocka_unit_test(the_control_is_the_random_search_that_ran_else_a_score_of_zero),
        cmocka_unit_test(the_best_of_a_column_and_what_is_below_random_search_are_marked),
        cmocka_unit_test(a_method_alone_is_not_the_best),
        cmocka_unit_test(what_was_not_run_is_a_dash),
        cmocka_unit_test(stops_and_estimates_are_shown_where_they_were_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
