/* SPDX-License-Identifier: MIT */
/* Kernel Tuner cache files: whatever the bytes are, importing them ends with a status, and a
 * second import adds nothing. */
#include "base/alloc.h"
#include "base/error.h"
#include "os/file.h"
#include "store/store.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STORE_USES = 2000 }; /* then a new one, so that it does not grow for ever */

static struct {
    char *dir;
    struct kp_store *st;
    long uses;
} fixture;

static void end(void)
{
    kp_store_close(fixture.st);
    if (fixture.dir)
        kp_dir_remove(fixture.dir);
    kp_free(fixture.dir);
    fixture.dir = NULL;
    fixture.st = NULL;
}

static void begin(void)
{
    char path[4200];
    if (!fixture.dir)
        KP_CHECK(atexit(end) == 0);
    end();
    KP_CHECK(kp_dir_temp("kopt-fuzz", &fixture.dir, NULL) == KOPT_OK);
    (void)snprintf(path, sizeof(path), "%s/kopt.db", fixture.dir);
    KP_CHECK(kp_store_open(path, KP_STORE_WRITE, 1000, &fixture.st, NULL) == KOPT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    kopt_error err;
    struct kp_import_count first;
    struct kp_import_count second;
    if (fixture.uses++ % STORE_USES == 0)
        begin();
    int fd = memfd_create("cache", MFD_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size) {
        kopt_status st = kp_store_import_kt(fixture.st, path, &first, &err);
        KP_CHECK(st == KOPT_OK || st == KOPT_EINPUT || st == KOPT_ERANGE);
        KP_CHECK(st == KOPT_OK || err.message[0]);
        KP_CHECK(kp_store_import_kt(fixture.st, path, &second, &err) == st);
        KP_CHECK(second.added == 0 && second.present == first.added + first.present);
        KP_CHECK(second.bad == first.bad && second.cut == first.cut);
    }
    (void)close(fd);
    return 0;
}
