/* SPDX-License-Identifier: MIT */
#include "search/memo.h"

#include "base/alloc.h"

enum { FIRST_CAP = 64 };

/* `key` is the rank + 1, so that 0 is a free place: a space has fewer than 2^64 - 1
 * configurations. */
struct kp_cost_memo_entry {
    uint64_t key;
    double cost;
};

void kp_cost_memo_deinit(struct kp_cost_memo *m)
{
    kp_free(m->entries);
    *m = (struct kp_cost_memo){0};
}

static struct kp_cost_memo_entry *place_of(const struct kp_cost_memo *m, uint64_t rank)
{
    uint64_t h = (rank + 1) * 0x9e3779b97f4a7c15U;
    size_t i = (size_t)(h ^ (h >> 32)) & (m->cap - 1);
    while (m->entries[i].key && m->entries[i].key != rank + 1)
        i = (i + 1) & (m->cap - 1);
    return &m->entries[i];
}

/* Room for one more, at most three quarters full. */
static bool reserve(struct kp_cost_memo *m)
{
    if (m->n >= m->max)
        return false;
    if (4 * (m->n + 1) <= 3 * m->cap)
        return true;
    struct kp_cost_memo bigger = {
        .max = m->max, .n = m->n, .cap = m->cap ? 2 * m->cap : FIRST_CAP};
    bigger.entries = kp_calloc(bigger.cap, sizeof(*bigger.entries));
    if (!bigger.entries)
        return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->entries[i].key)
            *place_of(&bigger, m->entries[i].key - 1) = m->entries[i];
    }
    kp_free(m->entries);
    *m = bigger;
    return true;
}

bool kp_cost_memo_put(struct kp_cost_memo *m, uint64_t rank, double cost)
{
    struct kp_cost_memo_entry *e = m->cap ? place_of(m, rank) : NULL;
    if (!e || !e->key) {
        if (!reserve(m))
            return false;
        e = place_of(m, rank);
        m->n++;
    }
    *e = (struct kp_cost_memo_entry){rank + 1, cost};
    return true;
}

bool kp_cost_memo_get(const struct kp_cost_memo *m, uint64_t rank, double *cost)
{
    const struct kp_cost_memo_entry *e = m->cap ? place_of(m, rank) : NULL;
    if (!e || !e->key)
        return false;
    *cost = e->cost;
    return true;
}
