/* SPDX-License-Identifier: MIT */
/* libkopt in a program of your own: tune a kernel, then ask for its configuration at run time.
 *
 *   cc -o embed embed.c -I$PREFIX/include -L$PREFIX/lib -lkopt -Wl,-rpath,$PREFIX/lib
 *
 * or, with PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig, $(pkg-config --cflags --libs kopt) for the
 * folders and -lkopt. Without the rpath the loader needs LD_LIBRARY_PATH=$PREFIX/lib, or
 * ldconfig where $PREFIX is /usr/local.
 *
 *   ./embed gemm/gemm.cl opencl:0 M=256 N=256 K=256
 *
 * A second run measures nothing again: the results are in embed.kopt.db. */
#include <kopt/kopt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 16, BUDGET = 40 };

static const char store[] = "embed.kopt.db";

static int failed(const kopt_error *err)
{
    fprintf(stderr, "embed: %s: %s\n", kopt_status_text(err->code), err->message);
    if (err->hint[0])
        fprintf(stderr, "embed: %s\n", err->hint);
    return 1;
}

/* Called for each configuration, on this thread. */
static void on_result(void *user, const kopt_result *r, const char *config)
{
    unsigned *n = user;
    ++*n;
    if (r->outcome == KOPT_OUT_OK)
        printf("%10.3f us  %s\n", r->median_ns / 1e3, config);
    else
        printf("%13s  %s  %s\n", kopt_outcome_name(r->outcome), config, r->message);
}

static int tune(const char *kernel, const char *device, const char *const *sizes, size_t n)
{
    kopt_error err;
    kopt_tuner *tuner = NULL;
    const kopt_tune_report *report = NULL;
    unsigned n_results = 0;

    kopt_tune_options o;
    kopt_tune_options_init(&o);
    o.kernel = kernel;
    o.problem = sizes;
    o.n_problem = n;
    o.device = device;
    o.store = store;
    o.command = "embed";
    o.max_evaluations = BUDGET;
    o.callbacks.result = on_result;
    o.callbacks.user = &n_results;

    kopt_status st = kopt_tuner_new(&o, &tuner, &err);
    if (st == KOPT_OK)
        st = kopt_tuner_run(tuner, &report, &err);
    if (st == KOPT_OK)
        printf("%u results, best %s: %.3f us, %.2f times the default's speed\n", n_results,
               report->best_text, report->best.median_ns / 1e3, report->speedup);
    kopt_tuner_free(tuner);
    return st == KOPT_OK ? 0 : failed(&err);
}

/* What a library would do where it launches the kernel: the selector is opened once, and
 * kopt_select() allocates nothing. With kopt_model_open() and kopt_selector_add_model() behind
 * kopt_selector_open(), a model answers where nothing was measured. */
static int dispatch(const char *kernel, const char *parameter, const char *const *names,
                    const int64_t *values, size_t n)
{
    static const char *const how[] = {"nothing known", "measured", "nearest problem",
                                      "another device", "predicted"};
    kopt_error err;
    kopt_selector *selector = NULL;
    if (kopt_selector_open(store, NULL, &selector, &err) != KOPT_OK)
        return failed(&err);

    kopt_selection s;
    kopt_select(selector, kernel, names, values, n, &s);
    printf("select: %s, confidence %.2f, %s\n", how[s.how], s.confidence, s.config);
    printf("%s is %lld\n", parameter, (long long)kopt_selection_int(&s, parameter, -1));
    int known = s.how != KOPT_SELECT_NONE; /* s.config belongs to the selector */
    kopt_selector_close(selector);
    return known ? 0 : 1;
}

/* Cut "M=256" into names and values; the texts are kept whole for the tuner. */
static size_t read_sizes(char **words, size_t n, char names[][32], int64_t *values)
{
    size_t k = 0;
    for (; k < n && k < SIZES_MAX; k++) {
        const char *equals = strchr(words[k], '=');
        if (!equals || equals - words[k] > 31)
            break;
        snprintf(names[k], 32, "%.*s", (int)(equals - words[k]), words[k]);
        values[k] = strtoll(equals + 1, NULL, 10);
    }
    return k;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed KERNEL DEVICE NAME=VALUE..\n");
        return 2;
    }
    char texts[SIZES_MAX][32];
    const char *names[SIZES_MAX];
    int64_t values[SIZES_MAX];
    size_t n = read_sizes(argv + 3, (size_t)argc - 3, texts, values);
    for (size_t i = 0; i < n; i++)
        names[i] = texts[i];

    kopt_error err;
    kopt_kernel *kernel = NULL;
    kopt_space *space = NULL;
    const char *const *sizes = (const char *const *)(argv + 3);
    if (kopt_kernel_load(argv[1], &kernel, &err) != KOPT_OK)
        return failed(&err);
    int code = 0;
    if (kopt_space_new(kernel, sizes, n, argv[2], &space, &err) != KOPT_OK) {
        code = failed(&err);
    } else {
        printf("%s: %.0f candidates, %llu valid\n", kopt_kernel_name(kernel),
               kopt_space_cartesian(space), (unsigned long long)kopt_space_count(space));
        code = tune(argv[1], argv[2], sizes, n);
        if (code == 0)
            code = dispatch(kopt_kernel_name(kernel), kopt_space_param_name(space, 0), names,
                            values, n);
    }
    kopt_space_free(space);
    kopt_kernel_free(kernel);
    return code;
}
