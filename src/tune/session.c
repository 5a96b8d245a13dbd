/* SPDX-License-Identifier: MIT */
#include "tune/internal.h"

#include "base/alloc.h"
#include "measure/data.h"
#include "os/clock.h"
#include "tune/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    STORE_BUSY_MS = 10000,
    DEFAULT_EVALUATIONS = 1000,

    PAST_MAX = 1 << 24
};
static const double limit_max_s = 1e6;

/* --- options
 * ---------------------------------------------------------------------------------- */

static void log_line(void *user, enum kp_log_level level, const char *line)
{
    const struct kp_session *s = user;
    if (s->o.callbacks.log)
        s->o.callbacks.log(s->o.callbacks.user, (kopt_log_level)level, line);
}

static bool sane_limit(double s)
{
    return s >= 0 && s <= limit_max_s; /* false for NaN, too */
}

static bool wants_prior(const kopt_tune_options *o)
{
    return o->prior ? strcmp(o->prior, "none") != 0 : !o->model;
}

static kopt_status check_options(const kopt_tune_options *o, kopt_error *err)
{
    if (o->struct_bytes != sizeof(*o))
        return kp_err(err, KOPT_EUSAGE, "kopt_tune_options_init() was not called");
    if (!o->kernel)
        return kp_err(err, KOPT_EUSAGE, "no kernel file");
    if (o->max_fraction < 0 || o->max_fraction > 1 || isnan(o->max_fraction))
        return kp_err(err, KOPT_EUSAGE,
                      "the fraction of the space must be over 0 and at most 1");
    if (o->max_seconds < 0 || isnan(o->max_seconds))
        return kp_err(err, KOPT_EUSAGE, "the time budget must not be negative");
    if (o->max_samples && o->min_samples > o->max_samples)
        return kp_err(err, KOPT_EUSAGE, "at least %u samples and at most %u", o->min_samples,
                      o->max_samples);
    if (!sane_limit(o->compile_timeout_s) || !sane_limit(o->launch_timeout_s))
        return kp_err(err, KOPT_EUSAGE, "a time limit must be from 0 to %g s", limit_max_s);
    if (isnan(o->precision) || o->precision < 0)
        return kp_err(err, KOPT_EUSAGE, "the precision must not be negative");
    if (o->max_samples > KOPT_SAMPLES_MAX || o->min_samples > KOPT_SAMPLES_MAX)
        return kp_err(err, KOPT_EUSAGE, "more than %d samples of a configuration",
                      KOPT_SAMPLES_MAX);
    if (o->model_top > KP_PRIOR_MAX || (o->model_top && !o->model))
        return kp_err(err, KOPT_EUSAGE, "%u predictions %s", o->model_top,
                      o->model ? "are more than a model gives" : "without a model");
    if (o->prior_first > KP_PRIOR_MAX || (o->prior_first && !wants_prior(o)))
        return kp_err(err, KOPT_EUSAGE, "%u configurations of a prior %s", o->prior_first,
                      wants_prior(o) ? "are more than there may be" : "without one");
    if (o->model && o->prior && wants_prior(o))
        return kp_err(err, KOPT_EUSAGE, "a model and a prior: the search begins with one");
    if (isnan(o->until) || o->until < 0 || o->until >= 1)
        return kp_err(err, KOPT_EUSAGE, "what may remain must be over 0 and less than 1");
    if (o->race > KOPT_RACE_MAX)
        return kp_err(err, KOPT_EUSAGE, "more than %d configurations in the final race",
                      KOPT_RACE_MAX);
    return KOPT_OK;
}

/* --- past results
 * ----------------------------------------------------------------------------- */

struct loader {
    struct kp_session *s;
    kopt_status status;
    kopt_error *err;
};

/* Were there fewer samples than this session takes at least? Not where they filled the time a
 * measurement has, nor where few were enough to give it up. */
static bool is_too_rough(const struct kp_lab_plan *plan, const kopt_result *r)
{
    double spent = 0;
    if (r->dropped || r->n_times >= plan->min_samples)
        return false;
    for (uint32_t i = 0; i < r->n_times && r->times_ns; i++)
        spent += r->times_ns[i];
    return !(spent > plan->budget_ns);
}

/* Is an earlier result what this session would find out itself? Not what was never compared
 * where this one compares, nor what ran out of less time than there is now. What was spent then
 * is at least the limit of then. */
static bool is_of_use(const struct kp_session *s, const kopt_result *r)
{
    bool checks = s->o.check >= 0 && s->kernel->n_checks > 0;
    if (r->outcome == KOPT_OUT_OK) {
        struct kp_lab_plan plan = kp_session_plan(s);
        return (!checks || !isnan(r->max_error)) && (r->race || !is_too_rough(&plan, r));
    }
    if (r->outcome == KOPT_OUT_COMPILE_TIMEOUT)
        return r->compile_ns >= kp_session_compile_limit_s(s) * 1e9;
    if (r->outcome == KOPT_OUT_HANG)
        return r->device_ns >= kp_session_launch_limit_s(s) * 1e9;
    return r->outcome != KOPT_OUT_INTERRUPTED;
}

static bool load_one(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct loader *l = user;
    struct kp_session *s = l->s;
    void *items = s->past;
    kopt_result lean = *r;
    (void)subject;
    if (!is_of_use(s, r))
        return true;
    if (!kp_grow(&items, &s->cap_past, s->n_past, sizeof(*s->past), PAST_MAX)) {
        l->status = kp_err_nomem(l->err);
        return false;
    }
    s->past = items;
    struct kept *k = &s->past[s->n_past];
    memset(k, 0, sizeof(*k));
    lean.log = ""; /* as much as 16 KiB each; it stays in the store */
    l->status = kp_kept_set(k, &lean, NULL, 0, "", r->config, l->err);
    if (l->status != KOPT_OK)
        return false;
    k->run = run;
    uint64_t *at =
        kp_map_put(r->race ? &s->raced : &s->known, r->config, strlen(r->config), NULL);
    if (!at) {
        kp_kept_deinit(k);
        l->status = kp_err_nomem(l->err);
        return false;
    }
    *at = s->n_past++;
    return true;
}

static kopt_status load_past(struct kp_session *s, kopt_error *err)
{
    struct loader l = {s, KOPT_OK, err};
    struct kp_result_filter f = {.subject = s->subject.id, .outcome = -1, .newest = true};
    if (!s->store || s->o.fresh)
        return KOPT_OK;
    kopt_status st = kp_store_results(s->store, &f, load_one, &l, err);
    return st == KOPT_OK ? l.status : st;
}

/* --- setting up
 * ------------------------------------------------------------------------------- */

static kopt_status empty_space(const struct kp_session *s, kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    size_t last = k->n_rules;
    struct kp_rule_effect *effects = kp_calloc(k->n_rules + 1, sizeof(*effects));
    if (!effects)
        return kp_err_nomem(err);
    kopt_status st = kp_space_explain(s->bound->space, effects, &last, err);
    kp_free(effects);
    if (st != KOPT_OK)
        return st;
    if (last == k->n_rules)
        return kp_err(err, KOPT_EFAILED, "the space has no valid configuration");
    const struct kp_rule *r = &k->rules[last];
    st = kp_err(err, KOPT_EFAILED, "no configuration is left after the rule '%s'%s%s", r->text,
                r->message ? ": " : "", r->message ? r->message : "");
    kp_line_place(k, r->line, r->text, err);
    kp_err_hint(err, "'kopt space %s ..' shows what each rule removes", k->path);
    return st;
}

static void set_budget(struct kp_session *s)
{
    uint64_t valid = kp_space_count(s->bound->space);
    uint64_t n = s->o.max_evaluations;
    bool limited = n || s->o.max_fraction > 0 || s->o.max_seconds > 0;
    if (!n)
        n = limited ? valid : DEFAULT_EVALUATIONS;
    if (s->o.max_fraction > 0) {
        double share = ceil(s->o.max_fraction * (double)valid);
        if (share < (double)n)
            n = share < 1 ? 1 : (uint64_t)share;
    }
    s->budget = n < valid ? n : valid;
}

/* What is outstanding cannot guide the search: with a small budget less is asked for ahead,
 * though never so little that a compiler has nothing to do. */
static void set_window(struct kp_session *s)
{
    uint64_t share = s->budget / 8;
    if (share < s->compilers + 1)
        share = s->compilers + 1;
    if (s->window > share)
        s->window = (uint32_t)share;
}

static kopt_status make_search(struct kp_session *s, kopt_error *err)
{
    /* Within a time nobody knows how many evaluations there will be. */
    bool unknown = s->o.max_seconds > 0 && s->budget == kp_space_count(s->bound->space);
    struct kp_search_options o = {.seed = s->o.seed ? s->o.seed : 1,
                                  .budget = unknown ? 0 : s->budget,
                                  .window = s->window,
                                  .first = s->first,
                                  .prior =
                                      s->predictions.prior.n ? &s->predictions.prior : NULL,
                                  .remaining = s->o.until > 0};
    return kp_search_new(s->o.strategy, s->bound->space, &o, &s->search, err);
}

static kopt_status begin_run(struct kp_session *s, kopt_error *err)
{
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    struct kp_store_run run = {.subject = s->subject.id,
                               .command = s->o.command ? s->o.command : "",
                               .strategy = kp_search_name(s->search),
                               .version = kopt_version(),
                               .host = host,
                               .state = "running",
                               .summary = "",
                               .seed = (int64_t)(s->o.seed ? s->o.seed : 1),
                               .begun_us = kp_clock_wall_us()};
    if (!s->store)
        return KOPT_OK;
    kopt_status st = kp_store_run_begin(s->store, &run, err);
    s->run = run.id;
    return st;
}

/* Failures are no configurations to begin with. */
static void limit_first(struct kp_prior *p, size_t n_first)
{
    size_t n_ok = 0;
    while (n_ok < p->n && n_ok < n_first && isfinite(p->logp[n_ok]))
        n_ok++;
    p->n_first = n_ok;
}

static kopt_status expect(struct kp_session *s, const struct kp_predictor *p, kopt_error *err)
{
    struct kp_predictions *x = &s->predictions;
    size_t n_first = s->o.prior_first ? s->o.prior_first : KP_PRIOR_FIRST;
    kopt_status st = KOPT_OK;
    if (p)
        st = p->predict(p->user, s->bound, &kp_lab_device(s->lab)->limits, x, err);
    else if (s->store && wants_prior(&s->o))
        st = kp_nearest_prior(s->store, s->bound, &s->subject, x, err);
    if (st == KOPT_OK && p && x->prior.n == 0)
        kp_log(&s->log, KP_LOG_WARN,
               "nothing that %s is in this space; the search goes without it",
               x->of ? "the prior has" : "the model predicts");
    if (st == KOPT_OK && x->prior.measured)
        limit_first(&x->prior, n_first);
    return st;
}

static kopt_status open_all(struct kp_session *s, const struct kp_predictor *predictor,
                            kopt_error *err)
{
    kopt_status st = kp_kernel_load(s->o.kernel, true, &s->kernel, err);
    if (st == KOPT_OK && s->kernel->not_read)
        kp_log(&s->log, KP_LOG_WARN,
               "%s: %s of the file are not used; the session's own budget and strategy are",
               s->o.kernel, s->kernel->not_read);
    if (st == KOPT_OK && s->o.store)
        st = kp_store_open(s->o.store, KP_STORE_WRITE, STORE_BUSY_MS, &s->store, err);
    if (st == KOPT_OK)
        st = kp_session_device(s, err);
    if (st == KOPT_OK)
        st = kp_kernel_bind(s->kernel, s->o.problem, s->o.n_problem,
                            &kp_lab_device(s->lab)->limits, &s->bound, err);
    if (st != KOPT_OK)
        return st;
    s->n_params = kp_space_n_params(s->bound->space);
    s->first = kp_calloc(s->n_params + 1, sizeof(*s->first));
    if (!s->first)
        return kp_err_nomem(err);
    if (!kp_bound_default(s->bound, s->first))
        return empty_space(s, err);
    set_budget(s);
    set_window(s);
    st = kp_session_subject(s, err);
    if (st == KOPT_OK)
        st = expect(s, predictor, err);
    if (st == KOPT_OK)
        st = make_search(s, err);
    if (st == KOPT_OK && s->store)
        st = kp_store_subject(s->store, &s->subject, err);
    if (st == KOPT_OK)
        st = load_past(s, err);
    return st == KOPT_OK ? begin_run(s, err) : st;
}

kopt_status kp_session_new(const kopt_tune_options *o, const struct kp_predictor *predictor,
                           struct kp_session **out, kopt_error *err)
{
    *out = NULL;
    kopt_status st = check_options(o, err);
    if (st != KOPT_OK)
        return st;
    struct kp_session *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->o = *o;
    s->log = (struct kp_log){log_line, s};
    s->phase = "setting up";
    s->begun_ns = kp_clock_ns();
    s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->top = kp_calloc(TOP_MAX, sizeof(*s->top));
    s->report.speedup = s->report.speedup_low = s->report.speedup_high = (double)NAN;
    s->progress.remaining = (double)NAN;
    if (!s->top)
        st = kp_err_nomem(err);
    else if (s->stop_fd < 0 || s->wake_fd < 0)
        st = kp_err(err, KOPT_EIO, "cannot make an eventfd");
    else
        st = open_all(s, predictor, err);
    if (st != KOPT_OK) {
        kp_session_free(s);
        return st;
    }
    *out = s;
    return KOPT_OK;
}

/* --- running
 * ---------------------------------------------------------------------------------- */

static void announce(struct kp_session *s)
{
    const struct kp_device_info *info = kp_lab_device(s->lab);
    const struct kp_predictions *x = &s->predictions;
    size_t tried = kp_session_n_tried(s);
    bool measured = x->prior.measured;
    char id[64];
    (void)snprintf(id, sizeof(id), "%s:%d", kp_backend_name(info->backend), info->index);
    kopt_tune_start start = {.kernel = s->kernel->name,
                             .problem = s->subject.problem,
                             .device = id,
                             .device_name = info->name,
                             .strategy = kp_search_name(s->search),
                             .store = s->o.store ? s->o.store : "",
                             .cartesian = kp_space_cartesian(s->bound->space),
                             .valid = kp_space_count(s->bound->space),
                             .budget = s->budget,
                             .known = s->known.n,
                             .compilers = s->compilers,
                             .model = s->o.model ? s->o.model : "",
                             .predictions = measured ? 0 : tried,
                             .predictions_dropped = measured ? 0 : x->dropped,
                             .prior = x->of ? x->of : "",
                             .prior_results = measured ? x->prior.n : 0,
                             .prior_first = measured ? tried : 0};
    if (s->o.callbacks.start)
        s->o.callbacks.start(s->o.callbacks.user, &start);
}

static void summary_json(const struct kp_session *s, struct kp_buf *out)
{
    const kopt_tune_report *r = &s->report;
    kp_buf_addf(out, "{\"best\":%s,\"evaluations\":%llu,\"from_store\":%llu,\"measured\":%llu,",
                s->best.json ? s->best.json : "null", (unsigned long long)r->progress.done,
                (unsigned long long)r->progress.from_store, (unsigned long long)s->n_measured);
    if (isfinite(r->best.median_ns))
        kp_buf_addf(out, "\"best_ns\":%.17g,", r->best.median_ns);
    if (s->o.model) {
        kp_buf_adds(out, "\"model\":{\"file\":");
        kp_json_quote(kp_str_from(s->o.model), out);
        kp_buf_addf(out, ",\"predictions\":%zu,\"best_rank\":%llu},", kp_session_n_tried(s),
                    (unsigned long long)r->best_rank);
    }
    if (s->predictions.of) {
        kp_buf_adds(out, "\"prior\":{\"of\":");
        kp_json_quote(kp_str_from(s->predictions.of), out);
        kp_buf_addf(out, ",\"results\":%zu,\"first\":%zu},", s->predictions.prior.n,
                    kp_session_n_tried(s));
    }
    kp_buf_addf(out, "\"best_from\":\"%s\",\"ended\":\"%s\",", r->best_from, r->ended);
    kp_buf_addf(out,
                "\"wall_s\":%.6f,\"device_s\":%.6f,\"compile_s\":%.6f,\"idle_s\":%.6f,"
                "\"search_s\":%.6f,\"store_s\":%.6f}",
                r->split.wall_s, r->split.device_s, r->split.compile_s, r->split.idle_s,
                r->split.search_s, r->split.store_s);
}

/* What went wrong stays in `st`; closing the run must not hide it. */
static kopt_status end_run(struct kp_session *s, kopt_status st, kopt_error *err)
{
    struct kp_buf summary = KP_BUF_INIT(TEXT_MAX);
    const char *state = st != KOPT_OK ? "failed" : s->interrupted ? "interrupted" : "done";
    if (!s->store)
        return st;
    summary_json(s, &summary);
    kopt_status end = kp_store_run_end(s->store, s->run, state, kp_buf_text(&summary),
                                       st == KOPT_OK ? err : NULL);
    kp_buf_deinit(&summary);
    return st == KOPT_OK ? end : st;
}

kopt_status kp_session_run(struct kp_session *s, const kopt_tune_report **report,
                           kopt_error *err)
{
    kopt_error later;
    *report = NULL;
    if (s->ran)
        return kp_err(err, KOPT_EUSAGE, "a session runs once");
    s->ran = true;
    announce(s);
    s->phase = "searching";
    kopt_status st = kp_session_search(s, err);
    if (st == KOPT_OK && s->best.config && !s->interrupted)
        st = kp_session_race(s, err);
    if (st == KOPT_EINTR && kp_session_stopped(s)) {
        s->interrupted = true;
        st = KOPT_OK;
    }
    kopt_status reported = kp_session_report(s, &later);
    if (reported == KOPT_OK)
        *report = &s->report;
    if (st == KOPT_OK && reported != KOPT_OK) {
        if (err)
            *err = later;
        st = reported;
    }
    if (st == KOPT_OK && !s->best.config && !s->interrupted) {
        st = kp_err(err, KOPT_EFAILED,
                    "none of %llu configurations gave a valid result; the first: %s",
                    (unsigned long long)s->progress.done,
                    s->first_failure ? s->first_failure : "nothing was measured");
    }
    return end_run(s, st, err);
}

void kp_session_stop(struct kp_session *s)
{
    atomic_store(&s->stop, 1);
    uint64_t one = 1;
    (void)!write(s->stop_fd, &one, sizeof(one));
    (void)!write(s->wake_fd, &one, sizeof(one));
}

void kp_session_free(struct kp_session *s)
{
    if (!s)
        return;
    kp_lab_close(s->lab);
    kp_search_free(s->search);
    kp_store_close(s->store);
    for (uint32_t i = 0; i < s->n_items; i++)
        kp_kept_deinit(&s->items[(s->head + i) % WINDOW_MAX].k);
    for (size_t i = 0; i < s->n_past; i++)
        kp_kept_deinit(&s->past[i]);
    for (size_t i = 0; i < s->n_top; i++)
        kp_kept_deinit(&s->top[i]);
    for (size_t i = 0; i < s->report.n_tied; i++)
        kp_free(s->tied_owned[i]);
    kp_kept_deinit(&s->best);
    kp_kept_deinit(&s->first_kept);
    kp_kept_deinit(&s->predicted);
    kp_prior_deinit(&s->predictions.prior);
    kp_free(s->predictions.of);
    kp_map_deinit(&s->known);
    kp_map_deinit(&s->raced);
    kp_bound_free(s->bound);
    kp_kernel_free(s->kernel);
    for (size_t i = 0; i < 4; i++)
        kp_free(s->subject_texts[i]);
    if (s->stop_fd >= 0)
        (void)close(s->stop_fd);
    if (s->wake_fd >= 0)
        (void)close(s->wake_fd);
    kp_free(s->first);
    kp_free(s->top);
    kp_free(s->past);
    kp_free(s->metrics);
    kp_free(s->tied_owned);
    kp_free(s->first_failure);
    kp_free(s);
}
