/* SPDX-License-Identifier: MIT */
/* Products with weights: the linear layer and the convolution. Layer: nn. */
#include "math/thin.h"
#include "math/vec.h"
#include "nn/layers.h"

#include <string.h>

static void set_rows(size_t rows, size_t O, const float *b, float *y)
{
    for (size_t r = 0; r < rows; r++)
        memcpy(y + r * O, b, O * sizeof(*y));
}

static void add_rows(size_t rows, size_t O, const float *dy, float *db)
{
    for (size_t r = 0; r < rows; r++)
        kp_vec_axpy(O, 1, dy + r * O, db);
}

void kp_linear_forward(const struct kp_blas *blas, const struct kp_linear *l, const float *x,
                       float *y)
{
    if (l->b)
        set_rows(l->B, l->O, l->b, y);
    blas->gemm(false, true, l->B, l->O, l->I, 1, x, l->I, l->w, l->I, l->b ? 1 : 0, y, l->O);
}

void kp_linear_forward_packed(const struct kp_blas *blas, const struct kp_linear *l,
                              const kp_half *packed, const float *x, float *y)
{
    const struct kp_packed p = {.m = l->B,
                                .n = l->O,
                                .k = l->I,
                                .x = x,
                                .ldx = l->I,
                                .packed = packed,
                                .depth = l->I,
                                .from = l->b,
                                .y = y,
                                .ldy = l->O};
    if (packed)
        kp_thin_best()->multiply_packed(&p);
    else
        kp_linear_forward(blas, l, x, y);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_linear_backward(const struct kp_blas *blas, const struct kp_linear *l, const float *x,
                        const float *dy, float *dx, float *dw, float *db)
{
    blas->gemm(true, false, l->O, l->I, l->B, 1, dy, l->O, x, l->I, 1, dw, l->I);
    if (l->b)
        add_rows(l->B, l->O, dy, db);
    if (dx)
        blas->gemm(false, false, l->B, l->I, l->O, 1, dy, l->O, l->w, l->I, 0, dx, l->I);
}

/* The convolution is K products, of which the k-th takes the rows of x that stand k - K/2 steps
 * from those of y: steps are rows of B, so that both are one matrix each, and the k-th weights
 * are every K-th row of [O K][I]. Nothing is copied. */
struct tap {
    size_t rows; /* B times the steps in which there is such an x */
    size_t x;    /* the first of x, in floats */
    size_t y;
};

static struct tap tap_at(const struct kp_conv *c, size_t k)
{
    size_t half = c->K / 2;
    size_t behind = k < half ? half - k : 0;
    size_t ahead = k > half ? k - half : 0;
    if (behind + ahead >= c->T)
        return (struct tap){0};
    return (struct tap){.rows = (c->T - behind - ahead) * c->B,
                        .x = ahead * c->B * c->I,
                        .y = behind * c->B * c->O};
}

/* Nothing, this way; callers ask, so that another way may be taken one day. */
size_t kp_conv_work(const struct kp_conv *c)
{
    (void)c;
    return 0;
}

/* NOLINTBEGIN(readability-non-const-parameter): another way would write to `work` */
void kp_conv_forward(const struct kp_blas *blas, const struct kp_conv *c, const float *x,
                     float *y, float *work)
{
    (void)work;
    set_rows(c->T * c->B, c->O, c->b, y);
    for (size_t k = 0; k < c->K; k++) {
        struct tap p = tap_at(c, k);
        blas->gemm(false, true, p.rows, c->O, c->I, 1, x + p.x, c->I, c->w + k * c->I,
                   c->K * c->I, 1, y + p.y, c->O);
    }
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
void kp_conv_backward(const struct kp_blas *blas, const struct kp_conv *c, const float *x,
                      const float *dy, float *dx, float *dw, float *db, float *work)
{
    (void)work;
    if (dx)
        memset(dx, 0, c->T * c->B * c->I * sizeof(*dx));
    add_rows(c->T * c->B, c->O, dy, db);
    for (size_t k = 0; k < c->K; k++) {
        struct tap p = tap_at(c, k);
        blas->gemm(true, false, c->O, c->I, p.rows, 1, dy + p.y, c->O, x + p.x, c->I, 1,
                   dw + k * c->I, c->K * c->I);
        if (dx)
            blas->gemm(false, false, p.rows, c->I, c->O, 1, dy + p.y, c->O, c->w + k * c->I,
                       c->K * c->I, 1, dx + p.x, c->I);
    }
}
/* NOLINTEND(readability-non-const-parameter) */
