/* SPDX-License-Identifier: MIT */
/* Numbers as people read and write them. */
#ifndef CLI_UNITS_H
#define CLI_UNITS_H

#include "cli/term.h"

#include <stdbool.h>
#include <stdint.h>

/* Whole texts; false when anything is left over or out of the type's range. */
bool cli_parse_int(const char *s, int64_t *out);
bool cli_parse_number(const char *s, double *out);  /* finite; "5%" = 0.05 */
bool cli_parse_seconds(const char *s, double *out); /* "90", "1.5s", "200ms", "2m", "1h" */

enum { CLI_NUM = 40 };

/* "1,234,567"; from 1e15 on "1.23e+18". NaN gives "-", as everywhere below. */
const char *cli_count(double v, char out[CLI_NUM]);
/* "48 KiB", "139.8 GiB". */
const char *cli_bytes(int64_t v, char out[CLI_NUM]);
/* "12.3 s", "3 min 20 s", "2 h 05 min". */
const char *cli_duration(double seconds, char out[CLI_NUM]);
/* A duration that fits a progress line: "0:07", "12:40", "1:02:03". */
const char *cli_clock(double seconds, char out[CLI_NUM]);
/* Four significant digits: "0.1432", "143.2", "1,432". */
const char *cli_figure(double v, char out[CLI_NUM]);
/* "43.9 %"; below 0.1 % two digits that say something. */
const char *cli_percent(double fraction, char out[CLI_NUM]);

/* The unit in which a time, or a column of times whose smallest is `ns`, reads best. */
struct cli_unit {
    const char *name; /* "ms" */
    double ns;        /* of one */
};
struct cli_unit cli_unit_for(const struct cli_term *t, double ns);
/* "143.2 us" */
const char *cli_time(const struct cli_term *t, double ns, char out[CLI_NUM]);
/* The number alone, in `unit`, with the decimals that give the column's smallest value four
 * significant digits. */
const char *cli_time_in(struct cli_unit unit, double smallest_ns, double ns, char out[CLI_NUM]);

/* "2026-01-31 12:00" in local time, "2026-01-31T12:00:00Z"; "-" for 0. */
const char *cli_date(int64_t wall_us, char out[CLI_NUM]);
const char *cli_date_iso(int64_t wall_us, char out[CLI_NUM]);

#endif
