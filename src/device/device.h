/* SPDX-License-Identifier: MIT */
/* What every device runtime offers: one table of functions for each. Layer: device.
 *
 * Three things, in the order of their lives:
 *   runtime   a driver opened at run time (CUDA, OpenCL, fake); lists its devices
 *   device    one device, opened for launches; owned by one thread of one process
 *   compiler  turns source into an image for one device; CUDA's needs no device at all
 * A process that runs candidates is expected to die: nothing here tries to survive a kernel
 * that faults or never returns. Timeouts are the business of whoever started the process. */
#ifndef KP_DEVICE_DEVICE_H
#define KP_DEVICE_DEVICE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_runtime;
struct kp_device;
struct kp_compiler;
struct kp_module; /* a loaded image and one entry point of it */
struct kp_buffer; /* device memory */

enum kp_backend { KP_BACKEND_CUDA, KP_BACKEND_OPENCL, KP_BACKEND_FAKE, KP_BACKEND_COUNT };
/* "cuda", "opencl", "fake". */
const char *kp_backend_name(enum kp_backend b);
bool kp_backend_from_name(const char *name, enum kp_backend *out);

/* What users call devices: "cuda:0", "opencl:0,opencl:1"; without a number it is 0. */
enum { KP_DEVICE_IDS_MAX = 16 };
struct kp_device_ids {
    enum kp_backend backend; /* of all of them */
    size_t n;                /* at least one */
    int index[KP_DEVICE_IDS_MAX];
};
/* Looks for none of them. Errors: KOPT_EUSAGE (no such name, different kinds, one twice, too
 * many). */
kopt_status kp_device_ids_parse(const char *text, struct kp_device_ids *out, kopt_error *err);

struct kp_device_info {
    enum kp_backend backend;
    int index;          /* within its runtime */
    char name[128];     /* "NVIDIA H200" */
    char arch[64];      /* what images are made for: "sm_90"; OpenCL: device version and name */
    char driver[128];   /* driver or platform with version */
    char compiler[128]; /* compiler with version: "NVRTC 13.0" */
    char id[64];        /* PCI address or UUID where there is one, else "" */
    bool is_cpu;        /* computes on the cores that compile, too */
    struct kp_limits limits;
};

/* --- runtime ------------------------------------------------------------------------------ */

/* Open a backend's driver. The library's name can be overridden by the environment:
 * KOPT_CUDA_LIBRARY, KOPT_NVRTC_LIBRARY, KOPT_OPENCL_LIBRARY, KOPT_FAKE_LIBRARY.
 * Errors: KOPT_EENV (no such library or symbol: which file, why, and in the hint what to
 * install), KOPT_EDEVICE (the driver refused), KOPT_ENOMEM. */
kopt_status kp_runtime_open(enum kp_backend b, const struct kp_log *log,
                            struct kp_runtime **out, kopt_error *err);
void kp_runtime_close(struct kp_runtime *rt);
int kp_runtime_n_devices(const struct kp_runtime *rt);
/* Errors: KOPT_ENOTFOUND (index), KOPT_EDEVICE. */
kopt_status kp_runtime_info(struct kp_runtime *rt, int index, struct kp_device_info *out,
                            kopt_error *err);

/* --- compiler ----------------------------------------------------------------------------- */

enum kp_arg_space { KP_SPACE_VALUE, KP_SPACE_GLOBAL, KP_SPACE_SHARED };

/* One kernel argument as a launch needs it. */
struct kp_launch_arg {
    enum kp_arg_space space;
    const void *value;        /* KP_SPACE_VALUE: the bytes, borrowed */
    size_t bytes;             /* of the value, of the buffer, or of the local memory */
    struct kp_buffer *buffer; /* KP_SPACE_GLOBAL; not used by the compiler */
};

struct kp_launch {
    uint32_t grid[3];  /* groups */
    uint32_t block[3]; /* work-items of a group */
    uint32_t shared_bytes;
    const struct kp_launch_arg *args;
    size_t n_args;
};

struct kp_compile_job {
    struct kp_str source;
    /* For messages; its folder is where #include "..." and relative -I options begin. May be
     * NULL: "source", and the working directory. OpenCL compilers take no such folder reliably
     * and change into it during the call, so one thread of a process compiles at a time. */
    const char *path;
    const char *entry;         /* kernel name, as in the source */
    const char *const *macros; /* "BM=64" */
    size_t n_macros;
    const char *const *options; /* the user's compiler flags */
    size_t n_options;
    const struct kp_launch *launch; /* what it will be launched with: sizes only, no buffers.
                                       A runtime that finishes compiling at the first launch
                                       (PoCL) does so for this geometry. NULL: unknown */
    /* Called once compiling is certainly over, before anything of the kernel might run; may be
     * NULL. Same thread. By then `image` and `log_text` are complete: what dies later in this
     * call died in the kernel, and the image can be used all the same. */
    void (*compiled)(void *user);
    void *user;
};

/* `arch` NULL = that of device `index`. A CUDA compiler with an arch needs no driver, only
 * NVRTC. Errors: KOPT_EENV, KOPT_EDEVICE, KOPT_ENOMEM. */
kopt_status kp_compiler_open(enum kp_backend b, int index, const char *arch,
                             const struct kp_log *log, struct kp_compiler **out,
                             kopt_error *err);
void kp_compiler_close(struct kp_compiler *c);
/* Name and version, "NVRTC 13.0". Borrowed. */
const char *kp_compiler_version(const struct kp_compiler *c);
/* Append the image to `image` and the compiler's messages to `log_text` (may be NULL), in which
 * the user's path stands and no temporary one.
 * Errors: KOPT_EINPUT (does not compile: first error line in err), KOPT_ERANGE (the device's
 * limits: err has the numbers), KOPT_EDEVICE, KOPT_ENOMEM. Blocks: up to minutes or for
 * ever. */
kopt_status kp_compile(struct kp_compiler *c, const struct kp_compile_job *job,
                       struct kp_buf *image, struct kp_buf *log_text, kopt_error *err);

/* --- device ------------------------------------------------------------------------------- */

/* Errors: KOPT_ENOTFOUND, KOPT_EDEVICE, KOPT_ENOMEM. The runtime must outlive the device. */
kopt_status kp_device_open(struct kp_runtime *rt, int index, struct kp_device **out,
                           kopt_error *err);
void kp_device_close(struct kp_device *d);
const struct kp_device_info *kp_device_info(const struct kp_device *d);
/* Bytes free and in all; zeros where the runtime does not say. */
void kp_device_memory(struct kp_device *d, uint64_t *free_bytes, uint64_t *total_bytes);

/* Errors: KOPT_EFULL (device memory; err has the numbers), KOPT_EDEVICE. */
kopt_status kp_buffer_new(struct kp_device *d, size_t bytes, struct kp_buffer **out,
                          kopt_error *err);
void kp_buffer_free(struct kp_device *d, struct kp_buffer *b);
size_t kp_buffer_bytes(const struct kp_buffer *b);
/* All block until done. Errors: KOPT_ERANGE (past the end), KOPT_EDEVICE. */
kopt_status kp_buffer_write(struct kp_device *d, struct kp_buffer *b, size_t at,
                            const void *src, size_t n, kopt_error *err);
kopt_status kp_buffer_read(struct kp_device *d, struct kp_buffer *b, size_t at, void *dst,
                           size_t n, kopt_error *err);
kopt_status kp_buffer_fill(struct kp_device *d, struct kp_buffer *b, uint8_t byte,
                           kopt_error *err);

/* What the compiler made of a kernel, -1 where the runtime does not say. */
struct kp_module_info {
    int64_t registers;    /* of a thread */
    int64_t shared_bytes; /* static */
    int64_t local_bytes;  /* of a thread: spills and private arrays */
    int64_t max_threads;  /* of a group, for this kernel */
};

/* Load an image that kp_compile() made for a device of the same arch; `launch` as there.
 * Errors: KOPT_EDEVICE (refused; its log in err), KOPT_ENOTFOUND (no such kernel),
 * KOPT_EINPUT (its arguments are others than the launch's), KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_module_load(struct kp_device *d, const void *image, size_t bytes,
                           const char *entry, const struct kp_launch *launch,
                           struct kp_module **out, kopt_error *err);
void kp_module_unload(struct kp_device *d, struct kp_module *m);
const struct kp_module_info *kp_module_get_info(const struct kp_module *m);

/* Does the launch fit the device and the kernel? Never launches.
 * Errors: KOPT_ERANGE with the numbers ("shared memory 65536 of 49152 bytes"). */
kopt_status kp_launch_check(struct kp_device *d, const struct kp_module *m,
                            const struct kp_launch *l, kopt_error *err);

struct kp_restore {
    struct kp_buffer *dst;
    struct kp_buffer *src; /* NULL: an output, filled with kp_run.poison */
};

struct kp_run {
    const struct kp_launch *launch;
    const struct kp_restore *restore; /* done before each launch, outside the timed part */
    size_t n_restore;
    uint8_t poison; /* the byte of poisoned outputs; 0 stands for 0xFF (NaN, -1). Integers may
                       rightly be -1: a second byte in turn finds what is left out there */
    size_t flush_bytes; /* write this many bytes before each launch; limits.l2_bytes of them
                           stand for the whole cache, whatever that takes; 0 = none */
    unsigned n;         /* launches, one after another */
    double *times_ns;   /* n results on the device's own clock; raw, may be 0 */
    /* Called when the first launch has begun to run; may be NULL. */
    void (*started)(void *user);
    void *user;
};

/* Blocks until all are done. Errors: KOPT_EDEVICE (launch refused, or the kernel faulted: then
 * the device is unusable), KOPT_ERANGE (limits), KOPT_EINPUT (as kp_module_load()),
 * KOPT_ENOMEM. */
kopt_status kp_module_run(struct kp_device *d, struct kp_module *m, const struct kp_run *run,
                          kopt_error *err);

enum kp_number {
    KP_NUM_I8,
    KP_NUM_U8,
    KP_NUM_I16,
    KP_NUM_U16,
    KP_NUM_I32,
    KP_NUM_U32,
    KP_NUM_I64,
    KP_NUM_U64,
    KP_NUM_F16,
    KP_NUM_BF16,
    KP_NUM_F32,
    KP_NUM_F64
}; /* the order of enum kp_elem */

struct kp_compare {
    uint64_t n;     /* elements compared */
    uint64_t n_bad; /* outside the tolerance, NaN where the reference is none, and so on */
    uint64_t n_nan; /* NaN where the reference is not */
    uint64_t first; /* index of the first bad one */
    double got;     /* its values */
    double want;
    double max_error; /* largest |got - want| of all finite pairs; of floats of 32 bits and less
                         it is right to single precision */
};

/* Elementwise: good when |got - want| <= atol + rtol * |want|, or both are equal, or both NaN;
 * beside anything else an infinity or NaN is bad. Integers are compared exactly when both
 * tolerances are 0. On the device where it can. Errors: KOPT_ERANGE (sizes differ),
 * KOPT_EDEVICE. */
kopt_status kp_buffer_compare(struct kp_device *d, struct kp_buffer *got,
                              struct kp_buffer *want, enum kp_number type, double rtol,
                              double atol, struct kp_compare *out, kopt_error *err);
/* The same over host memory; the plain reference. */
void kp_compare_host(const void *got, const void *want, size_t n, enum kp_number type,
                     double rtol, double atol, struct kp_compare *out);
size_t kp_number_bytes(enum kp_number type);

/* --- sensors ------------------------------------------------------------------------------ */

struct kp_sensors { /* NaN where unknown */
    double power_w;
    double energy_j; /* a counter: differences mean something */
    double temp_c;
    double sm_mhz;
    double mem_mhz;
    int64_t throttle; /* NVML's reasons (kopt_throttle and 1, it was idle), 0 = none, -1 = not
                         known */
};
/* NVML where it is there; nothing is known elsewhere. */
void kp_device_sensors(struct kp_device *d, struct kp_sensors *out);

#endif
