/* SPDX-License-Identifier: MIT */
#include "measure/result.h"

#include "os/clock.h"

#include <math.h>

kopt_result kp_result_unknown(kopt_outcome outcome, const char *message)
{
    const double none = (double)NAN;
    return (kopt_result){.config = "",
                         .outcome = outcome,
                         .message = message,
                         .log = "",
                         .median_ns = none,
                         .low_ns = none,
                         .high_ns = none,
                         .compile_ns = none,
                         .device_ns = none,
                         .registers = -1,
                         .shared_bytes = -1,
                         .local_bytes = -1,
                         .max_error = none,
                         .power_w = none,
                         .energy_j = none,
                         .sm_mhz = none,
                         .temp_c = none,
                         .throttle = -1,
                         .wall_us = kp_clock_wall_us()};
}
