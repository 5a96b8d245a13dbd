/* SPDX-License-Identifier: MIT */
/* How long kopt_select() takes, of a program that links libkopt: bench_select [kernels
 * [problems]]. Ends with 1 when an answer is not the one expected. */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/store.h"

#include <kopt/kopt.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 21, FINDS = 200000 };

static const char *const names[] = {"M", "N", "K"};

static int failed(const kopt_error *err)
{
    (void)fprintf(stderr, "bench_select: %s\n", err->message);
    return 1;
}

/* Kernel k, problem p: sizes that no other problem of the kernel has. */
static void sizes(int p, int64_t values[3])
{
    values[0] = 64 + p;
    values[1] = 128 + 3 * (int64_t)p;
    values[2] = 4096;
}

static kopt_status fill(struct kp_store *st, int kernels, int problems, kopt_error *err)
{
    kopt_status code = KOPT_OK;
    for (int i = 0; code == KOPT_OK && i < kernels * problems; i++) {
        char kernel[32];
        char problem[96];
        char config[96];
        int64_t v[3];
        int64_t id = 0;
        sizes(i % problems, v);
        (void)snprintf(kernel, sizeof(kernel), "kernel_%d", i / problems);
        (void)snprintf(problem, sizeof(problem), "{\"K\":%lld,\"M\":%lld,\"N\":%lld}",
                       (long long)v[2], (long long)v[0], (long long)v[1]);
        (void)snprintf(config, sizeof(config), "{\"BK\":16,\"BM\":64,\"BN\":64,\"TM\":%d}",
                       i % 4);
        struct kp_subject s = {.kernel = kernel,
                               .kernel_path = "",
                               .kernel_hash = "",
                               .backend = "fake",
                               .device = "A GPU",
                               .arch = "",
                               .driver = "",
                               .compiler = "",
                               .problem = problem,
                               .data = ""};
        kopt_result r = {.config = config, .message = "", .log = "", .median_ns = 1000};
        code = kp_store_subject(st, &s, err);
        if (code == KOPT_OK)
            code = kp_store_add(st, 0, s.id, &r, &id, err);
    }
    return code;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of one find, over ROUNDS rounds; `off` moves the sizes away from those stored. */
static int64_t measure(const kopt_selector *sel, int kernels, int problems, int64_t off,
                       kopt_select_how want, const char *label)
{
    double ns[ROUNDS];
    int64_t wrong = 0;
    int finds = off ? FINDS / 20 : FINDS;
    struct kp_rng rng;
    kp_rng_init(&rng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = kp_clock_ns();
        for (int i = 0; i < finds; i++) {
            uint64_t x = kp_rng_u64(&rng);
            char kernel[16] = "kernel_00";
            int64_t v[3];
            kopt_selection out;
            int k = (int)((x >> 32) % (uint64_t)kernels);
            sizes((int)((x & 0xFFFFFFFF) % (uint64_t)problems), v);
            v[2] += off;
            kernel[7] = (char)('0' + (k >= 10 ? k / 10 : k));
            kernel[8] = (char)(k >= 10 ? '0' + k % 10 : 0);
            kopt_select(sel, kernel, names, v, 3, &out);
            wrong += out.how != want;
        }
        ns[round] = (double)(kp_clock_ns() - start) / finds;
    }
    qsort(ns, ROUNDS, sizeof(ns[0]), by_value);
    (void)printf("%-8s median %7.1f ns   fastest %7.1f   slowest %7.1f%s\n", label,
                 ns[ROUNDS / 2], ns[0], ns[ROUNDS - 1], wrong ? "   WRONG ANSWERS" : "");
    return wrong;
}

int main(int argc, char **argv)
{
    int64_t kernels = 20;
    int64_t problems = 100;
    kopt_error err;
    char *dir = NULL;
    char path[4200];
    struct kp_store *st = NULL;
    kopt_selector *sel = NULL;
    if ((argc > 1 && !kp_str_to_i64(kp_str_from(argv[1]), &kernels)) ||
        (argc > 2 && !kp_str_to_i64(kp_str_from(argv[2]), &problems)) || kernels < 1 ||
        kernels > 99 || problems < 1 || problems > 100000) {
        (void)fprintf(stderr, "usage: bench_select [kernels 1..99 [problems 1..100000]]\n");
        return 2;
    }
    if (kp_dir_temp("kopt-bench", &dir, &err) != KOPT_OK)
        return failed(&err);
    (void)snprintf(path, sizeof(path), "%s/kopt.db", dir);
    int rc = 0;
    int64_t start = 0;
    if (kp_store_open(path, KP_STORE_WRITE, 1000, &st, &err) != KOPT_OK ||
        fill(st, (int)kernels, (int)problems, &err) != KOPT_OK) {
        rc = failed(&err);
        goto done;
    }
    start = kp_clock_ns();
    if (kopt_selector_open(path, "A GPU", &sel, &err) != KOPT_OK) {
        rc = failed(&err);
        goto done;
    }
    (void)printf("%d kernels with %d problems each, loaded in %.1f ms\n", (int)kernels,
                 (int)problems, (double)(kp_clock_ns() - start) / 1e6);
    rc = measure(sel, (int)kernels, (int)problems, 0, KOPT_SELECT_EXACT, "exact") ||
         measure(sel, (int)kernels, (int)problems, 7, KOPT_SELECT_NEAREST, "nearest");
done:
    kopt_selector_close(sel);
    kp_store_close(st);
    kp_dir_remove(dir);
    kp_free(dir);
    return rc;
}
