/* SPDX-License-Identifier: MIT */
/* The numbers of a device that a kernel's rules use. Layer: api. */
#ifndef KP_API_LIMITS_H
#define KP_API_LIMITS_H

#include "base/error.h"
#include "base/limits.h"
#include "space/kernel.h"

/* Which names of `device.` the rules use, through lets, too: a bit for each; 0 = none.
 * Errors: KOPT_ENOMEM. */
kopt_status kp_limits_used(const struct kp_kernel *k, unsigned *used, kopt_error *err);

/* "max_threads,cc", of such bits; terminated. */
enum { KP_LIMITS_NAMES = 256 };
void kp_limits_names(unsigned bits, char out[KP_LIMITS_NAMES]);

/* Those of a device: "cuda:0", or NULL for the first that fits the kernel's language.
 * Errors: KOPT_EENV (no such device, driver missing), KOPT_EUSAGE (no id), those of
 * kp_lab_probe(). Blocks: asks the driver in a process of its own, up to seconds. */
kopt_status kp_limits_of_device(const struct kp_kernel *k, const char *id,
                                struct kp_limits *out, kopt_error *err);

/* From "max_threads=1024,shared_bytes=49152". Errors: KOPT_EUSAGE (unknown, repeated,
 * not positive where it is a bound, or one that a rule uses is missing). */
kopt_status kp_limits_by_hand(const struct kp_kernel *k, const char *text,
                              struct kp_limits *out, kopt_error *err);
/* The same where it is known what the rules use. It allocates nothing. */
kopt_status kp_limits_read(unsigned used, const char *text, struct kp_limits *out,
                           kopt_error *err);

#endif
