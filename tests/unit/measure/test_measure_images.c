/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "measure/images.h"
#include "os/file.h"
#include "support/folder.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const key_a[] = {"source", "sm_90"};
static const char *const key_b[] = {"source", "sm_80"};
static const char *const macros_1[] = {"BM=64", "BN=32"};
static const char *const macros_2[] = {"BM=64", "BN=3", "2"};

static size_t count_files(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 2; /* . and .. */
}

static bool has(const struct kp_images *im, const char *const *macros, size_t n,
                const char *want)
{
    struct kp_buf b = KP_BUF_INIT(1 << 20);
    bool found = kp_images_get(im, "f", macros, n, &b);
    if (found)
        assert_string_equal(kp_buf_text(&b), want);
    else
        assert_int_equal(b.len, 0);
    kp_buf_deinit(&b);
    return found;
}

static void test_found_again(void **state)
{
    (void)state;
    struct kp_images *a = kp_images_open("kept/deeper/images", key_a, 2, 1 << 20);
    assert_non_null(a);
    assert_false(has(a, macros_1, 2, ""));
    kp_images_put(a, "f", macros_1, 2, "one", 3);
    assert_true(has(a, macros_1, 2, "one"));
    assert_false(has(a, macros_2, 3, "")); /* the same letters in other words */
    assert_false(has(a, macros_1, 1, ""));
    kp_images_free(a);
    a = kp_images_open("kept/deeper/images", key_a, 2, 1 << 20);
    assert_true(has(a, macros_1, 2, "one"));
    struct kp_images *b = kp_images_open("kept/deeper/images", key_b, 2, 1 << 20);
    assert_false(has(b, macros_1, 2, ""));
    kp_images_free(b);
    kp_images_free(a);
    kp_dir_remove("kept");
}

static void test_damage_is_absence(void **state)
{
    (void)state;
    struct kp_images *a = kp_images_open("damage", key_a, 2, 1 << 20);
    assert_non_null(a);
    kp_images_put(a, "f", macros_1, 2, "whole image", 11);
    DIR *d = opendir("damage");
    const struct dirent *e;
    char path[512] = "";
    while ((e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            (void)snprintf(path, sizeof(path), "damage/%s", e->d_name);
    (void)closedir(d);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n--) {
        assert_int_equal(truncate(path, n), 0);
        assert_false(has(a, macros_1, 2, ""));
    }
    kp_images_put(a, "f", macros_1, 2, "whole image", 11);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "W", 1, st.st_size - 11), 1);
    (void)close(fd);
    assert_false(has(a, macros_1, 2, ""));
    kp_images_free(a);
    kp_dir_remove("damage");
}

static void test_oldest_go_first(void **state)
{
    (void)state;
    struct kp_images *a = kp_images_open("room", key_a, 2, 1 << 20);
    char text[1000] = "";
    char name[16];
    const char *const macro[] = {name};
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), "I=%d", i);
        kp_images_put(a, "f", macro, 1, text, sizeof(text));
    }
    /* All but number 3 were used long ago. */
    DIR *d = opendir("room");
    const struct dirent *e;
    const struct timespec old[2] = {{1000000, 0}, {1000000, 0}};
    while ((e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            assert_int_equal(utimensat(dirfd(d), e->d_name, old, 0), 0);
    (void)closedir(d);
    struct kp_buf b = KP_BUF_INIT(4096);
    (void)snprintf(name, sizeof(name), "I=3");
    assert_true(kp_images_get(a, "f", macro, 1, &b));
    kp_buf_deinit(&b);
    kp_images_free(a);
    a = kp_images_open("room", key_a, 2, 20000);
    assert_int_equal(count_files("room"), 10); /* there is room enough */
    kp_images_free(a);
    a = kp_images_open("room", key_a, 2, 5000);
    assert_int_equal(count_files("room"), 2); /* of 1024 bytes each, down to half of 5000 */
    b = KP_BUF_INIT(4096);
    assert_true(kp_images_get(a, "f", macro, 1, &b));
    kp_buf_deinit(&b);
    kp_images_free(a);
    kp_dir_remove("room");
}

static void test_folders_that_cannot_be_used(void **state)
{
    (void)state;
    assert_int_equal(kp_file_put("plain", "x", 1, NULL), KOPT_OK);
    assert_null(kp_images_open("plain", key_a, 2, 1 << 20));
    assert_null(kp_images_open("plain/below", key_a, 2, 1 << 20));
    assert_null(kp_images_open("/proc/no such thing", key_a, 2, 1 << 20));
    (void)unlink("plain");
    for (long n = 1; n < 4; n++) {
        kp_alloc_fail_at(n);
        struct kp_images *a = kp_images_open("memory", key_a, 2, 1 << 20);
        kp_alloc_fail_at(0);
        kp_images_free(a);
    }
    kp_dir_remove("memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found_again),
                                       cmocka_unit_test(test_damage_is_absence),
                                       cmocka_unit_test(test_oldest_go_first),
                                       cmocka_unit_test(test_folders_that_cannot_be_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
