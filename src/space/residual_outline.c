/* SPDX-License-Identifier: MIT */
#include "space/residual.h"

#include <string.h>

enum { UNIT = 1 << 16 };

uint32_t kp_log2_units(uint64_t n)
{
    uint32_t whole = 63U - (uint32_t)__builtin_clzll(n | 1);
    uint64_t rest = n - ((uint64_t)1 << whole);
    rest = whole > 32 ? rest >> (whole - 16) : (rest << 16) >> whole;
    return n ? whole * UNIT + (uint32_t)rest : 0;
}

struct outlining {
    struct kp_outline *o;
    const uint32_t *log_domain;
    struct kp_arena *arena;
    uint32_t cap_nodes;
    uint32_t n_children;
    uint32_t cap_children;
    bool failed;
};

struct list { /* nodes that wait for their parent */
    struct outlining *in;
    uint32_t cap_log; /* chains among them have no more values, for only remainders matter */
    uint32_t *items;
    uint32_t n;
    uint32_t cap;
};

static void *grown(struct kp_arena *arena, const void *old, uint32_t n, uint32_t *cap,
                   size_t size)
{
    uint32_t want = *cap ? 2 * *cap : 16;
    void *p = kp_arena_alloc(arena, want, size);
    if (p && n)
        memcpy(p, old, n * size);
    if (p)
        *cap = want;
    return p;
}

static bool list_add(struct list *l, uint32_t node)
{
    if (l->n == l->cap) {
        uint32_t *p = grown(l->in->arena, l->items, l->n, &l->cap, sizeof(*p));
        if (!p)
            return false;
        l->items = p;
    }
    l->items[l->n++] = node;
    return true;
}

static bool is_constant(const struct kp_term *t)
{
    for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++)
        if (t->vars.w[w])
            return false;
    return true;
}

/* As many as the parts can combine to, and no more than the range of a whole number holds. Some
 * combinations of a chain coincide: half a bit is taken off for each, so that to join two
 * values counts as better than to keep both. */
static uint32_t values_of(const struct outlining *in, const struct kp_term *t,
                          const struct list *children, bool chain)
{
    uint64_t log_n = 0;
    double range = t->bounds.hi - t->bounds.lo + 1;
    for (uint32_t i = 0; i < children->n; i++)
        log_n += in->o->nodes[children->items[i]].log_n;
    uint64_t joined = chain && children->n > 1 ? (uint64_t)(children->n - 1) * (UNIT / 2) : 0;
    log_n -= log_n > joined ? joined : 0;
    if (t->types == KP_TYPES_BOOL)
        range = 2;
    else if (t->types != KP_TYPES_INT)
        range = 0x1p63;
    if (range < 0x1p62 && kp_log2_units((uint64_t)range) < log_n)
        log_n = kp_log2_units((uint64_t)range);
    return log_n > UINT32_MAX ? UINT32_MAX : (uint32_t)log_n;
}

static bool add_node(struct outlining *in, const struct kp_outline_node *n,
                     const struct list *children)
{
    struct kp_outline *o = in->o;
    if (o->n_nodes == in->cap_nodes) {
        struct kp_outline_node *p =
            grown(in->arena, o->nodes, o->n_nodes, &in->cap_nodes, sizeof(*p));
        if (!p)
            return false;
        o->nodes = p;
    }
    while (in->n_children + children->n > in->cap_children) {
        uint32_t *p =
            grown(in->arena, o->children, in->n_children, &in->cap_children, sizeof(*p));
        if (!p)
            return false;
        o->children = p;
    }
    o->nodes[o->n_nodes] = *n;
    o->nodes[o->n_nodes].first_child = in->n_children;
    o->nodes[o->n_nodes++].n_children = children->n;
    for (uint32_t i = 0; i < children->n; i++)
        o->children[in->n_children++] = children->items[i];
    return true;
}

static bool outline(struct outlining *in, const struct kp_term *t, uint32_t cap_log);

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static bool outline_child(void *user, const struct kp_term *t, bool negative)
{
    struct list *l = user;
    (void)negative;
    return is_constant(t) ||
           (outline(l->in, t, l->cap_log) && list_add(l, l->in->o->n_nodes - 1));
}

/* Adds the node of `t`, which is no constant, behind those of its parts. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static bool outline(struct outlining *in, const struct kp_term *t, uint32_t cap_log)
{
    struct list children = {.in = in, .cap_log = UINT32_MAX};
    struct kp_chain_visitor v = {outline_child, &children};
    enum kp_chain chain = kp_term_chain(t);
    struct kp_outline_node n = {.vars = t->vars, .chain = chain != KP_CHAIN_NONE};
    if (t->e.op == KP_OP_VAR) {
        n.log_n = in->log_domain[t->e.slot];
        return add_node(in, &n, &children);
    }
    if (chain == KP_CHAIN_SUM || chain == KP_CHAIN_PRODUCT)
        children.cap_log = cap_log;
    if (t->e.op == KP_OP_MOD && t->e.args[1]->op == KP_OP_CONST && t->bounds.hi > 0 &&
        t->bounds.hi < KP_INT_LIMIT) /* a remainder by 0 may be anything */
        children.cap_log = kp_log2_units((uint64_t)t->bounds.hi + 1);
    if (n.chain) {
        if (!kp_term_operands(t, chain, false, &v))
            return false;
    } else {
        for (size_t i = 0; i < t->e.n_args; i++)
            if (!outline_child(&children, kp_term_arg(t, i), false))
                return false;
    }
    n.log_n = values_of(in, t, &children, n.chain);
    if (n.chain && n.log_n > cap_log)
        n.log_n = cap_log;
    return add_node(in, &n, &children);
}

bool kp_outline_build(struct kp_outline *o, const struct kp_term *atom,
                      const uint32_t *log_domain, struct kp_arena *arena)
{
    struct outlining in = {.o = o, .log_domain = log_domain, .arena = arena};
    *o = (struct kp_outline){0};
    if (is_constant(atom))
        return true;
    if (!outline(&in, atom, UINT32_MAX))
        return false;
    o->states = kp_arena_alloc(arena, o->n_nodes, sizeof(*o->states));
    o->largest = kp_arena_alloc(arena, o->n_nodes, sizeof(*o->largest));
    return o->states && o->largest;
}

enum cover { COVER_NONE, COVER_SOME, COVER_ALL };

static enum cover covered(const struct kp_varset *vars, const struct kp_varset *known)
{
    bool some = false;
    bool all = true;
    for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++) {
        some |= (vars->w[w] & known->w[w]) != 0;
        all &= (vars->w[w] & ~known->w[w]) == 0;
    }
    return all ? COVER_ALL : some ? COVER_SOME : COVER_NONE;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void set_states(struct kp_outline *o, uint32_t node, const struct kp_varset *known)
{
    const struct kp_outline_node *n = &o->nodes[node];
    uint64_t merged = 0; /* operands that a chain holds as one value */
    uint64_t apart = 0;
    uint32_t largest = 0;
    enum cover c = covered(&n->vars, known);
    for (uint32_t i = 0; c == COVER_SOME && i < n->n_children; i++) {
        uint32_t child = o->children[n->first_child + i];
        if (n->chain && covered(&o->nodes[child].vars, known) == COVER_ALL) {
            merged += o->states[child];
            continue;
        }
        apart += o->states[child];
        largest = larger(largest, o->largest[child]);
    }
    if (c == COVER_ALL)
        merged = n->log_n;
    merged = merged < n->log_n ? merged : n->log_n;
    apart += merged;
    o->largest[node] = larger(largest, (uint32_t)merged);
    o->states[node] = apart > UINT32_MAX ? UINT32_MAX : (uint32_t)apart;
}

uint64_t kp_outline_log_states(struct kp_outline *o, const struct kp_varset *known,
                               uint64_t *largest)
{
    *largest = 0;
    if (o->n_nodes == 0)
        return 0;
    for (uint32_t i = 0; i < o->n_nodes; i++)
        set_states(o, i, known);
    *largest = o->largest[o->n_nodes - 1];
    return o->states[o->n_nodes - 1];
}
