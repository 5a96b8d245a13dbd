/* SPDX-License-Identifier: MIT */
/* kopt predict: ask a model. */
#include "cli/cmds.h"
#include "cli/json.h"
#include "cli/mem.h"
#include "cli/outside.h"
#include "cli/rows.h"
#include "cli/rules.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>

struct predict_options {
    int64_t top;
    int64_t width;
    bool no_rules;
    const char *device;
    const char *limits;
    bool json;
};

static void show(struct cli *c, const kopt_prediction *p, size_t n)
{
    bool ranked = n && !isnan(p[0].slowdown);
    const struct cli_column columns[] = {
        {ranked ? "EXPECTED TIME" : "PROBABILITY", CLI_RIGHT, CLI_WHOLE},
        {"CONFIGURATION", CLI_LEFT, CLI_WRAP}};
    char text[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, CLI_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        if (ranked)
            cli_cell(t, CLI_PLAIN, "%.3f x", p[i].slowdown);
        else
            cli_cell(t, CLI_PLAIN, "%s", cli_percent(p[i].probability, text));
        cli_cell(t, i ? CLI_PLAIN : CLI_BOLD, "%s", p[i].text);
    }
    cli_table_print(t, &c->out, 0);
    cli_table_free(t);
}

static void json_outside(struct cli_json *j, const kopt_outside *x, size_t n)
{
    cli_json_open(j, "outside", '[');
    for (size_t i = 0; i < n; i++) {
        cli_json_open(j, NULL, '{');
        cli_json_str(j, "field", x[i].field);
        cli_json_str(j, "value", x[i].value);
        cli_json_num(j, "low", x[i].low);
        cli_json_num(j, "high", x[i].high);
        if (x[i].words) {
            cli_json_open(j, "words", '[');
            for (size_t w = 0; w < x[i].n_words; w++)
                cli_json_str(j, NULL, x[i].words[w]);
            cli_json_close(j, ']');
        } else {
            cli_json_str(j, "words", NULL);
        }
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}

/* --- the answer --------------------------------------------------------------------------- */

struct answer {
    const kopt_model *m;
    kopt_prediction *p;
    size_t n;
    kopt_outside *outside;
    size_t n_outside;
};

static void show_json(const struct answer *a)
{
    for (size_t i = 0; i < a->n; i++) {
        struct cli_json j = cli_json_begin(stdout, "prediction");
        cli_json_str(&j, "kernel", kopt_model_kernel(a->m));
        cli_json_u64(&j, "place", i + 1);
        cli_json_num(&j, "probability", a->p[i].probability);
        cli_json_num(&j, "slowdown", a->p[i].slowdown);
        cli_json_raw(&j, "config", a->p[i].config);
        json_outside(&j, a->outside, a->n_outside);
        cli_json_end(&j);
    }
}

static void answer(struct cli *c, const struct answer *a, const struct predict_options *o)
{
    if (o->json)
        show_json(a);
    else
        show(c, a->p, a->n);
    cli_note_outside(c, a->outside, a->n_outside);
    if (a->n < (size_t)o->top)
        cli_note(c, "the model knows no more configurations%s",
                 o->no_rules ? "" : " that are valid for this problem");
}

static int ask(struct cli *c, const struct cli_target *t, const struct predict_options *o)
{
    kopt_model *m = NULL;
    struct answer a = {0};
    kopt_error err = {0};
    kopt_predict_options po;
    kopt_predict_options_init(&po);
    po.top = (size_t)o->top;
    po.width = (size_t)o->width;
    po.unconstrained = o->no_rules;
    po.device = o->device;
    po.limits = o->limits;
    kopt_status st = cli_model_open(c, t->file, &m, &err);
    a.m = m;
    if (st == KOPT_OK)
        st = kopt_predict(m, t->problem, t->n_problem, &po, &a.p, &a.n, &err);
    if (st == KOPT_OK)
        st = kopt_model_outside(m, t->problem, t->n_problem, &a.outside, &a.n_outside, &err);
    int code = st == KOPT_OK ? CLI_EXIT_DONE : cli_fail(c, &err);
    if (st == KOPT_OK)
        answer(c, &a, o);
    kopt_text_free((char *)a.p);
    kopt_text_free((char *)a.outside);
    kopt_model_close(m);
    return code;
}

static int run(struct cli *c, const struct cli_args *args, const void *options)
{
    const struct predict_options *o = options;
    struct cli_target t;
    int code = cli_one_device(c, o->device, o->limits);
    if (code != 0)
        return code;
    if (o->width && o->width < o->top)
        return cli_usage(c, "--width %lld is less than --top %lld", (long long)o->width,
                         (long long)o->top);
    code = cli_target_of(c, args, "the model's file is missing", &t);
    if (code == 0)
        code = ask(c, &t, o);
    cli_free(t.problem);
    return code;
}

static const struct predict_options defaults = {.top = 1};

static const struct cli_opt opts[] = {
    {.name = "top",
     .letter = 'n',
     .kind = CLI_INT,
     .arg = "N",
     .min = 1,
     .max = 4096,
     .offset = offsetof(struct predict_options, top),
     .help = "how many configurations, the best first (default 1)"},
    CLI_ROW_WIDTH(struct predict_options,
                  "of the beam: prefixes that are followed at a time (default: the larger "
                  "of --top and 8)",
                  NULL),
    {.name = "no-rules",
     .kind = CLI_FLAG,
     .offset = offsetof(struct predict_options, no_rules),
     .help = "leave the model's rules aside: what comes out need not be valid"},
    CLI_ROW_JSON(struct predict_options, CLI_JSON_HELP, NULL),
    CLI_ROW_DEVICE(
        struct predict_options,
        "whose limits the rules use (default: those that the model was trained with)",
        "For which device"),
    CLI_ROW_LIMITS(struct predict_options, "the limits by hand: " CLI_LIMITS_BY_HAND, NULL),
};

static const struct cli_example examples[] = {
    {"predict gemm M=4096 N=4096 K=512 --top 5",
     "the five best, by the model of gemm that comes with kopt"},
    {"predict gemm.model M=512 N=512 K=512 --json | jq -c .config",
     "the best one, for a script"},
    {"predict gemm.model M=512 N=512 K=512 --device-limits "
     "max_threads=1024,shared_bytes=49152,cc=80",
     "for a device that is not here"},
};

const struct cli_command cli_cmd_predict = {
    .name = "predict",
    .summary = "ask a model for the configurations of a problem",
    .args = "FILE NAME=VALUE..",
    .about =
        "FILE is a model that kopt train wrote, or the name of one that comes with kopt: "
        "convolution (W H FW FH), gemm (M N K) and softmax (R C), for an NVIDIA H200. NAME=VALUE "
        "gives what the problem is made of; a name that is missing is named in the message, "
        "together with all others. Nothing is measured.\n\n"
        "Every configuration satisfies the rules in the model, unless --no-rules. A ranker "
        "says how many times as long as the first each is expected to take. The probability "
        "of other networks is their own, of the whole configuration. Without --device and "
        "--device-limits the rules are for the device that --device-limits named in training, if "
        "it did; else no maximum of a device binds, and device.cc is 0.",
    .opts = opts,
    .n_opts = CLI_LEN(opts),
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .defaults = &defaults,
    .options_bytes = sizeof(struct predict_options),
    .complete = CLI_COMPLETE_FILE,
    .run = run,
};
