/* SPDX-License-Identifier: MIT */
/* T1 files in Kernel Tuner's and in KTT's dialect. */
#include "base/alloc.h"
#include "os/file.h"
#include "space/kernel.h"
#include "support/test.h"

#include <unistd.h>

static const struct kp_limits LIMITS = {.max_threads = 1024, .shared_bytes = 49152, .warp = 32};

static const char *data_path(const char *name)
{
    static char path[4096];
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)snprintf(path, sizeof(path), "%s/tests/data/t1/%s", root ? root : ".", name);
    return path;
}

static struct kp_kernel *load(const char *path, bool need_source)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    if (kp_kernel_load(path, need_source, &k, &err) != KOPT_OK)
        fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
    return k;
}

static struct kp_bound *bind(const struct kp_kernel *k, const char *const *problem, size_t n)
{
    struct kp_bound *b = NULL;
    kopt_error err = {0};
    if (kp_kernel_bind(k, problem, n, &LIMITS, &b, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return b;
}

static void assert_geometry(const struct kp_bound *b, const char *want)
{
    char got[256];
    uint32_t config[KP_PARAMS_MAX];
    struct kp_geometry g;
    kopt_error err = {0};
    assert_true(kp_bound_default(b, config));
    if (kp_bound_geometry(b, config, &g, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    (void)snprintf(got, sizeof(got), "%d %d %d / %d %d %d / %d", (int)g.block[0],
                   (int)g.block[1], (int)g.block[2], (int)g.grid[0], (int)g.grid[1],
                   (int)g.grid[2], (int)g.shared_bytes);
    assert_string_equal(got, want);
}

static int64_t count_of(const struct kp_bound *b, size_t arg)
{
    uint32_t config[KP_PARAMS_MAX];
    int64_t n = 0;
    kopt_error err = {0};
    assert_true(kp_bound_default(b, config));
    assert_int_equal(kp_bound_arg_count(b, arg, config, &n, &err), KOPT_OK);
    return n;
}

static void collect_macro(void *user, const char *name, const char *text)
{
    kp_buf_addf(user, "%s=%s ", name, text);
}

static void kernel_tuners_dialect(void **state)
{
    static const char *const larger[] = {"problem_size_x=2000"};
    uint32_t config[KP_PARAMS_MAX];
    kopt_error err;
    struct kp_buf text = KP_BUF_INIT(1000);
    (void)state;
    struct kp_kernel *k = load(data_path("tuner.json"), true);
    assert_string_equal(k->name, "blur");
    assert_int_equal(k->lang, KP_LANG_CUDA);
    assert_non_null(strstr(k->source.ptr, "__global__ void blur"));
    assert_int_equal(k->n_flags, 2);
    assert_int_equal(k->n_rules, 3);
    assert_int_equal(k->rules[0].line, 12);
    assert_string_equal(k->rules[2].text,
                        "(block_size_x) * (block_size_y) <= device.max_threads");
    assert_int_equal(k->params[0].default_index, 1);  /* [32] */
    assert_int_equal(k->params[2].default_index, -1); /* 99 is not in the list */
    assert_int_equal(k->params[4].type, KP_FLOAT);
    struct kp_bound *b = bind(k, NULL, 0);
    /* Counted by hand: (bx, by) with 32 <= bx*by <= 512 are 5 + 5 + 4; of those, 64 % (bx*tx/2)
     * is 0 for every tx but bx=64, tx=4 (128): 3*5 + 3*5 + 2*4, times two scales. */
    assert_int_equal(kp_space_count(b->space), 2 * (15 + 15 + 8));
    assert_int_equal(count_of(b, 0), 600000);
    assert_int_equal(count_of(b, 1), 1002 * 602);
    assert_int_equal(count_of(b, 2), 9);
    assert_int_equal(k->args[0].dir, KP_DIR_OUT);
    assert_int_equal(k->args[1].fill, KP_FILL_UNIFORM);
    assert_int_equal(k->args[2].kind, KP_ARG_BUFFER);
    assert_int_equal(k->args[3].kind, KP_ARG_SCALAR);
    assert_true(kp_bound_default(b, config));
    assert_int_equal(kp_bound_macros(b, config, collect_macro, &text, &err), KOPT_OK);
    assert_string_equal(kp_buf_text(&text),
                        "block_size_x=32 block_size_y=4 tile_x=2 radius=3 scale=1.0 "
                        "kernel_tuner=1 grid_size_x=16 grid_size_y=150 block_size_z=1 "
                        "grid_size_z=1 ");
    /* ceil(1000 / (32 * 2)); GridDivY is missing: the block's own size divides */
    assert_geometry(b, "32 4 1 / 16 150 1 / 0");
    kp_bound_free(b);
    b = bind(k, larger, 1);
    assert_geometry(b, "32 4 1 / 32 150 1 / 0");
    kp_bound_free(b);
    kp_kernel_free(k);
    kp_buf_deinit(&text);
}

static void ktts_dialect(void **state)
{
    (void)state;
    struct kp_kernel *k = load(data_path("ktt.json"), false);
    assert_int_equal(k->lang, KP_LANG_OPENCL);
    assert_int_equal(k->source.len, 0);
    assert_int_equal(k->n_params, 5);
    assert_int_equal(k->params[0].type, KP_INT);
    assert_int_equal(k->params[1].type, KP_BOOL);
    assert_int_equal(k->params[2].type, KP_BOOL);
    assert_false(k->params[2].values[0].as.b);
    assert_int_equal(k->params[3].type, KP_STRING);
    assert_int_equal(k->params[4].default_index, 1);
    struct kp_bound *b = bind(k, NULL, 0);
    assert_int_equal(kp_space_count(b->space), 3 * 3 * 2 * 2);
    /* work-items over the group's size, rounded up; the middle value of WG is 32 */
    assert_geometry(b, "32 1 1 / 32 3 1 / 128");
    assert_int_equal(k->args[0].fill, KP_FILL_GENERATOR);
    assert_int_equal(k->args[1].elem, KP_F16);
    assert_int_equal(k->args[1].lanes, 4);
    assert_int_equal(k->args[1].dir, KP_DIR_INOUT);
    assert_int_equal(k->args[2].elem, KP_U8);
    assert_int_equal(count_of(b, 2), 120);
    assert_string_equal(k->args[2].fill_file, "data.bin");
    assert_int_equal(k->args[5].kind, KP_ARG_LOCAL);
    assert_int_equal(count_of(b, 5), 64);
    assert_int_equal(k->args[7].elem, KP_U16);
    assert_int_equal(k->n_checks, 3);
    assert_int_equal(k->checks[0].kind, KP_CHECK_FILL);
    assert_int_equal(k->checks[0].arg, 6);
    assert_float_equal(k->checks[0].atol->value.as.f, 0.01, 0);
    assert_float_equal(k->checks[0].rtol->value.as.f, 0, 0);
    assert_int_equal(k->checks[1].fill, KP_FILL_GENERATOR);
    assert_float_equal(k->checks[1].rtol->value.as.f, 0.001, 0);
    assert_int_equal(k->checks[2].kind, KP_CHECK_FILE);
    assert_float_equal(k->checks[2].rtol->value.as.f, 1e-2, 0);
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void scalars_and_generators_have_values(void **state)
{
    kopt_error err;
    struct kp_value v;
    (void)state;
    struct kp_kernel *k = load(data_path("ktt.json"), false);
    struct kp_bound *b = bind(k, NULL, 0);
    assert_int_equal(kp_bound_arg_value(b, 3, NULL, &v, &err), KOPT_OK);
    assert_int_equal(v.type, KP_INT);
    assert_int_equal(v.as.i, 1);
    assert_int_equal(kp_bound_arg_value(b, 4, NULL, &v, &err), KOPT_OK);
    assert_int_equal(v.as.i, INT64_C(5000000000));
    for (int64_t i = 0; i < 8; i++) {
        struct kp_env env = {b->values, b->known};
        b->values[k->slot_index] = kp_int(i);
        b->known[k->slot_index] = 1;
        assert_int_equal(kp_expr_eval(k->args[0].fill_a, &env, &v, NULL), KP_EVAL_VALUE);
        double got = 0;
        assert_true(kp_value_to_f64(v, &got));
        double want = i % 4 < 3 ? 1 + (double)(i / 4) * 0.1 : -1;
        assert_float_equal(got, want, 0);
    }
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void a_missing_source_matters_only_where_it_is_needed(void **state)
{
    struct kp_kernel *k = NULL;
    kopt_error err;
    (void)state;
    assert_int_equal(kp_kernel_load(data_path("ktt.json"), true, &k, &err), KOPT_EIO);
    assert_null(k);
    assert_non_null(strstr(err.message, "KernelFile"));
    assert_non_null(strstr(err.message, "missing.cl"));
}

/* A file with one thing changed in it. */
struct edit {
    const char *from;
    const char *to;
    const char *message;
};

static const char SMALL[] =
    "{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"B\",\"Type\":\"int\","
    "\"Values\":\"[1,2]\"}],\"Conditions\":[{\"Expression\":\"B > 0\"}]},"
    "\"KernelSpecification\":{\"Language\":\"CUDA\",\"KernelName\":\"k\",\"KernelFile\":\"k.cu\","
    "\"GlobalSize\":{\"X\":\"64\"},\"LocalSize\":{\"X\":\"B\"},\"Arguments\":["
    "{\"Name\":\"x\",\"Type\":\"float\",\"MemoryType\":\"Vector\",\"Size\":4,"
    "\"FillType\":\"Random\",\"AccessType\":\"ReadWrite\"}],\"ReferenceArguments\":["
    "{\"Name\":\"r\",\"TargetName\":\"x\",\"FillType\":\"Constant\",\"FillValue\":1,"
    "\"ValidationMethod\":\"AbsoluteDifference\",\"ValidationThreshold\":0.5}]}}";

static void edit(char *out, size_t size, const struct edit *e)
{
    const char *at = strstr(SMALL, e->from);
    assert_non_null(at);
    (void)snprintf(out, size, "%.*s%s%s", (int)(at - SMALL), SMALL, e->to,
                   at + strlen(e->from));
}

static void wrong_files_get_one_clear_line(void **state)
{
    static const struct edit edits[] = {
        {"\"KernelName\":\"k\",", "", "'KernelName' is missing"},
        {"\"KernelFile\":\"k.cu\",", "", "'KernelFile' is missing"},
        {"\"Language\":\"CUDA\"", "\"Language\":\"HIP\"", "Language 'HIP'"},
        {"\"GlobalSize\":{\"X\":\"64\"},", "", "neither 'ProblemSize' nor 'GlobalSize'"},
        {"\"X\":\"64\"", "\"X\":\"Q\"", "GlobalSize.X: unknown name 'Q'"},
        {"\"X\":\"B\"", "\"X\":\"Q\"", "LocalSize.X: unknown name 'Q'"},
        {"\"Type\":\"int\"", "\"Type\":\"short\"", "unknown type 'short'"},
        {"[1,2]", "[1,2]+", "a list expected"},
        {"[1,2]", "[1,2] x", "the end of the list expected"},
        {"[1,2]", "[1,1]", "stands in the list twice"},
        {"[1,2]", "[1.5]", "the value 1.5 is no int"},
        {"\"Name\":\"B\"", "\"Name\":\"in\"", "'in' cannot be a name"},
        {"\"B > 0\"", "\"B > open('x')\"", "unknown function 'open'"},
        {"\"B > 0\"", "7", "Conditions[0]: 'Expression': string expected"},
        {"\"Type\":\"float\"", "\"Type\":\"float5\"", "Arguments[0]: unknown type 'float5'"},
        {"\"MemoryType\":\"Vector\"", "\"MemoryType\":\"Symbol\"", "a symbol is not supported"},
        {"\"MemoryType\":\"Vector\"", "\"MemoryType\":\"Texture\"", "MemoryType 'Texture'"},
        {"\"Size\":4,", "", "Arguments[0]: 'Size' is missing"},
        {"\"Size\":4,", "\"Size\":\"B\",", "must not depend on a parameter"},
        {"\"FillType\":\"Random\"", "\"FillType\":\"Script\"", "FillType 'Script'"},
        {"\"AccessType\":\"ReadWrite\"", "\"AccessType\":\"Append\"", "AccessType 'Append'"},
        {"\"AccessType\":\"ReadWrite\"", "\"AccessType\":\"ReadOnly\"", "the target 'x'"},
        {"\"TargetName\":\"x\"", "\"TargetName\":\"z\"", "no argument is named 'z'"},
        {"AbsoluteDifference", "Guess", "unknown ValidationMethod 'Guess'"},
        {"0.5", "\"0.5\"", "'ValidationThreshold': number expected"},
        {"{\"X\":\"B\"}", "64", "'LocalSize' must be an object with X, Y and Z, found integer"},
        {"{\"X\":\"B\"}", "\"B\"", "'LocalSize' must be an object"},
        {"{\"X\":\"64\"}", "[64,1,1]", "'GlobalSize' must be an object"},
        {"{\"X\":\"64\"}", "null", "neither 'ProblemSize' nor 'GlobalSize'"},
        {"\"X\":\"64\"", "\"X\":[64]", "GlobalSize.X: a number, boolean or string expected"},
        {"\"LocalSize\"", "\"ProblemSize\":64,\"GridDivX\":[true],\"LocalSize\"",
         "GridDivX[0]: a string or a number expected, found boolean"},
        {"\"LocalSize\"", "\"ProblemSize\":64,\"GridDivX\":{},\"LocalSize\"",
         "GridDivX[0]: a string or a number expected, found object"},
        {"\"LocalSize\"", "\"ProblemSize\":64,\"GridDivY\":[\"Q\"],\"LocalSize\"",
         "GridDiv.Y: unknown name 'Q'"},
        {"\"Arguments\":[", "\"Arguments\":\"x\",\"Other\":[", "'Arguments' must be an array"},
        {"\"ReferenceArguments\":[", "\"ReferenceArguments\":7,\"Other\":[",
         "'ReferenceArguments' must be an array"},
    };
    char text[2048];
    struct kp_kernel *k = NULL;
    kopt_error err;
    (void)state;
    assert_int_equal(kp_kernel_parse("t.json", KP_STR(SMALL), &k, &err), KOPT_OK);
    kp_kernel_free(k);
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        edit(text, sizeof(text), &edits[i]);
        kopt_status st = kp_kernel_parse("t.json", kp_str_from(text), &k, &err);
        if (st != KOPT_EINPUT || !strstr(err.message, edits[i].message))
            fail_msg("%s: status %d, '%s'", edits[i].to, (int)st, err.message);
        assert_string_equal(err.file, "t.json");
        if (err.line == 0) /* the command shows the place of what has one */
            assert_int_equal(strncmp(err.message, "t.json: ", 8), 0);
        assert_null(k);
    }
}

static void block_sizes_default_as_in_kernel_tuner(void **state)
{
    static const struct {
        struct edit e;
        const char *geometry;
    } cases[] = {
        {{"\"GlobalSize\"", "\"ProblemSize\":1000,\"GlobalSize\"", ""}, "1 1 1 / 1000 1 1 / 0"},
        {{"\"LocalSize\":{\"X\":\"B\"},", "\"ProblemSize\":[1000],", ""},
         "256 1 1 / 1000 1 1 / 0"},
        {{"\"X\":\"B\"", "\"X\":\"block_size_x\"", ""}, "256 1 1 / 64 1 1 / 0"},
        {{"\"GlobalSize\"", "\"GlobalSizeType\":\"OpenCL\",\"GlobalSize\"", ""},
         "1 1 1 / 64 1 1 / 0"},
        {{"\"GlobalSize\"", "\"GlobalSizeType\":\"Vulkan\",\"SharedMemory\":16,\"GlobalSize\"",
          ""},
         "1 1 1 / 64 1 1 / 16"},
        {{"\"GlobalSize\"", "\"GridDivX\":32,\"ProblemSize\":1000,\"GlobalSize\"", ""},
         "1 1 1 / 32 1 1 / 0"},
        {{"\"GlobalSize\"",
          "\"GridDivX\":[\"B  # a comment\",8],\"ProblemSize\":1000,\"GlobalSize\"", ""},
         "1 1 1 / 125 1 1 / 0"},
        {{"\"X\":\"B\"", "\"X\":\"B # a comment\",\"Y\":2", ""}, "1 2 1 / 64 1 1 / 0"},
        {{"\"GlobalSize\"", "\"GridDivX\":\"B\",\"ProblemSize\":[\"9\"],\"GlobalSize\"", ""},
         "1 1 1 / 9 1 1 / 0"},
    };
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kp_kernel *k = NULL;
        kopt_error err;
        edit(text, sizeof(text), &cases[i].e);
        if (kp_kernel_parse("t.json", kp_str_from(text), &k, &err) != KOPT_OK)
            fail_msg("%s: %s", cases[i].e.to, err.message);
        struct kp_bound *b = bind(k, NULL, 0);
        assert_geometry(b, cases[i].geometry);
        kp_bound_free(b);
        kp_kernel_free(k);
    }
}

static void unroll_factors_become_macros(void **state)
{
    static const char source[] = "\t# pragma  unroll loop_unroll_factor_t  // four\n"
                                 "for (;;) ;\n"
                                 "#pragma unroll (loop_unroll_factor_x)\n"
                                 "#pragma unroll loop_unroll_factor_other\n"
                                 "#pragma unroll BX\n"
                                 "#pragma unrolled loop_unroll_factor_t\n"
                                 "int last = loop_unroll_factor_t;";
    static const char want[] = "\tkopt_unroll_loop_unroll_factor_t  // four\n"
                               "for (;;) ;\n"
                               "kopt_unroll_loop_unroll_factor_x\n"
                               "#pragma unroll loop_unroll_factor_other\n"
                               "#pragma unroll BX\n"
                               "#pragma unrolled loop_unroll_factor_t\n"
                               "int last = loop_unroll_factor_t;";
    static const char t1[] =
        "{\"ConfigurationSpace\":{\"TuningParameters\":["
        "{\"Name\":\"BX\",\"Type\":\"int\",\"Values\":\"[8]\"},"
        "{\"Name\":\"loop_unroll_factor_t\",\"Type\":\"int\",\"Values\":\"[4]\"},"
        "{\"Name\":\"loop_unroll_factor_x\",\"Type\":\"int\",\"Values\":\"[0]\"}]},"
        "\"KernelSpecification\":{\"Language\":\"CUDA\",\"KernelName\":\"k\","
        "\"KernelFile\":\"unroll.cu\",\"GlobalSize\":{\"X\":\"64\"}}}";
    static const uint32_t config[3] = {0, 0, 0};
    struct kp_buf text = KP_BUF_INIT(1000);
    kopt_error err;
    (void)state;
    assert_int_equal(kp_file_put("unroll.json", t1, sizeof(t1) - 1, &err), KOPT_OK);
    assert_int_equal(kp_file_put("unroll.cu", source, sizeof(source) - 1, &err), KOPT_OK);
    struct kp_kernel *k = load("unroll.json", true);
    assert_true(k->unrolls);
    assert_string_equal(k->source.ptr, want);
    assert_int_equal(k->source.len, strlen(want));
    struct kp_bound *b = bind(k, NULL, 0);
    assert_int_equal(kp_bound_macros(b, config, collect_macro, &text, &err), KOPT_OK);
    assert_string_equal(kp_buf_text(&text),
                        "BX=8 loop_unroll_factor_t=4 "
                        "kopt_unroll_loop_unroll_factor_t=_Pragma(\"unroll 4\") "
                        "loop_unroll_factor_x=0 kopt_unroll_loop_unroll_factor_x= ");
    kp_bound_free(b);
    kp_kernel_free(k);
    kp_buf_deinit(&text);
    (void)unlink("unroll.json");
    (void)unlink("unroll.cu");
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    for (long n = 1; n < 20000; n++) {
        struct kp_kernel *k = NULL;
        kopt_error err = {0};
        kp_alloc_fail_at(n);
        kopt_status st = kp_kernel_load(data_path("tuner.json"), true, &k, &err);
        kp_alloc_fail_at(0);
        kp_kernel_free(k);
        if (st == KOPT_OK)
            return;
        if (st != KOPT_ENOMEM)
            fail_msg("allocation %ld: %d %s", n, (int)st, err.message);
    }
    fail_msg("it never passed");
}

/* Published files, where they are at hand. */
static void published_files_load_and_count(void **state)
{
    static const struct {
        const char *name;
        uint64_t count;
        double cartesian;
    } files[] = {
        {"convolution.json", 6768, 16896},        {"convolution_milo.json", 4362, 10240},
        {"dedispersion_milo.json", 11130, 22272}, {"gemm_milo.json", 116928, 663552},
        {"hotspot_milo.json", 82984, 4440000},    {"pnpoly.json", 4092, 4092},
        {"ktt_coulomb_sum_3d.json", 210, 672},
    };
    char path[4096];
    const char *folder = getenv("KOPT_SHARED_DATA");
    const char *root = getenv("KOPT_SOURCE_DIR");
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (folder)
            (void)snprintf(path, sizeof(path), "%s/t1/%s", folder, files[i].name);
        else
            (void)snprintf(path, sizeof(path), "%s/../shared/data/t1/%s", root ? root : ".",
                           files[i].name);
        if (access(path, R_OK) != 0) {
            (void)printf("%s is not there\n", path);
            skip();
        }
        struct kp_kernel *k = load(path, false);
        struct kp_bound *b = bind(k, NULL, 0);
        assert_int_equal(kp_space_count(b->space), files[i].count);
        assert_float_equal(kp_space_cartesian(b->space), files[i].cartesian, 0);
        kp_bound_free(b);
        kp_kernel_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_tuners_dialect),
        cmocka_unit_test(ktts_dialect),
        cmocka_unit_test(scalars_and_generators_have_values),
        cmocka_unit_test(a_missing_source_matters_only_where_it_is_needed),
        cmocka_unit_test(wrong_files_get_one_clear_line),
        cmocka_unit_test(block_sizes_default_as_in_kernel_tuner),
        cmocka_unit_test(unroll_factors_become_macros),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(published_files_load_and_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
