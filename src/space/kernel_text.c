/* SPDX-License-Identifier: MIT */
/* Files, and the `#pragma kopt` lines of a source. Layer: space. */
#include "base/alloc.h"
#include "os/file.h"
#include "space/kernel_impl.h"

#include <stdio.h>
#include <string.h>

kopt_status kp_text_read(const char *path, struct kp_buf *out, kopt_error *err)
{
    kopt_status st = kp_file_read(path, out, err);
    if (st == KOPT_ERANGE)
        st = kp_err(err, KOPT_EINPUT, "%s: larger than %zu MiB", path, out->max >> 20);
    if (st == KOPT_OK && out->len == 0)
        st = kp_err(err, KOPT_EINPUT, "%s: the file is empty", path);
    if (st == KOPT_OK && memchr(out->ptr, 0, out->len))
        st = kp_err(err, KOPT_EINPUT, "%s: a binary file, not a kernel's source", path);
    return st;
}

char *kp_text_path(const char *beside, const char *name)
{
    const char *slash = strrchr(beside, '/');
    if (name[0] == '/' || !slash)
        return kp_strdup(name);
    size_t size = (size_t)(slash - beside) + strlen(name) + 2;
    char *path = kp_calloc(size, 1);
    if (path)
        (void)snprintf(path, size, "%.*s/%s", (int)(slash - beside), beside, name);
    return path;
}

/* ---- scanning C source ---- */

static char at(struct kp_str s, size_t i)
{
    if (i < s.len)
        return s.ptr[i];
    return '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static size_t skip_blanks(struct kp_str s, size_t i)
{
    while (is_blank(at(s, i)))
        i++;
    return i;
}

/* Behind `word` when it stands at `i` and ends there, else 0. */
static size_t take_word(struct kp_str s, size_t i, const char *word)
{
    size_t n = strlen(word);
    if (s.len - i < n || memcmp(s.ptr + i, word, n) != 0)
        return 0;
    char next = at(s, i + n);
    bool longer = next == '_' || (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') ||
                  (next >= 'A' && next <= 'Z');
    return longer ? 0 : i + n;
}

/* Behind "#pragma kopt" at the start of a line, else 0. */
static size_t match_pragma(struct kp_str s, size_t line_start)
{
    size_t i = line_start;
    if (i == 0 && s.len >= 3 && memcmp(s.ptr, "\xef\xbb\xbf", 3) == 0)
        i = 3; /* byte order mark */
    i = skip_blanks(s, i);
    if (at(s, i) != '#')
        return 0;
    i = take_word(s, skip_blanks(s, i + 1), "pragma");
    return i ? take_word(s, skip_blanks(s, i), "kopt") : 0;
}

/* Is the newline at `i` taken away by a backslash before it? */
static bool continued(struct kp_str s, size_t i)
{
    if (i > 0 && s.ptr[i - 1] == '\r')
        i--;
    return i > 0 && s.ptr[i - 1] == '\\';
}

static size_t line_end(struct kp_str s, size_t i)
{
    const char *nl = i < s.len ? memchr(s.ptr + i, '\n', s.len - i) : NULL;
    return nl ? (size_t)(nl - s.ptr) : s.len;
}

/* Behind the raw string whose R stands at `i`: R"name( .. )name". */
static size_t skip_raw_string(struct kp_str s, size_t i)
{
    size_t name = i + 2;
    size_t open = name;
    while (open < s.len && open - name <= 16 && s.ptr[open] != '(' && s.ptr[open] != '\n')
        open++;
    size_t n = open - name;
    if (at(s, open) != '(')
        return i + 2;
    for (size_t k = open + 1; k + n + 1 < s.len; k++) {
        if (s.ptr[k] == ')' && memcmp(s.ptr + k + 1, s.ptr + name, n) == 0 &&
            s.ptr[k + 1 + n] == '"')
            return k + n + 2;
    }
    return s.len;
}

/* Behind the string or character whose quote stands at `i`; a line end ends it. */
static size_t skip_quoted(struct kp_str s, size_t i)
{
    char quote = s.ptr[i];
    for (i++; i < s.len && s.ptr[i] != quote; i++) {
        if (s.ptr[i] == '\n' && !continued(s, i))
            return i;
        if (s.ptr[i] == '\\' && i + 1 < s.len && s.ptr[i + 1] != '\n' && s.ptr[i + 1] != '\r')
            i++;
    }
    return i < s.len ? i + 1 : s.len;
}

/* From a line's start to the start of the next line, over what cannot hold a pragma. */
static size_t skip_line(struct kp_str s, size_t i, bool *in_comment)
{
    while (i < s.len) {
        char c = s.ptr[i];
        char next = at(s, i + 1);
        if (*in_comment) {
            if (c == '\n')
                return i + 1;
            *in_comment = !(c == '*' && next == '/');
            i += *in_comment ? 1 : 2;
        } else if (c == '\n') {
            return i + 1;
        } else if (c == '/' && next == '*') {
            *in_comment = true;
            i += 2;
        } else if (c == '/' && next == '/') {
            i = line_end(s, i);
            while (i < s.len && continued(s, i))
                i = line_end(s, i + 1);
        } else if (c == 'R' && next == '"') {
            i = skip_raw_string(s, i);
        } else if (c == '"' || c == '\'') {
            i = skip_quoted(s, i);
        } else {
            i++;
        }
    }
    return s.len;
}

static int count_lines(struct kp_str s, size_t from, size_t to)
{
    int n = 0;
    for (size_t i = from; i < to; i++)
        n += s.ptr[i] == '\n';
    return n;
}

bool kp_pragma_next(struct kp_str source, struct kp_pragma_scan *scan, struct kp_pragma *out)
{
    while (scan->pos < source.len) {
        size_t start = scan->pos;
        size_t text = scan->in_comment ? 0 : match_pragma(source, start);
        if (!text) {
            scan->pos = skip_line(source, start, &scan->in_comment);
            scan->line += count_lines(source, start, scan->pos);
            continue;
        }
        size_t end = line_end(source, text);
        while (end < source.len && continued(source, end))
            end = line_end(source, end + 1);
        out->start = start;
        out->text = text;
        out->line = scan->line + 1;
        out->next = end < source.len ? end + 1 : end;
        scan->pos = out->next;
        scan->line += count_lines(source, start, out->next);
        out->end = end > text && source.ptr[end - 1] == '\r' ? end - 1 : end;
        return true;
    }
    return false;
}

bool kp_rules_next(struct kp_str text, struct kp_pragma_scan *scan, struct kp_pragma *out)
{
    while (scan->pos < text.len) {
        size_t start = scan->pos;
        size_t first = start;
        if (start == 0 && text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
            first = 3; /* byte order mark */
        size_t end = line_end(text, start);
        bool comment = at(text, skip_blanks(text, first)) == '#';
        while (!comment && end < text.len && continued(text, end))
            end = line_end(text, end + 1);
        *out = (struct kp_pragma){.start = start, .text = first, .line = scan->line + 1};
        out->next = end < text.len ? end + 1 : end;
        out->end = end > first && text.ptr[end - 1] == '\r' ? end - 1 : end;
        scan->pos = out->next;
        scan->line += count_lines(text, start, out->next);
        struct kp_str line = {text.ptr + first, out->end - first};
        if (kp_lex(line, 0).kind != KP_TOK_END)
            return true;
    }
    return false;
}
