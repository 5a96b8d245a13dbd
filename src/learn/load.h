/* SPDX-License-Identifier: MIT */
/* Data sets from files: kopt's store, MIOpen's performance databases, T4, CSV. Layer: learn.
 *
 * A row is a problem, a configuration and perhaps a time. With rules (a rules file or a kernel
 * file) their names say which column is what, the targets keep the rules' value lists where all
 * rows fit in, and the lets that depend on the problem alone become fields behind the others.
 */
#ifndef KP_LEARN_LOAD_H
#define KP_LEARN_LOAD_H

#include "model/dataset.h"
#include "space/kernel.h"

enum kp_source { KP_SOURCE_STORE, KP_SOURCE_MIOPEN, KP_SOURCE_T4, KP_SOURCE_CSV };
const char *kp_source_name(enum kp_source s);

/* Rows that only help training: of other texts in some columns (`also`), and of other files.
 * They may come for problems that the data has, too. */
struct kp_load_more {
    const char *name; /* what the field `source` has for its rows */
    const char *path;
};

struct kp_load_options {
    /* Which kernel: MIOpen's solver, the store's kernel name. NULL: the rules' name, else the
     * only one there is. */
    const char *kernel;
    const struct kp_kernel *rules; /* NULL: none */
    /* "data_type=FP32": rows whose column has that text. All must hold. */
    const char *const *where;
    size_t n_where;
    /* CSV and T4 without rules: which columns are parameters; else NULL. */
    const char *const *params;
    size_t n_params;
    /* "data_type=FP16": rows that `where` would leave out for their text in that column, but
     * have this one, help. The column is a field. */
    const char *const *also;
    size_t n_also;
    const struct kp_load_more
        *more; /* files all of whose rows help, as far as they are chosen */
    size_t n_more;
    /* What the field `source` has for the rows of the file itself; NULL: there is no such
     * field (and no other file). */
    const char *source;
    /* "data_type=FP32": keys are made as if that column had that text; it is a field. */
    const char *const *as;
    size_t n_as;
};

struct kp_load_report {
    enum kp_source source;
    size_t read;        /* rows of that kernel */
    size_t left_out;    /* by `where` */
    size_t skipped;     /* could not be used */
    size_t unlisted;    /* used, with a value that is not in the rules' lists */
    int64_t first_line; /* the first of those .. */
    char reason[256];   /* .. where it is and why: "line 3: it is cut" */
    bool untimed;       /* CSV: no row has a time, and they did not all fail */
    char aside[128];    /* CSV: columns that are left aside: "time, note"; the first of them */
    size_t n_raw;       /* fields of the data set that are not derived */
    size_t helping;     /* rows that only help training */
    char hash[64 +
              1]; /* SHA-256 of the data's own rows without `source`, in a canonical order */
    char all_hash[64 + 1]; /* .. of all rows and fields; "" where none only helps */
};

/* The file's kind is told from its content.
 *
 * CSV has a header: parameters and problem sizes by name, or a column `problem` with "M=64
 * N=32" in it; the time in `time_ns`, `us`, `time_us`, `ms` or `time_ms`, where there is one;
 * `outcome`, anything but "ok" meaning that it failed. Lines before the header that begin with
 * '#' are comments. A CSV file may be compressed by gzip. MIOpen: the fields are the columns of
 * its databases, the vector's places are p1, p2, .. without rules; times are not known there,
 * but in a find database, which is one kernel "algorithm" with one parameter of that name. Of
 * the store the newest result of each configuration counts, and all rows must be of one device
 * ("device=..", "driver=.." and the like may stand in `where`). T4 is one document or an array
 * of them.
 *
 * What is what. With rules: their parameters are the targets, in their order; their problem's
 * names, and what the source itself calls the problem, are fields, but for columns that a
 * derived let of that name computes; other columns are left aside. Without rules: where the
 * source tells the problem from the rest (a column `problem`, T4, the store), that is the
 * fields, and `params`, or all the rest, are the targets; else `params` must be given, and all
 * columns but these are fields.
 *
 * Fields are numbers where all rows have numbers, else words. A target of the rules keeps their
 * list: value index i is the rules' value i. What occurs and is not in the list stands behind
 * it, sorted (kp_model_predict() maps by value and never predicts it with rules; without them
 * it may). A list of more than KP_TARGET_VALUES_MAX values is not kept: those that occur are
 * collected and sorted. Rows with values of another kind than the list's, and rows of a kernel
 * file whose sizes are no integers of at least 1, are skipped. The derived fields come behind
 * the n_raw others.
 *
 * Rows that only help get the key that their problem would have with the texts `as`, whichever
 * file they are from; where the data has that problem, the key is the data's, and the data
 * set's `twins` say so.
 *
 * Errors: KOPT_EUSAGE (a file that names no kernel, rules of one, and another one asked for),
 * KOPT_EIO, KOPT_EBUSY, KOPT_EINPUT (no such kernel: the hint lists those that are
 * there; a cut, foreign or empty file; a column that is missing; rules whose parameters are
 * not as many as the vectors' places; with the line where there is one), KOPT_ERANGE (too many
 * rows or values), KOPT_ENOMEM. */
kopt_status kp_load(const char *path, const struct kp_load_options *o, struct kp_dataset **out,
                    struct kp_load_report *report, kopt_error *err);

#endif
