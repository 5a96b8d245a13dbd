/* SPDX-License-Identifier: MIT */
#include <kopt/device.h>

#include "base/alloc.h"
#include "measure/lab.h"
#include "os/proc.h"

#include <stdio.h>
#include <stdlib.h>

/* What kp_lab_probe() hands through: it takes no pointer to const. */
struct visit {
    const kopt_device_visitor *visitor;
};

static void found(void *user, const struct kp_device_info *info)
{
    const kopt_device_visitor *v = ((struct visit *)user)->visitor;
    char id[64];
    (void)snprintf(id, sizeof(id), "%s:%d", kp_backend_name(info->backend), info->index);
    kopt_device_info out = {.id = id,
                            .backend = kp_backend_name(info->backend),
                            .name = info->name,
                            .arch = info->arch,
                            .driver = info->driver,
                            .compiler = info->compiler,
                            .is_cpu = info->is_cpu,
                            .max_threads = info->limits.max_threads,
                            .shared_bytes = info->limits.shared_bytes,
                            .compute_units = info->limits.compute_units,
                            .l2_bytes = info->limits.l2_bytes,
                            .global_bytes = info->limits.global_bytes,
                            .clock_khz = info->limits.clock_khz};
    v->found(v->user, &out);
}

kopt_status kopt_devices(const kopt_device_visitor *visitor, kopt_error *err)
{
    struct visit visit = {visitor};
    char *worker = NULL;
    kopt_status there = kp_proc_find("kopt-worker", &worker, err);
    kp_free(worker);
    if (there != KOPT_OK)
        return there; /* not a driver's fault: no back end is missing */
    for (int b = 0; b < KP_BACKEND_COUNT; b++) {
        kopt_error why;
        const char *fake = getenv("KOPT_FAKE_LIBRARY"); /* NOLINT(concurrency-mt-unsafe) */
        if (b == KP_BACKEND_FAKE && (!fake || !fake[0]))
            continue;
        kopt_status st = kp_lab_probe((enum kp_backend)b, found, &visit, &why);
        if (st == KOPT_OK)
            continue;
        if (st == KOPT_ENOMEM) {
            if (err)
                *err = why;
            return st;
        }
        kopt_device_missing missing = {kp_backend_name((enum kp_backend)b), why.message,
                                       why.hint};
        if (visitor->missing)
            visitor->missing(visitor->user, &missing);
    }
    return KOPT_OK;
}
