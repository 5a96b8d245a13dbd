/* SPDX-License-Identifier: MIT */
/* Diagrams of rules and of spaces that were met before. */
#include "space/space_cache.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

/* ---- diagrams of spaces ---- */

void kp_shared_release(struct kp_shared *s)
{
    if (!s || atomic_fetch_sub(&s->users, 1) > 1)
        return;
    struct kp_budget budget = {.used = s->bytes, .max = SIZE_MAX};
    kp_diagram_deinit(&s->diagram, &budget);
    kp_free(s);
}

static void drop(struct kp_cache_diagram *d)
{
    kp_shared_release(d->shared);
    kp_free(d->mdds);
    *d = (struct kp_cache_diagram){0};
}

static struct kp_cache_diagram *find_diagram(struct kp_space_cache *c, const uint32_t *mdds,
                                             size_t n)
{
    uint64_t hash = kp_hash64(mdds, n * sizeof(*mdds), n);
    for (size_t i = 0; i < KP_CACHE_DIAGRAMS_MAX; i++) {
        struct kp_cache_diagram *d = &c->diagrams[i];
        if (!d->shared || d->hash != hash || d->n_mdds != n ||
            !same_bytes(d->mdds, mdds, n * sizeof(*mdds)))
            continue;
        d->last_use = ++c->clock;
        return d;
    }
    return NULL;
}

struct kp_shared *kp_cache_diagram(struct kp_space_cache *c, const uint32_t *mdds, size_t n)
{
    struct kp_cache_diagram *d = find_diagram(c, mdds, n);
    if (d)
        (void)atomic_fetch_add(&d->shared->users, 1);
    return d ? d->shared : NULL;
}

const struct kp_shared *kp_cache_peek_diagram(struct kp_space_cache *c, const uint32_t *mdds,
                                              size_t n)
{
    const struct kp_cache_diagram *d = find_diagram(c, mdds, n);
    return d ? d->shared : NULL;
}

/* Room for a space's numbers when it is looked for. */
static bool make_room(struct kp_space_cache *c, size_t n)
{
    if (n <= c->cap_found)
        return true;
    uint32_t *found = kp_calloc(n, sizeof(*found));
    if (!found)
        return false;
    kp_free(c->found);
    c->found = found;
    c->cap_found = n;
    return true;
}

void kp_cache_keep(struct kp_space_cache *c, const uint32_t *mdds, size_t n,
                   struct kp_shared *shared)
{
    struct kp_cache_diagram *oldest = &c->diagrams[0];
    uint32_t *copy = NULL;
    if (shared->bytes > c->max_bytes / KP_CACHE_DIAGRAMS_MAX)
        return;
    copy = kp_calloc(n + 1, sizeof(*copy));
    if (!copy || !make_room(c, n)) {
        kp_free(copy);
        return;
    }
    for (size_t i = 0; i < n; i++)
        copy[i] = mdds[i];
    for (size_t i = 0; i < KP_CACHE_DIAGRAMS_MAX; i++)
        if (c->diagrams[i].last_use < oldest->last_use)
            oldest = &c->diagrams[i];
    drop(oldest);
    (void)atomic_fetch_add(&shared->users, 1);
    *oldest = (struct kp_cache_diagram){.hash = kp_hash64(mdds, n * sizeof(*mdds), n),
                                        .mdds = copy,
                                        .n_mdds = n,
                                        .shared = shared,
                                        .last_use = ++c->clock};
}

void kp_cache_empty(struct kp_space_cache *c)
{
    for (size_t i = 0; i < KP_CACHE_DIAGRAMS_MAX; i++)
        drop(&c->diagrams[i]);
    c->n_entries = 0;
    c->n_mdds = 0;
    c->n_words = 0;
    if (c->table)
        memset(c->table, 0, c->table_cap * sizeof(*c->table));
    kp_arena_deinit(&c->store);
}

bool kp_cache_is_full(const struct kp_space_cache *c)
{
    return c->store.failed || c->store.used > c->max_bytes / 2 ||
           c->n_entries == KP_CACHE_ITEMS_MAX || c->n_mdds == KP_CACHE_ITEMS_MAX ||
           c->n_words == KP_CACHE_ITEMS_MAX;
}

/* ---- diagrams of rules ---- */

static uint64_t hash_mdd(const struct kp_mdd *m)
{
    uint64_t h = kp_hash64(m->level, m->n_vars * sizeof(*m->level), m->root);
    h = kp_hash64(m->node_var, m->n_nodes * sizeof(*m->node_var), h);
    h = kp_hash64(m->row, m->n_nodes * sizeof(*m->row), h);
    h = kp_hash64(m->child, m->n_children * sizeof(*m->child), h);
    return kp_hash64(m->bits, m->n_words * sizeof(*m->bits), h);
}

static bool same_mdd(const struct kp_mdd *a, const struct kp_mdd *b)
{
    return a->root == b->root && a->n_vars == b->n_vars && a->n_nodes == b->n_nodes &&
           a->n_children == b->n_children && a->n_words == b->n_words &&
           same_bytes(a->level, b->level, a->n_vars * sizeof(*a->level)) &&
           same_bytes(a->node_var, b->node_var, a->n_nodes * sizeof(*a->node_var)) &&
           same_bytes(a->row, b->row, a->n_nodes * sizeof(*a->row)) &&
           same_bytes(a->child, b->child, a->n_children * sizeof(*a->child)) &&
           same_bytes(a->bits, b->bits, a->n_words * sizeof(*a->bits));
}

static void *copied(struct kp_arena *a, const void *p, size_t n, size_t size)
{
    void *copy = kp_arena_alloc(a, n, size);
    if (copy && n)
        memcpy(copy, p, n * size);
    return copy;
}

static bool copy_mdd(struct kp_arena *a, const struct kp_mdd *m, struct kp_mdd *out)
{
    *out = (struct kp_mdd){.n_vars = m->n_vars,
                           .n_nodes = m->n_nodes,
                           .root = m->root,
                           .n_children = m->n_children,
                           .n_words = m->n_words};
    out->level = copied(a, m->level, m->n_vars, sizeof(*m->level));
    out->domain = copied(a, m->domain, m->n_vars, sizeof(*m->domain));
    out->node_var = copied(a, m->node_var, m->n_nodes, sizeof(*m->node_var));
    out->row = copied(a, m->row, m->n_nodes, sizeof(*m->row));
    out->child = copied(a, m->child, m->n_children, sizeof(*m->child));
    out->bits = copied(a, m->bits, m->n_words, sizeof(*m->bits));
    return !a->failed;
}

/* The number of an equal diagram, or of a copy; UINT32_MAX: out of memory, or full. */
static uint32_t mdd_number(struct kp_space_cache *c, const struct kp_mdd *m)
{
    uint64_t hash = hash_mdd(m);
    void *items = c->mdds;
    for (size_t i = 0; i < c->n_mdds; i++)
        if (c->mdds[i].hash == hash && same_mdd(&c->mdds[i].mdd, m))
            return (uint32_t)i;
    if (!kp_grow(&items, &c->cap_mdds, c->n_mdds, sizeof(*c->mdds), KP_CACHE_ITEMS_MAX))
        return UINT32_MAX;
    c->mdds = items;
    struct kp_cache_mdd *added = &c->mdds[c->n_mdds];
    *added = (struct kp_cache_mdd){.hash = hash};
    if (!copy_mdd(&c->store, m, &added->mdd))
        return UINT32_MAX;
    for (uint32_t node = 2; node < m->n_nodes; node++)
        kp_varset_add(&added->vars, c->order[m->level[m->node_var[node]]]);
    return (uint32_t)c->n_mdds++;
}

/* ---- rules with what they see ---- */

/* Into c->key. */
static uint64_t see(struct kp_space_cache *c, uint32_t rule, uint32_t deep)
{
    const struct kp_cache_look *look = &c->rules[rule].look[deep];
    kp_cache_see(c, look);
    return kp_hash64(c->key, look->n_cells * sizeof(*c->key), 2 * (uint64_t)rule + deep);
}

static const struct kp_cache_entry *find(struct kp_space_cache *c, uint32_t rule, uint32_t deep)
{
    if (c->n_entries == 0)
        return NULL;
    uint64_t hash = see(c, rule, deep);
    size_t bytes = c->rules[rule].look[deep].n_cells * sizeof(*c->key);
    size_t mask = c->table_cap - 1;
    for (size_t at = (size_t)hash & mask; c->table[at]; at = (at + 1) & mask) {
        const struct kp_cache_entry *e = &c->entries[c->table[at] - 1];
        if (e->hash == hash && e->rule == rule && e->deep == deep &&
            same_bytes(e->seen, c->key, bytes))
            return e;
    }
    return NULL;
}

static void place(struct kp_space_cache *c, size_t entry)
{
    size_t mask = c->table_cap - 1;
    size_t at = (size_t)c->entries[entry].hash & mask;
    while (c->table[at])
        at = (at + 1) & mask;
    c->table[at] = (uint32_t)entry + 1;
}

static bool grow_table(struct kp_space_cache *c)
{
    size_t cap = c->table_cap ? 2 * c->table_cap : 256;
    uint32_t *table = kp_calloc(cap, sizeof(*table));
    if (!table)
        return false;
    kp_free(c->table);
    c->table = table;
    c->table_cap = cap;
    for (size_t i = 0; i < c->n_entries; i++)
        place(c, i);
    return true;
}

/* An entry with these diagrams, which stand in the store. */
static const struct kp_cache_entry *put(struct kp_space_cache *c, uint32_t rule, uint32_t deep,
                                        const uint32_t *mdds, uint32_t n)
{
    struct kp_cache_entry e = {.rule = rule, .deep = deep, .mdds = mdds, .n_mdds = n};
    void *items = c->entries;
    if (!kp_grow(&items, &c->cap_entries, c->n_entries, sizeof(*c->entries),
                 KP_CACHE_ITEMS_MAX))
        return NULL;
    c->entries = items;
    e.hash = see(c, rule, deep);
    e.seen = copied(&c->store, c->key, c->rules[rule].look[deep].n_cells, sizeof(*c->key));
    if (!e.seen || (2 * (c->n_entries + 1) > c->table_cap && !grow_table(c)))
        return NULL;
    c->entries[c->n_entries] = e;
    place(c, c->n_entries);
    return &c->entries[c->n_entries++];
}

/* Do deep views say more than the others? */
static bool has_deep(const struct kp_space_cache *c, uint32_t rule)
{
    const struct kp_cache_look *deep = &c->rules[rule].look[1];
    return deep->n_cells > deep->n_views;
}

const struct kp_cache_entry *kp_cache_find(struct kp_space_cache *c, uint32_t rule)
{
    const struct kp_cache_entry *e = find(c, rule, 0);
    if (e || !has_deep(c, rule))
        return e;
    e = find(c, rule, 1);
    if (!e)
        return NULL;
    const struct kp_cache_entry *added = put(c, rule, 0, e->mdds, e->n_mdds);
    return added ? added : find(c, rule, 1); /* `put` may have moved it */
}

const struct kp_cache_entry *kp_cache_peek(struct kp_space_cache *c, uint32_t rule)
{
    const struct kp_cache_entry *e = find(c, rule, 0);
    return e || !has_deep(c, rule) ? e : find(c, rule, 1);
}

const struct kp_cache_entry *kp_cache_add(struct kp_space_cache *c, uint32_t rule,
                                          const struct kp_mdd *mdds, size_t n)
{
    uint32_t n_numbers = 0;
    uint32_t *numbers = kp_arena_alloc(&c->store, n + 1, sizeof(*numbers));
    if (!numbers)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (mdds[i].root == KP_MDD_TRUE)
            continue;
        numbers[n_numbers] = mdd_number(c, &mdds[i]);
        if (numbers[n_numbers++] == UINT32_MAX)
            return NULL;
    }
    if (has_deep(c, rule) && !put(c, rule, 1, numbers, n_numbers))
        return NULL;
    return put(c, rule, 0, numbers, n_numbers);
}
