/* SPDX-License-Identifier: MIT */
/* The tables that passes.c chooses from. Layer: nn. */
#ifndef KP_NN_PASSES_TABLES_H
#define KP_NN_PASSES_TABLES_H

#include "nn/passes.h"

extern const struct kp_passes kp_passes_512; /* x86-64: compiled with -mavx512f */
extern const struct kp_passes kp_passes_256; /* x86-64: -mavx2 -mfma */
extern const struct kp_passes kp_passes_plain;

/* What a file that includes the loops puts into its table. */
#define KP_PASSES_TABLE(label)                                                                \
    {                                                                                         \
        .name = (label), .lstm_forward = lstm_forward, .lstm_backward = lstm_backward,        \
        .gru_forward = gru_forward, .gru_backward = gru_backward, .dots = dots,               \
        .additive = additive, .additive_grad = additive_grad, .mix = mix, .softmax = softmax, \
    }

#endif
