/* SPDX-License-Identifier: MIT */
#include "learn/grow.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "support/test.h"

#include <math.h>

enum { MOST = 600, MOST_INPUTS = 4 };

/* Examples in the making: columns one behind the other. */
struct plot {
    float x[MOST * MOST_INPUTS];
    uint32_t values[MOST];
    float numbers[MOST];
    float weights[MOST];
    struct kp_grow_examples e;
};

/* `n_outputs` 1: numbers. All weigh 1; inputs are drawn from [-1, 1). */
static struct plot *plot_new(size_t n, size_t n_inputs, size_t n_outputs)
{
    struct plot *p = kp_calloc(1, sizeof(*p));
    struct kp_rng rng;
    assert_non_null(p);
    assert_true(n <= MOST && n_inputs <= MOST_INPUTS);
    kp_rng_init(&rng, 11);
    for (size_t i = 0; i < n * n_inputs; i++)
        p->x[i] = (float)(2 * kp_rng_f64(&rng) - 1);
    for (size_t i = 0; i < n; i++)
        p->weights[i] = 1;
    p->e = (struct kp_grow_examples){.n = n,
                                     .n_inputs = n_inputs,
                                     .x = p->x,
                                     .n_outputs = n_outputs,
                                     .values = p->values,
                                     .numbers = p->numbers,
                                     .weights = p->weights};
    return p;
}

static float at(const struct plot *p, size_t example, size_t input)
{
    return p->x[input * p->e.n + example];
}

static const struct kp_grow_plan usual = {.seed = 1, .trees = 30, .leaf = 1, .share = 1};

static struct kp_grown grow(const struct plot *p, const struct kp_grow_plan *plan,
                            unsigned threads)
{
    struct kp_crew *crew;
    struct kp_grown g;
    kopt_error err = {0};
    assert_int_equal(kp_crew_new(threads, &crew, &err), KOPT_OK);
    if (kp_grove_grow(&p->e, plan, crew, &g, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    kp_crew_free(crew);
    assert_int_equal(g.grove.n_inputs, p->e.n_inputs);
    assert_int_equal(g.grove.n_outputs, p->e.n_outputs);
    assert_int_equal(g.grove.n_trees, plan->trees);
    return g;
}

static void ask(const struct kp_grown *g, const struct plot *p, size_t example, float *out)
{
    float x[MOST_INPUTS];
    for (size_t i = 0; i < p->e.n_inputs; i++)
        x[i] = at(p, example, i);
    kp_grove_ask(&g->grove, x, out);
}

/* It stands in a forest, passes its check and answers the same there. */
static void check_planted(const struct kp_grown *g, const struct plot *p)
{
    struct kp_forest *f;
    kopt_error err = {0};
    float a[16];
    float b[16];
    assert_true(g->grove.n_outputs <= 16);
    assert_int_equal(kp_grown_plant(g, 1, 0.25, &f, &err), KOPT_OK);
    if (kp_forest_check(f, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_true(f->weight == 0.25 && f->n_groves == 1 && !f->borrowed);
    assert_ptr_not_equal(f->groves[0].nodes, g->nodes);
    struct kp_grown planted = {.grove = f->groves[0]};
    for (size_t i = 0; i < p->e.n; i++) {
        ask(g, p, i, a);
        ask(&planted, p, i, b);
        assert_memory_equal(a, b, g->grove.n_outputs * sizeof(*a));
    }
    kp_forest_free(f);
}

/* Share of examples whose likeliest value is theirs. */
static double share_right(const struct kp_grown *g, const struct plot *p)
{
    size_t right = 0;
    for (size_t i = 0; i < p->e.n; i++) {
        float out[16];
        size_t best = 0;
        float sum = 0;
        ask(g, p, i, out);
        for (size_t v = 0; v < p->e.n_outputs; v++) {
            assert_true(out[v] >= 0 && out[v] <= 1.00001F);
            best = out[v] > out[best] ? v : best;
            sum += out[v];
        }
        assert_true(fabsf(sum - 1) < 1e-5F); /* 30 trees' shares in floats */
        right += best == p->values[i];
    }
    return (double)right / (double)p->e.n;
}

static double mean_square_error(const struct kp_grown *g, const struct plot *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->e.n; i++) {
        float out;
        ask(g, p, i, &out);
        sum += pow((double)(out - p->numbers[i]), 2);
    }
    return sum / (double)p->e.n;
}

/* --- what is learned ------------------------------------------------------------------------
 */

/* A half of the examples is left out, and is what is asked about. */
static void split_in_two(const struct plot *all, struct plot *learn, struct plot *ask_for)
{
    size_t half = all->e.n / 2;
    struct plot *parts[] = {learn, ask_for};
    for (size_t k = 0; k < 2; k++) {
        struct plot *p = parts[k];
        for (size_t i = 0; i < half; i++) {
            for (size_t c = 0; c < all->e.n_inputs; c++)
                p->x[c * half + i] = at(all, k * half + i, c);
            p->values[i] = all->values[k * half + i];
            p->numbers[i] = all->numbers[k * half + i];
            p->weights[i] = 1;
        }
    }
}

enum pattern { STEP, CROSS };

static uint32_t side(const struct plot *p, size_t i, enum pattern pattern)
{
    bool a = at(p, i, 1) > 0.2F;
    bool b = at(p, i, 2) > 0;
    return pattern == STEP ? a : a != b;
}

static void check_pattern(enum pattern pattern, size_t n_outputs)
{
    struct plot *all = plot_new(600, 3, n_outputs);
    struct plot *learn = plot_new(300, 3, n_outputs);
    struct plot *rest = plot_new(300, 3, n_outputs);
    for (size_t i = 0; i < 600; i++) {
        all->values[i] = side(all, i, pattern) ? 2 : 0; /* value 1 is nowhere */
        all->numbers[i] = side(all, i, pattern) ? 3 : -1;
    }
    split_in_two(all, learn, rest);
    struct kp_grown g = grow(learn, &usual, 1);
    /* Each leaf is pure, and each tree gives back what it saw. The rest is wrong only near the
     * borders; guessing would get a half right, and a mean's square error is 4. */
    if (n_outputs > 1) {
        assert_true(share_right(&g, learn) == 1);
        assert_true(share_right(&g, rest) > 0.93);
    } else {
        assert_true(mean_square_error(&g, learn) < 1e-9);
        assert_true(mean_square_error(&g, rest) < 0.8);
    }
    check_planted(&g, learn);
    kp_grown_deinit(&g);
    kp_free(all);
    kp_free(learn);
    kp_free(rest);
}

static void test_a_step(void **state)
{
    (void)state;
    check_pattern(STEP, 3);
    check_pattern(STEP, 1);
}

/* No single input says anything. */
static void test_a_cross(void **state)
{
    (void)state;
    check_pattern(CROSS, 3);
    check_pattern(CROSS, 1);
}

/* --- leaves ---------------------------------------------------------------------------------
 */

/* The weight that arrives at each node of a one-tree grove, leaves alone. */
static void check_leaf_weights(const struct plot *p, double leaf)
{
    struct kp_grow_plan plan = usual;
    double arrives[2 * MOST] = {0};
    size_t leaves = 0;
    plan.trees = 1;
    plan.leaf = leaf;
    struct kp_grown g = grow(p, &plan, 1);
    assert_true(g.grove.n_nodes <= (size_t)2 * MOST);
    for (size_t i = 0; i < p->e.n; i++) {
        size_t node = 0;
        while (g.nodes[node * 3] >= 0)
            node = at(p, i, (size_t)g.nodes[node * 3]) <= g.nodes[node * 3 + 1]
                       ? node + 1
                       : (size_t)g.nodes[node * 3 + 2];
        arrives[node] += (double)p->weights[i];
    }
    for (size_t n = 0; n < g.grove.n_nodes; n++) {
        if (g.nodes[n * 3] >= 0)
            continue;
        leaves++;
        assert_true(arrives[n] >= leaf * (1 - 1e-12)); /* sums in another order */
    }
    assert_true(leaves > 4 && leaves == (g.grove.n_nodes + 1) / 2);
    kp_grown_deinit(&g);
}

static void test_weight_of_leaves(void **state)
{
    (void)state;
    for (size_t n_outputs = 1; n_outputs <= 3; n_outputs += 2) {
        struct plot *p = plot_new(300, 3, n_outputs);
        struct kp_rng rng;
        kp_rng_init(&rng, 3);
        for (size_t i = 0; i < p->e.n; i++) {
            p->values[i] = (uint32_t)kp_rng_below(&rng, 3);
            p->numbers[i] = (float)kp_rng_normal(&rng);
            p->weights[i] = (float)(0.1 + kp_rng_f64(&rng));
        }
        check_leaf_weights(p, 1);
        check_leaf_weights(p, 4);
        check_leaf_weights(p, 13.5);
        kp_free(p);
    }
}

/* Two that are alike but for their answers share a leaf, whose answer is their mean. */
static void test_weights_count(void **state)
{
    (void)state;
    struct plot *p = plot_new(2, 1, 2);
    p->x[0] = p->x[1] = 0.5F;
    p->values[1] = 1;
    p->numbers[0] = 1;
    p->numbers[1] = 5;
    p->weights[1] = 3;
    struct kp_grown g = grow(p, &usual, 1);
    float out[2];
    ask(&g, p, 0, out);
    assert_true(fabsf(out[0] - 0.25F) < 1e-6F && fabsf(out[1] - 0.75F) < 1e-6F);
    kp_grown_deinit(&g);
    p->e.n_outputs = 1;
    g = grow(p, &usual, 1);
    ask(&g, p, 0, out);
    assert_true(fabsf(out[0] - 4) < 1e-5F); /* (1 + 3 * 5) / 4 */
    kp_grown_deinit(&g);
    kp_free(p);
}

/* A heavy example is a leaf's worth by itself. */
static void test_a_heavy_example_stands_alone(void **state)
{
    (void)state;
    struct plot *p = plot_new(40, 1, 2);
    struct kp_grow_plan plan = usual;
    float out[2];
    plan.leaf = 30;
    for (size_t i = 0; i < 40; i++) {
        p->x[i] = (float)i;
        p->values[i] = i == 39;
    }
    struct kp_grown g = grow(p, &plan, 1);
    ask(&g, p, 39, out);
    assert_true(out[1] < 0.1F); /* 1 of 40: no split has 30 on both sides */
    assert_int_equal(g.grove.n_nodes, plan.trees);
    kp_grown_deinit(&g);
    p->weights[39] = 100;
    g = grow(p, &plan, 1);
    assert_true(g.grove.n_nodes > plan.trees);
    /* Some trees divide, the others say what all are together. */
    ask(&g, p, 39, out);
    assert_true(out[1] > 100.0F / 139 + 0.01F);
    ask(&g, p, 0, out);
    assert_true(out[1] < 100.0F / 139 - 0.05F);
    kp_grown_deinit(&g);
    kp_free(p);
}

static void test_leaves_are_shared(void **state)
{
    (void)state;
    struct plot *p = plot_new(300, 3, 3);
    size_t leaves = 0;
    for (size_t i = 0; i < p->e.n; i++)
        p->values[i] = (uint32_t)(i % 3);
    struct kp_grown g = grow(p, &usual, 1);
    for (size_t n = 0; n < g.grove.n_nodes; n++)
        leaves += g.nodes[n * 3] < 0;
    /* Without a bound all are pure: of three kinds. */
    assert_true(leaves > 1000);
    assert_int_equal(g.grove.n_leaves, 3);
    assert_true(share_right(&g, p) == 1);
    for (size_t i = 0; i < g.grove.n_leaves; i++)
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(g.leaves + i * 3, g.leaves + k * 3, 3 * sizeof(float));
    check_planted(&g, p);
    kp_grown_deinit(&g);
    struct kp_grow_plan plan = usual;
    plan.leaf = 4;
    g = grow(p, &plan, 1);
    leaves = 0;
    for (size_t n = 0; n < g.grove.n_nodes; n++)
        leaves += g.nodes[n * 3] < 0;
    assert_true(g.grove.n_leaves > 3 && g.grove.n_leaves < leaves);
    check_planted(&g, p);
    kp_grown_deinit(&g);
    kp_free(p);
}

/* --- little to learn from -------------------------------------------------------------------
 */

/* One leaf for each tree, with the mean of what there is. */
static void check_single_leaves(const struct plot *p, const struct kp_grow_plan *plan)
{
    struct kp_grown g = grow(p, plan, 1);
    double sum[3] = {0};
    double weight = 0;
    float out[3];
    assert_int_equal(g.grove.n_nodes, plan->trees);
    assert_int_equal(g.grove.n_leaves, p->e.n_outputs > 1);
    for (size_t i = 0; i < p->e.n; i++) {
        double w = (double)p->weights[i];
        weight += w;
        if (p->e.n_outputs == 1)
            sum[0] += w * (double)p->numbers[i];
        else
            sum[p->values[i]] += w;
    }
    ask(&g, p, 0, out);
    for (size_t v = 0; v < p->e.n_outputs; v++) /* floats of size 1, thirty times added */
        assert_true(fabs((double)out[v] - sum[v] / weight) < 1e-5);
    check_planted(&g, p);
    kp_grown_deinit(&g);
}

static void test_single_leaves(void **state)
{
    (void)state;
    for (size_t n_outputs = 1; n_outputs <= 3; n_outputs += 2) {
        struct plot *p = plot_new(50, 3, n_outputs);
        struct kp_grow_plan plan = usual;
        for (size_t i = 0; i < p->e.n; i++) {
            p->values[i] = (uint32_t)(i * i % 3);
            p->numbers[i] = (float)(i % 7) - 2;
            p->weights[i] = 0.5F + (float)(i % 4);
        }
        /* All are together as light as a leaf. */
        plan.leaf = 1e6;
        check_single_leaves(p, &plan);
        /* Nothing differs. */
        for (size_t i = 0; i < p->e.n * p->e.n_inputs; i++)
            p->x[i] = -4;
        check_single_leaves(p, &usual);
        /* One. */
        p->e.n = 1;
        check_single_leaves(p, &usual);
        kp_free(p);
    }
}

/* Of equal answers no split can make more. */
static void test_equal_answers(void **state)
{
    (void)state;
    for (size_t n_outputs = 1; n_outputs <= 3; n_outputs += 2) {
        struct plot *p = plot_new(50, 3, n_outputs);
        for (size_t i = 0; i < p->e.n; i++) {
            p->values[i] = 2;
            p->numbers[i] = 0.3F;
        }
        check_single_leaves(p, &usual);
        kp_free(p);
    }
}

/* Inputs that hardly differ, and inputs as far apart as floats can be. */
static void test_inputs_at_the_limits(void **state)
{
    static const float pairs[][2] = {
        {1, 1.0000001192F}, {-3e38F, 3e38F}, {0, 1e-45F}, {-0.0F, 1e-38F}};
    (void)state;
    for (size_t k = 0; k < sizeof(pairs) / sizeof(*pairs); k++) {
        struct plot *p = plot_new(20, 1, 2);
        for (size_t i = 0; i < p->e.n; i++) {
            p->x[i] = pairs[k][i % 2];
            p->values[i] = (uint32_t)(i % 2);
        }
        struct kp_grown g = grow(p, &usual, 1);
        assert_true(share_right(&g, p) == 1);
        check_planted(&g, p);
        kp_grown_deinit(&g);
        kp_free(p);
    }
}

/* Each split takes the smallest part that it can: the depth has an end. */
static void test_depth(void **state)
{
    (void)state;
    struct plot *p = plot_new(600, 1, 1);
    struct kp_grow_plan plan = usual;
    for (size_t i = 0; i < p->e.n; i++) {
        p->x[i] = ldexpf(1, (int)(i % 250) - 120); /* a threshold takes the last few off */
        p->numbers[i] = (float)(i % 250);
    }
    plan.trees = 5;
    struct kp_grown g = grow(p, &plan, 1);
    check_planted(&g, p);
    for (size_t t = 0; t < plan.trees; t++) {
        size_t end = t + 1 < plan.trees ? (size_t)g.roots[t + 1] : g.grove.n_nodes;
        unsigned char depth[2 * MOST] = {0};
        for (size_t n = (size_t)g.roots[t]; n < end; n++) {
            unsigned char own = depth[n - (size_t)g.roots[t]];
            assert_true(own <= 60);
            if (g.nodes[n * 3] < 0)
                continue;
            depth[n + 1 - (size_t)g.roots[t]] = (unsigned char)(own + 1);
            depth[(size_t)g.nodes[n * 3 + 2] - (size_t)g.roots[t]] = (unsigned char)(own + 1);
        }
    }
    kp_grown_deinit(&g);
    kp_free(p);
}

/* --- the same again -------------------------------------------------------------------------
 */

static void assert_same(const struct kp_grown *a, const struct kp_grown *b)
{
    assert_int_equal(a->grove.n_nodes, b->grove.n_nodes);
    assert_int_equal(a->grove.n_leaves, b->grove.n_leaves);
    assert_memory_equal(a->roots, b->roots, a->grove.n_trees * sizeof(float));
    assert_memory_equal(a->nodes, b->nodes, a->grove.n_nodes * 3 * sizeof(float));
    if (a->grove.n_outputs > 1)
        assert_memory_equal(a->leaves, b->leaves,
                            a->grove.n_leaves * a->grove.n_outputs * sizeof(float));
}

static void test_the_same_with_any_threads(void **state)
{
    (void)state;
    for (size_t n_outputs = 1; n_outputs <= 3; n_outputs += 2) {
        struct plot *p = plot_new(300, 4, n_outputs);
        struct kp_grow_plan plan = usual;
        plan.share = 0.6;
        plan.leaf = 2;
        plan.trees = 17;
        for (size_t i = 0; i < p->e.n; i++) {
            p->values[i] = side(p, i, CROSS) + (at(p, i, 0) > 0.5F);
            p->numbers[i] = at(p, i, 0) * at(p, i, 3);
        }
        struct kp_grown first = grow(p, &plan, 1);
        for (unsigned threads = 1; threads <= 3; threads++) {
            struct kp_grown again = grow(p, &plan, threads);
            assert_same(&first, &again);
            kp_grown_deinit(&again);
        }
        /* Fewer trees are the first ones. */
        plan.trees = 5;
        struct kp_grown few = grow(p, &plan, 2);
        assert_memory_equal(few.roots, first.roots, 5 * sizeof(float));
        for (size_t n = 0; n < few.grove.n_nodes; n++)
            assert_memory_equal(few.nodes + n * 3, first.nodes + n * 3, 2 * sizeof(float));
        kp_grown_deinit(&few);
        plan.trees = 17;
        plan.seed = 2;
        struct kp_grown other = grow(p, &plan, 1);
        size_t both = first.grove.n_nodes < other.grove.n_nodes ? first.grove.n_nodes
                                                                : other.grove.n_nodes;
        assert_memory_not_equal(first.nodes, other.nodes, both * 3 * sizeof(float));
        kp_grown_deinit(&other);
        kp_grown_deinit(&first);
        kp_free(p);
    }
}

/* --- memory ---------------------------------------------------------------------------------
 */

/* Trees so large that their arrays have to grow. */
static void test_failing_allocations(void **state)
{
    (void)state;
    for (size_t n_outputs = 1; n_outputs <= 3; n_outputs += 2) {
        struct plot *p = plot_new(600, 2, n_outputs);
        struct kp_grow_plan plan = usual;
        struct kp_crew *crew;
        kopt_error err;
        kopt_status st = KOPT_ENOMEM;
        long n = 0;
        plan.trees = 3;
        for (size_t i = 0; i < p->e.n; i++) {
            p->values[i] = (uint32_t)(i % 3);
            p->numbers[i] = (float)i;
        }
        assert_int_equal(kp_crew_new(1, &crew, &err), KOPT_OK);
        while (st == KOPT_ENOMEM && n < 1000) {
            struct kp_grown g;
            kp_alloc_fail_at(++n);
            st = kp_grove_grow(&p->e, &plan, crew, &g, &err);
            kp_alloc_fail_at(0);
            assert_true((st == KOPT_OK) == (g.nodes != NULL));
            assert_ptr_equal(g.grove.nodes, g.nodes);
            kp_grown_deinit(&g);
        }
        assert_int_equal(st, KOPT_OK);
        assert_true(n > 3 * 4 + 4);
        kp_crew_free(crew);
        struct kp_grown g = grow(p, &plan, 1);
        st = KOPT_ENOMEM;
        for (n = 1; st == KOPT_ENOMEM && n < 100; n++) {
            struct kp_forest *f;
            kp_alloc_fail_at(n);
            st = kp_grown_plant(&g, 1, 0.5, &f, &err);
            kp_alloc_fail_at(0);
            assert_true((st == KOPT_OK) == (f != NULL));
            kp_forest_free(f);
        }
        assert_int_equal(st, KOPT_OK);
        kp_grown_deinit(&g);
        kp_free(p);
    }
}

/* Groves of several targets, one of which has no trees. */
static void test_a_forest_of_several(void **state)
{
    (void)state;
    struct plot *p = plot_new(60, 2, 3);
    struct kp_grown grown[3] = {0};
    struct kp_forest *f;
    kopt_error err = {0};
    float out[3];
    for (size_t i = 0; i < p->e.n; i++) {
        p->values[i] = side(p, i, STEP);
        p->numbers[i] = (float)i;
    }
    p->e.n_inputs = 2;
    grown[0] = grow(p, &usual, 1);
    grown[1].grove = (struct kp_grove){.n_inputs = 3, .n_outputs = 1};
    p->e.n_outputs = 1;
    grown[2] = grow(p, &usual, 1);
    assert_int_equal(kp_grown_plant(grown, 3, 0.4, &f, &err), KOPT_OK);
    assert_int_equal(kp_forest_check(f, &err), KOPT_OK);
    assert_int_equal(f->params.n_tensors, 5);
    const float x[2] = {at(p, 4, 0), at(p, 4, 1)};
    float want[3];
    for (size_t g = 0; g < 3; g += 2) {
        kp_grove_ask(&f->groves[g], x, out);
        kp_grove_ask(&grown[g].grove, x, want);
        assert_memory_equal(out, want, grown[g].grove.n_outputs * sizeof(*out));
    }
    kp_grove_ask(&f->groves[1], x, out);
    assert_true(out[0] == 1);
    kp_forest_free(f);
    for (size_t g = 0; g < 3; g++)
        kp_grown_deinit(&grown[g]);
    kp_free(p);
}

/* Groves that a file has room for one by one, but not together. */
static void test_a_forest_that_is_too_large(void **state)
{
    enum { N = 3 };
    struct kp_grown grown[N] = {0};
    struct kp_forest *f;
    kopt_error err = {0};
    (void)state;
    for (size_t g = 0; g < N; g++)
        grown[g].grove = (struct kp_grove){
            .n_inputs = 1, .n_outputs = 1, .n_trees = 1, .n_nodes = KP_FOREST_NODES_MAX};
    assert_int_equal(kp_grown_plant(grown, N, 0.4, &f, &err), KOPT_ERANGE);
    assert_null(f);
    assert_non_null(strstr(err.message, "larger"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step),
        cmocka_unit_test(test_a_cross),
        cmocka_unit_test(test_weight_of_leaves),
        cmocka_unit_test(test_weights_count),
        cmocka_unit_test(test_a_heavy_example_stands_alone),
        cmocka_unit_test(test_leaves_are_shared),
        cmocka_unit_test(test_single_leaves),
        cmocka_unit_test(test_equal_answers),
        cmocka_unit_test(test_inputs_at_the_limits),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_the_same_with_any_threads),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_a_forest_of_several),
        cmocka_unit_test(test_a_forest_that_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
