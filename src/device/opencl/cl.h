/* SPDX-License-Identifier: MIT */
/* What the files of the OpenCL back end share. Layer: device. */
#ifndef KP_DEVICE_OPENCL_CL_H
#define KP_DEVICE_OPENCL_CL_H

#define CL_TARGET_OPENCL_VERSION 120

#include "base/buf.h"
#include "device/ops.h"
#include "os/dl.h"

#include <CL/cl.h>

/* --- the loader's library ------------------------------------------------------------------
 */

#define KP_CL_SYMBOLS(X)         \
    X(clBuildProgram)            \
    X(clCompileProgram)          \
    X(clCreateBuffer)            \
    X(clCreateCommandQueue)      \
    X(clCreateContext)           \
    X(clCreateKernel)            \
    X(clCreateProgramWithBinary) \
    X(clCreateProgramWithSource) \
    X(clCreateUserEvent)         \
    X(clEnqueueCopyBuffer)       \
    X(clEnqueueFillBuffer)       \
    X(clEnqueueMapBuffer)        \
    X(clEnqueueNDRangeKernel)    \
    X(clEnqueueReadBuffer)       \
    X(clEnqueueUnmapMemObject)   \
    X(clEnqueueWriteBuffer)      \
    X(clFinish)                  \
    X(clFlush)                   \
    X(clGetDeviceIDs)            \
    X(clGetDeviceInfo)           \
    X(clGetEventInfo)            \
    X(clGetEventProfilingInfo)   \
    X(clGetKernelArgInfo)        \
    X(clGetKernelInfo)           \
    X(clGetKernelWorkGroupInfo)  \
    X(clGetPlatformIDs)          \
    X(clGetPlatformInfo)         \
    X(clGetProgramBuildInfo)     \
    X(clGetProgramInfo)          \
    X(clReleaseCommandQueue)     \
    X(clReleaseContext)          \
    X(clReleaseEvent)            \
    X(clReleaseKernel)           \
    X(clReleaseMemObject)        \
    X(clReleaseProgram)          \
    X(clSetEventCallback)        \
    X(clSetKernelArg)            \
    X(clSetUserEventStatus)      \
    X(clWaitForEvents)

struct kp_cl_api {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    KP_CL_SYMBOLS(X)
#undef X
};

struct kp_cl_found {
    cl_platform_id platform;
    cl_device_id device;
    cl_device_type type;
    bool pocl;
};

/* The library and all devices of all platforms: GPUs first, then accelerators, then CPUs. */
struct kp_cl_lib {
    struct kp_dl *dl;
    struct kp_cl_api api;
    struct kp_cl_found *found;
    size_t n_found;
};

/* Errors: KOPT_EENV (no library, no driver behind it), KOPT_EDEVICE, KOPT_ENOMEM. Then nothing
 * is held. */
kopt_status kp_cl_lib_open(struct kp_cl_lib *lib, const struct kp_log *log, kopt_error *err);
void kp_cl_lib_close(struct kp_cl_lib *lib);

/* "CL_OUT_OF_RESOURCES"; "OpenCL error -1234" for codes that no header names. */
void kp_cl_error_name(cl_int rc, char out[64]);
/* "what was being done: CL_..." with the status that fits the code. */
__attribute__((format(printf, 3, 4))) kopt_status kp_cl_fail(kopt_error *err, cl_int rc,
                                                             const char *fmt, ...);

/* --- properties ----------------------------------------------------------------------------
 */

kopt_status kp_cl_info(const struct kp_cl_lib *lib, int index, struct kp_device_info *out,
                       kopt_error *err);
/* Bytes of host memory that could be had now; 0 = unknown. */
uint64_t kp_cl_host_available(void);

/* --- a device in use -----------------------------------------------------------------------
 */

struct kp_cl_session {
    const struct kp_cl_lib *lib;
    const struct kp_cl_api *cl; /* lib's */
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in order, with profiling */
    bool pocl;              /* compiles at the first launch; runs on this process's memory */
    bool host;              /* a CPU: its buffers are memory of ours */
    uint64_t max_alloc;     /* bytes of one buffer */
};

kopt_status kp_cl_session_open(struct kp_cl_session *s, const struct kp_cl_lib *lib, int index,
                               kopt_error *err);
void kp_cl_session_close(struct kp_cl_session *s);

/* --- memory --------------------------------------------------------------------------------
 */

enum kp_cl_edge {
    KP_CL_GUARDED, /* what runs past the end by a cache line meets a page that faults */
    KP_CL_SLACK    /* 64 KiB of zeros on both sides */
};

/* Device memory. On a CPU it lies in a mapping of ours, so that running out of memory is seen
 * when it is asked for and pages that nobody touches cost nothing. */
struct kp_cl_memory {
    cl_mem mem;
    unsigned char *ptr; /* on a CPU where it begins, else NULL */
    void *map;
    size_t map_bytes;
};

/* Zeros on a CPU, undefined elsewhere. Errors: KOPT_EFULL with the numbers, KOPT_EDEVICE. */
kopt_status kp_cl_memory_new(struct kp_cl_session *s, size_t bytes, enum kp_cl_edge edge,
                             struct kp_cl_memory *out, kopt_error *err);
void kp_cl_memory_free(struct kp_cl_session *s, struct kp_cl_memory *m);

/* --- programs ------------------------------------------------------------------------------
 */

/* A source as the driver gets it. */
struct kp_cl_text {
    struct kp_buf source;         /* macros as #define lines, then the user's text */
    struct kp_buf options;        /* one line */
    struct kp_buf binary_options; /* those of them that are for binaries, too */
    struct kp_buf folder; /* where relative includes begin; "" = the working directory */
    int lead_lines;       /* lines of the source before the user's */
};

void kp_cl_text_deinit(struct kp_cl_text *t);
/* Errors: KOPT_EUSAGE (a macro or option that cannot be passed on), KOPT_ENOMEM. */
kopt_status kp_cl_text_make(const struct kp_compile_job *job, bool pocl, struct kp_cl_text *out,
                            kopt_error *err);

/* Append the log, with the user's path and lines in place of what compilers make up that heed
 * no #line. `path` NULL: "source". */
void kp_cl_log_clean(struct kp_str log, const char *path, int lead_lines, struct kp_buf *out);
/* The first error of such a log as message, file, line and excerpt. KOPT_EINPUT. */
kopt_status kp_cl_log_error(struct kp_str log, const struct kp_compile_job *job,
                            kopt_error *err);

/* The first warning that a macro of the job's is defined anew, as an error: the value would not
 * be the one being tuned. KOPT_OK where there is none, else KOPT_EINPUT. */
kopt_status kp_cl_log_redefined(struct kp_str log, const struct kp_compile_job *job,
                                kopt_error *err);

/* Build in the text's folder. `job` (for messages) and `log_text` may be NULL.
 * Errors: KOPT_EINPUT, KOPT_EIO (the folder), KOPT_EDEVICE, KOPT_ENOMEM. */
kopt_status kp_cl_build(struct kp_cl_session *s, const struct kp_cl_text *text,
                        const struct kp_compile_job *job, cl_program *out,
                        struct kp_buf *log_text, kopt_error *err);
/* The same as far as PoCL's front end goes: its code for LLVM, appended to `ir`; nothing where
 * this PoCL keeps it elsewhere. Errors as kp_cl_build(). */
kopt_status kp_cl_build_ir(struct kp_cl_session *s, const struct kp_cl_text *text,
                           const struct kp_compile_job *job, struct kp_buf *ir,
                           struct kp_buf *log_text, kopt_error *err);
/* Build what kp_cl_binary() or kp_cl_build_ir() gave. Errors: KOPT_EDEVICE, KOPT_ENOMEM. */
kopt_status kp_cl_build_binary(struct kp_cl_session *s, struct kp_str binary,
                               const char *options, cl_program *out, kopt_error *err);
/* A program's binary, appended. */
kopt_status kp_cl_binary(struct kp_cl_session *s, cl_program program, struct kp_buf *out,
                         kopt_error *err);

/* An image: a binary with its options or, where `binary` is empty, the whole text. */
void kp_cl_image_write(struct kp_buf *image, const struct kp_cl_text *text,
                       struct kp_str binary);
/* *text is the caller's (deinit it); a binary is borrowed, and empty where it is a source.
 * Errors: KOPT_EDEVICE (no image of ours), KOPT_ENOMEM. */
kopt_status kp_cl_image_read(const void *image, size_t bytes, struct kp_cl_text *text,
                             struct kp_str *binary, kopt_error *err);

/* --- built-in functions (PoCL) -------------------------------------------------------------
 */

/* A directive of the compiler's header, or a declaration with the name that it declares. */
struct kp_cl_builtin {
    struct kp_str text;
    struct kp_str name; /* "": kept for every source */
};

/* Zeroed: none are known, and sources are built as they are. */
struct kp_cl_builtins {
    struct kp_buf text; /* what the pieces point into */
    struct kp_cl_builtin *pieces;
    size_t n;
    size_t cap;
};

/* Find and read the declarations that this compiler puts before every source; none where that
 * is not PoCL, or they cannot be found. Takes a build of an empty source. */
void kp_cl_builtins_open(struct kp_cl_session *s, struct kp_cl_builtins *b);
void kp_cl_builtins_close(struct kp_cl_builtins *b);
/* The text with just the declarations that it needs, to be built in place of `text`: same code,
 * sooner. *out is the caller's (kp_cl_text_deinit). False, and nothing in *out, where it might
 * need others; when the build of it fails, build `text`. */
bool kp_cl_builtins_before(const struct kp_cl_builtins *b, const struct kp_cl_text *text,
                           struct kp_cl_text *out);

/* --- kernels -------------------------------------------------------------------------------
 */

struct kp_cl_kernel {
    cl_kernel kernel;
    char name[256];
    cl_uint n_args;
    size_t group[3]; /* the group size that it demands; 0 = any */
    struct kp_module_info info;
};

/* Errors: KOPT_ENOTFOUND (the hint lists the kernels there are), KOPT_EDEVICE. */
kopt_status kp_cl_kernel_new(struct kp_cl_session *s, cl_program program, const char *entry,
                             struct kp_cl_kernel *out, kopt_error *err);
void kp_cl_kernel_free(struct kp_cl_session *s, struct kp_cl_kernel *k);
/* Do the kernel's declared arguments and group size and the device's limits allow this launch?
 * Errors: KOPT_EINPUT (arguments), KOPT_ERANGE (sizes). */
kopt_status kp_cl_kernel_check(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                               const struct kp_limits *limits, const struct kp_launch *l,
                               kopt_error *err);
/* `mems` by argument index; looked at where the argument is global memory. */
kopt_status kp_cl_set_args(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                           const struct kp_launch *l, const cl_mem *mems, kopt_error *err);
/* `after` may be NULL. *event is the caller's. */
kopt_status kp_cl_enqueue(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                          const struct kp_launch *l, cl_event after, cl_event *event,
                          kopt_error *err);
/* Wait for the event; what went wrong on the device is in err. */
kopt_status kp_cl_wait(struct kp_cl_session *s, cl_event event, const char *doing,
                       kopt_error *err);

/* --- kernels of our own --------------------------------------------------------------------
 */

struct kp_cl_helper {
    cl_program program; /* NULL: not made */
    struct kp_cl_kernel kernel;
    size_t group; /* work-items */
};

/* `source`: pieces, the last one NULL. Errors: KOPT_EINPUT (this device cannot have it),
 * KOPT_EDEVICE, KOPT_ENOMEM. */
kopt_status kp_cl_helper_make(struct kp_cl_session *s, const struct kp_limits *limits,
                              const char *const source[], const char *entry,
                              struct kp_cl_helper *out, kopt_error *err);
void kp_cl_helper_free(struct kp_cl_session *s, struct kp_cl_helper *h);

/* Two buffers of n elements. */
struct kp_cl_pair {
    const struct kp_cl_memory *got;
    const struct kp_cl_memory *want;
    size_t n;
    enum kp_number type;
    double rtol;
    double atol;
};

/* One kernel for each type, made when first needed; zeroed = none yet. */
struct kp_cl_compare {
    struct kp_cl_helper helpers[KP_NUM_F64 + 1];
    bool tried[KP_NUM_F64 + 1];
};

/* Compare a CPU's memory where it lies. Errors: KOPT_EDEVICE. */
kopt_status kp_cl_compare_host(struct kp_cl_session *s, const struct kp_cl_pair *c,
                               struct kp_compare *out, kopt_error *err);
/* Compare with a kernel. Errors: KOPT_ENOTFOUND (there is no such kernel for this device),
 * KOPT_EFULL, KOPT_EDEVICE, KOPT_ENOMEM. */
kopt_status kp_cl_compare_kernel(struct kp_cl_session *s, const struct kp_limits *limits,
                                 const struct kp_cl_pair *c, struct kp_cl_compare *k,
                                 struct kp_compare *out, kopt_error *err);
void kp_cl_compare_deinit(struct kp_cl_session *s, struct kp_cl_compare *k);

/* --- caches --------------------------------------------------------------------------------
 */

/* What is read and written to empty the caches; zeroed = nothing yet. */
struct kp_cl_flush {
    size_t bytes;
    unsigned char *lines;       /* a CPU's */
    struct kp_cl_helper helper; /* all others' */
    struct kp_cl_memory memory;
};

/* Have what kp_cl_flush() needs for so many bytes. Errors: KOPT_EFULL, KOPT_EDEVICE. */
kopt_status kp_cl_flush_prepare(struct kp_cl_session *s, const struct kp_limits *limits,
                                size_t bytes, struct kp_cl_flush *f, kopt_error *err);
/* Read and write `bytes` bytes after what is queued and before what will be. */
kopt_status kp_cl_flush(struct kp_cl_session *s, struct kp_cl_flush *f, size_t bytes,
                        kopt_error *err);
void kp_cl_flush_deinit(struct kp_cl_session *s, struct kp_cl_flush *f);
/* Drop these bytes from every cache of this machine: false where it has no instruction for it.
 */
bool kp_cl_flush_lines(const unsigned char *ptr, size_t bytes);

/* --- the parts of the table ----------------------------------------------------------------
 */

kopt_status kp_cl_compiler_open(int index, const char *arch, const struct kp_log *log,
                                struct kp_compiler **out, kopt_error *err);
void kp_cl_compiler_close(struct kp_compiler *base);
const char *kp_cl_compiler_version(const struct kp_compiler *base);
kopt_status kp_cl_compile(struct kp_compiler *base, const struct kp_compile_job *job,
                          struct kp_buf *image, struct kp_buf *log_text, kopt_error *err);

#endif
