/* SPDX-License-Identifier: MIT */
/* An atom lowered for the search over its parameters. Layer: space.
 *
 * Chains of integer sums, products, minima and maxima are flattened, their operands sorted by
 * the level at which they become known, and chained again from the left. So each prefix of the
 * chain is one value, whatever the order in which the rule was written: of a*b*c with a and c
 * known only the product a*c remains. Only chains that cannot overflow in any order are
 * touched, so the meaning stays the same. */
#ifndef KP_SPACE_RESIDUAL_PROGRAM_H
#define KP_SPACE_RESIDUAL_PROGRAM_H

#include "space/residual.h"

/* A value, comparable as bytes. */
struct kp_cell {
    uint64_t bits;
    uint32_t type; /* enum kp_type or one of the below */
    uint32_t len;  /* of a string, whose address is in bits */
};
enum { KP_CELL_ERROR = 16, KP_CELL_OPEN, KP_CELL_TRUE, KP_CELL_CHOSEN, KP_CELL_SCALAR };

struct kp_rnode {
    struct kp_expr shape;    /* for evaluation: args are `holders` */
    struct kp_expr *holders; /* one for each argument */
    const uint32_t *args;    /* nodes */
    uint32_t n_args;         /* of `in` with a list of constants only the needle */
    const int64_t *list;     /* KP_OP_IN over integers alone: sorted; else NULL */
    size_t n_list;
    uint32_t level; /* known once that many variables are */
    uint32_t var;   /* KP_OP_VAR: index of the variable */
    unsigned char types;
    bool lazy;       /* may be known before its level */
    int direction;   /* the atom's truth rises (+1) or falls (-1) with it; 0 not known */
    double n_values; /* at most that many different ones */
    struct kp_bounds bounds;
    struct kp_cell value; /* KP_OP_CONST */
};

struct kp_levels {
    uint32_t *nodes;
    uint32_t n;
};

struct kp_program {
    struct kp_rnode *nodes; /* arguments before their users */
    uint32_t n_nodes;
    uint32_t cap_nodes;
    uint32_t root;
    uint32_t n_vars;
    uint32_t *param;    /* by variable */
    uint32_t *var_node; /* by variable */
    bool regular;       /* cannot fail: bounds and directions hold */
    uint32_t max_args;
    struct kp_levels *compute; /* by level 0 .. n_vars: operations that become known there */
    struct kp_levels *cut;     /* by level: known nodes with a user that is not known */
    struct kp_levels *open;    /* by level: nodes that are not known */
    const struct kp_expr **failing; /* arguments of an expression that fails */
    uint32_t *scalar; /* by level: a node of the cut with a direction, or KP_MDD_NONE */
    struct kp_arena *arena;
};

/* Lower an atom. False when the arena is full. */
bool kp_program_build(struct kp_program *p, const struct kp_residual_input *in,
                      const struct kp_term *atom, struct kp_arena *arena);

struct kp_cell kp_cell_from(struct kp_value v);
struct kp_value kp_cell_value(struct kp_cell c);

#endif
