/* SPDX-License-Identifier: MIT */
/* The user's compiler options, as nvcc spells them, turned into NVRTC's. Layer: device. */
#ifndef KP_DEVICE_CUDA_OPTIONS_H
#define KP_DEVICE_CUDA_OPTIONS_H

#include "base/buf.h"
#include "device/device.h"

#include <stdbool.h>
#include <stddef.h>

struct kp_cuda_options {
    char **list;
    size_t n;
    size_t cap;
    bool ask_resources; /* set by the caller: add -v for ptxas as the last option */
    bool ptxas_verbose; /* the user asked for it */
    bool no_cache;      /* set by the caller: NVRTC has one, and from it ptxas says nothing */
};

/* All options of a compile: the architecture ("sm_90", which the user may make "sm_90a"), C++17
 * unless said otherwise, the folder of job->path, the user's options, then the folders
 * `includes` (NULL ones are passed over). Options of nvcc that concern host code are
 * left out with a line in `notes`. `out` is zeroed by the caller, but for what it sets, and
 * released by kp_cuda_options_deinit() whatever is returned. Errors: KOPT_EINPUT (an option
 * without its value, or one that cannot work here), KOPT_ENOMEM.
 */
kopt_status kp_cuda_options_build(const struct kp_compile_job *job, const char *arch,
                                  char *const includes[2], struct kp_buf *notes,
                                  struct kp_cuda_options *out, kopt_error *err);
void kp_cuda_options_deinit(struct kp_cuda_options *o);

#endif
