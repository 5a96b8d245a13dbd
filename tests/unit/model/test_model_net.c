/* SPDX-License-Identifier: MIT */
/* Every model: gradients by finite differences, prediction step by step against the batch, what
 * a prefix's parent means, shapes as text. */
#include "base/alloc.h"
#include "math/half.h"
#include "model/net.h"
#include "nets.h"
#include "nn/attention.h"
#include "nn/rnn.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct kp_net *make(const struct kp_net_ops *ops, struct kp_net_shape shape)
{
    struct kp_net *net;
    kopt_error err = {0};
    assert_int_equal(kp_net_new(ops, &shape, 7, &net, &err), KOPT_OK);
    return net;
}

static double loss_of(const struct kp_net *net, const struct kp_batch *b, uint64_t key,
                      float *grad)
{
    float *work = kp_slab_new(net->ops->work(net, b->B, true));
    struct kp_net_score score = {0};
    assert_non_null(work);
    net->ops->run(net, b, 0.1F, key, grad, work, &score);
    assert_int_equal(score.n_target, b->B * NET_P);
    kp_slab_free(work);
    return score.loss;
}

/* The difference quotient of the loss at parameter *x. */
/* NOLINTNEXTLINE(readability-function-size): what a loss depends on, and a step */
static double slope(const struct kp_net *net, const struct kp_batch *b, uint64_t key, float *x,
                    double h, float *grad)
{
    float was = *x;
    double width = (double)(was + (float)h) - (double)(was - (float)h);
    memset(grad, 0, net->params.n_floats * sizeof(float));
    *x = was + (float)h;
    double up = loss_of(net, b, key, grad);
    *x = was - (float)h;
    double down = loss_of(net, b, key, grad);
    *x = was;
    return (up - down) / width;
}

/* The loss is a sum of some 24 terms near 1, kept in float until each term: about 1e-6 of
 * noise. With steps of 4e-3 that is 2.5e-4 in a difference quotient; the third derivative's
 * share, h^2/6 times it, stays below that for networks of this size. */
static void gradients(const struct kp_net_ops *ops, const struct kp_net_shape *shape,
                      uint64_t key)
{
    const double h = 4e-3;
    struct kp_net *net = make(ops, *shape);
    struct small_batch s;
    small_batch_fill(&s, 3);
    float *grad = kp_slab_new(net->params.n_floats);
    float *again = kp_slab_new(net->params.n_floats);
    (void)loss_of(net, &s.b, key, grad);
    for (size_t k = 0; k < net->params.n_tensors; k++) {
        const struct kp_tensor *t = &net->params.tensors[k];
        size_t n = t->rows * t->cols;
        double largest = 0;
        for (size_t i = 0; i < n; i += 1 + n / 40) {
            float *x = &net->values[t->offset + i];
            double got = (double)grad[t->offset + i];
            double want = slope(net, &s.b, key, x, h, again);
            /* A relu's kink may lie between the two points; a shorter step, which has more
             * noise, then has it outside. */
            if (fabs(got - want) > 1e-3 + 0.01 * fabs(want))
                want = slope(net, &s.b, key, x, h / 16, again);
            if (fabs(got - want) > 1e-2 + 0.01 * fabs(want))
                fail_msg("%s: %s[%zu]: %g, by differences %g", ops->name, t->name, i, got,
                         want);
            largest = fmax(largest, fabs(got));
        }
        if (largest == 0)
            fail_msg("%s: %s has no gradient at all", ops->name, t->name);
    }
    kp_slab_free(grad);
    kp_slab_free(again);
    kp_net_free(net);
}

static void test_gradients(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net_shape s = small_shape();
        gradients(ops, &s, 0);
    }
}

/* The same mask in every call: dropout depends on the key alone. */
static void test_gradients_with_dropout(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net_shape s = small_shape();
        s.dropout = 0.25F;
        gradients(ops, &s, 99);
    }
}

static void test_gradients_of_other_cells(void **state)
{
    (void)state;
    struct kp_net_shape s = small_shape();
    s.cell = KP_CELL_GRU;
    gradients(kp_net_find("seq2seq"), &s, 0);
    s.score = KP_SCORE_ADDITIVE;
    gradients(kp_net_find("hybrid2"), &s, 0);
    s.cell = KP_CELL_LSTM;
    gradients(kp_net_find("attention"), &s, 0);
    gradients(kp_net_find("hybrid1"), &s, 0);
}

/* Two prefixes are grown side by side and change places: row 0 of each call is what the batch's
 * row says, row 1 another configuration. */
static double by_steps(const struct kp_net *net, const struct small_batch *s, size_t row)
{
    enum { WIDTH = 5 };
    float *memory = kp_slab_new(net->ops->state(net, WIDTH));
    float *scratch = kp_slab_new(net->ops->scratch(net, WIDTH));
    int32_t tokens[NET_T];
    float logp[WIDTH * 4];
    double sum = 0;
    for (size_t t = 0; t < NET_T; t++)
        tokens[t] = s->tokens[t * NET_B + row];
    net->ops->begin(net, tokens, s->features + row * NET_F, WIDTH, memory, scratch);
    for (size_t p = 0; p < NET_P; p++) {
        uint32_t true_value = p ? (uint32_t)s->targets[(p - 1) * NET_B + row] : 0;
        /* After the first target both come from its one prefix, then each from its own. */
        size_t at = p % 2; /* where the row's prefix stands in this call */
        uint32_t parent[2] = {0};
        uint32_t values[2] = {0};
        parent[at] = p > 1 ? (uint32_t)((p - 1) % 2) : 0;
        parent[1 - at] = p > 1 ? (uint32_t)(1 - (p - 1) % 2) : 0;
        values[at] = true_value;
        values[1 - at] = p ? net_values[p - 1] - 1 - true_value : 0;
        const struct kp_net_step step = {.p = p,
                                         .n = p ? 2 : 1,
                                         .width = WIDTH,
                                         .parent = p ? parent : NULL,
                                         .values = p ? values : NULL};
        net->ops->step(net, &step, memory, scratch, logp);
        sum += (double)logp[at * net_values[p] + (size_t)s->targets[p * NET_B + row]];
        double whole = 0;
        for (size_t v = 0; v < net_values[p]; v++)
            whole += exp((double)logp[at * net_values[p] + v]);
        assert_true(fabs(whole - 1) < 1e-5);
    }
    kp_slab_free(memory);
    kp_slab_free(scratch);
    return sum;
}

/* Parameters that are halves, so that preparing rounds nothing; or `rounded`. */
static void steps_agree(const struct kp_net_ops *ops, struct kp_net_shape shape, bool rounded)
{
    struct kp_net *net = make(ops, shape);
    struct small_batch s;
    /* Sums of four float terms near 1, made in another order; of rounded ones each differs by
     * some 2^-11 of its parts. */
    double most = rounded ? 1e-2 : 1e-5;
    small_batch_fill(&s, 11);
    for (size_t i = 0; i < net->params.n_floats && !rounded; i++)
        net->values[i] = kp_half_value(kp_half_of(net->values[i]));
    float *work = kp_slab_new(net->ops->work(net, NET_B, false));
    for (size_t row = 0; row < NET_B; row++) {
        struct kp_net_score score = {0};
        for (size_t i = 0; i < NET_B; i++)
            s.weights[i] = i == row ? 1 : 0;
        net->ops->run(net, &s.b, 0, 0, NULL, work, &score);
        for (int prepared = 0; prepared < 2; prepared++) {
            if (prepared)
                assert_int_equal(kp_net_prepare(net, NULL), KOPT_OK);
            double got = by_steps(net, &s, row);
            if (fabs(got + score.loss) > (prepared ? most : 1e-5))
                fail_msg("%s: row %zu: %.9g by steps%s, %.9g in a batch", ops->name, row, got,
                         prepared ? " (prepared)" : "", -score.loss);
            kp_net_unprepare(net);
        }
    }
    kp_slab_free(work);
    kp_net_free(net);
}

static void test_steps(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net_shape s = small_shape();
        steps_agree(ops, s, false);
        steps_agree(ops, s, true);
        s.cell = KP_CELL_GRU;
        s.score = KP_SCORE_ADDITIVE;
        steps_agree(ops, s, false);
    }
}

/* The likelihoods of a prefix are the same bits whatever prefixes stand beside it. */
static void alone_and_beside(const struct kp_net *net)
{
    enum { WIDTH = 5 };
    struct small_batch s;
    float logp[WIDTH * 4];
    float one[4];
    float *memory = kp_slab_new(net->ops->state(net, WIDTH));
    float *scratch = kp_slab_new(net->ops->scratch(net, WIDTH));
    small_batch_fill(&s, 21);
    for (uint32_t at = 0; at < WIDTH; at++) {
        for (int beside = 0; beside < 2; beside++) {
            const uint32_t first[] = {0, 0, 0, 0, 0};
            const uint32_t first_values[] = {0, 1, 2};
            const uint32_t parent[] = {2, 0, 2, 1, 0};
            const uint32_t values[] = {1, 0, 0, 1, 1};
            struct kp_net_step step = {.p = 0, .n = 1, .width = WIDTH};
            net->ops->begin(net, s.tokens, s.features, WIDTH, memory, scratch);
            net->ops->step(net, &step, memory, scratch, logp);
            step = (struct kp_net_step){1, 3, WIDTH, first, first_values};
            net->ops->step(net, &step, memory, scratch, logp);
            step = beside ? (struct kp_net_step){2, WIDTH, WIDTH, parent, values}
                          : (struct kp_net_step){2, 1, WIDTH, parent + at, values + at};
            net->ops->step(net, &step, memory, scratch, logp);
            if (!beside)
                memcpy(one, logp, sizeof(one));
            else if (memcmp(one, logp + at * (size_t)4, sizeof(one)) != 0)
                fail_msg("%s: prefix %u differs", net->ops->name, at);
        }
    }
    kp_slab_free(memory);
    kp_slab_free(scratch);
}

static void test_prefixes_alone(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net *net = make(ops, small_shape());
        if (kp_blas_fast() != kp_blas_reference())
            alone_and_beside(net);
        assert_int_equal(kp_net_prepare(net, NULL), KOPT_OK);
        alone_and_beside(net);
        kp_net_free(net);
    }
}

/* Words beyond those whose products are kept, and networks that train on after they were
 * prepared. */
static void test_prepared(void **state)
{
    (void)state;
    kopt_error err = {0};
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net_shape s = small_shape();
        s.n_vocab = 5000;
        steps_agree(ops, s, false);
        struct kp_net *net = make(ops, small_shape());
        kp_alloc_fail_at(1);
        kopt_status st = kp_net_prepare(net, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(st, KOPT_ENOMEM);
        assert_null(net->prepared);
        assert_int_equal(kp_net_prepare(net, &err), KOPT_OK);
        assert_non_null(net->prepared);
        const float *was = net->prepared;
        assert_int_equal(kp_net_prepare(net, &err), KOPT_OK);
        assert_ptr_equal(net->prepared, was);
        kp_net_unprepare(net);
        assert_null(net->prepared);
        /* What no half can be stays a float. */
        net->values[net->offset[1]] = KP_HALF_MAX * 1.01F;
        assert_int_equal(kp_net_prepare(net, &err), KOPT_OK);
        assert_null(net->prepared);
        kp_net_free(net);
    }
}

/* A target that is not known adds nothing, and what follows does not see it. */
static void test_unknown_targets(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net *net = make(ops, small_shape());
        struct small_batch s;
        struct kp_net_score score = {0};
        small_batch_fill(&s, 5);
        float *work = kp_slab_new(net->ops->work(net, NET_B, true));
        float *grad = kp_slab_new(net->params.n_floats);
        for (size_t r = 0; r < NET_B; r++)
            s.targets[1 * NET_B + r] = -1;
        net->ops->run(net, &s.b, 0, 0, grad, work, &score);
        assert_int_equal(score.n_target, (NET_P - 1) * NET_B);
        assert_true(isfinite(score.loss));
        kp_slab_free(work);
        kp_slab_free(grad);
        kp_net_free(net);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net *a = make(ops, small_shape());
        struct kp_net *b = make(ops, small_shape());
        struct small_batch s;
        small_batch_fill(&s, 2);
        float *x = kp_slab_new(a->params.n_floats);
        float *y = kp_slab_new(a->params.n_floats);
        assert_memory_equal(a->values, b->values, a->params.n_floats * sizeof(float));
        assert_true(loss_of(a, &s.b, 5, x) == loss_of(b, &s.b, 5, y));
        assert_memory_equal(x, y, a->params.n_floats * sizeof(float));
        kp_slab_free(x);
        kp_slab_free(y);
        kp_net_free(a);
        kp_net_free(b);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_non_null(kp_net_find("hybrid2"));
    assert_null(kp_net_find("hybrid3"));
    assert_string_equal(kp_net_at(0)->name, "factored");
}

static void test_shape_text(void **state)
{
    (void)state;
    struct kp_net_shape s = small_shape();
    struct kp_net_shape back;
    kopt_error err = {0};
    s.dropout = 0.25F;
    struct kp_json *j = kp_net_shape_to_json(&s);
    assert_non_null(j);
    assert_int_equal(kp_net_shape_from_json(j, &back, &err), KOPT_OK);
    assert_memory_equal(&s, &back, sizeof(s));
    static const struct {
        const char *key;
        int64_t value;
    } bad[] = {{"targets", 5},    {"targets", 1000000}, {"targets", -1}, {"hidden", 7},
               {"hidden", 99999}, {"kernel", 4},        {"tokens", 0},   {"vocabulary", 0},
               {"cell", 2},       {"layers", 99}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct kp_json *k = kp_json_dup(j);
        assert_true(kp_json_set_i64(k, bad[i].key, bad[i].value));
        assert_int_equal(kp_net_shape_from_json(k, &back, &err), KOPT_EINPUT);
        kp_json_free(k);
    }
    kp_json_free(j);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct kp_net_shape s = small_shape();
    struct kp_net *net;
    kopt_error err;
    kopt_status st = KOPT_ENOMEM;
    for (long n = 1; st == KOPT_ENOMEM && n < 200; n++) {
        kp_alloc_fail_at(n);
        st = kp_net_new(kp_net_find("hybrid2"), &s, 1, &net, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
    }
    assert_int_equal(st, KOPT_OK);
    kp_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_gradients_with_dropout),
                                       cmocka_unit_test(test_gradients_of_other_cells),
                                       cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_prefixes_alone),
                                       cmocka_unit_test(test_prepared),
                                       cmocka_unit_test(test_unknown_targets),
                                       cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_shape_text),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
