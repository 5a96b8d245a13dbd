/* SPDX-License-Identifier: MIT */
#include "device/cuda/compile.h"
#include "device/cuda/impl.h"

#include <string.h>

enum {
    DELAY = KP_NUM_F64 + 1, /* the helper behind those that compare */
    BLOCK = 256,
    BLOCKS_PER_UNIT = 8, /* 2,048 threads, all that a multiprocessor holds */
    IMAGE_MAX = 16 << 20,
    /* Longer than the host takes to enqueue an event, a launch and an event. */
    DELAY_NS = 10000
};

static const char compare_source[] =
#define COMPARE_TEXT(...) #__VA_ARGS__
#include "device/compare_rule.h"
    " "
#include "device/cuda/compare_text.h"
    ;

static const char delay_source[] =
    "extern \"C\" __global__ void kp_delay(unsigned long long cycles)\n"
    "{\n"
    "    long long start = clock64();\n"
    "    while ((unsigned long long)(clock64() - start) < cycles)\n"
    "        ;\n"
    "}\n";

/* What both texts want to have defined, but for the type. */
static const char *const compare_macros[] = {
    "U64=unsigned long long",
    "BITS_OF(d)=((unsigned long long)__double_as_longlong(d))",
    "ADD(a, b)=__dadd_rn(a, b)",
    "MUL(a, b)=__dmul_rn(a, b)",
    "KERNEL=extern \"C\" __global__",
    "DEVICE=static __device__",
    "SHARED=__shared__",
    "PACK_ALIGN=__align__(16)",
    "PACK=(16 / sizeof(ELEM))",
    "INFINITE=__longlong_as_double(0x7ff0000000000000LL)",
    "UNROLL=_Pragma(\"unroll\")",
    ("HALF_TO_DOUBLE(h)=([](unsigned short x) { float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f)"
     " : \"h\"(x)); return (double)f; })(h)"),
};

#define INTEGER_MACROS(c_type)                                                               \
    {                                                                                        \
        "ELEM=" c_type, "IS_FLOAT=0", "TO_DOUBLE(e)=((double)(e))",                          \
            "DISTANCE(g, w)=((g) > (w) ? (unsigned long long)(g) - (unsigned long long)(w) " \
            ": (unsigned long long)(w) - (unsigned long long)(g))"                           \
    }
#define FLOAT_MACROS(c_type, value)                                             \
    {                                                                           \
        "ELEM=" c_type, "IS_FLOAT=1", "TO_DOUBLE(e)=" value, "DISTANCE(g, w)=0" \
    }
enum { N_COMMON = sizeof(compare_macros) / sizeof(compare_macros[0]), N_TYPE = 4 };

static const char *const type_macros[][N_TYPE] = {
    [KP_NUM_I8] = INTEGER_MACROS("signed char"),
    [KP_NUM_U8] = INTEGER_MACROS("unsigned char"),
    [KP_NUM_I16] = INTEGER_MACROS("short"),
    [KP_NUM_U16] = INTEGER_MACROS("unsigned short"),
    [KP_NUM_I32] = INTEGER_MACROS("int"),
    [KP_NUM_U32] = INTEGER_MACROS("unsigned int"),
    [KP_NUM_I64] = INTEGER_MACROS("long long"),
    [KP_NUM_U64] = INTEGER_MACROS("unsigned long long"),
    [KP_NUM_F16] = FLOAT_MACROS("unsigned short", "HALF_TO_DOUBLE(e)"),
    [KP_NUM_BF16] = FLOAT_MACROS("unsigned short", "((double)__int_as_float((int)(e) << 16))"),
    [KP_NUM_F32] = FLOAT_MACROS("float", "((double)(e))"),
    [KP_NUM_F64] = FLOAT_MACROS("double", "(e)")};

_Static_assert(N_COMMON + N_TYPE <= KP_CUDA_HELPER_MACROS, "room for the macros");

/* --- making them ----------------------------------------------------------------------- */

void kp_cuda_helper_job(int kind, const char *macros[KP_CUDA_HELPER_MACROS],
                        struct kp_compile_job *out)
{
    *out = (struct kp_compile_job){.path = "kopt", .entry = "kp_delay", .macros = macros};
    out->source = kp_str_from(delay_source);
    if (kind == DELAY)
        return;
    out->source = kp_str_from(compare_source);
    out->entry = "kp_compare";
    out->n_macros = N_COMMON + N_TYPE;
    memcpy(macros, compare_macros, sizeof(compare_macros));
    memcpy(macros + N_COMMON, type_macros[kind], sizeof(type_macros[kind]));
}

static kopt_status make_helper(struct kp_cuda_device *d, int kind, struct kp_module **out,
                               kopt_error *err)
{
    const char *macros[KP_CUDA_HELPER_MACROS];
    struct kp_compile_job job;
    struct kp_compiler *c = NULL;
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    kp_cuda_helper_job(kind, macros, &job);
    kopt_status st =
        kp_cuda_compiler_open(d->base.info.index, d->base.info.arch, d->rt->base.log, &c, err);
    if (st == KOPT_OK)
        st = kp_cuda_compile(c, &job, &image, NULL, err);
    if (st == KOPT_OK)
        st = kp_cuda_module_load(&d->base, image.ptr, image.len, job.entry, NULL, out, err);
    kp_cuda_compiler_close(c);
    kp_buf_deinit(&image);
    return st;
}

/* NULL when it cannot be made; said once in the log. */
static const struct kp_cuda_module *get_helper(struct kp_cuda_device *d, int kind)
{
    struct kp_cuda_helper *h = &d->helpers[kind];
    kopt_error why;
    if (!h->tried) {
        h->tried = true;
        if (make_helper(d, kind, &h->module, &why) != KOPT_OK)
            kp_log(d->rt->base.log, KP_LOG_INFO, "%s: %s",
                   kind == DELAY ? "very short kernels are timed less exactly"
                                 : "results are compared on the host",
                   why.message);
    }
    return (const struct kp_cuda_module *)h->module;
}

void kp_cuda_helpers_deinit(struct kp_cuda_device *d)
{
    for (int i = 0; i < KP_CUDA_N_HELPERS; i++) {
        if (d->helpers[i].module)
            kp_cuda_module_unload(&d->base, d->helpers[i].module);
    }
    memset(d->helpers, 0, sizeof(d->helpers));
}

kp_cu_result kp_cuda_delay(struct kp_cuda_device *d)
{
    const struct kp_cuda_module *m = get_helper(d, DELAY);
    int64_t khz = d->base.info.limits.clock_khz;
    unsigned long long cycles =
        (unsigned long long)(khz > 0 ? khz : 1000000) * DELAY_NS / 1000000;
    void *params[] = {&cycles};
    if (!m)
        return KP_CUDA_SUCCESS;
    return d->drv->cuLaunchKernel(m->function, 1, 1, 1, 1, 1, 1, 0, d->stream, params, NULL);
}

/* --- comparing ------------------------------------------------------------------------- */

/* The kernel's result; the same as `struct found` in compare_rule.h. */
struct found {
    unsigned long long n_bad;
    unsigned long long n_nan;
    unsigned long long first;
    unsigned long long max_error;
};

struct comparison {
    const struct kp_cuda_module *kernel;
    kp_cu_pointer got;
    kp_cu_pointer want;
    unsigned long long n;
    double rtol;
    double atol;
};

static kp_cu_result enqueue_comparison(struct kp_cuda_device *d, struct comparison *c,
                                       struct found *found)
{
    const struct kp_cuda_driver *drv = d->drv;
    void *params[] = {&c->got, &c->want, &c->n, &c->rtol, &c->atol, &d->found};
    unsigned long long blocks = (c->n + BLOCK - 1) / BLOCK;
    unsigned long long most =
        (unsigned long long)d->base.info.limits.compute_units * BLOCKS_PER_UNIT;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    kp_cu_result rc = drv->cuMemcpyHtoDAsync(d->found, found, sizeof(*found), d->stream);
    if (rc == KP_CUDA_SUCCESS)
        rc = drv->cuLaunchKernel(c->kernel->function, grid ? grid : 1, 1, 1, BLOCK, 1, 1, 0,
                                 d->stream, params, NULL);
    if (rc == KP_CUDA_SUCCESS)
        rc = drv->cuMemcpyDtoHAsync(found, d->found, sizeof(*found), d->stream);
    return rc;
}

/* The values of the first bad pair, as the host's comparison gives them. */
static kopt_status read_pair(struct kp_cuda_device *d, struct kp_buffer *got,
                             struct kp_buffer *want, enum kp_number type,
                             struct kp_compare *out, kopt_error *err)
{
    unsigned char g[8];
    unsigned char w[8];
    struct kp_compare one;
    size_t size = kp_number_bytes(type);
    kopt_status st = kp_cuda_read(&d->base, got, (size_t)out->first * size, g, size, err);
    if (st == KOPT_OK)
        st = kp_cuda_read(&d->base, want, (size_t)out->first * size, w, size, err);
    if (st != KOPT_OK)
        return st;
    kp_compare_host(g, w, 1, type, 0, 0, &one);
    out->got = one.got;
    out->want = one.want;
    return KOPT_OK;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters of the table */
kopt_status kp_cuda_compare(struct kp_device *base, struct kp_buffer *got,
                            struct kp_buffer *want, enum kp_number type, double rtol,
                            double atol, struct kp_compare *out, kopt_error *err)
{
    struct kp_cuda_device *d = (struct kp_cuda_device *)base;
    struct found found = {.first = ~0ULL};
    struct comparison c = {.got = ((struct kp_cuda_buffer *)got)->at,
                           .want = ((struct kp_cuda_buffer *)want)->at,
                           .n = got->bytes / kp_number_bytes(type),
                           .rtol = rtol,
                           .atol = atol};
    memset(out, 0, sizeof(*out));
    kopt_status st = kp_cuda_enter(d, err);
    if (st != KOPT_OK)
        return st;
    c.kernel = get_helper(d, (int)type);
    if (!c.kernel)
        return kp_err(err, KOPT_ENOTFOUND, "no kernel to compare with");
    if (!d->found)
        st = kp_cuda_alloc(d, sizeof(found), &d->found, err);
    if (st != KOPT_OK)
        return st;
    kp_cu_result rc = enqueue_comparison(d, &c, &found);
    /* `found` must outlive the copies, whatever came of the rest */
    st = kp_cuda_sync(d, "comparing", err);
    if (rc != KP_CUDA_SUCCESS)
        return kp_cuda_fail(d, rc, "comparing", err);
    if (st != KOPT_OK)
        return st;
    out->n = c.n;
    out->n_bad = found.n_bad;
    out->n_nan = found.n_nan;
    memcpy(&out->max_error, &found.max_error, sizeof(out->max_error));
    if (!found.n_bad)
        return KOPT_OK;
    out->first = found.first;
    return read_pair(d, got, want, type, out, err);
}
