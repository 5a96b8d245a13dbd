/* SPDX-License-Identifier: MIT */
/* Shared by the lab's own files. Layer: measure. */
#ifndef KP_MEASURE_LAB_INTERNAL_H
#define KP_MEASURE_LAB_INTERNAL_H

#include "measure/images.h"
#include "measure/lab.h"
#include "os/proc.h"

enum job_state { JOB_QUEUED, JOB_COMPILING, JOB_COMPILED, JOB_MEASURING };

struct job {
    int64_t id;
    enum job_state state;
    char *entry;
    char **macros;
    size_t n_macros;
    struct kp_job_launch launch;
    struct kp_buf image;
    double compile_ns; /* NaN = not known yet */
    bool starved;      /* a process of ours had no memory for it */
    bool kept;         /* its image was there already; nobody has been told yet */
    bool lost;         /* a device could not be opened any more after it */
};

enum compiler_state { COMPILER_OFF, COMPILER_OPENING, COMPILER_IDLE, COMPILER_BUSY };

struct compiler {
    struct kp_proc proc;
    enum compiler_state state;
    int64_t job;      /* id; 0 = none */
    int64_t begun_ns; /* of the job */
    int64_t deadline_ns;
    int64_t pause_begun_ns; /* 0 = runs */
    int64_t paused_ns;      /* within the job */
    bool compiled;          /* nothing is left but the kernel's own first launch */
    double compiled_ns;     /* how long it had taken by then, pauses left out */
    unsigned failures;      /* in a row, while opening */
    char *output;           /* path of its stdout and stderr */
};

enum lane_state {
    LANE_OFF, /* to be started again */
    LANE_IDLE,
    LANE_BUSY,
    LANE_GONE /* cannot be started any more; the others go on */
};

struct lane {
    struct kp_proc proc;
    enum lane_state state;
    int device;
    int64_t job;
    bool holds; /* compilers are stopped for it */
    int64_t begun_ns;
    int64_t loaded_ns; /* since when the kernel itself may be running; 0 = not loaded yet */
    int64_t heard_ns;  /* when it was given its job, or said last that it is getting on */
    int64_t deadline_ns;
    char *output;
};

struct kp_lab {
    struct kp_lab_options o;
    char *scratch;
    int lock_fd;  /* of the scratch folder's lock; -1 = none */
    char *worker; /* path of the helper program */
    char *cache_env;
    struct kp_device_info info;
    int64_t free_bytes;
    struct job *jobs[KP_LAB_JOBS_MAX]; /* in order of submission */
    size_t n_jobs;
    struct compiler *compilers;
    size_t n_compilers;
    struct lane lanes[KP_LAB_LANES_MAX];
    size_t n_lanes;
    struct kp_lab_buffer *buffers; /* file names are copies */
    size_t n_buffers;
    struct kp_lab_check *checks;
    size_t n_checks;
    struct kp_lab_use use;
    struct kp_images *images; /* NULL = none are kept */
    struct kp_buf frame;      /* the message in hand */
    struct kp_buf text;       /* an event's message */
    struct kp_buf log;        /* an event's log */
    double *times;            /* an event's samples */
    kopt_error open_error;    /* why a compiler could not be opened */
    kopt_error lane_error;    /* why a device could not be opened again */
    bool known;               /* info is set */
    bool no_memory;           /* for a message that has arrived, or twice for a job */
    const char *starved;      /* what the process did that had none for the job; NULL = none */
};

struct job *kp_lab_job_find(const struct kp_lab *lab, int64_t id);
void kp_lab_job_remove(struct kp_lab *lab, int64_t id);

/* A process that did `what` for the job found no memory: that is no fault of the candidate.
 * Once a fresh process may try again; a second time ends the session. */
void kp_lab_starved(struct kp_lab *lab, struct job *job, const char *what);

/* An event that ends a job without a result from the runner; the job stays. Of the numbers only
 * compile_ns is set, if it is known. */
void kp_lab_fail(struct kp_lab *lab, struct kp_lab_event *ev, int64_t id, kopt_outcome outcome,
                 const char *message, const char *log);
/* The same with the last 4 KiB of a process's output as the log. */
void kp_lab_fail_output(struct kp_lab *lab, struct kp_lab_event *ev, int64_t id,
                        kopt_outcome outcome, const char *message, const char *output_path);

/* compilers (lab_compile.c) */
void kp_lab_compilers_start(struct kp_lab *lab);
void kp_lab_compilers_feed(struct kp_lab *lab);
void kp_lab_compilers_pause(struct kp_lab *lab, bool stop);
/* End the work on a job, and with it the process: compilers cannot be asked to stop. */
void kp_lab_compilers_drop(struct kp_lab *lab, int64_t id);
/* True: *ev is set. */
bool kp_lab_compilers_poll(struct kp_lab *lab, struct kp_lab_event *ev);
/* Fails when no compiler can be opened. */
kopt_status kp_lab_compilers_health(const struct kp_lab *lab, kopt_error *err);
int64_t kp_lab_compilers_deadline(const struct kp_lab *lab);

/* lanes (lab_lane.c) */
bool kp_lab_put_plan(struct kp_json *j, const struct kp_lab_plan *p);
kopt_status kp_lab_lane_start(struct kp_lab *lab, struct lane *l, kopt_error *err);
/* Start the process of a lane that is off; a lane that cannot be started is gone. */
bool kp_lab_lane_revive(struct kp_lab *lab, struct lane *l);
bool kp_lab_lanes_poll(struct kp_lab *lab, struct kp_lab_event *ev);
int64_t kp_lab_lanes_deadline(const struct kp_lab *lab);
/* Is a candidate being timed on the cores that compile? */
bool kp_lab_lanes_hold(const struct kp_lab *lab);
/* How long there may be silence after a phase: writing much data takes longer than a launch. */
int64_t kp_lab_phase_limit_ns(const struct kp_message *m, int64_t limit_ns);
kopt_status kp_lab_lane_buffers(struct kp_lab *lab, struct lane *l, kopt_error *err);
kopt_status kp_lab_lane_checks(struct kp_lab *lab, struct lane *l, kopt_error *err);

/* Start the helper program in a role; `output` is emptied first. */
kopt_status kp_lab_spawn(struct kp_lab *lab, const char *role, const char *output,
                         struct kp_proc *p, kopt_error *err);
/* Send (takes head) and wait for the reply with its id, skipping phases; "error" replies become
 * err. The message is in lab->frame. Errors also: KOPT_ECRASH, KOPT_ETIMEOUT; then the process
 * is ended. */
kopt_status kp_lab_call(struct kp_lab *lab, struct kp_proc *p, struct kp_json *head,
                        const struct kp_buf *blob, int64_t timeout_ns, struct kp_message *reply,
                        kopt_error *err);

#endif
