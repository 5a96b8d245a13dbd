/* SPDX-License-Identifier: MIT */
/* What one measurement costs in the store: bench_store [folder [pairs]]. The folder decides
 * which disk is measured. */
#include "base/str.h"
#include "os/clock.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int failed(const kopt_error *err)
{
    (void)fprintf(stderr, "bench_store: %s\n", err->message);
    return 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static kopt_status one_pair(struct kp_store *st, int64_t run, int64_t subject, int i,
                            kopt_error *err)
{
    char config[128];
    double times[20];
    int64_t id = 0;
    (void)snprintf(config, sizeof(config),
                   "{\"BK\":%d,\"BM\":%d,\"BN\":%d,\"TM\":%d,\"TN\":%d,\"VEC\":%d}", i % 3,
                   i * 37 % 101, i * 31 % 97, i % 11, i % 13, i);
    for (int k = 0; k < 20; k++)
        times[k] = 1000 + k;
    kopt_result r = {.config = config,
                     .message = "",
                     .log = "",
                     .median_ns = 1000,
                     .times_ns = times,
                     .n_times = 20};
    kopt_status code = kp_store_begin(st, run, subject, config, false, &id, err);
    return code == KOPT_OK ? kp_store_finish(st, id, &r, err) : code;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : ".";
    int64_t pairs = 20000;
    bool good = argc <= 2 || kp_str_to_i64(kp_str_from(argv[2]), &pairs);
    int n = good && pairs > 0 && pairs <= 10000000 ? (int)pairs : 0;
    kopt_error err;
    char path[4200];
    struct kp_store *st = NULL;
    int rc = 1;
    double *us = n > 0 ? calloc((size_t)n, sizeof(*us)) : NULL;
    if (!us) {
        (void)fprintf(stderr, "usage: bench_store [folder [pairs]]\n");
        return 2;
    }
    (void)snprintf(path, sizeof(path), "%s/bench_store-%ld.db", dir, (long)getpid());
    struct kp_subject s = {.kernel = "k",
                           .kernel_path = "",
                           .kernel_hash = "",
                           .backend = "fake",
                           .device = "",
                           .arch = "",
                           .driver = "",
                           .compiler = "",
                           .problem = "{}",
                           .data = ""};
    struct kp_store_run run = {.command = "",
                               .strategy = "",
                               .version = "",
                               .host = "",
                               .state = "running",
                               .summary = ""};
    if (kp_store_open(path, KP_STORE_WRITE, 1000, &st, &err) != KOPT_OK ||
        kp_store_subject(st, &s, &err) != KOPT_OK)
        goto done;
    run.subject = s.id;
    if (kp_store_run_begin(st, &run, &err) != KOPT_OK)
        goto done;
    int64_t first = kp_clock_ns();
    for (int i = 0; i < n; i++) {
        int64_t start = kp_clock_ns();
        if (one_pair(st, run.id, s.id, i, &err) != KOPT_OK)
            goto done;
        us[i] = (double)(kp_clock_ns() - start) / 1e3;
    }
    double mean = (double)(kp_clock_ns() - first) / 1e3 / n;
    qsort(us, (size_t)n, sizeof(*us), by_value);
    (void)printf("begin + finish, %d pairs: median %.1f us, mean %.1f, p95 %.1f, p99.9 %.1f, "
                 "slowest %.1f\n",
                 n, us[n / 2], mean, us[(size_t)n * 95 / 100], us[(size_t)n * 999 / 1000],
                 us[n - 1]);
    rc = 0;
done:
    if (rc)
        (void)failed(&err);
    kp_store_close(st);
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        char beside[4300];
        (void)snprintf(beside, sizeof(beside), "%s%s", path, ends[i]);
        (void)unlink(beside);
    }
    free(us);
    return rc;
}
