/* SPDX-License-Identifier: MIT */
/* What is said of a result. */
#include "cli/results.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static void compile_errors_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *log;
        const char *want;
    } cases[] = {
        {"m.cl:16:28: error: no such name\n   x\n", "m.cl:16:28: no such name"},
        {"error: m.cl:16:28: no such name", "m.cl:16:28: no such name"},
        {"note\nwarning: x\n  error: /a b/m.cl:16: no such name\n",
         "/a b/m.cl:16: no such name"},
        {"m.cl:3:1: fatal error: no such name", "m.cl:3:1: no such name"},
        {"m.cu(12): error: no such name", "m.cu(12): no such name"},
        {"no such name", "no such name"},
        {"error: no such name", "no such name"},
        {"error:no such name", "no such name"},
        {"16: no such name", "no such name"},
        {"(3): no such name", "no such name"},
        {"m.cl: no such name", "no such name"},
        {"something else", "no such name"},
        {"", "no such name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kopt_result r = {
            .outcome = KOPT_OUT_COMPILE_ERROR, .message = "no such name", .log = cases[i].log};
        char *text = cli_message(&r);
        assert_string_equal(text, cases[i].want);
        free(text);
        r.outcome = KOPT_OUT_CRASH; /* its log is no compiler's */
        text = cli_message(&r);
        assert_string_equal(text, "no such name");
        free(text);
    }
    char *none = cli_message(&(kopt_result){.outcome = KOPT_OUT_COMPILE_ERROR});
    assert_string_equal(none, "");
    free(none);
}

static void one_launch_has_no_interval(void **state)
{
    (void)state;
    struct cli_term term = {.utf8 = true};
    char text[CLI_NUM];
    kopt_result r = {.median_ns = 100, .low_ns = 100, .high_ns = 100, .n_times = 1};
    assert_string_equal(cli_spread(&term, &r, text), "one launch");
    r.n_times = 7;
    r.high_ns = 110;
    assert_string_equal(cli_spread(&term, &r, text), "±5.0 %");
    r.low_ns = r.high_ns = (double)NAN;
    assert_string_equal(cli_spread(&term, &r, text), "");
}

static void parameters_stand_in_the_order_they_were_declared_in(void **state)
{
    (void)state;
    static const char config[] = "{\"A\":1,\"BM\":64,\"mode\":\"a b\"}";
    static const struct {
        const char *order;
        const char *want;
    } cases[] = {
        {"[\"mode\",\"BM\",\"A\"]", "mode=a b BM=64 A=1"},
        {"", "A=1 BM=64 mode=a b"}, /* not known */
        {"[\"gone\",\"BM\",\"BM\"]", "BM=64 A=1 mode=a b"},
        {"[\"B\",\"mo\",\"\\\"A\"]", "A=1 BM=64 mode=a b"},
        {"[\"mode", "A=1 BM=64 mode=a b"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *words = cli_config_words_in(config, cases[i].order);
        assert_string_equal(words, cases[i].want);
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compile_errors_have_their_place),
        cmocka_unit_test(parameters_stand_in_the_order_they_were_declared_in),
        cmocka_unit_test(one_launch_has_no_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
