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
};

struct kp_load_report {
    enum kp_source source;
    size_t read;        /* rows of that kernel */
    size_t left_out;    /* by `where` */
    size_t skipped;     /* could not be used */
    size_t unlisted;    /* used, with a value that is not in the rules' lists */
    int64_t first_line; /* the first of those, and why */
    char reason[256];
    size_t n_raw;      /* fields of the data set that are not derived */
    char hash[64 + 1]; /* SHA-256 of the rows that count, in a canonical order */
};

/* The file's kind is told from its content. CSV has a header: parameters and problem sizes by
 * name, or a column `problem` with "M=64 N=32" in it; the time in `time_ns`, `us`, `time_us`,
 * `ms` or `time_ms`, where there is one; `outcome`, anything but "ok" meaning that it failed. A
 * CSV file may be compressed by gzip. MIOpen's fields are the columns of its databases; ties
 * and times are not known there. Errors: KOPT_EIO, KOPT_EINPUT (no such kernel: the hint lists
 * those that are there; a cut, foreign or empty file; a column that is missing; with its line),
 * KOPT_ERANGE (too many rows or values), KOPT_ENOMEM. */
kopt_status kp_load(const char *path, const struct kp_load_options *o, struct kp_dataset **out,
                    struct kp_load_report *report, kopt_error *err);

#endif
