/* SPDX-License-Identifier: MIT */
/* The compiler side. Layer: device.
 *
 * An ordinary driver compiles in clBuildProgram(), and its binary is the image. PoCL only
 * parses there; a thread of its own compiles the kernel, for one group size, when a launch of
 * it comes up, and keeps the result in its cache on disk. So the image for PoCL is the source,
 * and compiling ends with a launch of as few groups as will do, on buffers of zeros: whoever
 * launches the same source with the same group size later, in any process, finds it compiled.
 */
#include "base/alloc.h"
#include "device/opencl/cl.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    BINARY_MAX = 64 << 20,
    LOG_MAX = 4 << 20,
    POLL_MS = 20,
    /* PoCL compiles a launch apart that has at least so many work-items in a dimension
     * (grid_width_specialization_limit, USHRT_MAX in every version that has it). */
    WIDE_GRID = 65535
};

/* Where PoCL's thread, about to start the kernel, waits until the caller has been told. */
struct handshake {
    struct handshake *next;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t owner;
    const struct kp_compile_job *job;
    bool called; /* PoCL has called back */
    bool told;   /* the caller knows, the kernel may run */
};

struct cl_compiler {
    struct kp_compiler base;
    struct kp_cl_lib lib;
    struct kp_cl_session s;
    struct kp_device_info info;
    struct kp_cl_builtins builtins;
    /* Those that PoCL has not called back for (the launch failed) and might yet. */
    struct handshake *orphans;
};

static void handshake_free(struct handshake *h)
{
    if (!h)
        return;
    (void)pthread_cond_destroy(&h->changed);
    (void)pthread_mutex_destroy(&h->lock);
    kp_free(h);
}

static struct handshake *handshake_new(const struct kp_compile_job *job)
{
    struct handshake *h = kp_calloc(1, sizeof(*h));
    pthread_condattr_t attr;
    if (!h)
        return NULL;
    h->owner = pthread_self();
    h->job = job;
    if (pthread_condattr_init(&attr) != 0) {
        kp_free(h);
        return NULL;
    }
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&h->lock, NULL); /* neither can fail on Linux */
    (void)pthread_cond_init(&h->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    return h;
}

static void tell(struct handshake *h)
{
    if (!h->told && h->job->compiled)
        h->job->compiled(h->job->user);
    h->told = true;
}

/* On the thread that executes the launch, between compiling and starting the kernel; or on the
 * owner's, where a device executes in the caller's thread. */
static void CL_CALLBACK is_running(cl_event event, cl_int status, void *user)
{
    struct handshake *h = user;
    (void)event;
    (void)status;
    (void)pthread_mutex_lock(&h->lock);
    h->called = true;
    if (pthread_equal(pthread_self(), h->owner))
        tell(h);
    (void)pthread_cond_broadcast(&h->changed);
    while (!h->told)
        (void)pthread_cond_wait(&h->changed, &h->lock);
    (void)pthread_mutex_unlock(&h->lock);
}

static cl_int status_of(struct kp_cl_session *s, cl_event event)
{
    cl_int status = CL_QUEUED;
    (void)s->cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                &status, NULL);
    return status;
}

/* Until the launch runs, has run or has failed. The status is looked at, too: newer PoCLs call
 * back from another thread, and none does so for a launch that failed. */
static void await_running(struct kp_cl_session *s, struct handshake *h, cl_event event)
{
    (void)pthread_mutex_lock(&h->lock);
    bool running = h->called;
    while (!running) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        (void)pthread_cond_timedwait(&h->changed, &h->lock, &until);
        running = h->called;
        if (!running) {
            (void)pthread_mutex_unlock(&h->lock);
            running = status_of(s, event) <= CL_RUNNING;
            (void)pthread_mutex_lock(&h->lock);
        }
    }
    if (h->called || status_of(s, event) >= 0)
        tell(h);
    h->told = true;
    (void)pthread_cond_broadcast(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
}

/* The least grid that PoCL compiles as it would the whole one. */
static void least_grid(const struct kp_launch *l, uint32_t grid[3])
{
    for (int i = 0; i < 3; i++)
        grid[i] = 1;
    for (int i = 0; i < 3; i++) {
        if ((uint64_t)l->grid[i] * l->block[i] >= WIDE_GRID) {
            grid[i] = (WIDE_GRID + l->block[i] - 1) / l->block[i];
            return;
        }
    }
}

/* One launch, which runs only after `h` allows it. */
static kopt_status launch_held(struct cl_compiler *c, const struct kp_cl_kernel *k,
                               const struct kp_launch *l, struct handshake *h, kopt_error *err)
{
    struct kp_cl_session *s = &c->s;
    cl_event event = NULL;
    cl_int rc;
    bool asked = false;
    cl_event gate = s->cl->clCreateUserEvent(s->context, &rc);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "make an event");
    kopt_status st = kp_cl_enqueue(s, k, l, gate, &event, err);
    if (st == KOPT_OK) {
        rc = s->cl->clSetEventCallback(event, CL_RUNNING, is_running, h);
        asked = rc == CL_SUCCESS;
        if (!asked)
            st = kp_cl_fail(err, rc, "watch a launch");
    }
    /* Opened whatever happened: PoCL cannot release a queue that waits for it. */
    rc = s->cl->clSetUserEventStatus(gate, st == KOPT_OK ? CL_COMPLETE : -1);
    if (rc != CL_SUCCESS && st == KOPT_OK)
        st = kp_cl_fail(err, rc, "start a launch");
    (void)s->cl->clReleaseEvent(gate);
    if (st == KOPT_OK) {
        (void)s->cl->clFlush(s->queue);
        await_running(s, h, event);
        st = kp_cl_wait(s, event, "run the kernel once", err);
    }
    if (event)
        (void)s->cl->clReleaseEvent(event);
    (void)pthread_mutex_lock(&h->lock);
    bool orphan = asked && !h->called;
    (void)pthread_mutex_unlock(&h->lock);
    if (orphan) {
        h->next = c->orphans;
        c->orphans = h;
    } else {
        handshake_free(h);
    }
    return st;
}

static kopt_status dry_buffers(struct kp_cl_session *s, const struct kp_launch *l,
                               struct kp_cl_memory *memory, cl_mem *mems, kopt_error *err)
{
    for (size_t i = 0; i < l->n_args; i++) {
        if (l->args[i].space != KP_SPACE_GLOBAL)
            continue;
        if (l->args[i].bytes == 0)
            return kp_err(err, KOPT_ERANGE, "argument %zu: a buffer of 0 bytes", i + 1);
        kopt_status st = kp_cl_memory_new(s, l->args[i].bytes, KP_CL_SLACK, &memory[i], err);
        if (st != KOPT_OK)
            return st;
        mems[i] = memory[i].mem;
    }
    return KOPT_OK;
}

/* Make PoCL compile the kernel for this launch. */
static kopt_status compile_group(struct cl_compiler *c, const struct kp_compile_job *job,
                                 const struct kp_cl_kernel *k, kopt_error *err)
{
    const struct kp_launch *real = job->launch;
    struct kp_launch l = *real;
    struct handshake *h = NULL;
    struct kp_cl_memory *memory = kp_calloc(real->n_args + 1, sizeof(*memory));
    cl_mem *mems = kp_calloc(real->n_args + 1, sizeof(cl_mem));
    kopt_status st = KOPT_OK;
    if (!memory || !mems) {
        st = kp_err_nomem(err);
        goto done;
    }
    st = dry_buffers(&c->s, real, memory, mems, err);
    if (st == KOPT_OK)
        st = kp_cl_set_args(&c->s, k, real, mems, err);
    if (st == KOPT_OK) {
        h = handshake_new(job);
        st = h ? KOPT_OK : kp_err_nomem(err);
    }
    if (st == KOPT_OK) {
        least_grid(real, l.grid);
        st = launch_held(c, k, &l, h, err);
    }
    for (size_t i = 0; i < real->n_args; i++)
        kp_cl_memory_free(&c->s, &memory[i]);
done:
    kp_free(mems);
    kp_free(memory);
    return st;
}

/* What a caller of kp_compile() can be told about a kernel that is not there. */
static kopt_status no_kernel(const struct kp_compile_job *job, kopt_error *err)
{
    kp_err_wrap(err, "%s", job->path ? job->path : "source");
    if (err)
        err->code = KOPT_EINPUT;
    return KOPT_EINPUT;
}

/* What one call of kp_cl_compile() holds. */
struct work {
    const struct kp_compile_job *job;
    struct kp_cl_text text;
    struct kp_buf binary; /* PoCL's: what the front end made; empty = not to be had */
    cl_program program;
};

/* The front end alone, then what it made as a program. w->program stays NULL where that is not
 * to be had; whatever is wrong with the source is found by building it then. */
static kopt_status build_by_ir(struct cl_compiler *c, struct work *w, struct kp_buf *log,
                               kopt_error *err)
{
    struct kp_cl_text brief;
    kopt_status st = KOPT_EINPUT;
    if (kp_cl_builtins_before(&c->builtins, &w->text, &brief)) {
        st = kp_cl_build_ir(&c->s, &brief, w->job, &w->binary, log, err);
        kp_cl_text_deinit(&brief);
    }
    if (st != KOPT_OK) {
        kp_buf_clear(log);
        st = kp_cl_build_ir(&c->s, &w->text, w->job, &w->binary, log, err);
    }
    if (st != KOPT_OK || w->binary.len == 0)
        return st;
    const struct kp_str bitcode = {kp_buf_text(&w->binary), w->binary.len};
    if (kp_cl_build_binary(&c->s, bitcode, kp_buf_text(&w->text.binary_options), &w->program,
                           NULL) != KOPT_OK)
        kp_buf_clear(&w->binary);
    return KOPT_OK;
}

/* From a program to an image. */
static kopt_status finish(struct cl_compiler *c, struct work *w, struct kp_buf *image,
                          kopt_error *err)
{
    struct kp_cl_kernel k;
    const struct kp_compile_job *job = w->job;
    kopt_status st = kp_cl_kernel_new(&c->s, w->program, job->entry, &k, err);
    if (st == KOPT_ENOTFOUND)
        return no_kernel(job, err);
    if (st != KOPT_OK)
        return st;
    if (job->launch)
        st = kp_cl_kernel_check(&c->s, &k, &c->info.limits, job->launch, err);
    if (st == KOPT_OK && !c->s.pocl)
        st = kp_cl_binary(&c->s, w->program, &w->binary, err);
    if (st == KOPT_OK) {
        const struct kp_str binary = {kp_buf_text(&w->binary), w->binary.len};
        kp_cl_image_write(image, &w->text, binary);
        st = kp_buf_status(image, err);
    }
    if (st == KOPT_OK && c->s.pocl && job->launch)
        st = compile_group(c, job, &k, err);
    else if (st == KOPT_OK && job->compiled)
        job->compiled(job->user);
    kp_cl_kernel_free(&c->s, &k);
    return st;
}

kopt_status kp_cl_compile(struct kp_compiler *base, const struct kp_compile_job *job,
                          struct kp_buf *image, struct kp_buf *log_text, kopt_error *err)
{
    struct cl_compiler *c = (struct cl_compiler *)base;
    struct work w = {.job = job, .binary = KP_BUF_INIT(BINARY_MAX)};
    struct kp_buf log = KP_BUF_INIT(LOG_MAX);
    size_t before = image->len;
    kopt_status st = kp_cl_text_make(job, c->s.pocl, &w.text, err);
    if (st != KOPT_OK)
        return st;
    if (c->s.pocl)
        st = build_by_ir(c, &w, &log, err);
    if (st == KOPT_OK && !w.program)
        st = kp_cl_build(&c->s, &w.text, job, &w.program, &log, err);
    if (st == KOPT_OK)
        st = kp_cl_log_redefined((struct kp_str){kp_buf_text(&log), log.len}, job, err);
    if (st == KOPT_OK)
        st = finish(c, &w, image, err);
    if (w.program)
        (void)c->s.cl->clReleaseProgram(w.program);
    if (log_text)
        kp_buf_add(log_text, log.ptr, log.len);
    kp_buf_deinit(&log);
    kp_buf_deinit(&w.binary);
    kp_cl_text_deinit(&w.text);
    if (st != KOPT_OK)
        image->len = before;
    return st;
}

/* --- opening -------------------------------------------------------------------------------
 */

kopt_status kp_cl_compiler_open(int index, const char *arch, const struct kp_log *log,
                                struct kp_compiler **out, kopt_error *err)
{
    struct cl_compiler *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return kp_err_nomem(err);
    kopt_status st = kp_cl_lib_open(&c->lib, log, err);
    if (st == KOPT_OK)
        st = kp_cl_info(&c->lib, index, &c->info, err);
    if (st == KOPT_OK && arch && strcmp(arch, c->info.arch) != 0)
        st = kp_err(err, KOPT_EENV,
                    "OpenCL device %d is '%s' and compiles for nothing else: '%s'", index,
                    c->info.arch, arch);
    if (st == KOPT_OK)
        st = kp_cl_session_open(&c->s, &c->lib, index, err);
    if (st != KOPT_OK) {
        kp_cl_lib_close(&c->lib);
        kp_free(c);
        return st;
    }
    kp_cl_builtins_open(&c->s, &c->builtins);
    *out = &c->base;
    return KOPT_OK;
}

void kp_cl_compiler_close(struct kp_compiler *base)
{
    struct cl_compiler *c = (struct cl_compiler *)base;
    kp_cl_builtins_close(&c->builtins);
    kp_cl_session_close(&c->s);
    kp_cl_lib_close(&c->lib);
    while (c->orphans) {
        struct handshake *h = c->orphans;
        c->orphans = h->next;
        handshake_free(h);
    }
    kp_free(c);
}

const char *kp_cl_compiler_version(const struct kp_compiler *base)
{
    return ((const struct cl_compiler *)base)->info.compiler;
}
