/* SPDX-License-Identifier: MIT */
/* CSV (RFC 4180) with a header as rows of texts, plain or compressed by gzip, read as a stream.
 * Layer: learn.
 *
 * Lines before the header that begin with '#' are comments. What a file may unpack to is
 * bounded by bytes, columns and the length of a row. */
#ifndef KP_LEARN_CSV_H
#define KP_LEARN_CSV_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_CSV_COLUMNS_MAX = 1 << 10 };

struct kp_csv;

/* Reads the header. Errors: KOPT_EIO, KOPT_EINPUT (empty, a damaged or cut compressed file, a
 * column without a name or there twice), KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_csv_open(const char *path, struct kp_csv **out, kopt_error *err);
void kp_csv_close(struct kp_csv *c);

size_t kp_csv_n_columns(const struct kp_csv *c);
const char *kp_csv_column(const struct kp_csv *c, size_t i);
/* Where the header stands. */
int64_t kp_csv_header_line(const struct kp_csv *c);

/* The next row that is not blank; *more false: the end. Errors: as above, KOPT_EINPUT (a row
 * that is too long), with the line. */
kopt_status kp_csv_next(struct kp_csv *c, bool *more, kopt_error *err);
/* About that row. Its line; what is wrong with it, or NULL; its values, which may be more or
 * fewer than columns, and may be changed in place. */
int64_t kp_csv_line(const struct kp_csv *c);
const char *kp_csv_broken(const struct kp_csv *c);
size_t kp_csv_n_values(const struct kp_csv *c);
char *kp_csv_value(struct kp_csv *c, size_t i);

#endif
