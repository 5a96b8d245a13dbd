/* SPDX-License-Identifier: MIT */
/* The final race: the fastest few and the default, launched in turn in one process, so that
 * what drifts (clocks, temperature, neighbours) hits all of them alike. Layer: tune. */
#include "tune/internal.h"

#include "base/alloc.h"
#include "math/stats.h"
#include "os/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 60, ROUNDS_MIN = 12, ROUNDS_FEW = 5 };
static const double within = 1.10; /* of the best's median: slower ones do not race */
static const double race_budget_ns = 4e9;

struct racer {
    struct kept *k; /* borrowed: in s->top, or s->first_kept */
    int64_t job;
    double *times; /* owned; rounds values */
    struct kp_interval interval;
    bool bad;
};

struct race {
    struct racer racers[RACE_MAX];
    size_t n;
    unsigned rounds;
};

static bool same_config(const struct kp_session *s, const struct kept *a, const struct kept *b)
{
    return memcmp(a->config, b->config, s->n_params * sizeof(*a->config)) == 0;
}

static void choose(struct kp_session *s, struct race *r)
{
    size_t limit = s->o.race ? s->o.race : 5;
    bool has_first = false;
    if (limit > RACE_MAX - 1)
        limit = RACE_MAX - 1;
    for (size_t i = 0; i < s->n_top && r->n < limit; i++) {
        if (s->top[i].r.median_ns > within * s->top[0].r.median_ns)
            break;
        r->racers[r->n++].k = &s->top[i];
    }
    if (!s->first_kept.config || s->first_kept.r.outcome != KOPT_OUT_OK)
        return;
    for (size_t i = 0; i < r->n; i++)
        has_first = has_first || same_config(s, r->racers[i].k, &s->first_kept);
    if (!has_first)
        r->racers[r->n++].k = &s->first_kept;
}

/* Every racer has run in one race that the store has: nothing to measure. */
static bool raced_before(const struct kp_session *s, struct race *r)
{
    unsigned rounds = 0;
    int64_t run = 0;
    if (s->o.fresh)
        return false;
    for (size_t i = 0; i < r->n; i++) {
        const char *json = r->racers[i].k->json;
        const uint64_t *past = kp_map_get(&s->raced, json, strlen(json));
        if (!past)
            return false;
        const kopt_result *p = &s->past[*past].r;
        if (p->n_times == 0 || (i && (p->n_times != rounds || s->past[*past].run != run)))
            return false;
        rounds = p->n_times;
        run = s->past[*past].run;
    }
    r->rounds = rounds;
    for (size_t i = 0; i < r->n; i++) {
        const char *json = r->racers[i].k->json;
        const kopt_result *p = &s->past[*kp_map_get(&s->raced, json, strlen(json))].r;
        r->racers[i].times = kp_calloc(rounds, sizeof(double));
        if (!r->racers[i].times)
            return false;
        memcpy(r->racers[i].times, p->times_ns, rounds * sizeof(double));
        r->racers[i].bad = p->outcome != KOPT_OUT_OK;
    }
    return true;
}

static kopt_status compile_racers(struct kp_session *s, struct race *r, kopt_error *err)
{
    size_t ready = 0;
    size_t failed = 0;
    kopt_status st = kp_session_data(s, err);
    for (size_t i = 0; i < r->n && st == KOPT_OK; i++) {
        struct kp_geometry g;
        struct owned_job j;
        st = kp_bound_geometry(s->bound, r->racers[i].k->config, &g, err);
        if (st == KOPT_OK)
            st = kp_job_make(s, r->racers[i].k->config, s->kernel->name, &g, &j, err);
        if (st != KOPT_OK)
            break;
        r->racers[i].job = j.job.id;
        st = kp_lab_compile(s->lab, &j.job, err);
        kp_job_deinit(&j);
    }
    while (st == KOPT_OK && ready + failed < r->n && !kp_session_stopped(s)) {
        struct kp_lab_event ev;
        st = kp_session_wait(s, 100, &ev, err);
        for (size_t i = 0; i < r->n && st == KOPT_OK && ev.kind != KP_LAB_NOTHING; i++) {
            if (r->racers[i].job != ev.id)
                continue;
            ready += ev.kind == KP_LAB_COMPILED;
            failed += ev.kind == KP_LAB_RESULT;
        }
        kp_session_report_progress(s, false);
    }
    if (st == KOPT_OK && failed)
        st = kp_err(err, KOPT_EFAILED,
                    "%zu of the fastest configurations did not compile again", failed);
    return st;
}

static kopt_status begin_rows(struct kp_session *s, const struct race *r, int64_t *rows,
                              kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < r->n && s->store && st == KOPT_OK; i++)
        st = kp_store_begin(s->store, s->run, s->subject.id, r->racers[i].k->json, true,
                            &rows[i], err);
    return st;
}

static kopt_status store_rows(struct kp_session *s, const struct race *r, const int64_t *rows,
                              kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < r->n && s->store && st == KOPT_OK; i++) {
        const struct racer *x = &r->racers[i];
        kopt_result out = x->k->r;
        out.outcome = x->bad ? KOPT_OUT_UNSTEADY : KOPT_OUT_OK;
        out.message = x->bad ? "wrong after the race" : "";
        out.log = "";
        out.times_ns = x->times;
        out.n_times = r->rounds;
        out.median_ns = x->interval.median;
        out.low_ns = x->interval.low;
        out.high_ns = x->interval.high;
        out.dropped = 0;
        out.wall_us = kp_clock_wall_us();
        st = kp_store_finish(s->store, rows[i], &out, err);
    }
    return st;
}

static kopt_status intervals(struct race *r, kopt_error *err)
{
    double *sorted = kp_calloc(r->rounds, sizeof(*sorted));
    if (!sorted)
        return kp_err_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        size_t n = 0;
        for (unsigned k = 0; k < r->rounds; k++)
            if (isfinite(r->racers[i].times[k]))
                sorted[n++] = r->racers[i].times[k];
        if (n == 0)
            r->racers[i].bad = true;
        else
            r->racers[i].interval = kp_median_interval(sorted, n);
    }
    kp_free(sorted);
    return KOPT_OK;
}

/* Slow kernels get fewer: a race is not to take minutes. */
static unsigned rounds_at_least(const struct race *r)
{
    double round_ns = 0;
    for (size_t i = 0; i < r->n; i++)
        round_ns += r->racers[i].k->r.median_ns;
    return ROUNDS_MIN * round_ns > 4 * race_budget_ns ? ROUNDS_FEW : ROUNDS_MIN;
}

static kopt_status run_race(struct kp_session *s, struct race *r, kopt_error *err)
{
    int64_t ids[RACE_MAX];
    int64_t rows[RACE_MAX] = {0};
    bool bad[RACE_MAX] = {0};
    struct kp_lab_plan p = kp_session_plan(s);
    p.budget_ns = race_budget_ns;
    p.min_samples = rounds_at_least(r);
    r->rounds = ROUNDS;
    kopt_status st = compile_racers(s, r, err);
    double *times = kp_calloc((size_t)ROUNDS * r->n, sizeof(*times));
    if (st == KOPT_OK && !times)
        st = kp_err_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        ids[i] = r->racers[i].job;
    if (st == KOPT_OK && !kp_session_stopped(s)) {
        st = begin_rows(s, r, rows, err);
        if (st == KOPT_OK)
            st = kp_lab_race(s->lab, ids, r->n, &p, &r->rounds, times, bad, err);
        for (size_t i = 0; i < r->n && st == KOPT_OK; i++) {
            struct racer *x = &r->racers[i];
            x->bad = bad[i];
            x->times = kp_calloc(r->rounds, sizeof(double));
            if (!x->times)
                st = kp_err_nomem(err);
            for (unsigned k = 0; k < r->rounds && st == KOPT_OK; k++)
                x->times[k] = times[(size_t)k * r->n + i];
        }
        if (st == KOPT_OK)
            st = intervals(r, err);
        if (st == KOPT_OK)
            st = store_rows(s, r, rows, err);
    }
    for (size_t i = 0; i < r->n; i++)
        kp_lab_forget(s->lab, ids[i]);
    kp_free(times);
    return st;
}

/* Winner, speed-up over the default, and who cannot be told apart from the winner. */
static kopt_status judge(struct kp_session *s, struct race *r, kopt_error *err)
{
    size_t best = r->n;
    for (size_t i = 0; i < r->n; i++)
        if (!r->racers[i].bad &&
            (best == r->n || r->racers[i].interval.median < r->racers[best].interval.median))
            best = i;
    if (best == r->n)
        return kp_err(err, KOPT_EFAILED,
                      "no configuration was right throughout the final race");
    struct racer *w = &r->racers[best];
    s->tied_owned = kp_calloc(r->n + 1, sizeof(*s->tied_owned));
    if (!s->tied_owned)
        return kp_err_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        struct racer *x = &r->racers[i];
        struct kp_interval ratio = kp_ratio_interval(x->times, w->times, r->rounds);
        if (s->first_kept.config && same_config(s, x->k, &s->first_kept) && !x->bad) {
            s->report.speedup = i == best ? 1 : ratio.median;
            s->report.speedup_low = i == best ? 1 : ratio.low;
            s->report.speedup_high = i == best ? 1 : ratio.high;
            s->first_kept.r.median_ns = x->interval.median;
            s->first_kept.r.low_ns = x->interval.low;
            s->first_kept.r.high_ns = x->interval.high;
        }
        if (i == best || x->bad || ratio.low > 1)
            continue;
        s->tied_owned[s->report.n_tied] = kp_strdup(x->k->text);
        if (!s->tied_owned[s->report.n_tied])
            return kp_err_nomem(err);
        s->report.n_tied++;
    }
    kopt_status st = kp_kept_copy(&s->best, w->k, s->n_params, err);
    s->best.r.median_ns = w->interval.median;
    s->best.r.low_ns = w->interval.low;
    s->best.r.high_ns = w->interval.high;
    s->best.r.race = 1;
    return st;
}

kopt_status kp_session_race(struct kp_session *s, kopt_error *err)
{
    struct race r = {0};
    choose(s, &r);
    if (r.n == 1 && s->first_kept.config && same_config(s, r.racers[0].k, &s->first_kept))
        s->report.speedup = s->report.speedup_low = s->report.speedup_high = 1;
    if (r.n < 2)
        return KOPT_OK;
    s->phase = "final race";
    kp_session_report_progress(s, true);
    kopt_status st;
    if (raced_before(s, &r))
        st = intervals(&r, err);
    else
        st = run_race(s, &r, err);
    bool whole = st == KOPT_OK && !kp_session_stopped(s) && r.racers[0].times;
    if (whole)
        st = judge(s, &r, err);
    s->interrupted = !whole && kp_session_stopped(s);
    for (size_t i = 0; i < r.n; i++)
        kp_free(r.racers[i].times);
    if (st == KOPT_EFAILED) { /* the search's own numbers stand */
        kp_log(&s->log, KP_LOG_WARN, "the final race failed: %s", err ? err->message : "");
        st = KOPT_OK;
    }
    return st;
}
