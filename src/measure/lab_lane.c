/* SPDX-License-Identifier: MIT */
#include "measure/lab_internal.h"

#include "base/alloc.h"
#include "measure/result.h"
#include "os/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OPEN_TIMEOUT_S = 60, LOAD_TIMEOUT_S = 60, DATA_TIMEOUT_S = 120, OPEN_TRIES = 3 };
static const int64_t second_ns = 1000000000;

/* --- starting
 * --------------------------------------------------------------------------------- */

static kopt_status open_device(struct kp_lab *lab, struct lane *l, kopt_error *err)
{
    struct kp_message m;
    struct kp_json *j = kp_message_new("do", "open", 1);
    if (j) {
        (void)kp_json_set_str(j, "backend", kp_backend_name(lab->o.backend));
        (void)kp_json_set_i64(j, "index", l->device);
    }
    kopt_status st = kp_lab_call(lab, &l->proc, j, NULL, OPEN_TIMEOUT_S * second_ns, &m, err);
    if (st != KOPT_OK)
        return st;
    struct kp_device_info info;
    kp_message_get_info(&m, &info);
    int64_t free_bytes = kp_message_i64(&m, "free_bytes", 0);
    kp_message_deinit(&m);
    if (!lab->known) {
        lab->info = info;
        lab->free_bytes = free_bytes;
        lab->known = true;
    }
    /* Fake devices have numbers in their names. */
    bool same_name = info.backend == KP_BACKEND_FAKE || strcmp(info.name, lab->info.name) == 0;
    if (!same_name || strcmp(info.arch, lab->info.arch) != 0)
        return kp_err(err, KOPT_EUSAGE,
                      "devices of different kinds cannot work together: %s and %s",
                      lab->info.name, info.name);
    if (free_bytes < lab->free_bytes)
        lab->free_bytes = free_bytes;
    return KOPT_OK;
}

static kopt_status call_plain(struct kp_lab *lab, struct lane *l, struct kp_json *head,
                              kopt_error *err)
{
    struct kp_message m;
    kopt_status st =
        kp_lab_call(lab, &l->proc, head, NULL, DATA_TIMEOUT_S * second_ns, &m, err);
    if (st == KOPT_OK)
        kp_message_deinit(&m);
    return st;
}

kopt_status kp_lab_lane_buffers(struct kp_lab *lab, struct lane *l, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < lab->n_buffers && st == KOPT_OK; i++) {
        const struct kp_lab_buffer *b = &lab->buffers[i];
        struct kp_json *j = kp_message_new("do", "buffer", 1);
        if (j) {
            (void)kp_json_set_i64(j, "buffer", b->buffer);
            (void)kp_json_set_i64(j, "bytes", (int64_t)b->bytes);
            (void)kp_json_set_str(j, "file", b->file ? b->file : "");
            (void)kp_json_set_str(j, "dir", b->inout ? "inout" : b->file ? "in" : "out");
        }
        st = call_plain(lab, l, j, err);
    }
    return st;
}

kopt_status kp_lab_lane_checks(struct kp_lab *lab, struct lane *l, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < lab->n_checks && st == KOPT_OK; i++) {
        const struct kp_lab_check *c = &lab->checks[i];
        struct kp_json *j = kp_message_new("do", "check", 1);
        if (j) {
            (void)kp_json_set_i64(j, "buffer", c->buffer);
            (void)kp_json_set_str(j, "file", c->file);
            (void)kp_json_set_str(j, "name", c->name ? c->name : "");
            (void)kp_json_set_i64(j, "type", c->type);
            (void)kp_json_set_f64(j, "rtol", c->rtol);
            (void)kp_json_set_f64(j, "atol", c->atol);
        }
        st = call_plain(lab, l, j, err);
    }
    return st;
}

static kopt_status start_once(struct kp_lab *lab, struct lane *l, kopt_error *err)
{
    kopt_status st = kp_lab_spawn(lab, "run", l->output, &l->proc, err);
    if (st == KOPT_OK)
        st = open_device(lab, l, err);
    if (st == KOPT_OK)
        st = kp_lab_lane_buffers(lab, l, err);
    if (st == KOPT_OK)
        st = kp_lab_lane_checks(lab, l, err);
    if (st != KOPT_OK)
        kp_proc_kill(&l->proc);
    return st;
}

/* A device may need a moment after a fault. */
kopt_status kp_lab_lane_start(struct kp_lab *lab, struct lane *l, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (int i = 0; i < OPEN_TRIES; i++) {
        st = start_once(lab, l, err);
        if (st == KOPT_OK || st == KOPT_EENV || st == KOPT_EFULL || st == KOPT_ENOMEM ||
            st == KOPT_EUSAGE || st == KOPT_EINTR)
            break;
        kp_clock_sleep_ns(i * second_ns / 2);
    }
    l->state = st == KOPT_OK ? LANE_IDLE : LANE_OFF;
    l->job = 0;
    l->holds = false;
    return st;
}

bool kp_lab_lane_revive(struct kp_lab *lab, struct lane *l)
{
    if (kp_lab_lane_start(lab, l, &lab->lane_error) == KOPT_OK)
        return true;
    l->state = LANE_GONE;
    return false;
}

/* --- measuring
 * -------------------------------------------------------------------------------- */

static struct lane *free_lane(const struct kp_lab *lab)
{
    for (size_t i = 0; i < lab->n_lanes; i++)
        if (lab->lanes[i].state == LANE_IDLE)
            return (struct lane *)(uintptr_t)&lab->lanes[i];
    return NULL;
}

bool kp_lab_lane_free(const struct kp_lab *lab)
{
    return free_lane(lab) != NULL;
}

bool kp_lab_put_plan(struct kp_json *j, const struct kp_lab_plan *p)
{
    return kp_json_set_i64(j, "min_samples", p->min_samples) &&
           kp_json_set_i64(j, "max_samples", p->max_samples) &&
           kp_json_set_f64(j, "precision", p->precision) &&
           kp_json_set_f64(j, "best_ns", p->best_ns) &&
           kp_json_set_f64(j, "drop_ratio", p->drop_ratio) &&
           kp_json_set_f64(j, "budget_ns", p->budget_ns) &&
           kp_json_set_i64(j, "flush", (int64_t)p->flush_bytes) &&
           kp_json_set_bool(j, "check", p->check);
}

/* Launches without a word: a part of the time limit, so that none is taken for a hang. */
static double batch_ns(const struct kp_lab *lab)
{
    return fmin(1e9, (double)lab->o.launch_timeout_ns / 4);
}

bool kp_lab_lanes_hold(const struct kp_lab *lab)
{
    for (size_t i = 0; i < lab->n_lanes; i++)
        if (lab->lanes[i].holds)
            return true;
    return false;
}

static void release_hold(struct kp_lab *lab, struct lane *l)
{
    l->holds = false;
    if (!kp_lab_lanes_hold(lab))
        kp_lab_compilers_pause(lab, false);
}

/* What runs on the cores the compilers use is loaded, checked and timed while they stand still.
 * The checked launch between is not: it may be long, and its time is no measurement. */
static void hold(struct kp_lab *lab, struct lane *l)
{
    l->holds = true;
    kp_lab_compilers_pause(lab, true);
}

kopt_status kp_lab_measure(struct kp_lab *lab, int64_t id, const struct kp_lab_plan *p,
                           kopt_error *err)
{
    struct lane *l = free_lane(lab);
    struct job *job = kp_lab_job_find(lab, id);
    if (!l)
        return kp_err(err, KOPT_EBUSY, "no runner is free");
    if (!job || job->state != JOB_COMPILED)
        return kp_err(err, KOPT_ENOTFOUND, "job %lld is not compiled", (long long)id);
    struct kp_json *j = kp_message_new("do", "measure", id);
    bool ok = j && kp_json_set_str(j, "entry", job->entry) && kp_lab_put_plan(j, p) &&
              kp_json_set_f64(j, "batch_ns", batch_ns(lab)) &&
              kp_json_set_bool(j, "hold", lab->info.is_cpu) &&
              kp_message_put_launch(j, &job->launch);
    if (!ok) {
        kp_json_free(j);
        return kp_err_nomem(err);
    }
    if (lab->info.is_cpu)
        hold(lab, l);
    kopt_status st = kp_message_send(l->proc.fd, j, job->image.ptr, job->image.len, err);
    if (st != KOPT_OK)
        release_hold(lab, l);
    if (st == KOPT_EIO) { /* it ended after its last answer: not this candidate's fault */
        kp_proc_kill(&l->proc);
        l->state = LANE_OFF;
        lab->use.n_replaced++;
        return kp_err(err, KOPT_EBUSY, "the runner has ended");
    }
    if (st != KOPT_OK)
        return st;
    job->state = JOB_MEASURING;
    l->state = LANE_BUSY;
    l->job = id;
    l->loaded_ns = 0;
    l->begun_ns = l->heard_ns = kp_clock_ns();
    l->deadline_ns = l->begun_ns + LOAD_TIMEOUT_S * second_ns;
    return KOPT_OK;
}

/* --- answers
 * ---------------------------------------------------------------------------------- */

static void lane_done(struct kp_lab *lab, struct lane *l)
{
    lab->use.device_ns += kp_clock_ns() - l->begun_ns;
    release_hold(lab, l);
    l->state = LANE_IDLE;
    l->job = 0;
}

int64_t kp_lab_phase_limit_ns(const struct kp_message *m, int64_t limit_ns)
{
    const int64_t data_ns = DATA_TIMEOUT_S * second_ns;
    bool data = strcmp(kp_message_str(m, "phase"), "refreshing") == 0;
    return data && limit_ns < data_ns ? data_ns : limit_ns;
}

static void on_phase(struct kp_lab *lab, struct lane *l, const struct kp_message *m)
{
    int64_t now = kp_clock_ns();
    if (!l->loaded_ns) {
        l->loaded_ns = now;
        release_hold(lab, l);
    }
    l->heard_ns = now;
    l->deadline_ns = now + kp_lab_phase_limit_ns(m, lab->o.launch_timeout_ns);
    if (strcmp(kp_message_str(m, "phase"), "hold") == 0) {
        hold(lab, l);
        (void)kp_message_send(l->proc.fd, kp_message_new("do", "go", l->job), NULL, 0, NULL);
    }
}

static void add_use(struct kp_lab *lab, const struct kp_message *m)
{
    lab->use.launch_ns += kp_message_i64(m, "launch_ns", 0);
    lab->use.kernel_ns += kp_message_i64(m, "kernel_ns", 0);
    lab->use.load_ns += kp_message_i64(m, "load_ns", 0);
    lab->use.check_ns += kp_message_i64(m, "check_ns", 0);
    lab->use.sense_ns += kp_message_i64(m, "sense_ns", 0);
}

static double number_in(const struct kp_json *j, const char *key)
{
    double v;
    return kp_json_as_f64(kp_json_get(j, key), &v) ? v : (double)NAN;
}

static int64_t count_in(const struct kp_json *j, const char *key)
{
    int64_t v;
    return kp_json_as_i64(kp_json_get(j, key), &v) ? v : -1;
}

static void read_sensed(const struct kp_json *j, kopt_result *r)
{
    r->power_w = number_in(j, "power_w");
    r->energy_j = number_in(j, "energy_j");
    r->sm_mhz = number_in(j, "sm_mhz");
    r->temp_c = number_in(j, "temp_c");
    r->throttle = count_in(j, "throttle");
}

static void read_numbers(const struct kp_json *j, kopt_result *r)
{
    r->registers = count_in(j, "registers");
    r->shared_bytes = count_in(j, "shared_bytes");
    r->local_bytes = count_in(j, "local_bytes");
    r->max_error = number_in(j, "max_error");
    read_sensed(j, r);
}

static void read_result(struct kp_lab *lab, const struct job *job, const struct kp_message *m,
                        struct kp_lab_event *ev)
{
    kopt_result *r = &ev->result;
    size_t n = m->blob_bytes / sizeof(double);
    const double none = (double)NAN;
    bool dropped = false;
    (void)kp_json_as_bool(kp_json_get(m->head, "dropped"), &dropped);
    kp_buf_clear(&lab->text);
    kp_buf_adds(&lab->text, kp_message_str(m, "message"));
    kp_free(lab->times);
    lab->times = kp_calloc(n ? n : 1, sizeof(double));
    if (lab->times)
        memcpy(lab->times, m->blob, n * sizeof(double));
    int64_t outcome = kp_message_i64(m, "outcome", KOPT_OUT_LAUNCH_ERROR);
    *ev = (struct kp_lab_event){.kind = KP_LAB_RESULT, .id = job->id};
    *r = kp_result_unknown(outcome >= 0 && outcome < KOPT_OUT_COUNT ? (kopt_outcome)outcome
                                                                    : KOPT_OUT_LAUNCH_ERROR,
                           kp_buf_text(&lab->text));
    r->times_ns = lab->times;
    r->n_times = lab->times ? (uint32_t)n : 0;
    if (r->outcome == KOPT_OUT_OK && !(kp_message_f64(m, "median", none) > 0)) {
        r->outcome = KOPT_OUT_BAD_TIME; /* a runner whose memory was written over, perhaps */
        r->message = "the runner gave no time";
    }
    if (r->outcome == KOPT_OUT_OK) {
        r->median_ns = kp_message_f64(m, "median", none);
        r->low_ns = kp_message_f64(m, "low", none);
        r->high_ns = kp_message_f64(m, "high", none);
        r->dropped = dropped;
    }
    r->compile_ns = job->compile_ns;
    r->device_ns = kp_message_f64(m, "device_ns", none);
    read_numbers(m->head, r);
    add_use(lab, m);
}

/* The runner is gone with the job it had; *ev says what that makes of the candidate. It counts
 * only if the device can be opened again: one that was unplugged fails whatever it runs. The
 * job is for another device, then, or for another session; but what loses two is to blame. */
static bool end_lost(struct kp_lab *lab, struct lane *l, struct job *job,
                     struct kp_lab_event *ev)
{
    bool other = false;
    bool back = kp_lab_lane_revive(lab, l);
    for (size_t i = 0; i < lab->n_lanes; i++)
        other = other || lab->lanes[i].state != LANE_GONE;
    if (back || (job->lost && other)) {
        kp_lab_job_remove(lab, job->id);
        return true;
    }
    job->lost = true;
    job->state = JOB_COMPILED;
    *ev = (struct kp_lab_event){.kind = KP_LAB_COMPILED, .id = job->id};
    return true;
}

static bool on_result(struct kp_lab *lab, struct lane *l, const struct kp_message *m,
                      struct kp_lab_event *ev)
{
    struct job *job = kp_lab_job_find(lab, l->job);
    bool lost = false;
    (void)kp_json_as_bool(kp_json_get(m->head, "lost"), &lost);
    lane_done(lab, l);
    if (lost) {
        kp_proc_kill(&l->proc);
        l->state = LANE_OFF;
        lab->use.n_replaced++;
    }
    if (!job)
        return false;
    read_result(lab, job, m, ev);
    if (lost)
        return end_lost(lab, l, job, ev);
    kp_lab_job_remove(lab, job->id);
    return true;
}

static bool is_no_memory(const struct kp_message *m)
{
    return strcmp(kp_message_what(m, "is"), "error") == 0 &&
           kp_message_i64(m, "code", 0) == KOPT_ENOMEM;
}

static bool on_no_memory(struct kp_lab *lab, struct lane *l, struct kp_lab_event *ev)
{
    struct job *job = kp_lab_job_find(lab, l->job);
    lane_done(lab, l);
    kp_proc_kill(&l->proc);
    l->state = LANE_OFF;
    lab->use.n_replaced++;
    if (!job)
        return false;
    kp_lab_starved(lab, job, "runs");
    job->state = JOB_COMPILED;
    *ev = (struct kp_lab_event){.kind = KP_LAB_COMPILED, .id = job->id};
    return true;
}

static bool on_message(struct kp_lab *lab, struct lane *l, struct kp_lab_event *ev)
{
    struct kp_message m;
    bool event = false;
    kopt_status st = kp_message_parse(&lab->frame, &m, NULL);
    lab->no_memory = lab->no_memory || st == KOPT_ENOMEM;
    if (st != KOPT_OK) {
        if (st != KOPT_ENOMEM)
            kp_proc_kill(&l->proc);
        return false;
    }
    const char *is = kp_message_what(&m, "is");
    if (l->state == LANE_BUSY && is_no_memory(&m))
        event = on_no_memory(lab, l, ev);
    else if (l->state != LANE_BUSY || kp_message_i64(&m, "id", 0) != l->job)
        kp_proc_kill(&l->proc); /* it answers what nobody asked: out of its mind */
    else if (strcmp(is, "phase") == 0)
        on_phase(lab, l, &m);
    else if (strcmp(is, "result") == 0)
        event = on_result(lab, l, &m, ev);
    kp_message_deinit(&m);
    return event;
}

static bool replace(struct kp_lab *lab, struct lane *l, bool timeout, const char *how,
                    struct kp_lab_event *ev)
{
    int64_t id = l->job;
    int64_t now = kp_clock_ns();
    bool busy = l->state == LANE_BUSY;
    bool loaded = l->loaded_ns != 0;
    char text[256];
    lab->use.n_replaced++;
    kp_proc_kill(&l->proc);
    if (busy)
        lane_done(lab, l);
    l->state = LANE_OFF;
    if (!busy)
        return false;
    if (loaded)
        lab->use.launch_ns += now - l->loaded_ns;
    lab->use.load_ns += (loaded ? l->loaded_ns : now) - l->begun_ns;
    if (timeout)
        (void)snprintf(
            text, sizeof(text),
            loaded ? "it did not end within %.4g s" : "loading did not end within %.4g s",
            loaded ? (double)lab->o.launch_timeout_ns / 1e9 : (double)LOAD_TIMEOUT_S);
    else
        (void)snprintf(text, sizeof(text), "it ended the process that ran it: %s", how);
    struct job *job = kp_lab_job_find(lab, id);
    if (!job)
        return false;
    kp_lab_fail_output(lab, ev, id, timeout ? KOPT_OUT_HANG : KOPT_OUT_CRASH, text, l->output);
    /* Of a hang what it had of the limit: whether a longer one may help is seen from that. */
    ev->result.device_ns = (double)(now - (timeout ? l->heard_ns : l->begun_ns));
    return end_lost(lab, l, job, ev);
}

static bool poll_one(struct kp_lab *lab, struct lane *l, struct kp_lab_event *ev)
{
    if (l->state == LANE_OFF || l->state == LANE_GONE)
        return false;
    int got;
    while ((got = kp_proc_frame(&l->proc, &lab->frame)) > 0)
        if (on_message(lab, l, ev))
            return true;
    lab->no_memory = lab->no_memory || got == KP_FRAME_NO_MEMORY;
    if (got < 0 && got != KP_FRAME_NO_MEMORY) {
        char how[64] = "it closed its connection";
        for (int i = 0; i < 200 && l->proc.pid && !kp_proc_ended(&l->proc, how, sizeof(how));
             i++)
            kp_clock_sleep_ns(1000000);
        return replace(lab, l, false, how, ev);
    }
    if (l->state == LANE_BUSY && kp_clock_ns() > l->deadline_ns)
        return replace(lab, l, true, "", ev);
    return false;
}

bool kp_lab_lanes_poll(struct kp_lab *lab, struct kp_lab_event *ev)
{
    for (size_t i = 0; i < lab->n_lanes; i++)
        if (poll_one(lab, &lab->lanes[i], ev))
            return true;
    return false;
}

int64_t kp_lab_lanes_deadline(const struct kp_lab *lab)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < lab->n_lanes; i++)
        if (lab->lanes[i].state == LANE_BUSY && lab->lanes[i].deadline_ns < least)
            least = lab->lanes[i].deadline_ns;
    return least;
}

/* --- reference and race
 * ----------------------------------------------------------------------- */

static kopt_status compile_and_wait(struct kp_lab *lab, const struct kp_lab_job *job,
                                    kopt_error *err)
{
    kopt_status st = kp_lab_compile(lab, job, err);
    while (st == KOPT_OK) {
        struct kp_lab_event ev;
        st = kp_lab_next(lab, -1, lab->o.wake_fd, &ev, err);
        if (st == KOPT_OK && kp_readable(lab->o.wake_fd))
            st = kp_err(err, KOPT_EINTR, "interrupted");
        if (st != KOPT_OK || ev.kind == KP_LAB_NOTHING || ev.id != job->id)
            continue;
        if (ev.kind == KP_LAB_COMPILED)
            return KOPT_OK;
        if (ev.kind == KP_LAB_RESULT)
            return kp_err(
                err, ev.result.outcome == KOPT_OUT_COMPILE_ERROR ? KOPT_EINPUT : KOPT_EFAILED,
                "%s", ev.result.message);
    }
    return st;
}

/* After a failure the process is replaced at once: its device may be of no use to it (a kernel
 * that faulted), or candidates may still be loaded. */
/* NOLINTNEXTLINE(readability-function-size): seven parameters, each of them plain */
static kopt_status blocking_call(struct kp_lab *lab, struct lane *l, struct kp_json *head,
                                 const struct kp_buf *blob, int64_t timeout_ns,
                                 struct kp_message *m, kopt_error *err)
{
    kopt_status st = kp_lab_call(lab, &l->proc, head, blob, timeout_ns, m, err);
    if (st == KOPT_OK)
        return st;
    kp_proc_kill(&l->proc);
    lab->use.n_replaced++;
    l->state = LANE_OFF;
    if (st == KOPT_ENOMEM || st == KOPT_EINTR)
        return st;
    if (kp_lab_lane_start(lab, l, NULL) != KOPT_OK)
        return kp_err(err, KOPT_EDEVICE, "the device cannot be opened again");
    if (err)
        err->code = KOPT_EFAILED;
    return KOPT_EFAILED;
}

/* One that is at work or can be; blocking steps start it when they have to. */
static struct lane *first_lane(struct kp_lab *lab)
{
    for (size_t i = 0; i < lab->n_lanes; i++)
        if (lab->lanes[i].state == LANE_IDLE)
            return &lab->lanes[i];
    return &lab->lanes[0];
}

static kopt_status first_lane_ready(struct kp_lab *lab, struct lane **out, kopt_error *err)
{
    *out = first_lane(lab);
    if ((*out)->state == LANE_BUSY)
        return kp_err(err, KOPT_EBUSY, "no runner is free");
    return (*out)->state == LANE_IDLE ? KOPT_OK : kp_lab_lane_start(lab, *out, err);
}

kopt_status kp_lab_reference(struct kp_lab *lab, const struct kp_lab_job *job,
                             const struct kp_lab_save *save, size_t n_save, kopt_error *err)
{
    struct lane *l = NULL;
    struct kp_message m;
    kopt_status st = compile_and_wait(lab, job, err);
    if (st == KOPT_OK)
        st = first_lane_ready(lab, &l, err);
    struct job *compiled = st == KOPT_OK ? kp_lab_job_find(lab, job->id) : NULL;
    if (!compiled) {
        kp_lab_forget(lab, job->id);
        return st;
    }
    struct kp_json *j = kp_message_new("do", "reference", job->id);
    struct kp_json *saves = kp_json_new_array();
    bool ok = j && saves && kp_json_set_str(j, "entry", job->entry) &&
              kp_message_put_launch(j, &job->launch);
    for (size_t i = 0; i < n_save && ok; i++) {
        struct kp_json *s = kp_json_new_object();
        ok = kp_json_set_i64(s, "buffer", save[i].buffer) &&
             kp_json_set_str(s, "file", save[i].file);
        ok = kp_json_push(saves, s) && ok;
    }
    if (!ok || !kp_json_set(j, "save", saves)) {
        if (!ok)
            kp_json_free(saves);
        kp_json_free(j);
        kp_lab_forget(lab, job->id);
        return kp_err_nomem(err);
    }
    int64_t limit = LOAD_TIMEOUT_S * second_ns + 4 * lab->o.launch_timeout_ns;
    st = blocking_call(lab, l, j, &compiled->image, limit, &m, err);
    if (st == KOPT_OK)
        kp_message_deinit(&m);
    kp_lab_forget(lab, job->id);
    return st;
}

static kopt_status load_slots(struct kp_lab *lab, struct lane *l, const int64_t *ids, size_t n,
                              kopt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct kp_message m;
        struct job *job = kp_lab_job_find(lab, ids[i]);
        if (!job || job->state != JOB_COMPILED)
            return kp_err(err, KOPT_ENOTFOUND, "job %lld is not compiled", (long long)ids[i]);
        struct kp_json *j = kp_message_new("do", "slot", ids[i]);
        bool ok = j && kp_json_set_str(j, "entry", job->entry) &&
                  kp_json_set_i64(j, "slot", (int64_t)i) &&
                  kp_message_put_launch(j, &job->launch);
        if (!ok) {
            kp_json_free(j);
            return kp_err_nomem(err);
        }
        kopt_status st =
            blocking_call(lab, l, j, &job->image, LOAD_TIMEOUT_S * second_ns, &m, err);
        if (st != KOPT_OK)
            return st;
        kp_message_deinit(&m);
    }
    return KOPT_OK;
}

static kopt_status refresh(struct kp_lab *lab, struct lane *l, kopt_error *err)
{
    struct kp_message m;
    kopt_status st = blocking_call(lab, l, kp_message_new("do", "refresh", 1), NULL,
                                   DATA_TIMEOUT_S * second_ns, &m, err);
    if (st == KOPT_OK)
        kp_message_deinit(&m);
    return st;
}

static void read_racer(const struct kp_lab *lab, int64_t id, const struct kp_json *from,
                       struct kp_lab_racer *out)
{
    const struct job *job = kp_lab_job_find(lab, id);
    struct kp_str why = {"", 0};
    bool bad = false;
    kopt_result *r = &out->result;
    (void)kp_json_as_bool(kp_json_get(from, "bad"), &bad);
    (void)kp_json_as_str(kp_json_get(from, "message"), &why);
    (void)snprintf(out->message, sizeof(out->message), "%.*s", KP_STR_FMT(why));
    *r = kp_result_unknown(bad ? KOPT_OUT_UNSTEADY : KOPT_OUT_OK, out->message);
    r->race = 1;
    r->compile_ns = job ? job->compile_ns : (double)NAN;
    read_numbers(from, r);
}

/* NOLINTNEXTLINE(readability-function-size): eight parameters, each of them plain */
static kopt_status read_race(struct kp_lab *lab, struct kp_message *m, const int64_t *ids,
                             size_t n, unsigned *rounds, double *times_ns,
                             struct kp_lab_racer *racers, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    size_t made = (size_t)kp_message_i64(m, "rounds", 0);
    const struct kp_json *list = kp_json_get(m->head, "racers");
    add_use(lab, m);
    if (made < 1 || made > *rounds || m->blob_bytes != made * n * sizeof(double) ||
        kp_json_size(list) != n) {
        st = kp_err(err, KOPT_EFAILED, "the race's answer is broken");
    } else {
        *rounds = (unsigned)made;
        memcpy(times_ns, m->blob, m->blob_bytes);
        for (size_t i = 0; i < n; i++)
            read_racer(lab, ids[i], kp_json_at(list, i), &racers[i]);
    }
    kp_message_deinit(m);
    return st;
}

/* What the racers take, launched back to back; not of those that were wrong. The race is known
 * by now: a runner that fails or ends here costs the readings, no more. */
static void energies(struct kp_lab *lab, struct lane *l, size_t n, const double *est_ns,
                     struct kp_lab_racer *racers)
{
    struct kp_message m;
    struct kp_json *j = kp_message_new("do", "energy", 1);
    struct kp_json *est = kp_json_new_array();
    bool ok = j && est && kp_json_set_f64(j, "batch_ns", batch_ns(lab));
    for (size_t i = 0; i < n && ok; i++) {
        bool wanted = racers[i].result.outcome == KOPT_OUT_OK;
        ok = kp_json_push(est, kp_json_new_f64(wanted ? est_ns[i] : (double)NAN));
    }
    if (!ok || !kp_json_set(j, "est", est)) {
        if (!ok)
            kp_json_free(est);
        kp_json_free(j);
        j = NULL;
    }
    if (blocking_call(lab, l, j, NULL, 2 * lab->o.launch_timeout_ns, &m, NULL) != KOPT_OK)
        return;
    const struct kp_json *list = kp_json_get(m.head, "racers");
    add_use(lab, &m);
    for (size_t i = 0; i < n && i < kp_json_size(list); i++)
        read_sensed(kp_json_at(list, i), &racers[i].result);
    kp_message_deinit(&m);
}

/* NOLINTNEXTLINE(readability-function-size): eight parameters, each of them plain */
kopt_status kp_lab_race(struct kp_lab *lab, const int64_t *ids, size_t n,
                        const struct kp_lab_plan *p, unsigned *rounds, double *times_ns,
                        struct kp_lab_racer *racers, kopt_error *err)
{
    struct lane *l;
    struct kp_message m;
    int64_t begun = kp_clock_ns();
    kopt_status st = first_lane_ready(lab, &l, err);
    if (st == KOPT_OK)
        st = load_slots(lab, l, ids, n, err);
    if (st == KOPT_OK)
        lab->use.load_ns += kp_clock_ns() - begun;
    if (st == KOPT_OK)
        st = refresh(lab, l, err);
    if (st != KOPT_OK)
        return st;
    struct kp_json *j = kp_message_new("do", "race", 1);
    bool ok = j && kp_lab_put_plan(j, p) && kp_json_set_i64(j, "rounds", *rounds) &&
              kp_json_set_f64(j, "batch_ns", batch_ns(lab));
    if (!ok) {
        kp_json_free(j);
        return kp_err_nomem(err);
    }
    if (lab->info.is_cpu)
        kp_lab_compilers_pause(lab, true);
    int64_t limit = (int64_t)(2 * n + 1) * lab->o.launch_timeout_ns; /* of a round */
    st = blocking_call(lab, l, j, NULL, limit, &m, err);
    if (st == KOPT_OK)
        st = read_race(lab, &m, ids, n, rounds, times_ns, racers, err);
    if (st == KOPT_OK)
        energies(lab, l, n, times_ns + (size_t)(*rounds - 1) * n, racers);
    if (lab->info.is_cpu)
        kp_lab_compilers_pause(lab, false);
    lab->use.device_ns += kp_clock_ns() - begun;
    return st;
}
