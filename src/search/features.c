/* SPDX-License-Identifier: MIT */
#include "search/features.h"

#include "base/alloc.h"

#include <stdlib.h>

/* Longer lists of values are used as they are listed. */
enum { MAX_TABLE = 4096, TABLES_OF_PARAM = 3 };

struct ranked {
    double value;
    uint32_t index;
};

static int ascending(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool is_text(const struct kp_param *p)
{
    return p->values[0].type == KP_STRING;
}

/* The rank of each value among its parameter's values. False when a value is no number. */
static bool fill_ranks(const struct kp_param *p, struct ranked *scratch, float *table)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        scratch[i].index = i;
        if (!kp_value_to_f64(p->values[i], &scratch[i].value) ||
            scratch[i].value != scratch[i].value)
            return false;
    }
    qsort(scratch, p->n_values, sizeof(*scratch), ascending);
    for (uint32_t i = 0; i < p->n_values; i++)
        table[scratch[i].index] = (float)i;
    return true;
}

/* Are they positive integers, and not all powers of two? */
static bool has_odd_parts(const struct kp_param *p)
{
    bool odd = false;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct kp_value *v = &p->values[i];
        if (v->type != KP_INT || v->as.i <= 0)
            return false;
        odd = odd || (v->as.i & (v->as.i - 1)) != 0;
    }
    return odd;
}

static void fill_parts(const struct kp_param *p, float *exponents, float *odd_parts)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        int zeros = __builtin_ctzll((unsigned long long)p->values[i].as.i);
        exponents[i] = (float)zeros;
        odd_parts[i] = (float)(p->values[i].as.i >> zeros);
    }
}

static void add(struct kp_features *f, size_t param, bool named, const float *table)
{
    f->list[f->n++] = (struct kp_feature){(uint32_t)param, named, table};
}

/* Adds the features of parameter `i`; their tables are taken from *free. */
static void add_param(struct kp_features *f, const struct kp_param *p, size_t i,
                      struct ranked *scratch, float **free)
{
    uint32_t n = p->n_values;
    if (n < 2)
        return;
    if (is_text(p) || n > MAX_TABLE || !fill_ranks(p, scratch, *free)) {
        add(f, i, is_text(p), NULL);
        return;
    }
    add(f, i, false, *free);
    *free += n;
    if (has_odd_parts(p)) {
        fill_parts(p, *free, *free + n);
        add(f, i, false, *free);
        add(f, i, false, *free + n);
        *free += 2 * (size_t)n;
    }
}

kopt_status kp_features_init(struct kp_features *f, const struct kp_space *space,
                             kopt_error *err)
{
    *f = (struct kp_features){0};
    size_t n_params = kp_space_n_params(space);
    size_t floats = 1;
    for (size_t i = 0; i < n_params; i++) {
        uint32_t n = kp_space_param(space, i)->n_values;
        floats += n <= MAX_TABLE ? TABLES_OF_PARAM * (size_t)n : 0;
    }
    struct ranked *scratch = kp_calloc(MAX_TABLE, sizeof(*scratch));
    f->tables = kp_calloc(floats, sizeof(*f->tables));
    f->list = kp_calloc(TABLES_OF_PARAM * n_params + 1, sizeof(*f->list));
    if (!scratch || !f->tables || !f->list) {
        kp_free(scratch);
        kp_features_deinit(f);
        return kp_err_nomem(err);
    }
    float *free = f->tables;
    for (size_t i = 0; i < n_params; i++)
        add_param(f, kp_space_param(space, i), i, scratch, &free);
    kp_free(scratch);
    return KOPT_OK;
}

void kp_features_deinit(struct kp_features *f)
{
    kp_free(f->list);
    kp_free(f->tables);
    *f = (struct kp_features){0};
}
