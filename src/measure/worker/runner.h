/* SPDX-License-Identifier: MIT */
/* The state of a runner: one device, its buffers, references and loaded candidates.
 * Layer: measure. */
#ifndef KP_MEASURE_RUNNER_H
#define KP_MEASURE_RUNNER_H

#include "kopt/types.h"
#include "measure/worker/worker.h"

enum { KP_RUNNER_BUFFERS = 256, KP_RUNNER_CHECKS = 32, KP_RUNNER_SLOTS = 32 };

struct kp_runner_buffer {
    struct kp_buffer *mem;      /* NULL = not set */
    struct kp_buffer *pristine; /* inout: what it is restored from */
    char *file;                 /* its content; NULL = output */
    size_t bytes;
    bool out; /* poisoned before each launch */
};

struct kp_runner_check {
    uint32_t buffer;
    struct kp_buffer *want;
    char *file;
    enum kp_number type;
    double rtol;
    double atol;
};

/* A loaded candidate with what it is launched with. */
struct kp_candidate {
    struct kp_module *module; /* NULL = none */
    struct kp_job_launch job;
    struct kp_launch_arg *args;
    struct kp_launch launch;
};

struct kp_runner {
    struct kp_runtime *rt;
    struct kp_device *dev;
    struct kp_runner_buffer buffers[KP_RUNNER_BUFFERS];
    struct kp_runner_check checks[KP_RUNNER_CHECKS];
    size_t n_checks;
    struct kp_restore restore[KP_RUNNER_BUFFERS];
    size_t n_restore;
    struct kp_candidate slots[KP_RUNNER_SLOTS];
    /* wall time of the job in hand */
    int64_t launch_ns; /* in launches */
    int64_t check_ns;  /* comparing outputs, writing inputs anew */
    int64_t sense_ns;  /* reading sensors */
    int64_t sensed_ns; /* when the sensors were read last; 0 = never */
};

/* Load the image in `m` for the launch in `m`. Errors: KOPT_ERANGE (device limits),
 * KOPT_EDEVICE, KOPT_ENOTFOUND, KOPT_ECORRUPT, KOPT_ENOMEM. Then nothing is held. */
kopt_status kp_candidate_load(struct kp_runner *r, const struct kp_message *m,
                              struct kp_candidate *c, kopt_error *err);
void kp_candidate_unload(struct kp_runner *r, struct kp_candidate *c);

/* n launches, each after restore and poison, and a cache flush of `flush` bytes. */
kopt_status kp_candidate_run(struct kp_runner *r, struct kp_candidate *c, unsigned n,
                             size_t flush, double *times_ns, kopt_error *err);

/* Compare every checked buffer; the worst result in *out, and in *check its index (n_checks
 * when all are good). max_error is over all. */
kopt_status kp_runner_check_all(struct kp_runner *r, struct kp_compare *out, size_t *check,
                                kopt_error *err);
/* Write inputs and references anew from their files: a stray write may have hit them. */
kopt_status kp_runner_refresh(struct kp_runner *r, kopt_error *err);

/* Requests "measure", "slot" and "race"; false when the session is gone. */
bool kp_runner_measure(struct kp_runner *r, const struct kp_message *m);
bool kp_runner_slot(struct kp_runner *r, const struct kp_message *m);
bool kp_runner_race(struct kp_runner *r, const struct kp_message *m);

#endif
