/* SPDX-License-Identifier: MIT */
/* AMD's models: a tiny one of our own (tests/data/ktn/make.py has computed what is expected),
 * and theirs where KOPT_DATA_DIR has them. */
#include "support/test.h"

#include "base/alloc.h"
#include "model/ktn.h"
#include "os/file.h"

#include <math.h>

enum { N_FILES = 3, TOKENS = 10, P = 3, INPUTS = 64 };
enum { ENCODER, DECODER, METADATA };
static const char *const file_names[N_FILES] = {"encoder", "decoder", "metadata"};

/* Configurations are of at most 18. */
enum { CONFIGS = 18 };
static const char rules[] = "kernel tiny\n"
                            "problem N=1\n"
                            "param a {1,2,4}\n"
                            "param b {1,2}\n"
                            "param c {8,16,32}\n"
                            "require a*b*c <= 32\n";

struct fixture {
    struct kp_buf texts[N_FILES];
    struct kp_ktn *ktn;
    struct kp_kernel *kernel;
    struct kp_bound *bound;
};

static void path_to(char *path, size_t n, const char *name)
{
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, n, "%s/tests/data/ktn/%s", root ? root : ".", name);
}

static kopt_status parse(const struct kp_str *texts, struct kp_ktn **out, kopt_error *err)
{
    struct kp_ktn_source s[N_FILES];
    for (int i = 0; i < N_FILES; i++)
        s[i] = (struct kp_ktn_source){file_names[i], texts[i]};
    return kp_ktn_parse(&s[ENCODER], &s[DECODER], &s[METADATA], out, err);
}

static int set_up(void **state)
{
    static struct fixture f;
    char path[1024];
    char name[64];
    kopt_error err;
    const int64_t one = 1;
    f = (struct fixture){0};
    for (int i = 0; i < N_FILES; i++) {
        (void)snprintf(name, sizeof(name), "tiny_%s.ktn.model", file_names[i]);
        path_to(path, sizeof(path), name);
        f.texts[i] = KP_BUF_INIT(1 << 20);
        assert_int_equal(kp_file_read(path, &f.texts[i], &err), KOPT_OK);
    }
    path_to(path, sizeof(path), "tiny");
    assert_int_equal(kp_ktn_load(path, &f.ktn, &err), KOPT_OK);
    assert_int_equal(kp_kernel_parse("tiny.kopt", KP_STR(rules), &f.kernel, &err), KOPT_OK);
    const struct kp_value problem = kp_int(one);
    assert_int_equal(kp_kernel_bind_values(f.kernel, &problem, NULL, &f.bound, &err), KOPT_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < N_FILES; i++)
        kp_buf_deinit(&f->texts[i]);
    kp_ktn_free(f->ktn);
    kp_bound_free(f->bound);
    kp_kernel_free(f->kernel);
    return 0;
}

static void divide(const struct fixture *f)
{
    kopt_error err;
    assert_int_equal(kp_ktn_divide(f->ktn, f->kernel->params, P, &err), KOPT_OK);
}

enum { FORWARD, BACKWARD, N_PROBLEMS };
static const struct kp_given problems[N_PROBLEMS][8] = {
    {{"data_type", {KP_STRING, {.s = {"FP32", 4}}}},
     {"direction", {KP_STRING, {.s = {"F", 1}}}},
     {"in_channels", {KP_INT, {.i = 64}}},
     {"out_channels", {KP_INT, {.i = 256}}},
     {"in_h", {KP_INT, {.i = 14}}},
     {"in_w", {KP_INT, {.i = 28}}},
     {"batchsize", {KP_INT, {.i = 32}}},
     {"layout", {KP_STRING, {.s = {"NCHW", 4}}}}},
    {{"in_channels", {KP_INT, {.i = 8}}},
     {"out_channels", {KP_INT, {.i = 512}}},
     {"in_h", {KP_INT, {.i = 7}}},
     {"in_w", {KP_FLOAT, {.f = 7}}},
     {"batchsize", {KP_INT, {.i = 4}}},
     {"data_type", {KP_STRING, {.s = {"FP16", 4}}}},
     {"direction", {KP_STRING, {.s = {"B", 1}}}},
     {"bias", {KP_INT, {.i = 0}}}}};

static void features(const struct fixture *f, int which, float *x)
{
    kopt_error err;
    assert_int_equal(kp_ktn_features(f->ktn, problems[which], 8, x, &err), KOPT_OK);
}

static void assert_near(double got, double want)
{
    /* Sums of tens of products in float, against those in double. */
    if (!(fabs(got - want) <= 1e-5)) {
        print_error("%.9f is not %.9f\n", got, want);
        fail();
    }
}

/* ---- what is right ---- */

static void sizes_are_those_of_the_files(void **state)
{
    const struct fixture *f = *state;
    /* dense 8x2; LSTMs (2, 3, 1) x 12 and (3, 2, 1) x 8 in the encoder, the same in the
     * decoder; embedding 10x2; dense 2x10 and 10. */
    assert_int_equal(kp_ktn_n_params(f->ktn), 16 + 2 * (72 + 48) + 20 + 20 + 10);
    assert_int_equal(kp_ktn_n_inputs(f->ktn), INPUTS);
    assert_int_equal(kp_ktn_n_tokens(f->ktn), TOKENS);
    assert_int_equal(kp_ktn_n_positions(f->ktn), P);
}

static void the_files_tests_agree(void **state)
{
    const struct fixture *f = *state;
    kopt_error err;
    double worst = -1;
    assert_int_equal(kp_ktn_self_test(f->ktn, &worst, &err), KOPT_OK);
    assert_true(worst > 0 && worst < 1e-6); /* some roundings of values below 3 */
}

static void features_stand_on_the_diagonal(void **state)
{
    static const float want[N_PROBLEMS][8] = {{2, 1, 0, 64, 256, 14, 28, 32},
                                              {1, 0, 1, 512, 8, 7, 7, 4}};
    const struct fixture *f = *state;
    float x[INPUTS];
    for (int which = 0; which < N_PROBLEMS; which++) {
        features(f, which, x);
        for (int i = 0; i < INPUTS; i++)
            assert_true(x[i] == (i % 9 ? 0 : want[which][i / 9]));
    }
}

static void a_problem_with_a_hole_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct kp_given given[7];
    float x[INPUTS];
    kopt_error err;
    for (int hole = 0; hole < 7; hole++) {
        int n = 0;
        for (int i = 0; i < 7; i++)
            if (i != hole)
                given[n++] = problems[FORWARD][i];
        assert_int_equal(kp_ktn_features(f->ktn, given, 6, x, &err), KOPT_EUSAGE);
        assert_non_null(strstr(err.message, problems[FORWARD][hole].name));
        /* A word where a number should be, a number in the place of a word, a stranger. */
        given[n] = problems[FORWARD][hole];
        given[n].value = hole < 2 ? kp_int(1) : kp_string(KP_STR("7"));
        assert_int_equal(kp_ktn_features(f->ktn, given, 7, x, &err), KOPT_EUSAGE);
        given[n].value = hole < 2 ? kp_string(KP_STR("W")) : kp_float((double)NAN);
        assert_int_equal(kp_ktn_features(f->ktn, given, 7, x, &err), KOPT_EUSAGE);
        given[n].value = hole < 2 ? kp_string(KP_STR("")) : kp_int(-1);
        assert_int_equal(kp_ktn_features(f->ktn, given, 7, x, &err), KOPT_EUSAGE);
    }
}

static void tokens_are_given_to_positions(void **state)
{
    static const int64_t want[P][3] = {{2, 1, 4}, {2, 1}, {16, 8, 32}};
    static const uint32_t n[P] = {3, 2, 3};
    const struct fixture *f = *state;
    divide(f);
    const struct kp_net *net = kp_ktn_net(f->ktn);
    assert_int_equal(net->shape.n_targets, P);
    for (size_t p = 0; p < P; p++) {
        assert_int_equal(net->shape.n_values[p], n[p]);
        for (uint32_t v = 0; v < n[p]; v++)
            assert_int_equal(kp_ktn_value(f->ktn, p, v), want[p][v]);
    }
}

static void lists_that_do_not_fit_are_refused(void **state)
{
    static const char *const texts[] = {
        /* 2 1 4 2 1 16 8 32 */
        "param a {1,2,4}\nparam b {1,2}\nparam c {8,16}\n",        /* 32 has no place */
        "param a {1,2}\nparam b {1,2}\nparam c {8,16,32}\n",       /* nor has 4 */
        "param a {1,2}\nparam b {1,2,4}\nparam c {2,1,8,16,32}\n", /* 2 1 | 4, or 4 2 1, | .. */
        "param a {1,2,4}\nparam b {1,2}\n",                        /* another number */
        "param a {\"1\",\"2\"}\nparam b {1,2}\nparam c {8,16,32}\n" /* words */
    };
    static const char *const messages[] = {"no way", "no way", "more than one way", "not 2",
                                           "no way"};
    const struct fixture *f = *state;
    kopt_error err;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char text[256];
        struct kp_kernel *k;
        int64_t values[P];
        double logp;
        size_t found = 9;
        float x[INPUTS] = {0};
        const struct kp_ktn_ask ask = {.x = x, .width = 1, .n = 1};
        int n = snprintf(text, sizeof(text), "kernel t\nproblem N=1\n%s", texts[i]);
        assert_int_equal(kp_kernel_parse("t.kopt", (struct kp_str){text, (size_t)n}, &k, &err),
                         KOPT_OK);
        assert_int_equal(kp_ktn_divide(f->ktn, k->params, k->n_params, &err), KOPT_EINPUT);
        assert_non_null(strstr(err.message, messages[i]));
        assert_int_equal(kp_ktn_predict(f->ktn, &ask, values, &logp, &found, &err),
                         KOPT_EUSAGE);
        assert_int_equal(found, 0);
        kp_kernel_free(k);
    }
}

/* All 18 configurations: the likeliest are make.py's, and together they have all there is. */
static void the_whole_beam_has_every_configuration(void **state)
{
    static const int64_t want[N_PROBLEMS][4][P] = {
        {{1, 1, 8}, {1, 2, 8}, {2, 1, 8}, {4, 1, 8}},
        {{1, 1, 8}, {2, 1, 8}, {1, 2, 8}, {4, 1, 8}}};
    static const double want_logp[N_PROBLEMS][4] = {
        {-2.395297162, -2.529710520, -2.600136955, -2.633896517},
        {-2.374031253, -2.563399227, -2.567534891, -2.630364987}};
    const struct fixture *f = *state;
    kopt_error err;
    divide(f);
    for (int which = 0; which < N_PROBLEMS; which++) {
        float x[INPUTS];
        int64_t values[CONFIGS][P];
        double logp[CONFIGS];
        double total = 0;
        size_t n = 0;
        const struct kp_ktn_ask ask = {.x = x, .width = 20, .n = CONFIGS};
        features(f, which, x);
        assert_int_equal(kp_ktn_predict(f->ktn, &ask, values[0], logp, &n, &err), KOPT_OK);
        assert_int_equal(n, CONFIGS);
        for (size_t i = 0; i < n; i++)
            total += exp(logp[i]);
        assert_near(total, 1);
        for (size_t i = 0; i < 4; i++) {
            assert_near(logp[i], want_logp[which][i]);
            assert_memory_equal(values[i], want[which][i], sizeof(values[i]));
        }
    }
}

static void under_rules_all_that_is_valid_comes_out(void **state)
{
    const struct fixture *f = *state;
    float x[INPUTS];
    int64_t values[CONFIGS][P];
    double logp[CONFIGS];
    size_t n = 0;
    kopt_error err;
    const struct kp_ktn_ask ask = {
        .x = x, .space = f->bound->space, .width = CONFIGS, .n = CONFIGS};
    divide(f);
    features(f, FORWARD, x);
    assert_int_equal(kp_ktn_predict(f->ktn, &ask, values[0], logp, &n, &err), KOPT_OK);
    assert_int_equal(n, kp_space_count(f->bound->space));
    for (size_t i = 0; i < n; i++) {
        assert_true(values[i][0] * values[i][1] * values[i][2] <= 32);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(values[i], values[j], sizeof(values[i]));
    }
}

static void asking_for_nonsense_is_refused(void **state)
{
    const struct fixture *f = *state;
    float x[INPUTS] = {0};
    int64_t values[P];
    double logp;
    size_t n = 9;
    kopt_error err;
    struct kp_kernel *k;
    struct kp_bound *b;
    const struct kp_value one = kp_int(1);
    struct kp_ktn_ask ask = {.x = x, .width = 1, .n = 2};
    divide(f);
    assert_int_equal(kp_ktn_predict(f->ktn, &ask, values, &logp, &n, &err), KOPT_EUSAGE);
    ask.n = 0;
    assert_int_equal(kp_ktn_predict(f->ktn, &ask, values, &logp, &n, &err), KOPT_EUSAGE);
    ask = (struct kp_ktn_ask){.x = x, .width = KP_BEAM_WIDTH_MAX + 1, .n = 1};
    assert_int_equal(kp_ktn_predict(f->ktn, &ask, values, &logp, &n, &err), KOPT_EUSAGE);
    assert_int_equal(
        kp_kernel_parse("t.kopt", KP_STR("kernel t\nproblem N=1\nparam a {1,2}\n"), &k, &err),
        KOPT_OK);
    assert_int_equal(kp_kernel_bind_values(k, &one, NULL, &b, &err), KOPT_OK);
    ask = (struct kp_ktn_ask){.x = x, .space = b->space, .width = 1, .n = 1};
    assert_int_equal(kp_ktn_predict(f->ktn, &ask, values, &logp, &n, &err), KOPT_EUSAGE);
    assert_int_equal(n, 0);
    kp_bound_free(b);
    kp_kernel_free(k);
}

/* ---- MIOpen's way ---- */

struct prefix_rule {
    int64_t least[P]; /* of each value */
    size_t asked;
};

static bool at_least(void *user, const int64_t *values, size_t n)
{
    struct prefix_rule *r = user;
    r->asked++;
    return values[n - 1] >= r->least[n - 1];
}

static void greedy_takes_the_best_token_that_may_follow(void **state)
{
    const struct fixture *f = *state;
    float x[INPUTS];
    int64_t values[P];
    size_t n = 0;
    kopt_error err;
    static const int64_t free_way[P] = {1, 1, 1}; /* make.py's */
    features(f, FORWARD, x);
    assert_int_equal(kp_ktn_greedy(f->ktn, x, NULL, values, &n, &err), KOPT_OK);
    assert_int_equal(n, P);
    assert_memory_equal(values, free_way, sizeof(values));

    struct prefix_rule r = {{1, 1, 1}, 0};
    struct kp_ktn_prefix prefix = {at_least, &r};
    assert_int_equal(kp_ktn_greedy(f->ktn, x, &prefix, values, &n, &err), KOPT_OK);
    assert_int_equal(r.asked, P);
    assert_memory_equal(values, free_way, sizeof(values));

    r = (struct prefix_rule){{1, 1, 2}, 0};
    assert_int_equal(kp_ktn_greedy(f->ktn, x, &prefix, values, &n, &err), KOPT_OK);
    assert_true(r.asked > P);
    assert_int_equal(values[0], 1);
    assert_int_equal(values[1], 1);
    assert_true(n < P || values[2] >= 2);
}

static void greedy_gives_up_where_nothing_may_follow(void **state)
{
    const struct fixture *f = *state;
    float x[INPUTS];
    int64_t values[P];
    size_t n = 9;
    kopt_error err;
    struct prefix_rule r = {{1, 64, 1}, 0};
    const struct kp_ktn_prefix prefix = {at_least, &r};
    features(f, FORWARD, x);
    assert_int_equal(kp_ktn_greedy(f->ktn, x, &prefix, values, &n, &err), KOPT_OK);
    assert_int_equal(n, 1);
    assert_in_range(r.asked, 2, 1 + TOKENS - 2);
}

/* ---- what is wrong ---- */

/* A text with the first `find` behind the first `after` in place of `put`. */
static struct kp_str edited(struct kp_str text, const char *after, const char *find,
                            const char *put, char *out, size_t max)
{
    const char *at = strstr(text.ptr, after);
    assert_non_null(at);
    at = strstr(at, find);
    assert_non_null(at);
    size_t before = (size_t)(at - text.ptr);
    int n = snprintf(out, max, "%.*s%s%s", (int)before, text.ptr, put, at + strlen(find));
    assert_in_range(n, 1, max - 1);
    return (struct kp_str){out, (size_t)n};
}

static void texts_of(const struct fixture *f, struct kp_str *texts)
{
    for (int i = 0; i < N_FILES; i++)
        texts[i] = (struct kp_str){kp_buf_text(&f->texts[i]), f->texts[i].len};
}

struct flaw {
    int file;
    const char *after;
    const char *find;
    const char *put;
    kopt_status status;
    const char *message;
};

static const struct flaw flaws[] = {
    {ENCODER, "\"architecture\"", "\"architecture\"", "\"architectura\"", KOPT_EINPUT,
     "architecture"},
    {ENCODER, "\"layers\"", "\"layers\"", "\"layer\"", KOPT_EINPUT, "layers"},
    {ENCODER, "", "[null, 8, 8]", "[null, 8]", KOPT_EINPUT, "dimensions"},
    {ENCODER, "", "[null, 8, 8]", "[null, 8, 0]", KOPT_ERANGE, "size"},
    {ENCODER, "", "[null, 8, 8]", "[null, 5000, 8]", KOPT_ERANGE, "size"},
    {ENCODER, "", "[null, 8, 8]", "[null, 8, 9]", KOPT_EINPUT, "'weights' of 'dense'"},
    {ENCODER, "", "[null, 8, 8]", "[null, 4000, 8]", KOPT_EINPUT, "test"},
    {ENCODER, "", "\"units\": 2", "\"units\": 4096", KOPT_EINPUT, "more numbers"},
    {ENCODER, "", "\"units\": 2", "\"units\": -1", KOPT_ERANGE, "units"},
    {ENCODER, "", "\"units\": 2", "\"units\": \"2\"", KOPT_EINPUT, "units"},
    {ENCODER, "\"LSTM\"", "\"units\": 3", "\"units\": 4", KOPT_EINPUT, "LSTM"},
    {ENCODER, "", "\"linear\"", "\"relu\"", KOPT_EINPUT, "linear"},
    {ENCODER, "", "\"tanh\"", "\"relu\"", KOPT_EINPUT, "another kind"},
    {ENCODER, "", "\"sigmoid\"", "\"hard_sigmoid\"", KOPT_EINPUT, "another kind"},
    {ENCODER, "", "\"go_backwards\": false", "\"go_backwards\": true", KOPT_EINPUT, "another"},
    {ENCODER, "", "\"LSTM\"", "\"GRU\"", KOPT_EINPUT, "no place"},
    {ENCODER, "\"inbound_nodes\": [[[\"dense\"", "[\"dense\"", "[\"lstm_1\"", KOPT_EINPUT,
     "go on"},
    {ENCODER, "\"output_layers\"", "[\"lstm\", 0, 2]", "[\"lstm\", 0, 1]", KOPT_EINPUT,
     "outputs"},
    {ENCODER, "\"trainable_params\"", "\"lstm\"", "\"lstm_x\"", KOPT_EINPUT,
     "'weights' of 'lstm' is missing"},
    {ENCODER, "\"trainable_params\"", "\"recurrent_weights\": [", "\"recurrent_weights\": [3,",
     KOPT_EINPUT, "base64"},
    {ENCODER, "\"trainable_params\"", "\"bias\": [", "\"bias\": [\"AAAA\",", KOPT_EINPUT,
     "'bias' of 'lstm'"},
    {ENCODER, "\"trainable_params\"", "\"weights\": [\"", "\"weights\": [\"!", KOPT_EINPUT,
     "base64"},
    {ENCODER, "\"tests\"", "\"outputs\"", "\"output\"", KOPT_EINPUT, "test"},
    {DECODER, "", "\"Embedding\"", "\"Dense\"", KOPT_EINPUT, "no place"},
    {DECODER, "", "\"mask_zero\": false", "\"mask_zero\": true", KOPT_EINPUT, "masks"},
    {DECODER, "", "\"input_dim\": 10", "\"input_dim\": 11", KOPT_EINPUT, "as many tokens"},
    {DECODER, "\"dense_1\"", "\"units\": 10", "\"units\": 1", KOPT_EINPUT, "tokens"},
    {DECODER, "", "[null, 3]", "[null, 4]", KOPT_EINPUT, "size of its LSTM"},
    {DECODER, "", "[null, 1]", "[null, 2]", KOPT_EINPUT, "one token"},
    {DECODER, "\"inbound_nodes\": [[[\"embedding\"", "[\"input_3\"", "[\"input_4\"",
     KOPT_EINPUT, "states"},
    {DECODER, "\"output_layers\"", "[\"dense_1\", 0, 0]", "[\"lstm_2\", 0, 0]", KOPT_EINPUT,
     "first output"},
    {DECODER, "\"tests\"", "\"AADgQA==\"", "\"AAAgQQ==\"", KOPT_EINPUT, "token"}, /* 10 */
    {METADATA, "", "\"predict_type\": 0", "\"predict_type\": 1", KOPT_EINPUT, "predict_type"},
    {METADATA, "", "\"bwd\": 3", "\"bwd\": 4", KOPT_EINPUT, "num_tuning_params"},
    {METADATA, "", "\"fwd\": 3", "\"fwd\": \"3\"", KOPT_EINPUT, "num_tuning_params"},
    {METADATA, "", "\"5\": \"1\"", "\"5\": \"one\"", KOPT_EINPUT, "token 5"},
    {METADATA, "", "\"9\": \"-1\"", "\"10\": \"-1\"", KOPT_EINPUT, "token 9"},
    {METADATA, "", "\"9\": \"-1\"", "\"9\": \"-1\", \"10\": \"1\"", KOPT_EINPUT, "11 values"},
};

static void flaws_are_told(void **state)
{
    const struct fixture *f = *state;
    static char memory[1 << 14];
    for (size_t i = 0; i < sizeof(flaws) / sizeof(*flaws); i++) {
        const struct flaw *w = &flaws[i];
        struct kp_str texts[N_FILES];
        struct kp_ktn *k = NULL;
        kopt_error err = {0};
        texts_of(f, texts);
        texts[w->file] =
            edited(texts[w->file], w->after, w->find, w->put, memory, sizeof(memory));
        kopt_status st = parse(texts, &k, &err);
        if (st != w->status || !strstr(err.message, w->message) || k)
            fail_msg("flaw %zu: status %d, '%s'", i, (int)st, err.message);
    }
}

/* Bytes of a float: an infinity in the embedding, and a sign in the tests' outputs. */
static void numbers_that_are_none_and_numbers_that_are_wrong(void **state)
{
    const struct fixture *f = *state;
    static char memory[1 << 14];
    struct kp_str texts[N_FILES];
    struct kp_ktn *k = NULL;
    kopt_error err = {0};
    char first[] = "\"embedding\": {\"weights\": [\"";
    texts_of(f, texts);
    const char *at = strstr(texts[DECODER].ptr, first);
    assert_non_null(at);
    size_t offset = (size_t)(at - texts[DECODER].ptr) + strlen(first);
    memcpy(memory, texts[DECODER].ptr, texts[DECODER].len);
    memcpy(memory + offset, "AACAfwAA", 8); /* 00 00 80 7f: infinity; 00 00 .. */
    texts[DECODER].ptr = memory;
    assert_int_equal(parse(texts, &k, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "not finite"));
    assert_null(k);

    memcpy(memory + offset, "AACAPwAA", 8); /* 1 */
    assert_int_equal(parse(texts, &k, &err), KOPT_OK);
    double worst = 0;
    assert_int_equal(kp_ktn_self_test(k, &worst, &err), KOPT_OK); /* token 0 is not tested */
    kp_ktn_free(k);

    texts_of(f, texts);
    texts[ENCODER] = edited(texts[ENCODER], "\"trainable_params\": {\"dense\"", "[\"",
                            "[\"AACAPwAA", memory, sizeof(memory));
    /* The text is longer now by two numbers: cut them. */
    char *end = strstr(memory, "\"trainable_params\": {\"dense\"");
    end = strchr(strstr(end, "[\""), 'A') + 8;
    memmove(end, end + 8, strlen(end + 8) + 1);
    texts[ENCODER].len = strlen(memory);
    assert_int_equal(parse(texts, &k, &err), KOPT_OK);
    assert_int_equal(kp_ktn_self_test(k, &worst, &err), KOPT_EINPUT);
    assert_true(worst > 1e-3);
    assert_non_null(strstr(err.message, "encoder"));
    kp_ktn_free(k);
}

static void without_tests_there_is_no_self_test(void **state)
{
    const struct fixture *f = *state;
    static char memory[1 << 14];
    struct kp_str texts[N_FILES];
    struct kp_ktn *k = NULL;
    double worst;
    kopt_error err = {0};
    texts_of(f, texts);
    texts[DECODER] =
        edited(texts[DECODER], "", "\"tests\"", "\"test\"", memory, sizeof(memory));
    assert_int_equal(parse(texts, &k, &err), KOPT_OK);
    assert_int_equal(kp_ktn_self_test(k, &worst, &err), KOPT_EINPUT);
    kp_ktn_free(k);
}

/* Every seventh prefix. The last bytes of a file are a brace and a newline. */
static void cut_files_are_refused(void **state)
{
    const struct fixture *f = *state;
    for (int file = 0; file < N_FILES; file++)
        for (size_t n = 0; n + 2 <= f->texts[file].len; n += 7) {
            struct kp_str texts[N_FILES];
            struct kp_ktn *k = NULL;
            kopt_error err = {0};
            texts_of(f, texts);
            texts[file].len = n;
            assert_int_equal(parse(texts, &k, &err), KOPT_EINPUT);
            assert_null(k);
        }
}

static void a_missing_file_is_named(void **state)
{
    struct kp_ktn *k = NULL;
    kopt_error err = {0};
    (void)state;
    assert_int_equal(kp_ktn_load("nowhere", &k, &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "nowhere_encoder.ktn.model"));
    assert_null(k);
}

/* Reads, divides, predicts both ways and tests itself. */
static kopt_status all_of_it(const struct fixture *f, kopt_error *err)
{
    struct kp_str texts[N_FILES];
    struct kp_ktn *k = NULL;
    float x[INPUTS] = {0};
    int64_t values[2 * P];
    double logp[2];
    double worst;
    size_t n;
    const struct kp_ktn_ask ask = {.x = x, .space = f->bound->space, .width = 2, .n = 2};
    texts_of(f, texts);
    kopt_status st = parse(texts, &k, err);
    if (st == KOPT_OK)
        st = kp_ktn_self_test(k, &worst, err);
    if (st == KOPT_OK)
        st = kp_ktn_divide(k, f->kernel->params, P, err);
    if (st == KOPT_OK)
        st = kp_ktn_predict(k, &ask, values, logp, &n, err);
    if (st == KOPT_OK)
        st = kp_ktn_greedy(k, x, NULL, values, &n, err);
    kp_ktn_free(k);
    return st;
}

static void every_failing_allocation_is_clean(void **state)
{
    const struct fixture *f = *state;
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    while (st != KOPT_OK) {
        kopt_error err = {0};
        kp_alloc_fail_at(++n);
        st = all_of_it(f, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || (st == KOPT_ENOMEM && err.message[0]));
        assert_true(n < 1000);
    }
    assert_true(n > 30);
}

/* ---- AMD's own ---- */

static void the_published_model_passes_its_tests(void **state)
{
    const char *data = getenv("KOPT_DATA_DIR");
    char path[1024];
    struct kp_ktn *k = NULL;
    double worst = 1;
    kopt_error err = {0};
    (void)state;
    if (!data) {
        print_message("KOPT_DATA_DIR names no folder with AMD's models\n");
        skip();
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/miopen/gfx908_ConvAsm1x1U", data);
    if (kp_ktn_load(path, &k, &err) == KOPT_EIO) {
        (void)snprintf(path, sizeof(path), "%s/gfx908_ConvAsm1x1U", data);
        assert_int_equal(kp_ktn_load(path, &k, &err), KOPT_OK);
    }
    assert_int_equal(kp_ktn_n_params(k), 421206);
    assert_int_equal(kp_ktn_self_test(k, &worst, &err), KOPT_OK);
    assert_true(worst < 1e-5);
    kp_ktn_free(k);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sizes_are_those_of_the_files),
        TEST(the_files_tests_agree),
        TEST(features_stand_on_the_diagonal),
        TEST(a_problem_with_a_hole_is_refused),
        TEST(tokens_are_given_to_positions),
        TEST(lists_that_do_not_fit_are_refused),
        TEST(the_whole_beam_has_every_configuration),
        TEST(under_rules_all_that_is_valid_comes_out),
        TEST(asking_for_nonsense_is_refused),
        TEST(greedy_takes_the_best_token_that_may_follow),
        TEST(greedy_gives_up_where_nothing_may_follow),
        TEST(flaws_are_told),
        TEST(numbers_that_are_none_and_numbers_that_are_wrong),
        TEST(without_tests_there_is_no_self_test),
        TEST(cut_files_are_refused),
        TEST(a_missing_file_is_named),
        TEST(every_failing_allocation_is_clean),
        TEST(the_published_model_passes_its_tests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
