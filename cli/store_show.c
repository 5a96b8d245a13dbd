/* SPDX-License-Identifier: MIT */
/* kopt store show, result, failures: what came of it. */
#include "cli/mem.h"
#include "cli/store.h"
#include "cli/table.h"
#include "cli/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20, SAMPLES_PER_LINE = 8, LOG_INDENT = 2 };

/* --- show --------------------------------------------------------------------------------- */

struct show_options {
    struct cli_store_common common;
    bool all;
    int outcome; /* 0 = any, else 1 + a kopt_outcome */
    int64_t limit;
};

static const char *const outcome_choices[] = {"any",
#define X(id, value, name, text) name,
                                              KOPT_OUTCOME_MAP(X)
#undef X
                                                  NULL};

static void print_subject(struct cli *c, const kopt_subject *s)
{
    char a[CLI_NUM];
    char b[CLI_NUM];
    char date[CLI_NUM];
    char *title = cli_subject_title(s);
    cli_print(c, "%s%s%s\n", cli_on(&c->out, CLI_BOLD), title, cli_off(&c->out, CLI_BOLD));
    free(title);
    if (s->kernel_path[0] || s->kernel_hash[0])
        cli_print(c, "kernel   %s%s%.12s\n", s->kernel_path, s->kernel_path[0] ? "  " : "",
                  s->kernel_hash);
    if (s->driver[0] || s->compiler[0])
        cli_print(c, "tools    %s%s%s\n", s->driver, s->driver[0] && s->compiler[0] ? ", " : "",
                  s->compiler);
    cli_print(c, "results  %s, %s ok, the last on %s\n\n", cli_count((double)s->n_results, a),
              cli_count((double)s->n_ok, b), cli_date(s->last_us, date));
}

static void json_row(const struct cli_rows *rows, size_t i, bool all)
{
    struct cli_json j = cli_json_begin(stdout, "result");
    cli_json_int(&j, "subject", rows->subjects[i]);
    cli_json_int(&j, "run", rows->runs[i]);
    cli_json_result(&j, &rows->items[i], all);
    cli_json_end(&j);
}

static double smallest_time(const struct cli_rows *rows)
{
    double best = (double)NAN;
    for (size_t i = 0; i < rows->n; i++)
        if (rows->items[i].outcome == KOPT_OUT_OK && !(rows->items[i].median_ns >= best))
            best = rows->items[i].median_ns;
    return best;
}

static bool any_failed(const struct cli_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->items[i].outcome != KOPT_OUT_OK)
            return true;
    return false;
}

/* The value of `name` in a configuration as the cell's text. */
static void value_cell(struct cli_table *t, const char *config, const char *name)
{
    kopt_pair p;
    while (kopt_pair_next(&config, &p)) {
        if (strlen(name) == p.name_bytes && memcmp(name, p.name, p.name_bytes) == 0) {
            cli_cell(t, CLI_PLAIN, "%.*s", (int)p.value_bytes, p.value);
            return;
        }
    }
    cli_cell(t, CLI_DIM, "-");
}

/* Imported results may have no interval. */
static bool any_spread(const struct cli_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (isfinite(rows->items[i].low_ns))
            return true;
    return false;
}

static void time_cells(struct cli *c, struct cli_table *t, const kopt_result *r, double best,
                       bool spread)
{
    char text[CLI_NUM];
    struct cli_unit unit = cli_unit_for(&c->out, best);
    bool ok = r->outcome == KOPT_OUT_OK;
    if (ok)
        cli_cell(t, r->median_ns <= best ? CLI_GREEN : CLI_PLAIN, "%s",
                 cli_time_in(unit, best, r->median_ns, text));
    else
        cli_cell(t, CLI_DIM, "-");
    if (spread)
        cli_cell(t, CLI_DIM, "%s", ok ? cli_spread(&c->out, r, text) : "");
    if (ok)
        cli_cell(t, CLI_PLAIN, "%.2f%s", r->median_ns / best, cli_sign(&c->out, CLI_TIMES));
    else
        cli_cell(t, CLI_PLAIN, "%s", "");
}

/* The caller frees it. */
static char *remark(const kopt_result *r)
{
    if (r->message[0])
        return cli_strdup(r->message);
    const char *what = r->race ? "final race" : r->dropped ? "dropped early" : "";
    char *throttle = cli_throttle(r, false);
    char *text = throttle[0]
                     ? cli_strf("%s%sthrottled: %s", what, what[0] ? ", " : "", throttle)
                     : cli_strdup(what);
    free(throttle);
    return text;
}

enum { FIXED_MAX = 6 };

/* Columns: id, [outcome], time, spread, ratio, one for each parameter or (names NULL) the whole
 * configuration, remark. */
static struct cli_table *table_of(struct cli *c, const struct cli_rows *rows,
                                  const struct cli_names *names, const char *order)
{
    bool failed = any_failed(rows);
    bool spread = any_spread(rows);
    double best = smallest_time(rows);
    size_t n_names = names ? names->n : 1;
    char title[32];
    (void)snprintf(title, sizeof(title), "TIME %s", cli_unit_for(&c->out, best).name);
    struct cli_column *columns = cli_alloc(n_names + FIXED_MAX, sizeof(*columns));
    size_t n = 0;
    columns[n++] = (struct cli_column){"RESULT", CLI_RIGHT, CLI_WHOLE};
    if (failed)
        columns[n++] = (struct cli_column){"OUTCOME", CLI_LEFT, CLI_WHOLE};
    columns[n++] = (struct cli_column){isnan(best) ? "TIME" : title, CLI_RIGHT, CLI_WHOLE};
    if (spread)
        columns[n++] = (struct cli_column){"", CLI_LEFT, CLI_WHOLE};
    columns[n++] = (struct cli_column){"", CLI_RIGHT, CLI_WHOLE};
    for (size_t i = 0; names && i < names->n; i++)
        columns[n++] = (struct cli_column){names->names[i], CLI_RIGHT, CLI_WHOLE};
    columns[n++] = (struct cli_column){names ? "" : "CONFIGURATION", CLI_LEFT, CLI_WRAP};
    struct cli_table *t = cli_table_new(columns, n);
    for (size_t i = 0; i < rows->n; i++) {
        const kopt_result *r = &rows->items[i];
        cli_cell(t, CLI_DIM, "%lld", (long long)r->id);
        if (failed)
            cli_cell(t, cli_outcome_style(r->outcome), "%s", kopt_outcome_name(r->outcome));
        time_cells(c, t, r, best, spread);
        for (size_t k = 0; names && k < names->n; k++)
            value_cell(t, r->config, names->names[k]);
        char *said = remark(r);
        char *words = names ? cli_strdup(said) : cli_config_words_in(r->config, order);
        cli_cell(t, names ? CLI_DIM : CLI_PLAIN, "%s", words);
        if (!names && said[0])
            cli_table_note(t, n - 1, CLI_DIM, "%s", said);
        free(words);
        free(said);
    }
    free(columns);
    return t;
}

/* Columns that the remarks need; longer ones may wrap. */
static size_t remark_room(const struct cli_rows *rows)
{
    enum { MOST = 24 };
    size_t widest = 0;
    for (size_t i = 0; i < rows->n; i++) {
        char *said = remark(&rows->items[i]);
        size_t w = cli_columns(said);
        free(said);
        widest = w > widest ? w : widest;
    }
    return widest > MOST ? MOST : widest;
}

/* One column for each parameter where the terminal has the room. */
static void print_rows(struct cli *c, const struct cli_rows *rows, const char *order)
{
    struct cli_names names = cli_names_in(rows->items[0].config, order);
    struct cli_table *t = table_of(c, rows, &names, order);
    if (c->out.width > 0 && cli_table_room(t) + remark_room(rows) > (size_t)c->out.width) {
        cli_table_free(t);
        t = table_of(c, rows, NULL, order);
    }
    cli_table_print(t, &c->out, 0);
    cli_table_free(t);
    cli_names_free(&names);
}

/* How many configurations there are behind those that are shown. */
static int count_configs(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    (void)r;
    (void)subject;
    (void)run;
    ++*(size_t *)user;
    return 1;
}

static int print_show(struct cli *c, kopt_store *s, const kopt_result_filter *f,
                      const struct cli_rows *rows, const kopt_subject *subject)
{
    const kopt_result_filter every = {
        .subject = subject->id, .outcome = -1, .newest = 1, .brief = 1};
    kopt_error err;
    size_t n = 0;
    char text[CLI_NUM];
    char failures[CLI_NUM];
    char hint[CLI_HINT];
    (void)snprintf(failures, sizeof(failures), "failures %lld", (long long)subject->id);
    print_subject(c, subject);
    if (rows->n)
        print_rows(c, rows, subject->params);
    else
        cli_print(c, "none%s%s\n", f->outcome >= 0 ? " with outcome " : "",
                  f->outcome >= 0 ? kopt_outcome_name((kopt_outcome)f->outcome) : "");
    if (f->limit != SHOWN)
        return 0;
    if (kopt_store_results(s, &every, count_configs, &n, &err) != KOPT_OK)
        return cli_fail(c, &err);
    if (n && !rows->n)
        cli_note(c, "none of %s configurations is ok; %s", cli_count((double)n, text),
                 cli_see(c, failures, "shows why", hint));
    else if (n > rows->n)
        cli_note(c, "%s%zu of %s configurations, each with its newest result; --all shows %s",
                 rows->n == SHOWN ? "the best " : "", rows->n, cli_count((double)n, text),
                 rows->n == SHOWN ? "every one" : "those that failed, too");
    return 0;
}

static int show_rows(struct cli *c, kopt_store *s, const void *options,
                     const kopt_subject *subject)
{
    const struct show_options *o = options;
    int outcome = o->outcome - 1;
    if (o->outcome == 0 && !o->all)
        outcome = KOPT_OUT_OK;
    /* What was never completed is no configuration's newest result. */
    kopt_result_filter f = {.subject = subject->id,
                            .outcome = outcome,
                            .newest = outcome != KOPT_OUT_INTERRUPTED,
                            .by_time = 1,
                            .brief = 1,
                            .limit = o->limit               ? o->limit
                                     : o->all || o->outcome ? 0
                                                            : SHOWN};
    struct cli_rows rows;
    kopt_error err;
    int code = 0;
    if (cli_rows_get(s, &f, &rows, &err) != KOPT_OK)
        return cli_fail(c, &err);
    for (size_t i = 0; o->common.json && i < rows.n; i++)
        json_row(&rows, i, false);
    if (!o->common.json)
        code = print_show(c, s, &f, &rows, subject);
    cli_rows_free(&rows);
    return code;
}

static int run_show(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct show_options *o = options;
    if (o->all && o->outcome)
        return cli_usage(c, "--all and --outcome exclude each other");
    return cli_subject_run(c, args, options, show_rows);
}

static const struct cli_opt show_opts[] = {
    {.name = "all",
     .letter = 'a',
     .kind = CLI_FLAG,
     .offset = offsetof(struct show_options, all),
     .help = "every configuration, the failed ones with their reasons; else the best 20"},
    {.name = "outcome",
     .kind = CLI_CHOICE,
     .arg = "X",
     .choices = outcome_choices,
     .offset = offsetof(struct show_options, outcome),
     .help = "only those that ended like this: ok, compile_error, wrong, .."},
    {.name = "limit",
     .letter = 'n',
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1e12,
     .offset = offsetof(struct show_options, limit),
     .help = "at most N results"},
    CLI_STORE_OPTS,
};

static const struct cli_example show_examples[] = {
    {"store show 3", "the 20 best results of subject 3"},
    {"store show gemm M=512 --all",
     "every configuration of the newest subject of gemm with M=512"},
    {"store show 3 --outcome wrong", "which configurations gave wrong results"},
};

const struct cli_command cli_cmd_store_show = {
    .name = "show",
    .summary = "show the results of a subject",
    .args = "SUBJECT | KERNEL [NAME=VALUE..]",
    .about =
        "Of each configuration the newest result, the fastest first: the median, half the width "
        "of its 95 % confidence interval over it, and how many times the best it takes. "
        "Parameters stand in the order of the kernel file. A subject has more results than "
        "configurations where some were measured again, as in the final race.",
    .opts = show_opts,
    .n_opts = CLI_LEN(show_opts),
    .examples = show_examples,
    .n_examples = CLI_LEN(show_examples),
    .options_bytes = sizeof(struct show_options),
    .complete = CLI_COMPLETE_SUBJECT,
    .run = run_show,
};

/* --- result ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void line(struct cli_table *t, const char *name,
                                                       const char *fmt, ...)
{
    char text[1100];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    cli_cell(t, CLI_DIM, "%s", name);
    cli_cell(t, CLI_PLAIN, "%s", text);
}

static void known_line(struct cli_table *t, const char *name, int64_t n, const char *unit)
{
    char text[CLI_NUM];
    if (n >= 0)
        line(t, name, "%s%s", cli_count((double)n, text), unit);
}

static void sensor_line(struct cli_table *t, const char *name, double v, const char *unit)
{
    char text[CLI_NUM];
    if (isfinite(v))
        line(t, name, "%s %s", cli_figure(v, text), unit);
}

static void time_lines(struct cli *c, struct cli_table *t, const kopt_result *r)
{
    const struct cli_term *term = &c->out;
    char a[CLI_NUM];
    char b[CLI_NUM];
    char d[CLI_NUM];
    if (r->outcome == KOPT_OUT_OK && r->n_times == 1)
        line(t, "median", "%s, of one launch", cli_time(term, r->median_ns, a));
    else if (r->outcome == KOPT_OUT_OK && !isfinite(r->low_ns))
        line(t, "median", "%s", cli_time(term, r->median_ns, a));
    else if (r->outcome == KOPT_OUT_OK)
        line(t, "median", "%s, 95 %% interval %s to %s", cli_time(term, r->median_ns, a),
             cli_time(term, r->low_ns, b), cli_time(term, r->high_ns, d));
    if (r->n_times)
        line(t, "samples", "%u%s%s", r->n_times, r->dropped ? ", dropped early" : "",
             r->race ? ", in the final race" : "");
    if (isfinite(r->max_error))
        line(t, "max error", "%s", cli_figure(r->max_error, a));
    if (isfinite(r->compile_ns))
        line(t, "compiling", "%s", cli_duration(r->compile_ns / 1e9, a));
    if (isfinite(r->device_ns))
        line(t, "device", "%s", cli_duration(r->device_ns / 1e9, a));
}

static void print_samples(struct cli *c, const kopt_result *r)
{
    double best = (double)NAN;
    char text[CLI_NUM];
    for (uint32_t i = 0; i < r->n_times; i++)
        if (!(r->times_ns[i] >= best))
            best = r->times_ns[i];
    struct cli_unit unit = cli_unit_for(&c->out, best);
    cli_print(c, "\nsamples in %s, in the order they were taken\n", unit.name);
    for (uint32_t i = 0; i < r->n_times; i++)
        cli_print(c, "%s%10s%s", i % SAMPLES_PER_LINE ? "" : "  ",
                  cli_time_in(unit, best, r->times_ns[i], text),
                  (i + 1) % SAMPLES_PER_LINE == 0 || i + 1 == r->n_times ? "\n" : " ");
}

static void print_log(struct cli *c, const kopt_result *r)
{
    char *log = cli_clean(r->log, true);
    char *rest = NULL;
    cli_print(c, "\nlog\n");
    for (char *text = strtok_r(log, "\n", &rest); text; text = strtok_r(NULL, "\n", &rest))
        cli_print(c, "%*s%s\n", LOG_INDENT, "", text);
    free(log);
}

static void print_result(struct cli *c, const struct cli_rows *rows, const kopt_subject *s)
{
    static const struct cli_column columns[] = {{"", CLI_LEFT, CLI_WHOLE},
                                                {"", CLI_LEFT, CLI_WHOLE}};
    const kopt_result *r = &rows->items[0];
    char date[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, 2);
    char *title = cli_subject_title(s);
    char *words = cli_config_words_in(r->config, s->params);
    line(t, "result", "%lld of subject %lld, %s", (long long)r->id, (long long)s->id, title);
    line(t, "configuration", "%s", words);
    cli_cell(t, CLI_DIM, "outcome");
    cli_cell(t, cli_outcome_style(r->outcome), "%s: %s", kopt_outcome_name(r->outcome),
             cli_outcome_meaning(r->outcome, !isnan(r->max_error)));
    if (r->message[0])
        line(t, "message", "%s", r->message);
    time_lines(c, t, r);
    known_line(t, "registers", r->registers, " a thread");
    known_line(t, "shared", r->shared_bytes, " bytes a group");
    known_line(t, "local", r->local_bytes, " bytes a thread");
    sensor_line(t, "power", r->power_w, "W");
    sensor_line(t, "energy", r->energy_j, "J a launch");
    sensor_line(t, "clock", r->sm_mhz, "MHz");
    sensor_line(t, "temperature", r->temp_c, "C");
    char *throttle = cli_throttle(r, true);
    if (throttle[0])
        line(t, "throttled", "%s", throttle);
    free(throttle);
    line(t, "measured", "%s, run %lld", cli_date(r->wall_us, date), (long long)rows->runs[0]);
    cli_table_print(t, &c->out, 0);
    cli_table_free(t);
    free(words);
    free(title);
    if (r->n_times && r->times_ns)
        print_samples(c, r);
    if (r->log[0])
        print_log(c, r);
}

static int run_result(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct cli_store_common *o = options;
    struct cli_rows rows = {0};
    struct cli_subject subject = {0};
    kopt_error err;
    char hint[CLI_HINT];
    int64_t id = 0;
    if (args->n != 1)
        return cli_usage(c, args->n ? "one result at a time" : "which result?");
    int code = cli_id(c, args->words[0], "result", &id);
    if (code)
        return code;
    kopt_store *s = cli_store_read(c, o, &code);
    if (!s)
        return code;
    kopt_result_filter f = {.id = id, .outcome = -1};
    kopt_status st = cli_rows_get(s, &f, &rows, &err);
    if (st == KOPT_OK && rows.n)
        st = kopt_store_subject(s, rows.subjects[0], cli_subject_keep, &subject, &err);
    if (st != KOPT_OK)
        code = cli_fail(c, &err);
    else if (rows.n == 0)
        code =
            cli_failf(c, KOPT_ENOTFOUND, cli_see(c, "show SUBJECT", "lists its results", hint),
                      "the store has no result %lld", (long long)id);
    else if (o->json)
        json_row(&rows, 0, true);
    else
        print_result(c, &rows, &subject.s);
    cli_rows_free(&rows);
    cli_subject_free(&subject);
    kopt_store_close(s);
    return code;
}

static const struct cli_opt result_opts[] = {CLI_STORE_OPTS};

const struct cli_command cli_cmd_store_result = {
    .name = "result",
    .summary = "show all of one result: every sample, the compiler's output",
    .args = "RESULT",
    .about = "RESULT is a number from kopt store show.",
    .opts = result_opts,
    .n_opts = CLI_LEN(result_opts),
    .options_bytes = sizeof(struct cli_store_common),
    .run = run_result,
};

/* --- failures ----------------------------------------------------------------------------- */

struct group {
    kopt_outcome outcome;
    const char *message; /* of a row */
    const char *config;
    int64_t id;
    size_t n;
};

static int by_size(const void *a, const void *b)
{
    const struct group *x = a;
    const struct group *y = b;
    if (x->outcome != y->outcome)
        return x->outcome < y->outcome ? -1 : 1;
    return x->n == y->n ? 0 : x->n > y->n ? -1 : 1;
}

/* Failures with the same outcome and message; the caller frees it. */
static struct group *group_rows(const struct cli_rows *rows, size_t *n)
{
    struct group *groups = NULL;
    size_t cap = 0;
    *n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const kopt_result *r = &rows->items[i];
        if (r->outcome == KOPT_OUT_OK)
            continue;
        size_t k = 0;
        while (k < *n &&
               (groups[k].outcome != r->outcome || strcmp(groups[k].message, r->message) != 0))
            k++;
        if (k == *n) {
            groups = cli_grow(groups, &cap, *n, sizeof(*groups));
            groups[(*n)++] = (struct group){r->outcome, r->message, r->config, r->id, 0};
        }
        groups[k].n++;
    }
    if (*n)
        qsort(groups, *n, sizeof(*groups), by_size);
    return groups;
}

/* The reason of a group, of a compile error with the place in its log; the caller frees it. */
static char *why(kopt_store *s, const struct group *g)
{
    kopt_result_filter f = {.id = g->id, .outcome = -1};
    struct cli_rows rows = {0};
    char *text = NULL;
    if (g->outcome == KOPT_OUT_COMPILE_ERROR && cli_rows_get(s, &f, &rows, NULL) == KOPT_OK &&
        rows.n)
        text = cli_message(&rows.items[0]);
    cli_rows_free(&rows);
    if (text)
        return text;
    return cli_strdup(g->message[0] ? g->message : kopt_outcome_text(g->outcome));
}

static void print_groups(struct cli *c, kopt_store *s, const struct group *groups, size_t n,
                         const char *order)
{
    static const struct cli_column columns[] = {{"OUTCOME", CLI_LEFT, CLI_WHOLE},
                                                {"", CLI_RIGHT, CLI_WHOLE},
                                                {"WHY, AND ONE OF THEM", CLI_LEFT, CLI_WRAP}};
    struct cli_table *t = cli_table_new(columns, 3);
    char text[CLI_NUM];
    for (size_t i = 0; i < n; i++) {
        const struct group *g = &groups[i];
        char *words = cli_config_words_in(g->config, order);
        char *reason = why(s, g);
        cli_cell(t, cli_outcome_style(g->outcome), "%s", kopt_outcome_name(g->outcome));
        cli_cell(t, CLI_PLAIN, "%s", cli_count((double)g->n, text));
        cli_cell(t, CLI_PLAIN, "%s", reason);
        cli_table_note(t, 2, CLI_DIM, "result %lld: %s", (long long)g->id, words);
        free(reason);
        free(words);
    }
    cli_table_print(t, &c->out, 0);
    cli_table_free(t);
}

static int show_failures(struct cli *c, kopt_store *s, const void *options,
                         const kopt_subject *subject)
{
    const struct cli_store_common *o = options;
    kopt_result_filter f = {.subject = subject->id, .outcome = -1, .newest = 1, .brief = 1};
    struct cli_rows rows;
    kopt_error err;
    size_t n = 0;
    if (cli_rows_get(s, &f, &rows, &err) != KOPT_OK)
        return cli_fail(c, &err);
    struct group *groups = group_rows(&rows, &n);
    for (size_t i = 0; o->json && i < n; i++) {
        struct cli_json j = cli_json_begin(stdout, "failures");
        cli_json_str(&j, "outcome", kopt_outcome_name(groups[i].outcome));
        cli_json_u64(&j, "count", groups[i].n);
        cli_json_str(&j, "message", groups[i].message);
        cli_json_int(&j, "example", groups[i].id);
        cli_json_raw(&j, "config", groups[i].config);
        cli_json_end(&j);
    }
    if (!o->json) {
        print_subject(c, subject);
        if (n)
            print_groups(c, s, groups, n, subject->params);
        else
            cli_print(c, "nothing failed\n");
    }
    free(groups);
    cli_rows_free(&rows);
    return 0;
}

static int run_failures(struct cli *c, const struct cli_args *args, const void *options)
{
    return cli_subject_run(c, args, options, show_failures);
}

const struct cli_command cli_cmd_store_failures = {
    .name = "failures",
    .summary = "show why configurations of a subject failed, grouped by reason",
    .args = "SUBJECT | KERNEL [NAME=VALUE..]",
    .about =
        "Each reason with how many configurations it hit and one of them; kopt store result "
        "has the compiler's whole output.",
    .opts = result_opts,
    .n_opts = CLI_LEN(result_opts),
    .options_bytes = sizeof(struct cli_store_common),
    .complete = CLI_COMPLETE_SUBJECT,
    .run = run_failures,
};
