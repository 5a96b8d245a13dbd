/* SPDX-License-Identifier: MIT */
/* Any bytes as a rules file. */
#include "fuzz_kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_kernel("s.kopt", data, size);
    return 0;
}
