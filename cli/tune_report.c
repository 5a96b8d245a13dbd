/* SPDX-License-Identifier: MIT */
/* The end of a tuning session, for people and for programs. */
#include "cli/mem.h"
#include "cli/results.h"
#include "cli/table.h"
#include "cli/tune_view.h"
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TIED_SHOWN = 5 };

/* --- text --------------------------------------------------------------------------------- */

static void print_title(struct cli_tune_view *v)
{
    struct cli *c = v->c;
    char *problem = cli_config_words_in(v->problem, v->order);
    cli_print(c, "%s%s%s%s%s on %s (%s)\n", cli_on(&c->out, CLI_BOLD), v->kernel,
              cli_off(&c->out, CLI_BOLD), problem[0] ? " " : "", problem, v->device_name,
              v->device);
    free(problem);
}

static bool is_there(const kopt_result *r)
{
    return r->config && r->config[0];
}

static void row(struct cli_tune_view *v, struct cli_table *t, const kopt_tune_report *r,
                bool best)
{
    const kopt_result *x = best ? &r->best : &r->first;
    const struct cli_term *term = &v->c->out;
    char text[CLI_NUM];
    bool ok = x->outcome == KOPT_OUT_OK;
    double smallest = r->best.median_ns;
    struct cli_unit unit = cli_unit_for(term, smallest);
    cli_cell(t, best ? CLI_GREEN : CLI_PLAIN, best ? "best" : "default");
    if (ok)
        cli_cell(t, best ? CLI_BOLD : CLI_PLAIN, "%s %s",
                 cli_time_in(unit, smallest, x->median_ns, text), unit.name);
    else
        cli_cell(t, CLI_RED, "%s", kopt_outcome_name(x->outcome));
    cli_cell(t, CLI_DIM, "%s", ok ? cli_spread(term, x, text) : "");
    for (size_t i = 0; i < r->n_metrics; i++)
        cli_cell(t, CLI_PLAIN, "%s",
                 cli_figure(best ? r->metrics[i].best : r->metrics[i].first, text));
    const char *config = best ? r->best_text : r->first_text;
    char *words = cli_config_spaced(config ? config : "");
    cli_cell(t, CLI_PLAIN, "%s", words);
    free(words);
}

static void print_best(struct cli_tune_view *v, const kopt_tune_report *r)
{
    size_t n = 4 + r->n_metrics;
    struct cli_column *columns = cli_alloc(n, sizeof(*columns));
    columns[0] = (struct cli_column){"", CLI_LEFT, CLI_WHOLE};
    columns[1] = (struct cli_column){"TIME", CLI_RIGHT, CLI_WHOLE};
    columns[2] = (struct cli_column){"", CLI_LEFT, CLI_WHOLE};
    for (size_t i = 0; i < r->n_metrics; i++)
        columns[3 + i] = (struct cli_column){r->metrics[i].name, CLI_RIGHT, CLI_WHOLE};
    columns[n - 1] = (struct cli_column){"CONFIGURATION", CLI_LEFT, CLI_WRAP};
    struct cli_table *t = cli_table_new(columns, n);
    cli_print(v->c, "\n");
    row(v, t, r, true);
    if (is_there(&r->first))
        row(v, t, r, false);
    cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
    free(columns);
}

static void print_speedup(struct cli_tune_view *v, const kopt_tune_report *r)
{
    struct cli *c = v->c;
    const char *times = cli_sign(&c->out, CLI_TIMES);
    bool same = is_there(&r->first) && strcmp(r->best_text, r->first_text) == 0;
    if (same) {
        cli_print(c, "\nspeed-up  none: the default is the best\n");
    } else if (!r->best.race && r->interrupted) {
        cli_print(c, "\nspeed-up  not known: stopped before the final race\n");
    } else if (r->speedup > 0) {
        cli_print(c, "\nspeed-up  %s%.2f%s%s over the default", cli_on(&c->out, CLI_GREEN),
                  r->speedup, times, cli_off(&c->out, CLI_GREEN));
        if (r->speedup_low > 0 && r->speedup_high > 0)
            cli_print(c, ", 95 %% interval %.2f to %.2f", r->speedup_low, r->speedup_high);
        cli_print(c, "\n");
    }
    for (size_t i = 0; i < r->n_tied && i < TIED_SHOWN; i++) {
        char *words = cli_config_spaced(r->tied[i]);
        cli_print(c, "%s%s%s\n",
                  i                        ? "          "
                  : same || r->speedup > 0 ? "tied with "
                                           : "\ntied with ",
                  words, strcmp(r->tied[i], r->first_text) == 0 ? "  (the default)" : "");
        free(words);
    }
    if (r->n_tied > TIED_SHOWN)
        cli_print(c, "          and %zu more\n", r->n_tied - TIED_SHOWN);
}

/* The best is .. */
static const char *source_of(const kopt_tune_report *r)
{
    return strcmp(r->best_from, "default") == 0 ? "the default"
           : strcmp(r->best_from, "prior") == 0 ? "from the prior"
                                                : "from the search";
}

/* Where the best came from, and what trusting the model would have kept. */
static void print_model(struct cli_tune_view *v, const kopt_tune_report *r)
{
    struct cli *c = v->c;
    char share[CLI_NUM];
    if (v->prior_first)
        cli_print(c, "prior     the best is %s\n", source_of(r));
    if (v->predictions == 0)
        return;
    if (r->best_rank)
        cli_print(c, "model     the best is its prediction %llu of %llu",
                  (unsigned long long)r->best_rank, (unsigned long long)v->predictions);
    else
        cli_print(c, "model     the best is %s", source_of(r));
    if (r->best_rank == 1)
        cli_print(c, "\n");
    else if (!is_there(&r->predicted))
        cli_print(c, "; the first prediction was not measured\n");
    else if (r->predicted.outcome != KOPT_OUT_OK)
        cli_print(c, "; the first prediction failed (%s)\n",
                  kopt_outcome_name(r->predicted.outcome));
    else
        cli_print(c, "; the first prediction kept %s of the final best\n",
                  cli_percent(r->predicted_share, share));
}

void cli_print_ended(struct cli *c, const char *ended, double remaining, double until)
{
    char left[CLI_NUM];
    char least[CLI_NUM];
    bool known = isfinite(remaining);
    if (strcmp(ended, "until") == 0)
        cli_print(c, "ended     what was not tried is expected to save %s, less than %s\n",
                  cli_percent(remaining, left), cli_percent(until, least));
    else if (strcmp(ended, "exhausted") == 0)
        cli_print(c, "ended     every configuration was tried\n");
    else if (known)
        cli_print(c, "ended     %s; what was not tried is expected to save %s\n",
                  strcmp(ended, "budget") == 0 ? "the budget is used up" : "stopped",
                  cli_percent(remaining, left));
    else if (strcmp(ended, "budget") == 0)
        cli_print(c, "ended     the budget is used up\n");
}

static void print_outcomes(struct cli_tune_view *v, const kopt_tune_report *r)
{
    static const struct cli_column columns[] = {
        {"OUTCOME", CLI_LEFT, CLI_WHOLE}, {"", CLI_RIGHT, CLI_WHOLE}, {"", CLI_LEFT, CLI_CUT}};
    struct cli *c = v->c;
    char text[CLI_NUM];
    struct cli_table *t = cli_table_new(columns, 3);
    for (int o = 0; o < KOPT_OUT_COUNT; o++) {
        uint64_t n = r->progress.by_outcome[o];
        if (!n)
            continue;
        cli_cell(t, cli_outcome_style((kopt_outcome)o), "%s",
                 kopt_outcome_name((kopt_outcome)o));
        cli_cell(t, CLI_PLAIN, "%s", cli_count((double)n, text));
        bool example = v->messages[o][0] != '\0';
        cli_cell(t, CLI_PLAIN, "%s",
                 example ? v->messages[o]
                         : cli_outcome_meaning((kopt_outcome)o, r->checked != 0));
        if (example && v->configs[o][0]) {
            char *words = cli_config_spaced(v->configs[o]);
            cli_table_note(t, 2, CLI_DIM, "with %s", words);
            free(words);
        }
    }
    if (cli_table_rows(t)) {
        cli_print(c, "\n");
        cli_table_print(t, &c->out, 0);
    }
    cli_table_free(t);
}

static void share_row(struct cli_table *t, const char *name, double seconds, double wall,
                      const char *what)
{
    char text[CLI_NUM];
    double share = wall > 0 ? seconds / wall : (double)NAN;
    cli_cell(t, CLI_PLAIN, "%s", name);
    cli_cell(t, CLI_PLAIN, "%s", cli_duration(seconds, text));
    if (share < 0.001)
        (void)snprintf(text, sizeof(text), "< 0.1 %%");
    else
        (void)cli_percent(share, text);
    cli_cell(t, CLI_PLAIN, "%s", isnan(share) ? "" : text);
    cli_cell(t, CLI_DIM, "%s", what);
}

/* Nothing was launched: there is no time to account for. */
static bool all_known(const kopt_tune_report *r)
{
    return r->progress.from_store && r->progress.from_store == r->progress.done &&
           !(r->split.launch_s > 0);
}

static void print_known(struct cli_tune_view *v, const kopt_tune_report *r)
{
    char n[CLI_NUM];
    char wall[CLI_NUM];
    bool one = r->progress.done == 1;
    cli_print(v->c, "\n%s%s result%s came from the store, nothing was measured; %s in all\n",
              one ? "the " : "all ", one ? "one" : cli_count((double)r->progress.done, n),
              one ? "" : "s", cli_duration(r->split.wall_s, wall));
}

static void print_split(struct cli_tune_view *v, const kopt_tune_report *r)
{
    static const struct cli_column columns[] = {{"TIME SPENT", CLI_LEFT, CLI_WHOLE},
                                                {"", CLI_RIGHT, CLI_WHOLE},
                                                {"", CLI_RIGHT, CLI_WHOLE},
                                                {"", CLI_LEFT, CLI_WHOLE}};
    const kopt_tune_split *s = &r->split;
    char text[CLI_NUM];
    char workers[64];
    uint64_t measured = r->progress.done - r->progress.from_store;
    struct cli_table *t = cli_table_new(columns, 4);
    (void)snprintf(workers, sizeof(workers), "summed over %u worker%s", v->compilers,
                   v->compilers == 1 ? "" : "s");
    share_row(t, "in all", s->wall_s, 0, "wall time");
    share_row(t, "device", s->device_s, s->wall_s, "loads, copies, launches, checks");
    share_row(t, "  loading", s->load_s, s->wall_s, "images, by the driver");
    share_row(t, "  launches", s->launch_s, s->wall_s, "warm-up and timed");
    share_row(t, "  checking", s->check_s, s->wall_s, "outputs against references");
    share_row(t, "device idle", s->idle_s, s->wall_s,
              "waits for set-up, the compiler or the search");
    share_row(t, "compiling", s->compile_s, 0, workers);
    share_row(t, "search", s->search_s, s->wall_s, "");
    share_row(t, "store", s->store_s, s->wall_s, "");
    if (isfinite(s->overhead_ms))
        share_row(t, "overhead", s->overhead_ms / 1e3, 0,
                  "a configuration, beyond compiling and launches");
    cli_print(v->c, "\n");
    cli_table_print(t, &v->c->out, 0);
    cli_table_free(t);
    if (r->progress.from_store)
        cli_print(v->c, "\n%s of %s results came from the store, %s measured now\n",
                  cli_count((double)r->progress.from_store, text),
                  cli_count((double)r->progress.done, workers),
                  measured == 1 ? "1 was" : cli_count((double)measured, (char[CLI_NUM]){0}));
}

void cli_tune_report(struct cli_tune_view *v, const kopt_tune_report *r)
{
    struct cli *c = v->c;
    print_title(v);
    if (is_there(&r->best)) {
        print_best(v, r);
        print_speedup(v, r);
        print_model(v, r);
        if (r->ended)
            cli_print_ended(c, r->ended, r->progress.remaining, v->until);
    }
    print_outcomes(v, r);
    if (all_known(r))
        print_known(v, r);
    else
        print_split(v, r);
    if (!r->subject)
        return;
    cli_print(c, "\nsee more  kopt store show %lld%s\n", (long long)r->subject,
              cli_store_words(c));
    if (r->progress.by_outcome[KOPT_OUT_OK] < r->progress.done)
        cli_print(c, "failures  kopt store failures %lld%s\n", (long long)r->subject,
                  cli_store_words(c));
}

/* --- JSON --------------------------------------------------------------------------------- */

static void json_outcomes(struct cli_json *j, const kopt_tune_progress *p)
{
    cli_json_open(j, "outcomes", '{');
    for (int o = 0; o < KOPT_OUT_COUNT; o++)
        cli_json_u64(j, kopt_outcome_name((kopt_outcome)o), p->by_outcome[o]);
    cli_json_close(j, '}');
}

static void json_split(struct cli_json *j, const kopt_tune_split *s)
{
    cli_json_open(j, "time", '{');
    cli_json_num(j, "wall_s", s->wall_s);
    cli_json_num(j, "device_s", s->device_s);
    cli_json_num(j, "load_s", s->load_s);
    cli_json_num(j, "launch_s", s->launch_s);
    cli_json_num(j, "kernel_s", s->kernel_s);
    cli_json_num(j, "check_s", s->check_s);
    cli_json_num(j, "idle_s", s->idle_s);
    cli_json_num(j, "compile_s", s->compile_s);
    cli_json_num(j, "search_s", s->search_s);
    cli_json_num(j, "store_s", s->store_s);
    cli_json_num(j, "overhead_ms", s->overhead_ms);
    cli_json_close(j, '}');
}

void cli_tune_report_json(struct cli_tune_view *v, const kopt_tune_report *r)
{
    (void)v;
    struct cli_json j = cli_json_begin(stdout, "report");
    cli_json_result_at(&j, "best", &r->best);
    cli_json_result_at(&j, "default", &r->first);
    cli_json_num(&j, "speedup", r->speedup);
    cli_json_num(&j, "speedup_low", r->speedup_low);
    cli_json_num(&j, "speedup_high", r->speedup_high);
    cli_json_open(&j, "tied", '[');
    for (size_t i = 0; i < r->n_tied; i++)
        cli_json_str(&j, NULL, r->tied[i]);
    cli_json_close(&j, ']');
    cli_json_str(&j, "best_from", r->best_from[0] ? r->best_from : NULL);
    cli_json_u64(&j, "best_rank", r->best_rank);
    cli_json_result_at(&j, "predicted", &r->predicted);
    cli_json_num(&j, "predicted_share", r->predicted_share);
    cli_json_open(&j, "metrics", '[');
    for (size_t i = 0; i < r->n_metrics; i++) {
        cli_json_open(&j, NULL, '{');
        cli_json_str(&j, "name", r->metrics[i].name);
        cli_json_num(&j, "best", r->metrics[i].best);
        cli_json_num(&j, "default", r->metrics[i].first);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    cli_json_u64(&j, "done", r->progress.done);
    cli_json_u64(&j, "from_store", r->progress.from_store);
    json_outcomes(&j, &r->progress);
    json_split(&j, &r->split);
    cli_json_int(&j, "subject", r->subject);
    cli_json_int(&j, "run", r->run);
    cli_json_bool(&j, "checked", r->checked != 0);
    cli_json_bool(&j, "interrupted", r->interrupted != 0);
    cli_json_str(&j, "ended", r->ended && r->ended[0] ? r->ended : NULL);
    cli_json_num(&j, "remaining", r->progress.remaining);
    cli_json_str(&j, "first_failure",
                 r->first_failure && r->first_failure[0] ? r->first_failure : NULL);
    cli_json_end(&j);
}
