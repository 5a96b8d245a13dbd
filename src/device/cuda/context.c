/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "device/cuda/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Errors after which the driver refuses everything in this context. */
static bool is_fatal(kp_cu_result rc)
{
    switch ((int)rc) {
    case KP_CUDA_ERROR_ILLEGAL_ADDRESS:
    case KP_CUDA_ERROR_LAUNCH_TIMEOUT:
    case KP_CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case KP_CUDA_ERROR_ASSERT:
    case KP_CUDA_ERROR_HARDWARE_STACK_ERROR:
    case KP_CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case KP_CUDA_ERROR_MISALIGNED_ADDRESS:
    case KP_CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case KP_CUDA_ERROR_INVALID_PC:
    case KP_CUDA_ERROR_LAUNCH_FAILED:
    case KP_CUDA_ERROR_ECC_UNCORRECTABLE:
    case KP_CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

static void lose(struct kp_cuda_device *d, kp_cu_result rc)
{
    d->lost = true;
    kp_cuda_error_text(d->drv, rc, d->lost_text, sizeof(d->lost_text));
}

kopt_status kp_cuda_fail(struct kp_cuda_device *d, kp_cu_result rc, const char *doing,
                         kopt_error *err)
{
    char text[256];
    kp_cuda_error_text(d->drv, rc, text, sizeof(text));
    if (is_fatal(rc) && !d->lost)
        lose(d, rc);
    return kp_err(err, KOPT_EDEVICE, "%s during %s", text, doing);
}

kopt_status kp_cuda_enter(struct kp_cuda_device *d, kopt_error *err)
{
    if (d->lost)
        return kp_err(err, KOPT_EDEVICE, "the device is unusable since %s", d->lost_text);
    kp_cu_result rc = d->drv->cuCtxSetCurrent(d->context);
    return rc == KP_CUDA_SUCCESS ? KOPT_OK : kp_cuda_fail(d, rc, "choosing the device", err);
}

kopt_status kp_cuda_sync(struct kp_cuda_device *d, const char *doing, kopt_error *err)
{
    kp_cu_result rc = d->drv->cuStreamSynchronize(d->stream);
    if (rc == KP_CUDA_SUCCESS)
        return KOPT_OK;
    /* whatever its name, what only the wait brings to light has happened on the device */
    kopt_status st = kp_cuda_fail(d, rc, doing, err);
    if (!d->lost)
        lose(d, rc);
    return st;
}

/* --- opening --------------------------------------------------------------------------- */

/* Waiting by spinning costs a core and saves the tens of microseconds that waking up takes, at
 * hundreds of short waits a second. Refused when the context exists already: then it stays. */
static kp_cu_result open_context(struct kp_cuda_device *d)
{
    if (d->drv->cuDevicePrimaryCtxSetFlags)
        (void)d->drv->cuDevicePrimaryCtxSetFlags(d->device, KP_CU_CTX_SCHED_SPIN);
    kp_cu_result rc = d->drv->cuDevicePrimaryCtxRetain(&d->context, d->device);
    if (rc != KP_CUDA_SUCCESS) {
        d->context = NULL;
        return rc;
    }
    rc = d->drv->cuCtxSetCurrent(d->context);
    if (rc == KP_CUDA_SUCCESS)
        rc = d->drv->cuStreamCreate(&d->stream, KP_CU_STREAM_NON_BLOCKING);
    if (rc != KP_CUDA_SUCCESS)
        d->stream = NULL;
    return rc;
}

static void read_max_grid(struct kp_cuda_device *d)
{
    static const int which[3] = {KP_CU_DEVICE_MAX_GRID_DIM_X, KP_CU_DEVICE_MAX_GRID_DIM_Y,
                                 KP_CU_DEVICE_MAX_GRID_DIM_Z};
    for (int i = 0; i < 3; i++) {
        if (d->drv->cuDeviceGetAttribute(&d->max_grid[i], (kp_cu_device_attribute)which[i],
                                         d->device) != KP_CUDA_SUCCESS)
            d->max_grid[i] = 0;
    }
}

kopt_status kp_cuda_device_open(struct kp_runtime *rt, int index, struct kp_device **out,
                                kopt_error *err)
{
    *out = NULL;
    struct kp_cuda_device *d = kp_calloc(1, sizeof(*d));
    if (!d)
        return kp_err_nomem(err);
    d->rt = (struct kp_cuda_runtime *)rt;
    d->drv = &d->rt->drv;
    kopt_status st = kp_cuda_runtime_info(rt, index, &d->base.info, err);
    if (st != KOPT_OK)
        goto done;
    kp_cu_result rc = d->drv->cuDeviceGet(&d->device, index);
    if (rc == KP_CUDA_SUCCESS)
        rc = open_context(d);
    if (rc != KP_CUDA_SUCCESS) {
        st = kp_cuda_fail(d, rc, "opening the device", err);
        if (rc == KP_CUDA_ERROR_DEVICE_UNAVAILABLE)
            kp_err_hint(err, "another process may have the GPU for itself (nvidia-smi -q -d "
                             "COMPUTE shows its compute mode)");
        goto done;
    }
    read_max_grid(d);
    *out = &d->base;
    d = NULL;
done:
    if (d)
        kp_cuda_device_close(&d->base);
    return st;
}

/* What fails here, fails because a kernel has taken the context down with it. */
void kp_cuda_device_close(struct kp_device *base)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    const struct kp_cuda_driver *drv = d->drv;
    if (d->context) {
        (void)drv->cuCtxSetCurrent(d->context);
        kp_cuda_helpers_deinit(d);
        for (size_t i = 0; i < sizeof(d->events) / sizeof(d->events[0]); i++) {
            if (d->events[i])
                (void)drv->cuEventDestroy(d->events[i]);
        }
        if (d->flush)
            (void)drv->cuMemFree(d->flush);
        if (d->found)
            (void)drv->cuMemFree(d->found);
        if (d->stream)
            (void)drv->cuStreamDestroy(d->stream);
        (void)drv->cuCtxSetCurrent(NULL);
        (void)drv->cuDevicePrimaryCtxRelease(d->device);
    }
    kp_nvml_close(&d->nvml);
    kp_free(d);
}

/* --- memory ---------------------------------------------------------------------------- */

void kp_cuda_memory(struct kp_device *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    size_t n_free = 0;
    size_t n_total = 0;
    if (kp_cuda_enter(d, NULL) != KOPT_OK ||
        d->drv->cuMemGetInfo(&n_free, &n_total) != KP_CUDA_SUCCESS) {
        n_free = 0;
        n_total = 0;
    }
    *free_bytes = n_free;
    *total_bytes = n_total;
}

kopt_status kp_cuda_alloc(struct kp_cuda_device *d, size_t bytes, kp_cu_pointer *out,
                          kopt_error *err)
{
    uint64_t n_free = 0;
    uint64_t n_total = 0;
    *out = 0;
    kp_cu_result rc = d->drv->cuMemAlloc(out, bytes);
    if (rc == KP_CUDA_SUCCESS)
        return KOPT_OK;
    *out = 0;
    if (rc != KP_CUDA_ERROR_OUT_OF_MEMORY)
        return kp_cuda_fail(d, rc, "allocating device memory", err);
    kp_cuda_memory(&d->base, &n_free, &n_total);
    kopt_status st =
        kp_err(err, KOPT_EFULL,
               "device memory: %zu bytes wanted, %" PRIu64 " of %" PRIu64 " bytes free on %s",
               bytes, n_free, n_total, d->base.info.name);
    kp_err_hint(err, "nvidia-smi shows which processes hold the rest");
    return st;
}

kopt_status kp_cuda_buffer_new(struct kp_device *base, size_t bytes, struct kp_buffer **out,
                               kopt_error *err)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    *out = NULL;
    kopt_status st = kp_cuda_enter(d, err);
    if (st != KOPT_OK)
        return st;
    struct kp_cuda_buffer *b = kp_calloc(1, sizeof(*b));
    if (!b)
        return kp_err_nomem(err);
    st = kp_cuda_alloc(d, bytes, &b->at, err);
    if (st != KOPT_OK) {
        kp_free(b);
        return st;
    }
    b->base.bytes = bytes;
    *out = &b->base;
    return KOPT_OK;
}

void kp_cuda_buffer_free(struct kp_device *base, struct kp_buffer *buffer)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    struct kp_cuda_buffer *b = (struct kp_cuda_buffer *)buffer;
    /* on a lost device this fails: the memory goes with the context */
    (void)d->drv->cuCtxSetCurrent(d->context);
    (void)d->drv->cuMemFree(b->at);
    kp_free(b);
}

kopt_status kp_cuda_write(struct kp_device *base, struct kp_buffer *buffer, size_t at,
                          const void *src, size_t n, kopt_error *err)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    const struct kp_cuda_buffer *b = (const struct kp_cuda_buffer *)buffer;
    kopt_status st = kp_cuda_enter(d, err);
    if (st != KOPT_OK)
        return st;
    kp_cu_result rc = d->drv->cuMemcpyHtoDAsync(b->at + at, src, n, d->stream);
    if (rc != KP_CUDA_SUCCESS)
        return kp_cuda_fail(d, rc, "copying to the device", err);
    return kp_cuda_sync(d, "copying to the device", err);
}

kopt_status kp_cuda_read(struct kp_device *base, struct kp_buffer *buffer, size_t at, void *dst,
                         size_t n, kopt_error *err)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    const struct kp_cuda_buffer *b = (const struct kp_cuda_buffer *)buffer;
    kopt_status st = kp_cuda_enter(d, err);
    if (st != KOPT_OK)
        return st;
    kp_cu_result rc = d->drv->cuMemcpyDtoHAsync(dst, b->at + at, n, d->stream);
    if (rc != KP_CUDA_SUCCESS)
        return kp_cuda_fail(d, rc, "copying from the device", err);
    return kp_cuda_sync(d, "copying from the device", err);
}

kopt_status kp_cuda_fill(struct kp_device *base, struct kp_buffer *buffer, uint8_t byte,
                         kopt_error *err)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    const struct kp_cuda_buffer *b = (const struct kp_cuda_buffer *)buffer;
    kopt_status st = kp_cuda_enter(d, err);
    if (st != KOPT_OK)
        return st;
    kp_cu_result rc = d->drv->cuMemsetD8Async(b->at, byte, buffer->bytes, d->stream);
    if (rc != KP_CUDA_SUCCESS)
        return kp_cuda_fail(d, rc, "filling device memory", err);
    return kp_cuda_sync(d, "filling device memory", err);
}

/* --- sensors --------------------------------------------------------------------------- */

void kp_cuda_sensors(struct kp_device *base, struct kp_sensors *out)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    if (!d->nvml_tried) {
        d->nvml_tried = true;
        if (kp_nvml_open(&d->nvml) && !kp_nvml_choose(&d->nvml, d->base.info.id))
            kp_nvml_close(&d->nvml);
    }
    if (d->nvml.dl)
        kp_nvml_read(&d->nvml, out);
}
