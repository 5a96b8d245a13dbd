/* SPDX-License-Identifier: MIT */
/* The fake driver's devices and memory. Part of the shared object: it links nothing of kopt and
 * uses the C library's heap, as a vendor's library would. */
#include "device/fake/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Variants for the tests of the loader: an old version, a missing symbol. */
#ifndef FK_SAY_VERSION
#    define FK_SAY_VERSION FK_VERSION
#endif

int fk_version(void)
{
    return FK_SAY_VERSION;
}

static const char *env_text(const char *name)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody here sets any */
    return text ? text : "";
}

static int64_t env_number(const char *name, int64_t otherwise)
{
    const char *text = env_text(name);
    return text[0] ? strtoll(text, NULL, 10) : otherwise;
}

int fk_open(struct fk_driver **out)
{
    *out = NULL;
    struct fk_driver *d = calloc(1, sizeof(*d));
    if (!d)
        return FK_NO_MEMORY;
    int64_t n = env_number("KOPT_FAKE_DEVICES", 1);
    d->n_devices = n < 0 ? 0 : n > FK_MAX_DEVICES ? FK_MAX_DEVICES : (int)n;
    d->is_cpu = env_number("KOPT_FAKE_CPU", 0) != 0;
    d->global_bytes = env_number("KOPT_FAKE_MEMORY", (int64_t)1 << 30);
    if (d->global_bytes < 0)
        d->global_bytes = 0;
    (void)snprintf(d->fail, sizeof(d->fail), "%s", env_text("KOPT_FAKE_FAIL"));
    (void)snprintf(d->state, sizeof(d->state), "%s", env_text("KOPT_FAKE_STATE"));
    (void)snprintf(d->trace, sizeof(d->trace), "%s", env_text("KOPT_FAKE_TRACE"));
    if (fk_must_fail(d, "open")) {
        free(d);
        return FK_FAILED;
    }
    *out = d;
    return FK_OK;
}

void fk_close(struct fk_driver *d)
{
    free(d);
}

bool fk_must_fail(const struct fk_driver *d, const char *function)
{
    size_t n = strlen(function);
    for (const char *p = strstr(d->fail, function); p; p = strstr(p + 1, function)) {
        bool begins = p == d->fail || p[-1] == ',';
        if (begins && (p[n] == 0 || p[n] == ','))
            return true;
    }
    return false;
}

bool fk_is_lost(struct fk_driver *d, int index)
{
    if (!d->lost[index] && d->state[0] && access(d->state, F_OK) == 0)
        d->lost[index] = true;
    return d->lost[index];
}

void fk_lose(struct fk_driver *d, int index)
{
    d->lost[index] = true;
    if (!d->state[0])
        return;
    FILE *f = fopen(d->state, "we");
    if (f)
        (void)fclose(f);
}

void fk_sleep_ns(double ns)
{
    if (!(ns > 0))
        return;
    struct timespec left = {.tv_sec = (time_t)(ns / 1e9)};
    left.tv_nsec = (long)(ns - (double)left.tv_sec * 1e9);
    while (nanosleep(&left, &left) != 0)
        continue;
}

int fk_device_count(const struct fk_driver *d)
{
    return d->n_devices;
}

int fk_device_info(const struct fk_driver *d, int index, struct fk_info *out)
{
    if (fk_must_fail(d, "info"))
        return FK_FAILED;
    *out = (struct fk_info){.is_cpu = d->is_cpu,
                            .max_threads = 1024,
                            .max_block = {1024, 1024, 64},
                            .shared_bytes = 48 << 10,
                            .registers = 64 << 10,
                            .warp = 32,
                            .compute_units = 16,
                            .l2_bytes = 4 << 20,
                            .global_bytes = d->global_bytes,
                            .clock_khz = 1000000};
    (void)snprintf(out->name, sizeof(out->name), "Fake device %d", index);
    return FK_OK;
}

int fk_device_open(struct fk_driver *d, int index, struct fk_device **out)
{
    *out = NULL;
    if (fk_must_fail(d, "device_open"))
        return FK_FAILED;
    if (fk_is_lost(d, index))
        return FK_LOST;
    struct fk_device *dev = calloc(1, sizeof(*dev));
    if (!dev)
        return FK_NO_MEMORY;
    dev->driver = d;
    dev->index = index;
    *out = dev;
    return FK_OK;
}

void fk_device_close(struct fk_device *d)
{
    while (d->first) {
        struct fk_memory *m = d->first;
        d->first = m->next;
        free(m);
    }
    free(d);
}

int fk_memory_info(struct fk_device *d, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *total_bytes = (uint64_t)d->driver->global_bytes;
    *free_bytes = *total_bytes - d->used_bytes;
    return fk_is_lost(d->driver, d->index) ? FK_LOST : FK_OK;
}

static int usable(struct fk_device *d, const char *function)
{
    if (fk_is_lost(d->driver, d->index))
        return FK_LOST;
    return fk_must_fail(d->driver, function) ? FK_FAILED : FK_OK;
}

int fk_alloc(struct fk_device *d, size_t bytes, struct fk_memory **out)
{
    *out = NULL;
    int rc = usable(d, "alloc");
    if (rc != FK_OK)
        return rc;
    if (bytes > (uint64_t)d->driver->global_bytes - d->used_bytes)
        return FK_FULL;
    struct fk_memory *m = malloc(sizeof(*m) + bytes);
    if (!m)
        return FK_NO_MEMORY;
    memset(m->data, 0xA5, bytes); /* never zeros, so that nobody relies on them */
    m->bytes = bytes;
    m->next = NULL;
    m->prev = d->last;
    if (d->last)
        d->last->next = m;
    else
        d->first = m;
    d->last = m;
    d->used_bytes += bytes;
    *out = m;
    return FK_OK;
}

void fk_free(struct fk_device *d, struct fk_memory *m)
{
    if (m->prev)
        m->prev->next = m->next;
    else
        d->first = m->next;
    if (m->next)
        m->next->prev = m->prev;
    else
        d->last = m->prev;
    d->used_bytes -= m->bytes;
    free(m);
}

int fk_write(struct fk_device *d, struct fk_memory *m, size_t at, const void *src, size_t n)
{
    int rc = usable(d, "write");
    if (rc == FK_OK)
        memcpy(m->data + at, src, n);
    return rc;
}

int fk_read(struct fk_device *d, const struct fk_memory *m, size_t at, void *dst, size_t n)
{
    int rc = usable(d, "read");
    if (rc == FK_OK)
        memcpy(dst, m->data + at, n);
    return rc;
}

int fk_fill(struct fk_device *d, struct fk_memory *m, unsigned char byte)
{
    int rc = usable(d, "fill");
    if (rc == FK_OK)
        memset(m->data, byte, m->bytes);
    return rc;
}

int fk_copy(struct fk_device *d, struct fk_memory *dst, const struct fk_memory *src)
{
    int rc = usable(d, "copy");
    if (rc == FK_OK)
        memcpy(dst->data, src->data, src->bytes);
    return rc;
}

/* There is no cache: it is only kept in mind, for the trace. */
int fk_flush(struct fk_device *d, size_t bytes)
{
    int rc = usable(d, "flush");
    if (rc == FK_OK)
        d->flushed += bytes;
    return rc;
}

int fk_compiler_version(const struct fk_driver *d)
{
    (void)d;
    return (int)env_number("KOPT_FAKE_COMPILER", FK_VERSION);
}

int fk_read_sensors(struct fk_device *d, struct fk_sensors *out)
{
    *out = (struct fk_sensors){.power_w = 100,
                               .energy_j = d->energy_j,
                               .temp_c = 50,
                               .core_mhz = 1000,
                               .memory_mhz = 2000,
                               .throttle = (uint64_t)env_number("KOPT_FAKE_THROTTLE", 0)};
    return usable(d, "sensors");
}

const char *fk_status_text(int status)
{
    switch (status) {
    case FK_OK:
        return "no error";
    case FK_NO_MEMORY:
        return "out of host memory";
    case FK_FULL:
        return "out of device memory";
    case FK_BAD_SOURCE:
        return "the source does not compile";
    case FK_BAD_IMAGE:
        return "not an image for this device";
    case FK_NO_KERNEL:
        return "no such kernel";
    case FK_BAD_ARGUMENT:
        return "a wrong argument";
    case FK_LAUNCH:
        return "the launch was refused";
    case FK_LOST:
        return "the device is gone";
    case FK_FAILED:
        return "it was told to fail";
    default:
        return "unknown status";
    }
}
