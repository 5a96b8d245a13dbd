/* SPDX-License-Identifier: MIT */
#include "json/impl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The bracket that opens one level too many, looked for before Jansson meets it, since a place
 * in the text is what the user needs. NULL when there is none. */
static const char *too_deep(struct kp_str text)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{') && depth++ == KP_JSON_DEPTH_MAX)
            return text.ptr + i;
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
    }
    return NULL;
}

static struct kp_str line_of(struct kp_str text, int line)
{
    struct kp_str rest = text;
    struct kp_str found = {"", 0};
    for (int i = 0; i < line && rest.ptr; i++)
        found = kp_str_cut(rest, '\n', &rest);
    return found;
}

static kopt_status syntax_error(struct kp_str text, const char *name, const json_error_t *je,
                                kopt_error *err)
{
    /* Where an allocation fails below the parser, Jansson says nothing at all. */
    if (json_error_code(je) == json_error_out_of_memory || !je->text[0])
        return kp_err_nomem(err);
    kopt_status st = kp_err(err, KOPT_EINPUT, "not valid JSON: %s", je->text);
    struct kp_str line = line_of(text, je->line);
    bool behind = json_error_code(je) == json_error_premature_end_of_input || je->column < 1;
    kp_err_at(err, name, je->line, je->column + behind, line.ptr, (int)line.len);
    return st;
}

static kopt_status depth_error(struct kp_str text, const char *name, const char *at,
                               kopt_error *err)
{
    const char *start = at;
    const char *end = memchr(at, '\n', (size_t)(text.ptr + text.len - at));
    int line = 1;
    int column = 1;
    while (start > text.ptr && start[-1] != '\n')
        column += (*--start & 0xc0) != 0x80;
    for (const char *c = text.ptr; c < start; c++)
        line += *c == '\n';
    kopt_status st =
        kp_err(err, KOPT_EINPUT, "nested deeper than %d levels", KP_JSON_DEPTH_MAX);
    kp_err_at(err, name, line, column, start, (int)((end ? end : text.ptr + text.len) - start));
    return st;
}

kopt_status kp_json_parse(struct kp_str text, const char *name, struct kp_json **out,
                          kopt_error *err)
{
    json_error_t je;
    const char *deep = too_deep(text);
    *out = NULL;
    memset(&je, 0, sizeof(je));
    if (deep)
        return depth_error(text, name ? name : "text", deep, err);
    json_t *j = json_loadb(text.len ? text.ptr : "", text.len,
                           JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    if (!j)
        return syntax_error(text, name ? name : "text", &je, err);
    *out = kp_json_wrap(j);
    return KOPT_OK;
}

void kp_json_free(struct kp_json *j)
{
    json_decref(kp_json_plain(j));
}

enum kp_json_type kp_json_type(const struct kp_json *j)
{
    switch (json_typeof(kp_json_plain(j))) {
    case JSON_OBJECT:
        return KP_JSON_OBJECT;
    case JSON_ARRAY:
        return KP_JSON_ARRAY;
    case JSON_STRING:
        return KP_JSON_STRING;
    case JSON_INTEGER:
        return KP_JSON_INT;
    case JSON_REAL:
        return KP_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return KP_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return KP_JSON_NULL;
}

const char *kp_json_type_name(enum kp_json_type type)
{
    static const char *const names[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
    return names[type];
}

size_t kp_json_size(const struct kp_json *j)
{
    if (!j)
        return 0;
    json_t *p = kp_json_plain(j);
    return json_is_array(p) ? json_array_size(p) : json_object_size(p);
}

const struct kp_json *kp_json_at(const struct kp_json *j, size_t i)
{
    return j ? kp_json_wrap_const(json_array_get(kp_json_plain(j), i)) : NULL;
}

const struct kp_json *kp_json_get(const struct kp_json *j, const char *key)
{
    return j ? kp_json_wrap_const(json_object_get(kp_json_plain(j), key)) : NULL;
}

bool kp_json_each(const struct kp_json *j,
                  bool (*visit)(void *user, const char *key, const struct kp_json *value),
                  void *user)
{
    if (!j)
        return true;
    json_t *p = kp_json_plain(j);
    for (void *it = json_object_iter(p); it; it = json_object_iter_next(p, it)) {
        if (!visit(user, json_object_iter_key(it),
                   kp_json_wrap_const(json_object_iter_value(it))))
            return false;
    }
    return true;
}

bool kp_json_as_bool(const struct kp_json *j, bool *out)
{
    if (!j || !json_is_boolean(kp_json_plain(j)))
        return false;
    *out = json_is_true(kp_json_plain(j));
    return true;
}

bool kp_json_as_i64(const struct kp_json *j, int64_t *out)
{
    if (!j || !json_is_integer(kp_json_plain(j)))
        return false;
    *out = json_integer_value(kp_json_plain(j));
    return true;
}

bool kp_json_as_f64(const struct kp_json *j, double *out)
{
    if (!j || !json_is_number(kp_json_plain(j)))
        return false;
    *out = json_number_value(kp_json_plain(j));
    return true;
}

bool kp_json_as_str(const struct kp_json *j, struct kp_str *out)
{
    if (!j || !json_is_string(kp_json_plain(j)))
        return false;
    *out = (struct kp_str){json_string_value(kp_json_plain(j)),
                           json_string_length(kp_json_plain(j))};
    return true;
}
