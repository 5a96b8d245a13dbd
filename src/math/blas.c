/* SPDX-License-Identifier: MIT */
#include "math/blas.h"

#include "os/dl.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

/* --- the reference --------------------------------------------------------------------------
 */

enum { COLUMNS = 32 }; /* of C at a time, whose sums stay in registers */

/* One row of C, `w` columns from `b`'s first on; `a` has its elements `step` apart. */
struct row {
    const float *a;
    size_t step;
    const float *b;
    size_t ldb;
    bool tb;
    size_t k;
};

static void sum_row(const struct row *r, size_t w, float *sum)
{
    memset(sum, 0, COLUMNS * sizeof(*sum));
    for (size_t p = 0; p < r->k; p++) {
        float s = r->a[p * r->step];
        if (r->tb) {
            for (size_t j = 0; j < w; j++)
                sum[j] += s * r->b[j * r->ldb + p];
        } else {
            for (size_t j = 0; j < w; j++)
                sum[j] += s * r->b[p * r->ldb + j];
        }
    }
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
static void reference_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, float alpha,
                           const float *a, size_t lda, const float *b, size_t ldb, float beta,
                           float *c, size_t ldc)
{
    float sum[COLUMNS];
    for (size_t i = 0; i < m; i++) {
        for (size_t j0 = 0; j0 < n; j0 += COLUMNS) {
            size_t w = n - j0 < COLUMNS ? n - j0 : COLUMNS;
            float *out = c + i * ldc + j0;
            const struct row r = {.a = k == 0 ? a : a + (ta ? i : i * lda),
                                  .step = ta ? lda : 1,
                                  .b = k == 0 ? b : b + (tb ? j0 * ldb : j0),
                                  .ldb = ldb,
                                  .tb = tb,
                                  .k = k};
            sum_row(&r, w, sum);
            for (size_t j = 0; j < w; j++)
                out[j] = beta == 0 ? alpha * sum[j] : alpha * sum[j] + beta * out[j];
        }
    }
}

static const struct kp_blas reference = {.name = "reference", .gemm = reference_gemm};

const struct kp_blas *kp_blas_reference(void)
{
    return &reference;
}

/* --- OpenBLAS -------------------------------------------------------------------------------
 */

/* CBLAS's enumerations. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

/* The interface with 32-bit sizes. */
typedef void cblas_sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta,
                            float *c, int ldc);
typedef void cblas_sgemv_fn(int order, int ta, int m, int n, float alpha, const float *a,
                            int lda, const float *x, int step_x, float beta, float *y,
                            int step_y);

/* Set once, by the first kp_blas_fast(). */
static struct {
    cblas_sgemm_fn *gemm;
    cblas_sgemv_fn *gemv;
    bool good;
} library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static bool fits(size_t n)
{
    return n <= INT_MAX;
}

/* A row or a column goes to gemv: where OpenBLAS has no kernels for small matrices (all but
 * those with AVX-512, in 0.3.21) its gemm copies the whole matrix first, and takes several
 * times as long. */
/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
static void fast_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, float alpha,
                      const float *a, size_t lda, const float *b, size_t ldb, float beta,
                      float *c, size_t ldc)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0 || !fits(m) || !fits(n) || !fits(k) || !fits(lda) || !fits(ldb) || !fits(ldc)) {
        reference_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    if (m > 1 && n > 1) {
        library.gemm(ROW_MAJOR, ta ? TRANS : NO_TRANS, tb ? TRANS : NO_TRANS, (int)m, (int)n,
                     (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
        return;
    }
    if (beta == 0) { /* some versions multiply what is there, NaN included */
        for (size_t i = 0; i < m * n; i++)
            c[m == 1 ? i : i * ldc] = 0;
    }
    if (m == 1)
        library.gemv(ROW_MAJOR, tb ? NO_TRANS : TRANS, (int)(tb ? n : k), (int)(tb ? k : n),
                     alpha, b, (int)ldb, a, ta ? (int)lda : 1, beta, c, 1);
    else
        library.gemv(ROW_MAJOR, ta ? TRANS : NO_TRANS, (int)(ta ? k : m), (int)(ta ? m : k),
                     alpha, a, (int)lda, b, tb ? 1 : (int)ldb, beta, c, (int)ldc);
}

static const struct kp_blas openblas = {.name = "openblas", .gemm = fast_gemm};

/* Whether a product of this shape, of small integers, is what it must be: exactly, since no
 * intermediate result is rounded. */
static bool check_product(bool ta, bool tb, size_t m, size_t n, size_t k)
{
    enum { SIDE = 40 };
    static float a[SIDE * SIDE];
    static float b[SIDE * SIDE];
    static float got[SIDE * SIDE];
    static float want[SIDE * SIDE];
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        a[i] = (float)(i * 7 % 11) - 5;
        b[i] = (float)(i * 5 % 13) - 6;
        got[i] = want[i] = (float)(i % 3);
    }
    fast_gemm(ta, tb, m, n, k, 2, a, SIDE, b, SIDE, 1, got, SIDE);
    reference_gemm(ta, tb, m, n, k, 2, a, SIDE, b, SIDE, 1, want, SIDE);
    return memcmp(got, want, sizeof(got)) == 0;
}

/* OpenBLAS chooses its kernels by the processor, and there have been releases whose kernels
 * were wrong on processors that came after them. */
static bool check_library(void)
{
    static const size_t shapes[][3] = {{1, 37, 33}, {37, 1, 33}, {4, 33, 40}, {39, 40, 37}};
    bool good = true;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int t = 0; t < 4; t++)
            good =
                check_product(t & 1, t & 2, shapes[i][0], shapes[i][1], shapes[i][2]) && good;
    }
    return good;
}

static void open_library(void)
{
    static const char *const names[] = {"libopenblas.so.0"};
    struct kp_dl *dl;
    kopt_error err;
    void (*set_threads)(int) = NULL;
    if (kp_dl_open(names, 1, "KOPT_BLAS_LIBRARY", &dl, &err) != KOPT_OK)
        return;
    bool whole = KP_DL_GET(dl, "cblas_sgemm", &library.gemm) &&
                 KP_DL_GET(dl, "cblas_sgemv", &library.gemv) &&
                 KP_DL_GET(dl, "openblas_set_num_threads", &set_threads);
    kp_dl_close(dl); /* the code stays */
    if (!whole)
        return;
    set_threads(1);
    library.good = check_library();
}

const struct kp_blas *kp_blas_fast(void)
{
    (void)pthread_once(&library_once, open_library);
    return library.good ? &openblas : &reference;
}
