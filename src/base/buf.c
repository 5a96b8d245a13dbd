/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void kp_buf_deinit(struct kp_buf *b)
{
    kp_free(b->ptr);
    *b = (struct kp_buf){.max = b->max};
}

void kp_buf_clear(struct kp_buf *b)
{
    b->len = 0;
    b->failed = KOPT_OK;
    if (b->ptr)
        b->ptr[0] = 0;
}

bool kp_buf_reserve(struct kp_buf *b, size_t n)
{
    if (b->failed != KOPT_OK)
        return false;
    if (n > b->max || b->len > b->max - n) {
        b->failed = KOPT_ERANGE;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : 2 * cap;
    unsigned char *p = kp_realloc(b->ptr, cap);
    if (!p) {
        b->failed = KOPT_ENOMEM;
        return false;
    }
    b->ptr = p;
    b->cap = cap;
    return true;
}

void kp_buf_add(struct kp_buf *b, const void *bytes, size_t n)
{
    if (!kp_buf_reserve(b, n))
        return;
    if (n)
        memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
    b->ptr[b->len] = 0;
}

void kp_buf_adds(struct kp_buf *b, const char *s)
{
    kp_buf_add(b, s, strlen(s));
}

void kp_buf_addc(struct kp_buf *b, char c)
{
    kp_buf_add(b, &c, 1);
}

void kp_buf_addf(struct kp_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && kp_buf_reserve(b, (size_t)n)) {
        (void)vsnprintf((char *)b->ptr + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

const char *kp_buf_text(const struct kp_buf *b)
{
    return b->ptr ? (const char *)b->ptr : "";
}

char *kp_buf_take(struct kp_buf *b)
{
    if (b->failed == KOPT_OK && !b->ptr)
        (void)kp_buf_reserve(b, 0);
    if (b->failed != KOPT_OK || !b->ptr) {
        kp_buf_deinit(b);
        return NULL;
    }
    b->ptr[b->len] = 0;
    char *text = (char *)b->ptr;
    *b = (struct kp_buf){.max = b->max};
    return text;
}

kopt_status kp_buf_status(const struct kp_buf *b, kopt_error *err)
{
    if (b->failed == KOPT_OK)
        return KOPT_OK;
    if (b->failed == KOPT_ENOMEM)
        return kp_err_nomem(err);
    return kp_err(err, KOPT_ERANGE, "more than %zu bytes", b->max);
}
