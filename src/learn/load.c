/* SPDX-License-Identifier: MIT */
/* Which kind of file it is, told from its content. Layer: learn. */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "os/file.h"
#include "store/store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD_BYTES = 1 << 12, BUSY_MS = 2000, SQLITE_HEADER = 100, APPLICATION_ID = 68 };

const char *kp_source_name(enum kp_source s)
{
    switch (s) {
    case KP_SOURCE_STORE:
        return "store";
    case KP_SOURCE_MIOPEN:
        return "MIOpen database";
    case KP_SOURCE_T4:
        return "T4";
    case KP_SOURCE_CSV:
        break;
    }
    return "CSV";
}

struct head {
    unsigned char bytes[HEAD_BYTES];
    size_t n;
};

static kopt_status take_head(void *user, const void *bytes, size_t n)
{
    struct head *h = user;
    size_t room = HEAD_BYTES - h->n;
    memcpy(h->bytes + h->n, bytes, n < room ? n : room);
    h->n += n < room ? n : room;
    return h->n < HEAD_BYTES ? KOPT_OK : KOPT_ERANGE; /* enough */
}

static bool begins(const struct head *h, const char *with, size_t n)
{
    return h->n >= n && memcmp(h->bytes, with, n) == 0;
}

/* An SQLite file that says that it is a store: a damaged one, or a newer one. */
static bool was_store(const struct head *h)
{
    return h->n >= SQLITE_HEADER && memcmp(h->bytes + APPLICATION_ID, "kopt", 4) == 0;
}

/* "key=solver:.." on the first line that is not empty: before any comma, which a CSV header has
 * between names. */
static bool is_miopen_text(const struct head *h)
{
    size_t at = 0;
    while (at < h->n && strchr(" \t\r\n", h->bytes[at]) && h->bytes[at])
        at++;
    const unsigned char *line = h->bytes + at;
    const unsigned char *end = memchr(line, '\n', h->n - at);
    size_t n = end ? (size_t)(end - line) : h->n - at;
    const unsigned char *equals = memchr(line, '=', n);
    const unsigned char *comma = memchr(line, ',', n);
    return equals && line[0] != '#' && line[0] != '"' &&
           memchr(equals, ':', (size_t)(line + n - equals)) && (!comma || comma > equals);
}

static bool is_json(const struct head *h)
{
    size_t at = begins(h, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < h->n && h->bytes[at] && strchr(" \t\r\n", h->bytes[at]))
        at++;
    return at < h->n && (h->bytes[at] == '{' || h->bytes[at] == '[');
}

static kopt_status compressed(const char *path, const char *by, kopt_error *err)
{
    kopt_status st = kp_err(err, KOPT_EINPUT, "%s: compressed by %s", path, by);
    kp_err_hint(err, "unpack it first; of compressed files only CSV by gzip is read");
    return st;
}

static kopt_status refuse_compressed(const char *path, const struct head *h, kopt_error *err)
{
    if (begins(h, "BZh", 3))
        return compressed(path, "bzip2", err);
    if (begins(h,
               "\xfd"
               "7zXZ",
               5))
        return compressed(path, "xz", err);
    if (begins(h, "\x28\xb5\x2f\xfd", 4))
        return compressed(path, "zstd", err);
    return KOPT_OK;
}

kopt_status kp_load_is_miopen(const char *path, bool *is, kopt_error *err)
{
    struct head h = {.n = 0};
    *is = false;
    kopt_status st = kp_file_walk(path, take_head, &h, err);
    if (st != KOPT_OK && st != KOPT_ERANGE)
        return st;
    *is = begins(&h, "SQLite format 3", 16) || is_miopen_text(&h);
    return *is ? KOPT_OK : refuse_compressed(path, &h, err);
}

/* No store. */
static kopt_status load_other(struct kp_intake *in, kopt_error *no_store)
{
    struct head h = {.n = 0};
    kopt_status st = kp_file_walk(in->path, take_head, &h, in->err);
    if (st != KOPT_OK && st != KOPT_ERANGE)
        return st;
    if (begins(&h, "SQLite format 3", 16) && was_store(&h) && no_store->code != KOPT_OK) {
        if (no_store->code == KOPT_ECORRUPT)
            no_store->code = KOPT_EINPUT;
        if (in->err)
            *in->err = *no_store;
        return no_store->code;
    }
    if (begins(&h, "SQLite format 3", 16) || is_miopen_text(&h)) {
        in->report->source = KP_SOURCE_MIOPEN;
        return kp_load_miopen(in);
    }
    st = refuse_compressed(in->path, &h, in->err);
    if (st != KOPT_OK)
        return st;
    if (is_json(&h))
        return kp_load_t4(in);
    if (!begins(&h, "\x1f\x8b", 2) && memchr(h.bytes, 0, h.n)) {
        st = kp_err(in->err, KOPT_EINPUT, "%s: no file of results", in->path);
        kp_err_hint(in->err, KP_LOAD_KINDS);
        return st;
    }
    return kp_load_csv(in);
}

/* A file that is SQLite's is not opened here, but by SQLite: closing it would drop the locks
 * that this process may hold on it as a store. */
static kopt_status load_any(struct kp_intake *in)
{
    struct stat info;
    struct kp_store *store = NULL;
    kopt_error why = {0};
    if (stat(in->path, &info) != 0)
        return kp_err(in->err, KOPT_EIO, "%s: %s", in->path, strerrordesc_np(errno));
    if (!S_ISREG(info.st_mode) || info.st_size < SQLITE_HEADER)
        return load_other(in, &why);
    kopt_status st = kp_store_open(in->path, KP_STORE_READ, BUSY_MS, &store, &why);
    if (st == KOPT_ENOMEM || st == KOPT_EBUSY) {
        if (in->err)
            *in->err = why;
        return st;
    }
    if (st != KOPT_OK)
        return load_other(in, &why);
    st = kp_load_store(in, store);
    kp_store_close(store);
    return st;
}

/* The file's rows, and behind them those of others, which only help. */
static kopt_status load_all(struct kp_intake *in)
{
    const struct kp_load_options *o = in->o;
    kopt_status st = load_any(in);
    const enum kp_source source = in->report->source;
    for (size_t i = 0; st == KOPT_OK && i < o->n_more; i++) {
        size_t before = in->n_rows;
        in->path = o->more[i].path;
        in->source = o->more[i].name;
        in->helps = true;
        st = load_any(in);
        if (st == KOPT_OK && in->n_rows == before) {
            st = kp_err(in->err, KOPT_EINPUT, "%s: no row can be used", in->path);
            kp_err_hint(in->err,
                        "it must have the first file's columns, and rows that are chosen");
        }
    }
    in->report->source = source;
    return st;
}

kopt_status kp_load(const char *path, const struct kp_load_options *o, struct kp_dataset **out,
                    struct kp_load_report *report, kopt_error *err)
{
    struct kp_intake in;
    *out = NULL;
    *report = (struct kp_load_report){.source = KP_SOURCE_CSV};
    kp_intake_init(&in, path, o, report, err);
    kopt_status st = load_all(&in);
    in.path = path;
    in.helps = false;
    if (st == KOPT_OK)
        st = kp_intake_finish(&in, out);
    kp_intake_deinit(&in);
    return st;
}
