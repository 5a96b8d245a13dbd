/* SPDX-License-Identifier: MIT */
/* Whose results a session begins with. */
#include "tune/nearest.h"

#include "unit/store/fixture.h"

#define KERNEL                         \
    "#pragma kopt kernel gemm\n"       \
    "#pragma kopt lang opencl\n"       \
    "#pragma kopt problem M N\n"       \
    "#pragma kopt block 16\n"          \
    "#pragma kopt grid 1\n"            \
    "#pragma kopt arg b f32[16] out\n" \
    "kernel void gemm(global float *b) {}\n"
#define PARAMS "#pragma kopt param X {0,1,2,3,4,5,6,7,8,9,10,11} BM {8,16}\n"

struct bound {
    struct kp_kernel *kernel;
    struct kp_bound *bound;
};

static void bind(struct bound *b, const char *text)
{
    static const char *const problem[] = {"M=512", "N=512"};
    kopt_error err = {0};
    *b = (struct bound){0};
    if (kp_kernel_parse("k.cl", kp_str_from(text), &b->kernel, &err) != KOPT_OK ||
        kp_kernel_bind(b->kernel, problem, 2, NULL, &b->bound, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static void unbind(struct bound *b)
{
    kp_bound_free(b->bound);
    kp_kernel_free(b->kernel);
}

/* n configurations X=from.. with BM=bm; X=best is the fastest. */
static void add_results(struct fixture *f, int64_t subject, int from, int n, int best, int bm)
{
    int64_t run = make_run(f, subject);
    for (int x = from; x < from + n; x++) {
        char config[64];
        (void)snprintf(config, sizeof(config), "{\"BM\":%d,\"X\":%d}", bm, x);
        (void)add(f, run, subject, a_result(config, 1000 + 10 * abs(x - best)));
    }
}

static struct kp_subject own(void)
{
    struct kp_subject s = a_subject();
    s.problem = "{\"M\":512,\"N\":512}";
    return s;
}

static int64_t other(struct fixture *f, const char *problem, const char *device,
                     const char *arch)
{
    struct kp_subject s = own();
    s.problem = problem;
    s.device = device;
    s.arch = arch;
    return make_subject(f, s);
}

static void find(struct fixture *f, const char *text, struct kp_predictions *out)
{
    struct bound b;
    struct kp_subject mine = own();
    *out = (struct kp_predictions){0};
    bind(&b, text);
    ASSERT_OK(f, kp_nearest_prior(f->st, b.bound, &mine, out, &f->err));
    unbind(&b);
}

static void drop(struct kp_predictions *p)
{
    kp_prior_deinit(&p->prior);
    kp_free(p->of);
    *p = (struct kp_predictions){0};
}

/* Whose results are found, and X of the best. */
static void expect(struct fixture *f, const char *of, uint32_t best)
{
    struct kp_predictions p;
    find(f, PARAMS KERNEL, &p);
    if (!of) {
        assert_null(p.of);
        assert_int_equal(p.prior.n, 0);
    } else {
        assert_non_null(p.of);
        assert_string_equal(p.of, of);
        assert_true(p.prior.measured);
        assert_int_equal(p.prior.configs[0], best);
        assert_true(p.prior.logp[0] == 0);
    }
    drop(&p);
}

/* --- tests -------------------------------------------------------------------------------- */

static void an_empty_store_has_none(void **state)
{
    expect(*state, NULL, 0);
}

static void the_nearest_problem_counts(void **state)
{
    struct fixture *f = *state;
    add_results(f, other(f, "{\"M\":4096,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 3, 8);
    expect(f, "gemm M=4096 N=512 on Fake 1", 3);
    add_results(f, other(f, "{\"M\":1024,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 4, 8);
    expect(f, "gemm M=1024 N=512 on Fake 1", 4);
    /* log2 counts: 256 is as far as 1024, and 300 is nearer than either. */
    add_results(f, other(f, "{\"M\":300,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 5, 8);
    expect(f, "gemm M=300 N=512 on Fake 1", 5);
    /* Both sizes: 0.585 each, 0.83 together, is farther than 300's 0.77. */
    add_results(f, other(f, "{\"M\":768,\"N\":768}", "Fake 1", "fake_1"), 0, 12, 6, 8);
    expect(f, "gemm M=300 N=512 on Fake 1", 5);
}

static void this_device_comes_first(void **state)
{
    struct fixture *f = *state;
    add_results(f, other(f, "{\"M\":512,\"N\":512}", "Other", "zen"), 0, 12, 1, 8);
    expect(f, "gemm M=512 N=512 on Other", 1);
    add_results(f, other(f, "{\"M\":640,\"N\":512}", "Fake 1b", "fake_1"), 0, 12, 2, 8);
    expect(f, "gemm M=640 N=512 on Fake 1b", 2);
    add_results(f, other(f, "{\"M\":9000,\"N\":9000}", "Fake 1", "fake_1"), 0, 12, 3, 8);
    expect(f, "gemm M=9000 N=9000 on Fake 1", 3);
}

static void a_device_without_an_architecture_is_like_no_other(void **state)
{
    struct fixture *f = *state;
    struct bound b;
    struct kp_predictions p = {0};
    struct kp_subject mine = own();
    mine.arch = "";
    bind(&b, PARAMS KERNEL);
    add_results(f, other(f, "{\"M\":640,\"N\":512}", "Nameless", ""), 0, 12, 2, 8);
    add_results(f, other(f, "{\"M\":512,\"N\":512}", "Other", "zen"), 0, 12, 1, 8);
    ASSERT_OK(f, kp_nearest_prior(f->st, b.bound, &mine, &p, &f->err));
    assert_string_equal(p.of, "gemm M=512 N=512 on Other");
    drop(&p);
    unbind(&b);
}

static void of_equally_near_ones_the_larger_counts(void **state)
{
    struct fixture *f = *state;
    add_results(f, other(f, "{\"M\":1024,\"N\":512}", "Fake 1", "fake_1"), 0, 11, 1, 8);
    add_results(f, other(f, "{\"M\":256,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 2, 8);
    add_results(f, other(f, "{\"M\":512,\"N\":1024}", "Fake 1", "fake_1"), 0, 11, 3, 8);
    expect(f, "gemm M=256 N=512 on Fake 1", 2);
}

static void the_subject_itself_is_never_its_own_prior(void **state)
{
    struct fixture *f = *state;
    struct kp_subject s = own();
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    expect(f, NULL, 0);
    s.kernel_hash = "0100";
    add_results(f, make_subject(f, s), 0, 12, 2, 8);
    expect(f, "gemm M=512 N=512 on Fake 1, of another source", 2);
}

static void other_tools_or_data_are_another_subject(void **state)
{
    struct fixture *f = *state;
    struct kp_subject s = own();
    s.driver = "1.1";
    add_results(f, make_subject(f, s), 0, 12, 2, 8);
    expect(f, "gemm M=512 N=512 on Fake 1, under other conditions", 2);
}

static void few_results_are_of_no_use(void **state)
{
    struct fixture *f = *state;
    int64_t near = other(f, "{\"M\":600,\"N\":512}", "Fake 1", "fake_1");
    int64_t run = make_run(f, near);
    add_results(f, near, 0, 9, 1, 8);
    (void)add(f, run, near, a_failure("{\"BM\":8,\"X\":9}", KOPT_OUT_CRASH));
    (void)add(f, run, near, a_failure("{\"BM\":8,\"X\":10}", KOPT_OUT_WRONG));
    expect(f, NULL, 0);
    add_results(f, other(f, "{\"M\":8192,\"N\":512}", "Fake 1", "fake_1"), 0, 10, 2, 8);
    expect(f, "gemm M=8192 N=512 on Fake 1", 2);
    add_results(f, near, 11, 1, 1, 8);
    expect(f, "gemm M=600 N=512 on Fake 1", 1);
}

/* Ten successes, but only eight of them in this space: the next nearest has more. */
static void results_outside_the_space_do_not_count(void **state)
{
    struct fixture *f = *state;
    int64_t near = other(f, "{\"M\":600,\"N\":512}", "Fake 1", "fake_1");
    add_results(f, near, 4, 8, 5, 8);
    add_results(f, near, 0, 4, 0, 32);
    expect(f, NULL, 0);
    add_results(f, other(f, "{\"M\":700,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 7, 16);
    expect(f, "gemm M=700 N=512 on Fake 1", 7);
    add_results(f, near, 0, 4, 0, 8);
    struct kp_predictions p;
    find(f, PARAMS KERNEL, &p);
    assert_string_equal(p.of, "gemm M=600 N=512 on Fake 1");
    assert_int_equal(p.prior.n, 12);
    drop(&p);
    /* A rule takes some away, too. */
    find(f, "#pragma kopt require X < 5\n" PARAMS KERNEL, &p);
    assert_null(p.of);
    drop(&p);
}

static void other_kernels_and_parameters_are_not_taken(void **state)
{
    struct fixture *f = *state;
    struct kp_subject s = own();
    s.problem = "{\"M\":600,\"N\":512}";
    s.kernel = "gemm2";
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    s.kernel = "gemm";
    s.params = "[\"X\",\"BN\"]";
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    s.problem = "{\"M\":601,\"N\":512}";
    s.params = "[\"X\",\"BM\",\"BN\"]";
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    s.problem = "{\"M\":602,\"N\":512}";
    s.params = "no list";
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    s.params = "[\"BM\",\"X\"]";
    s.problem = "{\"M\":512,\"N\":512,\"K\":512}";
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    s.problem = "{\"M\":512.5,\"N\":512}";
    add_results(f, make_subject(f, s), 0, 12, 1, 8);
    expect(f, NULL, 0);
    s.problem = "{\"N\":5000,\"M\":5000}"; /* names in any order */
    add_results(f, make_subject(f, s), 0, 12, 2, 8);
    expect(f, "gemm N=5000 M=5000 on Fake 1", 2);
    s.problem = "{\"M\":511,\"N\":511}";
    s.params = ""; /* its results tell */
    add_results(f, make_subject(f, s), 0, 12, 3, 8);
    expect(f, "gemm M=511 N=511 on Fake 1", 3);
}

static void the_newest_result_of_each_counts(void **state)
{
    struct fixture *f = *state;
    int64_t near = other(f, "{\"M\":600,\"N\":512}", "Fake 1", "fake_1");
    int64_t run = make_run(f, near);
    add_results(f, near, 0, 12, 5, 8);
    (void)add(f, run, near, a_result("{\"BM\":8,\"X\":5}", 5000));
    (void)add(f, run, near, a_failure("{\"BM\":8,\"X\":4}", KOPT_OUT_CRASH));
    struct kp_predictions p;
    find(f, PARAMS KERNEL, &p);
    assert_int_equal(p.prior.n, 12);
    assert_int_equal(p.prior.configs[0], 6);
    assert_int_equal(p.prior.configs[11 * 2], 4);
    assert_true(p.prior.logp[11] == -(double)INFINITY);
    assert_int_equal(p.prior.configs[10 * 2], 5);
    assert_true(p.prior.logp[10] < -1.5 && p.prior.logp[10] > -1.7); /* ln(1010/5000) */
    drop(&p);
}

static void small_spaces_need_none(void **state)
{
    struct fixture *f = *state;
    struct kp_predictions p;
    add_results(f, other(f, "{\"M\":600,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 5, 8);
    find(f, "#pragma kopt param X {0,1,2,3,4,5,6,7,8} BM {8}\n" KERNEL, &p);
    assert_null(p.of);
    drop(&p);
}

static void every_failing_allocation_is_clean(void **state)
{
    struct fixture *f = *state;
    struct bound b;
    struct kp_subject mine = own();
    struct kp_predictions p = {0};
    bind(&b, PARAMS KERNEL);
    add_results(f, other(f, "{\"M\":600,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 5, 8);
    add_results(f, other(f, "{\"M\":900,\"N\":512}", "Fake 1", "fake_1"), 0, 12, 5, 8);
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    while (st == KOPT_ENOMEM && n < 1000) {
        kp_alloc_fail_at(++n);
        st = kp_nearest_prior(f->st, b.bound, &mine, &p, &f->err);
        kp_alloc_fail_at(0);
        if (st == KOPT_OK)
            assert_string_equal(p.of, "gemm M=600 N=512 on Fake 1");
        drop(&p);
    }
    assert_int_equal(st, KOPT_OK);
    assert_true(n > 10);
    unbind(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_store, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_store_has_none),
        TEST(the_nearest_problem_counts),
        TEST(this_device_comes_first),
        TEST(a_device_without_an_architecture_is_like_no_other),
        TEST(of_equally_near_ones_the_larger_counts),
        TEST(the_subject_itself_is_never_its_own_prior),
        TEST(other_tools_or_data_are_another_subject),
        TEST(few_results_are_of_no_use),
        TEST(results_outside_the_space_do_not_count),
        TEST(other_kernels_and_parameters_are_not_taken),
        TEST(the_newest_result_of_each_counts),
        TEST(small_spaces_need_none),
        TEST(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
