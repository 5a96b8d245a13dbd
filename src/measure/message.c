/* SPDX-License-Identifier: MIT */
#include "measure/message.h"

#include "base/alloc.h"
#include "os/proc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

kopt_status kp_message_send(int fd, struct kp_json *head, const void *blob, size_t blob_bytes,
                            kopt_error *err)
{
    struct kp_buf b = KP_BUF_INIT(KP_FRAME_MAX);
    kopt_status st;
    if (!head)
        return kp_err_nomem(err);
    kp_json_dump(head, &b);
    kp_buf_addc(&b, 0);
    if (blob_bytes)
        kp_buf_add(&b, blob, blob_bytes);
    st = kp_buf_status(&b, err);
    if (st == KOPT_OK)
        st = kp_frame_write(fd, b.ptr, b.len, err);
    kp_buf_deinit(&b);
    kp_json_free(head);
    return st;
}

kopt_status kp_message_parse(const struct kp_buf *frame, struct kp_message *out,
                             kopt_error *err)
{
    *out = (struct kp_message){0};
    const unsigned char *nul = frame->len ? memchr(frame->ptr, 0, frame->len) : NULL;
    if (!nul)
        return kp_err(err, KOPT_ECORRUPT, "a worker's message has no header");
    size_t n = (size_t)(nul - frame->ptr);
    kopt_status st =
        kp_json_parse((struct kp_str){(const char *)frame->ptr, n}, "message", &out->head, err);
    if (st != KOPT_OK)
        return st == KOPT_ENOMEM ? st
                                 : kp_err(err, KOPT_ECORRUPT, "a worker's message is broken");
    out->blob = nul + 1;
    out->blob_bytes = frame->len - n - 1;
    return KOPT_OK;
}

void kp_message_deinit(struct kp_message *m)
{
    kp_json_free(m->head);
    *m = (struct kp_message){0};
}

struct kp_json *kp_message_new(const char *key, const char *what, int64_t id)
{
    struct kp_json *j = kp_json_new_object();
    if (kp_json_set_str(j, key, what) && kp_json_set_i64(j, "id", id))
        return j;
    kp_json_free(j);
    return NULL;
}

const char *kp_message_str(const struct kp_message *m, const char *key)
{
    struct kp_str s = {0};
    return kp_json_as_str(kp_json_get(m->head, key), &s) ? s.ptr : "";
}

const char *kp_message_what(const struct kp_message *m, const char *key)
{
    return kp_message_str(m, key);
}

int64_t kp_message_i64(const struct kp_message *m, const char *key, int64_t otherwise)
{
    int64_t v;
    return kp_json_as_i64(kp_json_get(m->head, key), &v) ? v : otherwise;
}

double kp_message_f64(const struct kp_message *m, const char *key, double otherwise)
{
    double v;
    return kp_json_as_f64(kp_json_get(m->head, key), &v) ? v : otherwise;
}

void kp_message_put_error(struct kp_json *head, const kopt_error *err)
{
    (void)(kp_json_set_i64(head, "code", err->code) &&
           kp_json_set_str(head, "message", err->message) &&
           kp_json_set_str(head, "hint", err->hint) &&
           kp_json_set_i64(head, "line", err->line) &&
           kp_json_set_i64(head, "column", err->column));
}

void kp_message_get_error(const struct kp_message *m, kopt_error *err)
{
    if (!err)
        return;
    *err = (kopt_error){0};
    int64_t code = kp_message_i64(m, "code", KOPT_EFAILED);
    err->code = code < 0 && code >= KOPT_EFAILED ? (kopt_status)code : KOPT_EFAILED;
    err->line = (int)kp_message_i64(m, "line", 0);
    err->column = (int)kp_message_i64(m, "column", 0);
    const char *text = kp_message_str(m, "message");
    (void)snprintf(err->message, sizeof(err->message), "%s",
                   text[0] ? text : kopt_status_text(err->code));
    (void)snprintf(err->hint, sizeof(err->hint), "%s", kp_message_str(m, "hint"));
}

/* --- launches --------------------------------------------------------------------------------
 */

static struct kp_json *triple(const uint32_t v[3])
{
    struct kp_json *a = kp_json_new_array();
    for (int i = 0; i < 3; i++) {
        if (!kp_json_push(a, kp_json_new_i64(v[i]))) {
            kp_json_free(a);
            return NULL;
        }
    }
    return a;
}

static struct kp_json *arg_to_json(const struct kp_job_arg *arg)
{
    static const char digits[] = "0123456789abcdef";
    struct kp_json *j = kp_json_new_object();
    bool ok = false;
    if (arg->space == KP_SPACE_GLOBAL) {
        ok = kp_json_set_i64(j, "b", arg->buffer) &&
             kp_json_set_i64(j, "n", (int64_t)arg->bytes);
    } else if (arg->space == KP_SPACE_SHARED) {
        ok = kp_json_set_i64(j, "l", (int64_t)arg->bytes);
    } else {
        char hex[2 * sizeof(arg->value) + 1];
        for (size_t i = 0; i < arg->bytes; i++) {
            hex[2 * i] = digits[arg->value[i] >> 4];
            hex[2 * i + 1] = digits[arg->value[i] & 15];
        }
        hex[2 * arg->bytes] = 0;
        ok = kp_json_set_str(j, "v", hex);
    }
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

bool kp_message_put_launch(struct kp_json *head, const struct kp_job_launch *l)
{
    struct kp_json *args = kp_json_new_array();
    bool ok = args != NULL;
    for (size_t i = 0; i < l->n_args && ok; i++)
        ok = kp_json_push(args, arg_to_json(&l->args[i]));
    if (!ok) {
        kp_json_free(args);
        return false;
    }
    return kp_json_set(head, "args", args) && kp_json_set(head, "grid", triple(l->grid)) &&
           kp_json_set(head, "block", triple(l->block)) &&
           kp_json_set_i64(head, "shared", l->shared_bytes);
}

static bool read_triple(const struct kp_json *j, uint32_t out[3])
{
    for (size_t i = 0; i < 3; i++) {
        int64_t v;
        if (!kp_json_as_i64(kp_json_at(j, i), &v) || v < 1 || v > UINT32_MAX)
            return false;
        out[i] = (uint32_t)v;
    }
    return true;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_arg(const struct kp_json *j, struct kp_job_arg *arg)
{
    int64_t n;
    struct kp_str hex;
    if (kp_json_as_i64(kp_json_get(j, "b"), &n) && n >= 0 && n < KP_JOB_ARGS_MAX) {
        int64_t bytes;
        arg->space = KP_SPACE_GLOBAL;
        arg->buffer = (uint32_t)n;
        if (!kp_json_as_i64(kp_json_get(j, "n"), &bytes) || bytes < 0)
            return false;
        arg->bytes = (size_t)bytes;
        return true;
    }
    if (kp_json_as_i64(kp_json_get(j, "l"), &n) && n > 0) {
        arg->space = KP_SPACE_SHARED;
        arg->bytes = (size_t)n;
        return true;
    }
    if (!kp_json_as_str(kp_json_get(j, "v"), &hex) || hex.len % 2 ||
        hex.len > 2 * sizeof(arg->value))
        return false;
    arg->space = KP_SPACE_VALUE;
    arg->bytes = hex.len / 2;
    for (size_t i = 0; i < arg->bytes; i++) {
        int hi = nibble(hex.ptr[2 * i]);
        int lo = nibble(hex.ptr[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        arg->value[i] = (unsigned char)(16 * hi + lo);
    }
    return true;
}

kopt_status kp_message_get_launch(const struct kp_message *m, struct kp_job_launch *l,
                                  kopt_error *err)
{
    *l = (struct kp_job_launch){0};
    const struct kp_json *args = kp_json_get(m->head, "args");
    size_t n = kp_json_size(args);
    int64_t shared = kp_message_i64(m, "shared", -1);
    bool ok = n <= KP_JOB_ARGS_MAX && shared >= 0 && shared <= UINT32_MAX &&
              read_triple(kp_json_get(m->head, "grid"), l->grid) &&
              read_triple(kp_json_get(m->head, "block"), l->block);
    if (!ok)
        return kp_err(err, KOPT_ECORRUPT, "a launch message is broken");
    l->shared_bytes = (uint32_t)shared;
    l->args = kp_calloc(n ? n : 1, sizeof(*l->args));
    if (!l->args)
        return kp_err_nomem(err);
    l->n_args = n;
    for (size_t i = 0; i < n; i++) {
        if (!read_arg(kp_json_at(args, i), &l->args[i])) {
            kp_free(l->args);
            *l = (struct kp_job_launch){0};
            return kp_err(err, KOPT_ECORRUPT, "argument %zu of a launch message is broken", i);
        }
    }
    return KOPT_OK;
}

/* --- devices ---------------------------------------------------------------------------------
 */

#define LIMITS(X)    \
    X(max_threads)   \
    X(max_block[0])  \
    X(max_block[1])  \
    X(max_block[2])  \
    X(shared_bytes)  \
    X(registers)     \
    X(warp)          \
    X(compute_units) \
    X(l2_bytes)      \
    X(global_bytes)  \
    X(clock_khz)     \
    X(cc)

bool kp_message_put_info(struct kp_json *head, const struct kp_device_info *info)
{
    bool ok = kp_json_set_i64(head, "backend", info->backend) &&
              kp_json_set_i64(head, "index", info->index) &&
              kp_json_set_str(head, "name", info->name) &&
              kp_json_set_str(head, "arch", info->arch) &&
              kp_json_set_str(head, "driver", info->driver) &&
              kp_json_set_str(head, "compiler", info->compiler) &&
              kp_json_set_str(head, "pci", info->id) &&
              kp_json_set_bool(head, "is_cpu", info->is_cpu);
#define X(field) ok = ok && kp_json_set_i64(head, #field, info->limits.field);
    LIMITS(X)
#undef X
    return ok;
}

static void copy(char *out, size_t bytes, const char *s)
{
    (void)snprintf(out, bytes, "%s", s);
}

void kp_message_get_info(const struct kp_message *m, struct kp_device_info *info)
{
    *info = (struct kp_device_info){0};
    bool is_cpu = false;
    info->backend = (enum kp_backend)kp_message_i64(m, "backend", 0);
    info->index = (int)kp_message_i64(m, "index", 0);
    copy(info->name, sizeof(info->name), kp_message_str(m, "name"));
    copy(info->arch, sizeof(info->arch), kp_message_str(m, "arch"));
    copy(info->driver, sizeof(info->driver), kp_message_str(m, "driver"));
    copy(info->compiler, sizeof(info->compiler), kp_message_str(m, "compiler"));
    copy(info->id, sizeof(info->id), kp_message_str(m, "pci"));
    (void)kp_json_as_bool(kp_json_get(m->head, "is_cpu"), &is_cpu);
    info->is_cpu = is_cpu;
#define X(field) info->limits.field = kp_message_i64(m, #field, 0);
    LIMITS(X)
#undef X
}
