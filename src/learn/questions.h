/* SPDX-License-Identifier: MIT */
/* Problems without configurations, from files: MIOpen's databases, CSV with a header.
 * Layer: learn. */
#ifndef KP_LEARN_QUESTIONS_H
#define KP_LEARN_QUESTIONS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Borrowed during the call. */
struct kp_question {
    const char *const *names; /* [n] */
    const char *const *values;
    size_t n;
    int64_t line;
    const char *broken; /* what is wrong with the row, which then has no values; or NULL */
};

/* Anything but KOPT_OK ends the walk. */
typedef kopt_status (*kp_question_visit)(void *user, const struct kp_question *q,
                                         kopt_error *err);

/* In the order of the file, of a database whatever the solver, so a problem may come several
 * times. Errors: those of kp_miopen_read() and kp_csv_open(). */
kopt_status kp_questions(const char *path, kp_question_visit visit, void *user,
                         kopt_error *err);

#endif
