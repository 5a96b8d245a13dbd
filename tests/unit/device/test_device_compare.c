/* SPDX-License-Identifier: MIT */
/* kp_compare_host() against a plain implementation of its contract. */
#include "base/rng.h"
#include "device/device.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 70000 };

static unsigned char GOT[8 * MAX + 8];
static unsigned char WANT[8 * MAX + 8];

/* --- the plain implementation ----------------------------------------------------------------
 */

/* sign, exponent and fraction taken apart and put together by ldexp(): no tricks with bits */
static double small_float(unsigned h, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(h >> fraction_bits) & ((1 << exponent_bits) - 1);
    int fraction = (int)h & ((1 << fraction_bits) - 1);
    double sign = h >> (exponent_bits + fraction_bits) ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(1 + ldexp(fraction, -fraction_bits), exponent - bias);
}

static double read_float(const unsigned char *p, enum kp_number type)
{
    if (type == KP_NUM_F32) {
        float f;
        memcpy(&f, p, 4);
        return (double)f;
    }
    if (type == KP_NUM_F64) {
        double d;
        memcpy(&d, p, 8);
        return d;
    }
    unsigned h = (unsigned)p[0] | (unsigned)p[1] << 8;
    return type == KP_NUM_F16 ? small_float(h, 5, 10) : small_float(h, 8, 7);
}

__extension__ typedef __int128 wide;

static wide read_integer(const unsigned char *p, enum kp_number type)
{
    size_t n = kp_number_bytes(type);
    wide v = 0;
    for (size_t i = n; i-- > 0;)
        v = v * 256 + p[i];
    bool is_signed =
        type == KP_NUM_I8 || type == KP_NUM_I16 || type == KP_NUM_I32 || type == KP_NUM_I64;
    if (is_signed && p[n - 1] & 0x80)
        v -= (wide)1 << (8 * n);
    return v;
}

static bool is_float(enum kp_number type)
{
    return type >= KP_NUM_F16;
}

static void plain(const unsigned char *got, const unsigned char *want, size_t n,
                  enum kp_number type, double rtol, double atol, struct kp_compare *out)
{
    size_t size = kp_number_bytes(type);
    *out = (struct kp_compare){.n = n};
    for (size_t i = 0; i < n; i++) {
        double g;
        double w;
        double e;
        bool good;
        if (is_float(type)) {
            g = read_float(got + i * size, type);
            w = read_float(want + i * size, type);
            e = fabs(g - w);
            good = e <= atol + rtol * fabs(w) && isfinite(g) && isfinite(w);
            good = good || g == w || (isnan(g) && isnan(w));
        } else {
            wide ig = read_integer(got + i * size, type);
            wide iw = read_integer(want + i * size, type);
            g = (double)ig;
            w = (double)iw;
            e = (double)(ig > iw ? ig - iw : iw - ig);
            good = e <= atol + rtol * fabs(w);
        }
        if (isfinite(g) && isfinite(w) && e > out->max_error)
            out->max_error = e;
        out->n_nan += isnan(g) && !isnan(w);
        if (good)
            continue;
        if (out->n_bad++ == 0) {
            out->first = i;
            out->got = g;
            out->want = w;
        }
    }
}

static bool same_double(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check(size_t offset, size_t n, enum kp_number type, double rtol, double atol)
{
    struct kp_compare a;
    struct kp_compare b;
    kp_compare_host(GOT + offset, WANT + offset, n, type, rtol, atol, &a);
    plain(GOT + offset, WANT + offset, n, type, rtol, atol, &b);
    /* single precision is enough for the largest error of small types */
    bool error_good = a.max_error == b.max_error ||
                      (type != KP_NUM_F64 && is_float(type) &&
                       fabs(a.max_error - b.max_error) <= (double)FLT_EPSILON * b.max_error);
    if (a.n != b.n || a.n_bad != b.n_bad || a.n_nan != b.n_nan || a.first != b.first ||
        !same_double(a.got, b.got) || !same_double(a.want, b.want) || !error_good)
        fail_msg("type %d n %zu rtol %g atol %g: bad %llu/%llu nan %llu/%llu first %llu/%llu "
                 "error %.17g/%.17g",
                 (int)type, n, rtol, atol, (unsigned long long)a.n_bad,
                 (unsigned long long)b.n_bad, (unsigned long long)a.n_nan,
                 (unsigned long long)b.n_nan, (unsigned long long)a.first,
                 (unsigned long long)b.first, a.max_error, b.max_error);
}

/* --- cases -----------------------------------------------------------------------------------
 */

static void random_bits(uint64_t seed, size_t bytes)
{
    struct kp_rng r;
    kp_rng_init(&r, seed);
    for (size_t i = 0; i < bytes; i++)
        WANT[i] = (unsigned char)kp_rng_u64(&r);
    memcpy(GOT, WANT, bytes);
}

/* Change `changes` elements in a bit of theirs, mostly a low one. */
static void disturb(uint64_t seed, enum kp_number type, size_t n, int changes)
{
    struct kp_rng r;
    kp_rng_init(&r, seed);
    size_t bits = 8 * kp_number_bytes(type);
    for (int i = 0; i < changes; i++) {
        size_t at = kp_rng_below(&r, n);
        size_t bit = kp_rng_below(&r, i % 3 ? bits / 4 : bits);
        GOT[at * bits / 8 + bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static void any_bits_of_any_type_compare_as_the_contract_says(void **state)
{
    (void)state;
    static const double TOLERANCES[][2] = {{0, 0},      {1e-6, 0}, {0, 1e-3},  {1e-3, 1e-9},
                                           {0.5, 1e10}, {2, 0},    {0, 1e300}, {1e-50, 0}};
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        for (size_t k = 0; k < sizeof(TOLERANCES) / sizeof(*TOLERANCES); k++) {
            random_bits(100 + k, (size_t)5000 * 8);
            disturb(k, (enum kp_number)type, 5000, 60);
            check(0, 5000, (enum kp_number)type, TOLERANCES[k][0], TOLERANCES[k][1]);
            check(1, 4999, (enum kp_number)type, TOLERANCES[k][0], TOLERANCES[k][1]);
        }
    }
}

static void every_length_around_a_block_works(void **state)
{
    (void)state;
    static const size_t LENGTHS[] = {0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 1027, 2048, 2051};
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        for (size_t k = 0; k < sizeof(LENGTHS) / sizeof(*LENGTHS); k++) {
            random_bits(k, (size_t)2100 * 8);
            if (LENGTHS[k] > 0)
                disturb(k, (enum kp_number)type, LENGTHS[k], 1);
            check(0, LENGTHS[k], (enum kp_number)type, 0, 0);
            check(0, LENGTHS[k], (enum kp_number)type, 1e-4, 1e-4);
        }
    }
}

static void all_halves_are_read_right(void **state)
{
    (void)state;
    for (int type = KP_NUM_F16; type <= KP_NUM_BF16; type++) {
        for (unsigned h = 0; h < 65536; h++) {
            WANT[2 * h] = (unsigned char)h;
            WANT[2 * h + 1] = (unsigned char)(h >> 8);
        }
        /* against the neighbour, so that each value shows in the error */
        memcpy(GOT, WANT + 2, (size_t)2 * 65535);
        check(0, 65535, (enum kp_number)type, 0, 0);
        check(0, 65535, (enum kp_number)type, 1e-2, 0);
        for (size_t at = 0; at + 4 <= 65535; at += 4)
            check(2 * at, 4, (enum kp_number)type, 0, 0);
    }
}

/* Errors right at the tolerance, one step inside and one outside, down to subnormal numbers. */
static void the_tolerance_is_kept_to_the_last_bit(void **state)
{
    (void)state;
    struct kp_rng r;
    kp_rng_init(&r, 5);
    static const double RTOL[] = {0, 1e-5, 1e-7, 0x1p-24, 0x1p-23, 0.25};
    for (int round = 0; round < 500; round++) {
        double rtol = RTOL[kp_rng_below(&r, 6)];
        double atol = kp_rng_below(&r, 2) ? 0 : ldexp(1, -(int)kp_rng_below(&r, 160));
        for (size_t i = 0; i < 64; i++) {
            float w = ldexpf((float)kp_rng_normal(&r), -(int)kp_rng_below(&r, 150));
            float g = (float)((double)w + atol + rtol * fabs((double)w));
            int step = (int)kp_rng_below(&r, 3);
            if (step)
                g = nextafterf(g, step == 1 ? INFINITY : -INFINITY);
            memcpy(WANT + 4 * i, &w, 4);
            memcpy(GOT + 4 * i, &g, 4);
        }
        for (size_t i = 0; i < 64; i += 4) /* few at a time: a bad one hides the others */
            check(4 * i, 4, KP_NUM_F32, rtol, atol);
    }
}

static void infinities_and_nan_are_like_themselves_only(void **state)
{
    (void)state;
    static const float SPECIAL[] = {INFINITY, -INFINITY, NAN,     -NAN,   0.0f,    -0.0f,
                                    FLT_MAX,  -FLT_MAX,  FLT_MIN, 1e-45f, -1e-45f, 1.0f};
    enum { COUNT = sizeof(SPECIAL) / sizeof(*SPECIAL) };
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < COUNT; k++) {
            double g = (double)SPECIAL[i];
            double w = (double)SPECIAL[k];
            memcpy(GOT + 4 * (i * COUNT + k), &SPECIAL[i], 4);
            memcpy(WANT + 4 * (i * COUNT + k), &SPECIAL[k], 4);
            memcpy(GOT + 4096 + 8 * (i * COUNT + k), &g, 8);
            memcpy(WANT + 4096 + 8 * (i * COUNT + k), &w, 8);
        }
    }
    static const double TOLERANCES[][2] = {
        {0, 0}, {1, 0}, {0, 1e300}, {1e300, 1e300}, {1e-5, 1}};
    for (size_t t = 0; t < sizeof(TOLERANCES) / sizeof(*TOLERANCES); t++) {
        check(0, (size_t)COUNT * COUNT, KP_NUM_F32, TOLERANCES[t][0], TOLERANCES[t][1]);
        check(4096, (size_t)COUNT * COUNT, KP_NUM_F64, TOLERANCES[t][0], TOLERANCES[t][1]);
    }
    struct kp_compare c;
    const float got[4] = {1, NAN, 2, INFINITY};
    const float want[4] = {1, 3, NAN, 4};
    kp_compare_host(got, want, 4, KP_NUM_F32, 1, 1e30, &c);
    assert_int_equal(c.n_bad, 3);
    assert_int_equal(c.n_nan, 1);
    assert_int_equal(c.first, 1);
    assert_true(isnan(c.got) && c.want == 3);
}

static void what_is_equal_is_good_whatever_the_tolerance(void **state)
{
    (void)state;
    static const double ANY = (double)INFINITY; /* times 0 it is NaN */
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        size_t size = kp_number_bytes((enum kp_number)type);
        struct kp_compare c;
        memset(WANT, 0, sizeof(WANT));
        memset(GOT, 0, sizeof(GOT));
        kp_compare_host(GOT, WANT, 3000, (enum kp_number)type, ANY, 0, &c);
        assert_true(c.n == 3000 && c.n_bad == 0 && c.max_error == 0);
        GOT[1500 * size] = 0x70; /* beside equal ones, over a 0 */
        kp_compare_host(GOT, WANT, 3000, (enum kp_number)type, ANY, 0, &c);
        assert_true(c.n_bad == 1 && c.first == 1500);
        memset(WANT, 0xFF, sizeof(WANT)); /* NaN or -1 */
        memset(GOT, 0xFF, sizeof(GOT));
        kp_compare_host(GOT, WANT, 3000, (enum kp_number)type, 0, 0, &c);
        assert_true(c.n_bad == 0 && c.n_nan == 0);
    }
}

/* Differences of which each is within the tolerance, so that no element is looked at alone;
 * then one past it, at every place of a block. */
static void a_bad_one_among_many_near_ones_is_found(void **state)
{
    (void)state;
    for (int type = KP_NUM_I8; type < KP_NUM_F16; type++) {
        size_t size = kp_number_bytes((enum kp_number)type);
        for (size_t i = 0; i < 2048; i++) {
            int64_t w = (int64_t)(i % 100);
            int64_t g = w + (int64_t)(i % 3) - 1 + (w == 0);
            memcpy(WANT + i * size, &w, size);
            memcpy(GOT + i * size, &g, size);
        }
        check(0, 2048, (enum kp_number)type, 0, 1);
        for (size_t i = 0; i < 2048; i += 41) {
            int64_t before = 0;
            int64_t bad = (int64_t)(i % 100) + 20;
            memcpy(&before, GOT + i * size, size);
            memcpy(GOT + i * size, &bad, size);
            check(0, 2048, (enum kp_number)type, 0, 1);
            memcpy(GOT + i * size, &before, size);
        }
    }
}

static void large_integers_are_not_rounded(void **state)
{
    (void)state;
    const int64_t got[2] = {INT64_MAX, INT64_MIN};
    const int64_t want[2] = {INT64_MAX - 1, INT64_MAX};
    struct kp_compare c;
    kp_compare_host(got, want, 2, KP_NUM_I64, 0, 0, &c);
    assert_int_equal(c.n_bad, 2);
    assert_true(c.max_error == 18446744073709551615.0);
    kp_compare_host(got, want, 1, KP_NUM_I64, 0, 1, &c);
    assert_int_equal(c.n_bad, 0);
    assert_true(c.max_error == 1);
    const uint64_t a[1] = {UINT64_MAX};
    const uint64_t b[1] = {0};
    kp_compare_host(a, b, 1, KP_NUM_U64, 0, 0, &c);
    assert_true(c.n_bad == 1 && c.want == 0);
}

static void sizes_of_types_are_right(void **state)
{
    (void)state;
    static const size_t SIZES[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++)
        assert_int_equal(kp_number_bytes((enum kp_number)type), SIZES[type]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bits_of_any_type_compare_as_the_contract_says),
        cmocka_unit_test(every_length_around_a_block_works),
        cmocka_unit_test(all_halves_are_read_right),
        cmocka_unit_test(the_tolerance_is_kept_to_the_last_bit),
        cmocka_unit_test(infinities_and_nan_are_like_themselves_only),
        cmocka_unit_test(what_is_equal_is_good_whatever_the_tolerance),
        cmocka_unit_test(a_bad_one_among_many_near_ones_is_found),
        cmocka_unit_test(large_integers_are_not_rounded),
        cmocka_unit_test(sizes_of_types_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
