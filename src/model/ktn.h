/* SPDX-License-Identifier: MIT */
/* AMD's trained predictors for MIOpen's solvers (KernelTuningNet): recurrent networks as Keras
 * and frugally-deep write them, in three JSON files. Layer: model.
 *
 *   encoder  x [T][I] -> dense [T][D], where there is one -> LSTM, LSTM ..
 *   decoder  embedding of the token before -> as many LSTMs, each from the last state of the
 *            encoder's -> dense: a score for each token of the vocabulary
 *
 * A token is one value at one position. The first token of the vocabulary begins a
 * configuration, the last one ends it. The metadata has the tokens' values, position after
 * position, but not where a position's tokens begin: kp_ktn_divide() finds that out. */
#ifndef KP_MODEL_KTN_H
#define KP_MODEL_KTN_H

#include "model/model.h"
#include "model/net.h"

struct kp_ktn;

enum {
    KP_KTN_FILE_MAX = 64 << 20, /* bytes */
    KP_KTN_LAYERS_MAX = 8,      /* LSTMs of the encoder */
    KP_KTN_SIZE_MAX = 4096      /* units, tokens, inputs */
};

struct kp_ktn_source {
    const char *name; /* stands for the text in messages */
    struct kp_str text;
};

/* `prefix`_encoder.ktn.model, `prefix`_decoder.ktn.model, `prefix`_metadata.ktn.model.
 * Owner: kp_ktn_free(). Errors: KOPT_EIO; KOPT_EINPUT (not such files, layers other than those
 * above, sizes that do not agree, numbers that are cut or not finite, values that are no
 * integers); KOPT_ERANGE (larger than the limits above); KOPT_ENOMEM. */
kopt_status kp_ktn_load(const char *prefix, struct kp_ktn **out, kopt_error *err);
kopt_status kp_ktn_parse(const struct kp_ktn_source *encoder,
                         const struct kp_ktn_source *decoder,
                         const struct kp_ktn_source *metadata, struct kp_ktn **out,
                         kopt_error *err);
void kp_ktn_free(struct kp_ktn *k);

size_t kp_ktn_n_inputs(const struct kp_ktn *k); /* T I */
size_t kp_ktn_n_params(const struct kp_ktn *k); /* numbers that were trained */
size_t kp_ktn_n_tokens(const struct kp_ktn *k);
size_t kp_ktn_n_positions(const struct kp_ktn *k);

/* Runs the tests that the files bring along: inputs and the outputs that Keras had for them.
 * *max_error: the largest difference of an output. Errors: KOPT_EINPUT (the files have none, or
 * a difference is above 1e-5: sums of up to 128 products in float, of results up to 10, in
 * another order), KOPT_ENOMEM. */
kopt_status kp_ktn_self_test(const struct kp_ktn *k, double *max_error, kopt_error *err);

/* The network's input for a problem of ConvAsm1x1U, x[kp_ktn_n_inputs()], from columns of
 * MIOpen's performance databases: data_type, direction, in_channels, out_channels, in_h, in_w,
 * batchsize; others are passed over. Errors: KOPT_EUSAGE (one of those is missing, or of
 * another kind), KOPT_EINPUT (the network has another number of inputs). */
kopt_status kp_ktn_features(const struct kp_ktn *k, const struct kp_given *given,
                            size_t n_given, float *x, kopt_error *err);

/* Which tokens belong to which position: those of position p are distinct and stand in the list
 * of params[p], and there is one way alone to cut the vocabulary so. Errors: KOPT_EINPUT (there
 * is none, or several; another number of parameters), KOPT_ENOMEM. */
kopt_status kp_ktn_divide(struct kp_ktn *k, const struct kp_param *params, size_t n_params,
                          kopt_error *err);

/* After kp_ktn_divide(). A network like any other for prediction; it cannot be trained. Target
 * p is position p, its values are the position's tokens, its probabilities a softmax over these
 * alone. Its features are kp_ktn_features()', its tokens are not looked at. Borrowed. */
const struct kp_net *kp_ktn_net(const struct kp_ktn *k);
/* What value v of target p is. */
int64_t kp_ktn_value(const struct kp_ktn *k, size_t p, uint32_t v);

/* A beam of `width` over the position's tokens: at most n configurations, values[n][P] and
 * logp[n], the likeliest first; *found: how many. With `space`, whose parameters are those of
 * kp_ktn_divide(), all of them are valid; a parameter's values that are no token's should not
 * be in it, for a prefix may then live by a completion that cannot be found. Errors:
 * KOPT_EUSAGE (not divided, another number of parameters, n or width out of range),
 * KOPT_ENOMEM. */
struct kp_ktn_ask {
    const float *x;
    const struct kp_space *space; /* NULL: nothing is forbidden */
    size_t width;
    size_t n;
};
kopt_status kp_ktn_predict(const struct kp_ktn *k, const struct kp_ktn_ask *ask,
                           int64_t *values, double *logp, size_t *found, kopt_error *err);

/* The way MIOpen decodes: position after position the token with the highest score of the whole
 * vocabulary whose value may follow those before; there is no way back. begins(values, n): may
 * values[0 .. n) begin a configuration? NULL: all may. *found: positions that were filled;
 * fewer than all: none could follow, or the token that begins or ends a configuration came
 * first. Errors: KOPT_ENOMEM. */
struct kp_ktn_prefix {
    bool (*begins)(void *user, const int64_t *values, size_t n);
    void *user;
};
kopt_status kp_ktn_greedy(const struct kp_ktn *k, const float *x,
                          const struct kp_ktn_prefix *prefix, int64_t *values, size_t *found,
                          kopt_error *err);

#endif
