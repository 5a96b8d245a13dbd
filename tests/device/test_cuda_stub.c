/* SPDX-License-Identifier: MIT */
/* The CUDA back end over a driver that computes nothing: opening, memory, the order of what is
 * enqueued, errors of every call, lost devices, sensors. No GPU and no NVRTC is needed. */
#include "cuda_stub.h"
#include "support.h"

#include "base/alloc.h"
#include "device/cuda/image.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

static struct cuda_stub *STUB;
static const char *NVRTC_OFF = "/no/such/libnvrtc.so";

/* As after loading, with a trace that is empty. */
static void reset_stub(void)
{
    STUB->init_rc = 0;
    STUB->version = 13000;
    STUB->n_devices = 2;
    STUB->memory_bytes = 1 << 30;
    STUB->fail_call = NULL;
    STUB->fault_rc = 0;
    STUB->max_dynamic = 49152;
    STUB->static_shared = 0;
    STUB->n_params = 0;
    STUB->pci_id = "0000:19:00.0";
    STUB->trace_len = 0;
    STUB->trace[0] = 0;
}

static void clear_trace(void)
{
    STUB->trace_len = 0;
    STUB->trace[0] = 0;
}

static void fail_next(const char *call, int at, int rc)
{
    STUB->fail_call = call;
    STUB->fail_at = at;
    STUB->fail_rc = rc;
}

static int setup(void **state)
{
    (void)state;
    reset_stub();
    return setenv("KOPT_CUDA_LIBRARY", CUDA_STUB, 1) |
           setenv("KOPT_NVML_LIBRARY", CUDA_STUB, 1) |
           setenv("KOPT_NVRTC_LIBRARY", NVRTC_OFF, 1) | unsetenv("CUDA_VISIBLE_DEVICES");
}

static int teardown(void **state)
{
    (void)state;
    if (STUB->n_alive != 0 || STUB->used_bytes != 0) {
        (void)fprintf(stderr, "%d objects and %zu bytes were not given back\n", STUB->n_alive,
                      STUB->used_bytes);
        return -1;
    }
    return 0;
}

/* --- opening --------------------------------------------------------------------------------
 */

static kopt_status open_runtime(void)
{
    struct kp_runtime *rt;
    kopt_status st = kp_runtime_open(KP_BACKEND_CUDA, NULL, &rt, &ERR);
    if (st == KOPT_OK)
        kp_runtime_close(rt);
    else
        assert_null(rt);
    return st;
}

static void a_missing_library_is_told_with_what_to_install(void **state)
{
    (void)state;
    assert_int_equal(setenv("KOPT_CUDA_LIBRARY", "/no/such/libcuda.so.1", 1), 0);
    assert_int_equal(open_runtime(), KOPT_EENV);
    assert_has(ERR.message, "CUDA driver: ");
    assert_has(ERR.message, "/no/such/libcuda.so.1");
    assert_has(ERR.hint, "install NVIDIA's driver");
}

static void a_missing_function_is_named(void **state)
{
    (void)state;
    assert_int_equal(setenv("KOPT_CUDA_LIBRARY", CUDA_STUB_WITHOUT_LAUNCH, 1), 0);
    assert_int_equal(open_runtime(), KOPT_EENV);
    assert_has(ERR.message, "has no function cuLaunchKernel");
    assert_has(ERR.message, CUDA_STUB_WITHOUT_LAUNCH);
    assert_int_equal(setenv("KOPT_CUDA_LIBRARY", "libm.so.6", 1), 0);
    assert_int_equal(open_runtime(), KOPT_EENV);
    assert_has(ERR.message, "libm.so.6 has no function cuInit");
}

static void an_old_driver_is_refused(void **state)
{
    (void)state;
    STUB->version = 11010;
    assert_int_equal(open_runtime(), KOPT_EENV);
    assert_has(ERR.message, "is for CUDA 11.1, kopt needs 11.2 or later");
    STUB->version = 11020;
    OK(open_runtime());
}

static void what_the_driver_refuses_is_told(void **state)
{
    (void)state;
    STUB->init_rc = 100;
    assert_int_equal(open_runtime(), KOPT_EDEVICE);
    assert_has(ERR.message, "CUDA_ERROR_NO_DEVICE");
    assert_has(ERR.hint, "nvidia-smi");
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "7", 1), 0);
    assert_int_equal(open_runtime(), KOPT_EDEVICE);
    assert_has(ERR.hint, "CUDA_VISIBLE_DEVICES is \"7\"");
    STUB->init_rc = 4711;
    assert_int_equal(open_runtime(), KOPT_EDEVICE);
    assert_has(ERR.message, "CUDA error 4711");
    STUB->init_rc = 0;
    fail_next("cuDeviceGetCount", 1, 100);
    assert_int_equal(open_runtime(), KOPT_EDEVICE);
}

static void devices_say_what_they_are(void **state)
{
    struct kp_runtime *rt;
    struct kp_device_info info;
    (void)state;
    OK(kp_runtime_open(KP_BACKEND_CUDA, NULL, &rt, &ERR));
    assert_int_equal(kp_runtime_n_devices(rt), 2);
    OK(kp_runtime_info(rt, 1, &info, &ERR));
    assert_string_equal(info.name, "Stub 1");
    assert_string_equal(info.arch, "sm_90");
    assert_string_equal(info.id, "0000:20:00.0");
    assert_string_equal(info.compiler, ""); /* there is no NVRTC */
    assert_int_equal(strncmp(info.driver, "driver ", 7), 0);
    assert_has(info.driver, "(CUDA 13.0)");
    assert_int_equal(info.limits.shared_bytes, 232448);
    assert_int_equal(info.limits.max_threads, 1024);
    assert_int_equal(info.limits.max_block[2], 64);
    assert_int_equal(info.limits.registers, 65536);
    assert_int_equal(info.limits.warp, 32);
    assert_int_equal(info.limits.compute_units, 132);
    assert_int_equal(info.limits.global_bytes, 1 << 30);
    assert_int_equal(info.limits.cc, 90);
    assert_int_equal(kp_runtime_info(rt, 2, &info, &ERR), KOPT_ENOTFOUND);
    fail_next("cuDeviceGetName", 1, 700);
    assert_int_equal(kp_runtime_info(rt, 0, &info, &ERR), KOPT_EDEVICE);
    kp_runtime_close(rt);
}

static void a_compiler_for_a_device_asks_the_driver(void **state)
{
    struct kp_compiler *c;
    (void)state;
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 2, NULL, NULL, &c, &ERR),
                     KOPT_ENOTFOUND);
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, NULL, NULL, &c, &ERR), KOPT_EENV);
    assert_has(ERR.message, NVRTC_OFF);
    STUB->init_rc = 100;
    assert_int_equal(kp_compiler_open(KP_BACKEND_CUDA, 0, NULL, NULL, &c, &ERR), KOPT_EDEVICE);
    assert_null(c);
}

/* --- one device -----------------------------------------------------------------------------
 */

struct open_device {
    struct kp_runtime *rt;
    struct kp_device *d;
};

static struct open_device open_device(void)
{
    struct open_device o;
    OK(kp_runtime_open(KP_BACKEND_CUDA, NULL, &o.rt, &ERR));
    OK(kp_device_open(o.rt, 0, &o.d, &ERR));
    return o;
}

static void close_device(struct open_device *o)
{
    kp_device_close(o->d);
    kp_runtime_close(o->rt);
}

static void every_call_that_fails_while_opening_is_clean(void **state)
{
    static const char *const CALLS[] = {"cuDeviceGet", "cuDeviceGetName",
                                        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                        "cuStreamCreate"};
    struct kp_runtime *rt;
    struct kp_device *d;
    (void)state;
    OK(kp_runtime_open(KP_BACKEND_CUDA, NULL, &rt, &ERR));
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
        fail_next(CALLS[i], 1, 46);
        assert_int_equal(kp_device_open(rt, 0, &d, &ERR), KOPT_EDEVICE);
        assert_null(d);
        assert_int_equal(STUB->n_alive, 0);
    }
    kp_runtime_close(rt);
}

static void memory_works_and_its_errors_are_told(void **state)
{
    static const char *const CALLS[] = {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                                        "cuMemsetD8Async"};
    struct open_device o = open_device();
    struct kp_buffer *a;
    struct kp_buffer *b;
    char text[8] = "";
    uint64_t free_bytes;
    uint64_t total;
    (void)state;
    OK(kp_buffer_new(o.d, 8, &a, &ERR));
    OK(kp_buffer_new(o.d, 8, &b, &ERR));
    OK(kp_buffer_write(o.d, a, 2, "abcd", 4, &ERR));
    OK(kp_buffer_read(o.d, a, 1, text, 6, &ERR));
    assert_memory_equal(text, "\0abcd\0", 6);
    OK(kp_buffer_fill(o.d, b, 'x', &ERR));
    OK(kp_buffer_read(o.d, b, 0, text, 8, &ERR));
    assert_memory_equal(text, "xxxxxxxx", 8);
    kp_device_memory(o.d, &free_bytes, &total);
    assert_int_equal(total, 1 << 30);
    assert_int_equal(free_bytes, (1 << 30) - 16);
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
        fail_next(CALLS[i], 1, 1);
        kopt_status st = i == 0   ? kp_buffer_write(o.d, a, 0, text, 8, &ERR)
                         : i == 1 ? kp_buffer_read(o.d, a, 0, text, 8, &ERR)
                                  : kp_buffer_fill(o.d, a, 0, &ERR);
        assert_int_equal(st, KOPT_EDEVICE);
        assert_has(ERR.message, "CUDA error 1 during ");
    }
    kp_buffer_free(o.d, a);
    kp_buffer_free(o.d, b);
    close_device(&o);
}

static void too_little_memory_is_told_with_the_numbers(void **state)
{
    struct open_device o = open_device();
    struct kp_buffer *a;
    struct kp_buffer *b;
    (void)state;
    OK(kp_buffer_new(o.d, 1000, &a, &ERR));
    STUB->memory_bytes = 3000;
    assert_int_equal(kp_buffer_new(o.d, 2001, &b, &ERR), KOPT_EFULL);
    assert_null(b);
    assert_has(ERR.message, "2001 bytes wanted, 2000 of 3000 bytes free on Stub 0");
    STUB->memory_bytes = 1 << 30;
    fail_next("cuMemAlloc_v2", 1, 1);
    assert_int_equal(kp_buffer_new(o.d, 10, &b, &ERR), KOPT_EDEVICE);
    kp_buffer_free(o.d, a);
    close_device(&o);
}

/* --- modules --------------------------------------------------------------------------------
 */

/* An image whose "cubin" is an ELF header, one empty section and the names of its kernels;
 * `flavour` 0xEE is one that the stub refuses. */
static void make_image(struct kp_buf *out, unsigned char flavour)
{
    static const char NAMES[] = "\0_Z1kPf\0other";
    unsigned char elf[64 + 64 + sizeof(NAMES)] = {0x7F, 'E', 'L', 'F', 2, 1, 1, flavour};
    memcpy(elf + 64, NAMES, sizeof(NAMES));
    elf[40] = 64 + sizeof(NAMES); /* section table */
    elf[58] = 64;                 /* size of an entry */
    elf[60] = 1;                  /* entries */
    const struct kp_cuda_image image = {.entry = "k",
                                        .lowered = "_Z1kPf",
                                        .resources = {40, 0, 16},
                                        .cubin = elf,
                                        .cubin_bytes = sizeof(elf)};
    kp_cuda_image_write(&image, out);
    assert_int_equal(kp_buf_status(out, NULL), KOPT_OK);
}

static struct kp_module *load(struct kp_device *d, const char *entry)
{
    struct kp_buf image = KP_BUF_INIT(1 << 20);
    struct kp_module *m = NULL;
    make_image(&image, 0);
    OK(kp_module_load(d, image.ptr, image.len, entry, NULL, &m, &ERR));
    kp_buf_deinit(&image);
    return m;
}

static void modules_tell_what_the_compiler_made(void **state)
{
    struct open_device o = open_device();
    (void)state;
    STUB->static_shared = 1024;
    struct kp_module *m = load(o.d, "k");
    const struct kp_module_info *info = kp_module_get_info(m);
    assert_int_equal(info->registers, 40);
    assert_int_equal(info->shared_bytes, 1024);
    assert_int_equal(info->local_bytes, 16);
    assert_int_equal(info->max_threads, 512);
    kp_module_unload(o.d, m);
    m = load(o.d, "other"); /* not the one that was asked for when compiling, but there */
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void modules_that_cannot_be_loaded_say_why(void **state)
{
    struct open_device o = open_device();
    struct kp_buf image = KP_BUF_INIT(1 << 20);
    struct kp_module *m;
    (void)state;
    make_image(&image, 0);
    assert_int_equal(kp_module_load(o.d, image.ptr, image.len, "nowhere", NULL, &m, &ERR),
                     KOPT_ENOTFOUND);
    assert_null(m);
    fail_next("cuModuleLoadDataEx", 1, 2);
    assert_int_equal(kp_module_load(o.d, image.ptr, image.len, "k", NULL, &m, &ERR),
                     KOPT_ERANGE);
    assert_has(ERR.message, "device memory: not enough for kernel k");
    fail_next("cuModuleGetFunction", 1, 2);
    assert_int_equal(kp_module_load(o.d, image.ptr, image.len, "k", NULL, &m, &ERR),
                     KOPT_ERANGE);
    fail_next("cuModuleGetFunction", 1, 1);
    assert_int_equal(kp_module_load(o.d, image.ptr, image.len, "k", NULL, &m, &ERR),
                     KOPT_EDEVICE);
    kp_buf_clear(&image);
    make_image(&image, 0xEE);
    assert_int_equal(kp_module_load(o.d, image.ptr, image.len, "k", NULL, &m, &ERR),
                     KOPT_EDEVICE);
    assert_has(ERR.message, "k: CUDA_ERROR_INVALID_IMAGE");
    assert_has(ERR.message, "the stub's log");
    assert_has(ERR.hint, "newer than the driver (CUDA 13.0)");
    kp_buf_deinit(&image);
    close_device(&o);
}

static void a_damaged_image_never_reaches_the_driver(void **state)
{
    struct kp_buf image = KP_BUF_INIT(1 << 20);
    struct kp_cuda_image parsed;
    (void)state;
    make_image(&image, 0);
    assert_true(kp_cuda_image_parse(image.ptr, image.len, &parsed));
    assert_string_equal(parsed.lowered, "_Z1kPf");
    assert_int_equal(parsed.resources.registers, 40);
    assert_int_equal(parsed.resources.stack_bytes, 16);
    for (size_t n = 0; n < image.len; n++) { /* copied, so that a read past the end is seen */
        unsigned char *cut = kp_calloc(n + 1, 1);
        assert_non_null(cut);
        memcpy(cut, image.ptr, n);
        unsigned char *exact = n ? kp_realloc(cut, n) : cut;
        assert_false(kp_cuda_image_parse(exact, n, &parsed));
        kp_free(exact);
    }
    for (size_t i = 0; i < image.len; i++) { /* any byte may be anything: it must not crash */
        unsigned char was = image.ptr[i];
        for (int v = 0; v < 256; v += 5) {
            image.ptr[i] = (unsigned char)v;
            if (kp_cuda_image_parse(image.ptr, image.len, &parsed))
                assert_true(strlen(parsed.lowered) < image.len);
        }
        image.ptr[i] = was;
    }
    kp_buf_deinit(&image);
}

/* --- launches -------------------------------------------------------------------------------
 */

static void run_ok(struct kp_device *d, struct kp_module *m, const struct kp_run *run)
{
    clear_trace();
    OK(kp_module_run(d, m, run, &ERR));
}

static void note_started(void *user)
{
    (*(int *)user)++;
    assert_has(STUB->trace, "waitevent;");
}

static void a_run_enqueues_everything_and_waits_once(void **state)
{
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    struct kp_buffer *a;
    struct kp_buffer *b;
    double times[2];
    int started = 0;
    const struct kp_launch l = {.grid = {3, 2, 1}, .block = {32, 4, 1}, .shared_bytes = 64};
    (void)state;
    OK(kp_buffer_new(o.d, 8, &a, &ERR));
    OK(kp_buffer_new(o.d, 8, &b, &ERR));
    const struct kp_restore restore[2] = {{.dst = a, .src = b}, {.dst = b}};
    struct kp_run run = {.launch = &l,
                         .restore = restore,
                         .n_restore = 2,
                         .poison = 0xA5,
                         .flush_bytes = 1000,
                         .n = 2,
                         .times_ns = times};
    run_ok(o.d, m, &run);
    /* to flush the whole cache, which has 1000 bytes, takes twice as many */
    assert_string_equal(STUB->trace,
                        "copy 8;set 8 165;set 2000 0;event;launch _Z1kPf 3x2x1 32x4x1 64;event;"
                        "copy 8;set 8 165;set 2000 1;event;launch _Z1kPf 3x2x1 32x4x1 64;event;"
                        "wait;");
    assert_true(times[0] == 250000 && times[1] == 250000);
    run.poison = 0;
    run.flush_bytes = 1500; /* any other number is meant */
    run_ok(o.d, m, &run);
    assert_has(STUB->trace, "copy 8;set 8 255;set 1500 0;event;");
    run.flush_bytes = 10;
    run_ok(o.d, m, &run);
    assert_has(STUB->trace, "set 10 0;event;");

    run.started = note_started;
    run.user = &started;
    run.n_restore = 0;
    run.flush_bytes = 0;
    run_ok(o.d, m, &run);
    assert_string_equal(STUB->trace, "event;launch _Z1kPf 3x2x1 32x4x1 64;event;waitevent;"
                                     "event;launch _Z1kPf 3x2x1 32x4x1 64;event;wait;");
    assert_int_equal(started, 1);
    kp_buffer_free(o.d, a);
    kp_buffer_free(o.d, b);
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void many_launches_go_in_batches(void **state)
{
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    double times[300] = {0};
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    const struct kp_run run = {.launch = &l, .n = 300, .times_ns = times};
    int waits = 0;
    (void)state;
    run_ok(o.d, m, &run);
    for (int i = 0; i < 300; i++)
        assert_true(times[i] == 250000);
    for (const char *p = STUB->trace; (p = strstr(p, "wait;")); p++)
        waits++;
    assert_int_equal(waits, 3);
    kp_module_unload(o.d, m);
    close_device(&o);
}

/* By a loaded kernel, and when it is loaded for this launch. */
static void refused(struct kp_device *d, struct kp_module *m, const struct kp_launch *l,
                    const char *why)
{
    double time;
    struct kp_module *other;
    struct kp_buf image = KP_BUF_INIT(1 << 20);
    const struct kp_run run = {.launch = l, .n = 1, .times_ns = &time};
    assert_int_equal(kp_module_run(d, m, &run, &ERR), KOPT_EINPUT);
    assert_has(ERR.message, why);
    make_image(&image, 0);
    memset(&ERR, 0, sizeof(ERR));
    assert_int_equal(kp_module_load(d, image.ptr, image.len, "k", l, &other, &ERR),
                     KOPT_EINPUT);
    assert_null(other);
    assert_has(ERR.message, why);
    kp_buf_deinit(&image);
}

static void arguments_arrive_and_are_checked(void **state)
{
    struct open_device o = open_device();
    struct kp_buffer *a;
    double time;
    int32_t n = 1234567;
    (void)state;
    STUB->n_params = 2;
    STUB->param_bytes[0] = 8;
    STUB->param_bytes[1] = 4;
    struct kp_module *m = load(o.d, "k");
    OK(kp_buffer_new(o.d, 8, &a, &ERR));
    struct kp_launch_arg args[3] = {{.space = KP_SPACE_GLOBAL, .bytes = 8, .buffer = a},
                                    {.space = KP_SPACE_VALUE, .value = &n, .bytes = 4}};
    struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args, .n_args = 2};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &time};
    run_ok(o.d, m, &run);
    assert_memory_equal(STUB->args[1], &n, 4);
    uintptr_t address;
    void *content;
    memcpy(&address, STUB->args[0], sizeof(address));
    memcpy(&content, &address, sizeof(content));
    OK(kp_buffer_write(o.d, a, 0, "argument", 8, &ERR));
    assert_memory_equal(content, "argument", 8);

    l.n_args = 1;
    refused(o.d, m, &l, "kernel k has 2 arguments, the launch gives 1");
    l.n_args = 2;
    args[1].bytes = 8;
    refused(o.d, m, &l, "argument 2 of k has 4 bytes in the kernel, 8 are given");
    args[1] = (struct kp_launch_arg){.space = KP_SPACE_SHARED, .bytes = 4};
    refused(o.d, m, &l, "CUDA takes no local memory as argument");
    assert_has(ERR.hint, "extern __shared__");
    kp_buffer_free(o.d, a);
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void much_shared_memory_is_asked_for_once(void **state)
{
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    double time;
    struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = 100000};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &time};
    (void)state;
    run_ok(o.d, m, &run);
    assert_has(STUB->trace, "attribute 8 100000;event;launch _Z1kPf 1x1x1 1x1x1 100000;");
    run_ok(o.d, m, &run);
    assert_null(strstr(STUB->trace, "attribute"));
    l.shared_bytes = 232448;
    fail_next("cuFuncSetAttribute", 1, 1);
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_ERANGE);
    assert_has(ERR.message, "232448");
    l.shared_bytes = 232449;
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_ERANGE);
    assert_has(ERR.message, "232449 of 232448");
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void refused_launches_are_told_apart(void **state)
{
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    double time;
    struct kp_launch l = {.grid = {1, 1, 1}, .block = {512, 1, 1}};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &time};
    (void)state;
    fail_next("cuLaunchKernel", 1, 701);
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_ERANGE);
    assert_has(ERR.message,
               "40 registers of 65536 and 16 bytes of local memory for each of 512 threads");
    fail_next("cuLaunchKernel", 1, 2);
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_ERANGE);
    assert_has(ERR.message, "local memory of 16 bytes for each thread");
    fail_next("cuLaunchKernel", 1, 1);
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_EDEVICE);
    assert_has(ERR.message, "during launch of k");
    assert_true(isnan(time));
    l.grid[1] = 65536;
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_ERANGE);
    assert_has(ERR.message, "grid size y: 65536 of 65535 groups");
    l.grid[1] = 1;
    run_ok(o.d, m, &run); /* nothing of it was for ever */
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void every_call_that_fails_in_a_run_is_told(void **state)
{
    static const char *const CALLS[] = {
        "cuEventCreate",      "cuEventRecord",      "cuMemsetD8Async", "cuMemcpyDtoDAsync_v2",
        "cuEventElapsedTime", "cuEventSynchronize", "cuCtxSetCurrent"};
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    struct kp_buffer *a;
    struct kp_buffer *b;
    double times[3];
    int started = 0;
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    (void)state;
    OK(kp_buffer_new(o.d, 8, &a, &ERR));
    OK(kp_buffer_new(o.d, 8, &b, &ERR));
    const struct kp_restore restore = {.dst = a, .src = b};
    const struct kp_run run = {.launch = &l,
                               .restore = &restore,
                               .n_restore = 1,
                               .flush_bytes = 100,
                               .n = 3,
                               .times_ns = times,
                               .started = note_started,
                               .user = &started};
    for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); i++) {
        for (int at = 1; at <= (i < 4 ? 2 : 1); at++) {
            fail_next(CALLS[i], at, 1);
            assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_EDEVICE);
            assert_has(ERR.message, "CUDA error 1 during ");
        }
    }
    STUB->fail_call = NULL;
    run_ok(o.d, m, &run);
    kp_buffer_free(o.d, a);
    kp_buffer_free(o.d, b);
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void no_room_for_the_flush_is_told(void **state)
{
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    double time;
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct kp_run run = {.launch = &l, .flush_bytes = 5000, .n = 1, .times_ns = &time};
    (void)state;
    STUB->memory_bytes = 4000;
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_EFULL);
    assert_has(ERR.message, "emptying the cache: device memory: 5000 bytes wanted");
    run.flush_bytes = 2500;
    run_ok(o.d, m, &run);
    assert_has(STUB->trace, "set 2500 0;");
    kp_module_unload(o.d, m);
    close_device(&o);
}

static void a_fault_makes_the_device_unusable(void **state)
{
    struct open_device o = open_device();
    struct kp_module *m = load(o.d, "k");
    struct kp_buffer *a;
    struct kp_buffer *b;
    double time;
    char byte;
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &time};
    (void)state;
    OK(kp_buffer_new(o.d, 8, &a, &ERR));
    STUB->fault_rc = 700;
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_EDEVICE);
    assert_string_equal(ERR.message,
                        "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered) "
                        "during launch of k");
    assert_int_equal(kp_buffer_read(o.d, a, 0, &byte, 1, &ERR), KOPT_EDEVICE);
    assert_has(ERR.message, "unusable since CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_int_equal(kp_buffer_new(o.d, 8, &b, &ERR), KOPT_EDEVICE);
    assert_int_equal(kp_module_run(o.d, m, &run, &ERR), KOPT_EDEVICE);
    kp_module_unload(o.d, m);
    kp_buffer_free(o.d, a);
    close_device(&o);
}

/* --- with NVRTC -----------------------------------------------------------------------------
 */

static bool have_nvrtc(void)
{
    struct kp_compiler *c;
    assert_int_equal(unsetenv("KOPT_NVRTC_LIBRARY"), 0);
    if (kp_compiler_open(KP_BACKEND_CUDA, 0, "sm_90", NULL, &c, NULL) != KOPT_OK)
        return false;
    kp_compiler_close(c);
    return true;
}

static void results_are_compared_by_a_kernel_where_there_is_nvrtc(void **state)
{
    const float got[4] = {1, 2, 3, 4};
    const float want[4] = {1, 2, 30, 4};
    double worst = 27;
    struct kp_compare cmp;
    struct kp_buffer *a;
    struct kp_buffer *b;
    (void)state;
    bool nvrtc = have_nvrtc();
    struct open_device o = open_device();
    OK(kp_buffer_new(o.d, sizeof(got), &a, &ERR));
    OK(kp_buffer_new(o.d, sizeof(want), &b, &ERR));
    OK(kp_buffer_write(o.d, a, 0, got, sizeof(got), &ERR));
    OK(kp_buffer_write(o.d, b, 0, want, sizeof(want), &ERR));
    STUB->found[0] = 1;
    STUB->found[1] = 0;
    STUB->found[2] = 2;
    memcpy(&STUB->found[3], &worst, sizeof(worst));
    clear_trace();
    OK(kp_buffer_compare(o.d, a, b, KP_NUM_F32, 0, 0, &cmp, &ERR));
    assert_int_equal(cmp.n, 4);
    assert_int_equal(cmp.n_bad, 1);
    assert_int_equal(cmp.n_nan, 0);
    assert_int_equal(cmp.first, 2);
    assert_true(cmp.got == 3 && cmp.want == 30 && cmp.max_error == 27);
    if (nvrtc)
        assert_has(STUB->trace, "write 32;compare;read 32;wait;");
    else
        assert_has(STUB->trace, "read 16;wait;read 16;wait;");

    if (nvrtc) {
        fail_next("cuLaunchKernel", 1, 1);
        assert_int_equal(kp_buffer_compare(o.d, a, b, KP_NUM_F32, 0, 0, &cmp, &ERR),
                         KOPT_EDEVICE);
        fail_next("cuMemcpyDtoHAsync_v2", 2, 1); /* of the first bad pair */
        assert_int_equal(kp_buffer_compare(o.d, a, b, KP_NUM_F32, 0, 0, &cmp, &ERR),
                         KOPT_EDEVICE);
    }
    kp_buffer_free(o.d, a);
    kp_buffer_free(o.d, b);
    close_device(&o);
}

static void without_a_kernel_results_are_compared_on_the_host(void **state)
{
    const double got[2] = {1, 5};
    const double want[2] = {1, 7};
    struct kp_compare cmp;
    struct kp_buffer *a;
    struct kp_buffer *b;
    struct open_device o = open_device();
    (void)state;
    OK(kp_buffer_new(o.d, sizeof(got), &a, &ERR));
    OK(kp_buffer_new(o.d, sizeof(want), &b, &ERR));
    OK(kp_buffer_write(o.d, a, 0, got, sizeof(got), &ERR));
    OK(kp_buffer_write(o.d, b, 0, want, sizeof(want), &ERR));
    OK(kp_buffer_compare(o.d, a, b, KP_NUM_F64, 0, 1, &cmp, &ERR));
    assert_int_equal(cmp.n, 2);
    assert_int_equal(cmp.n_bad, 1);
    assert_int_equal(cmp.first, 1);
    assert_true(cmp.max_error == 2);
    kp_buffer_free(o.d, a);
    kp_buffer_free(o.d, b);
    close_device(&o);
}

static void a_delay_stands_in_front_of_unflushed_launches(void **state)
{
    double times[2];
    const struct kp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct kp_run run = {.launch = &l, .n = 2, .times_ns = times};
    (void)state;
    if (!have_nvrtc())
        skip();
    struct open_device o = open_device();
    assert_int_equal(strncmp(kp_device_info(o.d)->compiler, "NVRTC ", 6), 0);
    struct kp_module *m = load(o.d, "k");
    run_ok(o.d, m, &run);
    assert_string_equal(STUB->trace, "delay;event;launch _Z1kPf 1x1x1 1x1x1 0;event;"
                                     "delay;event;launch _Z1kPf 1x1x1 1x1x1 0;event;wait;");
    run.flush_bytes = 64 << 20;
    run_ok(o.d, m, &run);
    assert_null(strstr(STUB->trace, "delay"));
    kp_module_unload(o.d, m);
    close_device(&o);
}

/* --- sensors --------------------------------------------------------------------------------
 */

static void sensors_are_those_of_the_same_pci_address(void **state)
{
    struct kp_sensors s;
    struct open_device o = open_device();
    (void)state;
    kp_device_sensors(o.d, &s);
    assert_true(s.power_w == 345.678 && s.energy_j == 12345678.901 && s.temp_c == 41);
    assert_true(s.sm_mhz == 1980 && s.mem_mhz == 3201);
    assert_int_equal(s.throttle, 4);
    fail_next("nvmlDeviceGetPowerUsage", 1, 3);
    kp_device_sensors(o.d, &s);
    assert_true(isnan(s.power_w) && s.temp_c == 41 && s.throttle == 4);
    fail_next("nvmlDeviceGetCurrentClocksEventReasons", 1, 3);
    kp_device_sensors(o.d, &s);
    assert_true(s.power_w == 345.678 && s.throttle == -1);
    close_device(&o);

    STUB->pci_id = "another";
    o = open_device();
    kp_device_sensors(o.d, &s);
    assert_true(isnan(s.power_w) && isnan(s.temp_c) && s.throttle == -1);
    close_device(&o);
    STUB->pci_id = "0000:19:00.0";
    fail_next("nvmlInit_v2", 1, 9);
    o = open_device();
    fail_next("nvmlInit_v2", 1, 9);
    kp_device_sensors(o.d, &s);
    assert_true(isnan(s.power_w));
    close_device(&o);
}

/* --- memory ---------------------------------------------------------------------------------
 */

static kopt_status whole_session(const struct kp_buf *image)
{
    struct kp_runtime *rt = NULL;
    struct kp_device *d = NULL;
    struct kp_buffer *a = NULL;
    struct kp_module *m = NULL;
    struct kp_compare cmp;
    double time;
    kopt_status st = kp_runtime_open(KP_BACKEND_CUDA, NULL, &rt, &ERR);
    if (st == KOPT_OK)
        st = kp_device_open(rt, 0, &d, &ERR);
    if (st == KOPT_OK)
        st = kp_buffer_new(d, 64, &a, &ERR);
    if (st == KOPT_OK)
        st = kp_module_load(d, image->ptr, image->len, "k", NULL, &m, &ERR);
    struct kp_launch_arg arg = {.space = KP_SPACE_GLOBAL, .bytes = 64, .buffer = a};
    const struct kp_launch l = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .args = &arg, .n_args = 1};
    const struct kp_run run = {.launch = &l, .flush_bytes = 64, .n = 1, .times_ns = &time};
    if (st == KOPT_OK)
        st = kp_module_run(d, m, &run, &ERR);
    if (st == KOPT_OK)
        st = kp_buffer_compare(d, a, a, KP_NUM_F32, 0, 0, &cmp, &ERR);
    if (m)
        kp_module_unload(d, m);
    if (a)
        kp_buffer_free(d, a);
    kp_device_close(d);
    kp_runtime_close(rt);
    return st;
}

static void every_failing_allocation_is_clean(void **state)
{
    struct kp_buf image = KP_BUF_INIT(1 << 20);
    (void)state;
    STUB->n_params = 1;
    STUB->param_bytes[0] = 8;
    make_image(&image, 0);
    kopt_status st = KOPT_ENOMEM;
    int failures = 0;
    for (long n = 1; n < 200; n++) {
        kp_alloc_fail_at(n);
        st = whole_session(&image);
        kp_alloc_fail_at(0);
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM);
        assert_int_equal(STUB->n_alive, 0);
        failures += st == KOPT_ENOMEM;
    }
    assert_int_equal(st, KOPT_OK);
    assert_true(failures >= 8);
    kp_buf_deinit(&image);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_missing_library_is_told_with_what_to_install),
        T(a_missing_function_is_named),
        T(an_old_driver_is_refused),
        T(what_the_driver_refuses_is_told),
        T(devices_say_what_they_are),
        T(a_compiler_for_a_device_asks_the_driver),
        T(every_call_that_fails_while_opening_is_clean),
        T(memory_works_and_its_errors_are_told),
        T(too_little_memory_is_told_with_the_numbers),
        T(modules_tell_what_the_compiler_made),
        T(modules_that_cannot_be_loaded_say_why),
        T(a_damaged_image_never_reaches_the_driver),
        T(a_run_enqueues_everything_and_waits_once),
        T(many_launches_go_in_batches),
        T(arguments_arrive_and_are_checked),
        T(much_shared_memory_is_asked_for_once),
        T(refused_launches_are_told_apart),
        T(every_call_that_fails_in_a_run_is_told),
        T(no_room_for_the_flush_is_told),
        T(a_fault_makes_the_device_unusable),
        T(results_are_compared_by_a_kernel_where_there_is_nvrtc),
        T(without_a_kernel_results_are_compared_on_the_host),
        T(a_delay_stands_in_front_of_unflushed_launches),
        T(sensors_are_those_of_the_same_pci_address),
        T(every_failing_allocation_is_clean),
    };
#undef T
    void *library = dlopen(CUDA_STUB, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    cuda_stub_fn *control = NULL;
    void *symbol = library ? dlsym(library, "cuda_stub") : NULL;
    memcpy(&control, &symbol, sizeof(control));
    if (!control) {
        (void)fprintf(stderr, "%s cannot be opened\n", CUDA_STUB);
        return 1;
    }
    STUB = control();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)dlclose(library);
    return failed;
}
