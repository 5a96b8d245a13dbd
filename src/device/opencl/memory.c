/* SPDX-License-Identifier: MIT */
/* Device memory. Layer: device. */
#include "base/checked.h"
#include "device/opencl/cl.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SLACK_BYTES = 64 << 10,
    /* the largest alignment of any OpenCL type (a vector of 16 doubles) */
    ALIGNMENT = 128
};

/* A mapping of whole pages with an edge on both sides; *ptr is where the buffer begins. */
static bool map_pages(size_t bytes, enum kp_cl_edge edge, struct kp_cl_memory *out,
                      unsigned char **ptr)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t side = edge == KP_CL_GUARDED ? page : SLACK_BYTES;
    size_t body;
    size_t all;
    if (!kp_add_size(bytes, page - 1, &body) ||
        !kp_add_size(body - body % page, 2 * side, &all)) {
        errno = ENOMEM;
        return false;
    }
    body -= body % page;
    /* Nothing is reserved for the slack kind, which nobody fills. */
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (edge == KP_CL_SLACK ? MAP_NORESERVE : 0);
    unsigned char *map = mmap(NULL, all, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (map == MAP_FAILED)
        return false;
    unsigned char *end = map + side + body;
    if (edge == KP_CL_GUARDED &&
        (mprotect(map, side, PROT_NONE) != 0 || mprotect(end, side, PROT_NONE) != 0)) {
        (void)munmap(map, all);
        return false;
    }
    out->map = map;
    out->map_bytes = all;
    /* Its end, not its beginning, lies against the edge: kernels rather run past the end. */
    *ptr = map + side + (body - bytes) / ALIGNMENT * ALIGNMENT;
    return true;
}

kopt_status kp_cl_memory_new(struct kp_cl_session *s, size_t bytes, enum kp_cl_edge edge,
                             struct kp_cl_memory *out, kopt_error *err)
{
    unsigned char *ptr = NULL;
    cl_mem_flags flags = CL_MEM_READ_WRITE;
    *out = (struct kp_cl_memory){0};
    if (s->max_alloc && bytes > s->max_alloc)
        return kp_err(err, KOPT_EFULL,
                      "device memory: a buffer of %zu bytes, the device allows %llu", bytes,
                      (unsigned long long)s->max_alloc);
    if (s->host) {
        if (!map_pages(bytes, edge, out, &ptr))
            return kp_err(err, KOPT_EFULL, "device memory: %zu bytes cannot be mapped: %s",
                          bytes,
                          strerror(errno)); /* NOLINT(concurrency-mt-unsafe): glibc's is safe */
        flags |= CL_MEM_USE_HOST_PTR;
    }
    cl_int rc;
    out->ptr = ptr;
    out->mem = s->cl->clCreateBuffer(s->context, flags, bytes, ptr, &rc);
    if (rc == CL_SUCCESS)
        return KOPT_OK;
    out->mem = NULL;
    kp_cl_memory_free(s, out);
    return kp_cl_fail(err, rc, "make a buffer of %zu bytes", bytes);
}

void kp_cl_memory_free(struct kp_cl_session *s, struct kp_cl_memory *m)
{
    if (m->mem)
        (void)s->cl->clReleaseMemObject(m->mem);
    if (m->map)
        (void)munmap(m->map, m->map_bytes);
    *m = (struct kp_cl_memory){0};
}
