/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

struct kp_map_entry {
    void *key; /* NULL = free slot */
    size_t len;
    uint64_t hash;
    uint64_t value;
};

static struct kp_map_entry *find(struct kp_map_entry *entries, size_t cap, const void *key,
                                 size_t len, uint64_t hash)
{
    size_t i = (size_t)hash & (cap - 1);
    while (entries[i].key) {
        if (entries[i].hash == hash && entries[i].len == len &&
            memcmp(entries[i].key, key, len) == 0)
            break;
        i = (i + 1) & (cap - 1);
    }
    return &entries[i];
}

static bool grow(struct kp_map *m)
{
    size_t cap = m->cap ? 2 * m->cap : 16;
    struct kp_map_entry *entries = kp_calloc(cap, sizeof(*entries));
    if (!entries)
        return false;
    for (size_t i = 0; i < m->cap; i++) {
        struct kp_map_entry *e = &m->entries[i];
        if (e->key)
            *find(entries, cap, e->key, e->len, e->hash) = *e;
    }
    kp_free(m->entries);
    m->entries = entries;
    m->cap = cap;
    return true;
}

uint64_t *kp_map_put(struct kp_map *m, const void *key, size_t len, bool *added)
{
    if (added)
        *added = false;
    if (4 * (m->n + 1) > 3 * m->cap && !grow(m))
        return NULL;
    uint64_t hash = kp_hash64(key, len, 0);
    struct kp_map_entry *e = find(m->entries, m->cap, key, len, hash);
    if (!e->key) {
        e->key = kp_strndup(key, len);
        if (!e->key)
            return NULL;
        e->len = len;
        e->hash = hash;
        m->n++;
        if (added)
            *added = true;
    }
    return &e->value;
}

uint64_t *kp_map_get(const struct kp_map *m, const void *key, size_t len)
{
    if (!m->cap)
        return NULL;
    struct kp_map_entry *e = find(m->entries, m->cap, key, len, kp_hash64(key, len, 0));
    return e->key ? &e->value : NULL;
}

void kp_map_deinit(struct kp_map *m)
{
    for (size_t i = 0; i < m->cap; i++)
        kp_free(m->entries[i].key);
    kp_free(m->entries);
    *m = (struct kp_map){0};
}
