/* SPDX-License-Identifier: MIT */
/* How a candidate is to be timed, as the session says, and the runner's words to it meanwhile.
 * Layer: measure. */
#ifndef KP_MEASURE_PLAN_H
#define KP_MEASURE_PLAN_H

#include "measure/worker/runner.h"

enum { KP_SAMPLES_MAX = 1000 };

struct kp_plan {
    int64_t id;
    unsigned min_samples;
    unsigned max_samples;
    double precision;  /* stop at this half width over the median */
    double best_ns;    /* NaN = none */
    double drop_ratio; /* clearly worse: every sample over best_ns times this */
    double budget_ns;  /* of timed launches */
    size_t flush;
    double batch_ns; /* of launches without a word to the session */
    bool check;
    bool hold; /* ask before the timed part: compilers must be paused first */
};

struct kp_plan kp_plan_read(const struct kp_message *m);
/* Tell the session that the work goes on; false when it is gone. */
bool kp_plan_phase(const struct kp_plan *p, const char *name);

/* Is this a time? */
bool kp_time_sane(double ns);

#endif
