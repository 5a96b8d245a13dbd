/* SPDX-License-Identifier: MIT */
/* What a driver's compiler says. Layer: device. */
#include "device/opencl/cl.h"

#include <stdio.h>
#include <string.h>

/* --- messages ------------------------------------------------------------------------------
 */

/* What some compilers that heed no #line call the source. */
static const char *const stand_ins[] = {"input.cl", "<kernel>", "<source>", "<program source>"};

/* The number in front of a colon at the beginning of `s`; 0 = none. */
static int leading_line(struct kp_str s)
{
    struct kp_str rest;
    int64_t n = 0;
    struct kp_str number = kp_str_cut(s, ':', &rest);
    if (number.len == s.len || !kp_str_to_i64(number, &n) || n < 1 || n > INT32_MAX)
        return 0;
    return (int)n;
}

/* One line of a log; where it begins with a stand-in and a line number, with the user's path
 * and line instead. */
static void add_log_line(struct kp_str line, const char *path, int lead, struct kp_buf *out)
{
    for (size_t i = 0; i < sizeof(stand_ins) / sizeof(*stand_ins); i++) {
        size_t n = strlen(stand_ins[i]);
        if (!kp_str_starts(line, stand_ins[i]) || line.len <= n || line.ptr[n] != ':')
            continue;
        struct kp_str rest = {line.ptr + n + 1, line.len - n - 1};
        int number = leading_line(rest);
        if (number == 0)
            continue;
        while (rest.len && rest.ptr[0] != ':')
            rest = (struct kp_str){rest.ptr + 1, rest.len - 1};
        if (number > lead)
            kp_buf_addf(out, "%s:%d", path, number - lead);
        else
            kp_buf_addf(out, "<macros>:%d", number > 1 ? number - 1 : 1);
        line = rest;
        break;
    }
    kp_buf_add(out, line.ptr, line.len);
}

void kp_cl_log_clean(struct kp_str log, const char *path, int lead_lines, struct kp_buf *out)
{
    struct kp_str rest = log;
    while (rest.len) {
        const char *eol = memchr(rest.ptr, '\n', rest.len);
        size_t n = eol ? (size_t)(eol - rest.ptr) + 1 : rest.len;
        add_log_line((struct kp_str){rest.ptr, n}, path ? path : "source", lead_lines, out);
        rest = (struct kp_str){rest.ptr + n, rest.len - n};
    }
}

/* "file:line:column", taken from both ends: a file's name may hold colons. */
struct place {
    struct kp_str file;
    int64_t line;
    int64_t column;
};

/* The number behind the last colon of `s`, which loses both. */
static bool take_last_number(struct kp_str *s, int64_t *out)
{
    const char *colon = s->len ? memrchr(s->ptr, ':', s->len) : NULL;
    if (!colon)
        return false;
    size_t at = (size_t)(colon - s->ptr);
    if (!kp_str_to_i64((struct kp_str){colon + 1, s->len - at - 1}, out))
        return false;
    s->len = at;
    return true;
}

static bool read_place(struct kp_str s, struct place *out)
{
    s = kp_str_trim(s);
    out->column = 1;
    if (!take_last_number(&s, &out->line))
        return false;
    int64_t line;
    if (take_last_number(&s, &line)) {
        out->column = out->line;
        out->line = line;
    }
    out->file = s;
    return s.len > 0 && out->line > 0 && out->line <= INT32_MAX && out->column > 0 &&
           out->column <= INT32_MAX;
}

/* With the kind "error: ": "error: file:3:5: text" (PoCL) or "file:3:5: error: text" (everybody
 * else). The text is what is left when there is no place. */
static bool read_line(struct kp_str line, const char *kind, struct place *place,
                      struct kp_str *text, bool *has_place)
{
    size_t kind_len = strlen(kind);
    const char *mark = memmem(line.ptr, line.len, kind, kind_len);
    if (!mark)
        return false;
    const char *end = line.ptr + line.len;
    *text = (struct kp_str){mark + kind_len, 0};
    text->len = (size_t)(end - text->ptr);
    if (mark != line.ptr) {
        struct kp_str before =
            kp_str_trim((struct kp_str){line.ptr, (size_t)(mark - line.ptr)});
        static const char fatal_word[] = "fatal";
        size_t n = sizeof(fatal_word) - 1;
        if (before.len >= n && memcmp(before.ptr + before.len - n, fatal_word, n) == 0)
            before = kp_str_trim((struct kp_str){before.ptr, before.len - n});
        if (before.len && before.ptr[before.len - 1] == ':')
            before.len--;
        *has_place = read_place(before, place);
        return true;
    }
    *has_place = false;
    for (const char *p = text->ptr; (size_t)(end - p) >= 2 && !*has_place; p++) {
        if (p[0] != ':' || p[1] != ' ')
            continue;
        struct kp_str before = {text->ptr, (size_t)(p - text->ptr)};
        if (read_place(before, place)) {
            *has_place = true;
            *text = (struct kp_str){p + 2, (size_t)(end - p - 2)};
        }
    }
    return true;
}

static struct kp_str source_line(struct kp_str source, int64_t line)
{
    struct kp_str rest = source;
    struct kp_str text = {"", 0};
    for (int64_t i = 0; i < line; i++) {
        if (!rest.len)
            return (struct kp_str){"", 0};
        text = kp_str_cut(rest, '\n', &rest);
    }
    if (text.len && text.ptr[text.len - 1] == '\r')
        text.len--;
    return text;
}

/* Compilers count bytes, messages count characters. */
static int character_column(struct kp_str line, int64_t column)
{
    int n = 1;
    for (size_t i = 0; i + 1 < (size_t)column && i < line.len; i++)
        n += ((unsigned char)line.ptr[i] & 0xC0) != 0x80;
    return line.len ? n : (int)column;
}

static void set_place(const struct place *place, const struct kp_compile_job *job,
                      kopt_error *err)
{
    char file[256];
    struct kp_str excerpt = {"", 0};
    (void)snprintf(file, sizeof(file), "%.*s", KP_STR_FMT(place->file));
    if (job && kp_str_is(place->file, job->path ? job->path : "source"))
        excerpt = source_line(job->source, place->line);
    kp_err_at(err, file, (int)place->line, character_column(excerpt, place->column),
              excerpt.ptr, (int)excerpt.len);
}

kopt_status kp_cl_log_error(struct kp_str log, const struct kp_compile_job *job,
                            kopt_error *err)
{
    struct kp_str rest = log;
    struct kp_str first = {"", 0};
    const char *path = job && job->path ? job->path : "source";
    while (rest.len) {
        struct kp_str line = kp_str_trim(kp_str_cut(rest, '\n', &rest));
        struct place place = {0};
        struct kp_str text;
        bool has_place = false;
        if (!first.len)
            first = line;
        if (!read_line(line, "error: ", &place, &text, &has_place))
            continue;
        (void)kp_err(err, KOPT_EINPUT, "%.*s", KP_STR_FMT(text));
        if (has_place)
            set_place(&place, job, err);
        return KOPT_EINPUT;
    }
    if (first.len)
        return kp_err(err, KOPT_EINPUT, "%s does not compile: %.*s", path, KP_STR_FMT(first));
    return kp_err(err, KOPT_EINPUT, "%s does not compile, and the compiler gives no reason",
                  path);
}

/* Is `name` the name of one of the job's macros ("BM=64")? */
static bool is_macro(struct kp_str name, const struct kp_compile_job *job)
{
    for (size_t i = 0; i < job->n_macros && name.len; i++) {
        const char *m = job->macros[i];
        if (strncmp(m, name.ptr, name.len) == 0 &&
            (m[name.len] == 0 || m[name.len] == '=' || m[name.len] == '('))
            return true;
    }
    return false;
}

/* The NAME of "'NAME' macro redefined", which all compilers made from Clang say. */
static struct kp_str redefined_name(struct kp_str line)
{
    static const char mark[] = "' macro redefined";
    const char *end = memmem(line.ptr, line.len, mark, sizeof(mark) - 1);
    const char *quote = end ? memrchr(line.ptr, '\'', (size_t)(end - line.ptr)) : NULL;
    return quote ? (struct kp_str){quote + 1, (size_t)(end - quote) - 1}
                 : (struct kp_str){"", 0};
}

kopt_status kp_cl_log_redefined(struct kp_str log, const struct kp_compile_job *job,
                                kopt_error *err)
{
    while (log.len) {
        struct kp_str line = kp_str_trim(kp_str_cut(log, '\n', &log));
        struct kp_str name = redefined_name(line);
        struct place place = {0};
        struct kp_str text;
        bool has_place = false;
        if (!is_macro(name, job))
            continue;
        (void)kp_err(err, KOPT_EINPUT,
                     "macro %.*s is defined again here, which undoes the value being tuned",
                     KP_STR_FMT(name));
        if (read_line(line, "warning: ", &place, &text, &has_place) && has_place)
            set_place(&place, job, err);
        kp_err_hint(err, "put #ifndef %.*s and #endif around that line", KP_STR_FMT(name));
        return KOPT_EINPUT;
    }
    return KOPT_OK;
}
