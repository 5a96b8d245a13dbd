/* SPDX-License-Identifier: MIT */
/* From a problem's numbers to a network's inputs. Layer: model.
 *
 * Each field becomes a token and some features. A field's numbers that stood in the training
 * rows have tokens of their own; all others share the field's token for the unknown. Features
 * take a number as a number: its logarithm, which powers of two divide it, what it leaves
 * modulo sizes that hardware likes; so a number that was never seen is near those it resembles.
 */
#ifndef KP_MODEL_ENCODER_H
#define KP_MODEL_ENCODER_H

#include "model/dataset.h"
#include "json/json.h"

struct kp_encoder;

/* From the training problems: `use[p]` != 0 for those that count. Fields that do not vary among
 * them give no token and no feature. Errors: KOPT_EINPUT (no problem), KOPT_ENOMEM. */
kopt_status kp_encoder_new(const struct kp_dataset *d, const unsigned char *use,
                           struct kp_encoder **out, kopt_error *err);
void kp_encoder_free(struct kp_encoder *e);

size_t kp_encoder_n_fields(const struct kp_encoder *e);   /* of a problem */
size_t kp_encoder_n_tokens(const struct kp_encoder *e);   /* that a problem becomes */
size_t kp_encoder_n_vocab(const struct kp_encoder *e);    /* different tokens, all fields */
size_t kp_encoder_n_features(const struct kp_encoder *e); /* that a problem becomes */
const struct kp_field *kp_encoder_field(const struct kp_encoder *e, size_t i);

/* problem[n_fields] -> tokens[n_tokens], features[n_features] (mean 0, variance 1 over the
 * training problems). Any finite number is welcome; a word index out of range is unknown. */
void kp_encode(const struct kp_encoder *e, const double *problem, int32_t *tokens,
               float *features);
/* The same for problem `p` of a data set with these fields, whose words may be others. */
void kp_encode_problem(const struct kp_encoder *e, const struct kp_dataset *d, size_t p,
                       int32_t *tokens, float *features);
/* The token that stands for "unknown" in place of token number i. */
int32_t kp_encoder_unknown(const struct kp_encoder *e, size_t i);

/* What stood in field i in training. The numbers were from *low to *high; false: not known, or
 * they were words (NaN then). */
bool kp_encoder_range(const struct kp_encoder *e, size_t i, double *low, double *high);
/* The words; all that the field has, where that is not known. */
size_t kp_encoder_n_words(const struct kp_encoder *e, size_t i);
const char *kp_encoder_word(const struct kp_encoder *e, size_t i, size_t w);
/* Is the value within those numbers, or one of those words (a number given there is the word
 * that it is written as)? Where nothing is known, and for a word in place of a number: true. */
bool kp_encoder_knows(const struct kp_encoder *e, size_t i, struct kp_value v);

/* For a checkpoint. Reading: KOPT_EINPUT with what is wrong. */
struct kp_json *kp_encoder_to_json(const struct kp_encoder *e);
kopt_status kp_encoder_from_json(const struct kp_json *j, struct kp_encoder **out,
                                 kopt_error *err);

#endif
