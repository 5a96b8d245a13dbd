/* SPDX-License-Identifier: MIT */
/* The only door to the heap, so that tests can make any allocation fail. Layer: base. */
#ifndef KP_BASE_ALLOC_H
#define KP_BASE_ALLOC_H

#include <stddef.h>

/* Like calloc/realloc; kp_reallocarray checks n * size. NULL on failure. */
void *kp_calloc(size_t n, size_t size) __attribute__((malloc));
void *kp_realloc(void *p, size_t size);
void *kp_reallocarray(void *p, size_t n, size_t size);

/* Copies of a string / of the first `n` bytes with a NUL behind them. NULL on failure. */
char *kp_strdup(const char *s) __attribute__((malloc));
char *kp_strndup(const char *s, size_t n) __attribute__((malloc));

/* Release what any of the above returned; `p` may be NULL. */
void kp_free(void *p);

/* Fail the n-th allocation of this thread from now on (1 = the next); 0 turns it off. Tests
 * only. */
void kp_alloc_fail_at(long n);

/* Make room for one more element in a growing array: *items holds *cap elements of `size`
 * bytes, `n` are in use. Returns false when out of memory or when n >= max. */
int kp_grow(void **items, size_t *cap, size_t n, size_t size, size_t max);

#endif
