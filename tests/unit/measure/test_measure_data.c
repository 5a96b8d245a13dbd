/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "measure/data.h"
#include "os/file.h"
#include "unit/measure/kernels.h"

#include <math.h>
#include <unistd.h>

enum { LINE = 7 }; /* of the first of `lines` */

/* The bytes of argument 0 ("A"), kp_free() them. */
static unsigned char *filled(const char *lines, const char *problem, uint64_t seed, size_t *n)
{
    struct bound x;
    struct kp_buf b = KP_BUF_INIT(1 << 24);
    kopt_error err = {0};
    bind(&x, lines, problem);
    if (kp_data_write(x.b, 0, seed, "a.bin", &err) != KOPT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(kp_file_read("a.bin", &b, NULL), KOPT_OK);
    *n = b.len;
    unbind(&x);
    return (unsigned char *)kp_buf_take(&b);
}

static void refused(const char *lines, const char *word)
{
    struct bound x;
    kopt_error err = {0};
    bind(&x, lines, NULL);
    kopt_status st = kp_data_write(x.b, 0, 1, "a.bin", &err);
    if (st != KOPT_EINPUT)
        fail_msg("%s: status %d", lines, st);
    assert_int_equal(err.line, LINE);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in '%s'", word, err.message);
    unbind(&x);
}

/* Values and their encodings, worked out by hand from the formats' definitions. */
struct half {
    const char *value;
    unsigned bits;
};

static void halves(const char *type, const struct half *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char lines[256];
        size_t bytes;
        (void)snprintf(lines, sizeof(lines), "#pragma kopt arg A %s[2] constant(%s)\n", type,
                       t[i].value);
        unsigned char *b = filled(lines, NULL, 1, &bytes);
        assert_int_equal(bytes, 4);
        unsigned got = b[0] | (unsigned)b[1] << 8;
        if (got != t[i].bits || memcmp(b, b + 2, 2) != 0)
            fail_msg("%s of %s: 0x%04x, expected 0x%04x", type, t[i].value, got, t[i].bits);
        kp_free(b);
    }
}

static void halves_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    static const struct half f16[] = {
        {"0.0", 0x0000},
        {"1.0", 0x3c00},
        {"-2.0", 0xc000},
        {"0.5", 0x3800},
        {"65504.0", 0x7bff},       /* the largest */
        {"65519.0", 0x7bff},       /* under the middle to the next power */
        {"2048.0", 0x6800},        /* units of 2 from here on */
        {"2049.0", 0x6800},        /* a tie, to even */
        {"2051.0", 0x6802},        /* a tie, to even upwards */
        {"2047.75", 0x6800},       /* carries into the exponent */
        {"2.0**-14", 0x0400},      /* the smallest normal */
        {"2.0**-15", 0x0200},      /* subnormal */
        {"2.0**-24", 0x0001},      /* the smallest */
        {"2.0**-25", 0x0000},      /* a tie between it and 0 */
        {"3*2.0**-25", 0x0002},    /* a tie between 1 and 2 */
        {"1.1*2.0**-25", 0x0001},  /* over the tie */
        {"2047*2.0**-25", 0x0400}, /* a subnormal that rounds to a normal */
        {"1+2.0**-11", 0x3c00},    /* tie to even */
        {"1+3*2.0**-11", 0x3c02},  /* tie to even upwards */
        {"1+2.0**-11+2.0**-30", 0x3c01},
    };
    static const struct half bf16[] = {
        {"0.0", 0x0000},
        {"1.0", 0x3f80},
        {"-1.5", 0xbfc0},
        {"1+2.0**-8", 0x3f80},   /* tie to even */
        {"1+3*2.0**-8", 0x3f82}, /* tie to even upwards */
        {"1+2.0**-8+2.0**-20", 0x3f81},
        /* Over the tie by less than a float can show: rounding twice gives 0x3f80. */
        {"1+2.0**-8+2.0**-40", 0x3f81},
        {"1+3*2.0**-8-2.0**-40", 0x3f81},
        {"2.0**-126", 0x0080},
        {"2.0**-133", 0x0001}, /* the smallest subnormal */
        {"2.0**-134", 0x0000}, /* tie between it and 0 */
        {"3.38e38", 0x7f7e},
    };
    halves("f16", f16, sizeof(f16) / sizeof(f16[0]));
    halves("bf16", bf16, sizeof(bf16) / sizeof(bf16[0]));
}

static void values_that_a_type_does_not_hold_are_refused_with_their_line(void **state)
{
    (void)state;
    refused("#pragma kopt arg A i8[4] constant(128)\n", "hold");
    refused("#pragma kopt arg A u8[4] constant(-1)\n", "hold");
    refused("#pragma kopt arg A u64[4] constant(-1)\n", "hold");
    refused("#pragma kopt arg A i16[4] gen(i*20000)\n", "hold");
    refused("#pragma kopt arg A u32[4] constant(2**32)\n", "hold");
    refused("#pragma kopt arg A i64[4] constant(2.0**63)\n", "hold");
    refused("#pragma kopt arg A i32[4] constant(0.5)\n", "hold");
    refused("#pragma kopt arg A u8[4] gen(i / 2.0)\n", "hold");
    refused("#pragma kopt arg A f16[4] constant(65520.0)\n", "hold");
    refused("#pragma kopt arg A bf16[4] constant(3.4e38)\n", "hold");
    refused("#pragma kopt arg A f32[4] constant(1e39)\n", "hold");
    refused("#pragma kopt arg A f32[4] gen(1e38*(i+1)*2)\n", "hold");
    refused("#pragma kopt arg A i8[4] uniform(-200, 5)\n", "bounds");
    refused("#pragma kopt arg A f32[4] uniform(2, 1)\n", "bounds");
    refused("#pragma kopt arg A f64[4] uniform(-1.7e308, 1.7e308)\n", "bounds");
    refused("#pragma kopt arg A i32[4] uniform(0.2, 0.8)\n", "bounds");
    refused("#pragma kopt arg A i32[4] gen(1//(i-2))\n", "fill of A");
    refused("#pragma kopt arg A f32[4] constant(1/(N-8))\n", "fill of A");
}

static void uniform_integers_stay_within_their_bounds_and_reach_both(void **state)
{
    (void)state;
    static const char *const types[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
    for (size_t t = 0; t < 8; t++) {
        char lines[128];
        size_t n;
        bool seen[4] = {0};
        (void)snprintf(lines, sizeof(lines), "#pragma kopt arg A %s[400] uniform(0.5, 3.9)\n",
                       types[t]);
        unsigned char *b = filled(lines, NULL, 3, &n);
        size_t size = n / 400;
        for (size_t i = 0; i < 400; i++) {
            unsigned v = b[i * size];
            assert_in_range(v, 1, 3);
            for (size_t k = 1; k < size; k++)
                assert_int_equal(b[i * size + k], 0);
            seen[v] = true;
        }
        assert_true(seen[1] && seen[2] && seen[3]);
        kp_free(b);
    }
}

static void normal_numbers_have_their_mean_and_deviation(void **state)
{
    (void)state;
    size_t n;
    float *v =
        (float *)(void *)filled("#pragma kopt arg A f32[20000] normal(5, 2)\n", NULL, 1, &n);
    double sum = 0;
    double square = 0;
    for (size_t i = 0; i < 20000; i++) {
        double x = (double)v[i];
        sum += x;
        square += x * x;
    }
    double mean = sum / 20000;
    double sd = sqrt(square / 20000 - mean * mean);
    assert_true(fabs(mean - 5) < 5 * 2 / sqrt(20000)); /* five standard errors */
    assert_true(fabs(sd - 2) < 5 * 2 / sqrt(2.0 * 20000));
    kp_free(v);
}

static void a_seed_gives_the_same_bytes_and_each_argument_its_own(void **state)
{
    (void)state;
    static const char two[] = "#pragma kopt arg A f32[64]  B f32[64]\n";
    size_t n;
    unsigned char *a = filled(two, NULL, 1, &n);
    unsigned char *again = filled("#pragma kopt arg A f32[64]\n", NULL, 1, &n);
    unsigned char *other = filled(two, NULL, 2, &n);
    struct bound x;
    struct kp_buf b = KP_BUF_INIT(4096);
    assert_memory_equal(a, again, n);
    assert_memory_not_equal(a, other, n);
    bind(&x, two, NULL);
    assert_int_equal(kp_data_write(x.b, 1, 1, "b.bin", NULL), KOPT_OK);
    assert_int_equal(kp_file_read("b.bin", &b, NULL), KOPT_OK);
    assert_memory_not_equal(a, b.ptr, n);
    kp_buf_deinit(&b);
    unbind(&x);
    kp_free(a);
    kp_free(again);
    kp_free(other);
}

static void generators_see_the_index_and_outputs_are_poisoned(void **state)
{
    (void)state;
    size_t n;
    int32_t *v =
        (int32_t *)(void *)filled("#pragma kopt arg A i32[N] gen(3*i-N)\n", "N=5", 1, &n);
    assert_int_equal(n, 20);
    for (int i = 0; i < 5; i++)
        assert_int_equal(v[i], 3 * i - 5);
    kp_free(v);
    unsigned char *out = filled("#pragma kopt arg A u16[3] out\n", NULL, 1, &n);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(out[i], 0xff);
    kp_free(out);
}

static void files_must_have_the_right_size(void **state)
{
    (void)state;
    static const char lines[] = "#pragma kopt arg A i32[2] file(\"in.bin\")\n";
    size_t n;
    assert_int_equal(kp_file_put("in.bin", "abcdefgh", 8, NULL), KOPT_OK);
    unsigned char *b = filled(lines, NULL, 1, &n);
    assert_int_equal(n, 8);
    assert_memory_equal(b, "abcdefgh", 8);
    kp_free(b);
    struct bound x;
    kopt_error err = {0};
    bind(&x, lines, NULL);
    assert_int_equal(kp_file_put("in.bin", "abcdefg", 7, NULL), KOPT_OK);
    assert_int_equal(kp_data_write(x.b, 0, 1, "a.bin", &err), KOPT_EINPUT);
    assert_non_null(strstr(err.message, "7 bytes"));
    assert_int_equal(err.line, LINE);
    assert_int_equal(kp_file_put("in.bin", "abcdefghi", 9, NULL), KOPT_OK);
    assert_int_not_equal(kp_data_write(x.b, 0, 1, "a.bin", &err), KOPT_OK);
    assert_int_equal(unlink("in.bin"), 0);
    assert_int_equal(kp_data_write(x.b, 0, 1, "a.bin", &err), KOPT_EIO);
    unbind(&x);
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    struct bound x;
    size_t bytes;
    kopt_error err = {0};
    bind(&x,
         "#pragma kopt arg A f64x16[N*N]  B f32x3[N]  C f32[N-8]\n"
         "#pragma kopt arg t local f32[2*P]\n",
         "N=8");
    assert_int_equal(kp_data_bytes(x.b, 0, NULL, &bytes, NULL), KOPT_OK);
    assert_int_equal(bytes, 64 * 128);
    assert_int_equal(kp_data_bytes(x.b, 1, NULL, &bytes, NULL), KOPT_OK);
    assert_int_equal(bytes, 8 * 16); /* three take the room of four */
    assert_int_not_equal(kp_data_bytes(x.b, 2, NULL, &bytes, &err), KOPT_OK);
    const uint32_t config[] = {1};
    assert_int_equal(kp_data_bytes(x.b, 3, config, &bytes, NULL), KOPT_OK);
    assert_int_equal(bytes, 4 * 600);
    unbind(&x);
    bind(&x, "#pragma kopt arg A f64x16[N*N]\n", "N=3000000000");
    assert_int_equal(kp_data_bytes(x.b, 0, NULL, &bytes, &err), KOPT_ERANGE);
    assert_int_equal(err.line, LINE);
    unbind(&x);
}

static void scalars_out_of_range_are_refused(void **state)
{
    (void)state;
    struct bound x;
    unsigned char v[16];
    size_t bytes;
    kopt_error err = {0};
    const uint32_t small[] = {0};
    const uint32_t large[] = {1};
    bind(&x, "#pragma kopt arg N  P u8  alpha f32 = 1.5  h f16 = 70000.0  big i64 = 2**62\n",
         "N=8");
    assert_int_equal(kp_data_scalar(x.b, 0, NULL, v, &bytes, NULL), KOPT_OK);
    assert_int_equal(bytes, 4);
    assert_memory_equal(v, "\x08\0\0\0", 4);
    assert_int_equal(kp_data_scalar(x.b, 1, small, v, &bytes, NULL), KOPT_OK);
    assert_int_equal(bytes, 1);
    assert_int_equal(v[0], 1);
    assert_int_equal(kp_data_scalar(x.b, 1, large, v, &bytes, &err), KOPT_ERANGE);
    assert_non_null(strstr(err.message, "P"));
    assert_int_equal(err.line, LINE);
    assert_int_equal(kp_data_scalar(x.b, 2, NULL, v, &bytes, NULL), KOPT_OK);
    assert_memory_equal(v, "\0\0\xc0\x3f", 4);
    assert_int_equal(kp_data_scalar(x.b, 3, NULL, v, &bytes, &err), KOPT_EINPUT);
    assert_int_equal(kp_data_scalar(x.b, 4, NULL, v, &bytes, NULL), KOPT_OK);
    assert_memory_equal(v, "\0\0\0\0\0\0\0\x40", 8);
    unbind(&x);
    bind(&x, "#pragma kopt arg N i32\n", "N=2147483648");
    assert_int_equal(kp_data_scalar(x.b, 0, NULL, v, &bytes, &err), KOPT_ERANGE);
    unbind(&x);
}

static void descriptions_tell_data_apart(void **state)
{
    (void)state;
    struct bound x;
    struct kp_buf b = KP_BUF_INIT(4096);
    bind(&x, "#pragma kopt arg A f32[8] normal(0,1)  B f32[8] uniform(-1,1)  C f32[8] out  N\n",
         NULL);
    struct kp_conditions how = {.seed = 7, .flush_bytes = 4096};
    kp_data_describe(x.b, &how, &b);
    assert_string_equal(kp_buf_text(&b),
                        "{\"A\":\"normal(0,1)\",\"B\":\"uniform(-1,1)\",\"flush\":4096,"
                        "\"protocol\":1,\"seed\":7}");
    how.cores = 2;
    kp_buf_clear(&b);
    kp_data_describe(x.b, &how, &b);
    assert_non_null(strstr(kp_buf_text(&b), "\"cores\":2,\"flush\":4096"));
    kp_buf_deinit(&b);
    unbind(&x);
}

static void running_out_of_memory_is_an_error_like_any_other(void **state)
{
    (void)state;
    struct bound x;
    bind(&x, "#pragma kopt arg A i32[64] gen(i)\n", NULL);
    kopt_status st = KOPT_ENOMEM;
    for (long at = 1; at < 100 && st != KOPT_OK; at++) {
        kp_alloc_fail_at(at);
        st = kp_data_write(x.b, 0, 1, "a.bin", NULL);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
    }
    assert_int_equal(st, KOPT_OK);
    unbind(&x);
}

static struct kp_expected looked_at(enum kp_elem e, const void *bytes, size_t n,
                                    const char *before)
{
    struct kp_expected a;
    kopt_error err;
    assert_int_equal(kp_file_put("answer.bin", bytes, n, NULL), KOPT_OK);
    if (kp_expected_look("answer.bin", e, before, &a, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return a;
}

static void answers_are_looked_through_for_nan(void **state)
{
    (void)state;
    const float f32[] = {1, (float)INFINITY, (float)NAN, -(float)NAN};
    const double f64[] = {-(double)INFINITY, (double)NAN};
    const uint16_t f16[] = {0x7c00, 0x7c01, 0xfe00, 0x7f80};
    const uint16_t bf16[] = {0x7f80, 0x7c01, 0xffc0};
    const int32_t i32[] = {-1, 0x7fc00000};
    struct kp_expected a = looked_at(KP_F32, f32, sizeof(f32), NULL);
    assert_int_equal(a.n, 4);
    assert_int_equal(a.n_nan, 2);
    assert_int_equal(a.first_nan, 2);
    a = looked_at(KP_F64, f64, sizeof(f64), NULL);
    assert_int_equal(a.n_nan, 1);
    assert_int_equal(a.first_nan, 1);
    a = looked_at(KP_F16, f16, sizeof(f16), NULL);
    assert_int_equal(a.n_nan, 3);
    assert_int_equal(a.first_nan, 1);
    a = looked_at(KP_BF16, bf16, sizeof(bf16), NULL);
    assert_int_equal(a.n_nan, 1);
    assert_int_equal(a.first_nan, 2);
    assert_int_equal(looked_at(KP_I32, i32, sizeof(i32), NULL).n_nan, 0);
}

static void answers_are_compared_with_what_was_there(void **state)
{
    (void)state;
    enum { N = 100000 }; /* more than is read at once */
    static int32_t v[N];
    assert_int_equal(kp_file_put("before.bin", v, sizeof(v), NULL), KOPT_OK);
    assert_true(looked_at(KP_I32, v, sizeof(v), "before.bin").untouched);
    assert_false(looked_at(KP_I32, v, sizeof(v), NULL).untouched);
    v[N - 1] = 1;
    struct kp_expected a = looked_at(KP_I32, v, sizeof(v), "before.bin");
    assert_false(a.untouched);
    assert_int_equal(a.n, N);
    memset(v, 0xff, sizeof(v));
    assert_true(looked_at(KP_I32, v, sizeof(v), NULL).untouched);
    kopt_error err;
    assert_int_equal(kp_expected_look("answer.bin", KP_I32, "none.bin", &a, &err), KOPT_EIO);
    assert_int_equal(kp_expected_look("none.bin", KP_I32, NULL, &a, &err), KOPT_EIO);
    assert_int_equal(kp_file_put("answer.bin", v, 7, NULL), KOPT_OK);
    assert_int_equal(kp_expected_look("answer.bin", KP_I32, NULL, &a, &err), KOPT_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_rounded_to_nearest_even),
        cmocka_unit_test(values_that_a_type_does_not_hold_are_refused_with_their_line),
        cmocka_unit_test(uniform_integers_stay_within_their_bounds_and_reach_both),
        cmocka_unit_test(normal_numbers_have_their_mean_and_deviation),
        cmocka_unit_test(a_seed_gives_the_same_bytes_and_each_argument_its_own),
        cmocka_unit_test(generators_see_the_index_and_outputs_are_poisoned),
        cmocka_unit_test(files_must_have_the_right_size),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(scalars_out_of_range_are_refused),
        cmocka_unit_test(descriptions_tell_data_apart),
        cmocka_unit_test(running_out_of_memory_is_an_error_like_any_other),
        cmocka_unit_test(answers_are_looked_through_for_nan),
        cmocka_unit_test(answers_are_compared_with_what_was_there),
    };
    return cmocka_run_group_tests_name("measure/data", tests, NULL, NULL);
}
