/* SPDX-License-Identifier: MIT */
/* Data sets from small files of each kind: what becomes a field, a target, a row, and what bad
 * files get. */
#include "base/alloc.h"
#include "learn/load.h"
#include "support/test.h"

#include <math.h>
#include <unistd.h>
#include <zlib.h>

static const char rules_text[] = "kernel k\n"
                                 "problem M N layout=\"row\"\n"
                                 "param B {4, 8, 16}\n"
                                 "param T {1, 2}\n"
                                 "let tiles = ceildiv(M, 16)\n"
                                 "let row = layout == \"row\"\n"
                                 "let waste = M % B\n";

static struct kp_kernel *parse(const char *name, const char *text)
{
    struct kp_kernel *k = NULL;
    kopt_error err = {0};
    if (kp_kernel_parse(name, kp_str_from(text), &k, &err) != KOPT_OK)
        fail_msg("%s:%d: %s", name, err.line, err.message);
    return k;
}

static const char *put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(name, "wbe");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return name;
}

static const char *put_text(const char *name, const char *text)
{
    return put(name, text, strlen(text));
}

static const char *put_gz(const char *name, const char *text, size_t times)
{
    gzFile f = gzopen(name, "wb9");
    assert_non_null(f);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(f), Z_OK);
    return name;
}

static struct kp_load_report report;

static struct kp_dataset *load(const char *path, const struct kp_load_options *o)
{
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    if (kp_load(path, o, &d, &report, &err) != KOPT_OK)
        fail_msg("%s (%s)", err.message, err.hint);
    assert_int_equal(strlen(report.hash), 64);
    return d;
}

static kopt_error assert_fails(const char *path, const struct kp_load_options *o,
                               kopt_status code, const char *message)
{
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_load(path, o, &d, &report, &err), code);
    assert_int_equal(err.code, code);
    assert_null(d);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in '%s'", message, err.message);
    return err;
}

static void assert_skipped(size_t n, int64_t line, const char *reason)
{
    assert_int_equal(report.skipped, n);
    assert_int_equal(report.first_line, line);
    if (!strstr(report.reason, reason))
        fail_msg("'%s' is not in '%s'", reason, report.reason);
}

/* Fields, targets and rows as one text: "M N|B T;64 row|4:100;..". */
static void assert_is(const struct kp_dataset *d, const char *want)
{
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    for (size_t i = 0; i < d->n_fields; i++)
        kp_buf_addf(&text, "%s%s", i ? " " : "", d->fields[i].name);
    for (size_t t = 0; t < d->n_targets; t++)
        kp_buf_addf(&text, "%s%s", t ? " " : "|", d->targets[t].name);
    for (size_t r = 0; r < d->n_rows; r++) {
        const double *x = d->problems + d->of[r] * d->n_fields;
        kp_buf_addc(&text, ';');
        for (size_t i = 0; i < d->n_fields; i++) {
            kp_buf_adds(&text, i ? " " : "");
            if (d->fields[i].is_word)
                kp_buf_adds(&text, d->fields[i].words[(size_t)x[i]]);
            else
                kp_buf_addf(&text, "%g", x[i]);
        }
        for (size_t t = 0; t < d->n_targets; t++) {
            kp_buf_addc(&text, t ? ' ' : '|');
            kp_value_to_text(d->targets[t].values[d->configs[r * d->n_targets + t]], &text);
        }
        if (!isnan(d->times_ns[r]))
            kp_buf_addf(&text, ":%g", (double)d->times_ns[r]);
    }
    assert_string_equal(kp_buf_text(&text), want);
    kp_buf_deinit(&text);
}

static void load_and_check(const char *path, const struct kp_load_options *o, const char *want)
{
    struct kp_dataset *d = load(path, o);
    assert_is(d, want);
    kp_dataset_free(d);
}

/* --- CSV -----------------------------------------------------------------------------------
 */

static const char plain[] = "# made by hand\n"
                            "\n"
                            "M,N,T,B,us,outcome,clock\n"
                            "64,32,1,8,2.5,ok,1900\n"
                            "64,32,2,4,,compile_error,1900\n"
                            "128,32,1,4,1,ok,1900\n";

static void csv_with_rules(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_options o = {.rules = k};
    struct kp_dataset *d = load(put_text("plain.csv", plain), &o);
    assert_is(d, "M N tiles row|B T;64 32 4 1|4 2:inf;64 32 4 1|8 1:2500;128 32 8 1|4 1:1000");
    assert_string_equal(d->kernel, "k");
    assert_int_equal(report.source, KP_SOURCE_CSV);
    assert_int_equal(report.read, 3);
    assert_int_equal(report.skipped, 0);
    assert_int_equal(report.n_raw, 2);
    assert_int_equal(d->targets[0].n_values, 3); /* the rules' list: 16, too */
    kp_dataset_free(d);
    kp_kernel_free(k);
}

static void csv_without_rules_needs_the_parameters(void **state)
{
    (void)state;
    static const char *const params[] = {"B", "T"};
    struct kp_load_options o = {0};
    const char *path = put_text("plain.csv", plain);
    kopt_error err = assert_fails(path, &o, KOPT_EINPUT, "parameters is not known");
    assert_non_null(strstr(err.hint, "parameters' names"));
    o.params = params;
    o.n_params = 2;
    struct kp_dataset *d = load(path, &o);
    assert_string_equal(d->kernel, "plain");
    assert_is(d, "M N clock|B T;64 32 1900|4 2:inf;64 32 1900|8 1:2500;128 32 1900|4 1:1000");
    assert_int_equal(d->targets[0].n_values, 2);
    kp_dataset_free(d);
    static const char *const missing[] = {"B", "X"};
    o.params = missing;
    err = assert_fails(path, &o, KOPT_EINPUT, "there is no 'X'");
    assert_non_null(strstr(err.hint, "M, N, T, B"));
}

/* As data/h200/surfaces.py writes them. */
static void csv_with_a_column_of_problems(void **state)
{
    (void)state;
    static const char text[] = "problem,B,T,us,outcome\n"
                               "M=64 N=32,8,1,0.5,ok\n"
                               "N=32  M=128 ,8,2,,crash\n";
    const struct kp_load_options o = {0};
    static const char want[] = "M N|B T;64 32|8 1:500;128 32|8 2:inf";
    load_and_check(put_text("surface.csv", text), &o, want);
    load_and_check(put_gz("surface.csv.gz", text, 1), &o, want);
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_options with = {.rules = k};
    load_and_check("surface.csv", &with,
                   "M N tiles row|B T;64 32 4 1|8 1:500;128 32 8 1|8 2:inf");
    kp_kernel_free(k);
}

static void csv_of_other_programs(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf\"M\" , way,\"B\",time_ms\r\n"
                               "1,\"a, \"\"b\"\"\",true,2\r\n"
                               " 2 , c d\t,False,\r\n"
                               "\r\n"
                               "3,\"two\nlines\",true,1e-3\r\n";
    static const char *const params[] = {"B"};
    const struct kp_load_options o = {.params = params, .n_params = 1};
    struct kp_dataset *d = load(put_text("other.csv", text), &o);
    assert_is(d, "M way|B;1 a, \"b\"|true:2e+06;2 c d|false;3 two\nlines|true:1000");
    assert_int_equal(d->targets[0].type, KP_BOOL);
    assert_int_equal(report.skipped, 0);
    kp_dataset_free(d);
}

static void rows_that_cannot_be_used_are_counted(void **state)
{
    (void)state;
    static const char text[] = "problem,B,us\n"
                               "M=1,4,1\n"
                               "M=2,4\n"
                               "M=3,4,-1\n"
                               "M=4,4,nan\n"
                               "M=,4,1\n"
                               "N=5,4,1\n"
                               "M=6,,1\n"
                               "M=7,4,1,1\n"
                               "M=8,\"4\"x,1\n"
                               "M=9,\xff,1\n"
                               "M=10,8,1\n"
                               "M=11,4,1";
    const struct kp_load_options o = {0};
    load_and_check(put_text("bad.csv", text), &o, "M|B;1|4:1000;10|8:1000");
    assert_int_equal(report.read, 12);
    assert_skipped(10, 3, "2 values, but the header has 3 columns");
    load_and_check(put_text("bad.csv", "problem,B\nM=1,4\nM=2,\"5\n"), &o, "M|B;1|4");
    assert_skipped(1, 3, "a quote is not closed");
    load_and_check(put_text("bad.csv", "problem,B\nM=1,4\nM=2,5"), &o, "M|B;1|4");
    assert_skipped(1, 3, "it is cut");
    /* Where a NUL is near the begin, it is no text at all. */
    static const char end[] = "\nproblem,B\nM=1,4\nM=2,x\0yz\n";
    struct kp_buf late = KP_BUF_INIT(1 << 16);
    for (int i = 0; i < 6000; i++)
        kp_buf_addc(&late, '#');
    kp_buf_add(&late, end, sizeof(end) - 1);
    load_and_check(put("bad.csv", late.ptr, late.len), &o, "M|B;1|4");
    assert_skipped(1, 4, "NUL");
    kp_buf_deinit(&late);
    (void)assert_fails(put_text("bad.csv", "problem,B\nM,4\n"), &o, KOPT_EINPUT,
                       "no row can be used; line 2: the problem is not written");
}

static void csv_files_that_are_none(void **state)
{
    (void)state;
    const struct kp_load_options o = {0};
    (void)assert_fails("not-there.csv", &o, KOPT_EIO, "No such file");
    (void)assert_fails(".", &o, KOPT_EIO, "is a folder");
    (void)assert_fails(put_text("f", ""), &o, KOPT_EINPUT, "is empty");
    (void)assert_fails(put_text("f", "\n# only this\n"), &o, KOPT_EINPUT, "is empty");
    kopt_error err =
        assert_fails(put_text("f", "\nhello there\n"), &o, KOPT_EINPUT, "no file of results");
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(err.hint, "T4 and CSV"));
    (void)assert_fails(put("f",
                           "\x7f"
                           "ELF\0\0\0",
                           7),
                       &o, KOPT_EINPUT, "no file of results");
    (void)assert_fails(put_text("f", "BZh91AY&SY"), &o, KOPT_EINPUT, "compressed by bzip2");
    (void)assert_fails(put_text("f", "problem,B,B\n"), &o, KOPT_EINPUT, "there twice");
    (void)assert_fails(put_text("f", "problem,,B\n"), &o, KOPT_EINPUT, "column 2");
    (void)assert_fails(put_text("f", "problem,B\n"), &o, KOPT_EINPUT, "there are no rows");
    (void)assert_fails(put_text("f", "problem,us\nM=1,1\n"), &o, KOPT_EINPUT,
                       "parameters is not known");
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_options with = {.rules = k};
    err = assert_fails(put_text("f", "M,B,T\n1,4,1\n"), &with, KOPT_EINPUT,
                       "there is no 'N', which the rules need");
    assert_non_null(strstr(err.hint, "M, B, T"));
    (void)assert_fails(put_text("f", "M,N,B\n1,1,4\n"), &with, KOPT_EINPUT,
                       "there is no 'T', a parameter of the rules");
    kp_kernel_free(k);
}

static void cut_and_hostile_gzip_files_end_early(void **state)
{
    (void)state;
    const struct kp_load_options o = {0};
    char bytes[4096];
    (void)put_gz("whole.csv.gz", "problem,B\nM=1,4\nM=2,8\nM=3,16\n", 1);
    FILE *f = fopen("whole.csv.gz", "rbe");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    assert_int_equal(fclose(f), 0);
    (void)assert_fails(put("cut.csv.gz", bytes, n - 9), &o, KOPT_EINPUT, "is cut");
    (void)assert_fails(put("cut.csv.gz", bytes, 12), &o, KOPT_EINPUT, "is cut");
    bytes[n - 6] ^= 1; /* of the checksum */
    (void)assert_fails(put("cut.csv.gz", bytes, n), &o, KOPT_EINPUT, "damaged");
    /* A row without an end; a quoted value without one. */
    char *line = kp_calloc(1, 65537);
    assert_non_null(line);
    memset(line, 'x', 65536);
    (void)assert_fails(put_gz("bomb.csv.gz", line, 200), &o, KOPT_EINPUT,
                       "a row has more than");
    memset(line, '\n', 65536);
    line[0] = '"';
    line[1] = 'x';
    (void)assert_fails(put_gz("bomb.csv.gz", line, 1), &o, KOPT_EINPUT, "quote is not closed");
    kp_free(line);
}

static void too_many_values_are_an_error(void **state)
{
    (void)state;
    struct kp_buf text = KP_BUF_INIT(1 << 20);
    const struct kp_load_options o = {0};
    kp_buf_adds(&text, "problem,B,clock\n");
    for (int i = 0; i <= KP_TARGET_VALUES_MAX; i++)
        kp_buf_addf(&text, "M=1,1,%d.5\n", i);
    kopt_error err = assert_fails(put_text("many.csv", kp_buf_text(&text)), &o, KOPT_ERANGE,
                                  "different values of 'clock'");
    assert_non_null(strstr(err.hint, "measurement"));
    kp_buf_clear(&text);
    kp_buf_adds(&text, "problem");
    for (int i = 0; i <= KP_TARGETS_MAX; i++)
        kp_buf_addf(&text, ",p%d", i);
    kp_buf_adds(&text, "\nM=1");
    for (int i = 0; i <= KP_TARGETS_MAX; i++)
        kp_buf_adds(&text, ",1");
    kp_buf_addc(&text, '\n');
    (void)assert_fails(put_text("many.csv", kp_buf_text(&text)), &o, KOPT_ERANGE,
                       "more than 64 parameters");
    kp_buf_deinit(&text);
}

/* --- rules and lists -----------------------------------------------------------------------
 */

static void values_that_the_rules_lack_stand_behind_their_list(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_options o = {.rules = k};
    struct kp_dataset *d =
        load(put_text("f", "M,N,B,T\n1,1,64,1\n1,2,32,2\n1,3,8.0,1\n1,4,many,1\n"), &o);
    assert_int_equal(report.unlisted, 2);
    assert_skipped(1, 5, "B=many does not go with the rules");
    assert_is(d, "M N tiles row|B T;1 1 1 1|64 1;1 2 1 1|32 2;1 3 1 1|8 1");
    assert_int_equal(d->targets[0].n_values, 5);
    static const int64_t want[] = {4, 8, 16, 32, 64};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(d->targets[0].values[i].as.i, want[i]);
    kp_dataset_free(d);
    kp_kernel_free(k);
}

static void sizes_of_kernels_are_whole(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.cl", "#pragma kopt kernel k\n"
                                        "#pragma kopt problem M\n"
                                        "#pragma kopt param B {1, 2}\n"
                                        "#pragma kopt block B\n"
                                        "#pragma kopt grid M\n"
                                        "kernel void k(void) {}\n");
    const struct kp_load_options o = {.rules = k};
    load_and_check(put_text("f", "M,B\n4,1\n0,1\n2.5,1\nx,2\n8,2\n"), &o, "M|B;4|1;8|2");
    assert_skipped(3, 3, "M=0 does not go with the rules");
    kp_kernel_free(k);
}

static void where_chooses_rows(void **state)
{
    (void)state;
    static const char *const where[] = {"clock=1900.0", "T=1"};
    static const char *const unknown[] = {"colour=red"};
    static const char *const none[] = {"T=3"};
    static const char *const params[] = {"B"};
    struct kp_load_options o = {.where = where, .n_where = 2, .params = params, .n_params = 1};
    load_and_check(put_text("plain.csv", plain), &o,
                   "M N T clock|B;64 32 1 1900|8:2500;128 32 1 1900|4:1000");
    assert_int_equal(report.read, 3);
    assert_int_equal(report.left_out, 1);
    o.where = unknown;
    o.n_where = 1;
    (void)assert_fails("plain.csv", &o, KOPT_EINPUT, "there is no 'colour'");
    o.where = none;
    (void)assert_fails("plain.csv", &o, KOPT_EINPUT, "none of 3 rows");
}

static void the_hash_is_that_of_the_rows(void **state)
{
    (void)state;
    char first[65];
    const struct kp_load_options o = {0};
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_options with = {.rules = k};
    kp_dataset_free(load(put_text("f", "problem,B,T,us\nM=1 N=2,8,1,3\nM=3 N=4,4,2,5\n"), &o));
    (void)snprintf(first, sizeof(first), "%s", report.hash);
    kp_dataset_free(load(
        put_text("f", "problem,T,time_ns,B\nN=4 M=3,2.0,5000,4\nN=2 M=1.0,1,3e3,8\n"), &o));
    assert_string_equal(report.hash, first);
    kp_dataset_free(load("f", &with));
    assert_string_equal(report.hash, first);
    kp_dataset_free(load(put_text("f", "problem,B,T,us\nM=1 N=2,8,1,3\nM=3 N=4,4,2,6\n"), &o));
    assert_string_not_equal(report.hash, first);
    kp_dataset_free(load(put_text("f", "problem,B,U,us\nM=1 N=2,8,1,3\nM=3 N=4,4,2,5\n"), &o));
    assert_string_not_equal(report.hash, first);
    kp_kernel_free(k);
}

/* --- MIOpen --------------------------------------------------------------------------------
 */

#define KEY(n) "64-56-56-1x1-32-56-56-" n "-0x0-1x1-1x1-0-NCHW-FP32-F"

static void miopen_text(void **state)
{
    (void)state;
    static const char text[] =
        KEY("8") "=S:4,1;Q:1\n" KEY("16") "=S:8,2\n" KEY("32") "=S:1,2,3\n";
    struct kp_load_options o = {0};
    kopt_error err =
        assert_fails(put_text("perf.txt", text), &o, KOPT_EINPUT, "which of 2 solvers?");
    assert_non_null(strstr(err.hint, "S, Q"));
    o.kernel = "X";
    err = assert_fails("perf.txt", &o, KOPT_EINPUT, "no solver 'X'");
    assert_non_null(strstr(err.hint, "S, Q"));
    o.kernel = "S";
    struct kp_dataset *d = load("perf.txt", &o);
    assert_int_equal(report.source, KP_SOURCE_MIOPEN);
    assert_string_equal(d->kernel, "S");
    assert_int_equal(d->n_fields, 26);
    assert_int_equal(d->n_targets, 2);
    assert_string_equal(d->targets[1].name, "p2");
    assert_int_equal(d->n_rows, 2);
    assert_string_equal(d->keys[0], KEY("8"));
    assert_true(isnan(d->times_ns[0]));
    assert_skipped(1, 3, "a vector of 3 values, not 2");
    assert_true(d->fields[0].is_word);
    kp_dataset_free(d);
    put_text("one.txt", KEY("8") "=S:4,1\n");
    o.kernel = NULL;
    d = load("one.txt", &o);
    assert_string_equal(d->kernel, "S");
    kp_dataset_free(d);
}

static void miopen_with_rules(void **state)
{
    (void)state;
    static const char rules[] = "kernel S\n"
                                "problem layout=\"NCHW\" in_h in_w batchsize arch=\"x\"\n"
                                "param a {4, 8}\n"
                                "param b {1, 2}\n"
                                "let out_h = in_h - 1\n"
                                "let HW = in_h*in_w\n";
    struct kp_kernel *k = parse("S.kopt", rules);
    struct kp_load_options o = {.rules = k};
    struct kp_dataset *d =
        load(put_text("perf.txt", KEY("8") "=S:4,1;Q:1\n" KEY("16") "=S:8,2\n"), &o);
    assert_int_equal(report.n_raw, 25); /* out_h is the rules' */
    assert_int_equal(d->n_fields, 27);
    assert_string_equal(d->fields[25].name, "out_h");
    assert_string_equal(d->fields[26].name, "HW");
    assert_true(d->problems[25] == 55 && d->problems[26] == 56 * 56);
    assert_string_equal(d->targets[0].name, "a");
    kp_dataset_free(d);
    o.kernel = "Q";
    (void)assert_fails("perf.txt", &o, KOPT_EINPUT,
                       "the vectors of 'Q' have 1 values, the rules in S.kopt have 2");
    kp_kernel_free(k);
    k = parse("S.kopt", "kernel S\nproblem colour\nparam a {4, 8}\nparam b {1, 2}\n");
    o = (struct kp_load_options){.rules = k};
    (void)assert_fails("perf.txt", &o, KOPT_EINPUT, "no 'colour', which the rules need");
    kp_kernel_free(k);
}

static void find_databases_are_one_kernel(void **state)
{
    (void)state;
    static const char text[] =
        KEY("8") "=miopenConvolutionFwdAlgoGEMM:gemm,0.5,0,g,n;miopenConvolutionFwdAlgoDirect:"
                 "d,0.25,0,g,n\n";
    struct kp_load_options o = {0};
    struct kp_dataset *d = load(put_text("find.txt", text), &o);
    assert_string_equal(d->kernel, "algorithm");
    assert_int_equal(d->n_targets, 1);
    assert_int_equal(d->n_rows, 2);
    assert_int_equal(d->targets[0].type, KP_STRING);
    assert_true(d->times_ns[0] == 250000 && d->times_ns[1] == 500000);
    kp_dataset_free(d);
    o.kernel = "ConvAsm1x1U";
    kopt_error err =
        assert_fails("find.txt", &o, KOPT_EINPUT, "no parameters of 'ConvAsm1x1U'");
    assert_non_null(strstr(err.hint, "'algorithm'"));
}

/* --- T4 ------------------------------------------------------------------------------------
 */

#define RESULT(b, t, rest) "{\"configuration\":{\"B\":" b ",\"T\":" t "}," rest "}"
#define TIME(value, unit) \
    "\"measurements\":[{\"name\":\"time\",\"value\":" value ",\"unit\":\"" unit "\"}]"

static void t4_documents(void **state)
{
    (void)state;
    static const char one[] =
        "{\"metadata\":{\"timeunit\":\"milliseconds\",\"kernel\":\"k\",\"device\":\"D\","
        "\"problem\":{\"M\":64,\"N\":32}},\"results\":[" RESULT(
            "8", "1",
            "\"invalidity\":\"correct\"," TIME(
                "0.5",
                "")) "," RESULT("4", "2",
                                "\"invalidity\":\"compile\"") "," RESULT("4", "1",
                                                                         "\"invalidity\":\"correct\"," TIME(
                                                                             "2",
                                                                             "us")) "," RESULT("16",
                                                                                               "1",
                                                                                               "\"invalidity\":\"correct\"") ","
                                                                                                                             "{}],\"schema_version\":\"1.0.0\"}\n";
    struct kp_load_options o = {0};
    static const char want[] = "M N|B T;64 32|4 1:2000;64 32|4 2:inf;64 32|8 1:500000";
    struct kp_buf text = KP_BUF_INIT(1 << 16);
    struct kp_dataset *d = load(put_text("one.json", one), &o);
    assert_is(d, want);
    assert_string_equal(d->kernel, "k");
    assert_int_equal(report.source, KP_SOURCE_T4);
    assert_skipped(2, 4, "it has no time");
    kp_dataset_free(d);
    kp_buf_addf(&text, "[%s,%s]", one, "{\"metadata\":{\"kernel\":\"j\"},\"results\":[]}");
    kopt_error err = assert_fails(put_text("two.json", kp_buf_text(&text)), &o, KOPT_EINPUT,
                                  "which of 2 kernels?");
    assert_non_null(strstr(err.hint, "k, j"));
    o.kernel = "k";
    load_and_check("two.json", &o, want);
    o.kernel = "x";
    (void)assert_fails("two.json", &o, KOPT_EINPUT, "no kernel 'x'");
    o.kernel = NULL;
    (void)assert_fails(put_text("f", "{\"a\":1}"), &o, KOPT_EINPUT, "no T4 results");
    (void)assert_fails(put_text("f", "{\"results\":"), &o, KOPT_EINPUT, "");
    (void)assert_fails(put_text("f", "{\"results\":[" RESULT("1", "1", TIME("1", "ms")) "]}"),
                       &o, KOPT_EINPUT, "no problem sizes");
    kp_buf_deinit(&text);
}

/* --- what is odd ---------------------------------------------------------------------------
 */

static void a_table_without_times_is_told(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.kopt", rules_text);
    static const char *const where[] = {"place=here"};
    struct kp_load_options o = {.rules = k, .where = where, .n_where = 1};
    kp_dataset_free(load(put_text("t.csv", "M,N,T,B,US,place,note\n"
                                           "64,32,1,8,2.5,here,x\n"
                                           "64,32,1,4,2.5,here,x\n"),
                         &o));
    assert_true(report.untimed);
    assert_string_equal(report.aside, "US, note");
    kp_dataset_free(
        load(put_text("t.csv", "M,N,T,B,us,outcome\n64,32,1,8,2,ok\n64,32,1,4,,ok\n"),
             &(struct kp_load_options){.rules = k}));
    assert_false(report.untimed);
    assert_string_equal(report.aside, "");
    kp_dataset_free(load(put_text("t.csv", "M,N,T,B,outcome\n64,32,1,8,crash\n"),
                         &(struct kp_load_options){.rules = k}));
    assert_false(report.untimed); /* they failed */
    char wide[512];
    (void)snprintf(wide, sizeof(wide), "%0*d,M,N,T,B,%0*d,z\n1,64,32,1,8,1,1\n", 60, 1, 70, 2);
    kp_dataset_free(load(put_text("t.csv", wide), &(struct kp_load_options){.rules = k}));
    assert_int_equal(strlen(report.aside), 60 + 4);
    assert_string_equal(report.aside + 60, ", ..");
    kp_kernel_free(k);
}

static void the_first_row_that_is_skipped_has_a_place(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_more more = {"other", "more.csv"};
    const struct kp_load_options o = {.rules = k, .more = &more, .n_more = 1, .source = "t"};
    (void)put_text("t.csv", "M,N,T,B,us\n64,32,1,8,2.5\n");
    (void)put_text("more.csv", "M,N,T,B,us\n64,32,1,4,1\n64,32,1,8,-1\n");
    kp_dataset_free(load("t.csv", &o));
    assert_string_equal(report.reason, "more.csv, line 3: the time '-1' is no positive number");
    kp_dataset_free(load("more.csv", &(struct kp_load_options){.rules = k}));
    assert_string_equal(report.reason, "line 3: the time '-1' is no positive number");
    kp_kernel_free(k);
}

static void rules_are_of_the_kernel_that_is_asked_for(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.kopt", rules_text);
    struct kp_load_options o = {.rules = k, .kernel = "gemm"};
    (void)assert_fails(put_text("t.csv", plain), &o, KOPT_EUSAGE,
                       "names no kernel, and the rules are those of 'k', not of 'gemm'");
#define ROWS    "\"results\":[" RESULT("8", "1", TIME("1", "ms")) "]}"
#define PROBLEM "\"problem\":{\"M\":64,\"N\":32}}," ROWS
    (void)assert_fails(put_text("t.json", "{\"metadata\":{" PROBLEM), &o, KOPT_EUSAGE,
                       "names no kernel");
    /* It names its own: another name for the rules is the user's. */
    struct kp_dataset *d =
        load(put_text("t.json", "{\"metadata\":{\"kernel\":\"gemm\"," PROBLEM), &o);
    assert_string_equal(d->kernel, "gemm");
    kp_dataset_free(d);
    kp_kernel_free(k);
}

/* --- memory --------------------------------------------------------------------------------
 */

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct kp_kernel *k = parse("k.kopt", rules_text);
    const struct kp_load_options with = {.rules = k};
    const struct kp_load_options one = {.kernel = "S"};
    const struct kp_load_options any = {0};
    const struct {
        const char *path;
        const struct kp_load_options *o;
    } files[] = {
        {put_text("m.csv", plain), &with},
        {put_text("m.txt", KEY("8") "=S:4,1;Q:1\n"), &one},
        {put_text("m.json", "{\"metadata\":{\"problem\":{\"M\":1}},\"results\":[" RESULT(
                                "1", "1", TIME("1", "ms")) "]}"),
         &any}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        kopt_status st = KOPT_ENOMEM;
        for (long n = 1; st != KOPT_OK; n++) {
            struct kp_dataset *d = NULL;
            kopt_error err = {0};
            assert_true(n < 2000);
            kp_alloc_fail_at(n);
            st = kp_load(files[i].path, files[i].o, &d, &report, &err);
            kp_alloc_fail_at(0);
            if (st != KOPT_OK && st != KOPT_ENOMEM)
                fail_msg("%s, allocation %ld: %s", files[i].path, n, err.message);
            kp_dataset_free(d);
        }
    }
    kp_kernel_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_with_rules),
        cmocka_unit_test(csv_without_rules_needs_the_parameters),
        cmocka_unit_test(csv_with_a_column_of_problems),
        cmocka_unit_test(csv_of_other_programs),
        cmocka_unit_test(rows_that_cannot_be_used_are_counted),
        cmocka_unit_test(csv_files_that_are_none),
        cmocka_unit_test(cut_and_hostile_gzip_files_end_early),
        cmocka_unit_test(too_many_values_are_an_error),
        cmocka_unit_test(values_that_the_rules_lack_stand_behind_their_list),
        cmocka_unit_test(sizes_of_kernels_are_whole),
        cmocka_unit_test(where_chooses_rows),
        cmocka_unit_test(the_hash_is_that_of_the_rows),
        cmocka_unit_test(miopen_text),
        cmocka_unit_test(miopen_with_rules),
        cmocka_unit_test(find_databases_are_one_kernel),
        cmocka_unit_test(t4_documents),
        cmocka_unit_test(a_table_without_times_is_told),
        cmocka_unit_test(the_first_row_that_is_skipped_has_a_place),
        cmocka_unit_test(rules_are_of_the_kernel_that_is_asked_for),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
