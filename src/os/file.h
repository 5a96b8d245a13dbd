/* SPDX-License-Identifier: MIT */
/* Files and paths. Layer: os. */
#ifndef KP_OS_FILE_H
#define KP_OS_FILE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Hand all bytes of a plain file to `visit`, piece by piece, until it returns another status
 * than KOPT_OK, which is then returned. Never waits: a pipe is refused.
 * Errors: KOPT_EIO (with the system's reason; anything but a plain file is one). */
kopt_status kp_file_walk(const char *path,
                         kopt_status (*visit)(void *user, const void *bytes, size_t n),
                         void *user, kopt_error *err);

/* Append all of a plain file to `out`, up to out->max. Errors: as kp_file_walk(), KOPT_ERANGE
 * (larger than max), KOPT_ENOMEM. */
kopt_status kp_file_read(const char *path, struct kp_buf *out, kopt_error *err);

/* What tells two files apart, whatever they are called. */
struct kp_file_id {
    uint64_t device;
    uint64_t inode;
};
/* True for a plain file that can be read. */
bool kp_file_identify(const char *path, struct kp_file_id *out);

/* Write in place, without sync: for files that do not outlive the session. Errors: KOPT_EIO,
 * KOPT_EFULL. */
kopt_status kp_file_put(const char *path, const void *bytes, size_t n, kopt_error *err);

/* Write `n` pieces, one behind the other, to a new file beside `path`, wait until it is on the
 * disk, and let it take the place of `path`: whoever opens that finds the old content or the
 * new one, and a mapped old one stays as it is. Errors: KOPT_EIO (among them a `path` that is
 * there and no plain file), KOPT_EFULL, KOPT_ENOMEM; nothing is left behind. */
kopt_status kp_file_replace(const char *path, const struct kp_str *pieces, size_t n,
                            kopt_error *err);

/* A plain file's bytes, to be read where they lie; page-aligned, shared with all who map it.
 * They are the file's: whoever shortens it in place takes them away. */
struct kp_file_map {
    void *ptr; /* NULL: an empty file */
    size_t n;
};
/* Errors: KOPT_EIO, KOPT_ERANGE (larger than `max`), KOPT_ENOMEM. */
kopt_status kp_file_map(const char *path, size_t max, struct kp_file_map *out, kopt_error *err);
void kp_file_unmap(struct kp_file_map *m);

bool kp_file_exists(const char *path);

/* The folder part of `path` ("." when it has none), and folder/name (an absolute `name` stays
 * as it is). Results are the caller's (kp_free), NULL when out of memory. */
char *kp_path_dir(const char *path);
char *kp_path_join(const char *dir, const char *name);

/* A new private folder under $TMPDIR or /tmp; *out is the caller's. */
kopt_status kp_dir_temp(const char *prefix, char **out, kopt_error *err);

/* Remove a folder of ours with all in it (eight levels at most, no links followed). */
void kp_dir_remove(const char *path);

#endif
