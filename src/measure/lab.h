/* SPDX-License-Identifier: MIT */
/* The processes that compile, run and check candidates for one session. Layer: measure.
 *
 * One runner for each device, a pool of compilers ahead of them. A process that crashes, hangs
 * or loses its device is ended with all that it started and replaced; the candidate gets that
 * as its outcome. Where the device computes on the cores that compile (PoCL), compilers are
 * stopped while a candidate is timed.
 *
 * One thread. A job's life: kp_lab_compile() -> event COMPILED -> kp_lab_measure() on a free
 * lane
 * -> event RESULT; a job that does not compile goes straight to RESULT. A job whose runner
 * ended for a reason of its own is COMPILED once more. */
#ifndef KP_MEASURE_LAB_H
#define KP_MEASURE_LAB_H

#include "kopt/types.h"
#include "measure/message.h"

enum { KP_LAB_LANES_MAX = 16, KP_LAB_COMPILERS_MAX = 128, KP_LAB_JOBS_MAX = 4096 };

struct kp_lab;

struct kp_lab_options {
    enum kp_backend backend;
    int devices[KP_LAB_LANES_MAX]; /* indices, all different; of one kind */
    size_t n_devices;              /* at least 1 */
    unsigned compilers;            /* at least 1 */
    struct kp_str source;          /* borrowed while the lab lives, as are all below */
    const char *source_path;       /* for messages and #include; NULL = none */
    const char *const *options;    /* of the compiler */
    size_t n_options;
    int64_t compile_timeout_ns;
    int64_t launch_timeout_ns;
    const char *image_folder; /* compiled images that outlive the session; NULL = none. These
                                 two are borrowed during kp_lab_open() alone */
    const char *image_key; /* what decides them beside the macros, the options and the device:
                              the source's hash, includes and all */
    int wake_fd;           /* a byte there ends blocking steps with KOPT_EINTR; -1 = none */
};

/* Makes the scratch folder, opens the devices, starts the compilers.
 * Errors: KOPT_EENV (driver, device or helper program missing), KOPT_EDEVICE, KOPT_EUSAGE
 * (devices of different kinds), KOPT_ENOMEM, KOPT_EIO, KOPT_EFULL. */
kopt_status kp_lab_open(const struct kp_lab_options *o, struct kp_lab **out, kopt_error *err);
/* Ends every process, removes the scratch folder. */
void kp_lab_close(struct kp_lab *lab);

const struct kp_device_info *kp_lab_device(const struct kp_lab *lab);
size_t kp_lab_n_devices(const struct kp_lab *lab);
/* Bytes of device memory that were free when it was opened; 0 = not known. */
int64_t kp_lab_free_bytes(const struct kp_lab *lab);
/* A folder for the session's files, gone after kp_lab_close(). */
const char *kp_lab_scratch(const struct kp_lab *lab);
void kp_lab_set_launch_timeout(struct kp_lab *lab, int64_t ns);

/* --- data
 * ------------------------------------------------------------------------------------- */

struct kp_lab_buffer {
    uint32_t buffer; /* index, as in kp_job_arg */
    size_t bytes;
    const char *file; /* content; NULL = output only */
    bool inout;       /* restored before each launch */
};

struct kp_lab_check {
    uint32_t buffer;
    const char *name; /* of the argument, for messages; NULL = its number */
    const char *file; /* what it must be */
    enum kp_number type;
    double rtol;
    double atol;
};

/* Buffers on every lane, also after a replacement. `b` is copied.
 * Errors: KOPT_EFULL (device memory), KOPT_EDEVICE, KOPT_EIO. */
kopt_status kp_lab_set_buffers(struct kp_lab *lab, const struct kp_lab_buffer *b, size_t n,
                               kopt_error *err);
kopt_status kp_lab_set_checks(struct kp_lab *lab, const struct kp_lab_check *c, size_t n,
                              kopt_error *err);

/* --- jobs
 * ------------------------------------------------------------------------------------- */

struct kp_lab_job {
    int64_t id; /* the caller's, unique, positive */
    const char *entry;
    const char *const *macros; /* "BM=64" */
    size_t n_macros;
    struct kp_job_launch launch;
};

/* Copies the job. Errors: KOPT_ERANGE (KP_LAB_JOBS_MAX), KOPT_ENOMEM. */
kopt_status kp_lab_compile(struct kp_lab *lab, const struct kp_lab_job *job, kopt_error *err);
/* Jobs that wait for a compiler or are being compiled. */
size_t kp_lab_n_compiling(const struct kp_lab *lab);
/* Forget a job that is not being measured: it gives no more events. */
void kp_lab_forget(struct kp_lab *lab, int64_t id);
/* Is its image there? */
bool kp_lab_is_compiled(const struct kp_lab *lab, int64_t id);

struct kp_lab_plan {
    unsigned min_samples;
    unsigned max_samples;
    double precision;
    double best_ns; /* NaN = none yet */
    double drop_ratio;
    double budget_ns; /* of timed launches */
    size_t flush_bytes;
    bool check;
};

bool kp_lab_lane_free(const struct kp_lab *lab);
/* Errors: KOPT_EBUSY (no free lane, or it was found dead: the job waits), KOPT_ENOTFOUND (not
 * compiled), KOPT_ENOMEM. */
kopt_status kp_lab_measure(struct kp_lab *lab, int64_t id, const struct kp_lab_plan *p,
                           kopt_error *err);

enum kp_lab_event_kind { KP_LAB_NOTHING, KP_LAB_COMPILED, KP_LAB_RESULT };

struct kp_lab_event {
    enum kp_lab_event_kind kind;
    int64_t id;
    kopt_result result; /* RESULT: all but id, config, from_store, race; strings and samples are
                           borrowed until the next call */
};

/* The next event, within `timeout_ms` (-1: wait for ever) or until a byte arrives at `wake_fd`
 * (-1: none). Nothing: KOPT_OK with kind KP_LAB_NOTHING.
 * Errors: KOPT_EDEVICE (a device cannot be opened any more), KOPT_EENV, KOPT_ENOMEM. */
kopt_status kp_lab_next(struct kp_lab *lab, int timeout_ms, int wake_fd,
                        struct kp_lab_event *ev, kopt_error *err);

/* --- whole steps, blocking
 * -------------------------------------------------------------------- */

/* Compile and launch a reference kernel on the first lane, keep buffers in files.
 * Errors: KOPT_EINPUT (does not compile), KOPT_EFAILED (crash, hang, refused launch),
 * KOPT_EDEVICE (the device cannot be opened again), KOPT_EINTR, KOPT_ENOMEM. */
struct kp_lab_save {
    uint32_t buffer;
    const char *file;
};
kopt_status kp_lab_reference(struct kp_lab *lab, const struct kp_lab_job *job,
                             const struct kp_lab_save *save, size_t n_save, kopt_error *err);

/* Interleaved launches of compiled jobs ids[n] on the first lane, all data written anew before:
 * times_ns[round][n], NaN where the clock failed; *rounds: wanted on entry, made on return.
 * racers[n]: KOPT_OUT_UNSTEADY where the answer of the last timed launch was wrong, and it was
 * no other's fault. Errors: KOPT_EFAILED (a launch was refused, or the runner died),
 * KOPT_EDEVICE (it cannot be started again), KOPT_EINTR, KOPT_ENOTFOUND, KOPT_ENOMEM. */
struct kp_lab_racer {
    kopt_result result; /* without samples and their median */
    char message[512];  /* result.message */
};
kopt_status kp_lab_race(struct kp_lab *lab, const int64_t *ids, size_t n,
                        const struct kp_lab_plan *p, unsigned *rounds, double *times_ns,
                        struct kp_lab_racer *racers, kopt_error *err);

struct kp_lab_use {
    int64_t device_ns;   /* lanes at work, summed */
    int64_t launch_ns;   /* part of it: kernels that ran, to their end or not */
    int64_t kernel_ns;   /* part of launch_ns, by the device's clock; the rest restores inputs,
                            fills outputs and empties caches */
    int64_t load_ns;     /* part of it: the driver loading and unloading images */
    int64_t check_ns;    /* part of it: comparing outputs, writing inputs anew */
    int64_t sense_ns;    /* part of it: reading sensors */
    int64_t compile_ns;  /* compilers at work, pauses left out, summed */
    uint64_t n_replaced; /* processes that had to be replaced */
};
void kp_lab_get_use(const struct kp_lab *lab, struct kp_lab_use *out);

/* --- devices
 * ---------------------------------------------------------------------------------- */

/* List the devices of a backend from a process of its own. `visit` gets each; devices that
 * cannot be asked are passed over. Errors: KOPT_EENV (with hint), KOPT_ECRASH (the driver ended
 * the process), KOPT_ETIMEOUT. */
kopt_status kp_lab_probe(enum kp_backend b,
                         void (*visit)(void *user, const struct kp_device_info *info),
                         void *user, kopt_error *err);

#endif
