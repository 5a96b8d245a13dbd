/* SPDX-License-Identifier: MIT */
#include "cli/tune_view.h"
#include "cli/mem.h"
#include "cli/results.h"
#include "cli/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_tune_view_init(struct cli_tune_view *v, struct cli *c, bool json)
{
    memset(v, 0, sizeof(*v));
    v->c = c;
    v->json = json;
    v->order = "";
    cli_progress_init(&v->progress, &c->err, c->verbosity < 0);
}

static void copy(char *out, size_t bytes, const char *s)
{
    (void)snprintf(out, bytes, "%s", s ? s : "");
}

/* --- start -------------------------------------------------------------------------------- */

static void json_start(struct cli *c, const kopt_tune_start *s)
{
    struct cli_json j = cli_json_begin(stdout, "start");
    cli_json_str(&j, "kernel", s->kernel);
    cli_json_raw(&j, "problem", s->problem);
    cli_json_str(&j, "device", s->device);
    cli_json_str(&j, "device_name", s->device_name);
    cli_json_str(&j, "strategy", s->strategy);
    cli_json_str(&j, "store", s->store && s->store[0] ? s->store : NULL);
    cli_json_num(&j, "candidates", s->cartesian);
    cli_json_u64(&j, "valid", s->valid);
    if (s->budget)
        cli_json_u64(&j, "budget", s->budget);
    else
        cli_json_raw(&j, "budget", NULL);
    cli_json_u64(&j, "known", s->known);
    cli_json_int(&j, "compilers", s->compilers);
    cli_json_str(&j, "model", s->model && s->model[0] ? s->model : NULL);
    cli_json_u64(&j, "predictions", s->predictions);
    cli_json_u64(&j, "predictions_dropped", s->predictions_dropped);
    cli_json_str(&j, "prior", s->prior && s->prior[0] ? s->prior : NULL);
    cli_json_u64(&j, "prior_results", s->prior_results);
    cli_json_u64(&j, "prior_first", s->prior_first);
    cli_json_end(&j);
    (void)cli_flush(c);
}

/* "20 predictions of gemm.model first (3 are not in this space)" */
static void add_model(struct cli_text *t, const kopt_tune_start *s)
{
    char n[CLI_NUM];
    bool one = s->predictions == 1;
    cli_text_addf(t, ", %s prediction%s of %s first", cli_count((double)s->predictions, n),
                  one ? "" : "s", s->model);
    if (s->predictions_dropped)
        cli_text_addf(t, " (%s more %s not in this space)",
                      cli_count((double)s->predictions_dropped, n),
                      s->predictions_dropped == 1 ? "is" : "are");
}

/* "prior: 4,362 results of gemm K=512 on NVIDIA A4000, the best 10 first" */
static void note_prior(struct cli *c, const kopt_tune_start *s)
{
    char n[CLI_NUM];
    char first[CLI_NUM];
    if (!s->prior || !s->prior[0])
        return;
    if (!s->prior_results) {
        cli_note(c, "prior: no result of %s is in this space", s->prior);
        return;
    }
    (void)cli_count((double)s->prior_first, first);
    cli_note(c, "prior: %s result%s of %s, the best %s first",
             cli_count((double)s->prior_results, n), s->prior_results == 1 ? "" : "s", s->prior,
             s->prior_first == 1 ? "one" : first);
}

static void on_start(void *user, const kopt_tune_start *s)
{
    struct cli_tune_view *v = user;
    struct cli *c = v->c;
    copy(v->kernel, sizeof(v->kernel), s->kernel);
    copy(v->problem, sizeof(v->problem), s->problem);
    copy(v->device, sizeof(v->device), s->device);
    copy(v->device_name, sizeof(v->device_name), s->device_name);
    copy(v->store, sizeof(v->store), s->store);
    v->budget = s->budget;
    v->valid = s->valid;
    v->compilers = s->compilers;
    v->predictions = s->predictions;
    v->prior_first = s->prior_first;
    if (v->json)
        json_start(c, s);
    char valid[CLI_NUM];
    char all[CLI_NUM];
    char budget[CLI_NUM];
    char known[CLI_NUM];
    char *problem = cli_config_words_in(s->problem, v->order);
    cli_note(c, "%s%s%s on %s (%s)", s->kernel, problem[0] ? " " : "", problem, s->device_name,
             s->device);
    free(problem);
    struct cli_text t = {0};
    cli_text_addf(&t, "%s valid of %s candidates, %s", cli_count((double)s->valid, valid),
                  cli_count(s->cartesian, all), s->strategy);
    if (s->budget && s->budget < s->valid)
        cli_text_addf(&t, ", at most %s", cli_count((double)s->budget, budget));
    if (s->known)
        cli_text_addf(&t, ", %s in the store already", cli_count((double)s->known, known));
    if (s->model && s->model[0])
        add_model(&t, s);
    cli_text_addf(&t, ", %u compile worker%s", s->compilers, s->compilers == 1 ? "" : "s");
    cli_note(c, "%s", t.ptr);
    free(t.ptr);
    note_prior(c, s);
}

/* --- results ------------------------------------------------------------------------------ */

enum { TIME_COLUMNS = 10, SPREAD_COLUMNS = 12 };

/* -v: one line for each. */
static void print_result(struct cli_tune_view *v, const kopt_result *r, const char *config)
{
    struct cli_term *t = &v->c->err;
    char time[CLI_NUM];
    char spread[CLI_NUM];
    enum cli_style style = cli_outcome_style(r->outcome);
    char *words = cli_config_spaced(config);
    cli_progress_clear(&v->progress);
    (void)fprintf(t->file, "%s%-15s%s ", cli_on(t, style), kopt_outcome_name(r->outcome),
                  cli_off(t, style));
    if (r->outcome == KOPT_OUT_OK) {
        (void)cli_time(t, r->median_ns, time);
        (void)cli_spread(t, r, spread);
        int left = TIME_COLUMNS - (int)cli_columns(time);
        int right = SPREAD_COLUMNS - (int)cli_columns(spread);
        (void)fprintf(t->file, "%*s%s %s%*s", left > 0 ? left : 0, "", time, spread,
                      right > 0 ? right : 0, "");
    } else {
        (void)fprintf(t->file, "%*s", TIME_COLUMNS + 1 + SPREAD_COLUMNS, "");
    }
    (void)fprintf(t->file, "%s%s%s%s", words, r->from_store ? "  (from the store)" : "",
                  r->dropped ? "  (dropped early)" : "", r->race ? "  (race)" : "");
    if (r->message && r->message[0]) {
        char *whole = cli_message(r);
        char *message = cli_clean(whole, false);
        (void)fprintf(t->file, "  %s", message);
        free(message);
        free(whole);
    }
    (void)fputc('\n', t->file);
    free(words);
}

static void on_result(void *user, const kopt_result *r, const char *config)
{
    struct cli_tune_view *v = user;
    size_t o = (size_t)r->outcome;
    if (r->outcome != KOPT_OUT_OK && o < KOPT_OUT_COUNT && !v->messages[o][0]) {
        char *message = cli_message(r);
        copy(v->messages[o], sizeof(v->messages[o]), message);
        free(message);
        copy(v->configs[o], sizeof(v->configs[o]), config);
    }
    if (v->json) {
        struct cli_json j = cli_json_begin(stdout, "result");
        cli_json_result(&j, r, false);
        cli_json_end(&j);
        if (!cli_flush(v->c) && v->tuner)
            kopt_tuner_stop(v->tuner);
    }
    if (v->c->verbosity > 0)
        print_result(v, r, config);
}

/* --- progress ----------------------------------------------------------------------------- */

struct line {
    struct cli_field fields[CLI_FIELDS_MAX];
    size_t n;
};

__attribute__((format(printf, 4, 5))) static void
field(struct line *l, int keep, enum cli_style style, const char *fmt, ...)
{
    if (l->n == CLI_FIELDS_MAX)
        return;
    struct cli_field *f = &l->fields[l->n++];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    f->keep = keep;
    f->style = style;
}

/* Fields in the order in which they stand; the numbers say which stay longest on a narrow
 * terminal: how far, how good, how long still, then the rest. */
static void make_line(const struct cli_tune_view *v, const kopt_tune_progress *p,
                      struct line *l)
{
    struct cli_term *t = &v->c->err;
    char a[CLI_NUM];
    char b[CLI_NUM];
    field(l, 6, CLI_BOLD, "%s", p->phase);
    if (p->total)
        field(l, 9, CLI_PLAIN, "%s/%s", cli_count((double)p->done, a),
              cli_count((double)p->total, b));
    else
        field(l, 9, CLI_PLAIN, "%s done", cli_count((double)p->done, a));
    if (p->best_ns > 0) {
        double faster = p->first_ns / p->best_ns;
        if (faster > 0)
            field(l, 8, CLI_GREEN, "best %s (%.2f%s)", cli_time(t, p->best_ns, a), faster,
                  cli_sign(t, CLI_TIMES));
        else
            field(l, 8, CLI_GREEN, "best %s", cli_time(t, p->best_ns, a));
    }
    if (isfinite(p->remaining))
        field(l, 4, CLI_PLAIN, "%s to gain", cli_percent(p->remaining, a));
    if (p->per_minute > 0)
        field(l, 5, CLI_PLAIN, "%s/min", cli_count(p->per_minute, a));
    if (p->eta_s >= 0)
        field(l, 7, CLI_PLAIN, "%s left", cli_clock(p->eta_s, a));
    else
        field(l, 4, CLI_DIM, "%s", cli_clock(p->elapsed_s, a));
    for (int o = 0; o < KOPT_OUT_COUNT; o++)
        if (p->by_outcome[o])
            field(l, 3 - (o > 0) - (o > 4), o ? CLI_RED : CLI_PLAIN, "%s %s",
                  kopt_outcome_name((kopt_outcome)o), cli_count((double)p->by_outcome[o], a));
}

static void on_progress(void *user, const kopt_tune_progress *p)
{
    struct cli_tune_view *v = user;
    if (!cli_progress_due(&v->progress))
        return;
    struct line l = {.n = 0};
    make_line(v, p, &l);
    cli_progress_draw(&v->progress, l.fields, l.n);
}

static void on_log(void *user, kopt_log_level level, const char *line)
{
    struct cli_tune_view *v = user;
    char *text = cli_clean(line, false);
    bool wanted = level <= KOPT_LOG_WARN || (level == KOPT_LOG_INFO && v->c->verbosity > 0) ||
                  v->c->verbosity > 1;
    if (wanted) {
        cli_progress_clear(&v->progress);
        if (level <= KOPT_LOG_WARN)
            cli_warn(v->c, "%s", text);
        else
            cli_note(v->c, "%s", text);
    }
    free(text);
}

kopt_tune_callbacks cli_tune_view_callbacks(struct cli_tune_view *v)
{
    return (kopt_tune_callbacks){.start = on_start,
                                 .result = on_result,
                                 .progress = on_progress,
                                 .log = on_log,
                                 .user = v};
}
