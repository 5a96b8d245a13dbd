/* SPDX-License-Identifier: MIT */
/* What the rules see of the fixed names. */
#include "space/space_cache.h"

#include "base/alloc.h"

#include <string.h>

enum { DEFAULT_BYTES = 16 << 20 };

struct kp_space_cache *kp_space_cache_new(size_t max_bytes)
{
    struct kp_space_cache *c = kp_calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->max_bytes = max_bytes ? max_bytes : DEFAULT_BYTES;
    c->fixed = KP_ARENA_INIT(c->max_bytes);
    c->store = KP_ARENA_INIT(c->max_bytes);
    return c;
}

void kp_space_cache_free(struct kp_space_cache *c)
{
    if (!c)
        return;
    kp_cache_empty(c);
    kp_arena_deinit(&c->fixed);
    kp_free(c->entries);
    kp_free(c->mdds);
    kp_free(c->words);
    kp_free(c->table);
    kp_free(c);
}

/* ---- views ---- */

struct looking {
    struct kp_space_cache *c;
    const struct kp_space_desc *d;
    uint32_t *own; /* views of the rule at hand, ascending */
    uint32_t n_own;
    bool full;
};

static bool same_value(struct kp_value a, struct kp_value b)
{
    if (a.type != b.type)
        return false;
    if (a.type == KP_STRING)
        return a.as.s.len == b.as.s.len &&
               (a.as.s.len == 0 || memcmp(a.as.s.ptr, b.as.s.ptr, a.as.s.len) == 0);
    struct kp_cell x = kp_cell_from(a);
    struct kp_cell y = kp_cell_from(b);
    return x.bits == y.bits;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static bool same_expr(const struct kp_expr *a, const struct kp_expr *b)
{
    if (a == b)
        return true;
    if (a->op != b->op || a->func != b->func || a->operand != b->operand ||
        a->n_args != b->n_args || a->depth != b->depth)
        return false;
    if (a->op == KP_OP_VAR)
        return a->slot == b->slot;
    if (a->op == KP_OP_CONST)
        return same_value(a->value, b->value);
    for (uint32_t i = 0; i < a->n_args; i++)
        if (!same_expr(a->args[i], b->args[i]))
            return false;
    return true;
}

static void add_own(struct looking *l, uint32_t view)
{
    uint32_t at = l->n_own;
    while (at > 0 && l->own[at - 1] > view)
        at--;
    if (at > 0 && l->own[at - 1] == view)
        return;
    memmove(l->own + at + 1, l->own + at, (l->n_own - at) * sizeof(*l->own));
    l->own[at] = view;
    l->n_own++;
}

static void add_view(struct looking *l, const struct kp_expr *e)
{
    struct kp_space_cache *c = l->c;
    uint32_t view = 0;
    while (view < c->n_views && !same_expr(c->views[view], e))
        view++;
    if (view == KP_CACHE_VIEWS_MAX) {
        l->full = true;
        return;
    }
    if (view == c->n_views)
        c->views[c->n_views++] = e;
    add_own(l, view);
}

enum seen { SEEN_CONSTANT, SEEN_FIXED, SEEN_PARAM };

/* What stands in `e`; where that are parameters, the parts without any become views. A name
 * that has no value counts as a parameter. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static enum seen look(struct looking *l, const struct kp_expr *e)
{
    const struct kp_space_desc *d = l->d;
    enum seen most = SEEN_CONSTANT;
    if (e->op == KP_OP_VAR)
        return e->slot < d->n_slots && d->known && d->known[e->slot] ? SEEN_FIXED : SEEN_PARAM;
    for (uint32_t i = 0; i < e->n_args && !l->full; i++) {
        enum seen s = look(l, e->args[i]);
        if (s == SEEN_PARAM && most != SEEN_PARAM) {
            most = SEEN_PARAM;
            for (uint32_t k = 0; k < i; k++)
                if (look(l, e->args[k]) == SEEN_FIXED)
                    add_view(l, e->args[k]);
        } else if (s == SEEN_FIXED && most == SEEN_PARAM) {
            add_view(l, e->args[i]);
        } else if (s == SEEN_FIXED) {
            most = SEEN_FIXED;
        }
    }
    return most;
}

static bool look_at_rule(struct looking *l, size_t r)
{
    struct kp_cache_rule *rule = &l->c->rules[r];
    rule->expr = l->d->rules[r].expr;
    l->n_own = 0;
    if (look(l, rule->expr) == SEEN_FIXED)
        add_view(l, rule->expr);
    uint32_t *views = kp_arena_alloc(&l->c->fixed, (size_t)l->n_own + 1, sizeof(*views));
    if (l->full || !views)
        return false;
    memcpy(views, l->own, l->n_own * sizeof(*views));
    rule->views = views;
    rule->n_views = l->n_own;
    return true;
}

static bool look_at_all(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    struct looking l = {.c = c, .d = d};
    l.own = kp_calloc(KP_CACHE_VIEWS_MAX + 1, sizeof(*l.own));
    c->views = kp_calloc(KP_CACHE_VIEWS_MAX, sizeof(const struct kp_expr *));
    bool ok = l.own && c->views;
    for (size_t r = 0; ok && r < d->n_rules; r++)
        ok = look_at_rule(&l, r);
    const struct kp_expr **views =
        kp_arena_alloc(&c->fixed, (size_t)c->n_views + 1, sizeof(const struct kp_expr *));
    c->seen = kp_arena_alloc(&c->fixed, (size_t)c->n_views + 1, sizeof(*c->seen));
    c->key = kp_arena_alloc(&c->fixed, (size_t)c->n_views + 1, sizeof(*c->key));
    ok = ok && !c->fixed.failed;
    if (ok)
        memcpy(views, c->views, c->n_views * sizeof(const struct kp_expr *));
    kp_free(c->views);
    c->views = views;
    kp_free(l.own);
    return ok;
}

/* ---- which spaces it serves ---- */

static bool take_over(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    c->params = kp_arena_alloc(&c->fixed, d->n_params + 1, sizeof(*c->params));
    c->rules = kp_arena_alloc(&c->fixed, d->n_rules + 1, sizeof(*c->rules));
    c->known = kp_arena_alloc(&c->fixed, d->n_slots + 1, 1);
    c->param_of_slot = kp_arena_alloc(&c->fixed, d->n_slots + 1, sizeof(int32_t));
    if (c->fixed.failed)
        return false;
    if (d->n_params)
        memcpy(c->params, d->params, d->n_params * sizeof(*c->params));
    if (d->known && d->n_slots)
        memcpy(c->known, d->known, d->n_slots);
    c->n_params = d->n_params;
    c->n_rules = d->n_rules;
    c->n_slots = d->n_slots;
    for (size_t i = 0; i < d->n_slots; i++)
        c->param_of_slot[i] = -1;
    for (size_t i = 0; i < d->n_params; i++)
        c->param_of_slot[d->params[i].slot] = (int32_t)i;
    return look_at_all(c, d);
}

static bool same_params(const struct kp_space_cache *c, const struct kp_space_desc *d)
{
    for (size_t i = 0; i < d->n_params; i++) {
        const struct kp_param *a = &c->params[i];
        const struct kp_param *b = &d->params[i];
        if (a->values != b->values || a->n_values != b->n_values || a->slot != b->slot)
            return false;
    }
    return true;
}

static bool same_rules(const struct kp_space_cache *c, const struct kp_space_desc *d)
{
    for (size_t r = 0; r < d->n_rules; r++)
        if (c->rules[r].expr != d->rules[r].expr)
            return false;
    for (size_t i = 0; i < d->n_slots; i++)
        if (c->known[i] != (d->known ? d->known[i] : 0))
            return false;
    return true;
}

/* Without memory it stays as new as it was. */
static void take(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    bool fits = d->n_slots <= KP_CACHE_SLOTS_MAX;
    if (fits && take_over(c, d)) {
        c->state = KP_CACHE_READY;
        return;
    }
    if (!fits || c->n_views == KP_CACHE_VIEWS_MAX || c->fixed.over)
        c->state = KP_CACHE_UNFIT;
    c->n_views = 0;
    kp_arena_deinit(&c->fixed);
}

bool kp_cache_serves(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    if (c->state == KP_CACHE_NEW)
        take(c, d);
    return c->state == KP_CACHE_READY && c->n_params == d->n_params &&
           c->n_rules == d->n_rules && c->n_slots == d->n_slots && same_params(c, d) &&
           same_rules(c, d);
}

/* ---- what they see now ---- */

/* The number of a word. UINT32_MAX: out of memory. */
static uint32_t number_of(struct kp_space_cache *c, struct kp_str word)
{
    void *items = c->words;
    for (size_t i = 0; i < c->n_words; i++)
        if (c->words[i].len == word.len && memcmp(c->words[i].ptr, word.ptr, word.len) == 0)
            return (uint32_t)i;
    if (!kp_grow(&items, &c->cap_words, c->n_words, sizeof(*c->words), KP_CACHE_ITEMS_MAX))
        return UINT32_MAX;
    c->words = items;
    const char *copy = kp_arena_strndup(&c->store, word.ptr, word.len);
    if (!copy)
        return UINT32_MAX;
    c->words[c->n_words] = (struct kp_str){copy, word.len};
    return (uint32_t)c->n_words++;
}

bool kp_cache_look(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    struct kp_env env = {d->values, d->known};
    struct kp_value v;
    for (uint32_t i = 0; i < c->n_views; i++) {
        struct kp_cell *cell = &c->seen[i];
        if (kp_expr_eval(c->views[i], &env, &v, NULL) != KP_EVAL_VALUE) {
            *cell = (struct kp_cell){.type = KP_CELL_ERROR};
            continue;
        }
        *cell = kp_cell_from(v);
        if (v.type != KP_STRING)
            continue;
        cell->bits = number_of(c, v.as.s);
        if (cell->bits == UINT32_MAX)
            return false;
    }
    return true;
}
