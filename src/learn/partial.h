/* SPDX-License-Identifier: MIT */
/* The state of a training on disk, to go on from after a stop. Layer: learn. */
#ifndef KP_LEARN_PARTIAL_H
#define KP_LEARN_PARTIAL_H

#include "learn/fit.h"

/* `identity` tells trainings apart: a text over all that decides the result. `spares`: a model
 * that is not of this training stands where this one's is to go.
 *
 * The file: "kopt-tp1", the header's length (8 bytes, little-endian), the header (JSON), the
 * slabs of `values`, then train.values, .m and .v (32-bit floats), then 64 bytes: the SHA-256
 * of all before in hex. Written as kp_file_replace() does. Errors: KOPT_EIO, KOPT_EFULL,
 * KOPT_ENOMEM. */
kopt_status kp_partial_save(const char *path, const char *identity, bool spares,
                            const struct kp_fit_state *s, kopt_error *err);

struct kp_partial {
    struct kp_fit_state state; /* borrows from the rest */
    struct kp_json *header;
    float *slabs;
    bool spares;
};
/* Owner: kp_partial_free(). Errors: KOPT_EIO, KOPT_ENOMEM, KOPT_EINPUT (no such file, cut,
 * damaged), KOPT_EUSAGE (of another training). */
kopt_status kp_partial_load(const char *path, const char *identity, struct kp_partial **out,
                            kopt_error *err);
void kp_partial_free(struct kp_partial *p);

#endif
