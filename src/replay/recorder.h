/* SPDX-License-Identifier: MIT */
/* What a recorder holds; for recorder.c and recording.c. Layer: replay. */
#ifndef KP_REPLAY_RECORDER_H
#define KP_REPLAY_RECORDER_H

#include "base/arena.h"
#include "base/map.h"
#include "replay/recording.h"

struct kp_learned { /* a parameter */
    const char *name;
    struct kp_value *values; /* as they came, then in order */
    size_t n_values;
    size_t cap;
    struct kp_map index; /* type and value -> index in `values` */
};

struct kp_result_row {
    double time_ns; /* INFINITY: failed */
    double compile_ns;
    double measure_ns; /* NaN: not recorded */
    kopt_outcome outcome;
};

struct kp_recorder {
    char *text[6]; /* path, format, name, kernel, device, problem; NULL = "" */
    struct kp_arena arena;
    struct kp_learned *learned;
    size_t n_params;
    uint32_t *configs; /* n rows of n_params value indices, as they came */
    size_t configs_cap;
    struct kp_result_row *rows;
    size_t rows_cap;
    size_t n;
    uint64_t left_out;
    bool cut;
    /* For the space. */
    struct kp_param *params;
    struct kp_space_desc desc;
};

/* Values in order, and the configurations in those terms. Errors: KOPT_ENOMEM. */
kopt_status kp_recorder_arrange(struct kp_recorder *r, kopt_error *err);

#endif
