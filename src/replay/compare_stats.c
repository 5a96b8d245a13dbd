/* SPDX-License-Identifier: MIT */
#include "replay/compare.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* A mean, and its standard error. */
struct mean {
    double sum;
    double squares;
    double n;
};

static void take(struct mean *m, double x)
{
    if (isnan(x))
        return;
    m->sum += x;
    m->squares += x * x;
    m->n++;
}

static double value_of(const struct mean *m)
{
    return m->n > 0 ? m->sum / m->n : (double)NAN;
}

static double error_of(const struct mean *m)
{
    if (m->n < 2)
        return m->n > 0 ? 0 : (double)NAN;
    double variance = (m->squares - m->sum * m->sum / m->n) / (m->n - 1);
    return sqrt(fmax(0, variance) / m->n);
}

/* --- one cell ------------------------------------------------------------------------------
 */

static void stop_stat(const struct kp_compare *c, const struct kp_compare_run *runs,
                      kopt_stop_stat *out)
{
    struct mean evaluations = {0};
    struct mean stopped = {0};
    struct mean gap = {0};
    struct mean kept = {0};
    for (size_t k = 0; k < c->repeats; k++) {
        const struct kp_compare_run *r = &runs[k];
        if (!r->done)
            continue;
        take(&stopped, r->has_stop);
        take(&evaluations, (double)(r->has_stop ? r->stop_n : r->evaluations));
        if (r->has_stop) {
            take(&gap, (double)r->stop_gap);
            take(&kept, (double)r->stop_gap < c->o.until);
        }
    }
    *out = (kopt_stop_stat){value_of(&evaluations), value_of(&stopped), value_of(&gap),
                            value_of(&kept)};
}

static void fill_cell(const struct kp_compare *c, const struct kp_compare_run *runs,
                      double cutoff_gap, kopt_compare_cell *out)
{
    struct mean score = {0}, time_score = {0}, hits = {0}, cutoff = {0}, gap = {0};
    struct mean near = {0}, evaluations = {0}, search = {0};
    double worst_search = (double)NAN;
    double worst = (double)NAN;
    for (size_t k = 0; k < c->repeats; k++) {
        const struct kp_compare_run *r = &runs[k];
        if (!r->done)
            continue;
        take(&score, (double)r->score);
        take(&time_score, (double)r->time_score);
        /* Gaps are kept as floats: one that is at the limit must not fall on its other side. */
        take(&hits, (double)r->gap <= 0.01 * (1 + 1e-6));
        take(&cutoff, (double)r->gap <= cutoff_gap * (1 + 1e-6));
        take(&gap, (double)r->gap);
        take(&near, (double)r->near);
        take(&evaluations, (double)r->evaluations);
        take(&search, (double)r->search_s);
        worst = fmax(worst, (double)r->gap); /* fmax() passes NaN over */
        worst_search = fmax(worst_search, (double)r->worst_search_s);
    }
    *out = (kopt_compare_cell){.runs = (uint64_t)gap.n,
                               .score = value_of(&score),
                               .score_error = error_of(&score),
                               .time_score = value_of(&time_score),
                               .time_score_error = error_of(&time_score),
                               .hits = value_of(&hits),
                               .cutoff_hits = value_of(&cutoff),
                               .gap = value_of(&gap),
                               .worst_gap = worst,
                               .near = value_of(&near),
                               .evaluations = value_of(&evaluations),
                               .search_s = value_of(&search),
                               .worst_search_s = worst_search};
    stop_stat(c, runs, &out->stop);
}

/* --- over all spaces -----------------------------------------------------------------------
 */

static void fill_total(const kopt_compare_cell *cells, size_t n, kopt_compare_cell *out)
{
    struct mean m[12] = {0};
    double errors = 0;
    double time_errors = 0;
    *out = (kopt_compare_cell){.worst_gap = (double)NAN, .worst_search_s = (double)NAN};
    for (size_t i = 0; i < n; i++) {
        const kopt_compare_cell *c = &cells[i];
        if (c->runs == 0)
            continue;
        const double values[12] = {
            c->score,    c->time_score,  c->hits,     c->cutoff_hits,  c->gap,
            c->near,     c->evaluations, c->search_s, c->stop.stopped, c->stop.evaluations,
            c->stop.gap, c->stop.kept};
        for (size_t k = 0; k < 12; k++)
            take(&m[k], values[k]);
        errors += c->score_error * c->score_error;
        time_errors += c->time_score_error * c->time_score_error;
        out->runs += c->runs;
        out->prior += c->prior;
        out->worst_gap = fmax(out->worst_gap, c->worst_gap);
        out->worst_search_s = fmax(out->worst_search_s, c->worst_search_s);
    }
    out->score = value_of(&m[0]);
    out->time_score = value_of(&m[1]);
    out->hits = value_of(&m[2]);
    out->cutoff_hits = value_of(&m[3]);
    out->gap = value_of(&m[4]);
    out->near = value_of(&m[5]);
    out->evaluations = value_of(&m[6]);
    out->search_s = value_of(&m[7]);
    out->stop = (kopt_stop_stat){.stopped = value_of(&m[8]),
                                 .evaluations = value_of(&m[9]),
                                 .gap = value_of(&m[10]),
                                 .kept = value_of(&m[11])};
    out->score_error = m[0].n > 0 ? sqrt(errors) / m[0].n : (double)NAN;
    out->time_score_error = m[0].n > 0 ? sqrt(time_errors) / m[0].n : (double)NAN;
}

/* --- curves --------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the two nearest of n sorted values. */
static double quantile(const double *sorted, size_t n, double q)
{
    double place = q * (double)(n - 1);
    size_t low = (size_t)place;
    size_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (place - (double)low) * (sorted[high] - sorted[low]);
}

static void fill_curve(const struct kp_compare *c, const struct kp_compare_run *runs,
                       bool by_time, double *scratch, kopt_curve *out)
{
    for (size_t p = 0; p < KOPT_CURVE_POINTS; p++) {
        size_t n = 0;
        double sum = 0;
        for (size_t k = 0; k < c->repeats; k++) {
            if (!runs[k].done)
                continue;
            scratch[n] = (double)(by_time ? runs[k].by_time : runs[k].by_evaluations)[p];
            sum += scratch[n++];
        }
        qsort(scratch, n, sizeof(*scratch), ascending);
        out->mean[p] = n ? sum / (double)n : (double)NAN;
        out->low[p] = n ? quantile(scratch, n, 0.1) : (double)NAN;
        out->median[p] = n ? quantile(scratch, n, 0.5) : (double)NAN;
        out->high[p] = n ? quantile(scratch, n, 0.9) : (double)NAN;
    }
}

/* --- calibration ---------------------------------------------------------------------------
 */

static size_t bin_of(double estimate)
{
    static const double ends[KOPT_CALIBRATION_BINS - 1] = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2};
    size_t i = 0;
    while (i < KOPT_CALIBRATION_BINS - 1 && estimate >= ends[i])
        i++;
    return i;
}

static void calibrate(const struct kp_compare *c, size_t method, kopt_calibration *out)
{
    *out = (kopt_calibration){.n = {0}};
    for (size_t i = 0; i < c->o.n_spaces * c->repeats; i++) {
        const struct kp_compare_run *r = kp_compare_runs(c, method, 0) + i;
        for (size_t k = 0; r->done && !c->methods[method].foreign && k < KP_COMPARE_TENTHS;
             k++) {
            double estimate = (double)r->estimate[k];
            if (isnan(estimate) || isnan(r->actual[k]))
                continue;
            size_t bin = bin_of(estimate);
            out->n[bin]++;
            out->estimate[bin] += estimate;
            out->actual[bin] += (double)r->actual[k];
        }
    }
    for (size_t b = 0; b < KOPT_CALIBRATION_BINS; b++) {
        out->estimate[b] /= (double)out->n[b]; /* NaN where there is none */
        out->actual[b] /= (double)out->n[b];
    }
}

/* --- the report ----------------------------------------------------------------------------
 */

static bool allocate(struct kp_compare *c)
{
    size_t m = c->n_methods;
    size_t s = c->o.n_spaces;
    c->names = kp_calloc(m + 1, sizeof(char *));
    c->foreign = kp_calloc(m + 1, sizeof(*c->foreign));
    c->infos = kp_calloc(s + 1, sizeof(kopt_recording_info *));
    c->cells = kp_calloc(m * s + 1, sizeof(*c->cells));
    c->total = kp_calloc(m + 1, sizeof(*c->total));
    c->by_evaluations = kp_calloc(m * s + 1, sizeof(*c->by_evaluations));
    c->by_time = kp_calloc(m * s + 1, sizeof(*c->by_time));
    c->calibration = kp_calloc(m + 1, sizeof(*c->calibration));
    c->budget_s = kp_calloc(s + 1, sizeof(*c->budget_s));
    c->budget = kp_calloc(s + 1, sizeof(*c->budget));
    return c->names && c->foreign && c->infos && c->cells && c->total && c->by_evaluations &&
           c->by_time && c->calibration && c->budget_s && c->budget;
}

static void fill_spaces(struct kp_compare *c)
{
    for (size_t s = 0; s < c->o.n_spaces; s++) {
        const kopt_recording_info *info = &kp_compare_space(c, s)->info;
        double evaluations = ceil(c->o.budget * (double)info->budget);
        c->infos[s] = info;
        c->budget[s] = evaluations < 1 ? 1 : (uint64_t)evaluations;
        c->budget_s[s] = c->o.budget * (double)info->budget * info->evaluation_s;
    }
}

static void fill_method(struct kp_compare *c, size_t m, double *scratch)
{
    size_t n = c->o.n_spaces;
    c->names[m] = c->methods[m].name;
    c->foreign[m] = c->methods[m].foreign;
    for (size_t s = 0; s < n; s++) {
        const kopt_recording_info *info = c->infos[s];
        const struct kp_compare_run *runs = kp_compare_runs(c, m, s);
        kopt_compare_cell *cell = &c->cells[m * n + s];
        fill_cell(c, runs, info->cutoff_ns / info->best_ns - 1, cell);
        cell->prior = c->methods[m].prior ? c->priors[s].n : 0;
        fill_curve(c, runs, false, scratch, &c->by_evaluations[m * n + s]);
        fill_curve(c, runs, true, scratch, &c->by_time[m * n + s]);
    }
    fill_total(&c->cells[m * n], n, &c->total[m]);
    calibrate(c, m, &c->calibration[m]);
}

kopt_status kp_compare_stats(struct kp_compare *c, kopt_error *err)
{
    double *scratch = kp_calloc(c->repeats + 1, sizeof(*scratch));
    if (!scratch || !allocate(c)) {
        kp_free(scratch);
        return kp_err_nomem(err);
    }
    fill_spaces(c);
    for (size_t m = 0; m < c->n_methods; m++)
        fill_method(c, m, scratch);
    kp_free(scratch);
    c->report.n_methods = c->n_methods;
    c->report.n_spaces = c->o.n_spaces;
    c->report.methods = c->names;
    c->report.foreign = c->foreign;
    c->report.spaces = c->infos;
    c->report.cells = c->cells;
    c->report.total = c->total;
    c->report.by_evaluations = c->by_evaluations;
    c->report.by_time = c->by_time;
    c->report.calibration = c->calibration;
    c->report.budget_s = c->budget_s;
    c->report.budget = c->budget;
    return KOPT_OK;
}
