/* SPDX-License-Identifier: MIT */
#include "space/transfer.h"

#include "base/alloc.h"
#include "space/kernel.h"
#include "support/test.h"

#define KERNEL                         \
    "#pragma kopt kernel k\n"          \
    "#pragma kopt lang opencl\n"       \
    "#pragma kopt block 16\n"          \
    "#pragma kopt grid 1\n"            \
    "#pragma kopt arg b f32[16] out\n" \
    "kernel void k(global float *b) {}\n"

struct bound {
    struct kp_kernel *kernel;
    struct kp_bound *bound;
};

static const struct kp_space *bind(struct bound *b, const char *text)
{
    kopt_error err = {0};
    *b = (struct bound){0};
    if (kp_kernel_parse("k.cl", kp_str_from(text), &b->kernel, &err) != KOPT_OK ||
        kp_kernel_bind(b->kernel, NULL, 0, NULL, &b->bound, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return b->bound->space;
}

static void unbind(struct bound *b)
{
    kp_bound_free(b->bound);
    kp_kernel_free(b->kernel);
}

static void configurations_go_over_by_names_and_values(void **state)
{
    (void)state;
    struct bound a;
    struct bound b;
    struct kp_transfer *t = NULL;
    const struct kp_space *from =
        bind(&a, "#pragma kopt param A {1,2,4} B {true,false} C {\"x\",\"y\"}\n" KERNEL);
    const struct kp_space *to =
        bind(&b, "#pragma kopt param C {\"y\",\"z\"} A {4.0,2.0} B {0,1,2}\n" KERNEL);
    assert_int_equal(kp_transfer_new(from, to, &t, NULL), KOPT_OK);
    uint32_t out[3];
    assert_true(kp_transfer_config(t, (const uint32_t[]){2, 0, 1}, out));
    assert_int_equal(out[0], 0); /* C: y */
    assert_int_equal(out[1], 0); /* A: 4 */
    assert_int_equal(out[2], 1); /* B: 1 is true */
    assert_true(kp_transfer_config(t, (const uint32_t[]){1, 1, 1}, out));
    assert_int_equal(out[1], 1);
    assert_int_equal(out[2], 0);
    assert_false(kp_transfer_config(t, (const uint32_t[]){0, 0, 1}, out)); /* A: 1 */
    assert_false(kp_transfer_config(t, (const uint32_t[]){2, 0, 0}, out)); /* C: x */
    kp_transfer_free(t);
    unbind(&a);
    unbind(&b);
}

static void refuse(const char *from_text, const char *to_text, const char *words)
{
    struct bound a;
    struct bound b;
    struct kp_transfer *t = NULL;
    kopt_error err = {0};
    const struct kp_space *from = bind(&a, from_text);
    const struct kp_space *to = bind(&b, to_text);
    assert_int_equal(kp_transfer_new(from, to, &t, &err), KOPT_EINPUT);
    assert_null(t);
    if (!strstr(err.message, words))
        fail_msg("'%s' is not in '%s'", words, err.message);
    unbind(&a);
    unbind(&b);
}

static void other_parameters_are_refused(void **state)
{
    (void)state;
    refuse("#pragma kopt param A {1}\n" KERNEL, "#pragma kopt param A {1} B {1}\n" KERNEL,
           "it has no parameter 'B'");
    refuse("#pragma kopt param A {1} B {1}\n" KERNEL, "#pragma kopt param A {1}\n" KERNEL,
           "its parameter 'B' is not in the space");
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct bound a;
    struct kp_transfer *t = NULL;
    const struct kp_space *s = bind(&a, "#pragma kopt param A {1,2}\n" KERNEL);
    for (long n = 1; n <= 2; n++) {
        kp_alloc_fail_at(n);
        assert_int_equal(kp_transfer_new(s, s, &t, NULL), KOPT_ENOMEM);
        assert_null(t);
    }
    kp_alloc_fail_at(0);
    kp_transfer_free(NULL);
    unbind(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_go_over_by_names_and_values),
        cmocka_unit_test(other_parameters_are_refused),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
