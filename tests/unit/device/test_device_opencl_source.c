/* SPDX-License-Identifier: MIT */
/* What the OpenCL back end gives to compilers and reads from them; needs no device. */
#include "base/alloc.h"
#include "base/rng.h"
#include "device/opencl/cl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static kopt_error ERR;

static void expect_text(const struct kp_compile_job *job, bool pocl, const char *source,
                        const char *options)
{
    struct kp_cl_text t;
    assert_int_equal(kp_cl_text_make(job, pocl, &t, &ERR), KOPT_OK);
    assert_string_equal(kp_buf_text(&t.source), source);
    assert_string_equal(kp_buf_text(&t.options), options);
    kp_cl_text_deinit(&t);
}

static void macros_become_lines_in_front_of_the_source(void **state)
{
    (void)state;
    const char *macros[] = {"BM=64", "S=\"a b\"", "E=", "ON"};
    const char *options[] = {"-DX=1", "-D", "F(a)=a + 1", "-UY", "-cl-mad-enable"};
    struct kp_compile_job job = {.source = KP_STR("kernel"),
                                 .path = "a \"b\"\\\n.cl",
                                 .macros = macros,
                                 .n_macros = 4,
                                 .options = options,
                                 .n_options = 5};
    expect_text(&job, true,
                "#line 1 \"<macros>\"\n"
                "#define X 1\n"
                "#define F(a) a + 1\n"
                "#undef Y\n"
                "#define BM 64\n"
                "#define S \"a b\"\n"
                "#define E \n"
                "#define ON 1\n"
                "#line 1 \"a \\\"b\\\"\\\\?.cl\"\n"
                "kernel\n",
                "-I. -cl-kernel-arg-info -cl-mad-enable");
    job = (struct kp_compile_job){.source = KP_STR("\xef\xbb\xbfkernel")};
    expect_text(&job, true, "#line 1 \"<macros>\"\n#line 1 \"source\"\nkernel\n",
                "-I. -cl-kernel-arg-info");
}

static void options_with_spaces_are_quoted_or_refused(void **state)
{
    (void)state;
    const char *options[] = {"-I", "a b"};
    const struct kp_compile_job job = {
        .source = KP_STR("kernel"), .options = options, .n_options = 2};
    struct kp_cl_text t;
    expect_text(&job, false, "#line 1 \"<macros>\"\n#line 1 \"source\"\nkernel\n",
                "-I. -cl-kernel-arg-info \"-Ia b\"");
    assert_int_equal(kp_cl_text_make(&job, true, &t, &ERR), KOPT_EUSAGE);
    assert_non_null(strstr(ERR.message, "-Ia b"));
    options[1] = "a\"b";
    assert_int_equal(kp_cl_text_make(&job, false, &t, &ERR), KOPT_EUSAGE);
}

static void the_folder_is_absolute_and_there(void **state)
{
    (void)state;
    struct kp_compile_job job = {.source = KP_STR("kernel"), .path = "/usr/include/x.cl"};
    struct kp_cl_text t;
    char here[2048];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(kp_cl_text_make(&job, true, &t, &ERR), KOPT_OK);
    assert_string_equal(kp_buf_text(&t.folder), "/usr/include");
    kp_cl_text_deinit(&t);
    job.path = "x.cl";
    assert_int_equal(kp_cl_text_make(&job, true, &t, &ERR), KOPT_OK);
    assert_string_equal(kp_buf_text(&t.folder), here);
    kp_cl_text_deinit(&t);
    job.path = "/no/such/folder/x.cl";
    assert_int_equal(kp_cl_text_make(&job, true, &t, &ERR), KOPT_OK);
    assert_string_equal(kp_buf_text(&t.folder), "");
    kp_cl_text_deinit(&t);
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    const char *macros[] = {"A=1"};
    const struct kp_compile_job job = {
        .source = KP_STR("kernel"), .path = "/usr/x.cl", .macros = macros, .n_macros = 1};
    int n = 1;
    for (kopt_status st = KOPT_ENOMEM; st == KOPT_ENOMEM; n++) {
        struct kp_cl_text t;
        kp_alloc_fail_at(n);
        st = kp_cl_text_make(&job, true, &t, &ERR);
        kp_alloc_fail_at(0);
        if (st == KOPT_OK)
            kp_cl_text_deinit(&t);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
    }
    assert_true(n > 3);
}

/* --- messages --------------------------------------------------------------------------------
 */

static const char SOURCE[] = "kernel void k(global int *p)\n"
                             "{\n"
                             "    p[0] = \xc3\xa9\xc3\xa9 + x;\r\n"
                             "}";

static void expect_error(const char *log, const char *file, int line, int column,
                         const char *message)
{
    const struct kp_compile_job job = {.source = kp_str_from(SOURCE), .path = "my dir/k.cl"};
    kopt_error err = {0};
    assert_int_equal(kp_cl_log_error(kp_str_from(log), &job, &err), KOPT_EINPUT);
    assert_string_equal(err.message, message);
    assert_string_equal(err.file, file);
    assert_int_equal(err.line, line);
    assert_int_equal(err.column, column);
    if (line && strcmp(file, job.path) == 0 && line <= 4)
        assert_true(err.excerpt[0] != 0);
    if (line == 3 && strcmp(file, job.path) == 0)
        assert_string_equal(err.excerpt, "    p[0] = \xc3\xa9\xc3\xa9 + x;");
}

static void the_first_error_is_found_in_every_compilers_log(void **state)
{
    (void)state;
    /* PoCL; the column counts bytes, the message's counts characters */
    expect_error("warning: my dir/k.cl:1:2: unused\n"
                 "error: my dir/k.cl:3:19: use of undeclared identifier 'x'\n"
                 "error: my dir/k.cl:4:1: more\n"
                 "Device pthread failed to build the program\n",
                 "my dir/k.cl", 3, 17, "use of undeclared identifier 'x'");
    /* clang and NVIDIA */
    expect_error("my dir/k.cl:3:12: error: use of undeclared identifier: 'x'\n    p[0] = x;\n",
                 "my dir/k.cl", 3, 12, "use of undeclared identifier: 'x'");
    expect_error("a.h:7:10: fatal error: 'b.h' file not found\n", "a.h", 7, 10,
                 "'b.h' file not found");
    expect_error("<macros>:2:9: error: macro names must be identifiers\n", "<macros>", 2, 9,
                 "macro names must be identifiers");
    /* a file whose name has colons, a line without a column */
    expect_error("error: c:/x y/a:b.cl:12:1: text: with: colons\n", "c:/x y/a:b.cl", 12, 1,
                 "text: with: colons");
    expect_error("a.cl:12: error: old style\n", "a.cl", 12, 1, "old style");
    expect_error("my dir/k.cl:99:1: error: past the end\n", "my dir/k.cl", 99, 1,
                 "past the end");
    /* no place at all */
    expect_error("error: unresolved external function 'f'\n", "", 0, 0,
                 "unresolved external function 'f'");
    expect_error("ptxas error: too much shared data\n", "", 0, 0, "too much shared data");
    expect_error("Invalid build option: -x\nDevice failed\n", "", 0, 0,
                 "my dir/k.cl does not compile: Invalid build option: -x");
    expect_error("", "", 0, 0,
                 "my dir/k.cl does not compile, and the compiler gives no reason");
    expect_error("error: ", "", 0, 0, "my dir/k.cl does not compile: error:");
    expect_error("x.cl:0:0: error: at zero\n", "", 0, 0, "at zero");
    expect_error("x.cl:99999999999:1: error: far\n", "", 0, 0, "far");
}

static void a_macro_that_is_defined_anew_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *log;
        int line; /* 0 = fine */
    } cases[] = {
        {"warning: my dir/k.cl:3:9: 'BM' macro redefined\n", 3}, /* PoCL */
        {"my dir/k.cl:2:9: warning: 'BN' macro redefined [-Wmacro-redefined]\n#define BN 3\n",
         2},
        {"warning: my dir/k.cl:3:9: 'B' macro redefined\n", 0}, /* not a macro of the job's */
        {"warning: my dir/k.cl:3:9: 'BM2' macro redefined\nwarning: unused 'BM'\n", 0},
        {"", 0},
    };
    const char *macros[] = {"BM=64", "BN"};
    const struct kp_compile_job job = {
        .source = kp_str_from(SOURCE), .path = "my dir/k.cl", .macros = macros, .n_macros = 2};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        kopt_error err = {0};
        kopt_status st = kp_cl_log_redefined(kp_str_from(cases[i].log), &job, &err);
        assert_int_equal(st, cases[i].line ? KOPT_EINPUT : KOPT_OK);
        assert_int_equal(err.line, cases[i].line);
        if (cases[i].line)
            assert_non_null(strstr(err.message, "undoes the value being tuned"));
    }
}

static void made_up_names_are_put_right(void **state)
{
    (void)state;
    struct kp_buf out = KP_BUF_INIT(4096);
    kp_cl_log_clean(KP_STR("input.cl:5:9: error: a\n  input.cl:1\n<kernel>:4:1: b\n"
                           "input.cl:3:1: c\ninput.cl:1:1: d\ninput.cl: e\nother.cl:9:1: f"),
                    "my dir/k.cl", 3, &out);
    assert_string_equal(kp_buf_text(&out),
                        "my dir/k.cl:2:9: error: a\n  input.cl:1\nmy dir/k.cl:1:1: b\n"
                        "<macros>:2:1: c\n<macros>:1:1: d\ninput.cl: e\nother.cl:9:1: f");
    kp_buf_deinit(&out);
    kp_cl_log_clean(KP_STR("<source>:9: x\n"), NULL, 2, &out);
    assert_string_equal(kp_buf_text(&out), "source:7: x\n");
    kp_buf_deinit(&out);
}

static void codes_have_their_names(void **state)
{
    (void)state;
    char name[64];
    static const struct {
        cl_int code;
        const char *name;
    } cases[] = {{CL_SUCCESS, "CL_SUCCESS"},
                 {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
                 {CL_KERNEL_ARG_INFO_NOT_AVAILABLE, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
                 {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
                 {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
                 {CL_INVALID_QUEUE_PROPERTIES, "CL_INVALID_QUEUE_PROPERTIES"},
                 {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
                 {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
                 {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
                 {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
                 {CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE"},
                 {CL_INVALID_DEVICE_PARTITION_COUNT, "CL_INVALID_DEVICE_PARTITION_COUNT"},
                 {-25, "OpenCL error -25"},
                 {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
                 {-9999, "OpenCL error -9999"},
                 {5, "OpenCL error 5"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        kp_cl_error_name(cases[i].code, name);
        assert_string_equal(name, cases[i].name);
    }
    assert_int_equal(kp_cl_fail(&ERR, CL_OUT_OF_RESOURCES, "launch %s", "gemm"), KOPT_EDEVICE);
    assert_string_equal(ERR.message, "launch gemm: CL_OUT_OF_RESOURCES");
    assert_int_equal(kp_cl_fail(&ERR, CL_MEM_OBJECT_ALLOCATION_FAILURE, "x"), KOPT_EFULL);
    assert_int_equal(kp_cl_fail(&ERR, CL_INVALID_WORK_GROUP_SIZE, "x"), KOPT_ERANGE);
    assert_int_equal(kp_cl_fail(&ERR, CL_OUT_OF_HOST_MEMORY, "x"), KOPT_ENOMEM);
}

/* --- images ----------------------------------------------------------------------------------
 */

static void images_come_back_as_they_were(void **state)
{
    (void)state;
    const struct kp_compile_job job = {.source = KP_STR("kernel"), .path = "/usr/x.cl"};
    struct kp_buf image = KP_BUF_INIT(1 << 16);
    struct kp_cl_text t;
    struct kp_cl_text back;
    struct kp_str binary;
    assert_int_equal(kp_cl_text_make(&job, true, &t, &ERR), KOPT_OK);
    kp_cl_image_write(&image, &t, (struct kp_str){"", 0});
    assert_int_equal(kp_cl_image_read(image.ptr, image.len, &back, &binary, &ERR), KOPT_OK);
    assert_string_equal(kp_buf_text(&back.source), kp_buf_text(&t.source));
    assert_string_equal(kp_buf_text(&back.options), kp_buf_text(&t.options));
    assert_string_equal(kp_buf_text(&back.folder), "/usr");
    assert_int_equal(binary.len, 0);
    kp_cl_text_deinit(&back);

    struct kp_buf other = KP_BUF_INIT(1 << 16);
    kp_cl_image_write(&other, &t, (struct kp_str){"\0\1\2", 3});
    assert_int_equal(kp_cl_image_read(other.ptr, other.len, &back, &binary, &ERR), KOPT_OK);
    assert_int_equal(binary.len, 3);
    assert_memory_equal(binary.ptr, "\0\1\2", 3);
    assert_int_equal(back.source.len, 0);
    kp_cl_text_deinit(&back);
    kp_buf_deinit(&other);

    for (size_t n = 0; n < image.len; n++) /* every cut is refused */
        assert_int_equal(kp_cl_image_read(image.ptr, n, &back, &binary, &ERR), KOPT_EDEVICE);
    struct kp_rng r;
    kp_rng_init(&r, 3);
    for (int i = 0; i < 2000; i++) { /* and no change of a byte is read out of bounds */
        size_t at = kp_rng_below(&r, image.len);
        unsigned char was = image.ptr[at];
        image.ptr[at] = (unsigned char)kp_rng_u64(&r);
        if (kp_cl_image_read(image.ptr, image.len, &back, &binary, &ERR) == KOPT_OK)
            kp_cl_text_deinit(&back);
        image.ptr[at] = was;
    }
    kp_alloc_fail_at(2);
    assert_int_equal(kp_cl_image_read(image.ptr, image.len, &back, &binary, &ERR), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    kp_buf_deinit(&image);
    kp_cl_text_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(macros_become_lines_in_front_of_the_source),
        cmocka_unit_test(options_with_spaces_are_quoted_or_refused),
        cmocka_unit_test(the_folder_is_absolute_and_there),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(the_first_error_is_found_in_every_compilers_log),
        cmocka_unit_test(a_macro_that_is_defined_anew_is_an_error),
        cmocka_unit_test(made_up_names_are_put_right),
        cmocka_unit_test(codes_have_their_names),
        cmocka_unit_test(images_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
