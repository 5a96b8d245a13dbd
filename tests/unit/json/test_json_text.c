/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "support/test.h"
#include "json/json.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

static struct kp_json *parse(const char *text)
{
    struct kp_json *j = NULL;
    kopt_error err;
    assert_int_equal(kp_json_parse(kp_str_from(text), "t.json", &j, &err), KOPT_OK);
    assert_non_null(j);
    return j;
}

static void assert_dumps(const struct kp_json *j, const char *want)
{
    struct kp_buf out = KP_BUF_INIT(10000);
    kp_json_dump(j, &out);
    assert_int_equal(out.failed, KOPT_OK);
    assert_string_equal(kp_buf_text(&out), want);
    kp_buf_deinit(&out);
}

static void assert_round_trip(const char *text, const char *want)
{
    struct kp_json *j = parse(text);
    assert_dumps(j, want);
    kp_json_free(j);
}

static void dump_is_compact_sorted_and_exact(void **state)
{
    (void)state;
    assert_round_trip(" { \"b\" : [ 1 , 2.0 ] , \"a\" : { } } ", "{\"a\":{},\"b\":[1,2.0]}");
    assert_round_trip("9007199254740993", "9007199254740993");
    assert_round_trip("-9223372036854775808", "-9223372036854775808");
    assert_round_trip("[0.1, 1e300, 1e-7, -0.0, 123456789.25]",
                      "[0.1,1e+300,1e-07,-0.0,123456789.25]");
    assert_round_trip("[true,false,null,\"\"]", "[true,false,null,\"\"]");
    assert_round_trip("{\"B\":1,\"a\":2,\"A\":3,\"aa\":4}",
                      "{\"A\":3,\"B\":1,\"a\":2,\"aa\":4}");
    assert_round_trip("\"\\u00e9\\n\\t\\\"\\\\\\u0001/\"",
                      "\"\xc3\xa9\\n\\t\\\"\\\\\\u0001/\"");
}

static void assert_syntax_error(const char *text, int line, int column, const char *excerpt)
{
    struct kp_json *j = NULL;
    kopt_error err;
    assert_int_equal(kp_json_parse(kp_str_from(text), "t.json", &j, &err), KOPT_EINPUT);
    assert_null(j);
    assert_string_equal(err.file, "t.json");
    assert_int_equal(err.line, line);
    assert_int_equal(err.column, column);
    assert_string_equal(err.excerpt, excerpt);
}

static void syntax_errors_have_their_place(void **state)
{
    (void)state;
    assert_syntax_error("{\n  \"a\": 1,\n  \"b\" 2\n}", 3, 7, "  \"b\" 2");
    assert_syntax_error("", 1, 1, "");
    assert_syntax_error("[1, 2", 1, 6, "[1, 2");
    assert_syntax_error("{\"a\":1,\"a\":2}", 1, 10, "{\"a\":1,\"a\":2}");
    assert_syntax_error("[99999999999999999999]", 1, 21, "[99999999999999999999]");
    assert_syntax_error("1 2", 1, 3, "1 2");
}

static void assert_refused(const char *text, size_t n)
{
    struct kp_json *j = NULL;
    kopt_error err;
    assert_int_equal(kp_json_parse((struct kp_str){text, n}, NULL, &j, &err), KOPT_EINPUT);
    assert_null(j);
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    assert_refused("\"\xff\"", 3);
    assert_refused("\"a\0b\"", 5);
    assert_refused("\"a\\u0000b\"", 10);
    assert_refused("NaN", 3);
    assert_refused("1e999", 5);
    assert_refused("{a:1}", 5);
    assert_refused("[1,]", 4);
}

static void nesting_is_limited(void **state)
{
    (void)state;
    char text[8192];
    struct kp_json *j = NULL;
    kopt_error err;
    for (int depth = 1; depth <= 4000; depth += depth < 126 ? 125 : depth < 130 ? 1 : 1290) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        kopt_status st =
            kp_json_parse((struct kp_str){text, 2 * (size_t)depth}, NULL, &j, &err);
        assert_int_equal(st, depth <= KP_JSON_DEPTH_MAX ? KOPT_OK : KOPT_EINPUT);
        kp_json_free(j);
    }
    /* Where it is; brackets in strings do not count. */
    size_t len = (size_t)sprintf(text, "{\n \"[[\\\"[\": ");
    memset(text + len, '[', 200);
    assert_int_equal(kp_json_parse((struct kp_str){text, len + 200}, "deep.json", &j, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.message, "nested deeper than 128 levels");
    assert_string_equal(err.file, "deep.json");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, len - 2 + KP_JSON_DEPTH_MAX);
}

static void a_tree_too_deep_is_not_written(void **state)
{
    (void)state;
    struct kp_json *j = kp_json_new_array();
    for (int i = 0; i < KP_JSON_DEPTH_MAX + 1; i++) {
        struct kp_json *outer = kp_json_new_array();
        assert_true(kp_json_push(outer, j));
        j = outer;
    }
    struct kp_buf out = KP_BUF_INIT(10000);
    kp_json_dump(j, &out);
    assert_int_equal(out.failed, KOPT_ERANGE);
    kp_buf_deinit(&out);
    kp_json_free(j);
}

static void values_are_read_by_type(void **state)
{
    (void)state;
    struct kp_json *j =
        parse("{\"i\":7,\"f\":0.5,\"b\":true,\"s\":\"x\",\"a\":[1,2],\"n\":null}");
    int64_t i = 1;
    double f = 1;
    bool b = false;
    struct kp_str s = {0};
    assert_int_equal(kp_json_type(j), KP_JSON_OBJECT);
    assert_int_equal(kp_json_size(j), 6);
    assert_true(kp_json_as_i64(kp_json_get(j, "i"), &i) && i == 7);
    assert_true(kp_json_as_f64(kp_json_get(j, "i"), &f));
    assert_float_equal(f, 7, 0);
    assert_true(kp_json_as_f64(kp_json_get(j, "f"), &f));
    assert_float_equal(f, 0.5, 0);
    assert_false(kp_json_as_i64(kp_json_get(j, "f"), &i));
    assert_int_equal(i, 7);
    assert_true(kp_json_as_bool(kp_json_get(j, "b"), &b) && b);
    assert_false(kp_json_as_bool(kp_json_get(j, "i"), &b));
    assert_true(kp_json_as_str(kp_json_get(j, "s"), &s) && kp_str_is(s, "x"));
    assert_false(kp_json_as_str(NULL, &s));
    assert_true(kp_json_as_i64(kp_json_at(kp_json_get(j, "a"), 1), &i) && i == 2);
    assert_null(kp_json_at(kp_json_get(j, "a"), 2));
    assert_null(kp_json_get(j, "missing"));
    assert_null(kp_json_get(kp_json_get(j, "missing"), "deeper"));
    assert_int_equal(kp_json_type(kp_json_get(j, "n")), KP_JSON_NULL);
    assert_int_equal(kp_json_size(NULL), 0);
    kp_json_free(j);
}

static void members_are_needed_or_optional(void **state)
{
    (void)state;
    struct kp_json *j = parse("{\"i\":7,\"s\":\"x\",\"n\":null,\"o\":{},\"a\":[]}");
    kopt_error err;
    int64_t i = 0;
    double f = 0;
    struct kp_str s;
    const struct kp_json *part = NULL;
    assert_int_equal(kp_json_need_i64(j, "i", &i, &err), KOPT_OK);
    assert_int_equal(i, 7);
    assert_int_equal(kp_json_need_f64(j, "i", &f, &err), KOPT_OK);
    assert_int_equal(kp_json_need_str(j, "s", &s, &err), KOPT_OK);
    assert_int_equal(kp_json_need_object(j, "o", &part, &err), KOPT_OK);
    assert_int_equal(kp_json_need_array(j, "a", &part, &err), KOPT_OK);
    assert_int_equal(kp_json_need_array(j, "o", &part, &err), KOPT_EINPUT);
    assert_string_equal(err.message, "'o': array expected, found object");
    assert_null(part);
    assert_int_equal(kp_json_need_i64(j, "s", &i, &err), KOPT_EINPUT);
    assert_string_equal(err.message, "'s': integer expected, found string");
    assert_int_equal(kp_json_need_f64(j, "missing", &f, &err), KOPT_EINPUT);
    assert_string_equal(err.message, "'missing' is missing (number)");
    assert_int_equal(kp_json_opt_str(j, "missing", "else", &s, &err), KOPT_OK);
    assert_true(kp_str_is(s, "else"));
    assert_int_equal(kp_json_opt_str(j, "n", "fallback", &s, &err), KOPT_OK);
    assert_true(kp_str_is(s, "fallback"));
    assert_int_equal(kp_json_opt_str(j, "i", "", &s, &err), KOPT_EINPUT);
    kp_json_free(j);
}

static bool count_until_b(void *user, const char *key, const struct kp_json *value)
{
    int *n = user;
    assert_non_null(value);
    ++*n;
    return strcmp(key, "b") != 0;
}

static void members_are_walked_in_order(void **state)
{
    (void)state;
    struct kp_json *j = parse("{\"c\":1,\"b\":2,\"a\":3}");
    int n = 0;
    assert_false(kp_json_each(j, count_until_b, &n));
    assert_int_equal(n, 2);
    kp_json_free(j);
}

static void trees_are_built(void **state)
{
    (void)state;
    struct kp_json *o = kp_json_new_object();
    struct kp_json *a = kp_json_new_array();
    bool ok = kp_json_set_i64(o, "i", INT64_MIN);
    ok = kp_json_set_f64(o, "f", 0.1) && ok;
    ok = kp_json_set_f64(o, "nan", (double)NAN) && ok;
    ok = kp_json_set_bool(o, "b", true) && ok;
    ok = kp_json_set_str(o, "s", "bad \xff byte") && ok;
    ok = kp_json_set_str(o, "none", NULL) && ok;
    ok = kp_json_push(a, kp_json_new_i64(1)) && ok;
    ok = kp_json_push(a, kp_json_dup(o)) && ok;
    ok = kp_json_set(o, "a", a) && ok;
    assert_true(ok);
    assert_dumps(kp_json_at(kp_json_get(o, "a"), 1),
                 "{\"b\":true,\"f\":0.1,\"i\":-9223372036854775808,\"nan\":null,\"none\":null,"
                 "\"s\":\"bad \xef\xbf\xbd byte\"}");
    assert_false(kp_json_set_i64(NULL, "x", 1));
    assert_false(kp_json_push(NULL, kp_json_new_bool(true)));
    assert_false(kp_json_set(o, "x", NULL));
    assert_null(kp_json_dup(NULL));
    kp_json_free(o);
    kp_json_free(NULL);
}

static void strings_are_quoted_as_utf8(void **state)
{
    (void)state;
    struct kp_buf out = KP_BUF_INIT(200);
    kp_json_quote((struct kp_str){"a\0\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 12}, &out);
    assert_string_equal(kp_buf_text(&out),
                        "\"a\\u0000\\u007f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    kp_buf_clear(&out);
    /* overlong, surrogate, beyond the last code point, cut */
    kp_json_quote((struct kp_str){"\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82", 14}, &out);
    assert_null(strchr(kp_buf_text(&out), '\xed'));
    assert_true(kp_json_is_utf8((struct kp_str){kp_buf_text(&out), out.len}));
    assert_false(kp_json_is_utf8((struct kp_str){"\xe2\x82", 2}));
    kp_buf_deinit(&out);
}

/* Jansson allocates by itself: its allocator is replaced by ours for this test alone. */
static void *failing_malloc(size_t n)
{
    return kp_calloc(1, n);
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    bool passed = false;
    json_set_alloc_funcs(failing_malloc, kp_free);
    for (long n = 1; !passed && n < 1000; n++) {
        struct kp_json *j = NULL;
        kopt_error err;
        struct kp_buf out = KP_BUF_INIT(1000);
        kp_alloc_fail_at(n);
        kopt_status st =
            kp_json_parse(KP_STR("{\"b\":[1,2.5,\"x\"],\"a\":{\"c\":null}}"), NULL, &j, &err);
        if (st == KOPT_OK)
            kp_json_dump(j, &out);
        kp_alloc_fail_at(0);
        passed = st == KOPT_OK && out.failed == KOPT_OK;
        /* Jansson takes some of its failed allocations for a syntax error. */
        if (!passed && st != KOPT_ENOMEM && st != KOPT_EINPUT && out.failed != KOPT_ENOMEM)
            fail_msg("allocation %ld: status %d (%s)", n, (int)st, err.message);
        kp_buf_deinit(&out);
        kp_json_free(j);
    }
    assert_true(passed);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dump_is_compact_sorted_and_exact),
        cmocka_unit_test(syntax_errors_have_their_place),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(a_tree_too_deep_is_not_written),
        cmocka_unit_test(values_are_read_by_type),
        cmocka_unit_test(members_are_needed_or_optional),
        cmocka_unit_test(members_are_walked_in_order),
        cmocka_unit_test(trees_are_built),
        cmocka_unit_test(strings_are_quoted_as_utf8),
        cmocka_unit_test(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
