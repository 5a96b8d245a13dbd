/* SPDX-License-Identifier: MIT */
#include "api/tune_model.h"

#include "base/alloc.h"
#include "space/transfer.h"

#include <string.h>

enum { ASK_AGAIN = 4, LEAST_WIDTH = 8, LIST_MAX = 200 };

/* Which parameter and values of the kernel the model's targets are. */
struct mapping {
    const struct kp_model *m;
    const struct kp_bound *bound;
    uint32_t *param;  /* by target */
    uint32_t *offset; /* by target: of its values in `index` */
    uint32_t *index;  /* by target and value: of the space; UINT32_MAX: not in it */
};

/* --- does it fit? ------------------------------------------------------------------------- */

static kopt_status misfit(const struct kp_tune_model *t, const struct kp_kernel *k,
                          kopt_error *err)
{
    kp_err_wrap(err, "%s does not fit %s", t->path, k->path);
    kp_err_hint(err, "a model serves the kernel file that it was trained for, or one with the "
                     "same parameters and sizes; train another or leave --model out");
    return KOPT_EINPUT;
}

static bool has_size(const struct kp_kernel *k, const char *name)
{
    for (size_t i = 0; i < k->n_problem; i++)
        if (strcmp(k->problem[i], name) == 0)
            return true;
    return false;
}

/* May a problem leave that field out? */
static bool has_default(const struct kp_model *m, const char *name)
{
    const struct kp_kernel *rules = m->rules;
    if (kp_json_get(kp_json_get(m->info, "pooled"), name))
        return true;
    for (size_t i = 0; rules && i < rules->n_problem; i++)
        if (strcmp(rules->problem[i], name) == 0)
            return rules->has_problem_default[i];
    return false;
}

static bool knows_size(const struct kp_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_raw; i++)
        if (strcmp(kp_encoder_field(m->encoder, i)->name, name) == 0)
            return true;
    return m->rules && has_size(m->rules, name);
}

/* The problem's sizes by name, either way. */
static kopt_status check_sizes(const struct kp_model *m, const struct kp_kernel *k,
                               kopt_error *err)
{
    for (size_t i = 0; i < m->n_raw; i++) {
        const char *name = kp_encoder_field(m->encoder, i)->name;
        if (!has_size(k, name) && !has_default(m, name))
            return kp_err(err, KOPT_EINPUT, "the kernel has no problem size '%s'", name);
    }
    for (size_t i = 0; i < k->n_problem; i++)
        if (!knows_size(m, k->problem[i]))
            return kp_err(err, KOPT_EINPUT, "the model knows no problem size '%s'",
                          k->problem[i]);
    return KOPT_OK;
}

/* UINT32_MAX: it has no such value. */
static uint32_t value_index(const struct kp_param *p, struct kp_value v)
{
    uint32_t i = kp_param_value_like(p, v);
    return i < p->n_values ? i : UINT32_MAX;
}

static size_t target_index(const struct kp_model *m, const char *name)
{
    size_t t = 0;
    while (t < m->n_targets && strcmp(m->targets[t].name, name) != 0)
        t++;
    return t;
}

/* Parameter `i` of the kernel: as declared, since it may have been narrowed to values that the
 * model never saw. */
static kopt_status map_param(struct mapping *map, uint32_t i, kopt_error *err)
{
    const struct kp_param *declared = &map->bound->kernel->params[i];
    size_t t = target_index(map->m, declared->name);
    bool any = false;
    if (t == map->m->n_targets)
        return kp_err(err, KOPT_EINPUT, "the model does not predict '%s'", declared->name);
    const struct kp_target *target = &map->m->targets[t];
    map->param[t] = i;
    for (uint32_t v = 0; v < target->n_values; v++) {
        any = any || value_index(declared, target->values[v]) != UINT32_MAX;
        map->index[map->offset[t] + v] =
            value_index(kp_space_param(map->bound->space, i), target->values[v]);
    }
    return any ? KOPT_OK
               : kp_err(err, KOPT_EINPUT,
                        "the model knows no value of '%s' that the kernel has", declared->name);
}

/* --- mapping ------------------------------------------------------------------------------ */

static kopt_status map_params(struct mapping *map, kopt_error *err)
{
    const struct kp_model *m = map->m;
    const struct kp_kernel *k = map->bound->kernel;
    uint32_t n = 0;
    for (size_t t = 0; t < m->n_targets; t++) {
        map->param[t] = UINT32_MAX;
        map->offset[t] = n;
        n += m->targets[t].n_values;
    }
    map->index = kp_calloc(n + 1, sizeof(*map->index));
    if (!map->index)
        return kp_err_nomem(err);
    kopt_status st = KOPT_OK;
    for (uint32_t i = 0; i < k->n_params && st == KOPT_OK; i++)
        st = map_param(map, i, err);
    for (size_t t = 0; t < m->n_targets && st == KOPT_OK; t++)
        if (map->param[t] == UINT32_MAX)
            st = kp_err(err, KOPT_EINPUT, "the kernel has no parameter '%s'",
                        m->targets[t].name);
    return st;
}

static kopt_status make_mapping(struct mapping *map, const struct kp_tune_model *t,
                                kopt_error *err)
{
    const struct kp_kernel *k = map->bound->kernel;
    map->param = kp_calloc(map->m->n_targets, sizeof(*map->param));
    map->offset = kp_calloc(map->m->n_targets, sizeof(*map->offset));
    if (!map->param || !map->offset)
        return kp_err_nomem(err);
    kopt_status st = KOPT_OK;
    if (strcmp(map->m->kernel, k->name) != 0)
        st = kp_err(err, KOPT_EINPUT, "it is a model of '%s', not of '%s'", map->m->kernel,
                    k->name);
    if (st == KOPT_OK)
        st = check_sizes(map->m, k, err);
    if (st == KOPT_OK)
        st = map_params(map, err);
    return st == KOPT_EINPUT ? misfit(t, k, err) : st;
}

static void mapping_deinit(struct mapping *map)
{
    kp_free(map->param);
    kp_free(map->offset);
    kp_free(map->index);
}

/* --- asking ------------------------------------------------------------------------------- */

/* Those that are in the space; the others are counted. */
static void take(const struct mapping *map, const struct kp_prediction *p,
                 struct kp_predictions *out)
{
    uint32_t config[KP_TARGETS_MAX];
    size_t n = map->m->n_targets;
    for (size_t i = 0; i < p->n && out->prior.n < out->prior.max; i++) {
        bool ok = true;
        for (size_t t = 0; t < n; t++) {
            uint32_t v = map->index[map->offset[t] + p->configs[i * n + t]];
            config[map->param[t]] = v;
            ok = ok && v != UINT32_MAX;
        }
        ok = ok && kp_prior_add(&out->prior, map->bound->space, config, p->logp[i]);
        out->dropped += !ok;
    }
}

/* The `k` likeliest, into an empty list. *more: there may be others. */
static kopt_status ask(const struct mapping *map, const struct kp_limits *limits, size_t k,
                       struct kp_predictions *out, bool *more, kopt_error *err)
{
    const struct kp_kernel *kernel = map->bound->kernel;
    struct kp_predict_options o = {
        .k = k, .width = k > LEAST_WIDTH ? k : LEAST_WIDTH, .limits = limits};
    struct kp_prediction p = {0};
    struct kp_given *given = kp_calloc(kernel->n_problem + 1, sizeof(*given));
    if (!given)
        return kp_err_nomem(err);
    for (size_t i = 0; i < kernel->n_problem; i++)
        given[i] = (struct kp_given){kernel->problem[i], map->bound->problem[i]};
    kopt_status st = kp_model_predict(map->m, given, kernel->n_problem, &o, &p, err);
    *more = st == KOPT_OK && p.n == k;
    out->prior.n = 0;
    out->dropped = 0;
    if (st == KOPT_OK)
        take(map, &p, out);
    kp_prediction_deinit(&p);
    kp_free(given);
    return st == KOPT_ENOTFOUND ? KOPT_OK : st;
}

kopt_status kp_tune_model_predict(void *user, const struct kp_bound *bound,
                                  const struct kp_limits *limits, struct kp_predictions *out,
                                  kopt_error *err)
{
    const struct kp_tune_model *t = user;
    struct mapping map = {.m = t->model, .bound = bound};
    uint64_t valid = kp_space_count(bound->space);
    bool more = true;
    kopt_status st = make_mapping(&map, t, err);
    if (st == KOPT_OK)
        st = kp_prior_init(&out->prior, bound->space, valid < t->top ? valid : t->top, err);
    for (size_t k = t->top; st == KOPT_OK && more && out->prior.n < out->prior.max;
         k = k * ASK_AGAIN < KP_BEAM_WIDTH_MAX ? k * ASK_AGAIN : KP_BEAM_WIDTH_MAX) {
        st = ask(&map, limits, k, out, &more, err);
        more = more && k < KP_BEAM_WIDTH_MAX;
    }
    mapping_deinit(&map);
    return st;
}
