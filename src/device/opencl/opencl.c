/* SPDX-License-Identifier: MIT */
/* The runtime and device side of the OpenCL back end. Layer: device. */
#include "base/alloc.h"
#include "device/opencl/cl.h"
#include "os/clock.h"

#include <string.h>

enum {
    FILL_MAX = 128,  /* bytes of a fill pattern */
    POLL_NS = 100000 /* between two looks at a launch that has not begun */
};

struct cl_runtime {
    struct kp_runtime base;
    struct kp_cl_lib lib;
};

struct cl_buffer {
    struct kp_buffer base;
    struct kp_cl_memory memory;
};

struct cl_device {
    struct kp_device base;
    struct kp_cl_session s;
    struct kp_cl_flush flush;
    struct kp_cl_compare compare;
    const struct kp_runtime *rt;
    uint64_t used_bytes;
};

struct cl_module {
    struct kp_module base;
    cl_program program;
    struct kp_cl_kernel kernel;
};

/* --- runtime -------------------------------------------------------------------------------
 */

static kopt_status cl_open(const struct kp_log *log, struct kp_runtime **out, kopt_error *err)
{
    struct cl_runtime *rt = kp_calloc(1, sizeof(*rt));
    if (!rt)
        return kp_err_nomem(err);
    kopt_status st = kp_cl_lib_open(&rt->lib, log, err);
    if (st != KOPT_OK) {
        kp_free(rt);
        return st;
    }
    *out = &rt->base;
    return KOPT_OK;
}

static void cl_close(struct kp_runtime *base)
{
    struct cl_runtime *rt = (struct cl_runtime *)base;
    kp_cl_lib_close(&rt->lib);
    kp_free(rt);
}

static int cl_n_devices(const struct kp_runtime *base)
{
    return (int)((const struct cl_runtime *)base)->lib.n_found;
}

static kopt_status cl_info(struct kp_runtime *base, int index, struct kp_device_info *out,
                           kopt_error *err)
{
    return kp_cl_info(&((struct cl_runtime *)base)->lib, index, out, err);
}

/* --- device and memory ---------------------------------------------------------------------
 */

static kopt_status cl_device_open(struct kp_runtime *base, int index, struct kp_device **out,
                                  kopt_error *err)
{
    struct cl_runtime *rt = (struct cl_runtime *)base;
    struct cl_device *d = kp_calloc(1, sizeof(*d));
    if (!d)
        return kp_err_nomem(err);
    kopt_status st = kp_cl_info(&rt->lib, index, &d->base.info, err);
    if (st == KOPT_OK)
        st = kp_cl_session_open(&d->s, &rt->lib, index, err);
    if (st != KOPT_OK) {
        kp_free(d);
        return st;
    }
    d->rt = base;
    *out = &d->base;
    return KOPT_OK;
}

static void cl_device_close(struct kp_device *base)
{
    struct cl_device *d = (struct cl_device *)base;
    kp_cl_flush_deinit(&d->s, &d->flush);
    kp_cl_compare_deinit(&d->s, &d->compare);
    kp_cl_session_close(&d->s);
    kp_free(d);
}

static void cl_memory(struct kp_device *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct cl_device *d = (struct cl_device *)base;
    *total_bytes = (uint64_t)d->base.info.limits.global_bytes;
    *free_bytes = 0; /* OpenCL does not say; a CPU's memory is the system's */
    if (d->s.host)
        *free_bytes = kp_cl_host_available();
}

static kopt_status cl_buffer_new(struct kp_device *base, size_t bytes, struct kp_buffer **out,
                                 kopt_error *err)
{
    struct cl_device *d = (struct cl_device *)base;
    uint64_t all = (uint64_t)base->info.limits.global_bytes;
    if (all && bytes > all - (d->used_bytes < all ? d->used_bytes : all))
        return kp_err(err, KOPT_EFULL,
                      "device memory: a buffer of %zu bytes beside %llu in use, of %llu", bytes,
                      (unsigned long long)d->used_bytes, (unsigned long long)all);
    struct cl_buffer *b = kp_calloc(1, sizeof(*b));
    if (!b)
        return kp_err_nomem(err);
    kopt_status st = kp_cl_memory_new(&d->s, bytes, KP_CL_GUARDED, &b->memory, err);
    if (st != KOPT_OK) {
        kp_free(b);
        return st;
    }
    b->base.bytes = bytes;
    d->used_bytes += bytes;
    *out = &b->base;
    return KOPT_OK;
}

static void cl_buffer_free(struct kp_device *base, struct kp_buffer *buffer)
{
    struct cl_device *d = (struct cl_device *)base;
    struct cl_buffer *b = (struct cl_buffer *)buffer;
    d->used_bytes -= b->base.bytes;
    kp_cl_memory_free(&d->s, &b->memory);
    kp_free(b);
}

static cl_mem mem_of(struct kp_buffer *b)
{
    return ((struct cl_buffer *)b)->memory.mem;
}

static kopt_status cl_write(struct kp_device *base, struct kp_buffer *b, size_t at,
                            const void *src, size_t n, kopt_error *err)
{
    struct kp_cl_session *s = &((struct cl_device *)base)->s;
    cl_int rc =
        s->cl->clEnqueueWriteBuffer(s->queue, mem_of(b), CL_TRUE, at, n, src, 0, NULL, NULL);
    return rc == CL_SUCCESS ? KOPT_OK : kp_cl_fail(err, rc, "write %zu bytes to the device", n);
}

static kopt_status cl_read(struct kp_device *base, struct kp_buffer *b, size_t at, void *dst,
                           size_t n, kopt_error *err)
{
    struct kp_cl_session *s = &((struct cl_device *)base)->s;
    cl_int rc =
        s->cl->clEnqueueReadBuffer(s->queue, mem_of(b), CL_TRUE, at, n, dst, 0, NULL, NULL);
    return rc == CL_SUCCESS ? KOPT_OK
                            : kp_cl_fail(err, rc, "read %zu bytes from the device", n);
}

/* With the widest pattern that divides the size: drivers go over it pattern by pattern. */
static cl_int enqueue_fill(struct kp_cl_session *s, struct kp_buffer *b, uint8_t byte)
{
    unsigned char pattern[FILL_MAX];
    size_t width = FILL_MAX;
    memset(pattern, byte, sizeof(pattern));
    while (b->bytes % width)
        width /= 2;
    return s->cl->clEnqueueFillBuffer(s->queue, mem_of(b), pattern, width, 0, b->bytes, 0, NULL,
                                      NULL);
}

static cl_int enqueue_copy(struct kp_cl_session *s, struct kp_buffer *dst,
                           struct kp_buffer *src)
{
    return s->cl->clEnqueueCopyBuffer(s->queue, mem_of(src), mem_of(dst), 0, 0, dst->bytes, 0,
                                      NULL, NULL);
}

static kopt_status cl_fill(struct kp_device *base, struct kp_buffer *b, uint8_t byte,
                           kopt_error *err)
{
    struct kp_cl_session *s = &((struct cl_device *)base)->s;
    cl_int rc = enqueue_fill(s, b, byte);
    if (rc == CL_SUCCESS)
        rc = s->cl->clFinish(s->queue);
    return rc == CL_SUCCESS ? KOPT_OK : kp_cl_fail(err, rc, "fill %zu bytes", b->bytes);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the table */
static kopt_status cl_compare(struct kp_device *base, struct kp_buffer *got,
                              struct kp_buffer *want, enum kp_number type, double rtol,
                              double atol, struct kp_compare *out, kopt_error *err)
{
    struct cl_device *d = (struct cl_device *)base;
    const struct kp_cl_pair pair = {.got = &((struct cl_buffer *)got)->memory,
                                    .want = &((struct cl_buffer *)want)->memory,
                                    .n = got->bytes / kp_number_bytes(type),
                                    .type = type,
                                    .rtol = rtol,
                                    .atol = atol};
    if (d->s.host)
        return kp_cl_compare_host(&d->s, &pair, out, err);
    bool first = !d->compare.tried[type];
    kopt_error why = {0};
    kopt_status st =
        kp_cl_compare_kernel(&d->s, &base->info.limits, &pair, &d->compare, out, &why);
    if (st == KOPT_ENOTFOUND && first)
        kp_log(d->rt->log, KP_LOG_INFO, "%s", why.message);
    if (st != KOPT_OK && err)
        *err = why;
    return st;
}

/* --- modules -------------------------------------------------------------------------------
 */

static void cl_module_unload(struct kp_device *base, struct kp_module *module)
{
    struct kp_cl_session *s = &((struct cl_device *)base)->s;
    struct cl_module *m = (struct cl_module *)module;
    kp_cl_kernel_free(s, &m->kernel);
    if (m->program)
        (void)s->cl->clReleaseProgram(m->program);
    kp_free(m);
}

static kopt_status load_program(struct kp_cl_session *s, const void *image, size_t bytes,
                                cl_program *out, kopt_error *err)
{
    struct kp_cl_text text;
    struct kp_str binary;
    kopt_status st = kp_cl_image_read(image, bytes, &text, &binary, err);
    if (st != KOPT_OK)
        return st;
    if (binary.len)
        st = kp_cl_build_binary(s, binary, kp_buf_text(&text.options), out, err);
    else
        st = kp_cl_build(s, &text, NULL, out, NULL, err);
    kp_cl_text_deinit(&text);
    return st;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the table */
static kopt_status cl_module_load(struct kp_device *base, const void *image, size_t bytes,
                                  const char *entry, const struct kp_launch *launch,
                                  struct kp_module **out, kopt_error *err)
{
    struct cl_device *d = (struct cl_device *)base;
    struct cl_module *m = kp_calloc(1, sizeof(*m));
    if (!m)
        return kp_err_nomem(err);
    kopt_status st = load_program(&d->s, image, bytes, &m->program, err);
    if (st == KOPT_OK)
        st = kp_cl_kernel_new(&d->s, m->program, entry, &m->kernel, err);
    if (st == KOPT_OK && launch)
        st = kp_cl_kernel_check(&d->s, &m->kernel, &base->info.limits, launch, err);
    if (st != KOPT_OK) {
        cl_module_unload(base, &m->base);
        return st;
    }
    m->base.info = m->kernel.info;
    *out = &m->base;
    return KOPT_OK;
}

/* --- runs ----------------------------------------------------------------------------------
 */

/* As many bytes as the cache has stand for all of it; a GPU's needs twice as many, since its
 * lines need not be replaced in the order of their use. */
static size_t sweep_bytes(const struct cl_device *d, const struct kp_run *run)
{
    int64_t cache = d->base.info.limits.l2_bytes;
    bool whole = cache > 0 && run->flush_bytes == (size_t)cache;
    return whole && !d->s.host ? 2 * run->flush_bytes : run->flush_bytes;
}

/* Line by line costs as much as there is data; sweeping, as much as there is cache. */
static bool flushes_lines(const struct cl_device *d, const struct kp_run *run)
{
    const struct kp_launch *l = run->launch;
    size_t all = 0;
    if (!d->s.host || !kp_cl_flush_lines(NULL, 0))
        return false;
    for (size_t i = 0; i < l->n_args; i++) {
        if (l->args[i].space == KP_SPACE_GLOBAL)
            all += l->args[i].buffer->bytes;
    }
    return all < run->flush_bytes;
}

static kopt_status flush(struct cl_device *d, const struct kp_run *run, kopt_error *err)
{
    const struct kp_launch *l = run->launch;
    cl_int rc = d->s.cl->clFinish(d->s.queue);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "wait for the device");
    if (!flushes_lines(d, run))
        return kp_cl_flush(&d->s, &d->flush, sweep_bytes(d, run), err);
    for (size_t i = 0; i < l->n_args; i++) {
        if (l->args[i].space == KP_SPACE_GLOBAL) {
            struct cl_buffer *b = (struct cl_buffer *)l->args[i].buffer;
            (void)kp_cl_flush_lines(b->memory.ptr, b->base.bytes);
        }
    }
    return KOPT_OK;
}

static kopt_status restore(struct cl_device *d, const struct kp_run *run, kopt_error *err)
{
    for (size_t i = 0; i < run->n_restore; i++) {
        struct kp_buffer *dst = run->restore[i].dst;
        struct kp_buffer *src = run->restore[i].src;
        cl_int rc = CL_SUCCESS;
        if (!src)
            rc = enqueue_fill(&d->s, dst, kp_run_poison(run));
        else if (src != dst)
            rc = enqueue_copy(&d->s, dst, src);
        if (rc != CL_SUCCESS)
            return kp_cl_fail(err, rc, "restore %zu bytes before a launch", dst->bytes);
    }
    return run->flush_bytes ? flush(d, run, err) : KOPT_OK;
}

/* Until the launch has begun, is over or has failed. */
static void await_start(struct kp_cl_session *s, cl_event event)
{
    cl_int status = CL_QUEUED;
    while (s->cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                 &status, NULL) == CL_SUCCESS &&
           status > CL_RUNNING)
        kp_clock_sleep_ns(POLL_NS);
}

static kopt_status read_time(struct kp_cl_session *s, cl_event event, double *out,
                             kopt_error *err)
{
    cl_ulong begin = 0;
    cl_ulong end = 0;
    cl_int rc = s->cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(begin),
                                               &begin, NULL);
    if (rc == CL_SUCCESS)
        rc = s->cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end,
                                            NULL);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "read a launch's time");
    *out = end >= begin ? (double)(end - begin) : -(double)(begin - end);
    return KOPT_OK;
}

static kopt_status run_once(struct cl_device *d, struct cl_module *m, const struct kp_run *run,
                            unsigned i, kopt_error *err)
{
    cl_event event = NULL;
    kopt_status st = restore(d, run, err);
    if (st == KOPT_OK)
        st = kp_cl_enqueue(&d->s, &m->kernel, run->launch, NULL, &event, err);
    if (st != KOPT_OK)
        return st;
    (void)d->s.cl->clFlush(d->s.queue);
    if (i == 0 && run->started) {
        await_start(&d->s, event);
        run->started(run->user);
    }
    st = kp_cl_wait(&d->s, event, "run the kernel", err);
    if (st == KOPT_OK)
        st = read_time(&d->s, event, &run->times_ns[i], err);
    (void)d->s.cl->clReleaseEvent(event);
    return st;
}

static kopt_status cl_run(struct kp_device *base, struct kp_module *module,
                          const struct kp_run *run, kopt_error *err)
{
    struct cl_device *d = (struct cl_device *)base;
    struct cl_module *m = (struct cl_module *)module;
    const struct kp_launch *l = run->launch;
    kopt_status st = kp_cl_kernel_check(&d->s, &m->kernel, &base->info.limits, l, err);
    if (st != KOPT_OK)
        return st;
    cl_mem *mems = kp_calloc(l->n_args + 1, sizeof(cl_mem));
    if (!mems)
        return kp_err_nomem(err);
    for (size_t i = 0; i < l->n_args; i++) {
        if (l->args[i].space == KP_SPACE_GLOBAL)
            mems[i] = mem_of(l->args[i].buffer);
    }
    st = kp_cl_set_args(&d->s, &m->kernel, l, mems, err);
    if (st == KOPT_OK && run->flush_bytes && !flushes_lines(d, run))
        st =
            kp_cl_flush_prepare(&d->s, &base->info.limits, sweep_bytes(d, run), &d->flush, err);
    for (unsigned i = 0; i < run->n && st == KOPT_OK; i++)
        st = run_once(d, m, run, i, err);
    kp_free(mems);
    return st;
}

const struct kp_runtime_ops *kp_opencl_ops(void)
{
    static const struct kp_runtime_ops ops = {
        .name = "opencl",
        .open = cl_open,
        .close = cl_close,
        .n_devices = cl_n_devices,
        .info = cl_info,
        .compiler_open = kp_cl_compiler_open,
        .compiler_close = kp_cl_compiler_close,
        .compiler_version = kp_cl_compiler_version,
        .compile = kp_cl_compile,
        .device_open = cl_device_open,
        .device_close = cl_device_close,
        .memory = cl_memory,
        .buffer_new = cl_buffer_new,
        .buffer_free = cl_buffer_free,
        .write = cl_write,
        .read = cl_read,
        .fill = cl_fill,
        .module_load = cl_module_load,
        .module_unload = cl_module_unload,
        .run = cl_run,
        .compare = cl_compare,
    };
    return &ops;
}
