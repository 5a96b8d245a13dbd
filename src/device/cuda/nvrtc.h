/* SPDX-License-Identifier: MIT */
/* NVRTC, NVIDIA's compiler as a library: its functions, declared by us and found at run time.
 * Layer: device. It needs neither a driver nor a GPU. */
#ifndef KP_DEVICE_CUDA_NVRTC_H
#define KP_DEVICE_CUDA_NVRTC_H

#include "base/error.h"
#include "base/log.h"
#include "os/dl.h"

#include <stdbool.h>
#include <stddef.h>

#ifndef KP_NVRTC_REAL_TYPES
typedef int kp_nvrtc_result;
typedef struct kp_nvrtc_program_st *kp_nvrtc_program;
#endif

#define KP_NVRTC_RESULTS(X)               \
    X(SUCCESS, 0)                         \
    X(ERROR_OUT_OF_MEMORY, 1)             \
    X(ERROR_INVALID_OPTION, 5)            \
    X(ERROR_COMPILATION, 6)               \
    X(ERROR_BUILTIN_OPERATION_FAILURE, 7) \
    X(ERROR_NAME_EXPRESSION_NOT_VALID, 10)

enum {
#define X(name, value) KP_NVRTC_##name = (value),
    KP_NVRTC_RESULTS(X)
#undef X
};

/* R: needed; O: may be absent, the pointer is NULL then. need, field and symbol, type, params
 */
#define KP_NVRTC_FUNCTIONS(X)                                                             \
    X(R, nvrtcVersion, kp_nvrtc_result, (int *major, int *minor))                         \
    X(R, nvrtcGetErrorString, const char *, (kp_nvrtc_result rc))                         \
    X(R, nvrtcCreateProgram, kp_nvrtc_result,                                             \
      (kp_nvrtc_program * out, const char *source, const char *name, int n_headers,       \
       const char *const *headers, const char *const *header_names))                      \
    X(R, nvrtcDestroyProgram, kp_nvrtc_result, (kp_nvrtc_program * p))                    \
    X(R, nvrtcCompileProgram, kp_nvrtc_result,                                            \
      (kp_nvrtc_program p, int n_options, const char *const *options))                    \
    X(R, nvrtcGetCUBINSize, kp_nvrtc_result, (kp_nvrtc_program p, size_t * bytes))        \
    X(R, nvrtcGetCUBIN, kp_nvrtc_result, (kp_nvrtc_program p, char *out))                 \
    X(R, nvrtcGetProgramLogSize, kp_nvrtc_result, (kp_nvrtc_program p, size_t * bytes))   \
    X(R, nvrtcGetProgramLog, kp_nvrtc_result, (kp_nvrtc_program p, char *out))            \
    X(R, nvrtcAddNameExpression, kp_nvrtc_result, (kp_nvrtc_program p, const char *name)) \
    X(R, nvrtcGetLoweredName, kp_nvrtc_result,                                            \
      (kp_nvrtc_program p, const char *name, const char **out))                           \
    X(O, nvrtcGetNumSupportedArchs, kp_nvrtc_result, (int *n))                            \
    X(O, nvrtcGetSupportedArchs, kp_nvrtc_result, (int *archs))

struct kp_nvrtc {
    struct kp_dl *dl;
    int version[2];    /* major, minor */
    char *includes[2]; /* folders of CUDA's own headers, NULL where there is none: cuda_fp16.h,
                          and the C++ library that newer ones of them include */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(need, field, type, params) type(*field) params;
    KP_NVRTC_FUNCTIONS(X)
#undef X
};

/* Where it is looked for: KOPT_NVRTC_LIBRARY (a file, or a folder such as a toolkit's or
 * Python's site-packages), the loader's path, /usr/local/cuda. On failure nothing is held.
 * Errors: KOPT_EENV (no library, a missing symbol), KOPT_ENOMEM. */
kopt_status kp_nvrtc_open(const struct kp_log *log, struct kp_nvrtc *out, kopt_error *err);
/* Safe on a zeroed one. */
void kp_nvrtc_close(struct kp_nvrtc *n);

/* "NVRTC 13.0" */
void kp_nvrtc_version_text(const struct kp_nvrtc *n, char *out, size_t bytes);

/* Can it make code for compute capability `cc` (90)? The range that it knows goes to `range`
 * ("75 to 121"); true, and range "", where it is too old to say. */
bool kp_nvrtc_knows(const struct kp_nvrtc *n, int cc, char *range, size_t range_bytes);

#endif
