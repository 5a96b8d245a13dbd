/* SPDX-License-Identifier: MIT */
/* Many small objects of one life, freed together. Layer: base.
 *
 * A zeroed arena with a `max` is ready for use. Failure is sticky: after it every call returns
 * NULL, so that a parser may look once at the end. Built with KP_ARENA_DEBUG (the sanitizer
 * presets do) each object is a malloc of its own, so that ASan sees its bounds. */
#ifndef KP_BASE_ARENA_H
#define KP_BASE_ARENA_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct kp_arena_block;

struct kp_arena {
    struct kp_arena_block *head;
    size_t used; /* bytes handed out and held */
    size_t max;  /* bytes that it may ever hold */
    bool failed;
    bool over; /* it failed for its limit, not for want of memory */
};

#define KP_ARENA_INIT(limit) ((struct kp_arena){.max = (limit)})

/* Zeroed memory for `n` objects of `size` bytes, aligned for any type. */
void *kp_arena_alloc(struct kp_arena *a, size_t n, size_t size);

/* A terminated copy. */
char *kp_arena_strndup(struct kp_arena *a, const char *s, size_t n);

/* Free everything; the arena is empty and usable again. */
void kp_arena_deinit(struct kp_arena *a);

#endif
