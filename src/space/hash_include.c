/* SPDX-License-Identifier: MIT */
/* The source and the files it includes. A file is known by its place on disk, so that including
 * it twice, or each other, ends. What stands under #if is taken in as well: too much is hashed
 * rather than too little. Layer: space. */
#include "base/alloc.h"
#include "space/hash_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct seen {
    dev_t dev;
    ino_t ino;
};

struct include_walk {
    struct kp_sha256 *h;
    const struct kp_kernel *k;
    struct seen seen[KP_HASH_FILES_MAX];
    size_t n_seen;
    size_t bytes;
    kopt_error *err;
};

static kopt_status walk_text(struct include_walk *w, struct kp_str text, const char *path);

/* ---- the text of one file ---- */

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

/* ---- include lines ---- */

struct include {
    struct kp_str name;
    bool quoted; /* "name", else <name> */
};

static struct kp_str skip_blanks(struct kp_str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    return s;
}

static bool match_include(struct kp_str line, struct include *out)
{
    struct kp_str s = skip_blanks(line);
    if (s.len == 0 || s.ptr[0] != '#')
        return false;
    s = skip_blanks((struct kp_str){s.ptr + 1, s.len - 1});
    if (!kp_str_starts(s, "include"))
        return false;
    s = skip_blanks((struct kp_str){s.ptr + 7, s.len - 7});
    if (s.len < 3 || (s.ptr[0] != '"' && s.ptr[0] != '<'))
        return false;
    out->quoted = s.ptr[0] == '"';
    struct kp_str rest;
    struct kp_str body = {s.ptr + 1, s.len - 1};
    out->name = kp_str_cut(body, out->quoted ? '"' : '>', &rest);
    return out->name.len > 0 && out->name.len < body.len;
}

/* A plain file that was not seen yet: its descriptor, else -1. */
static int open_file(struct include_walk *w, const char *path, bool *known)
{
    struct stat info;
    *known = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    bool plain = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    for (size_t i = 0; plain && i < w->n_seen; i++)
        *known |= w->seen[i].dev == info.st_dev && w->seen[i].ino == info.st_ino;
    if (plain && !*known && w->n_seen < KP_HASH_FILES_MAX) {
        w->seen[w->n_seen++] = (struct seen){info.st_dev, info.st_ino};
        return fd;
    }
    if (plain && !*known)
        w->n_seen = KP_HASH_FILES_MAX + 1; /* over the limit */
    (void)close(fd);                       /* nothing was written */
    return -1;
}

static kopt_status read_fd(struct include_walk *w, int fd, const char *path, struct kp_buf *out)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kp_err(w->err, KOPT_EIO, "%s: %s", path, strerrordesc_np(errno));
        if (n == 0)
            return kp_buf_status(out, w->err);
        w->bytes += (size_t)n;
        if (w->bytes > KP_HASH_BYTES_MAX)
            return kp_err(w->err, KOPT_ERANGE, "%s: the source includes more than %d MiB",
                          w->k->path, KP_HASH_BYTES_MAX >> 20);
        kp_buf_add(out, chunk, (size_t)n);
    }
}

/* Take the file in if it is there. */
/* NOLINTNEXTLINE(misc-no-recursion): each file once, at most KP_HASH_FILES_MAX */
static kopt_status try_path(struct include_walk *w, char *path, bool *found)
{
    struct kp_buf text = KP_BUF_INIT(KP_HASH_BYTES_MAX);
    *found = false;
    if (!path)
        return kp_err_nomem(w->err);
    kopt_status st = KOPT_OK;
    int fd = open_file(w, path, found);
    if (w->n_seen > KP_HASH_FILES_MAX)
        st = kp_err(w->err, KOPT_ERANGE, "%s: the source includes more than %d files",
                    w->k->path, KP_HASH_FILES_MAX);
    if (fd >= 0) {
        *found = true;
        st = read_fd(w, fd, path, &text);
        (void)close(fd); /* only read from */
        if (st == KOPT_OK)
            st = walk_text(w, (struct kp_str){kp_buf_text(&text), text.len}, path);
    }
    kp_buf_deinit(&text);
    kp_free(path);
    return st;
}

/* Folder of the n-th -I option ("-Ifolder" or "-I folder"), NULL when there are fewer. */
static const char *include_folder(const struct kp_kernel *k, size_t n)
{
    for (size_t i = 0; i < k->n_flags; i++) {
        const char *folder = NULL;
        if (strncmp(k->flags[i], "-I", 2) != 0)
            continue;
        if (k->flags[i][2])
            folder = k->flags[i] + 2;
        else if (i + 1 < k->n_flags)
            folder = k->flags[++i];
        if (folder && n-- == 0)
            return folder;
    }
    return NULL;
}

/* Compilers take a -I folder from the working folder, people mean the kernel's: both are tried.
 */
static char *path_in_folder(const struct kp_kernel *k, const char *folder, const char *name,
                            bool beside_kernel)
{
    struct kp_buf joined = KP_BUF_INIT(1 << 16);
    kp_buf_addf(&joined, "%s/%s", folder, name);
    char *path = NULL;
    if (joined.failed == KOPT_OK)
        path = kp_text_path(beside_kernel ? k->source_path : "", kp_buf_text(&joined));
    kp_buf_deinit(&joined);
    return path;
}

/* NOLINTNEXTLINE(misc-no-recursion): each file once, at most KP_HASH_FILES_MAX */
static kopt_status follow(struct include_walk *w, const struct include *inc, const char *from)
{
    bool found = false;
    kopt_status st = KOPT_OK;
    char *name = kp_strndup(inc->name.ptr, inc->name.len);
    if (!name)
        return kp_err_nomem(w->err);
    kp_sha256_add_text(w->h, name);
    if (inc->quoted || name[0] == '/')
        st = try_path(w, kp_text_path(from, name), &found);
    for (size_t i = 0; st == KOPT_OK && !found && include_folder(w->k, i / 2); i++)
        st = try_path(w, path_in_folder(w->k, include_folder(w->k, i / 2), name, i % 2 == 0),
                      &found);
    kp_free(name);
    return st;
}

/* NOLINTNEXTLINE(misc-no-recursion): each file once, at most KP_HASH_FILES_MAX */
static kopt_status walk_text(struct include_walk *w, struct kp_str text, const char *path)
{
    add_without_pragmas(w->h, text);
    struct kp_str rest = text;
    kopt_status st = KOPT_OK;
    while (st == KOPT_OK && rest.len > 0) {
        struct include inc;
        struct kp_str line = kp_str_cut(rest, '\n', &rest);
        if (match_include(line, &inc))
            st = follow(w, &inc, path);
    }
    return st;
}

kopt_status kp_hash_source(struct kp_sha256 *h, const struct kp_kernel *k, kopt_error *err)
{
    struct include_walk *w = kp_calloc(1, sizeof(*w));
    bool known = false;
    if (!w)
        return kp_err_nomem(err);
    *w = (struct include_walk){.h = h, .k = k, .err = err};
    int fd = open_file(w, k->source_path, &known); /* it may include itself */
    if (fd >= 0)
        (void)close(fd); /* only looked at */
    kopt_status st = walk_text(w, k->source, k->source_path);
    kp_free(w);
    return st;
}
