/* SPDX-License-Identifier: MIT */
#include "golden.h"
#include "gradient.h"
#include "nn/layers.h"

#include <stdbool.h>

/* Single precision: sums of at most 20 products of numbers about 1. */
static const double rounding = 2e-6;

static void linear_is_as_in_pytorch(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, "linear");
    struct kp_linear l = {.B = golden_shape(&g, "x", 0),
                          .I = golden_shape(&g, "x", 1),
                          .O = golden_shape(&g, "w", 0)};
    l.w = golden_f32(&g, "w", l.O * l.I);
    l.b = golden_f32(&g, "b", l.O);
    const float *x = golden_f32(&g, "x", l.B * l.I);
    const float *dy = golden_f32(&g, "dy", l.B * l.O);
    float *y = golden_zeros(&g, l.B * l.O);
    float *dx = golden_zeros(&g, l.B * l.I);
    float *dw = golden_zeros(&g, l.O * l.I);
    float *db = golden_zeros(&g, l.O);
    memset(y, 0xff, l.B * l.O * sizeof(*y)); /* NaN: what is written must not be read */
    memset(dx, 0xff, l.B * l.I * sizeof(*dx));
    kp_linear_forward(kp_blas_fast(), &l, x, y);
    kp_linear_backward(kp_blas_fast(), &l, x, dy, dx, dw, db);
    golden_check(&g, "y", y, l.B * l.O, rounding);
    golden_check(&g, "dx", dx, l.B * l.I, rounding);
    golden_check(&g, "dw", dw, l.O * l.I, rounding);
    golden_check(&g, "db", db, l.O, rounding);
    golden_close(&g);
}

enum { SIDE = 8, MANY = SIDE * SIDE * SIDE };

struct linear_case {
    struct kp_linear l;
    float x[MANY], w[MANY], b[MANY], dy[MANY], y[MANY];
};

static double linear_loss(void *user)
{
    struct linear_case *c = user;
    kp_linear_forward(kp_blas_reference(), &c->l, c->x, c->y);
    return weighed(c->y, c->dy, c->l.B * c->l.O);
}

static void linear_gradients_are_those_of_its_forward_pass(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1}, {1, 8, 5}, {7, 1, 3}, {5, 6, 1}, {4, 7, 8}};
    static struct linear_case c;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (size_t s = 0; s < 10; s++) {
        const size_t *z = sizes[s / 2];
        bool bias = s % 2;
        c.l = (struct kp_linear){
            .B = z[0], .I = z[1], .O = z[2], .w = c.w, .b = bias ? c.b : NULL};
        draw_normal(&rng, c.x, MANY);
        draw_normal(&rng, c.w, MANY);
        draw_normal(&rng, c.b, MANY);
        draw_normal(&rng, c.dy, MANY);
        float dx[MANY];
        float dw[MANY] = {0};
        float db[MANY] = {0};
        kp_linear_backward(kp_blas_reference(), &c.l, c.x, c.dy, dx, dw, bias ? db : NULL);
        check_gradient("dx", linear_loss, &c, c.x, dx, z[0] * z[1]);
        check_gradient("dw", linear_loss, &c, c.w, dw, z[2] * z[1]);
        if (bias)
            check_gradient("db", linear_loss, &c, c.b, db, z[2]);
        /* parameters' gradients are added to what is there; the input's may be left out */
        float once[MANY];
        memcpy(once, dw, sizeof(once));
        kp_linear_backward(kp_blas_reference(), &c.l, c.x, c.dy, NULL, dw, bias ? db : NULL);
        for (size_t i = 0; i < z[2] * z[1]; i++)
            assert_true(fabsf(dw[i] - 2 * once[i]) <= 1e-5F * (1 + fabsf(once[i])));
    }
}

static void conv_is_as_in_pytorch(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, "conv");
    struct kp_conv c = {.T = golden_shape(&g, "x", 0),
                        .B = golden_shape(&g, "x", 1),
                        .I = golden_shape(&g, "x", 2),
                        .O = golden_shape(&g, "w", 0),
                        .K = golden_shape(&g, "w", 1)};
    size_t n_x = c.T * c.B * c.I;
    size_t n_y = c.T * c.B * c.O;
    size_t n_w = c.O * c.K * c.I;
    c.w = golden_f32(&g, "w", n_w);
    c.b = golden_f32(&g, "b", c.O);
    const float *x = golden_f32(&g, "x", n_x);
    const float *dy = golden_f32(&g, "dy", n_y);
    float *y = golden_zeros(&g, n_y);
    float *dx = golden_zeros(&g, n_x);
    float *dw = golden_zeros(&g, n_w);
    float *db = golden_zeros(&g, c.O);
    float *work = golden_zeros(&g, kp_conv_work(&c));
    memset(y, 0xff, n_y * sizeof(*y));
    memset(dx, 0xff, n_x * sizeof(*dx));
    kp_conv_forward(kp_blas_fast(), &c, x, y, work);
    kp_conv_backward(kp_blas_fast(), &c, x, dy, dx, dw, db, work);
    golden_check(&g, "y", y, n_y, rounding);
    golden_check(&g, "dx", dx, n_x, rounding);
    golden_check(&g, "dw", dw, n_w, rounding);
    golden_check(&g, "db", db, c.O, rounding);
    golden_close(&g);
}

struct conv_case {
    struct kp_conv c;
    float x[MANY], w[MANY], b[MANY], dy[MANY], y[MANY];
};

static double conv_loss(void *user)
{
    struct conv_case *c = user;
    kp_conv_forward(kp_blas_reference(), &c->c, c->x, c->y, NULL);
    return weighed(c->y, c->dy, c->c.T * c->c.B * c->c.O);
}

/* By the formula. */
static double conv_at(const struct conv_case *k, size_t t, size_t b, size_t o)
{
    const struct kp_conv *c = &k->c;
    double sum = (double)k->b[o];
    for (size_t q = 0; q < c->K; q++) {
        size_t s = t + q; /* K/2 too far */
        if (s < c->K / 2 || s - c->K / 2 >= c->T)
            continue;
        for (size_t i = 0; i < c->I; i++)
            sum += (double)k->w[(o * c->K + q) * c->I + i] *
                   (double)k->x[((s - c->K / 2) * c->B + b) * c->I + i];
    }
    return sum;
}

static void conv_may_be_wider_than_its_sequence(void **state)
{
    (void)state;
    static const size_t sizes[][5] = {/* T B I O K */
                                      {1, 1, 1, 1, 1}, {1, 2, 3, 2, 5}, {2, 2, 2, 3, 7},
                                      {4, 1, 2, 2, 3}, {6, 3, 1, 2, 5}, {5, 2, 3, 1, 1}};
    static struct conv_case k;
    struct kp_rng rng;
    kp_rng_init(&rng, 2);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const size_t *z = sizes[s];
        k.c = (struct kp_conv){z[0], z[1], z[2], z[3], z[4], k.w, k.b};
        draw_normal(&rng, k.x, MANY);
        draw_normal(&rng, k.w, MANY);
        draw_normal(&rng, k.b, MANY);
        draw_normal(&rng, k.dy, MANY);
        kp_conv_forward(kp_blas_reference(), &k.c, k.x, k.y, NULL);
        for (size_t i = 0; i < z[0] * z[1] * z[3]; i++) {
            double want = conv_at(&k, i / z[3] / z[1], i / z[3] % z[1], i % z[3]);
            assert_true(fabs((double)k.y[i] - want) <= rounding * (1 + fabs(want)));
        }
        float dx[MANY];
        float dw[MANY] = {0};
        float db[MANY] = {0};
        kp_conv_backward(kp_blas_reference(), &k.c, k.x, k.dy, dx, dw, db, NULL);
        check_gradient("dx", conv_loss, &k, k.x, dx, z[0] * z[1] * z[2]);
        check_gradient("dw", conv_loss, &k, k.w, dw, z[3] * z[4] * z[2]);
        check_gradient("db", conv_loss, &k, k.b, db, z[3]);
        kp_conv_backward(kp_blas_reference(), &k.c, k.x, k.dy, NULL, dw, db, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_as_in_pytorch),
        cmocka_unit_test(linear_gradients_are_those_of_its_forward_pass),
        cmocka_unit_test(conv_is_as_in_pytorch),
        cmocka_unit_test(conv_may_be_wider_than_its_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
