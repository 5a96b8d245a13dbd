/* SPDX-License-Identifier: MIT */
#include "test_space_engine.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/rng.h"

/* ---- counts that are known otherwise ---- */

static uint64_t count_of(struct made *m)
{
    struct kp_space_stats stats;
    struct kp_space *s = made_space(m);
    uint64_t n = kp_space_count(s);
    kp_space_stats(s, &stats);
    assert_true(stats.bytes <= stats.peak_bytes);
    assert_true(stats.peak_bytes < 100U << 20);
    kp_space_free(s);
    made_deinit(m);
    return n;
}

static void different_values_are_counted_as_permutations(void **state)
{
    (void)state;
    struct made m;
    made_init(&m);
    add_params(&m, "x", 10, ten);
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < i; j++) {
            char rule[64];
            (void)snprintf(rule, sizeof(rule), "x%d != x%d", i, j);
            made_rule(&m, kopt_dialect, rule);
        }
    assert_int_equal(count_of(&m), 3628800); /* 10! */
}

static void a_sum_over_eighteen_parameters_is_counted(void **state)
{
    (void)state;
    enum { N = 18, LIMIT = 90 };
    uint64_t ways[LIMIT + 1] = {1};
    for (int i = 0; i < N; i++)
        for (int sum = LIMIT; sum >= 0; sum--) {
            ways[sum] = 0;
            for (int v = 1; v <= 10 && v <= sum; v++)
                ways[sum] += ways[sum - v];
        }
    uint64_t at_most = 0;
    for (int sum = 0; sum <= LIMIT; sum++)
        at_most += ways[sum];
    struct made m;
    made_init(&m);
    add_params(&m, "x", N, ten);
    add_chain_rule(&m, " + ", N, " <= 90");
    assert_int_equal(count_of(&m), at_most);
    made_init(&m);
    add_params(&m, "x", N, ten);
    add_chain_rule(&m, " + ", N, " == 90");
    assert_int_equal(count_of(&m), ways[LIMIT]);
}

/* Assignments of n values 1 .. 10 by their product, for products up to the limit. */
static uint64_t products_up_to(int n, uint64_t limit)
{
    struct kp_map now = {0};
    uint64_t product = 1;
    uint64_t total = 0;
    *kp_map_put(&now, &product, sizeof(product), NULL) = 1;
    uint64_t list[20000] = {1};
    size_t n_list = 1;
    for (int i = 0; i < n; i++) {
        struct kp_map next = {0};
        static uint64_t next_list[20000];
        size_t n_next = 0;
        for (size_t k = 0; k < n_list; k++)
            for (uint64_t v = 1; v <= 10 && list[k] * v <= limit; v++) {
                bool added = false;
                product = list[k] * v;
                *kp_map_put(&next, &product, sizeof(product), &added) +=
                    *kp_map_get(&now, &list[k], sizeof(product));
                if (added)
                    next_list[n_next++] = product;
            }
        kp_map_deinit(&now);
        now = next;
        n_list = n_next;
        memcpy(list, next_list, n_next * sizeof(*list));
    }
    for (size_t k = 0; k < n_list; k++)
        total += *kp_map_get(&now, &list[k], sizeof(product));
    kp_map_deinit(&now);
    return total;
}

static void a_product_over_eighteen_parameters_is_counted(void **state)
{
    (void)state;
    struct made m;
    made_init(&m);
    add_params(&m, "x", 18, ten);
    add_chain_rule(&m, "*", 18, " <= 1000000000");
    assert_int_equal(count_of(&m), products_up_to(18, 1000000000));
}

static void a_chain_of_eighteen_parameters_is_counted(void **state)
{
    (void)state;
    uint64_t ends[11] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; /* chains by their last value */
    struct made m;
    made_init(&m);
    add_params(&m, "x", 18, ten);
    for (int i = 0; i < 17; i++) {
        char rule[64];
        uint64_t next[11] = {0};
        (void)snprintf(rule, sizeof(rule), "x%d <= x%d + 2", i, i + 1);
        made_rule(&m, kopt_dialect, rule);
        for (int a = 1; a <= 10; a++)
            for (int b = 1; b <= 10; b++)
                next[b] += a <= b + 2 ? ends[a] : 0;
        memcpy(ends, next, sizeof(ends));
    }
    uint64_t total = 0;
    for (int v = 1; v <= 10; v++)
        total += ends[v];
    assert_int_equal(count_of(&m), total);
}

static void independent_groups_multiply_whatever_the_order_of_declaration(void **state)
{
    (void)state;
    uint64_t one = 0;
    uint64_t all = 1;
    struct made m;
    for (int a = 1; a <= 10; a++)
        for (int b = 1; b <= 10; b++)
            for (int c = 1; c <= 10; c++)
                one += a * b <= 7 * c;
    made_init(&m);
    add_params(&m, "x", 18, ten);
    for (int g = 0; g < 6; g++) {
        char rule[64];
        (void)snprintf(rule, sizeof(rule), "x%d * x%d <= 7 * x%d", g, g + 6, g + 12);
        made_rule(&m, kopt_dialect, rule);
        all *= one;
    }
    assert_int_equal(count_of(&m), all);
}

static void sums_of_products_keep_only_the_running_sum(void **state)
{
    (void)state;
    enum { N = 7, LIMIT = 200 };
    uint64_t ways[LIMIT + 1] = {1};
    for (int i = 0; i < N; i++) {
        uint64_t next[LIMIT + 1] = {0};
        for (int a = 1; a <= 10; a++)
            for (int b = 1; b <= 10; b++)
                for (int sum = a * b; sum <= LIMIT; sum++)
                    next[sum] += ways[sum - a * b];
        memcpy(ways, next, sizeof(ways));
    }
    uint64_t total = 0;
    for (int sum = 0; sum <= LIMIT; sum++)
        total += ways[sum];
    struct made m;
    struct kp_buf b = KP_BUF_INIT(1 << 12);
    made_init(&m);
    add_params(&m, "x", 2 * N, ten);
    for (int i = 0; i < N; i++)
        kp_buf_addf(&b, "%sx%d*x%d", i ? " + " : "", i, i + N);
    kp_buf_addf(&b, " <= %d", LIMIT);
    made_rule(&m, kopt_dialect, kp_buf_text(&b));
    kp_buf_deinit(&b);
    assert_int_equal(count_of(&m), total);
}

static void integers_that_no_double_holds_are_compared_exactly(void **state)
{
    (void)state;
    struct made m;
    made_init(&m);
    made_param(&m, "a", "{9007199254740992,9007199254740993,9007199254740994}");
    made_param(&m, "b", "{9007199254740992,9007199254740993,9007199254740994}");
    made_rule(&m, kopt_dialect, "a >= b");
    made_rule(&m, kopt_dialect, "a != b + 1");
    assert_int_equal(count_of(&m), 4);
}

static void partial_products_that_overflow_are_errors_as_written(void **state)
{
    (void)state;
    struct made m;
    made_init(&m);
    made_param(&m, "a", "{0,4611686018427387904}");
    made_param(&m, "b", "{1,4}");
    made_param(&m, "c", "{0,1}");
    /* (a*b)*c fails for a = 2^62, b = 4 although c may be 0. */
    made_rule(&m, kopt_dialect, "a * b * c >= 0");
    assert_int_equal(count_of(&m), 6);
}

static void a_remainder_of_a_long_product_needs_few_states(void **state)
{
    (void)state;
    struct made m;
    struct kp_space_stats stats;
    made_init(&m);
    add_params(&m, "x", 18, ten);
    struct kp_buf b = KP_BUF_INIT(1 << 12);
    kp_buf_adds(&b, "(");
    for (int i = 0; i < 18; i++)
        kp_buf_addf(&b, "%sx%d", i ? "*" : "", i);
    kp_buf_adds(&b, ") % 32 == 0");
    made_rule(&m, kopt_dialect, kp_buf_text(&b));
    kp_buf_deinit(&b);
    struct kp_space *s = made_space(&m);
    kp_space_stats(s, &stats);
    assert_true(stats.width <= 32);
    kp_space_free(s);
    made_deinit(&m);
}

static void a_remainder_of_a_sum_of_products_is_counted(void **state)
{
    (void)state;
    struct made m;
    uint64_t want = 0;
    made_init(&m);
    made_param(&m, "a", "[i for i in range(1, 201)]");
    made_param(&m, "b", "[i for i in range(1, 201)]");
    made_param(&m, "c", "[i for i in range(1, 201)]");
    made_rule(&m, kopt_dialect, "(a + b*c) % 64 == 7");
    for (int a = 1; a <= 200; a++)
        for (int b = 1; b <= 200; b++)
            for (int c = 1; c <= 200; c++)
                want += (a + b * c) % 64 == 7;
    assert_int_equal(count_of(&m), want);
}

/* ---- sampling ---- */

/* Chi-square against equal shares, and its bound: the mean (df) and four standard deviations
 * (sqrt(2 df)) of the distribution. The seeds are fixed, so the outcome is always the same. */
static void assert_uniform(const uint64_t *seen, size_t n, uint64_t samples)
{
    double expected = (double)samples / (double)n;
    double chi = 0;
    for (size_t i = 0; i < n; i++) {
        double off = (double)seen[i] - expected;
        chi += off * off / expected;
    }
    double df = (double)(n - 1);
    double slack = 1;
    while (slack * slack < 2 * df)
        slack *= 1.01;
    if (chi > df + 4 * slack)
        fail_msg("chi-square %g of %g", chi, df);
}

static void samples_are_uniform_over_the_valid_configurations(void **state)
{
    (void)state;
    enum { SAMPLES = 100000 };
    struct made m;
    struct kp_rng rng;
    uint64_t seen[512] = {0};
    made_init(&m);
    made_param(&m, "a", "{1,2,4,8,16,32}");
    made_param(&m, "b", "{1,2,3,4,5}");
    made_param(&m, "c", "{true,false}");
    made_param(&m, "d", "{0,1,2,3}");
    made_rule(&m, kopt_dialect, "a * b <= 40");
    made_rule(&m, kopt_dialect, "c || a % 4 == 0");
    made_rule(&m, kopt_dialect, "d == 0 || b % d != 1");
    struct kp_space *s = made_space(&m);
    uint64_t n = kp_space_count(s);
    assert_true(n > 50 && n < 512);
    kp_rng_init(&rng, 7);
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t config[4];
        uint64_t rank = 0;
        kp_space_sample(s, &rng, config);
        assert_true(kp_space_rank(s, config, &rank));
        seen[rank]++;
    }
    assert_uniform(seen, n, SAMPLES);
    kp_space_free(s);
    made_deinit(&m);
}

static void samples_of_a_huge_space_follow_its_counts(void **state)
{
    (void)state;
    enum { SAMPLES = 20000 };
    struct made m;
    struct kp_rng rng;
    struct kp_space_prefix root;
    uint64_t seen[10] = {0};
    uint64_t share[10] = {0};
    made_init(&m);
    add_params(&m, "x", 18, ten);
    add_chain_rule(&m, " + ", 18, " <= 80");
    struct kp_space *s = made_space(&m);
    uint32_t first = kp_space_order(s)[0];
    assert_true(kp_space_prefix_init(s, &root));
    assert_int_equal(kp_space_prefix_count(s, &root), kp_space_count(s));
    for (uint32_t v = 0; v < 10; v++) {
        struct kp_space_prefix p = root;
        assert_true(kp_space_prefix_step(s, &p, v));
        share[v] = kp_space_prefix_count(s, &p);
    }
    kp_rng_init(&rng, 11);
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t config[18];
        kp_space_sample(s, &rng, config);
        assert_true(kp_space_valid(s, config, NULL));
        seen[config[first]]++;
    }
    double chi = 0;
    for (int v = 0; v < 10; v++) {
        double expected = (double)share[v] / (double)kp_space_count(s) * SAMPLES;
        chi += ((double)seen[v] - expected) * ((double)seen[v] - expected) / expected;
    }
    assert_true(chi < 9 + 4 * 4.3); /* df 9, sqrt(18) = 4.24 */
    kp_space_free(s);
    made_deinit(&m);
}

/* ---- why ---- */

static void an_error_makes_a_configuration_invalid_and_says_why(void **state)
{
    (void)state;
    struct made m;
    struct kp_rule_hit hit;
    made_init(&m);
    made_param(&m, "a", "{0,1,2}");
    made_param(&m, "b", "{6,7}");
    made_rule(&m, kopt_dialect, "a < 3");
    made_rule(&m, kopt_dialect, "b % a == 0");
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 3);
    assert_false(kp_space_valid(s, (const uint32_t[]){0, 0}, &hit));
    assert_int_equal(hit.rule, 1);
    assert_string_equal(hit.why.what, "division by zero");
    assert_false(kp_space_valid(s, (const uint32_t[]){2, 1}, &hit));
    assert_int_equal(hit.rule, 1);
    assert_null(hit.why.what);
    assert_true(kp_space_valid(s, (const uint32_t[]){2, 0}, &hit));
    assert_int_equal(hit.rule, 2);
    assert_false(kp_space_valid(s, (const uint32_t[]){3, 0}, &hit));
    assert_int_equal(hit.rule, 2);
    kp_space_free(s);
    made_deinit(&m);
}

static void an_empty_space_names_the_rule_that_took_the_last(void **state)
{
    (void)state;
    struct made m;
    struct kp_rule_effect effects[4];
    size_t last = 0;
    kopt_error err;
    made_init(&m);
    add_params(&m, "x", 20, ten);
    made_rule(&m, kopt_dialect, "x0 > 1");
    made_rule(&m, kopt_dialect, "x1 + x2 > 15");
    made_rule(&m, kopt_dialect, "x0 * 2 < x2 && x2 < 5");
    made_rule(&m, kopt_dialect, "x3 > 0");
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 0);
    assert_int_equal(kp_space_explain(s, effects, &last, &err), KOPT_OK);
    assert_int_equal(last, 2);
    assert_true(effects[0].alone == 10000000000000000000U); /* 10^19 */
    assert_true(effects[1].alone == UINT64_MAX);            /* 8.5 * 10^19 */
    assert_int_equal(effects[3].alone, 0);
    assert_int_equal(effects[3].in_turn, 0);
    kp_space_free(s);
    made_deinit(&m);
}

/* ---- texts ---- */

static void configurations_are_written_in_order_and_sorted(void **state)
{
    (void)state;
    struct made m;
    struct kp_buf b = KP_BUF_INIT(1 << 12);
    struct kp_value values[4] = {0};
    unsigned char known[4] = {0};
    made_init(&m);
    made_param(&m, "b", "{16,32}");
    made_param(&m, "layout", "{\"row\",\"c\\\"l\"}");
    made_param(&m, "a", "{0.5,2.0}");
    made_param(&m, "B", "{true,false}");
    struct kp_space *s = made_space(&m);
    const uint32_t config[] = {1, 1, 0, 0};
    kp_space_config_text(s, config, &b);
    assert_string_equal(kp_buf_text(&b), "b=32,layout=c\"l,a=0.5,B=true");
    kp_buf_clear(&b);
    kp_space_config_json(s, config, &b);
    assert_string_equal(kp_buf_text(&b),
                        "{\"B\":true,\"a\":0.5,\"b\":32,\"layout\":\"c\\\"l\"}");
    kp_space_bind(s, config, values, known);
    assert_int_equal(values[m.params[0].slot].as.i, 32);
    assert_int_equal(known[m.params[3].slot], 1);
    kp_buf_deinit(&b);
    kp_space_free(s);
    made_deinit(&m);
}

static void the_order_depends_on_the_description_alone(void **state)
{
    (void)state;
    struct made m;
    made_init(&m);
    add_params(&m, "x", 18, ten);
    for (int i = 0; i < 9; i++) {
        char rule[64];
        (void)snprintf(rule, sizeof(rule), "x%d * x%d <= x%d + 30", i, 17 - i, (i * 5) % 18);
        made_rule(&m, kopt_dialect, rule);
    }
    struct kp_space *a = made_space(&m);
    struct kp_space *b = made_space(&m);
    assert_memory_equal(kp_space_order(a), kp_space_order(b), 18 * sizeof(uint32_t));
    bool seen[18] = {false};
    for (size_t k = 0; k < 18; k++)
        seen[kp_space_order(a)[k]] = true;
    for (size_t k = 0; k < 18; k++)
        assert_true(seen[k]);
    kp_space_free(a);
    kp_space_free(b);
    made_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_values_are_counted_as_permutations),
        cmocka_unit_test(a_sum_over_eighteen_parameters_is_counted),
        cmocka_unit_test(a_product_over_eighteen_parameters_is_counted),
        cmocka_unit_test(a_chain_of_eighteen_parameters_is_counted),
        cmocka_unit_test(independent_groups_multiply_whatever_the_order_of_declaration),
        cmocka_unit_test(sums_of_products_keep_only_the_running_sum),
        cmocka_unit_test(integers_that_no_double_holds_are_compared_exactly),
        cmocka_unit_test(partial_products_that_overflow_are_errors_as_written),
        cmocka_unit_test(a_remainder_of_a_long_product_needs_few_states),
        cmocka_unit_test(a_remainder_of_a_sum_of_products_is_counted),
        cmocka_unit_test(samples_are_uniform_over_the_valid_configurations),
        cmocka_unit_test(samples_of_a_huge_space_follow_its_counts),
        cmocka_unit_test(an_error_makes_a_configuration_invalid_and_says_why),
        cmocka_unit_test(an_empty_space_names_the_rule_that_took_the_last),
        cmocka_unit_test(configurations_are_written_in_order_and_sorted),
        cmocka_unit_test(the_order_depends_on_the_description_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
