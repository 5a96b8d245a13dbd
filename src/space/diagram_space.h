/* SPDX-License-Identifier: MIT */
/* What a space holds; for space.c, neighbours.c and explain.c. Layer: space. */
#ifndef KP_SPACE_DIAGRAM_SPACE_H
#define KP_SPACE_DIAGRAM_SPACE_H

#include "space/residual.h"

struct kp_shared;

struct kp_space {
    const struct kp_space_desc *desc;
    struct kp_budget budget;
    struct kp_arena arena;
    const struct kp_term **rules; /* whole, by rule; NULL: the cache knew their diagrams */
    struct kp_atoms atoms;        /* in the order of the rules */
    uint32_t *order;              /* parameter by level */
    uint32_t *level;              /* level by parameter */
    uint32_t *by_name;            /* parameters sorted by name, bytewise */
    struct kp_diagram diagram; /* of the parameters that rules tie or restrict: levels 0 .. */
    uint64_t
        *weight; /* by level, of the free ones behind them: assignments of those behind it */
    uint64_t n_free; /* assignments of all free ones */
    uint64_t count;
    double cartesian;
    struct kp_shared *shared; /* whose diagram it is; NULL: the space's own */
};

/* The space from what its cache has. *done: false when it has to be made the usual way.
 * Errors: KOPT_ENOMEM, without a message. */
kopt_status kp_space_recall(struct kp_space *s, bool *done);
/* What others can use of a space that was made the usual way. */
void kp_space_remember(const struct kp_space *s);

/* The diagrams of the atoms, in the space's order. */
struct kp_mdds {
    struct kp_mdd *items;
    size_t n;
    size_t cap;
};
/* `rule`, where not NULL, gets the rule that was at work when memory ran out. */
kopt_status kp_space_mdds(const struct kp_space *s, struct kp_budget *b, struct kp_mdds *out,
                          size_t *rule, kopt_error *err);
void kp_mdds_deinit(struct kp_mdds *m, struct kp_budget *b);

/* The level at which the free parameters begin. */
static inline uint32_t kp_space_n_tied(const struct kp_space *s)
{
    return s->diagram.n_levels;
}

/* The number of values of parameter `i`. */
static inline uint32_t kp_space_values(const struct kp_space *s, size_t i)
{
    return s->desc->params[i].n_values;
}

#endif
