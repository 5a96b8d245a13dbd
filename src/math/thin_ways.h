/* SPDX-License-Identifier: MIT */
/* What thin.c chooses from. Layer: math. */
#ifndef KP_MATH_THIN_WAYS_H
#define KP_MATH_THIN_WAYS_H

#include "math/thin.h"

extern const struct kp_thin_way kp_thin_512; /* x86-64: compiled with -mavx512f */
extern const struct kp_thin_way kp_thin_256; /* x86-64: -mavx2 -mfma */
extern const struct kp_thin_way kp_thin_plain;

#endif
