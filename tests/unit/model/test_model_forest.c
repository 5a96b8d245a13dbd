/* SPDX-License-Identifier: MIT */
#include "model/forest.h"

#include "forests.h"
#include "support/test.h"

#include <math.h>

/* Two targets, of 3 and 2 values, and two features. Grove 0 looks at both features in its first
 * tree; its second one is a leaf. Grove 1 looks at the value of target 0. */
static const float roots0[] = {0, 5};
static const float nodes0[][3] = {{0, 0.5F, 2}, {-1, 0, 0}, {1, -1, 4},
                                  {-1, 0, 1},   {-1, 0, 2}, {-1, 0, 1}};
static const float leaves0[][3] = {{1, 0, 0}, {0.25F, 0.75F, 0}, {0, 0.5F, 0.5F}};
static const float roots1[] = {0};
static const float nodes1[][3] = {
    {2, 0.5F, 2}, {-1, 0, 0}, {2, 1.5F, 4}, {-1, 0, 1}, {-1, 0, 0}};
static const float leaves1[][2] = {{1, 0}, {0.5F, 0.5F}};
static const struct kp_grove by_hand[] = {{.n_inputs = 2,
                                           .n_outputs = 3,
                                           .n_trees = 2,
                                           .n_nodes = 6,
                                           .n_leaves = 3,
                                           .roots = roots0,
                                           .nodes = nodes0[0],
                                           .leaves = leaves0[0]},
                                          {.n_inputs = 3,
                                           .n_outputs = 2,
                                           .n_trees = 1,
                                           .n_nodes = 5,
                                           .n_leaves = 2,
                                           .roots = roots1,
                                           .nodes = nodes1[0],
                                           .leaves = leaves1[0]}};

static struct kp_forest *two_targets(void)
{
    return forest_of(by_hand, 2, 0.4);
}

/* --- asking ---------------------------------------------------------------------------------
 */

static void test_answers_by_hand(void **state)
{
    /* What goes left is what is not larger. */
    static const struct {
        float x[2];
        float want[3];
    } cases[] = {
        {{0.5F, 9}, {0.625F, 0.375F, 0}},
        {{-3, -3}, {0.625F, 0.375F, 0}},
        {{0.50001F, -1}, {0.25F, 0.75F, 0}},
        {{7, -0.9999F}, {0.125F, 0.625F, 0.25F}},
    };
    (void)state;
    struct kp_forest *f = two_targets();
    kopt_error err;
    assert_int_equal(kp_forest_check(f, &err), KOPT_OK);
    assert_int_equal(kp_forest_inputs(f), 3);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        float out[3] = {NAN, NAN, NAN}; /* it is set, not added to */
        kp_grove_ask(&f->groves[0], cases[i].x, out);
        assert_memory_equal(out, cases[i].want, sizeof(out)); /* halves and quarters: exact */
    }
    kp_forest_free(f);
}

/* The features are the same for both; the value of target 0 stands behind them. */
static void test_logarithms(void **state)
{
    static const double second[3][2] = {{1, 0}, {0.5, 0.5}, {1, 0}};
    (void)state;
    struct kp_forest *f = two_targets();
    float x[3] = {0.5F, 9, NAN};
    float out[3];
    kp_forest_log(f, 0, 2, NULL, x, out);
    const double first[] = {0.625, 0.375, 0};
    /* Floats, whose logarithm is off by a rounding of a number of size 8. */
    for (size_t v = 0; v < 3; v++)
        assert_true(fabs((double)out[v] - log(0.999 * first[v] + 0.001 / 3)) < 2e-6);
    for (uint32_t value = 0; value < 3; value++) {
        kp_forest_log(f, 1, 2, &value, x, out);
        assert_true(x[0] == 0.5F && x[1] == 9 && x[2] == (float)value);
        for (size_t v = 0; v < 2; v++)
            assert_true(fabs((double)out[v] - log(0.999 * second[value][v] + 0.0005)) < 2e-6);
    }
    kp_forest_free(f);
}

static void test_numbers(void **state)
{
    static const float roots[] = {0, 3, 4, 5};
    static const float nodes[][3] = {{0, 0, 2},  {-1, 1.5F, 0}, {-1, -2, 0},
                                     {-1, 4, 0}, {-1, 0, 0},    {-1, 0.5F, 0}};
    static const struct kp_grove grove = {.n_inputs = 1,
                                          .n_outputs = 1,
                                          .n_trees = 4,
                                          .n_nodes = 6,
                                          .roots = roots,
                                          .nodes = nodes[0]};
    (void)state;
    struct kp_forest *f = forest_of(&grove, 1, 0.6);
    kopt_error err;
    float out = NAN;
    float x = 0;
    assert_int_equal(kp_forest_check(f, &err), KOPT_OK);
    assert_int_equal(f->params.n_tensors, 2); /* no leaves */
    kp_grove_ask(&f->groves[0], &x, &out);
    assert_true(out == 1.5F);
    x = 1e-30F;
    kp_grove_ask(&f->groves[0], &x, &out);
    assert_true(out == 0.625F);
    kp_forest_free(f);
}

/* Where nothing is asked the networks' word stays what it is. */
static void test_a_grove_without_trees(void **state)
{
    static const struct kp_grove groves[] = {{.n_inputs = 2, .n_outputs = 1}};
    (void)state;
    struct kp_forest *f = forest_of(groves, 1, 0.4);
    kopt_error err;
    float x[2] = {1, 2};
    float out = NAN;
    double logs = 0;
    assert_int_equal(kp_forest_check(f, &err), KOPT_OK);
    assert_int_equal(f->params.n_tensors, 0);
    assert_int_equal(kp_forest_inputs(f), 2);
    kp_grove_ask(&f->groves[0], x, &out);
    assert_true(out == 1);
    kp_forest_log(f, 0, 2, NULL, x, &out);
    assert_true(fabsf(out) < 1e-7F); /* a rounding of 1 */
    kp_forest_pool(f, 1, &out, &logs);
    assert_true(logs == 0);
    kp_forest_free(f);
    f = kp_forest_new();
    assert_int_equal(kp_forest_inputs(f), 0);
    assert_int_equal(kp_forest_check(f, &err), KOPT_OK);
    kp_forest_free(f);
    kp_forest_free(NULL);
}

/* --- the pool -------------------------------------------------------------------------------
 */

static double sum_of(const double *logs, size_t n)
{
    double sum = 0;
    for (size_t v = 0; v < n; v++)
        sum += exp(logs[v]);
    return sum;
}

static void test_pool(void **state)
{
    static const double weights[] = {0, 0.4, 0.999};
    (void)state;
    struct kp_forest f = {0};
    const double nets[] = {0.5, 0.3, 0.2};
    const double told[] = {0.1, 0.6, 0.3};
    float trees[3];
    for (size_t v = 0; v < 3; v++)
        trees[v] = (float)log(told[v]);
    for (size_t i = 0; i < 3; i++) {
        double want[3];
        double logs[3];
        double z = 0;
        f.weight = weights[i];
        for (size_t v = 0; v < 3; v++) {
            logs[v] = log(nets[v]);
            want[v] = pow(nets[v], 1 - weights[i]) * pow(told[v], weights[i]);
            z += want[v];
        }
        kp_forest_pool(&f, 3, trees, logs);
        assert_true(fabs(sum_of(logs, 3) - 1) < 1e-14); /* roundings of 1 */
        for (size_t v = 0; v < 3; v++)                  /* the trees' logarithms are floats */
            assert_true(fabs(exp(logs[v]) - want[v] / z) < 1e-6);
    }
}

/* Networks' logarithms need not be normalised, and what they rule out stays ruled out. */
static void test_pool_of_the_impossible(void **state)
{
    (void)state;
    const double none = -(double)INFINITY;
    struct kp_forest f = {.weight = 0.4};
    const float trees[] = {-0.1F, -2, -7};
    double far_away[] = {-1e4, -1e4 - 1, none};
    double nothing[] = {none, none, none};
    double one[] = {none, -800, none};
    kp_forest_pool(&f, 3, trees, far_away);
    assert_true(fabs(sum_of(far_away, 3) - 1) < 1e-11); /* roundings of 6000 */
    assert_true(fabs(far_away[0] - far_away[1] - (0.6 + 0.4 * 1.9)) < 1e-6);
    assert_true(far_away[2] == none);
    kp_forest_pool(&f, 3, trees, nothing);
    for (size_t v = 0; v < 3; v++)
        assert_true(nothing[v] == none);
    kp_forest_pool(&f, 3, trees, one);
    assert_true(one[0] == none && one[1] == 0 && one[2] == none);
}

/* --- text -----------------------------------------------------------------------------------
 */

static struct kp_json *parsed(const char *text)
{
    struct kp_json *j;
    kopt_error err = {0};
    if (kp_json_parse(kp_str_from(text), "text", &j, &err) != KOPT_OK)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static void test_text_and_back(void **state)
{
    static const uint32_t n_values[] = {4, 1, 3, 2};
    static const struct forest_plan plan = {.n_groves = 4,
                                            .n_features = 3,
                                            .n_values = n_values,
                                            .trees = 5,
                                            .weight = 0.3,
                                            .seed = 1};
    (void)state;
    struct kp_forest *f = forest_drawn(&plan);
    struct kp_json *j = kp_forest_to_json(f);
    struct kp_forest *g;
    kopt_error err = {0};
    assert_non_null(j);
    assert_int_equal(kp_forest_from_json(j, &g, &err), KOPT_OK);
    assert_true(f->weight == g->weight);
    assert_int_equal(f->n_groves, g->n_groves);
    for (size_t i = 0; i < f->n_groves; i++) {
        assert_int_equal(f->groves[i].n_inputs, g->groves[i].n_inputs);
        assert_int_equal(f->groves[i].n_outputs, g->groves[i].n_outputs);
        assert_int_equal(f->groves[i].n_trees, g->groves[i].n_trees);
        assert_int_equal(f->groves[i].n_nodes, g->groves[i].n_nodes);
        assert_int_equal(f->groves[i].n_leaves, g->groves[i].n_leaves);
    }
    /* The tensors are declared alike; with the same numbers it answers alike. */
    assert_int_equal(f->params.n_tensors, g->params.n_tensors);
    assert_int_equal(f->params.n_tensors, 9);
    for (size_t i = 0; i < f->params.n_tensors; i++) {
        const struct kp_tensor *a = &f->params.tensors[i];
        const struct kp_tensor *b = &g->params.tensors[i];
        assert_string_equal(a->name, b->name);
        assert_true(a->rows == b->rows && a->cols == b->cols && a->offset == b->offset);
    }
    assert_string_equal(f->params.tensors[3].name, "trees2.roots");
    g->values = f->values;
    g->borrowed = true;
    kp_forest_point(g);
    assert_int_equal(kp_forest_check(g, &err), KOPT_OK);
    float x[6] = {0.3F, 1, -0.5F, 2, 0, 1};
    float out[2][3];
    kp_grove_ask(&f->groves[2], x, out[0]);
    kp_grove_ask(&g->groves[2], x, out[1]);
    assert_memory_equal(out[0], out[1], sizeof(out[0]));
    kp_json_free(j);
    kp_forest_free(g);
    kp_forest_free(f);
}

static void test_texts_that_make_no_sense(void **state)
{
    static const char *const bad[] = {
        "[]",
        "7",
        "{}",
        "{\"weight\":0.4}",
        "{\"groves\":[]}",
        "{\"weight\":\"0.4\",\"groves\":[]}",
        "{\"weight\":1,\"groves\":[]}",
        "{\"weight\":-0.1,\"groves\":[]}",
        "{\"weight\":1e300,\"groves\":[]}",
        "{\"weight\":null,\"groves\":[]}",
        "{\"weight\":0.4,\"groves\":{}}",
        "{\"weight\":0.4,\"groves\":[7]}",
        "{\"weight\":0.4,\"groves\":[{}]}",
        "{\"weight\":0.4,\"groves\":[null]}",
        "{\"weight\":0.4,\"groves\":[[]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,\"1\"]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,0.5]]}",
        "{\"weight\":0.4,\"groves\":[[-2,3,1,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,-1]]}",
        "{\"weight\":0.4,\"groves\":[[1048577,3,1,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,4097,1,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1025,2000,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,16777217,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,16777217]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,9223372036854775807]]}",
        /* What no grove can be. */
        "{\"weight\":0.4,\"groves\":[[2,3,0,1,0]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,0,0,1]]}",
        "{\"weight\":0.4,\"groves\":[[0,3,1,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,0,1,1,0]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,2,1,1]]}",
        "{\"weight\":0.4,\"groves\":[[2,3,1,1,0]]}",
        "{\"weight\":0.4,\"groves\":[[2,1,1,1,1]]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct kp_json *j = parsed(bad[i]);
        struct kp_forest *f;
        kopt_error err = {0};
        kopt_status st = kp_forest_from_json(j, &f, &err);
        if (st != KOPT_EINPUT || f || !err.message[0])
            fail_msg("%s: status %d, '%s'", bad[i], (int)st, err.message);
        kp_json_free(j);
    }
}

/* More groves than there can be targets; as many as there can be, of the largest size. */
static void test_texts_at_the_limits(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        struct kp_buf b = KP_BUF_INIT(1 << 16);
        struct kp_forest *f;
        kopt_error err = {0};
        kp_buf_adds(&b, "{\"weight\":0,\"groves\":[");
        for (int g = 0; g < KP_TARGETS_MAX + extra; g++)
            kp_buf_addf(&b, "%s[1048576,4096,1024,16777216,16777216]", g ? "," : "");
        kp_buf_adds(&b, "]}");
        struct kp_json *j = parsed(kp_buf_text(&b));
        kopt_status st = kp_forest_from_json(j, &f, &err);
        assert_int_equal(st, extra ? KOPT_EINPUT : KOPT_OK);
        kp_forest_free(f);
        kp_json_free(j);
        kp_buf_deinit(&b);
    }
}

/* --- trees that lead nowhere ----------------------------------------------------------------
 */

struct damage {
    size_t grove;
    size_t node;
    size_t column;
    float with;
};

static void test_nodes_that_lead_nowhere(void **state)
{
    static const struct damage all[] = {
        /* Inputs. */
        {0, 0, 0, 2},
        {0, 0, 0, -2},
        {0, 0, 0, 0.5F},
        {0, 0, 0, -0.5F},
        {0, 0, 0, 3e38F},
        {1, 0, 0, 3},
        {0, 0, 0, NAN},
        /* Right children: itself, what goes left, another tree, back, beyond the end, halves.
         */
        {0, 0, 2, 0},
        {0, 0, 2, 1},
        {0, 0, 2, 5},
        {0, 2, 2, 0},
        {0, 2, 2, 2},
        {0, 2, 2, 3},
        {0, 2, 2, -1},
        {0, 2, 2, 3.5F},
        {0, 2, 2, 6},
        {1, 2, 2, 5},
        {1, 2, 2, INFINITY},
        {1, 2, 2, NAN},
        /* A split that ends its tree, and the grove. */
        {0, 4, 0, 0},
        {0, 5, 0, 0},
        {1, 4, 0, 0},
        /* Rows of leaves. */
        {0, 1, 2, 3},
        {0, 1, 2, -1},
        {0, 1, 2, 0.5F},
        {0, 5, 2, 16777216},
        {1, 4, 2, 2},
        {1, 4, 2, NAN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct kp_forest *f = two_targets();
        char want[64];
        kopt_error err = {0};
        forest_node(&f->groves[all[i].grove], all[i].node)[all[i].column] = all[i].with;
        kopt_status st = kp_forest_check(f, &err);
        (void)snprintf(want, sizeof(want), "grove %zu lead nowhere", all[i].grove);
        if (st != KOPT_EINPUT || !strstr(err.message, want))
            fail_msg("damage %zu: status %d, '%s'", i, (int)st, err.message);
        kp_forest_free(f);
    }
}

static void test_roots_that_lead_nowhere(void **state)
{
    static const float all[][2] = {{1, 5},   {0, 0},   {0, 6},    {0, -1},   {5, 0},
                                   {-1, 5},  {0, 4},   {0.5F, 5}, {0, 4.5F}, {0, INFINITY},
                                   {NAN, 5}, {0, NAN}, {0, 3e38F}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct kp_forest *f = two_targets();
        kopt_error err = {0};
        memcpy((float *)(uintptr_t)f->groves[0].roots, all[i], sizeof(all[i]));
        kopt_status st = kp_forest_check(f, &err);
        if (st != KOPT_EINPUT)
            fail_msg("roots %g, %g: status %d", (double)all[i][0], (double)all[i][1], (int)st);
        kp_forest_free(f);
    }
}

static void test_leaves_that_are_no_probabilities(void **state)
{
    static const float all[] = {-1e-3F, -1e30F, 1.001F, 1e30F};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct kp_forest *f = two_targets();
        kopt_error err = {0};
        *(float *)(uintptr_t)(f->groves[1].leaves + 3) = all[i];
        assert_int_equal(kp_forest_check(f, &err), KOPT_EINPUT);
        assert_non_null(strstr(err.message, "grove 1 give no probabilities"));
        kp_forest_free(f);
    }
}

/* Whatever passes the check ends in a leaf that is there: nodes are hit at random. */
static void test_what_passes_can_be_asked(void **state)
{
    static const uint32_t n_values[] = {3, 2};
    static const struct forest_plan plan = {
        .n_groves = 2, .n_features = 2, .n_values = n_values, .trees = 3, .seed = 5};
    (void)state;
    struct kp_rng rng;
    size_t passed = 0;
    kp_rng_init(&rng, 9);
    for (size_t i = 0; i < 4000; i++) {
        struct kp_forest *f = forest_drawn(&plan);
        const struct kp_grove *w = &f->groves[i % 2];
        kopt_error err = {0};
        for (size_t k = 0; k < 1 + i % 3; k++)
            forest_node(w, kp_rng_below(&rng, w->n_nodes))[kp_rng_below(&rng, 2) * 2] =
                (float)kp_rng_below(&rng, 50) - 2;
        if (kp_forest_check(f, &err) == KOPT_OK) {
            float x[4] = {(float)kp_rng_normal(&rng), (float)kp_rng_normal(&rng), 0, 0};
            float out[3];
            uint32_t value = (uint32_t)kp_rng_below(&rng, 3);
            kp_forest_log(f, i % 2, 2, &value, x, out);
            for (size_t v = 0; v < n_values[i % 2]; v++)
                assert_true(isfinite(out[v]) && out[v] <= 1e-6F);
            passed++;
        }
        kp_forest_free(f);
    }
    assert_true(passed > 40 && passed < 3960);
}

/* --- memory ---------------------------------------------------------------------------------
 */

static void test_failing_allocations(void **state)
{
    (void)state;
    struct kp_forest *f = two_targets();
    struct kp_json *j = NULL;
    for (long n = 1; !j && n < 100; n++) {
        kp_alloc_fail_at(n);
        j = kp_forest_to_json(f);
        kp_alloc_fail_at(0);
        assert_true(j || n < 99);
    }
    kopt_status st = KOPT_ENOMEM;
    for (long n = 1; st == KOPT_ENOMEM && n < 100; n++) {
        struct kp_forest *g;
        kopt_error err;
        kp_alloc_fail_at(n);
        st = kp_forest_from_json(j, &g, &err);
        kp_alloc_fail_at(0);
        assert_true((st == KOPT_OK) == (g != NULL));
        assert_true(n > 1 || st == KOPT_ENOMEM);
        kp_forest_free(g);
    }
    assert_int_equal(st, KOPT_OK);
    kp_json_free(j);
    kp_forest_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_by_hand),
        cmocka_unit_test(test_logarithms),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_a_grove_without_trees),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_of_the_impossible),
        cmocka_unit_test(test_text_and_back),
        cmocka_unit_test(test_texts_that_make_no_sense),
        cmocka_unit_test(test_texts_at_the_limits),
        cmocka_unit_test(test_nodes_that_lead_nowhere),
        cmocka_unit_test(test_roots_that_lead_nowhere),
        cmocka_unit_test(test_leaves_that_are_no_probabilities),
        cmocka_unit_test(test_what_passes_can_be_asked),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
