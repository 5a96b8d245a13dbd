/* SPDX-License-Identifier: MIT */
/* kopt store list, runs, best: what has been measured. */
#include "cli/mem.h"
#include "cli/store.h"
#include "cli/table.h"
#include "cli/units.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_opt common_opts[] = {CLI_STORE_OPTS};

/* --- list --------------------------------------------------------------------------------- */

static void json_subject(const kopt_subject *s)
{
    char date[CLI_NUM];
    struct cli_json j = cli_json_begin(stdout, "subject");
    cli_json_int(&j, "id", s->id);
    cli_json_str(&j, "kernel", s->kernel);
    cli_json_str(&j, "kernel_path", s->kernel_path);
    cli_json_str(&j, "kernel_hash", s->kernel_hash);
    cli_json_str(&j, "backend", s->backend);
    cli_json_str(&j, "device", s->device);
    cli_json_str(&j, "arch", s->arch);
    cli_json_str(&j, "driver", s->driver);
    cli_json_str(&j, "compiler", s->compiler);
    cli_json_raw(&j, "problem", s->problem);
    cli_json_int(&j, "results", s->n_results);
    cli_json_int(&j, "ok", s->n_ok);
    cli_json_num(&j, "best_ns", s->best_ns);
    cli_json_str(&j, "last", s->last_us ? cli_date_iso(s->last_us, date) : NULL);
    cli_json_end(&j);
}

static bool one_device(const struct cli_subjects *l)
{
    for (size_t i = 1; i < l->n; i++)
        if (strcmp(l->items[i].s.device, l->items[0].s.device) != 0)
            return false;
    return true;
}

/* What there is room for, from all columns to the fewest. */
enum list_room { ALL, NO_DEVICE, NO_LAST };

static struct cli_table *table_of(struct cli *c, const struct cli_subjects *l,
                                  enum list_room room)
{
    static const struct cli_column all[] = {
        {"ID", CLI_RIGHT, CLI_WHOLE},      {"KERNEL", CLI_LEFT, CLI_CUT},
        {"PROBLEM", CLI_LEFT, CLI_CUT},    {"DEVICE", CLI_LEFT, CLI_WHOLE},
        {"RESULTS", CLI_RIGHT, CLI_WHOLE}, {"OK", CLI_RIGHT, CLI_WHOLE},
        {"BEST", CLI_RIGHT, CLI_WHOLE},    {"LAST", CLI_LEFT, CLI_WHOLE}};
    enum { DEVICE = 3, LAST = 7 };
    struct cli_column columns[CLI_LEN(all)];
    size_t n = 0;
    for (size_t i = 0; i < CLI_LEN(all); i++)
        if ((i != DEVICE || room < NO_DEVICE) && (i != LAST || room < NO_LAST))
            columns[n++] = all[i];
    struct cli_table *t = cli_table_new(columns, n);
    bool apart = room >= NO_DEVICE && !one_device(l);
    char text[CLI_NUM];
    for (size_t i = 0; i < l->n; i++) {
        const kopt_subject *s = &l->items[i].s;
        char *problem = cli_config_words(s->problem);
        cli_cell(t, CLI_BOLD, "%lld", (long long)s->id);
        cli_cell(t, CLI_PLAIN, "%s", s->kernel);
        cli_cell(t, CLI_PLAIN, "%s", problem);
        if (room < NO_DEVICE)
            cli_cell(t, CLI_PLAIN, "%s", s->device);
        cli_cell(t, CLI_PLAIN, "%s", cli_count((double)s->n_results, text));
        cli_cell(t, CLI_PLAIN, "%s", cli_count((double)s->n_ok, text));
        cli_cell(t, CLI_PLAIN, "%s", cli_time(&c->out, s->best_ns, text));
        if (room < NO_LAST)
            cli_cell(t, CLI_PLAIN, "%s", cli_date(s->last_us, text));
        if (apart)
            cli_table_note(t, 1, CLI_DIM, "on %s", s->device);
        free(problem);
    }
    return t;
}

/* On a narrow terminal the device stands above the table where it is the same everywhere, else
 * below its row; then the date goes. */
static void print_subjects(struct cli *c, const struct cli_subjects *l)
{
    size_t width = c->out.width > 0 ? (size_t)c->out.width : SIZE_MAX;
    enum list_room room = ALL;
    struct cli_table *t = table_of(c, l, room);
    while (cli_table_width(t) > width && room < NO_LAST) {
        cli_table_free(t);
        t = table_of(c, l, ++room);
    }
    if (room >= NO_DEVICE && one_device(l)) {
        char *device = cli_clean(l->items[0].s.device, false);
        cli_print(c, "on %s\n", device);
        free(device);
    }
    cli_table_print(t, &c->out, 0);
    cli_table_free(t);
}

/* "[KERNEL] [NAME=VALUE..]" */
static int list_filter(struct cli *c, const struct cli_args *args, const char **kernel,
                       size_t *first_pair)
{
    *kernel = args->n && !strchr(args->words[0], '=') ? args->words[0] : NULL;
    *first_pair = *kernel ? 1 : 0;
    for (size_t i = *first_pair; i < args->n; i++)
        if (!strchr(args->words[i], '='))
            return cli_usage(c, "'%s' is not NAME=VALUE", args->words[i]);
    return 0;
}

static int run_list(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct cli_store_common *o = options;
    const char *kernel = NULL;
    size_t first = 0;
    kopt_error err;
    struct cli_subjects l = {0};
    int code = list_filter(c, args, &kernel, &first);
    if (code)
        return code;
    kopt_store *s = cli_store_read(c, o, &code);
    if (!s)
        return code;
    if (cli_subjects_get(s, kernel, args->words + first, args->n - first, &l, &err) != KOPT_OK)
        code = cli_fail(c, &err);
    else if (o->json)
        for (size_t i = 0; i < l.n; i++)
            json_subject(&l.items[i].s);
    else if (l.n)
        print_subjects(c, &l);
    else
        cli_note(c, args->n ? "nothing in the store fits" : "the store is empty");
    cli_subjects_free(&l);
    kopt_store_close(s);
    return code;
}

static const struct cli_example list_examples[] = {
    {"store list", "everything"},
    {"store list gemm M=512", "of one kernel, for problems with M=512"},
};

const struct cli_command cli_cmd_store_list = {
    .name = "list",
    .summary = "list what was measured",
    .args = "[KERNEL] [NAME=VALUE..]",
    .about = "A subject is a kernel (its exact source, flags and launch) with a problem, its "
             "data, a device and its tools. Each has its own number and its own results.",
    .opts = common_opts,
    .n_opts = CLI_LEN(common_opts),
    .examples = list_examples,
    .n_examples = CLI_LEN(list_examples),
    .options_bytes = sizeof(struct cli_store_common),
    .complete = CLI_COMPLETE_SUBJECT,
    .run = run_list,
};

/* --- runs --------------------------------------------------------------------------------- */

enum { RUN_COLUMNS = 7, STATE_COLUMN = 2, ROOM_FOR_COMMAND = 120 };

struct runs {
    struct cli *c;
    struct cli_table *table;
    bool json;
    bool below; /* a command has a line of its own, below the run's */
};

static double took_s(const kopt_run *r)
{
    return r->begun_us > 0 && r->ended_us > r->begun_us
               ? (double)(r->ended_us - r->begun_us) / 1e6
               : (double)NAN;
}

static int on_run(void *user, const kopt_run *r)
{
    struct runs *runs = user;
    char text[CLI_NUM];
    if (runs->json) {
        struct cli_json j = cli_json_begin(stdout, "run");
        cli_json_int(&j, "id", r->id);
        cli_json_int(&j, "subject", r->subject);
        cli_json_str(&j, "state", r->state);
        cli_json_str(&j, "begun", cli_date_iso(r->begun_us, text));
        cli_json_num(&j, "took_s", took_s(r));
        cli_json_str(&j, "strategy", r->strategy);
        cli_json_int(&j, "seed", r->seed);
        cli_json_str(&j, "host", r->host);
        cli_json_str(&j, "version", r->version);
        cli_json_str(&j, "command", r->command);
        cli_json_raw(&j, "summary", r->summary);
        cli_json_end(&j);
        return 1;
    }
    bool done = strcmp(r->state, "done") == 0;
    cli_cell(runs->table, CLI_BOLD, "%lld", (long long)r->id);
    cli_cell(runs->table, CLI_PLAIN, "%lld", (long long)r->subject);
    cli_cell(runs->table, done ? CLI_GREEN : CLI_YELLOW, "%s", r->state);
    cli_cell(runs->table, CLI_PLAIN, "%s", cli_date(r->begun_us, text));
    cli_cell(runs->table, CLI_PLAIN, "%s", cli_duration(took_s(r), text));
    cli_cell(runs->table, CLI_PLAIN, "%s", r->strategy[0] ? r->strategy : "-");
    if (runs->below)
        cli_table_note(runs->table, STATE_COLUMN, CLI_DIM, "%s", r->command);
    else
        cli_cell(runs->table, CLI_PLAIN, "%s", r->command);
    return 1;
}

static int run_runs(struct cli *c, const struct cli_args *args, const void *options)
{
    static const struct cli_column columns[RUN_COLUMNS] = {
        {"RUN", CLI_RIGHT, CLI_WHOLE},  {"SUBJECT", CLI_RIGHT, CLI_WHOLE},
        {"STATE", CLI_LEFT, CLI_WHOLE}, {"BEGUN", CLI_LEFT, CLI_WHOLE},
        {"TOOK", CLI_RIGHT, CLI_WHOLE}, {"STRATEGY", CLI_LEFT, CLI_WHOLE},
        {"COMMAND", CLI_LEFT, CLI_WRAP}};
    const struct cli_store_common *o = options;
    struct cli_subject subject = {0};
    kopt_error err;
    int code = 0;
    kopt_store *s = cli_store_read(c, o, &code);
    if (!s)
        return code;
    if (args->n)
        code = cli_subject_find(c, s, args, &subject);
    bool below = c->out.width > 0 && c->out.width < ROOM_FOR_COMMAND;
    struct runs runs = {c, cli_table_new(columns, RUN_COLUMNS - below), o->json, below};
    if (code == 0 && kopt_store_runs(s, subject.s.id, on_run, &runs, &err) != KOPT_OK)
        code = cli_fail(c, &err);
    if (code == 0 && cli_table_rows(runs.table))
        cli_table_print(runs.table, &c->out, 0);
    else if (code == 0 && !o->json)
        cli_note(c, "there are no runs");
    cli_table_free(runs.table);
    cli_subject_free(&subject);
    kopt_store_close(s);
    return code;
}

const struct cli_command cli_cmd_store_runs = {
    .name = "runs",
    .summary = "list the sessions that measured, newest first",
    .args = "[SUBJECT | KERNEL [NAME=VALUE..]]",
    .about = "Each run of kopt tune, with how it ended and the command that repeats it.",
    .opts = common_opts,
    .n_opts = CLI_LEN(common_opts),
    .options_bytes = sizeof(struct cli_store_common),
    .complete = CLI_COMPLETE_SUBJECT,
    .run = run_runs,
};

/* --- best --------------------------------------------------------------------------------- */

struct bests {
    struct cli *c;
    bool json;
    struct cli_table *table;
    size_t n;
};

static void best_row(struct bests *b, const kopt_subject *s, const kopt_result *r)
{
    char text[CLI_NUM];
    char spread[CLI_NUM];
    char *words = cli_config_words_in(r->config, s->params);
    b->n++;
    if (b->json) {
        struct cli_json j = cli_json_begin(stdout, "best");
        cli_json_int(&j, "subject", s->id);
        cli_json_str(&j, "kernel", s->kernel);
        cli_json_raw(&j, "problem", s->problem);
        cli_json_str(&j, "device", s->device);
        cli_json_result(&j, r, false);
        cli_json_end(&j);
    } else {
        char *problem = cli_config_words(s->problem);
        cli_cell(b->table, CLI_BOLD, "%lld", (long long)s->id);
        cli_cell(b->table, CLI_PLAIN, "%s", s->device);
        cli_cell(b->table, CLI_PLAIN, "%s", problem);
        cli_cell(b->table, CLI_GREEN, "%s", cli_time(&b->c->out, r->median_ns, text));
        cli_cell(b->table, CLI_DIM, "%s", cli_spread(&b->c->out, r, spread));
        cli_cell(b->table, CLI_PLAIN, "%s", words);
        free(problem);
    }
    free(words);
}

static kopt_status best_of(struct bests *b, kopt_store *s, const kopt_subject *subject,
                           kopt_error *err)
{
    struct cli_rows rows = {0};
    kopt_status st = kopt_store_best(s, subject->id, cli_rows_add, &rows, err);
    if (st == KOPT_OK && rows.n)
        best_row(b, subject, &rows.items[0]);
    cli_rows_free(&rows);
    return st == KOPT_ENOTFOUND ? KOPT_OK : st;
}

/* Nothing was measured for this problem: what kopt_select() would give. */
static int best_nearest(struct cli *c, const struct cli_store_common *o,
                        const struct cli_args *args)
{
    kopt_selector *selector = NULL;
    kopt_error err;
    kopt_selection found = {0};
    char hint[CLI_HINT];
    size_t n = args->n - 1;
    char **names = cli_alloc(n + 1, sizeof(*names));
    int64_t *values = cli_alloc(n + 1, sizeof(*values));
    int code = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        const char *equals = strchr(args->words[i + 1], '=');
        names[i] = cli_strf("%.*s", (int)(equals - args->words[i + 1]), args->words[i + 1]);
        if (!cli_parse_int(equals + 1, &values[i]))
            code = cli_usage(c, "%s: '%s' is no whole number", names[i], equals + 1);
    }
    char *path = cli_store_path(c, o->store);
    if (code == 0 && kopt_selector_open(path, NULL, &selector, &err) != KOPT_OK)
        code = cli_fail(c, &err);
    if (code == 0)
        kopt_select(selector, args->words[0], (const char *const *)names, values, n, &found);
    if (code == 0 && found.how == KOPT_SELECT_NONE) {
        code = cli_failf(c, KOPT_ENOTFOUND, cli_see(c, "list", "shows what there is", hint),
                         "the store has no valid result of kernel '%s'", args->words[0]);
    } else if (code == 0 && o->json) {
        struct cli_json j = cli_json_begin(stdout, "nearest");
        cli_json_raw(&j, "config", found.config);
        cli_json_num(&j, "confidence", found.confidence);
        cli_json_num(&j, "distance", found.distance);
        cli_json_num(&j, "median_ns", found.median_ns);
        cli_json_end(&j);
    } else if (code == 0) {
        char *words = cli_config_words(found.config);
        cli_note(c, "this problem was not measured; the nearest one's best, confidence %.2f:",
                 found.confidence);
        cli_print(c, "%s\n", words);
        free(words);
    }
    kopt_selector_close(selector);
    free(path);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    free(values);
    return code;
}

static int best_all(struct bests *b, kopt_store *s, const struct cli_subjects *l)
{
    kopt_error err;
    for (size_t i = 0; i < l->n; i++)
        if (best_of(b, s, &l->items[i].s, &err) != KOPT_OK)
            return cli_fail(b->c, &err);
    return 0;
}

/* The subjects that the words mean: one by number, or every one of a kernel and problem. */
static int best_subjects(struct cli *c, kopt_store *s, const struct cli_args *args,
                         struct cli_subjects *l)
{
    int64_t id = 0;
    kopt_error err;
    if (cli_parse_int(args->words[0], &id)) {
        l->items = cli_alloc(1, sizeof(*l->items));
        int code = cli_subject_find(c, s, args, &l->items[0]);
        l->n = code == 0;
        return code;
    }
    if (cli_subjects_get(s, args->words[0], args->words + 1, args->n - 1, l, &err) != KOPT_OK)
        return cli_fail(c, &err);
    return 0;
}

static int run_best(struct cli *c, const struct cli_args *args, const void *options)
{
    static const struct cli_column columns[] = {
        {"ID", CLI_RIGHT, CLI_WHOLE},   {"DEVICE", CLI_LEFT, CLI_CUT_FIRST},
        {"PROBLEM", CLI_LEFT, CLI_CUT}, {"TIME", CLI_RIGHT, CLI_WHOLE},
        {"", CLI_LEFT, CLI_WHOLE},      {"CONFIGURATION", CLI_LEFT, CLI_WRAP}};
    const struct cli_store_common *o = options;
    struct cli_subjects l = {0};
    int code = cli_need_subject(c, args);
    if (code)
        return code;
    kopt_store *s = cli_store_read(c, o, &code);
    if (!s)
        return code;
    code = best_subjects(c, s, args, &l);
    struct bests b = {c, o->json, cli_table_new(columns, CLI_LEN(columns)), 0};
    if (code == 0)
        code = best_all(&b, s, &l);
    if (code == 0 && b.n && !o->json)
        cli_table_print(b.table, &c->out, 0);
    bool by_number = l.n == 1 && args->n == 1 &&
                     strspn(args->words[0], "0123456789") == strlen(args->words[0]);
    if (code == 0 && b.n == 0)
        code = by_number ? cli_failf(c, KOPT_ENOTFOUND, NULL, "subject %s has no valid result",
                                     args->words[0])
                         : best_nearest(c, o, args);
    cli_table_free(b.table);
    cli_subjects_free(&l);
    kopt_store_close(s);
    return code;
}

static const struct cli_example best_examples[] = {
    {"store best gemm M=512 N=512 K=512", "on every device where it was measured"},
    {"store best 3 --json | jq .config", "of subject 3, for a script"},
};

const struct cli_command cli_cmd_store_best = {
    .name = "best",
    .summary = "show the best configuration of a kernel and problem",
    .args = "SUBJECT | KERNEL [NAME=VALUE..]",
    .about =
        "The winner of the newest final race where there was one, or what was measured after it "
        "and is clearly faster; else the smallest median. "
        "For a problem that was never measured it gives the best of the nearest one, with a "
        "stated confidence, as kopt_select() does in a program.",
    .opts = common_opts,
    .n_opts = CLI_LEN(common_opts),
    .examples = best_examples,
    .n_examples = CLI_LEN(best_examples),
    .options_bytes = sizeof(struct cli_store_common),
    .complete = CLI_COMPLETE_SUBJECT,
    .run = run_best,
};
