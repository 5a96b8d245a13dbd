/* SPDX-License-Identifier: MIT */
#include "math/portable.h"

#include "base/rng.h"
#include "support/test.h"

#include <float.h>
#include <math.h>

static void the_logarithm_agrees_with_that_of_the_c_library(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (int i = 0; i < 100000; i++) {
        double x = ldexp(0.5 + kp_rng_f64(&rng), (int)kp_rng_below(&rng, 2000) - 1000);
        double want = log2(x);
        /* what the header promises */
        assert_true(fabs(kp_log2_portable(x) - want) <= 1e-13 * fmax(1, fabs(want)));
    }
}

static void powers_of_two_are_exact(void **state)
{
    (void)state;
    for (int e = -1074; e <= 1023; e++)
        assert_true(kp_log2_portable(ldexp(1, e)) == e);
}

static void the_smallest_and_largest_numbers_are_taken(void **state)
{
    (void)state;
    assert_true(fabs(kp_log2_portable(DBL_MAX) - 1024) < 1e-9);
    assert_true(kp_log2_portable(DBL_TRUE_MIN) == -1074);
}

static void the_exponential_agrees_with_that_of_the_c_library(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 2);
    for (int i = 0; i < 100000; i++) {
        double x = 2000 * kp_rng_f64(&rng) - 1000;
        double want = exp2(x);
        /* what the header promises, and the C library's own error */
        assert_true(fabs(kp_exp2_portable(x) - want) <= 1.5e-15 * want);
    }
    for (int e = -1074; e <= 1023; e++)
        assert_true(kp_exp2_portable(e) == ldexp(1, e));
    assert_true(kp_exp2_portable(1024) == (double)INFINITY);
    assert_true(kp_exp2_portable(1e300) == (double)INFINITY);
    assert_true(kp_exp2_portable(-1e300) == 0);
}

/* Bit patterns from one machine: another must give the same. */
static void the_bits_are_the_same_everywhere(void **state)
{
    (void)state;
    assert_true(kp_log2_portable(3) == 0x1.95c01a39fbd69p+0);
    assert_true(kp_log2_portable(1.7320508) == 0x1.95c01a03d4439p-1);
    assert_true(kp_log2_portable(1e-9) == -0x1.de5b8eaa8d7ep+4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_agrees_with_that_of_the_c_library),
        cmocka_unit_test(powers_of_two_are_exact),
        cmocka_unit_test(the_smallest_and_largest_numbers_are_taken),
        cmocka_unit_test(the_exponential_agrees_with_that_of_the_c_library),
        cmocka_unit_test(the_bits_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
