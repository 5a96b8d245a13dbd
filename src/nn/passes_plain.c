/* SPDX-License-Identifier: MIT */
/* The registers that every machine has. Layer: nn. */
#include "nn/passes_attention.h"
#include "nn/passes_rnn.h"
#include "nn/passes_tables.h"

const struct kp_passes kp_passes_plain = KP_PASSES_TABLE("plain");
