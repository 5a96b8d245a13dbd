/* SPDX-License-Identifier: MIT */
/* The back end over libkopt_fakedriver.so. Layer: device. */
#include "base/alloc.h"
#include "device/fake/fakedriver.h"
#include "device/ops.h"
#include "os/dl.h"
#include "os/proc.h"

#include <stdio.h>
#include <string.h>

static const char library[] = "libkopt_fakedriver.so";
enum { ENTRY_MAX = 256, ARGS_MAX = 1024 };

struct driver {
    struct kp_dl *dl;
    struct fk_driver *handle;
#define X(result, name, args) result(*name) args; /* NOLINT(bugprone-macro-parentheses) */
    FK_REQUIRED(X)
    FK_OPTIONAL(X)
#undef X
};

struct fake_runtime {
    struct kp_runtime base;
    struct driver drv;
};

struct fake_compiler {
    struct kp_compiler base;
    struct driver drv;
    char version[64];
};

struct fake_device {
    struct kp_device base;
    const struct driver *drv; /* the runtime's */
    struct fk_device *handle;
};

struct fake_buffer {
    struct kp_buffer base;
    struct fk_memory *handle;
};

struct fake_module {
    struct kp_module base;
    struct fk_module *handle;
};

/* --- the driver's library ------------------------------------------------------------------
 */

static const char *status_text(const struct driver *drv, int rc)
{
    return drv->fk_status_text ? drv->fk_status_text(rc) : "its driver gives no reason";
}

/* What the driver said, with what was being done. */
static kopt_status failed(const struct driver *drv, int rc, const char *doing, kopt_error *err)
{
    kopt_status st = KOPT_EDEVICE;
    if (rc == FK_NO_MEMORY)
        st = KOPT_ENOMEM;
    else if (rc == FK_FULL)
        st = KOPT_EFULL;
    else if (rc == FK_NO_KERNEL)
        st = KOPT_ENOTFOUND;
    else if (rc == FK_BAD_ARGUMENT)
        st = KOPT_EINPUT;
    return kp_err(err, st, "%s: fake driver status %d, %s", doing, rc, status_text(drv, rc));
}

static void close_driver(struct driver *drv)
{
    if (drv->handle)
        drv->fk_close(drv->handle);
    kp_dl_close(drv->dl);
    *drv = (struct driver){0};
}

static kopt_status find_symbols(struct driver *drv, kopt_error *err)
{
    int (*version)(void) = NULL;
    const char *missing = NULL;
    if (!KP_DL_GET(drv->dl, "fk_version", &version))
        return kp_err(err, KOPT_EENV, "%s has no symbol fk_version", kp_dl_name(drv->dl));
    if (version() < FK_VERSION)
        return kp_err(err, KOPT_EENV, "%s is version %d, %d is needed", kp_dl_name(drv->dl),
                      version(), FK_VERSION);
#define X(result, name, args)                   \
    if (!KP_DL_GET(drv->dl, #name, &drv->name)) \
        missing = #name;
    FK_REQUIRED(X)
#undef X
    if (missing)
        return kp_err(err, KOPT_EENV, "%s has no symbol %s", kp_dl_name(drv->dl), missing);
#define X(result, name, args) (void)KP_DL_GET(drv->dl, #name, &drv->name);
    FK_OPTIONAL(X)
#undef X
    return KOPT_OK;
}

static kopt_status open_driver(struct driver *drv, kopt_error *err)
{
    *drv = (struct driver){0};
    char *found = NULL;
    const char *names[2] = {library, library};
    size_t n = 1;
    if (kp_proc_find(library, &found, NULL) == KOPT_OK) {
        names[0] = found;
        n = 2;
    }
    kopt_status st = kp_dl_open(names, n, "KOPT_FAKE_LIBRARY", &drv->dl, err);
    kp_free(found);
    if (st == KOPT_EENV)
        kp_err_hint(err,
                    "set KOPT_LIBEXEC to the folder with %s, or KOPT_FAKE_LIBRARY to the file",
                    library);
    if (st == KOPT_OK)
        st = find_symbols(drv, err);
    if (st == KOPT_OK) {
        int rc = drv->fk_open(&drv->handle);
        if (rc != FK_OK) {
            drv->handle = NULL;
            st = failed(drv, rc, "open the fake driver", err);
        }
    }
    if (st != KOPT_OK)
        close_driver(drv);
    return st;
}

static kopt_status fake_open(const struct kp_log *log, struct kp_runtime **out, kopt_error *err)
{
    struct fake_runtime *rt = kp_calloc(1, sizeof(*rt));
    if (!rt)
        return kp_err_nomem(err);
    kopt_status st = open_driver(&rt->drv, err);
    if (st != KOPT_OK) {
        kp_free(rt);
        return st;
    }
    kp_log(log, KP_LOG_DEBUG, "fake driver: %s", kp_dl_name(rt->drv.dl));
    *out = &rt->base;
    return KOPT_OK;
}

static void fake_close(struct kp_runtime *base)
{
    struct fake_runtime *rt = (struct fake_runtime *)base;
    close_driver(&rt->drv);
    kp_free(rt);
}

static int fake_n_devices(const struct kp_runtime *base)
{
    const struct fake_runtime *rt = (const struct fake_runtime *)base;
    return rt->drv.fk_device_count(rt->drv.handle);
}

static int compiler_version(const struct driver *drv)
{
    return drv->fk_compiler_version ? drv->fk_compiler_version(drv->handle) : FK_VERSION;
}

static kopt_status fake_info(struct kp_runtime *base, int index, struct kp_device_info *out,
                             kopt_error *err)
{
    const struct driver *drv = &((struct fake_runtime *)base)->drv;
    struct fk_info info;
    int rc = drv->fk_device_info(drv->handle, index, &info);
    if (rc != FK_OK)
        return failed(drv, rc, "ask for the device's properties", err);
    out->backend = KP_BACKEND_FAKE;
    out->index = index;
    (void)snprintf(out->name, sizeof(out->name), "%s", info.name);
    (void)snprintf(out->arch, sizeof(out->arch), "fake_1");
    (void)snprintf(out->driver, sizeof(out->driver), "fake driver %d", FK_VERSION);
    (void)snprintf(out->compiler, sizeof(out->compiler), "fakecc %d", compiler_version(drv));
    (void)snprintf(out->id, sizeof(out->id), "fake-%d", index);
    out->is_cpu = info.is_cpu != 0;
    out->limits = (struct kp_limits){.max_threads = info.max_threads,
                                     .shared_bytes = info.shared_bytes,
                                     .registers = info.registers,
                                     .warp = info.warp,
                                     .compute_units = info.compute_units,
                                     .l2_bytes = info.l2_bytes,
                                     .global_bytes = info.global_bytes,
                                     .clock_khz = info.clock_khz};
    memcpy(out->limits.max_block, info.max_block, sizeof(info.max_block));
    return KOPT_OK;
}

/* --- compiler ------------------------------------------------------------------------------
 */

static kopt_status fake_compiler_open(int index, const char *arch, const struct kp_log *log,
                                      struct kp_compiler **out, kopt_error *err)
{
    (void)log;
    if (arch && strcmp(arch, "fake_1") != 0)
        return kp_err(err, KOPT_EENV, "fakecc compiles for fake_1, not for '%s'", arch);
    struct fake_compiler *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return kp_err_nomem(err);
    kopt_status st = open_driver(&c->drv, err);
    if (st == KOPT_OK && (index < 0 || index >= c->drv.fk_device_count(c->drv.handle))) {
        st = kp_err(err, KOPT_EDEVICE, "there is no fake device %d", index);
        close_driver(&c->drv);
    }
    if (st != KOPT_OK) {
        kp_free(c);
        return st;
    }
    (void)snprintf(c->version, sizeof(c->version), "fakecc %d", compiler_version(&c->drv));
    *out = &c->base;
    return KOPT_OK;
}

static void fake_compiler_close(struct kp_compiler *base)
{
    struct fake_compiler *c = (struct fake_compiler *)base;
    close_driver(&c->drv);
    kp_free(c);
}

static const char *fake_compiler_version(const struct kp_compiler *base)
{
    return ((const struct fake_compiler *)base)->version;
}

static int put_text(void *user, const char *bytes, size_t n)
{
    struct kp_buf *b = user;
    kp_buf_add(b, bytes, n);
    return b->failed == KOPT_OK;
}

/* The source's `line`, counted from 1. */
static struct kp_str source_line(struct kp_str source, int line)
{
    struct kp_str rest = source;
    struct kp_str text = {"", 0};
    for (int i = 0; i < line && rest.len; i++)
        text = kp_str_cut(rest, '\n', &rest);
    return text;
}

/* "path:line:column: error: text" */
static kopt_status first_error(const struct kp_compile_job *job, struct kp_str log,
                               kopt_error *err)
{
    static const char error_mark[] = ": error: ";
    struct kp_str rest;
    struct kp_str line = kp_str_cut(log, '\n', &rest);
    const char *mark = memmem(line.ptr, line.len, error_mark, sizeof(error_mark) - 1);
    if (!mark)
        return kp_err(err, KOPT_EINPUT, "%.*s", KP_STR_FMT(line));
    const char *text = mark + sizeof(error_mark) - 1;
    kopt_status st = kp_err(err, KOPT_EINPUT, "%.*s", (int)(line.ptr + line.len - text), text);
    const char *column = mark;
    while (column > line.ptr && column[-1] != ':')
        column--;
    const char *number = column - 1;
    while (number > line.ptr && number[-1] != ':')
        number--;
    int64_t at = 0;
    if (number <= line.ptr ||
        !kp_str_to_i64((struct kp_str){number, (size_t)(column - 1 - number)}, &at))
        return st;
    char file[256];
    (void)snprintf(file, sizeof(file), "%.*s", (int)(number - 1 - line.ptr), line.ptr);
    struct kp_str excerpt = {"", 0};
    if (job->path && strcmp(file, job->path) == 0)
        excerpt = source_line(job->source, (int)at);
    kp_err_at(err, file, (int)at, 1, excerpt.ptr, (int)excerpt.len);
    return st;
}

static kopt_status fake_compile(struct kp_compiler *base, const struct kp_compile_job *job,
                                struct kp_buf *image, struct kp_buf *log_text, kopt_error *err)
{
    struct fake_compiler *c = (struct fake_compiler *)base;
    struct kp_buf log = KP_BUF_INIT(1 << 20);
    size_t before = image->len;
    struct fk_source source = {.text = job->source.ptr,
                               .bytes = job->source.len,
                               .path = job->path ? job->path : "source",
                               .entry = job->entry,
                               .macros = job->macros,
                               .n_macros = job->n_macros};
    struct fk_sink image_sink = {put_text, image};
    struct fk_sink log_sink = {put_text, &log};
    int rc = c->drv.fk_compile(&source, &image_sink, &log_sink);
    kopt_status st = KOPT_OK;
    if (rc == FK_BAD_SOURCE)
        st = first_error(job, (struct kp_str){kp_buf_text(&log), log.len}, err);
    else if (image->failed != KOPT_OK)
        st = kp_buf_status(image, err);
    else if (rc != FK_OK)
        st = failed(&c->drv, rc, "compile", err);
    if (log_text)
        kp_buf_add(log_text, kp_buf_text(&log), log.len);
    kp_buf_deinit(&log);
    if (st != KOPT_OK)
        image->len = before;
    else if (job->compiled)
        job->compiled(job->user);
    return st;
}

/* --- device --------------------------------------------------------------------------------
 */

static kopt_status fake_device_open(struct kp_runtime *base, int index, struct kp_device **out,
                                    kopt_error *err)
{
    struct fake_runtime *rt = (struct fake_runtime *)base;
    struct fake_device *d = kp_calloc(1, sizeof(*d));
    if (!d)
        return kp_err_nomem(err);
    d->drv = &rt->drv;
    kopt_status st = fake_info(base, index, &d->base.info, err);
    if (st == KOPT_OK) {
        int rc = rt->drv.fk_device_open(rt->drv.handle, index, &d->handle);
        if (rc != FK_OK)
            st = failed(&rt->drv, rc, "open the device", err);
    }
    if (st != KOPT_OK) {
        kp_free(d);
        return st;
    }
    *out = &d->base;
    return KOPT_OK;
}

static void fake_device_close(struct kp_device *base)
{
    struct fake_device *d = (struct fake_device *)base;
    d->drv->fk_device_close(d->handle);
    kp_free(d);
}

static void fake_memory(struct kp_device *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct fake_device *d = (struct fake_device *)base;
    if (d->drv->fk_memory_info &&
        d->drv->fk_memory_info(d->handle, free_bytes, total_bytes) == FK_OK)
        return;
    *free_bytes = 0;
    *total_bytes = 0;
}

static kopt_status fake_buffer_new(struct kp_device *base, size_t bytes, struct kp_buffer **out,
                                   kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    struct fake_buffer *b = kp_calloc(1, sizeof(*b));
    if (!b)
        return kp_err_nomem(err);
    int rc = d->drv->fk_alloc(d->handle, bytes, &b->handle);
    if (rc != FK_OK) {
        kp_free(b);
        char doing[64];
        (void)snprintf(doing, sizeof(doing), "allocate %zu bytes", bytes);
        return failed(d->drv, rc, doing, err);
    }
    *out = &b->base;
    return KOPT_OK;
}

static void fake_buffer_free(struct kp_device *base, struct kp_buffer *buffer)
{
    struct fake_device *d = (struct fake_device *)base;
    struct fake_buffer *b = (struct fake_buffer *)buffer;
    d->drv->fk_free(d->handle, b->handle);
    kp_free(b);
}

static kopt_status fake_write(struct kp_device *base, struct kp_buffer *b, size_t at,
                              const void *src, size_t n, kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    int rc = d->drv->fk_write(d->handle, ((struct fake_buffer *)b)->handle, at, src, n);
    return rc == FK_OK ? KOPT_OK : failed(d->drv, rc, "write to the device", err);
}

static kopt_status fake_read(struct kp_device *base, struct kp_buffer *b, size_t at, void *dst,
                             size_t n, kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    int rc = d->drv->fk_read(d->handle, ((struct fake_buffer *)b)->handle, at, dst, n);
    return rc == FK_OK ? KOPT_OK : failed(d->drv, rc, "read from the device", err);
}

static kopt_status fake_fill(struct kp_device *base, struct kp_buffer *b, uint8_t byte,
                             kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    int rc = d->drv->fk_fill(d->handle, ((struct fake_buffer *)b)->handle, byte);
    return rc == FK_OK ? KOPT_OK : failed(d->drv, rc, "fill device memory", err);
}

static kopt_status fake_copy(struct kp_device *base, struct kp_buffer *dst,
                             struct kp_buffer *src, kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    int rc = d->drv->fk_copy(d->handle, ((struct fake_buffer *)dst)->handle,
                             ((struct fake_buffer *)src)->handle);
    return rc == FK_OK ? KOPT_OK : failed(d->drv, rc, "copy device memory", err);
}

/* --- modules -------------------------------------------------------------------------------
 */

/* NOLINTNEXTLINE(readability-function-size): the parameters of the table */
static kopt_status fake_module_load(struct kp_device *base, const void *image, size_t bytes,
                                    const char *entry, const struct kp_launch *launch,
                                    struct kp_module **out, kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    (void)launch;
    struct fake_module *m = kp_calloc(1, sizeof(*m));
    if (!m)
        return kp_err_nomem(err);
    struct fk_module_info info;
    int rc = d->drv->fk_load(d->handle, image, bytes, entry, &m->handle);
    if (rc != FK_OK) {
        kp_free(m);
        char doing[ENTRY_MAX];
        (void)snprintf(doing, sizeof(doing), "load kernel %s", entry);
        return failed(d->drv, rc, doing, err);
    }
    rc = d->drv->fk_module_info(m->handle, &info);
    if (rc != FK_OK) {
        d->drv->fk_unload(d->handle, m->handle);
        kp_free(m);
        return failed(d->drv, rc, "ask for the kernel's properties", err);
    }
    m->base.info = (struct kp_module_info){.registers = info.registers,
                                           .shared_bytes = info.shared_bytes,
                                           .local_bytes = info.local_bytes,
                                           .max_threads = info.max_threads};
    *out = &m->base;
    return KOPT_OK;
}

static void fake_module_unload(struct kp_device *base, struct kp_module *module)
{
    struct fake_device *d = (struct fake_device *)base;
    d->drv->fk_unload(d->handle, ((struct fake_module *)module)->handle);
    kp_free(module);
}

static struct fk_arg to_arg(const struct kp_launch_arg *a)
{
    struct fk_arg out = {.value = a->value, .bytes = a->bytes};
    switch (a->space) {
    case KP_SPACE_VALUE:
        out.kind = FK_ARG_VALUE;
        break;
    case KP_SPACE_GLOBAL:
        out.kind = FK_ARG_MEMORY;
        out.memory = ((struct fake_buffer *)a->buffer)->handle;
        break;
    case KP_SPACE_SHARED:
        out.kind = FK_ARG_SHARED;
        break;
    }
    return out;
}

static kopt_status run_once(struct fake_device *d, struct fake_module *m,
                            const struct kp_run *run, unsigned i, const struct fk_arg *args,
                            kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t r = 0; r < run->n_restore && st == KOPT_OK; r++) {
        if (run->restore[r].src)
            st = fake_copy(&d->base, run->restore[r].dst, run->restore[r].src, err);
        else
            st = fake_fill(&d->base, run->restore[r].dst, kp_run_poison(run), err);
    }
    if (st == KOPT_OK && run->flush_bytes && d->drv->fk_flush) {
        int rc = d->drv->fk_flush(d->handle, run->flush_bytes);
        if (rc != FK_OK)
            st = failed(d->drv, rc, "empty the caches", err);
    }
    if (st != KOPT_OK)
        return st;
    if (i == 0 && run->started)
        run->started(run->user);
    int rc =
        d->drv->fk_launch(d->handle, m->handle, args, run->launch->n_args, &run->times_ns[i]);
    return rc == FK_OK ? KOPT_OK : failed(d->drv, rc, "launch the kernel", err);
}

static kopt_status fake_run(struct kp_device *base, struct kp_module *module,
                            const struct kp_run *run, kopt_error *err)
{
    struct fake_device *d = (struct fake_device *)base;
    struct fake_module *m = (struct fake_module *)module;
    const struct kp_launch *l = run->launch;
    if (l->n_args > ARGS_MAX)
        return kp_err(err, KOPT_ERANGE, "%zu of %d kernel arguments", l->n_args, ARGS_MAX);
    struct fk_arg *args = kp_calloc(l->n_args + 1, sizeof(*args));
    if (!args)
        return kp_err_nomem(err);
    for (size_t i = 0; i < l->n_args; i++)
        args[i] = to_arg(&l->args[i]);
    kopt_status st = KOPT_OK;
    for (unsigned i = 0; i < run->n && st == KOPT_OK; i++)
        st = run_once(d, m, run, i, args, err);
    kp_free(args);
    return st;
}

static void fake_sensors(struct kp_device *base, struct kp_sensors *out)
{
    struct fake_device *d = (struct fake_device *)base;
    struct fk_sensors s;
    if (!d->drv->fk_read_sensors || d->drv->fk_read_sensors(d->handle, &s) != FK_OK)
        return;
    *out = (struct kp_sensors){.power_w = s.power_w,
                               .energy_j = s.energy_j,
                               .temp_c = s.temp_c,
                               .sm_mhz = s.core_mhz,
                               .mem_mhz = s.memory_mhz,
                               .throttle = (int64_t)(s.throttle & INT64_MAX)};
}

const struct kp_runtime_ops *kp_fake_ops(void)
{
    static const struct kp_runtime_ops ops = {
        .name = "fake",
        .open = fake_open,
        .close = fake_close,
        .n_devices = fake_n_devices,
        .info = fake_info,
        .compiler_open = fake_compiler_open,
        .compiler_close = fake_compiler_close,
        .compiler_version = fake_compiler_version,
        .compile = fake_compile,
        .device_open = fake_device_open,
        .device_close = fake_device_close,
        .memory = fake_memory,
        .buffer_new = fake_buffer_new,
        .buffer_free = fake_buffer_free,
        .write = fake_write,
        .read = fake_read,
        .fill = fake_fill,
        .module_load = fake_module_load,
        .module_unload = fake_module_unload,
        .run = fake_run,
        .sensors = fake_sensors,
    };
    return &ops;
}
