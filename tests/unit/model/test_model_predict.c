/* SPDX-License-Identifier: MIT */
/* Asking a model: derived fields, what the rules let out, problems that are no problems. */
#include "base/alloc.h"
#include "model/model.h"
#include "small_model.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>

static const struct small_plan whole = {"factored", small_rules, "small.kopt", 2, 5};

#define WORD(name, text)              \
    {                                 \
        name, kp_string(KP_STR(text)) \
    }

/* --- derived fields -------------------------------------------------------------------------
 */

static void test_derived_fields(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    const char *names[KP_FIELDS_MAX];
    double values[KP_FIELDS_MAX];
    kopt_error err;
    /* Not `rows` (M itself), `name` (a string), `block` (of parameters), `threads` (of the
     * device). */
    assert_int_equal(kp_model_derived_names(m->rules, names), 3);
    assert_string_equal(names[0], "tiles");
    assert_string_equal(names[1], "half");
    assert_string_equal(names[2], "ratio");
    const struct kp_value sizes[] = {kp_int(33), kp_int(52), kp_string(KP_STR("f16")),
                                     kp_int(2)};
    assert_int_equal(kp_model_derive(m->rules, sizes, values, &err), KOPT_OK);
    assert_true(values[0] == 6);
    assert_true(values[1] == 1);
    assert_true(values[2] == 2);
    /* Division by zero, and words where numbers are computed with. */
    const struct kp_value seven[] = {kp_int(7), kp_int(52), kp_int(1), kp_int(1)};
    assert_int_equal(kp_model_derive(m->rules, seven, values, &err), KOPT_OK);
    assert_true(values[0] == 1);
    assert_true(values[2] == 0);
    const struct kp_value words[] = {kp_string(KP_STR("x")), kp_int(52), kp_int(1), kp_int(1)};
    assert_int_equal(kp_model_derive(m->rules, words, values, &err), KOPT_OK);
    assert_true(values[0] == 0);
    kp_alloc_fail_at(1);
    assert_int_equal(kp_model_derive(m->rules, sizes, values, &err), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    kp_model_free(m);
}

/* --- what comes out -------------------------------------------------------------------------
 */

static int64_t int_of(const struct kp_model *m, const uint32_t *config, size_t p)
{
    return m->targets[p].values[config[p]].as.i;
}

static bool is_word(const struct kp_model *m, const uint32_t *config, size_t p, const char *s)
{
    return kp_str_is(m->targets[p].values[config[p]].as.s, s);
}

/* The rules of small_rules, by hand. */
static bool satisfies(const struct kp_model *m, const uint32_t *config, int64_t M, int64_t N,
                      bool half)
{
    int64_t BN = int_of(m, config, 0);
    int64_t BM = int_of(m, config, 1);
    return BM >= 16 && BM <= M && BM * BN <= N && (is_word(m, config, 3, "a") || !half);
}

/* How many of all that can be predicted satisfy them. */
static size_t count_valid(const struct kp_model *m, int64_t M, int64_t N, bool half)
{
    size_t n = 0;
    uint32_t c[SMALL_TARGETS];
    for (c[0] = 0; c[0] < m->targets[0].n_values; c[0]++)
        for (c[1] = 0; c[1] < m->targets[1].n_values; c[1]++)
            for (c[2] = 0; c[2] < m->targets[2].n_values; c[2]++)
                for (c[3] = 0; c[3] < m->targets[3].n_values; c[3]++)
                    n += satisfies(m, c, M, N, half);
    return n;
}

static void ask_all(const char *net, int64_t M, int64_t N, bool half)
{
    struct small_plan plan = whole;
    plan.net = net;
    struct kp_model *m = small_model(&plan);
    struct kp_prediction got;
    kopt_error err;
    const struct kp_given given[] = {{"M", kp_int(M)},
                                     {"N", kp_int(N)},
                                     {"dtype", kp_string(kp_str_from(half ? "f16" : "f32"))}};
    const struct kp_predict_options o = {.k = 200};
    size_t n = count_valid(m, M, N, half);
    assert_true(n > 0 && n < 200);
    assert_int_equal(kp_model_predict(m, given, 3, &o, &got, &err), KOPT_OK);
    assert_int_equal(got.n, n);
    double sum = 0;
    for (size_t i = 0; i < got.n; i++) {
        const uint32_t *c = got.configs + i * SMALL_TARGETS;
        assert_true(satisfies(m, c, M, N, half));
        assert_true(i == 0 || got.logp[i] <= got.logp[i - 1]);
        for (size_t j = 0; j < i; j++)
            assert_true(memcmp(c, got.configs + j * SMALL_TARGETS, SMALL_TARGETS * sizeof(*c)));
        sum += exp(got.logp[i]);
    }
    /* The others have the rest of the probability. */
    assert_true(sum > 0 && sum < 1);
    kp_prediction_deinit(&got);
    kp_model_free(m);
}

/* All that is valid and nothing else, whatever the model: BM's list is not that of the rules,
 * `extra` is no parameter, and the targets' order is not that of the parameters. */
static void test_constrained(void **state)
{
    (void)state;
    for (size_t i = 0; translator_at(i); i++) {
        ask_all(translator_at(i)->name, 96, 200, false);
        ask_all(translator_at(i)->name, 40, 50, true);
    }
}

static void test_unconstrained(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction got;
    kopt_error err;
    assert_int_equal(small_ask(m, 200, true, &got, &err), KOPT_OK);
    assert_int_equal(got.n, 3 * 5 * 2 * 2);
    double sum = 0;
    for (size_t i = 0; i < got.n; i++)
        sum += exp(got.logp[i]);
    assert_true(fabs(sum - 1) < 1e-5); /* float logarithms of 60 probabilities */
    kp_prediction_deinit(&got);
    kp_model_free(m);
    /* The same where there are no rules. */
    struct small_plan plan = whole;
    plan.rules = NULL;
    m = small_model(&plan);
    assert_int_equal(small_ask(m, 200, false, &got, &err), KOPT_OK);
    assert_int_equal(got.n, 3 * 5 * 2 * 2);
    kp_prediction_deinit(&got);
    kp_model_free(m);
}

/* The first of many are those that a wide beam finds when asked for few. */
static void test_width(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction many;
    struct kp_prediction few;
    kopt_error err;
    const struct kp_given given[] = {
        WORD("dtype", "f32"), {"M", kp_int(96)}, {"N", kp_int(200)}};
    const struct kp_predict_options o = {.k = 3, .width = 200};
    assert_int_equal(small_ask(m, 200, false, &many, &err), KOPT_OK);
    assert_int_equal(kp_model_predict(m, given, 3, &o, &few, &err), KOPT_OK);
    assert_int_equal(few.n, 3);
    assert_memory_equal(few.configs, many.configs, 3 * SMALL_TARGETS * sizeof(*few.configs));
    kp_prediction_deinit(&many);
    kp_prediction_deinit(&few);
    kp_model_free(m);
}

/* --- the device -----------------------------------------------------------------------------
 */

static void test_limits(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction got;
    kopt_error err;
    const struct kp_limits limits = {.max_threads = 32};
    const struct kp_given given[] = {
        WORD("dtype", "f32"), {"M", kp_int(96)}, {"N", kp_int(200)}};
    const struct kp_predict_options o = {.k = 100, .limits = &limits};
    assert_int_equal(kp_model_predict(m, given, 3, &o, &got, &err), KOPT_OK);
    assert_int_equal(got.n, 3 * 2 * 2); /* 16x1, 16x2, 32x1 */
    for (size_t i = 0; i < got.n; i++)
        assert_true(int_of(m, got.configs + i * SMALL_TARGETS, 0) *
                        int_of(m, got.configs + i * SMALL_TARGETS, 1) <=
                    32);
    kp_prediction_deinit(&got);
    kp_model_free(m);
}

/* --- problems -------------------------------------------------------------------------------
 */

struct wrong {
    struct kp_given given[5];
    size_t n;
    const char *message;
};

static void test_wrong_problems(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    const struct wrong all[] = {
        {{{"M", kp_int(96)}, WORD("dtype", "f32")}, 2, "lacks N"},
        {{WORD("dtype", "f32")}, 1, "lacks M, N"},
        {{{"M", kp_int(96)}, {"N", kp_int(1)}, {"M", kp_int(96)}}, 3, "M is given twice"},
        {{{"M", kp_int(96)}, {"N", kp_int(1)}, {"K", kp_int(96)}}, 3, "has no 'K'"},
        {{{"M", kp_int(96)}, {"N", kp_int(1)}, {"BM", kp_int(16)}}, 3, "has no 'BM'"},
        {{{"M", kp_int(96)}, {"N", kp_int(1)}, {"tiles", kp_int(6)}}, 3, "has no 'tiles'"},
        {{{"M", kp_int(96)}, WORD("N", "many")}, 2, "N=many: a number is expected"},
        {{{"M", kp_int(96)}, {"N", kp_float((double)NAN)}}, 2, "N is not a finite number"},
        {{{"M", kp_float((double)INFINITY)}, {"N", kp_int(4)}}, 2, "M is not a finite number"},
        {{{"M", kp_int(-96)}, {"N", kp_int(4)}}, 2, "M=-96 is negative"},
        {{{"M", kp_int(9)}, {"N", kp_int(4)}, {"batch", kp_int(4)}, {"batch", kp_int(4)}},
         4,
         "batch is given twice"}};
    const struct kp_predict_options o = {.k = 1};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct kp_prediction got;
        kopt_error err = {0};
        assert_int_equal(kp_model_predict(m, all[i].given, all[i].n, &o, &got, &err),
                         KOPT_EUSAGE);
        if (!strstr(err.message, all[i].message))
            fail_msg("%s: not in '%s'", all[i].message, err.message);
        assert_string_equal(err.hint, "problem: M N dtype");
        assert_null(got.configs);
        assert_null(got.logp);
        assert_int_equal(got.n, 0);
    }
    kp_model_free(m);
}

static void test_wrong_numbers(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    const struct kp_given given[] = {{"M", kp_int(96)}, {"N", kp_int(200)}};
    const struct kp_predict_options all[] = {{.k = 0},
                                             {.k = 3, .width = 2},
                                             {.k = KP_BEAM_WIDTH_MAX + 1},
                                             {.k = 1, .width = KP_BEAM_WIDTH_MAX + 1}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct kp_prediction got;
        kopt_error err = {0};
        assert_int_equal(kp_model_predict(m, given, 2, &all[i], &got, &err), KOPT_EUSAGE);
        assert_non_null(strstr(err.message, "can be asked for"));
    }
    kp_model_free(m);
}

static struct kp_prediction ask(const struct kp_model *m, const struct kp_given *given,
                                size_t n)
{
    struct kp_prediction got;
    kopt_error err = {0};
    const struct kp_predict_options o = {.k = 4};
    if (kp_model_predict(m, given, n, &o, &got, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return got;
}

static void assert_same(struct kp_prediction a, struct kp_prediction b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.configs, b.configs, a.n * SMALL_TARGETS * sizeof(*a.configs));
    assert_memory_equal(a.logp, b.logp, a.n * sizeof(*a.logp));
    kp_prediction_deinit(&a);
    kp_prediction_deinit(&b);
}

/* Left out, given in another way, or never seen. */
static void test_other_ways_to_say_it(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    const struct kp_given plain[] = {
        {"M", kp_int(96)}, {"N", kp_int(200)}, WORD("dtype", "f32")};
    const struct kp_given defaults[] = {{"N", kp_float(200)}, {"M", kp_float(96)}};
    const struct kp_given batch[] = {
        {"batch", kp_int(1)}, {"M", kp_int(96)}, {"N", kp_int(200)}, WORD("dtype", "f32")};
    assert_same(ask(m, plain, 3), ask(m, defaults, 2));
    assert_same(ask(m, plain, 3), ask(m, batch, 4));
    /* Words that were never seen are all alike, and a number is a word there, too. */
    const struct kp_given f64[] = {{"M", kp_int(96)}, {"N", kp_int(200)}, WORD("dtype", "f64")};
    const struct kp_given one[] = {{"M", kp_int(96)}, {"N", kp_int(200)}, {"dtype", kp_int(1)}};
    assert_same(ask(m, f64, 3), ask(m, one, 3));
    struct kp_prediction large =
        ask(m, (const struct kp_given[]){{"M", kp_int(INT64_MAX / 32)}, {"N", kp_int(16)}}, 2);
    assert_int_equal(large.n, 4);
    kp_prediction_deinit(&large);
    kp_model_free(m);
}

/* --- rules that leave nothing ---------------------------------------------------------------
 */

static void test_nothing_left(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction got;
    kopt_error err = {0};
    const struct kp_predict_options o = {.k = 1};
    const struct kp_given low[] = {{"M", kp_int(96)}, {"N", kp_int(15)}};
    assert_int_equal(kp_model_predict(m, low, 2, &o, &got, &err), KOPT_ENOTFOUND);
    assert_non_null(strstr(err.message, "BN*BM <= N"));
    assert_non_null(strstr(err.message, "a tile is no larger than N"));
    assert_int_equal(err.line, 14);
    assert_non_null(strstr(err.file, "small.kopt"));
    assert_int_equal(got.n, 0);
    const struct kp_predict_options free_beam = {.k = 1, .unconstrained = true};
    assert_int_equal(kp_model_predict(m, low, 2, &free_beam, &got, &err), KOPT_OK);
    assert_int_equal(got.n, 1);
    kp_prediction_deinit(&got);
    kp_model_free(m);
}

/* What the rules leave was never seen: a value of one parameter, or only together. */
static void test_only_unknown_values(void **state)
{
    static const char one[] = "kernel small\nproblem M N dtype=\"f32\" batch=1\n"
                              "param BM {256,512}\n";
    static const char both[] = "kernel small\nproblem M N dtype=\"f32\" batch=1\n"
                               "param BM {16,256}\nparam BN {1,3}\n"
                               "require (BM == 16 && BN == 3) || (BM == 256 && BN == 1)\n";
    (void)state;
    const char *const texts[] = {one, both};
    const char *const messages[] = {"no value of 'BM'", "has not seen"};
    for (size_t i = 0; i < 2; i++) {
        struct kp_prediction got;
        kopt_error err = {0};
        struct small_plan plan = whole;
        plan.rules = texts[i];
        struct kp_model *m = small_model(&plan);
        assert_int_equal(small_ask(m, 1, false, &got, &err), KOPT_ENOTFOUND);
        assert_non_null(strstr(err.message, messages[i]));
        kp_model_free(m);
    }
}

/* --- kernel files ---------------------------------------------------------------------------
 */

static void test_kernel_file(void **state)
{
    static const char source[] = "#pragma kopt kernel small\n"
                                 "#pragma kopt problem M N\n"
                                 "#pragma kopt param BM {16,32}\n"
                                 "#pragma kopt require BM <= M\n"
                                 "#pragma kopt block BM\n"
                                 "#pragma kopt grid ceildiv(M, BM)\n"
                                 "#pragma kopt arg x f32[M] out\n"
                                 "__kernel void small(__global float *x) {}\n";
    (void)state;
    struct small_plan plan = whole;
    struct kp_kernel *k;
    kopt_error err = {0};
    plan.rules = NULL; /* no derived fields */
    struct kp_model *m = small_model(&plan);
    if (kp_kernel_parse("small.cl", kp_str_from(source), &k, &err) != KOPT_OK)
        fail_msg("%s: %s", err.file, err.message);
    m->rules = k;
    m->rules_path = "small.cl";
    m->rules_text = kp_str_from(source);
    struct kp_prediction got;
    const struct kp_predict_options o = {.k = 100};
    const struct kp_given zero[] = {{"M", kp_int(0)}, {"N", kp_int(1)}, WORD("dtype", "f32")};
    const struct kp_given part[] = {
        {"M", kp_float(16.5)}, {"N", kp_int(1)}, WORD("dtype", "f32")};
    const struct kp_given good[] = {{"M", kp_int(16)}, {"N", kp_int(1)}, WORD("dtype", "f32")};
    assert_int_equal(kp_model_predict(m, zero, 3, &o, &got, &err), KOPT_EUSAGE);
    assert_non_null(
        strstr(err.message, "M: a problem size is an integer from 1 to 9223372036854775807"));
    assert_int_equal(kp_model_predict(m, part, 3, &o, &got, &err), KOPT_EUSAGE);
    assert_int_equal(kp_model_predict(m, good, 3, &o, &got, &err), KOPT_OK);
    assert_int_equal(got.n, 3 * 2 * 2);
    for (size_t i = 0; i < got.n; i++)
        assert_int_equal(int_of(m, got.configs + i * SMALL_TARGETS, 1), 16);
    kp_prediction_deinit(&got);
    kp_model_free(m);
}

/* --- kept spaces ----------------------------------------------------------------------------
 */

enum { PROBLEMS = 150 }; /* more than are kept */

/* Problem i, on one of two devices or none. */
static kopt_status ask_number(const struct kp_model *m, size_t i, struct kp_prediction *out,
                              kopt_error *err)
{
    const struct kp_limits small = {.max_threads = 32};
    const struct kp_limits large = {.max_threads = 128};
    const struct kp_given given[] = {
        {"M", i % 5 ? kp_int(16 + (int64_t)(i % 37)) : kp_float(16.5 + (double)(i % 37))},
        {"N", kp_int(14 + (int64_t)(i % 50))},
        {"dtype", kp_string(i % 7 ? KP_STR("f32") : KP_STR("f16"))}};
    struct kp_predict_options o = {.k = 4};
    if (i % 3)
        o.limits = i % 3 == 1 ? &small : &large;
    return kp_model_predict(m, given, 3, &o, out, err);
}

/* The answers of a model that keeps spaces are those of one that does not, whatever came
 * before. */
static void test_kept_spaces(void **state)
{
    (void)state;
    struct kp_model *plain = small_model(&whole);
    struct kp_model *keeping = small_model(&whole);
    kopt_error err;
    size_t n_found = 0;
    assert_int_equal(kp_model_keep_spaces(keeping, &err), KOPT_OK);
    assert_int_equal(kp_model_keep_spaces(keeping, &err), KOPT_OK);
    for (size_t i = 0; i < 3 * PROBLEMS; i++) {
        /* Forwards, each twice, and all of them again. */
        size_t number = i < 2 * PROBLEMS ? i / 2 : i - 2 * PROBLEMS;
        struct kp_prediction want;
        struct kp_prediction got;
        kopt_error why = {0};
        kopt_status st = ask_number(plain, number, &want, &err);
        assert_int_equal(ask_number(keeping, number, &got, &why), st);
        if (st == KOPT_OK) {
            assert_same(want, got);
            n_found++;
        } else {
            assert_int_equal(st, KOPT_ENOTFOUND);
            assert_string_equal(why.message, err.message);
            assert_int_equal(why.line, err.line);
        }
    }
    assert_true(n_found > 2 * PROBLEMS && n_found < 3 * PROBLEMS);
    kp_model_free(plain);
    kp_model_free(keeping);
}

/* Fails the first allocation, then the second, and so on; returns how many there are when it
 * comes through, with what the attempts before have left. */
static long count_allocations(const struct kp_model *m, size_t number)
{
    struct kp_prediction got;
    kopt_error err = {0};
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    while (st == KOPT_ENOMEM && n < 10000) {
        kp_alloc_fail_at(++n);
        st = ask_number(m, number, &got, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || (!got.configs && !got.logp));
    }
    assert_int_equal(st, KOPT_OK);
    kp_prediction_deinit(&got);
    return n - 1;
}

static void test_a_kept_space_is_not_made_again(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    kopt_error err;
    assert_int_equal(kp_model_keep_spaces(m, &err), KOPT_OK);
    long first = count_allocations(m, 30);
    long again = count_allocations(m, 30);
    long other = count_allocations(m, 32);
    struct kp_prediction got;
    assert_true(first > again);
    assert_true(other > again);
    assert_int_equal(again, 0);
    /* It is among the last problems for as long as others are few. */
    for (size_t i = 34; i < 50; i++)
        if (ask_number(m, i, &got, &err) == KOPT_OK)
            kp_prediction_deinit(&got);
    assert_int_equal(count_allocations(m, 30), again);
    kp_model_free(m);
}

/* Nor does a new problem, where the rules leave what they left of another one. */
static void test_a_new_problem_of_a_known_kind_allocates_nothing(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_model *plain = small_model(&whole);
    kopt_error err;
    const struct kp_predict_options o = {.k = 3};
    assert_int_equal(kp_model_keep_spaces(m, &err), KOPT_OK);
    for (int64_t i = 0; i < 100; i++) {
        /* A number as a word, too. */
        const struct kp_given given[] = {
            {"M", kp_int(40 + i % 20)}, {"N", kp_int(300 + i)}, {"dtype", kp_int(i)}};
        struct kp_prediction want;
        struct kp_prediction got;
        kp_alloc_fail_at(i < 3 ? 0 : 1);
        kopt_status st = kp_model_predict(m, given, 3, &o, &got, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(st, KOPT_OK);
        assert_int_equal(kp_model_predict(plain, given, 3, &o, &want, &err), KOPT_OK);
        assert_same(want, got);
    }
    kp_model_free(m);
    kp_model_free(plain);
}

static void test_spaces_without_memory_or_rules(void **state)
{
    (void)state;
    struct small_plan plan = whole;
    struct kp_model *m = small_model(&whole);
    kopt_error err;
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    while (st == KOPT_ENOMEM && n < 1000) {
        kp_alloc_fail_at(++n);
        st = kp_model_keep_spaces(m, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK ? m->spaces != NULL : m->spaces == NULL);
    }
    assert_int_equal(st, KOPT_OK);
    assert_true(n > 2);
    kp_model_free(m);
    plan.rules = NULL;
    m = small_model(&plan);
    assert_int_equal(kp_model_keep_spaces(m, &err), KOPT_OK);
    assert_null(m->spaces);
    kp_model_free(m);
}

/* --- many at once ---------------------------------------------------------------------------
 */

struct asker {
    const struct kp_model *m;
    const struct kp_prediction *want;
    bool same;
};

static void *ask_often(void *user)
{
    struct asker *a = user;
    a->same = true;
    for (int i = 0; i < 20; i++) {
        struct kp_prediction got;
        kopt_error err;
        if (small_ask(a->m, 5, false, &got, &err) != KOPT_OK)
            a->same = false;
        else
            a->same &= got.n == a->want->n &&
                       memcmp(got.configs, a->want->configs,
                              got.n * SMALL_TARGETS * sizeof(*got.configs)) == 0 &&
                       memcmp(got.logp, a->want->logp, got.n * sizeof(*got.logp)) == 0;
        kp_prediction_deinit(&got);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction want;
    kopt_error err;
    pthread_t threads[4];
    struct asker askers[4];
    assert_int_equal(small_ask(m, 5, false, &want, &err), KOPT_OK);
    for (size_t i = 0; i < 4; i++) {
        askers[i] = (struct asker){m, &want, false};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &askers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(askers[i].same);
    }
    kp_prediction_deinit(&want);
    kp_model_free(m);
}

struct wanderer {
    const struct kp_model *m;
    const struct kp_prediction *want; /* by problem; n is 0: none */
    size_t start;
    bool same;
};

static void *ask_all_numbers(void *user)
{
    struct wanderer *w = user;
    w->same = true;
    for (size_t i = 0; i < PROBLEMS; i++) {
        size_t number = (w->start + i) % PROBLEMS;
        const struct kp_prediction *want = &w->want[number];
        struct kp_prediction got;
        kopt_error err;
        kopt_status st = ask_number(w->m, number, &got, &err);
        w->same &= (st == KOPT_OK) == (want->n > 0) && got.n == want->n;
        if (w->same && got.n > 0)
            w->same = memcmp(got.configs, want->configs,
                             got.n * SMALL_TARGETS * sizeof(*got.configs)) == 0;
        kp_prediction_deinit(&got);
    }
    return NULL;
}

/* Some ask the same at the same time, some at other times; spaces come and go. */
static void test_threads_share_kept_spaces(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction want[PROBLEMS];
    kopt_error err;
    pthread_t threads[6];
    struct wanderer w[6];
    for (size_t i = 0; i < PROBLEMS; i++)
        (void)ask_number(m, i, &want[i], &err);
    assert_int_equal(kp_model_keep_spaces(m, &err), KOPT_OK);
    for (size_t i = 0; i < 6; i++) {
        w[i] = (struct wanderer){m, want, i / 2 * 40, false};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all_numbers, &w[i]), 0);
    }
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(w[i].same);
    }
    for (size_t i = 0; i < PROBLEMS; i++)
        kp_prediction_deinit(&want[i]);
    kp_model_free(m);
}

static void test_every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct kp_model *m = small_model(&whole);
    struct kp_prediction got;
    kopt_error err;
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    while (st == KOPT_ENOMEM && n < 10000) {
        kp_alloc_fail_at(++n);
        st = small_ask(m, 5, false, &got, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || (!got.configs && !got.logp));
    }
    assert_int_equal(st, KOPT_OK);
    assert_true(n > 10);
    kp_prediction_deinit(&got);
    kp_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derived_fields),
        cmocka_unit_test(test_constrained),
        cmocka_unit_test(test_unconstrained),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_wrong_problems),
        cmocka_unit_test(test_wrong_numbers),
        cmocka_unit_test(test_other_ways_to_say_it),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_only_unknown_values),
        cmocka_unit_test(test_kernel_file),
        cmocka_unit_test(test_kept_spaces),
        cmocka_unit_test(test_a_kept_space_is_not_made_again),
        cmocka_unit_test(test_a_new_problem_of_a_known_kind_allocates_nothing),
        cmocka_unit_test(test_spaces_without_memory_or_rules),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_threads_share_kept_spaces),
        cmocka_unit_test(test_every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
