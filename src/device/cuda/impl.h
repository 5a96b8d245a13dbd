/* SPDX-License-Identifier: MIT */
/* What the files of the CUDA back end share. Layer: device.
 *
 *   driver, nvrtc, nvml       the three libraries, opened at run time
 *   compile, options,         source to image; no driver and no GPU
 *   compile_log, headers,
 *   image
 *   runtime                   the table of functions; devices and what they are
 *   context                   one device: its memory, its stream
 *   launch                    modules, launches and their times
 *   helpers                   our own kernels: comparing results, keeping the device busy */
#ifndef KP_DEVICE_CUDA_IMPL_H
#define KP_DEVICE_CUDA_IMPL_H

#include "device/cuda/driver.h"
#include "device/cuda/nvml.h"
#include "device/ops.h"

struct kp_cuda_runtime {
    struct kp_runtime base;
    struct kp_cuda_driver drv;
    int n_devices;
    char driver_text[128]; /* "driver 580.95.05 (CUDA 13.0)", made when first asked for */
    char compiler[64];     /* "NVRTC 13.0", the same; "" when there is none */
    bool compiler_known;
};

enum { KP_CUDA_PARAMS_MAX = 1024 }; /* 4 KiB of parameters, 4 bytes each */

/* Launches between two waits for the device; each has two events. */
enum { KP_CUDA_BATCH = 128 };

enum { KP_CUDA_N_HELPERS = KP_NUM_F64 + 2 }; /* one comparison for each type, and the delay */

struct kp_cuda_helper {
    struct kp_module *module; /* NULL: not made, or cannot be */
    bool tried;
};

struct kp_cuda_device {
    struct kp_device base;
    struct kp_cuda_runtime *rt;
    const struct kp_cuda_driver *drv;
    kp_cu_device device;
    kp_cu_context context;
    kp_cu_stream stream;
    int max_grid[3];
    kp_cu_event events[2 * KP_CUDA_BATCH]; /* made when first needed, NULL before */
    kp_cu_pointer flush;                   /* 0: none yet */
    size_t flush_bytes;
    kp_cu_pointer found; /* result of a comparison; 0: none yet */
    struct kp_cuda_helper helpers[KP_CUDA_N_HELPERS];
    struct kp_nvml nvml;
    bool nvml_tried;
    bool lost; /* a kernel faulted: every later call would fail */
    char lost_text[128];
};

struct kp_cuda_buffer {
    struct kp_buffer base;
    kp_cu_pointer at;
};

struct kp_cuda_module {
    struct kp_module base;
    kp_cu_module module;
    kp_cu_function function;
    int dynamic_max;   /* dynamic shared memory that it may be launched with now */
    bool params_known; /* else the driver is too old to tell */
    size_t n_params;
    uint32_t *param_bytes; /* n_params of them */
    char name[128];
};

/* --- context.c ------------------------------------------------------------------------- */

/* Make the device's context this thread's. Errors: KOPT_EDEVICE, also when it is lost. */
kopt_status kp_cuda_enter(struct kp_cuda_device *d, kopt_error *err);

/* KOPT_EDEVICE with the driver's name of `rc` and what was being done; notes a lost context. */
kopt_status kp_cuda_fail(struct kp_cuda_device *d, kp_cu_result rc, const char *doing,
                         kopt_error *err);

/* Wait for all that was enqueued. */
kopt_status kp_cuda_sync(struct kp_cuda_device *d, const char *doing, kopt_error *err);

/* Device memory of our own, freed with the device. Errors: KOPT_EFULL, KOPT_EDEVICE. */
kopt_status kp_cuda_alloc(struct kp_cuda_device *d, size_t bytes, kp_cu_pointer *out,
                          kopt_error *err);

kopt_status kp_cuda_device_open(struct kp_runtime *rt, int index, struct kp_device **out,
                                kopt_error *err);
void kp_cuda_device_close(struct kp_device *base);
void kp_cuda_memory(struct kp_device *base, uint64_t *free_bytes, uint64_t *total_bytes);
kopt_status kp_cuda_buffer_new(struct kp_device *base, size_t bytes, struct kp_buffer **out,
                               kopt_error *err);
void kp_cuda_buffer_free(struct kp_device *base, struct kp_buffer *buffer);
kopt_status kp_cuda_write(struct kp_device *base, struct kp_buffer *buffer, size_t at,
                          const void *src, size_t n, kopt_error *err);
kopt_status kp_cuda_read(struct kp_device *base, struct kp_buffer *buffer, size_t at, void *dst,
                         size_t n, kopt_error *err);
kopt_status kp_cuda_fill(struct kp_device *base, struct kp_buffer *buffer, uint8_t byte,
                         kopt_error *err);
void kp_cuda_sensors(struct kp_device *base, struct kp_sensors *out);

/* --- runtime.c ------------------------------------------------------------------------- */

kopt_status kp_cuda_runtime_info(struct kp_runtime *base, int index, struct kp_device_info *out,
                                 kopt_error *err);

/* --- launch.c -------------------------------------------------------------------------- */

kopt_status kp_cuda_module_load(struct kp_device *base, const void *image_bytes, size_t bytes,
                                const char *entry, const struct kp_launch *launch,
                                struct kp_module **out, kopt_error *err);
void kp_cuda_module_unload(struct kp_device *base, struct kp_module *module);
kopt_status kp_cuda_run(struct kp_device *base, struct kp_module *module,
                        const struct kp_run *run, kopt_error *err);

/* --- helpers.c ------------------------------------------------------------------------- */

enum { KP_CUDA_HELPER_MACROS = 16 };

/* What to compile for a helper: enum kp_number for a comparison, the number behind its last for
 * the delay. `macros` is room for the list and must live as long as the job. */
void kp_cuda_helper_job(int kind, const char *macros[KP_CUDA_HELPER_MACROS],
                        struct kp_compile_job *out);

/* Enqueue a kernel that only passes the time, so that what is enqueued behind it is all there
 * when its turn comes. Without NVRTC it does nothing. */
kp_cu_result kp_cuda_delay(struct kp_cuda_device *d);

kopt_status kp_cuda_compare(struct kp_device *base, struct kp_buffer *got,
                            struct kp_buffer *want, enum kp_number type, double rtol,
                            double atol, struct kp_compare *out, kopt_error *err);
void kp_cuda_helpers_deinit(struct kp_cuda_device *d);

#endif
