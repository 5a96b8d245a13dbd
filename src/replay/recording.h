/* SPDX-License-Identifier: MIT */
/* A recorded space: what each configuration came to and what finding that out took. Layer:
 * replay. Read from files of Kernel Tuner (recording_kt.c), T4 results (recording_t4.c) and
 * stores (recording_store.c) by way of struct kp_recorder; then it does not change. */
#ifndef KP_REPLAY_RECORDING_H
#define KP_REPLAY_RECORDING_H

#include "kopt/replay.h"
#include "space/space.h"

struct kp_recording {
    kopt_recording_info info; /* its texts are owned */
    struct kp_space *space;   /* the recorded configurations, no others */
    /* By rank: */
    double *time_ns;        /* INFINITY: failed */
    double *compile_ns;     /* 0 where not recorded */
    double *measure_ns;     /* all the rest that the device or the host spent on it */
    unsigned char *outcome; /* kopt_outcome */
    /* The ok ones' times, worst first. */
    double *sorted;
    size_t n_ok;
    struct kp_recorder *owner; /* of the space's parameters */
};

enum { KP_RECORDING_MAX = 20 * 1000 * 1000 }; /* configurations */

/* See kopt_recording_open() and kopt_recording_subjects(). A store must not be open in this
 * process: that the file is one is seen by reading it, and closing it after that takes this
 * process's locks on it away. */
kopt_status kp_recording_open(const char *path, struct kp_recording **out, kopt_error *err);
void kp_recording_close(struct kp_recording *r);
kopt_status kp_recording_subjects(const char *path, int64_t **ids, size_t *n, kopt_error *err);

/* Do two have the same kernel and the same names of parameters? Values may differ. */
bool kp_recording_alike(const struct kp_recording *a, const struct kp_recording *b);
/* Are they the same results: of one file, or of the same kernel, device and problem where both
 * say these? Such are no prior of each other. */
bool kp_recording_same(const struct kp_recording *a, const struct kp_recording *b);

/* Random search without repetition after m evaluations, expected (Willemsen et al. 2024): with
 * the N ok times sorted from worst to best, the one numbered round(m (N + 1) / (m + 1)),
 * counted from 0. (Expected is the one counted so from 1; we keep to the published form.) For
 * scores over time m need not be whole. */
double kp_recording_random(const struct kp_recording *r, double m);

/* --- for the readers ------------------------------------------------------------------------
 */

/* Gathers entries whose parameters are known by name; values are learned as they come. */
struct kp_recorder;

/* Errors: KOPT_ENOMEM. */
kopt_status kp_recorder_new(struct kp_recorder **out, kopt_error *err);
void kp_recorder_free(struct kp_recorder *r);
/* The texts of the information; NULL leaves one as it is. Copied. Errors: KOPT_ENOMEM. */
kopt_status kp_recorder_say(struct kp_recorder *r, const kopt_recording_info *texts,
                            kopt_error *err);
/* The parameters, in the order in which configurations show them; once, before the first entry.
 * Errors: KOPT_EINPUT (none, too many, a name twice), KOPT_ENOMEM. */
kopt_status kp_recorder_params(struct kp_recorder *r, const char *const *names, size_t n,
                               kopt_error *err);
struct kp_recorded {
    const struct kp_value *values; /* one for each parameter; strings are copied */
    kopt_outcome outcome;
    double time_ns;    /* positive and finite when ok */
    double compile_ns; /* NaN or negative: not recorded */
    double measure_ns; /* the same */
};
/* A configuration that is there already takes the newer result, and keeps the costs that this
 * one does not know. Errors: KOPT_ERANGE (more than
 * KP_RECORDING_MAX, or than a parameter's values may be), KOPT_ENOMEM. */
kopt_status kp_recorder_add(struct kp_recorder *r, const struct kp_recorded *entry,
                            kopt_error *err);
void kp_recorder_left_out(struct kp_recorder *r, uint64_t n, bool cut);
/* Takes the recorder over, also when it fails. Values of a parameter are put in order: numbers
 * ascending, strings as they came. Costs that were not recorded become the median of those that
 * were, but measuring what never reached the device costs nothing. Errors: KOPT_EINPUT (nothing
 * was recorded), KOPT_ENOMEM, KOPT_ERANGE. */
kopt_status kp_recorder_finish(struct kp_recorder *r, struct kp_recording **out,
                               kopt_error *err);

/* The formats. *fits: false = it is no such file, nothing was read; for the first two it is
 * decided by the first bytes and members. */
kopt_status kp_recording_read_kt(const char *path, bool *fits, struct kp_recorder *r,
                                 kopt_error *err);
kopt_status kp_recording_read_t4(const char *path, bool *fits, struct kp_recorder *r,
                                 kopt_error *err);
/* subject 0: the only one. */
kopt_status kp_recording_read_store(const char *path, int64_t subject, bool *fits,
                                    struct kp_recorder *r, kopt_error *err);

#endif
