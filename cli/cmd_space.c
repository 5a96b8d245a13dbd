/* SPDX-License-Identifier: MIT */
/* kopt space: what there is to choose from, and what the rules leave of it. */
#include "cli/cmds.h"
#include "cli/json.h"
#include "cli/mem.h"
#include "cli/rows.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_SHOWN = 16 };

struct space_options {
    const char *device;
    const char *limits;
    bool count;
    bool list;
    int64_t limit; /* 0 = all */
    int64_t sample;
    int64_t seed;
    bool explain;
    const char *check;
    bool json;
};

struct view {
    struct cli *c;
    const struct space_options *o;
    const kopt_kernel *kernel;
    const kopt_space *space;
    size_t n_params;
    const char *file;
};

/* --- what is there ------------------------------------------------------------------------ */

static char *value_text(const kopt_space *s, size_t param, size_t value)
{
    size_t n = kopt_space_value(s, param, value, NULL, 0);
    char *text = cli_alloc(n + 1, 1);
    (void)kopt_space_value(s, param, value, text, n + 1);
    return text;
}

static char *values_text(const struct view *v, size_t param)
{
    size_t n = kopt_space_n_values(v->space, param);
    size_t shown = n > VALUES_SHOWN ? VALUES_SHOWN - 2 : n;
    struct cli_text t = {0};
    for (size_t i = 0; i < shown; i++) {
        char *value = value_text(v->space, param, i);
        cli_text_addf(&t, "%s%s", i ? " " : "", value);
        free(value);
    }
    if (shown < n) {
        char *last = value_text(v->space, param, n - 1);
        cli_text_addf(&t, " %s %s  (%zu values)", cli_sign(&v->c->out, CLI_ELLIPSIS), last, n);
        free(last);
    }
    return t.ptr;
}

static void print_header(const struct view *v)
{
    char problem[512];
    (void)kopt_pairs_text(kopt_space_problem(v->space), problem, sizeof(problem));
    for (char *p = problem; *p; p++)
        if (*p == ',')
            *p = ' ';
    struct cli_term *t = &v->c->out;
    cli_print(v->c, "%s%s%s  %s%s%s\n\n", cli_on(t, CLI_BOLD), kopt_kernel_name(v->kernel),
              cli_off(t, CLI_BOLD), kopt_kernel_language(v->kernel), problem[0] ? "  " : "",
              problem);
}

static void print_params(const struct view *v)
{
    static const struct cli_column columns[] = {{"PARAMETER", CLI_LEFT, CLI_WHOLE},
                                                {"VALUES", CLI_LEFT, CLI_WRAP}};
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    for (size_t i = 0; i < v->n_params; i++) {
        char *values = values_text(v, i);
        cli_cell(t, CLI_BOLD, "%s", kopt_space_param_name(v->space, i));
        cli_cell(t, CLI_PLAIN, "%s", values);
        free(values);
    }
    cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
}

static void print_counts(const struct view *v)
{
    static const struct cli_column columns[] = {
        {"", CLI_LEFT, CLI_WHOLE}, {"", CLI_RIGHT, CLI_WHOLE}, {"", CLI_LEFT, CLI_WHOLE}};
    double all = kopt_space_cartesian(v->space);
    double valid = (double)kopt_space_count(v->space);
    char text[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    cli_cell(t, CLI_PLAIN, "candidates");
    cli_cell(t, CLI_PLAIN, "%s", cli_count(all, text));
    cli_cell(t, CLI_PLAIN, "%s", "");
    cli_cell(t, CLI_PLAIN, "valid");
    cli_cell(t, valid > 0 ? CLI_GREEN : CLI_RED, "%s", cli_count(valid, text));
    cli_cell(t, CLI_PLAIN, "%s", cli_percent(valid / all, text));
    cli_print(v->c, "\n");
    cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
}

/* --- rules -------------------------------------------------------------------------------- */

struct rules {
    const struct view *v;
    struct cli_table *table;
    struct cli_json *json;
    char *emptied; /* the rule after which nothing was left; NULL = none */
    int line;      /* its line; 0 = not known */
};

static void removed_cell(struct cli_table *t, uint64_t n)
{
    char text[CLI_NUM];
    if (n == UINT64_MAX)
        cli_cell(t, CLI_PLAIN, "> 1.8e19");
    else
        cli_cell(t, n ? CLI_PLAIN : CLI_DIM, "%s", cli_count((double)n, text));
}

static void on_rule(void *user, const kopt_rule_info *r)
{
    struct rules *rules = user;
    if (r->emptied) {
        free(rules->emptied);
        rules->emptied = cli_strdup(r->text);
        rules->line = r->line;
    }
    if (rules->json) {
        cli_json_open(rules->json, NULL, '{');
        cli_json_str(rules->json, "rule", r->text);
        cli_json_str(rules->json, "message", r->message[0] ? r->message : NULL);
        cli_json_int(rules->json, "line", r->line);
        if (r->alone == UINT64_MAX)
            cli_json_raw(rules->json, "removes_alone", NULL);
        else
            cli_json_u64(rules->json, "removes_alone", r->alone);
        cli_json_u64(rules->json, "removes_in_turn", r->in_turn);
        cli_json_close(rules->json, '}');
        return;
    }
    struct cli_table *t = rules->table;
    if (r->line > 0)
        cli_cell(t, CLI_PLAIN, "%d", r->line);
    else
        cli_cell(t, CLI_PLAIN, "-");
    removed_cell(t, r->alone);
    removed_cell(t, r->in_turn);
    cli_cell(t, r->emptied ? CLI_RED : CLI_PLAIN, "%s", r->text);
    if (r->message[0])
        cli_table_note(t, 3, CLI_DIM, "%s", r->message);
    if (r->emptied)
        cli_table_note(t, 3, CLI_RED, "after this rule nothing is left");
}

/* The table of rules; `rules` gets which one emptied the space. */
static kopt_status print_rules(const struct view *v, struct rules *rules, kopt_error *err)
{
    static const struct cli_column columns[] = {{"LINE", CLI_RIGHT, CLI_WHOLE},
                                                {"REMOVES ALONE", CLI_RIGHT, CLI_WHOLE},
                                                {"IN TURN", CLI_RIGHT, CLI_WHOLE},
                                                {"RULE", CLI_LEFT, CLI_WRAP}};
    rules->table = cli_table_new(columns, CLI_LEN(columns));
    kopt_status st = kopt_space_explain(v->space, on_rule, rules, err);
    if (st == KOPT_OK && cli_table_rows(rules->table) > 0)
        cli_table_print(rules->table, &v->c->out, 0);
    else if (st == KOPT_OK)
        cli_print(v->c, "no rules\n");
    cli_table_free(rules->table);
    rules->table = NULL;
    return st;
}

/* The line of the file and where the text begins in it; nothing where they cannot be read. */
static void add_excerpt(const char *file, const char *text, kopt_error *err)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = 0;
    FILE *f = fopen(file, "re");
    for (int i = 0; f && i < err->line && n >= 0; i++)
        n = getline(&line, &room, f);
    if (f && n > 0 && (size_t)n < sizeof(err->excerpt)) {
        line[strcspn(line, "\r\n")] = 0;
        const char *at = strstr(line, text);
        (void)snprintf(err->excerpt, sizeof(err->excerpt), "%s", line);
        for (const char *p = line; at && p < at; p++)
            err->column += ((unsigned char)*p & 0xC0U) != 0x80; /* one for each character */
        err->column += at != NULL;
        err->excerpt_column = 1;
    }
    free(line);
    if (f)
        (void)fclose(f);
}

static int empty_space(const struct view *v, const struct rules *rules)
{
    kopt_error err = {.code = KOPT_EFAILED, .line = rules->line};
    if (!rules->emptied)
        return cli_failf(v->c, KOPT_EFAILED, NULL, "no configuration satisfies every rule");
    (void)snprintf(err.message, sizeof(err.message),
                   "no configuration satisfies every rule; the last ones went with '%s'",
                   rules->emptied);
    (void)snprintf(err.hint, sizeof(err.hint),
                   "loosen that rule, or give its parameters more values");
    (void)snprintf(err.file, sizeof(err.file), "%s", v->file);
    add_excerpt(v->file, rules->emptied, &err);
    return cli_fail(v->c, &err);
}

static int show_explain(const struct view *v)
{
    struct rules rules = {.v = v};
    kopt_error err;
    kopt_status st = print_rules(v, &rules, &err);
    int code = st == KOPT_OK ? CLI_EXIT_DONE : cli_fail(v->c, &err);
    if (st == KOPT_OK && kopt_space_count(v->space) == 0)
        code = empty_space(v, &rules);
    free(rules.emptied);
    return code;
}

static int show_all(const struct view *v)
{
    struct rules rules = {.v = v};
    kopt_error err;
    print_header(v);
    print_params(v);
    print_counts(v);
    cli_print(v->c, "\n");
    kopt_status st = print_rules(v, &rules, &err);
    if (st == KOPT_ERANGE) /* the counts above are the answer; only the table is left out */
        cli_note(v->c, "what each rule removes is too much to count: %s", err.message);
    int code = st == KOPT_OK || st == KOPT_ERANGE ? CLI_EXIT_DONE : cli_fail(v->c, &err);
    if (code == CLI_EXIT_DONE && kopt_space_count(v->space) == 0)
        code = empty_space(v, &rules);
    free(rules.emptied);
    return code;
}

/* Through a configuration's JSON, in which numbers are numbers and strings strings. */
static void json_values(const struct view *v, struct cli_json *j, size_t param)
{
    uint32_t *config = cli_alloc(v->n_params, sizeof(*config));
    const char *name = kopt_space_param_name(v->space, param);
    cli_json_open(j, "values", '[');
    for (size_t i = 0; i < kopt_space_n_values(v->space, param); i++) {
        config[param] = (uint32_t)i;
        size_t n = kopt_space_config_json(v->space, config, NULL, 0);
        char *text = cli_alloc(n + 1, 1);
        (void)kopt_space_config_json(v->space, config, text, n + 1);
        const char *at = text;
        kopt_pair pair;
        while (kopt_pair_next(&at, &pair)) {
            if (strlen(name) != pair.name_bytes ||
                memcmp(name, pair.name, pair.name_bytes) != 0)
                continue;
            char *raw =
                cli_strf(pair.quoted ? "\"%.*s\"" : "%.*s", (int)pair.value_bytes, pair.value);
            cli_json_raw(j, NULL, raw);
            free(raw);
        }
        free(text);
    }
    cli_json_close(j, ']');
    free(config);
}

static int json_all(const struct view *v)
{
    kopt_error err;
    struct cli_json j = cli_json_begin(stdout, "space");
    cli_json_str(&j, "kernel", kopt_kernel_name(v->kernel));
    cli_json_str(&j, "language", kopt_kernel_language(v->kernel));
    cli_json_raw(&j, "problem", kopt_space_problem(v->space));
    cli_json_open(&j, "parameters", '[');
    for (size_t i = 0; i < v->n_params; i++) {
        cli_json_open(&j, NULL, '{');
        cli_json_str(&j, "name", kopt_space_param_name(v->space, i));
        json_values(v, &j, i);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    cli_json_num(&j, "candidates", kopt_space_cartesian(v->space));
    cli_json_u64(&j, "valid", kopt_space_count(v->space));
    struct rules rules = {.v = v, .json = &j};
    cli_json_open(&j, "rules", '[');
    kopt_status st = kopt_space_explain(v->space, on_rule, &rules, &err);
    cli_json_close(&j, ']');
    cli_json_end(&j);
    int code = CLI_EXIT_DONE;
    if (st != KOPT_OK && st != KOPT_ERANGE)
        code = cli_fail(v->c, &err);
    else if (kopt_space_count(v->space) == 0)
        code = empty_space(v, &rules);
    free(rules.emptied);
    return code;
}

/* --- configurations ----------------------------------------------------------------------- */

static void print_config(const struct view *v, const uint32_t *config, uint64_t rank,
                         bool ranked)
{
    size_t n = v->o->json ? kopt_space_config_json(v->space, config, NULL, 0)
                          : kopt_space_config_text(v->space, config, NULL, 0);
    char *text = cli_alloc(n + 1, 1);
    if (v->o->json) {
        (void)kopt_space_config_json(v->space, config, text, n + 1);
        struct cli_json j = cli_json_begin(stdout, "config");
        if (ranked)
            cli_json_u64(&j, "rank", rank);
        cli_json_raw(&j, "config", text);
        cli_json_end(&j);
    } else {
        (void)kopt_space_config_text(v->space, config, text, n + 1);
        cli_print(v->c, "%s\n", text);
    }
    free(text);
}

static int list(const struct view *v)
{
    uint64_t n = kopt_space_count(v->space);
    if (v->o->limit > 0 && (uint64_t)v->o->limit < n)
        n = (uint64_t)v->o->limit;
    uint32_t *config = cli_alloc(v->n_params, sizeof(*config));
    kopt_error err;
    int code = CLI_EXIT_DONE;
    for (uint64_t rank = 0; rank < n && code == CLI_EXIT_DONE && !ferror(stdout); rank++) {
        if (kopt_space_at(v->space, rank, config, &err) != KOPT_OK)
            code = cli_fail(v->c, &err);
        else
            print_config(v, config, rank, true);
    }
    free(config);
    return code;
}

static int sample(const struct view *v)
{
    size_t n = (size_t)v->o->sample;
    size_t width = v->n_params ? v->n_params : 1;
    uint32_t *configs = cli_alloc(n * width, sizeof(*configs));
    kopt_error err;
    int code = CLI_EXIT_DONE;
    if (kopt_space_sample(v->space, (uint64_t)v->o->seed, n, configs, &err) != KOPT_OK)
        code = cli_fail(v->c, &err);
    for (size_t i = 0; code == CLI_EXIT_DONE && i < n; i++)
        print_config(v, configs + i * width, 0, false);
    free(configs);
    return code;
}

static int check(const struct view *v)
{
    uint32_t *config = cli_alloc(v->n_params, sizeof(*config));
    char why[512];
    kopt_error err;
    int code = CLI_EXIT_FAILED;
    kopt_status st = kopt_space_config(v->space, v->o->check, config, &err);
    if (st != KOPT_OK) {
        code = cli_fail(v->c, &err);
    } else {
        bool valid = kopt_space_valid(v->space, config, why, sizeof(why)) != 0;
        code = valid ? CLI_EXIT_DONE : CLI_EXIT_FAILED;
        if (v->o->json) {
            struct cli_json j = cli_json_begin(stdout, "check");
            cli_json_bool(&j, "valid", valid);
            cli_json_str(&j, "why", valid ? NULL : why);
            cli_json_end(&j);
        } else {
            cli_print(v->c, valid ? "valid\n" : "not valid: %s\n", why);
        }
    }
    free(config);
    return code;
}

static int count(const struct view *v)
{
    if (v->o->json) {
        struct cli_json j = cli_json_begin(stdout, "count");
        cli_json_num(&j, "candidates", kopt_space_cartesian(v->space));
        cli_json_u64(&j, "valid", kopt_space_count(v->space));
        cli_json_end(&j);
    } else {
        cli_print(v->c, "%llu\n", (unsigned long long)kopt_space_count(v->space));
    }
    return CLI_EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------- */

static int show(const struct view *v)
{
    if (v->o->check)
        return check(v);
    if (v->o->count)
        return count(v);
    if (v->o->list)
        return list(v);
    if (v->o->sample)
        return sample(v);
    if (v->o->json)
        return json_all(v);
    return v->o->explain ? show_explain(v) : show_all(v);
}

static int open_and_show(struct cli *c, const struct cli_target *t,
                         const struct space_options *o)
{
    kopt_kernel *kernel = NULL;
    kopt_space *space = NULL;
    kopt_error err;
    kopt_status st = kopt_kernel_load(t->file, &kernel, &err);
    if (st == KOPT_OK && o->limits)
        st = kopt_space_new_limits(kernel, t->problem, t->n_problem, o->limits, &space, &err);
    else if (st == KOPT_OK)
        st = kopt_space_new(kernel, t->problem, t->n_problem, o->device, &space, &err);
    int code;
    if (st == KOPT_EENV && !o->device && !o->limits) {
        (void)snprintf(err.hint, sizeof(err.hint),
                       "kopt devices says what is missing; or give the numbers by hand: "
                       "--device-limits max_threads=1024,shared_bytes=49152,cc=90");
        code = cli_fail(c, &err);
    } else if (st != KOPT_OK) {
        code = cli_fail(c, &err);
    } else {
        struct view v = {c, o, kernel, space, kopt_space_n_params(space), t->file};
        code = show(&v);
    }
    kopt_space_free(space);
    kopt_kernel_free(kernel);
    return code;
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct space_options *o = options;
    int modes = o->count + o->list + (o->sample > 0) + o->explain + (o->check != NULL);
    if (modes > 1)
        return cli_usage(c,
                         "--count, --list, --sample, --explain and --check exclude each other");
    if (o->limit && !o->list)
        return cli_usage(c, "--limit belongs to --list");
    struct cli_target t;
    int code = cli_one_device(c, o->device, o->limits);
    if (code != 0)
        return code;
    code = cli_target_get(c, args, &t);
    if (code == 0)
        code = open_and_show(c, &t, o);
    cli_free(t.problem);
    return code;
}

static const struct space_options defaults = {.seed = 1};

static const struct cli_opt opts[] = {
    {.name = "count",
     .kind = CLI_FLAG,
     .offset = offsetof(struct space_options, count),
     .help = "print the number of valid configurations alone",
     .group = "What to show"},
    {.name = "list",
     .letter = 'l',
     .kind = CLI_FLAG,
     .offset = offsetof(struct space_options, list),
     .help = "print the valid configurations, one a line"},
    {.name = "limit",
     .letter = 'n',
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1e18,
     .offset = offsetof(struct space_options, limit),
     .help = "the first N of the list"},
    {.name = "sample",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1e6,
     .offset = offsetof(struct space_options, sample),
     .help = "print N valid configurations drawn uniformly"},
    CLI_ROW_SEED(struct space_options, "of the sample (default 1)", NULL),
    {.name = "explain",
     .kind = CLI_FLAG,
     .offset = offsetof(struct space_options, explain),
     .help =
         "print the rules and what each removes: of all candidates alone, and after the rules "
         "above it"},
    {.name = "check",
     .kind = CLI_TEXT,
     .arg = "CONFIG",
     .offset = offsetof(struct space_options, check),
     .help =
         "is this configuration valid? \"BM=64,BN=32,..\"; exit 1 and the rule if it is not"},
    CLI_ROW_JSON(struct space_options, CLI_JSON_HELP, NULL),
    CLI_ROW_DEVICE(struct space_options,
                   "whose limits the rules use (default: the first that fits the kernel)",
                   "For which device"),
    CLI_ROW_LIMITS(struct space_options,
                   "the limits by hand, for a device that is not here: " CLI_LIMITS_BY_HAND,
                   NULL),
};

static const struct cli_example examples[] = {
    {"space gemm.cl M=512 N=512 K=512", "parameters, counts and what each rule removes"},
    {"space gemm.cu M=512 N=512 K=512 --list -n 20", "the first twenty valid configurations"},
    {"space gemm.cu M=512 N=512 K=512 BM=64,128 --count", "how many are left with BM narrowed"},
    {"space gemm.cu M=512 N=512 K=512 --device-limits "
     "max_threads=1024,shared_bytes=49152,cc=90",
     "without the GPU"},
};

const struct cli_command cli_cmd_space = {
    .name = "space",
    .summary = "count, list, sample or explain a kernel's configurations",
    .args = "FILE NAME=VALUE..",
    .about =
        "FILE is a kernel file (CUDA C or OpenCL C with #pragma kopt lines) or a T1 JSON file. "
        "NAME=VALUE gives each size of the problem; NAME=VALUE,VALUE narrows a parameter.\n\n"
        "Nothing is compiled and nothing runs; the space is never held in memory, so it may be "
        "of any size.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .defaults = &defaults,
    .options_bytes = sizeof(struct space_options),
    .complete = CLI_COMPLETE_KERNEL,
    .run = run,
};
