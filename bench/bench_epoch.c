/* SPDX-License-Identifier: MIT */
/* Seconds of an epoch of training one model, on random rows of the sizes of a 1x1 convolution's
 * data: 8 tokens of 8 fields with about 300 words, 8 targets of 4, 5, 8, 5, 4, 3, 3, 4 values.
 *
 *   bench_epoch [MODEL [ROWS [THREADS [SHARDS [EPOCHS]]]]]
 *
 * First a line with the number of parameters, then one with the seconds of each epoch. An epoch
 * begins when a line has come from standard input, so that another program's epochs can be
 * measured in turn; without lines (or with /dev/null) it ends, unless EPOCHS are given, which
 * run one after another. */
#include "base/alloc.h"
#include "base/rng.h"
#include "model/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 8, F = 32, P = 8, WORDS = 38, BATCH = 128, EPOCHS_MAX = 10000 };
static const uint32_t n_values[P] = {4, 5, 8, 5, 4, 3, 3, 4};

struct rows {
    int32_t *tokens;
    float *features;
    uint32_t *first;
    uint32_t *configs;
    float *shares;
    int32_t unknown[T];
    struct kp_examples e;
};

static bool make_rows(struct rows *r, size_t n, uint64_t seed)
{
    struct kp_rng rng;
    kp_rng_init(&rng, seed);
    r->tokens = kp_calloc(n * T, sizeof(*r->tokens));
    r->features = kp_calloc(n * F, sizeof(*r->features));
    r->first = kp_calloc(n + 1, sizeof(*r->first));
    r->configs = kp_calloc(n * P, sizeof(*r->configs));
    r->shares = kp_calloc(n, sizeof(*r->shares));
    if (!r->tokens || !r->features || !r->first || !r->configs || !r->shares)
        return false;
    for (size_t t = 0; t < T; t++)
        r->unknown[t] = (int32_t)(t * WORDS);
    for (size_t i = 0; i < n; i++) {
        for (size_t t = 0; t < T; t++)
            r->tokens[i * T + t] = (int32_t)(t * WORDS + 1 + kp_rng_below(&rng, WORDS - 1));
        for (size_t k = 0; k < F; k++)
            r->features[i * F + k] = (float)kp_rng_normal(&rng);
        for (size_t p = 0; p < P; p++)
            r->configs[i * P + p] = (uint32_t)kp_rng_below(&rng, n_values[p]);
        r->first[i + 1] = (uint32_t)i + 1;
        r->shares[i] = 1;
    }
    r->e = (struct kp_examples){.n = n,
                                .tokens = r->tokens,
                                .features = r->features,
                                .first = r->first,
                                .configs = r->configs,
                                .shares = r->shares,
                                .unknown = r->unknown};
    return true;
}

static void rows_free(struct rows *r)
{
    kp_free(r->tokens);
    kp_free(r->features);
    kp_free(r->first);
    kp_free(r->configs);
    kp_free(r->shares);
}

/* Is another epoch asked for? */
static bool next(const unsigned *epochs)
{
    char line[64];
    return *epochs || fgets(line, sizeof(line), stdin) != NULL;
}

static bool epoch_done(void *user, const struct kp_epoch *e)
{
    (void)printf("%.6f\n", e->seconds);
    (void)fflush(stdout);
    return next(user);
}

static struct kp_net_shape shape(void)
{
    struct kp_net_shape s = {.n_tokens = T,
                             .n_vocab = (size_t)T * WORDS,
                             .n_features = F,
                             .n_targets = P,
                             .dropout = -1};
    memcpy(s.n_values, n_values, sizeof(n_values));
    return s;
}

int main(int argc, char **argv)
{
    unsigned long n[] = {6924, 2, 2, 0}; /* rows, threads, shards, epochs */
    const char *name = argc > 1 ? argv[1] : "attention";
    for (int i = 2; i < argc && i < 6; i++)
        n[i - 2] = strtoul(argv[i], NULL, 10);
    unsigned epochs = (unsigned)n[3];
    const struct kp_net_ops *ops = kp_net_find(name);
    if (!ops || argc > 6 || n[0] == 0 || n[0] > 10000000)
        return fprintf(stderr, "bench_epoch [MODEL [ROWS [THREADS [SHARDS [EPOCHS]]]]]\n") < 0
                   ? 1
                   : 2;
    const struct kp_net_shape s = shape();
    struct rows train = {0};
    struct rows valid = {0};
    struct kp_net *net = NULL;
    struct kp_epoch best;
    kopt_error err = {0};
    struct kp_train_plan plan = {.seed = 1,
                                 .threads = (unsigned)n[1],
                                 .shards = (unsigned)n[2],
                                 .batch = BATCH,
                                 .epochs = epochs ? epochs : EPOCHS_MAX,
                                 .patience = EPOCHS_MAX,
                                 .smoothing = 0.05F,
                                 .adam = kp_adam_default()};
    const struct kp_train_hooks hooks = {&epochs, epoch_done, NULL};
    kopt_status st = kp_net_new(ops, &s, 1, &net, &err);
    if (st == KOPT_OK && make_rows(&train, n[0], 1) && make_rows(&valid, 1, 2)) {
        (void)printf("%zu parameters, %s\n", net->params.n_floats, net->blas->name);
        (void)fflush(stdout);
        if (next(&epochs))
            st = kp_train(net, &train.e, &valid.e, &plan, &hooks, NULL, &best, &err);
    }
    if (st != KOPT_OK)
        (void)fprintf(stderr, "bench_epoch: %s\n", err.message);
    rows_free(&train);
    rows_free(&valid);
    kp_net_free(net);
    return st == KOPT_OK ? 0 : 1;
}
