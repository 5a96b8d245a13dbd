/* SPDX-License-Identifier: MIT */
/* The search: ask, compile ahead, measure one at a time, tell in order. Layer: tune. */
#include "tune/internal.h"

#include "base/alloc.h"
#include "measure/result.h"
#include "os/clock.h"

#include <math.h>
#include <string.h>
#include <sys/eventfd.h>

enum { POLL_MS = 100, SAMPLES_MIN = 7 };
static const double drop_ratio = 1.25; /* every sample this much over the best: not a winner */
static const double sample_budget_ns = 2e9;

bool kp_session_stopped(const struct kp_session *s)
{
    return atomic_load(&s->stop) != 0;
}

/* --- progress
 * --------------------------------------------------------------------------------- */

static double rate_per_minute(const struct kp_session *s, int64_t now)
{
    uint64_t n = s->n_measured < 64 ? s->n_measured : 64;
    if (n < 2)
        return 0;
    int64_t oldest = s->recent_ns[s->n_measured < 64 ? 0 : s->n_measured % 64];
    return now > oldest ? 60e9 * (double)(n - 1) / (double)(now - oldest) : 0;
}

void kp_session_report_progress(struct kp_session *s, bool force)
{
    int64_t now = kp_clock_ns();
    kopt_tune_progress *p = &s->progress;
    if (!force && now - s->last_progress_ns < 200000000)
        return;
    s->last_progress_ns = now;
    p->total = s->budget;
    p->elapsed_s = (double)(now - s->begun_ns) / 1e9;
    p->per_minute = rate_per_minute(s, now);
    p->eta_s = p->per_minute > 0 && p->total >= p->done
                   ? 60.0 * (double)(p->total - p->done) / p->per_minute
                   : (double)NAN;
    if (s->o.max_seconds > 0 && !(p->eta_s < s->o.max_seconds - p->elapsed_s))
        p->eta_s = fmax(0, s->o.max_seconds - p->elapsed_s);
    if (s->asker)
        p->remaining = kp_asker_remaining(s->asker);
    p->best_ns = s->best.config ? s->best.r.median_ns : (double)NAN;
    p->first_ns = s->first_kept.config ? s->first_kept.r.median_ns : (double)NAN;
    p->best_config = s->best.text ? s->best.text : "";
    p->phase = s->phase;
    if (s->o.callbacks.progress)
        s->o.callbacks.progress(s->o.callbacks.user, p);
}

/* --- results
 * ---------------------------------------------------------------------------------- */

/* Keep the fastest for the race, ascending. */
static kopt_status keep_top(struct kp_session *s, const struct kept *k, kopt_error *err)
{
    size_t at = s->n_top;
    while (at > 0 && s->top[at - 1].r.median_ns > k->r.median_ns)
        at--;
    if (at == TOP_MAX)
        return KOPT_OK;
    if (s->n_top == TOP_MAX)
        kp_kept_deinit(&s->top[--s->n_top]);
    memmove(&s->top[at + 1], &s->top[at], (s->n_top - at) * sizeof(*s->top));
    memset(&s->top[at], 0, sizeof(*s->top));
    s->n_top++;
    return kp_kept_copy(&s->top[at], k, s->n_params, err);
}

static bool is_default(const struct kp_session *s, const struct item *it)
{
    return memcmp(it->k.config, s->first, s->n_params * sizeof(*s->first)) == 0;
}

static bool is_first_prediction(const struct kp_session *s, const struct item *it)
{
    const struct kp_prior *p = &s->predictions.prior;
    return p->n > 0 && !p->measured &&
           memcmp(it->k.config, p->configs, s->n_params * sizeof(*p->configs)) == 0;
}

static kopt_status note_result(struct kp_session *s, struct item *it, kopt_error *err)
{
    const kopt_result *r = &it->k.r;
    kopt_status st = KOPT_OK;
    bool is_first = is_default(s, it);
    s->progress.done++;
    s->progress.from_store += r->from_store != 0;
    s->progress.by_outcome[r->outcome]++;
    if (is_first)
        st = kp_kept_copy(&s->first_kept, &it->k, s->n_params, err);
    if (st == KOPT_OK && is_first_prediction(s, it))
        st = kp_kept_copy(&s->predicted, &it->k, s->n_params, err);
    if (is_first && r->outcome == KOPT_OUT_OK && s->o.launch_timeout_s <= 0 &&
        20 * r->median_ns > 10e9)
        kp_lab_set_launch_timeout(s->lab, (int64_t)(20 * r->median_ns));
    if (r->outcome != KOPT_OUT_OK) {
        if (!s->first_failure)
            s->first_failure = kp_strdup(r->message);
        it->cost = (double)INFINITY;
    } else {
        it->cost = r->median_ns;
        if (st == KOPT_OK)
            st = keep_top(s, &it->k, err);
        if (st == KOPT_OK && (!s->best.config || r->median_ns < s->best.r.median_ns))
            st = kp_kept_copy(&s->best, &it->k, s->n_params, err);
    }
    it->state = ITEM_DONE;
    if (s->o.callbacks.result)
        s->o.callbacks.result(s->o.callbacks.user, r, it->k.text);
    return st;
}

static kopt_status store_result(struct kp_session *s, struct item *it, kopt_error *err)
{
    if (!s->store)
        return KOPT_OK;
    int64_t begun = kp_clock_ns();
    kopt_status st;
    if (it->row)
        st = kp_store_finish(s->store, it->row, &it->k.r, err);
    else
        st = kp_store_add(s->store, s->run, s->subject.id, &it->k.r, &it->row, err);
    it->k.r.id = it->row;
    s->store_ns += kp_clock_ns() - begun;
    return st;
}

/* A fresh result: into the store first, then known to the rest. */
static kopt_status finish_item(struct kp_session *s, struct item *it, const kopt_result *r,
                               kopt_error *err)
{
    struct kept k = {0};
    kopt_status st = kp_kept_set(&k, r, it->k.config, s->n_params, it->k.text, it->k.json, err);
    if (st != KOPT_OK)
        return st;
    kp_kept_deinit(&it->k);
    it->k = k;
    st = store_result(s, it, err);
    if (st != KOPT_OK)
        return st;
    s->recent_ns[s->n_measured % 64] = kp_clock_ns();
    s->n_measured++;
    return note_result(s, it, err);
}

/* --- asking
 * ----------------------------------------------------------------------------------- */

static kopt_status start_compile(struct kp_session *s, struct item *it, kopt_error *err)
{
    struct kp_geometry g;
    struct owned_job j;
    kopt_error why = {0};
    kopt_status st = kp_session_data(s, err);
    if (st != KOPT_OK)
        return st;
    st = kp_bound_geometry(s->bound, it->k.config, &g, &why);
    if (st == KOPT_OK)
        st = kp_job_make(s, it->k.config, s->kernel->name, &g, &j, &why);
    if (st == KOPT_ENOMEM)
        return kp_err_nomem(err);
    if (st != KOPT_OK) {
        kopt_result r = kp_result_unknown(KOPT_OUT_DEVICE_LIMIT, why.message);
        r.config = it->k.json;
        return finish_item(s, it, &r, err);
    }
    it->id = j.job.id;
    it->state = ITEM_COMPILING;
    st = kp_lab_compile(s->lab, &j.job, err);
    kp_job_deinit(&j);
    return st;
}

static struct item *item_at(struct kp_session *s, uint32_t i)
{
    return &s->items[(s->head + i) % WINDOW_MAX];
}

static kopt_status from_store(struct kp_session *s, struct item *it, const struct kept *past,
                              kopt_error *err)
{
    struct kept k = {0};
    kopt_status st =
        kp_kept_set(&k, &past->r, it->k.config, s->n_params, it->k.text, it->k.json, err);
    if (st != KOPT_OK)
        return st;
    kp_kept_deinit(&it->k);
    it->k = k;
    it->k.r.from_store = 1;
    return note_result(s, it, err);
}

static kopt_status add_item(struct kp_session *s, const uint32_t *config, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX);
    struct kp_buf json = KP_BUF_INIT(TEXT_MAX);
    struct item *it = item_at(s, s->n_items);
    kopt_result empty = kp_result_unknown(KOPT_OUT_INTERRUPTED, "");
    *it = (struct item){0};
    kp_space_config_text(s->bound->space, config, &text);
    kp_space_config_json(s->bound->space, config, &json);
    kopt_status st = kp_buf_status(&text, err);
    if (st == KOPT_OK)
        st = kp_buf_status(&json, err);
    if (st == KOPT_OK)
        st = kp_kept_set(&it->k, &empty, config, s->n_params, kp_buf_text(&text),
                         kp_buf_text(&json), err);
    if (st == KOPT_OK) {
        s->n_items++;
        const uint64_t *past = kp_map_get(&s->known, json.ptr, json.len);
        st = past ? from_store(s, it, &s->past[*past], err) : start_compile(s, it, err);
    }
    kp_buf_deinit(&text);
    kp_buf_deinit(&json);
    return st;
}

/* Never before the default configuration was asked for: a session has at least that. */
static bool time_is_over(const struct kp_session *s)
{
    return s->o.max_seconds > 0 && s->asked > 0 &&
           (double)(kp_clock_ns() - s->begun_ns) / 1e9 >= s->o.max_seconds;
}

/* As many asks as the window holds: ask number n is posted behind exactly n - window tells. */
static void post_asks(struct kp_session *s)
{
    while (!s->exhausted && s->n_items + s->n_pending < s->window && s->asked < s->budget &&
           !time_is_over(s) && !kp_session_stopped(s)) {
        kp_asker_ask(s->asker);
        s->asked++;
        s->n_pending++;
    }
}

/* Tell the oldest if it is done; takes one answer. True: something moved. */
static kopt_status tell_and_take(struct kp_session *s, bool *moved, kopt_error *err)
{
    uint32_t config[KP_PARAMS_MAX];
    *moved = false;
    if (s->n_items && item_at(s, 0)->state == ITEM_DONE) {
        kp_asker_tell(s->asker, item_at(s, 0)->cost);
        kp_kept_deinit(&item_at(s, 0)->k);
        s->head = (s->head + 1) % WINDOW_MAX;
        s->n_items--;
        *moved = true;
    }
    enum kp_answer answer = s->n_pending ? kp_asker_take(s->asker, config) : KP_ANSWER_NONE;
    if (answer == KP_ANSWER_NONE)
        return KOPT_OK;
    *moved = true;
    s->n_pending--;
    if (answer == KP_ANSWER_END)
        s->exhausted = true;
    return answer == KP_ANSWER_CONFIG ? add_item(s, config, err) : KOPT_OK;
}

static kopt_status tell_and_ask(struct kp_session *s, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (bool moved = true; moved && st == KOPT_OK;) {
        post_asks(s);
        st = tell_and_take(s, &moved, err);
        kp_session_report_progress(s, false);
    }
    if (s->n_items == 0 && s->n_pending > 0 && kp_asker_waits(s->asker)) {
        s->exhausted = true; /* nothing is outstanding that it could be told of */
        s->n_pending = 0;
    }
    return st;
}

/* --- measuring
 * -------------------------------------------------------------------------------- */

struct kp_lab_plan kp_session_plan(const struct kp_session *s)
{
    const struct kp_device_info *info = kp_lab_device(s->lab);
    unsigned few =
        s->o.max_samples && s->o.max_samples < SAMPLES_MIN ? s->o.max_samples : SAMPLES_MIN;
    struct kp_lab_plan p = {.min_samples = s->o.min_samples ? s->o.min_samples : few,
                            .max_samples = s->o.max_samples ? s->o.max_samples : 50,
                            .precision = s->o.precision > 0 ? s->o.precision : 0.01,
                            .best_ns = s->best.config ? s->best.r.median_ns : (double)NAN,
                            .drop_ratio = drop_ratio,
                            .budget_ns = sample_budget_ns,
                            .check = s->o.check >= 0};
    if (s->o.flush >= 0) {
        int64_t bytes = s->o.flush_bytes > 0 ? s->o.flush_bytes : info->limits.l2_bytes;
        p.flush_bytes = bytes > 0 ? (size_t)bytes : 0;
    }
    return p;
}

static struct item *oldest(struct kp_session *s, enum item_state state)
{
    for (uint32_t i = 0; i < s->n_items; i++)
        if (item_at(s, i)->state == state)
            return item_at(s, i);
    return NULL;
}

static struct item *by_id(struct kp_session *s, int64_t id)
{
    for (uint32_t i = 0; i < s->n_items; i++)
        if (item_at(s, i)->id == id && item_at(s, i)->state != ITEM_DONE)
            return item_at(s, i);
    return NULL;
}

/* Write the next configuration down before it is launched: while the device is still busy with
 * the one before it, so that it need not wait for the disk. */
static kopt_status begin_item(struct kp_session *s, struct item *it, kopt_error *err)
{
    if (!s->store || it->row)
        return KOPT_OK;
    int64_t begun = kp_clock_ns();
    kopt_status st =
        kp_store_begin(s->store, s->run, s->subject.id, it->k.json, false, &it->row, err);
    s->store_ns += kp_clock_ns() - begun;
    return st;
}

static kopt_status feed_device(struct kp_session *s, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    struct kp_lab_plan p = kp_session_plan(s);
    struct item *it;
    while (st == KOPT_OK && kp_lab_lane_free(s->lab) && (it = oldest(s, ITEM_READY)) != NULL) {
        st = begin_item(s, it, err);
        if (st == KOPT_OK)
            st = kp_lab_measure(s->lab, it->id, &p, err);
        if (st == KOPT_EBUSY)
            return KOPT_OK; /* the lab brings another runner up */
        if (st == KOPT_OK) {
            s->n_fed++;
            it->state = ITEM_MEASURING;
        }
    }
    it = oldest(s, ITEM_READY);
    return st == KOPT_OK && it ? begin_item(s, it, err) : st;
}

kopt_status kp_session_wait(struct kp_session *s, int timeout_ms, struct kp_lab_event *ev,
                            kopt_error *err)
{
    eventfd_t count;
    kopt_status st = kp_lab_next(s->lab, timeout_ms, s->wake_fd, ev, err);
    s->woken_ns = kp_clock_ns();
    (void)eventfd_read(s->wake_fd, &count);
    return st;
}

static kopt_status on_event(struct kp_session *s, const struct kp_lab_event *ev,
                            kopt_error *err)
{
    struct item *it = ev->kind == KP_LAB_NOTHING ? NULL : by_id(s, ev->id);
    if (!it)
        return KOPT_OK;
    if (ev->kind == KP_LAB_COMPILED) {
        it->state = ITEM_READY;
        return KOPT_OK;
    }
    return finish_item(s, it, &ev->result, err);
}

/* A configuration that will not be launched: its row is taken back. That may fail in a store
 * that cannot be written any more; then it stays as one that was interrupted. */
static void give_up(struct kp_session *s, struct item *it)
{
    if (it->row && it->state == ITEM_READY)
        (void)kp_store_withdraw(s->store, it->row, NULL);
    kp_lab_forget(s->lab, it->id);
    kp_kept_deinit(&it->k);
}

/* Configurations that wait are given up when time is over, the user has had enough or nothing
 * more can be done; only in the first case those on the device and the default are waited for.
 */
static void abandon(struct kp_session *s, bool all)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_items; i++) {
        struct item *it = item_at(s, i);
        bool wanted = it->state == ITEM_MEASURING || is_default(s, it);
        if (it->state == ITEM_DONE || (wanted && !all)) {
            if (n != i) {
                *item_at(s, n) = *it;
                memset(it, 0, sizeof(*it));
            }
            n++;
        } else {
            give_up(s, it);
        }
    }
    s->n_items = n;
    s->n_pending = 0;
    s->exhausted = true;
}

/* On a device that computes on these cores the strategy must not think while it is timed. */
static kopt_status settle(struct kp_session *s, kopt_error *err)
{
    if (!kp_lab_device(s->lab)->is_cpu || !oldest(s, ITEM_READY))
        return KOPT_OK;
    kp_asker_settle(s->asker);
    return tell_and_ask(s, err);
}

/* One event and what follows from it. */
static kopt_status step(struct kp_session *s, kopt_error *err)
{
    struct kp_lab_event ev = {.kind = KP_LAB_NOTHING};
    kopt_status st = feed_device(s, err);
    uint64_t fed = s->n_fed;
    if (st == KOPT_OK && s->n_items + s->n_pending > 0)
        st = kp_session_wait(s, POLL_MS, &ev, err);
    if (st == KOPT_OK)
        st = on_event(s, &ev, err);
    if (st == KOPT_OK)
        st = settle(s, err);
    /* The device gets its next candidate before the search is told of the last one. */
    if (st == KOPT_OK)
        st = feed_device(s, err);
    if (ev.kind == KP_LAB_RESULT && s->n_fed != fed)
        s->dispatch_ns += kp_clock_ns() - s->woken_ns;
    return st == KOPT_OK ? tell_and_ask(s, err) : st;
}

static kopt_status search_loop(struct kp_session *s, kopt_error *err)
{
    kopt_status st = tell_and_ask(s, err);
    bool over = false;
    while (st == KOPT_OK && s->n_items + s->n_pending > 0 && !kp_session_stopped(s)) {
        if (!over && time_is_over(s) && s->n_items + s->progress.done > 0) {
            over = true;
            abandon(s, false);
        }
        st = step(s, err);
    }
    return st;
}

kopt_status kp_session_search(struct kp_session *s, kopt_error *err)
{
    kopt_status st = kp_asker_new(s->search, s->n_params, s->wake_fd, &s->asker, err);
    if (st != KOPT_OK)
        return st;
    kp_asker_until(s->asker, s->o.until);
    st = search_loop(s, err);
    if (s->o.until > 0 && !kp_session_stopped(s))
        kp_asker_settle(s->asker);
    s->progress.remaining = kp_asker_remaining(s->asker);
    s->until_met = kp_asker_ended(s->asker);
    s->search_ns = kp_asker_busy_ns(s->asker);
    kp_asker_free(s->asker);
    s->asker = NULL;
    kp_lab_get_use(s->lab, &s->search_use);
    s->interrupted = kp_session_stopped(s);
    abandon(s, true);
    kp_session_report_progress(s, true);
    return st;
}
