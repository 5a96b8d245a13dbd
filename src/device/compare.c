/* SPDX-License-Identifier: MIT */
/* Comparing results elementwise, on the host. Layer: device.
 *
 * Numbers are gone through in blocks. A quick pass finds a block's largest error and whether
 * anything in it is outside the tolerance, infinite or NaN. Only where there is such a thing,
 * or the error is the largest so far, the block is gone through element by element, in double.
 */
#include "base/error.h"
#include "device/device.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    BLOCK = 1024, /* elements of a quick pass */
    LANES = 4     /* elements at a time */
};

struct rule {
    enum kp_number type;
    double rtol;
    double atol;
};

size_t kp_number_bytes(enum kp_number type)
{
    switch (type) {
    case KP_NUM_I8:
    case KP_NUM_U8:
        return 1;
    case KP_NUM_I16:
    case KP_NUM_U16:
    case KP_NUM_F16:
    case KP_NUM_BF16:
        return 2;
    case KP_NUM_I32:
    case KP_NUM_U32:
    case KP_NUM_F32:
        return 4;
    case KP_NUM_I64:
    case KP_NUM_U64:
    case KP_NUM_F64:
        return 8;
    }
    kp_check_failed("a number type", __FILE__, __LINE__);
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
static float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000U) << 16;
    uint32_t exponent = (h >> 10) & 0x1fU;
    uint32_t fraction = h & 0x3ffU;
    uint32_t bits;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact */
        float magnitude = (float)fraction * 0x1p-24F;
        memcpy(&bits, &magnitude, sizeof(bits));
        bits |= sign;
    } else if (exponent == 0x1f) {
        bits = sign | 0x7f800000U | (fraction << 13);
    } else {
        bits = sign | ((exponent + 127 - 15) << 23) | (fraction << 13);
    }
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* bfloat16: the upper half of a binary32. */
static float bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static void note_bad(struct kp_compare *out, uint64_t index, double got, double want)
{
    if (out->n_bad == 0) {
        out->first = index;
        out->got = got;
        out->want = want;
    }
    out->n_bad++;
}

/* One pair of floating-point numbers by the letter of the contract. */
static void compare_one(double g, double w, const struct rule *rule, uint64_t index,
                        struct kp_compare *out)
{
    bool g_nan = isnan(g);
    bool w_nan = isnan(w);
    if (g_nan || w_nan) {
        if (g_nan && w_nan)
            return;
        out->n_nan += g_nan;
        note_bad(out, index, g, w);
        return;
    }
    if (isinf(g) || isinf(w)) {
        if (g != w) /* an infinity is like nothing but itself, whatever rtol * inf is */
            note_bad(out, index, g, w);
        return;
    }
    double e = fabs(g - w);
    if (e > out->max_error)
        out->max_error = e;
    if (!(e <= rule->atol + rule->rtol * fabs(w)))
        note_bad(out, index, g, w);
}

/* Numbers side by side (GCC's and clang's vector extension), no wider than any x86-64 or ARM64
 * processor has registers for. */
typedef double f64x2 __attribute__((vector_size(16)));
typedef int64_t i64x2 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));

static f32x4 load_f32(const unsigned char *p)
{
    f32x4 v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* The bits of a half moved to where a float has them, with the exponent's bias put right by a
 * multiplication, are its value, subnormals included; not so for infinities and NaN, which are
 * turned into NaN here so that the block is looked at closely. */
static f32x4 load_f16(const unsigned char *p)
{
    u16x4 h;
    memcpy(&h, p, sizeof(h));
    u32x4 u = __builtin_convertvector(h, u32x4);
    u32x4 special = (u32x4)((u & 0x7c00U) == 0x7c00U);
    u32x4 bits = ((u & 0x7fffU) << 13) | ((u & 0x8000U) << 16);
    return (f32x4)((u32x4)((f32x4)bits * 0x1p112F) | special);
}

static f32x4 load_bf16(const unsigned char *p)
{
    u16x4 h;
    memcpy(&h, p, sizeof(h));
    return (f32x4)(__builtin_convertvector(h, u32x4) << 16);
}

/* What is good in single precision must be good in double. The error of e = |g - w| and of
 * atol + rtol * |w| is at most three roundings of 2^-24 each, for which both tolerances are
 * taken smaller by 2^-20, and half a subnormal step, for which FLT_MIN is taken off. */
struct quick_f32 {
    float rtol;
    float atol;
    f32x4 top; /* largest errors so far */
    i32x4 bad; /* all ones where something is not as it should be */
};

static float shrink(double tolerance, double off)
{
    double t = tolerance * (1 - 0x1p-20) - off;
    return t > (double)FLT_MAX ? FLT_MAX : (float)t;
}

static inline void quick_add_f32(struct quick_f32 *q, f32x4 g, f32x4 w)
{
    f32x4 e = (f32x4)((i32x4)(g - w) & INT32_MAX);
    f32x4 size = (f32x4)((i32x4)w & INT32_MAX);
    i32x4 good = (e <= q->atol + q->rtol * size) | (e == 0.0F);
    i32x4 more = e > q->top;
    q->bad |= ~good;
    q->top = (f32x4)(((i32x4)e & more) | ((i32x4)q->top & ~more));
}

/* For a block of n elements, a multiple of 4: the largest error seen, or infinity when not all
 * are finite and good. */
static double quick_f32(const unsigned char *got, const unsigned char *want, size_t n,
                        const struct rule *rule)
{
    struct quick_f32 q = {.rtol = shrink(rule->rtol, 0),
                          .atol = shrink(rule->atol, (double)FLT_MIN)};
    if (rule->type == KP_NUM_F32) {
        for (size_t at = 0; at < 4 * n; at += 16)
            quick_add_f32(&q, load_f32(got + at), load_f32(want + at));
    } else if (rule->type == KP_NUM_F16) {
        for (size_t at = 0; at < 2 * n; at += 8)
            quick_add_f32(&q, load_f16(got + at), load_f16(want + at));
    } else {
        for (size_t at = 0; at < 2 * n; at += 8)
            quick_add_f32(&q, load_bf16(got + at), load_bf16(want + at));
    }
    double worst = 0;
    for (int k = 0; k < 4; k++) {
        if (q.bad[k])
            return (double)INFINITY;
        worst = (double)q.top[k] > worst ? (double)q.top[k] : worst;
    }
    return worst;
}

/* The same for doubles, without the need for a margin. */
static double quick_f64(const unsigned char *got, const unsigned char *want, size_t n,
                        const struct rule *rule)
{
    f64x2 top = {0, 0};
    i64x2 bad = {0, 0};
    for (size_t at = 0; at < 8 * n; at += 16) {
        f64x2 g;
        f64x2 w;
        memcpy(&g, got + at, sizeof(g));
        memcpy(&w, want + at, sizeof(w));
        f64x2 e = (f64x2)((i64x2)(g - w) & INT64_MAX);
        f64x2 size = (f64x2)((i64x2)w & INT64_MAX);
        i64x2 more = e > top;
        bad |= ~(e <= rule->atol + rule->rtol * size);
        top = (f64x2)(((i64x2)e & more) | ((i64x2)top & ~more));
    }
    if (bad[0] || bad[1])
        return (double)INFINITY;
    return top[0] > top[1] ? top[0] : top[1];
}

static double load_float(const unsigned char *p, enum kp_number type)
{
    uint16_t h;
    float f;
    double d;
    if (type == KP_NUM_F64) {
        memcpy(&d, p, sizeof(d));
        return d;
    }
    if (type == KP_NUM_F32) {
        memcpy(&f, p, sizeof(f));
        return (double)f;
    }
    memcpy(&h, p, sizeof(h));
    return (double)(type == KP_NUM_F16 ? f16_to_f32(h) : bf16_to_f32(h));
}

static void compare_floats(const unsigned char *got, const unsigned char *want, size_t n,
                           const struct rule *rule, struct kp_compare *out)
{
    size_t size = kp_number_bytes(rule->type);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        const unsigned char *pg = got + at * size;
        const unsigned char *pw = want + at * size;
        double worst = (double)INFINITY;
        if (m % LANES == 0)
            worst = size == 8 ? quick_f64(pg, pw, m, rule) : quick_f32(pg, pw, m, rule);
        if (worst < (double)INFINITY) {
            out->max_error = worst > out->max_error ? worst : out->max_error;
            continue;
        }
        for (size_t i = 0; i < m; i++)
            compare_one(load_float(pg + i * size, rule->type),
                        load_float(pw + i * size, rule->type), rule, at + i, out);
    }
}

/* A number as its 64 bits, sign-extended, and as the nearest double. */
static uint64_t load_integer(const unsigned char *p, enum kp_number type, double *value)
{
    uint64_t u = 0;
    memcpy(&u, p, kp_number_bytes(type)); /* little-endian, as every device here */
    switch (type) {
    case KP_NUM_I8:
        u = (uint64_t)(int8_t)u;
        break;
    case KP_NUM_I16:
        u = (uint64_t)(int16_t)u;
        break;
    case KP_NUM_I32:
        u = (uint64_t)(int32_t)u;
        break;
    case KP_NUM_I64:
        break;
    case KP_NUM_U8:
    case KP_NUM_U16:
    case KP_NUM_U32:
    case KP_NUM_U64:
        *value = (double)u;
        return u;
    case KP_NUM_F16:
    case KP_NUM_BF16:
    case KP_NUM_F32:
    case KP_NUM_F64:
        kp_check_failed("an integer type", __FILE__, __LINE__);
    }
    *value = (double)(int64_t)u;
    return u;
}

static void compare_integers(const unsigned char *got, const unsigned char *want, size_t n,
                             const struct rule *rule, struct kp_compare *out)
{
    size_t size = kp_number_bytes(rule->type);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        const unsigned char *pg = got + at * size;
        const unsigned char *pw = want + at * size;
        if (memcmp(pg, pw, m * size) == 0)
            continue;
        for (size_t i = 0; i < m; i++) {
            double g;
            double w;
            uint64_t ug = load_integer(pg + i * size, rule->type, &g);
            uint64_t uw = load_integer(pw + i * size, rule->type, &w);
            if (ug == uw)
                continue;
            /* g and w may round to the same double: the sign must come from the integers */
            bool is_signed = rule->type == KP_NUM_I8 || rule->type == KP_NUM_I16 ||
                             rule->type == KP_NUM_I32 || rule->type == KP_NUM_I64;
            bool above = is_signed ? (int64_t)ug > (int64_t)uw : ug > uw;
            double e = (double)(above ? ug - uw : uw - ug);
            out->max_error = e > out->max_error ? e : out->max_error;
            if (!(e <= rule->atol + rule->rtol * fabs(w)))
                note_bad(out, at + i, g, w);
        }
    }
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_compare_host(const void *got, const void *want, size_t n, enum kp_number type,
                     double rtol, double atol, struct kp_compare *out)
{
    const struct rule rule = {type, rtol, atol};
    *out = (struct kp_compare){.n = n};
    switch (type) {
    case KP_NUM_I8:
    case KP_NUM_U8:
    case KP_NUM_I16:
    case KP_NUM_U16:
    case KP_NUM_I32:
    case KP_NUM_U32:
    case KP_NUM_I64:
    case KP_NUM_U64:
        compare_integers(got, want, n, &rule, out);
        return;
    case KP_NUM_F16:
    case KP_NUM_BF16:
    case KP_NUM_F32:
    case KP_NUM_F64:
        compare_floats(got, want, n, &rule, out);
        return;
    }
    kp_check_failed("a number type", __FILE__, __LINE__);
}
