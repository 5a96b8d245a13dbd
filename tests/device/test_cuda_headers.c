/* SPDX-License-Identifier: MIT */
/* Our declarations of the CUDA driver and NVRTC against their real headers, where a toolkit is
 * installed. What is wrong does not compile. */
#include <cuda.h>
#include <stdio.h>

/* Versions that are known to declare all that we use. */
#if CUDA_VERSION < 12040 || CUDA_VERSION >= 14000

int main(void)
{
    (void)printf("skipped: cuda.h of version %d\n", CUDA_VERSION);
    return 77;
}

#else

#    include <nvrtc.h>

#    define KP_CUDA_REAL_TYPES
#    define kp_cu_result             CUresult
#    define kp_cu_device             CUdevice
#    define kp_cu_device_attribute   CUdevice_attribute
#    define kp_cu_function_attribute CUfunction_attribute
#    define kp_cu_jit_option         CUjit_option
#    define kp_cu_pointer            CUdeviceptr
#    define kp_cu_context            CUcontext
#    define kp_cu_module             CUmodule
#    define kp_cu_function           CUfunction
#    define kp_cu_stream             CUstream
#    define kp_cu_event              CUevent
#    include "device/cuda/driver.h"

#    define KP_NVRTC_REAL_TYPES
#    define kp_nvrtc_result  nvrtcResult
#    define kp_nvrtc_program nvrtcProgram
#    include "device/cuda/nvrtc.h"

#    include <string.h>

/* the types that driver.h uses where the header is not there */
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUdevice) == sizeof(int), "int");
_Static_assert(sizeof(CUdevice_attribute) == sizeof(int), "int");
_Static_assert(sizeof(CUfunction_attribute) == sizeof(int), "int");
_Static_assert(sizeof(CUjit_option) == sizeof(int) && sizeof(nvrtcResult) == sizeof(int),
               "int");
_Static_assert(__builtin_types_compatible_p(CUdeviceptr, unsigned long long), "pointer");
_Static_assert(__builtin_types_compatible_p(CUcontext, struct CUctx_st *), "context");
_Static_assert(__builtin_types_compatible_p(CUmodule, struct CUmod_st *), "module");
_Static_assert(__builtin_types_compatible_p(CUfunction, struct CUfunc_st *), "function");
_Static_assert(__builtin_types_compatible_p(CUstream, struct CUstream_st *), "stream");
_Static_assert(__builtin_types_compatible_p(CUevent, struct CUevent_st *), "event");
_Static_assert(sizeof(nvrtcProgram) == sizeof(void *), "program");

#    define X(name, value) _Static_assert((int)CUDA_##name == (value), #    name);
KP_CUDA_RESULTS(X)
#    undef X
#    define X(name, value) _Static_assert((int)CU_DEVICE_ATTRIBUTE_##name == (value), #    name);
KP_CUDA_DEVICE_ATTRIBUTES(X)
#    undef X
#    define X(name, value) _Static_assert((int)CU_FUNC_ATTRIBUTE_##name == (value), #    name);
KP_CUDA_FUNCTION_ATTRIBUTES(X)
#    undef X
_Static_assert((int)CU_JIT_ERROR_LOG_BUFFER == KP_CU_JIT_ERROR_LOG_BUFFER, "option");
_Static_assert((int)CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == KP_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
               "option");
_Static_assert((int)CU_CTX_SCHED_SPIN == KP_CU_CTX_SCHED_SPIN, "flag");
_Static_assert((int)CU_STREAM_NON_BLOCKING == KP_CU_STREAM_NON_BLOCKING, "flag");
_Static_assert((int)CU_EVENT_DEFAULT == KP_CU_EVENT_DEFAULT, "flag");
#    define X(name, value) _Static_assert((int)NVRTC_##name == (value), #    name);
KP_NVRTC_RESULTS(X)
#    undef X

/* Functions: <cuda.h> maps a name to its versioned one by a macro, and so the names in our
 * list, which are the plain ones, arrive here as the header's choice. */
static const struct kp_cuda_driver *driver;
static const struct kp_nvrtc *nvrtc;
#    define X(need, field, symbol, older, params)                                        \
        _Static_assert(                                                                  \
            __builtin_types_compatible_p(__typeof__(&field), __typeof__(driver->field)), \
            symbol);
KP_CUDA_FUNCTIONS(X)
#    undef X
#    define X(need, field, type, params)                                                \
        _Static_assert(                                                                 \
            __builtin_types_compatible_p(__typeof__(&field), __typeof__(nvrtc->field)), \
            #field);
KP_NVRTC_FUNCTIONS(X)
#    undef X

/* Is our symbol the one that the header would call? What differs is said to be so on purpose.
 */
#    define TEXT2(x) #    x
#    define TEXT(x)  TEXT2(x)

static int same_symbol(const char *theirs, const char *ours, const char *older)
{
    return strcmp(theirs, ours) == 0 || (older && strcmp(theirs, older) == 0);
}

int main(void)
{
    int wrong = 0;
#    define X(need, field, symbol, older, params) \
        wrong += !same_symbol(TEXT(field), symbol, older);
    KP_CUDA_FUNCTIONS(X)
#    undef X
    (void)driver;
    (void)nvrtc;
    return wrong;
}

#endif
