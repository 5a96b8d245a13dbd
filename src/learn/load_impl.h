/* SPDX-License-Identifier: MIT */
/* How files become data sets: readers hand rows over as named texts; the intake decides what is
 * a field and what is a target, keeps the rows that count, and in the end, when all values are
 * known, makes the data set. Layer: learn. */
#ifndef KP_LEARN_LOAD_IMPL_H
#define KP_LEARN_LOAD_IMPL_H

#include "learn/load.h"

#include "base/map.h"

enum {
    KP_LOAD_ROWS_MAX = 1 << 24,
    KP_LOAD_TEXT_MAX = 1 << 16,  /* bytes of a name, a value, a key */
    KP_LOAD_CELLS_MAX = 1 << 10, /* of a row */
    KP_LOAD_SLOTS_MAX = KP_FIELDS_MAX + KP_TARGETS_MAX
};

enum kp_cell_kind {
    KP_CELL_COLUMN,  /* rules or options say what it is */
    KP_CELL_PROBLEM, /* the source says that it belongs to the problem */
    KP_CELL_CONFIG,  /* .. to the configuration */
    KP_CELL_ABOUT    /* about the measurement: only `where` may look at it */
};

/* Borrowed. */
struct kp_cell {
    const char *name;
    struct kp_str text;
    enum kp_cell_kind kind;
};

struct kp_cells {
    struct kp_cell *cells;
    size_t n;
    size_t cap;
};

/* KOPT_ERANGE where there are KP_LOAD_CELLS_MAX already. */
kopt_status kp_cells_add(struct kp_cells *c, const char *name, struct kp_str text,
                         enum kp_cell_kind kind, kopt_error *err);
void kp_cells_deinit(struct kp_cells *c);

/* A text that occurs, once. */
struct kp_text {
    struct kp_str text;
    struct kp_value value; /* a number where it is one, else the text */
};

/* A target of the rules. */
struct kp_listed {
    const struct kp_param *param;
    struct kp_value *extra; /* values that its list lacks */
    size_t n_extra;
    size_t cap_extra;
};

struct kp_intake {
    const char *path; /* for messages */
    const struct kp_load_options *o;
    struct kp_load_report *report;
    kopt_error *err;
    const char *kernel;
    const char *derived[KP_FIELDS_MAX]; /* names of lets */
    size_t n_derived;
    /* Fields, then targets. `at`: where in a row's cells it was last found. */
    const char *names[KP_LOAD_SLOTS_MAX];
    size_t at[KP_LOAD_SLOTS_MAX];
    size_t of_rules[KP_FIELDS_MAX]; /* the field's index in the rules' problem, or SIZE_MAX */
    size_t n_fields;
    size_t n_targets; /* 0: no row was seen */
    struct kp_listed listed[KP_TARGETS_MAX];
    size_t n_values[KP_TARGETS_MAX]; /* different texts */
    struct kp_map seen;              /* (target, text): as enum fit in load_intake.c */
    struct kp_map index;             /* of texts */
    struct kp_text *texts;
    size_t n_texts;
    size_t cap_texts;
    uint32_t *cells; /* [n_rows][n_fields + n_targets]: texts */
    size_t cap_cells;
    size_t source_slot; /* the field `source`; SIZE_MAX: there is none */
    const char *source; /* of the rows that come now */
    bool helps;         /* they only help training */
    uint32_t *keys;     /* [n_rows]: texts; UINT32_MAX: none */
    size_t cap_keys;
    float *times;
    size_t cap_times;
    int64_t *lines;
    size_t cap_lines;
    size_t n_rows;
    struct kp_arena arena;
};

void kp_intake_init(struct kp_intake *in, const char *path, const struct kp_load_options *o,
                    struct kp_load_report *report, kopt_error *err);
void kp_intake_deinit(struct kp_intake *in);

struct kp_row_about {
    const char *key; /* NULL: made of the fields */
    double time_ns;  /* NaN: not known; infinity: it failed */
    int64_t line;
};
/* One row. What is wrong with it alone is counted. Errors: KOPT_EINPUT (a name that is needed
 * is missing: in the first row), KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_intake_row(struct kp_intake *in, const struct kp_cell *cells, size_t n,
                          const struct kp_row_about *about);
/* Count a row that cannot be used, and keep the first one's reason. */
__attribute__((format(printf, 3, 4))) void kp_intake_skip(struct kp_intake *in, int64_t line,
                                                          const char *fmt, ...);
/* A number where the text is one, else the text. */
struct kp_value kp_value_of_text(struct kp_str text);
/* Is the list's "NAME=TEXT" about that column, and with `text` (unless NULL) about that text?
 */
bool kp_about(const char *entry, const char *name, const struct kp_str *text);
/* The text that keys have for that column (kp_load_options' `as`); its own where they keep it.
 */
struct kp_str kp_intake_as(const struct kp_intake *in, const char *name, struct kp_str own);
/* The index of a text; UINT32_MAX without memory. */
uint32_t kp_intake_text(struct kp_intake *in, struct kp_str text);
/* "a, b, .." as the hint of an error. */
void kp_intake_hint(struct kp_intake *in, const char *what, const char *const *names, size_t n);

/* Errors: KOPT_EINPUT (no row), KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_intake_finish(struct kp_intake *in, struct kp_dataset **out);

/* Sets the data set's twins, and their keys. */
kopt_status kp_intake_twins(const struct kp_intake *in, struct kp_dataset *d);

/* The report's hash: of the first n_fields fields, the targets and the times, whatever the
 * order of rows, columns and lists. `all`: also rows that only help training. */
kopt_status kp_dataset_hash(const struct kp_dataset *d, size_t n_fields, bool all,
                            char hash[64 + 1], kopt_error *err);

/* The kernel of a file that names none: the one asked for, else the rules', else the file's
 * name up to its first point. Errors: KOPT_EUSAGE (the rules are of another than the one asked
 * for).
 */
kopt_status kp_intake_name(struct kp_intake *in);

/* Names that were met, each once and in that order, for the choice of a kernel. */
enum { KP_LOAD_NAMES_MAX = 256 };
struct kp_names {
    const char *names[KP_LOAD_NAMES_MAX];
    size_t n;
};
/* False without memory; names beyond the maximum are left out. */
bool kp_names_add(struct kp_names *names, struct kp_arena *arena, const char *name);

#define KP_LOAD_KINDS "kopt's store, MIOpen's databases, T4 and CSV are read"

/* Is the file, by its first bytes, one of SQLite or of MIOpen's text databases? Errors:
 * KOPT_EIO, KOPT_EINPUT (compressed, but not by gzip). */
kopt_status kp_load_is_miopen(const char *path, bool *is, kopt_error *err);

/* The readers; each sets in->kernel and hands over all rows. */
kopt_status kp_load_miopen(struct kp_intake *in);
kopt_status kp_load_csv(struct kp_intake *in);
kopt_status kp_load_t4(struct kp_intake *in);
struct kp_store;
kopt_status kp_load_store(struct kp_intake *in, struct kp_store *store);

/* The members of an object as cells, their texts in `arena`; what is null or no plain value is
 * left out. */
struct kp_json;
kopt_status kp_cells_from_json(struct kp_cells *c, const struct kp_json *object,
                               enum kp_cell_kind kind, struct kp_arena *arena, kopt_error *err);

#endif
