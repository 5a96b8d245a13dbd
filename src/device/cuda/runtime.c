/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "device/cuda/compile.h"
#include "device/cuda/impl.h"
#include "device/cuda/nvrtc.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>

enum { PROC_FILE_MAX = 65536 };

static void runtime_close(struct kp_runtime *base)
{
    struct kp_cuda_runtime *rt = (struct kp_cuda_runtime *)base;
    kp_cuda_driver_close(&rt->drv);
    kp_free(rt);
}

static kopt_status runtime_open(const struct kp_log *log, struct kp_runtime **out,
                                kopt_error *err)
{
    *out = NULL;
    struct kp_cuda_runtime *rt = kp_calloc(1, sizeof(*rt));
    if (!rt)
        return kp_err_nomem(err);
    kopt_status st = kp_cuda_driver_open(log, &rt->drv, err);
    if (st != KOPT_OK) {
        kp_free(rt);
        return st;
    }
    kp_cu_result rc = rt->drv.cuDeviceGetCount(&rt->n_devices);
    if (rc != KP_CUDA_SUCCESS || rt->n_devices < 0) {
        char text[256];
        kp_cuda_error_text(&rt->drv, rc, text, sizeof(text));
        st = kp_err(err, KOPT_EDEVICE, "CUDA driver: counting devices: %s", text);
        runtime_close(&rt->base);
        return st;
    }
    *out = &rt->base;
    return KOPT_OK;
}

static int runtime_n_devices(const struct kp_runtime *base)
{
    return ((const struct kp_cuda_runtime *)base)->n_devices;
}

/* --- versions -------------------------------------------------------------------------- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun ...", or with "Open
 * Kernel Module for x86_64": the first word that begins with digits and a point. */
static bool kernel_module_version(char *out, size_t bytes)
{
    struct kp_buf text = KP_BUF_INIT(PROC_FILE_MAX);
    bool found = false;
    if (kp_file_read("/proc/driver/nvidia/version", &text, NULL) == KOPT_OK) {
        struct kp_str rest = {kp_buf_text(&text), text.len};
        struct kp_str line = kp_str_cut(rest, '\n', &rest);
        while (line.len && !found) {
            struct kp_str word = kp_str_cut(line, ' ', &line);
            size_t digits = 0;
            while (digits < word.len && word.ptr[digits] >= '0' && word.ptr[digits] <= '9')
                digits++;
            found = digits >= 2 && digits < word.len && word.ptr[digits] == '.';
            if (found)
                (void)snprintf(out, bytes, "%.*s", KP_STR_FMT(word));
        }
    }
    kp_buf_deinit(&text);
    return found;
}

static const char *driver_text(struct kp_cuda_runtime *rt)
{
    char version[64] = "";
    struct kp_nvml nvml;
    int major = rt->drv.version / 1000;
    int minor = rt->drv.version % 1000 / 10;
    if (rt->driver_text[0])
        return rt->driver_text;
    if (!kernel_module_version(version, sizeof(version)) && kp_nvml_open(&nvml)) {
        kp_nvml_driver_version(&nvml, version, sizeof(version));
        kp_nvml_close(&nvml);
    }
    if (version[0])
        (void)snprintf(rt->driver_text, sizeof(rt->driver_text), "driver %s (CUDA %d.%d)",
                       version, major, minor);
    else
        (void)snprintf(rt->driver_text, sizeof(rt->driver_text), "driver for CUDA %d.%d", major,
                       minor);
    return rt->driver_text;
}

/* "" when there is no NVRTC: kp_compiler_open() says why. */
static const char *compiler_text(struct kp_cuda_runtime *rt)
{
    struct kp_nvrtc nvrtc;
    kopt_error why;
    if (rt->compiler_known)
        return rt->compiler;
    rt->compiler_known = true;
    if (kp_nvrtc_open(rt->base.log, &nvrtc, &why) == KOPT_OK) {
        kp_nvrtc_version_text(&nvrtc, rt->compiler, sizeof(rt->compiler));
        kp_nvrtc_close(&nvrtc);
    } else {
        kp_log(rt->base.log, KP_LOG_WARN, "%s", why.message);
    }
    return rt->compiler;
}

/* --- what a device is ------------------------------------------------------------------ */

static int attribute(const struct kp_cuda_driver *drv, kp_cu_device device, int which)
{
    int v = 0;
    kp_cu_result rc = drv->cuDeviceGetAttribute(&v, (kp_cu_device_attribute)which, device);
    return rc == KP_CUDA_SUCCESS ? v : 0;
}

static void read_limits(const struct kp_cuda_driver *drv, kp_cu_device device,
                        struct kp_limits *out)
{
    size_t bytes = 0;
    if (drv->cuDeviceTotalMem(&bytes, device) != KP_CUDA_SUCCESS)
        bytes = 0;
    int optin = attribute(drv, device, KP_CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    int usual = attribute(drv, device, KP_CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK);
    *out = (struct kp_limits){
        .max_threads = attribute(drv, device, KP_CU_DEVICE_MAX_THREADS_PER_BLOCK),
        .max_block = {attribute(drv, device, KP_CU_DEVICE_MAX_BLOCK_DIM_X),
                      attribute(drv, device, KP_CU_DEVICE_MAX_BLOCK_DIM_Y),
                      attribute(drv, device, KP_CU_DEVICE_MAX_BLOCK_DIM_Z)},
        .shared_bytes = optin > usual ? optin : usual,
        .registers = attribute(drv, device, KP_CU_DEVICE_MAX_REGISTERS_PER_BLOCK),
        .warp = attribute(drv, device, KP_CU_DEVICE_WARP_SIZE),
        .compute_units = attribute(drv, device, KP_CU_DEVICE_MULTIPROCESSOR_COUNT),
        .l2_bytes = attribute(drv, device, KP_CU_DEVICE_L2_CACHE_SIZE),
        .global_bytes = (int64_t)bytes,
        .clock_khz = attribute(drv, device, KP_CU_DEVICE_CLOCK_RATE),
        .cc = (int64_t)10 * attribute(drv, device, KP_CU_DEVICE_COMPUTE_CAPABILITY_MAJOR) +
              attribute(drv, device, KP_CU_DEVICE_COMPUTE_CAPABILITY_MINOR)};
}

kopt_status kp_cuda_runtime_info(struct kp_runtime *base, int index, struct kp_device_info *out,
                                 kopt_error *err)
{
    struct kp_cuda_runtime *rt = (struct kp_cuda_runtime *)base;
    const struct kp_cuda_driver *drv = &rt->drv;
    kp_cu_device device;
    memset(out, 0, sizeof(*out));
    kp_cu_result rc = drv->cuDeviceGet(&device, index);
    if (rc == KP_CUDA_SUCCESS)
        rc = drv->cuDeviceGetName(out->name, (int)sizeof(out->name), device);
    if (rc != KP_CUDA_SUCCESS) {
        char text[256];
        kp_cuda_error_text(drv, rc, text, sizeof(text));
        return kp_err(err, KOPT_EDEVICE, "cuda device %d: %s", index, text);
    }
    out->name[sizeof(out->name) - 1] = 0;
    out->backend = KP_BACKEND_CUDA;
    out->index = index;
    read_limits(drv, device, &out->limits);
    (void)snprintf(out->arch, sizeof(out->arch), "sm_%d", (int)out->limits.cc);
    if (drv->cuDeviceGetPCIBusId(out->id, (int)sizeof(out->id), device) != KP_CUDA_SUCCESS)
        out->id[0] = 0;
    (void)snprintf(out->driver, sizeof(out->driver), "%s", driver_text(rt));
    (void)snprintf(out->compiler, sizeof(out->compiler), "%s", compiler_text(rt));
    return KOPT_OK;
}

const struct kp_runtime_ops *kp_cuda_ops(void)
{
    static const struct kp_runtime_ops ops = {.name = "cuda",
                                              .open = runtime_open,
                                              .close = runtime_close,
                                              .n_devices = runtime_n_devices,
                                              .info = kp_cuda_runtime_info,
                                              .compiler_open = kp_cuda_compiler_open,
                                              .compiler_close = kp_cuda_compiler_close,
                                              .compiler_version = kp_cuda_compiler_version,
                                              .compile = kp_cuda_compile,
                                              .device_open = kp_cuda_device_open,
                                              .device_close = kp_cuda_device_close,
                                              .memory = kp_cuda_memory,
                                              .buffer_new = kp_cuda_buffer_new,
                                              .buffer_free = kp_cuda_buffer_free,
                                              .write = kp_cuda_write,
                                              .read = kp_cuda_read,
                                              .fill = kp_cuda_fill,
                                              .module_load = kp_cuda_module_load,
                                              .module_unload = kp_cuda_module_unload,
                                              .run = kp_cuda_run,
                                              .compare = kp_cuda_compare,
                                              .sensors = kp_cuda_sensors};
    return &ops;
}
