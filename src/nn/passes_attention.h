/* SPDX-License-Identifier: MIT */
/* The loops of attention over one row of the batch; compiled once for each width. Layer: nn.
 *
 * Rows of the same b are B * H floats apart, often a power of two, where they share few of the
 * cache's lines. The passes with tanh go over each line of a row once, keep what they need
 * again in registers or on the stack, and fetch lines ahead of their use. */
#ifndef KP_NN_PASSES_ATTENTION_H
#define KP_NN_PASSES_ATTENTION_H

#include "math/lanes.h"
#include "nn/passes.h"

/* Loops over the registers of a block: they have to be gone before a compiler decides what
 * stays in registers. */
#if defined(__clang__)
#    define UNROLL _Pragma("unroll")
#else
#    define UNROLL _Pragma("GCC unroll 16")
#endif

LANES_FN size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Row j + 2 of n is fetched while row j is worked on. */
LANES_FN void prefetch_row(const float *rows, size_t ld, size_t j, size_t n)
{
    __builtin_prefetch(rows + (n - j > 2 ? j + 2 : j) * ld);
}

/* --- q . k -----------------------------------------------------------------------------------
 */

struct dots {
    const struct kp_tile *t;
    float *out;
    size_t ldo;
};

/* A block of nq x ns products (constants of the caller) with its sums in registers. */
LANES_FN void dots_block(const struct dots *d, size_t i0, size_t j0, size_t nq, size_t ns)
{
    const struct kp_tile *t = d->t;
    lanes sum[2][4] = {{{0}}};
    const float *q = t->q + i0 * t->ldq;
    const float *k = t->k + j0 * t->ldk;
    for (size_t h = 0; h < t->H; h += LANES) {
        size_t n = t->H - h;
        lanes row[2];
        UNROLL
        for (size_t i = 0; i < nq; i++)
            row[i] = lanes_load(q + i * t->ldq + h, n);
        UNROLL
        for (size_t j = 0; j < ns; j++) {
            lanes key = lanes_load(k + j * t->ldk + h, n);
            UNROLL
            for (size_t i = 0; i < nq; i++)
                sum[i][j] = lanes_mad(row[i], key, sum[i][j]);
        }
    }
    UNROLL
    for (size_t i = 0; i < nq; i++) {
        UNROLL
        for (size_t j = 0; j < ns; j++)
            d->out[(i0 + i) * d->ldo + j0 + j] = lanes_sum(sum[i][j]);
    }
}

/* All queries with ns keys from j on. */
LANES_FN void dots_keys(const struct dots *d, size_t j, size_t ns)
{
    size_t i = 0;
    for (; d->t->nq - i >= 2; i += 2)
        dots_block(d, i, j, 2, ns);
    if (i < d->t->nq)
        dots_block(d, i, j, 1, ns);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): out is written to, by way of d */
static void dots(const struct kp_tile *t, float *out, size_t ldo)
{
    const struct dots d = {t, out, ldo};
    size_t j = 0;
    for (; t->ns - j >= 4; j += 4)
        dots_keys(&d, j, 4);
    for (; j < t->ns; j++)
        dots_keys(&d, j, 1);
}

/* --- v . tanh(q + k) -------------------------------------------------------------------------
 */

/* sum[j][i] += v tanh(q[i] + k[j]) for the units h .. */
LANES_FN void additive_units(const struct kp_tile *t, const float *v, size_t h,
                             lanes sum[KP_TILE_S][KP_TILE_Q])
{
    size_t n = t->H - h;
    lanes weight = lanes_load(v + h, n);
    lanes q[KP_TILE_Q];
    for (size_t i = 0; i < t->nq; i++)
        q[i] = lanes_load(t->q + i * t->ldq + h, n);
    for (size_t j = 0; j < t->ns; j++) {
        prefetch_row(t->k + h, t->ldk, j, t->ns);
        lanes key = lanes_load(t->k + j * t->ldk + h, n);
        for (size_t i = 0; i < t->nq; i++)
            sum[j][i] = lanes_mad(weight, lanes_tanh(q[i] + key), sum[j][i]);
    }
}

static void additive(const struct kp_tile *t, const float *v, float *out, size_t ldo)
{
    lanes sum[KP_TILE_S][KP_TILE_Q];
    memset(sum, 0, t->ns * sizeof(sum[0]));
    for (size_t h = 0; h < t->H; h += LANES)
        additive_units(t, v, h, sum);
    for (size_t j = 0; j < t->ns; j++) {
        for (size_t i = 0; i < t->nq; i++)
            out[i * ldo + j] = lanes_sum(sum[j][i]);
    }
}

/* With t = tanh(q[i] + k[j]): dv += ds t, and e = ds (1 - t^2) v is the gradient of both q[i]
 * and k[j]; v is multiplied in at the end. */
LANES_FN void additive_units_back(const struct kp_tile *t, const float *v, const float *ds,
                                  const struct kp_tile_grad *g, size_t h)
{
    size_t n = t->H - h;
    lanes weight = lanes_load(v + h, n);
    lanes dv = lanes_load(g->dv + h, n);
    lanes q[KP_TILE_Q];
    lanes dq[KP_TILE_Q];
    for (size_t i = 0; i < t->nq; i++) {
        q[i] = lanes_load(t->q + i * t->ldq + h, n);
        dq[i] = lanes_of(0);
    }
    for (size_t j = 0; j < t->ns; j++) {
        prefetch_row(t->k + h, t->ldk, j, t->ns);
        prefetch_row(g->dk + h, t->ldk, j, t->ns);
        lanes key = lanes_load(t->k + j * t->ldk + h, n);
        lanes dkey = lanes_of(0);
        for (size_t i = 0; i < t->nq; i++) {
            lanes d = lanes_of(ds[i * KP_TILE_S + j]);
            lanes th = lanes_tanh(q[i] + key);
            lanes dth = d * th;
            lanes e = lanes_mad(-dth, th, d);
            dv += dth;
            dkey += e;
            dq[i] += e;
        }
        float *dk = g->dk + j * t->ldk + h;
        lanes_store(dk, n, lanes_mad(weight, dkey, g->add_k ? lanes_load(dk, n) : lanes_of(0)));
    }
    for (size_t i = 0; i < t->nq; i++) {
        float *out = g->dq + i * t->ldq + h;
        lanes_store(out, n,
                    lanes_mad(weight, dq[i], g->add_q ? lanes_load(out, n) : lanes_of(0)));
    }
    lanes_store(g->dv + h, n, dv);
}

static void additive_grad(const struct kp_tile *t, const float *v, const float *ds,
                          const struct kp_tile_grad *g)
{
    for (size_t h = 0; h < t->H; h += LANES)
        additive_units_back(t, v, ds, g, h);
}

/* --- sums of rows ----------------------------------------------------------------------------
 */

/* Rows of y at a time: with two registers' width of each, the sums fill half the registers. */
enum { MIX_ROWS = LANES == 16 ? 8 : 4 };

/* Columns c .. of rows i0 ..; `wide`: two registers full, else at most one. */
LANES_FN void mix_block(const struct kp_mix *m, size_t i0, size_t rows, size_t c, bool wide)
{
    size_t n = m->C - c;
    lanes sum[MIX_ROWS][2];
    const float *w = m->w + i0 * m->w_out;
    const float *x = m->x + c;
    float *y = m->y + i0 * m->ldy + c;
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        sum[i][0] = m->add ? lanes_load(y + i * m->ldy, n) : lanes_of(0);
        sum[i][1] = m->add && wide ? lanes_load(y + i * m->ldy + LANES, LANES) : lanes_of(0);
    }
    for (size_t j = 0; j < m->n_in; j++) {
        lanes first = lanes_load(x + j * m->ldx, n);
        lanes second = wide ? lanes_load(x + j * m->ldx + LANES, LANES) : lanes_of(0);
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            lanes a = lanes_of(w[i * m->w_out + j * m->w_in]);
            sum[i][0] = lanes_mad(a, first, sum[i][0]);
            if (wide)
                sum[i][1] = lanes_mad(a, second, sum[i][1]);
        }
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        lanes_store(y + i * m->ldy, n, sum[i][0]);
        if (wide)
            lanes_store(y + i * m->ldy + LANES, LANES, sum[i][1]);
    }
}

/* All rows of the columns c ..; `rows` at a time is a constant, which keeps sums in registers.
 */
LANES_FN void mix_columns(const struct kp_mix *m, size_t c, bool wide)
{
    size_t i = 0;
    for (; m->n_out - i >= MIX_ROWS; i += MIX_ROWS)
        mix_block(m, i, MIX_ROWS, c, wide);
    for (; m->n_out - i >= 2; i += 2)
        mix_block(m, i, 2, c, wide);
    if (i < m->n_out)
        mix_block(m, i, 1, c, wide);
}

static void mix(const struct kp_mix *m)
{
    size_t c = 0;
    for (; m->C - c >= 2 * (size_t)LANES; c += 2 * (size_t)LANES)
        mix_columns(m, c, true);
    for (; c < m->C; c += LANES)
        mix_columns(m, c, false);
}

/* --- softmax ---------------------------------------------------------------------------------
 */

static void softmax(size_t n, float scale, float *x)
{
    float largest = n ? x[0] : 0;
    for (size_t i = 1; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    float total = 0;
    for (size_t i = 0; i < n; i += LANES) {
        float e[LANES] = {0};
        size_t m = least(LANES, n - i);
        lanes_store(e, m, lanes_exp((lanes_load(x + i, m) - largest) * scale));
        memcpy(x + i, e, m * sizeof(*x));
        total += lanes_sum(lanes_load(e, LANES));
    }
    for (size_t i = 0; i < n; i++)
        x[i] /= total;
}

#endif
