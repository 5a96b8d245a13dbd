/* SPDX-License-Identifier: MIT */
/* Borrowed string views. Layer: base. */
#ifndef KP_BASE_STR_H
#define KP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `ptr` need not be terminated; valid as long as what it points into. */
struct kp_str {
    const char *ptr;
    size_t len;
};

#define KP_STR(literal) ((struct kp_str){(literal), sizeof(literal) - 1})
/* For printf: "%.*s", KP_STR_FMT(s) */
#define KP_STR_FMT(s) (int)(s).len, (s).ptr

static inline struct kp_str kp_str_from(const char *s)
{
    return (struct kp_str){s, s ? strlen(s) : 0};
}

static inline bool kp_str_eq(struct kp_str a, struct kp_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool kp_str_is(struct kp_str a, const char *b)
{
    return kp_str_eq(a, kp_str_from(b));
}

bool kp_str_starts(struct kp_str s, const char *prefix);
struct kp_str kp_str_trim(struct kp_str s);

/* Cut `s` at the first `c`: the part before is returned, `*rest` gets what follows (empty when
 * `c` does not occur). */
struct kp_str kp_str_cut(struct kp_str s, char c, struct kp_str *rest);

/* Length of the UTF-8 sequence at the start of s[0..n), 0 when there is none (RFC 3629: the
 * shortest form, no surrogates, at most U+10FFFF). */
size_t kp_utf8_len(const char *s, size_t n);

/* A whole-string decimal; false when anything is left over or out of range. Floats: base/num.h.
 */
bool kp_str_to_i64(struct kp_str s, int64_t *out);

#endif
