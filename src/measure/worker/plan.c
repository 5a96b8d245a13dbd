/* SPDX-License-Identifier: MIT */
#include "measure/worker/plan.h"

#include "os/proc.h"

#include <math.h>

struct kp_plan kp_plan_read(const struct kp_message *m)
{
    struct kp_plan p = {.id = kp_message_i64(m, "id", 0),
                        .min_samples = (unsigned)kp_message_i64(m, "min_samples", 7),
                        .max_samples = (unsigned)kp_message_i64(m, "max_samples", 50),
                        .precision = kp_message_f64(m, "precision", 0.01),
                        .best_ns = kp_message_f64(m, "best_ns", (double)NAN),
                        .drop_ratio = kp_message_f64(m, "drop_ratio", 1.25),
                        .budget_ns = kp_message_f64(m, "budget_ns", 1e9),
                        .batch_ns = kp_message_f64(m, "batch_ns", 1e9),
                        .flush = (size_t)kp_message_i64(m, "flush", 0)};
    (void)kp_json_as_bool(kp_json_get(m->head, "check"), &p.check);
    (void)kp_json_as_bool(kp_json_get(m->head, "hold"), &p.hold);
    if (p.max_samples > KP_SAMPLES_MAX)
        p.max_samples = KP_SAMPLES_MAX;
    if (p.min_samples < 1)
        p.min_samples = 1;
    if (p.max_samples < p.min_samples)
        p.max_samples = p.min_samples;
    return p;
}

bool kp_plan_phase(const struct kp_plan *p, const char *name)
{
    struct kp_json *j = kp_message_new("is", "phase", p->id);
    if (j)
        (void)kp_json_set_str(j, "phase", name);
    return kp_worker_send(j, NULL, 0);
}

bool kp_time_sane(double ns)
{
    return isfinite(ns) && ns > 0;
}
