/* SPDX-License-Identifier: MIT */
/* kopt's store as rows: of each configuration of a subject its newest result. Layer: learn.
 *
 * A subject's other keys (device, tools, data) are about the measurement: `where` chooses among
 * them. Times of two devices are no one's, so one must be chosen. */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "store/store.h"
#include "json/json.h"

#include <math.h>
#include <string.h>

enum { SUBJECTS_MAX = 1 << 20, N_ABOUT = 7 };

struct subject {
    int64_t id;
    const char *kernel;
    const char *problem;
    const char *params; /* ["BM","BN"] or "" */
    struct kp_cell about[N_ABOUT];
};

struct stored {
    struct kp_intake *in;
    struct subject *subjects;
    size_t n;
    size_t cap;
    struct kp_names kernels;
    struct kp_names devices; /* whose rows count */
    struct kp_cells cells;
    size_t n_fixed; /* cells of the problem */
    const struct subject *subject;
    struct kp_json *params;
    struct kp_arena arena; /* of one subject's texts */
    struct kp_arena row;
    kopt_status st;
};

/* --- subjects ------------------------------------------------------------------------------
 */

static bool keep_subject(void *user, const struct kp_subject *s)
{
    struct stored *x = user;
    struct kp_arena *a = &x->in->arena;
    const char *const about[N_ABOUT][2] = {
        {"device", s->device},          {"arch", s->arch},       {"driver", s->driver},
        {"compiler", s->compiler},      {"backend", s->backend}, {"data", s->data},
        {"kernel_hash", s->kernel_hash}};
    if (x->n >= SUBJECTS_MAX) {
        x->st = kp_err(x->in->err, KOPT_ERANGE, "%s: more than %d subjects", x->in->path,
                       SUBJECTS_MAX);
        return false;
    }
    bool ok =
        kp_grow((void **)&x->subjects, &x->cap, x->n, sizeof(*x->subjects), SUBJECTS_MAX) &&
        kp_names_add(&x->kernels, a, s->kernel);
    if (ok) {
        struct subject *to = &x->subjects[x->n++];
        *to = (struct subject){.id = s->id,
                               .kernel = kp_arena_strndup(a, s->kernel, strlen(s->kernel)),
                               .problem = kp_arena_strndup(a, s->problem, strlen(s->problem)),
                               .params = kp_arena_strndup(a, s->params, strlen(s->params))};
        for (size_t i = 0; i < N_ABOUT; i++)
            to->about[i] = (struct kp_cell){
                about[i][0], kp_str_from(kp_arena_strndup(a, about[i][1], strlen(about[i][1]))),
                KP_CELL_ABOUT};
        ok = !a->failed;
    }
    if (!ok)
        x->st = kp_err_nomem(x->in->err);
    return ok;
}

static kopt_status choose_kernel(struct stored *x)
{
    struct kp_intake *in = x->in;
    for (size_t i = 0; i < x->n && in->kernel; i++)
        if (strcmp(x->subjects[i].kernel, in->kernel) == 0)
            return KOPT_OK;
    if (!in->kernel && x->kernels.n == 1) {
        in->kernel = x->kernels.names[0];
        return KOPT_OK;
    }
    if (x->n == 0)
        return kp_err(in->err, KOPT_EINPUT, "%s: the store is empty", in->path);
    if (in->kernel)
        (void)kp_err(in->err, KOPT_EINPUT, "%s: there is no kernel '%s'", in->path, in->kernel);
    else
        (void)kp_err(in->err, KOPT_EINPUT, "%s: which of %zu kernels?", in->path, x->kernels.n);
    kp_intake_hint(in, "there are", x->kernels.names, x->kernels.n);
    return KOPT_EINPUT;
}

/* --- results -------------------------------------------------------------------------------
 */

/* Parameters in the order of the kernel file, where the subject knows it; what is about the
 * subject comes last, so that a parameter of such a name is found before it. */
static kopt_status take_config(struct stored *x, const struct kp_json *config)
{
    struct kp_cells all = {0};
    struct kp_intake *in = x->in;
    struct kp_str name;
    kopt_status st = kp_cells_from_json(&all, config, KP_CELL_CONFIG, &x->row, in->err);
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(x->params); i++) {
        if (!kp_json_as_str(kp_json_at(x->params, i), &name))
            continue;
        for (size_t k = 0; st == KOPT_OK && k < all.n; k++)
            if (kp_str_is(name, all.cells[k].name))
                st = kp_cells_add(&x->cells, all.cells[k].name, all.cells[k].text,
                                  KP_CELL_CONFIG, in->err);
    }
    for (size_t k = 0; st == KOPT_OK && k < all.n; k++)
        st = kp_cells_add(&x->cells, all.cells[k].name, all.cells[k].text, KP_CELL_CONFIG,
                          in->err);
    for (size_t i = 0; st == KOPT_OK && i < N_ABOUT; i++)
        st = kp_cells_add(&x->cells, x->subject->about[i].name, x->subject->about[i].text,
                          KP_CELL_ABOUT, in->err);
    kp_cells_deinit(&all);
    return st;
}

static bool take_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct stored *x = user;
    struct kp_intake *in = x->in;
    struct kp_json *config = NULL;
    struct kp_row_about about = {.line = r->id, .time_ns = (double)INFINITY};
    (void)subject;
    (void)run;
    if (r->outcome == KOPT_OUT_INTERRUPTED)
        return true; /* nothing came of it */
    if (r->outcome == KOPT_OUT_OK)
        about.time_ns = r->median_ns;
    x->st = kp_json_parse(kp_str_from(r->config), NULL, &config, in->err);
    if (x->st == KOPT_EINPUT || !(about.time_ns > 0)) {
        in->report->read++;
        kp_intake_skip(in, r->id,
                       x->st == KOPT_EINPUT ? "its configuration is no JSON"
                                            : "it has no time");
        x->st = KOPT_OK;
        kp_json_free(config);
        return true;
    }
    x->cells.n = x->n_fixed;
    if (x->st == KOPT_OK)
        x->st = take_config(x, config);
    size_t left_out = in->report->left_out;
    if (x->st == KOPT_OK)
        x->st = kp_intake_row(in, x->cells.cells, x->cells.n, &about);
    if (x->st == KOPT_OK && in->report->left_out == left_out &&
        !kp_names_add(&x->devices, &in->arena, x->subject->about[0].text.ptr))
        x->st = kp_err_nomem(in->err);
    kp_json_free(config);
    kp_arena_deinit(&x->row);
    return x->st == KOPT_OK;
}

static kopt_status take_subject(struct stored *x, struct kp_store *store,
                                const struct subject *s)
{
    const struct kp_result_filter filter = {
        .subject = s->id, .outcome = -1, .once = true, .no_samples = true};
    struct kp_intake *in = x->in;
    struct kp_json *problem = NULL;
    kopt_status st = kp_json_parse(kp_str_from(s->problem), NULL, &problem, in->err);
    if (st == KOPT_EINPUT)
        st = kp_err(in->err, KOPT_EINPUT, "%s: subject %lld: its problem is no JSON", in->path,
                    (long long)s->id);
    if (st == KOPT_OK && s->params[0] &&
        kp_json_parse(kp_str_from(s->params), NULL, &x->params, NULL) == KOPT_ENOMEM)
        st = kp_err_nomem(in->err);
    x->cells.n = 0;
    x->subject = s;
    if (st == KOPT_OK)
        st = kp_cells_from_json(&x->cells, problem, KP_CELL_PROBLEM, &x->arena, in->err);
    x->n_fixed = x->cells.n;
    if (st == KOPT_OK)
        st = kp_store_results(store, &filter, take_result, x, in->err);
    if (st == KOPT_OK)
        st = x->st;
    kp_json_free(problem);
    kp_json_free(x->params);
    x->params = NULL;
    kp_arena_deinit(&x->arena);
    return st;
}

kopt_status kp_load_store(struct kp_intake *in, struct kp_store *store)
{
    struct stored x = {.in = in,
                       .arena = KP_ARENA_INIT((size_t)64 << 20),
                       .row = KP_ARENA_INIT((size_t)64 << 20)};
    in->report->source = KP_SOURCE_STORE;
    kopt_status st = kp_store_subjects(store, NULL, keep_subject, &x, in->err);
    if (st == KOPT_OK)
        st = x.st;
    if (st == KOPT_OK)
        st = choose_kernel(&x);
    /* The listing has the newest first. */
    for (size_t i = x.n; st == KOPT_OK && i > 0; i--)
        if (strcmp(x.subjects[i - 1].kernel, in->kernel) == 0)
            st = take_subject(&x, store, &x.subjects[i - 1]);
    if (st == KOPT_OK && x.devices.n > 1) {
        st = kp_err(in->err, KOPT_EINPUT,
                    "%s: times of %zu devices: choose one with device=NAME", in->path,
                    x.devices.n);
        kp_intake_hint(in, "there are", x.devices.names, x.devices.n);
    }
    kp_cells_deinit(&x.cells);
    kp_free(x.subjects);
    kp_arena_deinit(&x.row);
    kp_arena_deinit(&x.arena);
    return st;
}
