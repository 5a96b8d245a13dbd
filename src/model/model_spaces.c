/* SPDX-License-Identifier: MIT */
#include "model/model_spaces.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { ARENA_MAX = 256 << 20 };

/* A set of configurations that the rules leave of some problems. */
struct kp_spaces_entry {
    struct kp_bound *bound; /* of one of them */
    const void *kind;       /* kp_space_kind(); NULL: of that one alone */
    size_t users;           /* with the list */
    uint64_t last_use;
};

enum { WORD_MAX = 32 }; /* bytes; a problem with a longer word is not remembered */

/* A problem that was asked about, and where. */
struct asked {
    struct kp_spaces_entry *entry; /* in the list; NULL: free */
    uint64_t hash;
    struct kp_limits limits;
    bool has_limits;
    struct kp_value *problem;
    char *words; /* [n_problem][WORD_MAX] */
    uint64_t last_use;
};

struct kp_spaces {
    struct kp_kernel known; /* the rules over known values; what it points to is the model's */
    const char *lost;
    struct kp_arena arena;
    const uint32_t *map;           /* as in struct kp_beam_space */
    const uint32_t *const *values; /* as in struct kp_beam_space */
    pthread_mutex_t making;        /* of the cache and what follows; taken before the other */
    struct kp_space_cache *cache;
    struct kp_value *slots; /* an environment */
    unsigned char *slots_known;
    pthread_mutex_t lock; /* of what follows */
    struct kp_spaces_entry *entries[KP_SPACES_MAX];
    size_t n_entries;
    struct asked asked[KP_SPACES_ASKED_MAX];
    uint64_t clock;
};

/* ---- known values ---- */

static bool equal(struct kp_value a, struct kp_value b)
{
    int order = 1;
    return kp_value_compare(a, b, &order) && order == 0;
}

/* The index of `v`, from `start` on and round; n where there is none. Lists mostly agree in
 * their order, so it is looked for where the last one was found. */
static uint32_t find_value(const struct kp_value *values, uint32_t n, uint32_t start,
                           struct kp_value v)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = start + i < n ? start + i : start + i - n;
        if (equal(values[at], v))
            return at;
    }
    return n;
}

static size_t param_index(const struct kp_kernel *k, const char *name)
{
    for (size_t i = 0; i < k->n_params; i++)
        if (strcmp(k->params[i].name, name) == 0)
            return i;
    return k->n_params;
}

/* Only the values that the target knows stay, in the parameter's order. */
static bool narrow(struct kp_spaces *s, const struct kp_target *t, struct kp_param *p)
{
    uint32_t n = 0;
    uint32_t at = 0;
    struct kp_value *values = kp_arena_alloc(&s->arena, p->n_values, sizeof(*values));
    if (!values)
        return false;
    for (uint32_t v = 0; v < p->n_values; v++) {
        uint32_t found = find_value(t->values, t->n_values, at, p->values[v]);
        if (found == t->n_values)
            continue;
        values[n++] = p->values[v];
        at = found + 1 < t->n_values ? found + 1 : 0;
    }
    if (n == 0 && !s->lost)
        s->lost = p->name;
    if (n < p->n_values) {
        p->values = values;
        p->n_values = n;
        p->default_index = -1;
    }
    return true;
}

static bool narrow_all(struct kp_spaces *s, const struct kp_model *m)
{
    size_t n = s->known.n_params;
    struct kp_param *params = kp_arena_alloc(&s->arena, n, sizeof(*params));
    if (!params)
        return false;
    memcpy(params, s->known.params, n * sizeof(*params));
    for (size_t p = 0; p < m->n_targets; p++) {
        size_t i = param_index(&s->known, m->targets[p].name);
        if (i < n && !narrow(s, &m->targets[p], &params[i]))
            return false;
    }
    s->known.params = params;
    return true;
}

/* Which parameters the targets are, and which of their values. */
static bool map_targets(struct kp_spaces *s, const struct kp_model *m)
{
    uint32_t *map = kp_arena_alloc(&s->arena, m->n_targets, sizeof(*map));
    const uint32_t **value = kp_arena_alloc(&s->arena, m->n_targets, sizeof(const uint32_t *));
    if (!map || !value)
        return false;
    for (size_t p = 0; p < m->n_targets; p++) {
        const struct kp_target *t = &m->targets[p];
        uint32_t *index = kp_arena_alloc(&s->arena, t->n_values, sizeof(*index));
        uint32_t at = 0;
        if (!index)
            return false;
        value[p] = index;
        map[p] = (uint32_t)param_index(&s->known, t->name);
        if (map[p] == s->known.n_params)
            continue; /* the rules say nothing about it */
        const struct kp_param *param = &s->known.params[map[p]];
        for (uint32_t v = 0; v < t->n_values; v++) {
            uint32_t found = find_value(param->values, param->n_values, at, t->values[v]);
            index[v] = found < param->n_values ? found : UINT32_MAX;
            if (found < param->n_values)
                at = found + 1 < param->n_values ? found + 1 : 0;
        }
    }
    s->map = map;
    s->values = value;
    return true;
}

/* Memory for what is remembered. */
static bool make_room(struct kp_spaces *s)
{
    size_t n = s->known.n_problem;
    s->slots = kp_arena_alloc(&s->arena, s->known.n_slots + 1, sizeof(*s->slots));
    s->slots_known = kp_arena_alloc(&s->arena, s->known.n_slots + 1, 1);
    for (size_t i = 0; i < KP_SPACES_ASKED_MAX; i++) {
        s->asked[i].problem = kp_arena_alloc(&s->arena, n + 1, sizeof(*s->asked[i].problem));
        s->asked[i].words = kp_arena_alloc(&s->arena, n + 1, WORD_MAX);
    }
    return !s->arena.failed;
}

/* ---- life ---- */

kopt_status kp_spaces_new(const struct kp_model *m, struct kp_spaces **out, kopt_error *err)
{
    *out = NULL;
    struct kp_spaces *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    /* They fail for want of memory alone, which glibc's do not take. */
    (void)pthread_mutex_init(&s->making, NULL);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->arena = KP_ARENA_INIT(ARENA_MAX);
    s->known = *m->rules;
    s->cache = kp_space_cache_new(0);
    if (!s->cache || !narrow_all(s, m) || !map_targets(s, m) || !make_room(s)) {
        kp_spaces_free(s);
        return kp_err_nomem(err);
    }
    *out = s;
    return KOPT_OK;
}

static void entry_free(struct kp_spaces_entry *e)
{
    if (!e)
        return;
    kp_bound_free(e->bound);
    kp_free(e);
}

void kp_spaces_free(struct kp_spaces *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_entries; i++)
        entry_free(s->entries[i]);
    kp_space_cache_free(s->cache);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_mutex_destroy(&s->making);
    kp_arena_deinit(&s->arena);
    kp_free(s);
}

const char *kp_spaces_lost(const struct kp_spaces *s)
{
    return s->lost;
}

struct kp_beam_space kp_spaces_allowed(const struct kp_spaces *s,
                                       const struct kp_spaces_entry *e)
{
    return (struct kp_beam_space){e->bound->space, s->map, s->values};
}

/* ---- what is kept ---- */

struct question {
    const struct kp_value *problem;
    const struct kp_limits *limits;
    uint64_t hash;
};

static uint64_t hash_value(struct kp_value v, uint64_t seed)
{
    switch (v.type) {
    case KP_INT:
        return kp_hash64(&v.as.i, sizeof(v.as.i), seed);
    case KP_FLOAT:
        return kp_hash64(&v.as.f, sizeof(v.as.f), seed + 1);
    case KP_BOOL:
        return seed + 2 + v.as.b;
    case KP_STRING:
        break;
    }
    return kp_hash64(v.as.s.ptr, v.as.s.len, seed + 4);
}

/* The same value of the same type: 1 and 1.0, or 0.0 and -0.0, are not the same to every rule.
 */
static bool same_value(struct kp_value a, struct kp_value b)
{
    if (a.type != b.type)
        return false;
    if (a.type == KP_FLOAT)
        return a.as.f == b.as.f && signbit(a.as.f) == signbit(b.as.f);
    return equal(a, b);
}

static bool same_limits(const struct kp_limits *a, const struct kp_limits *b)
{
    return a->max_threads == b->max_threads && a->max_block[0] == b->max_block[0] &&
           a->max_block[1] == b->max_block[1] && a->max_block[2] == b->max_block[2] &&
           a->shared_bytes == b->shared_bytes && a->registers == b->registers &&
           a->warp == b->warp && a->compute_units == b->compute_units &&
           a->l2_bytes == b->l2_bytes && a->global_bytes == b->global_bytes &&
           a->clock_khz == b->clock_khz && a->cc == b->cc;
}

static bool is_about(const struct kp_spaces *s, const struct asked *a, const struct question *q)
{
    if (!a->entry || a->hash != q->hash || a->has_limits != (q->limits != NULL) ||
        (q->limits && !same_limits(&a->limits, q->limits)))
        return false;
    for (size_t i = 0; i < s->known.n_problem; i++)
        if (!same_value(a->problem[i], q->problem[i]))
            return false;
    return true;
}

static void use(struct kp_spaces *s, struct kp_spaces_entry *e)
{
    e->users++;
    e->last_use = ++s->clock;
}

/* With one more user; NULL: it was not asked about lately. */
static struct kp_spaces_entry *find(struct kp_spaces *s, const struct question *q)
{
    struct kp_spaces_entry *found = NULL;
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < KP_SPACES_ASKED_MAX && !found; i++) {
        if (!is_about(s, &s->asked[i], q))
            continue;
        found = s->asked[i].entry;
        use(s, found);
        s->asked[i].last_use = s->clock;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return found;
}

void kp_spaces_give(struct kp_spaces *s, struct kp_spaces_entry *e)
{
    if (!e)
        return;
    (void)pthread_mutex_lock(&s->lock);
    bool last = --e->users == 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (last)
        entry_free(e);
}

/* False: a word is too long. */
static bool copy_problem(const struct kp_spaces *s, const struct question *q, struct asked *to)
{
    for (size_t i = 0; i < s->known.n_problem; i++) {
        struct kp_value v = q->problem[i];
        if (v.type == KP_STRING) {
            if (v.as.s.len > WORD_MAX)
                return false;
            char *word = to->words + i * WORD_MAX;
            if (v.as.s.len)
                memcpy(word, v.as.s.ptr, v.as.s.len);
            v.as.s.ptr = word;
        }
        to->problem[i] = v;
    }
    return true;
}

/* The problem and its entry, in the place of one that was not asked about for the longest
 * time. With `lock` held. */
static void remember(struct kp_spaces *s, const struct question *q, struct kp_spaces_entry *e)
{
    struct asked *to = &s->asked[0];
    for (size_t i = 1; i < KP_SPACES_ASKED_MAX && to->entry; i++)
        if (!s->asked[i].entry || s->asked[i].last_use < to->last_use)
            to = &s->asked[i];
    to->entry = NULL;
    if (!copy_problem(s, q, to))
        return;
    to->entry = e;
    to->hash = q->hash;
    to->has_limits = q->limits != NULL;
    to->limits = q->limits ? *q->limits : (struct kp_limits){0};
    to->last_use = ++s->clock;
}

static void forget(struct kp_spaces *s, const struct kp_spaces_entry *e)
{
    for (size_t i = 0; i < KP_SPACES_ASKED_MAX; i++)
        if (s->asked[i].entry == e)
            s->asked[i].entry = NULL;
}

/* In the place of the one that was not used for the longest time, where the list is full. */
static void keep(struct kp_spaces *s, const struct question *q, struct kp_spaces_entry *e)
{
    struct kp_spaces_entry *out = NULL;
    (void)pthread_mutex_lock(&s->lock);
    size_t at = s->n_entries;
    if (at == KP_SPACES_MAX) {
        at = 0;
        for (size_t i = 1; i < KP_SPACES_MAX; i++)
            if (s->entries[i]->last_use < s->entries[at]->last_use)
                at = i;
        out = s->entries[at];
        forget(s, out);
    } else {
        s->n_entries++;
    }
    s->entries[at] = e;
    e->users = 1;
    use(s, e);
    remember(s, q, e);
    (void)pthread_mutex_unlock(&s->lock);
    kp_spaces_give(s, out);
}

/* One that has the configurations of this problem, although it was made for another. With
 * `making` held. */
static struct kp_spaces_entry *find_kind(struct kp_spaces *s, const struct question *q)
{
    struct kp_spaces_entry *found = NULL;
    kp_kernel_environment(&s->known, q->problem, q->limits, s->slots, s->slots_known);
    const struct kp_space_desc desc = {.params = s->known.params,
                                       .n_params = s->known.n_params,
                                       .rules = s->known.rules,
                                       .n_rules = s->known.n_rules,
                                       .values = s->slots,
                                       .known = s->slots_known,
                                       .n_slots = s->known.n_slots,
                                       .cache = s->cache};
    const void *kind = kp_space_look(&desc);
    if (!kind)
        return NULL;
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_entries && !found; i++)
        if (s->entries[i]->kind == kind)
            found = s->entries[i];
    if (found) {
        use(s, found);
        remember(s, q, found);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return found;
}

/* With `making` held. */
static kopt_status make(struct kp_spaces *s, const struct question *q,
                        struct kp_spaces_entry **out, kopt_error *err)
{
    *out = find(s, q); /* another thread may have come first */
    if (!*out)
        *out = find_kind(s, q);
    if (*out)
        return KOPT_OK;
    struct kp_spaces_entry *e = kp_calloc(1, sizeof(*e));
    if (!e)
        return kp_err_nomem(err);
    kopt_status st =
        kp_kernel_bind_cached(&s->known, q->problem, q->limits, s->cache, &e->bound, err);
    if (st != KOPT_OK || kp_space_count(e->bound->space) == 0) {
        entry_free(e);
        return st;
    }
    e->kind = kp_space_kind(e->bound->space);
    keep(s, q, e);
    *out = e;
    return KOPT_OK;
}

kopt_status kp_spaces_take(struct kp_spaces *s, const struct kp_value *problem,
                           const struct kp_limits *limits, struct kp_spaces_entry **out,
                           kopt_error *err)
{
    struct question q = {problem, limits, 0};
    for (size_t i = 0; i < s->known.n_problem; i++)
        q.hash = hash_value(problem[i], q.hash);
    *out = s->lost ? NULL : find(s, &q);
    if (*out || s->lost)
        return KOPT_OK;
    (void)pthread_mutex_lock(&s->making);
    kopt_status st = make(s, &q, out, err);
    (void)pthread_mutex_unlock(&s->making);
    return st;
}
