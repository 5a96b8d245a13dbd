/* SPDX-License-Identifier: MIT */
/* Choosing the device, naming the subject, preparing the data. Layer: tune. */
#include "tune/internal.h"

#include "base/alloc.h"
#include "measure/data.h"
#include "os/file.h"
#include "os/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_COMPILE_S = 120,
    DEFAULT_LAUNCH_S = 10,
    REFERENCE_TRIES = 8,
    HOST_REFERENCE_S = 600
};
static const double second_ns = 1e9;
static const uint64_t data_seed = 1; /* part of the subject: results are shared between seeds */

/* --- device
 * ----------------------------------------------------------------------------------- */

static kopt_status parse_devices(const char *text, struct kp_lab_options *o, kopt_error *err)
{
    struct kp_device_ids ids;
    _Static_assert((int)KP_DEVICE_IDS_MAX <= (int)KP_LAB_LANES_MAX, "a lane for each");
    kopt_status st = kp_device_ids_parse(text, &ids, err);
    o->backend = ids.backend;
    o->n_devices = ids.n;
    memcpy(o->devices, ids.index, ids.n * sizeof(ids.index[0]));
    return st;
}

static kopt_status choose_device(const struct kp_session *s, struct kp_lab_options *o,
                                 kopt_error *err)
{
    bool cuda = s->kernel->lang == KP_LANG_CUDA;
    const char *text = s->o.device && s->o.device[0] ? s->o.device
                       : cuda                        ? "cuda:0"
                                                     : "opencl:0";
    kopt_status st = parse_devices(text, o, err);
    if (st != KOPT_OK)
        return st;
    bool fits = o->backend == KP_BACKEND_FAKE || (o->backend == KP_BACKEND_CUDA) == cuda;
    if (!fits)
        return kp_err(err, KOPT_EUSAGE, "%s is written in %s, which %s does not run",
                      s->kernel->path, cuda ? "CUDA C" : "OpenCL C", text);
    return KOPT_OK;
}

double kp_session_compile_limit_s(const struct kp_session *s)
{
    return s->o.compile_timeout_s > 0 ? s->o.compile_timeout_s : DEFAULT_COMPILE_S;
}

double kp_session_launch_limit_s(const struct kp_session *s)
{
    return s->o.launch_timeout_s > 0 ? s->o.launch_timeout_s : DEFAULT_LAUNCH_S;
}

kopt_status kp_session_device(struct kp_session *s, kopt_error *err)
{
    struct kp_lab_options o = {.source = s->kernel->source,
                               .source_path = s->kernel->source_path,
                               .options = s->kernel->flags,
                               .n_options = s->kernel->n_flags,
                               .wake_fd = s->stop_fd};
    unsigned cores = (unsigned)kp_cpu_count();
    o.compilers = s->o.compilers ? s->o.compilers : cores;
    if (o.compilers > KP_LAB_COMPILERS_MAX)
        o.compilers = KP_LAB_COMPILERS_MAX;
    o.compile_timeout_ns = (int64_t)(kp_session_compile_limit_s(s) * second_ns);
    o.launch_timeout_ns = (int64_t)(kp_session_launch_limit_s(s) * second_ns);
    char hash[KP_SHA256_HEX + 1] = "";
    if (s->o.compile_cache && kp_kernel_hash(s->kernel, hash, NULL) == KOPT_OK) {
        o.image_folder = s->o.compile_cache;
        o.image_key = hash;
    }
    kopt_status st = choose_device(s, &o, err);
    if (st == KOPT_OK)
        st = kp_lab_open(&o, &s->lab, err);
    if (st == KOPT_ENOTFOUND) { /* the driver has no device of that number */
        st = KOPT_EENV;
        if (err)
            err->code = st;
    }
    if (st == KOPT_OK) {
        s->compilers = o.compilers;
        s->window = 2 * o.compilers + 2 * (uint32_t)o.n_devices;
        if (s->window > WINDOW_MAX)
            s->window = WINDOW_MAX;
    }
    return st;
}

/* --- subject
 * ---------------------------------------------------------------------------------- */

/* A CPU's name does not say how many of its cores there are to compute on. */
static int64_t cores_of(const struct kp_device_info *info)
{
    int64_t allowed = kp_cpu_count();
    if (!info->is_cpu)
        return 0;
    return info->limits.compute_units < allowed ? info->limits.compute_units : allowed;
}

/* Told before the hash, which reads them, would tell less. */
static kopt_status references_exist(const struct kp_session *s, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < s->kernel->n_checks && st == KOPT_OK; i++)
        if (s->kernel->checks[i].kind == KP_CHECK_C)
            st = kp_host_reference_exists(s->bound, i, err);
    return st;
}

static void params_json(const struct kp_kernel *k, struct kp_buf *out)
{
    kp_buf_addc(out, '[');
    for (size_t i = 0; i < k->n_params; i++) {
        kp_buf_adds(out, i ? "," : "");
        kp_json_quote(kp_str_from(k->params[i].name), out);
    }
    kp_buf_addc(out, ']');
}

kopt_status kp_session_subject(struct kp_session *s, kopt_error *err)
{
    struct kp_buf problem = KP_BUF_INIT(TEXT_MAX);
    struct kp_buf data = KP_BUF_INIT(TEXT_MAX);
    struct kp_buf params = KP_BUF_INIT(TEXT_MAX);
    char hash[KP_SHA256_HEX + 1];
    const struct kp_device_info *info = kp_lab_device(s->lab);
    kopt_status st = references_exist(s, err);
    if (st == KOPT_OK)
        st = kp_kernel_hash(s->kernel, hash, err);
    if (st != KOPT_OK)
        return st;
    struct kp_conditions how = {.seed = data_seed,
                                .flush_bytes = kp_session_plan(s).flush_bytes,
                                .cores = cores_of(info)};
    kp_bound_problem_json(s->bound, &problem);
    kp_data_describe(s->bound, &how, &data);
    params_json(s->kernel, &params);
    s->subject_texts[0] = kp_buf_take(&problem);
    s->subject_texts[1] = kp_buf_take(&data);
    s->subject_texts[2] = kp_strdup(hash);
    s->subject_texts[3] = kp_buf_take(&params);
    if (!s->subject_texts[0] || !s->subject_texts[1] || !s->subject_texts[2] ||
        !s->subject_texts[3])
        return kp_err_nomem(err);
    s->subject = (struct kp_subject){.kernel = s->kernel->name,
                                     .kernel_path = s->kernel->path,
                                     .kernel_hash = s->subject_texts[2],
                                     .backend = kp_backend_name(info->backend),
                                     .device = info->name,
                                     .arch = info->arch,
                                     .driver = info->driver,
                                     .compiler = info->compiler,
                                     .problem = s->subject_texts[0],
                                     .data = s->subject_texts[1],
                                     .params = s->subject_texts[3]};
    return KOPT_OK;
}

/* --- jobs
 * ------------------------------------------------------------------------------------- */

static void add_macro(void *user, const char *name, const char *text)
{
    struct owned_job *j = user;
    struct kp_buf b = KP_BUF_INIT(TEXT_MAX);
    kp_buf_addf(&b, "%s=%s", name, text);
    char *macro = kp_buf_take(&b);
    void *items = j->macros;
    if (macro && kp_grow(&items, &j->cap, j->job.n_macros, sizeof(*j->macros), 4096)) {
        j->macros = items;
        j->macros[j->job.n_macros++] = macro;
        return;
    }
    kp_free(macro);
    j->failed = KOPT_ENOMEM;
}

static kopt_status make_args(struct kp_session *s, const uint32_t *config, struct owned_job *j,
                             kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    j->args = kp_calloc(k->n_args + 1, sizeof(*j->args));
    if (!j->args)
        return kp_err_nomem(err);
    for (size_t i = 0; i < k->n_args; i++) {
        struct kp_job_arg *a = &j->args[i];
        kopt_status st;
        a->buffer = (uint32_t)i;
        if (k->args[i].kind == KP_ARG_SCALAR) {
            a->space = KP_SPACE_VALUE;
            st = kp_data_scalar(s->bound, i, config, a->value, &a->bytes, err);
        } else {
            a->space = k->args[i].kind == KP_ARG_BUFFER ? KP_SPACE_GLOBAL : KP_SPACE_SHARED;
            st = kp_data_bytes(s->bound, i, config, &a->bytes, err);
        }
        if (st != KOPT_OK)
            return st;
    }
    j->job.launch.args = j->args;
    j->job.launch.n_args = k->n_args;
    return KOPT_OK;
}

kopt_status kp_job_make(struct kp_session *s, const uint32_t *config, const char *entry,
                        const struct kp_geometry *g, struct owned_job *out, kopt_error *err)
{
    *out = (struct owned_job){0};
    kopt_status st = kp_bound_macros(s->bound, config, add_macro, out, err);
    if (st == KOPT_OK && out->failed != KOPT_OK)
        st = kp_err_nomem(err);
    if (st == KOPT_OK)
        st = make_args(s, config, out, err);
    for (int i = 0; i < 3 && st == KOPT_OK; i++) {
        if (g->grid[i] > UINT32_MAX || g->block[i] > UINT32_MAX || g->shared_bytes > UINT32_MAX)
            st = kp_err(err, KOPT_ERANGE, "the launch has more than 2^32 groups or bytes");
        out->job.launch.grid[i] = (uint32_t)g->grid[i];
        out->job.launch.block[i] = (uint32_t)g->block[i];
    }
    if (st != KOPT_OK) {
        kp_job_deinit(out);
        return st;
    }
    out->job.launch.shared_bytes = (uint32_t)g->shared_bytes;
    out->job.id = ++s->next_job;
    out->job.entry = entry;
    out->job.macros = (const char *const *)out->macros;
    return KOPT_OK;
}

void kp_job_deinit(struct owned_job *j)
{
    for (size_t i = 0; i < j->job.n_macros; i++)
        kp_free(j->macros[i]);
    kp_free(j->macros);
    kp_free(j->args);
    *j = (struct owned_job){0};
}

/* --- data
 * ------------------------------------------------------------------------------------- */

static char *scratch_file(const struct kp_session *s, const char *stem, size_t i)
{
    struct kp_buf b = KP_BUF_INIT(8192);
    kp_buf_addf(&b, "%s/%s%zu.bin", kp_lab_scratch(s->lab), stem, i);
    return kp_buf_take(&b);
}

/* Where the session's data lies; strings by argument and by check, owned. */
struct files {
    char **args;
    char **checks;
};

static void files_deinit(const struct kp_session *s, struct files *f)
{
    for (size_t i = 0; f->args && i < s->kernel->n_args; i++)
        kp_free(f->args[i]);
    for (size_t i = 0; f->checks && i < s->kernel->n_checks; i++)
        kp_free(f->checks[i]);
    kp_free(f->args);
    kp_free(f->checks);
}

/* What the data takes on a device: inout buffers twice, checked ones once more. */
static kopt_status enough_memory(const struct kp_session *s, kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    int64_t room = s->o.memory_bytes > 0 ? s->o.memory_bytes : kp_lab_free_bytes(s->lab);
    uint64_t need = 0; /* 256 arguments of 2^40 bytes at most */
    for (size_t i = 0; i < k->n_args; i++) {
        size_t bytes;
        unsigned copies = k->args[i].dir == KP_DIR_INOUT ? 2 : 1;
        if (k->args[i].kind != KP_ARG_BUFFER)
            continue;
        kopt_status st = kp_data_bytes(s->bound, i, NULL, &bytes, err);
        if (st != KOPT_OK)
            return st;
        for (size_t c = 0; c < k->n_checks && s->o.check >= 0; c++)
            copies += k->checks[c].arg == i;
        need += (uint64_t)copies * bytes;
    }
    if (room <= 0 || need <= (uint64_t)room)
        return KOPT_OK;
    (void)kp_err(err, KOPT_EFULL,
                 "the data takes %" PRIu64 " bytes of device memory, %" PRId64 " %s", need,
                 room, s->o.memory_bytes > 0 ? "may be used" : "are free");
    kp_err_hint(err, s->o.memory_bytes > 0
                         ? "allow more memory or take a smaller problem"
                         : "take a smaller problem, or check fewer of its outputs");
    return KOPT_EFULL;
}

static kopt_status write_inputs(struct kp_session *s, struct files *f, kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    struct kp_lab_buffer buffers[KP_JOB_ARGS_MAX];
    size_t n = 0;
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < k->n_args && st == KOPT_OK; i++) {
        const struct kp_arg *a = &k->args[i];
        if (a->kind != KP_ARG_BUFFER)
            continue;
        buffers[n] =
            (struct kp_lab_buffer){.buffer = (uint32_t)i, .inout = a->dir == KP_DIR_INOUT};
        st = kp_data_bytes(s->bound, i, NULL, &buffers[n].bytes, err);
        if (st == KOPT_OK && a->dir != KP_DIR_OUT) {
            f->args[i] = scratch_file(s, "arg", i);
            st = f->args[i] ? kp_data_write(s->bound, i, data_seed, f->args[i], err)
                            : kp_err_nomem(err);
            buffers[n].file = f->args[i];
        }
        n++;
    }
    return st == KOPT_OK ? kp_lab_set_buffers(s->lab, buffers, n, err) : st;
}

static size_t find_reference(const struct kp_kernel *k, const char *name)
{
    size_t i = 0;
    while (i < k->n_references && strcmp(k->references[i].name, name) != 0)
        i++;
    return i;
}

/* A reference kernel is compiled with some configuration's macros. The default's may be one
 * that does not compile: then others are tried. */
static kopt_status run_reference_kernel(struct kp_session *s, size_t check, const char *file,
                                        kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    const struct kp_check_decl *c = &k->checks[check];
    struct kp_lab_save save = {.buffer = (uint32_t)c->arg, .file = file};
    struct kp_geometry g;
    struct kp_rng rng;
    uint32_t config[KP_PARAMS_MAX];
    kopt_status st = kp_bound_reference_geometry(s->bound, find_reference(k, c->name), &g, err);
    if (st != KOPT_OK)
        return st;
    kp_rng_init(&rng, 1);
    memcpy(config, s->first, s->n_params * sizeof(*config));
    for (int i = 0; i < REFERENCE_TRIES; i++) {
        struct owned_job j;
        st = kp_job_make(s, config, c->name, &g, &j, err);
        if (st != KOPT_OK)
            return st;
        st = kp_lab_reference(s->lab, &j.job, &save, 1, err);
        kp_job_deinit(&j);
        if (st != KOPT_EINPUT)
            break;
        kp_space_sample(s->bound->space, &rng, config);
    }
    if (st != KOPT_OK && st != KOPT_EINTR) {
        kp_err_wrap(err, "check of %s: reference kernel %s", k->args[c->arg].name, c->name);
        if (err && !err->file[0])
            kp_check_place(k, check, err);
    }
    return st;
}

/* A reference that fails to be one is found here, not by candidates that all seem right or
 * all seem wrong. NaN matches NaN, as some kernels do give it. */
static kopt_status judge_answer(struct kp_session *s, const struct files *f, size_t check,
                                kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    const struct kp_check_decl *c = &k->checks[check];
    const struct kp_arg *a = &k->args[c->arg];
    const char *input = "";
    struct kp_expected got;
    kopt_status st = kp_expected_look(f->checks[check], a->elem, f->args[c->arg], &got, err);
    if (st != KOPT_OK)
        return st;
    if (a->dir == KP_DIR_OUT)
        input = "; an 'out' holds NaN before: is it to be 'inout', or is not all written?";
    if (got.n_nan == got.n && got.n > 0) {
        st = kp_err(err, KOPT_EINPUT, "check of %s: its reference %s gives nothing but NaN%s",
                    a->name, c->name, input);
        kp_check_place(k, check, err);
        kp_err_hint(err, "--no-check times the kernel without a reference");
    } else if (got.n_nan > 0) {
        kp_log(&s->log, KP_LOG_WARN,
               "%s:%d: the reference %s gives NaN for %" PRIu64 " of %" PRIu64
               " elements of %s, the first at %" PRIu64 ": NaN is right there%s",
               k->path, c->line, c->name, got.n_nan, got.n, a->name, got.first_nan, input);
    } else if (got.untouched) {
        kp_log(&s->log, KP_LOG_WARN,
               "%s:%d: the reference %s leaves %s as it was: the check does not tell a kernel "
               "that does nothing",
               k->path, c->line, c->name, a->name);
    }
    return st;
}

static void tick(void *user)
{
    kp_session_report_progress(user, false);
}

static kopt_status run_reference(struct kp_session *s, const struct files *f, size_t check,
                                 kopt_error *err)
{
    const struct kp_check_decl *c = &s->kernel->checks[check];
    struct kp_host_reference h = {.bound = s->bound,
                                  .check = check,
                                  .files = (const char *const *)f->args,
                                  .scratch = kp_lab_scratch(s->lab),
                                  .timeout_ns = (int64_t)(HOST_REFERENCE_S * second_ns),
                                  .wake_fd = s->stop_fd,
                                  .tick = tick,
                                  .user = s};
    kopt_status st;
    switch (c->kind) {
    case KP_CHECK_KERNEL:
    case KP_CHECK_C:
        kp_log(&s->log, KP_LOG_INFO, "computing %s by the reference %s",
               s->kernel->args[c->arg].name, c->name);
        st = c->kind == KP_CHECK_C ? kp_host_reference_run(&h, f->checks[check], err)
                                   : run_reference_kernel(s, check, f->checks[check], err);
        return st == KOPT_OK ? judge_answer(s, f, check, err) : st;
    case KP_CHECK_FILE:
    case KP_CHECK_FILL:
        return kp_data_write_check(s->bound, check, f->checks[check], err);
    }
    return kp_err(err, KOPT_EINPUT, "unknown kind of check");
}

static kopt_status tolerance(const struct kp_session *s, size_t check, const struct kp_expr *e,
                             double *out, kopt_error *err)
{
    struct kp_value v;
    if (kp_bound_eval(s->bound, e, NULL, &v, NULL) == KP_EVAL_VALUE &&
        kp_value_to_f64(v, out) && *out >= 0)
        return KOPT_OK;
    (void)kp_err(err, KOPT_EINPUT, "a tolerance is not a number of at least 0");
    kp_err_at(err, s->kernel->path, s->kernel->checks[check].line, 0, NULL, 0);
    return KOPT_EINPUT;
}

/* All of a check but its reference: what is wrong with it is told before minutes are spent on
 * that. */
static kopt_status describe_check(struct kp_session *s, const struct files *f, size_t i,
                                  struct kp_lab_check *out, kopt_error *err)
{
    const struct kp_check_decl *c = &s->kernel->checks[i];
    *out = (struct kp_lab_check){.buffer = (uint32_t)c->arg,
                                 .name = s->kernel->args[c->arg].name,
                                 .file = f->checks[i],
                                 .type = (enum kp_number)s->kernel->args[c->arg].elem};
    kopt_status st = tolerance(s, i, c->rtol, &out->rtol, err);
    return st == KOPT_OK ? tolerance(s, i, c->atol, &out->atol, err) : st;
}

static kopt_status make_checks(struct kp_session *s, struct files *f, kopt_error *err)
{
    const struct kp_kernel *k = s->kernel;
    struct kp_lab_check checks[KP_CHECKS_MAX];
    kopt_status st = KOPT_OK;
    for (size_t i = 0; i < k->n_checks && st == KOPT_OK; i++) {
        f->checks[i] = scratch_file(s, "check", i);
        st = f->checks[i] ? describe_check(s, f, i, &checks[i], err) : kp_err_nomem(err);
    }
    for (size_t i = 0; i < k->n_checks && st == KOPT_OK; i++)
        st = run_reference(s, f, i, err);
    return st == KOPT_OK ? kp_lab_set_checks(s->lab, checks, k->n_checks, err) : st;
}

kopt_status kp_session_data(struct kp_session *s, kopt_error *err)
{
    if (s->data_ready)
        return KOPT_OK;
    struct files f = {.args = kp_calloc(s->kernel->n_args + 1, sizeof(char *)),
                      .checks = kp_calloc(s->kernel->n_checks + 1, sizeof(char *))};
    if (!f.args || !f.checks) {
        files_deinit(s, &f);
        return kp_err_nomem(err);
    }
    const char *before = s->phase;
    kopt_status st = enough_memory(s, err);
    s->phase = "writing the inputs";
    kp_session_report_progress(s, true);
    if (st == KOPT_OK)
        st = write_inputs(s, &f, err);
    s->phase = "computing the reference";
    if (st == KOPT_OK && s->o.check >= 0) {
        kp_session_report_progress(s, true);
        if (s->kernel->n_checks == 0)
            kp_log(&s->log, KP_LOG_WARN,
                   "%s declares no check: results are timed, not verified", s->kernel->path);
        st = make_checks(s, &f, err);
    }
    files_deinit(s, &f);
    s->phase = before;
    kp_session_report_progress(s, true);
    s->data_ready = st == KOPT_OK;
    return st;
}
