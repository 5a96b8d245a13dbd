/* SPDX-License-Identifier: MIT */
/* Rules files: what they may hold, problems of words and zeros, canonical forms. */
#include "base/alloc.h"
#include "space/kernel.h"
#include "support/test.h"

#include <math.h>

#define RULES                                           \
    "# rules of a solver\n"                             \
    "kernel S\n"                                        \
    "\n"                                                \
    "problem direction layout=\"NCHW\" pad=0 scale=1\n" \
    "param A {1, 2, 4}   # a comment\n"                 \
    "param B {1, 2, \\\n"                               \
    "         4, 8}\n"                                  \
    "default A=2\n"                                     \
    "let most = direction == \"B\" ? 4 : 8\n"           \
    "   # indented, with a backslash \\\n"              \
    "require A*B <= most + pad : \"no room\"\n"         \
    "canonical B = min(B, 2*scale)\n"

static struct kp_kernel *parse(const char *text)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    if (kp_kernel_parse("s.kopt", kp_str_from(text), &k, &err) != KOPT_OK)
        fail_msg("%d:%d: %s", err.line, err.column, err.message);
    return k;
}

static void assert_refused(const char *path, const char *text, int line, const char *message)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_kernel_parse(path, kp_str_from(text), &k, &err), KOPT_EINPUT);
    assert_null(k);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in '%s'", message, err.message);
    assert_int_equal(err.line, line);
}

static struct kp_bound *bind_texts(const struct kp_kernel *k, const char *const *texts,
                                   size_t n)
{
    struct kp_bound *b = NULL;
    kopt_error err = {0};
    if (kp_kernel_bind(k, texts, n, NULL, &b, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return b;
}

static struct kp_bound *bind_values(const struct kp_kernel *k, const struct kp_value *values)
{
    struct kp_bound *b = NULL;
    kopt_error err = {0};
    if (kp_kernel_bind_values(k, values, NULL, &b, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return b;
}

static void a_rules_file_is_the_directives_alone(void **state)
{
    (void)state;
    struct kp_kernel *k = parse(RULES);
    assert_true(k->rules_only);
    assert_string_equal(k->name, "S");
    assert_int_equal(k->n_problem, 4);
    assert_int_equal(k->n_params, 2);
    assert_int_equal(k->params[1].n_values, 4);
    assert_int_equal(k->params[1].line, 6);
    assert_int_equal(k->n_rules, 1);
    assert_int_equal(k->rules[0].line, 11);
    assert_string_equal(k->rules[0].message, "no room");
    assert_false(k->has_problem_default[0]);
    assert_int_equal(k->problem_default[1].type, KP_STRING);
    assert_int_equal(k->problem_default[2].as.i, 0);
    assert_int_equal(k->n_canonicals, 1);
    assert_int_equal(k->canonicals[0].param, 1);
    assert_null(k->block[0]);
    kp_kernel_free(k);
}

static void lines_may_end_in_any_way(void **state)
{
    (void)state;
    struct kp_kernel *k =
        parse("\xef\xbb\xbfkernel S\r\nparam A {1,\\\r\n 2}\r\n/* all */\r\nrequire A > 1");
    assert_int_equal(k->n_rules, 1);
    assert_int_equal(k->rules[0].line, 5);
    assert_int_equal(k->params[0].n_values, 2);
    kp_kernel_free(k);
}

static void what_is_about_a_launch_is_refused(void **state)
{
    (void)state;
    static const char *const words[] = {
        "block A",         "grid 1",   "shared 4",       "arg x f32[4]",       "lang cuda",
        "check x against", "flags -O", "metric m = 1.0", "reference r grid 1", "prefix P"};
    char text[200];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        (void)snprintf(text, sizeof(text), "kernel S\nparam A {1, 2}\n%s\n", words[i]);
        assert_refused("s.kopt", text, 3, "has no place in a rules file");
    }
    assert_refused("s.kopt", "kernel S\nparam A {1}\nnonsense\n", 3, "a directive expected");
    assert_refused("s.kopt", "#pragma kopt kernel S\n", 0, "no 'kernel' line");
    assert_refused("s.kopt", "kernel S\n", 0, "no 'param' line");
    assert_refused("s.kopt", "kernel S\nparam A {1}\nrequire A / * 2\n", 3, "");
    assert_refused("s.kopt", "kernel S\nparam A {1} /* no end\n", 2, "");
}

static void a_rules_file_cannot_be_measured(void **state)
{
    (void)state;
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    FILE *f = fopen("measure.kopt", "we");
    assert_non_null(f);
    assert_true(fputs(RULES, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(kp_kernel_load("measure.kopt", true, &k, &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "no kernel that could be measured"));
    assert_int_equal(kp_kernel_load("measure.kopt", false, &k, &err), KOPT_OK);
    kp_kernel_free(k);
}

static void canonical_lines_name_a_parameter_once(void **state)
{
    (void)state;
    assert_refused("s.kopt", "kernel S\nparam A {1}\ncanonical B = 1\n", 3,
                   "no parameter is named 'B'");
    assert_refused("s.kopt", "kernel S\nparam A {1}\ncanonical A = 1\ncanonical A = 2\n", 4,
                   "a second 'canonical' of A: the first is line 3");
    assert_refused("s.kopt", "kernel S\nparam A {1}\ncanonical A 1\n", 3, "'=' expected");
    assert_refused("s.kopt", "kernel S\nparam A {1}\ncanonical A = X\n", 3, "unknown name 'X'");
}

static void words_and_zeros_are_problems_there(void **state)
{
    (void)state;
    struct kp_buf json = KP_BUF_INIT(400);
    struct kp_kernel *k = parse(RULES);
    const char *const backward[] = {"direction=B"};
    const char *const forward[] = {"direction=F", "pad=-4", "scale=1.5"};
    struct kp_bound *b = bind_texts(k, backward, 1);
    assert_int_equal(kp_space_count(b->space), 3 + 2 + 1);
    kp_bound_problem_json(b, &json);
    assert_string_equal(kp_buf_text(&json),
                        "{\"direction\":\"B\",\"layout\":\"NCHW\",\"pad\":0,\"scale\":1}");
    kp_bound_free(b);
    b = bind_texts(k, forward, 3); /* 8 - 4 */
    assert_int_equal(kp_space_count(b->space), 3 + 2 + 1);
    kp_buf_clear(&json);
    kp_bound_problem_json(b, &json);
    assert_string_equal(kp_buf_text(&json),
                        "{\"direction\":\"F\",\"layout\":\"NCHW\",\"pad\":-4,\"scale\":1.5}");
    kp_bound_free(b);
    kp_kernel_free(k);
    kp_buf_deinit(&json);
}

static void texts_that_are_no_problem_are_refused(void **state)
{
    (void)state;
    struct kp_kernel *k = parse(RULES);
    struct kp_bound *b = NULL;
    kopt_error err = {0};
    const char *const empty[] = {"direction="};
    const char *const twice[] = {"direction=B", "direction=F"};
    assert_int_equal(kp_kernel_bind(k, empty, 1, NULL, &b, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.message, "direction= has no value"));
    assert_int_equal(kp_kernel_bind(k, twice, 2, NULL, &b, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.message, "given twice"));
    assert_int_equal(kp_kernel_bind(k, NULL, 0, NULL, &b, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.message, "missing: direction"));
    assert_null(b);
    kp_kernel_free(k);
}

static void kernel_files_keep_their_sizes(void **state)
{
    (void)state;
    struct kp_kernel *k = NULL;
    struct kp_bound *b = NULL;
    kopt_error err = {0};
    static const char text[] = "#pragma kopt kernel k\n#pragma kopt problem N\n"
                               "#pragma kopt param B {1, 2, 4}\n#pragma kopt block B\n"
                               "#pragma kopt grid 1\n#pragma kopt canonical B = min(B, N)\n";
    const char *const zero[] = {"N=0"};
    const char *const word[] = {"N=many"};
    const char *const two[] = {"N=2"};
    uint32_t config[1] = {2};
    struct kp_value out[1];
    assert_int_equal(kp_kernel_parse("k.cl", KP_STR(text), &k, &err), KOPT_OK);
    assert_int_equal(kp_kernel_bind(k, zero, 1, NULL, &b, &err), KOPT_EUSAGE);
    assert_int_equal(kp_kernel_bind(k, word, 1, NULL, &b, &err), KOPT_EUSAGE);
    b = bind_texts(k, two, 1);
    assert_int_equal(kp_bound_canonical(b, config, out, &err), KOPT_OK);
    assert_int_equal(out[0].as.i, 2);
    kp_bound_free(b);
    kp_kernel_free(k);
    assert_refused("k.cl", "#pragma kopt kernel k\n#pragma kopt problem N=0\n", 2,
                   "an integer of at least 1");
}

static void values_are_bound_without_texts(void **state)
{
    (void)state;
    struct kp_kernel *k = parse(RULES);
    char word[] = "B";
    struct kp_value v[4] = {kp_string(kp_str_from(word)), kp_string(KP_STR("NHWC")), kp_int(0),
                            kp_int(1)};
    struct kp_bound *b = bind_values(k, v);
    word[0] = 'F'; /* it has its own copy */
    assert_int_equal(kp_space_count(b->space), 6);
    assert_int_equal(b->problem[0].as.s.ptr[0], 'B');
    kp_bound_free(b);
    word[0] = 'B';
    v[2] = kp_int(-3);
    v[3] = kp_float(0.5);
    b = bind_values(k, v);
    assert_int_equal(kp_space_count(b->space), 1); /* A*B <= 1 */
    kp_bound_free(b);
    v[3] = kp_float((double)NAN);
    kopt_error err = {0};
    b = NULL;
    assert_int_equal(kp_kernel_bind_values(k, v, NULL, &b, &err), KOPT_EUSAGE);
    assert_non_null(strstr(err.message, "scale is not a finite number"));
    assert_null(b);
    kp_kernel_free(k);
}

static void canonical_forms_take_the_expressions_values(void **state)
{
    (void)state;
    kopt_error err = {0};
    struct kp_value out[3];
    struct kp_kernel *k = parse("kernel S\nproblem P\nparam A {1, 2, 4} B {1, 2, 4} C {0, 1}\n"
                                "canonical A = min(A, P)\n"
                                "canonical B = A*B // C\n" /* C = 0: as it is */
                                "canonical C = \"word\"\n");
    const char *const problem[] = {"P=2"};
    struct kp_bound *b = bind_texts(k, problem, 1);
    const uint32_t zero[3] = {2, 1, 0};
    const uint32_t one[3] = {2, 1, 1};
    assert_int_equal(kp_bound_canonical(b, zero, out, &err), KOPT_OK);
    assert_int_equal(out[0].as.i, 2);
    assert_int_equal(out[1].as.i, 2);
    assert_int_equal(out[2].as.i, 0);
    assert_int_equal(kp_bound_canonical(b, one, out, &err), KOPT_OK);
    assert_int_equal(out[0].as.i, 2);
    assert_int_equal(out[1].as.i, 8); /* of the configuration, not of canonical values */
    assert_int_equal(out[2].as.i, 1);
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct kp_kernel *k = parse(RULES);
    const struct kp_value v[4] = {kp_string(KP_STR("B")), kp_string(KP_STR("NCHW")), kp_int(0),
                                  kp_int(1)};
    const uint32_t config[2] = {0, 0};
    struct kp_value out[2];
    kopt_status st = KOPT_ENOMEM;
    long n = 0;
    while (st == KOPT_ENOMEM && n < 5000) {
        struct kp_bound *b = NULL;
        kopt_error err = {0};
        kp_alloc_fail_at(++n);
        st = kp_kernel_bind_values(k, v, NULL, &b, &err);
        if (st == KOPT_OK)
            st = kp_bound_canonical(b, config, out, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || err.message[0]);
        kp_bound_free(b);
    }
    assert_int_equal(st, KOPT_OK);
    assert_true(n > 5);
    kp_kernel_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rules_file_is_the_directives_alone),
        cmocka_unit_test(lines_may_end_in_any_way),
        cmocka_unit_test(what_is_about_a_launch_is_refused),
        cmocka_unit_test(a_rules_file_cannot_be_measured),
        cmocka_unit_test(canonical_lines_name_a_parameter_once),
        cmocka_unit_test(words_and_zeros_are_problems_there),
        cmocka_unit_test(texts_that_are_no_problem_are_refused),
        cmocka_unit_test(kernel_files_keep_their_sizes),
        cmocka_unit_test(values_are_bound_without_texts),
        cmocka_unit_test(canonical_forms_take_the_expressions_values),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
