/* SPDX-License-Identifier: MIT */
/* The best configurations in memory, for the dispatch path of a library.
 *
 * Confidence is a rule of thumb that orders answers; it is no probability:
 *
 *   c = q                                          the problem itself, on this device
 *   c = q * h * (1 + a) / 2 / (1 + d)              another problem or another device
 *
 *   q  1 when the configuration won an interleaved race, 0.9 when it only had the smallest
 * median h  1 on this device, 1/2 on another device of the same architecture, 1/4 on any other
 *   d  Euclidean distance of the problems in log2 of their sizes: 1 = one size is twice as
 * large a  agreement: of up to 4 next nearest problems of the same class, the share (weighted
 * by 1/(1+d)) that has the same best configuration; 0 when there are no others */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "store/sizes.h"
#include "store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 5, ENTRIES_MAX = 1 << 20, SUBJECTS_MAX = 1 << 22 };
#define ARENA_BYTES_MAX ((size_t)512 << 20)

enum place { HOME, SAME_ARCH, ELSEWHERE, N_PLACES };

struct entry {
    const char *kernel;
    const char *device;
    const char *arch;
    const char *config;
    struct kp_sizes sizes; /* as in the store's JSON */
    uint64_t key;          /* of kernel, names and values, in any order */
    uint64_t kernel_hash;
    double median_ns;
    int64_t last_us;
    bool raced;
    enum place place;
};

struct slot {
    uint64_t key;
    uint32_t entry; /* index + 1; 0 = free */
    uint32_t n;     /* entries from there on */
};

struct kp_select {
    struct kp_arena arena;
    struct entry *entries; /* by kernel, then the newest first */
    size_t n;
    size_t cap;
    struct slot *exact;   /* home entries by key */
    size_t n_exact;       /* a power of two, or 0 */
    struct slot *kernels; /* the first entry of each kernel by kernel_hash */
    size_t n_kernels;
};

/* --- keys ----------------------------------------------------------------------------------
 */

static uint64_t hash_text(const char *s)
{
    return kp_hash64(s, strlen(s), 0);
}

/* A sum, so that the order of the sizes does not matter; each term is mixed well enough (the
 * finalizer of splitmix64) that exchanged values do not cancel. */
static uint64_t size_term(const char *name, int64_t value)
{
    uint64_t x = hash_text(name) + (uint64_t)value * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

static uint64_t problem_key(uint64_t kernel_hash, const char *const *names,
                            const int64_t *values, size_t n)
{
    uint64_t key = kernel_hash;
    for (size_t i = 0; i < n; i++)
        key += size_term(names[i], values[i]);
    return key;
}

/* --- loading -------------------------------------------------------------------------------
 */

struct loader {
    struct kp_select *sel;
    const char *device;
    const char *arch; /* of `device`; NULL = not known */
    int64_t *ids;     /* subject of each entry */
    size_t ids_cap;
    struct entry *at; /* the entry whose best is read */
    kopt_status st;
    kopt_error *err;
};

static char *keep(struct loader *l, const char *s)
{
    return kp_arena_strndup(&l->sel->arena, s, strlen(s));
}

/* Subjects come newest first. */
static bool note_subject(void *user, const struct kp_subject *s)
{
    struct loader *l = user;
    struct kp_select *sel = l->sel;
    void *entries = sel->entries;
    void *ids = l->ids;
    if (l->device[0] && !l->arch && s->arch[0] && strcmp(s->device, l->device) == 0)
        l->arch = keep(l, s->arch);
    if (s->n_ok == 0)
        return true;
    bool room = kp_grow(&entries, &sel->cap, sel->n, sizeof(*sel->entries), ENTRIES_MAX) &&
                kp_grow(&ids, &l->ids_cap, sel->n, sizeof(*l->ids), ENTRIES_MAX);
    sel->entries = entries;
    l->ids = ids;
    if (!room) {
        l->st = kp_err_nomem(l->err);
        return false;
    }
    struct entry *e = &sel->entries[sel->n];
    *e = (struct entry){.kernel = keep(l, s->kernel),
                        .device = keep(l, s->device),
                        .arch = keep(l, s->arch),
                        .last_us = s->last_us};
    if (kp_sizes_read(&sel->arena, s->problem, &e->sizes)) {
        const struct kp_sizes *z = &e->sizes;
        e->kernel_hash = hash_text(e->kernel);
        e->key = problem_key(e->kernel_hash, z->names, z->values, z->n);
        l->ids[sel->n++] = s->id;
    }
    if (sel->arena.failed)
        l->st = kp_err_nomem(l->err);
    return l->st == KOPT_OK;
}

static bool note_best(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct loader *l = user;
    (void)subject;
    (void)run;
    l->at->config = keep(l, r->config);
    l->at->median_ns = r->median_ns;
    l->at->raced = r->race != 0;
    return false;
}

static enum place place_of(const struct loader *l, const struct entry *e)
{
    if (!l->device[0] || strcmp(e->device, l->device) == 0)
        return HOME;
    return l->arch && strcmp(e->arch, l->arch) == 0 ? SAME_ARCH : ELSEWHERE;
}

/* Reads each entry's best; entries without one are dropped. */
static kopt_status read_bests(struct loader *l, struct kp_store *st, kopt_error *err)
{
    struct kp_select *sel = l->sel;
    size_t kept = 0;
    for (size_t i = 0; i < sel->n; i++) {
        l->at = &sel->entries[i];
        l->at->place = place_of(l, l->at);
        kopt_status code = kp_store_best(st, l->ids[i], note_best, l, err);
        if (code != KOPT_OK && code != KOPT_ENOTFOUND)
            return code;
        if (sel->arena.failed)
            return kp_err_nomem(err);
        if (l->at->config)
            sel->entries[kept++] = *l->at;
    }
    sel->n = kept;
    return KOPT_OK;
}

/* --- tables --------------------------------------------------------------------------------
 */

static int by_kernel(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    int order = strcmp(x->kernel, y->kernel);
    if (order == 0)
        order = (x->last_us < y->last_us) - (x->last_us > y->last_us);
    if (order == 0) /* so that the result does not depend on qsort() */
        order = strcmp(x->config, y->config);
    return order;
}

static bool has_problem(const struct entry *e, const char *const *names, const int64_t *values,
                        size_t n)
{
    const struct kp_sizes *z = &e->sizes;
    if (z->n != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < n && strcmp(z->names[i], names[k]) != 0)
            k++;
        if (k == n || values[k] != z->values[i])
            return false;
    }
    return true;
}

static bool same_problem(const struct entry *x, const struct entry *y)
{
    return x->key == y->key && strcmp(x->kernel, y->kernel) == 0 &&
           has_problem(x, y->sizes.names, y->sizes.values, y->sizes.n);
}

static struct slot *make_table(struct kp_select *s, size_t n, size_t *cap)
{
    *cap = 16;
    while (*cap < 2 * n)
        *cap *= 2;
    return kp_arena_alloc(&s->arena, *cap, sizeof(struct slot));
}

static struct slot *next_slot(struct slot *table, size_t cap, struct slot *at)
{
    return at + 1 < table + cap ? at + 1 : table;
}

/* Of one kernel, problem and device only the newest stays; they are in that order. */
static bool drop_older(struct kp_select *s)
{
    size_t cap;
    size_t kept = 0;
    struct slot *seen = make_table(s, s->n, &cap);
    for (size_t i = 0; seen && i < s->n; i++) {
        const struct entry *e = &s->entries[i];
        uint64_t key = e->key + hash_text(e->device);
        struct slot *at = &seen[key & (cap - 1)];
        bool old = false;
        for (; at->entry && !old; at = next_slot(seen, cap, at)) {
            const struct entry *x = &s->entries[at->entry - 1];
            old = same_problem(x, e) && strcmp(x->device, e->device) == 0;
        }
        if (old)
            continue;
        s->entries[kept++] = *e;
        *at = (struct slot){.key = key, .entry = (uint32_t)kept};
    }
    s->n = kept;
    return seen != NULL;
}

/* Entries of a kernel nearly always have the same names: they share one list, which finding
 * knows by its address. (The store's JSON has them sorted, so the same names come in the same
 * order.) */
static void share_names(struct kp_select *s)
{
    for (size_t i = 1; i < s->n; i++) {
        const struct kp_sizes *last = &s->entries[i - 1].sizes;
        struct kp_sizes *z = &s->entries[i].sizes;
        bool same = z->n == last->n;
        for (size_t k = 0; same && k < z->n; k++)
            same = strcmp(z->names[k], last->names[k]) == 0;
        if (same)
            z->names = last->names;
    }
}

static void put_exact(struct kp_select *s, size_t e)
{
    struct slot *at = &s->exact[s->entries[e].key & (s->n_exact - 1)];
    for (; at->entry; at = next_slot(s->exact, s->n_exact, at)) {
        if (same_problem(&s->entries[at->entry - 1], &s->entries[e]))
            return; /* the newer one of another device, when any device is home */
    }
    *at = (struct slot){.key = s->entries[e].key, .entry = (uint32_t)e + 1};
}

/* The kernel whose n entries begin at `e`. */
static void put_kernel(struct kp_select *s, size_t e, size_t n)
{
    struct slot *at = &s->kernels[s->entries[e].kernel_hash & (s->n_kernels - 1)];
    while (at->entry)
        at = next_slot(s->kernels, s->n_kernels, at);
    *at = (struct slot){s->entries[e].kernel_hash, (uint32_t)e + 1, (uint32_t)n};
}

static bool make_tables(struct kp_select *s)
{
    if (s->n)
        qsort(s->entries, s->n, sizeof(*s->entries), by_kernel);
    if (!drop_older(s))
        return false;
    share_names(s);
    s->exact = make_table(s, s->n, &s->n_exact);
    s->kernels = make_table(s, s->n, &s->n_kernels);
    if (s->arena.failed)
        return false;
    size_t first = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->entries[i].place == HOME)
            put_exact(s, i);
        if (i + 1 < s->n && strcmp(s->entries[i].kernel, s->entries[i + 1].kernel) == 0)
            continue;
        put_kernel(s, first, i + 1 - first);
        first = i + 1;
    }
    return true;
}

kopt_status kp_select_load(struct kp_store *st, const char *device, struct kp_select **out,
                           kopt_error *err)
{
    *out = NULL;
    struct kp_select *s = kp_calloc(1, sizeof(*s));
    if (!s)
        return kp_err_nomem(err);
    s->arena = KP_ARENA_INIT(ARENA_BYTES_MAX);
    struct loader l = {.sel = s, .device = device ? device : "", .err = err};
    kopt_status code = kp_store_subjects(st, NULL, note_subject, &l, err);
    if (code == KOPT_OK)
        code = l.st;
    if (code == KOPT_OK)
        code = read_bests(&l, st, err);
    if (code == KOPT_OK && !make_tables(s))
        code = kp_err_nomem(err);
    kp_free(l.ids);
    if (code == KOPT_OK)
        *out = s;
    else
        kp_select_free(s);
    return code;
}

void kp_select_free(struct kp_select *s)
{
    if (!s)
        return;
    kp_free(s->entries);
    kp_arena_deinit(&s->arena);
    kp_free(s);
}

/* --- finding -------------------------------------------------------------------------------
 */

static const struct entry *find_exact(const struct kp_select *s, const char *kernel,
                                      const char *const *names, const int64_t *values, size_t n)
{
    uint64_t key = problem_key(hash_text(kernel), names, values, n);
    size_t i = (size_t)key & (s->n_exact - 1);
    for (; s->exact[i].entry; i = (i + 1) & (s->n_exact - 1)) {
        const struct entry *e = &s->entries[s->exact[i].entry - 1];
        if (s->exact[i].key == key && strcmp(e->kernel, kernel) == 0 &&
            has_problem(e, names, values, n))
            return e;
    }
    return NULL;
}

/* The kernel's entries; NULL and 0 when there are none. */
static const struct entry *find_kernel(const struct kp_select *s, const char *kernel, size_t *n)
{
    uint64_t hash = hash_text(kernel);
    size_t i = (size_t)hash & (s->n_kernels - 1);
    for (; s->kernels[i].entry; i = (i + 1) & (s->n_kernels - 1)) {
        const struct entry *e = &s->entries[s->kernels[i].entry - 1];
        *n = s->kernels[i].n;
        if (s->kernels[i].key == hash && strcmp(e->kernel, kernel) == 0)
            return e;
    }
    *n = 0;
    return NULL;
}

/* The query as the entries at hand name its sizes. */
struct query {
    struct kp_sizes sizes;
    const char *const *order; /* the entries' names for which at[] holds; NULL = none yet */
    bool fits;                /* they are the query's */
    size_t at[KP_SIZES_MAX];
    double logs[KP_SIZES_MAX];
};

/* NaN when the names differ or a size has no logarithm. */
static double distance_to(const struct entry *e, struct query *q)
{
    if (q->order != e->sizes.names) {
        q->order = e->sizes.names;
        q->fits = kp_sizes_match(&e->sizes, &q->sizes, q->at);
    }
    return q->fits ? kp_sizes_distance(&e->sizes, &q->sizes, q->at) : (double)NAN;
}

struct near {
    const struct entry *e[NEAR];
    double d[NEAR];
    size_t n;
};

static void near_add(struct near *near, const struct entry *e, double d)
{
    size_t at = near->n;
    while (at > 0 && near->d[at - 1] > d)
        at--; /* equal distances stay in order: the newest first */
    if (at == NEAR)
        return;
    if (near->n < NEAR)
        near->n++;
    for (size_t i = near->n - 1; i > at; i--) {
        near->e[i] = near->e[i - 1];
        near->d[i] = near->d[i - 1];
    }
    near->e[at] = e;
    near->d[at] = d;
}

static double agreement(const struct near *near)
{
    double all = 0;
    double same = 0;
    for (size_t i = 1; i < near->n; i++) {
        double w = 1 / (1 + near->d[i]);
        all += w;
        if (strcmp(near->e[i]->config, near->e[0]->config) == 0)
            same += w;
    }
    return all > 0 ? same / all : 0;
}

static void answer(const struct entry *e, enum kp_select_how how, double distance,
                   double confidence, struct kp_selected *out)
{
    *out = (struct kp_selected){.config = e->config,
                                .how = how,
                                .confidence = (e->raced ? 1 : 0.9) * confidence,
                                .distance = distance,
                                .median_ns = e->median_ns};
}

static void answer_none(struct kp_selected *out)
{
    *out = (struct kp_selected){
        .config = "", .how = KP_SELECT_NONE, .distance = (double)NAN, .median_ns = (double)NAN};
}

bool kp_select_exact(const struct kp_select *s, const char *kernel, const char *const *names,
                     const int64_t *values, size_t n, struct kp_selected *out)
{
    const struct entry *e = find_exact(s, kernel, names, values, n);
    answer_none(out);
    if (e)
        answer(e, KP_SELECT_EXACT, 0, 1, out);
    return e != NULL;
}

void kp_select_near(const struct kp_select *s, const char *kernel, const char *const *names,
                    const int64_t *values, size_t n, struct kp_selected *out)
{
    static const double trust[N_PLACES] = {1, 0.5, 0.25};
    struct near near[N_PLACES] = {{.n = 0}};
    size_t n_entries;
    answer_none(out);
    if (n > KP_SIZES_MAX)
        return; /* no entry has as many */
    struct query q;
    q.order = NULL;
    q.fits = false;
    q.sizes = (struct kp_sizes){n, names, values, q.logs};
    for (size_t i = 0; i < n; i++)
        q.logs[i] = kp_size_log(values[i]);
    const struct entry *e = find_kernel(s, kernel, &n_entries);
    for (size_t i = 0; i < n_entries; i++) {
        double d = distance_to(&e[i], &q);
        if (!isnan(d))
            near_add(&near[e[i].place], &e[i], d);
    }
    for (int p = 0; p < N_PLACES; p++) {
        if (near[p].n == 0)
            continue;
        double d = near[p].d[0];
        answer(near[p].e[0], p == HOME ? KP_SELECT_NEAREST : KP_SELECT_OTHER, d,
               trust[p] * (1 + agreement(&near[p])) / 2 / (1 + d), out);
        return;
    }
}

void kp_select_find(const struct kp_select *s, const char *kernel, const char *const *names,
                    const int64_t *values, size_t n, struct kp_selected *out)
{
    if (!kp_select_exact(s, kernel, names, values, n, out))
        kp_select_near(s, kernel, names, values, n, out);
}
