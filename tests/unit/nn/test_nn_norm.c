/* SPDX-License-Identifier: MIT */
#include "golden.h"
#include "gradient.h"
#include "nn/layers.h"

static void layernorm_is_as_in_pytorch(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, "layernorm");
    size_t B = golden_shape(&g, "x", 0);
    size_t O = golden_shape(&g, "x", 1);
    const float *x = golden_f32(&g, "x", B * O);
    const float *gain = golden_f32(&g, "g", O);
    float *y = golden_zeros(&g, B * O);
    float *dx = golden_zeros(&g, B * O);
    float *dg = golden_zeros(&g, O);
    float *db = golden_zeros(&g, O);
    float *keep = golden_zeros(&g, 2 * B);
    kp_layernorm_forward(B, O, x, gain, golden_f32(&g, "b", O), y, keep);
    kp_layernorm_backward(B, O, x, gain, keep, golden_f32(&g, "dy", B * O), dx, dg, db);
    /* Single precision, and inputs about 3 that the file has ten digits of. */
    golden_check(&g, "y", y, B * O, 5e-6);
    golden_check(&g, "dx", dx, B * O, 5e-6);
    golden_check(&g, "dg", dg, O, 5e-6);
    golden_check(&g, "db", db, O, 5e-6);
    golden_close(&g);
}

enum { MANY = 700 };

struct norm_case {
    size_t B, O;
    float x[MANY], g[MANY], b[MANY], dy[MANY], y[MANY], keep[MANY];
};

static double norm_loss(void *user)
{
    struct norm_case *c = user;
    kp_layernorm_forward(c->B, c->O, c->x, c->g, c->b, c->y, c->keep);
    return weighed(c->y, c->dy, c->B * c->O);
}

/* Rows of one to more elements than backward takes at a time. */
static void gradients_are_those_of_the_forward_pass(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{3, 5}, {2, 16}, {1, 33}, {2, 300}};
    static struct norm_case c;
    struct kp_rng rng;
    kp_rng_init(&rng, 4);
    for (size_t s = 0; s < 4; s++) {
        c.B = sizes[s][0];
        c.O = sizes[s][1];
        draw_normal(&rng, c.x, MANY);
        draw_normal(&rng, c.g, MANY);
        draw_normal(&rng, c.b, MANY);
        draw_normal(&rng, c.dy, MANY);
        float dx[MANY];
        float dg[MANY] = {0};
        float db[MANY] = {0};
        (void)norm_loss(&c);
        kp_layernorm_backward(c.B, c.O, c.x, c.g, c.keep, c.dy, dx, dg, db);
        float twice[2][MANY] = {{0}, {0}};
        kp_layernorm_backward(c.B, c.O, c.x, c.g, c.keep, c.dy, NULL, twice[0], twice[1]);
        assert_memory_equal(twice[0], dg, sizeof(dg));
        assert_memory_equal(twice[1], db, sizeof(db));
        check_gradient("dx", norm_loss, &c, c.x, dx, c.B * c.O);
        check_gradient("dg", norm_loss, &c, c.g, dg, c.O);
        check_gradient("db", norm_loss, &c, c.b, db, c.O);
    }
}

static void a_row_far_from_zero_keeps_its_digits(void **state)
{
    (void)state;
    static struct norm_case c = {.B = 1, .O = 64};
    double mean = 0;
    double square = 0;
    for (size_t i = 0; i < 64; i++) {
        c.x[i] = 1000 + (float)(i % 5) * 0.25F; /* exact */
        c.g[i] = 1;
        mean += (double)c.x[i] / 64;
    }
    for (size_t i = 0; i < 64; i++)
        square += pow((double)c.x[i] - mean, 2) / 64;
    kp_layernorm_forward(1, 64, c.x, c.g, c.b, c.y, c.keep);
    for (size_t i = 0; i < 64; i++) {
        double want = ((double)c.x[i] - mean) / sqrt(square + 1e-5);
        /* the mean is rounded to 6e-5, of a deviation of 0.35 */
        assert_true(fabs((double)c.y[i] - want) < 2e-4);
    }
    /* in place, and a row without any spread */
    float y[64];
    memcpy(y, c.x, sizeof(y));
    kp_layernorm_forward(1, 64, y, c.g, c.b, y, c.keep);
    assert_memory_equal(y, c.y, sizeof(y));
    for (size_t i = 0; i < 64; i++)
        y[i] = 7;
    kp_layernorm_forward(1, 64, y, c.g, c.b, y, c.keep);
    for (size_t i = 0; i < 64; i++)
        assert_true(y[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layernorm_is_as_in_pytorch),
        cmocka_unit_test(gradients_are_those_of_the_forward_pass),
        cmocka_unit_test(a_row_far_from_zero_keeps_its_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
