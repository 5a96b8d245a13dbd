/* SPDX-License-Identifier: MIT */
#include "space/diagram_product.h"

#include "base/hash.h"

#include <string.h>

static uint64_t add_counts(struct kp_diagram *d, uint64_t a, uint64_t b)
{
    if (a <= UINT64_MAX - b)
        return a + b;
    d->saturated = true;
    return UINT64_MAX;
}

/* Writes the edges of a state behind those that are there; returns their number. */
static uint32_t write_edges(const struct kp_product *p, struct kp_diagram *d,
                            const uint32_t *row, uint32_t level, const uint32_t *node_of)
{
    uint32_t n = 0;
    uint64_t before = 0;
    for (uint32_t v = 0; v < p->in->domain[level]; v++) {
        uint32_t child = row[v] == KP_MDD_NONE ? KP_MDD_NONE : node_of[row[v]];
        if (child == KP_MDD_NONE)
            continue;
        d->edges[d->n_edges + n++] = (struct kp_edge){before, child, v};
        before = add_counts(d, before, d->count[child]);
    }
    d->count[d->n_nodes] = before;
    return n;
}

static bool same_edges(const struct kp_diagram *d, uint32_t node, const struct kp_edge *e,
                       uint32_t n)
{
    return d->first_edge[node + 1] - d->first_edge[node] == n &&
           memcmp(&d->edges[d->first_edge[node]], e, n * sizeof(*e)) == 0;
}

static bool reserve_nodes(struct kp_product *p, struct kp_diagram *d, uint32_t domain)
{
    void *q = kp_budget_grow(p->b, d->first_edge, &d->cap_nodes, (size_t)d->n_nodes + 2,
                             sizeof(*d->first_edge));
    if (!q)
        return false;
    d->first_edge = q;
    q = kp_budget_grow(p->b, d->count, &d->cap_counts, (size_t)d->n_nodes + 1,
                       sizeof(*d->count));
    if (!q)
        return false;
    d->count = q;
    size_t n = (size_t)d->n_edges + domain;
    if (n >= UINT32_MAX) {
        p->b->over = true;
        return false;
    }
    q = kp_budget_grow(p->b, d->edges, &d->cap_edges, n, sizeof(*d->edges));
    if (!q)
        return false;
    d->edges = q;
    return true;
}

/* node_of[state] for a level, from that of the next level. */
static bool reduce_level(struct kp_product *p, struct kp_diagram *d, uint32_t level,
                         const uint32_t *next, uint32_t *node_of)
{
    uint32_t domain = p->in->domain[level];
    size_t n = p->n_states[level];
    size_t cap = 16;
    while (cap < 2 * n)
        cap *= 2;
    uint32_t *table = kp_budget_calloc(p->b, cap, sizeof(*table));
    if (!table)
        return false;
    bool ok = true;
    d->first_node[level] = d->n_nodes;
    for (size_t i = 0; i < n && ok; i++) {
        ok = reserve_nodes(p, d, domain);
        if (!ok)
            break;
        uint32_t n_edges = write_edges(p, d, p->raw[level] + i * domain, level, next);
        node_of[i] = KP_MDD_NONE;
        if (n_edges == 0)
            continue;
        const struct kp_edge *e = d->edges + d->n_edges;
        size_t at = (size_t)kp_hash64(e, n_edges * sizeof(*e), 0) & (cap - 1);
        while (table[at] && !same_edges(d, table[at], e, n_edges))
            at = (at + 1) & (cap - 1);
        if (!table[at]) {
            table[at] = d->n_nodes++;
            d->n_edges += n_edges;
            d->first_edge[d->n_nodes] = d->n_edges;
        }
        node_of[i] = table[at];
    }
    d->width[level] = d->n_nodes - d->first_node[level];
    kp_budget_free(p->b, table, cap * sizeof(*table));
    return ok;
}

static bool start_diagram(struct kp_product *p, struct kp_diagram *d)
{
    uint32_t n = p->in->n_levels;
    d->n_levels = n;
    d->domain = kp_budget_calloc(p->b, (size_t)n + 1, sizeof(*d->domain));
    d->first_node = kp_budget_calloc(p->b, (size_t)n + 1, sizeof(*d->first_node));
    d->width = kp_budget_calloc(p->b, (size_t)n + 1, sizeof(*d->width));
    if (!d->domain || !d->first_node || !d->width || !reserve_nodes(p, d, 0))
        return false;
    if (n)
        memcpy(d->domain, p->in->domain, n * sizeof(*d->domain));
    d->n_nodes = 1;
    d->count[0] = 1;
    d->first_edge[0] = 0;
    d->first_edge[1] = 0;
    d->width[n] = 1;
    return true;
}

/* Gives back what growing left over; a failure to do so is none. */
static void shrink(struct kp_product *p, struct kp_diagram *d)
{
    size_t n_edges = d->n_edges ? d->n_edges : 1;
    void *q = kp_budget_resize(p->b, d->edges, d->cap_edges * sizeof(*d->edges),
                               n_edges * sizeof(*d->edges));
    if (q) {
        d->edges = q;
        d->cap_edges = n_edges;
    }
}

bool kp_product_reduce(struct kp_product *p, struct kp_diagram *d)
{
    uint32_t n = p->in->n_levels;
    uint32_t end = 0;
    uint32_t *next = &end;
    size_t next_bytes = 0;
    bool ok = start_diagram(p, d);
    if (!ok || p->n_states[n] == 0)
        return ok;
    for (uint32_t level = n; ok && level-- > 0;) {
        size_t bytes = p->n_states[level] * sizeof(uint32_t);
        uint32_t *node_of = kp_budget_calloc(p->b, bytes, 1);
        ok = node_of && reduce_level(p, d, level, next, node_of);
        if (next != &end)
            kp_budget_free(p->b, next, next_bytes);
        next = node_of;
        next_bytes = bytes;
        kp_budget_free(p->b, p->raw[level], p->raw_cap[level] * sizeof(uint32_t));
        p->raw[level] = NULL;
    }
    if (ok) {
        d->root = next[0];
        shrink(p, d);
    }
    if (next != &end)
        kp_budget_free(p->b, next, next_bytes);
    return ok;
}
