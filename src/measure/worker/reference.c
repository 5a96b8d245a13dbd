/* SPDX-License-Identifier: MIT */
#include "measure/worker/worker.h"

#include "base/alloc.h"
#include "os/dl.h"
#include "os/file.h"
#include "os/proc.h"

#include <string.h>

/* The entry that measure/reference.c generates: one pointer for each argument. */
typedef void (*entry_fn)(void *const *args);

struct host_arg {
    unsigned char *bytes; /* owned */
    size_t n;
};

/* Read {"bytes": n, "file": ..} into memory of its own; without a file it is poisoned. */
static kopt_status load_arg(const struct kp_json *j, struct host_arg *a, kopt_error *err)
{
    int64_t n = 0;
    struct kp_str file = {0};
    (void)kp_json_as_i64(kp_json_get(j, "bytes"), &n);
    (void)kp_json_as_str(kp_json_get(j, "file"), &file);
    if (n < 1)
        return kp_err(err, KOPT_ECORRUPT, "a reference message is broken");
    a->n = (size_t)n;
    if (file.len == 0) {
        a->bytes = kp_calloc(a->n, 1);
        if (!a->bytes)
            return kp_err_nomem(err);
        memset(a->bytes, 0xff, a->n);
        return KOPT_OK;
    }
    struct kp_buf b = KP_BUF_INIT(a->n);
    kopt_status st = kp_file_read(file.ptr, &b, err);
    if (st == KOPT_OK && b.len != a->n)
        st = kp_err(err, KOPT_EIO, "%s does not have %zu bytes", file.ptr, a->n);
    if (st == KOPT_OK)
        a->bytes = (unsigned char *)kp_buf_take(&b);
    kp_buf_deinit(&b);
    return st;
}

static kopt_status save_outputs(const struct kp_json *args, const struct host_arg *host,
                                kopt_error *err)
{
    for (size_t i = 0; i < kp_json_size(args); i++) {
        struct kp_str save = {0};
        if (!kp_json_as_str(kp_json_get(kp_json_at(args, i), "save"), &save) || save.len == 0)
            continue;
        kopt_status st = kp_file_put(save.ptr, host[i].bytes, host[i].n, err);
        if (st != KOPT_OK)
            return st;
    }
    return KOPT_OK;
}

static kopt_status call(const struct kp_message *m, kopt_error *err)
{
    const struct kp_json *args = kp_json_get(m->head, "args");
    size_t n = kp_json_size(args);
    const char *path = kp_message_str(m, "library");
    struct host_arg host[KP_JOB_ARGS_MAX] = {0};
    void *pointers[KP_JOB_ARGS_MAX];
    struct kp_dl *dl = NULL;
    entry_fn entry = NULL;
    if (n > KP_JOB_ARGS_MAX)
        return kp_err(err, KOPT_ECORRUPT, "a reference message is broken");
    kopt_status st = kp_dl_open(&path, 1, NULL, &dl, err);
    if (st == KOPT_OK && !KP_DL_GET(dl, "kopt_reference_entry", &entry))
        st = kp_err(err, KOPT_EINPUT, "%s has no entry", path);
    for (size_t i = 0; i < n && st == KOPT_OK; i++) {
        st = load_arg(kp_json_at(args, i), &host[i], err);
        pointers[i] = host[i].bytes;
    }
    if (st == KOPT_OK) {
        entry(pointers);
        st = save_outputs(args, host, err);
    }
    for (size_t i = 0; i < n; i++)
        kp_free(host[i].bytes);
    kp_dl_close(dl);
    return st;
}

int kp_worker_reference(void)
{
    struct kp_buf frame = KP_BUF_INIT(KP_FRAME_MAX);
    struct kp_message m;
    kopt_error err;
    bool ok = true;
    if (kp_worker_next(&frame, &m)) {
        int64_t id = kp_message_i64(&m, "id", 0);
        ok = call(&m, &err) == KOPT_OK ? kp_worker_reply(id, "done") : kp_worker_fail(id, &err);
        kp_message_deinit(&m);
    }
    kp_buf_deinit(&frame);
    return ok ? 0 : 1;
}
