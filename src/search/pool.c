/* SPDX-License-Identifier: MIT */
/* A sparse Fisher-Yates shuffle. Think of an array a[0 .. n-1] with a[i] = i: to take a rank is
 * to swap it to place `taken` and count on, so that the places from `taken` on hold what is
 * left, and a uniform place among them is a uniform draw, without a second try, until the last
 * rank. Only the places that differ from a[i] = i are kept: at most three entries for each rank
 * taken (take_place()). When no more is to be kept the array stands still, and the places from
 * `taken` on are visited in the order of a permutation that needs no memory. */
#include "search/pool.h"

#include "base/alloc.h"
#include "search/permute.h"

/* Open addressing; `key` is stored + 1 so that 0 is a free slot (n < 2^64 keeps that exact). */
struct entry {
    uint64_t key;
    uint64_t value;
};

struct table {
    struct entry *entries;
    size_t n;
    size_t cap; /* power of two, or 0 */
};

struct kp_pool {
    uint64_t n;
    uint64_t seed;
    uint64_t taken; /* places in front that are gone */
    uint64_t max_kept;
    struct table at;    /* place -> rank, where they differ */
    struct table place; /* rank -> place, where they differ */
    bool swept;
    struct kp_permute order; /* of the places that were left when sweeping began */
    uint64_t drawn;          /* by sweeping */
};

static size_t slot_of(const struct table *t, uint64_t key)
{
    uint64_t h = (key + 1) * 0x9e3779b97f4a7c15U;
    size_t i = (size_t)(h ^ (h >> 32)) & (t->cap - 1);
    while (t->entries[i].key && t->entries[i].key != key + 1)
        i = (i + 1) & (t->cap - 1);
    return i;
}

/* Room for two more entries. */
static bool reserve(struct table *t)
{
    if (4 * (t->n + 2) <= 3 * t->cap)
        return true;
    struct table bigger = {.cap = t->cap ? 2 * t->cap : 64};
    bigger.entries = kp_calloc(bigger.cap, sizeof(*bigger.entries));
    if (!bigger.entries)
        return false;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->entries[i].key)
            bigger.entries[slot_of(&bigger, t->entries[i].key - 1)] = t->entries[i];
    }
    bigger.n = t->n;
    kp_free(t->entries);
    *t = bigger;
    return true;
}

static uint64_t look(const struct table *t, uint64_t key)
{
    if (!t->cap)
        return key;
    const struct entry *e = &t->entries[slot_of(t, key)];
    return e->key ? e->value : key;
}

static void put(struct table *t, uint64_t key, uint64_t value)
{
    struct entry *e = &t->entries[slot_of(t, key)];
    if (!e->key)
        t->n++;
    *e = (struct entry){key + 1, value};
}

kopt_status kp_pool_new(uint64_t n, uint64_t seed, uint64_t max_kept, struct kp_pool **out,
                        kopt_error *err)
{
    *out = kp_calloc(1, sizeof(**out));
    if (!*out)
        return kp_err_nomem(err);
    **out = (struct kp_pool){.n = n, .seed = seed, .max_kept = max_kept};
    return KOPT_OK;
}

void kp_pool_free(struct kp_pool *p)
{
    if (!p)
        return;
    kp_free(p->at.entries);
    kp_free(p->place.entries);
    kp_free(p);
}

uint64_t kp_pool_left(const struct kp_pool *p)
{
    return p->n - p->taken - p->drawn;
}

bool kp_pool_has(const struct kp_pool *p, uint64_t rank)
{
    if (rank >= p->n)
        return false;
    uint64_t place = look(&p->place, rank);
    if (place < p->taken)
        return false;
    return !p->swept || kp_permute_place(&p->order, place - p->taken) >= p->drawn;
}

void kp_pool_sweep(struct kp_pool *p)
{
    if (p->swept || p->taken == p->n)
        return;
    p->swept = true;
    kp_permute_init(&p->order, p->n - p->taken, p->seed);
}

/* Swap the rank at `place` to the front of what is left, and count it as taken. Places in front
 * are never looked at again, only ranks are asked where they went. */
static void take_place(struct kp_pool *p, uint64_t place)
{
    uint64_t rank = look(&p->at, place);
    uint64_t front = look(&p->at, p->taken);
    put(&p->at, place, front);
    put(&p->place, front, place);
    put(&p->place, rank, p->taken);
    p->taken++;
}

static bool can_keep(struct kp_pool *p)
{
    if (!p->swept && (p->taken >= p->max_kept || !reserve(&p->at) || !reserve(&p->place)))
        kp_pool_sweep(p);
    return !p->swept;
}

bool kp_pool_take(struct kp_pool *p, uint64_t rank)
{
    if (!kp_pool_has(p, rank) || !can_keep(p))
        return false;
    take_place(p, look(&p->place, rank));
    return true;
}

bool kp_pool_peek(const struct kp_pool *p, struct kp_rng *rng, uint64_t *rank)
{
    uint64_t left = kp_pool_left(p);
    if (left == 0)
        return false;
    uint64_t i = kp_rng_below(rng, left);
    *rank = look(&p->at, p->taken + (p->swept ? kp_permute_at(&p->order, p->drawn + i) : i));
    return true;
}

bool kp_pool_draw(struct kp_pool *p, struct kp_rng *rng, uint64_t *rank)
{
    if (kp_pool_left(p) == 0)
        return false;
    if (can_keep(p)) {
        uint64_t place = p->taken + kp_rng_below(rng, p->n - p->taken);
        *rank = look(&p->at, place);
        take_place(p, place);
        return true;
    }
    *rank = look(&p->at, p->taken + kp_permute_at(&p->order, p->drawn));
    p->drawn++;
    return true;
}
