/* SPDX-License-Identifier: MIT */
/* A tuning session: one kernel, one problem, one kind of device. Layer: tune.
 * The public contract is kopt/tune.h; api/ hands it through. */
#ifndef KP_TUNE_SESSION_H
#define KP_TUNE_SESSION_H

#include "kopt/tune.h"
#include "search/prior.h"
#include "space/kernel.h"

struct kp_session;

/* Who knows what to expect of a problem: the session knows neither models nor recordings. */
struct kp_predictions {
    struct kp_prior prior; /* over the bound's space */
    size_t dropped;        /* predictions that are not in it */
    char *of;              /* whose results `prior` is, if it is `measured`; kp_free() it */
};
struct kp_predictor {
    /* Called once, when kernel, problem and device are known. *out is zeroed before, and the
     * session's afterwards. */
    kopt_status (*predict)(void *user, const struct kp_bound *bound,
                           const struct kp_limits *limits, struct kp_predictions *out,
                           kopt_error *err);
    void *user;
};

/* `predictor`: NULL = none, or what the store has, as the options say; it is not needed any
 * more afterwards. */
kopt_status kp_session_new(const kopt_tune_options *o, const struct kp_predictor *predictor,
                           struct kp_session **out, kopt_error *err);
kopt_status kp_session_run(struct kp_session *s, const kopt_tune_report **report,
                           kopt_error *err);
void kp_session_stop(struct kp_session *s); /* async-signal-safe */
void kp_session_free(struct kp_session *s);

#endif
