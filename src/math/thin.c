/* SPDX-License-Identifier: MIT */
/* Layer: math. */
#include "math/thin.h"

#include "math/thin_ways.h"

#include <stdbool.h>

const struct kp_thin_way *kp_thin_at(size_t i)
{
#if defined(__x86_64__)
    /* Those with both have F16C, too; not every compiler knows how to ask for it. */
    bool runs_256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (__builtin_cpu_supports("avx512f") && i-- == 0)
        return &kp_thin_512;
    if (runs_256 && i-- == 0)
        return &kp_thin_256;
#endif
    return i == 0 ? &kp_thin_plain : NULL;
}

const struct kp_thin_way *kp_thin_best(void)
{
    return kp_thin_at(0);
}

size_t kp_pack_size(size_t n, size_t k)
{
    return (n + KP_PACK - 1) / KP_PACK * KP_PACK * k;
}

void kp_pack(size_t n, size_t k, const float *w, size_t ldn, size_t ldk, kp_half *packed)
{
    for (size_t i0 = 0; i0 < n; i0 += KP_PACK) {
        for (size_t j = 0; j < k; j++) {
            for (size_t i = 0; i < KP_PACK; i++)
                *packed++ = i0 + i < n ? kp_half_of(w[(i0 + i) * ldn + j * ldk]) : 0;
        }
    }
}
