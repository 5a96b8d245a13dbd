/* SPDX-License-Identifier: MIT */
/* Kernels: their arguments and launches. Layer: device. */
#include "base/alloc.h"
#include "device/opencl/cl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 200, TYPE_NAME = 128 };

static void list_kernels(struct kp_cl_session *s, cl_program program, kopt_error *err)
{
    char names[4096] = "";
    if (s->cl->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(names) - 1, names,
                                NULL) == CL_SUCCESS &&
        names[0])
        kp_err_hint(err, "its kernels are: %.*s", NAMES_MAX, names);
    else
        kp_err_hint(err, "it has no kernel at all");
}

static void ask(struct kp_cl_session *s, struct kp_cl_kernel *k)
{
    cl_ulong local = 0;
    cl_ulong private = 0;
    size_t most = 0;
    const struct kp_cl_api *cl = s->cl;
    k->info = (struct kp_module_info){-1, -1, -1, -1};
    if (cl->clGetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_LOCAL_MEM_SIZE,
                                     sizeof(local), &local, NULL) == CL_SUCCESS)
        k->info.shared_bytes = (int64_t)local;
    /* PoCL answers with a constant */
    if (!s->pocl &&
        cl->clGetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_PRIVATE_MEM_SIZE,
                                     sizeof(private), &private, NULL) == CL_SUCCESS)
        k->info.local_bytes = (int64_t) private;
    if (cl->clGetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_WORK_GROUP_SIZE,
                                     sizeof(most), &most, NULL) == CL_SUCCESS)
        k->info.max_threads = (int64_t)most;
    if (cl->clGetKernelWorkGroupInfo(k->kernel, s->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                     sizeof(k->group), k->group, NULL) != CL_SUCCESS)
        memset(k->group, 0, sizeof(k->group));
}

kopt_status kp_cl_kernel_new(struct kp_cl_session *s, cl_program program, const char *entry,
                             struct kp_cl_kernel *out, kopt_error *err)
{
    cl_int rc;
    *out = (struct kp_cl_kernel){0};
    (void)snprintf(out->name, sizeof(out->name), "%s", entry);
    out->kernel = s->cl->clCreateKernel(program, entry, &rc);
    if (rc == CL_INVALID_KERNEL_NAME) {
        out->kernel = NULL;
        (void)kp_err(err, KOPT_ENOTFOUND, "there is no kernel '%s' in the program", entry);
        list_kernels(s, program, err);
        return KOPT_ENOTFOUND;
    }
    if (rc != CL_SUCCESS) {
        out->kernel = NULL;
        return kp_cl_fail(err, rc, "make kernel %s", entry);
    }
    rc = s->cl->clGetKernelInfo(out->kernel, CL_KERNEL_NUM_ARGS, sizeof(out->n_args),
                                &out->n_args, NULL);
    if (rc != CL_SUCCESS) {
        kp_cl_kernel_free(s, out);
        return kp_cl_fail(err, rc, "count the arguments of kernel %s", entry);
    }
    ask(s, out);
    return KOPT_OK;
}

void kp_cl_kernel_free(struct kp_cl_session *s, struct kp_cl_kernel *k)
{
    if (k->kernel)
        (void)s->cl->clReleaseKernel(k->kernel);
    k->kernel = NULL;
}

/* --- arguments -----------------------------------------------------------------------------
 */

static const char *space_name(enum kp_arg_space space)
{
    switch (space) {
    case KP_SPACE_VALUE:
        return "a value";
    case KP_SPACE_GLOBAL:
        return "a buffer";
    case KP_SPACE_SHARED:
        return "local memory";
    }
    return "nothing";
}

/* PoCL takes the bytes of a value for a memory object where a buffer is declared, so kinds are
 * compared before anything is set. Where the driver does not tell, nothing is checked. */
static kopt_status check_kind(struct kp_cl_session *s, const struct kp_cl_kernel *k, cl_uint i,
                              enum kp_arg_space given, kopt_error *err)
{
    cl_kernel_arg_address_qualifier q = 0;
    cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
    char type[TYPE_NAME] = "";
    const struct kp_cl_api *cl = s->cl;
    if (cl->clGetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(q), &q,
                               NULL) != CL_SUCCESS)
        return KOPT_OK;
    (void)cl->clGetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access),
                                 &access, NULL);
    (void)cl->clGetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(type) - 1, type,
                                 NULL);
    if (access != CL_KERNEL_ARG_ACCESS_NONE || strcmp(type, "sampler_t") == 0)
        return kp_err(
            err, KOPT_EINPUT,
            "argument %u of kernel %s has type %s: only buffers, local memory and values "
            "can be passed",
            i + 1, k->name, type);
    enum kp_arg_space declared = KP_SPACE_VALUE;
    if (q == CL_KERNEL_ARG_ADDRESS_GLOBAL || q == CL_KERNEL_ARG_ADDRESS_CONSTANT)
        declared = KP_SPACE_GLOBAL;
    else if (q == CL_KERNEL_ARG_ADDRESS_LOCAL)
        declared = KP_SPACE_SHARED;
    if (declared == given)
        return KOPT_OK;
    return kp_err(err, KOPT_EINPUT, "argument %u of kernel %s is %s (%s), the launch gives %s",
                  i + 1, k->name, space_name(declared), type, space_name(given));
}

kopt_status kp_cl_kernel_check(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                               const struct kp_limits *limits, const struct kp_launch *l,
                               kopt_error *err)
{
    if (l->n_args != k->n_args)
        return kp_err(err, KOPT_EINPUT, "kernel %s has %u arguments, the launch gives %zu",
                      k->name, k->n_args, l->n_args);
    kopt_status st = KOPT_OK;
    for (cl_uint i = 0; i < k->n_args && st == KOPT_OK; i++)
        st = check_kind(s, k, i, l->args[i].space, err);
    if (st != KOPT_OK)
        return st;
    if (l->shared_bytes)
        return kp_err(err, KOPT_EINPUT,
                      "%" PRIu32
                      " bytes of dynamic shared memory: OpenCL has it as an argument "
                      "only",
                      l->shared_bytes);
    if (k->group[0] && (k->group[0] != l->block[0] || k->group[1] != l->block[1] ||
                        k->group[2] != l->block[2]))
        return kp_err(err, KOPT_ERANGE,
                      "kernel %s demands groups of %zux%zux%zu, the launch has %" PRIu32
                      "x%" PRIu32 "x%" PRIu32,
                      k->name, k->group[0], k->group[1], k->group[2], l->block[0], l->block[1],
                      l->block[2]);
    return kp_launch_fits(limits, &k->info, l, err);
}

static kopt_status bad_argument(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                                cl_uint i, const struct kp_launch_arg *a, cl_int rc,
                                kopt_error *err)
{
    char type[TYPE_NAME] = "?";
    (void)s->cl->clGetKernelArgInfo(k->kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(type) - 1,
                                    type, NULL);
    if (rc != CL_INVALID_ARG_SIZE)
        return kp_cl_fail(err, rc, "set argument %u (%s) of kernel %s", i + 1, type, k->name);
    return kp_err(err, KOPT_EINPUT,
                  "argument %u (%s) of kernel %s is given %zu bytes: CL_INVALID_ARG_SIZE",
                  i + 1, type, k->name, a->bytes);
}

kopt_status kp_cl_set_args(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                           const struct kp_launch *l, const cl_mem *mems, kopt_error *err)
{
    for (cl_uint i = 0; i < k->n_args; i++) {
        const struct kp_launch_arg *a = &l->args[i];
        cl_int rc;
        if (a->space == KP_SPACE_GLOBAL)
            rc = s->cl->clSetKernelArg(k->kernel, i, sizeof(cl_mem), &mems[i]);
        else
            rc = s->cl->clSetKernelArg(k->kernel, i, a->bytes,
                                       a->space == KP_SPACE_VALUE ? a->value : NULL);
        if (rc != CL_SUCCESS)
            return bad_argument(s, k, i, a, rc, err);
    }
    return KOPT_OK;
}

/* --- launches ------------------------------------------------------------------------------
 */

kopt_status kp_cl_enqueue(struct kp_cl_session *s, const struct kp_cl_kernel *k,
                          const struct kp_launch *l, cl_event after, cl_event *event,
                          kopt_error *err)
{
    size_t global[3];
    size_t local[3];
    cl_uint dims = 1; /* get_work_dim() tells the kernel */
    *event = NULL;
    for (int i = 0; i < 3; i++) {
        local[i] = l->block[i];
        global[i] = (size_t)l->grid[i] * l->block[i];
        if (global[i] > 1)
            dims = (cl_uint)i + 1;
    }
    cl_int rc = s->cl->clEnqueueNDRangeKernel(s->queue, k->kernel, dims, NULL, global, local,
                                              after ? 1 : 0, after ? &after : NULL, event);
    if (rc == CL_SUCCESS)
        return KOPT_OK;
    *event = NULL;
    return kp_cl_fail(err, rc, "launch kernel %s (%zux%zux%zu items in groups of %zux%zux%zu)",
                      k->name, global[0], global[1], global[2], local[0], local[1], local[2]);
}

kopt_status kp_cl_wait(struct kp_cl_session *s, cl_event event, const char *doing,
                       kopt_error *err)
{
    cl_int rc = s->cl->clWaitForEvents(1, &event);
    cl_int status = CL_COMPLETE;
    if (rc == CL_SUCCESS || rc == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
        (void)s->cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                    &status, NULL);
        if (status < 0)
            return kp_cl_fail(err, status, "%s", doing);
    }
    return rc == CL_SUCCESS ? KOPT_OK : kp_cl_fail(err, rc, "%s", doing);
}
