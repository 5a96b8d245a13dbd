/* SPDX-License-Identifier: MIT */
/* Small networks and batches for the tests of models. */
#ifndef TEST_MODEL_NETS_H
#define TEST_MODEL_NETS_H

#include "model/net.h"
#include "translators.h"

enum { NET_T = 3, NET_F = 5, NET_P = 4, NET_B = 6, NET_VOCAB = 11 };

static const uint32_t net_values[NET_P] = {3, 2, 4, 3};

static inline struct kp_net_shape small_shape(void)
{
    struct kp_net_shape s = {.n_tokens = NET_T,
                             .n_vocab = NET_VOCAB,
                             .n_features = NET_F,
                             .n_targets = NET_P,
                             .embed = 6,
                             .hidden = 8,
                             .layers = 2,
                             .dropout = 0};
    for (size_t p = 0; p < NET_P; p++)
        s.n_values[p] = net_values[p];
    return s;
}

struct small_batch {
    int32_t tokens[NET_T * NET_B];
    float features[NET_B * NET_F];
    int32_t targets[NET_P * NET_B];
    float weights[NET_B];
    struct kp_batch b;
};

static inline void small_batch_fill(struct small_batch *s, uint64_t seed)
{
    struct kp_rng rng;
    kp_rng_init(&rng, seed);
    for (size_t i = 0; i < NET_T * NET_B; i++)
        s->tokens[i] = (int32_t)kp_rng_below(&rng, NET_VOCAB);
    for (size_t i = 0; i < NET_B * NET_F; i++)
        s->features[i] = (float)kp_rng_normal(&rng);
    for (size_t p = 0; p < NET_P; p++)
        for (size_t i = 0; i < NET_B; i++)
            s->targets[p * NET_B + i] = (int32_t)kp_rng_below(&rng, net_values[p]);
    for (size_t i = 0; i < NET_B; i++)
        s->weights[i] = 0.5F + (float)kp_rng_f64(&rng);
    s->b = (struct kp_batch){.B = NET_B,
                             .tokens = s->tokens,
                             .features = s->features,
                             .targets = s->targets,
                             .weights = s->weights};
}

#endif
