/* SPDX-License-Identifier: MIT */
/* What NVRTC and the assembler behind it (ptxas) say, taken apart. Layer: device. */
#ifndef KP_DEVICE_CUDA_COMPILE_LOG_H
#define KP_DEVICE_CUDA_COMPILE_LOG_H

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "device/device.h"

#include <stdbool.h>
#include <stdint.h>

/* What ptxas -v tells of one kernel; -1 where it does not. */
struct kp_cuda_resources {
    int64_t registers;    /* of a thread */
    int64_t shared_bytes; /* static, of a block */
    int64_t stack_bytes;  /* of a thread: private arrays and spills */
};

void kp_cuda_log_resources(struct kp_str log, const char *lowered_name,
                           struct kp_cuda_resources *out);

/* The messages for the user: without what kopt itself caused (the look-up of the entry, pragmas
 * of kopt that the compiler does not know) and, unless `verbose`, what ptxas tells. */
void kp_cuda_log_clean(struct kp_str log, bool verbose, struct kp_buf *out);

/* Fill `err` from the first error: position and source line where the compiler gives them.
 * Returns KOPT_EINPUT, KOPT_ERANGE (a limit of the device: the numbers are in err), or
 * KOPT_ENOTFOUND, and then `err` is untouched, when the log has no error. */
kopt_status kp_cuda_log_error(struct kp_str log, const struct kp_compile_job *job,
                              kopt_error *err);

/* A source that defines a macro of the job again undoes the tuned value, and every
 * configuration would be measured as the same one: KOPT_EINPUT, with the place. KOPT_OK when
 * there is none. */
kopt_status kp_cuda_log_redefined(struct kp_str log, const struct kp_compile_job *job,
                                  kopt_error *err);

#endif
