/* SPDX-License-Identifier: MIT */
/* Beam search over a configuration, one target after another, with or without rules.
 * Layer: model.
 *
 * With a space a prefix lives only while some valid configuration begins with it, so every
 * configuration that leaves the beam is valid, and as many leave it as were asked for, or as
 * there are. Without one the network alone decides, and the caller looks at what is valid.
 *
 * Of several networks the probabilities are averaged: p(value | prefix) = sum_k w_k p_k, where
 * w_k is proportional to the probability that network k gave the prefix (a mixture of sequence
 * models). Where there is a forest, its probabilities join that mean as model/forest.h says.
 * Equal scores: the smaller value indices first, so the result is the same everywhere.
 */
#ifndef KP_MODEL_BEAM_H
#define KP_MODEL_BEAM_H

#include "model/forest.h"
#include "model/net.h"
#include "space/space.h"

/* What is allowed. `map[p]`: the space's parameter that target p is; `value[p][v]`: the
 * parameter's value index of the target's value v, UINT32_MAX where the space has none. */
struct kp_beam_space {
    const struct kp_space *space; /* NULL: nothing is forbidden */
    const uint32_t *map;
    const uint32_t *const *value;
};

struct kp_beam_input {
    const struct kp_net *const *nets; /* of one shape, at least 1 */
    size_t n_nets;
    const struct kp_forest *forest; /* whose probabilities join theirs; NULL: none */
    const int32_t *tokens;
    const float *features;
    struct kp_beam_space allowed;
    size_t width; /* prefixes that are kept, at least 1 */
    size_t k;     /* configurations that are asked for, at most width */
};

enum { KP_BEAM_NETS_MAX = 32, KP_BEAM_WIDTH_MAX = 4096 };

/* Bytes of memory that kp_beam_search() works in. */
size_t kp_beam_work(const struct kp_beam_input *in);
/* configs[k][P] (value indices of the targets), logp[k] (natural logarithms of the whole
 * configuration's probability), the likeliest first. Returns how many. Allocates nothing;
 * `work` is aligned to 64 bytes. */
size_t kp_beam_search(const struct kp_beam_input *in, void *work, uint32_t *configs,
                      double *logp);

#endif
