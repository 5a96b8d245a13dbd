/* SPDX-License-Identifier: MIT */
/* Hash table from byte strings to 64-bit values. Layer: base. */
#ifndef KP_BASE_MAP_H
#define KP_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_map_entry;

/* A zeroed map is empty and ready. Keys are copied. */
struct kp_map {
    struct kp_map_entry *entries;
    size_t n;
    size_t cap;
};

/* The place of the value for the key, made (with value 0, *added true) when it is new. NULL
 * when out of memory. Valid until the next kp_map_put(). `added` may be NULL. */
uint64_t *kp_map_put(struct kp_map *m, const void *key, size_t len, bool *added);

/* NULL when the key is not there. Valid until the next kp_map_put(). */
uint64_t *kp_map_get(const struct kp_map *m, const void *key, size_t len);

void kp_map_deinit(struct kp_map *m);

#endif
