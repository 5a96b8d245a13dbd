/* SPDX-License-Identifier: MIT */
#include "nn/params.h"

#include "base/alloc.h"
#include "gradient.h"

static void matrices_stand_aligned_and_apart(void **state)
{
    (void)state;
    struct kp_params p = {0};
    size_t w = kp_params_add(&p, "enc.w", 3, 7, KP_INIT_UNIFORM, 0.5F);
    size_t b = kp_params_add(&p, "enc.b", 1, 16, KP_INIT_ZERO, 0);
    size_t none = kp_params_add(&p, "none", 0, 5, KP_INIT_ONE, 0);
    size_t g = kp_params_add(&p, "norm.g", 1, 1, KP_INIT_ONE, 0);
    kopt_error err;
    assert_int_equal(kp_params_status(&p, &err), KOPT_OK);
    assert_int_equal(w, 0);
    assert_int_equal(b, 32);
    assert_int_equal(none, 48);
    assert_int_equal(g, 48);
    assert_int_equal(p.n_floats, 64);
    assert_int_equal(p.n_params, 21 + 16 + 1);
    assert_int_equal(p.n_tensors, 4);
    const struct kp_tensor *t = kp_params_find(&p, "enc.w");
    assert_non_null(t);
    assert_int_equal(t->rows, 3);
    assert_int_equal(t->cols, 7);
    assert_int_equal(t->offset, w);
    assert_null(kp_params_find(&p, "enc"));
    kp_params_deinit(&p);
    assert_null(kp_params_find(&p, "enc.w"));
    assert_int_equal(kp_params_add(&p, "enc.w", 1, 1, KP_INIT_ONE, 0), 0); /* usable again */
    kp_params_deinit(&p);
}

static void refused(const char *name, size_t rows, size_t cols, kopt_status want)
{
    struct kp_params p = {0};
    assert_int_equal(kp_params_add(&p, "w", 1, 1, KP_INIT_ZERO, 0), 0);
    assert_true(kp_params_add(&p, name, rows, cols, KP_INIT_ZERO, 0) == KP_NO_TENSOR);
    /* sticky, and the first reason stays */
    assert_true(kp_params_add(&p, "good", 1, 1, KP_INIT_ZERO, 0) == KP_NO_TENSOR);
    kopt_error err = {0};
    assert_int_equal(kp_params_status(&p, &err), want);
    assert_int_equal(err.code, want);
    assert_true(err.message[0]);
    assert_int_equal(p.n_tensors, 1);
    kp_params_deinit(&p);
}

static void bad_matrices_are_refused(void **state)
{
    (void)state;
    char name[KP_TENSOR_NAME + 1];
    memset(name, 'n', sizeof(name));
    name[KP_TENSOR_NAME] = 0;
    refused("w", 1, 1, KOPT_EUSAGE);
    refused("", 1, 1, KOPT_EUSAGE);
    refused(name, 1, 1, KOPT_EUSAGE);
    refused("big", SIZE_MAX / 2, 3, KOPT_ERANGE);
    refused("big", SIZE_MAX / 16, 1, KOPT_ERANGE);
    name[KP_TENSOR_NAME - 1] = 0; /* the longest name there is */
    struct kp_params p = {0};
    assert_int_equal(kp_params_add(&p, name, 1, 1, KP_INIT_ZERO, 0), 0);
    assert_non_null(kp_params_find(&p, name));
    kp_params_deinit(&p);
}

static void there_is_a_largest_number(void **state)
{
    (void)state;
    struct kp_params p = {0};
    char name[KP_TENSOR_NAME];
    for (size_t i = 0; i < KP_TENSORS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "t%zu", i);
        assert_true(kp_params_add(&p, name, 1, 1, KP_INIT_ZERO, 0) == 16 * i);
    }
    assert_true(kp_params_add(&p, "more", 1, 1, KP_INIT_ZERO, 0) == KP_NO_TENSOR);
    assert_int_equal(kp_params_status(&p, NULL), KOPT_ERANGE);
    kp_params_deinit(&p);
}

static void no_memory_is_told(void **state)
{
    (void)state;
    struct kp_params p = {0};
    kp_alloc_fail_at(1);
    assert_true(kp_params_add(&p, "w", 1, 1, KP_INIT_ZERO, 0) == KP_NO_TENSOR);
    kp_alloc_fail_at(1);
    assert_null(kp_slab_new(10));
    kp_alloc_fail_at(0);
    assert_int_equal(kp_params_status(&p, NULL), KOPT_ENOMEM);
    kp_params_deinit(&p);
    assert_null(kp_slab_new(SIZE_MAX));
    assert_null(kp_slab_new(SIZE_MAX / sizeof(float)));
    kp_slab_free(NULL);
}

static void slabs_are_zero_and_aligned(void **state)
{
    (void)state;
    for (size_t n = 0; n < 200; n += 7) {
        float *slab = kp_slab_new(n);
        assert_non_null(slab);
        assert_int_equal((uintptr_t)slab % 64, 0);
        for (size_t i = 0; i < n; i++) {
            assert_true(slab[i] == 0);
            slab[i] = 1;
        }
        kp_slab_free(slab);
    }
}

enum { MANY = 20000 };

static void first_values_are_what_was_asked(void **state)
{
    (void)state;
    struct kp_params p = {0};
    size_t u = kp_params_add(&p, "u", 100, MANY / 100, KP_INIT_UNIFORM, 0.3F);
    size_t n = kp_params_add(&p, "n", 1, MANY, KP_INIT_NORMAL, 2);
    size_t one = kp_params_add(&p, "one", 1, 5, KP_INIT_ONE, 0);
    size_t lstm = kp_params_add(&p, "lstm", 1, 12, KP_INIT_LSTM_BIAS, 0);
    float *a = kp_slab_new(p.n_floats);
    float *b = kp_slab_new(p.n_floats);
    assert_non_null(a);
    assert_non_null(b);
    struct kp_rng rng;
    kp_rng_init(&rng, 9);
    kp_params_init(&p, &rng, a);
    kp_rng_init(&rng, 9);
    kp_params_init(&p, &rng, b);
    assert_memory_equal(a, b, p.n_floats * sizeof(*a));
    double mean = 0;
    double square = 0;
    double least = 1;
    double most = -1;
    for (size_t i = 0; i < MANY; i++) {
        assert_true(a[u + i] >= -0.3F && a[u + i] < 0.3F);
        least = fmin(least, (double)a[u + i]);
        most = fmax(most, (double)a[u + i]);
        mean += (double)a[n + i] / MANY;
        square += (double)a[n + i] * (double)a[n + i] / MANY;
    }
    /* 20000 draws: the mean's deviation is 0.014, the square's 4 sqrt(2/20000) = 0.04; five of
     * each. That none is in the outer 0.1 % of a side has a chance of e^-10. */
    assert_true(fabs(mean) < 0.07 && fabs(square - 4) < 0.2);
    assert_true(least < -0.2994 && most > 0.2994);
    for (size_t i = 0; i < 16; i++)
        assert_true(a[one + i] == (i < 5 ? 1 : 0)); /* the room behind stays 0 */
    for (size_t i = 0; i < 12; i++)
        assert_true(a[lstm + i] == (i >= 3 && i < 6 ? 1 : 0));
    kp_slab_free(a);
    kp_slab_free(b);
    kp_params_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_stand_aligned_and_apart),
        cmocka_unit_test(bad_matrices_are_refused),
        cmocka_unit_test(there_is_a_largest_number),
        cmocka_unit_test(no_memory_is_told),
        cmocka_unit_test(slabs_are_zero_and_aligned),
        cmocka_unit_test(first_values_are_what_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
