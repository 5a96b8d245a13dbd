/* SPDX-License-Identifier: MIT */
/* Matrix products: OpenBLAS behind a table of one function, with loops of our own for few rows
 * (math/thin.h), and a plain C reference beside it. Layer: math (the only user of CBLAS).
 *
 * Matrices are row-major. A product of one shape gives the same bits whenever it is asked of
 * the same table on the same machine: OpenBLAS is kept to one thread, whoever wants more cores
 * calls from several threads. Up to KP_THIN_ROWS rows of A B' have, each, the same bits
 * whatever rows are beside them. */
#ifndef KP_MATH_BLAS_H
#define KP_MATH_BLAS_H

#include <stdbool.h>
#include <stddef.h>

enum { KP_THIN_ROWS = 16 };

struct kp_blas {
    const char *name; /* "openblas", "reference" */
    /* C = alpha op(A) op(B) + beta C. op(A) is m x k, op(B) is k x n, C is m x n; `ta`: A is
     * stored as k x m, `tb`: B as n x k. lda, ldb, ldc: floats from a row to the next. With
     * beta 0 C need not hold numbers. A size may be 0. */
    void (*gemm)(bool ta, bool tb, size_t m, size_t n, size_t k, float alpha, const float *a,
                 size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);
};

/* Three loops; sums in float, in the order of k. */
const struct kp_blas *kp_blas_reference(void);
/* OpenBLAS, opened at run time by the first call (libopenblas.so.0, or what the environment's
 * KOPT_BLAS_LIBRARY names), which keeps the process's OpenBLAS to one thread; the reference
 * where there is none. Any thread. */
const struct kp_blas *kp_blas_fast(void);

#endif
