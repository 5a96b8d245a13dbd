/* SPDX-License-Identifier: MIT */
/* Power, clocks and energy around timed launches. Layer: measure.
 *
 * The counter of energy moves in steps: every 100 ms on an H200, where reading it takes 4 ms
 * (all else 0.1 ms). Measurements therefore ask once a second at most; the final race asks for
 * each of its racers. */
#ifndef KP_MEASURE_SENSE_H
#define KP_MEASURE_SENSE_H

#include "measure/worker/runner.h"

/* Over less than this the difference of two readings says nothing. */
enum { KP_ENERGY_NS = 1000000000 };

struct kp_sense {
    bool on; /* it was begun */
    int64_t begun_ns;
    struct kp_sensors before;
};

struct kp_sensed {   /* NaN = not known */
    double power_w;  /* mean over the launches where the counter of energy tells, else now */
    double energy_j; /* of one launch */
    double sm_mhz;
    double temp_c;
    int64_t throttle; /* of all readings, but that it was idle; -1 = not known */
};

extern const struct kp_sensed kp_sensed_nothing;

void kp_sense_read(struct kp_runner *r, struct kp_sensors *out);
/* Add what a reading says of throttling. */
void kp_sense_throttle(const struct kp_sensors *now, struct kp_sensed *out);

/* Before launches that are expected to take `expected_ns`; reads nothing when the last time was
 * less than a second ago. */
void kp_sense_begin(struct kp_runner *r, struct kp_sense *s, double expected_ns);
/* After `n` launches whose times add up to `busy_ns`. There is no energy when that is less than
 * KP_ENERGY_NS, or less than nine tenths of the time that has passed: restoring buffers and
 * emptying caches take energy, too. */
void kp_sense_end(struct kp_runner *r, const struct kp_sense *s, double busy_ns, unsigned n,
                  struct kp_sensed *out);

/* Members power_w, energy_j, sm_mhz, temp_c, throttle. */
bool kp_sensed_put(struct kp_json *j, const struct kp_sensed *s);

#endif
