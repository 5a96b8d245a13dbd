/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/str.h"
#include "support/test.h"

#include <math.h>

static void a_buffer_grows_to_its_limit_and_no_further(void **state)
{
    (void)state;
    struct kp_buf b = KP_BUF_INIT(10);
    kp_buf_adds(&b, "12345");
    kp_buf_addf(&b, "%d", 67890);
    assert_string_equal(kp_buf_text(&b), "1234567890");
    assert_int_equal(kp_buf_status(&b, NULL), KOPT_OK);
    kp_buf_addc(&b, '!');
    assert_int_equal(kp_buf_status(&b, NULL), KOPT_ERANGE);
    assert_int_equal(b.len, 10);
    kp_buf_clear(&b);
    kp_buf_adds(&b, "again");
    assert_int_equal(kp_buf_status(&b, NULL), KOPT_OK);
    char *taken = kp_buf_take(&b);
    assert_string_equal(taken, "again");
    kp_free(taken);
    kp_buf_deinit(&b);
}

static void a_failed_buffer_stays_failed(void **state)
{
    (void)state;
    struct kp_buf b = KP_BUF_INIT(1000);
    kp_alloc_fail_at(1);
    kp_buf_adds(&b, "lost");
    kp_buf_adds(&b, "also lost");
    kp_alloc_fail_at(0);
    assert_int_equal(kp_buf_status(&b, NULL), KOPT_ENOMEM);
    assert_int_equal(b.len, 0);
    assert_null(kp_buf_take(&b));
    kp_buf_deinit(&b);
}

static void an_arena_hands_out_zeroed_aligned_memory_up_to_its_limit(void **state)
{
    (void)state;
    struct kp_arena a = KP_ARENA_INIT(1 << 20);
    for (size_t n = 1; n < 200; n++) {
        unsigned char *p = kp_arena_alloc(&a, n, 3);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < 3 * n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xee, 3 * n);
    }
    assert_null(kp_arena_alloc(&a, SIZE_MAX / 2, 4));
    assert_true(a.failed);
    assert_null(kp_arena_alloc(&a, 1, 1));
    kp_arena_deinit(&a);
    struct kp_arena small = KP_ARENA_INIT(100000);
    while (kp_arena_alloc(&small, 1, 1000)) {
    }
    assert_true(small.used <= small.max);
    kp_arena_deinit(&small);
}

static void a_map_keeps_what_was_put(void **state)
{
    (void)state;
    struct kp_map m = {0};
    assert_null(kp_map_get(&m, "x", 1));
    for (uint64_t i = 0; i < 5000; i++) {
        bool added;
        uint64_t *v = kp_map_put(&m, &i, sizeof(i), &added);
        assert_non_null(v);
        assert_true(added);
        *v = i * i;
    }
    assert_int_equal(m.n, 5000);
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(*kp_map_get(&m, &i, sizeof(i)), i * i);
    bool added;
    uint64_t seven = 7;
    assert_int_equal(*kp_map_put(&m, &seven, sizeof(seven), &added), 49);
    assert_false(added);
    assert_null(kp_map_get(&m, "absent", 6));
    kp_map_deinit(&m);
}

static void every_failing_allocation_of_a_map_is_clean(void **state)
{
    (void)state;
    for (long n = 1; n < 60; n++) {
        struct kp_map m = {0};
        size_t put = 0;
        kp_alloc_fail_at(n);
        for (uint64_t i = 0; i < 30; i++)
            put += kp_map_put(&m, &i, sizeof(i), NULL) != NULL;
        kp_alloc_fail_at(0);
        assert_int_equal(put, m.n);
        kp_map_deinit(&m);
    }
}

static void numbers_are_whole_or_refused(void **state)
{
    (void)state;
    int64_t i;
    assert_true(kp_str_to_i64(KP_STR("-9223372036854775808"), &i));
    assert_true(i == INT64_MIN);
    assert_false(kp_str_to_i64(KP_STR("9223372036854775808"), &i));
    assert_false(kp_str_to_i64(KP_STR("12x"), &i));
    assert_false(kp_str_to_i64(KP_STR(" 12"), &i));
    assert_false(kp_str_to_i64(KP_STR(""), &i));
}

static void strings_are_cut_and_trimmed(void **state)
{
    (void)state;
    struct kp_str rest = KP_STR(" a=1 , b ");
    struct kp_str first = kp_str_trim(kp_str_cut(rest, ',', &rest));
    assert_true(kp_str_is(first, "a=1"));
    assert_true(kp_str_is(kp_str_trim(rest), "b"));
    (void)kp_str_cut(rest, ',', &rest);
    assert_int_equal(rest.len, 0);
    assert_true(kp_str_starts(first, "a="));
    assert_false(kp_str_starts(first, "a=12"));
}

static void errors_are_one_clean_line_with_context(void **state)
{
    (void)state;
    kopt_error e;
    assert_int_equal(kp_err(&e, KOPT_EIO, "a\nb\x1b[31m%d", 7), KOPT_EIO);
    assert_string_equal(e.message, "a b?[31m7");
    kp_err_wrap(&e, "reading %s", "x");
    assert_string_equal(e.message, "reading x: a b?[31m7");
    kp_err_at(&e, "f.cl", 3, 9, "some line of text", 9);
    assert_string_equal(e.excerpt, "some line");
    assert_int_equal(e.line, 3);
    char longest[3000];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    (void)kp_err(&e, KOPT_EIO, "%s", longest);
    assert_int_equal(strlen(e.message), sizeof(e.message) - 1);
    kp_err_wrap(&e, "%s", "context");
    assert_true(strlen(e.message) < sizeof(e.message));
    assert_int_equal(kp_err(NULL, KOPT_ENOMEM, "ignored"), KOPT_ENOMEM);
}

static void errors_are_utf8_whatever_goes_in(void **state)
{
    (void)state;
    kopt_error e;
    (void)kp_err(&e, KOPT_EIO, "%.*s", 3, "\xc3\xa9\xc3\xa9"); /* cut in the second */
    assert_string_equal(e.message, "\xc3\xa9?");
    (void)kp_err(&e, KOPT_EIO,
                 "a\xc2\x9b"
                 "31m\x9bz\xff\xc3\xa4\xed\xa0\x80!");
    assert_string_equal(e.message, "a?31m?z?\xc3\xa4?!");
    char longest[1100];
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + sizeof(e.message) - 2, "\xc3\xa9", 3);
    (void)kp_err(&e, KOPT_EIO, "%s", longest);
    assert_int_equal(strlen(e.message), sizeof(e.message) - 1);
    assert_int_equal(e.message[sizeof(e.message) - 2], '?');
    kp_err_hint(&e, "\xe2\x82");
    assert_string_equal(e.hint, "?");
    kp_err_at(&e, "\xff.cl", 1, 1, "a\0b\x1b", 4);
    assert_string_equal(e.file, "?.cl");
    assert_string_equal(e.excerpt, "a?b?");
}

/* Columns count characters: every second one of the line has two bytes. */
static void the_excerpt_of_a_long_line_has_the_place_in_it(void **state)
{
    enum { PAIRS = 1000 };
    char line[3 * PAIRS];
    kopt_error e;
    (void)state;
    for (int i = 0; i < PAIRS; i++)
        memcpy(line + 3 * i, "-\xc3\xa9", 3);
    line[3 * 450] = '!'; /* column 901 */
    (void)kp_err(&e, KOPT_EINPUT, "x");
    kp_err_at(&e, "t.json", 1, 901, line, sizeof(line));
    assert_int_equal(e.column, 901);
    assert_true(e.excerpt_column > 700 && e.excerpt_column < 901);
    size_t at = 0;
    for (int left = e.column - e.excerpt_column; left > 0; left--)
        for (at++; (e.excerpt[at] & 0xc0) == 0x80;)
            at++;
    assert_int_equal(e.excerpt[at], '!');
    assert_true(kp_utf8_len(e.excerpt, strlen(e.excerpt)) > 0);
    kp_err_at(&e, "t.json", 1, 5, line, sizeof(line));
    assert_int_equal(e.excerpt_column, 1);
    assert_memory_equal(e.excerpt, line, 240);
    kp_err_at(&e, "t.json", 1, 2 * PAIRS + 1, line, sizeof(line)); /* behind its end */
    assert_true(e.excerpt_column > 1);
    kp_err_at(&e, "t.json", 1, 99999, line, 30);
    assert_int_equal(e.excerpt_column, 1);
    kp_err_at(&e, NULL, 1, 3, NULL, 7);
    assert_string_equal(e.excerpt, "");
}

static void sha256_matches_the_standard(void **state)
{
    (void)state;
    /* FIPS 180-2, appendix B.1 */
    struct kp_sha256 *h;
    char hex[KP_SHA256_HEX + 1];
    assert_int_equal(kp_sha256_new(&h, NULL), KOPT_OK);
    kp_sha256_add(h, "a", 1);
    kp_sha256_add(h, "bc", 2);
    kp_sha256_finish(h, hex);
    assert_string_equal(hex,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void fields_of_a_hash_cannot_run_together(void **state)
{
    (void)state;
    char hex[2][KP_SHA256_HEX + 1];
    const char *parts[2][2] = {{"ab", "c"}, {"a", "bc"}};
    for (int i = 0; i < 2; i++) {
        struct kp_sha256 *h;
        assert_int_equal(kp_sha256_new(&h, NULL), KOPT_OK);
        kp_sha256_add_text(h, parts[i][0]);
        kp_sha256_add_text(h, parts[i][1]);
        kp_sha256_finish(h, hex[i]);
    }
    assert_string_not_equal(hex[0], hex[1]);
}

static void random_numbers_are_uniform_and_repeatable(void **state)
{
    (void)state;
    struct kp_rng a;
    struct kp_rng b;
    kp_rng_init(&a, 42);
    kp_rng_init(&b, 42);
    unsigned hits[7] = {0};
    for (int i = 0; i < 70000; i++) {
        uint64_t x = kp_rng_below(&a, 7);
        assert_int_equal(x, kp_rng_below(&b, 7));
        hits[x]++;
    }
    /* Chi-square with 6 degrees of freedom: 22.5 is exceeded once in 1,000 fair generators; the
     * seed is fixed, so this either always holds or never. */
    double chi = 0;
    for (int i = 0; i < 7; i++)
        chi += pow((double)hits[i] - 10000, 2) / 10000;
    assert_true(chi < 22.5);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 100000; i++) {
        double x = kp_rng_normal(&a);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / 100000) < 0.02);         /* six standard errors */
    assert_true(fabs(squares / 100000 - 1) < 0.03); /* likewise */
}

static void arithmetic_says_when_it_overflows(void **state)
{
    (void)state;
    int64_t v;
    size_t n;
    assert_true(kp_mul_i64(3037000499, 3037000499, &v));
    assert_false(kp_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &v));
    assert_false(kp_sub_i64(INT64_MIN, 1, &v));
    assert_false(kp_mul_size(SIZE_MAX / 2, 3, &n));
    assert_true(kp_add_size(SIZE_MAX - 1, 1, &n));
}

static void every_status_and_outcome_has_a_text(void **state)
{
    (void)state;
    assert_string_equal(kopt_status_text(KOPT_EFULL), "no space left");
    assert_string_equal(kopt_status_text((kopt_status)-999), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_grows_to_its_limit_and_no_further),
        cmocka_unit_test(a_failed_buffer_stays_failed),
        cmocka_unit_test(an_arena_hands_out_zeroed_aligned_memory_up_to_its_limit),
        cmocka_unit_test(a_map_keeps_what_was_put),
        cmocka_unit_test(every_failing_allocation_of_a_map_is_clean),
        cmocka_unit_test(numbers_are_whole_or_refused),
        cmocka_unit_test(strings_are_cut_and_trimmed),
        cmocka_unit_test(errors_are_one_clean_line_with_context),
        cmocka_unit_test(errors_are_utf8_whatever_goes_in),
        cmocka_unit_test(the_excerpt_of_a_long_line_has_the_place_in_it),
        cmocka_unit_test(sha256_matches_the_standard),
        cmocka_unit_test(fields_of_a_hash_cannot_run_together),
        cmocka_unit_test(random_numbers_are_uniform_and_repeatable),
        cmocka_unit_test(arithmetic_says_when_it_overflows),
        cmocka_unit_test(every_status_and_outcome_has_a_text),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
