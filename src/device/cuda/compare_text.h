/* SPDX-License-Identifier: MIT */
/* The kernel that compares two buffers, in a text that is both CUDA C (helpers.c makes a string
 * of it) and, with a few macros, C (a test runs it on the host). Layer: device.
 *
 * No preprocessor line may stand within. What the surroundings define:
 *   ELEM              the type of an element as it lies in memory
 *   PACK, PACK_ALIGN  elements of 16 bytes; what makes a struct of them 16-byte aligned
 *   TO_DOUBLE(e)      its value, the nearest double
 *   IS_FLOAT          0 or 1
 *   DISTANCE(g, w)    |g - w| of two integers as uint64, exact
 *   INFINITE          the double
 *   UNROLL            a pragma before a loop, or nothing
 *   KERNEL, DEVICE, SHARED and CUDA's built-ins
 *
 * The rules are those of kp_compare_host(). Sums and products are rounded one by one (no fused
 * multiply-add), so that both decide alike at the edge of a tolerance. */
COMPARE_TEXT(
    struct found {
        unsigned long long n_bad;
        unsigned long long n_nan;
        unsigned long long first;
        unsigned long long max_error; /* bits of a double >= 0, which sort like the double */
    };

    struct PACK_ALIGN pack { ELEM e[PACK]; };

    DEVICE void note_bad(struct found *f, unsigned long long index) {
        f->n_bad++;
        if (index < f->first)
            f->first = index;
    }

    DEVICE void note_error(struct found *f, double e) {
        unsigned long long bits = (unsigned long long)__double_as_longlong(e);
        if (bits > f->max_error)
            f->max_error = bits;
    }

    DEVICE int within(double e, double w, double rtol, double atol) {
        return e <= __dadd_rn(atol, __dmul_rn(rtol, fabs(w)));
    }

    DEVICE void compare_one(ELEM ge, ELEM we, double rtol, double atol,
                            unsigned long long index, struct found *f) {
        double g = TO_DOUBLE(ge);
        double w = TO_DOUBLE(we);
        double e = IS_FLOAT ? fabs(g - w) : (double)(DISTANCE(ge, we));
        int g_nan = g != g;
        int w_nan = w != w;
        if (!IS_FLOAT && e == 0.0)
            return;
        if (g_nan || w_nan) {
            if (g_nan && w_nan)
                return;
            f->n_nan += (unsigned long long)g_nan;
            note_bad(f, index);
        } else if (IS_FLOAT && (fabs(g) == INFINITE || fabs(w) == INFINITE)) {
            if (g != w)
                note_bad(f, index);
        } else {
            note_error(f, e);
            if (!within(e, w, rtol, atol))
                note_bad(f, index);
        }
    }

    KERNEL void kp_compare(const ELEM *got, const ELEM *want, unsigned long long n, double rtol,
                           double atol, struct found *out) {
        SHARED struct found all;
        struct found f = {0, 0, ~0ull, 0};
        unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
        unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
        const struct pack *gp = (const struct pack *)got;
        const struct pack *wp = (const struct pack *)want;
        if (threadIdx.x == 0)
            all = f;
        __syncthreads();
        for (unsigned long long i = first; i < n / PACK; i += step) {
            struct pack g = gp[i];
            struct pack w = wp[i];
            UNROLL for (int k = 0; k < PACK; k++)
                compare_one(g.e[k], w.e[k], rtol, atol, i * PACK + k, &f);
        }
        for (unsigned long long i = n / PACK * PACK + first; i < n; i += step)
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
