/* SPDX-License-Identifier: MIT */
/* What the files model*.c share: the limits of a model's file and its JSON texts.
 * Layer: model. */
#ifndef KP_MODEL_MODEL_IMPL_H
#define KP_MODEL_MODEL_IMPL_H

#include "model/model.h"

#define KP_MODEL_FORMAT   "kopt-model"
#define KP_MODEL_VERSION  "1"
#define KP_MODEL_METADATA "__metadata__"

enum {
    KP_MODEL_FILE_MAX = 1 << 30,
    KP_MODEL_HEADER_MAX = 16 << 20, /* bytes of the header's JSON */
    KP_MODEL_WEIGHT_MAX = 1 << 20,  /* of one JSON text, see kp_model_json() */
    KP_MODEL_ARENA_MAX = 64 << 20,
    KP_MODEL_ALIGN = 64,       /* of the data in the file */
    KP_MODEL_LENGTH_BYTES = 8, /* of the header, in front of it */
    KP_MODEL_TENSOR_NAME = KP_TENSOR_NAME + 24
};

/* "net0.heads.w" */
void kp_model_tensor_name(size_t net, const struct kp_tensor *t,
                          char name[KP_MODEL_TENSOR_NAME]);

/* A number, list or object takes far more memory than its text: this says whether parsing it
 * is cheap (tens of MiB at most). */
bool kp_model_json_is_small(struct kp_str text);
/* Errors: as kp_json_parse(), KOPT_EINPUT (too many values in it). */
kopt_status kp_model_json(struct kp_str text, const char *what, struct kp_json **out,
                          kopt_error *err);

/* [{"name":"BM","type":"int","values":[16,32]},..] */
void kp_model_targets_write(const struct kp_target *targets, size_t n, struct kp_buf *out);
/* targets[KP_TARGETS_MAX]; names and values in `arena`. Errors: KOPT_EINPUT, KOPT_ENOMEM. */
kopt_status kp_model_targets_read(const struct kp_json *j, struct kp_arena *arena,
                                  struct kp_target *targets, size_t *n, kopt_error *err);

/* Where kp_model_derived_names() are from: lets[KP_FIELDS_MAX]. Returns how many. */
size_t kp_model_derived_lets(const struct kp_kernel *rules, const struct kp_let **lets);
/* The value of a derived field; `env` has the problem's slots. */
double kp_model_derived_value(const struct kp_let *let, const struct kp_env *env);

/* The field of that name, or SIZE_MAX. */
size_t kp_model_field(const struct kp_encoder *e, struct kp_str name);

#endif
