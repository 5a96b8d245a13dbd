/* SPDX-License-Identifier: MIT */
/* Emptying the caches between launches. Layer: device.
 *
 * On a CPU, while the device is idle: line by line over the launch's own buffers where the
 * processor can do that, which takes as long as the data is large; else, or when the data is
 * larger than the cache, by threads of ours, one on each core that the process may use, since
 * each core has caches of its own. On everything else by a kernel. */
#include "base/alloc.h"
#include "base/checked.h"
#include "device/opencl/cl.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <immintrin.h>
#endif

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LINE = 64,            /* bytes of a cache line; a shorter step would only take longer */
    CORE_BYTES = 4 << 20, /* at least so much for each core: more than the caches of its own */
    MAX_CORES = 1024,
    ITEM_BYTES = 16, /* that one work-item of the kernel goes over */
    GROUP = 256      /* and how many items a group has */
};

/* --- CPUs ----------------------------------------------------------------------------------
 */

struct sweep {
    pthread_t thread;
    unsigned char *lines; /* this core's own part */
    size_t bytes;
    int core;
    bool started;
};

static void *sweep(void *user)
{
    struct sweep *w = user;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)w->core, &set);
    /* on another core than wanted it still sweeps that one's caches */
    (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    for (size_t at = 0; at < w->bytes; at += LINE) {
        volatile unsigned char *line = w->lines + at;
        *line = (unsigned char)(*line + 1);
    }
    return NULL;
}

/* One at least. */
static int list_cores(int cores[MAX_CORES])
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        CPU_ZERO(&set);
    for (int c = 0; c < CPU_SETSIZE && n < MAX_CORES; c++) {
        if (CPU_ISSET((size_t)c, &set))
            cores[n++] = c;
    }
    return n > 0 ? n : 1;
}

/* Of `bytes` for all of n cores. */
static size_t part_of(size_t bytes, int n)
{
    size_t part = bytes / (size_t)n / LINE * LINE;
    return part < CORE_BYTES ? CORE_BYTES : part;
}

static kopt_status sweep_all(struct kp_cl_flush *f, size_t bytes, kopt_error *err)
{
    int cores[MAX_CORES] = {0};
    int n = list_cores(cores);
    size_t part = part_of(bytes, n);
    if ((size_t)n > f->bytes / part) /* the process got more cores since */
        n = (int)(f->bytes / part);
    struct sweep *w = kp_calloc((size_t)n, sizeof(*w));
    if (!w)
        return kp_err_nomem(err);
    for (int i = 0; i < n; i++) {
        w[i] = (struct sweep){
            .lines = f->lines + (size_t)i * part, .bytes = part, .core = cores[i]};
        w[i].started = pthread_create(&w[i].thread, NULL, sweep, &w[i]) == 0;
    }
    bool all = true;
    for (int i = 0; i < n; i++) {
        if (w[i].started)
            (void)pthread_join(w[i].thread, NULL);
        all = all && w[i].started;
    }
    kp_free(w);
    return all ? KOPT_OK
               : kp_err(err, KOPT_EDEVICE, "flush the caches: no thread can be started");
}

#if defined(__x86_64__)
__attribute__((target("clflushopt"))) static void flush_optimised(const unsigned char *ptr,
                                                                  size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE)
        /* the intrinsic takes no pointer to const, and writes nothing */
        _mm_clflushopt((void *)(uintptr_t)(ptr + at)); /* NOLINT(performance-no-int-to-ptr) */
}

/* CPUID leaf 7, EBX bit 23. */
static bool has_clflushopt(void)
{
    unsigned a;
    unsigned b = 0;
    unsigned c;
    unsigned d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1);
}

bool kp_cl_flush_lines(const unsigned char *ptr, size_t bytes)
{
    if (has_clflushopt()) {
        flush_optimised(ptr, bytes);
    } else {
        for (size_t at = 0; at < bytes; at += LINE)
            _mm_clflush(ptr + at);
    }
    if (bytes)
        _mm_clflush(ptr + bytes - 1); /* a buffer need not begin with a line */
    _mm_mfence();
    return true;
}
#else
bool kp_cl_flush_lines(const unsigned char *ptr, size_t bytes)
{
    (void)ptr;
    (void)bytes;
    return false;
}
#endif

static kopt_status prepare_lines(size_t bytes, struct kp_cl_flush *f, kopt_error *err)
{
    void *lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED)
        return kp_err(err, KOPT_EFULL, "%zu bytes to flush the caches with: %s", bytes,
                      strerror(errno)); /* NOLINT(concurrency-mt-unsafe): glibc's is safe */
    /* A page that was only read would be the one page of zeros. */
    memset(lines, 1, bytes);
    f->lines = lines;
    f->bytes = bytes;
    return KOPT_OK;
}

/* --- everything else -------------------------------------------------------------------------
 */

static kopt_status prepare_kernel(struct kp_cl_session *s, const struct kp_limits *limits,
                                  size_t bytes, struct kp_cl_flush *f, kopt_error *err)
{
    static const char *const source[] = {"__kernel void kp_flush(__global uint4 *p)\n"
                                         "{\n"
                                         "    p[get_global_id(0)] += (uint4)(1);\n"
                                         "}\n",
                                         NULL};
    kopt_status st = kp_cl_helper_make(s, limits, source, "kp_flush", &f->helper, err);
    if (st == KOPT_OK)
        st = kp_cl_memory_new(s, bytes, KP_CL_GUARDED, &f->memory, err);
    if (st == KOPT_OK)
        f->bytes = bytes;
    return st;
}

static kopt_status run_kernel(struct kp_cl_session *s, struct kp_cl_flush *f, size_t bytes,
                              kopt_error *err)
{
    struct kp_launch_arg arg = {.space = KP_SPACE_GLOBAL};
    size_t groups = bytes / (ITEM_BYTES * f->helper.group);
    struct kp_launch l = {.grid = {groups ? (uint32_t)groups : 1, 1, 1},
                          .block = {(uint32_t)f->helper.group, 1, 1},
                          .args = &arg,
                          .n_args = 1};
    cl_event event;
    kopt_status st = kp_cl_set_args(s, &f->helper.kernel, &l, &f->memory.mem, err);
    if (st == KOPT_OK)
        st = kp_cl_enqueue(s, &f->helper.kernel, &l, NULL, &event, err);
    if (st == KOPT_OK)
        (void)s->cl->clReleaseEvent(event);
    return st;
}

/* --- both ------------------------------------------------------------------------------------
 */

kopt_status kp_cl_flush_prepare(struct kp_cl_session *s, const struct kp_limits *limits,
                                size_t bytes, struct kp_cl_flush *f, kopt_error *err)
{
    size_t unit = (size_t)ITEM_BYTES * GROUP; /* whole groups, whole pages */
    size_t whole = bytes / unit * unit + (bytes % unit ? unit : 0);
    if (whole < bytes || whole / (ITEM_BYTES) > UINT32_MAX)
        return kp_err(err, KOPT_ERANGE, "flush the caches with %zu bytes", bytes);
    if (s->host) { /* each core has a part of its own */
        int cores[MAX_CORES] = {0};
        int n = list_cores(cores);
        size_t all;
        if (!kp_mul_size(part_of(whole, n), (size_t)n, &all))
            return kp_err_nomem(err);
        whole = all > whole ? all : whole;
    }
    if (whole <= f->bytes)
        return KOPT_OK;
    kp_cl_flush_deinit(s, f);
    kopt_status st =
        s->host ? prepare_lines(whole, f, err) : prepare_kernel(s, limits, whole, f, err);
    if (st != KOPT_OK)
        kp_cl_flush_deinit(s, f);
    return st;
}

kopt_status kp_cl_flush(struct kp_cl_session *s, struct kp_cl_flush *f, size_t bytes,
                        kopt_error *err)
{
    if (!s->host)
        return run_kernel(s, f, bytes, err);
    cl_int rc = s->cl->clFinish(s->queue);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "wait for the device");
    return sweep_all(f, bytes, err);
}

void kp_cl_flush_deinit(struct kp_cl_session *s, struct kp_cl_flush *f)
{
    if (f->lines)
        (void)munmap(f->lines, f->bytes);
    kp_cl_memory_free(s, &f->memory);
    kp_cl_helper_free(s, &f->helper);
    *f = (struct kp_cl_flush){0};
}
