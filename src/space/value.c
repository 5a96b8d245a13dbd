/* SPDX-License-Identifier: MIT */
#include "space/value.h"

#include "base/num.h"
#include "json/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *kp_type_name(enum kp_type type)
{
    switch (type) {
    case KP_INT:
        return "int";
    case KP_FLOAT:
        return "float";
    case KP_BOOL:
        return "bool";
    case KP_STRING:
        return "string";
    }
    return "?";
}

static uint64_t bits_of(double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

bool kp_value_same(struct kp_value a, struct kp_value b)
{
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case KP_INT:
        return a.as.i == b.as.i;
    case KP_FLOAT:
        return bits_of(a.as.f) == bits_of(b.as.f);
    case KP_BOOL:
        return a.as.b == b.as.b;
    case KP_STRING:
        return kp_str_eq(a.as.s, b.as.s);
    }
    return false;
}

uint32_t kp_value_find(const struct kp_value *values, uint32_t n, struct kp_value v)
{
    uint32_t i = 0;
    while (i < n && !kp_value_same(values[i], v))
        i++;
    return i;
}

static int sign_of(bool greater, bool less)
{
    return (greater ? 1 : 0) - (less ? 1 : 0);
}

/* Exact, also where the integer has no double. `f` is not NaN. */
static int order_int_float(int64_t i, double f)
{
    if (f >= 0x1p63)
        return -1;
    if (f < -0x1p63)
        return 1;
    int64_t whole = (int64_t)f;
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = f - (double)whole;
    return sign_of(rest<0, rest> 0);
}

static int order_strings(struct kp_str a, struct kp_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : sign_of(a.len > b.len, a.len < b.len);
}

bool kp_value_compare(struct kp_value a, struct kp_value b, int *order)
{
    *order = 0;
    if ((a.type == KP_STRING) != (b.type == KP_STRING))
        return false;
    if (a.type == KP_STRING) {
        *order = order_strings(a.as.s, b.as.s);
        return true;
    }
    if (a.type == KP_BOOL)
        a = kp_int(a.as.b);
    if (b.type == KP_BOOL)
        b = kp_int(b.as.b);
    if ((a.type == KP_FLOAT && isnan(a.as.f)) || (b.type == KP_FLOAT && isnan(b.as.f)))
        return false;
    if (a.type == KP_INT && b.type == KP_INT)
        *order = sign_of(a.as.i > b.as.i, a.as.i < b.as.i);
    else if (a.type == KP_INT)
        *order = order_int_float(a.as.i, b.as.f);
    else if (b.type == KP_INT)
        *order = -order_int_float(b.as.i, a.as.f);
    else
        *order = sign_of(a.as.f > b.as.f, a.as.f < b.as.f);
    return true;
}

static void add_float(double f, struct kp_buf *out)
{
    char text[KP_F64_TEXT];
    kp_buf_add(out, text, kp_f64_to_text(f, text));
}

void kp_value_to_macro(struct kp_value v, struct kp_buf *out)
{
    switch (v.type) {
    case KP_BOOL:
        kp_buf_addc(out, v.as.b ? '1' : '0');
        break;
    case KP_FLOAT:
        /* math.h's and OpenCL's names */
        if (isnan(v.as.f))
            kp_buf_adds(out, "NAN");
        else if (isinf(v.as.f))
            kp_buf_adds(out, v.as.f > 0 ? "INFINITY" : "(-INFINITY)");
        else
            add_float(v.as.f, out);
        break;
    case KP_INT:
    case KP_STRING:
        kp_value_to_text(v, out);
        break;
    }
}

void kp_value_to_text(struct kp_value v, struct kp_buf *out)
{
    switch (v.type) {
    case KP_INT:
        kp_buf_addf(out, "%" PRId64, v.as.i);
        break;
    case KP_FLOAT:
        add_float(v.as.f, out);
        break;
    case KP_BOOL:
        kp_buf_adds(out, v.as.b ? "true" : "false");
        break;
    case KP_STRING:
        kp_buf_add(out, v.as.s.ptr, v.as.s.len);
        break;
    }
}

void kp_value_to_json(struct kp_value v, struct kp_buf *out)
{
    if (v.type == KP_STRING)
        kp_json_quote(v.as.s, out);
    else if (v.type == KP_FLOAT && !isfinite(v.as.f))
        kp_buf_adds(out, "null");
    else
        kp_value_to_text(v, out);
}

bool kp_value_to_f64(struct kp_value v, double *out)
{
    *out = 0;
    switch (v.type) {
    case KP_INT:
        *out = (double)v.as.i;
        return true;
    case KP_FLOAT:
        *out = v.as.f;
        return true;
    case KP_BOOL:
        *out = v.as.b ? 1.0 : 0.0;
        return true;
    case KP_STRING:
        return false;
    }
    return false;
}

bool kp_value_means(struct kp_value v, struct kp_str text)
{
    int64_t i = 0;
    double f = 0;
    int order = 1;
    if (v.type == KP_STRING)
        return kp_str_eq(text, v.as.s);
    if (v.type == KP_BOOL && (kp_str_is(text, "true") || kp_str_is(text, "True")))
        return v.as.b;
    if (v.type == KP_BOOL && (kp_str_is(text, "false") || kp_str_is(text, "False")))
        return !v.as.b;
    struct kp_value other;
    if (kp_str_to_i64(text, &i))
        other = kp_int(i);
    else if (kp_f64_from_text(text, &f))
        other = kp_float(f);
    else
        return false;
    return kp_value_compare(v, other, &order) && order == 0;
}
