/* SPDX-License-Identifier: MIT */
/* A Kernel Tuner cache file piece by piece: JSON that may stop anywhere. Layer: store.
 *
 * The file is one object: some members, then "cache", an object with one member for each
 * configuration. Values are handed out as text, one at a time, so that memory does not grow
 * with the file. It may be packed by gzip. */
#ifndef KP_STORE_KTREAD_H
#define KP_STORE_KTREAD_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { KP_KTREAD_BYTES_MAX = 512 << 20 }; /* unpacked */

struct kp_ktread;

/* Errors: KOPT_EIO, KOPT_ERANGE (over KP_KTREAD_BYTES_MAX), KOPT_ENOMEM. `path` must outlive
 * it. */
kopt_status kp_ktread_open(const char *path, struct kp_ktread **out, kopt_error *err);
void kp_ktread_close(struct kp_ktread *r);

/* What stands next, apart from white space; -1 at the end of the file, where it was cut, and
 * where reading failed. */
int kp_ktread_peek(struct kp_ktread *r);
/* Take it when it is `c`; false when it is anything else. */
bool kp_ktread_take(struct kp_ktread *r, char c);

/* Append the text of the value that stands next to `out` (NULL: skip it). NaN, Infinity and
 * -Infinity, which Python writes, become null. False when the file ends in it, or when no value
 * stands there: then kp_ktread_peek() is not -1. A text that does not fit `out` sets its
 * failure; the value is passed all the same. */
bool kp_ktread_value(struct kp_ktread *r, struct kp_buf *out);

/* The place where the next value begins, and going back there. */
struct kp_ktread_place {
    int64_t at;
    int line;
    int column;
};
struct kp_ktread_place kp_ktread_tell(struct kp_ktread *r);
kopt_status kp_ktread_seek(struct kp_ktread *r, struct kp_ktread_place place, kopt_error *err);

/* The end of the file was reached, and it is packed and ends in the middle. */
bool kp_ktread_cut(const struct kp_ktread *r);
/* Why reading failed: KOPT_EIO, KOPT_EINPUT (packed, and damaged), KOPT_ERANGE (over
 * KP_KTREAD_BYTES_MAX), KOPT_ENOMEM; else KOPT_OK. */
kopt_status kp_ktread_status(const struct kp_ktread *r, kopt_error *err);
/* KOPT_EINPUT at the line and column where it stands; returns that. Where reading failed, that
 * is the error. */
__attribute__((format(printf, 3, 4))) kopt_status
kp_ktread_error(const struct kp_ktread *r, kopt_error *err, const char *fmt, ...);

#endif
