/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

struct kp_arena_block {
    struct kp_arena_block *next;
    size_t used;
    size_t cap;
    _Alignas(max_align_t) unsigned char bytes[];
};

enum { ALIGN = _Alignof(max_align_t), BLOCK = 16 * 1024 };

static struct kp_arena_block *new_block(struct kp_arena *a, size_t need)
{
#ifdef KP_ARENA_DEBUG
    size_t cap = need;
#else
    size_t cap = need > BLOCK ? need : BLOCK;
#endif
    size_t total = sizeof(struct kp_arena_block) + cap;
    if (cap > a->max || a->used > a->max - cap) {
        a->over = true;
        return NULL;
    }
    struct kp_arena_block *b = kp_calloc(1, total);
    if (!b)
        return NULL;
    b->cap = cap;
    a->used += cap;
    b->next = a->head;
    a->head = b;
    return b;
}

void *kp_arena_alloc(struct kp_arena *a, size_t n, size_t size)
{
    if (a->failed || (size && n > (SIZE_MAX / 2) / size)) {
        a->over |= !a->failed;
        a->failed = true;
        return NULL;
    }
#ifdef KP_ARENA_DEBUG
    size_t need = n * size > 0 ? n * size : 1;
#else
    size_t need = (n * size + ALIGN - 1) / ALIGN * ALIGN;
#endif
    struct kp_arena_block *b = a->head;
    if (!b || b->cap - b->used < need)
        b = new_block(a, need);
    if (!b) {
        a->failed = true;
        return NULL;
    }
    void *p = b->bytes + b->used;
    b->used += need;
    return p;
}

char *kp_arena_strndup(struct kp_arena *a, const char *s, size_t n)
{
    char *copy = kp_arena_alloc(a, n + 1, 1);
    if (copy && n)
        memcpy(copy, s, n);
    return copy;
}

void kp_arena_deinit(struct kp_arena *a)
{
    while (a->head) {
        struct kp_arena_block *b = a->head;
        a->head = b->next;
        kp_free(b);
    }
    *a = (struct kp_arena){.max = a->max};
}
