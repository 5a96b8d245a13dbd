/* SPDX-License-Identifier: MIT */
/* A tunable kernel as its file describes it: `#pragma kopt` lines or T1 JSON; or the rules of
 * one whose source is not at hand. Layer: space.
 *
 * Life: parse (no device, no problem size needed) -> bind to a problem and a device, which
 * gives a space -> geometry, arguments and metrics of one configuration. */
#ifndef KP_SPACE_KERNEL_H
#define KP_SPACE_KERNEL_H

#include "base/arena.h"
#include "base/limits.h"
#include "space/expr.h"
#include "space/space.h"

/* Of the language of kernel files (docs/language.md). It grows with every change that an older
 * kopt would read otherwise or refuse. */
enum { KP_LANGUAGE_VERSION = 2 };

enum kp_lang { KP_LANG_OPENCL, KP_LANG_CUDA };

enum kp_elem {
    KP_I8,
    KP_U8,
    KP_I16,
    KP_U16,
    KP_I32,
    KP_U32,
    KP_I64,
    KP_U64,
    KP_F16,
    KP_BF16,
    KP_F32,
    KP_F64
};
size_t kp_elem_bytes(enum kp_elem e);
const char *kp_elem_name(enum kp_elem e); /* "f32" */
bool kp_elem_is_float(enum kp_elem e);
bool kp_elem_fits(enum kp_elem e, int64_t v); /* into an integer type; true for the others */

/* What a kernel may have, and everybody who handles its data reckons with. */
enum { KP_ARGS_MAX = 256, KP_CHECKS_MAX = 64 };

enum kp_arg_kind { KP_ARG_SCALAR, KP_ARG_BUFFER, KP_ARG_LOCAL };
enum kp_arg_dir { KP_DIR_IN, KP_DIR_OUT, KP_DIR_INOUT };
enum kp_fill {
    KP_FILL_NORMAL,    /* mean a, standard deviation b; the default */
    KP_FILL_UNIFORM,   /* [a, b); integers [a, b] */
    KP_FILL_CONSTANT,  /* a */
    KP_FILL_GENERATOR, /* expression a with the element's index in `i` */
    KP_FILL_FILE       /* raw little-endian bytes from a file beside the kernel file */
};

struct kp_arg {
    const char *name;
    enum kp_arg_kind kind;
    enum kp_elem elem;
    uint32_t lanes;               /* 1; 2, 3, 4, 8, 16 for vector types such as float4 */
    enum kp_arg_dir dir;          /* buffers */
    const struct kp_expr *count;  /* buffers and locals: elements (of `lanes` lanes each) */
    const struct kp_expr *value;  /* scalars */
    enum kp_fill fill;            /* buffers; an out buffer has none (it is poisoned) */
    const struct kp_expr *fill_a; /* normal, uniform, constant, generator: never NULL */
    const struct kp_expr *fill_b; /* normal, uniform: never NULL */
    const char *fill_file;
    int line;
};

enum kp_check_kind {
    KP_CHECK_KERNEL, /* against another kernel of the same source */
    KP_CHECK_C,      /* against a C function, compiled by the host's C compiler */
    KP_CHECK_FILE,   /* against raw bytes of a file */
    KP_CHECK_FILL    /* against a fill: constant or generator expression */
};

struct kp_check_decl {
    size_t arg; /* index of the buffer that is checked */
    enum kp_check_kind kind;
    const char *name;  /* kernel, C function or file */
    const char *path;  /* KP_CHECK_C: the source file, as written */
    enum kp_fill fill; /* KP_CHECK_FILL: KP_FILL_CONSTANT or KP_FILL_GENERATOR */
    const struct kp_expr *fill_a;
    const struct kp_expr *rtol; /* |got - want| <= atol + rtol * |want|; never NULL */
    const struct kp_expr *atol;
    int line;
};

/* A reference kernel's own launch geometry; its arguments are those of the tuned kernel. */
struct kp_reference {
    const char *name;
    const struct kp_expr *block[3]; /* NULL = 1 */
    const struct kp_expr *grid[3];
    int line;
};

struct kp_metric {
    const char *name;
    const struct kp_expr *expr; /* names: problem, device, parameters, lets, time_ns */
    bool maximise;              /* of no effect on the search unless it is the objective */
    int line;
};

struct kp_let {
    const char *name;
    const struct kp_expr *expr;
    uint32_t slot; /* never known: expressions have their lets written out */
    int line;
};

/* A parameter has no effect beyond the value of an expression. */
struct kp_canonical {
    size_t param; /* index */
    const struct kp_expr *expr;
    int line;
};

struct kp_kernel {
    const char *path; /* as given; messages use it */
    const char *name; /* entry point */
    enum kp_lang lang;
    struct kp_str source; /* what is compiled (for T1: the kernel file's text) */
    const char *source_path;
    bool rules_only;            /* a rules file: no source, launch, arguments, checks */
    const char *const *problem; /* names */
    /* Value by problem index where has_problem_default; a kernel's are KP_INT. */
    const struct kp_value *problem_default;
    const bool *has_problem_default;
    size_t n_problem;
    const struct kp_param *params;
    size_t n_params;
    const struct kp_rule *rules;
    size_t n_rules;
    const struct kp_let *lets;
    size_t n_lets;
    const struct kp_canonical *canonicals;
    size_t n_canonicals;
    const struct kp_expr *block[3]; /* work-items of a group; NULL = 1 */
    const struct kp_expr *grid[3];  /* groups; NULL = 1 */
    const struct kp_expr *shared;   /* dynamic shared memory in bytes; NULL = 0 */
    int block_line;                 /* where they were declared; 0 unknown */
    int grid_line;
    int shared_line;
    const struct kp_arg *args;
    size_t n_args;
    const struct kp_check_decl *checks;
    size_t n_checks;
    const struct kp_reference *references;
    size_t n_references;
    const struct kp_metric *metrics;
    size_t n_metrics;
    const char *const *flags; /* compiler options, in order */
    size_t n_flags;
    bool unrolls; /* the source has macros of ours in place of `#pragma unroll NAME` (T1) */
    const char *macro_prefix; /* "" or what stands before each parameter's macro name */
    const char *not_read;  /* what a T1 file asks for and does not get, "Search and Budget" */
    struct kp_scope scope; /* problem, device, parameters, lets, time_ns */
    uint32_t n_slots; /* of the environment: problem, device, parameters, lets, time_ns, i */
    uint32_t slot_time_ns;
    uint32_t slot_index; /* `i` of generators */
    struct kp_arena arena;
};

/* Reads and parses a kernel file (.cl, .cu and the like, by extension or a `#pragma kopt lang`
 * line), a T1 file (.json, Kernel Tuner's or KTT's dialect; its kernel file is found beside
 * it, and a missing one is an error only when need_source) or a rules file (.kopt, which has no
 * source: an error when need_source).
 * Owner: kp_kernel_free(). Errors: KOPT_EIO, KOPT_EINPUT (the file; position,
 * excerpt and hint where it is about a place in it), KOPT_ENOMEM. */
kopt_status kp_kernel_load(const char *path, bool need_source, struct kp_kernel **out,
                           kopt_error *err);
/* The same from memory; `text` is copied. The kernel file of a T1 text is not read. */
kopt_status kp_kernel_parse(const char *path, struct kp_str text, struct kp_kernel **out,
                            kopt_error *err);
void kp_kernel_free(struct kp_kernel *k);

/* Everything that decides what is measured, apart from parameter lists, rules, metrics and
 * defaults: the source without `#pragma kopt` lines, the files it includes (found beside it and
 * in -I folders, recursively), launch geometry, arguments, checks and the reference files,
 * flags. `out`: lower-case hex of SHA-256 (KP_SHA256_HEX + 1 bytes). */
kopt_status kp_kernel_hash(const struct kp_kernel *k, char *out, kopt_error *err);

/* A kernel with its problem and device: fixed slots are known, a space stands over them. */
struct kp_bound {
    const struct kp_kernel *kernel; /* borrowed, outlives it */
    struct kp_value *problem;       /* by problem index */
    struct kp_value *values;        /* by slot */
    unsigned char *known;
    struct kp_space_desc desc;
    struct kp_space *space;
    struct kp_arena arena;
};

/* `problem`: "M=512" texts, each a name of the kernel's problem with an integer of at least 1
 * (of a rules file: with any number or word), or a parameter with one of its values ("BM=64",
 * "BM=32,64"), which narrows the space.
 * `limits` NULL: no device; nothing is bounded.
 * Errors: KOPT_EUSAGE (missing, unknown, repeated or non-positive; the hint lists the names),
 * as kp_space_new(). */
kopt_status kp_kernel_bind(const struct kp_kernel *k, const char *const *problem,
                           size_t n_problem, const struct kp_limits *limits,
                           struct kp_bound **out, kopt_error *err);
/* `problem`: a value for each of the kernel's problem names, in their order: any integer,
 * finite float, boolean or string (copied), whatever the kind of the file. It is for programs
 * that bind many problems in a row. Errors: KOPT_EUSAGE (a float that is not finite), as
 * kp_space_new(). */
kopt_status kp_kernel_bind_values(const struct kp_kernel *k, const struct kp_value *problem,
                                  const struct kp_limits *limits, struct kp_bound **out,
                                  kopt_error *err);
/* The same with a cache for the space (see struct kp_space_cache), which must not outlive the
 * kernel; NULL: none. */
kopt_status kp_kernel_bind_cached(const struct kp_kernel *k, const struct kp_value *problem,
                                  const struct kp_limits *limits, struct kp_space_cache *cache,
                                  struct kp_bound **out, kopt_error *err);
void kp_bound_free(struct kp_bound *b);
/* The environment alone, of such a problem: values[n_slots] and known[n_slots], zeroed by the
 * caller. Words are borrowed from `problem`. */
void kp_kernel_environment(const struct kp_kernel *k, const struct kp_value *problem,
                           const struct kp_limits *limits, struct kp_value *values,
                           unsigned char *known);

/* {"K":512,"M":512,"N":512}, names sorted; {"direction":"B"} for words. */
void kp_bound_problem_json(const struct kp_bound *b, struct kp_buf *out);

/* The declared default (default lines, T1 "Default"), repaired to a valid configuration;
 * without one, the valid configuration nearest to the middle of the value lists. False: empty
 * space. */
bool kp_bound_default(const struct kp_bound *b, uint32_t *config);

/* out[n_params]: the values of a configuration, with those of `canonical` lines in the place of
 * their parameters': configurations that agree here are the same kernel. An expression that
 * cannot be computed, and a string in the place of a number (or the other way round), leave the
 * parameter's own value. Strings are borrowed from the kernel or `b`. Errors: KOPT_ENOMEM. */
kopt_status kp_bound_canonical(const struct kp_bound *b, const uint32_t *config,
                               struct kp_value *out, kopt_error *err);

struct kp_geometry {
    int64_t block[3];
    int64_t grid[3];
    int64_t shared_bytes;
};

/* The launch of a configuration. Errors: KOPT_ERANGE (a size is not positive or overflows;
 * names the line). */
kopt_status kp_bound_geometry(const struct kp_bound *b, const uint32_t *config,
                              struct kp_geometry *out, kopt_error *err);
/* The launch of reference `r`; parameters are not known there. */
kopt_status kp_bound_reference_geometry(const struct kp_bound *b, size_t r,
                                        struct kp_geometry *out, kopt_error *err);

/* Elements of a buffer or local argument / value of a scalar; `config` may be NULL for
 * arguments that do not depend on parameters (buffers may not: that is an error at parse time).
 */
kopt_status kp_bound_arg_count(const struct kp_bound *b, size_t arg, const uint32_t *config,
                               int64_t *count, kopt_error *err);
kopt_status kp_bound_arg_value(const struct kp_bound *b, size_t arg, const uint32_t *config,
                               struct kp_value *value, kopt_error *err);

/* "BM=64" for each parameter and let that is passed as a macro, in order, and what a source
 * that `unrolls` counts on; `visit` gets name and text, valid during the call. */
kopt_status kp_bound_macros(const struct kp_bound *b, const uint32_t *config,
                            void (*visit)(void *user, const char *name, const char *text),
                            void *user, kopt_error *err);

/* Metric `m` at a time; false when it cannot be evaluated. */
bool kp_bound_metric(const struct kp_bound *b, size_t m, const uint32_t *config, double time_ns,
                     double *out);

/* Evaluate any expression of the kernel under a configuration (NULL: parameters not known). */
enum kp_outcome kp_bound_eval(const struct kp_bound *b, const struct kp_expr *e,
                              const uint32_t *config, struct kp_value *out,
                              struct kp_eval_error *why);

#endif
