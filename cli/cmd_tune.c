/* SPDX-License-Identifier: MIT */
/* kopt tune: search a kernel's parameters by measurement. */
#include "cli/cmds.h"
#include "cli/mem.h"
#include "cli/outside.h"
#include "cli/paths.h"
#include "cli/rules.h"
#include "cli/signals.h"
#include "cli/target.h"
#include "cli/tune_opts.h"
#include "cli/tune_replay.h"
#include "cli/tune_view.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the signal handler stops; there is one session in the program. */
static kopt_tuner *volatile running;

static void stop_running(void)
{
    kopt_tuner *t = running;
    if (t)
        kopt_tuner_stop(t);
}

/* --- the session -------------------------------------------------------------------------- */

static void fill(kopt_tune_options *to, const struct cli_tune_options *o, struct cli *c,
                 const struct cli_target *t, const char *store)
{
    kopt_tune_options_init(to);
    to->kernel = t->file;
    to->problem = t->problem;
    to->n_problem = t->n_problem;
    to->device = o->device;
    to->store = store;
    to->strategy = o->strategy;
    to->model_top = (unsigned)o->model_top;
    to->command = c->line;
    to->seed = (uint64_t)o->seed;
    to->max_evaluations = o->budget.evaluations;
    to->max_fraction = o->budget.fraction;
    to->max_seconds = o->budget.seconds;
    to->until = o->until;
    to->prior = o->priors.n ? o->priors.words[0] : NULL;
    to->prior_first = (unsigned)o->prior_first;
    to->compilers = (unsigned)o->compilers;
    to->compile_timeout_s = o->compile_timeout;
    to->launch_timeout_s = o->launch_timeout;
    to->min_samples = o->samples.min;
    to->max_samples = o->samples.max;
    to->precision = o->precision;
    to->flush = o->flush ? 0 : -1;
    to->flush_bytes = o->flush_bytes;
    to->check = o->check ? 0 : -1;
    to->fresh = o->fresh;
    to->race = (unsigned)o->race;
    to->memory_bytes = o->memory_bytes;
}

/* What to say below the report, and the exit code. */
static int conclude(struct cli *c, struct cli_tune_view *v, kopt_status st,
                    const kopt_tune_report *r, kopt_error *err)
{
    char text[CLI_NUM];
    if (cli_signals_seen()) {
        if (v->store[0])
            cli_note(c,
                     "interrupted: %s results are in %s; the same command goes on from there",
                     cli_count(r ? (double)r->progress.done : (double)NAN, text), v->store);
        else
            cli_note(c, "interrupted: nothing was saved, since there is no store");
        return CLI_EXIT_INTERRUPTED;
    }
    if (st == KOPT_OK)
        return CLI_EXIT_DONE;
    if (st == KOPT_EFAILED && r && r->subject && !err->hint[0]) {
        (void)snprintf(text, sizeof(text), "failures %lld", (long long)r->subject);
        (void)cli_see(c, text, "shows why", err->hint);
    }
    if (st == KOPT_EDEVICE && r && r->subject && !err->hint[0])
        (void)snprintf(err->hint, sizeof(err->hint),
                       "what was measured is kept; the same command goes on from there");
    return cli_fail(c, err);
}

static int tune(struct cli *c, const kopt_tune_options *to, struct cli_tune_view *v)
{
    kopt_tuner *tuner = NULL;
    const kopt_tune_report *report = NULL;
    kopt_error err = {0};
    cli_signals_catch(
        c, "\nkopt: stopping, and keeping what was measured; once more to exit at once\n",
        stop_running);
    kopt_status st = kopt_tuner_new(to, &tuner, &err);
    if (st != KOPT_OK) {
        cli_progress_clear(&v->progress);
        if (st == KOPT_EIO && to->model)
            cli_model_hint(to->model, &err);
        return cli_signals_seen() ? CLI_EXIT_INTERRUPTED : cli_fail(c, &err);
    }
    running = tuner;
    v->tuner = tuner;
    if (cli_signals_seen()) /* it came while the session was being set up */
        kopt_tuner_stop(tuner);
    st = kopt_tuner_run(tuner, &report, &err);
    running = NULL;
    cli_progress_clear(&v->progress);
    if (report && report->progress.done == 0 && st != KOPT_OK)
        report = NULL; /* it ended before there was anything to report */
    if (report && v->json)
        cli_tune_report_json(v, report);
    else if (report)
        cli_tune_report(v, report);
    (void)cli_flush(c);
    int code = conclude(c, v, st, report, &err);
    kopt_tuner_free(tuner);
    return code;
}

/* What the model says of a problem unlike those that it learned from is worth little. A model
 * that does not open, or sizes that it does not take, the session reports. */
static void note_outside(struct cli *c, const char *model, const struct cli_target *t)
{
    kopt_model *m = NULL;
    kopt_outside *outside = NULL;
    size_t n = 0;
    kopt_error err;
    if (kopt_model_open(model, &m, &err) == KOPT_OK &&
        kopt_model_outside(m, t->problem, t->n_problem, &outside, &n, &err) == KOPT_OK)
        cli_note_outside(c, outside, n);
    kopt_text_free((char *)outside);
    kopt_model_close(m);
}

/* ["M","N","K"]: as the kernel file declares them; the caller frees it. A file that does not
 * load the session reports. */
static char *sizes_of(const char *file)
{
    kopt_kernel *k = NULL;
    kopt_error err;
    struct cli_text t = {0};
    cli_text_adds(&t, "[");
    if (kopt_kernel_load(file, &k, &err) == KOPT_OK)
        for (size_t i = 0; i < kopt_kernel_n_problem(k); i++)
            cli_text_addf(&t, "%s\"%s\"", i ? "," : "", kopt_kernel_problem_name(k, i));
    cli_text_adds(&t, "]");
    kopt_kernel_free(k);
    return t.ptr;
}

/* 0, or the exit code after a usage message. */
static int check_options(struct cli *c, const struct cli_tune_options *o)
{
    if (o->store && o->no_store)
        return cli_usage(c, "--store and --no-store exclude each other");
    if (o->resume && (o->fresh || o->no_store))
        return cli_usage(c, "--resume and %s exclude each other",
                         o->fresh ? "--fresh" : "--no-store");
    if (o->model_top && !o->model)
        return cli_usage(c, "--model-top needs --model");
    if (o->window)
        return cli_usage(c, "--window needs --replay");
    if (o->priors.n > 1)
        return cli_usage(c, "several --prior need --replay");
    if (o->prior_first && o->priors.n && strcmp(o->priors.words[0], "none") == 0)
        return cli_usage(c, "--prior-first and --prior none exclude each other");
    return 0;
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct cli_tune_options *o = options;
    struct cli_target t;
    char *store = NULL;
    kopt_error err;
    if (o->replay)
        return cli_tune_replay(c, args, o);
    int code = check_options(c, o);
    if (code)
        return code;
    code = cli_target_get(c, args, &t);
    if (code == 0 && !o->no_store) {
        store = cli_store_path(c, o->store);
        if (!store)
            code = CLI_EXIT_ENVIRONMENT;
        else if (!o->store && cli_make_folders(store, &err) != KOPT_OK)
            code = cli_fail(c, &err);
    }
    if (code == 0) {
        kopt_tune_options to;
        struct cli_tune_view view;
        cli_tune_view_init(&view, c, o->json);
        view.until = o->until;
        char *sizes = sizes_of(t.file);
        char *cache = o->no_compile_cache ? NULL : cli_compile_cache_path(c);
        char *model = o->model ? cli_model_path(c, o->model) : NULL;
        fill(&to, o, c, &t, store);
        to.compile_cache = cache;
        to.model = model;
        view.order = sizes;
        to.callbacks = cli_tune_view_callbacks(&view);
        if (model)
            note_outside(c, model, &t);
        code = tune(c, &to, &view);
        free(sizes);
        free(cache);
        free(model);
    }
    free(store);
    cli_free(t.problem);
    return code;
}

/* --help: the strategies of this library. */
static void more(struct cli *c)
{
    const char *name;
    const char *summary = "";
    size_t widest = 0;
    for (size_t i = 0; (name = kopt_strategy(i, NULL)) != NULL; i++)
        if (strlen(name) > widest)
            widest = strlen(name);
    cli_print(c, "%sStrategies:%s\n", cli_on(&c->out, CLI_BOLD), cli_off(&c->out, CLI_BOLD));
    for (size_t i = 0; (name = kopt_strategy(i, &summary)) != NULL; i++)
        cli_print(c, "  %-*s  %s\n", (int)widest, name, summary ? summary : "");
    cli_print(c, "\n");
}

static const struct cli_example examples[] = {
    {"tune gemm.cl M=512 N=512 K=512", "on the first device that fits, results in the store"},
    {"tune gemm.cu M=4096 N=4096 K=4096 --budget 10m", "for ten minutes at most"},
    {"tune gemm.cu M=4096 N=4096 K=4096 --budget 25% --seed 7 --strategy random",
     "a quarter of the space, drawn at random"},
    {"tune gemm.cu M=4096 N=4096 K=4096 BM=64,128", "with one parameter narrowed"},
    {"tune gemm.cu M=4096 N=4096 K=4096 --model gemm.model --budget 50",
     "what a model predicts first, then on from there"},
    {"tune gemm.cu M=4096 N=4096 K=4096 --budget 2h --until 2%",
     "stop when less than 2 % is expected to be left to gain"},
    {"tune --replay gemm_A4000.json.gz --strategy random --seed 3",
     "search a recorded space, without a device"},
    {"tune gemm.cl M=512 N=512 K=512 --json | jq -c 'select(.type==\"report\").best.config'",
     "the best configuration, for a script"},
};

const struct cli_command cli_cmd_tune = {
    .name = "tune",
    .summary = "search a kernel's parameters by measurement",
    .args = "FILE NAME=VALUE.. | --replay FILE",
    .about =
        "FILE is a kernel file (CUDA C or OpenCL C with #pragma kopt lines) or a T1 JSON file. "
        "NAME=VALUE gives each size of the problem; NAME=VALUE,VALUE narrows a parameter.\n\n"
        "Every configuration is compiled and run in a process of its own, checked against the "
        "kernel's reference, and written to the store. What is there already is not measured "
        "again: run the same command to go on after a stop, or with a larger budget. The default "
        "configuration is tried first, then what a model predicts (--model) or what was best elsewhere "
        "(--prior); the best few meet again in a final, interleaved race.\n\n"
        "Without --model the results that the store has for the nearest problem of the same kernel, here "
        "or on another device, are the prior; what they are is said at the start, and --prior none leaves them out.\n\n"
        "The report gives medians; the percentage behind a time is half the width of the "
        "median's 95 % confidence interval, over it.\n\n"
        "Ctrl-C stops and keeps everything; once more exits at once.\n\n"
        "With --replay nothing is measured: the search goes through a recorded space, whose "
        "results and costs come from the file, on a simulated clock. It takes milliseconds, "
        "and the same seed gives the same run. Its options are --strategy, --seed, --budget "
        "(without it the evaluations that random search is expected to need), --until, "
        "--prior (also several times), --prior-first, --compilers, --window and --json. kopt "
        "compare makes many such runs.",
    .opts = cli_tune_opts,
    .n_opts = CLI_TUNE_N_OPTS,
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .defaults = &cli_tune_defaults,
    .options_bytes = sizeof(struct cli_tune_options),
    .complete = CLI_COMPLETE_KERNEL,
    .run = run,
    .more = more,
};
