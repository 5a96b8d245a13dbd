/* SPDX-License-Identifier: MIT */
/* A model's predictions as what a tuning session expects. Layer: api. */
#ifndef KP_API_TUNE_MODEL_H
#define KP_API_TUNE_MODEL_H

#include "model/model.h"
#include "tune/session.h"

/* The user pointer of kp_tune_model_predict(). */
struct kp_tune_model {
    const char *path; /* for messages */
    struct kp_model *model;
    size_t top; /* predictions wanted, 1 to KP_PRIOR_MAX */
};

/* struct kp_predictor.predict. What the model predicts for the problem and is not in the space
 * (a parameter was narrowed, the kernel file's rules are stricter than the model's) is left out
 * and counted, and the model is asked for more. Errors: KOPT_EINPUT (a model of another kernel,
 * or of one with other parameters, values or sizes), those of kp_model_predict(); rules that
 * nothing satisfies are no error, but no predictions. */
kopt_status kp_tune_model_predict(void *user, const struct kp_bound *bound,
                                  const struct kp_limits *limits, struct kp_predictions *out,
                                  kopt_error *err);

#endif
