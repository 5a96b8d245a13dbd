/* SPDX-License-Identifier: MIT */
/* A result of which nothing is known yet. Layer: measure. */
#ifndef KP_MEASURE_RESULT_H
#define KP_MEASURE_RESULT_H

#include "kopt/types.h"

/* Every number NaN or -1, no samples, "" for config and log, ended now. `message` is borrowed.
 */
kopt_result kp_result_unknown(kopt_outcome outcome, const char *message);

#endif
