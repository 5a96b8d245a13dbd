/* SPDX-License-Identifier: MIT */
#include "os/unpack.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { BUFFER = 1 << 16 };

struct kp_unpack {
    gzFile file;
    const char *path;
    bool cut;
};

kopt_status kp_unpack_open(const char *path, struct kp_unpack **out, kopt_error *err)
{
    struct stat info;
    *out = NULL;
    if (stat(path, &info) != 0)
        return kp_err(err, KOPT_EIO, "cannot open %s: %s", path, strerrordesc_np(errno));
    if (!S_ISREG(info.st_mode)) /* opening a pipe would wait for its writer */
        return kp_err(err, KOPT_EIO, "cannot read %s: not a regular file", path);
    struct kp_unpack *u = kp_calloc(1, sizeof(*u));
    if (!u)
        return kp_err_nomem(err);
    u->path = path;
    errno = 0;
    u->file = gzopen(path, "rbe");
    if (!u->file) {
        int code = errno;
        kp_free(u);
        if (code == 0 || code == ENOMEM)
            return kp_err_nomem(err);
        return kp_err(err, KOPT_EIO, "cannot open %s: %s", path, strerrordesc_np(code));
    }
    (void)gzbuffer(u->file, BUFFER);
    *out = u;
    return KOPT_OK;
}

void kp_unpack_close(struct kp_unpack *u)
{
    if (u)
        (void)gzclose_r(u->file); /* a cut file was seen when its end was read */
    kp_free(u);
}

static kopt_status read_error(struct kp_unpack *u, int code, const char *why, kopt_error *err)
{
    if (code == Z_MEM_ERROR)
        return kp_err_nomem(err);
    if (code == Z_ERRNO)
        return kp_err(err, KOPT_EIO, "cannot read %s: %s", u->path, strerrordesc_np(errno));
    u->cut = code == Z_BUF_ERROR;
    if (u->cut)
        return kp_err(err, KOPT_EINPUT, "%s: the compressed file is cut", u->path);
    return kp_err(err, KOPT_EINPUT, "%s: the compressed file is damaged: %s", u->path, why);
}

kopt_status kp_unpack_read(struct kp_unpack *u, void *bytes, size_t n, size_t *got,
                           kopt_error *err)
{
    int code = Z_OK;
    int count = gzread(u->file, bytes, (unsigned)n);
    const char *why = gzerror(u->file, &code);
    *got = count > 0 ? (size_t)count : 0;
    if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END))
        return read_error(u, code, why, err);
    return KOPT_OK;
}

bool kp_unpack_cut(const struct kp_unpack *u)
{
    return u->cut;
}

kopt_status kp_unpack_seek(struct kp_unpack *u, int64_t at, kopt_error *err)
{
    u->cut = false;
    if (gzseek(u->file, (z_off_t)at, SEEK_SET) < 0)
        return kp_err(err, KOPT_EIO, "cannot read %s again", u->path);
    return KOPT_OK;
}
