/* SPDX-License-Identifier: MIT */
/* PoCL gets only those declarations of its header that a source needs. */
#include "base/alloc.h"
#include "device/opencl/cl.h"
#include "os/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IR_MAX = 16 << 20 };

static struct kp_cl_lib LIB;
static struct kp_cl_session S;
static struct kp_cl_builtins B;

static struct kp_cl_text text_of(const char *source)
{
    const struct kp_compile_job job = {.source = kp_str_from(source), .path = "user.cl"};
    struct kp_cl_text text;
    kopt_error err;
    assert_int_equal(kp_cl_text_make(&job, true, &text, &err), KOPT_OK);
    return text;
}

static void ir_of(const struct kp_cl_text *text, struct kp_buf *ir, struct kp_buf *log)
{
    kopt_error err;
    *ir = KP_BUF_INIT(IR_MAX);
    if (kp_cl_build_ir(&S, text, NULL, ir, log, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_true(ir->len > 0);
}

#define MANY                                                                                 \
    "float4 turned(float4 v, float angle) { float c; float s = sincos(angle, &c);\n"         \
    "    return (float4)(mad(v.x, c, -v.y * s), fma(v.x, s, v.y * c), v.zw); }\n"            \
    "kernel void many(global float4 *a, global int *n, local float4 *t, int k)\n"            \
    "{\n"                                                                                    \
    "    int i = get_global_id(0), l = get_local_id(0);\n"                                   \
    "    t[l] = turned(vload4(i, (global float *)a), k);\n"                                  \
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"                                                    \
    "    if (isfinite(dot(t[l], t[0])) && all(t[l] > (float4)(0)))\n"                        \
    "        atomic_add(n, convert_int_sat_rte(native_exp(length(t[l]))));\n"                \
    "    vstore4(clamp(t[l], -1.0f, 1.0f), i, (global float *)a);\n"                         \
    "    n[i] = as_int(half_rsqrt((float)i)) + popcount(n[i]) + mad24(i, l, k) + INT_MIN;\n" \
    "}\n"

/* The bytes in which two codes differ. */
static size_t difference(const struct kp_buf *a, const struct kp_buf *b)
{
    size_t n = 0;
    assert_int_equal(a->len, b->len);
    for (size_t i = 0; i < a->len; i++)
        n += a->ptr[i] != b->ptr[i];
    return n;
}

static void the_code_is_the_same(void **state)
{
    (void)state;
    static const char *const sources[] = {
        MANY,
        "kernel void none(global int *a) { a[0] = 1; }\n",
        "#define SQ(x) \\\n    sqrt(x)\n"
        "kernel void joined(global double *a) { a[0] = SQ(a[1]) + pow(a[2], a[3]); }\n",
        "float __attribute__((overloadable)) dot(int2 a, int2 b) { return a.x * b.x; }\n"
        "kernel void own(global float *a) { a[0] = dot((int2)(a[1]), (int2)(2)); }\n",
        "#define F(x) m##x\nkernel void pasted(global int *a) { a[0] = F(ax)(a[1], 2); }\n",
        "#define JOIN_(a, b) a##b\n#define JOIN(a, b) JOIN_(a, b)\n#define W 4\n"
        "kernel void numbered(global float *a) { /* line 4 */"
        "    JOIN(float, W) v = JOIN(vload, W)(0, a) + JOIN(convert_float, W)("
        "        JOIN(as_int, W)(JOIN(vload, __LINE__)(0, a)));"
        "    JOIN(vstore, W)(v, 0, a); }\n",
        "int __attribute__((overloadable)) min(int a, double b) { return 7; }\n"
        "#define F(x) __builtin_##x\n#define G(x, y) x##y\n"
        "kernel void hidden(global int *a) { a[0] = G(ma, x)(a[1], 2) + G(mi, n)(a[2], 3); }\n"};
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        struct kp_cl_text whole = text_of(sources[i]);
        struct kp_cl_text brief;
        struct kp_buf a;
        struct kp_buf b;
        assert_true(kp_cl_builtins_before(&B, &whole, &brief));
        assert_true(brief.source.len < whole.source.len + 150000); /* the header has 895 KB */
        ir_of(&whole, &a, NULL);
        ir_of(&brief, &b, NULL);
        /*
         * LLVM's code names PoCL's temporary file twice, and six letters of it are drawn at
         * random: once in bytes, once in 7 bits each, which begin anywhere in a byte and so
         * touch up to 7 bytes.
         */
        assert_true(difference(&a, &b) <= 6 + 7);
        kp_buf_deinit(&a);
        kp_buf_deinit(&b);
        kp_cl_text_deinit(&whole);
        kp_cl_text_deinit(&brief);
    }
}

/* What ships must profit, or the time is lost where it is measured. */
static void the_examples_get_few(void **state)
{
    (void)state;
    static const char *const names[] = {"convolution", "gemm",    "hotspot",
                                        "reduction",   "softmax", "transpose"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[4096];
        kopt_error err;
        struct kp_buf source = KP_BUF_INIT(IR_MAX);
        (void)snprintf(path, sizeof(path), "%s/examples/%s/%s.cl",
                       getenv("KOPT_SOURCE_DIR"), /* NOLINT(concurrency-mt-unsafe) */
                       names[i], names[i]);
        assert_int_equal(kp_file_read(path, &source, &err), KOPT_OK);
        struct kp_cl_text whole = text_of(kp_buf_text(&source));
        struct kp_cl_text brief;
        assert_true(kp_cl_builtins_before(&B, &whole, &brief));
        assert_true(brief.source.len < whole.source.len + 150000);
        kp_cl_text_deinit(&whole);
        kp_cl_text_deinit(&brief);
        kp_buf_deinit(&source);
    }
}

static void what_could_differ_is_left_as_it_is(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "#include \"more.h\"\nkernel void k(global int *a) { a[0] = 1; }\n",
        "kernel void k(global int *a) { a[0] = m\\\nax(a[1], 2); }\n",
        /* PoCL's compiler takes each of these as well; with a min() of the source's own in the
         * other words, it would be called for want of a better one */
        "#import \"more.h\"\nkernel void k(global int *a) { a[0] = 1; }\n",
        "#include_next \"more.h\"\nkernel void k(global int *a) { a[0] = 1; }\n",
        "#__include_macros \"more.h\"\nkernel void k(global int *a) { a[0] = 1; }\n",
        "#define F(x) m?\?=?\?=x\nkernel void k(global int *a) { a[0] = F(ax)(a[1], 2); }\n",
        "#define F(x) m#\\\n#x\nkernel void k(global int *a) { a[0] = F(ax)(a[1], 2); }\n",
        "kernel void k(global int *a) { a[0] = m\\ \t\nax(a[1], 2); }\n",
        "kernel void k(global int *a) { a[0] = m\\\r\nax(a[1], 2); }\n",
        "kernel void k(global int *a) { a[0] = m\\\n\\\nax(a[1], 2); }\n",
        "kernel void k(global int *a) { a[0] = m?\?/\nax(a[1], 2); }\n",
        "kernel void k(global int *a) { a[0] = _cl_max(a[1], 2); }\n",
        "#ifdef _OPENCL_H_\nkernel void k(global int *a) { a[0] = 1; }\n#endif\n"};
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        struct kp_cl_text whole = text_of(sources[i]);
        struct kp_cl_text brief;
        if (kp_cl_builtins_before(&B, &whole, &brief))
            fail_msg("source %zu", i);
        kp_cl_text_deinit(&whole);
    }
}

static void messages_name_the_same_lines(void **state)
{
    (void)state;
    struct kp_cl_text whole = text_of("\nkernel void k(global int *a, float f)\n{\n"
                                      "    int unused = 1 / 0;\n    a[0] = max(a[1], 2);\n}\n");
    struct kp_cl_text brief;
    struct kp_buf a;
    struct kp_buf b;
    struct kp_buf whole_log = KP_BUF_INIT(IR_MAX);
    struct kp_buf brief_log = KP_BUF_INIT(IR_MAX);
    assert_true(kp_cl_builtins_before(&B, &whole, &brief));
    ir_of(&whole, &a, &whole_log);
    ir_of(&brief, &b, &brief_log);
    assert_non_null(strstr(kp_buf_text(&whole_log), "user.cl:4:"));
    assert_string_equal(kp_buf_text(&whole_log), kp_buf_text(&brief_log));
    kp_buf_deinit(&a);
    kp_buf_deinit(&b);
    kp_buf_deinit(&whole_log);
    kp_buf_deinit(&brief_log);
    kp_cl_text_deinit(&whole);
    kp_cl_text_deinit(&brief);
}

/* What does not compile is built again as it is, and says the same once. */
static void errors_are_those_of_the_whole(void **state)
{
    (void)state;
    struct kp_compiler *c = NULL;
    kopt_error err;
    struct kp_buf image = KP_BUF_INIT(IR_MAX);
    struct kp_buf log = KP_BUF_INIT(IR_MAX);
    assert_int_equal(kp_compiler_open(KP_BACKEND_OPENCL, 0, NULL, NULL, &c, &err), KOPT_OK);
    const struct kp_compile_job job = {
        .source = kp_str_from("\nkernel void k(global int *a)\n{\n    a[0] = nothing(3);\n}\n"),
        .path = "user.cl",
        .entry = "k"};
    assert_int_equal(kp_compile(c, &job, &image, &log, &err), KOPT_EINPUT);
    assert_int_equal(err.line, 4);
    assert_string_equal(err.file, "user.cl");
    assert_non_null(strstr(kp_buf_text(&log), "nothing"));
    kp_buf_deinit(&image);
    kp_buf_deinit(&log);
    kp_compiler_close(c);
}

static void a_tuned_value_cannot_be_undone(void **state)
{
    (void)state;
    static const char *const macros[] = {"UNROLL=4"};
    static const char *const options[] = {"-w"};
    static const char *const sources[] = {
        "#define UNROLL 1\nkernel void k(global int *a) { a[0] = UNROLL; }\n",
        "#ifndef UNROLL\n#define UNROLL 1\n#endif\n"
        "kernel void k(global int *a) { a[0] = UNROLL; }\n"};
    struct kp_compiler *c = NULL;
    kopt_error err;
    assert_int_equal(kp_compiler_open(KP_BACKEND_OPENCL, 0, NULL, NULL, &c, &err), KOPT_OK);
    for (int i = 0; i < 2; i++) {
        struct kp_buf image = KP_BUF_INIT(IR_MAX);
        const struct kp_compile_job job = {.source = kp_str_from(sources[i]),
                                           .path = "user.cl",
                                           .entry = "k",
                                           .macros = macros,
                                           .n_macros = 1,
                                           .options = options,
                                           .n_options = 1};
        assert_int_equal(kp_compile(c, &job, &image, NULL, &err), i ? KOPT_OK : KOPT_EINPUT);
        if (!i) {
            assert_int_equal(err.line, 1);
            assert_non_null(strstr(err.message, "UNROLL is defined again"));
        }
        kp_buf_deinit(&image);
    }
    kp_compiler_close(c);
}

int main(void)
{
    kopt_error err;
    if (kp_cl_lib_open(&LIB, NULL, &err) != KOPT_OK ||
        kp_cl_session_open(&S, &LIB, 0, &err) != KOPT_OK) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    if (!S.pocl) {
        printf("skipped: this is not PoCL\n");
        return 77;
    }
    kp_cl_builtins_open(&S, &B);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_is_the_same),
        cmocka_unit_test(the_examples_get_few),
        cmocka_unit_test(what_could_differ_is_left_as_it_is),
        cmocka_unit_test(messages_name_the_same_lines),
        cmocka_unit_test(errors_are_those_of_the_whole),
        cmocka_unit_test(a_tuned_value_cannot_be_undone),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kp_cl_builtins_close(&B);
    kp_cl_session_close(&S);
    kp_cl_lib_close(&LIB);
    return failed;
}
