/* SPDX-License-Identifier: MIT */
/* The state of a runner: one device, its buffers, references and loaded candidates.
 * Layer: measure. */
#ifndef KP_MEASURE_RUNNER_H
#define KP_MEASURE_RUNNER_H

#include "kopt/types.h"
#include "measure/worker/worker.h"

enum {
    KP_RUNNER_BUFFERS = KP_ARGS_MAX,
    KP_RUNNER_CHECKS = KP_CHECKS_MAX,
    KP_RUNNER_SLOTS = 32
};

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
    char *name; /* of the argument; "" = not known */
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
    uint8_t poison; /* as in kp_run */
};

struct kp_runner {
    struct kp_runtime *rt;
    struct kp_device *dev;
    struct kp_runner_buffer buffers[KP_RUNNER_BUFFERS];
    struct kp_runner_check checks[KP_RUNNER_CHECKS];
    size_t n_checks;
    struct kp_restore restore[KP_RUNNER_BUFFERS];
    size_t n_restore;
    struct kp_restore inout[KP_RUNNER_BUFFERS]; /* those of `restore` with a source */
    size_t n_inout;
    struct kp_candidate slots[KP_RUNNER_SLOTS];
    /* wall time of the job in hand */
    int64_t launch_ns; /* in launches */
    int64_t kernel_ns; /* part of it: the kernels themselves, by the device's clock */
    int64_t load_ns;   /* loading and unloading images */
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

/* The same kernel n times back to back, without poison and flush; buffers that a launch both
 * reads and writes are restored. */
kopt_status kp_candidate_repeat(struct kp_runner *r, struct kp_candidate *c, unsigned n,
                                double *times_ns, kopt_error *err);

struct kp_mistake {
    size_t check; /* n_checks when all is right */
    struct kp_compare compare;
};
/* Compare every checked buffer; the first that is wrong in *out. compare.max_error is over all.
 */
kopt_status kp_runner_check_all(struct kp_runner *r, struct kp_mistake *out, kopt_error *err);
/* One line on what is wrong. */
void kp_runner_describe(const struct kp_runner *r, const struct kp_mistake *m, char *out,
                        size_t bytes);
/* Write inputs and references anew from their files: a stray write may have hit them. Looks
 * first whether one did (`spoiled` NULL: does not). */
kopt_status kp_runner_refresh(struct kp_runner *r, bool *spoiled, kopt_error *err);

/* Forget what the last job took; then, at its end, members launch_ns, kernel_ns, load_ns,
 * check_ns and sense_ns. */
void kp_runner_clear_use(struct kp_runner *r);
bool kp_runner_put_use(const struct kp_runner *r, struct kp_json *j);

/* Requests "measure", "slot", "race" and "energy"; false when the session is gone. */
bool kp_runner_measure(struct kp_runner *r, const struct kp_message *m);
bool kp_runner_slot(struct kp_runner *r, const struct kp_message *m);
bool kp_runner_race(struct kp_runner *r, const struct kp_message *m);
bool kp_runner_energy(struct kp_runner *r, const struct kp_message *m);

#endif
