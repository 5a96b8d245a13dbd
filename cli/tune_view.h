/* SPDX-License-Identifier: MIT */
/* What kopt tune shows while it works and at its end. */
#ifndef CLI_TUNE_VIEW_H
#define CLI_TUNE_VIEW_H

#include "cli/cli.h"

enum { CLI_EXAMPLE_BYTES = 320 };

struct cli_tune_view {
    struct cli *c;
    kopt_tuner *tuner; /* to stop it when nobody reads its results any more */
    bool json;
    const char *order; /* of the problem's sizes, as for cli_config_words_in(); borrowed */
    struct cli_progress progress;
    /* copied from the start */
    char kernel[128];
    char problem[512];
    char device[64];
    char device_name[160];
    char store[512];
    uint64_t budget;
    uint64_t valid;
    unsigned compilers;
    uint64_t predictions;
    double until;         /* --until; 0 = not given */
    uint64_t prior_first; /* of a prior, that are tried behind the default */
    /* one example for each kind of failure */
    char messages[KOPT_OUT_COUNT][CLI_EXAMPLE_BYTES];
    char configs[KOPT_OUT_COUNT][CLI_EXAMPLE_BYTES];
};

void cli_tune_view_init(struct cli_tune_view *v, struct cli *c, bool json);
kopt_tune_callbacks cli_tune_view_callbacks(struct cli_tune_view *v);

/* Why a search ended, and what is expected to be left to gain (NaN: not known or not asked
 * for), as a line of a report. */
void cli_print_ended(struct cli *c, const char *ended, double remaining, double until);

/* The result, as text or as the last JSON line (tune_report.c). */
void cli_tune_report(struct cli_tune_view *v, const kopt_tune_report *r);
void cli_tune_report_json(struct cli_tune_view *v, const kopt_tune_report *r);

#endif
