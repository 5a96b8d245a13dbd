/* SPDX-License-Identifier: MIT */
#include "search/permute.h"
#include "search/pool.h"

#include "base/alloc.h"
#include "support/test.h"

static void a_permutation_reaches_each_element_once_and_back(void **state)
{
    (void)state;
    static unsigned char seen[1000];
    for (uint64_t n = 1; n <= 1000; n = n < 20 ? n + 1 : n * 3 / 2) {
        struct kp_permute p;
        kp_permute_init(&p, n, n);
        memset(seen, 0, sizeof(seen));
        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = kp_permute_at(&p, i);
            assert_true(x < n);
            assert_int_equal(seen[x]++, 0);
            assert_int_equal(kp_permute_place(&p, x), i);
        }
    }
}

static void the_largest_domains_are_permuted(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63,
                                     (UINT64_C(1) << 62) + 1};
    for (size_t k = 0; k < 4; k++) {
        struct kp_permute p;
        kp_permute_init(&p, sizes[k], 9);
        for (uint64_t i = 0; i < 1000; i++)
            assert_true(kp_permute_place(&p, kp_permute_at(&p, i)) == i);
    }
}

/* The first tenth of the order falls evenly on the tenths of the domain: 1,000 in each within
 * 6 standard deviations (30). */
static void a_part_of_the_order_covers_the_domain_evenly(void **state)
{
    (void)state;
    int hits[10] = {0};
    struct kp_permute p;
    kp_permute_init(&p, 100000, 4);
    for (uint64_t i = 0; i < 10000; i++)
        hits[kp_permute_at(&p, i) / 10000]++;
    for (int k = 0; k < 10; k++)
        assert_in_range(hits[k], 820, 1180);
}

static struct kp_pool *pool_of(uint64_t n, uint64_t max_kept)
{
    struct kp_pool *p = NULL;
    assert_int_equal(kp_pool_new(n, 7, max_kept, &p, NULL), KOPT_OK);
    return p;
}

/* Takes some by hand, draws the others, for every point at which keeping may end. */
static void every_rank_leaves_the_pool_once(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (uint64_t max_kept = 0; max_kept <= 100; max_kept += 10) {
        unsigned char seen[97] = {0};
        struct kp_pool *p = pool_of(97, max_kept);
        uint64_t rank = 0;
        for (uint64_t k = 0; k < 97; k++) {
            uint64_t wanted = k * 31 % 97;
            assert_int_equal(kp_pool_left(p), 97 - k);
            assert_int_equal(kp_pool_has(p, wanted), !seen[wanted]);
            assert_true(kp_pool_peek(p, &rng, &rank));
            assert_int_equal(seen[rank], 0);
            if (k % 2 && kp_pool_take(p, wanted))
                rank = wanted;
            else
                assert_true(kp_pool_draw(p, &rng, &rank));
            assert_int_equal(seen[rank]++, 0);
            assert_false(kp_pool_has(p, rank));
            assert_false(kp_pool_take(p, rank));
        }
        assert_false(kp_pool_draw(p, &rng, &rank));
        assert_false(kp_pool_peek(p, &rng, &rank));
        kp_pool_free(p);
    }
}

static void a_swept_pool_gives_no_rank_on_request(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    struct kp_pool *p = pool_of(50, 1000);
    assert_true(kp_pool_take(p, 20));
    kp_pool_sweep(p);
    assert_true(kp_pool_has(p, 21));
    assert_false(kp_pool_take(p, 21));
    int drawn = 0;
    uint64_t rank = 0;
    for (; kp_pool_draw(p, &rng, &rank); drawn++)
        assert_int_not_equal(rank, 20);
    assert_int_equal(drawn, 49);
    kp_pool_free(p);
}

/* Each of the 6 orders of 3 ranks comes up 1,000 times in 6,000, within 6 standard deviations
 * (29): a draw is uniform to the last. */
static void draws_are_uniform_over_orders(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 2);
    int orders[27] = {0};
    for (int k = 0; k < 6000; k++) {
        struct kp_pool *p = pool_of(3, 1000);
        uint64_t code = 0;
        uint64_t rank = 0;
        while (kp_pool_draw(p, &rng, &rank))
            code = code * 3 + rank;
        orders[code]++;
        kp_pool_free(p);
    }
    static const int codes[] = {5, 7, 11, 15, 19, 21};
    for (int k = 0; k < 6; k++)
        assert_in_range(orders[codes[k]], 826, 1174);
}

static void pools_of_the_largest_size_work(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 3);
    struct kp_pool *p = pool_of(UINT64_MAX, 100);
    uint64_t rank = 0;
    assert_true(kp_pool_take(p, UINT64_MAX - 1));
    assert_true(kp_pool_take(p, 0));
    assert_false(kp_pool_has(p, UINT64_MAX - 1));
    assert_false(kp_pool_has(p, UINT64_MAX));
    for (int i = 0; i < 300; i++)
        assert_true(kp_pool_draw(p, &rng, &rank));
    assert_true(kp_pool_left(p) == UINT64_MAX - 302);
    kp_pool_free(p);
}

static void an_empty_pool_gives_nothing(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    struct kp_pool *p = pool_of(0, 10);
    uint64_t rank = 0;
    kp_pool_sweep(p);
    assert_false(kp_pool_draw(p, &rng, &rank));
    assert_false(kp_pool_peek(p, &rng, &rank));
    assert_false(kp_pool_has(p, 0));
    kp_pool_free(p);
}

/* Without memory the pool stops keeping and goes on giving. */
static void no_memory_makes_it_sweep(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (long n = 1; n <= 12; n++) {
        unsigned char seen[500] = {0};
        struct kp_pool *p = pool_of(500, 1000);
        kp_alloc_fail_at(n);
        uint64_t rank = 0;
        for (int i = 0; i < 500; i++) {
            assert_true(kp_pool_draw(p, &rng, &rank));
            assert_int_equal(seen[rank]++, 0);
        }
        kp_alloc_fail_at(0);
        assert_false(kp_pool_draw(p, &rng, &rank));
        kp_pool_free(p);
    }
    struct kp_pool *none = NULL;
    kp_alloc_fail_at(1);
    assert_int_equal(kp_pool_new(5, 1, 5, &none, NULL), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_permutation_reaches_each_element_once_and_back),
        cmocka_unit_test(the_largest_domains_are_permuted),
        cmocka_unit_test(a_part_of_the_order_covers_the_domain_evenly),
        cmocka_unit_test(every_rank_leaves_the_pool_once),
        cmocka_unit_test(a_swept_pool_gives_no_rank_on_request),
        cmocka_unit_test(draws_are_uniform_over_orders),
        cmocka_unit_test(pools_of_the_largest_size_work),
        cmocka_unit_test(an_empty_pool_gives_nothing),
        cmocka_unit_test(no_memory_makes_it_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
