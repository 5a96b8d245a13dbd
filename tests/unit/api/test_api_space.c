/* SPDX-License-Identifier: MIT */
/* Spaces through the public interface: texts in and out, indices from outside, limits by hand,
 * every allocation failing. */
#include "base/alloc.h"
#include "kopt/space.h"
#include "support/test.h"

#include <stdbool.h>

static const char source[] =
    "#pragma kopt kernel  k\n"
    "#pragma kopt problem M N=64\n"
    "#pragma kopt param   BM {16,32,64}  MODE {\"a\",\"a,b\",\"c\"}  FAST {true,false}\n"
    "#pragma kopt let     T = BM * device.warp\n"
    "#pragma kopt require T <= device.max_threads : \"too wide\"\n"
    "#pragma kopt require MODE != \"c\" || FAST\n"
    "#pragma kopt block   BM\n"
    "#pragma kopt grid    M\n"
    "#pragma kopt arg     a f32[M*N] out\n"
    "kernel void k(global float *a) {}\n";

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

struct opened {
    kopt_kernel *kernel;
    kopt_space *space;
};

static const char *const problem[] = {"M=8"};

static void open_space(struct opened *o, const char *limits)
{
    kopt_error err = {0};
    write_file("k.cl", source);
    assert_int_equal(kopt_kernel_load("k.cl", &o->kernel, &err), KOPT_OK);
    kopt_status st = kopt_space_new_limits(o->kernel, problem, 1, limits, &o->space, &err);
    if (st != KOPT_OK)
        print_message("%s\n", err.message);
    assert_int_equal(st, KOPT_OK);
}

static void close_space(struct opened *o)
{
    kopt_space_free(o->space);
    kopt_kernel_free(o->kernel);
}

static void a_kernel_says_what_it_needs(void **state)
{
    struct opened o;
    int64_t value = 0;
    (void)state;
    open_space(&o, "max_threads=1024,warp=32");
    assert_string_equal(kopt_kernel_name(o.kernel), "k");
    assert_string_equal(kopt_kernel_language(o.kernel), "opencl");
    assert_int_equal(kopt_kernel_n_problem(o.kernel), 2);
    assert_string_equal(kopt_kernel_problem_name(o.kernel, 0), "M");
    assert_string_equal(kopt_kernel_problem_name(o.kernel, 2), "");
    assert_false(kopt_kernel_problem_default(o.kernel, 0, &value));
    assert_true(kopt_kernel_problem_default(o.kernel, 1, &value));
    assert_int_equal(value, 64);
    assert_false(kopt_kernel_problem_default(o.kernel, 9, &value));
    assert_string_equal(kopt_space_problem(o.space), "{\"M\":8,\"N\":64}");
    assert_true(kopt_space_cartesian(o.space) == 18);
    /* BM 16 and 32 stay; MODE "c" needs FAST. */
    assert_int_equal(kopt_space_count(o.space), 10);
    close_space(&o);
}

static void a_configuration_goes_through_its_text(void **state)
{
    struct opened o;
    uint32_t config[3];
    uint32_t again[3];
    char text[64];
    kopt_error err;
    (void)state;
    open_space(&o, "max_threads=1024,warp=32");
    for (uint64_t rank = 0; rank < kopt_space_count(o.space); rank++) {
        assert_int_equal(kopt_space_at(o.space, rank, config, &err), KOPT_OK);
        assert_true(kopt_space_valid(o.space, config, NULL, 0));
        (void)kopt_space_config_text(o.space, config, text, sizeof(text));
        assert_int_equal(kopt_space_config(o.space, text, again, &err), KOPT_OK);
        assert_memory_equal(config, again, sizeof(config));
    }
    assert_int_equal(kopt_space_at(o.space, 10, config, &err), KOPT_ERANGE);
    /* A value that holds the separator is the longest that fits. */
    assert_int_equal(kopt_space_config(o.space, "MODE=a,b,BM=16 FAST=false", config, &err),
                     KOPT_OK);
    (void)kopt_space_config_json(o.space, config, text, sizeof(text));
    assert_string_equal(text, "{\"BM\":16,\"FAST\":false,\"MODE\":\"a,b\"}");
    assert_int_equal(kopt_space_config(o.space, "BM=17", config, &err), KOPT_EUSAGE);
    assert_string_equal(err.message, "BM has no value '17'");
    assert_int_equal(kopt_space_config(o.space, "BM=16", config, &err), KOPT_EUSAGE);
    assert_string_equal(err.message, "MODE has no value in 'BM=16'");
    assert_int_equal(kopt_space_config(o.space, "X=1", config, &err), KOPT_EUSAGE);
    assert_string_equal(err.hint, "the parameters are BM, MODE, FAST");
    assert_int_equal(kopt_space_config(o.space, "=,==", config, &err), KOPT_EUSAGE);
    close_space(&o);
}

static void indices_from_outside_are_checked(void **state)
{
    struct opened o;
    static const uint32_t wild[3] = {0, 3, 0};
    char text[32] = "x";
    (void)state;
    open_space(&o, "max_threads=1024,warp=32");
    assert_int_equal(kopt_space_config_text(o.space, wild, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    assert_false(kopt_space_valid(o.space, wild, text, sizeof(text)));
    assert_string_equal(text, "a value's index is out of range");
    assert_string_equal(kopt_space_param_name(o.space, 3), "");
    assert_int_equal(kopt_space_n_values(o.space, 3), 0);
    assert_int_equal(kopt_space_value(o.space, 0, 3, text, sizeof(text)), 0);
    assert_int_equal(kopt_space_value(o.space, 1, 1, text, sizeof(text)), 3);
    assert_string_equal(text, "a,b");
    assert_int_equal(kopt_space_value(o.space, 1, 1, text, 2), 3);
    assert_string_equal(text, "a");
    close_space(&o);
}

static void an_invalid_configuration_says_which_rule(void **state)
{
    struct opened o;
    uint32_t config[3];
    char why[96];
    kopt_error err;
    (void)state;
    open_space(&o, "max_threads=1024,warp=32");
    assert_int_equal(kopt_space_config(o.space, "BM=64,MODE=a,FAST=true", config, &err),
                     KOPT_OK);
    assert_false(kopt_space_valid(o.space, config, why, sizeof(why)));
    assert_string_equal(why, "line 5: T <= device.max_threads: too wide");
    close_space(&o);
}

static void a_rule_without_a_line_is_told_without_one(void **state)
{
    static const char t1[] =
        "{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"B\",\"Type\":\"int\","
        "\"Values\":\"[32,64]\"}]},\"KernelSpecification\":{\"Language\":\"CUDA\","
        "\"KernelName\":\"k\",\"KernelFile\":\"k.cu\",\"GlobalSize\":{\"X\":\"64\"},"
        "\"LocalSize\":{\"X\":\"B\"}}}";
    static const uint32_t second[1] = {1};
    kopt_kernel *k = NULL;
    kopt_space *s = NULL;
    kopt_error err;
    char why[160];
    (void)state;
    write_file("k.json", t1);
    assert_int_equal(kopt_kernel_load("k.json", &k, &err), KOPT_OK);
    assert_int_equal(kopt_space_new_limits(k, NULL, 0, "max_threads=32", &s, &err), KOPT_OK);
    assert_false(kopt_space_valid(s, second, why, sizeof(why)));
    assert_int_equal(strncmp(why, "(B) <= device.max_threads: ", 27), 0);
    kopt_space_free(s);
    kopt_kernel_free(k);
}

/* As where a parameter is narrowed. */
static void values_are_named_by_what_they_are_worth(void **state)
{
    static const char *const texts[] = {"SCALE=1.0,UNROLL=true,NAME=1",
                                        "SCALE=1 UNROLL=1,NAME=1",
                                        "NAME=1 UNROLL=True,SCALE=1e0"};
    kopt_kernel *k = NULL;
    kopt_space *s = NULL;
    kopt_error err;
    uint32_t config[3];
    (void)state;
    write_file(
        "v.cl",
        "#pragma kopt kernel k\n#pragma kopt block 1\n#pragma kopt grid 1\n"
        "#pragma kopt param SCALE {0.5, 1} UNROLL {false, true} NAME {\"true\", \"1\"}\n");
    assert_int_equal(kopt_kernel_load("v.cl", &k, &err), KOPT_OK);
    assert_int_equal(kopt_space_new_limits(k, NULL, 0, "", &s, &err), KOPT_OK);
    for (size_t i = 0; i < 3; i++) {
        if (kopt_space_config(s, texts[i], config, &err) != KOPT_OK)
            fail_msg("%s: %s", texts[i], err.message);
        assert_true(config[0] == 1 && config[1] == 1 && config[2] == 1);
    }
    assert_int_equal(kopt_space_config(s, "SCALE=1,UNROLL=2,NAME=1", config, &err),
                     KOPT_EUSAGE);
    assert_string_equal(err.message, "UNROLL has no value '2'");
    assert_int_equal(kopt_space_config(s, "SCALE=1,UNROLL=1,NAME=1.0", config, &err),
                     KOPT_EUSAGE); /* a string is no number */
    kopt_space_free(s);
    kopt_kernel_free(k);
}

static void samples_are_valid_and_the_same_for_a_seed(void **state)
{
    struct opened o;
    uint32_t a[50 * 3];
    uint32_t b[50 * 3];
    kopt_error err;
    (void)state;
    open_space(&o, "max_threads=1024,warp=32");
    assert_int_equal(kopt_space_sample(o.space, 3, 50, a, &err), KOPT_OK);
    assert_int_equal(kopt_space_sample(o.space, 3, 50, b, &err), KOPT_OK);
    assert_memory_equal(a, b, sizeof(a));
    for (size_t i = 0; i < 50; i++)
        assert_true(kopt_space_valid(o.space, a + 3 * i, NULL, 0));
    close_space(&o);
    open_space(&o, "max_threads=1,warp=32");
    assert_int_equal(kopt_space_count(o.space), 0);
    assert_int_equal(kopt_space_sample(o.space, 3, 1, a, &err), KOPT_EFAILED);
    close_space(&o);
}

static void on_rule(void *user, const kopt_rule_info *r)
{
    kopt_rule_info **next = user;
    *(*next)++ = *r;
}

static void rules_are_explained_in_order(void **state)
{
    struct opened o;
    kopt_rule_info rules[4];
    kopt_rule_info *next = rules;
    kopt_error err;
    (void)state;
    open_space(&o, "max_threads=1024,warp=32");
    assert_int_equal(kopt_space_explain(o.space, on_rule, &next, &err), KOPT_OK);
    assert_int_equal(next - rules, 2);
    assert_string_equal(rules[0].message, "too wide");
    assert_int_equal(rules[0].line, 5);
    assert_int_equal(rules[0].alone, 6);
    assert_int_equal(rules[1].alone, 3);
    assert_int_equal(rules[1].in_turn, 2);
    assert_false(rules[0].emptied || rules[1].emptied);
    close_space(&o);
}

static void all_limits_that_are_missing_are_told_at_once(void **state)
{
    kopt_kernel *k = NULL;
    kopt_space *s = NULL;
    kopt_error err;
    (void)state;
    write_file("k.cl", source);
    assert_int_equal(kopt_kernel_load("k.cl", &k, &err), KOPT_OK);
    assert_int_equal(kopt_space_new_limits(k, problem, 1, "cc=0", &s, &err), KOPT_EUSAGE);
    assert_string_equal(err.hint, "add max_threads=NUMBER,warp=NUMBER");
    kopt_kernel_free(k);
}

static void limits_by_hand_are_checked(void **state)
{
    static const struct {
        const char *limits;
        const char *message;
    } cases[] = {
        {"max_threads=1024", "a rule uses device.warp, which is not given"},
        {"", "a rule uses device.max_threads, which is not given"},
        {"warp=32,max_threads=1,warp=32", "warp is given twice"},
        {"warp=32,max_threads", "max_threads: '' is not a whole number of at least 1"},
        {"warp=-1", "warp: '-1' is not a whole number of at least 1"},
        {"max_threads=0", "max_threads: '0' is not a whole number of at least 1"},
        {"shared_bytes=0", "shared_bytes: '0' is not a whole number of at least 1"},
        {"cc=-1", "cc: '-1' is not a whole number of at least 0"},
        {"cc=0", "a rule uses device.max_threads, which is not given"},
        {"wrap=32", "'wrap' is no number of a device"},
        {",", "'' is no number of a device"},
    };
    kopt_kernel *k = NULL;
    kopt_space *s = NULL;
    kopt_error err;
    (void)state;
    write_file("k.cl", source);
    assert_int_equal(kopt_kernel_load("k.cl", &k, &err), KOPT_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kopt_space_new_limits(k, problem, 1, cases[i].limits, &s, &err),
                         KOPT_EUSAGE);
        assert_null(s);
        assert_string_equal(err.message, cases[i].message);
    }
    kopt_kernel_free(k);
}

static void every_failing_allocation_is_clean(void **state)
{
    kopt_error err;
    bool done = false;
    (void)state;
    write_file("k.cl", source);
    for (long n = 1; !done; n++) {
        kopt_kernel *k = NULL;
        kopt_space *s = NULL;
        assert_true(n < 100000);
        kp_alloc_fail_at(n);
        kopt_status st = kopt_kernel_load("k.cl", &k, &err);
        if (st == KOPT_OK)
            st = kopt_space_new_limits(k, problem, 1, "max_threads=1024,warp=32", &s, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
        assert_true(st == KOPT_OK || !s);
        done = st == KOPT_OK;
        kopt_space_free(s);
        kopt_kernel_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_says_what_it_needs),
        cmocka_unit_test(a_configuration_goes_through_its_text),
        cmocka_unit_test(indices_from_outside_are_checked),
        cmocka_unit_test(an_invalid_configuration_says_which_rule),
        cmocka_unit_test(a_rule_without_a_line_is_told_without_one),
        cmocka_unit_test(values_are_named_by_what_they_are_worth),
        cmocka_unit_test(samples_are_valid_and_the_same_for_a_seed),
        cmocka_unit_test(rules_are_explained_in_order),
        cmocka_unit_test(limits_by_hand_are_checked),
        cmocka_unit_test(all_limits_that_are_missing_are_told_at_once),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
