/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Terminal escapes and line breaks must not travel from a hostile input into a message. */
static void clean(char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == 0x7f)
            *s = (c == '\n' || c == '\t' || c == '\r') ? ' ' : '?';
    }
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

void kp_err_at(kopt_error *err, const char *file, int line, int column, const char *src_line,
               int src_line_len)
{
    if (!err)
        return;
    err->line = line;
    err->column = column;
    (void)snprintf(err->file, sizeof(err->file), "%s", file ? file : "");
    (void)snprintf(err->excerpt, sizeof(err->excerpt), "%.*s", src_line ? src_line_len : 0,
                   src_line ? src_line : "");
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
