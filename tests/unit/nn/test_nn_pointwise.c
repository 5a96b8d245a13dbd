/* SPDX-License-Identifier: MIT */
#include "golden.h"
#include "gradient.h"
#include "nn/layers.h"

#include <stdbool.h>

/* Single precision, and tanh and sigmoid with errors below 3e-7. */
static const double rounding = 2e-6;

static void embedding_is_as_in_pytorch(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, "embed");
    size_t V = golden_shape(&g, "table", 0);
    size_t O = golden_shape(&g, "table", 1);
    size_t n = golden_shape(&g, "ids", 0);
    const int32_t *ids = golden_i32(&g, "ids", n);
    float *y = golden_zeros(&g, n * O);
    float *dtable = golden_zeros(&g, V * O);
    kp_embed_forward(golden_f32(&g, "table", V * O), O, ids, n, y);
    kp_embed_backward(O, ids, n, golden_f32(&g, "dy", n * O), dtable);
    golden_check(&g, "y", y, n * O, rounding);
    golden_check(&g, "dtable", dtable, V * O, rounding);
    golden_close(&g);
}

static void an_id_below_zero_is_no_entry(void **state)
{
    (void)state;
    const float table[] = {1, 2, 3, 4};
    const int32_t ids[] = {1, -1, 0, 1};
    float y[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    kp_embed_forward(table, 2, ids, 4, y);
    const float want[] = {3, 4, 0, 0, 1, 2, 3, 4};
    assert_memory_equal(y, want, sizeof(want));
    float dtable[4] = {10, 0, 0, 0};
    const float dy[] = {1, 2, 100, 100, 5, 6, 0.5F, 0.25F};
    kp_embed_backward(2, ids, 4, dy, dtable);
    const float sums[] = {15, 6, 1.5F, 2.25F};
    assert_memory_equal(dtable, sums, sizeof(sums));
}

static void activations_are_as_in_pytorch(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, "activations");
    size_t n = golden_shape(&g, "x", 0);
    const float *x = golden_f32(&g, "x", n);
    float *y = golden_f32(&g, "x", n);
    float *d = golden_f32(&g, "dy", n);
    kp_relu_forward(y, n);
    kp_relu_backward(y, n, d);
    golden_check(&g, "relu", y, n, 1e-7); /* x itself, of ten digits */
    golden_check(&g, "drelu", d, n, 1e-7);
    y = golden_f32(&g, "x", n);
    d = golden_f32(&g, "dy", n);
    kp_tanh_forward(y, n);
    kp_tanh_backward(y, n, d);
    golden_check(&g, "tanh", y, n, rounding);
    golden_check(&g, "dtanh", d, n, rounding);
    const float *dy = golden_f32(&g, "dy", n);
    float *dx = golden_zeros(&g, n);
    kp_silu_forward(x, n, y);
    kp_silu_backward(x, n, dy, dx);
    golden_check(&g, "silu", y, n, rounding);
    golden_check(&g, "dsilu", dx, n, rounding);
    d = golden_f32(&g, "dy", n); /* in its place */
    kp_silu_backward(x, n, d, d);
    assert_memory_equal(d, dx, n * sizeof(*d));
    golden_close(&g);
}

/* Lengths on both sides of the blocks, against the definitions. */
static void activations_take_any_length(void **state)
{
    (void)state;
    enum { LONGEST = 600 };
    float x[LONGEST];
    float y[LONGEST];
    float d[LONGEST];
    struct kp_rng rng;
    kp_rng_init(&rng, 3);
    draw_normal(&rng, x, LONGEST);
    for (size_t n = 0; n < LONGEST; n += n < 40 ? 1 : 47) {
        memcpy(y, x, sizeof(y));
        kp_relu_forward(y, n);
        for (size_t i = 0; i < LONGEST; i++)
            assert_true(y[i] == (i < n && x[i] < 0 ? 0 : x[i]));
        kp_silu_forward(x, n, y);
        for (size_t i = 0; i < LONGEST; i++)
            d[i] = 1;
        kp_silu_backward(x, n, d, d);
        for (size_t i = 0; i < n; i++) {
            double s = 1 / (1 + exp(-(double)x[i]));
            assert_true(fabs((double)y[i] - (double)x[i] * s) < 2e-6);
            assert_true(fabs((double)d[i] - s * (1 + (double)x[i] * (1 - s))) < 2e-6);
        }
        for (size_t i = n; i < LONGEST; i++)
            assert_true(d[i] == 1);
    }
}

static void nan_goes_through(void **state)
{
    (void)state;
    float x[] = {NAN, 1};
    kp_relu_forward(x, 2);
    assert_true(isnan(x[0]) && x[1] == 1);
}

enum { DROPPED = 100000 };

static float dropped[DROPPED];

static void fill_and_drop(uint64_t key, float p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dropped[i] = 1;
    kp_dropout(key, p, dropped, n);
}

/* Binomial: the standard deviation of a share is below sqrt(1/4 / 100000) = 0.0016; five of
 * them. Elements at any distance go together in share^2 of all cases, if independent. */
static void dropout_takes_its_share(void **state)
{
    (void)state;
    static const float shares[] = {0.1F, 0.25F, 0.5F, 0.9F};
    for (size_t s = 0; s < 4; s++) {
        fill_and_drop(77 + s, shares[s], DROPPED);
        double p = (double)shares[s];
        size_t zeros = 0;
        for (size_t i = 0; i < DROPPED; i++) {
            bool gone = dropped[i] == 0;
            assert_true(gone || fabsf(dropped[i] - 1 / (1 - shares[s])) < 1e-5F);
            zeros += gone;
        }
        assert_true(fabs((double)zeros / DROPPED - p) < 0.008);
        for (size_t distance = 1; distance < 40; distance++) {
            size_t pairs = 0;
            for (size_t i = distance; i < DROPPED; i++)
                pairs += dropped[i] == 0 && dropped[i - distance] == 0;
            assert_true(fabs((double)pairs / (double)(DROPPED - distance) - p * p) < 0.008);
        }
    }
    /* different keys: both drop an element in share^2 of all cases */
    static float first[DROPPED];
    fill_and_drop(1, 0.5F, DROPPED);
    memcpy(first, dropped, sizeof(first));
    fill_and_drop(2, 0.5F, DROPPED);
    size_t both = 0;
    for (size_t i = 0; i < DROPPED; i++)
        both += first[i] == 0 && dropped[i] == 0;
    assert_true(fabs((double)both / DROPPED - 0.25) < 0.008);
    /* nor do keys that a counter made, with the generator's own step, give the same at a shift
     */
    fill_and_drop(1 + 0x9e3779b97f4a7c15U, 0.5F, DROPPED);
    both = 0;
    for (size_t i = 1; i < DROPPED; i++)
        both += first[i] == 0 && dropped[i - 1] == 0;
    assert_true(fabs((double)both / DROPPED - 0.25) < 0.008);
}

static void an_elements_fate_depends_on_its_index_alone(void **state)
{
    (void)state;
    float all[100];
    fill_and_drop(5, 0.4F, 100);
    memcpy(all, dropped, sizeof(all));
    for (size_t n = 0; n < 100; n++) {
        dropped[n] = 1;
        fill_and_drop(5, 0.4F, n);
        assert_memory_equal(dropped, all, n * sizeof(*all));
    }
    fill_and_drop(5, 0, 100);
    for (size_t i = 0; i < 100; i++)
        assert_true(dropped[i] == 1);
    fill_and_drop(5, 1, 100);
    for (size_t i = 0; i < 100; i++)
        assert_true(dropped[i] == 0);
    float bad[40];
    for (size_t i = 0; i < 40; i++)
        bad[i] = INFINITY; /* 0, not NaN, where it is dropped */
    kp_dropout(5, 0.4F, bad, 40);
    for (size_t i = 0; i < 40; i++)
        assert_true(all[i] == 0 ? bad[i] == 0 : isinf(bad[i]));
}

/* --- central differences --------------------------------------------------------------------
 */

enum { POINTS = 40, KEY = 7, ROWS = 9, WIDTH = 5, WORDS = 6 };

struct pointwise {
    void (*forward)(float *x, size_t n);
    void (*backward)(const float *y, size_t n, float *dy); /* of y, but silu: of x */
    float x[POINTS];
    float dy[POINTS];
};

static double loss_of(void *user)
{
    const struct pointwise *p = user;
    float y[POINTS];
    memcpy(y, p->x, sizeof(y));
    p->forward(y, POINTS);
    return weighed(y, p->dy, POINTS);
}

static void silu_in_place(float *x, size_t n)
{
    float y[POINTS];
    kp_silu_forward(x, n, y);
    memcpy(x, y, n * sizeof(*x));
}

static void silu_back(const float *x, size_t n, float *dy)
{
    kp_silu_backward(x, n, dy, dy);
}

static void drop(float *x, size_t n)
{
    kp_dropout(KEY, 0.3F, x, n);
}

static void drop_back(const float *y, size_t n, float *dy)
{
    (void)y;
    kp_dropout(KEY, 0.3F, dy, n);
}

static void gradients_are_finite_differences(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*forward)(float *x, size_t n);
        void (*backward)(const float *y, size_t n, float *dy);
    } all[] = {{"relu", kp_relu_forward, kp_relu_backward},
               {"tanh", kp_tanh_forward, kp_tanh_backward},
               {"silu", silu_in_place, silu_back},
               {"dropout", drop, drop_back}};
    struct kp_rng rng;
    kp_rng_init(&rng, 12);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct pointwise p = {.forward = all[i].forward, .backward = all[i].backward};
        float at[POINTS];
        float dx[POINTS];
        draw_normal(&rng, p.x, POINTS);
        draw_normal(&rng, p.dy, POINTS);
        for (size_t k = 0; k < POINTS; k++) /* relu's kink, and both points on one side of it */
            if (fabsf(p.x[k]) < 0.1F)
                p.x[k] = 0.1F;
        memcpy(at, p.x, sizeof(at));
        memcpy(dx, p.dy, sizeof(dx));
        if (p.forward != silu_in_place)
            p.forward(at, POINTS);
        p.backward(at, POINTS, dx);
        check_gradient(all[i].name, loss_of, &p, p.x, dx, POINTS);
    }
}

struct embedding {
    float table[WORDS * WIDTH];
    int32_t ids[ROWS];
    float dy[ROWS * WIDTH];
};

static double embedding_loss(void *user)
{
    const struct embedding *e = user;
    float y[ROWS * WIDTH];
    kp_embed_forward(e->table, WIDTH, e->ids, ROWS, y);
    return weighed(y, e->dy, (size_t)ROWS * WIDTH);
}

/* Words that come twice, a word that does not come, and none. */
static void the_gradient_of_a_table_is_a_finite_difference(void **state)
{
    (void)state;
    struct embedding e = {.ids = {0, 3, -1, 3, 5, 1, 0, 3, 2}};
    float dtable[WORDS * WIDTH] = {0};
    struct kp_rng rng;
    kp_rng_init(&rng, 13);
    draw_normal(&rng, e.table, (size_t)WORDS * WIDTH);
    draw_normal(&rng, e.dy, (size_t)ROWS * WIDTH);
    kp_embed_backward(WIDTH, e.ids, ROWS, e.dy, dtable);
    check_gradient("table", embedding_loss, &e, e.table, dtable, (size_t)WORDS * WIDTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(the_gradient_of_a_table_is_a_finite_difference),
        cmocka_unit_test(embedding_is_as_in_pytorch),
        cmocka_unit_test(an_id_below_zero_is_no_entry),
        cmocka_unit_test(activations_are_as_in_pytorch),
        cmocka_unit_test(activations_take_any_length),
        cmocka_unit_test(nan_goes_through),
        cmocka_unit_test(dropout_takes_its_share),
        cmocka_unit_test(an_elements_fate_depends_on_its_index_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
