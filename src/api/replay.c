/* SPDX-License-Identifier: MIT */
#include <kopt/replay.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "replay/compare.h"
#include "replay/run.h"

#include <math.h>
#include <string.h>

enum {
    UNTIL_EVALUATIONS = 1000 /* of a session that only `until` limits */,

    TEXT_MAX = 1 << 20
};

/* The handles are the library's own structs under their public names. */
static struct kp_recording *recording(kopt_recording *r)
{
    return (struct kp_recording *)(void *)r;
}

static const struct kp_recording *recording_c(const kopt_recording *r)
{
    return (const struct kp_recording *)(const void *)r;
}

kopt_status kopt_recording_open(const char *path, kopt_recording **out, kopt_error *err)
{
    struct kp_recording *r = NULL;
    kopt_status st = kp_recording_open(path, &r, err);
    *out = (kopt_recording *)(void *)r;
    return st;
}

void kopt_recording_close(kopt_recording *r)
{
    kp_recording_close(recording(r));
}

const kopt_recording_info *kopt_recording_get(const kopt_recording *r)
{
    return &recording_c(r)->info;
}

kopt_status kopt_recording_subjects(const char *path, int64_t **ids, size_t *n, kopt_error *err)
{
    return kp_recording_subjects(path, ids, n, err);
}

const char *kopt_end_name(kopt_end e)
{
    switch (e) {
    case KOPT_END_BUDGET:
        return "budget";
    case KOPT_END_EXHAUSTED:
        return "exhausted";
    case KOPT_END_UNTIL:
        return "until";
    case KOPT_END_STOPPED:
        break;
    }
    return "stopped";
}

/* --- one search ----------------------------------------------------------------------------
 */

void kopt_replay_options_init(kopt_replay_options *o)
{
    memset(o, 0, sizeof(*o));
    o->struct_bytes = sizeof(*o);
}

struct replay {
    const struct kp_recording *r;
    const kopt_replay_options *o;
    kopt_replay_report *report;
    double best_ns; /* INFINITY = none yet */
    uint64_t best_rank;
    struct kp_buf json;
    struct kp_buf text;
    bool failed;
};

static double known(double ns)
{
    return isfinite(ns) ? ns : (double)NAN;
}

static bool tell_caller(struct replay *x, const struct kp_run_step *s)
{
    kp_buf_clear(&x->json);
    kp_buf_clear(&x->text);
    kp_space_config_json(x->r->space, s->config, &x->json);
    kp_space_config_text(x->r->space, s->config, &x->text);
    x->failed = x->json.failed != KOPT_OK || x->text.failed != KOPT_OK;
    if (x->failed)
        return false;
    kopt_replay_step step = {.n = s->n,
                             .config = kp_buf_text(&x->json),
                             .config_text = kp_buf_text(&x->text),
                             .outcome = (kopt_outcome)x->r->outcome[s->rank],
                             .time_ns = known(s->time_ns),
                             .best_ns = known(s->best_ns),
                             .clock_s = s->clock_ns / 1e9,
                             .remaining = s->remaining};
    return x->o->step(x->o->user, &step) != 0;
}

static bool on_step(void *user, const struct kp_run_step *s)
{
    struct replay *x = user;
    kopt_replay_report *report = x->report;
    report->by_outcome[x->r->outcome[s->rank]]++;
    report->remaining = s->remaining;
    if (s->time_ns < x->best_ns) {
        x->best_ns = s->time_ns;
        x->best_rank = s->rank;
        report->best_at = s->n;
    }
    if (!report->near_at && s->best_ns <= 1.01 * x->r->info.best_ns)
        report->near_at = s->n;
    return !x->o->step || tell_caller(x, s);
}

static kopt_status check_options(const kopt_replay_options *o, kopt_error *err)
{
    if (o->struct_bytes != sizeof(*o))
        return kp_err(err, KOPT_EUSAGE, "kopt_replay_options_init() was not called");
    if (!(o->max_fraction >= 0 && o->max_fraction <= 1))
        return kp_err(err, KOPT_EUSAGE,
                      "the fraction of the space must be over 0 and at most 1");
    if (!(o->max_seconds >= 0))
        return kp_err(err, KOPT_EUSAGE, "the time budget must not be negative");
    if (!(o->until >= 0 && o->until < 1))
        return kp_err(err, KOPT_EUSAGE, "the remaining gain to stop at must be under 1");
    return KOPT_OK;
}

static struct kp_run_plan plan_of(const struct kp_recording *r, const kopt_replay_options *o)
{
    uint64_t count = kp_space_count(r->space);
    bool limited =
        o->max_evaluations || o->max_fraction > 0 || o->max_seconds > 0 || o->until > 0;
    uint64_t n = o->max_evaluations;
    if (!n)
        n = limited ? count : r->info.budget;
    if (o->max_fraction > 0) {
        uint64_t share = (uint64_t)ceil(o->max_fraction * (double)count);
        n = share < n ? share : n;
    }
    uint32_t compilers = o->compilers ? o->compilers : 1;
    uint64_t known = n; /* a time says nothing of how many there will be */
    if (!o->max_evaluations && o->max_fraction <= 0 && limited)
        known = o->max_seconds > 0 ? 0 : UNTIL_EVALUATIONS;
    return (struct kp_run_plan){.strategy = o->strategy,
                                .seed = o->seed ? o->seed : 1,
                                .budget = known,
                                .max_evaluations = n ? n : 1,
                                .max_ns = o->max_seconds > 0 ? o->max_seconds * 1e9
                                                             : (double)INFINITY,
                                .until = o->until,
                                .window = o->window ? o->window : compilers,
                                .compilers = compilers,
                                .remaining = o->until > 0};
}

static kopt_status keep_best(struct replay *x, kopt_error *err)
{
    uint32_t config[KP_PARAMS_MAX];
    kopt_replay_report *report = x->report;
    report->best_ns = known(x->best_ns);
    report->gap = report->best_ns / x->r->info.best_ns - 1;
    kp_buf_clear(&x->json);
    kp_buf_clear(&x->text);
    if (isfinite(x->best_ns)) {
        (void)kp_space_at(x->r->space, x->best_rank, config, NULL);
        kp_space_config_json(x->r->space, config, &x->json);
        kp_space_config_text(x->r->space, config, &x->text);
    }
    kopt_status st = kp_buf_status(&x->json, err);
    if (st == KOPT_OK)
        st = kp_buf_status(&x->text, err);
    if (st != KOPT_OK)
        return st;
    report->best = kp_strdup(kp_buf_text(&x->json));
    report->best_text = kp_strdup(kp_buf_text(&x->text));
    return report->best && report->best_text ? KOPT_OK : kp_err_nomem(err);
}

static kopt_status run_it(struct replay *x, struct kp_run_plan *plan, kopt_error *err)
{
    struct kp_run_end end;
    kopt_status st = kp_run(x->r, plan, on_step, x, &end, err);
    if (st == KOPT_OK && x->failed)
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        st = keep_best(x, err);
    if (st != KOPT_OK)
        return st;
    x->report->strategy = end.strategy;
    x->report->ended = end.ended;
    x->report->evaluations = end.n;
    x->report->clock_s = end.clock_ns / 1e9;
    x->report->search_s = end.search_ns / 1e9;
    return KOPT_OK;
}

kopt_status kopt_replay(const kopt_recording *r, const kopt_replay_options *o,
                        kopt_replay_report *report, kopt_error *err)
{
    struct kp_prior prior = {0};
    struct replay x = {.r = recording_c(r),
                       .o = o,
                       .report = report,
                       .best_ns = (double)INFINITY,
                       .json = KP_BUF_INIT(TEXT_MAX),
                       .text = KP_BUF_INIT(TEXT_MAX)};
    *report = (kopt_replay_report){.strategy = "", .remaining = (double)NAN};
    kopt_status st = check_options(o, err);
    for (size_t i = 0; st == KOPT_OK && i < o->n_priors; i++)
        if (kp_recording_same(recording_c(o->priors[i]), x.r))
            st = kp_err(err, KOPT_EUSAGE, "%s cannot be its own prior", x.r->info.path);
    if (st == KOPT_OK && o->n_priors)
        st = kp_run_prior(x.r, (const struct kp_recording *const *)(const void *)o->priors,
                          o->n_priors, o->prior_first ? o->prior_first : KP_PRIOR_FIRST, &prior,
                          err);
    if (st == KOPT_OK) {
        struct kp_run_plan plan = plan_of(x.r, o);
        plan.prior = prior.n ? &prior : NULL;
        report->prior = prior.n;
        st = run_it(&x, &plan, err);
    }
    kp_buf_deinit(&x.json);
    kp_buf_deinit(&x.text);
    kp_prior_deinit(&prior);
    if (st != KOPT_OK)
        kopt_replay_report_free(report);
    return st;
}

void kopt_replay_report_free(kopt_replay_report *report)
{
    kp_free(report->best);
    kp_free(report->best_text);
    report->best = NULL;
    report->best_text = NULL;
}

/* --- many searches -------------------------------------------------------------------------
 */

kopt_status kopt_traces_open(const char *path, kopt_traces **out, kopt_error *err)
{
    struct kp_traces *t = NULL;
    kopt_status st = kp_traces_open(path, &t, err);
    *out = (kopt_traces *)(void *)t;
    return st;
}

void kopt_traces_close(kopt_traces *t)
{
    kp_traces_close((struct kp_traces *)(void *)t);
}

void kopt_compare_options_init(kopt_compare_options *o)
{
    memset(o, 0, sizeof(*o));
    o->struct_bytes = sizeof(*o);
}

kopt_status kopt_compare(const kopt_compare_options *o, kopt_compare_report **out,
                         kopt_error *err)
{
    return kp_compare(o, out, err);
}

void kopt_compare_report_free(kopt_compare_report *r)
{
    kp_compare_free(r);
}
