/* SPDX-License-Identifier: MIT */
/* Floating-point numbers as text, the same in every locale. Layer: base. */
#ifndef KP_BASE_NUM_H
#define KP_BASE_NUM_H

#include "base/str.h"

enum { KP_F64_TEXT = 32 };

/* The shortest decimal text that reads back as the same number, laid out as Python's repr():
 * "0.5", "16.0", "1e+16", "1e-05"; "inf", "-inf", "nan" for the rest. Returns its length. */
size_t kp_f64_to_text(double v, char out[KP_F64_TEXT]);

/* Decimal text (digits, at most one point, exponent, sign) to the nearest number; false when
 * the text is anything else (also "inf", "nan", hexadecimal) or out of range. */
bool kp_f64_from_text(struct kp_str s, double *out);

#endif
