/* SPDX-License-Identifier: MIT */
/* Models and their predictions for other programs. Layer: api. */
#include "learn/export.h"
#include "api/kopt_model.h"
#include "base/alloc.h"
#include "model/onnx.h"
#include "os/file.h"

#include <stdio.h>

enum { OUT_MAX = 1 << 30, TEXTS_MAX = 64, GIVEN_MAX = 64, NAME_MAX_BYTES = 256 };

kopt_status kopt_model_export_onnx(const kopt_model *m, const char *path, kopt_error *err)
{
    return kp_onnx_save(m->model, path, err);
}

void kopt_export_options_init(kopt_export_options *o)
{
    *o = (kopt_export_options){.struct_bytes = sizeof(*o)};
}

/* What the options say, and what the model was trained with where they are silent. */
struct plan {
    struct kp_export_options o;
    struct kp_limits limits;
    const char *where[TEXTS_MAX];
    struct kp_given given[GIVEN_MAX];
    char names[GIVEN_MAX][NAME_MAX_BYTES];
};

static kopt_status take_given(struct plan *p, const char *const *given, size_t n,
                              kopt_error *err)
{
    if (n >= GIVEN_MAX)
        return kp_err(err, KOPT_EUSAGE, "%zu names are too many for a problem", n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(given[i], "=");
        if (len == 0 || given[i][len] == 0 || given[i][len + 1] == 0 || len >= NAME_MAX_BYTES)
            return kp_err(err, KOPT_EUSAGE, "'%s' is not NAME=VALUE", given[i]);
        (void)snprintf(p->names[i], sizeof(p->names[i]), "%.*s", (int)len, given[i]);
        p->given[i] = (struct kp_given){p->names[i], kp_given_value(given[i] + len + 1)};
    }
    p->o.n_given = n;
    return KOPT_OK;
}

static void take_where(struct plan *p, const struct kp_model *m)
{
    const struct kp_json *list = kp_json_get(m->info, "where");
    struct kp_str text;
    for (size_t i = 0; i < kp_json_size(list) && p->o.n_where < TEXTS_MAX; i++)
        if (kp_json_as_str(kp_json_at(list, i), &text))
            p->where[p->o.n_where++] = text.ptr;
    p->o.where = p->where;
}

static kopt_status make_plan(const kopt_model *m, const kopt_export_options *o, struct plan *p,
                             kopt_error *err)
{
    kopt_predict_options about = {
        .struct_bytes = sizeof(about), .limits = o->limits, .device = o->device};
    bool has = false;
    p->o = (struct kp_export_options){.solver = o->solver,
                                      .where = o->where,
                                      .n_where = o->n_where,
                                      .given = p->given,
                                      .width = o->width};
    kopt_status st = take_given(p, o->given, o->n_given, err);
    if (st == KOPT_OK)
        st = kp_model_limits(m, &about, &p->limits, &has, err);
    if (st != KOPT_OK)
        return st;
    p->o.limits = has ? &p->limits : NULL;
    if (!o->where)
        take_where(p, m->model);
    return KOPT_OK;
}

kopt_status kopt_model_export_miopen(const kopt_model *m, const char *problems,
                                     const char *path, const kopt_export_options *o,
                                     kopt_export_count *count, kopt_error *err)
{
    static const kopt_export_options defaults = {.struct_bytes = sizeof(defaults)};
    struct kp_export_report report = {0};
    struct kp_buf out = KP_BUF_INIT(OUT_MAX);
    *count = (kopt_export_count){0};
    o = o ? o : &defaults;
    if (o->struct_bytes != sizeof(*o))
        return kp_err(err, KOPT_EUSAGE,
                      "the options were not set up by kopt_export_options_init() of this "
                      "version");
    struct plan *p = kp_calloc(1, sizeof(*p));
    if (!p)
        return kp_err_nomem(err);
    kopt_status st = make_plan(m, o, p, err);
    if (st == KOPT_OK)
        st = kp_export_miopen(m->model, problems, &p->o, &out, &report, err);
    if (st == KOPT_OK) {
        const struct kp_str piece = {kp_buf_text(&out), out.len};
        st = kp_file_replace(path, &piece, 1, err);
    }
    count->read = report.read;
    count->left_out = report.left_out;
    count->repeated = report.repeated;
    count->unseen = report.unseen;
    count->unseen_line = report.unseen_line;
    count->skipped = report.skipped;
    count->written = st == KOPT_OK ? report.written : 0;
    count->skipped_line = report.first_line;
    (void)snprintf(count->unseen_why, sizeof(count->unseen_why), "%s", report.unseen_why);
    (void)snprintf(count->skipped_why, sizeof(count->skipped_why), "%s", report.reason);
    kp_buf_deinit(&out);
    kp_free(p);
    return st;
}
