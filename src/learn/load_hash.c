/* SPDX-License-Identifier: MIT */
/* What a data set says, as one number: SHA-256 over its rows as texts. Problems are sorted by
 * their texts, a problem's rows by those of its configurations, columns by name. Layer: learn.
 */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 24 };

struct ordered {
    const char *text; /* sorted by */
    uint32_t old;
};

struct row {
    const uint32_t *ranks; /* of the problem, then of each target's value */
    size_t n;
    uint32_t old;
};

struct hashing {
    const struct kp_dataset *d;
    struct ordered fields[KP_FIELDS_MAX]; /* by name */
    size_t n_fields;
    struct ordered targets[KP_TARGETS_MAX]; /* by name */
    const char **problems;                  /* texts; then [rank] of them */
    uint32_t *ranks;                        /* [n_rows][1 + n_targets] */
    struct row *rows;
    size_t n_rows; /* that count */
    struct kp_buf line;
    struct kp_arena arena;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct ordered *)a)->text, ((const struct ordered *)b)->text);
}

static int by_ranks(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    for (size_t i = 0; i < x->n; i++)
        if (x->ranks[i] != y->ranks[i])
            return x->ranks[i] < y->ranks[i] ? -1 : 1;
    return 0;
}

/* Whole numbers without a point, whatever type they have. */
static void add_number(double x, struct kp_buf *out)
{
    const double exact = 0x1p53;
    kp_value_to_text(fabs(x) <= exact && x == floor(x) ? kp_int((int64_t)x) : kp_float(x), out);
}

static void add_value(struct kp_value v, struct kp_buf *out)
{
    if (v.type == KP_FLOAT)
        add_number(v.as.f, out);
    else
        kp_value_to_text(v, out);
}

/* The text so far as one of the arena's; the line is empty again. */
static const char *take_line(struct hashing *h)
{
    const char *copy = h->line.failed == KOPT_OK
                           ? kp_arena_strndup(&h->arena, kp_buf_text(&h->line), h->line.len)
                           : NULL;
    kp_buf_clear(&h->line);
    return copy;
}

/* The ranks of n texts: ranks[old], and texts[] in their order. */
static bool rank(const char **texts, size_t n, uint32_t *ranks)
{
    struct ordered *o = kp_calloc(n, sizeof(*o));
    if (!o)
        return false;
    for (uint32_t i = 0; i < n; i++)
        o[i] = (struct ordered){texts[i], i};
    qsort(o, n, sizeof(*o), by_text);
    for (uint32_t i = 0; i < n; i++) {
        texts[i] = o[i].text;
        ranks[o[i].old] = i;
    }
    kp_free(o);
    return true;
}

static bool rank_problems(struct hashing *h)
{
    const struct kp_dataset *d = h->d;
    h->problems = kp_calloc(d->n_problems, sizeof(*h->problems));
    uint32_t *ranks = kp_calloc(d->n_problems, sizeof(*ranks));
    bool ok = h->problems && ranks;
    for (size_t p = 0; ok && p < d->n_problems; p++) {
        for (size_t i = 0; i < h->n_fields; i++) {
            const struct kp_field *f = &d->fields[h->fields[i].old];
            double x = d->problems[p * d->n_fields + h->fields[i].old];
            kp_buf_addf(&h->line, "%s=", f->name);
            if (f->is_word)
                kp_buf_adds(&h->line, f->words[(size_t)x]);
            else
                add_number(x, &h->line);
            kp_buf_addc(&h->line, '\n');
        }
        h->problems[p] = take_line(h);
        ok = h->problems[p] != NULL;
    }
    ok = ok && rank(h->problems, d->n_problems, ranks);
    for (size_t r = 0; ok && r < d->n_rows; r++)
        h->ranks[r * (d->n_targets + 1)] = ranks[d->of[r]];
    kp_free(ranks);
    return ok;
}

static bool rank_target(struct hashing *h, size_t place)
{
    const struct kp_dataset *d = h->d;
    size_t t = h->targets[place].old;
    size_t n = d->targets[t].n_values;
    const char **texts = kp_calloc(n, sizeof(*texts));
    uint32_t *ranks = kp_calloc(n, sizeof(*ranks));
    bool ok = texts && ranks;
    for (size_t v = 0; ok && v < n; v++) {
        add_value(d->targets[t].values[v], &h->line);
        texts[v] = take_line(h);
        ok = texts[v] != NULL;
    }
    ok = ok && rank(texts, n, ranks);
    for (size_t r = 0; ok && r < d->n_rows; r++)
        h->ranks[r * (d->n_targets + 1) + 1 + place] = ranks[d->configs[r * d->n_targets + t]];
    kp_free(ranks);
    kp_free(texts);
    return ok;
}

static void add_row(struct hashing *h, const struct row *row, struct kp_sha256 *sha)
{
    const struct kp_dataset *d = h->d;
    float time = d->times_ns[row->old];
    kp_buf_clear(&h->line);
    for (size_t i = 0; i < d->n_targets; i++) {
        size_t t = h->targets[i].old;
        kp_buf_addf(&h->line, "%s=", d->targets[t].name);
        add_value(d->targets[t].values[d->configs[row->old * d->n_targets + t]], &h->line);
        kp_buf_addc(&h->line, '\n');
    }
    if (!isnan(time))
        add_value(kp_float((double)time), &h->line);
    kp_sha256_add_text(sha, h->problems[row->ranks[0]]);
    kp_sha256_add_text(sha, kp_buf_text(&h->line));
}

static bool counts(const struct kp_dataset *d, uint32_t row)
{
    return !d->twins || d->twins[d->of[row]] == d->of[row];
}

static bool prepare(struct hashing *h, bool all)
{
    const struct kp_dataset *d = h->d;
    for (uint32_t i = 0; i < h->n_fields; i++)
        h->fields[i] = (struct ordered){d->fields[i].name, i};
    for (uint32_t t = 0; t < d->n_targets; t++)
        h->targets[t] = (struct ordered){d->targets[t].name, t};
    qsort(h->fields, h->n_fields, sizeof(h->fields[0]), by_text);
    qsort(h->targets, d->n_targets, sizeof(h->targets[0]), by_text);
    h->ranks = kp_calloc(d->n_rows, (d->n_targets + 1) * sizeof(*h->ranks));
    h->rows = kp_calloc(d->n_rows, sizeof(*h->rows));
    bool ok = h->ranks && h->rows && rank_problems(h);
    for (size_t t = 0; ok && t < d->n_targets; t++)
        ok = rank_target(h, t);
    for (uint32_t r = 0; ok && r < d->n_rows; r++)
        if (all || counts(d, r))
            h->rows[h->n_rows++] =
                (struct row){h->ranks + (size_t)r * (d->n_targets + 1), d->n_targets + 1, r};
    if (ok)
        qsort(h->rows, h->n_rows, sizeof(*h->rows), by_ranks);
    return ok;
}

kopt_status kp_dataset_hash(const struct kp_dataset *d, size_t n_fields, bool all,
                            char hash[64 + 1], kopt_error *err)
{
    struct hashing h = {.d = d,
                        .n_fields = n_fields,
                        .line = KP_BUF_INIT(LINE_MAX_BYTES),
                        .arena = KP_ARENA_INIT((size_t)4 << 30)};
    struct kp_sha256 *sha = NULL;
    hash[0] = '\0';
    kopt_status st = kp_sha256_new(&sha, err);
    if (st == KOPT_OK && !prepare(&h, all))
        st = kp_err_nomem(err);
    for (size_t r = 0; st == KOPT_OK && r < h.n_rows; r++)
        add_row(&h, &h.rows[r], sha);
    if (st == KOPT_OK && h.line.failed != KOPT_OK)
        st = kp_buf_status(&h.line, err);
    if (st == KOPT_OK)
        kp_sha256_finish(sha, hash);
    else
        kp_sha256_free(sha);
    kp_free(h.rows);
    kp_free(h.ranks);
    kp_free(h.problems);
    kp_buf_deinit(&h.line);
    kp_arena_deinit(&h.arena);
    return st;
}
