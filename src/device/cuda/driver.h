/* SPDX-License-Identifier: MIT */
/* The CUDA driver's functions, declared by us and found at run time. Layer: device.
 *
 * The types are those of <cuda.h> as far as calls go: handles are pointers to the same
 * incomplete structs, enumerations are ints. A test that has the real header checks every line
 * of it (it defines KP_CUDA_REAL_TYPES and maps the types below to the header's own). */
#ifndef KP_DEVICE_CUDA_DRIVER_H
#define KP_DEVICE_CUDA_DRIVER_H

#include "base/error.h"
#include "base/log.h"
#include "os/dl.h"

#include <stddef.h>

#ifndef KP_CUDA_REAL_TYPES
typedef int kp_cu_result;
typedef int kp_cu_device;
typedef int kp_cu_device_attribute;
typedef int kp_cu_function_attribute;
typedef int kp_cu_jit_option;
typedef unsigned long long kp_cu_pointer;
typedef struct CUctx_st *kp_cu_context;
typedef struct CUmod_st *kp_cu_module;
typedef struct CUfunc_st *kp_cu_function;
typedef struct CUstream_st *kp_cu_stream;
typedef struct CUevent_st *kp_cu_event;
#endif

/* name of the constant in <cuda.h> without its prefix, value */
#define KP_CUDA_RESULTS(X)                \
    X(SUCCESS, 0)                         \
    X(ERROR_INVALID_VALUE, 1)             \
    X(ERROR_OUT_OF_MEMORY, 2)             \
    X(ERROR_STUB_LIBRARY, 34)             \
    X(ERROR_DEVICE_UNAVAILABLE, 46)       \
    X(ERROR_NO_DEVICE, 100)               \
    X(ERROR_INVALID_IMAGE, 200)           \
    X(ERROR_NO_BINARY_FOR_GPU, 209)       \
    X(ERROR_ECC_UNCORRECTABLE, 214)       \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222) \
    X(ERROR_NOT_FOUND, 500)               \
    X(ERROR_ILLEGAL_ADDRESS, 700)         \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701) \
    X(ERROR_LAUNCH_TIMEOUT, 702)          \
    X(ERROR_CONTEXT_IS_DESTROYED, 709)    \
    X(ERROR_ASSERT, 710)                  \
    X(ERROR_HARDWARE_STACK_ERROR, 714)    \
    X(ERROR_ILLEGAL_INSTRUCTION, 715)     \
    X(ERROR_MISALIGNED_ADDRESS, 716)      \
    X(ERROR_INVALID_ADDRESS_SPACE, 717)   \
    X(ERROR_INVALID_PC, 718)              \
    X(ERROR_LAUNCH_FAILED, 719)           \
    X(ERROR_SYSTEM_NOT_READY, 802)        \
    X(ERROR_SYSTEM_DRIVER_MISMATCH, 803)  \
    X(ERROR_UNKNOWN, 999)

#define KP_CUDA_DEVICE_ATTRIBUTES(X)  \
    X(MAX_THREADS_PER_BLOCK, 1)       \
    X(MAX_BLOCK_DIM_X, 2)             \
    X(MAX_BLOCK_DIM_Y, 3)             \
    X(MAX_BLOCK_DIM_Z, 4)             \
    X(MAX_GRID_DIM_X, 5)              \
    X(MAX_GRID_DIM_Y, 6)              \
    X(MAX_GRID_DIM_Z, 7)              \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8) \
    X(WARP_SIZE, 10)                  \
    X(MAX_REGISTERS_PER_BLOCK, 12)    \
    X(CLOCK_RATE, 13)                 \
    X(MULTIPROCESSOR_COUNT, 16)       \
    X(L2_CACHE_SIZE, 38)              \
    X(COMPUTE_CAPABILITY_MAJOR, 75)   \
    X(COMPUTE_CAPABILITY_MINOR, 76)   \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

#define KP_CUDA_FUNCTION_ATTRIBUTES(X) \
    X(MAX_THREADS_PER_BLOCK, 0)        \
    X(SHARED_SIZE_BYTES, 1)            \
    X(LOCAL_SIZE_BYTES, 3)             \
    X(NUM_REGS, 4)                     \
    X(MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

enum {
#define X(name, value) KP_CUDA_##name = (value),
    KP_CUDA_RESULTS(X)
#undef X
};

enum {
#define X(name, value) KP_CU_DEVICE_##name = (value),
    KP_CUDA_DEVICE_ATTRIBUTES(X)
#undef X
};

enum {
#define X(name, value) KP_CU_FUNC_##name = (value),
    KP_CUDA_FUNCTION_ATTRIBUTES(X)
#undef X
};

enum {
    KP_CU_JIT_ERROR_LOG_BUFFER = 5,
    KP_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    KP_CU_CTX_SCHED_SPIN = 1,
    KP_CU_STREAM_NON_BLOCKING = 1,
    KP_CU_EVENT_DEFAULT = 0
};

/* R: kopt does not work without it; O: may be absent, the pointer is NULL then.
 * need, field, symbol, symbol of older drivers with the same meaning (or NULL), parameters */
#define KP_CUDA_FUNCTIONS(X)                                                                 \
    X(R, cuInit, "cuInit", NULL, (unsigned int flags))                                       \
    X(R, cuDriverGetVersion, "cuDriverGetVersion", NULL, (int *version))                     \
    X(R, cuGetErrorName, "cuGetErrorName", NULL, (kp_cu_result rc, const char **text))       \
    X(R, cuGetErrorString, "cuGetErrorString", NULL, (kp_cu_result rc, const char **text))   \
    X(R, cuDeviceGetCount, "cuDeviceGetCount", NULL, (int *n))                               \
    X(R, cuDeviceGet, "cuDeviceGet", NULL, (kp_cu_device * out, int ordinal))                \
    X(R, cuDeviceGetName, "cuDeviceGetName", NULL, (char *out, int bytes, kp_cu_device d))   \
    X(R, cuDeviceGetAttribute, "cuDeviceGetAttribute", NULL,                                 \
      (int *out, kp_cu_device_attribute which, kp_cu_device d))                              \
    X(R, cuDeviceTotalMem, "cuDeviceTotalMem_v2", NULL, (size_t * out, kp_cu_device d))      \
    X(R, cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", NULL,                                   \
      (char *out, int bytes, kp_cu_device d))                                                \
    X(R, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", NULL,                         \
      (kp_cu_context * out, kp_cu_device d))                                                 \
    X(R, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2",                          \
      "cuDevicePrimaryCtxRelease", (kp_cu_device d))                                         \
    X(O, cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2",                        \
      "cuDevicePrimaryCtxSetFlags", (kp_cu_device d, unsigned int flags))                    \
    X(R, cuCtxSetCurrent, "cuCtxSetCurrent", NULL, (kp_cu_context c))                        \
    X(R, cuMemGetInfo, "cuMemGetInfo_v2", NULL, (size_t * free_bytes, size_t * total_bytes)) \
    X(R, cuMemAlloc, "cuMemAlloc_v2", NULL, (kp_cu_pointer * out, size_t bytes))             \
    X(R, cuMemFree, "cuMemFree_v2", NULL, (kp_cu_pointer p))                                 \
    X(R, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", NULL,                                    \
      (kp_cu_pointer dst, const void *src, size_t bytes, kp_cu_stream s))                    \
    X(R, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", NULL,                                    \
      (void *dst, kp_cu_pointer src, size_t bytes, kp_cu_stream s))                          \
    X(R, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", NULL,                                    \
      (kp_cu_pointer dst, kp_cu_pointer src, size_t bytes, kp_cu_stream s))                  \
    X(R, cuMemsetD8Async, "cuMemsetD8Async", NULL,                                           \
      (kp_cu_pointer p, unsigned char byte, size_t n, kp_cu_stream s))                       \
    X(R, cuStreamCreate, "cuStreamCreate", NULL, (kp_cu_stream * out, unsigned int flags))   \
    X(R, cuStreamDestroy, "cuStreamDestroy_v2", NULL, (kp_cu_stream s))                      \
    X(R, cuStreamSynchronize, "cuStreamSynchronize", NULL, (kp_cu_stream s))                 \
    X(R, cuEventCreate, "cuEventCreate", NULL, (kp_cu_event * out, unsigned int flags))      \
    X(R, cuEventDestroy, "cuEventDestroy_v2", NULL, (kp_cu_event e))                         \
    X(R, cuEventRecord, "cuEventRecord", NULL, (kp_cu_event e, kp_cu_stream s))              \
    X(R, cuEventSynchronize, "cuEventSynchronize", NULL, (kp_cu_event e))                    \
    X(R, cuEventElapsedTime, "cuEventElapsedTime", "cuEventElapsedTime_v2",                  \
      (float *ms, kp_cu_event from, kp_cu_event to))                                         \
    X(R, cuModuleLoadDataEx, "cuModuleLoadDataEx", NULL,                                     \
      (kp_cu_module * out, const void *image, unsigned int n, kp_cu_jit_option *options,     \
       void **values))                                                                       \
    X(R, cuModuleUnload, "cuModuleUnload", NULL, (kp_cu_module m))                           \
    X(R, cuModuleGetFunction, "cuModuleGetFunction", NULL,                                   \
      (kp_cu_function * out, kp_cu_module m, const char *name))                              \
    X(R, cuFuncGetAttribute, "cuFuncGetAttribute", NULL,                                     \
      (int *out, kp_cu_function_attribute which, kp_cu_function f))                          \
    X(R, cuFuncSetAttribute, "cuFuncSetAttribute", NULL,                                     \
      (kp_cu_function f, kp_cu_function_attribute which, int value))                         \
    X(O, cuFuncGetParamInfo, "cuFuncGetParamInfo", NULL,                                     \
      (kp_cu_function f, size_t index, size_t * offset, size_t * bytes))                     \
    X(R, cuLaunchKernel, "cuLaunchKernel", NULL,                                             \
      (kp_cu_function f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,      \
       unsigned int block_x, unsigned int block_y, unsigned int block_z,                     \
       unsigned int shared_bytes, kp_cu_stream s, void **params, void **extra))

struct kp_cuda_driver {
    struct kp_dl *dl;
    int version; /* 13000 = CUDA 13.0, the newest that the driver knows */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(need, field, symbol, older, params) kp_cu_result(*field) params;
    KP_CUDA_FUNCTIONS(X)
#undef X
};

/* Open libcuda and initialise it. On failure nothing is held and *out is zeroed.
 * Errors: KOPT_EENV (no library, a missing symbol, too old), KOPT_EDEVICE (the driver refused,
 * or knows no device), KOPT_ENOMEM. */
kopt_status kp_cuda_driver_open(const struct kp_log *log, struct kp_cuda_driver *out,
                                kopt_error *err);
/* Safe on a zeroed one. */
void kp_cuda_driver_close(struct kp_cuda_driver *drv);

/* "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"; `out` has `bytes` bytes. */
void kp_cuda_error_text(const struct kp_cuda_driver *drv, kp_cu_result rc, char *out,
                        size_t bytes);

#endif
