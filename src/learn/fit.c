/* SPDX-License-Identifier: MIT */
#include "learn/fit.h"

#include "base/alloc.h"

#include <string.h>

struct kp_fit_options kp_fit_default(const struct kp_net_ops *ops)
{
    struct kp_fit_options o = {.ops = ops, .nets = 1};
    o.shape.dropout = -1;
    o.plan = (struct kp_train_plan){.seed = 1,
                                    .shards = 2,
                                    .batch = 128,
                                    .epochs = 60,
                                    .patience = 12,
                                    .smoothing = 0.05F,
                                    .unknown = 0.02F,
                                    .adam = kp_adam_default()};
    o.plan.adam.rate = 2e-3F;
    o.plan.adam.clip = 1;
    o.plan.adam.decay = 1e-2F;
    o.plan.adam.warm = 50;
    o.plan.adam.floor = 0.02F;
    return o;
}

static kopt_status copy_value(struct kp_arena *a, struct kp_value v, struct kp_value *out)
{
    *out = v;
    if (v.type != KP_STRING)
        return KOPT_OK;
    const char *copy = kp_arena_strndup(a, v.as.s.ptr, v.as.s.len);
    if (!copy)
        return KOPT_ENOMEM;
    *out = kp_string((struct kp_str){copy, v.as.s.len});
    return KOPT_OK;
}

static kopt_status copy_targets(struct kp_model *m, const struct kp_dataset *d)
{
    for (size_t t = 0; t < d->n_targets; t++) {
        const struct kp_target *from = &d->targets[t];
        struct kp_value *values = kp_arena_alloc(&m->arena, from->n_values, sizeof(*values));
        const char *name = kp_arena_strndup(&m->arena, from->name, strlen(from->name));
        if (!values || !name)
            return KOPT_ENOMEM;
        for (uint32_t v = 0; v < from->n_values; v++)
            if (copy_value(&m->arena, from->values[v], &values[v]) != KOPT_OK)
                return KOPT_ENOMEM;
        m->targets[t] = *from;
        m->targets[t].name = name;
        m->targets[t].values = values;
    }
    m->n_targets = d->n_targets;
    return KOPT_OK;
}

/* The lesson's encoder, once more, by way of its text. */
static kopt_status copy_encoder(const struct kp_encoder *from, struct kp_encoder **out,
                                kopt_error *err)
{
    struct kp_json *j = kp_encoder_to_json(from);
    if (!j)
        return kp_err_nomem(err);
    kopt_status st = kp_encoder_from_json(j, out, err);
    kp_json_free(j);
    return st;
}

/* A model without networks. */
static kopt_status begin(const struct kp_lesson *l, const struct kp_fit_options *o,
                         struct kp_model **out, kopt_error *err)
{
    enum { ARENA_MAX = 64 << 20 };
    struct kp_model *m = kp_calloc(1, sizeof(*m));
    if (!m)
        return kp_err_nomem(err);
    m->arena = KP_ARENA_INIT(ARENA_MAX);
    m->kernel = kp_arena_strndup(&m->arena, l->data->kernel, strlen(l->data->kernel));
    m->info = kp_json_new_object();
    m->n_raw = o->n_raw ? o->n_raw : l->data->n_fields;
    kopt_status st = m->kernel && m->info ? copy_targets(m, l->data) : KOPT_ENOMEM;
    if (st == KOPT_OK && o->rules_path) {
        m->rules_path = kp_arena_strndup(&m->arena, o->rules_path, strlen(o->rules_path));
        const char *text = kp_arena_strndup(&m->arena, o->rules_text.ptr, o->rules_text.len);
        m->rules_text = (struct kp_str){text, o->rules_text.len};
        st = m->rules_path && text ? KOPT_OK : KOPT_ENOMEM;
    }
    if (st == KOPT_ENOMEM)
        (void)kp_err_nomem(err);
    if (st == KOPT_OK)
        st = copy_encoder(l->encoder, &m->encoder, err);
    if (st == KOPT_OK && o->rules_path)
        st = kp_kernel_parse(m->rules_path, m->rules_text, &m->rules, err);
    if (st != KOPT_OK) {
        kp_model_free(m);
        return st;
    }
    *out = m;
    return KOPT_OK;
}

/* --- one network ----------------------------------------------------------------------------
 */

struct going {
    const struct kp_fit_hooks *hooks;
    size_t net;
    const struct kp_net *best;
    struct kp_json *epochs;
    bool stopped;
};

static bool on_epoch(void *user, const struct kp_epoch *e)
{
    struct going *g = user;
    struct kp_json *row = kp_json_new_array();
    bool ok = row && kp_json_push(row, kp_json_new_f64(e->train_loss)) &&
              kp_json_push(row, kp_json_new_f64(e->valid_loss)) &&
              kp_json_push(row, kp_json_new_f64(e->valid_right));
    if (ok)
        (void)kp_json_push(g->epochs, row); /* a curve with a gap is no reason to stop */
    else
        kp_json_free(row);
    if (g->hooks && g->hooks->epoch && !g->hooks->epoch(g->hooks->user, g->net, e))
        g->stopped = true;
    return !g->stopped;
}

static bool on_save(void *user, const struct kp_train_state *s)
{
    const struct going *g = user;
    return !g->hooks || !g->hooks->save || g->hooks->save(g->hooks->user, g->net, g->best, s);
}

static kopt_status fit_net(const struct kp_lesson *l, const struct kp_fit_options *o,
                           struct kp_model *m, struct going *g, kopt_error *err)
{
    struct kp_net_shape shape = o->shape;
    struct kp_train_plan plan = o->plan;
    struct kp_epoch best;
    struct kp_net *net;
    const struct kp_train_hooks hooks = {.user = g, .epoch = on_epoch, .save = on_save};
    shape.n_tokens = kp_encoder_n_tokens(l->encoder);
    shape.n_vocab = kp_encoder_n_vocab(l->encoder);
    shape.n_features = kp_encoder_n_features(l->encoder);
    shape.n_targets = l->data->n_targets;
    for (size_t t = 0; t < l->data->n_targets; t++)
        shape.n_values[t] = l->data->targets[t].n_values;
    plan.seed += g->net;
    kopt_status st = kp_net_new(o->ops, &shape, plan.seed, &net, err);
    if (st != KOPT_OK)
        return st;
    g->best = net;
    st = kp_train(net, &l->examples[KP_ROLE_TRAIN], &l->examples[KP_ROLE_VALID], &plan, &hooks,
                  NULL, &best, err);
    m->nets[m->n_nets++] = net;
    return st;
}

kopt_status kp_fit(const struct kp_lesson *l, const struct kp_fit_options *o,
                   const struct kp_fit_hooks *hooks, struct kp_model **out, kopt_error *err)
{
    struct kp_json *log = kp_json_new_array();
    struct going g = {.hooks = hooks};
    struct kp_model *m = NULL;
    *out = NULL;
    if (!log)
        return kp_err_nomem(err);
    kopt_status st = begin(l, o, &m, err);
    for (; st == KOPT_OK && g.net < o->nets && g.net < KP_BEAM_NETS_MAX && !g.stopped;
         g.net++) {
        g.epochs = kp_json_new_array();
        if (!g.epochs) {
            st = kp_err_nomem(err);
            break;
        }
        st = fit_net(l, o, m, &g, err);
        if (!kp_json_push(log, g.epochs) && st == KOPT_OK)
            st = kp_err_nomem(err);
    }
    if (!m) {
        kp_json_free(log);
        return st;
    }
    if (!kp_json_set(m->info, "training", log) && st == KOPT_OK)
        st = kp_err_nomem(err);
    if (m->n_nets == 0 || (st != KOPT_OK && st != KOPT_EFAILED)) {
        kp_model_free(m);
        return st;
    }
    *out = m;
    return st;
}
