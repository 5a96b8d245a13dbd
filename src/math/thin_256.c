/* SPDX-License-Identifier: MIT */
/* AVX2 with FMA. Layer: math. */
#include "math/thin_loops.h"
#include "math/thin_ways.h"

const struct kp_thin_way kp_thin_256 = {"avx2", multiply, multiply_packed};
