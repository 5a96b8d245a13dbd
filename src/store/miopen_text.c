/* SPDX-License-Identifier: MIT */
/* MIOpen's text databases, line by line. Layer: store. */
#include "base/num.h"
#include "os/file.h"
#include "store/miopen_impl.h"

#include <string.h>

enum {
    BAD_LINES_MAX = 100 /* in front of the first good one; then it is another kind of file */
};

#define FIND_PREFIX "miopenConvolution" /* begins the name of each algorithm */

struct text {
    const struct kp_miopen_walk *w;
    struct kp_buf line;
    struct kp_buf key; /* cut into pieces */
    int64_t number;    /* of the line at hand */
    bool begun;        /* something was read */
    bool known;        /* the kind is */
    const char *problem[KP_MIOPEN_KEY_COLUMNS];
    const char *values[KP_MIOPEN_VALUES_MAX];
    struct kp_miopen_row row;
};

static void skip(struct text *t, const char *reason)
{
    kp_miopen_skip(t->w, t->number, reason);
}

/* An error at the line at hand, whose text may be cut already. */
static kopt_status bad_file(const struct text *t, const char *what)
{
    const struct kp_miopen_walk *w = t->w;
    kopt_status st = kp_err(w->err, KOPT_EINPUT, "%s: %s", w->path, what);
    const char *line = kp_buf_text(&t->line);
    kp_err_at(w->err, w->path, (int)t->number, 0, line, (int)strlen(line));
    return st;
}

static kopt_status foreign(const struct text *t)
{
    const struct kp_miopen_count *c = t->w->count;
    kopt_status st = kp_err(t->w->err, KOPT_EINPUT, "%s: no database of MIOpen: %s", t->w->path,
                            c->reason ? c->reason : "there is nothing in it");
    kp_err_at(t->w->err, t->w->path, (int)c->first_line, 0, NULL, 0);
    kp_err_hint(t->w->err, "expected SQLite tables, or lines such as "
                           "64-56-56-1x1-64-56-56-8-0x0-1x1-1x1-0-NCHW-FP32-F=solver:1,2,3");
    return st;
}

/* --- entries -------------------------------------------------------------------------------
 */

static kopt_status perf_entry(struct text *t, char *values)
{
    t->row.n_values = kp_miopen_values(values, t->values);
    if (t->row.n_values == 0) {
        skip(t, "a vector that is empty, has a gap or is too long");
        return KOPT_OK;
    }
    t->row.values = t->values;
    return kp_miopen_emit(t->w, &t->row);
}

/* solver,time,workspace,.. */
static kopt_status find_entry(struct text *t, char *values)
{
    int64_t workspace = 0;
    double ms = 0;
    size_t n = kp_miopen_values(values, t->values);
    if (n < 3 || !kp_f64_from_text(kp_str_from(t->values[1]), &ms) || !(ms > 0) ||
        !kp_str_to_i64(kp_str_from(t->values[2]), &workspace) || workspace < 0) {
        skip(t, "an entry without solver, time and workspace");
        return KOPT_OK;
    }
    t->row.algorithm = t->row.solver;
    t->row.solver = t->values[0];
    t->row.time_ms = ms;
    t->row.workspace = workspace;
    return kp_miopen_emit(t->w, &t->row);
}

static kopt_status entry(struct text *t, char *text)
{
    char *colon = strchr(text, ':');
    if (!colon || colon == text) {
        skip(t, "an entry without a name and ':'");
        return KOPT_OK;
    }
    *colon = '\0';
    bool find = strncmp(text, FIND_PREFIX, strlen(FIND_PREFIX)) == 0;
    if (!t->known)
        t->w->count->kind = find ? KP_MIOPEN_FIND : KP_MIOPEN_TEXT;
    t->known = true;
    if (find != (t->w->count->kind == KP_MIOPEN_FIND)) {
        skip(t, "an entry of another kind of database");
        return KOPT_OK;
    }
    t->row.solver = text;
    t->row.algorithm = NULL;
    return find ? find_entry(t, colon + 1) : perf_entry(t, colon + 1);
}

static kopt_status entries(struct text *t, char *text)
{
    kopt_status st = KOPT_OK;
    while (st == KOPT_OK && text) {
        char *end = strchr(text, ';');
        if (end)
            *end = '\0';
        if (*text || !end) /* a ';' at the end of the line is no entry */
            st = entry(t, text);
        text = end && end[1] ? end + 1 : NULL;
    }
    return st;
}

/* --- lines ---------------------------------------------------------------------------------
 */

/* What is wrong with the line's bytes, or NULL. */
static const char *not_text(const struct kp_buf *line)
{
    if (line->failed == KOPT_ERANGE)
        return "a line of more than 1 MiB";
    for (size_t i = 0; i < line->len; i++) {
        if (line->ptr[i] < 0x20 || line->ptr[i] == 0x7f)
            return "bytes that are no text";
    }
    return NULL;
}

static kopt_status good_line(struct text *t)
{
    char *line = (char *)t->line.ptr;
    char *equals = strchr(line, '=');
    if (!equals || equals - line > KP_MIOPEN_TEXT_MAX) {
        skip(t, "no key and '='");
        return KOPT_OK;
    }
    kp_buf_clear(&t->key);
    kp_buf_add(&t->key, line, (size_t)(equals - line));
    if (t->key.failed != KOPT_OK)
        return kp_buf_status(&t->key, t->w->err);
    const char *wrong =
        equals == line ? "no key and '='" : kp_miopen_parse_key((char *)t->key.ptr, t->problem);
    if (wrong) {
        skip(t, wrong);
        return KOPT_OK;
    }
    *equals = '\0';
    t->row = (struct kp_miopen_row){.columns = kp_miopen_key_columns,
                                    .problem = t->problem,
                                    .n_columns = KP_MIOPEN_KEY_COLUMNS,
                                    .key = line,
                                    .line = t->number};
    return entries(t, equals + 1);
}

static kopt_status end_line(struct text *t)
{
    kopt_status st = KOPT_OK;
    t->number++;
    if (t->line.failed == KOPT_ENOMEM)
        return kp_err_nomem(t->w->err);
    if (t->line.len > 0 && t->line.ptr[t->line.len - 1] == '\r')
        t->line.ptr[--t->line.len] = '\0';
    const char *wrong = not_text(&t->line);
    if (wrong)
        skip(t, wrong);
    else if (t->line.len > 0)
        st = good_line(t);
    kp_buf_clear(&t->line);
    if (st == KOPT_OK && !t->known && t->w->count->skipped >= BAD_LINES_MAX)
        st = foreign(t);
    return st;
}

static bool compressed(const unsigned char *p, size_t n)
{
    static const struct {
        const char *magic;
        size_t n;
    } kinds[] = {{"BZh", 3},
                 {"\x1f\x8b", 2},
                 {"\xfd"
                  "7zXZ",
                  5},
                 {"PK\x03\x04", 4},
                 {"\x28\xb5\x2f\xfd", 4}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (n >= kinds[i].n && memcmp(p, kinds[i].magic, kinds[i].n) == 0)
            return true;
    }
    return false;
}

static kopt_status see_bytes(void *user, const void *bytes, size_t n)
{
    struct text *t = user;
    const unsigned char *p = bytes;
    if (!t->begun && compressed(p, n)) {
        kopt_status st = kp_err(t->w->err, KOPT_EINPUT, "%s: a compressed file", t->w->path);
        kp_err_hint(t->w->err, "unpack it first, for example with bunzip2 --keep");
        return st;
    }
    t->begun = true;
    while (n > 0) {
        const unsigned char *end = memchr(p, '\n', n);
        size_t part = end ? (size_t)(end - p) : n;
        kp_buf_add(&t->line, p, part);
        kopt_status st = end ? end_line(t) : KOPT_OK;
        if (st != KOPT_OK)
            return st;
        p += part + (end ? 1 : 0);
        n -= part + (end ? 1 : 0);
    }
    return KOPT_OK;
}

/* What is right about the whole of it. */
static kopt_status end_file(struct text *t)
{
    const struct kp_miopen_walk *w = t->w;
    if (!t->begun)
        return kp_err(w->err, KOPT_EINPUT, "%s: the file is empty", w->path);
    if (t->line.failed == KOPT_ENOMEM)
        return kp_err_nomem(w->err);
    if (t->line.len > 0 || t->line.failed != KOPT_OK) {
        t->number++;
        skip(t, "the file ends within this line");
        if (!t->known)
            return bad_file(t, "no database of MIOpen, or cut in its first line");
    }
    return t->known ? KOPT_OK : foreign(t);
}

kopt_status kp_miopen_read_text(const struct kp_miopen_walk *w)
{
    struct text t = {.w = w,
                     .line = KP_BUF_INIT(KP_MIOPEN_LINE_MAX),
                     .key = KP_BUF_INIT(KP_MIOPEN_TEXT_MAX + 1)};
    w->count->kind = KP_MIOPEN_TEXT;
    kopt_status st = kp_file_walk(w->path, see_bytes, &t, w->err);
    if (st == KOPT_OK)
        st = end_file(&t);
    kp_buf_deinit(&t.key);
    kp_buf_deinit(&t.line);
    return st;
}
