/* SPDX-License-Identifier: MIT */
#include "api/answers.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { WAYS = 4, SETS = KP_ANSWERS_PROBLEMS / WAYS };

/* A row of the table is of atomic words: its version (0: free; odd: it is being written), the
 * configuration's text, its probability, the problem. Whoever finds an even version before and
 * the same one after has read one row, whole. The reader's loads acquire and the writer's
 * stores release, so that neither can pass the version's (Boehm, "Can seqlocks get along with
 * programming language memory models?", 2012). */
enum { VERSION, TEXT, PROBABILITY, PROBLEM };

struct text {
    uint32_t *config; /* in the block, with the text behind it */
    const char *text;
};

struct word {
    _Atomic uint64_t x;
};

struct place {
    _Atomic(const struct text *) text;
};

struct kp_answers {
    size_t n;
    size_t n_targets;
    struct word *rows; /* [SETS][WAYS][PROBLEM + n] */
    atomic_uint turn;  /* whose place is taken next */
    /* Texts: an open table, of whose entries none ever goes. */
    struct place *texts;    /* [2 * KP_ANSWERS_TEXTS] */
    pthread_mutex_t adding; /* of what follows */
    struct text *entries;   /* [KP_ANSWERS_TEXTS] */
    size_t n_entries;
    unsigned char *block;
    size_t used;
};

struct kp_answers *kp_answers_new(size_t n, size_t n_targets)
{
    struct kp_answers *a = kp_calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    /* It fails for want of memory alone, which glibc's does not take. */
    (void)pthread_mutex_init(&a->adding, NULL);
    a->n = n;
    a->n_targets = n_targets;
    a->rows = kp_calloc((size_t)SETS * WAYS * (PROBLEM + n), sizeof(*a->rows));
    a->texts = kp_calloc((size_t)2 * KP_ANSWERS_TEXTS, sizeof(*a->texts));
    a->entries = kp_calloc(KP_ANSWERS_TEXTS, sizeof(*a->entries));
    a->block = kp_calloc(KP_ANSWERS_TEXT_BYTES, 1);
    if (a->rows && a->texts && a->entries && a->block)
        return a;
    kp_answers_free(a);
    return NULL;
}

void kp_answers_free(struct kp_answers *a)
{
    if (!a)
        return;
    (void)pthread_mutex_destroy(&a->adding);
    kp_free(a->rows);
    kp_free(a->texts);
    kp_free(a->entries);
    kp_free(a->block);
    kp_free(a);
}

/* ---- problems ---- */

static struct word *row_at(const struct kp_answers *a, uint64_t hash, size_t way)
{
    size_t set = (size_t)(hash % SETS);
    return a->rows + (set * WAYS + way) * (PROBLEM + a->n);
}

static uint64_t load(struct word *word)
{
    return atomic_load_explicit(&word->x, memory_order_acquire);
}

static bool read_row(const struct kp_answers *a, struct word *row, const uint64_t *problem,
                     struct kp_answer *out)
{
    uint64_t version = load(&row[VERSION]);
    if (version == 0 || version % 2 != 0)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (load(&row[PROBLEM + i]) != problem[i])
            return false;
    uint64_t text = load(&row[TEXT]);
    uint64_t probability = load(&row[PROBABILITY]);
    if (load(&row[VERSION]) != version)
        return false;
    out->config = (const char *)(uintptr_t)text;
    memcpy(&out->probability, &probability, sizeof(probability));
    return true;
}

bool kp_answers_find(const struct kp_answers *a, const uint64_t *problem, struct kp_answer *out)
{
    uint64_t hash = kp_hash64(problem, a->n * sizeof(*problem), 0);
    for (size_t way = 0; way < WAYS; way++)
        if (read_row(a, row_at(a, hash, way), problem, out))
            return true;
    return false;
}

static void store(struct word *word, uint64_t value)
{
    atomic_store_explicit(&word->x, value, memory_order_release);
}

void kp_answers_put(struct kp_answers *a, const uint64_t *problem, struct kp_answer answer)
{
    uint64_t hash = kp_hash64(problem, a->n * sizeof(*problem), 0);
    size_t way = 0;
    while (way < WAYS && load(&row_at(a, hash, way)[VERSION]) != 0)
        way++;
    if (way == WAYS)
        way = atomic_fetch_add_explicit(&a->turn, 1, memory_order_relaxed) % WAYS;
    struct word *row = row_at(a, hash, way);
    uint64_t version = load(&row[VERSION]);
    uint64_t probability;
    if (version % 2 != 0 ||
        !atomic_compare_exchange_strong(&row[VERSION].x, &version, version + 1))
        return; /* another thread writes here */
    memcpy(&probability, &answer.probability, sizeof(probability));
    store(&row[TEXT], (uint64_t)(uintptr_t)answer.config);
    store(&row[PROBABILITY], probability);
    for (size_t i = 0; i < a->n; i++)
        store(&row[PROBLEM + i], problem[i]);
    store(&row[VERSION], version + 2);
}

/* ---- texts ---- */

/* Where the configuration stands, or the free place where it would. */
static struct place *place_of(const struct kp_answers *a, const uint32_t *config,
                              const struct text **found)
{
    size_t cap = (size_t)2 * KP_ANSWERS_TEXTS;
    size_t at = (size_t)kp_hash64(config, a->n_targets * sizeof(*config), 0) % cap;
    for (;; at = at + 1 < cap ? at + 1 : 0) {
        *found = atomic_load_explicit(&a->texts[at].text, memory_order_acquire);
        if (!*found || memcmp((*found)->config, config, a->n_targets * sizeof(*config)) == 0)
            return &a->texts[at];
    }
}

const char *kp_answers_text(const struct kp_answers *a, const uint32_t *config)
{
    const struct text *found;
    (void)place_of(a, config, &found);
    return found ? found->text : NULL;
}

static void *take(struct kp_answers *a, size_t bytes)
{
    size_t rounded = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    if (rounded > KP_ANSWERS_TEXT_BYTES - a->used)
        return NULL;
    void *p = a->block + a->used;
    a->used += rounded;
    return p;
}

const char *kp_answers_add_text(struct kp_answers *a, const uint32_t *config, size_t bytes,
                                void (*write)(void *user, const uint32_t *config, char *to),
                                void *user)
{
    const struct text *found;
    size_t config_bytes = a->n_targets * sizeof(*config);
    const char *text = kp_answers_text(a, config);
    if (text)
        return text;
    (void)pthread_mutex_lock(&a->adding);
    struct place *place = place_of(a, config, &found);
    if (!found && a->n_entries < KP_ANSWERS_TEXTS) {
        uint32_t *copy = take(a, config_bytes + bytes);
        if (copy) {
            struct text *added = &a->entries[a->n_entries++];
            *added = (struct text){copy, (const char *)copy + config_bytes};
            memcpy(copy, config, config_bytes);
            write(user, config, (char *)copy + config_bytes);
            atomic_store_explicit(&place->text, added, memory_order_release);
            found = added;
        }
    }
    (void)pthread_mutex_unlock(&a->adding);
    return found ? found->text : NULL;
}
