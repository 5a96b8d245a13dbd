/* SPDX-License-Identifier: MIT */
#include "fuzz_kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_kernel("k.cl", data, size);
    return 0;
}
