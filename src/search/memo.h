/* SPDX-License-Identifier: MIT */
/* What is known of the ranks: their costs. Layer: search. */
#ifndef KP_SEARCH_MEMO_H
#define KP_SEARCH_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_cost_memo_entry;

/* A hash table; {.max = n} is an empty one. It grows with what it holds, up to `max` ranks or
 * until the heap is empty; from then on it learns nothing new. */
struct kp_cost_memo {
    size_t max;
    size_t n;
    size_t cap; /* a power of two, or 0 */
    struct kp_cost_memo_entry *entries;
};

void kp_cost_memo_deinit(struct kp_cost_memo *m);

/* False when it is full and does not know the rank; then nothing changes. */
bool kp_cost_memo_put(struct kp_cost_memo *m, uint64_t rank, double cost);

/* False when the rank is not known. */
bool kp_cost_memo_get(const struct kp_cost_memo *m, uint64_t rank, double *cost);

#endif
