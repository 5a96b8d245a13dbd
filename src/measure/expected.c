/* SPDX-License-Identifier: MIT */
/* Looking at what a reference gave, before anything is compared with it. */
#include "measure/data.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct look {
    const char *path;
    enum kp_elem elem;
    int before; /* -1 = poison */
    struct kp_expected *out;
    kopt_error *err;
};

/* By its bits: sign off, and beyond infinity. */
static bool is_nan(enum kp_elem e, const unsigned char *at)
{
    uint16_t h;
    uint32_t u;
    uint64_t d;
    switch (e) {
    case KP_F16:
    case KP_BF16:
        memcpy(&h, at, sizeof(h));
        return (h & 0x7fffU) > (e == KP_F16 ? 0x7c00U : 0x7f80U);
    case KP_F32:
        memcpy(&u, at, sizeof(u));
        return (u & 0x7fffffffU) > 0x7f800000U;
    case KP_F64:
        memcpy(&d, at, sizeof(d));
        return (d & 0x7fffffffffffffffU) > 0x7ff0000000000000U;
    case KP_I8:
    case KP_U8:
    case KP_I16:
    case KP_U16:
    case KP_I32:
    case KP_U32:
    case KP_I64:
    case KP_U64:
        break;
    }
    return false;
}

/* The next `n` bytes of what was there before are these. */
static bool as_before(const struct look *l, const unsigned char *bytes, size_t n)
{
    unsigned char chunk[4096];
    while (n > 0) {
        size_t some = n < sizeof(chunk) ? n : sizeof(chunk);
        memset(chunk, 0xff, some);
        ssize_t got = l->before < 0 ? (ssize_t)some : read(l->before, chunk, some);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || memcmp(chunk, bytes, (size_t)got) != 0)
            return false;
        bytes += got;
        n -= (size_t)got;
    }
    return true;
}

static kopt_status visit(void *user, const void *bytes, size_t n)
{
    struct look *l = user;
    struct kp_expected *a = l->out;
    size_t size = kp_elem_bytes(l->elem);
    const unsigned char *p = bytes;
    if (n % size != 0)
        return kp_err(l->err, KOPT_EIO, "%s ends within a number", l->path);
    a->untouched = a->untouched && as_before(l, p, n);
    for (size_t i = 0; kp_elem_is_float(l->elem) && i < n; i += size) {
        if (!is_nan(l->elem, p + i))
            continue;
        if (a->n_nan++ == 0)
            a->first_nan = a->n + i / size;
    }
    a->n += n / size;
    return KOPT_OK;
}

kopt_status kp_expected_look(const char *path, enum kp_elem elem, const char *before,
                             struct kp_expected *out, kopt_error *err)
{
    struct look l = {.path = path, .elem = elem, .before = -1, .out = out, .err = err};
    *out = (struct kp_expected){.untouched = true};
    if (before && (l.before = open(before, O_RDONLY | O_CLOEXEC)) < 0)
        return kp_err(err, KOPT_EIO, "%s: %s", before, strerrordesc_np(errno));
    kopt_status st = kp_file_walk(path, visit, &l, err);
    if (l.before >= 0)
        (void)close(l.before);
    out->untouched = out->untouched && out->n > 0;
    return st;
}
