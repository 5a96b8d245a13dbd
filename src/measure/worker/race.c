/* SPDX-License-Identifier: MIT */
/* The final race of several loaded candidates. Layer: measure.
 *
 * Rounds of one launch each, in turn. In the last round every answer is compared with the
 * references. The candidates stay loaded for their energy. */
#include "measure/worker/plan.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/proc.h"

#include <math.h>
#include <string.h>

struct racer {
    bool bad;
    char message[512]; /* why */
    double max_error;  /* NaN = not compared */
};

struct race {
    struct kp_runner *r;
    struct kp_plan p;
    unsigned n;
    unsigned rounds; /* made so far */
    double *times;   /* owned; [rounds][n] */
    struct racer racers[KP_RUNNER_SLOTS];
};

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

static kopt_status go_on(const struct race *x, const char *phase, kopt_error *err)
{
    return kp_plan_phase(&x->p, phase) ? KOPT_OK : kp_err(err, KOPT_EIO, "the session is gone");
}

/* A wrong answer is its own fault unless something had been written over inputs or references.
 * Those are new then, and it has to be right twice: once, and once more after itself. */
static kopt_status look_again(struct race *x, unsigned s, kopt_error *err)
{
    struct racer *me = &x->racers[s];
    struct kp_mistake got;
    bool spoiled = false;
    double ns;
    kopt_status st = go_on(x, "refreshing", err);
    if (st == KOPT_OK)
        st = kp_runner_refresh(x->r, &spoiled, err);
    me->bad = !spoiled;
    for (int i = 0; i < 2 && st == KOPT_OK && !me->bad; i++) {
        st = go_on(x, "checking", err);
        if (st == KOPT_OK)
            st = kp_candidate_run(x->r, &x->r->slots[s], 1, x->p.flush, &ns, err);
        if (st == KOPT_OK)
            st = kp_runner_check_all(x->r, &got, err);
        if (st != KOPT_OK)
            break;
        me->max_error = got.compare.max_error;
        me->bad = got.check < x->r->n_checks;
        if (me->bad)
            kp_runner_describe(x->r, &got, me->message, sizeof(me->message));
    }
    if (!me->bad)
        me->message[0] = '\0';
    return st;
}

/* The outputs are those of the launch that was timed last. */
static kopt_status check_racer(struct race *x, unsigned s, kopt_error *err)
{
    struct kp_mistake got;
    kopt_status st = kp_runner_check_all(x->r, &got, err);
    if (st != KOPT_OK || x->r->n_checks == 0)
        return st;
    x->racers[s].max_error = got.compare.max_error;
    if (got.check == x->r->n_checks)
        return go_on(x, "checking", err);
    kp_runner_describe(x->r, &got, x->racers[s].message, sizeof(x->racers[s].message));
    return look_again(x, s, err);
}

/* One launch of each slot in turn; the order rotates, so that none always follows the same one.
 */
static kopt_status round_of(struct race *x, bool last, double *times, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (unsigned k = 0; k < x->n && st == KOPT_OK; k++) {
        unsigned s = (k + x->rounds) % x->n;
        double ns;
        st = kp_candidate_run(x->r, &x->r->slots[s], 1, x->p.flush, &ns, err);
        if (st != KOPT_OK)
            break;
        times[s] = kp_time_sane(ns) ? ns : (double)NAN;
        if (last && x->p.check)
            st = check_racer(x, s, err);
    }
    return st;
}

static kopt_status all_rounds(struct race *x, unsigned wanted, kopt_error *err)
{
    int64_t begun = kp_clock_ns();
    kopt_status st = round_of(x, false, x->times, err); /* warm-up, overwritten */
    for (bool last = false; st == KOPT_OK && !last;) {
        bool over = (double)(kp_clock_ns() - begun) > x->p.budget_ns;
        st = go_on(x, "timing", err);
        if (st != KOPT_OK)
            break;
        last = x->rounds + 1 >= wanted || (over && x->rounds + 1 >= x->p.min_samples);
        st = round_of(x, last, x->times + (size_t)x->rounds * x->n, err);
        x->rounds++;
    }
    return st;
}

static struct kp_json *racer_to_json(const struct racer *me, const struct kp_module_info *info)
{
    struct kp_json *j = kp_json_new_object();
    bool ok = kp_json_set_bool(j, "bad", me->bad) &&
              kp_json_set_str(j, "message", me->message) &&
              kp_json_set_f64(j, "max_error", me->max_error) &&
              kp_json_set_i64(j, "registers", info->registers) &&
              kp_json_set_i64(j, "shared_bytes", info->shared_bytes) &&
              kp_json_set_i64(j, "local_bytes", info->local_bytes);
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

static struct kp_json *race_to_json(const struct race *x)
{
    struct kp_json *j = kp_message_new("is", "raced", x->p.id);
    struct kp_json *racers = kp_json_new_array();
    bool ok = racers != NULL;
    for (unsigned s = 0; s < x->n && ok; s++)
        ok = kp_json_push(
            racers, racer_to_json(&x->racers[s], kp_module_get_info(x->r->slots[s].module)));
    if (!ok || !kp_json_set(j, "racers", racers)) {
        if (!ok)
            kp_json_free(racers);
        kp_json_free(j);
        return NULL;
    }
    if (kp_json_set_i64(j, "rounds", x->rounds) && kp_runner_put_use(x->r, j))
        return j;
    kp_json_free(j);
    return NULL;
}

bool kp_runner_race(struct kp_runner *r, const struct kp_message *m)
{
    kopt_error err;
    int64_t wanted = kp_message_i64(m, "rounds", 0);
    struct race *x = kp_calloc(1, sizeof(*x));
    bool alive = false;
    if (!x)
        return kp_worker_no_memory();
    x->r = r;
    x->p = kp_plan_read(m);
    while (x->n < KP_RUNNER_SLOTS && r->slots[x->n].module)
        x->racers[x->n++].max_error = (double)NAN;
    bool sane = x->n && wanted > 0 && wanted <= KP_SAMPLES_MAX;
    if (sane)
        x->times = kp_calloc((size_t)wanted * x->n, sizeof(*x->times));
    if (sane && !x->times)
        (void)kp_worker_no_memory();
    if (x->times) {
        kp_runner_clear_use(r);
        kopt_status st = all_rounds(x, (unsigned)wanted, &err);
        if (st == KOPT_OK)
            alive = kp_worker_send(race_to_json(x), x->times,
                                   (size_t)x->rounds * x->n * sizeof(*x->times));
        else
            alive = kp_worker_fail(x->p.id, &err);
    }
    kp_free(x->times);
    kp_free(x);
    return alive;
}
