/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <string.h>

enum { INDEX_MAX = 1023 };

static bool parse_one(struct kp_str text, enum kp_backend *b, int *index)
{
    struct kp_str number;
    struct kp_str name = kp_str_cut(text, ':', &number);
    bool colon = name.len < text.len;
    char backend[16] = "";
    int64_t value = 0;
    *index = 0;
    if (name.len >= sizeof(backend))
        return false;
    memcpy(backend, name.ptr, name.len);
    if (!kp_backend_from_name(backend, b))
        return false;
    if (colon && (!kp_str_to_i64(number, &value) || value < 0 || value > INDEX_MAX))
        return false;
    *index = (int)value;
    return true;
}

kopt_status kp_device_ids_parse(const char *text, struct kp_device_ids *out, kopt_error *err)
{
    struct kp_str rest = kp_str_from(text);
    bool more = true;
    *out = (struct kp_device_ids){0};
    while (more) {
        size_t before = rest.len;
        struct kp_str word = kp_str_cut(rest, ',', &rest);
        struct kp_str one = kp_str_trim(word);
        enum kp_backend b;
        int index;
        more = word.len < before; /* there was a comma */
        if (!parse_one(one, &b, &index)) {
            kopt_status st = kp_err(err, KOPT_EUSAGE, "no such device: %.*s", KP_STR_FMT(one));
            kp_err_hint(err, "'kopt devices' lists them");
            return st;
        }
        if (out->n && b != out->backend)
            return kp_err(err, KOPT_EUSAGE, "devices of different kinds cannot work together");
        for (size_t i = 0; i < out->n; i++)
            if (out->index[i] == index)
                return kp_err(err, KOPT_EUSAGE, "%.*s is named twice", KP_STR_FMT(one));
        if (out->n == KP_DEVICE_IDS_MAX)
            return kp_err(err, KOPT_EUSAGE, "more than %d devices", KP_DEVICE_IDS_MAX);
        out->backend = b;
        out->index[out->n++] = index;
    }
    return KOPT_OK;
}
