/* SPDX-License-Identifier: MIT */
/* What the kernels that compare two buffers do with a pair of elements, in a text that is CUDA
 * C and OpenCL C (the back ends make a string of it) and, with a few macros, C (a test runs it
 * on the host). Layer: device.
 *
 * No preprocessor line may stand within. What the surroundings define:
 *   U64               an unsigned integer of 64 bits
 *   ELEM              the type of an element as it lies in memory
 *   TO_DOUBLE(e)      its value, the nearest double
 *   IS_FLOAT          0 or 1
 *   DISTANCE(g, w)    |g - w| of two integers as U64, exact
 *   INFINITE          the double
 *   BITS_OF(d)        of a double
 *   ADD(a, b), MUL(a, b)  each rounded by itself
 *   DEVICE            what stands before a function
 *
 * The rules are those of kp_compare_host(). Sums and products are rounded one by one (no fused
 * multiply-add), so that both decide alike at the edge of a tolerance. */
COMPARE_TEXT(
    struct found {
        U64 n_bad;
        U64 n_nan;
        U64 first;
        U64 max_error; /* bits of a double >= 0, which sort like the double */
    };

    DEVICE void note_bad(struct found *f, U64 index) {
        f->n_bad++;
        if (index < f->first)
            f->first = index;
    }

    DEVICE void note_error(struct found *f, double e) {
        U64 bits = BITS_OF(e);
        if (bits > f->max_error)
            f->max_error = bits;
    }

    DEVICE int within(double e, double w, double rtol, double atol) {
        return e <= ADD(atol, MUL(rtol, fabs(w)));
    }

    DEVICE void compare_one(ELEM ge, ELEM we, double rtol, double atol, U64 index,
                            struct found *f) {
        double g = TO_DOUBLE(ge);
        double w = TO_DOUBLE(we);
        double e = IS_FLOAT ? fabs(g - w) : (double)(DISTANCE(ge, we));
        int g_nan = g != g;
        int w_nan = w != w;
        if (IS_FLOAT ? g == w : ge == we)
            return;
        if (g_nan || w_nan) {
            if (g_nan && w_nan)
                return;
            f->n_nan += (U64)g_nan;
            note_bad(f, index);
        } else if (IS_FLOAT && (fabs(g) == INFINITE || fabs(w) == INFINITE)) {
            note_bad(f, index);
        } else {
            note_error(f, e);
            if (!within(e, w, rtol, atol))
                note_bad(f, index);
        }
    })
