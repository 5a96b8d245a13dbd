/* SPDX-License-Identifier: MIT */
/* AVX-512. Layer: math. */
#include "math/thin_loops.h"
#include "math/thin_ways.h"

const struct kp_thin_way kp_thin_512 = {"avx512", multiply, multiply_packed};
