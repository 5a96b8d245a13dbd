/* SPDX-License-Identifier: MIT */
/* Asking models for other programs. Layer: api. */
#include "kopt/predict.h"
#include "api/limits.h"
#include "base/alloc.h"
#include "base/num.h"
#include "model/model.h"

#include <math.h>

enum { INFO_MAX = 64 << 20, TEXT_MAX = 16 << 20, LEAST_WIDTH = 8 };

struct kopt_model {
    struct kp_model *model;
    struct kp_buf info;
};

kopt_status kopt_model_open(const char *path, kopt_model **out, kopt_error *err)
{
    *out = NULL;
    kopt_model *m = kp_calloc(1, sizeof(*m));
    if (!m)
        return kp_err_nomem(err);
    m->info.max = INFO_MAX;
    kopt_status st = kp_model_load(path, &m->model, err);
    if (st == KOPT_OK) {
        kp_json_dump(m->model->info, &m->info);
        st = kp_buf_status(&m->info, err);
    }
    if (st != KOPT_OK) {
        kopt_model_close(m);
        return st;
    }
    *out = m;
    return KOPT_OK;
}

void kopt_model_close(kopt_model *m)
{
    if (!m)
        return;
    kp_model_free(m->model);
    kp_buf_deinit(&m->info);
    kp_free(m);
}

const char *kopt_model_kernel(const kopt_model *m)
{
    return m->model->kernel;
}

const char *kopt_model_network(const kopt_model *m)
{
    return m->model->nets[0]->ops->name;
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

void kopt_predict_options_init(kopt_predict_options *o)
{
    *o = (kopt_predict_options){.struct_bytes = sizeof(*o)};
}

/* --- the problem -------------------------------------------------------------------------- */

struct asked {
    struct kp_given given[KP_FIELDS_MAX + KP_PARAMS_MAX];
    char *names; /* of all, terminated */
};

static struct kp_value value_of(const char *text)
{
    struct kp_str s = kp_str_from(text);
    int64_t i;
    double f;
    if (kp_str_to_i64(s, &i))
        return kp_int(i);
    return kp_f64_from_text(s, &f) ? kp_float(f) : kp_string(s);
}

static kopt_status read_problem(const char *const *problem, size_t n, struct asked *a,
                                kopt_error *err)
{
    size_t bytes = 0;
    if (n > sizeof(a->given) / sizeof(a->given[0]))
        return kp_err(err, KOPT_EUSAGE, "%zu names are too many for a problem", n);
    for (size_t i = 0; i < n; i++)
        bytes += strlen(problem[i]) + 1;
    a->names = kp_calloc(bytes + 1, 1);
    if (!a->names)
        return kp_err_nomem(err);
    char *at = a->names;
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(problem[i], "=");
        if (len == 0 || problem[i][len] == 0 || problem[i][len + 1] == 0)
            return kp_err(err, KOPT_EUSAGE, "'%s' is not NAME=VALUE", problem[i]);
        memcpy(at, problem[i], len);
        a->given[i] = (struct kp_given){at, value_of(problem[i] + len + 1)};
        at += len + 1;
    }
    return KOPT_OK;
}

static kopt_status read_limits(const struct kp_model *m, const kopt_predict_options *o,
                               struct kp_limits *out, kopt_error *err)
{
    if (!m->rules)
        return kp_err(err, KOPT_EUSAGE,
                      "the model has no rules that a device's limits could be for");
    return o->limits ? kp_limits_by_hand(m->rules, o->limits, out, err)
                     : kp_limits_of_device(m->rules, o->device, out, err);
}

/* --- the answer --------------------------------------------------------------------------- */

static void add_config(const struct kp_model *m, const uint32_t *config, bool json,
                       struct kp_buf *out)
{
    kp_buf_adds(out, json ? "{" : "");
    for (size_t t = 0; t < m->n_targets; t++) {
        const struct kp_value v = m->targets[t].values[config[t]];
        kp_buf_adds(out, t ? "," : "");
        if (json) {
            kp_json_quote(kp_str_from(m->targets[t].name), out);
            kp_buf_addc(out, ':');
            kp_value_to_json(v, out);
        } else {
            kp_buf_addf(out, "%s=", m->targets[t].name);
            kp_value_to_text(v, out);
        }
    }
    kp_buf_adds(out, json ? "}" : "");
    kp_buf_add(out, "", 1);
}

/* One block: the predictions, then their texts. */
static kopt_status give(const struct kp_model *m, const struct kp_prediction *p,
                        kopt_prediction **out, size_t *n, kopt_error *err)
{
    struct kp_buf texts = KP_BUF_INIT(TEXT_MAX);
    for (size_t i = 0; i < p->n; i++) {
        add_config(m, p->configs + i * m->n_targets, false, &texts);
        add_config(m, p->configs + i * m->n_targets, true, &texts);
    }
    kopt_status st = kp_buf_status(&texts, err);
    kopt_prediction *block = NULL;
    if (st == KOPT_OK) {
        block = kp_calloc(1, p->n * sizeof(*block) + texts.len + 1);
        st = block ? KOPT_OK : kp_err_nomem(err);
    }
    if (block) {
        char *at = (char *)(block + p->n);
        memcpy(at, kp_buf_text(&texts), texts.len);
        for (size_t i = 0; i < p->n; i++) {
            block[i].text = at;
            block[i].config = at += strlen(at) + 1;
            block[i].probability = exp(p->logp[i]);
            at += strlen(at) + 1;
        }
        *out = block;
        *n = p->n;
    }
    kp_buf_deinit(&texts);
    return st;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kopt_predict(const kopt_model *m, const char *const *problem, size_t n_problem,
                         const kopt_predict_options *o, kopt_prediction **out, size_t *n,
                         kopt_error *err)
{
    static const kopt_predict_options defaults = {.struct_bytes = sizeof(defaults)};
    struct kp_prediction found = {0};
    struct kp_limits limits = {0};
    *out = NULL;
    *n = 0;
    o = o ? o : &defaults;
    if (o->struct_bytes != sizeof(*o))
        return kp_err(err, KOPT_EUSAGE,
                      "the options were not set up by "
                      "kopt_predict_options_init() of this version");
    size_t top = o->top ? o->top : 1;
    struct kp_predict_options po = {.k = top,
                                    .width = o->width            ? o->width
                                             : top > LEAST_WIDTH ? top
                                                                 : LEAST_WIDTH,
                                    .unconstrained = o->unconstrained != 0};
    struct asked *a = kp_calloc(1, sizeof(*a));
    kopt_status st = a ? read_problem(problem, n_problem, a, err) : kp_err_nomem(err);
    if (st == KOPT_OK && (o->limits || o->device)) {
        st = read_limits(m->model, o, &limits, err);
        po.limits = &limits;
    }
    if (st == KOPT_OK)
        st = kp_model_predict(m->model, a->given, n_problem, &po, &found, err);
    if (st == KOPT_OK)
        st = give(m->model, &found, out, n, err);
    kp_prediction_deinit(&found);
    if (a)
        kp_free(a->names);
    kp_free(a);
    return st;
}
