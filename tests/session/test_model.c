/* SPDX-License-Identifier: MIT */
/* Sessions that begin with what a model predicts. The fake kernel's best tile is not the one
 * that the model learned: BM=32,BN=8 takes 28.0 us, BM=32,BN=16, the best of the data, 28.8 us.
 */
#include "session/session.h"

#include <math.h>
#include <stdbool.h>

#define TILES(kernel, sizes, bm)                                       \
    "#pragma kopt kernel " kernel "\n"                                 \
    "#pragma kopt lang opencl\n"                                       \
    "#pragma kopt problem " sizes "\n"                                 \
    "#pragma kopt param " bm " BN {8,16,32,64} SPLIT {1,2}\n"          \
    "#pragma kopt require BM <= M && BN <= 64\n"                       \
    "#pragma kopt require BM*BN <= 1024\n"                             \
    "#pragma kopt default BN=8 SPLIT=1\n"                              \
    "#pragma kopt block 8\n"                                           \
    "#pragma kopt grid 1\n"                                            \
    "#pragma kopt arg b f32[64] out\n"                                 \
    "// fake: time 40000\n// fake: add BM -400\n// fake: add BN 100\n" \
    "// fake: when BM=64 crash\n"                                      \
    "kernel void " kernel "(global float *b) {}\n"

static const char tiles[] = TILES("tiles", "M N", "BM {8,16,32,64}");
static const char *const problem[] = {"M=120", "N=80"};

enum { N_VALID = 26 };

/* Times that are least for BM=32 and BN=16 (M from 96 on, N from 48 to 127). */
static double time_us(int M, int N, int bm, int bn)
{
    double want_m = M >= 96 ? 32 : 16;
    double want_n = N >= 128 ? 32 : N >= 48 ? 16 : 8;
    return 25 + fabs(log2(bm / want_m)) + 1.5 * fabs(log2(bn / want_n));
}

static void write_data(const char *path)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    (void)fprintf(f, "M,N,BM,BN,SPLIT,time_us\n");
    for (int i = 0; i < 150; i++) {
        int M = 16 + 8 * (i % 17);
        int N = 16 + 16 * (i % 13);
        for (int bm = 8; bm <= 64 && bm <= M; bm *= 2)
            for (int bn = 8; bn <= 64 && bm * bn <= 1024; bn *= 2)
                (void)fprintf(f, "%d,%d,%d,%d,%d,%.4f\n", M, N, bm, bn, 1 + M / 8 % 2,
                              time_us(M, N, bm, bn));
    }
    assert_int_equal(fclose(f), 0);
}

static void train(const char *out, bool with_rules)
{
    static const char *const params[] = {"BM", "BN", "SPLIT"};
    kopt_train_options o;
    kopt_error err = {0};
    kopt_train_options_init(&o);
    write_data("data.csv");
    o.data.path = "data.csv";
    if (with_rules) {
        o.data.rules = write_kernel("tiles.cl", tiles);
    } else {
        o.data.kernel = "tiles";
        o.data.params = params;
        o.data.n_params = 3;
    }
    o.network = "factored";
    o.out = out;
    o.nets = 1;
    o.hidden = 16;
    o.embed = 4;
    o.epochs = 12;
    o.batch = 16;
    o.rate = 0.01;
    o.threads = 1;
    if (kopt_train(&o, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static int train_once(void **state)
{
    (void)state;
    train("tiles.model", true);
    return 0;
}

/* What the session said at its start. */
static kopt_tune_start started;

static void on_start(void *user, const kopt_tune_start *s)
{
    (void)user;
    started = *s;
}

static void with_model(struct session *s, const char *text, const char *model, unsigned top)
{
    session_init(s, write_kernel("k.cl", text), NULL);
    s->o.problem = problem;
    s->o.n_problem = 2;
    s->o.compilers = 1; /* results arrive in the order of asking */
    s->o.flush = -1;
    s->o.max_samples = 2;
    s->o.model = model;
    s->o.model_top = top;
    s->o.callbacks.start = on_start;
}

static void must_run(struct session *s)
{
    session_run(s);
    if (s->status != KOPT_OK)
        fail_msg("%s (%s)", s->err.message, s->err.hint);
}

static kopt_prediction *predict(size_t top, size_t *n)
{
    kopt_model *m = NULL;
    kopt_prediction *p = NULL;
    kopt_predict_options o;
    kopt_predict_options_init(&o);
    o.top = top;
    assert_int_equal(kopt_model_open("tiles.model", &m, NULL), KOPT_OK);
    assert_int_equal(kopt_predict(m, problem, 2, &o, &p, n, NULL), KOPT_OK);
    kopt_model_close(m);
    return p;
}

static void assert_all_once(const struct session *s, size_t n)
{
    assert_int_equal(s->n_seen, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(s->seen[i].config, s->seen[j].config);
}

/* --- the order ---------------------------------------------------------------------------- */

static void predictions_come_behind_the_default(void **state)
{
    (void)state;
    struct session s;
    size_t n = 0;
    kopt_prediction *p = predict(20, &n);
    assert_int_equal(n, 20);
    with_model(&s, tiles, "tiles.model", 0);
    must_run(&s);
    assert_string_equal(started.model, "tiles.model");
    assert_int_equal(started.predictions, 20);
    assert_int_equal(started.predictions_dropped, 0);
    assert_all_once(&s, N_VALID);
    assert_string_equal(s.seen[0].config, s.report.first_text);
    size_t at = 1;
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(p[i].text, s.report.best_text) == 0)
            best = i + 1;
        if (strcmp(p[i].text, s.seen[0].config) != 0)
            assert_string_equal(p[i].text, s.seen[at++].config);
    }
    assert_true(at >= 20);
    assert_string_equal(s.report.best_from, best ? "model" : "search");
    assert_int_equal(s.report.best_rank, best);
    /* The clock of the fake device is exact. */
    assert_true(fabs(s.report.best.median_ns - 28000) < 1e-6);
    assert_non_null(strstr(p[0].text, "BM=32,BN=16"));
    assert_string_equal(s.report.predicted.config, p[0].config);
    assert_true(fabs(s.report.predicted_share - 28000.0 / 28800) < 1e-9);
    session_end(&s);
    kopt_text_free((char *)p);
}

static void a_budget_may_end_within_the_list(void **state)
{
    (void)state;
    struct session s;
    size_t n = 0;
    kopt_prediction *p = predict(3, &n);
    with_model(&s, tiles, "tiles.model", 20);
    s.o.max_evaluations = 3;
    must_run(&s);
    assert_all_once(&s, 3);
    assert_string_equal(s.seen[1].config, p[0].text);
    assert_string_equal(s.seen[2].config, p[1].text);
    assert_string_equal(s.report.best_from, "model");
    assert_in_range(s.report.best_rank, 1, 2);
    session_end(&s);
    with_model(&s, tiles, "tiles.model", 20);
    s.o.max_evaluations = 1;
    must_run(&s);
    assert_all_once(&s, 1);
    assert_string_equal(s.report.best_from, "default");
    assert_string_equal(s.report.predicted.config, "");
    assert_true(isnan(s.report.predicted_share));
    session_end(&s);
    kopt_text_free((char *)p);
}

static void every_strategy_takes_them(void **state)
{
    (void)state;
    const char *name;
    size_t n = 0;
    kopt_prediction *p = predict(4, &n);
    for (size_t i = 0; (name = kopt_strategy(i, NULL)) != NULL; i++) {
        struct session s;
        with_model(&s, tiles, "tiles.model", 4);
        s.o.strategy = name;
        must_run(&s);
        assert_all_once(&s, N_VALID);
        for (size_t k = 0; k < n; k++)
            assert_string_equal(s.seen[1 + k].config, p[k].text);
        session_end(&s);
    }
    kopt_text_free((char *)p);
}

static void without_a_model_the_origin_is_known_too(void **state)
{
    (void)state;
    struct session s;
    with_model(&s, tiles, NULL, 0);
    must_run(&s);
    assert_string_equal(started.model, "");
    assert_int_equal(started.predictions, 0);
    assert_string_equal(s.report.best_from, "search");
    assert_int_equal(s.report.best_rank, 0);
    assert_string_equal(s.report.predicted.config, "");
    session_end(&s);
}

/* --- with a store ------------------------------------------------------------------------- */

static int see_run(void *user, const kopt_run *r)
{
    int *n = user;
    bool has =
        strstr(r->summary, "\"model\":{\"file\":\"tiles.model\",\"predictions\":6,") != NULL;
    *n += has;
    return 1;
}

/* Some are in the store before the model is asked, all of them at the second time. */
static void what_the_store_has_is_not_measured_again(void **state)
{
    (void)state;
    struct session s;
    (void)remove("model.db");
    with_model(&s, tiles, NULL, 0);
    s.o.store = "model.db";
    s.o.max_evaluations = 9;
    must_run(&s);
    assert_int_equal(session_measured(&s), 9);
    session_end(&s);
    for (int i = 0; i < 2; i++) {
        with_model(&s, tiles, "tiles.model", 6);
        s.o.store = "model.db";
        must_run(&s);
        assert_all_once(&s, N_VALID);
        assert_int_equal(session_measured(&s), i ? 0 : N_VALID - 9);
        assert_int_equal(s.report.progress.from_store, i ? N_VALID : 9);
        assert_true(s.report.predicted_share > 0.97 && s.report.predicted_share < 0.98);
        session_end(&s);
    }
    kopt_store *store = NULL;
    int n = 0;
    assert_int_equal(kopt_store_open("model.db", 0, &store, NULL), KOPT_OK);
    assert_int_equal(kopt_store_runs(store, 0, see_run, &n, NULL), KOPT_OK);
    kopt_store_close(store);
    assert_int_equal(n, 2);
}

/* The store has results for another problem, but the model is what was asked for. */
static void a_model_comes_before_the_results_of_the_store(void **state)
{
    (void)state;
    static const char *const other[] = {"M=64", "N=80"};
    struct session s;
    (void)remove("both.db");
    with_model(&s, tiles, NULL, 0);
    s.o.store = "both.db";
    s.o.problem = other;
    must_run(&s);
    session_end(&s);
    for (int i = 0; i < 3; i++) {
        with_model(&s, tiles, i < 2 ? "tiles.model" : NULL, 0);
        s.o.store = "both.db";
        s.o.fresh = 1;
        s.o.prior = i == 1 ? "none" : NULL;
        must_run(&s);
        assert_string_equal(started.model, i < 2 ? "tiles.model" : "");
        assert_int_equal(started.predictions, i < 2 ? 20 : 0);
        assert_int_equal(started.prior_results, i < 2 ? 0 : N_VALID);
        assert_int_equal(started.prior_first, i < 2 ? 0 : 10);
        session_end(&s);
    }
    with_model(&s, tiles, "tiles.model", 0);
    s.o.prior = "both.db#1";
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    assert_non_null(strstr(s.err.message, "a model and a prior"));
    session_end(&s);
}

/* --- models that do not fit --------------------------------------------------------------- */

/* Of a narrowed parameter's other values none is tried, and as many others come instead. */
static void predictions_outside_the_space_are_dropped(void **state)
{
    (void)state;
    static const char *const narrow[] = {"M=120", "N=80", "BM=8,16"};
    struct session s;
    with_model(&s, tiles, "tiles.model", 3);
    s.o.problem = narrow;
    s.o.n_problem = 3;
    s.o.max_evaluations = 4;
    must_run(&s);
    assert_int_equal(started.predictions, 3);
    assert_true(started.predictions_dropped > 0);
    assert_all_once(&s, 4);
    session_end(&s);
}

/* It predicts what breaks rules, too, since it knows none. */
static void a_model_without_rules_serves(void **state)
{
    (void)state;
    static const char *const low[] = {"M=24", "N=80"};
    struct session s;
    train("free.model", false);
    with_model(&s, tiles, "free.model", 32);
    s.o.problem = low;
    must_run(&s);
    /* 32 configurations, of which the rules leave BM <= 24: 16. */
    assert_int_equal(started.predictions, 16);
    assert_in_range(started.predictions_dropped, 1, 16);
    assert_all_once(&s, 16);
    session_end(&s);
}

/* What tells files apart is no size of the kernel's, and may be left out. */
static void a_model_of_several_files_serves(void **state)
{
    (void)state;
    static const char *const more[] = {"other=more.csv"};
    kopt_train_options o;
    kopt_error err = {0};
    struct session s;
    kopt_train_options_init(&o);
    write_data("data.csv");
    write_data("more.csv");
    o.data.path = "data.csv";
    o.data.rules = write_kernel("tiles.cl", tiles);
    o.data.more = more;
    o.data.n_more = 1;
    o.network = "factored";
    o.out = "pooled.model";
    o.nets = 1;
    o.hidden = 16;
    o.embed = 4;
    o.epochs = 2;
    o.threads = 1;
    if (kopt_train(&o, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    with_model(&s, tiles, "pooled.model", 5);
    must_run(&s);
    assert_int_equal(started.predictions, 5);
    session_end(&s);
}

/* The model's rules leave nothing, the kernel file's do. */
static void a_model_that_knows_nothing_is_a_warning(void **state)
{
    (void)state;
    static const char *const tiny[] = {"M=4", "N=80"};
    static const char loose[] = TILES("tiles", "M N", "BM {8,16,32,64,4}");
    struct session s;
    with_model(&s, loose, "tiles.model", 0);
    s.o.problem = tiny;
    must_run(&s);
    assert_int_equal(started.predictions, 0);
    assert_true(s.warnings >= 1);
    assert_all_once(&s, 8); /* BM=4 */
    assert_string_not_equal(s.report.best_from, "model");
    session_end(&s);
}

static void refuse(const char *text, const char *model, kopt_status want, const char *words)
{
    struct session s;
    with_model(&s, text, model, 0);
    session_run(&s);
    assert_int_equal(s.status, want);
    if (!strstr(s.err.message, words))
        fail_msg("'%s' is not in '%s'", words, s.err.message);
    if (want == KOPT_EINPUT && strstr(s.err.message, "does not fit"))
        assert_non_null(strstr(s.err.hint, "--model"));
    assert_null(s.tuner);
    session_end(&s);
}

static void models_of_other_kernels_are_refused(void **state)
{
    (void)state;
    static const char renamed[] = TILES("stones", "M N", "BM {8,16,32,64}");
    static const char fewer[] = TILES("tiles", "M=3", "BM {8,16,32,64}");
    static const char more[] = TILES("tiles", "M N K=1", "BM {8,16,32,64}");
    static const char added[] = TILES("tiles", "M N", "BM {8,16,32,64} DEPTH {1,2}");
    static const char values[] = TILES("tiles", "M N", "BM {7,15}");
    static const char words[] = TILES("tiles", "M N", "BM {8,16} BK {\"a\",\"b\"}");
    refuse(renamed, "tiles.model", KOPT_EINPUT, "a model of 'tiles', not of 'stones'");
    refuse(more, "tiles.model", KOPT_EINPUT, "the model knows no problem size 'K'");
    refuse(added, "tiles.model", KOPT_EINPUT, "the model does not predict 'DEPTH'");
    refuse(values, "tiles.model", KOPT_EINPUT, "knows no value of 'BM'");
    refuse(words, "tiles.model", KOPT_EINPUT, "does not predict 'BK'");
    /* N=80 is no size there; the message is the kernel file's. */
    refuse(fewer, "tiles.model", KOPT_EUSAGE, "N");
}

static void a_size_that_the_kernel_lacks_is_named(void **state)
{
    (void)state;
    static const char fewer[] = TILES("tiles", "M", "BM {8,16,32,64}");
    struct session s;
    with_model(&s, fewer, "tiles.model", 0);
    s.o.n_problem = 1;
    session_run(&s);
    assert_int_equal(s.status, KOPT_EINPUT);
    assert_non_null(strstr(s.err.message, "the kernel has no problem size 'N'"));
    session_end(&s);
}

static void broken_files_are_refused(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    FILE *f = fopen("tiles.model", "rbe");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    assert_int_equal(fclose(f), 0);
    assert_in_range(n, 1000, sizeof(bytes) - 1);
    for (size_t cut = 0; cut < n; cut += n / 7) {
        f = fopen("cut.model", "wbe");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, cut, f), cut);
        assert_int_equal(fclose(f), 0);
        refuse(tiles, "cut.model", KOPT_EINPUT, "cut.model");
    }
    refuse(tiles, "k.cl", KOPT_EINPUT, "k.cl");
    refuse(tiles, "gone.model", KOPT_EIO, "gone.model");
}

static void options_that_contradict_are_refused(void **state)
{
    (void)state;
    struct session s;
    with_model(&s, tiles, NULL, 5);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    session_end(&s);
    with_model(&s, tiles, "tiles.model", 5000);
    session_run(&s);
    assert_int_equal(s.status, KOPT_EUSAGE);
    session_end(&s);
    /* As many as there are. */
    with_model(&s, tiles, "tiles.model", 4096);
    must_run(&s);
    assert_int_equal(started.predictions, N_VALID);
    assert_int_equal(started.predictions_dropped, 0);
    assert_all_once(&s, N_VALID);
    session_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_come_behind_the_default),
        cmocka_unit_test(a_budget_may_end_within_the_list),
        cmocka_unit_test(every_strategy_takes_them),
        cmocka_unit_test(without_a_model_the_origin_is_known_too),
        cmocka_unit_test(what_the_store_has_is_not_measured_again),
        cmocka_unit_test(a_model_comes_before_the_results_of_the_store),
        cmocka_unit_test(predictions_outside_the_space_are_dropped),
        cmocka_unit_test(a_model_without_rules_serves),
        cmocka_unit_test(a_model_of_several_files_serves),
        cmocka_unit_test(a_model_that_knows_nothing_is_a_warning),
        cmocka_unit_test(models_of_other_kernels_are_refused),
        cmocka_unit_test(a_size_that_the_kernel_lacks_is_named),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(options_that_contradict_are_refused),
    };
    return cmocka_run_group_tests(tests, train_once, NULL);
}
