/* SPDX-License-Identifier: MIT */
#include "model/dataset.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <math.h>
#include <stdio.h>

enum { PARTS = 10, KEY_MAX = 1 << 20 };

/* Fowler, Noll and Vo, FNV-1a with 64 bits. */
static uint64_t fnv1a(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3U;
    return h;
}

static uint64_t hash_of(unsigned salt, const char *key)
{
    char prefix[16];
    (void)snprintf(prefix, sizeof(prefix), "s%u|", salt);
    return fnv1a(fnv1a(0xcbf29ce484222325U, prefix), key);
}

unsigned kp_split_part_of(uint64_t hash)
{
    return (unsigned)((hash >> 33) % PARTS);
}

unsigned kp_split_part(unsigned salt, const char *key)
{
    return kp_split_part_of(hash_of(salt, key));
}

static unsigned char role_of(const struct kp_split *s, uint64_t hash)
{
    unsigned part = kp_split_part_of(hash);
    if (part == s->fold)
        return KP_ROLE_TEST;
    return part == (s->fold + 1) % PARTS ? KP_ROLE_VALID : KP_ROLE_TRAIN;
}

struct groups {
    const struct kp_dataset *d;
    const struct kp_split *split;
    struct kp_arena arena;
    struct kp_scope scope;
    const struct kp_expr **exprs;
    struct kp_value values[KP_FIELDS_MAX];
    unsigned char known[KP_FIELDS_MAX];
};

static kopt_status parse_groups(struct groups *g, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    g->exprs = kp_arena_alloc(&g->arena, g->split->n_group, sizeof(const struct kp_expr *));
    if (!g->exprs)
        return kp_err_nomem(err);
    for (uint32_t i = 0; st == KOPT_OK && i < g->d->n_fields; i++) {
        g->known[i] = 1;
        st = kp_scope_add(&g->scope, g->d->fields[i].name, i, err);
    }
    for (size_t k = 0; st == KOPT_OK && k < g->split->n_group; k++) {
        struct kp_str text = kp_str_from(g->split->group[k]);
        struct kp_source_pos where = {
            .src_line = text.ptr, .src_line_len = (int)text.len, .line = 1, .column = 1};
        if (text.len > KEY_MAX)
            return kp_err(err, KOPT_EINPUT, "a group's expression is too long");
        st = kp_expr_parse(text, &g->scope, KP_DIALECT_KOPT, &where, &g->arena, &g->exprs[k],
                           err);
    }
    return st;
}

/* A field's number; whole ones are integers, so that they may be divided and joined as such. */
static struct kp_value value_of(const struct kp_field *f, double x)
{
    const double exact = 0x1p53;
    if (f->is_word)
        return kp_string(kp_str_from(f->words[(size_t)x]));
    return fabs(x) <= exact && x == floor(x) ? kp_int((int64_t)x) : kp_float(x);
}

static kopt_status group_key(struct groups *g, size_t problem, struct kp_buf *key,
                             kopt_error *err)
{
    const struct kp_dataset *d = g->d;
    struct kp_env env = {g->values, g->known};
    kp_buf_clear(key);
    for (size_t i = 0; i < d->n_fields; i++)
        g->values[i] = value_of(&d->fields[i], d->problems[problem * d->n_fields + i]);
    for (size_t k = 0; k < g->split->n_group; k++) {
        struct kp_value v = kp_int(0);
        struct kp_eval_error why = {0};
        if (kp_expr_eval(g->exprs[k], &env, &v, &why) != KP_EVAL_VALUE)
            return kp_err(
                err, KOPT_EINPUT, "the group '%s' has no value for the problem %s: %s",
                g->split->group[k], d->keys[problem], why.what ? why.what : "not known");
        if (k)
            kp_buf_addc(key, ',');
        kp_value_to_text(v, key);
    }
    return kp_buf_status(key, err);
}

/* Of the problems that only help training those that may not. */
static void leave_out(const struct kp_dataset *d, bool learn_valid, unsigned char *roles)
{
    const unsigned char last = learn_valid ? KP_ROLE_VALID : KP_ROLE_TRAIN;
    for (size_t p = 0; p < d->n_problems; p++) {
        uint32_t twin = d->twins[p];
        if (twin == p)
            continue;
        bool may = roles[p] <= last && (twin == UINT32_MAX || roles[twin] <= last);
        roles[p] = may ? KP_ROLE_TRAIN : KP_ROLE_NONE;
    }
}

kopt_status kp_split_hashes(const struct kp_dataset *d, const struct kp_split *s,
                            uint64_t *hashes, kopt_error *err)
{
    struct groups g = {.d = d, .split = s, .arena = KP_ARENA_INIT((size_t)64 << 20)};
    struct kp_buf key = KP_BUF_INIT(KEY_MAX);
    kopt_status st = s->group ? parse_groups(&g, err) : KOPT_OK;
    for (size_t p = 0; st == KOPT_OK && p < d->n_problems; p++) {
        if (s->group)
            st = group_key(&g, p, &key, err);
        if (st == KOPT_OK)
            hashes[p] = hash_of(s->salt, s->group ? kp_buf_text(&key) : d->keys[p]);
    }
    kp_buf_deinit(&key);
    kp_scope_deinit(&g.scope);
    kp_arena_deinit(&g.arena);
    return st;
}

kopt_status kp_split(const struct kp_dataset *d, const struct kp_split *s, unsigned char *roles,
                     kopt_error *err)
{
    if (s->fold >= PARTS)
        return kp_err(err, KOPT_EINPUT, "there are folds 0 to %d, none is %u", PARTS - 1,
                      s->fold);
    uint64_t *hashes = kp_calloc(d->n_problems + 1, sizeof(*hashes));
    if (!hashes)
        return kp_err_nomem(err);
    kopt_status st = kp_split_hashes(d, s, hashes, err);
    for (size_t p = 0; st == KOPT_OK && p < d->n_problems; p++)
        roles[p] = role_of(s, hashes[p]);
    if (st == KOPT_OK && d->twins)
        leave_out(d, s->learn_valid, roles);
    kp_free(hashes);
    return st;
}
