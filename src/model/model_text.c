/* SPDX-License-Identifier: MIT */
/* The JSON texts of a model's file. Layer: model. */
#include "model/model_impl.h"

#include "base/map.h"

#include <math.h>
#include <string.h>

/* --- limits ---------------------------------------------------------------------------------
 */

/* Rough sizes, in units of a number's: an object's table and a list's elements. */
static size_t weight_of(char c)
{
    return c == '{' ? 8 : c == '[' ? 2 : c == ',';
}

bool kp_model_json_is_small(struct kp_str text)
{
    size_t weight = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            weight += weight_of(c);
    }
    return weight <= KP_MODEL_WEIGHT_MAX;
}

kopt_status kp_model_json(struct kp_str text, const char *what, struct kp_json **out,
                          kopt_error *err)
{
    *out = NULL;
    if (!kp_model_json_is_small(text))
        return kp_err(err, KOPT_EINPUT, "%s: too many values", what);
    return kp_json_parse(text, what, out, err);
}

/* --- targets --------------------------------------------------------------------------------
 */

void kp_model_targets_write(const struct kp_target *targets, size_t n, struct kp_buf *out)
{
    kp_buf_addc(out, '[');
    for (size_t p = 0; p < n; p++) {
        const struct kp_target *t = &targets[p];
        kp_buf_adds(out, p ? ",{\"name\":" : "{\"name\":");
        kp_json_quote(kp_str_from(t->name), out);
        kp_buf_addf(out, ",\"type\":\"%s\",\"values\":[", kp_type_name(t->type));
        for (uint32_t v = 0; v < t->n_values; v++) {
            kp_buf_adds(out, v ? "," : "");
            kp_value_to_json(t->values[v], out);
        }
        kp_buf_adds(out, "]}");
    }
    kp_buf_addc(out, ']');
}

static bool read_type(struct kp_str text, enum kp_type *out)
{
    static const enum kp_type all[] = {KP_INT, KP_FLOAT, KP_BOOL, KP_STRING};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (kp_str_is(text, kp_type_name(all[i]))) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

/* False: of another type, or no memory (arena->failed). */
static bool read_value(const struct kp_json *j, enum kp_type type, struct kp_arena *arena,
                       struct kp_value *out)
{
    struct kp_str s;
    *out = (struct kp_value){.type = type};
    switch (type) {
    case KP_INT:
        return kp_json_as_i64(j, &out->as.i);
    case KP_FLOAT:
        return kp_json_as_f64(j, &out->as.f) && isfinite(out->as.f);
    case KP_BOOL:
        return kp_json_as_bool(j, &out->as.b);
    case KP_STRING:
        if (!kp_json_as_str(j, &s))
            return false;
        out->as.s = (struct kp_str){kp_arena_strndup(arena, s.ptr, s.len), s.len};
        return out->as.s.ptr != NULL;
    }
    return false;
}

/* Values of one type are told apart by their bytes. */
static uint64_t *put(struct kp_map *seen, const struct kp_value *v, bool *added)
{
    double f = v->type == KP_FLOAT ? v->as.f + 0.0 : 0; /* -0 is 0 */
    switch (v->type) {
    case KP_INT:
        return kp_map_put(seen, &v->as.i, sizeof(v->as.i), added);
    case KP_FLOAT:
        return kp_map_put(seen, &f, sizeof(f), added);
    case KP_BOOL:
        return kp_map_put(seen, &v->as.b, sizeof(v->as.b), added);
    case KP_STRING:
        return kp_map_put(seen, v->as.s.ptr, v->as.s.len, added);
    }
    return NULL;
}

static kopt_status read_values(const struct kp_json *list, struct kp_target *t,
                               struct kp_arena *arena, kopt_error *err)
{
    struct kp_map seen = {0};
    kopt_status st = KOPT_OK;
    size_t n = kp_json_size(list);
    if (n < 1 || n > KP_TARGET_VALUES_MAX)
        return kp_err(err, KOPT_EINPUT, "it has %zu values", n);
    struct kp_value *values = kp_arena_alloc(arena, n, sizeof(*values));
    if (!values)
        return kp_err_nomem(err);
    for (size_t v = 0; st == KOPT_OK && v < n; v++) {
        bool added = false;
        if (!read_value(kp_json_at(list, v), t->type, arena, &values[v]))
            st = arena->failed ? kp_err_nomem(err)
                               : kp_err(err, KOPT_EINPUT, "value %zu is no %s", v + 1,
                                        kp_type_name(t->type));
        else if (!put(&seen, &values[v], &added))
            st = kp_err_nomem(err);
        else if (!added)
            st = kp_err(err, KOPT_EINPUT, "value %zu stands there before", v + 1);
    }
    kp_map_deinit(&seen);
    t->values = values;
    t->n_values = (uint32_t)n;
    return st;
}

static kopt_status read_target(const struct kp_json *j, struct kp_target *t,
                               struct kp_arena *arena, kopt_error *err)
{
    struct kp_str name;
    struct kp_str type;
    const struct kp_json *values = NULL;
    kopt_status st = kp_json_need_str(j, "name", &name, err);
    if (st == KOPT_OK)
        st = kp_json_need_str(j, "type", &type, err);
    if (st == KOPT_OK)
        st = kp_json_need_array(j, "values", &values, err);
    if (st != KOPT_OK)
        return st;
    if (name.len == 0 || !read_type(type, &t->type))
        return kp_err(err, KOPT_EINPUT, "it has no name, or its type is unknown");
    t->name = kp_arena_strndup(arena, name.ptr, name.len);
    if (!t->name)
        return kp_err_nomem(err);
    return read_values(values, t, arena, err);
}

kopt_status kp_model_targets_read(const struct kp_json *j, struct kp_arena *arena,
                                  struct kp_target *targets, size_t *n, kopt_error *err)
{
    size_t count = kp_json_size(j);
    *n = 0;
    if (kp_json_type(j) != KP_JSON_ARRAY || count < 1 || count > KP_TARGETS_MAX)
        return kp_err(err, KOPT_EINPUT, "targets: a list of 1 to %d is expected",
                      (int)KP_TARGETS_MAX);
    for (size_t p = 0; p < count; p++) {
        kopt_status st = read_target(kp_json_at(j, p), &targets[p], arena, err);
        for (size_t q = 0; st == KOPT_OK && q < p; q++)
            if (strcmp(targets[q].name, targets[p].name) == 0)
                st = kp_err(err, KOPT_EINPUT, "another one has its name");
        if (st != KOPT_OK) {
            kp_err_wrap(err, "targets: number %zu", p + 1);
            return st;
        }
    }
    *n = count;
    return KOPT_OK;
}
