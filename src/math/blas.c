/* SPDX-License-Identifier: MIT */
#include "math/blas.h"

#include "math/thin.h"

#include "os/dl.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

/* --- the reference --------------------------------------------------------------------------
 */

/* What gemm gets. */
struct product {
    bool ta, tb;
    size_t m, n, k;
    float alpha, beta;
    const float *a, *b;
    size_t lda, ldb;
    float *c;
    size_t ldc;
};

enum { COLUMNS = 32 }; /* of C at a time, whose sums stay in registers */

/* Row i of C from column j on, `w` of them. */
static void sum_row(const struct product *p, size_t i, size_t j, size_t w, float *sum)
{
    memset(sum, 0, COLUMNS * sizeof(*sum));
    for (size_t q = 0; q < p->k; q++) {
        float s = p->a[p->ta ? q * p->lda + i : i * p->lda + q];
        if (p->tb) {
            for (size_t x = 0; x < w; x++)
                sum[x] += s * p->b[(j + x) * p->ldb + q];
        } else {
            for (size_t x = 0; x < w; x++)
                sum[x] += s * p->b[q * p->ldb + j + x];
        }
    }
}

static void multiply_plain(const struct product *p)
{
    float sum[COLUMNS];
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->n; j += COLUMNS) {
            size_t w = p->n - j < COLUMNS ? p->n - j : COLUMNS;
            float *out = p->c + i * p->ldc + j;
            sum_row(p, i, j, w, sum);
            for (size_t x = 0; x < w; x++)
                out[x] =
                    p->beta == 0 ? p->alpha * sum[x] : p->alpha * sum[x] + p->beta * out[x];
        }
    }
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
static void reference_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, float alpha,
                           const float *a, size_t lda, const float *b, size_t ldb, float beta,
                           float *c, size_t ldc)
{
    struct product p = {ta, tb, m, n, k, alpha, beta, a, b, lda, ldb, NULL, ldc};
    p.c = c;
    multiply_plain(&p);
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
    const struct kp_thin_way *thin;
    bool good;
} library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static int transposed(bool t)
{
    return t ? TRANS : NO_TRANS;
}

/* A row or a column goes to gemv: where OpenBLAS has no kernels for small matrices (all but
 * those with AVX-512, in 0.3.21) its gemm copies the whole matrix first, and takes several
 * times as long. */
static void multiply_vector(const struct product *p)
{
    const bool row = p->m == 1;
    const size_t n = row ? p->n : p->m;
    const size_t step = row ? 1 : p->ldc;
    if (p->beta == 0) { /* some versions multiply what is there, NaN included */
        for (size_t i = 0; i < n; i++)
            p->c[i * step] = 0;
    }
    if (row)
        library.gemv(ROW_MAJOR, transposed(!p->tb), (int)(p->tb ? p->n : p->k),
                     (int)(p->tb ? p->k : p->n), p->alpha, p->b, (int)p->ldb, p->a,
                     p->ta ? (int)p->lda : 1, p->beta, p->c, 1);
    else
        library.gemv(ROW_MAJOR, transposed(p->ta), (int)(p->ta ? p->k : p->m),
                     (int)(p->ta ? p->m : p->k), p->alpha, p->a, (int)p->lda, p->b,
                     p->tb ? 1 : (int)p->ldb, p->beta, p->c, (int)p->ldc);
}

/* Up to so many rows with a transposed matrix our own loops are as fast as OpenBLAS's, and for
 * the most part several times faster. */
static void multiply_thin(const struct product *p)
{
    const struct kp_thin t = {.m = p->m,
                              .n = p->n,
                              .k = p->k,
                              .alpha = p->alpha,
                              .beta = p->beta,
                              .x = p->a,
                              .ldx = p->lda,
                              .w = p->b,
                              .ldw = p->ldb,
                              .y = p->c,
                              .ldy = p->ldc};
    library.thin->multiply(&t);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the contract */
static void fast_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, float alpha,
                      const float *a, size_t lda, const float *b, size_t ldb, float beta,
                      float *c, size_t ldc)
{
    const struct product p = {ta, tb, m, n, k, alpha, beta, a, b, lda, ldb, c, ldc};
    if (m == 0 || n == 0)
        return;
    if (k == 0 || (m | n | k | lda | ldb | ldc) > INT_MAX)
        multiply_plain(&p);
    else if (!ta && tb && m <= KP_THIN_ROWS)
        multiply_thin(&p);
    else if (m == 1 || n == 1)
        multiply_vector(&p);
    else
        library.gemm(ROW_MAJOR, transposed(ta), transposed(tb), (int)m, (int)n, (int)k, alpha,
                     a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
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
    bool same = true;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        same = same && got[i] == want[i];
    return same;
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
    library.thin = kp_thin_best();
    library.good = check_library();
}

const struct kp_blas *kp_blas_fast(void)
{
    (void)pthread_once(&library_once, open_library);
    return library.good ? &openblas : &reference;
}
