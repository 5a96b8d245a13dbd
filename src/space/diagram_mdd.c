/* SPDX-License-Identifier: MIT */
#include "space/diagram.h"

#include "base/hash.h"

#include <string.h>

bool kp_mdd_init(struct kp_mdd *m, struct kp_budget *b, uint32_t n_vars, const uint32_t *level,
                 const uint32_t *domain)
{
    *m = (struct kp_mdd){.n_vars = n_vars, .n_nodes = 2, .table_cap = 64, .root = KP_MDD_NONE};
    m->level = kp_budget_calloc(b, n_vars, sizeof(*m->level));
    m->domain = kp_budget_calloc(b, n_vars, sizeof(*m->domain));
    m->node_var = kp_budget_grow(b, NULL, &m->cap_nodes, 2, sizeof(*m->node_var));
    m->row = kp_budget_grow(b, NULL, &m->cap_rows, 2, sizeof(*m->row));
    m->child = kp_budget_grow(b, NULL, &m->cap_children, 1, sizeof(*m->child));
    m->table = kp_budget_calloc(b, m->table_cap, sizeof(*m->table));
    if (!m->level || !m->domain || !m->node_var || !m->row || !m->child || !m->table)
        return false;
    if (n_vars) {
        memcpy(m->level, level, n_vars * sizeof(*level));
        memcpy(m->domain, domain, n_vars * sizeof(*domain));
    }
    for (uint32_t i = 0; i < 2; i++) {
        m->node_var[i] = n_vars;
        m->row[i] = 0;
    }
    return true;
}

static size_t row_hash(uint32_t var, const uint32_t *child, uint32_t n)
{
    return (size_t)kp_hash64(child, n * sizeof(*child), var);
}

/* The place of a row in the table: that of an equal one, or a free one (0). */
static uint32_t *place(const struct kp_mdd *m, uint32_t var, const uint32_t *child, size_t hash)
{
    size_t bytes = m->domain[var] * sizeof(*child);
    size_t mask = m->table_cap - 1;
    size_t i = hash & mask;
    while (m->table[i]) {
        uint32_t id = m->table[i];
        if (m->node_var[id] == var && memcmp(kp_mdd_row(m, id), child, bytes) == 0)
            break;
        i = (i + 1) & mask;
    }
    return &m->table[i];
}

static bool grow_table(struct kp_mdd *m, struct kp_budget *b)
{
    uint32_t *old = m->table;
    size_t old_cap = m->table_cap;
    uint32_t *table = kp_budget_calloc(b, 2 * old_cap, sizeof(*table));
    if (!table)
        return false;
    m->table = table;
    m->table_cap = 2 * old_cap;
    for (uint32_t id = 2; id < m->n_nodes; id++) {
        const uint32_t *row = kp_mdd_row(m, id);
        uint32_t var = m->node_var[id];
        *place(m, var, row, row_hash(var, row, m->domain[var])) = id;
    }
    kp_budget_free(b, old, old_cap * sizeof(*old));
    return true;
}

static bool make_room(struct kp_mdd *m, struct kp_budget *b, uint32_t n_children)
{
    size_t n = (size_t)m->n_nodes + 1;
    if (n >= KP_MDD_NONE) {
        b->over = true;
        return false;
    }
    void *p = kp_budget_grow(b, m->node_var, &m->cap_nodes, n, sizeof(*m->node_var));
    if (!p)
        return false;
    m->node_var = p;
    p = kp_budget_grow(b, m->row, &m->cap_rows, n, sizeof(*m->row));
    if (!p)
        return false;
    m->row = p;
    p = kp_budget_grow(b, m->child, &m->cap_children, m->n_children + n_children,
                       sizeof(*m->child));
    if (!p)
        return false;
    m->child = p;
    return 2 * n <= m->table_cap || grow_table(m, b);
}

uint32_t kp_mdd_node(struct kp_mdd *m, struct kp_budget *b, uint32_t var, const uint32_t *child)
{
    uint32_t n = m->domain[var];
    uint32_t same = 1;
    while (same < n && child[same] == child[0])
        same++;
    if (same == n)
        return child[0];
    size_t hash = row_hash(var, child, n);
    uint32_t *at = place(m, var, child, hash);
    if (*at)
        return *at;
    if (!make_room(m, b, n))
        return KP_MDD_NONE;
    uint32_t id = m->n_nodes++;
    m->node_var[id] = var;
    m->row[id] = m->n_children;
    memcpy(m->child + m->n_children, child, n * sizeof(*child));
    m->n_children += n;
    *place(m, var, child, hash) = id;
    return id;
}

void kp_mdd_seal(struct kp_mdd *m, struct kp_budget *b)
{
    kp_budget_free(b, m->table, m->table_cap * sizeof(*m->table));
    m->table = NULL;
    m->table_cap = 0;
}

static uint32_t swapped(uint32_t node)
{
    return node == KP_MDD_FALSE ? KP_MDD_TRUE : node == KP_MDD_TRUE ? KP_MDD_FALSE : node;
}

void kp_mdd_complement(struct kp_mdd *m)
{
    for (size_t i = 0; i < m->n_children; i++)
        m->child[i] = swapped(m->child[i]);
    m->root = swapped(m->root);
}

void kp_mdd_deinit(struct kp_mdd *m, struct kp_budget *b)
{
    kp_mdd_seal(m, b);
    kp_budget_free(b, m->level, m->n_vars * sizeof(*m->level));
    kp_budget_free(b, m->domain, m->n_vars * sizeof(*m->domain));
    kp_budget_free(b, m->node_var, m->cap_nodes * sizeof(*m->node_var));
    kp_budget_free(b, m->row, m->cap_rows * sizeof(*m->row));
    kp_budget_free(b, m->child, m->cap_children * sizeof(*m->child));
    *m = (struct kp_mdd){0};
}
