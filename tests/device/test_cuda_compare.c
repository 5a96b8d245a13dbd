/* SPDX-License-Identifier: MIT */
/* The text of the kernel that compares results on the device, run here as C with one thread a
 * block, must decide as kp_compare_host() does. */
#include "base/rng.h"
#include "device/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- CUDA on the host -----------------------------------------------------------------------
 */

static struct {
    unsigned x;
} blockIdx, threadIdx, blockDim = {1}, gridDim = {3};

static void __syncthreads(void)
{
}

static void atomicAdd(unsigned long long *p, unsigned long long v)
{
    *p += v;
}

static void atomicMin(unsigned long long *p, unsigned long long v)
{
    *p = v < *p ? v : *p;
}

static void atomicMax(unsigned long long *p, unsigned long long v)
{
    *p = v > *p ? v : *p;
}

static uint64_t bits_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    return bits;
}

static double half_to_double(unsigned short h)
{
    int exponent = h >> 10 & 31;
    double fraction = h & 1023;
    double v = exponent == 31  ? (fraction > 0 ? (double)NAN : (double)INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -v : v;
}

static double bfloat_to_double(unsigned short h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return (double)f;
}

/* --- one copy of the text for each type -----------------------------------------------------
 */

#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"

#define CAT2(a, b)  a##_##b
#define CAT(a, b)   CAT2(a, b)
#define found       CAT(found, NAME)
#define pack        CAT(pack, NAME)
#define note_bad    CAT(note_bad, NAME)
#define note_error  CAT(note_error, NAME)
#define within      CAT(within, NAME)
#define compare_one CAT(compare_one, NAME)
#define kp_compare  CAT(compare, NAME)

#define COMPARE_TEXT(...) __VA_ARGS__
#define KERNEL            static
#define DEVICE            static
#define SHARED            static
#define U64               unsigned long long
#define BITS_OF(d)        bits_of(d)
#define ADD(a, b)         ((a) + (b))
#define MUL(a, b)         ((a) * (b))
#define UNROLL
#define INFINITE   ((double)INFINITY)
#define PACK       (16 / sizeof(ELEM))
#define PACK_ALIGN __attribute__((aligned(16)))

#define IS_FLOAT     0
#define TO_DOUBLE(e) ((double)(e))
#define DISTANCE(g, w)                                             \
    ((g) > (w) ? (unsigned long long)(g) - (unsigned long long)(w) \
               : (unsigned long long)(w) - (unsigned long long)(g))
#define ELEM signed char
#define NAME i8
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM unsigned char
#define NAME u8
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM short
#define NAME i16
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM unsigned short
#define NAME u16
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM int
#define NAME i32
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM unsigned int
#define NAME u32
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM long long
#define NAME i64
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM unsigned long long
#define NAME u64
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#undef IS_FLOAT
#undef TO_DOUBLE
#undef DISTANCE

#define IS_FLOAT       1
#define DISTANCE(g, w) 0
#define TO_DOUBLE(e)   half_to_double(e)
#define ELEM           unsigned short
#define NAME           f16
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef NAME
#undef TO_DOUBLE
#define TO_DOUBLE(e) bfloat_to_double(e)
#define NAME         bf16
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#undef TO_DOUBLE
#define TO_DOUBLE(e) ((double)(e))
#define ELEM         float
#define NAME         f32
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME
#define ELEM double
#define NAME f64
#include "device/compare_rule.h"
#include "device/cuda/compare_text.h"
#undef ELEM
#undef NAME

#undef found
#undef kp_compare

/* `struct found` is the same for all. */
struct result {
    unsigned long long n_bad;
    unsigned long long n_nan;
    unsigned long long first;
    double max_error;
};

#define RUN(type, elem)                                                  \
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)           \
    compare_##type((const elem *)got, (const elem *)want, n, rtol, atol, \
                   (struct found_##type *)out)

static void run_text(const void *got, const void *want, size_t n, enum kp_number type,
                     double rtol, double atol, struct result *out)
{
    *out = (struct result){.first = ~0ULL};
    switch (type) {
    case KP_NUM_I8:
        RUN(i8, signed char);
        break;
    case KP_NUM_U8:
        RUN(u8, unsigned char);
        break;
    case KP_NUM_I16:
        RUN(i16, short);
        break;
    case KP_NUM_U16:
        RUN(u16, unsigned short);
        break;
    case KP_NUM_I32:
        RUN(i32, int);
        break;
    case KP_NUM_U32:
        RUN(u32, unsigned int);
        break;
    case KP_NUM_I64:
        RUN(i64, long long);
        break;
    case KP_NUM_U64:
        RUN(u64, unsigned long long);
        break;
    case KP_NUM_F16:
        RUN(f16, unsigned short);
        break;
    case KP_NUM_BF16:
        RUN(bf16, unsigned short);
        break;
    case KP_NUM_F32:
        RUN(f32, float);
        break;
    case KP_NUM_F64:
        RUN(f64, double);
        break;
    }
}

/* --- tests ----------------------------------------------------------------------------------
 */

enum { N_MAX = 3000, BYTES_MAX = 8 * N_MAX };

static _Alignas(16) unsigned char got_bytes[BYTES_MAX];
static _Alignas(16) unsigned char want_bytes[BYTES_MAX];

static void check(size_t n, enum kp_number type, double rtol, double atol)
{
    struct result r;
    struct kp_compare host;
    run_text(got_bytes, want_bytes, n, type, rtol, atol, &r);
    kp_compare_host(got_bytes, want_bytes, n, type, rtol, atol, &host);
    assert_int_equal(r.n_bad, host.n_bad);
    assert_int_equal(r.n_nan, host.n_nan);
    if (r.n_bad)
        assert_int_equal(r.first, host.first);
    /* the host takes the differences of types below 64 bits in single precision: 2^-24 */
    double slack = type == KP_NUM_F64 ? 0 : 0x1p-23 * host.max_error;
    assert_true(r.max_error == host.max_error || fabs(r.max_error - host.max_error) <= slack);
}

/* Bit patterns of which many are special: zeros, extremes, infinities, NaN, subnormals. */
static uint64_t pattern(struct kp_rng *rng, size_t bytes)
{
    static const uint64_t SPECIAL[] = {0,
                                       1,
                                       UINT64_MAX,
                                       0x8000000000000000u,
                                       0x7FFFFFFFFFFFFFFFu,
                                       0x7FF0000000000000u,
                                       0xFFF0000000000000u,
                                       0x7FF8000000000000u,
                                       0x7F80000000000000u,
                                       0xFF80000000000000u,
                                       0x7C00000000000000u,
                                       0xFC00000000000000u,
                                       0x7E00000000000000u,
                                       0x3FF0000000000000u,
                                       0x3F80000000000000u,
                                       0x3C00000000000000u};
    uint64_t v = kp_rng_u64(rng);
    if (kp_rng_below(rng, 3) == 0)
        v = SPECIAL[kp_rng_below(rng, sizeof(SPECIAL) / sizeof(SPECIAL[0]))];
    return v >> (64 - 8 * bytes);
}

/* `want` at random; of `got` a share of 1 in `rarity` differs, often by one last place. */
static void fill_bytes(struct kp_rng *rng, size_t n, size_t bytes, unsigned rarity)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t w = pattern(rng, bytes);
        uint64_t g = w;
        if (kp_rng_below(rng, rarity) == 0)
            g = kp_rng_below(rng, 2) ? pattern(rng, bytes) : w + 1;
        memcpy(want_bytes + i * bytes, &w, bytes);
        memcpy(got_bytes + i * bytes, &g, bytes);
    }
}

static void random_patterns_are_judged_alike(void **state)
{
    static const size_t SIZES[] = {0, 1, 7, 8, 15, 16, 17, 33, N_MAX};
    static const double TOLERANCES[][2] = {{0, 0},      {1e-5, 0}, {0, 1e-3},
                                           {0.5, 1e10}, {0, 1},    {(double)INFINITY, 0}};
    struct kp_rng rng;
    (void)state;
    kp_rng_init(&rng, 1);
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        size_t bytes = kp_number_bytes((enum kp_number)type);
        for (size_t s = 0; s < sizeof(SIZES) / sizeof(SIZES[0]); s++) {
            fill_bytes(&rng, SIZES[s], bytes, s % 2 ? 2 : 200);
            for (size_t t = 0; t < sizeof(TOLERANCES) / sizeof(TOLERANCES[0]); t++)
                check(SIZES[s], (enum kp_number)type, TOLERANCES[t][0], TOLERANCES[t][1]);
        }
    }
}

static void every_half_is_read_right(void **state)
{
    (void)state;
    for (unsigned from = 0; from < 65536; from += 2048) {
        for (unsigned i = 0; i < 2048; i++) {
            uint16_t h = (uint16_t)(from + i);
            uint16_t one = 0x3C00;
            memcpy(got_bytes + 2 * i, &h, sizeof(h));
            memcpy(want_bytes + 2 * i, &one, sizeof(one));
        }
        check(2048, KP_NUM_F16, 0.25, 0);
        check(2048, KP_NUM_BF16, 0.25, 0);
    }
}

static void a_tolerance_decides_at_its_very_edge(void **state)
{
    double w = 3.0;
    (void)state;
    for (int ulps = -3; ulps <= 3; ulps++) {
        double edge = 0.1 + 0.3 * w;
        double g = w + edge;
        for (int i = 0; i < abs(ulps); i++)
            g = nextafter(g, ulps < 0 ? 0 : 100);
        memcpy(got_bytes, &g, sizeof(g));
        memcpy(want_bytes, &w, sizeof(w));
        check(1, KP_NUM_F64, 0.3, 0.1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_patterns_are_judged_alike),
        cmocka_unit_test(every_half_is_read_right),
        cmocka_unit_test(a_tolerance_decides_at_its_very_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
