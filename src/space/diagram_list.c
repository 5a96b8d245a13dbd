/* SPDX-License-Identifier: MIT */
/* The list is sorted in the order of the levels; then it is a trie read from left to right, and
 * a node is complete, and can be merged with one that is equal, as soon as the next
 * configuration leaves it. */
#include "space/diagram_list.h"

#include "base/alloc.h"

#include <string.h>

struct listing {
    const struct kp_space_desc *desc;
    const uint32_t *order;
    uint32_t n_levels;
    struct kp_budget *b;
    uint32_t *sorted; /* places in the list */
    uint32_t *other;  /* the same, while sorting */
    uint32_t *counts;
    uint32_t *cells; /* the rows, one behind the other */
    uint32_t *row[KP_PARAMS_MAX];
    uint32_t domain[KP_PARAMS_MAX];
    size_t n_cells;
    uint32_t widest; /* largest domain */
};

static const uint32_t *config_at(const struct listing *x, size_t i)
{
    return x->desc->listed + (size_t)x->sorted[i] * x->desc->n_params;
}

/* By the value at one level; equal ones stay in their order. */
static void sort_by(struct listing *x, uint32_t level)
{
    const struct kp_space_desc *d = x->desc;
    uint32_t param = x->order[level];
    uint32_t sum = 0;
    memset(x->counts, 0, x->domain[level] * sizeof(*x->counts));
    for (size_t i = 0; i < d->n_listed; i++)
        x->counts[d->listed[i * d->n_params + param]]++;
    for (uint32_t v = 0; v < x->domain[level]; v++) {
        uint32_t n = x->counts[v];
        x->counts[v] = sum;
        sum += n;
    }
    for (size_t i = 0; i < d->n_listed; i++)
        x->other[x->counts[config_at(x, i)[param]]++] = x->sorted[i];
    uint32_t *t = x->sorted;
    x->sorted = x->other;
    x->other = t;
}

static bool prepare(struct listing *x)
{
    size_t n = x->desc->n_listed;
    for (uint32_t k = 0; k < x->n_levels; k++) {
        x->domain[k] = x->desc->params[x->order[k]].n_values;
        x->n_cells += x->domain[k];
        x->widest = x->domain[k] > x->widest ? x->domain[k] : x->widest;
    }
    x->sorted = kp_budget_calloc(x->b, n, sizeof(*x->sorted));
    x->other = kp_budget_calloc(x->b, n, sizeof(*x->other));
    x->counts = kp_budget_calloc(x->b, x->widest, sizeof(*x->counts));
    x->cells = kp_budget_calloc(x->b, x->n_cells, sizeof(*x->cells));
    if (!x->sorted || !x->other || !x->counts || !x->cells)
        return false;
    for (uint32_t k = 0, at = 0; k < x->n_levels; at += x->domain[k++])
        x->row[k] = x->cells + at;
    for (size_t i = 0; i < n; i++)
        x->sorted[i] = (uint32_t)i;
    for (uint32_t k = x->n_levels; k-- > 0;)
        sort_by(x, k);
    return true;
}

static void release(struct listing *x)
{
    size_t n = x->desc->n_listed;
    kp_budget_free(x->b, x->sorted, n * sizeof(*x->sorted));
    kp_budget_free(x->b, x->other, n * sizeof(*x->other));
    kp_budget_free(x->b, x->counts, x->widest * sizeof(*x->counts));
    kp_budget_free(x->b, x->cells, x->n_cells * sizeof(*x->cells));
}

/* The node of the row at `level`, which is empty afterwards. */
static uint32_t close_row(struct listing *x, struct kp_mdd *m, uint32_t level)
{
    uint32_t node = kp_mdd_node(m, x->b, level, x->row[level]);
    memset(x->row[level], 0, x->domain[level] * sizeof(uint32_t)); /* KP_MDD_FALSE */
    return node;
}

/* The nodes of the path `config` below `level`, which the next configuration does not share. */
static bool close_below(struct listing *x, struct kp_mdd *m, const uint32_t *config,
                        uint32_t level)
{
    for (uint32_t k = x->n_levels - 1; k > level; k--) {
        uint32_t node = close_row(x, m, k);
        if (node == KP_MDD_NONE)
            return false;
        x->row[k - 1][config[x->order[k - 1]]] = node;
    }
    return true;
}

/* The first level at which two differ; n_levels: none. */
static uint32_t common(const struct listing *x, const uint32_t *a, const uint32_t *b)
{
    uint32_t k = 0;
    while (k < x->n_levels && a[x->order[k]] == b[x->order[k]])
        k++;
    return k;
}

static bool merge(struct listing *x, struct kp_mdd *m)
{
    size_t n = x->desc->n_listed;
    uint32_t last = x->n_levels - 1;
    for (size_t i = 0; i < n; i++) {
        const uint32_t *config = config_at(x, i);
        if (i > 0) {
            const uint32_t *before = config_at(x, i - 1);
            uint32_t level = common(x, before, config);
            if (level < x->n_levels && !close_below(x, m, before, level))
                return false;
        }
        x->row[last][config[x->order[last]]] = KP_MDD_TRUE;
    }
    if (!close_below(x, m, config_at(x, n - 1), 0))
        return false;
    m->root = close_row(x, m, 0);
    return m->root != KP_MDD_NONE;
}

bool kp_list_mdd(const struct kp_space_desc *desc, const uint32_t *order, uint32_t n_levels,
                 struct kp_budget *b, struct kp_mdd *out)
{
    uint32_t level[KP_PARAMS_MAX];
    struct listing x = {.desc = desc, .order = order, .n_levels = n_levels, .b = b};
    for (uint32_t k = 0; k < n_levels; k++)
        level[k] = k;
    bool ok = prepare(&x) && kp_mdd_init(out, b, n_levels, level, x.domain);
    if (ok && n_levels > 0 && desc->n_listed > 0)
        ok = merge(&x, out);
    else
        out->root = desc->n_listed > 0 ? KP_MDD_TRUE : KP_MDD_FALSE;
    kp_mdd_seal(out, b);
    if (!ok)
        kp_mdd_deinit(out, b);
    release(&x);
    return ok;
}
