/* SPDX-License-Identifier: MIT */
#include "space/kernel.h"
#include "support/test.h"
#include "tune/asker.h"

#include <math.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { N_CONFIGS = 7 * 5, WINDOW = 4 };

static const char text[] = "#pragma kopt kernel k\n"
                           "#pragma kopt param A {0..6}  B {0..4}\n"
                           "#pragma kopt block 16\n"
                           "#pragma kopt grid 4\n"
                           "#pragma kopt arg b f32[64] out\n"
                           "kernel void k(global float *b) {}\n";

struct fixture {
    struct kp_kernel *kernel;
    struct kp_bound *bound;
    int fd;
};

static int set_up(void **state)
{
    static struct fixture f;
    assert_int_equal(kp_kernel_parse("k.cl", KP_STR(text), &f.kernel, NULL), KOPT_OK);
    assert_int_equal(kp_kernel_bind(f.kernel, NULL, 0, NULL, &f.bound, NULL), KOPT_OK);
    f.fd = eventfd(0, EFD_CLOEXEC);
    assert_true(f.fd >= 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    kp_bound_free(f->bound);
    kp_kernel_free(f->kernel);
    return close(f->fd);
}

static struct kp_search *new_search(const struct fixture *f, const char *name)
{
    struct kp_search *s = NULL;
    struct kp_search_options o = {.seed = 3, .window = WINDOW};
    assert_int_equal(kp_search_new(name, f->bound->space, &o, &s, NULL), KOPT_OK);
    return s;
}

static double cost_of(const uint32_t *config)
{
    return 1000 - 10.0 * config[0] - config[1];
}

/* Blocks until the answer is there. */
static enum kp_answer take(const struct fixture *f, struct kp_asker *a, uint32_t *config)
{
    enum kp_answer what;
    while ((what = kp_asker_take(a, config)) == KP_ANSWER_NONE) {
        eventfd_t n;
        assert_int_equal(eventfd_read(f->fd, &n), 0);
    }
    return what;
}

/* WINDOW asks, then a tell and an ask in turn: the whole space, on the thread. */
static void run_threaded(const struct fixture *f, const char *name, uint32_t (*out)[2])
{
    struct kp_search *s = new_search(f, name);
    struct kp_asker *a = NULL;
    uint32_t config[KP_PARAMS_MAX];
    size_t told = 0;
    size_t n = 0;
    assert_int_equal(kp_asker_new(s, 2, f->fd, &a, NULL), KOPT_OK);
    for (int i = 0; i < WINDOW; i++)
        kp_asker_ask(a);
    while (take(f, a, config) == KP_ANSWER_CONFIG) {
        assert_true(n < N_CONFIGS);
        memcpy(out[n++], config, 2 * sizeof(config[0]));
        kp_asker_tell(a, cost_of(out[told++]));
        kp_asker_ask(a);
    }
    assert_int_equal(n, N_CONFIGS);
    assert_true(kp_asker_busy_ns(a) > 0);
    kp_asker_free(a);
    kp_search_free(s);
}

static void the_thread_gives_what_the_strategy_gives(void **state)
{
    const struct fixture *f = *state;
    static const char *const names[] = {"random", "exhaustive", NULL};
    for (int k = 0; k < 3; k++) {
        uint32_t threaded[N_CONFIGS][2];
        uint32_t plain[KP_PARAMS_MAX];
        uint32_t order[N_CONFIGS][2];
        struct kp_search *s = new_search(f, names[k]);
        bool waiting;
        run_threaded(f, names[k], threaded);
        for (size_t n = 0; n < N_CONFIGS; n++) {
            if (n >= WINDOW)
                kp_search_tell(s, cost_of(order[n - WINDOW]));
            assert_true(kp_search_ask(s, plain, &waiting));
            memcpy(order[n], plain, 2 * sizeof(plain[0]));
            assert_memory_equal(order[n], threaded[n], sizeof(order[n]));
        }
        kp_search_free(s);
    }
}

static void it_can_be_freed_with_work_left(void **state)
{
    const struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        struct kp_search *s = new_search(f, NULL);
        struct kp_asker *a = NULL;
        assert_int_equal(kp_asker_new(s, 2, f->fd, &a, NULL), KOPT_OK);
        for (int k = 0; k < i; k++)
            kp_asker_ask(a);
        kp_asker_free(a);
        kp_search_free(s);
    }
    kp_asker_free(NULL);
}

static void settling_waits_for_every_answer(void **state)
{
    const struct fixture *f = *state;
    struct kp_search *s = new_search(f, "random");
    struct kp_asker *a = NULL;
    uint32_t config[KP_PARAMS_MAX];
    assert_int_equal(kp_asker_new(s, 2, f->fd, &a, NULL), KOPT_OK);
    for (int i = 0; i < WINDOW; i++)
        kp_asker_ask(a);
    kp_asker_settle(a);
    for (int i = 0; i < WINDOW; i++)
        assert_int_equal(kp_asker_take(a, config), KP_ANSWER_CONFIG);
    assert_int_equal(kp_asker_take(a, config), KP_ANSWER_NONE);
    assert_false(kp_asker_waits(a));
    kp_asker_free(a);
    kp_search_free(s);
}

/* There is an estimate from 20 results on: ask number 20 + WINDOW is the first behind them. */
static void asks_end_when_little_remains(void **state)
{
    const struct fixture *f = *state;
    struct kp_search *s = NULL;
    struct kp_asker *a = NULL;
    uint32_t config[KP_PARAMS_MAX];
    double costs[N_CONFIGS];
    size_t n = 0;
    size_t told = 0;
    struct kp_search_options o = {.seed = 3, .window = WINDOW, .remaining = true};
    assert_int_equal(kp_search_new("random", f->bound->space, &o, &s, NULL), KOPT_OK);
    assert_int_equal(kp_asker_new(s, 2, f->fd, &a, NULL), KOPT_OK);
    kp_asker_until(a, 0.99);
    assert_true(isnan(kp_asker_remaining(a)));
    for (int i = 0; i < WINDOW; i++)
        kp_asker_ask(a);
    while (take(f, a, config) == KP_ANSWER_CONFIG) {
        costs[n++] = cost_of(config);
        kp_asker_tell(a, costs[told++]);
        kp_asker_ask(a);
    }
    assert_int_equal(n, 20 + WINDOW - 1);
    assert_true(kp_asker_ended(a));
    kp_asker_settle(a);
    assert_true(kp_asker_remaining(a) > 0 && kp_asker_remaining(a) < 0.99);
    kp_asker_free(a);
    kp_search_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thread_gives_what_the_strategy_gives),
        cmocka_unit_test(it_can_be_freed_with_work_left),
        cmocka_unit_test(settling_waits_for_every_answer),
        cmocka_unit_test(asks_end_when_little_remains),
    };
    return cmocka_run_group_tests_name("tune/asker", tests, set_up, tear_down);
}
