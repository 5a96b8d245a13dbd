/* SPDX-License-Identifier: MIT */
#include "space/residual.h"

#include <math.h>
#include <string.h>

/* Beyond this a float may become infinite. */
static const double float_limit = 1e300;

static double magnitude(struct kp_bounds b)
{
    return fmax(fabs(b.lo), fabs(b.hi));
}

static bool is_positive(struct kp_bounds b)
{
    return b.lo > 0;
}

static bool all_strings(const struct kp_term *t, size_t first)
{
    for (size_t i = first; i < t->e.n_args; i++)
        if (kp_term_arg(t, i)->types != KP_TYPES_STRING)
            return false;
    return true;
}

static bool any_string(const struct kp_term *t)
{
    for (size_t i = 0; i < t->e.n_args; i++)
        if (kp_term_arg(t, i)->types & KP_TYPES_STRING)
            return true;
    return false;
}

/* The type of a sum, product or remainder: an integer unless a float takes part. */
static unsigned char numeric_types(const struct kp_term *t)
{
    unsigned char any = 0;
    unsigned char sure = 0;
    for (size_t i = 0; i < t->e.n_args; i++) {
        unsigned char types = kp_term_arg(t, i)->types;
        any |= types & KP_TYPES_FLOAT;
        if (types == KP_TYPES_FLOAT)
            sure = KP_TYPES_FLOAT;
    }
    if (sure)
        return sure;
    return (unsigned char)(any | KP_TYPES_INT);
}

static unsigned char union_types(const struct kp_term *t, size_t first)
{
    unsigned char any = 0;
    for (size_t i = first; i < t->e.n_args; i++)
        any |= kp_term_arg(t, i)->types;
    return any;
}

static unsigned char call_types(const struct kp_term *t)
{
    switch (t->e.func) {
    case KP_FN_MIN:
    case KP_FN_MAX:
        return union_types(t, 0);
    case KP_FN_CEILDIV:
    case KP_FN_ALIGN:
    case KP_FN_FLOOR:
    case KP_FN_CEIL:
    case KP_FN_INT:
        return KP_TYPES_INT;
    case KP_FN_IS_POW2:
        return KP_TYPES_BOOL;
    case KP_FN_SQRT:
    case KP_FN_FLOAT:
        return KP_TYPES_FLOAT;
    case KP_FN_LOG2:
    case KP_FN_ABS:
        return numeric_types(t);
    }
    return 0;
}

static unsigned char result_types(const struct kp_term *t)
{
    switch ((int)t->e.op) {
    case KP_OP_CONST:
        return (unsigned char)(1U << t->e.value.type);
    case KP_OP_VAR:
        return t->types;
    case KP_OP_NEG:
    case KP_OP_POS:
    case KP_OP_ADD:
    case KP_OP_SUB:
    case KP_OP_MUL:
    case KP_OP_DIV:
    case KP_OP_FLOORDIV:
    case KP_OP_MOD:
        return numeric_types(t);
    case KP_OP_POW: /* an integer to a negative power is a float */
        return (unsigned char)(numeric_types(t) | KP_TYPES_FLOAT);
    case KP_OP_TRUEDIV:
        return KP_TYPES_FLOAT;
    case KP_OP_COND:
        return union_types(t, 1);
    case KP_OP_AND:
    case KP_OP_OR:
        return t->e.operand ? union_types(t, 0) : KP_TYPES_BOOL;
    case KP_OP_CALL:
        return call_types(t);
    default:
        return KP_TYPES_BOOL;
    }
}

static bool call_may_fail(const struct kp_term *t)
{
    const struct kp_term *a = kp_term_arg(t, 0);
    const struct kp_term *b = t->e.n_args > 1 ? kp_term_arg(t, 1) : a;
    switch ((int)t->e.func) {
    case KP_FN_MIN:
    case KP_FN_MAX:
        return any_string(t);
    case KP_FN_CEILDIV:
    case KP_FN_ALIGN:
        return (a->types & ~KP_TYPES_WHOLE) || (b->types & ~KP_TYPES_WHOLE) ||
               !is_positive(b->bounds);
    case KP_FN_LOG2:
        return any_string(t) || !is_positive(a->bounds);
    case KP_FN_IS_POW2:
        return (a->types & ~KP_TYPES_WHOLE) != 0;
    case KP_FN_SQRT:
        return any_string(t) || a->bounds.lo < 0;
    default:
        return any_string(t);
    }
}

static bool operation_may_fail(const struct kp_term *t)
{
    switch ((int)t->e.op) {
    case KP_OP_DIV:
    case KP_OP_TRUEDIV:
    case KP_OP_FLOORDIV:
    case KP_OP_MOD:
        return any_string(t) || kp_bounds_has_zero(kp_term_arg(t, 1)->bounds);
    case KP_OP_POW:
        return any_string(t) || kp_term_arg(t, 0)->bounds.lo < 0 ||
               kp_term_arg(t, 1)->bounds.lo < 0;
    case KP_OP_LT:
    case KP_OP_LE:
    case KP_OP_GT:
    case KP_OP_GE:
        return any_string(t) && !all_strings(t, 0);
    case KP_OP_EQ:
    case KP_OP_NE:
    case KP_OP_IN:
    case KP_OP_COND:
    case KP_OP_AND:
    case KP_OP_OR:
    case KP_OP_NOT:
        return false;
    case KP_OP_CALL:
        return call_may_fail(t);
    default:
        return any_string(t);
    }
}

static bool is_arithmetic(const struct kp_term *t)
{
    return !(t->types & KP_TYPES_STRING) && (t->types & ~KP_TYPES_BOOL);
}

/* Fills vars, types, bounds and may_fail from the arguments. A result that may be NaN or
 * infinite counts as a failure: bounds and directions do not hold for it. */
static void annotate(struct kp_term *t)
{
    struct kp_bounds two[2] = {{0, 0}, {0, 0}};
    t->types = result_types(t);
    t->may_fail = operation_may_fail(t);
    for (size_t i = 0; i < t->e.n_args; i++) {
        const struct kp_term *a = kp_term_arg(t, i);
        t->may_fail |= a->may_fail;
        for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++)
            t->vars.w[w] |= a->vars.w[w];
    }
    if (t->e.op == KP_OP_CALL && (t->e.func == KP_FN_MIN || t->e.func == KP_FN_MAX)) {
        struct kp_expr pair = t->e;
        KP_CHECK(t->e.n_args > 0);
        pair.n_args = 2;
        two[0] = kp_term_arg(t, 0)->bounds;
        for (size_t i = 1; i < t->e.n_args; i++) {
            two[1] = kp_term_arg(t, i)->bounds;
            two[0] = kp_bounds_of(&pair, two, t->types);
        }
        t->bounds = two[0];
    } else if (t->e.op == KP_OP_COND) {
        struct kp_bounds three[3];
        for (size_t i = 0; i < 3; i++)
            three[i] = kp_term_arg(t, i)->bounds;
        t->bounds = kp_bounds_of(&t->e, three, t->types);
    } else {
        for (size_t i = 0; i < t->e.n_args && i < 2; i++)
            two[i] = kp_term_arg(t, i)->bounds;
        t->bounds = kp_bounds_of(&t->e, two, t->types);
    }
    double limit = t->types & KP_TYPES_FLOAT ? float_limit : KP_INT_LIMIT;
    if (t->types & KP_TYPES_INT)
        limit = KP_INT_LIMIT;
    if (is_arithmetic(t) && t->e.n_args && !(magnitude(t->bounds) < limit))
        t->may_fail = true;
}

struct builder {
    const struct kp_term_input *in;
    kopt_error *err;
    kopt_status status;
};

static const struct kp_term *fail(struct builder *b, kopt_status st)
{
    if (b->status == KOPT_OK)
        b->status = st;
    return NULL;
}

static struct kp_term *new_term(struct builder *b, const struct kp_expr *e)
{
    struct kp_term *t = kp_arena_alloc(b->in->arena, 1, sizeof(*t));
    if (!t) {
        (void)fail(b, kp_err_nomem(b->err));
        return NULL;
    }
    t->e = *e;
    t->e.args = NULL;
    return t;
}

static const struct kp_term *constant(struct builder *b, const struct kp_expr *e,
                                      struct kp_value v)
{
    struct kp_term *t = new_term(b, e);
    if (!t)
        return NULL;
    t->e.op = KP_OP_CONST;
    t->e.n_args = 0;
    t->e.value = v;
    annotate(t);
    t->may_fail = v.type == KP_FLOAT && !isfinite(v.as.f);
    return t;
}

static const struct kp_term *variable(struct builder *b, const struct kp_expr *e)
{
    const struct kp_space_desc *d = b->in->desc;
    bool known = e->slot < d->n_slots && d->known && d->known[e->slot];
    if (known)
        return constant(b, e, d->values[e->slot]);
    int32_t param = e->slot < d->n_slots ? b->in->param_of_slot[e->slot] : -1;
    if (param < 0)
        return fail(b, kp_err(b->err, KOPT_EUSAGE, "a rule uses a name that has no value"));
    const struct kp_param *p = &d->params[param];
    if (p->n_values == 1)
        return constant(b, e, p->values[0]);
    struct kp_term *t = new_term(b, e);
    if (!t)
        return NULL;
    t->e.slot = (uint32_t)param;
    kp_varset_add(&t->vars, (size_t)param);
    t->bounds = kp_bounds_value(p->values[0]);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct kp_bounds v = kp_bounds_value(p->values[i]);
        t->types |= (unsigned char)(1U << p->values[i].type);
        t->may_fail |= p->values[i].type == KP_FLOAT && !isfinite(p->values[i].as.f);
        t->bounds.lo = fmin(t->bounds.lo, v.lo);
        t->bounds.hi = fmax(t->bounds.hi, v.hi);
    }
    return t;
}

/* Is argument `i` looked at for its truth alone, given that its parent is? */
static bool arg_is_truth(const struct kp_expr *e, size_t i, bool truth)
{
    switch ((int)e->op) {
    case KP_OP_NOT:
        return true;
    case KP_OP_AND:
    case KP_OP_OR:
        return truth || !e->operand;
    case KP_OP_COND:
        return i == 0 || truth;
    default:
        return false;
    }
}

static bool depends(const struct kp_term *t)
{
    for (size_t w = 0; w < KP_PARAMS_MAX / 64; w++)
        if (t->vars.w[w])
            return true;
    return false;
}

/* "true && x" and "false || x", or the other way round, are x where only its truth matters or
 * where x is a boolean, which is what they give; Python's "true and x" is always x. */
static const struct kp_term *other_operand(const struct kp_term *t, bool truth)
{
    const struct kp_env nothing = {NULL, NULL};
    if (t->e.op != KP_OP_AND && t->e.op != KP_OP_OR)
        return NULL;
    for (size_t i = 0; i < 2; i++) {
        const struct kp_term *other = kp_term_arg(t, 1 - i);
        bool same = t->e.operand ? i == 0 : other->types == KP_TYPES_BOOL;
        if (t->e.args[i]->op == KP_OP_CONST && (truth || same) &&
            kp_expr_truth(t->e.args[i], &nothing, NULL) == (t->e.op == KP_OP_AND))
            return other;
    }
    return NULL;
}

/* `truth`: only the truth of the value matters. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static const struct kp_term *build(struct builder *b, const struct kp_expr *e, bool truth)
{
    if (e->op == KP_OP_VAR)
        return variable(b, e);
    if (e->op == KP_OP_CONST)
        return constant(b, e, e->value);
    struct kp_term *t = new_term(b, e);
    if (!t)
        return NULL;
    const struct kp_expr **args =
        kp_arena_alloc(b->in->arena, e->n_args, sizeof(struct kp_expr *));
    if (!args)
        return fail(b, kp_err_nomem(b->err));
    t->e.args = args;
    for (size_t i = 0; i < e->n_args; i++) {
        const struct kp_term *a = build(b, e->args[i], arg_is_truth(e, i, truth));
        if (!a)
            return NULL;
        args[i] = &a->e;
    }
    if (truth)
        t->e.operand = false;
    annotate(t);
    struct kp_value v;
    bool lazy = e->op == KP_OP_AND || e->op == KP_OP_OR || e->op == KP_OP_COND;
    if ((lazy || !depends(t)) &&
        kp_expr_eval(&t->e, &(struct kp_env){NULL, NULL}, &v, NULL) == KP_EVAL_VALUE)
        return constant(b, e, v);
    if (e->op == KP_OP_COND && args[0]->op == KP_OP_CONST) {
        int chosen = kp_expr_truth(args[0], &(struct kp_env){NULL, NULL}, NULL);
        return kp_term_arg(t, chosen == 1 ? 1 : 2);
    }
    const struct kp_term *other = other_operand(t, truth);
    return other ? other : t;
}

kopt_status kp_term_build(const struct kp_term_input *in, const struct kp_expr *e,
                          const struct kp_term **out, kopt_error *err)
{
    struct builder b = {.in = in, .err = err};
    *out = build(&b, e, true);
    return *out ? KOPT_OK : b.status;
}

static bool push_atom(struct kp_atoms *a, struct kp_atom atom, struct kp_arena *arena)
{
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 16;
        struct kp_atom *items = kp_arena_alloc(arena, cap, sizeof(*items));
        if (!items)
            return false;
        if (a->n)
            memcpy(items, a->items, a->n * sizeof(*items));
        a->items = items;
        a->cap = cap;
    }
    a->items[a->n++] = atom;
    return true;
}

static const struct kp_term *negated(const struct kp_term *t, struct kp_arena *arena)
{
    struct kp_term *n = kp_arena_alloc(arena, 1, sizeof(*n));
    const struct kp_expr **args = kp_arena_alloc(arena, 1, sizeof(struct kp_expr *));
    if (!n || !args)
        return NULL;
    n->e = t->e;
    n->e.op = KP_OP_NOT;
    n->e.n_args = 1;
    args[0] = &t->e;
    n->e.args = args;
    annotate(n);
    return n;
}

/* not (a or b) is (not a) and (not b). */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static bool add_atoms(struct kp_atoms *a, const struct kp_term *t, uint32_t rule,
                      struct kp_arena *arena)
{
    if (t->e.op == KP_OP_AND)
        return add_atoms(a, kp_term_arg(t, 0), rule, arena) &&
               add_atoms(a, kp_term_arg(t, 1), rule, arena);
    if (t->e.op == KP_OP_NOT && t->e.args[0]->op == KP_OP_OR) {
        const struct kp_term *either = kp_term_arg(t, 0);
        for (size_t i = 0; i < 2; i++) {
            const struct kp_term *n = negated(kp_term_arg(either, i), arena);
            if (!n || !add_atoms(a, n, rule, arena))
                return false;
        }
        return true;
    }
    return push_atom(a, (struct kp_atom){t, rule}, arena);
}

bool kp_atoms_add(struct kp_atoms *a, const struct kp_term *rule_term, uint32_t rule,
                  struct kp_arena *arena)
{
    return add_atoms(a, rule_term, rule, arena);
}
