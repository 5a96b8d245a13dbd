/* SPDX-License-Identifier: MIT */
/* What reading and running AMD's models share. Layer: model. */
#ifndef KP_MODEL_KTN_IMPL_H
#define KP_MODEL_KTN_IMPL_H

#include "model/ktn.h"
#include "model/models.h"

#include <stdbool.h>

/* Numbers of the matrices in the net. */
enum { KTN_DENSE_W, KTN_DENSE_B, KTN_EMBED, KTN_OUT_W, KTN_OUT_B, KTN_LSTM };
/* LSTM l of the encoder: three from KTN_LSTM + 3 l, of the decoder: from KTN_LSTM + 3 (L + l).
 */
enum { KTN_X, KTN_B, KTN_H, KTN_PARTS };

/* Tests of one file: n of them, each `in` and then `out` floats. */
struct kp_ktn_tests {
    float *data;
    size_t n;
    size_t in;
    size_t out;
};

struct kp_ktn {
    struct kp_net net; /* the first member: its operations find the rest */
    size_t T, I, D;    /* steps and inputs of the encoder, inputs of its first LSTM */
    bool has_dense, dense_bias, out_bias;
    size_t L;
    size_t H[KP_KTN_LAYERS_MAX]; /* units of layer l, in both halves */
    size_t E, V, P;              /* sizes of an embedding, tokens, positions */
    int64_t *value;              /* [V] */
    bool divided;
    uint32_t first[KP_TARGETS_MAX]; /* token */
    struct kp_ktn_tests encoder;    /* x; h, c of each layer */
    struct kp_ktn_tests decoder;    /* token, h, c of each layer; scores, h, c of each layer */
};

extern const struct kp_net_ops kp_ktn_ops;

/* --- reading --------------------------------------------------------------------------------
 */

enum { KTN_NAME_BYTES = 64 };

struct ktn_name {
    char text[KTN_NAME_BYTES];
};

struct ktn_half { /* the encoder's file or the decoder's */
    struct kp_json *json;
    const struct kp_json *layers;
    const struct kp_json *inputs; /* [["input_1",0,0]..] */
    const struct kp_json *outputs;
    const struct kp_json *params;
    struct ktn_name first; /* dense or embedding; "" where there is no dense layer */
    struct ktn_name lstm[KP_KTN_LAYERS_MAX];
    struct ktn_name last; /* the decoder's dense */
    size_t n_lstm;
    size_t H[KP_KTN_LAYERS_MAX];
};

struct ktn_reading {
    struct kp_ktn *k;
    struct ktn_half enc;
    struct ktn_half dec;
    size_t n_embedded; /* tokens of the embedding */
    kopt_error *err;
};

/* The layers of a file that is open, from the encoder's first: sizes of r->k, names of r->enc
 * and r->dec. Errors: KOPT_EINPUT, KOPT_ERANGE. */
kopt_status kp_ktn_read_encoder(struct ktn_reading *r);
kopt_status kp_ktn_read_decoder(struct ktn_reading *r);

#endif
