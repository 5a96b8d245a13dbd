/* SPDX-License-Identifier: MIT */
#include "space/residual_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEARCH_BACK = 256 }; /* nodes looked through for an equal one */

struct kp_cell kp_cell_from(struct kp_value v)
{
    struct kp_cell c = {0, (uint32_t)v.type, 0};
    switch (v.type) {
    case KP_INT:
        c.bits = (uint64_t)v.as.i;
        break;
    case KP_FLOAT:
        memcpy(&c.bits, &v.as.f, sizeof(c.bits));
        break;
    case KP_BOOL:
        c.bits = v.as.b;
        break;
    case KP_STRING:
        memcpy(&c.bits, &v.as.s.ptr, sizeof(v.as.s.ptr));
        c.len = (uint32_t)v.as.s.len;
        break;
    }
    return c;
}

struct kp_value kp_cell_value(struct kp_cell c)
{
    struct kp_value v = {.type = (enum kp_type)c.type};
    switch (v.type) {
    case KP_INT:
        v.as.i = (int64_t)c.bits;
        break;
    case KP_FLOAT:
        memcpy(&v.as.f, &c.bits, sizeof(c.bits));
        break;
    case KP_BOOL:
        v.as.b = c.bits != 0;
        break;
    case KP_STRING:
        memcpy(&v.as.s.ptr, &c.bits, sizeof(v.as.s.ptr));
        v.as.s.len = c.len;
        break;
    }
    return v;
}

struct lowering {
    struct kp_program *p;
    const struct kp_residual_input *in;
    uint32_t var_of_param[KP_PARAMS_MAX];
};

struct operand {
    uint32_t node;
    bool negative;
};
struct operands {
    struct operand *items;
    size_t n;
    size_t cap;
};

static bool same_node(const struct kp_rnode *a, const struct kp_rnode *b)
{
    if (a->shape.op != b->shape.op || a->shape.func != b->shape.func ||
        a->shape.operand != b->shape.operand || a->n_args != b->n_args ||
        a->n_args != a->shape.n_args)
        return false;
    if (a->shape.op == KP_OP_CONST)
        return memcmp(&a->value, &b->value, sizeof(a->value)) == 0;
    return memcmp(a->args, b->args, a->n_args * sizeof(*a->args)) == 0;
}

/* The node, or one that is equal to it. */
static uint32_t add_node(struct kp_program *p, const struct kp_rnode *n)
{
    uint32_t from = p->n_nodes > SEARCH_BACK ? p->n_nodes - SEARCH_BACK : 0;
    for (uint32_t i = from; n->shape.op != KP_OP_VAR && i < p->n_nodes; i++)
        if (same_node(&p->nodes[i], n))
            return i;
    if (p->n_nodes == p->cap_nodes) {
        uint32_t cap = p->cap_nodes ? 2 * p->cap_nodes : 32;
        struct kp_rnode *nodes = kp_arena_alloc(p->arena, cap, sizeof(*nodes));
        if (!nodes)
            return KP_MDD_NONE;
        if (p->n_nodes)
            memcpy(nodes, p->nodes, p->n_nodes * sizeof(*nodes));
        p->nodes = nodes;
        p->cap_nodes = cap;
    }
    p->nodes[p->n_nodes] = *n;
    return p->n_nodes++;
}

static uint32_t add_constant(struct kp_program *p, struct kp_value v)
{
    struct kp_rnode n = {.value = kp_cell_from(v), .bounds = kp_bounds_value(v), .n_values = 1};
    n.types = (unsigned char)(1U << v.type);
    n.shape.op = KP_OP_CONST;
    n.shape.value = v;
    return add_node(p, &n);
}

static bool is_lazy(const struct kp_expr *shape)
{
    return shape->op == KP_OP_AND || shape->op == KP_OP_OR || shape->op == KP_OP_COND ||
           (shape->op == KP_OP_IN && shape->n_args > 2);
}

/* An operation over nodes. `args` is copied. */
static uint32_t add_operation(struct kp_program *p, const struct kp_expr *shape,
                              const uint32_t *args, uint32_t n, unsigned char types)
{
    struct kp_rnode node = {.shape = *shape, .types = types, .n_values = 1};
    uint32_t *copy = kp_arena_alloc(p->arena, n, sizeof(*copy));
    struct kp_bounds *bounds = kp_arena_alloc(p->arena, n, sizeof(*bounds));
    if (!copy || !bounds)
        return KP_MDD_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (args[i] == KP_MDD_NONE)
            return KP_MDD_NONE;
        const struct kp_rnode *a = &p->nodes[args[i]];
        copy[i] = args[i];
        bounds[i] = a->bounds;
        node.level = a->level > node.level ? a->level : node.level;
        node.lazy |= a->lazy;
        node.n_values *= a->n_values;
    }
    node.n_args = n;
    node.shape.n_args = n;
    node.args = copy;
    node.bounds = kp_bounds_of(&node.shape, bounds, types);
    if (node.bounds.hi - node.bounds.lo < node.n_values && types == KP_TYPES_INT)
        node.n_values = node.bounds.hi - node.bounds.lo + 1;
    node.lazy = node.level > 0 && (node.lazy || is_lazy(shape));
    p->max_args = n > p->max_args ? n : p->max_args;
    return add_node(p, &node);
}

static uint32_t add_binary(struct kp_program *p, enum kp_op op, uint32_t a, uint32_t b)
{
    struct kp_expr shape = {.op = op};
    return add_operation(p, &shape, (uint32_t[2]){a, b}, 2, KP_TYPES_INT);
}

static uint32_t lower(struct lowering *l, const struct kp_term *t);

static bool push_operand(struct lowering *l, struct operands *o, uint32_t node, bool negative)
{
    if (node == KP_MDD_NONE)
        return false;
    if (o->n == o->cap) {
        size_t cap = o->cap ? 2 * o->cap : 8;
        struct operand *items = kp_arena_alloc(l->p->arena, cap, sizeof(*items));
        if (!items)
            return false;
        if (o->n)
            memcpy(items, o->items, o->n * sizeof(*items));
        o->items = items;
        o->cap = cap;
    }
    /* Kept sorted by level; equal ones in the order in which they came. */
    size_t at = o->n++;
    while (at > 0 && l->p->nodes[o->items[at - 1].node].level > l->p->nodes[node].level) {
        o->items[at] = o->items[at - 1];
        at--;
    }
    o->items[at] = (struct operand){node, negative};
    return true;
}

static uint32_t lower_chain(struct lowering *l, const struct kp_term *t, uint32_t modulus,
                            bool *done);

struct gathering {
    struct lowering *l;
    struct operands operands;
    uint32_t modulus;
};

/* Of a chain within a chain the remainder is enough as well; where it is not negative, that is
 * no larger than the chain itself, and nothing overflows that did not before. */
static bool takes_remainder(const struct kp_program *p, const struct kp_term *t,
                            uint32_t modulus)
{
    enum kp_chain kind = kp_term_chain(t);
    return modulus != KP_MDD_NONE && (kind == KP_CHAIN_SUM || kind == KP_CHAIN_PRODUCT) &&
           t->bounds.lo >= 0 && t->bounds.hi >= p->nodes[modulus].bounds.hi;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static bool gather(void *user, const struct kp_term *operand, bool negative)
{
    struct gathering *g = user;
    bool done = false;
    uint32_t node = KP_MDD_NONE;
    if (takes_remainder(g->l->p, operand, g->modulus))
        node = lower_chain(g->l, operand, g->modulus, &done);
    else
        node = lower(g->l, operand);
    return push_operand(g->l, &g->operands, node, negative);
}

/* May partial results be reduced modulo `m`? A remainder can be larger than what it is of. */
static bool may_reduce(const struct kp_program *p, const struct operands *o, double m)
{
    for (size_t i = 0; i < o->n; i++) {
        struct kp_bounds b = p->nodes[o->items[i].node].bounds;
        if (!(m * fmax(1, fmax(fabs(b.lo), fabs(b.hi))) < KP_INT_LIMIT))
            return false;
    }
    return true;
}

/* `modulus`: KP_MDD_NONE, or a node; then the chain's remainder is the result. */
static uint32_t chain(struct lowering *l, const struct operands *o, enum kp_op op,
                      enum kp_func func, uint32_t modulus)
{
    struct kp_program *p = l->p;
    uint32_t acc = o->items[0].node;
    bool remainder = modulus != KP_MDD_NONE;
    bool reduce = remainder && may_reduce(p, o, p->nodes[modulus].bounds.hi);
    struct kp_expr shape = {.op = op, .func = func};
    if (o->items[0].negative)
        acc = add_operation(p, &(struct kp_expr){.op = KP_OP_NEG}, &acc, 1, KP_TYPES_INT);
    for (size_t i = 1; i < o->n && acc != KP_MDD_NONE; i++) {
        uint32_t next = o->items[i].node;
        shape.op = o->items[i].negative ? KP_OP_SUB : op;
        acc = add_operation(p, &shape, (uint32_t[2]){acc, next}, 2, KP_TYPES_INT);
        if (acc != KP_MDD_NONE && (reduce || (remainder && i + 1 == o->n)))
            acc = add_binary(p, KP_OP_MOD, acc, modulus);
    }
    return acc;
}

/* A chain that was flattened, or KP_MDD_NONE with *done false where it cannot be. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static uint32_t lower_chain(struct lowering *l, const struct kp_term *t, uint32_t modulus,
                            bool *done)
{
    struct gathering g = {.l = l, .modulus = modulus};
    struct kp_chain_visitor v = {gather, &g};
    enum kp_chain kind = kp_term_chain(t);
    *done = kind != KP_CHAIN_NONE;
    if (kind == KP_CHAIN_NONE || !kp_term_operands(t, kind, false, &v))
        return KP_MDD_NONE;
    enum kp_op op = kind == KP_CHAIN_SUM ? KP_OP_ADD : t->e.op;
    return chain(l, &g.operands, op, t->e.func, modulus);
}

/* (a*b*c) % 32: only the remainders of the partial products matter. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static uint32_t lower_remainder(struct lowering *l, const struct kp_term *t, bool *done)
{
    const struct kp_expr *divisor = t->e.args[1];
    const struct kp_term *dividend = kp_term_arg(t, 0);
    enum kp_chain kind = kp_term_chain(dividend);
    *done = false;
    if (divisor->op != KP_OP_CONST || divisor->value.type != KP_INT ||
        divisor->value.as.i <= 0 || (kind != KP_CHAIN_SUM && kind != KP_CHAIN_PRODUCT))
        return KP_MDD_NONE;
    uint32_t modulus = add_constant(l->p, divisor->value);
    return modulus == KP_MDD_NONE ? modulus : lower_chain(l, dividend, modulus, done);
}

static uint32_t lower_variable(struct lowering *l, const struct kp_term *t)
{
    struct kp_program *p = l->p;
    uint32_t var = l->var_of_param[t->e.slot];
    if (p->var_node[var] != KP_MDD_NONE)
        return p->var_node[var];
    struct kp_rnode n = {.level = var + 1, .var = var, .types = t->types, .bounds = t->bounds};
    n.shape.op = KP_OP_VAR;
    n.n_values = l->in->params[t->e.slot].n_values;
    p->var_node[var] = add_node(p, &n);
    return p->var_node[var];
}

static bool is_constant_list(const struct kp_term *t)
{
    if (t->e.op != KP_OP_IN)
        return false;
    for (size_t i = 1; i < t->e.n_args; i++)
        if (t->e.args[i]->op != KP_OP_CONST)
            return false;
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A needle among constants; where they are all integers, they are sorted for a quick look. */
static uint32_t add_membership(struct kp_program *p, const struct kp_term *t, uint32_t needle)
{
    size_t n = t->e.n_args - 1;
    uint32_t *args = kp_arena_alloc(p->arena, 1, sizeof(*args));
    int64_t *list = kp_arena_alloc(p->arena, n, sizeof(*list));
    if (needle == KP_MDD_NONE || !args || !list)
        return KP_MDD_NONE;
    args[0] = needle;
    const struct kp_rnode *a = &p->nodes[needle];
    struct kp_rnode node = {.shape = t->e, .types = t->types, .bounds = t->bounds};
    node.args = args;
    node.n_args = 1;
    node.level = a->level;
    node.lazy = a->lazy;
    node.n_values = 2;
    bool whole = true;
    for (size_t i = 0; i < n; i++) {
        struct kp_value v = t->e.args[i + 1]->value;
        whole = whole && v.type == KP_INT;
        list[i] = whole ? v.as.i : 0;
    }
    if (whole) {
        qsort(list, n, sizeof(*list), by_value);
        node.list = list;
        node.n_list = n;
    }
    return add_node(p, &node);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static uint32_t lower(struct lowering *l, const struct kp_term *t)
{
    bool done = false;
    if (t->e.op == KP_OP_CONST)
        return add_constant(l->p, t->e.value);
    if (t->e.op == KP_OP_VAR)
        return lower_variable(l, t);
    uint32_t node = t->e.op == KP_OP_MOD ? lower_remainder(l, t, &done)
                                         : lower_chain(l, t, KP_MDD_NONE, &done);
    if (done)
        return node;
    if (is_constant_list(t))
        return add_membership(l->p, t, lower(l, kp_term_arg(t, 0)));
    uint32_t *args = kp_arena_alloc(l->p->arena, t->e.n_args, sizeof(*args));
    if (!args)
        return KP_MDD_NONE;
    for (size_t i = 0; i < t->e.n_args; i++)
        args[i] = lower(l, kp_term_arg(t, i));
    return add_operation(l->p, &t->e, args, t->e.n_args, t->types);
}

/* ---- what follows from the levels ---- */

static const struct kp_expr zero = {.op = KP_OP_CONST, .value = {KP_INT, {.i = 0}}};

/* Arguments that are set before each evaluation; constants of a list stay where they are. */
static bool make_holders(struct kp_program *p)
{
    p->failing = kp_arena_alloc(p->arena, 2, sizeof(struct kp_expr *));
    if (!p->failing)
        return false;
    p->failing[0] = &zero;
    p->failing[1] = &zero;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        struct kp_rnode *n = &p->nodes[i];
        if (n->n_args == 0)
            continue;
        const struct kp_expr **args =
            kp_arena_alloc(p->arena, n->shape.n_args, sizeof(struct kp_expr *));
        n->holders = kp_arena_alloc(p->arena, n->n_args, sizeof(*n->holders));
        if (!args || !n->holders)
            return false;
        for (uint32_t k = 0; k < n->shape.n_args; k++)
            args[k] = k < n->n_args ? &n->holders[k] : n->shape.args[k];
        for (uint32_t k = 0; k < n->n_args; k++)
            n->holders[k] = (struct kp_expr){.op = KP_OP_CONST};
        n->shape.args = args;
    }
    return true;
}

static bool alloc_levels(struct kp_program *p, struct kp_levels **out)
{
    *out = kp_arena_alloc(p->arena, (size_t)p->n_vars + 1, sizeof(**out));
    return *out != NULL;
}

static bool push_level(struct kp_program *p, struct kp_levels *l, uint32_t node)
{
    if (!l->nodes)
        l->nodes = kp_arena_alloc(p->arena, p->n_nodes, sizeof(*l->nodes));
    if (!l->nodes)
        return false;
    l->nodes[l->n++] = node;
    return true;
}

static bool make_levels(struct kp_program *p)
{
    /* By node: the highest level of its users. */
    uint32_t *used = kp_arena_alloc(p->arena, p->n_nodes, sizeof(*used));
    if (!used || !alloc_levels(p, &p->compute) || !alloc_levels(p, &p->cut) ||
        !alloc_levels(p, &p->open))
        return false;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const struct kp_rnode *n = &p->nodes[i];
        for (uint32_t k = 0; k < n->n_args; k++)
            if (n->level > used[n->args[k]])
                used[n->args[k]] = n->level;
        if (n->n_args && !push_level(p, &p->compute[n->level], i))
            return false;
    }
    for (uint32_t level = 0; level < p->n_vars; level++)
        for (uint32_t i = 0; i < p->n_nodes; i++) {
            const struct kp_rnode *n = &p->nodes[i];
            if (n->level > level && !push_level(p, &p->open[level], i))
                return false;
            if (n->level > 0 && n->level <= level && used[i] > level &&
                !push_level(p, &p->cut[level], i))
                return false;
        }
    return true;
}

static void set_directions(struct kp_program *p, struct kp_bounds *bounds)
{
    enum { UNSET = 2 };
    for (uint32_t i = 0; i < p->n_nodes; i++)
        p->nodes[i].direction = UNSET;
    struct kp_rnode *root = &p->nodes[p->root];
    root->direction = p->regular && root->bounds.lo >= 0 ? 1 : 0;
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const struct kp_rnode *n = &p->nodes[i];
        if (n->direction == UNSET) /* nothing uses it */
            continue;
        for (uint32_t k = 0; k < n->n_args; k++)
            bounds[k] = p->nodes[n->args[k]].bounds;
        for (uint32_t k = 0; k < n->n_args; k++) {
            int d = n->direction;
            if (d)
                d *= kp_bounds_direction(&n->shape, bounds, n->types, k);
            struct kp_rnode *a = &p->nodes[n->args[k]];
            a->direction = a->direction == UNSET || a->direction == d ? d : 0;
        }
    }
}

/* The value with the most possible values becomes the one that intervals are kept of. */
static bool choose_scalars(struct kp_program *p)
{
    p->scalar = kp_arena_alloc(p->arena, (size_t)p->n_vars + 1, sizeof(*p->scalar));
    if (!p->scalar)
        return false;
    for (uint32_t level = 0; level <= p->n_vars; level++) {
        double most = 0;
        p->scalar[level] = KP_MDD_NONE;
        for (uint32_t i = 0; i < p->cut[level].n; i++) {
            const struct kp_rnode *n = &p->nodes[p->cut[level].nodes[i]];
            bool number = n->types == KP_TYPES_INT || n->types == KP_TYPES_FLOAT;
            if (number && (n->direction == 1 || n->direction == -1) && n->n_values > most) {
                most = n->n_values;
                p->scalar[level] = p->cut[level].nodes[i];
            }
        }
    }
    return true;
}

static bool choose_variables(struct lowering *l, const struct kp_term *atom)
{
    struct kp_program *p = l->p;
    p->param = kp_arena_alloc(p->arena, l->in->n_params, sizeof(*p->param));
    p->var_node = kp_arena_alloc(p->arena, l->in->n_params, sizeof(*p->var_node));
    if (!p->param || !p->var_node)
        return false;
    for (size_t level = 0; level < l->in->n_params; level++) {
        uint32_t param = l->in->order[level];
        if (!kp_varset_has(&atom->vars, param))
            continue;
        l->var_of_param[param] = p->n_vars;
        p->var_node[p->n_vars] = KP_MDD_NONE;
        p->param[p->n_vars++] = param;
    }
    return true;
}

bool kp_program_build(struct kp_program *p, const struct kp_residual_input *in,
                      const struct kp_term *atom, struct kp_arena *arena)
{
    struct lowering l = {.p = p, .in = in};
    *p = (struct kp_program){.arena = arena, .regular = !atom->may_fail};
    if (!choose_variables(&l, atom))
        return false;
    p->root = lower(&l, atom);
    if (p->root == KP_MDD_NONE || !make_holders(p) || !make_levels(p))
        return false;
    struct kp_bounds *bounds = kp_arena_alloc(arena, (size_t)p->max_args + 1, sizeof(*bounds));
    if (!bounds)
        return false;
    set_directions(p, bounds);
    return choose_scalars(p);
}
