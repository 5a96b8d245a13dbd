/* SPDX-License-Identifier: MIT */
#include "replay/compare.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "replay/run.h"
#include "replay/score.h"
#include "search/search.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_REPEATS = 30,

    MAX_RUNS = 1 << 19,
    METHODS_MAX = 1000,
    MAX_THREADS = 1024,
    PATIENCE = 3, /* budgets of evaluations that a run may take while time is left */
    PROGRESS_MS = 100
};
static const char prior_suffix[] = "+prior";

/* --- one run -------------------------------------------------------------------------------
 */

struct watch {
    struct kp_score score;
    struct kp_compare_run *out;
    double until;
    double optimum;
    size_t tenth;
    double worst_ns;
};

static double gap_below(double best, double optimum)
{
    return isfinite(best) ? (best - optimum) / best : (double)NAN;
}

static bool on_step(void *user, const struct kp_run_step *s)
{
    struct watch *w = user;
    kp_score_add(&w->score, s->time_ns, s->clock_ns);
    w->worst_ns = fmax(w->worst_ns, s->ask_ns);
    if (s->n <= w->score.budget && !w->out->has_stop && s->remaining < w->until) {
        w->out->has_stop = true;
        w->out->stop_n = (float)s->n;
        w->out->stop_gap = (float)gap_below(s->best_ns, w->optimum);
    }
    while (w->tenth < KP_COMPARE_TENTHS &&
           s->n * KP_COMPARE_TENTHS >= (w->tenth + 1) * w->score.budget) {
        w->out->estimate[w->tenth] = (float)s->remaining;
        w->out->actual[w->tenth] = (float)gap_below(s->best_ns, w->optimum);
        w->tenth++;
    }
    return s->n < w->score.budget || s->clock_ns < w->score.budget_ns;
}

static void keep(struct kp_score *s, struct kp_compare_run *out)
{
    kp_score_end(s);
    out->score = (float)kp_score_mean(s);
    out->time_score = (float)kp_score_time_mean(s);
    out->gap = s->by_evaluations[KOPT_CURVE_POINTS - 1];
    out->near = (float)(s->near && s->near < s->budget ? s->near : s->budget);
    memcpy(out->by_evaluations, s->by_evaluations, sizeof(out->by_evaluations));
    memcpy(out->by_time, s->by_time, sizeof(out->by_time));
    out->done = true;
}

static kopt_status make_run(const struct kp_compare *c, size_t method, size_t space, size_t k,
                            kopt_error *err)
{
    const struct kp_recording *r = kp_compare_space(c, space);
    const struct kp_compare_method *m = &c->methods[method];
    const struct kp_prior *prior = &c->priors[space];
    struct kp_run_end end;
    struct watch w = {.out = kp_compare_runs(c, method, space) + k,
                      .until = c->o.until,
                      .optimum = r->info.best_ns};
    kp_score_begin(&w.score, r, c->o.budget);
    for (size_t i = 0; i < KP_COMPARE_TENTHS; i++)
        w.out->estimate[i] = w.out->actual[i] = NAN;
    struct kp_run_plan plan = {.strategy = m->strategy,
                               .seed = c->o.seed + k,
                               .budget = w.score.budget,
                               .max_evaluations = PATIENCE * w.score.budget,
                               .max_ns = (double)INFINITY,
                               .window = c->o.window,
                               .compilers = c->o.compilers,
                               .prior = m->prior && prior->n ? prior : NULL,
                               .remaining = c->o.until > 0};
    kopt_status st = kp_run(r, &plan, on_step, &w, &end, err);
    if (st != KOPT_OK)
        return st;
    w.out->evaluations = (float)(end.n < w.score.budget ? end.n : w.score.budget);
    w.out->search_s = end.n ? (float)(end.search_ns * 1e-9 / (double)end.n) : 0;
    w.out->worst_search_s = (float)(w.worst_ns * 1e-9);
    keep(&w.score, w.out);
    return KOPT_OK;
}

static void judge_trace(const struct kp_compare *c, const struct kp_trace *t, size_t space,
                        struct kp_compare_run *out)
{
    const struct kp_recording *r = kp_compare_space(c, space);
    struct kp_score s;
    double clock = 0;
    kp_score_begin(&s, r, c->o.budget);
    for (size_t i = 0; i < t->n; i++) {
        clock += 1e9 * (t->costs_s ? t->costs_s[i] : r->info.evaluation_s);
        kp_score_add(&s, t->times_ns[i], clock);
    }
    out->evaluations = (float)(t->n < s.budget ? t->n : s.budget);
    out->search_s = NAN;
    out->worst_search_s = NAN;
    keep(&s, out);
}

/* --- threads -------------------------------------------------------------------------------
 */

struct crew {
    struct kp_compare *c;
    size_t n_own; /* methods that are ours; they come first */
    size_t total;
    atomic_size_t next;
    atomic_size_t done;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    size_t at_work; /* threads */
    kopt_status st;
    kopt_error err;
};

static void fail(struct crew *w, kopt_status st, const kopt_error *err)
{
    (void)pthread_mutex_lock(&w->lock);
    if (w->st == KOPT_OK) {
        w->st = st;
        w->err = *err;
    }
    (void)pthread_mutex_unlock(&w->lock);
    atomic_store(&w->stop, true);
}

/* Repeats outermost: a comparison that is stopped has some of everything. */
static void *work(void *user)
{
    struct crew *w = user;
    struct kp_compare *c = w->c;
    kopt_error err;
    while (!atomic_load(&w->stop)) {
        size_t i = atomic_fetch_add(&w->next, 1);
        if (i >= w->total)
            break;
        size_t cell = i % (w->n_own * c->o.n_spaces);
        kopt_status st = make_run(c, cell / c->o.n_spaces, cell % c->o.n_spaces,
                                  i / (w->n_own * c->o.n_spaces), &err);
        if (st != KOPT_OK)
            fail(w, st, &err);
        atomic_fetch_add(&w->done, 1);
    }
    (void)pthread_mutex_lock(&w->lock);
    w->at_work--;
    (void)pthread_cond_signal(&w->ended);
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Until the threads have ended, with the lock held but while waiting. */
static void wait_all(struct crew *w)
{
    const kopt_compare_options *o = &w->c->o;
    while (w->at_work > 0) {
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += PROGRESS_MS * 1000000L;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&w->ended, &w->lock, &t);
        if (o->progress && !o->progress(o->user, atomic_load(&w->done), w->total)) {
            atomic_store(&w->stop, true);
            w->c->report.stopped = 1;
        }
    }
}

static kopt_status make_runs(struct kp_compare *c, size_t n_own, kopt_error *err)
{
    pthread_t threads[MAX_THREADS];
    size_t n = 0;
    struct crew w = {
        .c = c, .n_own = n_own, .total = n_own * c->o.n_spaces * c->o.repeats, .st = KOPT_OK};
    if (w.total == 0)
        return KOPT_OK;
    (void)pthread_mutex_init(&w.lock, NULL);
    (void)pthread_cond_init(&w.ended, NULL);
    (void)pthread_mutex_lock(&w.lock);
    while (n < c->o.threads && pthread_create(&threads[n], NULL, work, &w) == 0) {
        n++;
        w.at_work++;
    }
    wait_all(&w);
    (void)pthread_mutex_unlock(&w.lock);
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_cond_destroy(&w.ended);
    (void)pthread_mutex_destroy(&w.lock);
    if (n == 0)
        return kp_err(err, KOPT_EIO, "cannot start a thread");
    if (w.st != KOPT_OK && err)
        *err = w.err;
    return w.st;
}

/* --- setting up ----------------------------------------------------------------------------
 */

static const struct kp_traces *traces_at(const struct kp_compare *c, size_t i)
{
    return (const struct kp_traces *)(const void *)c->o.traces[i];
}

static kopt_status add_method(struct kp_compare *c, const char *name, bool own, kopt_error *err)
{
    for (size_t i = 0; i < c->n_methods; i++) {
        if (strcmp(c->methods[i].name, name) != 0)
            continue;
        if (own)
            return kp_err(err, KOPT_EUSAGE, "the method \"%s\" is named twice", name);
        if (!c->methods[i].foreign)
            return kp_err(err, KOPT_EINPUT,
                          "traces of the method \"%s\", which is compared itself", name);
        return KOPT_OK;
    }
    if (c->n_methods == METHODS_MAX)
        return kp_err(err, KOPT_ERANGE, "more than %d methods", METHODS_MAX);
    struct kp_compare_method *list =
        kp_reallocarray(c->methods, c->n_methods + 1, sizeof(*list));
    if (!list)
        return kp_err_nomem(err);
    c->methods = list;
    struct kp_compare_method *m = &list[c->n_methods++];
    *m = (struct kp_compare_method){
        .name = kp_strdup(name), .strategy = own ? kp_strdup(name) : NULL, .foreign = !own};
    if (!m->name || (own && !m->strategy))
        return kp_err_nomem(err);
    size_t len = strlen(name);
    size_t tail = sizeof(prior_suffix) - 1;
    if (own && len > tail && strcmp(name + len - tail, prior_suffix) == 0) {
        m->strategy[len - tail] = '\0';
        m->prior = true;
    }
    return KOPT_OK;
}

static kopt_status add_methods(struct kp_compare *c, size_t *n_own, kopt_error *err)
{
    size_t n = 0;
    const char *standard[] = {kp_search_list(&n)[0].name, "random"};
    kopt_status st = KOPT_OK;
    n = c->o.n_methods ? c->o.n_methods : 2;
    for (size_t i = 0; i < n && st == KOPT_OK; i++)
        st = add_method(c, c->o.n_methods ? c->o.methods[i] : standard[i], true, err);
    for (size_t i = 0; i < c->n_methods && st == KOPT_OK; i++)
        st = kp_search_known(c->methods[i].strategy, err);
    *n_own = c->n_methods;
    for (size_t t = 0; t < c->o.n_traces; t++)
        for (size_t i = 0; i < traces_at(c, t)->n && st == KOPT_OK; i++)
            st = add_method(c, traces_at(c, t)->items[i].method, false, err);
    return st;
}

static kopt_status check_spaces(const struct kp_compare *c, kopt_error *err)
{
    if (c->o.n_spaces == 0)
        return kp_err(err, KOPT_EUSAGE, "no recorded space to compare on");
    for (size_t i = 0; i < c->o.n_spaces; i++) {
        const struct kp_recording *r = kp_compare_space(c, i);
        if (r->n_ok < 2)
            return kp_err(err, KOPT_EUSAGE, "%s has fewer than two successes", r->info.name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(kp_compare_space(c, k)->info.name, r->info.name) == 0)
                return kp_err(err, KOPT_EUSAGE, "two spaces have the name %s", r->info.name);
    }
    return KOPT_OK;
}

/* Everything else of the same kernel is its prior. */
static kopt_status make_prior(struct kp_compare *c, size_t space, kopt_error *err)
{
    const struct kp_recording *r = kp_compare_space(c, space);
    size_t n = 0;
    const struct kp_recording **from =
        kp_calloc(c->o.n_spaces + c->o.n_priors, sizeof(const struct kp_recording *));
    if (!from)
        return kp_err_nomem(err);
    for (size_t i = 0; i < c->o.n_spaces + c->o.n_priors; i++) {
        const kopt_recording *handle =
            i < c->o.n_spaces ? c->o.spaces[i] : c->o.priors[i - c->o.n_spaces];
        const struct kp_recording *other = (const struct kp_recording *)(const void *)handle;
        if (other->n_ok > 0 && !kp_recording_same(r, other) && kp_recording_alike(r, other))
            from[n++] = other;
    }
    kopt_status st =
        n ? kp_run_prior(r, from, n, KP_PRIOR_FIRST, &c->priors[space], err) : KOPT_OK;
    kp_free(from);
    return st;
}

static kopt_status make_priors(struct kp_compare *c, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    bool wanted = false;
    for (size_t i = 0; i < c->n_methods; i++)
        wanted = wanted || c->methods[i].prior;
    for (size_t i = 0; wanted && st == KOPT_OK && i < c->o.n_spaces; i++)
        st = make_prior(c, i, err);
    return st;
}

static kopt_status check_options(const kopt_compare_options *o, kopt_error *err)
{
    if (o->struct_bytes != sizeof(*o))
        return kp_err(err, KOPT_EUSAGE, "kopt_compare_options_init() was not called");
    if (!(o->until >= 0 && o->until < 1))
        return kp_err(err, KOPT_EUSAGE, "the remaining gain to stop at must be under 1");
    if (!(o->budget >= 0 && o->budget <= 1000))
        return kp_err(err, KOPT_EUSAGE, "a budget is at most 1000 of the recording's");
    return KOPT_OK;
}

static void set_defaults(kopt_compare_options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    o->repeats = o->repeats ? o->repeats : DEFAULT_REPEATS;
    o->seed = o->seed ? o->seed : 1;
    o->compilers = o->compilers ? o->compilers : 1;
    o->window = o->window ? o->window : o->compilers;
    o->budget = o->budget > 0 ? o->budget : 1;
    o->threads = o->threads ? o->threads : cores > 0 ? (unsigned)cores : 1;
    o->threads = o->threads > MAX_THREADS ? MAX_THREADS : o->threads;
}

/* --- traces --------------------------------------------------------------------------------
 */

static size_t method_named(const struct kp_compare *c, const char *name)
{
    size_t i = 0;
    while (strcmp(c->methods[i].name, name) != 0)
        i++;
    return i;
}

static kopt_status space_named(const struct kp_compare *c, const char *name, size_t *out,
                               kopt_error *err)
{
    for (*out = 0; *out < c->o.n_spaces; ++*out) {
        if (strcmp(kp_compare_space(c, *out)->info.name, name) == 0)
            return KOPT_OK;
    }
    return kp_err(err, KOPT_EINPUT, "traces of the space %s, which is not here", name);
}

/* How many runs a cell holds at most: ours, or somebody's traces. */
static kopt_status count_repeats(struct kp_compare *c, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    size_t *n = kp_calloc(c->n_methods * c->o.n_spaces + 1, sizeof(*n));
    if (!n)
        return kp_err_nomem(err);
    c->repeats = c->o.repeats;
    for (size_t t = 0; t < c->o.n_traces; t++) {
        for (size_t i = 0; i < traces_at(c, t)->n && st == KOPT_OK; i++) {
            const struct kp_trace *trace = &traces_at(c, t)->items[i];
            size_t space = 0;
            st = space_named(c, trace->space, &space, err);
            if (st != KOPT_OK)
                break;
            size_t runs = ++n[method_named(c, trace->method) * c->o.n_spaces + space];
            c->repeats = runs > c->repeats ? runs : c->repeats;
        }
    }
    kp_free(n);
    if (st == KOPT_OK &&
        (double)c->n_methods * (double)c->o.n_spaces * (double)c->repeats > (double)MAX_RUNS)
        st = kp_err(err, KOPT_ERANGE, "more than %d runs", MAX_RUNS);
    return st;
}

static void judge_traces(struct kp_compare *c)
{
    for (size_t t = 0; t < c->o.n_traces; t++) {
        for (size_t i = 0; i < traces_at(c, t)->n; i++) {
            const struct kp_trace *trace = &traces_at(c, t)->items[i];
            size_t space = 0;
            (void)space_named(c, trace->space, &space, NULL);
            struct kp_compare_run *run =
                kp_compare_runs(c, method_named(c, trace->method), space);
            while (run->done)
                run++;
            judge_trace(c, trace, space, run);
        }
    }
}

/* --- the whole -----------------------------------------------------------------------------
 */

static kopt_status set_up(struct kp_compare *c, size_t *n_own, kopt_error *err)
{
    kopt_status st = check_spaces(c, err);
    if (st == KOPT_OK)
        st = add_methods(c, n_own, err);
    if (st == KOPT_OK)
        st = count_repeats(c, err);
    if (st != KOPT_OK)
        return st;
    c->priors = kp_calloc(c->o.n_spaces, sizeof(*c->priors));
    c->runs = kp_calloc(c->n_methods * c->o.n_spaces * c->repeats + 1, sizeof(*c->runs));
    return c->priors && c->runs ? make_priors(c, err) : kp_err_nomem(err);
}

kopt_status kp_compare(const kopt_compare_options *o, kopt_compare_report **out,
                       kopt_error *err)
{
    size_t n_own = 0;
    int64_t begun = kp_clock_ns();
    *out = NULL;
    kopt_status st = check_options(o, err);
    if (st != KOPT_OK)
        return st;
    struct kp_compare *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return kp_err_nomem(err);
    c->o = *o;
    set_defaults(&c->o);
    st = set_up(c, &n_own, err);
    if (st == KOPT_OK)
        st = make_runs(c, n_own, err);
    if (st == KOPT_OK) {
        judge_traces(c);
        c->report.repeats = c->o.repeats;
        c->report.wall_s = (double)(kp_clock_ns() - begun) / 1e9;
        st = kp_compare_stats(c, err);
    }
    if (st == KOPT_OK)
        *out = &c->report;
    else
        kp_compare_free(&c->report);
    return st;
}

void kp_compare_free(kopt_compare_report *r)
{
    struct kp_compare *c = (struct kp_compare *)(void *)r;
    if (!c)
        return;
    for (size_t i = 0; i < c->n_methods; i++) {
        kp_free(c->methods[i].name);
        kp_free(c->methods[i].strategy);
    }
    for (size_t i = 0; c->priors && i < c->o.n_spaces; i++)
        kp_prior_deinit(&c->priors[i]);
    kp_free(c->methods);
    kp_free(c->priors);
    kp_free(c->runs);
    kp_free(c->names);
    kp_free(c->foreign);
    kp_free(c->infos);
    kp_free(c->cells);
    kp_free(c->total);
    kp_free(c->by_evaluations);
    kp_free(c->by_time);
    kp_free(c->calibration);
    kp_free(c->budget_s);
    kp_free(c->budget);
    kp_free(c);
}
