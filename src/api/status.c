/* SPDX-License-Identifier: MIT */
#include "kopt/status.h"

const char *kopt_version(void)
{
    return KOPT_VERSION;
}
