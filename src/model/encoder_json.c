/* SPDX-License-Identifier: MIT */
/* {"fields":[{"name":"C"},{"name":"R","only":3},{"name":"direction","words":["B","F"]}],
 *  "tokens":[{"field":0,"known":[1,2,64]},..],
 *  "features":[[kind,field,parameter,mean,scale],..]}
 * with the kinds by name; the parameter is the power of two, or the value of "is". `only` is
 * the one number, or word's index, of all training problems; older files do not have it. */
#include "model/encoder_impl.h"

#include <math.h>
#include <string.h>

enum { WORDS_MAX = 1 << 16, FEATURE_ITEMS = 5 };

static const char *const kind_names[KP_FEATURE_KINDS] = {"log2", "sign", "divides", "part",
                                                         "is"};

/* ---- writing ---- */

/* Whole numbers as integers, which are shorter. */
static struct kp_json *number(double x)
{
    const double exact = 0x1p53;
    return fabs(x) <= exact && x == floor(x) ? kp_json_new_i64((int64_t)x) : kp_json_new_f64(x);
}

static struct kp_json *write_field(const struct kp_field *f, double only)
{
    struct kp_json *o = kp_json_new_object();
    bool ok = kp_json_set_str(o, "name", f->name);
    if (f->is_word) {
        struct kp_json *words = kp_json_new_array();
        for (size_t w = 0; w < f->n_words; w++)
            ok = kp_json_push(words, kp_json_new_str(kp_str_from(f->words[w]))) && ok;
        ok = kp_json_set(o, "words", words) && ok;
    }
    if (isfinite(only))
        ok = kp_json_set(o, "only", number(only)) && ok;
    if (ok)
        return o;
    kp_json_free(o);
    return NULL;
}

static struct kp_json *write_token(const struct kp_token *t)
{
    struct kp_json *o = kp_json_new_object();
    struct kp_json *known = kp_json_new_array();
    bool ok = true;
    for (uint32_t i = 0; i < t->n_known; i++)
        ok = kp_json_push(known, number(t->known[i])) && ok;
    ok = kp_json_set(o, "known", known) && ok;
    ok = kp_json_set_i64(o, "field", t->field) && ok;
    if (ok)
        return o;
    kp_json_free(o);
    return NULL;
}

static struct kp_json *write_feature(const struct kp_feature *f)
{
    struct kp_json *a = kp_json_new_array();
    bool shifted = f->kind == KP_FEATURE_DIVIDES || f->kind == KP_FEATURE_PART;
    bool ok = kp_json_push(a, kp_json_new_str(kp_str_from(kind_names[f->kind])));
    ok = kp_json_push(a, kp_json_new_i64(f->field)) && ok;
    ok = kp_json_push(a, number(shifted ? (double)(1 << f->shift) : f->value)) && ok;
    ok = kp_json_push(a, kp_json_new_f64(f->mean)) && ok;
    ok = kp_json_push(a, kp_json_new_f64(f->scale)) && ok;
    if (ok)
        return a;
    kp_json_free(a);
    return NULL;
}

struct kp_json *kp_encoder_to_json(const struct kp_encoder *e)
{
    struct kp_json *o = kp_json_new_object();
    struct kp_json *fields = kp_json_new_array();
    struct kp_json *tokens = kp_json_new_array();
    struct kp_json *features = kp_json_new_array();
    bool ok = true;
    for (size_t i = 0; i < e->n_fields; i++)
        ok = kp_json_push(fields, write_field(&e->fields[i], e->only[i])) && ok;
    for (size_t i = 0; i < e->n_tokens; i++)
        ok = kp_json_push(tokens, write_token(&e->tokens[i])) && ok;
    for (size_t i = 0; i < e->n_features; i++)
        ok = kp_json_push(features, write_feature(&e->features[i])) && ok;
    ok = kp_json_set(o, "fields", fields) && ok;
    ok = kp_json_set(o, "tokens", tokens) && ok;
    ok = kp_json_set(o, "features", features) && ok;
    if (ok)
        return o;
    kp_json_free(o);
    return NULL;
}

/* ---- reading: nothing is believed ---- */

/* Errors are "problem fields: what 3: why". */
static kopt_status wrong(const char *what, size_t i, const char *why, kopt_error *err)
{
    return kp_err(err, KOPT_EINPUT, "problem fields: %s %zu: %s", what, i + 1, why);
}

static kopt_status need_list(const struct kp_json *j, const char *key, size_t max,
                             const struct kp_json **out, kopt_error *err)
{
    kopt_status st = kp_json_need_array(j, key, out, err);
    if (st != KOPT_OK) {
        kp_err_wrap(err, "problem fields");
        return st;
    }
    if (kp_json_size(*out) > max)
        return kp_err(err, KOPT_EINPUT, "problem fields: '%s' has more than %zu elements", key,
                      max);
    return KOPT_OK;
}

static kopt_status read_words(struct kp_encoder *e, size_t i, const struct kp_json *j,
                              struct kp_field *f, kopt_error *err)
{
    size_t n = kp_json_size(j);
    if (kp_json_type(j) != KP_JSON_ARRAY || n > WORDS_MAX)
        return wrong("field", i, "its words are no list, or too many", err);
    const char **words = kp_arena_alloc(&e->arena, n, sizeof(*words));
    for (size_t w = 0; words && w < n; w++) {
        struct kp_str s;
        if (!kp_json_as_str(kp_json_at(j, w), &s))
            return wrong("field", i, "one of its words is no text", err);
        words[w] = kp_arena_strndup(&e->arena, s.ptr, s.len);
    }
    f->is_word = true;
    f->words = words;
    f->n_words = n;
    return e->arena.failed ? kp_err_nomem(err) : KOPT_OK;
}

/* Can it stand in the field? */
static bool is_value(const struct kp_field *f, double x)
{
    if (!f->is_word)
        return isfinite(x);
    return x >= 0 && x < (double)f->n_words && x == floor(x);
}

static kopt_status read_field(struct kp_encoder *e, size_t i, const struct kp_json *j,
                              struct kp_field *f, kopt_error *err)
{
    const struct kp_json *words = kp_json_get(j, "words");
    const struct kp_json *only = kp_json_get(j, "only");
    struct kp_str name;
    if (!kp_json_as_str(kp_json_get(j, "name"), &name) || name.len == 0)
        return wrong("field", i, "it has no name", err);
    for (size_t k = 0; k < i; k++)
        if (kp_str_is(name, e->fields[k].name))
            return wrong("field", i, "another one has its name", err);
    f->name = kp_arena_strndup(&e->arena, name.ptr, name.len);
    if (!f->name)
        return kp_err_nomem(err);
    kopt_status st = words ? read_words(e, i, words, f, err) : KOPT_OK;
    e->only[i] = (double)NAN;
    if (st == KOPT_OK && only &&
        (!kp_json_as_f64(only, &e->only[i]) || !is_value(f, e->only[i])))
        st = wrong("field", i, "its only value cannot stand there", err);
    return st;
}

static kopt_status read_fields(struct kp_encoder *e, const struct kp_json *j, kopt_error *err)
{
    const struct kp_json *list = NULL;
    kopt_status st = need_list(j, "fields", KP_FIELDS_MAX, &list, err);
    if (st != KOPT_OK)
        return st;
    if (kp_json_size(list) == 0)
        return kp_err(err, KOPT_EINPUT, "problem fields: there is none");
    struct kp_field *fields = kp_arena_alloc(&e->arena, kp_json_size(list), sizeof(*fields));
    e->only = kp_arena_alloc(&e->arena, kp_json_size(list), sizeof(*e->only));
    if (!fields || !e->only)
        return kp_err_nomem(err);
    e->fields = fields;
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(list); i++) {
        st = read_field(e, i, kp_json_at(list, i), &fields[i], err);
        e->n_fields += st == KOPT_OK;
    }
    return st;
}

static bool read_field_index(const struct kp_encoder *e, const struct kp_json *j, uint32_t *out)
{
    int64_t i = 0;
    if (!kp_json_as_i64(j, &i) || i < 0 || (size_t)i >= e->n_fields)
        return false;
    *out = (uint32_t)i;
    return true;
}

static kopt_status read_token(struct kp_encoder *e, size_t i, const struct kp_json *j,
                              kopt_error *err)
{
    struct kp_token t = {.first = e->n_vocab};
    const struct kp_json *list = kp_json_get(j, "known");
    size_t n = kp_json_size(list);
    if (!read_field_index(e, kp_json_get(j, "field"), &t.field))
        return wrong("token", i, "its field is none of the list", err);
    if (i && t.field <= e->tokens[i - 1].field)
        return wrong("token", i, "its field is not in turn", err);
    if (isfinite(e->only[t.field]))
        return wrong("token", i, "its field has one value only", err);
    if (!list || kp_json_type(list) != KP_JSON_ARRAY || n > KP_KNOWN_MAX)
        return wrong("token", i, "its known values are no list, or too many", err);
    double *known = kp_arena_alloc(&e->arena, n, sizeof(*known));
    if (!known)
        return kp_err_nomem(err);
    for (size_t k = 0; k < n; k++) {
        if (!kp_json_as_f64(kp_json_at(list, k), &known[k]) ||
            !is_value(&e->fields[t.field], known[k]) || (k && known[k] <= known[k - 1]))
            return wrong("token", i, "its known values are not all usable and ascending", err);
    }
    t.known = known;
    t.n_known = (uint32_t)n;
    e->tokens[e->n_tokens++] = t;
    e->n_vocab += 1 + (int32_t)n;
    return KOPT_OK;
}

static bool read_kind(const struct kp_json *j, enum kp_feature_kind *out)
{
    struct kp_str name;
    if (!kp_json_as_str(j, &name))
        return false;
    for (int k = 0; k < KP_FEATURE_KINDS; k++) {
        if (kp_str_is(name, kind_names[k])) {
            *out = (enum kp_feature_kind)k;
            return true;
        }
    }
    return false;
}

static bool read_shift(double x, int *out)
{
    for (int k = 1; k <= KP_FEATURE_SHIFT_MAX; k++)
        if (x == (double)(1 << k))
            *out = k;
    return *out != 0;
}

static kopt_status read_feature(struct kp_encoder *e, size_t i, const struct kp_json *j,
                                kopt_error *err)
{
    struct kp_feature f = {0};
    double parameter = 0;
    if (kp_json_size(j) != FEATURE_ITEMS || !read_kind(kp_json_at(j, 0), &f.kind))
        return wrong("feature", i, "it is of no known kind", err);
    if (!read_field_index(e, kp_json_at(j, 1), &f.field))
        return wrong("feature", i, "its field is none of the list", err);
    if (i && f.field < e->features[i - 1].field)
        return wrong("feature", i, "its field is not in turn", err);
    if (e->fields[f.field].is_word && f.kind != KP_FEATURE_IS)
        return wrong("feature", i, "words have no such features", err);
    if (!kp_json_as_f64(kp_json_at(j, 2), &parameter) ||
        !kp_json_as_f64(kp_json_at(j, 3), &f.mean) ||
        !kp_json_as_f64(kp_json_at(j, 4), &f.scale) || !isfinite(f.mean) ||
        !isfinite(f.scale) || f.scale <= 0)
        return wrong("feature", i, "its numbers are not usable", err);
    if (f.kind == KP_FEATURE_IS) {
        if (!is_value(&e->fields[f.field], parameter))
            return wrong("feature", i, "its value cannot stand in its field", err);
        f.value = parameter;
    } else if ((f.kind == KP_FEATURE_DIVIDES || f.kind == KP_FEATURE_PART) &&
               !read_shift(parameter, &f.shift)) {
        return wrong("feature", i, "its parameter is no power of two from 2 to 256", err);
    }
    e->features[e->n_features++] = f;
    return KOPT_OK;
}

static kopt_status read_all(struct kp_encoder *e, const struct kp_json *j, kopt_error *err)
{
    const struct kp_json *tokens = NULL;
    const struct kp_json *features = NULL;
    kopt_status st = read_fields(e, j, err);
    if (st == KOPT_OK)
        st = need_list(j, "tokens", KP_FIELDS_MAX, &tokens, err);
    if (st == KOPT_OK)
        st = need_list(j, "features", KP_FEATURES_MAX, &features, err);
    if (st != KOPT_OK)
        return st;
    e->tokens = kp_arena_alloc(&e->arena, kp_json_size(tokens), sizeof(*e->tokens));
    e->features = kp_arena_alloc(&e->arena, kp_json_size(features), sizeof(*e->features));
    if (e->arena.failed)
        return kp_err_nomem(err);
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(tokens); i++)
        st = read_token(e, i, kp_json_at(tokens, i), err);
    for (size_t i = 0; st == KOPT_OK && i < kp_json_size(features); i++)
        st = read_feature(e, i, kp_json_at(features, i), err);
    return st;
}

kopt_status kp_encoder_from_json(const struct kp_json *j, struct kp_encoder **out,
                                 kopt_error *err)
{
    *out = NULL;
    struct kp_encoder *e = kp_encoder_empty();
    if (!e)
        return kp_err_nomem(err);
    kopt_status st = read_all(e, j, err);
    if (st == KOPT_OK) {
        *out = e;
        e = NULL;
    }
    kp_encoder_free(e);
    return st;
}
