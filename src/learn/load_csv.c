/* SPDX-License-Identifier: MIT */
/* CSV (RFC 4180) with a header as rows, plain or compressed by gzip, read as a stream.
 * Layer: learn.
 *
 * zlib has its own memory. What a file may unpack to is bounded by bytes, rows and the length
 * of a row. */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "base/num.h"
#include "json/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
    CHUNK_BYTES = 1 << 16,
    RECORD_MAX = 1 << 20, /* bytes of a row */
    NONE = -1
};
static const uint64_t bytes_max = (uint64_t)4 << 30; /* of the file, unpacked */

struct csv {
    struct kp_intake *in;
    gzFile file;
    unsigned char chunk[CHUNK_BYTES];
    size_t at;
    size_t n;
    uint64_t total;
    int64_t line;   /* of the next byte */
    int64_t record; /* the line on which the row begins */
    /* One row: its values, each with a NUL behind it. */
    struct kp_buf text;
    size_t starts[KP_LOAD_CELLS_MAX];
    size_t n_values;
    const char *broken; /* what is wrong with it, or NULL */
    /* The header. */
    const char *names[KP_LOAD_CELLS_MAX];
    size_t n_names;
    int problem;
    int outcome;
    int time;
    double unit_ns;
};

static kopt_status at_line(struct csv *c, kopt_status st)
{
    kp_err_at(c->in->err, c->in->path, (int)(c->record > INT32_MAX ? INT32_MAX : c->record), 1,
              NULL, 0);
    return st;
}

/* --- bytes ---------------------------------------------------------------------------------
 */

static kopt_status read_error(struct csv *c)
{
    int code = Z_OK;
    const char *why = gzerror(c->file, &code);
    if (code == Z_MEM_ERROR)
        return kp_err_nomem(c->in->err);
    if (code == Z_ERRNO)
        return kp_err(c->in->err, KOPT_EIO, "%s: %s", c->in->path, strerrordesc_np(errno));
    if (code == Z_BUF_ERROR)
        return kp_err(c->in->err, KOPT_EINPUT, "%s: the compressed file is cut", c->in->path);
    return kp_err(c->in->err, KOPT_EINPUT, "%s: the compressed file is damaged: %s",
                  c->in->path, why);
}

static kopt_status fill(struct csv *c)
{
    int code = Z_OK;
    int n = gzread(c->file, c->chunk, CHUNK_BYTES);
    c->at = 0;
    c->n = n > 0 ? (size_t)n : 0;
    c->total += c->n;
    (void)gzerror(c->file, &code);
    if (n < 0 || (n == 0 && code != Z_OK && code != Z_STREAM_END))
        return read_error(c);
    if (c->total > bytes_max)
        return kp_err(c->in->err, KOPT_ERANGE, "%s: larger than %llu bytes", c->in->path,
                      (unsigned long long)bytes_max);
    return KOPT_OK;
}

/* The next byte, or NONE at the end. */
static kopt_status next(struct csv *c, int *byte)
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

static void broken(struct csv *c, const char *why)
{
    if (!c->broken)
        c->broken = why;
}

static void begin_value(struct csv *c)
{
    if (c->n_values < KP_LOAD_CELLS_MAX)
        c->starts[c->n_values++] = c->text.len;
    else
        broken(c, "too many columns");
}

/* Without the spaces around it, unless it was quoted. */
static void end_value(struct csv *c, bool quoted)
{
    size_t start = c->starts[c->n_values - 1];
    while (!quoted && c->text.len > start &&
           (c->text.ptr[c->text.len - 1] == ' ' || c->text.ptr[c->text.len - 1] == '\t'))
        c->text.len--;
    kp_buf_addc(&c->text, '\0');
}

static enum where plain_byte(struct csv *c, int byte, enum where where)
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
static enum where take_byte(struct csv *c, int byte, enum where where)
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
static void end_row(struct csv *c, int byte, enum where where)
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
static kopt_status read_row(struct csv *c, bool *more)
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
            return at_line(c,
                           kp_err(c->in->err, KOPT_EINPUT, "%s: a row has more than %d bytes",
                                  c->in->path, RECORD_MAX));
        st = next(c, &byte);
        if (st != KOPT_OK)
            return st;
    }
    end_row(c, byte, where);
    return kp_buf_status(&c->text, c->in->err);
}

static char *value_at(struct csv *c, size_t i)
{
    return (char *)c->text.ptr + c->starts[i];
}

static bool is_blank(struct csv *c)
{
    return c->n_values == 1 && !c->broken && value_at(c, 0)[0] == '\0';
}

/* --- the header ----------------------------------------------------------------------------
 */

static bool is_parameter_or_size(const struct kp_intake *in, const char *name)
{
    const struct kp_kernel *rules = in->o->rules;
    for (size_t i = 0; rules && i < rules->n_params; i++)
        if (strcmp(rules->params[i].name, name) == 0)
            return true;
    for (size_t i = 0; rules && i < rules->n_problem; i++)
        if (strcmp(rules->problem[i], name) == 0)
            return true;
    for (size_t i = 0; i < in->o->n_params; i++)
        if (strcmp(in->o->params[i], name) == 0)
            return true;
    return false;
}

/* A column that has a meaning of its own, or NONE. */
static int special(const struct csv *c, const char *name)
{
    for (size_t i = 0; i < c->n_names; i++)
        if (strcmp(c->names[i], name) == 0 && !is_parameter_or_size(c->in, name))
            return (int)i;
    return NONE;
}

static void find_special(struct csv *c)
{
    static const struct {
        const char *name;
        double ns;
    } times[] = {{"time_ns", 1}, {"time_us", 1e3}, {"us", 1e3}, {"time_ms", 1e6}, {"ms", 1e6}};
    c->problem = special(c, "problem");
    c->outcome = special(c, "outcome");
    c->time = NONE;
    for (size_t i = 0; c->time == NONE && i < sizeof(times) / sizeof(times[0]); i++) {
        c->time = special(c, times[i].name);
        c->unit_ns = times[i].ns;
    }
}

static kopt_status take_header(struct csv *c)
{
    struct kp_intake *in = c->in;
    if (c->broken)
        return at_line(c, kp_err(in->err, KOPT_EINPUT, "%s: no header can be read: %s",
                                 in->path, c->broken));
    for (size_t i = 0; i < c->n_values; i++) {
        const char *name = value_at(c, i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->names[k], name) == 0)
                return at_line(c,
                               kp_err(in->err, KOPT_EINPUT,
                                      "%s: the column '%.80s' is there twice", in->path, name));
        if (name[0] == '\0' || !kp_json_is_utf8(kp_str_from(name)))
            return at_line(c, kp_err(in->err, KOPT_EINPUT,
                                     "%s: column %zu of the header has no name in UTF-8",
                                     in->path, i + 1));
        c->names[i] = kp_arena_strndup(&in->arena, name, strlen(name));
        if (!c->names[i])
            return kp_err_nomem(in->err);
    }
    c->n_names = c->n_values;
    find_special(c);
    if (c->n_names >= 2)
        return KOPT_OK;
    kopt_status st =
        at_line(c, kp_err(in->err, KOPT_EINPUT,
                          "%s: no file of results: its first line names no columns", in->path));
    kp_err_hint(in->err, KP_LOAD_KINDS);
    return st;
}

static kopt_status skip_line(struct csv *c)
{
    int byte = 0;
    kopt_status st = KOPT_OK;
    while (st == KOPT_OK && byte != NONE && byte != '\n')
        st = next(c, &byte);
    return st;
}

/* The first row that is neither empty nor a comment. */
static kopt_status read_header(struct csv *c)
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
    return st == KOPT_OK ? kp_err(c->in->err, KOPT_EINPUT, "%s: the file is empty", c->in->path)
                         : st;
}

/* --- values --------------------------------------------------------------------------------
 */

/* "M=64 N=32", which is cut into pieces. *fine false: it is something else. */
static kopt_status take_problem(struct csv *c, struct kp_cells *cells, bool *fine)
{
    char *p = value_at(c, (size_t)c->problem);
    kopt_status st = KOPT_OK;
    *fine = true;
    for (p += strspn(p, " \t"); st == KOPT_OK && *p; p += strspn(p, " \t")) {
        char *name = p;
        p += strcspn(p, " \t");
        if (*p)
            *p++ = '\0';
        char *equals = strchr(name, '=');
        if (!equals || equals == name || equals[1] == '\0') {
            *fine = false;
            break;
        }
        *equals = '\0';
        st = kp_cells_add(cells, name, kp_str_from(equals + 1), KP_CELL_PROBLEM, c->in->err);
    }
    return st;
}

/* False: it is no time. */
static bool take_time(struct csv *c, double *ns)
{
    const char *outcome = c->outcome == NONE ? "ok" : value_at(c, (size_t)c->outcome);
    const char *text = c->time == NONE ? "" : value_at(c, (size_t)c->time);
    *ns = (double)(strcmp(outcome, "ok") == 0 ? NAN : INFINITY);
    if (strcmp(outcome, "ok") != 0 || text[0] == '\0')
        return true;
    bool fine = kp_f64_from_text(kp_str_from(text), ns);
    *ns *= c->unit_ns;
    return fine && isfinite(*ns) && *ns > 0;
}

static kopt_status take_values(struct csv *c, struct kp_cells *cells)
{
    struct kp_intake *in = c->in;
    struct kp_row_about about = {.line = c->record};
    kopt_status st = KOPT_OK;
    bool fine = true;
    if (!take_time(c, &about.time_ns)) {
        in->report->read++;
        kp_intake_skip(in, c->record, "the time '%.80s' is no positive number",
                       value_at(c, (size_t)c->time));
        return KOPT_OK;
    }
    if (c->problem != NONE)
        st = take_problem(c, cells, &fine);
    if (st == KOPT_OK && !fine) {
        in->report->read++;
        kp_intake_skip(in, c->record, "the problem is not written as \"M=64 N=32\"");
        return KOPT_OK;
    }
    for (size_t i = 0; st == KOPT_OK && i < c->n_names; i++) {
        bool about_it = (int)i == c->time || (int)i == c->outcome;
        if ((int)i != c->problem)
            st = kp_cells_add(cells, c->names[i], kp_str_from(value_at(c, i)),
                              about_it ? KP_CELL_ABOUT : KP_CELL_COLUMN, in->err);
    }
    return st == KOPT_OK ? kp_intake_row(in, cells->cells, cells->n, &about) : st;
}

static kopt_status take_row(struct csv *c, struct kp_cells *cells)
{
    struct kp_intake *in = c->in;
    if (!c->broken && c->n_values == c->n_names) {
        cells->n = 0;
        return take_values(c, cells);
    }
    in->report->read++;
    if (c->broken)
        kp_intake_skip(in, c->record, "%s", c->broken);
    else
        kp_intake_skip(in, c->record, "%zu values, but the header has %zu columns", c->n_values,
                       c->n_names);
    return KOPT_OK;
}

static kopt_status read_rows(struct csv *c)
{
    struct kp_cells cells = {0};
    bool more = true;
    kopt_status st = read_header(c);
    while (st == KOPT_OK && more) {
        st = read_row(c, &more);
        if (st != KOPT_OK || !more || is_blank(c))
            continue;
        if (c->in->report->read >= KP_LOAD_ROWS_MAX)
            st = kp_err(c->in->err, KOPT_ERANGE, "%s: more than %d rows", c->in->path,
                        KP_LOAD_ROWS_MAX);
        if (st == KOPT_OK)
            st = take_row(c, &cells);
    }
    kp_cells_deinit(&cells);
    return st;
}

kopt_status kp_load_csv(struct kp_intake *in)
{
    struct csv *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return kp_err_nomem(in->err);
    *c = (struct csv){.in = in, .line = 1, .text = KP_BUF_INIT((size_t)2 * RECORD_MAX)};
    in->report->source = KP_SOURCE_CSV;
    kopt_status st = kp_intake_name(in);
    errno = 0;
    c->file = st == KOPT_OK ? gzopen(in->path, "rbe") : NULL;
    if (c->file)
        st = read_rows(c);
    else if (st == KOPT_OK)
        st = errno ? kp_err(in->err, KOPT_EIO, "%s: %s", in->path, strerrordesc_np(errno))
                   : kp_err_nomem(in->err);
    if (c->file)
        (void)gzclose_r(c->file); /* a cut file was seen when its end was read */
    kp_buf_deinit(&c->text);
    kp_free(c);
    return st;
}
