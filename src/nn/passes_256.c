/* SPDX-License-Identifier: MIT */
/* AVX2 with FMA. Layer: nn. */
#include "nn/passes_attention.h"
#include "nn/passes_rnn.h"
#include "nn/passes_tables.h"

const struct kp_passes kp_passes_256 = KP_PASSES_TABLE("avx2");
