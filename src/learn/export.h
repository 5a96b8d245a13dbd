/* SPDX-License-Identifier: MIT */
/* A model's predictions in the form that others read. Layer: learn. */
#ifndef KP_LEARN_EXPORT_H
#define KP_LEARN_EXPORT_H

#include "model/model.h"

struct kp_export_options {
    const char *solver;       /* NULL: the model's kernel */
    const char *const *where; /* "data_type=FP32": rows whose column has that text or number */
    size_t n_where;
    const struct kp_given *given; /* of the model's fields: for all problems */
    size_t n_given;
    const struct kp_limits *limits;
    size_t width; /* of the beam; 0 = 100 */
};

struct kp_export_report {
    size_t read;
    size_t left_out; /* by `where` */
    size_t repeated; /* problems that came before */
    size_t unseen;  /* of a word that the model never learned from, or of another value than the
                       one that a field always had */
    size_t skipped; /* for which nothing could be written */
    size_t written;
    int64_t first_line; /* the first that was skipped, and why */
    char reason[256];
    int64_t unseen_line; /* the first of those, and its "direction=F" */
    char unseen_why[256];
};

/* Append a text performance database of MIOpen with the first prediction for each problem of a
 * file. What a row does not have is the text of the rows that the model is for, where it knows
 * one, else the rules' default. Errors: those of
 * kp_questions(), KOPT_EINPUT (the model is about names that neither MIOpen nor `given` has; no
 * problem is left), KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_export_miopen(const struct kp_model *m, const char *problems,
                             const struct kp_export_options *o, struct kp_buf *out,
                             struct kp_export_report *report, kopt_error *err);

#endif
