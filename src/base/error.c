/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Terminal escapes and line breaks must not travel from a hostile input into a message, nor
 * what is no UTF-8: a text that was cut may end with half a character. What is replaced stays
 * one character, so that columns stay true. */
static void clean(char *s)
{
    size_t left = strlen(s);
    char *out = s;
    while (left > 0) {
        unsigned char c = (unsigned char)*s;
        size_t n = kp_utf8_len(s, left);
        bool c1 = n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0; /* U+0080 to U+009F */
        bool bad = n == 0 || c1 || c < 0x20 || c == 0x7f;
        if (n == 0)
            for (n = 1; n < left && continues(s[n]);)
                n++;
        if (bad) {
            *out++ = (c == '\n' || c == '\t' || c == '\r') ? ' ' : '?';
        } else {
            memmove(out, s, n);
            out += n;
        }
        s += n;
        left -= n;
    }
    *out = 0;
}

kopt_status kp_err(kopt_error *err, kopt_status code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    memset(err, 0, sizeof(*err));
    err->code = code;
    (void)vsnprintf(err->message, sizeof(err->message), fmt, ap);
    va_end(ap);
    clean(err->message);
    return code;
}

void kp_err_wrap(kopt_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, sizeof(inner));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->message, sizeof(err->message), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(err->message))
        (void)snprintf(err->message + n, sizeof(err->message) - (size_t)n, ": %.900s", inner);
    clean(err->message);
}

void kp_err_hint(kopt_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
    va_end(ap);
    clean(err->hint);
}

/* Where the excerpt of a line begins: at its start, unless the place would not be in it. */
static size_t excerpt_start(struct kp_str line, int column, size_t room, int *first)
{
    size_t at = 0;
    *first = 1;
    for (int left = column - 1; at < line.len && left > 0; left--)
        for (at++; at < line.len && continues(line.ptr[at]);)
            at++;
    if (line.len <= room || at < room * 3 / 4)
        return 0;
    size_t start = at - room / 2;
    while (start < at && continues(line.ptr[start]))
        start++;
    for (size_t i = 0; i < start; i++)
        *first += !continues(line.ptr[i]);
    return start;
}

void kp_err_at(kopt_error *err, const char *file, int line, int column, const char *src_line,
               int src_line_len)
{
    if (!err)
        return;
    struct kp_str text = {src_line, src_line && src_line_len > 0 ? (size_t)src_line_len : 0};
    size_t room = sizeof(err->excerpt) - 1;
    size_t start = excerpt_start(text, column, room, &err->excerpt_column);
    size_t n = text.len - start < room ? text.len - start : room;
    while (n > 0 && start + n < text.len && continues(text.ptr[start + n]))
        n--;
    err->line = line;
    err->column = column;
    (void)snprintf(err->file, sizeof(err->file), "%s", file ? file : "");
    memset(err->excerpt, 0, sizeof(err->excerpt));
    if (n)
        memcpy(err->excerpt, text.ptr + start, n);
    for (size_t i = 0; i < n; i++) /* a NUL would end it */
        if (!err->excerpt[i])
            err->excerpt[i] = '?';
    clean(err->file);
    clean(err->excerpt);
}

kopt_status kp_err_nomem(kopt_error *err)
{
    return kp_err(err, KOPT_ENOMEM, "out of memory");
}

_Noreturn void kp_check_failed(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "kopt: internal error: %s:%d: %s\n", file, line, what);
    abort();
}

const char *kopt_status_text(kopt_status code)
{
    switch (code) {
#define X(name, value, text) \
    case name:               \
        return text;
        KOPT_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

const char *kopt_version(void)
{
    return KOPT_VERSION;
}
