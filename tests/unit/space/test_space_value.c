/* SPDX-License-Identifier: MIT */
#include "space/value.h"
#include "support/test.h"

#include <math.h>

static struct kp_value text(const char *s)
{
    return kp_string(kp_str_from(s));
}

static void assert_written(struct kp_value v, const char *macro, const char *plain,
                           const char *json)
{
    struct kp_buf out = KP_BUF_INIT(1000);
    kp_value_to_macro(v, &out);
    assert_string_equal(kp_buf_text(&out), macro);
    kp_buf_clear(&out);
    kp_value_to_text(v, &out);
    assert_string_equal(kp_buf_text(&out), plain);
    kp_buf_clear(&out);
    kp_value_to_json(v, &out);
    assert_string_equal(kp_buf_text(&out), json);
    kp_buf_deinit(&out);
}

static void values_are_written_for_macros_people_and_json(void **state)
{
    (void)state;
    assert_written(kp_int(-16), "-16", "-16", "-16");
    assert_written(kp_int(INT64_MIN), "-9223372036854775808", "-9223372036854775808",
                   "-9223372036854775808");
    assert_written(kp_float(0.5), "0.5", "0.5", "0.5");
    assert_written(kp_float(2), "2.0", "2.0", "2.0");
    assert_written(kp_float(1e20), "1e+20", "1e+20", "1e+20");
    assert_written(kp_float((double)INFINITY), "INFINITY", "inf", "null");
    assert_written(kp_float((double)-INFINITY), "(-INFINITY)", "-inf", "null");
    assert_written(kp_float((double)NAN), "NAN", "nan", "null");
    assert_written(kp_bool(true), "1", "true", "true");
    assert_written(kp_bool(false), "0", "false", "false");
    assert_written(text("a\"b"), "a\"b", "a\"b", "\"a\\\"b\"");
}

static void assert_order(struct kp_value a, struct kp_value b, int want)
{
    int order = 7;
    assert_true(kp_value_compare(a, b, &order));
    assert_int_equal(order < 0 ? -1 : order > 0, want);
    assert_true(kp_value_compare(b, a, &order));
    assert_int_equal(order < 0 ? -1 : order > 0, -want);
}

static void numbers_are_ordered_exactly_across_types(void **state)
{
    (void)state;
    assert_order(kp_int(1), kp_int(2), -1);
    assert_order(kp_int(2), kp_float(2.5), -1);
    assert_order(kp_int(-2), kp_float(-2.5), 1);
    assert_order(kp_int(3), kp_float(3), 0);
    assert_order(kp_bool(true), kp_int(1), 0);
    assert_order(kp_bool(false), kp_float(0.5), -1);
    assert_order(kp_float(0.0), kp_float(-0.0), 0);
    /* 2^53 + 1 has no double; 2^63 is no int64 */
    assert_order(kp_int(9007199254740993), kp_float(9007199254740992.0), 1);
    assert_order(kp_int(INT64_MAX), kp_float(0x1p63), -1);
    assert_order(kp_int(INT64_MIN), kp_float(-0x1p63), 0);
    assert_order(kp_int(INT64_MIN), kp_float(-1e300), 1);
    assert_order(kp_int(INT64_MAX), kp_float((double)INFINITY), -1);
}

static void strings_are_ordered_by_bytes(void **state)
{
    (void)state;
    assert_order(text("a"), text("b"), -1);
    assert_order(text("ab"), text("a"), 1);
    assert_order(text(""), text(""), 0);
    assert_order(text("z"), text("\xc3\xa9"), -1);
}

static void what_has_no_order_says_so(void **state)
{
    int order = 0;
    (void)state;
    assert_false(kp_value_compare(text("1"), kp_int(1), &order));
    assert_false(kp_value_compare(kp_float((double)NAN), kp_int(1), &order));
    assert_false(kp_value_compare(kp_int(1), kp_float((double)NAN), &order));
}

static void sameness_looks_at_type_and_bits(void **state)
{
    (void)state;
    assert_true(kp_value_same(kp_int(1), kp_int(1)));
    assert_false(kp_value_same(kp_int(1), kp_float(1)));
    assert_false(kp_value_same(kp_int(1), kp_bool(true)));
    assert_true(kp_value_same(kp_float((double)NAN), kp_float((double)NAN)));
    assert_false(kp_value_same(kp_float(0.0), kp_float(-0.0)));
    assert_true(kp_value_same(text("ab"), text("ab")));
    assert_false(kp_value_same(text("ab"), text("a")));
    assert_true(kp_value_same(kp_bool(true), kp_bool(true)));
}

static void values_become_doubles(void **state)
{
    double f = 9;
    (void)state;
    assert_true(kp_value_to_f64(kp_int(3), &f) && f > 2.5 && f < 3.5);
    assert_true(kp_value_to_f64(kp_bool(true), &f) && f > 0.5);
    assert_true(kp_value_to_f64(kp_float(-0.25), &f) && f < 0);
    assert_false(kp_value_to_f64(text("3"), &f));
    assert_string_equal(kp_type_name(KP_STRING), "string");
    assert_string_equal(kp_type_name(KP_BOOL), "bool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_for_macros_people_and_json),
        cmocka_unit_test(numbers_are_ordered_exactly_across_types),
        cmocka_unit_test(strings_are_ordered_by_bytes),
        cmocka_unit_test(what_has_no_order_says_so),
        cmocka_unit_test(sameness_looks_at_type_and_bits),
        cmocka_unit_test(values_become_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
