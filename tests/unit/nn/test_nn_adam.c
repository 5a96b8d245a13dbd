/* SPDX-License-Identifier: MIT */
#include "nn/adam.h"

#include "golden.h"
#include "gradient.h"

static void ten_steps(const char *name, struct kp_adam a)
{
    struct golden g;
    golden_open(&g, name);
    size_t steps = golden_shape(&g, "grads", 0);
    size_t n = golden_shape(&g, "grads", 1);
    float *x = golden_f32(&g, "start", n);
    float *grads = golden_f32(&g, "grads", steps * n);
    float *trace = golden_zeros(&g, steps * n);
    float *m = golden_zeros(&g, n);
    float *v = golden_zeros(&g, n);
    for (size_t s = 0; s < steps; s++) {
        float *grad = grads + s * n;
        kp_adam_step(&a, s + 1, n, kp_grad_norm(grad, n), x, grad, m, v);
        memcpy(trace + s * n, x, n * sizeof(*x));
    }
    /* Values about 1 in single precision, ten steps; PyTorch clips to norm / (norm + 1e-6). */
    golden_check(&g, "trace", trace, steps * n, 1e-6);
    golden_close(&g);
}

static void steps_are_as_in_pytorch(void **state)
{
    (void)state;
    struct kp_adam a = kp_adam_default();
    a.rate = 0.01F;
    ten_steps("adam", a);
    a.decay = 0.1F;
    a.clip = 5.5F; /* norms are about sqrt(33) = 5.7: some are clipped */
    ten_steps("adam_decay_clip", a);
}

static void the_default_is_the_papers(void **state)
{
    (void)state;
    struct kp_adam a = kp_adam_default();
    assert_true(a.rate == 1e-3F && a.beta1 == 0.9F && a.beta2 == 0.999F && a.epsilon == 1e-8F);
    assert_true(a.decay == 0 && a.clip == 0 && a.warm == 0 && a.total == 0 && a.floor == 0);
    assert_true(kp_adam_rate(&a, 1) == a.rate && kp_adam_rate(&a, 1000000) == a.rate);
}

static void assert_rate(const struct kp_adam *a, uint64_t step, double want)
{
    assert_true(fabs((double)kp_adam_rate(a, step) - want) < 1e-9);
}

static void the_rate_rises_and_falls(void **state)
{
    (void)state;
    struct kp_adam a = kp_adam_default();
    a.warm = 10;
    assert_rate(&a, 1, 1e-4);
    assert_rate(&a, 5, 5e-4);
    assert_rate(&a, 10, 1e-3);
    assert_rate(&a, 500, 1e-3);
    a.total = 110;
    a.floor = 0.1F;
    assert_rate(&a, 10, 1e-3);
    assert_rate(&a, 60, 1e-3 * (0.1 + 0.9 * 0.5));
    assert_rate(&a, 35, 1e-3 * (0.1 + 0.9 * 0.5 * (1 + cos(3.14159265358979 / 4))));
    assert_rate(&a, 110, 1e-4);
    assert_rate(&a, 1000, 1e-4);
    for (uint64_t s = 11; s < 120; s++)
        assert_true(kp_adam_rate(&a, s) <= kp_adam_rate(&a, s - 1));
    a.warm = a.total = 20; /* nothing between the two */
    assert_rate(&a, 19, 1e-3 * 19 / 20);
    assert_rate(&a, 20, 1e-4);
}

static void the_norm_is_of_all_elements(void **state)
{
    (void)state;
    float g[40];
    for (size_t n = 0; n <= 40; n++) {
        double sum = 0;
        for (size_t i = 0; i < 40; i++) {
            g[i] = i < n ? (float)i - 3.5F : NAN;
            sum += i < n ? (double)g[i] * (double)g[i] : 0;
        }
        assert_true(fabs(kp_grad_norm(g, n) - sqrt(sum)) <= 1e-12 * (1 + sum));
    }
    g[39] = 1e38F; /* its square is no float */
    assert_true(fabs(kp_grad_norm(g, 40) / 1e38 - 1) < 1e-6);
    g[20] = INFINITY;
    assert_true(isinf(kp_grad_norm(g, 40)));
    g[3] = NAN;
    assert_true(isnan(kp_grad_norm(g, 40)));
}

static void clipping_scales_the_whole_gradient(void **state)
{
    (void)state;
    struct kp_adam a = kp_adam_default();
    a.clip = 1;
    float x[2] = {0, 0};
    float g[2] = {3, 4};
    float m[2] = {0, 0};
    float v[2] = {0, 0};
    kp_adam_step(&a, 1, 2, 5, x, g, m, v);
    assert_true(fabsf(g[0] - 0.6F) < 1e-6F && fabsf(g[1] - 0.8F) < 1e-6F);
    assert_true(fabsf(m[0] - 0.06F) < 1e-6F && fabsf(v[1] - 0.00064F) < 1e-8F);
    float small[2] = {0.3F, 0.4F};
    kp_adam_step(&a, 2, 2, 0.5, x, small, m, v);
    assert_true(small[0] == 0.3F && small[1] == 0.4F);
}

/* f = sum (x - i)^2 */
static void it_finds_a_minimum(void **state)
{
    (void)state;
    enum { N = 19, STEPS = 400 };
    struct kp_adam a = kp_adam_default();
    a.rate = 0.3F;
    a.warm = 10;
    a.total = STEPS;
    float x[N] = {0};
    float g[N];
    float m[N] = {0};
    float v[N] = {0};
    for (uint64_t s = 1; s <= STEPS; s++) {
        for (size_t i = 0; i < N; i++)
            g[i] = 2 * (x[i] - (float)i);
        kp_adam_step(&a, s, N, kp_grad_norm(g, N), x, g, m, v);
    }
    for (size_t i = 0; i < N; i++)
        assert_true(fabsf(x[i] - (float)i) < 0.01F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_as_in_pytorch),
        cmocka_unit_test(the_default_is_the_papers),
        cmocka_unit_test(the_rate_rises_and_falls),
        cmocka_unit_test(the_norm_is_of_all_elements),
        cmocka_unit_test(clipping_scales_the_whole_gradient),
        cmocka_unit_test(it_finds_a_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
