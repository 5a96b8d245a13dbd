/* SPDX-License-Identifier: MIT */
#include "space/space.h"

#include "base/alloc.h"
#include "space/diagram_list.h"
#include "space/diagram_space.h"
#include "space/space_cache.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MAX_BYTES = 64 << 20 };
/* Some seconds; no rule that people write comes near. */
enum { MAX_STEPS = 100 * 1000 * 1000, RETRY_STEPS = 5 * 1000 * 1000 };

/* ---- making ---- */

static kopt_status check_listed(const struct kp_space_desc *d, kopt_error *err)
{
    if (d->cache)
        return kp_err(err, KOPT_EUSAGE, "a list of configurations goes without a cache");
    if (d->n_listed > KP_LISTED_MAX)
        return kp_err(err, KOPT_ERANGE, "a list of %zu configurations; at most %d are possible",
                      d->n_listed, KP_LISTED_MAX);
    for (size_t i = 0; i < d->n_listed; i++)
        for (size_t k = 0; k < d->n_params; k++)
            if (d->listed[i * d->n_params + k] >= d->params[k].n_values)
                return kp_err(err, KOPT_EUSAGE,
                              "configuration %zu of the list: parameter %s has no such value",
                              i, d->params[k].name);
    return KOPT_OK;
}

static kopt_status check(const struct kp_space_desc *d, kopt_error *err)
{
    if (d->n_params > KP_PARAMS_MAX)
        return kp_err(err, KOPT_EUSAGE, "%zu parameters; at most %d are possible", d->n_params,
                      KP_PARAMS_MAX);
    if (d->n_rules > KP_RULES_MAX)
        return kp_err(err, KOPT_EUSAGE, "%zu rules; at most %d are possible", d->n_rules,
                      KP_RULES_MAX);
    for (size_t i = 0; i < d->n_params; i++) {
        if (d->params[i].n_values == 0)
            return kp_err(err, KOPT_EUSAGE, "parameter %s has no value", d->params[i].name);
        if (d->params[i].slot >= d->n_slots)
            return kp_err(err, KOPT_EUSAGE, "parameter %s has no slot", d->params[i].name);
    }
    return d->listed ? check_listed(d, err) : KOPT_OK;
}

static kopt_status arena_error(struct kp_space *s, kopt_error *err)
{
    kp_budget_blame(&s->budget, &s->arena);
    return kp_budget_error(&s->budget, err);
}

static void wrap_rule(const struct kp_space *s, size_t r, kopt_error *err)
{
    const struct kp_rule *rule = &s->desc->rules[r];
    if (rule->line > 0)
        kp_err_wrap(err, "rule at line %d, %.200s", rule->line, rule->text ? rule->text : "");
    else
        kp_err_wrap(err, "rule %.200s", rule->text ? rule->text : "");
}

static kopt_status build_terms(struct kp_space *s, kopt_error *err)
{
    const struct kp_space_desc *d = s->desc;
    int32_t *param_of_slot = kp_arena_alloc(&s->arena, d->n_slots + 1, sizeof(int32_t));
    s->rules = kp_arena_alloc(&s->arena, d->n_rules + 1, sizeof(struct kp_term *));
    if (!param_of_slot || !s->rules)
        return arena_error(s, err);
    for (size_t i = 0; i < d->n_slots; i++)
        param_of_slot[i] = -1;
    for (size_t i = 0; i < d->n_params; i++)
        param_of_slot[d->params[i].slot] = (int32_t)i;
    struct kp_term_input in = {d, param_of_slot, &s->arena};
    for (size_t r = 0; r < d->n_rules; r++) {
        kopt_status st = kp_term_build(&in, d->rules[r].expr, &s->rules[r], err);
        if (st == KOPT_ENOMEM ||
            (st == KOPT_OK && !kp_atoms_add(&s->atoms, s->rules[r], (uint32_t)r, &s->arena)))
            st = arena_error(s, err);
        if (st != KOPT_OK) {
            wrap_rule(s, r, err);
            return st;
        }
    }
    return KOPT_OK;
}

struct named {
    const char *name;
    uint32_t param;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;
    return strcmp(x->name, y->name);
}

static bool build_tables(struct kp_space *s)
{
    const struct kp_space_desc *d = s->desc;
    struct named names[KP_PARAMS_MAX];
    s->order = kp_arena_alloc(&s->arena, d->n_params + 1, sizeof(uint32_t));
    s->level = kp_arena_alloc(&s->arena, d->n_params + 1, sizeof(uint32_t));
    s->by_name = kp_arena_alloc(&s->arena, d->n_params + 1, sizeof(uint32_t));
    s->weight = kp_arena_alloc(&s->arena, d->n_params + 1, sizeof(uint64_t));
    if (s->arena.failed)
        return false;
    s->cartesian = 1;
    for (size_t i = 0; i < d->n_params; i++) {
        s->cartesian *= d->params[i].n_values;
        names[i] = (struct named){d->params[i].name, (uint32_t)i};
    }
    qsort(names, d->n_params, sizeof(*names), by_name);
    for (size_t i = 0; i < d->n_params; i++)
        s->by_name[i] = names[i].param;
    return true;
}

/* Parameters that a list can tell apart. */
static uint32_t n_variable(const struct kp_space_desc *d)
{
    uint32_t n = 0;
    for (size_t i = 0; i < d->n_params; i++)
        n += d->params[i].n_values > 1;
    return n;
}

/* A list ties all parameters with several values: those that no rule ties come behind the
 * others, as declared. Returns how many there are now. */
static uint32_t tie_all(const struct kp_space_desc *d, uint32_t *order, uint32_t n_tied)
{
    uint32_t single[KP_PARAMS_MAX];
    uint32_t n_single = 0;
    for (size_t k = n_tied; k < d->n_params; k++) {
        if (d->params[order[k]].n_values > 1)
            order[n_tied++] = order[k];
        else
            single[n_single++] = order[k];
    }
    if (n_single)
        memcpy(order + n_tied, single, n_single * sizeof(*single));
    return n_tied;
}

static bool choose_order(struct kp_space *s, int attempt, uint32_t *n_tied)
{
    const struct kp_space_desc *d = s->desc;
    uint32_t domain[KP_PARAMS_MAX];
    struct kp_arena scratch = KP_ARENA_INIT(s->budget.max);
    struct kp_order_input in = {d->n_params, domain, &s->atoms};
    for (size_t i = 0; i < d->n_params; i++)
        domain[i] = d->params[i].n_values;
    bool ok = kp_order_choose(&in, attempt, &scratch, s->order, n_tied);
    if (!ok)
        kp_budget_blame(&s->budget, &scratch);
    if (ok && d->listed)
        *n_tied = tie_all(d, s->order, *n_tied);
    for (size_t k = 0; ok && k < d->n_params; k++)
        s->level[s->order[k]] = (uint32_t)k;
    kp_arena_deinit(&scratch);
    return ok;
}

kopt_status kp_space_mdds(const struct kp_space *s, struct kp_budget *b, struct kp_mdds *out,
                          size_t *rule, kopt_error *err)
{
    struct kp_residual_input in = {s->desc->params, s->level, s->order, s->desc->n_params};
    size_t n = s->atoms.n + (s->desc->listed ? 1 : 0);
    *out = (struct kp_mdds){0};
    out->items = kp_budget_calloc(b, n, sizeof(*out->items));
    if (!out->items)
        return kp_budget_error(b, err);
    out->cap = n;
    for (size_t i = 0; i < s->atoms.n; i++) {
        if (rule)
            *rule = s->atoms.items[i].rule;
        kopt_status st = kp_residual_mdd(&in, s->atoms.items[i].term, b, &out->items[i], err);
        if (st != KOPT_OK) {
            kp_mdds_deinit(out, b);
            return st;
        }
        out->n++;
    }
    if (!s->desc->listed)
        return KOPT_OK;
    if (rule)
        *rule = s->desc->n_rules;
    if (!kp_list_mdd(s->desc, s->order, n_variable(s->desc), b, &out->items[out->n])) {
        kp_mdds_deinit(out, b);
        return kp_budget_error(b, err);
    }
    out->n++;
    return KOPT_OK;
}

void kp_mdds_deinit(struct kp_mdds *m, struct kp_budget *b)
{
    for (size_t i = 0; i < m->n; i++)
        kp_mdd_deinit(&m->items[i], b);
    kp_budget_free(b, m->items, m->cap * sizeof(*m->items));
    *m = (struct kp_mdds){0};
}

/* One attempt. *rule: n_rules when the rules were small enough one by one. */
static kopt_status build_diagram(struct kp_space *s, int attempt, size_t *rule, kopt_error *err)
{
    uint32_t domain[KP_PARAMS_MAX];
    struct kp_mdds mdds = {0};
    const struct kp_mdd **factors = NULL;
    uint32_t n_tied = 0;
    s->budget.over = false;
    if (!choose_order(s, attempt, &n_tied))
        return kp_budget_error(&s->budget, err);
    kopt_status st = kp_space_mdds(s, &s->budget, &mdds, rule, err);
    if (st != KOPT_OK)
        return st;
    *rule = s->desc->n_rules;
    factors = kp_calloc(mdds.n + 1, sizeof(struct kp_mdd *));
    if (!factors) {
        st = kp_err_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < mdds.n; i++)
        factors[i] = &mdds.items[i];
    for (uint32_t k = 0; k < n_tied; k++)
        domain[k] = kp_space_values(s, s->order[k]);
    struct kp_product_input in = {n_tied, domain, factors, mdds.n};
    if (!kp_diagram_product(&in, &s->budget, &s->diagram))
        st = kp_budget_error(&s->budget, err);
done:
    kp_free(factors);
    kp_mdds_deinit(&mdds, &s->budget);
    return st;
}

/* False: more than 2^64-1. */
static bool count_all(struct kp_space *s)
{
    bool fits = !s->diagram.saturated;
    uint64_t tied = kp_diagram_total(&s->diagram);
    s->n_free = 1;
    for (size_t k = s->desc->n_params; k-- > kp_space_n_tied(s);) {
        s->weight[k] = s->n_free;
        fits &= !__builtin_mul_overflow(s->n_free, kp_space_values(s, s->order[k]), &s->n_free);
    }
    return tied == 0 || (fits && !__builtin_mul_overflow(tied, s->n_free, &s->count));
}

static kopt_status build(struct kp_space *s, kopt_error *err)
{
    size_t rule = s->desc->n_rules;
    kopt_status st = build_terms(s, err);
    if (st != KOPT_OK)
        return st;
    if (!kp_budget_charge(&s->budget, s->arena.used))
        return kp_budget_error(&s->budget, err);
    size_t used = s->budget.used;
    size_t max = s->budget.max;
    for (int attempt = 0; attempt < KP_ORDER_ATTEMPTS; attempt++) {
        s->budget.used = used;
        st = build_diagram(s, attempt, &rule, err);
        if (st != KOPT_ERANGE || s->budget.steps > RETRY_STEPS ||
            s->budget.steps > s->budget.max_steps)
            break;
        /* Another order helps a lot or not at all; do not spend as long on each. */
        s->budget.max = used + (max - used) / 4;
    }
    s->budget.max = max;
    if (st == KOPT_ERANGE)
        st = kp_budget_error(&s->budget, err);
    if (st == KOPT_ERANGE && rule < s->desc->n_rules)
        wrap_rule(s, rule, err);
    return st;
}

/* From what the cache has; else as without one, and the cache learns from it. */
static kopt_status build_or_recall(struct kp_space *s, kopt_error *err)
{
    bool done = false;
    kopt_status st = build_tables(s) ? KOPT_OK : arena_error(s, err);
    if (st == KOPT_OK && s->desc->cache)
        st = kp_space_recall(s, &done);
    if (st == KOPT_ENOMEM)
        (void)kp_err_nomem(err);
    if (st == KOPT_OK && !done) {
        st = build(s, err);
        if (st == KOPT_OK && s->desc->cache)
            kp_space_remember(s);
    }
    if (st == KOPT_OK && !count_all(s))
        st = kp_err(err, KOPT_ERANGE, "the space has more than 2^64-1 valid configurations");
    return st;
}

kopt_status kp_space_new(const struct kp_space_desc *desc, struct kp_space **out,
                         kopt_error *err)
{
    *out = NULL;
    kopt_status st = check(desc, err);
    if (st != KOPT_OK)
        return st;
    struct kp_space *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->desc = desc;
    s->budget.max = desc->max_bytes ? desc->max_bytes : DEFAULT_MAX_BYTES;
    s->budget.max_steps = desc->max_steps ? desc->max_steps : MAX_STEPS;
    s->arena.max = s->budget.max;
    s->diagram.root = KP_MDD_NONE;
    st = build_or_recall(s, err);
    if (st != KOPT_OK) {
        kp_space_free(s);
        return st;
    }
    *out = s;
    return KOPT_OK;
}

void kp_space_free(struct kp_space *s)
{
    if (!s)
        return;
    if (s->shared)
        kp_shared_release(s->shared);
    else
        kp_diagram_deinit(&s->diagram, &s->budget);
    kp_arena_deinit(&s->arena);
    kp_free(s);
}

/* ---- asking ---- */

size_t kp_space_n_params(const struct kp_space *s)
{
    return s->desc->n_params;
}

const struct kp_param *kp_space_param(const struct kp_space *s, size_t i)
{
    return &s->desc->params[i];
}

double kp_space_cartesian(const struct kp_space *s)
{
    return s->cartesian;
}

uint64_t kp_space_count(const struct kp_space *s)
{
    return s->count;
}

const uint32_t *kp_space_order(const struct kp_space *s)
{
    return s->order;
}

void kp_space_stats(const struct kp_space *s, struct kp_space_stats *out)
{
    const struct kp_diagram *d = &s->diagram;
    *out = (struct kp_space_stats){
        .bytes = sizeof(*s) + s->budget.used,
        .peak_bytes = sizeof(*s) + s->budget.peak,
        .nodes = d->n_nodes,
        .edges = d->n_edges,
    };
    for (uint32_t k = 0; k < d->n_levels; k++)
        if (d->width[k] > out->width)
            out->width = d->width[k];
}

static void unrank(const struct kp_space *s, uint64_t rank, uint32_t *config)
{
    const struct kp_diagram *d = &s->diagram;
    uint64_t tied = rank / s->n_free;
    uint32_t node = d->root;
    rank %= s->n_free;
    for (uint32_t k = 0; k < d->n_levels; k++) {
        const struct kp_edge *e = kp_diagram_edge_at(d, node, tied);
        config[s->order[k]] = e->value;
        tied -= e->before;
        node = e->child;
    }
    for (size_t k = d->n_levels; k < s->desc->n_params; k++) {
        config[s->order[k]] = (uint32_t)(rank / s->weight[k]);
        rank %= s->weight[k];
    }
}

kopt_status kp_space_at(const struct kp_space *s, uint64_t rank, uint32_t *config,
                        kopt_error *err)
{
    uint64_t count = kp_space_count(s);
    if (rank >= count)
        return kp_err(err, KOPT_ERANGE, "rank %llu of %llu configurations",
                      (unsigned long long)rank, (unsigned long long)count);
    unrank(s, rank, config);
    return KOPT_OK;
}

bool kp_space_rank(const struct kp_space *s, const uint32_t *config, uint64_t *rank)
{
    const struct kp_diagram *d = &s->diagram;
    uint32_t node = d->root;
    uint64_t tied = 0;
    uint64_t rest = 0;
    *rank = 0;
    if (node == KP_MDD_NONE)
        return false;
    for (uint32_t k = 0; k < d->n_levels; k++) {
        const struct kp_edge *e = kp_diagram_edge(d, node, config[s->order[k]]);
        if (!e)
            return false;
        tied += e->before;
        node = e->child;
    }
    for (size_t k = d->n_levels; k < s->desc->n_params; k++) {
        uint32_t value = config[s->order[k]];
        if (value >= kp_space_values(s, s->order[k]))
            return false;
        rest += value * s->weight[k];
    }
    *rank = tied * s->n_free + rest;
    return true;
}

void kp_space_sample(const struct kp_space *s, struct kp_rng *rng, uint32_t *config)
{
    uint64_t count = kp_space_count(s);
    KP_CHECK(count != 0);
    unrank(s, kp_rng_below(rng, count), config);
}

static bool in_range(const struct kp_space_desc *d, const uint32_t *config)
{
    for (size_t i = 0; i < d->n_params; i++)
        if (config[i] >= d->params[i].n_values)
            return false;
    return true;
}

/* The first rule that fails, with the parameters' values by their own numbers. */
static struct kp_rule_hit first_failing(const struct kp_space *s, const uint32_t *config)
{
    const struct kp_space_desc *d = s->desc;
    struct kp_value values[KP_PARAMS_MAX];
    unsigned char known[KP_PARAMS_MAX];
    struct kp_env env = {values, known};
    struct kp_rule_hit hit = {.rule = 0};
    for (size_t i = 0; i < d->n_params; i++) {
        known[i] = 1;
        values[i] = d->params[i].values[config[i]];
    }
    while (hit.rule < d->n_rules && kp_expr_truth(&s->rules[hit.rule]->e, &env, &hit.why) == 1)
        hit.rule++;
    return hit;
}

/* The same by the rules as written, for a space that has made nothing of them. */
static struct kp_rule_hit first_failing_as_written(const struct kp_space *s,
                                                   const uint32_t *config)
{
    const struct kp_space_desc *d = s->desc;
    struct kp_value values[KP_CACHE_SLOTS_MAX];
    unsigned char known[KP_CACHE_SLOTS_MAX];
    struct kp_env env = {values, known};
    struct kp_rule_hit hit = {.rule = 0};
    for (size_t i = 0; i < d->n_slots; i++) {
        known[i] = d->known && d->known[i];
        if (known[i])
            values[i] = d->values[i];
    }
    kp_space_bind(s, config, values, known);
    while (hit.rule < d->n_rules && kp_expr_truth(d->rules[hit.rule].expr, &env, &hit.why) == 1)
        hit.rule++;
    return hit;
}

bool kp_space_valid(const struct kp_space *s, const uint32_t *config, struct kp_rule_hit *hit)
{
    struct kp_rule_hit first = {.rule = s->desc->n_rules};
    uint64_t rank = 0;
    bool valid = in_range(s->desc, config);
    if (valid) {
        first = s->rules ? first_failing(s, config) : first_failing_as_written(s, config);
        valid = first.rule == s->desc->n_rules &&
                (!s->desc->listed || kp_space_rank(s, config, &rank));
    }
    if (hit)
        *hit = first;
    return valid;
}

/* ---- as text ---- */

void kp_space_config_text(const struct kp_space *s, const uint32_t *config, struct kp_buf *out)
{
    for (size_t i = 0; i < s->desc->n_params; i++) {
        const struct kp_param *p = &s->desc->params[i];
        kp_buf_adds(out, i ? "," : "");
        kp_buf_adds(out, p->name);
        kp_buf_addc(out, '=');
        kp_value_to_text(p->values[config[i]], out);
    }
}

void kp_space_config_json(const struct kp_space *s, const uint32_t *config, struct kp_buf *out)
{
    kp_buf_addc(out, '{');
    for (size_t i = 0; i < s->desc->n_params; i++) {
        uint32_t param = s->by_name[i];
        const struct kp_param *p = &s->desc->params[param];
        kp_buf_adds(out, i ? "," : "");
        kp_value_to_json(kp_string(kp_str_from(p->name)), out);
        kp_buf_addc(out, ':');
        kp_value_to_json(p->values[config[param]], out);
    }
    kp_buf_addc(out, '}');
}

void kp_space_bind(const struct kp_space *s, const uint32_t *config, struct kp_value *values,
                   unsigned char *known)
{
    for (size_t i = 0; i < s->desc->n_params; i++) {
        const struct kp_param *p = &s->desc->params[i];
        values[p->slot] = p->values[config[i]];
        known[p->slot] = 1;
    }
}
