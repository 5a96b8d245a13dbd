/* SPDX-License-Identifier: MIT */
/* Timing and checking one candidate, and the final race of several. Layer: measure.
 *
 * A measurement: load, one checked launch, warm-up until two launches agree, then timed
 * launches in batches, each with inputs restored, outputs poisoned and the cache flushed before
 * it, until the median's confidence interval is narrow, the candidate is clearly worse than the
 * best, or the budget is spent; the last timed launch's outputs are checked again. */
#include "measure/worker/runner.h"

#include "base/alloc.h"
#include "math/stats.h"
#include "os/clock.h"
#include "os/proc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES_MAX = 1000, BATCH_MAX = 64 };

struct plan {
    int64_t id;
    unsigned min_samples;
    unsigned max_samples;
    double precision;  /* stop at this half width over the median */
    double best_ns;    /* NaN = none */
    double drop_ratio; /* clearly worse: every sample over best_ns times this */
    double budget_ns;  /* of timed launches */
    size_t flush;
    double batch_ns; /* of launches without a word to the session */
    bool check;
    bool hold; /* ask before the timed part: compilers must be paused first */
};

struct outcome {
    kopt_outcome what;
    char message[512];
    double times[SAMPLES_MAX];
    unsigned n;
    struct kp_interval interval;
    struct kp_module_info info;
    struct kp_sensors sensors;
    double max_error;
    bool dropped;
    bool lost; /* the device is of no use to this process any more */
};

static struct plan read_plan(const struct kp_message *m)
{
    struct plan p = {.id = kp_message_i64(m, "id", 0),
                     .min_samples = (unsigned)kp_message_i64(m, "min_samples", 7),
                     .max_samples = (unsigned)kp_message_i64(m, "max_samples", 50),
                     .precision = kp_message_f64(m, "precision", 0.01),
                     .best_ns = kp_message_f64(m, "best_ns", (double)NAN),
                     .drop_ratio = kp_message_f64(m, "drop_ratio", 1.25),
                     .budget_ns = kp_message_f64(m, "budget_ns", 1e9),
                     .batch_ns = kp_message_f64(m, "batch_ns", 1e9),
                     .flush = (size_t)kp_message_i64(m, "flush", 0)};
    (void)kp_json_as_bool(kp_json_get(m->head, "check"), &p.check);
    (void)kp_json_as_bool(kp_json_get(m->head, "hold"), &p.hold);
    if (p.max_samples > SAMPLES_MAX)
        p.max_samples = SAMPLES_MAX;
    if (p.min_samples < 1)
        p.min_samples = 1;
    if (p.max_samples < p.min_samples)
        p.max_samples = p.min_samples;
    return p;
}

static bool phase(const struct plan *p, const char *name)
{
    struct kp_json *j = kp_message_new("is", "phase", p->id);
    if (j)
        (void)kp_json_set_str(j, "phase", name);
    return kp_message_send(KP_PROC_FD, j, NULL, 0, NULL) == KOPT_OK;
}

/* Wait until the session says that the cores are quiet. */
static bool wait_for_go(const struct plan *p)
{
    struct kp_buf frame = KP_BUF_INIT(KP_FRAME_MAX);
    struct kp_message m = {0};
    bool ok = phase(p, "hold") && kp_worker_next(&frame, &m) &&
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

static void describe(const struct kp_runner *r, size_t check, const struct kp_compare *c,
                     struct outcome *o)
{
    uint32_t buffer = r->checks[check].buffer;
    if (c->n_nan == c->n_bad)
        (void)snprintf(o->message, sizeof(o->message),
                       "argument %u: %llu of %llu elements are NaN or were never written, the "
                       "first at %llu",
                       buffer + 1, (unsigned long long)c->n_bad, (unsigned long long)c->n,
                       (unsigned long long)c->first);
    else
        (void)snprintf(o->message, sizeof(o->message),
                       "argument %u: %llu of %llu elements outside the tolerance, the first at "
                       "%llu: %.9g, expected %.9g",
                       buffer + 1, (unsigned long long)c->n_bad, (unsigned long long)c->n,
                       (unsigned long long)c->first, c->got, c->want);
}

/* --- checking
 * --------------------------------------------------------------------------------- */

static bool same_mistake(const struct kp_compare *a, const struct kp_compare *b)
{
    return a->n_bad == b->n_bad && a->first == b->first &&
           (a->got == b->got || (isnan(a->got) && isnan(b->got)));
}

/* A first wrong answer may be the fault of an earlier candidate that wrote over inputs or
 * references: they are written anew and the launch repeated. Wrong again: twice the same
 * mistake is wrong, two different ones are unsteady. */
static kopt_status second_look(struct kp_runner *r, struct kp_candidate *c,
                               const struct plan *p, struct outcome *o, kopt_error *err)
{
    struct kp_compare again = {0};
    size_t check = 0;
    double ns;
    if (!phase(p, "checking"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    kopt_status st = kp_runner_refresh(r, err);
    if (st == KOPT_OK)
        st = kp_candidate_run(r, c, 1, 0, &ns, err);
    if (st == KOPT_OK)
        st = kp_runner_check_all(r, &again, &check, err);
    if (st != KOPT_OK || check == r->n_checks) {
        o->max_error = again.max_error;
        return st;
    }
    struct kp_compare third;
    size_t check3;
    if (!phase(p, "checking"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    st = kp_candidate_run(r, c, 1, 0, &ns, err);
    if (st == KOPT_OK)
        st = kp_runner_check_all(r, &third, &check3, err);
    if (st != KOPT_OK)
        return st;
    o->what = same_mistake(&again, &third) ? KOPT_OUT_WRONG : KOPT_OUT_UNSTEADY;
    describe(r, check, &again, o);
    return KOPT_OK;
}

/* o->what is left alone when the answer is right. */
static kopt_status check_first(struct kp_runner *r, struct kp_candidate *c,
                               const struct plan *p, struct outcome *o, kopt_error *err)
{
    struct kp_compare cmp;
    size_t check;
    kopt_status st = kp_runner_check_all(r, &cmp, &check, err);
    if (r->n_checks)
        o->max_error = cmp.max_error;
    if (st == KOPT_OK && check < r->n_checks)
        st = second_look(r, c, p, o, err);
    return st;
}

static kopt_status check_last(struct kp_runner *r, struct outcome *o, kopt_error *err)
{
    struct kp_compare cmp;
    size_t check;
    kopt_status st = kp_runner_check_all(r, &cmp, &check, err);
    if (r->n_checks && !(cmp.max_error <= o->max_error))
        o->max_error = cmp.max_error;
    if (st == KOPT_OK && check < r->n_checks) {
        o->what = KOPT_OUT_UNSTEADY;
        describe(r, check, &cmp, o);
        size_t n = strlen(o->message);
        (void)snprintf(o->message + n, sizeof(o->message) - n, " (its first launch was right)");
    }
    return st;
}

/* --- timing
 * ----------------------------------------------------------------------------------- */

static bool sane(double ns)
{
    return isfinite(ns) && ns > 0;
}

/* Launches until two in a row agree within 3 %, five at most. *est gets the last time. */
static kopt_status warm_up(struct kp_runner *r, struct kp_candidate *c, const struct plan *p,
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
        bool steady = sane(ns) && fabs(ns - before) <= 0.03 * before;
        double before_that = before;
        if (sane(ns))
            *est = before = ns;
        if (steady ||
            (sane(p->best_ns) && fmin(*est, before_that) > p->drop_ratio * p->best_ns))
            break; /* steady, or no winner whatever follows */
        if (!phase(p, "timing"))
            return kp_err(err, KOPT_EIO, "the session is gone");
    }
    return KOPT_OK;
}

static unsigned batch_size(const struct plan *p, const struct outcome *o, double est)
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

static bool clearly_worse(const struct plan *p, const struct outcome *o)
{
    if (!sane(p->best_ns) || o->n == 0)
        return false;
    double least = (double)INFINITY;
    for (unsigned i = 0; i < o->n; i++)
        least = fmin(least, o->times[i]);
    return least > p->best_ns * (o->n < 3 ? fmax(2, p->drop_ratio) : p->drop_ratio);
}

static void summarise(struct outcome *o)
{
    double sorted[SAMPLES_MAX];
    memcpy(sorted, o->times, o->n * sizeof(sorted[0]));
    o->interval = kp_median_interval(sorted, o->n);
}

static bool enough(const struct plan *p, const struct outcome *o, double spent_ns)
{
    if (o->n >= p->max_samples || (spent_ns > p->budget_ns && o->n >= 1))
        return true;
    if (o->n < p->min_samples)
        return false;
    const struct kp_interval *i = &o->interval;
    if ((i->high - i->low) / 2 <= p->precision * i->median)
        return true;
    return sane(p->best_ns) &&
           i->low > p->best_ns; /* not a winner: no need to know it better */
}

/* One timed launch where the checked one took twice as long as the best's: if it does again,
 * that is all that needs to be known. */
static kopt_status first_look(struct kp_runner *r, struct kp_candidate *c, const struct plan *p,
                              double est, struct outcome *o, kopt_error *err)
{
    double ns;
    if (!sane(p->best_ns) || est < 2 * p->best_ns)
        return KOPT_OK;
    kopt_status st = kp_candidate_run(r, c, 1, p->flush, &ns, err);
    if (st != KOPT_OK || !sane(ns))
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

static kopt_status time_it(struct kp_runner *r, struct kp_candidate *c, const struct plan *p,
                           double est, struct outcome *o, kopt_error *err)
{
    double spent = 0;
    unsigned refused = 0;
    unsigned launches = 0;
    while (refused < 3) {
        double batch[BATCH_MAX];
        unsigned n = batch_size(p, o, est);
        kopt_status st = kp_candidate_run(r, c, n, p->flush, batch, err);
        if (st != KOPT_OK)
            return st;
        launches += n;
        unsigned before = o->n;
        for (unsigned i = 0; i < n; i++) {
            if (sane(batch[i])) {
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
        if (!phase(p, "timing"))
            return kp_err(err, KOPT_EIO, "the session is gone");
    }
    if (o->n == 0) {
        o->what = KOPT_OUT_BAD_TIME;
        (void)snprintf(o->message, sizeof(o->message),
                       "the device's clock gave no positive time in %u launches", launches);
    }
    return KOPT_OK;
}

/* Asking the management library takes milliseconds: once a second is often enough. */
static void read_sensors(struct kp_runner *r, struct outcome *o)
{
    static const int64_t pause_ns = 1000000000;
    int64_t now = kp_clock_ns();
    if (o->dropped || (r->sensed_ns && now - r->sensed_ns < pause_ns))
        return;
    kp_device_sensors(r->dev, &o->sensors);
    r->sensed_ns = kp_clock_ns();
    r->sense_ns += r->sensed_ns - now;
}

/* --- the whole
 * -------------------------------------------------------------------------------- */

static kopt_status measure(struct kp_runner *r, struct kp_candidate *c, const struct plan *p,
                           struct outcome *o, kopt_error *err)
{
    double est = (double)NAN;
    if (!phase(p, "loaded"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    kopt_status st = kp_candidate_run(r, c, 1, 0, &est, err);
    if (st == KOPT_OK && p->check)
        st = check_first(r, c, p, o, err);
    if (st != KOPT_OK || o->what != KOPT_OUT_OK)
        return st;
    if (!(p->hold ? wait_for_go(p) : phase(p, "timing")))
        return kp_err(err, KOPT_EIO, "the session is gone");
    if (!sane(est))
        est = 0;
    st = first_look(r, c, p, est, o, err);
    if (st == KOPT_OK && !o->dropped)
        st = warm_up(r, c, p, &est, err);
    if (st == KOPT_OK && !o->dropped)
        st = time_it(r, c, p, est, o, err);
    if (st == KOPT_OK)
        read_sensors(r, o);
    if (st == KOPT_OK && o->what == KOPT_OUT_OK && p->check)
        st = check_last(r, o, err);
    return st;
}

static struct kp_json *outcome_to_json(const struct plan *p, const struct outcome *o)
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
        kp_json_set_f64(j, "max_error", o->max_error) &&
        kp_json_set_f64(j, "power_w", o->sensors.power_w) &&
        kp_json_set_f64(j, "sm_mhz", o->sensors.sm_mhz) &&
        kp_json_set_f64(j, "temp_c", o->sensors.temp_c);
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

bool kp_runner_measure(struct kp_runner *r, const struct kp_message *m)
{
    int64_t begun = kp_clock_ns();
    struct plan p = read_plan(m);
    struct outcome *o = kp_calloc(1, sizeof(*o));
    struct kp_candidate c;
    kopt_error err = {0};
    if (!o)
        return false;
    o->interval = (struct kp_interval){(double)NAN, (double)NAN, (double)NAN};
    o->max_error = (double)NAN; /* nothing was compared */
    o->sensors =
        (struct kp_sensors){(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN, 0};
    o->info = (struct kp_module_info){-1, -1, -1, -1};
    r->launch_ns = r->check_ns = r->sense_ns = 0;
    kopt_status st = kp_candidate_load(r, m, &c, &err);
    int64_t load_ns = kp_clock_ns() - begun;
    if (st == KOPT_OK) {
        o->info = *kp_module_get_info(c.module);
        st = measure(r, &c, &p, o, &err);
    }
    if (st != KOPT_OK)
        failed(r, o, st, &err);
    int64_t unload_begun = kp_clock_ns();
    kp_candidate_unload(r, &c);
    int64_t ended = kp_clock_ns();
    struct kp_json *j = outcome_to_json(&p, o);
    if (j) {
        (void)kp_json_set_i64(j, "device_ns", ended - begun);
        (void)kp_json_set_i64(j, "launch_ns", r->launch_ns);
        (void)kp_json_set_i64(j, "load_ns", load_ns + ended - unload_begun);
        (void)kp_json_set_i64(j, "check_ns", r->check_ns);
        (void)kp_json_set_i64(j, "sense_ns", r->sense_ns);
    }
    bool ok = kp_message_send(KP_PROC_FD, j, o->times, o->n * sizeof(double), NULL) == KOPT_OK;
    ok = ok && !o->lost;
    kp_free(o);
    return ok;
}

/* --- the race
 * --------------------------------------------------------------------------------- */

bool kp_runner_slot(struct kp_runner *r, const struct kp_message *m)
{
    kopt_error err;
    int64_t id = kp_message_i64(m, "id", 0);
    int64_t slot = kp_message_i64(m, "slot", -1);
    if (slot < 0 || slot >= KP_RUNNER_SLOTS || r->slots[slot].module)
        return false;
    kopt_status st = kp_candidate_load(r, m, &r->slots[slot], &err);
    for (unsigned s = 0; st != KOPT_OK && s < KP_RUNNER_SLOTS; s++)
        kp_candidate_unload(r, &r->slots[s]); /* the race is off */
    return st == KOPT_OK ? kp_worker_reply(id, "done") : kp_worker_fail(id, &err);
}

/* One launch of each slot in turn; the order rotates, so that none always follows the same one.
 */
static kopt_status round_of(struct kp_runner *r, const struct plan *p, unsigned n_slots,
                            unsigned round, double *times, kopt_error *err)
{
    for (unsigned k = 0; k < n_slots; k++) {
        unsigned s = (k + round) % n_slots;
        double ns;
        kopt_status st = kp_candidate_run(r, &r->slots[s], 1, p->flush, &ns, err);
        if (st != KOPT_OK)
            return st;
        times[s] = sane(ns) ? ns : (double)NAN;
    }
    return KOPT_OK;
}

/* Every slot's last answer must still be right: bit s of *bad is set where it is not. */
static kopt_status check_slots(struct kp_runner *r, unsigned n_slots, int64_t *bad,
                               kopt_error *err)
{
    for (unsigned s = 0; s < n_slots; s++) {
        struct kp_compare cmp;
        size_t check;
        double ns;
        kopt_status st = kp_candidate_run(r, &r->slots[s], 1, 0, &ns, err);
        if (st == KOPT_OK)
            st = kp_runner_check_all(r, &cmp, &check, err);
        if (st != KOPT_OK)
            return st;
        if (check < r->n_checks)
            *bad |= (int64_t)1 << s;
    }
    return KOPT_OK;
}

bool kp_runner_race(struct kp_runner *r, const struct kp_message *m)
{
    struct plan p = read_plan(m);
    kopt_error err;
    int64_t bad = 0;
    unsigned n_slots = 0;
    unsigned rounds = (unsigned)kp_message_i64(m, "rounds", 0);
    while (n_slots < KP_RUNNER_SLOTS && r->slots[n_slots].module)
        n_slots++;
    if (n_slots == 0 || rounds == 0 || rounds > SAMPLES_MAX)
        return false;
    double *times = kp_calloc((size_t)(rounds + 1) * n_slots, sizeof(*times));
    if (!times)
        return false;
    int64_t begun = kp_clock_ns();
    r->launch_ns = 0;
    unsigned done = 0;
    bool alive = true;
    kopt_status st = round_of(r, &p, n_slots, 0, times, &err); /* warm-up, overwritten */
    while (st == KOPT_OK && alive && done < rounds) {
        st = round_of(r, &p, n_slots, done, times + (size_t)done * n_slots, &err);
        done++;
        if ((double)(kp_clock_ns() - begun) > p.budget_ns && done >= p.min_samples)
            break;
        alive = phase(&p, "timing");
    }
    if (st == KOPT_OK && alive && p.check)
        st = check_slots(r, n_slots, &bad, &err);
    for (unsigned s = 0; s < n_slots; s++)
        kp_candidate_unload(r, &r->slots[s]);
    if (st != KOPT_OK) {
        alive = kp_worker_fail(p.id, &err);
    } else if (alive) {
        struct kp_json *j = kp_message_new("is", "raced", p.id);
        bool ok = kp_json_set_i64(j, "slots", n_slots) && kp_json_set_i64(j, "rounds", done) &&
                  kp_json_set_i64(j, "bad", bad) &&
                  kp_json_set_i64(j, "launch_ns", r->launch_ns);
        if (!ok) {
            kp_json_free(j);
            j = NULL;
        }
        alive = kp_message_send(KP_PROC_FD, j, times, (size_t)done * n_slots * sizeof(*times),
                                NULL) == KOPT_OK;
    }
    kp_free(times);
    return alive;
}
