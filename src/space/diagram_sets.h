/* SPDX-License-Identifier: MIT */
/* Sets of value indices below n_values, each kept once and known by a number. Levels with
 * equally many values share one family of sets. Layer: space. */
#ifndef KP_SPACE_DIAGRAM_SETS_H
#define KP_SPACE_DIAGRAM_SETS_H

#include "space/diagram.h"

struct kp_sets {
    uint32_t n_values;
    uint32_t words;
    uint64_t *bits; /* set i: bits[i * words ..] */
    size_t n;
    size_t cap;
    uint32_t *table; /* id + 1 */
    size_t table_cap;
    uint64_t *scratch; /* `words` words */
};

bool kp_sets_init(struct kp_sets *s, struct kp_budget *b, uint32_t n_values);
void kp_sets_deinit(struct kp_sets *s, struct kp_budget *b);
/* The number of a set (`words` words, copied); KP_MDD_NONE when out of memory. */
uint32_t kp_sets_add(struct kp_sets *s, struct kp_budget *b, const uint64_t *bits);
/* Valid until the next set is added. */
static inline const uint64_t *kp_sets_get(const struct kp_sets *s, uint32_t id)
{
    return s->bits + (size_t)id * s->words;
}

#define KP_SET_EMPTY (UINT32_MAX - 1)
/* The number of the intersection, KP_SET_EMPTY, or KP_MDD_NONE when out of memory. */
uint32_t kp_sets_meet(struct kp_sets *s, struct kp_budget *b, uint32_t x, uint32_t y);

#endif
