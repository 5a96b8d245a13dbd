/* SPDX-License-Identifier: MIT */
/* The kernel that compares two buffers, behind the text of compare_rule.h and written like it.
 * Layer: device. What the surroundings define besides:
 *   PACK, PACK_ALIGN  elements of 16 bytes; what makes a struct of them 16-byte aligned
 *   UNROLL            a pragma before a loop, or nothing
 *   KERNEL, SHARED and CUDA's built-ins */
COMPARE_TEXT(
    struct PACK_ALIGN pack { ELEM e[PACK]; };

    KERNEL void kp_compare(const ELEM *got, const ELEM *want, U64 n, double rtol, double atol,
                           struct found *out) {
        SHARED struct found all;
        struct found f = {0, 0, ~(U64)0, 0};
        U64 first = (U64)blockIdx.x * blockDim.x + threadIdx.x;
        U64 step = (U64)gridDim.x * blockDim.x;
        const struct pack *gp = (const struct pack *)got;
        const struct pack *wp = (const struct pack *)want;
        if (threadIdx.x == 0)
            all = f;
        __syncthreads();
        for (U64 i = first; i < n / PACK; i += step) {
            struct pack g = gp[i];
            struct pack w = wp[i];
            UNROLL for (int k = 0; k < PACK; k++)
                compare_one(g.e[k], w.e[k], rtol, atol, i * PACK + k, &f);
        }
        for (U64 i = n / PACK * PACK + first; i < n; i += step)
            compare_one(got[i], want[i], rtol, atol, i, &f);
        if (f.n_bad) {
            atomicAdd(&all.n_bad, f.n_bad);
            atomicAdd(&all.n_nan, f.n_nan);
            atomicMin(&all.first, f.first);
        }
        if (f.max_error)
            atomicMax(&all.max_error, f.max_error);
        __syncthreads();
        if (threadIdx.x != 0)
            return;
        if (all.n_bad) {
            atomicAdd(&out->n_bad, all.n_bad);
            atomicAdd(&out->n_nan, all.n_nan);
            atomicMin(&out->first, all.first);
        }
        if (all.max_error)
            atomicMax(&out->max_error, all.max_error);
    })
