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
    struct kept row; /* what the race made of it; samples are one a round */
};

struct race {
    struct racer racers[RACE_MAX];
    size_t n;
    unsigned rounds;
};

static bool is_ok(const struct racer *x)
{
    return x->row.r.outcome == KOPT_OUT_OK;
}

static bool any_is_ok(const struct race *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (is_ok(&r->racers[i]))
            return true;
    return false;
}

static bool same_config(const struct kp_session *s, const struct kept *a, const struct kept *b)
{
    return memcmp(a->config, b->config, s->n_params * sizeof(*a->config)) == 0;
}

static void choose(struct kp_session *s, struct race *r)
{
    size_t limit = s->o.race ? s->o.race : 5;
    bool has_first = false;
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

static const struct kept *stored_race(const struct kp_session *s, const struct racer *x)
{
    const uint64_t *past = kp_map_get(&s->raced, x->k->json, strlen(x->k->json));
    return past ? &s->past[*past] : NULL;
}

/* Has every racer run in one race that the store has? Then there is nothing to measure. A race
 * tells nothing of what was measured after it, nor does one in which nobody was right. */
static bool was_raced(const struct kp_session *s, const struct race *r)
{
    const struct kept *first = stored_race(s, &r->racers[0]);
    bool any_ok = false;
    for (size_t i = 0; i < r->n; i++) {
        const struct kept *past = stored_race(s, &r->racers[i]);
        if (!past || past->r.n_times == 0 || past->r.n_times != first->r.n_times ||
            past->run != first->run || r->racers[i].k->r.id > past->r.id)
            return false;
        any_ok = any_ok || past->r.outcome == KOPT_OUT_OK;
    }
    return any_ok;
}

static kopt_status take_stored(struct kp_session *s, struct race *r, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < r->n && st == KOPT_OK; i++) {
        struct racer *x = &r->racers[i];
        const struct kept *past = stored_race(s, x);
        r->rounds = past->r.n_times;
        st = kp_kept_set(&x->row, &past->r, x->k->config, s->n_params, x->k->text, x->k->json,
                         err);
        x->row.r.from_store = 1;
    }
    return st;
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

/* The rows of a race are one fact: all of them or none. */
static kopt_status end_batch(struct kp_session *s, kopt_status st, kopt_error *err)
{
    kopt_status end = kp_store_batch_end(s->store, st == KOPT_OK, st == KOPT_OK ? err : NULL);
    return st == KOPT_OK ? end : st;
}

static kopt_status begin_rows(struct kp_session *s, const struct race *r, int64_t *rows,
                              kopt_error *err)
{
    if (!s->store)
        return KOPT_OK;
    kopt_status st = kp_store_batch_begin(s->store, err);
    if (st != KOPT_OK)
        return st;
    for (size_t i = 0; i < r->n && st == KOPT_OK; i++)
        st = kp_store_begin(s->store, s->run, s->subject.id, r->racers[i].k->json, true,
                            &rows[i], err);
    return end_batch(s, st, err);
}

/* A race that nobody finished well says nothing about its racers: its rows are taken back. */
static kopt_status finish_rows(struct kp_session *s, const struct race *r, const int64_t *rows,
                               kopt_error *err)
{
    if (!s->store)
        return KOPT_OK;
    bool keep = any_is_ok(r);
    kopt_status st = kp_store_batch_begin(s->store, err);
    if (st != KOPT_OK)
        return st;
    for (size_t i = 0; i < r->n && st == KOPT_OK; i++)
        st = keep ? kp_store_finish(s->store, rows[i], &r->racers[i].row.r, err)
                  : kp_store_withdraw(s->store, rows[i], err);
    return end_batch(s, st, err);
}

/* Nor does one that failed. Should that fail, too, they stay as interrupted. */
static void withdraw_rows(struct kp_session *s, const struct race *r, const int64_t *rows)
{
    for (size_t i = 0; i < r->n && s->store; i++)
        if (rows[i])
            (void)kp_store_withdraw(s->store, rows[i], NULL);
}

/* What a racer's row says; `times` has r->n values for each round, of which it takes its own.
 */
static kopt_status make_row(struct kp_session *s, struct race *r, size_t i,
                            const struct kp_lab_racer *got, const double *times,
                            kopt_error *err)
{
    double own[ROUNDS];
    double sorted[ROUNDS];
    size_t n = 0;
    struct racer *x = &r->racers[i];
    kopt_result out = got->result;
    for (unsigned k = 0; k < r->rounds; k++) {
        own[k] = times[(size_t)k * r->n + i];
        if (isfinite(own[k]))
            sorted[n++] = own[k];
    }
    if (out.outcome == KOPT_OUT_OK && n == 0) {
        out.outcome = KOPT_OUT_BAD_TIME;
        out.message = "the device's clock gave no positive time in the final race";
    }
    if (out.outcome == KOPT_OUT_OK) {
        struct kp_interval interval = kp_median_interval(sorted, n);
        out.median_ns = interval.median;
        out.low_ns = interval.low;
        out.high_ns = interval.high;
    }
    out.times_ns = own;
    out.n_times = r->rounds;
    return kp_kept_set(&x->row, &out, x->k->config, s->n_params, x->k->text, x->k->json, err);
}

/* Slow kernels get fewer: a race is not to take minutes. */
static unsigned rounds_at_least(const struct race *r)
{
    double round_ns = 0;
    for (size_t i = 0; i < r->n; i++)
        round_ns += r->racers[i].k->r.median_ns;
    return ROUNDS_MIN * round_ns > 4 * race_budget_ns ? ROUNDS_FEW : ROUNDS_MIN;
}

static kopt_status launch_race(struct kp_session *s, struct race *r, kopt_error *err)
{
    int64_t ids[RACE_MAX];
    int64_t rows[RACE_MAX] = {0};
    struct kp_lab_plan p = kp_session_plan(s);
    p.budget_ns = race_budget_ns;
    p.min_samples = rounds_at_least(r);
    r->rounds = ROUNDS;
    for (size_t i = 0; i < r->n; i++)
        ids[i] = r->racers[i].job;
    double *times = kp_calloc((size_t)ROUNDS * r->n, sizeof(*times));
    struct kp_lab_racer *got = kp_calloc(r->n, sizeof(*got));
    if (!times || !got) {
        kp_free(times);
        kp_free(got);
        return kp_err_nomem(err);
    }
    kopt_status st = begin_rows(s, r, rows, err);
    if (st == KOPT_OK)
        st = kp_lab_race(s->lab, ids, r->n, &p, &r->rounds, times, got, err);
    for (size_t i = 0; i < r->n && st == KOPT_OK; i++) {
        st = make_row(s, r, i, &got[i], times, err);
        r->racers[i].row.r.id = rows[i];
    }
    if (st == KOPT_OK)
        st = finish_rows(s, r, rows, err);
    else
        withdraw_rows(s, r, rows);
    kp_free(times);
    kp_free(got);
    return st;
}

static kopt_status run_race(struct kp_session *s, struct race *r, kopt_error *err)
{
    kopt_status st = compile_racers(s, r, err);
    if (st == KOPT_OK && !kp_session_stopped(s))
        st = launch_race(s, r, err);
    for (size_t i = 0; i < r->n; i++)
        kp_lab_forget(s->lab, r->racers[i].job);
    return st;
}

static size_t winner(const struct race *r)
{
    size_t best = r->n;
    for (size_t i = 0; i < r->n; i++)
        if (is_ok(&r->racers[i]) &&
            (best == r->n || r->racers[i].row.r.median_ns < r->racers[best].row.r.median_ns))
            best = i;
    return best;
}

/* What the race found out of somebody who was known before: the default, the first prediction.
 */
static kopt_status take_over(struct kp_session *s, struct kept *known, const struct racer *x,
                             bool *same, kopt_error *err)
{
    *same = known->config && same_config(s, x->k, known);
    return *same ? kp_kept_copy(known, &x->row, s->n_params, err) : KOPT_OK;
}

/* Winner, speed-up over the default, and who cannot be told apart from the winner. From here on
 * the race's numbers are what is known of its racers. */
static kopt_status judge(struct kp_session *s, struct race *r, kopt_error *err)
{
    size_t best = winner(r);
    if (best == r->n)
        return kp_err(err, KOPT_EFAILED,
                      "no configuration was right throughout the final race");
    const struct racer *w = &r->racers[best];
    s->tied_owned = kp_calloc(r->n + 1, sizeof(*s->tied_owned));
    if (!s->tied_owned)
        return kp_err_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        const struct racer *x = &r->racers[i];
        struct kp_interval ratio =
            kp_ratio_interval(x->row.r.times_ns, w->row.r.times_ns, r->rounds);
        if (i == best)
            ratio = (struct kp_interval){1, 1, 1};
        bool same = false;
        kopt_status st = take_over(s, &s->predicted, x, &same, err);
        if (st == KOPT_OK)
            st = take_over(s, &s->first_kept, x, &same, err);
        if (st != KOPT_OK)
            return st;
        if (same) {
            s->report.speedup = is_ok(x) ? ratio.median : (double)NAN;
            s->report.speedup_low = is_ok(x) ? ratio.low : (double)NAN;
            s->report.speedup_high = is_ok(x) ? ratio.high : (double)NAN;
        }
        if (i == best || !is_ok(x) || ratio.low > 1)
            continue;
        s->tied_owned[s->report.n_tied] = kp_strdup(x->k->text);
        if (!s->tied_owned[s->report.n_tied])
            return kp_err_nomem(err);
        s->report.n_tied++;
    }
    return kp_kept_copy(&s->best, &w->row, s->n_params, err);
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
    kopt_status st = was_raced(s, &r) ? take_stored(s, &r, err) : run_race(s, &r, err);
    bool whole = st == KOPT_OK && !kp_session_stopped(s) && r.racers[r.n - 1].row.config;
    if (whole)
        st = judge(s, &r, err);
    s->interrupted = !whole && kp_session_stopped(s);
    for (size_t i = 0; i < r.n; i++)
        kp_kept_deinit(&r.racers[i].row);
    if (st == KOPT_EFAILED) { /* the search's own numbers stand */
        kp_log(&s->log, KP_LOG_WARN, "the final race failed: %s", err ? err->message : "");
        st = KOPT_OK;
    }
    return st;
}
