/* SPDX-License-Identifier: MIT */
#include "replay/run.h"

#include "base/alloc.h"
#include "math/portable.h"
#include "os/clock.h"
#include "search/search.h"
#include "space/transfer.h"

#include <math.h>

enum { WINDOW_MAX = 256, COMPILERS_MAX = 1024 };

/* Asked and not yet told. */
struct flight {
    uint64_t rank;
    double done_ns; /* when its result comes */
    double ask_ns;
};

struct run {
    const struct kp_recording *r;
    const struct kp_run_plan *plan;
    struct kp_search *search;
    size_t n_params;
    struct flight *ring; /* of plan->window */
    uint32_t *configs;   /* the ring's */
    double *compilers;   /* when each is free */
    double device;       /* when it is free */
    double clock;        /* the last result's */
    double tell_ns;      /* real time of the last tell, for the ask that follows */
    uint64_t asked;
    uint64_t told;
    double best;
    double remaining;
    bool stopped;
    bool enough; /* `until` was reached */
    double search_ns;
};

static uint32_t *config_of(const struct run *x, uint64_t number)
{
    return x->configs + (size_t)(number % x->plan->window) * x->n_params;
}

static kopt_status open_run(struct run *x, kopt_error *err)
{
    const struct kp_run_plan *p = x->plan;
    if (p->window == 0 || p->window > WINDOW_MAX)
        return kp_err(err, KOPT_EUSAGE, "the window must be 1 to %d", WINDOW_MAX);
    if (p->compilers == 0 || p->compilers > COMPILERS_MAX)
        return kp_err(err, KOPT_EUSAGE, "there must be 1 to %d compilers", COMPILERS_MAX);
    x->n_params = kp_space_n_params(x->r->space);
    x->ring = kp_calloc(p->window, sizeof(*x->ring));
    x->configs = kp_calloc((size_t)p->window * x->n_params + 1, sizeof(*x->configs));
    x->compilers = kp_calloc(p->compilers, sizeof(*x->compilers));
    if (!x->ring || !x->configs || !x->compilers)
        return kp_err_nomem(err);
    struct kp_search_options o = {.seed = p->seed,
                                  .budget = p->budget,
                                  .window = p->window,
                                  .prior = p->prior,
                                  .remaining = p->until > 0 || p->remaining};
    return kp_search_new(p->strategy, x->r->space, &o, &x->search, err);
}

static void close_run(struct run *x)
{
    kp_search_free(x->search);
    kp_free(x->ring);
    kp_free(x->configs);
    kp_free(x->compilers);
}

/* What was asked at `now` comes at: the first free compiler, then the device in order. A
 * configuration that fails to compile never reaches the device; its result waits for those
 * before it all the same, as a session tells them in order. */
static double schedule(struct run *x, uint64_t rank, double now)
{
    double *first = &x->compilers[0];
    for (uint32_t i = 1; i < x->plan->compilers; i++)
        if (x->compilers[i] < *first)
            first = &x->compilers[i];
    double ready = fmax(now, *first) + x->r->compile_ns[rank];
    /* One compiler and a window of one: a session that does one thing at a time. */
    *first = ready;
    if (x->r->measure_ns[rank] > 0) {
        ready = fmax(ready, x->device) + x->r->measure_ns[rank];
        x->device = ready;
    }
    return ready;
}

/* False when there is nothing to ask now. *end: nor later. */
static bool ask(struct run *x, bool *end)
{
    uint32_t *config = config_of(x, x->asked);
    bool waiting = false;
    int64_t begun = kp_clock_thread_ns();
    bool got = kp_search_ask(x->search, config, &waiting);
    double ns = (double)(kp_clock_thread_ns() - begun);
    x->search_ns += ns;
    *end = !got && !waiting;
    if (!got)
        return false;
    uint64_t rank = 0;
    KP_CHECK(kp_space_rank(x->r->space, config, &rank));
    x->ring[x->asked % x->plan->window] =
        (struct flight){rank, schedule(x, rank, x->clock), ns + x->tell_ns};
    x->tell_ns = 0;
    x->asked++;
    return true;
}

/* The oldest result. */
static void tell(struct run *x, bool (*step)(void *user, const struct kp_run_step *s),
                 void *user)
{
    const struct flight *f = &x->ring[x->told % x->plan->window];
    double time = x->r->time_ns[f->rank];
    x->clock = fmax(x->clock, f->done_ns);
    x->best = fmin(x->best, time);
    int64_t begun = kp_clock_thread_ns();
    kp_search_tell(x->search, time);
    x->tell_ns = (double)(kp_clock_thread_ns() - begun);
    x->search_ns += x->tell_ns;
    if (x->plan->until > 0 || x->plan->remaining)
        x->remaining = kp_search_remaining(x->search);
    struct kp_run_step s = {.n = x->told + 1,
                            .rank = f->rank,
                            .config = config_of(x, x->told),
                            .time_ns = time,
                            .best_ns = x->best,
                            .clock_ns = x->clock,
                            .remaining = x->remaining,
                            .ask_ns = f->ask_ns};
    x->told++;
    x->enough = x->enough || x->remaining < x->plan->until; /* false for NaN */
    x->stopped = x->stopped || !step(user, &s);
}

static bool may_ask(const struct run *x)
{
    return !x->stopped && !x->enough && x->asked < x->plan->max_evaluations &&
           x->clock < x->plan->max_ns && x->asked - x->told < x->plan->window;
}

kopt_status kp_run(const struct kp_recording *r, const struct kp_run_plan *plan,
                   bool (*step)(void *user, const struct kp_run_step *s), void *user,
                   struct kp_run_end *end, kopt_error *err)
{
    struct run x = {.r = r, .plan = plan, .best = (double)INFINITY, .remaining = (double)NAN};
    bool over = false;
    *end = (struct kp_run_end){0};
    kopt_status st = open_run(&x, err);
    if (st != KOPT_OK) {
        close_run(&x);
        return st;
    }
    for (;;) {
        while (!over && may_ask(&x) && ask(&x, &over))
            ;
        if (x.told == x.asked || x.stopped)
            break;
        tell(&x, step, user);
    }
    end->strategy = kp_search_name(x.search);
    end->ended = x.stopped  ? KOPT_END_STOPPED
                 : x.enough ? KOPT_END_UNTIL
                 : over     ? KOPT_END_EXHAUSTED
                            : KOPT_END_BUDGET;
    if (x.told == kp_space_count(r->space))
        end->ended = KOPT_END_EXHAUSTED;
    end->n = x.told;
    end->clock_ns = x.clock;
    end->search_ns = x.search_ns;
    close_run(&x);
    return KOPT_OK;
}

/* --- priors --------------------------------------------------------------------------------
 */

/* What the sources say of one configuration. */
struct opinion {
    double sum; /* of log2(cost / best) */
    uint32_t n;
    uint32_t n_failed;
};

static kopt_status ask_source(const struct kp_recording *r, const struct kp_recording *from,
                              struct opinion *opinions, kopt_error *err)
{
    struct kp_transfer *t = NULL;
    uint32_t theirs[KP_PARAMS_MAX];
    uint32_t ours[KP_PARAMS_MAX];
    if (!kp_recording_alike(r, from))
        return kp_err(err, KOPT_EINPUT, "%s is of another kernel or has other parameters",
                      from->info.name);
    kopt_status st = kp_transfer_new(from->space, r->space, &t, err);
    for (uint64_t i = 0; st == KOPT_OK && i < kp_space_count(from->space); i++) {
        uint64_t rank = 0;
        (void)kp_space_at(from->space, i, theirs, NULL);
        if (!kp_transfer_config(t, theirs, ours) || !kp_space_rank(r->space, ours, &rank))
            continue;
        if (isfinite(from->time_ns[i])) {
            opinions[rank].sum +=
                kp_log2_portable(from->time_ns[i]) - kp_log2_portable(from->info.best_ns);
            opinions[rank].n++;
        } else {
            opinions[rank].n_failed++;
        }
    }
    kp_transfer_free(t);
    return st;
}

static kopt_status prior_of(const struct kp_recording *r, const struct opinion *opinions,
                            size_t n_first, struct kp_prior *out, kopt_error *err)
{
    uint64_t count = kp_space_count(r->space);
    size_t n_params = kp_space_n_params(r->space);
    struct kp_results results = {.n = 0};
    uint32_t *configs = kp_calloc((size_t)count * n_params + 1, sizeof(*configs));
    double *costs = kp_calloc((size_t)count + 1, sizeof(*costs));
    kopt_status st = configs && costs ? KOPT_OK : kp_err_nomem(err);
    for (uint64_t i = 0; st == KOPT_OK && i < count; i++) {
        const struct opinion *o = &opinions[i];
        if (o->n + o->n_failed == 0)
            continue;
        (void)kp_space_at(r->space, i, configs + results.n * n_params, NULL);
        costs[results.n++] = o->n ? kp_exp2_portable(o->sum / (double)o->n) : (double)INFINITY;
    }
    results.configs = configs;
    results.costs = costs;
    if (st == KOPT_OK)
        st = kp_prior_of_results(out, r->space, &results, n_first, err);
    kp_free(configs);
    kp_free(costs);
    return st;
}

kopt_status kp_run_prior(const struct kp_recording *r, const struct kp_recording *const *from,
                         size_t n, size_t n_first, struct kp_prior *out, kopt_error *err)
{
    *out = (struct kp_prior){0};
    struct opinion *opinions =
        kp_calloc((size_t)kp_space_count(r->space) + 1, sizeof(*opinions));
    kopt_status st = opinions ? KOPT_OK : kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < n; i++)
        st = ask_source(r, from[i], opinions, err);
    if (st == KOPT_OK)
        st = prior_of(r, opinions, n_first, out, err);
    kp_free(opinions);
    return st;
}
