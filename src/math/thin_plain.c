/* SPDX-License-Identifier: MIT */
/* The registers that every machine has. Layer: math. */
#include "math/thin_loops.h"
#include "math/thin_ways.h"

const struct kp_thin_way kp_thin_plain = {"plain", multiply, multiply_packed};
