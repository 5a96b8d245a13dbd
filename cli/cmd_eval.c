/* SPDX-License-Identifier: MIT */
/* kopt eval: how good is a model? */
#include "cli/cmds.h"
#include "cli/json.h"
#include "cli/rows.h"
#include "cli/rules.h"
#include "cli/table.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>

/* Below so many problems a share says little, and it is said. */
enum { FEW = 30 };

struct eval_options {
    int part;
    int64_t width;
    int64_t threads;
    struct cli_words where;
    bool json;
    bool problems;
};

struct view {
    struct cli *c;
    bool json;
    const char *part;
    struct cli_progress progress;
};

static const char *const parts[] = {"test", "valid", "train", "all", NULL};
static const unsigned at[KOPT_AT] = {1, 5, 20, 50};
static const unsigned kept[KOPT_AT] = {0, 1, 5, 20};

/* --- start -------------------------------------------------------------------------------- */

static void json_start(const struct view *v, const kopt_eval_start *s)
{
    struct cli_json j = cli_json_begin(stdout, "evaluation");
    cli_json_str(&j, "source", s->source);
    cli_json_str(&j, "kernel", s->kernel);
    cli_json_str(&j, "network", s->network);
    cli_json_str(&j, "part", v->part);
    cli_json_u64(&j, "rows", s->rows);
    cli_json_u64(&j, "left_out", s->left_out);
    cli_json_u64(&j, "skipped", s->skipped);
    cli_json_str(&j, "skipped_why", s->skipped ? s->skipped_why : NULL);
    cli_json_u64(&j, "problems", s->problems);
    cli_json_u64(&j, "known", s->known);
    cli_json_bool(&j, "same_data", s->same_data != 0);
    cli_json_end(&j);
    (void)cli_flush(v->c);
}

static void on_start(void *user, const kopt_eval_start *s)
{
    const struct view *v = user;
    char a[CLI_NUM];
    char b[CLI_NUM];
    if (v->json)
        json_start(v, s);
    cli_note(v->c, "%s: %s row%s of %s, %s problem%s of part '%s'; the baselines know %s",
             s->source, cli_count((double)s->rows, a), s->rows == 1 ? "" : "s", s->kernel,
             cli_count((double)s->problems, b), s->problems == 1 ? "" : "s", v->part,
             cli_count((double)s->known, (char[CLI_NUM]){0}));
    if (s->skipped)
        cli_warn(v->c, "%s row%s cannot be used; the first, %s",
                 cli_count((double)s->skipped, a), s->skipped == 1 ? "" : "s", s->skipped_why);
    if (s->problems > 0 && s->problems < FEW)
        cli_note(v->c, "%zu problem%s few: one standard error of a share is up to %s",
                 s->problems, s->problems == 1 ? " is" : "s are",
                 cli_percent(0.5 / sqrt((double)s->problems), a));
    if (!s->same_data)
        cli_note(v->c, "these are not the rows that the model was trained with");
}

static void on_judging(void *user, const char *name)
{
    struct view *v = user;
    struct cli_field f = {.keep = 1, .style = CLI_PLAIN};
    if (!cli_progress_due(&v->progress))
        return;
    (void)snprintf(f.text, sizeof(f.text), "judging: %s", name);
    cli_progress_draw(&v->progress, &f, 1);
}

static void on_problem(void *user, const kopt_eval_case *x)
{
    (void)user;
    struct cli_json j = cli_json_begin(stdout, "problem");
    cli_json_str(&j, "name", x->name);
    cli_json_str(&j, "problem", x->problem);
    cli_json_u64(&j, "exact_at", x->exact_at);
    cli_json_u64(&j, "canonical_at", x->canonical_at);
    cli_json_open(&j, "kept", '[');
    for (size_t k = 0; x->timed && k < KOPT_AT; k++)
        cli_json_num(&j, NULL, x->kept[k]);
    cli_json_close(&j, ']');
    cli_json_end(&j);
}

/* --- results ------------------------------------------------------------------------------ */

struct rows {
    const kopt_eval_row *rows;
    size_t n;
    struct cli_table *t;
};

static double member(const kopt_eval_row *r, size_t offset)
{
    return *(const double *)(const void *)((const char *)&r->j + offset);
}

/* One line: the measure that stands at `offset` of each judgement. */
static void measure(const struct rows *r, const char *name, size_t offset)
{
    char text[CLI_NUM];
    bool known = false;
    for (size_t i = 0; i < r->n; i++)
        known = known || !isnan(member(&r->rows[i], offset));
    if (!known)
        return;
    cli_cell(r->t, CLI_PLAIN, "%s", name);
    for (size_t i = 0; i < r->n; i++)
        cli_cell(r->t, CLI_PLAIN, "%s", cli_percent(member(&r->rows[i], offset), text));
}

static void measures(const struct rows *r, const char *fmt, const unsigned *numbers,
                     size_t offset)
{
    char name[64];
    for (size_t k = 0; k < KOPT_AT; k++) {
        (void)snprintf(name, sizeof(name), "%s %u", fmt, numbers[k]);
        measure(r, name, offset + k * sizeof(double));
    }
}

static bool canonical_differs(const struct rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < KOPT_AT; k++)
            if (!isnan(r->rows[i].j.canonical[k]) &&
                r->rows[i].j.canonical[k] != r->rows[i].j.exact[k])
                return true;
    return false;
}

#define OF(m) offsetof(kopt_judgement, m)

static void show(struct cli *c, const kopt_eval_row *rows, size_t n)
{
    struct cli_column columns[1 + 8] = {{"", CLI_LEFT, CLI_WHOLE}};
    char text[CLI_NUM];
    for (size_t i = 0; i < n && i < 8; i++)
        columns[1 + i] = (struct cli_column){rows[i].name, CLI_RIGHT, CLI_WHOLE};
    const struct rows r = {rows, n, cli_table_new(columns, 1 + n)};
    measure(&r, "positions, forced", OF(forced));
    measure(&r, "positions, free", OF(free_running));
    measures(&r, "exact, first", at, OF(exact));
    if (canonical_differs(&r))
        measures(&r, "canonical, first", at, OF(canonical));
    measure(&r, "valid", OF(valid));
    measures(&r, "speed kept, measured", kept, OF(kept_mean));
    measures(&r, ".. 5th percentile,", kept, OF(kept_p5));
    cli_cell(r.t, CLI_PLAIN, "%ss a prediction", cli_sign(&c->out, CLI_MICRO));
    for (size_t i = 0; i < n; i++)
        cli_cell(r.t, CLI_PLAIN, "%s", cli_figure(rows[i].j.seconds * 1e6, text));
    cli_table_print(r.t, &c->out, 0);
    cli_table_free(r.t);
}

/* Of rows that searches left behind most predictions have no time. */
static void note_unmeasured(struct cli *c, const kopt_eval_row *rows, size_t n)
{
    char text[CLI_NUM];
    if (n > 0 && rows[0].j.unmeasured > 0)
        cli_note(
            c,
            "%s of the first predictions have no time in the data, which counts as nothing "
            "kept",
            cli_percent(rows[0].j.unmeasured, text));
}

static void json_list(struct cli_json *j, const char *key, const double *values)
{
    cli_json_open(j, key, '[');
    for (size_t k = 0; k < KOPT_AT; k++)
        cli_json_num(j, NULL, values[k]);
    cli_json_close(j, ']');
}

static void show_json(const kopt_eval_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const kopt_judgement *x = &rows[i].j;
        struct cli_json j = cli_json_begin(stdout, "judgement");
        cli_json_str(&j, "name", rows[i].name);
        cli_json_u64(&j, "problems", x->problems);
        cli_json_u64(&j, "answered", x->answered);
        cli_json_num(&j, "forced", x->forced);
        cli_json_num(&j, "forced_nll", x->forced_nll);
        cli_json_num(&j, "free_running", x->free_running);
        json_list(&j, "exact", x->exact);
        json_list(&j, "canonical", x->canonical);
        cli_json_num(&j, "valid", x->valid);
        cli_json_u64(&j, "timed", x->timed);
        cli_json_num(&j, "unmeasured", x->unmeasured);
        json_list(&j, "kept_mean", x->kept_mean);
        json_list(&j, "kept_geometric", x->kept_geometric);
        json_list(&j, "kept_p5", x->kept_p5);
        cli_json_num(&j, "seconds", x->seconds);
        cli_json_end(&j);
    }
}

/* --- the command -------------------------------------------------------------------------- */

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct eval_options *o = options;
    struct view v = {.c = c, .json = o->json, .part = parts[o->part]};
    kopt_eval_row *rows = NULL;
    size_t n = 0;
    kopt_error err = {0};
    if (args->n < 2)
        return cli_usage(c, args->n ? "the data is missing" : "model and data are missing");
    if (args->n > 2)
        return cli_usage(c, "'%s' is one word too many", args->words[2]);
    if (o->problems && !o->json)
        return cli_usage(c, "--problems needs --json");
    kopt_eval_options eo;
    kopt_eval_options_init(&eo);
    char *path = cli_model_path(c, args->words[0]);
    eo.model = path;
    eo.data.path = args->words[1];
    eo.data.where = cli_words(&o->where);
    eo.data.n_where = o->where.n;
    eo.part = v.part;
    eo.width = (size_t)o->width;
    eo.threads = (unsigned)o->threads;
    eo.user = &v;
    eo.start = on_start;
    eo.judging = on_judging;
    eo.problem = o->problems ? on_problem : NULL;
    cli_progress_init(&v.progress, &c->err, c->verbosity < 0);
    kopt_status st = kopt_eval(&eo, &rows, &n, &err);
    if (st == KOPT_EIO)
        cli_model_hint(path, &err);
    free(path);
    cli_progress_clear(&v.progress);
    int code = st == KOPT_OK ? CLI_EXIT_DONE : cli_fail(c, &err);
    if (st == KOPT_OK)
        note_unmeasured(c, rows, n);
    if (st == KOPT_OK && o->json)
        show_json(rows, n);
    else if (st == KOPT_OK)
        show(c, rows, n);
    kopt_text_free((char *)rows);
    return code;
}

static const struct cli_opt opts[] = {
    {.name = "part",
     .letter = 'p',
     .kind = CLI_CHOICE,
     .arg = "PART",
     .choices = parts,
     .offset = offsetof(struct eval_options, part),
     .help = "which problems: test (default), valid, train or all, by the model's own split"},
    CLI_ROW_WHERE(struct eval_options, CLI_WHERE_HELP " (default: as in training)", NULL),
    CLI_ROW_WIDTH(struct eval_options, "of the beam (default 100)", NULL),
    CLI_ROW_THREADS(struct eval_options, "to work with (default: one for each core)", NULL),
    CLI_ROW_JSON(struct eval_options,
                 CLI_JSON_HELP ": type evaluation, then judgement for each column", NULL),
    {.name = "problems",
     .kind = CLI_FLAG,
     .offset = offsetof(struct eval_options, problems),
     .help = "with --json: also a line for each problem and column, type problem"},
};

static const struct cli_example examples[] = {
    {"eval conv1x1.model gfx906_60.db", "on the problems that the model never saw"},
    {"eval conv1x1.model gfx900_56.db --part all", "on another device's database"},
    {"eval conv1x1.model gfx906_60.db --json | jq -c 'select(.type==\"judgement\")|[.name,.exact]'",
     "for a script"},
};

const struct cli_command cli_cmd_eval = {
    .name = "eval",
    .summary = "judge a model by problems that it never saw",
    .args = "FILE DATA",
    .about =
        "FILE is a model that kopt train wrote, DATA as for kopt train. Kernel, rules, rows and "
        "split are those of the training. The model, the same without its rules, the most "
        "frequent configurations and the 15 nearest neighbours answer the same problems:\n\n"
        "  positions, forced   parameters right, given the true ones before; not of a ranker\n"
        "  positions, free     parameters of the first prediction right\n"
        "  exact, first K      the best known configuration is among the first K\n"
        "  canonical, first K  the same, parameters without effect left aside\n"
        "  valid               first predictions that satisfy the rules\n"
        "  speed kept          where times are known: best time over the best time among the\n"
        "                      first K predictions (0: the first, unmeasured); the mean, and\n"
        "                      what 95 % of the problems reach\n\n"
        "A prediction that was never measured keeps nothing; a note has their share. The time of a prediction is one "
        "thread's, for 50 configurations.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .options_bytes = sizeof(struct eval_options),
    .complete = CLI_COMPLETE_FILE,
    .run = run,
};
