/* SPDX-License-Identifier: MIT */
#include "measure/worker/runner.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- data
 * ------------------------------------------------------------------------------------- */

struct mapping {
    void *ptr;
    size_t bytes;
};

static kopt_status map_file(const char *path, size_t bytes, struct mapping *out,
                            kopt_error *err)
{
    *out = (struct mapping){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || (uint64_t)st.st_size != bytes) {
        kopt_status code =
            fd < 0 ? kp_err(err, KOPT_EIO, "cannot open %s: %s", path, strerrordesc_np(errno))
                   : kp_err(err, KOPT_EIO, "%s does not have %zu bytes", path, bytes);
        if (fd >= 0)
            (void)close(fd);
        return code;
    }
    void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (p == MAP_FAILED)
        return kp_err(err, KOPT_EIO, "cannot map %s: %s", path, strerrordesc_np(errno));
    *out = (struct mapping){p, bytes};
    return KOPT_OK;
}

/* Is the buffer what it was? *differs is left alone when it is. */
static kopt_status compare_with(struct kp_runner *r, struct kp_buffer *b,
                                const struct mapping *map, bool *differs, kopt_error *err)
{
    enum { CHUNK = 1 << 20 };
    kopt_status st = KOPT_OK;
    unsigned char *copy = kp_calloc(CHUNK, 1);
    if (!copy)
        return kp_err_nomem(err);
    for (size_t at = 0; at < map->bytes && st == KOPT_OK && !*differs; at += CHUNK) {
        size_t n = map->bytes - at < CHUNK ? map->bytes - at : CHUNK;
        st = kp_buffer_read(r->dev, b, at, copy, n, err);
        if (st == KOPT_OK)
            *differs = memcmp(copy, (const unsigned char *)map->ptr + at, n) != 0;
    }
    kp_free(copy);
    return st;
}

static kopt_status upload(struct kp_runner *r, struct kp_buffer *b, const char *file,
                          bool *differs, kopt_error *err)
{
    struct mapping map;
    kopt_status st = map_file(file, kp_buffer_bytes(b), &map, err);
    if (st != KOPT_OK)
        return st;
    if (differs && !*differs)
        st = compare_with(r, b, &map, differs, err);
    if (st == KOPT_OK)
        st = kp_buffer_write(r->dev, b, 0, map.ptr, map.bytes, err);
    (void)munmap(map.ptr, map.bytes);
    return st;
}

kopt_status kp_runner_refresh(struct kp_runner *r, bool *spoiled, kopt_error *err)
{
    int64_t begun = kp_clock_ns();
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < KP_RUNNER_BUFFERS && st == KOPT_OK; i++) {
        struct kp_runner_buffer *b = &r->buffers[i];
        if (b->mem && b->file)
            st = upload(r, b->pristine ? b->pristine : b->mem, b->file, spoiled, err);
    }
    for (size_t i = 0; i < r->n_checks && st == KOPT_OK; i++)
        st = upload(r, r->checks[i].want, r->checks[i].file, spoiled, err);
    r->check_ns += kp_clock_ns() - begun;
    return st;
}

static kopt_status set_buffer(struct kp_runner *r, const struct kp_message *m, kopt_error *err)
{
    int64_t index = kp_message_i64(m, "buffer", -1);
    int64_t bytes = kp_message_i64(m, "bytes", 0);
    const char *file = kp_message_str(m, "file");
    const char *dir = kp_message_str(m, "dir");
    if (index < 0 || index >= KP_RUNNER_BUFFERS || bytes < 1 || r->buffers[index].mem)
        return kp_err(err, KOPT_ECORRUPT, "a buffer message is broken");
    struct kp_runner_buffer *b = &r->buffers[index];
    bool inout = strcmp(dir, "inout") == 0;
    b->bytes = (size_t)bytes;
    b->out = strcmp(dir, "out") == 0;
    kopt_status st = kp_buffer_new(r->dev, b->bytes, &b->mem, err);
    if (st == KOPT_OK && inout)
        st = kp_buffer_new(r->dev, b->bytes, &b->pristine, err);
    if (st == KOPT_OK && file[0]) {
        b->file = kp_strdup(file);
        st = b->file ? upload(r, inout ? b->pristine : b->mem, file, NULL, err)
                     : kp_err_nomem(err);
    }
    if (st == KOPT_OK && (b->out || inout))
        r->restore[r->n_restore++] = (struct kp_restore){b->mem, b->pristine};
    if (st == KOPT_OK && inout)
        r->inout[r->n_inout++] = (struct kp_restore){b->mem, b->pristine};
    return st;
}

static kopt_status set_check(struct kp_runner *r, const struct kp_message *m, kopt_error *err)
{
    int64_t buffer = kp_message_i64(m, "buffer", -1);
    if (r->n_checks == KP_RUNNER_CHECKS || buffer < 0 || buffer >= KP_RUNNER_BUFFERS ||
        !r->buffers[buffer].mem)
        return kp_err(err, KOPT_ECORRUPT, "a check message is broken");
    struct kp_runner_check *c = &r->checks[r->n_checks];
    c->buffer = (uint32_t)buffer;
    c->type = (enum kp_number)kp_message_i64(m, "type", KP_NUM_F32);
    c->rtol = kp_message_f64(m, "rtol", 0);
    c->atol = kp_message_f64(m, "atol", 0);
    c->file = kp_strdup(kp_message_str(m, "file"));
    c->name = kp_strdup(kp_message_str(m, "name"));
    if (!c->file || !c->name) {
        kp_free(c->file);
        kp_free(c->name);
        return kp_err_nomem(err);
    }
    kopt_status st = kp_buffer_new(r->dev, r->buffers[buffer].bytes, &c->want, err);
    if (st == KOPT_OK)
        st = upload(r, c->want, c->file, NULL, err);
    r->n_checks++;
    /* The first comparison may compile its kernel: better now than in a measurement. */
    struct kp_compare itself;
    if (st == KOPT_OK)
        st = kp_buffer_compare(r->dev, c->want, c->want, c->type, c->rtol, c->atol, &itself,
                               err);
    return st;
}

kopt_status kp_runner_check_all(struct kp_runner *r, struct kp_mistake *out, kopt_error *err)
{
    int64_t begun = kp_clock_ns();
    kopt_status st = KOPT_OK;
    *out = (struct kp_mistake){.check = r->n_checks};
    for (size_t i = 0; i < r->n_checks && st == KOPT_OK; i++) {
        const struct kp_runner_check *c = &r->checks[i];
        struct kp_compare got = {0};
        st = kp_buffer_compare(r->dev, r->buffers[c->buffer].mem, c->want, c->type, c->rtol,
                               c->atol, &got, err);
        double max_error = fmax(got.max_error, out->compare.max_error);
        if (got.n_bad && out->check == r->n_checks)
            *out = (struct kp_mistake){i, got};
        out->compare.max_error = max_error;
    }
    r->check_ns += kp_clock_ns() - begun;
    return st;
}

void kp_runner_describe(const struct kp_runner *r, const struct kp_mistake *m, char *out,
                        size_t bytes)
{
    const struct kp_compare *c = &m->compare;
    const struct kp_runner_check *k = &r->checks[m->check];
    char which[256];
    if (k->name[0])
        (void)snprintf(which, sizeof(which), "%.200s", k->name);
    else
        (void)snprintf(which, sizeof(which), "argument %u", k->buffer + 1);
    if (c->n_nan == c->n_bad)
        (void)snprintf(
            out, bytes,
            "%s: %llu of %llu elements are NaN or were never written, the first at %llu", which,
            (unsigned long long)c->n_bad, (unsigned long long)c->n,
            (unsigned long long)c->first);
    else
        (void)snprintf(
            out, bytes,
            "%s: %llu of %llu elements outside the tolerance, the first at %llu: %.9g, "
            "expected %.9g",
            which, (unsigned long long)c->n_bad, (unsigned long long)c->n,
            (unsigned long long)c->first, c->got, c->want);
}

/* --- candidates
 * ------------------------------------------------------------------------------- */

static kopt_status bind_args(struct kp_runner *r, struct kp_candidate *c, kopt_error *err)
{
    c->args = kp_calloc(c->job.n_args + 1, sizeof(*c->args));
    if (!c->args)
        return kp_err_nomem(err);
    for (size_t i = 0; i < c->job.n_args; i++) {
        const struct kp_job_arg *a = &c->job.args[i];
        c->args[i] =
            (struct kp_launch_arg){.space = a->space, .value = a->value, .bytes = a->bytes};
        if (a->space != KP_SPACE_GLOBAL)
            continue;
        const struct kp_runner_buffer *b = &r->buffers[a->buffer];
        if (!b->mem || b->bytes != a->bytes)
            return kp_err(err, KOPT_ECORRUPT, "argument %zu names no buffer", i);
        c->args[i].buffer = b->mem;
    }
    memcpy(c->launch.grid, c->job.grid, sizeof(c->launch.grid));
    memcpy(c->launch.block, c->job.block, sizeof(c->launch.block));
    c->launch.shared_bytes = c->job.shared_bytes;
    c->launch.args = c->args;
    c->launch.n_args = c->job.n_args;
    return KOPT_OK;
}

kopt_status kp_candidate_load(struct kp_runner *r, const struct kp_message *m,
                              struct kp_candidate *c, kopt_error *err)
{
    int64_t begun = kp_clock_ns();
    *c = (struct kp_candidate){0};
    kopt_status st = kp_message_get_launch(m, &c->job, err);
    if (st == KOPT_OK)
        st = bind_args(r, c, err);
    if (st == KOPT_OK)
        st = kp_module_load(r->dev, m->blob, m->blob_bytes, kp_message_str(m, "entry"),
                            &c->launch, &c->module, err);
    if (st == KOPT_OK)
        st = kp_launch_check(r->dev, c->module, &c->launch, err);
    r->load_ns += kp_clock_ns() - begun;
    if (st != KOPT_OK)
        kp_candidate_unload(r, c);
    return st;
}

void kp_candidate_unload(struct kp_runner *r, struct kp_candidate *c)
{
    int64_t begun = kp_clock_ns();
    if (c->module)
        kp_module_unload(r->dev, c->module);
    kp_free(c->args);
    kp_free(c->job.args);
    *c = (struct kp_candidate){0};
    r->load_ns += kp_clock_ns() - begun;
}

static kopt_status launches(struct kp_runner *r, struct kp_candidate *c, struct kp_run *run,
                            kopt_error *err)
{
    int64_t begun = kp_clock_ns();
    run->launch = &c->launch;
    kopt_status st = kp_module_run(r->dev, c->module, run, err);
    int64_t wall_ns = kp_clock_ns() - begun;
    double kernel_ns = 0;
    for (unsigned i = 0; st == KOPT_OK && i < run->n; i++)
        if (isfinite(run->times_ns[i]) && run->times_ns[i] > 0)
            kernel_ns += run->times_ns[i];
    r->launch_ns += wall_ns;
    r->kernel_ns += (int64_t)fmin(kernel_ns, (double)wall_ns); /* a device's clock may lie */
    return st;
}

kopt_status kp_candidate_run(struct kp_runner *r, struct kp_candidate *c, unsigned n,
                             size_t flush, double *times_ns, kopt_error *err)
{
    struct kp_run run = {.restore = r->restore,
                         .n_restore = r->n_restore,
                         .poison = c->poison,
                         .flush_bytes = flush,
                         .n = n};
    run.times_ns = times_ns;
    return launches(r, c, &run, err);
}

kopt_status kp_candidate_repeat(struct kp_runner *r, struct kp_candidate *c, unsigned n,
                                double *times_ns, kopt_error *err)
{
    struct kp_run run = {.restore = r->inout, .n_restore = r->n_inout, .n = n};
    run.times_ns = times_ns;
    return launches(r, c, &run, err);
}

void kp_runner_clear_use(struct kp_runner *r)
{
    r->launch_ns = r->kernel_ns = r->load_ns = r->check_ns = r->sense_ns = 0;
}

bool kp_runner_put_use(const struct kp_runner *r, struct kp_json *j)
{
    return kp_json_set_i64(j, "launch_ns", r->launch_ns) &&
           kp_json_set_i64(j, "kernel_ns", r->kernel_ns) &&
           kp_json_set_i64(j, "load_ns", r->load_ns) &&
           kp_json_set_i64(j, "check_ns", r->check_ns) &&
           kp_json_set_i64(j, "sense_ns", r->sense_ns);
}

/* --- requests
 * --------------------------------------------------------------------------------- */

static bool on_open(struct kp_runner *r, const struct kp_message *m)
{
    kopt_error err;
    enum kp_backend b;
    int64_t id = kp_message_i64(m, "id", 0);
    if (!kp_backend_from_name(kp_message_str(m, "backend"), &b))
        return false;
    kopt_status st = kp_runtime_open(b, NULL, &r->rt, &err);
    if (st == KOPT_OK)
        st = kp_device_open(r->rt, (int)kp_message_i64(m, "index", 0), &r->dev, &err);
    if (st != KOPT_OK)
        return kp_worker_fail(id, &err);
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    kp_device_memory(r->dev, &free_bytes, &total_bytes);
    struct kp_json *j = kp_message_new("is", "opened", id);
    bool ok = j && kp_message_put_info(j, kp_device_info(r->dev)) &&
              kp_json_set_i64(j, "free_bytes", (int64_t)free_bytes);
    if (!ok) {
        kp_json_free(j);
        j = NULL;
    }
    return kp_worker_send(j, NULL, 0);
}

static kopt_status save_buffer(struct kp_runner *r, uint32_t buffer, const char *path,
                               kopt_error *err)
{
    struct kp_runner_buffer *b = &r->buffers[buffer];
    unsigned char *copy = kp_calloc(b->bytes, 1);
    if (!copy)
        return kp_err_nomem(err);
    kopt_status st = kp_buffer_read(r->dev, b->mem, 0, copy, b->bytes, err);
    if (st == KOPT_OK)
        st = kp_file_put(path, copy, b->bytes, err);
    kp_free(copy);
    return st;
}

/* Launch a reference kernel once and keep the buffers named in "save": [{buffer, file}]. */
static kopt_status run_reference(struct kp_runner *r, const struct kp_message *m,
                                 kopt_error *err)
{
    struct kp_candidate c;
    double ns;
    kopt_status st = kp_candidate_load(r, m, &c, err);
    if (st != KOPT_OK)
        return st;
    st = kp_candidate_run(r, &c, 1, 0, &ns, err);
    const struct kp_json *save = kp_json_get(m->head, "save");
    for (size_t i = 0; i < kp_json_size(save) && st == KOPT_OK; i++) {
        int64_t buffer;
        struct kp_str file;
        if (kp_json_as_i64(kp_json_get(kp_json_at(save, i), "buffer"), &buffer) &&
            buffer >= 0 && buffer < KP_RUNNER_BUFFERS && r->buffers[buffer].mem &&
            kp_json_as_str(kp_json_get(kp_json_at(save, i), "file"), &file))
            st = save_buffer(r, (uint32_t)buffer, file.ptr, err);
        else
            st = kp_err(err, KOPT_ECORRUPT, "a reference message is broken");
    }
    kp_candidate_unload(r, &c);
    return st;
}

static kopt_status refresh(struct kp_runner *r, const struct kp_message *m, kopt_error *err)
{
    (void)m;
    return kp_runner_refresh(r, NULL, err);
}

static bool on_simple(struct kp_runner *r, const struct kp_message *m,
                      kopt_status (*f)(struct kp_runner *r, const struct kp_message *m,
                                       kopt_error *err))
{
    kopt_error err;
    int64_t id = kp_message_i64(m, "id", 0);
    return f(r, m, &err) == KOPT_OK ? kp_worker_reply(id, "done") : kp_worker_fail(id, &err);
}

static bool handle(struct kp_runner *r, const struct kp_message *m)
{
    const char *what = kp_message_what(m, "do");
    if (strcmp(what, "open") == 0 && !r->dev)
        return on_open(r, m);
    if (!r->dev)
        return false;
    if (strcmp(what, "buffer") == 0)
        return on_simple(r, m, set_buffer);
    if (strcmp(what, "check") == 0)
        return on_simple(r, m, set_check);
    if (strcmp(what, "reference") == 0)
        return on_simple(r, m, run_reference);
    if (strcmp(what, "measure") == 0)
        return kp_runner_measure(r, m);
    if (strcmp(what, "slot") == 0)
        return kp_runner_slot(r, m);
    if (strcmp(what, "refresh") == 0)
        return on_simple(r, m, refresh);
    if (strcmp(what, "race") == 0)
        return kp_runner_race(r, m);
    if (strcmp(what, "energy") == 0)
        return kp_runner_energy(r, m);
    return false;
}

static void close_all(struct kp_runner *r)
{
    for (size_t i = 0; i < KP_RUNNER_SLOTS; i++)
        kp_candidate_unload(r, &r->slots[i]);
    for (size_t i = 0; i < r->n_checks; i++) {
        kp_buffer_free(r->dev, r->checks[i].want);
        kp_free(r->checks[i].file);
        kp_free(r->checks[i].name);
    }
    for (size_t i = 0; i < KP_RUNNER_BUFFERS; i++) {
        kp_buffer_free(r->dev, r->buffers[i].mem);
        kp_buffer_free(r->dev, r->buffers[i].pristine);
        kp_free(r->buffers[i].file);
    }
    kp_device_close(r->dev);
    kp_runtime_close(r->rt);
}

int kp_worker_run(void)
{
    struct kp_runner *r = kp_calloc(1, sizeof(*r));
    struct kp_buf frame = KP_BUF_INIT(KP_FRAME_MAX);
    struct kp_message m;
    bool ok = r || kp_worker_no_memory();
    while (ok && kp_worker_next(&frame, &m)) {
        ok = handle(r, &m);
        kp_message_deinit(&m);
    }
    if (r)
        close_all(r);
    kp_free(r);
    kp_buf_deinit(&frame);
    return ok ? 0 : 1;
}
