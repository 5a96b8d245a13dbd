/* SPDX-License-Identifier: MIT */
/* AMD's models: three texts with a NUL between them. Whatever they are, reading ends with a
 * status, and what was read answers. */
#include "model/ktn.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_PARAMS = 3, MOST_INPUTS = 1 << 12, MOST = 4 };

/* Odd values cannot begin. */
static bool begins(void *user, const int64_t *values, size_t n)
{
    (void)user;
    return values[n - 1] % 2 == 0 || n > 1;
}

static void ask(struct kp_ktn *k)
{
    /* The lists of tests/data/ktn. */
    static const struct kp_value lists[N_PARAMS][N_PARAMS] = {
        {{KP_INT, {.i = 1}}, {KP_INT, {.i = 2}}, {KP_INT, {.i = 4}}},
        {{KP_INT, {.i = 1}}, {KP_INT, {.i = 2}}},
        {{KP_INT, {.i = 8}}, {KP_INT, {.i = 16}}, {KP_INT, {.i = 32}}}};
    const struct kp_param params[N_PARAMS] = {{.name = "a", .values = lists[0], .n_values = 3},
                                              {.name = "b", .values = lists[1], .n_values = 2},
                                              {.name = "c", .values = lists[2], .n_values = 3}};
    float *x = kp_calloc(kp_ktn_n_inputs(k), sizeof(*x));
    int64_t values[KP_TARGETS_MAX * MOST];
    double logp[MOST];
    double worst = 0;
    size_t n = 0;
    const struct kp_ktn_prefix prefix = {begins, NULL};
    const struct kp_ktn_ask beam = {.x = x, .width = MOST, .n = MOST};
    kopt_error err = {0};
    KP_CHECK(x != NULL);
    kopt_status st = kp_ktn_self_test(k, &worst, &err);
    KP_CHECK(st == KOPT_OK || (st == KOPT_EINPUT && err.message[0]));
    st = kp_ktn_greedy(k, x, &prefix, values, &n, &err);
    KP_CHECK(st == KOPT_OK && n <= kp_ktn_n_positions(k));
    if (kp_ktn_divide(k, params, N_PARAMS, &err) == KOPT_OK) {
        st = kp_ktn_predict(k, &beam, values, logp, &n, &err);
        KP_CHECK(st == KOPT_OK && n <= MOST);
    }
    kp_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_ktn_source s[3] = {
        {.name = "encoder"}, {.name = "decoder"}, {.name = "metadata"}};
    const char *at = (const char *)data;
    struct kp_ktn *k = NULL;
    kopt_error err = {0};
    for (size_t i = 0; i < 3; i++) {
        const char *end = size ? memchr(at, 0, size) : NULL;
        size_t n = end ? (size_t)(end - at) : size;
        s[i].text = (struct kp_str){at, n};
        at += end ? n + 1 : n;
        size -= end ? n + 1 : n;
    }
    kopt_status st = kp_ktn_parse(&s[0], &s[1], &s[2], &k, &err);
    KP_CHECK(st == KOPT_OK ||
             ((st == KOPT_EINPUT || st == KOPT_ERANGE) && err.message[0] && !k));
    if (st == KOPT_OK && kp_ktn_n_inputs(k) <= MOST_INPUTS)
        ask(k);
    kp_ktn_free(k);
    return 0;
}
