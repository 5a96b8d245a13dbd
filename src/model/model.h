/* SPDX-License-Identifier: MIT */
/* A predictor: networks, what their inputs and outputs mean, and the rules. Layer: model.
 *
 * On disk it is one safetensors file: the networks' matrices as float32 tensors named
 * "net0.<tensor>", and under __metadata__ texts: "format" ("kopt-model"), "version" ("1"),
 * "kernel", "model" (the network's name), "shape", "encoder", "targets", "rules" (the rules
 * file's text) and "info" (JSON: where the data came from and its hash, the split, the plan and
 * the log of training). A file is mapped read-only and its matrices are used where they lie. */
#ifndef KP_MODEL_MODEL_H
#define KP_MODEL_MODEL_H

#include "model/beam.h"
#include "model/encoder.h"
#include "space/kernel.h"

struct kp_model {
    const char *kernel;
    struct kp_encoder *encoder;
    struct kp_target targets[KP_TARGETS_MAX];
    size_t n_targets;
    struct kp_net *nets[KP_BEAM_NETS_MAX]; /* of one kind and shape */
    size_t n_nets;
    const char *rules_path;   /* what messages call the rules */
    struct kp_str rules_text; /* empty: there are none */
    struct kp_kernel *rules;  /* parsed; NULL: there are none */
    size_t n_raw;             /* fields that a problem has; the encoder's others are derived */
    struct kp_json *info;     /* an object */
    struct kp_arena arena;    /* of the texts and values above */
    void *map;                /* of the file, or NULL */
    size_t map_bytes;
};

void kp_model_free(struct kp_model *m);

/* Written to a file of another name that then takes `path`'s place: a reader sees the old model
 * or the new one. Errors: KOPT_EIO, KOPT_ENOMEM. */
kopt_status kp_model_save(const struct kp_model *m, const char *path, kopt_error *err);
/* Errors: KOPT_EIO; KOPT_EINPUT (not such a file, cut, sizes that do not agree, numbers that
 * are not finite, rules that cannot be parsed, another version: what is wrong and where);
 * KOPT_ENOMEM. Nothing in the file is trusted. */
kopt_status kp_model_load(const char *path, struct kp_model **out, kopt_error *err);

/* --- derived fields -------------------------------------------------------------------------
 */

/* The lets of the rules that depend on the problem alone and are numbers are fields, too: the
 * rules' author says in them what matters about a problem. Their names, at most KP_FIELDS_MAX;
 * the array and the names are the kernel's and the caller's. */
size_t kp_model_derived_names(const struct kp_kernel *rules, const char **names);
/* Values of those for one problem, all of whose names are known; one that cannot be evaluated
 * is 0. `problem`: by the rules' problem index. */
void kp_model_derive(const struct kp_kernel *rules, const struct kp_value *problem,
                     double *values);

/* --- asking ---------------------------------------------------------------------------------
 */

/* A problem by name. Numbers, or texts for fields of words. */
struct kp_given {
    const char *name;
    struct kp_value value;
};

struct kp_predict_options {
    size_t k;                       /* configurations wanted, at least 1 */
    size_t width;                   /* of the beam; 0 = the larger of k and 8 */
    bool unconstrained;             /* leave the rules aside */
    const struct kp_limits *limits; /* of the device; NULL: its rules do not bind */
};

struct kp_prediction {
    uint32_t *configs; /* [n][n_targets]: value indices of the model's targets */
    double *logp;      /* [n] */
    size_t n;
};
void kp_prediction_deinit(struct kp_prediction *p);

/* Errors: KOPT_EUSAGE (a field that is missing, unknown or given twice, a word where a number
 * is needed: the hint lists the fields), KOPT_ENOTFOUND (no configuration satisfies the rules:
 * the message names the rule that leaves none), KOPT_ENOMEM. A word that was never seen is no
 * error. Any number of threads may ask one model. */
kopt_status kp_model_predict(const struct kp_model *m, const struct kp_given *given,
                             size_t n_given, const struct kp_predict_options *o,
                             struct kp_prediction *out, kopt_error *err);

#endif
