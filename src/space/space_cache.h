/* SPDX-License-Identifier: MIT */
/* What a struct kp_space_cache holds; for space.c and space_cache*.c. Layer: space.
 *
 * A rule sees of the fixed names no more than the values of its largest parts without a
 * parameter, here called its views. With equal views it has equal diagrams, so these are kept
 * by the views. That holds as well for its largest parts over parameters with few assignments,
 * and all their values: they are the deep views. There are more values to compute, but far
 * fewer different ones: of ceildiv(N, 64/x) only a few numbers are left of N. They are looked
 * at where the others are new. Diagrams that are equal are one, whatever rule or view they come
 * from: so a space is known by the set of the diagrams of its rules. */
#ifndef KP_SPACE_SPACE_CACHE_H
#define KP_SPACE_SPACE_CACHE_H

#include "space/diagram_space.h"
#include "space/residual_program.h"

#include <stdatomic.h>

enum {
    KP_CACHE_VIEWS_MAX = 4096,    /* of all rules */
    KP_CACHE_CELLS_MAX = 1 << 16, /* of all their values */
    KP_CACHE_DEEP = 64,           /* assignments of a deep view at most */
    KP_CACHE_DEEP_WORK = 256,     /* and that times the nodes of its expression */
    KP_CACHE_SLOTS_MAX = 1024,    /* kp_space_valid() has an environment on its stack */
    KP_CACHE_ITEMS_MAX = 16384,  /* rules with their views, diagrams of rules, words: of each */
    KP_CACHE_DIAGRAMS_MAX = 128, /* of whole spaces */
    KP_CACHE_ORDERS_MAX = 4      /* orders that are tried before the last one stays */
};

/* A space's diagram that others use as well. */
struct kp_shared {
    atomic_uint users;
    struct kp_diagram diagram;
    size_t bytes;
};
void kp_shared_release(struct kp_shared *s);

struct kp_cache_view {
    const struct kp_expr *expr;
    const uint32_t *params; /* that stand in it */
    uint32_t n_params;
    uint32_t n_cells; /* their assignments */
    uint32_t cell;    /* where its values begin in `seen` */
    uint64_t looked;  /* they are of that space */
};

struct kp_cache_look {
    const uint32_t *views; /* ascending */
    uint32_t n_views;
    uint32_t n_cells;
};

struct kp_cache_rule { /* what does not depend on the fixed names */
    const struct kp_expr *expr;
    struct kp_cache_look look[2]; /* views, deep views */
};

struct kp_cache_entry { /* a rule with what it saw */
    uint64_t hash;
    uint32_t rule;
    uint32_t deep; /* 1: in its deep views */
    const struct kp_cell *seen;
    const uint32_t *mdds;
    uint32_t n_mdds;
};

struct kp_cache_mdd {
    struct kp_mdd mdd; /* its levels are those of the cache's order, of all parameters */
    struct kp_varset vars;
    uint64_t hash;
};

struct kp_cache_diagram {
    uint64_t hash;
    uint32_t *mdds; /* ascending */
    size_t n_mdds;
    struct kp_shared *shared; /* NULL: free */
    uint64_t last_use;
};

enum kp_cache_state { KP_CACHE_NEW, KP_CACHE_READY, KP_CACHE_UNFIT };

struct kp_space_cache {
    size_t max_bytes;
    enum kp_cache_state state;
    /* Parameters and rules, as the first space had them. */
    struct kp_arena fixed;
    struct kp_param *params;
    size_t n_params;
    struct kp_cache_rule *rules;
    size_t n_rules;
    unsigned char *known;
    unsigned char *in_views; /* by slot: is it known, or a parameter? */
    size_t n_slots;
    int32_t *param_of_slot;
    struct kp_cache_view *views;
    uint32_t n_views;
    /* Of the space at hand. */
    struct kp_value *values; /* by slot */
    struct kp_cell *seen;    /* values of views */
    struct kp_cell *key;     /* of a rule */
    uint64_t spaces;         /* counts them */
    bool failed;             /* no memory for a word */
    /* The order of the parameters, of use to all spaces that do not take much longer in it than
     * the one it was found for. */
    uint32_t order[KP_PARAMS_MAX];
    uint32_t level[KP_PARAMS_MAX];
    uint32_t n_orders; /* so many were tried */
    uint64_t steps;    /* that space took */
    /* By that order. Emptied when it is full. */
    struct kp_arena store;
    struct kp_cache_entry *entries;
    size_t n_entries;
    size_t cap_entries;
    struct kp_cache_mdd *mdds;
    size_t n_mdds;
    size_t cap_mdds;
    struct kp_str *words; /* strings that were seen; their numbers stand for them */
    size_t n_words;
    size_t cap_words;
    uint32_t *table; /* entry + 1; open addressing */
    size_t table_cap;
    struct kp_cache_diagram diagrams[KP_CACHE_DIAGRAMS_MAX];
    uint64_t clock;
    /* For kp_space_look(), which must not allocate. */
    bool looking;     /* a word that is new gets no number */
    uint32_t *found;  /* diagrams of the rules, ascending */
    size_t cap_found; /* those of any space that is kept */
};

/* Can the cache serve this space? The first one makes it its own. False as well when there is
 * no memory for that: then nothing is kept. */
bool kp_cache_serves(struct kp_space_cache *c, const struct kp_space_desc *d);
/* From now on it is about this space. */
void kp_cache_begin(struct kp_space_cache *c, const struct kp_space_desc *d);
/* The value of each cell of a look, into `key`; `failed` when out of memory. */
void kp_cache_see(struct kp_space_cache *c, const struct kp_cache_look *look);
/* Forget all that hangs on the order. */
void kp_cache_empty(struct kp_space_cache *c);
/* Does it have to be emptied before it takes more? */
bool kp_cache_is_full(const struct kp_space_cache *c);

/* What a rule has with what it sees now; NULL: that is new. Valid until something is added. */
const struct kp_cache_entry *kp_cache_find(struct kp_space_cache *c, uint32_t rule);
/* The same, and nothing is added. */
const struct kp_cache_entry *kp_cache_peek(struct kp_space_cache *c, uint32_t rule);
/* Adds it with the diagrams of its atoms. NULL: out of memory, or full. */
const struct kp_cache_entry *kp_cache_add(struct kp_space_cache *c, uint32_t rule,
                                          const struct kp_mdd *mdds, size_t n);
/* The diagram of the space whose rules have these diagrams (ascending); NULL: there is none. */
struct kp_shared *kp_cache_diagram(struct kp_space_cache *c, const uint32_t *mdds, size_t n);
/* The same, without one more user. */
const struct kp_shared *kp_cache_peek_diagram(struct kp_space_cache *c, const uint32_t *mdds,
                                              size_t n);
/* Keeps it. Without memory it is not kept. */
void kp_cache_keep(struct kp_space_cache *c, const uint32_t *mdds, size_t n,
                   struct kp_shared *shared);

#endif
