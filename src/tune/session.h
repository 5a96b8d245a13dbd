/* SPDX-License-Identifier: MIT */
/* A tuning session: one kernel, one problem, one kind of device. Layer: tune.
 * The public contract is kopt/tune.h; api/ hands it through. */
#ifndef KP_TUNE_SESSION_H
#define KP_TUNE_SESSION_H

#include "kopt/tune.h"

struct kp_session;

kopt_status kp_session_new(const kopt_tune_options *o, struct kp_session **out,
                           kopt_error *err);
kopt_status kp_session_run(struct kp_session *s, const kopt_tune_report **report,
                           kopt_error *err);
void kp_session_stop(struct kp_session *s); /* async-signal-safe */
void kp_session_free(struct kp_session *s);

#endif
