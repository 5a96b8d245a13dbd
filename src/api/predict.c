/* SPDX-License-Identifier: MIT */
/* Asking models for other programs. Layer: api. */
#include "api/kopt_model.h"
#include "api/limits.h"
#include "base/alloc.h"
#include "model/ranking.h"

#include <limits.h>
#include <math.h>

enum { INFO_MAX = 64 << 20, NAMES_BYTES = 4096, LIMITS_BYTES = 512 };

/* The limits that stood beside the data. Nothing in a model's info is needed: where they cannot
 * be read there are none. */
static void find_own_limits(kopt_model *m)
{
    struct kp_str s;
    char text[LIMITS_BYTES];
    kopt_error err;
    if (!m->model->rules || !kp_json_as_str(kp_json_get(m->model->info, "limits"), &s) ||
        s.len == 0 || s.len >= sizeof(text))
        return;
    memcpy(text, s.ptr, s.len);
    text[s.len] = 0;
    m->has_own = kp_limits_read(m->used, text, &m->own, &err) == KOPT_OK;
}

kopt_status kopt_model_open(const char *path, kopt_model **out, kopt_error *err)
{
    *out = NULL;
    kopt_model *m = kp_calloc(1, sizeof(*m));
    if (!m)
        return kp_err_nomem(err);
    m->info.max = INFO_MAX;
    m->devices = kp_calloc(1, sizeof(*m->devices));
    if (!m->devices) {
        kp_free(m);
        return kp_err_nomem(err);
    }
    /* It fails for want of memory alone, which glibc's does not take. */
    (void)pthread_mutex_init(&m->devices->lock, NULL);
    kopt_status st = kp_model_load(path, &m->model, err);
    if (st == KOPT_OK) {
        kp_model_network(m->model, m->network);
        kp_json_dump(m->model->info, &m->info);
        st = kp_buf_status(&m->info, err);
    }
    if (st == KOPT_OK)
        st = kp_config_texts_init(&m->texts, m->model, err);
    if (st == KOPT_OK && m->model->rules)
        st = kp_limits_used(m->model->rules, &m->used, err);
    if (st != KOPT_OK) {
        kopt_model_close(m);
        return st;
    }
    find_own_limits(m);
    *out = m;
    return KOPT_OK;
}

void kopt_model_close(kopt_model *m)
{
    if (!m)
        return;
    kp_model_free(m->model);
    kp_buf_deinit(&m->info);
    kp_config_texts_deinit(&m->texts);
    (void)pthread_mutex_destroy(&m->devices->lock);
    kp_free(m->devices);
    kp_free(m);
}

const char *kopt_model_kernel(const kopt_model *m)
{
    return m->model->kernel;
}

const char *kopt_model_network(const kopt_model *m)
{
    return m->network;
}

const char *kopt_model_field(const kopt_model *m, size_t i)
{
    return i < m->model->n_raw ? kp_encoder_field(m->model->encoder, i)->name : NULL;
}

const char *kopt_model_param(const kopt_model *m, size_t i)
{
    return i < m->model->n_targets ? m->model->targets[i].name : NULL;
}

const char *kopt_model_info(const kopt_model *m)
{
    return kp_buf_text(&m->info);
}

static bool read_epoch(const struct kp_json *row, kopt_epoch *e)
{
    return kp_json_as_f64(kp_json_at(row, 0), &e->train_loss) &&
           kp_json_as_f64(kp_json_at(row, 1), &e->valid_loss) &&
           kp_json_as_f64(kp_json_at(row, 2), &e->valid_right);
}

int kopt_model_trained(const kopt_model *m, unsigned net, unsigned *epochs, kopt_epoch *best)
{
    const struct kp_json *nets = kp_json_get(m->model->info, "training");
    const struct kp_json *rows = net < kp_json_size(nets) ? kp_json_at(nets, net) : NULL;
    size_t n = kp_json_size(rows);
    *epochs = n <= UINT_MAX ? (unsigned)n : UINT_MAX;
    *best = (kopt_epoch){0};
    for (unsigned i = 0; i < *epochs; i++) {
        kopt_epoch e = {
            .net = net, .nets = (unsigned)kp_json_size(nets), .epoch = i + 1, .best = 1};
        if (read_epoch(kp_json_at(rows, i), &e) &&
            (best->epoch == 0 || e.valid_loss < best->valid_loss))
            *best = e;
    }
    return best->epoch > 0;
}

void kopt_predict_options_init(kopt_predict_options *o)
{
    *o = (kopt_predict_options){.struct_bytes = sizeof(*o)};
}

/* --- the problem -------------------------------------------------------------------------- */

struct asked {
    struct kp_given given[KP_FIELDS_MAX + KP_PARAMS_MAX];
    size_t n;
    char *names; /* of all, terminated */
    char room[NAMES_BYTES];
};

static void asked_deinit(struct asked *a)
{
    if (a->names != a->room)
        kp_free(a->names);
}

/* Owner: asked_deinit(), after an error as well. */
static kopt_status read_problem(const char *const *problem, size_t n, struct asked *a,
                                kopt_error *err)
{
    size_t bytes = 0;
    a->names = a->room;
    a->n = n;
    if (n > sizeof(a->given) / sizeof(a->given[0]))
        return kp_err(err, KOPT_EUSAGE, "%zu names are too many for a problem", n);
    for (size_t i = 0; i < n; i++)
        bytes += strcspn(problem[i], "=") + 1;
    if (bytes > NAMES_BYTES) {
        a->names = kp_calloc(bytes, 1);
        if (!a->names)
            return kp_err_nomem(err);
    }
    char *at = a->names;
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(problem[i], "=");
        if (len == 0 || problem[i][len] == 0 || problem[i][len + 1] == 0)
            return kp_err(err, KOPT_EUSAGE, "'%s' is not NAME=VALUE", problem[i]);
        memcpy(at, problem[i], len);
        at[len] = 0;
        a->given[i] = (struct kp_given){at, kp_given_value(problem[i] + len + 1)};
        at += len + 1;
    }
    return KOPT_OK;
}

/* --- the device --------------------------------------------------------------------------- */

static bool find_device(struct kp_known_devices *d, const char *id, struct kp_limits *out)
{
    bool found = false;
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n && !found; i++) {
        found = strcmp(d->items[i].id, id) == 0;
        if (found)
            *out = d->items[i].limits;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return found;
}

static void keep_device(struct kp_known_devices *d, const char *id,
                        const struct kp_limits *limits)
{
    (void)pthread_mutex_lock(&d->lock);
    if (d->n < KP_MODEL_DEVICES_MAX && strlen(id) < KP_MODEL_DEVICE_ID) {
        memcpy(d->items[d->n].id, id, strlen(id) + 1);
        d->items[d->n++].limits = *limits;
    }
    (void)pthread_mutex_unlock(&d->lock);
}

kopt_status kp_model_limits(const kopt_model *m, const kopt_predict_options *o,
                            struct kp_limits *out, bool *has, kopt_error *err)
{
    *out = (struct kp_limits){0};
    *has = o->limits || o->device;
    if (!*has) {
        *has = m->has_own;
        *out = m->own;
        return KOPT_OK;
    }
    if (!m->model->rules)
        return kp_err(err, KOPT_EUSAGE,
                      "the model has no rules that a device's limits could be for");
    if (o->limits)
        return kp_limits_read(m->used, o->limits, out, err);
    if (find_device(m->devices, o->device, out))
        return KOPT_OK;
    kopt_status st = kp_limits_of_device(m->model->rules, o->device, out, err);
    if (st == KOPT_OK)
        keep_device(m->devices, o->device, out);
    return st;
}

/* --- the answer --------------------------------------------------------------------------- */

kopt_status kp_model_check_options(const kopt_predict_options *o, kopt_error *err)
{
    if (o->struct_bytes == sizeof(*o))
        return KOPT_OK;
    return kp_err(err, KOPT_EUSAGE,
                  "the options were not set up by kopt_predict_options_init() of this version");
}

/* One block: the predictions, then their texts. */
static kopt_status give(const kopt_model *m, const struct kp_prediction *p,
                        kopt_prediction **out, size_t *n, kopt_error *err)
{
    size_t bytes = p->n * sizeof(**out) + 1;
    for (size_t i = 0; i < p->n; i++)
        for (int form = KP_CONFIG_TEXT; form <= KP_CONFIG_JSON; form++)
            bytes += kp_config_bytes(&m->texts, p->configs + i * m->texts.n_targets,
                                     (enum kp_config_form)form);
    kopt_prediction *block = kp_calloc(1, bytes);
    if (!block)
        return kp_err_nomem(err);
    char *at = (char *)(block + p->n);
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t *config = p->configs + i * m->texts.n_targets;
        block[i].text = at;
        block[i].config = at = kp_config_write(&m->texts, config, KP_CONFIG_TEXT, at);
        block[i].probability = exp(p->logp[i]);
        block[i].slowdown =
            m->model->ranking ? kp_ranking_slowdown(p->logp[0], p->logp[i]) : (double)NAN;
        at = kp_config_write(&m->texts, config, KP_CONFIG_JSON, at);
    }
    *out = block;
    *n = p->n;
    return KOPT_OK;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kopt_predict(const kopt_model *m, const char *const *problem, size_t n_problem,
                         const kopt_predict_options *o, kopt_prediction **out, size_t *n,
                         kopt_error *err)
{
    static const kopt_predict_options defaults = {.struct_bytes = sizeof(defaults)};
    struct kp_prediction found = {0};
    struct kp_limits limits;
    struct asked a;
    bool has_limits = false;
    *out = NULL;
    *n = 0;
    o = o ? o : &defaults;
    kopt_status st = kp_model_check_options(o, err);
    if (st != KOPT_OK)
        return st;
    struct kp_predict_options po = {
        .k = o->top ? o->top : 1, .width = o->width, .unconstrained = o->unconstrained != 0};
    st = read_problem(problem, n_problem, &a, err);
    if (st == KOPT_OK)
        st = kp_model_limits(m, o, &limits, &has_limits, err);
    po.limits = has_limits ? &limits : NULL;
    if (st == KOPT_OK)
        st = kp_model_predict(m->model, a.given, a.n, &po, &found, err);
    if (st == KOPT_OK)
        st = give(m, &found, out, n, err);
    kp_prediction_deinit(&found);
    asked_deinit(&a);
    return st;
}
