/* SPDX-License-Identifier: MIT */
#include "replay/score.h"

#include <math.h>

double kp_recording_random(const struct kp_recording *r, double m)
{
    double n = (double)r->n_ok;
    double place = round(m * (n + 1) / (m + 1));
    return r->sorted[place < n - 1 ? (size_t)place : r->n_ok - 1];
}

static double optimum(const struct kp_recording *r)
{
    return r->sorted[r->n_ok - 1];
}

/* What the run stands at: its best, or the median while it has none. */
static double found(const struct kp_score *s)
{
    return isfinite(s->best) ? s->best : s->r->info.median_ns;
}

static float gap(const struct kp_score *s)
{
    return (float)(found(s) / optimum(s->r) - 1);
}

/* Where random search is at the optimum itself there is nothing to win, only to lose. */
static double score_at(const struct kp_score *s, double m)
{
    double best = optimum(s->r);
    double random = kp_recording_random(s->r, m);
    if (random > best)
        return (random - found(s)) / (random - best);
    return found(s) > best ? 0 : 1;
}

void kp_score_begin(struct kp_score *s, const struct kp_recording *r, double budgets)
{
    double n = ceil(budgets * (double)r->info.budget);
    *s = (struct kp_score){.r = r,
                           .budget = n < 1 ? 1 : (uint64_t)n,
                           .budget_ns =
                               budgets * (double)r->info.budget * r->info.evaluation_s * 1e9,
                           .best = (double)INFINITY};
}

/* The points of time before `until_ns` saw the best so far. */
static void pass_time(struct kp_score *s, double until_ns)
{
    while (s->point < KOPT_CURVE_POINTS) {
        double t = s->budget_ns * (double)(s->point + 1) / KOPT_CURVE_POINTS;
        if (!(t < until_ns))
            return;
        s->by_time[s->point++] = gap(s);
        s->time_sum += score_at(s, t / (s->r->info.evaluation_s * 1e9));
    }
}

/* The points of the budget of evaluations up to number n. */
static void pass_count(struct kp_score *s)
{
    while (s->count_point < KOPT_CURVE_POINTS) {
        uint64_t at =
            ((s->count_point + 1) * s->budget + KOPT_CURVE_POINTS - 1) / KOPT_CURVE_POINTS;
        if (at > s->n)
            return;
        s->by_evaluations[s->count_point++] = gap(s);
    }
}

void kp_score_add(struct kp_score *s, double time_ns, double clock_ns)
{
    pass_time(s, clock_ns);
    s->n++;
    s->at_ns = clock_ns;
    if (time_ns < s->best)
        s->best = time_ns;
    if (!s->near && s->best <= 1.01 * optimum(s->r))
        s->near = s->n;
    if (s->n > s->budget)
        return;
    s->sum += score_at(s, (double)s->n);
    pass_count(s);
}

void kp_score_end(struct kp_score *s)
{
    pass_time(s, (double)INFINITY);
    while (s->n < s->budget) {
        s->n++;
        s->sum += score_at(s, (double)s->n);
    }
    pass_count(s);
}

double kp_score_mean(const struct kp_score *s)
{
    return s->sum / (double)s->budget;
}

double kp_score_time_mean(const struct kp_score *s)
{
    return s->budget_ns > 0 ? s->time_sum / KOPT_CURVE_POINTS : (double)NAN;
}
