/* SPDX-License-Identifier: MIT */
/* Parameters' values from JSON. Layer: replay. */
#ifndef KP_REPLAY_VALUES_H
#define KP_REPLAY_VALUES_H

#include "space/value.h"
#include "json/json.h"

/* Of an integer, a number, a boolean or a string, which is borrowed; false for anything else,
 * NULL included. */
static inline bool kp_value_of_json(const struct kp_json *j, struct kp_value *out)
{
    int64_t i = 0;
    double f = 0;
    bool b = false;
    struct kp_str s = {0};
    if (kp_json_as_i64(j, &i))
        *out = kp_int(i);
    else if (kp_json_as_f64(j, &f))
        *out = kp_float(f);
    else if (kp_json_as_bool(j, &b))
        *out = kp_bool(b);
    else if (kp_json_as_str(j, &s))
        *out = kp_string(s);
    else
        return false;
    return true;
}

#endif
