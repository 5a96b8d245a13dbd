/* SPDX-License-Identifier: MIT */
#include "cli/tune_replay.h"
#include "cli/json.h"
#include "cli/mem.h"
#include "cli/recordings.h"
#include "cli/results.h"
#include "cli/table.h"
#include "cli/tune_view.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct view {
    struct cli *c;
    const struct cli_tune_options *o;
    const kopt_recording_info *info;
    size_t n_priors; /* of --prior; "none" is none */
};

/* --- while it goes ------------------------------------------------------------------------ */

static void json_start(const struct view *v)
{
    struct cli_json j = cli_json_begin(stdout, "start");
    cli_json_recording(&j, v->info);
    const struct cli_budget *b = &v->o->budget;
    cli_json_str(&j, "strategy", v->o->strategy);
    if (b->evaluations)
        cli_json_u64(&j, "budget", b->evaluations);
    else if (b->seconds > 0 || b->fraction > 0)
        cli_json_raw(&j, "budget", NULL);
    else
        cli_json_u64(&j, "budget", v->info->budget);
    cli_json_int(&j, "seed", v->o->seed);
    cli_json_int(&j, "compilers", v->o->compilers ? v->o->compilers : 1);
    cli_json_open(&j, "prior", '[');
    for (size_t i = 0; i < v->n_priors; i++)
        cli_json_str(&j, NULL, v->o->priors.words[i]);
    cli_json_close(&j, ']');
    cli_json_end(&j);
}

static void json_step(const kopt_replay_step *s)
{
    struct cli_json j = cli_json_begin(stdout, "result");
    cli_json_u64(&j, "n", s->n);
    cli_json_raw(&j, "config", s->config);
    cli_json_str(&j, "outcome", kopt_outcome_name(s->outcome));
    cli_json_num(&j, "median_ns", s->time_ns);
    cli_json_num(&j, "best_ns", s->best_ns);
    cli_json_num(&j, "clock_s", s->clock_s);
    cli_json_num(&j, "remaining", s->remaining);
    cli_json_end(&j);
}

/* -v: "  12  ok    1.234 ms  best 1.200 ms  3 min 20 s  BM=64 BN=32" */
static void print_step(const struct view *v, const kopt_replay_step *s)
{
    struct cli_term *t = &v->c->err;
    char time[CLI_NUM];
    char best[CLI_NUM];
    char clock[CLI_NUM];
    enum cli_style style = cli_outcome_style(s->outcome);
    char *words = cli_config_spaced(s->config_text);
    (void)cli_time(t, s->time_ns, time);
    (void)cli_time(t, s->best_ns, best);
    (void)fprintf(t->file, "%5llu  %s%-15s%s %*s%s  best %*s%s  %10s  ",
                  (unsigned long long)s->n, cli_on(t, style), kopt_outcome_name(s->outcome),
                  cli_off(t, style), (int)(10 - cli_columns(time)), "", time,
                  (int)(10 - cli_columns(best)), "", best, cli_clock(s->clock_s, clock));
    if (isfinite(s->remaining))
        (void)fprintf(t->file, "%7s to gain  ", cli_percent(s->remaining, clock));
    (void)fprintf(t->file, "%s\n", words);
    free(words);
}

static int on_step(void *user, const kopt_replay_step *s)
{
    const struct view *v = user;
    if (v->c->verbosity > 0)
        print_step(v, s);
    if (v->o->json)
        json_step(s);
    return !v->o->json || cli_flush(v->c);
}

/* --- the report --------------------------------------------------------------------------- */

static void print_title(const struct view *v, const kopt_replay_report *r)
{
    struct cli *c = v->c;
    char a[CLI_NUM];
    char b[CLI_NUM];
    char *words = cli_recording_words(v->info);
    cli_print(c, "%s%s%s, recorded%s%s (%s)\n", cli_on(&c->out, CLI_BOLD), v->info->name,
              cli_off(&c->out, CLI_BOLD), words && words[0] ? " from " : "", words ? words : "",
              v->info->format);
    cli_print(c, "%s configurations, %s ok; %s, seed %lld\n", cli_count((double)v->info->n, a),
              cli_count((double)v->info->by_outcome[KOPT_OUT_OK], b), r->strategy,
              (long long)v->o->seed);
    free(words);
}

/* `at`: which evaluation found it; 0 = it is the optimum. */
static void row(struct cli_table *t, const struct view *v, double ns, uint64_t at,
                const char *config)
{
    char text[CLI_NUM];
    struct cli_unit unit = cli_unit_for(&v->c->out, v->info->best_ns);
    bool found = at > 0;
    char *words = cli_config_spaced(config);
    cli_cell(t, found ? CLI_GREEN : CLI_PLAIN, "%s", found ? "best" : "optimum");
    cli_cell(t, found ? CLI_BOLD : CLI_PLAIN, "%s %s",
             cli_time_in(unit, v->info->best_ns, ns, text), unit.name);
    cli_cell(t, CLI_PLAIN, "%s", found ? cli_percent(ns / v->info->best_ns - 1, text) : "");
    cli_cell(t, CLI_PLAIN, "%s", found ? cli_count((double)at, text) : "");
    cli_cell(t, CLI_PLAIN, "%s", words);
    free(words);
}

static void print_best(const struct view *v, const kopt_replay_report *r)
{
    static const struct cli_column columns[] = {{"", CLI_LEFT, CLI_WHOLE},
                                                {"TIME", CLI_RIGHT, CLI_WHOLE},
                                                {"GAP", CLI_RIGHT, CLI_WHOLE},
                                                {"FOUND AT", CLI_RIGHT, CLI_WHOLE},
                                                {"CONFIGURATION", CLI_LEFT, CLI_WRAP}};
    if (isnan(r->best_ns))
        return;
    struct cli_table *t = cli_table_new(columns, 5);
    row(t, v, r->best_ns, r->best_at, r->best_text);
    row(t, v, v->info->best_ns, 0, v->info->best_text);
    cli_print(v->c, "\n");
    cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
}

static void print_outcomes(const struct view *v, const kopt_replay_report *r)
{
    static const struct cli_column columns[] = {
        {"OUTCOME", CLI_LEFT, CLI_WHOLE}, {"", CLI_RIGHT, CLI_WHOLE}, {"", CLI_LEFT, CLI_CUT}};
    char text[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, 3);
    for (int o = 0; o < KOPT_OUT_COUNT; o++) {
        if (!r->by_outcome[o])
            continue;
        cli_cell(t, cli_outcome_style((kopt_outcome)o), "%s",
                 kopt_outcome_name((kopt_outcome)o));
        cli_cell(t, CLI_PLAIN, "%s", cli_count((double)r->by_outcome[o], text));
        cli_cell(t, CLI_PLAIN, "%s",
                 o == KOPT_OUT_OK ? "has a time" : cli_outcome_meaning((kopt_outcome)o, false));
    }
    if (cli_table_rows(t)) {
        cli_print(v->c, "\n");
        cli_table_print(t, &v->c->out, 0);
    }
    cli_table_free(t);
}

static void print_report(const struct view *v, const kopt_replay_report *r)
{
    struct cli *c = v->c;
    char a[CLI_NUM];
    char b[CLI_NUM];
    print_title(v, r);
    print_best(v, r);
    if (r->near_at)
        cli_print(c, "\nwithin 1 %% after %s of %s evaluations\n",
                  cli_count((double)r->near_at, a), cli_count((double)r->evaluations, b));
    else
        cli_print(c, "\nwithin 1 %% never, in %s evaluation%s\n",
                  cli_count((double)r->evaluations, a), r->evaluations == 1 ? "" : "s");
    if (v->n_priors)
        cli_print(c, "prior     %s configurations of it are in this space\n",
                  cli_count((double)r->prior, a));
    cli_print_ended(c, kopt_end_name(r->ended), r->remaining, v->o->until);
    cli_print(c, "clock     %s, simulated\n", cli_duration(r->clock_s, a));
    print_outcomes(v, r);
}

static void json_report(const struct view *v, const kopt_replay_report *r)
{
    struct cli_json j = cli_json_begin(stdout, "report");
    cli_json_str(&j, "strategy", r->strategy);
    if (r->best && r->best[0]) {
        cli_json_open(&j, "best", '{');
        cli_json_raw(&j, "config", r->best);
        cli_json_num(&j, "median_ns", r->best_ns);
        cli_json_close(&j, '}');
    } else {
        cli_json_raw(&j, "best", NULL);
    }
    cli_json_num(&j, "optimum_ns", v->info->best_ns);
    cli_json_num(&j, "gap", r->gap);
    cli_json_u64(&j, "best_at", r->best_at);
    cli_json_u64(&j, "near_at", r->near_at);
    cli_json_u64(&j, "done", r->evaluations);
    cli_json_open(&j, "outcomes", '{');
    for (int o = 0; o < KOPT_OUT_COUNT; o++)
        cli_json_u64(&j, kopt_outcome_name((kopt_outcome)o), r->by_outcome[o]);
    cli_json_close(&j, '}');
    cli_json_num(&j, "clock_s", r->clock_s);
    cli_json_num(&j, "search_s", r->search_s);
    cli_json_u64(&j, "prior_results", r->prior);
    cli_json_str(&j, "ended", kopt_end_name(r->ended));
    cli_json_num(&j, "remaining", r->remaining);
    cli_json_end(&j);
}

/* --- the command -------------------------------------------------------------------------- */

/* What belongs to a device, a store or measuring has no meaning here. Returns 0, or the exit
 * code after a usage message. */
static int check_options(struct cli *c, const struct cli_args *args,
                         const struct cli_tune_options *o)
{
    const struct {
        bool given;
        const char *name;
    } others[] = {
        {o->device, "--device"},
        {o->store, "--store"},
        {o->no_store, "--no-store"},
        {o->no_compile_cache, "--no-compile-cache"},
        {o->resume, "--resume"},
        {o->fresh, "--fresh"},
        {o->model, "--model"},
        {o->model_top, "--model-top"},
        {o->race, "--race"},
        {o->samples.min, "--samples"},
        {o->precision > 0, "--precision"},
        {!o->flush, "--no-flush"},
        {o->flush_bytes, "--flush-bytes"},
        {!o->check, "--no-check"},
        {o->compile_timeout > 0, "--compile-timeout"},
        {o->launch_timeout > 0, "--launch-timeout"},
        {o->memory_bytes, "--memory"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].given)
            return cli_usage(c, "--replay and %s exclude each other", others[i].name);
    if (args->n)
        return cli_usage(c, "'%s': with --replay there is neither a kernel file nor a size",
                         args->words[0]);
    for (size_t i = 0; i < o->priors.n && o->priors.n > 1; i++)
        if (strcmp(o->priors.words[i], "none") == 0)
            return cli_usage(c, "--prior none and another --prior exclude each other");
    if (o->prior_first && (!o->priors.n || strcmp(o->priors.words[0], "none") == 0))
        return cli_usage(c, "--prior-first needs --prior FILE");
    return 0;
}

static void fill(kopt_replay_options *ro, struct view *v, const struct cli_recordings *priors)
{
    const struct cli_tune_options *o = v->o;
    kopt_replay_options_init(ro);
    ro->strategy = o->strategy;
    ro->seed = (uint64_t)o->seed;
    ro->max_evaluations = o->budget.evaluations;
    ro->max_fraction = o->budget.fraction;
    ro->max_seconds = o->budget.seconds;
    ro->until = o->until;
    ro->window = (unsigned)o->window;
    ro->compilers = (unsigned)o->compilers;
    ro->priors = cli_recordings_list(priors);
    ro->n_priors = priors->n;
    ro->prior_first = (unsigned)o->prior_first;
    ro->step = on_step;
    ro->user = v;
}

static int replay(struct view *v, const kopt_recording *r, const struct cli_recordings *priors)
{
    kopt_replay_options ro;
    kopt_replay_report report;
    kopt_error err;
    v->info = kopt_recording_get(r);
    fill(&ro, v, priors);
    if (v->o->json)
        json_start(v);
    if (kopt_replay(r, &ro, &report, &err) != KOPT_OK)
        return cli_fail(v->c, &err);
    if (v->o->json)
        json_report(v, &report);
    else
        print_report(v, &report);
    bool found = !isnan(report.best_ns);
    kopt_replay_report_free(&report);
    return found ? CLI_EXIT_DONE
                 : cli_failf(v->c, KOPT_EFAILED, NULL, "no configuration that was tried is ok");
}

int cli_tune_replay(struct cli *c, const struct cli_args *args,
                    const struct cli_tune_options *o)
{
    struct view v = {.c = c, .o = o};
    struct cli_recordings space = {0};
    struct cli_recordings priors = {0};
    int code = check_options(c, args, o);
    if (o->priors.n && strcmp(o->priors.words[0], "none") != 0)
        v.n_priors = o->priors.n;
    if (code == 0)
        code = cli_recordings_add(c, &space, o->replay, false);
    for (size_t i = 0; i < v.n_priors && code == 0; i++)
        code = cli_recordings_add(c, &priors, o->priors.words[i], false);
    if (code == 0)
        code = replay(&v, space.list[0], &priors);
    cli_recordings_free(&priors);
    cli_recordings_free(&space);
    return code;
}
