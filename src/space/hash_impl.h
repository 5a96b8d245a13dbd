/* SPDX-License-Identifier: MIT */
/* What the files of the hash share. Layer: space. */
#ifndef KP_SPACE_HASH_IMPL_H
#define KP_SPACE_HASH_IMPL_H

#include "base/hash.h"
#include "space/kernel_impl.h"

enum { KP_HASH_FILES_MAX = 64, KP_HASH_BYTES_MAX = 8 << 20 };

/* The source without its `#pragma kopt` lines and every file it includes, found beside the
 * including file or in a -I folder. Errors: KOPT_ERANGE (more than the limits above), KOPT_EIO,
 * KOPT_ENOMEM. */
kopt_status kp_hash_source(struct kp_sha256 *h, const struct kp_kernel *k, kopt_error *err);

#endif
