/* SPDX-License-Identifier: MIT */
#include "cuda_stub.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1, INVALID_IMAGE = 200, NOT_FOUND = 500 };

typedef unsigned long long pointer;

struct CUmod_st {
    size_t bytes;
    unsigned char *image;
};

struct CUfunc_st {
    char name[64];
};

struct CUevent_st {
    double at_ms;
};

static struct cuda_stub stub = {.version = 13000,
                                .n_devices = 2,
                                .memory_bytes = 1 << 30,
                                .max_dynamic = 49152,
                                .pci_id = "0000:19:00.0"};
static double now_ms;
static struct CUfunc_st functions[16];
static int n_functions;
static int launched;

EXPORT struct cuda_stub *cuda_stub(void);
struct cuda_stub *cuda_stub(void)
{
    return &stub;
}

__attribute__((format(printf, 1, 2))) static void trace(const char *fmt, ...)
{
    va_list ap;
    size_t room = sizeof(stub.trace) - stub.trace_len;
    va_start(ap, fmt);
    int n = vsnprintf(stub.trace + stub.trace_len, room, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < room)
        stub.trace_len += (size_t)n;
}

/* The status that this call has been told to fail with. */
static int told(const char *name)
{
    if (!stub.fail_call || strcmp(stub.fail_call, name) != 0 || --stub.fail_at != 0)
        return 0;
    return stub.fail_rc;
}

#define TOLD                     \
    do {                         \
        int rc = told(__func__); \
        if (rc)                  \
            return rc;           \
    } while (0)

static void *at(pointer p)
{
    void *out;
    uintptr_t bits = (uintptr_t)p;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

/* --- the driver -----------------------------------------------------------------------------
 */

#define CALL(name, params)  \
    EXPORT int name params; \
    int name params

CALL(cuInit, (unsigned flags))
{
    (void)flags;
    return stub.init_rc;
}

CALL(cuDriverGetVersion, (int *version))
{
    *version = stub.version;
    return 0;
}

CALL(cuGetErrorName, (int rc, const char **text))
{
    *text = rc == OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == 700           ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : rc == 100           ? "CUDA_ERROR_NO_DEVICE"
            : rc == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
                                  : NULL;
    return *text ? 0 : INVALID_VALUE;
}

CALL(cuGetErrorString, (int rc, const char **text))
{
    *text = rc == 700 ? "an illegal memory access was encountered" : NULL;
    return *text ? 0 : INVALID_VALUE;
}

CALL(cuDeviceGetCount, (int *n))
{
    TOLD;
    *n = stub.n_devices;
    return 0;
}

CALL(cuDeviceGet, (int *out, int ordinal))
{
    TOLD;
    *out = ordinal + 40;
    return ordinal >= 0 && ordinal < stub.n_devices ? 0 : 101;
}

CALL(cuDeviceGetName, (char *out, int bytes, int device))
{
    TOLD;
    (void)snprintf(out, (size_t)bytes, "Stub %d", device - 40);
    return 0;
}

CALL(cuDeviceGetAttribute, (int *out, int which, int device))
{
    static const int VALUES[128] = {
        [1] = 1024,  [2] = 1024,  [3] = 1024, [4] = 64,     [5] = 2147483647, [6] = 65535,
        [7] = 65535, [8] = 49152, [10] = 32,  [12] = 65536, [13] = 1980000,   [16] = 132,
        [38] = 1000, [75] = 9,    [76] = 0,   [97] = 232448};
    TOLD;
    (void)device;
    *out = which >= 0 && which < 128 ? VALUES[which] : 0;
    return 0;
}

CALL(cuDeviceTotalMem_v2, (size_t * out, int device))
{
    TOLD;
    (void)device;
    *out = stub.memory_bytes;
    return 0;
}

CALL(cuDeviceGetPCIBusId, (char *out, int bytes, int device))
{
    TOLD;
    (void)snprintf(out, (size_t)bytes, "0000:%02d:00.0", device - 40 + 19);
    return 0;
}

CALL(cuDevicePrimaryCtxSetFlags_v2, (int device, unsigned flags))
{
    (void)device;
    (void)flags;
    return 708; /* the context exists already: no reason to stop */
}

CALL(cuDevicePrimaryCtxRetain, (void **out, int device))
{
    static char context;
    TOLD;
    (void)device;
    *out = &context;
    stub.n_alive++;
    return 0;
}

/* the symbol of older drivers only, to see that it is looked for */
CALL(cuDevicePrimaryCtxRelease, (int device))
{
    (void)device;
    stub.n_alive--;
    return 0;
}

CALL(cuCtxSetCurrent, (void *context))
{
    TOLD;
    (void)context;
    return 0;
}

CALL(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes))
{
    *free_bytes = stub.memory_bytes - stub.used_bytes;
    *total_bytes = stub.memory_bytes;
    return 0;
}

CALL(cuMemAlloc_v2, (pointer * out, size_t bytes))
{
    TOLD;
    if (bytes > stub.memory_bytes - stub.used_bytes)
        return OUT_OF_MEMORY;
    size_t *p = calloc(1, bytes + 16); /* NOLINT: the stub stands below base/alloc */
    if (!p)
        return OUT_OF_MEMORY;
    p[0] = bytes;
    stub.used_bytes += bytes;
    stub.n_alive++;
    *out = (pointer)(uintptr_t)p + 16;
    return 0;
}

CALL(cuMemFree_v2, (pointer p))
{
    size_t *block = at(p - 16);
    stub.used_bytes -= block[0];
    stub.n_alive--;
    free(block);
    return 0;
}

CALL(cuMemcpyHtoDAsync_v2, (pointer dst, const void *src, size_t bytes, void *stream))
{
    TOLD;
    (void)stream;
    trace("write %zu;", bytes);
    memcpy(at(dst), src, bytes);
    return 0;
}

CALL(cuMemcpyDtoHAsync_v2, (void *dst, pointer src, size_t bytes, void *stream))
{
    TOLD;
    (void)stream;
    trace("read %zu;", bytes);
    memcpy(dst, at(src), bytes);
    return 0;
}

CALL(cuMemcpyDtoDAsync_v2, (pointer dst, pointer src, size_t bytes, void *stream))
{
    TOLD;
    (void)stream;
    trace("copy %zu;", bytes);
    memcpy(at(dst), at(src), bytes);
    return 0;
}

CALL(cuMemsetD8Async, (pointer p, unsigned char byte, size_t n, void *stream))
{
    TOLD;
    (void)stream;
    trace("set %zu %u;", n, byte);
    memset(at(p), byte, n);
    return 0;
}

CALL(cuStreamCreate, (void **out, unsigned flags))
{
    static char stream;
    TOLD;
    (void)flags;
    *out = &stream;
    stub.n_alive++;
    return 0;
}

CALL(cuStreamDestroy_v2, (void *stream))
{
    (void)stream;
    stub.n_alive--;
    return 0;
}

CALL(cuStreamSynchronize, (void *stream))
{
    TOLD;
    (void)stream;
    trace("wait;");
    return launched ? stub.fault_rc : 0;
}

CALL(cuEventCreate, (struct CUevent_st * *out, unsigned flags))
{
    TOLD;
    (void)flags;
    *out = calloc(1, sizeof(**out)); /* NOLINT */
    stub.n_alive++;
    return *out ? 0 : OUT_OF_MEMORY;
}

CALL(cuEventDestroy_v2, (struct CUevent_st * e))
{
    free(e);
    stub.n_alive--;
    return 0;
}

CALL(cuEventRecord, (struct CUevent_st * e, void *stream))
{
    TOLD;
    (void)stream;
    trace("event;");
    e->at_ms = now_ms;
    return 0;
}

CALL(cuEventSynchronize, (struct CUevent_st * e))
{
    TOLD;
    (void)e;
    trace("waitevent;");
    return 0;
}

CALL(cuEventElapsedTime, (float *ms, struct CUevent_st *from, struct CUevent_st *to))
{
    TOLD;
    *ms = (float)(to->at_ms - from->at_ms);
    return 0;
}

CALL(cuModuleLoadDataEx,
     (struct CUmod_st * *out, const void *image, unsigned n, int *options, void **values))
{
    TOLD;
    if (memcmp(image, "\177ELF", 4) != 0 || ((const unsigned char *)image)[7] == 0xEE) {
        for (unsigned i = 0; i < n; i++) {
            if (options[i] == 5)
                (void)snprintf(values[i], 32, "the stub's log");
        }
        return INVALID_IMAGE;
    }
    struct CUmod_st *m = calloc(1, sizeof(*m)); /* NOLINT */
    uint64_t table;
    uint16_t count;
    memcpy(&table, (const char *)image + 40, 8);
    memcpy(&count, (const char *)image + 60, 2);
    m->bytes = (size_t)table + (size_t)count * 64;
    m->image = malloc(m->bytes); /* NOLINT */
    memcpy(m->image, image, m->bytes);
    stub.n_alive++;
    *out = m;
    return 0;
}

CALL(cuModuleUnload, (struct CUmod_st * m))
{
    stub.n_alive--;
    free(m->image);
    free(m);
    return 0;
}

CALL(cuModuleGetFunction, (struct CUfunc_st * *out, struct CUmod_st *m, const char *name))
{
    TOLD;
    if (!memmem(m->image, m->bytes, name, strlen(name) + 1))
        return NOT_FOUND;
    struct CUfunc_st *f = &functions[n_functions++ % 16];
    (void)snprintf(f->name, sizeof(f->name), "%s", name);
    *out = f;
    return 0;
}

CALL(cuFuncGetAttribute, (int *out, int which, struct CUfunc_st *f))
{
    TOLD;
    (void)f;
    *out = which == 0   ? 512
           : which == 1 ? stub.static_shared
           : which == 3 ? 16
           : which == 4 ? 40
           : which == 8 ? stub.max_dynamic
                        : -1;
    return 0;
}

CALL(cuFuncSetAttribute, (struct CUfunc_st * f, int which, int value))
{
    TOLD;
    (void)f;
    trace("attribute %d %d;", which, value);
    return 0;
}

CALL(cuFuncGetParamInfo, (struct CUfunc_st * f, size_t index, size_t *offset, size_t *bytes))
{
    (void)f;
    if (index >= stub.n_params)
        return INVALID_VALUE;
    *offset = 8 * index;
    *bytes = stub.param_bytes[index];
    return 0;
}

#ifndef CUDA_STUB_WITHOUT_LAUNCH
CALL(cuLaunchKernel,
     (struct CUfunc_st * f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
      unsigned bz, unsigned shared, void *stream, void **params, void **extra))
{
    TOLD;
    (void)stream;
    (void)extra;
    if (strcmp(f->name, "kp_compare") == 0) {
        pointer out;
        memcpy(&out, params[5], sizeof(out));
        memcpy(at(out), stub.found, sizeof(stub.found));
        trace("compare;");
        return 0;
    }
    if (strcmp(f->name, "kp_delay") == 0) {
        trace("delay;");
        return 0;
    }
    for (size_t i = 0; i < stub.n_params; i++)
        memcpy(stub.args[i], params[i], stub.param_bytes[i]);
    trace("launch %s %ux%ux%u %ux%ux%u %u;", f->name, gx, gy, gz, bx, by, bz, shared);
    now_ms += 0.25;
    launched = 1;
    return 0;
}
#endif

/* --- NVML -----------------------------------------------------------------------------------
 */

CALL(nvmlInit_v2, (void))
{
    TOLD;
    return 0;
}

CALL(nvmlShutdown, (void))
{
    return 0;
}

CALL(nvmlSystemGetDriverVersion, (char *out, unsigned bytes))
{
    TOLD;
    (void)snprintf(out, bytes, "580.1.2");
    return 0;
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **out))
{
    static char device;
    *out = &device;
    return strcmp(id, stub.pci_id) == 0 ? 0 : 6;
}

CALL(nvmlDeviceGetPowerUsage, (void *d, unsigned *milliwatts))
{
    TOLD;
    (void)d;
    *milliwatts = 345678;
    return 0;
}

CALL(nvmlDeviceGetTotalEnergyConsumption, (void *d, unsigned long long *millijoules))
{
    (void)d;
    *millijoules = 12345678901ULL;
    return 0;
}

CALL(nvmlDeviceGetTemperature, (void *d, int sensor, unsigned *celsius))
{
    (void)d;
    *celsius = sensor == 0 ? 41 : 0;
    return 0;
}

CALL(nvmlDeviceGetClockInfo, (void *d, int clock, unsigned *mhz))
{
    (void)d;
    *mhz = clock == 1 ? 1980 : clock == 2 ? 3201 : 0;
    return 0;
}

/* the newer name only */
CALL(nvmlDeviceGetCurrentClocksEventReasons, (void *d, unsigned long long *reasons))
{
    TOLD;
    (void)d;
    *reasons = 4;
    return 0;
}
