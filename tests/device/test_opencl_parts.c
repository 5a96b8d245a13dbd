/* SPDX-License-Identifier: MIT */
/* Parts of the OpenCL back end that a device of one kind alone would not show: the kernel that
 * compares, which GPUs need, runs here on whatever there is; a CPU's memory is compared by
 * several threads; and the caches are seen to be emptied. */
#include "support.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "device/opencl/cl.h"
#include "os/clock.h"

#include <math.h>
#include <stdlib.h>

static struct kp_cl_lib LIB;
static struct kp_cl_session S;
static struct kp_device_info INFO;
static struct kp_cl_compare KERNELS;

/* --- comparing -----------------------------------------------------------------------------
 */

static struct kp_cl_memory memory_of(const void *content, size_t bytes)
{
    struct kp_cl_memory m;
    OK(kp_cl_memory_new(&S, bytes, KP_CL_GUARDED, &m, &ERR));
    assert_int_equal(
        S.cl->clEnqueueWriteBuffer(S.queue, m.mem, CL_TRUE, 0, bytes, content, 0, NULL, NULL),
        CL_SUCCESS);
    return m;
}

enum way { BY_KERNEL, IN_PLACE };

/* Both ways must say what the plain comparison says. */
static void check(enum way way, const void *got, const void *want, size_t n,
                  enum kp_number type, const double tolerance[2])
{
    size_t bytes = n * kp_number_bytes(type);
    struct kp_cl_memory g = memory_of(got, bytes);
    struct kp_cl_memory w = memory_of(want, bytes);
    const struct kp_cl_pair pair = {.got = &g,
                                    .want = &w,
                                    .n = n,
                                    .type = type,
                                    .rtol = tolerance[0],
                                    .atol = tolerance[1]};
    struct kp_compare c;
    struct kp_compare host;
    if (way == BY_KERNEL)
        OK(kp_cl_compare_kernel(&S, &INFO.limits, &pair, &KERNELS, &c, &ERR));
    else
        OK(kp_cl_compare_host(&S, &pair, &c, &ERR));
    kp_compare_host(got, want, n, type, tolerance[0], tolerance[1], &host);
    /* one side takes small floats' differences in single precision: 2^-24 */
    double slack = way == BY_KERNEL && type != KP_NUM_F64 ? 0x1p-23 * host.max_error : 0;
    bool same = c.n == n && c.n_bad == host.n_bad && c.n_nan == host.n_nan &&
                c.first == host.first && memcmp(&c.got, &host.got, sizeof(double)) == 0 &&
                memcmp(&c.want, &host.want, sizeof(double)) == 0 &&
                (c.max_error == host.max_error || fabs(c.max_error - host.max_error) <= slack);
    if (!same)
        fail_msg("type %d n %zu rtol %g atol %g: bad %llu, not %llu; nan %llu, not %llu; first "
                 "%llu, not %llu (%g %g, not %g %g); error %.17g, not %.17g",
                 (int)type, n, tolerance[0], tolerance[1], (unsigned long long)c.n_bad,
                 (unsigned long long)host.n_bad, (unsigned long long)c.n_nan,
                 (unsigned long long)host.n_nan, (unsigned long long)c.first,
                 (unsigned long long)host.first, c.got, c.want, host.got, host.want,
                 c.max_error, host.max_error);
    kp_cl_memory_free(&S, &g);
    kp_cl_memory_free(&S, &w);
}

/* Is there a kernel? It needs double precision. */
static bool has_kernel(void)
{
    const float one = 1;
    struct kp_cl_memory m = memory_of(&one, sizeof(one));
    const struct kp_cl_pair pair = {.got = &m, .want = &m, .n = 1, .type = KP_NUM_F32};
    struct kp_compare c;
    kopt_status st = kp_cl_compare_kernel(&S, &INFO.limits, &pair, &KERNELS, &c, &ERR);
    kp_cl_memory_free(&S, &m);
    if (st != KOPT_ENOTFOUND)
        OK(st);
    return st == KOPT_OK;
}

static const double TOLERANCES[][2] = {{0, 0}, {1e-3, 0}, {1e-5, 1.5}, {0, 1e300}};
enum { N_TOLERANCES = sizeof(TOLERANCES) / sizeof(*TOLERANCES), MOST = 5000 };

static unsigned char GOT[8 * MOST];
static unsigned char WANT[8 * MOST];

static void any_bits(uint64_t seed, size_t size, size_t n, int changes)
{
    struct kp_rng r;
    kp_rng_init(&r, seed);
    for (size_t i = 0; i < sizeof(WANT); i++)
        WANT[i] = (unsigned char)kp_rng_u64(&r);
    memcpy(GOT, WANT, sizeof(GOT));
    for (int i = 0; i < changes; i++) {
        size_t at = kp_rng_below(&r, n) * size;
        GOT[at] ^= (unsigned char)(1u << kp_rng_below(&r, 8));
        if (i % 4 == 0)
            GOT[at + size - 1] ^= (unsigned char)(1u << kp_rng_below(&r, 8));
    }
}

static void any_bits_of_any_type_compare_alike(void **state)
{
    (void)state;
    static const size_t LENGTHS[] = {1, 3, 255, 256, 257, MOST};
    if (!has_kernel())
        skip();
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        size_t size = kp_number_bytes((enum kp_number)type);
        for (size_t k = 0; k < sizeof(LENGTHS) / sizeof(*LENGTHS); k++) {
            any_bits(k, size, LENGTHS[k], 1 + (int)LENGTHS[k] / 100);
            for (size_t t = 0; t < N_TOLERANCES; t++) {
                check(BY_KERNEL, GOT, WANT, LENGTHS[k], (enum kp_number)type, TOLERANCES[t]);
                check(BY_KERNEL, WANT, WANT, LENGTHS[k], (enum kp_number)type, TOLERANCES[t]);
            }
        }
    }
}

static void every_half_is_read_right(void **state)
{
    (void)state;
    if (!has_kernel())
        skip();
    for (unsigned from = 0; from < 65536; from += 4096) {
        for (unsigned i = 0; i < 4096; i++) {
            const uint16_t h = (uint16_t)(from + i);
            const uint16_t one = 0x3C00;
            memcpy(GOT + 2 * (size_t)i, &h, sizeof(h));
            memcpy(WANT + 2 * (size_t)i, &one, sizeof(one));
        }
        static const double QUARTER[2] = {0.25, 0};
        check(BY_KERNEL, GOT, WANT, 4096, KP_NUM_F16, QUARTER);
        check(BY_KERNEL, GOT, WANT, 4096, KP_NUM_BF16, QUARTER);
    }
}

/* One last place around the edge of a tolerance, subnormal numbers among them. */
static void the_edge_of_a_tolerance_is_the_same(void **state)
{
    (void)state;
    struct kp_rng r;
    kp_rng_init(&r, 3);
    if (!has_kernel())
        skip();
    for (int round = 0; round < 20; round++) {
        const double tolerance[2] = {ldexp(1, -(int)kp_rng_below(&r, 30)),
                                     ldexp(1, -(int)kp_rng_below(&r, 160))};
        for (size_t i = 0; i < 1000; i++) {
            double w = ldexp(kp_rng_normal(&r), -(int)kp_rng_below(&r, 150));
            double g = w + (tolerance[1] + tolerance[0] * fabs(w));
            float fw = (float)w;
            float fg = (float)g;
            int step = (int)kp_rng_below(&r, 3);
            if (step) {
                g = nextafter(g, step == 1 ? (double)INFINITY : -(double)INFINITY);
                fg = nextafterf(fg, step == 1 ? INFINITY : -INFINITY);
            }
            memcpy(WANT + 4 * i, &fw, 4);
            memcpy(GOT + 4 * i, &fg, 4);
            memcpy(WANT + 4000 + 8 * i, &w, 8);
            memcpy(GOT + 4000 + 8 * i, &g, 8);
        }
        check(BY_KERNEL, GOT, WANT, 1000, KP_NUM_F32, tolerance);
        check(BY_KERNEL, GOT + 4000, WANT + 4000, 1000, KP_NUM_F64, tolerance);
    }
}

static void a_cpus_memory_is_compared_in_place_and_in_parts(void **state)
{
    (void)state;
    enum { N = 3000001 }; /* parts of unequal length */
    if (!S.host)
        skip();
    float *want = kp_calloc(N, sizeof(*want));
    float *got = kp_calloc(N, sizeof(*got));
    assert_true(want && got);
    for (size_t i = 0; i < N; i++)
        want[i] = (float)(i % 1000);
    static const size_t SPOILT[] = {0, 17, N / 2 - 1, N / 2, N - 2, N - 1};
    memcpy(got, want, N * sizeof(*got));
    check(IN_PLACE, got, want, N, KP_NUM_F32, TOLERANCES[0]);
    for (size_t k = sizeof(SPOILT) / sizeof(*SPOILT); k-- > 0;) { /* the first bad one moves */
        got[SPOILT[k]] = k % 2 ? NAN : -5;
        for (size_t t = 0; t < N_TOLERANCES; t++)
            check(IN_PLACE, got, want, N, KP_NUM_F32, TOLERANCES[t]);
    }
    kp_free(want);
    kp_free(got);
}

static void comparing_without_memory_is_clean(void **state)
{
    (void)state;
    struct kp_cl_memory m = memory_of("1234", 4);
    const struct kp_cl_pair pair = {.got = &m, .want = &m, .n = 4, .type = KP_NUM_U8};
    kopt_status st = KOPT_ENOMEM;
    int n = 1;
    if (!has_kernel())
        skip();
    for (; st != KOPT_OK; n++) {
        struct kp_cl_compare fresh = {0};
        struct kp_compare c;
        kp_alloc_fail_at(n);
        st = kp_cl_compare_kernel(&S, &INFO.limits, &pair, &fresh, &c, &ERR);
        kp_alloc_fail_at(0);
        kp_cl_compare_deinit(&S, &fresh);
        /* without its kernel the host compares */
        assert_true(st == KOPT_OK || st == KOPT_ENOMEM || st == KOPT_ENOTFOUND);
        assert_true(n < 200);
    }
    assert_true(n > 2);
    kp_cl_memory_free(&S, &m);
}

/* --- caches --------------------------------------------------------------------------------
 */

/* Cores that share lines would take them back from each other. */
static void a_sweep_goes_over_each_line_once(void **state)
{
    (void)state;
    static const size_t BYTES[] = {1 << 20, (5 << 20) + 1, 24 << 20};
    if (!S.host)
        skip();
    for (size_t k = 0; k < sizeof(BYTES) / sizeof(*BYTES); k++) {
        struct kp_cl_flush f = {0};
        OK(kp_cl_flush_prepare(&S, &INFO.limits, BYTES[k], &f, &ERR));
        assert_true(f.bytes >= BYTES[k]);
        size_t swept = 0;
        memset(f.lines, 1, f.bytes);
        OK(kp_cl_flush(&S, &f, BYTES[k], &ERR));
        for (size_t at = 0; at < f.bytes; at += 64) {
            assert_in_range(f.lines[at], 1, 2);
            swept += f.lines[at] == 2 ? 64 : 0;
        }
        assert_true(swept + (1 << 20) >= BYTES[k]); /* but for what rounding takes off */
        kp_cl_flush_deinit(&S, &f);
    }
}

enum { LINES = 8192, STEP = 4099 }; /* 512 KiB; a step that no prefetcher follows */

/* Nanoseconds to read one byte of each line. */
static double time_to_read(const unsigned char *p)
{
    unsigned sum = 0;
    int64_t begin = kp_clock_ns();
    for (size_t i = 0, line = 0; i < LINES; i++, line = (line + STEP) % LINES)
        sum += ((const volatile unsigned char *)p)[line * 64 + (sum & 1)];
    double ns = (double)(kp_clock_ns() - begin);
    return sum == 12345 ? ns + 1 : ns; /* `sum` is needed */
}

/* The least of many times says what the memory does; the others, what else the machine did. */
static void a_flush_empties_the_caches(void **state)
{
    (void)state;
    if (!S.host || !kp_cl_flush_lines(NULL, 0))
        skip();
    unsigned char *p = kp_calloc(LINES, 64);
    assert_non_null(p);
    memset(p, 1, (size_t)LINES * 64);
    double cold = 1e300;
    double warm = 1e300;
    for (int i = 0; i < 30; i++) {
        assert_true(kp_cl_flush_lines(p, (size_t)LINES * 64));
        cold = fmin(cold, time_to_read(p));
        warm = fmin(warm, time_to_read(p));
    }
    print_message("reading 512 KiB: %.0f us, from the caches %.0f us\n", cold * 1e-3,
                  warm * 1e-3);
    /* memory takes several times as long as a cache; a half more leaves room for slow builds */
    assert_true(cold > 1.5 * warm);
    kp_free(p);
}

static int close_all(void **state)
{
    (void)state;
    kp_cl_compare_deinit(&S, &KERNELS);
    kp_cl_session_close(&S);
    kp_cl_lib_close(&LIB);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bits_of_any_type_compare_alike),
        cmocka_unit_test(every_half_is_read_right),
        cmocka_unit_test(the_edge_of_a_tolerance_is_the_same),
        cmocka_unit_test(a_cpus_memory_is_compared_in_place_and_in_parts),
        cmocka_unit_test(comparing_without_memory_is_clean),
        cmocka_unit_test(a_sweep_goes_over_each_line_once),
        cmocka_unit_test(a_flush_empties_the_caches),
    };
    kopt_status st = kp_cl_lib_open(&LIB, NULL, &ERR);
    if (st == KOPT_EENV || (st == KOPT_OK && LIB.n_found == 0)) {
        (void)printf("skipped: %s\n", st == KOPT_EENV ? ERR.message : "no OpenCL device");
        kp_cl_lib_close(&LIB);
        return 77;
    }
    if (st == KOPT_OK)
        st = kp_cl_info(&LIB, 0, &INFO, &ERR);
    if (st == KOPT_OK)
        st = kp_cl_session_open(&S, &LIB, 0, &ERR);
    if (st != KOPT_OK) {
        (void)fprintf(stderr, "%s\n", ERR.message);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, close_all);
}
