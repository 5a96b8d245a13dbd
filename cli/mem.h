/* SPDX-License-Identifier: MIT */
/* Memory and small text helpers of the command. A program may end when memory runs out: these
 * never return NULL. */
#ifndef CLI_MEM_H
#define CLI_MEM_H

#include <stddef.h>

/* Zeroed. Ends the program with a message (exit 3) when there is no memory. */
void *cli_alloc(size_t n, size_t size);
/* Room for one more element of `size` bytes: *items holds *cap, `n` are in use. The new part is
 * not zeroed. */
void *cli_grow(void *items, size_t *cap, size_t n, size_t size);
char *cli_strdup(const char *s);
/* free() of what is kept behind a pointer to const. */
void cli_free(const void *p);
__attribute__((format(printf, 1, 2))) char *cli_strf(const char *fmt, ...);

/* Text that grows. A zeroed one is empty and ready; free .ptr. */
struct cli_text {
    char *ptr; /* terminated once something was added; NULL before */
    size_t len;
    size_t cap;
};
void cli_text_add(struct cli_text *t, const char *s, size_t n);
void cli_text_adds(struct cli_text *t, const char *s);
__attribute__((format(printf, 2, 3))) void cli_text_addf(struct cli_text *t, const char *fmt,
                                                         ...);
/* A word as a shell reads it back. */
void cli_text_quote(struct cli_text *t, const char *word);

/* Edit distance of two words (adjacent swaps count once), at most `limit` + 1. */
size_t cli_distance(const char *a, const char *b, size_t limit);

/* The likeliest of the words that `next(user, i)` gives (NULL ends) for a mistyped one; NULL
 * when none is near. */
const char *cli_nearest(const char *word, const char *(*next)(const void *user, size_t i),
                        const void *user);

#endif
