/* SPDX-License-Identifier: MIT */
/* Limits, faults and threads of the space engine. */
#include "test_space_engine.h"

#include "base/rng.h"

#include <pthread.h>

/* ---- limits ---- */

static void free_parameters_cost_nothing(void **state)
{
    (void)state;
    enum { MANY = 1000000 };
    struct made m;
    struct kp_space_stats stats;
    kopt_error err;
    uint32_t config[3] = {0, 999999, 500000};
    uint32_t back[3];
    uint64_t rank = 0;
    made_init(&m);
    struct kp_value *values = test_calloc(MANY, sizeof(*values));
    for (int64_t i = 0; i < MANY; i++)
        values[i] = kp_int(i);
    const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        m.params[i] = (struct kp_param){.name = names[i], .values = values, .n_values = MANY};
        m.params[i].slot = made_name(&m, names[i]);
    }
    m.desc.n_params = 3;
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 1000000000000000000U);
    kp_space_stats(s, &stats);
    assert_true(stats.peak_bytes < 1U << 20);
    assert_true(kp_space_rank(s, config, &rank));
    assert_int_equal(rank, 999999500000U);
    assert_int_equal(kp_space_at(s, rank, back, &err), KOPT_OK);
    assert_memory_equal(config, back, sizeof(config));
    config[0] = MANY;
    assert_false(kp_space_rank(s, config, &rank));
    assert_true(kp_space_repair(s, config));
    assert_int_equal(config[0], MANY - 1);
    kp_space_free(s);
    test_free(values);
    made_deinit(&m);
}

static void a_space_with_more_than_64_bits_of_configurations_is_refused(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    kopt_error err = {0};
    made_init(&m);
    add_params(&m, "x", 20, ten);
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_ERANGE);
    assert_null(s);
    assert_non_null(strstr(err.message, "2^64-1"));
    made_rule(&m, kopt_dialect, "x0 <= x1");
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_ERANGE);
    /* As many candidates, but few of them valid; and none of them valid. */
    made_rule(&m, kopt_dialect, "x2 == x3 && x4 == x5 && x6 == x7");
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_OK);
    assert_int_equal(kp_space_count(s), 55000000000000000U);
    assert_float_equal(kp_space_cartesian(s), 1e20, 1e6);
    kp_space_free(s);
    made_rule(&m, kopt_dialect, "x19 == 11");
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_OK);
    assert_int_equal(kp_space_count(s), 0);
    kp_space_free(s);
    made_deinit(&m);
}

static void a_space_over_its_memory_names_the_rule(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    kopt_error err = {0};
    made_init(&m);
    add_params(&m, "x", 9, ten);
    made_rule(&m, kopt_dialect, "x0 <= x1");
    made_rule(&m, kopt_dialect,
              "(x0*7919 + x1*104729 + x2*15485863 + x3*32452843 + x4*49979687 + x5*67867967 + "
              "x6*86028121 + x7*982451653 + x8*3001) % 1000003 == 17");
    m.desc.max_bytes = (size_t)1 << 20;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_ERANGE);
    assert_null(s);
    assert_non_null(strstr(err.message, "7919"));
    assert_non_null(strstr(err.message, "1024 KiB"));
    assert_string_not_equal(err.hint, "");
    m.desc.n_rules = 1;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_OK);
    kp_space_free(s);
    made_deinit(&m);
}

static void a_space_that_takes_too_long_names_the_rule(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    kopt_error err = {0};
    made_init(&m);
    add_params(&m, "x", 6, ten);
    made_rule(&m, kopt_dialect, "x0 <= x1");
    made_rule(&m, kopt_dialect,
              "(x0*7919 + x1*104729 + x2*15485863 + x3*32452843) % 1009 == 17");
    m.rules[1].line = 12;
    m.desc.max_steps = 1000000;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_OK);
    kp_space_free(s);
    m.desc.max_steps = 1000;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_ERANGE);
    assert_null(s);
    assert_non_null(strstr(err.message, "line 12"));
    assert_non_null(strstr(err.message, "1000 steps"));
    assert_string_not_equal(err.hint, "");
    made_deinit(&m);
}

/* The middle of a chained comparison is looked at twice; thirty of them within each other would
 * be a tree of 2^30 terms. */
static void a_rule_that_unfolds_without_end_is_refused(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    kopt_error err = {0};
    char rule[1024] = "";
    size_t n = 0;
    made_init(&m);
    made_param(&m, "a", "{0,1,2}");
    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(rule + n, sizeof(rule) - n, "(0 < ");
    n += (size_t)snprintf(rule + n, sizeof(rule) - n, "a");
    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(rule + n, sizeof(rule) - n, " < 3)");
    made_rule(&m, python_dialect, rule);
    m.desc.max_bytes = (size_t)1 << 20;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_ERANGE);
    assert_non_null(strstr(err.message, "rule (0 < (0 <"));
    assert_null(s);
    made_deinit(&m);
}

static void what_a_description_may_not_be_is_refused(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    kopt_error err = {0};
    made_init(&m);
    made_param(&m, "a", "{1,2}");
    (void)made_name(&m, "nobody");
    made_rule(&m, kopt_dialect, "a < nobody");
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.message, "a < nobody"));
    assert_int_equal(kp_space_new(&m.desc, &s, NULL), KOPT_EUSAGE);
    m.desc.n_rules = KP_RULES_MAX + 1;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_EUSAGE);
    m.desc.n_rules = 0;
    m.desc.n_params = KP_PARAMS_MAX + 1;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_EUSAGE);
    m.desc.n_params = 1;
    m.params[0].n_values = 0;
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_EUSAGE);
    assert_null(s);
    made_deinit(&m);
}

static void a_space_without_parameters_has_one_configuration_or_none(void **state)
{
    (void)state;
    struct made m;
    struct kp_space_iter it;
    uint32_t config[1];
    made_init(&m);
    made_fixed(&m, "N", kp_int(4));
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 1);
    kp_space_iter_init(&it, s, 0);
    assert_true(kp_space_iter_next(&it, config));
    assert_false(kp_space_iter_next(&it, config));
    assert_true(kp_space_completable(s, config, (const unsigned char *)""));
    kp_space_free(s);
    made_rule(&m, kopt_dialect, "N > 4");
    s = made_space(&m);
    assert_int_equal(kp_space_count(s), 0);
    assert_false(kp_space_repair(s, config));
    kp_space_free(s);
    made_deinit(&m);
}

/* ---- faults and threads ---- */

static void make_mixed(struct made *m)
{
    made_init(m);
    made_fixed(m, "N", kp_int(40));
    add_params(m, "x", 6, ten);
    made_param(m, "layout", "{\"row\",\"col\"}");
    made_param(m, "s", "{0.5,1.5}");
    made_rule(m, kopt_dialect, "x0 * x1 * x2 <= N");
    made_rule(m, kopt_dialect, "layout == \"row\" || x3 % x4 == 0");
    made_rule(m, kopt_dialect, "!(x4 > 5 || x5 < 3)");
    made_rule(m, python_dialect, "x5 * s <= x0 or N / x5 > 3");
    made_rule(m, kopt_dialect, "max(x0, x3, x5) - min(x1, x2) <= 8");
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    struct kp_rule_effect effects[5];
    size_t last = 0;
    kopt_status st = KOPT_ENOMEM;
    make_mixed(&m);
    long n = 1;
    for (; st != KOPT_OK; n++) {
        kopt_error err = {0};
        assert_true(n < 100000);
        kp_alloc_fail_at(n);
        st = kp_space_new(&m.desc, &s, &err);
        kp_alloc_fail_at(0);
        if (st != KOPT_OK) {
            assert_int_equal(st, KOPT_ENOMEM);
            assert_int_equal(err.code, KOPT_ENOMEM);
            assert_null(s);
        }
    }
    assert_true(n > 20);
    st = KOPT_ENOMEM;
    for (n = 1; st != KOPT_OK; n++) {
        assert_true(n < 100000);
        kp_alloc_fail_at(n);
        st = kp_space_explain(s, effects, &last, NULL);
        kp_alloc_fail_at(0);
        if (st != KOPT_OK)
            assert_int_equal(st, KOPT_ENOMEM);
    }
    assert_true(n > 20);
    kp_space_free(s);
    made_deinit(&m);
}

static void every_memory_limit_is_kept(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    struct kp_space_stats stats;
    kopt_status st = KOPT_ERANGE;
    make_mixed(&m);
    for (size_t max = 1000; st != KOPT_OK; max += max / 8) {
        kopt_error err = {0};
        m.desc.max_bytes = max;
        st = kp_space_new(&m.desc, &s, &err);
        if (st != KOPT_OK) {
            assert_int_equal(st, KOPT_ERANGE);
            assert_null(s);
            continue;
        }
        kp_space_stats(s, &stats);
        assert_true(stats.peak_bytes <= max + 1024); /* the space's own struct is not counted */
    }
    kp_space_free(s);
    made_deinit(&m);
}

/* ---- caches ---- */

static uint64_t count_without_cache(struct made *m)
{
    struct kp_space_cache *cache = m->desc.cache;
    m->desc.cache = NULL;
    struct kp_space *s = made_space(m);
    uint64_t n = kp_space_count(s);
    kp_space_free(s);
    m->desc.cache = cache;
    return n;
}

/* The first space with a cache, one with other values, and the same one again; after each
 * failure the cache is still good. */
static void every_failing_allocation_leaves_a_good_cache(void **state)
{
    (void)state;
    struct made m;
    struct kp_space *s = NULL;
    static const int64_t sizes[] = {40, 80, 80};
    uint64_t want[3];
    size_t failed = 0;
    bool more = true;
    make_mixed(&m);
    for (size_t i = 0; i < 3; i++) {
        m.values[0] = kp_int(sizes[i]);
        want[i] = count_without_cache(&m);
    }
    for (long n = 1; more; n++) {
        assert_true(n < 100000);
        m.desc.cache = kp_space_cache_new(0);
        assert_non_null(m.desc.cache);
        more = false;
        for (size_t i = 0; i < 3; i++) {
            m.values[0] = kp_int(sizes[i]);
            kopt_error err = {0};
            kp_alloc_fail_at(n);
            kopt_status st = kp_space_new(&m.desc, &s, &err);
            kp_alloc_fail_at(0);
            more |= st != KOPT_OK;
            if (st != KOPT_OK) {
                assert_int_equal(st, KOPT_ENOMEM);
                assert_int_equal(err.code, KOPT_ENOMEM);
                assert_null(s);
                failed++;
                s = made_space(&m);
            }
            assert_int_equal(kp_space_count(s), want[i]);
            kp_space_free(s);
        }
        kp_space_cache_free(m.desc.cache);
    }
    assert_true(failed > 40);
    kp_alloc_fail_at(1);
    assert_null(kp_space_cache_new(0));
    kp_alloc_fail_at(0);
    kp_space_cache_free(NULL);
    made_deinit(&m);
}

/* Where nothing restricts the first space, its order is any: a bad one for the second, which
 * would be millions of nodes. */
static void an_order_that_does_not_fit_is_left(void **state)
{
    (void)state;
    struct made m;
    struct kp_space_stats stats;
    made_init(&m);
    made_fixed(&m, "N", kp_int(0));
    add_params(&m, "x", 18, ten);
    for (int i = 0; i < 6; i++) {
        char rule[64];
        (void)snprintf(rule, sizeof(rule), "N == 0 || x%d * x%d <= N * x%d", i, i + 6, i + 12);
        made_rule(&m, kopt_dialect, rule);
    }
    m.desc.cache = kp_space_cache_new(0);
    assert_non_null(m.desc.cache);
    for (int64_t n = 0; n < 10; n++) {
        m.values[0] = kp_int(n);
        struct kp_space *s = made_space(&m);
        assert_int_equal(kp_space_count(s), count_without_cache(&m));
        kp_space_stats(s, &stats);
        assert_true(stats.nodes < 1000);
        kp_space_free(s);
    }
    kp_space_cache_free(m.desc.cache);
    made_deinit(&m);
}

/* One over other parameters or rules is made as without it, and harms nothing. */
static void a_cache_serves_the_parameters_and_rules_it_knows(void **state)
{
    (void)state;
    struct made m;
    struct made other;
    make_mixed(&m);
    make_mixed(&other);
    m.desc.cache = kp_space_cache_new(0);
    other.desc.cache = m.desc.cache;
    assert_non_null(m.desc.cache);
    other.values[0] = kp_int(7);
    for (int i = 0; i < 6; i++) {
        struct made *now = i % 2 ? &other : &m;
        struct kp_space *s = made_space(now);
        assert_int_equal(kp_space_count(s), count_without_cache(now));
        kp_space_free(s);
    }
    /* A rule with a name that lost its value. */
    m.known[0] = 0;
    struct kp_space *s = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_space_new(&m.desc, &s, &err), KOPT_EUSAGE);
    assert_null(s);
    m.known[0] = 1;
    m.desc.n_rules = 2;
    s = made_space(&m);
    assert_int_equal(kp_space_count(s), count_without_cache(&m));
    kp_space_free(s);
    kp_space_cache_free(m.desc.cache);
    made_deinit(&m);
    made_deinit(&other);
}

/* Spaces with the same diagram, on their way out in any order. */
static void spaces_that_the_rules_cannot_tell_apart_share(void **state)
{
    (void)state;
    struct made m;
    struct kp_space_stats stats[3];
    struct kp_space *s[3];
    made_init(&m);
    made_fixed(&m, "N", kp_int(0));
    add_params(&m, "x", 4, ten);
    made_rule(&m, kopt_dialect, "x0 * x1 * x2 <= N");
    made_rule(&m, kopt_dialect, "x3 <= min(N, 100) // 10");
    m.desc.cache = kp_space_cache_new(0);
    assert_non_null(m.desc.cache);
    kp_space_free(made_space(&m));
    for (size_t i = 0; i < 3; i++) {
        /* All of 1000 products are valid with 1000 as well as with 5000. */
        m.values[0] = kp_int(i == 0 ? 500 : i == 1 ? 1000 : 5000);
        s[i] = made_space(&m);
        kp_space_stats(s[i], &stats[i]);
    }
    assert_true(kp_space_count(s[0]) < 10000);
    assert_int_equal(kp_space_count(s[1]), 10000);
    assert_int_equal(kp_space_count(s[2]), 10000);
    assert_int_equal(stats[1].nodes, stats[2].nodes);
    kp_space_cache_free(m.desc.cache);
    kp_space_free(s[1]);
    uint32_t config[4] = {9, 9, 9, 9};
    assert_true(kp_space_valid(s[2], config, NULL));
    assert_true(kp_space_completable(s[2], config, (const unsigned char *)"\1\1\1\1"));
    assert_false(kp_space_completable(s[0], config, (const unsigned char *)"\1\1\1\1"));
    kp_space_free(s[2]);
    kp_space_free(s[0]);
    made_deinit(&m);
}

/* More nodes than the marks of a search that stand on the stack. */
static void a_large_diagram_is_searched_with_and_without_memory(void **state)
{
    (void)state;
    struct made m;
    struct kp_space_stats stats;
    struct kp_rng rng;
    unsigned char allowed[10];
    unsigned char again[10];
    made_init(&m);
    add_params(&m, "x", 18, ten);
    add_chain_rule(&m, "*", 18, " <= 1000000000");
    add_chain_rule(&m, " + ", 18, " >= 60");
    struct kp_space *s = made_space(&m);
    kp_space_stats(s, &stats);
    assert_true(stats.nodes > 40000);
    kp_rng_init(&rng, 3);
    for (int i = 0; i < 20; i++) {
        uint32_t config[18];
        unsigned char fixed[18];
        kp_space_sample(s, &rng, config);
        for (int k = 0; k < 18; k++)
            fixed[k] = kp_rng_below(&rng, 4) != 0;
        size_t param = kp_rng_below(&rng, 18);
        size_t n = kp_space_allowed(s, config, fixed, param, allowed);
        assert_true(n > 0 && allowed[config[param]]);
        kp_alloc_fail_at(1);
        assert_int_equal(kp_space_allowed(s, config, fixed, param, again), n);
        kp_alloc_fail_at(0);
        assert_memory_equal(allowed, again, sizeof(allowed));
        for (uint32_t v = 0; v < 10; v++) {
            unsigned char all[18];
            memcpy(all, fixed, sizeof(all));
            all[param] = 1;
            config[param] = v;
            assert_int_equal(kp_space_completable(s, config, all), allowed[v]);
        }
    }
    kp_space_free(s);
    made_deinit(&m);
}

struct reader {
    const struct kp_space *s;
    uint64_t seed;
    bool ok;
};

static bool count_neighbour(void *user, const uint32_t *config)
{
    (void)config;
    ++*(size_t *)user;
    return true;
}

static void *read_space(void *user)
{
    struct reader *r = user;
    struct kp_rng rng;
    struct kp_rule_effect effects[5];
    size_t last = 0;
    r->ok = true;
    kp_rng_init(&rng, r->seed);
    for (int i = 0; i < 200; i++) {
        uint32_t config[8];
        unsigned char fixed[8] = {1, 0, 1, 0, 1, 0, 1, 0};
        uint64_t rank = 0;
        size_t n = 0;
        kp_space_sample(r->s, &rng, config);
        r->ok = r->ok && kp_space_rank(r->s, config, &rank) &&
                kp_space_valid(r->s, config, NULL) && kp_space_completable(r->s, config, fixed);
        kp_space_neighbours(r->s, config, KP_NEAR_HAMMING, count_neighbour, &n);
        config[0] = 0;
        r->ok = r->ok && kp_space_repair(r->s, config);
    }
    r->ok = r->ok && kp_space_explain(r->s, effects, &last, NULL) == KOPT_OK;
    return NULL;
}

static void several_threads_read_one_space(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct made m;
    pthread_t threads[THREADS];
    struct reader readers[THREADS];
    make_mixed(&m);
    struct kp_space *s = made_space(&m);
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.s = s, .seed = (uint64_t)i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_space, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].ok);
    }
    kp_space_free(s);
    made_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_parameters_cost_nothing),
        cmocka_unit_test(a_space_with_more_than_64_bits_of_configurations_is_refused),
        cmocka_unit_test(a_space_over_its_memory_names_the_rule),
        cmocka_unit_test(a_space_that_takes_too_long_names_the_rule),
        cmocka_unit_test(a_rule_that_unfolds_without_end_is_refused),
        cmocka_unit_test(what_a_description_may_not_be_is_refused),
        cmocka_unit_test(a_space_without_parameters_has_one_configuration_or_none),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(every_memory_limit_is_kept),
        cmocka_unit_test(every_failing_allocation_leaves_a_good_cache),
        cmocka_unit_test(an_order_that_does_not_fit_is_left),
        cmocka_unit_test(a_cache_serves_the_parameters_and_rules_it_knows),
        cmocka_unit_test(spaces_that_the_rules_cannot_tell_apart_share),
        cmocka_unit_test(a_large_diagram_is_searched_with_and_without_memory),
        cmocka_unit_test(several_threads_read_one_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
