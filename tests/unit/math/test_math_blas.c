/* SPDX-License-Identifier: MIT */
#include "math/blas.h"

#include "base/rng.h"
#include "os/dl.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 80 };

struct product {
    bool ta, tb;
    size_t m, n, k;
    float alpha, beta;
};

static void draw(struct kp_rng *rng, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)kp_rng_normal(rng);
}

/* One product of random matrices, whose rows are SIDE apart, against sums in double. The error
 * of a sum of k products in float is below (k + 2) 2^-24 times the sum of their sizes, in any
 * order. What is between the rows of C must stay. */
static void check(const struct kp_blas *blas, const struct product *p, struct kp_rng *rng)
{
    static float a[SIDE * SIDE];
    static float b[SIDE * SIDE];
    static float c[SIDE * SIDE];
    static float before[SIDE * SIDE];
    draw(rng, a, (size_t)SIDE * SIDE);
    draw(rng, b, (size_t)SIDE * SIDE);
    draw(rng, before, (size_t)SIDE * SIDE);
    memcpy(c, before, sizeof(c));
    for (size_t i = 0; i < (size_t)SIDE * SIDE && p->beta == 0; i++)
        c[i] = i / SIDE < p->m && i % SIDE < p->n ? NAN : c[i];
    blas->gemm(p->ta, p->tb, p->m, p->n, p->k, p->alpha, a, SIDE, b, SIDE, p->beta, c, SIDE);
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            double was = (double)before[i * SIDE + j];
            if (i >= p->m || j >= p->n) {
                assert_true((double)c[i * SIDE + j] == was);
                continue;
            }
            double sum = 0;
            double size = 0;
            for (size_t q = 0; q < p->k; q++) {
                double t = (double)a[p->ta ? q * SIDE + i : i * SIDE + q] *
                           (double)b[p->tb ? j * SIDE + q : q * SIDE + j];
                sum += t;
                size += fabs(t);
            }
            double want = (double)p->alpha * sum + (double)p->beta * was;
            size = fabs((double)p->alpha) * size + fabs((double)p->beta * was);
            assert_true(fabs((double)c[i * SIDE + j] - want) <=
                        ((double)p->k + 2) * 0x1p-24 * size);
        }
    }
}

static void check_many(const struct kp_blas *blas)
{
    static const size_t sizes[][3] = {
        {0, 5, 5}, {5, 0, 5},  {5, 5, 0},   {1, 1, 0},   {1, 1, 1},    {1, 7, 33},
        {7, 1, 3}, {33, 1, 7}, {9, 17, 1},  {1, 64, 1},  {64, 1, 1},   {2, 2, 2},
        {4, 4, 4}, {3, 30, 5}, {16, 64, 8}, {33, 31, 7}, {64, 64, 64}, {79, 77, 80},
    };
    static const float factors[][2] = {{1, 0}, {1, 1}, {-0.5F, 2}};
    struct kp_rng rng;
    kp_rng_init(&rng, 3);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (size_t f = 0; f < 3; f++) {
            for (int t = 0; t < 4; t++) {
                struct product p = {
                    t & 1,       t & 2,         sizes[s][0],   sizes[s][1],
                    sizes[s][2], factors[f][0], factors[f][1],
                };
                check(blas, &p, &rng);
            }
        }
    }
}

static void the_reference_multiplies(void **state)
{
    (void)state;
    assert_string_equal(kp_blas_reference()->name, "reference");
    check_many(kp_blas_reference());
}

/* The name of the table that a process gets which has `library` in its environment. */
static bool chooses(const char *library, const char *name)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setenv("KOPT_BLAS_LIBRARY", library, 1);
        _exit(strcmp(kp_blas_fast()->name, name) == 0 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool openblas_is_there(void)
{
    static const char *const names[] = {"libopenblas.so.0"};
    struct kp_dl *dl;
    kopt_error err;
    if (kp_dl_open(names, 1, NULL, &dl, &err) != KOPT_OK)
        return false;
    kp_dl_close(dl);
    return true;
}

/* First of all tests: the choice is made once in a process. */
static void the_library_must_be_there_and_right(void **state)
{
    (void)state;
    const char *wrong = getenv("KOPT_TEST_WRONG_BLAS");
    assert_non_null(wrong);
    assert_true(chooses("/nonexistent/libopenblas.so", "reference"));
    assert_true(chooses("libm.so.6", "reference")); /* opens, and has no such functions */
    assert_true(chooses(wrong, "reference"));
    assert_true(chooses("", openblas_is_there() ? "openblas" : "reference"));
}

static void the_fast_one_multiplies(void **state)
{
    (void)state;
    if (!openblas_is_there())
        skip();
    assert_string_equal(kp_blas_fast()->name, "openblas");
    assert_ptr_equal(kp_blas_fast(), kp_blas_fast());
    check_many(kp_blas_fast());
}

/* Sizes in which OpenBLAS takes different ways: few rows, small, and above its smallest block.
 */
static const size_t repeated[][3] = {{1, 60, 33}, {4, 64, 32}, {33, 65, 40}, {130, 140, 150}};
enum { REPEATED = sizeof(repeated) / sizeof(repeated[0]), CELLS = 150 * 150 + 16 };

static float left[CELLS];
static float right[CELLS];
static float result[REPEATED][CELLS];

static void multiply(size_t s, const float *a, const float *b, float *c)
{
    size_t m = repeated[s][0];
    size_t n = repeated[s][1];
    size_t k = repeated[s][2];
    kp_blas_fast()->gemm(false, true, m, n, k, 1, a, k, b, k, 0, c, n);
}

static bool same(size_t s, const float *c)
{
    return memcmp(c, result[s], repeated[s][0] * repeated[s][1] * sizeof(*c)) == 0;
}

static void *multiply_often(void *arg)
{
    float *c = arg;
    size_t wrong = 0;
    for (int i = 0; i < 20; i++) {
        for (size_t s = 0; s < REPEATED; s++) {
            multiply(s, left, right, c);
            wrong += !same(s, c);
        }
    }
    return wrong ? arg : NULL;
}

static void the_bits_depend_on_the_shape_alone(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    static float shifted[2][CELLS];
    static float out[THREADS][CELLS];
    struct kp_rng rng;
    kp_rng_init(&rng, 4);
    draw(&rng, left, CELLS);
    draw(&rng, right, CELLS);
    for (size_t s = 0; s < REPEATED; s++)
        multiply(s, left, right, result[s]);
    for (size_t shift = 1; shift < 16; shift += 3) { /* other alignments */
        memcpy(shifted[0] + shift, left, (CELLS - 16) * sizeof(float));
        memcpy(shifted[1] + 16 - shift, right, (CELLS - 16) * sizeof(float));
        for (size_t s = 0; s < REPEATED; s++) {
            multiply(s, shifted[0] + shift, shifted[1] + 16 - shift, out[0] + shift);
            assert_true(same(s, out[0] + shift));
        }
    }
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, multiply_often, out[t]), 0);
    for (size_t t = 0; t < THREADS; t++) {
        void *bad = NULL;
        assert_int_equal(pthread_join(threads[t], &bad), 0);
        assert_null(bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_must_be_there_and_right),
        cmocka_unit_test(the_reference_multiplies),
        cmocka_unit_test(the_fast_one_multiplies),
        cmocka_unit_test(the_bits_depend_on_the_shape_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
