/* SPDX-License-Identifier: MIT */
/* Which problems are the data's own, which only help, and which of them are the same but for
 * what was pooled. Layer: learn. */
#include "learn/load_impl.h"

#include "base/alloc.h"
#include "learn/problem.h"

#include <string.h>

struct twins {
    const struct kp_intake *in;
    struct kp_dataset *d;
    bool pooled[KP_FIELDS_MAX];
    struct kp_str own[KP_FIELDS_MAX]; /* pooled: the text that the data's own problems have */
    struct kp_map index;              /* of those: fields that were not pooled -> problem */
    double rest[KP_FIELDS_MAX];
};

static bool has_own_text(const struct twins *t, size_t problem)
{
    const struct kp_dataset *d = t->d;
    bool own = true;
    for (size_t i = 0; i < t->in->n_fields && own; i++) {
        double x = d->problems[problem * d->n_fields + i];
        double want = 0;
        if (t->pooled[i] && d->fields[i].is_word)
            own = kp_str_is(t->own[i], d->fields[i].words[(size_t)x]);
        else if (t->pooled[i])
            own = kp_value_to_f64(kp_value_of_text(t->own[i]), &want) && x == want;
    }
    return own;
}

/* The problem without what was pooled; derived fields follow from the others. */
static size_t rest_of(struct twins *t, size_t problem)
{
    const struct kp_dataset *d = t->d;
    size_t n = 0;
    for (size_t i = 0; i < t->in->n_fields; i++)
        if (!t->pooled[i])
            t->rest[n++] = d->problems[problem * d->n_fields + i];
    return n * sizeof(t->rest[0]);
}

static bool find_own(struct twins *t)
{
    for (uint32_t p = 0; p < t->d->n_problems; p++) {
        bool added = false;
        t->d->twins[p] = UINT32_MAX;
        if (!has_own_text(t, p))
            continue;
        t->d->twins[p] = p;
        uint64_t *at = kp_map_put(&t->index, t->rest, rest_of(t, p), &added);
        if (!at)
            return false;
        *at = p;
    }
    return true;
}

kopt_status kp_intake_twins(const struct kp_intake *in, struct kp_dataset *d)
{
    struct twins t = {.in = in, .d = d};
    d->twins = kp_arena_alloc(&d->arena, d->n_problems, sizeof(*d->twins));
    for (size_t i = 0; i < in->n_fields; i++) {
        struct kp_str source = kp_str_from(in->o->source ? in->o->source : "");
        t.own[i] =
            i == in->source_slot ? source : kp_intake_as(in, in->names[i], (struct kp_str){0});
        t.pooled[i] = t.own[i].ptr != NULL;
    }
    bool ok = d->twins && find_own(&t);
    for (size_t p = 0; ok && p < d->n_problems; p++) {
        if (d->twins[p] == p)
            continue;
        size_t bytes = rest_of(&t, p);
        const uint64_t *at = kp_map_get(&t.index, t.rest, bytes);
        if (!at)
            continue;
        d->twins[p] = (uint32_t)*at;
        d->keys[p] = d->keys[*at];
    }
    kp_map_deinit(&t.index);
    return ok ? KOPT_OK : kp_err_nomem(in->err);
}
