/* SPDX-License-Identifier: MIT */
/* The spaces of the problems that a model was asked about last. Layer: model.
 *
 * Problems that the rules cannot tell apart share one; and for a problem that was not asked
 * about before, one that is kept is found without making anything.
 *
 * They stand over the values that the model knows: a prefix must not live by a completion that
 * cannot be predicted. */
#ifndef KP_MODEL_MODEL_SPACES_H
#define KP_MODEL_MODEL_SPACES_H

#include "model/model.h"

enum { KP_SPACES_MAX = 64, KP_SPACES_ASKED_MAX = 64 };

/* Borrows the model's rules and targets. Errors: KOPT_ENOMEM. */
kopt_status kp_spaces_new(const struct kp_model *m, struct kp_spaces **out, kopt_error *err);
void kp_spaces_free(struct kp_spaces *s);

/* The parameter without a value that the model knows; NULL: each has one. Then nothing can be
 * taken. */
const char *kp_spaces_lost(const struct kp_spaces *s);

/* The space of a problem (a value for each problem name of the rules) on a device, made where
 * it is not kept; NULL: it has no configuration. Any number of threads may ask at once.
 * Errors: as kp_kernel_bind_values(). */
struct kp_spaces_entry;
kopt_status kp_spaces_take(struct kp_spaces *s, const struct kp_value *problem,
                           const struct kp_limits *limits, struct kp_spaces_entry **out,
                           kopt_error *err);
/* Valid until it is given back. */
struct kp_beam_space kp_spaces_allowed(const struct kp_spaces *s,
                                       const struct kp_spaces_entry *e);
/* NULL is allowed. */
void kp_spaces_give(struct kp_spaces *s, struct kp_spaces_entry *e);

#endif
