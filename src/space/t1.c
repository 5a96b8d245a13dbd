/* SPDX-License-Identifier: MIT */
/* Kernels described by T1 JSON, in Kernel Tuner's and in KTT's dialect. Expressions are read by
 * the language's own parser, with Python's meaning of "/". Layer: space. */
#include "base/alloc.h"
#include "space/t1_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- texts and their places ---- */

static const char *find_quoted(struct kp_str raw, struct kp_str text)
{
    const char *from = raw.ptr;
    const char *end = raw.ptr + raw.len;
    while (text.len > 0 && from < end) {
        const char *at = memmem(from, (size_t)(end - from), text.ptr, text.len);
        if (!at)
            return NULL;
        if (at > raw.ptr && at[-1] == '"' && at + text.len < end && at[text.len] == '"')
            return at;
        from = at + 1;
    }
    return NULL;
}

struct kp_piece kp_t1_piece(const struct kp_t1 *t, struct kp_str text)
{
    const char *at = find_quoted(t->raw, text);
    struct kp_piece p = {text, {.file = t->b->k->path, .column = 1}, false};
    if (!at)
        return p;
    struct kp_source_pos start = {.file = t->b->k->path, .line = 1, .column = 1};
    p.where = kp_source_at(&start, t->raw, (size_t)(at - t->raw.ptr));
    return p;
}

kopt_status kp_t1_fail(struct kp_t1 *t, const struct kp_json *at, const char *fmt, ...)
{
    char message[512];
    struct kp_str s;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    if (!kp_json_as_str(at, &s))
        return kp_err(t->b->err, KOPT_EINPUT, "%s", message);
    struct kp_piece p = kp_t1_piece(t, s);
    return kp_piece_fail(t->b, &p, 0, "%s", message);
}

kopt_status kp_t1_value(struct kp_t1 *t, const struct kp_json *j, struct kp_value *out)
{
    struct kp_str s;
    *out = kp_int(0);
    if (kp_json_as_i64(j, &out->as.i))
        return KOPT_OK;
    if (kp_json_as_f64(j, &out->as.f)) {
        out->type = KP_FLOAT;
        return KOPT_OK;
    }
    if (kp_json_as_bool(j, &out->as.b)) {
        out->type = KP_BOOL;
        return KOPT_OK;
    }
    if (!kp_json_as_str(j, &s))
        return kp_t1_fail(t, NULL, "a number, boolean or string expected, found %s",
                          j ? kp_json_type_name(kp_json_type(j)) : "nothing");
    const char *copy = NULL;
    kopt_status st = kp_builder_text(t->b, s, &copy);
    *out = kp_string((struct kp_str){copy, s.len});
    return st;
}

kopt_status kp_t1_expr(struct kp_t1 *t, const struct kp_json *j, enum kp_names names,
                       const struct kp_expr **out)
{
    struct kp_str s;
    struct kp_value v;
    *out = NULL;
    if (kp_json_as_str(j, &s)) {
        struct kp_piece p = kp_t1_piece(t, s);
        return kp_builder_expr(t->b, &p, names, out, NULL);
    }
    kopt_status st = kp_t1_value(t, j, &v);
    return st == KOPT_OK ? kp_builder_const(t->b, v, out) : st;
}

/* ---- parameters ---- */

/* A value of the declared type; what Python would take for one is taken. */
static bool convert(struct kp_value *v, enum kp_type type, bool is_unsigned)
{
    if (v->type == type)
        return !(is_unsigned && v->as.i < 0);
    if (v->type == KP_STRING || type == KP_STRING)
        return false;
    double f = 0;
    (void)kp_value_to_f64(*v, &f); /* not a string */
    if (type == KP_FLOAT) {
        *v = kp_float(f);
        return true;
    }
    if (f != floor(f) || fabs(f) >= 0x1p53 || (is_unsigned && f < 0) ||
        (type == KP_BOOL && f != 0 && f != 1))
        return false;
    *v = type == KP_BOOL ? kp_bool(f != 0) : kp_int((int64_t)f);
    return true;
}

static bool read_type(struct kp_str name, enum kp_type *type, bool *is_unsigned)
{
    *is_unsigned = kp_str_is(name, "uint");
    if (*is_unsigned || kp_str_is(name, "int"))
        *type = KP_INT;
    else if (kp_str_is(name, "float"))
        *type = KP_FLOAT;
    else if (kp_str_is(name, "bool"))
        *type = KP_BOOL;
    else if (kp_str_is(name, "string"))
        *type = KP_STRING;
    else
        return false;
    return true;
}

static kopt_status wrong_value(struct kp_t1 *t, const struct kp_json *j,
                               const struct kp_param *p, uint32_t i, struct kp_str type_name)
{
    struct kp_buf text = KP_BUF_INIT(200);
    kp_value_to_text(p->values[i], &text);
    kopt_status st =
        kp_t1_fail(t, kp_json_get(j, "Values"), "parameter %s: the value %s is no %.*s",
                   p->name, kp_buf_text(&text), KP_STR_FMT(type_name));
    kp_buf_deinit(&text);
    return st;
}

static kopt_status convert_all(struct kp_t1 *t, const struct kp_json *j, struct kp_param *p,
                               struct kp_str type_name)
{
    enum kp_type type = KP_INT;
    bool is_unsigned = false;
    if (!read_type(type_name, &type, &is_unsigned))
        return kp_t1_fail(t, kp_json_get(j, "Type"),
                          "parameter %s: unknown type '%.*s' (int, uint, float, bool, string)",
                          p->name, KP_STR_FMT(type_name));
    struct kp_value *values = kp_arena_alloc(&t->b->k->arena, p->n_values, sizeof(*values));
    if (!values)
        return kp_builder_memory(t->b);
    for (uint32_t i = 0; i < p->n_values; i++) {
        values[i] = p->values[i];
        if (!convert(&values[i], type, is_unsigned))
            return wrong_value(t, j, p, i, type_name);
    }
    p->values = values;
    p->type = type;
    return KOPT_OK;
}

/* A default that is not in the list is none: published files have such. */
static kopt_status read_default(struct kp_t1 *t, const struct kp_json *j, struct kp_param *p)
{
    struct kp_value v;
    if (kp_json_size(j) > 0)
        j = kp_json_at(j, 0); /* [16] */
    if (!j || kp_json_type(j) == KP_JSON_NULL || kp_json_type(j) == KP_JSON_ARRAY)
        return KOPT_OK;
    kopt_status st = kp_t1_value(t, j, &v);
    if (st == KOPT_OK)
        p->default_index = kp_param_find(p, v);
    return st;
}

/* "Values": a Python expression in a string, or a plain array. */
static kopt_status read_values(struct kp_t1 *t, const struct kp_json *j, const char *name,
                               uint32_t slot)
{
    struct kp_str text;
    size_t used = 0;
    struct kp_buf plain = KP_BUF_INIT(KP_EXPR_TEXT_MAX);
    const struct kp_json *values = kp_json_get(j, "Values");
    struct kp_piece at;
    if (kp_json_as_str(values, &text)) {
        at = kp_t1_piece(t, text);
    } else if (values && kp_json_type(values) == KP_JSON_ARRAY) {
        kp_json_dump(values, &plain);
        text = (struct kp_str){kp_buf_text(&plain), plain.len};
        at = (struct kp_piece){text, {.file = t->b->k->path, .column = 1}, false};
    } else {
        return kp_t1_fail(t, NULL, "parameter %s: 'Values' must be a string or an array", name);
    }
    kopt_status st = kp_buf_status(&plain, t->b->err);
    if (st == KOPT_OK)
        st = kp_builder_param(t->b, name, slot, &at, &used);
    if (st == KOPT_OK && kp_str_trim((struct kp_str){text.ptr + used, text.len - used}).len > 0)
        st = kp_piece_fail(t->b, &at, used, "the end of the list expected");
    kp_buf_deinit(&plain);
    return st;
}

static kopt_status read_parameter(struct kp_t1 *t, const struct kp_json *j, size_t index)
{
    struct kp_str name;
    struct kp_str type;
    const char *copy = NULL;
    uint32_t slot = 0;
    (void)index;
    kopt_status st = kp_json_need_str(j, "Name", &name, t->b->err);
    if (st == KOPT_OK)
        st = kp_json_opt_str(j, "Type", "int", &type, t->b->err);
    if (st != KOPT_OK)
        return st;
    struct kp_piece at = kp_t1_piece(t, name);
    st = kp_builder_name(t->b, &at, 0, name, &copy, &slot);
    if (st == KOPT_OK)
        st = read_values(t, j, copy, slot);
    if (st != KOPT_OK)
        return st;
    struct kp_param *p = kp_builder_find_param(t->b, name);
    KP_CHECK(p != NULL);
    st = convert_all(t, j, p, type);
    return st == KOPT_OK ? read_default(t, kp_json_get(j, "Default"), p) : st;
}

static kopt_status read_condition(struct kp_t1 *t, const struct kp_json *j, size_t index)
{
    struct kp_str text;
    const struct kp_expr *e = NULL;
    (void)index;
    kopt_status st = kp_json_need_str(j, "Expression", &text, t->b->err);
    if (st != KOPT_OK)
        return st;
    struct kp_piece at = kp_t1_piece(t, text);
    st = kp_builder_expr(t->b, &at, KP_NAMES_CONFIG, &e, NULL);
    return st == KOPT_OK ? kp_builder_rule(t->b, &at, text.len, e, NULL) : st;
}

kopt_status kp_t1_each(struct kp_t1 *t, const struct kp_json *in, const char *key,
                       kopt_status (*read)(struct kp_t1 *, const struct kp_json *, size_t))
{
    const struct kp_json *list = kp_json_get(in, key);
    if (!list || kp_json_type(list) == KP_JSON_NULL)
        return KOPT_OK;
    if (kp_json_type(list) != KP_JSON_ARRAY)
        return kp_t1_fail(t, list, "'%s' must be an array", key);
    for (size_t i = 0; i < kp_json_size(list); i++) {
        kopt_status st = read(t, kp_json_at(list, i), i);
        if (st == KOPT_OK)
            continue;
        kp_err_wrap(t->b->err, "%s[%zu]", key, i);
        return st;
    }
    return KOPT_OK;
}

/* ---- the file ---- */

static kopt_status read_flag(struct kp_t1 *t, const struct kp_json *j, size_t index)
{
    struct kp_str s;
    kopt_status st = KOPT_OK;
    (void)index;
    if (!kp_json_as_str(j, &s))
        return kp_t1_fail(t, NULL, "a string expected");
    const char **flag =
        kp_vec_push(t->b, &t->b->flags, sizeof(*flag), KP_KERNEL_ITEMS_MAX, "flags", &st);
    return flag ? kp_builder_text(t->b, s, flag) : st;
}

static kopt_status read_language(struct kp_t1 *t)
{
    struct kp_str s;
    kopt_status st = kp_json_need_str(t->spec, "Language", &s, t->b->err);
    if (st != KOPT_OK)
        return st;
    if (kp_str_is(s, "OpenCL"))
        t->b->k->lang = KP_LANG_OPENCL;
    else if (kp_str_is(s, "CUDA"))
        t->b->k->lang = KP_LANG_CUDA;
    else
        return kp_t1_fail(t, kp_json_get(t->spec, "Language"),
                          "Language '%.*s' is not OpenCL or CUDA", KP_STR_FMT(s));
    return KOPT_OK;
}

static kopt_status take_source(struct kp_t1 *t, struct kp_str text)
{
    struct kp_kernel *k = t->b->k;
    const char *copy = NULL;
    struct kp_buf rewritten = KP_BUF_INIT((size_t)2 * KP_KERNEL_FILE_MAX);
    kopt_status st = kp_unroll_rewrite(t->b, text, &rewritten);
    if (k->unrolls)
        text = (struct kp_str){kp_buf_text(&rewritten), rewritten.len};
    if (st == KOPT_OK)
        st = kp_builder_text(t->b, text, &copy);
    if (st == KOPT_OK)
        k->source = (struct kp_str){copy, text.len};
    kp_buf_deinit(&rewritten);
    return st;
}

static kopt_status read_source(struct kp_t1 *t, bool from_disk, bool need_source)
{
    struct kp_kernel *k = t->b->k;
    struct kp_str s;
    const char *file = NULL;
    struct kp_buf text = KP_BUF_INIT(KP_KERNEL_FILE_MAX);
    kopt_status st = kp_json_need_str(t->spec, "KernelFile", &s, t->b->err);
    if (st == KOPT_OK)
        st = kp_builder_text(t->b, s, &file);
    if (st != KOPT_OK)
        return st;
    char *path = kp_text_path(k->path, file);
    if (!path)
        return kp_err_nomem(t->b->err);
    st = kp_builder_text(t->b, kp_str_from(path), &k->source_path);
    k->source = (struct kp_str){"", 0};
    if (st == KOPT_OK && from_disk) {
        kopt_error ignored;
        st = kp_text_read(path, &text, need_source ? t->b->err : &ignored);
        if (st == KOPT_OK)
            st = take_source(t, (struct kp_str){kp_buf_text(&text), text.len});
        else if (st == KOPT_ENOMEM)
            st = kp_err_nomem(t->b->err);
        else if (!need_source)
            st = KOPT_OK;
        else
            kp_err_wrap(t->b->err, "KernelFile");
    }
    kp_buf_deinit(&text);
    kp_free(path);
    return st;
}

static kopt_status read_names(struct kp_t1 *t)
{
    struct kp_str s;
    const struct kp_json *space = NULL;
    const struct kp_json *params = NULL;
    kopt_status st = kp_json_need_object(t->root, "ConfigurationSpace", &space, t->b->err);
    if (st == KOPT_OK)
        st = kp_json_need_object(t->root, "KernelSpecification", &t->spec, t->b->err);
    if (st == KOPT_OK)
        st = kp_json_need_str(t->spec, "KernelName", &s, t->b->err);
    if (st == KOPT_OK)
        st = kp_builder_text(t->b, s, &t->b->k->name);
    if (st == KOPT_OK)
        st = read_language(t);
    if (st == KOPT_OK)
        st = kp_t1_problem(t);
    if (st == KOPT_OK)
        st = kp_json_need_array(space, "TuningParameters", &params, t->b->err);
    if (st == KOPT_OK && kp_json_size(params) == 0)
        st = kp_t1_fail(t, NULL, "'TuningParameters' is empty: there is nothing to tune");
    if (st == KOPT_OK)
        st = kp_t1_each(t, space, "TuningParameters", read_parameter);
    return st == KOPT_OK ? kp_t1_each(t, space, "Conditions", read_condition) : st;
}

/* How long to search and how is the session's to say. */
static void note_not_read(const struct kp_t1 *t)
{
    bool search = kp_json_get(t->root, "Search") != NULL;
    bool budget = kp_json_get(t->root, "Budget") != NULL;
    t->b->k->not_read = search && budget ? "Search and Budget"
                        : search         ? "Search"
                        : budget         ? "Budget"
                                         : NULL;
}

kopt_status kp_kernel_read_t1(struct kp_builder *b, struct kp_str json, bool from_disk,
                              bool need_source)
{
    struct kp_json *root = NULL;
    struct kp_t1 t = {.b = b, .raw = json};
    kopt_status st = kp_json_parse(json, b->k->path, &root, b->err);
    if (st == KOPT_EINPUT && !kp_str_starts(kp_str_trim(json), "{"))
        kp_err_hint(b->err, "a name that ends in .json is that of a T1 file, one of rules ends "
                            "in .kopt");
    if (st != KOPT_OK)
        return st;
    t.root = root;
    note_not_read(&t);
    st = read_names(&t);
    if (st == KOPT_OK)
        st = kp_t1_launch(&t);
    if (st == KOPT_OK)
        st = kp_t1_each(&t, t.spec, "CompilerOptions", read_flag);
    if (st == KOPT_OK)
        st = kp_t1_each(&t, t.spec, "Arguments", kp_t1_argument);
    if (st == KOPT_OK)
        st = kp_t1_each(&t, t.spec, "ReferenceArguments", kp_t1_reference);
    if (st == KOPT_OK)
        st = read_source(&t, from_disk, need_source);
    if (st != KOPT_OK && st != KOPT_ENOMEM && b->err && b->err->line == 0) {
        kp_err_wrap(b->err, "%s", b->k->path);
        kp_err_at(b->err, b->k->path, 0, 0, NULL, 0);
    }
    kp_json_free(root);
    return st;
}
