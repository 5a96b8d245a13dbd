/* SPDX-License-Identifier: MIT */
#include "measure/data.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/rng.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t bytes_max = (size_t)1 << 40;

/* --- conversions
 * ------------------------------------------------------------------------------ */

/* IEEE 754 binary16, round to nearest even; beyond its range infinity. */
static uint16_t to_f16(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double a = fabs(v);
    if (isnan(v))
        return 0x7e00;
    if (a >= 65520.0)
        return (uint16_t)(sign | 0x7c00);
    int e = 0;
    (void)frexp(a, &e);                      /* a = m * 2^e, m in [0.5, 1) */
    int scale = e - 11 < -24 ? -24 : e - 11; /* weight of the last bit */
    double units = nearbyint(ldexp(a, -scale));
    if (units >= 2048) {
        units /= 2;
        scale++;
    }
    uint16_t bits = (uint16_t)units;
    if (bits < 1024) /* subnormal: scale is -24 */
        return (uint16_t)(sign | bits);
    return (uint16_t)(sign | ((scale + 25) << 10) | (bits - 1024));
}

/* The upper half of a float, rounded to nearest even. The step through float rounds to odd, so
 * that the second rounding still sees on which side of the middle the value lay (Boldo and
 * Melquiond, Emulation of FMA and correctly rounded sums, 2008). */
static uint16_t to_bf16(double v)
{
    float f = (float)v;
    double back = fabs((double)f);
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    if (isnan(v))
        return 0x7fc0;
    if (back != fabs(v) && (u & 1) == 0)
        u += back < fabs(v) ? 1U : -1U;
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

/* Inclusive bounds of an integer type; false for the others. */
static bool int_range(enum kp_elem e, double *low, double *high)
{
    switch (e) {
    case KP_I8:
        *low = -128;
        *high = 127;
        return true;
    case KP_U8:
        *low = 0;
        *high = 255;
        return true;
    case KP_I16:
        *low = -32768;
        *high = 32767;
        return true;
    case KP_U16:
        *low = 0;
        *high = 65535;
        return true;
    case KP_I32:
        *low = INT32_MIN;
        *high = INT32_MAX;
        return true;
    case KP_U32:
        *low = 0;
        *high = UINT32_MAX;
        return true;
    case KP_I64:
        *low = -0x1p63;
        *high = 0x1p63 - 1024; /* the largest double below 2^63 */
        return true;
    case KP_U64:
        *low = 0;
        *high = 0x1p64 - 2048;
        return true;
    case KP_F16:
    case KP_BF16:
    case KP_F32:
    case KP_F64:
        break;
    }
    return false;
}

static void store_int(enum kp_elem e, int64_t i, unsigned char *out)
{
    uint64_t u = (uint64_t)i;
    for (size_t k = 0; k < kp_elem_bytes(e); k++)
        out[k] = (unsigned char)(u >> (8 * k)); /* little-endian, as every device here */
}

/* False when the type cannot hold the value: out of range, not whole for an integer, or so
 * large that it would become an infinity. */
static bool store_f64(enum kp_elem e, double v, unsigned char *out)
{
    double low = 0;
    double high = 0;
    bool finite = isfinite(v);
    if (int_range(e, &low, &high)) {
        if (!(v >= low && v <= high) || v != floor(v))
            return false;
        store_int(e, v >= 0x1p63 ? (int64_t)(uint64_t)v : (int64_t)v, out);
        return true;
    }
    if (e == KP_F16 || e == KP_BF16) {
        uint16_t h = e == KP_F16 ? to_f16(v) : to_bf16(v);
        uint16_t infinite = e == KP_F16 ? 0x7c00 : 0x7f80;
        memcpy(out, &h, sizeof(h));
        return !finite || (h & infinite) != infinite;
    }
    if (e == KP_F32) {
        float f = (float)v;
        memcpy(out, &f, sizeof(f));
        return !finite || isfinite(f);
    }
    memcpy(out, &v, sizeof(v));
    return true;
}

static bool store_value(enum kp_elem e, struct kp_value v, unsigned char *out)
{
    double f;
    if (v.type == KP_INT && !kp_elem_is_float(e)) {
        if (!kp_elem_fits(e, v.as.i))
            return false;
        store_int(e, v.as.i, out);
        return true;
    }
    return kp_value_to_f64(v, &f) && store_f64(e, f, out);
}

/* --- sizes and scalars
 * ------------------------------------------------------------------------ */

kopt_status kp_data_bytes(const struct kp_bound *b, size_t arg, const uint32_t *config,
                          size_t *bytes, kopt_error *err)
{
    const struct kp_arg *a = &b->kernel->args[arg];
    int64_t count;
    *bytes = 0;
    kopt_status st = kp_bound_arg_count(b, arg, config, &count, err);
    if (st != KOPT_OK)
        return st;
    size_t n;
    size_t lanes = a->lanes == 3 ? 4 : a->lanes; /* a 3-vector takes the room of four */
    if (count < 1 || !kp_mul_size((size_t)count, lanes * kp_elem_bytes(a->elem), &n) ||
        n > bytes_max) {
        st = kp_err(err, KOPT_ERANGE, "argument %s has %lld elements", a->name,
                    (long long)count);
        kp_err_at(err, b->kernel->path, a->line, 0, NULL, 0);
        return st;
    }
    *bytes = n;
    return KOPT_OK;
}

kopt_status kp_data_scalar(const struct kp_bound *b, size_t arg, const uint32_t *config,
                           unsigned char *out, size_t *bytes, kopt_error *err)
{
    const struct kp_arg *a = &b->kernel->args[arg];
    struct kp_value v;
    kopt_status st = kp_bound_arg_value(b, arg, config, &v, err);
    if (st != KOPT_OK)
        return st;
    *bytes = kp_elem_bytes(a->elem);
    if (store_value(a->elem, v, out))
        return KOPT_OK;
    st = kp_err(err, KOPT_EINPUT, "%s does not hold the value of argument %s",
                kp_elem_name(a->elem), a->name);
    kp_err_at(err, b->kernel->path, a->line, 0, NULL, 0);
    return st;
}

/* --- fills
 * ------------------------------------------------------------------------------------ */

struct fill {
    const struct kp_bound *b;
    const char *name; /* of the argument */
    int line;
    enum kp_elem elem;
    enum kp_fill kind;
    const struct kp_expr *a;
    const struct kp_expr *b2;
    size_t n; /* scalars, lanes counted */
    unsigned char *bytes;
};

static kopt_status fill_error(const struct fill *f, const char *what, kopt_error *err)
{
    kopt_status st = kp_err(err, KOPT_EINPUT, "fill of %s: %s", f->name, what);
    kp_err_at(err, f->b->kernel->path, f->line, 0, NULL, 0);
    return st;
}

static kopt_status number(const struct fill *f, const struct kp_expr *e, double *out,
                          kopt_error *err)
{
    struct kp_value v;
    struct kp_eval_error why = {0};
    enum kp_outcome o = kp_bound_eval(f->b, e, NULL, &v, &why);
    if (o != KP_EVAL_VALUE)
        return fill_error(f, o == KP_EVAL_ERROR ? why.what : "it depends on a parameter", err);
    if (!kp_value_to_f64(v, out) || !isfinite(*out))
        return fill_error(f, "it is not a number", err);
    return KOPT_OK;
}

static kopt_status fill_random(const struct fill *f, uint64_t seed, kopt_error *err)
{
    double a = 0;
    double b = 0;
    double low = 0;
    double high = 0;
    size_t size = kp_elem_bytes(f->elem);
    bool integer = int_range(f->elem, &low, &high);
    struct kp_rng rng;
    kopt_status st = number(f, f->a, &a, err);
    if (st == KOPT_OK)
        st = number(f, f->b2, &b, err);
    if (st != KOPT_OK)
        return st;
    if (f->kind == KP_FILL_UNIFORM && integer) {
        a = ceil(a);
        b = floor(b);
    }
    if (f->kind == KP_FILL_UNIFORM &&
        (b < a || !isfinite(b - a) || (integer && (a < low || b > high))))
        return fill_error(f, "its bounds are out of order or of the type's range", err);
    kp_rng_init(&rng, seed);
    for (size_t i = 0; i < f->n; i++) {
        double v;
        if (f->kind == KP_FILL_NORMAL)
            v = a + b * kp_rng_normal(&rng);
        else
            v = a +
                (integer ? floor(kp_rng_f64(&rng) * (b - a + 1)) : kp_rng_f64(&rng) * (b - a));
        if (integer)
            v = fmin(fmax(nearbyint(v), low), high);
        if (!store_f64(f->elem, v, f->bytes + i * size))
            return fill_error(f, "its type does not hold a value", err);
    }
    return KOPT_OK;
}

static kopt_status fill_constant(const struct fill *f, kopt_error *err)
{
    struct kp_value v;
    struct kp_eval_error why = {0};
    size_t size = kp_elem_bytes(f->elem);
    if (kp_bound_eval(f->b, f->a, NULL, &v, &why) != KP_EVAL_VALUE)
        return fill_error(f, why.what ? why.what : "it depends on a parameter", err);
    if (!store_value(f->elem, v, f->bytes))
        return fill_error(f, "its type does not hold the value", err);
    for (size_t i = 1; i < f->n; i++)
        memcpy(f->bytes + i * size, f->bytes, size);
    return KOPT_OK;
}

/* `values` and `known` have room for all slots. */
static kopt_status fill_elements(const struct fill *f, struct kp_value *values,
                                 unsigned char *known, kopt_error *err)
{
    const struct kp_bound *b = f->b;
    uint32_t slot = b->kernel->slot_index;
    size_t size = kp_elem_bytes(f->elem);
    struct kp_env env = {values, known};
    kopt_status st = KOPT_OK;
    memcpy(values, b->values, b->kernel->n_slots * sizeof(*values));
    memcpy(known, b->known, b->kernel->n_slots);
    known[slot] = 1;
    for (size_t i = 0; i < f->n && st == KOPT_OK; i++) {
        struct kp_value v;
        struct kp_eval_error why = {0};
        values[slot] = kp_int((int64_t)i);
        if (kp_expr_eval(f->a, &env, &v, &why) != KP_EVAL_VALUE)
            st = fill_error(f, why.what ? why.what : "it depends on a parameter", err);
        else if (!store_value(f->elem, v, f->bytes + i * size))
            st = fill_error(f, "its type does not hold a value", err);
    }
    return st;
}

static kopt_status fill_generator(const struct fill *f, kopt_error *err)
{
    uint32_t n = f->b->kernel->n_slots;
    struct kp_value *values = kp_calloc(n, sizeof(*values));
    unsigned char *known = kp_calloc(n, 1);
    kopt_status st = values && known ? fill_elements(f, values, known, err) : kp_err_nomem(err);
    kp_free(values);
    kp_free(known);
    return st;
}

static kopt_status fill_file(const struct fill *f, const char *file, size_t bytes,
                             kopt_error *err)
{
    char *dir = kp_path_dir(f->b->kernel->path);
    char *path = dir ? kp_path_join(dir, file) : NULL;
    struct kp_buf content = KP_BUF_INIT(bytes);
    kopt_status st = path ? kp_file_read(path, &content, err) : kp_err_nomem(err);
    if (st == KOPT_OK && content.len != bytes)
        st = kp_err(err, KOPT_EINPUT, "%s has %zu bytes, %s needs %zu", path, content.len,
                    f->name, bytes);
    if (st == KOPT_OK)
        memcpy(f->bytes, content.ptr, bytes);
    else
        kp_err_at(err, f->b->kernel->path, f->line, 0, NULL, 0);
    kp_buf_deinit(&content);
    kp_free(path);
    kp_free(dir);
    return st;
}

/* Each argument draws from a generator of its own, so that adding one changes no other. */
static uint64_t seed_of(uint64_t seed, size_t arg)
{
    struct kp_rng rng;
    kp_rng_init(&rng, seed ^ (0x9e3779b97f4a7c15U * (arg + 1)));
    return kp_rng_u64(&rng);
}

kopt_status kp_data_write(const struct kp_bound *b, size_t arg, uint64_t seed, const char *path,
                          kopt_error *err)
{
    const struct kp_arg *a = &b->kernel->args[arg];
    size_t bytes;
    kopt_status st = kp_data_bytes(b, arg, NULL, &bytes, err);
    if (st != KOPT_OK)
        return st;
    struct fill f = {.b = b,
                     .name = a->name,
                     .line = a->line,
                     .elem = a->elem,
                     .kind = a->fill,
                     .a = a->fill_a,
                     .b2 = a->fill_b,
                     .n = bytes / kp_elem_bytes(a->elem),
                     .bytes = kp_calloc(bytes, 1)};
    if (!f.bytes)
        return kp_err_nomem(err);
    if (a->dir == KP_DIR_OUT)
        memset(f.bytes, 0xff, bytes);
    else if (a->fill == KP_FILL_FILE)
        st = fill_file(&f, a->fill_file, bytes, err);
    else if (a->fill == KP_FILL_CONSTANT)
        st = fill_constant(&f, err);
    else if (a->fill == KP_FILL_GENERATOR)
        st = fill_generator(&f, err);
    else
        st = fill_random(&f, seed_of(seed, arg), err);
    if (st == KOPT_OK)
        st = kp_file_put(path, f.bytes, bytes, err);
    kp_free(f.bytes);
    return st;
}

kopt_status kp_data_write_check(const struct kp_bound *b, size_t check, const char *path,
                                kopt_error *err)
{
    const struct kp_check_decl *c = &b->kernel->checks[check];
    const struct kp_arg *a = &b->kernel->args[c->arg];
    size_t bytes;
    kopt_status st = kp_data_bytes(b, c->arg, NULL, &bytes, err);
    if (st != KOPT_OK)
        return st;
    struct fill f = {.b = b,
                     .name = a->name,
                     .line = c->line,
                     .elem = a->elem,
                     .kind = c->fill,
                     .a = c->fill_a,
                     .n = bytes / kp_elem_bytes(a->elem),
                     .bytes = kp_calloc(bytes, 1)};
    if (!f.bytes)
        return kp_err_nomem(err);
    if (c->kind == KP_CHECK_FILE)
        st = fill_file(&f, c->name, bytes, err);
    else if (c->fill == KP_FILL_CONSTANT)
        st = fill_constant(&f, err);
    else
        st = fill_generator(&f, err);
    if (st == KOPT_OK)
        st = kp_file_put(path, f.bytes, bytes, err);
    kp_free(f.bytes);
    return st;
}

/* --- describing
 * ------------------------------------------------------------------------------- */

static void describe_number(const struct kp_bound *b, const struct kp_expr *e,
                            struct kp_buf *out)
{
    struct kp_value v;
    if (e && kp_bound_eval(b, e, NULL, &v, NULL) == KP_EVAL_VALUE)
        kp_value_to_text(v, out);
    else
        kp_buf_addc(out, '?');
}

static void describe_fill(const struct kp_bound *b, const struct kp_arg *a, struct kp_buf *out)
{
    switch (a->fill) {
    case KP_FILL_NORMAL:
    case KP_FILL_UNIFORM:
        kp_buf_adds(out, a->fill == KP_FILL_NORMAL ? "normal(" : "uniform(");
        describe_number(b, a->fill_a, out);
        kp_buf_addc(out, ',');
        describe_number(b, a->fill_b, out);
        kp_buf_addc(out, ')');
        break;
    case KP_FILL_CONSTANT:
        kp_buf_adds(out, "constant(");
        describe_number(b, a->fill_a, out);
        kp_buf_addc(out, ')');
        break;
    case KP_FILL_GENERATOR: /* the expression itself is part of the kernel's hash */
        kp_buf_adds(out, "generator");
        break;
    case KP_FILL_FILE:
        kp_buf_adds(out, "file");
        break;
    }
}

void kp_data_describe(const struct kp_bound *b, const struct kp_conditions *how,
                      struct kp_buf *out)
{
    kp_buf_addc(out, '{');
    for (size_t i = 0; i < b->kernel->n_args; i++) {
        const struct kp_arg *a = &b->kernel->args[i];
        if (a->kind != KP_ARG_BUFFER || a->dir == KP_DIR_OUT)
            continue;
        kp_buf_addf(out, "\"%s\":\"", a->name);
        describe_fill(b, a, out);
        kp_buf_adds(out, "\",");
    }
    if (how->cores)
        kp_buf_addf(out, "\"cores\":%lld,", (long long)how->cores);
    kp_buf_addf(out, "\"flush\":%zu,\"protocol\":%d,\"seed\":%llu}", how->flush_bytes,
                KP_DATA_PROTOCOL, (unsigned long long)how->seed);
}
