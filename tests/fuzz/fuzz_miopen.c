/* SPDX-License-Identifier: MIT */
/* MIOpen's databases: whatever the bytes are, reading ends with a status; the rows that come
 * out are whole, and what is written of them reads back. */
#include "base/alloc.h"
#include "base/error.h"
#include "store/miopen.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kopt_status see_again(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    (void)err;
    KP_CHECK(row->n_values > 0);
    ++*(int *)user;
    return KOPT_OK;
}

/* In a file of memory, under a path. */
static int open_bytes(const void *bytes, size_t n, char path[64])
{
    int fd = memfd_create("miopen", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, n) == (ssize_t)n)
        return fd;
    (void)close(fd);
    return -1;
}

static void write_and_read(const struct kp_miopen_row *row)
{
    char path[64];
    int n = 0;
    kopt_error err;
    struct kp_miopen_count count;
    struct kp_buf out = KP_BUF_INIT(1 << 22);
    if (kp_miopen_write(row, 1, &out, &err) == KOPT_OK) {
        int fd = open_bytes(out.ptr, out.len, path);
        if (fd >= 0)
            KP_CHECK(kp_miopen_read(path, NULL, see_again, &n, &count, &err) == KOPT_OK &&
                     n == 1 && count.skipped == 0);
        (void)close(fd);
    }
    kp_buf_deinit(&out);
}

static kopt_status see(void *user, const struct kp_miopen_row *row, kopt_error *err)
{
    int *n = user;
    (void)err;
    KP_CHECK(row->key && row->solver && row->n_columns <= KP_MIOPEN_COLUMNS_MAX);
    for (size_t i = 0; i < row->n_columns; i++)
        KP_CHECK(row->columns[i] && row->problem[i]);
    KP_CHECK(row->algorithm ? row->time_ms > 0 && row->workspace >= 0 : row->n_values > 0);
    for (size_t i = 0; !row->algorithm && i < row->n_values; i++)
        KP_CHECK(row->values[i][0]);
    if (++*n <= 3 && !row->algorithm)
        write_and_read(row);
    return KOPT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int n = 0;
    kopt_error err = {0};
    struct kp_miopen_count count;
    int fd = open_bytes(data, size, path);
    if (fd < 0)
        return 0;
    kopt_status st = kp_miopen_read(path, NULL, see, &n, &count, &err);
    KP_CHECK(st == KOPT_OK || st == KOPT_EINPUT || st == KOPT_EIO);
    KP_CHECK(st == KOPT_OK || err.message[0]);
    KP_CHECK(count.rows == n && (count.skipped == 0) == (count.reason == NULL));
    (void)close(fd);
    return 0;
}
