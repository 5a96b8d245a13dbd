/* SPDX-License-Identifier: MIT */
#include "json/impl.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct kp_json *kp_json_new_null(void)
{
    return kp_json_wrap(json_null());
}

struct kp_json *kp_json_new_bool(bool v)
{
    return kp_json_wrap(json_boolean(v));
}

struct kp_json *kp_json_new_i64(int64_t v)
{
    return kp_json_wrap(json_integer(v));
}

struct kp_json *kp_json_new_f64(double v)
{
    return kp_json_wrap(isfinite(v) ? json_real(v) : json_null());
}

struct kp_json *kp_json_new_str(struct kp_str s)
{
    if (kp_json_is_utf8(s) && !memchr(s.ptr ? s.ptr : "", 0, s.len))
        return kp_json_wrap(json_stringn(s.len ? s.ptr : "", s.len));
    struct kp_buf clean = KP_BUF_INIT(SIZE_MAX / 4);
    for (size_t i = 0; i < s.len;) {
        size_t n = kp_utf8_len(s.ptr + i, s.len - i);
        if (n == 0 || s.ptr[i] == 0)
            kp_buf_adds(&clean, "\xef\xbf\xbd");
        else
            kp_buf_add(&clean, s.ptr + i, n);
        i += n ? n : 1;
    }
    json_t *j = clean.failed == KOPT_OK ? json_stringn(kp_buf_text(&clean), clean.len) : NULL;
    kp_buf_deinit(&clean);
    return kp_json_wrap(j);
}

struct kp_json *kp_json_new_array(void)
{
    return kp_json_wrap(json_array());
}

struct kp_json *kp_json_new_object(void)
{
    return kp_json_wrap(json_object());
}

struct kp_json *kp_json_dup(const struct kp_json *j)
{
    return j ? kp_json_wrap(json_deep_copy(kp_json_plain(j))) : NULL;
}

bool kp_json_set(struct kp_json *object, const char *key, struct kp_json *value)
{
    return json_object_set_new(kp_json_plain(object), key, kp_json_plain(value)) == 0;
}

bool kp_json_push(struct kp_json *array, struct kp_json *value)
{
    return json_array_append_new(kp_json_plain(array), kp_json_plain(value)) == 0;
}

bool kp_json_set_bool(struct kp_json *object, const char *key, bool v)
{
    return kp_json_set(object, key, kp_json_new_bool(v));
}

bool kp_json_set_i64(struct kp_json *object, const char *key, int64_t v)
{
    return kp_json_set(object, key, kp_json_new_i64(v));
}

bool kp_json_set_f64(struct kp_json *object, const char *key, double v)
{
    return kp_json_set(object, key, kp_json_new_f64(v));
}

bool kp_json_set_str(struct kp_json *object, const char *key, const char *s)
{
    return kp_json_set(object, key, s ? kp_json_new_str(kp_str_from(s)) : kp_json_new_null());
}
