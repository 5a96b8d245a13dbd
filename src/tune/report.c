/* SPDX-License-Identifier: MIT */
#include "tune/internal.h"

#include "base/alloc.h"
#include "measure/result.h"
#include "os/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* Of several devices the shares are means, so that with one or many they add up to the wall
 * time. */
static void split(struct kp_session *s)
{
    struct kp_lab_use use;
    kopt_tune_split *p = &s->report.split;
    double lanes = (double)kp_lab_n_devices(s->lab);
    kp_lab_get_use(s->lab, &use);
    p->wall_s = seconds(kp_clock_ns() - s->begun_ns);
    p->device_s = seconds(use.device_ns) / lanes;
    p->launch_s = seconds(use.launch_ns) / lanes;
    p->kernel_s = seconds(use.kernel_ns) / lanes;
    p->load_s = seconds(use.load_ns) / lanes;
    p->check_s = seconds(use.check_ns) / lanes;
    p->idle_s = fmax(0, p->wall_s - p->device_s);
    p->compile_s = seconds(use.compile_ns);
    p->search_s = seconds(s->search_ns);
    p->store_s = seconds(s->store_ns);
    kp_log(
        &s->log, KP_LOG_DEBUG,
        "reading sensors took %.3f s in all, the ways from a result to the next launch %.3f s",
        seconds(use.sense_ns), seconds(s->dispatch_ns));
    int64_t ours = s->search_use.device_ns - s->search_use.launch_ns + s->dispatch_ns;
    p->overhead_ms = s->n_fed ? (double)ours / 1e6 / (double)s->n_fed : (double)NAN;
}

static kopt_status metrics(struct kp_session *s, kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    s->metrics = kp_calloc(k->n_metrics + 1, sizeof(*s->metrics));
    if (!s->metrics)
        return kp_err_nomem(err);
    for (size_t i = 0; i < k->n_metrics; i++) {
        kopt_metric *m = &s->metrics[i];
        *m = (kopt_metric){k->metrics[i].name, (double)NAN, (double)NAN};
        if (s->best.config)
            (void)kp_bound_metric(s->bound, i, s->best.config, s->best.r.median_ns, &m->best);
        if (s->first_kept.config && s->first_kept.r.outcome == KOPT_OUT_OK)
            (void)kp_bound_metric(s->bound, i, s->first_kept.config, s->first_kept.r.median_ns,
                                  &m->first);
    }
    s->report.metrics = s->metrics;
    s->report.n_metrics = k->n_metrics;
    return KOPT_OK;
}

/* What was compared has an error, if only one of 0. */
static bool was_checked(const struct kept *k)
{
    return k->config && k->r.outcome == KOPT_OUT_OK && !isnan(k->r.max_error);
}

/* What is reported as valid was compared with the references. */
static bool checked(const struct kp_session *s)
{
    bool first_ok = s->first_kept.config && s->first_kept.r.outcome == KOPT_OUT_OK;
    return was_checked(&s->best) && (!first_ok || was_checked(&s->first_kept));
}

/* Its median in the search, where the race gave it another. */
static double search_median(const struct kp_session *s, const struct kept *k)
{
    for (size_t i = 0; i < s->n_top; i++)
        if (memcmp(s->top[i].config, k->config, s->n_params * sizeof(*k->config)) == 0)
            return s->top[i].r.median_ns;
    return k->r.median_ns;
}

/* Both times from the race, or both from the search. */
static double predicted_share(const struct kp_session *s)
{
    const kopt_result *p = &s->predicted.r;
    if (!s->best.config || !s->predicted.config || p->outcome != KOPT_OUT_OK)
        return (double)NAN;
    return (p->race ? s->best.r.median_ns : search_median(s, &s->best)) / p->median_ns;
}

size_t kp_session_n_tried(const struct kp_session *s)
{
    const struct kp_prior *p = &s->predictions.prior;
    size_t n = p->n_first < p->n ? p->n_first : p->n;
    if (!s->budget || s->budget > n)
        return n;
    return (size_t)s->budget - (kp_prior_find(p, s->bound->space, s->first) >= s->budget);
}

static void origin(struct kp_session *s)
{
    kopt_tune_report *r = &s->report;
    const struct kp_prior *p = &s->predictions.prior;
    const uint32_t *best = s->best.config;
    bool listed = best && kp_prior_find(p, s->bound->space, best) < kp_session_n_tried(s);
    r->best_rank = listed && !p->measured ? kp_prior_find(p, s->bound->space, best) + 1 : 0;
    r->best_from = !best                                                      ? ""
                   : memcmp(best, s->first, s->n_params * sizeof(*best)) == 0 ? "default"
                   : !listed                                                  ? "search"
                   : p->measured                                              ? "prior"
                                                                              : "model";
    r->predicted = s->predicted.config ? s->predicted.r : kp_result_unknown(KOPT_OUT_OK, "");
    r->predicted_share = predicted_share(s);
}

/* Nothing but the user, an error or the end of the time ends a search before its budget. */
static const char *ended(const struct kp_session *s)
{
    if (s->interrupted)
        return "stopped";
    if (s->progress.done >= kp_space_count(s->bound->space))
        return "exhausted";
    if (s->until_met)
        return "until";
    bool late = s->o.max_seconds > 0 && s->report.split.wall_s >= s->o.max_seconds;
    return late || s->progress.done >= s->budget ? "budget" : "stopped";
}

kopt_status kp_session_report(struct kp_session *s, kopt_error *err)
{
    kopt_tune_report *r = &s->report;
    r->best = s->best.config ? s->best.r : kp_result_unknown(KOPT_OUT_OK, "");
    r->best_text = s->best.text ? s->best.text : "";
    r->first = s->first_kept.config ? s->first_kept.r : kp_result_unknown(KOPT_OUT_OK, "");
    r->first_text = s->first_kept.text ? s->first_kept.text : "";
    r->tied = (const char *const *)s->tied_owned;
    r->progress = s->progress;
    r->subject = s->store ? s->subject.id : 0;
    r->run = s->store ? s->run : 0;
    r->checked = checked(s);
    r->interrupted = s->interrupted;
    r->first_failure = s->first_failure ? s->first_failure : "";
    origin(s);
    split(s);
    r->ended = ended(s);
    return metrics(s, err);
}
