/* SPDX-License-Identifier: MIT */
/* Stored configurations as pairs: what a program without a JSON parser sees. */
#include "api/pairs.h"
#include "kopt/store.h"
#include "support/test.h"

static void pairs_come_in_order(void **state)
{
    const char *at = "{\"BM\":64, \"F\" : -0.5,\"S\":\"a,\\\"b\\\"}\",\"T\":true}";
    kopt_pair p;
    (void)state;
    assert_true(kopt_pair_next(&at, &p));
    assert_memory_equal(p.name, "BM", 2);
    assert_int_equal(p.name_bytes, 2);
    assert_memory_equal(p.value, "64", 2);
    assert_int_equal(p.value_bytes, 2);
    assert_false(p.quoted);
    assert_true(kopt_pair_next(&at, &p));
    assert_memory_equal(p.value, "-0.5", 4);
    assert_int_equal(p.value_bytes, 4);
    assert_true(kopt_pair_next(&at, &p));
    assert_true(p.quoted);
    assert_memory_equal(p.value, "a,\\\"b\\\"}", 8);
    assert_int_equal(p.value_bytes, 8);
    assert_true(kopt_pair_next(&at, &p));
    assert_memory_equal(p.value, "true", 4);
    assert_false(kopt_pair_next(&at, &p));
    assert_false(kopt_pair_next(&at, &p));
}

static void texts_that_are_no_flat_object_end_at_once(void **state)
{
    static const char *const texts[] = {"",        "{}",       "[1]",        "{\"a\"",
                                        "{\"a\":", "{\"a\":}", "{\"a\":{}}", "{\"a\":[1]}",
                                        "{a:1}",   "{\"a",     "null",       "{\"a\":\"b",
                                        "{\"a\\"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *at = texts[i];
        kopt_pair p;
        assert_false(kopt_pair_next(&at, &p));
        char out[8] = "x";
        assert_int_equal(kopt_pairs_text(texts[i], out, sizeof(out)), 0);
        assert_string_equal(out, "");
    }
    const char *none = NULL;
    kopt_pair p;
    assert_false(kopt_pair_next(&none, &p));
}

static void the_text_is_cut_to_fit_and_says_what_it_wants(void **state)
{
    static const char json[] = "{\"BM\":64,\"V\":\"a b\"}";
    char out[32];
    (void)state;
    assert_int_equal(kopt_pairs_text(json, out, sizeof(out)), 11);
    assert_string_equal(out, "BM=64,V=a b");
    for (size_t n = 1; n < 12; n++) {
        memset(out, '?', sizeof(out));
        assert_int_equal(kopt_pairs_text(json, out, n), 11);
        assert_int_equal(strlen(out), n - 1);
        assert_int_equal(out[n], '?');
    }
    assert_int_equal(kopt_pairs_text(json, NULL, 0), 11);
}

static void a_selection_gives_integers_and_booleans(void **state)
{
    kopt_selection s = {.config = "{\"BM\":64,\"F\":0.5,\"N\":\"7\",\"T\":true,\"U\":false}"};
    (void)state;
    assert_int_equal(kopt_selection_int(&s, "BM", -1), 64);
    assert_int_equal(kopt_selection_int(&s, "T", -1), 1);
    assert_int_equal(kopt_selection_int(&s, "U", -1), 0);
    assert_int_equal(kopt_selection_int(&s, "F", -1), -1);
    assert_int_equal(kopt_selection_int(&s, "N", -1), -1);
    assert_int_equal(kopt_selection_int(&s, "B", -1), -1);
    assert_int_equal(kopt_selection_int(&s, "BMX", -1), -1);
    s.config = "";
    assert_int_equal(kopt_selection_int(&s, "BM", 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_come_in_order),
        cmocka_unit_test(texts_that_are_no_flat_object_end_at_once),
        cmocka_unit_test(the_text_is_cut_to_fit_and_says_what_it_wants),
        cmocka_unit_test(a_selection_gives_integers_and_booleans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
