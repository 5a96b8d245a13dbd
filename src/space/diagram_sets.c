/* SPDX-License-Identifier: MIT */
#include "space/diagram_sets.h"

#include "base/hash.h"

#include <string.h>

bool kp_sets_init(struct kp_sets *s, struct kp_budget *b, uint32_t n_values)
{
    *s = (struct kp_sets){.n_values = n_values, .words = (n_values + 63) / 64, .table_cap = 16};
    s->table = kp_budget_calloc(b, s->table_cap, sizeof(*s->table));
    s->scratch = kp_budget_calloc(b, s->words, sizeof(*s->scratch));
    return s->table && s->scratch;
}

void kp_sets_deinit(struct kp_sets *s, struct kp_budget *b)
{
    kp_budget_free(b, s->bits, s->cap * s->words * sizeof(*s->bits));
    kp_budget_free(b, s->table, s->table_cap * sizeof(*s->table));
    kp_budget_free(b, s->scratch, s->words * sizeof(*s->scratch));
    *s = (struct kp_sets){0};
}

static uint32_t *place(const struct kp_sets *s, const uint64_t *bits)
{
    size_t bytes = s->words * sizeof(*bits);
    uint64_t hash =
        s->words == 1 ? (bits[0] * 0x9e3779b97f4a7c15U) >> 24 : kp_hash64(bits, bytes, 0);
    size_t i = (size_t)hash & (s->table_cap - 1);
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

uint32_t kp_sets_meet(struct kp_sets *s, struct kp_budget *b, uint32_t x, uint32_t y)
{
    uint64_t any = 0;
    const uint64_t *p = kp_sets_get(s, x);
    const uint64_t *q = kp_sets_get(s, y);
    for (uint32_t w = 0; w < s->words; w++) {
        s->scratch[w] = p[w] & q[w];
        any |= s->scratch[w];
    }
    return any ? kp_sets_add(s, b, s->scratch) : KP_SET_EMPTY;
}
