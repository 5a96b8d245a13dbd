/* SPDX-License-Identifier: MIT */
/* The table behind device.h, for the back ends only. Layer: device.
 *
 * Each back end (cuda/, opencl/, fake/) exports one const table through one function. The
 * common part (device.c) checks arguments and sizes and sets the `ops`, `log` and `bytes`
 * below; an entry gets only sane ones. An entry marked optional may be NULL. */
#ifndef KP_DEVICE_OPS_H
#define KP_DEVICE_OPS_H

#include "device/device.h"

struct kp_runtime_ops {
    const char *name;
    kopt_status (*open)(const struct kp_log *log, struct kp_runtime **out, kopt_error *err);
    void (*close)(struct kp_runtime *rt);
    int (*n_devices)(const struct kp_runtime *rt);
    kopt_status (*info)(struct kp_runtime *rt, int index, struct kp_device_info *out,
                        kopt_error *err);
    kopt_status (*compiler_open)(int index, const char *arch, const struct kp_log *log,
                                 struct kp_compiler **out, kopt_error *err);
    void (*compiler_close)(struct kp_compiler *c);
    const char *(*compiler_version)(const struct kp_compiler *c);
    kopt_status (*compile)(struct kp_compiler *c, const struct kp_compile_job *job,
                           struct kp_buf *image, struct kp_buf *log_text, kopt_error *err);
    kopt_status (*device_open)(struct kp_runtime *rt, int index, struct kp_device **out,
                               kopt_error *err);
    void (*device_close)(struct kp_device *d);
    void (*memory)(struct kp_device *d, uint64_t *free_bytes, uint64_t *total_bytes);
    kopt_status (*buffer_new)(struct kp_device *d, size_t bytes, struct kp_buffer **out,
                              kopt_error *err);
    void (*buffer_free)(struct kp_device *d, struct kp_buffer *b);
    kopt_status (*write)(struct kp_device *d, struct kp_buffer *b, size_t at, const void *src,
                         size_t n, kopt_error *err);
    kopt_status (*read)(struct kp_device *d, struct kp_buffer *b, size_t at, void *dst,
                        size_t n, kopt_error *err);
    kopt_status (*fill)(struct kp_device *d, struct kp_buffer *b, uint8_t byte,
                        kopt_error *err);
    kopt_status (*module_load)(struct kp_device *d, const void *image, size_t bytes,
                               const char *entry, const struct kp_launch *launch,
                               struct kp_module **out, kopt_error *err);
    void (*module_unload)(struct kp_device *d, struct kp_module *m);
    kopt_status (*run)(struct kp_device *d, struct kp_module *m, const struct kp_run *run,
                       kopt_error *err);
    /* optional: NULL, or KOPT_ENOTFOUND from it (no kernel to do it with, nothing written to
     * *out), = both are read back and compared on the host */
    kopt_status (*compare)(struct kp_device *d, struct kp_buffer *got, struct kp_buffer *want,
                           enum kp_number type, double rtol, double atol,
                           struct kp_compare *out, kopt_error *err);
    void (*sensors)(struct kp_device *d, struct kp_sensors *out); /* optional */
};

/* Back ends put these first in their own structs. */
struct kp_runtime {
    const struct kp_runtime_ops *ops;
    const struct kp_log *log;
};

struct kp_device {
    const struct kp_runtime_ops *ops;
    struct kp_device_info info;
};

struct kp_compiler {
    const struct kp_runtime_ops *ops;
};

struct kp_module {
    struct kp_module_info info;
};

struct kp_buffer {
    size_t bytes;
};

/* Does a launch fit these limits and this kernel (NULL: not known)? What kp_launch_check()
 * asks; for compilers, which have no device. Errors: KOPT_ERANGE with the numbers. */
kopt_status kp_launch_fits(const struct kp_limits *limits, const struct kp_module_info *info,
                           const struct kp_launch *l, kopt_error *err);

/* What outputs are filled with before a launch. */
static inline uint8_t kp_run_poison(const struct kp_run *run)
{
    return run->poison ? run->poison : 0xFF;
}

/* Join the result of a later part that began at element `at` to that of all before it. */
void kp_compare_join(struct kp_compare *all, const struct kp_compare *part, uint64_t at);

const struct kp_runtime_ops *kp_cuda_ops(void);
const struct kp_runtime_ops *kp_opencl_ops(void);
const struct kp_runtime_ops *kp_fake_ops(void);

#endif
