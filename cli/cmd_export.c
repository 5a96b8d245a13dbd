/* SPDX-License-Identifier: MIT */
/* kopt export: a model, or its predictions, in other programs' forms. */
#include "cli/cmds.h"
#include "cli/mem.h"
#include "cli/rows.h"
#include "cli/rules.h"
#include "cli/units.h"

#include <stdlib.h>
#include <string.h>

struct export_options {
    const char *onnx;
    const char *miopen;
    const char *solver;
    struct cli_words where;
    int64_t width;
    const char *device;
    const char *limits;
};

/* "MODEL [PROBLEMS] NAME=VALUE.." */
struct words {
    const char *model;
    const char *problems;
    const char **given; /* borrowed words */
    size_t n_given;
};

static int take_words(struct cli *c, const struct cli_args *args, struct words *w)
{
    w->given = cli_alloc(args->n + 1, sizeof(*w->given));
    for (size_t i = 0; i < args->n; i++) {
        const char *word = args->words[i];
        if (strchr(word, '='))
            w->given[w->n_given++] = word;
        else if (!w->model)
            w->model = word;
        else if (!w->problems)
            w->problems = word;
        else
            return cli_usage(c, "'%s' is one word too many", word);
    }
    return w->model ? 0 : cli_usage(c, "the model's file is missing");
}

static int check(struct cli *c, const struct words *w, const struct export_options *o)
{
    if (!o->onnx == !o->miopen)
        return cli_usage(c, o->onnx ? "--onnx and --miopen exclude each other"
                                    : "--onnx FILE or --miopen FILE says what is written");
    if (o->miopen && !w->problems)
        return cli_usage(c, "the file of problems is missing");
    if (o->onnx && (w->problems || w->n_given))
        return cli_usage(c, "'%s' is one word too many: --onnx takes a model alone",
                         w->problems ? w->problems : w->given[0]);
    if (o->onnx && (o->solver || o->where.n || o->width || o->device || o->limits))
        return cli_usage(c, "--solver, --where, --width, --device and --device-limits are for "
                            "--miopen");
    return cli_one_device(c, o->device, o->limits);
}

static void tell(struct cli *c, const kopt_export_count *n, const char *path)
{
    char a[CLI_NUM];
    char b[CLI_NUM];
    if (n->skipped)
        cli_warn(c, "%s problem%s cannot be written; the first, in line %lld: %s",
                 cli_count((double)n->skipped, a), n->skipped == 1 ? "" : "s",
                 (long long)n->skipped_line, n->skipped_why);
    if (n->unseen)
        cli_note(c,
                 "%s problem%s left out: the model learned from no such; the first, in line "
                 "%lld: %s",
                 cli_count((double)n->unseen, a), n->unseen == 1 ? " is" : "s are",
                 (long long)n->unseen_line, n->unseen_why);
    if (n->left_out)
        cli_note(c, "%s row%s left out: another text in a column that counts",
                 cli_count((double)n->left_out, a), n->left_out == 1 ? " is" : "s are");
    cli_note(c, "%s is written: %s problem%s of %s row%s", path,
             cli_count((double)n->written, a), n->written == 1 ? "" : "s",
             cli_count((double)n->read, b), n->read == 1 ? "" : "s");
}

static kopt_status write_miopen(struct cli *c, const kopt_model *m, const struct words *w,
                                const struct export_options *o, kopt_error *err)
{
    kopt_export_count count;
    kopt_export_options eo;
    kopt_export_options_init(&eo);
    eo.solver = o->solver;
    eo.where = cli_words(&o->where);
    eo.n_where = o->where.n;
    eo.given = w->given;
    eo.n_given = w->n_given;
    eo.width = (size_t)o->width;
    eo.device = o->device;
    eo.limits = o->limits;
    kopt_status st = kopt_model_export_miopen(m, w->problems, o->miopen, &eo, &count, err);
    if (st == KOPT_OK)
        tell(c, &count, o->miopen);
    return st;
}

static int write_out(struct cli *c, const struct words *w, const struct export_options *o)
{
    kopt_model *m = NULL;
    kopt_error err = {0};
    kopt_status st = cli_model_open(c, w->model, &m, &err);
    if (st == KOPT_OK && o->miopen) {
        st = write_miopen(c, m, w, o, &err);
    } else if (st == KOPT_OK) {
        st = kopt_model_export_onnx(m, o->onnx, &err);
        if (st == KOPT_OK)
            cli_note(c, "%s is written", o->onnx);
    }
    kopt_model_close(m);
    return st == KOPT_OK ? CLI_EXIT_DONE : cli_fail(c, &err);
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct export_options *o = options;
    struct words w = {0};
    int code = take_words(c, args, &w);
    if (code == 0)
        code = check(c, &w, o);
    if (code == 0)
        code = write_out(c, &w, o);
    cli_free(w.given);
    return code;
}

static const struct cli_opt opts[] = {
    {.name = "onnx",
     .kind = CLI_TEXT,
     .arg = "FILE",
     .complete = CLI_COMPLETE_FILE,
     .offset = offsetof(struct export_options, onnx),
     .help = "write the model as ONNX, for other runtimes",
     .group = "What is written"},
    {.name = "miopen",
     .kind = CLI_TEXT,
     .arg = "FILE",
     .complete = CLI_COMPLETE_FILE,
     .offset = offsetof(struct export_options, miopen),
     .help = "write the first prediction for each of PROBLEMS as a user's performance database "
             "of MIOpen"},
    {.name = "solver",
     .kind = CLI_TEXT,
     .arg = "NAME",
     .offset = offsetof(struct export_options, solver),
     .help = "MIOpen's name of the kernel there (default: the model's)",
     .group = "With --miopen"},
    CLI_ROW_WHERE(struct export_options, CLI_WHERE_HELP " (default: as in training)", NULL),
    CLI_ROW_WIDTH(struct export_options, "of the beam (default 100, as in kopt eval)", NULL),
    CLI_ROW_DEVICE(
        struct export_options,
        "whose limits the rules use (default: none, and rules about a device do not bind)",
        NULL),
    CLI_ROW_LIMITS(struct export_options, "the limits by hand: " CLI_LIMITS_BY_HAND, NULL),
};

static const struct cli_example examples[] = {
    {"export gemm.model --onnx gemm.onnx", "the model, for onnxruntime and others"},
    {"export conv1x1.model gfx906_60.db --miopen gfx906_60.ud.txt",
     "predictions for the problems of a database"},
    {"export conv1x1.model layers.csv --miopen gfx906_60.ud.txt",
     "for those of a table, whose first line has in_channels,in_h,.."},
};

const struct cli_command cli_cmd_export = {
    .name = "export",
    .summary = "write a model, or its predictions, for other programs",
    .args = "MODEL [PROBLEMS [NAME=VALUE..]]",
    .about =
        "MODEL is a file that kopt train wrote. PROBLEMS is one of MIOpen's databases, or CSV "
        "with its columns' names in the first line; what a row does not have is as in training "
        "(--where), else the default of the model's rules. NAME=VALUE gives a field of the "
        "model, or a column, for all of PROBLEMS alike. Problems that have a word which the "
        "model never learned from, or another value than the one that a field always had, are "
        "left out and counted. Every configuration satisfies the rules in the model.\n\n"
        "FILE has its old content until the new one is whole.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .options_bytes = sizeof(struct export_options),
    .complete = CLI_COMPLETE_FILE,
    .run = run,
};
