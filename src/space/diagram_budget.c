/* SPDX-License-Identifier: MIT */
#include "space/diagram.h"

#include "base/alloc.h"

#include <string.h>

enum { BIG = 4 << 20 }; /* bytes */

static bool reserve(struct kp_budget *b, size_t bytes)
{
    if (bytes > b->max || b->used > b->max - bytes) {
        b->over = true;
        return false;
    }
    return true;
}

static void take(struct kp_budget *b, size_t bytes)
{
    b->used += bytes;
    if (b->used > b->peak)
        b->peak = b->used;
}

void *kp_budget_resize(struct kp_budget *b, void *p, size_t old, size_t bytes)
{
    size_t more = bytes > old ? bytes - old : 0;
    if (!reserve(b, more))
        return NULL;
    void *q = kp_realloc(p, bytes ? bytes : 1);
    if (!q)
        return NULL;
    b->used -= old;
    take(b, bytes);
    return q;
}

void *kp_budget_calloc(struct kp_budget *b, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) {
        b->over = true;
        return NULL;
    }
    if (!reserve(b, n * size))
        return NULL;
    void *p = kp_calloc(n ? n : 1, size);
    if (p)
        take(b, n * size);
    return p;
}

void kp_budget_free(struct kp_budget *b, void *p, size_t bytes)
{
    if (!p)
        return;
    b->used -= bytes;
    kp_free(p);
}

void *kp_budget_grow(struct kp_budget *b, void *p, size_t *cap, size_t need, size_t size)
{
    if (p && need <= *cap)
        return p;
    size_t want = 16;
    if (*cap > BIG / size)
        want = *cap + *cap / 4; /* closer to the limit, less is left over */
    else if (*cap)
        want = 2 * *cap;
    if (want < need)
        want = need;
    if (want > SIZE_MAX / size) {
        b->over = true;
        return NULL;
    }
    void *q = kp_budget_resize(b, p, p ? *cap * size : 0, want * size);
    if (q)
        *cap = want;
    return q;
}

bool kp_budget_charge(struct kp_budget *b, size_t bytes)
{
    if (!reserve(b, bytes))
        return false;
    take(b, bytes);
    return true;
}

void kp_budget_blame(struct kp_budget *b, const struct kp_arena *arena)
{
    b->over |= arena->over;
}

kopt_status kp_budget_error(const struct kp_budget *b, kopt_error *err)
{
    kopt_status st = KOPT_ERANGE;
    if (b->max_steps && b->steps > b->max_steps)
        st = kp_err(err, st, "the space takes more than %llu steps",
                    (unsigned long long)b->max_steps);
    else if (b->over)
        st = kp_err(err, st, "the space needs more than %zu KiB of memory", b->max >> 10);
    else
        return kp_err_nomem(err);
    kp_err_hint(err, "give fewer values, or write rules over fewer parameters each");
    return st;
}
