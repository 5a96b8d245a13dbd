/* SPDX-License-Identifier: MIT */
/* The product of the rules' diagrams, level by level from the top.
 *
 * A state is, for each rule that is open, its node, and for each parameter that some rule alone
 * still restricts, the set of values that all such rules leave. So rules that have come down to
 * one parameter meet at once (an empty set ends the state early, and it does not matter which
 * rule took a value out). Then dead states go, from the bottom up, and states with equal edges
 * become one node. */
#include "space/diagram_product.h"

#include <string.h>

static uint32_t hash_cells(const uint32_t *cells, uint32_t width)
{
    uint64_t h = width;
    for (uint32_t i = 0; i < width; i++) {
        h = (h ^ cells[i]) * 0x9e3779b97f4a7c15U;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

static bool grow_states(struct kp_product *p, struct kp_states *s)
{
    size_t cap = s->table_cap ? 2 * s->table_cap : 256;
    uint32_t *table = kp_budget_calloc(p->b, cap, sizeof(*table));
    if (!table)
        return false;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = s->hash[i] & (cap - 1);
        while (table[at])
            at = (at + 1) & (cap - 1);
        table[at] = (uint32_t)i + 1;
    }
    kp_budget_free(p->b, s->table, s->table_cap * sizeof(*table));
    s->table = table;
    s->table_cap = cap;
    return true;
}

/* The number of the state in p->cell; KP_MDD_NONE when out of memory. */
static uint32_t add_state(struct kp_product *p, uint32_t width)
{
    struct kp_states *s = &p->next;
    if (2 * (s->n + 1) > s->table_cap && !grow_states(p, s))
        return KP_MDD_NONE;
    uint32_t hash = hash_cells(p->cell, width);
    size_t at = hash & (s->table_cap - 1);
    for (; s->table[at]; at = (at + 1) & (s->table_cap - 1)) {
        size_t i = s->table[at] - 1;
        if (s->hash[i] == hash &&
            memcmp(s->cells + i * width, p->cell, width * sizeof(*p->cell)) == 0)
            return (uint32_t)i;
    }
    void *q = kp_budget_grow(p->b, s->hash, &s->cap_hash, s->n + 1, sizeof(*s->hash));
    if (!q)
        return KP_MDD_NONE;
    s->hash = q;
    q = kp_budget_grow(p->b, s->cells, &s->cap_cells, (s->n + 1) * width, sizeof(*s->cells));
    if (!q)
        return KP_MDD_NONE;
    s->cells = q;
    memcpy(s->cells + s->n * width, p->cell, width * sizeof(*p->cell));
    s->hash[s->n] = hash;
    s->table[at] = (uint32_t)++s->n;
    return (uint32_t)s->n - 1;
}

enum step { STEP_OK, STEP_DEAD, STEP_NO_MEMORY };

/* Takes a rule to `node` in the state that is being made. */
static inline enum step place(struct kp_product *p, const struct kp_plan *plan,
                              const struct kp_step_op *op, uint32_t node)
{
    const struct kp_factor *f = op->factor;
    if (f->kind[node] == KP_KIND_UNARY) {
        uint32_t level = kp_mdd_level(f->mdd, node);
        uint32_t *cell = &p->cell[plan->set_to[level]];
        if (*cell != f->set[node]) {
            *cell = kp_sets_meet(p->sets[level], p->b, *cell, f->set[node]);
            if (*cell >= KP_SET_EMPTY)
                return *cell == KP_MDD_NONE ? STEP_NO_MEMORY : STEP_DEAD;
        }
        node = KP_MDD_TRUE;
    }
    if (op->to != KP_NO_CELL)
        p->cell[op->to] = node;
    return STEP_OK;
}

static enum step step_value(struct kp_product *p, const struct kp_plan *plan,
                            const uint32_t *state, uint32_t level, uint32_t value)
{
    for (uint32_t i = 0; i < plan->n_fresh; i++)
        p->cell[plan->set_to[plan->fresh[i]]] = p->initial[plan->fresh[i]];
    for (uint32_t i = 0; i < plan->n_copies; i++)
        p->cell[plan->copies[i].to] = state[plan->copies[i].from];
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const struct kp_step_op *op = &plan->ops[i];
        const struct kp_mdd *m = op->factor->mdd;
        uint32_t node = op->from == KP_NO_CELL ? m->root : state[op->from];
        if (node > KP_MDD_TRUE && kp_mdd_level(m, node) == level)
            node = kp_mdd_row(m, node)[value];
        if (node == KP_MDD_FALSE)
            return STEP_DEAD;
        enum step st = place(p, plan, op, node);
        if (st != STEP_OK)
            return st;
    }
    return STEP_OK;
}

static bool expand_state(struct kp_product *p, uint32_t level, const uint32_t *state,
                         uint32_t *row)
{
    const struct kp_plan *plan = &p->plans[level];
    uint32_t width = p->plans[level + 1].width;
    uint32_t set = plan->set == KP_NO_CELL ? p->initial[level] : state[plan->set];
    for (uint32_t v = 0; v < p->in->domain[level]; v++) {
        row[v] = KP_MDD_NONE;
        /* Sets that are added on the way may move the others. */
        const uint64_t *allowed = kp_sets_get(p->sets[level], set);
        if (!((allowed[v / 64] >> (v % 64)) & 1))
            continue;
        if (!kp_budget_step(p->b))
            return false;
        enum step st = step_value(p, plan, state, level, v);
        if (st == STEP_DEAD)
            continue;
        row[v] = st == STEP_OK ? add_state(p, width) : KP_MDD_NONE;
        if (row[v] == KP_MDD_NONE)
            return false;
    }
    return true;
}

static void clear_states(struct kp_states *s)
{
    s->n = 0;
    if (s->table)
        memset(s->table, 0, s->table_cap * sizeof(*s->table));
}

static bool expand_level(struct kp_product *p, uint32_t level)
{
    uint32_t width = p->plans[level].width;
    uint32_t domain = p->in->domain[level];
    p->n_states[level] = p->now.n;
    p->raw_cap[level] = p->now.n * domain;
    p->raw[level] = kp_budget_calloc(p->b, p->raw_cap[level], sizeof(uint32_t));
    if (!p->raw[level])
        return false;
    clear_states(&p->next);
    for (size_t i = 0; i < p->now.n; i++)
        if (!expand_state(p, level, p->now.cells + i * width, p->raw[level] + i * domain))
            return false;
    struct kp_states t = p->now;
    p->now = p->next;
    p->next = t;
    return true;
}

bool kp_product_expand(struct kp_product *p)
{
    uint32_t n = p->in->n_levels;
    if (p->empty)
        return true;
    p->cell = kp_arena_alloc(p->arena, (size_t)p->max_width + 1, sizeof(*p->cell));
    if (!p->cell || add_state(p, 0) == KP_MDD_NONE)
        return false;
    struct kp_states t = p->now;
    p->now = p->next;
    p->next = t;
    for (uint32_t level = 0; level < n && p->now.n; level++)
        if (!expand_level(p, level))
            return false;
    p->n_states[n] = p->now.n;
    return true;
}

static void free_states(struct kp_product *p, struct kp_states *s)
{
    kp_budget_free(p->b, s->cells, s->cap_cells * sizeof(*s->cells));
    kp_budget_free(p->b, s->hash, s->cap_hash * sizeof(*s->hash));
    kp_budget_free(p->b, s->table, s->table_cap * sizeof(*s->table));
    *s = (struct kp_states){0};
}

static void release(struct kp_product *p)
{
    uint32_t n = p->in->n_levels;
    free_states(p, &p->now);
    free_states(p, &p->next);
    for (uint32_t k = 0; p->raw && p->raw_cap && k < n; k++)
        kp_budget_free(p->b, p->raw[k], p->raw_cap[k] * sizeof(uint32_t));
    for (uint32_t i = 0; i < p->n_families; i++)
        kp_sets_deinit(&p->families[i], p->b);
}

bool kp_diagram_product(const struct kp_product_input *in, struct kp_budget *b,
                        struct kp_diagram *out)
{
    struct kp_arena arena = KP_ARENA_INIT(b->max - b->used);
    struct kp_product p = {.in = in, .b = b, .arena = &arena};
    size_t charged = 0;
    *out = (struct kp_diagram){.root = KP_MDD_NONE};
    bool ok = kp_product_prepare(&p) && kp_budget_charge(b, arena.used);
    if (ok) {
        charged = arena.used;
        ok = kp_product_expand(&p);
        free_states(&p, &p.now);
        free_states(&p, &p.next);
        ok = ok && kp_product_reduce(&p, out);
    }
    kp_budget_blame(b, &arena);
    release(&p);
    b->used -= charged;
    kp_arena_deinit(&arena);
    if (!ok)
        kp_diagram_deinit(out, b);
    return ok;
}
