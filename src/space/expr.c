/* SPDX-License-Identifier: MIT */
/* Names and the small things every parser needs. Layer: space. */
#include "space/expr.h"

#include "base/alloc.h"
#include "space/expr_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

kopt_status kp_scope_add(struct kp_scope *s, const char *name, uint32_t slot, kopt_error *err)
{
    if (kp_scope_find(s, kp_str_from(name)) >= 0)
        return kp_err(err, KOPT_EUSAGE, "the name '%s' is there already", name);
    if (s->n >= KP_SCOPE_MAX)
        return kp_err(err, KOPT_EUSAGE, "more than %d names", KP_SCOPE_MAX);
    void *items = s->names;
    bool grown = kp_grow(&items, &s->cap, s->n, sizeof(*s->names), KP_SCOPE_MAX);
    s->names = items;
    if (!grown)
        return kp_err_nomem(err);
    s->names[s->n++] = (struct kp_scope_name){.name = name, .slot = slot};
    return KOPT_OK;
}

static const struct kp_scope_name *find_name(const struct kp_scope *s, struct kp_str name)
{
    for (size_t i = 0; s && i < s->n; i++) {
        if (kp_str_is(name, s->names[i].name))
            return &s->names[i];
    }
    return NULL;
}

int64_t kp_scope_find(const struct kp_scope *s, struct kp_str name)
{
    const struct kp_scope_name *n = find_name(s, name);
    return n ? (int64_t)n->slot : -1;
}

void kp_scope_deinit(struct kp_scope *s)
{
    kp_free(s->names);
    *s = (struct kp_scope){0};
}

enum { SLIP_NAME_MAX = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* Edit distance (Levenshtein) without regard to case; large for long names. */
static unsigned distance(struct kp_str a, struct kp_str b)
{
    unsigned row[SLIP_NAME_MAX + 1];
    if (a.len > SLIP_NAME_MAX || b.len > SLIP_NAME_MAX)
        return SLIP_NAME_MAX;
    for (unsigned j = 0; j <= b.len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned up = row[j];
            unsigned change = lower(a.ptr[i - 1]) != lower(b.ptr[j - 1]);
            row[j] = least(least(up, row[j - 1]) + 1, diagonal + change);
            diagonal = up;
        }
    }
    return row[b.len];
}

const char *kp_scope_nearest(const struct kp_scope *s, struct kp_str name)
{
    const char *best = NULL;
    unsigned best_distance = name.len < 4 ? 2 : 3; /* less than this many slips */
    for (size_t i = 0; s && i < s->n; i++) {
        unsigned d = distance(name, kp_str_from(s->names[i].name));
        if (d < best_distance && d < name.len) {
            best_distance = d;
            best = s->names[i].name;
        }
    }
    return best;
}

void kp_parser_init(struct kp_parser *p, const struct kp_parse_input *in, kopt_error *err)
{
    *p = (struct kp_parser){.text = in->text,
                            .scope = in->scope,
                            .dialect = in->dialect,
                            .where = in->where,
                            .arena = in->arena,
                            .err = err};
    for (size_t i = 0; in->scope && i < in->scope->n; i++) {
        if (in->scope->names[i].slot >= p->n_slots)
            p->n_slots = in->scope->names[i].slot + 1;
    }
    if (in->text.len > KP_EXPR_TEXT_MAX) {
        p->text.len = 0;
        kp_parser_fail(p, 0, "an expression of more than %d bytes", KP_EXPR_TEXT_MAX);
        return;
    }
    kp_parser_next(p);
}

void kp_parser_seek(struct kp_parser *p, uint32_t pos)
{
    p->tok = kp_lex(p->text, pos);
    p->prev_end = pos;
}

void kp_parser_next(struct kp_parser *p)
{
    p->prev_end = p->tok.end;
    p->tok = kp_lex(p->text, p->tok.end);
}

void *kp_parser_fail(struct kp_parser *p, uint32_t pos, const char *fmt, ...)
{
    char message[512];
    va_list ap;
    if (p->status != KOPT_OK)
        return NULL;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    p->status = kp_err(p->err, KOPT_EINPUT, "%s", message);
    kp_source_error(p->where, p->text, pos, p->err);
    return NULL;
}

void *kp_parser_unexpected(struct kp_parser *p, const char *want)
{
    struct kp_str found = {p->text.ptr + p->tok.pos, p->tok.end - p->tok.pos};
    int shown = found.len > 40 ? 40 : (int)found.len;
    if (p->status != KOPT_OK)
        return NULL;
    if (p->tok.kind == KP_TOK_BAD)
        return kp_parser_fail(p, p->tok.pos, "'%.*s': %s", shown, found.ptr, p->tok.bad);
    if (p->tok.kind == KP_TOK_END)
        return kp_parser_fail(p, p->tok.pos, "%s expected, found the end", want);
    kp_parser_fail(p, p->tok.pos, "%s expected, found '%.*s'", want, shown, found.ptr);
    if (p->tok.kind == KP_TOK_ASSIGN)
        kp_err_hint(p->err, "compare with ==");
    return NULL;
}

bool kp_parser_memory(struct kp_parser *p)
{
    if (p->status == KOPT_OK && p->arena->over)
        kp_parser_fail(p, p->tok.pos, "the file needs more than %zu MiB of memory",
                       p->arena->max >> 20);
    if (p->status == KOPT_OK && p->arena->failed)
        p->status = kp_err_nomem(p->err);
    return p->status == KOPT_OK;
}

bool kp_parser_enter(struct kp_parser *p)
{
    if (p->nesting >= KP_EXPR_NESTING_MAX) {
        kp_parser_fail(p, p->tok.pos, "nested deeper than %d levels", KP_EXPR_NESTING_MAX);
        return false;
    }
    p->nesting++;
    return p->status == KOPT_OK;
}

void kp_parser_leave(struct kp_parser *p)
{
    p->nesting--;
}

const struct kp_expr *kp_parser_const(struct kp_parser *p, struct kp_value v, uint32_t pos,
                                      uint32_t end)
{
    struct kp_expr *e = kp_arena_alloc(p->arena, 1, sizeof(*e));
    if (!kp_parser_memory(p))
        return NULL;
    *e = (struct kp_expr){.op = KP_OP_CONST, .depth = 1, .pos = pos, .end = end, .value = v};
    return e;
}

static bool foldable(const struct kp_expr *const *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (args[i]->op != KP_OP_CONST)
            return false;
    }
    return n > 0;
}

const struct kp_expr *kp_parser_node(struct kp_parser *p, struct kp_expr shape,
                                     const struct kp_expr *const *args, size_t n)
{
    if (p->status != KOPT_OK)
        return NULL;
    shape.n_args = (uint32_t)n;
    shape.depth = 1;
    for (size_t i = 0; i < n; i++) {
        if (args[i]->depth >= shape.depth)
            shape.depth = (uint16_t)(args[i]->depth + 1);
    }
    if (shape.depth > KP_EXPR_DEPTH_MAX)
        return kp_parser_fail(p, shape.pos, "more than %d operations in a chain",
                              KP_EXPR_DEPTH_MAX);
    struct kp_expr *e = kp_arena_alloc(p->arena, 1, sizeof(*e));
    const struct kp_expr **copy = kp_arena_alloc(p->arena, n, sizeof(const struct kp_expr *));
    if (!kp_parser_memory(p))
        return NULL;
    *e = shape;
    e->args = copy;
    if (n)
        memcpy(copy, args, n * sizeof(const struct kp_expr *));
    struct kp_value v;
    struct kp_env none = {NULL, NULL};
    if (foldable(args, n) && kp_expr_eval(e, &none, &v, NULL) == KP_EVAL_VALUE)
        *e = (struct kp_expr){
            .op = KP_OP_CONST, .depth = 1, .pos = shape.pos, .end = shape.end, .value = v};
    return e;
}

bool kp_exprs_push(struct kp_parser *p, struct kp_exprs *v, const struct kp_expr *e)
{
    if (!e || p->status != KOPT_OK)
        return false;
    if (v->n == v->cap) {
        size_t cap = v->cap ? 2 * v->cap : 4;
        const struct kp_expr **items =
            kp_arena_alloc(p->arena, cap, sizeof(const struct kp_expr *));
        if (!kp_parser_memory(p))
            return false;
        if (v->n)
            memcpy(items, v->items, v->n * sizeof(const struct kp_expr *));
        v->items = items;
        v->cap = cap;
    }
    v->items[v->n++] = e;
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
void kp_expr_slots(const struct kp_expr *e, void (*visit)(void *user, uint32_t slot),
                   void *user)
{
    if (e->op == KP_OP_VAR)
        visit(user, e->slot);
    for (uint32_t i = 0; i < e->n_args; i++)
        kp_expr_slots(e->args[i], visit, user);
}
