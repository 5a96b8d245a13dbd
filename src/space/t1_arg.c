/* SPDX-License-Identifier: MIT */
/* Arguments and ReferenceArguments of T1 files. Layer: space. */
#include "space/t1_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- types ---- */

static const struct {
    const char *name;
    enum kp_elem elem;
    bool vectors; /* name2, name3, name4, name8, name16 */
} types[] = {
    {"int8", KP_I8, false},     {"uint8", KP_U8, false},    {"int16", KP_I16, false},
    {"uint16", KP_U16, false},  {"int32", KP_I32, false},   {"uint32", KP_U32, false},
    {"int64", KP_I64, false},   {"uint64", KP_U64, false},  {"int", KP_I32, false},
    {"uint", KP_U32, false},    {"bool", KP_U8, false},     {"half", KP_F16, true},
    {"float32", KP_F32, false}, {"float64", KP_F64, false}, {"float", KP_F32, true},
    {"double", KP_F64, true},
};

/* "float16" is KTT's vector of 16 floats, as its schema has it next to float2, float4, float8.
 */
static bool vector_of(struct kp_str name, const char *base, uint32_t *lanes)
{
    static const char *const counts[] = {"", "2", "3", "4", "8", "16"};
    static const uint32_t values[] = {1, 2, 3, 4, 8, 16};
    size_t n = strlen(base);
    if (!kp_str_starts(name, base))
        return false;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (kp_str_is((struct kp_str){name.ptr + n, name.len - n}, counts[i])) {
            *lanes = values[i];
            return true;
        }
    }
    return false;
}

/* A "custom" type is bytes: *bytes of them for each element. */
static kopt_status read_type(struct kp_t1 *t, const struct kp_json *j, struct kp_arg *a,
                             int64_t *bytes)
{
    struct kp_str type;
    *bytes = 1;
    kopt_status st = kp_json_need_str(j, "Type", &type, t->b->err);
    if (st != KOPT_OK)
        return st;
    a->lanes = 1;
    if (kp_str_is(type, "custom")) {
        a->elem = KP_U8;
        st = kp_json_need_i64(j, "TypeSize", bytes, t->b->err);
        return st == KOPT_OK && *bytes < 1 ? kp_t1_fail(t, NULL, "'TypeSize' must be positive")
                                           : st;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        a->elem = types[i].elem;
        if (types[i].vectors ? vector_of(type, types[i].name, &a->lanes)
                             : kp_str_is(type, types[i].name))
            return KOPT_OK;
    }
    return kp_t1_fail(t, kp_json_get(j, "Type"), "unknown type '%.*s'", KP_STR_FMT(type));
}

/* ---- fills ---- */

static const struct kp_json *generator_of(const struct kp_json *j)
{
    const struct kp_json *source = kp_json_get(j, "DataSource");
    return source ? source : kp_json_get(j, "FillValue");
}

static kopt_status number_or(struct kp_t1 *t, const struct kp_json *j,
                             struct kp_value otherwise, const struct kp_expr **out)
{
    if (!j || kp_json_type(j) == KP_JSON_NULL)
        return kp_builder_const(t->b, otherwise, out);
    return kp_t1_expr(t, j, KP_NAMES_FIXED, out);
}

/* Random data lie in [0, FillValue]. */
static kopt_status read_fill(struct kp_t1 *t, const struct kp_json *j, struct kp_arg *a)
{
    struct kp_str type;
    struct kp_str file;
    const struct kp_json *value = kp_json_get(j, "FillValue");
    kopt_status st = kp_json_opt_str(j, "FillType", "Random", &type, t->b->err);
    if (st != KOPT_OK)
        return st;
    if (kp_str_is(type, "Constant")) {
        a->fill = KP_FILL_CONSTANT;
        return number_or(t, value, kp_int(0), &a->fill_a);
    }
    if (kp_str_is(type, "Random")) {
        a->fill = KP_FILL_UNIFORM;
        st = kp_builder_const(t->b, kp_int(0), &a->fill_a);
        return st == KOPT_OK ? number_or(t, value, kp_int(1), &a->fill_b) : st;
    }
    if (kp_str_is(type, "Generator")) {
        const struct kp_json *source = generator_of(j);
        a->fill = KP_FILL_GENERATOR;
        if (!source)
            return kp_t1_fail(t, NULL, "a generator without 'DataSource'");
        return kp_t1_expr(t, source, KP_NAMES_INDEX, &a->fill_a);
    }
    if (kp_str_is(type, "BinaryRaw")) {
        a->fill = KP_FILL_FILE;
        st = kp_json_need_str(j, "DataSource", &file, t->b->err);
        return st == KOPT_OK ? kp_builder_text(t->b, file, &a->fill_file) : st;
    }
    return kp_t1_fail(t, kp_json_get(j, "FillType"),
                      "FillType '%.*s' is not supported (Constant, Random, Generator, "
                      "BinaryRaw)",
                      KP_STR_FMT(type));
}

/* ---- arguments ---- */

static kopt_status read_access(struct kp_t1 *t, const struct kp_json *j, struct kp_arg *a)
{
    struct kp_str access;
    int64_t output = 0;
    bool flag = false;
    const struct kp_json *mark = kp_json_get(j, "Output"); /* Kernel Tuner's: 1 or true */
    kopt_status st = kp_json_opt_str(j, "AccessType", "", &access, t->b->err);
    if (st != KOPT_OK)
        return st;
    bool is_output = (kp_json_as_i64(mark, &output) && output != 0) ||
                     (kp_json_as_bool(mark, &flag) && flag);
    if (kp_str_is(access, "WriteOnly"))
        a->dir = KP_DIR_OUT;
    else if (kp_str_is(access, "ReadWrite") || (is_output && access.len == 0))
        a->dir = KP_DIR_INOUT;
    else if (access.len == 0 || kp_str_is(access, "ReadOnly"))
        a->dir = KP_DIR_IN;
    else
        return kp_t1_fail(t, kp_json_get(j, "AccessType"),
                          "AccessType '%.*s' is not ReadOnly, WriteOnly or ReadWrite",
                          KP_STR_FMT(access));
    return KOPT_OK;
}

/* Size, times the bytes of a custom type. */
static kopt_status read_count(struct kp_t1 *t, const struct kp_json *j, enum kp_names names,
                              int64_t bytes, const struct kp_expr **out)
{
    const struct kp_json *size = kp_json_get(j, "Size");
    if (!size)
        return kp_t1_fail(t, NULL, "'Size' is missing");
    kopt_status st = kp_t1_expr(t, size, names, out);
    if (st != KOPT_OK || bytes == 1)
        return st;
    struct kp_value v;
    struct kp_env none = {NULL, NULL};
    int64_t n = 0;
    if (kp_expr_eval(*out, &none, &v, NULL) != KP_EVAL_VALUE || v.type != KP_INT ||
        __builtin_mul_overflow(v.as.i, bytes, &n))
        return kp_t1_fail(t, NULL, "the 'Size' of a custom type must be a constant integer");
    return kp_builder_const(t->b, kp_int(n), out);
}

static kopt_status read_vector(struct kp_t1 *t, const struct kp_json *j, int64_t bytes,
                               struct kp_arg *a)
{
    a->kind = KP_ARG_BUFFER;
    kopt_status st = read_access(t, j, a);
    if (st == KOPT_OK)
        st = read_count(t, j, KP_NAMES_FIXED, bytes, &a->count);
    return st == KOPT_OK && a->dir != KP_DIR_OUT ? read_fill(t, j, a) : st;
}

static kopt_status read_scalar(struct kp_t1 *t, const struct kp_json *j, struct kp_arg *a)
{
    const struct kp_json *value = kp_json_get(j, "FillValue");
    a->kind = KP_ARG_SCALAR;
    if (a->lanes != 1)
        return kp_t1_fail(t, NULL, "a scalar of a vector type is not supported");
    if (!value)
        return kp_t1_fail(t, NULL, "a scalar without 'FillValue'");
    return kp_t1_expr(t, value, KP_NAMES_CONFIG, &a->value);
}

static kopt_status read_by_memory(struct kp_t1 *t, const struct kp_json *j, struct kp_arg *a)
{
    struct kp_str memory;
    int64_t bytes = 1;
    kopt_status st = kp_json_opt_str(j, "MemoryType", "Vector", &memory, t->b->err);
    if (st == KOPT_OK)
        st = read_type(t, j, a, &bytes);
    if (st != KOPT_OK)
        return st;
    if (kp_str_is(memory, "Vector"))
        return read_vector(t, j, bytes, a);
    if (kp_str_is(memory, "Scalar"))
        return read_scalar(t, j, a);
    if (kp_str_is(memory, "Local")) {
        a->kind = KP_ARG_LOCAL;
        return read_count(t, j, KP_NAMES_CONFIG, bytes, &a->count);
    }
    if (kp_str_is(memory, "Symbol"))
        return kp_t1_fail(t, kp_json_get(j, "MemoryType"),
                          "a symbol is not supported: pass the data as an argument");
    return kp_t1_fail(t, kp_json_get(j, "MemoryType"),
                      "MemoryType '%.*s' is not Vector, Scalar or Local", KP_STR_FMT(memory));
}

kopt_status kp_t1_argument(struct kp_t1 *t, const struct kp_json *j, size_t index)
{
    struct kp_str name;
    char unnamed[32];
    struct kp_arg a = {.elem = KP_F32, .lanes = 1};
    (void)snprintf(unnamed, sizeof(unnamed), "arg%zu", index);
    kopt_status st = kp_json_opt_str(j, "Name", unnamed, &name, t->b->err);
    const struct kp_arg *args = t->b->args.items;
    for (size_t i = 0; st == KOPT_OK && i < t->b->args.n; i++) {
        if (kp_str_is(name, args[i].name))
            st = kp_t1_fail(t, NULL, "two arguments are named '%.*s'", KP_STR_FMT(name));
    }
    if (st == KOPT_OK)
        st = kp_builder_text(t->b, name, &a.name);
    if (st == KOPT_OK)
        st = read_by_memory(t, j, &a);
    struct kp_arg *place =
        st == KOPT_OK ? kp_vec_push(t->b, &t->b->args, sizeof(a), KP_ARGS_MAX, "arguments", &st)
                      : NULL;
    if (place)
        *place = a;
    return st;
}

/* ---- references ---- */

static kopt_status find_target(struct kp_t1 *t, const struct kp_json *j, struct kp_str name,
                               size_t *index)
{
    const struct kp_arg *args = t->b->args.items;
    for (size_t i = 0; i < t->b->args.n; i++) {
        if (!kp_str_is(name, args[i].name))
            continue;
        *index = i;
        if (args[i].kind == KP_ARG_BUFFER && args[i].dir != KP_DIR_IN)
            return KOPT_OK;
        return kp_t1_fail(t, NULL, "the target '%.*s' is no buffer that the kernel writes",
                          KP_STR_FMT(name));
    }
    return kp_t1_fail(t, j, "no argument is named '%.*s'", KP_STR_FMT(name));
}

static kopt_status read_expected(struct kp_t1 *t, const struct kp_json *j,
                                 struct kp_check_decl *c)
{
    struct kp_str type;
    struct kp_str file;
    kopt_status st = kp_json_need_str(j, "FillType", &type, t->b->err);
    if (st != KOPT_OK)
        return st;
    c->kind = KP_CHECK_FILL;
    c->name = "fill";
    if (kp_str_is(type, "Constant")) {
        c->fill = KP_FILL_CONSTANT;
        return number_or(t, kp_json_get(j, "FillValue"), kp_int(0), &c->fill_a);
    }
    if (kp_str_is(type, "Generator")) {
        c->fill = KP_FILL_GENERATOR;
        const struct kp_json *source = generator_of(j);
        return source ? kp_t1_expr(t, source, KP_NAMES_INDEX, &c->fill_a)
                      : kp_t1_fail(t, NULL, "a generator without 'DataSource'");
    }
    if (!kp_str_is(type, "BinaryRaw"))
        return kp_t1_fail(t, kp_json_get(j, "FillType"),
                          "FillType '%.*s' is not supported for a reference", KP_STR_FMT(type));
    c->kind = KP_CHECK_FILE;
    st = kp_json_need_str(j, "DataSource", &file, t->b->err);
    return st == KOPT_OK ? kp_builder_text(t->b, file, &c->name) : st;
}

/* AbsoluteDifference bounds the sum of all differences; here it bounds each of them. */
static kopt_status read_tolerance(struct kp_t1 *t, const struct kp_json *j,
                                  struct kp_check_decl *c)
{
    struct kp_str method;
    double threshold = 0;
    const struct kp_arg *a = (const struct kp_arg *)t->b->args.items + c->arg;
    kopt_status st =
        kp_json_opt_str(j, "ValidationMethod", "SideBySideComparison", &method, t->b->err);
    if (st == KOPT_OK && !kp_json_get(j, "ValidationThreshold"))
        return kp_check_tolerances(t->b, c, a->elem);
    if (st == KOPT_OK)
        st = kp_json_need_f64(j, "ValidationThreshold", &threshold, t->b->err);
    if (st != KOPT_OK)
        return st;
    bool relative = kp_str_is(method, "SideBySideRelativeComparison");
    if (!relative && !kp_str_is(method, "SideBySideComparison") &&
        !kp_str_is(method, "AbsoluteDifference"))
        return kp_t1_fail(t, kp_json_get(j, "ValidationMethod"),
                          "unknown ValidationMethod '%.*s'", KP_STR_FMT(method));
    st = kp_builder_const(t->b, kp_float(relative ? threshold : 0), &c->rtol);
    return st == KOPT_OK ? kp_builder_const(t->b, kp_float(relative ? 0 : threshold), &c->atol)
                         : st;
}

kopt_status kp_t1_reference(struct kp_t1 *t, const struct kp_json *j, size_t index)
{
    struct kp_str target;
    struct kp_check_decl c = {0};
    (void)index;
    kopt_status st = kp_json_need_str(j, "TargetName", &target, t->b->err);
    if (st == KOPT_OK)
        st = find_target(t, kp_json_get(j, "TargetName"), target, &c.arg);
    if (st == KOPT_OK)
        st = read_expected(t, j, &c);
    if (st == KOPT_OK)
        st = read_tolerance(t, j, &c);
    struct kp_check_decl *place = st == KOPT_OK ? kp_vec_push(t->b, &t->b->checks, sizeof(c),
                                                              KP_CHECKS_MAX, "checks", &st)
                                                : NULL;
    if (place)
        *place = c;
    return st;
}
