/* SPDX-License-Identifier: MIT */
/* Runs that another tool made on recorded spaces. Layer: replay. */
#ifndef KP_REPLAY_TRACES_H
#define KP_REPLAY_TRACES_H

#include "kopt/replay.h"

#include "base/arena.h"
#include "base/error.h"

struct kp_trace {
    const char *space;
    const char *method;
    double *times_ns; /* INFINITY = failed */
    double *costs_s;  /* NULL = not said */
    size_t n;
};

struct kp_traces {
    struct kp_arena arena; /* of the texts */
    struct kp_trace *items;
    size_t n;
    size_t cap;
};

/* See kopt_traces_open(). */
kopt_status kp_traces_open(const char *path, struct kp_traces **out, kopt_error *err);
void kp_traces_close(struct kp_traces *t);

#endif
