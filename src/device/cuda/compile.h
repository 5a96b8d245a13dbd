/* SPDX-License-Identifier: MIT */
/* CUDA C to a cubin by NVRTC. Layer: device. The entries of the table in ops.h. */
#ifndef KP_DEVICE_CUDA_COMPILE_H
#define KP_DEVICE_CUDA_COMPILE_H

#include "device/device.h"

/* `arch` NULL asks the driver for that of device `index`. Errors: as kp_compiler_open(), and
 * KOPT_EUSAGE for an arch that is not one ("sm_90", "sm_90a"). */
kopt_status kp_cuda_compiler_open(int index, const char *arch, const struct kp_log *log,
                                  struct kp_compiler **out, kopt_error *err);
void kp_cuda_compiler_close(struct kp_compiler *base);
const char *kp_cuda_compiler_version(const struct kp_compiler *base);
kopt_status kp_cuda_compile(struct kp_compiler *base, const struct kp_compile_job *job,
                            struct kp_buf *image, struct kp_buf *log_text, kopt_error *err);

#endif
