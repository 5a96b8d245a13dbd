/* SPDX-License-Identifier: MIT */
/* The network that ranks: gradients by finite differences, what its loss wants, and that
 * ranking is what was learned. */
#include "base/alloc.h"
#include "math/half.h"
#include "model/net.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

enum { F = 5, ROWS = 7, CONFIGS = 4, GROUPS = 2 };

struct rows {
    int32_t numbers[ROWS];
    float x[ROWS * F];
    float wanted[ROWS];
    float weights[GROUPS];
    uint32_t group[GROUPS + 1];
    struct kp_batch b;
};

static void fill(struct rows *r)
{
    struct kp_rng rng;
    kp_rng_init(&rng, 5);
    *r = (struct rows){.weights = {0.5F, 1.5F}, .group = {0, 4, ROWS}};
    for (size_t i = 0; i < ROWS; i++) {
        r->numbers[i] = (int32_t)kp_rng_below(&rng, CONFIGS);
        r->wanted[i] = (float)(0.4 * kp_rng_f64(&rng));
        for (size_t k = 0; k < F; k++)
            r->x[i * F + k] = (float)kp_rng_normal(&rng);
    }
    r->b = (struct kp_batch){.B = ROWS,
                             .tokens = r->numbers,
                             .features = r->x,
                             .weights = r->weights,
                             .wanted = r->wanted,
                             .group = r->group,
                             .n_groups = GROUPS};
}

static struct kp_net *make(float dropout)
{
    const struct kp_net_shape s = {.n_tokens = 1,
                                   .n_vocab = CONFIGS,
                                   .n_features = F,
                                   .n_targets = 1,
                                   .n_values = {3},
                                   .hidden = 8,
                                   .layers = 2,
                                   .dropout = dropout};
    struct kp_net *net;
    kopt_error err;
    assert_int_equal(kp_net_new(kp_net_find("ranker"), &s, 3, &net, &err), KOPT_OK);
    /* What is 0 or 1 at first would leave something out. */
    struct kp_rng rng;
    kp_rng_init(&rng, 8);
    for (size_t t = 0; t < net->params.n_tensors; t++) {
        const struct kp_tensor *p = &net->params.tensors[t];
        for (size_t i = 0; i < p->rows * p->cols; i++)
            net->values[p->offset + i] =
                (strcmp(p->name, "out.w") == 0 ? 0.2F : 1) * net->values[p->offset + i] +
                (float)(0.05 * kp_rng_normal(&rng));
    }
    return net;
}

static double loss_of(const struct kp_net *net, const struct kp_batch *b, uint64_t key,
                      float *grad)
{
    float *work = kp_slab_new(net->ops->work(net, b->B, true));
    struct kp_net_score score = {0};
    assert_non_null(work);
    net->ops->run(net, b, 0, key, grad, work, &score);
    assert_int_equal(score.n_target, b->n_groups);
    kp_slab_free(work);
    return score.loss;
}

static double quotient(const struct kp_net *net, const struct kp_batch *b, uint64_t key,
                       float *x, double h)
{
    float *grad = kp_slab_new(net->params.n_floats);
    float was = *x;
    assert_non_null(grad);
    *x = was + (float)h;
    double up = loss_of(net, b, key, grad);
    double width = (double)*x;
    *x = was - (float)h;
    double down = loss_of(net, b, key, grad);
    width -= (double)*x;
    *x = was;
    kp_slab_free(grad);
    return (up - down) / width;
}

/* Temperatures of 0.1 make the loss curved: the quotients of two steps are extrapolated, which
 * leaves h^4 times the fifth derivative. Scores are floats near 0.3 whose rounding of 3e-8 the
 * loss takes some 30 times: 1e-6, or 1e-3 in a quotient over 4e-3, and as much again from the
 * extrapolation. */
static void gradients(float dropout, uint64_t key)
{
    const double h = 2e-3;
    struct kp_net *net = make(dropout);
    struct rows r;
    fill(&r);
    float *grad = kp_slab_new(net->params.n_floats);
    assert_non_null(grad);
    (void)loss_of(net, &r.b, key, grad);
    for (size_t t = 0; t < net->params.n_tensors; t++) {
        const struct kp_tensor *p = &net->params.tensors[t];
        for (size_t i = 0; i < p->rows * p->cols; i++) {
            float *x = net->values + p->offset + i;
            double slope =
                (4 * quotient(net, &r.b, key, x, h) - quotient(net, &r.b, key, x, 2 * h)) / 3;
            double g = (double)grad[p->offset + i];
            if (fabs(slope - g) > 3e-3 * (1 + fabs(g)))
                fail_msg("%s[%zu]: %g by differences, %g by hand", p->name, i, slope, g);
        }
    }
    kp_slab_free(grad);
    kp_net_free(net);
}

static void test_gradients(void **state)
{
    (void)state;
    gradients(0, 0);
}

static void test_gradients_under_dropout(void **state)
{
    (void)state;
    gradients(0.25F, 77);
}

/* What the network says is what rank() gives. */
static void test_loss_is_of_what_is_ranked(void **state)
{
    (void)state;
    struct kp_net *net = make(0);
    struct rows r;
    float scores[ROWS];
    fill(&r);
    float *work = kp_slab_new(net->ops->work(net, ROWS, false));
    net->ops->rank(net, ROWS, r.numbers, r.x, work, scores);
    kp_slab_free(work);
    /* Times that are what it says, but for a number of each problem, cost nothing. */
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = r.group[g]; i < r.group[g + 1]; i++)
            r.wanted[i] = scores[i] + (g ? 0.7F : -0.2F);
    float *grad = kp_slab_new(net->params.n_floats);
    assert_true(fabs(loss_of(net, &r.b, 0, grad)) < 1e-9); /* squares of rounding */
    /* Others cost, and the more where a configuration is near the best. */
    size_t best = 0;
    size_t worst = 0;
    for (size_t i = 1; i < r.group[1]; i++) {
        best = r.wanted[i] < r.wanted[best] ? i : best;
        worst = r.wanted[i] > r.wanted[worst] ? i : worst;
    }
    r.wanted[worst] += 0.05F;
    double far_loss = loss_of(net, &r.b, 0, grad);
    r.wanted[worst] -= 0.05F;
    r.wanted[best] -= 0.05F;
    double near_loss = loss_of(net, &r.b, 0, grad);
    assert_true(far_loss > 0 && near_loss > far_loss);
    kp_slab_free(grad);
    kp_net_free(net);
}

/* Preparing changes nothing but the roundings of weights to halves. */
static void test_prepared(void **state)
{
    (void)state;
    struct rows r;
    fill(&r);
    for (int halves = 0; halves < 2; halves++) {
        struct kp_net *net = make(0);
        float plain[ROWS];
        float ready[ROWS];
        float *work = kp_slab_new(net->ops->work(net, ROWS, false));
        for (size_t i = 0; halves && i < net->params.n_floats; i++)
            net->values[i] = kp_half_value(kp_half_of(net->values[i]));
        net->ops->rank(net, ROWS, r.numbers, r.x, work, plain);
        assert_int_equal(kp_net_prepare(net, NULL), KOPT_OK);
        assert_non_null(net->prepared);
        net->ops->rank(net, ROWS, r.numbers, r.x, work, ready);
        /* Scores near 0.3 from three layers' sums, in another order; else rounded by some 2^-11
         * of their parts. */
        for (size_t i = 0; i < ROWS; i++)
            assert_true(fabsf(plain[i] - ready[i]) <= (halves ? 2e-6F : 3e-3F));
        assert_true(halves || memcmp(plain, ready, sizeof(plain)) != 0);
        kp_slab_free(work);
        kp_net_free(net);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    struct kp_net_shape s = {
        .n_tokens = 2, .n_vocab = CONFIGS, .n_features = F, .n_targets = 1, .n_values = {3}};
    struct kp_net *net;
    kopt_error err;
    assert_int_equal(kp_net_new(kp_net_find("ranker"), &s, 3, &net, &err), KOPT_EINPUT);
    s.n_tokens = 1;
    s.n_features = 0;
    assert_int_equal(kp_net_new(kp_net_find("ranker"), &s, 3, &net, &err), KOPT_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_gradients_under_dropout),
        cmocka_unit_test(test_loss_is_of_what_is_ranked), cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
