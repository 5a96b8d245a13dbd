/* SPDX-License-Identifier: MIT */
#include "space/residual_memo.h"

#include "base/hash.h"

#include <string.h>

struct kp_memo_entry {
    uint64_t hash;
    size_t key; /* where its cells begin */
    uint32_t n_key;
    uint32_t level;
    uint32_t result; /* a node, or the root of its intervals */
};

/* Intervals in a treap ordered by `lo`; they are disjoint, and each has another node. Index 0
 * is none. */
struct kp_memo_interval {
    int64_t lo;
    int64_t hi;
    uint32_t left;
    uint32_t right;
    uint32_t node;
    uint32_t priority;
};

static bool grow_table(struct kp_memo *m)
{
    size_t cap = m->table_cap ? 2 * m->table_cap : 256;
    uint32_t *table = kp_budget_calloc(m->budget, cap, sizeof(*table));
    if (!table)
        return false;
    for (size_t i = 0; i < m->n_entries; i++) {
        size_t at = (size_t)m->entries[i].hash & (cap - 1);
        while (table[at])
            at = (at + 1) & (cap - 1);
        table[at] = (uint32_t)i + 1;
    }
    kp_budget_free(m->budget, m->table, m->table_cap * sizeof(*table));
    m->table = table;
    m->table_cap = cap;
    return true;
}

static bool same_key(const struct kp_memo *m, const struct kp_memo_entry *e, uint64_t hash,
                     const struct kp_state_key *key)
{
    return e->hash == hash && e->level == key->level && e->n_key == key->n &&
           memcmp(m->cells + e->key, key->cells, key->n * sizeof(*key->cells)) == 0;
}

static bool reserve(struct kp_memo *m, uint32_t n_key)
{
    void *p = kp_budget_grow(m->budget, m->entries, &m->cap_entries, m->n_entries + 1,
                             sizeof(*m->entries));
    if (!p)
        return false;
    m->entries = p;
    p = kp_budget_grow(m->budget, m->cells, &m->cap_cells, m->n_cells + n_key + 1,
                       sizeof(*m->cells));
    if (!p)
        return false;
    m->cells = p;
    return true;
}

size_t kp_memo_find(struct kp_memo *m, const struct kp_state_key *key)
{
    if (2 * (m->n_entries + 1) > m->table_cap && !grow_table(m))
        return SIZE_MAX;
    uint64_t hash = kp_hash64(key->cells, key->n * sizeof(*key->cells), key->level);
    size_t at = (size_t)hash & (m->table_cap - 1);
    for (; m->table[at]; at = (at + 1) & (m->table_cap - 1))
        if (same_key(m, &m->entries[m->table[at] - 1], hash, key))
            return m->table[at] - 1;
    if (!reserve(m, key->n))
        return SIZE_MAX;
    if (key->n)
        memcpy(m->cells + m->n_cells, key->cells, key->n * sizeof(*key->cells));
    m->entries[m->n_entries] = (struct kp_memo_entry){
        .hash = hash,
        .key = m->n_cells,
        .n_key = key->n,
        .level = key->level,
        .result = key->has_scalar ? 0 : KP_MDD_NONE,
    };
    m->n_cells += key->n;
    m->table[at] = (uint32_t)++m->n_entries;
    return m->n_entries - 1;
}

struct around {
    uint32_t below; /* the last interval that begins at or below the scalar */
    uint32_t above; /* the first one that begins above it */
};

static struct around look_around(const struct kp_memo *m, uint32_t root, int64_t scalar)
{
    struct around n = {0, 0};
    for (uint32_t at = root; at;) {
        const struct kp_memo_interval *i = &m->intervals[at];
        if (i->lo <= scalar) {
            n.below = at;
            at = i->right;
        } else {
            n.above = at;
            at = i->left;
        }
    }
    return n;
}

static void insert(struct kp_memo *m, uint32_t *root, uint32_t added)
{
    struct kp_memo_interval *v = m->intervals;
    uint32_t *link = root;
    while (*link && v[*link].priority >= v[added].priority)
        link = v[*link].lo < v[added].lo ? &v[*link].right : &v[*link].left;
    uint32_t rest = *link;
    uint32_t *less = &v[added].left;
    uint32_t *more = &v[added].right;
    *link = added;
    while (rest) {
        if (v[rest].lo < v[added].lo) {
            *less = rest;
            less = &v[rest].right;
            rest = *less;
        } else {
            *more = rest;
            more = &v[rest].left;
            rest = *more;
        }
    }
    *less = 0;
    *more = 0;
}

bool kp_memo_store(struct kp_memo *m, size_t entry, const struct kp_state_key *key,
                   int direction, uint32_t node)
{
    struct kp_memo_entry *e = &m->entries[entry];
    int64_t lo = key->scalar;
    int64_t hi = key->scalar;
    if (!key->has_scalar) {
        e->result = node;
        return true;
    }
    if (node <= KP_MDD_TRUE) { /* holds for all scalars on its side as well */
        bool up = (direction > 0) == (node == KP_MDD_TRUE);
        lo = up ? lo : INT64_MIN;
        hi = up ? INT64_MAX : hi;
    }
    struct around n = look_around(m, e->result, key->scalar);
    if (n.below && m->intervals[n.below].node == node) {
        if (hi > m->intervals[n.below].hi)
            m->intervals[n.below].hi = hi;
        return true;
    }
    if (n.above && m->intervals[n.above].node == node) {
        m->intervals[n.above].lo = lo;
        return true;
    }
    void *p = kp_budget_grow(m->budget, m->intervals, &m->cap_intervals, m->n_intervals + 2,
                             sizeof(*m->intervals));
    if (!p)
        return false;
    m->intervals = p;
    uint32_t added = (uint32_t)++m->n_intervals;
    m->intervals[added] = (struct kp_memo_interval){
        .lo = lo, .hi = hi, .node = node, .priority = added * 2654435761U};
    insert(m, &e->result, added);
    return true;
}

bool kp_memo_recall(const struct kp_memo *m, size_t entry, const struct kp_state_key *key,
                    uint32_t *node)
{
    const struct kp_memo_entry *e = &m->entries[entry];
    *node = e->result;
    if (!key->has_scalar)
        return e->result != KP_MDD_NONE;
    struct around n = look_around(m, e->result, key->scalar);
    if (!n.below || m->intervals[n.below].hi < key->scalar)
        return false;
    *node = m->intervals[n.below].node;
    return true;
}

void kp_memo_deinit(struct kp_memo *m)
{
    struct kp_budget *b = m->budget;
    kp_budget_free(b, m->entries, m->cap_entries * sizeof(*m->entries));
    kp_budget_free(b, m->cells, m->cap_cells * sizeof(*m->cells));
    kp_budget_free(b, m->table, m->table_cap * sizeof(*m->table));
    kp_budget_free(b, m->intervals, m->cap_intervals * sizeof(*m->intervals));
    *m = (struct kp_memo){.budget = b};
}
