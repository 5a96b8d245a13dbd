/* SPDX-License-Identifier: MIT */
/* How a kernel is put together, shared by the readers of kernel files and T1 files.
 * Layer: space. */
#ifndef KP_SPACE_KERNEL_IMPL_H
#define KP_SPACE_KERNEL_IMPL_H

#include "space/expr_impl.h"
#include "space/kernel.h"

enum {
    KP_KERNEL_FILE_MAX = 16 << 20,   /* bytes of a source or T1 file */
    KP_KERNEL_ARENA_MAX = 512 << 20, /* everything that a kernel holds */
    KP_KERNEL_ITEMS_MAX = 1024,      /* lets, metrics, references, flags: of each */
    KP_KERNEL_LINES_MAX = 100000,    /* pragma lines */
    KP_KERNEL_NODES_MAX = 20000      /* nodes of one expression with its lets written out */
};

/* A growing array in the kernel's arena. */
struct kp_vec {
    void *items;
    size_t n;
    size_t cap;
};

struct kp_problem_name {
    const char *name;
    bool has_default;
    struct kp_value value;
};

struct kp_builder {
    struct kp_vec pragmas;       /* struct kp_pragma: the lines of a kernel file */
    const struct kp_piece *line; /* the one that is read; NULL for none and for T1 */
    struct kp_kernel *k;
    kopt_error *err;
    enum kp_dialect dialect;
    uint32_t next_slot;
    struct kp_vec problem; /* struct kp_problem_name */
    struct kp_vec params;
    struct kp_vec rules;
    struct kp_vec lets;
    struct kp_vec canonicals;
    struct kp_vec args;
    struct kp_vec checks;
    struct kp_vec references;
    struct kp_vec metrics;
    struct kp_vec flags; /* const char * */
};

/* A kernel with nothing but the device's names. Owner: kp_kernel_free(). */
kopt_status kp_builder_init(struct kp_builder *b, const char *path, enum kp_dialect dialect,
                            kopt_error *err);
/* Hand everything to the kernel. */
kopt_status kp_builder_finish(struct kp_builder *b);

/* The error of an allocation in the kernel's arena: KOPT_ENOMEM, or KOPT_EINPUT where the
 * arena's limit is reached. */
kopt_status kp_builder_memory(struct kp_builder *b);

/* A zeroed new element; NULL and an error when there is no memory or there are `max` already
 * (`what` in plural for the message). */
void *kp_vec_push(struct kp_builder *b, struct kp_vec *v, size_t size, size_t max,
                  const char *what, kopt_status *st);

/* A terminated copy in the kernel's arena. Errors: those of kp_builder_memory(). */
kopt_status kp_builder_text(struct kp_builder *b, struct kp_str s, const char **out);

/* A piece of the user's text, for messages and for what is parsed out of it. */
struct kp_piece {
    struct kp_str text;
    struct kp_source_pos where; /* of its first byte */
    bool beside;                /* several expressions may stand side by side in it */
};

/* An error at text[off]. */
__attribute__((format(printf, 4, 5))) kopt_status kp_piece_fail(struct kp_builder *b,
                                                                const struct kp_piece *at,
                                                                size_t off, const char *fmt,
                                                                ...);

/* A new name: not reserved, not there already. Its slot is *slot. */
kopt_status kp_builder_name(struct kp_builder *b, const struct kp_piece *at, size_t off,
                            struct kp_str name, const char **copy, uint32_t *slot);

enum kp_names {
    KP_NAMES_FIXED,  /* problem and device */
    KP_NAMES_INDEX,  /* these and `i` */
    KP_NAMES_CONFIG, /* problem, device, parameters, lets */
    KP_NAMES_METRIC  /* these and time_ns */
};

/* The expression at the start of `at` (all of it where `used` is NULL), with lets written out
 * and nothing in it but what `names` allows. */
kopt_status kp_builder_expr(struct kp_builder *b, const struct kp_piece *at,
                            enum kp_names names, const struct kp_expr **out, size_t *used);
/* An expression that is a number of ours. */
kopt_status kp_builder_const(struct kp_builder *b, struct kp_value v,
                             const struct kp_expr **out);

/* A parameter from the list at the start of `at`. */
kopt_status kp_builder_param(struct kp_builder *b, const char *name, uint32_t slot,
                             const struct kp_piece *at, size_t *used);
kopt_status kp_builder_let(struct kp_builder *b, const char *name, uint32_t slot,
                           const struct kp_expr *e, int line);
kopt_status kp_builder_rule(struct kp_builder *b, const struct kp_piece *at, size_t used,
                            const struct kp_expr *e, const char *message);
struct kp_param *kp_builder_find_param(struct kp_builder *b, struct kp_str name);
/* "its values: 16, 32" as the hint of an error. */
void kp_param_hint(const struct kp_param *p, kopt_error *err);
/* -1: the parameter has no such value. */
int64_t kp_param_find(const struct kp_param *p, struct kp_value v);

/* device.* come first in the environment: values[0 .. kp_device_slots()). `limits` NULL: no
 * device, nothing is bounded. */
uint32_t kp_device_slots(void);
void kp_device_values(const struct kp_limits *limits, struct kp_value *values);

/* "f32", "f32x4". */
bool kp_elem_parse(struct kp_str name, enum kp_elem *elem, uint32_t *lanes);
/* The tolerance of a check that names none. */
double kp_elem_tolerance(enum kp_elem e);
/* What is left out: normal(0, 1) or, for integers, uniform(0, 100); rtol by type, atol = rtol.
 */
kopt_status kp_arg_default_fill(struct kp_builder *b, struct kp_arg *a);
kopt_status kp_check_tolerances(struct kp_builder *b, struct kp_check_decl *c,
                                enum kp_elem elem);

/* ---- loop_unroll_factor_* of T1 files ---- */

#define KP_UNROLL_MACRO "kopt_unroll_" /* stands before the parameter's name */
bool kp_unroll_is_param(const char *name);
/* The source with `#pragma unroll NAME` of such parameters replaced by macros; sets
 * b->k->unrolls where there is one. */
kopt_status kp_unroll_rewrite(struct kp_builder *b, struct kp_str source, struct kp_buf *out);
/* The macro of parameter `name` with the value `v`, appended to name and text. */
void kp_unroll_macro(const char *name, struct kp_value v, struct kp_buf *out_name,
                     struct kp_buf *out);

/* ---- files ---- */

/* Text of a source or T1 file. Errors: KOPT_EIO; KOPT_EINPUT (empty, binary, too large). */
kopt_status kp_text_read(const char *path, struct kp_buf *out, kopt_error *err);
/* `name` beside the file `beside`, unless it is absolute. NULL when out of memory. */
char *kp_text_path(const char *beside, const char *name);

/* ---- pragma lines ---- */

/* Walks C source: comments, strings and raw strings are passed over. Start with all zero. */
struct kp_pragma_scan {
    size_t pos;
    int line;        /* of pos, 0-based */
    bool in_comment; /* at pos */
};

struct kp_pragma {
    size_t start; /* of the (logical) line in the source */
    size_t text;  /* behind "#pragma kopt"; of a rules file: the directive */
    size_t end;   /* of the logical line, its newline not included */
    size_t next;  /* of the next line */
    int line;     /* 1-based */
};

/* The next line of a rules file with something on it but a comment; false when there is none.
 */
bool kp_rules_next(struct kp_str text, struct kp_pragma_scan *scan, struct kp_pragma *out);

/* The next `#pragma kopt` line; false when there is none. */
bool kp_pragma_next(struct kp_str source, struct kp_pragma_scan *scan, struct kp_pragma *out);

/* ---- directives ---- */

struct kp_line {
    struct kp_builder *b;
    struct kp_piece whole; /* from behind "#pragma kopt", where that stands */
    size_t pos;            /* reading position in whole.text */
    bool beside;           /* this directive takes expressions side by side */
};

struct kp_token kp_line_peek(const struct kp_line *l);
bool kp_line_at_end(const struct kp_line *l);
struct kp_str kp_line_text(const struct kp_line *l, struct kp_token t);
/* Takes the token when it is of this kind / this word. */
bool kp_line_accept(struct kp_line *l, enum kp_tok kind);
bool kp_line_word_is(const struct kp_line *l, const char *word);
bool kp_line_accept_word(struct kp_line *l, const char *word);
kopt_status kp_line_expect(struct kp_line *l, enum kp_tok kind, const char *want);
kopt_status kp_line_unexpected(const struct kp_line *l, const char *want);
kopt_status kp_line_name(struct kp_line *l, const char *want, struct kp_str *out);
kopt_status kp_line_expr(struct kp_line *l, enum kp_names names, const struct kp_expr **out);
/* A run of bytes without blanks, in which quotes hold blanks together as in a shell; copied. */
kopt_status kp_line_path(struct kp_line *l, const char *want, const char **out);
kopt_status kp_line_string(struct kp_line *l, const char *want, const char **out);
/* What is left of the line from the reading position. */
struct kp_piece kp_line_rest(const struct kp_line *l);
int kp_line_number(const struct kp_line *l);

kopt_status kp_directive_arg(struct kp_line *l);
kopt_status kp_directive_check(struct kp_line *l);
kopt_status kp_directive_reference(struct kp_line *l);
/* Up to three expressions, with or without commas, until the end or a word of `stop`. */
kopt_status kp_line_triple(struct kp_line *l, enum kp_names names, const char *const stop[2],
                           const struct kp_expr *out[3]);

kopt_status kp_kernel_read_pragmas(struct kp_builder *b);
kopt_status kp_kernel_read_t1(struct kp_builder *b, struct kp_str json, bool from_disk,
                              bool need_source);

#endif
