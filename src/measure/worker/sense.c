/* SPDX-License-Identifier: MIT */
#include "measure/worker/sense.h"

#include "os/clock.h"

#include <math.h>

static const int64_t pause_ns = 1000000000;

const struct kp_sensed kp_sensed_nothing = {(double)NAN, (double)NAN, (double)NAN, (double)NAN,
                                            -1};

void kp_sense_read(struct kp_runner *r, struct kp_sensors *out)
{
    int64_t begun = kp_clock_ns();
    kp_device_sensors(r->dev, out);
    r->sensed_ns = kp_clock_ns();
    r->sense_ns += r->sensed_ns - begun;
}

void kp_sense_throttle(const struct kp_sensors *now, struct kp_sensed *out)
{
    enum { IDLE = 1 }; /* as it is between launches */
    if (now->throttle < 0)
        return;
    out->throttle = (out->throttle < 0 ? 0 : out->throttle) | (now->throttle & ~(int64_t)IDLE);
}

void kp_sense_begin(struct kp_runner *r, struct kp_sense *s, double expected_ns)
{
    int64_t now = kp_clock_ns();
    *s = (struct kp_sense){.before = {.energy_j = (double)NAN, .throttle = -1}};
    s->on = !r->sensed_ns || now - r->sensed_ns >= pause_ns;
    if (s->on && expected_ns >= KP_ENERGY_NS)
        kp_sense_read(r, &s->before);
    s->begun_ns = kp_clock_ns();
}

void kp_sense_end(struct kp_runner *r, const struct kp_sense *s, double busy_ns, unsigned n,
                  struct kp_sensed *out)
{
    struct kp_sensors after;
    double wall_ns = (double)(kp_clock_ns() - s->begun_ns);
    *out = kp_sensed_nothing;
    if (!s->on)
        return;
    kp_sense_read(r, &after);
    out->power_w = after.power_w;
    out->sm_mhz = after.sm_mhz;
    out->temp_c = after.temp_c;
    kp_sense_throttle(&s->before, out);
    kp_sense_throttle(&after, out);
    double joules = after.energy_j - s->before.energy_j;
    if (!(joules >= 0) || n == 0 || busy_ns < KP_ENERGY_NS || busy_ns < 0.9 * wall_ns)
        return;
    out->energy_j = joules / n;
    out->power_w = joules / (fmax(wall_ns, busy_ns) / 1e9);
}

bool kp_sensed_put(struct kp_json *j, const struct kp_sensed *s)
{
    return kp_json_set_f64(j, "power_w", s->power_w) &&
           kp_json_set_f64(j, "energy_j", s->energy_j) &&
           kp_json_set_f64(j, "sm_mhz", s->sm_mhz) && kp_json_set_f64(j, "temp_c", s->temp_c) &&
           kp_json_set_i64(j, "throttle", s->throttle);
}
