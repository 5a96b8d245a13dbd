/* SPDX-License-Identifier: MIT */
#include "space/diagram.h"

const struct kp_edge *kp_diagram_edge(const struct kp_diagram *d, uint32_t node, uint32_t value)
{
    const struct kp_edge *e = d->edges + d->first_edge[node];
    uint32_t n = d->first_edge[node + 1] - d->first_edge[node];
    /* Most nodes keep all values; where some are missing, `value` stands before its own index.
     */
    if (n == 0)
        return NULL;
    uint32_t hi = value < n ? value : n - 1;
    if (e[hi].value == value)
        return &e[hi];
    uint32_t lo = 0;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (e[mid].value < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return e[lo].value == value ? &e[lo] : NULL;
}

const struct kp_edge *kp_diagram_edge_at(const struct kp_diagram *d, uint32_t node,
                                         uint64_t rank)
{
    const struct kp_edge *e = d->edges + d->first_edge[node];
    uint32_t lo = 0;
    uint32_t hi = d->first_edge[node + 1] - d->first_edge[node] - 1;
    while (lo < hi) {
        uint32_t mid = hi - (hi - lo) / 2;
        if (e[mid].before <= rank)
            lo = mid;
        else
            hi = mid - 1;
    }
    return &e[lo];
}

void kp_diagram_deinit(struct kp_diagram *d, struct kp_budget *b)
{
    size_t n = (size_t)d->n_levels + 1;
    kp_budget_free(b, d->domain, n * sizeof(*d->domain));
    kp_budget_free(b, d->first_node, n * sizeof(*d->first_node));
    kp_budget_free(b, d->width, n * sizeof(*d->width));
    kp_budget_free(b, d->first_edge, d->cap_nodes * sizeof(*d->first_edge));
    kp_budget_free(b, d->count, d->cap_counts * sizeof(*d->count));
    kp_budget_free(b, d->edges, d->cap_edges * sizeof(*d->edges));
    *d = (struct kp_diagram){.root = KP_MDD_NONE};
}
