/* SPDX-License-Identifier: MIT */
/* Members of an object with a required type. Layer: json. */
#include "json/json.h"

static bool absent(const struct kp_json *v)
{
    return !v || kp_json_type(v) == KP_JSON_NULL;
}

static kopt_status wrong(const char *key, const char *want, const struct kp_json *v,
                         kopt_error *err)
{
    if (!v)
        return kp_err(err, KOPT_EINPUT, "'%s' is missing (%s)", key, want);
    return kp_err(err, KOPT_EINPUT, "'%s': %s expected, found %s", key, want,
                  kp_json_type_name(kp_json_type(v)));
}

#define DEFINE_GETTERS(suffix, type, fallback, convert, want)                              \
    kopt_status kp_json_need_##suffix(const struct kp_json *j, const char *key, type *out, \
                                      kopt_error *err)                                     \
    {                                                                                      \
        const struct kp_json *v = kp_json_get(j, key);                                     \
        *out = (type){0};                                                                  \
        return kp_json_as_##suffix(v, out) ? KOPT_OK : wrong(key, want, v, err);           \
    }                                                                                      \
    kopt_status kp_json_opt_##suffix(const struct kp_json *j, const char *key,             \
                                     fallback otherwise, type *out, kopt_error *err)       \
    {                                                                                      \
        const struct kp_json *v = kp_json_get(j, key);                                     \
        *out = convert(otherwise);                                                         \
        if (absent(v) || kp_json_as_##suffix(v, out))                                      \
            return KOPT_OK;                                                                \
        return wrong(key, want, v, err);                                                   \
    }

DEFINE_GETTERS(bool, bool, bool, (bool), "boolean")
DEFINE_GETTERS(i64, int64_t, int64_t, (int64_t), "integer")
DEFINE_GETTERS(f64, double, double, (double), "number")
DEFINE_GETTERS(str, struct kp_str, const char *, kp_str_from, "string")

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
