/* SPDX-License-Identifier: MIT */
/* A predictor: networks, what their inputs and outputs mean, and the rules. Layer: model.
 *
 * On disk it is one safetensors file (docs/model-file.md). It is mapped read-only and its
 * matrices are used where they lie, so processes share them and loading copies nothing. */
#ifndef KP_MODEL_MODEL_H
#define KP_MODEL_MODEL_H

#include "model/beam.h"
#include "model/encoder.h"
#include "space/kernel.h"

struct kp_spaces;       /* model_spaces.h */
struct kp_scratch;      /* scratch.h */
struct kp_scratch_pool; /* scratch.h */
struct kp_ranking;      /* ranking.h */
struct kp_forest;       /* forest.h */

struct kp_model {
    const char *kernel;
    struct kp_encoder *encoder;
    struct kp_target targets[KP_TARGETS_MAX];
    size_t n_targets;
    struct kp_net *nets[KP_BEAM_NETS_MAX]; /* of one kind and shape, or of two: the first's
                                              come first; what goes in and out is the same */
    size_t n_nets;
    struct kp_ranking *ranking; /* of networks that rank; NULL: they translate */
    struct kp_forest *forest;   /* beside the networks; NULL: they are alone */
    /* What messages call the rules; its extension says how they are read. In the file it has no
     * folder. */
    const char *rules_path;
    struct kp_str rules_text; /* empty: there are none */
    struct kp_kernel *rules;  /* parsed; NULL: there are none */
    /* See kp_model_keep_spaces(); NULL: none are kept. */
    struct kp_spaces *spaces;
    struct kp_scratch_pool *scratch;
    size_t
        n_raw; /* fields that a problem has; the encoder's others, behind them, are derived */
    struct kp_json *info;  /* an object */
    struct kp_arena arena; /* of the texts and values above */
    void *map;             /* of the file, or NULL */
    size_t map_bytes;
};

void kp_model_free(struct kp_model *m);
/* How many of the networks are of the first one's kind. */
size_t kp_model_n_first(const struct kp_model *m);
/* The networks' kind, "factored", or both of them, "factored+attention". */
enum { KP_MODEL_NETWORK = 64 };
void kp_model_network(const struct kp_model *m, char out[KP_MODEL_NETWORK]);

/* Written to a file of another name that then takes `path`'s place: a reader sees the old model
 * or the new one. Errors: KOPT_EIO, KOPT_EFULL, KOPT_ENOMEM; KOPT_EINPUT (a parameter that is
 * not finite, a text that is not UTF-8), KOPT_ERANGE (more than a reader would take): then
 * nothing was written. */
kopt_status kp_model_save(const struct kp_model *m, const char *path, kopt_error *err);
/* Errors: KOPT_EIO; KOPT_EINPUT (not such a file, cut, sizes that do not agree, numbers that
 * are not finite, rules that cannot be parsed, another version: what is wrong and where);
 * KOPT_ENOMEM. Nothing in the file is trusted. */
kopt_status kp_model_load(const char *path, struct kp_model **out, kopt_error *err);

/* --- derived fields -------------------------------------------------------------------------
 */

/* The lets of the rules that depend on the problem alone and may be numbers are fields, too:
 * the rules' author says in them what matters about a problem. A second name for a field is
 * none. names[KP_FIELDS_MAX] are the first of them, borrowed from the kernel; returns how many.
 */
size_t kp_model_derived_names(const struct kp_kernel *rules, const char **names);
/* Values of those for one problem: true is 1; one that is no finite number, or cannot be
 * computed, is 0. `problem`: by the rules' problem index. Errors: KOPT_ENOMEM. */
kopt_status kp_model_derive(const struct kp_kernel *rules, const struct kp_value *problem,
                            double *values, kopt_error *err);

/* --- asking ---------------------------------------------------------------------------------
 */

/* A problem by name. Numbers, or texts for fields of words (a number given there is the word
 * that it is written as). The rules may have names that are no fields. */
struct kp_given {
    const char *name;
    struct kp_value value;
};

/* As texts give values: an integer, a float, else a word, which is borrowed. */
struct kp_value kp_given_value(const char *text);

struct kp_predict_options {
    size_t k;                       /* configurations wanted, 1 to KP_BEAM_WIDTH_MAX */
    size_t width;                   /* of the beam, at least k; 0 = the larger of k and 8 */
    bool unconstrained;             /* leave the rules aside */
    const struct kp_limits *limits; /* of the device; NULL: its rules do not bind */
};

struct kp_prediction {
    uint32_t *configs; /* [n][n_targets]: value indices of the model's targets */
    double *logp;      /* [n] */
    size_t n;
    struct kp_scratch *scratch; /* where both stand, before the model is freed; NULL: kp_free()
                                   frees them */
};
void kp_prediction_deinit(struct kp_prediction *p);

/* From now on the spaces of the last problems and the memory of questions are kept for the next
 * ones: each question without them makes its own, which takes many times as long as the answer.
 * A model that was loaded keeps them from the start. The rules, targets and the encoder must
 * not change any more. Without rules there are no spaces to keep. Errors: KOPT_ENOMEM. */
kopt_status kp_model_keep_spaces(struct kp_model *m, kopt_error *err);

/* A name with a default in the rules may be left out. With rules, only values that the model
 * knows come out, and every configuration satisfies the rules.
 * Errors: KOPT_EUSAGE (a field that is missing, unknown or given twice, a word where a number
 * is needed, a number that is not finite, or negative where the model saw no such: the hint
 * lists the fields; k or width out of range), KOPT_ENOTFOUND (no configuration satisfies the
 * rules: the message names the rule that leaves none), KOPT_ERANGE (as kp_space_new()),
 * KOPT_ENOMEM. A word or number that was never seen is no error. Any number of threads may ask
 * one model. Where it keeps memory and spaces, a question allocates nothing once as many, as
 * large ones were asked at a time before, and the rules leave one of the last sets of
 * configurations. */
kopt_status kp_model_predict(const struct kp_model *m, const struct kp_given *given,
                             size_t n_given, const struct kp_predict_options *o,
                             struct kp_prediction *out, kopt_error *err);

#endif
