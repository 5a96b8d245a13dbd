/* SPDX-License-Identifier: MIT */
#include "golden.h"
#include "gradient.h"
#include "nn/layers.h"

static void loss_is_as_in_pytorch(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, "cross_entropy");
    size_t B = golden_shape(&g, "z", 0);
    size_t V = golden_shape(&g, "z", 1);
    const int32_t *target = golden_i32(&g, "target", B);
    float *z = golden_f32(&g, "z", B * V);
    size_t right = 10;
    double loss = kp_cross_entropy(B, V, z, target, golden_f32(&g, "weight", B),
                                   (float)golden_number(&g, "smoothing"), &right);
    /* Sums of single-precision numbers, about 4 for each row. */
    assert_true(fabs(loss - golden_number(&g, "loss")) < 1e-5);
    golden_check(&g, "dz", z, B * V, 2e-6);
    assert_int_equal(right, 10 + (size_t)golden_number(&g, "right"));
    z = golden_f32(&g, "z", B * V);
    loss = kp_cross_entropy(B, V, z, target, NULL, 0, NULL);
    assert_true(fabs(loss - golden_number(&g, "plain")) < 1e-5);
    golden_check(&g, "dz_plain", z, B * V, 2e-6);
    z = golden_f32(&g, "z", B * V);
    kp_log_softmax(B, V, z);
    golden_check(&g, "log_softmax", z, B * V, 2e-6);
    golden_close(&g);
}

enum { MANY = 300 };

struct loss_case {
    size_t B, V;
    const int32_t *target;
    const float *weight;
    float smoothing;
    float z[MANY];
};

static double loss_of(void *user)
{
    struct loss_case *c = user;
    float z[MANY];
    memcpy(z, c->z, sizeof(z));
    return kp_cross_entropy(c->B, c->V, z, c->target, c->weight, c->smoothing, NULL);
}

static void the_gradient_is_that_of_the_loss(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{3, 1}, {3, 2}, {2, 17}, {3, 100}};
    static const int32_t target[] = {0, -1, 0};
    static const float weight[] = {0.5F, 3, 2};
    static struct loss_case c;
    struct kp_rng rng;
    kp_rng_init(&rng, 5);
    for (size_t s = 0; s < 8; s++) {
        c.B = sizes[s / 2][0];
        c.V = sizes[s / 2][1];
        c.target = target;
        c.weight = s % 2 ? weight : NULL;
        c.smoothing = s % 2 ? 0.2F : 0;
        draw_normal(&rng, c.z, MANY);
        float dz[MANY];
        memcpy(dz, c.z, sizeof(dz));
        (void)kp_cross_entropy(c.B, c.V, dz, target, c.weight, c.smoothing, NULL);
        check_gradient("dz", loss_of, &c, c.z, dz, c.B * c.V);
        for (size_t i = 0; i < c.V; i++) /* no target, no gradient */
            assert_true(dz[c.V + i] == 0);
    }
}

static void the_largest_entry_counts_and_the_first_of_equals(void **state)
{
    (void)state;
    const int32_t target[] = {0, 1, 2, 2};
    float z[] = {3, 1, 2, /**/ 1, 1, 0, /**/ 0, 1, 5, /**/ 9, 0, 1};
    size_t right = 0;
    (void)kp_cross_entropy(4, 3, z, target, NULL, 0, &right);
    assert_int_equal(right, 2);
}

static void numbers_far_apart_do_not_overflow(void **state)
{
    (void)state;
    const int32_t target[] = {1};
    float z[] = {1e4F, -1e4F, 0};
    double loss = kp_cross_entropy(1, 3, z, target, NULL, 0, NULL);
    assert_true(fabs(loss - 2e4) < 1e-2);
    assert_true(z[0] == 1 && z[1] == -1 && z[2] == 0);
    /* what a mask ruled out has no part in it */
    float masked[] = {1, -INFINITY, 1, -INFINITY};
    const int32_t first[] = {0};
    loss = kp_cross_entropy(1, 4, masked, first, NULL, 0, NULL);
    assert_true(fabs(loss - log(2)) < 1e-6);
    assert_true(masked[0] == -0.5F && masked[1] == 0 && masked[2] == 0.5F && masked[3] == 0);
    float log_p[] = {1, -INFINITY, 1, -INFINITY};
    kp_log_softmax(1, 4, log_p);
    assert_true(fabs((double)log_p[0] + log(2)) < 1e-6);
    assert_true(isinf(log_p[1]) && log_p[1] < 0);
    float nan[] = {1, NAN, 1};
    assert_true(isnan(kp_cross_entropy(1, 3, nan, first, NULL, 0, NULL)));
}

/* Rows longer than what is gone through at a time. */
static void log_softmax_takes_any_length(void **state)
{
    (void)state;
    enum { LONGEST = 1000 };
    static float z[LONGEST];
    static float was[LONGEST];
    struct kp_rng rng;
    kp_rng_init(&rng, 6);
    draw_normal(&rng, was, LONGEST);
    for (size_t V = 1; V <= LONGEST; V += V < 40 ? 1 : 97) {
        double sum = 0;
        for (size_t i = 0; i < V; i++)
            sum += exp((double)was[i]);
        memcpy(z, was, sizeof(z));
        kp_log_softmax(1, V, z);
        for (size_t i = 0; i < V; i++)
            assert_true(fabs((double)z[i] - ((double)was[i] - log(sum))) < 2e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_is_as_in_pytorch),
        cmocka_unit_test(the_gradient_is_that_of_the_loss),
        cmocka_unit_test(the_largest_entry_counts_and_the_first_of_equals),
        cmocka_unit_test(numbers_far_apart_do_not_overflow),
        cmocka_unit_test(log_softmax_takes_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
