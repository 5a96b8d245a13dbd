/* SPDX-License-Identifier: MIT */
/* The loops behind math/thin.h; compiled once for each width of registers. Layer: math.
 *
 * Blocks of some rows of x and WEIGHTS rows of w, with a register of partial sums for each
 * pair. A row of w is read from memory once and serves all rows of x while it is in the cache.
 */
#ifndef KP_MATH_THIN_LOOPS_H
#define KP_MATH_THIN_LOOPS_H

#include "math/lanes.h"
#include "math/thin.h"

/* Loops over the registers of a block: they have to be gone before a compiler decides what
 * stays in registers. */
#if defined(__clang__)
#    define THIN_UNROLL _Pragma("unroll")
#else
#    define THIN_UNROLL _Pragma("GCC unroll 8")
#endif

/* Sums, rows of x and one of w fill the registers: 24 + 6 + 1 of 32, 12 + 3 + 1 of 16. */
enum { WEIGHTS = 4, ROWS = LANES == 16 ? 6 : 3 };

/* out[j] = lanes_sum(sum[j]), added in the same order. */
LANES_FN void sum_four(const lanes sum[WEIGHTS], float out[WEIGHTS])
{
#if defined(__AVX512F__)
    const __m512 a = (__m512)sum[0];
    const __m512 b = (__m512)sum[1];
    const __m512 c = (__m512)sum[2];
    const __m512 d = (__m512)sum[3];
    /* Halves on halves, a and b side by side; then quarters, all four side by side. */
    __m512 ab =
        _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    __m512 cd =
        _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    __m512 all =
        _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, 0x4e));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, 0xb1));
    const __m512i firsts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, all)));
#else
    for (size_t j = 0; j < WEIGHTS; j++)
        out[j] = lanes_sum(sum[j]);
#endif
}

/* y[0 .. n] = alpha sums + beta y */
LANES_FN void put_sums(const struct kp_thin *t, const float sums[WEIGHTS], size_t n, float *y)
{
    if (t->beta == 0) {
        for (size_t j = 0; j < n; j++)
            y[j] = t->alpha * sums[j];
    } else {
        for (size_t j = 0; j < n; j++)
            y[j] = t->alpha * sums[j] + t->beta * y[j];
    }
}

/* Rows of x, from x on, with rows of w, from w on; how many is a constant of the caller. */
struct thin_block {
    const float *x;
    size_t ldx;
    const float *w;
    size_t ldw;
};

/* Keeps a compiler from loading x again for each of its uses. */
LANES_FN void in_register(lanes *x)
{
#if defined(__AVX512F__)
    __asm__("" : "+v"(*x));
#elif defined(__SSE2__)
    __asm__("" : "+x"(*x));
#else
    (void)x;
#endif
}

/* The terms h .. h + n, at most LANES. */
LANES_FN void add_terms(const struct thin_block *b, size_t rows, size_t weights, size_t h,
                        size_t n, lanes sum[ROWS][WEIGHTS])
{
    lanes row[ROWS];
    THIN_UNROLL
    for (size_t i = 0; i < rows; i++)
        row[i] = lanes_load(b->x + i * b->ldx + h, n);
    THIN_UNROLL
    for (size_t j = 0; j < weights; j++) {
        lanes weight = lanes_load(b->w + j * b->ldw + h, n);
        in_register(&weight);
        THIN_UNROLL
        for (size_t i = 0; i < rows; i++)
            sum[i][j] = lanes_mad(row[i], weight, sum[i][j]);
    }
}

LANES_FN void multiply_block(const struct kp_thin *t, size_t i0, size_t rows, size_t j0,
                             size_t weights)
{
    const struct thin_block b = {t->x + i0 * t->ldx, t->ldx, t->w + j0 * t->ldw, t->ldw};
    lanes sum[ROWS][WEIGHTS] = {{{0}}};
    size_t h = 0;
    for (; t->k - h >= LANES; h += LANES)
        add_terms(&b, rows, weights, h, LANES, sum);
    if (h < t->k)
        add_terms(&b, rows, weights, h, t->k - h, sum);
    THIN_UNROLL
    for (size_t i = 0; i < rows; i++) {
        float sums[WEIGHTS];
        sum_four(sum[i], sums);
        put_sums(t, sums, weights, t->y + (i0 + i) * t->ldy + j0);
    }
}

/* Rows i0 .. of x with the rows j .. end of w. */
LANES_FN void multiply_panel(const struct kp_thin *t, size_t i0, size_t rows, size_t j,
                             size_t end)
{
    for (; end - j >= WEIGHTS; j += WEIGHTS)
        multiply_block(t, i0, rows, j, WEIGHTS);
    for (; j < end; j++)
        multiply_block(t, i0, rows, j, 1);
}

/* How many rows a block takes is known when it is compiled: a function for each number. */
typedef void rows_fn(const void *product, size_t i, size_t j, size_t end);
#define ROWS_FN(name, type, rows)                                                  \
    static void name##_##rows(const void *product, size_t i, size_t j, size_t end) \
    {                                                                              \
        name((const struct type *)product, i, rows, j, end);                       \
    }
#define ROWS_1_TO_3(name, type) \
    ROWS_FN(name, type, 1) ROWS_FN(name, type, 2) ROWS_FN(name, type, 3)
#if defined(__AVX512F__)
#    define ALL_ROWS(name, type)                                               \
        ROWS_1_TO_3(name, type)                                                \
        ROWS_FN(name, type, 4)                                                 \
        ROWS_FN(name, type, 5)                                                 \
        ROWS_FN(name, type, 6)                                                 \
        static rows_fn *const name##_of[ROWS] = {name##_1, name##_2, name##_3, \
                                                 name##_4, name##_5, name##_6};
#else
#    define ALL_ROWS(name, type) \
        ROWS_1_TO_3(name, type)  \
        static rows_fn *const name##_of[ROWS] = {name##_1, name##_2, name##_3};
#endif
ALL_ROWS(multiply_panel, kp_thin)

/* All m rows of x, as evenly in blocks as they go, with the columns j .. end of y. */
LANES_FN void all_rows(rows_fn *const *of, const void *product, size_t m, size_t j, size_t end)
{
    size_t blocks = (m + ROWS - 1) / ROWS;
    size_t i = 0;
    for (; blocks > 0; blocks--) {
        size_t rows = (m - i + blocks - 1) / blocks;
        of[rows - 1](product, i, j, end);
        i += rows;
    }
}

static void multiply(const struct kp_thin *t)
{
    enum { STEP = 32 }; /* rows of w, which stay in the cache for all rows of x */
    for (size_t j = 0; j < t->n; j += STEP)
        all_rows(multiply_panel_of, t, t->m, j, t->n - j > STEP ? j + STEP : t->n);
}

/* --- packed weights --------------------------------------------------------------------------
 */

/* Registers of one column of KP_PACK outputs, and columns at a time. */
enum { PARTS = KP_PACK / LANES, COLUMNS = WEIGHTS / PARTS };

/* The last outputs of row i, from j on, from sums of whole columns. */
static void put_outputs(const struct kp_packed *t, size_t i, size_t j, const float *sums)
{
    const float *from = t->from ? t->from + i * t->ldfrom : NULL;
    float *y = t->y + i * t->ldy;
    for (size_t k = j; k < t->n; k++)
        y[k] = from ? from[k] + sums[k - j] : sums[k - j];
}

LANES_FN void put_columns(const struct kp_packed *t, size_t i, size_t j, size_t n,
                          const lanes sum[WEIGHTS])
{
    if (t->n - j < n * LANES) {
        float sums[WEIGHTS * LANES];
        THIN_UNROLL
        for (size_t r = 0; r < n; r++)
            lanes_store(sums + r * LANES, LANES, sum[r]);
        put_outputs(t, i, j, sums);
        return;
    }
    const float *from = t->from ? t->from + i * t->ldfrom + j : NULL;
    float *y = t->y + i * t->ldy + j;
    THIN_UNROLL
    for (size_t r = 0; r < n; r++) {
        lanes all = from ? lanes_load(from + r * LANES, LANES) + sum[r] : sum[r];
        lanes_store(y + r * LANES, LANES, all);
    }
}

/* Outputs j .. of rows i ..; `rows` and `columns` are constants of the caller. Only the last
 * column of a product may be cut. */
LANES_FN void multiply_columns(const struct kp_packed *t, size_t i, size_t rows, size_t j,
                               size_t columns)
{
    lanes sum[ROWS][WEIGHTS] = {{{0}}};
    const float *x = t->x + i * t->ldx;
    const kp_half *w = t->packed + j * t->depth;
    for (size_t h = 0; h < t->k; h++) {
        lanes term[ROWS];
        THIN_UNROLL
        for (size_t q = 0; q < rows; q++)
            term[q] = lanes_of(x[q * t->ldx + h]);
        THIN_UNROLL
        for (size_t r = 0; r < columns * PARTS; r++) {
            const kp_half *at = w + (r / PARTS * t->depth + h) * KP_PACK;
            lanes weight = lanes_load_half(at + r % PARTS * LANES);
            in_register(&weight);
            THIN_UNROLL
            for (size_t q = 0; q < rows; q++)
                sum[q][r] = lanes_mad(term[q], weight, sum[q][r]);
        }
    }
    THIN_UNROLL
    for (size_t q = 0; q < rows; q++)
        put_columns(t, i + q, j, columns * PARTS, sum[q]);
}

LANES_FN void multiply_outputs(const struct kp_packed *t, size_t i, size_t rows, size_t j,
                               size_t end)
{
    const size_t step = (size_t)COLUMNS * KP_PACK;
    for (; j + step - KP_PACK < end; j += step)
        multiply_columns(t, i, rows, j, COLUMNS);
    for (; j < end; j += KP_PACK)
        multiply_columns(t, i, rows, j, 1);
}
ALL_ROWS(multiply_outputs, kp_packed)

static void multiply_packed(const struct kp_packed *t)
{
    enum { STEP = COLUMNS * KP_PACK };
    for (size_t j = 0; j < t->n; j += STEP)
        all_rows(multiply_outputs_of, t, t->m, j, t->n - j > STEP ? j + STEP : t->n);
}

#endif
