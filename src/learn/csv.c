/* SPDX-License-Identifier: MIT */
#include "learn/csv.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "os/unpack.h"
#include "json/json.h"

#include <string.h>

enum {
    CHUNK_BYTES = 1 << 16,
    RECORD_MAX = 1 << 20,  /* bytes of a row */
    NAMES_BYTES = 4 << 20, /* of the header */
    NONE = -1
};
static const uint64_t bytes_max = (uint64_t)4 << 30; /* of the file, unpacked */

struct kp_csv {
    const char *path; /* ours */
    kopt_error *err;  /* of the call at hand */
    struct kp_unpack *file;
    unsigned char chunk[CHUNK_BYTES];
    size_t at;
    size_t n;
    uint64_t total;
    int64_t line;   /* of the next byte */
    int64_t record; /* the line on which the row begins */
    /* One row: its values, each with a NUL behind it. */
    struct kp_buf text;
    size_t starts[KP_CSV_COLUMNS_MAX];
    size_t n_values;
    const char *broken; /* what is wrong with it, or NULL */
    /* The header. */
    const char *names[KP_CSV_COLUMNS_MAX];
    size_t n_names;
    int64_t header;
    struct kp_arena arena;
};

static kopt_status at_line(struct kp_csv *c, kopt_status st)
{
    kp_err_at(c->err, c->path, (int)(c->record > INT32_MAX ? INT32_MAX : c->record), 1, NULL,
              0);
    return st;
}

/* --- bytes ---------------------------------------------------------------------------------
 */

static kopt_status fill(struct kp_csv *c)
{
    kopt_status st = kp_unpack_read(c->file, c->chunk, CHUNK_BYTES, &c->n, c->err);
    c->at = 0;
    c->total += c->n;
    if (st == KOPT_OK && c->total > bytes_max)
        return kp_err(c->err, KOPT_ERANGE, "%s: larger than %llu bytes", c->path,
                      (unsigned long long)bytes_max);
    return st;
}

/* The next byte, or NONE at the end. */
static kopt_status next(struct kp_csv *c, int *byte)
{
    kopt_status st = c->at == c->n ? fill(c) : KOPT_OK;
    *byte = NONE;
    if (st != KOPT_OK || c->n == 0)
        return st;
    *byte = c->chunk[c->at++];
    c->line += *byte == '\n';
    return KOPT_OK;
}

/* --- rows ----------------------------------------------------------------------------------
 */

enum where { AT_BEGIN, IN_PLAIN, IN_QUOTES, AFTER_QUOTE };

static void broken(struct kp_csv *c, const char *why)
{
    if (!c->broken)
        c->broken = why;
}

static void begin_value(struct kp_csv *c)
{
    if (c->n_values < KP_CSV_COLUMNS_MAX)
        c->starts[c->n_values++] = c->text.len;
    else
        broken(c, "too many columns");
}

/* Without the spaces around it, unless it was quoted. */
static void end_value(struct kp_csv *c, bool quoted)
{
    size_t start = c->starts[c->n_values - 1];
    while (!quoted && c->text.len > start &&
           (c->text.ptr[c->text.len - 1] == ' ' || c->text.ptr[c->text.len - 1] == '\t'))
        c->text.len--;
    kp_buf_addc(&c->text, '\0');
}

static enum where plain_byte(struct kp_csv *c, int byte, enum where where)
{
    if (where == AT_BEGIN && byte == '"')
        return IN_QUOTES;
    if (where == AT_BEGIN && (byte == ' ' || byte == '\t'))
        return AT_BEGIN;
    if (where == AFTER_QUOTE) {
        if (byte == '"') {
            kp_buf_addc(&c->text, '"');
            return IN_QUOTES;
        }
        if (byte != ' ' && byte != '\t' && byte != '\r')
            broken(c, "something stands behind a closing quote");
        return AFTER_QUOTE;
    }
    if (byte == 0)
        broken(c, "there is a NUL in it");
    else
        kp_buf_addc(&c->text, (char)byte);
    return IN_PLAIN;
}

/* One byte that ends nothing; a value's end is at a comma. */
static enum where take_byte(struct kp_csv *c, int byte, enum where where)
{
    if (where == IN_QUOTES) {
        if (byte == '"')
            return AFTER_QUOTE;
        if (byte == 0)
            broken(c, "there is a NUL in it");
        else
            kp_buf_addc(&c->text, (char)byte);
        return IN_QUOTES;
    }
    if (byte == ',') {
        end_value(c, where == AFTER_QUOTE);
        begin_value(c);
        return AT_BEGIN;
    }
    return plain_byte(c, byte, where);
}

/* The row of a plain file that has no newline may have lost its end. */
static void end_row(struct kp_csv *c, int byte, enum where where)
{
    size_t start = c->starts[c->n_values - 1];
    if (where == IN_PLAIN && c->text.len > start && c->text.ptr[c->text.len - 1] == '\r')
        c->text.len--;
    end_value(c, where == AFTER_QUOTE);
    if (byte == NONE)
        broken(c, where == IN_QUOTES ? "a quote is not closed"
                                     : "it is cut: the last line has no newline");
}

/* *more false: the end. */
static kopt_status read_row(struct kp_csv *c, bool *more)
{
    enum where where = AT_BEGIN;
    int byte = NONE;
    kp_buf_clear(&c->text);
    c->n_values = 0;
    c->broken = NULL;
    c->record = c->line;
    kopt_status st = next(c, &byte);
    *more = byte != NONE;
    if (st != KOPT_OK || !*more)
        return st;
    begin_value(c);
    while (byte != NONE && (byte != '\n' || where == IN_QUOTES)) {
        where = take_byte(c, byte, where);
        if (c->text.len >= RECORD_MAX || c->line - c->record > RECORD_MAX)
            return at_line(c, kp_err(c->err, KOPT_EINPUT, "%s: a row has more than %d bytes",
                                     c->path, RECORD_MAX));
        st = next(c, &byte);
        if (st != KOPT_OK)
            return st;
    }
    end_row(c, byte, where);
    return kp_buf_status(&c->text, c->err);
}

char *kp_csv_value(struct kp_csv *c, size_t i)
{
    return (char *)c->text.ptr + c->starts[i];
}

static bool is_blank(struct kp_csv *c)
{
    return c->n_values == 1 && !c->broken && kp_csv_value(c, 0)[0] == '\0';
}

static kopt_status take_header(struct kp_csv *c)
{
    if (c->broken)
        return at_line(c, kp_err(c->err, KOPT_EINPUT, "%s: no header can be read: %s", c->path,
                                 c->broken));
    for (size_t i = 0; i < c->n_values; i++) {
        const char *name = kp_csv_value(c, i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->names[k], name) == 0)
                return at_line(c,
                               kp_err(c->err, KOPT_EINPUT,
                                      "%s: the column '%.80s' is there twice", c->path, name));
        if (name[0] == '\0' || !kp_json_is_utf8(kp_str_from(name)))
            return at_line(c, kp_err(c->err, KOPT_EINPUT,
                                     "%s: column %zu of the header has no name in UTF-8",
                                     c->path, i + 1));
        c->names[i] = kp_arena_strndup(&c->arena, name, strlen(name));
        if (!c->names[i])
            return kp_err_nomem(c->err);
    }
    c->n_names = c->n_values;
    c->header = c->record;
    return KOPT_OK;
}

static kopt_status skip_line(struct kp_csv *c)
{
    int byte = 0;
    kopt_status st = KOPT_OK;
    while (st == KOPT_OK && byte != NONE && byte != '\n')
        st = next(c, &byte);
    return st;
}

/* The first row that is neither empty nor a comment. */
static kopt_status read_header(struct kp_csv *c)
{
    bool more = true;
    kopt_status st = fill(c);
    if (c->n >= 3 && memcmp(c->chunk, "\xef\xbb\xbf", 3) == 0)
        c->at = 3; /* the byte order mark of UTF-8 */
    while (st == KOPT_OK && more) {
        if (c->at == c->n)
            st = fill(c);
        if (st == KOPT_OK && c->at < c->n && c->chunk[c->at] == '#') {
            st = skip_line(c);
            continue;
        }
        if (st == KOPT_OK)
            st = read_row(c, &more);
        if (st == KOPT_OK && more && !is_blank(c))
            return take_header(c);
    }
    return st == KOPT_OK ? kp_err(c->err, KOPT_EINPUT, "%s: the file is empty", c->path) : st;
}

/* --- the interface -------------------------------------------------------------------------
 */

static kopt_status open_file(struct kp_csv *c, const char *path)
{
    c->path = kp_arena_strndup(&c->arena, path, strlen(path));
    if (!c->path)
        return kp_err_nomem(c->err);
    kopt_status st = kp_unpack_open(c->path, &c->file, c->err);
    return st == KOPT_OK ? read_header(c) : st;
}

kopt_status kp_csv_open(const char *path, struct kp_csv **out, kopt_error *err)
{
    *out = NULL;
    struct kp_csv *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return kp_err_nomem(err);
    c->err = err;
    c->line = 1;
    c->text = KP_BUF_INIT((size_t)2 * RECORD_MAX);
    c->arena = KP_ARENA_INIT(NAMES_BYTES);
    kopt_status st = open_file(c, path);
    if (st == KOPT_OK)
        *out = c;
    else
        kp_csv_close(c);
    return st;
}

void kp_csv_close(struct kp_csv *c)
{
    if (!c)
        return;
    kp_unpack_close(c->file);
    kp_buf_deinit(&c->text);
    kp_arena_deinit(&c->arena);
    kp_free(c);
}

size_t kp_csv_n_columns(const struct kp_csv *c)
{
    return c->n_names;
}

const char *kp_csv_column(const struct kp_csv *c, size_t i)
{
    return c->names[i];
}

int64_t kp_csv_header_line(const struct kp_csv *c)
{
    return c->header;
}

kopt_status kp_csv_next(struct kp_csv *c, bool *more, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    c->err = err;
    do
        st = read_row(c, more);
    while (st == KOPT_OK && *more && is_blank(c));
    return st;
}

int64_t kp_csv_line(const struct kp_csv *c)
{
    return c->record;
}

const char *kp_csv_broken(const struct kp_csv *c)
{
    return c->broken;
}

size_t kp_csv_n_values(const struct kp_csv *c)
{
    return c->n_values;
}
