/* SPDX-License-Identifier: MIT */
/* The choice of a configuration at run time. */
#include "unit/store/fixture.h"

#include <pthread.h>

/* One measured problem: the configuration is its best. */
static int64_t measured(struct fixture *f, struct kp_subject s, const char *config, double ns,
                        bool race)
{
    int64_t id = make_subject(f, s);
    kopt_result worse = a_result("{\"B\":1}", 2 * ns);
    kopt_result best = a_result(config, ns);
    worse.race = best.race = race;
    int64_t run = make_run(f, id);
    add(f, run, id, worse);
    add(f, run, id, best);
    return id;
}

static struct kp_subject on(const char *device, const char *arch, const char *problem)
{
    struct kp_subject s = a_subject();
    s.device = device;
    s.arch = arch;
    s.problem = problem;
    return s;
}

static struct kp_select *load(struct fixture *f, const char *device)
{
    struct kp_select *sel = NULL;
    ASSERT_OK(f, kp_select_load(f->st, device, &sel, &f->err));
    assert_non_null(sel);
    return sel;
}

static struct kp_selected find(const struct kp_select *sel, int64_t m, int64_t n, int64_t k)
{
    static const char *const names[] = {"M", "N", "K"};
    const int64_t values[] = {m, n, k};
    struct kp_selected out;
    kp_select_find(sel, "gemm", names, values, 3, &out);
    return out;
}

#define P(m, n, k)   "{\"K\":" #k ",\"M\":" #m ",\"N\":" #n "}"
#define NEARLY(a, b) (fabs((a) - (b)) < 1e-12) /* a few operations on doubles near 1 */

static void the_measured_problem_is_found_in_any_order_of_names(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"K", "N", "M"};
    static const int64_t values[] = {3, 2, 1};
    struct kp_selected out;
    measured(f, on("A", "a1", P(1, 2, 3)), "{\"B\":64}", 100, true);
    measured(f, on("A", "a1", P(3, 2, 1)), "{\"B\":32}", 50, false);
    struct kp_select *sel = load(f, "A");
    out = find(sel, 1, 2, 3);
    assert_int_equal(out.how, KP_SELECT_EXACT);
    assert_string_equal(out.config, "{\"B\":64}");
    assert_true(out.confidence == 1 && out.distance == 0 && out.median_ns == 100);
    kp_select_find(sel, "gemm", names, values, 3, &out);
    assert_string_equal(out.config, "{\"B\":64}");
    assert_int_equal(out.how, KP_SELECT_EXACT);
    out = find(sel, 3, 2, 1);
    assert_string_equal(out.config, "{\"B\":32}");
    assert_true(out.confidence == 0.9); /* won no race */
    kp_select_free(sel);
}

static void the_nearest_problem_steps_in(void **state)
{
    struct fixture *f = *state;
    measured(f, on("A", "a1", P(512, 512, 512)), "{\"B\":64}", 100, true);
    measured(f, on("A", "a1", P(4096, 4096, 4096)), "{\"B\":128}", 900, true);
    struct kp_select *sel = load(f, "A");
    struct kp_selected out = find(sel, 1024, 512, 512);
    assert_int_equal(out.how, KP_SELECT_NEAREST);
    assert_string_equal(out.config, "{\"B\":64}");
    assert_true(out.distance == 1 && out.median_ns == 100);
    assert_true(NEARLY(out.confidence, 1.0 / 2 / 2)); /* the neighbour disagrees: a = 0 */
    out = find(sel, 4096, 4096, 2048);
    assert_string_equal(out.config, "{\"B\":128}");
    out = find(sel, 1024, 1024, 1024);
    assert_true(NEARLY(out.distance, sqrt(3)));
    kp_select_free(sel);
}

static void neighbours_that_agree_give_confidence(void **state)
{
    struct fixture *f = *state;
    measured(f, on("A", "a1", P(512, 512, 512)), "{\"B\":64}", 100, true);
    measured(f, on("A", "a1", P(2048, 512, 512)), "{\"B\":64}", 400, true);
    measured(f, on("A", "a1", P(1024, 1024, 1024)), "{\"B\":32}", 800, true);
    struct kp_select *sel = load(f, "A");
    struct kp_selected out = find(sel, 1024, 512, 512);
    double other = 1 / (1 + sqrt(2));
    double agree = 0.5 / (0.5 + other); /* distances 1 and sqrt(2) */
    assert_true(out.distance == 1);
    assert_true(NEARLY(out.confidence, (1 + agree) / 2 / 2));
    assert_true(out.confidence < find(sel, 512, 512, 512).confidence);
    assert_true(find(sel, 8192, 512, 512).confidence < out.confidence);
    kp_select_free(sel);
}

static void another_device_is_the_last_resort_and_its_architecture_counts(void **state)
{
    struct fixture *f = *state;
    struct kp_subject conv = on("A", "a1", "{\"N\":4}");
    conv.kernel = "conv"; /* what tells A's architecture */
    measured(f, conv, "{\"B\":2}", 10, true);
    measured(f, on("C", "c1", P(512, 512, 512)), "{\"B\":8}", 100, true);
    measured(f, on("B", "a1", P(256, 512, 512)), "{\"B\":16}", 50, true);
    struct kp_select *sel = load(f, "A");
    struct kp_selected out = find(sel, 512, 512, 512);
    assert_int_equal(out.how, KP_SELECT_OTHER);
    assert_string_equal(out.config, "{\"B\":16}"); /* same architecture before same problem */
    assert_true(out.distance == 1);
    assert_true(NEARLY(out.confidence, 0.5 / 2 / 2));
    kp_select_free(sel);

    sel = load(f, "unknown");
    out = find(sel, 512, 512, 512);
    assert_int_equal(out.how, KP_SELECT_OTHER);
    assert_string_equal(out.config, "{\"B\":8}");
    assert_true(out.distance == 0);
    assert_true(NEARLY(out.confidence, 0.25 / 2));
    kp_select_free(sel);

    sel = load(f, "B");
    out = find(sel, 4096, 512, 512);
    assert_int_equal(out.how, KP_SELECT_NEAREST);
    assert_string_equal(out.config, "{\"B\":16}"); /* this device, however far */
    kp_select_free(sel);

    sel = load(f, "");
    assert_int_equal(find(sel, 512, 512, 512).how, KP_SELECT_EXACT);
    assert_int_equal(find(sel, 256, 512, 512).how, KP_SELECT_EXACT);
    kp_select_free(sel);
}

static void an_edited_kernel_replaces_its_older_results(void **state)
{
    struct fixture *f = *state;
    struct kp_subject edited = on("A", "a1", P(512, 512, 512));
    kopt_result late = a_result("{\"B\":16}", 300);
    measured(f, edited, "{\"B\":64}", 100, true);
    edited.kernel_hash = "beef";
    int64_t id = make_subject(f, edited);
    late.wall_us += 1000;
    add(f, 0, id, late);
    struct kp_select *sel = load(f, "A");
    assert_string_equal(find(sel, 512, 512, 512).config, "{\"B\":16}");
    /* and the older one is no neighbour either */
    assert_true(NEARLY(find(sel, 1024, 512, 512).confidence, 0.9 / 2 / 2));
    kp_select_free(sel);
}

static void nothing_is_found_where_nothing_fits(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"M", "N"};
    static const char *const twice[] = {"M", "M", "N"};
    static const int64_t values[] = {512, 512, 512};
    struct kp_selected out;
    struct kp_select *sel = load(f, "A"); /* an empty store */
    assert_int_equal(find(sel, 1, 1, 1).how, KP_SELECT_NONE);
    kp_select_free(sel);

    measured(f, on("A", "a1", P(512, 512, 512)), "{\"B\":64}", 100, true);
    int64_t failed = make_subject(f, on("A", "a1", P(7, 7, 7)));
    add(f, 0, failed, a_failure("{\"B\":64}", KOPT_OUT_CRASH));
    measured(f, on("A", "a1", "{\"M\":\"big\",\"N\":1}"), "{\"B\":9}", 100, true);
    measured(f, on("A", "a1", "not JSON"), "{\"B\":9}", 100, true);
    sel = load(f, "A");
    kp_select_find(sel, "gemm", names, values, 2, &out);
    assert_int_equal(out.how, KP_SELECT_NONE);
    assert_string_equal(out.config, "");
    assert_true(out.confidence == 0 && isnan(out.distance) && isnan(out.median_ns));
    kp_select_find(sel, "gemm", twice, values, 3, &out);
    assert_int_equal(out.how, KP_SELECT_NONE);
    kp_select_find(sel, "gemmx", twice, values, 0, &out);
    assert_int_equal(out.how, KP_SELECT_NONE);
    assert_int_equal(find(sel, 7, 7, 7).how, KP_SELECT_NEAREST);
    /* sizes without a logarithm have no neighbours */
    assert_int_equal(find(sel, 0, 512, 512).how, KP_SELECT_NONE);
    assert_int_equal(find(sel, -512, 512, 512).how, KP_SELECT_NONE);
    kp_select_free(sel);
}

static void a_kernel_without_sizes_is_found(void **state)
{
    struct fixture *f = *state;
    struct kp_selected out;
    measured(f, on("A", "a1", "{}"), "{\"B\":64}", 100, true);
    struct kp_select *sel = load(f, "A");
    kp_select_find(sel, "gemm", NULL, NULL, 0, &out);
    assert_int_equal(out.how, KP_SELECT_EXACT);
    assert_string_equal(out.config, "{\"B\":64}");
    kp_select_free(sel);
}

/* --- many ----------------------------------------------------------------------------------
 */

enum { KERNELS = 7, PROBLEMS = 60, THREADS = 4 };

static void *find_all(void *arg)
{
    static const char *const names[] = {"N"};
    const struct kp_select *sel = arg;
    for (int64_t k = 0; k < KERNELS; k++) {
        for (int64_t p = 1; p <= PROBLEMS; p++) {
            char kernel[16];
            char want[32];
            struct kp_selected out;
            (void)snprintf(kernel, sizeof(kernel), "k%d", (int)k);
            (void)snprintf(want, sizeof(want), "{\"B\":%d}", (int)(1000 * k + p));
            kp_select_find(sel, kernel, names, &p, 1, &out);
            if (out.how != KP_SELECT_EXACT || strcmp(out.config, want) != 0)
                return (void *)1;
        }
    }
    return NULL;
}

static void many_kernels_are_kept_apart_and_threads_may_share(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    for (int k = 0; k < KERNELS; k++) {
        for (int p = 1; p <= PROBLEMS; p++) {
            char kernel[16];
            char problem[32];
            char config[32];
            (void)snprintf(kernel, sizeof(kernel), "k%d", k);
            (void)snprintf(problem, sizeof(problem), "{\"N\":%d}", p);
            (void)snprintf(config, sizeof(config), "{\"B\":%d}", 1000 * k + p);
            struct kp_subject s = on("A", "a1", problem);
            s.kernel = kernel;
            add(f, 0, make_subject(f, s), a_result(config, 10));
        }
    }
    struct kp_select *sel = load(f, "A");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_all, sel), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    /* finding allocates nothing: with every allocation failing it still answers */
    kp_alloc_fail_at(1);
    assert_null(find_all(sel));
    kp_alloc_fail_at(0);
    kp_select_free(sel);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_store, fixture_end)
    const struct CMUnitTest tests[] = {
        CASE(the_measured_problem_is_found_in_any_order_of_names),
        CASE(the_nearest_problem_steps_in),
        CASE(neighbours_that_agree_give_confidence),
        CASE(another_device_is_the_last_resort_and_its_architecture_counts),
        CASE(an_edited_kernel_replaces_its_older_results),
        CASE(nothing_is_found_where_nothing_fits),
        CASE(a_kernel_without_sizes_is_found),
        CASE(many_kernels_are_kept_apart_and_threads_may_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
