/* SPDX-License-Identifier: MIT */
#include "model/encoder_impl.h"

#include "base/alloc.h"
#include "math/portable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)1 << 31)
#define CLIP      8.0
/* A feature of its own for a small number, and for a word, from this share of the problems. */
#define SHARE_MIN 0.005
enum { SMALL_MAX = 8, ALL_SHIFTS = 64 };

struct kp_encoder *kp_encoder_empty(void)
{
    struct kp_encoder *e = kp_calloc(1, sizeof(*e));
    if (e)
        e->arena = KP_ARENA_INIT(ARENA_MAX);
    return e;
}

void kp_encoder_free(struct kp_encoder *e)
{
    if (!e)
        return;
    kp_arena_deinit(&e->arena);
    kp_free(e);
}

size_t kp_encoder_n_fields(const struct kp_encoder *e)
{
    return e->n_fields;
}

size_t kp_encoder_n_tokens(const struct kp_encoder *e)
{
    return e->n_tokens;
}

size_t kp_encoder_n_vocab(const struct kp_encoder *e)
{
    return (size_t)e->n_vocab;
}

size_t kp_encoder_n_features(const struct kp_encoder *e)
{
    return e->n_features;
}

const struct kp_field *kp_encoder_field(const struct kp_encoder *e, size_t i)
{
    return &e->fields[i];
}

int32_t kp_encoder_unknown(const struct kp_encoder *e, size_t i)
{
    return e->tokens[i].first;
}

/* ---- encoding ---- */

/* A number as features see it. */
struct number {
    double x;
    int64_t whole; /* where is_whole */
    bool is_whole; /* and below 2^63; whole doubles beyond are multiples of 2^11 */
    int twos;      /* 2^twos divides it; -1: it is not whole, ALL_SHIFTS: 0, or beyond 2^63 */
};

static struct number look_at(double x)
{
    const double top = 0x1p63;
    struct number n = {.x = x, .twos = ALL_SHIFTS};
    if (x >= top || x <= -top)
        return n;
    n.whole = (int64_t)x;
    n.is_whole = (double)n.whole == x;
    if (!n.is_whole)
        n.twos = -1;
    else if (n.whole != 0)
        n.twos = __builtin_ctzll((unsigned long long)n.whole);
    return n;
}

static double part_of(const struct number *n, int shift)
{
    if (n->is_whole) /* the last bits of a negative number are those of its floored remainder */
        return (double)(n->whole & (((int64_t)1 << shift) - 1)) / (double)(1 << shift);
    if (n->twos > 0)
        return 0;
    double q = n->x / (double)(1 << shift);
    return q - floor(q);
}

static double raw_feature(const struct kp_feature *f, const struct number *n)
{
    switch (f->kind) {
    case KP_FEATURE_LOG:
        return kp_log2_portable(1 + fabs(n->x));
    case KP_FEATURE_SIGN:
        return (n->x > 0) - (n->x < 0);
    case KP_FEATURE_DIVIDES:
        return n->twos >= f->shift;
    case KP_FEATURE_PART:
        return part_of(n, f->shift);
    case KP_FEATURE_IS:
        return n->x == f->value;
    case KP_FEATURE_KINDS:
        break;
    }
    return 0;
}

static int32_t token_of(const struct kp_token *t, double x)
{
    uint32_t lo = 0;
    uint32_t hi = t->n_known;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->known[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->n_known && t->known[lo] == x ? t->first + 1 + (int32_t)lo : t->first;
}

void kp_encode(const struct kp_encoder *e, const double *problem, int32_t *tokens,
               float *features)
{
    struct number n = {0};
    uint32_t field = UINT32_MAX;
    for (size_t i = 0; i < e->n_tokens; i++)
        tokens[i] = token_of(&e->tokens[i], problem[e->tokens[i].field]);
    for (size_t i = 0; i < e->n_features; i++) {
        const struct kp_feature *f = &e->features[i];
        if (!isfinite(problem[f->field])) { /* as if it were the mean */
            features[i] = 0;
            continue;
        }
        if (f->field != field)
            n = look_at(problem[f->field]);
        field = f->field;
        double z = (raw_feature(f, &n) - f->mean) * f->scale;
        features[i] = (float)(z < -CLIP ? -CLIP : z > CLIP ? CLIP : z);
    }
}

void kp_encode_problem(const struct kp_encoder *e, const struct kp_dataset *d, size_t p,
                       int32_t *tokens, float *features)
{
    double problem[KP_FIELDS_MAX];
    memcpy(problem, d->problems + p * d->n_fields, d->n_fields * sizeof(*problem));
    for (size_t i = 0; i < d->n_fields; i++) {
        const struct kp_field *own = &e->fields[i];
        size_t w = 0;
        if (!own->is_word || !d->fields[i].is_word)
            continue;
        while (w < own->n_words &&
               strcmp(own->words[w], d->fields[i].words[(size_t)problem[i]]) != 0)
            w++;
        problem[i] = (double)w;
    }
    kp_encode(e, problem, tokens, features);
}

/* ---- learning from the training problems ---- */

/* The different numbers of a field, ascending, and how often each stands there. */
struct counts {
    double *x;
    double *times;
    size_t n;
    double total;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void count_field(const struct kp_dataset *d, const unsigned char *use, size_t field,
                        struct counts *c)
{
    size_t n = 0;
    for (size_t p = 0; p < d->n_problems; p++)
        if (use[p])
            c->x[n++] = d->problems[p * d->n_fields + field];
    qsort(c->x, n, sizeof(*c->x), by_size);
    c->n = 0;
    c->total = (double)n;
    for (size_t i = 0; i < n; i++) {
        if (c->n == 0 || c->x[i] != c->x[c->n - 1]) {
            c->x[c->n] = c->x[i];
            c->times[c->n++] = 0;
        }
        c->times[c->n - 1]++;
    }
}

/* Adds the feature, unless it is (nearly) the same in all training problems. */
static void add_feature(struct kp_encoder *e, const struct counts *c, struct kp_feature f)
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct number n = look_at(c->x[i]);
        sum += c->times[i] * raw_feature(&f, &n);
    }
    f.mean = sum / c->total;
    for (size_t i = 0; i < c->n; i++) {
        struct number n = look_at(c->x[i]);
        double off = raw_feature(&f, &n) - f.mean;
        squares += c->times[i] * off * off;
    }
    double deviation = sqrt(squares / c->total);
    /* Below this it is a matter of rounding: what networks see has 24 bits. */
    if (deviation <= 1e-7 * (1 + fabs(f.mean)) || e->n_features >= KP_FEATURES_MAX)
        return;
    f.scale = 1 / deviation;
    e->features[e->n_features++] = f;
}

static void add_small(struct kp_encoder *e, const struct counts *c, uint32_t field, double top)
{
    for (size_t i = 0; i < c->n; i++) {
        double x = c->x[i];
        if (x >= 0 && x <= top && x == floor(x) && c->times[i] >= SHARE_MIN * c->total)
            add_feature(e, c,
                        (struct kp_feature){.kind = KP_FEATURE_IS, .field = field, .value = x});
    }
}

static void add_features(struct kp_encoder *e, const struct counts *c, uint32_t field)
{
    static const int parts[] = {4, 6, 8};
    bool whole = true;
    if (e->fields[field].is_word) {
        add_small(e, c, field, (double)e->fields[field].n_words);
        return;
    }
    for (size_t i = 0; i < c->n; i++)
        whole = whole && c->x[i] == floor(c->x[i]);
    add_feature(e, c, (struct kp_feature){.kind = KP_FEATURE_LOG, .field = field});
    if (c->x[0] < 0)
        add_feature(e, c, (struct kp_feature){.kind = KP_FEATURE_SIGN, .field = field});
    for (int k = 1; whole && k <= KP_FEATURE_SHIFT_MAX; k++)
        add_feature(
            e, c, (struct kp_feature){.kind = KP_FEATURE_DIVIDES, .field = field, .shift = k});
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
        add_feature(
            e, c,
            (struct kp_feature){.kind = KP_FEATURE_PART, .field = field, .shift = parts[k]});
    add_small(e, c, field, SMALL_MAX);
}

/* A field with more different numbers than have room gets no tokens but its unknown: they would
 * hardly come again. */
static bool add_token(struct kp_encoder *e, const struct counts *c, uint32_t field)
{
    uint32_t n = c->n <= KP_KNOWN_MAX ? (uint32_t)c->n : 0;
    double *known = kp_arena_alloc(&e->arena, n, sizeof(*known));
    if (!known)
        return false;
    if (n)
        memcpy(known, c->x, n * sizeof(*known));
    e->tokens[e->n_tokens++] = (struct kp_token){field, e->n_vocab, n, known};
    e->n_vocab += 1 + (int32_t)n;
    return true;
}

static bool copy_fields(struct kp_encoder *e, const struct kp_dataset *d)
{
    struct kp_field *fields = kp_arena_alloc(&e->arena, d->n_fields, sizeof(*fields));
    e->only = kp_arena_alloc(&e->arena, d->n_fields, sizeof(*e->only));
    for (size_t i = 0; fields && i < d->n_fields; i++) {
        const struct kp_field *f = &d->fields[i];
        const char **words = kp_arena_alloc(&e->arena, f->n_words, sizeof(*words));
        for (size_t w = 0; words && w < f->n_words; w++)
            words[w] = kp_arena_strndup(&e->arena, f->words[w], strlen(f->words[w]));
        fields[i] = (struct kp_field){
            .name = kp_arena_strndup(&e->arena, f->name, strlen(f->name)),
            .is_word = f->is_word,
            .words = words,
            .n_words = f->n_words,
        };
    }
    e->fields = fields;
    e->n_fields = d->n_fields;
    return !e->arena.failed;
}

/* The features found, without the room that was left for more. */
static bool keep_features(struct kp_encoder *e, struct kp_feature *room)
{
    e->features = kp_arena_alloc(&e->arena, e->n_features, sizeof(*e->features));
    if (e->features && e->n_features)
        memcpy(e->features, room, e->n_features * sizeof(*room));
    return e->features != NULL;
}

kopt_status kp_encoder_new(const struct kp_dataset *d, const unsigned char *use,
                           struct kp_encoder **out, kopt_error *err)
{
    size_t n = 0;
    *out = NULL;
    for (size_t p = 0; p < d->n_problems; p++)
        n += use[p] != 0;
    if (n == 0)
        return kp_err(err, KOPT_EINPUT, "there is no problem to learn from");
    struct kp_encoder *e = kp_encoder_empty();
    struct kp_feature *room = kp_calloc(KP_FEATURES_MAX, sizeof(*room));
    struct counts c = {.x = kp_calloc(n, sizeof(double)),
                       .times = kp_calloc(n, sizeof(double))};
    bool ok = e && room && c.x && c.times && copy_fields(e, d);
    if (ok) {
        e->features = room;
        e->tokens = kp_arena_alloc(&e->arena, d->n_fields, sizeof(*e->tokens));
        ok = e->tokens != NULL;
    }
    for (uint32_t i = 0; ok && i < d->n_fields; i++) {
        count_field(d, use, i, &c);
        e->only[i] = c.n == 1 ? c.x[0] : (double)NAN;
        if (c.n < 2)
            continue;
        ok = add_token(e, &c, i);
        if (ok)
            add_features(e, &c, i);
    }
    ok = ok && keep_features(e, room);
    if (ok) {
        *out = e;
        e = NULL;
    }
    kp_free(c.x);
    kp_free(c.times);
    kp_free(room);
    kp_encoder_free(e);
    return ok ? KOPT_OK : kp_err_nomem(err);
}
