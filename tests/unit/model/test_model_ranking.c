/* SPDX-License-Identifier: MIT */
/* In which order a model that ranks answers: networks and trees say what the test wants, and
 * the order is found once more by trying all. */
#include "base/rng.h"
#include "forests.h"
#include "model/ranking.h"
#include "small_model.h"
#include "support/test.h"

#include <math.h>

enum { CONFIGS_MAX = 64, NETS_MAX = 4, TREES_MAX = 8 };

/* What network `shape.embed` says of a configuration. */
static float said[NETS_MAX][CONFIGS_MAX];

static void say(const struct kp_net *net, size_t n, const int32_t *numbers, const float *x,
                float *work, float *scores)
{
    (void)x;
    (void)work;
    for (size_t i = 0; i < n; i++)
        scores[i] = said[net->shape.embed][numbers[i]];
}

static struct kp_model *make(size_t n_nets)
{
    static struct kp_net_ops ops;
    const struct small_plan plan = {.net = "ranker", .n_nets = n_nets, .seed = 5};
    struct kp_model *m = small_model(&plan);
    ops = *m->nets[0]->ops;
    ops.rank = say;
    for (size_t k = 0; k < n_nets; k++) {
        m->nets[k]->ops = &ops;
        m->nets[k]->shape.embed = k;
    }
    m->ranking->n_sites = 0;
    assert_true(n_nets <= NETS_MAX && m->ranking->n_configs <= CONFIGS_MAX);
    return m;
}

/* Numbers of the configurations in the order of the answer; all of them. */
static void ask(const struct kp_model *m, size_t order[CONFIGS_MAX])
{
    const struct kp_ranking *r = m->ranking;
    struct kp_prediction p = {0};
    kopt_error err;
    assert_int_equal(small_ask(m, r->n_configs, true, &p, &err), KOPT_OK);
    assert_int_equal(p.n, r->n_configs);
    for (size_t i = 0; i < p.n; i++) {
        size_t c = 0;
        while (c < r->n_configs &&
               memcmp(r->configs + c * r->n_targets, p.configs + i * r->n_targets,
                      r->n_targets * sizeof(*r->configs)) != 0)
            c++;
        assert_true(c < r->n_configs);
        order[i] = c;
    }
    kp_prediction_deinit(&p);
}

static void test_members_that_differ(void **state)
{
    static const float views[4][3] = {
        {0.5F, 0.5F, 0.5F},  /* all agree: the fastest in the mean, 0.5 */
        {0.6F, 0.6F, 0.6F},  /* 0.6, but nobody thinks it faster than that */
        {0.0F, 1.1F, 1.1F},  /* 0.73: one does, by 0.5 */
        {1.5F, 1.5F, 0.2F}}; /* 1.07: another, by 0.3 */
    static const size_t wanted[] = {0, 2, 3, 1};
    size_t order[CONFIGS_MAX];
    (void)state;
    struct kp_model *m = make(3);
    for (size_t k = 0; k < 3; k++)
        for (size_t c = 0; c < CONFIGS_MAX; c++)
            said[k][c] = c < 4 ? views[c][k] : 2 + (float)c;
    ask(m, order);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(order[i], wanted[i]);
    for (size_t i = 4; i < m->ranking->n_configs; i++)
        assert_int_equal(order[i], i);
    kp_model_free(m);
}

/* --- against all ----------------------------------------------------------------------------
 */

/* A tree with one split, at a parameter's feature log2(1 + v). */
struct stump {
    float at, low, high;
};

/* The input that is the feature of target `t`, and what it is of a configuration. */
static size_t input_of(const struct kp_model *m, size_t t)
{
    size_t i = 0;
    while (m->ranking->pairs[i].kind != KP_PAIR_PARAM || m->ranking->pairs[i].a != t)
        i++;
    return m->ranking->n_coordinates + i;
}

static double feature_of(const struct kp_model *m, size_t t, size_t c)
{
    const struct kp_value v =
        m->targets[t].values[m->ranking->configs[c * m->ranking->n_targets + t]];
    return fmin(log2(1 + (double)v.as.i), KP_PAIR_CLIP);
}

static void plant(struct kp_model *m, size_t input, const struct stump *s, size_t n,
                  double weight)
{
    float nodes[TREES_MAX * 3][3];
    float roots[TREES_MAX];
    for (size_t i = 0; i < n; i++) {
        const float tree[3][3] = {
            {(float)input, s[i].at, (float)(3 * i + 2)}, {-1, s[i].low, 0}, {-1, s[i].high, 0}};
        roots[i] = (float)(3 * i);
        memcpy(nodes[3 * i], tree, sizeof(tree));
    }
    const struct kp_grove g = {.n_inputs = m->nets[0]->shape.n_features,
                               .n_outputs = 1,
                               .n_trees = n,
                               .n_nodes = 3 * n,
                               .roots = roots,
                               .nodes = nodes[0]};
    m->forest = forest_of(&g, 1, weight);
}

/* What member k says of configuration c, and all together. */
struct views {
    double member[NETS_MAX][CONFIGS_MAX];
    double all[CONFIGS_MAX];
};

static void look(const struct kp_model *m, size_t target, const struct stump *s, size_t n,
                 struct views *v)
{
    double w = n ? m->forest->weight : 0;
    for (size_t c = 0; c < m->ranking->n_configs; c++) {
        double trees[TREES_MAX];
        double mean = 0;
        v->all[c] = 0;
        for (size_t i = 0; i < n; i++) {
            trees[i] =
                (double)(feature_of(m, target, c) <= (double)s[i].at ? s[i].low : s[i].high);
            mean += trees[i] / (double)n;
        }
        for (size_t k = 0; k < m->n_nets; k++) {
            size_t from = k * n / m->n_nets;
            size_t end = (k + 1) * n / m->n_nets;
            double own = from < end ? 0 : mean;
            for (size_t i = from; i < end; i++)
                own += trees[i] / (double)(end - from);
            v->member[k][c] = (1 - w) * (double)said[k][c] + w * own;
            v->all[c] += (1 - w) * (double)said[k][c] / (double)m->n_nets;
        }
        v->all[c] += w * mean;
    }
}

/* The next: what makes the least of each member's best, added up, the smallest; the first, and
 * where nothing does, the fastest in the mean. */
static size_t next_of(const struct kp_model *m, const struct views *v, const bool *taken,
                      const double *best)
{
    size_t n = m->ranking->n_configs;
    size_t at = n;
    double most = 0;
    for (size_t c = 0; c < n; c++) {
        double gain = 0;
        for (size_t k = 0; k < m->n_nets; k++)
            if (best[k] < (double)INFINITY && v->member[k][c] < best[k])
                gain += best[k] - v->member[k][c];
        if (taken[c])
            continue;
        if (at == n || gain > most || (gain == most && v->all[c] < v->all[at])) {
            at = c;
            most = gain;
        }
    }
    return at;
}

static void compare(size_t n_nets, size_t n_trees, uint64_t seed)
{
    struct kp_model *m = make(n_nets);
    struct kp_rng rng;
    struct stump s[TREES_MAX];
    static struct views v;
    bool taken[CONFIGS_MAX] = {false};
    double best[NETS_MAX];
    size_t order[CONFIGS_MAX];
    size_t target = 1; /* BM */
    assert_string_equal(m->targets[target].name, "BM");
    kp_rng_init(&rng, seed);
    for (size_t k = 0; k < n_nets; k++) {
        best[k] = (double)INFINITY;
        for (size_t c = 0; c < CONFIGS_MAX; c++)
            said[k][c] = (float)kp_rng_normal(&rng);
    }
    for (size_t i = 0; i < n_trees; i++)
        s[i] = (struct stump){3.2F + (float)(i % 4), (float)kp_rng_normal(&rng),
                              (float)kp_rng_normal(&rng)};
    if (n_trees)
        plant(m, input_of(m, target), s, n_trees, 0.6);
    look(m, target, s, n_trees, &v);
    ask(m, order);
    for (size_t i = 0; i < m->ranking->n_configs; i++) {
        size_t c = next_of(m, &v, taken, best);
        if (order[i] != c)
            fail_msg("%zu networks, %zu trees: %zu is configuration %zu, not %zu", n_nets,
                     n_trees, i, order[i], c);
        taken[c] = true;
        for (size_t k = 0; k < n_nets; k++)
            best[k] = fmin(best[k], v.member[k][c]);
    }
    kp_model_free(m);
}

static void test_orders(void **state)
{
    (void)state;
    for (size_t nets = 1; nets <= NETS_MAX; nets++)
        for (size_t trees = 0; trees <= TREES_MAX; trees++)
            compare(nets, trees, 10 * nets + trees);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_that_differ),
        cmocka_unit_test(test_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
