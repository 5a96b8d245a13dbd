/* SPDX-License-Identifier: MIT */
/* What NVRTC and ptxas of several versions say, taken apart. */
#include "device/cuda/compile_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static kopt_error ERR;

static kopt_status error_of(const char *log)
{
    const char *macros[] = {"BM=64", "F(x)=x"};
    const struct kp_compile_job job = {
        .path = "k.cu", .entry = "k", .macros = macros, .n_macros = 2};
    memset(&ERR, 0, sizeof(ERR));
    return kp_cuda_log_error(kp_str_from(log), &job, &ERR);
}

static void the_first_error_is_the_one(void **state)
{
    (void)state;
    assert_int_equal(
        error_of("k.cu(3): warning #177-D: variable \"u\" was declared\n"
                 "    int u;\n"
                 "        ^\n"
                 "\n"
                 "dir (1)/k (2).cu(12): error #20-D: identifier \"zz\" is undefined\n"
                 "    a[0] = zz;\n"
                 "           ^\n"
                 "k.cu(13): error: second\n"
                 "2 errors detected in the compilation of \"k.cu\".\n"),
        KOPT_EINPUT);
    assert_string_equal(ERR.message, "identifier \"zz\" is undefined");
    assert_string_equal(ERR.file, "dir (1)/k (2).cu");
    assert_int_equal(ERR.line, 12);
    assert_int_equal(ERR.column, 10);
    assert_string_equal(ERR.excerpt, "  a[0] = zz;");
}

static void messages_without_a_position_are_errors_too(void **state)
{
    (void)state;
    assert_int_equal(error_of("nvrtc: error: invalid value for --gpu-architecture (-arch)\n"),
                     KOPT_EINPUT);
    assert_string_equal(ERR.message, "invalid value for --gpu-architecture (-arch)");
    assert_int_equal(ERR.line, 0);
    assert_int_equal(error_of("Command-line error: cannot open source file \"x\"\n"),
                     KOPT_EINPUT);
    assert_int_equal(error_of("ptxas fatal   : Unknown option 'foo'\n"), KOPT_EINPUT);
    assert_string_equal(ERR.message, "Unknown option 'foo'");
    assert_int_equal(
        error_of("ptxas application ptx input, line 26; error   : Unknown modifier '.bar'\n"),
        KOPT_EINPUT);
    assert_string_equal(ERR.message, "Unknown modifier '.bar'");
}

static void limits_are_read_in_any_base(void **state)
{
    (void)state;
    assert_int_equal(
        error_of("ptxas error   : Entry function '_Z1kPf' uses too much shared data "
                 "(0x61a80 bytes, 0xc000 max)\n"),
        KOPT_ERANGE);
    assert_string_equal(ERR.message, "static shared memory 400000 of 49152 bytes");
    assert_int_equal(error_of("ptxas error   : Entry function 'k' uses too much local data "
                              "(600000 bytes, 524288 max)\n"),
                     KOPT_ERANGE);
    assert_string_equal(ERR.message, "local data 600000 of 524288 bytes");
    /* with -v the error itself is missing */
    assert_int_equal(
        error_of("ptxas info    : 0 bytes gmem\n"
                 "ptxas info    : Used 10 registers, used 1 barriers, 400000 bytes "
                 "smem, 352 bytes cmem[0]\n"),
        KOPT_ERANGE);
    assert_string_equal(ERR.message, "static shared memory 400000 of 49152 bytes");
    assert_int_equal(
        error_of("ptxas error   : something uses too much of everything (a lot)\n"),
        KOPT_EINPUT);
}

static void a_log_without_an_error_has_none(void **state)
{
    (void)state;
    assert_int_equal(error_of(""), KOPT_ENOTFOUND);
    assert_int_equal(error_of("\n\n  \n"), KOPT_ENOTFOUND);
    assert_int_equal(error_of("k.cu(1): warning #1-D: error: is only a word here\n"),
                     KOPT_ENOTFOUND);
    assert_int_equal(error_of("ptxas info    : Used 10 registers, 49152 bytes smem\n"),
                     KOPT_ENOTFOUND);
    assert_int_equal(ERR.code, KOPT_OK);
}

static void a_lookup_counts_only_when_nothing_else_is_wrong(void **state)
{
    static const char LOOKUP[] = "__nv_name_map(2): error: identifier \"k\" is undefined\n"
                                 "  #pragma nv_mangled_name k\n"
                                 "                          ^\n\n";
    char both[512];
    (void)state;
    assert_int_equal(error_of(LOOKUP), KOPT_EINPUT);
    assert_string_equal(ERR.message, "there is no kernel k in k.cu");
    assert_string_equal(ERR.file, "k.cu");
    assert_int_equal(ERR.line, 0);
    (void)snprintf(both, sizeof(both), "%sk.cu(5): error: the real one\n", LOOKUP);
    assert_int_equal(error_of(both), KOPT_EINPUT);
    assert_string_equal(ERR.message, "the real one");
}

static void columns_count_code_points_and_survive_odd_carets(void **state)
{
    (void)state;
    assert_int_equal(error_of("k.cu(1): error: x\n  äö = y;\n       ^\n"), KOPT_EINPUT);
    assert_int_equal(ERR.column, 4); /* 5 bytes and 2 of indentation come before */
    assert_int_equal(error_of("k.cu(1): error: x\n  ab\n                 ^\n"), KOPT_EINPUT);
    assert_int_equal(ERR.column, 3);
    assert_int_equal(error_of("k.cu(1): error: x\n^\n"), KOPT_EINPUT);
    assert_int_equal(ERR.column, 0);
    assert_int_equal(error_of("k.cu(1): error: x\na\n^\n"), KOPT_EINPUT);
    assert_int_equal(error_of("k.cu(99999999999999999999): error: x\n"), KOPT_EINPUT);
    assert_int_equal(ERR.line, 0);
}

static void macros_defined_again_are_noticed(void **state)
{
    const char *macros[] = {"BM=64", "F(x)=x", "FLAG"};
    const struct kp_compile_job job = {
        .path = "k.cu", .entry = "k", .macros = macros, .n_macros = 3};
    static const struct {
        const char *name;
        kopt_status st;
    } CASES[] = {{"BM", KOPT_EINPUT}, {"F", KOPT_EINPUT}, {"FLAG", KOPT_EINPUT},
                 {"B", KOPT_OK},      {"BMX", KOPT_OK},   {"", KOPT_OK}};
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        char log[256];
        (void)snprintf(log, sizeof(log),
                       "k.cu(7): warning #47-D: incompatible redefinition of macro \"%s\" "
                       "(declared at line 1)\n  #define X 16\n          ^\n",
                       CASES[i].name);
        assert_int_equal(kp_cuda_log_redefined(kp_str_from(log), &job, &ERR), CASES[i].st);
    }
    assert_int_equal(kp_cuda_log_redefined(kp_str_from(""), &job, &ERR), KOPT_OK);
}

static void resources_of_either_layout_are_read(void **state)
{
    static const char CUDA_13[] =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function '_Z1zPi' for 'sm_90'\n"
        "ptxas info    : Function properties for _Z1zPi\n"
        "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 8 registers, used 0 barriers\n"
        "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'\n"
        "ptxas info    : Function properties for _Z1kPf\n"
        "ptxas         .     800 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 34 registers, used 1 barriers, 808 bytes cumulative stack size, "
        "1200 bytes smem\n"
        "ptxas info    : Function properties for _Z1fPfi\n"
        "ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
    static const char CUDA_12[] =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'\n"
        "ptxas info    : Function properties for _Z1kPf\n"
        "    40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 20 registers, 400 bytes smem, 360 bytes cmem[0]\n";
    struct kp_cuda_resources r;
    (void)state;
    kp_cuda_log_resources(kp_str_from(CUDA_13), "_Z1kPf", &r);
    assert_int_equal(r.registers, 34);
    assert_int_equal(r.shared_bytes, 1200);
    assert_int_equal(r.stack_bytes, 808);
    kp_cuda_log_resources(kp_str_from(CUDA_13), "_Z1zPi", &r);
    assert_int_equal(r.registers, 8);
    assert_int_equal(r.shared_bytes, 0);
    assert_int_equal(r.stack_bytes, 8);
    kp_cuda_log_resources(kp_str_from(CUDA_12), "_Z1kPf", &r);
    assert_int_equal(r.registers, 20);
    assert_int_equal(r.shared_bytes, 400);
    assert_int_equal(r.stack_bytes, 40);
    kp_cuda_log_resources(kp_str_from(CUDA_12), "another", &r);
    assert_true(r.registers == -1 && r.shared_bytes == -1 && r.stack_bytes == -1);
}

static void what_kopt_caused_is_not_shown(void **state)
{
    static const char LOG[] =
        "k.cu(1): warning #161-D: unrecognized #pragma\n"
        "  #pragma kopt kernel k\n"
        "          ^\n"
        "\n"
        "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n"
        "\n"
        "k.cu(4): warning #161-D: unrecognized #pragma\n"
        "  #pragma other\n"
        "          ^\n"
        "\n"
        "__nv_name_map(2): error: identifier \"k\" is undefined\n"
        "  #pragma nv_mangled_name k\n"
        "                          ^\n"
        "\n"
        "k.cu(9): error: no instance of overloaded function matches\n"
        "            argument types are: (int)\n"
        "    f(3);\n"
        "    ^\n"
        "Note #3326-D: function \"f(float)\" does not match\n"
        "ptxas info    : 0 bytes gmem\n"
        "ptxas warning : Too big maxrregcount value specified -3, will be ignored\n"
        "1 error detected in the compilation of \"k.cu\".\n"
        "Compilation terminated.\n"
        "something that nobody knows\n";
    struct kp_buf out = KP_BUF_INIT(4096);
    (void)state;
    kp_cuda_log_clean(kp_str_from(LOG), false, &out);
    assert_string_equal(
        kp_buf_text(&out),
        "k.cu(4): warning #161-D: unrecognized #pragma\n"
        "  #pragma other\n"
        "          ^\n"
        "k.cu(9): error: no instance of overloaded function matches\n"
        "            argument types are: (int)\n"
        "    f(3);\n"
        "    ^\n"
        "Note #3326-D: function \"f(float)\" does not match\n"
        "ptxas warning : Too big maxrregcount value specified -3, will be ignored\n"
        "something that nobody knows\n");
    kp_buf_clear(&out);
    kp_cuda_log_clean(kp_str_from(LOG), true, &out);
    assert_non_null(strstr(kp_buf_text(&out), "ptxas info    : 0 bytes gmem\n"));
    kp_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_is_the_one),
        cmocka_unit_test(messages_without_a_position_are_errors_too),
        cmocka_unit_test(limits_are_read_in_any_base),
        cmocka_unit_test(a_log_without_an_error_has_none),
        cmocka_unit_test(a_lookup_counts_only_when_nothing_else_is_wrong),
        cmocka_unit_test(columns_count_code_points_and_survive_odd_carets),
        cmocka_unit_test(macros_defined_again_are_noticed),
        cmocka_unit_test(resources_of_either_layout_are_read),
        cmocka_unit_test(what_kopt_caused_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
