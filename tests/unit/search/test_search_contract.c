/* SPDX-License-Identifier: MIT */
/* What every strategy promises. */
#include "search/search.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "spaces.h"
#include "support/test.h"

#include <math.h>

/* Some cost that depends on the parameters; one in eight configurations fails. */
static double cost_of(uint64_t rank)
{
    uint64_t h = (rank + 1) * 0x9e3779b97f4a7c15U;
    return h >> 61 == 0 ? (double)INFINITY : 1 + (double)(h >> 40) * 1e-6;
}

static double always_fails(uint64_t rank)
{
    (void)rank;
    return (double)INFINITY;
}

static double is_nonsense(uint64_t rank)
{
    static const double values[] = {0, -1, (double)NAN, -(double)INFINITY};
    return values[rank % 4];
}

typedef double cost_fn(uint64_t rank);

static struct kp_search *search_of(const char *name, const struct text_space *t, uint64_t seed,
                                   uint64_t budget, uint32_t window)
{
    struct kp_search *s = NULL;
    kopt_error err = {0};
    struct kp_search_options o = {.seed = seed, .budget = budget, .window = window};
    assert_int_equal(kp_search_new(name, t->space, &o, &s, &err), KOPT_OK);
    return s;
}

/* Run a search with as many results outstanding as the window allows. The ranks are recorded.
 * Stops after `limit` asks. Returns how many were asked. */
static size_t run(struct kp_search *s, const struct kp_space *space, uint32_t window,
                  cost_fn *cost, size_t limit, uint64_t *ranks)
{
    uint32_t config[KP_PARAMS_MAX];
    size_t asked = 0;
    size_t told = 0;
    while (asked < limit) {
        bool waiting = true;
        if (kp_search_ask(s, config, &waiting)) {
            assert_false(waiting);
            assert_true(kp_space_rank(space, config, &ranks[asked]));
            asked++;
            assert_true(asked - told <= window);
        } else if (waiting) {
            assert_int_equal(asked - told, window);
            kp_search_tell(s, cost(ranks[told++]));
        } else {
            break;
        }
    }
    while (told < asked)
        kp_search_tell(s, cost(ranks[told++]));
    return asked;
}

static void assert_no_repeats(const uint64_t *ranks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            assert_true(ranks[i] != ranks[j]);
    }
}

/* Every strategy, costs of every kind, a space to its end. */
static void exhaust(const struct text_space *t, uint64_t budget, uint32_t window)
{
    static cost_fn *const costs[] = {cost_of, always_fails, is_nonsense};
    uint64_t ranks[4096];
    uint64_t count = kp_space_count(t->space);
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    assert_true(count < 4096);
    for (size_t k = 0; k < n; k++) {
        for (size_t c = 0; c < sizeof(costs) / sizeof(costs[0]); c++) {
            struct kp_search *s = search_of(list[k].name, t, 11, budget, window);
            assert_string_equal(kp_search_name(s), list[k].name);
            assert_int_equal(run(s, t->space, window, costs[c], 4096, ranks), count);
            assert_no_repeats(ranks, count);
            uint32_t config[KP_PARAMS_MAX];
            bool waiting = true;
            assert_false(kp_search_ask(s, config, &waiting));
            assert_false(waiting);
            kp_search_free(s);
        }
    }
}

static void spaces_of_one_to_five_are_visited_to_the_last(void **state)
{
    (void)state;
    static const char *const texts[][6] = {
        {"{7}", NULL, NULL},
        {"{1,2}", NULL, NULL},
        {"{true,false}", "{\"a\",\"b\"}", NULL, "p0 || p1 == \"a\"", NULL},
        {"{1,2}", "{0.5,2.5}", NULL, NULL},
        {"{3}", "{1,2,3,4,5}", "{\"x\"}", NULL, NULL},
    };
    for (size_t k = 0; k < 5; k++) {
        struct text_space t;
        text_space_open(&t, texts[k]);
        assert_int_equal(kp_space_count(t.space), k + 1);
        for (uint64_t budget = 0; budget <= k + 3; budget++) {
            exhaust(&t, budget, 1);
            exhaust(&t, budget, 2);
            exhaust(&t, budget, 256);
        }
        text_space_close(&t);
    }
}

static void a_space_with_rules_is_visited_to_the_last(void **state)
{
    (void)state;
    static const char *const text[] = {"{1,2,4,8,16,48}",
                                       "{1,2,3,4,5,6,7}",
                                       "{true,false}",
                                       "{\"row\",\"column\",\"both\"}",
                                       "{5}",
                                       NULL,
                                       "p0*p1 <= 64",
                                       "p2 || p3 != \"both\"",
                                       NULL};
    struct text_space t;
    text_space_open(&t, text);
    assert_in_range(kp_space_count(t.space), 60, 200);
    exhaust(&t, 0, 1);
    exhaust(&t, 50, 16);
    text_space_close(&t);
}

static void an_empty_space_is_at_its_end_at_once(void **state)
{
    (void)state;
    static const char *const text[] = {"{1,2}", "{1,2}", NULL, "p0 > p1 + 5", NULL};
    struct text_space t;
    text_space_open(&t, text);
    exhaust(&t, 0, 1);
    exhaust(&t, 10, 16);
    text_space_close(&t);
}

static void a_budget_below_the_size_is_spent_exactly(void **state)
{
    (void)state;
    static const char *const text[] = {"{1..9}", "{1..9}", NULL, NULL};
    struct text_space t;
    uint64_t ranks[128];
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    text_space_open(&t, text);
    for (size_t k = 0; k < n; k++) {
        for (size_t budget = 1; budget <= 81; budget += 16) {
            struct kp_search *s = search_of(list[k].name, &t, budget, budget, 1);
            assert_int_equal(run(s, t.space, 1, cost_of, budget, ranks), budget);
            assert_no_repeats(ranks, budget);
            kp_search_free(s);
        }
    }
    text_space_close(&t);
}

/* 10^18 configurations, and 60 parameters of two to four values. */
static void huge_spaces_are_searched(void **state)
{
    (void)state;
    static const char *const wide[] = {"{1..1000}", "{1..1000}", "{1..1000}", "{1..1000}",
                                       "{1..1000}", "{1..1000}", NULL,        NULL};
    const char *many[TEXT_PARAMS] = {NULL};
    for (size_t i = 0; i < 30; i++)
        many[i] = i % 3 ? "{16,32}" : "{\"a\",\"b\",\"c\",\"d\"}";
    const char *const *const texts[] = {wide, many};
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    for (size_t i = 0; i < 2; i++) {
        struct text_space t;
        uint64_t ranks[100];
        text_space_open(&t, texts[i]);
        for (size_t k = 0; k < n; k++) {
            struct kp_search *s = search_of(list[k].name, &t, 5, 100, 8);
            assert_int_equal(run(s, t.space, 8, cost_of, 100, ranks), 100);
            assert_no_repeats(ranks, 100);
            kp_search_free(s);
        }
        text_space_close(&t);
    }
}

static const char *const plain[] = {"{1..20}", "{1..20}",      "{1..20}",
                                    NULL,      "p0 + p1 < 30", NULL};

static void the_first_configuration_comes_first_and_once(void **state)
{
    (void)state;
    static const uint32_t first[] = {3, 0, 19};
    static const uint32_t invalid[] = {19, 19, 0};
    uint64_t ranks[4096];
    uint64_t want = 0;
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct text_space t;
    text_space_open(&t, plain);
    assert_true(kp_space_rank(t.space, first, &want));
    for (size_t k = 0; k < n; k++) {
        struct kp_search *s = NULL;
        struct kp_search_options o = {.seed = 1, .window = 4, .first = first};
        assert_int_equal(kp_search_new(list[k].name, t.space, &o, &s, NULL), KOPT_OK);
        assert_int_equal(run(s, t.space, 4, cost_of, 100, ranks), 100);
        assert_true(ranks[0] == want);
        assert_no_repeats(ranks, 100);
        kp_search_free(s);
        o.first = invalid; /* is passed over */
        assert_int_equal(kp_search_new(list[k].name, t.space, &o, &s, NULL), KOPT_OK);
        assert_int_equal(run(s, t.space, 4, cost_of, 10, ranks), 10);
        kp_search_free(s);
    }
    text_space_close(&t);
}

static void the_same_seed_repeats_a_run_and_another_does_not(void **state)
{
    (void)state;
    static const uint32_t windows[] = {1, 7, 40};
    uint64_t a[100];
    uint64_t b[100];
    uint64_t c[100];
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct text_space t;
    text_space_open(&t, plain);
    for (size_t k = 0; k < 3 * n; k++) {
        uint32_t window = windows[k % 3];
        struct kp_search *s = search_of(list[k / 3].name, &t, 1, 100, window);
        assert_int_equal(run(s, t.space, window, cost_of, 100, a), 100);
        kp_search_free(s);
        s = search_of(list[k / 3].name, &t, 1, 100, window);
        assert_int_equal(run(s, t.space, window, cost_of, 100, b), 100);
        kp_search_free(s);
        s = search_of(list[k / 3].name, &t, 2, 100, window);
        assert_int_equal(run(s, t.space, window, cost_of, 100, c), 100);
        kp_search_free(s);
        assert_memory_equal(a, b, sizeof(a));
        assert_memory_not_equal(a, c, sizeof(a));
    }
    text_space_close(&t);
}

/* A run's asks as one number, taken down once: a compiler or machine that computes otherwise
 * shows. It changes whenever a strategy is changed, and then only. */
static void a_run_is_the_same_on_every_machine(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t hash;
    } want[] = {{"bayes", 0x2769d6543b9ea424},     {"exhaustive", 0xb90c90f5824aed6f},
                {"random", 0x373e2d7f95a0886f},    {"genetic", 0xd2e794103cd17cdd},
                {"evolution", 0x5ef9e315c1e73736}, {"swarm", 0x2d05bdcacc61d73c},
                {"annealing", 0x98d1e72fb0e8f2e8}, {"tabu", 0xc414580f2e6124e3}};
    uint64_t ranks[120];
    struct text_space t;
    text_space_open(&t, plain);
    for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
        struct kp_search *s = search_of(want[k].name, &t, 42, 120, 4);
        uint64_t hash = 0;
        assert_int_equal(run(s, t.space, 4, cost_of, 120, ranks), 120);
        for (size_t i = 0; i < 120; i++)
            hash = (hash ^ ranks[i]) * UINT64_C(0x100000001b3);
        assert_int_equal(hash, want[k].hash);
        kp_search_free(s);
    }
    text_space_close(&t);
}

/* Results told as early as possible, or a random number of them at a time: the same run. */
static void a_run_does_not_depend_on_when_results_are_told(void **state)
{
    (void)state;
    uint64_t late[100];
    struct kp_rng rng;
    kp_rng_init(&rng, 8);
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct text_space t;
    text_space_open(&t, plain);
    for (size_t k = 0; k < n; k++) {
        struct kp_search *s = search_of(list[k].name, &t, 3, 100, 10);
        assert_int_equal(run(s, t.space, 10, cost_of, 100, late), 100);
        kp_search_free(s);
        s = search_of(list[k].name, &t, 3, 100, 10);
        size_t asked = 0;
        size_t told = 0;
        while (asked < 100) {
            uint32_t config[3];
            uint64_t rank = 0;
            bool waiting = false;
            if (kp_search_ask(s, config, &waiting)) {
                assert_true(kp_space_rank(t.space, config, &rank));
                assert_true(rank == late[asked]);
                asked++;
            }
            uint64_t tell = waiting ? 1 : kp_rng_below(&rng, asked - told + 1);
            for (; tell; tell--)
                kp_search_tell(s, cost_of(late[told++]));
        }
        kp_search_free(s);
    }
    text_space_close(&t);
}

static void as_many_are_handed_out_as_the_window_allows(void **state)
{
    (void)state;
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct text_space t;
    text_space_open(&t, plain);
    for (size_t k = 0; k < n; k++) {
        for (uint32_t window = 1; window <= 256; window *= 4) {
            struct kp_search *s = search_of(list[k].name, &t, 1, 0, window);
            uint32_t config[3];
            bool waiting = true;
            for (uint32_t i = 0; i < window; i++)
                assert_true(kp_search_ask(s, config, &waiting) && !waiting);
            assert_false(kp_search_ask(s, config, &waiting));
            assert_true(waiting);
            assert_false(kp_search_ask(s, config, &waiting));
            assert_true(waiting);
            kp_search_tell(s, 1);
            assert_true(kp_search_ask(s, config, &waiting));
            assert_false(kp_search_ask(s, config, &waiting));
            assert_true(waiting);
            kp_search_free(s);
        }
    }
    text_space_close(&t);
}

static void the_default_is_exhaustive_where_that_fits_the_budget(void **state)
{
    (void)state;
    static const char *const small[] = {"{1..40}", "{1..50}", NULL, NULL}; /* 2,000 */
    static const char *const larger[] = {"{1..3}", "{1..667}", NULL, NULL};
    static const struct {
        const char *const *text;
        uint64_t budget;
        const char *name;
    } cases[] = {
        {small, 0, "exhaustive"}, {small, 2000, "exhaustive"},  {small, 1999, "bayes"},
        {larger, 0, "bayes"},     {larger, 2001, "exhaustive"},
    };
    for (size_t k = 0; k < 5; k++) {
        struct text_space t;
        text_space_open(&t, cases[k].text);
        struct kp_search *s = search_of(NULL, &t, 1, cases[k].budget, 1);
        assert_string_equal(kp_search_name(s), cases[k].name);
        kp_search_free(s);
        text_space_close(&t);
    }
}

static void the_list_begins_with_the_default_and_explains_itself(void **state)
{
    (void)state;
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    assert_true(n >= 3);
    assert_string_equal(list[0].name, "bayes");
    for (size_t k = 0; k < n; k++)
        assert_true(strlen(list[k].name) > 0 && strlen(list[k].summary) > 10);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    struct text_space t;
    struct kp_search *s = NULL;
    kopt_error err = {0};
    struct kp_search_options o = {.window = 1};
    text_space_open(&t, plain);
    assert_int_equal(kp_search_new("quantum", t.space, &o, &s, &err), KOPT_EUSAGE);
    assert_null(s);
    assert_non_null(strstr(err.message, "quantum"));
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    for (size_t k = 0; k < n; k++)
        assert_non_null(strstr(err.hint, list[k].name));
    o.window = 0;
    assert_int_equal(kp_search_new("random", t.space, &o, &s, &err), KOPT_EUSAGE);
    o.window = UINT32_MAX;
    assert_int_equal(kp_search_new("random", t.space, &o, &s, &err), KOPT_EUSAGE);
    assert_null(s);
    kp_search_free(NULL);
    text_space_close(&t);
}

/* Every allocation of kp_search_new() fails once; then every one while it runs. */
static void no_memory_is_an_error_at_the_start_and_none_later(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 0, 0};
    uint64_t ranks[80];
    size_t n = 0;
    const struct kp_strategy *list = kp_search_list(&n);
    struct text_space t;
    text_space_open(&t, plain);
    for (size_t k = 0; k < n; k++) {
        struct kp_search_options o = {.seed = 1, .window = 3, .first = first};
        struct kp_search *s = NULL;
        kopt_status st = KOPT_ENOMEM;
        for (long fail = 1; st != KOPT_OK; fail++) {
            assert_true(fail < 200);
            kp_alloc_fail_at(fail);
            st = kp_search_new(list[k].name, t.space, &o, &s, NULL);
            kp_alloc_fail_at(0);
            assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
            assert_int_equal(s != NULL, st == KOPT_OK);
        }
        for (long fail = 1; fail <= 4; fail++) {
            kp_search_free(s);
            s = search_of(list[k].name, &t, 1, 0, 3);
            kp_alloc_fail_at(fail);
            assert_int_equal(run(s, t.space, 3, cost_of, 80, ranks), 80);
            kp_alloc_fail_at(0);
            assert_no_repeats(ranks, 80);
        }
        kp_search_free(s);
    }
    text_space_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces_of_one_to_five_are_visited_to_the_last),
        cmocka_unit_test(a_space_with_rules_is_visited_to_the_last),
        cmocka_unit_test(an_empty_space_is_at_its_end_at_once),
        cmocka_unit_test(a_budget_below_the_size_is_spent_exactly),
        cmocka_unit_test(huge_spaces_are_searched),
        cmocka_unit_test(the_first_configuration_comes_first_and_once),
        cmocka_unit_test(the_same_seed_repeats_a_run_and_another_does_not),
        cmocka_unit_test(a_run_is_the_same_on_every_machine),
        cmocka_unit_test(a_run_does_not_depend_on_when_results_are_told),
        cmocka_unit_test(as_many_are_handed_out_as_the_window_allows),
        cmocka_unit_test(the_default_is_exhaustive_where_that_fits_the_budget),
        cmocka_unit_test(the_list_begins_with_the_default_and_explains_itself),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(no_memory_is_an_error_at_the_start_and_none_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
