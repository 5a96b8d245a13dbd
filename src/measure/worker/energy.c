/* SPDX-License-Identifier: MIT */
/* The energy of several loaded candidates, after their race. Layer: measure. */
#include "measure/worker/plan.h"
#include "measure/worker/sense.h"

#include "os/clock.h"

#include <math.h>

enum { REPEAT_MAX = 1000 };
static const double repeat_ns = 2e7; /* of launches between two readings */
static const double span_ns = 1.5e8; /* between the steps of the counter, at least */
static const int64_t repeat_wall_ns = 2000000000; /* for one racer's energy, at most */

/* One of them, launched back to back. */
struct load {
    struct kp_runner *r;
    struct kp_plan p;
    struct kp_candidate *c;
    double est_ns; /* of a launch */
};

/* What has happened up to a moment. */
struct meter {
    double joules; /* the device's counter */
    double busy_ns;
    int64_t wall_ns;
    unsigned n; /* launches */
};

static kopt_status repeat(struct load *x, struct meter *m, kopt_error *err)
{
    double times[REPEAT_MAX];
    double most = fmin(REPEAT_MAX, fmin(repeat_ns, x->p.batch_ns) / x->est_ns);
    unsigned n = most > 1 ? (unsigned)most : 1;
    if (!kp_plan_phase(&x->p, "timing"))
        return kp_err(err, KOPT_EIO, "the session is gone");
    kopt_status st = kp_candidate_repeat(x->r, x->c, n, times, err);
    for (unsigned i = 0; i < n && st == KOPT_OK; i++)
        m->busy_ns += kp_time_sane(times[i]) ? times[i] : 0;
    m->n += n;
    m->wall_ns = kp_clock_ns();
    return st;
}

/* Launches back to back, from one step of the counter of energy to another: a difference
 * between any two moments would be wrong by up to a step at each end. Nothing is read in
 * between, since that takes time in which the device stands still. */
static kopt_status energy_of(struct load *x, struct kp_sensed *out, kopt_error *err)
{
    struct kp_sensors now;
    struct meter m = {.wall_ns = kp_clock_ns()};
    struct meter from = {0};
    int64_t begun = m.wall_ns;
    kp_sense_read(x->r, &now);
    kp_sense_throttle(&now, out);
    double seen = now.energy_j;
    bool counted = isfinite(seen) && kp_time_sane(x->est_ns);
    for (int steps = 0; counted && steps < 2 && m.wall_ns - begun < repeat_wall_ns;) {
        kopt_status st = repeat(x, &m, err);
        if (st != KOPT_OK)
            return st;
        if (steps == 1 && m.busy_ns - from.busy_ns < span_ns)
            continue;
        kp_sense_read(x->r, &now);
        kp_sense_throttle(&now, out);
        counted = isfinite(now.energy_j);
        bool fresh = steps == 1 && seen == from.joules; /* the first reading after the span */
        bool stepped = now.energy_j > seen && !fresh;
        seen = m.joules = now.energy_j;
        if (stepped && ++steps == 1)
            from = m;
        if (steps == 2) {
            double passed_ns =
                fmax((double)(m.wall_ns - from.wall_ns), m.busy_ns - from.busy_ns);
            out->energy_j = (m.joules - from.joules) / (m.n - from.n);
            out->power_w = (m.joules - from.joules) / (passed_ns / 1e9);
        }
    }
    if (isnan(out->power_w))
        out->power_w = now.power_w;
    out->sm_mhz = now.sm_mhz;
    out->temp_c = now.temp_c;
    return KOPT_OK;
}

static struct kp_json *sensed_to_json(const struct kp_sensed *s)
{
    struct kp_json *j = kp_json_new_object();
    if (j && kp_sensed_put(j, s))
        return j;
    kp_json_free(j);
    return NULL;
}

static kopt_status all_of(struct load *x, const struct kp_message *m, struct kp_json *out,
                          kopt_error *err)
{
    const struct kp_json *est = kp_json_get(m->head, "est");
    kopt_status st = KOPT_OK;
    for (size_t s = 0; s < kp_json_size(est) && s < KP_RUNNER_SLOTS && st == KOPT_OK; s++) {
        struct kp_sensed sensed = kp_sensed_nothing;
        x->c = &x->r->slots[s];
        if (x->c->module && kp_json_as_f64(kp_json_at(est, s), &x->est_ns))
            st = energy_of(x, &sensed, err);
        if (st == KOPT_OK && !kp_json_push(out, sensed_to_json(&sensed)))
            st = kp_err_nomem(err);
    }
    return st;
}

bool kp_runner_energy(struct kp_runner *r, const struct kp_message *m)
{
    kopt_error err;
    struct load x = {.r = r, .p = kp_plan_read(m)};
    struct kp_json *j = kp_message_new("is", "sensed", x.p.id);
    struct kp_json *list = kp_json_new_array();
    kp_runner_clear_use(r);
    kopt_status st = j && list ? all_of(&x, m, list, &err) : kp_err_nomem(&err);
    for (unsigned s = 0; s < KP_RUNNER_SLOTS; s++)
        kp_candidate_unload(r, &r->slots[s]);
    if (st != KOPT_OK)
        kp_json_free(list);
    else if (!kp_json_set(j, "racers", list) || !kp_runner_put_use(r, j))
        st = kp_err_nomem(&err);
    if (st == KOPT_OK)
        return kp_worker_send(j, NULL, 0);
    kp_json_free(j);
    return kp_worker_fail(x.p.id, &err);
}
