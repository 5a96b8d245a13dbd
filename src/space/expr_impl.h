/* SPDX-License-Identifier: MIT */
/* Tokens and the parser's state, shared by expr*.c, list.c and kernel*.c. Layer: space. */
#ifndef KP_SPACE_EXPR_IMPL_H
#define KP_SPACE_EXPR_IMPL_H

#include "space/expr.h"

enum kp_tok {
    KP_TOK_END,
    KP_TOK_BAD, /* `bad` says what is wrong with it */
    KP_TOK_INT,
    KP_TOK_FLOAT,
    KP_TOK_STRING,
    KP_TOK_NAME,
    KP_TOK_TRUE,
    KP_TOK_FALSE,
    KP_TOK_AND, /* and */
    KP_TOK_OR,  /* or */
    KP_TOK_NOT, /* not */
    KP_TOK_IN,
    KP_TOK_IF,
    KP_TOK_ELSE,
    KP_TOK_FOR,
    KP_TOK_PLUS,
    KP_TOK_MINUS,
    KP_TOK_STAR,
    KP_TOK_SLASH,
    KP_TOK_SLASH2,
    KP_TOK_PERCENT,
    KP_TOK_STAR2,
    KP_TOK_LT,
    KP_TOK_LE,
    KP_TOK_GT,
    KP_TOK_GE,
    KP_TOK_EQ,
    KP_TOK_NE,
    KP_TOK_AND2, /* && */
    KP_TOK_OR2,  /* || */
    KP_TOK_BANG,
    KP_TOK_LPAREN,
    KP_TOK_RPAREN,
    KP_TOK_LBRACKET,
    KP_TOK_RBRACKET,
    KP_TOK_LBRACE,
    KP_TOK_RBRACE,
    KP_TOK_COMMA,
    KP_TOK_QUESTION,
    KP_TOK_COLON,
    KP_TOK_DOTS, /* .. */
    KP_TOK_ASSIGN
};

struct kp_token {
    enum kp_tok kind;
    bool space_before;
    uint32_t pos;
    uint32_t end;
    uint64_t number; /* KP_TOK_INT: at most 2^63 */
    double real;     /* KP_TOK_FLOAT */
    const char *bad; /* KP_TOK_BAD: constant text */
};

/* The token at or behind `pos`. Spaces, line ends, a backslash before a line end, comments
 * ("#" to the end of the line, C's) separate tokens. A string token includes its quotes. */
struct kp_token kp_lex(struct kp_str text, size_t pos);

/* The content of a string token: escapes replaced, in the arena. False: bad escape or no memory
 * (the arena's `failed` tells which). */
bool kp_lex_string(struct kp_str quoted, struct kp_arena *arena, struct kp_str *out);

/* Put the position of text[off] into an error; `where` (may be NULL) is that of text[0]. */
void kp_source_error(const struct kp_source_pos *where, struct kp_str text, size_t off,
                     kopt_error *err);
/* The position of text[off] for a sub-text that starts there. */
struct kp_source_pos kp_source_at(const struct kp_source_pos *where, struct kp_str text,
                                  size_t off);

/* Words of the language, functions and whatever is no name cannot name anything else. */
bool kp_expr_reserved(struct kp_str name);

struct kp_local {
    struct kp_str name;
    uint32_t slot;
};

enum { KP_LOCALS_MAX = 16 };

struct kp_parser {
    struct kp_str text;
    const struct kp_scope *scope; /* may be NULL */
    enum kp_dialect dialect;
    const struct kp_source_pos *where;
    struct kp_arena *arena;
    kopt_error *err;
    kopt_status status; /* the first failure; every function then returns NULL or false */
    struct kp_token tok;
    uint32_t prev_end; /* end of the token before `tok` */
    int nesting;
    int brackets;
    bool beside;      /* another expression may follow: a sign must say to which it belongs */
    uint32_t n_slots; /* of the scope; loop variables come behind */
    uint32_t n_locals;
    struct kp_local locals[KP_LOCALS_MAX]; /* loop variables in force */
};

struct kp_parse_input {
    struct kp_str text;
    const struct kp_scope *scope;
    enum kp_dialect dialect;
    const struct kp_source_pos *where;
    struct kp_arena *arena;
};

/* The expression at the start of the text. `beside`: others may stand beside it, so "a -1" is
 * refused as ambiguous. */
kopt_status kp_expr_parse_some(const struct kp_parse_input *in, bool beside,
                               const struct kp_expr **out, size_t *used, kopt_error *err);

void kp_parser_init(struct kp_parser *p, const struct kp_parse_input *in, kopt_error *err);
void kp_parser_seek(struct kp_parser *p, uint32_t pos);
void kp_parser_next(struct kp_parser *p);
/* Record the first failure at text[pos]; always NULL, so that parsers can return it. */
__attribute__((format(printf, 3, 4))) void *kp_parser_fail(struct kp_parser *p, uint32_t pos,
                                                           const char *fmt, ...);
/* "X expected, found Y" at the current token. */
void *kp_parser_unexpected(struct kp_parser *p, const char *want);
/* False (and failure) when out of arena. */
bool kp_parser_memory(struct kp_parser *p);
/* False (and failure) when too deep; each true is undone by kp_parser_leave(). */
bool kp_parser_enter(struct kp_parser *p);
void kp_parser_leave(struct kp_parser *p);
/* The arguments of a node, with constants folded. */
const struct kp_expr *kp_parser_node(struct kp_parser *p, struct kp_expr shape,
                                     const struct kp_expr *const *args, size_t n);
const struct kp_expr *kp_parser_const(struct kp_parser *p, struct kp_value v, uint32_t pos,
                                      uint32_t end);

/* An expression with everything: conditional, logic, ... */
const struct kp_expr *kp_parse_test(struct kp_parser *p);
/* The same without a conditional at its top (the condition of a comprehension). */
const struct kp_expr *kp_parse_or(struct kp_parser *p);

/* Growing array of nodes in the arena. */
struct kp_exprs {
    const struct kp_expr **items;
    size_t n;
    size_t cap;
};
bool kp_exprs_push(struct kp_parser *p, struct kp_exprs *v, const struct kp_expr *e);

/* A list as the elements of `in`, min() or max(): expressions where it is a plain list, else
 * the constants it stands for. */
bool kp_parse_elements(struct kp_parser *p, struct kp_exprs *out);
/* Does the current token begin a list? */
bool kp_at_list(const struct kp_parser *p);
/* Does it open brackets around several values or a loop, rather than around one expression? */
bool kp_at_tuple(const struct kp_parser *p);

#endif
