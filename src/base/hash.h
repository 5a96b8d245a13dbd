/* SPDX-License-Identifier: MIT */
/* SHA-256 for ids that are stored, XXH3 for tables in memory. Layer: base. */
#ifndef KP_BASE_HASH_H
#define KP_BASE_HASH_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { KP_SHA256_HEX = 64 };

struct kp_sha256; /* an OpenSSL digest in progress */

/* Errors: KOPT_ENOMEM. Owner: finish or free it. */
kopt_status kp_sha256_new(struct kp_sha256 **out, kopt_error *err);
void kp_sha256_add(struct kp_sha256 *h, const void *bytes, size_t n);
/* Adds the length first, so that ("ab","c") and ("a","bc") differ. */
void kp_sha256_add_field(struct kp_sha256 *h, const void *bytes, size_t n);
void kp_sha256_add_text(struct kp_sha256 *h, const char *s);
/* Lower-case hex with a NUL; frees `h`. */
void kp_sha256_finish(struct kp_sha256 *h, char out[KP_SHA256_HEX + 1]);
void kp_sha256_free(struct kp_sha256 *h);

/* Not for storage: the value may differ between versions. */
uint64_t kp_hash64(const void *bytes, size_t n, uint64_t seed);

#endif
