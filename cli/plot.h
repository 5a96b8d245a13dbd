/* SPDX-License-Identifier: MIT */
/* The curves of a comparison as an SVG picture: a panel for each space, in it for each method
 * the median of the best so far over simulated time, and the band from the 10th to the 90th
 * percentile of the runs. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <kopt/replay.h>
#include <stdbool.h>
#include <stdio.h>

/* Methods that have no runs on a space are not drawn there. False: it could not be written
 * (errno). */
bool cli_plot(FILE *f, const kopt_compare_report *r);

/* The vertical axis of a panel: shares of the optimum by which the best so far is slower. */
struct cli_plot_scale {
    bool log;
    double low; /* what is smaller is drawn there; 0 of a linear axis */
    double high;
};
/* Logarithmic where the largest gap is many times the smallest that says something. */
struct cli_plot_scale cli_plot_scale_for(double largest);

/* Up to `max` ticks of 1, 2 or 5 times a power of ten from 0 to `high`; returns their distance.
 */
double cli_plot_step(double high, unsigned max);

#endif
