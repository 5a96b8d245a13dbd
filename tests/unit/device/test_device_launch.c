/* SPDX-License-Identifier: MIT */
#include "device/device.h"
#include "device/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct kp_limits LIMITS = {
    .max_threads = 1024, .max_block = {1024, 512, 64}, .shared_bytes = 49152};

static void expect(const struct kp_limits *limits, const struct kp_module_info *info,
                   const struct kp_launch *l, const char *message)
{
    kopt_error err = {0};
    kopt_status st = kp_launch_fits(limits, info, l, &err);
    if (!message) {
        if (st != KOPT_OK)
            fail_msg("refused: %s", err.message);
        return;
    }
    assert_int_equal(st, KOPT_ERANGE);
    assert_string_equal(err.message, message);
    assert_int_equal(kp_launch_fits(limits, info, l, NULL), KOPT_ERANGE);
}

static void the_largest_launch_fits_and_one_more_does_not(void **state)
{
    (void)state;
    struct kp_launch l = {.grid = {INT32_MAX, INT32_MAX, INT32_MAX}, .block = {16, 16, 4}};
    expect(&LIMITS, NULL, &l, NULL);
    l.block[0] = 17;
    expect(&LIMITS, NULL, &l, "work-items of a group: 1088 of 1024 (block 17x16x4)");
    l = (struct kp_launch){.grid = {1, 1, 1}, .block = {1, 512, 1}};
    expect(&LIMITS, NULL, &l, NULL);
    l.block[1] = 513;
    expect(&LIMITS, NULL, &l, "block size y: 513 of 512");
    l.block[1] = 0;
    expect(&LIMITS, NULL, &l, "block size y is 0");
    l.block[1] = 1;
    l.grid[2] = 0;
    expect(&LIMITS, NULL, &l, "grid size z is 0");
    l.grid[2] = (uint32_t)INT32_MAX + 1;
    expect(&LIMITS, NULL, &l, "grid size z: 2147483648 of 2147483647 groups");
}

static void a_product_past_64_bits_is_still_too_much(void **state)
{
    (void)state;
    const struct kp_limits any = {.max_threads = 1024};
    const struct kp_launch l = {.grid = {1, 1, 1},
                                .block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    expect(&any, NULL, &l,
           "work-items of a group: 18446744073709551615 of 1024 (block "
           "4294967295x4294967295x4294967295)");
}

static void the_kernels_own_limit_counts(void **state)
{
    (void)state;
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {512, 1, 1}};
    struct kp_module_info info = {.registers = 128, .max_threads = 512};
    expect(&LIMITS, &info, &l, NULL);
    info.max_threads = 448;
    expect(&LIMITS, &info, &l,
           "work-items of a group: 512 of 448 that this kernel allows (block 512x1x1)");
    info.max_threads = -1;
    expect(&LIMITS, &info, &l, NULL);
}

static void all_shared_memory_is_added_up(void **state)
{
    (void)state;
    struct kp_launch_arg args[3] = {{.space = KP_SPACE_SHARED, .bytes = 1000},
                                    {.space = KP_SPACE_GLOBAL, .bytes = 1 << 20},
                                    {.space = KP_SPACE_SHARED, .bytes = 24}};
    struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = 128, .args = args, .n_args = 3};
    struct kp_module_info info = {.shared_bytes = 49152 - 1152};
    expect(&LIMITS, &info, &l, NULL);
    info.shared_bytes++;
    expect(&LIMITS, &info, &l,
           "shared memory 49153 of 49152 bytes (48001 static, 1152 dynamic)");
    info.shared_bytes = -1;
    expect(&LIMITS, &info, &l, NULL);
    args[0].bytes = SIZE_MAX;
    assert_int_equal(kp_launch_fits(&LIMITS, &info, &l, NULL), KOPT_ERANGE);
    args[0].bytes = 0;
    expect(&LIMITS, &info, &l, "argument 1: local memory of 0 bytes");
}

static void unknown_limits_limit_nothing(void **state)
{
    (void)state;
    const struct kp_limits none = {0};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {5000, 5000, 5000}, .shared_bytes = 1 << 30};
    expect(&none, NULL, &l, NULL);
}

static void backends_have_names(void **state)
{
    (void)state;
    for (int b = 0; b < KP_BACKEND_COUNT; b++) {
        enum kp_backend found = KP_BACKEND_COUNT;
        assert_true(kp_backend_from_name(kp_backend_name((enum kp_backend)b), &found));
        assert_int_equal(found, b);
    }
    enum kp_backend found = KP_BACKEND_FAKE;
    assert_false(kp_backend_from_name("hip", &found));
    assert_false(kp_backend_from_name("", &found));
    assert_false(kp_backend_from_name("CUDA", &found));
    assert_int_equal(found, KP_BACKEND_FAKE);
    assert_string_equal(kp_backend_name(KP_BACKEND_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_launch_fits_and_one_more_does_not),
        cmocka_unit_test(a_product_past_64_bits_is_still_too_much),
        cmocka_unit_test(the_kernels_own_limit_counts),
        cmocka_unit_test(all_shared_memory_is_added_up),
        cmocka_unit_test(unknown_limits_limit_nothing),
        cmocka_unit_test(backends_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
