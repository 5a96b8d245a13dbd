/* SPDX-License-Identifier: MIT */
/* Spaces from a list of configurations: limits, failures, large lists. That every question is
 * answered as by trying all assignments, test_space_engine_random.c shows. */
#include "test_space_engine.h"

#include "base/rng.h"

static void three_params(struct made *m)
{
    made_init(m);
    made_param(m, "a", "{1,2,4,8}");
    made_param(m, "b", "{\"row\",\"col\"}");
    made_param(m, "c", "{7}");
}

static void the_space_is_what_is_listed(void **state)
{
    static const uint32_t listed[] = {3, 1, 0, 0, 0, 0, 3, 1, 0, 2, 1, 0};
    struct made m;
    struct kp_rule_hit hit = {.rule = 9};
    uint32_t out[3] = {1, 1, 0};
    uint64_t rank = 0;
    (void)state;
    three_params(&m);
    m.desc.listed = listed;
    m.desc.n_listed = 4;
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 3);
    assert_true(kp_space_cartesian(s) == 8);
    assert_false(kp_space_valid(s, out, &hit));
    assert_int_equal(hit.rule, 0); /* no rule's fault */
    assert_false(kp_space_rank(s, out, &rank));
    assert_true(kp_space_repair(s, out));
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0); /* the lower of two as near */
    for (size_t i = 0; i < 4; i++)
        assert_true(kp_space_valid(s, listed + 3 * i, NULL));
    kp_space_free(s);
    made_deinit(&m);
}

static void an_empty_list_is_an_empty_space(void **state)
{
    static const uint32_t listed[] = {0};
    struct made m;
    struct kp_rule_effect effect;
    size_t last = 7;
    uint32_t config[3] = {0};
    (void)state;
    three_params(&m);
    made_rule(&m, python_dialect, "a > 2");
    m.desc.listed = listed;
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 0);
    assert_false(kp_space_repair(s, config));
    assert_false(kp_space_valid(s, config, NULL));
    assert_int_equal(kp_space_explain(s, &effect, &last, NULL), KOPT_OK);
    assert_int_equal(last, 1); /* none of the rules */
    assert_true(effect.alone == 0 && effect.in_turn == 0);
    kp_space_free(s);
    made_deinit(&m);
}

/* Parameters with one value: there is nothing to tell apart. */
static void a_list_of_one(void **state)
{
    static const uint32_t listed[] = {0, 0};
    struct made m;
    uint32_t config[2] = {9, 9};
    (void)state;
    made_init(&m);
    made_param(&m, "x", "{5}");
    made_param(&m, "y", "{6}");
    m.desc.listed = listed;
    m.desc.n_listed = 1;
    struct kp_space *s = made_space(&m);
    assert_int_equal(kp_space_count(s), 1);
    assert_int_equal(kp_space_at(s, 0, config, NULL), KOPT_OK);
    assert_true(config[0] == 0 && config[1] == 0);
    kp_space_free(s);
    m.desc.n_listed = 0;
    s = made_space(&m);
    assert_int_equal(kp_space_count(s), 0);
    kp_space_free(s);
    made_deinit(&m);
}

static void assert_refused(struct made *m, kopt_status code, const char *what)
{
    kopt_error err = {0};
    struct kp_space *s = NULL;
    assert_int_equal(kp_space_new(&m->desc, &s, &err), code);
    assert_null(s);
    if (!strstr(err.message, what))
        fail_msg("%s", err.message);
}

static void bad_lists_are_refused(void **state)
{
    static const uint32_t listed[] = {0, 0, 0, 3, 2, 0};
    struct made m;
    (void)state;
    three_params(&m);
    m.desc.listed = listed;
    m.desc.n_listed = 2;
    assert_refused(&m, KOPT_EUSAGE, "configuration 1 of the list: parameter b");
    m.desc.n_listed = 1;
    m.desc.cache = kp_space_cache_new(0);
    assert_refused(&m, KOPT_EUSAGE, "without a cache");
    kp_space_cache_free(m.desc.cache);
    m.desc.cache = NULL;
    m.desc.n_listed = (size_t)INT32_MAX + 1;
    assert_refused(&m, KOPT_ERANGE, "at most");
    made_deinit(&m);
}

/* Of 10^8 assignments, some at random: nothing to merge. */
static uint32_t *random_list(struct made *m, size_t n)
{
    struct kp_rng rng;
    kp_rng_init(&rng, 7);
    made_init(m);
    add_params(m, "x", 8, ten);
    uint32_t *list = test_calloc(n * 8, sizeof(*list));
    for (size_t i = 0; i < n * 8; i++)
        list[i] = (uint32_t)kp_rng_below(&rng, 10);
    m->desc.listed = list;
    m->desc.n_listed = n;
    return list;
}

static void a_large_list_goes_there_and_back(void **state)
{
    enum { N = 20000 };
    struct made m;
    struct kp_space_iter it;
    uint32_t config[8];
    uint64_t rank = 0;
    uint64_t n = 0;
    (void)state;
    uint32_t *list = random_list(&m, N);
    made_rule(&m, python_dialect, "x0 + x1 <= 12"); /* 79 of 100 pairs */
    unsigned char *seen = test_calloc(N, 1);
    struct kp_space *s = made_space(&m);
    for (size_t i = 0; i < N; i++) {
        bool valid = list[8 * i] + list[8 * i + 1] <= 10; /* value = index + 1 */
        assert_int_equal(kp_space_rank(s, list + 8 * i, &rank), valid);
        if (!valid)
            continue;
        assert_int_equal(kp_space_at(s, rank, config, NULL), KOPT_OK);
        assert_memory_equal(config, list + 8 * i, sizeof(config));
        n += !seen[rank];
        seen[rank] = 1;
    }
    assert_int_equal(kp_space_count(s), n);
    kp_space_iter_init(&it, s, 0);
    for (rank = 0; kp_space_iter_next(&it, config); rank++)
        assert_true(seen[rank]);
    assert_int_equal(rank, n);
    kp_space_free(s);
    test_free(seen);
    test_free(list);
    made_deinit(&m);
}

static void a_list_keeps_within_its_memory(void **state)
{
    struct made m;
    (void)state;
    uint32_t *list = random_list(&m, 20000);
    m.desc.max_bytes = 100 << 10;
    assert_refused(&m, KOPT_ERANGE, "more than 100 KiB");
    m.desc.max_bytes = 0;
    m.desc.max_steps = 1000;
    assert_refused(&m, KOPT_ERANGE, "more than 1000 steps");
    test_free(list);
    made_deinit(&m);
}

static void every_failing_allocation_is_clean(void **state)
{
    struct made m;
    struct kp_rule_effect effect;
    size_t last = 0;
    long n = 1;
    (void)state;
    uint32_t *list = random_list(&m, 50);
    made_rule(&m, python_dialect, "x0 * x1 > 3");
    for (bool done = false; !done; n++) {
        struct kp_space *s = NULL;
        kopt_error err = {0};
        kp_alloc_fail_at(n);
        kopt_status st = kp_space_new(&m.desc, &s, &err);
        if (st == KOPT_OK)
            st = kp_space_explain(s, &effect, &last, &err);
        kp_alloc_fail_at(0);
        done = st == KOPT_OK;
        if (!done)
            assert_int_equal(st, KOPT_ENOMEM);
        kp_space_free(s);
    }
    assert_true(n > 20);
    test_free(list);
    made_deinit(&m);
}

/* ---- configurations from JSON ---- */

static void mixed_params(struct made *m)
{
    made_init(m);
    made_param(m, "n", "{1,2,16}");
    made_param(m, "f", "{0.5,1.0,2.5}");
    made_param(m, "on", "{true,false}");
    made_param(m, "s", "{\"row\",\"a \\\"b\\\"\",\"\"}");
}

static void json_goes_there_and_back(void **state)
{
    struct made m;
    struct kp_space_iter it;
    uint32_t config[4];
    uint32_t back[4];
    (void)state;
    mixed_params(&m);
    struct kp_space *s = made_space(&m);
    kp_space_iter_init(&it, s, 0);
    while (kp_space_iter_next(&it, config)) {
        struct kp_buf json = KP_BUF_INIT(1 << 10);
        kp_space_config_json(s, config, &json);
        memset(back, 9, sizeof(back));
        if (!kp_space_config_read(s, kp_buf_text(&json), back))
            fail_msg("%s", kp_buf_text(&json));
        assert_memory_equal(back, config, sizeof(config));
        kp_buf_deinit(&json);
    }
    kp_space_free(s);
    made_deinit(&m);
}

static void json_may_be_written_in_other_ways(void **state)
{
    static const char *const same[] = {
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"row\"}",
        " {\"s\" : \"row\",\n \"on\":false,\"f\":1,\t\"n\":2.0 } \n",
        "{\"n\":2,\"f\":1e0,\"on\":false,\"s\":\"r\\u006Fw\"}",
        "{\"\\u006e\":2,\"f\":10e-1,\"on\":false,\"s\":\"row\"}",
    };
    struct made m;
    (void)state;
    mixed_params(&m);
    struct kp_space *s = made_space(&m);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        uint32_t c[4] = {9, 9, 9, 9};
        if (!kp_space_config_read(s, same[i], c))
            fail_msg("%s", same[i]);
        assert_true(c[0] == 1 && c[1] == 1 && c[2] == 1 && c[3] == 0);
    }
    kp_space_free(s);
    made_deinit(&m);
}

static void escapes_of_every_kind_are_read(void **state)
{
    struct made m;
    uint32_t c[1] = {9};
    (void)state;
    made_init(&m);
    made_param(&m, "s", "{\"x\"}");
    const struct kp_value values[] = {
        kp_string(KP_STR("\"\\/\b\f\n\r\t")),
        kp_string(KP_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"))};
    m.params[0].values = values;
    m.params[0].n_values = 2;
    struct kp_space *s = made_space(&m);
    assert_true(kp_space_config_read(s, "{\"s\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", c));
    assert_int_equal(c[0], 0);
    assert_true(kp_space_config_read(s, "{\"s\":\"\\u00e9\\u20AC\\ud83d\\uDE00\"}", c));
    assert_int_equal(c[0], 1);
    static const char *const bad[] = {
        "{\"s\":\"\\u00g9\"}", "{\"s\":\"\\u00e\"}",
        "{\"s\":\"\\ud83d\"}", "{\"s\":\"\\ud83d\\u0041\"}",
        "{\"s\":\"\\udE00\"}", "{\"s\":\"\\x\"}",
        "{\"s\":\"\\",         "{\"s\":\"\n\"}",
        "{\"s\":\"abc",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (kp_space_config_read(s, bad[i], c))
            fail_msg("%s", bad[i]);
    kp_space_free(s);
    made_deinit(&m);
}

static void other_json_is_no_configuration(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "[]",
        "null",
        "{\"n\":2}",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"row\"",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"row\",}",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"row\"} x",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"row\",\"z\":1}",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"row\",\"n\":2}",
        "{\"n\":3,\"f\":1.0,\"on\":false,\"s\":\"row\"}",
        "{\"n\":\"2\",\"f\":1.0,\"on\":false,\"s\":\"row\"}",
        "{\"n\":2,\"f\":1.0,\"on\":0,\"s\":\"row\"}",
        "{\"n\":true,\"f\":1.0,\"on\":false,\"s\":\"row\"}",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"ro\"}",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":\"rows\"}",
        "{\"n\":2,\"f\":1.0,\"on\":false,\"s\":null}",
        "{\"n\":2,\"f\":[1.0],\"on\":false,\"s\":\"row\"}",
        "{\"n\":2 \"f\":1.0,\"on\":false,\"s\":\"row\"}",
        "{\"n\" 2,\"f\":1.0,\"on\":false,\"s\":\"row\"}",
        "{n:2,\"f\":1.0,\"on\":false,\"s\":\"row\"}",
        "{\"n\":99999999999999999999999,\"f\":1.0,\"on\":false,\"s\":\"row\"}",
    };
    struct made m;
    (void)state;
    mixed_params(&m);
    struct kp_space *s = made_space(&m);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint32_t c[4] = {0};
        if (kp_space_config_read(s, bad[i], c))
            fail_msg("%s", bad[i]);
    }
    kp_space_free(s);
    made_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_space_is_what_is_listed),
        cmocka_unit_test(an_empty_list_is_an_empty_space),
        cmocka_unit_test(a_list_of_one),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(a_large_list_goes_there_and_back),
        cmocka_unit_test(a_list_keeps_within_its_memory),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(json_goes_there_and_back),
        cmocka_unit_test(json_may_be_written_in_other_ways),
        cmocka_unit_test(escapes_of_every_kind_are_read),
        cmocka_unit_test(other_json_is_no_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
