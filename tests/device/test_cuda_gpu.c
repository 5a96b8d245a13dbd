/* SPDX-License-Identifier: MIT */
/* What only a GPU can show: times, large shared memory, faults, memory, sensors. Exit 77
 * without one. Figures that a person may want to see go to stdout.
 *
 * A fault ends CUDA for its process, so each is made in a process of its own: this program with
 * the fault's name as its argument. */
#include "support.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "os/clock.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IMAGE_MAX = 64 << 20 };

static struct kp_runtime *RT;
static struct kp_compiler *COMPILER;
static struct kp_device *DEV;

static struct kp_module *build(const char *source, const char *entry)
{
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_compile_job job = {
        .source = kp_str_from(source), .path = "gpu.cu", .entry = entry};
    struct kp_module *m = NULL;
    OK(kp_compile(COMPILER, &job, &image, NULL, &ERR));
    OK(kp_module_load(DEV, image.ptr, image.len, entry, NULL, &m, &ERR));
    kp_buf_deinit(&image);
    return m;
}

/* A flush of the whole cache. */
#define CACHE ((size_t)kp_device_info(DEV)->limits.l2_bytes)

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, size_t n)
{
    qsort(t, n, sizeof(*t), by_size);
    return t[n / 2];
}

/* --- the device -----------------------------------------------------------------------------
 */

static void the_device_says_what_it_is(void **state)
{
    const struct kp_device_info *info = kp_device_info(DEV);
    (void)state;
    (void)printf("%s, %s, %s, %s, %s\n", info->name, info->arch, info->driver, info->compiler,
                 info->id);
    (void)printf("%lld units, %lld KiB shared, %lld MiB L2, %lld MiB, %lld kHz\n",
                 (long long)info->limits.compute_units,
                 (long long)info->limits.shared_bytes >> 10,
                 (long long)info->limits.l2_bytes >> 20,
                 (long long)info->limits.global_bytes >> 20, (long long)info->limits.clock_khz);
    int cc = 0;
    assert_int_equal(sscanf(info->arch, "sm_%d", &cc), 1);
    assert_int_equal(cc, info->limits.cc);
    assert_int_equal(strncmp(info->driver, "driver ", 7), 0);
    assert_has(info->driver, "CUDA ");
    assert_int_equal(strncmp(info->compiler, "NVRTC ", 6), 0);
    assert_true(strlen(info->id) >= 12);
    assert_true(info->limits.l2_bytes > 0 && info->limits.clock_khz > 0);
    assert_int_equal(info->limits.warp, 32);
    assert_true(info->limits.shared_bytes >= 48 << 10);
}

static void sensors_are_read(void **state)
{
    struct kp_sensors before;
    struct kp_sensors s;
    (void)state;
    kp_device_sensors(DEV, &before);
    if (isnan(before.power_w) && isnan(before.temp_c)) {
        (void)printf("no NVML, or a part of a GPU that it does not measure\n");
        skip();
    }
    kp_clock_sleep_ns(300 * 1000000LL);
    kp_device_sensors(DEV, &s);
    (void)printf(
        "%.1f W, %.0f C, SM %.0f MHz, memory %.0f MHz, %.2f J in 0.3 s, reasons %llx\n",
        s.power_w, s.temp_c, s.sm_mhz, s.mem_mhz, s.energy_j - before.energy_j,
        (unsigned long long)s.throttle);
    assert_true(s.power_w > 1 && s.power_w < 5000);
    assert_true(s.temp_c > 0 && s.temp_c < 150);
    assert_true(s.sm_mhz > 50 && s.sm_mhz < 10000);
    assert_true(s.mem_mhz > 50 && s.mem_mhz < 50000);
    /* 0.3 s at 1 to 5000 W; the counter may be updated every 100 ms only */
    if (!isnan(s.energy_j))
        assert_true(s.energy_j - before.energy_j > 0.1 && s.energy_j - before.energy_j < 3000);
}

/* --- times ----------------------------------------------------------------------------------
 */

static void a_known_duration_is_measured(void **state)
{
    /* the GPU's own nanoseconds, which it may count in steps of a microsecond */
    struct kp_module *m =
        build("__global__ void spin(unsigned long long ns) {\n"
              "  unsigned long long begin, now;\n"
              "  asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(begin));\n"
              "  do asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(now));\n"
              "  while (now - begin < ns); }\n",
              "spin");
    double t[20];
    uint64_t ns = 200000;
    struct kp_launch_arg args[] = {VALUE(ns)};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args, .n_args = 1};
    struct kp_run run = {.launch = &l, .n = 20, .times_ns = t};
    (void)state;
    for (int flush = 0; flush < 2; flush++) {
        run.flush_bytes = flush ? CACHE : 0;
        OK(kp_module_run(DEV, m, &run, &ERR));
        double mid = median(t, 20);
        (void)printf("a kernel of 200 us %s: %.2f to %.2f us, median %.2f\n",
                     flush ? "after a flush" : "without a flush", t[0] / 1e3, t[19] / 1e3,
                     mid / 1e3);
        /* some microseconds for starting and ending, and the timer's steps */
        assert_true(mid > 195e3 && mid < 220e3);
    }
    kp_module_unload(DEV, m);
}

static void an_empty_kernel_is_short(void **state)
{
    struct kp_module *m = build("__global__ void empty() { }\n", "empty");
    double t[300];
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    struct kp_run run = {.launch = &l, .n = 300, .times_ns = t};
    (void)state;
    OK(kp_module_run(DEV, m, &run, &ERR)); /* which makes the delay kernel, too */
    int64_t begin = kp_clock_ns();
    OK(kp_module_run(DEV, m, &run, &ERR));
    int64_t wall = kp_clock_ns() - begin;
    double mid = median(t, 300);
    (void)printf("an empty kernel: %.2f to %.2f us, median %.2f; %.1f us of wall time each\n",
                 t[0] / 1e3, t[299] / 1e3, mid / 1e3, (double)wall / 300e3);
    /* the host needs several microseconds for a launch: they must not be in it */
    assert_true(t[0] > 0 && mid < 10e3);
    kp_module_unload(DEV, m);
}

static void a_copy_runs_at_a_bandwidth_that_memory_can_have(void **state)
{
    const size_t bytes = (size_t)512 << 20;
    struct kp_module *m =
        build("__global__ void copy(const float4 *a, float4 *b, unsigned n) {\n"
              "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "  if (i < n) b[i] = a[i]; }\n",
              "copy");
    struct kp_buffer *a;
    struct kp_buffer *b;
    struct kp_compare cmp;
    uint32_t n = (uint32_t)(bytes / 16);
    double t[20];
    (void)state;
    OK(kp_buffer_new(DEV, bytes, &a, &ERR));
    OK(kp_buffer_new(DEV, bytes, &b, &ERR));
    OK(kp_buffer_fill(DEV, a, 0x3C, &ERR));
    struct kp_launch_arg args[] = {global(a), global(b), VALUE(n)};
    const struct kp_launch l = {
        .grid = {(n + 255) / 256, 1, 1}, .block = {256, 1, 1}, .args = args, .n_args = 3};
    const struct kp_restore poison = {.dst = b};
    const struct kp_run run = {.launch = &l,
                               .restore = &poison,
                               .n_restore = 1,
                               .flush_bytes = CACHE,
                               .n = 20,
                               .times_ns = t};
    OK(kp_module_run(DEV, m, &run, &ERR));
    double mid = median(t, 20);
    double gb_s = 2 * (double)bytes / mid;
    (void)printf("copying %zu MiB: %.1f to %.1f us, median %.1f: %.0f GB/s\n", bytes >> 20,
                 t[0] / 1e3, t[19] / 1e3, mid / 1e3, gb_s);
    /* between a slow GPU and several times the fastest */
    assert_true(gb_s > 100 && gb_s < 25000);

    OK(kp_buffer_compare(DEV, b, a, KP_NUM_F32, 0, 0, &cmp, &ERR)); /* makes the kernel */
    int64_t begin = kp_clock_ns();
    OK(kp_buffer_compare(DEV, b, a, KP_NUM_F32, 0, 0, &cmp, &ERR));
    int64_t wall = kp_clock_ns() - begin;
    (void)printf("comparing them: %.1f us of wall time, %.0f GB/s\n", (double)wall / 1e3,
                 2 * (double)bytes / (double)wall);
    assert_int_equal(cmp.n, bytes / 4);
    assert_int_equal(cmp.n_bad, 0);
    assert_true(2 * (double)bytes / (double)wall > 20); /* a host's memory would be slower */
    kp_buffer_free(DEV, a);
    kp_buffer_free(DEV, b);
    kp_module_unload(DEV, m);
}

static int64_t started_at;

static void note_started(void *user)
{
    (void)user;
    started_at = kp_clock_ns();
}

static void the_start_is_announced_while_the_kernel_runs(void **state)
{
    struct kp_module *m = build("__global__ void busy(long long cycles) {\n"
                                "  long long begin = clock64();\n"
                                "  while (clock64() - begin < cycles) ; }\n",
                                "busy");
    int64_t cycles = kp_device_info(DEV)->limits.clock_khz * 200; /* 200 ms at full clock */
    struct kp_launch_arg args[] = {VALUE(cycles)};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args, .n_args = 1};
    double t[2];
    const struct kp_run run = {.launch = &l, .n = 2, .times_ns = t, .started = note_started};
    (void)state;
    started_at = 0;
    OK(kp_module_run(DEV, m, &run, &ERR));
    int64_t end = kp_clock_ns();
    assert_true(started_at != 0);
    /* both launches were still to run, or running: 400 ms, of which 100 may have been lost */
    assert_true(end - started_at > 300 * 1000000LL);
    assert_true(t[0] > 150e6 && t[1] > 150e6);
    kp_module_unload(DEV, m);
}

/* --- launches -------------------------------------------------------------------------------
 */

static void templates_run_and_arguments_are_checked(void **state)
{
    struct kp_module *m = build("template <class T, int N> __global__ void add(T *x, T y) {\n"
                                "  x[threadIdx.x] += y * N; }\n",
                                "add<double, 3>");
    double x[64];
    double t;
    double y = 0.5;
    float wrong = 1;
    struct kp_buffer *b;
    (void)state;
    for (int i = 0; i < 64; i++)
        x[i] = i;
    OK(kp_buffer_new(DEV, sizeof(x), &b, &ERR));
    OK(kp_buffer_write(DEV, b, 0, x, sizeof(x), &ERR));
    struct kp_launch_arg args[] = {global(b), VALUE(y), VALUE(y)};
    struct kp_launch l = {.grid = {1, 1, 1}, .block = {64, 1, 1}, .args = args, .n_args = 2};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &t};
    OK(kp_module_run(DEV, m, &run, &ERR));
    OK(kp_buffer_read(DEV, b, 0, x, sizeof(x), &ERR));
    for (int i = 0; i < 64; i++)
        assert_true(x[i] == i + 1.5);

    l.n_args = 3;
    kopt_status more = kp_module_run(DEV, m, &run, &ERR);
    l.n_args = 2;
    args[1] = VALUE(wrong);
    kopt_status size = kp_module_run(DEV, m, &run, &ERR);
    (void)printf("a wrong number of arguments: %d, a wrong size: %d\n", (int)more, (int)size);
    /* drivers before CUDA 12.4 do not tell what a kernel takes */
    int major = 0;
    int minor = 0;
    const char *at = strstr(kp_device_info(DEV)->driver, "CUDA ");
    assert_int_equal(sscanf(at, "CUDA %d.%d", &major, &minor), 2);
    if (major > 12 || (major == 12 && minor >= 4)) {
        assert_int_equal(more, KOPT_EINPUT);
        assert_int_equal(size, KOPT_EINPUT);
    }
    kp_buffer_free(DEV, b);
    kp_module_unload(DEV, m);
}

static void many_launches_all_happen(void **state)
{
    struct kp_module *m =
        build("__global__ void count(int *n) { atomicAdd(n, 1); }\n", "count");
    double t[700];
    int32_t n = 0;
    struct kp_buffer *b;
    (void)state;
    OK(kp_buffer_new(DEV, sizeof(n), &b, &ERR));
    OK(kp_buffer_fill(DEV, b, 0, &ERR));
    struct kp_launch_arg args[] = {global(b)};
    const struct kp_launch l = {
        .grid = {2, 3, 1}, .block = {8, 1, 2}, .args = args, .n_args = 1};
    const struct kp_run run = {.launch = &l, .n = 700, .times_ns = t};
    OK(kp_module_run(DEV, m, &run, &ERR));
    OK(kp_buffer_read(DEV, b, 0, &n, sizeof(n), &ERR));
    assert_int_equal(n, 700 * 6 * 16);
    for (int i = 0; i < 700; i++)
        assert_true(t[i] > 0);
    kp_buffer_free(DEV, b);
    kp_module_unload(DEV, m);
}

static void all_of_shared_memory_can_be_used(void **state)
{
    struct kp_module *m =
        build("extern __shared__ int s[];\n"
              "__global__ void reverse(int *out, int n) {\n"
              "  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = 3 * i;\n"
              "  __syncthreads();\n"
              "  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = s[n - 1 - i]; }\n",
              "reverse");
    size_t most = (size_t)kp_device_info(DEV)->limits.shared_bytes;
    int32_t *out = kp_calloc(most, 1);
    struct kp_buffer *b;
    double t;
    (void)state;
    assert_non_null(out);
    OK(kp_buffer_new(DEV, most, &b, &ERR));
    const size_t sizes[] = {1024, 48 << 10, (48 << 10) + 4, most < 100 << 10 ? most : 100 << 10,
                            most};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        int32_t n = (int32_t)(sizes[k] / 4);
        struct kp_launch_arg args[] = {global(b), VALUE(n)};
        const struct kp_launch l = {.grid = {1, 1, 1},
                                    .block = {256, 1, 1},
                                    .shared_bytes = (uint32_t)sizes[k],
                                    .args = args,
                                    .n_args = 2};
        const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &t};
        OK(kp_buffer_fill(DEV, b, 0xFF, &ERR));
        OK(kp_module_run(DEV, m, &run, &ERR));
        OK(kp_buffer_read(DEV, b, 0, out, sizes[k], &ERR));
        for (int i = 0; i < n; i++)
            assert_int_equal(out[i], 3 * (n - 1 - i));
    }
    const struct kp_launch over = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = (uint32_t)most + 4};
    const struct kp_run run = {.launch = &over, .n = 1, .times_ns = &t};
    assert_int_equal(kp_module_run(DEV, m, &run, &ERR), KOPT_ERANGE);
    kp_free(out);
    kp_buffer_free(DEV, b);
    kp_module_unload(DEV, m);
}

static void too_many_registers_are_refused(void **state)
{
    /* 96 values that are all alive around a loop */
    struct kp_module *m =
        build("__global__ void many(float *a, int n) { float x[96];\n"
              "#pragma unroll\n"
              "  for (int i = 0; i < 96; i++) x[i] = a[i * 1024 + threadIdx.x];\n"
              "  for (int k = 0; k < n; k++) {\n"
              "#pragma unroll\n"
              "    for (int i = 0; i < 96; i++) x[i] = x[i] * x[(i + 17) % 96] + 1;\n"
              "  }\n"
              "#pragma unroll\n"
              "  for (int i = 0; i < 96; i++) a[i * 1024 + threadIdx.x] = x[i]; }\n",
              "many");
    const struct kp_module_info *info = kp_module_get_info(m);
    double t;
    (void)state;
    (void)printf("many: %lld registers, %lld bytes local, %lld threads\n",
                 (long long)info->registers, (long long)info->local_bytes,
                 (long long)info->max_threads);
    assert_true(info->registers > 64 && info->max_threads < 1024);
    struct kp_buffer *a = NULL;
    OK(kp_buffer_new(DEV, (size_t)96 * 1024 * sizeof(float), &a, &ERR));
    const int n = 3;
    const struct kp_launch_arg args[] = {
        {.space = KP_SPACE_GLOBAL, .buffer = a},
        {.space = KP_SPACE_VALUE, .value = &n, .bytes = sizeof(n)}};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {1024, 1, 1}, .args = args, .n_args = 2};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &t};
    assert_int_equal(kp_module_run(DEV, m, &run, &ERR), KOPT_ERANGE);
    kp_buffer_free(DEV, a);
    kp_module_unload(DEV, m);
}

static void an_image_for_another_gpu_is_refused(void **state)
{
    static const char *const OTHERS[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
    (void)state;
    int tried = 0;
    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++) {
        struct kp_compiler *c;
        struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
        struct kp_module *m = NULL;
        const struct kp_compile_job job = {.source = KP_STR("__global__ void k() { }\n"),
                                           .entry = "k"};
        /* another major version never runs */
        if (strncmp(OTHERS[i], kp_device_info(DEV)->arch, strlen(OTHERS[i]) - 1) == 0 ||
            kp_compiler_open(KP_BACKEND_CUDA, 0, OTHERS[i], NULL, &c, &ERR) != KOPT_OK)
            continue;
        OK(kp_compile(c, &job, &image, NULL, &ERR));
        assert_int_equal(kp_module_load(DEV, image.ptr, image.len, "k", NULL, &m, &ERR),
                         KOPT_EDEVICE);
        if (tried++ == 0)
            (void)printf("%s; %s\n", ERR.message, ERR.hint);
        kp_buf_deinit(&image);
        kp_compiler_close(c);
    }
    assert_true(tried > 0);
}

/* --- memory ---------------------------------------------------------------------------------
 */

static void too_much_memory_is_told_and_does_no_harm(void **state)
{
    struct kp_buffer *b;
    uint64_t free_bytes;
    uint64_t total;
    char text[4] = "";
    (void)state;
    kp_device_memory(DEV, &free_bytes, &total);
    assert_true(free_bytes > 0 && free_bytes < total);
    /* all of it cannot be had: the context itself needs some */
    size_t all = (size_t)kp_device_info(DEV)->limits.global_bytes;
    assert_int_equal(kp_buffer_new(DEV, all, &b, &ERR), KOPT_EFULL);
    assert_null(b);
    (void)printf("%s\n", ERR.message);
    assert_has(ERR.message, "bytes wanted");
    OK(kp_buffer_new(DEV, 4, &b, &ERR));
    OK(kp_buffer_write(DEV, b, 0, "yes", 4, &ERR));
    OK(kp_buffer_read(DEV, b, 0, text, 4, &ERR));
    assert_string_equal(text, "yes");
    kp_buffer_free(DEV, b);
}

/* --- comparing ------------------------------------------------------------------------------
 */

static void the_device_compares_as_the_host_does(void **state)
{
    enum { BYTES = 1 << 22 };
    unsigned char *got = kp_calloc(BYTES, 1);
    unsigned char *want = kp_calloc(BYTES, 1);
    struct kp_buffer *dg;
    struct kp_buffer *dw;
    struct kp_rng rng;
    (void)state;
    assert_true(got && want);
    kp_rng_init(&rng, 3);
    OK(kp_buffer_new(DEV, BYTES, &dg, &ERR));
    OK(kp_buffer_new(DEV, BYTES, &dw, &ERR));
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        struct kp_compare device;
        struct kp_compare host;
        size_t n = BYTES / kp_number_bytes((enum kp_number)type);
        for (size_t i = 0; i < BYTES; i += 8) { /* all bit patterns, NaN and infinities too */
            uint64_t bits = kp_rng_u64(&rng);
            uint64_t other = kp_rng_below(&rng, 16) ? bits : kp_rng_u64(&rng);
            memcpy(want + i, &bits, 8);
            memcpy(got + i, &other, 8);
        }
        OK(kp_buffer_write(DEV, dg, 0, got, BYTES, &ERR));
        OK(kp_buffer_write(DEV, dw, 0, want, BYTES, &ERR));
        OK(kp_buffer_compare(DEV, dg, dw, (enum kp_number)type, 1e-3, 1e-3, &device, &ERR));
        kp_compare_host(got, want, n, (enum kp_number)type, 1e-3, 1e-3, &host);
        assert_int_equal(device.n, host.n);
        assert_int_equal(device.n_bad, host.n_bad);
        assert_int_equal(device.n_nan, host.n_nan);
        assert_int_equal(device.first, host.first);
        assert_memory_equal(&device.got, &host.got, sizeof(double));
        assert_memory_equal(&device.want, &host.want, sizeof(double));
        /* one side may take differences in single precision: 2^-24 */
        assert_true(device.max_error == host.max_error ||
                    fabs(device.max_error - host.max_error) <= 0x1p-23 * host.max_error);
    }
    kp_buffer_free(DEV, dg);
    kp_buffer_free(DEV, dw);
    kp_free(got);
    kp_free(want);
}

/* --- faults, in a process of their own ------------------------------------------------------
 */

static const struct fault {
    const char *name;
    const char *source;
    const char *error; /* the driver's name of it; NULL = any */
} FAULTS[] = {
    {"address", "__global__ void bad(int *p) { p[1ull << 38] = 1; }\n",
     "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {"alignment", "__global__ void bad(int *p) { *(int *)((char *)p + 1) = 1; }\n",
     "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {"trap", "__global__ void bad(int *p) { p[0] = 1; __trap(); }\n", NULL},
    {"assert", "__global__ void bad(int *p) { assert(p == nullptr); }\n", "CUDA_ERROR_ASSERT"}};

enum { N_FAULTS = sizeof(FAULTS) / sizeof(FAULTS[0]) };

/* 0 when all is as it should be, else what was wrong. */
static int make_fault(const struct fault *f)
{
    struct kp_module *m = build(f->source, "bad");
    struct kp_buffer *b;
    double t[3];
    char byte;
    OK(kp_buffer_new(DEV, 64, &b, &ERR));
    struct kp_launch_arg args[] = {global(b)};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {32, 1, 1}, .args = args, .n_args = 1};
    const struct kp_run run = {
        .launch = &l, .n = 3, .times_ns = t, .flush_bytes = CACHE, .started = note_started};
    kopt_status st = kp_module_run(DEV, m, &run, &ERR);
    (void)printf("%s: status %d: %s\n", f->name, (int)st, ERR.message);
    if (st != KOPT_EDEVICE || !strstr(ERR.message, "during launch of bad"))
        return 1;
    if (f->error && !strstr(ERR.message, f->error))
        return 2;
    st = kp_buffer_read(DEV, b, 0, &byte, 1, &ERR);
    (void)printf("and then: status %d: %s\n", (int)st, ERR.message);
    if (st != KOPT_EDEVICE)
        return 3;
    st = kp_module_run(DEV, m, &run, &ERR);
    if (st != KOPT_EDEVICE)
        return 4;
    kp_buffer_free(DEV, b);
    kp_module_unload(DEV, m);
    kp_device_close(DEV);
    kp_compiler_close(COMPILER);
    kp_runtime_close(RT);
    return 0;
}

/* Local memory for all threads that the device can hold: refused as a limit or granted. */
static int much_local_memory(void)
{
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    const struct kp_compile_job job = {
        .source = KP_STR("__global__ void big(float *a) { float x[120000];\n"
                         "  for (int i = 0; i < 120000; i++) x[i] = a[i & 15];\n"
                         "  a[0] = x[threadIdx.x + (int)a[3]]; }\n"),
        .entry = "big"};
    struct kp_module *m = NULL;
    struct kp_buffer *b = NULL;
    double t;
    OK(kp_compile(COMPILER, &job, &image, NULL, &ERR));
    OK(kp_buffer_new(DEV, 64, &b, &ERR));
    OK(kp_buffer_fill(DEV, b, 0, &ERR));
    ERR.message[0] = 0;
    kopt_status st = kp_module_load(DEV, image.ptr, image.len, "big", NULL, &m, &ERR);
    const char *where = "loading";
    struct kp_launch_arg args[] = {global(b)};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args, .n_args = 1};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &t};
    if (st == KOPT_OK) {
        st = kp_module_run(DEV, m, &run, &ERR);
        where = "running";
    }
    (void)printf("480,000 bytes of local memory a thread, %s: status %d: %s\n", where, (int)st,
                 ERR.message);
    char byte;
    kopt_status after = kp_buffer_read(DEV, b, 0, &byte, 1, &ERR);
    return (st == KOPT_OK || st == KOPT_ERANGE) && after == KOPT_OK ? 0 : 1;
}

static int run_self(const char *what)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/proc/self/exe", "test_cuda_gpu", what, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (!WIFEXITED(status))
        fail_msg("%s: ended by signal %d", what, WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void faults_are_told_and_leave_the_device_unusable(void **state)
{
    (void)state;
    for (int i = 0; i < N_FAULTS; i++)
        assert_int_equal(run_self(FAULTS[i].name), 0);
}

static void much_local_memory_is_a_limit_or_granted(void **state)
{
    (void)state;
    assert_int_equal(run_self("local"), 0);
}

/* --------------------------------------------------------------------------------------------
 */

static int open_all(void **state)
{
    (void)state;
    if (kp_compiler_open(KP_BACKEND_CUDA, 0, NULL, NULL, &COMPILER, &ERR) != KOPT_OK ||
        kp_device_open(RT, 0, &DEV, &ERR) != KOPT_OK) {
        (void)fprintf(stderr, "%s\n", ERR.message);
        return -1;
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    kp_device_close(DEV);
    kp_compiler_close(COMPILER);
    kp_runtime_close(RT);
    return 0;
}

static int run_alone(const char *what)
{
    if (open_all(NULL) != 0)
        return 100;
    if (strcmp(what, "local") == 0)
        return much_local_memory();
    for (int i = 0; i < N_FAULTS; i++) {
        if (strcmp(what, FAULTS[i].name) == 0)
            return make_fault(&FAULTS[i]);
    }
    return 101;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_says_what_it_is),
        cmocka_unit_test(sensors_are_read),
        cmocka_unit_test(a_known_duration_is_measured),
        cmocka_unit_test(an_empty_kernel_is_short),
        cmocka_unit_test(a_copy_runs_at_a_bandwidth_that_memory_can_have),
        cmocka_unit_test(the_start_is_announced_while_the_kernel_runs),
        cmocka_unit_test(templates_run_and_arguments_are_checked),
        cmocka_unit_test(many_launches_all_happen),
        cmocka_unit_test(all_of_shared_memory_can_be_used),
        cmocka_unit_test(too_many_registers_are_refused),
        cmocka_unit_test(an_image_for_another_gpu_is_refused),
        cmocka_unit_test(too_much_memory_is_told_and_does_no_harm),
        cmocka_unit_test(the_device_compares_as_the_host_does),
        cmocka_unit_test(faults_are_told_and_leave_the_device_unusable),
        cmocka_unit_test(much_local_memory_is_a_limit_or_granted),
    };
    kopt_status st = kp_runtime_open(KP_BACKEND_CUDA, NULL, &RT, &ERR);
    if (st != KOPT_OK) {
        (void)printf("skipped: %s\n", ERR.message);
        return 77;
    }
    if (argc > 1)
        return run_alone(argv[1]);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
