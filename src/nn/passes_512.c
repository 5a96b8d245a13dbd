/* SPDX-License-Identifier: MIT */
/* AVX-512. Layer: nn. */
#include "nn/passes_attention.h"
#include "nn/passes_rnn.h"
#include "nn/passes_tables.h"

const struct kp_passes kp_passes_512 = KP_PASSES_TABLE("avx512");
