/* SPDX-License-Identifier: MIT */
/* Files, plain and packed by gzip, as what is in them. */
#include "os/unpack.h"

#include "base/alloc.h"
#include "os/file.h"
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { SIZE = 300000 }; /* several of the reader's buffers */

static unsigned char content[SIZE];

static void make_content(void)
{
    uint32_t x = 1;
    for (size_t i = 0; i < SIZE; i++) {
        x = x * 1664525U + 1013904223U;
        content[i] = (unsigned char)(x >> 30); /* packs to a third or so */
    }
}

static void put(const char *path, const void *bytes, size_t n)
{
    assert_int_equal(kp_file_put(path, bytes, n, NULL), KOPT_OK);
}

static void put_packed(const char *path, const void *bytes, size_t n)
{
    gzFile f = gzopen(path, "wb6");
    assert_non_null(f);
    assert_int_equal(n ? gzwrite(f, bytes, (unsigned)n) : 0, n);
    assert_int_equal(gzclose(f), Z_OK);
}

static struct kp_unpack *open_path(const char *path)
{
    struct kp_unpack *u = NULL;
    kopt_error err = {0};
    if (kp_unpack_open(path, &u, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    return u;
}

/* All that is left; the status of the last read. */
static kopt_status read_on(struct kp_unpack *u, unsigned char *out, size_t *n, kopt_error *err)
{
    size_t got = 0;
    kopt_status st = KOPT_OK;
    *n = 0;
    do {
        assert_true(*n <= SIZE);
        st = kp_unpack_read(u, out + *n, 7777, &got, err);
        *n += got;
    } while (st == KOPT_OK && got > 0);
    return st;
}

static void assert_reads(const char *path, size_t n)
{
    static unsigned char out[SIZE + 10000];
    size_t got = 0;
    struct kp_unpack *u = open_path(path);
    assert_int_equal(read_on(u, out, &got, NULL), KOPT_OK);
    assert_int_equal(got, n);
    assert_memory_equal(out, content, n);
    assert_false(kp_unpack_cut(u));
    for (size_t at = 0; at <= n; at += n / 3 + 1) {
        assert_int_equal(kp_unpack_seek(u, (int64_t)at, NULL), KOPT_OK);
        assert_int_equal(read_on(u, out, &got, NULL), KOPT_OK);
        assert_int_equal(got, n - at);
        assert_memory_equal(out, content + at, got);
    }
    kp_unpack_close(u);
}

static void what_is_in_a_file_is_read(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 65536, SIZE};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        put("plain", content, sizes[i]);
        assert_reads("plain", sizes[i]);
        put_packed("packed", content, sizes[i]);
        assert_reads("packed", sizes[i]);
    }
}

static void a_packed_file_that_is_cut_gives_what_it_has(void **state)
{
    static unsigned char bytes[SIZE];
    static unsigned char out[SIZE + 10000];
    kopt_error err = {0};
    size_t got = 0;
    (void)state;
    put_packed("packed", content, SIZE);
    FILE *f = fopen("packed", "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    (void)fclose(f);
    put("cut", bytes, n / 2);
    struct kp_unpack *u = open_path("cut");
    assert_int_equal(read_on(u, out, &got, &err), KOPT_EINPUT);
    assert_true(kp_unpack_cut(u));
    assert_non_null(strstr(err.message, "cut: the compressed file is cut"));
    assert_true(got > SIZE / 4 && got < SIZE);
    assert_memory_equal(out, content, got);
    assert_int_equal(kp_unpack_seek(u, 100, &err), KOPT_OK); /* what it has can be read again */
    assert_false(kp_unpack_cut(u));
    size_t again = 0;
    assert_int_equal(read_on(u, out, &again, &err), KOPT_EINPUT);
    assert_int_equal(again, got - 100);
    kp_unpack_close(u);

    bytes[n / 2] ^= 0xFF;
    bytes[n / 2 + 1] ^= 0xFF;
    put("damaged", bytes, n);
    u = open_path("damaged");
    assert_int_equal(read_on(u, out, &got, &err), KOPT_EINPUT);
    assert_false(kp_unpack_cut(u));
    assert_non_null(strstr(err.message, "damaged: the compressed file is damaged: "));
    kp_unpack_close(u);
}

static void what_is_no_plain_file_is_refused(void **state)
{
    struct kp_unpack *u = NULL;
    kopt_error err = {0};
    (void)state;
    assert_int_equal(kp_unpack_open("none", &u, &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "cannot open none: No such file"));
    assert_int_equal(kp_unpack_open(".", &u, &err), KOPT_EIO);
    assert_non_null(strstr(err.message, "not a regular file"));
    (void)unlink("pipe");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(kp_unpack_open("pipe", &u, &err), KOPT_EIO); /* and does not wait */
    assert_null(u);
    put("plain", "x", 1);
    kp_alloc_fail_at(1);
    assert_int_equal(kp_unpack_open("plain", &u, &err), KOPT_ENOMEM);
    kp_alloc_fail_at(0);
    assert_null(u);
    kp_unpack_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_a_file_is_read),
        cmocka_unit_test(a_packed_file_that_is_cut_gives_what_it_has),
        cmocka_unit_test(what_is_no_plain_file_is_refused),
    };
    make_content();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
