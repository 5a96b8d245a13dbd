/* SPDX-License-Identifier: MIT */
/* One suite of sessions over every kind of real device: session_opencl.c and session_cuda.c say
 * how they differ. */
#ifndef KP_TESTS_SESSION_DEVICES_H
#define KP_TESTS_SESSION_DEVICES_H

#include "session/session.h"

enum { DEVICE_PROBLEM_MAX = 16, DEVICE_FAULTS = 19 };

#define ONE(outcome) (1u << (outcome))

/* An example at a tiny size, its parameters narrowed to what compiles quickly. */
struct device_example {
    const char *name;
    const char *problem[DEVICE_PROBLEM_MAX]; /* "M=37", .. */
};

/* What may come of a mode of kernels/faults.*, as a set of ONE(outcome), and a part of its
 * message; NULL = any. */
struct device_fault {
    unsigned outcomes;
    const char *says;
};

struct device_flavour {
    const char *backend;  /* "opencl" */
    const char *suffix;   /* "cl" */
    const char *language; /* of a T1 file */
    /* Its faults are known: 0 = those tests are skipped. NULL = always. */
    int (*knows)(const char *compiler);
    double compile_timeout_s; /* in the test of the faults */
    struct device_example examples[6];
    struct device_fault faults[DEVICE_FAULTS];
};

const struct device_flavour *device_flavour(void);

#endif
