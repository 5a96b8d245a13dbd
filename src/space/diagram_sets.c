/* SPDX-License-Identifier: MIT */
#include "space/diagram_sets.h"

#include "base/hash.h"

#include <string.h>

struct kp_meet {
    uint64_t pair;
    uint32_t level; /* + 1; 0 = free */
    uint32_t result;
};

bool kp_sets_init(struct kp_sets *s, struct kp_budget *b, uint32_t n_values)
{
    *s = (struct kp_sets){.n_values = n_values, .words = (n_values + 63) / 64, .table_cap = 16};
    s->table = kp_budget_calloc(b, s->table_cap, sizeof(*s->table));
    return s->table != NULL;
}

void kp_sets_deinit(struct kp_sets *s, struct kp_budget *b)
{
    kp_budget_free(b, s->bits, s->cap * s->words * sizeof(*s->bits));
    kp_budget_free(b, s->table, s->table_cap * sizeof(*s->table));
    *s = (struct kp_sets){0};
}

static uint32_t *place(const struct kp_sets *s, const uint64_t *bits)
{
    size_t bytes = s->words * sizeof(*bits);
    size_t i = (size_t)kp_hash64(bits, bytes, 0) & (s->table_cap - 1);
    while (s->table[i] && memcmp(kp_sets_get(s, s->table[i] - 1), bits, bytes) != 0)
        i = (i + 1) & (s->table_cap - 1);
    return &s->table[i];
}

static bool grow_table(struct kp_sets *s, struct kp_budget *b)
{
    size_t cap = 2 * s->table_cap;
    uint32_t *table = kp_budget_calloc(b, cap, sizeof(*table));
    if (!table)
        return false;
    kp_budget_free(b, s->table, s->table_cap * sizeof(*table));
    s->table = table;
    s->table_cap = cap;
    for (uint32_t id = 0; id < s->n; id++)
        *place(s, kp_sets_get(s, id)) = id + 1;
    return true;
}

uint32_t kp_sets_add(struct kp_sets *s, struct kp_budget *b, const uint64_t *bits)
{
    uint32_t *at = place(s, bits);
    if (*at)
        return *at - 1;
    if (s->n + 2 >= KP_SET_EMPTY) {
        b->over = true;
        return KP_MDD_NONE;
    }
    if (2 * (s->n + 1) > s->table_cap && !grow_table(s, b))
        return KP_MDD_NONE;
    size_t row = s->words * sizeof(*bits);
    uint64_t *p = kp_budget_grow(b, s->bits, &s->cap, s->n + 1, row);
    if (!p)
        return KP_MDD_NONE;
    s->bits = p;
    memcpy(s->bits + s->n * s->words, bits, row);
    *place(s, bits) = (uint32_t)++s->n;
    return (uint32_t)s->n - 1;
}

static struct kp_meet *place_meet(const struct kp_meets *m, uint32_t level, uint64_t pair)
{
    uint64_t hash = (pair ^ ((uint64_t)level << 56)) * 0x9e3779b97f4a7c15U;
    size_t i = (size_t)(hash >> 20) & (m->cap - 1);
    while (m->items[i].level && (m->items[i].level != level + 1 || m->items[i].pair != pair))
        i = (i + 1) & (m->cap - 1);
    return &m->items[i];
}

static bool grow_meets(struct kp_meets *m, struct kp_budget *b)
{
    struct kp_meets old = *m;
    size_t cap = old.cap ? 2 * old.cap : 256;
    struct kp_meet *items = kp_budget_calloc(b, cap, sizeof(*items));
    if (!items)
        return false;
    m->items = items;
    m->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.items[i].level)
            *place_meet(m, old.items[i].level - 1, old.items[i].pair) = old.items[i];
    kp_budget_free(b, old.items, old.cap * sizeof(*items));
    return true;
}

/* Only called for a pair that is new. */
static uint32_t make_meet(struct kp_sets *s, struct kp_budget *b, uint64_t pair)
{
    uint64_t any = 0;
    uint64_t *bits = kp_budget_calloc(b, s->words, sizeof(*bits));
    if (!bits)
        return KP_MDD_NONE;
    const uint64_t *x = kp_sets_get(s, (uint32_t)(pair >> 32));
    const uint64_t *y = kp_sets_get(s, (uint32_t)pair);
    for (uint32_t w = 0; w < s->words; w++) {
        bits[w] = x[w] & y[w];
        any |= bits[w];
    }
    uint32_t id = any ? kp_sets_add(s, b, bits) : (uint32_t)KP_SET_EMPTY;
    kp_budget_free(b, bits, s->words * sizeof(*bits));
    return id;
}

uint32_t kp_sets_meet(struct kp_sets *s, struct kp_meets *m, struct kp_budget *b,
                      uint32_t level, uint64_t pair)
{
    if (2 * (m->n + 1) > m->cap && !grow_meets(m, b))
        return KP_MDD_NONE;
    struct kp_meet *at = place_meet(m, level, pair);
    if (at->level)
        return at->result;
    uint32_t id = make_meet(s, b, pair);
    if (id == KP_MDD_NONE)
        return id;
    *at = (struct kp_meet){.pair = pair, .level = level + 1, .result = id};
    m->n++;
    return id;
}

void kp_meets_deinit(struct kp_meets *m, struct kp_budget *b)
{
    kp_budget_free(b, m->items, m->cap * sizeof(*m->items));
    *m = (struct kp_meets){0};
}
