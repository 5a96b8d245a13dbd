/* SPDX-License-Identifier: MIT */
/* Timing and checking one candidate. Layer: measure.
 *
 * A measurement: load, one checked launch, warm-up until two launches agree, then timed
 * launches in batches, each with inputs restored, outputs poisoned and the cache flushed before
 * it, until the median's confidence interval is narrow, the candidate is clearly worse than the
 * best, or the budget is spent; the last timed launch's outputs are checked again. */
#include "measure/worker/plan.h"
#include "measure/worker/sense.h"

#include "base/alloc.h"
#include "math/stats.h"
#include "os/clock.h"
#include "os/proc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH_MAX = 64 };

struct outcome {
    kopt_outcome what;
    char message[512];
    double times[KP_SAMPLES_MAX];
    unsigned n;
    struct kp_interval interval;
    struct kp_module_info info;
    struct kp_sensed sensed;
    double max_error;
    bool dropped;
    bool lost; /* the device is of no use to this process any more */
};

/* Wait until the session says that the cores are quiet. */
static bool wait_for_go(const struct kp_plan *p)
{
    struct kp_buf frame = KP_BUF_INIT(KP_FRAME_MAX);
    struct kp_message m = {0};
    bool ok = kp_plan_phase(p, "hold") && kp_worker_next(&frame, &m) &&
              strcmp(kp_message_what(&m, "do"), "go") == 0;
    kp_message_deinit(&m);
    kp_buf_deinit(&frame);
    return ok;
}

/* --- outcomes
 * --------------------------------------------------------------------------------- */

/* A kernel that faulted leaves the context unusable: does anything work still? */
static bool device_answers(struct kp_runner *r)
{
    struct kp_buffer *b = NULL;
    bool ok = kp_buffer_new(r->dev, 256, &b, NULL) == KOPT_OK &&
              kp_buffer_fill(r->dev, b, 0, NULL) == KOPT_OK;
    kp_buffer_free(r->dev, b);
    return ok;
}

static void failed(struct kp_runner *r, struct outcome *o, kopt_status st,
                   const kopt_error *err)
{
    (void)snprintf(o->message, sizeof(o->message), "%.500s", err->message);
    o->what = KOPT_OUT_LAUNCH_ERROR;
    if (st == KOPT_ERANGE || st == KOPT_EFULL) {
        o->what = KOPT_OUT_DEVICE_LIMIT;
    } else if (st == KOPT_EDEVICE && !device_answers(r)) {
        o->what = KOPT_OUT_CRASH;
        o->lost = true;
    }
}

/* The first poison is 0xFF bytes, which no right float is, but -1 is a right integer. What is
 * left out and was right by that chance is not right under this one. */
static const uint8_t second_poison = 0xA5;

/* --- checking
 * --------------------------------------------------------------------------------- */

static bool same_mistake(const struct kp_compare *a, const struct kp_compare *b)
{
    return a->n_bad == b->n_bad && a->first == b->first &&
           (a->got == b->got || (isnan(a->got) && isnan(b->got)));
}

static void unsteady(const struct kp_runner *r, const struct kp_mistake *mistake,
                     const char *but, struct outcome *o)
{
    o->what = KOPT_OUT_UNSTEADY;
    kp_runner_describe(r, mistake, o->message, sizeof(o->message));
    size_t n = strlen(o->message);
    (void)snprintf(o->message + n, sizeof(o->message) - n, "%s", but);
}

/* A first wrong answer may be the fault of an earlier candidate that wrote over inputs or
 * references: they are written anew and the launch repeated. Wrong again: twice the same
 * mistake is wrong, two different ones are unsteady. Right now although nothing had been
 * written over: unsteady, too. */
static kopt_status second_look(struct kp_runner *r, struct kp_candidate *c,
                               const struct kp_plan *p, const struct kp_mistake *first,
                               struct outcome *o, kopt_error *err)
{
    struct kp_mistake again;
    struct kp_mistake third;
    bool spoiled = false;
    double ns;
    if (!kp_plan_phase(p, "refreshing"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    kopt_status st = kp_runner_refresh(r, &spoiled, err);
    if (st == KOPT_OK && !kp_plan_phase(p, "checking"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    if (st == KOPT_OK)
        st = kp_candidate_run(r, c, 1, 0, &ns, err);
    if (st == KOPT_OK)
        st = kp_runner_check_all(r, &again, err);
    if (st != KOPT_OK)
        return st;
    o->max_error = again.compare.max_error;
    if (again.check == r->n_checks) {
        if (!spoiled)
            unsteady(r, first, " (its second launch was right)", o);
        return KOPT_OK;
    }
    if (!kp_plan_phase(p, "checking"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    st = kp_candidate_run(r, c, 1, 0, &ns, err);
    if (st == KOPT_OK)
        st = kp_runner_check_all(r, &third, err);
    if (st != KOPT_OK)
        return st;
    o->what = same_mistake(&again.compare, &third.compare) ? KOPT_OUT_WRONG : KOPT_OUT_UNSTEADY;
    kp_runner_describe(r, &again, o->message, sizeof(o->message));
    return KOPT_OK;
}

/* o->what is left alone when the answer is right. */
static kopt_status check_first(struct kp_runner *r, struct kp_candidate *c,
                               const struct kp_plan *p, struct outcome *o, kopt_error *err)
{
    struct kp_mistake got;
    kopt_status st = kp_runner_check_all(r, &got, err);
    if (st != KOPT_OK)
        return st;
    if (r->n_checks)
        o->max_error = got.compare.max_error;
    return got.check < r->n_checks ? second_look(r, c, p, &got, o, err) : KOPT_OK;
}

/* Does the first wrong element hold what its buffer was filled with before the launch? */
static bool is_left_out(struct kp_runner *r, const struct kp_candidate *c,
                        const struct kp_mistake *m)
{
    const struct kp_runner_check *k = &r->checks[m->check];
    unsigned char bytes[8];
    size_t size = kp_number_bytes(k->type);
    if (!r->buffers[k->buffer].out ||
        kp_buffer_read(r->dev, r->buffers[k->buffer].mem, (size_t)m->compare.first * size,
                       bytes, size, NULL) != KOPT_OK)
        return false;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != c->poison)
            return false;
    return true;
}

static kopt_status check_last(struct kp_runner *r, const struct kp_candidate *c,
                              struct outcome *o, kopt_error *err)
{
    struct kp_mistake got;
    kopt_status st = kp_runner_check_all(r, &got, err);
    if (st != KOPT_OK)
        return st;
    if (r->n_checks && !(got.compare.max_error <= o->max_error))
        o->max_error = got.compare.max_error;
    if (got.check == r->n_checks)
        return KOPT_OK;
    if (is_left_out(r, c, &got)) {
        unsteady(r, &got, ", which is never written", o);
        o->what = KOPT_OUT_WRONG;
    } else {
        unsteady(r, &got, " (its first launch was right)", o);
    }
    return KOPT_OK;
}

/* --- timing
 * ----------------------------------------------------------------------------------- */

/* Launches until two in a row agree within 3 %, five at most. *est gets the last time. */
static kopt_status warm_up(struct kp_runner *r, struct kp_candidate *c, const struct kp_plan *p,
                           double *est, kopt_error *err)
{
    double before = *est;
    for (int i = 0; i < 5; i++) {
        double ns;
        if (before > p->budget_ns / 5)
            break;
        kopt_status st = kp_candidate_run(r, c, 1, p->flush, &ns, err);
        if (st != KOPT_OK)
            return st;
        bool steady = kp_time_sane(ns) && fabs(ns - before) <= 0.03 * before;
        double before_that = before;
        if (kp_time_sane(ns))
            *est = before = ns;
        if (steady ||
            (kp_time_sane(p->best_ns) && fmin(*est, before_that) > p->drop_ratio * p->best_ns))
            break; /* steady, or no winner whatever follows */
        if (!kp_plan_phase(p, "timing"))
            return kp_err(err, KOPT_EIO, "the session is gone");
    }
    return KOPT_OK;
}

static unsigned batch_size(const struct kp_plan *p, const struct outcome *o, double est)
{
    unsigned n = o->n == 0 ? 3 : p->min_samples > o->n ? p->min_samples - o->n : 8;
    if (p->min_samples < n && o->n == 0)
        n = p->min_samples;
    if (o->n + n > p->max_samples)
        n = p->max_samples - o->n;
    if (n > BATCH_MAX)
        n = BATCH_MAX;
    while (n > 1 && n * est > p->batch_ns) /* the time limit looks after each batch */
        n /= 2;
    return n;
}

static bool clearly_worse(const struct kp_plan *p, const struct outcome *o)
{
    if (!kp_time_sane(p->best_ns) || o->n == 0)
        return false;
    double least = (double)INFINITY;
    for (unsigned i = 0; i < o->n; i++)
        least = fmin(least, o->times[i]);
    return least > p->best_ns * (o->n < 3 ? fmax(2, p->drop_ratio) : p->drop_ratio);
}

static void summarise(struct outcome *o)
{
    double sorted[KP_SAMPLES_MAX];
    memcpy(sorted, o->times, o->n * sizeof(sorted[0]));
    o->interval = kp_median_interval(sorted, o->n);
}

static bool enough(const struct kp_plan *p, const struct outcome *o, double spent_ns)
{
    if (o->n >= p->max_samples || (spent_ns > p->budget_ns && o->n >= 1))
        return true;
    if (o->n < p->min_samples)
        return false;
    const struct kp_interval *i = &o->interval;
    if ((i->high - i->low) / 2 <= p->precision * i->median)
        return true;
    return kp_time_sane(p->best_ns) &&
           i->low > p->best_ns; /* not a winner: no need to know it better */
}

/* One timed launch where the checked one took twice as long as the best's: if it does again,
 * that is all that needs to be known. */
static kopt_status first_look(struct kp_runner *r, struct kp_candidate *c,
                              const struct kp_plan *p, double est, struct outcome *o,
                              kopt_error *err)
{
    double ns;
    if (!kp_time_sane(p->best_ns) || est < 2 * p->best_ns)
        return KOPT_OK;
    kopt_status st = kp_candidate_run(r, c, 1, p->flush, &ns, err);
    if (st != KOPT_OK || !kp_time_sane(ns))
        return st;
    o->times[0] = ns;
    o->n = 1;
    o->dropped = clearly_worse(p, o);
    if (o->dropped)
        summarise(o);
    else
        o->n = 0;
    return KOPT_OK;
}

static kopt_status time_it(struct kp_runner *r, struct kp_candidate *c, const struct kp_plan *p,
                           double est, struct outcome *o, kopt_error *err)
{
    double spent = 0;
    unsigned refused = 0;
    unsigned launches = 0;
    struct kp_sense sense;
    kp_sense_begin(r, &sense, est * p->min_samples);
    while (refused < 3) {
        double batch[BATCH_MAX];
        unsigned n = batch_size(p, o, est);
        kopt_status st = kp_candidate_run(r, c, n, p->flush, batch, err);
        if (st != KOPT_OK)
            return st;
        launches += n;
        unsigned before = o->n;
        for (unsigned i = 0; i < n; i++) {
            if (kp_time_sane(batch[i])) {
                o->times[o->n++] = batch[i];
                spent += batch[i];
            }
        }
        refused = o->n > before ? 0 : refused + 1;
        if (o->n == 0)
            continue;
        summarise(o);
        o->dropped = clearly_worse(p, o);
        if (o->dropped || enough(p, o, spent))
            break;
        if (!kp_plan_phase(p, "timing"))
            return kp_err(err, KOPT_EIO, "the session is gone");
    }
    if (!o->dropped)
        kp_sense_end(r, &sense, spent, launches, &o->sensed);
    if (o->n == 0) {
        o->what = KOPT_OUT_BAD_TIME;
        (void)snprintf(o->message, sizeof(o->message),
                       "the device's clock gave no positive time in %u launches", launches);
    }
    return KOPT_OK;
}

/* --- the whole
 * -------------------------------------------------------------------------------- */

static kopt_status measure(struct kp_runner *r, struct kp_candidate *c, const struct kp_plan *p,
                           struct outcome *o, kopt_error *err)
{
    double est = (double)NAN;
    if (!kp_plan_phase(p, "loaded"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    kopt_status st = kp_candidate_run(r, c, 1, 0, &est, err);
    if (st == KOPT_OK && !(p->hold ? wait_for_go(p) : kp_plan_phase(p, "timing")))
        return kp_err(err, KOPT_EIO, "the session is gone");
    if (st == KOPT_OK && p->check)
        st = check_first(r, c, p, o, err);
    if (st != KOPT_OK || o->what != KOPT_OUT_OK)
        return st;
    if (!kp_time_sane(est))
        est = 0;
    c->poison = second_poison;
    st = first_look(r, c, p, est, o, err);
    if (st == KOPT_OK && !o->dropped)
        st = warm_up(r, c, p, &est, err);
    if (st == KOPT_OK && !o->dropped)
        st = time_it(r, c, p, est, o, err);
    if (st == KOPT_OK && o->what == KOPT_OUT_OK && p->check)
        st = check_last(r, c, o, err);
    return st;
}

static struct kp_json *outcome_to_json(const struct kp_plan *p, const struct outcome *o)
{
    struct kp_json *j = kp_message_new("is", "result", p->id);
    bool ok =
        kp_json_set_i64(j, "outcome", o->what) && kp_json_set_str(j, "message", o->message) &&
        kp_json_set_f64(j, "median", o->interval.median) &&
        kp_json_set_f64(j, "low", o->interval.low) &&
        kp_json_set_f64(j, "high", o->interval.high) && kp_json_set_i64(j, "n", o->n) &&
        kp_json_set_bool(j, "dropped", o->dropped) && kp_json_set_bool(j, "lost", o->lost) &&
        kp_json_set_i64(j, "registers", o->info.registers) &&
        kp_json_set_i64(j, "shared_bytes", o->info.shared_bytes) &&
        kp_json_set_i64(j, "local_bytes", o->info.local_bytes) &&
        kp_json_set_f64(j, "max_error", o->max_error) && kp_sensed_put(j, &o->sensed);
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

static bool send_outcome(const struct kp_runner *r, const struct kp_plan *p,
                         const struct outcome *o, int64_t device_ns)
{
    struct kp_json *j = outcome_to_json(p, o);
    if (j && !(kp_runner_put_use(r, j) && kp_json_set_i64(j, "device_ns", device_ns))) {
        kp_json_free(j);
        j = NULL;
    }
    return kp_worker_send(j, o->times, o->n * sizeof(double));
}

bool kp_runner_measure(struct kp_runner *r, const struct kp_message *m)
{
    int64_t begun = kp_clock_ns();
    struct kp_plan p = kp_plan_read(m);
    struct outcome *o = kp_calloc(1, sizeof(*o));
    struct kp_candidate c;
    kopt_error err = {0};
    if (!o)
        return kp_worker_no_memory();
    o->interval = (struct kp_interval){(double)NAN, (double)NAN, (double)NAN};
    o->max_error = (double)NAN; /* nothing was compared */
    o->sensed = kp_sensed_nothing;
    o->info = (struct kp_module_info){-1, -1, -1, -1};
    kp_runner_clear_use(r);
    kopt_status st = kp_candidate_load(r, m, &c, &err);
    if (st == KOPT_OK) {
        o->info = *kp_module_get_info(c.module);
        st = measure(r, &c, &p, o, &err);
    }
    if (st != KOPT_OK && st != KOPT_ENOMEM)
        failed(r, o, st, &err);
    kp_candidate_unload(r, &c);
    bool ok = st == KOPT_ENOMEM ? kp_worker_no_memory()
                                : send_outcome(r, &p, o, kp_clock_ns() - begun);
    ok = ok && !o->lost;
    kp_free(o);
    return ok;
}
