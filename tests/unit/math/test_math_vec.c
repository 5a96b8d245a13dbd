/* SPDX-License-Identifier: MIT */
#include "math/vec.h"

#include "base/rng.h"
#include "support/test.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { N = 4096 };

typedef void in_place(float *x, size_t n);
typedef double exact(double x);

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

/* The largest error over [low, high], which is gone through in steps of `step`; relative where
 * `relative`, of results that are normal numbers. */
static double worst(in_place *f, exact *want, double low, double high, double step,
                    bool relative)
{
    static float x[N];
    static float y[N];
    double top = 0;
    for (double at = low; at < high; at += N * step) {
        for (size_t i = 0; i < N; i++)
            x[i] = y[i] = (float)fmin(at + (double)i * step, high);
        f(y, N);
        for (size_t i = 0; i < N; i++) {
            double w = want((double)x[i]);
            double e = fabs((double)y[i] - w);
            if (relative && !(w >= (double)FLT_MIN && w <= (double)FLT_MAX))
                continue;
            top = fmax(top, relative ? e / w : e);
        }
    }
    return top;
}

static void errors_stay_below_what_is_promised(void **state)
{
    (void)state;
    assert_true(worst(kp_vec_exp, exp, -90, 90, 2e-4, true) < 4e-7);
    assert_true(worst(kp_vec_exp, exp, -1, 1, 1e-6, true) < 4e-7);
    assert_true(worst(kp_vec_tanh, tanh, -12, 12, 2e-5, false) < 3e-7);
    assert_true(worst(kp_vec_sigmoid, exact_sigmoid, -100, 100, 2e-4, false) < 3e-7);
    assert_true(worst(kp_vec_sigmoid, exact_sigmoid, -10, 10, 2e-5, false) < 3e-7);
}

/* More than is promised, and what networks live on: gradients through small values. */
static void tanh_is_odd_and_keeps_its_digits_near_zero(void **state)
{
    (void)state;
    for (float a = 1e-30F; a < 20; a *= 1.01F) {
        float x[2] = {a, -a};
        kp_vec_tanh(x, 2);
        assert_true(x[0] == -x[1]);
        double w = tanh((double)a);
        assert_true(fabs((double)x[0] - w) <= 5e-7 * w);
    }
}

static void the_ends_are_what_they_should_be(void **state)
{
    (void)state;
    const float in[] = {0, -0.0F, INFINITY, -INFINITY, NAN, 1000, -1000, FLT_MAX, -FLT_MAX};
    enum { COUNT = sizeof(in) / sizeof(in[0]) };
    const float e[COUNT] = {1, 1, INFINITY, 0, NAN, INFINITY, 0, INFINITY, 0};
    const float t[COUNT] = {0, -0.0F, 1, -1, NAN, 1, -1, 1, -1};
    const float s[COUNT] = {0.5F, 0.5F, 1, 0, NAN, 1, 0, 1, 0};
    const float *want[] = {e, t, s};
    in_place *f[] = {kp_vec_exp, kp_vec_tanh, kp_vec_sigmoid};
    for (size_t k = 0; k < 3; k++) {
        float x[COUNT];
        memcpy(x, in, sizeof(x));
        f[k](x, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            if (isnan(want[k][i]))
                assert_true(isnan(x[i]));
            else /* the sigmoid's 0 is the smallest value of a clamped argument */
                assert_true(fabsf(x[i] - want[k][i]) < 2e-38F || x[i] == want[k][i]);
        }
        f[k](NULL, 0);
        uint32_t odd[] = {0x7fc001ff, 0xffc001ff, 0x7f8001ff}; /* NaN with bits of its own */
        memcpy(x, odd, sizeof(odd));
        f[k](x, 3);
        assert_true(isnan(x[0]) && isnan(x[1]) && isnan(x[2]));
    }
    /* just inside and just outside of exp's range */
    float edge[] = {-0x1.5d589ep+6F, -0x1.5d58a0p+6F, 0x1.62e42ep+6F, 0x1.62e430p+6F};
    kp_vec_exp(edge, 4);
    assert_true(edge[0] >= FLT_MIN && edge[1] == 0);
    assert_true(isfinite(edge[2]) && isinf(edge[3]));
}

/* Every length and every offset: the same bits as for the element alone. */
static void the_bits_do_not_depend_on_the_place(void **state)
{
    (void)state;
    enum { LONGEST = 83 };
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    float x[LONGEST];
    for (size_t i = 0; i < LONGEST; i++)
        x[i] = (float)(6 * kp_rng_normal(&rng));
    in_place *f[] = {kp_vec_exp, kp_vec_tanh, kp_vec_sigmoid};
    for (size_t k = 0; k < 3; k++) {
        float alone[LONGEST];
        memcpy(alone, x, sizeof(x));
        for (size_t i = 0; i < LONGEST; i++)
            f[k](&alone[i], 1);
        for (size_t start = 0; start < 17; start++) {
            for (size_t n = 0; start + n <= LONGEST; n++) {
                float y[LONGEST];
                memcpy(y, x, sizeof(x));
                f[k](y + start, n);
                for (size_t i = 0; i < LONGEST; i++) {
                    bool inside = i >= start && i < start + n;
                    assert_int_equal(bits_of(y[i]), bits_of(inside ? alone[i] : x[i]));
                }
            }
        }
    }
}

static void sums_take_each_element_once(void **state)
{
    (void)state;
    float x[200];
    float y[200];
    for (size_t n = 0; n < 200; n++) {
        int64_t want = 0;
        for (size_t i = 0; i < 200; i++) { /* small integers: exact in any order */
            x[i] = (float)(i % 7) - 3;
            y[i] = (float)(i % 5) - 1;
            if (i < n)
                want += ((int64_t)(i % 7) - 3) * ((int64_t)(i % 5) - 1);
            else
                y[i] = NAN;
        }
        assert_true(kp_vec_dot(n, x, y) == (float)want);
        float rising[200];
        for (size_t i = 0; i < 200; i++)
            rising[i] = i < n ? (float)i : NAN;
        assert_true(kp_vec_sum(n, rising) == (float)(n * (n - (n > 0)) / 2));
        kp_vec_axpy(n, -2, x, y);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == (float)(i % 5) - 1 - 2 * x[i]);
        for (size_t i = n; i < 200; i++)
            assert_true(isnan(y[i]));
    }
}

static void the_largest_element_is_found_anywhere(void **state)
{
    (void)state;
    float x[70] = {0};
    assert_true(isinf(kp_vec_max(0, x)) && kp_vec_max(0, x) < 0);
    for (size_t n = 1; n < 70; n++) {
        for (size_t at = 0; at < n; at++) {
            for (size_t i = 0; i < 70; i++)
                x[i] = i < n ? -5 - (float)i : 100;
            x[at] = -1;
            assert_true(kp_vec_max(n, x) == -1);
        }
    }
    x[0] = x[1] = -INFINITY;
    assert_true(isinf(kp_vec_max(2, x)));
}

/* At any alignment. */
static void a_sum_has_one_order(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 2);
    float x[101];
    float y[101];
    for (size_t i = 0; i < 101; i++) {
        x[i] = (float)kp_rng_normal(&rng);
        y[i] = (float)kp_rng_normal(&rng);
    }
    float first = kp_vec_dot(101, x, y);
    for (size_t shift = 1; shift < 16; shift++) {
        float a[128];
        float b[128];
        memcpy(a + shift, x, sizeof(x));
        memcpy(b + 16 - shift, y, sizeof(y));
        assert_int_equal(bits_of(kp_vec_dot(101, a + shift, b + 16 - shift)), bits_of(first));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_below_what_is_promised),
        cmocka_unit_test(tanh_is_odd_and_keeps_its_digits_near_zero),
        cmocka_unit_test(the_ends_are_what_they_should_be),
        cmocka_unit_test(the_bits_do_not_depend_on_the_place),
        cmocka_unit_test(sums_take_each_element_once),
        cmocka_unit_test(the_largest_element_is_found_anywhere),
        cmocka_unit_test(a_sum_has_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
