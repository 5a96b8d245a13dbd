/* SPDX-License-Identifier: MIT */
/* Members of an object with a required type. Layer: json. */
#include "json/json.h"

static const char want_i64[] = "integer";
static const char want_f64[] = "number";
static const char want_str[] = "string";

static kopt_status wrong(const char *key, const char *want, const struct kp_json *v,
                         kopt_error *err)
{
    if (!v)
        return kp_err(err, KOPT_EINPUT, "'%s' is missing (%s)", key, want);
    return kp_err(err, KOPT_EINPUT, "'%s': %s expected, found %s", key, want,
                  kp_json_type_name(kp_json_type(v)));
}

kopt_status kp_json_need_i64(const struct kp_json *j, const char *key, int64_t *out,
                             kopt_error *err)
{
    const struct kp_json *v = kp_json_get(j, key);
    *out = 0;
    return kp_json_as_i64(v, out) ? KOPT_OK : wrong(key, want_i64, v, err);
}

kopt_status kp_json_need_f64(const struct kp_json *j, const char *key, double *out,
                             kopt_error *err)
{
    const struct kp_json *v = kp_json_get(j, key);
    *out = 0;
    return kp_json_as_f64(v, out) ? KOPT_OK : wrong(key, want_f64, v, err);
}

kopt_status kp_json_need_str(const struct kp_json *j, const char *key, struct kp_str *out,
                             kopt_error *err)
{
    const struct kp_json *v = kp_json_get(j, key);
    *out = (struct kp_str){"", 0};
    return kp_json_as_str(v, out) ? KOPT_OK : wrong(key, want_str, v, err);
}

static kopt_status need(const struct kp_json *j, const char *key, enum kp_json_type type,
                        const struct kp_json **out, kopt_error *err)
{
    const struct kp_json *v = kp_json_get(j, key);
    *out = NULL;
    if (!v || kp_json_type(v) != type)
        return wrong(key, kp_json_type_name(type), v, err);
    *out = v;
    return KOPT_OK;
}

kopt_status kp_json_need_array(const struct kp_json *j, const char *key,
                               const struct kp_json **out, kopt_error *err)
{
    return need(j, key, KP_JSON_ARRAY, out, err);
}

kopt_status kp_json_need_object(const struct kp_json *j, const char *key,
                                const struct kp_json **out, kopt_error *err)
{
    return need(j, key, KP_JSON_OBJECT, out, err);
}

static bool absent(const struct kp_json *v)
{
    return !v || kp_json_type(v) == KP_JSON_NULL;
}

kopt_status kp_json_opt_str(const struct kp_json *j, const char *key, const char *otherwise,
                            struct kp_str *out, kopt_error *err)
{
    const struct kp_json *v = kp_json_get(j, key);
    *out = kp_str_from(otherwise);
    return absent(v) || kp_json_as_str(v, out) ? KOPT_OK : wrong(key, want_str, v, err);
}
