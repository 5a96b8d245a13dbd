/* SPDX-License-Identifier: MIT */
/* Comparing results elementwise, on the host. Layer: device.
 *
 * Numbers are gone through in blocks. A block of the same bits is good. Of any other a quick
 * pass finds the largest error and whether anything in it is outside the tolerance, infinite or
 * NaN. Only where there is such a thing is the block gone through element by element, in
 * double.
 */
#include "base/error.h"
#include "device/ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    BLOCK = 1024, /* elements of a quick pass */
    LANES = 8     /* elements at a time */
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
    if (g == w)
        return;
    bool g_nan = isnan(g);
    bool w_nan = isnan(w);
    if (g_nan || w_nan) {
        if (g_nan && w_nan)
            return;
        out->n_nan += g_nan;
        note_bad(out, index, g, w);
        return;
    }
    if (isinf(g) || isinf(w)) { /* like nothing but itself, whatever rtol * inf is */
        note_bad(out, index, g, w);
        return;
    }
    double e = fabs(g - w);
    if (e > out->max_error)
        out->max_error = e;
    if (!(e <= rule->atol + rule->rtol * fabs(w)))
        note_bad(out, index, g, w);
}

/* Numbers side by side (GCC's and clang's vector extension): as wide as AVX2 has registers for;
 * narrower machines take them in halves. */
typedef double f64x4 __attribute__((vector_size(32)));
typedef int64_t i64x4 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));

/* Compiled more than once, each time for the instructions of the function that it is part of.
 */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* What is good in single precision must be good in double. The error of e = |g - w| and of
 * atol + rtol * |w| is at most three roundings of 2^-24 each, for which both tolerances are
 * taken smaller by 2^-20, and half a subnormal step, for which FLT_MIN is taken off. */
struct quick_f32 {
    float rtol;
    float atol;
    f32x8 top; /* largest errors so far */
    i32x8 bad; /* all ones where something is not as it should be */
};

static float shrink(double tolerance, double off)
{
    double t = tolerance * (1 - 0x1p-20) - off;
    return t > (double)FLT_MAX ? FLT_MAX : (float)t;
}

ALWAYS_INLINE void load_f32(const unsigned char *p, f32x8 *out)
{
    memcpy(out, p, sizeof(*out));
}

/* The bits of a half moved to where a float has them, with the exponent's bias put right by a
 * multiplication, are its value, subnormals included; not so for infinities and NaN, which are
 * turned into NaN here so that the block is looked at closely. */
ALWAYS_INLINE void load_f16(const unsigned char *p, f32x8 *out)
{
    u16x8 h;
    memcpy(&h, p, sizeof(h));
    u32x8 u = __builtin_convertvector(h, u32x8);
    u32x8 special = (u32x8)((u & 0x7c00U) == 0x7c00U);
    u32x8 bits = ((u & 0x7fffU) << 13) | ((u & 0x8000U) << 16);
    *out = (f32x8)((u32x8)((f32x8)bits * 0x1p112F) | special);
}

ALWAYS_INLINE void load_bf16(const unsigned char *p, f32x8 *out)
{
    u16x8 h;
    memcpy(&h, p, sizeof(h));
    *out = (f32x8)(__builtin_convertvector(h, u32x8) << 16);
}

ALWAYS_INLINE void quick_add_f32(struct quick_f32 *q, const f32x8 *g, const f32x8 *w)
{
    f32x8 e = (f32x8)((i32x8)(*g - *w) & INT32_MAX);
    f32x8 size = (f32x8)((i32x8)*w & INT32_MAX);
    i32x8 good = (e <= q->atol + q->rtol * size) | (e == 0.0F);
    i32x8 more = e > q->top;
    q->bad |= ~good;
    q->top = (f32x8)(((i32x8)e & more) | ((i32x8)q->top & ~more));
}

#define QUICK_F32(load, bytes)              \
    for (size_t i = 0; i < n; i += LANES) { \
        f32x8 g;                            \
        f32x8 w;                            \
        load(got + i * (bytes), &g);        \
        load(want + i * (bytes), &w);       \
        quick_add_f32(&q, &g, &w);          \
    }

/* For n elements, a multiple of LANES: the largest error seen, or infinity when not all are
 * finite and good. */
ALWAYS_INLINE double quick_f32(const unsigned char *got, const unsigned char *want, size_t n,
                               const struct rule *rule)
{
    struct quick_f32 q = {.rtol = shrink(rule->rtol, 0),
                          .atol = shrink(rule->atol, (double)FLT_MIN)};
    if (rule->type == KP_NUM_F32) {
        QUICK_F32(load_f32, 4)
    } else if (rule->type == KP_NUM_F16) {
        QUICK_F32(load_f16, 2)
    } else {
        QUICK_F32(load_bf16, 2)
    }
    double worst = 0;
    for (int k = 0; k < 8; k++) {
        if (q.bad[k])
            return (double)INFINITY;
        worst = (double)q.top[k] > worst ? (double)q.top[k] : worst;
    }
    return worst;
}

/* The same in double precision, which needs no margin: for doubles, and for integers that a
 * double holds exactly. */
#define QUICK_F64(c_type)                                                       \
    for (size_t i = 0; i < n; i += 4) {                                         \
        typedef c_type packed __attribute__((vector_size(4 * sizeof(c_type)))); \
        packed pg;                                                              \
        packed pw;                                                              \
        memcpy(&pg, got + i * sizeof(c_type), sizeof(pg));                      \
        memcpy(&pw, want + i * sizeof(c_type), sizeof(pw));                     \
        f64x4 w = __builtin_convertvector(pw, f64x4);                           \
        f64x4 e = __builtin_convertvector(pg, f64x4) - w;                       \
        e = (f64x4)((i64x4)e & INT64_MAX);                                      \
        w = (f64x4)((i64x4)w & INT64_MAX);                                      \
        i64x4 more = e > top;                                                   \
        bad |= ~(e <= rule->atol + rule->rtol * w);                             \
        top = (f64x4)(((i64x4)e & more) | ((i64x4)top & ~more));                \
    }                                                                           \
    break

/* And for the others: their differences are taken as integers. */
#define QUICK_64(c_type)                                                                   \
    for (size_t i = 0; i < n; i++) {                                                       \
        c_type g;                                                                          \
        c_type w;                                                                          \
        memcpy(&g, got + 8 * i, 8);                                                        \
        memcpy(&w, want + 8 * i, 8);                                                       \
        uint64_t distance = g > w ? (uint64_t)g - (uint64_t)w : (uint64_t)w - (uint64_t)g; \
        double e = (double)distance;                                                       \
        top[0] = e > top[0] ? e : top[0];                                                  \
        bad[0] |= !(e <= rule->atol + rule->rtol * fabs((double)w));                       \
    }                                                                                      \
    break

ALWAYS_INLINE double quick_f64(const unsigned char *got, const unsigned char *want, size_t n,
                               const struct rule *rule)
{
    f64x4 top = {0, 0, 0, 0};
    i64x4 bad = {0, 0, 0, 0};
    switch (rule->type) {
    case KP_NUM_I8:
        QUICK_F64(int8_t);
    case KP_NUM_U8:
        QUICK_F64(uint8_t);
    case KP_NUM_I16:
        QUICK_F64(int16_t);
    case KP_NUM_U16:
        QUICK_F64(uint16_t);
    case KP_NUM_I32:
        QUICK_F64(int32_t);
    case KP_NUM_U32:
        QUICK_F64(uint32_t);
    case KP_NUM_I64:
        QUICK_64(int64_t);
    case KP_NUM_U64:
        QUICK_64(uint64_t);
    case KP_NUM_F64:
        QUICK_F64(double);
    case KP_NUM_F16:
    case KP_NUM_BF16:
    case KP_NUM_F32:
        kp_check_failed("a type for double precision", __FILE__, __LINE__);
    }
    double worst = 0;
    for (int k = 0; k < 4; k++) {
        if (bad[k])
            return (double)INFINITY;
        worst = top[k] > worst ? top[k] : worst;
    }
    return worst;
}

ALWAYS_INLINE double quick_any(const unsigned char *got, const unsigned char *want, size_t n,
                               const struct rule *rule)
{
    bool single =
        rule->type == KP_NUM_F16 || rule->type == KP_NUM_BF16 || rule->type == KP_NUM_F32;
    return single ? quick_f32(got, want, n, rule) : quick_f64(got, want, n, rule);
}

typedef double quick_pass(const unsigned char *got, const unsigned char *want, size_t n,
                          const struct rule *rule);

static double quick_plain(const unsigned char *got, const unsigned char *want, size_t n,
                          const struct rule *rule)
{
    return quick_any(got, want, n, rule);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double quick_avx2(const unsigned char *got,
                                                         const unsigned char *want, size_t n,
                                                         const struct rule *rule)
{
    return quick_any(got, want, n, rule);
}

static quick_pass *choose_quick(void)
{
    return __builtin_cpu_supports("avx2") ? quick_avx2 : quick_plain;
}
#else
static quick_pass *choose_quick(void)
{
    return quick_plain;
}
#endif

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

static void compare_integer(const unsigned char *got, const unsigned char *want,
                            const struct rule *rule, uint64_t index, struct kp_compare *out)
{
    double g;
    double w;
    uint64_t ug = load_integer(got, rule->type, &g);
    uint64_t uw = load_integer(want, rule->type, &w);
    if (ug == uw)
        return;
    /* g and w may round to the same double: the sign must come from the integers */
    bool is_signed = rule->type == KP_NUM_I8 || rule->type == KP_NUM_I16 ||
                     rule->type == KP_NUM_I32 || rule->type == KP_NUM_I64;
    bool above = is_signed ? (int64_t)ug > (int64_t)uw : ug > uw;
    double e = (double)(above ? ug - uw : uw - ug);
    out->max_error = e > out->max_error ? e : out->max_error;
    if (!(e <= rule->atol + rule->rtol * fabs(w)))
        note_bad(out, index, g, w);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_compare_host(const void *got, const void *want, size_t n, enum kp_number type,
                     double rtol, double atol, struct kp_compare *out)
{
    const struct rule rule = {type, rtol, atol};
    const size_t size = kp_number_bytes(type);
    quick_pass *quick = choose_quick();
    *out = (struct kp_compare){.n = n};
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        const unsigned char *pg = (const unsigned char *)got + at * size;
        const unsigned char *pw = (const unsigned char *)want + at * size;
        if (memcmp(pg, pw, m * size) == 0)
            continue; /* the same bits are good, whatever they mean */
        size_t i = m - m % LANES;
        double worst = quick(pg, pw, i, &rule);
        if (worst < (double)INFINITY)
            out->max_error = worst > out->max_error ? worst : out->max_error;
        else
            i = 0;
        for (; i < m; i++) {
            if (type >= KP_NUM_F16)
                compare_one(load_float(pg + i * size, type), load_float(pw + i * size, type),
                            &rule, at + i, out);
            else
                compare_integer(pg + i * size, pw + i * size, &rule, at + i, out);
        }
    }
}

void kp_compare_join(struct kp_compare *all, const struct kp_compare *part, uint64_t at)
{
    if (all->n_bad == 0 && part->n_bad > 0) {
        all->first = at + part->first;
        all->got = part->got;
        all->want = part->want;
    }
    all->n += part->n;
    all->n_bad += part->n_bad;
    all->n_nan += part->n_nan;
    if (part->max_error > all->max_error)
        all->max_error = part->max_error;
}
