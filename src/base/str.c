/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>

bool kp_str_starts(struct kp_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

struct kp_str kp_str_trim(struct kp_str s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct kp_str kp_str_cut(struct kp_str s, char c, struct kp_str *rest)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    if (!at) {
        *rest = (struct kp_str){s.len ? s.ptr + s.len : s.ptr, 0}; /* NULL + 0 is undefined */
        return s;
    }
    size_t n = (size_t)(at - s.ptr);
    *rest = (struct kp_str){at + 1, s.len - n - 1};
    return (struct kp_str){s.ptr, n};
}

/* strtoll and strtod need a terminator: numbers longer than this are no numbers of ours. */
enum { NUMBER_MAX = 63 };

static bool copy_number(struct kp_str s, char out[NUMBER_MAX + 1])
{
    if (s.len == 0 || s.len > NUMBER_MAX || is_space(s.ptr[0]) ||
        memchr(s.ptr, 0, s.len) != NULL)
        return false;
    memcpy(out, s.ptr, s.len);
    out[s.len] = 0;
    return true;
}

bool kp_str_to_i64(struct kp_str s, int64_t *out)
{
    char text[NUMBER_MAX + 1];
    char *end = NULL;
    if (!copy_number(s, text))
        return false;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno != 0 || *end != 0)
        return false;
    *out = v;
    return true;
}

size_t kp_utf8_len(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    /* Least code points of 2-, 3- and 4-byte sequences: shorter ones are overlong. */
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    size_t len = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : u[0] >= 0xc0 ? 2 : 0;
    if (len == 0 || u[0] >= 0xf8 || len > n)
        return 0;
    uint32_t c = u[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (u[i] & 0x3f);
    }
    bool surrogate = c >= 0xd800 && c <= 0xdfff;
    return c < least[len] || c > 0x10ffff || surrogate ? 0 : len;
}
