/* SPDX-License-Identifier: MIT */
#include "os/file.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static kopt_status io_error(kopt_error *err, const char *what, const char *path)
{
    int e = errno;
    kopt_status code = (e == ENOSPC || e == EDQUOT) ? KOPT_EFULL : KOPT_EIO;
    return kp_err(err, code, "cannot %s %s: %s", what, path, strerrordesc_np(e));
}

/* O_NONBLOCK: a pipe without a writer must not stop us. */
static int open_plain(const char *path, struct stat *info, const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, info) != 0)
        *why = strerrordesc_np(errno);
    else if (S_ISDIR(info->st_mode))
        *why = "is a folder";
    else if (!S_ISREG(info->st_mode))
        *why = "is not a plain file";
    else
        return fd;
    if (fd >= 0)
        (void)close(fd); /* only looked at */
    return -1;
}

kopt_status kp_file_walk(const char *path,
                         kopt_status (*visit)(void *user, const void *bytes, size_t n),
                         void *user, kopt_error *err)
{
    char chunk[32768];
    struct stat info;
    const char *why = "";
    kopt_status st = KOPT_OK;
    int fd = open_plain(path, &info, &why);
    if (fd < 0)
        return kp_err(err, KOPT_EIO, "%s: %s", path, why);
    while (st == KOPT_OK) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            st = kp_err(err, KOPT_EIO, "%s: %s", path, strerrordesc_np(errno));
        else if (n == 0)
            break;
        else
            st = visit(user, chunk, (size_t)n);
    }
    (void)close(fd); /* only read from */
    return st;
}

static kopt_status append(void *user, const void *bytes, size_t n)
{
    struct kp_buf *out = user;
    kp_buf_add(out, bytes, n);
    return out->failed;
}

kopt_status kp_file_read(const char *path, struct kp_buf *out, kopt_error *err)
{
    if (out->failed != KOPT_OK)
        return kp_buf_status(out, err);
    kopt_status st = kp_file_walk(path, append, out, err);
    if (st == KOPT_ENOMEM)
        return kp_err_nomem(err);
    if (st == KOPT_ERANGE)
        return kp_err(err, KOPT_ERANGE, "%s: larger than %zu bytes", path, out->max);
    return st;
}

bool kp_file_identify(const char *path, struct kp_file_id *out)
{
    struct stat info;
    const char *why = "";
    int fd = open_plain(path, &info, &why);
    if (fd < 0)
        return false;
    *out = (struct kp_file_id){info.st_dev, info.st_ino};
    (void)close(fd); /* only looked at */
    return true;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

kopt_status kp_file_put(const char *path, const void *bytes, size_t n, kopt_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return io_error(err, "create", path);
    kopt_status st = write_all(fd, bytes, n) ? KOPT_OK : io_error(err, "write", path);
    (void)close(fd);
    return st;
}

/* ---- taking another file's place ---- */

enum { NAMES_TRIED = 100 };

/* A new file beside `path`; its name is *name, the caller's. */
static int create_beside(const char *path, char **name, kopt_error *err, kopt_status *st)
{
    struct stat info;
    int fd = -1;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        *st = kp_err(err, KOPT_EIO, "%s: is not a plain file", path);
        return -1;
    }
    for (int i = 0; fd < 0 && i < NAMES_TRIED; i++) {
        struct kp_buf text = KP_BUF_INIT(8192);
        kp_buf_addf(&text, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        kp_free(*name);
        *name = kp_buf_take(&text);
        if (!*name) {
            kp_buf_deinit(&text);
            *st = kp_err_nomem(err);
            return -1;
        }
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    *st = fd >= 0 ? KOPT_OK : io_error(err, "create", *name);
    return fd;
}

/* The name is on the disk once its folder is; where that cannot be had, the file is there all
 * the same. */
static void sync_folder(const char *path)
{
    char *dir = kp_path_dir(path);
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    kp_free(dir);
}

kopt_status kp_file_replace(const char *path, const struct kp_str *pieces, size_t n,
                            kopt_error *err)
{
    char *name = NULL;
    kopt_status st = KOPT_OK;
    int fd = create_beside(path, &name, err, &st);
    if (fd < 0)
        goto done;
    for (size_t i = 0; st == KOPT_OK && i < n; i++)
        if (!write_all(fd, pieces[i].ptr, pieces[i].len))
            st = io_error(err, "write", path);
    if (st == KOPT_OK && fsync(fd) != 0)
        st = io_error(err, "write", path);
    if (close(fd) != 0 && st == KOPT_OK)
        st = io_error(err, "write", path);
    if (st == KOPT_OK && rename(name, path) != 0)
        st = io_error(err, "write", path);
    if (st == KOPT_OK)
        sync_folder(path);
    else
        (void)unlink(name);
done:
    kp_free(name);
    return st;
}

/* ---- mapping ---- */

kopt_status kp_file_map(const char *path, size_t max, struct kp_file_map *out, kopt_error *err)
{
    struct stat info;
    const char *why = "";
    kopt_status st = KOPT_OK;
    *out = (struct kp_file_map){0};
    int fd = open_plain(path, &info, &why);
    if (fd < 0)
        return kp_err(err, KOPT_EIO, "%s: %s", path, why);
    if (info.st_size < 0 || (uintmax_t)info.st_size > max) {
        st = kp_err(err, KOPT_ERANGE, "%s: larger than %zu bytes", path, max);
    } else if (info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED)
            *out = (struct kp_file_map){p, (size_t)info.st_size};
        else if (errno == ENOMEM)
            st = kp_err_nomem(err);
        else
            st = io_error(err, "map", path);
    }
    (void)close(fd); /* the map stays */
    return st;
}

void kp_file_unmap(struct kp_file_map *m)
{
    if (m->ptr)
        (void)munmap(m->ptr, m->n);
    *m = (struct kp_file_map){0};
}

bool kp_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

char *kp_path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return kp_strdup(".");
    return slash == path ? kp_strdup("/") : kp_strndup(path, (size_t)(slash - path));
}

char *kp_path_join(const char *dir, const char *name)
{
    if (name[0] == '/' || dir[0] == 0)
        return kp_strdup(name);
    size_t n = strlen(dir);
    bool slash = dir[n - 1] == '/';
    char *path = kp_calloc(n + strlen(name) + 2, 1);
    if (path)
        (void)sprintf(path, "%s%s%s", dir, slash ? "" : "/", name);
    return path;
}

kopt_status kp_dir_temp(const char *prefix, char **out, kopt_error *err)
{
    *out = NULL;
    const char *root = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): never set by us */
    if (!root || !root[0])
        root = "/tmp";
    struct kp_buf path = KP_BUF_INIT(4096);
    kp_buf_addf(&path, "%s/%s-XXXXXX", root, prefix);
    char *name = kp_buf_take(&path);
    if (!name)
        return kp_err_nomem(err);
    if (!mkdtemp(name)) {
        kopt_status st = io_error(err, "create a folder in", root);
        kp_free(name);
        return st;
    }
    *out = name;
    return KOPT_OK;
}

/* Links are removed, never followed: the folder may lie where others write, too. */
/* NOLINTNEXTLINE(misc-no-recursion): `levels` at most */
static void remove_level(const char *path, int levels)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !d)
        (void)close(fd);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own */
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *child = kp_path_join(path, e->d_name);
        struct stat st;
        if (child && lstat(child, &st) == 0) {
            if (S_ISDIR(st.st_mode) && levels > 0)
                remove_level(child, levels - 1);
            else
                (void)unlink(child);
        }
        kp_free(child);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(path);
}

void kp_dir_remove(const char *path)
{
    if (path && path[0])
        remove_level(path, 8);
}
