/* SPDX-License-Identifier: MIT */
#include "cli/tune_opts.h"
#include "cli/mem.h"
#include "cli/paths.h"
#include "cli/rows.h"
#include "cli/units.h"

#include <kopt/tune.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double evaluations_max = 1e15;
static const double seconds_max = 366.0 * 86400;

__attribute__((format(printf, 3, 4))) static bool wrong(char *why, size_t bytes,
                                                        const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, bytes, fmt, ap);
    va_end(ap);
    return false;
}

/* --- budget ------------------------------------------------------------------------------- */

static bool budget_percent(const char *word, struct cli_budget *b, char *why, size_t bytes)
{
    double share = 0;
    if (!cli_parse_number(word, &share))
        return wrong(why, bytes, "'%s' is no share such as 25%%", word);
    if (!(share > 0 && share <= 1))
        return wrong(why, bytes,
                     "%s is out of range, a share is more than 0%% and at most 100%%", word);
    b->fraction = share;
    return true;
}

static bool budget_count(const char *word, struct cli_budget *b, char *why, size_t bytes)
{
    int64_t n = 0;
    if (!cli_parse_int(word, &n))
        return wrong(why, bytes,
                     "%s is no whole number of evaluations; a share is written 25%%", word);
    if (n < 1 || (double)n > evaluations_max)
        return wrong(why, bytes, "%s is out of range, at least 1 evaluation is needed", word);
    b->evaluations = (uint64_t)n;
    return true;
}

static bool budget_time(const char *word, struct cli_budget *b, char *why, size_t bytes)
{
    double seconds = 0;
    if (!cli_parse_seconds(word, &seconds))
        return wrong(
            why, bytes,
            "'%s' is neither a number of evaluations (200), nor a time (60s, 10m, 2h), "
            "nor a share of the space (25%%)",
            word);
    if (!(seconds > 0 && seconds <= seconds_max))
        return wrong(why, bytes, "%s is out of range, a time is more than 0 and at most a year",
                     word);
    b->seconds = seconds;
    return true;
}

static bool budget_word(const char *word, struct cli_budget *b, char *why, size_t bytes)
{
    size_t n = strlen(word);
    if (n && word[n - 1] == '%')
        return budget_percent(word, b, why, bytes);
    if (n && strspn(word, "0123456789.+-eE") == n)
        return budget_count(word, b, why, bytes);
    return budget_time(word, b, why, bytes);
}

bool cli_parse_budget(const char *value, void *field, char *why, size_t bytes)
{
    char *copy = cli_strdup(value);
    bool ok = true;
    char *word = copy;
    while (ok && word) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = '\0';
        ok = budget_word(word, field, why, bytes);
        word = comma ? comma + 1 : NULL;
    }
    free(copy);
    return ok;
}

bool cli_parse_until(const char *value, void *field, char *why, size_t bytes)
{
    double share = 0;
    if (!cli_parse_number(value, &share))
        return wrong(why, bytes, "'%s' is no share such as 2%%", value);
    if (!(share > 0 && share < 1))
        return wrong(why, bytes,
                     "%s is out of range, a share is more than 0%% and less than 100%%", value);
    *(double *)field = share;
    return true;
}

/* --- samples and sizes -------------------------------------------------------------------- */

static bool sample_number(const char *s, size_t n, int64_t *out)
{
    char text[16];
    if (n == 0 || n >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", (int)n, s);
    return cli_parse_int(text, out) && *out >= 1 && *out <= KOPT_SAMPLES_MAX;
}

bool cli_parse_samples(const char *value, void *field, char *why, size_t bytes)
{
    struct cli_samples *out = field;
    const char *dots = strstr(value, "..");
    size_t n = dots ? (size_t)(dots - value) : strlen(value);
    int64_t min = 0;
    int64_t max = 0;
    bool ok = sample_number(value, n, &min);
    if (dots)
        ok = ok && sample_number(dots + 2, strlen(dots + 2), &max);
    else
        max = min;
    if (!ok)
        return wrong(why, bytes, "'%s' is not MIN..MAX with numbers from 1 to %d", value,
                     KOPT_SAMPLES_MAX);
    if (min > max)
        return wrong(why, bytes, "%s: the smaller number comes first", value);
    out->min = (unsigned)min;
    out->max = (unsigned)max;
    return true;
}

bool cli_parse_race(const char *value, void *field, char *why, size_t bytes)
{
    int64_t *out = field;
    if (!cli_parse_int(value, out))
        return wrong(why, bytes, "'%s' is not a whole number", value);
    if (*out == 0)
        return wrong(why, bytes,
                     "the final race cannot be left out, since the best and the speed-up come "
                     "from it; 1 is the shortest");
    if (*out < 0 || *out > KOPT_RACE_MAX)
        return wrong(why, bytes, "%s is out of range, it must be 1 to %d", value,
                     KOPT_RACE_MAX);
    return true;
}

bool cli_parse_size(const char *value, void *field, char *why, size_t bytes)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"", 0},     {"B", 0},  {"K", 10},   {"KiB", 10}, {"M", 20},
                 {"MiB", 20}, {"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40}};
    size_t digits = strspn(value, "0123456789.");
    char number[32];
    double v = 0;
    bool ok = digits > 0 && digits < sizeof(number);
    if (ok) {
        (void)snprintf(number, sizeof(number), "%.*s", (int)digits, value);
        ok = cli_parse_number(number, &v);
    }
    int shift = -1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(value + digits, units[i].name) == 0)
            shift = units[i].shift;
    if (!ok || shift < 0)
        return wrong(why, bytes, "'%s' is no size such as 64MiB or 4G", value);
    v = ldexp(v, shift);
    if (v < 1 || v > 9e18)
        return wrong(why, bytes, "%s is out of range", value);
    *(int64_t *)field = (int64_t)v;
    return true;
}

/* --- the table ---------------------------------------------------------------------------- */

const struct cli_tune_options cli_tune_defaults = {.seed = 1, .flush = true, .check = true};

#define AT(field) offsetof(struct cli_tune_options, field)

const struct cli_opt cli_tune_opts[CLI_TUNE_N_OPTS] = {
    CLI_ROW_DEVICE(struct cli_tune_options,
                   "where to run, as kopt devices lists them; several of one kind with "
                   "commas (default: the first that fits the kernel)",
                   "Where"),
    CLI_ROW_STORE(struct cli_tune_options, "file that keeps every measurement", NULL),
    {.name = "no-store",
     .kind = CLI_FLAG,
     .offset = AT(no_store),
     .help = "keep no measurement"},
    {.name = "no-compile-cache",
     .kind = CLI_FLAG,
     .offset = AT(no_compile_cache),
     .help = "neither use nor keep compiled images (" CLI_CACHE_DEFAULT ")"},
    {.name = "resume",
     .kind = CLI_FLAG,
     .offset = AT(resume),
     .help = "go on from what the store has; this is what happens without it, too"},
    {.name = "fresh",
     .kind = CLI_FLAG,
     .offset = AT(fresh),
     .help = "measure again what the store already has"},
    {.name = "budget",
     .letter = 'b',
     .kind = CLI_CUSTOM,
     .arg = "B",
     .offset = AT(budget),
     .parse = cli_parse_budget,
     .help =
         "when to stop: 200 (evaluations), 60s, 10m, 2h, 25% (of the valid configurations), "
         "or several with commas, whichever comes first (default: 1,000, which is all of "
         "a space that is not larger). What the store already has counts; set-up and the "
         "final race come on top",
     .group = "Search"},
    {.name = "until",
     .kind = CLI_CUSTOM,
     .arg = "SHARE",
     .offset = AT(until),
     .parse = cli_parse_until,
     .help = "stop earlier, when what was not tried is expected to save less than this share "
             "of the best time, such as 2%; the estimate is in the report"},
    {.name = "strategy",
     .letter = 's',
     .kind = CLI_TEXT,
     .arg = "NAME",
     .offset = AT(strategy),
     .complete = CLI_COMPLETE_STRATEGY,
     .help = "how to search, see below (default: by the size of the space)"},
    {.name = "model",
     .letter = 'm',
     .kind = CLI_TEXT,
     .arg = "FILE",
     .offset = AT(model),
     .complete = CLI_COMPLETE_FILE,
     .help = "a model of the kernel, from kopt train, or the name of one that comes with kopt: "
             "what it predicts is measured first, and the search goes on from there"},
    {.name = "model-top",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 4096,
     .offset = AT(model_top),
     .help = "how many of its predictions, the most promising first (default 20)"},
    {.name = "prior",
     .kind = CLI_CUSTOM,
     .arg = "FILE",
     .offset = AT(priors),
     .parse = cli_parse_word,
     .complete = CLI_COMPLETE_FILE,
     .help = "results of the same kernel elsewhere, from which the search begins: a store "
             "(kopt.db#3 is its subject 3), a cache file of Kernel Tuner or a T4 file; none: "
             "no such start (default: without --model, the results in the store for the "
             "nearest problem or device)"},
    {.name = "prior-first",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 4096,
     .offset = AT(prior_first),
     .help = "how many of its best configurations are tried first (default 10)"},
    CLI_ROW_SEED(struct cli_tune_options,
                 "of the search; the same seed makes the same choices (default 1)", NULL),
    {.name = "race",
     .kind = CLI_CUSTOM,
     .arg = "N",
     .offset = AT(race),
     .parse = cli_parse_race,
     .help = "configurations in the final race, beside the default (default 5)"},
    {.name = "samples",
     .kind = CLI_CUSTOM,
     .arg = "MIN..MAX",
     .offset = AT(samples),
     .parse = cli_parse_samples,
     .help = "timed launches of a configuration (default 7..50)",
     .group = "Measuring"},
    {.name = "precision",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 1e-5,
     .max = 1,
     .offset = AT(precision),
     .help = "stop sampling when the median is known to this share (default 1%)"},
    {.name = "flush",
     .kind = CLI_FLAG,
     .offset = AT(flush),
     .negatable = true,
     .shown_negated = true,
     .help = "leave the caches warm between launches"},
    {.name = "flush-bytes",
     .kind = CLI_CUSTOM,
     .arg = "SIZE",
     .offset = AT(flush_bytes),
     .parse = cli_parse_size,
     .help = "how much to write between launches to flush the caches (default: by the "
             "device)"},
    {.name = "check",
     .kind = CLI_FLAG,
     .offset = AT(check),
     .negatable = true,
     .shown_negated = true,
     .help = "do not compare results with the reference"},
    {.name = "compilers",
     .letter = 'j',
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 128,
     .offset = AT(compilers),
     .help = "compile workers (default: one for each core; with --replay: 1, simulated)",
     .group = "Limits"},
    {.name = "compile-timeout",
     .kind = CLI_SECONDS,
     .arg = "T",
     .min = 0.1,
     .max = 86400,
     .offset = AT(compile_timeout),
     .help = "end a compiler after this time (default 2m)"},
    {.name = "launch-timeout",
     .kind = CLI_SECONDS,
     .arg = "T",
     .min = 0.01,
     .max = 86400,
     .offset = AT(launch_timeout),
     .help = "end a kernel after this time (default 10s, or 20 times the default "
             "configuration's if that is longer)"},
    {.name = "memory",
     .kind = CLI_CUSTOM,
     .arg = "SIZE",
     .offset = AT(memory_bytes),
     .parse = cli_parse_size,
     .help = "device memory to use at most, such as 4G (default: all that is free)"},
    {.name = "replay",
     .kind = CLI_TEXT,
     .arg = "FILE",
     .offset = AT(replay),
     .complete = CLI_COMPLETE_FILE,
     .help = "search a recorded space instead of a kernel: a store (kopt.db#3 is its subject "
             "3), a cache file of Kernel Tuner or a T4 file",
     .group = "Replay"},
    {.name = "window",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 256,
     .offset = AT(window),
     .help = "with --replay: evaluations asked for and not yet told (default: one for each "
             "compiler)"},
    CLI_ROW_JSON(struct cli_tune_options,
                 CLI_JSON_HELP ": type start, then result for each, then report", "Output"),
};
