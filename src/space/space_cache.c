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
    kp_free(c->found);
    kp_free(c);
}

/* ---- views ---- */

struct looking {
    struct kp_space_cache *c;
    const struct kp_space_desc *d;
    uint32_t *own; /* views of the rule at hand, ascending */
    uint32_t n_own;
    uint32_t n_cells;
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

/* What stands in an expression. */
struct content {
    bool fixed; /* a name with a fixed value */
    bool open;  /* a name without any */
    struct kp_varset params;
    uint64_t size; /* nodes */
};

static void add_param(const struct looking *l, struct content *in, uint32_t slot)
{
    int32_t param = slot < l->d->n_slots ? l->c->param_of_slot[slot] : -1;
    if (slot < l->d->n_slots && l->d->known && l->d->known[slot])
        in->fixed = true;
    else if (param < 0)
        in->open = true;
    else
        kp_varset_add(&in->params, (size_t)param);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static void gather(const struct looking *l, const struct kp_expr *e, struct content *in)
{
    in->size++;
    if (e->op == KP_OP_VAR)
        add_param(l, in, e->slot);
    for (uint32_t i = 0; i < e->n_args; i++)
        gather(l, e->args[i], in);
}

/* Assignments of the parameters; more than `most`: most + 1. */
static uint32_t count_cells(const struct looking *l, const struct content *in, uint32_t most)
{
    uint64_t n = 1;
    for (size_t i = 0; i < l->d->n_params && n <= most; i++)
        if (kp_varset_has(&in->params, i))
            n *= l->d->params[i].n_values;
    return n <= most ? (uint32_t)n : most + 1;
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
    l->n_cells += l->c->views[view].n_cells;
}

static void add_view(struct looking *l, const struct kp_expr *e, const struct content *in,
                     uint32_t n_cells)
{
    struct kp_space_cache *c = l->c;
    uint32_t view = 0;
    uint32_t params[KP_PARAMS_MAX];
    struct kp_cache_view v = {.expr = e, .n_cells = n_cells};
    while (view < c->n_views && !same_expr(c->views[view].expr, e))
        view++;
    if (view < c->n_views) {
        add_own(l, view);
        return;
    }
    if (view > 0)
        v.cell = c->views[view - 1].cell + c->views[view - 1].n_cells;
    for (uint32_t i = 0; i < l->d->n_params; i++)
        if (kp_varset_has(&in->params, i))
            params[v.n_params++] = i;
    uint32_t *copy = kp_arena_alloc(&c->fixed, (size_t)v.n_params + 1, sizeof(*copy));
    l->full = !copy || view == KP_CACHE_VIEWS_MAX || v.cell > KP_CACHE_CELLS_MAX - n_cells;
    if (l->full)
        return;
    memcpy(copy, params, v.n_params * sizeof(*copy));
    v.params = copy;
    c->views[c->n_views++] = v;
    add_own(l, view);
}

/* The largest parts of `e` with a fixed name and at most so many assignments of parameters. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static void split(struct looking *l, const struct kp_expr *e, uint32_t most)
{
    struct content in = {0};
    gather(l, e, &in);
    if (!in.fixed || l->full)
        return;
    uint32_t n = count_cells(l, &in, most);
    bool small = !in.open && (n == 1 || (n <= most && n * in.size <= KP_CACHE_DEEP_WORK));
    if (small)
        add_view(l, e, &in, n);
    for (uint32_t i = 0; !small && i < e->n_args; i++)
        split(l, e->args[i], most);
}

static bool look_at_rule(struct looking *l, size_t r)
{
    struct kp_cache_rule *rule = &l->c->rules[r];
    rule->expr = l->d->rules[r].expr;
    for (int deep = 0; deep < 2; deep++) {
        l->n_own = 0;
        l->n_cells = 0;
        split(l, rule->expr, deep ? KP_CACHE_DEEP : 1);
        uint32_t *views = kp_arena_alloc(&l->c->fixed, (size_t)l->n_own + 1, sizeof(*views));
        if (l->full || !views)
            return false;
        memcpy(views, l->own, l->n_own * sizeof(*views));
        rule->look[deep] = (struct kp_cache_look){views, l->n_own, l->n_cells};
    }
    return true;
}

static bool look_at_all(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    struct looking l = {.c = c, .d = d};
    size_t n_cells = 1;
    l.own = kp_calloc(KP_CACHE_VIEWS_MAX + 1, sizeof(*l.own));
    struct kp_cache_view *views = kp_calloc(KP_CACHE_VIEWS_MAX, sizeof(*views));
    bool ok = l.own && views;
    c->views = views;
    for (size_t r = 0; ok && r < d->n_rules; r++)
        ok = look_at_rule(&l, r);
    c->views = kp_arena_alloc(&c->fixed, (size_t)c->n_views + 1, sizeof(*c->views));
    if (ok && c->views && c->n_views > 0) {
        memcpy(c->views, views, c->n_views * sizeof(*views));
        n_cells += views[c->n_views - 1].cell + views[c->n_views - 1].n_cells;
    }
    c->values = kp_arena_alloc(&c->fixed, d->n_slots + 1, sizeof(*c->values));
    c->seen = kp_arena_alloc(&c->fixed, n_cells, sizeof(*c->seen));
    c->key = kp_arena_alloc(&c->fixed, n_cells, sizeof(*c->key));
    kp_free(views);
    kp_free(l.own);
    if (l.full && !c->fixed.failed)
        c->state = KP_CACHE_UNFIT;
    return ok && !c->fixed.failed;
}

/* ---- which spaces it serves ---- */

static bool take_over(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    c->params = kp_arena_alloc(&c->fixed, d->n_params + 1, sizeof(*c->params));
    c->rules = kp_arena_alloc(&c->fixed, d->n_rules + 1, sizeof(*c->rules));
    c->known = kp_arena_alloc(&c->fixed, d->n_slots + 1, 1);
    c->in_views = kp_arena_alloc(&c->fixed, d->n_slots + 1, 1);
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
    memcpy(c->in_views, c->known, d->n_slots);
    for (size_t i = 0; i < d->n_params; i++) {
        c->param_of_slot[d->params[i].slot] = (int32_t)i;
        c->in_views[d->params[i].slot] = 1;
    }
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
    if (!fits || c->fixed.over)
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

/* The number of a word. UINT32_MAX: out of memory, or new and nothing may be added. */
static uint32_t number_of(struct kp_space_cache *c, struct kp_str word)
{
    void *items = c->words;
    for (size_t i = 0; i < c->n_words; i++)
        if (c->words[i].len == word.len && memcmp(c->words[i].ptr, word.ptr, word.len) == 0)
            return (uint32_t)i;
    if (c->looking ||
        !kp_grow(&items, &c->cap_words, c->n_words, sizeof(*c->words), KP_CACHE_ITEMS_MAX))
        return UINT32_MAX;
    c->words = items;
    const char *copy = kp_arena_strndup(&c->store, word.ptr, word.len);
    if (!copy)
        return UINT32_MAX;
    c->words[c->n_words] = (struct kp_str){copy, word.len};
    return (uint32_t)c->n_words++;
}

void kp_cache_begin(struct kp_space_cache *c, const struct kp_space_desc *d)
{
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->known[i])
            c->values[i] = d->values[i];
    c->spaces++;
    c->failed = false;
}

static struct kp_cell cell_of(struct kp_space_cache *c, const struct kp_expr *e,
                              const struct kp_env *env)
{
    struct kp_value v;
    if (kp_expr_eval(e, env, &v, NULL) != KP_EVAL_VALUE)
        return (struct kp_cell){.type = KP_CELL_ERROR};
    struct kp_cell cell = kp_cell_from(v);
    if (v.type == KP_STRING) {
        cell.bits = number_of(c, v.as.s);
        c->failed |= cell.bits == UINT32_MAX;
    }
    return cell;
}

/* The next assignment of a view's parameters, the last one fastest. */
static void step(struct kp_space_cache *c, const struct kp_cache_view *v, uint32_t *config)
{
    for (uint32_t i = v->n_params; i-- > 0;) {
        const struct kp_param *p = &c->params[v->params[i]];
        bool more = ++config[i] < p->n_values;
        config[i] = more ? config[i] : 0;
        c->values[p->slot] = p->values[config[i]];
        if (more)
            return;
    }
}

static void look_at(struct kp_space_cache *c, struct kp_cache_view *v)
{
    struct kp_env env = {c->values, c->in_views};
    uint32_t config[KP_PARAMS_MAX];
    v->looked = c->spaces;
    for (uint32_t i = 0; i < v->n_params; i++) {
        const struct kp_param *p = &c->params[v->params[i]];
        c->values[p->slot] = p->values[0];
        config[i] = 0;
    }
    for (uint32_t i = 0; i < v->n_cells; i++) {
        c->seen[v->cell + i] = cell_of(c, v->expr, &env);
        if (v->n_cells > 1)
            step(c, v, config);
    }
}

void kp_cache_see(struct kp_space_cache *c, const struct kp_cache_look *look)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < look->n_views; i++) {
        struct kp_cache_view *v = &c->views[look->views[i]];
        if (v->looked != c->spaces)
            look_at(c, v);
        memcpy(c->key + n, c->seen + v->cell, v->n_cells * sizeof(*c->key));
        n += v->n_cells;
    }
}
