/* SPDX-License-Identifier: MIT */
/* Decision diagrams of rules and of a whole space. Layer: space.
 *
 * Life of a space: rules are cut into atoms (residual.h); kp_order_choose() orders the
 * parameters; each atom becomes a reduced diagram over its own parameters (struct kp_mdd); the
 * product of those, level by level, is the space's diagram (struct kp_diagram). */
#ifndef KP_SPACE_DIAGRAM_H
#define KP_SPACE_DIAGRAM_H

#include "base/arena.h"
#include "base/error.h"
#include "space/space.h"

/* Memory and work with limits: a failure can say which of them it was, or neither. */
struct kp_budget {
    size_t used;
    size_t peak;
    size_t max;
    bool over;          /* a request went over max */
    uint64_t steps;     /* transitions from one state to another */
    uint64_t max_steps; /* 0: no limit */
};

static inline bool kp_budget_step(struct kp_budget *b)
{
    return ++b->steps <= b->max_steps || b->max_steps == 0;
}

/* Like realloc, `old` bytes before and `bytes` after; NULL on failure, and `p` is as before.
 * New bytes are not cleared. */
void *kp_budget_resize(struct kp_budget *b, void *p, size_t old, size_t bytes);
/* Zeroed memory for n objects. */
void *kp_budget_calloc(struct kp_budget *b, size_t n, size_t size);
void kp_budget_free(struct kp_budget *b, void *p, size_t bytes);
/* An array of *cap elements of `size` bytes that must hold `need`: grown in large steps. */
void *kp_budget_grow(struct kp_budget *b, void *p, size_t *cap, size_t need, size_t size);
/* Count memory that was taken elsewhere; false when it is too much. */
bool kp_budget_charge(struct kp_budget *b, size_t bytes);
/* Set `over` when it was its limit that made an arena fail. */
void kp_budget_blame(struct kp_budget *b, const struct kp_arena *arena);
/* KOPT_ERANGE when a limit was reached, else KOPT_ENOMEM, with the message. */
kopt_status kp_budget_error(const struct kp_budget *b, kopt_error *err);

struct kp_varset {
    uint64_t w[KP_PARAMS_MAX / 64];
};

static inline bool kp_varset_has(const struct kp_varset *s, size_t i)
{
    return (s->w[i / 64] >> (i % 64)) & 1;
}

static inline void kp_varset_add(struct kp_varset *s, size_t i)
{
    s->w[i / 64] |= (uint64_t)1 << (i % 64);
}

enum { KP_MDD_FALSE, KP_MDD_TRUE };
#define KP_MDD_NONE UINT32_MAX

/* A reduced diagram: nodes with equal children are one node, a node whose children are all the
 * same does not exist, so that two nodes are the same function only if they are the same node.
 * Node ids 0 and 1 are the terminals. A node with terminals alone for children is unary: it is
 * the set of the values that lead to true. */
struct kp_mdd {
    uint32_t n_vars;
    uint32_t *level;  /* by variable: its level in the space's order, ascending */
    uint32_t *domain; /* by variable: number of values */
    uint32_t n_nodes;
    uint32_t *node_var; /* by node: index into `level`; n_vars for terminals */
    size_t *row;        /* by node: where its children, or the words of its set, begin */
    uint32_t *child;
    uint64_t *bits;
    uint32_t root;
    size_t n_children;
    size_t n_words;
    size_t cap_nodes; /* capacities, for the budget */
    size_t cap_rows;
    size_t cap_children;
    size_t cap_words;
    uint64_t *scratch; /* words of one set */
    size_t scratch_words;
    uint32_t *table; /* open addressing over node ids; only while it is built */
    size_t table_cap;
};
#define KP_MDD_UNARY ((size_t)1 << (8 * sizeof(size_t) - 1)) /* flag in `row` */

/* `level` and `domain` are copied. */
bool kp_mdd_init(struct kp_mdd *m, struct kp_budget *b, uint32_t n_vars, const uint32_t *level,
                 const uint32_t *domain);
/* The node of variable `var` with these children; KP_MDD_NONE when out of memory. */
uint32_t kp_mdd_node(struct kp_mdd *m, struct kp_budget *b, uint32_t var,
                     const uint32_t *child);
/* No more nodes: the table goes. */
void kp_mdd_seal(struct kp_mdd *m, struct kp_budget *b);
/* True and false change places. */
void kp_mdd_complement(struct kp_mdd *m);
void kp_mdd_deinit(struct kp_mdd *m, struct kp_budget *b);

static inline bool kp_mdd_is_unary(const struct kp_mdd *m, uint32_t node)
{
    return m->row[node] & KP_MDD_UNARY;
}

/* The children of a node that is not unary. */
static inline const uint32_t *kp_mdd_row(const struct kp_mdd *m, uint32_t node)
{
    return m->child + m->row[node];
}

/* The set of a unary node. */
static inline const uint64_t *kp_mdd_set(const struct kp_mdd *m, uint32_t node)
{
    return m->bits + (m->row[node] & ~KP_MDD_UNARY);
}

/* The space's diagram. Node 0 is the end, behind the last level; it has one completion. */
struct kp_edge {
    uint64_t before; /* completions over the edges before this one in the node */
    uint32_t child;
    uint32_t value;
};

struct kp_diagram {
    uint32_t n_levels;
    uint32_t *domain;     /* by level */
    uint32_t *first_node; /* by level: its nodes are first_node[k] .. + width[k] */
    uint32_t *width;
    uint32_t n_nodes;
    uint32_t n_edges;
    uint32_t *first_edge; /* by node, n_nodes + 1; a node's edges ascend by value */
    uint64_t *count;      /* by node: completions, UINT64_MAX when `saturated` */
    struct kp_edge *edges;
    uint32_t root; /* KP_MDD_NONE: nothing is valid */
    bool saturated;
    size_t cap_nodes;
    size_t cap_counts;
    size_t cap_edges;
};

/* What is multiplied: the variables are levels 0 .. n_levels-1 with `domain` values each. */
struct kp_product_input {
    uint32_t n_levels;
    const uint32_t *domain;
    const struct kp_mdd *const *factors;
    size_t n_factors;
};

/* False when out of budget. */
bool kp_diagram_product(const struct kp_product_input *in, struct kp_budget *b,
                        struct kp_diagram *out);
void kp_diagram_deinit(struct kp_diagram *d, struct kp_budget *b);

/* The edge of `node` for `value`; NULL when there is none. */
const struct kp_edge *kp_diagram_edge(const struct kp_diagram *d, uint32_t node,
                                      uint32_t value);
/* The edge whose completions hold number `rank` of the node's. */
const struct kp_edge *kp_diagram_edge_at(const struct kp_diagram *d, uint32_t node,
                                         uint64_t rank);
static inline uint64_t kp_diagram_total(const struct kp_diagram *d)
{
    return d->root == KP_MDD_NONE ? 0 : d->count[d->root];
}

/* The order of the parameters that promises the smallest diagram: order[level] = parameter.
 * `attempt` 0 is the best guess, 1 and 2 are others, for when that was too large. Depends on
 * nothing but the arguments. */
enum { KP_ORDER_ATTEMPTS = 3 };
struct kp_atoms; /* residual.h */
struct kp_order_input {
    size_t n_params;
    const uint32_t *domain; /* by parameter */
    const struct kp_atoms *atoms;
};
/* *n_tied: that many are in some rule and come first. False when the arena is full. */
bool kp_order_choose(const struct kp_order_input *in, int attempt, struct kp_arena *arena,
                     uint32_t *order, uint32_t *n_tied);

#endif
