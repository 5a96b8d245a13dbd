/* SPDX-License-Identifier: MIT */
/* States of a search that were met before, and the nodes they became. Layer: space.
 *
 * States that differ in their scalar alone share an entry, which keeps intervals of the scalar:
 * if two values lead to the same node, then so does each value between them, because the atom's
 * truth rises or falls with the scalar, and a function between two equal ones is equal to them.
 */
#ifndef KP_SPACE_RESIDUAL_MEMO_H
#define KP_SPACE_RESIDUAL_MEMO_H

#include "space/residual_program.h"

struct kp_state_key {
    struct kp_cell *cells;
    uint32_t n;
    uint32_t level;
    bool has_scalar; /* then a cell of type KP_CELL_SCALAR stands where it was */
    int64_t scalar;
};

struct kp_memo_entry;
struct kp_memo_interval;

struct kp_memo {
    struct kp_budget *budget;
    struct kp_memo_entry *entries;
    size_t n_entries;
    size_t cap_entries;
    struct kp_cell *cells;
    size_t n_cells;
    size_t cap_cells;
    uint32_t *table; /* entry + 1 */
    size_t table_cap;
    struct kp_memo_interval *intervals;
    size_t n_intervals;
    size_t cap_intervals;
};

/* The entry of a key, made when it is new. SIZE_MAX: out of memory. */
size_t kp_memo_find(struct kp_memo *m, const struct kp_state_key *key);
/* The node of a state, when it is known. */
bool kp_memo_recall(const struct kp_memo *m, size_t entry, const struct kp_state_key *key,
                    uint32_t *node);
/* `direction`: of the atom's truth along the scalar. False when out of memory. */
bool kp_memo_store(struct kp_memo *m, size_t entry, const struct kp_state_key *key,
                   int direction, uint32_t node);
void kp_memo_deinit(struct kp_memo *m);

#endif
