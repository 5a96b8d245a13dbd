/* SPDX-License-Identifier: MIT */
/* What the triples of tests/spec do not reach: limits, scopes, failures of memory. */
#include "base/alloc.h"
#include "space/expr.h"
#include "support/test.h"

#include <locale.h>

struct fixture {
    struct kp_scope scope;
    struct kp_arena arena;
    kopt_error err;
};

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){.arena = KP_ARENA_INIT(64 << 20)};
    assert_int_equal(kp_scope_add(&f.scope, "BM", 0, &f.err), KOPT_OK);
    assert_int_equal(kp_scope_add(&f.scope, "TM", 1, &f.err), KOPT_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    kp_scope_deinit(&f->scope);
    kp_arena_deinit(&f->arena);
    return 0;
}

static kopt_status parse(struct fixture *f, struct kp_str text, const struct kp_expr **e)
{
    return kp_expr_parse(text, &f->scope, KP_DIALECT_KOPT, NULL, &f->arena, e, &f->err);
}

static void scopes_find_names_once(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(kp_scope_find(&f->scope, KP_STR("TM")), 1);
    assert_int_equal(kp_scope_find(&f->scope, KP_STR("T")), -1);
    assert_int_equal(kp_scope_find(NULL, KP_STR("T")), -1);
    assert_int_equal(kp_scope_add(&f->scope, "BM", 7, &f->err), KOPT_EUSAGE);
    assert_string_equal(kp_scope_nearest(&f->scope, KP_STR("bm")), "BM");
    assert_null(kp_scope_nearest(&f->scope, KP_STR("threads")));
    assert_null(kp_scope_nearest(NULL, KP_STR("BM")));
}

static void scopes_are_limited(void **state)
{
    static char names[KP_SCOPE_MAX + 1][8];
    struct kp_scope scope = {0};
    kopt_error err;
    (void)state;
    for (uint32_t i = 0; i < KP_SCOPE_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%u", i);
        assert_int_equal(kp_scope_add(&scope, names[i], i, &err), KOPT_OK);
    }
    assert_int_equal(kp_scope_add(&scope, "more", 1, &err), KOPT_EUSAGE);
    kp_scope_deinit(&scope);
}

/* `n` times `open`, "1", `n` times `close`. */
static struct kp_str nested(char *text, const char *open, const char *close, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "%s", open);
    text[len++] = '1';
    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "%s", close);
    return (struct kp_str){text, len};
}

static void nesting_is_limited(void **state)
{
    static const char *const forms[][2] = {
        {"(", ")"},      {"-", ""},       {"!", ""},        {"not ", ""},
        {"2 ** ", ""},   {"abs(", ")"},   {"1 ? 1 : ", ""}, {"1 if 0 else ", ""},
        {"1 in {", "}"}, {"max([", "])"},
    };
    static char text[40000];
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct kp_str ok = nested(text, forms[i][0], forms[i][1], 60);
        assert_int_equal(parse(f, ok, &e), KOPT_OK);
        struct kp_str deep = nested(text, forms[i][0], forms[i][1], 1000);
        assert_int_equal(parse(f, deep, &e), KOPT_EINPUT);
        assert_null(e);
        assert_non_null(strstr(f->err.message, "deeper than 200"));
    }
}

static void nesting_of_lists_is_limited(void **state)
{
    static char text[40000];
    struct fixture *f = *state;
    struct kp_value *v = NULL;
    size_t n = 0;
    size_t used = 0;
    static const char *const forms[][2] = {
        {"[i for i in [", "]]"}, {"list(", ")"}, {"([", "])"}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct kp_str deep = nested(text, forms[i][0], forms[i][1], 1000);
        assert_int_equal(kp_list_parse(deep, &f->scope, NULL, KP_DIALECT_KOPT, NULL, &f->arena,
                                       &v, &n, &used, &f->err),
                         KOPT_EINPUT);
        assert_null(v);
    }
}

static struct kp_str chain(char *text, const char *item, const char *sign, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "%s%s", i ? sign : "", item);
    return (struct kp_str){text, len};
}

static void chains_are_long_but_not_endless(void **state)
{
    static char text[200000];
    static const struct kp_value values[2] = {{KP_INT, {.i = 1}}, {KP_INT, {.i = 0}}};
    static const unsigned char known[2] = {1, 1};
    const struct kp_env env = {values, known};
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    struct kp_value v;
    assert_int_equal(parse(f, chain(text, "BM", "+", 900), &e), KOPT_OK);
    assert_int_equal(kp_expr_eval(e, &env, &v, NULL), KP_EVAL_VALUE);
    assert_int_equal(v.as.i, 900);
    assert_int_equal(parse(f, chain(text, "BM", "+", 1100), &e), KOPT_EINPUT);
    assert_non_null(strstr(f->err.message, "1000 operations"));
    /* Logic is balanced, so that generated rules may be as long as they like. */
    assert_int_equal(parse(f, chain(text, "BM == 0", " || ", 9000), &e), KOPT_OK);
    assert_true(e->depth < 20);
    assert_int_equal(kp_expr_truth(e, &env, NULL), 0);
    assert_int_equal(parse(f, chain(text, "BM", " <= ", 9000), &e), KOPT_OK);
    assert_int_equal(kp_expr_truth(e, &env, NULL), 1);
}

static void texts_are_limited(void **state)
{
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    size_t n = KP_EXPR_TEXT_MAX + 1;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, ' ', n);
    assert_int_equal(parse(f, (struct kp_str){text, n}, &e), KOPT_EINPUT);
    assert_non_null(strstr(f->err.message, "1048576 bytes"));
    text[0] = '1';
    assert_int_equal(parse(f, (struct kp_str){text, n - 1}, &e), KOPT_OK);
    free(text);
}

static void a_full_arena_is_a_limit_with_a_place(void **state)
{
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    struct kp_arena tiny = KP_ARENA_INIT(1 << 20);
    struct kp_source_pos where = {.file = "k.cl", .line = 7, .column = 3};
    assert_int_equal(kp_expr_parse(KP_STR("BM in range(1000000)"), &f->scope, KP_DIALECT_KOPT,
                                   &where, &tiny, &e, &f->err),
                     KOPT_EINPUT);
    assert_null(e);
    assert_string_equal(f->err.message, "the file needs more than 1 MiB of memory");
    assert_int_equal(f->err.line, 7);
    assert_int_equal(f->err.column, 23);
    kp_arena_deinit(&tiny);
}

static void bytes_of_any_kind_are_refused_politely(void **state)
{
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    for (int c = 0; c < 256; c++) {
        char text[4] = {'B', 'M', (char)c, '1'};
        kopt_status st = parse(f, (struct kp_str){text, 3}, &e);
        assert_true(st == KOPT_OK || (st == KOPT_EINPUT && f->err.message[0]));
        st = parse(f, (struct kp_str){text + 2, 1}, &e);
        assert_true(st == KOPT_OK || (st == KOPT_EINPUT && f->err.column > 0));
    }
    assert_int_equal(parse(f, (struct kp_str){"\"\xff\"", 3}, &e), KOPT_EINPUT);
    assert_int_equal(parse(f, (struct kp_str){"1\0", 2}, &e), KOPT_EINPUT);
    assert_int_equal(parse(f, (struct kp_str){NULL, 0}, &e), KOPT_EINPUT);
}

static void positions_follow_the_caller(void **state)
{
    static const char line[] = "#pragma kopt require \xc3\xa9 BQ";
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    struct kp_source_pos where = {"dir/k.cl", line, sizeof(line) - 1, 12, 24};
    assert_int_equal(
        kp_expr_parse(KP_STR("BQ"), &f->scope, KP_DIALECT_KOPT, &where, &f->arena, &e, &f->err),
        KOPT_EINPUT);
    assert_string_equal(f->err.file, "dir/k.cl");
    assert_int_equal(f->err.line, 12);
    assert_int_equal(f->err.column, 24);
    assert_string_equal(f->err.excerpt, line);
    /* a text that goes on in later lines */
    assert_int_equal(kp_expr_parse(KP_STR("BM + \\\n  1 +\\\r\n\tBQ"), &f->scope,
                                   KP_DIALECT_KOPT, &where, &f->arena, &e, &f->err),
                     KOPT_EINPUT);
    assert_int_equal(f->err.line, 14);
    assert_int_equal(f->err.column, 2);
    assert_string_equal(f->err.excerpt, " BQ");
}

static void count_slot(void *user, uint32_t slot)
{
    int *counts = user;
    counts[slot]++;
}

static void slots_are_visited(void **state)
{
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    int counts[2] = {0, 0};
    assert_int_equal(parse(f, KP_STR("BM * BM + max(TM, 2) - (1 if BM else 3)"), &e), KOPT_OK);
    kp_expr_slots(e, count_slot, counts);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], 1);
}

static void constants_are_folded(void **state)
{
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    assert_int_equal(parse(f, KP_STR("2 * 3 + 4"), &e), KOPT_OK);
    assert_int_equal(e->op, KP_OP_CONST);
    assert_int_equal(e->value.as.i, 10);
    assert_int_equal(parse(f, KP_STR("4 / 0"), &e), KOPT_OK); /* an error stays where it is */
    assert_int_equal(e->op, KP_OP_DIV);
}

static void min_and_max_of_a_name_are_over_its_list(void **state)
{
    static const struct kp_value list[3] = {
        {KP_INT, {.i = 4}}, {KP_INT, {.i = 16}}, {KP_INT, {.i = 8}}};
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    f->scope.names[0].values = list;
    f->scope.names[0].n_values = 3;
    assert_int_equal(parse(f, KP_STR("max(BM) - min(BM)"), &e), KOPT_OK);
    assert_int_equal(e->op, KP_OP_CONST);
    assert_int_equal(e->value.as.i, 12);
    assert_int_equal(parse(f, KP_STR("max(BM, 5)"), &e), KOPT_OK);
    assert_int_equal(e->op, KP_OP_CALL);
    assert_int_equal(parse(f, KP_STR("max(TM)"), &e), KOPT_EINPUT);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    struct fixture *f = *state;
    const struct kp_expr *e = NULL;
    const char *found = setlocale(LC_ALL, "de_DE.UTF-8");
    if (!found)
        found = setlocale(LC_ALL, "C");
    assert_non_null(found);
    assert_int_equal(parse(f, KP_STR("0.5 + 1.25e1"), &e), KOPT_OK);
    assert_float_equal(e->value.as.f, 13.0, 0);
    assert_int_equal(parse(f,
                           KP_STR("\"gr\xc3\xb6\xc3\x9f"
                                  "e\" == \"x\""),
                           &e),
                     KOPT_OK);
    (void)setlocale(LC_ALL, "C");
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    for (long n = 1; n < 1000; n++) {
        struct kp_scope scope = {0};
        struct kp_arena arena = KP_ARENA_INIT(1 << 20);
        const struct kp_expr *e = NULL;
        struct kp_value *v = NULL;
        size_t count = 0;
        size_t used = 0;
        kopt_error err = {0};
        kp_alloc_fail_at(n);
        kopt_status st = kp_scope_add(&scope, "BM", 0, &err);
        if (st == KOPT_OK)
            st =
                kp_expr_parse(KP_STR("BM in {1, 2, 3..9} && max([i for i in range(3)]) < BM || "
                                     "\"a\\\"b\" == \"c\""),
                              &scope, KP_DIALECT_KOPT, NULL, &arena, &e, &err);
        if (st == KOPT_OK)
            st = kp_list_parse(
                KP_STR("[i * j for i in range(9) for j in (1, 11) if i] + {100}"), NULL, NULL,
                KP_DIALECT_KOPT, NULL, &arena, &v, &count, &used, &err);
        kp_alloc_fail_at(0);
        kp_arena_deinit(&arena);
        kp_scope_deinit(&scope);
        if (st == KOPT_OK) {
            assert_int_equal(count, 17);
            return;
        }
        assert_int_equal(st, KOPT_ENOMEM);
        assert_string_equal(err.message, "out of memory");
    }
    fail_msg("it never passed");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(scopes_find_names_once),
        CASE(scopes_are_limited),
        CASE(nesting_is_limited),
        CASE(nesting_of_lists_is_limited),
        CASE(chains_are_long_but_not_endless),
        CASE(texts_are_limited),
        CASE(a_full_arena_is_a_limit_with_a_place),
        CASE(bytes_of_any_kind_are_refused_politely),
        CASE(positions_follow_the_caller),
        CASE(slots_are_visited),
        CASE(constants_are_folded),
        CASE(min_and_max_of_a_name_are_over_its_list),
        CASE(numbers_do_not_depend_on_the_locale),
        CASE(every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
