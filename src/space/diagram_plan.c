/* SPDX-License-Identifier: MIT */
#include "space/diagram_product.h"

#include <string.h>

/* ---- what the factors are ---- */

static bool meet_initial(struct kp_product *p, uint32_t level, uint32_t set)
{
    if (p->initial[level] == set)
        return true;
    uint32_t id = kp_sets_meet(p->sets[level], p->b, p->initial[level], set);
    if (id == KP_MDD_NONE)
        return false;
    p->empty |= id == KP_SET_EMPTY;
    if (id != KP_SET_EMPTY)
        p->initial[level] = id;
    return true;
}

static bool prepare_nodes(struct kp_product *p, struct kp_factor *f)
{
    const struct kp_mdd *m = f->mdd;
    f->kind[KP_MDD_FALSE] = KP_KIND_FALSE;
    f->kind[KP_MDD_TRUE] = KP_KIND_TRUE;
    for (uint32_t node = 2; node < m->n_nodes; node++) {
        uint32_t level = kp_mdd_level(m, node);
        f->kind[node] = kp_mdd_is_unary(m, node) ? KP_KIND_UNARY : KP_KIND_OPEN;
        if (f->kind[node] == KP_KIND_OPEN) {
            f->last = level > f->last ? level : f->last;
            continue;
        }
        f->set[node] = kp_sets_add(p->sets[level], p->b, kp_mdd_set(m, node));
        if (f->set[node] == KP_MDD_NONE)
            return false;
    }
    return true;
}

static bool prepare_factor(struct kp_product *p, struct kp_factor *f, const struct kp_mdd *m)
{
    *f = (struct kp_factor){.mdd = m};
    if (m->root <= KP_MDD_TRUE) {
        p->empty |= m->root == KP_MDD_FALSE;
        return true;
    }
    f->kind = kp_arena_alloc(p->arena, m->n_nodes, 1);
    f->set = kp_arena_alloc(p->arena, m->n_nodes, sizeof(*f->set));
    f->first = kp_mdd_level(m, m->root);
    f->last = f->first;
    if (!f->kind || !f->set || !prepare_nodes(p, f))
        return false;
    if (f->kind[m->root] == KP_KIND_UNARY)
        return meet_initial(p, f->first, f->set[m->root]);
    f->active = true;
    return true;
}

static bool add_family(struct kp_product *p, uint32_t n_values, struct kp_sets **out)
{
    for (uint32_t i = 0; i < p->n_families; i++)
        if (p->families[i].n_values == n_values) {
            *out = &p->families[i];
            return true;
        }
    *out = &p->families[p->n_families];
    return kp_sets_init(&p->families[p->n_families++], p->b, n_values);
}

/* Each level starts with the set of all its values. */
static bool prepare_sets(struct kp_product *p)
{
    for (uint32_t k = 0; k < p->in->n_levels; k++) {
        if (!add_family(p, p->in->domain[k], &p->sets[k]))
            return false;
        struct kp_sets *s = p->sets[k];
        memset(s->scratch, 0, s->words * sizeof(*s->scratch));
        for (uint32_t v = 0; v < s->n_values; v++)
            s->scratch[v / 64] |= (uint64_t)1 << (v % 64);
        p->initial[k] = kp_sets_add(s, p->b, s->scratch);
        if (p->initial[k] == KP_MDD_NONE)
            return false;
    }
    return true;
}

/* ---- the cells of states at each level ---- */

struct layout {
    uint32_t *factor_cell; /* by factor, at the level at hand */
    uint32_t *factor_next;
    uint32_t *set_cell; /* by level of the set */
    uint32_t
        *set_first; /* by level of the set: it has a cell behind this level; n_levels: never */
    uint32_t width;
};

static void find_set_users(const struct kp_product *p, struct layout *l)
{
    for (uint32_t k = 0; k < p->in->n_levels; k++)
        l->set_first[k] = p->in->n_levels;
    for (size_t i = 0; i < p->in->n_factors; i++) {
        const struct kp_factor *f = &p->factors[i];
        for (uint32_t node = 2; f->active && node < f->mdd->n_nodes; node++) {
            uint32_t level = kp_mdd_level(f->mdd, node);
            if (f->kind[node] == KP_KIND_UNARY && f->first < l->set_first[level])
                l->set_first[level] = f->first;
        }
    }
}

static bool has_level(const struct kp_mdd *m, uint32_t level)
{
    for (uint32_t i = 0; i < m->n_vars; i++)
        if (m->level[i] == level)
            return true;
    return false;
}

static bool plan_factors(struct kp_product *p, struct kp_plan *plan, struct layout *l,
                         uint32_t level)
{
    size_t n_ops = 0;
    size_t n_open = 0;
    for (size_t i = 0; i < p->in->n_factors; i++) {
        const struct kp_factor *f = &p->factors[i];
        bool open = f->active && level >= f->first && level <= f->last;
        n_open += open;
        n_ops += open && has_level(f->mdd, level);
    }
    plan->ops = kp_arena_alloc(p->arena, n_ops + 1, sizeof(*plan->ops));
    plan->copies = kp_arena_alloc(p->arena, n_open + p->in->n_levels, sizeof(*plan->copies));
    if (!plan->ops || !plan->copies)
        return false;
    for (size_t i = 0; i < p->in->n_factors; i++) {
        const struct kp_factor *f = &p->factors[i];
        l->factor_next[i] = KP_NO_CELL;
        if (!f->active || level < f->first || level > f->last)
            continue;
        if (level < f->last)
            l->factor_next[i] = l->width++;
        if (has_level(f->mdd, level))
            plan->ops[plan->n_ops++] =
                (struct kp_step_op){f, l->factor_cell[i], l->factor_next[i]};
        else
            plan->copies[plan->n_copies++] =
                (struct kp_cell_copy){l->factor_cell[i], l->factor_next[i]};
    }
    memcpy(l->factor_cell, l->factor_next, p->in->n_factors * sizeof(*l->factor_cell));
    return true;
}

static bool plan_sets(struct kp_product *p, struct kp_plan *plan, struct layout *l,
                      uint32_t level)
{
    uint32_t n = p->in->n_levels;
    plan->fresh = kp_arena_alloc(p->arena, n, sizeof(*plan->fresh));
    plan->set_to = kp_arena_alloc(p->arena, n, sizeof(*plan->set_to));
    if (!plan->fresh || !plan->set_to)
        return false;
    plan->set = l->set_cell[level];
    for (uint32_t k = level + 1; k < n; k++) {
        plan->set_to[k] = KP_NO_CELL;
        if (l->set_first[k] > level)
            continue;
        plan->set_to[k] = l->width++;
        if (l->set_first[k] == level)
            plan->fresh[plan->n_fresh++] = k;
        else
            plan->copies[plan->n_copies++] =
                (struct kp_cell_copy){l->set_cell[k], plan->set_to[k]};
        l->set_cell[k] = plan->set_to[k];
    }
    return true;
}

static bool make_plans(struct kp_product *p)
{
    uint32_t n = p->in->n_levels;
    struct layout l = {0};
    l.factor_cell = kp_arena_alloc(p->arena, p->in->n_factors + 1, sizeof(uint32_t));
    l.factor_next = kp_arena_alloc(p->arena, p->in->n_factors + 1, sizeof(uint32_t));
    l.set_cell = kp_arena_alloc(p->arena, (size_t)n + 1, sizeof(uint32_t));
    l.set_first = kp_arena_alloc(p->arena, (size_t)n + 1, sizeof(uint32_t));
    if (!l.factor_cell || !l.factor_next || !l.set_cell || !l.set_first)
        return false;
    find_set_users(p, &l);
    memset(l.factor_cell, 0xff, (p->in->n_factors + 1) * sizeof(uint32_t));
    memset(l.set_cell, 0xff, ((size_t)n + 1) * sizeof(uint32_t));
    for (uint32_t level = 0; level < n; level++) {
        struct kp_plan *plan = &p->plans[level];
        plan->width = l.width;
        l.width = 0;
        if (!plan_factors(p, plan, &l, level) || !plan_sets(p, plan, &l, level))
            return false;
        p->max_width = l.width > p->max_width ? l.width : p->max_width;
    }
    p->plans[n].width = l.width;
    return true;
}

bool kp_product_prepare(struct kp_product *p)
{
    size_t n = (size_t)p->in->n_levels + 1;
    p->factors = kp_arena_alloc(p->arena, p->in->n_factors + 1, sizeof(*p->factors));
    p->families = kp_arena_alloc(p->arena, n, sizeof(*p->families));
    p->sets = kp_arena_alloc(p->arena, n, sizeof(struct kp_sets *));
    p->initial = kp_arena_alloc(p->arena, n, sizeof(*p->initial));
    p->plans = kp_arena_alloc(p->arena, n, sizeof(*p->plans));
    p->raw = kp_arena_alloc(p->arena, n, sizeof(uint32_t *));
    p->raw_cap = kp_arena_alloc(p->arena, n, sizeof(*p->raw_cap));
    p->n_states = kp_arena_alloc(p->arena, n, sizeof(*p->n_states));
    if (p->arena->failed || !prepare_sets(p))
        return false;
    for (size_t i = 0; i < p->in->n_factors; i++)
        if (!prepare_factor(p, &p->factors[i], p->in->factors[i]))
            return false;
    return p->empty || make_plans(p);
}
