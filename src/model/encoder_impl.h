/* SPDX-License-Identifier: MIT */
/* What an encoder holds; for encoder.c and encoder_json.c. Layer: model. */
#ifndef KP_MODEL_ENCODER_IMPL_H
#define KP_MODEL_ENCODER_IMPL_H

#include "model/encoder.h"

enum {
    KP_KNOWN_MAX = 1 << 16,                /* numbers of a field that have tokens */
    KP_FEATURES_MAX = KP_FIELDS_MAX * 256, /* of a problem */
    KP_FEATURE_SHIFT_MAX = 8
};

enum kp_feature_kind {
    KP_FEATURE_LOG,     /* log2(1 + |x|) */
    KP_FEATURE_SIGN,    /* -1, 0, 1 */
    KP_FEATURE_DIVIDES, /* does 2^shift divide x? */
    KP_FEATURE_PART,    /* (x mod 2^shift) / 2^shift, in [0, 1) */
    KP_FEATURE_IS,      /* x == value; of words the only kind */
    KP_FEATURE_KINDS
};

struct kp_feature {
    enum kp_feature_kind kind;
    uint32_t field;
    int shift;    /* DIVIDES, PART */
    double value; /* IS */
    double mean;
    double scale; /* 1 / deviation */
};

/* The token of one field: `first` is its unknown, first + 1 + i is known[i]. */
struct kp_token {
    uint32_t field;
    int32_t first;
    uint32_t n_known;
    const double *known; /* ascending */
};

struct kp_encoder {
    struct kp_arena arena; /* all that is below */
    const struct kp_field *fields;
    size_t n_fields;
    /* [n_fields]: the one number, or word's index, of all training problems; NaN: they
     * differed, or it is not known. */
    double *only;
    struct kp_token *tokens; /* ascending by field */
    size_t n_tokens;
    int32_t n_vocab;
    struct kp_feature *features; /* ascending by field */
    size_t n_features;
};

/* An empty one; NULL: no memory. */
struct kp_encoder *kp_encoder_empty(void);

#endif
