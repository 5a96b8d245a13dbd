/* SPDX-License-Identifier: MIT */
/* Time of a training step (forward and backward) of the layers that training spends its time
 * in, on one core:
 *
 *   bench_nn [--json] [--reference]
 *
 *   rnn        an LSTM and a GRU of 8 steps, 64 rows, 192 units, with the products of its 192
 *              inputs, and without them.
 *   attention  both scores over small and large numbers of queries, keys, rows and units.
 *   passes     the loops in each width of registers that this machine has, over rows that stay
 *              in the cache: nanoseconds for each unit of a step of a cell, and for each tanh
 * of additive attention.
 *
 * Times are those of the fastest of ROUNDS rounds of some 20 ms each: whatever else runs only
 * adds. The operations that are counted are multiplications and additions of the products of
 * matrices; in additive attention each tanh counts as one of them, so that the number says how
 * many of these go through. With
 * --reference the products are those of plain C. */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/passes.h"
#include "nn/rnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARRAYS_MAX = 32, ROUNDS_MIN = 20, ROUND_NS = 1000000, TOTAL_NS = 400000000 };

struct bench {
    const struct kp_blas *blas;
    bool json;
    struct kp_rng rng;
    float *arrays[ARRAYS_MAX];
    size_t n_arrays;
};

static float *array(struct bench *b, size_t n)
{
    float *x = kp_calloc(n, sizeof(float));
    if (!x || b->n_arrays == ARRAYS_MAX) {
        (void)fprintf(stderr, "bench_nn: out of memory\n");
        exit(1);
    }
    b->arrays[b->n_arrays++] = x;
    for (size_t i = 0; i < n; i++)
        x[i] = 0.3F * (float)kp_rng_normal(&b->rng);
    return x;
}

static void free_arrays(struct bench *b)
{
    for (size_t i = 0; i < b->n_arrays; i++)
        kp_free(b->arrays[i]);
    b->n_arrays = 0;
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Seconds of one call. */
static double seconds(void (*call)(void *), void *ctx)
{
    double best = 0;
    int64_t begin = cpu_ns();
    size_t calls = 1;
    for (int round = 0; round < ROUNDS_MIN || cpu_ns() - begin < TOTAL_NS; round++) {
        int64_t start = cpu_ns();
        for (size_t i = 0; i < calls; i++)
            call(ctx);
        int64_t took = cpu_ns() - start;
        double each = (double)took * 1e-9 / (double)calls;
        if (round == 0 || each < best)
            best = each;
        if (took < ROUND_NS)
            calls *= 2;
    }
    return best;
}

static void report(const struct bench *b, const char *name, double s, double operations)
{
    if (b->json)
        (void)printf("{\"name\": \"%s\", \"us\": %.2f, \"gops\": %.2f}\n", name, s * 1e6,
                     operations / s * 1e-9);
    else
        (void)printf("%-44s %10.1f us %8.1f Gop/s\n", name, s * 1e6, operations / s * 1e-9);
}

/* --- recurrent layers ------------------------------------------------------------------------
 */

struct rnn_step {
    const struct kp_blas *blas;
    struct kp_rnn r;
    struct kp_linear x_to_pre;
    const float *pre0;
    float *x, *pre, *h, *c, *dx, *dw_x, *db, *work;
    struct kp_rnn_grad g;
    size_t n_pre;
};

static void run_recurrent(void *ctx)
{
    struct rnn_step *s = ctx;
    const struct kp_rnn_state zeros = {NULL, NULL};
    memcpy(s->pre, s->pre0, s->n_pre * sizeof(float));
    kp_rnn_forward(s->blas, &s->r, &zeros, s->pre, s->h, s->c);
    kp_rnn_backward(s->blas, &s->r, &zeros, s->pre, s->h, s->c, &s->g, s->work);
}

static void run_whole(void *ctx)
{
    struct rnn_step *s = ctx;
    const struct kp_rnn_state zeros = {NULL, NULL};
    kp_linear_forward(s->blas, &s->x_to_pre, s->x, s->pre);
    kp_rnn_forward(s->blas, &s->r, &zeros, s->pre, s->h, s->c);
    kp_rnn_backward(s->blas, &s->r, &zeros, s->pre, s->h, s->c, &s->g, s->work);
    kp_linear_backward(s->blas, &s->x_to_pre, s->x, s->pre, s->dx, s->dw_x, s->db);
}

static void bench_rnn(struct bench *b, enum kp_cell cell)
{
    enum { T = 8, B = 64, I = 192, H = 192 };
    size_t G = kp_rnn_gates(cell, H);
    struct rnn_step s = {.blas = b->blas, .n_pre = T * B * G};
    s.r = (struct kp_rnn){cell, false, T, B, H, array(b, G * H), array(b, H)};
    s.x_to_pre = (struct kp_linear){(size_t)T * B, I, G, array(b, G * I), array(b, G)};
    s.pre0 = array(b, s.n_pre);
    s.pre = array(b, s.n_pre);
    s.x = array(b, (size_t)T * B * I);
    s.dx = array(b, (size_t)T * B * I);
    s.h = array(b, (size_t)T * B * H);
    s.c = array(b, (size_t)T * B * H);
    s.dw_x = array(b, G * I);
    s.db = array(b, G);
    s.work = array(b, kp_rnn_work(&s.r));
    s.g = (struct kp_rnn_grad){
        .dh = array(b, (size_t)T * B * H), .dw_h = array(b, G * H), .db_n = array(b, H)};
    double products = 3.0 * 2 * T * B * (double)G;
    const char *names[2][2] = {{"rnn LSTM T=8 B=64 I=H=192", "rnn GRU T=8 B=64 I=H=192"},
                               {"rnn LSTM, recurrent part", "rnn GRU, recurrent part"}};
    report(b, names[0][cell == KP_CELL_GRU], seconds(run_whole, &s), products * (I + H));
    report(b, names[1][cell == KP_CELL_GRU], seconds(run_recurrent, &s),
           products * H * (T - 1) / T);
    free_arrays(b);
}

/* --- attention -------------------------------------------------------------------------------
 */

struct attention_step {
    struct kp_attention a;
    float *q, *k, *values, *weights, *context;
    struct kp_attention_grad g;
};

static void run_attention(void *ctx)
{
    struct attention_step *s = ctx;
    kp_attention_forward(&s->a, s->q, s->k, s->values, s->weights, s->context);
    kp_attention_backward(&s->a, s->q, s->k, s->values, s->weights, &s->g);
}

static void bench_attention(struct bench *b, const struct kp_attention *shape)
{
    struct attention_step s = {.a = *shape};
    const struct kp_attention *a = &s.a;
    size_t n_q = a->Q * a->B * a->H;
    size_t n_k = a->S * a->B * a->H;
    s.q = array(b, n_q);
    s.k = array(b, n_k);
    s.values = array(b, a->S * a->B * a->C);
    s.weights = array(b, a->Q * a->B * a->S);
    s.context = array(b, a->Q * a->B * a->C);
    s.a.v = array(b, a->H);
    s.g = (struct kp_attention_grad){array(b, a->Q * a->B * a->C), array(b, n_q), array(b, n_k),
                                     array(b, a->S * a->B * a->C), array(b, a->H)};
    bool dot = a->score == KP_SCORE_DOT;
    char name[96];
    (void)snprintf(name, sizeof(name), "attention %s Q=%zu S=%zu B=%zu H=C=%zu",
                   dot ? "dot" : "additive", a->Q, a->S, a->B, a->H);
    double pairs = (double)(a->Q * a->S * a->B);
    /* dot: scores, context and two products each of their gradients; additive: tanh, twice. */
    double operations = pairs * (dot ? 12.0 * (double)a->H : 2.0 * (double)a->H);
    report(b, name, seconds(run_attention, &s), operations);
    free_arrays(b);
}

/* --- passes ----------------------------------------------------------------------------------
 */

enum { PASS_H = 256 };

struct pass_call {
    const struct kp_passes *p;
    struct kp_cell_step s;
    struct kp_cell_grad g;
    struct kp_tile t;
    struct kp_tile_grad tg;
    float *c, *h, *v, *out;
};

static void pass_lstm(void *ctx)
{
    struct pass_call *k = ctx;
    k->p->lstm_forward(&k->s, k->c, k->h);
    k->p->lstm_backward(&k->s, k->c, &k->g);
}

static void pass_gru(void *ctx)
{
    struct pass_call *k = ctx;
    k->p->gru_forward(&k->s, k->v, k->c, k->h);
    k->p->gru_backward(&k->s, k->c, &k->g);
}

static void pass_additive(void *ctx)
{
    struct pass_call *k = ctx;
    k->p->additive(&k->t, k->v, k->out, KP_TILE_S);
    k->p->additive_grad(&k->t, k->v, k->out, &k->tg);
}

static void bench_passes(struct bench *b, const struct kp_passes *p)
{
    enum { Q = 8, S = 16 };
    struct pass_call k = {.p = p};
    k.s = (struct kp_cell_step){1, PASS_H, array(b, (size_t)4 * PASS_H), array(b, PASS_H)};
    k.g = (struct kp_cell_grad){array(b, PASS_H), array(b, PASS_H), array(b, PASS_H),
                                array(b, PASS_H)};
    k.c = array(b, PASS_H);
    k.h = array(b, PASS_H);
    k.v = array(b, PASS_H);
    k.out = array(b, (size_t)KP_TILE_Q * KP_TILE_S);
    k.t = (struct kp_tile){
        Q,     S, PASS_H, array(b, (size_t)Q * PASS_H), PASS_H, array(b, (size_t)S * PASS_H),
        PASS_H};
    k.tg = (struct kp_tile_grad){array(b, (size_t)Q * PASS_H), false,
                                 array(b, (size_t)S * PASS_H), false, array(b, PASS_H)};
    static const struct {
        const char *name;
        void (*call)(void *ctx);
        double units;
    } calls[] = {{"LSTM", pass_lstm, PASS_H},
                 {"GRU", pass_gru, PASS_H},
                 {"additive", pass_additive, 2.0 * Q * S * PASS_H}};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "passes %s %s", p->name, calls[i].name);
        double ns = seconds(calls[i].call, &k) * 1e9 / calls[i].units;
        (void)printf(b->json ? "{\"name\": \"%s\", \"ns\": %.3f}\n" : "%-44s %10.3f ns\n", name,
                     ns);
    }
    free_arrays(b);
}

int main(int argc, char **argv)
{
    static const size_t shapes[][4] = {{5, 4, 16, 64},
                                       {8, 8, 64, 128},
                                       {10, 20, 64, 192},
                                       {16, 24, 128, 128},
                                       {16, 24, 128, 256}};
    struct bench b = {.blas = kp_blas_fast()};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            b.json = true;
        else if (strcmp(argv[i], "--reference") == 0)
            b.blas = kp_blas_reference();
        else
            return fprintf(stderr, "bench_nn [--json] [--reference]\n") < 0 ? 1 : 2;
    }
    kp_rng_init(&b.rng, 1);
    if (!b.json)
        (void)printf("products: %s, passes: %s\n", b.blas->name, kp_passes_best()->name);
    bench_rnn(&b, KP_CELL_LSTM);
    bench_rnn(&b, KP_CELL_GRU);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int score = 0; score < 2; score++) {
            const size_t *s = shapes[i];
            struct kp_attention a = {
                score ? KP_SCORE_ADDITIVE : KP_SCORE_DOT, s[0], s[1], s[2], s[3], s[3], NULL};
            bench_attention(&b, &a);
        }
    }
    for (size_t i = 0; kp_passes_at(i); i++)
        bench_passes(&b, kp_passes_at(i));
    return 0;
}
