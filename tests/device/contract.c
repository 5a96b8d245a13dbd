/* SPDX-License-Identifier: MIT */
/* One process per back end; the dialect is linked in. Skipped where there is no device. */
#include "contract.h"
#include "support.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 1000, IMAGE_MAX = 64 << 20 };

static const struct dialect *D;
static struct kp_runtime *RT;
static struct kp_compiler *COMPILER;
static struct kp_device *DEV;

/* --- helpers -------------------------------------------------------------------------------
 */

static struct kp_buffer *new_buffer(const void *content, size_t bytes)
{
    struct kp_buffer *b = NULL;
    OK(kp_buffer_new(DEV, bytes, &b, &ERR));
    if (content)
        OK(kp_buffer_write(DEV, b, 0, content, bytes, &ERR));
    return b;
}

static void fill_random(float *p, size_t n, uint64_t seed)
{
    struct kp_rng r;
    kp_rng_init(&r, seed);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)kp_rng_normal(&r);
}

static struct kp_compile_job job_of(const char *source, const char *entry,
                                    const struct kp_launch *l)
{
    return (struct kp_compile_job){
        .source = kp_str_from(source), .path = D->path, .entry = entry, .launch = l};
}

static struct kp_module *load(const struct kp_compile_job *job)
{
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_module *m = NULL;
    OK(kp_compile(COMPILER, job, &image, NULL, &ERR));
    OK(kp_module_load(DEV, image.ptr, image.len, job->entry, job->launch, &m, &ERR));
    kp_buf_deinit(&image);
    return m;
}

static uint32_t groups(uint32_t n, uint32_t block)
{
    return (n + block - 1) / block;
}

/* Run once with the output poisoned; returns the time. */
static double run_once(struct kp_module *m, const struct kp_launch *l, struct kp_buffer *out)
{
    double t = (double)NAN;
    const struct kp_restore poison = {.dst = out};
    const struct kp_run run = {
        .launch = l, .restore = &poison, .n_restore = out ? 1 : 0, .n = 1, .times_ns = &t};
    OK(kp_module_run(DEV, m, &run, &ERR));
    return t;
}

/* The three buffers of add() and its size. */
struct add_case {
    float a[N];
    float b[N];
    float c[N];
    struct kp_buffer *da;
    struct kp_buffer *db;
    struct kp_buffer *dc;
    int32_t n;
    struct kp_launch_arg args[4];
    struct kp_launch l;
};

static struct add_case *add_new(uint32_t block)
{
    struct add_case *t = kp_calloc(1, sizeof(*t));
    assert_non_null(t);
    fill_random(t->a, N, 1);
    fill_random(t->b, N, 2);
    t->da = new_buffer(t->a, sizeof(t->a));
    t->db = new_buffer(t->b, sizeof(t->b));
    t->dc = new_buffer(NULL, sizeof(t->c));
    t->n = N;
    t->args[0] = global(t->da);
    t->args[1] = global(t->db);
    t->args[2] = global(t->dc);
    t->args[3] = VALUE(t->n);
    t->l = (struct kp_launch){
        .grid = {groups(N, block), 1, 1}, .block = {block, 1, 1}, .args = t->args, .n_args = 4};
    return t;
}

/* For another kernel with three arguments. */
static void add_args(struct add_case *t, struct kp_launch_arg first,
                     struct kp_launch_arg second, struct kp_launch_arg third)
{
    t->args[0] = first;
    t->args[1] = second;
    t->args[2] = third;
    t->l.n_args = 3;
}

static struct kp_module *add_load(const struct add_case *t, const char *source,
                                  const char *entry)
{
    struct kp_compile_job job = job_of(source, entry, &t->l);
    return load(&job);
}

static void add_read(struct add_case *t)
{
    OK(kp_buffer_read(DEV, t->dc, 0, t->c, sizeof(t->c), &ERR));
}

static void add_check(struct add_case *t)
{
    add_read(t);
    for (int i = 0; i < N; i++) {
        float want = D->combine(t->a[i], t->b[i]);
        if (t->c[i] != want)
            fail_msg("element %d is %g, not %g", i, (double)t->c[i], (double)want);
    }
}

static void add_free(struct add_case *t)
{
    kp_buffer_free(DEV, t->da);
    kp_buffer_free(DEV, t->db);
    kp_buffer_free(DEV, t->dc);
    kp_free(t);
}

/* --- properties ----------------------------------------------------------------------------
 */

static void info_is_sane(void **state)
{
    (void)state;
    int n = kp_runtime_n_devices(RT);
    assert_true(n >= 1);
    for (int i = 0; i < n; i++) {
        struct kp_device_info info;
        OK(kp_runtime_info(RT, i, &info, &ERR));
        assert_int_equal(info.backend, D->backend);
        assert_int_equal(info.index, i);
        assert_true(info.name[0] && info.arch[0] && info.driver[0]);
        const struct kp_limits *lim = &info.limits;
        assert_in_range(lim->max_threads, 1, 1 << 20);
        for (int k = 0; k < 3; k++)
            assert_true(lim->max_block[k] >= 1);
        assert_in_range(lim->shared_bytes, 1024, 1 << 30);
        assert_true(lim->global_bytes >= 16 << 20);
        assert_true(lim->compute_units >= 1 && lim->warp >= 1);
        assert_true(lim->l2_bytes >= 0 && lim->clock_khz >= 0 && lim->registers >= 0);
    }
    struct kp_device_info first;
    OK(kp_runtime_info(RT, 0, &first, &ERR));
    const struct kp_device_info *open = kp_device_info(DEV);
    assert_string_equal(open->name, first.name);
    assert_string_equal(open->arch, first.arch);
    assert_string_equal(open->id, first.id);
    assert_int_equal(open->limits.max_threads, first.limits.max_threads);
    assert_true(kp_compiler_version(COMPILER)[0]);
    uint64_t free_bytes;
    uint64_t total;
    kp_device_memory(DEV, &free_bytes, &total);
    assert_true(total == 0 || total >= 16 << 20);
}

static void an_index_that_is_not_there_is_not_found(void **state)
{
    (void)state;
    struct kp_device_info info;
    struct kp_device *d = NULL;
    int n = kp_runtime_n_devices(RT);
    assert_int_equal(kp_runtime_info(RT, n, &info, &ERR), KOPT_ENOTFOUND);
    assert_non_null(strstr(ERR.message, kp_backend_name(D->backend)));
    assert_int_equal(kp_runtime_info(RT, -1, &info, &ERR), KOPT_ENOTFOUND);
    assert_int_equal(kp_device_open(RT, n, &d, &ERR), KOPT_ENOTFOUND);
    assert_null(d);
}

static void sensors_are_numbers_or_nan(void **state)
{
    (void)state;
    struct kp_sensors s;
    kp_device_sensors(DEV, &s);
    assert_true(isnan(s.power_w) || s.power_w >= 0);
    assert_true(isnan(s.energy_j) || s.energy_j >= 0);
    assert_true(isnan(s.temp_c) || (s.temp_c > -50 && s.temp_c < 200));
    assert_true(isnan(s.sm_mhz) || s.sm_mhz > 0);
}

/* --- memory --------------------------------------------------------------------------------
 */

static void buffers_keep_what_is_written(void **state)
{
    (void)state;
    unsigned char in[777];
    unsigned char out[777];
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (unsigned char)(i * 7 + 3);
    struct kp_buffer *b = new_buffer(in, sizeof(in));
    assert_int_equal(kp_buffer_bytes(b), sizeof(in));
    OK(kp_buffer_read(DEV, b, 0, out, sizeof(out), &ERR));
    assert_memory_equal(in, out, sizeof(in));

    OK(kp_buffer_write(DEV, b, 100, "hello", 5, &ERR));
    memcpy(in + 100, "hello", 5);
    OK(kp_buffer_read(DEV, b, 99, out, 7, &ERR));
    assert_memory_equal(out, in + 99, 7);
    OK(kp_buffer_write(DEV, b, sizeof(in), in, 0, &ERR));

    struct kp_buffer *other = new_buffer(in, sizeof(in));
    OK(kp_buffer_fill(DEV, b, 0xA7, &ERR));
    OK(kp_buffer_read(DEV, other, 0, out, sizeof(out), &ERR));
    assert_memory_equal(in, out, sizeof(in));
    OK(kp_buffer_read(DEV, b, 0, out, sizeof(out), &ERR));
    for (size_t i = 0; i < sizeof(out); i++)
        assert_int_equal(out[i], 0xA7);
    kp_buffer_free(DEV, b);
    kp_buffer_free(DEV, other);
    kp_buffer_free(DEV, NULL);
}

static void bounds_are_kept(void **state)
{
    (void)state;
    unsigned char bytes[64] = {0};
    struct kp_buffer *b = new_buffer(NULL, 32);
    assert_int_equal(kp_buffer_write(DEV, b, 0, bytes, 33, &ERR), KOPT_ERANGE);
    assert_non_null(strstr(ERR.message, "32"));
    assert_int_equal(kp_buffer_write(DEV, b, 33, bytes, 0, &ERR), KOPT_ERANGE);
    assert_int_equal(kp_buffer_write(DEV, b, SIZE_MAX, bytes, 2, &ERR), KOPT_ERANGE);
    assert_int_equal(kp_buffer_read(DEV, b, 31, bytes, 2, &ERR), KOPT_ERANGE);
    assert_int_equal(kp_buffer_read(DEV, b, 1, bytes, SIZE_MAX, &ERR), KOPT_ERANGE);
    kp_buffer_free(DEV, b);
}

static void impossible_buffers_are_refused(void **state)
{
    (void)state;
    struct kp_buffer *b = NULL;
    assert_int_equal(kp_buffer_new(DEV, 0, &b, &ERR), KOPT_ERANGE);
    assert_null(b);
    size_t all = (size_t)kp_device_info(DEV)->limits.global_bytes;
    assert_int_equal(kp_buffer_new(DEV, all + 1, &b, &ERR), KOPT_EFULL);
    assert_null(b);
    char number[32];
    (void)snprintf(number, sizeof(number), "%zu", all + 1);
    assert_non_null(strstr(ERR.message, number));
    assert_int_equal(kp_buffer_new(DEV, SIZE_MAX, &b, &ERR), KOPT_EFULL);
    assert_int_equal(kp_buffer_new(DEV, SIZE_MAX - 4095, &b, &ERR), KOPT_EFULL);
    assert_null(b);
}

static void large_buffers_arrive_whole(void **state)
{
    (void)state;
    const size_t bytes = (24 << 20) + 12; /* read back in more than one piece */
    uint32_t *in = kp_calloc(1, bytes);
    uint32_t *out = kp_calloc(1, bytes);
    assert_true(in && out);
    for (size_t i = 0; i < bytes / 4; i++)
        in[i] = (uint32_t)i * 2654435761u;
    struct kp_buffer *b = new_buffer(in, bytes);
    struct kp_buffer *c = new_buffer(in, bytes);
    OK(kp_buffer_read(DEV, c, 0, out, bytes, &ERR));
    assert_int_equal(memcmp(in, out, bytes), 0);
    struct kp_compare cmp;
    OK(kp_buffer_compare(DEV, c, b, KP_NUM_U32, 0, 0, &cmp, &ERR));
    assert_int_equal(cmp.n, bytes / 4);
    assert_int_equal(cmp.n_bad, 0);
    /* one wrong element behind the first 16 MiB */
    const uint32_t wrong = ~in[5000001];
    OK(kp_buffer_write(DEV, c, 4 * 5000001u, &wrong, 4, &ERR));
    OK(kp_buffer_compare(DEV, c, b, KP_NUM_U32, 0, 0, &cmp, &ERR));
    assert_int_equal(cmp.n_bad, 1);
    assert_int_equal(cmp.first, 5000001);
    assert_true(cmp.got == (double)wrong && cmp.want == (double)in[5000001]);
    kp_buffer_free(DEV, b);
    kp_buffer_free(DEV, c);
    kp_free(in);
    kp_free(out);
}

/* --- comparing -----------------------------------------------------------------------------
 */

static void compare_case(enum kp_number type, double rtol, double atol)
{
    enum { COUNT = 5000 };
    static unsigned char got[8 * COUNT];
    static unsigned char want[8 * COUNT];
    size_t size = kp_number_bytes(type);
    struct kp_rng r;
    kp_rng_init(&r, 7 + (uint64_t)type);
    for (size_t i = 0; i < sizeof(got); i++)
        want[i] = (unsigned char)kp_rng_u64(&r); /* any bits: NaN and infinities among them */
    memcpy(got, want, sizeof(got));
    for (int i = 0; i < 40; i++) { /* some elements differ in their last bits, some in all */
        size_t at = kp_rng_below(&r, COUNT) * size;
        got[at] ^= (unsigned char)(1u << kp_rng_below(&r, 8));
        if (i % 4 == 0)
            got[at + size - 1] ^= (unsigned char)(1u << kp_rng_below(&r, 8));
    }
    struct kp_buffer *g = new_buffer(got, COUNT * size);
    struct kp_buffer *w = new_buffer(want, COUNT * size);
    struct kp_compare device;
    struct kp_compare host;
    OK(kp_buffer_compare(DEV, g, w, type, rtol, atol, &device, &ERR));
    kp_compare_host(got, want, COUNT, type, rtol, atol, &host);
    assert_int_equal(device.n, host.n);
    assert_int_equal(device.n_bad, host.n_bad);
    assert_int_equal(device.n_nan, host.n_nan);
    if (host.n_bad) {
        assert_int_equal(device.first, host.first);
        assert_memory_equal(&device.got, &host.got, sizeof(double));
        assert_memory_equal(&device.want, &host.want, sizeof(double));
    }
    /* the largest error may be rounded to single precision on either side */
    assert_true(device.max_error == host.max_error ||
                fabs(device.max_error - host.max_error) <= 1e-6 * host.max_error);
    kp_buffer_free(DEV, g);
    kp_buffer_free(DEV, w);
}

static void compare_agrees_with_the_host(void **state)
{
    (void)state;
    for (int type = KP_NUM_I8; type <= KP_NUM_F64; type++) {
        compare_case((enum kp_number)type, 0, 0);
        compare_case((enum kp_number)type, 1e-3, 0);
        compare_case((enum kp_number)type, 1e-5, 1.5);
    }
    struct kp_buffer *a = new_buffer("12345678", 8);
    struct kp_buffer *b = new_buffer("123456789", 9);
    struct kp_compare cmp;
    assert_int_equal(kp_buffer_compare(DEV, a, b, KP_NUM_U8, 0, 0, &cmp, &ERR), KOPT_ERANGE);
    struct kp_buffer *c = new_buffer("123456780", 9);
    assert_int_equal(kp_buffer_compare(DEV, c, b, KP_NUM_F32, 0, 0, &cmp, &ERR), KOPT_ERANGE);
    OK(kp_buffer_compare(DEV, c, b, KP_NUM_U8, 0, 0, &cmp, &ERR));
    assert_int_equal(cmp.n_bad, 1);
    assert_int_equal(cmp.first, 8);
    kp_buffer_free(DEV, a);
    kp_buffer_free(DEV, b);
    kp_buffer_free(DEV, c);
}

/* Errors one last place around the tolerance, and everything that is not finite. */
static void the_edges_of_comparing_are_the_hosts(void **state)
{
    (void)state;
    enum { COUNT = 1024 };
    static const float SPECIAL[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e-45f, 3e38f, 1.0f};
    static float got[COUNT];
    static float want[COUNT];
    struct kp_rng r;
    kp_rng_init(&r, 9);
    for (int round = 0; round < 6; round++) {
        double rtol = ldexp(1, -(int)kp_rng_below(&r, 25));
        double atol = ldexp(1, -(int)kp_rng_below(&r, 140));
        for (size_t i = 0; i < COUNT; i++) {
            float w = ldexpf((float)kp_rng_normal(&r), -(int)kp_rng_below(&r, 140));
            double edge = atol + rtol * fabs((double)w);
            float g = (float)((double)w + edge);
            int step = (int)kp_rng_below(&r, 3);
            want[i] = w;
            got[i] = step == 0 ? g : nextafterf(g, step == 1 ? INFINITY : -INFINITY);
        }
        for (size_t i = 0; i < 64 && round % 2; i++) {
            got[i] = SPECIAL[i % 8];
            want[i] = SPECIAL[i / 8];
        }
        struct kp_buffer *g = new_buffer(got, sizeof(got));
        struct kp_buffer *w = new_buffer(want, sizeof(want));
        struct kp_compare device;
        struct kp_compare host;
        OK(kp_buffer_compare(DEV, g, w, KP_NUM_F32, rtol, atol, &device, &ERR));
        kp_compare_host(got, want, COUNT, KP_NUM_F32, rtol, atol, &host);
        assert_int_equal(device.n_bad, host.n_bad);
        assert_int_equal(device.n_nan, host.n_nan);
        assert_int_equal(device.first, host.first);
        kp_buffer_free(DEV, g);
        kp_buffer_free(DEV, w);
    }
}

/* --- compiling -----------------------------------------------------------------------------
 */

static void a_compile_error_is_told_in_the_users_terms(void **state)
{
    (void)state;
    const char *macros[] = {"WIDTH=8", "UNUSED=1"};
    struct kp_compile_job job = job_of(D->broken, "add", NULL);
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_buf log = KP_BUF_INIT(1 << 20);
    job.macros = macros;
    job.n_macros = 2;
    assert_int_equal(kp_compile(COMPILER, &job, &image, &log, &ERR), KOPT_EINPUT);
    assert_int_equal(image.len, 0);
    assert_string_equal(ERR.file, D->path);
    assert_int_equal(ERR.line, D->broken_line);
    if (D->broken_column)
        assert_int_equal(ERR.column, D->broken_column);
    assert_non_null(strstr(ERR.message, D->broken_word));
    assert_non_null(strstr(ERR.excerpt, D->broken_word));
    assert_non_null(strstr(kp_buf_text(&log), D->path));
    assert_non_null(strstr(kp_buf_text(&log), D->broken_word));
    assert_null(strstr(kp_buf_text(&log), "tempfile"));
    kp_buf_deinit(&image);
    kp_buf_deinit(&log);
}

static void a_source_with_a_zero_byte_is_refused(void **state)
{
    (void)state;
    struct kp_compile_job job = job_of("", "add", NULL);
    job.source = (struct kp_str){"kernel\0void", 11};
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    assert_int_equal(kp_compile(COMPILER, &job, &image, NULL, &ERR), KOPT_EINPUT);
    kp_buf_deinit(&image);
}

static void an_entry_that_is_not_there_is_told(void **state)
{
    (void)state;
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_module *m = NULL;
    struct kp_compile_job job = job_of(D->add, "add", NULL);
    OK(kp_compile(COMPILER, &job, &image, NULL, &ERR));
    assert_int_equal(kp_module_load(DEV, image.ptr, image.len, "nowhere", NULL, &m, &ERR),
                     KOPT_ENOTFOUND);
    assert_null(m);
    assert_non_null(strstr(ERR.message, "nowhere"));
    OK(kp_module_load(DEV, image.ptr, image.len, "add", NULL, &m, &ERR));
    kp_module_unload(DEV, m);
    kp_module_unload(DEV, NULL);
    kp_buf_deinit(&image);
}

static void what_is_no_image_is_refused(void **state)
{
    (void)state;
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_module *m = NULL;
    assert_int_equal(kp_module_load(DEV, "rubbish", 7, "add", NULL, &m, &ERR), KOPT_EDEVICE);
    struct kp_compile_job job = job_of(D->add, "add", NULL);
    OK(kp_compile(COMPILER, &job, &image, NULL, &ERR));
    assert_int_equal(kp_module_load(DEV, image.ptr, 6, "add", NULL, &m, &ERR), KOPT_EDEVICE);
    assert_null(m);
    kp_buf_deinit(&image);
}

struct compiled {
    int n;
    const struct kp_buf *image;
    size_t bytes;
};

static void is_compiled(void *user)
{
    struct compiled *c = user;
    c->n++;
    c->bytes = c->image->len;
}

static void compiled_is_called_once_with_the_image_complete(void **state)
{
    (void)state;
    struct add_case *t = add_new(50);
    for (int with = 0; with < 2; with++) {
        struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
        struct compiled c = {.image = &image};
        struct kp_compile_job job = job_of(D->add, "add", with ? &t->l : NULL);
        job.compiled = is_compiled;
        job.user = &c;
        kp_buf_adds(&image, "kept");
        OK(kp_compile(COMPILER, &job, &image, NULL, &ERR));
        assert_int_equal(c.n, 1);
        assert_int_equal(c.bytes, image.len);
        assert_memory_equal(image.ptr, "kept", 4);
        struct kp_module *m = NULL;
        OK(kp_module_load(DEV, image.ptr + 4, image.len - 4, "add", &t->l, &m, &ERR));
        (void)run_once(m, &t->l, t->dc);
        add_check(t);
        kp_module_unload(DEV, m);
        kp_buf_deinit(&image);
    }
    add_free(t);
}

static void an_include_is_found_beside_the_source(void **state)
{
    (void)state;
    static const char FOLDER[] = "a folder \xc3\xa9t\xc3\xa9";
    char here[2048];
    char path[4096];
    char after[2048];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_true(mkdir(FOLDER, 0777) == 0 || access(FOLDER, X_OK) == 0);
    (void)snprintf(path, sizeof(path), "%s/kopt_part.h", FOLDER);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(D->part, f) >= 0 && fclose(f) == 0);

    struct add_case *t = add_new(20);
    for (int absolute = 0; absolute < 2; absolute++) {
        struct kp_compile_job job = job_of(D->including, "add", &t->l);
        (void)snprintf(path, sizeof(path), "%s%s%s/user.src", absolute ? here : "",
                       absolute ? "/" : "", FOLDER);
        job.path = path;
        struct kp_module *m = load(&job);
        (void)run_once(m, &t->l, t->dc);
        add_check(t);
        kp_module_unload(DEV, m);
        assert_non_null(getcwd(after, sizeof(after)));
        assert_string_equal(here, after);
    }
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_compile_job job = job_of(D->including, "add", NULL);
    job.path = "user.src";
    assert_int_equal(kp_compile(COMPILER, &job, &image, NULL, &ERR), KOPT_EINPUT);
    assert_non_null(strstr(ERR.message, "kopt_part.h"));
    assert_string_equal(ERR.file, "user.src");
    assert_int_equal(ERR.line, 1);
    kp_buf_deinit(&image);
    add_free(t);
}

static void macros_arrive_as_they_are(void **state)
{
    (void)state;
    if (!D->scaled)
        skip();
    struct add_case *t = add_new(100);
    add_args(t, t->args[0], t->args[2], t->args[3]);
    const struct {
        const char *macro;
        float factor;
    } cases[] = {{"FACTOR=3", 3},
                 {"FACTOR=(1 + 2) * 2", 6},
                 {"FACTOR=sizeof(\"a \\\"b\\\" 'c'\")", 10},
                 {"FACTOR='\"'", 34},
                 {"FACTOR=1.5f", 1.5f},
                 {"FACTOR", 1}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        const char *macros[] = {"OTHER=\"x y\"", cases[k].macro};
        struct kp_compile_job job = job_of(D->scaled, "scaled", &t->l);
        job.macros = macros;
        job.n_macros = 2;
        struct kp_module *m = load(&job);
        (void)run_once(m, &t->l, t->dc);
        add_read(t);
        for (int i = 0; i < N; i++)
            assert_true(t->c[i] == t->a[i] * cases[k].factor);
        kp_module_unload(DEV, m);
    }
    add_free(t);
}

/* --- launching -----------------------------------------------------------------------------
 */

static void block_shapes_give_the_same_result(void **state)
{
    (void)state;
    static const uint32_t BLOCKS[] = {1, 7, 32, 64, 256};
    for (size_t i = 0; i < sizeof(BLOCKS) / sizeof(*BLOCKS); i++) {
        struct add_case *t = add_new(BLOCKS[i]);
        struct kp_module *m = add_load(t, D->add, "add");
        OK(kp_launch_check(DEV, m, &t->l, &ERR));
        double ns = run_once(m, &t->l, t->dc);
        assert_true(ns > 0 && ns < 1e10);
        add_check(t);
        kp_module_unload(DEV, m);
        add_free(t);
    }
}

static void two_dimensions_work(void **state)
{
    (void)state;
    static const uint32_t BLOCKS[][2] = {{8, 4}, {1, 25}, {16, 16}};
    const int32_t width = 40;
    const int32_t height = 25;
    for (size_t i = 0; i < sizeof(BLOCKS) / sizeof(*BLOCKS); i++) {
        struct add_case *t = add_new(1);
        struct kp_launch_arg args[5] = {t->args[0], t->args[1], t->args[2], VALUE(width),
                                        VALUE(height)};
        t->l =
            (struct kp_launch){.grid = {groups(40, BLOCKS[i][0]), groups(25, BLOCKS[i][1]), 1},
                               .block = {BLOCKS[i][0], BLOCKS[i][1], 1},
                               .args = args,
                               .n_args = 5};
        struct kp_module *m = add_load(t, D->add2, "add2");
        (void)run_once(m, &t->l, t->dc);
        add_check(t);
        kp_module_unload(DEV, m);
        add_free(t);
    }
}

static void local_memory_is_an_argument(void **state)
{
    (void)state;
    if (!D->local)
        skip();
    struct add_case *t = add_new(100);
    add_args(t, t->args[0], t->args[2],
             (struct kp_launch_arg){.space = KP_SPACE_SHARED, .bytes = 4 * 100});
    struct kp_module *m = add_load(t, D->local, "through_local");
    (void)run_once(m, &t->l, t->dc);
    add_read(t);
    assert_memory_equal(t->c, t->a, sizeof(t->c));

    char number[32];
    t->args[2].bytes = (size_t)kp_device_info(DEV)->limits.shared_bytes + 4;
    (void)snprintf(number, sizeof(number), "%zu", t->args[2].bytes);
    double ns;
    const struct kp_run run = {.launch = &t->l, .n = 1, .times_ns = &ns};
    assert_int_equal(kp_module_run(DEV, m, &run, &ERR), KOPT_ERANGE);
    assert_non_null(strstr(ERR.message, number));
    kp_module_unload(DEV, m);
    add_free(t);
}

static void buffers_are_restored_before_each_launch(void **state)
{
    (void)state;
    if (!D->accumulate)
        skip();
    struct add_case *t = add_new(100);
    add_args(t, t->args[2], t->args[0], t->args[3]);
    struct kp_module *m = add_load(t, D->accumulate, "accumulate");
    double ns[3];
    const struct kp_restore restore = {.dst = t->dc, .src = t->db};
    struct kp_run run = {
        .launch = &t->l, .restore = &restore, .n_restore = 1, .n = 3, .times_ns = ns};
    OK(kp_module_run(DEV, m, &run, &ERR));
    add_read(t);
    for (int i = 0; i < N; i++)
        assert_true(t->c[i] == t->b[i] + t->a[i]);
    run.n_restore = 0;
    OK(kp_module_run(DEV, m, &run, &ERR));
    add_read(t);
    for (int i = 0; i < N; i++)
        assert_true(t->c[i] == t->b[i] + t->a[i] + t->a[i] + t->a[i] + t->a[i]);
    kp_module_unload(DEV, m);
    add_free(t);
}

static void what_a_kernel_leaves_out_stays_poisoned(void **state)
{
    (void)state;
    struct add_case *t = add_new(100);
    add_args(t, t->args[2], t->args[0], t->args[3]);
    struct kp_module *m = add_load(t, D->half, "half_of_it");
    OK(kp_buffer_fill(DEV, t->dc, 0, &ERR));
    (void)run_once(m, &t->l, t->dc);
    add_read(t);
    assert_memory_equal(t->c, t->a, sizeof(t->c) / 2);
    for (size_t i = sizeof(t->c) / 2; i < sizeof(t->c); i++)
        assert_int_equal(((unsigned char *)t->c)[i], 0xFF);
    double ns;
    const struct kp_restore other = {.dst = t->dc};
    const struct kp_run second = {.launch = &t->l,
                                  .restore = &other,
                                  .n_restore = 1,
                                  .poison = 0xA5,
                                  .n = 1,
                                  .times_ns = &ns};
    OK(kp_module_run(DEV, m, &second, &ERR));
    add_read(t);
    assert_memory_equal(t->c, t->a, sizeof(t->c) / 2);
    for (size_t i = sizeof(t->c) / 2; i < sizeof(t->c); i++)
        assert_int_equal(((unsigned char *)t->c)[i], 0xA5);
    /* the order of restores is kept: first the copy, then the poison */
    const struct kp_restore both[2] = {{.dst = t->dc, .src = t->db}, {.dst = t->dc}};
    struct kp_run run = {
        .launch = &t->l, .restore = both, .n_restore = 2, .n = 1, .times_ns = &ns};
    OK(kp_module_run(DEV, m, &run, &ERR));
    add_read(t);
    assert_int_equal(((unsigned char *)t->c)[sizeof(t->c) - 1], 0xFF);
    struct kp_buffer *small = new_buffer(NULL, 4);
    const struct kp_restore wrong = {.dst = t->dc, .src = small};
    run.restore = &wrong;
    run.n_restore = 1;
    assert_int_equal(kp_module_run(DEV, m, &run, &ERR), KOPT_ERANGE);
    kp_buffer_free(DEV, small);
    kp_module_unload(DEV, m);
    add_free(t);
}

static void count(void *user)
{
    ++*(int *)user;
}

static void every_launch_is_timed_and_the_first_announced(void **state)
{
    (void)state;
    struct add_case *t = add_new(64);
    struct kp_module *m = add_load(t, D->add, "add");
    double ns[20];
    int started = 0;
    const struct kp_restore poison = {.dst = t->dc};
    struct kp_run run = {.launch = &t->l,
                         .restore = &poison,
                         .n_restore = 1,
                         .flush_bytes = (1 << 20) + 5,
                         .n = 20,
                         .times_ns = ns,
                         .started = count,
                         .user = &started};
    OK(kp_module_run(DEV, m, &run, &ERR));
    assert_int_equal(started, 1);
    for (int i = 0; i < 20; i++)
        assert_true(ns[i] > 0 && ns[i] < 1e10);
    add_check(t);
    run.flush_bytes = 16 << 20; /* a larger one, then a smaller one */
    OK(kp_module_run(DEV, m, &run, &ERR));
    run.flush_bytes = (size_t)kp_device_info(DEV)->limits.l2_bytes; /* the whole cache */
    OK(kp_module_run(DEV, m, &run, &ERR));
    run.flush_bytes = 1;
    OK(kp_module_run(DEV, m, &run, &ERR));
    assert_int_equal(started, 4);
    add_check(t);
    run.n = 0;
    run.times_ns = NULL;
    OK(kp_module_run(DEV, m, &run, &ERR));
    assert_int_equal(started, 4);
    kp_module_unload(DEV, m);
    add_free(t);
}

static void arguments_of_another_kernel_are_refused_when_loading(void **state)
{
    (void)state;
    if (D->backend == KP_BACKEND_FAKE)
        skip(); /* its kernels take what they are given */
    struct add_case *t = add_new(64);
    struct kp_buf image = KP_BUF_INIT(IMAGE_MAX);
    struct kp_module *m = NULL;
    struct kp_compile_job job = job_of(D->add, "add", NULL);
    OK(kp_compile(COMPILER, &job, &image, NULL, &ERR));
    OK(kp_module_load(DEV, image.ptr, image.len, "add", &t->l, &m, &ERR));
    kp_module_unload(DEV, m);
    t->l.n_args = 3;
    kopt_status st = kp_module_load(DEV, image.ptr, image.len, "add", &t->l, &m, &ERR);
    assert_true(st == KOPT_EINPUT || (st == KOPT_OK && D->backend == KP_BACKEND_CUDA));
    if (st == KOPT_EINPUT) {
        assert_null(m);
        assert_has(ERR.message, "has 4 arguments, the launch gives 3");
    }
    kp_module_unload(DEV, m); /* drivers before CUDA 12.4 do not tell what a kernel takes */
    kp_buf_deinit(&image);
    add_free(t);
}

static void launches_over_the_limits_are_refused_with_the_numbers(void **state)
{
    (void)state;
    struct add_case *t = add_new(64);
    struct kp_module *m = add_load(t, D->add, "add");
    const struct kp_limits *lim = &kp_device_info(DEV)->limits;
    const struct kp_module_info *info = kp_module_get_info(m);
    assert_true(info->max_threads <= lim->max_threads);
    assert_true(info->shared_bytes >= -1 && info->registers >= -1 && info->local_bytes >= -1);
    char number[32];

    struct kp_launch l = t->l;
    l.block[0] = (uint32_t)lim->max_threads;
    l.block[1] = 2;
    (void)snprintf(number, sizeof(number), "%lld", 2LL * lim->max_threads);
    assert_int_equal(kp_launch_check(DEV, m, &l, &ERR), KOPT_ERANGE);
    assert_non_null(strstr(ERR.message, number));
    l = t->l;
    l.grid[1] = 0;
    assert_int_equal(kp_launch_check(DEV, m, &l, &ERR), KOPT_ERANGE);
    assert_non_null(strstr(ERR.message, "grid size y is 0"));
    l = t->l;
    l.block[2] = 0;
    assert_int_equal(kp_launch_check(DEV, m, &l, &ERR), KOPT_ERANGE);
    l = t->l;
    l.block[2] = (uint32_t)lim->max_block[2] + 1;
    assert_int_equal(kp_launch_check(DEV, m, &l, &ERR), KOPT_ERANGE);
    l = t->l;
    l.grid[0] = UINT32_MAX;
    double ns;
    const struct kp_run run = {.launch = &l, .n = 1, .times_ns = &ns};
    assert_int_equal(kp_module_run(DEV, m, &run, &ERR), KOPT_ERANGE);
    OK(kp_launch_check(DEV, m, &t->l, &ERR));
    kp_module_unload(DEV, m);
    add_free(t);
}

/* --- all of it -----------------------------------------------------------------------------
 */

static int open_all(void **state)
{
    (void)state;
    if (kp_compiler_open(D->backend, 0, NULL, NULL, &COMPILER, &ERR) != KOPT_OK ||
        kp_device_open(RT, 0, &DEV, &ERR) != KOPT_OK) {
        (void)fprintf(stderr, "cannot open the device: %s\n", ERR.message);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_is_sane),
        cmocka_unit_test(an_index_that_is_not_there_is_not_found),
        cmocka_unit_test(sensors_are_numbers_or_nan),
        cmocka_unit_test(buffers_keep_what_is_written),
        cmocka_unit_test(bounds_are_kept),
        cmocka_unit_test(impossible_buffers_are_refused),
        cmocka_unit_test(large_buffers_arrive_whole),
        cmocka_unit_test(compare_agrees_with_the_host),
        cmocka_unit_test(the_edges_of_comparing_are_the_hosts),
        cmocka_unit_test(a_compile_error_is_told_in_the_users_terms),
        cmocka_unit_test(a_source_with_a_zero_byte_is_refused),
        cmocka_unit_test(an_entry_that_is_not_there_is_told),
        cmocka_unit_test(what_is_no_image_is_refused),
        cmocka_unit_test(compiled_is_called_once_with_the_image_complete),
        cmocka_unit_test(an_include_is_found_beside_the_source),
        cmocka_unit_test(macros_arrive_as_they_are),
        cmocka_unit_test(block_shapes_give_the_same_result),
        cmocka_unit_test(two_dimensions_work),
        cmocka_unit_test(local_memory_is_an_argument),
        cmocka_unit_test(buffers_are_restored_before_each_launch),
        cmocka_unit_test(what_a_kernel_leaves_out_stays_poisoned),
        cmocka_unit_test(every_launch_is_timed_and_the_first_announced),
        cmocka_unit_test(arguments_of_another_kernel_are_refused_when_loading),
        cmocka_unit_test(launches_over_the_limits_are_refused_with_the_numbers),
    };
    D = contract_dialect();
    kopt_status st = kp_runtime_open(D->backend, NULL, &RT, &ERR);
    if (st == KOPT_OK && kp_runtime_n_devices(RT) == 0)
        st = kp_err(&ERR, KOPT_EENV, "there is no %s device", kp_backend_name(D->backend));
    if (st == KOPT_EENV || (st == KOPT_EDEVICE && D->backend == KP_BACKEND_CUDA)) {
        (void)printf("skipped: %s\n", ERR.message);
        return 77;
    }
    if (st != KOPT_OK) {
        (void)fprintf(stderr, "%s\n", ERR.message);
        return 1;
    }
    return cmocka_run_group_tests(tests, open_all, close_all);
}
