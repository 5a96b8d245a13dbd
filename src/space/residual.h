/* SPDX-License-Identifier: MIT */
/* Rules prepared for the engine, and what is left of a rule on a partial assignment.
 * Layer: space.
 *
 * A term is a copy of an expression whose slots are parameter indices; fixed names and
 * parameters with one value have become constants. It carries what can be said of it before any
 * parameter is known: types, bounds, whether it can fail. A rule is cut into atoms: terms that
 * must all be true. The diagram of an atom is found by a depth-first search over its parameters
 * in the space's order. Its nodes are residuals: what the atom still asks of the parameters
 * that are not known, identified by the values of the largest subexpressions that are. */
#ifndef KP_SPACE_RESIDUAL_H
#define KP_SPACE_RESIDUAL_H

#include "space/diagram.h"

/* A closed interval that holds every value; infinite where nothing is known. */
struct kp_bounds {
    double lo;
    double hi;
};

static inline bool kp_bounds_has_zero(struct kp_bounds b)
{
    return b.lo <= 0 && b.hi >= 0;
}

/* Beyond this a result may not fit into an int64 (2^63). */
#define KP_INT_LIMIT 0x1p62

struct kp_term {
    struct kp_expr e; /* first: the arguments of e are terms as well */
    struct kp_varset vars;
    struct kp_bounds bounds; /* of numeric values (a boolean counts as 0 or 1) */
    unsigned char types;     /* 1 << enum kp_type of each type that may result */
    bool may_fail;
};

enum {
    KP_TYPES_INT = 1 << KP_INT,
    KP_TYPES_FLOAT = 1 << KP_FLOAT,
    KP_TYPES_BOOL = 1 << KP_BOOL,
    KP_TYPES_STRING = 1 << KP_STRING,
    KP_TYPES_WHOLE = KP_TYPES_INT | KP_TYPES_BOOL
};

static inline const struct kp_term *kp_term_arg(const struct kp_term *t, size_t i)
{
    return (const struct kp_term *)(const void *)t->e.args[i];
}

struct kp_term_input {
    const struct kp_space_desc *desc;
    const int32_t *param_of_slot; /* -1: none */
    struct kp_arena *arena;
};
/* Errors: KOPT_EUSAGE (a name without a value), KOPT_ENOMEM. */
kopt_status kp_term_build(const struct kp_term_input *in, const struct kp_expr *e,
                          const struct kp_term **out, kopt_error *err);

/* Operations over integers whose operands may be taken in any order, since no partial result
 * can overflow: sums (with differences and signs), products, minima, maxima. */
enum kp_chain { KP_CHAIN_NONE, KP_CHAIN_SUM, KP_CHAIN_PRODUCT, KP_CHAIN_EXTREMUM };
enum kp_chain kp_term_chain(const struct kp_term *t);
/* Calls `visit` with each operand of the chain that begins at `t`, until it returns false. */
struct kp_chain_visitor {
    bool (*visit)(void *user, const struct kp_term *operand, bool negative);
    void *user;
};
bool kp_term_operands(const struct kp_term *t, enum kp_chain chain, bool negative,
                      const struct kp_chain_visitor *v);

/* One of the conditions a rule consists of. */
struct kp_atom {
    const struct kp_term *term;
    uint32_t rule;
};
struct kp_atoms {
    struct kp_atom *items; /* in the arena */
    size_t n;
    size_t cap;
};
/* Adds the atoms of a rule. False when the arena is full. */
bool kp_atoms_add(struct kp_atoms *a, const struct kp_term *rule_term, uint32_t rule,
                  struct kp_arena *arena);

/* Bounds of an operation from those of its arguments, valid where it does not fail. */
struct kp_bounds kp_bounds_value(struct kp_value v);
struct kp_bounds kp_bounds_of(const struct kp_expr *shape, const struct kp_bounds *args,
                              unsigned char types);
/* +1 surely true, 0 surely false, -1 open. */
int kp_bounds_truth(struct kp_bounds b);
/* Of an operation over arguments that cannot be strings: +1 it rises (weakly) with argument
 * `i`, -1 it falls, 0 neither is known. */
int kp_bounds_direction(const struct kp_expr *shape, const struct kp_bounds *args,
                        unsigned char types, size_t i);

/* What an atom looks like from afar: how many different values its parts can have. Logarithms
 * to the base 2 in units of 1/65536. */
struct kp_outline_node {
    struct kp_varset vars;
    uint32_t log_n; /* different values */
    bool chain;
    uint32_t n_children; /* they stand in `children` of the outline */
    uint32_t first_child;
};
struct kp_outline {
    struct kp_outline_node *nodes; /* children first; the last one is the atom */
    uint32_t *children;
    uint32_t n_nodes;
    uint32_t *states;  /* scratch, by node */
    uint32_t *largest; /* scratch, by node */
};
bool kp_outline_build(struct kp_outline *o, const struct kp_term *atom,
                      const uint32_t *log_domain, struct kp_arena *arena);
/* How many different states there can be at most when the parameters in `known` are; *largest:
 * of that, the share of the one known value with the most. */
uint64_t kp_outline_log_states(struct kp_outline *o, const struct kp_varset *known,
                               uint64_t *largest);
/* Piecewise linear, in integers: the same on every machine. */
uint32_t kp_log2_units(uint64_t n);

/* The reduced diagram of an atom. `level`[param] is the place of a parameter in the order.
 * Errors: KOPT_ERANGE (over budget), KOPT_ENOMEM. */
struct kp_residual_input {
    const struct kp_param *params;
    const uint32_t *level; /* by parameter */
    const uint32_t *order; /* by level */
    size_t n_params;
};
kopt_status kp_residual_mdd(const struct kp_residual_input *in, const struct kp_term *atom,
                            struct kp_budget *budget, struct kp_mdd *out, kopt_error *err);

#endif
