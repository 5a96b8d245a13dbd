/* SPDX-License-Identifier: MIT */
/* What the tests of devices have in common. Each is one program: everything here is static. */
#ifndef KOPT_TESTS_DEVICE_SUPPORT_H
#define KOPT_TESTS_DEVICE_SUPPORT_H

#include "device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static kopt_error ERR;

/* The call, which fills ERR, must succeed. */
#define OK(call)                                                             \
    do {                                                                     \
        kopt_status status_ = (call);                                        \
        if (status_ != KOPT_OK)                                              \
            fail_msg("%s: status %d: %s", #call, (int)status_, ERR.message); \
    } while (0)

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* A launch's arguments: a buffer, and a variable of any type. */
static inline struct kp_launch_arg global(struct kp_buffer *b)
{
    return (struct kp_launch_arg){
        .space = KP_SPACE_GLOBAL, .bytes = kp_buffer_bytes(b), .buffer = b};
}

#define VALUE(v) \
    ((struct kp_launch_arg){.space = KP_SPACE_VALUE, .value = &(v), .bytes = sizeof(v)})

#endif
