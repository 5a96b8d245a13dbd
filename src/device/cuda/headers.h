/* SPDX-License-Identifier: MIT */
/* The C headers that kernel files like to include and that NVRTC, which has no file system of
 * its own to find them in, lacks. Layer: device. */
#ifndef KP_DEVICE_CUDA_HEADERS_H
#define KP_DEVICE_CUDA_HEADERS_H

#define KP_CUDA_N_HEADERS 20

extern const char *const kp_cuda_header_names[KP_CUDA_N_HEADERS];
extern const char *const kp_cuda_header_texts[KP_CUDA_N_HEADERS];

#endif
