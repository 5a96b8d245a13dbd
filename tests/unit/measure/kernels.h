/* SPDX-License-Identifier: MIT */
/* A kernel from its text, bound to no device. */
#ifndef KP_TESTS_MEASURE_KERNELS_H
#define KP_TESTS_MEASURE_KERNELS_H

#include "space/kernel.h"
#include "support/test.h"

struct bound {
    struct kp_kernel *kernel;
    struct kp_bound *b;
};

/* `lines` go between a head that declares N and the parameter P, and a tail. */
static void bind(struct bound *out, const char *lines, const char *problem)
{
    char text[4096];
    kopt_error err = {0};
    (void)snprintf(text, sizeof(text),
                   "#pragma kopt kernel k\n#pragma kopt lang opencl\n"
                   "#pragma kopt problem N=8\n#pragma kopt param P {1,300}\n"
                   "#pragma kopt block 1\n#pragma kopt grid 1\n%s"
                   "kernel void k() {}\n",
                   lines);
    if (kp_kernel_parse("k.cl", kp_str_from(text), &out->kernel, &err) != KOPT_OK)
        fail_msg("%d: %s", err.line, err.message);
    if (kp_kernel_bind(out->kernel, &problem, problem ? 1 : 0, NULL, &out->b, &err) != KOPT_OK)
        fail_msg("%s", err.message);
}

static void unbind(struct bound *x)
{
    kp_bound_free(x->b);
    kp_kernel_free(x->kernel);
}

#endif
