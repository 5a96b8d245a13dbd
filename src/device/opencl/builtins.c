/* SPDX-License-Identifier: MIT */
/* The built-in functions that a source can call. Layer: device.
 *
 * Before every source PoCL parses Clang's opencl-c.h: some 14,500 declarations, most of
 * the front end's time, of which a kernel calls a handful. A declaration that nobody calls
 * makes no code, so PoCL is told that it has read the header (its include guard is defined),
 * and the header's directives and those of its declarations whose name occurs in the source, or
 * can be pasted from its words, stand in front of the source. Where that could differ (further
 * files, words over two lines, a header in another form) or does not compile, the source is
 * built as it is. */
#include "base/alloc.h"
#include "base/map.h"
#include "device/opencl/cl.h"
#include "os/file.h"

#include <ctype.h>
#include <string.h>

enum { HEADER_MAX = 16 << 20, PIECES_MAX = 1 << 20, LOG_MAX = 4 << 20, NAME_MAX = 63 };

static const char header_name[] = "/opencl-c.h";

/* --- finding the header --------------------------------------------------------------------
 */

/* The path in a log line like "warning: /usr/share/pocl/include/opencl-c.h:35:9: ..". */
static char *path_in_log(struct kp_str log)
{
    size_t n = sizeof(header_name) - 1;
    struct kp_str rest = log;
    while (rest.len) {
        struct kp_str line = kp_str_cut(rest, '\n', &rest);
        const char *begin = memchr(line.ptr, '/', line.len);
        const char *name = memmem(line.ptr, line.len, header_name, n);
        if (begin && name && (size_t)(name - line.ptr) + n < line.len && name[n] == ':')
            return kp_strndup(begin, (size_t)(name - begin) + n);
    }
    return NULL;
}

/* Only the compiler knows which header it reads: a macro of the header's that is defined before
 * makes it name the file. */
static char *find_header(struct kp_cl_session *s)
{
    struct kp_buf log = KP_BUF_INIT(LOG_MAX);
    struct kp_cl_text text = {.source = KP_BUF_INIT(64), .options = KP_BUF_INIT(64)};
    cl_program program = NULL;
    kp_buf_adds(&text.source, "\n");
    kp_buf_adds(&text.options, "-D__ovld=1");
    (void)kp_cl_build(s, &text, NULL, &program, &log, NULL);
    if (program)
        (void)s->cl->clReleaseProgram(program);
    char *path = path_in_log((struct kp_str){kp_buf_text(&log), log.len});
    kp_cl_text_deinit(&text);
    kp_buf_deinit(&log);
    return path;
}

/* --- reading it ----------------------------------------------------------------------------
 */

/* `in` without comments and joined where lines end in a backslash. The header has no strings
 * with comment marks in them. */
static void strip(struct kp_str in, struct kp_buf *out)
{
    const char *p = in.ptr;
    const char *end = in.ptr + in.len;
    while (p < end) {
        size_t left = (size_t)(end - p);
        if (left >= 2 && p[0] == '/' && p[1] == '*') {
            const char *close = memmem(p + 2, left - 2, "*/", 2);
            p = close ? close + 2 : end;
            kp_buf_addc(out, ' ');
        } else if (left >= 2 && p[0] == '/' && p[1] == '/') {
            while (p < end && *p != '\n') /* a comment goes on behind a backslash, too */
                p += p[0] == '\\' && p + 1 < end ? 2 : 1;
        } else if (left >= 2 && p[0] == '\\' && p[1] == '\n') {
            p += 2;
            kp_buf_addc(out, ' ');
        } else {
            kp_buf_addc(out, *p++);
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The next identifier or number in *s, which goes on behind it; empty at the end. */
static struct kp_str next_word(struct kp_str *s)
{
    size_t i = 0;
    while (i < s->len && !is_word(s->ptr[i]))
        i++;
    size_t begin = i;
    while (i < s->len && is_word(s->ptr[i]))
        i++;
    struct kp_str word = {s->ptr + begin, i - begin};
    *s = (struct kp_str){s->ptr + i, s->len - i};
    return word;
}

/* What a declaration declares: the word before its first bracket. Empty where that is no plain
 * function: then it is always kept. */
static struct kp_str declared(struct kp_str text)
{
    struct kp_str none = {"", 0};
    const char *bracket = memchr(text.ptr, '(', text.len);
    if (!bracket)
        return none;
    size_t end = (size_t)(bracket - text.ptr);
    while (end && isspace((unsigned char)text.ptr[end - 1]))
        end--;
    size_t begin = end;
    while (begin && is_word(text.ptr[begin - 1]))
        begin--;
    struct kp_str name = {text.ptr + begin, end - begin};
    return kp_str_is(name, "__attribute__") ? none : name;
}

static bool add_piece(struct kp_cl_builtins *b, struct kp_str text, struct kp_str name)
{
    if (!kp_grow((void **)&b->pieces, &b->cap, b->n, sizeof(*b->pieces), PIECES_MAX))
        return false;
    b->pieces[b->n++] = (struct kp_cl_builtin){text, name};
    return true;
}

/* Lines that begin with # and, between them, declarations that end in a semicolon: false where
 * the header is anything else. */
static bool cut_up(struct kp_cl_builtins *b)
{
    struct kp_str rest = {kp_buf_text(&b->text), b->text.len};
    const char *begin = NULL; /* of a declaration over several lines */
    while (rest.len) {
        struct kp_str line = kp_str_trim(kp_str_cut(rest, '\n', &rest));
        if (!line.len)
            continue;
        if (line.ptr[0] == '#') {
            struct kp_str words = line;
            if (begin)
                return false;
            /* what it includes has been read before it: PoCL names each file by itself */
            if (!kp_str_is(next_word(&words), "include") &&
                !add_piece(b, line, (struct kp_str){"", 0}))
                return false;
            continue;
        }
        if (memchr(line.ptr, '{', line.len))
            return false;
        begin = begin ? begin : line.ptr;
        if (line.ptr[line.len - 1] != ';')
            continue;
        struct kp_str text = {begin, (size_t)(line.ptr + line.len - begin)};
        if (!add_piece(b, text, declared(text)))
            return false;
        begin = NULL;
    }
    return !begin && b->n > 0;
}

void kp_cl_builtins_open(struct kp_cl_session *s, struct kp_cl_builtins *b)
{
    struct kp_buf raw = KP_BUF_INIT(HEADER_MAX);
    *b = (struct kp_cl_builtins){.text = KP_BUF_INIT(HEADER_MAX)};
    if (!s->pocl)
        return;
    char *path = find_header(s);
    bool good = path && kp_file_read(path, &raw, NULL) == KOPT_OK;
    if (good) {
        strip((struct kp_str){kp_buf_text(&raw), raw.len}, &b->text);
        good = b->text.failed == KOPT_OK && cut_up(b);
    }
    if (!good)
        kp_cl_builtins_close(b);
    kp_buf_deinit(&raw);
    kp_free(path);
}

void kp_cl_builtins_close(struct kp_cl_builtins *b)
{
    kp_free(b->pieces);
    kp_buf_deinit(&b->text);
    *b = (struct kp_cl_builtins){0};
}

/* --- choosing ------------------------------------------------------------------------------
 */

/* May a line end in the middle of a word or of ## and the next go on with it? Blanks may stand
 * behind the backslash; a trigraph may stand for it, or for #. */
static bool joins_lines(struct kp_str source)
{
    const char *end = source.ptr + source.len;
    const char *p = source.ptr;
    if (memmem(p, source.len, "??", 2))
        return true;
    for (; (p = memchr(p, '\\', (size_t)(end - p))); p++) {
        const char *next = p + 1;
        while (next < end && isspace((unsigned char)*next))
            next++;
        if (p > source.ptr && !isspace((unsigned char)p[-1]) && next < end &&
            (next[-1] == '\n' || next[-1] == '\r'))
            return true;
    }
    return false;
}

/* A directive that takes in a file; the header's guard; a name that PoCL's macros give a
 * function of the header, which is declared under the other one. */
static bool hides_words(struct kp_str word)
{
    static const char *const hiding[] = {"include", "include_next", "import",
                                         "__include_macros", "_OPENCL_H_"};
    for (size_t i = 0; i < sizeof(hiding) / sizeof(*hiding); i++) {
        if (kp_str_is(word, hiding[i]))
            return true;
    }
    return kp_str_starts(word, "_cl_");
}

/* All words of the source. False where it may use others, in files that it includes. A function
 * of the source's own would be called where the header has a better one of that name, so no
 * error shows it. */
static bool words_of(struct kp_str source, struct kp_map *words)
{
    struct kp_str rest = source;
    if (memmem(source.ptr, source.len, "%:", 2) || joins_lines(source))
        return false;
    while (rest.len) {
        struct kp_str word = next_word(&rest);
        if (hides_words(word))
            return false;
        if (word.len && !kp_map_put(words, word.ptr, word.len, NULL))
            return false;
    }
    return true;
}

static bool is_number(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)p[i]))
            return false;
    }
    return true;
}

/* Can ## make this name out of the source's words? Numbers are there anyhow (__LINE__). */
static bool is_pasted(struct kp_str name, const struct kp_map *words)
{
    bool made[NAME_MAX + 1] = {true}; /* its first i characters */
    if (name.len > NAME_MAX)
        return true;
    for (size_t i = 0; i < name.len; i++) {
        for (size_t n = 1; made[i] && n <= name.len - i; n++)
            if (!made[i + n])
                made[i + n] = is_number(name.ptr + i, n) || kp_map_get(words, name.ptr + i, n);
    }
    return made[name.len];
}

/* The header's directives and what the source may call. */
static void add_needed(const struct kp_cl_builtins *b, const struct kp_map *words, bool pastes,
                       struct kp_buf *out)
{
    struct kp_str last = {"", 0}; /* overloads stand together */
    bool needed = true;
    for (size_t i = 0; i < b->n; i++) {
        const struct kp_cl_builtin *p = &b->pieces[i];
        if (!kp_str_eq(p->name, last)) {
            last = p->name;
            needed = !last.len || kp_map_get(words, last.ptr, last.len) ||
                     (pastes && is_pasted(last, words));
        }
        if (!needed)
            continue;
        kp_buf_add(out, p->text.ptr, p->text.len);
        kp_buf_addc(out, '\n');
    }
}

bool kp_cl_builtins_before(const struct kp_cl_builtins *b, const struct kp_cl_text *text,
                           struct kp_cl_text *out)
{
    struct kp_map words = {0};
    struct kp_str source = {kp_buf_text(&text->source), text->source.len};
    *out = (struct kp_cl_text){.source = KP_BUF_INIT(text->source.max),
                               .options = KP_BUF_INIT(text->options.max),
                               .folder = KP_BUF_INIT(text->folder.max)};
    if (!b->n || !words_of(source, &words)) {
        kp_map_deinit(&words);
        return false;
    }
    kp_buf_addf(&out->options, "%s -D_OPENCL_H_", kp_buf_text(&text->options));
    kp_buf_adds(&out->folder, kp_buf_text(&text->folder));
    kp_buf_adds(&out->source, "#undef _OPENCL_H_\n");
    add_needed(b, &words, memmem(source.ptr, source.len, "##", 2) != NULL, &out->source);
    for (size_t i = 0; i < out->source.len; i++)
        out->lead_lines += out->source.ptr[i] == '\n';
    out->lead_lines += text->lead_lines;
    kp_buf_add(&out->source, source.ptr, source.len);
    kp_map_deinit(&words);
    if (out->source.failed == KOPT_OK && out->options.failed == KOPT_OK &&
        out->folder.failed == KOPT_OK)
        return true;
    kp_cl_text_deinit(out);
    return false;
}
