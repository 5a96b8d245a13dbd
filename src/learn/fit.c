/* SPDX-License-Identifier: MIT */
#include "learn/fit.h"

#include "base/alloc.h"

#include <string.h>

/* Eight problems at a time, and no end before the rate has fallen. */
static struct kp_fit_options default_ranks(struct kp_fit_options o)
{
    o.nets = 10;
    o.trees_weight = 0.6;
    o.plan = (struct kp_train_plan){.seed = 1,
                                    .shards = 2,
                                    .batch = 8,
                                    .epochs = 60,
                                    .patience = 60,
                                    .unknown = 0.1F,
                                    .adam = kp_adam_default()};
    o.plan.adam.rate = 3e-3F;
    o.plan.adam.clip = 1;
    o.plan.adam.decay = 1e-2F;
    o.plan.adam.warm = 100;
    o.plan.adam.floor = 0.01F;
    return o;
}

struct kp_fit_options kp_fit_default(const struct kp_net_ops *ops)
{
    struct kp_fit_options o = {.ops = ops, .nets = 1};
    o.shape.dropout = -1;
    o.grow = (struct kp_grow_plan){
        .trees = ops == kp_net_at(0) || ops->rank ? 30 : 0, .leaf = 4, .share = 0.6};
    o.trees_weight = 0.4;
    if (ops->rank)
        return default_ranks(o);
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

/* The same for what the networks rank. */
static kopt_status copy_ranking(const struct kp_ranking *from, struct kp_model *m,
                                kopt_error *err)
{
    struct kp_json *j = kp_ranking_to_json(from);
    if (!j)
        return kp_err_nomem(err);
    kopt_status st = kp_ranking_from_json(j, m, &m->ranking, err);
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
    if (st == KOPT_OK && o->ranks)
        st = copy_ranking(o->ranks->ranking, m, err);
    if (st == KOPT_OK)
        st = kp_model_keep_spaces(m, err);
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
    const struct kp_lesson *l;
    const struct kp_fit_options *o;
    const struct kp_fit_hooks *hooks;
    struct kp_model *m;
    size_t net;
    const struct kp_train_state *now;
    struct kp_json *log;    /* of the networks that are done */
    struct kp_json *epochs; /* of this one */
    bool stopped;
    kopt_status st; /* of saving */
    kopt_error *err;
};

static void add_epoch(struct going *g, const struct kp_epoch *e)
{
    struct kp_json *row = kp_json_new_array();
    bool ok = row && kp_json_push(row, kp_json_new_f64(e->train_loss)) &&
              kp_json_push(row, kp_json_new_f64(e->valid_loss)) &&
              kp_json_push(row, kp_json_new_f64(e->valid_right));
    if (ok)
        (void)kp_json_push(g->epochs, row); /* a curve with a gap is no reason to stop */
    else
        kp_json_free(row);
}

static kopt_status save(const struct going *g)
{
    struct kp_json *log = kp_json_dup(g->log);
    struct kp_fit_state s = {.net = g->net, .log = log};
    kopt_status st = KOPT_OK;
    for (size_t k = 0; k <= g->net; k++) {
        s.values[k] = g->m->nets[k]->values;
        s.n_floats[k] = g->m->nets[k]->params.n_floats;
    }
    s.train = *g->now;
    if (kp_json_push(log, kp_json_dup(g->epochs)))
        st = g->hooks->save(g->hooks->user, &s, g->stopped, g->err);
    else
        st = kp_err_nomem(g->err);
    kp_json_free(log);
    return st;
}

static bool on_state(void *user, const struct kp_train_state *s)
{
    struct going *g = user;
    g->now = s;
    return true;
}

static bool on_epoch(void *user, const struct kp_epoch *e)
{
    struct going *g = user;
    add_epoch(g, e);
    if (g->hooks && g->hooks->epoch && !g->hooks->epoch(g->hooks->user, g->net, e))
        g->stopped = true;
    if (g->hooks && g->hooks->save)
        g->st = save(g);
    return !g->stopped && g->st == KOPT_OK;
}

const struct kp_net_ops *kp_fit_kind(const struct kp_fit_options *o, size_t k)
{
    return o->beside && k >= o->nets - (o->nets + 2) / 3 ? o->beside : o->ops;
}

struct kp_net_shape kp_fit_shape(const struct kp_lesson *l, const struct kp_fit_options *o,
                                 const struct kp_net_ops *kind)
{
    struct kp_net_shape shape = o->shape;
    if (kind == o->beside)
        shape = (struct kp_net_shape){.dropout = o->shape.dropout};
    shape.n_tokens = o->ranks ? 1 : kp_encoder_n_tokens(l->encoder);
    shape.n_vocab = o->ranks ? o->ranks->ranking->n_configs : kp_encoder_n_vocab(l->encoder);
    shape.n_features = o->ranks ? o->ranks->n_inputs : kp_encoder_n_features(l->encoder);
    shape.n_targets = l->data->n_targets;
    for (size_t t = 0; t < l->data->n_targets; t++)
        shape.n_values[t] = l->data->targets[t].n_values;
    return shape;
}

/* Network g->net, not trained yet, behind those that the model has. */
static kopt_status new_net(struct going *g)
{
    const struct kp_net_ops *kind = kp_fit_kind(g->o, g->net);
    const struct kp_net_shape shape = kp_fit_shape(g->l, g->o, kind);
    struct kp_net *net;
    kopt_status st = kp_net_new(kind, &shape, g->o->plan.seed + g->net, &net, g->err);
    if (st != KOPT_OK)
        return st;
    g->m->nets[g->m->n_nets++] = net;
    const struct kp_fit_state *r = g->hooks ? g->hooks->resume : NULL;
    if (!r || g->net > r->net)
        return KOPT_OK;
    size_t n_floats = r->n_floats[g->net];
    if (n_floats != net->params.n_floats)
        return kp_err(g->err, KOPT_EINPUT,
                      "the state of the training is of another network: %zu numbers, not %zu",
                      n_floats, net->params.n_floats);
    memcpy(net->values, r->values[g->net], n_floats * sizeof(float));
    return KOPT_OK;
}

static kopt_status teach(struct going *g, const struct kp_train_plan *plan,
                         const struct kp_train_hooks *hooks, const struct kp_train_state *from,
                         struct kp_epoch *best)
{
    struct kp_net *net = g->m->nets[g->net];
    struct kp_ranks_course c;
    if (!g->o->ranks)
        return kp_train(net, &g->l->examples[KP_ROLE_TRAIN], &g->l->examples[KP_ROLE_VALID],
                        plan, hooks, from, best, g->err);
    kopt_status st = kp_ranks_course(g->o->ranks, g->net, &c, g->err);
    if (st == KOPT_OK)
        st = kp_course_teach(net, &c.course, plan, hooks, from, best, g->err);
    kp_ranks_course_deinit(&c);
    return st;
}

static kopt_status train_net(struct going *g)
{
    struct kp_train_plan plan = g->o->plan;
    struct kp_epoch best = {0};
    const struct kp_train_hooks hooks = {.user = g, .epoch = on_epoch, .save = on_state};
    const struct kp_fit_state *r = g->hooks ? g->hooks->resume : NULL;
    if (r && g->net < r->net)
        return KOPT_OK;
    const struct kp_train_state *from = r && g->net == r->net ? &r->train : NULL;
    plan.seed += g->net;
    kopt_status st = teach(g, &plan, &hooks, from, &best);
    if (st == KOPT_OK)
        st = g->st;
    if (st == KOPT_EFAILED && best.number == 0 && !(from && from->best_epoch)) {
        kp_net_free(g->m->nets[--g->m->n_nets]); /* as it was drawn from the seed */
        (void)kp_err(g->err, st, "the loss is not a number any more in the first epoch%s",
                     g->m->n_nets ? "; the networks before are kept" : "");
        kp_err_hint(g->err, "a lower learning rate usually helps");
    }
    return st;
}

static kopt_status fit_net(struct going *g)
{
    const struct kp_fit_state *r = g->hooks ? g->hooks->resume : NULL;
    const struct kp_json *before = r && g->net <= r->net ? kp_json_at(r->log, g->net) : NULL;
    g->epochs = before ? kp_json_dup(before) : kp_json_new_array();
    kopt_status st = g->epochs ? new_net(g) : kp_err_nomem(g->err);
    if (st == KOPT_OK)
        st = train_net(g);
    if (st == KOPT_OK)
        st = kp_net_prepare(g->m->nets[g->net], g->err);
    if (!kp_json_push(g->log, g->epochs) && st == KOPT_OK)
        st = kp_err_nomem(g->err);
    g->epochs = NULL;
    return st;
}

/* What stands beside the networks; `st`: what became of them, which comes back unless this
 * fails. */
static kopt_status finish(const struct going *g, kopt_status st)
{
    kopt_status own = KOPT_OK;
    if (g->o->ranks)
        own = kp_ranks_correct(g->o->ranks, g->m, g->err);
    if (own == KOPT_OK)
        own = kp_fit_trees(g->l, g->o, g->m, g->err);
    return own == KOPT_OK ? st : own;
}

kopt_status kp_fit(const struct kp_lesson *l, const struct kp_fit_options *o,
                   const struct kp_fit_hooks *hooks, struct kp_model **out, kopt_error *err)
{
    struct going g = {.l = l, .o = o, .hooks = hooks, .err = err};
    *out = NULL;
    kopt_status st = begin(l, o, &g.m, err);
    if (st != KOPT_OK || !g.m)
        return st;
    g.log = kp_json_new_array();
    if (!g.log)
        st = kp_err_nomem(err);
    while (st == KOPT_OK && g.net < o->nets && g.net < KP_BEAM_NETS_MAX && !g.stopped) {
        st = fit_net(&g);
        g.net++;
    }
    if (!kp_json_set(g.m->info, "training", g.log) && st == KOPT_OK)
        st = kp_err_nomem(err);
    if (st == KOPT_OK || (st == KOPT_EFAILED && g.m->n_nets > 0))
        st = finish(&g, st);
    if (g.m->n_nets == 0 || (st != KOPT_OK && st != KOPT_EFAILED)) {
        kp_model_free(g.m);
        return st;
    }
    *out = g.m;
    return st;
}
