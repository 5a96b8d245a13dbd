/* SPDX-License-Identifier: MIT */
#include "measure/images.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 20, PATH_LIMIT = 4096 };

static const char magic[8] = {'K', 'P', 'I', 'M', 'A', 'G', 'E', '1'};

/* In front of the image. */
struct head {
    char magic[8];
    uint64_t bytes;
    uint64_t hash; /* of the image */
};

struct kp_images {
    char *folder;
    char key[KP_SHA256_HEX + 1];
};

/* --- keys -----------------------------------------------------------------------------------
 */

/* "folder/hash"; the result is the caller's. */
static char *path_of(const struct kp_images *im, const char *entry, const char *const *macros,
                     size_t n_macros)
{
    struct kp_sha256 *h;
    char name[KP_SHA256_HEX + 1];
    if (kp_sha256_new(&h, NULL) != KOPT_OK)
        return NULL;
    kp_sha256_add_field(h, im->key, strlen(im->key));
    kp_sha256_add_field(h, entry, strlen(entry));
    for (size_t i = 0; i < n_macros; i++)
        kp_sha256_add_field(h, macros[i], strlen(macros[i]));
    kp_sha256_finish(h, name);
    return kp_path_join(im->folder, name);
}

static bool make_folders(const char *path)
{
    char copy[PATH_LIMIT];
    int n = snprintf(copy, sizeof(copy), "%s", path);
    if (n < 1 || (size_t)n >= sizeof(copy))
        return false;
    for (char *p = copy + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        (void)mkdir(copy, 0700); /* it may be there; the last one tells */
        *p = '/';
    }
    struct stat st;
    (void)mkdir(copy, 0700);
    return stat(copy, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           access(copy, W_OK | X_OK) == 0;
}

/* --- making room ----------------------------------------------------------------------------
 */

struct file {
    char name[KP_SHA256_HEX + 1];
    int64_t used_s;
    uint64_t bytes;
};

static int older_first(const void *a, const void *b)
{
    const struct file *x = a;
    const struct file *y = b;
    return x->used_s < y->used_s ? -1 : x->used_s > y->used_s;
}

static void list_files(DIR *dir, struct file **files, size_t *n, uint64_t *total)
{
    const struct dirent *e;
    size_t cap = 0;
    while ((e = readdir(dir)) !=
           NULL) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
        struct stat st;
        if (strlen(e->d_name) != KP_SHA256_HEX ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (!kp_grow((void **)files, &cap, *n, sizeof(**files), FILES_MAX))
            return;
        struct file *f = &(*files)[(*n)++];
        memcpy(f->name, e->d_name, sizeof(f->name));
        f->used_s = st.st_mtim.tv_sec;
        f->bytes = (uint64_t)st.st_size;
        *total += f->bytes;
    }
}

/* Down to half, so that it does not happen every time. */
static void make_room(const char *folder, uint64_t max_bytes)
{
    DIR *dir = opendir(folder);
    struct file *files = NULL;
    size_t n = 0;
    uint64_t total = 0;
    if (!dir)
        return;
    list_files(dir, &files, &n, &total);
    if (total > max_bytes) {
        qsort(files, n, sizeof(*files), older_first);
        for (size_t i = 0; i < n && total > max_bytes / 2; i++) {
            if (unlinkat(dirfd(dir), files[i].name, 0) == 0)
                total -= files[i].bytes;
        }
    }
    kp_free(files);
    (void)closedir(dir);
}

/* --- life -----------------------------------------------------------------------------------
 */

struct kp_images *kp_images_open(const char *folder, const char *const *key, size_t n_key,
                                 uint64_t max_bytes)
{
    struct kp_sha256 *h;
    struct kp_images *im = kp_calloc(1, sizeof(*im));
    if (!im)
        return NULL;
    im->folder = kp_strdup(folder);
    if (!im->folder || !make_folders(folder) || kp_sha256_new(&h, NULL) != KOPT_OK) {
        kp_images_free(im);
        return NULL;
    }
    for (size_t i = 0; i < n_key; i++)
        kp_sha256_add_field(h, key[i], strlen(key[i]));
    kp_sha256_finish(h, im->key);
    make_room(folder, max_bytes);
    return im;
}

void kp_images_free(struct kp_images *im)
{
    if (!im)
        return;
    kp_free(im->folder);
    kp_free(im);
}

/* --- images ---------------------------------------------------------------------------------
 */

bool kp_images_get(const struct kp_images *im, const char *entry, const char *const *macros,
                   size_t n_macros, struct kp_buf *image)
{
    struct head h;
    struct kp_buf file = KP_BUF_INIT(image->max + sizeof(h));
    char *path = path_of(im, entry, macros, n_macros);
    bool found = path && kp_file_read(path, &file, NULL) == KOPT_OK && file.len >= sizeof(h);
    if (found) {
        memcpy(&h, file.ptr, sizeof(h));
        size_t n = file.len - sizeof(h);
        found = memcmp(h.magic, magic, sizeof(magic)) == 0 && h.bytes == n &&
                h.hash == kp_hash64(file.ptr + sizeof(h), n, 0);
        if (found)
            kp_buf_add(image, file.ptr + sizeof(h), n);
        found = found && image->failed == KOPT_OK;
        if (found)
            (void)utimensat(AT_FDCWD, path, NULL, 0); /* it was used now */
    }
    kp_buf_deinit(&file);
    kp_free(path);
    return found;
}

void kp_images_put(const struct kp_images *im, const char *entry, const char *const *macros,
                   size_t n_macros, const void *bytes, size_t n)
{
    const struct head h = {.bytes = n, .hash = kp_hash64(bytes, n, 0)};
    struct kp_buf file = KP_BUF_INIT(n + sizeof(h));
    char aside[PATH_LIMIT];
    char *path = path_of(im, entry, macros, n_macros);
    if (path && (size_t)snprintf(aside, sizeof(aside), "%s.%ld", path, (long)getpid()) <
                    sizeof(aside)) {
        kp_buf_add(&file, magic, sizeof(magic));
        kp_buf_add(&file, (const char *)&h + sizeof(magic), sizeof(h) - sizeof(magic));
        kp_buf_add(&file, bytes, n);
        if (file.failed != KOPT_OK || kp_file_put(aside, file.ptr, file.len, NULL) != KOPT_OK ||
            rename(aside, path) != 0)
            (void)unlink(aside);
    }
    kp_buf_deinit(&file);
    kp_free(path);
}
