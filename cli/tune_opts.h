/* SPDX-License-Identifier: MIT */
/* The options of kopt tune. */
#ifndef CLI_TUNE_OPTS_H
#define CLI_TUNE_OPTS_H

#include "cli/rules.h"

struct cli_budget { /* 0 = not given */
    uint64_t evaluations;
    double seconds;
    double fraction;
};

struct cli_samples {
    unsigned min;
    unsigned max;
};

struct cli_tune_options {
    const char *device;
    const char *store;
    bool no_store;
    bool no_compile_cache;
    bool resume;
    bool fresh;
    const char *strategy;
    const char *model;
    int64_t model_top;
    int64_t seed;
    struct cli_budget budget;
    double until;
    struct cli_words priors;
    int64_t prior_first;
    const char *replay;
    int64_t window;
    int64_t compilers;
    double compile_timeout;
    double launch_timeout;
    struct cli_samples samples;
    double precision;
    bool flush;
    int64_t flush_bytes;
    bool check;
    int64_t race;
    int64_t memory_bytes;
    bool json;
};

enum { CLI_TUNE_N_OPTS = 27 };
extern const struct cli_opt cli_tune_opts[CLI_TUNE_N_OPTS];
extern const struct cli_tune_options cli_tune_defaults;

/* The values of --budget ("200", "60s", "25%", several with commas), --until ("2%"), --samples
 * ("7..50", "20"), --race and of sizes in bytes ("64MiB", "4G"). False: `why` says what is
 * wrong. */
bool cli_parse_until(const char *value, void *field, char *why, size_t bytes);
bool cli_parse_budget(const char *value, void *field, char *why, size_t bytes);
bool cli_parse_samples(const char *value, void *field, char *why, size_t bytes);
bool cli_parse_race(const char *value, void *field, char *why, size_t bytes);
bool cli_parse_size(const char *value, void *field, char *why, size_t bytes);

#endif
