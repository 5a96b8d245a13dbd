/* SPDX-License-Identifier: MIT */
/* Comparing two buffers where they lie. Layer: device.
 *
 * A CPU's are memory of ours: each core of the process compares a part of them. On everything
 * else a kernel does it: each group leaves what it found, and the host joins that. Where that
 * kernel cannot be made (it needs double precision), the caller reads the buffers back. */
#include "base/alloc.h"
#include "device/opencl/cl.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum {
    GROUPS_PER_UNIT = 8,
    MAX_PARTS = 64,
    PART_BYTES = 1 << 20 /* less is over before a thread has started */
};

/* --- CPUs ----------------------------------------------------------------------------------
 */

struct part {
    pthread_t thread;
    const struct kp_cl_pair *pair;
    size_t begin; /* elements */
    size_t end;
    struct kp_compare found;
    bool started;
};

static void *compare_part(void *user)
{
    struct part *p = user;
    const struct kp_cl_pair *c = p->pair;
    size_t at = p->begin * kp_number_bytes(c->type);
    kp_compare_host(c->got->ptr + at, c->want->ptr + at, p->end - p->begin, c->type, c->rtol,
                    c->atol, &p->found);
    return NULL;
}

static size_t count_parts(size_t bytes)
{
    cpu_set_t set;
    size_t parts = bytes / PART_BYTES;
    size_t cores = 1;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores = (size_t)CPU_COUNT(&set);
    parts = parts < cores ? parts : cores;
    return parts > MAX_PARTS ? MAX_PARTS : parts ? parts : 1;
}

/* The last part is this thread's. */
static void compare_in_parts(const struct kp_cl_pair *c, struct kp_compare *out)
{
    struct part parts[MAX_PARTS];
    size_t n = count_parts(c->n * kp_number_bytes(c->type));
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        *p = (struct part){
            .pair = c, .begin = c->n / n * i, .end = i + 1 < n ? c->n / n * (i + 1) : c->n};
        p->started = i + 1 < n && pthread_create(&p->thread, NULL, compare_part, p) == 0;
    }
    for (size_t i = n; i-- > 0;) {
        if (!parts[i].started)
            (void)compare_part(&parts[i]);
    }
    *out = (struct kp_compare){0};
    for (size_t i = 0; i < n; i++) {
        if (parts[i].started)
            (void)pthread_join(parts[i].thread, NULL);
        kp_compare_join(out, &parts[i].found, parts[i].begin);
    }
}

/* Mapping costs nothing where the device works on this memory itself, and elsewhere brings what
 * the device has. */
kopt_status kp_cl_compare_host(struct kp_cl_session *s, const struct kp_cl_pair *c,
                               struct kp_compare *out, kopt_error *err)
{
    const struct kp_cl_memory *both[2] = {c->got, c->want};
    void *mapped[2] = {NULL, NULL};
    size_t bytes = c->n * kp_number_bytes(c->type);
    cl_int rc = CL_SUCCESS;
    for (int i = 0; i < 2 && rc == CL_SUCCESS; i++)
        mapped[i] = s->cl->clEnqueueMapBuffer(s->queue, both[i]->mem, CL_TRUE, CL_MAP_READ, 0,
                                              bytes, 0, NULL, NULL, &rc);
    if (rc == CL_SUCCESS)
        compare_in_parts(c, out);
    for (int i = 0; i < 2; i++) {
        if (mapped[i])
            (void)s->cl->clEnqueueUnmapMemObject(s->queue, both[i]->mem, mapped[i], 0, NULL,
                                                 NULL);
    }
    cl_int finished = s->cl->clFinish(s->queue);
    rc = rc == CL_SUCCESS ? finished : rc;
    return rc == CL_SUCCESS ? KOPT_OK : kp_cl_fail(err, rc, "compare %zu bytes", bytes);
}

/* --- everything else -------------------------------------------------------------------------
 */

static const char rule_text[] =
#define COMPARE_TEXT(...) #__VA_ARGS__ "\n"
#include "device/compare_rule.h"
    ;

/* In terms of the bits of elements: devices may take subnormal floats for 0. */
static const char head_text[] = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                                "#pragma OPENCL FP_CONTRACT OFF\n"
                                "#define U64 ulong\n"
                                "#define BITS_OF(d) as_ulong(d)\n"
                                "#define INFINITE as_double(0x7ff0000000000000UL)\n"
                                "#define ADD(a, b) ((a) + (b))\n"
                                "#define MUL(a, b) ((a) * (b))\n"
                                "#define DEVICE\n";

static const char values_text[] =
    "double float_value(uint b)\n"
    "{\n"
    "    double tiny = (double)(b & 0x7fffffU) * 0x1p-149;\n"
    "    return b >> 23 & 0xffU ? (double)as_float(b) : b >> 31 ? -tiny : tiny;\n"
    "}\n"
    "double half_value(ushort h)\n"
    "{\n"
    "    uint e = h >> 10 & 31U, f = h & 0x3ffU;\n"
    "    double v = e == 0 ? (double)f * 0x1p-24\n"
    "        : e == 31 ? (double)as_float(0x7f800000U | f << 13)\n"
    "                  : (double)as_float((e + 112U) << 23 | f << 13);\n"
    "    return h >> 15 ? -v : v;\n"
    "}\n";

static const char kernel_text[] =
    "__kernel void kp_compare(__global const ELEM *got, __global const ELEM *want, ulong n,\n"
    "                         double rtol, double atol, __global struct found *out,\n"
    "                         __local struct found *all)\n"
    "{\n"
    "    struct found f = {0, 0, ~0UL, 0};\n"
    "    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {\n"
    "        ELEM g = got[i], w = want[i];\n"
    "        if (g != w)\n"
    "            compare_one(g, w, rtol, atol, i, &f);\n"
    "    }\n"
    "    all[get_local_id(0)] = f;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (get_local_id(0) != 0)\n"
    "        return;\n"
    "    for (uint k = 1; k < get_local_size(0); k++) {\n"
    "        f.n_bad += all[k].n_bad;\n"
    "        f.n_nan += all[k].n_nan;\n"
    "        f.first = min(f.first, all[k].first);\n"
    "        f.max_error = max(f.max_error, all[k].max_error);\n"
    "    }\n"
    "    out[get_group_id(0)] = f;\n"
    "}\n";

#define INTEGER_TEXT(type)                                         \
    "#define ELEM " type "\n"                                      \
    "#define IS_FLOAT 0\n"                                         \
    "#define TO_DOUBLE(e) ((double)(e))\n"                         \
    "#define DISTANCE(g, w) ((g) > (w) ? (ulong)(g) - (ulong)(w) " \
    ": (ulong)(w) - (ulong)(g))\n"
#define FLOAT_TEXT(bits, value)        \
    "#define ELEM " bits "\n"          \
    "#define IS_FLOAT 1\n"             \
    "#define TO_DOUBLE(e) " value "\n" \
    "#define DISTANCE(g, w) 0\n"

static const char *const type_texts[] = {
    [KP_NUM_I8] = INTEGER_TEXT("char"),
    [KP_NUM_U8] = INTEGER_TEXT("uchar"),
    [KP_NUM_I16] = INTEGER_TEXT("short"),
    [KP_NUM_U16] = INTEGER_TEXT("ushort"),
    [KP_NUM_I32] = INTEGER_TEXT("int"),
    [KP_NUM_U32] = INTEGER_TEXT("uint"),
    [KP_NUM_I64] = INTEGER_TEXT("long"),
    [KP_NUM_U64] = INTEGER_TEXT("ulong"),
    [KP_NUM_F16] = FLOAT_TEXT("ushort", "half_value(e)"),
    [KP_NUM_BF16] = FLOAT_TEXT("ushort", "float_value((uint)(e) << 16)"),
    [KP_NUM_F32] = FLOAT_TEXT("uint", "float_value(e)"),
    [KP_NUM_F64] = FLOAT_TEXT("ulong", "as_double(e)")};

/* A group's result; the same as `struct found` in compare_rule.h. */
struct found {
    uint64_t n_bad;
    uint64_t n_nan;
    uint64_t first;
    uint64_t max_error;
};

/* KOPT_ENOTFOUND with the reason when there is none; a second try would end alike. */
static kopt_status get_kernel(struct kp_cl_session *s, const struct kp_limits *limits,
                              enum kp_number type, struct kp_cl_compare *k, kopt_error *err)
{
    const char *const source[] = {head_text, type_texts[type], values_text,
                                  rule_text, kernel_text,      NULL};
    if (k->helpers[type].program)
        return KOPT_OK;
    if (!k->tried[type]) {
        k->tried[type] = true;
        if (kp_cl_helper_make(s, limits, source, "kp_compare", &k->helpers[type], err) ==
            KOPT_OK)
            return KOPT_OK;
        kp_err_wrap(err, "results are compared on the host");
        return KOPT_ENOTFOUND;
    }
    return kp_err(err, KOPT_ENOTFOUND, "no kernel to compare with");
}

static kopt_status run_kernel(struct kp_cl_session *s, const struct kp_cl_helper *h,
                              const struct kp_cl_pair *c, struct kp_cl_memory *found,
                              uint32_t groups, kopt_error *err)
{
    const uint64_t n = c->n;
    const struct kp_launch_arg args[] = {
        {.space = KP_SPACE_GLOBAL},
        {.space = KP_SPACE_GLOBAL},
        {.space = KP_SPACE_VALUE, .value = &n, .bytes = sizeof(n)},
        {.space = KP_SPACE_VALUE, .value = &c->rtol, .bytes = sizeof(c->rtol)},
        {.space = KP_SPACE_VALUE, .value = &c->atol, .bytes = sizeof(c->atol)},
        {.space = KP_SPACE_GLOBAL},
        {.space = KP_SPACE_SHARED, .bytes = h->group * sizeof(struct found)}};
    const cl_mem mems[] = {c->got->mem, c->want->mem, NULL, NULL, NULL, found->mem, NULL};
    const struct kp_launch l = {.grid = {groups, 1, 1},
                                .block = {(uint32_t)h->group, 1, 1},
                                .args = args,
                                .n_args = sizeof(args) / sizeof(*args)};
    cl_event event;
    kopt_status st = kp_cl_set_args(s, &h->kernel, &l, mems, err);
    if (st == KOPT_OK)
        st = kp_cl_enqueue(s, &h->kernel, &l, NULL, &event, err);
    if (st == KOPT_OK)
        (void)s->cl->clReleaseEvent(event);
    return st;
}

/* The values of the first bad pair, as the host's comparison gives them. */
static kopt_status read_pair(struct kp_cl_session *s, const struct kp_cl_pair *c,
                             struct kp_compare *out, kopt_error *err)
{
    unsigned char bytes[2][8];
    const cl_mem mems[2] = {c->got->mem, c->want->mem};
    struct kp_compare one;
    size_t size = kp_number_bytes(c->type);
    cl_int rc = CL_SUCCESS;
    for (int i = 0; i < 2 && rc == CL_SUCCESS; i++)
        rc = s->cl->clEnqueueReadBuffer(s->queue, mems[i], CL_TRUE, (size_t)out->first * size,
                                        size, bytes[i], 0, NULL, NULL);
    if (rc != CL_SUCCESS)
        return kp_cl_fail(err, rc, "read what was compared");
    kp_compare_host(bytes[0], bytes[1], 1, c->type, 0, 0, &one);
    out->got = one.got;
    out->want = one.want;
    return KOPT_OK;
}

static void join_groups(const struct found *found, size_t groups, struct kp_compare *out)
{
    struct found all = {.first = UINT64_MAX};
    for (size_t i = 0; i < groups; i++) {
        all.n_bad += found[i].n_bad;
        all.n_nan += found[i].n_nan;
        all.first = found[i].first < all.first ? found[i].first : all.first;
        all.max_error = found[i].max_error > all.max_error ? found[i].max_error : all.max_error;
    }
    out->n_bad = all.n_bad;
    out->n_nan = all.n_nan;
    out->first = all.n_bad ? all.first : 0;
    memcpy(&out->max_error, &all.max_error, sizeof(out->max_error));
}

kopt_status kp_cl_compare_kernel(struct kp_cl_session *s, const struct kp_limits *limits,
                                 const struct kp_cl_pair *c, struct kp_cl_compare *k,
                                 struct kp_compare *out, kopt_error *err)
{
    struct kp_cl_memory memory = {0};
    struct found *found = NULL;
    kopt_status st = get_kernel(s, limits, c->type, k, err);
    if (st != KOPT_OK)
        return st;
    const struct kp_cl_helper *h = &k->helpers[c->type];
    size_t most = (size_t)(limits->compute_units > 0 ? limits->compute_units : 1);
    size_t groups = (c->n + h->group - 1) / h->group;
    most *= GROUPS_PER_UNIT;
    groups = groups > most ? most : groups ? groups : 1;
    found = kp_calloc(groups, sizeof(*found));
    if (!found)
        return kp_err_nomem(err);
    *out = (struct kp_compare){.n = c->n};
    st = kp_cl_memory_new(s, groups * sizeof(*found), KP_CL_GUARDED, &memory, err);
    if (st == KOPT_OK)
        st = run_kernel(s, h, c, &memory, (uint32_t)groups, err);
    if (st != KOPT_OK)
        goto done;
    cl_int rc = s->cl->clEnqueueReadBuffer(s->queue, memory.mem, CL_TRUE, 0,
                                           groups * sizeof(*found), found, 0, NULL, NULL);
    if (rc != CL_SUCCESS) {
        st = kp_cl_fail(err, rc, "compare %zu elements", c->n);
        goto done;
    }
    join_groups(found, groups, out);
    if (out->n_bad)
        st = read_pair(s, c, out, err);
done:
    kp_cl_memory_free(s, &memory);
    kp_free(found);
    return st;
}

void kp_cl_compare_deinit(struct kp_cl_session *s, struct kp_cl_compare *k)
{
    for (int i = 0; i <= KP_NUM_F64; i++)
        kp_cl_helper_free(s, &k->helpers[i]);
    *k = (struct kp_cl_compare){0};
}
