/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local long fail_at;

static bool must_fail(void)
{
    if (fail_at == 0)
        return false;
    fail_at--;
    return fail_at == 0;
}

void *kp_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : calloc(n, size);
}

void *kp_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : realloc(p, size ? size : 1);
}

void *kp_reallocarray(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return NULL;
    return kp_realloc(p, n * size);
}

char *kp_strndup(const char *s, size_t n)
{
    char *copy = kp_calloc(n + 1, 1);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

char *kp_strdup(const char *s)
{
    return kp_strndup(s, strlen(s));
}

void kp_free(void *p)
{
    free(p);
}

void kp_alloc_fail_at(long n)
{
    fail_at = n;
}

int kp_grow(void **items, size_t *cap, size_t n, size_t size, size_t max)
{
    if (n < *cap)
        return 1;
    if (n >= max)
        return 0;
    size_t want = *cap ? 2 * *cap : 8;
    if (want > max)
        want = max;
    void *p = kp_reallocarray(*items, want, size);
    if (!p)
        return 0;
    *items = p;
    *cap = want;
    return 1;
}
