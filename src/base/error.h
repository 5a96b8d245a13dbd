/* SPDX-License-Identifier: MIT */
/* Filling and wrapping kopt_error; the check for our own faults. Layer: base. */
#ifndef KP_BASE_ERROR_H
#define KP_BASE_ERROR_H

#include "kopt/status.h"

/* Set `err` (may be NULL) and return `code`, so that callers can `return kp_err(...)`.
 * Control characters and what is no UTF-8 become '?'; a text that is too long is cut. */
__attribute__((format(printf, 3, 4))) kopt_status kp_err(kopt_error *err, kopt_status code,
                                                         const char *fmt, ...);

/* Put "context: " before the message that is there; everything else stays as it is. */
__attribute__((format(printf, 2, 3))) void kp_err_wrap(kopt_error *err, const char *fmt, ...);

/* Add what the user can do about it (one line). */
__attribute__((format(printf, 2, 3))) void kp_err_hint(kopt_error *err, const char *fmt, ...);

/* Add the position: file (may be NULL), line and column (1-based), and the source line, which
 * need not be terminated (NULL for none). Of a long line the part around the column is kept. */
void kp_err_at(kopt_error *err, const char *file, int line, int column, const char *src_line,
               int src_line_len);

/* Shorthand for the commonest failure. */
kopt_status kp_err_nomem(kopt_error *err);

/* Abort with file:line when our own invariant is broken; always compiled in. */
#define KP_CHECK(cond) ((cond) ? (void)0 : kp_check_failed(#cond, __FILE__, __LINE__))
_Noreturn void kp_check_failed(const char *what, const char *file, int line);

#endif
