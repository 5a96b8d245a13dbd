/* SPDX-License-Identifier: MIT */
/* The product of the rules' diagrams, level by level from the top.
 *
 * A state is, for each rule that is open, its node, and for each parameter that some rule alone
 * still restricts, the set of values that all such rules leave. So rules that have come down to
 * one parameter meet at once (an empty set ends the state early, and it does not matter which
 * rule took a value out). Then dead states go, from the bottom up, and states with equal edges
 * become one node. */
#include "space/diagram.h"
#include "space/diagram_sets.h"

#include "base/hash.h"

#include <string.h>

enum { NO_CELL = UINT32_MAX };

enum kind { KIND_FALSE, KIND_TRUE, KIND_UNARY, KIND_OPEN };

struct factor {
    const struct kp_mdd *mdd;
    unsigned char *kind; /* by node */
    uint32_t *set;       /* by node: of a unary one, the number of its set */
    uint32_t first;      /* level of the root */
    uint32_t last;       /* lowest level of an open node */
    bool active;
};

struct op { /* a rule that the parameter of a level is in */
    const struct factor *factor;
    uint32_t from; /* its cell before the level; NO_CELL: it starts there */
    uint32_t to;   /* and behind it; NO_CELL: no node of it can be open then */
};

struct copy {
    uint32_t from;
    uint32_t to;
};

struct plan {       /* of a level */
    uint32_t width; /* cells of a state before the level */
    uint32_t set;   /* cell of its set, or NO_CELL */
    struct op *ops;
    uint32_t n_ops;
    struct copy *copies; /* cells that stay as they are */
    uint32_t n_copies;
    uint32_t *fresh; /* levels whose set gets a cell behind this level */
    uint32_t n_fresh;
    uint32_t *set_to; /* by level: cell of its set behind this level */
};

struct states {
    uint32_t *cells;
    uint32_t *hash;
    size_t n;
    size_t cap_cells;
    size_t cap_hash;
    uint32_t *table; /* index + 1 */
    size_t table_cap;
};

struct product {
    const struct kp_product_input *in;
    struct kp_budget *b;
    struct kp_arena *arena;
    struct factor *factors;
    struct kp_sets *sets; /* by level */
    uint32_t *initial;    /* by level: number of the set with which it starts */
    struct kp_meets meets;
    struct plan *plans; /* by level, n_levels + 1 */
    struct states now;
    struct states next;
    uint32_t **raw;   /* by level: state * domain + value -> state of the next level */
    size_t *n_states; /* by level */
    size_t *raw_cap;
    uint32_t *cell; /* the state that is being made */
    uint32_t max_width;
    bool empty;
};

/* ---- what the factors are ---- */

static uint32_t node_level(const struct kp_mdd *m, uint32_t node)
{
    return m->level[m->node_var[node]];
}

static bool is_unary(const struct kp_mdd *m, uint32_t node)
{
    const uint32_t *row = kp_mdd_row(m, node);
    for (uint32_t v = 0; v < m->domain[m->node_var[node]]; v++)
        if (row[v] > KP_MDD_TRUE)
            return false;
    return true;
}

static bool set_of_node(struct product *p, struct factor *f, uint32_t node, uint64_t *bits)
{
    const struct kp_mdd *m = f->mdd;
    uint32_t level = node_level(m, node);
    const uint32_t *row = kp_mdd_row(m, node);
    struct kp_sets *sets = &p->sets[level];
    memset(bits, 0, sets->words * sizeof(*bits));
    for (uint32_t v = 0; v < sets->n_values; v++)
        bits[v / 64] |= (uint64_t)(row[v] == KP_MDD_TRUE) << (v % 64);
    f->set[node] = kp_sets_add(sets, p->b, bits);
    return f->set[node] != KP_MDD_NONE;
}

static bool meet_initial(struct product *p, uint32_t level, uint32_t set)
{
    if (p->initial[level] == set)
        return true;
    uint32_t id = kp_sets_meet(&p->sets[level], &p->meets, p->b, level,
                               kp_sets_pair(p->initial[level], set));
    if (id == KP_MDD_NONE)
        return false;
    p->empty |= id == KP_SET_EMPTY;
    if (id != KP_SET_EMPTY)
        p->initial[level] = id;
    return true;
}

static bool prepare_factor(struct product *p, struct factor *f, const struct kp_mdd *m,
                           uint64_t *bits)
{
    *f = (struct factor){.mdd = m};
    if (m->root <= KP_MDD_TRUE) {
        p->empty |= m->root == KP_MDD_FALSE;
        return true;
    }
    f->kind = kp_arena_alloc(p->arena, m->n_nodes, 1);
    f->set = kp_arena_alloc(p->arena, m->n_nodes, sizeof(*f->set));
    if (!f->kind || !f->set)
        return false;
    f->kind[KP_MDD_FALSE] = KIND_FALSE;
    f->kind[KP_MDD_TRUE] = KIND_TRUE;
    f->first = node_level(m, m->root);
    f->last = f->first;
    for (uint32_t node = 2; node < m->n_nodes; node++) {
        f->kind[node] = is_unary(m, node) ? KIND_UNARY : KIND_OPEN;
        if (f->kind[node] == KIND_UNARY && !set_of_node(p, f, node, bits))
            return false;
        if (f->kind[node] == KIND_OPEN && node_level(m, node) > f->last)
            f->last = node_level(m, node);
    }
    if (f->kind[m->root] == KIND_UNARY)
        return meet_initial(p, f->first, f->set[m->root]);
    f->active = true;
    return true;
}

static bool prepare_sets(struct product *p, uint64_t **bits)
{
    uint32_t words = 1;
    for (uint32_t k = 0; k < p->in->n_levels; k++) {
        if (!kp_sets_init(&p->sets[k], p->b, p->in->domain[k]))
            return false;
        words = p->sets[k].words > words ? p->sets[k].words : words;
    }
    *bits = kp_arena_alloc(p->arena, words, sizeof(**bits));
    if (!*bits)
        return false;
    for (uint32_t k = 0; k < p->in->n_levels; k++) {
        memset(*bits, 0, p->sets[k].words * sizeof(**bits));
        for (uint32_t v = 0; v < p->in->domain[k]; v++)
            (*bits)[v / 64] |= (uint64_t)1 << (v % 64);
        p->initial[k] = kp_sets_add(&p->sets[k], p->b, *bits);
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

static void find_set_users(const struct product *p, struct layout *l)
{
    for (uint32_t k = 0; k < p->in->n_levels; k++)
        l->set_first[k] = p->in->n_levels;
    for (size_t i = 0; i < p->in->n_factors; i++) {
        const struct factor *f = &p->factors[i];
        for (uint32_t node = 2; f->active && node < f->mdd->n_nodes; node++) {
            uint32_t level = node_level(f->mdd, node);
            if (f->kind[node] == KIND_UNARY && f->first < l->set_first[level])
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

static bool plan_factors(struct product *p, struct plan *plan, struct layout *l, uint32_t level)
{
    size_t n_ops = 0;
    size_t n_open = 0;
    for (size_t i = 0; i < p->in->n_factors; i++) {
        const struct factor *f = &p->factors[i];
        bool open = f->active && level >= f->first && level <= f->last;
        n_open += open;
        n_ops += open && has_level(f->mdd, level);
    }
    plan->ops = kp_arena_alloc(p->arena, n_ops + 1, sizeof(*plan->ops));
    plan->copies = kp_arena_alloc(p->arena, n_open + p->in->n_levels, sizeof(*plan->copies));
    if (!plan->ops || !plan->copies)
        return false;
    for (size_t i = 0; i < p->in->n_factors; i++) {
        const struct factor *f = &p->factors[i];
        l->factor_next[i] = NO_CELL;
        if (!f->active || level < f->first || level > f->last)
            continue;
        if (level < f->last)
            l->factor_next[i] = l->width++;
        if (has_level(f->mdd, level))
            plan->ops[plan->n_ops++] = (struct op){f, l->factor_cell[i], l->factor_next[i]};
        else
            plan->copies[plan->n_copies++] =
                (struct copy){l->factor_cell[i], l->factor_next[i]};
    }
    memcpy(l->factor_cell, l->factor_next, p->in->n_factors * sizeof(*l->factor_cell));
    return true;
}

static bool plan_sets(struct product *p, struct plan *plan, struct layout *l, uint32_t level)
{
    uint32_t n = p->in->n_levels;
    plan->fresh = kp_arena_alloc(p->arena, n, sizeof(*plan->fresh));
    plan->set_to = kp_arena_alloc(p->arena, n, sizeof(*plan->set_to));
    if (!plan->fresh || !plan->set_to)
        return false;
    plan->set = l->set_cell[level];
    for (uint32_t k = level + 1; k < n; k++) {
        plan->set_to[k] = NO_CELL;
        if (l->set_first[k] > level)
            continue;
        plan->set_to[k] = l->width++;
        if (l->set_first[k] == level)
            plan->fresh[plan->n_fresh++] = k;
        else
            plan->copies[plan->n_copies++] = (struct copy){l->set_cell[k], plan->set_to[k]};
        l->set_cell[k] = plan->set_to[k];
    }
    return true;
}

static bool make_plans(struct product *p)
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
        struct plan *plan = &p->plans[level];
        plan->width = l.width;
        l.width = 0;
        if (!plan_factors(p, plan, &l, level) || !plan_sets(p, plan, &l, level))
            return false;
        p->max_width = l.width > p->max_width ? l.width : p->max_width;
    }
    p->plans[n].width = l.width;
    return true;
}

/* ---- from level to level ---- */

static uint32_t hash_cells(const uint32_t *cells, uint32_t width)
{
    uint64_t h = width;
    for (uint32_t i = 0; i < width; i++) {
        h = (h ^ cells[i]) * 0x9e3779b97f4a7c15U;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

static bool grow_states(struct product *p, struct states *s)
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
static uint32_t add_state(struct product *p, uint32_t width)
{
    struct states *s = &p->next;
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
static inline enum step place(struct product *p, const struct plan *plan, const struct op *op,
                              uint32_t node)
{
    const struct factor *f = op->factor;
    if (f->kind[node] == KIND_UNARY) {
        uint32_t level = node_level(f->mdd, node);
        uint32_t *cell = &p->cell[plan->set_to[level]];
        if (*cell != f->set[node]) {
            *cell = kp_sets_meet(&p->sets[level], &p->meets, p->b, level,
                                 kp_sets_pair(*cell, f->set[node]));
            if (*cell >= KP_SET_EMPTY)
                return *cell == KP_MDD_NONE ? STEP_NO_MEMORY : STEP_DEAD;
        }
        node = KP_MDD_TRUE;
    }
    if (op->to != NO_CELL)
        p->cell[op->to] = node;
    return STEP_OK;
}

static enum step step_value(struct product *p, const struct plan *plan, const uint32_t *state,
                            uint32_t level, uint32_t value)
{
    for (uint32_t i = 0; i < plan->n_fresh; i++)
        p->cell[plan->set_to[plan->fresh[i]]] = p->initial[plan->fresh[i]];
    for (uint32_t i = 0; i < plan->n_copies; i++)
        p->cell[plan->copies[i].to] = state[plan->copies[i].from];
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i];
        const struct kp_mdd *m = op->factor->mdd;
        uint32_t node = op->from == NO_CELL ? m->root : state[op->from];
        if (node > KP_MDD_TRUE && node_level(m, node) == level)
            node = kp_mdd_row(m, node)[value];
        if (node == KP_MDD_FALSE)
            return STEP_DEAD;
        enum step st = place(p, plan, op, node);
        if (st != STEP_OK)
            return st;
    }
    return STEP_OK;
}

static bool expand_state(struct product *p, uint32_t level, const uint32_t *state,
                         uint32_t *row)
{
    const struct plan *plan = &p->plans[level];
    uint32_t width = p->plans[level + 1].width;
    uint32_t set = plan->set == NO_CELL ? p->initial[level] : state[plan->set];
    const uint64_t *allowed = kp_sets_get(&p->sets[level], set);
    for (uint32_t v = 0; v < p->in->domain[level]; v++) {
        row[v] = KP_MDD_NONE;
        if (!((allowed[v / 64] >> (v % 64)) & 1))
            continue;
        enum step st = step_value(p, plan, state, level, v);
        if (st == STEP_DEAD)
            continue;
        row[v] = st == STEP_OK ? add_state(p, width) : KP_MDD_NONE;
        if (row[v] == KP_MDD_NONE)
            return false;
    }
    return true;
}

static void clear_states(struct states *s)
{
    s->n = 0;
    if (s->table)
        memset(s->table, 0, s->table_cap * sizeof(*s->table));
}

static bool expand_level(struct product *p, uint32_t level)
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
    struct states t = p->now;
    p->now = p->next;
    p->next = t;
    return true;
}

static bool expand_all(struct product *p)
{
    uint32_t n = p->in->n_levels;
    if (p->empty)
        return true;
    p->cell = kp_arena_alloc(p->arena, (size_t)p->max_width + 1, sizeof(*p->cell));
    if (!p->cell || add_state(p, 0) == KP_MDD_NONE)
        return false;
    struct states t = p->now;
    p->now = p->next;
    p->next = t;
    for (uint32_t level = 0; level < n && p->now.n; level++)
        if (!expand_level(p, level))
            return false;
    p->n_states[n] = p->now.n;
    return true;
}

/* ---- from the bottom up ---- */

static uint64_t add_counts(struct kp_diagram *d, uint64_t a, uint64_t b)
{
    if (a <= UINT64_MAX - b)
        return a + b;
    d->saturated = true;
    return UINT64_MAX;
}

/* Writes the edges of a state behind those that are there; returns their number. */
static uint32_t write_edges(const struct product *p, struct kp_diagram *d, const uint32_t *row,
                            uint32_t level, const uint32_t *node_of)
{
    uint32_t n = 0;
    uint64_t before = 0;
    for (uint32_t v = 0; v < p->in->domain[level]; v++) {
        uint32_t child = row[v] == KP_MDD_NONE ? KP_MDD_NONE : node_of[row[v]];
        if (child == KP_MDD_NONE)
            continue;
        d->edges[d->n_edges + n++] = (struct kp_edge){before, child, v};
        before = add_counts(d, before, d->count[child]);
    }
    d->count[d->n_nodes] = before;
    return n;
}

static bool same_edges(const struct kp_diagram *d, uint32_t node, const struct kp_edge *e,
                       uint32_t n)
{
    return d->first_edge[node + 1] - d->first_edge[node] == n &&
           memcmp(&d->edges[d->first_edge[node]], e, n * sizeof(*e)) == 0;
}

static bool reserve_nodes(struct product *p, struct kp_diagram *d, uint32_t domain)
{
    void *q = kp_budget_grow(p->b, d->first_edge, &d->cap_nodes, (size_t)d->n_nodes + 2,
                             sizeof(*d->first_edge));
    if (!q)
        return false;
    d->first_edge = q;
    q = kp_budget_grow(p->b, d->count, &d->cap_counts, (size_t)d->n_nodes + 1,
                       sizeof(*d->count));
    if (!q)
        return false;
    d->count = q;
    size_t n = (size_t)d->n_edges + domain;
    if (n >= UINT32_MAX) {
        p->b->over = true;
        return false;
    }
    q = kp_budget_grow(p->b, d->edges, &d->cap_edges, n, sizeof(*d->edges));
    if (!q)
        return false;
    d->edges = q;
    return true;
}

/* node_of[state] for a level, from that of the next level. */
static bool reduce_level(struct product *p, struct kp_diagram *d, uint32_t level,
                         const uint32_t *next, uint32_t *node_of)
{
    uint32_t domain = p->in->domain[level];
    size_t n = p->n_states[level];
    size_t cap = 16;
    while (cap < 2 * n)
        cap *= 2;
    uint32_t *table = kp_budget_calloc(p->b, cap, sizeof(*table));
    if (!table)
        return false;
    bool ok = true;
    d->first_node[level] = d->n_nodes;
    for (size_t i = 0; i < n && ok; i++) {
        ok = reserve_nodes(p, d, domain);
        if (!ok)
            break;
        uint32_t n_edges = write_edges(p, d, p->raw[level] + i * domain, level, next);
        node_of[i] = KP_MDD_NONE;
        if (n_edges == 0)
            continue;
        const struct kp_edge *e = d->edges + d->n_edges;
        size_t at = (size_t)kp_hash64(e, n_edges * sizeof(*e), 0) & (cap - 1);
        while (table[at] && !same_edges(d, table[at], e, n_edges))
            at = (at + 1) & (cap - 1);
        if (!table[at]) {
            table[at] = d->n_nodes++;
            d->n_edges += n_edges;
            d->first_edge[d->n_nodes] = d->n_edges;
        }
        node_of[i] = table[at];
    }
    d->width[level] = d->n_nodes - d->first_node[level];
    kp_budget_free(p->b, table, cap * sizeof(*table));
    return ok;
}

static bool start_diagram(struct product *p, struct kp_diagram *d)
{
    uint32_t n = p->in->n_levels;
    d->n_levels = n;
    d->domain = kp_budget_calloc(p->b, (size_t)n + 1, sizeof(*d->domain));
    d->first_node = kp_budget_calloc(p->b, (size_t)n + 1, sizeof(*d->first_node));
    d->width = kp_budget_calloc(p->b, (size_t)n + 1, sizeof(*d->width));
    if (!d->domain || !d->first_node || !d->width || !reserve_nodes(p, d, 0))
        return false;
    if (n)
        memcpy(d->domain, p->in->domain, n * sizeof(*d->domain));
    d->n_nodes = 1;
    d->count[0] = 1;
    d->first_edge[0] = 0;
    d->first_edge[1] = 0;
    d->width[n] = 1;
    return true;
}

/* Gives back what growing left over; a failure to do so is none. */
static void shrink(struct product *p, struct kp_diagram *d)
{
    size_t n_edges = d->n_edges ? d->n_edges : 1;
    void *q = kp_budget_resize(p->b, d->edges, d->cap_edges * sizeof(*d->edges),
                               n_edges * sizeof(*d->edges));
    if (q) {
        d->edges = q;
        d->cap_edges = n_edges;
    }
}

static bool reduce_all(struct product *p, struct kp_diagram *d)
{
    uint32_t n = p->in->n_levels;
    uint32_t end = 0;
    uint32_t *next = &end;
    size_t next_bytes = 0;
    bool ok = start_diagram(p, d);
    if (!ok || p->n_states[n] == 0)
        return ok;
    for (uint32_t level = n; ok && level-- > 0;) {
        size_t bytes = p->n_states[level] * sizeof(uint32_t);
        uint32_t *node_of = kp_budget_calloc(p->b, bytes, 1);
        ok = node_of && reduce_level(p, d, level, next, node_of);
        if (next != &end)
            kp_budget_free(p->b, next, next_bytes);
        next = node_of;
        next_bytes = bytes;
        kp_budget_free(p->b, p->raw[level], p->raw_cap[level] * sizeof(uint32_t));
        p->raw[level] = NULL;
    }
    if (ok) {
        d->root = next[0];
        shrink(p, d);
    }
    if (next != &end)
        kp_budget_free(p->b, next, next_bytes);
    return ok;
}

static void free_states(struct product *p, struct states *s)
{
    kp_budget_free(p->b, s->cells, s->cap_cells * sizeof(*s->cells));
    kp_budget_free(p->b, s->hash, s->cap_hash * sizeof(*s->hash));
    kp_budget_free(p->b, s->table, s->table_cap * sizeof(*s->table));
    *s = (struct states){0};
}

static void release(struct product *p)
{
    uint32_t n = p->in->n_levels;
    free_states(p, &p->now);
    free_states(p, &p->next);
    for (uint32_t k = 0; p->raw && p->raw_cap && k < n; k++)
        kp_budget_free(p->b, p->raw[k], p->raw_cap[k] * sizeof(uint32_t));
    for (uint32_t k = 0; p->sets && k < n; k++)
        kp_sets_deinit(&p->sets[k], p->b);
    kp_meets_deinit(&p->meets, p->b);
}

static bool prepare(struct product *p)
{
    size_t n = (size_t)p->in->n_levels + 1;
    uint64_t *bits = NULL;
    p->factors = kp_arena_alloc(p->arena, p->in->n_factors + 1, sizeof(*p->factors));
    p->sets = kp_arena_alloc(p->arena, n, sizeof(*p->sets));
    p->initial = kp_arena_alloc(p->arena, n, sizeof(*p->initial));
    p->plans = kp_arena_alloc(p->arena, n, sizeof(*p->plans));
    p->raw = kp_arena_alloc(p->arena, n, sizeof(uint32_t *));
    p->raw_cap = kp_arena_alloc(p->arena, n, sizeof(*p->raw_cap));
    p->n_states = kp_arena_alloc(p->arena, n, sizeof(*p->n_states));
    if (p->arena->failed || !prepare_sets(p, &bits))
        return false;
    for (size_t i = 0; i < p->in->n_factors; i++)
        if (!prepare_factor(p, &p->factors[i], p->in->factors[i], bits))
            return false;
    return p->empty || make_plans(p);
}

bool kp_diagram_product(const struct kp_product_input *in, struct kp_budget *b,
                        struct kp_diagram *out)
{
    struct kp_arena arena = KP_ARENA_INIT(b->max - b->used);
    struct product p = {.in = in, .b = b, .arena = &arena};
    size_t charged = 0;
    *out = (struct kp_diagram){.root = KP_MDD_NONE};
    bool ok = prepare(&p);
    if (ok && kp_budget_charge(b, arena.used)) {
        charged = arena.used;
        ok = expand_all(&p);
        free_states(&p, &p.now);
        free_states(&p, &p.next);
        ok = ok && reduce_all(&p, out);
    } else {
        kp_budget_blame(b, &arena);
        ok = false;
    }
    release(&p);
    b->used -= charged;
    kp_arena_deinit(&arena);
    if (!ok)
        kp_diagram_deinit(out, b);
    return ok;
}
