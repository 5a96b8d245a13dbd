/* SPDX-License-Identifier: MIT */
/* A file, plain or packed by gzip, read as what is in it. Layer: os (the only user of zlib,
 * which takes its memory from the C library). */
#ifndef KP_OS_UNPACK_H
#define KP_OS_UNPACK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_unpack;

/* `path` must outlive it. Never waits: what is not a plain file is refused.
 * Owner: kp_unpack_close(). Errors: KOPT_EIO, KOPT_ENOMEM. */
kopt_status kp_unpack_open(const char *path, struct kp_unpack **out, kopt_error *err);
void kp_unpack_close(struct kp_unpack *u);

/* The next bytes, `n` at most (up to INT32_MAX); *got 0: the end.
 * Errors: KOPT_EIO, KOPT_EINPUT (packed, and damaged, or cut: then kp_unpack_cut()),
 * KOPT_ENOMEM. What could be unpacked before that was handed out. */
kopt_status kp_unpack_read(struct kp_unpack *u, void *bytes, size_t n, size_t *got,
                           kopt_error *err);
/* The file ends in the middle of what was packed. Known when the end was read. */
bool kp_unpack_cut(const struct kp_unpack *u);
/* To a place that was read before: in a packed file, all that is in front of it is unpacked
 * again. Errors: KOPT_EIO. */
kopt_status kp_unpack_seek(struct kp_unpack *u, int64_t at, kopt_error *err);

#endif
