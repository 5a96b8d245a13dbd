/* SPDX-License-Identifier: MIT */
/* Entries whose configuration is a JSON object. */
#include "replay/recorder.h"

#include <math.h>

/* An integer, a number, a boolean or a string, which is borrowed; false for anything else. */
static bool value_of(const struct kp_json *j, struct kp_value *out)
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

struct names {
    const char *names[KP_PARAMS_MAX];
    size_t n;
};

static bool take_name(void *user, const char *key, const struct kp_json *value)
{
    struct names *x = user;
    (void)value;
    if (x->n < KP_PARAMS_MAX)
        x->names[x->n] = key;
    x->n++; /* too many are refused by their number */
    return true;
}

kopt_status kp_recorder_add_exactly(struct kp_recorder *r, const struct kp_recorded *entry,
                                    const struct kp_json *config, kopt_error *err)
{
    struct names x = {.n = 0};
    if (!r->learned && kp_json_size(config) > 0) {
        (void)kp_json_each(config, take_name, &x);
        kopt_status st = kp_recorder_params(r, x.names, x.n, err);
        if (st != KOPT_OK)
            return st;
    }
    if (r->learned && kp_json_size(config) == r->n_params)
        return kp_recorder_add_among(r, entry, config, err);
    kp_recorder_left_out(r, 1, false);
    return KOPT_OK;
}

kopt_status kp_recorder_add_among(struct kp_recorder *r, const struct kp_recorded *entry,
                                  const struct kp_json *members, kopt_error *err)
{
    struct kp_value values[KP_PARAMS_MAX];
    struct kp_recorded e = *entry;
    KP_CHECK(r->learned);
    bool usable = e.outcome != KOPT_OUT_OK || (isfinite(e.time_ns) && e.time_ns > 0);
    for (size_t i = 0; usable && i < r->n_params; i++)
        usable = value_of(kp_json_get(members, r->learned[i].name), &values[i]);
    e.values = values;
    if (usable)
        return kp_recorder_add(r, &e, err);
    kp_recorder_left_out(r, 1, false);
    return KOPT_OK;
}
