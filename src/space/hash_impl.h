/* SPDX-License-Identifier: MIT */
/* What the files of the hash share. Layer: space. */
#ifndef KP_SPACE_HASH_IMPL_H
#define KP_SPACE_HASH_IMPL_H

#include "base/hash.h"
#include "base/map.h"
#include "space/kernel_impl.h"

enum {
    KP_HASH_FILES_MAX = 4096,
    KP_HASH_BYTES_MAX = 64 << 20,
    KP_HASH_DEPTH_MAX = 200 /* files that include each other; compilers stop there, too */
};

/* The source files of one hash. Each is taken in once, whoever includes it. */
struct kp_hash_files {
    struct kp_sha256 *h;
    const struct kp_kernel *k;
    struct kp_map seen; /* files by their place on disk */
    size_t n;
    size_t bytes;
    kopt_error *err;
};

void kp_hash_files_deinit(struct kp_hash_files *f);

/* The source without its `#pragma kopt` lines, the files that flags put before it, and every
 * file that these include. Errors: KOPT_ERANGE (more than the limits above), KOPT_EIO,
 * KOPT_ENOMEM. */
kopt_status kp_hash_source(struct kp_hash_files *f);
/* A C file named by a check, and every file that it includes. Errors: the same. */
kopt_status kp_hash_reference(struct kp_hash_files *f, const char *name);

/* A compiler option that names a folder with include files, or a file that is included before
 * the source. Its path counts from the kernel's folder. */
struct kp_path_flag {
    bool is_file;
    const char *path; /* borrowed from the kernel */
};
/* The next of them, in order; *i starts at 0. Every spelling that a back end knows counts. */
bool kp_path_flag_next(const struct kp_kernel *k, size_t *i, struct kp_path_flag *out);

#endif
