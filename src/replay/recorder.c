/* SPDX-License-Identifier: MIT */
#include "replay/recorder.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUES_MAX = 1 << 16, /* of a parameter */
    KEY_MAX = 1 << 12,    /* bytes of a string value */
    ARENA_MAX = 256 << 20
};

#define COST_MAX_NS 1e18 /* thirty years; more is no cost, and sums of them stay finite */

kopt_status kp_recorder_new(struct kp_recorder **out, kopt_error *err)
{
    *out = kp_calloc(1, sizeof(**out));
    if (!*out)
        return kp_err_nomem(err);
    (*out)->arena = KP_ARENA_INIT(ARENA_MAX);
    return KOPT_OK;
}

void kp_recorder_free(struct kp_recorder *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < sizeof(r->text) / sizeof(r->text[0]); i++)
        kp_free(r->text[i]);
    for (size_t i = 0; r->learned && i < r->n_params; i++) {
        kp_free(r->learned[i].values);
        kp_map_deinit(&r->learned[i].index);
    }
    kp_free(r->learned);
    kp_free(r->configs);
    kp_free(r->rows);
    kp_free(r->params);
    kp_arena_deinit(&r->arena);
    kp_free(r);
}

kopt_status kp_recorder_say(struct kp_recorder *r, const kopt_recording_info *texts,
                            kopt_error *err)
{
    const char *const from[] = {texts->path,   texts->format, texts->name,
                                texts->kernel, texts->device, texts->problem};
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        if (!from[i])
            continue;
        char *copy = kp_strdup(from[i]);
        if (!copy)
            return kp_err_nomem(err);
        kp_free(r->text[i]);
        r->text[i] = copy;
    }
    return KOPT_OK;
}

kopt_status kp_recorder_params(struct kp_recorder *r, const char *const *names, size_t n,
                               kopt_error *err)
{
    KP_CHECK(!r->learned);
    if (n == 0)
        return kp_err(err, KOPT_EINPUT, "no parameters");
    if (n > KP_PARAMS_MAX)
        return kp_err(err, KOPT_EINPUT, "%zu parameters; at most %d are possible", n,
                      KP_PARAMS_MAX);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return kp_err(err, KOPT_EINPUT, "parameter %s is there twice", names[i]);
    r->learned = kp_calloc(n, sizeof(*r->learned));
    if (!r->learned)
        return kp_err_nomem(err);
    r->n_params = n;
    for (size_t i = 0; i < n; i++) {
        r->learned[i].name = kp_arena_strndup(&r->arena, names[i], strlen(names[i]));
        if (!r->learned[i].name)
            return kp_err_nomem(err);
    }
    return KOPT_OK;
}

/* --- values --------------------------------------------------------------------------------
 */

/* The bytes that tell values apart, in `key`; returns how many. */
static size_t key_of(struct kp_value v, unsigned char key[1 + KEY_MAX])
{
    key[0] = (unsigned char)v.type;
    switch (v.type) {
    case KP_INT:
        memcpy(key + 1, &v.as.i, sizeof(v.as.i));
        return 1 + sizeof(v.as.i);
    case KP_FLOAT:
        memcpy(key + 1, &v.as.f, sizeof(v.as.f));
        return 1 + sizeof(v.as.f);
    case KP_BOOL:
        key[1] = v.as.b;
        return 2;
    case KP_STRING:
        if (v.as.s.len)
            memcpy(key + 1, v.as.s.ptr, v.as.s.len);
        return 1 + v.as.s.len;
    }
    return 1;
}

static kopt_status learn_value(struct kp_recorder *r, struct kp_learned *p, struct kp_value v,
                               uint32_t *index, kopt_error *err)
{
    unsigned char key[1 + KEY_MAX];
    if (v.type == KP_STRING && v.as.s.len > KEY_MAX)
        return kp_err(err, KOPT_ERANGE, "a value of %s has more than %d bytes", p->name,
                      KEY_MAX);
    size_t len = key_of(v, key);
    const uint64_t *known = kp_map_get(&p->index, key, len);
    if (known) {
        *index = (uint32_t)*known;
        return KOPT_OK;
    }
    if (p->n_values >= VALUES_MAX)
        return kp_err(err, KOPT_ERANGE, "%s has more than %d values", p->name, VALUES_MAX);
    if (v.type == KP_STRING) {
        const char *copy =
            kp_arena_strndup(&r->arena, v.as.s.ptr ? v.as.s.ptr : "", v.as.s.len);
        if (!copy && r->arena.over)
            return kp_err(err, KOPT_ERANGE, "the values of %s take too much memory", p->name);
        if (!copy)
            return kp_err_nomem(err);
        v.as.s.ptr = copy;
    }
    if (!kp_grow((void **)&p->values, &p->cap, p->n_values, sizeof(*p->values), VALUES_MAX))
        return kp_err_nomem(err);
    uint64_t *place = kp_map_put(&p->index, key, len, NULL);
    if (!place)
        return kp_err_nomem(err);
    *place = p->n_values;
    *index = (uint32_t)p->n_values;
    p->values[p->n_values++] = v;
    return KOPT_OK;
}

/* --- entries -------------------------------------------------------------------------------
 */

static bool make_room(struct kp_recorder *r)
{
    if (!kp_grow((void **)&r->rows, &r->rows_cap, r->n, sizeof(*r->rows), KP_RECORDING_MAX))
        return false;
    if (r->configs_cap == r->rows_cap)
        return true;
    uint32_t *p = kp_reallocarray(r->configs, r->rows_cap, r->n_params * sizeof(*p));
    if (!p)
        return false;
    r->configs = p;
    r->configs_cap = r->rows_cap;
    return true;
}

static double cost_of(double ns)
{
    return ns >= 0 && ns <= COST_MAX_NS ? ns : (double)NAN;
}

kopt_status kp_recorder_add(struct kp_recorder *r, const struct kp_recorded *entry,
                            kopt_error *err)
{
    bool ok = entry->outcome == KOPT_OUT_OK;
    KP_CHECK(r->learned && (!ok || (entry->time_ns > 0 && isfinite(entry->time_ns))));
    if (r->n >= KP_RECORDING_MAX)
        return kp_err(err, KOPT_ERANGE, "more than %d configurations", KP_RECORDING_MAX);
    if (!make_room(r))
        return kp_err_nomem(err);
    for (size_t i = 0; i < r->n_params; i++) {
        kopt_status st = learn_value(r, &r->learned[i], entry->values[i],
                                     &r->configs[r->n * r->n_params + i], err);
        if (st != KOPT_OK)
            return st;
    }
    r->rows[r->n++] = (struct kp_result_row){
        .time_ns = ok ? entry->time_ns : (double)INFINITY,
        .compile_ns = cost_of(entry->compile_ns),
        .measure_ns = cost_of(entry->measure_ns),
        .outcome = entry->outcome,
    };
    return KOPT_OK;
}

void kp_recorder_left_out(struct kp_recorder *r, uint64_t n, bool cut)
{
    r->left_out += n;
    r->cut |= cut;
}

/* --- in order ------------------------------------------------------------------------------
 */

struct placed {
    struct kp_value v;
    uint32_t at; /* as it came */
};

/* Numbers ascending, then strings as they came. */
static int in_order(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    int order = 0;
    if ((x->v.type == KP_STRING) != (y->v.type == KP_STRING))
        return x->v.type == KP_STRING ? 1 : -1;
    if (x->v.type != KP_STRING && kp_value_compare(x->v, y->v, &order) && order != 0)
        return order;
    return x->at < y->at ? -1 : 1;
}

/* The narrowest type that all values have. */
static enum kp_type type_of(const struct kp_learned *p)
{
    bool has[KP_STRING + 1] = {false};
    for (size_t i = 0; i < p->n_values; i++)
        has[p->values[i].type] = true;
    return has[KP_STRING]  ? KP_STRING
           : has[KP_FLOAT] ? KP_FLOAT
           : has[KP_INT]   ? KP_INT
                           : KP_BOOL;
}

static kopt_status arrange_one(struct kp_recorder *r, size_t param, kopt_error *err)
{
    struct kp_learned *p = &r->learned[param];
    struct placed *list = kp_calloc(p->n_values, sizeof(*list));
    uint32_t *now_at = kp_calloc(p->n_values, sizeof(*now_at));
    if (!list || !now_at) {
        kp_free(list);
        kp_free(now_at);
        return kp_err_nomem(err);
    }
    for (size_t i = 0; i < p->n_values; i++)
        list[i] = (struct placed){p->values[i], (uint32_t)i};
    qsort(list, p->n_values, sizeof(*list), in_order);
    for (size_t i = 0; i < p->n_values; i++) {
        p->values[i] = list[i].v;
        now_at[list[i].at] = (uint32_t)i;
    }
    for (size_t i = 0; i < r->n; i++)
        r->configs[i * r->n_params + param] = now_at[r->configs[i * r->n_params + param]];
    kp_free(list);
    kp_free(now_at);
    return KOPT_OK;
}

kopt_status kp_recorder_arrange(struct kp_recorder *r, kopt_error *err)
{
    r->params = kp_calloc(r->n_params, sizeof(*r->params));
    if (!r->params)
        return kp_err_nomem(err);
    for (size_t i = 0; i < r->n_params; i++) {
        struct kp_learned *p = &r->learned[i];
        kopt_status st = arrange_one(r, i, err);
        if (st != KOPT_OK)
            return st;
        kp_map_deinit(&p->index);
        r->params[i] = (struct kp_param){.name = p->name,
                                         .type = type_of(p),
                                         .values = p->values,
                                         .n_values = (uint32_t)p->n_values,
                                         .default_index = -1,
                                         .slot = (uint32_t)i};
    }
    return KOPT_OK;
}
