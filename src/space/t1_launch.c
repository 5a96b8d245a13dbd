/* SPDX-License-Identifier: MIT */
/* Problem sizes and launch of T1 files, and what Kernel Tuner adds to them by itself.
 * Layer: space. */
#include "space/t1_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { PROBLEM_DIMS_MAX = 16 };

static const char axes[3][2] = {"X", "Y", "Z"};
static const char *const block_names[3] = {"block_size_x", "block_size_y", "block_size_z"};
static const char *const grid_names[3] = {"grid_size_x", "grid_size_y", "grid_size_z"};
static const char *const problem_names[3] = {"problem_size_x", "problem_size_y",
                                             "problem_size_z"};
static const char *const divisors[3] = {"GridDivX", "GridDivY", "GridDivZ"};

/* ---- problem ---- */

static kopt_status add_dimension(struct kp_t1 *t, size_t i, int64_t size)
{
    char text[64];
    const char *name = NULL;
    const char *alias = NULL;
    uint32_t slot = 0;
    struct kp_piece at = {{"", 0}, {.file = t->b->k->path, .column = 1}, false};
    kopt_status st = KOPT_OK;
    if (size < 1)
        return kp_t1_fail(t, NULL, "ProblemSize[%zu] is %" PRId64 ": a size is at least 1", i,
                          size);
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
    *p = (struct kp_problem_name){name, true, kp_int(size)};
    (void)snprintf(text, sizeof(text), "ProblemSize[%zu]", i);
    st = kp_builder_text(t->b, kp_str_from(text), &alias);
    return st == KOPT_OK ? kp_scope_add(&t->b->k->scope, alias, slot, t->b->err) : st;
}

kopt_status kp_t1_problem(struct kp_t1 *t)
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
            return kp_t1_fail(t, NULL, "ProblemSize[%zu]: integer expected, found %s", i,
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

/* An object, or NULL where there is none. */
static kopt_status sizes_of(struct kp_t1 *t, const char *key, const struct kp_json **out)
{
    const struct kp_json *j = kp_json_get(t->spec, key);
    *out = NULL;
    if (!j || kp_json_type(j) == KP_JSON_NULL)
        return KOPT_OK;
    if (kp_json_type(j) != KP_JSON_OBJECT)
        return kp_t1_fail(t, j, "'%s' must be an object with X, Y and Z, found %s", key,
                          kp_json_type_name(kp_json_type(j)));
    *out = j;
    return KOPT_OK;
}

/* ---- expressions of our own making ---- */

static kopt_status made_name(struct kp_t1 *t, const char *name, const struct kp_expr **out)
{
    struct kp_piece p = {kp_str_from(name), {.file = t->b->k->path, .column = 1}, false};
    return kp_builder_expr(t->b, &p, KP_NAMES_CONFIG, out, NULL);
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

/* *product is NULL for the empty product. */
static kopt_status multiply(struct kp_t1 *t, const struct kp_expr **product,
                            const struct kp_expr *factor)
{
    const struct kp_expr *two[2] = {*product, factor};
    if (*product)
        return made_node(t, (struct kp_expr){.op = KP_OP_MUL}, two, 2, product);
    *product = factor;
    return KOPT_OK;
}

/* ceil(a / b) */
static kopt_status quotient(struct kp_t1 *t, const struct kp_expr *a, const struct kp_expr *b,
                            const struct kp_expr **out)
{
    const struct kp_expr *two[2] = {a, b};
    const struct kp_expr *exact = NULL;
    kopt_status st = made_node(t, (struct kp_expr){.op = KP_OP_TRUEDIV}, two, 2, &exact);
    return st == KOPT_OK ? made_node(t, (struct kp_expr){.op = KP_OP_CALL, .func = KP_FN_CEIL},
                                     &exact, 1, out)
                         : st;
}

/* ---- block ---- */

/* Kernel Tuner's block when nothing else is said: the parameters block_size_x, _y, _z, and 256
 * work-items where there is not even block_size_x. */
static kopt_status default_block(struct kp_t1 *t, int axis)
{
    const struct kp_expr **out = &t->b->k->block[axis];
    if (is_param(t, block_names[axis]))
        return made_name(t, block_names[axis], out);
    return kp_builder_const(t->b, kp_int(axis == 0 ? 256 : 1), out);
}

static kopt_status read_block(struct kp_t1 *t)
{
    const struct kp_json *local = NULL;
    kopt_status st = sizes_of(t, "LocalSize", &local);
    for (int axis = 0; axis < 3 && st == KOPT_OK; axis++) {
        struct kp_str text;
        const struct kp_json *j = kp_json_get(local, axes[axis]);
        /* Files name block_size_x although they have no such parameter. */
        bool stale = kp_json_as_str(j, &text) && kp_str_is(text, block_names[axis]) &&
                     !is_param(t, block_names[axis]);
        bool missing = !j || kp_json_type(j) == KP_JSON_NULL || stale;
        if (missing && local && axis > 0 && !stale)
            st = kp_builder_const(t->b, kp_int(1), &t->b->k->block[axis]);
        else if (missing)
            st = default_block(t, axis);
        else
            st = kp_t1_expr(t, j, KP_NAMES_CONFIG, &t->b->k->block[axis]);
        if (st != KOPT_OK)
            kp_err_wrap(t->b->err, "LocalSize.%s", axes[axis]);
    }
    return st;
}

/* ---- grid ---- */

/* The product of a GridDiv list, NULL for none. */
static kopt_status divisor_of(struct kp_t1 *t, int axis, const struct kp_expr **out)
{
    const struct kp_json *list = kp_json_get(t->spec, divisors[axis]);
    bool none = !list || kp_json_type(list) == KP_JSON_NULL;
    bool single = !none && kp_json_type(list) != KP_JSON_ARRAY;
    size_t n = single ? 1 : kp_json_size(list);
    kopt_status st = KOPT_OK;
    *out = NULL;
    if (none)
        return is_param(t, block_names[axis]) ? made_name(t, block_names[axis], out) : KOPT_OK;
    for (size_t i = 0; st == KOPT_OK && i < n; i++) {
        const struct kp_expr *e = NULL;
        const struct kp_json *j = single ? list : kp_json_at(list, i);
        enum kp_json_type type = kp_json_type(j);
        if (type != KP_JSON_STRING && type != KP_JSON_INT && type != KP_JSON_REAL)
            return kp_t1_fail(t, NULL, "%s[%zu]: a string or a number expected, found %s",
                              divisors[axis], i, kp_json_type_name(type));
        st = kp_t1_expr(t, j, KP_NAMES_CONFIG, &e);
        if (st == KOPT_OK)
            st = multiply(t, out, e);
    }
    return st;
}

/* Kernel Tuner: grid = ceil(problem / product of divisors). */
static kopt_status grid_from_problem(struct kp_t1 *t, int axis)
{
    const struct kp_expr *size = NULL;
    const struct kp_expr *divisor = NULL;
    kopt_status st = divisor_of(t, axis, &divisor);
    if (st == KOPT_OK)
        st = made_name(t, (size_t)axis < t->b->problem.n ? problem_names[axis] : "1", &size);
    if (st != KOPT_OK || !divisor) {
        t->b->k->grid[axis] = size;
        return st;
    }
    return quotient(t, size, divisor, &t->b->k->grid[axis]);
}

/* GlobalSize counts work-items (OpenCL) or groups (CUDA, Vulkan). */
static kopt_status grid_from_global(struct kp_t1 *t, const struct kp_json *sizes, int axis,
                                    bool work_items)
{
    struct kp_kernel *k = t->b->k;
    const struct kp_json *j = kp_json_get(sizes, axes[axis]);
    if (!j || kp_json_type(j) == KP_JSON_NULL)
        return kp_builder_const(t->b, kp_int(1), &k->grid[axis]);
    const struct kp_expr *global = NULL;
    kopt_status st = kp_t1_expr(t, j, KP_NAMES_CONFIG, &global);
    if (st != KOPT_OK || !work_items) {
        k->grid[axis] = global;
        return st;
    }
    return quotient(t, global, k->block[axis], &k->grid[axis]);
}

static kopt_status read_grid(struct kp_t1 *t)
{
    struct kp_str type;
    const struct kp_json *sizes = NULL;
    const char *own = t->b->k->lang == KP_LANG_OPENCL ? "OpenCL" : "CUDA";
    kopt_status st = kp_json_opt_str(t->spec, "GlobalSizeType", own, &type, t->b->err);
    if (st == KOPT_OK)
        st = sizes_of(t, "GlobalSize", &sizes);
    if (st != KOPT_OK)
        return st;
    bool work_items = kp_str_is(type, "OpenCL");
    if (!work_items && !kp_str_is(type, "CUDA") && !kp_str_is(type, "Vulkan"))
        return kp_t1_fail(t, kp_json_get(t->spec, "GlobalSizeType"),
                          "GlobalSizeType '%.*s' is not OpenCL, CUDA or Vulkan",
                          KP_STR_FMT(type));
    if (!t->grid_by_problem && !sizes)
        return kp_t1_fail(t, NULL,
                          "neither 'ProblemSize' nor 'GlobalSize' gives the launch's size");
    for (int axis = 0; axis < 3 && st == KOPT_OK; axis++) {
        st = t->grid_by_problem ? grid_from_problem(t, axis)
                                : grid_from_global(t, sizes, axis, work_items);
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
    struct kp_buf text = KP_BUF_INIT(KP_EXPR_TEXT_MAX); /* for people */
    const struct kp_json *local = kp_json_get(t->spec, "LocalSize");
    const struct kp_expr *two[2] = {NULL, NULL};
    const struct kp_expr *rule = NULL;
    kopt_status st = KOPT_OK;
    for (int axis = 0; axis < 3 && st == KOPT_OK; axis++) {
        bool depends = false;
        struct kp_str s = kp_str_from(block_names[axis]);
        kp_expr_slots(t->b->k->block[axis], see_any, &depends);
        if (!depends)
            continue;
        (void)kp_json_as_str(kp_json_get(local, axes[axis]), &s); /* else the default's name */
        kp_buf_addf(&text, "%s(%.*s)", text.len ? " * " : "", KP_STR_FMT(s));
        st = multiply(t, &two[0], t->b->k->block[axis]);
    }
    kp_buf_adds(&text, " <= device.max_threads");
    struct kp_piece at = {
        {kp_buf_text(&text), text.len}, {.file = t->b->k->path, .column = 1}, false};
    if (st == KOPT_OK)
        st = kp_buf_status(&text, t->b->err);
    if (st == KOPT_OK && two[0]) {
        st = made_name(t, "device.max_threads", &two[1]);
        if (st == KOPT_OK)
            st = made_node(t, (struct kp_expr){.op = KP_OP_LE}, two, 2, &rule);
        if (st == KOPT_OK)
            st = kp_builder_rule(t->b, &at, at.text.len, rule,
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

kopt_status kp_t1_launch(struct kp_t1 *t)
{
    kopt_status st = read_block(t);
    if (st == KOPT_OK)
        st = read_grid(t);
    const struct kp_json *shared = kp_json_get(t->spec, "SharedMemory");
    if (st == KOPT_OK && shared && kp_json_type(shared) != KP_JSON_NULL)
        st = kp_t1_expr(t, shared, KP_NAMES_CONFIG, &t->b->k->shared);
    if (st == KOPT_OK)
        st = implicit_rule(t);
    return st == KOPT_OK && t->grid_by_problem ? tuner_macros(t) : st;
}
