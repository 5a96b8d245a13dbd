/* SPDX-License-Identifier: MIT */
#include "store/ktread.h"

#include "base/alloc.h"
#include "os/unpack.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 1 << 16, WORD_MAX = 64 };

struct kp_ktread {
    struct kp_unpack *f;
    const char *path;
    size_t at; /* in the chunk */
    size_t n;
    int64_t before; /* bytes of what is in the file in front of the chunk */
    int line;
    int column;
    kopt_status failed; /* to read on, and why; a file that is cut has not failed */
    kopt_error why;
    unsigned char chunk[CHUNK];
};

static kopt_status too_large(const struct kp_ktread *r, kopt_error *err)
{
    return kp_err(err, KOPT_ERANGE, "%s is larger than %d MiB", r->path,
                  (int)(KP_KTREAD_BYTES_MAX >> 20));
}

static bool fill(struct kp_ktread *r)
{
    if (r->failed != KOPT_OK)
        return false;
    r->before += (int64_t)r->n;
    r->at = 0;
    r->n = 0;
    kopt_status st = kp_unpack_read(r->f, r->chunk, CHUNK, &r->n, &r->why);
    if (st == KOPT_OK && r->before + (int64_t)r->n > KP_KTREAD_BYTES_MAX) {
        st = too_large(r, &r->why);
        r->n = 0;
    }
    if (st != KOPT_OK && !kp_unpack_cut(r->f))
        r->failed = st;
    return r->n > 0;
}

/* The next byte, not taken; -1 at the end. */
static int look(struct kp_ktread *r)
{
    return r->at < r->n || fill(r) ? r->chunk[r->at] : -1;
}

static void advance(struct kp_ktread *r)
{
    unsigned char c = r->chunk[r->at++];
    if (c == '\n') {
        r->line++;
        r->column = 1;
    } else if ((c & 0xC0) != 0x80) { /* columns are code points */
        r->column++;
    }
}

kopt_status kp_ktread_open(const char *path, struct kp_ktread **out, kopt_error *err)
{
    struct stat info;
    *out = NULL;
    struct kp_ktread *r = kp_calloc(1, sizeof(*r));
    if (!r)
        return kp_err_nomem(err);
    r->path = path;
    r->line = 1;
    r->column = 1;
    kopt_status st = kp_unpack_open(path, &r->f, err);
    if (st == KOPT_OK && stat(path, &info) == 0 && info.st_size > KP_KTREAD_BYTES_MAX)
        st = too_large(r, err); /* before anything of it is taken */
    if (st == KOPT_OK)
        *out = r;
    else
        kp_ktread_close(r);
    return st;
}

void kp_ktread_close(struct kp_ktread *r)
{
    if (r)
        kp_unpack_close(r->f);
    kp_free(r);
}

int kp_ktread_peek(struct kp_ktread *r)
{
    int c = look(r);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance(r);
        c = look(r);
    }
    return c;
}

bool kp_ktread_take(struct kp_ktread *r, char c)
{
    if (kp_ktread_peek(r) != (unsigned char)c)
        return false;
    advance(r);
    return true;
}

static void emit(struct kp_buf *out, const void *bytes, size_t n)
{
    if (out)
        kp_buf_add(out, bytes, n);
}

static void take(struct kp_ktread *r, struct kp_buf *out)
{
    emit(out, &r->chunk[r->at], 1);
    advance(r);
}

/* From quote to quote. */
static bool pass_string(struct kp_ktread *r, struct kp_buf *out)
{
    bool escaped = false;
    take(r, out);
    for (;;) {
        int c = look(r);
        if (c < 0)
            return false;
        take(r, out);
        if (c == '"' && !escaped)
            return true;
        escaped = c == '\\' && !escaped;
    }
}

static bool is_word(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '+' || c == '-' || c == '.' || c == '_';
}

/* A number, true, false, null, NaN, .. */
static void pass_word(struct kp_ktread *r, struct kp_buf *out)
{
    static const char *const not_json[] = {"NaN", "Infinity", "-Infinity"};
    char word[WORD_MAX];
    size_t n = 0;
    while (is_word(look(r)) && n < WORD_MAX) {
        word[n++] = (char)r->chunk[r->at];
        advance(r);
    }
    for (size_t i = 0; i < sizeof(not_json) / sizeof(not_json[0]); i++) {
        if (n == strlen(not_json[i]) && memcmp(word, not_json[i], n) == 0) {
            emit(out, "null", 4);
            return;
        }
    }
    emit(out, word, n); /* a longer one is passed in pieces */
}

/* A number or name that stands by itself; at the end of the file "12" may have been going to be
 * "123". */
static bool pass_scalar(struct kp_ktread *r, struct kp_buf *out)
{
    while (is_word(look(r)))
        pass_word(r, out);
    return look(r) >= 0;
}

/* From bracket to bracket. That they match is left to the JSON parser. */
static bool pass_nested(struct kp_ktread *r, struct kp_buf *out)
{
    size_t depth = 0;
    do {
        int c = look(r);
        if (c < 0)
            return false;
        if (c == '"') {
            if (!pass_string(r, out))
                return false;
        } else if (is_word(c)) {
            pass_word(r, out);
        } else {
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            take(r, out);
        }
    } while (depth > 0);
    return true;
}

bool kp_ktread_value(struct kp_ktread *r, struct kp_buf *out)
{
    int c = kp_ktread_peek(r);
    if (c == '"')
        return pass_string(r, out);
    if (c == '{' || c == '[')
        return pass_nested(r, out);
    return is_word(c) && pass_scalar(r, out);
}

struct kp_ktread_place kp_ktread_tell(struct kp_ktread *r)
{
    (void)kp_ktread_peek(r);
    return (struct kp_ktread_place){r->before + (int64_t)r->at, r->line, r->column};
}

kopt_status kp_ktread_seek(struct kp_ktread *r, struct kp_ktread_place place, kopt_error *err)
{
    kopt_status st = kp_ktread_status(r, err);
    if (st == KOPT_OK)
        st = kp_unpack_seek(r->f, place.at, err);
    if (st != KOPT_OK)
        return st;
    r->before = place.at;
    r->line = place.line;
    r->column = place.column;
    r->at = 0;
    r->n = 0;
    return KOPT_OK;
}

bool kp_ktread_cut(const struct kp_ktread *r)
{
    return kp_unpack_cut(r->f);
}

kopt_status kp_ktread_status(const struct kp_ktread *r, kopt_error *err)
{
    if (r->failed != KOPT_OK && err)
        *err = r->why;
    return r->failed;
}

kopt_status kp_ktread_error(const struct kp_ktread *r, kopt_error *err, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    if (r->failed != KOPT_OK)
        return kp_ktread_status(r, err);
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    (void)kp_err(err, KOPT_EINPUT, "%s", what);
    if (err)
        kp_err_at(err, r->path, r->line, r->column, NULL, 0);
    return KOPT_EINPUT;
}
