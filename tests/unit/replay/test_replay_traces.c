/* SPDX-License-Identifier: MIT */
#include "replay/traces.h"

#include "base/alloc.h"
#include "support/test.h"

#include <math.h>

static void write_file(const char *text)
{
    FILE *f = fopen("traces.jsonl", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static kopt_status open_text(const char *text, struct kp_traces **t, kopt_error *err)
{
    write_file(text);
    return kp_traces_open("traces.jsonl", t, err);
}

static const char good[] =
    "{\"space\":\"gemm\",\"method\":\"kt:pso\",\"seed\":1,\"times_ns\":[10,null,5.5],"
    "\"costs_s\":[1,0,2.5]}\n\n"
    "{\"space\":\"gemm\",\"method\":\"kt:pso\",\"seed\":2,\"times_ns\":[]}";

static void lines_are_runs(void **state)
{
    (void)state;
    struct kp_traces *t = NULL;
    kopt_error err = {0};
    assert_int_equal(open_text(good, &t, &err), KOPT_OK);
    assert_int_equal(t->n, 2);
    assert_string_equal(t->items[0].space, "gemm");
    assert_string_equal(t->items[0].method, "kt:pso");
    assert_int_equal(t->items[0].n, 3);
    assert_true(t->items[0].times_ns[0] == 10);
    assert_true(isinf(t->items[0].times_ns[1]));
    assert_true(t->items[0].times_ns[2] == 5.5);
    assert_true(t->items[0].costs_s[2] == 2.5);
    assert_int_equal(t->items[1].n, 0);
    assert_null(t->items[1].costs_s);
    kp_traces_close(t);
    kp_traces_close(NULL);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"space\":\"a\",\"method\":\"b\",\"times_ns\":[1]}\n[1]",
        "\n{\"space\":\"a\",\"times_ns\":[1]}",
        "\n{\"space\":\"a\",\"method\":7,\"times_ns\":[1]}",
        "\n{\"space\":\"a\",\"method\":\"\",\"times_ns\":[1]}",
        "\n{\"space\":\"a\",\"method\":\"b\",\"times_ns\":{}}",
        "\n{\"space\":\"a\",\"method\":\"b\",\"times_ns\":[0]}",
        "\n{\"space\":\"a\",\"method\":\"b\",\"times_ns\":[-1]}",
        "\n{\"space\":\"a\",\"method\":\"b\",\"times_ns\":[\"1\"]}",
        "\n{\"space\":\"a\",\"method\":\"b\",\"times_ns\":[1],\"costs_s\":[1,2]}",
        "\n{\"space\":\"a\",\"method\":\"b\",\"times_ns\":[1],\"costs_s\":[null]}",
        "\n{\"space\":\"a\",",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kp_traces *t = NULL;
        kopt_error err = {0};
        assert_int_equal(open_text(bad[i], &t, &err), KOPT_EINPUT);
        assert_null(t);
        assert_int_equal(err.line, 2);
        assert_string_equal(err.file, "traces.jsonl");
    }
}

static void no_file_and_no_runs_are_errors(void **state)
{
    (void)state;
    struct kp_traces *t = NULL;
    kopt_error err = {0};
    assert_int_equal(kp_traces_open("not there", &t, &err), KOPT_EIO);
    assert_int_equal(open_text("\n \n", &t, &err), KOPT_EINPUT);
    assert_null(t);
}

static void without_memory_it_ends_cleanly(void **state)
{
    (void)state;
    kopt_status st = KOPT_ENOMEM;
    write_file(good);
    for (long at = 1; st == KOPT_ENOMEM; at++) {
        struct kp_traces *t = NULL;
        kopt_error err = {0};
        assert_true(at < 200);
        kp_alloc_fail_at(at);
        st = kp_traces_open("traces.jsonl", &t, &err);
        kp_alloc_fail_at(0);
        assert_true((t != NULL) == (st == KOPT_OK));
        kp_traces_close(t);
    }
    assert_int_equal(st, KOPT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_runs),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(no_file_and_no_runs_are_errors),
        cmocka_unit_test(without_memory_it_ends_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
