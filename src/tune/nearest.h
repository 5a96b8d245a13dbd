/* SPDX-License-Identifier: MIT */
/* Results of the same kernel for other problems, or from other devices, as what a session
 * expects. Layer: tune. */
#ifndef KP_TUNE_NEAREST_H
#define KP_TUNE_NEAREST_H

#include "store/store.h"
#include "tune/session.h"

/* The results of the nearest subject of the store that has enough of them in the bound's space:
 * one of the same entry point with the same names of parameters; its source may be another
 * version. Those of this device come before those of devices of its architecture, and these
 * before all others; then the nearest problem counts, then the number of successes, then which
 * is newer. `own` is the session's subject (its id is not looked at), which is never taken.
 * *out (zeroed before) stays without a prior where there is none. Errors: those of the store,
 * KOPT_ENOMEM. */
kopt_status kp_nearest_prior(struct kp_store *st, const struct kp_bound *bound,
                             const struct kp_subject *own, struct kp_predictions *out,
                             kopt_error *err);

#endif
