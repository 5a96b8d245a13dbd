/* SPDX-License-Identifier: MIT */
/* Finding OpenCL and its devices at run time. Layer: device. */
#include "base/alloc.h"
#include "device/opencl/cl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PLATFORMS = 32, MAX_DEVICES = 256, NO_PLATFORM = -1001 };

/* NOLINTNEXTLINE(readability-function-size): two tables */
void kp_cl_error_name(cl_int rc, char out[64])
{
    /* cl.h's codes, in its order; the gap between -19 and -30 is its own. */
    static const char *const run_time_names[] = {"SUCCESS",
                                                 "DEVICE_NOT_FOUND",
                                                 "DEVICE_NOT_AVAILABLE",
                                                 "COMPILER_NOT_AVAILABLE",
                                                 "MEM_OBJECT_ALLOCATION_FAILURE",
                                                 "OUT_OF_RESOURCES",
                                                 "OUT_OF_HOST_MEMORY",
                                                 "PROFILING_INFO_NOT_AVAILABLE",
                                                 "MEM_COPY_OVERLAP",
                                                 "IMAGE_FORMAT_MISMATCH",
                                                 "IMAGE_FORMAT_NOT_SUPPORTED",
                                                 "BUILD_PROGRAM_FAILURE",
                                                 "MAP_FAILURE",
                                                 "MISALIGNED_SUB_BUFFER_OFFSET",
                                                 "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
                                                 "COMPILE_PROGRAM_FAILURE",
                                                 "LINKER_NOT_AVAILABLE",
                                                 "LINK_PROGRAM_FAILURE",
                                                 "DEVICE_PARTITION_FAILED",
                                                 "KERNEL_ARG_INFO_NOT_AVAILABLE"};
    static const char *const invalid_names[] = {"VALUE",
                                                "DEVICE_TYPE",
                                                "PLATFORM",
                                                "DEVICE",
                                                "CONTEXT",
                                                "QUEUE_PROPERTIES",
                                                "COMMAND_QUEUE",
                                                "HOST_PTR",
                                                "MEM_OBJECT",
                                                "IMAGE_FORMAT_DESCRIPTOR",
                                                "IMAGE_SIZE",
                                                "SAMPLER",
                                                "BINARY",
                                                "BUILD_OPTIONS",
                                                "PROGRAM",
                                                "PROGRAM_EXECUTABLE",
                                                "KERNEL_NAME",
                                                "KERNEL_DEFINITION",
                                                "KERNEL",
                                                "ARG_INDEX",
                                                "ARG_VALUE",
                                                "ARG_SIZE",
                                                "KERNEL_ARGS",
                                                "WORK_DIMENSION",
                                                "WORK_GROUP_SIZE",
                                                "WORK_ITEM_SIZE",
                                                "GLOBAL_OFFSET",
                                                "EVENT_WAIT_LIST",
                                                "EVENT",
                                                "OPERATION",
                                                "GL_OBJECT",
                                                "BUFFER_SIZE",
                                                "MIP_LEVEL",
                                                "GLOBAL_WORK_SIZE",
                                                "PROPERTY",
                                                "IMAGE_DESCRIPTOR",
                                                "COMPILER_OPTIONS",
                                                "LINKER_OPTIONS",
                                                "DEVICE_PARTITION_COUNT"};
    cl_int run_time = -rc;
    cl_int invalid = CL_INVALID_VALUE - rc;
    if (run_time >= 0 && (size_t)run_time < sizeof(run_time_names) / sizeof(*run_time_names))
        (void)snprintf(out, 64, "CL_%s", run_time_names[run_time]);
    else if (invalid >= 0 && (size_t)invalid < sizeof(invalid_names) / sizeof(*invalid_names))
        (void)snprintf(out, 64, "CL_INVALID_%s", invalid_names[invalid]);
    else if (rc == NO_PLATFORM)
        (void)snprintf(out, 64, "CL_PLATFORM_NOT_FOUND_KHR");
    else
        (void)snprintf(out, 64, "OpenCL error %d", rc);
}

static kopt_status status_of(cl_int rc)
{
    switch (rc) {
    case CL_OUT_OF_HOST_MEMORY:
        return KOPT_ENOMEM;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_INVALID_BUFFER_SIZE:
        return KOPT_EFULL;
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_GLOBAL_WORK_SIZE:
        return KOPT_ERANGE;
    default:
        return KOPT_EDEVICE;
    }
}

kopt_status kp_cl_fail(kopt_error *err, cl_int rc, const char *fmt, ...)
{
    char doing[512];
    char name[64];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(doing, sizeof(doing), fmt, ap);
    va_end(ap);
    kp_cl_error_name(rc, name);
    return kp_err(err, status_of(rc), "%s: %s", doing, name);
}

static kopt_status find_symbols(struct kp_cl_lib *lib, kopt_error *err)
{
#define X(name)                                                                    \
    if (!KP_DL_GET(lib->dl, #name, &lib->api.name))                                \
        return kp_err(err, KOPT_EENV, "%s has no symbol %s: OpenCL 1.2 is needed", \
                      kp_dl_name(lib->dl), #name);
    KP_CL_SYMBOLS(X)
#undef X
    return KOPT_OK;
}

static bool is_pocl(const struct kp_cl_api *cl, cl_platform_id platform)
{
    char name[128] = "";
    (void)cl->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, NULL);
    return strcmp(name, "Portable Computing Language") == 0;
}

static kopt_status add_platform(struct kp_cl_lib *lib, cl_platform_id platform,
                                const struct kp_log *log, kopt_error *err)
{
    cl_device_id ids[MAX_DEVICES];
    cl_uint n = 0;
    const struct kp_cl_api *cl = &lib->api;
    cl_int rc = cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n);
    if (rc == CL_DEVICE_NOT_FOUND)
        return KOPT_OK;
    if (rc != CL_SUCCESS) { /* one broken driver must not hide the others */
        char name[64];
        kp_cl_error_name(rc, name);
        kp_log(log, KP_LOG_WARN, "an OpenCL platform refuses to list its devices: %s", name);
        return KOPT_OK;
    }
    n = n < MAX_DEVICES ? n : MAX_DEVICES;
    struct kp_cl_found *more =
        kp_reallocarray(lib->found, lib->n_found + n, sizeof(*lib->found));
    if (!more)
        return kp_err_nomem(err);
    lib->found = more;
    bool pocl = is_pocl(cl, platform);
    for (cl_uint i = 0; i < n; i++) {
        struct kp_cl_found *f = &lib->found[lib->n_found++];
        *f = (struct kp_cl_found){.platform = platform, .device = ids[i]};
        (void)cl->clGetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof(f->type), &f->type, NULL);
        /* PoCL drives other hardware, too; what is said of it here holds for its CPUs. */
        f->pocl = pocl && (f->type & CL_DEVICE_TYPE_CPU);
    }
    return KOPT_OK;
}

static int rank(cl_device_type type)
{
    if (type & CL_DEVICE_TYPE_GPU)
        return 0;
    return type & CL_DEVICE_TYPE_CPU ? 2 : 1;
}

/* Insertion sort: stable, and there are few. */
static void sort_found(struct kp_cl_lib *lib)
{
    for (size_t i = 1; i < lib->n_found; i++) {
        struct kp_cl_found f = lib->found[i];
        size_t k = i;
        for (; k > 0 && rank(lib->found[k - 1].type) > rank(f.type); k--)
            lib->found[k] = lib->found[k - 1];
        lib->found[k] = f;
    }
}

static kopt_status find_devices(struct kp_cl_lib *lib, const struct kp_log *log,
                                kopt_error *err)
{
    cl_platform_id ids[MAX_PLATFORMS];
    cl_uint n = 0;
    cl_int rc = lib->api.clGetPlatformIDs(MAX_PLATFORMS, ids, &n);
    if (rc == NO_PLATFORM || (rc == CL_SUCCESS && n == 0)) {
        kopt_status st = kp_err(err, KOPT_EENV, "%s is there, but no OpenCL driver behind it",
                                kp_dl_name(lib->dl));
        kp_err_hint(err, "install one, for example: apt install pocl-opencl-icd");
        return st;
    }
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "list the OpenCL platforms");
    kopt_status st = KOPT_OK;
    for (cl_uint i = 0; i < n && i < MAX_PLATFORMS && st == KOPT_OK; i++)
        st = add_platform(lib, ids[i], log, err);
    sort_found(lib);
    return st;
}

kopt_status kp_cl_lib_open(struct kp_cl_lib *lib, const struct kp_log *log, kopt_error *err)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    *lib = (struct kp_cl_lib){0};
    kopt_status st = kp_dl_open(names, 2, "KOPT_OPENCL_LIBRARY", &lib->dl, err);
    if (st == KOPT_EENV)
        kp_err_hint(err, "install OpenCL, for example: apt install pocl-opencl-icd");
    if (st == KOPT_OK)
        st = find_symbols(lib, err);
    if (st == KOPT_OK)
        st = find_devices(lib, log, err);
    if (st != KOPT_OK)
        kp_cl_lib_close(lib);
    return st;
}

void kp_cl_lib_close(struct kp_cl_lib *lib)
{
    kp_free(lib->found);
    kp_dl_close(lib->dl);
    *lib = (struct kp_cl_lib){0};
}

kopt_status kp_cl_session_open(struct kp_cl_session *s, const struct kp_cl_lib *lib, int index,
                               kopt_error *err)
{
    *s = (struct kp_cl_session){.lib = lib, .cl = &lib->api};
    if (index < 0 || (size_t)index >= lib->n_found)
        return kp_err(err, KOPT_EDEVICE, "there is no OpenCL device %d", index);
    const struct kp_cl_found *f = &lib->found[index];
    const cl_context_properties props[] = {CL_CONTEXT_PLATFORM,
                                           (cl_context_properties)f->platform, 0};
    cl_ulong max_alloc = 0;
    cl_int rc;
    s->device = f->device;
    s->pocl = f->pocl;
    s->host = (f->type & CL_DEVICE_TYPE_CPU) != 0;
    (void)lib->api.clGetDeviceInfo(f->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(max_alloc),
                                   &max_alloc, NULL);
    s->max_alloc = max_alloc;
    s->context = lib->api.clCreateContext(props, 1, &f->device, NULL, NULL, &rc);
    if (rc != CL_SUCCESS) {
        s->context = NULL;
        return kp_cl_fail(err, rc, "open OpenCL device %d", index);
    }
    s->queue =
        lib->api.clCreateCommandQueue(s->context, f->device, CL_QUEUE_PROFILING_ENABLE, &rc);
    if (rc != CL_SUCCESS) {
        s->queue = NULL;
        kp_cl_session_close(s);
        return kp_cl_fail(err, rc, "make a queue with profiling on OpenCL device %d", index);
    }
    return KOPT_OK;
}

void kp_cl_session_close(struct kp_cl_session *s)
{
    if (s->queue)
        (void)s->cl->clReleaseCommandQueue(s->queue);
    if (s->context)
        (void)s->cl->clReleaseContext(s->context);
    s->queue = NULL;
    s->context = NULL;
}
