/* SPDX-License-Identifier: MIT */
#include "space/diagram.h"

#include "base/hash.h"

#include <string.h>

static size_t words_of(const struct kp_mdd *m, uint32_t var)
{
    return ((size_t)m->domain[var] + 63) / 64;
}

bool kp_mdd_init(struct kp_mdd *m, struct kp_budget *b, uint32_t n_vars, const uint32_t *level,
                 const uint32_t *domain)
{
    *m = (struct kp_mdd){.n_vars = n_vars, .n_nodes = 2, .table_cap = 64, .root = KP_MDD_NONE};
    m->level = kp_budget_calloc(b, n_vars, sizeof(*m->level));
    m->domain = kp_budget_calloc(b, n_vars, sizeof(*m->domain));
    m->node_var = kp_budget_grow(b, NULL, &m->cap_nodes, 2, sizeof(*m->node_var));
    m->row = kp_budget_grow(b, NULL, &m->cap_rows, 2, sizeof(*m->row));
    m->table = kp_budget_calloc(b, m->table_cap, sizeof(*m->table));
    if (!m->level || !m->domain || !m->node_var || !m->row || !m->table)
        return false;
    if (n_vars) {
        memcpy(m->level, level, n_vars * sizeof(*level));
        memcpy(m->domain, domain, n_vars * sizeof(*domain));
    }
    for (uint32_t i = 0; i < n_vars; i++)
        if (words_of(m, i) > m->scratch_words)
            m->scratch_words = words_of(m, i);
    m->scratch = kp_budget_calloc(b, m->scratch_words, sizeof(*m->scratch));
    for (uint32_t i = 0; i < 2; i++) {
        m->node_var[i] = n_vars;
        m->row[i] = 0;
    }
    return m->scratch != NULL;
}

/* A node that may or may not be there: its children or its set. */
struct candidate {
    uint32_t var;
    bool unary;
    const void *data;
    size_t bytes;
    size_t hash;
};

static struct candidate with_hash(struct candidate c)
{
    c.hash = (size_t)kp_hash64(c.data, c.bytes, 2 * (uint64_t)c.var + c.unary);
    return c;
}

static struct candidate from_row(const struct kp_mdd *m, uint32_t var, const uint32_t *row)
{
    return with_hash((struct candidate){var, false, row, m->domain[var] * sizeof(*row), 0});
}

static struct candidate from_set(const struct kp_mdd *m, uint32_t var, const uint64_t *set)
{
    return with_hash((struct candidate){var, true, set, words_of(m, var) * sizeof(*set), 0});
}

static struct candidate from_node(const struct kp_mdd *m, uint32_t node)
{
    uint32_t var = m->node_var[node];
    return kp_mdd_is_unary(m, node) ? from_set(m, var, kp_mdd_set(m, node))
                                    : from_row(m, var, kp_mdd_row(m, node));
}

static bool is_node(const struct kp_mdd *m, uint32_t node, const struct candidate *c)
{
    if (m->node_var[node] != c->var || kp_mdd_is_unary(m, node) != c->unary)
        return false;
    const void *data = c->unary ? (const void *)kp_mdd_set(m, node) : kp_mdd_row(m, node);
    return memcmp(data, c->data, c->bytes) == 0;
}

/* The place of a candidate in the table: that of an equal node, or a free one (0). */
static uint32_t *place(const struct kp_mdd *m, const struct candidate *c)
{
    size_t mask = m->table_cap - 1;
    size_t i = c->hash & mask;
    while (m->table[i] && !is_node(m, m->table[i], c))
        i = (i + 1) & mask;
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
        struct candidate c = from_node(m, id);
        *place(m, &c) = id;
    }
    kp_budget_free(b, old, old_cap * sizeof(*old));
    return true;
}

static bool make_room(struct kp_mdd *m, struct kp_budget *b, const struct candidate *c)
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
    if (c->unary) {
        p = kp_budget_grow(b, m->bits, &m->cap_words, m->n_words + words_of(m, c->var),
                           sizeof(*m->bits));
        m->bits = p ? p : m->bits;
    } else {
        p = kp_budget_grow(b, m->child, &m->cap_children, m->n_children + m->domain[c->var],
                           sizeof(*m->child));
        m->child = p ? p : m->child;
    }
    return p && (2 * n <= m->table_cap || grow_table(m, b));
}

static uint32_t add_node(struct kp_mdd *m, struct kp_budget *b, const struct candidate *c)
{
    uint32_t *at = place(m, c);
    if (*at)
        return *at;
    if (!make_room(m, b, c))
        return KP_MDD_NONE;
    uint32_t id = m->n_nodes++;
    m->node_var[id] = c->var;
    if (c->unary) {
        m->row[id] = m->n_words | KP_MDD_UNARY;
        memcpy(m->bits + m->n_words, c->data, c->bytes);
        m->n_words += words_of(m, c->var);
    } else {
        m->row[id] = m->n_children;
        memcpy(m->child + m->n_children, c->data, c->bytes);
        m->n_children += m->domain[c->var];
    }
    *place(m, c) = id;
    return id;
}

uint32_t kp_mdd_node(struct kp_mdd *m, struct kp_budget *b, uint32_t var, const uint32_t *child)
{
    bool same = true;
    bool unary = true;
    for (uint32_t v = 0; v < m->domain[var]; v++) {
        same = same && child[v] == child[0];
        unary = unary && child[v] <= KP_MDD_TRUE;
    }
    if (same)
        return child[0];
    struct candidate c;
    if (unary) {
        memset(m->scratch, 0, words_of(m, var) * sizeof(*m->scratch));
        for (uint32_t v = 0; v < m->domain[var]; v++)
            m->scratch[v / 64] |= (uint64_t)child[v] << (v % 64);
        c = from_set(m, var, m->scratch);
    } else {
        c = from_row(m, var, child);
    }
    return add_node(m, b, &c);
}

void kp_mdd_seal(struct kp_mdd *m, struct kp_budget *b)
{
    kp_budget_free(b, m->table, m->table_cap * sizeof(*m->table));
    kp_budget_free(b, m->scratch, m->scratch_words * sizeof(*m->scratch));
    m->table = NULL;
    m->table_cap = 0;
    m->scratch = NULL;
    m->scratch_words = 0;
}

static uint32_t swapped(uint32_t node)
{
    return node == KP_MDD_FALSE ? KP_MDD_TRUE : node == KP_MDD_TRUE ? KP_MDD_FALSE : node;
}

void kp_mdd_complement(struct kp_mdd *m)
{
    for (size_t i = 0; i < m->n_children; i++)
        m->child[i] = swapped(m->child[i]);
    for (uint32_t id = 2; id < m->n_nodes; id++) {
        if (!kp_mdd_is_unary(m, id))
            continue;
        uint64_t *set = m->bits + (m->row[id] & ~KP_MDD_UNARY);
        for (uint32_t v = 0; v < m->domain[m->node_var[id]]; v++)
            set[v / 64] ^= (uint64_t)1 << (v % 64);
    }
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
    kp_budget_free(b, m->bits, m->cap_words * sizeof(*m->bits));
    *m = (struct kp_mdd){.root = KP_MDD_NONE};
}
