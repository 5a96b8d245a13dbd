/* SPDX-License-Identifier: MIT */
#include "model/scratch.h"
#include "model/encoder_impl.h"
#include "model/model_impl.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

enum { ARENA_MAX = 256 << 20 };

struct kp_scratch_pool {
    pthread_mutex_t lock; /* of what follows */
    struct kp_scratch *first;
    size_t n;
    size_t bytes;
};

/* ---- one ---- */

/* Where the encoder's fields behind the problem's own come from. */
static void find_derived(const struct kp_model *m, struct kp_scratch *s)
{
    const struct kp_let *lets[KP_FIELDS_MAX];
    size_t n = kp_model_derived_lets(m->rules, lets);
    for (size_t i = m->n_raw; i < kp_encoder_n_fields(m->encoder); i++)
        for (size_t d = 0; d < n; d++)
            if (strcmp(lets[d]->name, kp_encoder_field(m->encoder, i)->name) == 0)
                s->derived[i] = lets[d];
}

static void find_slots(const struct kp_kernel *rules, struct kp_scratch *s)
{
    for (size_t i = 0; i < rules->n_problem; i++) {
        int64_t slot = kp_scope_find(&rules->scope, kp_str_from(rules->problem[i]));
        KP_CHECK(slot >= 0 && slot < rules->n_slots);
        s->size_slot[i] = (uint32_t)slot;
        s->known[slot] = 1;
    }
}

static bool lay_out(const struct kp_model *m, struct kp_scratch *s)
{
    size_t n_fields = kp_encoder_n_fields(m->encoder);
    size_t n_sizes = m->rules ? m->rules->n_problem : 0;
    size_t n_slots = m->rules ? m->rules->n_slots : 0;
    struct kp_arena *a = &s->arena;
    s->given = kp_arena_alloc(a, n_fields + 1, sizeof(const struct kp_given *));
    s->taken = kp_arena_alloc(a, n_sizes + 1, sizeof(*s->taken));
    s->problem = kp_arena_alloc(a, n_fields + 1, sizeof(*s->problem));
    s->sizes = kp_arena_alloc(a, n_sizes + 1, sizeof(*s->sizes));
    s->derived = kp_arena_alloc(a, n_fields + 1, sizeof(const struct kp_let *));
    s->size_slot = kp_arena_alloc(a, n_sizes + 1, sizeof(*s->size_slot));
    s->slots = kp_arena_alloc(a, n_slots + 1, sizeof(*s->slots));
    s->known = kp_arena_alloc(a, n_slots + 1, 1);
    s->tokens = kp_arena_alloc(a, kp_encoder_n_tokens(m->encoder) + 1, sizeof(*s->tokens));
    s->features =
        kp_arena_alloc(a, kp_encoder_n_features(m->encoder) + 1, sizeof(*s->features));
    if (a->failed || !kp_buf_reserve(&s->words, n_fields * KP_SCRATCH_WORD + 1))
        return false;
    if (m->rules) {
        find_derived(m, s);
        find_slots(m->rules, s);
    }
    return true;
}

static void scratch_free(struct kp_scratch *s)
{
    kp_buf_deinit(&s->words);
    kp_arena_deinit(&s->arena);
    kp_free(s->configs);
    kp_free(s->logp);
    kp_slab_free(s->work);
    kp_free(s);
}

static struct kp_scratch *scratch_new(const struct kp_model *m)
{
    struct kp_scratch *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->arena = KP_ARENA_INIT(ARENA_MAX);
    s->words = KP_BUF_INIT(ARENA_MAX);
    s->pool = m->scratch;
    if (lay_out(m, s))
        return s;
    scratch_free(s);
    return NULL;
}

bool kp_scratch_answer(struct kp_scratch *s, size_t n_targets, size_t k)
{
    if (k <= s->k)
        return true;
    kp_free(s->configs);
    kp_free(s->logp);
    s->k = 0;
    s->n_targets = n_targets;
    s->configs = kp_calloc(k * n_targets, sizeof(*s->configs));
    s->logp = kp_calloc(k, sizeof(*s->logp));
    if (!s->configs || !s->logp)
        return false;
    s->k = k;
    return true;
}

bool kp_scratch_work(struct kp_scratch *s, size_t bytes)
{
    size_t n = bytes / sizeof(float) + 1;
    if (n <= s->n_work)
        return true;
    kp_slab_free(s->work);
    s->n_work = 0;
    s->work = kp_slab_new(n);
    if (!s->work)
        return false;
    s->n_work = n;
    return true;
}

/* ---- all of a model ---- */

struct kp_scratch_pool *kp_scratch_pool_new(void)
{
    struct kp_scratch_pool *p = kp_calloc(1, sizeof(*p));
    if (p) /* it fails for want of memory alone, which glibc's does not take */
        (void)pthread_mutex_init(&p->lock, NULL);
    return p;
}

void kp_scratch_pool_free(struct kp_scratch_pool *p)
{
    if (!p)
        return;
    while (p->first) {
        struct kp_scratch *s = p->first;
        p->first = s->next;
        scratch_free(s);
    }
    (void)pthread_mutex_destroy(&p->lock);
    kp_free(p);
}

static size_t bytes_of(const struct kp_scratch *s)
{
    return s->arena.used + s->words.cap + s->n_work * sizeof(*s->work) +
           s->k * (sizeof(*s->logp) + s->n_targets * sizeof(*s->configs));
}

static struct kp_scratch *first_of(struct kp_scratch_pool *p)
{
    (void)pthread_mutex_lock(&p->lock);
    struct kp_scratch *s = p->first;
    if (s) {
        p->first = s->next;
        p->n--;
        p->bytes -= bytes_of(s);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return s;
}

kopt_status kp_scratch_take(const struct kp_model *m, struct kp_scratch **out, kopt_error *err)
{
    size_t n_fields = kp_encoder_n_fields(m->encoder);
    size_t n_sizes = m->rules ? m->rules->n_problem : 0;
    struct kp_scratch *s = m->scratch ? first_of(m->scratch) : NULL;
    *out = s ? s : scratch_new(m);
    if (!*out)
        return kp_err_nomem(err);
    if (s) {
        memset(s->given, 0, n_fields * sizeof(const struct kp_given *));
        memset(s->taken, 0, n_sizes * sizeof(*s->taken));
        memset(s->problem, 0, n_fields * sizeof(*s->problem));
        memset(s->sizes, 0, n_sizes * sizeof(*s->sizes));
        kp_buf_clear(&s->words);
    }
    return KOPT_OK;
}

void kp_scratch_give(struct kp_scratch *s)
{
    if (!s)
        return;
    struct kp_scratch_pool *p = s->pool;
    size_t bytes = bytes_of(s);
    bool keep = p != NULL;
    if (keep) {
        (void)pthread_mutex_lock(&p->lock);
        keep = p->n < KP_SCRATCH_KEPT && bytes <= KP_SCRATCH_KEPT_BYTES - p->bytes;
        if (keep) {
            s->next = p->first;
            p->first = s;
            p->n++;
            p->bytes += bytes;
        }
        (void)pthread_mutex_unlock(&p->lock);
    }
    if (!keep)
        scratch_free(s);
}
