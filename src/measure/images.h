/* SPDX-License-Identifier: MIT */
/* Compiled images that outlive a session: the next one with the same source, macros, compiler
 * and architecture need not compile, whatever its problem is. Layer: measure.
 *
 * A folder of files named by the SHA-256 of all that decides an image. Any number of sessions
 * may use one at once: files are written aside and renamed. What is damaged counts as missing.
 * Nothing fails because of it: a folder that cannot be used is no folder. */
#ifndef KP_MEASURE_IMAGES_H
#define KP_MEASURE_IMAGES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_images;

/* `key`: what all images of this session depend on (source and its includes, options, compiler,
 * architecture). Makes the folder; files that were not used for longest are removed while there
 * are more than `max_bytes` of them. NULL: it cannot be used. Owner: kp_images_free(). */
struct kp_images *kp_images_open(const char *folder, const char *const *key, size_t n_key,
                                 uint64_t max_bytes);
void kp_images_free(struct kp_images *im);

/* `entry` and `macros` as they go to the compiler. True: `image` (which was empty) has it. */
bool kp_images_get(const struct kp_images *im, const char *entry, const char *const *macros,
                   size_t n_macros, struct kp_buf *image);
void kp_images_put(const struct kp_images *im, const char *entry, const char *const *macros,
                   size_t n_macros, const void *bytes, size_t n);

#endif
