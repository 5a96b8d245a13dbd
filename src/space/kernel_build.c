/* SPDX-License-Identifier: MIT */
/* Names, expressions, parameters and rules of a kernel under construction. Layer: space. */
#include "base/alloc.h"
#include "space/kernel_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* At the line that is read, where there is one. */
__attribute__((format(printf, 2, 3))) static kopt_status limit_reached(struct kp_builder *b,
                                                                       const char *fmt, ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    if (b->line)
        return kp_piece_fail(b, b->line, kp_lex(b->line->text, 0).pos, "%s", message);
    return kp_err(b->err, KOPT_EINPUT, "%s", message);
}

kopt_status kp_builder_memory(struct kp_builder *b)
{
    if (!b->k->arena.over)
        return kp_err_nomem(b->err);
    return limit_reached(b, "the file needs more than %zu MiB of memory",
                         b->k->arena.max >> 20);
}

void *kp_vec_push(struct kp_builder *b, struct kp_vec *v, size_t size, size_t max,
                  const char *what, kopt_status *st)
{
    if (v->n >= max) {
        *st = limit_reached(b, "more than %zu %s", max, what);
        return NULL;
    }
    if (v->n == v->cap) {
        size_t cap = v->cap ? 2 * v->cap : 8;
        void *items = kp_arena_alloc(&b->k->arena, cap, size);
        if (!items) {
            *st = kp_builder_memory(b);
            return NULL;
        }
        if (v->n)
            memcpy(items, v->items, v->n * size);
        v->items = items;
        v->cap = cap;
    }
    *st = KOPT_OK;
    return (char *)v->items + v->n++ * size;
}

kopt_status kp_builder_text(struct kp_builder *b, struct kp_str s, const char **out)
{
    *out = kp_arena_strndup(&b->k->arena, s.ptr, s.len);
    return *out ? KOPT_OK : kp_builder_memory(b);
}

kopt_status kp_piece_fail(struct kp_builder *b, const struct kp_piece *at, size_t off,
                          const char *fmt, ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    kopt_status st = kp_err(b->err, KOPT_EINPUT, "%s", message);
    kp_source_error(&at->where, at->text, off, b->err);
    return st;
}

/* ---- names ---- */

static bool plain_name(struct kp_str name)
{
    return !kp_expr_reserved(name) && !memchr(name.ptr, '.', name.len) &&
           !kp_str_is(name, "i") && !kp_str_is(name, "time_ns");
}

kopt_status kp_builder_name(struct kp_builder *b, const struct kp_piece *at, size_t off,
                            struct kp_str name, const char **copy, uint32_t *slot)
{
    *copy = NULL;
    *slot = 0;
    if (name.len > 255)
        return kp_piece_fail(b, at, off, "a name of more than 255 letters");
    if (!plain_name(name))
        return kp_piece_fail(
            b, at, off, "'%.*s' cannot be a name here: it %s", KP_STR_FMT(name),
            kp_str_is(name, "i") || kp_str_is(name, "time_ns") || kp_expr_reserved(name)
                ? "has a meaning of its own"
                : "is no plain identifier");
    if (kp_scope_find(&b->k->scope, name) >= 0)
        return kp_piece_fail(b, at, off, "the name '%.*s' is declared already",
                             KP_STR_FMT(name));
    kopt_status st = kp_builder_text(b, name, copy);
    if (st != KOPT_OK)
        return st;
    *slot = b->next_slot++;
    st = kp_scope_add(&b->k->scope, *copy, *slot, b->err);
    return st == KOPT_EUSAGE ? kp_piece_fail(b, at, off, "more than %d names", KP_SCOPE_MAX)
                             : st;
}

/* ---- lets ---- */

struct writing {
    struct kp_builder *b;
    const struct kp_piece *at;
    size_t nodes;
    kopt_status st;
};

static const struct kp_let *find_let(struct kp_builder *b, uint32_t slot)
{
    const struct kp_let *lets = b->lets.items;
    for (size_t i = 0; i < b->lets.n; i++) {
        if (lets[i].slot == slot)
            return &lets[i];
    }
    return NULL;
}

static const struct kp_expr *write_out(struct writing *w, const struct kp_expr *e,
                                       const struct kp_expr *use);

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static const struct kp_expr *copy_node(struct writing *w, const struct kp_expr *e,
                                       const struct kp_expr *use)
{
    struct kp_arena *arena = &w->b->k->arena;
    struct kp_expr *copy = kp_arena_alloc(arena, 1, sizeof(*copy));
    const struct kp_expr **args =
        kp_arena_alloc(arena, e->n_args, sizeof(const struct kp_expr *));
    if (!copy || !args) {
        w->st = kp_builder_memory(w->b);
        return NULL;
    }
    *copy = *e;
    copy->args = args;
    copy->depth = 1;
    if (use) {
        copy->pos = use->pos;
        copy->end = use->end;
    }
    for (uint32_t i = 0; i < e->n_args; i++) {
        args[i] = write_out(w, e->args[i], use);
        if (!args[i])
            return NULL;
        if (args[i]->depth >= copy->depth)
            copy->depth = (uint16_t)(args[i]->depth + 1);
    }
    if (copy->depth <= KP_EXPR_DEPTH_MAX)
        return copy;
    w->st = kp_piece_fail(w->b, w->at, copy->pos, "more than %d operations in a chain",
                          KP_EXPR_DEPTH_MAX);
    return NULL;
}

/* The expression with every let replaced by what it stands for, because the space is made over
 * parameters alone. Nodes of a let take the position of the name that was written (`use`). */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static const struct kp_expr *write_out(struct writing *w, const struct kp_expr *e,
                                       const struct kp_expr *use)
{
    if (use && ++w->nodes > KP_KERNEL_NODES_MAX) {
        w->st = kp_piece_fail(w->b, w->at, use->pos,
                              "more than %d operations with the lets written out",
                              KP_KERNEL_NODES_MAX);
        return NULL;
    }
    const struct kp_let *let = e->op == KP_OP_VAR ? find_let(w->b, e->slot) : NULL;
    if (let) /* its own lets are written out already */
        return copy_node(w, let->expr, use ? use : e);
    return use || e->n_args ? copy_node(w, e, use) : e;
}

/* ---- expressions ---- */

struct slot_check {
    struct kp_builder *b;
    bool param;
};

static void see_slot(void *user, uint32_t slot)
{
    struct slot_check *c = user;
    const struct kp_param *params = c->b->params.items;
    for (size_t i = 0; i < c->b->params.n; i++)
        c->param |= params[i].slot == slot;
}

static kopt_status check_fixed(struct kp_builder *b, const struct kp_piece *at,
                               const struct kp_expr *e)
{
    struct slot_check c = {b, false};
    kp_expr_slots(e, see_slot, &c);
    if (!c.param)
        return KOPT_OK;
    kopt_status st = kp_piece_fail(b, at, e->pos,
                                   "this must not depend on a parameter: it is the same for "
                                   "every configuration");
    kp_err_hint(b->err, "max(NAME) is the largest value that the parameter NAME can take");
    return st;
}

kopt_status kp_builder_expr(struct kp_builder *b, const struct kp_piece *at,
                            enum kp_names names, const struct kp_expr **out, size_t *used)
{
    struct kp_kernel *k = b->k;
    size_t n_names = k->scope.n;
    kopt_status st = KOPT_OK;
    *out = NULL;
    if (names == KP_NAMES_INDEX)
        st = kp_scope_add(&k->scope, "i", k->slot_index, b->err);
    else if (names == KP_NAMES_METRIC)
        st = kp_scope_add(&k->scope, "time_ns", k->slot_time_ns, b->err);
    if (st != KOPT_OK)
        return st;
    struct kp_parse_input in = {at->text, &k->scope, b->dialect, &at->where, &k->arena};
    if (used)
        st = kp_expr_parse_some(&in, at->beside, out, used, b->err);
    else
        st = kp_expr_parse(at->text, &k->scope, b->dialect, &at->where, &k->arena, out, b->err);
    k->scope.n = n_names;
    if (st != KOPT_OK)
        return st;
    struct writing w = {b, at, 0, KOPT_OK};
    *out = write_out(&w, *out, NULL);
    if (*out && (names == KP_NAMES_FIXED || names == KP_NAMES_INDEX))
        return check_fixed(b, at, *out);
    return w.st;
}

kopt_status kp_builder_const(struct kp_builder *b, struct kp_value v,
                             const struct kp_expr **out)
{
    struct kp_expr *e = kp_arena_alloc(&b->k->arena, 1, sizeof(*e));
    *out = e;
    if (!e)
        return kp_builder_memory(b);
    *e = (struct kp_expr){.op = KP_OP_CONST, .depth = 1, .value = v};
    return KOPT_OK;
}

/* ---- parameters, lets, rules ---- */

kopt_status kp_builder_param(struct kp_builder *b, const char *name, uint32_t slot,
                             const struct kp_piece *at, size_t *used)
{
    struct kp_kernel *k = b->k;
    struct kp_value *values = NULL;
    size_t n = 0;
    kopt_status st = kp_list_parse(at->text, NULL, NULL, b->dialect, &at->where, &k->arena,
                                   &values, &n, used, b->err);
    if (st != KOPT_OK)
        return st;
    struct kp_param *p =
        kp_vec_push(b, &b->params, sizeof(*p), KP_PARAMS_MAX, "parameters", &st);
    if (!p)
        return st;
    *p = (struct kp_param){.name = name,
                           .type = values[0].type,
                           .values = values,
                           .n_values = (uint32_t)n,
                           .default_index = -1,
                           .slot = slot,
                           .line = at->where.line};
    for (size_t i = 0; i < k->scope.n; i++) {
        if (k->scope.names[i].slot == slot) {
            k->scope.names[i].values = values;
            k->scope.names[i].n_values = (uint32_t)n;
        }
    }
    return KOPT_OK;
}

kopt_status kp_builder_let(struct kp_builder *b, const char *name, uint32_t slot,
                           const struct kp_expr *e, int line)
{
    kopt_status st = KOPT_OK;
    struct kp_let *let =
        kp_vec_push(b, &b->lets, sizeof(*let), KP_KERNEL_ITEMS_MAX, "let names", &st);
    if (let)
        *let = (struct kp_let){name, e, slot, line};
    return st;
}

kopt_status kp_builder_rule(struct kp_builder *b, const struct kp_piece *at, size_t used,
                            const struct kp_expr *e, const char *message)
{
    kopt_status st = KOPT_OK;
    struct kp_rule *rule = kp_vec_push(b, &b->rules, sizeof(*rule), KP_RULES_MAX, "rules", &st);
    char *text = rule ? kp_arena_strndup(&b->k->arena, at->text.ptr, used) : NULL;
    if (!text)
        return rule ? kp_builder_memory(b) : st;
    /* One line; the offsets of the expression's nodes stay true. */
    for (char *c = text; *c; c++) {
        if (*c == '\n' || *c == '\r' || *c == '\t' ||
            (*c == '\\' && (c[1] == '\n' || c[1] == '\r')))
            *c = ' ';
    }
    *rule = (struct kp_rule){e, text, message, at->where.line};
    return KOPT_OK;
}

struct kp_param *kp_builder_find_param(struct kp_builder *b, struct kp_str name)
{
    struct kp_param *params = b->params.items;
    for (size_t i = 0; i < b->params.n; i++) {
        if (kp_str_is(name, params[i].name))
            return &params[i];
    }
    return NULL;
}

void kp_param_hint(const struct kp_param *p, kopt_error *err)
{
    struct kp_buf list = KP_BUF_INIT(200);
    for (uint32_t i = 0; i < p->n_values && list.failed == KOPT_OK; i++) {
        kp_buf_adds(&list, i ? ", " : "");
        kp_value_to_text(p->values[i], &list);
    }
    kp_err_hint(err, "its values: %s%s", kp_buf_text(&list),
                list.failed == KOPT_OK ? "" : " ..");
    kp_buf_deinit(&list);
}

int64_t kp_param_find(const struct kp_param *p, struct kp_value v)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        int order = 1;
        bool kind = (p->type == KP_STRING) == (v.type == KP_STRING);
        if (kind && kp_value_compare(p->values[i], v, &order) && order == 0)
            return (int64_t)i;
    }
    return -1;
}

/* ---- life ---- */

static const char *const device_names[] = {
    "device.max_threads",  "device.max_block_x",  "device.max_block_y", "device.max_block_z",
    "device.shared_bytes", "device.registers",    "device.warp",        "device.compute_units",
    "device.l2_bytes",     "device.global_bytes", "device.clock_khz",   "device.cc"};

enum { N_DEVICE = sizeof(device_names) / sizeof(device_names[0]) };

void kp_device_values(const struct kp_limits *limits, struct kp_value *values)
{
    static const struct kp_limits none = {.warp = 1};
    const struct kp_limits *l = limits ? limits : &none;
    /* A bound that is not known bounds nothing; 2^31-1 leaves room to calculate with. */
    const int64_t no_bound = INT32_MAX;
    const int64_t numbers[N_DEVICE] = {l->max_threads > 0 ? l->max_threads : no_bound,
                                       l->max_block[0] > 0 ? l->max_block[0] : no_bound,
                                       l->max_block[1] > 0 ? l->max_block[1] : no_bound,
                                       l->max_block[2] > 0 ? l->max_block[2] : no_bound,
                                       l->shared_bytes > 0 ? l->shared_bytes : no_bound,
                                       l->registers > 0 ? l->registers : no_bound,
                                       l->warp,
                                       l->compute_units,
                                       l->l2_bytes,
                                       l->global_bytes > 0 ? l->global_bytes : no_bound,
                                       l->clock_khz,
                                       l->cc};
    for (size_t i = 0; i < N_DEVICE; i++)
        values[i] = kp_int(numbers[i]);
}

uint32_t kp_device_slots(void)
{
    return N_DEVICE;
}

kopt_status kp_builder_init(struct kp_builder *b, const char *path, enum kp_dialect dialect,
                            kopt_error *err)
{
    *b = (struct kp_builder){.err = err, .dialect = dialect};
    b->k = kp_calloc(1, sizeof(*b->k));
    if (!b->k)
        return kp_err_nomem(err);
    b->k->arena = KP_ARENA_INIT(KP_KERNEL_ARENA_MAX);
    b->k->macro_prefix = "";
    kopt_status st = kp_builder_text(b, kp_str_from(path), &b->k->path);
    for (size_t i = 0; st == KOPT_OK && i < N_DEVICE; i++)
        st = kp_scope_add(&b->k->scope, device_names[i], b->next_slot++, err);
    b->k->slot_time_ns = b->next_slot++;
    b->k->slot_index = b->next_slot++;
    return st;
}

static kopt_status finish_problem(struct kp_builder *b)
{
    struct kp_kernel *k = b->k;
    size_t n = b->problem.n;
    const struct kp_problem_name *from = b->problem.items;
    const char **names = kp_arena_alloc(&k->arena, n, sizeof(*names));
    struct kp_value *values = kp_arena_alloc(&k->arena, n, sizeof(*values));
    bool *has = kp_arena_alloc(&k->arena, n, sizeof(*has));
    if (!names || !values || !has)
        return kp_builder_memory(b);
    for (size_t i = 0; i < n; i++) {
        names[i] = from[i].name;
        values[i] = from[i].value;
        has[i] = from[i].has_default;
    }
    k->problem = names;
    k->problem_default = values;
    k->has_problem_default = has;
    k->n_problem = n;
    return KOPT_OK;
}

kopt_status kp_builder_finish(struct kp_builder *b)
{
    struct kp_kernel *k = b->k;
    k->params = b->params.items;
    k->n_params = b->params.n;
    k->rules = b->rules.items;
    k->n_rules = b->rules.n;
    k->lets = b->lets.items;
    k->n_lets = b->lets.n;
    k->canonicals = b->canonicals.items;
    k->n_canonicals = b->canonicals.n;
    k->args = b->args.items;
    k->n_args = b->args.n;
    k->checks = b->checks.items;
    k->n_checks = b->checks.n;
    k->references = b->references.items;
    k->n_references = b->references.n;
    k->metrics = b->metrics.items;
    k->n_metrics = b->metrics.n;
    k->flags = b->flags.items;
    k->n_flags = b->flags.n;
    k->n_slots = b->next_slot;
    kopt_status st = kp_scope_add(&k->scope, "time_ns", k->slot_time_ns, b->err);
    return st == KOPT_OK ? finish_problem(b) : st;
}
