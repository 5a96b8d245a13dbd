/* SPDX-License-Identifier: MIT */
#include "model/encoder.h"

#include "base/alloc.h"
#include "support/test.h"

#include <math.h>

static const char *const names[] = {"C", "fixed", "dir", "pad", "ratio"};
enum { N_FIELDS = 5 };

/* 24 problems: C of 8 kinds, three directions, a pad of -2, 0 and 1, ratios that are not whole.
 */
static struct kp_dataset *some(void)
{
    static const int64_t c[] = {3, 16, 32, 48, 64, 128, 256, 1024};
    static const char *const dir[] = {"F", "B", "W"};
    static const int64_t pad[] = {-2, 0, 1};
    static const char *const target[] = {"t"};
    struct kp_dataset_builder *b = NULL;
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dataset_begin("k", names, N_FIELDS, target, 1, NULL, &b, &err),
                     KOPT_OK);
    for (size_t i = 0; i < 24; i++) {
        struct kp_value problem[] = {kp_int(c[i % 8]), kp_int(7),
                                     kp_string(kp_str_from(dir[i % 3])), kp_int(pad[i / 8]),
                                     kp_float(0.25 * (double)i)};
        struct kp_value config[] = {kp_int(1)};
        assert_int_equal(kp_dataset_add(b, problem, config, NULL, NAN, &err), KOPT_OK);
    }
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    return d;
}

static struct kp_encoder *learn(const struct kp_dataset *d, const unsigned char *use)
{
    unsigned char all[24];
    struct kp_encoder *e = NULL;
    kopt_error err = {0};
    memset(all, 1, sizeof(all));
    assert_int_equal(kp_encoder_new(d, use ? use : all, &e, &err), KOPT_OK);
    return e;
}

/* Another data set may have other words, or the same ones elsewhere in its list. */
static void words_are_told_by_their_texts(void **state)
{
    (void)state;
    static const char *const words[] = {"W", "X"};
    struct kp_dataset *d = some();
    struct kp_encoder *e = learn(d, NULL);
    size_t F = kp_encoder_n_features(e);
    float *x = kp_calloc(2 * F, sizeof(float));
    struct kp_field fields[N_FIELDS];
    double problem[N_FIELDS];
    int32_t want[N_FIELDS];
    int32_t got[N_FIELDS];
    memcpy(fields, d->fields, sizeof(fields));
    memcpy(problem, d->problems, sizeof(problem));
    fields[2].words = words;
    fields[2].n_words = 2;
    struct kp_dataset other = *d;
    other.fields = fields;
    other.problems = problem;
    for (size_t w = 0; w < 2; w++) {
        problem[2] = w ? 3 : 2; /* B, F, W: none is the third */
        kp_encode(e, problem, want, x);
        problem[2] = (double)w;
        kp_encode_problem(e, &other, 0, got, x + F);
        assert_memory_equal(got, want, kp_encoder_n_tokens(e) * sizeof(*got));
        assert_memory_equal(x, x + F, F * sizeof(*x));
    }
    kp_free(x);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

static void tokens_are_disjoint_and_unknown_numbers_share_one(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    struct kp_encoder *e = learn(d, NULL);
    float *features = kp_calloc(kp_encoder_n_features(e), sizeof(float));
    int32_t tokens[N_FIELDS];
    assert_int_equal(kp_encoder_n_fields(e), N_FIELDS);
    assert_string_equal(kp_encoder_field(e, 2)->name, "dir");
    assert_string_equal(kp_encoder_field(e, 2)->words[0], "B");
    assert_int_equal(kp_encoder_n_tokens(e), 4); /* the second field never varies */
    assert_int_equal(kp_encoder_n_vocab(e), (8 + 1) + (3 + 1) + (3 + 1) + (24 + 1));
    assert_int_equal(kp_encoder_unknown(e, 0), 0);
    assert_int_equal(kp_encoder_unknown(e, 1), 9);
    assert_int_equal(kp_encoder_unknown(e, 2), 13);
    assert_int_equal(kp_encoder_unknown(e, 3), 17);

    kp_encode(e, (const double[]){48, 7, 2, -2, 0.5}, tokens, features);
    assert_int_equal(tokens[0], 0 + 1 + 3);
    assert_int_equal(tokens[1], 9 + 1 + 2);
    assert_int_equal(tokens[2], 13 + 1);
    assert_int_equal(tokens[3], 17 + 1 + 2);
    const double odd[][N_FIELDS] = {{47, 8, 3, 5, 0.3},
                                    {-1e300, 0, -1, 1e300, 1e-300},
                                    {2000, 0, 0.5, 0.5, 99},
                                    {(double)NAN, 0, 1e9, (double)INFINITY, -(double)INFINITY}};
    for (size_t i = 0; i < 4; i++) {
        kp_encode(e, odd[i], tokens, features);
        for (size_t t = 0; t < 4; t++)
            assert_int_equal(tokens[t], kp_encoder_unknown(e, t));
        for (size_t f = 0; f < kp_encoder_n_features(e); f++)
            assert_true(features[f] >= -8 && features[f] <= 8);
    }
    kp_free(features);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

static void features_have_mean_0_and_variance_1(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    struct kp_encoder *e = learn(d, NULL);
    size_t n = kp_encoder_n_features(e);
    float *x = kp_calloc(n * 24, sizeof(float));
    int32_t tokens[N_FIELDS];
    for (size_t p = 0; p < 24; p++)
        kp_encode(e, d->problems + p * N_FIELDS, tokens, x + p * n);
    for (size_t f = 0; f < n; f++) {
        double mean = 0;
        double variance = 0;
        for (size_t p = 0; p < 24; p++)
            mean += (double)x[p * n + f] / 24;
        for (size_t p = 0; p < 24; p++)
            variance += pow((double)x[p * n + f] - mean, 2) / 24;
        /* 24 floats of size 1, each with a relative error of 6e-8. */
        assert_true(fabs(mean) < 1e-6);
        assert_true(fabs(variance - 1) < 1e-6);
    }
    kp_free(x);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

/* The features by hand, in the order that encoder.c gives them. */
static void features_say_what_they_should(void **state)
{
    (void)state;
    static const double c[] = {3, 16, 32, 48, 64, 128, 256, 1024};
    struct kp_dataset *d = some();
    struct kp_encoder *e = learn(d, NULL);
    float *x = kp_calloc(kp_encoder_n_features(e), sizeof(float));
    int32_t tokens[N_FIELDS];
    /* C: log2, divided by 2 .. 256, remainders of 16, 64, 256, and "is 3". The numbers 2, 4, 8
     * and 16 divide all but the 3. */
    double raw[13][8];
    for (int i = 0; i < 8; i++) {
        raw[0][i] = log2(1 + c[i]);
        for (int k = 1; k <= 8; k++)
            raw[k][i] = fmod(c[i], 1 << k) == 0;
        raw[9][i] = fmod(c[i], 16) / 16;
        raw[10][i] = fmod(c[i], 64) / 64;
        raw[11][i] = fmod(c[i], 256) / 256;
        raw[12][i] = c[i] == 3;
    }
    for (int i = 0; i < 8; i++) {
        kp_encode(e, (const double[]){c[i], 7, 0, 0, 0}, tokens, x);
        for (int f = 0; f < 13; f++) {
            double mean = 0;
            double variance = 0;
            for (int k = 0; k < 8; k++)
                mean += raw[f][k] / 8;
            for (int k = 0; k < 8; k++)
                variance += pow(raw[f][k] - mean, 2) / 8;
            /* Floats of size 3 at most. */
            assert_true(fabs((double)x[f] - (raw[f][i] - mean) / sqrt(variance)) < 1e-6);
        }
    }
    kp_free(x);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

/* A number that was not seen has the features of the number that it is. */
static void unseen_numbers_are_near_those_they_resemble(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    struct kp_encoder *e = learn(d, NULL);
    size_t n = kp_encoder_n_features(e);
    float *x = kp_calloc(3 * n, sizeof(float));
    int32_t tokens[N_FIELDS];
    double near = 0;
    double far = 0;
    kp_encode(e, (const double[]){64, 7, 0, 0, 0}, tokens, x);
    kp_encode(e, (const double[]){192, 7, 0, 0, 0}, tokens, x + n); /* 64 divides it too */
    kp_encode(e, (const double[]){67, 7, 0, 0, 0}, tokens, x + 2 * n);
    for (size_t f = 0; f < n; f++) {
        near += pow((double)(x[f] - x[n + f]), 2);
        far += pow((double)(x[f] - x[2 * n + f]), 2);
    }
    assert_true(near < far / 2);
    kp_free(x);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

static void only_the_training_problems_count(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    unsigned char use[24] = {0};
    for (size_t p = 0; p < 24; p += 8)
        use[p] = 1; /* C is 3 in all of them */
    struct kp_encoder *e = learn(d, use);
    assert_int_equal(kp_encoder_n_tokens(e), 3);
    assert_int_equal(kp_encoder_n_vocab(e), 3 * (3 + 1));
    kp_encoder_free(e);
    kopt_error err = {0};
    memset(use, 0, sizeof(use));
    assert_int_equal(kp_encoder_new(d, use, &e, &err), KOPT_EINPUT);
    assert_null(e);
    use[3] = 1; /* nothing varies */
    e = learn(d, use);
    assert_int_equal(kp_encoder_n_tokens(e), 0);
    assert_int_equal(kp_encoder_n_vocab(e), 0);
    assert_int_equal(kp_encoder_n_features(e), 0);
    kp_encode(e, d->problems, NULL, NULL);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

/* ---- JSON ---- */

static struct kp_json *parse(const char *text)
{
    struct kp_json *j = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_json_parse(kp_str_from(text), "test", &j, &err), KOPT_OK);
    return j;
}

static void json_gives_the_same_encoder(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    struct kp_encoder *e = learn(d, NULL);
    struct kp_encoder *again = NULL;
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    struct kp_buf second = KP_BUF_INIT(1 << 20);
    kopt_error err = {0};
    struct kp_json *j = kp_encoder_to_json(e);
    assert_non_null(j);
    kp_json_dump(j, &text);
    kp_json_free(j);
    j = parse(kp_buf_text(&text));
    assert_int_equal(kp_encoder_from_json(j, &again, &err), KOPT_OK);
    kp_json_free(j);
    j = kp_encoder_to_json(again);
    kp_json_dump(j, &second);
    kp_json_free(j);
    assert_string_equal(kp_buf_text(&text), kp_buf_text(&second));

    size_t n = kp_encoder_n_features(e);
    assert_int_equal(kp_encoder_n_features(again), n);
    assert_int_equal(kp_encoder_n_vocab(again), kp_encoder_n_vocab(e));
    float *x = kp_calloc(2 * n, sizeof(float));
    int32_t a[N_FIELDS];
    int32_t b[N_FIELDS];
    for (size_t p = 0; p < 24; p++) {
        kp_encode(e, d->problems + p * N_FIELDS, a, x);
        kp_encode(again, d->problems + p * N_FIELDS, b, x + n);
        assert_memory_equal(a, b, 4 * sizeof(*a));
        assert_memory_equal(x, x + n, n * sizeof(*x));
    }
    kp_free(x);
    kp_buf_deinit(&text);
    kp_buf_deinit(&second);
    kp_encoder_free(e);
    kp_encoder_free(again);
    kp_dataset_free(d);
}

/* C of 8 kinds, and what never varied. */
static void what_stood_in_training_is_known(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    unsigned char forward[24];
    for (size_t p = 0; p < 24; p++)
        forward[p] = d->problems[p * N_FIELDS + 2] == 1; /* F: every third */
    struct kp_encoder *e = learn(d, forward);
    struct kp_json *j = kp_encoder_to_json(e);
    struct kp_encoder *again = NULL;
    kopt_error err = {0};
    double low;
    double high;
    assert_int_equal(kp_encoder_from_json(j, &again, &err), KOPT_OK);
    for (int k = 0; k < 2; k++) {
        const struct kp_encoder *x = k ? again : e;
        assert_true(kp_encoder_range(x, 0, &low, &high) && low == 3 && high == 1024);
        assert_true(kp_encoder_range(x, 1, &low, &high) && low == 7 && high == 7);
        assert_false(kp_encoder_range(x, 2, &low, &high));
        assert_int_equal(kp_encoder_n_words(x, 2), 1); /* the others are of other problems */
        assert_string_equal(kp_encoder_word(x, 2, 0), "F");
        assert_true(kp_encoder_knows(x, 0, kp_int(5)) && kp_encoder_knows(x, 0, kp_float(3)));
        assert_false(kp_encoder_knows(x, 0, kp_int(2)));
        assert_false(kp_encoder_knows(x, 0, kp_float(1024.5)));
        assert_true(kp_encoder_knows(x, 1, kp_int(7)));
        assert_false(kp_encoder_knows(x, 1, kp_int(8)));
        assert_true(kp_encoder_knows(x, 1, kp_string(kp_str_from("x")))); /* it is no number */
        assert_true(kp_encoder_knows(x, 2, kp_string(kp_str_from("F"))));
        assert_false(kp_encoder_knows(x, 2, kp_string(kp_str_from("B"))));
        assert_false(kp_encoder_knows(x, 2, kp_int(1)));
        assert_false(kp_encoder_knows(x, 2, kp_bool(true)));
    }
    kp_json_free(j);
    kp_encoder_free(again);
    /* Older files do not say what a field was that never varied. */
    j = parse("{\"fields\":[{\"name\":\"a\"},{\"name\":\"d\",\"words\":[\"B\",\"F\"]}],"
              "\"tokens\":[],\"features\":[]}");
    assert_int_equal(kp_encoder_from_json(j, &again, &err), KOPT_OK);
    assert_false(kp_encoder_range(again, 0, &low, &high));
    assert_true(kp_encoder_knows(again, 0, kp_int(-9)));
    assert_int_equal(kp_encoder_n_words(again, 1), 2);
    assert_true(kp_encoder_knows(again, 1, kp_string(kp_str_from("B"))));
    kp_json_free(j);
    kp_encoder_free(again);
    kp_encoder_free(e);
    kp_dataset_free(d);
}

#define FIELDS "\"fields\":[{\"name\":\"C\"},{\"name\":\"d\",\"words\":[\"B\",\"F\"]}]"
#define TOKENS "\"tokens\":[{\"field\":0,\"known\":[1,2.5]},{\"field\":1,\"known\":[0,1]}]"
#define FEATURES                                                      \
    "\"features\":[[\"log2\",0,0,1.5,2.0],[\"divides\",0,8,0.5,2.0]," \
    "[\"is\",1,1,0.5,2.0]]"

static void what_is_not_an_encoder_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[]",
        "{}",
        "{\"fields\":[]," TOKENS "," FEATURES "}",
        "{" FIELDS "," TOKENS "}",
        "{" FIELDS "," FEATURES "}",
        "{\"fields\":[{\"name\":\"\"}],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[{\"name\":\"a\"},{\"name\":\"a\"}],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[{\"name\":\"a\",\"words\":3}],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[{\"name\":\"a\",\"words\":[3]}],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[7],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[{\"name\":\"a\",\"only\":\"1\"}],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[{\"name\":\"a\",\"words\":[\"x\"],\"only\":1}],\"tokens\":[],\"features\":[]}",
        "{\"fields\":[{\"name\":\"a\",\"only\":1}],\"tokens\":[{\"field\":0,\"known\":[1,2]}],"
        "\"features\":[]}",
        "{" FIELDS ",\"tokens\":[{\"field\":2,\"known\":[]}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":-1,\"known\":[]}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":0,\"known\":[2,1]}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":0,\"known\":[1,1]}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":0,\"known\":[null]}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":0}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":1,\"known\":[2]}]," FEATURES "}",
        "{" FIELDS ",\"tokens\":[{\"field\":1,\"known\":[0.5]}]," FEATURES "}",
        "{" FIELDS
        ",\"tokens\":[{\"field\":1,\"known\":[]},{\"field\":0,\"known\":[]}]," FEATURES "}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"cube\",0,0,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"log2\",0,0,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"log2\",2,0,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"log2\",1,0,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"log2\",0,0,null,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"log2\",0,0,1,0]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"log2\",0,0,1,-1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"divides\",0,3,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"part\",0,1024,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"part\",0,1,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"is\",1,2,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":[[\"is\",1,1,1,1],[\"log2\",0,0,1,1]]}",
        "{" FIELDS "," TOKENS ",\"features\":{\"a\":1}}",
    };
    struct kp_encoder *e = NULL;
    struct kp_json *j = parse("{" FIELDS "," TOKENS "," FEATURES "}");
    kopt_error err = {0};
    assert_int_equal(kp_encoder_from_json(j, &e, &err), KOPT_OK);
    int32_t tokens[2];
    float x[3];
    kp_encode(e, (const double[]){7, 1}, tokens, x);
    assert_int_equal(tokens[0], 0);
    assert_int_equal(tokens[1], 5);
    assert_true(x[0] == 3 && x[1] == -1 && x[2] == 1); /* (log2(8) - 1.5) 2, and so on */
    kp_encoder_free(e);
    kp_json_free(j);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        j = parse(bad[i]);
        err = (kopt_error){0};
        assert_int_equal(kp_encoder_from_json(j, &e, &err), KOPT_EINPUT);
        assert_null(e);
        assert_non_null(strstr(err.message, "problem fields"));
        kp_json_free(j);
    }
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct kp_dataset *d = some();
    unsigned char use[24];
    struct kp_encoder *e = NULL;
    struct kp_encoder *again = NULL;
    memset(use, 1, sizeof(use));
    for (long n = 1; !e; n++) {
        kopt_error err = {0};
        assert_true(n < 1000);
        kp_alloc_fail_at(n);
        kopt_status st = kp_encoder_new(d, use, &e, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(st, e ? KOPT_OK : KOPT_ENOMEM);
    }
    struct kp_json *j = kp_encoder_to_json(e);
    for (long n = 1; !again; n++) {
        kopt_error err = {0};
        assert_true(n < 1000);
        kp_alloc_fail_at(n);
        kopt_status st = kp_encoder_from_json(j, &again, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(st, again ? KOPT_OK : KOPT_ENOMEM);
    }
    kp_json_free(j);
    kp_encoder_free(e);
    kp_encoder_free(again);
    kp_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_disjoint_and_unknown_numbers_share_one),
        cmocka_unit_test(words_are_told_by_their_texts),
        cmocka_unit_test(features_have_mean_0_and_variance_1),
        cmocka_unit_test(features_say_what_they_should),
        cmocka_unit_test(unseen_numbers_are_near_those_they_resemble),
        cmocka_unit_test(only_the_training_problems_count),
        cmocka_unit_test(json_gives_the_same_encoder),
        cmocka_unit_test(what_stood_in_training_is_known),
        cmocka_unit_test(what_is_not_an_encoder_is_refused),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
