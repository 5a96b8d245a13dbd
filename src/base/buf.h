/* SPDX-License-Identifier: MIT */
/* Growable byte buffer with a hard limit and a sticky failure. Layer: base.
 *
 * Appending never returns a status: the first failure (out of memory or over the limit) sets
 * `failed`, later appends do nothing, and the caller looks once with kp_buf_status(). */
#ifndef KP_BASE_BUF_H
#define KP_BASE_BUF_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_buf {
    unsigned char *ptr; /* NUL-terminated once anything was appended */
    size_t len;         /* bytes in use, without the NUL */
    size_t cap;         /* bytes held */
    size_t max;         /* bytes that it may ever hold */
    kopt_status failed; /* KOPT_OK, KOPT_ENOMEM or KOPT_ERANGE */
};

#define KP_BUF_INIT(limit) ((struct kp_buf){.max = (limit)})

/* Release the memory; the buffer is empty and usable again. */
void kp_buf_deinit(struct kp_buf *b);

/* Forget the content, keep the memory. */
void kp_buf_clear(struct kp_buf *b);

/* Make room for `n` more bytes; returns false (and sets failed) when there is none. */
bool kp_buf_reserve(struct kp_buf *b, size_t n);

void kp_buf_add(struct kp_buf *b, const void *bytes, size_t n);
void kp_buf_adds(struct kp_buf *b, const char *s);
void kp_buf_addc(struct kp_buf *b, char c);
__attribute__((format(printf, 2, 3))) void kp_buf_addf(struct kp_buf *b, const char *fmt, ...);

/* The text so far; "" when empty. Valid until the next append. */
const char *kp_buf_text(const struct kp_buf *b);

/* Hand the memory to the caller (kp_free() it); NULL after a failure. The buffer is empty. */
char *kp_buf_take(struct kp_buf *b);

/* KOPT_OK, or the sticky failure with a message. */
kopt_status kp_buf_status(const struct kp_buf *b, kopt_error *err);

#endif
