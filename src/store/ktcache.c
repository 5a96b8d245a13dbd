/* SPDX-License-Identifier: MIT */
/* Import of Kernel Tuner's cache files. */
#include "base/alloc.h"
#include "os/clock.h"
#include "store/ktfile.h"
#include "store/ops.h"

#include <string.h>

enum {
    TEXT_BYTES_MAX = 1 << 20, /* of a configuration, of a problem */
    BATCH = 500               /* entries of one transaction */
};

struct import {
    struct kp_store *st;
    struct kp_ktfile file;
    struct kp_buf config; /* of the entry at hand */
    int64_t subject;      /* 0 = not made yet, as the run */
    int64_t run;
    bool new_run;                   /* it was made in the transaction at work */
    int in_batch;                   /* entries of the transaction at work; 0 = none is open */
    struct kp_import_count pending; /* counted in it */
    struct kp_import_count *count;
};

/* {"BX":64,..} from the entry's members, into x->config. KOPT_EINPUT (without a message) when
 * one is missing or no plain value. */
static kopt_status read_config(struct import *x, const struct kp_json *entry)
{
    kopt_status st = KOPT_OK;
    struct kp_json *config = kp_json_new_object();
    if (!config)
        return KOPT_ENOMEM;
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(x->file.params); i++) {
        struct kp_str name = {0};
        (void)kp_json_as_str(kp_json_at(x->file.params, i), &name);
        const struct kp_json *v = kp_json_get(entry, name.ptr);
        enum kp_json_type type = v ? kp_json_type(v) : KP_JSON_NULL;
        if (type == KP_JSON_NULL || type == KP_JSON_ARRAY || type == KP_JSON_OBJECT)
            st = KOPT_EINPUT;
        else if (!kp_json_set(config, name.ptr, kp_json_dup(v)))
            st = KOPT_ENOMEM;
    }
    kp_buf_clear(&x->config);
    if (st == KOPT_OK)
        kp_json_dump(config, &x->config);
    kp_json_free(config);
    if (st == KOPT_OK && x->config.failed != KOPT_OK)
        st = x->config.failed == KOPT_ENOMEM ? KOPT_ENOMEM : KOPT_EINPUT;
    return st;
}

static kopt_status make_subject(struct import *x, kopt_error *err)
{
    struct kp_str kernel = {0};
    struct kp_str device = {0};
    struct kp_buf problem = KP_BUF_INIT(TEXT_BYTES_MAX);
    struct kp_buf params = KP_BUF_INIT(TEXT_BYTES_MAX);
    (void)kp_json_as_str(x->file.kernel, &kernel);
    kopt_status st = kp_ktfile_problem(&x->file, &problem, err);
    kp_json_dump(x->file.params, &params);
    if (st == KOPT_OK)
        st = kp_buf_status(&params, err);
    if (st == KOPT_OK) {
        struct kp_subject s = {
            .kernel = kernel.ptr,
            .kernel_path = "",
            .kernel_hash = "",
            .backend = "kernel_tuner",
            .device = kp_json_as_str(x->file.device, &device) ? device.ptr : "",
            .arch = "",
            .driver = "",
            .compiler = "",
            .problem = kp_buf_text(&problem),
            .data = "",
            .params = kp_buf_text(&params),
        };
        st = kp_store_subject(x->st, &s, err);
        x->subject = s.id;
    }
    kp_buf_deinit(&problem);
    kp_buf_deinit(&params);
    return st;
}

static kopt_status make_run(struct import *x, kopt_error *err)
{
    struct kp_buf command = KP_BUF_INIT(TEXT_BYTES_MAX);
    kp_buf_addf(&command, "import %s", x->file.path);
    struct kp_store_run run = {
        .subject = x->subject,
        .command = kp_buf_text(&command),
        .strategy = "import",
        .version = KOPT_VERSION,
        .host = "",
        .state = "running",
        .summary = "",
        .begun_us = kp_clock_wall_us(),
    };
    kopt_status st = kp_buf_status(&command, err);
    if (st == KOPT_OK)
        st = kp_store_run_begin(x->st, &run, err);
    x->run = run.id;
    x->new_run = true;
    kp_buf_deinit(&command);
    return st;
}

static kopt_status end_batch(struct import *x, bool keep, kopt_error *err)
{
    if (x->in_batch == 0)
        return KOPT_OK;
    kopt_status st = x->st->ops->batch_end(x->st, keep, err);
    if (keep && st == KOPT_OK) {
        x->count->added += x->pending.added;
        x->count->present += x->pending.present;
    } else if (x->new_run) {
        x->run = 0; /* undone; its number may be another process's next */
    }
    x->new_run = false;
    x->pending = (struct kp_import_count){0};
    x->in_batch = 0;
    return st;
}

static kopt_status store_entry(struct import *x, const kopt_result *r, kopt_error *err)
{
    bool found = false;
    int64_t id = 0;
    kopt_status st = KOPT_OK;
    if (x->in_batch == 0)
        st = x->st->ops->batch_begin(x->st, err);
    if (st != KOPT_OK)
        return st;
    x->in_batch++;
    if (!x->subject)
        st = make_subject(x, err);
    if (st == KOPT_OK)
        st = x->st->ops->has(x->st, x->subject, r, &found, err);
    if (st == KOPT_OK && !found && !x->run)
        st = make_run(x, err);
    if (st == KOPT_OK && !found)
        st = kp_store_add(x->st, x->run, x->subject, r, &id, err);
    if (st != KOPT_OK)
        return st;
    x->pending.added += !found;
    x->pending.present += found;
    return x->in_batch >= BATCH ? end_batch(x, true, err) : KOPT_OK;
}

/* One that has no configuration is counted and passed over. */
static kopt_status import_entry(struct import *x, const struct kp_json *entry, kopt_error *err)
{
    kopt_result r;
    kopt_status st = read_config(x, entry);
    if (st == KOPT_ENOMEM)
        return kp_err_nomem(err);
    if (st != KOPT_OK) {
        x->count->bad++;
        return KOPT_OK;
    }
    st = kp_ktfile_result(&x->file, entry, &r, err);
    r.config = kp_buf_text(&x->config);
    return st == KOPT_OK ? store_entry(x, &r, err) : st;
}

/* Entries up to the end, wherever that is. */
static kopt_status import_entries(struct import *x, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    enum kp_ktfile_next what = KP_KTFILE_BAD;
    while (st == KOPT_OK && what != KP_KTFILE_END && what != KP_KTFILE_CUT) {
        struct kp_json *entry = NULL;
        st = kp_ktfile_next(&x->file, &what, &entry, err);
        if (st == KOPT_EINPUT) {
            kp_err_wrap(err, "what stands before it was imported");
            kp_err_hint(err,
                        "cut the file here and import it again for the rest of what is whole");
        }
        if (st == KOPT_OK && what == KP_KTFILE_BAD)
            x->count->bad++;
        else if (st == KOPT_OK && what == KP_KTFILE_ENTRY)
            st = import_entry(x, entry, err);
        kp_json_free(entry);
    }
    x->count->cut = st == KOPT_OK && what == KP_KTFILE_CUT;
    return st;
}

kopt_status kp_store_import_kt(struct kp_store *st, const char *path,
                               struct kp_import_count *count, kopt_error *err)
{
    kopt_error undone;
    struct import x = {.st = st, .config = KP_BUF_INIT(TEXT_BYTES_MAX), .count = count};
    *count = (struct kp_import_count){0};
    kopt_status code = kp_store_may_write(st, err);
    if (code != KOPT_OK)
        return code;
    code = kp_ktfile_open(&x.file, path, err);
    if (code == KOPT_OK) {
        code = import_entries(&x, err);
        /* What stands before a bad place is kept; after any other failure the last batch is
         * not. */
        kopt_status end = end_batch(&x, code == KOPT_OK || code == KOPT_EINPUT,
                                    code == KOPT_OK ? err : &undone);
        code = code == KOPT_OK ? end : code;
    }
    if (x.run)
        (void)kp_store_run_end(st, x.run, code == KOPT_OK ? "done" : "failed", "", &undone);
    kp_ktfile_close(&x.file);
    kp_buf_deinit(&x.config);
    return code;
}
