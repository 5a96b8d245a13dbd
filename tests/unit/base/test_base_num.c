/* SPDX-License-Identifier: MIT */
#include "base/num.h"
#include "base/rng.h"
#include "support/test.h"

#include <locale.h>
#include <math.h>

static void assert_text(double v, const char *want)
{
    char text[KP_F64_TEXT];
    assert_int_equal(kp_f64_to_text(v, text), strlen(want));
    assert_string_equal(text, want);
}

/* The layout is that of Python's repr(). */
static void numbers_are_written_shortest(void **state)
{
    (void)state;
    assert_text(0, "0.0");
    assert_text(-0.0, "-0.0");
    assert_text(1, "1.0");
    assert_text(0.1, "0.1");
    assert_text(0.1 + 0.2, "0.30000000000000004");
    assert_text(100, "100.0");
    assert_text(123456789012345.6, "123456789012345.6");
    assert_text(1e15, "1000000000000000.0");
    assert_text(1e16, "1e+16");
    assert_text(1.5e16, "1.5e+16");
    assert_text(1e22, "1e+22");
    assert_text(0.0001, "0.0001");
    assert_text(0.00001234, "1.234e-05");
    assert_text(5e-324, "5e-324");
    assert_text(1.7976931348623157e308, "1.7976931348623157e+308");
    assert_text(-2.5e-7, "-2.5e-07");
    assert_text((double)INFINITY, "inf");
    assert_text((double)-INFINITY, "-inf");
    assert_text((double)NAN, "nan");
}

static void assert_reads(const char *text, double want)
{
    double v = -1;
    assert_true(kp_f64_from_text(kp_str_from(text), &v));
    assert_memory_equal(&v, &want, sizeof(v));
}

static void assert_refused(const char *text)
{
    double v = -1;
    assert_false(kp_f64_from_text(kp_str_from(text), &v));
}

static void numbers_are_read(void **state)
{
    (void)state;
    assert_reads("0", 0);
    assert_reads("-0.0", -0.0);
    assert_reads("1.5", 1.5);
    assert_reads("+1.5", 1.5);
    assert_reads(".5", 0.5);
    assert_reads("5.", 5);
    assert_reads("1e3", 1000);
    assert_reads("1.25E-2", 0.0125);
    assert_reads("1e-400", 0);
    assert_reads("123456789012345678901234567890", 123456789012345678901234567890.0);
    assert_reads("0.30000000000000004", 0.1 + 0.2);
    assert_refused("");
    assert_refused(".");
    assert_refused("-");
    assert_refused("1.2.3");
    assert_refused("1e");
    assert_refused("1e+");
    assert_refused("1e5x");
    assert_refused(" 1");
    assert_refused("inf");
    assert_refused("nan");
    assert_refused("0x10");
    assert_refused("1e999");
    assert_refused("1,5");
}

static void texts_read_back_as_the_same_number(void **state)
{
    (void)state;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        char text[KP_F64_TEXT];
        uint64_t bits = kp_rng_u64(&rng);
        double v;
        double back = 0;
        memcpy(&v, &bits, sizeof(v));
        if (!isfinite(v))
            continue;
        size_t n = kp_f64_to_text(v, text);
        assert_true(kp_f64_from_text((struct kp_str){text, n}, &back));
        assert_memory_equal(&v, &back, sizeof(v));
    }
}

static void a_decimal_comma_in_the_locale_changes_nothing(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    if (!found) {
        (void)printf("no locale with a decimal comma is installed\n");
        skip();
    }
    assert_text(1.5, "1.5");
    assert_reads("1.5", 1.5);
    (void)setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_shortest),
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(texts_read_back_as_the_same_number),
        cmocka_unit_test(a_decimal_comma_in_the_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
