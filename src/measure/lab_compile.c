/* SPDX-License-Identifier: MIT */
#include "measure/lab_internal.h"

#include "base/alloc.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

enum { OPEN_TIMEOUT_S = 60, OPEN_FAILURES_MAX = 3 };
static const int64_t second_ns = 1000000000;

static void open_failed(struct kp_lab *lab, struct compiler *c, const kopt_error *err)
{
    kp_proc_kill(&c->proc);
    c->state = COMPILER_OFF;
    c->failures++;
    if (err)
        lab->open_error = *err;
}

/* Start the process and send all that it needs before its first job; replies come later. */
static void start(struct kp_lab *lab, struct compiler *c)
{
    kopt_error err;
    kopt_status st = kp_lab_spawn(lab, "compile", c->output, &c->proc, &err);
    bool runs = st == KOPT_OK;
    if (st == KOPT_OK) {
        struct kp_json *j = kp_message_new("do", "open", 0);
        if (j) {
            (void)kp_json_set_str(j, "backend", kp_backend_name(lab->o.backend));
            (void)kp_json_set_i64(j, "index", lab->o.devices[0]);
            (void)kp_json_set_str(j, "arch", lab->info.arch);
        }
        st = kp_message_send(c->proc.fd, j, NULL, 0, &err);
    }
    if (st == KOPT_OK) {
        struct kp_json *j = kp_message_new("do", "source", 0);
        if (j && lab->o.source_path)
            (void)kp_json_set_str(j, "path", lab->o.source_path);
        st = kp_message_send(c->proc.fd, j, lab->o.source.ptr, lab->o.source.len, &err);
    }
    /* Of one that has ended meanwhile the next poll tells how. */
    if (st != KOPT_OK && !(runs && st == KOPT_EIO)) {
        open_failed(lab, c, &err);
        return;
    }
    c->state = COMPILER_OPENING;
    c->job = 0;
    c->paused_ns = 0;
    c->pause_begun_ns = 0;
    c->deadline_ns = kp_clock_ns() + OPEN_TIMEOUT_S * second_ns;
    if (kp_lab_lanes_hold(lab))
        kp_lab_compilers_pause(lab, true);
}

void kp_lab_compilers_start(struct kp_lab *lab)
{
    for (size_t i = 0; i < lab->n_compilers; i++)
        if (lab->compilers[i].state == COMPILER_OFF)
            start(lab, &lab->compilers[i]);
}

kopt_status kp_lab_compilers_health(const struct kp_lab *lab, kopt_error *err)
{
    for (size_t i = 0; i < lab->n_compilers; i++)
        if (lab->compilers[i].failures < OPEN_FAILURES_MAX)
            return KOPT_OK;
    if (err)
        *err = lab->open_error;
    return lab->open_error.code ? lab->open_error.code : KOPT_EENV;
}

static struct kp_json *text_array(const char *const *t, size_t n)
{
    struct kp_json *a = kp_json_new_array();
    for (size_t i = 0; i < n; i++) {
        if (!kp_json_push(a, kp_json_new_str(kp_str_from(t[i])))) {
            kp_json_free(a);
            return NULL;
        }
    }
    return a;
}

static kopt_status send_job(struct kp_lab *lab, struct compiler *c, const struct job *job)
{
    struct kp_json *j = kp_message_new("do", "compile", job->id);
    bool ok =
        j && kp_json_set_str(j, "entry", job->entry) &&
        kp_json_set(j, "macros", text_array((const char *const *)job->macros, job->n_macros)) &&
        kp_json_set(j, "options", text_array(lab->o.options, lab->o.n_options)) &&
        kp_message_put_launch(j, &job->launch);
    if (!ok) {
        kp_json_free(j);
        j = NULL;
    }
    return kp_message_send(c->proc.fd, j, NULL, 0, NULL);
}

static struct job *next_queued(const struct kp_lab *lab)
{
    for (size_t i = 0; i < lab->n_jobs; i++)
        if (lab->jobs[i]->state == JOB_QUEUED)
            return lab->jobs[i];
    return NULL;
}

void kp_lab_compilers_feed(struct kp_lab *lab)
{
    for (size_t i = 0; i < lab->n_compilers; i++) {
        struct compiler *c = &lab->compilers[i];
        struct job *job = c->state == COMPILER_IDLE ? next_queued(lab) : NULL;
        if (!job)
            continue;
        if (send_job(lab, c, job) != KOPT_OK)
            continue; /* it is gone: the next poll sees that and starts another */
        job->state = JOB_COMPILING;
        c->state = COMPILER_BUSY;
        c->job = job->id;
        c->compiled = false;
        c->begun_ns = kp_clock_ns();
        c->paused_ns = 0;
        if (c->pause_begun_ns)
            c->pause_begun_ns = c->begun_ns;
        c->deadline_ns = c->begun_ns + lab->o.compile_timeout_ns;
    }
}

void kp_lab_compilers_pause(struct kp_lab *lab, bool stop)
{
    int64_t now = kp_clock_ns();
    for (size_t i = 0; i < lab->n_compilers; i++) {
        struct compiler *c = &lab->compilers[i];
        if (c->state == COMPILER_OFF || stop == (c->pause_begun_ns != 0))
            continue;
        kp_proc_pause(&c->proc, stop);
        if (stop) {
            c->pause_begun_ns = now;
        } else {
            int64_t paused = now - c->pause_begun_ns;
            c->pause_begun_ns = 0;
            c->paused_ns += paused;
            c->deadline_ns += paused;
        }
    }
}

static double busy_ns(const struct compiler *c, int64_t now)
{
    int64_t pause = c->pause_begun_ns ? now - c->pause_begun_ns : 0;
    return (double)(now - c->begun_ns - c->paused_ns - pause);
}

static void job_over(struct kp_lab *lab, struct compiler *c)
{
    lab->use.compile_ns += (int64_t)busy_ns(c, kp_clock_ns());
    c->job = 0;
    c->state = COMPILER_IDLE;
}

static kopt_outcome outcome_of(kopt_status code)
{
    return code == KOPT_ERANGE ? KOPT_OUT_DEVICE_LIMIT : KOPT_OUT_COMPILE_ERROR;
}

static bool on_image(struct kp_lab *lab, struct compiler *c, const struct kp_message *m,
                     struct kp_lab_event *ev)
{
    struct job *job = kp_lab_job_find(lab, c->job);
    double ns = busy_ns(c, kp_clock_ns());
    job_over(lab, c);
    if (!job)
        return false;
    job->compile_ns = ns;
    kp_buf_clear(&job->image);
    kp_buf_add(&job->image, m->blob, m->blob_bytes);
    if (job->image.failed != KOPT_OK) { /* no fault of the configuration */
        lab->no_memory = true;
        return false;
    }
    job->state = JOB_COMPILED;
    if (lab->images)
        kp_images_put(lab->images, job->entry, (const char *const *)job->macros, job->n_macros,
                      job->image.ptr, job->image.len);
    *ev = (struct kp_lab_event){.kind = KP_LAB_COMPILED, .id = job->id};
    return true;
}

static void on_no_memory(struct kp_lab *lab, struct compiler *c)
{
    struct job *job = kp_lab_job_find(lab, c->job);
    job_over(lab, c);
    lab->use.n_replaced++;
    kp_proc_kill(&c->proc);
    if (job) {
        job->state = JOB_QUEUED;
        kp_lab_starved(lab, job, "compiles");
    }
    start(lab, c);
}

static bool on_error(struct kp_lab *lab, struct compiler *c, const struct kp_message *m,
                     struct kp_lab_event *ev)
{
    kopt_error err;
    kp_message_get_error(m, &err);
    if (c->state == COMPILER_OPENING) {
        open_failed(lab, c, &err);
        return false;
    }
    if (c->state != COMPILER_BUSY)
        return false;
    if (err.code == KOPT_ENOMEM) {
        on_no_memory(lab, c);
        return false;
    }
    int64_t id = c->job;
    double ns = busy_ns(c, kp_clock_ns());
    job_over(lab, c);
    kp_lab_fail(lab, ev, id, outcome_of(err.code), err.message, kp_message_str(m, "log"));
    kp_lab_job_remove(lab, id);
    ev->result.compile_ns = ns;
    return true;
}

static bool on_message(struct kp_lab *lab, struct compiler *c, struct kp_lab_event *ev)
{
    struct kp_message m;
    bool event = false;
    kopt_status st = kp_message_parse(&lab->frame, &m, NULL);
    lab->no_memory = lab->no_memory || st == KOPT_ENOMEM;
    if (st != KOPT_OK) {
        if (st != KOPT_ENOMEM)
            kp_proc_kill(&c->proc);
        return false;
    }
    const char *is = kp_message_what(&m, "is");
    if (strcmp(is, "opened") == 0 && c->state == COMPILER_OPENING) {
        c->state = COMPILER_IDLE;
        c->failures = 0;
    } else if (strcmp(is, "compiled") == 0 && c->state == COMPILER_BUSY) {
        c->compiled = true;
        c->compiled_ns = busy_ns(c, kp_clock_ns());
        c->deadline_ns = kp_clock_ns() + lab->o.launch_timeout_ns;
    } else if (strcmp(is, "image") == 0 && c->state == COMPILER_BUSY) {
        event = on_image(lab, c, &m, ev);
    } else if (strcmp(is, "error") == 0) {
        event = on_error(lab, c, &m, ev);
    }
    kp_message_deinit(&m);
    return event;
}

void kp_lab_compilers_drop(struct kp_lab *lab, int64_t id)
{
    for (size_t i = 0; i < lab->n_compilers; i++) {
        struct compiler *c = &lab->compilers[i];
        if (c->state != COMPILER_BUSY || c->job != id)
            continue;
        job_over(lab, c);
        kp_proc_kill(&c->proc);
        start(lab, c);
    }
}

/* The process is gone, or has to go: what does that make of its job? */
static bool replace(struct kp_lab *lab, struct compiler *c, bool timeout, const char *how,
                    struct kp_lab_event *ev)
{
    int64_t id = c->job;
    double ns = busy_ns(c, kp_clock_ns());
    bool compiled = c->compiled;
    bool busy = c->state == COMPILER_BUSY;
    lab->use.n_replaced++;
    kp_proc_kill(&c->proc);
    if (!busy) {
        kopt_error err;
        (void)kp_err(&err, KOPT_ECRASH, "the compiler process ended while it started: %s", how);
        open_failed(lab, c, &err);
        return false;
    }
    job_over(lab, c);
    c->state = COMPILER_OFF;
    char text[256];
    kopt_outcome outcome;
    if (timeout && compiled) {
        outcome = KOPT_OUT_HANG;
        (void)snprintf(text, sizeof(text), "its first launch did not end within %.4g s",
                       (double)lab->o.launch_timeout_ns / 1e9);
    } else if (timeout) {
        outcome = KOPT_OUT_COMPILE_TIMEOUT;
        (void)snprintf(text, sizeof(text), "the compiler did not end within %.4g s",
                       (double)lab->o.compile_timeout_ns / 1e9);
    } else {
        outcome = KOPT_OUT_CRASH;
        (void)snprintf(text, sizeof(text), "%s: %s",
                       compiled ? "its first launch ended the process"
                                : "the process that compiled it ended",
                       how);
    }
    kp_lab_fail_output(lab, ev, id, outcome, text, c->output);
    kp_lab_job_remove(lab, id);
    ev->result.compile_ns = compiled ? c->compiled_ns : ns;
    if (compiled)
        ev->result.device_ns = ns - c->compiled_ns;
    start(lab, c);
    return true;
}

static bool poll_one(struct kp_lab *lab, struct compiler *c, struct kp_lab_event *ev)
{
    if (c->state == COMPILER_OFF) {
        if (c->failures < OPEN_FAILURES_MAX)
            start(lab, c);
        return false;
    }
    int got;
    while ((got = kp_proc_frame(&c->proc, &lab->frame)) > 0) {
        if (on_message(lab, c, ev))
            return true;
        if (c->state == COMPILER_OFF)
            return false; /* it could not be opened, and has told why */
    }
    lab->no_memory = lab->no_memory || got == KP_FRAME_NO_MEMORY;
    if (got < 0 && got != KP_FRAME_NO_MEMORY) {
        char how[64] = "it closed its connection";
        for (int i = 0; i < 200 && c->proc.pid && !kp_proc_ended(&c->proc, how, sizeof(how));
             i++)
            kp_clock_sleep_ns(1000000);
        return replace(lab, c, false, how, ev);
    }
    if (!c->pause_begun_ns && c->state != COMPILER_IDLE && kp_clock_ns() > c->deadline_ns)
        return replace(lab, c, true, "it did not answer in time", ev);
    return false;
}

bool kp_lab_compilers_poll(struct kp_lab *lab, struct kp_lab_event *ev)
{
    for (size_t i = 0; i < lab->n_compilers; i++)
        if (poll_one(lab, &lab->compilers[i], ev))
            return true;
    return false;
}

int64_t kp_lab_compilers_deadline(const struct kp_lab *lab)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < lab->n_compilers; i++) {
        const struct compiler *c = &lab->compilers[i];
        bool runs = c->state == COMPILER_BUSY || c->state == COMPILER_OPENING;
        if (runs && !c->pause_begun_ns && c->deadline_ns < least)
            least = c->deadline_ns;
    }
    return least;
}
