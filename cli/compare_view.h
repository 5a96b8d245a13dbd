/* SPDX-License-Identifier: MIT */
/* What kopt compare shows: tables (compare_view.c) and JSON lines (compare_json.c). */
#ifndef CLI_COMPARE_VIEW_H
#define CLI_COMPARE_VIEW_H

#include "cli/cli.h"

struct cli_compare_view {
    struct cli *c;
    double until;         /* --until; 0 = not given */
    const size_t *order;  /* methods, the best over all first */
    const double *random; /* by space, what a score is below random search of; NaN = none */
};

/* Methods by their score over all spaces, the best first; the caller frees it. */
size_t *cli_compare_order(const kopt_compare_report *r);
/* By space: the score of the method "random" where it ran, else 0, which random search is
 * expected to get; the caller frees it. */
double *cli_compare_random(const kopt_compare_report *r);
/* Is the method `m` worse than random search on the space `s`? */
bool cli_compare_below(const kopt_compare_report *r, const double *random, size_t m, size_t s);

void cli_compare_tables(const struct cli_compare_view *v, const kopt_compare_report *r);
void cli_compare_json(const struct cli_compare_view *v, const kopt_compare_report *r);

#endif
