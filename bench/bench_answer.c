/* SPDX-License-Identifier: MIT */
/* What an answer of a trained model costs: one thread asks it for problems that differ in one
 * number, each twice, and for all of them once before, so that the model is warm.
 *
 * bench_answer MODEL TOP NAME=FROM:TO [NAME=VALUE ..] */
#include "os/clock.h"

#include <kopt/kopt.h>
#include <kopt/predict.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED = 400, WORDS_MAX = 96 };

struct asking {
    kopt_model *model;
    kopt_predict_options options;
    const char *words[WORDS_MAX];
    size_t n_words;
    kopt_error err;
};

/* Microseconds; negative: it failed. */
static double ask(struct asking *a, long number, const char *name, size_t name_bytes)
{
    char word[128];
    kopt_prediction *got = NULL;
    size_t n = 0;
    (void)snprintf(word, sizeof(word), "%.*s=%ld", (int)name_bytes, name, number);
    a->words[0] = word;
    int64_t start = kp_clock_ns();
    kopt_status st =
        kopt_predict(a->model, a->words, a->n_words, &a->options, &got, &n, &a->err);
    int64_t spent = kp_clock_ns() - start;
    kopt_text_free((char *)got);
    return st == KOPT_OK && n > 0 ? (double)spent * 1e-3 : -1;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static void print(const char *what, double us[ASKED])
{
    qsort(us, ASKED, sizeof(us[0]), by_size);
    (void)printf("%-24s %8.1f us, of 100: 10 within %.1f, 95 within %.1f us\n", what,
                 us[ASKED / 2], us[ASKED / 10], us[ASKED * 95 / 100]);
}

static int run(struct asking *a, const char *range)
{
    static double fresh[ASKED];
    static double again[ASKED];
    const char *mark = strchr(range, '=');
    char *end = NULL;
    long from = mark ? strtol(mark + 1, &end, 10) : 0;
    long to = end && *end == ':' ? strtol(end + 1, &end, 10) : from - 1;
    if (to - from < ASKED) {
        (void)fprintf(stderr, "bench_answer: %s: NAME=FROM:TO with %d numbers or more\n", range,
                      (int)ASKED);
        return 1;
    }
    for (long pass = 0; pass < 2; pass++) {
        for (long i = 0; i < ASKED; i++) {
            /* The second pass asks for numbers between those of the first. */
            long number = from + (to - from) * (2 * i + pass) / (2 * ASKED);
            fresh[i] = ask(a, number, range, (size_t)(mark - range));
            again[i] = ask(a, number, range, (size_t)(mark - range));
            if (fresh[i] < 0 || again[i] < 0) {
                (void)fprintf(stderr, "bench_answer: %s\n", a->err.message);
                return 1;
            }
        }
    }
    print("a new problem", fresh);
    print("the same problem again", again);
    return 0;
}

int main(int argc, char **argv)
{
    struct asking a = {0};
    if (argc < 4 || argc - 3 > WORDS_MAX) {
        (void)fprintf(stderr, "bench_answer MODEL TOP NAME=FROM:TO [NAME=VALUE ..]\n");
        return 2;
    }
    if (kopt_model_open(argv[1], &a.model, &a.err) != KOPT_OK) {
        (void)fprintf(stderr, "bench_answer: %s\n", a.err.message);
        return 1;
    }
    kopt_predict_options_init(&a.options);
    a.options.top = (size_t)strtoul(argv[2], NULL, 10);
    a.options.width = a.options.top;
    a.n_words = (size_t)argc - 3;
    for (int i = 4; i < argc; i++)
        a.words[i - 3] = argv[i];
    int rc = run(&a, argv[3]);
    kopt_model_close(a.model);
    return rc;
}
