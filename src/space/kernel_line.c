/* SPDX-License-Identifier: MIT */
/* The directives of a kernel file, read in passes so that their order is free: the language's
 * version; what declares names; lets; what uses names; what uses arguments. Layer: space. */
#include "base/alloc.h"
#include "space/kernel_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- reading one line ---- */

struct kp_token kp_line_peek(const struct kp_line *l)
{
    return kp_lex(l->whole.text, l->pos);
}

bool kp_line_at_end(const struct kp_line *l)
{
    return kp_line_peek(l).kind == KP_TOK_END;
}

struct kp_str kp_line_text(const struct kp_line *l, struct kp_token t)
{
    return (struct kp_str){l->whole.text.ptr + t.pos, t.end - t.pos};
}

bool kp_line_accept(struct kp_line *l, enum kp_tok kind)
{
    struct kp_token t = kp_line_peek(l);
    if (t.kind != kind)
        return false;
    l->pos = t.end;
    return true;
}

bool kp_line_word_is(const struct kp_line *l, const char *word)
{
    return kp_str_is(kp_line_text(l, kp_line_peek(l)), word);
}

bool kp_line_accept_word(struct kp_line *l, const char *word)
{
    if (!kp_line_word_is(l, word))
        return false;
    l->pos = kp_line_peek(l).end;
    return true;
}

kopt_status kp_line_unexpected(const struct kp_line *l, const char *want)
{
    struct kp_token t = kp_line_peek(l);
    struct kp_str found = kp_line_text(l, t);
    int shown = found.len > 40 ? 40 : (int)found.len;
    if (t.kind == KP_TOK_END)
        return kp_piece_fail(l->b, &l->whole, t.pos, "%s expected, found the end of the line",
                             want);
    if (t.kind == KP_TOK_BAD)
        return kp_piece_fail(l->b, &l->whole, t.pos, "'%.*s': %s", shown, found.ptr, t.bad);
    return kp_piece_fail(l->b, &l->whole, t.pos, "%s expected, found '%.*s'", want, shown,
                         found.ptr);
}

kopt_status kp_line_expect(struct kp_line *l, enum kp_tok kind, const char *want)
{
    return kp_line_accept(l, kind) ? KOPT_OK : kp_line_unexpected(l, want);
}

kopt_status kp_line_name(struct kp_line *l, const char *want, struct kp_str *out)
{
    struct kp_token t = kp_line_peek(l);
    *out = kp_line_text(l, t);
    if (t.kind != KP_TOK_NAME || memchr(out->ptr, '.', out->len))
        return kp_line_unexpected(l, want);
    l->pos = t.end;
    return KOPT_OK;
}

struct kp_piece kp_line_rest(const struct kp_line *l)
{
    struct kp_token t =
        kp_line_peek(l); /* positions are those of what is there, not of blanks */
    struct kp_piece rest = {{l->whole.text.ptr + t.pos, l->whole.text.len - t.pos},
                            kp_source_at(&l->whole.where, l->whole.text, t.pos),
                            l->beside};
    return rest;
}

kopt_status kp_line_expr(struct kp_line *l, enum kp_names names, const struct kp_expr **out)
{
    size_t used = 0;
    struct kp_piece rest = kp_line_rest(l);
    kopt_status st = kp_builder_expr(l->b, &rest, names, out, &used);
    l->pos = (size_t)(rest.text.ptr - l->whole.text.ptr) + used;
    return st;
}

int kp_line_number(const struct kp_line *l)
{
    return l->whole.where.line;
}

static bool word_ends(struct kp_str s, size_t i)
{
    return i >= s.len || strchr(" \t\r\n\v\f", s.ptr[i]) != NULL ||
           (s.ptr[i] == '\\' && i + 1 < s.len &&
            (s.ptr[i + 1] == '\n' || s.ptr[i + 1] == '\r'));
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

/* Behind the quoted part at `i`, its content appended to `out`; 0 when it does not end. */
static size_t take_quoted(struct kp_str s, size_t i, struct kp_buf *out)
{
    char quote = s.ptr[i];
    for (i++; i < s.len && s.ptr[i] != '\n'; i++) {
        if (s.ptr[i] == quote)
            return i + 1;
        if (s.ptr[i] == '\\' && i + 1 < s.len &&
            (s.ptr[i + 1] == '\\' || is_quote(s.ptr[i + 1])))
            i++;
        kp_buf_addc(out, s.ptr[i]);
    }
    return 0;
}

kopt_status kp_line_path(struct kp_line *l, const char *want, const char **out)
{
    struct kp_str s = l->whole.text;
    struct kp_token t = kp_line_peek(l);
    struct kp_buf word = KP_BUF_INIT(KP_EXPR_TEXT_MAX);
    *out = NULL;
    if (t.kind == KP_TOK_END)
        return kp_line_unexpected(l, want);
    kopt_status st = KOPT_OK;
    size_t i = t.pos;
    while (st == KOPT_OK && !word_ends(s, i)) {
        size_t from = i;
        if (!is_quote(s.ptr[i]))
            kp_buf_addc(&word, s.ptr[i++]);
        else if ((i = take_quoted(s, i, &word)) == 0)
            st = kp_piece_fail(l->b, &l->whole, from, "a quote without end on its line");
    }
    l->pos = i;
    if (st == KOPT_OK)
        st = kp_buf_status(&word, l->b->err);
    if (st == KOPT_OK)
        st = kp_builder_text(l->b, (struct kp_str){kp_buf_text(&word), word.len}, out);
    kp_buf_deinit(&word);
    return st;
}

kopt_status kp_line_string(struct kp_line *l, const char *want, const char **out)
{
    struct kp_str s;
    struct kp_token t = kp_line_peek(l);
    *out = NULL;
    if (t.kind != KP_TOK_STRING)
        return kp_line_unexpected(l, want);
    l->pos = t.end;
    if (kp_lex_string(kp_line_text(l, t), &l->b->k->arena, &s))
        return kp_builder_text(l->b, s, out);
    if (l->b->k->arena.failed)
        return kp_builder_memory(l->b);
    return kp_piece_fail(l->b, &l->whole, t.pos,
                         "only \\\\, \\' and \\\" may follow a backslash in a string");
}

/* A new name and its slot at the reading position. */
static kopt_status take_name(struct kp_line *l, const char *want, const char **name,
                             uint32_t *slot)
{
    struct kp_str text;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_name(l, want, &text);
    return st == KOPT_OK ? kp_builder_name(l->b, &l->whole, at, text, name, slot) : st;
}

/* ---- declarations ---- */

static kopt_status directive_kernel(struct kp_line *l)
{
    struct kp_str name;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_name(l, "the kernel's name", &name);
    if (st != KOPT_OK)
        return st;
    if (l->b->k->name)
        return kp_piece_fail(l->b, &l->whole, at, "a second kernel: '%s' was named before",
                             l->b->k->name);
    return kp_builder_text(l->b, name, &l->b->k->name);
}

static kopt_status directive_language(struct kp_line *l)
{
    struct kp_token t = kp_line_peek(l);
    if (t.kind != KP_TOK_INT || t.number == 0)
        return kp_line_unexpected(l, "the language's version, an integer");
    l->pos = t.end;
    if (t.number <= KP_LANGUAGE_VERSION)
        return KOPT_OK;
    kopt_status st =
        kp_piece_fail(l->b, &l->whole, t.pos,
                      "the file needs version %" PRIu64 " of the language, this is version %d",
                      t.number, KP_LANGUAGE_VERSION);
    kp_err_hint(l->b->err, "a newer kopt reads it");
    return st;
}

static kopt_status directive_lang(struct kp_line *l)
{
    if (kp_line_accept_word(l, "opencl"))
        l->b->k->lang = KP_LANG_OPENCL;
    else if (kp_line_accept_word(l, "cuda"))
        l->b->k->lang = KP_LANG_CUDA;
    else
        return kp_line_unexpected(l, "'opencl' or 'cuda'");
    return KOPT_OK;
}

static kopt_status constant_of(struct kp_line *l, struct kp_value *out)
{
    const struct kp_expr *e = NULL;
    struct kp_env none = {NULL, NULL};
    struct kp_eval_error why;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_expr(l, KP_NAMES_FIXED, &e);
    if (st != KOPT_OK)
        return st;
    enum kp_outcome o = kp_expr_eval(e, &none, out, &why);
    if (o == KP_EVAL_VALUE)
        return KOPT_OK;
    return kp_piece_fail(l->b, &l->whole, at, "%s",
                         o == KP_EVAL_ERROR ? why.what : "a constant is needed here");
}

static kopt_status directive_problem(struct kp_line *l)
{
    while (!kp_line_at_end(l)) {
        const char *name = NULL;
        uint32_t slot = 0;
        struct kp_value v = kp_int(0);
        bool sizes = !l->b->k->rules_only;
        kopt_status st = take_name(l, "a problem name", &name, &slot);
        bool given = st == KOPT_OK && kp_line_accept(l, KP_TOK_ASSIGN);
        uint32_t at = kp_line_peek(l).pos;
        if (given)
            st = constant_of(l, &v);
        if (st == KOPT_OK && given && sizes && (v.type != KP_INT || v.as.i < 1))
            st = kp_piece_fail(l->b, &l->whole, at, "a size is an integer of at least 1");
        struct kp_problem_name *p = st == KOPT_OK
                                        ? kp_vec_push(l->b, &l->b->problem, sizeof(*p),
                                                      KP_PARAMS_MAX, "problem names", &st)
                                        : NULL;
        if (!p)
            return st;
        *p = (struct kp_problem_name){name, given, v};
        (void)kp_line_accept(l, KP_TOK_COMMA); /* commas may be left out */
    }
    return KOPT_OK;
}

static kopt_status directive_param(struct kp_line *l)
{
    do {
        const char *name = NULL;
        uint32_t slot = 0;
        size_t used = 0;
        kopt_status st = take_name(l, "a parameter's name", &name, &slot);
        if (st != KOPT_OK)
            return st;
        struct kp_piece rest = kp_line_rest(l);
        st = kp_builder_param(l->b, name, slot, &rest, &used);
        if (st != KOPT_OK)
            return st;
        l->pos = (size_t)(rest.text.ptr - l->whole.text.ptr) + used;
        (void)kp_line_accept(l, KP_TOK_COMMA); /* commas may be left out */
    } while (!kp_line_at_end(l));
    return KOPT_OK;
}

static kopt_status directive_prefix(struct kp_line *l)
{
    struct kp_str name;
    kopt_status st = kp_line_name(l, "the beginning of macro names", &name);
    return st == KOPT_OK ? kp_builder_text(l->b, name, &l->b->k->macro_prefix) : st;
}

static kopt_status directive_flags(struct kp_line *l)
{
    kopt_status st = KOPT_OK;
    do {
        const char **flag =
            kp_vec_push(l->b, &l->b->flags, sizeof(*flag), KP_KERNEL_ITEMS_MAX, "flags", &st);
        if (flag)
            st = kp_line_path(l, "a compiler option", flag);
    } while (st == KOPT_OK && !kp_line_at_end(l));
    return st;
}

static kopt_status directive_let(struct kp_line *l)
{
    struct kp_str text;
    const char *name = NULL;
    uint32_t slot = 0;
    const struct kp_expr *e = NULL;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_name(l, "a name", &text);
    if (st == KOPT_OK)
        st = kp_line_expect(l, KP_TOK_ASSIGN, "'='");
    if (st == KOPT_OK)
        st = kp_line_expr(l, KP_NAMES_CONFIG, &e); /* the name is not in force in itself */
    if (st == KOPT_OK)
        st = kp_builder_name(l->b, &l->whole, at, text, &name, &slot);
    return st == KOPT_OK ? kp_builder_let(l->b, name, slot, e, kp_line_number(l)) : st;
}

/* ---- uses ---- */

static kopt_status no_such_value(struct kp_line *l, size_t at, const struct kp_param *p)
{
    kopt_status st =
        kp_piece_fail(l->b, &l->whole, at, "the parameter %s has no such value", p->name);
    kp_param_hint(p, l->b->err);
    return st;
}

static kopt_status directive_default(struct kp_line *l)
{
    do {
        struct kp_str name;
        struct kp_value v = kp_int(0);
        uint32_t at = kp_line_peek(l).pos;
        kopt_status st = kp_line_name(l, "a parameter's name", &name);
        if (st != KOPT_OK)
            return st;
        struct kp_param *p = kp_builder_find_param(l->b, name);
        if (!p)
            return kp_piece_fail(l->b, &l->whole, at, "no parameter is named '%.*s'",
                                 KP_STR_FMT(name));
        st = kp_line_expect(l, KP_TOK_ASSIGN, "'='");
        at = kp_line_peek(l).pos;
        if (st == KOPT_OK)
            st = constant_of(l, &v);
        if (st != KOPT_OK)
            return st;
        p->default_index = kp_param_find(p, v);
        if (p->default_index < 0)
            return no_such_value(l, at, p);
        (void)kp_line_accept(l, KP_TOK_COMMA); /* commas may be left out */
    } while (!kp_line_at_end(l));
    return KOPT_OK;
}

static kopt_status directive_canonical(struct kp_line *l)
{
    struct kp_str name;
    const struct kp_expr *e = NULL;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_name(l, "a parameter's name", &name);
    if (st != KOPT_OK)
        return st;
    const struct kp_param *p = kp_builder_find_param(l->b, name);
    if (!p)
        return kp_piece_fail(l->b, &l->whole, at, "no parameter is named '%.*s'",
                             KP_STR_FMT(name));
    size_t param = (size_t)(p - (const struct kp_param *)l->b->params.items);
    const struct kp_canonical *before = l->b->canonicals.items;
    for (size_t i = 0; i < l->b->canonicals.n; i++) {
        if (before[i].param == param)
            return kp_piece_fail(l->b, &l->whole, at,
                                 "a second 'canonical' of %s: the first is line %d", p->name,
                                 before[i].line);
    }
    st = kp_line_expect(l, KP_TOK_ASSIGN, "'='");
    if (st == KOPT_OK)
        st = kp_line_expr(l, KP_NAMES_CONFIG, &e);
    if (st != KOPT_OK)
        return st;
    struct kp_canonical *c = kp_vec_push(l->b, &l->b->canonicals, sizeof(*c), KP_PARAMS_MAX,
                                         "'canonical' lines", &st);
    if (c)
        *c = (struct kp_canonical){param, e, kp_line_number(l)};
    return st;
}

static kopt_status directive_require(struct kp_line *l)
{
    const struct kp_expr *e = NULL;
    const char *message = NULL;
    struct kp_piece rest = kp_line_rest(l);
    size_t used = 0;
    kopt_status st = kp_builder_expr(l->b, &rest, KP_NAMES_CONFIG, &e, &used);
    if (st != KOPT_OK)
        return st;
    l->pos = (size_t)(rest.text.ptr - l->whole.text.ptr) + used;
    if (kp_line_accept(l, KP_TOK_COLON))
        st = kp_line_string(l, "a message in quotes", &message);
    return st == KOPT_OK ? kp_builder_rule(l->b, &rest, used, e, message) : st;
}

kopt_status kp_line_triple(struct kp_line *l, enum kp_names names, const char *const stop[2],
                           const struct kp_expr *out[3])
{
    size_t n = 0;
    for (; n < 3 && !kp_line_at_end(l); n++) {
        if (stop && (kp_line_word_is(l, stop[0]) || kp_line_word_is(l, stop[1])))
            break;
        kopt_status st = kp_line_expr(l, names, &out[n]);
        if (st != KOPT_OK)
            return st;
        (void)kp_line_accept(l, KP_TOK_COMMA); /* commas may be left out */
    }
    return n > 0 ? KOPT_OK : kp_line_unexpected(l, "a size");
}

static kopt_status once(struct kp_line *l, const char *what, int *line)
{
    if (*line)
        return kp_piece_fail(l->b, &l->whole, kp_line_peek(l).pos,
                             "a second '%s' line: the first is line %d", what, *line);
    *line = kp_line_number(l);
    return KOPT_OK;
}

static kopt_status directive_block(struct kp_line *l)
{
    kopt_status st = once(l, "block", &l->b->k->block_line);
    return st == KOPT_OK ? kp_line_triple(l, KP_NAMES_CONFIG, NULL, l->b->k->block) : st;
}

static kopt_status directive_grid(struct kp_line *l)
{
    kopt_status st = once(l, "grid", &l->b->k->grid_line);
    return st == KOPT_OK ? kp_line_triple(l, KP_NAMES_CONFIG, NULL, l->b->k->grid) : st;
}

static kopt_status directive_shared(struct kp_line *l)
{
    kopt_status st = once(l, "shared", &l->b->k->shared_line);
    return st == KOPT_OK ? kp_line_expr(l, KP_NAMES_CONFIG, &l->b->k->shared) : st;
}

static kopt_status directive_metric(struct kp_line *l)
{
    struct kp_str name;
    const struct kp_expr *e = NULL;
    uint32_t at = kp_line_peek(l).pos;
    kopt_status st = kp_line_name(l, "a metric's name", &name);
    const struct kp_metric *metrics = l->b->metrics.items;
    for (size_t i = 0; st == KOPT_OK && i < l->b->metrics.n; i++) {
        if (kp_str_is(name, metrics[i].name))
            st = kp_piece_fail(l->b, &l->whole, at, "the metric '%s' is there already",
                               metrics[i].name);
    }
    if (st == KOPT_OK)
        st = kp_line_expect(l, KP_TOK_ASSIGN, "'='");
    if (st == KOPT_OK)
        st = kp_line_expr(l, KP_NAMES_METRIC, &e);
    if (st != KOPT_OK)
        return st;
    bool minimise = kp_line_accept_word(l, "min");
    if (!minimise)
        (void)kp_line_accept_word(l, "max"); /* the default */
    struct kp_metric *m =
        kp_vec_push(l->b, &l->b->metrics, sizeof(*m), KP_KERNEL_ITEMS_MAX, "metrics", &st);
    if (!m)
        return st;
    *m = (struct kp_metric){NULL, e, !minimise, kp_line_number(l)};
    return kp_builder_text(l->b, name, &m->name);
}

/* ---- the file ---- */

static const struct directive {
    const char *name;
    int pass;
    bool beside; /* takes expressions side by side */
    bool rules;  /* has a place in a rules file */
    kopt_status (*read)(struct kp_line *l);
} directives[] = {
    {"language", 0, false, true, directive_language},
    {"kernel", 1, false, true, directive_kernel},
    {"lang", 1, false, false, directive_lang},
    {"problem", 1, true, true, directive_problem},
    {"param", 1, false, true, directive_param},
    {"prefix", 1, false, false, directive_prefix},
    {"flags", 1, false, false, directive_flags},
    {"let", 2, false, true, directive_let},
    {"default", 3, true, true, directive_default},
    {"require", 3, false, true, directive_require},
    {"canonical", 3, false, true, directive_canonical},
    {"block", 3, true, false, directive_block},
    {"grid", 3, true, false, directive_grid},
    {"shared", 3, false, false, directive_shared},
    {"arg", 3, true, false, kp_directive_arg},
    {"metric", 3, false, false, directive_metric},
    {"check", 4, true, false, kp_directive_check},
    {"reference", 3, true, false, kp_directive_reference},
};

enum { N_DIRECTIVES = sizeof(directives) / sizeof(directives[0]), PASSES = 5 };

#define RULES_DIRECTIVES "kernel problem param default let require canonical language"

static kopt_status unknown_directive(struct kp_line *l, struct kp_str word)
{
    struct kp_scope_name names[N_DIRECTIVES];
    struct kp_scope scope = {names, N_DIRECTIVES, N_DIRECTIVES};
    for (size_t i = 0; i < N_DIRECTIVES; i++)
        names[i] = (struct kp_scope_name){.name = directives[i].name};
    const char *near = kp_scope_nearest(&scope, word);
    kopt_status st = kp_line_unexpected(l, "a directive");
    if (near)
        kp_err_hint(l->b->err, "did you mean '%s'?", near);
    else if (l->b->k->rules_only)
        kp_err_hint(l->b->err, "directives of a rules file: " RULES_DIRECTIVES);
    else
        kp_err_hint(l->b->err, "directives: kernel lang problem param default let require "
                               "canonical block grid shared arg check reference metric flags "
                               "prefix language");
    return st;
}

static kopt_status no_place_in_rules(struct kp_line *l, const char *name)
{
    kopt_status st = kp_piece_fail(
        l->b, &l->whole, kp_line_peek(l).pos,
        "'%s' has no place in a rules file: it is about a kernel's source or launch", name);
    kp_err_hint(l->b->err, "directives of a rules file: " RULES_DIRECTIVES);
    return st;
}

static kopt_status read_line(struct kp_line *l, int pass)
{
    struct kp_str word = kp_line_text(l, kp_line_peek(l));
    for (size_t i = 0; i < N_DIRECTIVES; i++) {
        if (!kp_str_is(word, directives[i].name))
            continue;
        if (directives[i].pass != pass)
            return KOPT_OK;
        if (l->b->k->rules_only && !directives[i].rules)
            return no_place_in_rules(l, directives[i].name);
        l->pos = kp_line_peek(l).end;
        l->beside = directives[i].beside;
        kopt_status st = directives[i].read(l);
        if (st == KOPT_OK && !kp_line_at_end(l))
            st = kp_line_unexpected(l, "the end of the line");
        return st;
    }
    return pass == 1 ? unknown_directive(l, word) : KOPT_OK;
}

/* The source is walked once, whatever the number of passes. */
static kopt_status find_lines(struct kp_builder *b)
{
    struct kp_pragma_scan scan = {0};
    struct kp_pragma p;
    kopt_status st = KOPT_OK;
    bool rules = b->k->rules_only;
    while (rules ? kp_rules_next(b->k->source, &scan, &p)
                 : kp_pragma_next(b->k->source, &scan, &p)) {
        struct kp_pragma *place = kp_vec_push(b, &b->pragmas, sizeof(p), KP_KERNEL_LINES_MAX,
                                              rules ? "lines" : "'#pragma kopt' lines", &st);
        if (!place) {
            kp_err_wrap(b->err, "%s", b->k->path);
            return st;
        }
        *place = p;
    }
    return KOPT_OK;
}

static kopt_status read_pass(struct kp_builder *b, int pass)
{
    struct kp_str source = b->k->source;
    const struct kp_pragma *pragmas = b->pragmas.items;
    for (size_t i = 0; i < b->pragmas.n; i++) {
        const struct kp_pragma *p = &pragmas[i];
        struct kp_str from_start = {source.ptr + p->start, p->end - p->start};
        struct kp_str rest;
        struct kp_str first = kp_str_cut(from_start, '\n', &rest);
        struct kp_source_pos start = {b->k->path, first.ptr, (int)first.len, p->line, 1};
        struct kp_line l = {.b = b};
        l.whole.text = (struct kp_str){source.ptr + p->text, p->end - p->text};
        l.whole.where = kp_source_at(&start, from_start, p->text - p->start);
        b->line = &l.whole;
        kopt_status st = read_line(&l, pass);
        b->line = NULL;
        if (st != KOPT_OK)
            return st;
    }
    return KOPT_OK;
}

static kopt_status missing(struct kp_builder *b, const char *what, const char *example)
{
    const char *before = b->k->rules_only ? "" : "#pragma kopt ";
    kopt_status st =
        kp_err(b->err, KOPT_EINPUT, "%s: no '%s%s' line", b->k->path, before, what);
    kp_err_hint(b->err, "add a line such as: %s%s", before, example);
    return st;
}

/* Are these lines of rules in a file whose name says that it is a kernel? */
static bool looks_like_rules(const struct kp_builder *b)
{
    struct kp_pragma_scan scan = {0};
    struct kp_pragma p;
    if (b->k->rules_only || b->pragmas.n > 0)
        return false;
    while (kp_rules_next(b->k->source, &scan, &p)) {
        struct kp_str line = {b->k->source.ptr + p.text, p.end - p.text};
        struct kp_str rest;
        if (kp_str_is(kp_str_cut(line, ' ', &rest), "param") && memchr(rest.ptr, '{', rest.len))
            return true;
    }
    return false;
}

static kopt_status wrong_name(struct kp_builder *b)
{
    kopt_status st =
        kp_err(b->err, KOPT_EINPUT,
               "%s: these are rules, but the file's name does not end in .kopt", b->k->path);
    kp_err_hint(b->err, "a name's end says what a file is: .kopt rules, .cu and .cuh CUDA C, "
                        ".json T1, all others OpenCL C");
    return st;
}

kopt_status kp_kernel_read_pragmas(struct kp_builder *b)
{
    kopt_status st = find_lines(b);
    for (int pass = 0; st == KOPT_OK && pass < PASSES; pass++) {
        st = read_pass(b, pass);
        if (st == KOPT_OK && pass > 0 && !b->k->name && looks_like_rules(b))
            return wrong_name(b);
        if (st == KOPT_OK && pass > 0 && !b->k->name)
            return missing(b, "kernel",
                           b->pragmas.n ? "kernel my_kernel"
                                        : "kernel my_kernel (see docs/language.md)");
    }
    if (st != KOPT_OK)
        return st;
    if (b->params.n == 0)
        return missing(b, "param", "param BLOCK {32, 64, 128}");
    if (b->k->rules_only)
        return KOPT_OK;
    if (!b->k->block[0])
        return missing(b, "block", "block BLOCK");
    if (!b->k->grid[0])
        return missing(b, "grid", "grid ceildiv(N, BLOCK)");
    return KOPT_OK;
}
