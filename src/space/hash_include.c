/* SPDX-License-Identifier: MIT */
/* The source and the files it includes. A file is known by its place on disk, so that including
 * it twice, or each other, ends. What stands under #if is taken in as well: too much is hashed
 * rather than too little. Layer: space. */
#include "base/alloc.h"
#include "os/file.h"
#include "space/hash_impl.h"

#include <ctype.h>
#include <string.h>

/* Where a text was read from, up to the first file. */
struct place {
    const char *path;
    const struct place *parent;
    int depth;
};

struct include {
    struct kp_str name;
    bool quoted; /* "name", else <name> */
    bool next;   /* the folders after that of the including file: all are looked through */
};

void kp_hash_files_deinit(struct kp_hash_files *f)
{
    kp_map_deinit(&f->seen);
}

/* ---- the flags ---- */

/* Behind the option's name when the flag is that option: "" when its value is the next flag. */
static const char *option_value(const char *flag, const char *name, bool glued)
{
    size_t n = strlen(name);
    if (strncmp(flag, name, n) != 0)
        return NULL;
    if (flag[n] == '=' || flag[n] == ' ') {
        const char *value = flag + n + 1;
        return value + strspn(value, " ");
    }
    return glued || flag[n] == 0 ? flag + n : NULL;
}

bool kp_path_flag_next(const struct kp_kernel *k, size_t *i, struct kp_path_flag *out)
{
    static const struct {
        const char *name;
        bool glued; /* "-Ifolder" */
        bool is_file;
    } options[] = {{"-I", true, false},
                   {"--include-path", false, false},
                   {"-include", false, true},
                   {"--pre-include", false, true}};
    while (*i < k->n_flags) {
        const char *flag = k->flags[(*i)++];
        for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
            const char *value = option_value(flag, options[o].name, options[o].glued);
            if (value && !value[0] && *i < k->n_flags)
                value = k->flags[(*i)++];
            if (!value || !value[0])
                continue;
            *out = (struct kp_path_flag){options[o].is_file, value};
            return true;
        }
    }
    return false;
}

/* ---- include lines ---- */

/* Past blanks, comments, and line ends behind a backslash. */
static struct kp_str skip_blanks(struct kp_str s)
{
    static const char *const blanks[] = {" ", "\t", "\\\n", "\\\r\n"};
    for (size_t n = 1; n > 0;) {
        n = 0;
        for (size_t i = 0; i < sizeof(blanks) / sizeof(blanks[0]); i++) {
            if (kp_str_starts(s, blanks[i]))
                n = strlen(blanks[i]);
        }
        if (kp_str_starts(s, "/*")) {
            const char *end = memmem(s.ptr + 2, s.len - 2, "*/", 2);
            n = end ? (size_t)(end + 2 - s.ptr) : s.len;
        }
        s = (struct kp_str){s.ptr + n, s.len - n};
    }
    return s;
}

/* Is one of `words` at the start of *s? Then *s is what follows it and the blanks. */
static const char *accept(struct kp_str *s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(words[i]);
        if (!kp_str_starts(*s, words[i]))
            continue;
        *s = skip_blanks((struct kp_str){s->ptr + len, s->len - len});
        return words[i];
    }
    return NULL;
}

/* Past the name of a macro and the blanks behind it. */
static struct kp_str skip_name(struct kp_str s)
{
    size_t n = 0;
    while (n < s.len && (isalnum((unsigned char)s.ptr[n]) || s.ptr[n] == '_'))
        n++;
    return skip_blanks((struct kp_str){s.ptr + n, s.len - n});
}

/* `s` starts at the start of a line. `#define NAME "file"` counts, for an `#include NAME`. */
static bool match_include(struct kp_str s, struct include *out)
{
    static const char *const marks[] = {"#", "%:", "?\?="};
    static const char next[] = "include_next";
    static const char define[] = "define";
    static const char *const words[] = {next, "include", "import", define};
    s = skip_blanks(s);
    if (!accept(&s, marks, sizeof(marks) / sizeof(marks[0])))
        return false;
    const char *word = accept(&s, words, sizeof(words) / sizeof(words[0]));
    struct kp_str rest;
    if (word == define)
        s = skip_name(s);
    s = kp_str_cut(s, '\n', &rest);
    if (!word || s.len < 3 || (s.ptr[0] != '"' && s.ptr[0] != '<'))
        return false;
    out->next = word == next;
    out->quoted = s.ptr[0] == '"';
    struct kp_str body = {s.ptr + 1, s.len - 1};
    out->name = kp_str_cut(body, out->quoted ? '"' : '>', &rest);
    return out->name.len > 0 && out->name.len < body.len;
}

/* ---- files ---- */

static kopt_status walk_text(struct kp_hash_files *f, struct kp_str text,
                             const struct place *at);

/* What is between `#pragma kopt` lines. */
static void add_without_pragmas(struct kp_sha256 *h, struct kp_str text)
{
    struct kp_pragma_scan scan = {0};
    struct kp_pragma p;
    size_t from = 0;
    while (kp_pragma_next(text, &scan, &p)) {
        kp_sha256_add(h, text.ptr + from, p.start - from);
        from = p.next;
    }
    kp_sha256_add(h, text.ptr + from, text.len - from);
    kp_sha256_add_text(h, "end of file"); /* one text must not run into the next */
}

/* *added: the file was not seen yet. */
static kopt_status note(struct kp_hash_files *f, const struct kp_file_id *id, bool *added)
{
    *added = false;
    if (!kp_map_put(&f->seen, id, sizeof(*id), added))
        return kp_err_nomem(f->err);
    f->n += *added;
    return f->n > KP_HASH_FILES_MAX
               ? kp_err(f->err, KOPT_ERANGE, "%s: the source includes more than %d files",
                        f->k->path, KP_HASH_FILES_MAX)
               : KOPT_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_HASH_DEPTH_MAX levels */
static kopt_status take_in(struct kp_hash_files *f, const struct place *at)
{
    struct kp_buf text = KP_BUF_INIT(KP_HASH_BYTES_MAX - f->bytes);
    if (at->depth > KP_HASH_DEPTH_MAX)
        return kp_err(f->err, KOPT_ERANGE, "%s: files include each other %d times deep",
                      f->k->path, KP_HASH_DEPTH_MAX);
    kopt_status st = kp_file_read(at->path, &text, f->err);
    if (st == KOPT_ERANGE)
        st = kp_err(f->err, KOPT_ERANGE, "%s: the source includes more than %d MiB", f->k->path,
                    KP_HASH_BYTES_MAX >> 20);
    f->bytes += text.len;
    if (st == KOPT_OK)
        st = walk_text(f, (struct kp_str){kp_buf_text(&text), text.len}, at);
    kp_buf_deinit(&text);
    return st;
}

/* Takes `path`, NULL when there was no memory for it. The file is taken in if it is there. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_HASH_DEPTH_MAX levels */
static kopt_status try_path(struct kp_hash_files *f, char *path, const struct place *from,
                            bool *found)
{
    struct kp_file_id id;
    bool added = false;
    kopt_status st = path ? KOPT_OK : kp_err_nomem(f->err);
    *found = st == KOPT_OK && kp_file_identify(path, &id);
    if (*found) {
        const struct place at = {path, from, from->depth + 1};
        st = note(f, &id, &added);
        if (st == KOPT_OK && added)
            st = take_in(f, &at);
    }
    kp_free(path);
    return st;
}

/* A name of a folder of the search path, which counts from the kernel's folder. */
static char *path_in_folder(const struct kp_kernel *k, const char *folder, const char *name)
{
    char *joined = kp_path_join(folder, name);
    char *path = joined ? kp_text_path(k->source_path, joined) : NULL;
    kp_free(joined);
    return path;
}

/* The kernel's folder comes before those of the flags in both back ends. `all`: go on behind
 * the first that has the file. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_HASH_DEPTH_MAX levels */
static kopt_status search_folders(struct kp_hash_files *f, const char *name, bool all,
                                  const struct place *from, bool *found)
{
    struct kp_path_flag flag;
    size_t i = 0;
    kopt_status st = try_path(f, kp_text_path(f->k->source_path, name), from, found);
    while (st == KOPT_OK && (all || !*found) && kp_path_flag_next(f->k, &i, &flag)) {
        if (!flag.is_file)
            st = try_path(f, path_in_folder(f->k, flag.path, name), from, found);
    }
    return st;
}

/* "name" is looked for beside the including file, <name> is not. The folders of the files that
 * include that one come last: some compilers look there, too. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_HASH_DEPTH_MAX levels */
static kopt_status follow(struct kp_hash_files *f, const struct include *inc,
                          const struct place *from)
{
    bool found = false;
    kopt_status st = KOPT_OK;
    char *name = kp_strndup(inc->name.ptr, inc->name.len);
    if (!name)
        return kp_err_nomem(f->err);
    kp_sha256_add_text(f->h, name);
    if (inc->quoted || name[0] == '/')
        st = try_path(f, kp_text_path(from->path, name), from, &found);
    if (st == KOPT_OK && (inc->next || !found))
        st = search_folders(f, name, inc->next, from, &found);
    const struct place *p = inc->quoted ? from->parent : NULL;
    for (; st == KOPT_OK && (inc->next || !found) && p; p = p->parent)
        st = try_path(f, kp_text_path(p->path, name), from, &found);
    kp_free(name);
    return st;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_HASH_DEPTH_MAX levels */
static kopt_status walk_text(struct kp_hash_files *f, struct kp_str text,
                             const struct place *at)
{
    add_without_pragmas(f->h, text);
    struct kp_str rest = text;
    kopt_status st = KOPT_OK;
    while (st == KOPT_OK && rest.len > 0) {
        struct include inc;
        if (match_include(rest, &inc))
            st = follow(f, &inc, at);
        (void)kp_str_cut(rest, '\n', &rest);
    }
    return st;
}

kopt_status kp_hash_source(struct kp_hash_files *f)
{
    const struct place at = {.path = f->k->source_path};
    struct kp_path_flag flag;
    struct kp_file_id id;
    bool known = false;
    size_t i = 0;
    kopt_status st = KOPT_OK;
    if (kp_file_identify(at.path, &id)) /* it may include itself */
        st = note(f, &id, &known);
    if (st == KOPT_OK)
        st = walk_text(f, f->k->source, &at);
    while (st == KOPT_OK && kp_path_flag_next(f->k, &i, &flag)) {
        if (flag.is_file)
            st = try_path(f, kp_text_path(at.path, flag.path), &at, &known);
    }
    return st;
}

kopt_status kp_hash_reference(struct kp_hash_files *f, const char *name)
{
    char *path = kp_text_path(f->k->path, name);
    struct kp_file_id id;
    bool added = false;
    if (!path)
        return kp_err_nomem(f->err);
    const struct place at = {.path = path};
    kp_sha256_add_text(f->h, name);
    bool there = kp_file_identify(path, &id);
    kopt_status st = there ? note(f, &id, &added) : KOPT_OK;
    if (st == KOPT_OK && (added || !there)) /* reading tells why it is not there */
        st = take_in(f, &at);
    kp_free(path);
    return st;
}
