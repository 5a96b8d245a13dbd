/* SPDX-License-Identifier: MIT */
/* arg, check and reference lines. Layer: space. */
#include "base/alloc.h"
#include "space/kernel_impl.h"

#include <string.h>

/* ---- fills ---- */

/* Up to two expressions in brackets, or none and no brackets; the numbers stand in for what is
 * left out. */
static kopt_status fill_numbers(struct kp_line *l, struct kp_arg *a, struct kp_value first,
                                struct kp_value second)
{
    kopt_status st = kp_builder_const(l->b, first, &a->fill_a);
    if (st == KOPT_OK)
        st = kp_builder_const(l->b, second, &a->fill_b);
    if (st != KOPT_OK || !kp_line_accept(l, KP_TOK_LPAREN))
        return st;
    st = kp_line_expr(l, KP_NAMES_FIXED, &a->fill_a);
    if (st == KOPT_OK)
        st = kp_line_expect(l, KP_TOK_COMMA, "','");
    if (st == KOPT_OK)
        st = kp_line_expr(l, KP_NAMES_FIXED, &a->fill_b);
    return st == KOPT_OK ? kp_line_expect(l, KP_TOK_RPAREN, "')'") : st;
}

static kopt_status fill_one(struct kp_line *l, enum kp_names names, const struct kp_expr **out)
{
    kopt_status st = kp_line_expect(l, KP_TOK_LPAREN, "'('");
    if (st == KOPT_OK)
        st = kp_line_expr(l, names, out);
    return st == KOPT_OK ? kp_line_expect(l, KP_TOK_RPAREN, "')'") : st;
}

static kopt_status fill_file(struct kp_line *l, const char **path)
{
    kopt_status st = kp_line_expect(l, KP_TOK_LPAREN, "'('");
    if (st == KOPT_OK)
        st = kp_line_string(l, "a file's name in quotes", path);
    return st == KOPT_OK ? kp_line_expect(l, KP_TOK_RPAREN, "')'") : st;
}

/* Integers have no use for N(0, 1): they default to 0..100. */
static struct kp_value default_upper(const struct kp_arg *a)
{
    return kp_elem_is_float(a->elem) ? kp_float(1) : kp_int(100);
}

static kopt_status read_fill(struct kp_line *l, struct kp_arg *a, bool *found)
{
    *found = true;
    if (kp_line_accept_word(l, "normal")) {
        a->fill = KP_FILL_NORMAL;
        return fill_numbers(l, a, kp_float(0), kp_float(1));
    }
    if (kp_line_accept_word(l, "uniform")) {
        a->fill = KP_FILL_UNIFORM;
        return fill_numbers(l, a, kp_int(0), default_upper(a));
    }
    if (kp_line_accept_word(l, "constant")) {
        a->fill = KP_FILL_CONSTANT;
        return fill_one(l, KP_NAMES_FIXED, &a->fill_a);
    }
    if (kp_line_accept_word(l, "gen")) {
        a->fill = KP_FILL_GENERATOR;
        return fill_one(l, KP_NAMES_INDEX, &a->fill_a);
    }
    if (kp_line_accept_word(l, "file")) {
        a->fill = KP_FILL_FILE;
        return fill_file(l, &a->fill_file);
    }
    *found = false;
    return KOPT_OK;
}

kopt_status kp_arg_default_fill(struct kp_builder *b, struct kp_arg *a)
{
    bool is_float = kp_elem_is_float(a->elem);
    a->fill = is_float ? KP_FILL_NORMAL : KP_FILL_UNIFORM;
    kopt_status st = kp_builder_const(b, is_float ? kp_float(0) : kp_int(0), &a->fill_a);
    return st == KOPT_OK ? kp_builder_const(b, default_upper(a), &a->fill_b) : st;
}

/* ---- arguments ---- */

static kopt_status read_count(struct kp_line *l, enum kp_names names, struct kp_arg *a)
{
    kopt_status st = kp_line_expect(l, KP_TOK_LBRACKET, "'['");
    if (st == KOPT_OK)
        st = kp_line_expr(l, names, &a->count);
    return st == KOPT_OK ? kp_line_expect(l, KP_TOK_RBRACKET, "']'") : st;
}

static kopt_status read_buffer(struct kp_line *l, struct kp_arg *a)
{
    bool filled = false;
    a->kind = KP_ARG_BUFFER;
    kopt_status st = read_count(l, KP_NAMES_FIXED, a);
    if (st != KOPT_OK)
        return st;
    if (kp_line_accept_word(l, "out"))
        a->dir = KP_DIR_OUT;
    else if (kp_line_accept_word(l, "inout"))
        a->dir = KP_DIR_INOUT;
    else
        (void)kp_line_accept(l, KP_TOK_IN); /* the default */
    uint32_t at = kp_line_peek(l).pos;
    st = read_fill(l, a, &filled);
    if (st == KOPT_OK && filled && a->dir == KP_DIR_OUT) {
        st = kp_piece_fail(l->b, &l->whole, at, "an 'out' buffer has no fill");
        kp_err_hint(l->b->err, "use 'inout' when the kernel reads what is there before");
    }
    if (st == KOPT_OK && !filled && a->dir != KP_DIR_OUT)
        st = kp_arg_default_fill(l->b, a);
    return st;
}

static kopt_status read_type(struct kp_line *l, struct kp_arg *a)
{
    struct kp_str type = kp_line_text(l, kp_line_peek(l));
    if (!kp_elem_parse(type, &a->elem, &a->lanes)) {
        kopt_status st = kp_line_unexpected(l, "a type");
        kp_err_hint(l->b->err, "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64; f32x4 for "
                               "vectors (2, 3, 4, 8, 16)");
        return st;
    }
    l->pos = kp_line_peek(l).end;
    return KOPT_OK;
}

/* The value of a scalar that is only named. */
static kopt_status named_value(struct kp_line *l, struct kp_str name, uint32_t at,
                               struct kp_arg *a)
{
    if (kp_scope_find(&l->b->k->scope, name) < 0) {
        kopt_status st = kp_piece_fail(l->b, &l->whole, at,
                                       "the argument '%.*s' has no type and is no problem size",
                                       KP_STR_FMT(name));
        kp_err_hint(l->b->err, "NAME f32[count] is a buffer, NAME f32 = 1.5 a scalar");
        return st;
    }
    struct kp_piece piece = {name, kp_source_at(&l->whole.where, l->whole.text, at), false};
    return kp_builder_expr(l->b, &piece, KP_NAMES_CONFIG, &a->value, NULL);
}

static kopt_status read_scalar(struct kp_line *l, struct kp_str name, uint32_t at,
                               struct kp_arg *a)
{
    if (a->lanes != 1)
        return kp_piece_fail(l->b, &l->whole, at, "a scalar argument has no vector type");
    if (kp_line_accept(l, KP_TOK_ASSIGN))
        return kp_line_expr(l, KP_NAMES_CONFIG, &a->value);
    return named_value(l, name, at, a);
}

static kopt_status read_arg(struct kp_line *l, struct kp_arg *a)
{
    struct kp_str name;
    enum kp_elem elem;
    uint32_t lanes;
    uint32_t at = kp_line_peek(l).pos;
    *a = (struct kp_arg){.elem = KP_I32, .lanes = 1, .line = kp_line_number(l)};
    kopt_status st = kp_line_name(l, "an argument's name", &name);
    const struct kp_arg *args = l->b->args.items;
    for (size_t i = 0; st == KOPT_OK && i < l->b->args.n; i++) {
        if (kp_str_is(name, args[i].name))
            st = kp_piece_fail(l->b, &l->whole, at, "the argument '%.*s' is there already",
                               KP_STR_FMT(name));
    }
    if (st == KOPT_OK)
        st = kp_builder_text(l->b, name, &a->name);
    if (st != KOPT_OK)
        return st;
    if (kp_line_accept_word(l, "local")) {
        a->kind = KP_ARG_LOCAL;
        st = read_type(l, a);
        return st == KOPT_OK ? read_count(l, KP_NAMES_CONFIG, a) : st;
    }
    struct kp_token second = kp_line_peek(l);
    enum kp_tok third = kp_lex(l->whole.text, second.end).kind;
    bool typed = kp_elem_parse(kp_line_text(l, second), &elem, &lanes) ||
                 (second.kind == KP_TOK_NAME &&
                  (third == KP_TOK_LBRACKET || third == KP_TOK_ASSIGN)); /* a wrong one */
    if (typed)
        st = read_type(l, a);
    if (st != KOPT_OK)
        return st;
    if (kp_line_peek(l).kind == KP_TOK_LBRACKET)
        return typed ? read_buffer(l, a) : kp_line_unexpected(l, "a type");
    return read_scalar(l, name, at, a);
}

kopt_status kp_directive_arg(struct kp_line *l)
{
    do {
        struct kp_arg a;
        if (l->b->args.n == KP_ARGS_MAX)
            return kp_piece_fail(l->b, &l->whole, kp_line_peek(l).pos, "more than %d arguments",
                                 KP_ARGS_MAX);
        kopt_status st = read_arg(l, &a);
        struct kp_arg *place = st == KOPT_OK ? kp_vec_push(l->b, &l->b->args, sizeof(a),
                                                           KP_ARGS_MAX, "arguments", &st)
                                             : NULL;
        if (!place)
            return st;
        *place = a;
        (void)kp_line_accept(l, KP_TOK_COMMA); /* commas may be left out */
    } while (!kp_line_at_end(l));
    return KOPT_OK;
}

/* ---- checks ---- */

static const char want_reference[] =
    "FILE.c, kernel NAME, file \"PATH\", constant(..) or gen(..)";

/* FILE.c or FILE.c:function; the function's default is the file's name. */
static kopt_status check_c(struct kp_line *l, struct kp_check_decl *c)
{
    const char *word = NULL;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_path(l, want_reference, &word);
    if (st != KOPT_OK)
        return st;
    const char *end = word + strlen(word);
    const char *colon = strrchr(word, ':');
    const char *path_end = colon ? colon : end;
    if (path_end - word < 3 || memcmp(path_end - 2, ".c", 2) != 0 || (colon && !colon[1])) {
        l->pos = at;
        return kp_line_unexpected(l, want_reference);
    }
    const char *slash = word;
    for (const char *p = word; p < path_end; p++) {
        if (*p == '/')
            slash = p + 1;
    }
    struct kp_str function =
        colon ? kp_str_from(colon + 1) : (struct kp_str){slash, (size_t)(path_end - 2 - slash)};
    c->kind = KP_CHECK_C;
    st = kp_builder_text(l->b, (struct kp_str){word, (size_t)(path_end - word)}, &c->path);
    return st == KOPT_OK ? kp_builder_text(l->b, function, &c->name) : st;
}

static kopt_status check_against(struct kp_line *l, struct kp_check_decl *c)
{
    struct kp_str name;
    if (kp_line_accept_word(l, "kernel")) {
        kopt_status st = kp_line_name(l, "a kernel's name", &name);
        c->kind = KP_CHECK_KERNEL;
        return st == KOPT_OK ? kp_builder_text(l->b, name, &c->name) : st;
    }
    if (kp_line_accept_word(l, "file")) {
        c->kind = KP_CHECK_FILE;
        if (kp_line_peek(l).kind == KP_TOK_LPAREN)
            return fill_file(l, &c->name);
        return kp_line_path(l, "a file's name", &c->name);
    }
    c->kind = KP_CHECK_FILL;
    c->name = "fill";
    if (kp_line_accept_word(l, "constant")) {
        c->fill = KP_FILL_CONSTANT;
        return fill_one(l, KP_NAMES_FIXED, &c->fill_a);
    }
    if (kp_line_accept_word(l, "gen")) {
        c->fill = KP_FILL_GENERATOR;
        return fill_one(l, KP_NAMES_INDEX, &c->fill_a);
    }
    return check_c(l, c);
}

kopt_status kp_check_tolerances(struct kp_builder *b, struct kp_check_decl *c,
                                enum kp_elem elem)
{
    kopt_status st = KOPT_OK;
    if (!c->rtol)
        st = kp_builder_const(b, kp_float(kp_elem_tolerance(elem)), &c->rtol);
    if (!c->atol)
        c->atol = c->rtol;
    return st;
}

static kopt_status check_tolerances(struct kp_line *l, struct kp_check_decl *c,
                                    enum kp_elem elem)
{
    kopt_status st = KOPT_OK;
    while (st == KOPT_OK && !kp_line_at_end(l)) {
        if (kp_line_accept_word(l, "rtol"))
            st = kp_line_expr(l, KP_NAMES_FIXED, &c->rtol);
        else if (kp_line_accept_word(l, "atol"))
            st = kp_line_expr(l, KP_NAMES_FIXED, &c->atol);
        else
            return kp_line_unexpected(l, "'rtol' or 'atol'");
    }
    return st == KOPT_OK ? kp_check_tolerances(l->b, c, elem) : st;
}

static kopt_status checked_arg(struct kp_line *l, size_t *index)
{
    struct kp_str name;
    uint32_t at = kp_line_peek(l).pos;
    const struct kp_arg *args = l->b->args.items;
    kopt_status st = kp_line_name(l, "an argument's name", &name);
    if (st != KOPT_OK)
        return st;
    for (size_t i = 0; i < l->b->args.n; i++) {
        if (!kp_str_is(name, args[i].name))
            continue;
        *index = i;
        if (args[i].kind == KP_ARG_BUFFER && args[i].dir != KP_DIR_IN)
            return KOPT_OK;
        return kp_piece_fail(l->b, &l->whole, at,
                             "'%s' is no buffer that the kernel writes (out or inout)",
                             args[i].name);
    }
    return kp_piece_fail(l->b, &l->whole, at, "no argument is named '%.*s'", KP_STR_FMT(name));
}

static bool has_reference(struct kp_builder *b, const char *name)
{
    const struct kp_reference *references = b->references.items;
    for (size_t i = 0; i < b->references.n; i++) {
        if (strcmp(references[i].name, name) == 0)
            return true;
    }
    return false;
}

kopt_status kp_directive_check(struct kp_line *l)
{
    struct kp_check_decl c = {.line = kp_line_number(l)};
    if (l->b->checks.n == KP_CHECKS_MAX)
        return kp_piece_fail(l->b, &l->whole, kp_line_peek(l).pos, "more than %d checks",
                             KP_CHECKS_MAX);
    kopt_status st = checked_arg(l, &c.arg);
    if (st != KOPT_OK)
        return st;
    if (!kp_line_accept_word(l, "against"))
        return kp_line_unexpected(l, "'against'");
    uint32_t at = kp_line_peek(l).pos;
    st = check_against(l, &c);
    if (st == KOPT_OK && c.kind == KP_CHECK_KERNEL && !has_reference(l->b, c.name)) {
        st = kp_piece_fail(l->b, &l->whole, at, "the launch of the kernel '%s' is not given",
                           c.name);
        kp_err_hint(l->b->err, "add: #pragma kopt reference %s block .. grid ..", c.name);
    }
    if (st == KOPT_OK)
        st = check_tolerances(l, &c, ((const struct kp_arg *)l->b->args.items)[c.arg].elem);
    struct kp_check_decl *place = st == KOPT_OK ? kp_vec_push(l->b, &l->b->checks, sizeof(c),
                                                              KP_CHECKS_MAX, "checks", &st)
                                                : NULL;
    if (place)
        *place = c;
    return st;
}

kopt_status kp_directive_reference(struct kp_line *l)
{
    static const char *const words[2] = {"block", "grid"};
    struct kp_reference r = {.line = kp_line_number(l)};
    struct kp_str name;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_name(l, "a kernel's name", &name);
    if (st == KOPT_OK)
        st = kp_builder_text(l->b, name, &r.name);
    if (st == KOPT_OK && has_reference(l->b, r.name))
        st = kp_piece_fail(l->b, &l->whole, at, "the launch of '%s' is given already", r.name);
    while (st == KOPT_OK && !kp_line_at_end(l)) {
        if (kp_line_accept_word(l, "block"))
            st = kp_line_triple(l, KP_NAMES_FIXED, words, r.block);
        else if (kp_line_accept_word(l, "grid"))
            st = kp_line_triple(l, KP_NAMES_FIXED, words, r.grid);
        else
            st = kp_line_unexpected(l, "'block' or 'grid'");
    }
    if (st == KOPT_OK && (!r.block[0] || !r.grid[0]))
        st = kp_line_unexpected(l, r.block[0] ? "'grid'" : "'block'");
    struct kp_reference *place = st == KOPT_OK
                                     ? kp_vec_push(l->b, &l->b->references, sizeof(r),
                                                   KP_KERNEL_ITEMS_MAX, "references", &st)
                                     : NULL;
    if (place)
        *place = r;
    return st;
}
