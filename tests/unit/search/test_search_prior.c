/* SPDX-License-Identifier: MIT */
/* What a list of expected configurations does to a search, be it right or wrong. */
#include "search/prior.h"
#include "search/search.h"

#include "base/alloc.h"
#include "spaces.h"
#include "support/test.h"

#include <math.h>

enum { RUN_MAX = 4096 };

/* 20 x 12 x 12 x 4 x 5 x 4 */
static const char *const large[] = {
    "{1..20}", "{1..12}",   "{1..12}", "{\"a\",\"b\",\"c\",\"d\"}",
    "{1..5}",  "{1,2,4,8}", NULL,      NULL};
enum { LARGE_PARAMS = 6 };
/* 16 x 16 with a triangle left out: 136 */
static const char *const small[] = {"{1..16}", "{1..16}", NULL, "p0 <= p1", NULL};

/* 1 at the best configuration; tiles and a schedule interact, one region fails. */
static double cost_of(const uint32_t *c)
{
    double block = fabs((double)c[0] - 11) * 0.15;
    double tile = fabs((double)c[1] + (double)c[2] - 9) * 0.2;
    double schedule = c[3] == 2 ? 0.05 * c[4] : 0.8 + 0.1 * c[4];
    double unroll = c[5] == (c[1] > 4 ? 1U : 3U) ? 0 : 0.3;
    if (c[0] > 15 && c[1] > 8)
        return (double)INFINITY;
    return 1 + block + tile + schedule + unroll;
}

static double by_rank(uint64_t rank)
{
    return 1 + (double)((rank * 37) % 101);
}

/* --- the list ----------------------------------------------------------------------------- */

static void the_list_is_valid_and_distinct(void **state)
{
    (void)state;
    struct text_space t;
    struct kp_prior p;
    text_space_open(&t, small);
    assert_int_equal(kp_prior_init(&p, t.space, 4, NULL), KOPT_OK);
    assert_true(kp_prior_add(&p, t.space, (uint32_t[]){1, 2}, -2));
    assert_true(kp_prior_add(&p, t.space, (uint32_t[]){3, 3}, -3));
    assert_true(kp_prior_add(&p, t.space, (uint32_t[]){0, 9}, -1));
    assert_false(kp_prior_add(&p, t.space, (uint32_t[]){1, 2}, -0.5));  /* there already */
    assert_false(kp_prior_add(&p, t.space, (uint32_t[]){5, 2}, -0.5));  /* breaks the rule */
    assert_false(kp_prior_add(&p, t.space, (uint32_t[]){0, 16}, -0.5)); /* no such value */
    assert_true(kp_prior_add(&p, t.space, (uint32_t[]){2, 2}, -2));     /* behind its equal */
    assert_false(kp_prior_add(&p, t.space, (uint32_t[]){4, 4}, 0));     /* full */
    static const uint32_t want[4][2] = {{1, 2}, {3, 3}, {0, 9}, {2, 2}};
    assert_int_equal(p.n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_memory_equal(p.configs + 2 * i, want[i], sizeof(want[i]));
        assert_int_equal(kp_prior_find(&p, t.space, want[i]), i);
    }
    assert_int_equal(kp_prior_find(&p, t.space, (uint32_t[]){4, 4}), 4);
    kp_prior_deinit(&p);
    kp_prior_deinit(&p);
    text_space_close(&t);
}

/* --- what every strategy does with it ------------------------------------------------------
 */

struct plan {
    const char *strategy;
    uint64_t seed;
    uint32_t window;
    size_t budget; /* asks at most */
    const uint32_t *first;
    const struct kp_prior *prior;
};

/* The ranks in the order of asking. */
static size_t run(const struct text_space *t, const struct plan *plan, uint64_t *ranks)
{
    struct kp_search_options o = {
        .seed = plan->seed, .window = plan->window, .first = plan->first, .prior = plan->prior};
    struct kp_search *s = NULL;
    uint32_t config[KP_PARAMS_MAX];
    size_t asked = 0;
    size_t told = 0;
    bool waiting = false;
    assert_int_equal(kp_search_new(plan->strategy, t->space, &o, &s, NULL), KOPT_OK);
    while (asked < plan->budget) {
        if (kp_search_ask(s, config, &waiting)) {
            assert_true(kp_space_rank(t->space, config, &ranks[asked]));
            asked++;
        } else if (waiting) {
            kp_search_tell(s, by_rank(ranks[told++]));
        } else {
            break;
        }
    }
    while (told < asked)
        kp_search_tell(s, by_rank(ranks[told++]));
    kp_search_free(s);
    return asked;
}

/* `n` of the space, each `step` ranks behind the one before it. */
static void fill(struct kp_prior *p, const struct text_space *t, size_t n, uint64_t step)
{
    uint32_t config[KP_PARAMS_MAX];
    uint64_t count = kp_space_count(t->space);
    assert_int_equal(kp_prior_init(p, t->space, n, NULL), KOPT_OK);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(kp_space_at(t->space, i * step % count, config, NULL), KOPT_OK);
        (void)kp_prior_add(p, t->space, config, -(double)i);
    }
}

static void assert_begins_with(const struct text_space *t, const struct plan *plan,
                               const uint64_t *ranks, size_t n)
{
    size_t at = 0;
    uint64_t first = UINT64_MAX;
    if (plan->first && at < n) {
        assert_true(kp_space_rank(t->space, plan->first, &first));
        assert_int_equal(ranks[at++], first);
    }
    for (size_t i = 0; i < plan->prior->n && at < n; i++)
        if (plan->prior->ranks[i] != first)
            assert_int_equal(ranks[at++], plan->prior->ranks[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(ranks[i] != ranks[j]);
}

/* The list first, in its order, then the rest, each once, to the last; whatever the lengths. */
static void the_list_comes_first_and_the_rest_once(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 20, 136};
    static const size_t budgets[] = {1, 9, RUN_MAX};
    static const uint32_t windows[] = {1, 7};
    struct text_space t;
    uint64_t ranks[RUN_MAX];
    size_t n_strategies = 0;
    const struct kp_strategy *list = kp_search_list(&n_strategies);
    text_space_open(&t, small);
    uint64_t count = kp_space_count(t.space);
    assert_int_equal(count, 136);
    for (size_t k = 0; k < 36 * n_strategies; k++) {
        struct kp_prior p;
        uint32_t middle[2];
        struct plan plan = {.strategy = list[k / 36].name,
                            .seed = k,
                            .window = windows[k % 2],
                            .budget = budgets[k / 2 % 3],
                            .prior = &p};
        fill(&p, &t, lengths[k / 6 % 3], 5); /* 5 and 136 have no common divisor */
        assert_int_equal(p.n, lengths[k / 6 % 3]);
        assert_int_equal(kp_space_at(t.space, 10, middle, NULL), KOPT_OK);
        plan.first = k / 18 % 2 ? middle : NULL; /* the third of the list, if it is as long */
        size_t n = run(&t, &plan, ranks);
        assert_int_equal(n, plan.budget < count ? plan.budget : count);
        assert_begins_with(&t, &plan, ranks, n);
        kp_prior_deinit(&p);
    }
    text_space_close(&t);
}

static void a_run_with_a_list_repeats(void **state)
{
    (void)state;
    static uint64_t a[RUN_MAX];
    static uint64_t b[RUN_MAX];
    struct text_space t;
    struct kp_prior p;
    text_space_open(&t, large);
    fill(&p, &t, 20, 997);
    for (size_t k = 0; k < 6; k++) {
        struct plan plan = {.strategy = k % 3 == 0   ? "bayes"
                                        : k % 3 == 1 ? "random"
                                                     : "exhaustive",
                            .seed = 3,
                            .window = 1 + (uint32_t)k,
                            .budget = 90,
                            .prior = &p};
        assert_int_equal(run(&t, &plan, a), 90);
        assert_int_equal(run(&t, &plan, b), 90);
        assert_memory_equal(a, b, 90 * sizeof(a[0]));
        plan.seed = 4;
        assert_int_equal(run(&t, &plan, b), 90);
        assert_memory_equal(a, b, 20 * sizeof(a[0]));
        assert_memory_not_equal(a, b, 90 * sizeof(a[0]));
    }
    kp_prior_deinit(&p);
    text_space_close(&t);
}

/* Nothing leaks, and what began goes on. */
static void no_memory_is_an_error_at_the_start(void **state)
{
    (void)state;
    struct text_space t;
    struct kp_prior p;
    text_space_open(&t, small);
    for (long n = 1;; n++) {
        kp_alloc_fail_at(n);
        kopt_status st = kp_prior_init(&p, t.space, 9, NULL);
        kp_alloc_fail_at(0);
        if (st == KOPT_OK)
            break;
        assert_int_equal(st, KOPT_ENOMEM);
    }
    kp_prior_deinit(&p);
    fill(&p, &t, 60, 5);
    struct kp_search_options o = {.seed = 1, .window = 4, .prior = &p};
    bool worked = false;
    for (long n = 1; !worked; n++) {
        struct kp_search *s = NULL;
        kp_alloc_fail_at(n);
        kopt_status st = kp_search_new("bayes", t.space, &o, &s, NULL);
        kp_alloc_fail_at(0);
        worked = st == KOPT_OK;
        assert_true(worked || st == KOPT_ENOMEM);
        assert_true((s != NULL) == worked);
        kp_search_free(s);
    }
    kp_prior_deinit(&p);
    text_space_close(&t);
}

/* --- results from elsewhere ----------------------------------------------------------------
 */

static void results_are_ordered_and_each_configuration_counts_once(void **state)
{
    (void)state;
    static const uint32_t configs[][2] = {{3, 3},  {1, 2}, {0, 9}, {1, 2}, {5, 2},
                                          {0, 16}, {4, 4}, {2, 2}, {6, 6}, {7, 7}};
    /* {1, 2} twice; {5, 2} breaks the rule; {0, 16} has no such value; {4, 4} failed; the last
     * two are no costs */
    static const double costs[] = {4, 8, 2, 1, 0.5, 0.5, (double)INFINITY, 4, 0, (double)NAN};
    static const uint32_t want[][2] = {{1, 2}, {0, 9}, {3, 3}, {2, 2}, {4, 4}};
    static const double of_best[] = {1, 0.5, 0.25, 0.25, 0};
    struct kp_results results = {configs[0], costs, sizeof(costs) / sizeof(costs[0])};
    struct text_space t;
    struct kp_prior p;
    text_space_open(&t, small);
    assert_int_equal(kp_prior_of_results(&p, t.space, &results, 3, NULL), KOPT_OK);
    assert_true(p.measured);
    assert_int_equal(p.n_first, 3);
    assert_int_equal(p.n, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_memory_equal(p.configs + 2 * i, want[i], sizeof(want[i]));
        assert_int_equal(kp_prior_find(&p, t.space, want[i]), i);
        assert_true(fabs(exp(p.logp[i]) - of_best[i]) < 1e-12);
    }
    kp_prior_deinit(&p);
    text_space_close(&t);
}

static void results_that_say_nothing_are_a_prior_of_none(void **state)
{
    (void)state;
    static const uint32_t configs[][2] = {{5, 2}, {4, 4}, {2, 2}};
    static const double costs[] = {1, -1, (double)INFINITY};
    struct kp_results results = {configs[0], costs, 2};
    struct text_space t;
    struct kp_prior p;
    uint64_t ranks[20];
    text_space_open(&t, small);
    for (size_t i = 0; i < 3; i++) { /* nothing valid, one failure, no results at all */
        results.n = i == 0 ? 2 : i == 1 ? 3 : 0;
        assert_int_equal(kp_prior_of_results(&p, t.space, &results, 3, NULL), KOPT_OK);
        assert_int_equal(p.n, i == 1 ? 1 : 0);
        assert_true(p.n == 0 || isinf(p.logp[0]));
        struct plan plan = {
            .strategy = "bayes", .seed = 1, .window = 2, .budget = 20, .prior = &p};
        assert_int_equal(run(&t, &plan, ranks), 20);
        kp_prior_deinit(&p);
    }
    text_space_close(&t);
}

/* The cheaper half of what there is room for, and the others from the whole rest. */
static void of_too_many_results_the_best_and_some_of_the_rest_stay(void **state)
{
    (void)state;
    enum { N = KP_PRIOR_MAX + 10000 };
    struct text_space t;
    struct kp_prior p;
    text_space_open(&t, large);
    uint32_t *configs = kp_calloc((size_t)N * LARGE_PARAMS, sizeof(*configs));
    double *costs = kp_calloc(N, sizeof(*costs));
    assert_true(configs && costs);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(kp_space_at(t.space, i, configs + i * LARGE_PARAMS, NULL), KOPT_OK);
        costs[i] = (double)(1 + i * 7919 % N); /* each of 1 .. N once */
    }
    struct kp_results results = {configs, costs, N};
    assert_int_equal(kp_prior_of_results(&p, t.space, &results, 10, NULL), KOPT_OK);
    assert_int_equal(p.n, KP_PRIOR_MAX);
    double last = 0;
    for (size_t i = 0; i < p.n; i++) {
        double cost = exp(-p.logp[i]);
        assert_true(cost > last);
        if (i < KP_PRIOR_MAX / 2)
            assert_true(fabs(cost - (double)(i + 1)) < 1e-6 * cost);
        else /* of N - half as many as half: no gap is wider than this */
            assert_true(cost < last + 2.5);
        last = cost;
    }
    assert_true(last > 0.999 * N);
    kp_prior_deinit(&p);
    for (long n = 1;; n++) {
        kp_alloc_fail_at(n);
        kopt_status st = kp_prior_of_results(&p, t.space, &results, 10, NULL);
        kp_alloc_fail_at(0);
        if (st == KOPT_OK)
            break;
        assert_int_equal(st, KOPT_ENOMEM);
        kp_prior_deinit(&p);
    }
    kp_prior_deinit(&p);
    kp_free(configs);
    kp_free(costs);
    text_space_close(&t);
}

/* --- what it is worth --------------------------------------------------------------------- */

/* Evaluations until a cost of at most `goal`; `most` where it was not reached. */
static uint32_t evaluations_to(const struct text_space *t, const struct kp_prior *p,
                               uint64_t seed, uint32_t window, double goal)
{
    enum { MOST = 200 };
    struct kp_search_options o = {.seed = seed, .window = window, .prior = p};
    struct kp_search *s = NULL;
    double flight[16];
    uint32_t asked = 0;
    uint32_t told = 0;
    bool found = false;
    assert_int_equal(kp_search_new("bayes", t->space, &o, &s, NULL), KOPT_OK);
    while (told < MOST && !found) {
        uint32_t config[LARGE_PARAMS];
        bool waiting = false;
        if (kp_search_ask(s, config, &waiting)) {
            flight[asked++ % window] = cost_of(config);
            continue;
        }
        found = flight[told % window] <= goal;
        kp_search_tell(s, flight[told++ % window]);
    }
    kp_search_free(s);
    return told;
}

/* The 20 nearest to a configuration, itself not among them. */
static void around(struct kp_prior *p, const struct text_space *t, const uint32_t *centre)
{
    static const int shifts[5] = {1, -1, 2, -2, 3};
    uint32_t c[LARGE_PARAMS];
    assert_int_equal(kp_prior_init(p, t->space, 20, NULL), KOPT_OK);
    for (int k = 0; k < 5; k++) {
        for (size_t i = 0; i < LARGE_PARAMS; i++) {
            memcpy(c, centre, sizeof(c));
            c[i] += (uint32_t)shifts[k]; /* one below 0 is no valid index */
            (void)kp_prior_add(p, t->space, c, -k);
        }
    }
    assert_int_equal(p->n, 20);
}

/* Mean over seeds, which are fixed: a run is the same on every machine. */
static double mean_evaluations(const struct text_space *t, const struct kp_prior *p)
{
    enum { SEEDS = 3, WINDOW = 4 };
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        sum += evaluations_to(t, p, seed, WINDOW, 1.1);
    return sum / SEEDS;
}

static double with_list_around(const struct text_space *t, const uint32_t *centre)
{
    struct kp_prior p;
    around(&p, t, centre);
    double n = mean_evaluations(t, &p);
    kp_prior_deinit(&p);
    return n;
}

static void a_good_list_is_sooner_and_a_bad_one_costs_its_length(void **state)
{
    (void)state;
    static const uint32_t best[LARGE_PARAMS] = {11, 3, 6, 2, 0, 3}; /* 1; not in the list */
    static const uint32_t near[LARGE_PARAMS] = {12, 4, 6, 2, 1, 3}; /* 1.4; in the list 1.2 */
    static const uint32_t far[LARGE_PARAMS] = {1, 9, 10, 0, 3, 0};  /* 5.7 */
    struct text_space t;
    text_space_open(&t, large);
    double without = mean_evaluations(&t, NULL);
    double good = with_list_around(&t, best);
    double fair = with_list_around(&t, near);
    double bad = with_list_around(&t, far);
    print_message(
        "to within 10 %%: %.1f evaluations without a list, %.1f with a good, %.1f with "
        "a fair, %.1f with a bad one\n",
        without, good, fair, bad);
    assert_true(good <= 20);
    assert_true(fair < without + 20); /* the lists' length */
    assert_true(bad < without + 20);
    text_space_close(&t);
}

/* What the space costs elsewhere, at 400 configurations all over it. `sense` 1: the same, but
 * for a shift of the best block; -1: what is good here is bad there. */
static void measured_elsewhere(struct kp_prior *p, const struct text_space *t, int sense)
{
    enum { N = 400 };
    static uint32_t configs[N][LARGE_PARAMS];
    static double costs[N];
    struct kp_rng rng;
    kp_rng_init(&rng, 7);
    for (size_t i = 0; i < N; i++) {
        kp_space_sample(t->space, &rng, configs[i]);
        uint32_t moved[LARGE_PARAMS];
        memcpy(moved, configs[i], sizeof(moved));
        moved[0] = moved[0] < 17 ? moved[0] + 2 : moved[0];
        double cost = cost_of(moved);
        costs[i] = sense > 0 || isinf(cost) ? cost : 1 / cost;
    }
    struct kp_results results = {configs[0], costs, N};
    assert_int_equal(kp_prior_of_results(p, t->space, &results, 10, NULL), KOPT_OK);
    assert_int_equal(p->n_first, 10);
}

static double with_results(const struct text_space *t, int sense)
{
    struct kp_prior p;
    measured_elsewhere(&p, t, sense);
    double n = mean_evaluations(t, &p);
    kp_prior_deinit(&p);
    return n;
}

static void results_from_elsewhere_help_and_misleading_ones_cost_little(void **state)
{
    (void)state;
    struct text_space t;
    text_space_open(&t, large);
    double without = mean_evaluations(&t, NULL);
    double good = with_results(&t, 1);
    double bad = with_results(&t, -1);
    print_message("to within 10 %%: %.1f evaluations without results from elsewhere, %.1f with "
                  "good, %.1f with misleading ones\n",
                  without, good, bad);
    assert_true(good < without);
    assert_true(bad < without + 20); /* twice those that are handed out first */
    text_space_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_valid_and_distinct),
        cmocka_unit_test(the_list_comes_first_and_the_rest_once),
        cmocka_unit_test(a_run_with_a_list_repeats),
        cmocka_unit_test(no_memory_is_an_error_at_the_start),
        cmocka_unit_test(results_are_ordered_and_each_configuration_counts_once),
        cmocka_unit_test(results_that_say_nothing_are_a_prior_of_none),
        cmocka_unit_test(of_too_many_results_the_best_and_some_of_the_rest_stay),
        cmocka_unit_test(results_from_elsewhere_help_and_misleading_ones_cost_little),
        cmocka_unit_test(a_good_list_is_sooner_and_a_bad_one_costs_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
