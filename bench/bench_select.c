/* SPDX-License-Identifier: MIT */
/* How long kopt_select() takes, of a program that links libkopt:
 *
 *   bench_select [kernels [problems]]
 *   bench_select --model FILE [LIMITS [WIDTH]]
 *
 * The second asks a model of a kernel with the problem M N K (examples/gemm/gemm.cu) about
 * problems that were not asked about before, and about the same ones again. LIMITS are those of
 * kopt predict --device-limits; "" for none. Ends with 1 when an answer is not the one
 * expected. */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/store.h"

#include <kopt/kopt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 21, FINDS = 200000, ASKED = 1000, AGAIN = 1000 };

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

/* --- a model ---- */

/* Sizes as networks have them, most of them multiples of 64. */
static void draw(struct kp_rng *rng, int64_t values[3])
{
    for (int i = 0; i < 3; i++) {
        values[i] = 64 * (int64_t)(1 + kp_rng_below(rng, 128));
        if (kp_rng_below(rng, 8) == 0)
            values[i] += 1 + (int64_t)kp_rng_below(rng, 63);
    }
}

/* Microseconds of each new problem, and of each of the last ones when it comes again. */
static int ask_all(const kopt_selector *sel, const char *kernel)
{
    static double us[ASKED];
    static double again[AGAIN];
    static int64_t v[ASKED][3];
    struct kp_rng rng;
    kopt_selection out;
    int wrong = 0;
    kp_rng_init(&rng, 1);
    for (int i = 0; i < ASKED / 4; i++) { /* warm: the network, and the spaces of all kinds */
        draw(&rng, v[0]);
        kopt_select(sel, kernel, names, v[0], 3, &out);
    }
    for (int i = 0; i < ASKED; i++) {
        draw(&rng, v[i]);
        int64_t start = kp_clock_ns();
        kopt_select(sel, kernel, names, v[i], 3, &out);
        us[i] = (double)(kp_clock_ns() - start) * 1e-3;
        wrong += out.how != KOPT_SELECT_MODEL;
    }
    for (int round = 0; round < AGAIN; round++) {
        int64_t start = kp_clock_ns();
        for (int i = 0; i < ASKED; i++) {
            kopt_select(sel, kernel, names, v[i], 3, &out);
            wrong += out.how != KOPT_SELECT_MODEL;
        }
        again[round] = (double)(kp_clock_ns() - start) * 1e-3 / ASKED;
    }
    qsort(us, ASKED, sizeof(us[0]), by_value);
    qsort(again, AGAIN, sizeof(again[0]), by_value);
    (void)printf("a new problem       median %9.3f us, 95 of 100 within %9.3f us\n"
                 "the same once more  median %9.3f us, 95 of 100 within %9.3f us%s\n",
                 us[ASKED / 2], us[ASKED * 95 / 100], again[AGAIN / 2], again[AGAIN * 95 / 100],
                 wrong ? "   WRONG ANSWERS" : "");
    return wrong != 0;
}

static int bench_model(const char *path, const char *limits, int64_t width)
{
    kopt_model *m = NULL;
    kopt_selector *sel = NULL;
    kopt_error err;
    kopt_predict_options o;
    kopt_predict_options_init(&o);
    o.limits = limits && limits[0] ? limits : NULL;
    o.width = (size_t)width;
    kopt_status st = kopt_model_open(path, &m, &err);
    if (st == KOPT_OK)
        st = kopt_selector_open(NULL, NULL, &sel, &err);
    if (st == KOPT_OK)
        st = kopt_selector_add_model(sel, m, &o, &err);
    int rc = st == KOPT_OK ? ask_all(sel, kopt_model_kernel(m)) : failed(&err);
    kopt_selector_close(sel);
    kopt_model_close(m);
    return rc;
}

static int bench_store(int64_t kernels, int64_t problems)
{
    kopt_error err;
    char *dir = NULL;
    char path[4200];
    struct kp_store *st = NULL;
    kopt_selector *sel = NULL;
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

int main(int argc, char **argv)
{
    int64_t kernels = 20;
    int64_t problems = 100;
    int64_t width = 0;
    if (argc > 2 && strcmp(argv[1], "--model") == 0 &&
        (argc < 5 || kp_str_to_i64(kp_str_from(argv[4]), &width)) && width >= 0)
        return bench_model(argv[2], argc > 3 ? argv[3] : NULL, width);
    if ((argc > 1 && !kp_str_to_i64(kp_str_from(argv[1]), &kernels)) ||
        (argc > 2 && !kp_str_to_i64(kp_str_from(argv[2]), &problems)) || kernels < 1 ||
        kernels > 99 || problems < 1 || problems > 100000) {
        (void)fprintf(stderr, "usage: bench_select [kernels 1..99 [problems 1..100000]]\n"
                              "       bench_select --model FILE [LIMITS [WIDTH]]\n");
        return 2;
    }
    return bench_store(kernels, problems);
}
