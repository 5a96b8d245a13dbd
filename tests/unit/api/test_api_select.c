/* SPDX-License-Identifier: MIT */
/* Selection with a model: which source answers, for how long the answer's text lives, threads,
 * and that neither it nor kopt_predict() allocates once warm. */
#include "api/answers.h"
#include "base/alloc.h"
#include "kopt/predict.h"
#include "kopt/store.h"
#include "store/store.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

/* --- what the C library is asked for --------------------------------------------------------
 */

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { COUNTS_MALLOC = 1 };
static _Thread_local long n_mallocs;
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void *malloc(size_t n)
{
    n_mallocs++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    n_mallocs++;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    n_mallocs++;
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t align, size_t n)
{
    n_mallocs++;
    return __libc_memalign(align, n);
}
#else
enum { COUNTS_MALLOC = 0 };
static _Thread_local long n_mallocs;
#endif

static void test_the_counter_counts(void **state)
{
    (void)state;
    long before = n_mallocs;
    void *volatile p = malloc(10);
    free(p);
    assert_int_equal(n_mallocs - before, COUNTS_MALLOC);
}

/* --- a model and a store --------------------------------------------------------------------
 */

/* VEC makes two kinds of problems. */
static const char rules[] = "kernel tiles\n"
                            "problem M N batch=1\n"
                            "param BM {8,16,32,64}\n"
                            "param BN {8,16,32,64}\n"
                            "param A {1,2}\n"
                            "require BM <= M\n"
                            "require BM*BN <= device.max_threads\n"
                            "require A == 1 || N % 2 == 0\n";

static void write_inputs(void)
{
    FILE *f = fopen("tiles.kopt", "w");
    assert_non_null(f);
    assert_true(fputs(rules, f) >= 0);
    assert_int_equal(fclose(f), 0);
    f = fopen("data.csv", "w");
    assert_non_null(f);
    (void)fprintf(f, "M,N,BM,BN,A,us\n");
    for (int i = 0; i < 160; i++) {
        int M = 64 + 8 * (i % 17);
        int N = 16 + 16 * (i % 13);
        for (int a = 1; a <= 2; a++)
            for (int bm = 8; bm <= 64; bm *= 2)
                (void)fprintf(f, "%d,%d,%d,%d,%d,%.3f\n", M, N, bm, 1024 / bm < 64 ? 16 : 8, a,
                              10 + fabs(log2(bm / (M > 120 ? 32.0 : 16.0))) + a);
    }
    assert_int_equal(fclose(f), 0);
}

static void must(kopt_status st, const kopt_error *err)
{
    if (st != KOPT_OK)
        print_message("%s (%s)\n", err->message, err->hint);
    assert_int_equal(st, KOPT_OK);
}

static void add_result(struct kp_store *st, const char *problem, const char *config)
{
    kopt_error err;
    int64_t id;
    struct kp_subject s = {.kernel = "tiles",
                           .kernel_path = "",
                           .kernel_hash = "",
                           .backend = "fake",
                           .device = "A GPU",
                           .arch = "",
                           .driver = "",
                           .compiler = "",
                           .problem = problem,
                           .data = ""};
    kopt_result r = {.config = config, .message = "", .log = "", .median_ns = 1000};
    must(kp_store_subject(st, &s, &err), &err);
    must(kp_store_add(st, 0, s.id, &r, &id, &err), &err);
}

/* What all tests are run with, one after the other. */
static const char *network;

static int make_files(void **state)
{
    kopt_error err = {0};
    struct kp_store *st = NULL;
    kopt_train_options o;
    (void)state;
    write_inputs();
    kopt_train_options_init(&o);
    o.data.path = "data.csv";
    o.data.rules = "tiles.kopt";
    o.data.limits = "max_threads=1024";
    o.out = "tiles.model";
    o.network = network;
    o.nets = 2;
    o.hidden = 16;
    o.epochs = 6;
    o.threads = 1;
    must(kopt_train(&o, &err), &err);
    (void)unlink("kopt.db");
    must(kp_store_open("kopt.db", KP_STORE_WRITE, 1000, &st, &err), &err);
    add_result(st, "{\"M\":100,\"N\":50}", "{\"A\":2,\"BM\":8,\"BN\":64}");
    add_result(st, "{\"M\":200,\"N\":50,\"batch\":2}", "{\"A\":1,\"BM\":8,\"BN\":64}");
    kp_store_close(st);
    return 0;
}

struct both {
    kopt_model *m;
    kopt_selector *s;
};

static struct both open_both(const char *store)
{
    struct both b = {0};
    kopt_error err = {0};
    kopt_predict_options o;
    kopt_predict_options_init(&o);
    o.limits = "max_threads=1024";
    must(kopt_model_open("tiles.model", &b.m, &err), &err);
    must(kopt_selector_open(store, "A GPU", &b.s, &err), &err);
    must(kopt_selector_add_model(b.s, b.m, &o, &err), &err);
    return b;
}

static void close_both(struct both *b)
{
    kopt_selector_close(b->s);
    kopt_model_close(b->m);
}

static const char *const names[] = {"N", "M", "batch"};

static kopt_selection ask(const kopt_selector *s, int64_t M, int64_t N)
{
    kopt_selection out;
    const int64_t values[] = {N, M};
    kopt_select(s, "tiles", names, values, 2, &out);
    return out;
}

/* The first prediction, its names sorted as in stores: "A" comes first. */
static double predict(const kopt_model *m, int64_t M, int64_t N, char *config, size_t bytes)
{
    char texts[2][32];
    const char *problem[] = {texts[0], texts[1]};
    kopt_prediction *p = NULL;
    kopt_error err = {0};
    kopt_predict_options o;
    size_t n = 0;
    int bm;
    int bn;
    int a;
    kopt_predict_options_init(&o);
    o.limits = "max_threads=1024";
    (void)snprintf(texts[0], sizeof(texts[0]), "M=%lld", (long long)M);
    (void)snprintf(texts[1], sizeof(texts[1]), "N=%lld", (long long)N);
    must(kopt_predict(m, problem, 2, &o, &p, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(sscanf(p->text, "BM=%d,BN=%d,A=%d", &bm, &bn, &a), 3);
    (void)snprintf(config, bytes, "{\"A\":%d,\"BM\":%d,\"BN\":%d}", a, bm, bn);
    double probability = p->probability;
    kopt_text_free((char *)p);
    return probability;
}

/* --- which source answers -------------------------------------------------------------------
 */

static void test_what_was_measured_comes_first(void **state)
{
    struct both b = open_both("kopt.db");
    char want[100];
    (void)state;
    kopt_selection got = ask(b.s, 100, 50);
    assert_int_equal(got.how, KOPT_SELECT_EXACT);
    assert_string_equal(got.config, "{\"A\":2,\"BM\":8,\"BN\":64}");
    for (int again = 0; again < 2; again++) {
        got = ask(b.s, 100, 52);
        assert_int_equal(got.how, KOPT_SELECT_MODEL);
        assert_true(got.confidence == predict(b.m, 100, 52, want, sizeof(want)));
        assert_string_equal(got.config, want);
        assert_true(isnan(got.distance) && isnan(got.median_ns));
        assert_true(kopt_selection_int(&got, "BM", -1) >= 8);
    }
    close_both(&b);
}

static void test_the_nearest_where_the_model_has_no_answer(void **state)
{
    struct both b = open_both("kopt.db");
    static const char *const other[] = {"M", "N", "K"};
    static const char *const twice[] = {"M", "N", "M"};
    const int64_t values[] = {100, 51, 7};
    kopt_selection got;
    (void)state;
    /* No tile is that small. */
    for (int again = 0; again < 2; again++)
        assert_int_equal(ask(b.s, 7, 50).how, KOPT_SELECT_NEAREST);
    /* Sizes are 1 at least. */
    assert_int_equal(ask(b.s, 100, -3).how, KOPT_SELECT_NONE);
    kopt_select(b.s, "tiles", other, values, 3, &got); /* no such name */
    assert_int_equal(got.how, KOPT_SELECT_NONE);
    kopt_select(b.s, "tiles", twice, values, 3, &got);
    assert_int_equal(got.how, KOPT_SELECT_NONE);
    kopt_select(b.s, "tiles", other, values, 1, &got); /* N is missing */
    assert_int_equal(got.how, KOPT_SELECT_NONE);
    kopt_select(b.s, "tiles", other, values, 0, &got);
    assert_int_equal(got.how, KOPT_SELECT_NONE);
    kopt_select(b.s, "others", other, values, 2, &got);
    assert_int_equal(got.how, KOPT_SELECT_NONE);
    /* A name with a default: what it says counts, given or not. */
    const int64_t three[] = {50, 200, 2};
    kopt_select(b.s, "tiles", names, three, 3, &got);
    assert_int_equal(got.how, KOPT_SELECT_EXACT);
    const int64_t one[] = {50, 200, 1};
    kopt_select(b.s, "tiles", names, one, 3, &got);
    assert_int_equal(got.how, KOPT_SELECT_MODEL);
    assert_string_equal(got.config, ask(b.s, 200, 50).config);
    close_both(&b);
}

static void test_without_a_store(void **state)
{
    kopt_selector *s = NULL;
    kopt_error err;
    (void)state;
    must(kopt_selector_open(NULL, NULL, &s, &err), &err);
    kopt_selection got = ask(s, 100, 50);
    assert_int_equal(got.how, KOPT_SELECT_NONE);
    assert_string_equal(got.config, "");
    kopt_selector_close(s);
    struct both b = open_both(NULL);
    assert_int_equal(ask(b.s, 100, 50).how, KOPT_SELECT_MODEL);
    assert_int_equal(ask(b.s, 7, 50).how, KOPT_SELECT_NONE);
    close_both(&b);
}

static void test_wrong_models(void **state)
{
    struct both b = open_both("kopt.db");
    kopt_selector *s = NULL;
    kopt_error err = {0};
    kopt_predict_options o;
    (void)state;
    must(kopt_selector_open("kopt.db", NULL, &s, &err), &err);
    kopt_predict_options_init(&o);
    o.limits = "warp=32";
    assert_int_equal(kopt_selector_add_model(s, b.m, &o, &err), KOPT_EUSAGE);
    assert_string_equal(err.message, "a rule uses device.max_threads, which is not given");
    assert_string_equal(err.hint, "add max_threads=NUMBER");
    o.limits = "max_threads=1024";
    o.top = 2;
    assert_int_equal(kopt_selector_add_model(s, b.m, &o, &err), KOPT_EUSAGE);
    o.top = 1;
    o.unconstrained = 1;
    assert_int_equal(kopt_selector_add_model(s, b.m, &o, &err), KOPT_EUSAGE);
    o.unconstrained = 0;
    o.width = 5000;
    assert_int_equal(kopt_selector_add_model(s, b.m, &o, &err), KOPT_EUSAGE);
    o.width = 0;
    o.struct_bytes = 3;
    assert_int_equal(kopt_selector_add_model(s, b.m, &o, &err), KOPT_EUSAGE);
    for (long n = 1; n <= 6; n++) {
        kp_alloc_fail_at(n);
        assert_int_equal(kopt_selector_add_model(s, b.m, NULL, &err), KOPT_ENOMEM);
        kp_alloc_fail_at(0);
    }
    must(kopt_selector_add_model(s, b.m, NULL, &err), &err);
    assert_int_equal(kopt_selector_add_model(s, b.m, NULL, &err), KOPT_EUSAGE);
    assert_string_equal(err.message, "the selector has a model of 'tiles'");
    kopt_selector_close(s);
    close_both(&b);
}

/* --- texts and memory -----------------------------------------------------------------------
 */

static void test_a_text_stays(void **state)
{
    struct both b = open_both("kopt.db");
    (void)state;
    kopt_selection first = ask(b.s, 100, 52);
    char text[100];
    (void)snprintf(text, sizeof(text), "%s", first.config);
    /* More problems than are remembered. */
    for (int64_t i = 0; i < 2 * KP_ANSWERS_PROBLEMS; i++)
        assert_int_equal(ask(b.s, 64 + i % 128, 1000 + i).how, KOPT_SELECT_MODEL);
    assert_string_equal(first.config, text);
    kopt_selection again = ask(b.s, 100, 52);
    assert_ptr_equal(again.config, first.config);
    assert_true(again.confidence == first.confidence);
    close_both(&b);
}

static void test_selection_allocates_nothing_once_warm(void **state)
{
    struct both b = open_both("kopt.db");
    (void)state;
    /* Both kinds of problems, each until its space is known. */
    for (int64_t i = 0; i < 8; i++)
        (void)ask(b.s, 100 + i, 60 + i);
    long before = n_mallocs;
    for (int64_t i = 0; i < 500; i++) {
        kp_alloc_fail_at(1);
        kopt_selection got = ask(b.s, 64 + i % 100, 100 + i / 2); /* odd and even N */
        kopt_selection same = ask(b.s, 64 + i % 100, 100 + i / 2);
        kp_alloc_fail_at(0);
        assert_int_equal(got.how, KOPT_SELECT_MODEL);
        assert_ptr_equal(same.config, got.config);
    }
    assert_int_equal(n_mallocs, before);
    close_both(&b);
}

static void test_prediction_allocates_its_answer_alone(void **state)
{
    static const char *const problems[][2] = {
        {"M=96", "N=64"}, {"M=100", "N=65"}, {"N=66", "M=101"}, {"M=102", "N=67"}};
    struct both b = open_both(NULL);
    kopt_error err = {0};
    kopt_predict_options o;
    kopt_prediction *p = NULL;
    size_t n = 0;
    (void)state;
    kopt_predict_options_init(&o);
    o.limits = "max_threads=1024";
    o.top = 5;
    for (int i = 0; i < 40; i++) {
        bool warm = i >= 8;
        long before = n_mallocs;
        kp_alloc_fail_at(warm ? 2 : 0);
        kopt_status st = kopt_predict(b.m, problems[i % 4], 2, &o, &p, &n, &err);
        kp_alloc_fail_at(0);
        must(st, &err);
        /* A ranker knows what was measured alone. */
        assert_true(n == 5 || (n > 1 && strcmp(network, "ranker") == 0));
        if (warm)
            assert_int_equal(n_mallocs - before, COUNTS_MALLOC);
        kopt_text_free((char *)p);
    }
    kp_alloc_fail_at(1);
    assert_int_equal(kopt_predict(b.m, problems[0], 2, &o, &p, &n, &err), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    assert_null(p);
    assert_int_equal(n, 0);
    close_both(&b);
}

/* Without memory the nearest problem is the answer, and later the model is. */
static void test_selection_without_memory(void **state)
{
    struct both b = open_both("kopt.db");
    (void)state;
    kp_alloc_fail_at(1);
    assert_int_equal(ask(b.s, 100, 54).how, KOPT_SELECT_NEAREST);
    kp_alloc_fail_at(0);
    assert_int_equal(ask(b.s, 100, 54).how, KOPT_SELECT_MODEL);
    close_both(&b);
}

/* --- many threads ---------------------------------------------------------------------------
 */

enum { THREADS = 4, ROUNDS = 4000, PROBLEMS = 300 };

struct worker {
    const kopt_selector *s;
    const kopt_selection *want;
    unsigned step;
    int wrong;
};

static int64_t m_of(size_t i)
{
    return 64 + (int64_t)(i % 100);
}

static int64_t n_of(size_t i)
{
    return 20 + (int64_t)i;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    size_t i = w->step;
    for (int round = 0; round < ROUNDS; round++, i = (i + w->step) % PROBLEMS) {
        kopt_selection got = ask(w->s, m_of(i), n_of(i));
        w->wrong += got.how != KOPT_SELECT_MODEL || got.confidence != w->want[i].confidence ||
                    strcmp(got.config, w->want[i].config) != 0;
    }
    return NULL;
}

static void test_threads(void **state)
{
    static const unsigned steps[THREADS] = {1, 7, 11, 13};
    struct both b = open_both(NULL);
    struct both other = open_both(NULL);
    kopt_selection want[PROBLEMS];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    for (size_t i = 0; i < PROBLEMS; i++)
        want[i] = ask(other.s, m_of(i), n_of(i));
    for (size_t t = 0; t < THREADS; t++) {
        workers[t] = (struct worker){b.s, want, steps[t], 0};
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(threads[t], NULL), 0);
        assert_int_equal(workers[t].wrong, 0);
    }
    close_both(&b);
    close_both(&other);
}

/* --- the table of answers -------------------------------------------------------------------
 */

static void write_number(void *user, const uint32_t *config, char *to)
{
    size_t *bytes = user;
    (void)snprintf(to, *bytes, "%u", config[0]);
}

static void test_texts_run_out(void **state)
{
    struct kp_answers *a = kp_answers_new(1, 1);
    size_t bytes = 12;
    const char *first = NULL;
    uint32_t n = 0;
    (void)state;
    assert_non_null(a);
    for (; n < KP_ANSWERS_TEXTS; n++) {
        const char *text = kp_answers_add_text(a, &n, bytes, write_number, &bytes);
        assert_non_null(text);
        first = first ? first : text;
    }
    assert_null(kp_answers_add_text(a, &n, bytes, write_number, &bytes));
    assert_null(kp_answers_text(a, &n));
    for (n = 0; n < KP_ANSWERS_TEXTS; n++)
        assert_int_equal(strtol(kp_answers_text(a, &n), NULL, 10), n);
    n = 0;
    assert_ptr_equal(kp_answers_add_text(a, &n, bytes, write_number, &bytes), first);
    kp_answers_free(a);

    bytes = 1 << 20;
    a = kp_answers_new(1, 1);
    assert_non_null(a);
    for (n = 0; kp_answers_add_text(a, &n, bytes, write_number, &bytes); n++)
        assert_true(n < 8);
    assert_int_equal(n, 7); /* with the configurations they do not fit eight times */
    kp_answers_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_counter_counts),
        cmocka_unit_test(test_what_was_measured_comes_first),
        cmocka_unit_test(test_the_nearest_where_the_model_has_no_answer),
        cmocka_unit_test(test_without_a_store),
        cmocka_unit_test(test_wrong_models),
        cmocka_unit_test(test_a_text_stays),
        cmocka_unit_test(test_selection_allocates_nothing_once_warm),
        cmocka_unit_test(test_prediction_allocates_its_answer_alone),
        cmocka_unit_test(test_selection_without_memory),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_texts_run_out),
    };
    network = "factored";
    int failed = cmocka_run_group_tests(tests, make_files, NULL);
    network = "ranker";
    return failed + cmocka_run_group_tests(tests, make_files, NULL);
}
