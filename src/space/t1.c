/* SPDX-License-Identifier: MIT */
/* Kernels described by T1 JSON, in Kernel Tuner's and in KTT's dialect. Expressions are read by
 * the language's own parser, with Python's meaning of "/". Layer: space. */
#include "base/alloc.h"
#include "space/t1_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_DIMS_MAX = 16 };

static const char axes[3][2] = {"X", "Y", "Z"};
static const char *const block_names[3] = {"block_size_x", "block_size_y", "block_size_z"};
static const char *const grid_names[3] = {"grid_size_x", "grid_size_y", "grid_size_z"};
static const char *const problem_names[3] = {"problem_size_x", "problem_size_y",
                                             "problem_size_z"};
static const char *const divisors[3] = {"GridDivX", "GridDivY", "GridDivZ"};

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

kopt_status kp_t1_fail(struct kp_t1 *t, const char *fmt, ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    kopt_status st = kp_err(t->b->err, KOPT_EINPUT, "%s", message);
    kp_err_at(t->b->err, t->b->k->path, 0, 0, NULL, 0);
    return st;
}

/* An expression of our own making. */
__attribute__((format(printf, 4, 5))) static kopt_status made_expr(struct kp_t1 *t,
                                                                   enum kp_names names,
                                                                   const struct kp_expr **out,
                                                                   const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    *out = NULL;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(text))
        return kp_t1_fail(t, "an expression of the launch geometry is too long");
    struct kp_piece p = {{text, (size_t)n}, {.file = t->b->k->path, .column = 1}, false};
    return kp_builder_expr(t->b, &p, names, out, NULL);
}

static kopt_status made_node(struct kp_t1 *t, struct kp_expr shape,
                             const struct kp_expr *const *args, size_t n,
                             const struct kp_expr **out)
{
    struct kp_parser p;
    struct kp_parse_input in = {.text = {"", 0}, .arena = &t->b->k->arena};
    kp_parser_init(&p, &in, t->b->err);
    *out = kp_parser_node(&p, shape, args, n);
    return p.status;
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
        return kp_t1_fail(t, "a number, boolean or string expected, found %s",
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

static kopt_status wrong_value(struct kp_t1 *t, const struct kp_param *p, uint32_t i,
                               struct kp_str type_name)
{
    struct kp_buf text = KP_BUF_INIT(200);
    kp_value_to_text(p->values[i], &text);
    kopt_status st = kp_t1_fail(t, "parameter %s: the value %s is no %.*s", p->name,
                                kp_buf_text(&text), KP_STR_FMT(type_name));
    kp_buf_deinit(&text);
    return st;
}

static kopt_status convert_all(struct kp_t1 *t, struct kp_param *p, struct kp_str type_name)
{
    enum kp_type type = KP_INT;
    bool is_unsigned = false;
    if (!read_type(type_name, &type, &is_unsigned))
        return kp_t1_fail(t,
                          "parameter %s: unknown type '%.*s' (int, uint, float, bool, string)",
                          p->name, KP_STR_FMT(type_name));
    struct kp_value *values = kp_arena_alloc(&t->b->k->arena, p->n_values, sizeof(*values));
    if (!values)
        return kp_err_nomem(t->b->err);
    for (uint32_t i = 0; i < p->n_values; i++) {
        values[i] = p->values[i];
        if (!convert(&values[i], type, is_unsigned))
            return wrong_value(t, p, i, type_name);
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
        return kp_t1_fail(t, "parameter %s: 'Values' must be a string or an array", name);
    }
    kopt_status st = kp_buf_status(&plain, t->b->err);
    if (st == KOPT_OK)
        st = kp_builder_param(t->b, name, slot, &at, &used);
    if (st == KOPT_OK && kp_str_trim((struct kp_str){text.ptr + used, text.len - used}).len > 0)
        st = kp_piece_fail(t->b, &at, used, "the end of the list expected");
    kp_buf_deinit(&plain);
    return st;
}

static kopt_status read_parameter(struct kp_t1 *t, const struct kp_json *j)
{
    struct kp_str name;
    struct kp_str type;
    const char *copy = NULL;
    uint32_t slot = 0;
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
    st = convert_all(t, p, type);
    return st == KOPT_OK ? read_default(t, kp_json_get(j, "Default"), p) : st;
}

static kopt_status read_condition(struct kp_t1 *t, const struct kp_json *j)
{
    struct kp_str text;
    const struct kp_expr *e = NULL;
    kopt_status st = kp_json_need_str(j, "Expression", &text, t->b->err);
    if (st != KOPT_OK)
        return st;
    struct kp_piece at = kp_t1_piece(t, text);
    st = kp_builder_expr(t->b, &at, KP_NAMES_CONFIG, &e, NULL);
    return st == KOPT_OK ? kp_builder_rule(t->b, &at, text.len, e, NULL) : st;
}

/* Calls `read` for each element of a member; a member that is missing or null has none. */
static kopt_status each(struct kp_t1 *t, const struct kp_json *in, const char *key,
                        kopt_status (*read)(struct kp_t1 *, const struct kp_json *))
{
    const struct kp_json *list = kp_json_get(in, key);
    if (!list || kp_json_type(list) == KP_JSON_NULL)
        return KOPT_OK;
    if (kp_json_type(list) != KP_JSON_ARRAY)
        return kp_t1_fail(t, "'%s' must be an array", key);
    for (size_t i = 0; i < kp_json_size(list); i++) {
        kopt_status st = read(t, kp_json_at(list, i));
        if (st == KOPT_OK)
            continue;
        kp_err_wrap(t->b->err, "%s[%zu]", key, i);
        if (t->b->err && !t->b->err->file[0])
            kp_err_at(t->b->err, t->b->k->path, 0, 0, NULL, 0);
        return st;
    }
    return KOPT_OK;
}

/* ---- problem and launch ---- */

static kopt_status add_dimension(struct kp_t1 *t, size_t i, int64_t size)
{
    char text[64];
    const char *name = NULL;
    const char *alias = NULL;
    uint32_t slot = 0;
    struct kp_piece at = {{"", 0}, {.file = t->b->k->path, .column = 1}, false};
    kopt_status st = KOPT_OK;
    if (size < 1)
        return kp_t1_fail(t, "ProblemSize[%zu] is %" PRId64 ": a size is at least 1", i, size);
    if (i < 3)
        (void)snprintf(text, sizeof(text), "%s", problem_names[i]);
    else
        (void)snprintf(text, sizeof(text), "problem_size_%zu", i);
    st = kp_builder_name(t->b, &at, 0, kp_str_from(text), &name, &slot);
    struct kp_problem_name *p = st == KOPT_OK
                                    ? kp_vec_push(t->b, &t->b->problem, sizeof(*p),
                                                  PROBLEM_DIMS_MAX, "problem dimensions", &st)
                                    : NULL;
    if (!p)
        return st;
    *p = (struct kp_problem_name){name, true, size};
    (void)snprintf(text, sizeof(text), "ProblemSize[%zu]", i);
    st = kp_builder_text(t->b, kp_str_from(text), &alias);
    return st == KOPT_OK ? kp_scope_add(&t->b->k->scope, alias, slot, t->b->err) : st;
}

static kopt_status read_problem(struct kp_t1 *t)
{
    const struct kp_json *j = kp_json_get(t->spec, "ProblemSize");
    if (!j || kp_json_type(j) == KP_JSON_NULL)
        return KOPT_OK;
    bool single = kp_json_type(j) != KP_JSON_ARRAY;
    size_t n = single ? 1 : kp_json_size(j);
    for (size_t i = 0; i < n; i++) {
        int64_t size = 0;
        const struct kp_json *element = single ? j : kp_json_at(j, i);
        struct kp_str text;
        if (kp_json_as_str(element, &text) && kp_str_to_i64(kp_str_trim(text), &size)) {
            /* "4096" */
        } else if (!kp_json_as_i64(element, &size)) {
            return kp_t1_fail(t, "ProblemSize[%zu]: integer expected, found %s", i,
                              kp_json_type_name(kp_json_type(element)));
        }
        kopt_status st = add_dimension(t, i, size);
        if (st != KOPT_OK)
            return st;
    }
    t->grid_by_problem = n > 0;
    return KOPT_OK;
}

static bool is_param(struct kp_t1 *t, const char *name)
{
    return kp_builder_find_param(t->b, kp_str_from(name)) != NULL;
}

/* Kernel Tuner's block when nothing else is said: the parameters block_size_x, _y, _z, and 256
 * work-items where there is not even block_size_x. */
static kopt_status default_block(struct kp_t1 *t, int axis)
{
    const struct kp_expr **out = &t->b->k->block[axis];
    if (is_param(t, block_names[axis]))
        return made_expr(t, KP_NAMES_CONFIG, out, "%s", block_names[axis]);
    return kp_builder_const(t->b, kp_int(axis == 0 ? 256 : 1), out);
}

static kopt_status read_block(struct kp_t1 *t)
{
    const struct kp_json *local = kp_json_get(t->spec, "LocalSize");
    for (int axis = 0; axis < 3; axis++) {
        struct kp_str text;
        const struct kp_json *j = kp_json_get(local, axes[axis]);
        /* Files name block_size_x although they have no such parameter. */
        bool stale = kp_json_as_str(j, &text) && kp_str_is(text, block_names[axis]) &&
                     !is_param(t, block_names[axis]);
        bool missing = !j || kp_json_type(j) == KP_JSON_NULL || stale;
        kopt_status st;
        if (missing && local && axis > 0 && !stale)
            st = kp_builder_const(t->b, kp_int(1), &t->b->k->block[axis]);
        else if (missing)
            st = default_block(t, axis);
        else
            st = kp_t1_expr(t, j, KP_NAMES_CONFIG, &t->b->k->block[axis]);
        if (st != KOPT_OK) {
            kp_err_wrap(t->b->err, "LocalSize.%s", axes[axis]);
            return st;
        }
    }
    return KOPT_OK;
}

/* The product of a GridDiv list as text; "" for none. */
static kopt_status divisor_text(struct kp_t1 *t, int axis, struct kp_buf *out)
{
    const struct kp_json *list = kp_json_get(t->spec, divisors[axis]);
    bool single = list && kp_json_type(list) == KP_JSON_STRING;
    size_t n = single ? 1 : kp_json_size(list);
    for (size_t i = 0; i < n; i++) {
        struct kp_str s;
        const struct kp_expr *e = NULL;
        const struct kp_json *j = single ? list : kp_json_at(list, i);
        if (!kp_json_as_str(j, &s))
            return kp_t1_fail(t, "%s[%zu]: a string expected", divisors[axis], i);
        kopt_status st =
            kp_t1_expr(t, j, KP_NAMES_CONFIG, &e); /* for its position in messages */
        if (st != KOPT_OK)
            return st;
        kp_buf_adds(out, out->len ? " * (" : "(");
        kp_buf_add(out, s.ptr, s.len);
        kp_buf_addc(out, ')');
    }
    if (out->len == 0 && !list && is_param(t, block_names[axis]))
        kp_buf_adds(out, block_names[axis]);
    return kp_buf_status(out, t->b->err);
}

/* Kernel Tuner: grid = ceil(problem / product of divisors). */
static kopt_status grid_from_problem(struct kp_t1 *t, int axis)
{
    struct kp_buf divisor = KP_BUF_INIT(2048);
    const char *size = (size_t)axis < t->b->problem.n ? problem_names[axis] : "1";
    kopt_status st = divisor_text(t, axis, &divisor);
    if (st == KOPT_OK && divisor.len > 0)
        st = made_expr(t, KP_NAMES_CONFIG, &t->b->k->grid[axis], "ceil(%s / (%s))", size,
                       kp_buf_text(&divisor));
    else if (st == KOPT_OK)
        st = made_expr(t, KP_NAMES_CONFIG, &t->b->k->grid[axis], "%s", size);
    kp_buf_deinit(&divisor);
    return st;
}

/* GlobalSize counts work-items (OpenCL) or groups (CUDA, Vulkan). */
static kopt_status grid_from_global(struct kp_t1 *t, int axis, bool work_items)
{
    struct kp_kernel *k = t->b->k;
    const struct kp_json *j = kp_json_get(kp_json_get(t->spec, "GlobalSize"), axes[axis]);
    if (!j || kp_json_type(j) == KP_JSON_NULL)
        return kp_builder_const(t->b, kp_int(1), &k->grid[axis]);
    const struct kp_expr *global = NULL;
    kopt_status st = kp_t1_expr(t, j, KP_NAMES_CONFIG, &global);
    if (st != KOPT_OK || !work_items) {
        k->grid[axis] = global;
        return st;
    }
    const struct kp_expr *two[2] = {global, k->block[axis]};
    const struct kp_expr *quotient = NULL;
    st = made_node(t, (struct kp_expr){.op = KP_OP_TRUEDIV}, two, 2, &quotient);
    return st == KOPT_OK ? made_node(t, (struct kp_expr){.op = KP_OP_CALL, .func = KP_FN_CEIL},
                                     &quotient, 1, &k->grid[axis])
                         : st;
}

static kopt_status read_grid(struct kp_t1 *t)
{
    struct kp_str type;
    const char *own = t->b->k->lang == KP_LANG_OPENCL ? "OpenCL" : "CUDA";
    kopt_status st = kp_json_opt_str(t->spec, "GlobalSizeType", own, &type, t->b->err);
    if (st != KOPT_OK)
        return st;
    bool work_items = kp_str_is(type, "OpenCL");
    if (!work_items && !kp_str_is(type, "CUDA") && !kp_str_is(type, "Vulkan"))
        return kp_t1_fail(t, "GlobalSizeType '%.*s' is not OpenCL, CUDA or Vulkan",
                          KP_STR_FMT(type));
    if (!t->grid_by_problem && !kp_json_get(t->spec, "GlobalSize"))
        return kp_t1_fail(t, "neither 'ProblemSize' nor 'GlobalSize' gives the launch's size");
    for (int axis = 0; axis < 3 && st == KOPT_OK; axis++) {
        st = t->grid_by_problem ? grid_from_problem(t, axis)
                                : grid_from_global(t, axis, work_items);
        if (st != KOPT_OK)
            kp_err_wrap(t->b->err, "%s.%s", t->grid_by_problem ? "GridDiv" : "GlobalSize",
                        axes[axis]);
    }
    return st;
}

/* ---- what Kernel Tuner adds by itself ---- */

static void see_any(void *user, uint32_t slot)
{
    bool *any = user;
    *any |= slot >= kp_device_slots();
}

/* "block_size_x * block_size_y" of what the block depends on, as a rule against the device. */
static kopt_status implicit_rule(struct kp_t1 *t)
{
    struct kp_buf text = KP_BUF_INIT(4096);
    const struct kp_json *local = kp_json_get(t->spec, "LocalSize");
    for (int axis = 0; axis < 3; axis++) {
        bool depends = false;
        struct kp_str s = kp_str_from(block_names[axis]);
        kp_expr_slots(t->b->k->block[axis], see_any, &depends);
        if (!depends)
            continue;
        (void)kp_json_as_str(kp_json_get(local, axes[axis]), &s); /* else the default's name */
        kp_buf_addf(&text, "%s(%.*s)", text.len ? " * " : "", KP_STR_FMT(s));
    }
    kopt_status st = KOPT_OK;
    if (text.len > 0) {
        const struct kp_expr *e = NULL;
        kp_buf_adds(&text, " <= device.max_threads");
        st = kp_buf_status(&text, t->b->err);
        struct kp_piece at = {
            {kp_buf_text(&text), text.len}, {.file = t->b->k->path, .column = 1}, false};
        if (st == KOPT_OK)
            st = kp_builder_expr(t->b, &at, KP_NAMES_CONFIG, &e, NULL);
        if (st == KOPT_OK)
            st = kp_builder_rule(t->b, &at, at.text.len, e,
                                 "a group may not have more work-items than the device allows");
    }
    kp_buf_deinit(&text);
    return st;
}

static kopt_status add_macro(struct kp_t1 *t, const char *name, const struct kp_expr *e)
{
    const char *copy = NULL;
    uint32_t slot = 0;
    struct kp_piece at = {kp_str_from(name), {.file = t->b->k->path, .column = 1}, false};
    if (kp_scope_find(&t->b->k->scope, at.text) >= 0)
        return KOPT_OK; /* a parameter of that name is a macro already */
    kopt_status st = kp_builder_name(t->b, &at, 0, at.text, &copy, &slot);
    return st == KOPT_OK ? kp_builder_let(t->b, copy, slot, e, 0) : st;
}

/* Macros that kernels written for Kernel Tuner count on. */
static kopt_status tuner_macros(struct kp_t1 *t)
{
    const struct kp_expr *one = NULL;
    kopt_status st = kp_builder_const(t->b, kp_int(1), &one);
    if (st == KOPT_OK)
        st = add_macro(t, "kernel_tuner", one);
    for (int axis = 0; axis < 3 && st == KOPT_OK; axis++) {
        st = add_macro(t, block_names[axis], t->b->k->block[axis]);
        if (st == KOPT_OK)
            st = add_macro(t, grid_names[axis], t->b->k->grid[axis]);
    }
    return st;
}

/* ---- the file ---- */

static kopt_status read_flag(struct kp_t1 *t, const struct kp_json *j)
{
    struct kp_str s;
    kopt_status st = KOPT_OK;
    if (!kp_json_as_str(j, &s))
        return kp_t1_fail(t, "a string expected");
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
        return kp_t1_fail(t, "Language '%.*s' is not OpenCL or CUDA", KP_STR_FMT(s));
    return KOPT_OK;
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
        const char *copy = NULL;
        st = kp_text_read(path, &text, need_source ? t->b->err : &ignored);
        if (st == KOPT_OK)
            st = kp_builder_text(t->b, (struct kp_str){kp_buf_text(&text), text.len}, &copy);
        if (st == KOPT_OK)
            k->source = (struct kp_str){copy, text.len};
        else if (st == KOPT_ENOMEM)
            st = kp_err_nomem(t->b->err);
        else if (!need_source)
            st = KOPT_OK;
        else
            kp_err_wrap(t->b->err, "%s: KernelFile", k->path);
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
        st = read_problem(t);
    if (st == KOPT_OK)
        st = kp_json_need_array(space, "TuningParameters", &params, t->b->err);
    if (st == KOPT_OK && kp_json_size(params) == 0)
        st = kp_t1_fail(t, "'TuningParameters' is empty: there is nothing to tune");
    if (st == KOPT_OK)
        st = each(t, space, "TuningParameters", read_parameter);
    return st == KOPT_OK ? each(t, space, "Conditions", read_condition) : st;
}

static kopt_status read_launch(struct kp_t1 *t)
{
    kopt_status st = read_block(t);
    if (st == KOPT_OK)
        st = read_grid(t);
    const struct kp_json *shared = kp_json_get(t->spec, "SharedMemory");
    if (st == KOPT_OK && shared && kp_json_type(shared) != KP_JSON_NULL)
        st = kp_t1_expr(t, shared, KP_NAMES_CONFIG, &t->b->k->shared);
    if (st == KOPT_OK)
        st = implicit_rule(t);
    if (st == KOPT_OK && t->grid_by_problem)
        st = tuner_macros(t);
    return st == KOPT_OK ? each(t, t->spec, "CompilerOptions", read_flag) : st;
}

kopt_status kp_kernel_read_t1(struct kp_builder *b, struct kp_str json, bool from_disk,
                              bool need_source)
{
    struct kp_json *root = NULL;
    struct kp_t1 t = {.b = b, .raw = json};
    kopt_status st = kp_json_parse(json, b->k->path, &root, b->err);
    if (st != KOPT_OK)
        return st;
    t.root = root;
    st = read_names(&t);
    if (st == KOPT_OK)
        st = read_launch(&t);
    if (st == KOPT_OK)
        st = kp_t1_arguments(&t);
    if (st == KOPT_OK)
        st = kp_t1_references(&t);
    if (st == KOPT_OK)
        st = read_source(&t, from_disk, need_source);
    if (st == KOPT_EINPUT && b->err && !b->err->file[0])
        kp_err_at(b->err, b->k->path, 0, 0, NULL, 0);
    kp_json_free(root);
    return st;
}
