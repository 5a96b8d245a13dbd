/* SPDX-License-Identifier: MIT */
/* kopt train: from measured configurations to a model that predicts them. */
#include "cli/cmds.h"
#include "cli/mem.h"
#include "cli/rows.h"
#include "cli/rules.h"
#include "cli/signals.h"
#include "cli/train_view.h"
#include "cli/units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct train_options {
    const char *kernel;
    const char *rules;
    bool no_rules;
    struct cli_words where;
    struct cli_words also;
    struct cli_words params;
    const char *limits;
    struct cli_words group;
    int64_t fold;
    const char *network;
    const char *out;
    int64_t nets;
    int64_t trees; /* below 0: not given */
    int64_t hidden;
    int64_t embed;
    int64_t layers;
    int cell;
    int score;
    double dropout; /* below 0: not given, as below */
    int64_t seed;
    int64_t epochs;
    int64_t patience;
    int64_t batch;
    double rate;
    double smoothing;
    double unknown;
    double near_best;
    double extra_weight;
    int64_t repeat;
    int64_t threads;
    bool learn_valid;
    bool resume;
    bool json;
};

/* --- the training ------------------------------------------------------------------------- */

static void on_start(void *user, const kopt_train_start *s)
{
    cli_train_start(user, s);
}

static int on_epoch(void *user, const kopt_epoch *e)
{
    cli_train_epoch(user, e);
    return !cli_signals_seen();
}

/* 0 stands for the default there, below 0 for none. */
static double or_default(double given)
{
    return given < 0 ? 0 : given > 0 ? given : -1;
}

static kopt_train_options fill(const struct train_options *o, const struct cli_args *args,
                               const char *rules)
{
    kopt_train_options to;
    kopt_train_options_init(&to);
    to.data = (kopt_data_options){.path = args->words[0],
                                  .kernel = o->kernel,
                                  .rules = rules,
                                  .where = cli_words(&o->where),
                                  .n_where = o->where.n,
                                  .params = cli_words(&o->params),
                                  .n_params = o->params.n,
                                  .also = cli_words(&o->also),
                                  .n_also = o->also.n,
                                  .more = args->words + 1,
                                  .n_more = args->n - 1,
                                  .limits = o->limits,
                                  .group = cli_words(&o->group),
                                  .n_group = o->group.n,
                                  .fold = (unsigned)o->fold};
    to.network = o->network;
    to.out = o->out;
    to.nets = (unsigned)o->nets;
    to.trees = o->trees < 0 ? 0 : o->trees > 0 ? (int)o->trees : -1;
    to.seed = (uint64_t)o->seed;
    to.threads = (unsigned)o->threads;
    to.epochs = (unsigned)o->epochs;
    to.patience = (unsigned)o->patience;
    to.batch = (unsigned)o->batch;
    to.rate = o->rate;
    to.dropout = or_default(o->dropout);
    to.smoothing = or_default(o->smoothing);
    to.unknown = or_default(o->unknown);
    to.near_best = or_default(o->near_best);
    to.extra_weight = o->extra_weight;
    to.repeat = (unsigned)o->repeat;
    to.hidden = (unsigned)o->hidden;
    to.embed = (unsigned)o->embed;
    to.layers = (unsigned)o->layers;
    to.cell = o->cell;
    to.score = o->score;
    to.learn_valid = o->learn_valid;
    to.resume = o->resume;
    to.start = on_start;
    to.epoch = on_epoch;
    return to;
}

static int train(struct cli *c, const struct train_options *o, const struct cli_args *args,
                 const char *rules)
{
    struct cli_train_view view;
    kopt_error err = {0};
    kopt_train_options to = fill(o, args, rules);
    char *partial = cli_strf("%s.partial", o->out);
    bool begun = access(partial, F_OK) == 0;
    if (o->resume && !begun)
        cli_note(c, "there is no %s to go on from: from the start", partial);
    if (!o->resume && begun)
        cli_note(c,
                 "%s, of a training that was stopped, is begun anew; --resume goes on from it",
                 partial);
    free(partial);
    cli_train_view_init(&view, c, o->json, o->out);
    to.user = &view;
    cli_signals_catch(c,
                      "\nkopt: stopping after this epoch, and keeping what was learned; once "
                      "more to exit at once\n",
                      NULL);
    kopt_status st = kopt_train(&to, &err);
    cli_progress_clear(&view.progress);
    if (st == KOPT_OK || st == KOPT_EINTR)
        cli_train_end(&view, st == KOPT_EINTR);
    (void)cli_flush(c);
    if (st == KOPT_EINTR) {
        cli_note(c, "interrupted: %s %s; the same command with --resume goes on from there",
                 o->out, view.spares ? "is left as it was" : "has what was learned so far");
        return CLI_EXIT_INTERRUPTED;
    }
    if (st != KOPT_OK)
        return cli_fail(c, &err);
    cli_note(c, "%s is written; kopt eval says how good it is", o->out);
    return CLI_EXIT_DONE;
}

/* The rules that --rules names, else those that come with kopt for the kernel, else NULL; a
 * code that is not 0 after a message. */
static int find_rules(struct cli *c, const struct train_options *o, char **rules)
{
    *rules = NULL;
    if (o->rules) {
        *rules = cli_rules_path(c, o->rules);
        return *rules ? 0 : CLI_EXIT_INPUT;
    }
    if (o->kernel && !o->no_rules)
        *rules = cli_built_in_rules(c, o->kernel);
    if (*rules)
        cli_note(c, "with the rules that are built in for %s; --no-rules leaves them aside",
                 o->kernel);
    return 0;
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct train_options *o = options;
    char *rules;
    if (args->n == 0)
        return cli_usage(c, "the file of measured configurations is missing");
    if (!o->out)
        return cli_usage(c, "-o FILE is missing: where to write the model");
    if (o->rules && o->no_rules)
        return cli_usage(c, "--rules and --no-rules exclude each other");
    int code = find_rules(c, o, &rules);
    if (code == 0)
        code = train(c, o, args, rules);
    free(rules);
    return code;
}

/* --help: the networks of this library. */
static void more(struct cli *c)
{
    const char *name;
    const char *about = "";
    cli_print(c, "%sModels:%s\n", cli_on(&c->out, CLI_BOLD), cli_off(&c->out, CLI_BOLD));
    for (size_t i = 0; (name = kopt_network(i, &about)) != NULL; i++)
        cli_print(c, "  %-10s  %s\n", name, about);
    cli_print(c, "\n");
}

/* --- the table ---------------------------------------------------------------------------- */

#define AT(field) offsetof(struct train_options, field)

static const struct train_options defaults = {
    .trees = -1, .dropout = -1, .smoothing = -1, .unknown = -1, .near_best = -1};

static const char *const cells[] = {"lstm", "gru", NULL};
static const char *const scores[] = {"dot", "additive", NULL};

static const struct cli_opt opts[] = {
    {.name = "kernel",
     .letter = 'k',
     .kind = CLI_TEXT,
     .arg = "NAME",
     .offset = AT(kernel),
     .help = "kernel or solver whose rows to learn from (default: the rules' name, else the "
             "only one there is)",
     .group = "Data"},
    {.name = "rules",
     .letter = 'r',
     .kind = CLI_TEXT,
     .arg = "FILE",
     .offset = AT(rules),
     .complete = CLI_COMPLETE_FILE,
     .help = "rules file or kernel file: which columns are problem and parameters, and what "
             "every prediction satisfies; or the name of rules that come with kopt (default: "
             "those for --kernel, where there are some)"},
    {.name = "no-rules",
     .kind = CLI_FLAG,
     .offset = AT(no_rules),
     .help = "do not look for built-in rules"},
    CLI_ROW_WHERE(struct train_options, CLI_WHERE_HELP, NULL),
    {.name = "also",
     .kind = CLI_CUSTOM,
     .arg = "COLUMN=TEXT",
     .offset = AT(also),
     .parse = cli_parse_where,
     .help =
         "let the rows that have this text instead of --where's help in training; again for "
         "more"},
    {.name = "param",
     .kind = CLI_CUSTOM,
     .arg = "NAME",
     .offset = AT(params),
     .parse = cli_parse_word,
     .help = "without rules, a column that is a parameter; again for each"},
    CLI_ROW_LIMITS(struct train_options,
                   "of the device that was measured, where the rules use them: "
                   "max_threads=1024,..; without it (a store does not say it) no maximum "
                   "binds, and device.cc is 0",
                   NULL),
    {.name = "group",
     .kind = CLI_CUSTOM,
     .arg = "EXPR",
     .offset = AT(group),
     .parse = cli_parse_word,
     .help = "keep problems with equal values of this expression on one side of the split, "
             "such as 'min(C,K)'; again for more",
     .group = "Split"},
    {.name = "fold",
     .kind = CLI_INT,
     .arg = "N",
     .min = 0,
     .max = 9,
     .offset = AT(fold),
     .help =
         "which tenth of the problems is for tests; the next one is for validation (default "
         "0)"},
    {.name = "model",
     .letter = 'm',
     .kind = CLI_TEXT,
     .arg = "NAME",
     .offset = AT(network),
     .complete = CLI_COMPLETE_NETWORK,
     .help =
         "kind of network, see below, or two that translate, such as factored+attention, of "
         "which the second makes a third of the networks (default: ranker where most problems "
         "have times of many configurations, else the first)",
     .group = "Model"},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_TEXT,
     .arg = "FILE",
     .offset = AT(out),
     .complete = CLI_COMPLETE_FILE,
     .help = "where to write the model"},
    {.name = "nets",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = CLI_NETS_MAX,
     .offset = AT(nets),
     .help =
         "networks whose answers are averaged (default: factored 5, ranker 10, two kinds 8, others 1)"},
    {.name = "trees",
     .kind = CLI_INT,
     .arg = "N",
     .min = 0,
     .max = 1024,
     .offset = AT(trees),
     .help = "randomised trees that answer beside the networks, for each parameter (default: "
             "factored and ranker 30, others none)"},
    {.name = "hidden",
     .kind = CLI_INT,
     .arg = "N",
     .min = 2,
     .max = 8192,
     .offset = AT(hidden),
     .help = "units of a layer, an even number (default: the kind's own, as below)"},
    {.name = "embed",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 8192,
     .offset = AT(embed),
     .help = "numbers that a token becomes; not of a ranker"},
    {.name = "layers",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 16,
     .offset = AT(layers),
     .help = "layers, of factored and ranker"},
    {.name = "cell",
     .kind = CLI_CHOICE,
     .arg = "KIND",
     .choices = cells,
     .offset = AT(cell),
     .help = "of recurrent layers: lstm (default) or gru"},
    {.name = "score",
     .kind = CLI_CHOICE,
     .arg = "KIND",
     .choices = scores,
     .offset = AT(score),
     .help = "of attention (attention, hybrid1, hybrid2): dot (default) or additive"},
    {.name = "dropout",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 0,
     .max = 0.95,
     .offset = AT(dropout),
     .help = "share of units that are left out while learning"},
    CLI_ROW_SEED(struct train_options,
                 "the same data, options and seed give the same model (default 1)", "Training"),
    {.name = "epochs",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1e6,
     .offset = AT(epochs),
     .help = "passes over the data, at most, for each network (default 60)"},
    {.name = "patience",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1e6,
     .offset = AT(patience),
     .help =
         "epochs without a better validation loss before a network is done (default 12; ranker: no end)"},
    {.name = "batch",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1e6,
     .offset = AT(batch),
     .help = "problems of a step (default 128; ranker 8)"},
    {.name = "rate",
     .kind = CLI_NUMBER,
     .arg = "R",
     .min = 1e-9,
     .max = 1e30,
     .offset = AT(rate),
     .help = "of learning (default 0.002; ranker 0.003)"},
    {.name = "smoothing",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 0,
     .max = 0.9,
     .offset = AT(smoothing),
     .help = "share of a label that goes to the other values (default 0.05); not of a ranker"},
    {.name = "unknown",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 0,
     .max = 0.9,
     .offset = AT(unknown),
     .help = "share of a problem's numbers that are taken for unknown ones, so that a network "
             "learns to do without (default 0.02; more where --group keeps whole groups of "
             "problems for tests)"},
    {.name = "near-best",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 0,
     .max = 10,
     .offset = AT(near_best),
     .help = "learn configurations within this share of a problem's best time, too, the slower "
             "the less (default 10%); not of a ranker"},
    {.name = "extra-weight",
     .kind = CLI_NUMBER,
     .arg = "P",
     .min = 0.001,
     .max = 1,
     .offset = AT(extra_weight),
     .help = "what a row that only helps counts beside one of DATA (default 1)"},
    {.name = "repeat",
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 1000,
     .offset = AT(repeat),
     .help = "how often a problem is drawn in an epoch, each time with one of these "
             "configurations (default 8 where times are known, else 1); not of a ranker"},
    CLI_ROW_THREADS(
        struct train_options,
        "to work with; the model is the same with any number (default: one for each core)",
        NULL),
    {.name = "learn-validation",
     .kind = CLI_FLAG,
     .offset = AT(learn_valid),
     .help = "learn from the problems for validation, too: in the end, when the number of "
             "epochs is known"},
    {.name = "resume",
     .kind = CLI_FLAG,
     .offset = AT(resume),
     .help =
         "go on where the same command was stopped, from FILE.partial; the model is then the "
         "same as in one go"},
    CLI_ROW_JSON(struct train_options,
                 CLI_JSON_HELP ": type training, then epoch for each, then trained", "Output"),
};

static const struct cli_example examples[] = {
    {"train gfx906_60.db --kernel ConvAsm1x1U --where data_type=FP32 -o conv1x1.model",
     "from MIOpen's database, with the rules that come with kopt"},
    {"train gfx906_60.db gfx900_56.db --kernel ConvAsm1x1U --where data_type=FP32 --also "
     "data_type=FP16 -o conv1x1.model",
     "where another GPU's rows and those of another type help"},
    {"train kopt.db --rules gemm.cu --device-limits "
     "max_threads=1024,shared_bytes=232448,compute_units=132,cc=90 -o gemm.model",
     "from kopt's own store"},
    {"train times.csv --param BM --param BN -o tiles.model", "from a table without rules"},
    {"train gfx906_60.db --kernel ConvAsm1x1U --group 'min(in_channels,out_channels)' --group "
     "'max(in_channels,out_channels)' --model hybrid2 -o hard.model",
     "with whole channel pairs held out, by the best of the paper's networks"},
};

const struct cli_command cli_cmd_train = {
    .name = "train",
    .summary = "learn to predict a kernel's parameters from measured configurations",
    .args = "DATA [MORE..] -o FILE",
    .about =
        "DATA is kopt's store, a MIOpen performance database (SQLite or text), T4 or CSV; its "
        "kind is told from its content. A tenth of the problems is kept for tests, another for "
        "validation, both by a hash of the problem; the model's file remembers which, so that "
        "kopt eval judges by what the model never saw.\n\n"
        "MORE are files of the same kernel, of another device perhaps, whose rows only help in "
        "training: no test has them, and none is of a problem that tests or validation have. "
        "The field 'source' tells the files apart by their names; NAME=FILE gives one another "
        "name. --also does the same for other texts of a column.\n\n"
        "Where times are known, a ranker learns all of them, other networks every configuration "
        "that is nearly as fast as the best; parameters without effect are put in their "
        "canonical form; rows that cannot be used are counted and the first is named.\n\n"
        "In the table, LOSS and VALIDATION are the losses of the best epoch, and RIGHT is of "
        "the problems for validation: of a ranker the share of those whose best configuration it "
        "puts first, of others the share of parameters that are right, given the true ones "
        "before. kopt eval says more.\n\n"
        "FILE is written at the end, at once. Until then FILE.partial keeps the state of the "
        "training. Ctrl-C stops after the running epoch; once more exits at once. What was learned by "
        "then is written, but never over a model that was there before.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .defaults = &defaults,
    .options_bytes = sizeof(struct train_options),
    .complete = CLI_COMPLETE_FILE,
    .run = run,
    .more = more,
};
