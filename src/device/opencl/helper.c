/* SPDX-License-Identifier: MIT */
/* Kernels of our own. Layer: device. */
#include "device/opencl/cl.h"

enum { GROUP = 256, SOURCE_MAX = 64 << 10 };

kopt_status kp_cl_helper_make(struct kp_cl_session *s, const struct kp_limits *limits,
                              const char *const source[], const char *entry,
                              struct kp_cl_helper *out, kopt_error *err)
{
    struct kp_cl_text text = {.source = KP_BUF_INIT(SOURCE_MAX)};
    *out = (struct kp_cl_helper){0};
    for (size_t i = 0; source[i]; i++)
        kp_buf_adds(&text.source, source[i]);
    kopt_status st = kp_buf_status(&text.source, err);
    if (st == KOPT_OK)
        st = kp_cl_build(s, &text, NULL, &out->program, NULL, err);
    if (st == KOPT_OK)
        st = kp_cl_kernel_new(s, out->program, entry, &out->kernel, err);
    kp_cl_text_deinit(&text);
    if (st != KOPT_OK) {
        kp_cl_helper_free(s, out);
        return st;
    }
    out->group = GROUP;
    if (limits->max_threads > 0 && (size_t)limits->max_threads < out->group)
        out->group = (size_t)limits->max_threads;
    if (out->kernel.info.max_threads > 0 && (size_t)out->kernel.info.max_threads < out->group)
        out->group = (size_t)out->kernel.info.max_threads;
    return KOPT_OK;
}

void kp_cl_helper_free(struct kp_cl_session *s, struct kp_cl_helper *h)
{
    kp_cl_kernel_free(s, &h->kernel);
    if (h->program)
        (void)s->cl->clReleaseProgram(h->program);
    *h = (struct kp_cl_helper){0};
}
