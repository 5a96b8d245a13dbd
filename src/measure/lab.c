/* SPDX-License-Identifier: MIT */
#include "measure/lab_internal.h"

#include "base/alloc.h"
#include "measure/result.h"
#include "os/clock.h"
#include "os/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL_BYTES = 4096 };

/* --- jobs
 * ------------------------------------------------------------------------------------- */

static void job_free(struct job *j)
{
    if (!j)
        return;
    for (size_t i = 0; j->macros && i < j->n_macros; i++)
        kp_free(j->macros[i]);
    kp_free(j->macros);
    kp_free(j->entry);
    kp_free(j->launch.args);
    kp_buf_deinit(&j->image);
    kp_free(j);
}

static struct job *job_new(const struct kp_lab_job *src)
{
    struct job *j = kp_calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->id = src->id;
    j->image = KP_BUF_INIT(KP_FRAME_MAX);
    j->compile_ns = (double)NAN;
    j->entry = kp_strdup(src->entry);
    j->launch = src->launch;
    j->launch.args = kp_calloc(src->launch.n_args + 1, sizeof(*j->launch.args));
    j->macros = kp_calloc(src->n_macros + 1, sizeof(*j->macros));
    bool ok = j->entry && j->launch.args && j->macros;
    if (ok && src->launch.n_args)
        memcpy(j->launch.args, src->launch.args, src->launch.n_args * sizeof(*j->launch.args));
    for (size_t i = 0; i < src->n_macros && ok; i++) {
        j->macros[i] = kp_strdup(src->macros[i]);
        ok = j->macros[i] != NULL;
        j->n_macros++;
    }
    if (ok)
        return j;
    job_free(j);
    return NULL;
}

struct job *kp_lab_job_find(const struct kp_lab *lab, int64_t id)
{
    for (size_t i = 0; i < lab->n_jobs; i++)
        if (lab->jobs[i]->id == id)
            return lab->jobs[i];
    return NULL;
}

void kp_lab_job_remove(struct kp_lab *lab, int64_t id)
{
    for (size_t i = 0; i < lab->n_jobs; i++) {
        if (lab->jobs[i]->id != id)
            continue;
        job_free(lab->jobs[i]);
        for (lab->n_jobs--; i < lab->n_jobs; i++)
            lab->jobs[i] = lab->jobs[i + 1];
        return;
    }
}

void kp_lab_forget(struct kp_lab *lab, int64_t id)
{
    struct job *j = kp_lab_job_find(lab, id);
    if (!j || j->state == JOB_MEASURING)
        return;
    if (j->state == JOB_COMPILING)
        kp_lab_compilers_drop(lab, id);
    kp_lab_job_remove(lab, id);
}

bool kp_lab_is_compiled(const struct kp_lab *lab, int64_t id)
{
    const struct job *j = kp_lab_job_find(lab, id);
    return j && j->state == JOB_COMPILED;
}

kopt_status kp_lab_compile(struct kp_lab *lab, const struct kp_lab_job *job, kopt_error *err)
{
    if (lab->n_jobs == KP_LAB_JOBS_MAX)
        return kp_err(err, KOPT_ERANGE, "more than %d jobs at once", KP_LAB_JOBS_MAX);
    struct job *j = job_new(job);
    if (!j)
        return kp_err_nomem(err);
    lab->jobs[lab->n_jobs++] = j;
    if (lab->images && kp_images_get(lab->images, j->entry, (const char *const *)j->macros,
                                     j->n_macros, &j->image)) {
        j->state = JOB_COMPILED;
        j->compile_ns = 0;
        j->kept = true;
    }
    kp_lab_compilers_feed(lab);
    return KOPT_OK;
}

/* A job that found its image without a compiler. */
static bool tell_kept(struct kp_lab *lab, struct kp_lab_event *ev)
{
    for (size_t i = 0; i < lab->n_jobs; i++) {
        struct job *j = lab->jobs[i];
        if (!j->kept)
            continue;
        j->kept = false;
        *ev = (struct kp_lab_event){.kind = KP_LAB_COMPILED, .id = j->id};
        return true;
    }
    return false;
}

size_t kp_lab_n_compiling(const struct kp_lab *lab)
{
    size_t n = 0;
    for (size_t i = 0; i < lab->n_jobs; i++)
        n += lab->jobs[i]->state == JOB_QUEUED || lab->jobs[i]->state == JOB_COMPILING;
    return n;
}

/* --- events
 * ----------------------------------------------------------------------------------- */

void kp_lab_fail(struct kp_lab *lab, struct kp_lab_event *ev, int64_t id, kopt_outcome outcome,
                 const char *message, const char *log)
{
    const struct job *job = kp_lab_job_find(lab, id);
    double compile_ns = job ? job->compile_ns : (double)NAN;
    kp_buf_clear(&lab->text);
    kp_buf_adds(&lab->text, message);
    kp_buf_clear(&lab->log);
    kp_buf_adds(&lab->log, log ? log : "");
    *ev = (struct kp_lab_event){.kind = KP_LAB_RESULT, .id = id};
    ev->result = kp_result_unknown(outcome, kp_buf_text(&lab->text));
    ev->result.log = kp_buf_text(&lab->log);
    ev->result.compile_ns = compile_ns;
}

void kp_lab_starved(struct kp_lab *lab, struct job *job, const char *what)
{
    if (job->starved) {
        lab->no_memory = true;
        lab->starved = what;
    }
    job->starved = true;
}

/* The last TAIL_BYTES of a file, appended; nothing when it cannot be read. */
static void add_tail(const char *path, struct kp_buf *out)
{
    char bytes[TAIL_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    off_t end = lseek(fd, 0, SEEK_END);
    off_t at = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
    ssize_t n = pread(fd, bytes, sizeof(bytes), at);
    (void)close(fd);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == 0)
            bytes[i] = '?';
        kp_buf_addc(out, bytes[i]);
    }
}

void kp_lab_fail_output(struct kp_lab *lab, struct kp_lab_event *ev, int64_t id,
                        kopt_outcome outcome, const char *message, const char *output_path)
{
    struct kp_buf tail = KP_BUF_INIT(TAIL_BYTES + 1);
    add_tail(output_path, &tail);
    kp_lab_fail(lab, ev, id, outcome, message, kp_buf_text(&tail));
    kp_buf_deinit(&tail);
}

/* --- processes
 * -------------------------------------------------------------------------------- */

kopt_status kp_lab_spawn(struct kp_lab *lab, const char *role, const char *output,
                         struct kp_proc *p, kopt_error *err)
{
    const char *argv[] = {"kopt-worker", role, NULL};
    const char *env[] = {lab->cache_env, NULL};
    struct kp_proc_options o = {
        .path = lab->worker, .argv = argv, .env = env, .output_path = output};
    (void)unlink(output);
    return kp_proc_start(&o, p, err);
}

enum { AWAIT_INTERRUPTED = -2 };

/* 1: a frame is in lab->frame; 0: time is over; -1: the process is gone; KP_FRAME_NO_MEMORY;
 * AWAIT_INTERRUPTED. */
static int await_frame(struct kp_lab *lab, struct kp_proc *p, int64_t deadline)
{
    for (;;) {
        int got = kp_proc_frame(p, &lab->frame);
        int64_t left = deadline - kp_clock_ns();
        if (got != 0 || left <= 0)
            return got;
        if (kp_readable(lab->o.wake_fd))
            return AWAIT_INTERRUPTED;
        kp_proc_wait(&p, 1, lab->o.wake_fd,
                     left > 1000000000 ? 1000 : (int)(left / 1000000) + 1);
    }
}

static kopt_status lost_process(struct kp_proc *p, int got, kopt_error *err)
{
    char how[64] = "it closed its connection";
    for (int i = 0; got == -1 && i < 200 && p->pid && !kp_proc_ended(p, how, sizeof(how)); i++)
        kp_clock_sleep_ns(1000000);
    kp_proc_kill(p);
    if (got == AWAIT_INTERRUPTED)
        return kp_err(err, KOPT_EINTR, "interrupted");
    if (got == KP_FRAME_NO_MEMORY)
        return kp_err_nomem(err);
    if (got < 0)
        return kp_err(err, KOPT_ECRASH, "a worker process ended: %s", how);
    return kp_err(err, KOPT_ETIMEOUT, "a worker process did not answer in time");
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters, each of them plain */
kopt_status kp_lab_call(struct kp_lab *lab, struct kp_proc *p, struct kp_json *head,
                        const struct kp_buf *blob, int64_t timeout_ns, struct kp_message *reply,
                        kopt_error *err)
{
    int64_t deadline = kp_clock_ns() + timeout_ns;
    *reply = (struct kp_message){0};
    kopt_status st =
        kp_message_send(p->fd, head, blob ? blob->ptr : NULL, blob ? blob->len : 0, err);
    if (st == KOPT_EIO)
        return lost_process(p, -1, err);
    while (st == KOPT_OK) {
        int got = await_frame(lab, p, deadline);
        if (got <= 0)
            return lost_process(p, got, err);
        st = kp_message_parse(&lab->frame, reply, err);
        if (st != KOPT_OK) {
            kp_proc_kill(p);
            return st;
        }
        const char *is = kp_message_what(reply, "is");
        if (strcmp(is, "phase") != 0)
            break;
        deadline = kp_clock_ns() + kp_lab_phase_limit_ns(reply, timeout_ns); /* it gets on */
        kp_message_deinit(reply);
    }
    if (st == KOPT_OK && strcmp(kp_message_what(reply, "is"), "error") == 0) {
        kopt_error e;
        kp_message_get_error(reply, &e);
        kp_message_deinit(reply);
        if (err)
            *err = e;
        return e.code ? e.code : KOPT_EFAILED;
    }
    return st;
}

static int gather(const struct kp_lab *lab, struct kp_proc **procs)
{
    int n = 0;
    for (size_t i = 0; i < lab->n_compilers; i++)
        procs[n++] = &lab->compilers[i].proc;
    for (size_t i = 0; i < lab->n_lanes; i++)
        procs[n++] = (struct kp_proc *)(uintptr_t)&lab->lanes[i].proc;
    return n;
}

static kopt_status no_memory(const struct kp_lab *lab, kopt_error *err)
{
    if (!lab->starved)
        return kp_err_nomem(err);
    (void)kp_err(err, KOPT_ENOMEM,
                 "out of memory in the process that %s candidates, twice with the same one",
                 lab->starved);
    kp_err_hint(err, "fewer compilers at once leave more memory (--compilers)");
    return KOPT_ENOMEM;
}

static kopt_status no_device(const struct kp_lab *lab, kopt_error *err)
{
    kopt_status st = lab->lane_error.code;
    if (st != KOPT_EENV && st != KOPT_ENOMEM && st != KOPT_EFULL && st != KOPT_EINTR)
        st = KOPT_EDEVICE;
    if (err) {
        *err = lab->lane_error;
        err->code = st;
    }
    kp_err_wrap(err, "the device cannot be opened again");
    return st;
}

/* Bring back what died. Of several lanes some may stay away: they are not tried for ever. */
static kopt_status mend(struct kp_lab *lab, kopt_error *err)
{
    bool alive = false;
    if (lab->no_memory)
        return no_memory(lab, err);
    for (size_t i = 0; i < lab->n_lanes; i++) {
        struct lane *l = &lab->lanes[i];
        bool here = l->state == LANE_OFF ? kp_lab_lane_revive(lab, l) : l->state != LANE_GONE;
        alive = alive || here;
    }
    return alive ? kp_lab_compilers_health(lab, err) : no_device(lab, err);
}

kopt_status kp_lab_next(struct kp_lab *lab, int timeout_ms, int wake_fd,
                        struct kp_lab_event *ev, kopt_error *err)
{
    struct kp_proc *procs[KP_LAB_COMPILERS_MAX + KP_LAB_LANES_MAX];
    int64_t until = timeout_ms < 0 ? INT64_MAX : kp_clock_ns() + (int64_t)timeout_ms * 1000000;
    *ev = (struct kp_lab_event){.kind = KP_LAB_NOTHING};
    for (bool waited = false;; waited = true) {
        if (kp_lab_lanes_poll(lab, ev)) {
            kp_lab_compilers_feed(lab);
            return KOPT_OK;
        }
        bool event = tell_kept(lab, ev) || kp_lab_compilers_poll(lab, ev);
        kp_lab_compilers_feed(lab);
        if (event)
            return KOPT_OK;
        kopt_status st = mend(lab, err);
        if (st != KOPT_OK)
            return st;
        int64_t now = kp_clock_ns();
        if (now >= until || (waited && wake_fd >= 0))
            return KOPT_OK;
        int64_t next = until;
        if (kp_lab_compilers_deadline(lab) < next)
            next = kp_lab_compilers_deadline(lab);
        if (kp_lab_lanes_deadline(lab) < next)
            next = kp_lab_lanes_deadline(lab);
        int64_t ms = next == INT64_MAX ? 1000 : (next - now) / 1000000 + 1;
        int n = gather(lab, procs);
        kp_proc_wait(procs, (size_t)n, wake_fd, ms > 1000 ? 1000 : ms < 0 ? 0 : (int)ms);
    }
}

/* --- data
 * ------------------------------------------------------------------------------------- */

kopt_status kp_lab_set_buffers(struct kp_lab *lab, const struct kp_lab_buffer *b, size_t n,
                               kopt_error *err)
{
    lab->buffers = kp_calloc(n + 1, sizeof(*b));
    if (!lab->buffers)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        lab->buffers[i] = b[i];
        lab->buffers[i].file = b[i].file ? kp_strdup(b[i].file) : NULL;
        lab->n_buffers++;
        if (b[i].file && !lab->buffers[i].file)
            return kp_err_nomem(err);
    }
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < lab->n_lanes && st == KOPT_OK; i++)
        st = kp_lab_lane_buffers(lab, &lab->lanes[i], err);
    return st;
}

kopt_status kp_lab_set_checks(struct kp_lab *lab, const struct kp_lab_check *c, size_t n,
                              kopt_error *err)
{
    lab->checks = kp_calloc(n + 1, sizeof(*c));
    if (!lab->checks)
        return kp_err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        lab->checks[i] = c[i];
        lab->checks[i].file = kp_strdup(c[i].file);
        lab->checks[i].name = c[i].name ? kp_strdup(c[i].name) : NULL;
        lab->n_checks++;
        if (!lab->checks[i].file || (c[i].name && !lab->checks[i].name))
            return kp_err_nomem(err);
    }
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < lab->n_lanes && st == KOPT_OK; i++)
        st = kp_lab_lane_checks(lab, &lab->lanes[i], err);
    return st;
}

/* --- opening and closing
 * ---------------------------------------------------------------------- */

static const char prefix[] = "kopt-";
static const char lock_name[] = "lock"; /* held for as long as the session lives */

/* A folder of this user's whose lock nobody holds. The process id alone does not tell: its
 * owner may live in another container that shares the folder. */
static bool is_abandoned(const char *folder)
{
    struct stat st;
    if (lstat(folder, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return false;
    char *path = kp_path_join(folder, lock_name);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool free_lock = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        (void)close(fd);
    kp_free(path);
    return free_lock;
}

/* Scratch folders carry their owner's process id: those of dead owners are left-overs of a
 * session that was killed. */
static void sweep(const char *root)
{
    DIR *d = opendir(root);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's alone */
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const char *p = e->d_name + sizeof(prefix) - 1;
        if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) != 0 || !isdigit((unsigned char)*p))
            continue;
        char *end;
        long pid = strtol(p, &end, 10);
        if (*end != '-' || pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        char *path = kp_path_join(root, e->d_name);
        if (path && is_abandoned(path))
            kp_dir_remove(path);
        kp_free(path);
    }
    if (d)
        (void)closedir(d);
}

static kopt_status make_scratch(struct kp_lab *lab, kopt_error *err)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s%ld", prefix, (long)getpid());
    kopt_status st = kp_dir_temp(name, &lab->scratch, err);
    if (st != KOPT_OK)
        return st;
    char *lock = kp_path_join(lab->scratch, lock_name);
    lab->lock_fd = lock ? open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    kp_free(lock);
    if (lab->lock_fd < 0 || flock(lab->lock_fd, LOCK_EX) != 0)
        return kp_err(err, KOPT_EIO, "cannot lock %s: %s", lab->scratch,
                      strerrordesc_np(errno));
    char *root = kp_path_dir(lab->scratch);
    if (root)
        sweep(root);
    kp_free(root);
    struct kp_buf b = KP_BUF_INIT(8192);
    kp_buf_addf(&b, "POCL_CACHE_DIR=%s/pocl", lab->scratch);
    lab->cache_env = kp_buf_take(&b);
    return lab->cache_env ? KOPT_OK : kp_err_nomem(err);
}

static char *output_path(const struct kp_lab *lab, const char *role, size_t i)
{
    struct kp_buf b = KP_BUF_INIT(8192);
    kp_buf_addf(&b, "%s/%s-%zu.out", lab->scratch, role, i);
    return kp_buf_take(&b);
}

static kopt_status start_all(struct kp_lab *lab, kopt_error *err)
{
    for (size_t i = 0; i < lab->n_lanes; i++) {
        lab->lanes[i].device = lab->o.devices[i];
        lab->lanes[i].output = output_path(lab, "run", i);
        if (!lab->lanes[i].output)
            return kp_err_nomem(err);
        kopt_status st = kp_lab_lane_start(lab, &lab->lanes[i], err);
        if (st != KOPT_OK)
            return st;
    }
    for (size_t i = 0; i < lab->n_compilers; i++) {
        lab->compilers[i].output = output_path(lab, "compile", i);
        if (!lab->compilers[i].output)
            return kp_err_nomem(err);
    }
    kp_lab_compilers_start(lab);
    return KOPT_OK;
}

/* PoCL's images are no more than the source: what it makes of them is in a cache of its own. */
static void open_images(struct kp_lab *lab)
{
    enum { MOST_BYTES = 1 << 30 };
    struct kp_buf options = KP_BUF_INIT(1 << 20);
    if (!lab->o.image_folder || !lab->o.image_key || lab->info.is_cpu)
        return;
    for (size_t i = 0; i < lab->o.n_options; i++)
        kp_buf_addf(&options, "%s\n", lab->o.options[i]);
    const char *const key[] = {lab->o.image_key,     kp_backend_name(lab->o.backend),
                               lab->info.name,       lab->info.arch,
                               lab->info.driver,     lab->info.compiler,
                               kp_buf_text(&options)};
    if (options.failed == KOPT_OK)
        lab->images =
            kp_images_open(lab->o.image_folder, key, sizeof(key) / sizeof(*key), MOST_BYTES);
    kp_buf_deinit(&options);
}

kopt_status kp_lab_open(const struct kp_lab_options *o, struct kp_lab **out, kopt_error *err)
{
    *out = NULL;
    if (o->n_devices < 1 || o->n_devices > KP_LAB_LANES_MAX || o->compilers < 1 ||
        o->compilers > KP_LAB_COMPILERS_MAX)
        return kp_err(err, KOPT_EUSAGE, "1 to %d devices and 1 to %d compilers, not %zu and %u",
                      KP_LAB_LANES_MAX, KP_LAB_COMPILERS_MAX, o->n_devices, o->compilers);
    struct kp_lab *lab = kp_calloc(1, sizeof(*lab));
    if (!lab)
        return kp_err_nomem(err);
    lab->o = *o;
    lab->lock_fd = -1;
    lab->frame = KP_BUF_INIT(KP_FRAME_MAX);
    lab->text = KP_BUF_INIT(65536);
    lab->log = KP_BUF_INIT(1 << 20);
    lab->n_lanes = o->n_devices;
    lab->compilers = kp_calloc(o->compilers, sizeof(*lab->compilers));
    lab->n_compilers = lab->compilers ? o->compilers : 0;
    kopt_status st = lab->compilers ? KOPT_OK : kp_err_nomem(err);
    if (st == KOPT_OK)
        st = kp_proc_find("kopt-worker", &lab->worker, err);
    if (st == KOPT_OK)
        st = make_scratch(lab, err);
    if (st == KOPT_OK)
        st = start_all(lab, err);
    if (st == KOPT_OK)
        open_images(lab);
    lab->o.image_folder = lab->o.image_key = NULL;
    if (st != KOPT_OK) {
        kp_lab_close(lab);
        return st;
    }
    *out = lab;
    return KOPT_OK;
}

void kp_lab_close(struct kp_lab *lab)
{
    if (!lab)
        return;
    for (size_t i = 0; i < lab->n_compilers; i++) {
        kp_proc_kill(&lab->compilers[i].proc);
        kp_free(lab->compilers[i].output);
    }
    for (size_t i = 0; i < lab->n_lanes; i++) {
        kp_proc_kill(&lab->lanes[i].proc);
        kp_free(lab->lanes[i].output);
    }
    while (lab->n_jobs)
        kp_lab_job_remove(lab, lab->jobs[lab->n_jobs - 1]->id);
    for (size_t i = 0; i < lab->n_buffers; i++)
        kp_free((char *)(uintptr_t)lab->buffers[i].file);
    for (size_t i = 0; i < lab->n_checks; i++) {
        kp_free((char *)(uintptr_t)lab->checks[i].file);
        kp_free((char *)(uintptr_t)lab->checks[i].name);
    }
    kp_dir_remove(lab->scratch);
    if (lab->lock_fd >= 0)
        (void)close(lab->lock_fd);
    kp_images_free(lab->images);
    kp_free(lab->buffers);
    kp_free(lab->checks);
    kp_free(lab->compilers);
    kp_free(lab->scratch);
    kp_free(lab->worker);
    kp_free(lab->cache_env);
    kp_free(lab->times);
    kp_buf_deinit(&lab->frame);
    kp_buf_deinit(&lab->text);
    kp_buf_deinit(&lab->log);
    kp_free(lab);
}

const struct kp_device_info *kp_lab_device(const struct kp_lab *lab)
{
    return &lab->info;
}

size_t kp_lab_n_devices(const struct kp_lab *lab)
{
    return lab->n_lanes;
}

int64_t kp_lab_free_bytes(const struct kp_lab *lab)
{
    return lab->free_bytes;
}

const char *kp_lab_scratch(const struct kp_lab *lab)
{
    return lab->scratch;
}

void kp_lab_set_launch_timeout(struct kp_lab *lab, int64_t ns)
{
    lab->o.launch_timeout_ns = ns;
}

void kp_lab_get_use(const struct kp_lab *lab, struct kp_lab_use *out)
{
    *out = lab->use;
}

/* --- probing
 * ---------------------------------------------------------------------------------- */

static kopt_status probe_with(struct kp_lab *lab, enum kp_backend b,
                              void (*visit)(void *user, const struct kp_device_info *info),
                              void *user, kopt_error *err)
{
    const char *argv[] = {"kopt-worker", "probe", kp_backend_name(b), NULL};
    struct kp_proc_options o = {.path = lab->worker, .argv = argv};
    struct kp_proc p;
    int64_t deadline = kp_clock_ns() + (int64_t)30 * 1000000000;
    bool done = false;
    kopt_status st = kp_proc_start(&o, &p, err);
    while (st == KOPT_OK && !done) {
        struct kp_message m;
        int got = await_frame(lab, &p, deadline);
        if (got <= 0) {
            st = lost_process(&p, got, err);
            kp_err_wrap(err, "the %s driver", kp_backend_name(b));
            break;
        }
        st = kp_message_parse(&lab->frame, &m, err);
        if (st != KOPT_OK)
            break;
        const char *is = kp_message_what(&m, "is");
        struct kp_device_info info;
        if (strcmp(is, "device") == 0) {
            kp_message_get_info(&m, &info);
            visit(user, &info);
        } else if (strcmp(is, "error") == 0 && kp_message_i64(&m, "id", 0) < 0) {
            kopt_error e;
            kp_message_get_error(&m, &e);
            st = e.code ? e.code : KOPT_EFAILED;
            if (err)
                *err = e;
        }
        done = strcmp(is, "done") == 0;
        kp_message_deinit(&m);
    }
    kp_proc_kill(&p);
    return st;
}

kopt_status kp_lab_probe(enum kp_backend b,
                         void (*visit)(void *user, const struct kp_device_info *info),
                         void *user, kopt_error *err)
{
    struct kp_lab *lab = kp_calloc(1, sizeof(*lab));
    if (!lab)
        return kp_err_nomem(err);
    lab->frame = KP_BUF_INIT(KP_FRAME_MAX);
    lab->o.wake_fd = -1;
    kopt_status st = kp_proc_find("kopt-worker", &lab->worker, err);
    if (st == KOPT_OK)
        st = probe_with(lab, b, visit, user, err);
    kp_buf_deinit(&lab->frame);
    kp_free(lab->worker);
    kp_free(lab);
    return st;
}
