/* SPDX-License-Identifier: MIT */
#include "cli/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void out_of_memory(void)
{
    static const char text[] = "kopt: error: out of memory\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(3);
}

void *cli_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *cli_grow(void *items, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return items;
    size_t want = *cap ? *cap * 2 : 16;
    if (want > SIZE_MAX / 2 / size)
        out_of_memory();
    void *p = realloc(items, want * size);
    if (!p)
        out_of_memory();
    *cap = want;
    return p;
}

char *cli_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = cli_alloc(n, 1);
    memcpy(p, s, n);
    return p;
}

void cli_free(const void *p)
{
    void *mine;
    memcpy(&mine, &p, sizeof(mine));
    free(mine);
}

char *cli_strf(const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = cli_alloc((size_t)(n < 0 ? 0 : n) + 1, 1);
    (void)vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    return p;
}

void cli_text_add(struct cli_text *t, const char *s, size_t n)
{
    if (t->len + n + 1 > t->cap) {
        size_t want = (t->len + n + 1) * 2;
        char *p = realloc(t->ptr, want);
        if (!p)
            out_of_memory();
        t->ptr = p;
        t->cap = want;
    }
    memcpy(t->ptr + t->len, s, n);
    t->len += n;
    t->ptr[t->len] = '\0';
}

void cli_text_adds(struct cli_text *t, const char *s)
{
    cli_text_add(t, s, strlen(s));
}

void cli_text_addf(struct cli_text *t, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = cli_alloc((size_t)(n < 0 ? 0 : n) + 1, 1);
    (void)vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    cli_text_adds(t, p);
    free(p);
}

void cli_text_quote(struct cli_text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./:,%@~^";
    if (word[0] && word[strspn(word, plain)] == '\0') {
        cli_text_adds(t, word);
        return;
    }
    cli_text_adds(t, "'");
    for (; *word; word++)
        if (*word == '\'')
            cli_text_adds(t, "'\\''");
        else
            cli_text_add(t, word, 1);
    cli_text_adds(t, "'");
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

enum { WORD_MAX = 63 }; /* longer words are not compared */

/* Optimal string alignment: Damerau's distance without editing a swapped pair again. */
size_t cli_distance(const char *a, const char *b, size_t limit)
{
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX)
        return limit + 1;
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0];
    size_t *above = rows[1];
    size_t *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        above[j] = before[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[m] <= limit ? above[m] : limit + 1;
}

const char *cli_nearest(const char *word, const char *(*next)(const void *user, size_t i),
                        const void *user)
{
    size_t limit = strlen(word) <= 3 ? 1 : 2;
    size_t best = limit + 1;
    const char *found = NULL;
    const char *candidate;
    for (size_t i = 0; (candidate = next(user, i)) != NULL; i++) {
        size_t d = cli_distance(word, candidate, limit);
        if (d < best) {
            best = d;
            found = candidate;
        }
    }
    return found;
}
