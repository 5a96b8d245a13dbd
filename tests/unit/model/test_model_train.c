/* SPDX-License-Identifier: MIT */
/* Training: it learns, gives the same bits at any number of threads and in two goes, stops
 * early, and keeps the last good values when the loss breaks. */
#include "model/crew.h"
#include "model/train.h"
#include "nets.h"
#include "support/test.h"

#include "base/alloc.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { N = 200 };

/* Values that follow from the features by thresholds, later ones from earlier ones, too. */
struct world {
    int32_t tokens[N * NET_T];
    float features[N * NET_F];
    uint32_t first[N + 1];
    uint32_t configs[N * NET_P];
    float shares[N];
    int32_t unknown[NET_T];
    struct kp_examples e;
};

static void make_world(struct world *w, uint64_t seed)
{
    struct kp_rng rng;
    kp_rng_init(&rng, seed);
    memset(w, 0, sizeof(*w));
    for (size_t i = 0; i < N; i++) {
        float *x = w->features + i * NET_F;
        uint32_t *c = w->configs + i * NET_P;
        for (size_t k = 0; k < NET_F; k++)
            x[k] = (float)kp_rng_normal(&rng);
        for (size_t k = 0; k < NET_T; k++)
            w->tokens[i * NET_T + k] = 1 + (x[k] > 0) + 3 * (int32_t)k;
        c[0] = x[0] > 0 ? 2 : 0;
        c[1] = x[1] > 0;
        c[2] = c[0] + c[1];
        c[3] = x[2] > 0 ? 1 : 2;
        w->first[i] = (uint32_t)i;
        w->shares[i] = 1;
    }
    w->first[N] = N;
    w->e = (struct kp_examples){.n = N,
                                .tokens = w->tokens,
                                .features = w->features,
                                .first = w->first,
                                .configs = w->configs,
                                .shares = w->shares,
                                .unknown = w->unknown};
}

static struct kp_train_plan plan_of(unsigned epochs)
{
    struct kp_train_plan p = {.seed = 5,
                              .threads = 1,
                              .shards = 4,
                              .batch = 32,
                              .epochs = epochs,
                              .patience = 100,
                              .smoothing = 0,
                              .unknown = 0.02F,
                              .adam = kp_adam_default()};
    p.adam.rate = 1e-2F;
    p.adam.total = 1000;
    return p;
}

static struct kp_net *new_net(const char *name)
{
    struct kp_net_shape s = small_shape();
    struct kp_net *net;
    kopt_error err;
    s.hidden = 32;
    s.dropout = 0.1F;
    assert_int_equal(kp_net_new(kp_net_find(name), &s, 3, &net, &err), KOPT_OK);
    return net;
}

static void test_learns(void **state)
{
    (void)state;
    const struct kp_net_ops *ops;
    struct world a;
    struct world b;
    make_world(&a, 1);
    make_world(&b, 2);
    for (size_t i = 0; (ops = translator_at(i)) != NULL; i++) {
        struct kp_net *net = new_net(ops->name);
        struct kp_epoch best;
        kopt_error err;
        const struct kp_train_plan p = plan_of(40);
        assert_int_equal(kp_train(net, &a.e, &b.e, &p, NULL, NULL, &best, &err), KOPT_OK);
        /* The tokens or features decide everything but near the thresholds. */
        if (best.valid_right < 0.95)
            fail_msg("%s: %.3f right, loss %.3f", ops->name, best.valid_right, best.valid_loss);
        kp_net_free(net);
    }
}

static void test_threads(void **state)
{
    (void)state;
    struct world a;
    struct world b;
    make_world(&a, 1);
    make_world(&b, 2);
    struct kp_net *one = new_net("hybrid2");
    struct kp_net *three = new_net("hybrid2");
    struct kp_epoch best[2];
    kopt_error err;
    struct kp_train_plan p = plan_of(3);
    assert_int_equal(kp_train(one, &a.e, &b.e, &p, NULL, NULL, &best[0], &err), KOPT_OK);
    p.threads = 3;
    assert_int_equal(kp_train(three, &a.e, &b.e, &p, NULL, NULL, &best[1], &err), KOPT_OK);
    assert_memory_equal(one->values, three->values, one->params.n_floats * sizeof(float));
    assert_true(best[0].valid_loss == best[1].valid_loss);
    kp_net_free(one);
    kp_net_free(three);
}

struct saved {
    size_t n;
    struct kp_train_state s;
    float *slab; /* values, m, v, and the best values */
    const struct kp_net *net;
};

static bool save(void *user, const struct kp_train_state *s)
{
    struct saved *to = user;
    to->s = *s;
    memcpy(to->slab, s->values, to->n * sizeof(float));
    memcpy(to->slab + to->n, s->m, to->n * sizeof(float));
    memcpy(to->slab + 2 * to->n, s->v, to->n * sizeof(float));
    memcpy(to->slab + 3 * to->n, to->net->values, to->n * sizeof(float));
    return true;
}

static void test_resume(void **state)
{
    (void)state;
    struct world a;
    struct world b;
    make_world(&a, 1);
    make_world(&b, 2);
    struct kp_net *whole = new_net("factored");
    struct kp_net *parts = new_net("factored");
    struct kp_epoch best[2];
    kopt_error err;
    struct kp_train_plan p = plan_of(6);
    struct saved s = {.n = parts->params.n_floats, .net = parts};
    s.slab = kp_slab_new(4 * s.n);
    const struct kp_train_hooks hooks = {.user = &s, .save = save};
    assert_int_equal(kp_train(whole, &a.e, &b.e, &p, NULL, NULL, &best[0], &err), KOPT_OK);
    p.epochs = 2;
    assert_int_equal(kp_train(parts, &a.e, &b.e, &p, &hooks, NULL, &best[1], &err), KOPT_OK);
    assert_int_equal(s.s.epoch, 2);
    struct kp_train_state from = s.s;
    float *copy = kp_slab_new(4 * s.n);
    memcpy(copy, s.slab, 4 * s.n * sizeof(float));
    from.values = copy;
    from.m = copy + s.n;
    from.v = copy + 2 * s.n;
    kp_net_free(parts);
    parts = new_net("factored");
    memcpy(parts->values, copy + 3 * s.n, s.n * sizeof(float));
    p.epochs = 6;
    assert_int_equal(kp_train(parts, &a.e, &b.e, &p, NULL, &from, &best[1], &err), KOPT_OK);
    assert_memory_equal(whole->values, parts->values, s.n * sizeof(float));
    kp_slab_free(copy);
    kp_slab_free(s.slab);
    kp_net_free(whole);
    kp_net_free(parts);
}

static bool count(void *user, const struct kp_epoch *e)
{
    *(unsigned *)user = e->number;
    return true;
}

static void test_patience(void **state)
{
    (void)state;
    struct world a;
    struct world b;
    unsigned last = 0;
    make_world(&a, 1);
    make_world(&b, 2);
    struct kp_rng rng;
    kp_rng_init(&rng, 9);
    for (size_t i = 0; i < N * NET_P; i++) /* nothing to learn that would hold elsewhere */
        a.configs[i] = (uint32_t)kp_rng_below(&rng, net_values[i % NET_P]);
    struct kp_net *net = new_net("factored");
    struct kp_epoch best;
    kopt_error err;
    struct kp_train_plan p = plan_of(200);
    const struct kp_train_hooks hooks = {.user = &last, .epoch = count};
    p.patience = 4;
    assert_int_equal(kp_train(net, &a.e, &b.e, &p, &hooks, NULL, &best, &err), KOPT_OK);
    assert_int_equal(last, best.number + 4);
    assert_true(last < 200);
    kp_net_free(net);
}

static void test_breaks(void **state)
{
    (void)state;
    struct world a;
    struct world b;
    make_world(&a, 1);
    make_world(&b, 2);
    struct kp_net *net = new_net("attention");
    struct kp_epoch best;
    kopt_error err = {0};
    struct kp_train_plan p = plan_of(3);
    float *before = kp_slab_new(net->params.n_floats);
    memcpy(before, net->values, net->params.n_floats * sizeof(float));
    a.features[0] = NAN; /* `attention` reads tokens only */
    assert_int_equal(kp_train(net, &a.e, &b.e, &p, NULL, NULL, &best, &err), KOPT_OK);
    kp_net_free(net);
    net = new_net("factored");
    memcpy(before, net->values, net->params.n_floats * sizeof(float));
    assert_int_equal(kp_train(net, &a.e, &b.e, &p, NULL, NULL, &best, &err), KOPT_EFAILED);
    assert_non_null(strstr(err.message, "not a number"));
    assert_memory_equal(before, net->values, net->params.n_floats * sizeof(float));
    kp_slab_free(before);
    kp_net_free(net);
}

static void test_nothing_to_learn_from(void **state)
{
    (void)state;
    struct world a;
    struct kp_epoch best;
    kopt_error err = {0};
    make_world(&a, 1);
    struct kp_net *net = new_net("factored");
    struct kp_examples none = a.e;
    const struct kp_train_plan p = plan_of(1);
    none.n = 0;
    assert_int_equal(kp_train(net, &none, &a.e, &p, NULL, NULL, &best, &err), KOPT_EINPUT);
    assert_int_equal(kp_train(net, &a.e, &none, &p, NULL, NULL, &best, &err), KOPT_EINPUT);
    kp_net_free(net);
}

static void mark(void *user, size_t i)
{
    atomic_fetch_add((atomic_int *)user + i, 1);
}

static void test_crew(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads < 5; threads++) {
        struct kp_crew *c;
        atomic_int done[100] = {0};
        assert_int_equal(kp_crew_new(threads, &c, NULL), KOPT_OK);
        assert_int_equal(kp_crew_threads(c), threads);
        for (int round = 0; round < 50; round++)
            kp_crew_run(c, mark, done, (size_t)round + 1);
        kp_crew_run(c, mark, done, 0);
        for (int i = 0; i < 50; i++)
            assert_int_equal(done[i], 50 - i);
        assert_int_equal(done[50], 0);
        kp_crew_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_resume), cmocka_unit_test(test_patience),
        cmocka_unit_test(test_breaks), cmocka_unit_test(test_nothing_to_learn_from),
        cmocka_unit_test(test_crew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
