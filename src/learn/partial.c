/* SPDX-License-Identifier: MIT */
#include "learn/partial.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "nn/params.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#    error "the file's numbers are little-endian"
#endif

enum { MAGIC = 8, LENGTH = 8, HEADER_MAX = 16 << 20, SLABS_MAX = KP_BEAM_NETS_MAX + 3 };
#define FILE_MAX ((size_t)4 << 30)
static const char magic[] = "kopt-tp1";

/* --- writing --------------------------------------------------------------------------------
 */

static struct kp_json *floats_of(const struct kp_fit_state *s)
{
    struct kp_json *a = kp_json_new_array();
    bool ok = a != NULL;
    for (size_t k = 0; ok && k <= s->net; k++)
        ok = kp_json_push(a, kp_json_new_i64((int64_t)s->n_floats[k]));
    if (ok)
        return a;
    kp_json_free(a);
    return NULL;
}

static struct kp_json *header_of(const char *identity, bool spares,
                                 const struct kp_fit_state *s)
{
    struct kp_json *h = kp_json_new_object();
    bool ok =
        h && kp_json_set_str(h, "identity", identity) &&
        kp_json_set_bool(h, "spares", spares) && kp_json_set_i64(h, "net", (int64_t)s->net) &&
        kp_json_set(h, "floats", floats_of(s)) && kp_json_set_i64(h, "epoch", s->train.epoch) &&
        kp_json_set_i64(h, "best_epoch", s->train.best_epoch) &&
        kp_json_set_f64(h, "best_loss", s->train.best_loss) &&
        kp_json_set_i64(h, "step", (int64_t)s->train.step) &&
        kp_json_set(h, "log", kp_json_dup(s->log));
    if (ok)
        return h;
    kp_json_free(h);
    return NULL;
}

static kopt_status write_pieces(const char *path, struct kp_str *pieces, size_t n,
                                kopt_error *err)
{
    struct kp_sha256 *sha;
    char hex[KP_SHA256_HEX + 1];
    kopt_status st = kp_sha256_new(&sha, err);
    if (st != KOPT_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        kp_sha256_add(sha, pieces[i].ptr, pieces[i].len);
    kp_sha256_finish(sha, hex);
    pieces[n++] = (struct kp_str){hex, KP_SHA256_HEX};
    return kp_file_replace(path, pieces, n, err);
}

kopt_status kp_partial_save(const char *path, const char *identity, bool spares,
                            const struct kp_fit_state *s, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(HEADER_MAX);
    struct kp_str pieces[3 + SLABS_MAX + 1];
    size_t bytes = s->n_floats[s->net] * sizeof(float);
    size_t n = 0;
    struct kp_json *h = header_of(identity, spares, s);
    if (!h)
        return kp_err_nomem(err);
    kp_json_dump(h, &text);
    kp_json_free(h);
    kopt_status st = kp_buf_status(&text, err);
    uint64_t length = text.len;
    pieces[n++] = (struct kp_str){magic, MAGIC};
    pieces[n++] = (struct kp_str){(const char *)&length, LENGTH};
    pieces[n++] = (struct kp_str){kp_buf_text(&text), text.len};
    for (size_t k = 0; k <= s->net; k++)
        pieces[n++] =
            (struct kp_str){(const char *)s->values[k], s->n_floats[k] * sizeof(float)};
    pieces[n++] = (struct kp_str){(const char *)s->train.values, bytes};
    pieces[n++] = (struct kp_str){(const char *)s->train.m, bytes};
    pieces[n++] = (struct kp_str){(const char *)s->train.v, bytes};
    if (st == KOPT_OK)
        st = write_pieces(path, pieces, n, err);
    kp_buf_deinit(&text);
    return st;
}

/* --- reading --------------------------------------------------------------------------------
 */

static kopt_status damaged(const char *path, const char *what, kopt_error *err)
{
    kopt_status st = kp_err(err, KOPT_EINPUT, "%s: %s", path, what);
    kp_err_hint(err, "remove it to begin anew");
    return st;
}

struct reader {
    const char *path;
    const char *identity;
    const unsigned char *bytes;
    size_t n;
    struct kp_partial *p;
    kopt_error *err;
};

static kopt_status check_sum(const struct reader *r)
{
    struct kp_sha256 *sha;
    char hex[KP_SHA256_HEX + 1];
    if (r->n < MAGIC || memcmp(r->bytes, magic, MAGIC) != 0)
        return damaged(r->path, "not the state of a training", r->err);
    if (r->n < MAGIC + LENGTH + KP_SHA256_HEX)
        return damaged(r->path, "cut", r->err);
    kopt_status st = kp_sha256_new(&sha, r->err);
    if (st != KOPT_OK)
        return st;
    kp_sha256_add(sha, r->bytes, r->n - KP_SHA256_HEX);
    kp_sha256_finish(sha, hex);
    if (memcmp(hex, r->bytes + r->n - KP_SHA256_HEX, KP_SHA256_HEX) != 0)
        return damaged(r->path, "cut or damaged: its checksum does not agree", r->err);
    return KOPT_OK;
}

static bool whole(const struct kp_json *h, const char *key, int64_t max, int64_t *out)
{
    return kp_json_as_i64(kp_json_get(h, key), out) && *out >= 0 && *out <= max;
}

/* Of all slabs together: those of the networks, and three more of the one in training. */
static size_t all_floats(const struct kp_fit_state *s)
{
    size_t n = 3 * s->n_floats[s->net];
    for (size_t k = 0; k <= s->net; k++)
        n += s->n_floats[k];
    return n;
}

static bool read_floats(const struct kp_json *a, struct kp_fit_state *s)
{
    bool ok = kp_json_size(a) == s->net + 1;
    for (size_t k = 0; ok && k <= s->net; k++) {
        int64_t n;
        ok = kp_json_as_i64(kp_json_at(a, k), &n) && n >= 1 && n <= 1 << 30;
        s->n_floats[k] = ok ? (size_t)n : 0;
    }
    return ok;
}

static kopt_status read_header(const struct reader *r)
{
    struct kp_partial *p = r->p;
    struct kp_fit_state *s = &p->state;
    uint64_t length;
    int64_t net = 0;
    int64_t epoch = 0;
    int64_t best = 0;
    int64_t step = 0;
    struct kp_str identity;
    memcpy(&length, r->bytes + MAGIC, LENGTH);
    if (length > HEADER_MAX || length > r->n - MAGIC - LENGTH - KP_SHA256_HEX)
        return damaged(r->path, "its header is longer than the file", r->err);
    const struct kp_str text = {(const char *)r->bytes + MAGIC + LENGTH, length};
    kopt_status st = kp_json_parse(text, r->path, &p->header, r->err);
    if (st != KOPT_OK)
        return st;
    const struct kp_json *h = p->header;
    if (!kp_json_as_str(kp_json_get(h, "identity"), &identity) ||
        !whole(h, "net", KP_BEAM_NETS_MAX - 1, &net) ||
        !whole(h, "epoch", UINT32_MAX, &epoch) || !whole(h, "best_epoch", epoch, &best) ||
        !whole(h, "step", INT64_MAX, &step) ||
        !kp_json_as_f64(kp_json_get(h, "best_loss"), &s->train.best_loss) ||
        !kp_json_as_bool(kp_json_get(h, "spares"), &p->spares) ||
        kp_json_size(kp_json_get(h, "log")) != (size_t)net + 1)
        return damaged(r->path, "its header is not one of a training", r->err);
    if (!kp_str_is(identity, r->identity)) {
        st = kp_err(r->err, KOPT_EUSAGE,
                    "%s is of another training: its data or options differ, or the version",
                    r->path);
        kp_err_hint(r->err, "give the same data and options, or begin anew without resuming");
        return st;
    }
    s->net = (size_t)net;
    if (!read_floats(kp_json_get(h, "floats"), s))
        return damaged(r->path, "its header is not one of a training", r->err);
    s->train.epoch = (unsigned)epoch;
    s->train.best_epoch = (unsigned)best;
    s->train.step = (uint64_t)step;
    s->log = kp_json_get(h, "log");
    size_t slabs = r->n - MAGIC - LENGTH - KP_SHA256_HEX - length;
    if (slabs != all_floats(s) * sizeof(float))
        return damaged(r->path, "its size is not what its header says", r->err);
    return KOPT_OK;
}

static kopt_status read_slabs(const struct reader *r)
{
    struct kp_partial *p = r->p;
    struct kp_fit_state *s = &p->state;
    size_t n = all_floats(s);
    p->slabs = kp_slab_new(n);
    if (!p->slabs)
        return kp_err_nomem(r->err);
    memcpy(p->slabs, r->bytes + r->n - KP_SHA256_HEX - n * sizeof(float), n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(p->slabs[i]))
            return damaged(r->path, "it has a number that is not finite", r->err);
    float *at = p->slabs;
    for (size_t k = 0; k <= s->net; at += s->n_floats[k], k++)
        s->values[k] = at;
    s->train.values = at;
    s->train.m = at + s->n_floats[s->net];
    s->train.v = at + 2 * s->n_floats[s->net];
    return KOPT_OK;
}

void kp_partial_free(struct kp_partial *p)
{
    if (!p)
        return;
    kp_json_free(p->header);
    kp_slab_free(p->slabs);
    kp_free(p);
}

kopt_status kp_partial_load(const char *path, const char *identity, struct kp_partial **out,
                            kopt_error *err)
{
    struct kp_file_map map;
    *out = NULL;
    kopt_status st = kp_file_map(path, FILE_MAX, &map, err);
    if (st != KOPT_OK)
        return st;
    struct reader r = {.path = path,
                       .identity = identity,
                       .bytes = map.ptr,
                       .n = map.n,
                       .p = kp_calloc(1, sizeof(struct kp_partial)),
                       .err = err};
    if (!r.p) {
        kp_file_unmap(&map);
        return kp_err_nomem(err);
    }
    st = check_sum(&r);
    if (st == KOPT_OK)
        st = read_header(&r);
    if (st == KOPT_OK)
        st = read_slabs(&r);
    kp_file_unmap(&map);
    if (st != KOPT_OK) {
        kp_partial_free(r.p);
        return st;
    }
    *out = r.p;
    return KOPT_OK;
}
