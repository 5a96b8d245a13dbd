/* SPDX-License-Identifier: MIT */
/* Showing measurements: shared by tune and store. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/units.h"

/* "BM=64 BN=32" of {"BM":64,"BN":32}; the caller frees it. */
char *cli_config_words(const char *json);
/* The same with the names as they stand in `order`, ["BN","BM"]; the others after them. */
char *cli_config_words_in(const char *json, const char *order);
/* The same of "BM=64,BN=32". */
char *cli_config_spaced(const char *text);

/* Half the width of the interval over the median with its sign, "+-0.3 %"; "one launch" where
 * there is none to tell; "" when it is not known. */
const char *cli_spread(const struct cli_term *t, const kopt_result *r, char out[CLI_NUM]);

/* Why it is not ok, of a compile error with the place that its log gives: "m.cl:3:5: no such
 * type". The caller frees it. */
char *cli_message(const kopt_result *r);

/* Members of a result's JSON object; with samples and log where `all`. */
void cli_json_result(struct cli_json *j, const kopt_result *r, bool all);
/* It as the member `key`; null where there is none: NULL, or no configuration. */
void cli_json_result_at(struct cli_json *j, const char *key, const kopt_result *r);

/* What held its clocks down, "power_cap, hw_thermal"; "" = nothing, or it is not known. Without
 * `all` not that somebody has set them. The caller frees it. */
char *cli_throttle(const kopt_result *r, bool all);

/* One line on what it means; of what is ok, whether its outputs were compared. */
const char *cli_outcome_meaning(kopt_outcome o, bool compared);

/* "ok" in green, failures in red. */
enum cli_style cli_outcome_style(kopt_outcome o);

/* Tables with one column for each parameter. */
struct cli_names {
    char **names;
    size_t n;
};
/* The names of a configuration as they stand in `order`, ["BN","BM"]; the others after them. */
struct cli_names cli_names_in(const char *json, const char *order);
void cli_names_free(struct cli_names *n);

#endif
