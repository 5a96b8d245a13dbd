/* SPDX-License-Identifier: MIT */
/* The store and the selector for other programs. Layer: api. */
#include "kopt/store.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "store/store.h"

enum { BUSY_MS = 5000, EXPORT_MAX = 1 << 30 };

struct kopt_store {
    struct kp_store *store;
};

kopt_status kopt_store_open(const char *path, int write, kopt_store **out, kopt_error *err)
{
    *out = NULL;
    kopt_store *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    kopt_status st =
        kp_store_open(path, write ? KP_STORE_WRITE : KP_STORE_READ, BUSY_MS, &s->store, err);
    if (st != KOPT_OK) {
        kp_free(s);
        return st;
    }
    *out = s;
    return KOPT_OK;
}

void kopt_store_close(kopt_store *s)
{
    if (!s)
        return;
    kp_store_close(s->store);
    kp_free(s);
}

/* --- visitors: the inner structs become the public ones ----------------------------------- */

struct subject_call {
    int (*visit)(void *user, const kopt_subject *x);
    void *user;
};

static bool give_subject(void *user, const struct kp_subject *s)
{
    const struct subject_call *call = user;
    kopt_subject x = {.id = s->id,
                      .kernel = s->kernel,
                      .kernel_path = s->kernel_path,
                      .kernel_hash = s->kernel_hash,
                      .backend = s->backend,
                      .device = s->device,
                      .arch = s->arch,
                      .driver = s->driver,
                      .compiler = s->compiler,
                      .problem = s->problem,
                      .data = s->data,
                      .n_results = s->n_results,
                      .n_ok = s->n_ok,
                      .best_ns = s->best_ns,
                      .last_us = s->last_us,
                      .params = s->params};
    return call->visit(call->user, &x) != 0;
}

kopt_status kopt_store_subjects(kopt_store *s, const char *kernel,
                                int (*visit)(void *user, const kopt_subject *x), void *user,
                                kopt_error *err)
{
    struct subject_call call = {visit, user};
    return kp_store_subjects(s->store, kernel, give_subject, &call, err);
}

kopt_status kopt_store_subject(kopt_store *s, int64_t id,
                               int (*visit)(void *user, const kopt_subject *x), void *user,
                               kopt_error *err)
{
    struct subject_call call = {visit, user};
    return kp_store_subject_get(s->store, id, give_subject, &call, err);
}

struct run_call {
    int (*visit)(void *user, const kopt_run *x);
    void *user;
};

static bool give_run(void *user, const struct kp_store_run *r)
{
    const struct run_call *call = user;
    kopt_run x = {.id = r->id,
                  .subject = r->subject,
                  .command = r->command,
                  .strategy = r->strategy,
                  .version = r->version,
                  .host = r->host,
                  .state = r->state,
                  .summary = r->summary,
                  .seed = r->seed,
                  .begun_us = r->begun_us,
                  .ended_us = r->ended_us};
    return call->visit(call->user, &x) != 0;
}

kopt_status kopt_store_runs(kopt_store *s, int64_t subject,
                            int (*visit)(void *user, const kopt_run *x), void *user,
                            kopt_error *err)
{
    struct run_call call = {visit, user};
    return kp_store_runs(s->store, subject, give_run, &call, err);
}

struct result_call {
    int (*visit)(void *user, const kopt_result *r, int64_t subject, int64_t run);
    void *user;
};

static bool give_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    const struct result_call *call = user;
    return call->visit(call->user, r, subject, run) != 0;
}

kopt_status kopt_store_results(kopt_store *s, const kopt_result_filter *f,
                               int (*visit)(void *user, const kopt_result *r, int64_t subject,
                                            int64_t run),
                               void *user, kopt_error *err)
{
    struct result_call call = {visit, user};
    struct kp_result_filter filter = {.subject = f->subject,
                                      .run = f->run,
                                      .id = f->id,
                                      .outcome = f->outcome,
                                      .once = f->newest != 0,
                                      .by_time = f->by_time != 0,
                                      .no_samples = f->brief != 0,
                                      .limit = f->limit};
    return kp_store_results(s->store, &filter, give_result, &call, err);
}

kopt_status kopt_store_best(kopt_store *s, int64_t subject,
                            int (*visit)(void *user, const kopt_result *r, int64_t subject,
                                         int64_t run),
                            void *user, kopt_error *err)
{
    struct result_call call = {visit, user};
    return kp_store_best(s->store, subject, give_result, &call, err);
}

/* --- files -------------------------------------------------------------------------------- */

kopt_status kopt_store_export_t4(kopt_store *s, int64_t subject, char **out, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(EXPORT_MAX);
    *out = NULL;
    kopt_status st = kp_store_export_t4(s->store, subject, &text, err);
    if (st == KOPT_OK)
        st = kp_buf_status(&text, err);
    if (st == KOPT_OK) {
        *out = kp_buf_take(&text);
        if (!*out)
            st = kp_err_nomem(err);
    }
    kp_buf_deinit(&text);
    return st;
}

void kopt_text_free(char *text)
{
    kp_free(text);
}

kopt_status kopt_store_import(kopt_store *s, const char *path, kopt_import_count *count,
                              kopt_error *err)
{
    struct kp_import_count n = {0};
    kopt_status st = kp_store_import(s->store, path, &n, err);
    *count =
        (kopt_import_count){.added = n.added, .present = n.present, .bad = n.bad, .cut = n.cut};
    return st;
}
