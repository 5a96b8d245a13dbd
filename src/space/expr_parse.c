/* SPDX-License-Identifier: MIT */
/* Recursive descent, loosest operator first:
 *     test     ?: and "if else"      or  || or      and  && and      not      comparisons and
 * in sum + -  term * / // %         unary - + !    power **         primary Every recursion
 * passes kp_parser_enter(), which limits it. Layer: space. */
#include "space/expr_impl.h"

#include <string.h>

static const struct function {
    const char *name;
    enum kp_func func;
    uint32_t min_args;
    uint32_t max_args; /* 0: any number */
} functions[] = {
    {"min", KP_FN_MIN, 2, 0},     {"max", KP_FN_MAX, 2, 0},   {"ceildiv", KP_FN_CEILDIV, 2, 2},
    {"align", KP_FN_ALIGN, 2, 2}, {"log2", KP_FN_LOG2, 1, 1}, {"is_pow2", KP_FN_IS_POW2, 1, 1},
    {"abs", KP_FN_ABS, 1, 1},     {"sqrt", KP_FN_SQRT, 1, 1}, {"floor", KP_FN_FLOOR, 1, 1},
    {"ceil", KP_FN_CEIL, 1, 1},   {"int", KP_FN_INT, 1, 1},   {"float", KP_FN_FLOAT, 1, 1},
};

static const struct function *find_function(struct kp_str name)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (kp_str_is(name, functions[i].name))
            return &functions[i];
    }
    return NULL;
}

bool kp_expr_reserved(struct kp_str name)
{
    struct kp_token t = kp_lex(name, 0);
    bool list_word =
        kp_str_is(name, "range") || kp_str_is(name, "list") || kp_str_is(name, "tuple");
    return t.kind != KP_TOK_NAME || t.end != name.len || list_word || find_function(name);
}

static struct kp_str token_text(const struct kp_parser *p)
{
    return (struct kp_str){p->text.ptr + p->tok.pos, p->tok.end - p->tok.pos};
}

static bool expect(struct kp_parser *p, enum kp_tok kind, const char *want)
{
    if (p->tok.kind != kind) {
        kp_parser_unexpected(p, want);
        return false;
    }
    kp_parser_next(p);
    return true;
}

/* "')' expected" with the place of its partner. */
static bool expect_close(struct kp_parser *p, uint32_t open)
{
    if (p->tok.kind == KP_TOK_RPAREN) {
        kp_parser_next(p);
        return true;
    }
    bool first = p->status == KOPT_OK;
    kp_parser_unexpected(p, "')'");
    if (first) {
        struct kp_source_pos at = kp_source_at(p->where, p->text, open);
        kp_err_hint(p->err, "'(' was opened at line %d, column %d", at.line, at.column);
    }
    return false;
}

/* ---- primary ---- */

static const struct kp_expr *unknown_name(struct kp_parser *p, struct kp_str name)
{
    bool first = p->status == KOPT_OK;
    kp_parser_fail(p, p->tok.pos, "unknown name '%.*s'", (int)(name.len > 60 ? 60 : name.len),
                   name.ptr);
    const char *near = kp_scope_nearest(p->scope, name);
    if (first && near)
        kp_err_hint(p->err, "did you mean '%s'?", near);
    return NULL;
}

/* A name[3] of a Python file is looked up as it stands. */
static struct kp_str subscripted(struct kp_parser *p, struct kp_str name)
{
    struct kp_token open = kp_lex(p->text, p->tok.end);
    if (p->dialect != KP_DIALECT_PYTHON || open.kind != KP_TOK_LBRACKET || open.space_before)
        return name;
    struct kp_token index = kp_lex(p->text, open.end);
    struct kp_token close = kp_lex(p->text, index.end);
    if (index.kind != KP_TOK_INT || index.space_before || close.kind != KP_TOK_RBRACKET ||
        close.space_before)
        return name;
    p->tok.end = close.end;
    return (struct kp_str){name.ptr, close.end - p->tok.pos};
}

static const struct kp_expr *parse_variable(struct kp_parser *p, struct kp_str name)
{
    int64_t slot = -1;
    for (uint32_t i = p->n_locals; i > 0 && slot < 0; i--) {
        if (kp_str_eq(p->locals[i - 1].name, name))
            slot = p->locals[i - 1].slot;
    }
    if (slot < 0) {
        name = subscripted(p, name);
        slot = kp_scope_find(p->scope, name);
    }
    if (slot < 0)
        return unknown_name(p, name);
    struct kp_expr shape = {
        .op = KP_OP_VAR, .slot = (uint32_t)slot, .pos = p->tok.pos, .end = p->tok.end};
    kp_parser_next(p);
    return kp_parser_node(p, shape, NULL, 0);
}

/* min(NAME) and max(NAME) of a parameter stand for its list. */
static bool list_of_name(struct kp_parser *p, struct kp_exprs *args)
{
    if (p->tok.kind != KP_TOK_NAME || kp_lex(p->text, p->tok.end).kind != KP_TOK_RPAREN)
        return false;
    struct kp_str name = token_text(p);
    for (size_t i = 0; p->scope && i < p->scope->n; i++) {
        const struct kp_scope_name *n = &p->scope->names[i];
        if (!n->values || !kp_str_is(name, n->name))
            continue;
        for (uint32_t v = 0; v < n->n_values; v++)
            kp_exprs_push(p, args, kp_parser_const(p, n->values[v], p->tok.pos, p->tok.end));
        kp_parser_next(p);
        return true;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static bool parse_arguments(struct kp_parser *p, const struct function *f,
                            struct kp_exprs *args)
{
    bool extremum = f->func == KP_FN_MIN || f->func == KP_FN_MAX;
    uint32_t at = p->tok.pos;
    if (extremum && list_of_name(p, args))
        return true;
    if (extremum && (kp_at_list(p) || kp_at_tuple(p))) {
        if (kp_parse_elements(p, args) && args->n == 0)
            kp_parser_fail(p, at, "%s() of an empty list", f->name);
        return p->status == KOPT_OK;
    }
    while (p->tok.kind != KP_TOK_RPAREN) {
        if (!kp_exprs_push(p, args, kp_parse_test(p)))
            return false;
        if (p->tok.kind != KP_TOK_COMMA)
            break;
        kp_parser_next(p);
    }
    if (p->tok.kind != KP_TOK_RPAREN || args->n < f->min_args ||
        (f->max_args && args->n > f->max_args)) {
        if (p->tok.kind == KP_TOK_RPAREN)
            kp_parser_fail(p, p->tok.pos, "%s() takes %s%u argument%s, found %zu", f->name,
                           f->max_args ? "" : "at least ", f->min_args,
                           f->min_args == 1 ? "" : "s", args->n);
        else
            kp_parser_unexpected(p, "',' or ')'");
        return false;
    }
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_call(struct kp_parser *p, const struct function *f)
{
    struct kp_exprs args = {0};
    struct kp_expr shape = {.op = KP_OP_CALL, .func = f->func, .pos = p->tok.pos};
    kp_parser_next(p);
    if (p->tok.kind != KP_TOK_LPAREN)
        return kp_parser_unexpected(p, "'(' behind a function's name");
    uint32_t open = p->tok.pos;
    kp_parser_next(p);
    p->brackets++;
    bool ok = parse_arguments(p, f, &args);
    p->brackets--;
    if (!ok || !expect_close(p, open))
        return NULL;
    shape.end = p->prev_end;
    if (args.n == 1 && f->min_args > 1)
        return args.items[0]; /* min([x]) */
    return kp_parser_node(p, shape, args.items, args.n);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_name(struct kp_parser *p)
{
    struct kp_str name = token_text(p);
    const struct function *f = find_function(name);
    if (f)
        return parse_call(p, f);
    if (kp_scope_find(p->scope, name) < 0 &&
        kp_lex(p->text, p->tok.end).kind == KP_TOK_LPAREN && p->n_locals == 0) {
        kp_parser_fail(p, p->tok.pos, "unknown function '%.*s'",
                       (int)(name.len > 60 ? 60 : name.len), name.ptr);
        if (p->status == KOPT_EINPUT)
            kp_err_hint(p->err, "functions: min max ceildiv align log2 is_pow2 abs sqrt floor "
                                "ceil int float");
        return NULL;
    }
    return parse_variable(p, name);
}

static const struct kp_expr *parse_number(struct kp_parser *p)
{
    struct kp_token t = p->tok;
    if (t.kind == KP_TOK_INT && t.number > INT64_MAX)
        return kp_parser_fail(p, t.pos, "the number does not fit into 64 bits");
    kp_parser_next(p);
    struct kp_value v = t.kind == KP_TOK_INT ? kp_int((int64_t)t.number) : kp_float(t.real);
    return kp_parser_const(p, v, t.pos, t.end);
}

static const struct kp_expr *parse_string(struct kp_parser *p)
{
    struct kp_token t = p->tok;
    struct kp_str s;
    if (!kp_lex_string(token_text(p), p->arena, &s)) {
        if (!kp_parser_memory(p))
            return NULL;
        return kp_parser_fail(p, t.pos,
                              "only \\\\, \\' and \\\" may follow a backslash in a "
                              "string");
    }
    kp_parser_next(p);
    return kp_parser_const(p, kp_string(s), t.pos, t.end);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_primary(struct kp_parser *p)
{
    struct kp_token t = p->tok;
    const struct kp_expr *e = NULL;
    switch ((int)t.kind) {
    case KP_TOK_INT:
    case KP_TOK_FLOAT:
        return parse_number(p);
    case KP_TOK_STRING:
        return parse_string(p);
    case KP_TOK_TRUE:
    case KP_TOK_FALSE:
        kp_parser_next(p);
        return kp_parser_const(p, kp_bool(t.kind == KP_TOK_TRUE), t.pos, t.end);
    case KP_TOK_NAME:
        return parse_name(p);
    case KP_TOK_LPAREN:
        kp_parser_next(p);
        p->brackets++;
        e = kp_parse_test(p);
        p->brackets--;
        return e && expect_close(p, t.pos) ? e : NULL;
    case KP_TOK_LBRACE:
    case KP_TOK_LBRACKET:
        return kp_parser_fail(p, t.pos, "a list stands behind 'in' or inside min() and max()");
    default:
        return kp_parser_unexpected(p, "a value");
    }
}

/* ---- operators ---- */

static const struct kp_expr *unary(struct kp_parser *p, enum kp_op op, uint32_t pos,
                                   const struct kp_expr *arg)
{
    if (!arg)
        return NULL;
    return kp_parser_node(p, (struct kp_expr){.op = op, .pos = pos, .end = p->prev_end}, &arg,
                          1);
}

static const struct kp_expr *binary(struct kp_parser *p, enum kp_op op, const struct kp_expr *a,
                                    const struct kp_expr *b)
{
    const struct kp_expr *args[2] = {a, b};
    if (!a || !b)
        return NULL;
    return kp_parser_node(p, (struct kp_expr){.op = op, .pos = a->pos, .end = b->end}, args, 2);
}

static const struct kp_expr *parse_unary(struct kp_parser *p);

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_power(struct kp_parser *p)
{
    const struct kp_expr *base = parse_primary(p);
    if (!base || p->tok.kind != KP_TOK_STAR2 || !kp_parser_enter(p))
        return base;
    kp_parser_next(p);
    const struct kp_expr *e = binary(p, KP_OP_POW, base, parse_unary(p));
    kp_parser_leave(p);
    return e;
}

/* -9223372036854775808: its digits alone do not fit. */
static const struct kp_expr *least_int(struct kp_parser *p, uint32_t minus)
{
    struct kp_token t = p->tok;
    if (t.kind != KP_TOK_INT || t.number != (uint64_t)1 << 63 ||
        kp_lex(p->text, t.end).kind == KP_TOK_STAR2)
        return NULL;
    kp_parser_next(p);
    return kp_parser_const(p, kp_int(INT64_MIN), minus, t.end);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_unary(struct kp_parser *p)
{
    uint32_t pos = p->tok.pos;
    enum kp_op op;
    if (p->tok.kind == KP_TOK_MINUS)
        op = KP_OP_NEG;
    else if (p->tok.kind == KP_TOK_PLUS)
        op = KP_OP_POS;
    else if (p->tok.kind == KP_TOK_BANG)
        op = KP_OP_NOT;
    else
        return parse_power(p);
    if (!kp_parser_enter(p))
        return NULL;
    kp_parser_next(p);
    const struct kp_expr *e = op == KP_OP_NEG ? least_int(p, pos) : NULL;
    if (!e)
        e = unary(p, op, pos, parse_unary(p));
    kp_parser_leave(p);
    return e;
}

static bool term_op(const struct kp_parser *p, enum kp_op *op)
{
    switch ((int)p->tok.kind) {
    case KP_TOK_STAR:
        *op = KP_OP_MUL;
        return true;
    case KP_TOK_SLASH:
        *op = p->dialect == KP_DIALECT_PYTHON ? KP_OP_TRUEDIV : KP_OP_DIV;
        return true;
    case KP_TOK_SLASH2:
        *op = KP_OP_FLOORDIV;
        return true;
    case KP_TOK_PERCENT:
        *op = KP_OP_MOD;
        return true;
    default:
        return false;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_term(struct kp_parser *p)
{
    const struct kp_expr *e = parse_unary(p);
    enum kp_op op;
    while (e && term_op(p, &op)) {
        kp_parser_next(p);
        e = binary(p, op, e, parse_unary(p));
    }
    return e;
}

/* "BX -1" among expressions side by side: one or two? */
static bool ambiguous_sign(struct kp_parser *p)
{
    if (!p->beside || p->brackets > 0 || !p->tok.space_before ||
        kp_lex(p->text, p->tok.end).space_before)
        return false;
    char sign = p->text.ptr[p->tok.pos];
    kp_parser_fail(p, p->tok.pos,
                   "'%c' may belong to the expression before it or begin another", sign);
    kp_err_hint(p->err, "write 'a %c b' or 'a%cb' for one expression, 'a, %cb' for two", sign,
                sign, sign);
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_sum(struct kp_parser *p)
{
    const struct kp_expr *e = parse_term(p);
    while (e && (p->tok.kind == KP_TOK_PLUS || p->tok.kind == KP_TOK_MINUS)) {
        enum kp_op op = p->tok.kind == KP_TOK_PLUS ? KP_OP_ADD : KP_OP_SUB;
        if (ambiguous_sign(p))
            return NULL;
        kp_parser_next(p);
        e = binary(p, op, e, parse_term(p));
    }
    return e;
}

static bool comparison_op(const struct kp_parser *p, enum kp_op *op)
{
    switch ((int)p->tok.kind) {
    case KP_TOK_LT:
        *op = KP_OP_LT;
        return true;
    case KP_TOK_LE:
        *op = KP_OP_LE;
        return true;
    case KP_TOK_GT:
        *op = KP_OP_GT;
        return true;
    case KP_TOK_GE:
        *op = KP_OP_GE;
        return true;
    case KP_TOK_EQ:
        *op = KP_OP_EQ;
        return true;
    case KP_TOK_NE:
        *op = KP_OP_NE;
        return true;
    case KP_TOK_IN:
        *op = KP_OP_IN;
        return true;
    case KP_TOK_NOT: /* not in */
        *op = KP_OP_NOT;
        return kp_lex(p->text, p->tok.end).kind == KP_TOK_IN;
    default:
        return false;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_membership(struct kp_parser *p, bool negated,
                                              const struct kp_expr *needle)
{
    struct kp_exprs args = {0};
    enum kp_op op;
    kp_parser_next(p);
    if (negated)
        kp_parser_next(p);
    if (!kp_exprs_push(p, &args, needle) || !kp_parse_elements(p, &args))
        return NULL;
    if (comparison_op(p, &op))
        return kp_parser_fail(p, p->tok.pos,
                              "a comparison of a list: use brackets around "
                              "'x in ..'");
    const struct kp_expr *e = kp_parser_node(
        p, (struct kp_expr){.op = KP_OP_IN, .pos = needle->pos, .end = p->prev_end}, args.items,
        args.n);
    return negated ? unary(p, KP_OP_NOT, needle->pos, e) : e;
}

/* A balanced tree: the order of evaluation stays, and long chains stay shallow. */
/* NOLINTNEXTLINE(misc-no-recursion): logarithmic in n */
static const struct kp_expr *join(struct kp_parser *p, struct kp_expr shape,
                                  const struct kp_expr *const *items, size_t n)
{
    if (n == 1)
        return items[0];
    const struct kp_expr *args[2] = {join(p, shape, items, n / 2),
                                     join(p, shape, items + n / 2, n - n / 2)};
    if (!args[0] || !args[1])
        return NULL;
    shape.pos = args[0]->pos;
    shape.end = args[1]->end;
    return kp_parser_node(p, shape, args, 2);
}

/* a < b <= c means a < b and b <= c. */
/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_comparison(struct kp_parser *p)
{
    struct kp_exprs links = {0};
    const struct kp_expr *left = parse_sum(p);
    enum kp_op op;
    while (left && comparison_op(p, &op)) {
        const struct kp_expr *link = NULL;
        if (op == KP_OP_IN || op == KP_OP_NOT) {
            link = parse_membership(p, op == KP_OP_NOT, left);
        } else {
            kp_parser_next(p);
            const struct kp_expr *right = parse_sum(p);
            link = binary(p, op, left, right);
            left = right;
        }
        if (!kp_exprs_push(p, &links, link))
            return NULL;
    }
    if (!left || links.n == 0)
        return left;
    return join(p, (struct kp_expr){.op = KP_OP_AND}, links.items, links.n);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_not(struct kp_parser *p)
{
    uint32_t pos = p->tok.pos;
    if (p->tok.kind != KP_TOK_NOT)
        return parse_comparison(p);
    if (!kp_parser_enter(p))
        return NULL;
    kp_parser_next(p);
    const struct kp_expr *e = unary(p, KP_OP_NOT, pos, parse_not(p));
    kp_parser_leave(p);
    return e;
}

/* A run of one spelling ("and" or "&&") becomes one balanced tree; at a change of spelling the
 * run so far is the first operand of the next. */
/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_chain(struct kp_parser *p, enum kp_op op, enum kp_tok word,
                                         enum kp_tok sign,
                                         const struct kp_expr *(*operand)(struct kp_parser *))
{
    struct kp_exprs run = {0};
    struct kp_expr shape = {.op = op};
    if (!kp_exprs_push(p, &run, operand(p)))
        return NULL;
    while (p->tok.kind == word || p->tok.kind == sign) {
        bool spelled = p->tok.kind == word;
        if (run.n > 1 && spelled != shape.operand) {
            run.items[0] = join(p, shape, run.items, run.n);
            run.n = 1;
            if (!run.items[0])
                return NULL;
        }
        shape.operand = spelled;
        kp_parser_next(p);
        if (!kp_exprs_push(p, &run, operand(p)))
            return NULL;
    }
    return join(p, shape, run.items, run.n);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static const struct kp_expr *parse_and(struct kp_parser *p)
{
    return parse_chain(p, KP_OP_AND, KP_TOK_AND, KP_TOK_AND2, parse_not);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
const struct kp_expr *kp_parse_or(struct kp_parser *p)
{
    return parse_chain(p, KP_OP_OR, KP_TOK_OR, KP_TOK_OR2, parse_and);
}

static const struct kp_expr *conditional(struct kp_parser *p, const struct kp_expr *c,
                                         const struct kp_expr *a, const struct kp_expr *b)
{
    const struct kp_expr *args[3] = {c, a, b};
    if (!c || !a || !b)
        return NULL;
    uint32_t pos = a->pos < c->pos ? a->pos : c->pos;
    return kp_parser_node(p, (struct kp_expr){.op = KP_OP_COND, .pos = pos, .end = b->end},
                          args, 3);
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
const struct kp_expr *kp_parse_test(struct kp_parser *p)
{
    if (!kp_parser_enter(p))
        return NULL;
    const struct kp_expr *e = kp_parse_or(p);
    if (e && p->tok.kind == KP_TOK_QUESTION) {
        kp_parser_next(p);
        p->brackets++;
        const struct kp_expr *a = kp_parse_test(p);
        p->brackets--;
        const struct kp_expr *b = a && expect(p, KP_TOK_COLON, "':'") ? kp_parse_test(p) : NULL;
        e = conditional(p, e, a, b);
    } else if (e && p->tok.kind == KP_TOK_IF) {
        kp_parser_next(p);
        const struct kp_expr *c = kp_parse_or(p);
        const struct kp_expr *b =
            c && expect(p, KP_TOK_ELSE, "'else'") ? kp_parse_test(p) : NULL;
        e = conditional(p, c, e, b);
    }
    kp_parser_leave(p);
    return e;
}

/* ---- doors ---- */

/* NOLINTNEXTLINE(readability-function-size): its parameters are the contract in expr.h */
kopt_status kp_expr_parse(struct kp_str text, const struct kp_scope *scope,
                          enum kp_dialect dialect, const struct kp_source_pos *where,
                          struct kp_arena *arena, const struct kp_expr **out, kopt_error *err)
{
    struct kp_parser p;
    struct kp_parse_input in = {text, scope, dialect, where, arena};
    *out = NULL;
    kp_parser_init(&p, &in, err);
    const struct kp_expr *e = p.status == KOPT_OK ? kp_parse_test(&p) : NULL;
    if (e && p.tok.kind != KP_TOK_END)
        e = kp_parser_unexpected(&p, "the end of the expression");
    *out = e;
    return p.status;
}

kopt_status kp_expr_parse_some(const struct kp_parse_input *in, bool beside,
                               const struct kp_expr **out, size_t *used, kopt_error *err)
{
    struct kp_parser p;
    *out = NULL;
    *used = 0;
    kp_parser_init(&p, in, err);
    p.beside = beside;
    *out = p.status == KOPT_OK ? kp_parse_test(&p) : NULL;
    if (*out)
        *used = p.prev_end;
    return p.status;
}
