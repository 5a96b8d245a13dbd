/* SPDX-License-Identifier: MIT */
/* Emptying the caches between launches. Layer: device.
 *
 * On a CPU, while the device is idle: line by line over the launch's own buffers where the
 * processor can do that, which takes as long as the data is large; else, or when the data is
 * larger than the cache, by threads of ours, one on each core that the process may use, since
 * each core has caches of its own. On everything else by a kernel. */
#include "base/alloc.h"
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
    unsigned char *lines;
    size_t all;   /* bytes of the buffer */
    size_t first; /* where this core begins */
    size_t bytes; /* and how far it goes, around the end */
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
    size_t at = w->first;
    for (size_t done = 0; done < w->bytes; done += LINE) {
        volatile unsigned char *line = w->lines + at;
        *line = (unsigned char)(*line + 1);
        at = at + LINE < w->all ? at + LINE : 0;
    }
    return NULL;
}

static int list_cores(int cores[MAX_CORES])
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 0;
    for (int c = 0; c < CPU_SETSIZE && n < MAX_CORES; c++) {
        if (CPU_ISSET((size_t)c, &set))
            cores[n++] = c;
    }
    return n;
}

static kopt_status sweep_all(struct kp_cl_flush *f, size_t bytes, kopt_error *err)
{
    int cores[MAX_CORES] = {0};
    int n = list_cores(cores);
    if (n < 1)
        n = 1;
    struct sweep *w = kp_calloc((size_t)n, sizeof(*w));
    if (!w)
        return kp_err_nomem(err);
    size_t part = bytes / (size_t)n / LINE * LINE;
    if (part < CORE_BYTES)
        part = CORE_BYTES;
    for (int i = 0; i < n; i++) {
        w[i] = (struct sweep){.lines = f->lines,
                              .all = f->bytes,
                              .first = (size_t)i * part % f->bytes,
                              .bytes = part,
                              .core = cores[i]};
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
        _mm_clflushopt((void *)(uintptr_t)(ptr + at));
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
    static const char source[] = "__kernel void kp_flush(__global uint4 *p)\n"
                                 "{\n"
                                 "    p[get_global_id(0)] += (uint4)(1);\n"
                                 "}\n";
    struct kp_cl_text text = {.source = KP_BUF_INIT(1024)};
    kp_buf_adds(&text.source, source);
    kopt_status st = kp_buf_status(&text.source, err);
    if (st == KOPT_OK)
        st = kp_cl_build(s, &text, NULL, &f->program, NULL, err);
    if (st == KOPT_OK)
        st = kp_cl_kernel_new(s, f->program, "kp_flush", &f->kernel, err);
    kp_cl_text_deinit(&text);
    if (st != KOPT_OK)
        return st;
    f->group = GROUP;
    if (limits->max_threads > 0 && (size_t)limits->max_threads < f->group)
        f->group = (size_t)limits->max_threads;
    if (f->kernel.info.max_threads > 0 && (size_t)f->kernel.info.max_threads < f->group)
        f->group = (size_t)f->kernel.info.max_threads;
    st = kp_cl_memory_new(s, bytes, KP_CL_GUARDED, &f->memory, err);
    if (st == KOPT_OK)
        f->bytes = bytes;
    return st;
}

static kopt_status run_kernel(struct kp_cl_session *s, struct kp_cl_flush *f, size_t bytes,
                              kopt_error *err)
{
    struct kp_launch_arg arg = {.space = KP_SPACE_GLOBAL};
    size_t groups = bytes / (ITEM_BYTES * f->group);
    struct kp_launch l = {.grid = {groups ? (uint32_t)groups : 1, 1, 1},
                          .block = {(uint32_t)f->group, 1, 1},
                          .args = &arg,
                          .n_args = 1};
    cl_event event;
    kopt_status st = kp_cl_set_args(s, &f->kernel, &l, &f->memory.mem, err);
    if (st == KOPT_OK)
        st = kp_cl_enqueue(s, &f->kernel, &l, NULL, &event, err);
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
    if (s->host && whole < CORE_BYTES)
        whole = CORE_BYTES;
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
    kp_cl_kernel_free(s, &f->kernel);
    if (f->program)
        (void)s->cl->clReleaseProgram(f->program);
    *f = (struct kp_cl_flush){0};
}
