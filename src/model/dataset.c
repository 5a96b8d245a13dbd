/* SPDX-License-Identifier: MIT */
#include "model/dataset.h"

#include "base/alloc.h"
#include "base/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 1 << 24,
    WORDS_MAX = 1 << 16, /* of a field */
    TEXT_MAX = 1 << 16,  /* bytes of a name, a word, a text value, a key */
    SHOWN_MAX = 200,     /* bytes of a value in a message */
    NUMBER_KEY = 9       /* bytes: a tag and 64 bits */
};
#define ARENA_MAX ((size_t)1 << 34)

enum kind { KIND_NONE, KIND_NUMBER, KIND_BOOL, KIND_TEXT };

struct column { /* a field */
    enum kind kind;
    struct kp_map index; /* words */
    const char **words;
    size_t n;
    size_t cap;
};

struct list { /* a target's values */
    enum kind kind;
    bool own; /* it came with the target and is kept as it is */
    bool float_seen;
    struct kp_map index;
    struct kp_value *values;
    size_t n;
    size_t cap;
};

struct kp_dataset_builder {
    struct kp_dataset *d; /* its arena has all texts */
    const char *field_names[KP_FIELDS_MAX];
    const char *target_names[KP_TARGETS_MAX];
    struct kp_target own[KP_TARGETS_MAX]; /* types of the lists that came with targets */
    struct column columns[KP_FIELDS_MAX];
    struct list lists[KP_TARGETS_MAX];
    struct kp_map problem_index;
    double *problems;
    size_t cap_problems;
    const char **keys;
    size_t cap_keys;
    uint32_t *of;
    size_t cap_of;
    uint32_t *configs;
    size_t cap_configs;
    float *times;
    size_t cap_times;
};

void kp_dataset_free(struct kp_dataset *d)
{
    if (!d)
        return;
    kp_arena_deinit(&d->arena);
    kp_free(d);
}

void kp_dataset_abandon(struct kp_dataset_builder *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < KP_FIELDS_MAX; i++) {
        kp_map_deinit(&b->columns[i].index);
        kp_free(b->columns[i].words);
    }
    for (size_t t = 0; t < KP_TARGETS_MAX; t++) {
        kp_map_deinit(&b->lists[t].index);
        kp_free(b->lists[t].values);
    }
    kp_map_deinit(&b->problem_index);
    kp_free(b->problems);
    kp_free(b->keys);
    kp_free(b->of);
    kp_free(b->configs);
    kp_free(b->times);
    kp_dataset_free(b->d);
    kp_free(b);
}

/* ---- values ---- */

static enum kind kind_of(struct kp_value v)
{
    switch (v.type) {
    case KP_INT:
    case KP_FLOAT:
        return KIND_NUMBER;
    case KP_BOOL:
        return KIND_BOOL;
    case KP_STRING:
        break;
    }
    return KIND_TEXT;
}

static const char *kind_name(enum kind k)
{
    return k == KIND_TEXT ? "text" : k == KIND_BOOL ? "boolean" : "number";
}

static bool usable(struct kp_value v)
{
    if (v.type == KP_FLOAT)
        return isfinite(v.as.f);
    return v.type != KP_STRING ||
           (v.as.s.len <= TEXT_MAX && !memchr(v.as.s.ptr ? v.as.s.ptr : "", 0, v.as.s.len));
}

/* "what 'name': message (the value)" */
static kopt_status refuse(const char *what, const char *name, const char *why,
                          struct kp_value v, kopt_error *err)
{
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX + 64);
    kp_value_to_text(v, &text);
    kopt_status st = kp_err(err, KOPT_EINPUT, "%s '%s': %s (%.*s)", what, name, why, SHOWN_MAX,
                            kp_buf_text(&text));
    kp_buf_deinit(&text);
    return st;
}

struct bytes {
    const void *ptr;
    size_t len;
};

/* Numbers that are equal have the same key, whatever their types. */
static struct bytes key_of(struct kp_value v, unsigned char room[NUMBER_KEY])
{
    const double top = 0x1p63;
    int64_t whole = 0;
    bool is_whole = true;
    if (v.type == KP_STRING)
        return (struct bytes){v.as.s.ptr ? v.as.s.ptr : "", v.as.s.len};
    if (v.type == KP_INT)
        whole = v.as.i;
    else if (v.type == KP_BOOL)
        whole = v.as.b;
    else if (v.as.f >= -top && v.as.f < top && v.as.f == floor(v.as.f))
        whole = (int64_t)v.as.f;
    else
        is_whole = false;
    room[0] = is_whole;
    memcpy(room + 1, is_whole ? (const void *)&whole : &v.as.f, sizeof(whole));
    return (struct bytes){room, NUMBER_KEY};
}

static bool find_value(const struct list *l, struct kp_value v, uint32_t *out)
{
    unsigned char room[NUMBER_KEY];
    struct bytes k = key_of(v, room);
    const uint64_t *at = kp_map_get(&l->index, k.ptr, k.len);
    if (at)
        *out = (uint32_t)*at;
    return at != NULL;
}

/* The index of a value, added when it is new. Texts are copied. */
static bool put_value(struct kp_dataset_builder *b, struct list *l, struct kp_value v,
                      uint32_t *out, bool *added)
{
    unsigned char room[NUMBER_KEY];
    struct bytes k = key_of(v, room);
    if (!kp_grow((void **)&l->values, &l->cap, l->n, sizeof(*l->values),
                 (size_t)KP_TARGET_VALUES_MAX + 1))
        return false;
    uint64_t *at = kp_map_put(&l->index, k.ptr, k.len, added);
    if (!at)
        return false;
    if (*added) {
        *at = l->n;
        if (v.type == KP_STRING) {
            v.as.s.ptr = kp_arena_strndup(&b->d->arena, k.ptr, k.len);
            if (!v.as.s.ptr)
                return false;
        }
        l->values[l->n++] = v;
    }
    l->float_seen |= v.type == KP_FLOAT;
    *out = (uint32_t)*at;
    return true;
}

/* ---- begin ---- */

static kopt_status copy_names(struct kp_dataset_builder *b, const char *what,
                              const char *const *names, size_t n, const char **copies,
                              kopt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = names[i] ? strlen(names[i]) : 0;
        if (len == 0 || len > TEXT_MAX)
            return kp_err(err, KOPT_EINPUT, "%s %zu has no name, or a very long one", what,
                          i + 1);
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return kp_err(err, KOPT_EINPUT, "%s '%.*s' is there twice", what, SHOWN_MAX,
                              names[i]);
        copies[i] = kp_arena_strndup(&b->d->arena, names[i], len);
        if (!copies[i])
            return kp_err_nomem(err);
    }
    return KOPT_OK;
}

static kopt_status take_list(struct kp_dataset_builder *b, size_t t,
                             const struct kp_target *given, kopt_error *err)
{
    struct list *l = &b->lists[t];
    const char *name = b->target_names[t];
    if (given->n_values == 0)
        return KOPT_OK;
    if (given->n_values > KP_TARGET_VALUES_MAX)
        return kp_err(err, KOPT_EINPUT, "target '%s' has more than %d values", name,
                      KP_TARGET_VALUES_MAX);
    l->own = true;
    l->kind = kind_of(given->values[0]);
    b->own[t].type = given->type;
    for (uint32_t v = 0; v < given->n_values; v++) {
        uint32_t index = 0;
        bool added = false;
        if (!usable(given->values[v]) || kind_of(given->values[v]) != l->kind)
            return refuse("target", name, "its list has a value that cannot stand there",
                          given->values[v], err);
        if (!put_value(b, l, given->values[v], &index, &added))
            return kp_err_nomem(err);
        if (!added)
            return refuse("target", name, "its list has a value twice", given->values[v], err);
    }
    return KOPT_OK;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
kopt_status kp_dataset_begin(const char *kernel, const char *const *fields, size_t n_fields,
                             const char *const *targets, size_t n_targets,
                             const struct kp_target *lists, struct kp_dataset_builder **out,
                             kopt_error *err)
{
    *out = NULL;
    if (n_fields < 1 || n_fields > KP_FIELDS_MAX)
        return kp_err(err, KOPT_EINPUT, "a problem has 1 to %d fields, not %zu", KP_FIELDS_MAX,
                      n_fields);
    if (n_targets < 1 || n_targets > KP_TARGETS_MAX)
        return kp_err(err, KOPT_EINPUT, "a configuration has 1 to %d parameters, not %zu",
                      KP_TARGETS_MAX, n_targets);
    struct kp_dataset_builder *b = kp_calloc(1, sizeof(*b));
    if (!b)
        return kp_err_nomem(err);
    kopt_status st = KOPT_ENOMEM;
    b->d = kp_calloc(1, sizeof(*b->d));
    if (b->d) {
        b->d->arena = KP_ARENA_INIT(ARENA_MAX);
        b->d->n_fields = n_fields;
        b->d->n_targets = n_targets;
        b->d->kernel =
            kp_arena_strndup(&b->d->arena, kernel ? kernel : "", kernel ? strlen(kernel) : 0);
    }
    if (!b->d || !b->d->kernel) {
        (void)kp_err_nomem(err);
        goto done;
    }
    st = copy_names(b, "field", fields, n_fields, b->field_names, err);
    if (st == KOPT_OK)
        st = copy_names(b, "target", targets, n_targets, b->target_names, err);
    for (size_t t = 0; st == KOPT_OK && lists && t < n_targets; t++)
        st = take_list(b, t, &lists[t], err);
    if (st == KOPT_OK) {
        *out = b;
        b = NULL;
    }
done:
    kp_dataset_abandon(b);
    return st;
}

/* ---- adding rows: first everything is looked at, so that a row that is refused leaves no
 * trace ---- */

static kopt_status check_problem(const struct kp_dataset_builder *b,
                                 const struct kp_value *problem, kopt_error *err)
{
    for (size_t i = 0; i < b->d->n_fields; i++) {
        const struct column *c = &b->columns[i];
        bool text = problem[i].type == KP_STRING;
        if (!usable(problem[i]))
            return refuse("field", b->field_names[i],
                          text ? "a word of that kind cannot stand there" : "not finite",
                          problem[i], err);
        if (c->kind != KIND_NONE && text != (c->kind == KIND_TEXT))
            return refuse("field", b->field_names[i],
                          text ? "a word where the rows before have numbers"
                               : "a number where the rows before have words",
                          problem[i], err);
        if (text && c->n >= WORDS_MAX &&
            !kp_map_get(&c->index, problem[i].as.s.ptr, problem[i].as.s.len))
            return refuse("field", b->field_names[i], "too many different words", problem[i],
                          err);
    }
    return KOPT_OK;
}

static kopt_status check_config(const struct kp_dataset_builder *b,
                                const struct kp_value *config, kopt_error *err)
{
    for (size_t t = 0; t < b->d->n_targets; t++) {
        const struct list *l = &b->lists[t];
        const char *name = b->target_names[t];
        uint32_t index = 0;
        bool text = config[t].type == KP_STRING;
        if (!usable(config[t]))
            return refuse("target", name, "a value of that kind cannot stand there", config[t],
                          err);
        if (l->own) {
            if (text != (l->kind == KIND_TEXT) || !find_value(l, config[t], &index))
                return refuse("target", name, "a value that is not in its list", config[t],
                              err);
            continue;
        }
        if (l->kind != KIND_NONE && l->kind != kind_of(config[t]))
            return kp_err(err, KOPT_EINPUT, "target '%s': a %s where the rows before have a %s",
                          name, kind_name(kind_of(config[t])), kind_name(l->kind));
        if (l->n >= KP_TARGET_VALUES_MAX && !find_value(l, config[t], &index))
            return kp_err(err, KOPT_EINPUT, "target '%s' has more than %d different values",
                          name, KP_TARGET_VALUES_MAX);
    }
    return KOPT_OK;
}

static bool put_word(struct kp_dataset_builder *b, struct column *c, struct kp_str word,
                     double *out)
{
    bool added = false;
    const char *text = word.ptr ? word.ptr : "";
    if (!kp_grow((void **)&c->words, &c->cap, c->n, sizeof(*c->words), (size_t)WORDS_MAX + 1))
        return false;
    uint64_t *at = kp_map_put(&c->index, text, word.len, &added);
    if (!at)
        return false;
    if (added) {
        *at = c->n;
        c->words[c->n] = kp_arena_strndup(&b->d->arena, text, word.len);
        if (!c->words[c->n])
            return false;
        c->n++;
    }
    *out = (double)*at;
    return true;
}

static double number_of(struct kp_value v)
{
    double x = 0;
    (void)kp_value_to_f64(v, &x);
    return x + 0.0; /* no minus zero */
}

void kp_problem_key(const struct kp_value *fields, size_t n, struct kp_buf *key)
{
    const double exact = 0x1p53;
    for (size_t i = 0; i < n; i++) {
        struct kp_value v = fields[i];
        if (v.type != KP_STRING) {
            double x = number_of(v);
            v = fabs(x) <= exact && x == floor(x) ? kp_int((int64_t)x) : kp_float(x);
        }
        if (i)
            kp_buf_addc(key, ',');
        kp_value_to_text(v, key);
    }
}

/* The fields' numbers. */
static bool take_problem(struct kp_dataset_builder *b, const struct kp_value *problem,
                         double *numbers)
{
    for (size_t i = 0; i < b->d->n_fields; i++) {
        struct column *c = &b->columns[i];
        c->kind = problem[i].type == KP_STRING ? KIND_TEXT : KIND_NUMBER;
        if (problem[i].type != KP_STRING)
            numbers[i] = number_of(problem[i]);
        else if (!put_word(b, c, problem[i].as.s, &numbers[i]))
            return false;
    }
    return true;
}

static bool put_problem(struct kp_dataset_builder *b, const double *numbers, const char *key,
                        uint32_t *out)
{
    struct kp_dataset *d = b->d;
    size_t bytes = d->n_fields * sizeof(*numbers);
    bool added = false;
    if (!kp_grow((void **)&b->problems, &b->cap_problems, d->n_problems, bytes, ROWS_MAX) ||
        !kp_grow((void **)&b->keys, &b->cap_keys, d->n_problems, sizeof(*b->keys), ROWS_MAX))
        return false;
    uint64_t *at = kp_map_put(&b->problem_index, numbers, bytes, &added);
    if (!at)
        return false;
    if (added) {
        *at = d->n_problems;
        memcpy(b->problems + d->n_problems * d->n_fields, numbers, bytes);
        b->keys[d->n_problems] = kp_arena_strndup(&d->arena, key, strlen(key));
        if (!b->keys[d->n_problems])
            return false;
        d->n_problems++;
    }
    *out = (uint32_t)*at;
    return true;
}

static bool put_row(struct kp_dataset_builder *b, uint32_t problem, const uint32_t *config,
                    float time_ns)
{
    struct kp_dataset *d = b->d;
    size_t n = d->n_rows;
    size_t bytes = d->n_targets * sizeof(*config);
    if (!kp_grow((void **)&b->of, &b->cap_of, n, sizeof(*b->of), ROWS_MAX) ||
        !kp_grow((void **)&b->times, &b->cap_times, n, sizeof(*b->times), ROWS_MAX) ||
        !kp_grow((void **)&b->configs, &b->cap_configs, n, bytes, ROWS_MAX))
        return false;
    b->of[n] = problem;
    b->times[n] = time_ns;
    memcpy(b->configs + n * d->n_targets, config, bytes);
    d->n_rows++;
    return true;
}

kopt_status kp_dataset_add(struct kp_dataset_builder *b, const struct kp_value *problem,
                           const struct kp_value *config, const char *key, float time_ns,
                           kopt_error *err)
{
    double numbers[KP_FIELDS_MAX];
    uint32_t indices[KP_TARGETS_MAX];
    uint32_t number = 0;
    struct kp_buf text = KP_BUF_INIT((size_t)KP_FIELDS_MAX * (TEXT_MAX + 1));
    if (b->d->n_rows >= ROWS_MAX)
        return kp_err(err, KOPT_EINPUT, "more than %d rows", ROWS_MAX);
    if (key && strlen(key) > TEXT_MAX)
        return kp_err(err, KOPT_EINPUT, "a problem's key is longer than %d bytes", TEXT_MAX);
    kopt_status st = check_problem(b, problem, err);
    if (st == KOPT_OK)
        st = check_config(b, config, err);
    if (st != KOPT_OK)
        return st;
    bool ok = take_problem(b, problem, numbers);
    if (!key)
        kp_problem_key(problem, b->d->n_fields, &text);
    for (size_t t = 0; ok && t < b->d->n_targets; t++) {
        bool added = false;
        struct list *l = &b->lists[t];
        l->kind = l->own ? l->kind : kind_of(config[t]);
        ok = put_value(b, l, config[t], &indices[t], &added);
    }
    ok = ok && text.failed == KOPT_OK &&
         put_problem(b, numbers, key ? key : kp_buf_text(&text), &number) &&
         put_row(b, number, indices, time_ns);
    kp_buf_deinit(&text);
    return ok ? KOPT_OK : kp_err_nomem(err);
}

/* ---- finish: lists in their final order, then the rows ---- */

struct word_at {
    const char *word;
    uint32_t old;
};

static int by_word(const void *a, const void *b)
{
    return strcmp(((const struct word_at *)a)->word, ((const struct word_at *)b)->word);
}

static kopt_status finish_field(struct kp_dataset_builder *b, size_t i, struct kp_field *out,
                                kopt_error *err)
{
    struct kp_dataset *d = b->d;
    struct column *c = &b->columns[i];
    *out = (struct kp_field){.name = b->field_names[i], .is_word = c->kind == KIND_TEXT};
    if (!out->is_word)
        return KOPT_OK;
    struct word_at *sorted = kp_calloc(c->n, sizeof(*sorted));
    double *now = kp_calloc(c->n, sizeof(*now));
    const char **words = kp_arena_alloc(&d->arena, c->n, sizeof(*words));
    kopt_status st = KOPT_OK;
    if (!sorted || !now || !words) {
        st = kp_err_nomem(err);
        goto done;
    }
    for (uint32_t w = 0; w < c->n; w++)
        sorted[w] = (struct word_at){c->words[w], w};
    qsort(sorted, c->n, sizeof(*sorted), by_word);
    for (size_t w = 0; w < c->n; w++) {
        words[w] = sorted[w].word;
        now[sorted[w].old] = (double)w;
    }
    for (size_t p = 0; p < d->n_problems; p++) {
        double *x = &b->problems[p * d->n_fields + i];
        *x = now[(size_t)*x];
    }
    out->words = words;
    out->n_words = c->n;
done:
    kp_free(sorted);
    kp_free(now);
    return st;
}

struct value_at {
    struct kp_value value;
    uint32_t old;
};

static int by_value(const void *a, const void *b)
{
    int order = 0;
    (void)kp_value_compare(((const struct value_at *)a)->value,
                           ((const struct value_at *)b)->value, &order);
    return order;
}

static kopt_status sort_values(const struct kp_dataset_builder *b, size_t t,
                               struct kp_value *values, uint32_t *now, kopt_error *err)
{
    const struct list *l = &b->lists[t];
    struct value_at *sorted = kp_calloc(l->n, sizeof(*sorted));
    kopt_status st = KOPT_OK;
    if (!sorted)
        return kp_err_nomem(err);
    for (uint32_t v = 0; v < l->n; v++) {
        sorted[v] = (struct value_at){l->values[v], v};
        if (l->float_seen && l->values[v].type == KP_INT)
            sorted[v].value = kp_float((double)l->values[v].as.i);
    }
    qsort(sorted, l->n, sizeof(*sorted), by_value);
    for (uint32_t v = 0; st == KOPT_OK && v < l->n; v++) {
        values[v] = sorted[v].value;
        now[sorted[v].old] = v;
        if (v && kp_value_same(values[v], values[v - 1]))
            st = refuse("target", b->target_names[t],
                        "two of its values are the same as floating-point numbers", values[v],
                        err);
    }
    kp_free(sorted);
    return st;
}

static kopt_status finish_target(struct kp_dataset_builder *b, size_t t, struct kp_target *out,
                                 kopt_error *err)
{
    struct kp_dataset *d = b->d;
    const struct list *l = &b->lists[t];
    struct kp_value *values = kp_arena_alloc(&d->arena, l->n, sizeof(*values));
    uint32_t *now = kp_calloc(l->n, sizeof(*now));
    kopt_status st = KOPT_OK;
    if (!values || !now) {
        st = kp_err_nomem(err);
        goto done;
    }
    if (l->own)
        memcpy(values, l->values, l->n * sizeof(*values));
    else
        st = sort_values(b, t, values, now, err);
    for (size_t r = 0; st == KOPT_OK && !l->own && r < d->n_rows; r++) {
        uint32_t *v = &b->configs[r * d->n_targets + t];
        *v = now[*v];
    }
    *out = (struct kp_target){.name = b->target_names[t],
                              .type = l->own ? b->own[t].type : values[0].type,
                              .values = values,
                              .n_values = (uint32_t)l->n};
done:
    kp_free(now);
    return st;
}

struct row {
    const uint32_t *config;
    uint32_t n_targets;
    uint32_t of;
    float time;
};

/* By problem, then by configuration, then the time that is worth more: a shorter one, any that
 * is known. */
static int by_row(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    for (uint32_t t = 0; t < x->n_targets; t++)
        if (x->config[t] != y->config[t])
            return x->config[t] < y->config[t] ? -1 : 1;
    if (isnan(x->time) || isnan(y->time))
        return (isnan(x->time) != 0) - (isnan(y->time) != 0);
    return (x->time > y->time) - (x->time < y->time);
}

static bool same_row(const struct row *a, const struct row *b)
{
    return a->of == b->of &&
           memcmp(a->config, b->config, a->n_targets * sizeof(*a->config)) == 0;
}

static kopt_status finish_rows(struct kp_dataset_builder *b, kopt_error *err)
{
    struct kp_dataset *d = b->d;
    size_t n = 0;
    struct row *rows = kp_calloc(d->n_rows, sizeof(*rows));
    if (!rows)
        return kp_err_nomem(err);
    for (size_t r = 0; r < d->n_rows; r++)
        rows[r] = (struct row){b->configs + r * d->n_targets, (uint32_t)d->n_targets, b->of[r],
                               b->times[r]};
    qsort(rows, d->n_rows, sizeof(*rows), by_row);
    for (size_t r = 0; r < d->n_rows; r++)
        if (r == 0 || !same_row(&rows[r], &rows[n - 1]))
            rows[n++] = rows[r];
    d->of = kp_arena_alloc(&d->arena, n, sizeof(*d->of));
    d->configs = kp_arena_alloc(&d->arena, n * d->n_targets, sizeof(*d->configs));
    d->times_ns = kp_arena_alloc(&d->arena, n, sizeof(*d->times_ns));
    for (size_t r = 0; !d->arena.failed && r < n; r++) {
        d->of[r] = rows[r].of;
        d->times_ns[r] = rows[r].time;
        memcpy(d->configs + r * d->n_targets, rows[r].config,
               d->n_targets * sizeof(*d->configs));
    }
    d->n_rows = n;
    kp_free(rows);
    return d->arena.failed ? kp_err_nomem(err) : KOPT_OK;
}

static kopt_status finish_problems(struct kp_dataset_builder *b, kopt_error *err)
{
    struct kp_dataset *d = b->d;
    size_t n = d->n_problems * d->n_fields;
    d->problems = kp_arena_alloc(&d->arena, n, sizeof(*d->problems));
    d->keys = kp_arena_alloc(&d->arena, d->n_problems, sizeof(*d->keys));
    if (d->arena.failed)
        return kp_err_nomem(err);
    memcpy(d->problems, b->problems, n * sizeof(*d->problems));
    memcpy(d->keys, b->keys, d->n_problems * sizeof(*d->keys));
    return KOPT_OK;
}

kopt_status kp_dataset_finish(struct kp_dataset_builder *b, struct kp_dataset **out,
                              kopt_error *err)
{
    struct kp_dataset *d = b->d;
    kopt_status st = KOPT_OK;
    *out = NULL;
    if (d->n_rows == 0) {
        st = kp_err(err, KOPT_EINPUT, "there is no row to learn from");
        goto done;
    }
    struct kp_field *fields = kp_arena_alloc(&d->arena, d->n_fields, sizeof(*fields));
    struct kp_target *targets = kp_arena_alloc(&d->arena, d->n_targets, sizeof(*targets));
    if (!fields || !targets) {
        st = kp_err_nomem(err);
        goto done;
    }
    d->fields = fields;
    d->targets = targets;
    for (size_t i = 0; st == KOPT_OK && i < d->n_fields; i++)
        st = finish_field(b, i, &fields[i], err);
    for (size_t t = 0; st == KOPT_OK && t < d->n_targets; t++)
        st = finish_target(b, t, &targets[t], err);
    if (st == KOPT_OK)
        st = finish_problems(b, err);
    if (st == KOPT_OK)
        st = finish_rows(b, err);
    if (st == KOPT_OK) {
        *out = d;
        b->d = NULL;
    }
done:
    kp_dataset_abandon(b);
    return st;
}
