/* SPDX-License-Identifier: MIT */
/* Lists of values: {16,32}, {1..10}, [2**i for i in range(6)], [1] + list(range(2, 21, 2)).
 * They are parsed to a small tree, then run with the loop variables behind the caller's slots.
 *     list  sum  or  sum if test else list
 *     sum   atom + atom ..
 *     atom  { items }  [ items ]  ( items )  range(..)  list( list )  tuple( list )
 *     items test, a..b or a..b..step, with commas;  or  test for NAME in sum [if or].. [for ..]
 * Layer: space. */
#include "base/alloc.h"
#include "base/map.h"
#include "space/expr_impl.h"

#include <math.h>

enum { LIST_MAX = 1000000, STEPS_MAX = 10000000 };

struct item {
    const struct kp_expr *from;
    const struct kp_expr *to;   /* NULL: `from` alone */
    const struct kp_expr *step; /* NULL: 1 */
};

struct clause {
    uint32_t slot;
    const struct list *over;
    struct kp_exprs conditions;
    const struct clause *inner;
};

enum list_kind { LIST_ITEMS, LIST_RANGE, LIST_SUM, LIST_CHOICE, LIST_LOOP };

struct list {
    enum list_kind kind;
    uint32_t pos;
    const struct item *items; /* ITEMS */
    size_t n_items;
    struct kp_exprs args;    /* RANGE: bounds; CHOICE: condition; LOOP: body */
    const struct list *left; /* SUM, CHOICE */
    const struct list *right;
    const struct clause *loop;
};

/* ---- parsing ---- */

static bool is_word(const struct kp_parser *p, const char *word)
{
    struct kp_str text = {p->text.ptr + p->tok.pos, p->tok.end - p->tok.pos};
    return p->tok.kind == KP_TOK_NAME && kp_str_is(text, word);
}

bool kp_at_list(const struct kp_parser *p)
{
    return p->tok.kind == KP_TOK_LBRACE || p->tok.kind == KP_TOK_LBRACKET ||
           is_word(p, "range") || is_word(p, "list") || is_word(p, "tuple");
}

static struct list *new_list(struct kp_parser *p, enum list_kind kind, uint32_t pos)
{
    struct list *l = kp_arena_alloc(p->arena, 1, sizeof(*l));
    if (!kp_parser_memory(p))
        return NULL;
    l->kind = kind;
    l->pos = pos;
    return l;
}

static struct list *parse_list(struct kp_parser *p);
static struct list *parse_sum(struct kp_parser *p);

/* The first token of one of two kinds in the bracket whose content starts at `t`, not inside
 * brackets of its own; KP_TOK_END if there is none. */
static struct kp_token find_inside(const struct kp_parser *p, struct kp_token t, enum kp_tok a,
                                   enum kp_tok b)
{
    int depth = 0;
    for (; t.kind != KP_TOK_END; t = kp_lex(p->text, t.end)) {
        if (t.kind == KP_TOK_LPAREN || t.kind == KP_TOK_LBRACKET || t.kind == KP_TOK_LBRACE)
            depth++;
        if ((t.kind == KP_TOK_RPAREN || t.kind == KP_TOK_RBRACKET || t.kind == KP_TOK_RBRACE) &&
            depth-- == 0)
            break;
        if (depth == 0 && (t.kind == a || t.kind == b))
            return t;
    }
    return (struct kp_token){.kind = KP_TOK_END};
}

/* The `for` that belongs to the bracket whose content starts at the current token, 0 if none.
 */
static uint32_t find_for(const struct kp_parser *p)
{
    return find_inside(p, p->tok, KP_TOK_FOR, KP_TOK_FOR).pos;
}

bool kp_at_tuple(const struct kp_parser *p)
{
    return p->tok.kind == KP_TOK_LPAREN &&
           find_inside(p, kp_lex(p->text, p->tok.end), KP_TOK_COMMA, KP_TOK_FOR).kind !=
               KP_TOK_END;
}

static bool add_local(struct kp_parser *p, struct kp_str name, uint32_t *slot)
{
    if (p->n_locals == KP_LOCALS_MAX) {
        kp_parser_fail(p, p->tok.pos, "more than %d loop variables", KP_LOCALS_MAX);
        return false;
    }
    if (kp_expr_reserved(name)) {
        kp_parser_unexpected(p, "a name for the loop variable");
        return false;
    }
    *slot = p->n_slots + p->n_locals;
    p->locals[p->n_locals++] = (struct kp_local){name, *slot};
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by KP_LOCALS_MAX and kp_parser_enter() */
static const struct clause *parse_clause(struct kp_parser *p)
{
    struct clause *c = kp_arena_alloc(p->arena, 1, sizeof(*c));
    if (!kp_parser_memory(p))
        return NULL;
    kp_parser_next(p); /* for */
    struct kp_str name = {p->text.ptr + p->tok.pos, p->tok.end - p->tok.pos};
    struct kp_token at = p->tok;
    kp_parser_next(p);
    if (p->tok.kind != KP_TOK_IN)
        return kp_parser_unexpected(p, "'in' behind the loop variable");
    kp_parser_next(p);
    c->over = parse_sum(p); /* its own variable is not in force there */
    if (!c->over)
        return NULL;
    struct kp_token behind = p->tok;
    p->tok = at;
    if (!add_local(p, name, &c->slot))
        return NULL;
    p->tok = behind;
    while (p->tok.kind == KP_TOK_IF) {
        kp_parser_next(p);
        if (!kp_exprs_push(p, &c->conditions, kp_parse_or(p)))
            return NULL;
    }
    if (p->tok.kind == KP_TOK_FOR) {
        c->inner = parse_clause(p);
        if (!c->inner)
            return NULL;
    }
    return c;
}

/* The body stands before the clauses that name its variables: read those first. */
/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_loop(struct kp_parser *p, uint32_t for_pos)
{
    uint32_t body = p->tok.pos;
    uint32_t n_locals = p->n_locals;
    struct list *l = new_list(p, LIST_LOOP, body);
    if (!l)
        return NULL;
    kp_parser_seek(p, for_pos);
    l->loop = parse_clause(p);
    if (!l->loop)
        return NULL;
    struct kp_token behind = p->tok;
    kp_parser_seek(p, body);
    if (!kp_exprs_push(p, &l->args, kp_parse_test(p)))
        return NULL;
    if (p->tok.pos != for_pos)
        return kp_parser_unexpected(p, "'for'");
    p->tok = behind;
    p->n_locals = n_locals;
    return l;
}

struct items {
    struct item *ptr;
    size_t n;
    size_t cap;
};

static struct item *push_item(struct kp_parser *p, struct items *v)
{
    if (v->n == v->cap) {
        size_t cap = v->cap ? 2 * v->cap : 8;
        struct item *ptr = kp_arena_alloc(p->arena, cap, sizeof(*ptr));
        if (!kp_parser_memory(p))
            return NULL;
        for (size_t i = 0; i < v->n; i++)
            ptr[i] = v->ptr[i];
        v->ptr = ptr;
        v->cap = cap;
    }
    return &v->ptr[v->n++];
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static bool parse_item(struct kp_parser *p, struct items *v)
{
    struct item *it = push_item(p, v);
    if (!it)
        return false;
    it->from = kp_parse_test(p);
    if (it->from && p->tok.kind == KP_TOK_DOTS) {
        kp_parser_next(p);
        it->to = kp_parse_test(p);
        if (it->to && p->tok.kind == KP_TOK_DOTS) {
            kp_parser_next(p);
            it->step = kp_parse_test(p);
        }
    }
    return p->status == KOPT_OK;
}

static const char *close_text(enum kp_tok close)
{
    return close == KP_TOK_RBRACE     ? "',' or '}'"
           : close == KP_TOK_RBRACKET ? "',' or ']'"
                                      : "',' or ')'";
}

/* Behind the opening bracket, up to and with the closing one. */
/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_items(struct kp_parser *p, uint32_t open, enum kp_tok close)
{
    struct items v = {0};
    struct list *l = NULL;
    uint32_t for_pos = find_for(p);
    if (for_pos) {
        l = parse_loop(p, for_pos);
    } else {
        l = new_list(p, LIST_ITEMS, open);
        while (l && p->tok.kind != close) {
            if (!parse_item(p, &v))
                return NULL;
            if (p->tok.kind != KP_TOK_COMMA)
                break;
            kp_parser_next(p);
        }
    }
    if (!l)
        return NULL;
    if (p->tok.kind != close)
        return kp_parser_unexpected(p, close_text(close));
    kp_parser_next(p);
    if (!for_pos) {
        l->items = v.ptr;
        l->n_items = v.n;
    }
    return l;
}

/* range(stop), range(start, stop), range(start, stop, step) */
/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_range(struct kp_parser *p)
{
    struct list *l = new_list(p, LIST_RANGE, p->tok.pos);
    kp_parser_next(p);
    if (!l || p->tok.kind != KP_TOK_LPAREN)
        return kp_parser_unexpected(p, "'(' behind range");
    do {
        kp_parser_next(p);
        if (!kp_exprs_push(p, &l->args, kp_parse_test(p)))
            return NULL;
    } while (p->tok.kind == KP_TOK_COMMA);
    if (p->tok.kind != KP_TOK_RPAREN)
        return kp_parser_unexpected(p, "',' or ')'");
    if (l->args.n > 3)
        return kp_parser_fail(p, l->pos, "range() takes 1 to 3 arguments, found %zu",
                              l->args.n);
    kp_parser_next(p);
    return l;
}

/* list(..) and tuple(..) of a list, or of a comprehension without brackets of its own. */
/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_wrapped(struct kp_parser *p)
{
    uint32_t open = p->tok.pos;
    kp_parser_next(p);
    if (p->tok.kind != KP_TOK_LPAREN)
        return kp_parser_unexpected(p, "'(' behind list or tuple");
    kp_parser_next(p);
    if (find_for(p))
        return parse_items(p, open, KP_TOK_RPAREN);
    struct list *l = parse_list(p);
    if (!l)
        return NULL;
    if (p->tok.kind != KP_TOK_RPAREN)
        return kp_parser_unexpected(p, "')'");
    kp_parser_next(p);
    return l;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_bracketed(struct kp_parser *p)
{
    uint32_t open = p->tok.pos;
    enum kp_tok kind = p->tok.kind;
    kp_parser_next(p);
    if (kind == KP_TOK_LBRACE)
        return parse_items(p, open, KP_TOK_RBRACE);
    if (kind == KP_TOK_LBRACKET)
        return parse_items(p, open, KP_TOK_RBRACKET);
    if (!kp_at_list(p))
        return parse_items(p, open, KP_TOK_RPAREN);
    struct list *l = parse_list(p); /* brackets around a list */
    if (!l)
        return NULL;
    if (p->tok.kind != KP_TOK_RPAREN)
        return kp_parser_unexpected(p, "')'");
    kp_parser_next(p);
    return l;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_atom(struct kp_parser *p)
{
    struct list *l = NULL;
    if (!kp_parser_enter(p))
        return NULL;
    p->brackets++;
    if (is_word(p, "range"))
        l = parse_range(p);
    else if (is_word(p, "list") || is_word(p, "tuple"))
        l = parse_wrapped(p);
    else if (p->tok.kind == KP_TOK_LPAREN || kp_at_list(p))
        l = parse_bracketed(p);
    else
        kp_parser_unexpected(p, "a list");
    p->brackets--;
    kp_parser_leave(p);
    return l;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_sum(struct kp_parser *p)
{
    struct list *l = parse_atom(p);
    for (int n = 0; l && p->tok.kind == KP_TOK_PLUS; n++) {
        if (n == KP_EXPR_NESTING_MAX)
            return kp_parser_fail(p, p->tok.pos, "more than %d lists in a sum",
                                  KP_EXPR_NESTING_MAX);
        kp_parser_next(p);
        struct list *sum = new_list(p, LIST_SUM, l->pos);
        struct list *right = sum ? parse_atom(p) : NULL;
        if (!right)
            return NULL;
        sum->left = l;
        sum->right = right;
        l = sum;
    }
    return l;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
static struct list *parse_list(struct kp_parser *p)
{
    struct list *l = parse_sum(p);
    if (!l || p->tok.kind != KP_TOK_IF || !kp_parser_enter(p))
        return l;
    struct list *choice = new_list(p, LIST_CHOICE, l->pos);
    kp_parser_next(p);
    if (!choice || !kp_exprs_push(p, &choice->args, kp_parse_or(p)))
        return NULL;
    if (p->tok.kind != KP_TOK_ELSE)
        return kp_parser_unexpected(p, "'else'");
    kp_parser_next(p);
    choice->left = l;
    choice->right = parse_list(p);
    kp_parser_leave(p);
    return choice->right ? choice : NULL;
}

/* ---- running ---- */

struct values {
    struct kp_value *ptr;
    size_t n;
    size_t cap;
};

struct run {
    struct kp_parser *p;
    struct kp_value *values; /* the caller's environment, then the loop variables */
    unsigned char *known;
    size_t steps;
};

static bool value_of(struct run *r, const struct kp_expr *e, struct kp_value *out)
{
    struct kp_env env = {r->values, r->known};
    struct kp_eval_error why;
    if (++r->steps > STEPS_MAX) {
        kp_parser_fail(r->p, e->pos, "a list that takes more than %d steps to make", STEPS_MAX);
        return false;
    }
    switch (kp_expr_eval(e, &env, out, &why)) {
    case KP_EVAL_VALUE:
        return true;
    case KP_EVAL_UNKNOWN:
        kp_parser_fail(r->p, e->pos, "a list must be known when the file is read");
        break;
    case KP_EVAL_ERROR:
        kp_parser_fail(r->p, why.pos, "%s", why.what);
        break;
    }
    return false;
}

static bool int_of(struct run *r, const struct kp_expr *e, int64_t *out)
{
    struct kp_value v;
    if (!value_of(r, e, &v))
        return false;
    if (v.type != KP_INT && v.type != KP_BOOL) {
        kp_parser_fail(r->p, e->pos, "an integer expected, found a %s", kp_type_name(v.type));
        return false;
    }
    *out = v.type == KP_BOOL ? v.as.b : v.as.i;
    return true;
}

static bool push_value(struct run *r, struct values *out, struct kp_value v, uint32_t pos)
{
    void *items = out->ptr;
    if (out->n == LIST_MAX) {
        kp_parser_fail(r->p, pos, "a list of more than %d values", LIST_MAX);
        return false;
    }
    bool grown = kp_grow(&items, &out->cap, out->n, sizeof(*out->ptr), LIST_MAX);
    out->ptr = items;
    if (!grown) {
        if (r->p->status == KOPT_OK)
            r->p->status = kp_err_nomem(r->p->err);
        return false;
    }
    out->ptr[out->n++] = v;
    return true;
}

/* from, from+step, .. before `stop`, or up to and with it. */
static bool count_up(struct run *r, const int64_t bounds[3], bool inclusive, uint32_t pos,
                     struct values *out)
{
    int64_t v = bounds[0];
    int64_t stop = bounds[1];
    int64_t step = bounds[2];
    if (step == 0) {
        kp_parser_fail(r->p, pos, "a step of 0");
        return false;
    }
    while (step > 0 ? v < stop : v > stop) {
        if (!push_value(r, out, kp_int(v), pos))
            return false;
        if (__builtin_add_overflow(v, step, &v))
            return true;
    }
    return !inclusive || v != stop || push_value(r, out, kp_int(v), pos);
}

static bool run_item(struct run *r, const struct item *it, struct values *out)
{
    struct kp_value v;
    int64_t bounds[3] = {0, 0, 1};
    if (!it->to)
        return value_of(r, it->from, &v) && push_value(r, out, v, it->from->pos);
    if (!int_of(r, it->from, &bounds[0]) || !int_of(r, it->to, &bounds[1]) ||
        (it->step && !int_of(r, it->step, &bounds[2])))
        return false;
    return count_up(r, bounds, true, it->from->pos, out);
}

static bool run_range(struct run *r, const struct list *l, struct values *out)
{
    int64_t bounds[3] = {0, 0, 1};
    size_t first = l->args.n == 1 ? 1 : 0; /* range(stop) */
    for (size_t i = 0; i < l->args.n; i++) {
        if (!int_of(r, l->args.items[i], &bounds[first + i]))
            return false;
    }
    return count_up(r, bounds, false, l->pos, out);
}

static bool run_list(struct run *r, const struct list *l, struct values *out);

static bool is_true(struct run *r, const struct kp_expr *e, bool *out)
{
    struct kp_value v;
    if (!value_of(r, e, &v))
        return false;
    struct kp_env none = {NULL, NULL};
    *out = kp_expr_truth(&(struct kp_expr){.op = KP_OP_CONST, .value = v}, &none, NULL) == 1;
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the parser let the text be */
static bool run_clause(struct run *r, const struct list *l, const struct clause *c,
                       struct values *out)
{
    struct values over = {0};
    bool ok = run_list(r, c->over, &over);
    for (size_t i = 0; ok && i < over.n; i++) {
        bool take = true;
        struct kp_value v;
        r->values[c->slot] = over.ptr[i];
        r->known[c->slot] = 1;
        for (size_t k = 0; ok && take && k < c->conditions.n; k++)
            ok = is_true(r, c->conditions.items[k], &take);
        if (!ok || !take)
            continue;
        if (c->inner)
            ok = run_clause(r, l, c->inner, out);
        else
            ok = value_of(r, l->args.items[0], &v) && push_value(r, out, v, l->pos);
    }
    kp_free(over.ptr);
    return ok;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the parser let the text be */
static bool run_list(struct run *r, const struct list *l, struct values *out)
{
    bool yes = false;
    switch (l->kind) {
    case LIST_ITEMS:
        for (size_t i = 0; i < l->n_items; i++) {
            if (!run_item(r, &l->items[i], out))
                return false;
        }
        return true;
    case LIST_RANGE:
        return run_range(r, l, out);
    case LIST_SUM:
        return run_list(r, l->left, out) && run_list(r, l->right, out);
    case LIST_CHOICE:
        return is_true(r, l->args.items[0], &yes) && run_list(r, yes ? l->left : l->right, out);
    case LIST_LOOP:
        return run_clause(r, l, l->loop, out);
    }
    return false;
}

static bool run(struct kp_parser *p, const struct kp_env *env, const struct list *l,
                struct values *out)
{
    size_t n = (size_t)p->n_slots + KP_LOCALS_MAX;
    struct run r = {.p = p};
    r.values = kp_calloc(n, sizeof(*r.values));
    r.known = kp_calloc(n, 1);
    bool ok = r.values && r.known;
    if (!ok)
        p->status = kp_err_nomem(p->err);
    for (uint32_t i = 0; ok && env && env->known && i < p->n_slots; i++) {
        r.known[i] = env->known[i];
        if (env->known[i])
            r.values[i] = env->values[i];
    }
    ok = ok && run_list(&r, l, out);
    kp_free(r.known);
    kp_free(r.values);
    return ok;
}

/* ---- checks of a parameter's values ---- */

/* Every value of one type; integers beside floats become floats. */
static bool one_type(struct kp_parser *p, struct values *v, uint32_t start)
{
    bool has[4] = {false, false, false, false};
    for (size_t i = 0; i < v->n; i++) {
        has[v->ptr[i].type] = true;
        if (v->ptr[i].type == KP_FLOAT && !isfinite(v->ptr[i].as.f)) {
            kp_parser_fail(p, start, "value %zu of the list is not finite", i + 1);
            return false;
        }
    }
    int kinds = (has[KP_INT] || has[KP_FLOAT]) + has[KP_BOOL] + has[KP_STRING];
    if (kinds > 1) {
        kp_parser_fail(p, start,
                       "a list of mixed types: numbers, booleans and strings do not go "
                       "together");
        return false;
    }
    for (size_t i = 0; has[KP_FLOAT] && i < v->n; i++) {
        if (v->ptr[i].type == KP_INT)
            v->ptr[i] = kp_float((double)v->ptr[i].as.i);
    }
    return true;
}

static bool distinct(struct kp_parser *p, const struct values *v, uint32_t start)
{
    struct kp_map seen = {0};
    struct kp_buf text = KP_BUF_INIT(KP_EXPR_TEXT_MAX);
    for (size_t i = 0; i < v->n && p->status == KOPT_OK; i++) {
        bool added = false;
        struct kp_value value = v->ptr[i];
        if (value.type == KP_FLOAT && value.as.f == 0)
            value.as.f = 0; /* -0.0 is the same number */
        kp_buf_clear(&text);
        kp_value_to_text(value, &text);
        if (text.failed != KOPT_OK || !kp_map_put(&seen, kp_buf_text(&text), text.len, &added))
            p->status = kp_err_nomem(p->err);
        else if (!added)
            kp_parser_fail(p, start, "the value %s stands in the list twice",
                           kp_buf_text(&text));
    }
    kp_buf_deinit(&text);
    kp_map_deinit(&seen);
    return p->status == KOPT_OK;
}

/* NOLINTNEXTLINE(readability-function-size): its parameters are the contract in expr.h */
kopt_status kp_list_parse(struct kp_str text, const struct kp_scope *scope,
                          const struct kp_env *env, enum kp_dialect dialect,
                          const struct kp_source_pos *where, struct kp_arena *arena,
                          struct kp_value **values, size_t *n, size_t *used, kopt_error *err)
{
    struct kp_parser p;
    struct kp_parse_input in = {text, scope, dialect, where, arena};
    struct values v = {0};
    *values = NULL;
    *n = 0;
    *used = 0;
    kp_parser_init(&p, &in, err);
    uint32_t start = p.tok.pos;
    struct list *l = p.status == KOPT_OK ? parse_list(&p) : NULL;
    if (l && run(&p, env, l, &v)) {
        if (v.n == 0)
            kp_parser_fail(&p, start, "a list without values");
        if (p.status == KOPT_OK && one_type(&p, &v, start) && distinct(&p, &v, start)) {
            *values = kp_arena_alloc(arena, v.n, sizeof(**values));
            for (size_t i = 0; *values && i < v.n; i++)
                (*values)[i] = v.ptr[i];
            *n = v.n;
            *used = p.prev_end;
        }
    }
    kp_free(v.ptr);
    kp_parser_memory(&p);
    return p.status;
}

/* NOLINTNEXTLINE(misc-no-recursion): limited by kp_parser_enter() */
bool kp_parse_elements(struct kp_parser *p, struct kp_exprs *out)
{
    struct values v = {0};
    struct list *l = parse_sum(p);
    if (!l)
        return false;
    bool plain = l->kind == LIST_ITEMS;
    for (size_t i = 0; plain && i < l->n_items; i++)
        plain = !l->items[i].to;
    for (size_t i = 0; plain && i < l->n_items; i++)
        kp_exprs_push(p, out, l->items[i].from);
    if (!plain && run(p, NULL, l, &v)) {
        for (size_t i = 0; i < v.n; i++)
            kp_exprs_push(p, out, kp_parser_const(p, v.ptr[i], l->pos, p->prev_end));
    }
    kp_free(v.ptr);
    return p->status == KOPT_OK;
}
