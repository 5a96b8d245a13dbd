/* SPDX-License-Identifier: MIT */
/* The product of rules' diagrams while it is made. Layer: space. */
#ifndef KP_SPACE_DIAGRAM_PRODUCT_H
#define KP_SPACE_DIAGRAM_PRODUCT_H

#include "space/diagram.h"
#include "space/diagram_sets.h"

#define KP_NO_CELL UINT32_MAX

enum kp_kind { KP_KIND_FALSE, KP_KIND_TRUE, KP_KIND_UNARY, KP_KIND_OPEN };

struct kp_factor {
    const struct kp_mdd *mdd;
    unsigned char *kind; /* by node */
    uint32_t *set;       /* by node: of a unary one, the number of its set */
    uint32_t first;      /* level of the root */
    uint32_t last;       /* lowest level of an open node */
    bool active;
};

struct kp_step_op { /* a rule that the parameter of a level is in */
    const struct kp_factor *factor;
    uint32_t from; /* its cell before the level; KP_NO_CELL: it starts there */
    uint32_t to;   /* and behind it; KP_NO_CELL: no node of it can be open then */
};

struct kp_cell_copy {
    uint32_t from;
    uint32_t to;
};

struct kp_plan {    /* of a level */
    uint32_t width; /* cells of a state before the level */
    uint32_t set;   /* cell of its set, or KP_NO_CELL */
    struct kp_step_op *ops;
    uint32_t n_ops;
    struct kp_cell_copy *copies; /* cells that stay as they are */
    uint32_t n_copies;
    uint32_t *fresh; /* levels whose set gets a cell behind this level */
    uint32_t n_fresh;
    uint32_t *set_to; /* by level: cell of its set behind this level */
};

struct kp_states {
    uint32_t *cells;
    uint32_t *hash;
    size_t n;
    size_t cap_cells;
    size_t cap_hash;
    uint32_t *table; /* index + 1 */
    size_t table_cap;
};

struct kp_product {
    const struct kp_product_input *in;
    struct kp_budget *b;
    struct kp_arena *arena;
    struct kp_factor *factors;
    struct kp_sets *families;
    uint32_t n_families;
    struct kp_sets **sets; /* by level: its family */
    uint32_t *initial;     /* by level: number of the set with which it starts */
    struct kp_plan *plans; /* by level, n_levels + 1 */
    struct kp_states now;
    struct kp_states next;
    uint32_t **raw;   /* by level: state * domain + value -> state of the next level */
    size_t *n_states; /* by level */
    size_t *raw_cap;
    uint32_t *cell; /* the state that is being made */
    uint32_t max_width;
    bool empty;
};

/* What the factors are, and which cells a state has at each level. False when out of memory. */
bool kp_product_prepare(struct kp_product *p);
/* All levels from the top. False when out of memory. */
bool kp_product_expand(struct kp_product *p);
/* The diagram from the bottom up; frees the raw levels on its way. False when out of memory. */
bool kp_product_reduce(struct kp_product *p, struct kp_diagram *d);

/* The level of a node that is no terminal. */
static inline uint32_t kp_mdd_level(const struct kp_mdd *m, uint32_t node)
{
    return m->level[m->node_var[node]];
}

#endif
