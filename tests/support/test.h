/* SPDX-License-Identifier: MIT */
/* What every cmocka test includes, in the order that cmocka asks for. */
#ifndef KP_TESTS_SUPPORT_TEST_H
#define KP_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
