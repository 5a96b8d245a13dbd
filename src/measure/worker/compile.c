/* SPDX-License-Identifier: MIT */
#include "measure/worker/worker.h"

#include "base/alloc.h"
#include "os/proc.h"

#include <string.h>
#include <sys/resource.h>

enum { LOG_MAX = 1 << 20, LOG_SENT = 16 * 1024, TEXTS_MAX = 4096 };

struct compile_role {
    struct kp_compiler *compiler;
    char *source;
    size_t source_bytes;
    char *path; /* NULL = none */
    int64_t id; /* of the job in hand */
};

static bool on_open(struct compile_role *c, const struct kp_message *m)
{
    kopt_error err;
    enum kp_backend b;
    const char *arch = kp_message_str(m, "arch");
    int64_t id = kp_message_i64(m, "id", 0);
    if (!kp_backend_from_name(kp_message_str(m, "backend"), &b))
        return false;
    if (kp_compiler_open(b, (int)kp_message_i64(m, "index", 0), arch[0] ? arch : NULL, NULL,
                         &c->compiler, &err) != KOPT_OK)
        return kp_worker_fail(id, &err);
    struct kp_json *j = kp_message_new("is", "opened", id);
    if (j)
        (void)kp_json_set_str(j, "version", kp_compiler_version(c->compiler));
    return kp_worker_send(j, NULL, 0);
}

static bool on_source(struct compile_role *c, const struct kp_message *m)
{
    const char *path = kp_message_str(m, "path");
    c->source = kp_strndup((const char *)m->blob, m->blob_bytes);
    c->source_bytes = m->blob_bytes;
    c->path = path[0] ? kp_strdup(path) : NULL;
    bool ok = c->source && (c->path || !path[0]);
    return ok || kp_worker_no_memory();
}

/* Borrowed texts of an array of strings; the array is the caller's. */
static const char **texts(const struct kp_json *array, size_t *n)
{
    *n = kp_json_size(array);
    if (*n > TEXTS_MAX)
        return NULL;
    const char **t = kp_calloc(*n + 1, sizeof(*t));
    for (size_t i = 0; t && i < *n; i++) {
        struct kp_str s = KP_STR("");
        (void)kp_json_as_str(kp_json_at(array, i), &s);
        t[i] = s.ptr;
    }
    return t;
}

static void on_compiled(void *user)
{
    const struct compile_role *c = user;
    (void)kp_worker_reply(c->id, "compiled");
}

static void put_log(struct kp_json *j, const struct kp_buf *log_text)
{
    char *cut =
        kp_strndup(kp_buf_text(log_text), log_text->len < LOG_SENT ? log_text->len : LOG_SENT);
    if (j && cut)
        (void)kp_json_set_str(j, "log", cut);
    kp_free(cut);
}

static kopt_status compile(struct compile_role *c, const struct kp_message *m,
                           const struct kp_job_launch *l, struct kp_buf *image,
                           struct kp_buf *log_text, kopt_error *err)
{
    kopt_status st;
    struct kp_compile_job job = {.source = {c->source, c->source_bytes},
                                 .path = c->path,
                                 .entry = kp_message_str(m, "entry"),
                                 .compiled = on_compiled,
                                 .user = c};
    struct kp_launch launch = {.shared_bytes = l->shared_bytes, .n_args = l->n_args};
    struct kp_launch_arg *args = kp_calloc(l->n_args + 1, sizeof(*args));
    const char **macros = texts(kp_json_get(m->head, "macros"), &job.n_macros);
    const char **options = texts(kp_json_get(m->head, "options"), &job.n_options);
    if (!args || !macros || !options) {
        st = kp_err_nomem(err);
        goto done;
    }
    for (size_t i = 0; i < l->n_args; i++)
        args[i] = (struct kp_launch_arg){
            .space = l->args[i].space, .value = l->args[i].value, .bytes = l->args[i].bytes};
    memcpy(launch.grid, l->grid, sizeof(launch.grid));
    memcpy(launch.block, l->block, sizeof(launch.block));
    launch.args = args;
    job.macros = macros;
    job.options = options;
    job.launch = &launch;
    st = kp_compile(c->compiler, &job, image, log_text, err);
done:
    kp_free(args);
    kp_free(macros);
    kp_free(options);
    return st;
}

/* image NULL: it failed, for the reason in `err`. */
static bool send_answer(const struct compile_role *c, const struct kp_buf *image,
                        const struct kp_buf *log_text, const kopt_error *err)
{
    struct kp_json *j = kp_message_new("is", image ? "image" : "error", c->id);
    if (j) {
        if (!image)
            kp_message_put_error(j, err);
        put_log(j, log_text);
    }
    return kp_worker_send(j, image ? image->ptr : NULL, image ? image->len : 0);
}

static bool on_compile(struct compile_role *c, const struct kp_message *m)
{
    kopt_error err;
    struct kp_job_launch l = {0};
    struct kp_buf image = KP_BUF_INIT(KP_FRAME_MAX - (1 << 20));
    struct kp_buf log_text = KP_BUF_INIT(LOG_MAX);
    c->id = kp_message_i64(m, "id", 0);
    kopt_status st = kp_message_get_launch(m, &l, &err);
    if (st == KOPT_OK)
        st = compile(c, m, &l, &image, &log_text, &err);
    if (st == KOPT_OK)
        st = kp_buf_status(&image, &err);
    bool ok = st == KOPT_ENOMEM
                  ? kp_worker_no_memory()
                  : send_answer(c, st == KOPT_OK ? &image : NULL, &log_text, &err);
    kp_free(l.args);
    kp_buf_deinit(&image);
    kp_buf_deinit(&log_text);
    return ok;
}

int kp_worker_compile(void)
{
    struct compile_role c = {0};
    struct kp_buf frame = KP_BUF_INIT(KP_FRAME_MAX);
    struct kp_message m;
    bool ok = true;
    /* Compilers fill every core: whoever serves the device goes first. */
    (void)setpriority(PRIO_PROCESS, 0, 10);
    while (ok && kp_worker_next(&frame, &m)) {
        const char *what = kp_message_what(&m, "do");
        if (strcmp(what, "open") == 0 && !c.compiler)
            ok = on_open(&c, &m);
        else if (strcmp(what, "source") == 0 && !c.source)
            ok = on_source(&c, &m);
        else if (strcmp(what, "compile") == 0 && c.compiler && c.source)
            ok = on_compile(&c, &m);
        else
            ok = false;
        kp_message_deinit(&m);
    }
    kp_compiler_close(c.compiler);
    kp_free(c.source);
    kp_free(c.path);
    kp_buf_deinit(&frame);
    return ok ? 0 : 1;
}
