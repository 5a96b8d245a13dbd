/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "device/cuda/image.h"
#include "device/cuda/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LOAD_LOG_BYTES = 8192,
    STATIC_AND_DYNAMIC = 49152, /* what a kernel may have of both without asking for more */
    /* Filling less than this is over before the host has enqueued what comes behind it. */
    COVERING_BYTES = 32 << 20
};

/* --- loading --------------------------------------------------------------------------- */

static kopt_status load_failed(struct kp_cuda_device *d, kp_cu_result rc,
                               const struct kp_cuda_image *image, const char *log,
                               kopt_error *err)
{
    kopt_status st;
    if (rc == KP_CUDA_ERROR_OUT_OF_MEMORY) {
        st = kp_err(err, KOPT_ERANGE,
                    "device memory: not enough for kernel %s (local memory of a thread %" PRId64
                    " bytes)",
                    image->entry, image->resources.stack_bytes);
        return st;
    }
    st = kp_cuda_fail(d, rc, "loading the kernel", err);
    if (err && log[0]) {
        size_t n = strlen(err->message);
        (void)snprintf(err->message + n, sizeof(err->message) - n, ": %.600s", log);
        kp_err_wrap(err, "%s", image->entry);
    }
    if (rc == KP_CUDA_ERROR_INVALID_IMAGE || rc == KP_CUDA_ERROR_NO_BINARY_FOR_GPU ||
        rc == KP_CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        kp_err_hint(err,
                    "it was made for another device, or by an NVRTC (%s) newer than the driver "
                    "(CUDA %d.%d); KOPT_NVRTC_LIBRARY names another",
                    d->base.info.compiler, d->drv->version / 1000, d->drv->version % 1000 / 10);
    return st;
}

static kopt_status load_cubin(struct kp_cuda_device *d, const struct kp_cuda_image *image,
                              kp_cu_module *out, kopt_error *err)
{
    char log[LOAD_LOG_BYTES] = "";
    kp_cu_jit_option options[] = {KP_CU_JIT_ERROR_LOG_BUFFER,
                                  KP_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    /* the driver wants the number itself in the place of the pointer */
    void *values[] = {
        log, (void *)(uintptr_t)(sizeof(log) - 1)}; /* NOLINT(performance-no-int-to-ptr) */
    const void *cubin = image->cubin;
    void *copy = NULL;
    if ((uintptr_t)cubin % 16) {
        copy = kp_calloc(image->cubin_bytes, 1);
        if (!copy)
            return kp_err_nomem(err);
        memcpy(copy, cubin, image->cubin_bytes);
        cubin = copy;
    }
    *out = NULL;
    kp_cu_result rc = d->drv->cuModuleLoadDataEx(out, cubin, 2, options, values);
    kp_free(copy);
    if (rc == KP_CUDA_SUCCESS)
        return KOPT_OK;
    *out = NULL;
    log[sizeof(log) - 1] = 0;
    return load_failed(d, rc, image, log, err);
}

static int64_t function_attribute(const struct kp_cuda_device *d, kp_cu_function f, int which)
{
    int v = 0;
    kp_cu_result rc = d->drv->cuFuncGetAttribute(&v, (kp_cu_function_attribute)which, f);
    return rc == KP_CUDA_SUCCESS ? v : -1;
}

static void read_info(const struct kp_cuda_device *d, struct kp_cuda_module *m)
{
    struct kp_module_info *info = &m->base.info;
    info->registers = function_attribute(d, m->function, KP_CU_FUNC_NUM_REGS);
    info->shared_bytes = function_attribute(d, m->function, KP_CU_FUNC_SHARED_SIZE_BYTES);
    info->local_bytes = function_attribute(d, m->function, KP_CU_FUNC_LOCAL_SIZE_BYTES);
    info->max_threads = function_attribute(d, m->function, KP_CU_FUNC_MAX_THREADS_PER_BLOCK);
    int64_t most = function_attribute(d, m->function, KP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (most < 0 && info->shared_bytes >= 0 && info->shared_bytes < STATIC_AND_DYNAMIC)
        most = STATIC_AND_DYNAMIC - info->shared_bytes;
    m->dynamic_max = most > 0 ? (int)most : 0;
}

/* Are these the arguments that the kernel takes? */
static kopt_status check_args(const struct kp_cuda_module *m, const struct kp_launch *l,
                              kopt_error *err)
{
    if (m->params_known && l->n_args != m->n_params)
        return kp_err(err, KOPT_EINPUT, "kernel %s has %zu arguments, the launch gives %zu",
                      m->name, m->n_params, l->n_args);
    for (size_t i = 0; i < l->n_args; i++) {
        const struct kp_launch_arg *a = &l->args[i];
        size_t bytes = a->space == KP_SPACE_GLOBAL ? sizeof(kp_cu_pointer) : a->bytes;
        if (a->space == KP_SPACE_SHARED) {
            kopt_status st = kp_err(
                err, KOPT_EINPUT, "argument %zu of %s: CUDA takes no local memory as argument",
                i + 1, m->name);
            kp_err_hint(err,
                        "use extern __shared__ in the kernel and give the launch its size");
            return st;
        }
        if (m->params_known && bytes != m->param_bytes[i])
            return kp_err(err, KOPT_EINPUT,
                          "argument %zu of %s has %" PRIu32
                          " bytes in the kernel, %zu are given",
                          i + 1, m->name, m->param_bytes[i], bytes);
    }
    return KOPT_OK;
}

/* The sizes of the parameters, so that a launch can be refused instead of reading past what it
 * was given. */
static kopt_status read_params(const struct kp_cuda_device *d, struct kp_cuda_module *m,
                               kopt_error *err)
{
    size_t cap = 0;
    size_t offset;
    size_t bytes;
    if (!d->drv->cuFuncGetParamInfo)
        return KOPT_OK;
    while (m->n_params < KP_CUDA_PARAMS_MAX &&
           d->drv->cuFuncGetParamInfo(m->function, m->n_params, &offset, &bytes) ==
               KP_CUDA_SUCCESS) {
        if (!kp_grow((void **)&m->param_bytes, &cap, m->n_params, sizeof(*m->param_bytes),
                     KP_CUDA_PARAMS_MAX))
            return kp_err_nomem(err);
        m->param_bytes[m->n_params++] = (uint32_t)bytes;
    }
    m->params_known = true;
    return KOPT_OK;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the table */
kopt_status kp_cuda_module_load(struct kp_device *base, const void *image_bytes, size_t bytes,
                                const char *entry, const struct kp_launch *launch,
                                struct kp_module **out, kopt_error *err)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    struct kp_cuda_image image;
    *out = NULL;
    if (!kp_cuda_image_parse(image_bytes, bytes, &image))
        return kp_err(err, KOPT_EDEVICE, "kernel %s: %zu bytes that are no whole CUDA image",
                      entry, bytes);
    kopt_status st = kp_cuda_enter(d, err);
    if (st != KOPT_OK)
        return st;
    struct kp_cuda_module *m = kp_calloc(1, sizeof(*m));
    if (!m)
        return kp_err_nomem(err);
    (void)snprintf(m->name, sizeof(m->name), "%s", entry);
    st = load_cubin(d, &image, &m->module, err);
    if (st != KOPT_OK)
        goto done;
    const char *name = strcmp(entry, image.entry) == 0 ? image.lowered : entry;
    kp_cu_result rc = d->drv->cuModuleGetFunction(&m->function, m->module, name);
    if (rc == KP_CUDA_ERROR_NOT_FOUND)
        st = kp_err(err, KOPT_ENOTFOUND, "no kernel %s in this image", entry);
    else if (rc != KP_CUDA_SUCCESS)
        st = load_failed(d, rc, &image, "", err);
    else
        st = read_params(d, m, err);
    if (st == KOPT_OK && launch) /* a cubin fits every geometry */
        st = check_args(m, launch, err);
    if (st != KOPT_OK)
        goto done;
    read_info(d, m);
    *out = &m->base;
    m = NULL;
done:
    if (m)
        kp_cuda_module_unload(base, &m->base);
    return st;
}

void kp_cuda_module_unload(struct kp_device *base, struct kp_module *module)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    struct kp_cuda_module *m = (struct kp_cuda_module *)module;
    if (m->module) { /* fails on a lost device, where it goes with the context */
        (void)d->drv->cuCtxSetCurrent(d->context);
        (void)d->drv->cuModuleUnload(m->module);
    }
    kp_free(m->param_bytes);
    kp_free(m);
}

/* --- before a launch ------------------------------------------------------------------- */

static kopt_status check_grid(const struct kp_cuda_device *d, const struct kp_launch *l,
                              kopt_error *err)
{
    for (int i = 0; i < 3; i++) {
        if (d->max_grid[i] > 0 && l->grid[i] > (uint32_t)d->max_grid[i])
            return kp_err(err, KOPT_ERANGE, "grid size %c: %" PRIu32 " of %d groups", 'x' + i,
                          l->grid[i], d->max_grid[i]);
    }
    return KOPT_OK;
}

/* Pointers to the arguments' bytes, as the driver wants them; `out` has l->n_args places. */
static void bind_args(const struct kp_launch *l, void **out)
{
    for (size_t i = 0; i < l->n_args; i++) {
        const struct kp_launch_arg *a = &l->args[i];
        if (a->space == KP_SPACE_GLOBAL)
            out[i] = &((struct kp_cuda_buffer *)a->buffer)->at;
        else
            memcpy(&out[i], &a->value, sizeof(out[i])); /* the driver only reads it */
    }
}

/* More than 48 KiB must be asked for. */
static kopt_status allow_shared(struct kp_cuda_device *d, struct kp_cuda_module *m,
                                uint32_t bytes, kopt_error *err)
{
    if (bytes <= (uint32_t)m->dynamic_max)
        return KOPT_OK;
    kp_cu_result rc = d->drv->cuFuncSetAttribute(
        m->function, (kp_cu_function_attribute)KP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        (int)bytes);
    if (rc != KP_CUDA_SUCCESS) {
        char text[256];
        kp_cuda_error_text(d->drv, rc, text, sizeof(text));
        return kp_err(err, KOPT_ERANGE, "dynamic shared memory of %" PRIu32 " bytes: %s", bytes,
                      text);
    }
    m->dynamic_max = (int)bytes;
    return KOPT_OK;
}

/* As many bytes as the cache has stand for all of it, for which twice as many are written,
 * since lines need not be replaced in the order of their use. */
static size_t flush_bytes(const struct kp_cuda_device *d, size_t wanted)
{
    int64_t cache = d->base.info.limits.l2_bytes;
    return cache > 0 && wanted == (size_t)cache ? 2 * wanted : wanted;
}

/* The memory that is written between launches to empty the cache, kept for the next time. Lines
 * that are written take their places in the cache as those that are read do. */
static kopt_status prepare_flush(struct kp_cuda_device *d, size_t bytes, kopt_error *err)
{
    if (d->flush_bytes >= bytes)
        return KOPT_OK;
    if (d->flush)
        (void)d->drv->cuMemFree(d->flush);
    d->flush = 0;
    d->flush_bytes = 0;
    kopt_status st = kp_cuda_alloc(d, bytes, &d->flush, err);
    if (st == KOPT_OK)
        d->flush_bytes = bytes;
    else
        kp_err_wrap(err, "emptying the cache");
    return st;
}

static kopt_status prepare_events(struct kp_cuda_device *d, unsigned n_launches,
                                  kopt_error *err)
{
    for (unsigned i = 0; i < 2 * n_launches; i++) {
        if (d->events[i])
            continue;
        kp_cu_result rc = d->drv->cuEventCreate(&d->events[i], KP_CU_EVENT_DEFAULT);
        if (rc != KP_CUDA_SUCCESS) {
            d->events[i] = NULL;
            return kp_cuda_fail(d, rc, "creating an event", err);
        }
    }
    return KOPT_OK;
}

/* --- launching ------------------------------------------------------------------------- */

struct flight {
    struct kp_cuda_device *d;
    struct kp_cuda_module *m;
    const struct kp_run *run;
    void **params;
    size_t flush_bytes;
    bool launch_refused; /* else the failing call was another */
};

static kp_cu_result restore(const struct flight *f)
{
    const struct kp_cuda_driver *drv = f->d->drv;
    for (size_t i = 0; i < f->run->n_restore; i++) {
        const struct kp_restore *r = &f->run->restore[i];
        kp_cu_pointer to = ((const struct kp_cuda_buffer *)r->dst)->at;
        kp_cu_result rc =
            r->src
                ? drv->cuMemcpyDtoDAsync(to, ((const struct kp_cuda_buffer *)r->src)->at,
                                         r->dst->bytes, f->d->stream)
                : drv->cuMemsetD8Async(to, kp_run_poison(f->run), r->dst->bytes, f->d->stream);
        if (rc != KP_CUDA_SUCCESS)
            return rc;
    }
    return KP_CUDA_SUCCESS;
}

/* Enqueue one timed launch between events 2i and 2i + 1.
 *
 * An event takes its time when the device reaches it. If the device stood idle by then, the
 * time that the host takes to enqueue the kernel would be counted as the kernel's; so there is
 * always something to do in front: emptying the cache, or a delay. */
static kp_cu_result enqueue(struct flight *f, size_t i)
{
    const struct kp_cuda_driver *drv = f->d->drv;
    const struct kp_launch *l = f->run->launch;
    kp_cu_stream s = f->d->stream;
    kp_cu_result rc = restore(f);
    if (rc == KP_CUDA_SUCCESS && f->flush_bytes)
        rc = drv->cuMemsetD8Async(f->d->flush, (unsigned char)i, f->flush_bytes, s);
    if (rc == KP_CUDA_SUCCESS && f->flush_bytes < COVERING_BYTES)
        rc = kp_cuda_delay(f->d);
    if (rc == KP_CUDA_SUCCESS)
        rc = drv->cuEventRecord(f->d->events[2 * i], s);
    if (rc != KP_CUDA_SUCCESS)
        return rc;
    rc = drv->cuLaunchKernel(f->m->function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                             l->block[1], l->block[2], l->shared_bytes, s, f->params, NULL);
    f->launch_refused = rc != KP_CUDA_SUCCESS;
    return rc == KP_CUDA_SUCCESS ? drv->cuEventRecord(f->d->events[2 * i + 1], s) : rc;
}

static kopt_status flight_failed(const struct flight *f, kp_cu_result rc, kopt_error *err)
{
    const struct kp_launch *l = f->run->launch;
    const struct kp_module_info *info = &f->m->base.info;
    char doing[192];
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (f->launch_refused && rc == KP_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        return kp_err(err, KOPT_ERANGE,
                      "launch resources: %" PRId64 " registers of %" PRId64 " and %" PRId64
                      " bytes of local memory for each of %" PRIu64 " threads",
                      info->registers, f->d->base.info.limits.registers, info->local_bytes,
                      threads);
    if (f->launch_refused && rc == KP_CUDA_ERROR_OUT_OF_MEMORY)
        return kp_err(err, KOPT_ERANGE,
                      "device memory: not enough for local memory of %" PRId64
                      " bytes for each thread",
                      info->local_bytes);
    (void)snprintf(doing, sizeof(doing), "launch of %s", f->m->name);
    return kp_cuda_fail(f->d, rc, doing, err);
}

/* The driver gives milliseconds as a float, "with a resolution of around 0.5 microseconds"
 * (CUDA Driver API, cuEventElapsedTime): a kernel of a few microseconds needs many launches. */
static kopt_status read_times(const struct flight *f, unsigned n, double *out, kopt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        float ms = 0;
        kp_cu_result rc =
            f->d->drv->cuEventElapsedTime(&ms, f->d->events[2 * i], f->d->events[2 * i + 1]);
        if (rc != KP_CUDA_SUCCESS)
            return kp_cuda_fail(f->d, rc, "reading the time of a launch", err);
        out[i] = (double)ms * 1e6;
    }
    return KOPT_OK;
}

/* `n` launches and one wait, or two when somebody wants to know that the first has begun: then
 * nothing may stand in its way, and what comes behind it is enqueued afterwards. */
static kopt_status fly(struct flight *f, unsigned n, bool first, double *times, kopt_error *err)
{
    char doing[192];
    kp_cu_result rc = KP_CUDA_SUCCESS;
    for (unsigned i = 0; i < n && rc == KP_CUDA_SUCCESS; i++) {
        rc = enqueue(f, i);
        if (i == 0 && first && f->run->started && rc == KP_CUDA_SUCCESS) {
            rc = f->d->drv->cuEventSynchronize(f->d->events[0]);
            if (rc == KP_CUDA_SUCCESS)
                f->run->started(f->run->user);
        }
    }
    (void)snprintf(doing, sizeof(doing), "launch of %s", f->m->name);
    if (rc != KP_CUDA_SUCCESS) {
        /* what is on its way uses the caller's buffers */
        (void)kp_cuda_sync(f->d, doing, NULL);
        return flight_failed(f, rc, err);
    }
    kopt_status st = kp_cuda_sync(f->d, doing, err);
    return st == KOPT_OK ? read_times(f, n, times, err) : st;
}

kopt_status kp_cuda_run(struct kp_device *base, struct kp_module *module,
                        const struct kp_run *run, kopt_error *err)
{
    struct flight f = {
        .d = (struct kp_cuda_device *)base, .m = (struct kp_cuda_module *)module, .run = run};
    f.flush_bytes = flush_bytes(f.d, run->flush_bytes);
    unsigned batch = run->n < KP_CUDA_BATCH ? run->n : KP_CUDA_BATCH;
    kopt_status st = kp_cuda_enter(f.d, err);
    if (st == KOPT_OK)
        st = check_grid(f.d, run->launch, err);
    if (st != KOPT_OK)
        return st;
    f.params = kp_calloc(run->launch->n_args + 1, sizeof(*f.params));
    if (!f.params)
        return kp_err_nomem(err);
    st = check_args(f.m, run->launch, err);
    if (st == KOPT_OK) {
        bind_args(run->launch, f.params);
        st = allow_shared(f.d, f.m, run->launch->shared_bytes, err);
    }
    if (st == KOPT_OK)
        st = prepare_flush(f.d, f.flush_bytes, err);
    if (st == KOPT_OK)
        st = prepare_events(f.d, batch, err);
    for (unsigned done = 0; done < run->n && st == KOPT_OK;) {
        unsigned n = run->n - done < batch ? run->n - done : batch;
        st = fly(&f, n, done == 0, run->times_ns + done, err);
        done += n;
    }
    kp_free(f.params);
    return st;
}
