/* SPDX-License-Identifier: MIT */
/* Files of small models, as they are and put together by hand. */
#ifndef TEST_MODEL_FILES_H
#define TEST_MODEL_FILES_H

#include "base/alloc.h"
#include "forests.h"
#include "model/model.h"
#include "os/file.h"
#include "small_model.h"
#include "support/test.h"

/* The model with trees beside its networks. */
static inline struct kp_model *with_trees(const struct small_plan *plan)
{
    struct kp_model *m = small_model(plan);
    forest_beside(m, 3, 0.4, plan->seed);
    return m;
}

static inline void save(const struct kp_model *m, const char *path)
{
    kopt_error err = {0};
    if (kp_model_save(m, path, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static inline struct kp_model *load(const char *path)
{
    kopt_error err = {0};
    struct kp_model *m;
    if (kp_model_load(path, &m, &err) != KOPT_OK)
        fail_msg("%s: %s", err.file, err.message);
    return m;
}

static inline void assert_same_answers(const struct kp_model *a, const struct kp_model *b)
{
    for (int unconstrained = 0; unconstrained < 2; unconstrained++) {
        struct kp_prediction x;
        struct kp_prediction y;
        kopt_error err;
        assert_int_equal(small_ask(a, 20, unconstrained, &x, &err), KOPT_OK);
        assert_int_equal(small_ask(b, 20, unconstrained, &y, &err), KOPT_OK);
        assert_int_equal(x.n, y.n);
        assert_memory_equal(x.configs, y.configs, x.n * SMALL_TARGETS * sizeof(*x.configs));
        assert_memory_equal(x.logp, y.logp, x.n * sizeof(*x.logp));
        kp_prediction_deinit(&x);
        kp_prediction_deinit(&y);
    }
}

static inline struct kp_buf content(const char *path)
{
    struct kp_buf b = KP_BUF_INIT(16 << 20);
    kopt_error err;
    assert_int_equal(kp_file_read(path, &b, &err), KOPT_OK);
    return b;
}

/* ---- put together by hand ---- */

static inline void write_file(const char *path, const void *bytes, size_t n)
{
    kopt_error err;
    assert_int_equal(kp_file_put(path, bytes, n, &err), KOPT_OK);
}

static inline void compose(const char *path, struct kp_str header, struct kp_str data)
{
    struct kp_buf b = KP_BUF_INIT(64 << 20);
    uint64_t n = (header.len + 7) / 8 * 8; /* as other writers align it */
    kp_buf_add(&b, &n, sizeof(n));
    kp_buf_add(&b, header.ptr, header.len);
    for (uint64_t i = header.len; i < n; i++)
        kp_buf_addc(&b, ' ');
    kp_buf_add(&b, data.ptr, data.len);
    assert_int_equal(b.failed, KOPT_OK);
    write_file(path, b.ptr, b.len);
    kp_buf_deinit(&b);
}

/* Header and data of a good model. */
struct parts {
    struct kp_buf file;
    struct kp_str header;
    struct kp_str data;
};

static inline struct parts split(const char *path)
{
    struct parts p = {.file = content(path)};
    uint64_t n;
    memcpy(&n, p.file.ptr, sizeof(n));
    p.header = (struct kp_str){(const char *)p.file.ptr + 8, n};
    p.data = (struct kp_str){(const char *)p.file.ptr + 8 + n, p.file.len - 8 - n};
    return p;
}

/* `text` with the first `from` replaced. */
static inline struct kp_buf replaced(struct kp_str text, const char *from, struct kp_str to)
{
    struct kp_buf b = KP_BUF_INIT(64 << 20);
    const char *at = memmem(text.ptr, text.len, from, strlen(from));
    if (!at)
        fail_msg("there is no '%s' in the header", from);
    size_t before = (size_t)(at - text.ptr);
    kp_buf_add(&b, text.ptr, before);
    kp_buf_add(&b, to.ptr, to.len);
    kp_buf_add(&b, at + strlen(from), text.len - before - strlen(from));
    return b;
}

static inline void assert_refused(const char *path, const char *message)
{
    struct kp_model *m;
    kopt_error err = {0};
    kopt_status st = kp_model_load(path, &m, &err);
    if (st != KOPT_EINPUT)
        fail_msg("'%s' wanted, got status %d", message, (int)st);
    assert_null(m);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in '%s'", message, err.message);
    if (strncmp(err.message, path, strlen(path)) != 0)
        fail_msg("'%s' does not name the file", err.message);
}

struct change {
    const char *from;
    const char *to;
    const char *message;
};

/* Each change of a good model's header is refused. Frees `m`. */
static inline void refuse_changes(struct kp_model *m, const char *path,
                                  const struct change *changes, size_t n)
{
    save(m, path);
    kp_model_free(m);
    struct parts p = split(path);
    for (size_t i = 0; i < n; i++) {
        struct kp_buf h = replaced(p.header, changes[i].from, kp_str_from(changes[i].to));
        compose("bad.safetensors", (struct kp_str){kp_buf_text(&h), h.len}, p.data);
        assert_refused("bad.safetensors", changes[i].message);
        kp_buf_deinit(&h);
    }
    kp_buf_deinit(&p.file);
}

#endif
