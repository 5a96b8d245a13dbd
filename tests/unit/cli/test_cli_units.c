/* SPDX-License-Identifier: MIT */
/* Numbers as people read them, and JSON as programs do. */
#include "cli/json.h"
#include "cli/units.h"
#include "support/test.h"

#include <math.h>

static char text[CLI_NUM];

static void counts_have_separators(void **state)
{
    (void)state;
    assert_string_equal(cli_count(0, text), "0");
    assert_string_equal(cli_count(999, text), "999");
    assert_string_equal(cli_count(1000, text), "1,000");
    assert_string_equal(cli_count(-1234567, text), "-1,234,567");
    assert_string_equal(cli_count(999999999999999, text), "999,999,999,999,999");
    assert_string_equal(cli_count(1.5e18, text), "1.5e+18");
    assert_string_equal(cli_count((double)NAN, text), "-");
}

static void figures_have_four_digits(void **state)
{
    (void)state;
    assert_string_equal(cli_figure(0.14321, text), "0.1432");
    assert_string_equal(cli_figure(143.21, text), "143.2");
    assert_string_equal(cli_figure(1432.1, text), "1,432");
    assert_string_equal(cli_figure(12345678.0, text), "12,345,678");
    assert_string_equal(cli_figure(0, text), "0");
    assert_string_equal(cli_figure(2.5e-7, text), "2.5e-07");
    assert_string_equal(cli_figure((double)INFINITY, text), "-");
}

static void times_choose_their_unit(void **state)
{
    (void)state;
    struct cli_term t = {.utf8 = true};
    assert_string_equal(cli_time(&t, 143.2, text), "143.2 ns");
    assert_string_equal(cli_time(&t, 143200, text), "143.2 \xc2\xb5s");
    assert_string_equal(cli_time(&t, 1.5e6, text), "1.500 ms");
    assert_string_equal(cli_time(&t, 2.5e9, text), "2.500 s");
    assert_string_equal(cli_time(&t, (double)NAN, text), "-");
    t.utf8 = false;
    assert_string_equal(cli_time(&t, 143200, text), "143.2 us");
    struct cli_unit unit = cli_unit_for(&t, 143200);
    assert_string_equal(cli_time_in(unit, 143200, 1432000, text), "1432.0");
}

static void durations_read_like_a_clock(void **state)
{
    (void)state;
    assert_string_equal(cli_duration(0.0123, text), "12.3 ms");
    assert_string_equal(cli_duration(1.234, text), "1.23 s");
    assert_string_equal(cli_duration(59.96, text), "60.0 s");
    assert_string_equal(cli_duration(200, text), "3 min 20 s");
    assert_string_equal(cli_duration(7500, text), "2 h 05 min");
    assert_string_equal(cli_clock(7, text), "0:07");
    assert_string_equal(cli_clock(760, text), "12:40");
    assert_string_equal(cli_clock(3723, text), "1:02:03");
    assert_string_equal(cli_clock((double)NAN, text), "-");
    assert_string_equal(cli_clock(-1, text), "-");
}

static void shares_and_sizes(void **state)
{
    (void)state;
    assert_string_equal(cli_percent(0.439, text), "43.9 %");
    assert_string_equal(cli_percent(1, text), "100 %");
    assert_string_equal(cli_percent(0.000012, text), "0.0012 %");
    assert_string_equal(cli_percent(0, text), "0.0 %");
    assert_string_equal(cli_bytes(512, text), "512 B");
    assert_string_equal(cli_bytes(49152, text), "48 KiB");
    assert_string_equal(cli_bytes(232448, text), "227 KiB");
    assert_string_equal(cli_bytes(150000000000, text), "139.7 GiB");
}

static void dates_are_utc_in_iso(void **state)
{
    (void)state;
    assert_string_equal(cli_date_iso(1700000000000000, text), "2023-11-14T22:13:20Z");
    assert_string_equal(cli_date_iso(0, text), "-");
}

static void json_is_escaped_and_finite(void **state)
{
    char *out = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&out, &bytes);
    (void)state;
    assert_non_null(f);
    struct cli_json j = cli_json_begin(f, "t\"y\\pe");
    cli_json_str(&j, "s", "\n\x01\xff\xc3\xa4\xed\xa0\x80");
    cli_json_num(&j, "tenth", 0.1);
    cli_json_num(&j, "nan", (double)NAN);
    cli_json_u64(&j, "most", UINT64_MAX);
    cli_json_open(&j, "list", '[');
    cli_json_bool(&j, NULL, true);
    cli_json_known(&j, NULL, -1);
    cli_json_open(&j, NULL, '{');
    cli_json_close(&j, '}');
    cli_json_close(&j, ']');
    cli_json_raw(&j, "raw", "{\"a\":1}");
    cli_json_raw(&j, "none", "");
    cli_json_end(&j);
    (void)fclose(f);
    assert_string_equal(out, "{\"type\":\"t\\\"y\\\\pe\",\"s\":\"\\n\\u0001\\ufffd\xc3\xa4"
                             "\\ufffd\\ufffd\\ufffd\",\"tenth\":0.1,\"nan\":null,"
                             "\"most\":18446744073709551615,\"list\":[true,null,{}],"
                             "\"raw\":{\"a\":1},\"none\":null}\n");
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_separators),
        cmocka_unit_test(figures_have_four_digits),
        cmocka_unit_test(times_choose_their_unit),
        cmocka_unit_test(durations_read_like_a_clock),
        cmocka_unit_test(shares_and_sizes),
        cmocka_unit_test(dates_are_utc_in_iso),
        cmocka_unit_test(json_is_escaped_and_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
