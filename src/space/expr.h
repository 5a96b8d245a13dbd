/* SPDX-License-Identifier: MIT */
/* Expressions of the kernel-file language: parsing and three-valued evaluation. Layer: space.
 * Grammar and meaning: docs/language.md. */
#ifndef KP_SPACE_EXPR_H
#define KP_SPACE_EXPR_H

#include "base/arena.h"
#include "base/error.h"
#include "space/value.h"

/* The names an expression may use. A name's slot is its index here. */
struct kp_scope {
    struct kp_scope_name *names;
    size_t n;
    size_t cap;
};

struct kp_scope_name {
    const char *name; /* borrowed; "BM", "device.max_threads" */
    uint32_t slot;
    /* A parameter's list, or NULL: min() and max() of this name alone are over these. */
    const struct kp_value *values;
    uint32_t n_values;
};

enum { KP_SCOPE_MAX = 4096 };

/* Errors: KOPT_EUSAGE (the name is there already, too many names), KOPT_ENOMEM. */
kopt_status kp_scope_add(struct kp_scope *s, const char *name, uint32_t slot, kopt_error *err);
/* -1 when unknown. */
int64_t kp_scope_find(const struct kp_scope *s, struct kp_str name);
/* The name most like `name` (a slip of the pen away), or NULL. */
const char *kp_scope_nearest(const struct kp_scope *s, struct kp_str name);
void kp_scope_deinit(struct kp_scope *s);

enum kp_op {
    KP_OP_CONST,
    KP_OP_VAR,
    KP_OP_NEG,
    KP_OP_POS,
    KP_OP_NOT,
    KP_OP_ADD,
    KP_OP_SUB,
    KP_OP_MUL,
    KP_OP_DIV,      /* C's / of two integers truncates; see docs/language.md for T1 files */
    KP_OP_TRUEDIV,  /* Python's /: always a float */
    KP_OP_FLOORDIV, /* Python's // */
    KP_OP_MOD,      /* Python's %: sign of the divisor */
    KP_OP_POW,
    KP_OP_LT,
    KP_OP_LE,
    KP_OP_GT,
    KP_OP_GE,
    KP_OP_EQ,
    KP_OP_NE,
    KP_OP_AND,
    KP_OP_OR,
    KP_OP_COND, /* args: condition, then, else */
    KP_OP_IN,   /* args: needle, list elements.. */
    KP_OP_CALL  /* function in `func` */
};

enum kp_func {
    KP_FN_MIN,
    KP_FN_MAX,
    KP_FN_CEILDIV,
    KP_FN_ALIGN,
    KP_FN_LOG2,
    KP_FN_IS_POW2,
    KP_FN_ABS,
    KP_FN_SQRT,
    KP_FN_FLOOR,
    KP_FN_CEIL,
    KP_FN_INT,
    KP_FN_FLOAT
};

enum {
    KP_EXPR_NESTING_MAX = 200, /* brackets and right-hand operators within each other */
    KP_EXPR_DEPTH_MAX = 1000,  /* levels of the tree: a sum of that many terms */
    KP_EXPR_TEXT_MAX = 1 << 20 /* bytes */
};

struct kp_expr {
    enum kp_op op;
    enum kp_func func;
    bool
        operand; /* KP_OP_AND, KP_OP_OR spelled "and", "or": the value is that of an operand, as
                    in Python; "&&" and "||" give a boolean. No matter to kp_expr_truth(). */
    uint16_t depth; /* 1 for a leaf */
    uint32_t slot;  /* KP_OP_VAR */
    uint32_t n_args;
    uint32_t pos;          /* byte offset of its first character in the parsed text */
    uint32_t end;          /* offset behind its last character */
    struct kp_value value; /* KP_OP_CONST */
    const struct kp_expr **args;
};

/* Where a text stands, for messages. */
struct kp_source_pos {
    const char *file;     /* may be NULL */
    const char *src_line; /* the whole line the text is part of; may be NULL */
    int src_line_len;
    int line;   /* 1-based */
    int column; /* 1-based, of the text's first byte */
};

enum kp_dialect { KP_DIALECT_KOPT, KP_DIALECT_PYTHON }; /* what "/" of two integers means */

/* Parse all of `text`. The tree lives in `arena`.
 * Errors: KOPT_EINPUT with position and excerpt (syntax, unknown name, too deep: nesting is
 * limited to 200 levels), KOPT_ENOMEM. */
kopt_status kp_expr_parse(struct kp_str text, const struct kp_scope *scope,
                          enum kp_dialect dialect, const struct kp_source_pos *where,
                          struct kp_arena *arena, const struct kp_expr **out, kopt_error *err);

/* Values by slot; known[slot] = 0 means "not yet known". */
struct kp_env {
    const struct kp_value *values;
    const unsigned char *known;
};

enum kp_outcome {
    KP_EVAL_VALUE,   /* *out is the value */
    KP_EVAL_UNKNOWN, /* depends on a slot that is not known */
    KP_EVAL_ERROR    /* division by zero, overflow, wrong type: see struct kp_eval_error */
};

struct kp_eval_error {
    uint32_t pos;     /* offset in the parsed text */
    const char *what; /* constant text, "division by zero" */
};

/* Never fails otherwise and allocates nothing; `why` may be NULL. Logic is symmetric: an "and"
 * with a false operand is false and an "or" with a true one is true, also where the other
 * operand is unknown or an error; otherwise unknown comes before error. All other operators:
 * error comes before unknown. So an outcome that was decided on a partial assignment stays as
 * it is on every completion. */
enum kp_outcome kp_expr_eval(const struct kp_expr *e, const struct kp_env *env,
                             struct kp_value *out, struct kp_eval_error *why);

/* Truth of a rule: 1 true, 0 false or error (why->what set for an error, else NULL), -1 not yet
 * known. Numbers count as in Python. */
int kp_expr_truth(const struct kp_expr *e, const struct kp_env *env, struct kp_eval_error *why);

/* Call `visit` for each variable slot in `e` (repeats included). */
void kp_expr_slots(const struct kp_expr *e, void (*visit)(void *user, uint32_t slot),
                   void *user);

/* Parse and evaluate a list of values at once, as in `{16,32,64}`, `[2**i for i in
 * range(0,6)]`,
 * `[1] + list(range(2, 21, 2))`, `{1..10}`, `{"a","b"}`, `{true,false}`. `scope`/`env` give the
 * names usable inside (may be NULL). Values live in `arena`. *used: bytes read of the text.
 * Errors: KOPT_EINPUT (syntax, empty, more than 1,000,000 values, duplicates, mixed types other
 * than int with float). */
kopt_status kp_list_parse(struct kp_str text, const struct kp_scope *scope,
                          const struct kp_env *env, enum kp_dialect dialect,
                          const struct kp_source_pos *where, struct kp_arena *arena,
                          struct kp_value **values, size_t *n, size_t *used, kopt_error *err);

#endif
