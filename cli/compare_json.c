/* SPDX-License-Identifier: MIT */
#include "cli/compare_view.h"
#include "cli/json.h"
#include "cli/recordings.h"

#include <math.h>
#include <string.h>

static void put_cell(struct cli_json *j, const kopt_compare_cell *x)
{
    cli_json_u64(j, "runs", x->runs);
    cli_json_num(j, "score", x->score);
    cli_json_num(j, "score_error", x->score_error);
    cli_json_num(j, "time_score", x->time_score);
    cli_json_num(j, "time_score_error", x->time_score_error);
    cli_json_num(j, "hits", x->hits);
    cli_json_num(j, "cutoff_hits", x->cutoff_hits);
    cli_json_num(j, "gap", x->gap);
    cli_json_num(j, "worst_gap", x->worst_gap);
    cli_json_num(j, "near", x->near);
    cli_json_num(j, "evaluations", x->evaluations);
    cli_json_num(j, "search_s", x->search_s);
    cli_json_num(j, "worst_search_s", x->worst_search_s);
    cli_json_u64(j, "prior_results", x->prior);
}

/* What --until would have come to; null where it was not given. */
static void put_stop(struct cli_json *j, const struct cli_compare_view *v,
                     const kopt_stop_stat *x)
{
    if (!(v->until > 0)) {
        cli_json_raw(j, "stop", NULL);
        return;
    }
    cli_json_open(j, "stop", '{');
    cli_json_num(j, "evaluations", x->evaluations);
    cli_json_num(j, "stopped", x->stopped);
    cli_json_num(j, "gap", x->gap);
    cli_json_num(j, "kept", x->kept);
    cli_json_close(j, '}');
}

static void put_points(struct cli_json *j, const char *key, const double *values)
{
    cli_json_open(j, key, '[');
    for (size_t i = 0; i < KOPT_CURVE_POINTS; i++)
        cli_json_num(j, NULL, values[i]);
    cli_json_close(j, ']');
}

static void put_curve(struct cli_json *j, const char *key, const kopt_curve *x)
{
    cli_json_open(j, key, '{');
    put_points(j, "mean", x->mean);
    put_points(j, "low", x->low);
    put_points(j, "median", x->median);
    put_points(j, "high", x->high);
    cli_json_close(j, '}');
}

static void put_space(const kopt_compare_report *r, size_t s)
{
    struct cli_json j = cli_json_begin(stdout, "recording");
    cli_json_recording(&j, r->spaces[s]);
    cli_json_u64(&j, "budget", r->budget[s]);
    cli_json_num(&j, "budget_s", r->budget_s[s]);
    cli_json_end(&j);
}

static void put_score(const struct cli_compare_view *v, const kopt_compare_report *r, size_t m,
                      size_t s)
{
    size_t at = m * r->n_spaces + s;
    struct cli_json j = cli_json_begin(stdout, "score");
    cli_json_str(&j, "method", r->methods[m]);
    cli_json_bool(&j, "foreign", r->foreign[m] != 0);
    cli_json_str(&j, "space", r->spaces[s]->name);
    put_cell(&j, &r->cells[at]);
    cli_json_bool(&j, "below_random", cli_compare_below(r, v->random, m, s));
    put_stop(&j, v, &r->cells[at].stop);
    if (r->cells[at].runs) {
        put_curve(&j, "by_evaluations", &r->by_evaluations[at]);
        put_curve(&j, "by_time", &r->by_time[at]);
    } else {
        cli_json_raw(&j, "by_evaluations", NULL);
        cli_json_raw(&j, "by_time", NULL);
    }
    cli_json_end(&j);
}

static void put_calibration(struct cli_json *j, const kopt_calibration *k)
{
    /* The upper ends of the ranges; the last has none. */
    static const double ends[KOPT_CALIBRATION_BINS] = {
        0.005, 0.01, 0.02, 0.05, 0.1, 0.2, (double)INFINITY};
    cli_json_open(j, "calibration", '[');
    for (size_t b = 0; b < KOPT_CALIBRATION_BINS; b++) {
        if (!k->n[b])
            continue;
        cli_json_open(j, NULL, '{');
        cli_json_num(j, "below", ends[b]);
        cli_json_u64(j, "count", k->n[b]);
        cli_json_num(j, "estimate", k->estimate[b]);
        cli_json_num(j, "actual", k->actual[b]);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}

static void put_total(const struct cli_compare_view *v, const kopt_compare_report *r, size_t m)
{
    unsigned below = 0;
    for (size_t s = 0; s < r->n_spaces; s++)
        below += cli_compare_below(r, v->random, m, s);
    struct cli_json j = cli_json_begin(stdout, "total");
    cli_json_str(&j, "method", r->methods[m]);
    cli_json_bool(&j, "foreign", r->foreign[m] != 0);
    put_cell(&j, &r->total[m]);
    cli_json_int(&j, "spaces_below_random", below);
    put_stop(&j, v, &r->total[m].stop);
    put_calibration(&j, &r->calibration[m]);
    cli_json_end(&j);
}

void cli_compare_json(const struct cli_compare_view *v, const kopt_compare_report *r)
{
    for (size_t s = 0; s < r->n_spaces; s++)
        put_space(r, s);
    for (size_t i = 0; i < r->n_methods; i++)
        for (size_t s = 0; s < r->n_spaces; s++)
            put_score(v, r, v->order[i], s);
    for (size_t i = 0; i < r->n_methods; i++)
        put_total(v, r, v->order[i]);
    struct cli_json j = cli_json_begin(stdout, "compared");
    cli_json_u64(&j, "repeats", r->repeats);
    cli_json_num(&j, "wall_s", r->wall_s);
    cli_json_bool(&j, "interrupted", r->stopped != 0);
    cli_json_end(&j);
}
