/* SPDX-License-Identifier: MIT */
/* A space from a cache: what each rule sees is looked up, diagrams that are missing are made,
 * and their product as well, unless a space with the same ones was made before. */
#include "base/alloc.h"
#include "space/space_cache.h"

#include <string.h>

enum {
    /* An order is left when a space takes so many times the steps of the one it was found for,
     * and some on top: the search for another one is worth that much. */
    STEPS_TIMES = 4,
    STEPS_MORE = 10000
};

struct recalling {
    struct kp_space *s;
    struct kp_space_cache *c;
    struct kp_arena arena;
    uint32_t *mdds; /* of all rules, ascending, each once */
    size_t n_mdds;
    size_t cap_mdds;
};

/* ---- rules ---- */

static kopt_status make_mdds(struct recalling *r, const struct kp_atoms *atoms,
                             struct kp_mdd *mdds, size_t *n)
{
    struct kp_space_cache *c = r->c;
    struct kp_residual_input in = {r->s->desc->params, c->level, c->order, c->n_params};
    for (*n = 0; *n < atoms->n; ++*n) {
        kopt_status st =
            kp_residual_mdd(&in, atoms->items[*n].term, &r->s->budget, &mdds[*n], NULL);
        if (st != KOPT_OK)
            return st;
    }
    return KOPT_OK;
}

/* A rule that sees what it did not see before. */
static kopt_status add_rule(struct recalling *r, uint32_t rule,
                            const struct kp_cache_entry **entry)
{
    struct kp_arena arena = KP_ARENA_INIT(r->s->budget.max);
    struct kp_term_input in = {r->s->desc, r->c->param_of_slot, &arena};
    const struct kp_term *term = NULL;
    struct kp_atoms atoms = {0};
    struct kp_mdd *mdds = NULL;
    size_t n = 0;
    kopt_status st = kp_term_build(&in, r->c->rules[rule].expr, &term, NULL);
    if (st == KOPT_OK && kp_atoms_add(&atoms, term, rule, &arena))
        mdds = kp_arena_alloc(&arena, atoms.n, sizeof(*mdds));
    if (st == KOPT_OK)
        st = mdds ? make_mdds(r, &atoms, mdds, &n) : KOPT_ENOMEM;
    if (st == KOPT_OK) {
        *entry = kp_cache_add(r->c, rule, mdds, n);
        st = *entry ? KOPT_OK : KOPT_ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        kp_mdd_deinit(&mdds[i], &r->s->budget);
    if (arena.over)
        st = KOPT_ERANGE;
    kp_arena_deinit(&arena);
    return st;
}

static bool add_number(struct recalling *r, uint32_t mdd)
{
    size_t at = r->n_mdds;
    while (at > 0 && r->mdds[at - 1] > mdd)
        at--;
    if (at > 0 && r->mdds[at - 1] == mdd)
        return true;
    if (r->n_mdds == r->cap_mdds) {
        size_t cap = r->cap_mdds ? 2 * r->cap_mdds : 64;
        uint32_t *p = kp_arena_alloc(&r->arena, cap, sizeof(*p));
        if (!p)
            return false;
        if (r->n_mdds)
            memcpy(p, r->mdds, r->n_mdds * sizeof(*p));
        r->mdds = p;
        r->cap_mdds = cap;
    }
    memmove(r->mdds + at + 1, r->mdds + at, (r->n_mdds - at) * sizeof(*r->mdds));
    r->mdds[at] = mdd;
    r->n_mdds++;
    return true;
}

static kopt_status gather_rules(struct recalling *r)
{
    struct kp_space_cache *c = r->c;
    kp_cache_begin(c, r->s->desc);
    for (uint32_t rule = 0; rule < c->n_rules; rule++) {
        const struct kp_cache_entry *entry = kp_cache_find(c, rule);
        kopt_status st = entry ? KOPT_OK : add_rule(r, rule, &entry);
        if (c->failed)
            st = KOPT_ENOMEM;
        if (st != KOPT_OK)
            return st;
        for (uint32_t i = 0; i < entry->n_mdds; i++)
            if (!add_number(r, entry->mdds[i]))
                return KOPT_ENOMEM;
    }
    return KOPT_OK;
}

/* ---- the whole ---- */

/* The cache's order with the parameters in front that the diagrams depend on. */
static uint32_t order_params(struct recalling *r)
{
    struct kp_varset tied = {{0}};
    uint32_t n = 0;
    uint32_t n_tied = 0;
    for (size_t i = 0; i < r->n_mdds; i++)
        for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++)
            tied.w[w] |= r->c->mdds[r->mdds[i]].vars.w[w];
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < r->c->n_params; k++)
            if (kp_varset_has(&tied, r->c->order[k]) == (pass == 0))
                r->s->order[n++] = r->c->order[k];
        n_tied = pass == 0 ? n : n_tied;
    }
    for (uint32_t k = 0; k < n; k++)
        r->s->level[r->s->order[k]] = k;
    return n_tied;
}

/* A diagram of a rule with the levels of this space's order; the nodes stay where they are. */
static bool place_mdd(struct recalling *r, const struct kp_mdd *from, struct kp_mdd *to)
{
    *to = *from;
    to->level = kp_arena_alloc(&r->arena, from->n_vars, sizeof(*to->level));
    for (uint32_t i = 0; to->level && i < from->n_vars; i++)
        to->level[i] = r->s->level[r->c->order[from->level[i]]];
    return to->level != NULL;
}

static kopt_status multiply(struct recalling *r, uint32_t n_tied)
{
    struct kp_space *s = r->s;
    uint32_t domain[KP_PARAMS_MAX];
    struct kp_mdd *mdds = kp_arena_alloc(&r->arena, r->n_mdds, sizeof(*mdds));
    const struct kp_mdd **factors =
        kp_arena_alloc(&r->arena, r->n_mdds, sizeof(const struct kp_mdd *));
    bool ok = mdds && factors;
    for (size_t i = 0; ok && i < r->n_mdds; i++) {
        ok = place_mdd(r, &r->c->mdds[r->mdds[i]].mdd, &mdds[i]);
        factors[i] = &mdds[i];
    }
    if (!ok)
        return KOPT_ENOMEM;
    for (uint32_t k = 0; k < n_tied; k++)
        domain[k] = kp_space_values(s, s->order[k]);
    struct kp_product_input in = {n_tied, domain, factors, r->n_mdds};
    if (!kp_diagram_product(&in, &s->budget, &s->diagram))
        return kp_budget_error(&s->budget, NULL);
    return KOPT_OK;
}

/* Gives the diagram to all who need it; without memory it stays the space's own. */
static void share(struct recalling *r)
{
    struct kp_shared *shared = kp_calloc(1, sizeof(*shared));
    if (!shared)
        return;
    atomic_init(&shared->users, 1);
    shared->diagram = r->s->diagram;
    shared->bytes = r->s->budget.used;
    r->s->shared = shared;
    kp_cache_keep(r->c, r->mdds, r->n_mdds, shared);
}

static kopt_status recall(struct recalling *r)
{
    struct kp_space *s = r->s;
    kopt_status st = gather_rules(r);
    if (st != KOPT_OK)
        return st;
    uint32_t n_tied = order_params(r);
    s->shared = kp_cache_diagram(r->c, r->mdds, r->n_mdds);
    if (!s->shared) {
        st = multiply(r, n_tied);
        if (st == KOPT_OK)
            share(r);
        return st;
    }
    s->diagram = s->shared->diagram;
    return kp_budget_charge(&s->budget, s->shared->bytes) ? KOPT_OK : KOPT_ERANGE;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

kopt_status kp_space_recall(struct kp_space *s, bool *done)
{
    struct kp_space_cache *c = s->desc->cache;
    struct recalling r = {.s = s, .c = c};
    *done = false;
    if (!kp_cache_serves(c, s->desc) || c->n_orders == 0)
        return KOPT_OK;
    uint64_t max_steps = s->budget.max_steps;
    r.arena = KP_ARENA_INIT(s->budget.max);
    s->budget.max_steps = smaller(max_steps, STEPS_TIMES * c->steps + STEPS_MORE);
    kopt_status st = recall(&r);
    kp_arena_deinit(&r.arena);
    bool full = kp_cache_is_full(c);
    if (full)
        kp_cache_empty(c);
    s->budget.max_steps = max_steps;
    *done = st == KOPT_OK && kp_budget_charge(&s->budget, s->arena.used);
    if (*done || (st == KOPT_ENOMEM && !full))
        return st;
    /* Too large in this order, or for the cache, or at fault: it will be seen the usual way. */
    kp_shared_release(s->shared);
    s->shared = NULL;
    s->diagram = (struct kp_diagram){.root = KP_MDD_NONE};
    s->budget = (struct kp_budget){
        .max = s->budget.max, .peak = s->budget.peak, .max_steps = max_steps};
    return KOPT_OK;
}

void kp_space_remember(const struct kp_space *s)
{
    struct kp_space_cache *c = s->desc->cache;
    if (!kp_cache_serves(c, s->desc) || c->n_orders == KP_CACHE_ORDERS_MAX)
        return;
    kp_cache_empty(c);
    for (uint32_t k = 0; k < c->n_params; k++) {
        c->order[k] = s->order[k];
        c->level[s->order[k]] = k;
    }
    c->steps = s->budget.steps;
    c->n_orders++;
}

/* ---- looking ---- */

/* False: there are more than any known space has. */
static bool put_number(struct kp_space_cache *c, size_t *n, uint32_t mdd)
{
    size_t at = *n;
    while (at > 0 && c->found[at - 1] > mdd)
        at--;
    if (at > 0 && c->found[at - 1] == mdd)
        return true;
    if (*n == c->cap_found)
        return false;
    memmove(c->found + at + 1, c->found + at, (*n - at) * sizeof(*c->found));
    c->found[at] = mdd;
    ++*n;
    return true;
}

static bool look_up_rules(struct kp_space_cache *c, const struct kp_space_desc *d, size_t *n)
{
    kp_cache_begin(c, d);
    for (uint32_t rule = 0; rule < c->n_rules; rule++) {
        const struct kp_cache_entry *entry = kp_cache_peek(c, rule);
        if (!entry || c->failed)
            return false;
        for (uint32_t i = 0; i < entry->n_mdds; i++)
            if (!put_number(c, n, entry->mdds[i]))
                return false;
    }
    return true;
}

const void *kp_space_look(const struct kp_space_desc *d)
{
    struct kp_space_cache *c = d->cache;
    size_t n = 0;
    if (c->state != KP_CACHE_READY || c->cap_found == 0 || !kp_cache_serves(c, d))
        return NULL;
    c->looking = true;
    bool known = look_up_rules(c, d, &n);
    c->looking = false;
    return known ? kp_cache_peek_diagram(c, c->found, n) : NULL;
}

const void *kp_space_kind(const struct kp_space *s)
{
    return s->shared;
}
