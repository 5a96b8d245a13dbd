/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "measure/message.h"
#include "os/proc.h"
#include "support/test.h"

#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

/* Send over a socket and read it back. */
static void through(struct kp_json *head, const void *blob, size_t n, struct kp_buf *frame,
                    struct kp_message *m)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(kp_message_send(fds[0], head, blob, n, NULL), KOPT_OK);
    assert_int_equal(kp_frame_read(fds[1], frame, NULL), KOPT_OK);
    assert_int_equal(kp_message_parse(frame, m, NULL), KOPT_OK);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void heads_and_blobs_come_back(void **state)
{
    (void)state;
    struct kp_buf frame = KP_BUF_INIT(1 << 20);
    struct kp_message m;
    const unsigned char blob[] = {0, '{', 0, 255, 0};
    struct kp_json *j = kp_message_new("do", "measure", 77);
    assert_true(kp_json_set_f64(j, "nan", (double)NAN));
    assert_true(kp_json_set_f64(j, "tiny", 4.9e-324));
    assert_true(kp_json_set_i64(j, "big", INT64_MIN));
    assert_true(kp_json_set_str(j, "text", "a \"quoted\"\nline"));
    through(j, blob, sizeof(blob), &frame, &m);
    assert_string_equal(kp_message_what(&m, "do"), "measure");
    assert_string_equal(kp_message_what(&m, "is"), "");
    assert_int_equal(kp_message_i64(&m, "id", 0), 77);
    assert_int_equal(kp_message_i64(&m, "absent", -5), -5);
    assert_true(isnan(kp_message_f64(&m, "nan", (double)NAN)));
    assert_true(kp_message_f64(&m, "nan", 3) == 3); /* no number in JSON: as if not given */
    assert_true(kp_message_f64(&m, "tiny", 0) == 4.9e-324);
    assert_int_equal(kp_message_i64(&m, "big", 0), INT64_MIN);
    assert_string_equal(kp_message_str(&m, "text"), "a \"quoted\"\nline");
    assert_int_equal(m.blob_bytes, sizeof(blob));
    assert_memory_equal(m.blob, blob, sizeof(blob));
    kp_message_deinit(&m);
    through(kp_message_new("is", "done", 1), NULL, 0, &frame, &m);
    assert_int_equal(m.blob_bytes, 0);
    kp_message_deinit(&m);
    kp_buf_deinit(&frame);
}

static void sending_fails_cleanly(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(kp_message_send(1, NULL, NULL, 0, NULL), KOPT_ENOMEM);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    (void)close(fds[1]); /* and no SIGPIPE */
    assert_int_equal(kp_message_send(fds[0], kp_message_new("do", "x", 1), NULL, 0, NULL),
                     KOPT_EIO);
    (void)close(fds[0]);
}

static void broken_frames_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {{"", 0},           {"{}", 2}, /* no NUL */
                 {"\0", 1},         {"{\0}", 3},      {"nonsense\0", 9},
                 {"{\"a\":}\0", 7}, {"\xff\xfe\0", 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kp_buf frame = KP_BUF_INIT(64);
        struct kp_message m;
        kp_buf_add(&frame, cases[i].bytes, cases[i].n);
        if (kp_message_parse(&frame, &m, NULL) != KOPT_ECORRUPT)
            fail_msg("case %zu", i);
        assert_null(m.head);
        kp_message_deinit(&m);
        kp_buf_deinit(&frame);
    }
}

static void parse_text(const char *text, struct kp_buf *frame, struct kp_message *m)
{
    kp_buf_clear(frame);
    kp_buf_add(frame, text, strlen(text) + 1);
    assert_int_equal(kp_message_parse(frame, m, NULL), KOPT_OK);
}

static void a_head_that_is_no_object_has_no_members(void **state)
{
    (void)state;
    struct kp_buf frame = KP_BUF_INIT(64);
    struct kp_message m;
    parse_text("[1,2]", &frame, &m);
    assert_string_equal(kp_message_what(&m, "is"), "");
    assert_int_equal(kp_message_i64(&m, "id", 9), 9);
    kp_message_deinit(&m);
    kp_buf_deinit(&frame);
}

static void launches_come_back(void **state)
{
    (void)state;
    struct kp_buf frame = KP_BUF_INIT(1 << 20);
    struct kp_message m;
    struct kp_job_arg args[3] = {
        {.space = KP_SPACE_GLOBAL, .buffer = 255, .bytes = (size_t)1 << 40},
        {.space = KP_SPACE_SHARED, .bytes = 4096},
        {.space = KP_SPACE_VALUE, .bytes = 256}};
    for (size_t i = 0; i < 256; i++)
        args[2].value[i] = (unsigned char)i;
    struct kp_job_launch l = {.grid = {UINT32_MAX, 2, 3},
                              .block = {4, 5, 6},
                              .shared_bytes = UINT32_MAX,
                              .args = args,
                              .n_args = 3};
    struct kp_job_launch got;
    struct kp_json *j = kp_message_new("do", "slot", 1);
    assert_true(kp_message_put_launch(j, &l));
    through(j, NULL, 0, &frame, &m);
    assert_int_equal(kp_message_get_launch(&m, &got, NULL), KOPT_OK);
    assert_memory_equal(got.grid, l.grid, sizeof(l.grid));
    assert_memory_equal(got.block, l.block, sizeof(l.block));
    assert_int_equal(got.shared_bytes, UINT32_MAX);
    assert_int_equal(got.n_args, 3);
    assert_int_equal(got.args[0].space, KP_SPACE_GLOBAL);
    assert_int_equal(got.args[0].buffer, 255);
    assert_true(got.args[0].bytes == (size_t)1 << 40);
    assert_int_equal(got.args[1].space, KP_SPACE_SHARED);
    assert_int_equal(got.args[1].bytes, 4096);
    assert_int_equal(got.args[2].bytes, 256);
    assert_memory_equal(got.args[2].value, args[2].value, 256);
    kp_free(got.args);
    kp_message_deinit(&m);
    kp_buf_deinit(&frame);
}

#define SIZES "\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":0"

static void broken_launches_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "{}",
        "{\"args\":[],\"grid\":[0,1,1],\"block\":[1,1,1],\"shared\":0}",
        "{\"args\":[],\"grid\":[1,1],\"block\":[1,1,1],\"shared\":0}",
        "{\"args\":[],\"grid\":[1,1,4294967296],\"block\":[1,1,1],\"shared\":0}",
        "{\"args\":[],\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":-1}",
        "{\"args\":[],\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":4294967296}",
        "{\"args\":[{}]," SIZES "}",
        "{\"args\":[{\"b\":256,\"n\":4}]," SIZES "}",
        "{\"args\":[{\"b\":-1,\"n\":4}]," SIZES "}",
        "{\"args\":[{\"b\":1,\"n\":-4}]," SIZES "}",
        "{\"args\":[{\"b\":1}]," SIZES "}",
        "{\"args\":[{\"l\":0}]," SIZES "}",
        "{\"args\":[{\"v\":\"0\"}]," SIZES "}",
        "{\"args\":[{\"v\":\"0g\"}]," SIZES "}",
        "{\"args\":[{\"v\":\"0A\"}]," SIZES "}",
        "{\"args\":[{\"v\":7}]," SIZES "}"};
    struct kp_buf frame = KP_BUF_INIT(4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kp_message m;
        struct kp_job_launch l;
        parse_text(cases[i], &frame, &m);
        if (kp_message_get_launch(&m, &l, NULL) != KOPT_ECORRUPT)
            fail_msg("%s", cases[i]);
        assert_null(l.args);
        kp_message_deinit(&m);
    }
    /* more bytes than a value has room for; more arguments than there can be */
    struct kp_buf text = KP_BUF_INIT(65536);
    for (int kind = 0; kind < 2; kind++) {
        struct kp_message m;
        struct kp_job_launch l;
        kp_buf_clear(&text);
        kp_buf_adds(&text, "{\"args\":[");
        for (int i = 0; i < 257; i++)
            kp_buf_adds(&text, kind ? "{\"l\":1}," : i ? "00" : "{\"v\":\"00");
        kp_buf_adds(&text, kind ? "{\"l\":1}]," SIZES "}" : "\"}]," SIZES "}");
        kp_buf_clear(&frame);
        kp_buf_deinit(&frame);
        frame = KP_BUF_INIT(65536);
        parse_text(kp_buf_text(&text), &frame, &m);
        assert_int_equal(kp_message_get_launch(&m, &l, NULL), KOPT_ECORRUPT);
        kp_message_deinit(&m);
    }
    kp_buf_deinit(&text);
    kp_buf_deinit(&frame);
}

static void errors_come_back(void **state)
{
    (void)state;
    struct kp_buf frame = KP_BUF_INIT(65536);
    struct kp_message m;
    kopt_error err;
    kopt_error got;
    (void)kp_err(&err, KOPT_ERANGE, "98304 bytes of shared memory");
    kp_err_hint(&err, "use less");
    err.line = 3;
    err.column = 4;
    struct kp_json *j = kp_message_new("is", "error", 1);
    kp_message_put_error(j, &err);
    through(j, NULL, 0, &frame, &m);
    kp_message_get_error(&m, &got);
    assert_int_equal(got.code, KOPT_ERANGE);
    assert_string_equal(got.message, err.message);
    assert_string_equal(got.hint, "use less");
    assert_int_equal(got.line, 3);
    assert_int_equal(got.column, 4);
    kp_message_get_error(&m, NULL);
    kp_message_deinit(&m);
    /* An error that says it is none, or one that nobody knows, is one all the same. */
    static const char *const odd[] = {"{\"code\":0}", "{\"code\":12345}", "{\"code\":-9999}",
                                      "{\"code\":\"x\"}", "{}"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        parse_text(odd[i], &frame, &m);
        kp_message_get_error(&m, &got);
        if (got.code != KOPT_EFAILED)
            fail_msg("%s: %d", odd[i], got.code);
        assert_true(got.message[0] != 0);
        kp_message_deinit(&m);
    }
    kp_buf_deinit(&frame);
}

static void devices_come_back(void **state)
{
    (void)state;
    struct kp_buf frame = KP_BUF_INIT(65536);
    struct kp_message m;
    struct kp_device_info info = {.backend = KP_BACKEND_OPENCL,
                                  .index = 3,
                                  .name = "A device",
                                  .arch = "x",
                                  .driver = "d 1.2",
                                  .compiler = "c",
                                  .id = "0000:01:00.0",
                                  .is_cpu = true};
    struct kp_device_info got;
    info.limits.global_bytes = INT64_MAX;
    info.limits.max_block[2] = 64;
    info.limits.cc = 90;
    struct kp_json *j = kp_message_new("is", "opened", 1);
    assert_true(kp_message_put_info(j, &info));
    through(j, NULL, 0, &frame, &m);
    kp_message_get_info(&m, &got);
    assert_int_equal(got.backend, info.backend);
    assert_int_equal(got.index, 3);
    assert_string_equal(got.name, info.name);
    assert_string_equal(got.arch, info.arch);
    assert_string_equal(got.driver, info.driver);
    assert_string_equal(got.compiler, info.compiler);
    assert_string_equal(got.id, info.id);
    assert_true(got.is_cpu);
    assert_memory_equal(&got.limits, &info.limits, sizeof(got.limits));
    kp_message_deinit(&m);
    kp_buf_deinit(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_blobs_come_back),
        cmocka_unit_test(sending_fails_cleanly),
        cmocka_unit_test(broken_frames_are_refused),
        cmocka_unit_test(a_head_that_is_no_object_has_no_members),
        cmocka_unit_test(launches_come_back),
        cmocka_unit_test(broken_launches_are_refused),
        cmocka_unit_test(errors_come_back),
        cmocka_unit_test(devices_come_back),
    };
    return cmocka_run_group_tests_name("measure/message", tests, NULL, NULL);
}
