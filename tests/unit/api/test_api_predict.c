/* SPDX-License-Identifier: MIT */
/* Training, asking and judging models through the public interface: small data of our own, a
 * training that is stopped and resumed, what bad input gets. */
#include "base/alloc.h"
#include "kopt/predict.h"
#include "kopt/space.h"
#include "kopt/store.h"
#include "support/test.h"

#include <math.h>
#include <stdbool.h>
#include <unistd.h>

static const char rules[] = "kernel tiles\n"
                            "problem M N kind=\"s\"\n"
                            "param BM {8,16,32,64}\n"
                            "param BN {8,16,32,64}\n"
                            "param SPLIT {1,2}\n"
                            "require BM <= M && BN <= N\n"
                            "require BM*BN <= 1024\n"
                            "canonical SPLIT = BM >= 32 ? 1 : SPLIT\n";

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A time that is least for tiles of a size by the problem's. */
static double time_us(int M, int N, int bm, int bn)
{
    double want_m = M >= 96 ? 32 : 16;
    double want_n = N >= 128 ? 32 : N >= 48 ? 16 : 8;
    return 25 + fabs(log2(bm / want_m)) + 1.5 * fabs(log2(bn / want_n)) + 1e-4 * M;
}

/* Each problem with all its valid tiles; those with BM=64 fail. */
static void write_data(const char *path, int n_problems)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "M,N,kind,BM,BN,SPLIT,time_us,outcome\n");
    for (int i = 0; i < n_problems; i++) {
        int M = 16 + 8 * (i % 17);
        int N = 16 + 16 * (i % 13);
        for (int bm = 8; bm <= 64 && bm <= M; bm *= 2)
            for (int bn = 8; bn <= 64 && bn <= N && bm * bn <= 1024; bn *= 2)
                (void)fprintf(f, "%d,%d,s,%d,%d,%d,%.4f,%s\n", M, N, bm, bn, 1 + M / 8 % 2,
                              time_us(M, N, bm, bn), bm == 64 ? "crash" : "ok");
    }
    assert_int_equal(fclose(f), 0);
}

struct seen {
    kopt_train_start start;
    char kernel[64]; /* the start's texts end with it */
    unsigned epochs;
    unsigned stop_after; /* 0: never */
    unsigned last_net;
    kopt_epoch best[2]; /* of each network */
};

static void on_start(void *user, const kopt_train_start *s)
{
    struct seen *x = user;
    x->start = *s;
    (void)snprintf(x->kernel, sizeof(x->kernel), "%s", s->kernel);
}

static int on_epoch(void *user, const kopt_epoch *e)
{
    struct seen *x = user;
    x->last_net = e->net;
    if (e->best && e->net < 2)
        x->best[e->net] = *e;
    assert_true(isfinite(e->train_loss) && isfinite(e->valid_loss));
    return ++x->epochs != x->stop_after;
}

static kopt_train_options small_training(const char *out, struct seen *seen)
{
    kopt_train_options o;
    kopt_train_options_init(&o);
    o.data.path = "data.csv";
    o.data.rules = "tiles.kopt";
    o.network = "factored";
    o.out = out;
    o.nets = 2;
    o.hidden = 16;
    o.embed = 4;
    o.epochs = 12;
    o.batch = 16;
    o.rate = 0.01;
    o.threads = 2;
    o.user = seen;
    o.start = on_start;
    o.epoch = on_epoch;
    return o;
}

static void must(kopt_status st, const kopt_error *err)
{
    if (st != KOPT_OK)
        print_message("%s (%s)\n", err->message, err->hint);
    assert_int_equal(st, KOPT_OK);
}

static void write_inputs(void)
{
    write_file("tiles.kopt", rules);
    write_data("data.csv", 200);
}

static char *file_text(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 22);
    assert_non_null(text);
    *n = fread(text, 1, 1 << 22, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void assert_same_file(const char *a, const char *b)
{
    size_t n;
    size_t m;
    char *x = file_text(a, &n);
    char *y = file_text(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void a_model_is_trained_and_asked(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    kopt_model *m = NULL;
    kopt_prediction *p = NULL;
    size_t n = 0;
    (void)state;
    write_inputs();
    const kopt_train_options o = small_training("a.model", &seen);
    must(kopt_train(&o, &err), &err);
    assert_string_equal(seen.start.source, "CSV");
    assert_string_equal(seen.kernel, "tiles");
    assert_string_equal(seen.start.network, "factored");
    assert_int_equal(seen.start.train + seen.start.valid + seen.start.test, 200);
    assert_int_equal(seen.start.fields, 3);
    assert_int_equal(seen.start.params, 3);
    assert_true(seen.start.canonical > 0);
    assert_true(seen.start.examples > seen.start.train);
    assert_true(seen.start.parameters > 100);
    assert_int_equal(access("a.model.partial", F_OK), -1);

    must(kopt_model_open("a.model", &m, &err), &err);
    assert_string_equal(kopt_model_kernel(m), "tiles");
    assert_string_equal(kopt_model_network(m), "factored");
    assert_string_equal(kopt_model_field(m, 1), "N");
    assert_null(kopt_model_field(m, 3));
    assert_string_equal(kopt_model_param(m, 2), "SPLIT");
    assert_null(kopt_model_param(m, 3));
    assert_non_null(strstr(kopt_model_info(m), "\"file\":\"data.csv\""));
    assert_non_null(strstr(kopt_model_info(m), "\"training\":[[["));
    unsigned epochs[3];
    kopt_epoch best;
    assert_int_equal(kopt_model_trained(m, 0, &epochs[0], &best), 1);
    assert_true(best.epoch >= 1 && best.epoch <= epochs[0] && best.nets == 2 && best.best);
    assert_true(best.valid_loss == seen.best[0].valid_loss);
    assert_int_equal(best.epoch, seen.best[0].epoch);
    assert_int_equal(kopt_model_trained(m, 1, &epochs[1], &best), 1);
    assert_int_equal(best.epoch, seen.best[1].epoch);
    assert_true(best.train_loss == seen.best[1].train_loss);
    assert_int_equal(epochs[0] + epochs[1], seen.epochs);
    assert_int_equal(kopt_model_trained(m, 2, &epochs[2], &best), 0);
    assert_int_equal(epochs[2], 0);

    static const char *const problem[] = {"M=120", "N=80"};
    kopt_predict_options po;
    kopt_predict_options_init(&po);
    po.top = 4;
    must(kopt_predict(m, problem, 2, &po, &p, &n, &err), &err);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        int bm;
        int bn;
        int split;
        assert_int_equal(sscanf(p[i].text, "BM=%d,BN=%d,SPLIT=%d", &bm, &bn, &split), 3);
        assert_true(bm * bn <= 1024 && bm <= 120 && bn <= 80);
        assert_true(p[i].probability > 0 && p[i].probability <= 1);
        assert_true(i == 0 || p[i].probability <= p[i - 1].probability);
    }
    /* It has learned what write_data() put in. */
    assert_string_equal(p[0].text, "BM=32,BN=16,SPLIT=1");
    assert_string_equal(p[0].config, "{\"BM\":32,\"BN\":16,\"SPLIT\":1}");
    kopt_text_free((char *)p);
    kopt_model_close(m);
}

/* M has 16 to 144 in data.csv, N 16 to 208, and kind the word s alone. */
static void what_a_model_never_saw_is_named(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    kopt_model *m = NULL;
    kopt_outside *x = NULL;
    size_t n = 7;
    (void)state;
    write_inputs();
    kopt_train_options o = small_training("o.model", &seen);
    o.epochs = 1;
    must(kopt_train(&o, &err), &err);
    must(kopt_model_open("o.model", &m, &err), &err);

    static const char *const inside[] = {"M=16", "N=208", "kind=s"};
    must(kopt_model_outside(m, inside, 3, &x, &n, &err), &err);
    assert_int_equal(n, 0);
    assert_null(x);
    static const char *const between[] = {"M=17", "N=100.5", "Q=1", "M", "=", "N=word"};
    must(kopt_model_outside(m, between, 6, &x, &n, &err), &err);
    assert_int_equal(n, 0);

    static const char *const far[] = {"kind=FP8", "M=1000000", "N=8"};
    must(kopt_model_outside(m, far, 3, &x, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(x[0].field, "kind");
    assert_string_equal(x[0].value, "FP8");
    assert_true(isnan(x[0].low) && isnan(x[0].high));
    assert_int_equal(x[0].n_words, 1);
    assert_string_equal(x[0].words[0], "s");
    assert_string_equal(x[1].field, "M");
    assert_null(x[1].words);
    assert_true(x[1].low == 16 && x[1].high == 144);
    assert_string_equal(x[2].value, "8");
    assert_true(x[2].low == 16 && x[2].high == 208);
    kopt_text_free((char *)x);
    static const char *const number[] = {"kind=1e3"}; /* it is the word that it is written as */
    must(kopt_model_outside(m, number, 1, &x, &n, &err), &err);
    assert_int_equal(n, 1);
    kopt_text_free((char *)x);

    kp_alloc_fail_at(1);
    assert_int_equal(kopt_model_outside(m, far, 3, &x, &n, &err), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    assert_null(x);
    assert_int_equal(n, 0);
    kopt_model_close(m);
}

/* Words of a field that has several, those that tests alone have among them. */
static void words_of_training_are_listed(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    kopt_model *m = NULL;
    kopt_outside *x = NULL;
    size_t n = 0;
    (void)state;
    write_file("tiles.kopt", rules);
    FILE *f = fopen("words.csv", "w");
    assert_non_null(f);
    (void)fprintf(f, "M,N,kind,BM,BN,SPLIT\n");
    for (int i = 0; i < 200; i++)
        (void)fprintf(f, "%d,64,%s,16,%d,1\n", 64 + i, i % 2 ? "16" : "FP32", 8 << i % 3);
    assert_int_equal(fclose(f), 0);
    kopt_train_options o = small_training("w.model", &seen);
    o.data.path = "words.csv";
    o.epochs = 1;
    must(kopt_train(&o, &err), &err);
    must(kopt_model_open("w.model", &m, &err), &err);
    static const char *const known[] = {"kind=16", "kind=0x10", "N=9"};
    must(kopt_model_outside(m, known, 3, &x, &n, &err), &err);
    assert_int_equal(n, 2); /* N was 64 everywhere */
    assert_string_equal(x[0].value, "0x10");
    assert_int_equal(x[0].n_words, 2);
    assert_string_equal(x[1].field, "N");
    assert_null(x[1].words);
    assert_true(x[1].low == 64 && x[1].high == 64);
    kopt_text_free((char *)x);
    kopt_model_close(m);
}

static void a_training_that_was_stopped_goes_on(void **state)
{
    struct seen whole = {0};
    kopt_error err = {0};
    (void)state;
    write_inputs();
    kopt_train_options o = small_training("whole.model", &whole);
    must(kopt_train(&o, &err), &err);
    assert_true(whole.epochs > 14);
    for (unsigned at = 1; at <= whole.epochs; at += 5) { /* in both networks */
        struct seen first = {.stop_after = at};
        struct seen rest = {0};
        (void)unlink("cut.model");
        o = small_training("cut.model", &first);
        assert_int_equal(kopt_train(&o, &err), KOPT_EINTR);
        assert_int_equal(access("cut.model", R_OK), 0);
        assert_int_equal(access("cut.model.partial", R_OK), 0);
        o = small_training("cut.model", &rest);
        o.resume = 1;
        o.threads = 1;
        must(kopt_train(&o, &err), &err);
        assert_int_equal(first.epochs + rest.epochs, whole.epochs);
        assert_true(rest.start.resumed >= 1);
        assert_int_equal(rest.start.resumed_net, first.last_net);
        assert_same_file("whole.model", "cut.model");
        assert_int_equal(access("cut.model.partial", F_OK), -1);
    }
}

/* The same of networks that rank, whose correction is made again of all of them. */
static void a_ranker_that_was_stopped_goes_on(void **state)
{
    struct seen whole = {0};
    kopt_error err = {0};
    (void)state;
    write_inputs();
    kopt_train_options o = small_training("ranks.model", &whole);
    o.network = "ranker";
    o.embed = 0;
    o.epochs = 4;
    must(kopt_train(&o, &err), &err);
    assert_string_equal(whole.start.network, "ranker");
    for (unsigned at = 1; at <= whole.epochs; at += 2) {
        struct seen first = {.stop_after = at};
        struct seen rest = {0};
        o.out = "ranks.stopped";
        o.user = &first;
        o.resume = 0;
        assert_int_equal(kopt_train(&o, &err), KOPT_EINTR);
        o.user = &rest;
        o.resume = 1;
        o.threads = 1;
        must(kopt_train(&o, &err), &err);
        assert_same_file("ranks.model", "ranks.stopped");
    }
}

/* More configurations near a best than a network that ranks takes. */
static void a_ranker_gives_way_unless_it_was_asked_for(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    (void)state;
    FILE *f = fopen("wide.csv", "w");
    assert_non_null(f);
    (void)fprintf(f, "M,A,B,time_us\n");
    for (int p = 0; p < 60; p++)
        for (int i = 0; i < 200; i++)
            (void)fprintf(f, "%d,%d,%d,%.3f\n", 10 + 37 * p, (p * 200 + i) / 100, i % 100,
                          10 + i * 1e-3);
    assert_int_equal(fclose(f), 0);
    static const char *const params[] = {"A", "B"};
    kopt_train_options o = small_training("wide.model", &seen);
    o.network = NULL;
    o.data.path = "wide.csv";
    o.data.rules = NULL;
    o.data.kernel = "wide";
    o.data.params = params;
    o.data.n_params = 2;
    o.epochs = 1;
    must(kopt_train(&o, &err), &err);
    assert_string_equal(seen.start.network, "factored");
    o.network = "ranker";
    o.embed = 0;
    assert_int_equal(kopt_train(&o, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "configurations were near the best"));
}

static void a_state_that_does_not_fit_is_refused(void **state)
{
    struct seen seen = {.stop_after = 2};
    kopt_error err = {0};
    size_t n;
    (void)state;
    write_inputs();
    (void)unlink("p.model.partial");
    kopt_train_options o = small_training("p.model", &seen);
    assert_int_equal(kopt_train(&o, &err), KOPT_EINTR);
    assert_non_null(strstr(err.hint, "p.model.partial"));
    o.resume = 1;
    o.seed = 2;
    assert_int_equal(kopt_train(&o, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.message, "another training"));
    o.seed = 0;
    char *text = file_text("p.model.partial", &n);
    for (size_t at = 0; at < n; at += n / 7 + 1) { /* a byte changed, or the end missing */
        FILE *f = fopen("p.model.partial", "wb");
        assert_non_null(f);
        text[at] = (char)(text[at] ^ 0x10);
        (void)fwrite(text, 1, at % 2 ? n : at, f);
        text[at] = (char)(text[at] ^ 0x10);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(kopt_train(&o, &err), KOPT_EINPUT);
        assert_non_null(strstr(err.message, "p.model.partial"));
    }
    free(text);
    (void)unlink("p.model.partial");
}

static void what_a_kind_does_not_have_is_refused(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    (void)state;
    write_inputs();
    (void)unlink("n.model");
    for (int i = 0; i < 4; i++) {
        kopt_train_options o = small_training("n.model", &seen);
        o.network = i % 2 ? "ranker" : "factored";
        o.embed = i == 1 ? 4 : 0;
        o.cell = i == 0;
        o.score = i == 2;
        o.repeat = i == 3 ? 2 : 0;
        assert_int_equal(kopt_train(&o, &err), KOPT_EUSAGE);
        assert_non_null(strstr(err.message, i % 2 ? "'ranker' has no" : "'factored' has no"));
        assert_non_null(strstr(err.hint, i % 2 ? "factored, seq2seq" : "attention, hybrid1"));
    }
    assert_int_equal(access("n.model", F_OK), -1);
}

static void models_are_judged_beside_baselines(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    kopt_eval_row *rows = NULL;
    size_t n = 0;
    (void)state;
    write_inputs();
    const kopt_train_options o = small_training("e.model", &seen);
    must(kopt_train(&o, &err), &err);
    kopt_eval_options eo;
    kopt_eval_options_init(&eo);
    eo.model = "e.model";
    eo.data.path = "data.csv";
    must(kopt_eval(&eo, &rows, &n, &err), &err);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        assert_true(rows[i].j.unmeasured >= 0 && rows[i].j.unmeasured <= 1);
    assert_string_equal(rows[0].name, "model");
    assert_string_equal(rows[1].name, "model, no rules");
    assert_string_equal(rows[2].name, "majority");
    assert_string_equal(rows[3].name, "15 nearest neighbours");
    for (size_t i = 0; i < n; i++) {
        const kopt_judgement *j = &rows[i].j;
        assert_int_equal(j->problems, seen.start.test);
        assert_int_equal(j->answered, seen.start.test);
        assert_int_equal(j->timed, seen.start.test);
        assert_true(isnan(j->forced) == (i >= 2));
        assert_true(j->seconds > 0);
        for (size_t k = 1; k < KOPT_AT; k++) {
            assert_true(j->exact[k] >= j->exact[k - 1]);
            assert_true(j->kept_mean[k] >= j->kept_mean[k - 1]);
            assert_true(j->canonical[k] >= j->exact[k]);
            assert_true(j->kept_p5[k] >= 0 && j->kept_p5[k] <= 1);
        }
    }
    assert_true(rows[0].j.valid == 1);
    assert_true(rows[0].j.kept_mean[0] > rows[2].j.kept_mean[0]);
    assert_true(rows[0].j.kept_mean[0] > 0.95);
    kopt_text_free((char *)rows);
    eo.part = "all";
    must(kopt_eval(&eo, &rows, &n, &err), &err);
    assert_int_equal(rows[0].j.problems, 200);
    kopt_text_free((char *)rows);
    eo.part = "some";
    assert_int_equal(kopt_eval(&eo, &rows, &n, &err), KOPT_EUSAGE);
    assert_null(rows);
    eo.part = NULL;
    eo.data.kernel = "other";
    assert_int_equal(kopt_eval(&eo, &rows, &n, &err), KOPT_EINPUT);
    assert_string_equal(err.message, "e.model is a model of 'tiles', not of 'other'");
    eo.data.kernel = NULL;
    write_file("foreign.csv", "X,BM,BN,time_us\n1,8,8,3\n2,8,16,4\n");
    eo.data.path = "foreign.csv";
    assert_int_equal(kopt_eval(&eo, &rows, &n, &err), KOPT_EINPUT);
}

static void bad_questions_are_refused(void **state)
{
    static const struct {
        const char *words[4];
        const char *message;
    } cases[] = {
        {{"M=64"}, "the problem lacks N"},
        {{"M=64", "N=-1"}, "N=-1 is negative"},
        {{"M=64", "N=64", "N=32"}, "N is given twice"},
        {{"M=64", "N=64", "Q=1"}, "the model of 'tiles' has no 'Q'"},
        {{"M=64", "N=wide"}, "N=wide: a number is expected"},
        {{"M=64", "N"}, "'N' is not NAME=VALUE"},
        {{"M=64", "N="}, "'N=' is not NAME=VALUE"},
        {{"=64"}, "'=64' is not NAME=VALUE"},
    };
    struct seen seen = {0};
    kopt_error err = {0};
    kopt_model *m = NULL;
    kopt_prediction *p = NULL;
    size_t n = 0;
    (void)state;
    write_inputs();
    kopt_train_options o = small_training("q.model", &seen);
    o.epochs = 1;
    o.nets = 1;
    must(kopt_train(&o, &err), &err);
    must(kopt_model_open("q.model", &m, &err), &err);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t words = 0;
        while (words < 4 && cases[i].words[words])
            words++;
        assert_int_equal(kopt_predict(m, cases[i].words, words, NULL, &p, &n, &err),
                         KOPT_EUSAGE);
        assert_string_equal(err.message, cases[i].message);
        assert_null(p);
        assert_int_equal(n, 0);
    }
    static const char *const tiny[] = {"M=4", "N=64"};
    assert_int_equal(kopt_predict(m, tiny, 2, NULL, &p, &n, &err), KOPT_ENOTFOUND);
    assert_non_null(strstr(err.message, "BM <= M"));
    kopt_predict_options po;
    kopt_predict_options_init(&po);
    po.unconstrained = 1;
    must(kopt_predict(m, tiny, 2, &po, &p, &n, &err), &err);
    assert_int_equal(n, 1);
    kopt_text_free((char *)p);
    /* Every allocation failing in turn. */
    static const char *const good[] = {"M=64", "N=64"};
    kopt_status st = KOPT_ENOMEM;
    for (long at = 1; st != KOPT_OK; at++) {
        kp_alloc_fail_at(at);
        st = kopt_predict(m, good, 2, NULL, &p, &n, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
    }
    kopt_text_free((char *)p);
    kopt_model_close(m);
    write_file("no.model", "nothing");
    assert_int_equal(kopt_model_open("no.model", &m, &err), KOPT_EINPUT);
    assert_null(m);
    assert_int_equal(kopt_model_open("nowhere.model", &m, &err), KOPT_EIO);
}

static void bad_trainings_are_refused(void **state)
{
    struct seen seen = {0};
    kopt_error err = {0};
    (void)state;
    write_inputs();
    (void)unlink("x.model");
    kopt_train_options o = small_training("x.model", &seen);
    o.rate = 1e30;
    assert_int_equal(kopt_train(&o, &err), KOPT_EFAILED);
    assert_non_null(strstr(err.message, "not a number"));
    assert_non_null(strstr(err.hint, "learning rate"));
    o = small_training("x.model", &seen);
    o.network = "oracle";
    assert_int_equal(kopt_train(&o, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.hint, "hybrid2"));
    o = small_training("no_such_folder/x.model", &seen);
    assert_int_equal(kopt_train(&o, &err), KOPT_EIO);
    o = small_training(".", &seen);
    assert_int_equal(kopt_train(&o, &err), KOPT_EIO);
    o = small_training("x.model", &seen);
    write_data("ten.csv", 3);
    o.data.path = "ten.csv";
    assert_int_equal(kopt_train(&o, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "there must be some of each"));
    write_file("same.csv", "M,N,kind,BM,BN,SPLIT\n64,64,s,8,8,1\n");
    o.data.path = "same.csv";
    assert_int_equal(kopt_train(&o, &err), KOPT_EINPUT);
    write_file("empty.csv", "");
    o.data.path = "empty.csv";
    assert_int_equal(kopt_train(&o, &err), KOPT_EINPUT);
    o.data.path = "nowhere.csv";
    assert_int_equal(kopt_train(&o, &err), KOPT_EIO);
    o.data.path = "data.csv";
    o.data.limits = "max_threads=x";
    assert_int_equal(kopt_train(&o, &err), KOPT_EUSAGE);
    o.data.limits = NULL;
    o.data.fold = 10;
    assert_int_equal(kopt_train(&o, &err), KOPT_EUSAGE);
    o.data.fold = 0;
    o.hidden = 7;
    assert_int_equal(kopt_train(&o, &err), KOPT_EUSAGE);
    assert_int_equal(access("x.model", F_OK), -1);
    assert_int_equal(access("x.model.partial", F_OK), -1);
}

static void networks_have_names(void **state)
{
    const char *about = NULL;
    (void)state;
    assert_string_equal(kopt_network(0, &about), "factored");
    assert_true(strlen(about) > 10);
    assert_string_equal(kopt_network(4, NULL), "hybrid2");
    assert_string_equal(kopt_network(5, NULL), "ranker");
    assert_null(kopt_network(6, &about));
    assert_null(about);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_trained_and_asked),
        cmocka_unit_test(what_a_model_never_saw_is_named),
        cmocka_unit_test(words_of_training_are_listed),
        cmocka_unit_test(a_training_that_was_stopped_goes_on),
        cmocka_unit_test(a_ranker_that_was_stopped_goes_on),
        cmocka_unit_test(a_ranker_gives_way_unless_it_was_asked_for),
        cmocka_unit_test(a_state_that_does_not_fit_is_refused),
        cmocka_unit_test(what_a_kind_does_not_have_is_refused),
        cmocka_unit_test(models_are_judged_beside_baselines),
        cmocka_unit_test(bad_questions_are_refused),
        cmocka_unit_test(bad_trainings_are_refused),
        cmocka_unit_test(networks_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
