/* SPDX-License-Identifier: MIT */
/* Recorded spaces: whatever the bytes are, opening them ends with a status; what was opened is
 * sound, and of two openings both are the same. */
#include "base/error.h"
#include "replay/recording.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kp_recording *r)
{
    uint32_t config[KP_PARAMS_MAX];
    uint64_t n_ok = 0;
    uint64_t back = 0;
    KP_CHECK(r->info.n > 0 && r->info.n == kp_space_count(r->space));
    KP_CHECK(r->info.budget >= 1 && r->info.n_params == kp_space_n_params(r->space));
    KP_CHECK(r->info.best_text && r->info.kernel && r->info.device && r->info.problem);
    for (uint64_t i = 0; i < r->info.n; i++) {
        bool ok = r->outcome[i] == KOPT_OUT_OK;
        KP_CHECK(r->outcome[i] < KOPT_OUT_COUNT);
        KP_CHECK(ok ? isfinite(r->time_ns[i]) && r->time_ns[i] > 0 : isinf(r->time_ns[i]));
        KP_CHECK(r->compile_ns[i] >= 0 && isfinite(r->compile_ns[i]));
        KP_CHECK(r->measure_ns[i] >= 0 && isfinite(r->measure_ns[i]));
        KP_CHECK(kp_space_at(r->space, i, config, NULL) == KOPT_OK);
        KP_CHECK(kp_space_valid(r->space, config, NULL));
        KP_CHECK(kp_space_rank(r->space, config, &back) && back == i);
        n_ok += ok;
    }
    KP_CHECK(n_ok == r->n_ok && n_ok == r->info.by_outcome[KOPT_OUT_OK]);
    for (size_t i = 1; i < r->n_ok; i++)
        KP_CHECK(r->sorted[i - 1] >= r->sorted[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    kopt_error err;
    struct kp_recording *a = NULL;
    struct kp_recording *b = NULL;
    int fd = memfd_create("space", MFD_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size) {
        kopt_status st = kp_recording_open(path, &a, &err);
        KP_CHECK(st == KOPT_OK ? a != NULL : !a && err.message[0]);
        KP_CHECK(kp_recording_open(path, &b, &err) == st);
        if (st == KOPT_OK) {
            check(a);
            KP_CHECK(a->info.n == b->info.n && kp_recording_alike(a, b));
            KP_CHECK(strcmp(a->info.best_text, b->info.best_text) == 0);
        }
        kp_recording_close(a);
        kp_recording_close(b);
    }
    (void)close(fd);
    return 0;
}
