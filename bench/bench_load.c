/* SPDX-License-Identifier: MIT */
/* How much of a measurement's overhead an OpenCL driver's own loading of a program is:
 *
 *   bench_load [--json] KERNEL.cl [NAME=VALUE ..]
 *
 * for example bench_load examples/gemm/gemm.cl M=512 N=512 K=512, on a machine that does
 * nothing else. Three tables:
 *   load      the images of the default and of a few random configurations, in turn in this
 *             one process, while nothing compiles: the driver alone (the image's binary as a
 *             program, built, its kernel made, both released) and kopt's loading of the same
 *             image (that, with its checks of the launch). Medians, lowest and highest.
 *   compare   two buffers of 16 MiB: by memcmp() on one core, and as results are compared,
 *             equal and with every element off by its last bit.
 *   session   a short session with random configurations, as `kopt tune` runs it: its overhead
 *             for each measurement, and of the whole run with its race, what loading and
 *             comparing took.
 * The first device of OpenCL; its kernels are compiled into a cache that is new. */
#include "base/alloc.h"
#include "base/rng.h"
#include "device/device.h"
#include "device/opencl/cl.h"
#include "math/stats.h"
#include "measure/data.h"
#include "os/clock.h"
#include "os/file.h"
#include "space/kernel.h"
#include "json/json.h"

#include <kopt/kopt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGES = 8,
    ROUNDS = 51,
    MEASUREMENTS = 24, /* of the session */
    IMAGE_MAX = 64 << 20,
    TEXT_MAX = 1 << 16,
    MACROS_MAX = 4096,
    COMPARED = 16 << 20 /* bytes */
};

/* A configuration, compiled. */
struct image {
    struct kp_buf config; /* "BM=64,BN=32", in quotes */
    struct kp_buf bytes;
    struct kp_launch launch;
    struct kp_launch_arg *args;
    unsigned char *values; /* 16 bytes for each argument */
    double build_ms[ROUNDS];
    double driver_ms[ROUNDS];
    double kopt_ms[ROUNDS];
};

struct bench {
    bool json;
    const char *path;
    const char *const *problem;
    size_t n_problem;
    struct kp_kernel *kernel;
    struct kp_bound *bound;
    struct kp_runtime *rt;
    struct kp_device *dev;
    struct kp_compiler *compiler;
    struct kp_cl_lib lib; /* the driver alone, past all of ours */
    struct kp_cl_session cl;
    struct image images[IMAGES];
    size_t n;
};

static double since_ms(int64_t start)
{
    return (double)(kp_clock_ns() - start) * 1e-6;
}

/* ---- images ---- */

struct macros {
    char **texts;
    size_t n;
    size_t cap;
    bool failed;
};

static void add_macro(void *user, const char *name, const char *text)
{
    struct macros *m = user;
    struct kp_buf b = KP_BUF_INIT(TEXT_MAX);
    void *items = m->texts;
    kp_buf_addf(&b, "%s=%s", name, text);
    char *macro = kp_buf_take(&b);
    if (!macro || !kp_grow(&items, &m->cap, m->n, sizeof(*m->texts), MACROS_MAX)) {
        kp_free(macro);
        m->failed = true;
        return;
    }
    m->texts = items;
    m->texts[m->n++] = macro;
}

static void macros_deinit(struct macros *m)
{
    for (size_t i = 0; i < m->n; i++)
        kp_free(m->texts[i]);
    kp_free(m->texts);
}

static kopt_status set_args(const struct bench *b, const uint32_t *config, struct image *im,
                            kopt_error *err)
{
    const struct kp_kernel *k = b->kernel;
    kopt_status st = KOPT_OK;
    im->args = kp_calloc(k->n_args + 1, sizeof(*im->args));
    im->values = kp_calloc(k->n_args + 1, 16);
    if (!im->args || !im->values)
        return kp_err_nomem(err);
    for (size_t i = 0; i < k->n_args && st == KOPT_OK; i++) {
        struct kp_launch_arg *a = &im->args[i];
        if (k->args[i].kind == KP_ARG_SCALAR) {
            a->space = KP_SPACE_VALUE;
            a->value = im->values + 16 * i;
            st = kp_data_scalar(b->bound, i, config, im->values + 16 * i, &a->bytes, err);
        } else {
            a->space = k->args[i].kind == KP_ARG_BUFFER ? KP_SPACE_GLOBAL : KP_SPACE_SHARED;
            st = kp_data_bytes(b->bound, i, config, &a->bytes, err);
        }
    }
    im->launch.args = im->args;
    im->launch.n_args = k->n_args;
    return st;
}

static kopt_status set_launch(const struct bench *b, const uint32_t *config, struct image *im,
                              kopt_error *err)
{
    struct kp_geometry g;
    kopt_status st = kp_bound_geometry(b->bound, config, &g, err);
    for (int i = 0; i < 3 && st == KOPT_OK; i++) {
        if (g.grid[i] > UINT32_MAX || g.block[i] > UINT32_MAX)
            return kp_err(err, KOPT_ERANGE, "the launch has more than 2^32 groups");
        im->launch.grid[i] = (uint32_t)g.grid[i];
        im->launch.block[i] = (uint32_t)g.block[i];
    }
    return st == KOPT_OK ? set_args(b, config, im, err) : st;
}

static void image_deinit(struct image *im)
{
    kp_buf_deinit(&im->config);
    kp_buf_deinit(&im->bytes);
    kp_free(im->args);
    kp_free(im->values);
    *im = (struct image){0};
}

static kopt_status make_image(const struct bench *b, const uint32_t *config, struct image *im,
                              kopt_error *err)
{
    struct macros m = {0};
    struct kp_buf text = KP_BUF_INIT(TEXT_MAX);
    im->config = KP_BUF_INIT(TEXT_MAX);
    im->bytes = KP_BUF_INIT(IMAGE_MAX);
    kp_space_config_text(b->bound->space, config, &text);
    kp_json_quote((struct kp_str){kp_buf_text(&text), text.len}, &im->config);
    kopt_status st = kp_buf_status(&im->config, err);
    if (st == KOPT_OK)
        st = set_launch(b, config, im, err);
    if (st == KOPT_OK)
        st = kp_bound_macros(b->bound, config, add_macro, &m, err);
    if (st == KOPT_OK && m.failed)
        st = kp_err_nomem(err);
    if (st == KOPT_OK) {
        const struct kp_compile_job job = {.source = b->kernel->source,
                                           .path = b->kernel->source_path,
                                           .entry = b->kernel->name,
                                           .macros = (const char *const *)m.texts,
                                           .n_macros = m.n,
                                           .options = b->kernel->flags,
                                           .n_options = b->kernel->n_flags,
                                           .launch = &im->launch};
        st = kp_compile(b->compiler, &job, &im->bytes, NULL, err);
    }
    macros_deinit(&m);
    kp_buf_deinit(&text);
    return st;
}

/* The default, and random ones; those that do not compile are passed over. */
static kopt_status make_images(struct bench *b, kopt_error *err)
{
    struct kp_rng rng;
    uint32_t config[KP_PARAMS_MAX];
    kopt_status st = KOPT_OK;
    kp_rng_init(&rng, 1);
    for (int i = 0; i < 4 * IMAGES && b->n < IMAGES; i++) {
        if (i == 0 && !kp_bound_default(b->bound, config))
            return kp_err(err, KOPT_EINPUT, "no configuration is valid");
        if (i > 0)
            kp_space_sample(b->bound->space, &rng, config);
        st = make_image(b, config, &b->images[b->n], err);
        if (st == KOPT_OK)
            b->n++;
        else
            image_deinit(&b->images[b->n]);
    }
    return b->n ? KOPT_OK : st;
}

/* ---- loading ---- */

static kopt_status driver_loads(struct bench *b, struct image *im, int round, kopt_error *err)
{
    const struct kp_cl_api *cl = b->cl.cl;
    struct kp_cl_text text;
    struct kp_str binary;
    cl_int rc;
    kopt_status st =
        kp_cl_image_read(kp_buf_text(&im->bytes), im->bytes.len, &text, &binary, err);
    if (st != KOPT_OK)
        return st;
    if (binary.len == 0) {
        kp_cl_text_deinit(&text);
        return kp_err(err, KOPT_EDEVICE, "this driver gives no binary: images are sources");
    }
    const unsigned char *bytes = (const unsigned char *)binary.ptr;
    int64_t start = kp_clock_ns();
    cl_program program = cl->clCreateProgramWithBinary(b->cl.context, 1, &b->cl.device,
                                                       &binary.len, &bytes, NULL, &rc);
    if (rc == CL_SUCCESS) {
        rc = cl->clBuildProgram(program, 1, &b->cl.device, kp_buf_text(&text.options), NULL,
                                NULL);
        im->build_ms[round] = since_ms(start);
        cl_int made = rc;
        cl_kernel kernel =
            rc == CL_SUCCESS ? cl->clCreateKernel(program, b->kernel->name, &made) : NULL;
        rc = made;
        if (kernel)
            (void)cl->clReleaseKernel(kernel);
        (void)cl->clReleaseProgram(program);
        im->driver_ms[round] = since_ms(start);
    }
    kp_cl_text_deinit(&text);
    return rc == CL_SUCCESS ? KOPT_OK : kp_cl_fail(err, rc, "load an image's binary");
}

static kopt_status kopt_loads(struct bench *b, struct image *im, int round, kopt_error *err)
{
    struct kp_module *m = NULL;
    int64_t start = kp_clock_ns();
    kopt_status st = kp_module_load(b->dev, kp_buf_text(&im->bytes), im->bytes.len,
                                    b->kernel->name, &im->launch, &m, err);
    if (st == KOPT_OK)
        st = kp_launch_check(b->dev, m, &im->launch, err);
    if (m)
        kp_module_unload(b->dev, m);
    im->kopt_ms[round] = since_ms(start);
    return st;
}

/* Both in turn, the first of them in turn, too, image by image. The first round is a warm-up,
 * overwritten. */
static kopt_status load_all(struct bench *b, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (int i = -1; i < ROUNDS && st == KOPT_OK; i++) {
        int round = i < 0 ? 0 : i;
        for (size_t k = 0; k < b->n && st == KOPT_OK; k++) {
            struct image *im = &b->images[k];
            bool driver_first = i % 2 == 0;
            st = driver_first ? driver_loads(b, im, round, err) : kopt_loads(b, im, round, err);
            if (st == KOPT_OK)
                st = driver_first ? kopt_loads(b, im, round, err)
                                  : driver_loads(b, im, round, err);
        }
    }
    return st;
}

struct spread {
    double median;
    double low;
    double high;
};

static struct spread spread_of(double *x, size_t n)
{
    struct spread s = {.median = kp_median(x, n), .low = x[0], .high = x[0]};
    for (size_t i = 1; i < n; i++) {
        s.low = fmin(s.low, x[i]);
        s.high = fmax(s.high, x[i]);
    }
    return s;
}

static void print_load(const struct bench *b, const char *name, size_t bytes,
                       const struct spread s[3])
{
    if (b->json) {
        (void)printf("{\"type\":\"load\",\"image\":%s,\"bytes\":%zu,\"build_ms\":%.4f,"
                     "\"build_ms_low\":%.4f,\"build_ms_high\":%.4f,\"driver_ms\":%.4f,"
                     "\"driver_ms_low\":%.4f,\"driver_ms_high\":%.4f,\"kopt_ms\":%.4f,"
                     "\"kopt_ms_low\":%.4f,\"kopt_ms_high\":%.4f}\n",
                     name, bytes, s[0].median, s[0].low, s[0].high, s[1].median, s[1].low,
                     s[1].high, s[2].median, s[2].low, s[2].high);
        return;
    }
    (void)printf("%-10.10s %8zu", name, bytes);
    for (int i = 0; i < 3; i++) {
        char range[32];
        (void)snprintf(range, sizeof(range), "%.3f-%.3f", s[i].low, s[i].high);
        (void)printf(" %9.3f %14s", s[i].median, range);
    }
    (void)printf("\n");
}

static kopt_status bench_load(struct bench *b, kopt_error *err)
{
    static double all[3][IMAGES * ROUNDS];
    struct spread s[3];
    size_t bytes = 0;
    kopt_status st = load_all(b, err);
    if (st != KOPT_OK)
        return st;
    if (!b->json)
        (void)printf("%-10s %8s %9s %14s %9s %14s %9s %14s\n", "load, ms", "bytes", "building",
                     "low-high", "driver", "low-high", "kopt", "low-high");
    for (size_t k = 0; k < b->n; k++) {
        struct image *im = &b->images[k];
        double *const times[3] = {im->build_ms, im->driver_ms, im->kopt_ms};
        char name[24];
        (void)snprintf(name, sizeof(name), "%zu", k);
        for (int i = 0; i < 3; i++) {
            memcpy(&all[i][k * ROUNDS], times[i], ROUNDS * sizeof(double));
            s[i] = spread_of(times[i], ROUNDS);
        }
        bytes += im->bytes.len;
        print_load(b,
                   b->json ? kp_buf_text(&im->config)
                   : k     ? name
                           : "default",
                   im->bytes.len, s);
    }
    for (int i = 0; i < 3; i++)
        s[i] = spread_of(all[i], b->n * ROUNDS);
    print_load(b, b->json ? "\"all\"" : "all", bytes / b->n, s);
    return KOPT_OK;
}

/* ---- comparing ---- */

static void print_compare(const struct bench *b, const char *name, double *ms)
{
    struct spread s = spread_of(ms, ROUNDS);
    double gbps = 2.0 * COMPARED / (s.median * 1e6);
    if (b->json) {
        (void)printf("{\"type\":\"compare\",\"by\":\"%s\",\"bytes\":%d,\"ms\":%.4f,"
                     "\"ms_low\":%.4f,\"ms_high\":%.4f,\"gbps\":%.3f}\n",
                     name, 2 * COMPARED, s.median, s.low, s.high, gbps);
        return;
    }
    char range[32];
    (void)snprintf(range, sizeof(range), "%.3f-%.3f", s.low, s.high);
    (void)printf("%-30s %9.3f %14s %9.2f\n", name, s.median, range, gbps);
}

static kopt_status compare_memory(const struct bench *b, const void *x, const void *y,
                                  kopt_error *err)
{
    double ms[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = kp_clock_ns();
        int differs = memcmp(x, y, COMPARED);
        ms[i] = since_ms(start);
        if (differs)
            return kp_err(err, KOPT_EFAILED, "equal memory differs");
    }
    print_compare(b, "memcmp, one core", ms);
    return KOPT_OK;
}

static kopt_status compare_buffers(const struct bench *b, const char *name,
                                   struct kp_buffer *const both[2], kopt_error *err)
{
    double ms[ROUNDS];
    struct kp_compare got;
    for (int i = -1; i < ROUNDS; i++) { /* the first one may make a kernel */
        int64_t start = kp_clock_ns();
        kopt_status st =
            kp_buffer_compare(b->dev, both[0], both[1], KP_NUM_F32, 1e-5, 0, &got, err);
        ms[i < 0 ? 0 : i] = since_ms(start);
        if (st == KOPT_OK && got.n_bad)
            st = kp_err(err, KOPT_EFAILED, "%s: the comparison finds a mistake", name);
        if (st != KOPT_OK)
            return st;
    }
    print_compare(b, name, ms);
    return KOPT_OK;
}

static kopt_status bench_compare(const struct bench *b, kopt_error *err)
{
    size_t n = COMPARED / sizeof(float);
    float *x = kp_calloc(n, sizeof(*x));
    float *y = kp_calloc(n, sizeof(*y));
    struct kp_buffer *both[2] = {NULL, NULL};
    kopt_status st = x && y ? KOPT_OK : kp_err_nomem(err);
    for (size_t i = 0; i < n && st == KOPT_OK; i++)
        x[i] = y[i] = 1 + (float)i / (float)n;
    if (!b->json)
        (void)printf("\n%-30s %9s %14s %9s\n", "compare 2 x 16 MiB", "ms", "low-high", "GB/s");
    if (st == KOPT_OK)
        st = compare_memory(b, x, y, err);
    for (int i = 0; i < 2 && st == KOPT_OK; i++) {
        st = kp_buffer_new(b->dev, COMPARED, &both[i], err);
        if (st == KOPT_OK)
            st = kp_buffer_write(b->dev, both[i], 0, x, COMPARED, err);
    }
    if (st == KOPT_OK)
        st = compare_buffers(b, "kopt, equal", both, err);
    for (size_t i = 0; i < n && st == KOPT_OK; i++)
        y[i] = nextafterf(x[i], 4);
    if (st == KOPT_OK)
        st = kp_buffer_write(b->dev, both[0], 0, y, COMPARED, err);
    if (st == KOPT_OK)
        st = compare_buffers(b, "kopt, all off by the last bit", both, err);
    for (int i = 0; i < 2; i++)
        kp_buffer_free(b->dev, both[i]);
    kp_free(x);
    kp_free(y);
    return st;
}

/* ---- a session ---- */

static kopt_status bench_session(const struct bench *b, kopt_error *err)
{
    kopt_tune_options o;
    kopt_tuner *tuner = NULL;
    const kopt_tune_report *r = NULL;
    kopt_tune_options_init(&o);
    o.kernel = b->path;
    o.problem = b->problem;
    o.n_problem = b->n_problem;
    o.device = "opencl:0";
    o.strategy = "random";
    o.max_evaluations = MEASUREMENTS;
    o.race = 1;
    kopt_status st = kopt_tuner_new(&o, &tuner, err);
    if (st == KOPT_OK)
        st = kopt_tuner_run(tuner, &r, err);
    if (st == KOPT_OK) {
        double n = (double)r->progress.done;
        double load_ms = 1e3 * r->split.load_s / n;
        double check_ms = 1e3 * r->split.check_s / n;
        if (b->json)
            (void)printf("{\"type\":\"session\",\"measurements\":%.0f,\"overhead_ms\":%.4f,"
                         "\"load_ms\":%.4f,\"check_ms\":%.4f}\n",
                         n, r->split.overhead_ms, load_ms, check_ms);
        else
            (void)printf("\n%-30s %9s %14s %9s\n%-30.0f %9.3f %14.3f %9.3f\n",
                         "session, ms a measurement", "overhead", "of it loading", "checking",
                         n, r->split.overhead_ms, load_ms, check_ms);
    }
    kopt_tuner_free(tuner);
    return st;
}

/* ---- the whole ---- */

static kopt_status open_all(struct bench *b, kopt_error *err)
{
    kopt_status st = kp_kernel_load(b->path, true, &b->kernel, err);
    if (st == KOPT_OK)
        st = kp_runtime_open(KP_BACKEND_OPENCL, NULL, &b->rt, err);
    if (st == KOPT_OK)
        st = kp_device_open(b->rt, 0, &b->dev, err);
    if (st == KOPT_OK)
        st = kp_compiler_open(KP_BACKEND_OPENCL, 0, NULL, NULL, &b->compiler, err);
    if (st == KOPT_OK)
        st = kp_kernel_bind(b->kernel, b->problem, b->n_problem,
                            &kp_device_info(b->dev)->limits, &b->bound, err);
    if (st == KOPT_OK)
        st = kp_cl_lib_open(&b->lib, NULL, err);
    if (st == KOPT_OK)
        st = kp_cl_session_open(&b->cl, &b->lib, 0, err);
    return st;
}

static void close_all(struct bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        image_deinit(&b->images[i]);
    kp_cl_session_close(&b->cl);
    kp_cl_lib_close(&b->lib);
    kp_bound_free(b->bound);
    kp_compiler_close(b->compiler);
    kp_device_close(b->dev);
    kp_runtime_close(b->rt);
    kp_kernel_free(b->kernel);
    b->n = 0;
}

static kopt_status run(struct bench *b, kopt_error *err)
{
    kopt_status st = open_all(b, err);
    if (st == KOPT_OK)
        st = make_images(b, err);
    if (st == KOPT_OK && !b->json)
        (void)printf("%s, %s: %zu images, %d rounds\n\n", kp_device_info(b->dev)->name,
                     b->kernel->name, b->n, ROUNDS);
    if (st == KOPT_OK)
        st = bench_load(b, err);
    if (st == KOPT_OK)
        st = bench_compare(b, err);
    close_all(b);
    return st == KOPT_OK ? bench_session(b, err) : st;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    int first = json ? 2 : 1;
    kopt_error err = {0};
    char *cache = NULL;
    if (argc <= first || argv[first][0] == '-') {
        (void)fprintf(stderr, "usage: bench_load [--json] KERNEL.cl [NAME=VALUE ..]\n");
        return 2;
    }
    static struct bench b;
    b.json = json;
    b.path = argv[first];
    b.problem = (const char *const *)argv + first + 1;
    b.n_problem = (size_t)(argc - first - 1);
    kopt_status st = kp_dir_temp("kopt-bench-", &cache, &err);
    if (st == KOPT_OK && setenv("POCL_CACHE_DIR", cache, 1) != 0)
        st = kp_err_nomem(&err);
    if (st == KOPT_OK)
        st = run(&b, &err);
    if (st != KOPT_OK)
        (void)fprintf(stderr, "bench_load: %s\n", err.message);
    if (cache)
        kp_dir_remove(cache);
    kp_free(cache);
    return st == KOPT_OK ? 0 : 1;
}
