/* SPDX-License-Identifier: MIT */
#include "golden.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "nn/passes.h"
#include "nn/rnn.h"
#include "support/test.h"

#include <math.h>

/* Pointers into one rig's arrays. */
enum { ARRAYS_MAX = 24 };

struct rig {
    struct kp_rng rng;
    float *arrays[ARRAYS_MAX];
    size_t n_arrays;
    struct kp_rnn r;
    struct kp_rnn_state s;
    size_t n_pre, n_h, n_w, n_row;
    float *pre0, *w_h, *b_n, *h0, *c0; /* inputs */
    float *dh, *dh_end, *dc_end;       /* what the loss multiplies the outputs with */
    float *pre, *h, *c;
    float *dw_h, *db_n, *dh0, *dc0, *work;
};

/* Of the exact size, so that the sanitizer sees the first float beside it. */
static float *array(struct rig *g, size_t n, float scale)
{
    float *x = kp_calloc(n ? n : 1, sizeof(float));
    assert_non_null(x);
    assert_true(g->n_arrays < ARRAYS_MAX);
    g->arrays[g->n_arrays++] = x;
    for (size_t i = 0; i < n && scale > 0; i++)
        x[i] = scale * (float)kp_rng_normal(&g->rng);
    return x;
}

struct choice {
    enum kp_cell cell;
    bool reverse;
    bool states; /* h0 and c0 are given and wanted */
    bool ends;   /* dh_end and dc_end are given */
    size_t T, B, H;
};

static void rig_init(struct rig *g, const struct choice *k)
{
    *g = (struct rig){0};
    kp_rng_init(&g->rng, 7);
    bool lstm = k->cell == KP_CELL_LSTM;
    size_t G = kp_rnn_gates(k->cell, k->H);
    g->n_row = k->B * k->H;
    g->n_pre = k->T * k->B * G;
    g->n_h = k->T * g->n_row;
    g->n_w = G * k->H;
    g->pre0 = array(g, g->n_pre, 1);
    g->w_h = array(g, g->n_w, 1 / sqrtf((float)k->H));
    g->b_n = lstm ? NULL : array(g, k->H, 1);
    g->h0 = k->states ? array(g, g->n_row, 1) : NULL;
    g->c0 = k->states && lstm ? array(g, g->n_row, 1) : NULL;
    g->dh = array(g, g->n_h, 1);
    g->dh_end = k->ends ? array(g, g->n_row, 1) : NULL;
    g->dc_end = k->ends && lstm ? array(g, g->n_row, 1) : NULL;
    g->r = (struct kp_rnn){k->cell, k->reverse, k->T, k->B, k->H, g->w_h, g->b_n};
    g->s = (struct kp_rnn_state){g->h0, g->c0};
    g->pre = array(g, g->n_pre, 0);
    g->h = array(g, g->n_h, 0);
    g->c = array(g, g->n_h, 0);
    g->dw_h = array(g, g->n_w, 0);
    g->db_n = lstm ? NULL : array(g, k->H, 0);
    g->dh0 = k->states ? array(g, g->n_row, 0) : NULL;
    g->dc0 = k->states && lstm ? array(g, g->n_row, 0) : NULL;
    g->work = array(g, kp_rnn_work(&g->r), 0);
}

static void rig_deinit(struct rig *g)
{
    for (size_t i = 0; i < g->n_arrays; i++)
        kp_free(g->arrays[i]);
}

static void forward(struct rig *g, const struct kp_blas *blas)
{
    memcpy(g->pre, g->pre0, g->n_pre * sizeof(float));
    kp_rnn_forward(blas, &g->r, &g->s, g->pre, g->h, g->c);
}

static void backward(struct rig *g, const struct kp_blas *blas)
{
    struct kp_rnn_grad grad = {g->dh, g->dh_end, g->dc_end, g->dw_h, g->db_n, g->dh0, g->dc0};
    kp_rnn_backward(blas, &g->r, &g->s, g->pre, g->h, g->c, &grad, g->work);
}

static double dot(const float *a, const float *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; a && b && i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

static double loss(struct rig *g)
{
    forward(g, kp_blas_reference());
    size_t last = g->r.reverse ? 0 : (g->r.T - 1) * g->n_row;
    return dot(g->h, g->dh, g->n_h) + dot(g->h + last, g->dh_end, g->n_row) +
           dot(g->c + last, g->dc_end, g->n_row);
}

/* Every stride-th element of x. The step is 2^-6: the outputs' rounding, some 1e-7 each and
 * about 1e-6 in the loss, becomes 1e-4 in the quotient, and the third derivative's share is
 * 4e-5 times it, which for a few steps of a recurrent layer stays below 2e-3. */
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
        if (!(fabs((double)dx[i] - want) <= 2e-3 * (1 + fabs(want))))
            fail_msg("%s: element %zu of %s is %.6g, not %.6g", g->b_n ? "gru" : "lstm", i,
                     what, (double)dx[i], want);
    }
}

static void check_choice(const struct choice *k, size_t stride)
{
    struct rig g;
    rig_init(&g, k);
    forward(&g, kp_blas_reference());
    backward(&g, kp_blas_reference());
    float *dpre = array(&g, g.n_pre, 0);
    memcpy(dpre, g.pre, g.n_pre * sizeof(float));
    check_gradient(&g, "pre", g.pre0, dpre, g.n_pre, stride);
    check_gradient(&g, "w_h", g.w_h, g.dw_h, g.n_w, stride);
    check_gradient(&g, "b_n", g.b_n, g.db_n, k->H, 1);
    check_gradient(&g, "h0", g.h0, g.dh0, g.n_row, stride);
    check_gradient(&g, "c0", g.c0, g.dc0, g.n_row, stride);
    rig_deinit(&g);
}

static void check_cell(enum kp_cell cell)
{
    for (unsigned bits = 0; bits < 8; bits++) {
        struct choice k = {cell, bits & 1, bits & 2, bits & 4, 3, 2, 5};
        check_choice(&k, 1);
        k.T = 1;
        check_choice(&k, 1);
        k.T = 2;
        k.H = 37; /* two registers and a rest */
        check_choice(&k, 53);
    }
}

static void gradients_of_an_lstm_are_its_finite_differences(void **state)
{
    (void)state;
    check_cell(KP_CELL_LSTM);
}

static void gradients_of_a_gru_are_its_finite_differences(void **state)
{
    (void)state;
    check_cell(KP_CELL_GRU);
}

static void no_step_passes_the_state_gradient_on(void **state)
{
    (void)state;
    struct choice k = {KP_CELL_LSTM, false, true, true, 0, 2, 5};
    struct rig g;
    rig_init(&g, &k);
    forward(&g, kp_blas_reference());
    backward(&g, kp_blas_reference());
    assert_memory_equal(g.dh0, g.dh_end, g.n_row * sizeof(float));
    assert_memory_equal(g.dc0, g.dc_end, g.n_row * sizeof(float));
    rig_deinit(&g);
}

static void weight_gradients_are_added_to(void **state)
{
    (void)state;
    for (int cell = 0; cell < 2; cell++) {
        struct choice k = {cell ? KP_CELL_GRU : KP_CELL_LSTM, false, true, false, 3, 4, 6};
        struct rig g;
        rig_init(&g, &k);
        float *once = array(&g, g.n_w, 0);
        float *once_n = array(&g, k.H, 0);
        for (int pass = 0; pass < 2; pass++) {
            forward(&g, kp_blas_reference());
            backward(&g, kp_blas_reference());
            if (pass)
                break;
            memcpy(once, g.dw_h, g.n_w * sizeof(float));
            if (cell)
                memcpy(once_n, g.db_n, k.H * sizeof(float));
        }
        /* Sums of a dozen terms in another order. */
        for (size_t i = 0; i < g.n_w; i++)
            assert_float_equal(g.dw_h[i], 2 * once[i], 1e-5);
        for (size_t i = 0; cell && i < k.H; i++)
            assert_float_equal(g.db_n[i], 2 * once_n[i], 1e-5);
        rig_deinit(&g);
    }
}

/* --- PyTorch's numbers -----------------------------------------------------------------------
 */

/* Single precision: results of sums of 17 products, four steps deep, of numbers about 1. */
static const double GOLDEN_TOLERANCE = 4e-6;

static void check_golden(const char *name, enum kp_cell cell, bool reverse,
                         const struct kp_blas *blas)
{
    struct golden f;
    golden_open(&f, name);
    bool lstm = cell == KP_CELL_LSTM;
    size_t T = golden_shape(&f, "h", 0);
    size_t B = golden_shape(&f, "h", 1);
    size_t H = golden_shape(&f, "h", 2);
    size_t G = kp_rnn_gates(cell, H);
    struct kp_rnn r = {cell,
                       reverse,
                       T,
                       B,
                       H,
                       golden_f32(&f, "w_h", G * H),
                       lstm ? NULL : golden_f32(&f, "b_n", H)};
    struct kp_rnn_state s = {golden_f32(&f, "h0", B * H),
                             lstm ? golden_f32(&f, "c0", B * H) : NULL};
    float *pre = golden_f32(&f, "pre", T * B * G);
    float *h = golden_zeros(&f, T * B * H);
    float *c = golden_zeros(&f, T * B * H);
    kp_rnn_forward(blas, &r, &s, pre, h, c);
    golden_check(&f, "h", h, T * B * H, GOLDEN_TOLERANCE);
    if (lstm)
        golden_check(&f, "c_end", c + (reverse ? 0 : T - 1) * B * H, B * H, GOLDEN_TOLERANCE);

    struct kp_rnn_grad g = {.dh = golden_f32(&f, "dh", T * B * H),
                            .dh_end = golden_f32(&f, "dh_end", B * H),
                            .dc_end = lstm ? golden_f32(&f, "dc_end", B * H) : NULL,
                            .dw_h = golden_zeros(&f, G * H),
                            .db_n = lstm ? NULL : golden_zeros(&f, H),
                            .dh0 = golden_zeros(&f, B * H),
                            .dc0 = golden_zeros(&f, B * H)};
    kp_rnn_backward(blas, &r, &s, pre, h, c, &g, golden_zeros(&f, kp_rnn_work(&r)));
    golden_check(&f, "dpre", pre, T * B * G, GOLDEN_TOLERANCE);
    golden_check(&f, "dw_h", g.dw_h, G * H, GOLDEN_TOLERANCE);
    golden_check(&f, "dh0", g.dh0, B * H, GOLDEN_TOLERANCE);
    if (lstm)
        golden_check(&f, "dc0", g.dc0, B * H, GOLDEN_TOLERANCE);
    else
        golden_check(&f, "db_n", g.db_n, H, GOLDEN_TOLERANCE);
    golden_close(&f);
}

static void results_and_gradients_are_pytorchs(void **state)
{
    (void)state;
    const struct kp_blas *tables[] = {kp_blas_reference(), kp_blas_fast()};
    for (size_t i = 0; i < 2; i++) {
        check_golden("lstm", KP_CELL_LSTM, false, tables[i]);
        check_golden("lstm_reverse", KP_CELL_LSTM, true, tables[i]);
        check_golden("gru", KP_CELL_GRU, false, tables[i]);
        check_golden("gru_reverse", KP_CELL_GRU, true, tables[i]);
    }
}

/* --- the same, however it is computed --------------------------------------------------------
 */

static void assert_near(const char *what, const float *a, const float *b, size_t n,
                        double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * (1 + fabs((double)b[i]))))
            fail_msg("%s: element %zu is %.9g and %.9g", what, i, (double)a[i], (double)b[i]);
    }
}

static void both_blas_agree(void **state)
{
    (void)state;
    for (int cell = 0; cell < 2; cell++) {
        struct choice k = {cell ? KP_CELL_GRU : KP_CELL_LSTM, cell, true, true, 8, 24, 48};
        struct rig a;
        struct rig b;
        rig_init(&a, &k);
        rig_init(&b, &k);
        forward(&a, kp_blas_reference());
        forward(&b, kp_blas_fast());
        /* Sums of 48 products in another order, eight steps deep. */
        assert_near("h", a.h, b.h, a.n_h, 2e-6);
        backward(&a, kp_blas_reference());
        backward(&b, kp_blas_fast());
        assert_near("pre", a.pre, b.pre, a.n_pre, 1e-5);
        assert_near("dh0", a.dh0, b.dh0, a.n_row, 1e-5);
        /* Sums over the 192 rows of all steps. */
        assert_near("dw_h", a.dw_h, b.dw_h, a.n_w, 5e-5);
        rig_deinit(&a);
        rig_deinit(&b);
    }
}

static void a_second_call_gives_the_same_bits(void **state)
{
    (void)state;
    for (int cell = 0; cell < 2; cell++) {
        struct choice k = {cell ? KP_CELL_GRU : KP_CELL_LSTM, false, true, true, 5, 17, 43};
        struct rig a;
        struct rig b;
        rig_init(&a, &k);
        rig_init(&b, &k);
        (void)array(&b, 3, 0);
        forward(&a, kp_blas_fast());
        backward(&a, kp_blas_fast());
        forward(&b, kp_blas_fast());
        backward(&b, kp_blas_fast());
        assert_memory_equal(a.h, b.h, a.n_h * sizeof(float));
        assert_memory_equal(a.pre, b.pre, a.n_pre * sizeof(float));
        assert_memory_equal(a.dw_h, b.dw_h, a.n_w * sizeof(float));
        assert_memory_equal(a.dh0, b.dh0, a.n_row * sizeof(float));
        rig_deinit(&a);
        rig_deinit(&b);
    }
}

/* One step of either cell through one table; outputs stay in the rig. */
static void step_through(struct rig *g, const struct kp_passes *p)
{
    memcpy(g->pre, g->pre0, g->n_pre * sizeof(float));
    memset(g->work, 0, 2 * g->n_row * sizeof(float));
    struct kp_cell_step s = {g->r.B, g->r.H, g->pre, g->b_n ? g->h0 : g->c0};
    struct kp_cell_grad d = {g->dh, g->work, g->work + g->n_row, g->db_n};
    if (g->b_n) {
        memcpy(g->c, g->dh, g->n_h * sizeof(float)); /* any numbers */
        p->gru_forward(&s, g->b_n, g->c, g->h);
        p->gru_backward(&s, g->c, &d);
    } else {
        p->lstm_forward(&s, g->c, g->h);
        p->lstm_backward(&s, g->c, &d);
    }
}

static void every_width_of_registers_agrees(void **state)
{
    (void)state;
    size_t n_tables = 0;
    for (size_t i = 0; kp_passes_at(i); i++)
        n_tables++;
    assert_true(n_tables >= 1);
    assert_string_equal(kp_passes_at(n_tables - 1)->name, "plain");
    for (size_t i = 1; i < n_tables; i++) {
        for (size_t H = 1; H <= 35; H++) {
            struct choice k = {H % 2 ? KP_CELL_GRU : KP_CELL_LSTM, false, H % 3, true, 1, 2, H};
            struct rig a;
            struct rig b;
            rig_init(&a, &k);
            rig_init(&b, &k);
            step_through(&a, kp_passes_at(0));
            step_through(&b, kp_passes_at(i));
            /* tanh and sigmoid differ by up to 6e-7 and are multiplied with numbers about 1. */
            assert_near("h", a.h, b.h, a.n_h, 4e-6);
            assert_near("c", a.c, b.c, a.n_h, 4e-6);
            assert_near("pre", a.pre, b.pre, a.n_pre, 4e-6);
            assert_near("work", a.work, b.work, 2 * a.n_row, 4e-6);
            if (a.b_n)
                assert_near("db_n", a.db_n, b.db_n, H, 4e-6);
            rig_deinit(&a);
            rig_deinit(&b);
        }
    }
}

static void not_a_number_stays_one(void **state)
{
    (void)state;
    for (size_t i = 0; kp_passes_at(i); i++) {
        struct choice k = {KP_CELL_LSTM, false, false, false, 1, 1, 21};
        struct rig g;
        rig_init(&g, &k);
        g.pre0[20] = NAN;
        g.pre0[21 + 3] = INFINITY;
        step_through(&g, kp_passes_at(i));
        assert_true(isnan(g.h[20]));
        assert_true(isfinite(g.h[3]));
        rig_deinit(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_an_lstm_are_its_finite_differences),
        cmocka_unit_test(gradients_of_a_gru_are_its_finite_differences),
        cmocka_unit_test(no_step_passes_the_state_gradient_on),
        cmocka_unit_test(weight_gradients_are_added_to),
        cmocka_unit_test(results_and_gradients_are_pytorchs),
        cmocka_unit_test(both_blas_agree),
        cmocka_unit_test(a_second_call_gives_the_same_bits),
        cmocka_unit_test(every_width_of_registers_agrees),
        cmocka_unit_test(not_a_number_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
