/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct kp_device_ids IDS;
static kopt_error ERR;

static void names_of_devices_are_read(void **state)
{
    (void)state;
    assert_int_equal(kp_device_ids_parse("cuda:0", &IDS, &ERR), KOPT_OK);
    assert_true(IDS.backend == KP_BACKEND_CUDA && IDS.n == 1 && IDS.index[0] == 0);
    assert_int_equal(kp_device_ids_parse("opencl", &IDS, &ERR), KOPT_OK);
    assert_true(IDS.backend == KP_BACKEND_OPENCL && IDS.n == 1 && IDS.index[0] == 0);
    assert_int_equal(kp_device_ids_parse(" fake:1023 , fake:7,fake", &IDS, &ERR), KOPT_OK);
    assert_true(IDS.backend == KP_BACKEND_FAKE && IDS.n == 3);
    assert_true(IDS.index[0] == 1023 && IDS.index[1] == 7 && IDS.index[2] == 0);
}

static void whatever_else_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } CASES[] = {
        {"", "no such device: "},
        {"gpu", "no such device: gpu"},
        {":0", "no such device: :0"},
        {"cuda:", "no such device: cuda:"},
        {"cuda:x", "no such device: cuda:x"},
        {"cuda:-1", "no such device: cuda:-1"},
        {"cuda:1024", "no such device: cuda:1024"},
        {"cuda:0:1", "no such device: cuda:0:1"},
        {"opencl:0,rubbish", "no such device: rubbish"},
        {"opencl:0,", "no such device: "},
        {"a name of more than sixteen bytes", "no such device: a name of more than"},
        {"cuda:0,opencl:0", "devices of different kinds cannot work together"},
        {"cuda:1,cuda:01", "cuda:01 is named twice"},
        {"cuda,cuda:0", "cuda:0 is named twice"},
        {"fake:0,fake:1,fake:2,fake:3,fake:4,fake:5,fake:6,fake:7,fake:8,fake:9,fake:10,fake:11,"
         "fake:12,fake:13,fake:14,fake:15,fake:16",
         "more than 16 devices"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        assert_int_equal(kp_device_ids_parse(CASES[i].text, &IDS, &ERR), KOPT_EUSAGE);
        if (strncmp(ERR.message, CASES[i].message, strlen(CASES[i].message)) != 0)
            fail_msg("'%s': %s", CASES[i].text, ERR.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_devices_are_read),
        cmocka_unit_test(whatever_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
