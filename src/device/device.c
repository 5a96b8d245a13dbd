/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "device/ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { COMPARE_CHUNK = 1 << 20 }; /* bytes read back at a time */

static const char *const names[KP_BACKEND_COUNT] = {"cuda", "opencl", "fake"};

const char *kp_backend_name(enum kp_backend b)
{
    return (unsigned)b < KP_BACKEND_COUNT ? names[b] : "unknown";
}

bool kp_backend_from_name(const char *name, enum kp_backend *out)
{
    for (int b = 0; b < KP_BACKEND_COUNT; b++) {
        if (strcmp(name, names[b]) == 0) {
            *out = (enum kp_backend)b;
            return true;
        }
    }
    return false;
}

static const struct kp_runtime_ops *ops_of(enum kp_backend b)
{
    switch (b) {
    case KP_BACKEND_CUDA:
        return kp_cuda_ops();
    case KP_BACKEND_OPENCL:
        return kp_opencl_ops();
    case KP_BACKEND_FAKE:
        return kp_fake_ops();
    case KP_BACKEND_COUNT:
        break;
    }
    kp_check_failed("a back end", __FILE__, __LINE__);
}

/* --- runtime and compiler ------------------------------------------------------------------
 */

kopt_status kp_runtime_open(enum kp_backend b, const struct kp_log *log,
                            struct kp_runtime **out, kopt_error *err)
{
    const struct kp_runtime_ops *ops = ops_of(b);
    *out = NULL;
    kopt_status st = ops->open(log, out, err);
    if (st == KOPT_OK) {
        (*out)->ops = ops;
        (*out)->log = log;
    }
    return st;
}

void kp_runtime_close(struct kp_runtime *rt)
{
    if (rt)
        rt->ops->close(rt);
}

int kp_runtime_n_devices(const struct kp_runtime *rt)
{
    return rt->ops->n_devices(rt);
}

static kopt_status check_index(const struct kp_runtime *rt, int index, kopt_error *err)
{
    int n = rt->ops->n_devices(rt);
    if (index >= 0 && index < n)
        return KOPT_OK;
    kopt_status st =
        kp_err(err, KOPT_ENOTFOUND, "there is no %s device %d", rt->ops->name, index);
    if (n > 0)
        kp_err_hint(err, "the devices are 0 to %d", n - 1);
    else
        kp_err_hint(err, "there are none");
    return st;
}

kopt_status kp_runtime_info(struct kp_runtime *rt, int index, struct kp_device_info *out,
                            kopt_error *err)
{
    memset(out, 0, sizeof(*out));
    kopt_status st = check_index(rt, index, err);
    return st == KOPT_OK ? rt->ops->info(rt, index, out, err) : st;
}

kopt_status kp_compiler_open(enum kp_backend b, int index, const char *arch,
                             const struct kp_log *log, struct kp_compiler **out,
                             kopt_error *err)
{
    const struct kp_runtime_ops *ops = ops_of(b);
    *out = NULL;
    kopt_status st = ops->compiler_open(index, arch, log, out, err);
    if (st == KOPT_OK)
        (*out)->ops = ops;
    return st;
}

void kp_compiler_close(struct kp_compiler *c)
{
    if (c)
        c->ops->compiler_close(c);
}

const char *kp_compiler_version(const struct kp_compiler *c)
{
    return c->ops->compiler_version(c);
}

kopt_status kp_compile(struct kp_compiler *c, const struct kp_compile_job *job,
                       struct kp_buf *image, struct kp_buf *log_text, kopt_error *err)
{
    KP_CHECK(job->entry && (job->source.ptr || job->source.len == 0));
    if (job->source.len && memchr(job->source.ptr, 0, job->source.len))
        return kp_err(err, KOPT_EINPUT, "%s: the source contains a zero byte",
                      job->path ? job->path : "source");
    return c->ops->compile(c, job, image, log_text, err);
}

/* --- device and memory ---------------------------------------------------------------------
 */

kopt_status kp_device_open(struct kp_runtime *rt, int index, struct kp_device **out,
                           kopt_error *err)
{
    *out = NULL;
    kopt_status st = check_index(rt, index, err);
    if (st != KOPT_OK)
        return st;
    st = rt->ops->device_open(rt, index, out, err);
    if (st == KOPT_OK)
        (*out)->ops = rt->ops;
    return st;
}

void kp_device_close(struct kp_device *d)
{
    if (d)
        d->ops->device_close(d);
}

const struct kp_device_info *kp_device_info(const struct kp_device *d)
{
    return &d->info;
}

void kp_device_memory(struct kp_device *d, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = 0;
    *total_bytes = 0;
    d->ops->memory(d, free_bytes, total_bytes);
}

kopt_status kp_buffer_new(struct kp_device *d, size_t bytes, struct kp_buffer **out,
                          kopt_error *err)
{
    *out = NULL;
    if (bytes == 0)
        return kp_err(err, KOPT_ERANGE, "a device buffer of 0 bytes");
    int64_t all = d->info.limits.global_bytes;
    if (all > 0 && bytes > (uint64_t)all)
        return kp_err(err, KOPT_EFULL, "device memory: a buffer of %zu bytes, %s has %" PRId64,
                      bytes, d->info.name, all);
    kopt_status st = d->ops->buffer_new(d, bytes, out, err);
    if (st == KOPT_OK)
        (*out)->bytes = bytes;
    return st;
}

void kp_buffer_free(struct kp_device *d, struct kp_buffer *b)
{
    if (b)
        d->ops->buffer_free(d, b);
}

size_t kp_buffer_bytes(const struct kp_buffer *b)
{
    return b->bytes;
}

static kopt_status check_range(const struct kp_buffer *b, size_t at, size_t n, kopt_error *err)
{
    if (at <= b->bytes && n <= b->bytes - at)
        return KOPT_OK;
    return kp_err(err, KOPT_ERANGE, "bytes %zu to %zu of a device buffer of %zu bytes", at,
                  n > SIZE_MAX - at ? SIZE_MAX : at + n, b->bytes);
}

kopt_status kp_buffer_write(struct kp_device *d, struct kp_buffer *b, size_t at,
                            const void *src, size_t n, kopt_error *err)
{
    kopt_status st = check_range(b, at, n, err);
    return st != KOPT_OK || n == 0 ? st : d->ops->write(d, b, at, src, n, err);
}

kopt_status kp_buffer_read(struct kp_device *d, struct kp_buffer *b, size_t at, void *dst,
                           size_t n, kopt_error *err)
{
    kopt_status st = check_range(b, at, n, err);
    return st != KOPT_OK || n == 0 ? st : d->ops->read(d, b, at, dst, n, err);
}

kopt_status kp_buffer_fill(struct kp_device *d, struct kp_buffer *b, uint8_t byte,
                           kopt_error *err)
{
    return d->ops->fill(d, b, byte, err);
}

static kopt_status check_same_size(const struct kp_buffer *dst, const struct kp_buffer *src,
                                   kopt_error *err)
{
    if (dst->bytes == src->bytes)
        return KOPT_OK;
    return kp_err(err, KOPT_ERANGE, "device buffers of %zu and %zu bytes", dst->bytes,
                  src->bytes);
}

/* --- modules and launches ------------------------------------------------------------------
 */

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kp_module_load(struct kp_device *d, const void *image, size_t bytes,
                           const char *entry, const struct kp_launch *launch,
                           struct kp_module **out, kopt_error *err)
{
    *out = NULL;
    KP_CHECK(entry && image);
    return d->ops->module_load(d, image, bytes, entry, launch, out, err);
}

void kp_module_unload(struct kp_device *d, struct kp_module *m)
{
    if (m)
        d->ops->module_unload(d, m);
}

const struct kp_module_info *kp_module_get_info(const struct kp_module *m)
{
    return &m->info;
}

/* Work-items of a group, saturated: three 32-bit factors may pass 64 bits. */
static uint64_t group_items(const uint32_t block[3])
{
    uint64_t n = (uint64_t)block[0] * block[1];
    return n > UINT64_MAX / (block[2] ? block[2] : 1) ? UINT64_MAX : n * block[2];
}

static kopt_status check_geometry(const struct kp_limits *lim, const struct kp_launch *l,
                                  kopt_error *err)
{
    static const char axis[3] = {'x', 'y', 'z'};
    for (int i = 0; i < 3; i++) {
        if (l->block[i] == 0)
            return kp_err(err, KOPT_ERANGE, "block size %c is 0", axis[i]);
        if (l->grid[i] == 0)
            return kp_err(err, KOPT_ERANGE, "grid size %c is 0", axis[i]);
        if (l->grid[i] > INT32_MAX)
            return kp_err(err, KOPT_ERANGE, "grid size %c: %" PRIu32 " of %d groups", axis[i],
                          l->grid[i], INT32_MAX);
        if (lim->max_block[i] > 0 && l->block[i] > lim->max_block[i])
            return kp_err(err, KOPT_ERANGE, "block size %c: %" PRIu32 " of %" PRId64, axis[i],
                          l->block[i], lim->max_block[i]);
    }
    return KOPT_OK;
}

static kopt_status check_group(const struct kp_limits *lim, const struct kp_module_info *mi,
                               const struct kp_launch *l, kopt_error *err)
{
    uint64_t items = group_items(l->block);
    bool kernel = mi && mi->max_threads > 0 &&
                  (lim->max_threads <= 0 || mi->max_threads < lim->max_threads);
    int64_t most = kernel ? mi->max_threads : lim->max_threads;
    if (most <= 0 || items <= (uint64_t)most)
        return KOPT_OK;
    return kp_err(err, KOPT_ERANGE,
                  "work-items of a group: %" PRIu64 " of %" PRId64 "%s (block %" PRIu32
                  "x%" PRIu32 "x%" PRIu32 ")",
                  items, most, kernel ? " that this kernel allows" : "", l->block[0],
                  l->block[1], l->block[2]);
}

static kopt_status check_shared(const struct kp_limits *lim, const struct kp_module_info *mi,
                                const struct kp_launch *l, kopt_error *err)
{
    uint64_t fixed = mi && mi->shared_bytes > 0 ? (uint64_t)mi->shared_bytes : 0;
    size_t dynamic = l->shared_bytes;
    for (size_t i = 0; i < l->n_args; i++) {
        if (l->args[i].space != KP_SPACE_SHARED)
            continue;
        if (l->args[i].bytes == 0)
            return kp_err(err, KOPT_ERANGE, "argument %zu: local memory of 0 bytes", i + 1);
        if (!kp_add_size(dynamic, l->args[i].bytes, &dynamic))
            dynamic = SIZE_MAX / 2;
    }
    uint64_t all = fixed + dynamic < fixed ? UINT64_MAX : fixed + dynamic;
    if (lim->shared_bytes <= 0 || all <= (uint64_t)lim->shared_bytes)
        return KOPT_OK;
    return kp_err(err, KOPT_ERANGE,
                  "shared memory %" PRIu64 " of %" PRId64 " bytes (%" PRIu64
                  " static, %zu dynamic)",
                  all, lim->shared_bytes, fixed, dynamic);
}

kopt_status kp_launch_fits(const struct kp_limits *limits, const struct kp_module_info *info,
                           const struct kp_launch *l, kopt_error *err)
{
    kopt_status st = check_geometry(limits, l, err);
    if (st == KOPT_OK)
        st = check_group(limits, info, l, err);
    if (st == KOPT_OK)
        st = check_shared(limits, info, l, err);
    return st;
}

kopt_status kp_launch_check(struct kp_device *d, const struct kp_module *m,
                            const struct kp_launch *l, kopt_error *err)
{
    return kp_launch_fits(&d->info.limits, m ? &m->info : NULL, l, err);
}

static kopt_status check_run(const struct kp_run *run, kopt_error *err)
{
    const struct kp_launch *l = run->launch;
    for (size_t i = 0; i < l->n_args; i++) {
        const struct kp_launch_arg *a = &l->args[i];
        if (a->space == KP_SPACE_GLOBAL)
            KP_CHECK(a->buffer);
        if (a->space == KP_SPACE_VALUE)
            KP_CHECK(a->value && a->bytes);
    }
    for (size_t i = 0; i < run->n_restore; i++) {
        const struct kp_restore *r = &run->restore[i];
        KP_CHECK(r->dst);
        kopt_status st = r->src ? check_same_size(r->dst, r->src, err) : KOPT_OK;
        if (st != KOPT_OK)
            return st;
    }
    return KOPT_OK;
}

kopt_status kp_module_run(struct kp_device *d, struct kp_module *m, const struct kp_run *run,
                          kopt_error *err)
{
    KP_CHECK(run->launch && (run->times_ns || run->n == 0));
    for (unsigned i = 0; i < run->n; i++)
        run->times_ns[i] = (double)NAN;
    kopt_status st = kp_launch_check(d, m, run->launch, err);
    if (st == KOPT_OK)
        st = check_run(run, err);
    if (st != KOPT_OK || run->n == 0)
        return st;
    return d->ops->run(d, m, run, err);
}

/* --- comparing -----------------------------------------------------------------------------
 */

struct tolerance {
    enum kp_number type;
    double rtol;
    double atol;
};

static kopt_status compare_read_back(struct kp_device *d, struct kp_buffer *got,
                                     struct kp_buffer *want, const struct tolerance *t,
                                     struct kp_compare *out, kopt_error *err)
{
    size_t size = kp_number_bytes(t->type);
    size_t chunk = got->bytes < COMPARE_CHUNK ? got->bytes : COMPARE_CHUNK;
    unsigned char *room = kp_calloc(2, chunk);
    if (!room)
        return kp_err_nomem(err);
    kopt_status st = KOPT_OK;
    for (size_t at = 0; at < got->bytes && st == KOPT_OK; at += chunk) {
        size_t n = got->bytes - at < chunk ? got->bytes - at : chunk;
        st = d->ops->read(d, got, at, room, n, err);
        if (st == KOPT_OK)
            st = d->ops->read(d, want, at, room + chunk, n, err);
        if (st != KOPT_OK)
            break;
        struct kp_compare part;
        kp_compare_host(room, room + chunk, n / size, t->type, t->rtol, t->atol, &part);
        kp_compare_join(out, &part, at / size);
    }
    kp_free(room);
    return st;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kp_buffer_compare(struct kp_device *d, struct kp_buffer *got,
                              struct kp_buffer *want, enum kp_number type, double rtol,
                              double atol, struct kp_compare *out, kopt_error *err)
{
    memset(out, 0, sizeof(*out));
    kopt_status st = check_same_size(got, want, err);
    if (st != KOPT_OK)
        return st;
    if (got->bytes % kp_number_bytes(type))
        return kp_err(err, KOPT_ERANGE,
                      "%zu bytes are no whole number of elements of %zu bytes", got->bytes,
                      kp_number_bytes(type));
    kopt_status here = KOPT_ENOTFOUND;
    if (d->ops->compare)
        here = d->ops->compare(d, got, want, type, rtol, atol, out, err);
    if (here != KOPT_ENOTFOUND)
        return here;
    const struct tolerance t = {type, rtol, atol};
    return compare_read_back(d, got, want, &t, out, err);
}

/* --- sensors -------------------------------------------------------------------------------
 */

void kp_device_sensors(struct kp_device *d, struct kp_sensors *out)
{
    const double unknown = (double)NAN;
    *out = (struct kp_sensors){.power_w = unknown,
                               .energy_j = unknown,
                               .temp_c = unknown,
                               .sm_mhz = unknown,
                               .mem_mhz = unknown,
                               .throttle = -1};
    if (d->ops->sensors)
        d->ops->sensors(d, out);
}
