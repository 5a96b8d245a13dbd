/* SPDX-License-Identifier: MIT */
/* Kernel files on disk, their hash, binding; what tests/spec does not reach. */
#include "base/alloc.h"
#include "base/hash.h"
#include "os/file.h"
#include "space/kernel.h"
#include "support/test.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct kp_limits LIMITS = {.max_threads = 1024,
                                        .max_block = {1024, 1024, 64},
                                        .shared_bytes = 49152,
                                        .warp = 32,
                                        .compute_units = 4};

#define HEAD   "#pragma kopt kernel k\n#pragma kopt param B {1, 2, 4}\n"
#define LAUNCH "#pragma kopt block B\n#pragma kopt grid 1\n"

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wbe");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static struct kp_kernel *load(const char *path)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    if (kp_kernel_load(path, true, &k, &err) != KOPT_OK)
        fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.message);
    return k;
}

static struct kp_kernel *parse(const char *text)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    if (kp_kernel_parse("k.cl", kp_str_from(text), &k, &err) != KOPT_OK)
        fail_msg("%d:%d: %s", err.line, err.column, err.message);
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

static void assert_load_fails(const char *path, kopt_status code, const char *message)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_kernel_load(path, true, &k, &err), code);
    assert_null(k);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in '%s'", message, err.message);
}

/* ---- files ---- */

static void files_that_are_no_kernels_get_one_clear_line(void **state)
{
    (void)state;
    assert_load_fails("none.cl", KOPT_EIO, "No such file");
    assert_load_fails(".", KOPT_EIO, "is a folder");
    assert_load_fails("/dev/null", KOPT_EIO, "is not a plain file");
    write_text("empty.cl", "");
    assert_load_fails("empty.cl", KOPT_EINPUT, "empty.cl: the file is empty");
    write_bytes("binary.cl",
                "\x7f"
                "ELF\0\1\2\3",
                8);
    assert_load_fails("binary.cl", KOPT_EINPUT, "a binary file");
    write_text("plain.c", "int main(void) { return 0; }\n");
    assert_load_fails("plain.c", KOPT_EINPUT, "no '#pragma kopt kernel' line");
    write_text("empty.json", "{}");
    assert_load_fails("empty.json", KOPT_EINPUT, "'ConfigurationSpace' is missing");
    (void)unlink("empty.cl");
    (void)unlink("binary.cl");
    (void)unlink("plain.c");
    (void)unlink("empty.json");
}

static void a_pipe_does_not_stop_us(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("pipe.cl", 0600), 0);
    assert_load_fails("pipe.cl", KOPT_EIO, "is not a plain file");
    (void)unlink("pipe.cl");
}

static void files_of_16_MiB_are_read_and_no_more(void **state)
{
    size_t limit = 16 << 20;
    char *text = malloc(limit + 1);
    (void)state;
    assert_non_null(text);
    memset(text, '\n', limit + 1);
    memcpy(text, HEAD LAUNCH, sizeof(HEAD LAUNCH) - 1);
    write_bytes("large.cl", text, limit);
    struct kp_kernel *k = load("large.cl");
    assert_int_equal(k->source.len, limit);
    kp_kernel_free(k);
    write_bytes("large.cl", text, limit + 1);
    assert_load_fails("large.cl", KOPT_EINPUT, "larger than 16 MiB");
    struct kp_kernel *none = NULL;
    kopt_error err;
    assert_int_equal(kp_kernel_parse("k.cl", (struct kp_str){text, limit + 1}, &none, &err),
                     KOPT_EINPUT);
    free(text);
    (void)unlink("large.cl");
}

static void names_and_texts_beyond_ascii_work_in_the_c_locale(void **state)
{
    (void)state;
    assert_non_null(setlocale(LC_ALL, "C"));
    write_text("gr\xc3\xb6\xc3\x9f"
               "e.cl",
               "/* \xe5\xa4\xa7\xe5\xb0\x8f */\n" HEAD LAUNCH
               "#pragma kopt require B > 1 : \"zu gro\xc3\x9f\"\n"
               "#pragma kopt require X > 1\n");
    struct kp_kernel *k = NULL;
    kopt_error err;
    assert_int_equal(kp_kernel_load("gr\xc3\xb6\xc3\x9f"
                                    "e.cl",
                                    true, &k, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.file, "gr\xc3\xb6\xc3\x9f"
                                  "e.cl");
    assert_int_equal(err.line, 7);
    write_text("gr\xc3\xb6\xc3\x9f"
               "e.cl",
               HEAD LAUNCH "#pragma kopt require B > 1 : \"zu gro\xc3\x9f\"\n");
    k = load("gr\xc3\xb6\xc3\x9f"
             "e.cl");
    assert_string_equal(k->rules[0].message, "zu gro\xc3\x9f");
    kp_kernel_free(k);
    (void)unlink("gr\xc3\xb6\xc3\x9f"
                 "e.cl");
}

static void windows_line_ends_and_a_byte_order_mark_are_fine(void **state)
{
    (void)state;
    struct kp_kernel *k =
        parse("\xef\xbb\xbf#pragma kopt kernel k\r\n#pragma kopt param B {1, \\\r\n"
              "  2} C {\"x\"}\r\n#pragma kopt block B\r\n#pragma kopt grid 1\r\n"
              "#pragma kopt flags -O2\r\n");
    assert_int_equal(k->n_params, 2);
    assert_int_equal(k->params[0].n_values, 2);
    assert_string_equal(k->flags[0], "-O2");
    kp_kernel_free(k);
}

static void the_language_comes_from_the_name_or_the_file(void **state)
{
    struct kp_kernel *k = NULL;
    kopt_error err;
    (void)state;
    static const struct {
        const char *path;
        enum kp_lang lang;
    } cases[] = {{"k.cl", KP_LANG_OPENCL},
                 {"k.cu", KP_LANG_CUDA},
                 {"k.cuh", KP_LANG_CUDA},
                 {"k.opencl", KP_LANG_OPENCL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kp_kernel_parse(cases[i].path, KP_STR(HEAD LAUNCH), &k, &err),
                         KOPT_OK);
        assert_int_equal(k->lang, cases[i].lang);
        kp_kernel_free(k);
    }
    assert_int_equal(
        kp_kernel_parse("k.cl", KP_STR(HEAD LAUNCH "#pragma kopt lang cuda\n"), &k, &err),
        KOPT_OK);
    assert_int_equal(k->lang, KP_LANG_CUDA);
    kp_kernel_free(k);
}

/* ---- limits ---- */

static void too_many_parameters_are_refused(void **state)
{
    static char text[16384];
    size_t len = (size_t)sprintf(text, "#pragma kopt kernel k\n#pragma kopt param");
    struct kp_kernel *k = NULL;
    kopt_error err;
    (void)state;
    for (int i = 0; i <= KP_PARAMS_MAX; i++)
        len += (size_t)sprintf(text + len, " P%d {1}", i);
    assert_int_equal(kp_kernel_parse("k.cl", (struct kp_str){text, len}, &k, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.message, "more than 128 parameters");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, 14);
}

/* What is read can be run: a session takes no more. */
static void arguments_and_checks_are_limited(void **state)
{
    static char text[32768];
    size_t len = (size_t)sprintf(text, "%s", HEAD LAUNCH);
    struct kp_kernel *k = NULL;
    kopt_error err;
    (void)state;
    for (int i = 0; i < KP_ARGS_MAX; i++)
        len += (size_t)sprintf(text + len, "#pragma kopt arg a%d f32[1] out\n", i);
    size_t args = len;
    for (int i = 0; i < KP_CHECKS_MAX; i++)
        len += (size_t)sprintf(text + len, "#pragma kopt check a%d against constant(0)\n", i);
    assert_int_equal(kp_kernel_parse("k.cl", (struct kp_str){text, len}, &k, &err), KOPT_OK);
    kp_kernel_free(k);
    len += (size_t)sprintf(text + len, "#pragma kopt check a0 against constant(1)\n");
    assert_int_equal(kp_kernel_parse("k.cl", (struct kp_str){text, len}, &k, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.message, "more than 64 checks");
    assert_int_equal(err.line, 4 + KP_ARGS_MAX + KP_CHECKS_MAX + 1);
    len = args + (size_t)sprintf(text + args, "#pragma kopt arg b i32 = 1\n");
    assert_int_equal(kp_kernel_parse("k.cl", (struct kp_str){text, len}, &k, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.message, "more than 256 arguments");
    assert_int_equal(err.line, 4 + KP_ARGS_MAX + 1);
}

static void names_are_limited(void **state)
{
    static char text[1024];
    struct kp_kernel *k = NULL;
    kopt_error err;
    (void)state;
    int len = sprintf(text, "#pragma kopt kernel k\n#pragma kopt param %0300d {1}", 0);
    memset(text + 41, 'a', 300);
    assert_int_equal(kp_kernel_parse("k.cl", (struct kp_str){text, (size_t)len}, &k, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.message, "a name of more than 255 letters");
}

/* ---- binding ---- */

static void values_are_narrowed_in_the_order_of_the_file(void **state)
{
    static const char *const problem[] = {"C=b,a", "B=4, 1", "S=1"};
    (void)state;
    struct kp_kernel *k =
        parse(HEAD LAUNCH "#pragma kopt param C {\"a\", \"b\", \"c\"} S {1, 0.5}\n"
                          "#pragma kopt default B=4 C=\"c\"\n");
    struct kp_bound *b = bind(k, problem, 3);
    uint32_t config[3];
    assert_int_equal(kp_space_count(b->space), 4);
    const struct kp_param *p = kp_space_param(b->space, 0);
    assert_int_equal(p->n_values, 2);
    assert_int_equal(p->values[0].as.i, 1);
    assert_int_equal(p->values[1].as.i, 4);
    assert_int_equal(p->default_index, 1);
    assert_int_equal(kp_space_param(b->space, 1)->default_index, -1);
    assert_true(kp_bound_default(b, config));
    assert_int_equal(config[0], 1);
    assert_int_equal(k->params[0].n_values, 3); /* the kernel is as it was */
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void the_problem_is_written_sorted(void **state)
{
    static const char *const problem[] = {"N=3", "K=1", "M=2"};
    (void)state;
    struct kp_kernel *k = parse(HEAD LAUNCH "#pragma kopt problem N M K a=7\n");
    struct kp_bound *b = bind(k, problem, 3);
    struct kp_buf out = KP_BUF_INIT(100);
    kp_bound_problem_json(b, &out);
    assert_string_equal(kp_buf_text(&out), "{\"K\":1,\"M\":2,\"N\":3,\"a\":7}");
    kp_buf_deinit(&out);
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void a_default_that_breaks_a_rule_is_repaired(void **state)
{
    uint32_t config[1];
    (void)state;
    struct kp_kernel *k =
        parse(HEAD LAUNCH "#pragma kopt default B=4\n#pragma kopt require B <= 2\n");
    struct kp_bound *b = bind(k, NULL, 0);
    assert_true(kp_bound_default(b, config));
    assert_true(kp_space_valid(b->space, config, NULL));
    assert_int_equal(config[0], 1);
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void limits_that_are_not_known_bound_nothing(void **state)
{
    struct kp_bound *b = NULL;
    kopt_error err;
    (void)state;
    struct kp_kernel *k =
        parse(HEAD LAUNCH "#pragma kopt require B * 1000 <= device.max_threads\n"
                          "#pragma kopt require B <= device.registers\n"
                          "#pragma kopt require device.cc == 0\n");
    assert_int_equal(kp_kernel_bind(k, NULL, 0, NULL, &b, &err), KOPT_OK);
    assert_int_equal(kp_space_count(b->space), 3);
    kp_bound_free(b);
    assert_int_equal(kp_kernel_bind(k, NULL, 0, &LIMITS, &b, &err), KOPT_OK);
    assert_int_equal(kp_space_count(b->space), 1);
    kp_bound_free(b);
    kp_kernel_free(k);
}

static void expressions_are_evaluated_under_a_configuration(void **state)
{
    static const uint32_t config[1] = {2};
    struct kp_value v;
    struct kp_eval_error why;
    (void)state;
    struct kp_kernel *k = parse(HEAD LAUNCH "#pragma kopt let T = B * 2\n"
                                            "#pragma kopt metric m = 1 / (time_ns - 5)\n");
    struct kp_bound *b = bind(k, NULL, 0);
    double metric = 1;
    assert_int_equal(kp_bound_eval(b, k->lets[0].expr, config, &v, &why), KP_EVAL_VALUE);
    assert_int_equal(v.as.i, 8);
    assert_int_equal(kp_bound_eval(b, k->lets[0].expr, NULL, &v, &why), KP_EVAL_UNKNOWN);
    assert_false(kp_bound_metric(b, 0, config, 5, &metric));
    assert_true(kp_bound_metric(b, 0, config, 7, &metric));
    assert_float_equal(metric, 0.5, 0);
    kp_bound_free(b);
    kp_kernel_free(k);
}

/* ---- the hash ---- */

static void hash_of(const char *path, char out[KP_SHA256_HEX + 1])
{
    struct kp_kernel *k = load(path);
    kopt_error err = {0};
    if (kp_kernel_hash(k, out, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    kp_kernel_free(k);
}

static void included_files_are_part_of_the_hash(void **state)
{
    char first[KP_SHA256_HEX + 1];
    char other[KP_SHA256_HEX + 1];
    (void)state;
    (void)mkdir("inc", 0700);
    (void)mkdir("sub", 0700);
    write_text("k.cl", HEAD LAUNCH "#pragma kopt flags -I inc\n#include \"sub/a.h\"\n"
                                   "#  include <b.h>\n#include <math.h>\n#include NAME\n");
    write_text("sub/a.h", "#include \"c.h\"\n#include \"../k.cl\"\nint a;\n");
    write_text("sub/c.h", "#include \"a.h\"\nint c;\n");
    write_text("inc/b.h", "int b;\n");
    hash_of("k.cl", first);
    assert_int_equal(strlen(first), KP_SHA256_HEX);
    hash_of("./k.cl", other);
    assert_string_equal(first, other);
    write_text("sub/c.h", "#include \"a.h\"\nint d;\n");
    hash_of("k.cl", other);
    assert_string_not_equal(first, other);
    write_text("sub/c.h", "#include \"a.h\"\nint c;\n");
    hash_of("k.cl", other);
    assert_string_equal(first, other);
    write_text("inc/b.h", "int bb;\n");
    hash_of("k.cl", other);
    assert_string_not_equal(first, other);
    (void)unlink("inc/b.h");
    (void)unlink("sub/a.h");
    (void)unlink("sub/c.h");
    (void)unlink("k.cl");
    (void)rmdir("inc");
    (void)rmdir("sub");
}

static void reference_and_data_files_are_part_of_the_hash(void **state)
{
    char first[KP_SHA256_HEX + 1];
    char other[KP_SHA256_HEX + 1];
    kopt_error err;
    (void)state;
    write_text("h.cl", HEAD LAUNCH "#pragma kopt arg x f32[1] file(\"x.bin\") y f32[1] out\n"
                                   "#pragma kopt check y against ref.c\n");
    write_text("x.bin", "data");
    struct kp_kernel *k = load("h.cl");
    assert_int_equal(kp_kernel_hash(k, first, &err), KOPT_EIO); /* there is no ref.c */
    assert_non_null(strstr(err.message, "ref.c"));
    assert_string_equal(first, "");
    kp_kernel_free(k);
    write_text("ref.c", "void ref(void) {}\n");
    hash_of("h.cl", first);
    write_text("ref.c", "void ref(void) { }\n");
    hash_of("h.cl", other);
    assert_string_not_equal(first, other);
    write_text("ref.c", "void ref(void) {}\n");
    write_text("x.bin", "atad");
    hash_of("h.cl", other);
    assert_string_not_equal(first, other);
    (void)unlink("x.bin");
    assert_int_equal(mkdir("x.bin", 0700), 0);
    k = load("h.cl");
    assert_int_equal(kp_kernel_hash(k, other, &err), KOPT_EIO);
    kp_kernel_free(k);
    (void)rmdir("x.bin");
    (void)unlink("ref.c");
    (void)unlink("h.cl");
}

/* Each file in turn is edited, and edited back: the hash must follow. */
static void assert_hashed(const char *kernel, const char *const *files, size_t n)
{
    char first[KP_SHA256_HEX + 1];
    char other[KP_SHA256_HEX + 1];
    hash_of(kernel, first);
    for (size_t i = 0; i < n; i++) {
        struct kp_buf old = KP_BUF_INIT(4096);
        assert_int_equal(kp_file_read(files[i], &old, NULL), KOPT_OK);
        FILE *f = fopen(files[i], "abe");
        assert_non_null(f);
        assert_true(fputs("int edited;\n", f) >= 0);
        assert_int_equal(fclose(f), 0);
        hash_of(kernel, other);
        if (strcmp(first, other) == 0)
            fail_msg("%s is not part of the hash of %s", files[i], kernel);
        write_text(files[i], kp_buf_text(&old));
        hash_of(kernel, other);
        assert_string_equal(first, other);
        kp_buf_deinit(&old);
    }
}

static void remove_all(const char *const *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)unlink(files[i]);
}

/* What the compilers find in the kernel's own folder, which they search for every include. */
static void the_kernel_s_folder_is_searched_for_every_include(void **state)
{
    static const char *const files[] = {"at/tile.h",  "at/lib/a.h",      "at/common.h",
                                        "at/lib/b.h", "at/lib/deep/c.h", "at/k.cl"};
    (void)state;
    (void)mkdir("at", 0700);
    (void)mkdir("at/lib", 0700);
    (void)mkdir("at/lib/deep", 0700);
    write_text("at/k.cl", HEAD LAUNCH "#include <tile.h>\n#include \"lib/a.h\"\n");
    write_text("at/tile.h", "#define TILE 16\n");
    write_text("at/lib/a.h", "#include \"common.h\"\n#include \"deep/c.h\"\n");
    write_text("at/common.h", "int common;\n");
    write_text("at/lib/deep/c.h", "#include \"b.h\"\n"); /* beside the file that includes it */
    write_text("at/lib/b.h", "int b;\n");
    assert_hashed("at/k.cl", files, 6);
    remove_all(files, 6);
    (void)rmdir("at/lib/deep");
    (void)rmdir("at/lib");
    (void)rmdir("at");
}

static void every_spelling_of_an_include_counts(void **state)
{
    static const char *const lines[] = {"#import \"tile.h\"\n",
                                        "#include_next <tile.h>\n",
                                        "#define TILE \"tile.h\"\n#include TILE\n",
                                        "# define TILE_1 /* it */ <tile.h>\n#include TILE_1\n",
                                        "%:include <tile.h>\n",
                                        "?\?=include <tile.h>\n",
                                        "/* a\n b */ #/**/include/**/<tile.h>\n",
                                        "# \\\n include \\\r\n <tile.h>\n"};
    static const char *const files[] = {"at/tile.h"};
    char text[512];
    (void)state;
    (void)mkdir("at", 0700);
    write_text("at/tile.h", "int tile;\n");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        (void)snprintf(text, sizeof(text), HEAD LAUNCH "%s", lines[i]);
        write_text("at/k.cl", text);
        assert_hashed("at/k.cl", files, 1);
    }
    remove_all(files, 1);
    (void)unlink("at/k.cl");
    (void)rmdir("at");
}

/* A file that stands before another one of its name, which it includes. */
static void include_next_goes_on_to_the_next_folder(void **state)
{
    static const char *const files[] = {"at/one/tile.h", "at/two/tile.h"};
    (void)state;
    (void)mkdir("at", 0700);
    (void)mkdir("at/one", 0700);
    (void)mkdir("at/two", 0700);
    write_text("at/k.cl", HEAD LAUNCH "#pragma kopt flags -I one -I two\n#include <tile.h>\n");
    write_text("at/one/tile.h", "#include_next \"tile.h\"\n");
    write_text("at/two/tile.h", "int tile;\n");
    assert_hashed("at/k.cl", files, 2);
    remove_all(files, 2);
    (void)unlink("at/k.cl");
    (void)rmdir("at/one");
    (void)rmdir("at/two");
    (void)rmdir("at");
}

static void every_spelling_of_an_include_option_counts(void **state)
{
    static const char *const options[] = {"-Iin",
                                          "-I in",
                                          "'-I in'",
                                          "-I=in",
                                          "--include-path=in",
                                          "--include-path in",
                                          "-include in/tile.h",
                                          "'-include in/tile.h'",
                                          "--pre-include=in/tile.h"};
    static const char *const files[] = {"at/in/tile.h", "at/in/more.h"};
    char text[512];
    (void)state;
    (void)mkdir("at", 0700);
    (void)mkdir("at/in", 0700);
    write_text("at/in/tile.h", "#include \"more.h\"\n");
    write_text("at/in/more.h", "int more;\n");
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        (void)snprintf(text, sizeof(text), HEAD LAUNCH "#pragma kopt flags -DX %s\n%s",
                       options[i], strstr(options[i], "/tile.h") ? "" : "#include <tile.h>\n");
        write_text("at/k.cu", text);
        assert_hashed("at/k.cu", files, 2);
    }
    /* The folder of the kernel comes first, then those of the flags in their order. */
    write_text("at/k.cu", HEAD LAUNCH "#pragma kopt flags -I a -I in\n#include <tile.h>\n");
    write_text("at/tile.h", "");
    char first[KP_SHA256_HEX + 1];
    char other[KP_SHA256_HEX + 1];
    hash_of("at/k.cu", first);
    write_text("at/in/tile.h", "int unused;\n");
    hash_of("at/k.cu", other);
    assert_string_equal(first, other);
    remove_all(files, 2);
    (void)unlink("at/k.cu");
    (void)unlink("at/tile.h");
    (void)rmdir("at/in");
    (void)rmdir("at");
}

static void headers_of_a_c_reference_are_part_of_the_hash(void **state)
{
    static const char *const files[] = {"ref.c", "ref_common.h", "k.cl"};
    (void)state;
    write_text("k.cl", HEAD LAUNCH "#pragma kopt arg y f32[1] out\n"
                                   "#pragma kopt check y against ref.c\n");
    write_text("ref.c", "#include <math.h>\n#include \"ref_common.h\"\nvoid ref(void) {}\n");
    write_text("ref_common.h", "int common;\n");
    assert_hashed("k.cl", files, 3);
    remove_all(files, 3);
}

static void assert_hash_fails(const char *path, const char *message)
{
    char hash[KP_SHA256_HEX + 1];
    kopt_error err;
    struct kp_kernel *k = load(path);
    assert_int_equal(kp_kernel_hash(k, hash, &err), KOPT_ERANGE);
    assert_string_equal(err.message, message);
    assert_string_equal(hash, "");
    kp_kernel_free(k);
}

static void includes_are_limited(void **state)
{
    enum { MANY = 4097, LARGE = 65 << 20 };
    char name[32];
    char text[64];
    (void)state;
    struct kp_buf source = KP_BUF_INIT(1 << 20);
    kp_buf_adds(&source, HEAD LAUNCH);
    for (int i = 0; i < MANY; i++) {
        (void)sprintf(name, "i%d.h", i);
        write_text(name, "");
        kp_buf_addf(&source, "#include \"i%d.h\"\n", i);
    }
    write_text("many.cl", kp_buf_text(&source));
    assert_hash_fails("many.cl", "many.cl: the source includes more than 4096 files");
    for (int i = 0; i < 201; i++) {
        (void)sprintf(name, "i%d.h", i);
        (void)sprintf(text, "#include \"i%d.h\"\n", i + 1);
        write_text(name, text);
    }
    write_text("many.cl", HEAD LAUNCH "#include \"i0.h\"\n");
    assert_hash_fails("many.cl", "many.cl: files include each other 200 times deep");
    char *large = calloc(1, LARGE);
    assert_non_null(large);
    memset(large, '\n', LARGE);
    write_bytes("i0.h", large, LARGE);
    free(large);
    assert_hash_fails("many.cl", "many.cl: the source includes more than 64 MiB");
    for (int i = 0; i < MANY; i++) {
        (void)sprintf(name, "i%d.h", i);
        (void)unlink(name);
    }
    (void)unlink("many.cl");
    kp_buf_deinit(&source);
}

static void what_changes_the_measurement_changes_the_hash(void **state)
{
    static const char *const variants[] = {
        LAUNCH,
        LAUNCH "#pragma kopt shared 4\n",
        LAUNCH "#pragma kopt let T = B\n",
        LAUNCH "#pragma kopt let T = B + 1\n",
        LAUNCH "#pragma kopt prefix K_\n",
        LAUNCH "#pragma kopt flags -O2\n",
        LAUNCH "#pragma kopt lang cuda\n",
        LAUNCH "#pragma kopt arg x f32[4]\n",
        LAUNCH "#pragma kopt arg x f32[5]\n",
        LAUNCH "#pragma kopt arg x f32x2[4]\n",
        LAUNCH "#pragma kopt arg x f64[4]\n",
        LAUNCH "#pragma kopt arg x f32[4] inout\n",
        LAUNCH "#pragma kopt arg x f32[4] uniform\n",
        LAUNCH "#pragma kopt arg x f32[4] constant(1)\n",
        LAUNCH "#pragma kopt arg x f32[4] constant(1.0)\n",
        LAUNCH "#pragma kopt arg x i32 = 1\n",
        LAUNCH "#pragma kopt arg x f32[4] out\n",
        LAUNCH "#pragma kopt arg x f32[4] out\n#pragma kopt check x against gen(i)\n",
        LAUNCH "#pragma kopt arg x f32[4] out\n#pragma kopt check x against gen(i) rtol 0\n",
        LAUNCH "#pragma kopt reference r block 1 grid 1\n",
        LAUNCH "int x;\n",
        "#pragma kopt block 1 B\n#pragma kopt grid 1\n",
        "#pragma kopt block B\n#pragma kopt grid 2\n",
    };
    enum { N = sizeof(variants) / sizeof(variants[0]) };
    static char hashes[N][KP_SHA256_HEX + 1];
    char text[1024];
    kopt_error err;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(text, sizeof(text), HEAD "%s", variants[i]);
        struct kp_kernel *k = parse(text);
        assert_int_equal(kp_kernel_hash(k, hashes[i], &err), KOPT_OK);
        kp_kernel_free(k);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(hashes[i], hashes[j]) == 0)
                fail_msg("these have one hash:\n%s%s", variants[i], variants[j]);
        }
    }
}

/* ---- memory ---- */

static const char FULL[] = HEAD LAUNCH
    "#pragma kopt problem N M=4\n"
    "#pragma kopt let T = B * N\n#pragma kopt let U = T + 1\n"
    "#pragma kopt require U > 1 && B in {1, 2, 4} : \"message\"\n"
    "#pragma kopt default B=2\n#pragma kopt flags -O2 -DX\n#pragma kopt shared B * 4\n"
    "#pragma kopt arg x f32[N] y f32[M] out n i32 = N t local f32[B]\n"
    "#pragma kopt check y against kernel r\n#pragma kopt check y against gen(i)\n"
    "#pragma kopt reference r block 1 grid N\n#pragma kopt metric m = N / time_ns\n";

static void ignore_macro(void *user, const char *name, const char *text)
{
    (void)name;
    (void)text;
    ++*(int *)user;
}

static kopt_status use(struct kp_bound *b, kopt_error *err)
{
    uint32_t config[1];
    struct kp_geometry g;
    int64_t n = 0;
    int macros = 0;
    struct kp_value v;
    if (!kp_bound_default(b, config))
        return KOPT_EFAILED;
    kopt_status st = kp_bound_geometry(b, config, &g, err);
    if (st == KOPT_OK)
        st = kp_bound_reference_geometry(b, 0, &g, err);
    if (st == KOPT_OK)
        st = kp_bound_arg_count(b, 0, config, &n, err);
    if (st == KOPT_OK)
        st = kp_bound_arg_value(b, 2, config, &v, err);
    if (st == KOPT_OK)
        st = kp_bound_macros(b, config, ignore_macro, &macros, err);
    return st;
}

enum { ALLOCATIONS = 20000 };

/* Did the allocation that was to fail come? Else it fails now. */
static bool was_used_up(void)
{
    bool used = true;
    for (int i = 0; i < ALLOCATIONS && used; i++) {
        void *p = kp_calloc(1, 1);
        used = p != NULL;
        kp_free(p);
    }
    kp_alloc_fail_at(0);
    return used;
}

/* One run with the n-th allocation failing; *failed: it came to that. */
static kopt_status run_with_failure(long n, char *hash, bool *failed, kopt_error *err)
{
    static const char *const problem[] = {"N=8", "B=1,2"};
    struct kp_kernel *k = NULL;
    struct kp_bound *b = NULL;
    kp_alloc_fail_at(n);
    kopt_status st = kp_kernel_load("a.cl", true, &k, err);
    if (st == KOPT_OK)
        st = kp_kernel_hash(k, hash, err);
    if (st == KOPT_OK)
        st = kp_kernel_bind(k, problem, 2, &LIMITS, &b, err);
    if (st == KOPT_OK)
        st = use(b, err);
    *failed = was_used_up();
    kp_bound_free(b);
    kp_kernel_free(k);
    return st;
}

static void every_failing_allocation_is_clean(void **state)
{
    char good[KP_SHA256_HEX + 1];
    char hash[KP_SHA256_HEX + 1] = "";
    kopt_error err = {0};
    bool failed = false;
    (void)state;
    write_text("a.cl", FULL);
    assert_int_equal(run_with_failure(ALLOCATIONS, good, &failed, &err), KOPT_OK);
    assert_false(failed);
    failed = true;
    for (long n = 1; failed; n++) {
        kopt_status st = run_with_failure(n, hash, &failed, &err);
        if (st == KOPT_OK) /* what is only remembered to be faster may be left out */
            assert_string_equal(hash, good);
        else if (!failed || st != KOPT_ENOMEM)
            fail_msg("allocation %ld: %d %s", n, (int)st, err.message);
    }
    (void)unlink("a.cl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_no_kernels_get_one_clear_line),
        cmocka_unit_test(a_pipe_does_not_stop_us),
        cmocka_unit_test(files_of_16_MiB_are_read_and_no_more),
        cmocka_unit_test(names_and_texts_beyond_ascii_work_in_the_c_locale),
        cmocka_unit_test(windows_line_ends_and_a_byte_order_mark_are_fine),
        cmocka_unit_test(the_language_comes_from_the_name_or_the_file),
        cmocka_unit_test(too_many_parameters_are_refused),
        cmocka_unit_test(arguments_and_checks_are_limited),
        cmocka_unit_test(names_are_limited),
        cmocka_unit_test(values_are_narrowed_in_the_order_of_the_file),
        cmocka_unit_test(the_problem_is_written_sorted),
        cmocka_unit_test(a_default_that_breaks_a_rule_is_repaired),
        cmocka_unit_test(limits_that_are_not_known_bound_nothing),
        cmocka_unit_test(expressions_are_evaluated_under_a_configuration),
        cmocka_unit_test(included_files_are_part_of_the_hash),
        cmocka_unit_test(reference_and_data_files_are_part_of_the_hash),
        cmocka_unit_test(the_kernel_s_folder_is_searched_for_every_include),
        cmocka_unit_test(every_spelling_of_an_include_counts),
        cmocka_unit_test(include_next_goes_on_to_the_next_folder),
        cmocka_unit_test(every_spelling_of_an_include_option_counts),
        cmocka_unit_test(headers_of_a_c_reference_are_part_of_the_hash),
        cmocka_unit_test(includes_are_limited),
        cmocka_unit_test(what_changes_the_measurement_changes_the_hash),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
