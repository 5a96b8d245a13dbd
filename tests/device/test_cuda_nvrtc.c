/* SPDX-License-Identifier: MIT */
/* Compiling CUDA C with the NVRTC of this machine; no GPU is needed. Exit 77 without NVRTC. */
#include "base/alloc.h"
#include "device/cuda/image.h"
#include "device/cuda/impl.h"
#include "device/device.h"
#include "os/file.h"
#include "support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char SCALE[] = "__global__ void scale(float *x, int n)\n"
                            "{\n"
                            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "    if (i < n)\n"
                            "        x[i] *= FACTOR;\n"
                            "}\n";

struct fixture {
    struct kp_compiler *c;
    struct kp_buf image;
    struct kp_buf log;
    kopt_error err;
};

static int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    f.image = KP_BUF_INIT(64 << 20);
    f.log = KP_BUF_INIT(1 << 20);
    *state = &f;
    return kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &f.c, &f.err);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kp_compiler_close(f->c);
    kp_buf_deinit(&f->image);
    kp_buf_deinit(&f->log);
    return 0;
}

static kopt_status compile(struct fixture *f, const struct kp_compile_job *job)
{
    kp_buf_clear(&f->image);
    kp_buf_clear(&f->log);
    memset(&f->err, 0, sizeof(f->err));
    kopt_status st = kp_compile(f->c, job, &f->image, &f->log, &f->err);
    if (st == KOPT_OK)
        assert_true(f->image.len > 0);
    else
        assert_int_equal(f->err.code, st);
    return st;
}

static void assert_compiles(struct fixture *f, const struct kp_compile_job *job)
{
    if (compile(f, job) != KOPT_OK)
        fail_msg("%s (line %d of %s)", f->err.message, f->err.line, f->err.file);
}

static kopt_status compile_text(struct fixture *f, const char *source, const char *entry)
{
    struct kp_compile_job job = {
        .source = kp_str_from(source), .path = "/some where/k.cu", .entry = entry};
    return compile(f, &job);
}

static void assert_text_compiles(struct fixture *f, const char *source, const char *entry)
{
    if (compile_text(f, source, entry) != KOPT_OK)
        fail_msg("%s (line %d of %s)", f->err.message, f->err.line, f->err.file);
}

static kopt_status compile_with(struct fixture *f, const char *const *options, size_t n)
{
    struct kp_compile_job job = {.source = KP_STR("__global__ void k(int *a) { a[0] = 1; }\n"),
                                 .path = "k.cu",
                                 .entry = "k",
                                 .options = options,
                                 .n_options = n};
    return compile(f, &job);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in \"%s\"", part, text);
}

/* --- good kernels ---------------------------------------------------------------------- */

static struct kp_cuda_image parsed(const struct fixture *f)
{
    struct kp_cuda_image image;
    assert_true(kp_cuda_image_parse(f->image.ptr, f->image.len, &image));
    return image;
}

static void a_kernel_becomes_an_image_with_its_name_and_resources(void **state)
{
    struct fixture *f = *state;
    const char *macros[] = {"FACTOR=3", "UNUSED"};
    struct kp_compile_job job = {.source = kp_str_from(SCALE),
                                 .path = "scale.cu",
                                 .entry = "scale",
                                 .macros = macros,
                                 .n_macros = 2};
    assert_compiles(f, &job);
    struct kp_cuda_image image = parsed(f);
    assert_string_equal(image.entry, "scale");
    assert_string_equal(image.lowered, "_Z5scalePfi");
    assert_in_range(image.resources.registers, 4, 255);
    assert_int_equal(image.resources.shared_bytes, 0);
    assert_int_equal(image.resources.stack_bytes, 0);
    assert_int_equal(f->log.len, 0);
}

static void the_same_input_gives_the_same_image(void **state)
{
    struct fixture *f = *state;
    struct kp_buf first = KP_BUF_INIT(64 << 20);
    assert_int_equal(compile_text(f, "__global__ void k(int *a) { a[0] = 1; }", "k"), KOPT_OK);
    kp_buf_add(&first, f->image.ptr, f->image.len);
    assert_int_equal(compile_text(f, "__global__ void k(int *a) { a[0] = 1; }", "k"), KOPT_OK);
    assert_int_equal(first.len, f->image.len);
    assert_memory_equal(first.ptr, f->image.ptr, first.len);
    kp_buf_deinit(&first);
}

static void names_are_found_whatever_their_linkage(void **state)
{
    static const struct {
        const char *source;
        const char *entry;
        const char *lowered;
    } CASES[] = {
        {"extern \"C\" __global__ void k(int *a) { a[0] = 1; }", "k", "k"},
        {"static __global__ void k(int *a) { a[0] = 1; }", "k", "_Z1kPi"},
        {"template <class T, int N> __global__ void k(T *a) { a[0] = N; }", "k<float, 4>",
         "_Z1kIfLi4EEvPT_"},
        {"namespace n { __global__ void k(int *a) { a[0] = 1; } }", "n::k", "_ZN1n1kEPi"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        assert_text_compiles(f, CASES[i].source, CASES[i].entry);
        assert_string_equal(parsed(f).lowered, CASES[i].lowered);
    }
}

static void resources_are_those_of_the_entry(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        compile_text(f,
                     "__global__ void other(int *a) { a[0] = 1; }\n"
                     "__global__ void k(float *a) {\n"
                     "  __shared__ float s[300]; float x[200];\n"
                     "  for (int i = 0; i < 200; i++) x[i] = a[i];\n"
                     "  s[threadIdx.x] = a[7]; __syncthreads();\n"
                     "  a[0] = x[threadIdx.x + (int)a[3]] + s[threadIdx.x ^ 3]; }\n",
                     "k"),
        KOPT_OK);
    struct kp_cuda_image image = parsed(f);
    assert_int_equal(image.resources.shared_bytes, 1200);
    assert_int_equal(image.resources.stack_bytes, 800);
}

static void common_headers_are_there(void **state)
{
    struct fixture *f = *state;
    assert_text_compiles(
        f,
        "#include <stdint.h>\n#include <cstdint>\n#include <math.h>\n"
        "#include <float.h>\n#include <limits.h>\n#include <stddef.h>\n"
        "#include <stdio.h>\n#include <cstdlib>\n#include <assert.h>\n"
        "struct s { int a; double b; };\n"
        "__global__ void k(uint64_t *u, float *x) {\n"
        "  static_assert(sizeof(int64_t) == 8 && sizeof(std::uint8_t) == 1, \"\");\n"
        "  static_assert(INT32_MAX == INT_MAX, \"\"); u[1] = offsetof(s, b);\n"
        "  u[0] = UINT64_MAX; x[0] = INFINITY; x[1] = NAN; x[2] = M_PI;\n"
        "  x[3] = FLT_MAX; assert(x != nullptr); printf(\"%f\", x[0]); }\n",
        "k");
    assert_int_equal(f->log.len, 0);
}

static void cuda_headers_are_found_where_they_are_installed(void **state)
{
    struct fixture *f = *state;
    const char *source = "#include <stdint.h>\n"
                         "#include <cuda_fp16.h>\n"
                         "#include <cuda_bf16.h>\n"
                         "#include <cuda_runtime.h>\n"
                         "__global__ void k(__half *a, __nv_bfloat16 *b) {\n"
                         "  a[0] = __hadd(a[1], a[2]); b[0] = __hadd(b[1], b[2]); }\n";
    if (!kp_file_exists("/usr/local/cuda/include/cuda_fp16.h"))
        skip();
    assert_text_compiles(f, source, "k");
    if (kp_file_exists("/usr/local/cuda/include/cccl/cuda/std/cstdint"))
        assert_int_equal(compile_text(f,
                                      "#include <stdint.h>\n#include <cuda/std/cstdint>\n"
                                      "__global__ void k(uint64_t *a) { a[0] = 1; }\n",
                                      "k"),
                         KOPT_OK);
}

/* A folder whose name has blanks and letters outside ASCII, with a header in it. */
static char *awkward_folder(const char *header, const char *text)
{
    kopt_error err;
    char *root = NULL;
    assert_int_equal(kp_dir_temp("kopt-test", &root, &err), KOPT_OK);
    char *dir = kp_path_join(root, "ä b (1) 漢");
    char *file = kp_path_join(dir, header);
    assert_true(make_folder(dir));
    assert_int_equal(kp_file_put(file, text, strlen(text), &err), KOPT_OK);
    kp_free(file);
    kp_free(root);
    return dir;
}

static void remove_awkward(char *dir)
{
    char *root = kp_path_dir(dir);
    kp_dir_remove(root);
    kp_free(root);
    kp_free(dir);
}

static void includes_are_looked_for_beside_the_source(void **state)
{
    struct fixture *f = *state;
    char *dir = awkward_folder("limits.h", "#define MINE 7\n");
    char *path = kp_path_join(dir, "k ü.cu");
    const char *options[] = {"-I", "../ä b (1) 漢", "-I../nowhere", "--include-path=."};
    struct kp_compile_job job = {
        .source = KP_STR("#include \"limits.h\"\n__global__ void k(int *a) { a[0] = MINE; }\n"),
        .path = path,
        .entry = "k"};
    assert_compiles(f, &job);

    job.source = KP_STR("#include <limits.h>\n__global__ void k(int *a) { a[0] = MINE; }\n");
    job.options = options;
    job.n_options = 4;
    assert_compiles(f, &job);
    kp_free(path);
    remove_awkward(dir);
}

static int compiled_calls;
static size_t image_bytes_then;

static void count_compiled(void *user)
{
    const struct fixture *f = user;
    compiled_calls++;
    image_bytes_then = f->image.len;
}

static void compiled_is_called_once_with_the_image_complete(void **state)
{
    struct fixture *f = *state;
    struct kp_compile_job job = {.source = KP_STR("__global__ void k(int *a) { a[0] = 1; }"),
                                 .entry = "k",
                                 .compiled = count_compiled,
                                 .user = f};
    compiled_calls = 0;
    assert_compiles(f, &job);
    assert_int_equal(compiled_calls, 1);
    assert_int_equal(image_bytes_then, f->image.len);
    job.source = KP_STR("nonsense");
    assert_int_equal(compile(f, &job), KOPT_EINPUT);
    assert_int_equal(compiled_calls, 1);
}

static void a_byte_order_mark_does_no_harm(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        compile_text(f, "\xEF\xBB\xBF__global__ void k(int *a) { a[0] = 1; }\r\n", "k"),
        KOPT_OK);
}

/* --- bad kernels ----------------------------------------------------------------------- */

static void errors_carry_the_users_position(void **state)
{
    struct fixture *f = *state;
    const char *macros[] = {"A=1", "B=2", "C=3"};
    struct kp_compile_job job = {.source = KP_STR("// first\n"
                                                  "__global__ void k(float *a)\n"
                                                  "{\n"
                                                  "\t/* größer */ a[0] = zz;\n"
                                                  "}\n"),
                                 .path = "/tmp/some where/é (2).cu",
                                 .entry = "k",
                                 .macros = macros,
                                 .n_macros = 3};
    assert_int_equal(compile(f, &job), KOPT_EINPUT);
    assert_string_equal(f->err.message, "identifier \"zz\" is undefined");
    assert_string_equal(f->err.file, job.path);
    assert_int_equal(f->err.line, 4);
    assert_int_equal(f->err.column, 22); /* the tab is one, ö and ß are one each */
    assert_string_equal(f->err.excerpt, " /* größer */ a[0] = zz;");
    assert_has(kp_buf_text(&f->log), "/tmp/some where/é (2).cu(4): error: identifier");
    assert_int_equal(f->image.len, 0);
}

static void an_error_in_a_header_is_where_the_header_is(void **state)
{
    struct fixture *f = *state;
    char *dir = awkward_folder("own.h", "#define X 1\n#error \"no such tile\"\n");
    char *path = kp_path_join(dir, "k.cu");
    char *header = kp_path_join(dir, "own.h");
    struct kp_compile_job job = {.source = KP_STR("#include \"own.h\"\n"
                                                  "__global__ void k(int *a) { a[0] = X; }\n"),
                                 .path = path,
                                 .entry = "k"};
    assert_int_equal(compile(f, &job), KOPT_EINPUT);
    assert_has(f->err.message, "no such tile");
    assert_string_equal(f->err.file, header);
    assert_int_equal(f->err.line, 2);
    kp_free(path);
    kp_free(header);
    remove_awkward(dir);
}

static void each_kind_of_bad_source_is_explained(void **state)
{
    static const struct {
        const char *source;
        const char *message;
        const char *hint;
    } CASES[] = {
        {"", "there is no kernel k in /some where/k.cu", ""},
        {"__global__ void other(int *a) { }", "there is no kernel k", ""},
        {"template <int N> __global__ void k(int *a) { }", "kernel k is a template",
         "k<float>"},
        {"__global__ void k(int *a) { }\n__global__ void k(float *a) { }", "several kernels k",
         ""},
        {"__device__ void k(int *a) { }", "k in /some where/k.cu is no __global__ function",
         ""},
        {"__device__ int k;", "is no __global__ function", ""},
        {"#include <no_such_header.h>\n", "no_such_header.h", "-I"},
        {"int main() { return 0; }\n__global__ void k() { }", "host function",
         "__CUDACC_RTC__"},
        {"static_assert(3 > 4, \"tile\");\n__global__ void k() { }", "tile", ""},
        {"__global__ void k(float *a) { asm(\"foo.bar;\"); }", "Unknown modifier", ""},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        assert_int_equal(compile_text(f, CASES[i].source, "k"), KOPT_EINPUT);
        assert_has(f->err.message, CASES[i].message);
        assert_has(f->err.hint, CASES[i].hint);
        assert_has_not(kp_buf_text(&f->log), "__nv_name_map");
    }
}

static void limits_are_told_with_their_numbers(void **state)
{
    static const struct {
        const char *source;
        const char *message;
    } CASES[] = {
        {"__global__ void k(float *a) { __shared__ float s[100000]; s[threadIdx.x] = a[1];\n"
         "  __syncthreads(); a[0] = s[3 - threadIdx.x]; }",
         "static shared memory 400000 of 49152 bytes"},
        {"__constant__ float c[20000];\n"
         "__global__ void k(float *a) { a[0] = c[threadIdx.x]; }",
         "global constant data 80000 of 65536 bytes"},
        {"struct big { char c[40000]; };\n"
         "__global__ void k(big b, char *a) { a[0] = b.c[threadIdx.x]; }",
         "parameter space 40008 of 32764 bytes"},
        {"__global__ void k(float *a) { float x[200000];\n"
         "  for (int i = 0; i < 200000; i++) x[i] = a[i];\n"
         "  a[0] = x[threadIdx.x + (int)a[3]]; }",
         "local memory of a thread 800000 of 524288 bytes"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        assert_int_equal(compile_text(f, CASES[i].source, "k"), KOPT_ERANGE);
        assert_has(f->err.message, CASES[i].message);
        assert_int_equal(f->image.len, 0);
    }
}

static void a_macro_that_the_source_defines_again_is_refused(void **state)
{
    struct fixture *f = *state;
    const char *macros[] = {"BM=64", "BN=32"};
    struct kp_compile_job job = {.source =
                                     KP_STR("#define OTHER 1\n"
                                            "#define BN 16\n"
                                            "__global__ void k(int *a) { a[0] = BM * BN; }"),
                                 .path = "k.cu",
                                 .entry = "k",
                                 .macros = macros,
                                 .n_macros = 2};
    const char *quiet[] = {"-w"};
    job.options = quiet;
    job.n_options = 1;
    assert_int_equal(compile(f, &job), KOPT_EINPUT); /* whatever is asked for */
    job.n_options = 0;
    assert_int_equal(compile(f, &job), KOPT_EINPUT);
    assert_has(f->err.message, "macro BN is defined again");
    assert_has(f->err.hint, "#ifndef BN");
    assert_int_equal(f->err.line, 2);

    job.source = KP_STR("#ifndef BN\n#define BN 16\n#endif\n#define OTHER 1\n#undef OTHER\n"
                        "#define OTHER 2\n__global__ void k(int *a) { a[0] = BM * BN; }");
    assert_compiles(f, &job);
}

static void macros_must_be_macros(void **state)
{
    static const char *const BAD[] = {"1X=2", "", "=3", "A B=1", "A=1\n#error no", "F(x"};
    struct fixture *f = *state;
    const char *good[] = {"F(x, y)=((x) + (y))", "EMPTY=", "FLAG", "TEXT=\"a b\""};
    struct kp_compile_job job = {
        .source = KP_STR("__global__ void k(int *a) { EMPTY a[0] = F(1, 2) + FLAG;\n"
                         "  static_assert(sizeof(TEXT) == 4, \"\"); }"),
        .entry = "k",
        .macros = good,
        .n_macros = 4};
    assert_compiles(f, &job);
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        job.macros = &BAD[i];
        job.n_macros = 1;
        assert_int_equal(compile(f, &job), KOPT_EUSAGE);
    }
}

static void warnings_are_kept_but_not_those_about_our_pragmas(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(compile_text(f,
                                  "#pragma kopt kernel k\n"
                                  "  #  pragma  kopt param BM {1, 2}\n"
                                  "#pragma unrol 4\n"
                                  "__global__ void k(int *a) { int unused; a[0] = 1; }\n",
                                  "k"),
                     KOPT_OK);
    assert_has(kp_buf_text(&f->log), "variable \"unused\" was declared");
    assert_has(kp_buf_text(&f->log), "#pragma unrol 4");
    assert_has_not(kp_buf_text(&f->log), "kopt");
    assert_has_not(kp_buf_text(&f->log), "ptxas");
    assert_has_not(kp_buf_text(&f->log), "Remark");
}

static void names_that_are_none_are_refused(void **state)
{
    static const char *const BAD[] = {"", "k\n", "k(", "1k", "k;", "x y"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
        assert_int_equal(compile_text(f, "__global__ void k(int *a) { a[0] = 1; }", BAD[i]),
                         KOPT_EINPUT);
}

/* --- options --------------------------------------------------------------------------- */

static void options_of_nvcc_are_understood(void **state)
{
    static const char *const GOOD[] = {"-O3",
                                       "-lineinfo",
                                       "-use_fast_math",
                                       "-Xcompiler",
                                       "-fPIC",
                                       "-Xptxas=-O1,-v",
                                       "-Xptxas",
                                       "-O2",
                                       "-std=c++20",
                                       "-D",
                                       "X=1",
                                       "-DY=2",
                                       "-UZ",
                                       "-maxrregcount",
                                       "32",
                                       "--gpu-architecture=sm_90a",
                                       "-diag-suppress",
                                       "177",
                                       "-fmad=false"};
    struct fixture *f = *state;
    struct kp_compile_job job = {
        .source = KP_STR("static_assert(__cplusplus >= 202002L && X + Y == 3, \"\");\n"
                         "#if !__CUDA_ARCH_FEAT_SM90_ALL\n#error \"not sm_90a\"\n#endif\n"
                         "__global__ void k(int *a) { int unused; a[0] = 1; }\n"),
        .path = "k.cu",
        .entry = "k",
        .options = GOOD,
        .n_options = sizeof(GOOD) / sizeof(GOOD[0])};
    assert_compiles(f, &job);
    assert_has(kp_buf_text(&f->log), "kopt: -O3 is left out");
    assert_has(kp_buf_text(&f->log), "kopt: -Xcompiler is left out");
    assert_has(kp_buf_text(&f->log), "registers"); /* -v was asked for */
    assert_has_not(kp_buf_text(&f->log), "unused");
}

static void the_standard_is_17_unless_asked_for_otherwise(void **state)
{
    struct fixture *f = *state;
    const char *options[] = {"--std=c++14"};
    struct kp_compile_job job = {.source =
                                     KP_STR("static_assert(__cplusplus == 201703L, \"\");\n"
                                            "__global__ void k(int *a) { a[0] = 1; }\n"),
                                 .entry = "k"};
    assert_compiles(f, &job);
    job.options = options;
    job.n_options = 1;
    assert_int_equal(compile(f, &job), KOPT_EINPUT);
}

static void options_that_cannot_work_are_explained(void **state)
{
    static const struct {
        const char *option;
        const char *message;
    } CASES[] = {{"-Xptxas", "-Xptxas needs a value"},
                 {"-I", "-I needs a value"},
                 {"-maxrregcount", "-maxrregcount needs a value"},
                 {"-maxrregcount=many", "maxrregcount"},
                 {"-gencode=arch=compute_90,code=sm_90", "cannot be used here"},
                 {"-dlto", "cannot be used here"},
                 {"-arch=sm_80", "the device is sm_90"},
                 {"-arch=sm_900", "the device is sm_90"},
                 {"-arch=native", "the device is sm_90"},
                 {"-no-such-option", "-no-such-option"},
                 {"--std=c++99", "std"},
                 {"-Xptxas=-foo", "foo"},
                 {"-include=no_such.h", "no_such.h"},
                 {"file.cu", "does not begin with '-'"},
                 {"", "does not begin with '-'"}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        assert_int_equal(compile_with(f, &CASES[i].option, 1), KOPT_EINPUT);
        assert_has(f->err.message, CASES[i].message);
    }
}

/* --- opening --------------------------------------------------------------------------- */

static void architectures_are_checked(void **state)
{
    static const char *const WRONG[] = {
        "", "sm_", "90", "compute_90", "sm_90x", "sm_90aa", "sm_-1", "sm_99999999999999999999"};
    struct kp_compiler *c;
    kopt_error err;
    (void)state;
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, WRONG[i], NULL, &c, &err),
                         KOPT_EUSAGE);
        assert_null(c);
    }
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_20", NULL, &c, &err), KOPT_EENV);
    assert_has(err.message, "makes no code for sm_20");
    assert_has(err.message, "NVRTC ");
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90a", NULL, &c, &err), KOPT_OK);
    kp_compiler_close(c);
}

static void the_version_is_told(void **state)
{
    struct fixture *f = *state;
    int major = 0;
    int minor = -1;
    assert_int_equal(sscanf(kp_compiler_version(f->c), "NVRTC %d.%d", &major, &minor), 2);
    assert_true(major >= 11 && minor >= 0);
}

static void the_library_is_found_by_file_or_folder(void **state)
{
    struct kp_compiler *c;
    kopt_error err;
    (void)state;
    assert_int_equal(setenv("KOPT_NVRTC_LIBRARY", "/no/such/libnvrtc.so", 1), 0);
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err), KOPT_EENV);
    assert_null(c);
    assert_has(err.message, "NVRTC: ");
    assert_has(err.message, "/no/such/libnvrtc.so");
    assert_has(err.hint, "install");

    assert_int_equal(setenv("KOPT_NVRTC_LIBRARY", "/", 1), 0);
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err), KOPT_EENV);
    assert_has(err.message, "named by KOPT_NVRTC_LIBRARY");

    assert_int_equal(setenv("KOPT_NVRTC_LIBRARY", "libm.so.6", 1), 0);
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err), KOPT_EENV);
    assert_has(err.message, "libm.so.6 has no function nvrtcVersion");

    if (kp_file_exists("/usr/local/cuda/lib64/libnvrtc.so")) {
        assert_int_equal(setenv("KOPT_NVRTC_LIBRARY", "/usr/local/cuda", 1), 0);
        assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err),
                         KOPT_OK);
        kp_compiler_close(c);
    }
    assert_int_equal(unsetenv("KOPT_NVRTC_LIBRARY"), 0);
}

static void the_library_is_found_as_python_packages_it(void **state)
{
    static const char REAL[] = "/usr/local/cuda/lib64/libnvrtc.so.13";
    static const char *const LAYOUTS[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
    (void)state;
    if (!kp_file_exists(REAL))
        skip();
    for (int i = 0; i < 2; i++) {
        struct kp_compiler *c;
        kopt_error err;
        char *root = awkward_folder("unused", "");
        char *lib = kp_path_join(root, LAYOUTS[i]);
        char *file = kp_path_join(lib, "libnvrtc.so.13");
        assert_true(make_folder(lib));
        assert_int_equal(symlink(REAL, file), 0);
        assert_int_equal(setenv("KOPT_NVRTC_LIBRARY", root, 1), 0);
        assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err),
                         KOPT_OK);
        kp_compiler_close(c);
        assert_int_equal(unsetenv("KOPT_NVRTC_LIBRARY"), 0);
        assert_int_equal(unlink(file), 0);
        for (char *end = lib + strlen(lib); end > lib + strlen(root); end = strrchr(lib, '/')) {
            *end = 0;
            (void)rmdir(lib);
        }
        kp_free(file);
        kp_free(lib);
        remove_awkward(root);
    }
}

static void without_headers_of_cuda_the_hint_says_so(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(compile_text(f, "#include <cuda_no_such.h>\n", "k"), KOPT_EINPUT);
    assert_has(f->err.hint, "CUDA_HOME");
}

/* As a stranger's compiler would see them: no macro is defined. */
static void the_examples_compile_without_a_word(void **state)
{
    static const char *const NAMES[] = {"convolution", "gemm",    "hotspot",
                                        "reduction",   "softmax", "transpose"};
    struct fixture *f = *state;
    const char *root = getenv("KOPT_SOURCE_DIR"); /* NOLINT(concurrency-mt-unsafe) */
    assert_non_null(root);
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        char path[4096];
        struct kp_buf source = KP_BUF_INIT(1 << 20);
        (void)snprintf(path, sizeof(path), "%s/examples/%s/%s.cu", root, NAMES[i], NAMES[i]);
        assert_int_equal(kp_file_read(path, &source, &f->err), KOPT_OK);
        struct kp_compile_job job = {
            .source = {kp_buf_text(&source), source.len}, .path = path, .entry = NAMES[i]};
        assert_compiles(f, &job);
        assert_string_equal(kp_buf_text(&f->log), "");
        assert_true(parsed(f).resources.stack_bytes == 0); /* nothing is spilled */
        kp_buf_deinit(&source);
    }
}

/* --- kopt's own kernels ---------------------------------------------------------------- */

static void our_kernels_compile_without_spills_or_warnings(void **state)
{
    struct fixture *f = *state;
    for (int kind = 0; kind < KP_CUDA_N_HELPERS; kind++) {
        const char *macros[KP_CUDA_HELPER_MACROS];
        struct kp_compile_job job;
        kp_cuda_helper_job(kind, macros, &job);
        assert_compiles(f, &job);
        assert_string_equal(kp_buf_text(&f->log), "");
        assert_int_equal(parsed(f).resources.stack_bytes, 0);
        assert_in_range(parsed(f).resources.registers, 1, 64);
    }
}

/* --- memory ---------------------------------------------------------------------------- */

static void every_failing_allocation_is_clean(void **state)
{
    const char *macros[] = {"FACTOR=3"};
    const char *options[] = {"-I.", "-Xptxas=-O1", "-O3"};
    struct kp_compile_job job = {.source = kp_str_from(SCALE),
                                 .path = "dir/scale.cu",
                                 .entry = "scale",
                                 .macros = macros,
                                 .n_macros = 1,
                                 .options = options,
                                 .n_options = 3};
    int in_a_row = 0;
    int failures = 0;
    (void)state;
    /* a log that could not be kept is no failure: one success is not the end of it */
    for (long n = 1; in_a_row < 8; n++) {
        struct kp_compiler *c = NULL;
        struct kp_buf image = KP_BUF_INIT(64 << 20);
        struct kp_buf log = KP_BUF_INIT(1 << 20);
        kopt_error err;
        kp_alloc_fail_at(n);
        kopt_status st = kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err);
        if (st == KOPT_OK)
            st = kp_compile(c, &job, &image, &log, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
        in_a_row = st == KOPT_OK ? in_a_row + 1 : 0;
        failures += st == KOPT_ENOMEM;
        kp_compiler_close(c);
        kp_buf_deinit(&image);
        kp_buf_deinit(&log);
    }
    assert_true(failures >= 20);
}

int main(void)
{
    struct kp_compiler *c;
    kopt_error err;
    if (kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, &err) != KOPT_OK) {
        (void)printf("skipped: %s\n", err.message);
        return 77;
    }
    kp_compiler_close(c);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_kernel_becomes_an_image_with_its_name_and_resources),
        T(the_same_input_gives_the_same_image),
        T(names_are_found_whatever_their_linkage),
        T(resources_are_those_of_the_entry),
        T(common_headers_are_there),
        T(cuda_headers_are_found_where_they_are_installed),
        T(includes_are_looked_for_beside_the_source),
        T(compiled_is_called_once_with_the_image_complete),
        T(a_byte_order_mark_does_no_harm),
        T(errors_carry_the_users_position),
        T(an_error_in_a_header_is_where_the_header_is),
        T(each_kind_of_bad_source_is_explained),
        T(limits_are_told_with_their_numbers),
        T(a_macro_that_the_source_defines_again_is_refused),
        T(macros_must_be_macros),
        T(warnings_are_kept_but_not_those_about_our_pragmas),
        T(names_that_are_none_are_refused),
        T(options_of_nvcc_are_understood),
        T(the_standard_is_17_unless_asked_for_otherwise),
        T(options_that_cannot_work_are_explained),
        T(architectures_are_checked),
        T(the_version_is_told),
        T(the_library_is_found_by_file_or_folder),
        T(the_library_is_found_as_python_packages_it),
        T(without_headers_of_cuda_the_hint_says_so),
        T(the_examples_compile_without_a_word),
        T(our_kernels_compile_without_spills_or_warnings),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
