/* SPDX-License-Identifier: MIT */
/* Uniform without repetition: the pool's draw is all there is to it. Layer: search. */
#include "search/strategy.h"

const struct kp_search_ops kp_strategy_random = {0};
