/* SPDX-License-Identifier: MIT */
/* Any bytes as a kernel file; what is accepted is bound to a small problem and looked at. */
#ifndef KP_TESTS_FUZZ_KERNEL_H
#define KP_TESTS_FUZZ_KERNEL_H

#include "base/error.h"
#include "space/kernel.h"

#include <stdio.h>

static void fuzz_see_macro(void *user, const char *name, const char *text)
{
    (void)user;
    KP_CHECK(name[0] && text);
}

static void fuzz_look(const struct kp_bound *b)
{
    uint32_t config[KP_PARAMS_MAX];
    kopt_error err;
    struct kp_geometry g;
    struct kp_value v;
    int64_t n = 0;
    double metric = 0;
    if (!kp_bound_default(b, config))
        return;
    struct kp_value canonical[KP_PARAMS_MAX];
    KP_CHECK(kp_space_valid(b->space, config, NULL));
    KP_CHECK(kp_bound_canonical(b, config, canonical, &err) == KOPT_OK);
    if (kp_bound_geometry(b, config, &g, &err) == KOPT_OK)
        KP_CHECK(g.block[0] > 0 && g.grid[2] > 0 && g.shared_bytes >= 0);
    for (size_t i = 0; i < b->kernel->n_args; i++) {
        bool scalar = b->kernel->args[i].kind == KP_ARG_SCALAR;
        kopt_status st = scalar ? kp_bound_arg_value(b, i, config, &v, &err)
                                : kp_bound_arg_count(b, i, config, &n, &err);
        KP_CHECK(st != KOPT_OK || scalar || n > 0);
    }
    for (size_t i = 0; i < b->kernel->n_metrics; i++)
        (void)kp_bound_metric(b, i, config, 1000, &metric);       /* may well have no value */
    (void)kp_bound_macros(b, config, fuzz_see_macro, NULL, &err); /* as may a let */
}

static void fuzz_bind(const struct kp_kernel *k)
{
    static const struct kp_limits limits = {
        .max_threads = 1024, .shared_bytes = 49152, .warp = 32};
    char text[KP_PARAMS_MAX][300];
    const char *problem[KP_PARAMS_MAX];
    struct kp_bound *b = NULL;
    kopt_error err;
    double points = 1;
    for (size_t i = 0; i < k->n_params; i++)
        points *= k->params[i].n_values;
    if (points > 5000)
        return; /* the space engine has tests of its own */
    for (size_t i = 0; i < k->n_problem; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "%s=%zu", k->problem[i], 64 + i);
        problem[i] = text[i];
    }
    if (kp_kernel_bind(k, problem, k->n_problem, &limits, &b, &err) == KOPT_OK)
        fuzz_look(b);
    kp_bound_free(b);
}

static void fuzz_kernel(const char *path, const uint8_t *data, size_t size)
{
    struct kp_kernel *k = NULL;
    kopt_error err;
    struct kp_str text = {(const char *)data, size};
    if (kp_kernel_parse(path, text, &k, &err) == KOPT_OK)
        fuzz_bind(k);
    else
        KP_CHECK(err.message[0] != 0);
    kp_kernel_free(k);
}

#endif
