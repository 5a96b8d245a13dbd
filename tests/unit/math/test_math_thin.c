/* SPDX-License-Identifier: MIT */
/* Each way this machine can run, against sums in double; arrays have their exact size, so that
 * the sanitizer sees the first float beside them. */
#include "math/thin.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "support/test.h"

#include <math.h>

enum { ARRAYS_MAX = 8 };

struct rig {
    struct kp_rng rng;
    void *arrays[ARRAYS_MAX];
    size_t n_arrays;
};

static void *kept(struct rig *g, size_t n, size_t size)
{
    void *x = kp_calloc(n ? n : 1, size);
    assert_non_null(x);
    assert_true(g->n_arrays < ARRAYS_MAX);
    g->arrays[g->n_arrays++] = x;
    return x;
}

static float *array(struct rig *g, size_t n)
{
    float *x = kept(g, n, sizeof(float));
    for (size_t i = 0; i < n; i++)
        x[i] = (float)kp_rng_normal(&g->rng);
    return x;
}

/* Weights that are halves, so that packing them rounds nothing. */
static float *weights(struct rig *g, size_t n)
{
    float *w = array(g, n);
    for (size_t i = 0; i < n; i++)
        w[i] = kp_half_value(kp_half_of(w[i]));
    return w;
}

static kp_half *halves(struct rig *g, size_t n, size_t k)
{
    return kept(g, kp_pack_size(n, k), sizeof(kp_half));
}

static void free_arrays(struct rig *g)
{
    for (size_t i = 0; i < g->n_arrays; i++)
        kp_free(g->arrays[i]);
    g->n_arrays = 0;
}

/* The error of a sum of k products in float is below (k + 2) 2^-24 times the sum of their
 * sizes, in any order. */
struct sum {
    double value;
    double size;
};

static void check_sum(const struct sum *s, size_t k, float got)
{
    assert_true(fabs((double)got - s->value) <= ((double)k + 2) * 0x1p-24 * s->size);
}

static void add(struct sum *s, double term)
{
    s->value += term;
    s->size += fabs(term);
}

/* Rows up to several blocks of them, outputs and inputs around the widths of registers. */
static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 16};
static const size_t sizes[][2] = {{1, 1},   {3, 16},  {4, 17}, {5, 33}, {16, 15},
                                  {31, 48}, {37, 20}, {64, 7}, {65, 1}, {130, 50}};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* --- as they are ----------------------------------------------------------------------------
 */

static void check_thin(struct rig *g, const struct kp_thin_way *way, const struct kp_thin *p)
{
    struct kp_thin t = *p;
    t.ldx = t.k + 3;
    t.ldw = t.k + 1;
    t.ldy = t.n + 2;
    t.x = array(g, (t.m - 1) * t.ldx + t.k);
    t.w = array(g, (t.n - 1) * t.ldw + t.k);
    t.y = array(g, (t.m - 1) * t.ldy + t.n);
    float *before = array(g, (t.m - 1) * t.ldy + t.n);
    memcpy(before, t.y, ((t.m - 1) * t.ldy + t.n) * sizeof(float));
    for (size_t i = 0; i < t.m && t.beta == 0; i++)
        for (size_t j = 0; j < t.n; j++)
            t.y[i * t.ldy + j] = NAN;
    way->multiply(&t);
    for (size_t i = 0; i < t.m; i++) {
        for (size_t j = 0; j < t.ldy && i * t.ldy + j < (t.m - 1) * t.ldy + t.n; j++) {
            float got = t.y[i * t.ldy + j];
            double was = (double)before[i * t.ldy + j];
            if (j >= t.n) {
                assert_true((double)got == was);
                continue;
            }
            struct sum s = {0};
            for (size_t q = 0; q < t.k; q++)
                add(&s,
                    (double)t.alpha * (double)t.x[i * t.ldx + q] * (double)t.w[j * t.ldw + q]);
            add(&s, (double)t.beta * was);
            check_sum(&s, t.k, got);
        }
    }
    free_arrays(g);
}

static void test_thin(void **state)
{
    (void)state;
    static const float factors[][2] = {{1, 0}, {1, 1}, {-0.5F, 2}};
    const struct kp_thin_way *way;
    struct rig g = {0};
    kp_rng_init(&g.rng, 5);
    for (size_t w = 0; (way = kp_thin_at(w)) != NULL; w++)
        for (size_t r = 0; r < N_ROWS; r++)
            for (size_t s = 0; s < N_SIZES; s++)
                for (size_t f = 0; f < 3; f++) {
                    const struct kp_thin t = {.m = rows[r],
                                              .n = sizes[s][0],
                                              .k = sizes[s][1],
                                              .alpha = factors[f][0],
                                              .beta = factors[f][1]};
                    check_thin(&g, way, &t);
                }
}

/* --- packed ---------------------------------------------------------------------------------
 */

enum from { NOTHING, ONE_ROW, ITSELF };

/* t has the sizes; inputs `skip` .. skip + k of the packed ones. */
static void check_packed(struct rig *g, const struct kp_thin_way *way, struct kp_packed t,
                         size_t skip, enum from from)
{
    const float *w = weights(g, t.n * t.depth);
    kp_half *packed = halves(g, t.n, t.depth);
    const float *bias = array(g, t.n);
    t.ldx = t.k + 3;
    t.ldy = t.n + 2;
    t.x = array(g, (t.m - 1) * t.ldx + t.k);
    t.y = array(g, (t.m - 1) * t.ldy + t.n);
    float *before = array(g, (t.m - 1) * t.ldy + t.n);
    memcpy(before, t.y, ((t.m - 1) * t.ldy + t.n) * sizeof(float));
    kp_pack(t.n, t.depth, w, t.depth, 1, packed);
    t.packed = packed + skip * KP_PACK;
    t.from = from == ITSELF ? t.y : from == ONE_ROW ? bias : NULL;
    t.ldfrom = from == ITSELF ? t.ldy : 0;
    way->multiply_packed(&t);
    for (size_t i = 0; i < t.m; i++) {
        for (size_t j = 0; j < t.ldy && i * t.ldy + j < (t.m - 1) * t.ldy + t.n; j++) {
            float got = t.y[i * t.ldy + j];
            double was = (double)before[i * t.ldy + j];
            if (j >= t.n) {
                assert_true((double)got == was);
                continue;
            }
            struct sum s = {0};
            for (size_t q = 0; q < t.k; q++)
                add(&s, (double)t.x[i * t.ldx + q] * (double)w[j * t.depth + skip + q]);
            add(&s, from == ITSELF ? was : from == ONE_ROW ? (double)bias[j] : 0);
            check_sum(&s, t.k, got);
        }
    }
    free_arrays(g);
}

static void test_packed(void **state)
{
    (void)state;
    const struct kp_thin_way *way;
    struct rig g = {0};
    kp_rng_init(&g.rng, 6);
    for (size_t w = 0; (way = kp_thin_at(w)) != NULL; w++)
        for (size_t r = 0; r < N_ROWS; r++)
            for (size_t s = 0; s < N_SIZES; s++)
                for (int from = NOTHING; from <= ITSELF; from++) {
                    size_t k = sizes[s][1];
                    struct kp_packed t = {.m = rows[r], .n = sizes[s][0], .k = k, .depth = k};
                    check_packed(&g, way, t, 0, (enum from)from);
                    t.depth = 3 * k;
                    check_packed(&g, way, t, k, (enum from)from);
                }
}

/* Weights that stand the other way round. */
static void test_pack_turned(void **state)
{
    (void)state;
    enum { N = 21, K = 5 };
    struct rig g = {0};
    kp_rng_init(&g.rng, 7);
    const float *w = weights(&g, (size_t)K * N);
    kp_half *packed = halves(&g, N, K);
    assert_int_equal(kp_pack_size(N, K), 32 * K);
    kp_pack(N, K, w, 1, N, packed);
    for (size_t i = 0; i < 32; i++)
        for (size_t j = 0; j < K; j++)
            assert_true(kp_half_value(packed[(i / KP_PACK * K + j) * KP_PACK + i % KP_PACK]) ==
                        (i < N ? w[j * N + i] : 0));
    free_arrays(&g);
}

/* --- both -----------------------------------------------------------------------------------
 */

/* A row of the result is the same whatever rows stand beside it. */
static void test_rows_alone(void **state)
{
    (void)state;
    enum { M = 16, N = 61, K = 45 };
    const struct kp_thin_way *way;
    struct rig g = {0};
    kp_rng_init(&g.rng, 8);
    const float *w = array(&g, (size_t)N * K);
    const float *x = array(&g, (size_t)M * K);
    kp_half *packed = halves(&g, N, K);
    float *all = array(&g, (size_t)M * N);
    float *some = array(&g, (size_t)M * N);
    kp_pack(N, K, w, K, 1, packed);
    for (size_t i = 0; (way = kp_thin_at(i)) != NULL; i++) {
        struct kp_thin t = {M, N, K, 1, 0, x, K, w, K, all, N};
        struct kp_packed p = {M, N, K, x, K, packed, K, NULL, 0, all, N};
        way->multiply(&t);
        t.y = some;
        for (t.m = 1; t.m < M; t.m++) {
            t.x = x + (M - t.m) * K;
            way->multiply(&t);
            assert_memory_equal(some, all + (M - t.m) * N, t.m * N * sizeof(float));
        }
        way->multiply_packed(&p);
        p.y = some;
        for (p.m = 1; p.m < M; p.m++) {
            p.x = x + (M - p.m) * K;
            way->multiply_packed(&p);
            assert_memory_equal(some, all + (M - p.m) * N, p.m * N * sizeof(float));
        }
    }
    free_arrays(&g);
}

/* Nothing to do, and sums of nothing. */
static void test_empty(void **state)
{
    (void)state;
    const struct kp_thin_way *way;
    for (size_t i = 0; (way = kp_thin_at(i)) != NULL; i++) {
        float y[2] = {3, 4};
        const float x[2] = {1, 1};
        const kp_half packed[KP_PACK] = {0};
        struct kp_thin t = {1, 2, 0, 1, 0.5F, x, 2, x, 2, y, 2};
        way->multiply(&t);
        assert_true(y[0] == 1.5F && y[1] == 2);
        t.m = 0;
        way->multiply(&t);
        t.m = 1;
        t.n = 0;
        way->multiply(&t);
        struct kp_packed p = {0, 2, 1, x, 2, packed, 1, NULL, 0, y, 2};
        way->multiply_packed(&p);
        p.m = 1;
        p.n = 0;
        way->multiply_packed(&p);
        assert_true(y[0] == 1.5F && y[1] == 2);
    }
    assert_string_equal(kp_thin_at(0)->name, kp_thin_best()->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thin),        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_pack_turned), cmocka_unit_test(test_rows_alone),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
