/* SPDX-License-Identifier: MIT */
/* Argument data of a session: fills into files, and host references. Layer: measure. */
#ifndef KP_MEASURE_DATA_H
#define KP_MEASURE_DATA_H

#include "base/error.h"
#include "space/kernel.h"

#include <stdint.h>

struct kp_lab;

/* Write buffer argument `arg` of the kernel into `path` as its fill says; the same for a seed
 * everywhere. An out buffer is poisoned (0xFF bytes).
 * Errors: KOPT_EINPUT (a generator that cannot be evaluated, or a value its type does not hold:
 * names the line), KOPT_ERANGE (size), KOPT_EIO, KOPT_EFULL, KOPT_ENOMEM. */
kopt_status kp_data_write(const struct kp_bound *b, size_t arg, uint64_t seed, const char *path,
                          kopt_error *err);
/* The same for a check against a fill. */
kopt_status kp_data_write_check(const struct kp_bound *b, size_t check, const char *path,
                                kopt_error *err);

/* Bytes of a buffer or local argument under a configuration (NULL for buffers). */
kopt_status kp_data_bytes(const struct kp_bound *b, size_t arg, const uint32_t *config,
                          size_t *bytes, kopt_error *err);

/* A scalar's bytes in its own type. `out` holds 16 bytes. Errors: KOPT_ERANGE, KOPT_EINPUT
 * (its type does not hold the value). */
kopt_status kp_data_scalar(const struct kp_bound *b, size_t arg, const uint32_t *config,
                           unsigned char *out, size_t *bytes, kopt_error *err);

/* What decides a time apart from the kernel, the problem and the device. */
struct kp_conditions {
    uint64_t seed;      /* of the data */
    size_t flush_bytes; /* of cache, emptied before each launch */
    int64_t cores;      /* that a CPU device computes on; 0 = no CPU */
};

/* Raised when launches are timed in another way, so that older times mean something else. */
enum { KP_DATA_PROTOCOL = 1 };

/* {"A":"normal(0,1)",..,"cores":2,"flush":4194304,"protocol":1,"seed":1}: what the data is and
 * how it is measured, for the store's key. "cores" is there for CPUs only. */
void kp_data_describe(const struct kp_bound *b, const struct kp_conditions *how,
                      struct kp_buf *out);

/* Compile the C file of `check` with the host's compiler ($CC, cc), call its function in a
 * process of its own over the input files (files[arg], NULL for outputs), and write the checked
 * buffer to `out_path`. $CC may have words behind the program's name. Errors, with the check's
 * name and place: KOPT_EENV (no C compiler), KOPT_EINPUT (does not compile: its first error
 * line; no such function; other arguments), KOPT_ECRASH, KOPT_ETIMEOUT; KOPT_EINTR, KOPT_EIO,
 * KOPT_ENOMEM. */
struct kp_host_reference {
    const struct kp_bound *bound;
    size_t check;
    const char *const *files; /* by argument */
    const char *scratch;      /* folder for its own files */
    int64_t timeout_ns;
    int wake_fd;              /* a byte there ends it with KOPT_EINTR; -1 = none */
    void (*tick)(void *user); /* called several times a second meanwhile; NULL = none */
    void *user;
};
kopt_status kp_host_reference_run(const struct kp_host_reference *h, const char *out_path,
                                  kopt_error *err);
/* Is the C file of `check` there? Errors: KOPT_EINPUT (where it was looked for), KOPT_ENOMEM.
 */
kopt_status kp_host_reference_exists(const struct kp_bound *b, size_t check, kopt_error *err);

/* Add the place of a declaration to an error: its line, and the column where the text `part`
 * begins in it (NULL: no column). */
void kp_line_place(const struct kp_kernel *k, int line, const char *part, kopt_error *err);
/* The same for a check. */
void kp_check_place(const struct kp_kernel *k, size_t check, kopt_error *err);

/* What a reference gave. */
struct kp_expected {
    uint64_t n; /* numbers */
    uint64_t n_nan;
    uint64_t first_nan;
    bool untouched; /* not one byte differs from what was there before */
};
/* Look through the file of an answer. `before` is the file of what the reference was given,
 * NULL for poison. Errors: KOPT_EIO. */
kopt_status kp_expected_look(const char *path, enum kp_elem elem, const char *before,
                             struct kp_expected *out, kopt_error *err);

#endif
