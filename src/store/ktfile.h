/* SPDX-License-Identifier: MIT */
/* Kernel Tuner's cache files: the header, then entry by entry. Layer: store. What each member
 * becomes is in docs/store.md. */
#ifndef KP_STORE_KTFILE_H
#define KP_STORE_KTFILE_H

#include "kopt/types.h"
#include "store/ktread.h"
#include "json/json.h"

enum { KP_KTFILE_PARAMS_MAX = 1000 };

struct kp_ktfile {
    struct kp_ktread *in;
    const char *path; /* must outlive it */
    /* The header. */
    struct kp_json *kernel; /* a string that is not empty */
    struct kp_json *device;
    struct kp_json *problem;
    struct kp_json *params; /* tune_params_keys: strings that are not empty */
    struct kp_buf text;     /* the value at hand */
    bool more;              /* the last entry had a comma behind it */
    double *times;
    size_t times_cap;
};

/* Opens it and reads the header. The struct may then be closed, also after a failure.
 * Errors: KOPT_EIO, KOPT_EINPUT (no such file, with its place; packed by gzip and damaged),
 * KOPT_ERANGE (over KP_KTREAD_BYTES_MAX), KOPT_ENOMEM. */
kopt_status kp_ktfile_open(struct kp_ktfile *f, const char *path, kopt_error *err);
void kp_ktfile_close(struct kp_ktfile *f);

enum kp_ktfile_next {
    KP_KTFILE_ENTRY,
    KP_KTFILE_BAD, /* an entry that is no JSON, or too long: passed over */
    KP_KTFILE_END,
    KP_KTFILE_CUT /* the file ends in an entry, or is packed and ends in the middle */
};
/* *entry: the caller's. Errors: KOPT_EINPUT (not as Kernel Tuner writes it: with its place),
 * those of reading, KOPT_ENOMEM. */
kopt_status kp_ktfile_next(struct kp_ktfile *f, enum kp_ktfile_next *what,
                           struct kp_json **entry, kopt_error *err);

/* What an entry came to, and its time as it stands there (NaN unless ok). The message is
 * borrowed from the entry, or static. */
kopt_outcome kp_ktfile_outcome(const struct kp_json *entry, double *time_ns,
                               const char **message);
/* All but the configuration. It borrows from the entry and, until the next call, from `f`.
 * Errors: KOPT_ENOMEM. */
kopt_status kp_ktfile_result(struct kp_ktfile *f, const struct kp_json *entry, kopt_result *r,
                             kopt_error *err);
/* The problem size, {"x":4096,"y":4096} of a number or a list. */
kopt_status kp_ktfile_problem(const struct kp_ktfile *f, struct kp_buf *out, kopt_error *err);

#endif
