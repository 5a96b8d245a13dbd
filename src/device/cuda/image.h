/* SPDX-License-Identifier: MIT */
/* What the CUDA compiler hands to the device: a cubin, with the name that the entry has in it.
 * Layer: device.
 *
 * In memory: the magic, sizes and resources (little-endian, 8 bytes each), entry and lowered
 * name with their NULs, zeros up to a multiple of 16, the cubin. */
#ifndef KP_DEVICE_CUDA_IMAGE_H
#define KP_DEVICE_CUDA_IMAGE_H

#include "base/buf.h"
#include "device/cuda/compile_log.h"

#include <stdbool.h>

struct kp_cuda_image {
    const char *entry;   /* as in the source: "gemm", "gemm<float>" */
    const char *lowered; /* as in the cubin: "_Z4gemmPfii" */
    struct kp_cuda_resources resources;
    const void *cubin;
    size_t cubin_bytes;
};

/* Append it to `out`, whose sticky failure is the only error. */
void kp_cuda_image_write(const struct kp_cuda_image *image, struct kp_buf *out);

/* Views into `bytes`. False unless it is whole: the driver reads a cubin by the lengths that
 * stand in it and would run past the end of a cut one. */
bool kp_cuda_image_parse(const void *bytes, size_t n, struct kp_cuda_image *out);

#endif
