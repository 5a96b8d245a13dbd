/* SPDX-License-Identifier: MIT */
/* A recording's results as what a tuning session expects. Layer: api. */
#ifndef KP_API_TUNE_PRIOR_H
#define KP_API_TUNE_PRIOR_H

#include "replay/recording.h"
#include "tune/session.h"

/* The user pointer of kp_tune_prior_predict(). */
struct kp_tune_prior {
    const char *path; /* for messages */
    struct kp_recording *recording;
};

/* struct kp_predictor.predict. What was recorded and is not in the space is passed over.
 * Errors: KOPT_EINPUT (the recording has other parameters), KOPT_ENOMEM. */
kopt_status kp_tune_prior_predict(void *user, const struct kp_bound *bound,
                                  const struct kp_limits *limits, struct kp_predictions *out,
                                  kopt_error *err);

#endif
