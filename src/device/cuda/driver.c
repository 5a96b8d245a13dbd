/* SPDX-License-Identifier: MIT */
#include "device/cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first driver whose device linker takes what the oldest usable NVRTC (11.2) makes. */
enum { OLDEST_DRIVER = 11020 };

static const char install_hint[] =
    "install NVIDIA's driver (Debian: apt install nvidia-driver); in a container, give it the "
    "GPU (docker run --gpus all)";

void kp_cuda_error_text(const struct kp_cuda_driver *drv, kp_cu_result rc, char *out,
                        size_t bytes)
{
    const char *name = NULL;
    const char *text = NULL;
    if (drv->cuGetErrorName(rc, &name) != KP_CUDA_SUCCESS || !name)
        (void)snprintf(out, bytes, "CUDA error %d", (int)rc);
    else if (drv->cuGetErrorString(rc, &text) != KP_CUDA_SUCCESS || !text)
        (void)snprintf(out, bytes, "%s", name);
    else
        (void)snprintf(out, bytes, "%s (%s)", name, text);
}

static kopt_status find_symbols(struct kp_cuda_driver *drv, kopt_error *err)
{
    const char *missing = NULL;
    enum { O, R };
#define X(need, field, symbol, older, params)                                               \
    if (!KP_DL_GET(drv->dl, symbol, &drv->field)) {                                         \
        const char *other = older;                                                          \
        if ((!other || !KP_DL_GET(drv->dl, other, &drv->field)) && (need) == R && !missing) \
            missing = symbol;                                                               \
    }
    KP_CUDA_FUNCTIONS(X)
#undef X
    if (!missing)
        return KOPT_OK;
    kopt_status st = kp_err(err, KOPT_EENV, "CUDA driver: %s has no function %s",
                            kp_dl_name(drv->dl), missing);
    kp_err_hint(err, "update NVIDIA's driver to one for CUDA 11.2 or later");
    return st;
}

static kopt_status check_version(struct kp_cuda_driver *drv, kopt_error *err)
{
    if (drv->cuDriverGetVersion(&drv->version) != KP_CUDA_SUCCESS)
        drv->version = 0;
    if (drv->version >= OLDEST_DRIVER)
        return KOPT_OK;
    kopt_status st =
        kp_err(err, KOPT_EENV, "CUDA driver: %s is for CUDA %d.%d, kopt needs %d.%d or later",
               kp_dl_name(drv->dl), drv->version / 1000, drv->version % 1000 / 10,
               OLDEST_DRIVER / 1000, OLDEST_DRIVER % 1000 / 10);
    kp_err_hint(err, "update NVIDIA's driver to one for CUDA 11.2 or later");
    return st;
}

static void init_hint(kp_cu_result rc, kopt_error *err)
{
    /* nothing in libkopt changes the environment */
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe) */
    switch (rc) {
    case KP_CUDA_ERROR_NO_DEVICE:
    case KP_CUDA_ERROR_DEVICE_UNAVAILABLE:
        if (visible)
            kp_err_hint(err, "CUDA_VISIBLE_DEVICES is \"%s\"; nvidia-smi -L lists the GPUs",
                        visible);
        else
            kp_err_hint(err, "does nvidia-smi -L list a GPU? In a container, give it the GPU "
                             "(docker run --gpus all)");
        break;
    case KP_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        kp_err_hint(err, "the driver's library and kernel module are of different versions: "
                         "restart the machine after an update");
        break;
    case KP_CUDA_ERROR_SYSTEM_NOT_READY:
        kp_err_hint(err, "is the fabric manager running? systemctl start "
                         "nvidia-fabricmanager");
        break;
    case KP_CUDA_ERROR_STUB_LIBRARY:
        kp_err_hint(err, "that file is the toolkit's stub, made for linking; %s", install_hint);
        break;
    default:
        kp_err_hint(err, "does nvidia-smi work, and may you open /dev/nvidia*?");
    }
}

static kopt_status open_library(struct kp_cuda_driver *drv, kopt_error *err)
{
    /* the second is where Windows' Linux subsystem keeps it, outside the loader's path */
    static const char *const names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
    kopt_status st =
        kp_dl_open(names, sizeof(names) / sizeof(names[0]), "KOPT_CUDA_LIBRARY", &drv->dl, err);
    if (st == KOPT_EENV) {
        kp_err_wrap(err, "CUDA driver");
        kp_err_hint(err, "%s", install_hint);
    }
    return st;
}

kopt_status kp_cuda_driver_open(const struct kp_log *log, struct kp_cuda_driver *out,
                                kopt_error *err)
{
    memset(out, 0, sizeof(*out));
    kopt_status st = open_library(out, err);
    if (st == KOPT_OK)
        st = find_symbols(out, err);
    if (st == KOPT_OK)
        st = check_version(out, err);
    if (st != KOPT_OK)
        goto done;
    kp_cu_result rc = out->cuInit(0);
    if (rc != KP_CUDA_SUCCESS) {
        char text[256];
        kp_cuda_error_text(out, rc, text, sizeof(text));
        st = kp_err(err, KOPT_EDEVICE, "CUDA driver: %s: %s", kp_dl_name(out->dl), text);
        init_hint(rc, err);
        goto done;
    }
    kp_log(log, KP_LOG_DEBUG, "CUDA driver: %s, for CUDA %d.%d", kp_dl_name(out->dl),
           out->version / 1000, out->version % 1000 / 10);
done:
    if (st != KOPT_OK)
        kp_cuda_driver_close(out);
    return st;
}

void kp_cuda_driver_close(struct kp_cuda_driver *drv)
{
    kp_dl_close(drv->dl);
    memset(drv, 0, sizeof(*drv));
}
