/* SPDX-License-Identifier: MIT */
/* Power, clocks and energy around timed launches. Layer: measure.
 *
 * Asking the management library may take a millisecond for each value. Measurements therefore
 * ask at most once a second, and twice then; the final race asks for each of its racers. */
#ifndef KP_MEASURE_SENSE_H
#define KP_MEASURE_SENSE_H

#include "measure/worker/runner.h"

/* The counter of energy moves in steps some ten milliseconds apart: over less than this a
 * difference says nothing. */
enum { KP_ENERGY_NS = 100000000 };

struct kp_sense {
    bool on; /* it was begun */
    bool always;
    int64_t begun_ns;
    struct kp_sensors before;
};

struct kp_sensed {   /* NaN = not known */
    double power_w;  /* mean over the launches where the counter of energy tells, else now */
    double energy_j; /* of one launch */
    double sm_mhz;
    double temp_c;
};

extern const struct kp_sensed kp_sensed_nothing;

/* Before launches that are expected to take `expected_ns`. always: however short ago the last
 * time was, and whatever else the device does in between; else there is no energy unless the
 * kernel has the device nine tenths of the time (restoring and emptying caches takes its part).
 */
void kp_sense_begin(struct kp_runner *r, struct kp_sense *s, double expected_ns, bool always);
/* After `n` launches whose times add up to `busy_ns`. */
void kp_sense_end(struct kp_runner *r, const struct kp_sense *s, double busy_ns, unsigned n,
                  struct kp_sensed *out);

/* Members power_w, energy_j, sm_mhz, temp_c. */
bool kp_sensed_put(struct kp_json *j, const struct kp_sensed *s);

#endif
