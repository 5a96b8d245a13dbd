/* SPDX-License-Identifier: MIT */
/* The databases of AMD's MIOpen: which parameters were found best for which convolution, and
 * how long its algorithms take. Layer: store.
 *
 * Three kinds of files, told apart by what is in them:
 *   performance database, SQLite   tables `config` (the problem) and `perf_db` (the vectors)
 *   performance database, text     problem=solver:v,v,..;solver:v,v,..
 *   find database, text            problem=algorithm:solver,time,workspace,..;algorithm:..
 * A compressed file is refused; unpack it first. */
#ifndef KP_STORE_MIOPEN_H
#define KP_STORE_MIOPEN_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kp_miopen_kind { KP_MIOPEN_SQLITE, KP_MIOPEN_TEXT, KP_MIOPEN_FIND };
/* "performance database (SQLite)" */
const char *kp_miopen_kind_name(enum kp_miopen_kind kind);

enum {
    KP_MIOPEN_COLUMNS_MAX = 64,     /* of a problem */
    KP_MIOPEN_VALUES_MAX = 256,     /* of a vector */
    KP_MIOPEN_TEXT_MAX = 1 << 16,   /* bytes of a key, a name, a vector */
    KP_MIOPEN_LINE_MAX = 1 << 20,   /* bytes of a line */
    KP_MIOPEN_ROWS_MAX = 100 << 20, /* of a file */
    KP_MIOPEN_BUSY_MS = 2000        /* how long another process may keep a file locked */
};

/* Everything is borrowed and valid during the call. */
struct kp_miopen_row {
    /* The problem. SQLite: the columns of `config` but its id, in the table's order. Text: the
     * same names in the same order, from the key, and behind them out_h and out_w, which the
     * SQLite databases do not have. What a key does not hold is as SQLite has it in 2-D: in_d
     * and fil_d 1, the other depths 0, the number of groups 1. Keys of 3-D convolutions are
     * skipped: versions of MIOpen differ in the order of their sizes. */
    const char *const *columns;
    const char *const *problem;
    size_t n_columns;
    const char *key; /* the columns joined with ','; text files: the key as it stands */
    const char *solver;
    const char *const *values; /* performance databases: the vector */
    size_t n_values;
    const char *algorithm; /* find databases; else NULL */
    double time_ms;
    int64_t workspace; /* bytes */
    int64_t line;      /* text: 1-based; SQLite: the row's id */
};

/* Anything but KOPT_OK ends the walk and is what kp_miopen_read() returns. */
typedef kopt_status (*kp_miopen_visit)(void *user, const struct kp_miopen_row *row,
                                       kopt_error *err);

struct kp_miopen_count {
    enum kp_miopen_kind kind;
    int64_t rows;       /* that were visited */
    int64_t skipped;    /* lines, entries or rows that could not be used .. */
    int64_t first_line; /* .. the first of them .. */
    const char *reason; /* .. and what is wrong with it: constant text; NULL without one */
};

/* Each row of `solver` (NULL: of all), in the order of the file. What cannot be read in it is
 * counted and passed over; a last line without its newline is taken for cut.
 * Errors: KOPT_EIO (cannot be read), KOPT_EINPUT (empty, compressed, not one of these
 * databases, without a single row, cut or damaged; with the line where there is one),
 * KOPT_EBUSY (locked), KOPT_ERANGE (too many rows), KOPT_ENOMEM. After an error the rows that
 * were visited are not all there are. */
kopt_status kp_miopen_read(const char *path, const char *solver, kp_miopen_visit visit,
                           void *user, struct kp_miopen_count *count, kopt_error *err);

/* The problem's column of that name, or NULL. */
const char *kp_miopen_column(const struct kp_miopen_row *row, const char *name);

/* The columns of a problem in the order of struct kp_miopen_row, out_h and out_w last; NULL
 * past the end. */
const char *kp_miopen_column_name(size_t i);

/* Append rows as a text performance database, which MIOpen takes for a user's: a line for each
 * key, sorted by it, with a solver's last row where it has several. Of a row the problem's
 * columns, solver and values count; the key is made from the columns. Without out_h and out_w
 * the output's size is computed. Errors: KOPT_EINPUT (a column is missing or no number; 3-D;
 * backward with a stride and without the output's size, which the input's does not tell; a name
 * or value that the format cannot hold), KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_miopen_write(const struct kp_miopen_row *rows, size_t n, struct kp_buf *out,
                            kopt_error *err);

#endif
