/* SPDX-License-Identifier: MIT */
#include "golden.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "nn/attention.h"
#include "nn/passes.h"
#include "support/test.h"

#include <math.h>

enum { ARRAYS_MAX = 24 };

struct rig {
    struct kp_rng rng;
    float *arrays[ARRAYS_MAX];
    size_t n_arrays;
    struct kp_attention a;
    size_t n_q, n_k, n_values, n_weights, n_context;
    float *q, *k, *values, *v;
    float *dcontext; /* what the loss multiplies the context with */
    float *weights, *context;
    float *dq, *dk, *dvalues, *dv;
};

/* Of the exact size, so that the sanitizer sees the first float beside it. */
static float *array(struct rig *g, size_t n, bool random)
{
    float *x = kp_calloc(n ? n : 1, sizeof(float));
    assert_non_null(x);
    assert_true(g->n_arrays < ARRAYS_MAX);
    g->arrays[g->n_arrays++] = x;
    for (size_t i = 0; i < n; i++)
        x[i] = random ? (float)kp_rng_normal(&g->rng) : NAN; /* results are to be written */
    return x;
}

static void rig_init(struct rig *g, const struct kp_attention *a)
{
    *g = (struct rig){0};
    kp_rng_init(&g->rng, 11);
    bool additive = a->score == KP_SCORE_ADDITIVE;
    g->n_q = a->Q * a->B * a->H;
    g->n_k = a->S * a->B * a->H;
    g->n_values = a->S * a->B * a->C;
    g->n_weights = a->Q * a->B * a->S;
    g->n_context = a->Q * a->B * a->C;
    g->q = array(g, g->n_q, true);
    g->k = array(g, g->n_k, true);
    g->values = array(g, g->n_values, true);
    g->v = additive ? array(g, a->H, true) : NULL;
    g->dcontext = array(g, g->n_context, true);
    g->weights = array(g, g->n_weights, false);
    g->context = array(g, g->n_context, false);
    g->dq = array(g, g->n_q, false);
    g->dk = array(g, g->n_k, false);
    g->dvalues = array(g, g->n_values, false);
    g->dv = additive ? array(g, a->H, false) : NULL;
    for (size_t i = 0; additive && i < a->H; i++)
        g->dv[i] = 0;
    g->a = *a;
    g->a.v = g->v;
}

static void rig_deinit(struct rig *g)
{
    for (size_t i = 0; i < g->n_arrays; i++)
        kp_free(g->arrays[i]);
}

static void forward(struct rig *g)
{
    kp_attention_forward(&g->a, g->q, g->k, g->values, g->weights, g->context);
}

static void backward(struct rig *g)
{
    struct kp_attention_grad d = {g->dcontext, g->dq, g->dk, g->dvalues, g->dv};
    kp_attention_backward(&g->a, g->q, g->k, g->values, g->weights, &d);
}

static double loss(struct rig *g)
{
    forward(g);
    double s = 0;
    for (size_t i = 0; i < g->n_context; i++)
        s += (double)g->context[i] * (double)g->dcontext[i];
    return s;
}

/* Every stride-th element of x. The step is 2^-6: the outputs' rounding, about 1e-6 in the
 * loss, becomes 1e-4 in the quotient, and the third derivative's share is 4e-5 times it, which
 * through tanh and softmax stays below 3e-3. */
static void check_gradient(struct rig *g, const char *what, float *x, const float *dx, size_t n,
                           size_t stride)
{
    const float step = 0x1p-6F;
    for (size_t i = 0; x && i < n; i += stride) {
        float was = x[i];
        x[i] = was + step;
        double up = loss(g);
        double distance = (double)x[i];
        x[i] = was - step;
        double down = loss(g);
        distance -= (double)x[i];
        x[i] = was;
        double want = (up - down) / distance;
        if (!(fabs((double)dx[i] - want) <= 3e-3 * (1 + fabs(want))))
            fail_msg("score %d, Q %zu S %zu H %zu C %zu: element %zu of %s is %.6g, not %.6g",
                     (int)g->a.score, g->a.Q, g->a.S, g->a.H, g->a.C, i, what, (double)dx[i],
                     want);
    }
}

static void check_shape(const struct kp_attention *a, size_t stride)
{
    struct rig g;
    rig_init(&g, a);
    forward(&g);
    backward(&g);
    check_gradient(&g, "q", g.q, g.dq, g.n_q, stride);
    check_gradient(&g, "k", g.k, g.dk, g.n_k, stride);
    check_gradient(&g, "values", g.values, g.dvalues, g.n_values, stride);
    check_gradient(&g, "v", g.v, g.dv, a->H, 1);
    rig_deinit(&g);
}

static void check_score(enum kp_score score)
{
    static const size_t shapes[][6] = {
        /* Q S B H C, stride */
        {1, 1, 1, 1, 1, 1},  {3, 5, 2, 4, 6, 1},  {4, 4, 1, 16, 16, 3}, {5, 7, 2, 37, 50, 31},
        {19, 6, 1, 5, 3, 7}, {2, 37, 2, 5, 3, 7}, {17, 33, 1, 6, 7, 23}}; /* more than a tile */
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const size_t *s = shapes[i];
        struct kp_attention a = {score, s[0], s[1], s[2], s[3], s[4], NULL};
        check_shape(&a, s[5]);
    }
}

static void gradients_with_dot_scores_are_finite_differences(void **state)
{
    (void)state;
    check_score(KP_SCORE_DOT);
}

static void gradients_with_additive_scores_are_finite_differences(void **state)
{
    (void)state;
    check_score(KP_SCORE_ADDITIVE);
}

static void the_gradient_of_v_is_added_to(void **state)
{
    (void)state;
    struct kp_attention a = {KP_SCORE_ADDITIVE, 2, 3, 2, 21, 4, NULL};
    struct rig g;
    rig_init(&g, &a);
    float once[21];
    forward(&g);
    backward(&g);
    memcpy(once, g.dv, sizeof(once));
    backward(&g);
    for (size_t i = 0; i < 21; i++) /* a dozen terms in another order */
        assert_float_equal(g.dv[i], 2 * once[i], 1e-5);
    rig_deinit(&g);
}

static void without_keys_there_is_no_context(void **state)
{
    (void)state;
    for (int score = 0; score < 2; score++) {
        struct kp_attention a = {score ? KP_SCORE_ADDITIVE : KP_SCORE_DOT, 3, 0, 2, 5, 4, NULL};
        struct rig g;
        rig_init(&g, &a);
        forward(&g);
        backward(&g);
        for (size_t i = 0; i < g.n_context; i++)
            assert_true(g.context[i] == 0);
        for (size_t i = 0; i < g.n_q; i++)
            assert_true(g.dq[i] == 0);
        rig_deinit(&g);
    }
}

static void large_scores_do_not_overflow(void **state)
{
    (void)state;
    struct kp_attention a = {KP_SCORE_DOT, 2, 20, 1, 9, 3, NULL};
    struct rig g;
    rig_init(&g, &a);
    for (size_t i = 0; i < g.n_q; i++)
        g.q[i] *= 1e4F;
    forward(&g);
    for (size_t i = 0; i < a.Q; i++) {
        float sum = 0;
        for (size_t j = 0; j < a.S; j++) {
            float w = g.weights[i * a.S + j];
            assert_true(w >= 0 && w <= 1);
            sum += w;
        }
        assert_float_equal(sum, 1, 1e-6); /* 20 terms rounded to single precision */
    }
    rig_deinit(&g);
}

static void not_a_number_reaches_the_context(void **state)
{
    (void)state;
    for (int score = 0; score < 2; score++) {
        struct kp_attention a = {
            score ? KP_SCORE_ADDITIVE : KP_SCORE_DOT, 2, 3, 1, 18, 3, NULL};
        struct rig g;
        rig_init(&g, &a);
        g.q[17] = NAN;
        forward(&g);
        assert_true(isnan(g.context[0]));
        assert_true(isfinite(g.context[3])); /* the other query */
        rig_deinit(&g);
    }
}

/* --- PyTorch's numbers -----------------------------------------------------------------------
 */

/* Single precision: sums of some 20 products of numbers about 1, through a softmax; dv sums 60
 * terms. */
static const double GOLDEN_TOLERANCE = 5e-6;

static void check_golden(const char *name, enum kp_score score)
{
    struct golden f;
    golden_open(&f, name);
    bool additive = score == KP_SCORE_ADDITIVE;
    struct kp_attention a = {.score = score,
                             .Q = golden_shape(&f, "q", 0),
                             .S = golden_shape(&f, "k", 0),
                             .B = golden_shape(&f, "q", 1),
                             .H = golden_shape(&f, "q", 2),
                             .C = golden_shape(&f, "values", 2)};
    size_t n_q = a.Q * a.B * a.H;
    size_t n_k = a.S * a.B * a.H;
    size_t n_values = a.S * a.B * a.C;
    size_t n_context = a.Q * a.B * a.C;
    a.v = additive ? golden_f32(&f, "v", a.H) : NULL;
    float *q = golden_f32(&f, "q", n_q);
    float *k = golden_f32(&f, "k", n_k);
    float *values = golden_f32(&f, "values", n_values);
    float *weights = golden_zeros(&f, a.Q * a.B * a.S);
    float *context = golden_zeros(&f, n_context);
    kp_attention_forward(&a, q, k, values, weights, context);
    golden_check(&f, "weights", weights, a.Q * a.B * a.S, GOLDEN_TOLERANCE);
    golden_check(&f, "context", context, n_context, GOLDEN_TOLERANCE);

    float *dcontext = golden_f32(&f, "dcontext", n_context);
    struct kp_attention_grad g = {dcontext, golden_zeros(&f, n_q), golden_zeros(&f, n_k),
                                  golden_zeros(&f, n_values),
                                  additive ? golden_zeros(&f, a.H) : NULL};
    kp_attention_backward(&a, q, k, values, weights, &g);
    golden_check(&f, "dq", g.dq, n_q, GOLDEN_TOLERANCE);
    golden_check(&f, "dk", g.dk, n_k, GOLDEN_TOLERANCE);
    golden_check(&f, "dvalues", g.dvalues, n_values, GOLDEN_TOLERANCE);
    if (additive)
        golden_check(&f, "dv", g.dv, a.H, GOLDEN_TOLERANCE);
    golden_close(&f);
}

static void results_and_gradients_are_pytorchs(void **state)
{
    (void)state;
    check_golden("attention_dot", KP_SCORE_DOT);
    check_golden("attention_additive", KP_SCORE_ADDITIVE);
}

/* --- the same, however it is computed --------------------------------------------------------
 */

static void a_second_call_gives_the_same_bits(void **state)
{
    (void)state;
    for (int score = 0; score < 2; score++) {
        struct kp_attention a = {
            score ? KP_SCORE_ADDITIVE : KP_SCORE_DOT, 9, 11, 3, 45, 29, NULL};
        struct rig x;
        struct rig y;
        rig_init(&x, &a);
        rig_init(&y, &a);
        forward(&x);
        backward(&x);
        forward(&y);
        backward(&y);
        assert_memory_equal(x.context, y.context, x.n_context * sizeof(float));
        assert_memory_equal(x.dq, y.dq, x.n_q * sizeof(float));
        assert_memory_equal(x.dk, y.dk, x.n_k * sizeof(float));
        assert_memory_equal(x.dvalues, y.dvalues, x.n_values * sizeof(float));
        if (score)
            assert_memory_equal(x.dv, y.dv, a.H * sizeof(float));
        rig_deinit(&x);
        rig_deinit(&y);
    }
}

static void assert_near(const char *what, const float *a, const float *b, size_t n,
                        double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * (1 + fabs((double)b[i]))))
            fail_msg("%s: element %zu is %.9g and %.9g", what, i, (double)a[i], (double)b[i]);
    }
}

/* All loops of one table over one tile, with q [5][H], k [7][H]; results one after another. */
enum { TILE_Q = 5, TILE_S = 7, OUT_MAX = 1024 };

static size_t run_table(const struct kp_passes *p, const struct rig *g, size_t H, float *out)
{
    float *o = out;
    struct kp_tile t = {TILE_Q, TILE_S, H, g->q, H, g->k, H};
    float ds[KP_TILE_Q * KP_TILE_S] = {0};
    p->dots(&t, o, TILE_S);
    for (size_t i = 0; i < TILE_Q; i++)
        memcpy(ds + i * KP_TILE_S, o + i * TILE_S, TILE_S * sizeof(float));
    o += (size_t)TILE_Q * TILE_S;
    p->additive(&t, g->v, o, TILE_S);
    o += (size_t)TILE_Q * TILE_S;
    struct kp_tile_grad d = {o, true, o + TILE_Q * H, true, o + (TILE_Q + TILE_S) * H};
    p->additive_grad(&t, g->v, ds, &d);
    o += (TILE_Q + TILE_S + 1) * H;
    struct kp_mix m = {TILE_Q, TILE_S, H, ds, KP_TILE_S, 1, g->k, H, o, H, true};
    p->mix(&m);
    o += TILE_Q * H;
    memcpy(o, g->q, H * sizeof(float));
    p->softmax(H, 2, o);
    o += H;
    assert_true(o - out <= OUT_MAX);
    return (size_t)(o - out);
}

static void every_width_of_registers_agrees(void **state)
{
    (void)state;
    for (size_t i = 1; kp_passes_at(i); i++) {
        for (size_t H = 1; H <= 35; H++) {
            struct kp_attention a = {KP_SCORE_ADDITIVE, TILE_Q, TILE_S, 1, H, 1, NULL};
            struct rig g;
            rig_init(&g, &a);
            float x[OUT_MAX] = {0};
            float y[OUT_MAX] = {0};
            size_t n = run_table(kp_passes_at(0), &g, H, x);
            assert_int_equal(run_table(kp_passes_at(i), &g, H, y), n);
            /* Sums of up to 35 products of numbers about 1, of which the gradients sum seven
             * each with a factor of up to sqrt(35). */
            assert_near(kp_passes_at(i)->name, x, y, n, 2e-5);
            rig_deinit(&g);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_with_dot_scores_are_finite_differences),
        cmocka_unit_test(gradients_with_additive_scores_are_finite_differences),
        cmocka_unit_test(the_gradient_of_v_is_added_to),
        cmocka_unit_test(without_keys_there_is_no_context),
        cmocka_unit_test(large_scores_do_not_overflow),
        cmocka_unit_test(not_a_number_reaches_the_context),
        cmocka_unit_test(results_and_gradients_are_pytorchs),
        cmocka_unit_test(a_second_call_gives_the_same_bits),
        cmocka_unit_test(every_width_of_registers_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
