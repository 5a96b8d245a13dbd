/* SPDX-License-Identifier: MIT */
/* Layer: nn. */
#include "nn/passes.h"

#include "nn/passes_tables.h"

const struct kp_passes *kp_passes_at(size_t i)
{
#if defined(__x86_64__)
    bool runs_256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (__builtin_cpu_supports("avx512f") && i-- == 0)
        return &kp_passes_512;
    if (runs_256 && i-- == 0)
        return &kp_passes_256;
#endif
    return i == 0 ? &kp_passes_plain : NULL;
}

const struct kp_passes *kp_passes_best(void)
{
    return kp_passes_at(0);
}
