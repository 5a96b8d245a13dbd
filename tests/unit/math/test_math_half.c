/* SPDX-License-Identifier: MIT */
#include "math/half.h"

#include "math/thin.h"
#include "support/test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { HALVES = 1 << 16, INFINITE = 0x7c00, SIGN = 0x8000 };

static bool is_finite(unsigned h)
{
    return (h & INFINITE) != INFINITE;
}

static void test_known(void **state)
{
    (void)state;
    static const struct {
        kp_half half;
        float value;
    } known[] = {{0, 0},
                 {1, 0x1p-24F},
                 {0x03ff, 0x3ffp-24F},
                 {0x0400, 0x1p-14F},
                 {0x3555, 0x1.554p-2F},
                 {0x3c00, 1},
                 {0x3c01, 1 + 0x1p-10F},
                 {0xc000, -2},
                 {0x7bff, KP_HALF_MAX},
                 {0x7c00, INFINITY},
                 {0xfc00, -INFINITY}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_true(kp_half_value(known[i].half) == known[i].value);
        assert_int_equal(kp_half_of(known[i].value), known[i].half);
    }
    assert_int_equal(kp_half_of(-0.0F), SIGN);
    assert_true(signbit(kp_half_value(SIGN)));
    assert_true(isnan(kp_half_value(kp_half_of(NAN))));
    assert_true(isnan(kp_half_value(0x7c01)));
}

static void test_all_there_and_back(void **state)
{
    (void)state;
    for (unsigned h = 0; h < HALVES; h++)
        if (is_finite(h))
            assert_int_equal(kp_half_of(kp_half_value((kp_half)h)), h);
}

/* Between each half and the next: the nearer one, in the middle the even one. */
static void test_rounding(void **state)
{
    (void)state;
    for (unsigned h = 0; h < INFINITE; h++) {
        float low = kp_half_value((kp_half)h);
        float high = h + 1 < INFINITE ? kp_half_value((kp_half)(h + 1)) : 65536;
        float middle = low + (high - low) / 2; /* has one bit more, so it is exact */
        assert_int_equal(kp_half_of(middle), h + h % 2);
        assert_int_equal(kp_half_of(nextafterf(middle, 0)), h);
        assert_int_equal(kp_half_of(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(kp_half_of(-middle), SIGN | (h + h % 2));
    }
    assert_int_equal(kp_half_of(1e30F), INFINITE);
    assert_int_equal(kp_half_of(1e-30F), 0);
}

/* Each way reads every half as it is: products with 1. */
static void test_ways_read_all(void **state)
{
    (void)state;
    static float w[HALVES];
    static kp_half packed[HALVES];
    static float y[HALVES];
    const float one = 1;
    const struct kp_thin_way *way;
    for (unsigned h = 0; h < HALVES; h++)
        w[h] = is_finite(h) ? kp_half_value((kp_half)h) : 0;
    assert_int_equal(kp_pack_size(HALVES, 1), HALVES);
    kp_pack(HALVES, 1, w, 1, 1, packed);
    for (size_t i = 0; (way = kp_thin_at(i)) != NULL; i++) {
        memset(y, 0, sizeof(y));
        way->multiply_packed(&(struct kp_packed){
            .m = 1, .n = HALVES, .k = 1, .x = &one, .packed = packed, .depth = 1, .y = y});
        for (unsigned h = 0; h < HALVES; h++)
            if (y[h] != w[h])
                fail_msg("%s: %04x is %g, not %g", way->name, h, (double)y[h], (double)w[h]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_all_there_and_back),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_ways_read_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
