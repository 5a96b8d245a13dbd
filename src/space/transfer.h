/* SPDX-License-Identifier: MIT */
/* Configurations of one space in the terms of another one: parameters by name, values by what
 * they are. Layer: space. */
#ifndef KP_SPACE_TRANSFER_H
#define KP_SPACE_TRANSFER_H

#include "space/space.h"

/* Index of the first value that is equal, for numbers and booleans by what they count (1, 1.0
 * and true are one number to whoever wrote them down); n_values where there is none. */
uint32_t kp_param_value_like(const struct kp_param *p, struct kp_value v);

struct kp_transfer;
/* Errors: KOPT_EINPUT (a parameter of either is not in the other), KOPT_ENOMEM. Both spaces
 * must outlive it. Owner: kp_transfer_free(). */
kopt_status kp_transfer_new(const struct kp_space *from, const struct kp_space *to,
                            struct kp_transfer **out, kopt_error *err);
void kp_transfer_free(struct kp_transfer *t);
/* False: `to` does not have one of the values. Whether the result is valid there,
 * kp_space_rank() says. */
bool kp_transfer_config(const struct kp_transfer *t, const uint32_t *from, uint32_t *to);

#endif
