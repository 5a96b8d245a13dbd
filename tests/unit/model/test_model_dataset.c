/* SPDX-License-Identifier: MIT */
#include "model/dataset.h"

#include "base/alloc.h"
#include "support/test.h"

#include <math.h>

static const char *const fields[] = {"C", "dir", "scale"};
static const char *const targets[] = {"tile", "mode"};

static struct kp_value word(const char *s)
{
    return kp_string(kp_str_from(s));
}

static struct kp_dataset_builder *begin(const struct kp_target *lists)
{
    struct kp_dataset_builder *b = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dataset_begin("conv", fields, 3, targets, 2, lists, &b, &err), KOPT_OK);
    return b;
}

struct given {
    int64_t c;
    const char *dir;
    double scale;
    struct kp_value tile;
    struct kp_value mode;
    float ns;
};

static kopt_status add(struct kp_dataset_builder *b, struct given g, kopt_error *err)
{
    struct kp_value problem[] = {kp_int(g.c), word(g.dir), kp_float(g.scale)};
    struct kp_value config[] = {g.tile, g.mode};
    return kp_dataset_add(b, problem, config, NULL, g.ns, err);
}

static void must_add(struct kp_dataset_builder *b, int64_t c, const char *dir, int64_t tile,
                     const char *mode, float ns)
{
    kopt_error err = {0};
    assert_int_equal(add(b, (struct given){c, dir, 0.5, kp_int(tile), word(mode), ns}, &err),
                     KOPT_OK);
}

static void lists_are_sorted_and_rows_follow_them(void **state)
{
    (void)state;
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    must_add(b, 64, "W", 16, "row", 10.0F);
    must_add(b, 3, "F", 4, "col", 20.0F);
    must_add(b, 64, "W", 4, "row", 5.0F);
    must_add(b, 3, "B", 64, "col", NAN);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);

    assert_string_equal(d->kernel, "conv");
    assert_int_equal(d->n_fields, 3);
    assert_false(d->fields[0].is_word);
    assert_true(d->fields[1].is_word);
    assert_int_equal(d->fields[1].n_words, 3);
    assert_string_equal(d->fields[1].words[0], "B");
    assert_string_equal(d->fields[1].words[1], "F");
    assert_string_equal(d->fields[1].words[2], "W");
    assert_int_equal(d->targets[0].n_values, 3);
    assert_int_equal(d->targets[0].type, KP_INT);
    assert_int_equal(d->targets[0].values[0].as.i, 4);
    assert_int_equal(d->targets[0].values[2].as.i, 64);
    assert_int_equal(d->targets[1].type, KP_STRING);
    assert_true(kp_str_is(d->targets[1].values[0].as.s, "col"));

    assert_int_equal(d->n_problems, 3);
    assert_int_equal(d->n_rows, 4);
    static const double problems[] = {64, 2, 0.5, 3, 1, 0.5, 3, 0, 0.5};
    for (size_t i = 0; i < 9; i++)
        assert_true(d->problems[i] == problems[i]);
    assert_string_equal(d->keys[0], "64,W,0.5");
    assert_string_equal(d->keys[2], "3,B,0.5");
    static const uint32_t of[] = {0, 0, 1, 2};
    static const uint32_t configs[] = {0, 1, 1, 1, 0, 0, 2, 0};
    static const float times[] = {5, 10, 20};
    assert_memory_equal(d->of, of, sizeof(of));
    assert_memory_equal(d->configs, configs, sizeof(configs));
    assert_memory_equal(d->times_ns, times, sizeof(times));
    assert_true(isnan(d->times_ns[3]));
    kp_dataset_free(d);
}

static void the_same_configuration_twice_keeps_the_shorter_time(void **state)
{
    (void)state;
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    must_add(b, 1, "F", 1, "x", 7.0F);
    must_add(b, 1, "F", 1, "x", NAN);
    must_add(b, 1, "F", 1, "x", 6.0F);
    must_add(b, 1, "F", 1, "x", INFINITY);
    must_add(b, 1, "F", 2, "x", NAN);
    must_add(b, 1, "F", 2, "x", INFINITY);
    must_add(b, 1, "F", 3, "x", NAN);
    must_add(b, 1, "F", 3, "x", NAN);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    assert_int_equal(d->n_problems, 1);
    assert_int_equal(d->n_rows, 3);
    assert_true(d->times_ns[0] == 6.0F);
    assert_true(isinf(d->times_ns[1]));
    assert_true(isnan(d->times_ns[2]));
    kp_dataset_free(d);
}

static void numbers_are_one_kind_of_value(void **state)
{
    (void)state;
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    /* -0.0 and 0 are one problem, 2 and 2.0 one value; one value with a point makes all float.
     */
    assert_int_equal(add(b, (struct given){0, "F", -0.0, kp_int(2), kp_bool(true), 1}, &err),
                     KOPT_OK);
    assert_int_equal(add(b, (struct given){0, "F", 0.0, kp_float(2.0), kp_bool(true), 2}, &err),
                     KOPT_OK);
    assert_int_equal(
        add(b, (struct given){0, "F", 0.0, kp_float(0.5), kp_bool(false), 2}, &err), KOPT_OK);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    assert_int_equal(d->n_problems, 1);
    assert_string_equal(d->keys[0], "0,F,0");
    assert_int_equal(d->n_rows, 2);
    assert_int_equal(d->targets[0].type, KP_FLOAT);
    assert_int_equal(d->targets[0].n_values, 2);
    assert_true(d->targets[0].values[0].as.f == 0.5);
    assert_true(d->targets[0].values[1].as.f == 2.0);
    assert_int_equal(d->targets[1].type, KP_BOOL);
    assert_false(d->targets[1].values[0].as.b);
    kp_dataset_free(d);
}

static void integers_that_meet_as_floats_are_refused(void **state)
{
    (void)state;
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    const int64_t big = (int64_t)1 << 60;
    assert_int_equal(add(b, (struct given){0, "F", 1, kp_int(big), kp_int(0), 1}, &err),
                     KOPT_OK);
    assert_int_equal(add(b, (struct given){0, "F", 1, kp_int(big + 1), kp_int(0), 1}, &err),
                     KOPT_OK);
    assert_int_equal(add(b, (struct given){0, "F", 1, kp_float(0.5), kp_int(0), 1}, &err),
                     KOPT_OK);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_EINPUT);
    assert_null(d);
    assert_non_null(strstr(err.message, "'tile'"));
}

static void a_list_of_its_own_is_kept(void **state)
{
    (void)state;
    const struct kp_value own[] = {kp_int(64), kp_int(8), kp_int(16)};
    const struct kp_target lists[] = {{.type = KP_INT, .values = own, .n_values = 3}, {0}};
    struct kp_dataset_builder *b = begin(lists);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    must_add(b, 1, "F", 8, "x", 1);
    assert_int_equal(add(b, (struct given){1, "F", 0.5, kp_float(16.0), word("x"), 1}, &err),
                     KOPT_OK);
    assert_int_equal(add(b, (struct given){1, "F", 0.5, kp_int(4), word("new"), 1}, &err),
                     KOPT_EINPUT);
    assert_non_null(strstr(err.message, "target 'tile'"));
    assert_non_null(strstr(err.message, "(4)"));
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    assert_int_equal(d->targets[0].n_values, 3);
    assert_int_equal(d->targets[0].values[0].as.i, 64);
    assert_int_equal(d->configs[0], 1);
    assert_int_equal(d->configs[2], 2);
    assert_int_equal(d->targets[1].n_values, 1); /* the refused row left no "new" */
    kp_dataset_free(d);
}

static void rows_of_other_kinds_are_refused(void **state)
{
    (void)state;
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    must_add(b, 1, "F", 8, "x", 1);
    struct kp_value config[] = {kp_int(8), word("x")};
    struct kp_value texts[] = {word("one"), word("F"), kp_int(1)};
    struct kp_value numbers[] = {kp_int(1), kp_int(7), kp_int(1)};
    assert_int_equal(kp_dataset_add(b, texts, config, NULL, 1, &err), KOPT_EINPUT);
    assert_string_equal(err.message,
                        "field 'C': a word where the rows before have numbers (one)");
    assert_int_equal(kp_dataset_add(b, numbers, config, NULL, 1, &err), KOPT_EINPUT);
    assert_int_equal(add(b, (struct given){1, "F", (double)NAN, kp_int(8), word("x"), 1}, &err),
                     KOPT_EINPUT);
    assert_int_equal(
        add(b, (struct given){1, "F", (double)INFINITY, kp_int(8), word("x"), 1}, &err),
        KOPT_EINPUT);
    assert_int_equal(
        add(b, (struct given){1, "F", 1, kp_float((double)NAN), word("x"), 1}, &err),
        KOPT_EINPUT);
    assert_int_equal(add(b, (struct given){1, "F", 1, word("8"), word("x"), 1}, &err),
                     KOPT_EINPUT);
    assert_int_equal(add(b, (struct given){1, "F", 1, kp_bool(true), word("x"), 1}, &err),
                     KOPT_EINPUT);
    assert_string_equal(err.message,
                        "target 'tile': a boolean where the rows before have a number");
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    assert_int_equal(d->n_rows, 1);
    kp_dataset_free(d);
}

static void too_many_values_are_refused(void **state)
{
    (void)state;
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    for (int i = 0; i < KP_TARGET_VALUES_MAX; i++)
        must_add(b, 1, "F", KP_TARGET_VALUES_MAX - i, "x", 1);
    assert_int_equal(add(b, (struct given){1, "F", 1, kp_int(-1), word("x"), 1}, &err),
                     KOPT_EINPUT);
    must_add(b, 2, "F", 7, "x", 1);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    assert_int_equal(d->targets[0].n_values, KP_TARGET_VALUES_MAX);
    assert_int_equal(d->configs[2 * (d->n_rows - 1)], 6);
    kp_dataset_free(d);
}

static void bad_beginnings(void **state)
{
    (void)state;
    static const char *const twice[] = {"C", "K", "C"};
    static const char *const empty[] = {"C", ""};
    const struct kp_value same[] = {kp_int(1), kp_float(1.0)};
    const struct kp_value mixed[] = {kp_int(1), kp_bool(true)};
    const struct kp_target lists[] = {{.type = KP_INT, .values = same, .n_values = 2}};
    const struct kp_target other[] = {{.type = KP_INT, .values = mixed, .n_values = 2}};
    struct kp_dataset_builder *b = NULL;
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_dataset_begin("k", twice, 3, targets, 2, NULL, &b, &err), KOPT_EINPUT);
    assert_string_equal(err.message, "field 'C' is there twice");
    assert_int_equal(kp_dataset_begin("k", fields, 3, twice, 3, NULL, &b, &err), KOPT_EINPUT);
    assert_int_equal(kp_dataset_begin("k", empty, 2, targets, 2, NULL, &b, &err), KOPT_EINPUT);
    assert_int_equal(kp_dataset_begin("k", fields, 0, targets, 2, NULL, &b, &err), KOPT_EINPUT);
    assert_int_equal(kp_dataset_begin("k", fields, 3, targets, 0, NULL, &b, &err), KOPT_EINPUT);
    assert_int_equal(
        kp_dataset_begin("k", fields, KP_FIELDS_MAX + 1, targets, 2, NULL, &b, &err),
        KOPT_EINPUT);
    assert_int_equal(kp_dataset_begin("k", fields, 3, targets, 1, lists, &b, &err),
                     KOPT_EINPUT);
    assert_int_equal(kp_dataset_begin("k", fields, 3, targets, 1, other, &b, &err),
                     KOPT_EINPUT);
    assert_null(b);
    b = begin(NULL);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_EINPUT);
    assert_null(d);
    kp_dataset_abandon(NULL);
    kp_dataset_free(NULL);
}

/* Made of every kind of thing; false when out of memory. */
static bool build_some(struct kp_dataset **out, kopt_error *err)
{
    const struct kp_value own[] = {word("row"), word("col")};
    const struct kp_target lists[] = {{0}, {.type = KP_STRING, .values = own, .n_values = 2}};
    struct kp_dataset_builder *b = NULL;
    *out = NULL;
    if (kp_dataset_begin("conv", fields, 3, targets, 2, lists, &b, err) != KOPT_OK)
        return false;
    for (int64_t i = 0; i < 12; i++) {
        if (add(b,
                (struct given){i / 2, i % 3 ? "F" : "B", 1, kp_int(20 - i),
                               word(i % 2 ? "row" : "col"), 1},
                err) != KOPT_OK) {
            kp_dataset_abandon(b);
            return false;
        }
    }
    return kp_dataset_finish(b, out, err) == KOPT_OK;
}

static void every_failing_allocation_is_clean(void **state)
{
    (void)state;
    struct kp_dataset *d = NULL;
    for (long n = 1; !d; n++) {
        kopt_error err = {0};
        assert_true(n < 1000);
        kp_alloc_fail_at(n);
        bool ok = build_some(&d, &err);
        kp_alloc_fail_at(0);
        assert_int_equal(err.code, ok ? KOPT_OK : KOPT_ENOMEM);
    }
    kp_dataset_free(d);
}

/* ---- splits ---- */

/* The figures were computed with a few lines of Python from the definition of FNV-1a. */
static void parts_are_those_of_the_hash(void **state)
{
    (void)state;
    assert_int_equal(kp_split_part(1U, ""), 2);
    assert_int_equal(
        kp_split_part(1U, "NCHW,FP32,F,2,64,56,56,1,1,1,64,16,0,0,0,1,1,0,1,1,0,0,0,1"), 9);
    assert_int_equal(kp_split_part(1U, "64,128"), 3);
    assert_int_equal(kp_split_part(1U, "3,64"), 7);
    assert_int_equal(kp_split_part(1U, "a"), 5);
    assert_int_equal(kp_split_part(2U, ""), 6);
    assert_int_equal(
        kp_split_part(2U, "NCHW,FP32,F,2,64,56,56,1,1,1,64,16,0,0,0,1,1,0,1,1,0,0,0,1"), 8);
    assert_int_equal(kp_split_part(2U, "64,128"), 5);
    assert_int_equal(kp_split_part(4294967295U, ""), 5);
    assert_int_equal(
        kp_split_part(4294967295U,
                      "NCHW,FP32,F,2,64,56,56,1,1,1,64,16,0,0,0,1,1,0,1,1,0,0,0,1"),
        1);
    assert_int_equal(kp_split_part(4294967295U, "64,128"), 4);
}

static struct kp_dataset *grid(void)
{
    struct kp_dataset_builder *b = begin(NULL);
    struct kp_dataset *d = NULL;
    kopt_error err = {0};
    for (int64_t c = 1; c <= 40; c++)
        for (int64_t k = 0; k < 25; k++)
            assert_int_equal(
                add(b, (struct given){c, k % 2 ? "F" : "B", (double)k, kp_int(1), kp_int(1), 1},
                    &err),
                KOPT_OK);
    assert_int_equal(kp_dataset_finish(b, &d, &err), KOPT_OK);
    assert_int_equal(d->n_problems, 1000);
    return d;
}

static void folds_take_turns(void **state)
{
    (void)state;
    struct kp_dataset *d = grid();
    unsigned char *roles = kp_calloc(10, d->n_problems);
    kopt_error err = {0};
    for (unsigned f = 0; f < 10; f++) {
        struct kp_split s = {.salt = 1, .fold = f};
        assert_int_equal(kp_split(d, &s, roles + f * d->n_problems, &err), KOPT_OK);
    }
    for (size_t p = 0; p < d->n_problems; p++) {
        unsigned part = kp_split_part(1, d->keys[p]);
        for (unsigned f = 0; f < 10; f++) {
            unsigned char want = part == f              ? KP_ROLE_TEST
                                 : part == (f + 1) % 10 ? KP_ROLE_VALID
                                                        : KP_ROLE_TRAIN;
            assert_int_equal(roles[f * d->n_problems + p], want);
        }
    }
    kp_free(roles);
    kp_dataset_free(d);
}

static void groups_stay_together(void **state)
{
    (void)state;
    static const char *const group[] = {"min(C,scale)", "max(C,scale)"};
    struct kp_dataset *d = grid();
    unsigned char *roles = kp_calloc(1, d->n_problems);
    struct kp_split s = {.salt = 1, .fold = 0, .group = group, .n_group = 2};
    kopt_error err = {0};
    size_t counts[3] = {0};
    assert_int_equal(kp_split(d, &s, roles, &err), KOPT_OK);
    for (size_t p = 0; p < d->n_problems; p++) {
        const double *x = d->problems + p * 3;
        char key[32];
        /* Whole numbers without a point, whatever they came as. */
        (void)snprintf(key, sizeof(key), "%.0f,%.0f", fmin(x[0], x[2]), fmax(x[0], x[2]));
        unsigned part = kp_split_part(1, key);
        assert_int_equal(roles[p], part == 0   ? KP_ROLE_TEST
                                   : part == 1 ? KP_ROLE_VALID
                                               : KP_ROLE_TRAIN);
        counts[roles[p]]++;
    }
    for (int r = 0; r < 3; r++)
        assert_true(counts[r] > 20);
    kp_free(roles);
    kp_dataset_free(d);
}

static void words_can_be_grouped(void **state)
{
    (void)state;
    static const char *const group[] = {"dir", "C % 2"};
    struct kp_dataset *d = grid();
    unsigned char *roles = kp_calloc(1, d->n_problems);
    struct kp_split s = {.salt = 7, .fold = 3, .group = group, .n_group = 2};
    kopt_error err = {0};
    assert_int_equal(kp_split(d, &s, roles, &err), KOPT_OK);
    for (size_t p = 0; p < d->n_problems; p++) {
        const double *x = d->problems + p * 3;
        char key[16];
        (void)snprintf(key, sizeof(key), "%s,%d", x[1] == 0 ? "B" : "F", (int)x[0] % 2);
        unsigned part = kp_split_part(7, key);
        assert_int_equal(roles[p], part == 3   ? KP_ROLE_TEST
                                   : part == 4 ? KP_ROLE_VALID
                                               : KP_ROLE_TRAIN);
    }
    kp_free(roles);
    kp_dataset_free(d);
}

static void bad_splits(void **state)
{
    (void)state;
    static const char *const bad[] = {"min(C,", "C + nothing", "C / scale", "dir * 2.5"};
    struct kp_dataset *d = grid();
    unsigned char *roles = kp_calloc(1, d->n_problems);
    kopt_error err = {0};
    struct kp_split s = {.salt = 1, .fold = 10};
    assert_int_equal(kp_split(d, &s, roles, &err), KOPT_EINPUT);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        s = (struct kp_split){.salt = 1, .group = &bad[i], .n_group = 1};
        assert_int_equal(kp_split(d, &s, roles, &err), KOPT_EINPUT);
        assert_true(err.message[0] != 0);
    }
    kp_free(roles);
    kp_dataset_free(d);
}

static void a_split_without_memory(void **state)
{
    (void)state;
    static const char *const group[] = {"min(C,scale)"};
    struct kp_dataset *d = grid();
    unsigned char *roles = kp_calloc(1, d->n_problems);
    struct kp_split s = {.salt = 1, .group = group, .n_group = 1};
    kopt_status st = KOPT_ENOMEM;
    for (long n = 1; st != KOPT_OK; n++) {
        kopt_error err = {0};
        assert_true(n < 100);
        kp_alloc_fail_at(n);
        st = kp_split(d, &s, roles, &err);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
    }
    kp_free(roles);
    kp_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_sorted_and_rows_follow_them),
        cmocka_unit_test(the_same_configuration_twice_keeps_the_shorter_time),
        cmocka_unit_test(numbers_are_one_kind_of_value),
        cmocka_unit_test(integers_that_meet_as_floats_are_refused),
        cmocka_unit_test(a_list_of_its_own_is_kept),
        cmocka_unit_test(rows_of_other_kinds_are_refused),
        cmocka_unit_test(too_many_values_are_refused),
        cmocka_unit_test(bad_beginnings),
        cmocka_unit_test(every_failing_allocation_is_clean),
        cmocka_unit_test(parts_are_those_of_the_hash),
        cmocka_unit_test(folds_take_turns),
        cmocka_unit_test(groups_stay_together),
        cmocka_unit_test(words_can_be_grouped),
        cmocka_unit_test(bad_splits),
        cmocka_unit_test(a_split_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
