/* SPDX-License-Identifier: MIT */
/* Looking into a stored configuration. Layer: api. */
#ifndef KP_API_PAIRS_H
#define KP_API_PAIRS_H

#include "base/str.h"
#include "kopt/types.h"

/* The integer or boolean called `name`; false when it is not there or is something else. */
bool kp_pairs_int(const char *json, const char *name, int64_t *out);

#endif
