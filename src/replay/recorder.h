/* SPDX-License-Identifier: MIT */
/* What a recorder holds; for recorder.c and recording.c. Layer: replay. */
#ifndef KP_REPLAY_RECORDER_H
#define KP_REPLAY_RECORDER_H

#include "base/arena.h"
#include "base/map.h"
#include "replay/recording.h"
#include "json/json.h"

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

/* kp_recorder_add() of an entry whose `values` are not set, but stand in an object. One without
 * a plain value for each parameter is left out, as is one that is ok without a time. */
/* The parameters are all that is in the object; those of the first one are learned. Errors
 * also: those of kp_recorder_params(). */
kopt_status kp_recorder_add_exactly(struct kp_recorder *r, const struct kp_recorded *entry,
                                    const struct kp_json *config, kopt_error *err);
/* The object has other members, too. */
kopt_status kp_recorder_add_among(struct kp_recorder *r, const struct kp_recorded *entry,
                                  const struct kp_json *members, kopt_error *err);

/* Of a store, the subjects with results, oldest first; of any other file none. Owner of *ids:
 * kp_free(). Errors: those of kp_store_open(). */
kopt_status kp_recording_list_store(const char *path, int64_t **ids, size_t *n,
                                    kopt_error *err);

#endif
